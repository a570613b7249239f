"""The walk over a logical plan that opens and closes pipelines.

A `Stream` is a pipeline still open: filters and projections go into it.  Aggregates, sorts, limits and unions close it and
open a new one over what it left.  A plan node that closes pipelines is emitted once, however often it is read.
Past 600 lines as every kind of node opens or closes the same streams: one walk, with what an order and a result look like.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from gpudb.catalog import Catalog
from gpudb.errors import NotSupportedError
from gpudb.functions import lookup
from gpudb.opcodes.table import CODES
from gpudb.planner.emit.aggregates import GREATEST_WORD, Accumulators, Feed, Finish, shared_bases
from gpudb.planner.emit.builder import PipelineBuilder, Stored, Value
from gpudb.planner.emit.expressions import ExpressionEmitter, common_form
from gpudb.planner.emit.group_keys import GroupKeys, derived_keys, make_key
from gpudb.planner.emit.joins import EVERY, JoinEmitter, Rows
from gpudb.planner.emit.order_words import comparable_value, sort_words, top_word
from gpudb.planner.emit.ranges import integer_register
from gpudb.planner.emit.recursion import recursion
from gpudb.planner.emit.set_operations import both_sides, counted_groups
from gpudb.planner.emit.slices import sliced
from gpudb.planner.emit.streams import LazyValues, Left, Stream
from gpudb.planner.emit.tuples import TupleKeys
from gpudb.planner.emit.unnested import unnested
from gpudb.planner.emit.windows import WindowEmitter
from gpudb.planner.expressions import AggregateCall, Call, Column, Expression, Literal, conjuncts
from gpudb.planner.logical import (
    ROW_NUMBER,
    Aggregate,
    Filter,
    Given,
    Join,
    JoinedTexts,
    Kept,
    Limit,
    Node,
    Numbered,
    Picked,
    Project,
    Recursive,
    Scan,
    Series,
    SetOperation,
    Sort,
    UnionAll,
    Unnested,
    Values,
    Window,
)
from gpudb.program import (
    PLAIN,
    REGISTER,
    BaseSlot,
    ColumnDictionary,
    CountSource,
    EmitSink,
    GroupSink,
    GroupSource,
    JoinTexts,
    LimitRows,
    MakeValues,
    Operand,
    OrderGroups,
    OutputColumn,
    PlainSlot,
    Program,
    RepeatRows,
    SingleRowSource,
    SortRows,
    Source,
    Step,
    StepDictionary,
    StepSource,
    TableSource,
    TupleColumn,
)
from gpudb.record import replace
from gpudb.types import BIGINT, HUGEINT, RegisterType

R = RegisterType
MOST_TRIED = 2  # joins whose build sides turn out to have repeated keys, one by one


class QueryEmitter:
    """Emits one query."""

    def __init__(self, catalog: Catalog, exact: bool, repeated: frozenset[int] = frozenset()) -> None:
        self.catalog = catalog
        self.joins = JoinEmitter(self, repeated)
        self.exact = exact
        self.steps: list[Step] = []
        self.tables: set[str] = set()
        self.fixed_used = False
        self.grouping = False  # does the pipeline being opened end in groups, not in emitted rows?
        self.givens: dict[tuple[int, bool], Left] = {}  # the rows of recursions, by number and whether all
        self._left: dict[Node, Callable[[], Stream]] = {}
        self._orders: dict[Sort, Left] = {}

    def add(self, step: Step) -> int:
        self.steps.append(step)
        return len(self.steps) - 1

    def builder(self, source: Source, row_bound: int, table_step: int | None = None) -> PipelineBuilder:
        return PipelineBuilder(source, row_bound, table_step, distinct_tuples=self.distinct_tuples)

    # ------------------------------------------------------------------------------------------- nodes

    def stream(self, node: Node) -> Stream:
        """An open pipeline that yields the node's rows."""
        match node:
            case Scan():
                return self._scan(node)
            case Filter():
                stream = self.stream(node.input)
                self._filter(stream, node.predicate)
                return stream
            case Project():
                return self._project(self.stream(node.input), node.expressions)
            case Join():
                return self.joins.stream(node)
            case Values() if not any(node.rows) and len(node.rows) == 1:
                return Stream(self.builder(SingleRowSource(), 1), [], None, 1)
            case Given():
                return self.given(node)
            case SetOperation(all=False):
                return self.stream(counted_groups(node))  # nobody asks for the counts, so they are not made
            case Series():
                return self._series(node)
            case Numbered():
                return self._numbered(node)
            case Picked():
                return self._picked(node)
            case JoinedTexts():
                return self._joined_texts(node)
        if node not in self._left:
            outer, self.grouping = self.grouping, isinstance(node, Aggregate)
            self._left[node] = self._close(node)
            self.grouping = outer
        return self._left[node]()

    def _close(self, node: Node) -> Callable[[], Stream]:
        match node:
            case Aggregate():
                return self._aggregate(node)
            case Sort():
                left = self._sorted(node)
                return lambda: self.open(left)
            case Window():
                return WindowEmitter(self, node).close()
            case Unnested():
                return unnested(self, node)
            case Limit():
                left = self._limit(node)
                return lambda: self.open(left)
            case Kept():
                left = self._kept(node)
                return lambda: self.open(left)
            case UnionAll():
                left = self._union(node)
                return lambda: self.open(left)
            case SetOperation():
                left = self._repeated(node)
                return lambda: self.open(left)
            case Recursive():
                left = recursion(self, node)
                return lambda: self.open(left)
            case Values():
                left = self._values(node)
                return lambda: self.open(left)
        raise NotSupportedError(f"plan node not supported: {type(node).__name__}")

    def given(self, node: Given) -> Stream:
        """Rows of a recursion, in the body of which this emitter is."""
        left = self.givens.get((node.number, node.whole))
        if left is None:
            raise NotSupportedError("a recursion within another one that reads its rows is not supported")
        return self.open(left)

    def _series(self, node: Series) -> Stream:
        builder = self.builder(CountSource(node.count), node.count)

        def make() -> Value:
            operand = builder.block_once("RowNumber", (R.I64,), R.I64)
            if node.step != 1:
                operand = builder.make("Multiply", R.I64, operand, builder.slot(PlainSlot(R.I64, node.step)))
            if node.start:
                operand = builder.make("Add", R.I64, operand, builder.slot(PlainSlot(R.I64, node.start)))
            ends = (node.start, node.start + (node.count - 1) * node.step)
            return Value(node.columns[0][1], R.I64, operand, None, min(ends), max(ends))

        return Stream(builder, LazyValues([make]), None, node.count)

    def _numbered(self, node: Numbered) -> Stream:
        stream = self.stream(node.input)
        if (
            stream.alive is not None or stream.filtered
        ):  # numbers are those among the rows alive: they are emitted first
            stream = self.stream(Kept(node.input.columns, node.input))
        builder, bound = stream.builder, stream.row_bound

        def number() -> Value:
            return Value(BIGINT, R.I64, builder.block_once("RowNumber", (R.I64,), R.I64), None, 0, bound)

        makers = [partial(stream.values.__getitem__, k) for k in range(len(node.input.columns))]
        return replace(stream, values=LazyValues([*makers, number]))

    def _scan(self, node: Scan) -> Stream:
        layout = self.catalog.table(node.table)
        assert layout is not None, f"table vanished while planning: {node.table}"
        self.tables.add(node.table)
        builder = self.builder(TableSource(node.table, node.ordinals), layout.row_bound)

        def row_number() -> Value:
            return Value(BIGINT, R.I64, builder.block_once("RowNumber", (R.I64,), R.I64), None, 0, layout.row_bound)

        def maker(index: int, ordinal: int) -> Callable[[], Value]:
            if ordinal == ROW_NUMBER:
                return row_number
            sql = layout.columns[ordinal][1]
            column = layout.layouts[ordinal]

            def make() -> Value:
                valid = None
                if column.has_nulls:
                    bits = builder.column(index, "validity", R.MASK)
                    valid = builder.block_once("ExpandValidity", (R.MASK,), R.MASK, bits)
                low, high = column.low, column.high
                if sql.is_exact or sql.is_coded:
                    low, high = (0 if low is None else low), (0 if high is None else high)
                dictionary = ColumnDictionary(node.table, ordinal) if sql.is_coded else None
                if column.stored is None:
                    if sql.is_float:
                        kind = sql.register
                    elif sql.is_coded:
                        kind = R.U32
                    else:
                        kind = R.MASK if sql.kind == "BOOLEAN" else integer_register(low, high)  # type: ignore[arg-type]
                    operand = builder.slot(BaseSlot(kind, index))
                    return Value(sql, kind, operand, valid, low, high, dictionary)
                operand = builder.column(index, "stored", column.stored)
                plain = sql.is_float or column.stored is R.MASK
                stored = None if plain else Stored(index, column.encoded)
                return Value(sql, column.stored, operand, valid, low, high, dictionary, stored)

            return make

        values = LazyValues([maker(k, ordinal) for k, ordinal in enumerate(node.ordinals)])
        stream = Stream(builder, values, None, layout.row_bound)
        if node.predicate is not None:
            zones = self._filter(stream, node.predicate)
            builder.source = TableSource(node.table, node.ordinals, tuple(zones))
        return stream

    @staticmethod
    def _filter(stream: Stream, predicate: Expression) -> list[tuple[int, int]]:
        """Drop rows for which the predicate is not TRUE; the zone tests that follow from it."""
        emitter = stream.emitter()
        mask = emitter.filter(conjuncts(predicate))
        stream.alive = stream.builder.both(stream.alive, mask)
        assert stream.alive is not None
        stream.builder.block("SkipIfNone", (), stream.alive)  # rows in time order: whole tiles drop out
        stream.filtered = True
        return emitter.zones

    def _project(self, stream: Stream, expressions: tuple[Expression, ...]) -> Stream:
        emitter = stream.emitter()
        makers = [lambda e=e: emitter.value(e) for e in expressions]
        return replace(stream, values=LazyValues(makers))

    # ------------------------------------------------------------------------------------------- emitting rows

    def emit(
        self, stream: Stream, values: list[Value], limit: Any = None, ordered: bool = False
    ) -> tuple[int, tuple[Value, ...]]:
        """Close the stream with an Emit sink of these values as they are; the step, and what each column became."""
        builder = stream.builder
        emitter = stream.emitter()
        assert stream.alive is None, "rows are emitted from a compact stream"
        columns: list[RegisterType] = []
        outputs: list[OutputColumn] = []
        became: list[Value] = []
        for value in values:
            value = self._settled(emitter, value)
            column = self._emit_column(builder, columns, value.operand)
            validity = None
            if value.valid is not None:
                validity = self._emit_column(builder, columns, value.valid)
            outputs.append(OutputColumn(column, value.type, validity, value.dictionary))
            became.append(replace(value, operand=PLAIN_OPERAND, valid=PLAIN_OPERAND if value.valid else None))
        step = self.add(builder.finish(EmitSink(tuple(columns), tuple(outputs), stream.filtered, limit, ordered)))
        return step, tuple(became)

    @staticmethod
    def _emit_column(builder: PipelineBuilder, columns: list[R], operand: Operand) -> int:
        operand = builder.vector(operand)
        assert operand.type is not None
        width = WIDTH_TYPE[operand.type.width]
        columns.append(operand.type)
        if builder.rows is not None and builder.is_whole(operand):
            builder.block("Emit", (width, R.U32), len(columns) - 1, operand, builder.rows)
        else:
            builder.block("EmitAll", (width,), len(columns) - 1, operand)
        return len(columns) - 1

    @staticmethod
    def _settled(emitter: ExpressionEmitter, value: Value) -> Value:
        """A value as an intermediate holds it: decoded, texts as u32 codes."""
        if value.sql.is_coded:
            return replace(value, operand=emitter.converted(value.operand, R.U32), type=R.U32, stored=None)
        return emitter.decoded(value)

    def open(self, left: Left) -> Stream:
        """A new pipeline over rows that steps left."""
        builder = self.builder(StepSource(left.steps, left.order), left.row_bound)

        def maker(index: int, value: Value) -> Callable[[], Value]:
            def make() -> Value:
                operand = builder.column(index, "stored", value.type)
                valid = builder.column(index, "validity", R.MASK) if value.valid is not None else None
                if left.order is not None:
                    rows = builder.column(0, "rows", R.U32)
                    operand = builder.block_once("Gather", (value.type, value.type, R.U32), value.type, operand, rows)
                    if valid is not None:
                        valid = builder.block_once("Gather", (R.MASK, R.MASK, R.U32), R.MASK, valid, rows)
                return replace(value, operand=operand, valid=valid)

            return make

        return Stream(builder, LazyValues([maker(k, v) for k, v in enumerate(left.columns)]), None, left.row_bound)

    # ------------------------------------------------------------------------------------------- order and limit

    def _sort(self, node: Sort, limit: tuple[Any, Any] | None = None) -> Left:
        """Rows and their order; with a limit, of the first rows only (and some others)."""
        stream = self.stream(node.input)
        emitter = stream.emitter()
        if limit is not None:
            word = top_word(emitter, node.keys[0])
            alive = stream.alive or stream.builder.vector(stream.builder.slot(PlainSlot(R.MASK, 1)))
            stream.alive = stream.builder.block_once("KeepTop", (R.MASK, R.I64, R.MASK), R.MASK, word, alive)
            stream.filtered = True
        checks, steps = len(stream.builder.messages), len(self.steps)
        stream.compact()
        emitter = stream.emitter()
        words: list[Value] = []
        for key in node.keys:
            words += sort_words(emitter, emitter.value(key.expression), key.descending, key.nulls_first)
        width = len(node.columns)
        values = [stream.values[k] for k in range(width)]
        if limit is not None and len(stream.builder.messages) > checks:
            del self.steps[steps:]
            return self._sort(node)  # what may fail must be tried in every row
        step, became = self.emit(stream, [*values, *words], limit, ordered=limit is not None)
        order = self.add(SortRows(step, tuple(range(width, width + len(words)))))
        return Left((step,), became[:width], stream.row_bound, order)

    def _sorted(self, node: Sort) -> Left:
        """All rows and their order, sorted once."""
        if node not in self._orders:
            self._orders[node] = self._sort(node)
        return self._orders[node]

    def _picked(self, node: Picked) -> Stream:
        """Values are read at places in the order: the sorted rows themselves are not."""
        left = self._sorted(node.right)
        assert left.order is not None, "a sort leaves an order"
        order = left.order
        rows = Rows(left.steps[0], {k: (k, value) for k, value in enumerate(left.columns)})
        stream = self.stream(node.left)
        builder, emitter = stream.builder, stream.emitter()

        def picked(position: Expression) -> Value:
            number = emitter.value(position)
            operand = emitter.converted(emitter.decoded(number).operand, R.U32)
            if number.valid is not None:
                operand = builder.make("Keep", R.U32, builder.vector(operand), number.valid)
            places = builder.column(0, "array", R.U32, order)
            row = builder.block_once("Gather", (R.U32, R.U32, R.U32), R.U32, places, operand)
            if number.valid is not None:
                row = builder.make("Keep", R.U32, row, number.valid)
            return rows.value(builder, node.picked, row, number.valid)

        makers: list[Callable[[], Value]] = [
            partial(stream.values.__getitem__, k) for k in range(len(node.left.columns))
        ]
        makers += [partial(picked, position) for position in node.expressions]
        return replace(stream, values=LazyValues(makers))

    def _joined_texts(self, node: JoinedTexts) -> Stream:
        """The host joins the texts, which a pipeline over left's rows then reads."""
        right = self._sorted(node.right)
        assert right.order is not None, "a sort leaves an order"
        stream = self.stream(node.left)
        stream.compact()
        width, emitter = len(node.left.columns), stream.emitter()
        start = replace(stream.values[node.start], operand=emitter.in_register(stream.values[node.start], R.I64))
        start = replace(start, type=R.I64, stored=None)
        step, became = self.emit(stream, [*(stream.values[k] for k in range(width)), start])
        dictionary, element = right.columns[node.picked].dictionary, node.columns[-1][1].child
        assert dictionary is not None or element is not None, "a text has a dictionary"
        joined = self.add(
            JoinTexts(step, width, right.steps[0], right.order, node.picked, dictionary, node.separator, element)
        )
        opened = self.open(Left((step,), became, stream.row_bound))
        builder, bound = opened.builder, stream.row_bound

        def text() -> Value:
            codes = builder.column(0, "array", R.U32, joined)
            return Value(node.columns[-1][1], R.U32, codes, None, 0, bound, StepDictionary(joined, 0))

        makers: list[Callable[[], Value]] = [partial(opened.values.__getitem__, k) for k in range(width)]
        return replace(opened, values=LazyValues([*makers, text]))

    def _limit(self, node: Limit) -> Left:
        if isinstance(node.input, Sort):
            left = self._sort(node.input, None if node.count is None or node.percent else (node.count, node.offset))
            assert left.order is not None, "a sort leaves an order"
            order = self.add(LimitRows(left.order, node.count, node.offset, node.percent))
            return replace(left, order=order)
        stream = self.stream(node.input)
        stream.compact()
        values = [stream.values[k] for k in range(len(node.columns))]
        step, became = self.emit(stream, values, None if node.percent else (node.count, node.offset))
        limited = self.add(LimitRows(step, node.count, node.offset, node.percent))
        bound = stream.row_bound
        if (
            node.count is not None
            and node.count.slot is None
            and isinstance(node.count.value, int)
            and not node.percent
        ):
            bound = max(1, min(bound, node.count.value))
        return Left((limited,), became, bound)

    def _kept(self, node: Kept) -> Left:
        stream = self.stream(node.input)
        stream.compact()
        step, became = self.emit(stream, [stream.values[k] for k in range(len(node.columns))])
        return Left((step,), became, stream.row_bound)

    def _union(self, node: UnionAll) -> Left:
        streams = [self.stream(branch) for branch in node.branches]
        for stream in streams:
            stream.compact()
        steps: list[int] = []
        columns = [[s.values[k] for s in streams] for k in range(len(node.columns))]
        unified: list[list[Value]] = [[] for _ in streams]
        for column, (_, sql) in zip(columns, node.columns, strict=True):
            nullable = any(v.valid is not None for v in column)
            settled = [self._settled(s.emitter(), v) for s, v in zip(streams, column, strict=True)]
            form = common_form(sql, settled)
            for stream, value, out in zip(streams, settled, unified, strict=True):
                operand = stream.emitter().in_form(value, form)
                valid = value.valid
                if nullable and valid is None:
                    valid = stream.builder.vector(stream.builder.slot(PlainSlot(R.MASK, 1)))
                out.append(Value(sql, form.kind, operand, valid, **form.properties()))
        became: tuple[Value, ...] = ()
        for stream, values in zip(streams, unified, strict=True):
            step, became = self.emit(stream, values)
            steps.append(step)
        return Left(tuple(steps), became, sum(s.row_bound for s in streams))

    def _repeated(self, node: SetOperation) -> Left:
        """INTERSECT ALL and EXCEPT ALL: each group's row as often as its counts on both sides say."""
        stream = self.stream(counted_groups(node))
        stream.compact()
        emitter, width = stream.emitter(), len(node.columns)
        left, right = (emitter.in_register(stream.values[k], R.I64) for k in (width, width + 1))
        if node.kind == "except":
            times = stream.builder.make("Subtract", R.I64, left, right)
        else:
            fewer = stream.builder.make("Lt", R.MASK, left, right)
            times = stream.builder.make("Select", R.I64, fewer, left, right)
        values = [stream.values[k] for k in range(width)]
        step, became = self.emit(stream, [*values, Value(BIGINT, R.I64, times, None)])
        order = self.add(RepeatRows(step, width))
        bound = self.stream(both_sides(node)).row_bound
        return Left((step,), became[:width], bound, order)

    def _values(self, node: Values) -> Left:
        literal = all(isinstance(e, Literal) for row in node.rows for e in row)
        if not literal or not node.columns:
            branches = tuple(Project(node.columns, Values((), ((),)), row) for row in node.rows)
            return self._union(UnionAll(node.columns, branches))
        step = self.add(MakeValues(node.rows, tuple(sql for _, sql in node.columns)))
        columns = []
        for k, (_, sql) in enumerate(node.columns):
            cells = [row[k] for row in node.rows]
            valid = PLAIN_OPERAND if any(c.value is None for c in cells) else None  # type: ignore[attr-defined]
            kind = R.U32 if sql.is_coded else sql.register
            low, high = (0, len(cells) - 1) if sql.is_coded else sql.bounds if sql.is_exact else (None, None)
            reference = StepDictionary(step, k) if sql.is_coded else None
            columns.append(Value(sql, kind, PLAIN_OPERAND, valid, low, high, reference))
        return Left((step,), tuple(columns), max(1, len(node.rows)))

    # ------------------------------------------------------------------------------------------- groups

    def _aggregate(self, node: Aggregate) -> Callable[[], Stream]:
        if any(key.type.kind == "INTERVAL" for key in node.keys):
            return lambda: self.stream(grouped_by_length(node))
        stream = self.stream(node.input)
        emitter = stream.emitter()
        all_keys, derived = node.keys, set(derived_keys(node.keys, emitter))
        node = replace(node, keys=tuple(key for key in all_keys if key not in derived))
        places = {key: Column(key.type, k, f"key {k}") for k, key in enumerate(node.keys)}
        key_values = [emitter.value(key) for key in node.keys]
        keys = GroupKeys.plan([make_key(emitter, value) for value in key_values], stream.row_bound)
        one = not node.keys
        accumulators = Accumulators(one, stream.row_bound, self.exact)
        group = None if one else keys.locate(emitter, key_values, stream.alive)
        feed = Feed(accumulators, emitter, group, stream.alive, bases=shared_bases(node.aggregates))
        finishes: list[Finish | None] = [None] * len(node.aggregates)
        # Sums first: a count of the same rows is then in their word.
        for number in sorted(range(len(finishes)), key=lambda k: node.aggregates[k].name not in ("sum", "avg")):
            call = node.aggregates[number]
            if call.distinct and call.name not in (
                "min",
                "max",
                "bool_and",
                "bool_or",
                "any_value",
                "first",
                "last",
                "arg_min",
                "arg_max",
            ):
                continue
            mask = emitter.true(call.filter) if call.filter is not None else None
            finishes[number] = feed.aggregate(call, emitter.value, mask)
        feed.finish(first_rows=not one)
        table = len(self.steps)
        capacity = 1 if one else keys.capacity
        kind = "one" if one else keys.kind
        # Words that DISTINCT aggregates add come later, so the sink is made once they are known.
        self.steps.append(None)  # type: ignore[arg-type]
        closers: list[Callable[[tuple[tuple[str, int], ...]], None]] = []
        sink = lambda words, into=None: GroupSink(kind, capacity, keys.key_words, words, into)  # noqa: E731
        finished = lambda words: self.steps.__setitem__(table, stream.builder.finish(sink(words)))  # noqa: E731
        for number, call in enumerate(node.aggregates):
            if finishes[number] is None:
                finish, closer = self._distinct(node, call, keys, accumulators, table, sink)
                finishes[number] = finish
                closers.append(closer)
        words = tuple(accumulators.words)
        finished(words)
        for closer in closers:
            closer(words)
        self.fixed_used |= accumulators.fixed_used
        order = self.add(OrderGroups(table))
        bound = 1 if one else min(stream.row_bound, keys.capacity or stream.row_bound)

        def reopen() -> Stream:
            builder = self.builder(GroupSource(table, order), bound, table_step=table)
            rows = builder.column(0, "rows", R.U32)
            inner = ExpressionEmitter(builder, [], None)
            makers: list[Callable[[], Value]] = []
            found = LazyValues([partial(keys.value, inner, rows, k) for k in range(len(node.keys))])
            of_keys = ExpressionEmitter(builder, found, None)
            makers += [partial(of_keys.value, key.replaced(places)) for key in all_keys]
            for finish in finishes:
                assert finish is not None, "every aggregate was fed"
                makers.append(partial(finish, inner, rows))
            return Stream(builder, LazyValues(makers), None, bound)

        return reopen

    def _distinct(
        self, node: Aggregate, call: AggregateCall, keys: GroupKeys, accumulators: Accumulators, table: int, sink: Any
    ) -> tuple[Finish, Callable[[tuple[tuple[str, int], ...]], None]]:
        """A DISTINCT aggregate: group by (keys, argument) first, then feed each distinct value once into the main table."""
        stream = self.stream(node.input)
        emitter = stream.emitter()
        values = [emitter.value(key) for key in node.keys]
        arguments = [comparable_value(emitter, emitter.value(a)) for a in call.arguments]
        alive = stream.alive
        if call.filter is not None:
            alive = stream.builder.both(alive, emitter.true(call.filter))
        for argument in arguments:
            alive = stream.builder.both(alive, argument.valid)
        inner_keys = [make_key(emitter, value) for value in (*values, *arguments)]
        inner = GroupKeys.plan(inner_keys, stream.row_bound)
        located = inner.locate(emitter, [*values, *arguments], alive)
        feed = Feed(Accumulators(False, stream.row_bound, self.exact), emitter, located, alive)
        feed.finish(first_rows=True)
        inner_table = self.add(
            stream.builder.finish(GroupSink(inner.kind, inner.capacity, inner.key_words, (("min", GREATEST_WORD),)))
        )
        order = self.add(OrderGroups(inner_table))
        builder = self.builder(GroupSource(inner_table, order), stream.row_bound, table_step=inner_table)
        rows = builder.column(0, "rows", R.U32)
        second = ExpressionEmitter(builder, [], None)
        outer_values = [inner.value(second, rows, k) for k in range(len(values))]
        distinct_values = [
            replace(inner.value(second, rows, len(values) + k), valid=None) for k in range(len(arguments))
        ]
        group = None if not node.keys else keys.locate(second, outer_values, None)
        outer_feed = Feed(accumulators, second, group, None, direct=False)
        supply = iter(distinct_values)
        finish = outer_feed.aggregate(replace(call, distinct=False), lambda _: next(supply), None)
        outer_feed.finish(first_rows=False)
        place = len(self.steps)
        self.steps.append(None)  # type: ignore[arg-type]

        def closer(words: tuple[tuple[str, int], ...]) -> None:
            self.steps[place] = builder.finish(sink(words, table))

        return finish, closer

    # ------------------------------------------------------------------------------------------- tuples

    def distinct_tuples(
        self, emitter: ExpressionEmitter, values: list[Value], alive: Operand | None
    ) -> tuple[Operand, tuple[TupleColumn, ...]]:
        """(1 + number of each row's tuple of values, 0 where the row does not count; the columns of the distinct tuples).

        Three steps run before the emitter's pipeline: a slice of it groups the rows by tuple, the groups are ordered by
        first row, and their keys are emitted.  The pipeline itself then probes the hash table of the groups.
        """
        values = [replace(emitter.decoded(value), valid=None) for value in values]
        before, moved, counted = sliced(emitter.builder, [value.operand for value in values], alive, emitter.zones)
        inner = ExpressionEmitter(before, [], counted)
        arguments = [replace(value, operand=moved(value.operand)) for value in values]
        keys = TupleKeys.of(inner, arguments)
        before.block("GroupFirst", (R.U32,), keys.locate(inner, arguments, counted))
        table = self.add(before.finish(GroupSink("hash", 0, keys.key_words, (("min", GREATEST_WORD),))))
        order = self.add(OrderGroups(table))
        bound = before.row_bound
        reader = self.builder(GroupSource(table, order), bound, table)
        rows = reader.column(0, "rows", R.U32)
        outer = ExpressionEmitter(reader, [], None)
        entry = Value(BIGINT, R.I64, outer.converted(rows, R.I64), None, 0, bound)
        outputs = [export_form(outer, value) for value in (entry, *keys.values(outer, rows))]
        step, _ = self.emit(Stream(reader, outputs, None, bound), outputs)
        index = keys.probe(emitter, values, alive, table)
        return index, tuple(TupleColumn(step, 1 + k, value.sql) for k, value in enumerate(values))


