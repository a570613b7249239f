"""Civil dates in NumPy: the functions of kernels/calendar.cuh, over day numbers since 1970-01-01.

Arguments are integer scalars or arrays that broadcast; results are int32 arrays (bool for `fits` and `add_months_fits`).
Every int32 day number is right: years -5877641 to 5881580 of the proleptic Gregorian calendar, with a year 0.  Work is
done in int64 with floored division; a result past int32 wraps, as in the kernels, and `fits` tells beforehand.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Days = NDArray[np.int32]
Wide = NDArray[np.int64]

MICROSECONDS_A_DAY = 86_400_000_000
DAYS_OF_400_YEARS = 146097
MARCH_OF_YEAR_0 = -719468
FIRST_DAY = -2147483646  # the finite days; beyond are DuckDB's infinities
LAST_DAY = 2147483646
MONTHS_PAST_ALL = 200_000_000


class _March(NamedTuple):
    """The civil year of the 1 March before the day, (rows,) int64, and days since that 1 March, (rows,) int32."""

    year: Wide
    from_march: Days


def _wide(values: ArrayLike) -> Wide:
    return np.asarray(values).astype(np.int64)


def _narrow(values: Any) -> Days:
    """To int32, wrapping."""
    return np.asarray(values, np.int64).astype(np.int32)


def _split(days_: ArrayLike) -> _March:
    since = _wide(days_) - MARCH_OF_YEAR_0
    era = since // DAYS_OF_400_YEARS
    of_era = (since - era * DAYS_OF_400_YEARS).astype(np.int32)  # divided in half the time
    century = (4 * of_era + 3) // DAYS_OF_400_YEARS
    of_century = of_era - DAYS_OF_400_YEARS * century // 4
    year_ = (4 * of_century + 3) // 1461
    return _March(400 * era + (100 * century + year_), of_century - 1461 * year_ // 4)


def _month_from_march(from_march: Days) -> Days:
    return (5 * from_march + 2) // 153


def _towards_zero(value: Wide, divisor: int) -> Wide:
    return np.sign(value) * (np.abs(value) // divisor)


def _civil(days_: ArrayLike) -> tuple[Wide, Days, Days]:
    """Year, month 1 .. 12, day 1 .. 31."""
    march = _split(days_)
    month_ = _month_from_march(march.from_march)
    day_ = march.from_march - (153 * month_ + 2) // 5 + 1
    return march.year + (month_ >= 10), np.where(month_ < 10, month_ + 3, month_ - 9), day_


def year(days_: ArrayLike) -> Days:
    """The civil year; 0 is 1 BC."""
    return _narrow(_civil(days_)[0])


def month(days_: ArrayLike) -> Days:
    """1 .. 12"""
    return _narrow(_civil(days_)[1])


def day(days_: ArrayLike) -> Days:
    """Day of the month, 1 .. 31."""
    return _narrow(_civil(days_)[2])


def quarter(days_: ArrayLike) -> Days:
    """1 .. 4"""
    return _narrow((_civil(days_)[1] + 2) // 3)


def day_of_year(days_: ArrayLike) -> Days:
    """1 .. 366"""
    march = _split(days_)
    later = march.from_march + 60 + is_leap(march.year)
    return _narrow(np.where(march.from_march >= 306, march.from_march - 305, later))


def is_leap(year_: ArrayLike) -> Days:
    """1 for a leap year, else 0."""
    wide = _wide(year_)
    return _narrow((wide % 4 == 0) & ((wide % 100 != 0) | (wide % 400 == 0)))


def day_of_week(days_: ArrayLike) -> Days:
    """Sunday = 0 .. Saturday = 6."""
    return _narrow((_wide(days_) + 4) % 7)


def iso_day_of_week(days_: ArrayLike) -> Days:
    """Monday = 1 .. Sunday = 7."""
    return _narrow((_wide(days_) + 3) % 7 + 1)


def iso_year(days_: ArrayLike) -> Days:
    """The year that has the Thursday of the day's week."""
    return _narrow(_civil(_thursday(days_))[0])


