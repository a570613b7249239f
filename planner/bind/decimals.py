"""Functions of DECIMAL that are written with casts, comparisons and CASE: abs, sign, round, floor, ceil, trunc."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpudb.errors import NotSupportedError
from gpudb.planner.bind.casts import cast
from gpudb.planner.bind.operators import arithmetic, compare, negate
from gpudb.planner.expressions import Case, Expression, Literal, Span
from gpudb.types import INTEGER, TINYINT, SqlType, decimal

if TYPE_CHECKING:
    from gpudb.planner.bind.expressions import ExpressionBinder

_NAMES = {
    "abs": "abs",
    "@": "abs",
    "sign": "sign",
    "round": "round",
    "floor": "floor",
    "ceil": "ceil",
    "ceiling": "ceil",
}
_NAMES["trunc"] = "trunc"


def decimal_call(
    binder: ExpressionBinder, name: str, arguments: list[Expression], span: Span | None
) -> Expression | None:
    """The call over a DECIMAL argument; None where the registry has it.

    abs keeps the type, sign is TINYINT, the others give DECIMAL(p, 0), round(x, n) gives DECIMAL(p, n).
    """
    name = _NAMES.get(name, "")
    if not name or not arguments or arguments[0].type.kind != "DECIMAL":
        return None
    value = arguments[0]
    if len(arguments) == 2 and name == "round":
        return _round_to(binder, value, arguments[1], span)
    if len(arguments) != 1:
        return None
    if name == "abs":
        below = compare(binder.context, "<", value, _number(0))
        return Case(value.type, (below,), (negate(binder.context, value, value.span),), value, span=span)
    if name == "sign":
        return _sign(binder, value, span)
    if name == "round":
        return cast(binder.context, value, decimal(value.type.precision, 0))
    return _whole(binder, name, value, span)


def _number(value: int, type_: SqlType = INTEGER) -> Literal:
    return Literal(type_, value)


def _sign(binder: ExpressionBinder, value: Expression, span: Span | None) -> Expression:
    """-1, 0 or 1; NULL of NULL, since then no branch holds."""
    conditions = tuple(compare(binder.context, operator, value, _number(0)) for operator in ("<", "=", ">"))
    results = (_number(-1, TINYINT), _number(0, TINYINT), _number(1, TINYINT))
    return Case(TINYINT, conditions, results, Literal(TINYINT, None), span=span)


def _round_to(binder: ExpressionBinder, value: Expression, places: Expression, span: Span | None) -> Expression:
    """round(x, n) for a constant n of 0 or more, which the plan consumes."""
    if not isinstance(places, Literal) or not places.type.is_integer or places.value is None or places.value < 0:
        raise NotSupportedError("round of a DECIMAL wants a constant number of places from 0 on", span=span)
    binder.context.consume(places)
    if places.value >= value.type.scale:
        return value
    return cast(binder.context, value, decimal(value.type.precision, places.value))


def _whole(binder: ExpressionBinder, name: str, value: Expression, span: Span | None) -> Expression:
    """floor, ceil and trunc: the rounded number, one less or more where it passed the value."""
    if value.type.scale == 0:
        return value
    context = binder.context
    target = decimal(value.type.precision, 0)
    rounded = cast(context, value, target)

    def corrected(operator: str, step: str) -> Expression:
        passed = compare(context, operator, rounded, value)
        moved = cast(context, arithmetic(context, step, rounded, _number(1)), target)
        return Case(target, (passed,), (moved,), rounded, span=span)

    if name == "floor":
        return corrected(">", "subtract")
    if name == "ceil":
        return corrected("<", "add")
    negative = compare(context, "<", value, _number(0))
    return Case(target, (negative,), (corrected("<", "add"),), corrected(">", "subtract"), span=span)
