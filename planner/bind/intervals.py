"""Intervals: beside dates, with each other and with numbers; and differences of timestamps.

A constant beside a date is an argument of its opcode.  The difference of two timestamps of which a part is taken at once, or
that is compared with a constant, is a number of microseconds.  Any other INTERVAL is 128 bits, and arithmetic of its parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpudb.calendar import MICROSECONDS_A_DAY
from gpudb.functions import lookup
from gpudb.functions.interval_values import UNITS
from gpudb.planner.bind.casts import cast
from gpudb.planner.bind.spelled import spelled
from gpudb.planner.constants import interval_microseconds
from gpudb.planner.expressions import Call, Expression, Literal, Span
from gpudb.time_zones import UTC
from gpudb.types import BIGINT, DOUBLE, HUGEINT, INTERVAL, TIMESTAMP, TIMESTAMPTZ, VARCHAR, Interval, SqlType

if TYPE_CHECKING:
    from gpudb.planner.bind.context import Context
    from gpudb.planner.bind.expressions import ExpressionBinder

# Parts of x - y as SQL over its microseconds; hours and smaller are what is left of whole days.
_PARTS = {
    "epoch": "(epoch_us(x) - epoch_us(y)) / 1e6",
    "epoch_ms": "(epoch_us(x) - epoch_us(y)) // 1000",
    "epoch_us": "epoch_us(x) - epoch_us(y)",
    "day": "(epoch_us(x) - epoch_us(y)) // 86400000000",
    "hour": "(epoch_us(x) - epoch_us(y)) % 86400000000 // 3600000000",
    "minute": "(epoch_us(x) - epoch_us(y)) % 3600000000 // 60000000",
    "second": "(epoch_us(x) - epoch_us(y)) % 60000000 // 1000000",
    "millisecond": "(epoch_us(x) - epoch_us(y)) % 60000000 // 1000",
    "microsecond": "(epoch_us(x) - epoch_us(y)) % 60000000",
}


def shifted(context: Context, name: str, moment: Expression, interval: Expression, span: Span | None) -> Expression:
    """DATE or TIMESTAMP + or - INTERVAL: the registry's add_interval or subtract_interval of a TIMESTAMP."""
    if moment.type == TIMESTAMPTZ:
        return _shifted_moment(context, name, moment, interval, span)
    function = lookup(f"{name}_interval")
    assert function is not None, "the registry has add_interval and subtract_interval"
    kind = "INTERVAL" if isinstance(interval, Literal) else "SPAN"
    overload = next(found for found in function.overloads if found.arguments == ("TIMESTAMP", kind))
    arguments = (cast(context, moment, TIMESTAMP), interval)
    return Call(overload.result, function.name, arguments, overload, span=span)


_LATER = """(CASE WHEN interval_months(i) = 0 AND interval_days(i) = 0 THEN {}
    ELSE timezone(zone, timezone(zone, {}) {s} interval_of(interval_months(i), interval_days(i), 0)) END)"""
_AFTER = "timezone('UTC', timezone('UTC', {}) {s} interval_of(0, 0, interval_microseconds(i)))"


def _moved(sign: str, extreme: str, order: str) -> str:
    """SQL of x + or - i in a zone; see `_shifted_moment`."""
    later, after = _LATER.replace("{s}", sign), _AFTER.replace("{s}", sign)
    backwards = later.replace("{}", after.format("x"))
    forwards = after.format(later.replace("{}", "x"))
    parts = "interval_months(i), interval_days(i), interval_microseconds(i)"
    return f"CASE WHEN {extreme}({parts}) {order} 0 THEN {backwards} ELSE {forwards} END"


_MOVED = _moved("+", "least", "<")
_MOVED_BACK = _moved("-", "greatest", ">")


