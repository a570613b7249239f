"""Lowering of joins.

The build side, the right input, is emitted with its keys and indexed by them.  Where each key has one row at most, a join is
a look-up in the pipeline of the probe side, which goes on with the build side's columns gathered at the row found.  Where a key
has several rows (found when the program runs, which then is made anew) the probe side is emitted with the number of its
matches, and a pipeline over the pairs gathers from both.  SEMI, ANTI and marks need no pairs unless a condition looks at both
sides; then the pairs for which it is TRUE are emitted, and counted by probe row.

The build side of an ASOF join is sorted before it is indexed: among the matches of a key the nearest is found by bisection,
and the join goes on as a look-up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from gpudb.planner.emit.builder import PipelineBuilder, Value
from gpudb.planner.emit.expressions import ExpressionEmitter
from gpudb.planner.emit.join_keys import JoinKeys, build_key
from gpudb.planner.emit.nearest import Nearest
from gpudb.planner.emit.order_words import comparable_value
from gpudb.planner.emit.streams import LazyValues, Left, Stream
from gpudb.planner.expressions import Column, Expression, conjuncts
from gpudb.planner.logical import ASOF, Aggregate, Filter, Join, Kept, Limit, Node, Project, Sort, Values
from gpudb.planner.rules.rewriting import columns_read, substitute
from gpudb.program import (
    MORE_THAN_ONE_ROW,
    CountPairs,
    IndexRows,
    IndexRuns,
    Operand,
    PairSource,
    PlainSlot,
    SourceColumn,
    StepRowsSlot,
)
from gpudb.record import record
from gpudb.types import BIGINT, BOOLEAN, RegisterType

if TYPE_CHECKING:
    from gpudb.planner.emit.query import QueryEmitter

R = RegisterType


EVERY = -1
"""Among the numbers of joins: all joins are taken to have repeated keys, but where the plan says that they cannot."""


def one_row_a_key(node: Node, keys: Sequence[Expression]) -> bool:
    """Does the plan itself say that a node has one row at most of each key?"""
    match node:
        case Filter(input=below) | Sort(input=below) | Limit(input=below) | Kept(input=below):
            return one_row_a_key(below, keys)
        case Project(input=below):
            return one_row_a_key(below, [substitute(key, node.expressions) for key in keys])
        case Aggregate():
            plain = {key.index for key in keys if isinstance(key, Column)}
            return plain.issuperset(range(len(node.keys)))
        case Values():
            return len(node.rows) <= 1
    return False


@record
class Rows:
    """Emitted rows that a later pipeline reads at row numbers: the step, and its columns by the input's column number."""

    step: int
    columns: dict[int, tuple[int, Value]]

    def value(self, builder: PipelineBuilder, number: int, rows: Operand, matched: Operand | None) -> Value:
        """Column `number` at a register of row numbers; NULL where `matched` is not set."""
        place, value = self.columns[number]

        def gathered(part: str, kind: R) -> Operand:
            column = builder.column(place, part, kind, self.step)
            return builder.block_once("Gather", (kind, kind, R.U32), kind, column, rows)

        valid = builder.both(gathered("validity", R.MASK) if value.valid is not None else None, matched)
        return replace(value, operand=gathered("stored", value.type), valid=valid)


@record
class BuildSide:
    """The indexed rows of a join's right input; of an ASOF join also what they are sorted by, and the place of its words."""

    rows: Rows
    index: int
    keys: JoinKeys
    bound: int
    order: tuple[Value, int] | None = None


@record
class Pairs:
    """Pairs before a condition: the probe rows, and the steps that count them and hold their matches."""

    probe: Rows
    build: BuildSide
    source: int
    begins: SourceColumn
    counts: SourceColumn
    matches: SourceColumn
    bound: int