def grouped_by_length(node: Aggregate) -> Node:
    """Groups of INTERVALs as groups of what they compare by: '1 month' equals '30 days'.  Each has its first row's INTERVAL."""
    function = lookup("interval_order")
    assert function is not None, "the registry has interval_order"
    keys: list[Expression] = []
    firsts: list[AggregateCall] = []
    values: list[Expression] = []
    for place, key in enumerate(node.keys):
        column: Expression = Column(key.type, place, node.columns[place][0])
        if key.type.kind == "INTERVAL":
            column = Column(key.type, len(node.columns) + len(firsts), node.columns[place][0])
            firsts.append(AggregateCall(key.type, "first", (key,)))
            key = Call(HUGEINT, "interval_order", (key,), function.overloads[0])
        keys.append(key)
        values.append(column)
    rest = [Column(sql, place, name) for place, (name, sql) in enumerate(node.columns)][len(keys) :]
    names = [(name, key.type) for (name, _), key in zip(node.columns, keys, strict=False)]
    columns = (*names, *node.columns[len(keys) :], *((f"first{k}", call.type) for k, call in enumerate(firsts)))
    inner = replace(node, columns=columns, keys=tuple(keys), aggregates=(*node.aggregates, *firsts))
    return Project(node.columns, inner, (*values, *rest))


