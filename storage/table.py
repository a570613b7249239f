"""A table version: an immutable list of row groups over narrow columns, and the builder that makes the next one."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from gpudb.catalog import SMALLEST_ROW_BOUND, ColumnLayout, TableLayout
from gpudb.errors import ConversionError, NotSupportedError
from gpudb.record import record
from gpudb.storage import arrow, encodings
from gpudb.storage.arrow import Plain
from gpudb.storage.column import INT64, TILE_ROWS, WIDE, Chunk, all_ones, widest
from gpudb.storage.dictionary import Dictionary
from gpudb.types import RegisterType, SqlType

ROW_GROUP_ROWS = 1 << 20
TAIL_ROWS = 1 << 16  # a finished row group is a multiple of this; the tail is shorter
ABSORB_BYTES = 256 << 20  # Arrow bytes that a builder holds before it turns them into plain values

Columns = tuple[tuple[str, SqlType], ...]


@record(eq=False)
class RowGroup:
    """The same rows of all columns.

    rows       at most 2**20; a multiple of 4,096 in every row group but a table's last
    chunks     one a column
    first_row  of the table, counted from 0
    file       where a database directory keeps these rows (its own business); None in memory
    """

    rows: int
    chunks: tuple[Chunk, ...]
    first_row: int = 0
    file: object = None


RowGroupSink = Callable[[RowGroup], RowGroup]  # stores a finished row group and returns it as it may be kept in memory


@record(eq=False)
class TableVersion:
    """One version of a table; immutable, so that whoever holds it reads the same rows for ever.

    columns       (name as written, SQL type) in order
    row_groups    in table order; within a column all have one width and one validity form
    dictionaries  one a column, None where the type is not VARCHAR
    """

    name: str
    columns: Columns
    row_groups: tuple[RowGroup, ...]
    dictionaries: tuple[Dictionary | None, ...]

    @staticmethod
    def assemble(
        name: str, columns: Columns, row_groups: Iterable[RowGroup], dictionaries: Sequence[Dictionary | None]
    ) -> TableVersion:
        """A version of row groups whose chunks may differ in width and validity form: they are made to agree."""
        groups, first_row = [], 0
        for group in row_groups:
            groups.append(group if group.first_row == first_row else replace(group, first_row=first_row))
            first_row += group.rows
        conformed = [
            conform_column([group.chunks[index] for group in groups], kind) for index, (_, kind) in enumerate(columns)
        ]
        for number, group in enumerate(groups):
            chunks = tuple(column[number] for column in conformed)
            if any(new is not old for new, old in zip(chunks, group.chunks, strict=True)):
                groups[number] = replace(group, chunks=chunks)
        return TableVersion(name, columns, tuple(groups), tuple(dictionaries))

    @staticmethod
    def empty(name: str, columns: Columns) -> TableVersion:
        """A table without rows."""
        return TableVersion(
            name, columns, (), tuple(Dictionary.empty() if kind.is_coded else None for _, kind in columns)
        )

    @cached_property
    def num_rows(self) -> int:
        return sum(group.rows for group in self.row_groups)

    @cached_property
    def nbytes(self) -> int:
        """Bytes of values and validity without padding, and of the dictionaries."""
        chunks = sum(chunk.nbytes for group in self.row_groups for chunk in group.chunks)
        return chunks + sum(dictionary.nbytes for dictionary in self.dictionaries if dictionary is not None)

    def layout(self) -> TableLayout:
        """What the planner may know of this version; equal layouts have equal versions, in every process."""
        return self._layout

    @cached_property
    def _layout(self) -> TableLayout:
        row_bound = max(SMALLEST_ROW_BOUND, power_of_two(self.num_rows))
        layouts = tuple(
            column_layout([group.chunks[index] for group in self.row_groups], kind, self.dictionaries[index], row_bound)
            for index, (_, kind) in enumerate(self.columns)
        )
        rows = row_bound
        while rows <= SMALLEST_ROW_BOUND and rows // 4 >= max(1, self.num_rows):
            rows //= 4
        text = repr((self.name, [(name, str(kind)) for name, kind in self.columns], layouts, row_bound, rows))
        version = int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()) >> 1
        return TableLayout(self.name, self.columns, layouts, row_bound, rows, version)

    def to_arrow(self) -> pa.Table:
        """All rows in the SQL types' Arrow form."""
        schema = arrow.schema_of(self.columns)
        arrays = []
        for index, (_, kind) in enumerate(self.columns):
            pieces = [
                piece
                for group in self.row_groups
                for piece in arrow.arrow_array(group.chunks[index], kind, self.dictionaries[index]).chunks
            ]
            arrays.append(pa.chunked_array(pieces, type=kind.arrow))
        return pa.Table.from_arrays(arrays, schema=schema)

    def with_columns(self, columns: Columns, positions: Sequence[int]) -> TableVersion:
        """This version's columns at `positions` among `columns`; the others hold NULL only."""
        groups = []
        for group in self.row_groups:
            nothing = Chunk(group.rows, None, 0, 1, None, None, None, group.rows)
            chunks = [nothing] * len(columns)
            for place, chunk in zip(positions, group.chunks, strict=True):
                chunks[place] = chunk
            groups.append(replace(group, chunks=tuple(chunks)))
        dictionaries: list[Dictionary | None] = [Dictionary.empty() if k.is_coded else None for _, k in columns]
        for place, dictionary in zip(positions, self.dictionaries, strict=True):
            dictionaries[place] = dictionary
        return TableVersion(self.name, columns, tuple(groups), tuple(dictionaries))

    def release(self) -> None:
        """Let go of memory that can be had again from a directory's files; rows in memory only stay."""
        for group in self.row_groups:
            for chunk in group.chunks:
                chunk.release()

    def renamed(self, name: str) -> TableVersion:
        """The same rows under another name."""
        return self if name == self.name else replace(self, name=name)


