"""Casts between VARCHAR and every other type, exactly as DuckDB prints and reads them.

`print_values` gives text; `parse_values` reads it.  Both run once per distinct value.  Common spellings take Arrow's or
NumPy's vectorised way; the rest are read character by character, so that no input can take more than linear time.
Past 600 lines: every type's printer stands beside its parser, as each must undo the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from gpudb import compute
from gpudb.calendar import MICROSECONDS_A_DAY
from gpudb.errors import ConversionError, NotSupportedError
from gpudb.functions.interval_values import from_arrow, packed, parse_interval, unpacked, words_of
from gpudb.functions.uuid_values import parse_uuid, parse_uuids, print_uuids
from gpudb.types import Interval, SqlType

SPACES = " \t\n\v\f\r"
DIGITS = frozenset("0123456789")
LARGEST_EXPONENT = (1 << 15) - 1  # of a text read as an integer or decimal, as in DuckDB
_WIDE = Context(prec=80)
LARGEST_PLAIN_SCALE = 6  # of decimals that Arrow prints without an exponent
INFINITE_DAYS = (1 << 31) - 1
INFINITE_MICROSECONDS = (1 << 63) - 1


# --- printing -------------------------------------------------------------------------------------------------------


def print_values(values: pa.Array, source: SqlType) -> pa.Array:
    """CAST(values AS VARCHAR): a pa.Array of source's Arrow type to one of strings; NULLs stay.

    Doubles take the shortest digits that read back the same, dates before the year 1 end in "(BC)", timestamps print as
    many digits of a fraction as it needs.
    """
    match source.kind:
        case "VARCHAR":
            return values
        case "BOOLEAN":
            return values.cast(pa.string())
        case "DOUBLE":
            numbers = np.asarray(values.fill_null(0.0)).tolist()
            return pa.array(list(map(print_double, numbers)), pa.string(), mask=_nulls(values))
        case "REAL":
            printed = [None if v is None else print_real(v) for v in values.to_pylist()]
        case _ if source.is_integer:
            return values.cast(pa.string())
        case "DECIMAL" if source.scale <= LARGEST_PLAIN_SCALE:
            text = values.cast(pa.string())
            return compute.replace_substring(text, "0.", ".", max_replacements=1) if _is_fraction(source) else text
        case "DECIMAL":
            printed = [None if v is None else print_decimal(v, source) for v in values.to_pylist()]
        case "DATE":
            return _print_days(values.cast(pa.int32()))
        case "TIME":
            return _print_times(values.cast(pa.int64()))
        case "TIMESTAMP":
            return _print_microseconds(values.cast(pa.int64()))
        case "INTERVAL":
            printed = [None if v is None else print_interval(v) for v in _intervals(values)]
        case "UUID":
            return print_uuids(values)
        case _:
            raise NotSupportedError(f"cast to VARCHAR from {source}")
    return pa.array(printed, pa.string())


def print_double(value: float) -> str:
    """Shortest digits that read back the same.

    >>> print_double(1e16), print_double(0.1)
    ('1e+16', '0.1')
    """
    return repr(value)


def print_real(value: float) -> str:
    """As print_double, for a 32-bit float.

    >>> print_real(0.10000000149011612)
    '0.1'
    """
    single = np.float32(value)
    magnitude = abs(float(single))
    if not math.isfinite(magnitude) or magnitude == 0:
        return repr(float(single))
    digits, exponent = np.format_float_scientific(single, unique=True, trim="-").lstrip("-").split("e")
    length = len(digits.replace(".", ""))
    if _is_on_the_edge(digits, int(exponent), length, magnitude, single):
        digits = f"{magnitude:.16e}".split("e")[0].rstrip("0").rstrip(".")  # DuckDB prints 17 digits then
    if not 1e-4 <= float(f"{digits}e{exponent}") < 1e16:
        text = f"{digits}e{int(exponent):+03}"
    else:
        text = format(Decimal(f"{digits}e{exponent}"), "f")
        text = text if "." in text else text + ".0"
    return "-" + text if value < 0 else text


def _is_on_the_edge(digits: str, exponent: int, length: int, magnitude: float, single: np.float32) -> bool:
    """Whether the float lies halfway between two numbers of so few digits, or one of them halfway between two floats."""
    shortest = Decimal(f"{digits}e{exponent}")
    if abs(shortest - Decimal(magnitude)) * 2 == Decimal(1).scaleb(exponent - length + 1):
        return True
    below = float(np.nextafter(np.abs(single), np.float32(0)))
    halfway = (magnitude + float(np.spacing(np.abs(single))) / 2, magnitude - (magnitude - below) / 2)
    return any(len(f"{edge:.40e}".split("e")[0].rstrip("0")) <= length or Decimal(edge) == shortest for edge in halfway)


def print_decimal(value: Decimal, type_: SqlType) -> str:
    """Every digit of the scale; no 0 before the point where the type has no digits there.

    >>> print_decimal(Decimal("1.50"), SqlType("DECIMAL", 5, 2))
    '1.50'
    """
    text = format(value, "f")
    if _is_fraction(type_):
        text = text.replace("0.", ".", 1)
    return text


def _is_fraction(type_: SqlType) -> bool:
    """Has the DECIMAL no digits before the point?"""
    return type_.precision == type_.scale


def _print_days(days: pa.Array) -> pa.Array:
    """(rows,) int32 days to text."""
    count = np.asarray(days.fill_null(0), np.int64)
    usual = (count >= -719162) & (count <= 2932896)  # years 1 to 9999, as ISO 8601 writes them
    text = pa.array(np.where(usual, count, 0).astype(np.int32)).cast(pa.date32()).cast(pa.string())
    return _with_others(text, days, usual, print_date)


def _print_microseconds(microseconds: pa.Array) -> pa.Array:
    """(rows,) int64 microseconds to text."""
    count = np.asarray(microseconds.fill_null(0), np.int64)
    usual = (count >= -719162 * MICROSECONDS_A_DAY) & (count < 2932897 * MICROSECONDS_A_DAY)
    moments = np.where(usual, count, 0)
    whole = moments // 1_000_000
    text = pa.array(whole).cast(pa.timestamp("s")).cast(pa.string())
    if (rest := moments != whole * 1_000_000).any():
        fraction = compute.utf8_rtrim(pa.array(moments).cast(pa.timestamp("us")).cast(pa.string()), "0")
        text = compute.if_else(pa.array(rest), fraction, text)
    return _with_others(text, microseconds, usual, print_timestamp)


def _print_times(microseconds: pa.Array) -> pa.Array:
    """(rows,) int64 microseconds of a day to text."""
    count = np.asarray(microseconds.fill_null(0), np.int64)
    usual = count < MICROSECONDS_A_DAY
    text = _print_microseconds(pa.array(np.where(usual, count, 0)))
    return _with_others(compute.utf8_slice_codeunits(text, 11), microseconds, usual, print_time)


def _with_others(text: pa.Array, values: pa.Array, usual: np.ndarray, one: Callable[[int], str]) -> pa.Array:
    """The texts, those of values that are not `usual` printed one by one; NULLs stay."""
    if not usual.all():
        others = pa.array([one(value) for value in np.asarray(values.fill_null(0))[~usual].tolist()], pa.string())
        text = compute.replace_with_mask(text, pa.array(~usual), others)
    if values.null_count:
        text = compute.if_else(values.is_null(), pa.scalar(None, pa.string()), text)
    return text


def _nulls(values: pa.Array) -> np.ndarray | None:
    return np.asarray(values.is_null()) if values.null_count else None


def print_date(days: int) -> str:
    """Days since 1970-01-01 as text; years before 1 count back from 1 BC.

    >>> print_date(0), print_date(-719529)
    ('1970-01-01', '0001-12-31 (BC)')
    """
    if days >= INFINITE_DAYS:
        return "infinity"
    if days <= -INFINITE_DAYS:
        return "-infinity"
    year, month, day = civil(days)
    if year <= 0:
        return f"{1 - year:04}-{month:02}-{day:02} (BC)"
    return f"{year:04}-{month:02}-{day:02}"


def print_timestamp(microseconds: int) -> str:
    """Microseconds since 1970-01-01 as text.

    >>> print_timestamp(1_500_000)
    '1970-01-01 00:00:01.5'
    """
    if microseconds >= INFINITE_MICROSECONDS:
        return "infinity"
    if microseconds <= -INFINITE_MICROSECONDS:
        return "-infinity"
    days, rest = divmod(microseconds, MICROSECONDS_A_DAY)
    return f"{print_date(days)} {print_time(rest)}"


def print_time(microseconds: int) -> str:
    """Microseconds of a day, hours first."""
    seconds, fraction = divmod(microseconds, 1_000_000)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return text + f".{fraction:06}".rstrip("0") if fraction else text


def print_interval(value: Interval) -> str:
    """Years, months and days in words, the rest as a time.

    >>> print_interval(Interval(14, 3, 1_500_000))
    '1 year 2 months 3 days 00:00:01.5'
    """
    years = abs(value.months) // 12 * (1 if value.months >= 0 else -1)
    parts = [
        f"{number} {unit}" if number in (1, -1) else f"{number} {unit}s"
        for number, unit in ((years, "year"), (value.months - years * 12, "month"), (value.days, "day"))
        if number
    ]
    if value.microseconds or not parts:
        sign = "-" if value.microseconds < 0 else ""
        parts.append(sign + print_time(abs(value.microseconds)))
    return " ".join(parts)


def _intervals(values: pa.Array) -> list[Interval | None]:
    """An array of month_day_nano, or of an INTERVAL's bits."""
    words = (words_of if pa.types.is_decimal(values.type) else from_arrow)(values).reshape(-1, 2).tolist()
    present = values.is_valid().to_pylist()
    return [
        unpacked((low & (1 << 64) - 1) | high << 64) if p else None
        for (low, high), p in zip(words, present, strict=True)
    ]


