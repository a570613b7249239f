"""Comparisons.  Floats use the total order of DuckDB: NaN is greatest and equals itself, -0.0 equals 0.0."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpudb.opcodes.table import FLOATS, ORDERED, R, opcode, same

Array = Any
COMPARED = (R.U32, R.I32, R.I64, R.I128, R.F32, R.F64)


def _is_float(x: Array) -> bool:
    return bool(np.asarray(x).dtype.kind == "f")


def _equal(left: Array, right: Array) -> Array:
    if _is_float(left):
        return (left == right) | (np.isnan(left) & np.isnan(right))
    return np.asarray(left == right, bool)


def _less(left: Array, right: Array) -> Array:
    if _is_float(left):
        return (left < right) | (~np.isnan(left) & np.isnan(right))
    return np.asarray(left < right, bool)


def _mask(x: Array) -> Array:
    return np.asarray(x).astype(np.uint8)


@opcode("{out} = {left} = {right}", same(COMPARED, 2, R.MASK), cpp="equal(left, right)")
def Eq(left: Array, right: Array) -> Array:
    """Equal."""
    return _mask(_equal(left, right))


@opcode("{out} = {left} <> {right}", same(COMPARED, 2, R.MASK), cpp="!equal(left, right)")
def Ne(left: Array, right: Array) -> Array:
    """Not equal."""
    return _mask(~_equal(left, right))


@opcode("{out} = {left} < {right}", same(COMPARED, 2, R.MASK), cpp="less(left, right)")
def Lt(left: Array, right: Array) -> Array:
    """Less."""
    return _mask(_less(left, right))


@opcode("{out} = {left} <= {right}", same(COMPARED, 2, R.MASK), cpp="!less(right, left)")
def Le(left: Array, right: Array) -> Array:
    """Less or equal."""
    return _mask(~_less(right, left))


@opcode("{out} = {left} > {right}", same(COMPARED, 2, R.MASK), cpp="less(right, left)")
def Gt(left: Array, right: Array) -> Array:
    """Greater."""
    return _mask(_less(right, left))


@opcode("{out} = {left} >= {right}", same(COMPARED, 2, R.MASK), cpp="!less(left, right)")
def Ge(left: Array, right: Array) -> Array:
    """Greater or equal."""
    return _mask(~_less(left, right))


@opcode(
    "{out} = {x} in [{low}, {high}]",
    same(ORDERED, 3, R.MASK),
    cpp="Mask(!less(x, low)) & Mask(!less(high, x))",
    forms=("vss",),
)
def InRange(x: Array, low: Array, high: Array) -> Array:
    """Closed range test; low > high means never.  Every comparison of a stored column with a constant becomes one."""
    return _mask(~_less(x, low) & ~_less(high, x))


@opcode(
    "{out} = {x} not in [{low}, {high}]",
    same(ORDERED, 3, R.MASK),
    cpp="Mask(less(x, low)) | Mask(less(high, x))",
    forms=("vss",),
)
def NotInRange(x: Array, low: Array, high: Array) -> Array:
    """The negation of InRange."""
    return _mask(_less(x, low) | _less(high, x))


@opcode("{out} = {x} is NaN", same(FLOATS, 1, R.MASK), cpp="x != x")
def IsNan(x: Array) -> Array:
    """Is it NaN?"""
    return _mask(np.isnan(x))


@opcode("{out} = {x} with one NaN", same(FLOATS, 1), cpp="one_nan(x)")
def OneNan(x: Array) -> Array:
    """Any NaN becomes the positive quiet one without payload: what leaves the machine is the same on every device."""
    return np.where(np.isnan(x), x.dtype.type("nan"), x)


@opcode(
    "{out} = order word of {x}",
    [(R.I64, t) for t in (R.MASK, R.U8, R.U16, R.U32, R.I32, R.I64, R.F32, R.F64)],
    cpp="order_word(x)",
)
def OrderWord(x: Array) -> Array:
    """A signed 64-bit word that sorts as the value does; NaN is the greatest, -0.0 and 0.0 give one word."""
    x = np.asarray(x)
    if x.dtype.kind != "f":
        return x.astype(np.int64)
    x = x.astype(np.float64)
    x = np.where(np.isnan(x), np.float64("nan"), x + 0.0)
    bits = np.where(np.isnan(x), np.int64(0x7FF8000000000000), x.view(np.int64))
    return np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits)


@opcode(
    "{out} = value of order word {x}",
    [(t, R.I64) for t in (R.MASK, R.U32, R.I32, R.I64, R.F32, R.F64)],
    cpp="from_order_word(x, TypeTag<Out>())",
)
def FromOrderWord(x: Array) -> Array:
    """The inverse of OrderWord; the device `reference` casts by the variant's output type."""
    return x


@opcode("{out} = ~{x}", same((R.I64,), 1), cpp="~x")
def BitNot(x: Array) -> Array:
    """Bitwise complement: reverses the order of order words."""
    return ~x
