"""INTERSECT and EXCEPT as one GROUP BY: over the rows of both sides, counted apart."""

from __future__ import annotations

from gpudb.planner.expressions import AggregateCall, Column, Comparison, Expression, Literal, Not, conjunction
from gpudb.planner.logical import Aggregate, Filter, Node, OutputColumn, Project, SetOperation, UnionAll
from gpudb.types import BIGINT, BOOLEAN


def both_sides(node: SetOperation) -> UnionAll:
    """The rows of both sides, with one more column: whether it is a row of the left one."""
    columns: tuple[OutputColumn, ...] = (*node.columns, ("left", BOOLEAN))
    branches = tuple(
        Project(columns, side, (*_columns(side.columns), Literal(BOOLEAN, is_left)))
        for side, is_left in ((node.left, True), (node.right, False))
    )
    return UnionAll(columns, branches)


def counted_groups(node: SetOperation) -> Node:
    """The distinct rows that the result holds, with two more columns: how often each is on the left, and on the right."""
    width = len(node.columns)
    is_left = Column(BOOLEAN, width, "left")
    counts = tuple(
        AggregateCall(BIGINT, "count_star", (), filter=condition) for condition in (is_left, Not(BOOLEAN, is_left))
    )
    columns: tuple[OutputColumn, ...] = (*node.columns, ("left rows", BIGINT), ("right rows", BIGINT))
    groups = Aggregate(columns, both_sides(node), _columns(node.columns), counts)
    return Filter(columns, groups, _condition(node))


def _condition(node: SetOperation) -> Expression:
    """Which groups are in the result, by their counts."""
    width = len(node.columns)
    left, right = Column(BIGINT, width, "left rows"), Column(BIGINT, width + 1, "right rows")
    none = Literal(BIGINT, 0)
    if node.kind == "intersect":
        terms = [Comparison(BOOLEAN, ">", left, none), Comparison(BOOLEAN, ">", right, none)]
    elif node.all:
        terms = [Comparison(BOOLEAN, ">", left, right)]
    else:
        terms = [Comparison(BOOLEAN, "=", right, none)]
    condition = conjunction(tuple(terms))
    assert condition is not None, "there are terms"
    return condition


def _columns(columns: tuple[OutputColumn, ...]) -> tuple[Column, ...]:
    return tuple(Column(type_, index, name) for index, (name, type_) in enumerate(columns))
