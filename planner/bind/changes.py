"""UPDATE and DELETE: which rows, by number, and what becomes of them.

Both are bound as the SELECT of the rows they touch, so that whatever a SELECT may say in WHERE, they may.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from gpudb.catalog import name_in_schema, schema_of
from gpudb.errors import BindError, NotSupportedError, ParseError
from gpudb.planner import statements
from gpudb.planner.bind.casts import cast, castable
from gpudb.planner.bind.context import Context, catalog_name, not_found, span_of
from gpudb.planner.bind.defaults import default_value
from gpudb.planner.bind.expressions import contains_aggregate
from gpudb.planner.bind.query import QueryBinder, SelectItem
from gpudb.planner.bind.scope import Scope
from gpudb.planner.bind.sequences import refused_default
from gpudb.planner.expressions import Column, Expression
from gpudb.planner.logical import HIDDEN, ROW_NUMBER, Node, OutputColumn, Project, Scan
from gpudb.planner.tokens import plain
from gpudb.types import BIGINT

ROW = f"{HIDDEN}row number"


class TargetBinder(QueryBinder):
    """Binds the SELECT of a target's rows: scans of the outermost FROM also give row numbers."""

    def scan(self, layout: Any) -> Node:
        inner = super().scan(layout)
        assert isinstance(inner, Scan)
        return Scan((*inner.columns, (ROW, BIGINT)), inner.table, (*inner.ordinals, ROW_NUMBER))

    def select_list(self, node: Any, scope: Scope, has_from: bool) -> list[SelectItem]:
        items = super().select_list(node, scope, has_from)
        for item in items:
            if contains_aggregate(item.expression):
                raise BindError("aggregate functions are not allowed in SET", span=item.expression.span)
        return items


class ReturningBinder(QueryBinder):
    """Binds RETURNING as a SELECT of the rows that the statement changes."""

    def scan(self, layout: Any) -> Node:
        return super().scan(self.context.catalog.changed_rows(layout))

    def select_list(self, node: Any, scope: Scope, has_from: bool) -> list[SelectItem]:
        items = super().select_list(node, scope, has_from)
        for item in items:
            if contains_aggregate(item.expression):
                raise BindError("aggregate functions are not allowed in RETURNING", span=item.expression.span)
        return items


def bind_returning(context: Context, tree: Any, table: Any) -> Node | None:
    """The plan of RETURNING, where a statement has it; its columns go by the name of `table`, a reference in the tree."""
    returning = tree.args.get("returning")
    if not returning:
        return None
    if returning.args.get("into"):
        raise NotSupportedError("RETURNING INTO is not supported", span=span_of(returning.args["into"]))
    for item in returning.expressions:
        query = item.find(exp.Query)
        if query is not None:
            raise BindError("subqueries are not allowed in RETURNING", span=span_of(query) or span_of(item))
    return ReturningBinder(context).bind(exp.Select(expressions=returning.expressions, from_=exp.From(this=table)))


def bind_delete(context: Context, tree: Any, layout: Any) -> statements.Delete:
    """DELETE FROM table [USING relations] [WHERE condition] [RETURNING ...]; `layout` is the table's."""
    refuse(tree, (("order", "ORDER BY"), ("limit", "LIMIT")))
    others = tree.args.get("using") or []
    returning = tree.args.get("returning")
    if tree.args.get("where") is None and not others and not returning:
        return statements.Delete(layout.name, None)
    values = [column_of(tree.this, name) for name, _ in layout.columns] if returning else []
    plan = rows_of(context, tree, others, values)
    return statements.Delete(layout.name, plan, bind_returning(context, tree, tree.this))


