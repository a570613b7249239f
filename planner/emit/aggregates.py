"""Lowering of GROUP BY: which table holds the groups, which words hold the aggregates, and how words become values.

Every additive aggregate is 64-bit words that add up: counts, integer sums (two words where one might overflow), float sums
as fixed-point lanes.  MIN and MAX keep order words, ARG_MIN and its kin three words.  Groups are found by a dense number
where the keys' ranges multiply to a small table, else in a hash table of packed keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from gpudb.errors import NotSupportedError
from gpudb.planner.emit.builder import PipelineBuilder, Value
from gpudb.planner.emit.expressions import ExpressionEmitter
from gpudb.planner.emit.ranges import integer_register
from gpudb.planner.expressions import AggregateCall, Expression
from gpudb.program import Operand, PlainSlot, RankTable, TableSlot
from gpudb.types import BIGINT, DOUBLE, RegisterType, SqlType

R = RegisterType
GREATEST_WORD = (1 << 63) - 1
LEAST_WORD = -(1 << 63)
DENSE_GROUPS = 1 << 16  # largest dense table; 3 words x 65,536 groups x 8 bytes is what an L2 cache holds
FIXED_BITS = 32  # kernels/ops_sum.cuh
WIDE_WORDS = 137  # kernels/ops_sum.cuh

Finish = Callable[[ExpressionEmitter, Operand], Value]
"""Makes an aggregate's value from the words of the groups named by a register."""


@dataclass
class Key:
    """A group key: codes 0 .. size - 1, and `size` for NULL where it can be NULL."""

    value: Value
    low: int
    size: int

    @property
    def nullable(self) -> bool:
        return self.value.valid is not None

    @property
    def codes(self) -> int:
        """Number of codes, NULL included."""
        return self.size + self.nullable

    @property
    def wide(self) -> bool:
        """True where the key needs 64-bit words of its own: any BIGINT, any float, any HUGEINT."""
        return self.size > 1 << 62

    @property
    def own_words(self) -> int:
        """How many, if it is wide."""
        return 2 if self.value.type is R.I128 else 1


def make_key(emitter: ExpressionEmitter, value: Value) -> Key:
    """How a value is numbered as a group key."""
    if value.sql.is_text:
        return Key(value, 0, value.high + 1)
    if value.sql.is_float:
        return Key(value, 0, 1 << 64)
    if value.sql.kind == "INTERVAL":
        raise NotSupportedError("GROUP BY an INTERVAL is not supported")
    low, high = value.low, value.high
    if value.stored is not None and not value.stored.encoded and 0 <= low <= high // 2:
        low = 0  # the stored value is the code: nothing to subtract
    return Key(value, low, high - low + 1)


