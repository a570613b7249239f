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
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from gpudb.errors import NotSupportedError
from gpudb.planner.emit.aggregates import Accumulators, Feed, Finish, Part, word_part
from gpudb.planner.emit.builder import PipelineBuilder, Value
from gpudb.planner.emit.expressions import ExpressionEmitter
from gpudb.planner.emit.group_keys import word_value
from gpudb.planner.expressions import (
    CURRENT,
    PRECEDING,
    UNBOUNDED_FOLLOWING,
    UNBOUNDED_PRECEDING,
    AggregateCall,
    Column,
    Expression,
    Frame,
    Literal,
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
    StepRowsSlot,
    StepSource,
)
from gpudb.record import record
from gpudb.types import BIGINT, DOUBLE, INTEGER, RegisterType

if TYPE_CHECKING:
    from gpudb.planner.emit.query import Left, Stream

R = RegisterType
MOST_ROWS = 1 << 32
OF_POSITIONS = ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile")
OF_VALUES = ("lag", "lead", "first_value", "last_value", "nth_value")
Runs = list[tuple[Operand, Operand]]
"""Runs of positions, begin and end (i64), in order; empty where a run ends before it begins is not allowed: end >= begin."""


@record
class Marks:
    """Positions of which some are marked, those where a partition begins, say.

    counts  step: an array of how many are marked before each position
    places  step: the positions that are marked, one column
    """

    counts: int
    places: int


