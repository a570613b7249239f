"""What the opcodes mean: one tile of the device `reference`, and the group tables that tiles add to.

Elementwise opcodes are their NumPy bodies.  Opcodes where rows meet are the methods of `Tile` with the same names; they
take operands as the instruction names them.  Exact float sums are held as Python integers here, so nothing is shared with
the limbs of kernels/ops_sum.cuh but the result.  Past 600 lines: a method for each such opcode, on one state.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import field
from functools import partial
from typing import Any

import numpy as np

from gpudb.devices.launch import pack_slot
from gpudb.devices.work import Part
from gpudb.errors import InternalError
from gpudb.opcodes.evaluate import evaluate, wrapped
from gpudb.program import COLUMN, PLAIN, REGISTER, GroupSink, Instruction, Operand, Pipeline
from gpudb.record import record
from gpudb.types import RegisterType

R = RegisterType
Array = Any  # NumPy arrays of any dtype

WIDE_WORDS = 137  # that an exact sum takes in a group table, kernels/ops_sum.cuh
FIXED_BITS = 32  # of each of the three lanes of a fixed-point sum
PRODUCT_EXPONENT = -2148  # of the least product of two doubles: exact sums are whole multiples of 2 ** this
LEAST_EXPONENT = -1074  # of the least double
DIGIT_BITS = 27  # of the pieces that mantissas are cut into, so that sums of their products fit 64 bits
NAN = float("nan")


# --------------------------------------------------------------------------------------------------- registers


def values_of_type(array: Array, kind: RegisterType) -> Array:
    """An intermediate column's values; I128 columns made on the host lie in pairs of 64-bit words, the lower first."""
    if kind is R.I128 and array.dtype != object:
        words = array.view(np.uint64)
        out = np.empty(len(words) // 2, object)
        out[:] = [low | high << 64 for low, high in zip(words[0::2].tolist(), words[1::2].tolist(), strict=True)]
        return wrapped(out)
    return array.view(kind.dtype) if array.dtype != kind.dtype else array


# --------------------------------------------------------------------------------------------------- exact sums


def rounded(whole: int, exponent: int) -> float:
    """whole * 2 ** exponent, rounded once to nearest even; beyond the range an infinity."""
    try:
        return float(whole << exponent) if exponent >= 0 else whole / (1 << -exponent)
    except OverflowError:
        return float("inf") if whole > 0 else float("-inf")


@record(frozen=False)
class WideSums:
    """One exact sum a group.

    totals   (groups,) Python integers, in units of 2 ** PRODUCT_EXPONENT
    special  (groups, 3) int64: terms that were +infinity, -infinity and NaN
    """

    totals: Array
    special: Array

    @staticmethod
    def zeros(groups: int) -> WideSums:
        """Empty sums."""
        totals = np.empty(groups, object)
        totals[:] = 0
        return WideSums(totals, np.zeros((groups, 3), np.int64))

    def grown(self, groups: int) -> WideSums:
        """The same sums with room for more groups."""
        more = WideSums.zeros(groups - len(self.totals))
        return WideSums(np.concatenate([self.totals, more.totals]), np.concatenate([self.special, more.special]))

    def add(self, group: Array, x: Array, y: Array) -> None:
        """Add x * y, exactly, to each row's group."""
        finite = np.isfinite(x) & np.isfinite(y)
        with np.errstate(all="ignore"):
            product = (x * y)[~finite]
        which = np.where(np.isnan(product), 2, np.where(product > 0, 0, 1))
        np.add.at(self.special, (group[~finite], which), 1)
        group, x, y = group[finite], x[finite], y[finite]
        (x_whole, x_exponent), (y_whole, y_exponent) = _mantissas(x), _mantissas(y)
        exponent = x_exponent + y_exponent - PRODUCT_EXPONENT
        pairs, place = np.unique(group.astype(np.int64) << 16 | exponent, return_inverse=True)
        digits = np.zeros((len(pairs), 4), np.int64)
        mask = (1 << DIGIT_BITS) - 1
        x_high, x_low, y_high, y_low = x_whole >> DIGIT_BITS, x_whole & mask, y_whole >> DIGIT_BITS, y_whole & mask
        for k, piece in enumerate((x_low * y_low, x_low * y_high + x_high * y_low, x_high * y_high)):
            np.add.at(digits[:, k], place, piece & mask)
            np.add.at(digits[:, k + 1], place, piece >> DIGIT_BITS)
        for pair, pieces in zip(pairs.tolist(), digits.tolist(), strict=True):
            total = sum(piece << DIGIT_BITS * k for k, piece in enumerate(pieces))
            self.totals[pair >> 16] += total << (pair & 0xFFFF)

    def value(self, group: int) -> float:
        """The sum, rounded once; infinities and NaN by IEEE's rules."""
        positive, negative, nan = self.special[group].tolist()
        if nan or (positive and negative):
            return NAN
        if positive or negative:
            return float("inf") if positive else float("-inf")
        return rounded(self.totals[group], PRODUCT_EXPONENT)


Covariance = Callable[[int, int], tuple[np.float64, int]]
"""Of a group and its count: (value, exponent) as covariance() gives them."""


def _mantissas(x: Array) -> tuple[Array, Array]:
    """(whole, exponent) int64 with x = whole * 2 ** exponent, |whole| < 2 ** 53; x finite."""
    fraction, exponent = np.frexp(x)
    shift = np.minimum(53, exponent.astype(np.int64) - LEAST_EXPONENT)  # fewer bits where x is subnormal
    return np.ldexp(fraction, shift.astype(np.int32)).astype(np.int64), exponent.astype(np.int64) - shift


def covariance(x: WideSums, y: WideSums, xy: WideSums, group: int, count: int) -> tuple[np.float64, int]:
    """(value, exponent): count * sum(x y) - sum(x) * sum(y) = value * 2 ** exponent, value rounded once and, unless it is 0,
    at least 1 and at most 2 ** 32, so that neither range ends it; NaN where a sum is not finite.
    """
    if x.special[group].any() or y.special[group].any() or xy.special[group].any():
        return np.float64(NAN), 0
    total = (count * xy.totals[group] << -PRODUCT_EXPONENT) - x.totals[group] * y.totals[group]
    if total == 0:
        return np.float64(0.0), 0
    exponent = (abs(total).bit_length() - 1 + 2 * PRODUCT_EXPONENT) // 32 * 32
    return np.float64(rounded(total, 2 * PRODUCT_EXPONENT - exponent)), exponent


# --------------------------------------------------------------------------------------------------- group tables


@record(frozen=False)
class GroupState:
    """A group table.  The last group is the trash group, where rows go that do not count.

    words    (capacity + 1, words) int64; word 0 is the first row
    keys     (capacity, key words) int64, of a hash table
    numbers  bytes of a key -> its group
    wide     first word of an exact sum -> the sums; their words in `words` are not used
    """

    sink: GroupSink
    words: Array
    keys: Array
    numbers: dict[bytes, int] = field(default_factory=dict)
    wide: dict[int, WideSums] = field(default_factory=dict)

    @property
    def capacity(self) -> int:
        """Number of groups it has, the trash group not counted; as a number, the trash group."""
        return len(self.words) - 1

    def sums(self, word: int) -> WideSums:
        """The exact sums whose first word this is."""
        return self.wide.setdefault(word, WideSums.zeros(len(self.words)))

    def find(self, keys: Array) -> Array:
        """(rows,) group of each of the keys (rows, key words) int64, inserted where they are new."""
        keys = np.ascontiguousarray(keys)
        distinct, place = np.unique(keys.view(np.dtype((np.void, keys.itemsize * keys.shape[1]))), return_inverse=True)
        known = len(self.numbers)
        found = [self.numbers.setdefault(key, len(self.numbers)) for key in (v.tobytes() for v in distinct)]
        fresh = len(self.numbers) - known
        if fresh:
            initial = np.array([[initial for _, initial in self.sink.words]], np.int64)
            self.words = np.concatenate([self.words, np.repeat(initial, fresh, axis=0)])
            self.wide = {word: sums.grown(len(self.words)) for word, sums in self.wide.items()}
            inserted = np.frombuffer(b"".join(list(self.numbers)[known:]), np.int64)
            self.keys = np.concatenate([self.keys, inserted.reshape(fresh, -1)])
            # What used to be the trash group is a group now.
            self.words[known] = initial
            for sums in self.wide.values():
                sums.totals[known], sums.special[known] = 0, 0
        return np.array(found, np.int64)[place.reshape(-1)] if found else np.zeros(0, np.int64)

    def probe(self, keys: Array) -> Array:
        """(rows,) 1 + group of each of the keys (rows, key words) int64, 0 where there is none."""
        return np.array([self.numbers.get(key.tobytes(), -1) + 1 for key in keys], np.uint32)


@record(frozen=False)
class ProbedRows:
    """A hash table of a join's build rows: bytes of a key -> the row that stands for it."""

    rows: dict[bytes, int]

    def probe(self, keys: Array) -> Array:
        """(rows,) 1 + build row of each of the keys (rows, key words) int64, 0 where there is none."""
        return np.array([self.rows.get(key.tobytes(), -1) + 1 for key in keys], np.uint32)


def new_groups(sink: GroupSink) -> GroupState:
    """An empty table: all groups of a dense one, none but the trash group of one with keys."""
    groups = 1 if sink.key_words else sink.capacity + 1
    initial = np.array([[initial for _, initial in sink.words]], np.int64)
    return GroupState(sink, np.repeat(initial, groups, axis=0), np.zeros((0, max(1, sink.key_words)), np.int64))


# --------------------------------------------------------------------------------------------------- the tile


class Tile:
    """All rows of one part, run through a pipeline.

    rows          that are still worked on: all of the part, or those that Compact went on with (`picked`)
    outputs       what Emit and EmitAll wrote, by output column; `rows` rows each
    failure       the least (row, instruction) at which a Fail fired
    inexact       a float did not fit its fixed-point lanes
    """

    def __init__(
        self,
        pipeline: Pipeline,
        part: Part,
        table: GroupState | None,
        source_table: GroupState | None,
        top: int | None = None,
    ) -> None:
        self.pipeline = pipeline
        self.part = part
        self.rows = part.rows
        self._table = table
        self._source_table = source_table
        self.top = top
        self.registers: dict[int, Array] = {}
        self.outputs: dict[int, Array] = {}
        self.picked: Array | None = None
        self.failure: tuple[int, int] | None = None
        self.inexact = False
        self._line = 0
        self._arguments: tuple[Operand, ...] = ()

    def run(self, profile: Array | None = None) -> None:
        """Run all instructions, up to a SkipIfNone or Compact that finds no row alive; adds to `profile` as `Work` says."""
        with np.errstate(all="ignore"):
            for line, instruction in enumerate(self.pipeline.instructions):
                self._line = line
                rows, began = self.rows, time.perf_counter_ns()
                more = True
                if instruction.variant.opcode.role == "elementwise":
                    self._elementwise(instruction)
                else:
                    more = getattr(self, instruction.variant.opcode.name)(*instruction.operands) is not False
                if profile is not None:
                    if instruction.makes_mask:
                        rows = int(np.count_nonzero(self.registers[instruction.operands[0].number]))
                    profile[line] += (time.perf_counter_ns() - began, rows)
                if not more:
                    return

    def _elementwise(self, instruction: Instruction) -> None:
        variant = instruction.variant
        out, *inputs = instruction.operands
        values = []
        for kind, form, operand in zip(variant.signature[1:], variant.form, inputs, strict=True):
            values.append(self.vector(operand) if form == "v" else self.constant(operand, kind, form))
        self.registers[out.number] = evaluate(variant, values, self.rows)

    # ------------------------------------------------------------------------------- operands

    def vector(self, operand: Operand) -> Array:
        """(rows,) values of a register or of a column."""
        if operand.kind == REGISTER:
            return self.registers[operand.number]
        assert operand.kind == COLUMN, "a slot is not a vector"
        return self.column(operand)[: self.rows]

    def column(self, operand: Operand) -> Array:
        """A whole source column."""
        return values_of_type(self.part.columns[operand.number], self.pipeline.columns[operand.number].type)

    def constant(self, operand: Operand, kind: RegisterType, form: str = "s") -> Array:
        """A slot's value as an array of no dimensions, read as `kind` from the slot's bytes; or its lookup table."""
        value = self.part.slots[operand.number]
        if form == "p":
            return value
        low, high = pack_slot(value, self.pipeline.slots[operand.number].type)
        if kind is R.I128:
            out = np.empty((), object)
            out[()] = wrapped([low | high << 64])[0]
            return out
        return np.frombuffer(low.to_bytes(8, "little"), kind.dtype)[0:1].reshape(())

    @property
    def table(self) -> GroupState:
        """The group table that the pipeline adds to."""
        if self._table is None:
            raise InternalError("a pipeline without a group table adds to one")
        return self._table

    @property
    def source(self) -> GroupState:
        """The finished group table that the pipeline reads."""
        if self._source_table is None:
            raise InternalError("a pipeline without a group table reads one")
        return self._source_table

    # ------------------------------------------------------------------------------- rows

    def row_numbers(self) -> Array:
        """(rows,) int64 numbers in the source of the rows still worked on."""
        found = np.arange(self.rows, dtype=np.int64) if self.picked is None else self.picked.astype(np.int64)
        return found + self.part.first_row

    def ExpandValidity(self, out: Operand, column: Operand) -> None:
        bits = self.part.columns[column.number]
        self.registers[out.number] = np.unpackbits(bits, count=self.rows, bitorder="little")

    def RowNumber(self, out: Operand) -> None:
        self.registers[out.number] = self.row_numbers()

    def Gather(self, out: Operand, column: Operand, rows: Operand) -> None:
        self.registers[out.number] = self.column(column)[self.vector(rows)]

    def FirstReached(self, out: Operand, column: Operand, value: Operand, begin: Operand, end: Operand) -> None:
        self._bound("left", out, column, value, begin, end)

    def FirstPassed(self, out: Operand, column: Operand, value: Operand, begin: Operand, end: Operand) -> None:
        self._bound("right", out, column, value, begin, end)

    def _bound(self, side: Any, out: Operand, column: Operand, value: Operand, begin: Operand, end: Operand) -> None:
        rising = self.column(column)
        limits = zip(*(self.vector(x).tolist() for x in (begin, end, value)), strict=True)
        found = [first + int(np.searchsorted(rising[first:last], wanted, side)) for first, last, wanted in limits]
        self.registers[out.number] = np.array(found, np.uint32)

    def Fail(self, bad: Operand, alive: Operand, message: Operand) -> None:
        rows = np.flatnonzero(self.vector(bad) & self.vector(alive))
        if len(rows):
            found = (int(self.row_numbers()[rows[0]]), self._line)
            self.failure = found if self.failure is None else min(self.failure, found)

    def Arguments(self, *arguments: Operand) -> None:
        self._arguments += arguments

    def Call(self, out: Operand, status: Operand, alive: Operand, function: Operand) -> None:
        callee = self.part.slots[function.number]
        arguments = [self.vector(argument) for argument in self._arguments[: len(callee.registers)]]
        mask = None if alive.kind == PLAIN else self.vector(alive)
        self.registers[out.number], self.registers[status.number] = callee.over_rows(arguments, mask, self.rows)
        self._arguments = ()

    def SkipIfNone(self, alive: Operand) -> bool:
        if self.vector(alive).any():
            return True
        self.rows = 0
        return False

    # ------------------------------------------------------------------------------- emitting

    def KeepTop(self, out: Operand, word: Operand, alive: Operand) -> None:
        kept, words = self.vector(alive) != 0, self.vector(word)
        if self.top is not None and 0 < self.top < np.count_nonzero(kept):
            kept = kept & (words <= np.partition(words[kept], self.top - 1)[self.top - 1])
        self.registers[out.number] = kept.astype(np.uint8)

    def Compact(self, out: Operand, alive: Operand) -> bool:
        found = np.flatnonzero(self.vector(alive)).astype(np.uint32)
        self.registers[out.number] = self.picked = found
        self.rows = len(found)
        return self.rows > 0

    def Pick(self, out: Operand, value: Operand, rows: Operand) -> None:
        self.registers[out.number] = self._whole(value)[self.registers[rows.number]]

    def PickValidity(self, out: Operand, column: Operand, rows: Operand) -> None:
        bits = np.unpackbits(self.part.columns[column.number], count=self.part.rows, bitorder="little")
        self.registers[out.number] = bits[self.registers[rows.number]]

    def Emit(self, column: Operand, value: Operand, rows: Operand) -> None:
        self._output(column, self._whole(value)[self.registers[rows.number]])

    def EmitAll(self, column: Operand, value: Operand) -> None:
        self._output(column, self.vector(value))

    def _whole(self, value: Operand) -> Array:
        """A column or a register with all rows of the tile."""
        return self.column(value) if value.kind == COLUMN else self.registers[value.number]

    def _output(self, column: Operand, values: Array) -> None:
        kind = self.pipeline.sink.columns[column.number]  # type: ignore[union-attr]
        self.outputs[column.number] = values if values.dtype == kind.dtype else values.view(kind.dtype)

    # ------------------------------------------------------------------------------- one group

    def ReduceAdd(self, word: Operand, value: Operand) -> None:
        self.table.words[0, word.number] += np.sum(self.vector(value), dtype=np.int64)

    def ReduceStored(self, word: Operand, stored: Operand, keep: Operand, base: Operand, scale: Operand) -> None:
        kept = self.vector(stored)[self.vector(keep) != 0].astype(np.int64)
        words = self.table.words[0, word.number : word.number + 2]
        words[0] += len(kept)
        with np.errstate(over="ignore"):
            words[1] += self.constant(base, R.I64) * len(kept) + self.constant(scale, R.I64) * np.sum(
                kept, dtype=np.int64
            )

    def ReduceMin(self, word: Operand, value: Operand) -> None:
        words = self.table.words
        words[0, word.number] = min(words[0, word.number], self.vector(value).min())

    def ReduceMax(self, word: Operand, value: Operand) -> None:
        words = self.table.words
        words[0, word.number] = max(words[0, word.number], self.vector(value).max())

    def ReduceFixed(self, word: Operand, x: Operand, keep: Operand, scale: Operand) -> None:
        lanes = self._fixed_lanes(x, keep, scale)
        for k, lane in enumerate(lanes):
            self.table.words[0, word.number + k] += np.sum(lane, dtype=np.int64)

    # ------------------------------------------------------------------------------- exact sums

    def SplitFixed(self, out: Operand, x: Operand, keep: Operand, scale: Operand) -> None:
        for k, lane in enumerate(self._fixed_lanes(x, keep, scale)):
            self.registers[out.number + k] = lane

    def _fixed_lanes(self, x: Operand, keep: Operand, scale: Operand) -> list[Array]:
        """Three int64 lanes with x = (lane 0 + lane 1 / 2^32 + lane 2 / 2^64) / scale, each step rounded to even."""
        kept = np.where(self.vector(keep) != 0, self.vector(x), 0.0)
        rest = kept * self.constant(scale, R.F64)
        fits = np.abs(rest) < 2.0**33  # NaN does not fit
        fits &= (rest != 0.0) | (kept == 0.0)  # nor what a scale below 1 made nothing of
        lanes = []
        for k in range(3):
            lane = np.rint(rest)
            lanes.append(np.where(fits, lane, 0.0).astype(np.int64))
            rest = rest - lane if k == 2 else (rest - lane) * 2.0**FIXED_BITS
        self.inexact |= not bool((fits & (rest == 0.0)).all())
        return lanes

    def SplitProduct(self, out: Operand, x: Operand, y: Operand) -> None:
        rest = self._joined_lanes(x) * self._joined_lanes(y)
        for k in range(5):
            self.registers[out.number + k] = (rest & 0xFFFFFFFF).astype(np.int64)
            rest = rest >> 32
        self.registers[out.number + 5] = rest.astype(np.int64)

    def _joined_lanes(self, x: Operand) -> Array:
        """(rows,) Python integers, in units of the last of three lanes."""
        high, middle, low = (self.registers[x.number + k].astype(object) for k in range(3))
        return (high << 64) + (middle << 32) + low

    def _lane_sums(self, word: int, group: int) -> int:
        high, middle, low = self.source.words[group, word : word + 3].tolist()
        return int((high << 64) + (middle << 32) + low)

    def _lane_products(self, word: int, group: int) -> int:
        return sum(int(lane) << 32 * k for k, lane in enumerate(self.source.words[group, word : word + 6]))

    def _lane_covariance(self, x: int, y: int, xy: int, group: int, count: int) -> tuple[np.float64, int]:
        """As covariance(), of words that sum lanes."""
        total = count * self._lane_products(xy, group) - self._lane_sums(x, group) * self._lane_sums(y, group)
        if total == 0:
            return np.float64(0.0), 0
        exponent = (abs(total).bit_length() - 1 - 128) // 32 * 32
        return np.float64(rounded(total, -128 - exponent)), exponent

    def LaneVariance(self, out: Operand, rows: Operand, count: Operand, sums: Operand, less: Operand) -> None:
        x = sums.number
        self._covariances(out, rows, count, less, partial(self._lane_covariance, x, x, x + 3))

    def LaneCovariance(self, out: Operand, rows: Operand, count: Operand, sums: Operand, less: Operand) -> None:
        x = sums.number
        self._covariances(out, rows, count, less, partial(self._lane_covariance, x, x + 3, x + 6))

    def LaneCorrelation(self, out: Operand, rows: Operand, count: Operand, sums: Operand) -> None:
        x = sums.number
        pairs = [(x, x, x + 6), (x + 3, x + 3, x + 12), (x, x + 3, x + 18)]
        self._correlations(out, rows, count, *(partial(self._lane_covariance, *words) for words in pairs))

    def FixedToFloat(self, out: Operand, rows: Operand, word: Operand, scale: Operand) -> None:
        exponent = 1 - int(np.frexp(self.constant(scale, R.F64))[1])  # of 1 / scale, a power of two
        lanes = self.source.words[:, word.number : word.number + 3]

        def value(group: int) -> float:
            high, middle, low = (int(lane) for lane in lanes[group])
            return rounded((high << 2 * FIXED_BITS) + (middle << FIXED_BITS) + low, exponent - 2 * FIXED_BITS)

        self._per_group(out, rows, value)

    def GroupAddWide(self, group: Operand, word: Operand, x: Operand, y: Operand, keep: Operand) -> None:
        kept = self.vector(keep) != 0
        self.table.sums(word.number).add(self.vector(group)[kept], self.vector(x)[kept], self.vector(y)[kept])

    def WideToFloat(self, out: Operand, rows: Operand, word: Operand) -> None:
        self._per_group(out, rows, self._sums(word.number).value)

    def WideVariance(self, out: Operand, rows: Operand, count: Operand, sums: Operand, less: Operand) -> None:
        x, xx = self._sums(sums.number, 2)
        self._covariances(out, rows, count, less, partial(covariance, x, x, xx))

    def WideCovariance(self, out: Operand, rows: Operand, count: Operand, sums: Operand, less: Operand) -> None:
        self._covariances(out, rows, count, less, partial(covariance, *self._sums(sums.number, 3)))

    def _covariances(self, out: Operand, rows: Operand, count: Operand, less: Operand, both_of: Covariance) -> None:
        def value(group: int) -> float:
            n = int(self.source.words[group, count.number])
            if n <= less.number:
                return 0.0
            both, exponent = both_of(group, n)
            return np.ldexp(both / n / (n - less.number), exponent)

        self._per_group(out, rows, value)

    def WideCorrelation(self, out: Operand, rows: Operand, count: Operand, sums: Operand) -> None:
        x, xx, y, yy, xy = self._sums(sums.number, 5)
        pairs = [(x, x, xx), (y, y, yy), (x, y, xy)]
        self._correlations(out, rows, count, *(partial(covariance, *of) for of in pairs))

    def _correlations(
        self, out: Operand, rows: Operand, count: Operand, of_x: Covariance, of_y: Covariance, of_both: Covariance
    ) -> None:
        def value(group: int) -> float:
            n = int(self.source.words[group, count.number])
            x_square, x_exponent = of_x(group, n)
            y_square, y_exponent = of_y(group, n)
            both, exponent = of_both(group, n)
            return np.ldexp(both / np.sqrt(x_square * y_square), exponent - (x_exponent + y_exponent) // 2)

        self._per_group(out, rows, value)

    def _sums(self, word: int, count: int = 1) -> Any:
        """The exact sum whose first word this is, or several, one behind the other."""
        found = [self.source.sums(word + k * WIDE_WORDS) for k in range(count)]
        return found if count > 1 else found[0]

    def _per_group(self, out: Operand, rows: Operand, value: Callable[[int], float]) -> None:
        found = [value(group) for group in self.vector(rows).tolist()]
        self.registers[out.number] = np.array(found, np.float64)

    # ------------------------------------------------------------------------------- many groups

    def GroupFind(self, out: Operand, keys: Operand, alive: Operand, key_words: Operand) -> None:
        alive_rows = self.vector(alive) != 0
        found = self.table.find(self._keys(keys, key_words)[alive_rows])
        group = np.full(self.rows, self.table.capacity, np.uint32)
        group[alive_rows] = found
        self.registers[out.number] = group

    def GroupIndex(self, out: Operand, number: Operand) -> None:
        numbers = self.vector(number).astype(np.int64)
        kept = numbers < self.table.sink.capacity
        found = self.table.find(numbers[kept].reshape(-1, 1))
        group = np.full(self.rows, self.table.capacity, np.uint32)
        group[kept] = found
        self.registers[out.number] = group

    def Probe(self, out: Operand, keys: Operand, alive: Operand, key_words: Operand, table: Operand) -> None:
        alive_rows = self.vector(alive) != 0
        entries = np.zeros(self.rows, np.uint32)
        entries[alive_rows] = self.part.slots[table.number].probe(self._keys(keys, key_words)[alive_rows])
        self.registers[out.number] = entries

    def MatchProbe(self, out: Operand, offsets: Operand, probes: Operand) -> None:
        first_pairs = self.column(offsets)[: int(self.constant(probes, R.I64))]
        found = np.searchsorted(first_pairs, self.row_numbers(), side="right") - 1
        self.registers[out.number] = found.astype(np.uint32)

    def MatchBuild(
        self, out: Operand, probe: Operand, offsets: Operand, begins: Operand, counts: Operand, rows: Operand
    ) -> None:
        row = self.vector(probe)
        k = self.row_numbers() - self.column(offsets)[row]
        there = k < self.column(counts)[row]
        found = np.zeros(self.rows, np.uint32)
        found[there] = self.column(rows)[(self.column(begins)[row] + k)[there]] + 1
        self.registers[out.number] = found

    def Nearest(
        self, out: Operand, begins: Operand, counts: Operand, word: Operand, rows: Operand, words: Operand
    ) -> None:
        matches, order = self.column(rows), self.column(words)
        found = np.zeros(self.rows, np.uint32)
        runs = zip(self.vector(begins).tolist(), self.vector(counts).tolist(), self.vector(word), strict=True)
        for row, (begin, count, least) in enumerate(runs):
            run = matches[begin : begin + count]
            at = np.searchsorted(order[run], least)
            found[row] = run[at] + 1 if at < count else 0
        self.registers[out.number] = found

    def _keys(self, keys: Operand, key_words: Operand) -> Array:
        """(rows, key words) of consecutive registers."""
        operands = [keys._replace(number=keys.number + k) for k in range(key_words.number)]
        return np.stack([self.vector(operand) for operand in operands], axis=1)

    def GroupFirst(self, group: Operand) -> None:
        np.minimum.at(self.table.words[:, 0], self.vector(group), self.row_numbers())

    def _group_add(self, group: Operand, word: Operand, *values: Operand) -> None:
        for k, value in enumerate(values):
            np.add.at(self.table.words[:, word.number + k], self.vector(group), self.vector(value))

    GroupAdd1 = GroupAdd2 = GroupAdd3 = GroupAdd4 = _group_add

    def _group_first_add(self, group: Operand, word: Operand, *values: Operand) -> None:
        self.GroupFirst(group)
        self._group_add(group, word, *values)

    GroupFirstAdd1 = GroupFirstAdd2 = GroupFirstAdd3 = GroupFirstAdd4 = _group_first_add

    def GroupMin(self, group: Operand, word: Operand, value: Operand) -> None:
        np.minimum.at(self.table.words[:, word.number], self.vector(group), self.vector(value))

    def GroupMax(self, group: Operand, word: Operand, value: Operand) -> None:
        np.maximum.at(self.table.words[:, word.number], self.vector(group), self.vector(value))

    def GroupAnd(self, group: Operand, word: Operand, value: Operand) -> None:
        np.bitwise_and.at(self.table.words[:, word.number], self.vector(group), self.vector(value))

    def GroupXor(self, group: Operand, word: Operand, value: Operand) -> None:
        np.bitwise_xor.at(self.table.words[:, word.number], self.vector(group), self.vector(value))

    def GroupArgMin(self, group: Operand, word: Operand, key: Operand, payload: Operand, keep: Operand) -> None:
        self._group_arg_min(group, word, [key], payload, keep)

    def GroupArgMinWide(
        self, group: Operand, word: Operand, high: Operand, low: Operand, payload: Operand, keep: Operand
    ) -> None:
        self._group_arg_min(group, word, [high, low], payload, keep)

    def _group_arg_min(
        self, group: Operand, word: Operand, keys: list[Operand], payload: Operand, keep: Operand
    ) -> None:
        rows = np.flatnonzero(self.vector(keep))
        groups = self.vector(group)[rows]
        order = np.lexsort((*(self.vector(key)[rows] for key in reversed(keys)), groups))  # ties keep the lowest row
        groups, first = np.unique(groups[order], return_index=True)
        rows = rows[order][first]
        found = np.stack([*(self.vector(key)[rows] for key in keys), self.row_numbers()[rows]], axis=1)
        words = self.table.words[:, word.number : word.number + len(keys) + 2]
        held = words[groups, :-1]
        # The first of the words that differ decides.
        differs = np.argmax(found != held, axis=1)
        at = np.arange(len(groups)), differs
        better = found[at] < held[at]
        words[groups[better]] = np.column_stack([found, self.vector(payload)[rows]])[better]

    def GroupKey(self, out: Operand, rows: Operand, word: Operand) -> None:
        self.registers[out.number] = self.source.keys[self.vector(rows), word.number]

    def GroupWord(self, out: Operand, rows: Operand, word: Operand) -> None:
        self.registers[out.number] = self.source.words[self.vector(rows), word.number]
