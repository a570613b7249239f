"""MERGE INTO: each WHEN as the UPDATE, DELETE or INSERT of the rows that it, and none before it, is about."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from gpudb.errors import BindError, ParseError
from gpudb.planner import statements
from gpudb.planner.bind import changes
from gpudb.planner.bind.casts import cast, castable
from gpudb.planner.bind.context import Context, span_of
from gpudb.planner.bind.defaults import default_value
from gpudb.planner.bind.query import QueryBinder
from gpudb.planner.bind.sequences import refused_default
from gpudb.planner.expressions import Column, Expression
from gpudb.planner.logical import HIDDEN, Node, Project
from gpudb.planner.merging import When
from gpudb.planner.parse import Command
from gpudb.planner.tokens import plain

ACTIONS = ("UPDATE", "DELETE", "INSERT")
_ALLOWED = {
    "matched": ("update", "delete", "nothing", "error"),
    "unmatched": ("insert", "nothing", "error"),
    "alone": ("update", "delete", "nothing", "error"),
}


class MergeBinder:
    """Binds one MERGE; `layout` is the target's."""

    def __init__(self, context: Context, command: Command, layout: Any) -> None:
        self.context = context
        self.layout = layout
        self.target = command.parts["target"]
        self.join = command.parts["join"]
        self.with_ = command.parts["with"]
        self.returning = command.parts["returning"]
        self.whens: list[When] = command.parts["whens"]
        if self.source_name() is None:
            self.join.this.set("alias", exp.TableAlias(this=exp.to_identifier(HIDDEN + "source", quoted=True)))

    def bind(self) -> statements.Merge:
        """The statement; its parts are in the order of the WHENs."""
        parts: list[statements.MergePart] = []
        for number, when in enumerate(self.whens):
            if when.action not in _ALLOWED[when.rows]:
                shown = {"matched": "MATCHED", "unmatched": "NOT MATCHED", "alone": "NOT MATCHED BY SOURCE"}[when.rows]
                raise ParseError(f"WHEN {shown} cannot {when.action.upper()}", span=when.span)
            if any(one.rows == when.rows and one.condition is None for one in self.whens[:number]):
                raise ParseError("a WHEN before has no condition: this one is never reached", span=when.span)
            where = self.condition(number)
            match when.action:
                case "update":
                    parts.append(self.update(when, where))
                case "delete":
                    parts.append(self.delete(when, where))
                case "insert":
                    parts.append(self.insert(when, where))
                case "error":
                    parts.append(self.error(when, where))
        returning = None if self.returning is None else tuple(self.returned(action) for action in ACTIONS)
        return statements.Merge(self.layout.name, tuple(parts), returning)

    def source_name(self) -> str | None:
        source = self.join.this
        alias = source.args.get("alias")
        if alias is not None and plain(alias.name):
            return plain(alias.name)
        return plain(source.name) if source.key == "table" else None

    def condition(self, number: int) -> Any:
        """WHERE for a WHEN: its condition, and none of those before it about the same rows is TRUE."""
        when = self.whens[number]
        parts: list[Any] = []
        for before in self.whens[:number]:
            if before.rows == when.rows:
                truth = exp.Boolean(this=True)
                parts.append(exp.Not(this=exp.Is(this=exp.Paren(this=before.condition.copy()), expression=truth)))
        if when.condition is not None:
            parts.append(exp.Paren(this=when.condition.copy()))
        where: Any = None
        for part in parts:
            where = part if where is None else exp.And(this=where, expression=part)
        return None if where is None else exp.Where(this=where)

    def others(self, kind: str) -> list[Any]:
        """The source joined to the target."""
        join = self.join.copy()
        if kind:
            join.set("kind", kind)
        return [join]

    def kind(self, when: When) -> str:
        return "ANTI" if when.rows == "alone" else ""

    def update(self, when: When, where: Any) -> statements.Update:
        sets = when.tree.expressions if when.form == "listed" else self.assigned(when)
        tree = exp.Update(this=self.target.copy(), expressions=sets, where=where, with_=self.with_)
        joins = self.others(self.kind(when))
        return changes.bind_update(self.context, tree, self.layout, (), self.returning is not None, joins)

    def assigned(self, when: When) -> list[Any]:
        """SET of all columns of the source, by position or by name."""
        if when.rows == "alone":
            raise BindError("there is no row of the source to take values from", span=when.span)
        names = self.source_columns()
        targets = names if when.form == "name" else self.by_position(names, when)
        return [
            exp.EQ(this=exp.column(_quoted(name)), expression=self.of_source(own))
            for name, own in zip(targets, names, strict=True)
        ]

    def by_position(self, names: list[str], when: When) -> list[str]:
        if len(names) != len(self.layout.columns):
            raise BindError(
                f"the source has {len(names)} columns, the table {len(self.layout.columns)}", span=when.span
            )
        return [name for name, _ in self.layout.columns]

    def source_columns(self) -> list[str]:
        binder = QueryBinder(self.context)
        binder.common_tables(exp.Select(with_=self.with_))
        _, scope = binder.relation(self.join.this.copy())
        return [scope.columns[index][0] for index in scope.visible()]

    def of_source(self, name: str) -> Any:
        return exp.column(_quoted(name), table=_quoted(self.source_name() or ""))

    def delete(self, when: When, where: Any) -> statements.Delete:
        columns = [changes.column_of(self.target, name) for name, _ in self.layout.columns] if self.returning else []
        tree = exp.Delete(this=self.target.copy(), where=where, with_=self.with_)
        plan = changes.rows_of(self.context, tree, self.others(self.kind(when)), columns)
        return statements.Delete(self.layout.name, plan)

    def insert(self, when: When, where: Any) -> statements.Insert:
        ordinals, values = self.given(when)
        context = self.context
        listed = [value for value in values if value is not None] or [exp.Null()]
        items = [exp.Alias(this=value, alias=_quoted(f"c{k}")) for k, value in enumerate(listed)]
        plan = self.unmatched(items, where)
        expressions: list[Expression] = []
        given = dict(zip(ordinals, values, strict=True))
        for ordinal, (name, type_) in enumerate(self.layout.columns):
            value = given.get(ordinal)
            if value is None:
                refused_default(
                    context, context.catalog.defaults(self.layout.name).get(name.lower()), "MERGE", when.span
                )
                expressions.append(default_value(self.context, self.layout, ordinal))
                continue
            position = [k for k in ordinals if given[k] is not None].index(ordinal)
            source = plan.columns[position][1]
            if not castable(source, type_):
                raise BindError(f"column {name} takes {type_}, not {source}", span=span_of(value) or when.span)
            expressions.append(cast(self.context, Column(source, position, name, span=span_of(value)), type_))
        return statements.Insert(self.layout.name, ordinals, Project(self.layout.columns, plan, tuple(expressions)))

    def given(self, when: When) -> tuple[tuple[int, ...], list[Any]]:
        """(columns of the table, a tree of the value of each; None for DEFAULT)"""
        places = {name.lower(): k for k, (name, _) in enumerate(self.layout.columns)}
        every = tuple(range(len(self.layout.columns)))
        if when.form == "default":
            return every, [None] * len(every)
        if when.form != "listed":
            names = self.source_columns()
            targets = names if when.form == "name" else self.by_position(names, when)
            return tuple(self.place(places, name, when.span) for name in targets), [
                self.of_source(own) for own in names
            ]
        target, source = when.tree.this, when.tree.args.get("expression")
        ordinals = every
        if target.key == "schema":
            ordinals = tuple(self.place(places, plain(one.name), span_of(one)) for one in target.expressions)
            if len(set(ordinals)) < len(ordinals):
                raise BindError("column is named twice", span=span_of(target) or when.span)
        if when.tree.args.get("default"):
            return ordinals, [None] * len(ordinals)
        if source is None:
            names = self.source_columns()
            values = [self.of_source(own) for own in names]
        else:
            if source.key != "values" or len(source.expressions) != 1:
                raise ParseError("INSERT of MERGE wants VALUES with one row", span=when.span)
            row = source.expressions[0]
            values = [
                None if changes.is_default(one) else one for one in (row.expressions if row.key == "tuple" else [row])
            ]
        if len(values) != len(ordinals):
            raise BindError(f"INSERT gives {len(values)} values for {len(ordinals)} columns", span=when.span)
        return ordinals, values

    def place(self, places: dict[str, int], name: str, span: Any) -> int:
        if name.lower() not in places:
            raise BindError(f"column not found: {name}", span=span)
        return places[name.lower()]

    def unmatched(self, items: list[Any], where: Any) -> Node:
        """Values over the rows of the source that match none of the target."""
        join = self.join.copy()
        join.set("this", self.target.copy())
        join.set("kind", "ANTI")
        return self.selected(items, self.join.this, [join], where)

    def selected(self, items: list[Any], relation: Any, joins: list[Any], where: Any) -> Node:
        select = exp.Select(expressions=items, from_=exp.From(this=relation.copy()), joins=joins, where=where)
        binder = QueryBinder(self.context)
        binder.common_tables(exp.Select(with_=self.with_))
        return binder.bind(select)

    def error(self, when: When, where: Any) -> statements.MergeError:
        shown = {"matched": "MATCHED", "unmatched": "NOT MATCHED", "alone": "NOT MATCHED BY SOURCE"}[when.rows]
        message = when.tree if when.tree is not None else exp.Null()
        item = [exp.Alias(this=message, alias=_quoted("message"))]
        if when.rows == "unmatched":
            plan = self.unmatched(item, where)
        else:
            plan = self.selected(item, self.target, self.others(self.kind(when)), where)
        return statements.MergeError(plan, shown)

    def returned(self, action: str) -> Node:
        """The plan of RETURNING for the rows that one kind of action has touched."""
        known = {name.lower() for name, _ in self.layout.columns}
        items = []
        for item in self.returning.copy().expressions:
            for column in list(item.find_all(exp.Column)):
                if plain(column.name).lower() == "merge_action" and "merge_action" not in known and not column.table:
                    word = exp.Literal.string(action)
                    if column is item:
                        item = exp.Alias(this=word, alias=_quoted("merge_action"))
                    else:
                        column.replace(word)
            items.append(item)
        tree = exp.Select()
        tree.set("returning", exp.Returning(expressions=items))
        plan = changes.bind_returning(self.context, tree, self.target.copy())
        assert plan is not None, "there is a RETURNING"
        return plan


def _quoted(name: str) -> Any:
    return exp.to_identifier(name, quoted=True)
