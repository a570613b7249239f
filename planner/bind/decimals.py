"""Functions of DECIMAL that are written with casts, comparisons and CASE: abs, sign, round, floor, ceil, trunc."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpudb.errors import BindError, NotSupportedError
from gpudb.planner.bind.casts import cast
from gpudb.planner.bind.operators import arithmetic, compare, negate
from gpudb.planner.constants import cast_constant
from gpudb.planner.expressions import Call, Case, Expression, IsNull, Literal, Span
from gpudb.types import BOOLEAN, HUGEINT, INTEGER, NULL, TINYINT, SqlType, decimal

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

    abs keeps the type, sign is TINYINT, the others give DECIMAL(p, 0); round(x, n) and trunc(x, n) give DECIMAL(p, n), and
    DECIMAL(p, 0) for n below 0.
    """
    name = _NAMES.get(name, "")
    if not name or not arguments:
        return None
    value = arguments[0]
    if value.type == HUGEINT and len(arguments) == 2 and name in ("round", "trunc"):
        return _huge_to_tens(binder, name, value, arguments[1], span)
    if value.type.kind != "DECIMAL":
        return None
    if len(arguments) == 2 and name in ("round", "trunc"):
        return _to_places(binder, name, value, arguments[1], span)
    if len(arguments) != 1:
        return None
    if name == "abs":
        below = compare(binder.context, "<", value, _number(0))
        return Case(value.type, (below,), (negate(binder.context, value, value.span),), value, span=span)
    if name == "sign":
        return _sign(binder, value, span)
    if name == "round":
        return cast(binder.context, value, decimal(value.type.precision, 0))
    return _whole(binder, name, value, decimal(value.type.precision, 0), span)


def _number(value: int, type_: SqlType = INTEGER) -> Literal:
    return Literal(type_, value)


def _sign(binder: ExpressionBinder, value: Expression, span: Span | None) -> Expression:
    """-1, 0 or 1; NULL of NULL, since then no branch holds."""
    conditions = tuple(compare(binder.context, operator, value, _number(0)) for operator in ("<", "=", ">"))
    results = (_number(-1, TINYINT), _number(0, TINYINT), _number(1, TINYINT))
    return Case(TINYINT, conditions, results, Literal(TINYINT, None), span=span)


def _to_places(
    binder: ExpressionBinder, name: str, value: Expression, places: Expression, span: Span | None
) -> Expression:
    """round(x, n) and trunc(x, n) for a constant n, which the plan consumes."""
    number = _places(binder, name, value, places, span)
    if number is None:
        return Literal(NULL, None, span=span)
    if number >= value.type.scale > 0 or number >= 0 == value.type.scale:
        return value
    if number >= 0:
        return _cut(binder, name, value, decimal(value.type.precision, number), span)
    return _to_tens(binder, name, value, -number, span)


def _places(
    binder: ExpressionBinder, name: str, value: Expression, places: Expression, span: Span | None
) -> int | None:
    """A constant number of places."""
    if not isinstance(places, Literal):
        raise NotSupportedError(f"{name} of {value.type} wants a constant number of places", span=places.span or span)
    if not (places.type.is_integer or places.type.kind == "NULL" or (places.type.is_text and places.slot is not None)):
        raise BindError(f"{name} wants a whole number of places, not {places.type}", span=places.span or span)
    binder.context.consume(places)
    found: int | None = cast_constant(places.value, places.type, INTEGER)
    return found


