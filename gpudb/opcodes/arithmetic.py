"""Arithmetic on registers.  Integer results wrap: `emit` proves the range, or checks it first and `Fail`s."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpudb.opcodes.table import FLOATS, INTEGERS, R, opcode, same

Array = Any
NUMBERS = (*INTEGERS, *FLOATS)


def _wrapping(function: Any, *arrays: Array) -> Array:
    """Apply with two's complement wrap and without NumPy's warnings."""
    with np.errstate(all="ignore"):
        return function(*arrays)


@opcode("{out} = {left} + {right}", same(NUMBERS, 2), cpp="wrapping_add(left, right)")
def Add(left: Array, right: Array) -> Array:
    """Sum; integers wrap."""
    return _wrapping(np.add, left, right)


@opcode("{out} = {left} - {right}", same(NUMBERS, 2), cpp="wrapping_subtract(left, right)", forms=("vv", "vs", "sv"))
def Subtract(left: Array, right: Array) -> Array:
    """Difference; integers wrap."""
    return _wrapping(np.subtract, left, right)


@opcode("{out} = {left} * {right}", same(NUMBERS, 2), cpp="wrapping_multiply(left, right)")
def Multiply(left: Array, right: Array) -> Array:
    """Product; integers wrap."""
    return _wrapping(np.multiply, left, right)


@opcode("{out} = {left} / {right}", same(FLOATS, 2), cpp="left / right", forms=("vv", "vs", "sv"))
def Divide(left: Array, right: Array) -> Array:
    """IEEE quotient; x / 0 is an infinity or NaN here, SQL's NULL is made by `emit`."""
    return _wrapping(np.divide, left, right)


@opcode("{out} = {left} // {right}", same(INTEGERS, 2), cpp="truncated_quotient(left, right)", forms=("vv", "vs", "sv"))
def IntegerDivide(left: Array, right: Array) -> Array:
    """Quotient rounded towards zero; 0 where the divisor is 0, and the dividend wraps for lowest // -1."""
    return _truncated(left, right)[0]


@opcode("{out} = {left} % {right}", same(INTEGERS, 2), cpp="truncated_remainder(left, right)", forms=("vv", "vs", "sv"))
def Modulo(left: Array, right: Array) -> Array:
    """Remainder with the sign of the dividend; 0 where the divisor is 0."""
    return _truncated(left, right)[1]


def _truncated(left: Array, right: Array) -> tuple[Array, Array]:
    left, right = np.broadcast_arrays(left, right)
    if left.dtype == object:
        pairs = [_truncated_python(int(a), int(b)) for a, b in zip(left, right, strict=True)]
        quotients, remainders = np.empty(len(pairs), object), np.empty(len(pairs), object)
        quotients[:] = [p[0] for p in pairs]
        remainders[:] = [p[1] for p in pairs]
        return quotients, remainders
    with np.errstate(all="ignore"):
        safe = np.where((right == 0) | (right == -1), right.dtype.type(1), right)
        remainder = np.fmod(left, safe)
        quotient = (left - remainder) // safe
        quotient = np.where(right == -1, -left, quotient)
        zero = left.dtype.type(0)
        return np.where(right == 0, zero, quotient), np.where((right == 0) | (right == -1), zero, remainder)


def _truncated_python(a: int, b: int) -> tuple[int, int]:
    if b == 0:
        return 0, 0
    quotient = abs(a) // abs(b)
    quotient = quotient if (a < 0) == (b < 0) else -quotient
    return quotient, a - quotient * b


@opcode("{out} = fmod({left}, {right})", same(FLOATS, 2), cpp="float_remainder(left, right)", forms=("vv", "vs", "sv"))
def FloatModulo(left: Array, right: Array) -> Array:
    """C's fmod: exact, with the sign of the dividend."""
    return _wrapping(np.fmod, left, right)


@opcode("{out} = -{x}", same(NUMBERS, 1), cpp="wrapping_negate(x)")
def Negate(x: Array) -> Array:
    """Negation; the lowest integer wraps to itself."""
    return _wrapping(np.negative, x)


@opcode("{out} = |{x}|", same(NUMBERS, 1), cpp="absolute(x)")
def Absolute(x: Array) -> Array:
    """Magnitude; the lowest integer wraps to itself."""
    return _wrapping(np.abs, x)


@opcode("{out} = {left} + {right} overflows", same((R.I64, R.I128), 2, R.MASK), cpp="add_overflows(left, right)")
def AddOverflows(left: Array, right: Array) -> Array:
    """Would Add wrap?"""
    return _overflows(left, right, lambda a, b: a + b)