@dataclass
class GroupKeys:
    """The keys of one aggregation: dense or hash, and their layout in key words.

    places  per key (word, bit offset, bits) in a hash key, or (None, stride, codes) in a dense number
    """

    keys: list[Key]
    dense: bool
    capacity: int
    key_words: int
    places: list[tuple[int | None, int, int]]
    null_places: list[tuple[int, int] | None]

    @staticmethod
    def plan(keys: list[Key]) -> GroupKeys:
        """Dense where the product of the ranges is small, else packed words."""
        product = math.prod(key.codes for key in keys)
        if product <= DENSE_GROUPS:
            places: list[tuple[int | None, int, int]] = []
            stride = 1
            for key in keys:
                places.append((None, stride, key.codes))
                stride *= key.codes
            return GroupKeys(keys, True, product, 0, places, [None] * len(keys))
        places = []
        nulls: list[tuple[int, int] | None] = []
        word, used = 0, 0

        def take(bits: int) -> tuple[int, int]:
            nonlocal word, used
            if used + bits > 63:
                word, used = word + 1, 0
            used += bits
            return word, used - bits

        narrow = [k for k, key in enumerate(keys) if not key.wide]
        found: dict[int, tuple[int | None, int, int]] = {}
        null_found: dict[int, tuple[int, int]] = {}
        for k in narrow:
            bits = max(1, (keys[k].codes - 1).bit_length())
            found[k] = (*take(bits), bits)
        for k, key in enumerate(keys):
            if key.wide and key.nullable:
                null_found[k] = take(1)
        words = word + 1 if used else 0
        for k, key in enumerate(keys):
            if key.wide:
                found[k] = (words, 0, 64)
                words += key.own_words
        places = [found[k] for k in range(len(keys))]
        nulls = [null_found.get(k) for k in range(len(keys))]
        return GroupKeys(keys, False, 0, words, places, nulls)

    def locate(self, emitter: ExpressionEmitter, values: list[Value], alive: Operand | None) -> Operand:
        """Register with each row's group number; rows that do not count get the trash group's."""
        builder = emitter.builder
        if not self.dense:
            return self._find(emitter, values, alive)
        number: Operand | None = None
        for key, value, (_, stride, _) in zip(self.keys, values, self.places, strict=True):
            code = self._code32(emitter, key, value)
            if number is None:
                number = builder.vector(emitter.converted(code, R.U32))
            else:
                number = builder.make(
                    "MultiplyAdd", R.U32, number, builder.vector(code), builder.slot(PlainSlot(R.U32, stride))
                )
        if number is None:
            number = builder.vector(builder.slot(PlainSlot(R.U32, 0)))
        if alive is None:
            return number
        return builder.make("Select", R.U32, alive, number, builder.slot(PlainSlot(R.U32, self.capacity)))

    def _code32(self, emitter: ExpressionEmitter, key: Key, value: Value) -> Operand:
        builder = emitter.builder
        if value.sql.is_text or (value.stored is not None and not value.stored.encoded and key.low == 0):
            code = value.operand
        else:
            value = emitter.decoded(value)
            if key.low == 0:
                code = emitter.converted(value.operand, R.U32) if value.type is not R.U32 else value.operand
            else:
                kind = integer_register(min(value.low, key.low), max(value.high, 0, key.size))
                shifted = builder.make(
                    "Subtract", kind, emitter.in_register(value, kind), builder.slot(PlainSlot(kind, key.low))
                )
                code = emitter.converted(shifted, R.U32)
            code = builder.bounded_index(code, key.size)
        if not key.nullable:
            return code
        null = builder.slot(PlainSlot(R.U32, key.size))
        if value.valid is None:
            return code
        return builder.make("Select", R.U32, value.valid, builder.vector(emitter.converted(code, R.U32)), null)

    def _find(self, emitter: ExpressionEmitter, values: list[Value], alive: Operand | None) -> Operand:
        builder = emitter.builder
        words: list[Operand | None] = [None] * self.key_words
        zero = builder.vector(builder.slot(PlainSlot(R.I64, 0)))

        def put(word: int, offset: int, code: Operand) -> None:
            before = words[word]
            if before is None and offset == 0:
                words[word] = code
                return
            words[word] = builder.make(
                "MultiplyAdd",
                R.I64,
                zero if before is None else before,
                code,
                builder.slot(PlainSlot(R.I64, 1 << offset)),
            )

        for key, value, (word, offset, _), null in zip(self.keys, values, self.places, self.null_places, strict=True):
            assert word is not None
            value = emitter.decoded(value)
            if key.wide:
                names = ("HighWord", "LowWord") if key.own_words == 2 else ("OrderWord",)
                for k, name in enumerate(names):
                    code = builder.make(name, R.I64, builder.vector(value.operand))
                    if value.valid is not None:
                        code = builder.make("Keep", R.I64, code, value.valid)
                    put(word + k, 0, code)
                if null is not None:
                    present = value.valid
                    if present is None:
                        present = builder.vector(builder.slot(PlainSlot(R.MASK, 1)))
                    put(null[0], null[1], emitter.converted(present, R.I64))
                continue
            code = builder.vector(emitter.converted(value.operand, R.I64))
            if key.low:
                code = builder.make("Subtract", R.I64, code, builder.slot(PlainSlot(R.I64, key.low)))
            if key.nullable and value.valid is not None:
                code = builder.make("Select", R.I64, value.valid, code, builder.slot(PlainSlot(R.I64, key.size)))
            put(word, offset, code)
        first = builder.register(R.I64, self.key_words) if self.key_words > 1 else None
        if first is None:
            keys = words[0]
            assert keys is not None
        else:  # the kernel wants the words in consecutive registers
            keys = first
            for k, operand in enumerate(words):
                assert operand is not None
                target = Operand(first.kind, first.number + k, R.I64)
                builder.copy_into(target, operand)
        mask = alive if alive is not None else builder.vector(builder.slot(PlainSlot(R.MASK, 1)))
        result = builder.register(R.U32)
        builder.block("GroupFind", (R.U32, R.I64), result, keys, mask, self.key_words)
        return result

    def value(self, emitter: ExpressionEmitter, rows: Operand, number: int) -> Value:
        """Key `number` of the groups named by a register, decoded."""
        builder = emitter.builder
        key = self.keys[number]
        word, offset, bits = self.places[number]
        valid: Operand | None = None
        source = key.value
        if word is None:  # group number / stride % codes
            code: Operand = rows
            kind = R.I64
            code = emitter.converted(rows, kind)
            if offset > 1:
                code = builder.make("IntegerDivide", kind, code, builder.slot(PlainSlot(kind, offset)))
            if offset * bits < self.capacity:
                code = builder.make("Modulo", kind, code, builder.slot(PlainSlot(kind, bits)))
        else:
            code = builder.block_once("GroupKey", (R.I64, R.U32), R.I64, rows, word)
            if key.wide:
                null = self.null_places[number]
                if null is not None:
                    flag = builder.block_once("GroupKey", (R.I64, R.U32), R.I64, rows, null[0])
                    flag = builder.make("ShiftRight", R.I64, flag, builder.slot(PlainSlot(R.I64, null[1])))
                    flag = builder.make("BitAnd", R.I64, flag, builder.slot(PlainSlot(R.I64, 1)))
                    valid = builder.make("Ne", R.MASK, flag, builder.slot(PlainSlot(R.I64, 0)))
                if key.own_words == 2:
                    low = builder.block_once("GroupKey", (R.I64, R.U32), R.I64, rows, word + 1)
                    return Value(source.sql, R.I128, joined_words(emitter, code, low), valid, source.low, source.high)
                return word_value(emitter, code, source, valid)
            if offset:
                code = builder.make("ShiftRight", R.I64, code, builder.slot(PlainSlot(R.I64, offset)))
            code = builder.make("BitAnd", R.I64, code, builder.slot(PlainSlot(R.I64, (1 << bits) - 1)))
        if key.nullable:
            valid = builder.make("Ne", R.MASK, code, builder.slot(PlainSlot(R.I64, key.size)))
            code = builder.make("Keep", R.I64, code, valid)
        if key.low:
            code = builder.make("Add", R.I64, code, builder.slot(PlainSlot(R.I64, key.low)))
        return word_value(emitter, code, source, valid)


