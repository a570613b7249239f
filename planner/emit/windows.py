"""Lowering of window functions.

The rows are emitted with order words of partition and order, and sorted: a row's *position* is its place in that order.  Where
partitions begin, and rows that are no peers of those before them, is found by comparing each position with the one before; a
running count of these, and a list of their positions, then tell where the partition and the peers of any position begin and
end.  Ranks, frames and the rows that lag() and its kin look at are arithmetic on positions, done by ordinary instructions.
Aggregates keep the words that they keep of groups (`emit.aggregates`); a `FrameWords` step sums them up over each row's
frame, so that rows have "groups".  What comes out is read at each row's position, so rows keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from gpudb.errors import NotSupportedError
from gpudb.planner.emit.aggregates import Accumulators, Feed, Finish, Part, word_part
from gpudb.planner.emit.builder import PipelineBuilder, Value
from gpudb.planner.emit.expressions import ExpressionEmitter
from gpudb.planner.emit.group_keys import word_value
from gpudb.planner.emit.order_words import sort_words
from gpudb.planner.emit.positions import MOST_ROWS, Marks, Positions, Runs, counted
from gpudb.planner.emit.streams import LazyValues, Left, Stream
from gpudb.planner.expressions import (
    PRECEDING,
    AggregateCall,
    Column,
    Expression,
    WindowCall,
)
from gpudb.planner.logical import Window
from gpudb.program import (
    CountPairs,
    FrameWord,
    FrameWords,
    GroupSource,
    InvertRows,
    Operand,
    PlainSlot,
    SortRows,
    SourceColumn,
    StepSource,
)
from gpudb.types import BIGINT, DOUBLE, INTEGER, RegisterType

R = RegisterType
OF_POSITIONS = ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile")
OF_VALUES = ("lag", "lead", "first_value", "last_value", "nth_value")


class FrameFeed(Feed):
    """Collects the words that aggregates over one frame sum up."""

    def __init__(
        self, accumulators: Accumulators, emitter: ExpressionEmitter, number: int, size: Callable[[], Part]
    ) -> None:
        super().__init__(accumulators, emitter, None, None)
        self.number = number
        self.size = size
        self.summed: dict[int, tuple[str, tuple[Operand, ...], int]] = {}

    def counted(self, mask: Operand | None) -> Part:
        return self.size() if mask is None else super().counted(mask)

    def packed(self, value: Value, mask: Operand | None) -> tuple[Part, Part] | None:
        return None if mask is None else super().packed(value, mask)  # the frame's size needs no word

    def extreme(self, word_operand: Operand, mask: Operand | None, greatest: bool) -> int:
        return self._summed("greatest" if greatest else "least", self.neutral_unless(word_operand, mask, greatest))

    def arg_min(self, keys: list[Operand], payload: Operand, mask: Operand | None) -> int:
        raise NotSupportedError("min and max over a window's frame of values beyond 64 bits are not supported")

    def wide(self, x: Operand, y: Operand | None, mask: Operand | None) -> int:
        assert y is None, "products are summed by `moments`"
        return self._summed("sum", self.builder.vector(x), self._mask(mask))

    def wide_total(self, emitter: ExpressionEmitter, group: Operand, word: int) -> Operand:
        return word_value(emitter, word_part(word)(emitter.builder, group), Value(DOUBLE, R.F64, group), None).operand

    def moments(self, name: str, columns: list[Operand], valid: Operand | None) -> Finish:
        """Variance and correlation, made where the words are."""
        count = self.counted(valid)
        least = 2 if name in ("var_samp", "stddev_samp", "covar_samp") else 1
        kind = {"corr": "correlation", "covar_samp": "covariance", "covar_pop": "covariance"}.get(name, "variance")
        word = self._summed(kind, *map(self.builder.vector, columns), self._mask(valid), less=least - 1)

        def finish(emitter: ExpressionEmitter, group: Operand) -> Value:
            builder = emitter.builder
            enough = builder.make("Ge", R.MASK, count(builder, group), builder.slot(PlainSlot(R.I64, least)))
            found = self.wide_total(emitter, group, word)
            if name.startswith("stddev"):
                found = builder.make("SquareRoot", R.F64, found)
            return Value(DOUBLE, R.F64, found, enough)

        return finish

    def _mask(self, mask: Operand | None) -> Operand:
        return self.builder.vector(self.builder.slot(PlainSlot(R.MASK, 1)) if mask is None else mask)

    def _summed(self, kind: str, *columns: Operand, less: int = 0) -> int:
        word = self.new_word("add", 0)
        self.summed[word] = (kind, columns, less)
        return word

    def finish(self, first_rows: bool) -> None:
        """Additive terms are words as they are."""
        for word, operand in self._adds:
            self.summed[word] = ("add", (operand,), 0)


class WindowEmitter:
    """Emits one Window node."""

    def __init__(self, query: Any, node: Window) -> None:
        self.query = query
        self.node = node

    def close(self) -> Callable[[], Stream]:
        """Emit the steps; what opens a pipeline over the rows with the values of the calls behind their columns."""
        self._emit_rows()
        self._find_marks()
        place = Positions(self.query.open(self.sorted), self.rows, self.order, self.partitions, self.peers)
        self.place = place
        outputs: list[Value] = []
        index: dict[Value, int] = {}

        def noted(value: Value) -> int:
            if value not in index:
                index[value] = len(outputs)
                outputs.append(value)
            return index[value]

        frames: dict[Any, FrameFeed] = {}
        runs: list[tuple[tuple[int, int], ...]] = []
        accumulators = Accumulators(False, self.sorted.row_bound, self.query.exact, words=[])
        reads: list[Any] = []
        for call in self.node.calls:
            if call.name in OF_POSITIONS:
                reads.append(partial(self._of_position, noted(place.rank(call)), call))
                continue
            known = None
            if call.ignore_nulls:
                known = self.known[call.arguments[0]]
            if call.name in ("lag", "lead"):
                target = place.neighbour(call, known)
            else:
                found = place.frame(call, self._reached)
                if call.name not in OF_VALUES:
                    reads.append(self._aggregate(call, found, frames, runs, accumulators, noted))
                    continue
                target = place.of_frame(call, found, known)
            row = place.at(self.order, R.U32, place.choose(target[1], target[0], 0))
            row = place.builder.make("Convert", R.U32, row)
            reads.append(partial(self._of_row, noted(Value(INTEGER, R.U32, row, target[1], 0, MOST_ROWS)), call))
        words: list[FrameWord] = [FrameWord("add", (), 0)] * len(accumulators.words)
        for feed in frames.values():
            feed.finish(first_rows=False)
            for word, (kind, columns, less) in feed.summed.items():
                whole = tuple(noted(Value(BIGINT, o.type, o)) for o in columns)  # type: ignore[arg-type]  # a register's
                words[word] = FrameWord(kind, whole, feed.number, less)
        self.query.fixed_used |= accumulators.fixed_used
        self.step, self.became = self.query.emit(place.stream, outputs)
        self.table = self.query.add(FrameWords(self.step, tuple(runs), tuple(words))) if words else None
        self.inverse = self.query.add(InvertRows(self.order))
        return partial(self._open, reads)

    # ------------------------------------------------------------------------------------------- steps

    def _emit_rows(self) -> None:
        """The rows with what sorts them, and their order."""
        query, node = self.query, self.node
        stream = query.stream(node.input)
        stream.compact()
        emitter = stream.emitter()
        values = [stream.values[k] for k in range(len(node.input.columns))]
        words = [word for key in node.keys for word in sort_words(emitter, emitter.value(key), False, False)]
        self.partition_words = len(words)
        self.nullable = bool(node.order) and emitter.value(node.order[0].expression).valid is not None
        for key in node.order:
            words += sort_words(emitter, emitter.value(key.expression), key.descending, key.nulls_first)
        self.first_word = len(values)
        values += words
        self.arguments: dict[Expression, int] = {}  # what is read of other rows: the column of each
        for call in node.calls:
            for argument in call.arguments[:1] if call.name in OF_VALUES else ():
                if isinstance(argument, Column):
                    self.arguments[argument] = argument.index
                elif argument not in self.arguments:
                    self.arguments[argument] = len(values)
                    values.append(emitter.value(argument))
        self.rows, became = query.emit(stream, values)
        self.order = query.add(SortRows(self.rows, tuple(range(self.first_word, self.first_word + len(words)))))
        self.num_words = len(words)
        self.sorted: Left = Left((self.rows,), became, stream.row_bound, self.order)

    def _find_marks(self) -> None:
        """Where partitions and peers begin, and which arguments are not NULL."""
        query = self.query
        stream = query.open(self.sorted)
        builder = stream.builder
        make, slot = builder.make, builder.slot
        own = builder.block_once("RowNumber", (R.I64,), R.I64)
        first = make("Eq", R.MASK, own, slot(PlainSlot(R.I64, 0)))
        before = make("Select", R.I64, first, own, make("Subtract", R.I64, own, slot(PlainSlot(R.I64, 1))))
        order = builder.column(0, "array", R.U32, self.order)
        row = builder.block_once("Gather", (R.U32, R.U32, R.U32), R.U32, order, make("Convert", R.U32, before))

        def changes(mask: Operand, numbers: range) -> Operand:
            for number in numbers:
                column = builder.column(self.first_word + number, "stored", R.I64)
                other = builder.block_once("Gather", (R.I64, R.I64, R.U32), R.I64, column, row)
                mine = stream.values[self.first_word + number].operand
                mask = make("Or", R.MASK, mask, make("Ne", R.MASK, mine, other))
            return mask

        masks: dict[Any, Operand] = {}
        partition, reached = first, False
        if self.partition_words:
            masks["partition"] = partition = changes(first, range(self.partition_words))
        if self.num_words > self.partition_words:
            masks["peers"] = changes(partition, range(self.partition_words, self.num_words))
        for call in self.node.calls:
            if call.ignore_nulls:
                value = stream.values[self.arguments[call.arguments[0]]]
                masks[call.arguments[0]] = builder.vector(value.valid or slot(PlainSlot(R.MASK, 1)))
            if call.frame.unit == "range" and (call.start is not None or call.end is not None):
                reached = True
        if reached and self.nullable:
            flag = stream.values[self.first_word + self.partition_words].operand
            present = slot(PlainSlot(R.I64, int(self.node.order[0].nulls_first)))
            masks["order"] = make("Eq", R.MASK, flag, present)
        found = {name: Value(INTEGER, R.U32, make("Convert", R.U32, mask), None, 0, 1) for name, mask in masks.items()}
        if not found:
            self.partitions = self.peers = None
            self.known: dict[Any, Marks] = {}
            return
        values = list(found.values())
        if reached:
            values.append(stream.values[self.first_word + self.partition_words + self.nullable])
        step, became = query.emit(stream, values)
        self.reached = SourceColumn(len(found), "stored", R.I64, step)
        marks: dict[Any, Marks] = {}
        for at, name in enumerate(found):
            counts = query.add(CountPairs(SourceColumn(at, "stored", R.U32, step), 0))
            rows = query.open(Left((step,), became, self.sorted.row_bound))
            chosen = rows.builder.make("Ne", R.MASK, rows.values[at].operand, rows.builder.slot(PlainSlot(R.U32, 0)))
            rows.alive, rows.filtered = chosen, True
            rows.compact()
            number = rows.builder.make("Convert", R.U32, rows.builder.block_once("RowNumber", (R.I64,), R.I64))
            places, _ = query.emit(rows, [Value(INTEGER, R.U32, number, None, 0, MOST_ROWS)])
            marks[name] = Marks(counts, places)
        self.partitions, self.peers = marks.pop("partition", None), marks.pop("peers", None)
        self.known = marks

    def _reached(self, call: WindowCall, value: Expression, last: bool) -> Operand:
        """Where the order reaches (or, of a frame's end, passes) a value: an end of a RANGE with an offset."""
        place, key = self.place, self.node.order[0]
        builder = place.builder
        bound = place.emitter.value(value)
        if bound.type is R.I128:
            raise NotSupportedError(f"RANGE over {bound.sql} values beyond 64 bits is not supported", span=call.span)
        word = builder.vector(sort_words(place.emitter, replace(bound, valid=None), key.descending, False)[-1].operand)
        own = place.stream.values[self.first_word + self.partition_words + self.nullable].operand
        backwards = (call.frame.end if last else call.frame.start) == PRECEDING
        negative = place.less(own, word) if backwards else place.less(word, own)
        place.emitter.fail_where(negative, bound.valid, "OutOfRangeError", "offset of a RANGE is negative", call)
        begin, end = place.partition
        if self.nullable:
            marks = self.known["order"]
            present = place.minus(place.marked_before(marks, end), place.marked_before(marks, begin))
            begin, end = (place.minus(end, present), end) if key.nulls_first else (begin, place.plus(begin, present))
        column = builder.column(self.reached.index, "stored", R.I64, self.reached.step)
        limits = [builder.make("Convert", R.U32, builder.vector(limit)) for limit in (begin, end)]
        signature = (R.U32, R.I64, R.I64, R.U32, R.U32)
        found = builder.block_once("FirstPassed" if last else "FirstReached", signature, R.U32, column, word, *limits)
        position = builder.make("Convert", R.I64, found)
        return position if bound.valid is None else place.choose(bound.valid, position, place.peer_run[last])

    def _aggregate(
        self,
        call: WindowCall,
        found: Runs,
        frames: dict[Any, FrameFeed],
        runs: list[tuple[tuple[int, int], ...]],
        accumulators: Accumulators,
        noted: Callable[[Value], int],
    ) -> Callable[[PipelineBuilder, Sequence[Value], Operand], Value]:
        place = self.place
        builder = place.builder
        key = (call.frame, call.start, call.end)
        if key not in frames:

            def narrow(position: Operand) -> int:
                return noted(Value(INTEGER, R.U32, builder.make("Convert", R.U32, builder.vector(position))))

            def size() -> Part:
                total = place.minus(found[0][1], found[0][0])
                for begin, end in found[1:]:
                    total = place.plus(total, place.minus(end, begin))
                return partial(self._gathered, noted(counted(total)))

            frames[key] = FrameFeed(accumulators, place.emitter, len(runs), size)
            runs.append(tuple((narrow(begin), narrow(end)) for begin, end in found))
        aggregate = AggregateCall(call.type, call.name, call.arguments, call.distinct, span=call.span)
        mask = place.emitter.true(call.filter) if call.filter is not None else None
        if call.distinct and call.name not in ("min", "max", "bool_and", "bool_or"):
            raise NotSupportedError(f"{call.name}(DISTINCT ...) as a window function is not supported", span=call.span)
        finish = frames[key].aggregate(aggregate, place.emitter.value, mask)
        return lambda builder, inputs, position: finish(ExpressionEmitter(builder, inputs, None), position)

    # ------------------------------------------------------------------------------------------- the rows again

    def _gathered(self, index: int, builder: PipelineBuilder, position: Operand, part: str = "stored") -> Operand:
        """An output value of the positions' step at each row's position."""
        kind = self.became[index].type if part == "stored" else R.MASK
        return builder.block_once(
            "Gather", (kind, kind, R.U32), kind, builder.column(index, part, kind, self.step), position
        )

    def _of_position(
        self, index: int, call: WindowCall, builder: PipelineBuilder, inputs: Sequence[Value], position: Operand
    ) -> Value:
        value = self.became[index]
        valid = None if value.valid is None else self._gathered(index, builder, position, "validity")
        return replace(value, sql=call.type, operand=self._gathered(index, builder, position), valid=valid)

    def _of_row(
        self, index: int, call: WindowCall, builder: PipelineBuilder, inputs: Sequence[Value], position: Operand
    ) -> Value:
        """An argument's value in the row that was found; NULL, or the default, where there is none."""
        row = self._gathered(index, builder, position)
        found = self._gathered(index, builder, position, "validity")
        argument = self.arguments[call.arguments[0]]
        value = self.sorted.columns[argument]

        def gathered(part: str, kind: R) -> Operand:
            return builder.block_once(
                "Gather", (kind, kind, R.U32), kind, builder.column(argument, part, kind, self.rows), row
            )

        valid = builder.both(gathered("validity", R.MASK) if value.valid is not None else None, found)
        value = replace(value, operand=gathered("stored", value.type), valid=valid)
        if len(call.arguments) < 3:
            return value
        emitter = ExpressionEmitter(builder, inputs, None)
        offset, default = (emitter.value(part) for part in call.arguments[1:])
        default = replace(default, valid=builder.both(default.valid, offset.valid))  # an offset of NULL finds NULL
        return emitter.choose(found, value, default, call.type)

    def _open(self, reads: list[Any]) -> Stream:
        bound = self.sorted.row_bound
        if self.table is None:
            builder = self.query.builder(StepSource((self.rows,), None), bound)
        else:
            builder = self.query.builder(GroupSource(self.table, self.inverse, self.rows), bound, self.table)
        position = builder.column(0, "array", R.U32, self.inverse)

        def column(index: int, value: Value) -> Value:
            operand = builder.column(index, "stored", value.type, self.rows)
            valid = None if value.valid is None else builder.column(index, "validity", R.MASK, self.rows)
            return replace(value, operand=operand, valid=valid)

        width = len(self.node.input.columns)
        own = [partial(column, index, value) for index, value in enumerate(self.sorted.columns[:width])]
        inputs = LazyValues(own)
        calls = [partial(read, builder, inputs, position) for read in reads]
        return Stream(builder, LazyValues([*own, *calls]), None, bound)
