"""INTERVAL values: their text, the 128 bits that registers and columns hold, and their form in Arrow.

The bits are those of Arrow's month_day_nano but for the unit of the last part: months in the lowest 32, days in the next 32,
microseconds in the upper 64.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpudb.calendar import MICROSECONDS_A_DAY
from gpudb.errors import OutOfRangeError
from gpudb.types import INTERVAL, Interval

Words = npt.NDArray[np.int64]
_LOW_32, _SIGN_32 = (1 << 32) - 1, 1 << 31


def packed(value: Interval) -> int:
    """The bits as a signed integer."""
    return value.microseconds << 64 | (value.days & _LOW_32) << 32 | (value.months & _LOW_32)


def packed_wrapping(months: int, days: int, microseconds: int) -> int:
    """The bits of parts that may lie one past their greatest numbers: these wrap."""
    wrapped = (microseconds + (1 << 63)) % (1 << 64) - (1 << 63)
    return wrapped << 64 | (days & _LOW_32) << 32 | (months & _LOW_32)


def unpacked(bits: int) -> Interval:
    """The inverse of `packed`."""
    months, days = bits & _LOW_32, bits >> 32 & _LOW_32
    return Interval((months ^ _SIGN_32) - _SIGN_32, (days ^ _SIGN_32) - _SIGN_32, bits >> 64)


def words_of(array: pa.Array) -> Words:
    """(2 * rows,) low and high words of the bits in an Arrow array of 128-bit values; what lies under NULL is arbitrary."""
    return np.frombuffer(array.buffers()[1], np.int64, 2 * len(array), 16 * array.offset)


def to_arrow(bits: pa.Array) -> pa.Array:
    """Bits in an array of 128-bit values as month_day_nano; microseconds that overflow nanoseconds wrap, as in DuckDB."""
    words = words_of(bits).copy()
    with np.errstate(over="ignore"):
        words[1::2] *= 1000
    valid = None if bits.null_count == 0 else pa.py_buffer(np.packbits(np.asarray(bits.is_valid()), bitorder="little"))
    if valid is not None:
        words.reshape(-1, 2)[np.asarray(bits.is_null())] = 0
    return pa.Array.from_buffers(INTERVAL.arrow, len(bits), [valid, pa.py_buffer(words)], bits.null_count)


def from_arrow(array: pa.Array) -> Words:
    """(2 * rows,) words of the bits of an Arrow month_day_nano or duration array; nanoseconds are cut to microseconds."""
    if pa.types.is_duration(array.type):
        words = np.zeros(2 * len(array), np.int64)
        words[1::2] = np.asarray(array.cast(pa.duration("us"), safe=False).cast(pa.int64()).fill_null(0))
        return words
    words = words_of(array).copy()
    words[1::2] //= 1000
    return words


# --- text -----------------------------------------------------------------------------------------------------------

# unit -> (field of Interval, how many of the field's unit)
UNITS = {
    "microseconds": ("microseconds", 1),
    "milliseconds": ("microseconds", 1_000),
    "seconds": ("microseconds", 1_000_000),
    "minutes": ("microseconds", 60_000_000),
    "hours": ("microseconds", 3_600_000_000),
    "days": ("days", 1),
    "weeks": ("days", 7),
    "months": ("months", 1),
    "quarters": ("months", 3),
    "years": ("months", 12),
    "decades": ("months", 120),
    "centuries": ("months", 1_200),
    "millennia": ("months", 12_000),
}
_FINER = {"months": ("days", 30), "days": ("microseconds", MICROSECONDS_A_DAY)}

_UNIT_NAMES = {
    name: unit
    for unit, names in {
        "microseconds": "microsecond microseconds us usec usecs",
        "milliseconds": "millisecond milliseconds ms msec msecs",
        "seconds": "second seconds s sec secs",
        "minutes": "minute minutes m min mins",
        "hours": "hour hours h hr hrs",
        "days": "day days d dayofmonth",
        "weeks": "week weeks w",
        "months": "month months mon mons",
        "quarters": "quarter quarters",
        "years": "year years y yr yrs",
        "decades": "decade decades dec decs",
        "centuries": "century centuries cent c",
        "millennia": "millennium millennia mil mils",
    }.items()
    for name in names.split()
}

_PIECE = re.compile(
    r"\s*(?:(?P<sign>[+-]?)(?P<hours>\d+):(?P<minutes>\d{1,2})(?::(?P<seconds>\d{1,2}(?:\.\d*)?))?"
    r"|(?P<number>[+-]?\s*\d+)(?P<fraction>\.\d*)?\s*(?P<unit>[A-Za-z]+))"
)


def parse_interval(text: str) -> Interval | None:
    """'1 year 2 months -3 days 04:05:06.7', 'ago' at the end turns the sign; None where it is no interval."""
    rest = text.strip()
    sign = 1
    if rest.lower().endswith(" ago"):
        rest, sign = rest[:-4].rstrip(), -1
    totals = {"months": 0, "days": 0, "microseconds": 0}
    position = 0
    if not rest:
        return None
    while position < len(rest):
        match = _PIECE.match(rest, position)
        if match is None:
            return None
        position = match.end()
        if match["hours"] is not None:
            seconds = match["seconds"] or "0"
            whole, _, fraction = seconds.partition(".")
            time = (int(match["hours"]) * 3600 + int(match["minutes"]) * 60 + int(whole)) * 1_000_000
            time += int((fraction + "000000")[:6])
            totals["microseconds"] += -time if match["sign"] == "-" else time
            continue
        unit = _UNIT_NAMES.get(match["unit"].lower())
        if unit is None:
            return None
        field, factor = UNITS[unit]
        digits = match["number"].replace(" ", "")
        totals[field] += int(digits) * factor
        if match["fraction"] and len(match["fraction"]) > 1:
            _add_fraction(totals, field, factor, match["fraction"], digits.startswith("-"))
    try:
        return checked_interval(**{name: sign * total for name, total in totals.items()})
    except OutOfRangeError:
        return None


def _add_fraction(totals: dict[str, int], field: str, factor: int, fraction: str, negative: bool) -> None:
    """Carry a unit's fraction to whole units of the field, and the rest to finer fields (a month counts 30 days)."""
    numerator, denominator = int(fraction[1:]) * factor * (-1 if negative else 1), 10 ** (len(fraction) - 1)
    while True:
        whole = abs(numerator) // denominator * (1 if numerator >= 0 else -1)
        totals[field] += whole
        numerator -= whole * denominator
        if not numerator or field not in _FINER:
            return
        field, scale = _FINER[field]
        numerator *= scale


def checked_interval(months: int = 0, days: int = 0, microseconds: int = 0) -> Interval:
    """An INTERVAL whose parts fit.  Raises OutOfRangeError."""
    limit = 1 << 31
    if not (-limit <= months < limit and -limit <= days < limit and abs(microseconds) < 1 << 63):
        raise OutOfRangeError(f"value does not fit into {INTERVAL}")
    return Interval(months, days, microseconds)
