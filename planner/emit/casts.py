"""Lowering of CAST and TRY_CAST between numbers, dates and booleans; text has its own way (`texts`).

A cast that may not fit checks the value first: it fails, or is NULL where it only tries.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpudb.calendar import MICROSECONDS_A_DAY
from gpudb.errors import NotSupportedError
from gpudb.functions import lookup
from gpudb.instruction_set import function_opcode_name
from gpudb.planner.emit.builder import Value
from gpudb.planner.emit.ranges import INT64, integer_register, within_bounds
from gpudb.planner.emit.texts import TextEmitter
from gpudb.planner.expressions import Expression, Literal
from gpudb.program import SLOT, DaySlot, Operand, PlainSlot, ScaleSlot, Slot
from gpudb.types import RegisterType, SqlType

R = RegisterType
STORED_CODES = (R.U8, R.U16, R.U32)
LARGEST_REAL = 3.4028234663852886e38
LARGEST_DOUBLE = 1.7976931348623157e308


class CastEmitter(TextEmitter):
    """The casts of the expression emitter."""

    if TYPE_CHECKING:

        def within(self, value: Value, low: int, high: int, try_: bool, message: str, expression: Any) -> Value: ...

    def cast(self, value: Value, target: SqlType, try_: bool, expression: Expression) -> Value:
        """CAST between numbers, dates and booleans here; to and from text by the text emitter."""
        source = value.sql
        if source == target:
            return value
        if value.is_null or source.kind == "NULL":
            return self.literal(Literal(target, None))
        if target.is_coded or source.is_coded:
            return self.cast_text(value, target, try_, expression)
        if (source.kind, target.kind) == ("TIMESTAMP", "DATE") and self._is_narrow(value):
            return self._stored_day(value, target)
        value = self.decoded(value)
        if target.kind == "BOOLEAN":
            kind = value.type
            zero = self.builder.slot(PlainSlot(kind, 0))
            operand = self.builder.make("Ne", R.MASK, self.builder.vector(value.operand), zero)
            return Value(target, R.MASK, operand, value.valid, 0, 1)
        if target.is_float:
            return self._to_float(value, target, try_, expression)
        if source.is_float:
            return self._from_float(value, target, try_, expression)
        return self._exact_to_exact(value, target, try_, expression)

    @staticmethod
    def _is_narrow(value: Value) -> bool:
        """Is it a stored column of codes whose whole range doubles hold exactly?"""
        narrow = value.stored is not None and value.type in STORED_CODES and value.operand.kind != SLOT
        return narrow and value.high - value.low < 1 << 52

    def _stored_day(self, value: Value, target: SqlType) -> Value:
        """CAST(timestamp AS DATE) of a stored column, from the stored value itself."""
        assert value.stored is not None
        column = value.stored.column
        slots: list[Slot] = [
            ScaleSlot(R.F64, column),
            DaySlot(R.F64, column, "rest"),
            DaySlot(R.I32, column, "day"),
        ]
        operand = self.builder.make("StoredDay", R.I32, value.operand, *(self.builder.slot(s) for s in slots))
        low, high = value.low // MICROSECONDS_A_DAY, value.high // MICROSECONDS_A_DAY
        self.builder.known.add_leaf(operand, low, high, value.valid)
        return Value(target, R.I32, operand, value.valid, low, high)

    def _bounded(self, value: Value, target: SqlType, try_: bool, expression: Expression) -> Value:
        """Within the target's bounds, or the cast fails, or is NULL if it tries only."""
        low, high = target.bounds
        if value.low >= low and value.high <= high:
            return replace(value, sql=target)
        return replace(self.within(value, low, high, try_, out_of_range(target), expression), sql=target)

    def _exact_to_exact(self, value: Value, target: SqlType, try_: bool, expression: Expression) -> Value:
        source = value.sql
        if (source.kind, target.kind) == ("TIMESTAMP", "TIME"):
            return self._by_function("timestamp_as_time", value, target, try_, expression)
        shift = _scale_of(target) - _scale_of(source)
        if (
            source.is_temporal
            and target.is_temporal
            and not source.bounds[0] < value.low <= value.high < source.bounds[1]
        ):
            return self._with_infinities(value, target, try_, expression)
        if source.kind == "DATE" and target.kind == "TIMESTAMP":
            return self._multiplied(value, MICROSECONDS_A_DAY, target, try_, expression)
        if source.kind == "TIMESTAMP" and target.kind == "DATE":
            day = MICROSECONDS_A_DAY
            kind = R.I64
            micros = self.in_register(value, kind)
            divisor = self.builder.slot(PlainSlot(kind, day))
            quotient = self.builder.make("FloorDivide", kind, micros, divisor)
            low, high = value.low // day, value.high // day
            result = Value(target, kind, quotient, value.valid, low, high)
            return replace(result, operand=self.in_register(result, R.I32), type=R.I32)
        if source.is_temporal or target.is_temporal:
            raise NotSupportedError(f"cannot cast {source} to {target}", span=expression.span)
        if shift > 0:
            return self._multiplied(value, 10**shift, target, try_, expression)
        if shift < 0:
            divisor = 10**-shift
            kind = R.I128 if value.type is R.I128 or divisor > INT64[1] else R.I64
            operand = self.builder.vector(self.in_register(value, kind))
            operand = self.builder.make("DivideRounded", kind, operand, self.builder.slot(PlainSlot(kind, divisor)))
            low, high = _rounded_quotient(value.low, divisor), _rounded_quotient(value.high, divisor)
            value = Value(target, kind, operand, value.valid, low, high)
            return self._narrowed(self._bounded(value, target, try_, expression))
        return self._narrowed(self._bounded(value, target, try_, expression))

    def _with_infinities(self, value: Value, target: SqlType, try_: bool, expression: Expression) -> Value:
        """DATE to TIMESTAMP or back where an infinity may occur, which stays one."""
        name = "date_as_timestamp" if target.kind == "TIMESTAMP" else "timestamp_as_date"
        return self._by_function(name, value, target, try_, expression)

    def _by_function(self, name: str, value: Value, target: SqlType, try_: bool, expression: Expression) -> Value:
        """A cast that is a function of the registry; outside of its domain it fails, or is NULL if it only tries."""
        function = lookup(name)
        assert function is not None
        overload = function.overloads[0]
        operand = self.in_register(value, value.sql.register)
        valid = value.valid
        if overload.domain is not None:
            inside = self.builder.make(function_opcode_name(overload, "domain"), R.MASK, operand)
            if try_:
                valid = self.builder.both(valid, inside)
            else:
                outside = self.builder.make("Not", R.MASK, inside)
                self.fail_where(outside, valid, "OutOfRangeError", overload.domain[2], expression)
        result = self.builder.make(function_opcode_name(overload, "value"), target.register, operand)
        return Value(target, target.register, result, valid, *target.bounds)

    def _narrowed(self, value: Value) -> Value:
        kind = integer_register(value.low, value.high)
        if kind is value.type or value.type is R.MASK and kind is R.I32 and value.sql.kind == "BOOLEAN":
            return value
        return replace(value, operand=self.in_register(value, kind), type=kind)

    def _multiplied(self, value: Value, factor: int, target: SqlType, try_: bool, expression: Expression) -> Value:
        low, high = target.bounds
        smallest, largest = -(-low // factor), high // factor
        source_low, source_high = within_bounds(value.low, value.high, smallest, largest)
        before = (value.low, value.high)
        if value.low < smallest or value.high > largest:  # check before multiplying, so that nothing wraps
            value = self.within(value, smallest, largest, try_, out_of_range(target), expression)
        low, high = source_low * factor, source_high * factor
        kind = integer_register(min(low, before[0]), max(high, before[1]))
        if value.type is R.I128:
            kind = R.I128
        operand = self.builder.make(
            "Multiply", kind, self.in_register(value, kind), self.builder.slot(PlainSlot(kind, factor))
        )
        return self._narrowed(Value(target, kind, operand, value.valid, low, high))

    def _to_float(self, value: Value, target: SqlType, try_: bool, expression: Expression) -> Value:
        kind = target.register
        low, high = value.low, value.high
        scale = _scale_of(value.sql)
        if value.sql.is_temporal:
            raise NotSupportedError(f"cannot cast {value.sql} to {target}", span=expression.span)
        if scale:
            operand = self.converted(self.as_double(value), kind)
            low, high = low / 10**scale, high / 10**scale
        else:
            operand = self.in_register(value, kind)
        if low is not None and value.sql.is_exact:
            low, high = _float_or_none(low), _float_or_none(high)
        if kind is R.F32 and value.type is R.F64 and (low is None or high is None or max(-low, high) > LARGEST_REAL):
            magnitude = self.builder.make("Absolute", R.F64, self.builder.vector(value.operand))
            finite = self.builder.make("Le", R.MASK, magnitude, self.builder.slot(PlainSlot(R.F64, LARGEST_REAL)))
            infinite = self.builder.make("Gt", R.MASK, magnitude, self.builder.slot(PlainSlot(R.F64, LARGEST_DOUBLE)))
            inside = self.builder.make("Or", R.MASK, finite, infinite)
            if try_:
                return Value(target, kind, operand, self.builder.both(value.valid, inside))
            outside = self.builder.make("Not", R.MASK, inside)
            self.fail_where(outside, value.valid, "OutOfRangeError", out_of_range(target), expression)
            return Value(target, kind, operand, value.valid)
        if kind is R.F32 and low is not None and high is not None:
            margin = 1.0000001
            low = low * margin if low < 0 else low / margin
            high = high * margin if high > 0 else high / margin
        return Value(target, kind, operand, value.valid, low, high)

    def as_double(self, value: Value) -> Operand:
        """An exact value as the nearest double, with the point where its type has it."""
        scale = _scale_of(value.sql)
        if not scale:
            return self.in_register(value, R.F64)
        if max(-value.low, value.high) <= 1 << 53 and scale <= 22:  # of two exact doubles the quotient is rounded once
            operand = self.builder.vector(self.in_register(value, R.F64))
            return self.builder.make("Divide", R.F64, operand, self.builder.slot(PlainSlot(R.F64, 10.0**scale)))
        operand = self.builder.vector(self.in_register(value, R.I128))
        return self.builder.make("Ratio", R.F64, operand, self.builder.slot(PlainSlot(R.I128, 10**scale)))

    def _from_float(self, value: Value, target: SqlType, try_: bool, expression: Expression) -> Value:
        if target.is_temporal:
            raise NotSupportedError(f"cannot cast {value.sql} to {target}", span=expression.span)
        operand = self.builder.vector(self.in_register(value, R.F64))
        scale = _scale_of(target)
        if scale:
            factor = self.builder.slot(PlainSlot(R.F64, 10.0**scale))
            operand = self.builder.make("Multiply", R.F64, operand, factor)
            operand = self.builder.make("RoundAway", R.F64, operand)
        low, high = target.bounds
        lowest, highest = _float_limits(low, high)
        rounded = self.builder.make("RoundEven", R.F64, operand)
        ends = [self.builder.slot(PlainSlot(R.F64, lowest)), self.builder.slot(PlainSlot(R.F64, highest))]
        valid = value.valid
        if try_:
            valid = self.builder.both(valid, self.builder.make("InRange", R.MASK, rounded, *ends))
        else:
            bad = self.builder.make("NotInRange", R.MASK, rounded, *ends)
            self.fail_where(bad, valid, "OutOfRangeError", out_of_range(target), expression)
        kind = integer_register(low, high)
        return Value(target, kind, self.builder.make("RoundToInteger", kind, rounded), valid, low, high)


def out_of_range(target: SqlType) -> str:
    """What a failing cast says."""
    return f"value out of range in a cast to {target}"


def _scale_of(sql: SqlType) -> int:
    return sql.scale if sql.kind == "DECIMAL" else 0


def _rounded_quotient(x: int, divisor: int) -> int:
    quotient = (abs(x) * 2 + divisor) // (2 * divisor)
    return quotient if x >= 0 else -quotient


def _float_or_none(x: float | int) -> float | None:
    try:
        return float(x)
    except OverflowError:
        return None


def _float_limits(low: int, high: int) -> tuple[float, float]:
    """Greatest range of doubles within the integers low .. high."""
    lowest, highest = float(low), float(high)
    if int(lowest) < low:
        lowest = math.nextafter(lowest, math.inf)
    if int(highest) > high:
        highest = math.nextafter(highest, -math.inf)
    if low == -high and highest == float(
        high + 1
    ):  # a DECIMAL's: DuckDB refuses the double nearest to its power of ten
        highest = math.nextafter(highest, -math.inf)
        lowest = -highest
    return lowest, highest
