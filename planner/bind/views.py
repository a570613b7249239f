"""Views: the plan of a view's query, as part of another statement's plan."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from gpudb.catalog import View
from gpudb.errors import BindError, Error
from gpudb.planner.bind.context import Context
from gpudb.planner.expressions import Expression, Literal, Span
from gpudb.planner.logical import Node, SlotName, SortKey
from gpudb.planner.parse import on_a_big_stack, parse


def view_plan(context: Context, view: View, span: Span | None) -> Node:
    """The plan of the view's query; its literals are constants, and errors in it stand at `span`, where the view is named."""
    key = view.name.lower()
    if key in context.open_views:
        raise BindError(f"view refers to itself: {view.name}", span=span)
    context.tables.add(key)
    try:
        return own_plan(context, view)
    except Error as error:
        raise type(error)(f"view {view.name}: {error.message}", span=span, hint=error.hint) from error


def own_plan(context: Context, view: View) -> Node:
    """`view_plan` whose errors stand in the view's query."""
    from gpudb.planner.bind.query import QueryBinder
    from gpudb.planner.bind.relations import unique_columns

    parsed = parse(view.sql)
    if parsed.parameters:
        raise BindError("a view takes no parameters").attach_sql(view.sql)
    inner = Context(
        parsed, context.catalog, settings=context.settings, open_views=(*context.open_views, view.name.lower())
    )

    def run() -> Node:
        plan = unique_columns(inner, QueryBinder(inner).bind(parsed.tree))
        if len(view.columns) > len(plan.columns):
            raise BindError(f"more column names than columns: {len(view.columns)}, {len(plan.columns)}")
        names = (*view.columns, *(name for name, _ in plan.columns[len(view.columns) :]))
        columns = tuple((name, type_) for name, (_, type_) in zip(names, plan.columns, strict=True))
        node: Node = constant(replace(plan, columns=columns))
        return node

    try:
        plan = on_a_big_stack(run) if parsed.deep else run()
    except Error as error:
        error.attach_sql(view.sql)
        raise
    context.tables |= inner.tables
    context.volatile |= inner.volatile
    return plan


def constant(value: Any) -> Any:
    """A part of a plan without slots and places: both belong to the text of another statement."""
    match value:
        case Literal():
            return Literal(value.type, value.value)
        case Node() | Expression() | SortKey():
            changes: dict[str, Any] = {}
            for item in fields(value):
                old = getattr(value, item.name)
                if isinstance(old, (tuple, Node, Expression, SortKey)):
                    new = None if item.name == "span" else constant(old)
                    if new is not old:
                        changes[item.name] = new
            return replace(value, **changes) if changes else value
        case SlotName():
            return str(value)
        case tuple():
            parts = tuple(map(constant, value))
            return value if all(a is b for a, b in zip(parts, value, strict=True)) else parts
    return value