PLAIN_OPERAND = Operand(PLAIN, 0)
WIDTH_TYPE = {1: R.U8, 2: R.U16, 4: R.U32, 8: R.I64, 16: R.I128}


def export_form(emitter: ExpressionEmitter, value: Value) -> Value:
    """A result value in the width of its SQL type's Arrow buffer, zero under NULL."""
    sql = value.sql
    builder = emitter.builder
    if sql.is_coded:
        operand, kind = emitter.converted(value.operand, R.U32), R.U32
    elif sql.is_float:
        kind = sql.register
        operand = emitter.in_register(value, kind)
        if operand.kind == REGISTER or isinstance(builder.source, StepSource):  # computed; storage holds one NaN only
            operand = builder.make("OneNan", kind, operand)
    elif sql.kind in ("BOOLEAN",):
        value = emitter.decoded(value)
        operand, kind = emitter.in_register(value, R.MASK), R.MASK
    elif (
        value.stored is not None
        and not value.stored.encoded
        and value.type in CODES
        and value.type.width == EXPORT_REGISTER[sql.kind].width
    ):
        operand, kind = value.operand, value.type  # the same bits
    else:
        value = emitter.decoded(value)
        kind = EXPORT_REGISTER[sql.kind]
        if sql.kind == "UBIGINT" and value.high >= 1 << 63:
            value = _turned(emitter, value)
        if kind in (R.U8, R.U16):
            operand = emitter.converted(builder.vector(emitter.in_register(value, R.I32)), kind)
        else:
            operand = emitter.in_register(value, kind)
    operand = builder.vector(operand)
    if value.valid is not None:
        operand = builder.make("Keep", kind, operand, value.valid)
    return replace(value, operand=operand, type=kind, stored=None)


