"""The device `reference`: NumPy, running the bodies of the opcode table.

Slow, always there, and the living definition: every other device must give its bytes.  A row group is one tile here; what
happens inside it (the opcodes where rows meet) is in `gpudb/devices/reference_tile.py`.
"""

from __future__ import annotations

import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from gpudb.devices.reference_tile import GroupState, ProbedRows, Tile, new_groups, values_of_type
from gpudb.devices.reference_windows import frame_words
from gpudb.devices.work import Emitted, InexactSum, PipelineFailure, RowIndex, Run, Work
from gpudb.errors import InternalError
from gpudb.program import EmitSink, FrameWord
from gpudb.types import RegisterType, SqlType

R = RegisterType
NO_ROW = (1 << 63) - 1


class ReferenceDevice:
    """Runs programs with NumPy.  An emitted column is an array of its register's dtype; I128 are Python integers.

    tile_rows  a whole row group, however large, is one tile
    """

    name = "reference"
    tile_rows = 1 << 20
    spills = False

    def from_host(self, array: np.ndarray) -> np.ndarray:
        """The array itself."""
        return array

    def to_host(self, handle: np.ndarray, dtype: Any, count: int) -> np.ndarray:
        """(count,) values of the array."""
        return handle[:count]

    # ------------------------------------------------------------------------------- pipelines

    def run_pipeline(self, work: Work) -> Emitted | GroupState:
        """Run a pipeline over its parts.

        Raises PipelineFailure where a Fail instruction fired, InexactSum, QueryCancelled, MemoryLimitError.
        """
        pipeline, run = work.pipeline, work.run
        sink = pipeline.sink
        table = None
        if not isinstance(sink, EmitSink):
            table = work.into if work.into is not None else new_groups(sink)
        parts = [part for part in work.parts if part.rows > 0]
        run.tiles_run += len(parts)
        tiles = []
        for part in parts:
            run.check()
            tile = Tile(pipeline, part, table, work.source_table, work.top)
            tile.run(work.profile)
            tiles.append(tile)
            if isinstance(sink, EmitSink):
                run.ledger.take(tile.rows * sum(kind.width for kind in sink.columns))
        run.check()
        failed = min((tile.failure for tile in tiles if tile.failure is not None), default=None)
        if failed is not None:
            row, line = failed
            raise PipelineFailure(row, pipeline.instructions[line].operands[2].number)
        if any(tile.inexact for tile in tiles):
            raise InexactSum
        if table is not None:
            return table
        assert isinstance(sink, EmitSink)
        columns = [
            np.concatenate([np.empty(0, kind.dtype), *(tile.outputs[k] for tile in tiles if k in tile.outputs)])
            for k, kind in enumerate(sink.columns)
        ]
        rows = sum(tile.rows for tile in tiles)
        emitted = Emitted(rows, columns, sink.columns)
        size = rows * sum(kind.width for kind in sink.columns)
        weakref.finalize(emitted, run.ledger.give_back, size).atexit = False
        return emitted

    def order_groups(self, state: GroupState, rows: int, run: Run) -> Emitted:
        """Numbers of the groups that occur, in order of their first row: one u32 column."""
        if state.sink.kind == "one":
            return Emitted(1, [np.zeros(1, np.uint32)], (R.U32,))
        first = state.words[: state.capacity, 0]
        present = np.flatnonzero(first != NO_ROW)
        order = present[np.argsort(first[present], kind="stable")].astype(np.uint32)
        return Emitted(len(order), [order], (R.U32,))

    # ------------------------------------------------------------------------------- joins

    def index_rows(self, words: list[Any], rows: int, numbers: int, run: Run, form: str = "any") -> RowIndex:
        """Build rows by key: one array of numbers below `numbers`, or (numbers 0) key words; `form` as of IndexRows."""
        if numbers:
            entries = words[0][:rows]
            first = np.zeros(numbers + 1, np.uint32)
            first[entries[::-1] + 1] = np.arange(rows, 0, -1)
            return RowIndex(len(np.unique(entries)) < rows, numbers, entries, first, None)
        table = ProbedRows({})
        keys = np.stack([word[:rows] for word in words], axis=1)
        entries = np.array([table.rows.setdefault(key.tobytes(), row) for row, key in enumerate(keys)], np.int64)
        return RowIndex(len(table.rows) < rows, rows, entries, None, table)

    def matches(self, index: RowIndex, rows: int, run: Run) -> list[Any]:
        """[first match, number of matches] by 1 + entry, and the build rows of all matches: those of an entry in row order."""
        order = np.argsort(index.entries, kind="stable").astype(np.uint32)
        runs = self.runs(index.entries[order] + 1, rows, index.size + 1, run)
        return [*runs, np.append(order, np.uint32(0))]  # one more: rows without a match look at the first

    def runs(self, column: Any, rows: int, size: int, run: Run) -> list[Any]:
        """[where each number below `size` begins in a sorted column, how often it occurs]."""
        numbers, first, counts = np.unique(column[:rows], return_index=True, return_counts=True)
        found = np.zeros((2, size), np.uint32)
        found[:, numbers] = first, counts
        return [found[0], found[1]]

    def pair_offsets(self, counts: Any, rows: int, least: int, run: Run) -> tuple[Any, int]:
        """(number of each row's first pair, rows + 1 of int64; number of pairs), a row having `least` pairs at least."""
        offsets = np.zeros(rows + 1, np.int64)
        np.cumsum(np.maximum(counts[:rows].astype(np.int64), least), out=offsets[1:])
        return offsets, int(offsets[-1])

    # ------------------------------------------------------------------------------- rows

    def sort_rows(self, words: list[Any], rows: int, run: Run) -> Emitted:
        """Row numbers sorted by order words, the first most significant; ties keep their order."""
        order = np.arange(rows)
        for word in reversed(words):
            order = order[np.argsort(word[:rows][order], kind="stable")]
        return Emitted(rows, [order.astype(np.uint32)], (R.U32,))

    def repeat_rows(self, counts: Any, rows: int, run: Run) -> Emitted:
        """Row numbers in order, each as often as its count (int64) says: one u32 column."""
        times = np.maximum(counts[:rows], 0)
        run.ledger.take(int(times.sum()) * 4)
        order = np.repeat(np.arange(rows, dtype=np.uint32), times)
        emitted = Emitted(len(order), [order], (R.U32,))
        weakref.finalize(emitted, run.ledger.give_back, len(order) * 4).atexit = False
        return emitted

    def invert_rows(self, order: Emitted, run: Run) -> Emitted:
        """Each row's place in an order of all rows: one u32 column."""
        places = np.empty(order.rows, np.uint32)
        places[order.columns[0][: order.rows]] = np.arange(order.rows, dtype=np.uint32)
        return Emitted(order.rows, [places], (R.U32,))

    def frame_words(
        self, frames: list[Any], words: list[tuple[FrameWord, list[Any]]], rows: int, run: Run
    ) -> GroupState:
        """Groups, one a row, of what window functions sum up over its frame."""
        return frame_words(frames, words, rows)

    def slice_emitted(self, emitted: Emitted, start: int, stop: int) -> Emitted:
        """Rows start .. stop of emitted columns, without a copy."""
        columns = [
            values_of_type(column, kind)[start:stop]
            for column, kind in zip(emitted.columns, emitted.types, strict=True)
        ]
        return replace(emitted, rows=stop - start, columns=columns)

    def concatenated(self, parts: list[Emitted], run: Run) -> Emitted:
        """The rows of several results of one sink, one after the other."""
        columns = [np.concatenate([part.columns[k][: part.rows] for part in parts]) for k in range(len(parts[0].types))]
        return Emitted(sum(part.rows for part in parts), columns, parts[0].types)

    # ------------------------------------------------------------------------------- export

    def export(
        self, emitted: Emitted, column: int, validity: int | None, sql: SqlType, dictionary: Any, start: int, rows: int
    ) -> pa.Array:
        """Rows start .. start + rows of an emitted column as an Arrow array."""
        kind = emitted.types[column]
        values = values_of_type(emitted.columns[column], kind)[start : start + rows]
        bits, nulls, valid = None, 0, np.ones(rows, bool)
        if validity is not None:
            valid = emitted.columns[validity][start : start + rows] != 0
            nulls = rows - int(np.count_nonzero(valid))
            if nulls:
                bits = pa.py_buffer(np.packbits(valid, bitorder="little"))
        if sql.is_coded:
            offsets, data = spelled_out(values, valid, dictionary)
            return pa.Array.from_buffers(pa.string(), rows, [bits, offsets, data], nulls)
        if sql.kind == "BOOLEAN":
            data = pa.py_buffer(np.packbits(values, bitorder="little"))
        elif kind is R.I128:
            data = pa.py_buffer(b"".join(int(v).to_bytes(16, "little", signed=True) for v in values))
        else:
            data = pa.py_buffer(np.ascontiguousarray(values))
        return pa.Array.from_buffers(sql.entries, rows, [bits, data], nulls)


def spelled_out(codes: np.ndarray, valid: np.ndarray, dictionary: Any) -> tuple[pa.Buffer, pa.Buffer]:
    """Arrow's offsets and bytes of dictionary codes; NULL rows take no bytes."""
    starts = dictionary.offsets[codes].astype(np.int64)
    lengths = np.where(valid, dictionary.offsets[codes.astype(np.int64) + 1] - starts, 0)
    offsets = np.zeros(len(codes) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if offsets[-1] >= 1 << 31:
        raise InternalError(f"a batch holds 2 GiB of text or more: {len(codes)} rows, {offsets[-1]} bytes")
    # Byte b of the result belongs to the row that it falls into, and lies as far into that row's text.
    source = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
    return pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(dictionary.data[source])
