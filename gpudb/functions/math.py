"""Numeric functions.

Transcendental functions are `kernels/portable.cuh` and its NumPy twin `gpudb/portable.py`, so their bytes are the same on
every device.  Doubles follow IEEE 754 as DuckDB's do: sqrt(-1) is NaN, ln(0) is -infinity, and neither is an error.
Past 600 lines: a list of short entries, one a function.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from gpudb import portable
from gpudb.errors import OutOfRangeError
from gpudb.functions.registry import macro, scalar, text, typed_macro
from gpudb.functions.rows import per_row
from gpudb.types import INTEGER_BITS, SqlType

Array = Any


def _integer(function: Any, *arrays: Array) -> Array:
    """Integer arithmetic that wraps silently."""
    with np.errstate(all="ignore"):
        return function(*arrays)


# --- sign and magnitude ---------------------------------------------------------------------------------------------


@scalar(
    "INTEGER -> INTEGER; BIGINT -> BIGINT; HUGEINT -> HUGEINT",
    cpp="absolute(x)",
    name="abs",
    aliases=("@",),
    domain=("x != wrapping_negate(x) || x == 0", lambda x: _lowest(x), "abs overflows"),
)
def absolute(x: Array) -> Array:
    """Magnitude.  Fails on the lowest integer of a type, whose magnitude the type does not hold.

    >>> sql("SELECT abs(-7), abs(-0.5::DOUBLE)")
    7 | 0.5
    """
    return _integer(np.abs, x)


def _lowest(x: Array) -> Array:
    """Whether an integer has a magnitude in its type."""
    x = np.asarray(x)
    return x != -(1 << 127) if x.dtype == object else x != np.iinfo(x.dtype).min


@scalar("REAL -> REAL; DOUBLE -> DOUBLE", cpp="absolute(x)", name="abs", more=True)
def _absolute_float(x: Array) -> Array:
    return np.abs(x)


for _kind in ("TINYINT", "SMALLINT"):
    typed_macro("abs", f"{_kind} -> {_kind}", "x", f"CAST(abs(CAST(x AS INTEGER)) AS {_kind})")


@scalar(
    "INTEGER -> TINYINT; BIGINT -> TINYINT; HUGEINT -> TINYINT; REAL -> TINYINT; DOUBLE -> TINYINT",
    cpp="(x > 0) - (x < 0)",
    bounds=(-1, 1),
    monotone=True,
)
def sign(x: Array) -> Array:
    """-1, 0 or 1; 0 for NaN.

    >>> sql("SELECT sign(-7)")
    -1
    """
    return (x > 0).astype(np.int32) - (x < 0).astype(np.int32)


for _kind in ("TINYINT", "SMALLINT"):
    typed_macro("sign", f"{_kind} -> TINYINT", "x", "sign(CAST(x AS INTEGER))")


@scalar("REAL -> BOOLEAN; DOUBLE -> BOOLEAN", cpp="float64_bits(float64(x)) >> 63 & (x == x)")
def signbit(x: Array) -> Array:
    """Whether the sign is negative, of -0.0 too; NaN has none.

    >>> sql("SELECT signbit(-0.0::DOUBLE)")
    true
    """
    return np.signbit(x) & (x == x)


# --- rounding -------------------------------------------------------------------------------------------------------


@scalar("REAL -> REAL; DOUBLE -> DOUBLE", cpp="portable_ceil(x)", aliases=("ceiling",), monotone=True)
def ceil(x: Array) -> Array:
    """The next whole number upwards.

    >>> sql("SELECT ceil(-1.5::DOUBLE)")
    -1.0
    """
    return portable.ceil(x)


@scalar("REAL -> REAL; DOUBLE -> DOUBLE", cpp="portable_floor(x)", monotone=True)
def floor(x: Array) -> Array:
    """The next whole number downwards.

    >>> sql("SELECT floor(-1.5::DOUBLE)")
    -2.0
    """
    return portable.floor(x)


@scalar("REAL -> REAL; DOUBLE -> DOUBLE", cpp="portable_trunc(x)", monotone=True)
def trunc(x: Array) -> Array:
    """The whole number, or `digits` decimals, towards zero.

    >>> sql("SELECT trunc(-1.5::DOUBLE), trunc(2.567::DOUBLE, 2), trunc(129, -1)")
    -1.0 | 2.56 | 120
    """
    return portable.trunc(x)


@scalar("REAL -> REAL; DOUBLE -> DOUBLE", cpp="portable_round(x)", name="round", monotone=True)
def round_(x: Array) -> Array:
    """The nearest whole number, or `digits` decimals (tens where negative); halves go away from zero.

    >>> sql("SELECT round(2.5::DOUBLE), round(2.345::DOUBLE, 2), round(125, -1)")
    3.0 | 2.35 | 130
    """
    return portable.round(x)


for _kind in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"):
    for _name in ("round", "trunc"):
        typed_macro(_name, f"{_kind} -> {_kind}", "x", "x")


def _power_of_ten(exponent: Array) -> Array:
    """10**exponent for 0 to 308 as in kernels/functions.cuh; exact to 22, infinite above 308, 1 below 0."""
    exponent = np.clip(np.asarray(exponent, np.int64), 0, 511)
    power = np.ones(exponent.shape)
    with np.errstate(over="ignore"):
        for bit, factor in enumerate((1e1, 1e2, 1e4, 1e8, 1e16, 1e32, 1e64, 1e128, 1e256)):
            power = np.where(exponent >> bit & 1, power * factor, power)
    return power


def _to_digits(x: Array, digits: Array, whole: Any, otherwise: float | None) -> Array:
    """whole() of x scaled by a power of ten, scaled back; x where that leaves the range of doubles.

    otherwise  in place of a finite x where digits are negative
    """
    x, digits = np.asarray(x, np.float64), np.asarray(digits, np.int64)
    power = _power_of_ten(np.abs(digits))
    with np.errstate(all="ignore"):
        positive = whole(x * power) / power
        negative = whole(x / power) * power
        positive = np.where(np.isfinite(positive), positive, x)
        negative = np.where(
            np.isfinite(negative), negative, x if otherwise is None else np.where(np.isfinite(x), otherwise, x)
        )
        return np.where(digits < 0, negative, positive)


@scalar("REAL, INTEGER -> REAL; DOUBLE, INTEGER -> DOUBLE", cpp="round_to_digits(x, digits)", name="round", more=True)
def _round_digits(x: Array, digits: Array) -> Array:
    return _to_digits(x, digits, portable.round, 0.0)


@scalar(
    "REAL, INTEGER -> REAL; DOUBLE, INTEGER -> DOUBLE",
    cpp="round_to_digits_even(x, digits)",
    name="round_even",
    aliases=("roundbankers",),
)
def _round_even_digits(x: Array, digits: Array) -> Array:
    """The nearest number of `digits` decimals; halves go to the even digit.

    >>> sql("SELECT round_even(2.5::DOUBLE, 0), round_even(25, -1)")
    2.0 | 20
    """
    return _to_digits(x, digits, portable.rint, 0.0)


@scalar("REAL, INTEGER -> REAL; DOUBLE, INTEGER -> DOUBLE", cpp="trunc_to_digits(x, digits)", name="trunc", more=True)
def _trunc_digits(x: Array, digits: Array) -> Array:
    return _to_digits(x, digits, portable.trunc, None)


def _integer_unit(digits: Array) -> Array:
    """10**-digits for -18 to 0; 1 elsewhere."""
    digits = np.asarray(digits, np.int64)
    return np.power(np.int64(10), np.where((digits < 0) & (digits > -19), -digits, 0))


def _integer_to_digits(x: Array, digits: Array, half: str) -> Array:
    """An integer to a multiple of 10**-digits, wrapping; half: away, even, or cut."""
    wide, digits = np.asarray(x, np.int64), np.asarray(digits, np.int64)
    unit = _integer_unit(digits)
    with np.errstate(all="ignore"):
        rest = np.fmod(wide, unit)
        cut = wide - rest
        distance = np.abs(rest)
        if half == "away":
            up = (distance >= unit - distance) & (unit > 1)
        elif half == "even":
            odd = np.fmod(cut // unit, 2) != 0
            up = (unit > 1) & ((distance > unit - distance) | ((distance == unit - distance) & odd))
        else:
            up = np.zeros(cut.shape, bool)
        value = cut + np.where(up, np.where(wide < 0, -unit, unit), 0)
    return np.where(digits < -18, 0, value)


def _integer_fits(x: Array, digits: Array, half: str) -> Array:
    value = _integer_to_digits(x, digits, half)
    limits = np.iinfo(np.asarray(x).dtype)
    wide = np.asarray(x, np.int64)
    wrapped = (value != 0) & ((wide < 0) != (value < 0))
    if half != "cut":  # 10**19 itself is no int64: magnitudes that round to it do not fit
        magnitude = np.where(wide < 0, np.uint64(0) - wide.astype(np.uint64), wide.astype(np.uint64))
        wrapped |= (np.asarray(digits) == -19) & (magnitude > np.uint64(5 * 10**18 - (half == "away")))
    return (value >= limits.min) & (value <= limits.max) & ~wrapped


def _add_integer_rounding(name: str, half: str, mode: int) -> None:
    """The overloads over integers of round, round_even and trunc; mode is the C++ template's."""

    def body(x: Array, digits: Array) -> Array:
        return _integer_to_digits(x, digits, half)

    def fits(x: Array, digits: Array) -> Array:
        return _integer_fits(x, digits, half)

    scalar(
        "INTEGER, INTEGER -> INTEGER; BIGINT, INTEGER -> BIGINT",
        cpp=f"integer_to_digits<{mode}>(x, digits)",
        name=name,
        more=True,
        domain=(f"integer_to_digits_fits<{mode}>(x, digits)", fits, f"{name} of an integer overflows"),
    )(body)
    for kind in ("TINYINT", "SMALLINT"):
        sql = f"CAST({name}(CAST(x AS INTEGER), digits) AS {kind})"
        typed_macro(name, f"{kind}, INTEGER -> {kind}", "x, digits", sql)


