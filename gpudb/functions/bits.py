"""Bit operations on integers, which are two's complement of the type's width."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpudb.functions.registry import scalar, typed_macro

Array = Any
SAME = "; ".join(f"{kind}, {kind} -> {kind}" for kind in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"))


@scalar(SAME, cpp="x & y", aliases=("&",))
def bit_and(x: Array, y: Array) -> Array:
    """Bits set in both: the operator &.

    >>> sql("SELECT 12 & 10")
    8
    """
    return x & y


@scalar(SAME, cpp="x | y", aliases=("|",))
def bit_or(x: Array, y: Array) -> Array:
    """Bits set in either: the operator |.

    >>> sql("SELECT 12 | 10")
    14
    """
    return x | y


@scalar(SAME, cpp="x ^ y", aliases=("xor",))
def bit_xor(x: Array, y: Array) -> Array:
    """Bits set in one of the two.

    >>> sql("SELECT xor(12, 10)")
    6
    """
    return x ^ y


@scalar(
    "TINYINT -> TINYINT; SMALLINT -> SMALLINT; INTEGER -> INTEGER; BIGINT -> BIGINT; HUGEINT -> HUGEINT",
    cpp="~x",
    aliases=("~",),
)
def bit_not(x: Array) -> Array:
    """Every bit the other way: the operator ~.

    >>> sql("SELECT ~5")
    -6
    """
    return ~x


SHIFT_FAILS = "left shift overflows, or of or by a negative number"


def _left_fits(x: Array, count: Array, bits: int) -> Array:
    """Nothing negative, and no set bit shifted into or past the sign."""
    if np.asarray(x).dtype == object:
        fits = np.frompyfunc(
            lambda one, by: by >= 0 and one >= 0 and (one == 0 or by < 128 and one << by < 1 << 127), 2, 1
        )
        return np.asarray(fits(x, count), np.bool_)
    room = np.clip(count, 0, bits - 1)
    return (
        (count >= 0)
        & (x >= 0)
        & ((x == 0) | ((count < bits) & (x <= np.asarray(x).dtype.type((1 << (bits - 1)) - 1) >> room)))
    )


def _shift_left(x: Array, count: Array) -> Array:
    if np.asarray(x).dtype == object:
        half, whole = 1 << 127, 1 << 128
        moved = np.frompyfunc(lambda one, by: ((one << by) + half) % whole - half if 0 <= by < 128 else 0, 2, 1)
        return moved(x, count)
    bits = np.asarray(x).dtype.itemsize * 8
    with np.errstate(all="ignore"):
        return np.where((count >= 0) & (count < bits), x << np.clip(count, 0, bits - 1), 0)


def _add_shift_left(kind: str, bits: int, more: bool) -> None:
    """One overload: they differ in where a bit reaches the sign."""

    def shift_left(x: Array, count: Array) -> Array:
        """Bits moved up: the operator <<.  Fails where a bit would reach the sign, or a number is negative.

        >>> sql("SELECT 3 << 2")
        12
        """
        return _shift_left(x, count)

    def fits(x: Array, count: Array) -> Array:
        return _left_fits(x, count, bits)

    scalar(
        f"{kind}, {kind} -> {kind}",
        cpp="shift_left(x, count)",
        aliases=() if more else ("<<",),
        more=more,
        domain=(f"shift_left_fits(x, count, {bits})", fits, SHIFT_FAILS),
    )(shift_left)


_add_shift_left("INTEGER", 32, more=False)
_add_shift_left("BIGINT", 64, more=True)
_add_shift_left("SMALLINT", 16, more=True)
_add_shift_left("TINYINT", 8, more=True)
_add_shift_left("HUGEINT", 128, more=True)


def _shift_right(x: Array, count: Array, bits: int) -> Array:
    return np.where((count >= 0) & (count < bits), x >> np.clip(count, 0, bits - 1), 0)


@scalar("INTEGER, INTEGER -> INTEGER", cpp="shift_right(x, count, 32)", aliases=(">>",))
def shift_right(x: Array, count: Array) -> Array:
    """Bits moved down, the sign staying: the operator >>.  0 where the count is negative or the type's width.

    >>> sql("SELECT 12 >> 2")
    3
    """
    return _shift_right(x, count, 32)


@scalar("BIGINT, BIGINT -> BIGINT", cpp="shift_right(x, count, 64)", name="shift_right", more=True)
def _shift_right_64(x: Array, count: Array) -> Array:
    return _shift_right(x, count, 64)


@scalar("SMALLINT, SMALLINT -> SMALLINT", cpp="shift_right(x, count, 16)", name="shift_right", more=True)
def _shift_right_16(x: Array, count: Array) -> Array:
    return _shift_right(x, count, 16)


@scalar("TINYINT, TINYINT -> TINYINT", cpp="shift_right(x, count, 8)", name="shift_right", more=True)
def _shift_right_8(x: Array, count: Array) -> Array:
    return _shift_right(x, count, 8)


def _count_bits(x: Array) -> Array:
    return np.bitwise_count(np.ascontiguousarray(x).view(f"u{np.asarray(x).dtype.itemsize}"))


@scalar("INTEGER -> TINYINT; BIGINT -> TINYINT", cpp="count_bits(x)", bounds=(0, 64))
def bit_count(x: Array) -> Array:
    """Number of set bits, of a negative number's two's complement too.

    >>> sql("SELECT bit_count(255)")
    8
    """
    return _count_bits(x)


@scalar("HUGEINT -> SMALLINT", cpp="count_bits(x)", bounds=(0, 128), name="bit_count", more=True)
def _count_wide_bits(x: Array) -> Array:
    return np.vectorize(lambda one: (int(one) & (1 << 128) - 1).bit_count(), otypes=[np.int32])(np.asarray(x, object))


for _kind, _bits in (("TINYINT", 0xFF), ("SMALLINT", 0xFFFF)):
    typed_macro("bit_count", f"{_kind} -> TINYINT", "x", f"bit_count(CAST(x AS INTEGER) & {_bits})")
