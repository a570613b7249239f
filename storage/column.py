"""A chunk: consecutive rows of one column, encoded narrowly, with its zone map; and padded, aligned arrays to hold it.

Kernels read whole tiles, so every buffer is readable, and zero, up to the next multiple of `TILE_ROWS` rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from gpudb.record import record

TILE_ROWS = 4096  # a multiple of every device's tile: buffers are padded to it
ALIGNMENT = 64  # bytes; a cache line, and one AVX-512 register

WIDE = np.dtype(
    [("low", np.uint64), ("high", np.int64)]
)  # an integer of 128 bits, as it lies in Arrow and in registers
INT64 = (-(1 << 63), (1 << 63) - 1)

Buffers = tuple["np.ndarray | None", "np.ndarray | None"]  # (stored, validity)


def padded_rows(rows: int) -> int:
    """Rows rounded up to whole multiples of TILE_ROWS."""
    return -(-rows // TILE_ROWS) * TILE_ROWS


def aligned_empty(count: int, dtype: np.dtype | type) -> np.ndarray:
    """(count,) of `dtype`, not initialised, its first byte on a multiple of ALIGNMENT."""
    dtype = np.dtype(dtype)
    raw = np.empty(count * dtype.itemsize + ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + count * dtype.itemsize].view(dtype)


def padded_empty(rows: int, dtype: np.dtype | type) -> np.ndarray:
    """(padded_rows(rows),) of `dtype`: the first `rows` are not initialised, the padding is zero."""
    array = aligned_empty(padded_rows(rows), dtype)
    array[rows:] = 0
    return array


def padded_copy(values: np.ndarray, dtype: np.dtype | type) -> np.ndarray:
    """`values` cast to `dtype` (wrapping, so that modular arithmetic works), padded and aligned."""
    array = padded_empty(len(values), dtype)
    if array.dtype == WIDE:
        array[: len(values)] = as_wide(values)
        return array
    with np.errstate(invalid="ignore"):
        np.copyto(array[: len(values)], values, casting="unsafe")
    return array


def padded_zeros(rows: int, dtype: np.dtype | type) -> np.ndarray:
    """Zeros from the operating system: pages that nobody writes share one physical page, so this costs no memory."""
    dtype = np.dtype(dtype)
    count = padded_rows(rows)
    raw = np.zeros(count * dtype.itemsize + ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + count * dtype.itemsize].view(dtype)


def as_wide(values: np.ndarray) -> np.ndarray:
    """(rows,) WIDE of integers that are so already, or of any narrower dtype."""
    if values.dtype == WIDE:
        return values
    array = np.empty(len(values), WIDE)
    signed = values.astype(np.int64)
    array["low"] = signed.view(np.uint64)
    array["high"] = signed >> 63
    return array


def same_dtype(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two columns of integers, both WIDE where one of them is."""
    return (as_wide(left), as_wide(right)) if WIDE in (left.dtype, right.dtype) else (left, right)


def wide_integers(rows: int, value: int) -> np.ndarray:
    """(rows,) WIDE of one integer."""
    array = np.empty(rows, WIDE)
    array["low"] = value & ((1 << 64) - 1)
    array["high"] = value >> 64
    return array


def wide_range(values: np.ndarray) -> tuple[int, int]:
    """The least and the greatest of some WIDE integers, of which there is one at least."""
    ends = []
    for end in (np.min, np.max):
        high = end(values["high"])
        ends.append((int(high) << 64) + int(end(values["low"][values["high"] == high])))
    return ends[0], ends[1]


