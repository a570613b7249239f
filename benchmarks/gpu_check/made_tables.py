"""Tables made where they are read: row groups whose columns never lie in host memory.

Every value is a function of the row's number: a hash of it picks an entry of a table that was made on the host.  NumPy and
CuPy give the same rows, so a small table on the host has the rows that the large one on the device begins with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpudb.storage.column import Chunk, pack_validity, padded_copy, padded_rows
from gpudb.storage.dictionary import Dictionary
from gpudb.storage.table import RowGroup, TableVersion
from gpudb.types import SqlType

ROW_GROUP_ROWS = 1 << 20
SLACK = 64  # entries behind a column that may be read

Array = Any  # NumPy's or CuPy's


class DeviceChunk(Chunk):
    """A chunk whose buffers are device memory: only a device's kernels can read them."""

    def __init__(self, description: Chunk, dtype: np.dtype, stored: Any, validity: Any) -> None:
        for name in ("rows", "base", "scale", "minimum", "maximum", "null_count"):
            object.__setattr__(self, name, getattr(description, name))
        object.__setattr__(self, "stored", stored)
        object.__setattr__(self, "validity", validity)
        object.__setattr__(self, "_dtype", dtype)

    _dtype: np.dtype

    @property
    def dtype(self) -> np.dtype:
        return self._dtype

    def conform(self, dtype: np.dtype | None, plain: bool, validity: np.ndarray | None) -> Chunk:
        raise AssertionError("columns made on a device have one width and one validity form")


@dataclass(frozen=True)
class MadeColumn:
    """One column: value = base + scale * stored, or the texts' codes, or floats.

    low, high  bounds of the stored values, in a chunk whose rows may have any; None where `Made.rows` returns them
    """

    name: str
    kind: SqlType
    dtype: np.dtype
    low: float | None = None
    high: float | None = None
    base: int = 0
    scale: int = 1
    nulls: bool = False
    texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rows:
    """The rows of one column in one row group.

    stored   (rows,) anything that the column's dtype holds
    present  (rows,) bool; None without NULL
    bounds   of the stored values, where the column does not know them
    """

    stored: Array
    present: Array = None
    bounds: tuple[int, int] | None = None


@dataclass(frozen=True)
class Made:
    """A table that can be made.

    lookups  host tables by name, which `rows` gets in the device's memory
    rows     (array module, lookups, numbers of the rows (n,) uint64, rows of the whole table) -> column name -> its rows
    """

    name: str
    columns: tuple[MadeColumn, ...]
    lookups: Mapping[str, np.ndarray]
    rows: Callable[[Any, Mapping[str, Array], Array, int], Mapping[str, Rows]]


def mixed(xp: Any, numbers: Array, salt: int) -> Array:
    """(n,) uint64: a hash of each number, another for each salt (splitmix64)."""
    x = numbers * xp.uint64(0x9E3779B97F4A7C15) + xp.uint64((salt * 0xD1342543DE82EF95 + 1) % (1 << 64))
    x = (x ^ (x >> xp.uint64(30))) * xp.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> xp.uint64(27))) * xp.uint64(0x94D049BB133111EB)
    return x ^ (x >> xp.uint64(31))


def picked(xp: Any, numbers: Array, salt: int, table: Array) -> Array:
    """An entry of a table for each number; the table has a power of two of them, at most 2**16."""
    return table[(mixed(xp, numbers, salt) & xp.uint64(len(table) - 1)).astype(xp.int64)]


def below(xp: Any, numbers: Array, salt: int, count: int) -> Array:
    """(n,) uint64 in 0 .. count - 1, count at most 2**32."""
    return ((mixed(xp, numbers, salt) >> xp.uint64(32)) * xp.uint64(count)) >> xp.uint64(32)


def chance(xp: Any, numbers: Array, salt: int, one_in: int) -> Array:
    """(n,) bool, False once in so many."""
    return below(xp, numbers, salt, one_in) != 0


@dataclass(frozen=True)
class Place:
    """Where columns are made.

    xp    NumPy or CuPy
    keep  a padded array of `xp`, as a device wants to have it
    host  the arrays stay ordinary NumPy arrays, so that anybody can read the table
    """

    xp: Any
    keep: Callable[[Array], Any]
    host: bool


ON_THE_HOST = Place(np, lambda array: array, True)


def make(made: Made, rows: int, place: Place, row_group_rows: int = ROW_GROUP_ROWS) -> TableVersion:
    """The first `rows` rows of a table, made at a place."""
    xp = place.xp
    lookups = {name: xp.asarray(table) for name, table in made.lookups.items()}
    groups = []
    for first in range(0, rows, row_group_rows):
        count = min(row_group_rows, rows - first)
        numbers = xp.arange(first, first + count, dtype=xp.uint64)
        columns = made.rows(xp, lookups, numbers, rows)
        groups.append(RowGroup(count, tuple(_chunk(c, columns[c.name], count, place) for c in made.columns), first))
    dictionaries = [Dictionary.of(column.texts) if column.texts else None for column in made.columns]
    return TableVersion(made.name, tuple((c.name, c.kind) for c in made.columns), tuple(groups), tuple(dictionaries))


def _chunk(column: MadeColumn, rows: Rows, count: int, place: Place) -> Chunk:
    xp = place.xp
    stored = rows.stored.astype(column.dtype)
    nulls = 0
    if rows.present is not None:
        stored = xp.where(rows.present, stored, xp.zeros_like(stored))
        nulls = count - int(rows.present.sum())
    low, high = rows.bounds or (column.low, column.high)
    minimum, maximum = (column.base + column.scale * bound for bound in (low, high))
    described = Chunk(count, None, column.base, column.scale, None, minimum, maximum, nulls)
    validity = _packed(xp, rows.present, count) if column.nulls else None
    if place.host:
        values = padded_copy(stored, column.dtype)
        bits = None
        if column.nulls:
            bits = pack_validity(np.ones(count, bool) if rows.present is None else rows.present)
        return Chunk(count, values, column.base, column.scale, bits, minimum, maximum, nulls)
    padded = xp.zeros(padded_rows(count) + SLACK, column.dtype)
    padded[:count] = stored
    return DeviceChunk(described, column.dtype, place.keep(padded), None if validity is None else place.keep(validity))


def _packed(xp: Any, present: Array, count: int) -> Array:
    """Validity bits: bit i % 8 of byte i // 8, 0 in the padding."""
    bits = xp.zeros(padded_rows(count), xp.uint8)
    bits[:count] = 1 if present is None else present
    weights = xp.asarray(1 << np.arange(8), xp.uint8)
    packed = xp.zeros(len(bits) // 8 + SLACK, xp.uint8)
    packed[: len(bits) // 8] = (bits.reshape(-1, 8) * weights).sum(axis=1)
    return packed


def shares(weights: Sequence[float] | np.ndarray, size: int = 1 << 16) -> np.ndarray:
    """(size,) uint16: each position as often as its weight says."""
    edges = np.cumsum(np.asarray(weights, np.float64))
    return np.searchsorted(edges / edges[-1], (np.arange(size) + 0.5) / size).astype(np.uint16)


def sorted_texts(texts: Iterable[str]) -> tuple[str, ...]:
    """Distinct texts in the order of their codes."""
    return tuple(sorted(set(texts)))
