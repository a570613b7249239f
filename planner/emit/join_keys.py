"""Lowering of join keys: the word or number of a row's key, alike on both sides.

The build side lays keys out, as its ranges are; a probe row whose key lies outside them matches nothing.  Texts are compared
as codes of one dictionary, whose first entries are the build side's, so that those keep their codes.
"""

from __future__ import annotations

from dataclasses import replace

from gpudb.planner.emit.builder import Value
from gpudb.planner.emit.expressions import ExpressionEmitter
from gpudb.planner.emit.group_keys import GroupKeys, Key
from gpudb.planner.emit.ranges import register_range
from gpudb.planner.emit.texts import common_dictionary
from gpudb.program import Operand, PlainSlot
from gpudb.record import record
from gpudb.types import RegisterType

R = RegisterType


def build_key(emitter: ExpressionEmitter, value: Value, null_equal: bool) -> Value:
    """A key of the build side as keys hold it: decoded, and never NULL unless NULL equals NULL."""
    value = emitter.decoded(value) if not value.sql.is_coded else value
    if value.sql.kind == "BOOLEAN":  # both, whatever is there: a probe's truth value is not tested for lying inside
        value = replace(value, low=0, high=1)
    elif value.is_null or value.low is None and not value.sql.is_float:
        value = replace(value, low=0, high=0)
    return value if null_equal else replace(value, valid=None)


FEW_NUMBERS = 1 << 20  # however few the keys: 4 bytes each are set in 0.3 ms, and found four times as fast as words are


@record(frozen=False)
class JoinKeys:
    """The keys of one join.

    layout   numbers, where the ranges of the build side multiply to a small one; else 64-bit words
    """

    layout: GroupKeys

    @staticmethod
    def plan(values: list[Value], row_bound: int) -> JoinKeys:
        """The layout for such keys (`build_key`) of so many build rows."""
        keys = []
        for value in values:
            if value.sql.is_float:
                keys.append(Key(value, 0, 1 << 64))
            elif value.sql.is_coded:
                keys.append(Key(value, 0, value.high + 1))
            else:
                keys.append(Key(value, value.low, value.high - value.low + 1))
        return JoinKeys(GroupKeys.plan(keys, max(row_bound, FEW_NUMBERS // 16)))

    @property
    def numbers(self) -> int:
        """How many numbers there are; 0 where keys are words."""
        return 0 if self.layout.kind == "hash" else self.layout.capacity

    @property
    def key_words(self) -> int:
        """Registers that hold a key of the build side."""
        return 1 if self.numbers else self.layout.key_words

    # ------------------------------------------------------------------------------------------- the build side

    def words(self, emitter: ExpressionEmitter, values: list[Value]) -> list[Operand]:
        """The key of each build row: its number, or its words."""
        if not self.numbers:
            first = self.layout.words(emitter, values)
            return [Operand(first.kind, first.number + k, R.I64) for k in range(self.key_words)]
        builder = emitter.builder
        number = builder.vector(builder.slot(PlainSlot(R.I64, 0)))
        for key, value, (_, stride, _) in zip(self.layout.keys, values, self.layout.places, strict=True):
            code = builder.vector(emitter.converted(value.operand, R.I64))
            if key.low:
                code = builder.make("Subtract", R.I64, code, builder.slot(PlainSlot(R.I64, key.low)))
            if value.valid is not None:
                code = builder.make("Select", R.I64, value.valid, code, builder.slot(PlainSlot(R.I64, key.size)))
            number = builder.make("MultiplyAdd", R.I64, number, code, builder.slot(PlainSlot(R.I64, stride)))
        return [number]

    # ------------------------------------------------------------------------------------------- the probe side

    def entries(
        self, emitter: ExpressionEmitter, values: list[Value], null_equal: list[bool], alive: Operand | None, step: int
    ) -> Operand:
        """Register with 1 + entry of each probe row's key in the index that a step left; 0 where none can match.

        An entry is a number whether there are rows of it or not, or a row that stands for its key.
        """
        builder = emitter.builder
        aligned: list[Value] = []
        for key, value, null in zip(self.layout.keys, values, null_equal, strict=True):
            value, inside = self._aligned(emitter, key, value)
            if not null or not key.nullable:
                inside = builder.both(inside, value.valid)
                value = replace(value, valid=None)
            elif inside is not None and value.valid is not None:  # NULL lies inside, whatever is stored under it
                inside = builder.make("Or", R.MASK, inside, builder.make("Not", R.MASK, value.valid))
            alive = builder.both(alive, inside)
            aligned.append(value)
        if not self.numbers:
            return self.layout.probe(emitter, aligned, alive, step)
        number = builder.vector(builder.slot(PlainSlot(R.U32, 1)))
        for key, value, (_, stride, _) in zip(self.layout.keys, aligned, self.layout.places, strict=True):
            code = builder.vector(self._code(emitter, key, value))
            number = builder.make("MultiplyAdd", R.U32, number, code, builder.slot(PlainSlot(R.U32, stride)))
        return number if alive is None else builder.make("Keep", R.U32, number, alive)

    @staticmethod
    def _aligned(emitter: ExpressionEmitter, key: Key, value: Value) -> tuple[Value, Operand | None]:
        """(the value in the build side's form, mask of the rows whose value that can hold; None: of all)."""
        builder, built = emitter.builder, key.value
        if value.is_null:
            zero = builder.vector(builder.slot(PlainSlot(built.type, 0)))
            return replace(value, operand=zero, type=built.type, low=0, high=0, stored=None), None
        if value.sql.is_coded:
            target, high = common_dictionary([built, value])
            code = builder.vector(emitter.in_dictionary(value, target))
            moved = replace(value, operand=code, type=R.U32, low=0, high=high, dictionary=target, stored=None)
            ends = (builder.slot(PlainSlot(R.U32, 0)), builder.slot(PlainSlot(R.U32, key.size - 1)))
            return moved, builder.make("InRange", R.MASK, code, *ends) if high >= key.size else None
        value = emitter.decoded(value)
        operand, inside = value.operand, None
        if not value.sql.is_float and value.type is not R.MASK:
            low, high = key.low, key.low + key.size - 1
            if not low <= value.low <= value.high <= high or builder.messages:
                least, greatest = register_range(value.type)
                ends_of = (max(low, least), min(high, greatest)) if low <= greatest and high >= least else (1, 0)
                slots = (builder.slot(PlainSlot(value.type, end)) for end in ends_of)
                operand = builder.vector(operand)
                inside = builder.make("InRange", R.MASK, operand, *slots)
                if value.type is R.I128:  # what does not fit must not be converted
                    operand = builder.make("Keep", R.I128, operand, inside)
        value = replace(value, operand=operand, low=built.low, high=built.high)
        return replace(value, operand=emitter.in_register(value, built.type), type=built.type), inside

    @staticmethod
    def _code(emitter: ExpressionEmitter, key: Key, value: Value) -> Operand:
        """The value's code, u32: of a key with a number, whose range is small."""
        builder = emitter.builder
        code = value.operand
        if key.low:
            kind = R.I64 if value.type in (R.I64, R.I128) else R.I32
            low = builder.slot(PlainSlot(kind, key.low))
            code = builder.make("Subtract", kind, builder.vector(emitter.converted(code, kind)), low)
        code = emitter.converted(code, R.U32) if code.type is not R.U32 else code
        if value.valid is not None:
            null = builder.slot(PlainSlot(R.U32, key.size))
            code = builder.make("Select", R.U32, value.valid, builder.vector(code), null)
        return code