_add_integer_rounding("round", "away", 0)
_add_integer_rounding("round_even", "even", 1)
_add_integer_rounding("trunc", "cut", 2)


@scalar("DOUBLE -> DOUBLE", cpp="round_to_even(x)")
def even(x: Array) -> Array:
    """The next even number away from zero.

    >>> sql("SELECT even(2.5::DOUBLE)")
    4.0
    """
    with np.errstate(all="ignore"):
        up = portable.ceil(np.abs(x))
        return np.copysign(up + (np.floor(up / 2.0) * 2.0 < up), x)


# --- powers, logarithms ---------------------------------------------------------------------------------------------


@scalar("DOUBLE -> DOUBLE", cpp="portable_sqrt(x)", monotone=True)
def sqrt(x: Array) -> Array:
    """Square root; NaN for negative numbers.

    >>> sql("SELECT sqrt(16)")
    4.0
    """
    return portable.sqrt(x)


@scalar("DOUBLE -> DOUBLE", cpp="portable_cbrt(x)")
def cbrt(x: Array) -> Array:
    """Cube root; keeps the sign of its argument.

    >>> sql("SELECT cbrt(-8)")
    -2.0
    """
    return portable.cbrt(x)


@scalar("DOUBLE -> DOUBLE", cpp="portable_exp(x)")
def exp(x: Array) -> Array:
    """e to the power x.

    >>> sql("SELECT exp(0)")
    1.0
    """
    return portable.exp(x)


