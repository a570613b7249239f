"""UNION, INTERSECT and EXCEPT: branches get the same columns, by position or by name; and DISTINCT."""

from __future__ import annotations

from typing import Any

from gpudb.errors import BindError
from gpudb.planner.bind.casts import cast, union_type
from gpudb.planner.bind.context import Context, span_of
from gpudb.planner.expressions import AggregateCall, Column, Expression, Literal, Span
from gpudb.planner.logical import Aggregate, Node, OutputColumn, Project, SetOperation, UnionAll
from gpudb.types import NULL


def combined(context: Context, node: Any, left: Node, right: Node) -> Node:
    """The plan of a set operation over the plans of its branches.  `node` is a sqlglot Union, Intersect or Except."""
    operation = node.key.upper()
    span = span_of(node.expression)
    if node.args.get("by_name"):
        left, right = matched_by_name(left, right, (span_of(node.this), span))
    if len(left.columns) != len(right.columns):
        raise BindError(
            f"branches of {operation} have different numbers of columns: {len(left.columns)}, {len(right.columns)}",
            span=span,
        )
    columns: list[OutputColumn] = []
    for (name, one), (other_name, other) in zip(left.columns, right.columns, strict=True):
        type_ = union_type(one, other)
        if type_ is None:
            raise BindError(
                f"columns of {operation} have no common type: {name} {one}, {other_name} {other}", span=span
            )
        columns.append((name, type_))
    left, right = (converted(context, branch, tuple(columns)) for branch in (left, right))
    is_distinct = bool(node.args.get("distinct"))
    if node.key != "union":
        return SetOperation(tuple(columns), node.key, not is_distinct, left, right)
    branches = [branch.branches if isinstance(branch, UnionAll) else (branch,) for branch in (left, right)]
    plan = UnionAll(tuple(columns), (*branches[0], *branches[1]))
    return distinct(plan) if is_distinct else plan


def matched_by_name(left: Node, right: Node, spans: tuple[Span | None, Span | None]) -> tuple[Node, Node]:
    """Both plans with the columns of either, the left one's first; NULL where a branch lacks one."""
    names: dict[str, str] = {}
    for plan, span in zip((left, right), spans, strict=True):
        seen: set[str] = set()
        for name, _ in plan.columns:
            if name.lower() in seen:
                raise BindError(f"UNION BY NAME wants names that differ, there are two of {name}", span=span)
            seen.add(name.lower())
            names.setdefault(name.lower(), name)
    plans = []
    for plan in (left, right):
        places = {name.lower(): (index, type_) for index, (name, type_) in enumerate(plan.columns)}
        columns: list[OutputColumn] = []
        expressions: list[Expression] = []
        for key, name in names.items():
            index, type_ = places.get(key, (-1, NULL))
            columns.append((name, type_))
            expressions.append(Column(type_, index, name) if index >= 0 else Literal(NULL, None))
        plans.append(Project(tuple(columns), plan, tuple(expressions)))
    return plans[0], plans[1]


def converted(context: Context, plan: Node, columns: tuple[OutputColumn, ...]) -> Node:
    """The plan with its columns cast to the types of `columns`."""
    if all(old == new for (_, old), (_, new) in zip(plan.columns, columns, strict=True)):
        return plan
    expressions = tuple(
        cast(context, Column(old, index, name), new)
        for index, ((name, old), (_, new)) in enumerate(zip(plan.columns, columns, strict=True))
    )
    return Project(columns, plan, expressions)


def distinct(plan: Node) -> Node:
    """Each row once, at the place of its first occurrence."""
    keys = tuple(Column(type_, index, name) for index, (name, type_) in enumerate(plan.columns))
    return Aggregate(plan.columns, plan, keys, ())


def first_of_each(plan: Node, chosen: list[int], width: int) -> Node:
    """The first row of each combination of the chosen columns, in order of these rows; the first `width` columns of it."""
    keys = tuple(Column(type_, index, name) for index, (name, type_) in enumerate(plan.columns) if index in set(chosen))
    places = {key.index: position for position, key in enumerate(keys)}
    others = [index for index in range(width) if index not in places]
    calls: list[AggregateCall] = []
    for index in others:
        places[index] = len(keys) + len(calls)
        name, type_ = plan.columns[index]
        calls.append(AggregateCall(type_, "first", (Column(type_, index, name),)))
    columns = tuple((key.name, key.type) for key in keys) + tuple(plan.columns[index] for index in others)
    groups = Aggregate(columns, plan, keys, tuple(calls))
    visible = plan.columns[:width]
    return Project(
        visible, groups, tuple(Column(type_, places[index], name) for index, (name, type_) in enumerate(visible))
    )
