"""Tuples of a text function's arguments as keys of a hash table.

They differ from group keys in one thing: -0.0 and 0.0 are one group, but print differently.  So a float brings a second
key, which says whether it is -0.0.
"""

from __future__ import annotations

from dataclasses import replace

from gpudb.planner.emit.builder import Value
from gpudb.planner.emit.expressions import ExpressionEmitter
from gpudb.planner.emit.group_keys import GroupKeys, make_key
from gpudb.program import Operand, PlainSlot
from gpudb.record import record
from gpudb.types import BOOLEAN, RegisterType

R = RegisterType


@record(frozen=False)
class TupleKeys:
    """How tuples of `count` values that are not NULL lie in the keys of a hash table."""

    keys: GroupKeys
    count: int

    @staticmethod
    def of(emitter: ExpressionEmitter, values: list[Value]) -> TupleKeys:
        """The layout for such values."""
        keys = [make_key(emitter, value) for value in _keyed(emitter, values)]
        return TupleKeys(GroupKeys.plan(keys, emitter.builder.row_bound, numbered=False), len(values))

    @property
    def key_words(self) -> int:
        """64-bit words of a key."""
        return self.keys.key_words

    def locate(self, emitter: ExpressionEmitter, values: list[Value], alive: Operand | None) -> Operand:
        """Register with the number of each row's tuple in the table that the pipeline builds."""
        return self.keys.locate(emitter, _keyed(emitter, values), alive)

    def probe(self, emitter: ExpressionEmitter, values: list[Value], alive: Operand | None, step: int) -> Operand:
        """Register with 1 + the number of each row's tuple in the table that a step left, 0 where it is not there."""
        return self.keys.probe(emitter, _keyed(emitter, values), alive, step)

    def values(self, emitter: ExpressionEmitter, rows: Operand) -> list[Value]:
        """The values of the tuples named by a register."""
        found = [self.keys.value(emitter, rows, k) for k in range(len(self.keys.keys))]
        signs, values = iter(found[self.count :]), []
        for value in found[: self.count]:
            if value.sql.is_float:
                zero = emitter.builder.vector(value.operand)
                negated = emitter.builder.make("Negate", value.type, zero)
                sign = emitter.builder.vector(next(signs).operand)
                value = replace(value, operand=emitter.builder.make("Select", value.type, sign, negated, zero))
            values.append(value)
        return values


def _keyed(emitter: ExpressionEmitter, values: list[Value]) -> list[Value]:
    """The values, and behind them for each float whether it is -0.0: zero, and one divided by it is negative."""
    make, slot = emitter.builder.make, emitter.builder.slot
    signs = []
    for value in values:
        if value.sql.is_float:
            x = emitter.builder.vector(emitter.in_register(value, R.F64))
            one, zero = emitter.builder.vector(slot(PlainSlot(R.F64, 1.0))), slot(PlainSlot(R.F64, 0.0))
            negative = make("Lt", R.MASK, make("Divide", R.F64, one, x), zero)
            sign = make("And", R.MASK, make("Eq", R.MASK, x, zero), negative)
            signs.append(Value(BOOLEAN, R.MASK, sign, None, 0, 1))
    return [*values, *signs]