def _turned(emitter: ExpressionEmitter, value: Value) -> Value:
    """Integers of 0 .. 2**64 - 1 as the signed ones of 64 bits that have the same bits."""
    builder = emitter.builder
    operand = builder.vector(emitter.in_register(value, R.I128))
    half, whole = (builder.slot(PlainSlot(R.I128, number)) for number in (1 << 63, 1 << 64))
    above = builder.make("Ge", R.MASK, operand, half)
    operand = builder.make("Select", R.I128, above, builder.make("Subtract", R.I128, operand, whole), operand)
    return replace(value, operand=operand, type=R.I128, low=-(1 << 63), high=(1 << 63) - 1)


EXPORT_REGISTER = {
    "TINYINT": R.U8,
    "SMALLINT": R.U16,
    "INTEGER": R.I32,
    "BIGINT": R.I64,
    "HUGEINT": R.I128,
    "UTINYINT": R.U8,
    "USMALLINT": R.U16,
    "UINTEGER": R.U32,
    "UBIGINT": R.I64,  # as its bits
    "DECIMAL": R.I128,
    "INTERVAL": R.I128,
    "UUID": R.I128,
    "ENUM": R.I32,
    "DATE": R.I32,
    "TIME": R.I64,
    "TIMESTAMP": R.I64,
    "TIMESTAMPTZ": R.I64,
    "NULL": R.I32,
}


