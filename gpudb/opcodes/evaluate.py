"""What an elementwise variant computes, by its NumPy body: registers as arrays, 128-bit integers as Python's."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpudb.opcodes.table import R, Variant
from gpudb.types import RegisterType

Array = Any  # NumPy arrays of any dtype


def wrapped(values: Array, bits: int = 128) -> Array:
    """Python integers in two's complement of so many bits."""
    half = 1 << (bits - 1)
    out = np.empty(len(values), object)
    out[:] = [((int(v) + half) & ((half << 1) - 1)) - half for v in values]
    return out


def cast(values: Array, kind: RegisterType, rows: int) -> Array:
    """(rows,) of a register type from what a body gave: integers wrap, floats round to nearest even."""
    values = np.broadcast_to(np.asarray(values), (rows,))
    if kind is R.I128:
        return wrapped(values)
    if values.dtype != object:
        return values.astype(kind.dtype)
    return np.array([int(v) & ((1 << 64) - 1) for v in values], np.uint64).astype(kind.dtype)


def rounded_to(kind: RegisterType, values: Array) -> Array:
    """Whole floats as integers; 0 where they do not fit, and for NaN."""
    if kind is R.I128:
        out = np.empty(len(values), object)
        out[:] = [int(v) if -(2.0**127) <= v < 2.0**127 else 0 for v in values.tolist()]
        return out
    half = 2.0 ** (kind.width * 8 - 1)
    return np.where((values >= -half) & (values < half), values, 0.0).astype(kind.dtype)


def from_order_words(kind: RegisterType, words: Array) -> Array:
    """The inverse of the opcode OrderWord."""
    if not kind.is_float:
        return words
    return np.where(words < 0, words ^ np.int64((1 << 63) - 1), words).view(np.float64).astype(kind.dtype)


def evaluate(variant: Variant, values: list[Array], rows: int) -> Array:
    """(rows,) of the variant's result: its body over vectors (rows,), constants () and lookup tables."""
    out = variant.signature[0]
    if rows == 0:
        return np.empty(0, out.dtype)
    if ":" in variant.opcode.name:  # bodies of SQL functions expect one value a row, of constants too
        values = [np.broadcast_to(value, (rows,)) for value in values]
    with np.errstate(all="ignore"):
        result = variant.opcode.body(*values)
        match variant.opcode.name:
            case "RoundToInteger":
                return rounded_to(out, result)
            case "FromOrderWord":
                result = from_order_words(out, result)
            case "Convert" if variant.signature[1] is R.I128 and out.is_float:
                result = np.array([float(v) for v in result], np.float64)  # to REAL by way of DOUBLE
        return cast(result, out, rows)