@scalar("DOUBLE, DOUBLE -> DOUBLE", cpp="portable_pow(x, y)", aliases=("pow", "**", "^"))
def power(x: Array, y: Array) -> Array:
    """x to the power y.

    >>> sql("SELECT power(2, 10)")
    1024.0
    """
    return portable.pow(x, y)


@scalar("DOUBLE -> DOUBLE", cpp="portable_ln(x)")
def ln(x: Array) -> Array:
    """Natural logarithm.

    >>> sql("SELECT ln(1)")
    0.0
    """
    return portable.ln(x)


@scalar("DOUBLE -> DOUBLE", cpp="portable_log2(x)")
def log2(x: Array) -> Array:
    """Logarithm to the base 2.

    >>> sql("SELECT log2(8)")
    3.0
    """
    return portable.log2(x)


@scalar("DOUBLE -> DOUBLE", cpp="portable_log10(x)")
def log10(x: Array) -> Array:
    """Logarithm to the base 10.

    >>> sql("SELECT log10(1000)")
    3.0
    """
    return portable.log10(x)


@scalar("DOUBLE, DOUBLE -> DOUBLE", cpp="portable_canonical(portable_log10(x) / portable_log10(base))")
def log(base: Array, x: Array) -> Array:
    """Logarithm to the base 10, or to a given base.

    >>> sql("SELECT log(100), log(2, 8)")
    2.0 | 3.0
    """
    with np.errstate(all="ignore"):
        return portable.log10(x) / portable.log10(base)


