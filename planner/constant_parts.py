"""Expressions of literals alone: computed once an execution, by a program of one row, and literals to the plan's own program.

`DATE '1994-01-01' + INTERVAL 1 YEAR` is the same in every row, but depends on literals that differ where the plan is used
again.  As a literal it can end a range that zone maps and stored values are tested against.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gpudb.planner.expressions import AggregateCall, Call, Column, Expression, Literal, WindowCall
from gpudb.planner.logical import Node, Project, Scan, Values
from gpudb.planner.rules.rewriting import bottom_up, map_expressions


def constant_parts(plan: Node) -> tuple[Expression, ...]:
    """The largest expressions of literals in a plan over tables, each once; none of text or INTERVAL."""
    parts: dict[Expression, None] = {}

    def look(expression: Expression) -> Expression:
        parts.update(dict.fromkeys(_look(expression).parts))
        return expression

    has_rows = False
    seen: set[int] = set()  # by identity: a part may stand in a plan many times
    stack = [plan]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
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


def _calls_anew(expression: Expression) -> bool:
    return isinstance(expression, Call) and expression.overload is not None and expression.overload.side_effects


class _Found(NamedTuple):
    """Is an expression made of literals, are some of them parameters of the plan, and its largest parts that are both."""

    constant: bool
    computed: bool
    parts: tuple[Expression, ...]


def _look(expression: Expression) -> _Found:
    if isinstance(expression, Literal):
        return _Found(True, expression.slot is not None, ())
    if isinstance(expression, Column):
        return _Found(False, False, ())
    inner = [_look(child) for child in expression.children()]
    constant = (
        not isinstance(expression, AggregateCall | WindowCall)
        and not _calls_anew(expression)
        and all(found.constant for found in inner)
    )
    computed = any(found.computed for found in inner)
    if constant and computed and not (expression.type.is_coded or expression.type.kind in ("INTERVAL", "NULL")):
        return _Found(True, True, (expression,))
    return _Found(constant, computed, tuple(part for found in inner for part in found.parts))
