"""PIVOT and UNPIVOT: columns made of rows, and rows of columns.

PIVOT is a GROUP BY whose aggregates count the rows of one value each (FILTER).  Its values are part of the plan, whose
columns they are: they are written in the statement, or found by a query that runs while the statement is bound.  UNPIVOT
pairs each row with the names of its columns, and picks the column by name.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gpudb.errors import BindError, NotSupportedError
from gpudb.functions.cast_text import print_values
from gpudb.planner.bind.casts import cast, common_type
from gpudb.planner.bind.context import Enclosing, not_found, span_of
from gpudb.planner.bind.expressions import ExpressionBinder, contains_aggregate
from gpudb.planner.bind.grouping import GroupBy, Groups, by_value
from gpudb.planner.bind.names import column_name
from gpudb.planner.bind.operators import compare
from gpudb.planner.bind.ordered_aggregates import spelled_out
from gpudb.planner.bind.scope import Scope
from gpudb.planner.bind.unnesting import columns_of, where
from gpudb.planner.expressions import (
    AggregateCall,
    Case,
    Column,
    Comparison,
    Expression,
    IsNull,
    Literal,
    Not,
    conjunction,
    conjuncts,
)
from gpudb.planner.logical import Aggregate, Join, Node, OutputColumn, Project, Sort, SortKey, Values
from gpudb.planner.pivot_tokens import alias_of, value_of
from gpudb.planner.tokens import plain
from gpudb.types import BIGINT, BOOLEAN, INTEGER, VARCHAR

if TYPE_CHECKING:
    from gpudb.planner.bind.relations import RelationBinder

MOST_VALUES = 100_000
Condition = tuple[str, Expression]
"""How a value of a pivoted column is called, and the rows that have it."""


def pivoted(query: RelationBinder, plan: Node, scope: Scope, node: Any) -> Node:
    """The rows of a plan, pivoted or unpivoted as a sqlglot Pivot says: the clause's form or the statement's."""
    if node.args.get("unpivot"):
        return _unpivoted(query, plan, scope, node)
    return _Pivot(query, plan, scope, node).made()


class _Pivot:
    """One PIVOT: groups, and for each combination of values each aggregate."""

    def __init__(self, query: RelationBinder, plan: Node, scope: Scope, node: Any) -> None:
        self.query = query
        self.plan = plan
        self.scope = scope
        self.node = node
        self.context = query.context
        self.binder = ExpressionBinder(query.context, scope, clause="PIVOT", aggregates=True)

    def made(self) -> Node:
        node = self.node
        fields = node.args.get("fields") or node.expressions
        trees = node.expressions if node.args.get("fields") else node.args.get("using") or []
        calls = [self._aggregate(tree) for tree in trees]
        if not trees:
            calls = [("count_star()", False, AggregateCall(BIGINT, "count_star", ()))]
        pivoted_by = [value_of(field.this if field.key == "in" else field) for field in fields]
        by = [self.binder.bind(tree) for tree in pivoted_by]
        alternatives = [self._values(field, column) for field, column in zip(fields, by, strict=True)]
        read = {part.index for _, _, bound in calls for part in bound.walk() if isinstance(part, Column)}
        read |= {part.index for column in by for part in column.walk() if isinstance(part, Column)}
        groups = Groups(self.context, GroupBy(self._keys(read), None))
        names = [key.name if isinstance(key, Column) else f"key {k}" for k, key in enumerate(groups.keys)]
        outputs: list[Expression] = [groups.rewrite(key) for key in groups.keys]
        several = len(calls) > 1
        for chosen in product(*alternatives):
            name = "_".join(part for part, _ in chosen)
            rows = [condition for _, condition in chosen]
            for called, is_alias, bound in calls:
                names.append(f"{name}_{called}" if several or is_alias else name)
                outputs.append(groups.rewrite(_of_rows(bound, rows)))
        from gpudb.planner.bind.query import aggregate

        columns = tuple((name, output.type) for name, output in zip(names, outputs, strict=True))
        return Project(columns, aggregate(self.plan, groups), tuple(outputs))

    def _aggregate(self, tree: Any) -> tuple[str, bool, Expression]:
        """(name, whether that is an alias, the bound aggregate)."""
        is_alias = tree.key == "alias"
        inner = value_of(tree.this if is_alias else tree)
        bound = self.binder.bind(inner)
        if not contains_aggregate(bound):
            raise BindError("PIVOT wants aggregates", span=span_of(tree))
        return (plain(tree.alias) if is_alias else str(column_name(inner, self.context.parsed))), is_alias, bound

    def _values(self, field: Any, column: Expression) -> list[Condition]:
        """The values of one pivoted column, which are part of the plan: they name columns."""
        if field.key != "in":
            return self._found(column, field)
        if field.args.get("query") is not None:
            return self._listed(column, field)
        if field.this.key == "neg" or (field.this.key != "extract" and field.this.args.get("expression") is not None):
            raise NotSupportedError("PIVOT by a condition is not supported", span=span_of(field), hint="(x + 1) IN (2)")
        found: dict[str, Expression] = {}
        for item in field.expressions:
            tree, alias = alias_of(item)
            value = self.binder.bind(tree)
            if not isinstance(value, Literal):
                raise NotSupportedError("PIVOT wants constants", span=span_of(tree))
            self.context.consume(value)
            if value.value is None:
                name, condition = "NULL", _null(column)
            else:
                name = _spelled(value) or "''"
                condition = compare(self.context, "=", column, value)
            name = alias or name
            if name in found:
                raise BindError(f"a value is there twice: {name}", span=span_of(item))
            found[name] = condition
        return list(found.items())

    def _found(self, column: Expression, field: Any) -> list[Condition]:
        """The values that there are, as texts, and in their order: a query of its own finds them while this one is bound."""
        value = cast(self.context, column, VARCHAR)
        rows = where(self.plan, [Not(BOOLEAN, IsNull(BOOLEAN, value))])
        values = Aggregate((("value", VARCHAR),), rows, (value,), ())
        order = SortKey(Column(VARCHAR, 0, "value"), False, False)
        return self._named(value, Sort(values.columns, values, (order,)), field)

    def _listed(self, column: Expression, field: Any) -> list[Condition]:
        """The values of IN (SELECT ...)."""
        plan = self.query.subquery(field.args["query"], Enclosing(self.scope))[0]
        if len(plan.columns) != 1:
            raise BindError(f"PIVOT ... IN (SELECT ...) wants one column, not {len(plan.columns)}", span=span_of(field))
        name, type_ = plan.columns[0]
        texts = Project(((name, VARCHAR),), plan, (cast(self.context, Column(type_, 0, name), VARCHAR),))
        return self._named(cast(self.context, column, VARCHAR), texts, field)

    def _named(self, value: Expression, plan: Node, field: Any) -> list[Condition]:
        context = self.context
        if context.open_views:
            raise NotSupportedError("PIVOT without its values in a view is not supported", span=span_of(field))
        context.volatile = True  # other rows, other columns
        names = dict.fromkeys(context.catalog.values_of(spelled_out(context, plan), context.raw_values()))
        if len(names) > MOST_VALUES:
            raise BindError(f"PIVOT finds {len(names)} values: more than {MOST_VALUES} columns", span=span_of(field))
        return [
            ("NULL", _null(value))
            if name is None
            else (name or "''", compare(context, "=", value, Literal(VARCHAR, name)))
            for name in names
        ]

    def _keys(self, read: set[int]) -> list[Expression]:
        """The columns named, else all that neither the aggregates nor the values are of."""
        group = self.node.args.get("group")
        if group is not None:
            return [self.binder.bind(key) for key in group.expressions]
        keys: dict[Expression, Expression] = {}
        for index in self.scope.visible(""):
            name, type_ = self.scope.columns[index]
            if index not in read:
                keys.setdefault(by_value(Column(type_, index, name)), Column(type_, index, name))
        return list(keys.values())


def _null(value: Expression) -> Expression:
    return IsNull(BOOLEAN, value)


def _spelled(literal: Literal) -> str:
    """A constant as CAST(... AS VARCHAR) prints it."""
    type_, value = literal.type, literal.value
    if type_.kind == "DECIMAL":
        value = Decimal(value).scaleb(-type_.scale)
    elif type_.is_temporal:
        value = pa.scalar(value, pa.int32() if type_.kind == "DATE" else pa.int64()).cast(type_.arrow).as_py()
    return str(print_values(pa.array([value], type_.arrow), type_)[0].as_py())


def _of_rows(expression: Expression, rows: list[Expression]) -> Expression:
    """The expression with its aggregates over these rows only."""

    def narrowed(part: Expression) -> Expression:
        if not isinstance(part, AggregateCall):
            return part
        return replace(part, filter=conjunction((*conjuncts(part.filter), *rows)))

    return expression.transform(narrowed)


def _unpivoted(query: RelationBinder, plan: Node, scope: Scope, node: Any) -> Node:
    """Rows in their order, each with its columns in the order in which these are written; NULLs are left out."""
    span = span_of(node)
    if node.args.get("fields"):
        (field,) = node.args["fields"]
        name, trees, values = field.this, field.expressions, node.expressions
    else:
        into = node.args.get("into")
        name, trees = (into.this if into is not None else None), node.expressions
        values = into.expressions if into is not None else []
    if len(values) > 1 or any(value.key == "tuple" for value in values):
        raise NotSupportedError("UNPIVOT into several columns is not supported", span=span)
    chosen: list[tuple[str, Column]] = []
    there = [scope.columns[index][0] for index in scope.visible("")]
    for tree in trees:
        inner, alias = alias_of(tree)
        if inner.key != "column":
            raise NotSupportedError("UNPIVOT of what is no column is not supported", span=span_of(tree) or span)
        column = scope.find(plain(inner.name), plain(inner.table) or None, span_of(inner))
        if column is None:
            raise not_found("column", plain(inner.name), there, span_of(inner))
        chosen.append((alias or column.name, column))
    type_ = common_type(query.context, [column for _, column in chosen])
    if type_ is None or len({column.type.is_text for _, column in chosen}) > 1:
        shown = ", ".join(dict.fromkeys(str(column.type) for _, column in chosen))
        raise BindError(f"columns have no common type: {shown}", span=span, hint="cast them to one type")
    names = Values(
        (("number", INTEGER), ("name", VARCHAR)),
        tuple((Literal(INTEGER, k), Literal(VARCHAR, called)) for k, (called, _) in enumerate(chosen)),
    )
    width = len(plan.columns)
    both = Join((*plan.columns, *names.columns), plan, names, "inner", (), None, tuple(range(width + 2)))
    number, called = columns_of(names, width)
    conditions = tuple(Comparison(BOOLEAN, "=", number, Literal(INTEGER, k)) for k in range(len(chosen)))
    results = tuple(cast(query.context, column, type_) for _, column in chosen)
    value = Case(type_, conditions[:-1], results[:-1], results[-1]) if len(chosen) > 1 else results[0]
    taken = {column.index for _, column in chosen}
    kept = [index for index in scope.visible("") if index not in taken]
    columns: list[OutputColumn] = [scope.columns[index] for index in kept]
    outputs: list[Expression] = [Column(kind, index, text) for index, (text, kind) in zip(kept, columns, strict=True)]
    columns += [(plain(name.name) if name is not None else "name", VARCHAR)]
    columns += [(plain(values[0].name) if values else "value", type_)]
    rows = Project(tuple(columns), both, (*outputs, called, value))
    if node.args.get("include_nulls"):
        return rows
    return where(rows, [Not(BOOLEAN, IsNull(BOOLEAN, columns_of(rows)[-1]))])