def iso_week(days_: ArrayLike) -> Days:
    """1 .. 53"""
    return _narrow((_wide(day_of_year(_thursday(days_))) - 1) // 7 + 1)


def _thursday(days_: ArrayLike) -> Wide:
    """The Thursday of the same week; int64, so that the last days of the range have one."""
    wide = _wide(days_)
    return wide - (wide + 3) % 7 + 3


def decade(days_: ArrayLike) -> Days:
    """Years by 10, towards 0: years -9 to 9 are decade 0."""
    return _narrow(_towards_zero(_civil(days_)[0], 10))


def century(days_: ArrayLike) -> Days:
    """Years 1 to 100 are century 1, years 0 to -99 are century -1."""
    return _narrow(_ordinal_period(_civil(days_)[0], 100))


def millennium(days_: ArrayLike) -> Days:
    """Years 1 to 1000 are millennium 1, years 0 to -999 are millennium -1."""
    return _narrow(_ordinal_period(_civil(days_)[0], 1000))


def _ordinal_period(year_: Wide, length: int) -> Wide:
    return np.where(year_ > 0, (year_ - 1) // length + 1, _towards_zero(year_, length) - 1)


def month_length(year_: ArrayLike, month_: ArrayLike) -> Days:
    """28 .. 31, for a month 1 .. 12."""
    wide = _wide(month_)
    return _narrow(np.where(wide == 2, 28 + is_leap(year_), 30 + ((wide ^ (wide >> 3)) & 1)))


def _day_number(year_: Wide, month_: Wide, day_: Wide) -> Wide:
    early = month_ <= 2
    march_year = year_ - early
    era, of_era = march_year // 400, march_year % 400
    from_march = (153 * (month_ - 3 + 12 * early) + 2) // 5 + day_ - 1
    in_era = 365 * of_era + of_era // 4 - of_era // 100 + from_march
    return era * DAYS_OF_400_YEARS + in_era + MARCH_OF_YEAR_0


def days(year_: ArrayLike, month_: ArrayLike, day_: ArrayLike) -> Days:
    """The day number of a date whose month is 1 .. 12; wraps where it does not fit."""
    return _narrow(_day_number(_wide(year_), _wide(month_), _wide(day_)))


def _is_finite(day_number: Wide) -> NDArray[np.bool_]:
    return (day_number >= FIRST_DAY) & (day_number <= LAST_DAY)


def fits(year_: ArrayLike, month_: ArrayLike, day_: ArrayLike) -> NDArray[np.bool_]:
    """Whether the date has a finite day number, -2147483646 .. 2147483646."""
    return _is_finite(_day_number(_wide(year_), _wide(month_), _wide(day_)))


def last_day(days_: ArrayLike) -> Days:
    """The last day of the day's month."""
    year_, month_, day_ = _civil(days_)
    return _narrow(_wide(days_) + month_length(year_, month_) - day_)


def _later(days_: ArrayLike, months: ArrayLike) -> Wide:
    year_, month_, day_ = _civil(days_)
    number = year_ * 12 + (month_ - 1) + np.clip(_wide(months), -MONTHS_PAST_ALL, MONTHS_PAST_ALL)
    target_year, target_month = number // 12, number % 12 + 1
    return _day_number(target_year, target_month, np.minimum(day_, month_length(target_year, target_month)))


def add_months(days_: ArrayLike, months: ArrayLike) -> Days:
    """The same day `months` later, or the last of a month that is too short; wraps where it does not fit."""
    return _narrow(_later(days_, months))


def add_months_fits(days_: ArrayLike, months: ArrayLike) -> NDArray[np.bool_]:
    """Whether `add_months` has a finite day number to give."""
    return _is_finite(_later(days_, months))


def trunc_week(days_: ArrayLike) -> Days:
    """Monday of the week."""
    return _narrow(_thursday(days_) - 3)


def trunc_month(days_: ArrayLike) -> Days:
    """The first of the month."""
    return _narrow(_wide(days_) - _civil(days_)[2] + 1)


def trunc_quarter(days_: ArrayLike) -> Days:
    """The first of January, April, July or October."""
    year_, month_, _ = _civil(days_)
    return _narrow(_day_number(year_, month_ - (month_ - 1) % 3, np.ones_like(year_)))


def trunc_year(days_: ArrayLike) -> Days:
    """The first of January."""
    return _trunc_years(days_, 1)


def trunc_decade(days_: ArrayLike) -> Days:
    """The first of January of a year that ends in 0; years round towards 0, so -5 truncates to 0."""
    return _trunc_years(days_, 10)


def trunc_century(days_: ArrayLike) -> Days:
    """The first of January of a year that ends in 00, not 01."""
    return _trunc_years(days_, 100)


def trunc_millennium(days_: ArrayLike) -> Days:
    """The first of January of a year that ends in 000."""
    return _trunc_years(days_, 1000)


def _trunc_years(days_: ArrayLike, length: int) -> Days:
    year_ = _towards_zero(_civil(days_)[0], length) * length
    return _narrow(_day_number(year_, np.ones_like(year_), np.ones_like(year_)))
