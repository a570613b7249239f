"""Portable math in NumPy: kernels/portable.cuh operation by operation, so that both give the same bytes.

Each function takes float64 scalars or arrays, broadcasts them and returns a float64 array of the common shape.  What
the algorithms are, their intervals, errors and special values is said once, in kernels/portable.cuh; names here are the
names there without `portable_`.  Only operations that IEEE 754 rounds one way are used: + - * / sqrt rint, comparisons,
selects and integer bits, never NumPy's exp or sin.  The file is long because the functions share cores: exp, ln, sine,
arctangent.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Bits = NDArray[Any]  # uint64; NumPy's stubs lose the type where an operand is a Python int
Integers = NDArray[Any]  # int64
Booleans = NDArray[np.bool_]
Number = Any  # Floats, or a Python float where the C++ has a constant

NAN = float("nan")
INFINITY = float("inf")
SHIFTER = 6755399441055744.0  # 1.5 * 2^52: adding it leaves the nearest integer in the low bits
SHIFTER_BITS = 0x4338000000000000
SIGN_BIT = 0x8000000000000000
FRACTION_BITS = 0x000FFFFFFFFFFFFF
LOW_WORD = 0xFFFFFFFF
TINY = 3.725290298461914e-09  # 2^-28


class Pair(NamedTuple):
    """The unevaluated sum high + low, about 106 bits."""

    high: Number
    low: Number


PI = Pair(3.141592653589793, 1.2246467991473532e-16)


def _elementwise(body: Callable[..., Floats]) -> Callable[..., Floats]:
    """Let `body`, which works on (rows,) float64 arrays, take anything that broadcasts; no warnings."""

    @functools.wraps(body)
    def function(*arguments: ArrayLike) -> Floats:
        arrays = np.broadcast_arrays(*(np.asarray(argument, np.float64) for argument in arguments))
        flat = [np.ascontiguousarray(array).reshape(-1) for array in arrays]
        with np.errstate(all="ignore"):
            return body(*flat).reshape(arrays[0].shape)

    return function


# ---- Building blocks ----


def _bits(x: Number) -> Bits:
    return np.asarray(x, np.float64).view(np.uint64)


def _from_bits(bits: Bits) -> Floats:
    return bits.view(np.float64)


def _select(condition: Booleans, yes: Number, no: Number) -> Floats:
    selected: Any = np.where(condition, yes, no)
    return selected


def _select_pair(condition: Booleans, yes: Pair, no: Pair) -> Pair:
    return Pair(_select(condition, yes.high, no.high), _select(condition, yes.low, no.low))


def _canonical(x: Floats) -> Floats:
    return _select(x == x, x, NAN)


def _copysign(magnitude: Floats, sign: Floats) -> Floats:
    return _from_bits((_bits(magnitude) & (SIGN_BIT - 1)) | (_bits(sign) & SIGN_BIT))


def _negate_if(condition: Booleans, x: Floats) -> Floats:
    return _from_bits(_bits(x) ^ (condition.astype(np.uint64) << 63))


def _power_of_two(exponent: Integers) -> Floats:
    return _from_bits((exponent + 1023).view(np.uint64) << 52)


def _scale(x: Floats, exponent: Integers) -> Floats:
    first = ((exponent + 4096).view(np.uint64) >> 1).view(np.int64) - 2048
    return x * _power_of_two(first) * _power_of_two(exponent - first)


def _two_sum(a: Number, b: Number) -> Pair:
    total = a + b
    part = total - a
    return Pair(total, (a - (total - part)) + (b - part))


def _fast_sum(a: Number, b: Number) -> Pair:
    total = a + b
    return Pair(total, b - (total - a))


def _product(a: Number, b: Number) -> Pair:
    a_wide = 134217729.0 * a
    b_wide = 134217729.0 * b
    a_high = a_wide - (a_wide - a)
    b_high = b_wide - (b_wide - b)
    a_low = a - a_high
    b_low = b - b_high
    product = a * b
    return Pair(product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low)


def _pair_product(a: Pair, b: Pair) -> Pair:
    product = _product(a.high, b.high)
    return _fast_sum(product.high, product.low + (a.high * b.low + a.low * b.high))


def _pair_quotient(a: Pair, b: Pair) -> Pair:
    quotient = a.high / b.high
    back = _product(quotient, b.high)
    rest = ((a.high - back.high) - back.low) + (a.low - quotient * b.low)
    return _fast_sum(quotient, rest / b.high)


def _horner(z: Floats, *coefficients: Number) -> Floats:
    """The polynomial whose coefficients are given from the highest power down."""
    p = coefficients[0] * z + coefficients[1]
    for coefficient in coefficients[2:]:
        p = p * z + coefficient
    return p


# ---- Exact rounding ----


@_elementwise
def rint(x: Floats) -> Floats:
    """The nearest integer, ties to even."""
    return _canonical(np.rint(x))


@_elementwise
def floor(x: Floats) -> Floats:
    """The greatest integer that is not above x."""
    nearest = np.rint(x)
    return _canonical(nearest - _select(nearest > x, 1.0, 0.0))


@_elementwise
def ceil(x: Floats) -> Floats:
    """The least integer that is not below x."""
    nearest = np.rint(x)
    return _canonical(_copysign(nearest + _select(nearest < x, 1.0, 0.0), x))


@_elementwise
def trunc(x: Floats) -> Floats:
    """The integer part, towards zero."""
    return _canonical(_copysign(floor(np.abs(x)), x))


@_elementwise
def round(x: Floats) -> Floats:  # noqa: A001 - SQL's name
    """The nearest integer, ties away from zero, as SQL's ROUND."""
    return _canonical(_copysign(floor(np.abs(x) + 0.49999999999999994), x))


