"""WITH RECURSIVE: a CTE whose query is a UNION of first rows and of a step over the rows that were new before."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpudb.errors import BindError, NotSupportedError
from gpudb.planner.bind.casts import cast, castable
from gpudb.planner.bind.context import Context, span_of
from gpudb.planner.bind.set_operations import distinct
from gpudb.planner.expressions import Column
from gpudb.planner.logical import Given, Node, OutputColumn, Project, Recursive, SetOperation
from gpudb.planner.tokens import plain
from gpudb.types import INTEGER

if TYPE_CHECKING:
    from gpudb.planner.bind.relations import CommonTable


def mentions(query: Any, name: str) -> bool:
    """Whether a table of this name stands somewhere in a query."""
    return any(
        part.key == "table"
        and part.this.key == "identifier"
        and part.args.get("db") is None
        and plain(part.name).lower() == name.lower()
        for part in query.walk()
    )


def recursive_plan(context: Context, common: CommonTable) -> Node:
    """The plan of a recursive CTE.  Its columns have the types of the first rows."""
    from gpudb.planner.bind.query import QueryBinder
    from gpudb.planner.bind.relations import CommonTable, unique_columns

    query = common.query
    span = span_of(query)
    if query.key != "union" or query.args.get("by_name"):
        raise BindError(f"a recursive CTE wants UNION or UNION ALL: {common.name}", span=span)
    for part in ("order", "limit", "offset"):
        if query.args.get(part) is not None:
            raise NotSupportedError(
                f"{part.upper()} of a recursive UNION is not supported", span=span_of(query.args[part])
            )
    if mentions(query.this, common.name):
        raise BindError(
            f"only the last part of its UNION may name a recursive CTE: {common.name}", span=span_of(query.this)
        )
    is_distinct = bool(query.args.get("distinct"))
    first = unique_columns(context, QueryBinder(context, common.visible).bind(query.this))
    if len(common.columns) > len(first.columns):
        raise BindError(f"more column names than columns: {len(common.columns)}, {len(first.columns)}", span=span)
    names = (*common.columns, *(name for name, _ in first.columns[len(common.columns) :]))
    columns = tuple(
        (name, INTEGER if type_.kind == "NULL" else type_)
        for name, (_, type_) in zip(names, first.columns, strict=True)
    )
    first = _cast(context, first, columns, span)
    number = context.recursions
    table = CommonTable(common.name, None, (), {}, plan=Given(columns, number))
    context.recursions += 1
    try:
        step = QueryBinder(context, {**common.visible, common.name.lower(): table}).bind(query.expression)
    finally:
        context.recursions -= 1
    if len(step.columns) != len(columns):
        raise BindError(
            f"parts of a recursive CTE have different numbers of columns: {len(columns)}, {len(step.columns)}",
            span=span_of(query.expression),
        )
    step = _cast(context, step, columns, span_of(query.expression))
    if is_distinct:
        first = distinct(first)
        step = SetOperation(columns, "except", False, step, Given(columns, number, whole=True))
    return Recursive(columns, first, step, number, is_distinct)


def _cast(context: Context, plan: Node, columns: tuple[OutputColumn, ...], span: Any) -> Node:
    """The plan with the names and types of `columns`."""
    if all(old == new for (_, old), (_, new) in zip(plan.columns, columns, strict=True)):
        return replace(plan, columns=columns)
    for (name, old), (_, new) in zip(plan.columns, columns, strict=True):
        if not castable(old, new):
            raise BindError(f"cannot cast {old} to {new}, the type of the first rows: {name}", span=span)
    expressions = tuple(
        cast(context, Column(old, index, name), new)
        for index, ((name, old), (_, new)) in enumerate(zip(plan.columns, columns, strict=True))
    )
    return Project(columns, plan, expressions)