def conform_column(chunks: list[Chunk], kind: SqlType) -> list[Chunk]:
    """The chunks of one column in one width and one validity form; those that agree already are returned."""
    dtype = widest(chunk.dtype for chunk in chunks)
    if dtype is not None and any(_beyond_64_bits(chunk) for chunk in chunks):  # a constant one, beside others
        dtype = WIDE
    plain = kind.is_coded or kind.is_float or _fits_plainly(chunks, dtype)
    ones = None
    if any(chunk.has_validity for chunk in chunks):
        without = [chunk.rows for chunk in chunks if not chunk.has_validity]
        ones = all_ones(max(without, default=0))
    return [chunk.conform(dtype, plain, ones) for chunk in chunks]


def _beyond_64_bits(chunk: Chunk) -> bool:
    """Whether a value lies beyond 64 bits."""
    low, high = chunk.minimum, chunk.maximum
    return isinstance(low, int) and isinstance(high, int) and not INT64[0] <= low <= high <= INT64[1]


def _fits_plainly(chunks: list[Chunk], dtype: np.dtype | None) -> bool:
    """Whether every value of the column is its own stored value."""
    if dtype is None or dtype.kind != "u":
        return True
    greatest = np.iinfo(dtype).max
    return all(
        chunk.minimum is None or (chunk.minimum >= 0 and chunk.maximum is not None and chunk.maximum <= greatest)
        for chunk in chunks
    )


def power_of_two(number: int) -> int:
    """The smallest power of two >= number; 1 for 0."""
    return 1 << max(0, number - 1).bit_length()