@_elementwise
def sqrt(x: Floats) -> Floats:
    """Square root, rounded once."""
    return _canonical(np.sqrt(x))


# ---- Exponential ----


class Exponential(NamedTuple):
    """exp of the argument is (1 + y_high + y_low) * 2^exponent."""

    y_high: Floats
    y_low: Floats
    exponent: Integers


def _exponential(high: Floats, low: Number) -> Exponential:
    shifted = high * 1.4426950408889634 + SHIFTER
    count = shifted - SHIFTER
    coarse = high - count * 0.6931471805598903
    fine = low - count * 5.497923018708371e-14
    r = _fast_sum(coarse, fine)
    p = _horner(
        r.high, 2.0926871503816418e-09, 2.5112239675158352e-08, 2.7557233591727085e-07, 2.755723423833053e-06,
        2.480158737345591e-05, 0.00019841269897055903, 0.0013888888888858614, 0.00833333333331674, 0.04166666666666673,
        0.16666666666666685,
    )  # fmt: skip
    square = r.high * r.high
    tail = square * r.high * p + (r.low + r.low * r.high)
    head = _fast_sum(r.high, 0.5 * square)
    y = _fast_sum(head.high, head.low + tail)
    return Exponential(y.high, y.low, (_bits(shifted) - SHIFTER_BITS).view(np.int64))


def _one_plus(y_high: Floats, y_low: Floats) -> Pair:
    total = _fast_sum(1.0, y_high)
    return _fast_sum(total.high, total.low + y_low)


@_elementwise
def exp(x: Floats) -> Floats:
    """e to the power x."""
    clamped = _select(x < 750.0, x, 750.0)
    clamped = _select(clamped > -750.0, clamped, -750.0)
    e = _exponential(clamped, 0.0)
    result = _scale(_one_plus(e.y_high, e.y_low).high, e.exponent)
    return _select(x == x, result, NAN)


def _expm1_mantissa(e: Exponential) -> Pair:
    bounded = np.where(e.exponent < 64, e.exponent, 64)
    total = _two_sum(1.0 - _power_of_two(-bounded), e.y_high)
    return _fast_sum(total.high, total.low + e.y_low)


@_elementwise
def expm1(x: Floats) -> Floats:
    """exp(x) - 1, accurate near 0."""
    clamped = _select(x < 750.0, x, 750.0)
    clamped = _select(clamped > -50.0, clamped, -50.0)
    e = _exponential(clamped, 0.0)
    result = _scale(_expm1_mantissa(e).high, e.exponent)
    signed_result = _select(np.abs(x) < 5.551115123125783e-17, x, result)
    return _select(x == x, signed_result, NAN)


# ---- Hyperbolic ----


@_elementwise
def sinh(x: Floats) -> Floats:
    """Hyperbolic sine."""
    a = np.abs(x)
    clamped = _select(a < 750.0, a, 750.0)
    e = _exponential(clamped, 0.0)
    t = _expm1_mantissa(e)
    near_scale = _power_of_two(np.where(e.exponent < 64, e.exponent, 64))
    grown = Pair(t.high * near_scale, t.low * near_scale)
    one_plus = _two_sum(1.0, grown.high)
    quotient = _pair_quotient(grown, Pair(one_plus.high, one_plus.low + grown.low))
    total = _fast_sum(grown.high, quotient.high)
    near = 0.5 * (total.high + (total.low + (grown.low + quotient.low)))
    far = _scale(_one_plus(e.y_high, e.y_low).high, e.exponent - 1)
    result = _select(a < 22.0, near, far)
    result = _select(a < TINY, a, result)
    return _select(x == x, _copysign(result, x), NAN)


