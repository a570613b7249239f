"""Loading and converting: columns into registers, one register type into another."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpudb import time_zones
from gpudb.opcodes.table import ALL, CODES, R, block_opcode, opcode

Array = Any

CONVERSIONS = [
    *((R.U32, t) for t in (R.MASK, R.U8, R.U16, R.I32, R.I64)),
    *((R.I32, t) for t in (R.MASK, R.U8, R.U16, R.U32, R.I64, R.I128)),
    *((R.I64, t) for t in (R.MASK, R.U8, R.U16, R.U32, R.I32, R.I128)),
    *((R.I128, t) for t in (R.MASK, R.I32, R.I64)),
    *((R.F32, t) for t in (R.MASK, R.I32, R.I64, R.I128, R.F64)),
    *((R.F64, t) for t in (R.MASK, R.U8, R.U16, R.U32, R.I32, R.I64, R.I128, R.F32)),
    (R.MASK, R.I32),
    (R.U8, R.U32),
    (R.U16, R.U32),
    (R.U8, R.I32),
    (R.U16, R.I32),
]


@opcode("{out} = {x}", CONVERSIONS, cpp="convert(x, TypeTag<Out>())")
def Convert(x: Array) -> Array:
    """Change of register type; the value fits (proven or checked before), integers to floats round to nearest."""
    return x


@opcode(
    "{out} = round({x})",
    [(t, f) for t in (R.I32, R.I64, R.I128) for f in (R.F32, R.F64)],
    cpp="round_to_integer(x, TypeTag<Out>())",
)
def RoundToInteger(x: Array) -> Array:
    """Nearest integer, ties to even, as DuckDB casts; 0 where it does not fit (that is checked before)."""
    with np.errstate(all="ignore"):
        return np.rint(np.asarray(x, np.float64))


@opcode("{out} = {x} / {divisor}", [(R.F64, R.I128, R.I128)], cpp="float64_of_ratio(x, divisor)", forms=("vs",))
def Ratio(x: Array, divisor: Array) -> Array:
    """An integer divided by a positive one, rounded once: a DECIMAL as a double."""
    whole = int(divisor)
    return np.array([int(v) / whole for v in x], np.float64)


@opcode(
    "{out} = {base} + {scale} * {stored}",
    [(o, s, o, o) for o in (R.I32, R.I64) for s in CODES],
    cpp="wrapping_add(base, scaled(scale, stored))",
    forms=("vss",),
)
def Decode(stored: Array, base: Array, scale: Array) -> Array:
    """A narrow stored value back to its SQL value; base and scale differ from row group to row group."""
    with np.errstate(all="ignore"):
        return base + scale * stored.astype(np.asarray(base).dtype)


@opcode(
    "{out} = {base} + {scale} * {stored} where {keep}, else 0",
    [(R.I64, s, R.I64, R.I64, R.MASK) for s in CODES],
    cpp="keep ? wrapping_add(base, scaled(scale, stored)) : Out(0)",
    forms=("vssv",),
)
def DecodeKept(stored: Array, base: Array, scale: Array, keep: Array) -> Array:
    """Decode and Keep in one: a term of a sum straight from its column."""
    with np.errstate(all="ignore"):
        return np.where(np.asarray(keep) != 0, base + scale * stored.astype(np.int64), 0)


@opcode("{out} = high word of {x}", [(R.I64, R.I128)], cpp="int64(x >> 64)")
def HighWord(x: Array) -> Array:
    """The upper 64 bits, signed: the first of two order words."""
    return np.array([int(v) >> 64 for v in x], np.int64)


@opcode("{out} = low word of {x}", [(R.I64, R.I128)], cpp="int64(uint64(x) ^ 0x8000000000000000ull)")
def LowWord(x: Array) -> Array:
    """The lower 64 bits with their top bit flipped: the second of two order words."""
    return np.array([((int(v) & ((1 << 64) - 1)) - (1 << 63)) for v in x], np.int64)


@opcode(
    "{out} = {first_day} + ({stored} * {scale} + {rest}) // day",
    [(R.I32, s, R.F64, R.F64, R.I32) for s in CODES],
    cpp="wrapping_add(first_day, int32((float_of_code(stored) * scale + rest) / 86400000000.0))",
    forms=("vsss",),
)
def StoredDay(stored: Array, scale: Array, rest: Array, first_day: Array) -> Array:
    """The day of a stored timestamp, without decoding it: doubles are exact below 2**52 microseconds (142 years) a chunk.

    A division of doubles is SIMD code, one of 64-bit integers is not: 2 ns a row less.  What is divided is not negative, so
    that cutting is rounding down.
    """
    days = (stored.astype(np.float64) * scale + rest) / 86_400_000_000.0
    return first_day + days.astype(np.int32)


@opcode("{out} = {value}", [(t, t) for t in ALL], cpp="value", forms=("v", "s"))
def Copy(value: Array) -> Array:
    """A register, column or constant into a register."""
    return value


@opcode(
    "{out} = {table}[{index}]",
    [(o, i, o) for o in (R.MASK, R.U8, R.U16, R.U32, R.I32, R.I64, R.F64) for i in CODES],
    cpp="table[index]",
    forms=("vp",),
)
def Lookup(index: Array, table: Array) -> Array:
    """One entry of a lookup table a row; the table has an entry for every index that can occur, NULL rows' 0 too."""
    return table[index]


@opcode(
    "{out} = {x} // {divisor}",
    [(R.U32, t, R.U32) for t in CODES],
    cpp="uint32(x) / divisor",
    forms=("vs",),
)
def DivideCode(x: Array, divisor: Array) -> Array:
    """Quotient of an unsigned code: reduces a stored timestamp to days before a lookup."""
    return x.astype(np.uint32) // divisor


@opcode("{out} = offset of {table} at {x}", [(R.I64, R.I64, R.I64)], cpp="zone_offset(x, table)", forms=("vp",))
def ZoneOffset(x: Array, table: Array) -> Array:
    """Microseconds that a time zone is ahead of UTC at a time, by a bisected table (`gpudb.time_zones.Zone.table`).

    The table's length is a power of two, so that all rows take the same steps; 0 at infinite times.
    """
    return time_zones.offsets(x, table)


@block_opcode("{out} = validity bits of {column}", [(R.MASK,)])
def ExpandValidity(out: Array, column: Array) -> Array:
    """A mask from a chunk's validity bits (bit i % 8 of byte i // 8).  No lane waits for another."""


@block_opcode("{out} = row numbers", [(R.I64,)])
def RowNumber(out: Array) -> Array:
    """The row's number in its source, from 0.  No lane waits for another."""


@block_opcode("{out} = {column}[{rows}]", [(t, t, R.U32) for t in ALL])
def Gather(out: Array, column: Array, rows: Array) -> Array:
    """Values of an intermediate column at row numbers held in a register.  No lane waits for another."""


@block_opcode("{out} = key word {word} of group {rows}", [(R.I64, R.U32)])
def GroupKey(out: Array, rows: Array, word: Array) -> Array:
    """One key word of the groups (of a hash table) named by a register.  No lane waits for another."""


@block_opcode("{out} = word {word} of group {rows}", [(R.I64, R.U32)])
def GroupWord(out: Array, rows: Array, word: Array) -> Array:
    """One accumulator (or key) word of the groups named by a register.  No lane waits for another."""


@block_opcode("fail with message {message} where {bad} and {alive}")
def Fail(bad: Array, alive: Array, message: Array) -> Array:
    """Record the first failing row by atomic minimum over (row, instruction): the same error on every device."""
