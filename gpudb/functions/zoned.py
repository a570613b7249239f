"""TIMESTAMP WITH TIME ZONE: microseconds of UTC, which a session reads and shows in a zone.

`at_time_zone` is the step between a moment and what a zone's clocks show; the opcode ZoneOffset does it where the zone is a
constant.  Everything else is SQL over that: a part of a moment is the part of the TIMESTAMP that the session's clocks show,
a difference in hours is one in UTC.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from gpudb import compute
from gpudb.errors import ConversionError, NotSupportedError, OutOfRangeError
from gpudb.functions import date
from gpudb.functions.cast_text import (
    INFINITE_MICROSECONDS,
    SPACES,
    parse_timestamp,
    print_timestamp,
    print_values,
    zone_at,
)
from gpudb.functions.registry import FUNCTIONS, text, typed_macro
from gpudb.functions.rows import per_row
from gpudb.time_zones import offsets, zone
from gpudb.types import TIMESTAMP, TIMESTAMPTZ, VARCHAR, SqlType

LAST = INFINITE_MICROSECONDS - 1
EXAMPLE = "TIMESTAMPTZ '2013-07-04 05:06:07+00'"


def moved(name: str, value: int, sign: int, target: SqlType) -> int:
    """A moment as a zone's clocks show it (1), or what they show as the moment (-1).  Infinities stay.

    Raises OutOfRangeError for a result beyond 64 bits.
    """
    if abs(value) >= INFINITE_MICROSECONDS:
        return value
    place = zone(name)
    result = value + sign * (place.offset(value) if sign > 0 else place.local_offset(value))
    if abs(result) > LAST:
        raise OutOfRangeError(f"value out of range in a cast to {target}")
    return result


def print_zoned(value: int, name: str) -> str:
    """2013-07-04 07:06:07+02: a moment as text, in a zone."""
    if abs(value) >= INFINITE_MICROSECONDS:
        return print_timestamp(value)
    ahead = zone(name).offset(value)
    return print_timestamp(value + ahead) + print_offset(ahead)


def print_offset(ahead: int) -> str:
    """+05:30: an offset in microseconds as text, minutes and seconds where there are some."""
    seconds = abs(ahead) // 1_000_000
    parts = [f"{'-' if ahead < 0 else '+'}{seconds // 3600:02}"]
    if seconds % 3600:
        parts.append(f"{seconds // 60 % 60:02}")
    if seconds % 60:
        parts.append(f"{seconds % 60:02}")
    return ":".join(parts)


def parse_zoned(value: str, name: str) -> int | None:
    """A moment of a text that ends in Z, an offset, the name of a zone, or nothing: then of the given zone.  None: it is none.

    >>> parse_zoned("1970-01-01 01:00:00+01", "UTC")
    0
    """
    moment = parse_timestamp(value)
    if moment is None or abs(moment) >= INFINITE_MICROSECONDS or value.strip(SPACES).lower() == "epoch":
        return moment
    ends = zone_at(value.strip(SPACES))
    try:
        if isinstance(ends, int):
            found = moment - ends
        else:
            found = moved(ends or name, moment, -1, TIMESTAMPTZ)
    except (NotSupportedError, OutOfRangeError):
        return None
    return found if abs(found) <= LAST else None


def _array(values: Any, sql: SqlType) -> pa.Array:
    return pa.array(values, pa.int64()).cast(sql.arrow)


def _shifted(place: Any, x: Any, sign: int, target: SqlType) -> pa.Array:
    if isinstance(place, str) and isinstance(x, pa.Array):
        count = np.asarray(x.cast(pa.int64()))
        found = zone(place)
        table = np.frombuffer(found.table if sign > 0 else found.local, np.int64)
        with np.errstate(all="ignore"):
            result = count + sign * offsets(count, table)
        infinite = np.abs(count) >= INFINITE_MICROSECONDS
        if (~infinite & ((np.abs(count) > LAST - (1 << 37)) & ((count ^ result) < 0))).any():
            raise OutOfRangeError(f"value out of range in a cast to {target}")
        return _array(np.where(infinite, count, result), target)

    def one(name: str, value: int) -> int:
        return moved(name, value, sign, target)

    return per_row(one, target, place, x)


@text("VARCHAR, TIMESTAMPTZ -> TIMESTAMP")
def at_time_zone(place: Any, x: Any) -> pa.Array:
    """The operator x AT TIME ZONE place: what a zone's clocks show at a moment, or the moment at which they show a TIMESTAMP.

    >>> sql("SELECT at_time_zone('Europe/Berlin', TIMESTAMPTZ '2013-07-04 05:06:07+00')")
    2013-07-04 07:06:07
    """
    return _shifted(place, x, 1, TIMESTAMP)


@text("VARCHAR, TIMESTAMP -> TIMESTAMPTZ", name="at_time_zone", more=True)
def _moment_of(place: Any, x: Any) -> pa.Array:
    return _shifted(place, x, -1, TIMESTAMPTZ)


def zoned_texts(moments: pa.Array, name: str) -> pa.Array:
    """`print_zoned` of many moments; NULLs stay."""
    count = np.asarray(moments.cast(pa.int64()).fill_null(0))
    ahead = offsets(count, np.frombuffer(zone(name).table, np.int64))
    distinct, place = np.unique(ahead, return_inverse=True)
    shown = print_values(pa.array(count + ahead).cast(pa.timestamp("us")), TIMESTAMP)
    ends = pa.array([print_offset(value) for value in distinct.tolist()], pa.string()).take(pa.array(place.reshape(-1)))
    if (infinite := np.abs(count) >= INFINITE_MICROSECONDS).any():
        ends = compute.if_else(pa.array(infinite), "", ends)
    texts = compute.binary_join_element_wise(shown, ends, "")
    return compute.if_else(moments.is_null(), pa.scalar(None, pa.string()), texts) if moments.null_count else texts


@text("VARCHAR, TIMESTAMPTZ -> VARCHAR")
def zoned_text(place: Any, x: Any) -> pa.Array:
    """A moment as text in a zone; what a cast to VARCHAR is.

    >>> sql("SELECT zoned_text('Europe/Berlin', TIMESTAMPTZ '2013-07-04 05:06:07+00')")
    2013-07-04 07:06:07+02
    """
    if isinstance(place, str):
        return zoned_texts(x, place)
    return per_row(lambda name, value: print_zoned(value, name), VARCHAR, place, x)


@text("VARCHAR, VARCHAR -> TIMESTAMPTZ")
def zoned_moment(place: Any, x: Any) -> pa.Array:
    """A text as a moment; what a cast of VARCHAR is.

    >>> sql("SELECT epoch(zoned_moment('Europe/Berlin', '1970-01-01 00:00:00'))")
    -3600.0
    """

    def one(name: str, value: str) -> int:
        found = parse_zoned(value, name)
        if found is None:
            raise ConversionError(f"text is not a value of type {TIMESTAMPTZ}: {value[:80]!r}")
        return found

    return per_row(one, TIMESTAMPTZ, place, x)


@text("VARCHAR, VARCHAR -> TIMESTAMPTZ")
def try_zoned_moment(place: Any, x: Any) -> pa.Array:
    """As zoned_moment; NULL where the text is none.

    >>> sql("SELECT epoch(try_zoned_moment('UTC', 'yesterday'))")
    NULL
    """
    return per_row(lambda name, value: parse_zoned(value, name), TIMESTAMPTZ, place, x)


@text("VARCHAR, TIMESTAMPTZ, VARCHAR -> VARCHAR")
def zoned_strftime(place: Any, x: Any, pattern: Any) -> pa.Array:
    """strftime of a moment in a zone, whose offset is %z and whose name is %Z.

    >>> sql("SELECT zoned_strftime('Europe/Berlin', TIMESTAMPTZ '2013-07-04 05:06:07+00', '%H %z %Z')")
    07 +02 Europe/Berlin
    """

    def one(name: str, value: int, some: str) -> str:
        if abs(value) >= INFINITE_MICROSECONDS:
            return print_timestamp(value)
        ahead = zone(name).offset(value)
        pieces = some.split("%%")
        shown = "%%".join(p.replace("%z", print_offset(ahead)).replace("%Z", name.replace("%", "%%")) for p in pieces)
        local: str = date.strftime(_array([value + ahead], TIMESTAMP), shown)[0].as_py()
        return local

    return per_row(one, VARCHAR, place, x, pattern)


# --- what is SQL over these -----------------------------------------------------------------------------------------

_UTC = "at_time_zone('UTC', {})"
_HERE = "CAST({} AS TIMESTAMP)"


def _overloads_for_moments() -> None:
    """Every part, truncation and difference of TIMESTAMPs for moments, too."""
    for name in dict.fromkeys(function.name for function in FUNCTIONS.values()):
        kinds = {overload.arguments: overload.result for overload in FUNCTIONS[name].overloads}
        result = kinds.get(("TIMESTAMP",))
        if name.startswith("date_part_timezone") or result is None:
            continue
        if name in ("date_trunc_minute", "date_trunc_second", "date_trunc_millisecond", "date_trunc_microsecond"):
            sql = f"make_timestamptz(epoch_us(x) - epoch_us(CAST(x AS TIMESTAMP)) + epoch_us({name}(CAST(x AS TIMESTAMP))))"
            typed_macro(name, "TIMESTAMPTZ -> TIMESTAMPTZ", "x", f"coalesce({sql}, x)")  # hours that come twice stay
        elif name.startswith("date_trunc_"):
            typed_macro(name, "TIMESTAMPTZ -> TIMESTAMPTZ", "x", f"CAST({name}(CAST(x AS TIMESTAMP)) AS TIMESTAMPTZ)")
        elif name in ("isinf", "isfinite") or "epoch" in name:
            typed_macro(name, f"TIMESTAMPTZ -> {result.kind}", "x", f"{name}({_UTC.format('x')})")
        elif name.startswith("date_part_") or name in ("last_day", "dayname", "monthname"):
            typed_macro(name, f"TIMESTAMPTZ -> {result.kind}", "x", f"{name}({_HERE.format('x')})")


_overloads_for_moments()

_SHORT = {
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1000,
    "microsecond": 1,
}
for _part in date.PARTS:
    for _kind in ("date_diff", "date_sub"):
        _name = f"{_kind}_{_part}"
        if _name not in FUNCTIONS or (_name == "date_sub_month" and not FUNCTIONS[_name].overloads):
            continue
        if _part not in _SHORT:
            _sql = f"{_name}({_HERE.format('start')}, {_HERE.format('stop')})"
        elif _kind == "date_sub":
            _sql = f"{_name}({_UTC.format('start')}, {_UTC.format('stop')})"
        else:  # hours of clocks begin where the zone's offset says, but pass at one pace
            _ends = [f"epoch_us(date_trunc_{_part}({end}))" for end in ("stop", "start")]
            _sql = f"({_ends[0]} - {_ends[1]}) // {_SHORT[_part]}"
        typed_macro(_name, "TIMESTAMPTZ, TIMESTAMPTZ -> BIGINT", "start, stop", _sql)

_AHEAD = "(epoch_us(CAST(x AS TIMESTAMP)) - epoch_us(x))"
typed_macro("date_part_timezone", "TIMESTAMPTZ -> BIGINT", "x", f"{_AHEAD} // 1000000")
typed_macro("date_part_timezone_hour", "TIMESTAMPTZ -> BIGINT", "x", f"{_AHEAD} // 3600000000")
typed_macro("date_part_timezone_minute", "TIMESTAMPTZ -> BIGINT", "x", f"{_AHEAD} % 3600000000 // 60000000")

_BUCKET = "at_time_zone('UTC', time_bucket(width, at_time_zone('UTC', x){}))"
typed_macro("time_bucket", "INTERVAL, TIMESTAMPTZ -> TIMESTAMPTZ", "width, x", _BUCKET.format(""))
typed_macro(
    "time_bucket", "INTERVAL, TIMESTAMPTZ, INTERVAL -> TIMESTAMPTZ", "width, x, offset_", _BUCKET.format(", offset_")
)
typed_macro(
    "time_bucket", "INTERVAL, TIMESTAMPTZ, TIMESTAMPTZ -> TIMESTAMPTZ", "width, x, origin",
    _BUCKET.format(", at_time_zone('UTC', origin)"),
)  # fmt: skip
typed_macro(
    "time_bucket", "INTERVAL, TIMESTAMPTZ, VARCHAR -> TIMESTAMPTZ", "width, x, place",
    "timezone(place, time_bucket(width, timezone(place, x)))",
)  # fmt: skip

_ZONE = "current_setting('timezone')"
typed_macro("strftime", "TIMESTAMPTZ, VARCHAR -> VARCHAR", "x, pattern", f"zoned_strftime({_ZONE}, x, pattern)")
typed_macro(
    "strftime", "VARCHAR, TIMESTAMPTZ -> VARCHAR", "pattern, x", f"strftime({_UTC.format('x')}, pattern)"
)  # as DuckDB

_PARTS = "year, month, day, hour, minute, second"
typed_macro(
    "make_timestamptz", "BIGINT, BIGINT, BIGINT, BIGINT, BIGINT, DOUBLE -> TIMESTAMPTZ", _PARTS,
    f"CAST(make_timestamp({_PARTS}) AS TIMESTAMPTZ)",
    doc="A moment of its parts as the session's, or a named zone's clocks show them; or of microseconds since 1970 in UTC.\n\n"
    '>>> sql("SELECT epoch(make_timestamptz(1970, 1, 1, 0, 0, 0, \'Europe/Berlin\'))")\n-3600.0\n',
)  # fmt: skip
typed_macro(
    "make_timestamptz", "BIGINT, BIGINT, BIGINT, BIGINT, BIGINT, DOUBLE, VARCHAR -> TIMESTAMPTZ", f"{_PARTS}, place",
    f"timezone(place, make_timestamp({_PARTS}))",
)  # fmt: skip
typed_macro("make_timestamptz", "BIGINT -> TIMESTAMPTZ", "x", "at_time_zone('UTC', make_timestamp(x))")
typed_macro(
    "to_timestamp", "DOUBLE -> TIMESTAMPTZ", "x", "at_time_zone('UTC', make_timestamp(CAST(round(x * 1e6) AS BIGINT)))",
    doc='The moment so many seconds after 1970-01-01 00:00 UTC.\n\n>>> sql("SELECT epoch(to_timestamp(1.5))")\n1.5\n',
)  # fmt: skip
