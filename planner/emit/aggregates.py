"""Lowering of aggregates: which words of a group table hold them, and how words become values.

Every additive aggregate is 64-bit words that add up: counts, integer sums (packed into one word with their count where both
fit, two words where one might overflow), float sums as fixed-point lanes.  MIN and MAX keep order words, ARG_MIN and its kin
three words.  Past 600 lines: what feeds each aggregate stands beside what reads its words.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import field

from gpudb.errors import NotSupportedError
from gpudb.opcodes.table import CODES
from gpudb.planner.emit.builder import PipelineBuilder, Value
from gpudb.planner.emit.expressions import ExpressionEmitter
from gpudb.planner.emit.group_keys import joined_words, word_value
from gpudb.planner.emit.ranges import INT64, exact_bounds, integer_register
from gpudb.planner.expressions import AggregateCall, Call, Cast, Column, Expression, Literal
from gpudb.program import SLOT, BaseSlot, Operand, PlainSlot, RankTable, ScaleSlot, TableSlot
from gpudb.record import record, replace
from gpudb.types import BIGINT, DOUBLE, RegisterType, SqlType

R = RegisterType
GREATEST_WORD = (1 << 63) - 1
LEAST_WORD = -(1 << 63)
INT128 = (-(1 << 127), (1 << 127) - 1)
SHIFTED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")  # types whose sums may be made of each other
FIXED_BITS = 32  # kernels/ops_sum.cuh
WIDE_WORDS = 137  # kernels/ops_sum.cuh

Finish = Callable[[ExpressionEmitter, Operand], Value]
"""Makes an aggregate's value from the words of the groups named by a register."""
Part = Callable[[PipelineBuilder, Operand], Operand]
"""Makes a part of one, a count or a sum, as an integer register."""
WideSum = Callable[[ExpressionEmitter, Operand], Operand]
"""The same of a sum that may fail."""
ExactSum = tuple[Part, WideSum, int, int]
"""Count, sum, and the sum's proven bounds."""


@record(frozen=False)
class Accumulators:
    """The words of a group table, and the instructions that feed them from one pipeline."""

    one_group: bool
    row_bound: int
    exact: bool
    words: list[tuple[str, int]] = field(default_factory=lambda: [("min", GREATEST_WORD)])
    fixed_used: bool = False