def joined_words(emitter: ExpressionEmitter, high: Operand, low: Operand) -> Operand:
    """A 128-bit integer from its HighWord and LowWord: high * 2**64 + (low + 2**63)."""
    make, slot = emitter.builder.make, emitter.builder.slot
    upper = make("Multiply", R.I128, make("Convert", R.I128, high), slot(PlainSlot(R.I128, 1 << 64)))
    lower = make("Add", R.I128, make("Convert", R.I128, low), slot(PlainSlot(R.I128, 1 << 63)))
    return make("Add", R.I128, upper, lower)


def word_value(emitter: ExpressionEmitter, word: Operand, like: Value, valid: Operand | None) -> Value:
    """An order word (or plain integer) back as a value like another."""
    builder = emitter.builder
    sql = like.sql
    if sql.is_text:
        kind = R.U32
    elif sql.is_float:
        kind = sql.register
    elif sql.kind == "BOOLEAN":
        kind = R.MASK
    else:
        kind = integer_register(like.low, like.high)
    operand = word if kind is R.I64 else builder.make("FromOrderWord", kind, word)
    return Value(sql, kind, operand, valid, like.low, like.high, like.dictionary)


@dataclass
class Accumulators:
    """The words of a group table, and the instructions that feed them from one pipeline."""

    one_group: bool
    row_bound: int
    exact: bool
    words: list[tuple[str, int]] = field(default_factory=lambda: [("min", GREATEST_WORD)])
    fixed_used: bool = False