def pack_validity(present: np.ndarray) -> np.ndarray:
    """(rows,) bool to (padded_rows(rows) / 8,) uint8: bit i % 8 of byte i // 8, 1 = present, 0 in the padding."""
    bits = np.packbits(present, bitorder="little")
    array = aligned_empty(padded_rows(len(present)) // 8, np.uint8)
    array[: len(bits)] = bits
    array[len(bits) :] = 0
    return array


def unpack_validity(validity: np.ndarray, rows: int) -> np.ndarray:
    """(rows,) bool, True = present."""
    return np.unpackbits(validity, count=rows, bitorder="little").view(np.bool_)


def all_ones(rows: int) -> np.ndarray:
    """(padded_rows(rows) / 8,) uint8 of set bits: the validity of a chunk without NULL beside chunks that have some."""
    array = aligned_empty(padded_rows(rows) // 8, np.uint8)
    array[:] = 0xFF
    return array


@record(eq=False)
class Chunk:
    """Up to 2**20 consecutive rows of one column, encoded.

    rows        how many
    stored      (padded_rows(rows),) uint8, uint16, uint32, int64, WIDE, float32 or float64, aligned to 64 bytes, zero
                under NULL and in the padding; BOOLEAN is uint8 0/1; None when all present values equal `base`
    base, scale value = base + scale * stored for exact types; 0 and 1 for int64, WIDE, BOOLEAN and floats, and for text
                unless stored is None (then base is the code)
    validity    (padded_rows(rows) / 8,) uint8, bit i % 8 of byte i // 8, 1 = present; None when no chunk of the column
                has a NULL
    minimum, maximum  of present values: the integer behind the value (DECIMAL unscaled, DATE days, TIMESTAMP
                microseconds, BOOLEAN 0/1, VARCHAR codes) or a float, where NaN is the greatest; None when all are NULL
    null_count  rows that are NULL

    Immutable: an update writes a new Chunk.  A chunk of a database directory is a LazyChunk, whose buffers are read and
    verified when they are first asked for: that raises CorruptDataError, and never returns wrong rows.
    """

    rows: int
    stored: np.ndarray | None
    base: int
    scale: int
    validity: np.ndarray | None
    minimum: int | float | None
    maximum: int | float | None
    null_count: int

    @property
    def dtype(self) -> np.dtype | None:
        """dtype of `stored`, known without reading it; None for a constant."""
        return None if self.stored is None else self.stored.dtype

    @property
    def has_validity(self) -> bool:
        """Whether `validity` is there, known without reading it."""
        return self.validity is not None

    @property
    def encoded(self) -> bool:
        """Whether a reader must apply base and scale."""
        return self.base != 0 or self.scale != 1

    @property
    def nbytes(self) -> int:
        """Bytes of the buffers without their padding."""
        stored = 0 if self.dtype is None else self.rows * self.dtype.itemsize
        return stored + (-(-self.rows // 8) if self.has_validity else 0)

    def present(self) -> np.ndarray | None:
        """(rows,) bool, True = present; None when there is no NULL."""
        validity = self.validity
        return None if validity is None or self.null_count == 0 else unpack_validity(validity, self.rows)

    def values(self) -> np.ndarray:
        """(rows,) decoded: int64 for exact types and codes, WIDE where one lies beyond, or the floats.

        What lies under NULL means nothing.
        """
        return decode(self.stored, self.rows, self.base, self.scale)

    def in_memory(self) -> Buffers:
        """(stored, validity), as far as they are there without reading a file."""
        return self.stored, self.validity

    def release(self) -> None:
        """Let memory go that can be had again from a file: the pages of a mapping, or a widened copy of them."""

    def conform(self, dtype: np.dtype | None, plain: bool, validity: np.ndarray | None) -> Chunk:
        """The same rows with the column's width and validity form.

        dtype     width for `stored`, at least this chunk's own; None keeps a constant one
        plain     base 0 and scale 1, because every value of the column fits `dtype` as it is
        validity  all ones, shared by the chunks without NULL, or None where the column has no NULL
        """
        base, scale = (0, 1) if plain and dtype is not None else (self.base, self.scale)
        same = self.dtype == dtype and (base, scale) == (self.base, self.scale)
        if same and (validity is None or self.has_validity):
            return self
        ones = None if validity is None else validity[: padded_rows(self.rows) // 8]
        return self._conformed(dtype, base, scale, ones)

    def _conformed(self, dtype: np.dtype | None, base: int, scale: int, ones: np.ndarray | None) -> Chunk:
        stored, validity = conform_buffers(self, (self.stored, self.validity), dtype, base, scale, ones)
        return replace(self, stored=stored, base=base, scale=scale, validity=validity)


class LazyChunk(Chunk):
    """A chunk whose buffers are fetched by `load` when they are first read, then kept; its statistics are known before.

    load    returns (stored, validity) as Chunk describes them; may raise StorageError, each time it is called
    source  the chunk that load reads, for `release`
    """

    def __init__(
        self,
        description: Chunk,
        dtype: np.dtype | None,
        has_validity: bool,
        load: Callable[[], Buffers],
        source: Chunk | None = None,
    ) -> None:
        for name in ("rows", "base", "scale", "minimum", "maximum", "null_count"):
            object.__setattr__(self, name, getattr(description, name))
        object.__setattr__(self, "_dtype", dtype)
        object.__setattr__(self, "_has_validity", has_validity)
        object.__setattr__(self, "_load", load)
        object.__setattr__(self, "_source", source)
        object.__setattr__(self, "_buffers", None)
        object.__setattr__(self, "_lock", threading.Lock())

    _dtype: np.dtype | None
    _has_validity: bool
    _load: Callable[[], Buffers]
    _source: Chunk | None
    _buffers: Buffers | None
    _lock: threading.Lock

    @property
    def dtype(self) -> np.dtype | None:
        return self._dtype

    @property
    def has_validity(self) -> bool:
        return self._has_validity

    def buffers(self) -> Buffers:
        """(stored, validity), fetched once."""
        buffers = self._buffers
        if buffers is None:
            with self._lock:
                buffers = self._buffers
                if buffers is None:
                    buffers = self._load()
                    object.__setattr__(self, "_buffers", buffers)
        return buffers

    def in_memory(self) -> Buffers:
        return self._buffers or (None, None)

    @property
    def stored(self) -> np.ndarray | None:
        return None if self._dtype is None else self.buffers()[0]

    @property
    def validity(self) -> np.ndarray | None:
        return self.buffers()[1] if self._has_validity else None

    def release(self) -> None:
        if self._source is not None:
            object.__setattr__(self, "_buffers", None)
            self._source.release()

    def _conformed(self, dtype: np.dtype | None, base: int, scale: int, ones: np.ndarray | None) -> Chunk:
        description = Chunk(self.rows, None, base, scale, None, self.minimum, self.maximum, self.null_count)

        def load() -> Buffers:
            return conform_buffers(self, self.buffers(), dtype, base, scale, ones)

        return LazyChunk(description, dtype, self.has_validity or ones is not None, load, self)


def decode(stored: np.ndarray | None, rows: int, base: int, scale: int) -> np.ndarray:
    """(rows,) values: base + scale * stored as int64, or floats and WIDE integers themselves."""
    if stored is None:
        within = INT64[0] <= base <= INT64[1]
        return np.full(rows, base, dtype=np.int64) if within else wide_integers(rows, base)
    head = stored[:rows]
    if head.dtype.kind == "f" or head.dtype == WIDE:
        return head
    values = head.astype(np.int64)
    if scale != 1:
        values *= scale
    if base != 0:
        values += base
    return values


def conform_buffers(
    chunk: Chunk, buffers: Buffers, dtype: np.dtype | None, base: int, scale: int, ones: np.ndarray | None
) -> Buffers:
    """`chunk`'s buffers, widened to `dtype` under the new base and scale, with `ones` where it had no validity."""
    stored, validity = buffers
    new_validity = ones if validity is None else validity
    if dtype is None:
        return None, new_validity
    if stored is None and base == chunk.base:  # base alone gives the value
        return padded_zeros(chunk.rows, dtype), new_validity
    if (base, scale) == (chunk.base, chunk.scale):
        assert stored is not None, "a constant chunk keeps its base"
        return (stored if stored.dtype == dtype else padded_copy(stored[: chunk.rows], dtype)), new_validity
    widened = padded_copy(decode(stored, chunk.rows, chunk.base, chunk.scale), dtype)
    if chunk.null_count and validity is not None:
        clear_nulls(widened, unpack_validity(validity, chunk.rows))
    return widened, new_validity


def clear_nulls(stored: np.ndarray, present: np.ndarray) -> None:
    """Zero what lies under NULL."""
    if stored.dtype == WIDE:
        stored[: len(present)][~present] = 0
    else:
        stored[: len(present)] *= present


def widest(dtypes: Iterable[np.dtype | None]) -> np.dtype | None:
    """The widest of the dtypes of one column's chunks; None when all of them are constant."""
    found = [dtype for dtype in dtypes if dtype is not None]
    return max(found, key=lambda dtype: dtype.itemsize) if found else None