@record(frozen=False)
class Positions:
    """An open pipeline over the positions, with what is known of each."""

    stream: Stream
    rows: int
    order: int
    partitions: Marks | None
    peers: Marks | None
    _made: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.builder = self.stream.builder
        self.emitter = self.stream.emitter()
        self.own = self.builder.block_once("RowNumber", (R.I64,), R.I64)
        self.total = self.builder.slot(StepRowsSlot(self.rows))

    # ------------------------------------------------------------------------------------------- arithmetic

    def number(self, value: int) -> Operand:
        return self.builder.slot(PlainSlot(R.I64, value))

    def plus(self, x: Operand, y: Operand | int) -> Operand:
        return self.builder.make("Add", R.I64, x, self.number(y) if isinstance(y, int) else y)

    def minus(self, x: Operand, y: Operand | int) -> Operand:
        return self.builder.make("Subtract", R.I64, x, self.number(y) if isinstance(y, int) else y)

    def less(self, x: Operand, y: Operand | int) -> Operand:
        return self.builder.make("Lt", R.MASK, x, self.number(y) if isinstance(y, int) else y)

    def choose(self, condition: Operand, x: Operand, y: Operand | int) -> Operand:
        return self.builder.make("Select", R.I64, condition, x, self.number(y) if isinstance(y, int) else y)

    def least(self, x: Operand, y: Operand) -> Operand:
        return self.choose(self.less(x, y), x, y)

    def greatest(self, x: Operand, y: Operand) -> Operand:
        return self.choose(self.less(x, y), y, x)

    def divided(self, x: Operand, y: Operand) -> Operand:
        """x / y of doubles."""
        x, y = (self.builder.make("Convert", R.F64, self.builder.vector(part)) for part in (x, y))
        return self.builder.make("Divide", R.F64, x, y)

    def at(self, step: int, kind: R, place: Operand, part: str = "array") -> Operand:
        """The array (or first column, a u32) of a step at an i64 number that lies in it, as i64."""
        column = self.builder.column(0, part, kind, step)
        index = self.builder.make("Convert", R.U32, self.builder.vector(place))
        found = self.builder.block_once("Gather", (kind, kind, R.U32), kind, column, index)
        return found if kind is R.I64 else self.builder.make("Convert", R.I64, found)

    # ------------------------------------------------------------------------------------------- marks

    def marked_before(self, marks: Marks, position: Operand) -> Operand:
        """How many positions before this one (0 .. rows) are marked."""
        return self.at(marks.counts, R.I64, position)

    def marked(self, marks: Marks, number: Operand, found: Operand) -> Operand:
        """The position of mark `number`, from 0, where `found`; else position 0."""
        return self.at(marks.places, R.U32, self.choose(found, number, 0), "stored")

    def _run(self, marks: Marks) -> tuple[Operand, Operand]:
        """From the last mark at or before each position to the next one."""
        until = self.marked_before(marks, self.plus(self.own, 1))
        begin = self.marked(marks, self.minus(until, 1), self.builder.slot(PlainSlot(R.MASK, 1)))
        more = self.less(until, self.builder.slot(StepRowsSlot(marks.places)))
        return begin, self.choose(more, self.marked(marks, until, more), self.total)

    @property
    def partition(self) -> tuple[Operand, Operand]:
        """Where each row's partition begins and ends."""
        if "partition" not in self._made:
            whole = (self.builder.vector(self.number(0)), self.builder.vector(self.total))
            self._made["partition"] = whole if self.partitions is None else self._run(self.partitions)
        return self._made["partition"]

    @property
    def peer_run(self) -> tuple[Operand, Operand]:
        """Where each row's peers begin and end; all of the partition are peers where it has no order."""
        if "peers" not in self._made:
            self._made["peers"] = self.partition if self.peers is None else self._run(self.peers)
        return self._made["peers"]

    def group(self, offset: Operand | int) -> Operand:
        """Where the group of peers begins that is so many (i64) behind each row's own, not beyond the partition."""
        begin, end = self.partition
        if self.peers is None:  # one group
            ahead = self.plus(self.builder.vector(self.number(0)), offset)
            return self.choose(self.less(self.number(0), ahead), end, begin)
        first = self.marked_before(self.peers, begin)
        own = self.minus(self.marked_before(self.peers, self.plus(self.own, 1)), 1)
        behind = self.marked_before(self.peers, end)
        wanted = self.greatest(self.plus(own, offset), first)
        inside = self.less(wanted, behind)
        return self.choose(inside, self.marked(self.peers, wanted, inside), end)

    # ------------------------------------------------------------------------------------------- frames

    def frame(self, call: WindowCall, reached: Callable[[WindowCall, Expression, bool], Operand]) -> Runs:
        """The runs of positions in each row's frame; `reached` finds the ends of a RANGE."""
        frame = call.frame
        key = ("frame", frame, call.start, call.end)
        if key not in self._made:
            begin, end = self._ends(call, reached)
            self._made[key] = self._without(frame.exclude, begin, self.greatest(begin, end))
        return self._made[key]

    def _ends(
        self, call: WindowCall, reached: Callable[[WindowCall, Expression, bool], Operand]
    ) -> tuple[Operand, Operand]:
        frame = call.frame
        begin, end = self.partition
        found = []
        for last, side, offset in ((False, frame.start, call.start), (True, frame.end, call.end)):
            if side in (UNBOUNDED_PRECEDING, UNBOUNDED_FOLLOWING):
                found.append(begin if side == UNBOUNDED_PRECEDING else end)
            elif frame.unit == "range":
                found.append(self.peer_run[last] if offset is None else reached(call, offset, last))
            elif side == CURRENT:
                found.append(self.plus(self.own, int(last)) if frame.unit == "rows" else self.peer_run[last])
            else:
                assert offset is not None, "a frame's offset is bound"
                count = self._offset(offset, frame, side)
                if side == PRECEDING:
                    count = self.minus(self.number(0), count)
                if last:
                    count = self.plus(count, 1)
                if frame.unit == "rows":
                    place = self.plus(self.own, count)
                    found.append(self.least(self.greatest(place, begin), end))
                else:
                    found.append(self.group(count))
        return found[0], found[1]

    def _offset(self, offset: Expression, frame: Frame, side: int) -> Operand:
        """An offset of rows or groups, no more than there are rows; less than 0 or NULL fails."""
        value = self.emitter.value(offset)
        what = f"offset of a window frame is negative or NULL: {frame.unit.upper()} ... " + (
            "PRECEDING" if side == PRECEDING else "FOLLOWING"
        )
        count = self.builder.vector(self.emitter.in_register(value, R.I64))
        if not (isinstance(offset, Literal) and offset.slot is None and (offset.value or -1) >= 0):
            bad = self.less(count, 0)
            if value.valid is not None:
                bad = self.builder.make("Or", R.MASK, bad, self.builder.make("Not", R.MASK, value.valid))
            self.emitter.fail_where(bad, None, "OutOfRangeError", what, offset)
        return self.least(count, self.total)

    def _without(self, exclude: str, begin: Operand, end: Operand) -> Runs:
        if exclude == "none":
            return [(begin, end)]
        gap = (self.own, self.plus(self.own, 1)) if exclude == "current" else self.peer_run
        before = self.greatest(begin, self.least(end, gap[0]))
        behind = self.least(end, self.greatest(begin, gap[1]))
        runs = [(begin, before), (behind, end)]
        if exclude == "ties":
            first = self.least(self.greatest(begin, self.own), end)
            runs.insert(1, (first, self.greatest(first, self.least(end, self.plus(self.own, 1)))))
        return runs

    # ------------------------------------------------------------------------------------------- functions

    def rank(self, call: WindowCall) -> Value:
        """A function of the position alone."""
        begin, end = self.partition
        make = self.builder.make
        size = self.minus(end, begin)
        if call.name == "row_number":
            return counted(self.plus(self.minus(self.own, begin), 1))
        if call.name == "rank":
            return counted(self.plus(self.minus(self.peer_run[0], begin), 1))
        if call.name == "dense_rank":
            if self.peers is None:
                return counted(self.builder.vector(self.number(1)))
            until = self.marked_before(self.peers, self.plus(self.own, 1))
            return counted(self.minus(until, self.marked_before(self.peers, begin)))
        if call.name == "percent_rank":
            several = self.less(self.number(1), size)
            share = self.divided(self.minus(self.peer_run[0], begin), self.choose(several, self.minus(size, 1), 1))
            return Value(DOUBLE, R.F64, make("Keep", R.F64, share, several))
        if call.name == "cume_dist":
            return Value(DOUBLE, R.F64, self.divided(self.minus(self.peer_run[1], begin), size))
        return self._ntile(call, begin, size)

    def _ntile(self, call: WindowCall, begin: Operand, size: Operand) -> Value:
        """The first size % n of the n buckets have one row more."""
        argument = self.emitter.value(call.arguments[0])
        wanted = self.builder.vector(self.emitter.in_register(argument, R.I64))
        bad = self.less(wanted, 1)
        self.emitter.fail_where(bad, argument.valid, "OutOfRangeError", "ntile wants a number above 0", call)
        buckets = self.greatest(self.least(wanted, size), self.builder.vector(self.number(1)))
        divide = partial(self.builder.make, "IntegerDivide", R.I64)
        small = divide(size, buckets)
        larger = self.minus(size, self.builder.make("Multiply", R.I64, buckets, small))
        place = self.minus(self.own, begin)
        rows_of_larger = self.builder.make("Multiply", R.I64, larger, self.plus(small, 1))
        rest = self.plus(larger, divide(self.minus(place, rows_of_larger), self.greatest(small, self.number(1))))
        bucket = self.choose(self.less(place, rows_of_larger), divide(place, self.plus(small, 1)), rest)
        return replace(counted(self.plus(bucket, 1)), valid=argument.valid)

    def neighbour(self, call: WindowCall, known: Marks | None) -> tuple[Operand, Operand]:
        """(the position that lag or lead looks at, whether there is one); `known` marks the rows that are not NULL."""
        begin, end = self.partition
        forward = call.name == "lead"
        valid = None
        ahead: Operand = self.builder.vector(self.number(1))
        if len(call.arguments) > 1:
            offset = self.emitter.value(call.arguments[1])
            valid, ahead = offset.valid, self.builder.vector(self.emitter.in_register(offset, R.I64))
            lowest = self.minus(self.number(0), self.total)
            ahead = self.greatest(self.least(ahead, self.builder.vector(self.total)), self.builder.vector(lowest))
        if not forward:
            ahead = self.minus(self.number(0), ahead)
        if known is None:
            place = self.plus(self.own, ahead)
            inside = self.inside(place, begin, end)
            return self.choose(inside, place, 0), self._and(inside, valid)
        before, until = (self.marked_before(known, place) for place in (self.own, self.plus(self.own, 1)))
        up = self.less(self.number(0), ahead)
        still = self.builder.make("Eq", R.MASK, ahead, self.number(0))
        wanted = self.choose(up, self.minus(self.plus(until, ahead), 1), self.plus(before, ahead))
        inside = self.inside(wanted, self.marked_before(known, begin), self.marked_before(known, end))
        place = self.choose(still, self.own, self.marked(known, wanted, inside))
        return place, self._and(self.builder.make("Or", R.MASK, inside, still), valid)

    def of_frame(self, call: WindowCall, runs: Runs, known: Marks | None) -> tuple[Operand, Operand]:
        """(the position that first_value, last_value or nth_value looks at, whether there is one)."""
        if known is not None:  # among those that are not NULL, by their number
            runs = [(self.marked_before(known, begin), self.marked_before(known, end)) for begin, end in runs]
        valid = None
        if call.name == "last_value":
            runs = runs[::-1]
        skip: Operand = self.builder.vector(self.number(0))
        found: Operand = self.builder.vector(self.builder.slot(PlainSlot(R.MASK, 0)))
        if call.name == "nth_value":
            nth = self.emitter.value(call.arguments[1])
            wanted = self.builder.vector(self.emitter.in_register(nth, R.I64))
            valid = self._and(self.less(self.number(0), wanted), nth.valid)
            skip = self.minus(self.greatest(wanted, self.number(1)), 1)
        place: Operand = self.builder.vector(self.number(0))
        for begin, end in runs:
            size = self.minus(end, begin)
            here = self.builder.make("AndNot", R.MASK, self.less(skip, size), found)
            at = self.minus(end, 1) if call.name == "last_value" else self.plus(begin, skip)
            place = self.choose(here, at, place)
            found = self.builder.make("Or", R.MASK, found, here)
            if call.name == "nth_value":
                skip = self.choose(found, skip, self.minus(skip, size))
        if known is not None:
            place = self.marked(known, place, found)
        return place, self._and(found, valid)

    def inside(self, place: Operand, begin: Operand, end: Operand) -> Operand:
        """begin <= place < end."""
        return self.builder.make("AndNot", R.MASK, self.less(place, end), self.less(place, begin))

    def _and(self, mask: Operand, other: Operand | None) -> Operand:
        both = self.builder.both(mask, other)
        assert both is not None, "one of them is there"
        return both


def counted(operand: Operand) -> Value:
    """A number of rows."""
    return Value(BIGINT, R.I64, operand, None, 0, MOST_ROWS)


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
        from gpudb.planner.emit.query import Left, sort_words

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
        from gpudb.planner.emit.query import Left

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
        from gpudb.planner.emit.query import sort_words

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
        return emitter.choose(found, value, emitter.value(call.arguments[2]), call.type)

    def _open(self, reads: list[Any]) -> Stream:
        from gpudb.planner.emit.query import LazyValues, Stream

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