typed_macro("log", "DOUBLE -> DOUBLE", "x", "log10(x)")


# --- trigonometry ---------------------------------------------------------------------------------------------------


@scalar("DOUBLE -> DOUBLE", cpp="portable_sin(x)")
def sin(x: Array) -> Array:
    """Sine of an angle in radians.

    >>> sql("SELECT sin(0)")
    0.0
    """
    return portable.sin(x)


@scalar("DOUBLE -> DOUBLE", cpp="portable_cos(x)")
def cos(x: Array) -> Array:
    """Cosine of an angle in radians.

    >>> sql("SELECT cos(0)")
    1.0
    """
    return portable.cos(x)


@scalar("DOUBLE -> DOUBLE", cpp="portable_tan(x)")
def tan(x: Array) -> Array:
    """Tangent of an angle in radians.

    >>> sql("SELECT tan(0)")
    0.0
    """
    return portable.tan(x)


@scalar("DOUBLE -> DOUBLE", cpp="portable_cot(x)")
def cot(x: Array) -> Array:
    """Cotangent of an angle in radians.

    >>> sql("SELECT round(cot(1), 4)")
    0.6421
    """
    return portable.cot(x)


@scalar("DOUBLE -> DOUBLE", cpp="portable_asin(x)")
def asin(x: Array) -> Array:
    """Arc sine in radians.

    >>> sql("SELECT asin(0)")
    0.0
    """
    return portable.asin(x)


@scalar("DOUBLE -> DOUBLE", cpp="portable_acos(x)")
def acos(x: Array) -> Array:
    """Arc cosine in radians.

    >>> sql("SELECT acos(1)")
    0.0
    """
    return portable.acos(x)


@scalar("DOUBLE -> DOUBLE", cpp="portable_atan(x)")
def atan(x: Array) -> Array:
    """Arc tangent in radians.

    >>> sql("SELECT atan(0)")
    0.0
    """
    return portable.atan(x)


@scalar("DOUBLE, DOUBLE -> DOUBLE", cpp="portable_atan2(y, x)")
def atan2(y: Array, x: Array) -> Array:
    """Angle of the point (x, y) in radians.

    >>> sql("SELECT atan2(0, 1)")
    0.0
    """
    return portable.atan2(y, x)


@scalar("DOUBLE -> DOUBLE", cpp="portable_sinh(x)")
def sinh(x: Array) -> Array:
    """Hyperbolic sine.

    >>> sql("SELECT sinh(0)")
    0.0
    """
    return portable.sinh(x)


@scalar("DOUBLE -> DOUBLE", cpp="portable_cosh(x)")
def cosh(x: Array) -> Array:
    """Hyperbolic cosine.

    >>> sql("SELECT cosh(0)")
    1.0
    """
    return portable.cosh(x)


@scalar("DOUBLE -> DOUBLE", cpp="portable_tanh(x)")
def tanh(x: Array) -> Array:
    """Hyperbolic tangent.

    >>> sql("SELECT tanh(0)")
    0.0
    """
    return portable.tanh(x)


@scalar("DOUBLE -> DOUBLE", cpp="portable_asinh(x)")
def asinh(x: Array) -> Array:
    """Inverse hyperbolic sine.

    >>> sql("SELECT asinh(0)")
    0.0
    """
    return portable.asinh(x)


@scalar("DOUBLE -> DOUBLE", cpp="portable_acosh(x)")
def acosh(x: Array) -> Array:
    """Inverse hyperbolic cosine; NaN below 1.

    >>> sql("SELECT acosh(1)")
    0.0
    """
    return portable.acosh(x)


