"""Constants across types: what a literal's text or number is in another type, and how a literal follows from its token.

The binder turns literals into the type they meet; a cached plan that is run with other literals repeats those steps, by
`literal_value`, on the new values.  The two must never differ, so both call `cast_constant`.
"""

from __future__ import annotations

import math
from typing import Any

from gpudb.calendar import MICROSECONDS_A_DAY
from gpudb.errors import ConversionError, NotSupportedError, OutOfRangeError
from gpudb.functions.blob import parse_blob, print_blob
from gpudb.functions.cast_text import (
    INFINITE_MICROSECONDS,
    parse_boolean,
    parse_date,
    parse_decimal,
    parse_double,
    parse_integer,
    parse_real,
    parse_time,
    parse_timestamp,
)
from gpudb.functions.interval_values import UNITS, checked_interval, parse_interval
from gpudb.functions.uuid_values import parse_uuid, print_uuid, uuid_bytes, uuid_of_bytes
from gpudb.functions.zoned import moved, parse_zoned, print_zoned
from gpudb.planner.expressions import Literal
from gpudb.types import DOUBLE, TIMESTAMP, VARCHAR, Interval, SqlType


def literal_value(literal: Literal, raw: Any) -> Any:
    """The literal's value when its slot holds `raw`: repeats the literal's steps.

    Raises ConversionError or OutOfRangeError as the steps did when they were first taken.
    """
    value = raw
    for operation, source, target in literal.steps:
        if operation == "negate":
            value = None if value is None else -value
        elif operation == "microseconds of":
            value = None if value is None else interval_microseconds(value)
        elif operation == "cast" or operation.startswith("cast in "):
            value = cast_constant(value, source, target, operation[len("cast in ") :])
        else:
            value = interval_constant(operation, value, source)
    return value


def cast_constant(value: Any, source: SqlType, target: SqlType, zone: str = "") -> Any:
    """CAST of a constant, both sides in the form of `Literal.value`; NULL stays NULL.

    zone  the session's time zone, for TIMESTAMP WITH TIME ZONE

    Raises ConversionError for text that is no value of the type, OutOfRangeError for a number that does not fit,
    NotSupportedError where `can_cast_constant` says no.
    """
    if value is None or source == target:
        return value
    if "TIMESTAMPTZ" in (source.kind, target.kind):
        return _zoned(value, source, target, zone)
    if source.kind == "ENUM":
        return cast_constant(source.values[value], VARCHAR, target, zone)
    if source.kind == "BLOB":
        return print_blob(value) if target.is_text else uuid_of_bytes(value)
    if source.is_text:
        return _from_text(value, target)
    if source.kind == "UUID":
        return print_uuid(value) if target.is_text else uuid_bytes(value)
    if target.kind == "BOOLEAN" and source.is_numeric:
        return value != 0
    if source.kind == "BOOLEAN":
        value, source = int(value), SqlType("TINYINT")
    if target.is_integer:
        return _checked(_rounded(value, source, 0), value, source, target)
    if target.kind == "DECIMAL":
        rounded = _rounded(value, source, target.scale)
        if source.is_float and rounded is not None and abs(rounded) >= float(10**target.precision):
            rounded = None  # DuckDB refuses the double nearest to the power of ten, though it may be less
        return _checked(rounded, value, source, target)
    if target.is_float:
        number = value / 10**source.scale if source.kind == "DECIMAL" else float(value)
        return _as_real(number) if target.kind == "REAL" else number
    if source.kind == "TIMESTAMP" and target.kind == "TIME":
        if abs(value) >= INFINITE_MICROSECONDS:
            raise ConversionError("an infinite TIMESTAMP has no TIME")
        return value % MICROSECONDS_A_DAY
    if source.kind == "DATE" and target.kind == "TIMESTAMP":
        return _checked(value * MICROSECONDS_A_DAY, value, source, target)
    if source.kind == "TIMESTAMP" and target.kind == "DATE":
        return value // MICROSECONDS_A_DAY
    raise NotSupportedError(f"cast of a constant from {source} to {target} is not supported")


def can_cast_constant(source: SqlType, target: SqlType) -> bool:
    """Whether `cast_constant` knows the way."""
    if source == target or source.kind == "NULL":
        return True
    if source.is_text:
        return target.kind != "NULL"
    if source.is_numeric or source.kind == "BOOLEAN":
        return target.is_numeric or target.kind == "BOOLEAN"
    if source.kind == "ENUM":
        return can_cast_constant(VARCHAR, target)
    if source.kind == "BLOB":
        return target.is_text or target.kind == "UUID"
    if source.kind == "UUID":
        return target.is_text or target.kind == "BLOB"
    return source.is_temporal and (target.is_temporal or (source.kind, target.kind) == ("TIMESTAMP", "TIME"))