def _shifted_moment(
    context: Context, name: str, moment: Expression, interval: Expression, span: Span | None
) -> Expression:
    """Months and days go by the session's clocks, microseconds by UTC: those come last, but first where anything goes back."""
    zone = str(context.settings.get("timezone", UTC))
    if not isinstance(interval, Literal):
        sql = _MOVED if name == "add" else _MOVED_BACK
        return spelled(context, sql, span, x=moment, i=interval, zone=Literal(VARCHAR, zone))
    context.consume(interval)
    value = interval.value
    if value is None:
        return Literal(TIMESTAMPTZ, None, span=span)
    parts = [("here", Interval(value.months, value.days, 0)), ("utc", Interval(0, 0, value.microseconds))]
    back = [-part for part in (value.months, value.days, value.microseconds)]
    if min(back if name == "subtract" else [-part for part in back]) < 0:
        parts.reverse()
    for where, part in parts:
        if part == Interval():
            continue
        place = Literal(VARCHAR, UTC if where == "utc" else zone)
        local = _at(place, moment, span)
        moment = _at(place, shifted(context, name, local, Literal(INTERVAL, part, span=interval.span), span), span)
    return moment


def _at(place: Literal, moment: Expression, span: Span | None) -> Expression:
    """A moment as a zone's clocks show it, or what they show as the moment."""
    function = lookup("at_time_zone")
    assert function is not None, "the registry has at_time_zone"
    overload = next(found for found in function.overloads if found.arguments[1] == moment.type.kind)
    return Call(overload.result, function.name, (place, moment), overload, span=span)


def is_difference(expression: Expression) -> bool:
    """Whether it is TIMESTAMP - TIMESTAMP."""
    return isinstance(expression, Call) and expression.type == INTERVAL and expression.name == "subtract"


def part_of_difference(
    binder: ExpressionBinder, name: str, arguments: list[Expression], span: Span | None
) -> Expression | None:
    """hour(x - y), date_part_epoch(x - y) and kin; None for other calls."""
    if len(arguments) != 1 or arguments[0].type != INTERVAL:
        return None
    sql = _PARTS.get(name.removeprefix("date_part_"))
    difference = arguments[0]
    if sql is None or not isinstance(difference, Call) or not is_difference(difference):
        return None
    from gpudb.planner.bind.functions import expand

    return expand(binder, (("x", "y"), sql), list(difference.arguments), span)


def in_type(context: Context, operands: list[Expression], type_: SqlType) -> list[Expression]:
    """Operands in the type in which they are compared: INTERVALs as what they compare by, all in one type of integers."""
    found = [cast(context, operand, type_) for operand in operands]
    return [cast(context, comparable(context, one), HUGEINT) for one in found] if type_ == INTERVAL else found


def comparable(context: Context, expression: Expression) -> Expression:
    """An INTERVAL as the BIGINT microseconds it compares by: a month counts 30 days, a day 24 hours."""
    if isinstance(expression, Literal):
        value = None if expression.value is None else interval_microseconds(expression.value)
        steps = (*expression.steps, ("microseconds of", INTERVAL, BIGINT)) if expression.slot is not None else ()
        return Literal(BIGINT, value, expression.slot, steps, span=expression.span)
    if isinstance(expression, Call) and is_difference(expression):
        function = lookup("epoch_us")
        assert function is not None, "the registry has epoch_us"
        overload = next(found for found in function.overloads if found.arguments == ("TIMESTAMP",))
        numbers = [
            Call(BIGINT, function.name, (moment,), overload, span=moment.span) for moment in expression.arguments
        ]
        return Call(BIGINT, "subtract", tuple(numbers), span=expression.span)
    return spelled(context, "interval_order(x)", expression.span, x=expression)


