"""Expressions of literals alone: computed once an execution, by a program of one row, and literals to the plan's own program.

`DATE '1994-01-01' + INTERVAL 1 YEAR` is the same in every row, but depends on literals that differ where the plan is used
again.  As a literal it can end a range that zone maps and stored values are tested against.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpudb.planner.expressions import AggregateCall, Column, Expression, Literal, WindowCall
from gpudb.planner.logical import Node, Project, Scan, Values
from gpudb.planner.rules.rewriting import bottom_up, map_expressions


def constant_parts(plan: Node) -> tuple[Expression, ...]:
    """The largest expressions of literals in a plan over tables, each once; none of text or INTERVAL."""
    parts: dict[Expression, None] = {}

    def look(expression: Expression) -> Expression:
        if _is_computed(expression):
            parts[expression] = None
        else:
            for child in expression.children():
                look(child)
        return expression

    has_rows = False
    stack = [plan]
    while stack:
        node = stack.pop()
        has_rows = has_rows or isinstance(node, Scan)
        map_expressions(node, look)
        stack += node.inputs()
    return tuple(parts) if has_rows else ()


def one_row(parts: Sequence[Expression]) -> Node:
    """The plan whose one row has the values of such expressions."""
    columns = tuple((f"{number}", part.type) for number, part in enumerate(parts))
    return Project(columns, Values((), ((),)), tuple(parts))


def with_values(plan: Node, parts: Sequence[Expression], values: Sequence[Any], first_slot: int) -> Node:
    """The plan with literals in place of the expressions: their values, in the slots from `first_slot` on."""
    literals: dict[Expression, Literal] = {
        part: Literal(part.type, value, first_slot + number, span=part.span)
        for number, (part, value) in enumerate(zip(parts, values, strict=True))
    }
    return bottom_up(plan, lambda node: map_expressions(node, lambda expression: expression.replaced(literals)))


def _is_computed(expression: Expression) -> bool:
    """Is it made of literals, of which some are parameters of the plan?"""
    kind = expression.type
    if (
        isinstance(expression, Literal | Column | AggregateCall | WindowCall)
        or kind.is_text
        or kind.kind in ("INTERVAL", "NULL")
    ):
        return False
    parts = list(expression.walk())
    if any(isinstance(part, Column | AggregateCall | WindowCall) for part in parts):
        return False
    return any(isinstance(part, Literal) and part.slot is not None for part in parts)