class Feed:
    """Adds one pipeline's rows to the words: collects additive terms, then emits them four at a time.

    direct  arguments of aggregates are expressions over the pipeline's columns, not distinct values found before
    bases   what `shared_bases` found: the sum of such a one is kept for all sums of it plus a constant
    """

    def __init__(
        self,
        accumulators: Accumulators,
        emitter: ExpressionEmitter,
        group: Operand | None,
        alive: Operand | None,
        direct: bool = True,
        bases: frozenset[Expression] = frozenset(),
    ) -> None:
        self.accumulators = accumulators
        self.emitter = emitter
        self.builder = emitter.builder
        self.group = group
        self.alive = alive
        self.direct = direct
        self.bases = bases
        self._sums: dict[tuple[Expression, Operand | None], ExactSum] = {}
        self._adds: list[tuple[int, Operand]] = []
        self._known: dict[Operand | str, int] = {}
        self._packed_counts: dict[Operand | None, Part] = {}

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
        if mask is None:  # GroupAdd wants 64 bits, ReduceAdd few
            kind = R.MASK if self.accumulators.one_group else R.I64
            mask = self.builder.vector(self.builder.slot(PlainSlot(kind, 1)))
        return self.add(mask)

    def counted(self, mask: Operand | None) -> Part:
        """How many rows of a group have the mask set (None: all of them)."""
        if mask in self._packed_counts:
            return self._packed_counts[mask]
        word = self.count(mask)
        return word_part(word)

    def packed(self, value: Value, mask: Operand | None) -> tuple[Part, Part] | None:
        """Count and sum of a value where the mask is set, in one word, or None where they do not fit into 63 bits together.

        The word is count * 2**bits + the sum of (value - low): three averages over 10 M rows took 31 ms with counts and sums
        apart, 16 so.
        """
        rows = self.accumulators.row_bound
        bits = max(1, ((value.high - value.low) * rows).bit_length())
        if self.accumulators.one_group or bits + rows.bit_length() > 63:
            return None
        make, slot = self.builder.make, self.builder.slot
        low, one = value.low, 1 << bits
        if value.stored is not None and value.stored.encoded and value.operand.type in CODES and mask is not None:
            base = slot(BaseSlot(R.I64, value.stored.column, one - low))
            scale = slot(ScaleSlot(R.I64, value.stored.column))
            term = make("DecodeKept", R.I64, value.operand, base, scale, mask)
        else:
            operand = self.builder.vector(self.emitter.converted(self.emitter.decoded(value).operand, R.I64))
            term = self.kept(make("Add", R.I64, operand, slot(PlainSlot(R.I64, one - low))), mask)
        word = self.add(term)

        def count(builder: PipelineBuilder, group: Operand) -> Operand:
            return builder.make(
                "ShiftRight", R.I64, group_word(builder, group, word), builder.slot(PlainSlot(R.I64, bits))
            )

        def total(builder: PipelineBuilder, group: Operand) -> Operand:
            found = group_word(builder, group, word)
            found = builder.make("BitAnd", R.I64, found, builder.slot(PlainSlot(R.I64, one - 1)))
            if low == 0:
                return found
            return builder.make("MultiplyAdd", R.I64, found, count(builder, group), builder.slot(PlainSlot(R.I64, low)))

        self._packed_counts[mask] = count
        return count, total

    def stored_sum(self, value: Value, mask: Operand | None) -> tuple[Part, Part] | None:
        """Count and sum of a stored column without groups: nothing is decoded.  1.4 ns a row with a filter became 0.4."""
        if not self.accumulators.one_group or value.stored is None or value.operand.type not in CODES:
            return None
        if value.operand.kind == SLOT:
            return None
        slot = self.builder.slot
        encoded, column = value.stored.encoded, value.stored.column
        base = slot(BaseSlot(R.I64, column) if encoded else PlainSlot(R.I64, 0))
        scale = slot(ScaleSlot(R.I64, column) if encoded else PlainSlot(R.I64, 1))
        keep = self.counts(mask)
        if keep is None:
            keep = self.builder.vector(slot(PlainSlot(R.MASK, 1)))
        word = self.new_word("add", 0, 2)
        self.builder.block("ReduceStored", (value.operand.type,), word, value.operand, keep, base, scale)
        self._packed_counts[mask] = count = word_part(word)
        return count, word_part(word + 1)

    def kept(self, operand: Operand, mask: Operand | None) -> Operand:
        """The operand, zero where it does not count."""
        mask = self.counts(mask)
        if mask is None:
            return self.builder.vector(operand)
        assert operand.type is not None
        return self.builder.make("Keep", operand.type, self.builder.vector(operand), mask)

    def neutral_unless(self, word_operand: Operand, mask: Operand | None, greatest: bool) -> Operand:
        """An order word, or where the mask is not set the one that is never the greatest (least) beside another."""
        mask = self.counts(mask)
        operand = self.builder.vector(word_operand)
        if mask is None:
            return operand
        neutral = self.builder.slot(PlainSlot(R.I64, LEAST_WORD if greatest else GREATEST_WORD))
        return self.builder.make("Select", R.I64, mask, operand, neutral)

    def extreme(self, word_operand: Operand, mask: Operand | None, greatest: bool) -> int:
        """A word that keeps the least or greatest order word."""
        operand = self.neutral_unless(word_operand, mask, greatest)
        neutral = LEAST_WORD if greatest else GREATEST_WORD
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

    def arg_min(self, keys: list[Operand], payload: Operand, mask: Operand | None) -> int:
        """The first of some words: the least key, of one order word or two, its row, and its payload."""
        mask = self.builder.both(mask, self.alive)
        keep = mask if mask is not None else self.builder.vector(self.builder.slot(PlainSlot(R.MASK, 1)))
        word = self.new_word("arg", GREATEST_WORD)
        self.accumulators.words += [("rest", GREATEST_WORD)] * len(keys) + [("rest", 0)]
        self.builder.block(
            "GroupArgMin" if len(keys) == 1 else "GroupArgMinWide",
            (R.U32, R.I64),
            self.group_number(),
            word,
            *(self.builder.vector(key) for key in keys),
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
        pending = sorted(self._adds, key=lambda term: term[0])
        fused = first_rows and bool(pending) and pending[0][0] == 1
        if first_rows and not fused:
            self.builder.block("GroupFirst", (R.U32,), self.group_number())
        while pending:
            run = [pending.pop(0)]
            while pending and len(run) < 4 and pending[0][0] == run[-1][0] + 1:
                run.append(pending.pop(0))
            assert self.group is not None
            name = "GroupFirstAdd" if fused and run[0][0] == 1 else "GroupAdd"
            self.builder.block(f"{name}{len(run)}", (R.U32,), self.group, run[0][0], *(o for _, o in run))

    # -------------------------------------------------------------------------------------- aggregates

    def aggregate(self, call: AggregateCall, argument: Callable[[Expression], Value], mask: Operand | None) -> Finish:
        """Feed one aggregate; rows outside `mask` (FILTER) do not count.  Returns how its value is made."""
        if call.name in ("sum", "avg") and (shifted := self._shifted_sum(call, argument, mask)) is not None:
            return shifted
        values = [argument(a) for a in call.arguments]
        valid = mask
        for value in values:
            valid = self.builder.both(valid, value.valid)
        name = call.name
        if name == "count_star":
            return count_finish(self.counted(mask))
        if name == "count":
            return count_finish(self.counted(valid))
        if name in ("sum", "avg"):
            if values[0].is_null or values[0].sql.kind == "BOOLEAN" and name == "avg":
                values = [self.emitter.cast(values[0], DOUBLE, False, call)] if name == "avg" else values
            return self._sum(call, values[0], valid)
        if name in ("min", "max"):
            return self._extreme(values[0], valid, name == "max", call.type)
        if name in ("bool_and", "bool_or"):
            return self._extreme(values[0], valid, name == "bool_or", call.type)
        if name in ("any_value", "first", "last", "arg_min", "arg_max"):
            return self._chosen(name, values, mask, valid)
        if name in ("bit_and", "bit_or", "bit_xor"):
            return self._bits(call, values[0], valid)
        if name in ("var_samp", "var_pop", "stddev_samp", "stddev_pop", "corr", "covar_samp", "covar_pop"):
            return self._moments(call, values, argument, valid)
        raise NotSupportedError(f"aggregate not supported: {name}", span=call.span)

    def _sum(self, call: AggregateCall, value: Value, valid: Operand | None) -> Finish:
        if value.sql.is_float:
            return self._float_sum(call, value, valid, self.counted(valid))
        return self._exact_finish(call, value, *self._exact_sum(call, value, valid))

    def _shifted_sum(
        self, call: AggregateCall, argument: Callable[[Expression], Value], mask: Operand | None
    ) -> Finish | None:
        """sum(x + constant) as sum(x) + constant * count(x), x being one of the bases, or x itself; None where it is not so.

        Nothing is lost: sums are exact, and no row's x + constant may leave its type.  Forty such sums without groups over 5 M
        rows: 60 ms of processor time became 7.
        """
        base, constant, sign = shifted_base(call.arguments[0])
        if base not in self.bases:
            return None
        value, by = argument(base), None if constant is None else argument(constant)
        if value.is_null or value.type is R.I128 or (by is not None and by.is_null):
            return None
        low, high = value.low, value.high
        if by is not None:
            low, high = exact_bounds("add" if sign > 0 else "subtract", [value, by])
            least, greatest = call.arguments[0].type.bounds
            if low < least or high > greatest:
                return None
        valid = self.builder.both(mask, value.valid)
        if (base, valid) not in self._sums:
            self._sums[base, valid] = self._exact_sum(call, value, valid)
        counted, summed, *sums = self._sums[base, valid]
        if constant is None or by is None:
            return self._exact_finish(call, value, counted, summed, *sums)
        rows = self.accumulators.row_bound
        low, high = min(low, 0) * rows, max(high, 0) * rows
        ends = (low, high, *sums, by.low * rows, by.high * rows)
        kind = R.I128 if integer_register(min(ends), max(ends)) is R.I128 else R.I64

        def shifted(emitter: ExpressionEmitter, group: Operand) -> Operand:
            make = emitter.builder.make
            total = emitter.converted(summed(emitter, group), kind)
            times = emitter.converted(counted(emitter.builder, group), kind)
            shift = make("Multiply", kind, times, emitter.in_register(emitter.value(constant), kind))
            return make("Add" if sign > 0 else "Subtract", kind, total, shift)

        return self._exact_finish(call, value, counted, shifted, low, high)

    def _exact_sum(self, call: AggregateCall, value: Value, valid: Operand | None) -> ExactSum:
        rows = self.accumulators.row_bound
        low, high = min(value.low, 0) * rows, max(value.high, 0) * rows
        whole = integer_register(low, high) is not R.I128
        packed = self.packed(value, valid) or (self.stored_sum(value, valid) if whole else None)
        if packed is not None:
            counted, total = packed
            return counted, lambda emitter, group: total(emitter.builder, group), low, high
        counted = self.counted(valid)
        value = self.emitter.decoded(value)
        operand = self.builder.vector(value.operand)
        if value.type is R.I128:
            return counted, self._wide_sum(call, operand, valid, counted), *INT128
        if whole:
            operand = self.emitter.converted(operand, R.I64) if not self.accumulators.one_group else operand
            word = self.add(self.kept(operand, valid))
            summed = lambda emitter, group: group_word(emitter.builder, group, word)  # noqa: E731
        else:
            halves = self._halves(self.kept(self.emitter.converted(operand, R.I64), valid))
            summed = lambda emitter, group: joined_halves(emitter.builder, group, halves)  # noqa: E731
        return counted, summed, low, high

    def _halves(self, operand: Operand) -> tuple[int, int]:
        """Words that sum the lower 32 bits of 64, unsigned, and the upper 32, signed."""
        make, slot = self.builder.make, self.builder.slot
        low = self.add(make("BitAnd", R.I64, operand, slot(PlainSlot(R.I64, 0xFFFFFFFF))))
        return low, self.add(make("ShiftRight", R.I64, operand, slot(PlainSlot(R.I64, 32))))

    def _wide_sum(self, call: AggregateCall, x: Operand, valid: Operand | None, counted: Part) -> WideSum:
        """The sum of 128-bit integers, from four words of 32 bits; beyond 128 bits the statement fails."""
        lower = self._halves(self.kept(self.builder.make("LowWord", R.I64, x), valid))
        upper = self._halves(self.kept(self.builder.make("HighWord", R.I64, x), valid))

        def summed(emitter: ExpressionEmitter, group: Operand) -> Operand:
            builder = emitter.builder
            make = builder.make
            # LowWord is the lower 64 bits less 2**63, in each row that counts.
            count = make("Convert", R.I128, counted(builder, group))
            low = plus(builder, joined_halves(builder, group, lower), count, 1 << 63)
            carry = make("Convert", R.I128, make("HighWord", R.I64, low))
            high = make("Add", R.I128, joined_halves(builder, group, upper), carry)
            fits = Value(call.type, R.I128, high, None, -(1 << 100), 1 << 100)
            high = emitter.within(fits, *INT64, False, f"overflow in sum to {call.type}", call).operand
            return plus(builder, plus(builder, low, carry, -(1 << 64)), high, 1 << 64)

        return summed

    @staticmethod
    def _exact_finish(call: AggregateCall, value: Value, counted: Part, summed: WideSum, low: int, high: int) -> Finish:
        """SUM or AVG of an exact type from the parts of a group."""

        def finish(emitter: ExpressionEmitter, group: Operand) -> Value:
            builder = emitter.builder
            count = counted(builder, group)
            present = builder.make("Ne", R.MASK, count, builder.slot(PlainSlot(R.I64, 0)))
            found = summed(emitter, group)
            assert found.type is not None
            total = Value(call.type, found.type, found, present, low, high)
            if call.name == "sum":
                return emitter.checked_range(total, call.type, call, f"overflow in sum to {call.type}")
            numerator = emitter.as_double(replace(total, sql=value.sql))
            divisor = builder.make("Convert", R.F64, count)
            return Value(DOUBLE, R.F64, builder.make("Divide", R.F64, numerator, divisor), present)

        return finish

    def _float_sum(self, call: AggregateCall, value: Value, valid: Operand | None, counted: Part) -> Finish:
        x = self.emitter.in_register(value, R.F64)
        fixed = None if self.accumulators.exact else fixed_scale(value, self.accumulators.row_bound)
        word = self.wide(x, None, valid) if fixed is None else self.fixed(x, valid, fixed)
        self.accumulators.fixed_used |= fixed is not None

        def finish(emitter: ExpressionEmitter, group: Operand) -> Value:
            builder = emitter.builder
            count = counted(builder, group)
            present = builder.make("Ne", R.MASK, count, builder.slot(PlainSlot(R.I64, 0)))
            if fixed is None:
                total = self.wide_total(emitter, group, word)
            else:
                extra = builder.slot(PlainSlot(R.F64, fixed))
                total = builder.block_once("FixedToFloat", (R.F64, R.U32), R.F64, group, word, extra)
            if call.name == "avg":
                total = builder.make("Divide", R.F64, total, builder.make("Convert", R.F64, count))
            return Value(DOUBLE, R.F64, total, present)

        return finish

    def wide_total(self, emitter: ExpressionEmitter, group: Operand, word: int) -> Operand:
        """The exact sum that begins at a word, rounded once."""
        return emitter.builder.block_once("WideToFloat", (R.F64, R.U32), R.F64, group, word)

    def order_words(self, value: Value) -> list[Operand]:
        """The 64-bit words, most significant first, that sort as the value does: two of an integer of 128 bits."""
        make = self.builder.make
        if value.sql.is_coded:
            return [self.emitter.converted(self.emitter.ranks(value), R.I64)]
        value = self.emitter.decoded(value)
        operand = self.builder.vector(value.operand)
        if value.type is R.I128:
            return [make("HighWord", R.I64, operand), make("LowWord", R.I64, operand)]
        return [operand if value.type is R.I64 else make("OrderWord", R.I64, operand)]

    def _extreme(self, value: Value, valid: Operand | None, greatest: bool, sql: SqlType) -> Finish:
        counted = self.counted(valid)
        words = self.order_words(value)
        if len(words) > 1:
            return self._wide_extreme(value, words, valid, greatest, sql)
        word = self.extreme(words[0], valid, greatest)

        def finish(emitter: ExpressionEmitter, group: Operand) -> Value:
            builder = emitter.builder
            count = counted(builder, group)
            present = builder.make("Ne", R.MASK, count, builder.slot(PlainSlot(R.I64, 0)))
            found = builder.make("Keep", R.I64, group_word(builder, group, word), present)
            if value.sql.is_coded:
                assert value.dictionary is not None
                table = builder.slot(TableSlot(RankTable(value.dictionary, inverse=True)))
                code = builder.make("Lookup", R.U32, builder.make("Convert", R.U32, found), table)
                return Value(sql, R.U32, code, present, value.low, value.high, value.dictionary)
            return word_value(emitter, found, value, present)

        return finish

    def _wide_extreme(
        self, value: Value, words: list[Operand], valid: Operand | None, greatest: bool, sql: SqlType
    ) -> Finish:
        """The same of integers of 128 bits, whose two words change together."""
        counted = self.counted(valid)
        if greatest:
            words = [self.builder.make("BitNot", R.I64, word) for word in words]
        word = self.arg_min(words, self.builder.slot(PlainSlot(R.I64, 0)), valid)

        def finish(emitter: ExpressionEmitter, group: Operand) -> Value:
            builder = emitter.builder
            present = builder.make("Ne", R.MASK, counted(builder, group), builder.slot(PlainSlot(R.I64, 0)))
            found = [group_word(builder, group, word + k) for k in range(2)]
            if greatest:
                found = [builder.make("BitNot", R.I64, part) for part in found]
            operand = builder.make("Keep", R.I128, joined_words(emitter, *found), present)
            return Value(sql, R.I128, operand, present, min(value.low, 0), max(value.high, 0))

        return finish

    def _chosen(self, name: str, values: list[Value], mask: Operand | None, valid: Operand | None) -> Finish:
        value = values[0]
        payloads = self.payloads(value)
        builder = self.builder
        if name in ("arg_min", "arg_max"):
            keys = self.order_words(values[1])
            if name == "arg_max":
                keys = [builder.make("BitNot", R.I64, key) for key in keys]
        elif name == "last":
            keys = [builder.make("BitNot", R.I64, builder.block_once("RowNumber", (R.I64,), R.I64))]
        else:
            keys = [builder.vector(builder.slot(PlainSlot(R.I64, 0)))]
        is_null_too = name in ("first", "last")
        keep = mask if is_null_too else valid
        counted = self.counted(valid)
        words = [self.arg_min(keys, payload, keep) for payload in payloads]
        row_of, payload_of = len(keys), len(keys) + 1  # behind an aggregate's first word
        flag = None
        if is_null_too and value.valid is not None:
            flag = self.arg_min(keys, self.emitter.converted(value.valid, R.I64), keep)

        def finish(emitter: ExpressionEmitter, group: Operand) -> Value:
            inner = emitter.builder
            if is_null_too:
                row = group_word(inner, group, words[0] + row_of)
                present = inner.make("Ne", R.MASK, row, inner.slot(PlainSlot(R.I64, GREATEST_WORD)))
                if flag is not None:
                    known = inner.make(
                        "Ne", R.MASK, group_word(inner, group, flag + payload_of), inner.slot(PlainSlot(R.I64, 0))
                    )
                    present = inner.make("And", R.MASK, present, known)
            else:
                count = counted(inner, group)
                present = inner.make("Ne", R.MASK, count, inner.slot(PlainSlot(R.I64, 0)))
            parts = [group_word(inner, group, word + payload_of) for word in words]
            if len(parts) > 1:
                operand = inner.make("Keep", R.I128, joined_words(emitter, *parts), present)
                return Value(value.sql, R.I128, operand, present, min(value.low, 0), max(value.high, 0))
            return word_value(emitter, inner.make("Keep", R.I64, parts[0], present), value, present)

        return finish

    def _bits(self, call: AggregateCall, value: Value, valid: Operand | None) -> Finish:
        """BIT_AND, BIT_XOR, and BIT_OR as the complement of what all complements share."""
        counted, builder, name = self.counted(valid), self.builder, call.name
        neutral = 0 if name == "bit_xor" else -1
        mask = self.counts(valid)
        words = []
        payloads = self.payloads(value)
        if len(payloads) > 1:
            payloads[1] = flipped(builder, payloads[1])
        for operand in payloads:
            if name == "bit_or":
                operand = builder.make("BitNot", R.I64, operand)
            if mask is not None:
                operand = builder.make("Select", R.I64, mask, operand, builder.slot(PlainSlot(R.I64, neutral)))
            words.append(self.new_word("xor" if name == "bit_xor" else "and", neutral))
            opcode = "GroupXor" if name == "bit_xor" else "GroupAnd"
            builder.block(opcode, (R.U32, R.I64), self.group_number(), words[-1], builder.vector(operand))

        def finish(emitter: ExpressionEmitter, group: Operand) -> Value:
            inner = emitter.builder
            present = inner.make("Ne", R.MASK, counted(inner, group), inner.slot(PlainSlot(R.I64, 0)))
            parts = [group_word(inner, group, word) for word in words]
            if name == "bit_or":
                parts = [inner.make("BitNot", R.I64, part) for part in parts]
            low, high = call.type.bounds
            if len(parts) > 1:
                operand = joined_words(emitter, parts[0], flipped(inner, parts[1]))
                return Value(call.type, R.I128, operand, present, low, high)
            return Value(call.type, R.I64, parts[0], present, max(low, INT64[0]), min(high, INT64[1]))

        return finish

    def payloads(self, value: Value) -> list[Operand]:
        """A value as the 64-bit word that word_value() reads back, or as the two that joined_words() does."""
        value = self.emitter.decoded(value)
        operand = self.builder.vector(value.operand)
        if value.type is R.I128:
            return [self.builder.make(name, R.I64, operand) for name in ("HighWord", "LowWord")]
        return [operand if value.type is R.I64 else self.builder.make("OrderWord", R.I64, operand)]

    def _moments(
        self,
        call: AggregateCall,
        values: list[Value],
        argument: Callable[[Expression], Value],
        valid: Operand | None,
    ) -> Finish:
        """Variance, covariance and correlation from exact sums of x, y and their products: one pass, no cancellation."""
        name = call.name
        counted = self.count(valid)
        found = self._integer_moments(call, argument, valid, counted)
        if found is not None:
            return found
        parts = [self.emitter.decoded(value) for value in values]
        scales = [self._scale(part, argument) for part, argument in zip(parts, call.arguments, strict=True)]
        columns = [self.emitter.in_register(part, R.F64) for part in parts]
        known = [scale for scale in scales if scale is not None]
        if len(known) < len(scales):
            return self.moments(name, columns, valid)
        word = self._lane_moments(name, columns, valid, known)
        factor = 1.0 / (known[0] * known[-1])
        return self._of_moments(name, counted, word, "Lane", factor)

    def moments(self, name: str, columns: list[Operand], valid: Operand | None) -> Finish:
        """The same of doubles, from sums over the whole range of exponents: 1.1 kB each."""
        counted, x, y = self.count(valid), columns[0], columns[-1]
        if name in ("covar_samp", "covar_pop"):
            words = [self.wide(x, None, valid), self.wide(y, None, valid), self.wide(x, y, valid)]
        else:
            words = [self.wide(x, None, valid), self.wide(x, x, valid)]
        if name == "corr":
            words += [self.wide(y, None, valid), self.wide(y, y, valid), self.wide(x, y, valid)]
        return self._of_moments(name, counted, words[0], "Wide", None)

    @staticmethod
    def _of_moments(name: str, counted: int, word: int, form: str, factor: float | None) -> Finish:
        """The value from a count and the first word of sums; `factor` is what lanes of scaled values are multiplied by."""

        def finish(emitter: ExpressionEmitter, group: Operand) -> Value:
            builder = emitter.builder
            count = group_word(builder, group, counted)
            least = 2 if name in ("var_samp", "stddev_samp", "covar_samp") else 1
            present = builder.make("Ge", R.MASK, count, builder.slot(PlainSlot(R.I64, least)))
            if name == "corr":
                result = builder.block_once(f"{form}Correlation", (R.F64, R.U32), R.F64, group, counted, word)
                return Value(DOUBLE, R.F64, result, present)
            opcode = f"{form}Covariance" if name.startswith("covar") else f"{form}Variance"
            variance = builder.block_once(opcode, (R.F64, R.U32), R.F64, group, counted, word, least - 1)
            if factor is not None:
                variance = builder.make("Multiply", R.F64, variance, builder.slot(PlainSlot(R.F64, factor)))
            if name.startswith("stddev"):
                variance = builder.make("SquareRoot", R.F64, variance)
            return Value(DOUBLE, R.F64, variance, present)

        return finish

    def _integer_moments(
        self, call: AggregateCall, argument: Callable[[Expression], Value], valid: Operand | None, counted: int
    ) -> Finish | None:
        """The same of integers whose sums fit into one word each; None for others.

        CORR of 10 M rows in 10^4 groups: 0.2 s of processor time, where lanes take 1.6 and DuckDB 0.5 to 0.7.
        """
        name, emitter, rows = call.name, self.emitter, self.accumulators.row_bound
        sources = [part.argument for part in call.arguments if isinstance(part, Cast) and part.argument.type.is_integer]
        if not self.direct or len(sources) < len(call.arguments):
            return None
        parts = [emitter.decoded(argument(source)) for source in sources]
        if any(max(part.high, -part.low) ** 2 * rows >= 1 << 62 for part in parts):
            return None
        kept = [self.kept(emitter.converted(self.builder.vector(part.operand), R.I64), valid) for part in parts]
        first, last = kept[0], kept[-1]

        def product(left: Operand, right: Operand) -> int:
            return self.add(self.builder.make("Multiply", R.I64, left, right))

        x, y, xy = self.add(first), self.add(last), product(first, last)
        squares = [(x, x, product(first, first)), (y, y, product(last, last))] if name == "corr" else []

        def finish(emitter: ExpressionEmitter, group: Operand) -> Value:
            builder = emitter.builder
            make = builder.make
            least = 2 if name in ("var_samp", "stddev_samp", "covar_samp") else 1
            count = group_word(builder, group, counted)
            present = make("Ge", R.MASK, count, builder.slot(PlainSlot(R.I64, least)))

            def covariance(left: int, right: int, both: int) -> Operand:
                """n * sum(x y) - sum(x) * sum(y), rounded once."""
                a, b, ab, n = (
                    make("Convert", R.I128, part)
                    for part in (*(group_word(builder, group, word) for word in (left, right, both)), count)
                )
                total = make("Subtract", R.I128, make("Multiply", R.I128, n, ab), make("Multiply", R.I128, a, b))
                return make("Convert", R.F64, total)

            both = covariance(x, y, xy)
            if name == "corr":
                of_x, of_y = (covariance(*words) for words in squares)
                root = make("SquareRoot", R.F64, make("Multiply", R.F64, of_x, of_y))
                return Value(DOUBLE, R.F64, make("Divide", R.F64, both, root), present)
            rows_of_group = make("Convert", R.F64, count)
            less = make("Subtract", R.F64, rows_of_group, builder.slot(PlainSlot(R.F64, least - 1.0)))
            variance = make("Divide", R.F64, make("Divide", R.F64, both, rows_of_group), less)
            if name.startswith("stddev"):
                variance = make("SquareRoot", R.F64, variance)
            return Value(DOUBLE, R.F64, variance, present)

        return finish

    def _scale(self, value: Value, argument: Expression) -> float | None:
        """The scale of lanes for moments of a value; None where they had better be summed on the wide path.

        A product has more bits than lanes have, so that only columns are tried.  Its square must be a number, too.
        """
        while isinstance(argument, Cast):
            argument = argument.argument
        if self.accumulators.exact or not isinstance(argument, Column):
            return None
        scale = fixed_scale(value, self.accumulators.row_bound)
        return scale if scale is not None and 2.0**-400 < scale < 2.0**400 else None

    def _lane_moments(self, name: str, columns: list[Operand], valid: Operand | None, scales: list[float]) -> int:
        """The first word of sums of lanes: 24 bytes a sum of values, 48 a sum of products.

        STDDEV of 5 M rows in 10^4 groups, processor time: 0.24 s on one thread and 0.28 on two, where the wide path takes 0.4
        and 1.3 (its tables do not fit into caches), DuckDB 0.15.
        """
        self.accumulators.fixed_used = True
        builder = self.builder
        keep = self.builder.both(valid, self.alive)
        keep = keep if keep is not None else builder.vector(builder.slot(PlainSlot(R.MASK, 1)))

        def split(operand: Operand, scale: float) -> Operand:
            lanes = builder.register(R.I64, 3)
            slot = builder.slot(PlainSlot(R.F64, scale))
            builder.block("SplitFixed", (R.I64, R.F64), lanes, builder.vector(operand), keep, slot)
            return lanes

        def product(left: Operand, right: Operand) -> Operand:
            lanes = builder.register(R.I64, 6)
            builder.block("SplitProduct", (R.I64, R.I64, R.I64), lanes, left, right)
            return lanes

        of_x = split(columns[0], scales[0])
        of_y = split(columns[1], scales[1]) if len(columns) > 1 else of_x
        sums = [(of_x, 3)] if len(columns) == 1 else [(of_x, 3), (of_y, 3)]
        if name == "corr":
            sums += [(product(of_x, of_x), 6), (product(of_y, of_y), 6)]
        sums.append((product(of_x, of_y), 6))
        word = self.new_word("add", 0, sum(count for _, count in sums))
        lanes = [Operand(first.kind, first.number + k, R.I64) for first, count in sums for k in range(count)]
        for k, lane in enumerate(lanes):
            if self.accumulators.one_group:
                builder.block("ReduceAdd", (R.I64,), word + k, lane)
            else:
                self._adds.append((word + k, lane))
        return word


def flipped(builder: PipelineBuilder, word: Operand) -> Operand:
    """A LowWord as the lower 64 bits, or the other way round: the top bit is flipped in one."""
    return builder.make("BitXor", R.I64, word, builder.slot(PlainSlot(R.I64, LEAST_WORD)))


def count_finish(counted: Part) -> Finish:
    """COUNT is how many rows were counted."""

    def finish(emitter: ExpressionEmitter, group: Operand) -> Value:
        return Value(BIGINT, R.I64, counted(emitter.builder, group), None, 0, 1 << 62)

    return finish


def joined_halves(builder: PipelineBuilder, group: Operand, words: tuple[int, int]) -> Operand:
    """The 128-bit sum of what two words hold the halves of."""
    low, high = (builder.make("Convert", R.I128, group_word(builder, group, word)) for word in words)
    return plus(builder, low, high, 1 << 32)


def shifted_base(expression: Expression) -> tuple[Expression, Literal | None, int]:
    """(x, constant, sign) of x + sign * constant, integers of 64 bits at most; (the expression, None, 1) of others."""
    if isinstance(expression, Call) and all(part.type.kind in SHIFTED for part in (expression, *expression.arguments)):
        match expression.name, expression.arguments:
            case "add" | "subtract", (base, Literal() as constant):
                return base, constant, 1 if expression.name == "add" else -1
            case "add", (Literal() as constant, base):
                return base, constant, 1
    return expression, None, 1


def shared_bases(calls: Iterable[AggregateCall]) -> frozenset[Expression]:
    """What several different sums are of, but for constants that they add to it."""
    sums = {call.arguments[0] for call in calls if call.name in ("sum", "avg") and not call.distinct}
    counts = Counter(shifted_base(expression)[0] for expression in sums if expression.type.kind in SHIFTED)
    return frozenset(base for base, count in counts.items() if count > 1)


def plus(builder: PipelineBuilder, x: Operand, y: Operand, factor: int) -> Operand:
    """x + y * factor in 128 bits."""
    return builder.make("Add", R.I128, x, builder.make("Multiply", R.I128, y, builder.slot(PlainSlot(R.I128, factor))))


def group_word(builder: PipelineBuilder, group: Operand, word: int) -> Operand:
    """One word of the groups named by a register."""
    return builder.block_once("GroupWord", (R.I64, R.U32), R.I64, group, word)


def word_part(word: int) -> Part:
    """The part that a word is by itself."""
    return lambda builder, group: group_word(builder, group, word)


def fixed_scale(value: Value, row_bound: int) -> float | None:
    """The power of two that puts the largest magnitude just below 2**FIXED_BITS; None where lanes cannot serve."""
    if value.low is None or value.high is None or row_bound > 1 << 29:
        return None
    largest = max(abs(value.low), abs(value.high))
    if not math.isfinite(largest):
        return None
    exponent = math.frexp(largest)[1] if largest else 0
    return 2.0 ** (FIXED_BITS - exponent) if -900 < exponent < 900 else None
