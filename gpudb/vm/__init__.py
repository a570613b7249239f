"""The virtual machine: runs a program's steps on a device and hands out Arrow record batches.

`execute` binds each pipeline to its source (row groups of a table version, rows of an earlier step, groups of a table), fills
its slots in the prologue, and gives the work to the device; `export` hands out the last pipeline's rows, and runs what of it
has not run yet as they are taken.  Past 600 lines: one class, a method for each kind of step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from gpudb import compute as pc
from gpudb import errors
from gpudb.devices.work import Emitted, InexactSum, Part, PipelineFailure, Run, StepProfile, Work
from gpudb.errors import InternalError
from gpudb.functions import blob, enums
from gpudb.functions.interval_values import packed, to_arrow
from gpudb.functions.list_spelling import lists
from gpudb.functions.uuid_values import print_uuids
from gpudb.program import (
    MORE_THAN_ONE_ROW,
    CountPairs,
    CountSource,
    EmitSink,
    FrameWords,
    FunctionFailure,
    GivenRows,
    GroupSource,
    IndexRows,
    IndexRuns,
    InvertRows,
    JoinTexts,
    LimitRows,
    MakeValues,
    OrderGroups,
    OutputColumn,
    PairSource,
    Pipeline,
    Program,
    Recurse,
    RepeatRows,
    SingleRowSource,
    SortRows,
    SourceColumn,
    StepSource,
    TableSource,
    TextFunction,
)
from gpudb.record import record
from gpudb.storage.column import padded_copy
from gpudb.storage.dictionary import Dictionary
from gpudb.storage.table import TableVersion
from gpudb.types import HUGEINT, RegisterType, SqlType
from gpudb.vm.prologue import Prologue
from gpudb.vm.recursion import recursed
from gpudb.vm.slices import FIRST_BYTES, LazyParts, Slices
from gpudb.vm.texts import TextCache, Texts, arrow_array

R = RegisterType
BATCH_ROWS = 1 << 20
MOST_PARTS = 4096  # of a series
PART_PAIRS = 1 << 20  # pairs of a join in a part: whole tiles on every device
PAIR_BYTES = 1 << 26  # for which room is made at a time, where pairs are filtered before they are emitted
GROUPED_PARTS = 4096  # of pairs that are grouped at a time


@record
class RepeatedKey(Exception):
    """A join's build side has several rows of a key: its program for that must run."""

    join: int


@record
class PairParts(Sequence[Part]):
    """The parts of a join's pairs, made when they are asked for: of a billion pairs there are many.

    columns, slots  the same for all
    """

    pairs: int
    columns: list[Any]
    slots: list[Any]

    def __len__(self) -> int:
        return (self.pairs + PART_PAIRS - 1) // PART_PAIRS

    @property
    def rows(self) -> list[int]:
        """How many of each part."""
        return [min(PART_PAIRS, self.pairs - start) for start in range(0, self.pairs, PART_PAIRS)]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        start = range(len(self))[index] * PART_PAIRS
        return Part(min(PART_PAIRS, self.pairs - start), start, self.columns, self.slots)


@record(frozen=False)
class StepRows:
    """What a step left: emitted rows, or an order (row numbers), or a group table, or arrays as `emitted` without a sink.

    rest  what comes behind the emitted rows, of the last pipeline; None where they are all
    """

    emitted: Emitted | None = None
    sink: EmitSink | None = None
    group: Any = None
    source_rows: int = 0
    dictionaries: tuple[Dictionary | None, ...] = ()
    rest: Slices | None = None