def _huge_to_tens(
    binder: ExpressionBinder, name: str, value: Expression, places: Expression, span: Span | None
) -> Expression:
    """A HUGEINT to a multiple of 10**-places: halves go away from zero, or what is less than one is cut."""
    number = _places(binder, name, value, places, span)
    if number is None:
        return Literal(NULL, None, span=span)
    if number >= 0:
        return value
    if number < -38:
        return Case(HUGEINT, (IsNull(BOOLEAN, value),), (Literal(HUGEINT, None),), Literal(HUGEINT, 0), span=span)
    unit = Literal(HUGEINT, 10**-number)
    quotient = Call(HUGEINT, "integer_divide", (value, unit), span=span)
    if name == "round":
        rest = Call(HUGEINT, "modulo", (value, unit), span=span)
        half = 10**-number // 2
        ends = (compare(binder.context, o, rest, Literal(HUGEINT, h)) for o, h in ((">=", half), ("<=", -half)))
        step = Case(HUGEINT, tuple(ends), (Literal(HUGEINT, 1), Literal(HUGEINT, -1)), Literal(HUGEINT, 0))
        quotient = Call(HUGEINT, "add", (quotient, step), span=span)
    return Call(HUGEINT, "multiply", (quotient, unit), span=span)


def _cut(binder: ExpressionBinder, name: str, value: Expression, target: SqlType, span: Span | None) -> Expression:
    """The value with the target's places: rounded, or cut towards zero."""
    return cast(binder.context, value, target) if name == "round" else _whole(binder, "trunc", value, target, span)


def _to_tens(binder: ExpressionBinder, name: str, value: Expression, tens: int, span: Span | None) -> Expression:
    """To a multiple of 10**tens: times 10**-tens, which is exact, cut to a whole number, times 10**tens.

    Past the type's whole digits everything is 0, as in DuckDB: round(60.0::DECIMAL(3,1), -2) is 100, to -3 it is 0.
    """
    type_ = value.type
    # Rounding 9.9 up needs no further digit where the type has decimals, whose digits become whole ones.
    grows = name == "round" and type_.scale == 0 and tens <= type_.precision
    target = decimal(min(38, type_.precision + grows), 0)
    if tens > type_.precision - type_.scale:
        return Case(target, (IsNull(BOOLEAN, value),), (Literal(target, None),), Literal(target, 0), span=span)
    if type_.precision + tens > 38:
        whole = cast(binder.context, _whole(binder, "trunc", value, decimal(type_.precision, 0), span), HUGEINT)
        return cast(binder.context, _huge_to_tens(binder, name, whole, Literal(INTEGER, -tens), span), target)
    small_type = decimal(type_.precision + tens, type_.scale + tens)
    small = Call(small_type, "multiply", (value, Literal(decimal(tens, tens), 1)), span=span)
    cut = _cut(binder, name, small, target, span)
    return Call(target, "multiply", (cut, Literal(decimal(tens + 1, 0), 10**tens)), span=span)


def _whole(binder: ExpressionBinder, name: str, value: Expression, target: SqlType, span: Span | None) -> Expression:
    """floor, ceil and trunc to the target's places: the rounded number, one unit less or more where it passed the value."""
    if value.type.scale == target.scale:
        return value
    context = binder.context
    unit = Literal(decimal(target.scale + 1, target.scale), 1)
    if value.type.precision > 18:  # a rounded number may be more than the digits hold that a comparison wants
        rest = Call(value.type, "modulo", (value, Literal(value.type, 10 ** (value.type.scale - target.scale))))
        cut = cast(context, Call(value.type, "subtract", (value, rest)), target)
        if name == "trunc":
            return cut
        passed = compare(context, "<" if name == "floor" else ">", rest, Literal(value.type, 0))
        moved = cast(context, arithmetic(context, "subtract" if name == "floor" else "add", cut, unit), target)
        return Case(target, (passed,), (moved,), cut, span=span)
    rounded = cast(context, value, target)

    def corrected(operator: str, step: str) -> Expression:
        passed = compare(context, operator, rounded, value)
        moved = cast(context, arithmetic(context, step, rounded, unit), target)
        return Case(target, (passed,), (moved,), rounded, span=span)

    if name == "floor":
        return corrected(">", "subtract")
    if name == "ceil":
        return corrected("<", "add")
    negative = compare(context, "<", value, _number(0))
    return Case(target, (negative,), (corrected("<", "add"),), corrected(">", "subtract"), span=span)