def _zoned(value: Any, source: SqlType, target: SqlType, zone: str) -> Any:
    """To or from TIMESTAMP WITH TIME ZONE, through a zone."""
    if source.kind == "TIMESTAMPTZ":
        if target.is_text:
            return print_zoned(value, zone)
        return cast_constant(moved(zone, value, 1, target), TIMESTAMP, target)
    if source.is_text:
        found = parse_zoned(value, zone)
        if found is None:
            raise ConversionError(f"text is not a value of type {target}: {_quoted(value)}")
        return found
    return moved(zone, cast_constant(value, source, TIMESTAMP), -1, target)


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")


def _from_text(text: str, target: SqlType) -> Any:
    value: Any
    kind = target.kind
    if target.is_integer:
        value = parse_integer(text)
        low, high = target.bounds
        value = value if value is not None and low <= value <= high else None
    elif kind == "DECIMAL":
        value = parse_decimal(text, target.precision, target.scale)
    elif kind == "INTERVAL":
        value = parse_interval(text)
    elif kind == "ENUM":
        value = target.values.index(text) if text in target.values else None
    else:
        parse = {
            "BLOB": parse_blob,
            "BOOLEAN": parse_boolean,
            "REAL": parse_real,
            "DOUBLE": parse_double,
            "DATE": parse_date,
            "TIME": parse_time,
            "TIMESTAMP": parse_timestamp,
            "UUID": parse_uuid,
        }.get(kind)
        if parse is None:
            raise NotSupportedError(f"cast of text to {target} is not supported")
        value = parse(text)
    if value is None:
        raise ConversionError(f"text is not a value of type {target}: {_quoted(text)}")
    return value


def _rounded(value: Any, source: SqlType, scale: int) -> int | None:
    """A number as an integer scaled by 10**scale; half away from zero for DECIMAL, half to even for floats (as DuckDB)."""
    if source.is_float:
        if math.isnan(value) or math.isinf(value):
            return None
        if scale == 0:
            return round(value)
        scaled = value * 10.0**scale
        return None if math.isinf(scaled) else int(math.copysign(math.floor(abs(scaled) + 0.5), scaled))
    if scale >= source.scale:
        return int(value) * 10 ** (scale - source.scale)
    divisor = 10 ** (source.scale - scale)
    quotient, remainder = divmod(abs(value), divisor)
    quotient += 2 * remainder >= divisor
    return quotient if value >= 0 else -quotient


def _checked(result: int | None, value: Any, source: SqlType, target: SqlType) -> int:
    low, high = target.bounds
    if result is None or not low <= result <= high:
        raise OutOfRangeError(f"value does not fit into {target}: {_shown(value, source)}")
    return result


def _shown(value: Any, source: SqlType) -> str:
    if source.kind == "DECIMAL" and source.scale:
        digits = f"{abs(value):0{source.scale + 1}}"
        return f"{'-' if value < 0 else ''}{digits[: -source.scale]}.{digits[-source.scale :]}"
    return str(value)


def _as_real(number: float) -> float:
    """Rounded to 32 bits; what is too large overflows to an error, as a cast does.

    The standard form "<f" checks the range; the native form "f" gives infinity.
    """
    import struct

    if math.isnan(number) or math.isinf(number):
        return number
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        raise OutOfRangeError(f"value does not fit into FLOAT: {number}") from None


# --- Intervals -------------------------------------------------------------------------------------------------------


def interval_constant(unit: str, value: Any, source: SqlType) -> Interval | None:
    """INTERVAL value UNIT: to_days and its kin.  Fractions are cut, but for seconds and milliseconds, as in DuckDB."""
    if value is None:
        return None
    number = cast_constant(value, source, DOUBLE)
    field, factor = UNITS[unit]
    if unit in ("seconds", "milliseconds"):
        amount = round(number * factor)
    else:
        amount = math.trunc(number) * factor
    return checked_interval(**{field: amount})


def interval_microseconds(value: Interval) -> int:
    """What an INTERVAL compares by: a month counts 30 days, a day 24 hours."""
    return (value.months * 30 + value.days) * MICROSECONDS_A_DAY + value.microseconds


def interval_type(unit: str) -> str:
    """The integer type that the printed form of INTERVAL x UNIT casts x to, '' where it stays DOUBLE."""
    if unit in ("seconds", "milliseconds"):
        return ""
    return "BIGINT" if UNITS[unit][0] == "microseconds" else "INTEGER"
