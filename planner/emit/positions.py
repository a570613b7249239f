"""Positions of sorted rows, and what windows make of them: partitions, peers, ranks, frames, the rows that lag() looks at.

All of it is i64 arithmetic by ordinary instructions, over two lists: which positions begin a partition, and which begin peers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from functools import partial
from typing import Any

from gpudb.planner.emit.builder import Value
from gpudb.planner.emit.streams import Stream
from gpudb.planner.expressions import (
    CURRENT,
    PRECEDING,
    UNBOUNDED_FOLLOWING,
    UNBOUNDED_PRECEDING,
    Expression,
    Frame,
    Literal,
    WindowCall,
)
from gpudb.program import Operand, PlainSlot, StepRowsSlot
from gpudb.record import record
from gpudb.types import BIGINT, DOUBLE, RegisterType

R = RegisterType
MOST_ROWS = 1 << 32
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
