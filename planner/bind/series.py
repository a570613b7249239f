"""range() and generate_series(): rows that count, made where they are read.

    range(stop)   range(start, stop [, step])   range(timestamp, timestamp, interval)

`range` ends before `stop`, `generate_series` includes it.  All arguments are constants, and the plan consumes them.
"""

from __future__ import annotations

from typing import Any

from gpudb import calendar
from gpudb.errors import BindError, NotSupportedError
from gpudb.functions.date import INFINITE_MICROSECONDS
from gpudb.planner.bind.casts import cast
from gpudb.planner.bind.expressions import ExpressionBinder
from gpudb.planner.bind.folding import folded
from gpudb.planner.bind.functions import expand
from gpudb.planner.expressions import Column, Expression, Literal, Span
from gpudb.planner.logical import Node, Project, Series, UnionAll, Values
from gpudb.record import record
from gpudb.types import BIGINT, INTERVAL, TIMESTAMP, Interval, SqlType

SERIES_FUNCTIONS = ("range", "generate_series")
MICROSECONDS_OF_A_DAY = 86_400_000_000
MONTHS_OF_400_YEARS = 4800  # after so many the calendar repeats


def series(binder: ExpressionBinder, name: str, given: list[Expression], span: Span | None) -> Node:
    """The rows of a series: one column of its name, BIGINT or TIMESTAMP."""
    arguments = []
    for argument in given:
        constant = folded(binder.context, argument)
        if constant is None:
            raise NotSupportedError(f"{name} of other than constants is not supported", span=argument.span or span)
        arguments.append(constant)
    inclusive = name == "generate_series"
    if len(arguments) == 3 and (arguments[2].type == INTERVAL or any(a.type.is_temporal for a in arguments)):
        start, stop, step = (_converted(binder, name, a, t) for a, t in zip(arguments, _MOMENTS, strict=True))
        if start is None or stop is None or step is None:
            return Values(((name, TIMESTAMP),), ())
        return _moments(binder, name, _Moments(start, stop, step, inclusive), span)
    if not 1 <= len(arguments) <= 3:
        raise BindError(f"{name} wants 1 to 3 arguments: [start,] stop [, step]", span=span)
    numbers = [_converted(binder, name, argument, BIGINT) for argument in arguments]
    if None in numbers:
        return Values(((name, BIGINT),), ())
    start, stop = (0, numbers[0]) if len(numbers) == 1 else numbers[:2]
    step = numbers[2] if len(numbers) == 3 else 1
    if step == 0:
        raise BindError(f"step of {name} must not be 0", span=arguments[2].span)
    return _counted(name, BIGINT, start, step, _steps(stop - start, step, inclusive))


_MOMENTS = (TIMESTAMP, TIMESTAMP, INTERVAL)


def _converted(binder: ExpressionBinder, name: str, argument: Literal, target: SqlType) -> Any:
    """The value of an argument; only what casts by itself may stand here."""
    source = argument.type
    fits = (
        source.kind == "NULL"
        or binder.context.is_literal_token(argument)
        and source.is_text
        or (source.is_integer if target == BIGINT else source == target or (target == TIMESTAMP and source.is_temporal))
    )
    if not fits:
        raise BindError(f"{name} takes {target} here, not {source}", span=argument.span)
    value = cast(binder.context, argument, target)
    assert isinstance(value, Literal), "a constant stays one"
    if target == TIMESTAMP and value.value is not None and abs(value.value) >= INFINITE_MICROSECONDS:
        raise BindError(f"{name} wants finite ends", span=argument.span)
    return value.value


def _steps(distance: int, step: int, inclusive: bool) -> int:
    """How many of 0, step, 2 * step ... come before `distance`, or at it too."""
    whole, rest = divmod(distance, step)
    return max(0, whole + (1 if rest or inclusive else 0))


def _counted(name: str, type_: SqlType, start: int, step: int, count: int) -> Node:
    columns = ((name, type_),)
    return Series(columns, start, step, count) if count > 0 else Values(columns, ())


