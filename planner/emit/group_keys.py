"""Lowering of group keys: how rows find their group, and how a group's key becomes values again.

Where the keys' ranges multiply to a small number, every combination has one: it is the group's own number in a dense table,
or leads to the group's entry in an indexed table.  Else groups are found in a hash table of keys packed into 64-bit words.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from gpudb.planner.emit.builder import Value
from gpudb.planner.emit.expressions import ExpressionEmitter
from gpudb.planner.emit.ranges import integer_register
from gpudb.planner.expressions import Call, Column, Expression, Literal
from gpudb.program import GroupTableSlot, Operand, PlainSlot
from gpudb.record import record
from gpudb.types import RegisterType

R = RegisterType
Array = Any
DERIVING = ("add", "subtract", "multiply", "negate")
DENSE_GROUPS = 1 << 12  # largest dense table: with three words a group 96 KB, four copies fit the second cache
# Largest index of an indexed table, 32 MB.  Pairs of airports (14,089 that occur of 2^18, 2 M rows): GroupFind 21 ns a row,
# GroupIndex 5.
INDEXED_GROUPS = 1 << 23


@record(frozen=False)
class Key:
    """A group key: codes 0 .. size - 1, and `size` for NULL where it can be NULL.

    A code is the value less `low`, or its place among `values`, all that can occur in rising order.
    """

    value: Value
    low: int
    size: int
    values: Array | None = None

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


def derived_keys(keys: Iterable[Expression], emitter: ExpressionEmitter) -> list[Expression]:
    """Keys that are sums and products of integer columns among the keys and of constants, each by itself.

    Rows of one group have the same, so that it can be made of the group's other keys: four keys of 32 bits over 5 M rows took
    the processor 1.9 times as long as the one that three of them followed from.
    """
    columns = {key for key in keys if isinstance(key, Column) and key.type.is_integer}
    found: list[Expression] = []
    for key in keys:
        parts = list(key.walk())
        if not isinstance(key, Call) or not any(part in columns for part in parts):
            continue
        if all(
            part in columns
            or isinstance(part, Literal)
            or (isinstance(part, Call) and part.name in DERIVING and part.type.is_integer)
            for part in parts
        ):
            emitter.value(key)  # for its checks: a row that fails makes the statement fail
            found.append(key)
    return found


def make_key(emitter: ExpressionEmitter, value: Value) -> Key:
    """How a value is numbered as a group key."""
    if value.sql.is_coded:
        return Key(value, 0, value.high + 1)
    if value.sql.is_float:
        return Key(value, 0, 1 << 64)
    low, high = value.low, value.high
    if value.stored is not None and not value.stored.encoded and 0 <= low <= high // 2:
        low = 0  # the stored value is the code: nothing to subtract
    known = emitter.builder.known.of(value.operand) if value.stored is None else None
    if known is not None and high - low >= DENSE_GROUPS and high - low >= len(known[1]):
        values = np.unique(known[1])
        return Key(value, 0, len(values), values)
    return Key(value, low, high - low + 1)


@record(frozen=False)
class GroupKeys:
    """The keys of one aggregation, and their layout in a number or in key words.

    kind      of the group table: dense, indexed or hash
    capacity  key numbers; 0 of a hash table
    places    per key (word, bit offset, bits) in a hash key, or (None, stride, codes) in a number
    """

    keys: list[Key]
    kind: str
    capacity: int
    key_words: int
    places: list[tuple[int | None, int, int]]
    null_places: list[tuple[int, int] | None]

    @staticmethod
    def plan(keys: list[Key], row_bound: int, numbered: bool = True) -> GroupKeys:
        """Numbers where the product of the ranges is small, for so few rows too; else, or if not `numbered`, packed words."""
        product = math.prod(key.codes for key in keys)
        if numbered and (product <= DENSE_GROUPS or product <= min(INDEXED_GROUPS, 16 * row_bound)):
            dense = product <= DENSE_GROUPS
            places: list[tuple[int | None, int, int]] = []
            stride = 1
            for key in keys:
                places.append((None, stride, key.codes))
                stride *= key.codes
            return GroupKeys(
                keys, "dense" if dense else "indexed", product, 0 if dense else 1, places, [None] * len(keys)
            )
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
        return GroupKeys(keys, "hash", 0, words, places, nulls)

    def locate(self, emitter: ExpressionEmitter, values: list[Value], alive: Operand | None) -> Operand:
        """Register with each row's group number; rows that do not count get the trash group's."""
        builder = emitter.builder
        if self.kind == "hash":
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
        if alive is not None:
            number = builder.make("Select", R.U32, alive, number, builder.slot(PlainSlot(R.U32, self.capacity)))
        if self.kind == "dense":
            return number
        return builder.block_once("GroupIndex", (R.U32, R.U32), R.U32, number)

    def _code32(self, emitter: ExpressionEmitter, key: Key, value: Value) -> Operand:
        builder = emitter.builder
        if key.values is not None:
            code = self._place(emitter, key, value)
        elif value.sql.is_coded or (value.stored is not None and not value.stored.encoded and key.low == 0):
            code = value.operand
        else:
            code = self._number(emitter, key, emitter.decoded(value))
        if not key.nullable:
            return code
        null = builder.slot(PlainSlot(R.U32, key.size))
        if value.valid is None:
            return code
        return builder.make("Select", R.U32, value.valid, builder.vector(emitter.converted(code, R.U32)), null)

    @staticmethod
    def _number(emitter: ExpressionEmitter, key: Key, value: Value) -> Operand:
        """A value less the key's lowest; where it would be outside the table, for a row that does not count, any in it."""
        builder = emitter.builder
        known = builder.known.of(value.operand)
        if known is not None:
            codes = known[1].astype(np.int64) - key.low
            if not np.array_equal(codes, np.arange(len(codes))):
                inside = np.where((codes >= 0) & (codes < key.size), codes, 0)
                return builder.known.looked_up(value.operand, inside, narrowest_code(key.size))
        if key.low == 0:
            code = emitter.converted(value.operand, R.U32)
        else:
            kind = integer_register(min(value.low, key.low), max(value.high, 0, key.size))
            lowest = builder.slot(PlainSlot(kind, key.low))
            shifted = builder.make("Subtract", kind, emitter.in_register(value, kind), lowest)
            code = emitter.converted(shifted, R.U32)
        return builder.bounded_index(code, key.size)

    @staticmethod
    def _place(emitter: ExpressionEmitter, key: Key, value: Value) -> Operand:
        """The place of a value among the key's values."""
        known = emitter.builder.known
        found = known.of(value.operand)
        assert key.values is not None and found is not None
        return known.looked_up(value.operand, np.searchsorted(key.values, found[1]), narrowest_code(key.size))

    def _find(self, emitter: ExpressionEmitter, values: list[Value], alive: Operand | None) -> Operand:
        builder = emitter.builder
        keys = self.words(emitter, values)
        mask = alive if alive is not None else builder.vector(builder.slot(PlainSlot(R.MASK, 1)))
        result = builder.register(R.U32)
        builder.block("GroupFind", (R.U32, R.I64), result, keys, mask, self.key_words)
        return result

    def probe(self, emitter: ExpressionEmitter, values: list[Value], alive: Operand | None, step: int) -> Operand:
        """Register with 1 + the number of each row's group in the hash table that a step left, 0 where there is none."""
        builder = emitter.builder
        keys = self.words(emitter, values)
        mask = alive if alive is not None else builder.vector(builder.slot(PlainSlot(R.MASK, 1)))
        table = builder.slot(GroupTableSlot(step))
        result = builder.register(R.U32)
        builder.block("Probe", (R.U32, R.I64), result, keys, mask, self.key_words, table)
        return result

    def words(self, emitter: ExpressionEmitter, values: list[Value]) -> Operand:
        """The first of the consecutive registers that hold the words of each row's key."""
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
            code = value.operand if key.values is None else self._place(emitter, key, value)
            code = builder.vector(emitter.converted(code, R.I64))
            if key.low:
                code = builder.make("Subtract", R.I64, code, builder.slot(PlainSlot(R.I64, key.low)))
            if key.nullable and value.valid is not None:
                code = builder.make("Select", R.I64, value.valid, code, builder.slot(PlainSlot(R.I64, key.size)))
            put(word, offset, code)
        first = builder.register(R.I64, self.key_words) if self.key_words > 1 else None
        if first is None:
            assert words[0] is not None
            return words[0]
        for k, operand in enumerate(words):  # the kernel wants the words in consecutive registers
            assert operand is not None
            target = Operand(first.kind, first.number + k, R.I64)
            builder.copy_into(target, operand)
        return first

    def value(self, emitter: ExpressionEmitter, rows: Operand, number: int) -> Value:
        """Key `number` of the groups named by a register, decoded."""
        builder = emitter.builder
        key = self.keys[number]
        word, offset, bits = self.places[number]
        valid: Operand | None = None
        source = key.value
        if word is None:  # group number / stride % codes
            kind = R.I64
            if self.kind == "dense":
                code = emitter.converted(rows, kind)
            else:
                code = builder.block_once("GroupKey", (kind, R.U32), kind, rows, 0)
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
        if integer_register(key.low, key.low + key.size) is R.I128 and not source.sql.is_float:
            code = builder.make("Convert", R.I128, code)
            code = builder.make("Add", R.I128, code, builder.slot(PlainSlot(R.I128, key.low)))
            return Value(source.sql, R.I128, code, valid, source.low, source.high)
        if key.low:
            code = builder.make("Add", R.I64, code, builder.slot(PlainSlot(R.I64, key.low)))
        if key.values is not None:
            place = builder.make("Convert", R.U32, code)
            builder.known.add_leaf(place, 0, key.size - 1, None)
            code = builder.known.looked_up(place, key.values, R.I64)
        return word_value(emitter, code, source, valid)


def narrowest_code(size: int) -> R:
    """The register for codes below `size`."""
    return R.U8 if size <= 1 << 8 else R.U16 if size <= 1 << 16 else R.U32


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
    if sql.is_coded:
        kind = R.U32
    elif sql.is_float:
        kind = sql.register
    elif sql.kind == "BOOLEAN":
        kind = R.MASK
    else:
        kind = integer_register(like.low, like.high)
    operand = word if kind is R.I64 else builder.make("FromOrderWord", kind, word)
    return Value(sql, kind, operand, valid, like.low, like.high, like.dictionary)