class JoinEmitter:
    """Emits the joins of one query.

    repeated  numbers of the joins whose build sides have several rows of a key; joins are numbered as they are met first
    """

    def __init__(self, query: QueryEmitter, repeated: frozenset[int]) -> None:
        self.query = query
        self.repeated = repeated
        self._numbers: dict[Join, int] = {}
        self._built: dict[Join, BuildSide] = {}
        self._pairs: dict[Join, Callable[[], Stream]] = {}

    def counted_with(self, other: JoinEmitter) -> None:
        """Number joins on from those of another part of the query."""
        self._numbers = other._numbers

    @property
    def used(self) -> bool:
        """Is there any join whose form the data decides?"""
        return bool(self._numbers)

    def stream(self, node: Join) -> Stream:
        """An open pipeline that yields the rows of a join."""
        if node in self._pairs:
            return self._pairs[node]()
        number = self._numbers.setdefault(node, len(self._numbers))
        by_pairs = node.residual is not None or node.kind in ("inner", "left", "single")
        looked_up = not by_pairs or node.kind in ASOF or self._one_row(node) or not self._repeats(node, number)
        outer, self.query.grouping = self.query.grouping, self.query.grouping and looked_up
        stream = self.query.stream(node.left)
        self.query.grouping = outer
        emitter = stream.emitter()
        keys = [comparable_value(emitter, emitter.value(left)) for left, _, _ in node.keys]
        if node.kind in ASOF:
            return self._nearest(node, number, stream, keys)
        if not by_pairs:
            build = self._build(node, number, "any")
            return self._looked_up(node, stream, keys, build)
        if looked_up:
            build = self._build(node, number, "one")
            return self._looked_up(node, stream, keys, build)
        build = self._build(node, number, "all")
        if node.kind == "single" and node.residual is None:
            return self._only_match(node, stream, keys, build)
        self._pairs[node] = self._paired(node, stream, keys, build)
        return self._pairs[node]()

    def _repeats(self, node: Join, number: int) -> bool:
        """Is the build side taken to have several rows of a key?"""
        if node.repeats or number in self.repeated:
            return True
        return EVERY in self.repeated and not one_row_a_key(node.right, [right for _, right, _ in node.keys])

    # ------------------------------------------------------------------------------------------- the build side

    @staticmethod
    def _one_row(node: Join) -> bool:
        """May the right input have one row at most?"""
        return node.kind == "single" and not node.keys and node.residual is None

    def _build(
        self, node: Join, number: int, form: str, nearest: Nearest | None = None, ours: Value | None = None
    ) -> BuildSide:
        """Emit and index the right input, for ASOF sorted as `ours` asks; once, however often the join is read."""
        if node in self._built:
            return self._built[node]
        width = len(node.left.columns)
        outer, self.query.grouping = self.query.grouping, False
        stream = self.query.stream(node.right if nearest is None else nearest.sorted(node.right))
        self.query.grouping = outer
        emitter = stream.emitter()
        alive = stream.alive
        needed = [right for _, right, null_equal in node.keys if not null_equal]
        for right in needed if nearest is None else [*needed, nearest.theirs]:
            valid = emitter.value(right).valid
            if valid is not None:
                alive, stream.filtered = stream.builder.both(alive, valid), True
        stream.alive = alive
        stream.compact()
        emitter = stream.emitter()
        rights = [(comparable_value(emitter, emitter.value(right)), null) for _, right, null in node.keys]
        values = [build_key(emitter, value, null) for value, null in rights]
        keys = JoinKeys.plan(values, stream.row_bound)
        wanted = sorted(k - width for k in self._read(node) if width <= k < node.width)
        words = [Value(BIGINT, R.I64, word) for word in keys.words(emitter, values)]
        places = tuple(range(len(wanted), len(wanted) + len(words)))
        order: tuple[Value, int] | None = None
        if nearest is not None and ours is not None:
            theirs = emitter.value(nearest.theirs)
            order = theirs, len(wanted) + len(words)
            words.append(Value(BIGINT, R.I64, nearest.word(emitter, theirs, ours)))
        step, became = self.query.emit(stream, [*(stream.values[k] for k in wanted), *words])
        single = (node.span,) if self._one_row(node) else None
        index = self.query.add(IndexRows(step, places, keys.numbers, form, number, single))
        columns = {k: (place, became[place]) for place, k in enumerate(wanted)}
        self._built[node] = BuildSide(Rows(step, columns), index, keys, stream.row_bound, order)
        return self._built[node]

    @staticmethod
    def _read(node: Join) -> set[int]:
        """Columns of both inputs that come out, or that the condition looks at."""
        return {*node.outputs, *columns_read(node.residual)}

    # ------------------------------------------------------------------------------------------- one match at most

    def _nearest(self, node: Join, number: int, stream: Stream, keys: list[Value]) -> Stream:
        """Go on with the probe side of an ASOF join, each row beside the nearest of its matches."""
        nearest = Nearest.of(node)
        builder, emitter = stream.builder, stream.emitter()
        ours = emitter.value(nearest.ours)
        build = self._build(node, number, "all", nearest, ours)
        assert build.order is not None, "the build side of an ASOF join is sorted"
        theirs, place = build.order
        word, there = nearest.word(emitter, ours, theirs), ours.valid
        if nearest.strict:
            word, has_next = nearest.next_up(emitter, word)
            there = builder.both(there, has_next)
        begin, count = self._runs_of(builder, self._entries(node, stream, keys, build), build)
        matches = builder.column(2, "array", R.U32, build.index)
        words = builder.column(place, "stored", R.I64, build.rows.step)
        found = builder.block_once("Nearest", (R.U32,), R.U32, begin, count, word, matches, words)
        if there is not None:
            found = builder.make("Keep", R.U32, found, there)
        matched, row = self._row_found(builder, found)
        for term in nearest.others:
            matched = self._condition(builder, stream.values, term, matched)
        return self._joined(replace(node, kind=ASOF[node.kind]), stream, build.rows, row, matched)

    def _looked_up(self, node: Join, stream: Stream, keys: list[Value], build: BuildSide) -> Stream:
        """Go on with the probe side, each row beside the build row that it matches."""
        builder = stream.builder
        row = self._entries(node, stream, keys, build)
        if build.keys.numbers:
            first = builder.column(0, "array", R.U32, build.index)
            row = builder.block_once("Gather", (R.U32, R.U32, R.U32), R.U32, first, row)
        matched, row = self._row_found(builder, row)
        if node.residual is not None:
            inputs = self._both_sides(node, stream.values, build.rows, builder, row, matched)
            matched = self._condition(builder, inputs, node.residual, builder.both(stream.alive, matched))
        return self._joined(node, stream, build.rows, row, matched)

    @staticmethod
    def _entries(node: Join, stream: Stream, keys: list[Value], build: BuildSide) -> Operand:
        null_equal = [null for _, _, null in node.keys]
        return build.keys.entries(stream.emitter(), keys, null_equal, stream.alive, build.index)

    @staticmethod
    def _row_found(builder: PipelineBuilder, found: Operand) -> tuple[Operand, Operand]:
        """(mask of the rows for which 1 + row was found, the row, 0 where none was)."""
        matched = builder.make("Ne", R.MASK, found, builder.slot(PlainSlot(R.U32, 0)))
        one = builder.make("Convert", R.U32, matched)
        return matched, builder.make("MultiplyAdd", R.U32, found, one, builder.slot(PlainSlot(R.U32, (1 << 32) - 1)))

    @staticmethod
    def _condition(
        builder: PipelineBuilder, inputs: Sequence[Value], residual: Expression, alive: Operand | None
    ) -> Operand:
        """Mask of the rows alive for which the condition is TRUE."""
        mask = ExpressionEmitter(builder, inputs, alive).filter(conjuncts(residual))
        found = builder.both(alive, mask)
        assert found is not None
        return found

    def _both_sides(
        self,
        node: Join,
        left: Sequence[Value],
        right: Rows,
        builder: PipelineBuilder,
        row: Operand,
        matched: Operand | None,
    ) -> Sequence[Value]:
        """The values of both inputs' columns, made when first asked for."""
        width = len(node.left.columns)
        makers: list[Callable[[], Value]] = [partial(left.__getitem__, k) for k in range(width)]
        for k in range(len(node.right.columns)):
            makers.append(partial(right.value, builder, k, row, matched))
        return LazyValues(makers)

    def _joined(self, node: Join, stream: Stream, right: Rows, row: Operand, matched: Operand) -> Stream:
        """The stream with the rows and the columns of the join, one build row beside each probe row."""
        builder, alive = stream.builder, stream.alive
        filtered = stream.filtered
        if node.kind in ("inner", "semi"):
            alive, filtered = builder.both(alive, matched), True
        elif node.kind == "anti":
            missed = builder.make("Not", R.MASK, matched)
            alive, filtered = builder.both(alive, missed), True
        if filtered and alive is not stream.alive:
            assert alive is not None
            builder.block("SkipIfNone", (), alive)
        outer = matched if node.kind in ("left", "single") else None
        stream = replace(stream, alive=alive, filtered=filtered)
        if node.narrows and self.query.grouping and builder.rows is None:
            stream.compact()  # an emitting pipeline does so once, behind its last condition
        values = self._both_sides(node, stream.values, right, builder, row, outer)
        mark = Value(BOOLEAN, R.MASK, matched, None, 0, 1)
        return self._with_outputs(node, stream, values, mark)

    # ------------------------------------------------------------------------------------------- several matches

    def _only_match(self, node: Join, stream: Stream, keys: list[Value], build: BuildSide) -> Stream:
        """A subquery's value where keys have several rows, but not those that are looked up, else the statement fails."""
        begin, count = self._runs_of(stream.builder, self._entries(node, stream, keys, build), build)
        return self._single(node, stream, build, begin, count, SourceColumn(2, "array", R.U32, build.index))

    def _single(
        self, node: Join, stream: Stream, build: BuildSide, begin: Operand, count: Operand, matches: SourceColumn
    ) -> Stream:
        """Go on with rows that have `count` matches from `begin` on, which may be one at most."""
        builder, counts = stream.builder, Value(BIGINT, R.U32, count, None, 0, (1 << 32) - 1)
        one = builder.slot(PlainSlot(R.U32, 1))
        several = builder.make("Lt", R.MASK, one, counts.operand)
        stream.emitter().fail_where(several, None, "DataError", MORE_THAN_ONE_ROW, node)
        matched = builder.make("Ne", R.MASK, count, builder.slot(PlainSlot(R.U32, 0)))
        column = builder.column(matches.index, matches.part, R.U32, matches.step)
        # A row without a match may begin behind the last one, where anything lies.
        begin = builder.make("Keep", R.U32, begin, matched)
        row = builder.block_once("Gather", (R.U32, R.U32, R.U32), R.U32, column, begin)
        return self._joined(node, stream, build.rows, builder.make("Keep", R.U32, row, matched), matched)

    def _runs_of(self, builder: PipelineBuilder, entries: Operand, build: BuildSide) -> tuple[Operand, Operand]:
        """(the first match, the number of matches) of each row's entry."""
        begin, count = (
            builder.block_once(
                "Gather", (R.U32, R.U32, R.U32), R.U32, builder.column(k, "array", R.U32, build.index), entries
            )
            for k in range(2)
        )
        return begin, count

    def _paired(self, node: Join, stream: Stream, keys: list[Value], build: BuildSide) -> Callable[[], Stream]:
        """Emit the probe side with its matches; what opens pipelines over the result."""
        pairs = self._matches(node, stream, keys, build, least=int(node.kind == "left" and node.residual is None))
        if node.residual is None or node.kind == "inner":
            return lambda: self._over_pairs(node, pairs)
        runs = self._true_pairs(node, pairs)
        if node.kind == "left":
            return lambda: self._over_pairs(replace(node, residual=None), runs)
        return lambda: self._over_probe(node, runs)

    def _matches(self, node: Join, stream: Stream, keys: list[Value], build: BuildSide, least: int) -> Pairs:
        """The probe rows, emitted with where their matches begin and how many they are, and the number of pairs."""
        builder = stream.builder
        begin, count = self._runs_of(builder, self._entries(node, stream, keys, build), build)
        if node.kind in ("inner", "semi"):
            some = builder.make("Ne", R.MASK, count, builder.slot(PlainSlot(R.U32, 0)))
            stream.alive, stream.filtered = builder.both(stream.alive, some), True
        stream.compact()
        wanted = sorted(k for k in self._read(node) if k < len(node.left.columns))
        # Neither is a value of SQL's: begins and counts are 32 bits without a sign.
        extra = [Value(BIGINT, R.U32, operand, None, 0, (1 << 32) - 1) for operand in (begin, count)]
        step, became = self.query.emit(stream, [*(stream.values[k] for k in wanted), *extra])
        columns = {k: (place, became[place]) for place, k in enumerate(wanted)}
        counts = SourceColumn(len(wanted) + 1, "stored", R.U32, step)
        source = self.query.add(CountPairs(counts, least))
        return Pairs(
            probe=Rows(step, columns),
            build=build,
            source=source,
            begins=SourceColumn(len(wanted), "stored", R.U32, step),
            counts=counts,
            matches=SourceColumn(2, "array", R.U32, build.index),
            bound=stream.row_bound * max(1, build.bound),
        )

    def _opened(self, node: Join, pairs: Pairs) -> tuple[PipelineBuilder, Sequence[Value], Operand, Operand, Operand]:
        """A pipeline over pairs: (its builder, left's values, each pair's probe row, its build row, whether it has one)."""
        builder = self.query.builder(PairSource(pairs.source), pairs.bound)
        offsets = builder.column(0, "array", R.I64, pairs.source)
        probes = builder.slot(StepRowsSlot(pairs.probe.step))
        probe = builder.block_once("MatchProbe", (R.U32,), R.U32, offsets, probes)
        columns = (
            builder.column(column.index, column.part, column.type, column.step)
            for column in (pairs.begins, pairs.counts, pairs.matches)
        )
        found = builder.block_once("MatchBuild", (R.U32,), R.U32, probe, offsets, *columns)
        matched, row = self._row_found(builder, found)
        makers: list[Callable[[], Value]] = []
        for k in range(len(node.left.columns)):
            makers.append(partial(pairs.probe.value, builder, k, probe, None))
        return builder, LazyValues(makers), probe, row, matched

    def _over_pairs(self, node: Join, pairs: Pairs) -> Stream:
        """The stream of an INNER or LEFT join over its pairs."""
        builder, left, _, row, matched = self._opened(node, pairs)
        outer = matched if node.kind == "left" else None
        values = self._both_sides(node, left, pairs.build.rows, builder, row, outer)
        alive = None
        if node.residual is not None:
            alive = self._condition(builder, values, node.residual, None)
            builder.block("SkipIfNone", (), alive)
        return self._with_outputs(node, Stream(builder, left, alive, pairs.bound, alive is not None), values)

    @staticmethod
    def _with_outputs(node: Join, stream: Stream, values: Sequence[Value], mark: Value | None = None) -> Stream:
        """The stream with the columns that come out of a join, from those of both inputs and the mark."""

        def column(number: int) -> Any:
            return mark if number == node.width else values[number]

        return replace(stream, values=LazyValues([partial(column, number) for number in node.outputs]))

    def _true_pairs(self, node: Join, pairs: Pairs) -> Pairs:
        """The pairs for which the condition is TRUE: their build rows emitted, begun and counted by probe row."""
        assert node.residual is not None
        builder, left, probe, row, _ = self._opened(node, pairs)
        inputs = self._both_sides(node, left, pairs.build.rows, builder, row, None)
        stream = Stream(builder, left, self._condition(builder, inputs, node.residual, None), pairs.bound, True)
        stream.compact()
        values = [
            Value(BIGINT, R.I64, builder.make("Convert", R.I64, probe), None, 0, (1 << 32) - 1),
            Value(BIGINT, R.U32, row, None, 0, (1 << 32) - 1),
        ]
        step, _ = self.query.emit(stream, values)
        runs = self.query.add(IndexRuns(step, 0, pairs.probe.step))
        counts = SourceColumn(1, "array", R.U32, runs)
        return replace(
            pairs,
            source=self.query.add(CountPairs(counts, least=1)) if node.kind == "left" else -1,
            begins=SourceColumn(0, "array", R.U32, runs),
            counts=counts,
            matches=SourceColumn(1, "stored", R.U32, step),
        )

    def _over_probe(self, node: Join, runs: Pairs) -> Stream:
        """The stream of a SEMI, ANTI, mark or single join over its probe rows, whose true pairs were counted."""
        places = {k: place for k, (place, _) in runs.probe.columns.items()}
        width = max(places.values(), default=-1) + 1
        columns: list[Any] = [None] * width
        for place, value in runs.probe.columns.values():
            columns[place] = value
        opened = self.query.open(Left((runs.probe.step,), tuple(columns), runs.bound // max(1, runs.build.bound)))
        builder = opened.builder
        counts = builder.column(runs.counts.index, runs.counts.part, R.U32, runs.counts.step)
        matched = builder.make("Ne", R.MASK, counts, builder.slot(PlainSlot(R.U32, 0)))

        def column(number: int) -> Value:  # where nobody asks for a column it was not emitted and has no place
            return opened.values[places[number]]

        makers = [partial(column, k) for k in range(len(node.left.columns))]
        stream = Stream(builder, LazyValues(makers), None, opened.row_bound)
        if node.kind == "single":
            begin = builder.column(runs.begins.index, runs.begins.part, R.U32, runs.begins.step)
            return self._single(node, stream, runs.build, begin, counts, runs.matches)
        return self._joined(node, stream, runs.build.rows, matched, matched)