def round_outwards(low: int, high: int, bounds: tuple[int, int] | None = None) -> tuple[int, int]:
    """A range around low .. high that few appends leave, its ends on multiples of a quarter of the span's power of two.

    Years 1987 .. 2008 give 1984 .. 2015: dense tables stay small, and while a column doubles its range changes at most
    four times.
    """
    step = max(1, power_of_two(high - low + 1) // 4)
    low, high = low // step * step, high // step * step + step - 1
    return (low, high) if bounds is None else (max(low, bounds[0]), min(high, bounds[1]))


def _round_float(value: float, upwards: bool) -> float:
    """The next power of two (with its sign) at or above `value`, or at or below it."""
    if value == 0.0:
        return 0.0
    mantissa, exponent = math.frexp(abs(value))  # 0.5 <= mantissa < 1
    away_from_zero = upwards == (value > 0)
    if mantissa == 0.5 or not away_from_zero:
        exponent -= 1
    return math.copysign(math.ldexp(1.0, exponent), value) if exponent <= 1023 else math.copysign(math.inf, value)


def column_layout(chunks: list[Chunk], kind: SqlType, dictionary: Dictionary | None, row_bound: int) -> ColumnLayout:
    """The layout of one column over all its row groups."""
    dtype = widest(chunk.dtype for chunk in chunks)
    stored = None if dtype is None else RegisterType.MASK if kind.kind == "BOOLEAN" else _register(dtype)
    has_nulls = any(chunk.has_validity for chunk in chunks)
    encoded = dtype is not None and any(chunk.encoded for chunk in chunks)
    minima = [chunk.minimum for chunk in chunks if chunk.minimum is not None]
    maxima = [chunk.maximum for chunk in chunks if chunk.maximum is not None]
    if kind.is_coded:
        distinct = power_of_two(max(1, len(dictionary or ())))
        last = distinct - 1 if minima else None
        return ColumnLayout(stored, has_nulls, 0 if minima else None, last, encoded, distinct)
    if not minima:
        return ColumnLayout(stored, has_nulls, None, None, encoded, 1)
    if kind.is_float:
        if not all(math.isfinite(value) for value in (*minima, *maxima)):
            return ColumnLayout(stored, has_nulls, None, None, encoded, row_bound)
        low, high = _round_float(min(minima), False), _round_float(max(maxima), True)
        finite = math.isfinite(low) and math.isfinite(high)
        return ColumnLayout(stored, has_nulls, low if finite else None, high if finite else None, encoded, row_bound)
    least, greatest = int(min(minima)), int(max(maxima))
    step = 0
    for chunk in chunks:
        if chunk.minimum is not None:
            step = math.gcd(step, int(chunk.minimum) - least, 0 if chunk.minimum == chunk.maximum else chunk.scale)
    distinct = min(row_bound, power_of_two((greatest - least) // max(1, step) + 1))
    lowest, highest = round_outwards(least, greatest, kind.bounds)
    return ColumnLayout(stored, has_nulls, lowest, highest, encoded, distinct)


def _register(dtype: np.dtype) -> RegisterType:
    return {
        WIDE.str[1:]: RegisterType.I128,
        "u1": RegisterType.U8,
        "u2": RegisterType.U16,
        "u4": RegisterType.U32,
        "i8": RegisterType.I64,
        "f4": RegisterType.F32,
        "f8": RegisterType.F64,
    }[dtype.str[1:]]


class TableBuilder:
    """Turns a stream of Arrow batches into a table version, one row group at a time.

    columns         (name, SQL type); batches are taken by position and cast where that is exact
    row_group_rows  rows of a finished row group, a multiple of 4,096; smaller only in tests
    previous        the version to append to: its row groups are shared, its tail's rows are taken in
    sink            stores each finished row group (a database directory does); without it they stay in memory

    Memory: one row group of plain values, ABSORB_BYTES of Arrow batches, the dictionaries, and what `sink` keeps.
    Raises ConversionError where a value does not fit its type.
    """

    def __init__(
        self,
        columns: Columns,
        row_group_rows: int = ROW_GROUP_ROWS,
        previous: TableVersion | None = None,
        sink: RowGroupSink | None = None,
    ) -> None:
        assert row_group_rows % TILE_ROWS == 0 and row_group_rows > 0, "a row group ends on a tile edge"
        self.columns = columns
        self.row_group_rows = row_group_rows
        self.num_rows = 0  # appended so far
        self._tail_rows = min(TAIL_ROWS, row_group_rows)
        self._sink = sink
        self._groups: list[RowGroup] = []
        self._arrow: list[pa.RecordBatch] = []
        self._arrow_rows = self._arrow_bytes = 0
        self._pieces: list[list[Plain]] = []  # one list of columns for each absorbed stretch of rows
        self._piece_rows = 0
        self._sort_dictionaries = sink is None and (previous is None or previous.num_rows == 0)
        self._sort_first = sink is not None and (previous is None or previous.num_rows == 0)
        self._dictionaries = [Dictionary.empty() if kind.is_coded else None for _, kind in columns]
        if previous is not None and previous.num_rows:
            assert [kind for _, kind in previous.columns] == [kind for _, kind in columns], "columns of another table"
            self._dictionaries = list(previous.dictionaries)
            self._groups = list(previous.row_groups)
            last = self._groups[-1]
            if last.rows < self._tail_rows or last.rows % TILE_ROWS:
                self._groups.pop()
                self._push([(chunk.values(), chunk.present()) for chunk in last.chunks], last.rows)

    @staticmethod
    def behind(
        version: TableVersion, row_groups: int, row_group_rows: int = ROW_GROUP_ROWS, sink: RowGroupSink | None = None
    ) -> TableBuilder:
        """A builder that goes on behind the first row groups of a version, and keeps its dictionaries' codes."""
        builder = TableBuilder(version.columns, row_group_rows, sink=sink)
        builder._sort_dictionaries = builder._sort_first = False
        builder._dictionaries = list(version.dictionaries)
        builder._groups = list(version.row_groups[:row_groups])
        return builder

    def append_group(self, group: RowGroup, keep: np.ndarray) -> None:
        """Add the rows of a row group of the version gone on with, where `keep` (rows,) is true."""
        plain = []
        for chunk in group.chunks:
            values, present = chunk.values(), chunk.present()
            plain.append((values[keep], None if present is None else present[keep]))
        rows = int(np.count_nonzero(keep))
        self.num_rows += rows
        self._push(plain, rows)
        while self._piece_rows >= self.row_group_rows:
            self._flush(self.row_group_rows)

    def append(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Add rows at the end of the table."""
        if batch.num_columns != len(self.columns):
            raise ConversionError(
                f"number of columns differs: the table has {len(self.columns)}, the rows have {batch.num_columns}"
            )
        for piece in batch.to_batches() if isinstance(batch, pa.Table) else (batch,):
            for start in range(0, piece.num_rows, self.row_group_rows):
                part = piece.slice(start, self.row_group_rows)
                self._arrow.append(part)
                self._arrow_rows += part.num_rows
                self._arrow_bytes += part.nbytes if part.num_rows < piece.num_rows else piece.nbytes
                self.num_rows += part.num_rows
                if self._arrow_rows >= self._tail_rows or self._arrow_bytes >= ABSORB_BYTES:
                    self._absorb()

    def finish(self, name: str) -> TableVersion:
        """The version of all rows; the builder is used up."""
        self._absorb()
        self._flush(self._piece_rows // self._tail_rows * self._tail_rows)
        self._flush(self._piece_rows)
        if self._sort_dictionaries:
            self._sort()
        return TableVersion.assemble(name, self.columns, self._groups, self._dictionaries)

    def _absorb(self) -> None:
        """Turn the batches held into plain values, and those into row groups once there are enough."""
        if not self._arrow_rows:
            return
        plain: list[Plain] = []
        for index, (name, kind) in enumerate(self.columns):
            arrays = [batch.column(index) for batch in self._arrow]
            pieces = [pa.chunked_array(same) for same in _runs_of_one_type(arrays)]
            values = []
            try:
                for piece in pieces:
                    value, self._dictionaries[index] = arrow.plain_values(piece, kind, self._dictionaries[index])
                    values.append(value)
            except (ConversionError, NotSupportedError) as error:
                raise type(error)(f"column {name}: {error.message}", hint=error.hint) from error
            plain.append(arrow.concatenate(values, kind))
        rows = self._arrow_rows
        self._arrow, self._arrow_rows, self._arrow_bytes = [], 0, 0
        self._push(plain, rows)
        while self._piece_rows >= self.row_group_rows:
            self._flush(self.row_group_rows)

    def _push(self, plain: list[Plain], rows: int) -> None:
        self._pieces.append(plain)
        self._piece_rows += rows

    def _take(self, rows: int) -> list[list[Plain]]:
        """The first `rows` absorbed rows, and leave the others."""
        taken: list[list[Plain]] = []
        while rows:
            piece = self._pieces[0]
            length = len(piece[0][0])
            if length <= rows:
                taken.append(self._pieces.pop(0))
            else:
                taken.append([_slice(column, 0, rows) for column in piece])
                self._pieces[0] = [_slice(column, rows, length) for column in piece]
            part = min(length, rows)
            rows -= part
            self._piece_rows -= part
        return taken

    def _flush(self, rows: int) -> None:
        """Encode the first `rows` absorbed rows as a row group."""
        if not rows:
            return
        if self._sort_first:
            self._sort_first = False
            self._sort_pieces()
        taken = self._take(rows)
        chunks = []
        for index, (name, kind) in enumerate(self.columns):
            values, present = arrow.concatenate([piece[index] for piece in taken], kind)
            chunks.append(encode(values, present, kind, name))
        first_row = self._groups[-1].first_row + self._groups[-1].rows if self._groups else 0
        group = RowGroup(rows, tuple(chunks), first_row)
        self._groups.append(group if self._sink is None else self._sink(group))

    def _sort_pieces(self) -> None:
        """Give the texts known before the first row group is stored codes in their order; stored codes stay as they are."""
        for index, dictionary in enumerate(self._dictionaries):
            if dictionary is None or not dictionary.is_worth_sorting(self._piece_rows):
                continue
            self._dictionaries[index], translation = dictionary.sorted()
            if translation is not None:
                for piece in self._pieces:
                    values, present = piece[index]
                    piece[index] = translation[values], present

    def _sort(self) -> None:
        """Give the texts of a table built in one go codes in their order, so that codes are ranks."""
        rows = sum(group.rows for group in self._groups)
        for index, dictionary in enumerate(self._dictionaries):
            if dictionary is None or not dictionary.is_worth_sorting(rows):
                continue
            self._dictionaries[index], translation = dictionary.sorted()
            if translation is None:
                continue
            for number, group in enumerate(self._groups):
                chunk = group.chunks[index]
                values = translation[chunk.values()]  # under NULL lies 0, which is a code
                chunks = list(group.chunks)
                chunks[index] = encodings.encode_exact(values, chunk.present(), plain=True)
                self._groups[number] = replace(group, chunks=tuple(chunks))


def encode(values: np.ndarray, present: np.ndarray | None, kind: SqlType, column: str) -> Chunk:
    """The chunk of plain values of one SQL type; ConversionError where one lies outside its range."""
    if kind.is_float:
        return encodings.encode_float(values, present)
    chunk = encodings.encode_exact(values, present, plain=kind.is_coded)
    if not kind.is_coded and chunk.minimum is not None and chunk.maximum is not None:
        low, high = kind.bounds
        if chunk.minimum < low or chunk.maximum > high:
            value = chunk.minimum if chunk.minimum < low else chunk.maximum
            raise ConversionError(f"column {column}: a value lies outside the range of {kind}: {value}")
    return chunk


def table_from_arrow(name: str, source: Any, columns: Columns | None = None) -> TableVersion:
    """A table of the rows of `source` (anything arrow.batches_of takes); `columns` renames or casts by position."""
    reader = arrow.batches_of(source)
    builder = TableBuilder(columns or arrow.columns_of(reader.schema))
    for batch in reader:
        builder.append(batch)
    return builder.finish(name)


def _slice(column: Plain, start: int, stop: int) -> Plain:
    values, present = column
    return values[start:stop], None if present is None else present[start:stop]


def _runs_of_one_type(arrays: list[pa.Array]) -> list[list[pa.Array]]:
    """Neighbours of equal type together: batches of one stream agree, batches of an INSERT's parts need not."""
    runs: list[list[pa.Array]] = []
    for array in arrays:
        if runs and runs[-1][0].type == array.type:
            runs[-1].append(array)
        else:
            runs.append([array])
    return runs
