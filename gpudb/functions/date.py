"""Dates and timestamps: parts, truncation, differences, construction, intervals, formatting.

DATE is days and TIMESTAMP microseconds since 1970-01-01, in the proleptic Gregorian calendar.  Their infinities are the
greatest integer and its negation: a part of one is NULL, truncated it stays, as in DuckDB.

Functions with a part as their first argument are one function a part: date_part('month', x) is `date_part_month(x)`,
`date_part_function` gives the name.  Only parts of a DATE have code of their own; those of a TIMESTAMP go by its DATE.
The file is long because a calendar has many parts; they are one idea.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from gpudb import calendar, compute
from gpudb.calendar import MICROSECONDS_A_DAY
from gpudb.errors import BindError, ConversionError, DataError, NotSupportedError
from gpudb.functions import math  # noqa: F401 - first, as isinf gets overloads here
from gpudb.functions.cast_text import (
    INFINITE_DAYS,
    INFINITE_MICROSECONDS,
    SPACES,
    civil,
    days_in_month,
    days_of,
)
from gpudb.functions.registry import macro, scalar, text, typed_macro
from gpudb.functions.rows import per_row, text_array
from gpudb.types import TIMESTAMP, VARCHAR, Interval

Array = Any

_SPELLINGS = {
    "year": "yr y years yrs",
    "month": "mon months mons",
    "day": "days d dayofmonth",
    "decade": "dec decades decs",
    "century": "cent centuries c",
    "millennium": "mil millenniums millennia mils millenium",
    "microsecond": "microseconds us usec usecs usecond useconds",
    "millisecond": "milliseconds ms msec msecs msecond mseconds",
    "second": "sec seconds secs s",
    "minute": "min minutes mins m",
    "hour": "hr hours hrs h",
    "epoch": "",
    "dow": "dayofweek weekday",
    "isodow": "",
    "week": "weeks w weekofyear",
    "isoyear": "",
    "doy": "dayofyear",
    "quarter": "quarters",
    "yearweek": "",
    "era": "",
    "timezone": "",
    "timezone_hour": "",
    "timezone_minute": "",
    "julian": "jd",
}
PART_ALIASES = {spelling: part for part, more in _SPELLINGS.items() for spelling in (part, *more.split())}
"""Every spelling DuckDB takes, to the canonical part."""

PARTS = tuple(_SPELLINGS)
# truncation and differences take these parts for others, and none of era and time zones
_COARSER = {"dow": "day", "isodow": "day", "doy": "day", "julian": "day", "yearweek": "week", "epoch": "second"}
_ONLY_PARTS = ("era", "timezone", "timezone_hour", "timezone_minute")


def canonical_part(part: str) -> str:
    """The canonical name of a date part in any spelling.

    >>> canonical_part("Mons")
    'month'

    Raises BindError.
    """
    found = PART_ALIASES.get(part.lower())
    if found is None:
        raise BindError(f"unknown date part: {part}", hint=f"parts are {', '.join(PARTS)}")
    return found


def date_part_function(part: str) -> str:
    """Canonical name of date_part(part, x), extract(part FROM x).  Raises BindError for an unknown part.

    >>> date_part_function("mon")
    'date_part_month'
    """
    return f"date_part_{canonical_part(part)}"


def _coarse(part: str, what: str) -> str:
    canonical = canonical_part(part)
    if canonical in _ONLY_PARTS:
        raise BindError(f"{what} does not take the date part {part}")
    return _COARSER.get(canonical, canonical)


def date_trunc_function(part: str) -> str:
    """Canonical name of date_trunc(part, x).  Raises BindError for a part it does not take.

    >>> date_trunc_function("dow")
    'date_trunc_day'
    """
    return f"date_trunc_{_coarse(part, 'date_trunc')}"


def date_diff_function(part: str) -> str:
    """Canonical name of date_diff(part, start, stop).  Raises BindError for a part it does not take."""
    return f"date_diff_{_coarse(part, 'date_diff')}"


def date_sub_function(part: str) -> str:
    """Canonical name of date_sub(part, start, stop).  Raises BindError for a part it does not take."""
    return f"date_sub_{_coarse(part, 'date_sub')}"


# --- infinities -----------------------------------------------------------------------------------------------------


def infinite_date(x: Array) -> Array:
    """Whether days are an infinity."""
    return (x == INFINITE_DAYS) | (x <= -INFINITE_DAYS)


def infinite_timestamp(x: Array) -> Array:
    """Whether microseconds are an infinity."""
    return (x == INFINITE_MICROSECONDS) | (x <= -INFINITE_MICROSECONDS)


NULL_DATE = ("is_infinite_date(x)", infinite_date)
NULL_TIMESTAMP = ("is_infinite_timestamp(x)", infinite_timestamp)


@scalar("DATE -> BOOLEAN", cpp="is_infinite_date(x)", name="isinf", more=True)
def _isinf_date(x: Array) -> Array:
    return infinite_date(x)


@scalar("TIMESTAMP -> BOOLEAN", cpp="is_infinite_timestamp(x)", name="isinf", more=True)
def _isinf_timestamp(x: Array) -> Array:
    return infinite_timestamp(x)


typed_macro("isfinite", "DATE -> BOOLEAN; TIMESTAMP -> BOOLEAN", "x", "NOT isinf(x)")


def _timestamp_fits(x: Array) -> Array:
    return infinite_date(x) | (np.abs(np.asarray(x, np.int64)) <= LAST_TIMESTAMP_DAY)


LAST_TIMESTAMP_DAY = 106751991


@scalar(
    "DATE -> TIMESTAMP",
    cpp="date_as_timestamp(x)",
    domain=(
        f"is_infinite_date(x) || (x <= {LAST_TIMESTAMP_DAY} && x >= -{LAST_TIMESTAMP_DAY})",
        _timestamp_fits,
        "value out of range in a cast to TIMESTAMP",
    ),
    monotone=True,
)
def date_as_timestamp(x: Array) -> Array:
    """CAST(x AS TIMESTAMP) where infinities may occur, which stay.

    >>> sql("SELECT date_as_timestamp(DATE '2013-07-04')")
    2013-07-04 00:00:00
    """
    with np.errstate(all="ignore"):
        value = np.asarray(x, np.int64) * MICROSECONDS_A_DAY
    return np.where(infinite_date(x), np.where(x > 0, INFINITE_MICROSECONDS, -INFINITE_MICROSECONDS), value)


@scalar("TIMESTAMP -> DATE", cpp="timestamp_as_date(x)", monotone=True)
def timestamp_as_date(x: Array) -> Array:
    """CAST(x AS DATE) where infinities may occur, which stay.

    >>> sql("SELECT timestamp_as_date(TIMESTAMP '2013-07-04 12:00:00')")
    2013-07-04
    """
    x = np.asarray(x, np.int64)
    return np.where(infinite_timestamp(x), np.where(x > 0, INFINITE_DAYS, -INFINITE_DAYS), x // MICROSECONDS_A_DAY)


# --- parts ----------------------------------------------------------------------------------------------------------


def _date_part(
    part: str,
    cpp: str,
    body: Callable[[Array], Array],
    doc: str,
    aliases: tuple[str, ...] = (),
    bounds: tuple[int, int] | None = None,
    monotone: bool = False,
) -> None:
    """A part of a DATE, and of a TIMESTAMP by way of its DATE."""

    def function(x: Array) -> Array:
        return body(x)

    name = f"date_part_{part}"
    function.__doc__ = doc
    scalar(
        "DATE -> BIGINT", cpp=cpp, name=name, aliases=aliases, null_when=NULL_DATE, bounds=bounds, monotone=monotone
    )(function)
    typed_macro(name, "TIMESTAMP -> BIGINT", "x", f"{name}(CAST(x AS DATE))")


def _doc(sentence: str, call: str, value: str) -> str:
    return f'{sentence}\n\n>>> sql("SELECT {call}")\n{value}\n'


_date_part(
    "year",
    "calendar_year(x)",
    calendar.year,
    _doc("Year; those before the year 1 count down from 0.", "year(DATE '2013-07-04')", "2013"),
    ("year",),
    (-5877641, 5881580),
    True,
)
_date_part(
    "month",
    "calendar_month(x)",
    calendar.month,
    _doc("Month of the year, from 1 to 12.", "month(DATE '2013-07-04')", "7"),
    ("month",),
    (1, 12),
)
_date_part(
    "day",
    "calendar_day(x)",
    calendar.day,
    _doc("Day of the month, from 1 to 31.", "day(DATE '2013-07-04')", "4"),
    ("day", "dayofmonth"),
    (1, 31),
)
_date_part(
    "quarter",
    "calendar_quarter(x)",
    calendar.quarter,
    _doc("Quarter of the year, from 1 to 4.", "quarter(DATE '2013-07-04')", "3"),
    ("quarter",),
    (1, 4),
)
_date_part(
    "dow",
    "calendar_day_of_week(x)",
    calendar.day_of_week,
    _doc("Day of the week, from 0 for Sunday to 6.", "dayofweek(DATE '2013-07-04')", "4"),
    ("dayofweek", "weekday"),
    (0, 6),
)
_date_part(
    "isodow",
    "calendar_iso_day_of_week(x)",
    calendar.iso_day_of_week,
    _doc("Day of the week, from 1 for Monday to 7.", "isodow(DATE '2013-07-07')", "7"),
    ("isodow",),
    (1, 7),
)
_date_part(
    "doy",
    "calendar_day_of_year(x)",
    calendar.day_of_year,
    _doc("Day of the year, from 1 to 366.", "dayofyear(DATE '2013-07-04')", "185"),
    ("dayofyear",),
    (1, 366),
)
_date_part(
    "week",
    "calendar_iso_week(x)",
    calendar.iso_week,
    _doc("Week of the ISO year, from 1 to 53; weeks start on Monday.", "week(DATE '2013-07-04')", "27"),
    ("week", "weekofyear"),
    (1, 53),
)
_date_part(
    "isoyear",
    "calendar_iso_year(x)",
    calendar.iso_year,
    _doc("Year that the week's Thursday lies in.", "isoyear(DATE '2012-12-31')", "2013"),
    ("isoyear",),
    monotone=True,
)


def _year_week(x: Array) -> Array:
    year, week = calendar.iso_year(x).astype(np.int64), calendar.iso_week(x)
    return year * 100 + np.where(year > 0, week, -week)


_date_part(
    "yearweek",
    "year_week(x)",
    _year_week,
    _doc("ISO year and week as one number.", "yearweek(DATE '2013-07-04')", "201327"),
    ("yearweek",),
)
_date_part(
    "decade",
    "calendar_decade(x)",
    calendar.decade,
    _doc("Year divided by 10.", "decade(DATE '2013-07-04')", "201"),
    ("decade",),
    monotone=True,
)
_date_part(
    "century",
    "calendar_century(x)",
    calendar.century,
    _doc("Century; the years 1901 to 2000 are the 20th.", "century(DATE '2000-07-04')", "20"),
    ("century",),
    monotone=True,
)
_date_part(
    "millennium",
    "calendar_millennium(x)",
    calendar.millennium,
    _doc("Millennium; the years 1001 to 2000 are the second.", "millennium(DATE '2000-07-04')", "2"),
    ("millennium",),
    monotone=True,
)
_date_part(
    "era",
    "calendar_year(x) > 0",
    lambda x: calendar.year(x) > 0,
    _doc("1 from the year 1 on, 0 before it.", "era(DATE '2013-07-04')", "1"),
    ("era",),
    (0, 1),
    True,
)


def _time_part(part: str, unit: int, count: int, doc: str, aliases: tuple[str, ...]) -> None:
    """A part of the time of a TIMESTAMP: of `unit` microseconds, counted up to `count`."""

    def function(x: Array) -> Array:
        return np.mod(np.asarray(x, np.int64), unit * count) // unit

    name = f"date_part_{part}"
    function.__doc__ = doc
    scalar(
        "TIMESTAMP -> BIGINT",
        cpp=f"time_part<{unit}, {count}>(x)",
        name=name,
        aliases=aliases,
        null_when=NULL_TIMESTAMP,
        bounds=(0, count - 1),
    )(function)
    typed_macro(name, "DATE -> BIGINT", "x", "date_part_day(x) * 0")


EXAMPLE = "TIMESTAMP '2013-07-04 05:06:07.089'"
_time_part("hour", 3_600_000_000, 24, _doc("Hour, from 0 to 23.", f"hour({EXAMPLE})", "5"), ("hour",))
_time_part("minute", 60_000_000, 60, _doc("Minute, from 0 to 59.", f"minute({EXAMPLE})", "6"), ("minute",))
_time_part("second", 1_000_000, 60, _doc("Second, from 0 to 59.", f"second({EXAMPLE})", "7"), ("second",))
_time_part(
    "millisecond",
    1000,
    60_000,
    _doc("Milliseconds of the minute.", f"millisecond({EXAMPLE})", "7089"),
    ("millisecond",),
)
_time_part(
    "microsecond",
    1,
    60_000_000,
    _doc("Microseconds of the minute.", f"microsecond({EXAMPLE})", "7089000"),
    ("microsecond",),
)
macro(
    "nanosecond",
    "x",
    "microsecond(x) * 1000",
    _doc("Nanoseconds of the minute.", f"nanosecond({EXAMPLE})", "7089000000"),
)


@scalar(
    "DATE -> DOUBLE",
    cpp="float64(x) * 86400.0",
    name="date_part_epoch",
    aliases=("epoch",),
    null_when=NULL_DATE,
    monotone=True,
)
def _epoch_date(x: Array) -> Array:
    """Seconds since 1970-01-01.

    >>> sql("SELECT epoch(TIMESTAMP '1970-01-01 00:01:00.5')")
    60.5
    """
    return np.asarray(x, np.float64) * 86400.0


@scalar(
    "TIMESTAMP -> DOUBLE",
    cpp="float64(x) / 1e6",
    name="date_part_epoch",
    more=True,
    null_when=NULL_TIMESTAMP,
    monotone=True,
)
def _epoch_timestamp(x: Array) -> Array:
    return np.asarray(x, np.float64) / 1e6


@scalar("TIMESTAMP -> BIGINT", cpp="round_half_away(x, int64(1000))", null_when=NULL_TIMESTAMP, monotone=True)
def epoch_ms(x: Array) -> Array:
    """Milliseconds since 1970-01-01, rounded half away from zero; of a number of them, the TIMESTAMP.

    >>> sql("SELECT epoch_ms(TIMESTAMP '1970-01-01 00:00:01')")
    1000
    """
    x = np.asarray(x, np.int64)
    rest = np.fmod(x, 1000)
    return (x - rest) // 1000 + np.where(np.abs(rest) >= 500, np.where(x < 0, -1, 1), 0)


@scalar("DATE -> BIGINT", cpp="int64(x) * 86400000", name="epoch_ms", more=True, null_when=NULL_DATE, monotone=True)
def _epoch_ms_date(x: Array) -> Array:
    return np.asarray(x, np.int64) * 86_400_000


@scalar("TIMESTAMP -> BIGINT", cpp="x", null_when=NULL_TIMESTAMP, monotone=True)
def epoch_us(x: Array) -> Array:
    """Microseconds since 1970-01-01.

    >>> sql("SELECT epoch_us(TIMESTAMP '1970-01-01 00:00:01')")
    1000000
    """
    return x


typed_macro("epoch_us", "DATE -> BIGINT", "x", "epoch_us(CAST(x AS TIMESTAMP))")
macro(
    "epoch_ns",
    "x",
    "epoch_us(x) * 1000",
    _doc("Nanoseconds since 1970-01-01.", "epoch_ns(TIMESTAMP '1970-01-01 00:00:01')", "1000000000"),
)


@scalar(
    "DATE -> DOUBLE",
    cpp="float64(x) + 2440588.0",
    name="date_part_julian",
    aliases=("julian",),
    null_when=NULL_DATE,
    monotone=True,
)
def _julian_date(x: Array) -> Array:
    """Julian day number, and the part of the day that has passed.

    >>> sql("SELECT julian(TIMESTAMP '2013-07-04 06:00:00')")
    2456478.25
    """
    return np.asarray(x, np.float64) + 2440588.0


@scalar(
    "TIMESTAMP -> DOUBLE",
    cpp="julian_timestamp(x)",
    name="date_part_julian",
    more=True,
    null_when=NULL_TIMESTAMP,
    monotone=True,
)
def _julian_timestamp(x: Array) -> Array:
    day, time = np.divmod(np.asarray(x, np.int64), MICROSECONDS_A_DAY)
    return time / 86_400_000_000.0 + (day + 2440588.0)


for _part in ("timezone", "timezone_hour", "timezone_minute"):
    typed_macro(
        f"date_part_{_part}",
        "TIMESTAMP -> BIGINT",
        "x",
        "date_part_day(x) * 0",
        doc=_doc("Offset from UTC: 0 for a TIMESTAMP, which has no zone.", f"{_part}({EXAMPLE})", "0"),
        aliases=(_part,),
    )


def _names(name: str, part: str, words: tuple[str, ...], value: str) -> None:
    """Names of a part of a date: a text function of the part, which has a handful of values however long a table is."""

    def function(number: pa.Array) -> pa.Array:
        return per_row(lambda k: words[k] if 0 <= k < len(words) else None, VARCHAR, number)

    function.__doc__ = _doc(f"English name by number; what {name} is made of.", f"{name}_of(3)", words[3])
    text("BIGINT -> VARCHAR", name=f"{name}_of")(function)
    doc = _doc(f"English {name.removesuffix('name')} name.", f"{name}(DATE '2013-07-04')", value)
    typed_macro(name, "DATE -> VARCHAR", "x", f"{name}_of(date_part_{part}(x))", doc=doc)
    typed_macro(name, "TIMESTAMP -> VARCHAR", "x", f"{name}_of(date_part_{part}(CAST(x AS DATE)))")


DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_names("dayname", "dow", DAYS, "Thursday")
_names("monthname", "month", ("", *MONTHS), "July")


# the first of a millennium may lie before the first date there is: such dates stay, and are no TIMESTAMPs either way
TOO_EARLY = -2147100000

# --- truncation -----------------------------------------------------------------------------------------------------


def _date_trunc(part: str, cpp: str, body: Callable[[Array], Array], value: str) -> None:
    """date_trunc to a part longer than a day: by a function from days to days."""

    def function(x: Array) -> Array:
        return np.where(infinite_date(x), x, np.where(x < TOO_EARLY, -INFINITE_DAYS + 1, body(x)))

    function.__doc__ = _doc(
        f"First day of the {part}; what date_trunc('{part}', x) is made of.",
        f"first_day_of_{part}(DATE '2013-07-04')",
        value,
    )
    first = f"first_day_of_{part}"
    scalar(
        "DATE -> DATE",
        cpp=f"is_infinite_date(x) ? x : x < {TOO_EARLY} ? -2147483646 : {cpp}",
        name=first,
        monotone=True,
    )(function)
    _date_trunc_macros(
        part, f"CAST({first}(x) AS TIMESTAMP)", f"CAST({first}(CAST(x AS DATE)) AS TIMESTAMP)", f"{value} 00:00:00"
    )


def _date_trunc_macros(part: str, of_date: str, of_timestamp: str, value: str) -> None:
    name = f"date_trunc_{part}"
    sentence = f"date_trunc('{part}', x): the TIMESTAMP at which the {part} of x began."
    typed_macro(name, "DATE -> TIMESTAMP", "x", of_date, doc=_doc(sentence, f"date_trunc('{part}', {EXAMPLE})", value))
    typed_macro(name, "TIMESTAMP -> TIMESTAMP", "x", of_timestamp)


def _iso_year_start(x: Array) -> Array:
    fourth = calendar.days(calendar.iso_year(x), 1, 4)
    with np.errstate(all="ignore"):
        return fourth - (calendar.iso_day_of_week(fourth) - 1)


_date_trunc("year", "calendar_trunc_year(x)", calendar.trunc_year, "2013-01-01")
_date_trunc("quarter", "calendar_trunc_quarter(x)", calendar.trunc_quarter, "2013-07-01")
_date_trunc("month", "calendar_trunc_month(x)", calendar.trunc_month, "2013-07-01")
_date_trunc("week", "calendar_trunc_week(x)", calendar.trunc_week, "2013-07-01")
_date_trunc("isoyear", "iso_year_start(x)", _iso_year_start, "2012-12-31")
_date_trunc("decade", "calendar_trunc_decade(x)", calendar.trunc_decade, "2010-01-01")
_date_trunc("century", "calendar_trunc_century(x)", calendar.trunc_century, "2000-01-01")
_date_trunc("millennium", "calendar_trunc_millennium(x)", calendar.trunc_millennium, "2000-01-01")
_date_trunc_macros("day", "CAST(x AS TIMESTAMP)", "CAST(CAST(x AS DATE) AS TIMESTAMP)", "2013-07-04 00:00:00")
_date_trunc_macros("microsecond", "CAST(x AS TIMESTAMP)", "x", "2013-07-04 05:06:07.089")


def _time_trunc(part: str, unit: int, value: str) -> None:
    """date_trunc of a TIMESTAMP to a multiple of `unit` microseconds; a DATE is one already."""

    def function(x: Array) -> Array:
        x = np.asarray(x, np.int64)
        with np.errstate(all="ignore"):
            return np.where(infinite_timestamp(x), x, x - np.mod(x, unit))

    name = f"date_trunc_{part}"
    function.__doc__ = _doc(
        f"date_trunc('{part}', x): the TIMESTAMP at which the {part} of x began.",
        f"date_trunc('{part}', {EXAMPLE})",
        value,
    )
    scalar("TIMESTAMP -> TIMESTAMP", cpp=f"floor_timestamp<{unit}>(x)", name=name, monotone=True)(function)
    typed_macro(name, "DATE -> TIMESTAMP", "x", "CAST(x AS TIMESTAMP)")


_time_trunc("hour", 3_600_000_000, "2013-07-04 05:00:00")
_time_trunc("minute", 60_000_000, "2013-07-04 05:06:00")
_time_trunc("second", 1_000_000, "2013-07-04 05:06:07")
_time_trunc("millisecond", 1000, "2013-07-04 05:06:07.089")


@scalar(
    "DATE -> DATE",
    cpp="calendar_last_day(x)",
    null_when=NULL_DATE,
    domain=(
        "x <= 2147483628",
        lambda x: x <= 2147483628,
        "last day out of range",
    ),  # July of the last year ends too late
    monotone=True,
)
def last_day(x: Array) -> Array:
    """Last day of the month.

    >>> sql("SELECT last_day(DATE '2016-02-03')")
    2016-02-29
    """
    return calendar.last_day(x)


typed_macro("last_day", "TIMESTAMP -> DATE", "x", "last_day(CAST(x AS DATE))")
macro(
    "days_in_month",
    "x",
    "day(last_day(x))",
    _doc("Number of days of the month.", "days_in_month(DATE '2016-02-03')", "29"),
)


# --- differences ----------------------------------------------------------------------------------------------------

START = "TIMESTAMP '2012-12-31 23:59:59'"


@scalar("DATE -> BIGINT", cpp="x", null_when=NULL_DATE, monotone=True)
def day_number(x: Array) -> Array:
    """Days since 1970-01-01; what differences in days are made of.

    >>> sql("SELECT day_number(DATE '1970-02-01')")
    31
    """
    return x


def _date_diff(part: str, of_dates: str, value: str) -> None:
    """date_diff in parts of a day or longer: by SQL over two DATEs."""
    name = f"date_diff_{part}"
    sentence = f"date_diff('{part}', start, stop): how many times a new {part} begins between the two."
    typed_macro(
        name, "DATE, DATE -> BIGINT", "start, stop", of_dates,
        doc=_doc(sentence, f"date_diff('{part}', {START}, {EXAMPLE})", value),
    )  # fmt: skip
    typed_macro(
        name, "TIMESTAMP, TIMESTAMP -> BIGINT", "start, stop", f"{name}(CAST(start AS DATE), CAST(stop AS DATE))"
    )


def _time_diff(part: str, unit: int, value: str) -> None:
    """date_diff in multiples of `unit` microseconds."""
    name = f"date_diff_{part}"
    sentence = f"date_diff('{part}', start, stop): how many times a new {part} begins between the two."
    typed_macro(
        name, "TIMESTAMP, TIMESTAMP -> BIGINT", "start, stop",
        f"epoch_us(date_trunc_{part}(stop)) // {unit} - epoch_us(date_trunc_{part}(start)) // {unit}"
        if unit > 1
        else "epoch_us(stop) - epoch_us(start)",
        doc=_doc(sentence, f"date_diff('{part}', {START}, {EXAMPLE})", value),
    )  # fmt: skip


def _year_difference(length: int) -> str:
    return f"date_part_year(stop) // {length} - date_part_year(start) // {length}"


_date_diff("year", "date_part_year(stop) - date_part_year(start)", "1")
_date_diff(
    "month",
    "(date_part_year(stop) - date_part_year(start)) * 12 + date_part_month(stop) - date_part_month(start)",
    "7",
)
_date_diff(
    "quarter",
    "(date_part_year(stop) * 12 + date_part_month(stop) - 1) // 3"
    " - (date_part_year(start) * 12 + date_part_month(start) - 1) // 3",
    "3",
)
_date_diff("week", "(day_number(stop) - day_number(start)) // 7", "26")
_date_diff("day", "day_number(stop) - day_number(start)", "185")
_date_diff("isoyear", "date_part_isoyear(stop) - date_part_isoyear(start)", "0")
_date_diff("decade", _year_difference(10), "0")
_date_diff("century", _year_difference(100), "0")
_date_diff("millennium", _year_difference(1000), "0")
_time_diff("hour", 3_600_000_000, "4422")
_time_diff("minute", 60_000_000, "265267")
_time_diff("second", 1_000_000, "15915968")
_time_diff("millisecond", 1000, "15915968089")
_time_diff("microsecond", 1, "15915968089000")


def _infinite_pair(start: Array, stop: Array) -> Array:
    return infinite_timestamp(start) | infinite_timestamp(stop)


@scalar(
    "TIMESTAMP, TIMESTAMP -> BIGINT",
    cpp="months_between(start, stop)",
    name="date_sub_month",
    null_when=("is_infinite_timestamp(start) | is_infinite_timestamp(stop)", _infinite_pair),
)
def months_between(start: Array, stop: Array) -> Array:
    """date_sub('month', start, stop): whole months between the two.

    >>> sql("SELECT date_sub('month', DATE '2013-01-31', DATE '2013-02-28')")
    1
    """
    start, stop = np.broadcast_arrays(np.asarray(start, np.int64), np.asarray(stop, np.int64))
    back = start > stop
    first, last = np.where(back, stop, start), np.where(back, start, stop)
    (first_days, first_time), (last_days, last_time) = (
        np.divmod(first, MICROSECONDS_A_DAY),
        np.divmod(last, MICROSECONDS_A_DAY),
    )
    first_days, last_days = first_days.astype(np.int32), last_days.astype(np.int32)
    year, month, day = calendar.year(last_days), calendar.month(last_days), calendar.day(last_days)
    first_day = calendar.day(first_days)
    first_day = np.where(day == calendar.month_length(year, month), np.minimum(first_day, day), first_day)
    months = (year.astype(np.int64) - calendar.year(first_days)) * 12 + month - calendar.month(first_days)
    whole = months - ((day < first_day) | ((day == first_day) & (last_time < first_time)))
    return np.where(back, -whole, whole)


def _date_sub(part: str, sql: str, value: str) -> None:
    """date_sub: by SQL over two TIMESTAMPs, which DATEs become."""
    sentence = f"date_sub('{part}', start, stop): how many whole times one {part} fits between the two."
    typed_macro(
        f"date_sub_{part}", "TIMESTAMP, TIMESTAMP -> BIGINT", "start, stop", sql,
        doc=_doc(sentence, f"date_sub('{part}', {START}, {EXAMPLE})", value),
    )  # fmt: skip


for _part, _months, _value in (
    ("year", 12, "0"), ("isoyear", 12, "0"), ("quarter", 3, "2"), ("decade", 120, "0"), ("century", 1200, "0"),
    ("millennium", 12000, "0"),
):  # fmt: skip
    _date_sub(_part, f"date_sub_month(start, stop) // {_months}", _value)
for _part, _unit, _value in (
    ("week", 7 * MICROSECONDS_A_DAY, "26"), ("day", MICROSECONDS_A_DAY, "184"), ("hour", 3_600_000_000, "4421"),
    ("minute", 60_000_000, "265266"), ("second", 1_000_000, "15915968"), ("millisecond", 1000, "15915968089"),
):  # fmt: skip
    _date_sub(
        _part,
        f"CAST((CAST(epoch_us(stop) AS HUGEINT) - CAST(epoch_us(start) AS HUGEINT)) // {_unit} AS BIGINT)",
        _value,
    )
_date_sub("microsecond", "epoch_us(stop) - epoch_us(start)", "15915968089000")


# --- construction ---------------------------------------------------------------------------------------------------


def _is_date(year: Array, month: Array, day: Array) -> Array:
    year, month, day = np.broadcast_arrays(*(np.asarray(x, np.int64) for x in (year, month, day)))
    possible = (np.abs(year) <= 5881580) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    year, month, day = np.where(possible, year, 1970), np.where(possible, month, 1), np.where(possible, day, 1)
    return possible & (day <= calendar.month_length(year, month)) & calendar.fits(year, month, day)


def _date_of(year: Array, month: Array, day: Array) -> Array:
    valid = _is_date(year, month, day)
    parts = (np.where(valid, part, usual) for part, usual in ((year, 1970), (month, 1), (day, 1)))
    return calendar.days(*parts)


@scalar(
    "BIGINT, BIGINT, BIGINT -> DATE",
    cpp="date_of(year, month, day)",
    domain=("is_date(year, month, day)", _is_date, "date out of range"),
)
def make_date(year: Array, month: Array, day: Array) -> Array:
    """A DATE of year, month and day; or of days since 1970-01-01.

    >>> sql("SELECT make_date(2013, 7, 4)")
    2013-07-04
    """
    return _date_of(year, month, day)


@scalar("INTEGER -> DATE", cpp="days", name="make_date", more=True, monotone=True)
def _make_date_of_days(days: Array) -> Array:
    return days


def time_of(hour: Array, minute: Array, second: Array) -> Array:
    """Microseconds of a time of day, to 24:00:00; -1 where there is none."""
    second = np.asarray(second, np.float64)
    hour, minute = np.asarray(hour, np.int64), np.asarray(minute, np.int64)
    with np.errstate(all="ignore"):
        valid = (hour >= 0) & (hour <= 24) & (minute >= 0) & (minute < 60) & (second >= 0) & (second < 61)
        whole = np.floor(np.where(valid, second, 0))
        fraction = (np.where(valid, second, 0) - whole) * 1e6
        rounded = np.trunc(fraction) + (fraction - np.trunc(fraction) >= 0.5)
        time = (hour * 60 + minute) * 60_000_000 + whole.astype(np.int64) * 1_000_000 + rounded.astype(np.int64)
    return np.where(valid & (time <= MICROSECONDS_A_DAY), time, -1)


def _is_timestamp(year: Array, month: Array, day: Array, hour: Array, minute: Array, second: Array) -> Array:
    time, days = time_of(hour, minute, second), _date_of(year, month, day).astype(np.int64)
    with np.errstate(all="ignore"):
        near = days * MICROSECONDS_A_DAY + time
    fits = ((days < 106751991) | ((days == 106751991) & (near > 0))) & (
        (days > -106751992) | ((days == -106751992) & (near < 0))
    )
    fits &= ~infinite_timestamp(near)
    return _is_date(year, month, day) & (time >= 0) & fits


@scalar(
    "BIGINT, BIGINT, BIGINT, BIGINT, BIGINT, DOUBLE -> TIMESTAMP",
    cpp="timestamp_of(year, month, day, hour, minute, second)",
    domain=("is_timestamp(year, month, day, hour, minute, second)", _is_timestamp, "timestamp out of range"),
)
def make_timestamp(year: Array, month: Array, day: Array, hour: Array, minute: Array, second: Array) -> Array:
    """A TIMESTAMP of its parts; or of microseconds since 1970-01-01.

    >>> sql("SELECT make_timestamp(2013, 7, 4, 5, 6, 7.5)")
    2013-07-04 05:06:07.5
    """
    with np.errstate(all="ignore"):
        value = _date_of(year, month, day).astype(np.int64) * MICROSECONDS_A_DAY + time_of(hour, minute, second)
    return np.where(_is_timestamp(year, month, day, hour, minute, second), value, 0)


@scalar(
    "BIGINT -> TIMESTAMP",
    cpp="x",
    name="make_timestamp",
    more=True,
    domain=("!is_infinite_timestamp(x)", lambda x: ~infinite_timestamp(x), "timestamp out of range"),
    monotone=True,
)
def _make_timestamp_of_microseconds(x: Array) -> Array:
    return x


def _milliseconds_fit(x: Array) -> Array:
    return (x <= 9223372036854775) & (x >= -9223372036854775)


@scalar(
    "BIGINT -> TIMESTAMP",
    cpp="wrapping_multiply(x, int64(1000))",
    name="epoch_ms",
    more=True,
    domain=("x <= 9223372036854775 && x >= -9223372036854775", _milliseconds_fit, "timestamp out of range"),
    monotone=True,
)
def _timestamp_of_milliseconds(x: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(x, np.int64) * 1000


typed_macro(
    "make_timestamp_ms",
    "BIGINT -> TIMESTAMP",
    "x",
    "epoch_ms(x)",
    doc=_doc("A TIMESTAMP of milliseconds since 1970-01-01.", "make_timestamp_ms(1500)", "1970-01-01 00:00:01.5"),
)


# --- intervals and buckets ------------------------------------------------------------------------------------------


def _later(x: Array, interval: Interval) -> tuple[Array, Array]:
    """(value, fits) of x plus an interval, for x that are not infinite."""
    day, rest = np.divmod(np.asarray(x, np.int64), MICROSECONDS_A_DAY)
    fits = np.ones(day.shape, bool)
    if interval.months:
        fits = np.asarray(calendar.add_months_fits(day.astype(np.int32), interval.months))
        day = calendar.add_months(day.astype(np.int32), interval.months).astype(np.int64)
    extra_days, extra = divmod(interval.microseconds, MICROSECONDS_A_DAY)
    rest = rest + extra
    day = day + interval.days + extra_days + rest // MICROSECONDS_A_DAY
    rest = rest % MICROSECONDS_A_DAY
    with np.errstate(all="ignore"):
        value = day * MICROSECONDS_A_DAY + rest
    last_day, last_rest = divmod(INFINITE_MICROSECONDS, MICROSECONDS_A_DAY)
    first_day, first_rest = divmod(-INFINITE_MICROSECONDS, MICROSECONDS_A_DAY)
    fits &= (day < last_day) | ((day == last_day) & (rest < last_rest))
    fits &= (day > first_day) | ((day == first_day) & (rest > first_rest))
    return value, fits


def interval_fits(x: Array, interval: Interval) -> Array:
    """Whether x plus an interval is a TIMESTAMP."""
    return infinite_timestamp(x) | _later(x, interval)[1]


def _negated(interval: Interval) -> Interval:
    return Interval(-interval.months, -interval.days, -interval.microseconds)


@scalar(
    "TIMESTAMP, INTERVAL -> TIMESTAMP",
    cpp="add_interval(x, interval_months, interval_days, interval_microseconds)",
    domain=(
        "add_interval_fits(x, interval_months, interval_days, interval_microseconds)",
        interval_fits,
        "timestamp out of range",
    ),
    monotone=True,
)
def add_interval(x: Array, interval: Interval) -> Array:
    """The operator x + interval: months first (to the last day of a shorter month), then days, then microseconds.

    >>> sql("SELECT DATE '2013-01-31' + INTERVAL 1 MONTH")
    2013-02-28 00:00:00
    """
    return np.where(infinite_timestamp(x), x, _later(x, interval)[0])


@scalar(
    "TIMESTAMP, INTERVAL -> TIMESTAMP",
    cpp="add_interval(x, -interval_months, -interval_days, -interval_microseconds)",
    domain=(
        "add_interval_fits(x, -interval_months, -interval_days, -interval_microseconds)",
        lambda x, interval: interval_fits(x, _negated(interval)),
        "timestamp out of range",
    ),
    monotone=True,
)
def subtract_interval(x: Array, interval: Interval) -> Array:
    """The operator x - interval.

    >>> sql("SELECT TIMESTAMP '2013-07-04 00:00:00' - INTERVAL 1 HOUR")
    2013-07-03 23:00:00
    """
    return add_interval(x, _negated(interval))


for _name in ("add_interval", "subtract_interval"):
    typed_macro(_name, "DATE, INTERVAL -> TIMESTAMP", "x, interval", f"{_name}(CAST(x AS TIMESTAMP), interval)")
macro(
    "date_add",
    "x, interval",
    "x + interval",
    _doc("x + interval.", "date_add(DATE '2013-07-04', INTERVAL 1 DAY)", "2013-07-05 00:00:00"),
)


def _bucket(x: Array, origin: Array, width: Interval) -> tuple[Array, Array]:
    """(start, fits) of buckets, for x and origins that are not infinite; exact by Python integers where it must be."""
    x, origin = np.broadcast_arrays(np.asarray(x, np.int64), np.asarray(origin, np.int64))
    if width.months > 0:
        day = (x // MICROSECONDS_A_DAY).astype(np.int32)
        first = (origin // MICROSECONDS_A_DAY).astype(np.int32)
        place = calendar.year(day).astype(np.int64) * 12 + calendar.month(day) - 1
        zero = calendar.year(first).astype(np.int64) * 12 + calendar.month(first) - 1
        start = place - np.mod(place - zero, width.months)
        days = calendar.days(start // 12, start % 12 + 1, np.ones_like(start)).astype(np.int64)
        with np.errstate(all="ignore"):
            value = days * MICROSECONDS_A_DAY
        return value, np.abs(days) < 106751992
    size = max(1, width.days * MICROSECONDS_A_DAY + width.microseconds)
    exact = [a - (a - b) % size for a, b in zip(x.reshape(-1).tolist(), origin.reshape(-1).tolist(), strict=True)]
    fits = np.array([abs(value) < INFINITE_MICROSECONDS for value in exact], bool).reshape(x.shape)
    wrapped = [(value + (1 << 63)) % (1 << 64) - (1 << 63) for value in exact]
    return np.array(wrapped, np.int64).reshape(x.shape), fits


def _is_width(width: Interval) -> bool:
    """Months alone, or days and microseconds; more than none."""
    if width.months:
        return width.months > 0 and not width.days and not width.microseconds
    return width.days * MICROSECONDS_A_DAY + width.microseconds > 0


def _bucket_fits(x: Array, origin: Array, width: Interval) -> Array:
    if not _is_width(width):
        return np.zeros(np.shape(x), bool)
    return infinite_timestamp(x) | _bucket(x, origin, width)[1]


@scalar(
    "TIMESTAMP, TIMESTAMP, INTERVAL -> TIMESTAMP",
    cpp="bucket_start(x, origin, width_months, width_days, width_microseconds)",
    domain=(
        "bucket_fits(x, origin, width_months, width_days, width_microseconds)",
        _bucket_fits,
        "time_bucket out of range",
    ),
    null_when=(
        "is_infinite_timestamp(origin)",
        lambda x, origin, width: infinite_timestamp(origin) | np.zeros(np.shape(x), bool),
    ),
    monotone=True,
)
def bucket_start(x: Array, origin: Array, width: Interval) -> Array:
    """Start of the bucket of a width that x lies in, where one starts at origin; what time_bucket is made of.

    >>> sql("SELECT bucket_start(TIMESTAMP '2013-07-04 05:06:07', TIMESTAMP '2000-01-03 00:00:00', INTERVAL 15 MINUTES)")
    2013-07-04 05:00:00
    """
    return np.where(infinite_timestamp(x), x, _bucket(x, origin, width)[0])


# months count from 2000-01, all else from the first Monday of that month
ORIGIN = "TIMESTAMP '2000-01-03 00:00:00'"
typed_macro(
    "time_bucket",
    "INTERVAL, TIMESTAMP -> TIMESTAMP",
    "width, x",
    f"bucket_start(x, {ORIGIN}, width)",
    doc=_doc(
        "Start of the bucket of a width that x lies in, where one starts at an origin or is moved by an offset.",
        "time_bucket(INTERVAL 15 MINUTES, TIMESTAMP '2013-07-04 05:16:07')",
        "2013-07-04 05:15:00",
    ),
)
typed_macro(
    "time_bucket", "INTERVAL, TIMESTAMP, TIMESTAMP -> TIMESTAMP", "width, x, origin", "bucket_start(x, origin, width)"
)
typed_macro(
    "time_bucket",
    "INTERVAL, TIMESTAMP, INTERVAL -> TIMESTAMP",
    "width, x, offset_",
    f"add_interval(bucket_start(subtract_interval(x, offset_), {ORIGIN}, width), offset_)",
)
typed_macro(
    "time_bucket",
    "INTERVAL, DATE -> DATE",
    "width, x",
    f"CAST(bucket_start(CAST(x AS TIMESTAMP), {ORIGIN}, width) AS DATE)",
)
typed_macro(
    "time_bucket",
    "INTERVAL, DATE, DATE -> DATE",
    "width, x, origin",
    "CAST(bucket_start(CAST(x AS TIMESTAMP), CAST(origin AS TIMESTAMP), width) AS DATE)",
)
typed_macro(
    "time_bucket",
    "INTERVAL, DATE, INTERVAL -> DATE",
    "width, x, offset_",
    f"CAST(add_interval(bucket_start(subtract_interval(x, offset_), {ORIGIN}, width), offset_) AS DATE)",
)


# --- formatting and parsing -----------------------------------------------------------------------------------------

_SHORT = tuple(name[:3] for name in DAYS), tuple(name[:3] for name in MONTHS)


def _iso_week(days: int) -> tuple[int, int]:
    """(ISO year, week)."""
    thursday = days - (days + 3) % 7 + 3
    year = civil(thursday)[0]
    return year, (thursday - days_of(year, 1, 1)) // 7 + 1


class Fields:
    """A moment taken apart once, for as many letters of a format as ask."""

    def __init__(self, days: int, time: int) -> None:
        self.days, self.time = days, time
        self.year, self.month, self.day = civil(self.days)
        self.seconds, self.fraction = divmod(self.time, 1_000_000)
        self.hour, self.minute, self.second = self.seconds // 3600, self.seconds // 60 % 60, self.seconds % 60
        self.weekday = (self.days + 4) % 7  # Sunday is 0

    @property
    def day_of_year(self) -> int:
        """1 to 366."""
        return self.days - days_of(self.year, 1, 1) + 1

    @property
    def hour_of_12(self) -> int:
        """1 to 12."""
        return (self.hour + 11) % 12 + 1


def _year(value: int) -> str:
    return f"{value:04}" if value >= 0 else str(value)


_FORMATS: dict[str, Callable[[Fields], str]] = {
    "a": lambda f: _SHORT[0][f.weekday],
    "A": lambda f: DAYS[f.weekday],
    "w": lambda f: str(f.weekday),
    "u": lambda f: str((f.weekday + 6) % 7 + 1),
    "d": lambda f: f"{f.day:02}",
    "-d": lambda f: str(f.day),
    "b": lambda f: _SHORT[1][f.month - 1],
    "h": lambda f: _SHORT[1][f.month - 1],
    "B": lambda f: MONTHS[f.month - 1],
    "m": lambda f: f"{f.month:02}",
    "-m": lambda f: str(f.month),
    "y": lambda f: f"{abs(f.year) % 100:02}",
    "-y": lambda f: str(abs(f.year) % 100),
    "Y": lambda f: _year(f.year),
    "G": lambda f: _year(_iso_week(f.days)[0]),
    "V": lambda f: f"{_iso_week(f.days)[1]:02}",
    "H": lambda f: f"{f.hour:02}",
    "-H": lambda f: str(f.hour),
    "I": lambda f: f"{f.hour_of_12:02}",
    "-I": lambda f: str(f.hour_of_12),
    "p": lambda f: "PM" if f.hour >= 12 else "AM",
    "M": lambda f: f"{f.minute:02}",
    "-M": lambda f: str(f.minute),
    "S": lambda f: f"{f.second:02}",
    "-S": lambda f: str(f.second),
    "f": lambda f: f"{f.fraction:06}",
    "n": lambda f: f"{f.fraction * 1000:09}",
    "g": lambda f: f"{f.fraction // 1000:03}",
    "z": lambda f: "+00",
    "Z": lambda f: "",
    "j": lambda f: f"{f.day_of_year:03}",
    "-j": lambda f: str(f.day_of_year),
    "U": lambda f: f"{(f.day_of_year + 6 - f.weekday) // 7:02}",
    "W": lambda f: f"{(f.day_of_year + 6 - (f.weekday + 6) % 7) // 7:02}",
}
_ABBREVIATIONS = {"c": "%Y-%m-%d %H:%M:%S", "x": "%Y-%m-%d", "X": "%H:%M:%S", "T": "%H:%M:%S"}


@lru_cache(maxsize=64)
def _pieces(pattern: str) -> tuple[str, ...]:
    """A format as literal texts and letters, in turns: ("", "Y", "-", "m", "")."""
    if not pattern:
        raise DataError("empty format of a date")
    pieces, literal, place = [], "", 0
    while place < len(pattern):
        character = pattern[place]
        place += 1
        if character != "%":
            literal += character
            continue
        letter = pattern[place : place + 1]
        if letter == "-":
            letter = pattern[place : place + 2]
        place += len(letter)
        if letter == "%":
            literal += "%"
        elif letter in _ABBREVIATIONS:
            inner = _pieces(_ABBREVIATIONS[letter])
            pieces += [literal + inner[0], *inner[1:-1]]
            literal = inner[-1]
        elif letter in _FORMATS:
            pieces += [literal, letter]
            literal = ""
        else:
            raise DataError(f"unknown letter of a date format: %{letter} in {pattern}")
    return (*pieces, literal)


_PARTS = dict.fromkeys(("H", "-H", "I", "-I", "p"), 3_600_000_000) | {"M": 60_000_000, "-M": 60_000_000}
_PARTS |= {"S": 1_000_000, "-S": 1_000_000, "f": 1, "n": 1, "g": 1}
"""What a letter looks at: the microseconds of the part of the day that decides its text; any other looks at the day."""
_LONGER = {1: 1_000_000, 1_000_000: 60_000_000, 60_000_000: 3_600_000_000, 3_600_000_000: MICROSECONDS_A_DAY}


def _format_all(days: np.ndarray, time: np.ndarray, pattern: str) -> pa.Array:
    """(rows,) texts of days and microseconds of the day, by a format.

    A letter is decided by the day, hour, minute, second or fraction alone.  So neighbours that look at the same part are
    written once for each value of it, and then put together for every row.
    """
    pieces = _pieces(pattern)
    runs: list[tuple[int, list[tuple[str, str]]]] = []  # (part, [(literal text before, letter)])
    for literal, letter in zip(pieces[0::2], pieces[1::2], strict=False):
        part = _PARTS.get(letter, 0)
        if not runs or runs[-1][0] != part:
            runs.append((part, []))
        runs[-1][1].append((literal, letter))
    texts = []
    for part, letters in runs:
        values = days if part == 0 else time % _LONGER[part] // part
        distinct, place = np.unique(values, return_inverse=True)
        moments = [Fields(value, 0) if part == 0 else Fields(0, value * part) for value in distinct.tolist()]
        written = ["".join(literal + _FORMATS[letter](moment) for literal, letter in letters) for moment in moments]
        texts.append(pa.array(written, pa.string()).take(pa.array(place.reshape(-1))))
    return compute.binary_join_element_wise(*texts, text_array(pieces[-1], len(days)), "")


def _formatted(x: Any, pattern: Any, infinite: int, day: int) -> pa.Array:
    """(rows,) texts of x, which counts so many units a day, by a format (or formats); infinities have names."""
    if not (isinstance(x, pa.Array) and isinstance(pattern, str)):

        def one(value: int, some: str) -> str:
            text: str = _formatted(pa.array([value], pa.int64()), some, infinite, day)[0].as_py()
            return text

        return per_row(one, VARCHAR, x, pattern)
    count = np.asarray(x.cast(pa.int32() if pa.types.is_date32(x.type) else pa.int64())).astype(np.int64)
    finite = (count > -infinite) & (count < infinite)
    usual = np.where(finite, count, 0)
    text = _format_all(usual // day, usual % day * (MICROSECONDS_A_DAY // day), pattern)
    if finite.all():
        return text
    names = pa.array(np.where(count[~finite] > 0, "infinity", "-infinity"), pa.string())
    return compute.replace_with_mask(text, pa.array(~finite), names)


@text("TIMESTAMP, VARCHAR -> VARCHAR")
def strftime(x: Any, pattern: Any) -> pa.Array:
    """A date or timestamp as text by a format, whose letters are C's.

    >>> sql("SELECT strftime(DATE '2013-07-04', '%d.%m.%Y, a %A')")
    04.07.2013, a Thursday
    """
    return _formatted(x, pattern, INFINITE_MICROSECONDS, MICROSECONDS_A_DAY)


@text("DATE, VARCHAR -> VARCHAR", name="strftime", more=True)
def _strftime_date(x: Any, pattern: Any) -> pa.Array:
    return _formatted(x, pattern, INFINITE_DAYS, 1)


typed_macro("strftime", "VARCHAR, TIMESTAMP -> VARCHAR; VARCHAR, DATE -> VARCHAR", "pattern, x", "strftime(x, pattern)")


def _read(value: str, pattern: str) -> int | None:
    """Microseconds of a text by a format; None where it does not fit it."""
    _pieces(pattern)
    special = {"infinity": INFINITE_MICROSECONDS, "-infinity": -INFINITE_MICROSECONDS, "epoch": 0}
    word = value.strip(SPACES).lower()
    return special[word] if word in special else _Reader(value).read(pattern)


class _Reader:
    """Walks along a text and a format together."""

    def __init__(self, value: str) -> None:
        self.value, self.place = value, 0

    def number(self, digits: int) -> int | None:
        """Up to so many digits."""
        start = self.place
        while self.place < min(len(self.value), start + digits) and self.value[self.place] in "0123456789":
            self.place += 1
        return int(self.value[start : self.place]) if self.place > start else None

    def word(self, words: tuple[str, ...]) -> int | None:
        """Which of some words stands here, in any case."""
        for index, word in enumerate(words):
            if self.value[self.place : self.place + len(word)].lower() == word.lower():
                self.place += len(word)
                return index
        return None

    def literal(self, piece: str) -> bool:
        """Step over a text; a space in it stands for any number of them."""
        for character in piece:
            if character.isspace():
                if self.value[self.place : self.place + 1].strip():
                    return False
                while self.place < len(self.value) and self.value[self.place].isspace():
                    self.place += 1
            elif self.value[self.place : self.place + 1] == character:
                self.place += 1
            else:
                return False
        return True

    def read(self, pattern: str) -> int | None:
        """The whole text by the whole format."""
        self.value = self.value.strip(SPACES)
        found: dict[str, int] = {}
        for place, piece in enumerate(_pieces(pattern)):
            if place % 2 == 0:
                if not self.literal(piece):
                    return None
            elif not self.field(piece.removeprefix("-"), found):
                return None
        return _moment(found) if self.place == len(self.value) else None

    def field(self, letter: str, found: dict[str, int]) -> bool:
        """Read one letter's value."""
        limits = {
            "d": (2, 1, 31),
            "m": (2, 1, 12),
            "H": (2, 0, 23),
            "I": (2, 1, 12),
            "M": (2, 0, 59),
            "S": (2, 0, 59),
            "j": (3, 1, 366),
        }
        limits |= {"U": (2, 0, 53), "W": (2, 0, 53), "V": (2, 1, 53), "u": (1, 1, 7), "w": (1, 0, 6), "y": (2, 0, 99)}
        value: int | None
        if letter in limits:
            digits, low, high = limits[letter]
            value = self.number(digits)
            if value is None or not low <= value <= high:
                return False
        elif letter in ("Y", "G"):
            value = self.number(4)
        elif letter in ("f", "g"):
            digits = {"f": 6, "g": 3}[letter]
            start = self.place
            value = self.number(digits)
            if value is not None:
                value *= 10 ** (6 - (self.place - start))
                letter = "f"
        elif letter in ("a", "A"):
            value = self.word(_SHORT[0] if letter == "a" else DAYS)
            letter = "a"
        elif letter in ("b", "h", "B"):
            value = self.word(MONTHS if letter == "B" else _SHORT[1])
            value, letter = (None if value is None else value + 1), "m"
        elif letter == "p":
            value = self.word(("AM", "PM"))
        else:
            raise NotSupportedError(f"a time zone or nanoseconds in the format of strptime: %{letter}")
        if value is None:
            return False
        found[letter] = value
        return True


