"""Time zones: their names, and how far each is from UTC at any time, by the system's tz data (or PyPI's tzdata).

A zone is a table to bisect: the times at which its offset changes, and the offsets between them.  Rules without an end,
such as summer time every year, repeat after 400 years, as the calendar does; the table reaches that far, and later times
are moved back by as many such spans as it takes.  Zones are ahead of UTC where their offset is positive.
"""

from __future__ import annotations

import datetime
import os
import re
import struct
import zoneinfo
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gpudb.errors import NotSupportedError
from gpudb.record import record

Array = npt.NDArray[np.int64]
SECOND = 1_000_000
CYCLE = 146_097 * 86_400 * SECOND  # 400 years, in microseconds: 20,871 weeks
UTC = "UTC"
_EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()
_HOURS = re.compile(r"UTC([+-])0?(\d{1,2})", re.IGNORECASE)  # ahead of UTC: Etc/GMT-1 is UTC+1
_NEVER = (1 << 63) - 1
_PLAIN = re.compile(r"(?!posix|right)[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*")


@record
class Zone:
    """When a zone's offset from UTC changes, and to what.  Its tables are what the opcode ZoneOffset takes, as bytes.

    table  size, last, size - 1 rising times of UTC, size offsets; (2 * size + 1,) int64, microseconds.  `size` is a power of
           two; the times end with as many that never come as it takes.  From `last` on everything repeats each `CYCLE`
    local  the same, by times as the zone's clocks show them: one that comes twice is the later, one that is skipped is as
           far behind the change as it would have been without it
    """

    name: str
    table: bytes
    local: bytes

    @property
    def is_utc(self) -> bool:
        """Is its offset always 0?"""
        table = np.frombuffer(self.table, np.int64)
        return len(table) == 3 and not table[2]

    def offset(self, moment: int) -> int:
        """Microseconds that its clocks are ahead at a time of UTC; 0 at an infinite one."""
        return int(offsets(np.array([moment]), np.frombuffer(self.table, np.int64))[0])

    def local_offset(self, moment: int) -> int:
        """Microseconds that its clocks are ahead when they show a time."""
        return int(offsets(np.array([moment]), np.frombuffer(self.local, np.int64))[0])


def offsets(x: Array, table: Array) -> Array:
    """(rows,) offsets at times, by a zone's table; 0 at infinite times."""
    size, last = int(table[0]), int(table[1])
    x = np.asarray(x, np.int64)
    infinite = (x == _NEVER) | (x <= -_NEVER)
    usual = np.where(infinite, 0, x)
    usual = np.where(usual < last, usual, last + np.mod(np.maximum(usual, last) - last, CYCLE))
    found = np.searchsorted(table[2 : size + 1], usual, side="right")
    return np.where(infinite, 0, table[size + 1 :][found])