@record
class _Moments:
    """A series of timestamps, in microseconds."""

    start: int
    stop: int
    step: Interval
    inclusive: bool

    def holds(self, moment: int) -> bool:
        """Whether the series has not ended there."""
        if moment == self.stop:
            return self.inclusive
        return (moment < self.stop) == self.is_rising

    @property
    def is_rising(self) -> bool:
        return max(self.step.months, self.step.days, self.step.microseconds) > 0


def _moments(binder: ExpressionBinder, name: str, wanted: _Moments, span: Span | None) -> Node:
    parts = (wanted.step.months, wanted.step.days, wanted.step.microseconds)
    if not any(parts):
        raise BindError(f"step of {name} must not be 0", span=span)
    if min(parts) < 0 < max(parts):
        raise BindError(f"step of {name} must not go both ways", span=span)
    if not wanted.step.months:
        step = wanted.step.days * MICROSECONDS_OF_A_DAY + wanted.step.microseconds
        count = _steps(wanted.stop - wanted.start, step, wanted.inclusive)
        return _counted(name, TIMESTAMP, wanted.start, step, count)
    if wanted.step.days or wanted.step.microseconds:
        raise NotSupportedError(f"{name} by months together with days or hours is not supported", span=span)
    pieces = [_months(binder, name, piece, span) for piece in _pieces(wanted)]
    if not pieces:
        return Values(((name, TIMESTAMP),), ())
    return pieces[0] if len(pieces) == 1 else UnionAll(pieces[0].columns, tuple(pieces))


@record
class _Piece:
    """Consecutive months of one series that have its moment on one day of the month.

    month  the first one's number: 12 * year + month, from 0
    time   microseconds into the day
    """

    month: int
    step: int
    count: int
    day: int
    time: int


def _pieces(wanted: _Moments) -> list[_Piece]:
    """The series by months: each step starts from the one before, so a day that a month lacks is lost for good."""
    first_day, time = divmod(wanted.start, MICROSECONDS_OF_A_DAY)
    month = int(calendar.year(first_day)) * 12 + int(calendar.month(first_day)) - 1
    day, step = int(calendar.day(first_day)), wanted.step.months
    pieces = []
    while True:
        inside = _months_inside(wanted, month, day, time)
        short = next((k for k in range(1, MONTHS_OF_400_YEARS + 1) if _length(month + k * step) < day), None)
        count = inside if short is None else min(inside, short)
        if count:
            pieces.append(_Piece(month, step, count, day, time))
        if short is None or inside <= short:
            return pieces
        month += short * step
        day = _length(month)


def _months_inside(wanted: _Moments, month: int, day: int, time: int) -> int:
    """How many steps from `month` on the series does not end at, if each month had the day."""
    last_day = wanted.stop // MICROSECONDS_OF_A_DAY
    last = int(calendar.year(last_day)) * 12 + int(calendar.month(last_day)) - 1
    guess = max(0, (last - month) // wanted.step.months - 1)
    while wanted.holds(_moment(month + guess * wanted.step.months, day, time)):
        guess += 1
    return guess


def _moment(month: int, day: int, time: int) -> int:
    """Microseconds of a moment on a day that the month may lack: then it is as far behind its first."""
    first = int(calendar.days(month // 12, month % 12 + 1, 1))
    return (first + day - 1) * MICROSECONDS_OF_A_DAY + time


def _length(month: int) -> int:
    return int(calendar.month_length(month // 12, month % 12 + 1))


def _months(binder: ExpressionBinder, name: str, piece: _Piece, span: Span | None) -> Node:
    last = piece.month + (piece.count - 1) * piece.step
    if min(piece.month, last) < 12:
        raise NotSupportedError(f"{name} by months before year 1 is not supported", span=span)
    months = _counted("month", BIGINT, piece.month, piece.step, piece.count)
    arguments: list[Expression] = [
        Column(BIGINT, 0, "month"),
        Literal(BIGINT, piece.day),
        Literal(INTERVAL, Interval(0, 0, piece.time)),
    ]
    sql = "CAST(make_date(m // 12, m % 12 + 1, d) AS TIMESTAMP) + t"
    return Project(((name, TIMESTAMP),), months, (expand(binder, (("m", "d", "t"), sql), arguments, span),))
