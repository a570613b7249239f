"""UNNEST: a row for each element of a list, beside the others of its row.

The binder of expressions leaves an `Unnest` where one stands in a select list.  When the plan below the list is known, its
rows are repeated as often as the longest of the lists has elements, and what an element is takes the place, NULL behind the
end of a shorter list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpudb.errors import BindError
from gpudb.planner.bind.context import join_spans
from gpudb.planner.bind.lists import counted_by, element_at, length
from gpudb.planner.expressions import Case, Column, Comparison, Expression, IsNull, Literal, Span
from gpudb.planner.logical import Node, Project, Unnested, Values
from gpudb.planner.tokens import plain
from gpudb.record import record
from gpudb.types import BIGINT, BOOLEAN, NULL

if TYPE_CHECKING:
    from gpudb.planner.bind.expressions import ExpressionBinder

CLAUSES = ("SELECT", "ORDER BY", "GROUP BY")
"""Where an UNNEST may stand."""

_COUNTS = {
    "range": "CASE WHEN s > 0 AND a < b THEN (b - a + s - 1) // s WHEN s < 0 AND a > b THEN (a - b - s - 1) // -s ELSE 0 END",
    "generate_series": "CASE WHEN s > 0 AND a <= b OR s < 0 AND a >= b THEN (b - a) // s + 1 ELSE 0 END",
}


@record
class Turn(Expression):
    """The number, from 0, of an element in its list."""


TURN = Turn(BIGINT)


@record
class Unnest(Expression):
    """An element of a list.

    count  how many elements the list has: BIGINT, NULL of no list
    value  the element, over TURN
    """

    count: Expression
    value: Expression


def contains_unnest(expression: Expression) -> bool:
    """Whether an UNNEST occurs in a bound expression."""
    return any(isinstance(part, Unnest) for part in expression.walk())


def bind_unnest(binder: ExpressionBinder, node: Any, place: Span | None) -> Expression:
    """UNNEST(list)."""
    if binder.clause not in CLAUSES:
        raise BindError(f"UNNEST is not allowed in {binder.clause}", span=place)
    if len(node.expressions) != 1:
        raise BindError("UNNEST wants one list", span=place)
    (given,) = node.expressions
    name = plain(str(given.this)).lower() if given.key == "anonymous" else ""
    if name in _COUNTS:  # without the list
        arguments = [binder.bind(argument) for argument in given.expressions]
        span = join_spans(place, *(argument.span for argument in arguments))
        found = _of_series(binder, name, arguments, span)
    else:
        value = binder.bind(given)
        span = join_spans(place, value.span)
        found = _of_list(value, span)
    if any(contains_unnest(part) for part in (found.count, found.value)):
        raise BindError("UNNEST does not nest", span=span)
    return found


def _of_list(value: Expression, span: Span | None) -> Unnest:
    if value.type.kind == "NULL":
        return Unnest(NULL, Literal(BIGINT, None), Literal(NULL, None), span=span)
    if value.type.child is None:
        raise BindError(f"UNNEST wants a list, not {value.type}", span=span)
    return Unnest(value.type.child, length(value, span), element_at(value, TURN, span), span=span)


def _of_series(binder: ExpressionBinder, name: str, arguments: list[Expression], span: Span | None) -> Unnest:
    """UNNEST(range([start,] stop [, step])) of whole numbers, which may be values of the row."""
    from gpudb.planner.bind.functions import expand

    start, stop, step = counted_by(binder, name, arguments, span)
    if len(arguments) == 1 and name == "range":
        return Unnest(BIGINT, expand(binder, (("b",), "greatest(b, 0)"), [stop], span), TURN, span=span)
    count = expand(binder, (("a", "b", "s"), _COUNTS[name]), [start, stop, step], span)
    value = expand(binder, (("a", "i", "s"), "a + i * s"), [start, TURN, step], span)
    return Unnest(BIGINT, count, value, span=span)


def unnested(plan: Node, expressions: Sequence[Expression]) -> tuple[Node, list[Expression]]:
    """(the plan with its rows repeated for the UNNESTs in the expressions, the expressions over that)."""
    found = list(dict.fromkeys(part for one in expressions for part in one.walk() if isinstance(part, Unnest)))
    if not found:
        return plan, list(expressions)
    times: Expression = found[0].count
    for other in found[1:]:  # a list that is NULL counts as one without elements
        larger = Comparison(BOOLEAN, ">", other.count, times)
        times = Case(BIGINT, (IsNull(BOOLEAN, times), larger), (other.count, other.count), times)
    rows = Unnested.of(plan, times)
    turn = Column(BIGINT, len(plan.columns), rows.columns[-1][0])

    def placed(part: Expression) -> Expression:
        if isinstance(part, Turn):
            return turn
        if not isinstance(part, Unnest):
            return part
        if len(found) == 1:
            return part.value
        there = Comparison(BOOLEAN, "<", turn, part.count)
        return Case(part.type, (there,), (part.value,), Literal(part.type, None), span=part.span)

    return rows, [expression.transform(placed) for expression in expressions]


def unnested_relation(binder: ExpressionBinder, node: Any, place: Span | None) -> Node:
    """UNNEST(list) in FROM: one column."""
    value = bind_unnest(binder, node, place)
    plan, values = unnested(Values((), ((),)), [value])
    return Project((("unnest", value.type),), plan, tuple(values))


def may_depend(node: Any) -> bool:
    """May what stands in FROM look at the relations before it?"""
    unnest = node.key == "table" and node.this.key == "anonymous" and plain(str(node.this.this)).lower() == "unnest"
    return unnest or node.key in ("subquery", "lateral")