@lru_cache(maxsize=64)
def zone(name: str) -> Zone:
    """The zone of a canonical name.  Raises NotSupportedError where there is none."""
    canonical = zone_name(name)
    data = _file(canonical)
    if data is None:  # one of the names of UTC, and no tz data
        return _zone(canonical, [], [0], 0)
    times, after, rule = _changes(data)
    last_year = max([2037, *(_year(moment) for moment in times[-1:])])
    last = (datetime.date(last_year + 1, 1, 10).toordinal() - _EPOCH_DAY) * 86_400  # no rule has a change then
    for moment, ahead in _changes_by_rule(rule, max([0, *times[-1:]]), last + CYCLE // SECOND):
        times.append(moment)
        after.append(ahead)
    return _zone(canonical, times, after, last)


def zone_name(name: str) -> str:
    """A zone's name as the tz data spells it, for a name in any case.  Raises NotSupportedError for one that is none."""
    hours = _HOURS.fullmatch(name)
    if hours:
        name = f"Etc/GMT{'-' if hours[1] == '+' else '+'}{hours[2]}"
    if name.upper() in ("UTC", "GMT"):
        return name.upper()
    if _PLAIN.fullmatch(name) and _file(name) is not None:
        return name
    found = _names().get(name.lower())
    if found is None:
        import difflib

        near = difflib.get_close_matches(name.lower(), _names(), n=3, cutoff=0.5)
        hint = f"did you mean {', '.join(_names()[key] for key in near)}?" if near else None
        raise NotSupportedError(f"time zone not found: {name!r}", hint=hint)
    return found


def system_zone() -> str:
    """The zone that this machine is in: the variable TZ, what /etc/localtime points to, or else UTC."""
    candidates = [os.environ.get("TZ", "").removeprefix(":")]
    with suppress(OSError):
        candidates.append(os.readlink("/etc/localtime").partition("zoneinfo/")[2])
    for candidate in candidates:
        if _PLAIN.fullmatch(candidate) and _file(candidate) is not None:
            return candidate
    return UTC


@cache
def _names() -> dict[str, str]:
    """Every zone's name by itself in lower case; the names of UTC also without tz data."""
    found = {"utc": "UTC", "etc/utc": "Etc/UTC", "gmt": "GMT"}
    return found | {name.lower(): name for name in sorted(zoneinfo.available_timezones(), reverse=True)}


def _file(name: str) -> bytes | None:
    """The TZif file of a zone; None for UTC where there is no tz data."""
    for folder in zoneinfo.TZPATH:
        path = Path(folder, name)
        if path.is_file():
            return path.read_bytes()
    import importlib.resources

    try:
        found = importlib.resources.files("tzdata").joinpath("zoneinfo", *name.split("/"))
        return found.read_bytes()
    except (ImportError, FileNotFoundError):
        return None


def _changes(data: bytes) -> tuple[list[int], list[int], str]:
    """(times of changes in seconds, offsets in seconds: before the first, and after each, the rule behind) of a TZif file.

    RFC 8536: version 2 and later repeat everything in 64 bits behind a block in 32 bits, which is stepped over.
    """
    header = struct.Struct(">4sc15x6I")

    def block(place: int, width: int) -> tuple[int, list[int], list[int]]:
        _, _, utc_count, standard_count, leaps, count, kinds, letters = header.unpack_from(data, place)
        place += header.size
        times = list(struct.unpack_from(f">{count}{'q' if width == 8 else 'i'}", data, place))
        place += count * width
        which = data[place : place + count]
        place += count
        ahead = [struct.unpack_from(">iBB", data, place + 6 * k)[0] for k in range(kinds)]
        place += kinds * 6 + letters + leaps * (width + 4) + standard_count + utc_count
        return place, times, [ahead[0], *(ahead[k] for k in which)]

    end, times, after = block(0, 4)
    rule = b""
    if data[4:5] >= b"2":
        end, times, after = block(end, 8)
        rule = data[end:].strip(b"\n")
    return times, after, rule.decode()


_OFFSET = r"[+-]?\d+(?::\d+){0,2}"
_RULE = re.compile(
    rf"(?:<[^>]+>|[A-Za-z]+)(?P<usual>{_OFFSET})(?:<[^>]+>|[A-Za-z]+)(?P<summer>{_OFFSET})?"
    rf",(?P<start>[^/,]+)(?:/(?P<start_time>{_OFFSET}))?,(?P<end>[^/,]+)(?:/(?P<end_time>{_OFFSET}))?"
)


def _seconds(text: str) -> int:
    """[+-]hours[:minutes[:seconds]]."""
    sign = -1 if text.startswith("-") else 1
    return sign * sum(int(part) * unit for part, unit in zip(text.lstrip("+-").split(":"), (3600, 60, 1), strict=False))


def _changes_by_rule(rule: str, after: int, end: int) -> list[tuple[int, int]]:
    """(time, offset after it) in seconds of what a rule as POSIX writes it changes, behind one time and before another.

    CET-1CEST,M3.5.0,M10.5.0/3: an hour ahead (its sign is turned), another one from the fifth (the last) day 0 (Sunday) of
    March, 2 o'clock, to that of October, 3 o'clock.  Jn and n name days of the year.
    """
    found = _RULE.fullmatch(rule)
    if found is None:
        return []
    usual = -_seconds(found["usual"])
    summer = usual + 3600 if found["summer"] is None else -_seconds(found["summer"])
    changes = []
    for year in range(_year(after), _year(end) + 1):
        for day, time, before, new in (
            (found["start"], found["start_time"], usual, summer),
            (found["end"], found["end_time"], summer, usual),
        ):
            moment = _day_of_rule(day, year) * 86_400 + _seconds(time or "2") - before
            if after < moment < end:
                changes.append((moment, new))
    return sorted(changes)


def _day_of_rule(rule: str, year: int) -> int:
    """Days from 1970 to a day of a year: M<month>.<week>.<day of the week>, J<day, no 29th of February> or <day from 0>."""
    first = datetime.date(year, 1, 1).toordinal() - _EPOCH_DAY
    if not rule.startswith("M"):
        number = int(rule.removeprefix("J"))
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        return first + (number - 1 + (leap and number > 59) if rule[0] == "J" else number)
    month, week, weekday = (int(part) for part in rule[1:].split("."))
    first = datetime.date(year, month, 1).toordinal() - _EPOCH_DAY
    day = first + (weekday - (first + 4)) % 7 + 7 * (week - 1)
    following = datetime.date(year + month // 12, month % 12 + 1, 1).toordinal() - _EPOCH_DAY
    return day if day < following else day - 7


def _year(second: int) -> int:
    return datetime.date.fromordinal(second // 86_400 + _EPOCH_DAY).year


def _zone(name: str, times: list[int], after: list[int], last: int) -> Zone:
    """A zone of changes in seconds; `after` has the offset before the first, too."""
    local = [moment + ahead for moment, ahead in zip(times, after[1:], strict=True)]
    last_offset = next(
        (ahead for moment, ahead in zip(times[::-1], after[::-1], strict=False) if moment <= last), after[0]
    )
    return Zone(name, _table(times, after, last), _table(local, after, last + last_offset))


def _table(times: list[int], after: list[int], last: int) -> bytes:
    size = 1 << len(times).bit_length()
    starts = np.full(size - 1, _NEVER, np.int64)
    starts[: len(times)] = np.maximum.accumulate(np.array(times, np.int64)) * SECOND if times else 0
    ahead = np.full(size, after[-1], np.int64)
    ahead[: len(after)] = after
    return np.concatenate([np.array([size, last * SECOND], np.int64), starts, ahead * SECOND]).tobytes()