_PLUS = "interval_of(interval_months(x) {0} interval_months(y), interval_days(x) {0} interval_days(y),"
_PLUS += " interval_microseconds(x) {0} interval_microseconds(y))"
_TIMES = "interval_of(interval_months(x) * n, interval_days(x) * n, interval_microseconds(x) * n)"
# what is left of whole months are days, what is left of whole days microseconds
_MONTHS = "(interval_months(x) * n)"
_DAYS = f"(interval_days(x) * n + ({_MONTHS} - trunc({_MONTHS})) * 30)"
_REST = f"(interval_microseconds(x) * n + ({_DAYS} - trunc({_DAYS})) * {MICROSECONDS_A_DAY})"
_SCALED = f"interval_of(trunc({_MONTHS})::BIGINT, trunc({_DAYS})::BIGINT, {_REST}::BIGINT)"


def sum_of_intervals(context: Context, name: str, x: Expression, y: Expression, span: Span | None) -> Expression:
    """INTERVAL + INTERVAL or INTERVAL - INTERVAL, part by part."""
    return spelled(context, _PLUS.format("+" if name == "add" else "-"), span, x=x, y=y)


def scaled_interval(context: Context, name: str, x: Expression, number: Expression, span: Span | None) -> Expression:
    """INTERVAL * number, part by part where it is an integer; INTERVAL / number."""
    if name == "multiply" and number.type.is_integer and number.type != HUGEINT:
        return spelled(context, _TIMES, span, x=x, n=cast(context, number, BIGINT))
    n = cast(context, number, DOUBLE)
    return spelled(context, _SCALED if name == "multiply" else _SCALED.replace("* n", "/ n"), span, x=x, n=n)


def negated_interval(context: Context, x: Expression, span: Span | None) -> Expression:
    """- INTERVAL."""
    return spelled(context, _TIMES, span, x=x, n=Literal(BIGINT, -1))


def interval_of_unit(context: Context, unit: str, number: Expression) -> Expression:
    """to_days(number) and its kin, of a DOUBLE: fractions are cut, but for seconds and milliseconds."""
    field, factor = UNITS[unit]
    rounded = unit in ("seconds", "milliseconds")
    amount = f"round(n * {factor})::BIGINT" if rounded else f"trunc(n)::BIGINT * {factor}"
    parts = ", ".join(amount if field == part else "0" for part in ("months", "days", "microseconds"))
    return spelled(context, f"interval_of({parts})", number.span, n=number)


def _between(stop: str, start: str) -> tuple[str, str]:
    """SQL of the whole days by a zone's clocks from one moment to a later one, and of the time that passed after them."""
    days = f"((epoch_us(timezone(zone, {stop})) - epoch_us(timezone(zone, {start}))) // 86400000000)"
    moved = f"epoch_us(timezone(zone, timezone(zone, {start}) + interval_of(0, {days}, 0)))"
    return days, f"(epoch_us({stop}) - CASE WHEN {days} = 0 THEN epoch_us({start}) ELSE {moved} END)"


_FORWARDS, _BACKWARDS = _between("x", "y"), _between("y", "x")
_DIFFERENCE = f"""CASE WHEN x >= y THEN interval_of(0, {_FORWARDS[0]}, {_FORWARDS[1]})
    ELSE interval_of(0, -{_BACKWARDS[0]}, -{_BACKWARDS[1]}) END"""


def difference_of_moments(context: Context, stop: Expression, start: Expression, span: Span | None) -> Expression:
    """TIMESTAMPTZ - TIMESTAMPTZ, by the session's clocks."""
    zone = str(context.settings.get("timezone", UTC))
    if zone == UTC:
        place = Literal(VARCHAR, UTC)
        return difference(context, _at(place, stop, span), _at(place, start, span), span)
    return spelled(context, _DIFFERENCE, span, x=stop, y=start, zone=Literal(VARCHAR, zone))


def difference(context: Context, stop: Expression, start: Expression, span: Span | None) -> Expression:
    """TIMESTAMP - TIMESTAMP."""
    function = lookup("interval_between")
    assert function is not None, "the registry has interval_between"
    return Call(INTERVAL, "subtract", (stop, start), function.overloads[0], span=span)
