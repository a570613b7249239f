"""TIME: microseconds since midnight, up to 24:00:00.  All but three functions are SQL over their number."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpudb.calendar import MICROSECONDS_A_DAY
from gpudb.functions import date
from gpudb.functions.registry import scalar, typed_macro

Array = Any


@scalar("TIME -> BIGINT", cpp="x", name="epoch_us", more=True, bounds=(0, MICROSECONDS_A_DAY), monotone=True)
def _microseconds(x: Array) -> Array:
    return x


def _is_time(x: Array) -> Array:
    x = np.asarray(x)
    return (x >= 0) & (x <= MICROSECONDS_A_DAY)


@scalar(
    "BIGINT -> TIME",
    cpp="x",
    domain=(f"x >= 0 && x <= {MICROSECONDS_A_DAY}ll", _is_time, "time out of range"),
    monotone=True,
)
def time_of_microseconds(x: Array) -> Array:
    """The TIME so many microseconds after midnight; what arithmetic of times is made of.

    >>> sql("SELECT time_of_microseconds(3661000000)")
    01:01:01
    """
    return x


@scalar(
    "TIMESTAMP -> TIME",
    cpp=f"time_part<1, {MICROSECONDS_A_DAY}ll>(x)",
    domain=("!is_infinite_timestamp(x)", lambda x: ~date.infinite_timestamp(x), "an infinite TIMESTAMP has no TIME"),
)
def timestamp_as_time(x: Array) -> Array:
    """CAST(x AS TIME).

    >>> sql("SELECT timestamp_as_time(TIMESTAMP '2013-07-04 05:06:07.089')")
    05:06:07.089
    """
    return np.mod(np.asarray(x, np.int64), MICROSECONDS_A_DAY)


def _parts_are_time(hour: Array, minute: Array, second: Array) -> Array:
    return date.time_of(hour, minute, second) >= 0


@scalar(
    "BIGINT, BIGINT, DOUBLE -> TIME",
    cpp="time_of(hour, minute, second)",
    domain=("time_of(hour, minute, second) >= 0", _parts_are_time, "time out of range"),
)
def make_time(hour: Array, minute: Array, second: Array) -> Array:
    """A TIME of its parts.

    >>> sql("SELECT make_time(5, 6, 7.5)")
    05:06:07.5
    """
    return date.time_of(hour, minute, second)


for _part, _sql in (
    ("hour", "epoch_us(x) // 3600000000"),
    ("minute", "epoch_us(x) // 60000000 % 60"),
    ("second", "epoch_us(x) // 1000000 % 60"),
    ("millisecond", "epoch_us(x) % 60000000 // 1000"),
    ("microsecond", "epoch_us(x) % 60000000"),
    *((part, "epoch_us(x) * 0") for part in ("timezone", "timezone_hour", "timezone_minute")),
):
    typed_macro(f"date_part_{_part}", "TIME -> BIGINT", "x", _sql)
typed_macro("date_part_epoch", "TIME -> DOUBLE", "x", "epoch_us(x) / 1e6")
typed_macro("epoch_ms", "TIME -> BIGINT", "x", "epoch_us(x) // 1000")

for _part, _unit in (
    ("hour", 3_600_000_000), ("minute", 60_000_000), ("second", 1_000_000), ("millisecond", 1000), ("microsecond", 1),
):  # fmt: skip
    typed_macro(
        f"date_diff_{_part}", "TIME, TIME -> BIGINT", "start, stop",
        f"epoch_us(stop) // {_unit} - epoch_us(start) // {_unit}",
    )  # fmt: skip
    typed_macro(
        f"date_sub_{_part}", "TIME, TIME -> BIGINT", "start, stop", f"(epoch_us(stop) - epoch_us(start)) // {_unit}"
    )