def emit_program(
    plan: Node, catalog: Catalog, *, exact: bool = False, repeated: frozenset[int] = frozenset()
) -> Program:
    """Emit a plan as a verified program.  Raises NotSupportedError naming what cannot be run.

    exact     sum floats on the wide path
    repeated  joins whose build sides have several rows of a key
    """
    emitter = QueryEmitter(catalog, exact, repeated)
    stream = emitter.stream(plan)
    stream.compact()
    expressions = stream.emitter()
    values = [export_form(expressions, stream.values[k]) for k in range(len(plan.columns))]
    result, _ = emitter.emit(stream, values)
    program = Program(
        steps=tuple(emitter.steps),
        names=tuple(name for name, _ in plan.columns),
        types=tuple(sql for _, sql in plan.columns),
        tables=tuple(sorted(emitter.tables)),
        result=result,
        exact=cache(lambda: emit_program(plan, catalog, exact=True, repeated=repeated)) if emitter.fixed_used else None,
        repeated=cache(partial(_repeated, plan, catalog, exact, repeated)) if emitter.joins.used else None,
    )
    return program.verify()


def _repeated(plan: Node, catalog: Catalog, exact: bool, repeated: frozenset[int], join: int) -> Program:
    """The program for one more join whose build side has several rows of a key.

    Every one costs a run, up to where it was met, and an emission: behind two of them the others are not tried one by one.
    """
    more = {join, EVERY} if len(repeated) == MOST_TRIED else {join}
    return emit_program(plan, catalog, exact=exact, repeated=repeated | more)
