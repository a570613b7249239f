"""From plain values to the narrowest chunk: frame of reference, greatest common divisor, constants, codes.

value = base + scale * stored.  Among the encodings of the smallest width the plain one (base 0, scale 1) is preferred,
then scale 1, because the less there is to decode, the less a program has to do.
"""

from __future__ import annotations

import math

import numpy as np

from gpudb.storage import column
from gpudb.storage.column import WIDE, Chunk, clear_nulls, pack_validity, padded_copy, padded_empty, wide_range

UNSIGNED = (np.dtype(np.uint8), np.dtype(np.uint16), np.dtype(np.uint32))
INT64 = np.dtype(np.int64)
SAMPLE_ROWS = 1024  # rows whose divisor is found before all are verified


def unsigned_dtype(greatest: int) -> np.dtype:
    """The smallest dtype for 0 .. greatest; int64 past 32 bits."""
    for dtype in UNSIGNED:
        if greatest <= np.iinfo(dtype).max:
            return dtype
    return INT64


def encode_exact(values: np.ndarray, present: np.ndarray | None, plain: bool = False) -> Chunk:
    """A chunk of integers, dates, timestamps, decimals, booleans or dictionary codes.

    values   (rows,) any integer dtype that int64 can hold, or WIDE; what lies under NULL is ignored
    present  (rows,) bool, or None when there is no NULL
    plain    never a base or scale: codes index tables as they are (their values are not negative)
    """
    rows = len(values)
    present, null_count = _nulls(present)
    if null_count == rows:
        return Chunk(rows, None, 0, 1, _validity(present), None, None, null_count)
    if present is not None:  # a present value under every NULL leaves range and divisor as they are
        values = np.where(present, values, values[int(present.argmax())])
    if values.dtype == WIDE:
        low, high = wide_range(values)
        if column.INT64[0] <= low and high <= column.INT64[1]:
            values = values["low"].view(np.int64)
    else:
        low, high = int(values.min()), int(values.max())
    if low == high:
        return Chunk(rows, None, low, 1, _validity(present), low, high, null_count)
    if values.dtype == WIDE:
        base, scale, stored = 0, 1, padded_copy(values, WIDE)
    else:
        base, scale, dtype = (0, 1, unsigned_dtype(high)) if plain else _choose(values, low, high)
        stored = _store(values, base, scale, dtype)
    if present is not None:
        clear_nulls(stored, present)
    return Chunk(rows, stored, base, scale, _validity(present), low, high, null_count)


def encode_float(values: np.ndarray, present: np.ndarray | None) -> Chunk:
    """A chunk of REAL or DOUBLE: the values as they are, with one NaN pattern and zero bytes under NULL."""
    rows = len(values)
    present, null_count = _nulls(present)
    stored = padded_copy(values, values.dtype)
    head = stored[:rows]
    if present is not None:
        head[~present] = 0.0
    if null_count == rows:
        return Chunk(rows, stored, 0, 1, _validity(present), None, None, null_count)
    inhabited = head if present is None else head[present]
    low, high = float(inhabited.min()), float(inhabited.max())  # NumPy's min and max pass a NaN on
    if math.isnan(high):
        nan = np.isnan(head)
        head[nan] = np.nan
        numbers = inhabited[~np.isnan(inhabited)]
        low = float(numbers.min()) if len(numbers) else math.nan
        high = math.nan
    return Chunk(rows, stored, 0, 1, _validity(present), low + 0.0, high + 0.0, null_count)  # + 0.0: no -0.0


def _nulls(present: np.ndarray | None) -> tuple[np.ndarray | None, int]:
    """(present or None when nothing is NULL, number of NULLs)."""
    if present is None:
        return None, 0
    null_count = len(present) - int(np.count_nonzero(present))
    return (present if null_count else None), null_count


def _validity(present: np.ndarray | None) -> np.ndarray | None:
    return None if present is None else pack_validity(present)


def _choose(values: np.ndarray, low: int, high: int) -> tuple[int, int, np.dtype]:
    """(base, scale, dtype) of the narrowest encoding of values in low .. high."""
    plain = unsigned_dtype(high) if low >= 0 else INT64
    framed = unsigned_dtype(high - low)
    narrowest = min(plain.itemsize, framed.itemsize)
    if narrowest > 1 and high - low < 1 << 63:
        divisor = _divisor(values, low)
        divided = unsigned_dtype((high - low) // divisor)
        if divided.itemsize < narrowest:
            return low, divisor, divided
    if plain.itemsize == narrowest:
        return 0, 1, plain
    return low, 1, framed


def _divisor(values: np.ndarray, low: int) -> int:
    """The greatest common divisor of values - low (not all zero, all below 2**63)."""
    step = max(1, len(values) // SAMPLE_ROWS)
    divisor = int(np.gcd.reduce(values[::step].astype(np.int64) - low))
    if divisor == 1:
        return 1
    offsets = values.astype(np.int64) - low
    if divisor == 0:  # all samples equal low
        return int(np.gcd.reduce(offsets))
    while divisor > 1:
        wrong = offsets[(offsets // divisor) * divisor != offsets]
        if len(wrong) == 0:
            return divisor
        divisor = math.gcd(divisor, int(np.gcd.reduce(wrong[:SAMPLE_ROWS])))
    return 1


def _store(values: np.ndarray, base: int, scale: int, dtype: np.dtype) -> np.ndarray:
    """(values - base) / scale in `dtype`, padded.  Narrowing first and subtracting in the narrow type is the same
    number modulo its width, and 3x as fast as subtracting in 64 bits."""
    if scale == 1:
        stored = padded_copy(values, dtype)
        if base:
            stored[: len(values)] -= np.array(base & ((1 << 8 * dtype.itemsize) - 1), dtype=dtype)
        return stored
    stored = padded_empty(len(values), dtype)
    quotients = values.astype(np.int64)
    quotients -= base
    quotients //= scale
    np.copyto(stored[: len(values)], quotients, casting="unsafe")
    return stored