def bind_update(
    context: Context,
    tree: Any,
    layout: Any,
    extra: tuple[str, ...] = (),
    whole: bool = False,
    joins: list[Any] | None = None,
) -> statements.Update:
    """UPDATE table SET column = value, ... [FROM relations] [WHERE condition] [RETURNING ...]; `layout` is the table's.

    extra  columns of the other relations that the plan gives behind the row number
    whole  it gives the table's other columns too, as with RETURNING
    joins  trees of what is joined to the table, in place of FROM
    """
    refuse(tree, (("order", "ORDER BY"), ("limit", "LIMIT")))
    if not tree.expressions:
        raise ParseError("SET expected in UPDATE", span=span_of(tree.this))
    known = {name.lower(): index for index, (name, _) in enumerate(layout.columns)}
    ordinals: list[int] = []
    values: list[Any] = []
    for column, value in assignments(tree):
        span = span_of(column)
        if column.key != "column" or column.table:
            raise BindError("SET wants the plain name of a column", span=span)
        ordinal = known.get(plain(column.name).lower())
        if ordinal is None:
            raise not_found("column", plain(column.name), [name for name, _ in layout.columns], span)
        if ordinal in ordinals:
            raise BindError(f"column is set twice: {plain(column.name)}", span=span)
        ordinals.append(ordinal)
        values.append(value)
    from_ = tree.args.get("from_")
    trees: list[Any] = [exp.column(exp.to_identifier(name, quoted=True)) for name in extra]
    trees += [exp.Null() if value is None else value for value in values]
    if whole or tree.args.get("returning"):
        trees += [column_of(tree.this, name) for k, (name, _) in enumerate(layout.columns) if k not in ordinals]
    plan = rows_of(context, tree, joins or ([from_.this] if from_ is not None else []), trees)
    columns: list[OutputColumn] = list(plan.columns[: 1 + len(extra)])
    expressions: list[Expression] = [Column(type_, k, name) for k, (name, type_) in enumerate(columns)]
    for position, (ordinal, value) in enumerate(zip(ordinals, values, strict=True), len(columns)):
        name, type_ = layout.columns[ordinal]
        columns.append((name, type_))
        if value is None:
            refused_default(context, context.catalog.defaults(layout.name).get(name.lower()), "UPDATE", None)
            expressions.append(default_value(context, layout, ordinal))
            continue
        source = plan.columns[position][1]
        if not castable(source, type_):
            raise BindError(f"column {name} takes {type_}, not {source}", span=span_of(value))
        expressions.append(cast(context, Column(source, position, name, span=span_of(value)), type_))
    for position in range(len(columns), len(plan.columns)):  # what RETURNING asks for beside
        columns.append((f"{ROW} {position}", plan.columns[position][1]))
        expressions.append(Column(plan.columns[position][1], position, ROW))
    rows = Project(tuple(columns), plan, tuple(expressions))
    return statements.Update(layout.name, tuple(ordinals), rows, bind_returning(context, tree, tree.this))


def assignments(tree: Any) -> list[tuple[Any, Any]]:
    """(column, value) of SET a = 1, (b, c) = (2, 3); None for DEFAULT."""
    pairs: list[tuple[Any, Any]] = []
    for item in tree.expressions:
        left, right = item.this, item.expression
        if item.key != "eq":
            raise BindError("SET wants column = value", span=span_of(item))
        if left.key != "tuple":
            pairs.append((left, right))
        elif right.key == "tuple" and len(left.expressions) == len(right.expressions):
            pairs += zip(left.expressions, right.expressions, strict=True)
        else:
            raise BindError("SET (columns) = (values) wants one value a column", span=span_of(item))
    return [(left, None if is_default(right) else right) for left, right in pairs]


def is_default(node: Any) -> bool:
    """Whether a value is the word DEFAULT."""
    return node.key in ("column", "var") and node.name.upper() == "DEFAULT" and not node.args.get("table")


def rows_of(context: Context, tree: Any, others: list[Any], values: list[Any]) -> Node:
    """The numbers of the rows that a statement touches, and values over these rows.

    Without other relations each row is there once, in table order; beside others as often as they match it.
    """
    target = tree.this
    row = column_of(target, ROW)
    items = [
        exp.Alias(this=value, alias=exp.to_identifier(ROW if k == 0 else f"{ROW} {k}", quoted=True))
        for k, value in enumerate((row, *values))
    ]
    joins = [other if other.key == "join" else exp.Join(this=other) for other in others]
    select = exp.Select(expressions=items, from_=exp.From(this=target), joins=joins, where=tree.args.get("where"))
    binder = TargetBinder(context)
    binder.common_tables(tree)
    return binder.bind(select)


def relation_of(name: str) -> str:
    """A name of the catalog as SQL."""
    schema = schema_of(name)
    parts = [name_in_schema(name)] if schema is None else [schema, name_in_schema(name)]
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def column_of(target: Any, name: str) -> Any:
    """A column of the table that a statement changes, as a tree."""
    alias = target.args.get("alias")
    relation = plain(alias.name) if alias is not None else plain(target.name)
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(relation, quoted=True))


def refuse(tree: Any, parts: tuple[tuple[str, str], ...]) -> None:
    """NotSupportedError for parts of a statement that are not there."""
    for part, what in parts:
        value = tree.args.get(part)
        if value:
            first = value[0] if isinstance(value, list) else value
            raise NotSupportedError(f"{what} is not supported", span=span_of(first) or span_of(tree.this))


def target_of(context: Context, tree: Any) -> tuple[str, Any]:
    """(the catalog's name of the table that a statement changes, the place of the name)."""
    target = tree.this
    if not target:
        raise ParseError(f"name of a table expected after {tree.key.upper()}")
    if target.key != "table" or target.this.key != "identifier":
        raise BindError("name of a table expected", span=span_of(target))
    return catalog_name(context, target), span_of(target.this)