@record(frozen=False)
class Machine:
    """One execution of one program.

    tables    table versions by catalog key
    constant  the value of a constant expression, in SQL units
    sliced    the pipeline whose rows may come in slices, or None
    """

    program: Program
    device: Any
    tables: Mapping[str, TableVersion]
    constant: Callable[[Any], Any]
    run: Run
    cache: TextCache
    steps: dict[int, StepRows] = field(default_factory=dict)
    sliced: int | None = None

    def __post_init__(self) -> None:
        self._counters: dict[int, np.ndarray] = {}
        self.texts = Texts(dict(self.tables), self.steps, self.constant, self.cache, self.device, self.run)

    def execute(self) -> StepRows:
        """Run all steps; the result's rows, or the first slice of them."""
        for number, step in enumerate(self.program.steps):
            began = time.perf_counter()
            self.run.check()
            match step:
                case Pipeline():
                    self.steps[number] = self._pipeline(number, step)
                case OrderGroups(step=of):
                    found = self.steps[of]
                    order = self.device.order_groups(found.group, found.source_rows, self.run)
                    self.steps[number] = StepRows(emitted=order)
                case SortRows(step=of, words=words):
                    self.steps[number] = StepRows(emitted=self._sort(self.steps[of], words))
                case RepeatRows(step=of, counts=counts):
                    found = self.steps[of]
                    assert found.emitted is not None and found.sink is not None
                    counted = found.emitted.columns[found.sink.values[counts].column]
                    rows = self.device.repeat_rows(counted, found.emitted.rows, self.run)
                    self.steps[number] = StepRows(emitted=rows)
                case LimitRows(step=of):
                    self.steps[number] = self._limit(self.steps[of], step)
                case GivenRows():
                    assert number in self.steps, "whoever runs the program gives the rows"
                case Recurse():
                    self.steps[number] = recursed(self, step)
                case MakeValues():
                    self.steps[number] = self._values(step)
                case JoinTexts():
                    self.steps[number] = self._join_texts(step)
                case IndexRows():
                    self.steps[number] = self._index(step)
                case CountPairs():
                    self.steps[number] = self._count_pairs(step)
                case IndexRuns(step=of, column=column, over=over):
                    column_of = self._of_step(SourceColumn(column, "stored", R.I64, of))
                    rows, size = self._rows_of(of), self._rows_of(over)
                    found = self.device.runs(column_of, rows, size, self.run)
                    self.steps[number] = StepRows(emitted=Emitted(size, found, (R.U32, R.U32)))
                case InvertRows(step=of):
                    order = self.steps[of].emitted
                    assert order is not None, "an order has rows"
                    self.steps[number] = StepRows(emitted=self.device.invert_rows(order, self.run))
                case FrameWords():
                    self.steps[number] = self._frame_words(step)
            if self.run.profile is not None:
                self.run.profile.append(self._profile(number, time.perf_counter() - began))
            if self.steps[number].rest is None:  # else what it reads is read again
                for over in self.program.last_used[number]:
                    self.steps.pop(over, None)
        return self.steps[self.program.result]

    def _profile(self, number: int, seconds: float) -> StepProfile:
        """A step's time, shared out over its instructions by the device's own clock."""
        emitted = self.steps[number].emitted
        instructions: tuple[tuple[float, int], ...] = ()
        if number in self._counters:
            counters = self._counters[number]
            total = max(1, int(counters[:, 0].sum()))
            instructions = tuple((seconds * took / total, rows) for took, rows in counters.tolist())
        return StepProfile(number, seconds, None if emitted is None else emitted.rows, instructions)

    # ------------------------------------------------------------------------------- pipelines

    def _pipeline(self, number: int, pipeline: Pipeline) -> StepRows:
        prologue = Prologue(pipeline, self.constant, self.texts)
        parts, source_table = self._parts(pipeline, prologue)
        into = None
        if not isinstance(pipeline.sink, EmitSink) and pipeline.sink.into is not None:
            into = self.steps[pipeline.sink.into].group
        limit = self._limit_of(pipeline)
        parted = into is None and number not in self.program.looked_up
        work = Work(pipeline, parts, self.run, source_table, into, parted=parted)
        sink = pipeline.sink
        if isinstance(sink, EmitSink) and sink.ordered:
            work.top, limit = limit, None
        if self.run.profile is not None:
            work.profile = self._counters[number] = np.zeros((len(pipeline.instructions), 2), np.int64)
        if number == self.sliced and isinstance(sink, EmitSink) and limit is None:
            slices = self._slices(work, sink)
            if slices is not None:
                return StepRows(emitted=slices.following(), sink=sink, rest=slices)
        most = self._most_parts(work) if isinstance(parts, PairParts) else len(parts)
        try:
            if len(parts) < 2 or (limit is None and len(parts) <= most):
                work.parts = parts[:]
                result = self.device.run_pipeline(work)
            elif isinstance(pipeline.sink, EmitSink):
                result = self._run_until(work, limit, max(1, most))
            else:
                result = self._grouped(work, most)
        except PipelineFailure as failure:
            raise self._error(pipeline, failure) from None
        rows = rows_behind(parts)
        if isinstance(sink, EmitSink):
            return StepRows(emitted=result, sink=sink, source_rows=rows)
        if sink.into is not None:
            rows = max(rows, self.steps[sink.into].source_rows)
        return StepRows(group=result, source_rows=rows)

    def _slices(self, work: Work, sink: EmitSink) -> Slices | None:
        """The pipeline's rows in slices; None where they are so few that they are computed at once."""
        width = max(1, sum(kind.width for kind in sink.columns))
        rows = rows_of(work.parts)
        if len(rows) < 2 or sum(rows) * width <= FIRST_BYTES:
            return None

        def emit(some: Sequence[Part]) -> Emitted:
            try:
                emitted: Emitted = self.device.run_pipeline(replace(work, parts=some))
                return emitted
            except PipelineFailure as failure:
                raise self._error(work.pipeline, failure) from None

        return Slices(work.parts, rows, width, self.run, emit)

    def _limit_of(self, pipeline: Pipeline) -> int | None:
        if not isinstance(pipeline.sink, EmitSink) or pipeline.sink.limit is None:
            return None
        count, offset = pipeline.sink.limit
        if count is None or (value := self.constant(count)) is None:
            return None
        return int(value) + (int(self.constant(offset) or 0) if offset is not None else 0)

    def _most_parts(self, work: Work) -> int:
        """How many parts of pairs to run at a time: few where rows are filtered before they are emitted."""
        sink = work.pipeline.sink
        if not isinstance(sink, EmitSink):
            return GROUPED_PARTS
        width = max(1, sum(kind.width for kind in sink.columns))
        if not sink.filtered:
            pairs = rows_behind(work.parts)
            if sink.limit is None:
                self.run.ledger.check(pairs * width, self.device.spills)  # all of them will be there
            return len(work.parts)
        return max(1, PAIR_BYTES // (PART_PAIRS * width))

    def _grouped(self, work: Work, most: int) -> Any:
        """Some parts at a time into one group table."""
        table = work.into
        for at in range(0, len(work.parts), most):
            self.run.check()
            some = replace(work, parts=work.parts[at : at + most], into=table, parted=False)
            table = self.device.run_pipeline(some)
        return table

    def _run_until(self, work: Work, limit: int | None, most: int) -> Emitted:
        """Parts a few at a time, until there are rows enough; each time's rows are kept in as much memory as they need."""
        found: list[Emitted] = []
        rows, at, step = 0, 0, 1 if limit is not None else most
        while at < len(work.parts) and (limit is None or rows < limit or not found):
            emitted = self.device.run_pipeline(replace(work, parts=work.parts[at : at + step]))
            if isinstance(work.parts, PairParts):
                emitted = self.device.concatenated([emitted], self.run)
            found.append(emitted)
            rows, at, step = rows + emitted.rows, at + step, min(step * 2, most)
        if not isinstance(work.parts, PairParts):
            self.run.tiles_skipped += sum(-(-rows // self.device.tile_rows) for rows in rows_of(work.parts)[at:])
        return found[0] if len(found) == 1 else self.device.concatenated(found, self.run)

    def _parts(self, pipeline: Pipeline, prologue: Prologue) -> tuple[Sequence[Part], Any]:
        source = pipeline.source
        match source:
            case TableSource():
                return self._table_parts(pipeline, source, prologue), None
            case SingleRowSource():
                columns = [self._of_step(column) for column in pipeline.columns]
                return [Part(1, 0, columns, prologue.slots(None))], None
            case PairSource(step=step):
                columns, slots = [self._of_step(column) for column in pipeline.columns], prologue.slots(None)
                return PairParts(self._rows_of(step), columns, slots), None
            case CountSource(rows=rows):
                # Parts, so that LIMIT need not wait for all, and few, so that a long series is not a long list.
                size = max(BATCH_ROWS, -(-rows // MOST_PARTS // BATCH_ROWS) * BATCH_ROWS)
                columns, slots = [self._of_step(column) for column in pipeline.columns], prologue.slots(None)
                starts = range(0, rows, size)
                return [Part(min(size, rows - start), start, columns, slots) for start in starts], None
            case GroupSource(step=step, order=order):
                emitted = self.steps[order].emitted
                assert emitted is not None
                columns = [emitted.columns[0] if c.step is None else self._of_step(c) for c in pipeline.columns]
                return [Part(emitted.rows, 0, columns, prologue.slots(None))], self.steps[step].group
            case StepSource(steps=steps, order=order):
                return self._step_parts(pipeline, steps, order, prologue), None
        raise AssertionError(f"unknown source: {source}")

    def _rows_of(self, step: int) -> int:
        emitted = self.steps[step].emitted
        assert emitted is not None, f"step {step} left no rows"
        return emitted.rows

    def _of_step(self, column: SourceColumn) -> Any:
        """The array behind a column of an earlier step."""
        assert column.step is not None, "a source without columns"
        left = self.steps[column.step]
        assert left.emitted is not None
        index: int | None = column.index
        if not left.emitted.rows and isinstance(self.program.steps[column.step], SortRows):
            return self.device.from_host(host_column([0], column.type))  # read where no row is found
        if column.part != "array":
            assert left.sink is not None
            if not left.emitted.rows:  # what row 0 has, where no row is found: a code that its dictionary holds, say
                return self.device.from_host(host_column([0], column.type))
            output = left.sink.values[column.index]
            index = output.column if column.part == "stored" else output.validity
        assert index is not None
        return left.emitted.columns[index]

    def _table_parts(self, pipeline: Pipeline, source: TableSource, prologue: Prologue) -> LazyParts:
        found = []
        for group in self.tables[source.table].row_groups:
            chunks = tuple(group.chunks[ordinal] for ordinal in source.ordinals)
            if source.zones and not prologue.may_match(source.zones, chunks):
                self.run.tiles_skipped += -(-group.rows // self.device.tile_rows)
                continue
            found.append((group, chunks))

        def make(number: int) -> Part:
            group, chunks = found[number]
            columns: list[Any] = []
            for column in pipeline.columns:
                if column.step is not None:
                    columns.append(self._of_step(column))
                    continue
                chunk = chunks[column.index]
                array = chunk.stored if column.part == "stored" else chunk.validity
                columns.append(array)
                width = column.type.width * group.rows if column.part == "stored" else group.rows // 8
                self.run.bytes_read += width
            return Part(group.rows, group.first_row, columns, prologue.slots(chunks))

        return LazyParts([group.first_row for group, _ in found], [group.rows for group, _ in found], make)

    def _step_parts(
        self, pipeline: Pipeline, steps: tuple[int, ...], order: int | None, prologue: Prologue
    ) -> list[Part]:
        parts = []
        first = 0
        for step in steps:
            left = self.steps[step]
            assert left.emitted is not None and left.sink is not None
            rows = left.emitted.rows
            ordered = self.steps[order].emitted if order is not None else None
            if ordered is not None:
                rows = ordered.rows
            columns: list[Any] = []
            for column in pipeline.columns:
                if column.step is not None:
                    columns.append(self._of_step(column))
                    continue
                if column.part == "rows":
                    assert ordered is not None
                    columns.append(ordered.columns[0])
                    continue
                output = left.sink.values[column.index]
                index = output.column if column.part == "stored" else output.validity
                assert index is not None
                columns.append(left.emitted.columns[index])
                self.run.bytes_read += column.type.width * rows
            parts.append(Part(rows, first, columns, prologue.slots(None)))
            first += rows
        return parts

    def _error(self, pipeline: Pipeline, failure: PipelineFailure) -> errors.Error:
        kind, message, span = pipeline.messages[failure.message]
        if isinstance(message, TextFunction):
            evaluated = self.texts.evaluated(message)
            found = evaluated.error
            if found is not None and (message.tuples or int(evaluated.failed.sum()) == 1):
                return type(found)(found.message, span=span, hint=found.hint)
            what = (
                f"could not convert a text to {message.type}" if message.name == "cast" else f"{message.name}() failed"
            )
            example = "" if found is None else f", for example: {found.message}"
            return errors.ConversionError(what + example, span=span)
        error: type[errors.Error] = getattr(errors, kind)
        if isinstance(message, FunctionFailure):
            rows = f"table {pipeline.source.table}" if isinstance(pipeline.source, TableSource) else "its input"
            message = f"{message.what}: {message.name}, row {failure.row} of {rows}, counted from 0"
        return error(message, span=span)

    # ------------------------------------------------------------------------------- joins

    def _index(self, step: IndexRows) -> StepRows:
        rows = self._rows_of(step.step)
        words = [self._of_step(SourceColumn(word, "stored", R.I64, step.step)) for word in step.words]
        index = self.device.index_rows(words, rows, step.numbers, self.run, step.form)
        if index.repeated and step.form == "one":
            if step.single is not None:
                raise errors.DataError(MORE_THAN_ONE_ROW, span=step.single[0])
            raise RepeatedKey(step.join)
        if step.form == "all":
            found = self.device.matches(index, rows, self.run)
            return StepRows(emitted=Emitted(rows, found, (R.U32,) * 3), group=index.table)
        arrays = [] if index.first is None else [index.first]
        return StepRows(emitted=Emitted(rows, arrays, (R.U32,) * len(arrays)), group=index.table)

    def _count_pairs(self, step: CountPairs) -> StepRows:
        counts = self._of_step(step.counts)
        offsets, pairs = self.device.pair_offsets(counts, self._rows_of(step.step), step.least, self.run)
        return StepRows(emitted=Emitted(pairs, [offsets], (R.I64,)))

    # ------------------------------------------------------------------------------- windows

    def _frame_words(self, step: FrameWords) -> StepRows:
        left = self.steps[step.step]
        assert left.emitted is not None and left.sink is not None
        columns = [left.emitted.columns[value.column] for value in left.sink.values]
        rows = left.emitted.rows
        frames = [[(columns[begin], columns[end]) for begin, end in runs] for runs in step.frames]
        words = [(word, [columns[column] for column in word.columns]) for word in step.words]
        return StepRows(group=self.device.frame_words(frames, words, rows, self.run), source_rows=rows)

    # ------------------------------------------------------------------------------- other steps

    def _sort(self, left: StepRows, words: tuple[int, ...]) -> Emitted:
        assert left.emitted is not None and left.sink is not None
        columns = [left.emitted.columns[left.sink.values[w].column] for w in words]
        return self.device.sort_rows(columns, left.emitted.rows, self.run)

    def _limit(self, left: StepRows, step: LimitRows) -> StepRows:
        assert left.emitted is not None
        rows = left.emitted.rows
        count = None if step.count is None else self.constant(step.count)
        offset = (0 if step.offset is None else self.constant(step.offset)) or 0
        if step.percent and count is not None:
            count = int(count / 100 * rows)  # in this order, as DuckDB computes it
        for number, name in ((count, "LIMIT"), (offset, "OFFSET")):
            if number is not None and number < 0:
                raise errors.OutOfRangeError(f"{name} cannot be negative: {number}")
        start = min(rows, int(offset))
        stop = rows if count is None else min(rows, start + int(count))
        return replace(left, emitted=self.device.slice_emitted(left.emitted, start, stop))

    def _values(self, step: MakeValues) -> StepRows:
        """Literal rows as columns; a text column gets a dictionary of its own."""
        columns: list[Any] = []
        types: list[RegisterType] = []
        outputs: list[OutputColumn] = []
        dictionaries: list[Dictionary | None] = []
        for k, sql in enumerate(step.types):
            cells = [self.constant(row[k]) for row in step.rows]
            if sql.kind == "INTERVAL":
                cells = [None if c is None else packed(c) for c in cells]
            dictionary = None
            numbers: list[Any] = [0 if c is None else c for c in cells]
            kind = R.U32 if sql.is_coded else sql.register
            if sql.is_coded:
                distinct = list(dict.fromkeys("" if c is None else c for c in cells))
                dictionary = Dictionary.of(distinct)
                place = {
                    text: int(code)
                    for text, code in zip(distinct, dictionary.codes_of(pa.array(distinct)), strict=True)
                }
                numbers = [place["" if c is None else c] for c in cells]
            types.append(kind)
            columns.append(self.device.from_host(host_column(numbers, kind)))
            validity = None
            if any(row[k].value is None for row in step.rows):
                types.append(R.MASK)
                validity = len(columns)
                columns.append(self.device.from_host(padded_copy(np.array([c is not None for c in cells]), np.uint8)))
            outputs.append(OutputColumn(len(columns) - 1 - (validity is not None), kind, validity))
            dictionaries.append(dictionary)
        emitted = Emitted(len(step.rows), columns, tuple(types))
        sink = EmitSink(tuple(types), tuple(outputs), False)
        return StepRows(emitted=emitted, sink=sink, dictionaries=tuple(dictionaries))

    def _join_texts(self, step: JoinTexts) -> StepRows:
        rows, taken = self._rows_of(step.step), self._rows_of(step.rows)
        order = self.steps[step.order].emitted
        assert order is not None, "an order has rows"
        column = self._of_step(SourceColumn(step.start, "stored", R.I64, step.step))
        starts = self.device.to_host(column, np.int64, rows)
        places = self.device.to_host(order.columns[0], np.uint32, taken)
        if step.element is None:
            codes = self.device.to_host(
                self._of_step(SourceColumn(step.column, "stored", R.U32, step.rows)), np.uint32, taken
            )
            assert step.dictionary is not None, "texts have a dictionary"
            found, dictionary = self.texts.joined(
                starts, codes[places], self.texts.dictionary(step.dictionary), self.constant(step.separator)
            )
        else:
            found, dictionary = self.texts.listed(starts, self._elements(step, step.element, places), step.element)
        self.run.host_rows += taken
        columns = [self.device.from_host(padded_copy(found, np.uint32))]
        return StepRows(emitted=Emitted(rows, columns, (R.U32,)), dictionaries=(dictionary,))

    def _elements(self, step: JoinTexts, element: SqlType, places: np.ndarray) -> pa.Array:
        """(rows,) the values of rows in an order, of `element.entries`."""
        left, rows = self.steps[step.rows], len(places)
        assert left.sink is not None
        output = left.sink.values[step.column]
        column = self._of_step(SourceColumn(step.column, "stored", output.type, step.rows))
        valid = None
        if output.validity is not None:
            masks = self._of_step(SourceColumn(step.column, "validity", R.MASK, step.rows))
            valid = self.device.to_host(masks, np.uint8, rows)[places] != 0
        if output.type is R.I128:
            assert left.emitted is not None
            wide = self.device.export(left.emitted, output.column, None, HUGEINT, None, 0, rows)
            numbers = np.frombuffer(wide.buffers()[1], np.uint64)[: 2 * rows].reshape(-1, 2)[places]
        else:
            numbers = self.device.to_host(column, output.type.dtype, rows)[places]
        if element.is_coded:
            assert step.dictionary is not None, "texts have a dictionary"
            texts = self.texts.dictionary(step.dictionary).values.take(pa.array(numbers.astype(np.int64)))
            return texts if valid is None else pc.if_else(pa.array(valid), texts, pa.scalar(None, pa.string()))
        return arrow_array(numbers, valid, element)


def rows_behind(parts: Sequence[Part]) -> int:
    """The number of the first row behind all parts."""
    if isinstance(parts, LazyParts):
        return parts.first_rows[-1] + parts.rows[-1] if parts.rows else 0
    return parts[-1].first_row + parts[-1].rows if parts else 0


def rows_of(parts: Sequence[Part]) -> Sequence[int]:
    """How many rows each part has."""
    return parts.rows if isinstance(parts, LazyParts | PairParts) else [part.rows for part in parts]


def host_column(numbers: list[Any], kind: RegisterType) -> np.ndarray:
    """Padded array of a register type from Python numbers; I128 as pairs of words."""
    if kind is R.I128:
        words = np.zeros((len(numbers), 2), np.uint64)
        for row, number in enumerate(numbers):
            words[row] = (int(number) & ((1 << 64) - 1), (int(number) >> 64) & ((1 << 64) - 1))
        return padded_copy(words.reshape(-1), np.uint64)
    return padded_copy(np.array(numbers, kind.dtype), kind.dtype)


def execute(
    program: Program,
    device: Any,
    tables: Mapping[str, TableVersion],
    constant: Callable[[Any], Any],
    state: Run,
    cache: TextCache,
    sliced: bool = False,
) -> tuple[Machine, StepRows]:
    """Run a program's steps; `export` then hands out the rows.

    sliced  of many rows that need not be in an order only the first slice is computed, and the others by `export`

    Raises the program's own errors, QueryCancelled and MemoryLimitError.  Where a float sum does not fit its fixed-point
    lanes, the program's exact form runs instead; where a join meets several rows of a key, the form for that, this time and
    from now on.
    """
    program = program.usual
    while True:  # each time without what the last one held: its frames are gone with the exception
        try:
            machine = Machine(program, device, tables, constant, state, cache)
            machine.sliced = program.rows_as_they_come if sliced else None
            return machine, machine.execute()
        except InexactSum:
            if program.exact is None:
                raise InternalError("an exact program met an inexact sum") from None
            other = program.exact()
        except RepeatedKey as found:
            if program.repeated is None:
                raise InternalError(f"a program without joins met a repeated key: join {found.join}") from None
            other = program.repeated(found.join)
            program.usually(other)
        del machine
        program = other.usual
        if state.profile is not None:
            state.profile.clear()


def first_row(machine: Machine, result: StepRows) -> list[int | float | None]:
    """The values of the first row of a result, as registers hold them; no texts."""
    emitted, sink = result.emitted, result.sink
    assert emitted is not None and sink is not None
    found: list[int | float | None] = []
    for output in sink.values:
        column = emitted.columns[output.column]
        if output.validity is not None and not machine.device.to_host(emitted.columns[output.validity], np.uint8, 1)[0]:
            found.append(None)
        elif output.type is R.I128:
            low, high = (int(word) for word in machine.device.to_host(column, np.uint64, 2))
            found.append(low + (high << 64) - (high >> 63 << 128))
        else:
            found.append(machine.device.to_host(column, output.type.dtype, 1)[0].item())
    return found


def export(
    machine: Machine,
    result: StepRows,
    schema: pa.Schema,
    types: tuple[SqlType, ...],
    running: Callable[[], AbstractContextManager[None]] = nullcontext,
    first: int = 0,
) -> Iterator[pa.RecordBatch]:
    """The rows of a result from the one numbered `first` on, as record batches of at most BATCH_ROWS rows.

    running  what each further slice runs in
    """
    emitted, sink, rest = result.emitted, result.sink, result.rest
    assert emitted is not None and sink is not None
    while emitted is not None:
        for start in range(first, emitted.rows, BATCH_ROWS):
            machine.run.check()
            yield _batch(machine, emitted, sink, schema, types, start)
        first = max(0, first - emitted.rows)
        if rest is None:
            return
        emitted = result.emitted = None  # its memory is for the next
        with running():
            emitted = rest.following()


def _batch(
    machine: Machine, emitted: Emitted, sink: EmitSink, schema: pa.Schema, types: tuple[SqlType, ...], start: int
) -> pa.RecordBatch:
    """Rows from `start` on."""
    rows = min(BATCH_ROWS, emitted.rows - start)
    arrays: list[pa.Array] = []
    for output, sql in zip(sink.values, types, strict=True):
        dictionary = machine.texts.dictionary(output.dictionary) if output.dictionary is not None else None
        array = machine.device.export(emitted, output.column, output.validity, sql, dictionary, start, rows)
        array = shown(array, sql)
        wanted = schema.field(len(arrays)).type
        arrays.append(array if array.type == wanted else array.cast(wanted))  # a time zone changes no bits
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def shown(array: pa.Array, sql: SqlType) -> pa.Array:
    """An array of `sql.entries` as users get it."""
    match sql.kind:
        case "LIST":
            return lists(array, sql)
        case "INTERVAL":
            return to_arrow(array)
        case "BLOB":
            return blob.to_arrow(array)
        case "UUID":
            return print_uuids(array)
        case "ENUM":
            return enums.to_arrow(array, sql)
    return array


__all__ = ["Machine", "Run", "execute", "export", "first_row"]
