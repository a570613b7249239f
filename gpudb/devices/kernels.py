"""Devices that run kernels: everything a CPU and a GPU share.

A subclass supplies memory (`empty`, `from_host`, `to_host`, `address`) and `launch`; here is what a program's steps mean in
launches: pipelines over row groups, group tables that grow and merge, radix sorts, and export to Arrow buffers.

Past 600 lines: one class, whose methods are the steps of a program.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
import pyarrow as pa

from gpudb.devices import joins, windows
from gpudb.devices import launch as structs
from gpudb.devices.work import Emitted, InexactSum, Part, PipelineFailure, RowIndex, Run, Work
from gpudb.errors import DeviceError, InternalError
from gpudb.functions.python import PythonFunction
from gpudb.program import EmitSink, FrameWord, GroupSink, Pipeline
from gpudb.record import record
from gpudb.types import RegisterType, SqlType

R = RegisterType
FIRST_CAPACITY = 4096  # entries of a new hash or indexed table
GROWTH = 8  # times the room, at most, of a table that was full
GROWTH_OF_DISTINCT = 64  # the same, where almost every row so far was a new group
DISTINCT = 31 / 32  # the share of rows that are new groups from which on that holds
COPIES_BYTES = 1 << 17  # group tables up to this size are kept four times, so that runs of one group do not wait
MOST_TOP_ROWS = 1 << 14  # of ORDER BY with LIMIT that a block keeps a heap of
SMALL_SORT_ROWS = 256  # sorted in one launch: 0.03-0.07 ms for one to four words, where radix passes take 0.06-0.27
NO_ERROR = (1 << 63) - 1
INSTRUCTION_BYTES, SLOT_BYTES, POINTER_BYTES = 32, 16, 8


@record(frozen=False)
class GroupState:
    """A group table on a device: the arrays behind it, kept alive, and the struct that kernels read."""

    sink: GroupSink
    table: Any
    arrays: dict[str, Any]
    kinds: Any

    @property
    def capacity(self) -> int:
        """Groups it has room for, the trash group not counted."""
        return int(self.table.capacity)


def scattering_step(tiles: int) -> int:
    """A step that visits all tiles, modulo their number, far from one to the next.

    For KeepTop: where rows lie in the opposite of the order wanted, each is better than all before it.
    """
    step = max(1, int(0.618 * tiles))
    while math.gcd(step, tiles) > 1:
        step += 1
    return step


class KernelDevice:
    """Base of devices that launch kernels.

    name          as in SET device
    tile_rows     rows of a tile; a multiple of 64
    private       True where every block has group tables of its own, merged afterwards
    pack_rows     rows that a lane loads at once: columns begin at a multiple of so many
    scratch_bytes at the start of a block's arena, for its lanes to meet in
    most_staged   bytes of program and parameters, at most, that a block copies into its arena before it reads them
    spills        True where `held` goes to temporary files when memory_limit is reached
    """

    name = ""
    tile_rows = 1024
    private = True
    pack_rows = 1
    scratch_bytes = 64
    most_staged = 0
    spills = False

    # ------------------------------------------------------------------------------- what subclasses supply

    def empty(self, size: int) -> Any:
        """Uninitialised device memory of `size` bytes, aligned to 64, readable 64 bytes past its end."""
        raise NotImplementedError

    def from_host(self, array: np.ndarray) -> Any:
        """Device memory that holds the array; the array itself where the device reads host memory."""
        raise NotImplementedError

    def to_host(self, handle: Any, dtype: Any, count: int) -> np.ndarray:
        """(count,) of dtype on the host."""
        raise NotImplementedError

    def address(self, handle: Any) -> int:
        """Address of device memory; 0 for None."""
        raise NotImplementedError

    def launch(self, kernel: str, arguments: ctypes.Structure, blocks: int) -> None:
        """Run `blocks` blocks of a kernel; whatever is asked of the device afterwards finds them done."""
        raise NotImplementedError

    def blocks(self, tiles: int) -> int:
        """How many blocks serve so many tiles."""
        raise NotImplementedError

    def zeros(self, size: int) -> Any:
        """Device memory of zero bytes."""
        return self.from_host(np.zeros(size, np.uint8))

    def view(self, handle: Any, offset: int) -> Any:
        """The memory from a byte offset on."""
        return handle[offset:]

    def held(self, run: Run, size: int, zero: bool = False) -> Any:
        """Memory as `empty` or `zeros` give it, for what grows with the rows of a statement.

        It counts against memory_limit, or lies in a temporary file, until nobody has it or a view of it any more.  Raises
        MemoryLimitError.
        """
        raise NotImplementedError

    # ------------------------------------------------------------------------------- pipelines

    def run_pipeline(self, work: Work) -> Emitted | GroupState:
        """Run a pipeline over its parts.

        Raises PipelineFailure where a Fail instruction fired, InexactSum, QueryCancelled, MemoryLimitError.
        """
        pipeline, run = work.pipeline, work.run
        tile_rows = self.tile_rows_of(pipeline)
        parts = self.fitted(work, [part for part in work.parts if part.rows > 0])
        tiles_of = [-(-part.rows // tile_rows) for part in parts]
        tiles = sum(tiles_of)
        run.tiles_run += tiles
        staged = self.staged_bytes(pipeline)
        arena = self.arena_bytes(pipeline, tile_rows)
        blocks = self.pipeline_blocks(tiles, arena)
        keep: list[Any] = []  # device memory that must live until the launch is over

        def pinned(array: np.ndarray) -> int:
            handle = self.from_host(array)
            keep.append(handle)
            return self.address(handle)

        groups = np.zeros(max(1, len(parts)), structs.ROW_GROUP)
        first_tile = first_output = 0
        for line, part in enumerate(parts):
            groups[line] = (part.rows, part.first_row, first_tile, first_output, line)
            first_tile += tiles_of[line]
            first_output += part.rows
        columns, slots = self._tables_of_parts(pipeline, parts, keep)
        arguments = structs.Launch(
            instructions=pinned(pipeline.encoded(tile_rows)),
            groups=pinned(groups),
            columns=pinned(columns),
            slots=pinned(slots),
            num_instructions=len(pipeline.instructions),
            num_groups=len(parts),
            num_tiles=tiles,
            num_columns=len(pipeline.columns),
            num_slots=len(pipeline.slots),
            tile_rows=tile_rows,
            arena_bytes=arena,
            tile_step=1,
            staged_bytes=staged,
        )
        arena_memory = self.arena(blocks, arena)
        outcome = self.from_host(np.array([NO_ERROR, 0], np.int64))  # the error word, and whether a sum is inexact
        arguments.arena = self.address(arena_memory)
        arguments.error = self.address(outcome)
        arguments.flags = arguments.error + 8
        arguments.cancel = self.cancel_word(run)
        profile = None
        if work.profile is not None:
            counters = np.zeros((blocks, len(pipeline.instructions), 3), np.int64)
            counters[:, :, 2] = [instruction.makes_mask for instruction in pipeline.instructions]
            profile = self.from_host(counters.reshape(-1))
            arguments.profile = self.address(profile)
        if work.source_table is not None:
            source = np.frombuffer(bytes(work.source_table.table), np.uint8)
            arguments.source = pinned(source)
        device_failed = False
        try:
            if isinstance(pipeline.sink, EmitSink):
                return self._run_emit(work, pipeline.sink, arguments, tiles, blocks)
            return self._run_groups(work, pipeline.sink, arguments, tiles, blocks)
        except DeviceError:
            device_failed = True  # so that not all tiles have run: which row would fail first is not known
            raise
        finally:
            if not device_failed:
                run.check()
                if profile is not None and work.profile is not None:
                    found = self.to_host(profile, np.int64, counters.size).reshape(counters.shape)
                    work.profile += found.sum(axis=0)[:, :2]
                failed, inexact = self.to_host(outcome, np.int64, 2).tolist()
                if failed != NO_ERROR:
                    instruction = pipeline.instructions[failed & 0xFFFF]
                    raise PipelineFailure(failed >> 16, instruction.operands[2].number)
                if inexact:
                    raise InexactSum

    def tile_rows_of(self, pipeline: Pipeline) -> int:
        """Rows of this pipeline's tiles."""
        return self.tile_rows

    def fitted(self, work: Work, parts: list[Part]) -> list[Part]:
        """The parts as the device reads them: some of their columns in device memory already, or more and smaller parts."""
        return parts

    def staged_bytes(self, pipeline: Pipeline) -> int:
        """Bytes of a block's arena that hold its copy of the program and of one row group's parameters; 0 for none."""
        size = len(pipeline.instructions) * INSTRUCTION_BYTES + len(pipeline.slots) * SLOT_BYTES
        size = size + len(pipeline.columns) * POINTER_BYTES + 63 & ~63
        return size if size <= self.most_staged else 0

    def arena_bytes(self, pipeline: Pipeline, tile_rows: int) -> int:
        """Bytes of one block: scratch, copies and registers."""
        return self.scratch_bytes + self.staged_bytes(pipeline) + (pipeline.arena * tile_rows + 63 & ~63)

    def pipeline_blocks(self, tiles: int, arena_bytes: int) -> int:
        """How many blocks, each with such an arena, serve so many tiles."""
        return self.blocks(tiles)

    def arena(self, blocks: int, arena_bytes: int) -> Any:
        """Memory for the blocks' registers; None where they live on the chip."""
        return self.empty(blocks * arena_bytes)

    def cancel_word(self, run: Run) -> int:
        """Address of the cancel word as kernels see it."""
        return self.address(run.cancel)

    def _tables_of_parts(self, pipeline: Pipeline, parts: list[Part], keep: list[Any]) -> tuple[np.ndarray, np.ndarray]:
        """Pointers of columns (parts, columns) uint64 and slots (parts, slots, 2) uint64."""
        columns = np.zeros((max(1, len(parts)), max(1, len(pipeline.columns))), np.uint64)
        slots = np.zeros((max(1, len(parts)), max(1, len(pipeline.slots)), 2), np.uint64)
        for line, part in enumerate(parts):
            for index, array in enumerate(part.columns):
                if array is not None:
                    handle = self.resident(array)
                    keep.append(handle)
                    columns[line, index] = self.address(handle)
            for index, value in enumerate(part.slots):
                if isinstance(value, np.ndarray):
                    handle = self.resident(value)
                    keep.append(handle)
                    slots[line, index, 0] = self.address(handle)
                elif isinstance(value, PythonFunction):
                    slots[line, index, 0] = self.callee(value)
                elif isinstance(value, (GroupState, joins.ProbedRows)):
                    handle = self.from_host(np.frombuffer(bytes(value.table), np.uint8))
                    keep.append(handle)
                    slots[line, index, 0] = self.address(handle)
                else:
                    slots[line, index] = structs.pack_slot(value, pipeline.slots[index].type)
        return columns, slots

    def callee(self, function: PythonFunction) -> int:
        """Address of what Call calls.  Raises DeviceError where kernels can call no such function."""
        raise DeviceError(f"device {self.name}: it calls no Python functions: {function.name}")

    def resident(self, array: Any, owner: Any = None) -> Any:
        """The array in device memory, from the device's own cache where it has one; device memory is returned as it is.

        The content must never change while `owner`, or else the array itself, lives.
        """
        return array

    def _go(self, work: Work, arguments: Any, blocks: int) -> None:
        """Run the pipeline over all its tiles, or those not done yet."""
        counter = self.zeros(8)
        arguments.next_tile = self.address(counter)
        self.launch("gpudb_pipeline", arguments, blocks)

    def _run_emit(self, work: Work, sink: EmitSink, arguments: Any, tiles: int, blocks: int) -> Emitted:
        run = work.run
        total = sum(part.rows for part in work.parts)
        widths = [kind.width for kind in sink.columns]
        outputs = [self.held(run, total * width) for width in widths]
        pointers = np.array([self.address(o) for o in outputs] or [0], np.uint64)
        keep = self.from_host(pointers)
        arguments.outputs = self.address(keep)
        heaps = None
        if work.top is not None and 0 < work.top <= MOST_TOP_ROWS:
            heaps = self.zeros(blocks * (work.top + 1) * 8)
            arguments.top, arguments.top_rows = self.address(heaps), work.top
            arguments.tile_step = scattering_step(tiles)
        if not sink.filtered:
            if tiles:
                self._go(work, arguments, blocks)
            return Emitted(total, outputs, sink.columns)
        # Per tile: how many rows it emitted, where they begin, and where they belong.  totals: rows taken, and what
        # gpudb_offsets finds: rows, and whether any lie astray.
        counts, starts, offsets = self.zeros(max(1, tiles) * 4), self.empty(max(1, tiles) * 16), 8 * max(1, tiles)
        totals = self.zeros(24)
        arguments.tile_counts = self.address(counts)
        arguments.tile_starts = self.address(starts)
        arguments.output_rows = self.address(totals)
        if tiles:
            self._go(work, arguments, blocks)
        run.check()
        self.launch(
            "gpudb_offsets",
            structs.OffsetsLaunch(
                tile_counts=arguments.tile_counts,
                tile_starts=arguments.tile_starts,
                tile_offsets=arguments.tile_starts + offsets,
                result=arguments.output_rows + 8,
                num_tiles=tiles,
            ),
            1,
        )
        rows, astray = self.to_host(self.view(totals, 8), np.int64, 2).tolist()
        if not astray:
            return Emitted(rows, outputs, sink.columns)
        compacted = []
        for width in widths:
            handle = outputs.pop(0)  # each goes before the next one's copy is made
            target = self.held(run, rows * width)
            self.launch(
                "gpudb_compact",
                structs.CompactLaunch(
                    source=self.address(handle),
                    target=self.address(target),
                    tile_counts=arguments.tile_counts,
                    tile_starts=arguments.tile_starts,
                    tile_offsets=arguments.tile_starts + offsets,
                    num_tiles=tiles,
                    width=width,
                ),
                self.blocks(-(-rows // (16 * self.tile_rows))),
            )
            compacted.append(target)
        return Emitted(rows, compacted, sink.columns)

    # ------------------------------------------------------------------------------- group tables

    def new_table(
        self, sink: GroupSink, capacity: int, copies: int, run: Run, parts: int = 0, part: int = 0
    ) -> GroupState:
        """A table without groups; of `parts` parts, it takes the keys of one only."""
        stride = len(sink.words)
        groups = capacity + 1
        arrays: dict[str, Any] = {"words": self.held(run, copies * groups * stride * 8), "used": self.zeros(16)}
        initial = self.from_host(np.array([w[1] for w in sink.words], np.int64))
        self.launch(
            "gpudb_fill",
            structs.FillLaunch(
                words=self.address(arrays["words"]),
                initial=self.address(initial),
                groups=copies * groups,
                stride=stride,
            ),
            self.blocks(copies * groups * stride // 65536),
        )
        if sink.key_words:
            arrays["keys"] = self.held(run, groups * sink.key_words * 8)
            arrays["heads"] = self.held(run, self._head_bytes(sink, capacity), zero=True)
        table = structs.GroupTable(
            words=self.address(arrays["words"]),
            keys=self.address(arrays.get("keys")),
            heads=self.address(arrays.get("heads")),
            used=self.address(arrays["used"]),
            stride=stride,
            capacity=capacity,
            copies=copies,
            key_words=sink.key_words,
            head_mask=self._head_bytes(sink, capacity) // 8 - 1 if sink.kind == "hash" else 0,
            numbers=sink.capacity if sink.kind == "indexed" else 0,
            parts=parts,
            part=part,
        )
        kinds = self.from_host(np.array([structs.WORD_KINDS[w[0]] for w in sink.words], np.uint8))
        return GroupState(sink, table, arrays, kinds)

    def _head_bytes(self, sink: GroupSink, capacity: int) -> int:
        if sink.kind == "hash":
            return 8 << (2 * capacity - 1).bit_length()
        return (sink.capacity + 1) * 4 if sink.kind == "indexed" else 0

    def table_bytes(self, sink: GroupSink, capacity: int) -> int:
        """What one copy of a table of so many groups, and the trash group, takes."""
        return (capacity + 1) * (len(sink.words) + sink.key_words) * 8 + self._head_bytes(sink, capacity)

    def entries(self, state: GroupState) -> int:
        """Entries in use of a table with keys."""
        return min(int(self.to_host(state.arrays["used"], np.int64, 1)[0]), state.capacity)

    def _larger(self, state: GroupState, expected: float, most: int) -> int:
        """Groups that a table has room for once it has grown, if memory suffices."""
        return min(max(int(expected), 2 * state.capacity), most * state.capacity, (1 << 32) - 1)

    def _grown(self, state: GroupState, expected: float, most: int, run: Run) -> GroupState:
        """A larger table with the same entries, not yet in its heads.

        It has room for what is expected, at least twice and at most `most` times what it had; less, down to twice, where the
        statement may not take that much.
        """
        sink, entries, least = state.sink, self.entries(state), 2 * state.capacity
        if least >= 1 << 32:
            raise InternalError("a group table cannot hold more than 2**32 groups")
        capacity = self._larger(state, expected, most)
        while capacity > least and run.ledger.held + self.table_bytes(sink, capacity) > run.ledger.limit:
            capacity = max(least, capacity // 2)
        new = self.new_table(sink, capacity, 1, run, int(state.table.parts), int(state.table.part))
        self.copy(new.arrays["words"], state.arrays["words"], entries * len(sink.words) * 8)
        self.copy(new.arrays["keys"], state.arrays["keys"], entries * sink.key_words * 8)
        self.copy(new.arrays["used"], self.from_host(np.array([entries, 0], np.int64)), 16)
        return new

    def _rehash(self, states: list[GroupState]) -> None:
        """Enter the entries of tables into their heads; of numbers, the one past the last is the trash group's."""
        tables = self._tables(states)
        entries = sum(self.entries(state) for state in states)
        arguments = structs.RehashLaunch(tables=self.address(tables), num_tables=len(states))
        self.launch("gpudb_rehash", arguments, self.blocks(entries // self.tile_rows))
        for state in states:
            if state.table.parts and state.table.numbers:
                self.leave_out(state.arrays["heads"], state.table)

    def leave_out(self, heads: Any, table: Any) -> None:
        """Point the numbers of other parts at the trash group; a part's numbers are next to each other."""
        raise NotImplementedError

    def _tables(self, states: list[GroupState]) -> Any:
        """Their structs in device memory."""
        return self.from_host(np.frombuffer(b"".join(bytes(state.table) for state in states), np.uint8))

    def copy(self, target: Any, source: Any, size: int) -> None:
        """Copy bytes between device memories."""
        raise NotImplementedError

    def _run_groups(self, work: Work, sink: GroupSink, arguments: Any, tiles: int, blocks: int) -> GroupState:
        run = work.run
        capacity = {"hash": FIRST_CAPACITY, "indexed": min(sink.capacity, FIRST_CAPACITY)}.get(sink.kind, sink.capacity)
        bytes_of_one = (capacity + 1) * len(sink.words) * 8
        copies = 4 if sink.kind == "dense" and self.private and 4 * bytes_of_one <= COPIES_BYTES else 1
        count = blocks if self.private else 1
        states = [self.new_table(sink, capacity, copies, run) for _ in range(count)]
        self.find_groups(work, arguments, tiles, blocks, states)
        if work.into is not None:
            states = [work.into, *states]
        return self.merged(states, run)

    def find_groups(self, work: Work, arguments: Any, tiles: int, blocks: int, states: list[GroupState]) -> None:
        """Run the pipeline over all tiles into new tables, one a block or one for all; they grow where they have to."""
        run, sink = work.run, states[0].sink
        if sink.kind == "indexed":
            self._rehash(states)
        done = None
        if sink.key_words:
            done = self.zeros(max(1, tiles))
            arguments.tile_done = self.address(done)
        while tiles:
            tables = self._tables(states)
            arguments.tables = self.address(tables)
            self._go(work, arguments, blocks)
            run.check()
            share = 1.0 if done is None else float(self.to_host(done, np.uint8, tiles).mean())
            if share == 1.0:
                break
            # Groups come ever more slowly, so all rows have no more than in proportion: a table that only grew by GROWTH had
            # up to 7 times that room.
            entries = [self.entries(state) for state in states]
            expected = [1.2 * count / max(share, 1e-9) for count in entries]
            most = GROWTH
            if sum(entries) > DISTINCT * share * sum(part.rows for part in work.parts):
                # The first table gets room for the others' groups too.  (5 M groups, 2 threads: 1.1 s of processor time, 2.3
                # with GROWTH and tables that grow again to be merged.)
                most, expected[0] = GROWTH_OF_DISTINCT, sum(expected)
            full = [k for k, state in enumerate(states) if entries[k] >= state.capacity]
            assert full, "a tile that is not done found its table full"
            needed = sum(self.table_bytes(sink, self._larger(states[k], expected[k], most)) for k in full)
            self.before_growth(work, states, needed, share)
            for k in full:
                states[k] = self._grown(states[k], expected[k], most, run)
            self._rehash([states[k] for k in full])

    def before_growth(self, work: Work, states: list[GroupState], needed: int, share: float) -> None:
        """Called before tables grow to `needed` bytes in all, with the share of tiles that are done: the place to give up."""

    def merged(self, states: list[GroupState], run: Run) -> GroupState:
        """The first table with all others combined into it, as one copy; takes them out of the list as it goes."""
        first = states[0]
        keyed = first.sink.key_words > 0
        kinds = first.kinds  # held for as long as kernels read it: a table that grows has others
        arguments = structs.MergeLaunch(kinds=self.address(kinds), keyed=int(keyed))
        if not keyed:
            if len(states) > 1 or first.table.copies > 1:
                tables = self._tables(states)
                arguments.tables, arguments.num_tables = self.address(tables), len(states)
                self.launch("gpudb_merge", arguments, self.blocks(first.capacity // self.tile_rows))
                first.table.copies = 1
            return first
        del first  # which need not stay where it grows
        blocks = self.blocks(sum(self.entries(state) for state in states[1:]) // self.tile_rows)
        while len(states) > 1:
            run.check()
            # One block takes all tables, of which each has few entries; many take one table after the other.
            count = len(states) if blocks == 1 else 2
            tables, full = self._tables(states[:count]), self.zeros(8)
            arguments.tables, arguments.num_tables, arguments.full = self.address(tables), count, self.address(full)
            self.launch("gpudb_merge", arguments, blocks)
            if self.to_host(full, np.int64, 1)[0]:
                most = states[0].capacity + sum(self.entries(state) for state in states[1:])
                states[0] = self._grown(states[0], most, GROWTH, run)
                self._rehash(states[:1])
            else:
                del states[1:count]
        return states[0]

    def order_groups(self, state: GroupState, rows: int, run: Run) -> Emitted:
        """Numbers of the groups that occur, in order of their first row: one u32 column."""
        if state.sink.kind == "one":
            return Emitted(1, [self.zeros(64)], (R.U32,))
        groups = self.entries(state) if state.sink.key_words else state.capacity
        blocks = self.blocks(groups // self.tile_rows)
        workers = blocks * self.lanes
        numbers, counted = self.held(run, (groups + 1) * 4), self.zeros(workers * 8)
        arguments = structs.PresentLaunch(
            words=state.table.words,
            counts=self.address(counted),
            groups=groups,
            stride=state.table.stride,
            workers=workers,
        )
        self.launch("gpudb_present", arguments, blocks)
        counts = self.to_host(counted, np.int64, workers)
        present = int(counts.sum())
        begins = self.from_host(np.cumsum(counts) - counts)
        arguments.counts, arguments.group = self.address(begins), self.address(numbers)
        self.launch("gpudb_present", arguments, blocks)
        order = self._radix_sort(numbers, present, int(state.table.words), int(state.table.stride), 0, rows, run)
        return Emitted(present, [order], (R.U32,))

    # ------------------------------------------------------------------------------- joins

    def index_rows(self, words: list[Any], rows: int, numbers: int, run: Run, form: str = "any") -> RowIndex:
        """Build rows by key: one array of numbers below `numbers`, or (numbers 0) key words; `form` as of IndexRows."""
        return joins.index_rows(self, words, rows, numbers, run, form)

    def matches(self, index: RowIndex, rows: int, run: Run) -> list[Any]:
        """[first match, number of matches] by 1 + entry, and the build rows of all matches: those of an entry in row order."""
        return joins.matches(self, index, rows, run)

    def runs(self, column: Any, rows: int, size: int, run: Run) -> list[Any]:
        """[where each number below `size` begins in a sorted column, how often it occurs]."""
        return joins.runs(self, column, rows, size, run)

    def pair_offsets(self, counts: Any, rows: int, least: int, run: Run) -> tuple[Any, int]:
        """(number of each row's first pair, rows + 1 of int64; number of pairs), a row having `least` pairs at least."""
        return joins.pair_offsets(self, counts, rows, least, run)

    # ------------------------------------------------------------------------------- sorting

    def sort_rows(self, words: list[Any], rows: int, run: Run) -> Emitted:
        """Row numbers sorted by order words, the first most significant; ties keep their order."""
        if rows >= 1 << 32:
            raise run.too_many_rows("what is sorted", rows)
        if rows <= SMALL_SORT_ROWS:
            return Emitted(rows, [self._small_sort(None, rows, [self.address(word) for word in words], 1)], (R.U32,))
        order = self.held(run, (rows + 1) * 4)
        blocks = self.blocks(-(-rows // 16384))
        self.launch("gpudb_sort_start", structs.SortLaunch(rows_out=self.address(order), rows=rows), blocks)
        for word in reversed(words):
            extent = self.from_host(np.array([(1 << 63) - 1, -(1 << 63)], np.int64))
            arguments = structs.SortLaunch(word=self.address(word), range=self.address(extent), rows=rows, stride=1)
            self.launch("gpudb_sort_range", arguments, blocks)
            low, high = (int(v) for v in self.to_host(extent, np.int64, 2))
            order = self._radix_sort(order, rows, self.address(word), 1, low, high, run)
        return Emitted(rows, [order], (R.U32,))

    def _radix_sort(self, order: Any, rows: int, word: int, stride: int, low: int, high: int, run: Run) -> Any:
        """The row numbers in `order`, stably sorted by word[number * stride], which lies in low .. high."""
        bits = max(0, high - low).bit_length()
        if rows <= 1 or bits == 0:
            return order
        if rows <= SMALL_SORT_ROWS:
            return self._small_sort(order, rows, [word], stride)
        blocks = self.blocks(-(-rows // 16384))
        workers = blocks * self.lanes
        radix_bits = self.radix_bits
        keys = [self.held(run, rows * 8), self.held(run, rows * 8)]
        orders = [order, self.held(run, (rows + 1) * 4)]
        counts = self.empty((1 << radix_bits) * workers * 4)
        arguments = structs.SortLaunch(
            word=word,
            keys_out=self.address(keys[0]),
            rows_in=self.address(order),
            counts=self.address(counts),
            rows=rows,
            minimum=low,
            stride=stride,
        )
        self.launch("gpudb_sort_load", arguments, blocks)
        for shift in range(0, bits, radix_bits):
            run.check()
            arguments.shift = shift
            arguments.keys_in, arguments.keys_out = self.address(keys[0]), self.address(keys[1])
            arguments.rows_in, arguments.rows_out = self.address(orders[0]), self.address(orders[1])
            self.launch("gpudb_sort_count", arguments, blocks)
            arguments.minimum = workers
            self.launch("gpudb_sort_scan", arguments, 1)
            self.launch("gpudb_sort_scatter", arguments, blocks)
            keys.reverse()
            orders.reverse()
        return orders[0]

    def _small_sort(self, order: Any, rows: int, words: list[int], stride: int) -> Any:
        """The row numbers in `order`, 0 .. rows - 1 if it is None, stably sorted by the words at these addresses."""
        sorted_rows, spare = self.empty((rows + 1) * 4), self.empty((rows + 1) * 4)
        addresses = self.from_host(np.array(words, np.uint64))
        arguments = structs.SmallSortLaunch(
            words=self.address(addresses),
            rows_in=0 if order is None else self.address(order),
            rows_out=self.address(sorted_rows),
            spare=self.address(spare),
            rows=rows,
            num_words=len(words),
            stride=stride,
        )
        self.launch("gpudb_sort_small", arguments, 1)
        return sorted_rows

    lanes = 1
    radix_bits = 8

    def repeat_rows(self, counts: Any, rows: int, run: Run) -> Emitted:
        """Row numbers in order, each as often as its count (int64) says: one u32 column."""
        blocks = self.blocks(-(-rows // 16384))
        workers = blocks * self.lanes
        sums = self.zeros(workers * 8)
        arguments = structs.RepeatLaunch(counts=self.address(counts), sums=self.address(sums), rows=rows)
        starts = np.zeros(workers + 1, np.int64)
        if rows:
            self.launch("gpudb_repeat_count", arguments, blocks)
            np.cumsum(self.to_host(sums, np.int64, workers), out=starts[1:])
        total = int(starts[-1])
        order = self.held(run, (total + 1) * 4)
        if total:
            begins = self.from_host(starts[:-1].copy())
            arguments.sums, arguments.rows_out = self.address(begins), self.address(order)
            self.launch("gpudb_repeat_rows", arguments, blocks)
        return Emitted(total, [order], (R.U32,))

    # ------------------------------------------------------------------------------- windows

    def invert_rows(self, order: Emitted, run: Run) -> Emitted:
        """Each row's place in an order of all rows: one u32 column."""
        return windows.invert_rows(self, order, run)

    def frame_words(
        self, frames: list[Any], words: list[tuple[FrameWord, list[Any]]], rows: int, run: Run
    ) -> GroupState:
        """Groups, one a row, of what window functions sum up over its frame."""
        found = windows.frame_words(self, frames, words, rows, run)
        table = structs.GroupTable(words=self.address(found), stride=len(words), capacity=rows, copies=1)
        return GroupState(GroupSink("one", rows, 0, ()), table, {"words": found}, None)

    # ------------------------------------------------------------------------------- export

    def slice_emitted(self, emitted: Emitted, start: int, stop: int) -> Emitted:
        """Rows start .. stop of emitted columns; copied only where a pack of rows could not begin at `start`."""
        columns = []
        for column, kind in zip(emitted.columns, emitted.types, strict=True):
            found = self.view(column, start * kind.width)
            if start % self.pack_rows:
                size = (stop - start) * kind.width
                target = self.empty(size)
                self.copy(target, found, size)
                found = target
            columns.append(found)
        return Emitted(stop - start, columns, emitted.types)

    def concatenated(self, parts: list[Emitted], run: Run) -> Emitted:
        """The rows of several results of one sink, one after the other."""
        rows = sum(part.rows for part in parts)
        columns = []
        for k, kind in enumerate(parts[0].types):
            target, at = self.held(run, rows * kind.width), 0
            for part in parts:
                self.copy(self.view(target, at), part.columns[k], part.rows * kind.width)
                at += part.rows * kind.width
            columns.append(target)
        return Emitted(rows, columns, parts[0].types)

    def export(
        self, emitted: Emitted, column: int, validity: int | None, sql: SqlType, dictionary: Any, start: int, rows: int
    ) -> pa.Array:
        """Rows start .. start + rows of an emitted column as an Arrow array (its buffers may be the device's own)."""
        kind = emitted.types[column]
        values = self.view(emitted.columns[column], start * kind.width)
        bits, nulls = None, 0
        masks = None
        if validity is not None:
            masks = self.view(emitted.columns[validity], start)
            bits, ones = self._packed(masks, rows)
            nulls = rows - ones
            if nulls == 0:
                bits = None
        if sql.is_coded:
            return self._export_text(values, masks if nulls else None, bits, nulls, dictionary, rows)
        if sql.kind == "BOOLEAN":
            packed, _ = self._packed(values, rows)
            data = pa.py_buffer(packed)
        else:
            data = pa.py_buffer(self.to_host(values, np.uint8, rows * kind.width))
        return pa.Array.from_buffers(sql.entries, rows, [bits if bits is None else pa.py_buffer(bits), data], nulls)

    def _packed(self, masks: Any, rows: int) -> tuple[np.ndarray, int]:
        target, ones = self.empty(-(-rows // 8) + 8), self.zeros(8)
        self.launch(
            "gpudb_pack_bits",
            structs.BitsLaunch(
                source=self.address(masks), target=self.address(target), ones=self.address(ones), rows=rows
            ),
            self.blocks(-(-rows // 65536)),
        )
        return self.to_host(target, np.uint8, -(-rows // 8)), int(self.to_host(ones, np.int64, 1)[0])

    def _export_text(
        self, codes: Any, masks: Any, bits: np.ndarray | None, nulls: int, dictionary: Any, rows: int
    ) -> pa.Array:
        blocks = self.blocks(-(-rows // 16384))
        workers = blocks * self.lanes
        sums, offsets = self.zeros(workers * 8), self.zeros((rows + 1) * 4)
        # The bytes are shared with later versions of the dictionary, which put theirs behind them.
        offsets_of_entries = dictionary.offsets
        keep = [self.resident(offsets_of_entries), self.resident(dictionary.data, offsets_of_entries)]
        arguments = structs.TextLaunch(
            codes=self.address(codes),
            validity=self.address(masks),
            dictionary_offsets=self.address(keep[0]),
            dictionary_bytes=self.address(keep[1]),
            sums=self.address(sums),
            offsets=self.address(offsets),
            rows=rows,
        )
        total = 0
        if rows:
            self.launch("gpudb_text_count", arguments, blocks)
            starts = np.zeros(workers + 1, np.int64)
            np.cumsum(self.to_host(sums, np.int64, workers), out=starts[1:])
            total = int(starts[-1])
            if total >= 1 << 31:
                raise InternalError(f"a batch holds 2 GiB of text or more: {rows} rows, {total} bytes")
            begins = self.from_host(starts[:-1].copy())
            text = self.empty(max(1, total))
            arguments.sums, arguments.bytes = self.address(begins), self.address(text)
            self.launch("gpudb_text_copy", arguments, blocks)
            data = pa.py_buffer(self.to_host(text, np.uint8, total))
        else:
            data = pa.py_buffer(b"")
        buffers = [
            None if bits is None else pa.py_buffer(bits),
            pa.py_buffer(self.to_host(offsets, np.uint8, (rows + 1) * 4)),
            data,
        ]
        return pa.Array.from_buffers(pa.string(), rows, buffers, nulls)