def _day_of_week(found: dict[str, int], year: int, otherwise: int) -> int:
    """The day that a week number and a weekday name; `otherwise` where no week was read."""
    sunday_first = found["w"] if "w" in found else found.get("u", 7) % 7  # 0 to 6 from Sunday
    monday_first = (sunday_first - 1) % 7 if "w" in found or "u" in found else 0
    if "G" in found or "V" in found:
        fourth = days_of(found.get("G", year), 1, 4)
        return fourth - (fourth + 3) % 7 + 7 * (found.get("V", 1) - 1) + monday_first
    first = days_of(year, 1, 1)
    if "W" in found:
        return first + (-(first + 3)) % 7 + 7 * (found["W"] - 1) + monday_first
    if "U" in found:
        return first + (-(first + 4)) % 7 + 7 * (found["U"] - 1) + sunday_first
    return otherwise


def _moment(found: dict[str, int]) -> int | None:
    """Microseconds of the fields read; those not read are those of 1900-01-01 00:00:00."""
    year = found.get("Y", 1900)
    if "y" in found:
        year = found["y"] + (1900 if found["y"] >= 69 else 2000)
    month, day = found.get("m", 1), found.get("d", 1)
    if not 1 <= day <= days_in_month(year, month):
        return None
    days = days_of(year, month, day)
    if "j" in found:
        if found["j"] > 365 + (days_in_month(year, 2) == 29):
            return None
        days = days_of(year, 1, 1) + found["j"] - 1
    elif "m" not in found and "d" not in found:
        days = _day_of_week(found, year, days)
    hour = found.get("H", 0)
    if "I" in found:
        hour = found["I"] % 12
    if "p" in found:
        if hour > 12:
            return None
        hour = hour % 12 + 12 * found["p"]
    microseconds = ((days * 24 + hour) * 60 + found.get("M", 0)) * 60_000_000
    microseconds += found.get("S", 0) * 1_000_000 + found.get("f", 0)
    return microseconds if abs(microseconds) < INFINITE_MICROSECONDS else None


@text("VARCHAR, VARCHAR -> TIMESTAMP")
def strptime(string: Any, pattern: Any) -> pa.Array:
    """The TIMESTAMP that a text names by a format.  Fails where it does not fit.

    >>> sql("SELECT strptime('04.07.2013 17:30', '%d.%m.%Y %H:%M')")
    2013-07-04 17:30:00
    """

    def one(value: str, some: str) -> int:
        found = _read(value, some)
        if found is None:
            raise ConversionError(f"text does not fit the format {some!r}: {value!r}")
        return found

    return per_row(one, TIMESTAMP, string, pattern)


@text("VARCHAR, VARCHAR -> TIMESTAMP")
def try_strptime(string: Any, pattern: Any) -> pa.Array:
    """As strptime; NULL where the text does not fit.

    >>> sql("SELECT try_strptime('yesterday', '%d.%m.%Y')")
    NULL
    """
    return per_row(_read, TIMESTAMP, string, pattern)