@opcode(
    "{out} = {left} - {right} overflows",
    same((R.I64, R.I128), 2, R.MASK),
    cpp="subtract_overflows(left, right)",
    forms=("vv", "vs", "sv"),
)
def SubtractOverflows(left: Array, right: Array) -> Array:
    """Would Subtract wrap?"""
    return _overflows(left, right, lambda a, b: a - b)


@opcode("{out} = {left} * {right} overflows", same((R.I64, R.I128), 2, R.MASK), cpp="multiply_overflows(left, right)")
def MultiplyOverflows(left: Array, right: Array) -> Array:
    """Would Multiply wrap?"""
    return _overflows(left, right, lambda a, b: a * b)


def _overflows(left: Array, right: Array, function: Any) -> Array:
    left, right = np.broadcast_arrays(left, right)
    bits = 128 if left.dtype == object else left.dtype.itemsize * 8
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    exact = (function(int(a), int(b)) for a, b in zip(left.tolist(), right.tolist(), strict=True))
    return np.fromiter((not low <= value <= high for value in exact), np.uint8, len(left))


@opcode("{out} = {left} & {right}", same((R.I32, R.I64, R.I128), 2), cpp="left & right")
def BitAnd(left: Array, right: Array) -> Array:
    """Bitwise and."""
    return left & right


@opcode("{out} = {left} | {right}", same((R.I32, R.I64, R.I128), 2), cpp="left | right")
def BitOr(left: Array, right: Array) -> Array:
    """Bitwise or."""
    return left | right


@opcode("{out} = {left} ^ {right}", same((R.I32, R.I64, R.I128), 2), cpp="left ^ right")
def BitXor(left: Array, right: Array) -> Array:
    """Bitwise exclusive or."""
    return left ^ right


@opcode("{out} = {x} >> {count}", same((R.I64,), 2), cpp="x >> count", forms=("vs",))
def ShiftRight(x: Array, count: Array) -> Array:
    """Arithmetic shift: the floor of x / 2**count."""
    return x >> count


@opcode("{out} = floor({x} / {divisor})", same((R.I64,), 2), cpp="floor_quotient(x, divisor)", forms=("vs",))
def FloorDivide(x: Array, divisor: Array) -> Array:
    """Quotient by a positive constant, rounded down: the day of a timestamp."""
    return x // divisor


@opcode("{out} = round({x}) half to even", same((R.F64,), 1), cpp="exact_rint(x)")
def RoundEven(x: Array) -> Array:
    """Nearest whole number, ties to even."""
    return np.rint(x)


@opcode("{out} = round({x}) half away from zero", same((R.F64,), 1), cpp="round_away(x)")
def RoundAway(x: Array) -> Array:
    """Nearest whole number, ties away from zero."""
    truncated = np.trunc(x)
    with np.errstate(all="ignore"):
        return np.where(np.abs(x - truncated) >= 0.5, truncated + np.copysign(1.0, x), truncated)


@opcode("{out} = {x} / {divisor} rounded", same((R.I64, R.I128), 2), cpp="round_half_away(x, divisor)", forms=("vs",))
def DivideRounded(x: Array, divisor: Array) -> Array:
    """Quotient by a positive constant, rounded half away from zero: how a DECIMAL loses digits."""
    values = [_round_half_away(int(v), int(divisor)) for v in np.asarray(x).tolist()]
    out = np.empty(len(values), np.asarray(x).dtype)
    out[:] = values
    return out


def _round_half_away(x: int, divisor: int) -> int:
    quotient = (abs(x) * 2 + divisor) // (2 * divisor)
    return quotient if x >= 0 else -quotient


@opcode(
    "{out} = {accumulated} + {code} * {stride}",
    [(R.U32, R.U32, t, R.U32) for t in (R.U8, R.U16, R.U32)] + [(R.I64, R.I64, R.I64, R.I64)],
    cpp="wrapping_add(accumulated, wrapping_multiply(Out(code), stride))",
    forms=("vvs",),
)
def MultiplyAdd(accumulated: Array, code: Array, stride: Array) -> Array:
    """Mixed-radix step: packs several keys into one index or key word."""
    with np.errstate(all="ignore"):
        return accumulated + code.astype(accumulated.dtype) * stride


@opcode("{out} = sqrt({x})", same((R.F64,), 1), cpp="exact_sqrt(x)")
def SquareRoot(x: Array) -> Array:
    """IEEE square root."""
    return _wrapping(np.sqrt, x)