class Feed:
    """Adds one pipeline's rows to the words: collects additive terms, then emits them four at a time."""

    def __init__(
        self, accumulators: Accumulators, emitter: ExpressionEmitter, group: Operand | None, alive: Operand | None
    ) -> None:
        self.accumulators = accumulators
        self.emitter = emitter
        self.builder = emitter.builder
        self.group = group
        self.alive = alive
        self._adds: list[tuple[int, Operand]] = []
        self._known: dict[Operand | str, int] = {}

    # -------------------------------------------------------------------------------------- words

    def new_word(self, kind: str, initial: int, count: int = 1) -> int:
        words = self.accumulators.words
        words += [(kind, initial)] * count
        return len(words) - count

    def counts(self, mask: Operand | None) -> Operand | None:
        """A mask joined with what is alive, for the one-group case; grouped rows that are dead go to the trash."""
        return self.builder.both(mask, self.alive) if self.accumulators.one_group else mask

    def add(self, operand: Operand) -> int:
        """A word that sums a register (already zero where rows do not count)."""
        if operand not in self._known:
            word = self.new_word("add", 0)
            self._known[operand] = word
            if self.accumulators.one_group:
                self.builder.block("ReduceAdd", (operand.type,), word, self.builder.vector(operand))  # type: ignore[arg-type]
            else:
                self._adds.append((word, self.builder.vector(self.emitter.converted(operand, R.I64))))
        return self._known[operand]

    def count(self, mask: Operand | None) -> int:
        """A word that counts rows where the mask is set (None: all)."""
        mask = self.counts(mask)
        return self.add(mask if mask is not None else self.builder.vector(self.builder.slot(PlainSlot(R.MASK, 1))))

    def kept(self, operand: Operand, mask: Operand | None) -> Operand:
        """The operand, zero where it does not count."""
        mask = self.counts(mask)
        if mask is None:
            return self.builder.vector(operand)
        assert operand.type is not None
        return self.builder.make("Keep", operand.type, self.builder.vector(operand), mask)

    def extreme(self, word_operand: Operand, mask: Operand | None, greatest: bool) -> int:
        """A word that keeps the least or greatest order word."""
        mask = self.counts(mask)
        neutral = LEAST_WORD if greatest else GREATEST_WORD
        operand = self.builder.vector(word_operand)
        if mask is not None:
            operand = self.builder.make("Select", R.I64, mask, operand, self.builder.slot(PlainSlot(R.I64, neutral)))
        kind = "max" if greatest else "min"
        word = self.new_word(kind, neutral)
        if self.accumulators.one_group:
            self.builder.block("ReduceMax" if greatest else "ReduceMin", (R.I64,), word, operand)
        else:
            assert self.group is not None
            self.builder.block("GroupMax" if greatest else "GroupMin", (R.U32, R.I64), self.group, word, operand)
        return word

    def group_number(self) -> Operand:
        """The group register; with one group, zero for every row."""
        if self.group is None:
            self.group = self.builder.vector(self.builder.slot(PlainSlot(R.U32, 0)))
        return self.group

    def arg_min(self, key: Operand, payload: Operand, mask: Operand | None) -> int:
        """Three words: least key, its row, its payload."""
        mask = self.builder.both(mask, self.alive)
        keep = mask if mask is not None else self.builder.vector(self.builder.slot(PlainSlot(R.MASK, 1)))
        word = self.new_word("arg", GREATEST_WORD)
        self.accumulators.words += [("rest", GREATEST_WORD), ("rest", 0)]
        self.builder.block(
            "GroupArgMin",
            (R.U32, R.I64),
            self.group_number(),
            word,
            self.builder.vector(key),
            self.builder.vector(payload),
            keep,
        )
        return word

    def wide(self, x: Operand, y: Operand | None, mask: Operand | None) -> int:
        """Words of an exact sum of x * y over doubles."""
        word = self.new_word("add", 0, WIDE_WORDS)
        one = y if y is not None else self.builder.slot(PlainSlot(R.F64, 1.0))
        mask = self.builder.both(mask, self.alive)
        keep = mask if mask is not None else self.builder.vector(self.builder.slot(PlainSlot(R.MASK, 1)))
        self.builder.block(
            "GroupAddWide",
            (R.U32, R.F64),
            self.group_number(),
            word,
            self.builder.vector(x),
            self.builder.vector(one),
            keep,
        )
        return word

    def fixed(self, x: Operand, mask: Operand | None, scale: float) -> int:
        """Three words of fixed-point lanes of a float sum."""
        mask = self.builder.both(mask, self.alive)
        keep = mask if mask is not None else self.builder.vector(self.builder.slot(PlainSlot(R.MASK, 1)))
        slot = self.builder.slot(PlainSlot(R.F64, scale))
        x = self.builder.vector(x)
        word = self.new_word("add", 0, 3)
        if self.accumulators.one_group:
            self.builder.block("ReduceFixed", (R.F64,), word, x, keep, slot)
        else:
            lanes = self.builder.register(R.I64, 3)
            self.builder.block("SplitFixed", (R.I64, R.F64), lanes, x, keep, slot)
            self._adds += [(word + k, Operand(lanes.kind, lanes.number + k, R.I64)) for k in range(3)]
        return word

    def finish(self, first_rows: bool) -> None:
        """Emit what is left: first rows, and the additive terms in runs of consecutive words."""
        if first_rows:
            self.builder.block("GroupFirst", (R.U32,), self.group_number())
        pending = sorted(self._adds, key=lambda term: term[0])
        while pending:
            run = [pending.pop(0)]
            while pending and len(run) < 4 and pending[0][0] == run[-1][0] + 1:
                run.append(pending.pop(0))
            assert self.group is not None
            self.builder.block(f"GroupAdd{len(run)}", (R.U32,), self.group, run[0][0], *(o for _, o in run))

    # -------------------------------------------------------------------------------------- aggregates

    def aggregate(self, call: AggregateCall, argument: Callable[[Expression], Value], mask: Operand | None) -> Finish:
        """Feed one aggregate; rows outside `mask` (FILTER) do not count.  Returns how its value is made."""
        values = [argument(a) for a in call.arguments]
        valid = mask
        for value in values:
            valid = self.builder.both(valid, value.valid)
        name = call.name
        if name == "count_star":
            return count_finish(self.count(mask))
        if name == "count":
            return count_finish(self.count(valid))
        if name in ("sum", "avg"):
            if values[0].is_null or values[0].sql.kind == "BOOLEAN" and name == "avg":
                values = [self.emitter.cast(values[0], DOUBLE, False, call)] if name == "avg" else values
            return self._sum(call, values[0], valid)
        if name in ("min", "max"):
            return self._extreme(values[0], valid, name == "max", call.type)
        if name in ("bool_and", "bool_or"):
            return self._extreme(values[0], valid, name == "bool_or", call.type)
        if name in ("any_value", "first", "arg_min", "arg_max"):
            return self._chosen(name, values, mask, valid)
        if name in ("var_samp", "var_pop", "stddev_samp", "stddev_pop", "corr"):
            return self._moments(name, values, valid)
        raise NotSupportedError(f"aggregate not supported: {name}", span=call.span)

    def _sum(self, call: AggregateCall, value: Value, valid: Operand | None) -> Finish:
        counted = self.count(valid)
        if value.sql.is_float:
            return self._float_sum(call, value, valid, counted)
        value = self.emitter.decoded(value)
        rows = self.accumulators.row_bound
        low, high = min(value.low, 0) * rows, max(value.high, 0) * rows
        if value.type is R.I128:
            raise NotSupportedError(f"{call.name}() of values beyond 64 bits is not supported", span=call.span)
        whole = integer_register(low, high) is not R.I128
        operand = self.builder.vector(value.operand)
        if whole:
            operand = self.emitter.converted(operand, R.I64) if not self.accumulators.one_group else operand
            words = [self.add(self.kept(operand, valid))]
        else:
            operand = self.kept(self.emitter.converted(operand, R.I64), valid)
            make, slot = self.builder.make, self.builder.slot
            words = [
                self.add(make("BitAnd", R.I64, operand, slot(PlainSlot(R.I64, 0xFFFFFFFF)))),
                self.add(make("ShiftRight", R.I64, operand, slot(PlainSlot(R.I64, 32)))),
            ]

        def finish(emitter: ExpressionEmitter, group: Operand) -> Value:
            builder = emitter.builder
            count = group_word(builder, group, counted)
            present = builder.make("Ne", R.MASK, count, builder.slot(PlainSlot(R.I64, 0)))
            parts = [group_word(builder, group, word) for word in words]
            if whole:
                total = Value(call.type, R.I64, parts[0], present, low, high)
            else:
                upper = builder.make("Convert", R.I128, parts[1])
                upper = builder.make("Multiply", R.I128, upper, builder.slot(PlainSlot(R.I128, 1 << 32)))
                both = builder.make("Add", R.I128, upper, builder.make("Convert", R.I128, parts[0]))
                total = Value(call.type, R.I128, both, present, low, high)
            if call.name == "sum":
                return emitter.checked_range(total, call.type, call, f"overflow in sum to {call.type}")
            numerator = emitter.in_register(total, R.F64)
            divisor = builder.make("Convert", R.F64, count)
            if value.sql.kind == "DECIMAL" and value.sql.scale:
                factor = builder.slot(PlainSlot(R.F64, 10.0**value.sql.scale))
                divisor = builder.make("Multiply", R.F64, divisor, factor)
            return Value(DOUBLE, R.F64, builder.make("Divide", R.F64, numerator, divisor), present)

        return finish

    def _float_sum(self, call: AggregateCall, value: Value, valid: Operand | None, counted: int) -> Finish:
        x = self.emitter.in_register(value, R.F64)
        scale = fixed_scale(value, self.accumulators.row_bound)
        if scale is None or self.accumulators.exact:
            word, opcode = self.wide(x, None, valid), "WideToFloat"
        else:
            word, opcode = self.fixed(x, valid, scale), "FixedToFloat"
            self.accumulators.fixed_used = True

        def finish(emitter: ExpressionEmitter, group: Operand) -> Value:
            builder = emitter.builder
            count = group_word(builder, group, counted)
            present = builder.make("Ne", R.MASK, count, builder.slot(PlainSlot(R.I64, 0)))
            extra = (builder.slot(PlainSlot(R.F64, scale)),) if opcode == "FixedToFloat" else ()  # type: ignore[arg-type]
            total = builder.block_once(opcode, (R.F64, R.U32), R.F64, group, word, *extra)
            if call.name == "avg":
                total = builder.make("Divide", R.F64, total, builder.make("Convert", R.F64, count))
            return Value(DOUBLE, R.F64, total, present)

        return finish

    def order_word(self, value: Value) -> Operand:
        """The 64-bit word that sorts as the value does."""
        if value.sql.is_text:
            return self.emitter.converted(self.emitter.ranks(value), R.I64)
        value = self.emitter.decoded(value)
        if value.type is R.I128:
            raise NotSupportedError(f"aggregates over {value.sql} values beyond 64 bits are not supported")
        if value.type is R.I64:
            return self.builder.vector(value.operand)
        return self.builder.make("OrderWord", R.I64, self.builder.vector(value.operand))

    def _extreme(self, value: Value, valid: Operand | None, greatest: bool, sql: SqlType) -> Finish:
        counted = self.count(valid)
        word = self.extreme(self.order_word(value), valid, greatest)

        def finish(emitter: ExpressionEmitter, group: Operand) -> Value:
            builder = emitter.builder
            count = group_word(builder, group, counted)
            present = builder.make("Ne", R.MASK, count, builder.slot(PlainSlot(R.I64, 0)))
            found = builder.make("Keep", R.I64, group_word(builder, group, word), present)
            if value.sql.is_text:
                assert value.dictionary is not None
                table = builder.slot(TableSlot(RankTable(value.dictionary, inverse=True)))
                code = builder.make("Lookup", R.U32, builder.make("Convert", R.U32, found), table)
                return Value(sql, R.U32, code, present, value.low, value.high, value.dictionary)
            return word_value(emitter, found, value, present)

        return finish

    def _chosen(self, name: str, values: list[Value], mask: Operand | None, valid: Operand | None) -> Finish:
        value = values[0]
        payload = self.payload(value)
        builder = self.builder
        if name in ("arg_min", "arg_max"):
            key = self.order_word(values[1])
            if name == "arg_max":
                key = builder.make("BitNot", R.I64, key)
        else:
            key = builder.vector(builder.slot(PlainSlot(R.I64, 0)))
        keep = mask if name == "first" else valid
        counted = self.count(valid)
        word = self.arg_min(key, payload, keep)
        flag = None
        if name == "first" and value.valid is not None:
            flag = self.arg_min(key, self.emitter.converted(value.valid, R.I64), keep)

        def finish(emitter: ExpressionEmitter, group: Operand) -> Value:
            inner = emitter.builder
            if name == "first":
                row = group_word(inner, group, word + 1)
                present = inner.make("Ne", R.MASK, row, inner.slot(PlainSlot(R.I64, GREATEST_WORD)))
                if flag is not None:
                    known = inner.make(
                        "Ne", R.MASK, group_word(inner, group, flag + 2), inner.slot(PlainSlot(R.I64, 0))
                    )
                    present = inner.make("And", R.MASK, present, known)
            else:
                count = group_word(inner, group, counted)
                present = inner.make("Ne", R.MASK, count, inner.slot(PlainSlot(R.I64, 0)))
            found = inner.make("Keep", R.I64, group_word(inner, group, word + 2), present)
            return word_value(emitter, found, value, present)

        return finish

    def payload(self, value: Value) -> Operand:
        """A value as the 64-bit word that word_value() reads back."""
        value = self.emitter.decoded(value)
        if value.type is R.I128:
            raise NotSupportedError(f"aggregates over {value.sql} values beyond 64 bits are not supported")
        operand = self.builder.vector(value.operand)
        return operand if value.type is R.I64 else self.builder.make("OrderWord", R.I64, operand)

    def _moments(self, name: str, values: list[Value], valid: Operand | None) -> Finish:
        """Variance and correlation from exact sums of x, y and their products: one pass, no cancellation."""
        counted = self.count(valid)
        x = self.emitter.in_register(self.emitter.decoded(values[0]), R.F64)
        words = [self.wide(x, None, valid), self.wide(x, x, valid)]
        if name == "corr":
            y = self.emitter.in_register(self.emitter.decoded(values[1]), R.F64)
            words += [self.wide(y, None, valid), self.wide(y, y, valid), self.wide(x, y, valid)]

        def finish(emitter: ExpressionEmitter, group: Operand) -> Value:
            builder = emitter.builder
            count = group_word(builder, group, counted)
            least = 2 if name in ("var_samp", "stddev_samp") else 1
            present = builder.make("Ge", R.MASK, count, builder.slot(PlainSlot(R.I64, least)))
            if name == "corr":
                result = builder.block_once("WideCorrelation", (R.F64, R.U32), R.F64, group, counted, words[0])
                return Value(DOUBLE, R.F64, result, present)
            variance = builder.block_once("WideVariance", (R.F64, R.U32), R.F64, group, counted, words[0], least - 1)
            if name.startswith("stddev"):
                variance = builder.make("SquareRoot", R.F64, variance)
            return Value(DOUBLE, R.F64, variance, present)

        return finish


def count_finish(word: int) -> Finish:
    """COUNT is its word."""

    def finish(emitter: ExpressionEmitter, group: Operand) -> Value:
        return Value(BIGINT, R.I64, group_word(emitter.builder, group, word), None, 0, 1 << 62)

    return finish


def group_word(builder: PipelineBuilder, group: Operand, word: int) -> Operand:
    """One word of the groups named by a register."""
    return builder.block_once("GroupWord", (R.I64, R.U32), R.I64, group, word)


def fixed_scale(value: Value, row_bound: int) -> float | None:
    """The power of two that puts the largest magnitude just below 2**FIXED_BITS; None where lanes cannot serve."""
    if value.low is None or value.high is None or row_bound > 1 << 29:
        return None
    largest = max(abs(value.low), abs(value.high))
    if not math.isfinite(largest):
        return None
    exponent = math.frexp(largest)[1] if largest else 0
    return 2.0 ** (FIXED_BITS - exponent) if -900 < exponent < 900 else None