@scalar("DOUBLE -> DOUBLE", cpp="portable_atanh(x)")
def atanh(x: Array) -> Array:
    """Inverse hyperbolic tangent; NaN beyond -1 to 1.

    >>> sql("SELECT atanh(0)")
    0.0
    """
    return portable.atanh(x)


DEGREES = 180.0 / math.pi
RADIANS = math.pi / 180.0


@scalar("DOUBLE -> DOUBLE", cpp="portable_canonical(x * 57.29577951308232)")
def degrees(x: Array) -> Array:
    """Radians to degrees.

    >>> sql("SELECT degrees(pi())")
    180.0
    """
    with np.errstate(all="ignore"):
        return x * DEGREES


@scalar("DOUBLE -> DOUBLE", cpp="portable_canonical(x * 0.017453292519943295)")
def radians(x: Array) -> Array:
    """Degrees to radians.

    >>> sql("SELECT radians(180)")
    3.141592653589793
    """
    with np.errstate(all="ignore"):
        return x * RADIANS


macro(
    "pi",
    "",
    "CAST('3.141592653589793' AS DOUBLE)",
    """The ratio of a circle's circumference to its diameter.

    >>> sql("SELECT pi()")
    3.141592653589793
    """,
)


# --- tests and neighbours -------------------------------------------------------------------------------------------


@scalar("REAL -> BOOLEAN; DOUBLE -> BOOLEAN", cpp="x != x")
def isnan(x: Array) -> Array:
    """Whether a number is NaN.

    >>> sql("SELECT isnan('nan'::DOUBLE)")
    true
    """
    return x != x


@scalar("REAL -> BOOLEAN; DOUBLE -> BOOLEAN", cpp="exact_abs(x) == portable_infinity()")
def isinf(x: Array) -> Array:
    """Whether a number, date or timestamp is infinite.

    >>> sql("SELECT isinf('-inf'::DOUBLE), isinf('infinity'::DATE)")
    true | true
    """
    return np.isinf(x)


@scalar("REAL -> BOOLEAN; DOUBLE -> BOOLEAN", cpp="exact_abs(x) < portable_infinity()")
def isfinite(x: Array) -> Array:
    """Whether a number is neither infinite nor NaN, or a date or timestamp not infinite.

    >>> sql("SELECT isfinite(1.5::DOUBLE), isfinite('infinity'::DATE)")
    true | false
    """
    return np.isfinite(x)


@scalar("REAL, REAL -> REAL; DOUBLE, DOUBLE -> DOUBLE", cpp="next_after(x, y)")
def nextafter(x: Array, y: Array) -> Array:
    """The next number a float holds, from x towards y.

    >>> sql("SELECT nextafter(1::DOUBLE, 2::DOUBLE)")
    1.0000000000000002
    """
    with np.errstate(all="ignore"):
        return np.nextafter(x, y)


@scalar("REAL, REAL -> REAL; DOUBLE, DOUBLE -> DOUBLE", cpp="floor_remainder(x, y)")
def fmod(x: Array, y: Array) -> Array:
    """Remainder of x / y rounded down: it has the sign of y.

    >>> sql("SELECT fmod(-5.5::DOUBLE, 2::DOUBLE)")
    0.5
    """
    with np.errstate(all="ignore"):
        rest = np.fmod(x, y)
        return np.where(((rest < 0) & (y > 0)) | ((rest > 0) & (y < 0)), rest + y, rest)


macro(
    "add",
    "x, y",
    "x + y",
    """The operator +.

    >>> sql("SELECT add(1, 2)")
    3
    """,
)

macro(
    "subtract",
    "x, y",
    "x - y",
    """The operator -.

    >>> sql("SELECT subtract(1, 2)")
    -1
    """,
)

macro(
    "multiply",
    "x, y",
    "x * y",
    """The operator *.

    >>> sql("SELECT multiply(2, 3)")
    6
    """,
)

macro(
    "divide",
    "x, y",
    "x // y",
    """The operator //: of whole numbers the quotient cut towards zero.

    >>> sql("SELECT divide(-7, 2)")
    -3
    """,
)

