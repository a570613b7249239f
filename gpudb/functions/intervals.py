"""INTERVAL: its parts, and what orders it.  Everything else is SQL over the parts, which overflow as integers do.

A signature says SPAN for an INTERVAL that differs from row to row; INTERVAL there is a constant (`gpudb.functions.registry`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpudb.calendar import MICROSECONDS_A_DAY
from gpudb.functions import date
from gpudb.functions.interval_values import packed, packed_wrapping, unpacked
from gpudb.functions.registry import scalar, typed_macro
from gpudb.types import Interval

Array = Any
_MOST = (1 << 31) * 31 * MICROSECONDS_A_DAY + (1 << 63)


def _each(x: Array, part: str) -> Array:
    bits = np.asarray(x, object)
    found = np.array([getattr(unpacked(int(value)), part) for value in bits.reshape(-1)], np.int64)
    return found.reshape(bits.shape)


def _fit(months: Array, days: Array, microseconds: Array) -> Array:
    months, days = np.asarray(months, np.int64), np.asarray(days, np.int64)
    return (np.abs(months + (months < 0)) < 1 << 31) & (np.abs(days + (days < 0)) < 1 << 31)


@scalar(
    "BIGINT, BIGINT, BIGINT -> SPAN",
    cpp="interval_of(months, days, microseconds)",
    domain=("months == int32(months) && days == int32(days)", _fit, "interval out of range"),
)
def interval_of(months: Array, days: Array, microseconds: Array) -> Array:
    """An INTERVAL of its parts.

    >>> sql("SELECT interval_of(14, 3, 1500000)")
    1 year 2 months 3 days 00:00:01.5
    """
    months, days, microseconds = np.broadcast_arrays(
        *(np.asarray(part, np.int64) for part in (months, days, microseconds))
    )
    flat = zip(months.reshape(-1).tolist(), days.reshape(-1).tolist(), microseconds.reshape(-1).tolist(), strict=True)
    found = np.empty(months.size, object)
    found[:] = [packed(Interval(*parts)) for parts in flat]
    return found.reshape(months.shape)


@scalar("SPAN -> BIGINT", cpp="interval_months(x)", bounds=(-(1 << 31), (1 << 31) - 1))
def interval_months(x: Array) -> Array:
    """The months of an INTERVAL, years included.

    >>> sql("SELECT interval_months(INTERVAL '14 months 3 days')")
    14
    """
    return _each(x, "months")


@scalar("SPAN -> BIGINT", cpp="interval_days(x)", bounds=(-(1 << 31), (1 << 31) - 1))
def interval_days(x: Array) -> Array:
    """The days of an INTERVAL.

    >>> sql("SELECT interval_days(INTERVAL '14 months 3 days')")
    3
    """
    return _each(x, "days")


@scalar("SPAN -> BIGINT", cpp="interval_microseconds(x)")
def interval_microseconds(x: Array) -> Array:
    """The microseconds of an INTERVAL, hours included.

    >>> sql("SELECT interval_microseconds(INTERVAL '1 day 00:00:03')")
    3000000
    """
    return _each(x, "microseconds")


@scalar("SPAN -> HUGEINT", cpp="interval_order(x)", bounds=(-_MOST, _MOST))
def interval_order(x: Array) -> Array:
    """What INTERVALs compare by: microseconds, where a month counts 30 days and a day 24 hours.

    >>> sql("SELECT interval_order(INTERVAL '1 month 1 microsecond')")
    2592000000001
    """
    months, days, microseconds = (_each(x, part).astype(object) for part in ("months", "days", "microseconds"))
    return (months * 30 + days) * MICROSECONDS_A_DAY + microseconds


def _finite(stop: Array, start: Array) -> Array:
    return ~(date.infinite_timestamp(stop) | date.infinite_timestamp(start))


@scalar(
    "TIMESTAMP, TIMESTAMP -> SPAN",
    cpp="interval_between(stop, start)",
    domain=(
        "!is_infinite_timestamp(stop) && !is_infinite_timestamp(start)",
        _finite,
        "infinite timestamps have no difference",
    ),
)
def interval_between(stop: Array, start: Array) -> Array:
    """The operator stop - start: whole days, and the rest.

    >>> sql("SELECT TIMESTAMP '2013-07-04 12:00:00' - TIMESTAMP '2013-07-01 00:00:00'")
    3 days 12:00:00
    """
    stop, start = np.broadcast_arrays(np.asarray(stop, object), np.asarray(start, object))
    found = np.empty(stop.size, object)
    for row, (last, first) in enumerate(zip(stop.reshape(-1), start.reshape(-1), strict=True)):
        days, rest = divmod(abs(int(last) - int(first)), MICROSECONDS_A_DAY)
        sign = 1 if last >= first else -1
        found[row] = packed(Interval(0, sign * days, sign * rest))
    return found.reshape(stop.shape)


def _moved(x: Array, interval: Array, sign: int, function: Any) -> Array:
    """A function of timestamps and one INTERVAL for each of several, those that are alike together."""
    x, interval = np.broadcast_arrays(np.asarray(x, np.int64), np.asarray(interval, object))
    result: Array = None
    for bits in set(interval.reshape(-1).tolist()):
        parts = unpacked(int(bits))  # the opposite of the lowest number is itself, as in the kernels
        given = parts if sign > 0 else unpacked(packed_wrapping(-parts.months, -parts.days, -parts.microseconds))
        rows = interval == bits
        found = function(x[rows], given)
        if result is None:
            result = np.zeros(x.shape, np.asarray(found).dtype)
        result[rows] = found
    return np.zeros(x.shape, np.int64) if result is None else result


def _overload_of_spans(name: str, sign: int) -> None:
    """add_interval or subtract_interval of an INTERVAL that differs from row to row."""

    def body(x: Array, interval: Array) -> Array:
        return _moved(x, interval, sign, date.add_interval)

    def fits(x: Array, interval: Array) -> Array:
        return _moved(x, interval, sign, date.interval_fits)

    form = "wrapping_negate(interval_{}(interval))" if sign < 0 else "interval_{}(interval)"
    parts = ", ".join(form.format(part) for part in ("months", "days", "microseconds"))
    domain = f"add_interval_fits(x, {parts})", fits, "timestamp out of range"
    scalar("TIMESTAMP, SPAN -> TIMESTAMP", cpp=f"add_interval(x, {parts})", name=name, more=True, domain=domain)(body)


_overload_of_spans("add_interval", 1)
_overload_of_spans("subtract_interval", -1)

_MONTHS, _DAYS, _MICROSECONDS = "interval_months(x)", "interval_days(x)", "interval_microseconds(x)"
for _part, _sql in (
    ("year", f"{_MONTHS} // 12"), ("month", f"{_MONTHS} % 12"), ("quarter", f"{_MONTHS} % 12 // 3 + 1"), ("day", _DAYS),
    ("decade", f"{_MONTHS} // 120"), ("century", f"{_MONTHS} // 1200"), ("millennium", f"{_MONTHS} // 12000"),
    ("hour", f"{_MICROSECONDS} // 3600000000"), ("minute", f"{_MICROSECONDS} % 3600000000 // 60000000"),
    ("second", f"{_MICROSECONDS} % 60000000 // 1000000"), ("millisecond", f"{_MICROSECONDS} % 60000000 // 1000"),
    ("microsecond", f"{_MICROSECONDS} % 60000000"),
):  # fmt: skip
    typed_macro(f"date_part_{_part}", "SPAN -> BIGINT", "x", _sql)
typed_macro(
    "date_part_epoch", "SPAN -> DOUBLE", "x",
    f"({_MONTHS} // 12 * 365.25::DOUBLE + {_MONTHS} % 12 * 30 + {_DAYS}) * 86400 + {_MICROSECONDS} / 1e6",
)  # fmt: skip
for _name, _unit in (("epoch_us", 1), ("epoch_ms", 1000)):
    typed_macro(_name, "SPAN -> BIGINT", "x", f"CAST(interval_order(x) // {_unit} AS BIGINT)")
