"""Range analysis: interval arithmetic on the values behind expressions, and the registers that hold a range."""

from __future__ import annotations

import math

from gpudb.planner.emit.builder import Value
from gpudb.planner.expressions import Literal
from gpudb.types import RegisterType

R = RegisterType
INT32 = (-(1 << 31), (1 << 31) - 1)
INT64 = (-(1 << 63), (1 << 63) - 1)
INT128 = (-(1 << 127), (1 << 127) - 1)


def register_range(kind: R) -> tuple[int, int]:
    """The integers that an arithmetic register holds."""
    return {R.I32: INT32, R.I64: INT64}.get(kind, INT128)


def within_bounds(low: int, high: int, least: int, greatest: int) -> tuple[int, int]:
    """The part of low .. high inside least .. greatest; its nearest end if there is none: then no row has a value.

    Never an empty range: what is sized by it (a group table, a lookup table) needs one entry at least.
    """
    return min(max(low, least), greatest), max(min(high, greatest), least)


def integer_register(low: int, high: int) -> R:
    """The narrowest arithmetic register that holds low .. high."""
    if INT32[0] <= low and high <= INT32[1]:
        return R.I32
    return R.I64 if INT64[0] <= low and high <= INT64[1] else R.I128


def exact_bounds(name: str, values: list[Value]) -> tuple[int, int]:
    """Interval arithmetic on integers."""
    a = values[0]
    if name == "negate":
        return -a.high, -a.low
    b = values[1]
    if name == "add":
        return a.low + b.low, a.high + b.high
    if name == "subtract":
        return a.low - b.high, a.high - b.low
    if name == "multiply":
        corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        return min(corners), max(corners)
    if name == "integer_divide":
        magnitude = max(abs(a.low), abs(a.high))
        return -magnitude, magnitude
    if name == "modulo":
        magnitude = max(abs(b.low), abs(b.high))
        limit = min(max(magnitude - 1, 0), max(abs(a.low), abs(a.high)))
        return (-limit if a.low < 0 else 0), (limit if a.high > 0 else 0)
    bits = max(v.bit_length() for v in (a.low, a.high, b.low, b.high))
    low = 0 if a.low >= 0 and b.low >= 0 else -(1 << bits)
    return low, (1 << bits) - 1


def float_bounds(name: str, values: list[Value]) -> tuple[float | None, float | None]:
    """Interval arithmetic on floats, rounded outwards; None where unknown or not finite."""
    ends = [(v.low, v.high) for v in values]
    if any(low is None or high is None for low, high in ends):
        return None, None
    (a, b) = ends[0]
    if name == "negate":
        return -b, -a
    if name in ("divide", "integer_divide", "modulo", "decimal_modulo"):
        return None, None
    (c, d) = ends[1]
    if name == "add":
        found = [a + c, b + d]
    elif name == "subtract":
        found = [a - d, b - c]
    else:
        found = [x * y for x in (a, b) for y in (c, d)]
    low, high = min(found), max(found)
    if not (math.isfinite(low) and math.isfinite(high)):
        return None, None
    return math.nextafter(low, -math.inf), math.nextafter(high, math.inf)


def literal_range(literal: Literal) -> tuple[int, int]:
    """Bounds of an integer literal whose value is a parameter: the plan must hold for every value of its width."""
    sql = literal.type
    low, high = sql.bounds
    if sql.kind in ("TINYINT", "SMALLINT", "INTEGER") or sql.kind == "DECIMAL" and sql.precision <= 9:
        low, high = max(low, INT32[0]), min(high, INT32[1])
    written = _written_range(literal)
    return (low, high) if written is None else (max(low, written[0]), min(high, written[1]))


def _written_range(literal: Literal) -> tuple[int, int] | None:
    """Bounds by the width of the number in the text, through its steps; None where they do not say."""
    if literal.bound is None:
        return None
    low, high = 0, literal.bound
    for operation, source, target in literal.steps:
        if operation == "negate":
            low, high = -high, -low
        elif operation == "cast" and source.is_exact and target.is_exact and source.is_numeric and target.is_numeric:
            shift = (target.scale or 0) - (source.scale or 0)
            if shift < 0:
                low, high = -(-low // 10**-shift) - 1, high // 10**-shift + 1
            else:
                low, high = low * 10**shift, high * 10**shift
        else:
            return None
    return low, high