@_elementwise
def cosh(x: Floats) -> Floats:
    """Hyperbolic cosine."""
    a = np.abs(x)
    clamped = _select(a < 750.0, a, 750.0)
    e = _exponential(clamped, 0.0)
    half = _scale(_one_plus(e.y_high, e.y_low).high, e.exponent - 1)
    return _select(x == x, half + 0.25 / half, NAN)


@_elementwise
def tanh(x: Floats) -> Floats:
    """Hyperbolic tangent."""
    a = np.abs(x)
    clamped = _select(a < 22.0, a, 22.0)
    e = _exponential(2.0 * clamped, 0.0)
    mantissa = _expm1_mantissa(e)
    scale = _power_of_two(e.exponent)
    t = Pair(mantissa.high * scale, mantissa.low * scale)
    total = _two_sum(2.0, t.high)
    quotient = _pair_quotient(t, Pair(total.high, total.low + t.low))
    result = _select(a < TINY, a, quotient.high)
    return _select(x == x, _copysign(result, x), NAN)


# ---- Logarithms ----


class Binary(NamedTuple):
    """x = mantissa * 2^exponent, mantissa in [sqrt(1/2), sqrt(2))."""

    exponent: Floats
    mantissa: Floats


def _binary(x: Floats) -> Binary:
    subnormal = x < 2.2250738585072014e-308
    normal = _select(subnormal, x * 18014398509481984.0, x)
    bias = _select(subnormal, 4503599627371573.0, 4503599627371519.0)
    bits = _bits(normal) + (0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
    return Binary(
        _from_bits((bits >> 52) | 0x4330000000000000) - bias, _from_bits((bits & FRACTION_BITS) + 0x3FE6A09E667F3BCD)
    )


def _logarithm_specials(x: Floats, result: Floats) -> Floats:
    result = _select(x < INFINITY, result, x)
    result = _select(x == 0.0, -INFINITY, result)
    return _select(x >= 0.0, result, NAN)


@_elementwise
def ln(x: Floats) -> Floats:
    """Natural logarithm; -infinity at 0, NaN below."""
    b = _binary(x)
    f = b.mantissa - 1.0
    s = f / (2.0 + f)
    z = s * s
    p = _horner(
        z, 0.147959798182115, 0.153140516411929, 0.18183564118226575, 0.2222219858027054, 0.28571428742292493,
        0.3999999999941519, 0.6666666666666734,
    )  # fmt: skip
    half_square = 0.5 * f * f
    small = s * (half_square + z * p) + b.exponent * 5.497923018708371e-14
    result = b.exponent * 0.6931471805598903 - ((half_square - small) - f)
    return _logarithm_specials(x, result)


def _ln_pair(x: Floats) -> Pair:
    b = _binary(x)
    f = b.mantissa - 1.0
    plus = b.mantissa + 1.0
    s = _pair_quotient(Pair(f, 0.0), Pair(plus, b.mantissa - (plus - 1.0)))
    square = _product(s.high, s.high)
    z = _fast_sum(square.high, square.low + 2.0 * s.high * s.low)
    p = _horner(
        z.high,
        0.059944121833664626, 0.058374227435031074, 0.06668157915174598, 0.07692278460263538, 0.09090909434721252,
        0.11111111108772494, 0.14285714285722534, 0.1999999999999999,
    )  # fmt: skip
    third = _pair_product(z, Pair(0.3333333333333333, 1.850371707708594e-17))
    series = _fast_sum(third.high, third.low + z.high * z.high * p)
    bend = _pair_product(Pair(2.0 * s.high, 2.0 * s.low), series)
    head = _fast_sum(2.0 * s.high, bend.high)
    head_low = head.low + (bend.low + 2.0 * s.low)
    total = _fast_sum(b.exponent * 0.6931471805598903, head.high)
    return _fast_sum(total.high, total.low + (b.exponent * 5.497923018708371e-14 + head_low))


def _ln_of_pair(x: Pair) -> Pair:
    logarithm = _ln_pair(x.high)
    total = _two_sum(logarithm.high, x.low / x.high)
    return _fast_sum(total.high, total.low + logarithm.low)


@_elementwise
def log2(x: Floats) -> Floats:
    """Logarithm to base 2, exact at powers of two."""
    result = _pair_product(_ln_pair(x), Pair(1.4426950408889634, 2.0355273740931033e-17))
    return _logarithm_specials(x, result.high)


@_elementwise
def log10(x: Floats) -> Floats:
    """Logarithm to base 10, exact at powers of ten."""
    result = _pair_product(_ln_pair(x), Pair(0.4342944819032518, 1.098319650216765e-17))
    return _logarithm_specials(x, result.high)


def _area_argument(a: Floats, sign: float) -> Pair:
    square = _product(a, a)
    total = _two_sum(square.high, sign)
    radicand = _fast_sum(total.high, total.low + square.low)
    root = np.sqrt(radicand.high)
    back = _product(root, root)
    rest = ((radicand.high - back.high) - back.low) + radicand.low
    root_low = rest / _select(root > 0.0, 2.0 * root, 1.0)
    result = _two_sum(a, root)
    return _fast_sum(result.high, result.low + root_low)


def _area(a: Floats, sign: float) -> Floats:
    big = a > 268435456.0
    argument = _area_argument(_select(big, 1.0, a), sign)
    chosen = Pair(_select(big, a, argument.high), _select(big, 0.0, argument.low))
    logarithm = _ln_of_pair(chosen)
    return logarithm.high + (logarithm.low + _select(big, 0.6931471805599453, 0.0))


@_elementwise
def asinh(x: Floats) -> Floats:
    """Inverse hyperbolic sine."""
    a = np.abs(x)
    result = _area(a, 1.0)
    result = _select(a < TINY, a, result)
    result = _select(a < INFINITY, result, a)
    return _select(x == x, _copysign(result, x), NAN)


@_elementwise
def acosh(x: Floats) -> Floats:
    """Inverse hyperbolic cosine; NaN below 1."""
    result = _select(x < INFINITY, _area(x, -1.0), x)
    return _select(x >= 1.0, result, NAN)


@_elementwise
def atanh(x: Floats) -> Floats:
    """Inverse hyperbolic tangent; infinite at -1 and 1, NaN beyond."""
    a = np.abs(x)
    inside = _select(a < 1.0, a, 0.0)
    quotient = _pair_quotient(_two_sum(1.0, inside), _two_sum(1.0, -inside))
    result = 0.5 * _ln_of_pair(quotient).high
    result = _select(a < TINY, a, result)
    result = _select(a == 1.0, INFINITY, result)
    return _select(a <= 1.0, _copysign(result, x), NAN)


# ---- Powers ----


@_elementwise
def pow(x: Floats, y: Floats) -> Floats:  # noqa: A001 - SQL's name
    """x to the power y; NaN for a negative base and a broken exponent."""
    a = np.abs(x)
    exponent = _select(y < 36893488147419103232.0, y, 36893488147419103232.0)
    exponent = _select(exponent > -36893488147419103232.0, exponent, -36893488147419103232.0)
    product = _pair_product(_ln_pair(a), Pair(exponent, 0.0))
    inside = np.abs(product.high) < 800.0
    high = _select(inside, product.high, _select(product.high > 0.0, 800.0, -800.0))
    e = _exponential(high, _select(inside, product.low, 0.0))
    result = _scale(_one_plus(e.y_high, e.y_low).high, e.exponent)

    extreme = (a == 0.0) | (a == INFINITY)
    grows = (y > 0.0) == (a > 1.0)
    result = _select(extreme, _select(grows, INFINITY, 0.0), result)
    whole = floor(y) == y
    odd = whole & (floor(0.5 * y) != 0.5 * y)
    negative = (_bits(x) >> 63) != 0
    result = _negate_if(negative & odd, result)
    result = _select((x < 0.0) & ~whole & (a < INFINITY), NAN, result)
    result = _select((x == x) & (y == y), result, NAN)
    return _select((x == 1.0) | (y == 0.0), 1.0, result)


@_elementwise
def cbrt(x: Floats) -> Floats:
    """Cube root; keeps the sign."""
    a = np.abs(x)
    subnormal = a < 2.2250738585072014e-308
    bits = _bits(_select(subnormal, a * 18014398509481984.0, a))
    biased = bits >> 52
    third = (biased * 21846) >> 16
    rest = biased - 3 * third
    m = _from_bits((bits & FRACTION_BITS) | ((rest + 1023) << 52))
    r = _horner(
        m,
        8.813725863433583e-05, -0.0023085352472706675, 0.024185983208285806, -0.13454106706053937, 0.5261731113397572,
        0.5871060605973989,
    )  # fmt: skip
    cube = r * r * r
    better = r * (cube + 2.0 * m) / (2.0 * cube + m)
    square = _product(better, better)
    whole = _pair_product(square, Pair(better, 0.0))
    residual = (m - whole.high) - whole.low
    root = better + residual / (3.0 * square.high)
    exponent = third + (1023 - 341) - np.where(subnormal, np.uint64(18), np.uint64(0))
    result = root * _from_bits(exponent << 52)
    result = _select((a > 0.0) & (a < INFINITY), result, a)
    return _select(x == x, _copysign(result, x), NAN)


# ---- Sine and its kin ----


class Angle(NamedTuple):
    """x = high + low + quadrant * pi / 2 (mod 2 pi)."""

    high: Floats
    low: Floats
    quadrant: Bits


def _reduce_near(x: Floats) -> Angle:
    shifted = x * 0.6366197723675814 + SHIFTER
    count = shifted - SHIFTER
    coarse = x - count * 1.5707963267341256
    second = _two_sum(coarse, -(count * 6.077100506303966e-11))
    third = _two_sum(second.high, -(count * 2.0222662487111665e-21))
    low = (second.low + third.low) - count * 8.4784276603689e-32
    angle = _fast_sum(third.high, low)
    return Angle(angle.high, angle.low, _bits(shifted) & 3)


TWO_OVER_PI = np.array(
    [
        0x00000000, 0x00000000, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041,
        0xFE5163AB, 0xDEBBC561, 0xB7246E3A, 0x424DD2E0, 0x06492EEA, 0x09D1921C, 0xFE1DEB1C, 0xB129A73E,
        0xE88235F5, 0x2EBB4484, 0xE99C7026, 0xB45F7E41, 0x3991D639, 0x835339F4, 0x9C845F8B, 0xBDF9283B,
        0x1FF897FF, 0xDE05980F, 0xEF2F118B, 0x5A0A6D1F, 0x6D367ECF, 0x27CB09B7, 0x4F463F66, 0x9E5FEA2D,
        0x7527BAC7, 0xEBE5F17B, 0x3D0739F7, 0x8A5292EA, 0x6BFB5FB1, 0x1F8D5D08, 0x56033046,
    ],
    np.uint64,
)  # fmt: skip


def _reduce_far(x: Floats) -> Angle:
    bits = _bits(x)
    position = ((bits >> 52) & 0x7FF) - 1013
    word = (position >> 5).view(np.int64)
    shift = 32 - (position & 31)
    mantissa = (bits & FRACTION_BITS) | 0x0010000000000000
    mantissa_low = mantissa & LOW_WORD
    mantissa_high = mantissa >> 32
    product: list[Bits] = []
    window: list[Bits] = []
    carry = np.zeros_like(bits)
    for i in range(6):
        pair = (TWO_OVER_PI[word + 5 - i] << 32) | TWO_OVER_PI[word + 6 - i]
        window.append((pair >> shift) & LOW_WORD)
        digit = mantissa_low * window[i] + carry
        product.append(digit & LOW_WORD)
        carry = digit >> 32
    carry = np.zeros_like(bits)
    for i in range(1, 6):
        digit = product[i] + mantissa_high * window[i - 1] + carry
        product[i] = digit & LOW_WORD
        carry = digit >> 32
    top = product[5]
    negative = (top >> 29) & 1
    quadrant = ((top >> 30) + negative) & 3
    flip = negative * LOW_WORD
    total = Pair(np.zeros_like(x), np.zeros_like(x))
    weight = 2.3283064365386963e-10
    for i in range(5, -1, -1):
        below = product[i - 1] >> 30 if i > 0 else np.zeros_like(bits)
        digit = (((product[i] << 2) | below) & LOW_WORD) ^ flip
        value = (_from_bits(digit | 0x4330000000000000) - 4503599627370496.0) * weight
        step = _fast_sum(total.high, value)
        total = Pair(step.high, total.low + step.low)
        weight = weight * 2.3283064365386963e-10
    turns = _fast_sum(total.high, total.low)
    angle = _pair_product(turns, Pair(1.5707963267948966, 6.123233995736766e-17))
    x_negative = (bits >> 63) != 0
    flips = (negative != 0) != x_negative
    return Angle(
        _negate_if(flips, angle.high),
        _negate_if(flips, angle.low),
        np.where(x_negative, (4 - quadrant) & 3, quadrant),
    )


def _reduce(x: Floats) -> Angle:
    """The far reduction only for the rows that need it."""
    angle = _reduce_near(x)
    rows = np.flatnonzero(~(np.abs(x) < 1048576.0))
    if len(rows) > 0:
        far = _reduce_far(x[rows])
        for part, replacement in zip(angle, far, strict=True):
            part[rows] = replacement
    return angle


def _sine_pair(high: Floats, low: Floats) -> Pair:
    z = high * high
    p = _horner(
        z, -7.578765347098644e-13, 1.6058368016715333e-10, -2.505210492276086e-08, 2.7557319214234506e-06,
        -0.00019841269841255156, 0.008333333333333323, -0.16666666666666666,
    )  # fmt: skip
    return _fast_sum(high, high * (z * p) + low * (1.0 - 0.5 * z))


def _cosine_pair(high: Floats, low: Floats) -> Pair:
    z = high * high
    p = _horner(
        z, -1.1359665928103432e-11, 2.0875723632113495e-09, -2.755731435506915e-07, 2.4801587289492176e-05,
        -0.0013888888888874142, 0.0416666666666666,
    )  # fmt: skip
    head = _fast_sum(1.0, -0.5 * z)
    return _fast_sum(head.high, head.low + (z * z * p - high * low))


@_elementwise
def sin(x: Floats) -> Floats:
    """Sine of x radians; NaN at the infinities."""
    angle = _reduce(x)
    sine = _sine_pair(angle.high, angle.low).high
    cosine = _cosine_pair(angle.high, angle.low).high
    result = _select((angle.quadrant & 1) != 0, cosine, sine)
    result = _negate_if((angle.quadrant & 2) != 0, result)
    result = _select(np.abs(x) < TINY, x, result)
    return _select(np.abs(x) < INFINITY, result, NAN)


@_elementwise
def cos(x: Floats) -> Floats:
    """Cosine of x radians; NaN at the infinities."""
    angle = _reduce(x)
    sine = _sine_pair(angle.high, angle.low).high
    cosine = _cosine_pair(angle.high, angle.low).high
    result = _select((angle.quadrant & 1) != 0, sine, cosine)
    result = _negate_if(((angle.quadrant + 1) & 2) != 0, result)
    return _select(np.abs(x) < INFINITY, result, NAN)


def _tangent(angle: Angle, quadrant: Bits) -> Floats:
    sine = _sine_pair(angle.high, angle.low)
    cosine = _cosine_pair(angle.high, angle.low)
    swap = (quadrant & 1) != 0
    upper = _select_pair(swap, cosine, sine)
    lower = _select_pair(swap, sine, cosine)
    return _negate_if(swap, _pair_quotient(upper, lower).high)


@_elementwise
def tan(x: Floats) -> Floats:
    """Tangent of x radians; NaN at the infinities."""
    angle = _reduce(x)
    tangent = _tangent(angle, angle.quadrant)
    result = _select(np.abs(x) < TINY, x, tangent)
    return _select(np.abs(x) < INFINITY, result, NAN)


@_elementwise
def cot(x: Floats) -> Floats:
    """Cotangent of x radians; infinite at 0, NaN at the infinities."""
    angle = _reduce(x)
    tangent = _tangent(angle, angle.quadrant + 1)
    result = _select(np.abs(x) < TINY, 1.0 / x, -tangent)
    return _select(np.abs(x) < INFINITY, result, NAN)


# ---- Inverse sine and its kin ----


def _arctangent(a: Floats, b: Number, behind: Booleans) -> Floats:
    flat = a <= 0.41421356237309503 * b
    steep = b < 0.41421356237309503 * a
    difference = _two_sum(a, -b)
    total = _two_sum(a, b)
    middle = ~(flat | steep)
    outer = _select(flat, a, -b)
    upper = _select(middle, difference.high, outer)
    upper_low = _select(middle, difference.low, 0.0)
    lower = _select(middle, total.high, _select(flat, b, a))
    lower_low = _select(middle, total.low, 0.0)
    quotient = upper / lower
    back = _product(quotient, lower)
    rest = ((upper - back.high) - back.low) + (upper_low - quotient * lower_low)
    quotient_low = _select(np.abs(quotient) > 1.1830521861667747e-271, rest / lower, 0.0)
    z = quotient * quotient
    p = _horner(
        z, -0.017920789795466307, 0.0380769888547199, -0.05039794244029394, 0.05847997810378537, -0.06663118896897963,
        0.07692061509913486, -0.09090897829507444, 0.11111110785903767, -0.1428571428024397, 0.19999999999954038,
        -0.333333333333332,
    )  # fmt: skip
    tail = quotient * (z * p) + quotient_low * (1.0 - z)
    end = _select(behind, 3.141592653589793, 0.0)
    diagonal = _select(behind, 2.356194490192345, 0.7853981633974483)
    base = _select(flat, end, _select(steep, 1.5707963267948966, diagonal))
    base_low = base * 3.8981718325193755e-17
    result = _fast_sum(base, _negate_if(behind, quotient))
    return result.high + (result.low + (base_low + _negate_if(behind, tail)))


@_elementwise
def atan(x: Floats) -> Floats:
    """Inverse tangent, in [-pi / 2, pi / 2]."""
    a = np.abs(x)
    bounded = _select(a < 1.2676506002282294e30, a, 1.2676506002282294e30)
    result = _arctangent(bounded, 1.0, np.zeros(x.shape, np.bool_))
    return _select(x == x, _copysign(result, x), NAN)


@_elementwise
def atan2(y: Floats, x: Floats) -> Floats:
    """The angle of the point (x, y), in [-pi, pi]."""
    a = np.abs(y)
    b = np.abs(x)
    y_infinite = a == INFINITY
    x_infinite = b == INFINITY
    any_infinite = y_infinite | x_infinite
    origin = (a == 0.0) & (b == 0.0)
    a = _select(any_infinite, _select(y_infinite, 1.0, 0.0), a)
    b = _select(any_infinite, _select(x_infinite, 1.0, 0.0), b)
    b = _select(origin, 1.0, b)
    exponent = _bits(_select(a > b, a, b)) >> 52
    exponent = np.where(exponent < 2045, exponent, np.uint64(2045))
    scale = _from_bits((2046 - exponent) << 52)
    result = _arctangent(a * scale, b * scale, (_bits(x) >> 63) != 0)
    return _select((x == x) & (y == y), _copysign(result, y), NAN)


class Arcsine(NamedTuple):
    """asin of the reduced argument is s + low."""

    small: Booleans
    s: Floats
    low: Floats


def _arcsine_tail(s: Floats, z: Floats) -> Floats:
    p = _horner(
        z, 0.0327023107902627, -0.0211169801934631, 0.021790848638403807, 0.003672094867236857, 0.010789347081288337,
        0.01139728804829167, 0.013981019191444385, 0.017351595442040135, 0.022372215909278428, 0.030381942675156853,
        0.04464285717528865, 0.07499999999970096, 0.16666666666666763,
    )  # fmt: skip
    return s * (z * p)


def _arcsine(a: Floats) -> Arcsine:
    small = a <= 0.5
    z = _select(small, a * a, 0.5 * (1.0 - a))
    root = np.sqrt(z)
    back = _product(root, root)
    rest = ((z - back.high) - back.low) / _select(root > 0.0, 2.0 * root, 1.0)
    s = _select(small, a, root)
    return Arcsine(small, s, _select(small, 0.0, rest) + _arcsine_tail(s, z))


@_elementwise
def asin(x: Floats) -> Floats:
    """Inverse sine; NaN outside [-1, 1]."""
    a = np.abs(x)
    part = _arcsine(a)
    total = _fast_sum(1.5707963267948966, -2.0 * part.s)
    large = total.high + (total.low + (6.123233995736766e-17 - 2.0 * part.low))
    result = _select(part.small, part.s + part.low, large)
    return _select(a <= 1.0, _copysign(result, x), NAN)


@_elementwise
def acos(x: Floats) -> Floats:
    """Inverse cosine, in [0, pi]; NaN outside [-1, 1]."""
    a = np.abs(x)
    part = _arcsine(a)
    negative = x < 0.0
    sign = _select(negative, 1.0, -1.0)
    factor = _select(part.small, sign, -2.0 * sign)
    outer = _select(negative, 3.141592653589793, 0.0)
    outer_low = _select(negative, 1.2246467991473532e-16, 0.0)
    base = _select(part.small, 1.5707963267948966, outer)
    base_low = _select(part.small, 6.123233995736766e-17, outer_low)
    total = _fast_sum(base, factor * part.s)
    return _select(a <= 1.0, total.high + (total.low + (base_low + factor * part.low)), NAN)


# ---- Gamma ----


class Gamma(NamedTuple):
    """gamma(a) = exp(stirling) / rising."""

    stirling: Pair
    rising: Pair


def _gamma_parts(a: Floats) -> Gamma:
    argument = Pair(a, np.zeros_like(a))
    rising = Pair(np.ones_like(a), np.zeros_like(a))
    for _ in range(12):
        up = argument.high < 12.0
        following = _pair_product(rising, argument)
        total = _two_sum(argument.high, 1.0)
        rising = _select_pair(up, following, rising)
        argument = _select_pair(up, Pair(total.high, total.low + argument.low), argument)
    inverse = 1.0 / argument.high
    z = inverse * inverse
    p = _horner(
        z, 0.17964437236883057, -0.029550653594771242, 0.00641025641025641, -0.0019175269175269176,
        0.0008417508417508417, -0.0005952380952380953, 0.0007936507936507937, -0.002777777777777778,
        0.08333333333333333,
    )  # fmt: skip
    logarithm = _ln_of_pair(argument)
    half = _two_sum(argument.high, -0.5)
    product = _pair_product(Pair(half.high, half.low + argument.low), logarithm)
    less = _two_sum(product.high, -argument.high)
    more = _two_sum(less.high, 0.9189385332046728)
    low = ((product.low - argument.low) + (less.low + more.low)) + (p * inverse - 3.8782941580672414e-17)
    return Gamma(_fast_sum(more.high, low), rising)


class HalfTurn(NamedTuple):
    """|sin(pi a)| as a pair, and whether the sine is negative."""

    magnitude: Pair
    negative: Booleans


def _half_turn(a: Floats) -> HalfTurn:
    whole = np.rint(a)
    rest = a - whole
    u = np.abs(rest)
    near = u <= 0.25
    angle = _pair_product(PI, Pair(_select(near, u, 0.5 - u), 0.0))
    sine = _sine_pair(angle.high, angle.low)
    cosine = _cosine_pair(angle.high, angle.low)
    odd = floor(0.5 * whole) != 0.5 * whole
    return HalfTurn(_select_pair(near, sine, cosine), odd != (rest < 0.0))


@_elementwise
def gamma(x: Floats) -> Floats:
    """The gamma function; NaN at the negative integers."""
    a = np.abs(x)
    clamped = _select(a < 200.0, a, 200.0)
    clamped = _select(clamped > 8.673617379884035e-19, clamped, 8.673617379884035e-19)
    parts = _gamma_parts(clamped)
    negative = x < 0.0
    turn = _half_turn(a)
    upper = _pair_product(PI, parts.rising)
    lower = _pair_product(turn.magnitude, Pair(clamped, 0.0))
    ratio = _pair_quotient(_select_pair(negative, upper, Pair(1.0, 0.0)), _select_pair(negative, lower, parts.rising))
    e = _exponential(_negate_if(negative, parts.stirling.high), _negate_if(negative, parts.stirling.low))
    mantissa = _pair_product(ratio, _one_plus(e.y_high, e.y_low))
    result = _scale(mantissa.high, e.exponent)
    result = _negate_if(negative & ~turn.negative, result)
    result = _select(a < 8.673617379884035e-19, 1.0 / x, result)
    pole = negative & (floor(x) == x)
    result = _select(pole, NAN, result)
    return _select(x == x, result, NAN)


@_elementwise
def lgamma(x: Floats) -> Floats:
    """ln |gamma(x)|; infinite at 0 and the negative integers."""
    a = np.abs(x)
    clamped = _select(a < 1.152921504606847e18, a, 1.152921504606847e18)
    clamped = _select(clamped > 8.673617379884035e-19, clamped, 8.673617379884035e-19)
    parts = _gamma_parts(clamped)
    rising = _ln_of_pair(parts.rising)
    total = _two_sum(parts.stirling.high, -rising.high)
    above = _fast_sum(total.high, total.low + (parts.stirling.low - rising.low))

    turn = _half_turn(clamped)
    lower = _pair_product(turn.magnitude, Pair(clamped, 0.0))
    pole = lower.high == 0.0
    ratio = _pair_quotient(PI, Pair(_select(pole, 1.0, lower.high), lower.low))
    reflected = _ln_of_pair(ratio)
    difference = _two_sum(reflected.high, -above.high)
    below = difference.high + (difference.low + (reflected.low - above.low))

    near_one = np.abs(x - 1.0) <= 0.03125
    near_two = np.abs(x - 2.0) <= 0.03125
    d = _select(near_one, x - 1.0, x - 2.0)
    at_one = (
        0.083353840546109, -0.09095401714582904, 0.1000994575127818, -0.11133426586956469, 0.12550966952474304,
        -0.1440498967688461, 0.1695571769974082, -0.20738555102867398, 0.27058080842778454, -0.40068563438653143,
        0.8224670334241132, -0.5772156649015329,
    )  # fmt: skip
    at_two = (
        2.050721277567069e-05, -4.492623673813314e-05, 9.945751278180853e-05, -0.00022315475845357939,
        0.0005096695247430425, -0.001192753911703261, 0.0028905103307415234, -0.007385551028673986,
        0.020580808427784546, -0.0673523010531981, 0.3224670334241132, 0.42278433509846713,
    )  # fmt: skip
    p = _horner(d, *(_select(near_one, one, two) for one, two in zip(at_one, at_two, strict=True)))

    logarithm = ln(a)
    result = _select(near_one | near_two, p * d + 0.0, above.high)
    result = _select(a > 2.8823037615171174e17, a * (logarithm - 1.0), result)
    result = _select(x < 0.0, below, result)
    result = _select(a < 8.673617379884035e-19, -logarithm, result)
    infinite = ((x < 0.0) & (floor(x) == x)) | (a == INFINITY)
    result = _select(infinite, INFINITY, result)
    return _select(x == x, result, NAN)
