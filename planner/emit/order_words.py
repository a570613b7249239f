"""Order words: 64-bit integers that sort as the values of an ORDER BY term do."""

from __future__ import annotations

from gpudb.planner.emit.aggregates import GREATEST_WORD
from gpudb.planner.emit.builder import Value
from gpudb.planner.emit.expressions import ExpressionEmitter
from gpudb.planner.logical import SortKey
from gpudb.program import Operand, PlainSlot
from gpudb.types import BIGINT, HUGEINT, RegisterType

R = RegisterType


def comparable_value(emitter: ExpressionEmitter, value: Value) -> Value:
    """A value that is equal and ordered as it is: an INTERVAL as its length, others as they are."""
    if value.sql.kind != "INTERVAL":
        return value
    bits = emitter.builder.vector(emitter.in_register(value, R.I128))
    length = emitter.builder.make("interval_order:SPAN", R.I128, bits)
    return Value(HUGEINT, R.I128, length, value.valid, *HUGEINT.bounds, is_null=value.is_null)


def sort_words(emitter: ExpressionEmitter, value: Value, descending: bool, nulls_first: bool) -> list[Value]:
    """Order words of an ORDER BY term, most significant first; NULL has a word of its own where it can occur."""
    builder = emitter.builder

    def word(operand: Operand) -> Value:
        return Value(BIGINT, R.I64, operand, None)

    words: list[Value] = []
    value = comparable_value(emitter, value)
    if value.sql.is_coded:
        parts = [builder.make("Convert", R.I64, builder.vector(emitter.ranks(value)))]
    else:
        value = emitter.decoded(value)
        operand = builder.vector(value.operand)
        if value.type is R.I128:
            parts = [builder.make("HighWord", R.I64, operand), builder.make("LowWord", R.I64, operand)]
        elif value.type is R.I64:
            parts = [operand]
        else:
            parts = [builder.make("OrderWord", R.I64, operand)]
    if descending:
        parts = [builder.make("BitNot", R.I64, part) for part in parts]
    if value.valid is not None:
        flag = value.valid if nulls_first else builder.make("Not", R.MASK, value.valid)
        words.append(word(builder.make("OrderWord", R.I64, flag)))
        parts = [builder.make("Keep", R.I64, part, value.valid) for part in parts]
    return words + [word(part) for part in parts]


def top_word(emitter: ExpressionEmitter, key: SortKey) -> Operand:
    """One order word that never rises where the order falls: equal words tell nothing."""
    builder = emitter.builder
    value = emitter.value(key.expression)
    words = sort_words(emitter, value, key.descending, key.nulls_first)
    if value.valid is None:
        return words[0].operand
    # Half the precision makes room for NULL at an end.
    half = builder.make("ShiftRight", R.I64, words[1].operand, builder.slot(PlainSlot(R.I64, 1)))
    end = -(1 << 63) if key.nulls_first else GREATEST_WORD
    return builder.make("Select", R.I64, value.valid, half, builder.slot(PlainSlot(R.I64, end)))