def civil(days: int) -> tuple[int, int, int]:
    """Days since 1970-01-01 as (year, month, day) of the proleptic Gregorian calendar; the year before 1 is 0.

    >>> civil(0)
    (1970, 1, 1)
    """
    era, day = divmod(days + 719468, 146097)  # days since 0000-03-01, in cycles of 400 years
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day_of_year = day - (365 * year + year // 4 - year // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year + era * 400 + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


def days_of(year: int, month: int, day: int) -> int:
    """The inverse of `civil`.

    >>> days_of(1970, 1, 1)
    0
    """
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719468


def days_in_month(year: int, month: int) -> int:
    """28 to 31."""
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


# --- parsing --------------------------------------------------------------------------------------------------------


def parse_values(values: pa.Array, target: SqlType, *, try_: bool = False) -> pa.Array:
    """CAST(values AS target) of a pa.Array of strings: one of the target's Arrow type; NULLs stay.

    Raises ConversionError with the first text that is no value of the type; with try_ such a text gives NULL.
    """
    if target.kind == "VARCHAR":
        return values
    parse: Callable[[str], Any]
    match target.kind:
        case "BOOLEAN":
            parse = parse_boolean
        case _ if target.is_integer:
            low, high = target.bounds

            def parse(text: str) -> int | None:
                value = parse_integer(text)
                return value if value is not None and low <= value <= high else None

        case "DOUBLE":
            parse = parse_double
        case "REAL":
            parse = parse_real
        case "DECIMAL":

            def parse(text: str) -> int | None:
                return parse_decimal(text, target.precision, target.scale)

        case "DATE":
            fast = _parse_usual_dates(values)
            if fast is not None:
                return fast
            parse = parse_date
        case "TIME":
            parse = parse_time
        case "TIMESTAMP":
            parse = parse_timestamp
        case "INTERVAL":

            def parse(text: str) -> int | None:
                value = parse_interval(text)
                return None if value is None else packed(value)

        case "UUID":
            usual = parse_uuids(values)
            if usual is not None:
                return usual
            parse = parse_uuid
        case _:
            raise NotSupportedError(f"cast of VARCHAR to {target}")
    parsed = []
    for text in values.to_pylist():
        value = None if text is None else parse(text)
        if value is None and text is not None and not try_:
            raise ConversionError(f"text is not a value of type {target}: {_shown(text)}")
        parsed.append(value)
    return _array(parsed, target)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")


def _array(values: Sequence[Any], target: SqlType) -> pa.Array:
    """Parsed integers as an array of the target's Arrow type."""
    match target.kind:
        case "DATE":
            return pa.array(values, pa.int32()).cast(pa.date32())
        case "TIME" | "TIMESTAMP":
            return pa.array(values, pa.int64()).cast(target.arrow)
        case "DECIMAL":
            scaled = [None if v is None else Decimal(v).scaleb(-target.scale, _WIDE) for v in values]
            return pa.array(scaled, target.arrow)
        case "HUGEINT" | "INTERVAL" | "UUID":
            # Arrow makes no decimal of the 39 digits that HUGEINT may have, but holds them.
            data = b"".join((v or 0).to_bytes(16, "little", signed=True) for v in values)
            valid = np.packbits([v is not None for v in values], bitorder="little")
            return pa.Array.from_buffers(target.entries, len(values), [pa.py_buffer(valid), pa.py_buffer(data)])
    return pa.array(values, target.arrow)


def parse_boolean(text: str) -> bool | None:
    """true, t, yes, y, 1, and their opposites, in any case; no spaces."""
    return {
        "true": True, "t": True, "1": True, "yes": True, "y": True,
        "false": False, "f": False, "0": False, "no": False, "n": False,
    }.get(text.lower())  # fmt: skip


def _digits(text: str, start: int) -> tuple[str, int]:
    """Digits from a place on, single underscores between them left out, and the place after them."""
    place = start
    while place < len(text) and (
        text[place] in DIGITS
        or (
            text[place] == "_"
            and place > start
            and text[place - 1] in DIGITS
            and place + 1 < len(text)
            and text[place + 1] in DIGITS
        )
    ):
        place += 1
    return text[start:place].replace("_", ""), place


def _number(text: str) -> tuple[int, str, str, int] | None:
    """(sign, digits before the point, digits after it, exponent) of a number without spaces; None where it is none."""
    sign, place = 1, 0
    if text[:1] in ("-", "+"):
        sign, place = (-1 if text[0] == "-" else 1), 1
    whole, place = _digits(text, place)
    fraction, exponent = "", 0
    if text[place : place + 1] == ".":
        fraction, place = _digits(text, place + 1)
    if not whole and not fraction:
        return None
    if text[place : place + 1] in ("e", "E"):
        place += 1
        negative = text[place : place + 1] == "-"
        place += text[place : place + 1] in ("-", "+")
        power, place = _digits(text, place)
        if not power:
            return None
        exponent = min(int(power[:20]), LARGEST_EXPONENT + 1) * (-1 if negative else 1)
    return (sign, whole, fraction, exponent) if place == len(text) else None


def _scaled(number: tuple[int, str, str, int], scale: int) -> int | None:
    """A number times 10**scale, rounded half away from zero; None where it is larger than any type holds."""
    sign, whole, fraction, exponent = number
    if abs(exponent) > LARGEST_EXPONENT:
        return None
    digits = (whole + fraction).lstrip("0")
    shift = exponent + scale - len(fraction)
    if not digits:
        return 0
    if len(digits) + shift > 40:
        return None
    if shift >= 0:
        return sign * int(digits) * 10**shift
    kept, dropped = digits[: len(digits) + shift] if -shift < len(digits) else "", digits[shift:]
    value = int(kept or "0")
    if -shift <= len(digits) and dropped[0] >= "5":
        value += 1
    return sign * value


def parse_integer(text: str) -> int | None:
    """An integer of any size: decimal (rounded half away from zero where it has a fraction), 0x or 0b; None if none.

    >>> parse_integer(" 1_000 "), parse_integer("2.5"), parse_integer("0x1F"), parse_integer("a")
    (1000, 3, 31, None)
    """
    text = text.lstrip(SPACES)
    if text[:2] in ("0x", "0X", "0b", "0B") and text.isascii():
        base = 16 if text[1] in "xX" else 2
        allowed = "0123456789abcdefABCDEF_" if base == 16 else "01_"
        digits = text[2:]
        if not digits or digits[0] == "_" or digits[-1] == "_" or "__" in digits or digits.strip(allowed):
            return None
        return int(digits.replace("_", ""), base)
    number = _number(_without_last_point(text.rstrip(SPACES)))
    return None if number is None else _scaled(number, 0)


def _without_last_point(text: str) -> str:
    """Integers and decimals may end in a point after their exponent, in DuckDB too."""
    return text[:-1] if text.endswith(".") and ("e" in text or "E" in text) else text


def parse_decimal(text: str, precision: int, scale: int) -> int | None:
    """A DECIMAL as its scaled integer, rounded half away from zero; None where it is no number or too large.

    >>> parse_decimal("1.005", 5, 2)
    101
    """
    number = _number(_without_last_point(text.strip(SPACES)))
    if number is None or len(number[1].lstrip("0")) > precision - scale:  # before the exponent moves the point
        return None
    value = _scaled(number, scale)
    return value if value is not None and abs(value) < 10**precision else None


def parse_double(text: str) -> float | None:
    """A DOUBLE, correctly rounded; too large is infinite; inf, infinity and nan in any case.

    >>> parse_double("1e3"), parse_double("-inf"), parse_double("1x")
    (1000.0, -inf, None)
    """
    text = text.strip(SPACES).removeprefix("+")  # another sign may follow it, in DuckDB too
    number = _number(text)
    if number is None:
        bare = text[1:] if text[:1] in ("-", "+") else text
        if bare.lower() in ("inf", "infinity"):
            return -math.inf if text[0] == "-" else math.inf
        return math.nan if bare.lower() == "nan" else None
    return float(text)


def parse_real(text: str) -> float | None:
    """A REAL, correctly rounded from the digits (not by way of a DOUBLE)."""
    value = parse_double(text)
    if value is None or not math.isfinite(value):
        return value
    with np.errstate(over="ignore"):
        single = np.float32(value)
    middle = np.float64(value).view(np.int64) & 0x1FFFFFFF == 0x10000000 or 1e-46 < abs(value) < 1.2e-38
    if not middle:
        return float(single)
    # the double may have been rounded to the middle between two floats: then the digits decide
    exact = Decimal(text.strip(SPACES).removeprefix("+").replace("_", ""))
    below, above = np.nextafter(single, np.float32(-np.inf)), np.nextafter(single, np.float32(np.inf))
    even = not single.view(np.uint32) & 1
    low, high = _middle(below, single), _middle(single, above)
    if exact > high or (exact == high and not even):
        return float(above)
    return float(below) if exact < low or (exact == low and not even) else float(single)


def _middle(low: np.float32, high: np.float32) -> Decimal:
    """Halfway between two neighbours exactly; infinity stands for the number after the greatest."""
    ends = (float(x) if np.isfinite(x) else math.copysign(2.0**128, x) for x in (low, high))
    return Decimal(sum(end / 2 for end in ends))  # exact in a double, which has 29 bits more


def _parse_usual_dates(values: pa.Array) -> pa.Array | None:
    """All texts as YYYY-MM-DD at once; None where one is spelled otherwise."""
    if not compute.all(compute.match_substring_regex(values, r"\A\d{4}-\d{2}-\d{2}\z"), min_count=0).as_py():
        return None
    try:
        days = values.cast(pa.date32())
    except pa.ArrowInvalid:
        return None
    return days if compute.all(compute.greater_equal(days.cast(pa.int32()), -719162), min_count=0).as_py() else None


def _special(text: str) -> str | None:
    """The word of a date or timestamp that is one, without a sign; "" where it is none."""
    word = text.lower()
    return "infinity" if word in ("infinity", "inf") else "epoch" if word == "epoch" else ""


def _date_at(text: str) -> tuple[int, int] | str:
    """(days, place after them) of a date at the start of a text, else what is wrong with it.

    Year, month and day stand between one kind of "-", "/", a backslash or a space; " (BC)" may follow.
    """
    negative = text[:1] == "-"
    place = start = int(negative)
    while place < len(text) and text[place] in DIGITS:
        place += 1
    if place == start or place - start > 9:
        return "format" if place == start else "range"
    year = int(text[start:place])
    separator = text[place : place + 1]
    if separator not in ("-", "/", "\\", " ") or not separator:
        return "format"
    parts = []
    for end in (separator, ""):
        start = place = place + 1
        while place < len(text) and text[place] in DIGITS and place < start + 2:
            place += 1
        if place == start or (end and text[place : place + 1] != end):
            return "format"
        parts.append(int(text[start:place]))
    if text[place : place + 5].upper() == " (BC)":
        if negative or year == 0:
            return "format"
        year, place = 1 - year, place + 5
    elif negative:
        year = -year
    month, day = parts
    if not 1 <= month <= 12 or not 1 <= day <= days_in_month(year, month):
        return "range"
    days = days_of(year, month, day)
    return (days, place) if -INFINITE_DAYS < days < INFINITE_DAYS else "range"


def parse_date(text: str) -> int | None:
    """A DATE in days since 1970-01-01; a time after it is allowed and left out; None where it is no date.

    >>> parse_date("2013-07-04"), parse_date("2013-02-30")
    (15890, None)
    """
    text = text.strip(SPACES)
    if word := _special(text.removeprefix("-")):
        if word == "epoch":
            return 0
        return -INFINITE_DAYS if text[0] == "-" else INFINITE_DAYS
    found = _date_at(text)
    if isinstance(found, str):
        return None
    if found[1] == len(text):
        return found[0]
    rest = _time_at(text, found[1])
    return found[0] if rest is not None and _zone_ends(text, rest[1]) else None


def _time_at(text: str, place: int) -> tuple[int, int] | None:
    """(microseconds, place after them) of a time that follows a date after spaces or a T, to 24:00:00."""
    if text[place : place + 1] not in (" ", "T", *"\t\n\v\f\r"):
        return None
    place += 1
    while place < len(text) and text[place] in SPACES:
        place += 1
    start = place
    while place < len(text) and text[place] in DIGITS and place < start + 9:
        place += 1
    if place == start or text[place : place + 1] != ":":
        return None
    hours = int(text[start:place])
    fields = [0, 0]
    for index in range(2):
        if text[place : place + 1] != ":":
            break
        start = place = place + 1
        while place < len(text) and text[place] in DIGITS and place < start + 2:
            place += 1
        if place == start:
            break
        fields[index] = int(text[start:place])
        if index == 1 and text[place : place + 1] == ".":
            fraction, place = _plain_digits(text, place + 1)
            fields.append(int((fraction + "000000")[:6]))
    minutes, seconds, *rest = fields
    if minutes > 59 or seconds > 59:
        return None
    microseconds = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + sum(rest)
    return (microseconds, place) if microseconds <= MICROSECONDS_A_DAY else None


def _plain_digits(text: str, start: int) -> tuple[str, int]:
    place = start
    while place < len(text) and text[place] in DIGITS:
        place += 1
    return text[start:place], place


def _zone_ends(text: str, place: int) -> bool:
    """Whether a text ends after an optional zone: Z, an offset, or a name.  A TIMESTAMP has none, so it changes nothing."""
    rest = text[place:].rstrip(SPACES)
    if rest in ("", "Z"):
        return True
    if rest.startswith(" "):
        rest = rest[1:]
        if rest and rest[0] not in "+-" and all((c.isascii() and c.isalnum()) or c in "_/+-" for c in rest):
            return True
    if rest[:1] not in ("+", "-"):
        return False
    hours, place = _plain_digits(rest, 1)
    if ":" not in rest:
        return len(hours) in (2, 4) and place == len(rest)
    fields = rest[1:].split(":")
    return len(fields) <= 3 and all(len(field) == 2 and set(field) <= DIGITS for field in fields)


def parse_time(text: str) -> int | None:
    """A TIME in microseconds, to 24:00:00; a date before it and an offset behind it are left out; None where it is none.

    >>> parse_time("1:02:03.5"), parse_time("2013-07-04 00:00:01"), parse_time("24:00:01")
    (3723500000, 1000000, None)
    """
    found = _time_at(" " + text.strip(SPACES), 0)
    if found is not None and _zone_ends(" " + text.strip(SPACES), found[1]):
        rest = text.strip(SPACES)[found[1] - 1 :]
        return found[0] if rest[:1] != " " else None
    moment = parse_timestamp(text)
    return None if moment is None or abs(moment) >= INFINITE_MICROSECONDS else moment % MICROSECONDS_A_DAY


def zone_at(text: str) -> int | str | None:
    """How far ahead of UTC the end of a timestamp's text says it is, in microseconds, or its zone's name, or None.

    The text is one that `parse_timestamp` takes, with a time.
    """
    if text.endswith("Z") and text[-2:-1] in DIGITS:
        return 0
    place = text.find(":")
    if place < 0:
        return None
    while place < len(text) and text[place] in ":.0123456789":
        place += 1
    rest = text[place:]
    if not rest:
        return None
    if rest[0] not in "+-":
        return rest.strip(SPACES)
    fields = rest[1:].split(":") if ":" in rest else [rest[1:3], rest[3:]]
    seconds = sum(int(field or 0) * unit for field, unit in zip(fields, (3600, 60, 1), strict=False))
    return (-seconds if rest[0] == "-" else seconds) * 1_000_000


def parse_timestamp(text: str) -> int | None:
    """A TIMESTAMP in microseconds since 1970-01-01; digits of a fraction beyond six are cut; None where it is none.

    >>> parse_timestamp("1970-01-01 00:00:01.5"), parse_timestamp("1970-01-01")
    (1500000, 0)
    """
    text = text.strip(SPACES) if text[-1:] not in SPACES or _special(text.strip(SPACES)) else text.lstrip(SPACES)
    if word := _special(text.removeprefix("-")):
        if word == "epoch":
            return 0
        return -INFINITE_MICROSECONDS if text[0] == "-" else INFINITE_MICROSECONDS
    found = _date_at(text)
    if isinstance(found, str):
        return None
    days, place = found
    time = 0
    if place < len(text):
        rest = _time_at(text, place)
        if rest is None or not _zone_ends(text, rest[1]):
            return None
        time = rest[0]
    microseconds = days * MICROSECONDS_A_DAY + time
    return microseconds if -INFINITE_MICROSECONDS < microseconds < INFINITE_MICROSECONDS else None