macro(
    "mod",
    "x, y",
    "x % y",
    """The operator %: the remainder has the sign of x.

    >>> sql("SELECT mod(-7, 3)")
    -1
    """,
)

macro(
    "fdiv",
    "x, y",
    "floor(CAST(x AS DOUBLE) / CAST(y AS DOUBLE))",
    """Quotient rounded down.

    >>> sql("SELECT fdiv(7, -2)")
    -4.0
    """,
)


# --- whole numbers --------------------------------------------------------------------------------------------------


@scalar(
    "BIGINT, BIGINT -> BIGINT",
    cpp="greatest_common_divisor(x, y)",
    aliases=("greatest_common_divisor",),
    domain=("greatest_common_divisor(x, y) >= 0", lambda x, y: _gcd(x, y) >= 0, "gcd overflows"),
)
def gcd(x: Array, y: Array) -> Array:
    """Greatest common divisor.

    >>> sql("SELECT gcd(12, -18)")
    6
    """
    return _gcd(x, y)


def _gcd(x: Array, y: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.gcd(np.asarray(x, np.int64), np.asarray(y, np.int64))


@scalar(
    "BIGINT, BIGINT -> BIGINT",
    cpp="least_common_multiple(x, y)",
    aliases=("least_common_multiple",),
    domain=("least_common_multiple_fits(x, y)", lambda x, y: _lcm_fits(x, y), "lcm overflows"),
)
def lcm(x: Array, y: Array) -> Array:
    """Least common multiple; 0 where either is 0.

    >>> sql("SELECT lcm(4, 6)")
    12
    """
    x, y = np.asarray(x, np.int64), np.asarray(y, np.int64)
    with np.errstate(all="ignore"):
        divisor = _gcd(x, y)
        quotient = np.where(
            (divisor == 0) | (divisor == np.iinfo(np.int64).min), 0, x // np.where(divisor == 0, 1, divisor)
        )
        return np.abs(quotient * y)


def _lcm_fits(x: Array, y: Array) -> Array:
    pairs = zip(np.asarray(x).tolist(), np.asarray(y).tolist(), strict=True)
    lowest = -(1 << 63)
    fits = (not a or not b or (math.lcm(a, b) < 1 << 63 and lowest not in (a, b)) for a, b in pairs)
    return np.fromiter(fits, bool, len(np.asarray(x)))


@text("INTEGER -> HUGEINT", aliases=("!__postfix",))
def factorial(x: pa.Array) -> pa.Array:
    """Product of the whole numbers to x.  Fails below 0 and above 33.

    >>> sql("SELECT factorial(5)")
    120
    """

    def one(value: int) -> Decimal:
        if not 0 <= value <= 33:
            raise OutOfRangeError(f"factorial out of range: {value}")
        return Decimal(math.factorial(value))

    return per_row(one, SqlType("HUGEINT"), x)


@text("INTEGER, INTEGER -> HUGEINT")
def binom(n: Any, k: Any) -> pa.Array:
    """Number of ways to choose k out of n.

    >>> sql("SELECT binom(5, 2)")
    10
    """

    def one(total: int, chosen: int) -> Decimal:
        if total < 0 or chosen < 0:
            raise OutOfRangeError(f"binom of a negative number: {min(total, chosen)}")
        value = 0 if chosen > total else 1
        for i in range(min(chosen, total - chosen)):
            value = value * (total - i) // (i + 1)
            if value >= 1 << 127:
                raise OutOfRangeError(f"binom overflows: {total}, {chosen}")
        return Decimal(value)

    return per_row(one, SqlType("HUGEINT"), n, k)


@scalar("DOUBLE -> DOUBLE", cpp="portable_gamma(x)")
def gamma(x: Array) -> Array:
    """The gamma function, (x - 1)! on whole numbers.

    >>> sql("SELECT gamma(5)")
    24.0
    """
    return portable.gamma(x)


@scalar("DOUBLE -> DOUBLE", cpp="portable_lgamma(x)")
def lgamma(x: Array) -> Array:
    """Logarithm of the magnitude of the gamma function.

    >>> sql("SELECT lgamma(1)")
    0.0
    """
    return portable.lgamma(x)


assert set(INTEGER_BITS) == {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"}, (
    "a new integer type needs overloads here"
)
