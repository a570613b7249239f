"""Parameters given to execute(): their SQL types and their values as the planner holds constants."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from gpudb.errors import InterfaceError, ParameterValueError
from gpudb.types import (
    BIGINT,
    BLOB,
    BOOLEAN,
    DATE,
    DOUBLE,
    HUGEINT,
    INTEGER,
    INTERVAL,
    NULL,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    VARCHAR,
    Interval,
    SqlType,
    decimal,
)

EPOCH = datetime.datetime(1970, 1, 1)
EPOCH_DAY = datetime.date(1970, 1, 1)


def typed_parameter(value: Any) -> tuple[SqlType, Any]:
    """(SQL type, value) of a Python value: scaled integers for Decimal, days for date, microseconds for datetime."""
    if hasattr(value, "item") and type(value).__module__ == "numpy":
        value = value.item()
    match value:
        case None:
            return NULL, None
        case bool():
            return BOOLEAN, value
        case int():
            if -(1 << 31) <= value < 1 << 31:
                return INTEGER, value
            if -(1 << 63) <= value < 1 << 63:
                return BIGINT, value
            if -(1 << 127) <= value < 1 << 127:
                return HUGEINT, value
            raise ParameterValueError(f"integer parameter does not fit 128 bits: {value}")
        case float():
            return DOUBLE, value
        case str():
            return VARCHAR, value
        case bytes() | bytearray() | memoryview():
            return BLOB, bytes(value).decode("latin-1")
        case Decimal():
            return _decimal(value)
        case datetime.datetime():
            if value.tzinfo is not None:
                moment = value.astimezone(datetime.UTC).replace(tzinfo=None)
                return TIMESTAMPTZ, (moment - EPOCH) // datetime.timedelta(microseconds=1)
            return TIMESTAMP, (value - EPOCH) // datetime.timedelta(microseconds=1)
        case datetime.date():
            return DATE, (value - EPOCH_DAY).days
        case datetime.time():
            if value.tzinfo is not None:
                raise ParameterValueError("a time of day with a time zone is not supported", hint="drop tzinfo")
            return TIME, ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
        case datetime.timedelta():
            return INTERVAL, Interval(0, value.days, value.seconds * 1_000_000 + value.microseconds)
        case uuid.UUID():
            return UUID, value.int - (1 << 127)
    raise ParameterValueError(f"a parameter of this Python type is not supported: {type(value).__name__}")


def _decimal(value: Decimal) -> tuple[SqlType, Any]:
    if not value.is_finite():
        return DOUBLE, float(value)
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    unscaled = int("".join(map(str, digits)) or "0") * 10 ** max(0, exponent)
    precision = max(len(str(unscaled)), scale, 1)
    if precision > 38:
        raise ParameterValueError(f"decimal parameter has more than 38 digits: {value}")
    return decimal(precision, scale), -unscaled if sign else unscaled


def typed_parameters(given: Sequence[Any] | Mapping[str, Any] | None) -> tuple[Any, Any]:
    """Types and values: tuple and list for a sequence, two dicts for a mapping (types as a sorted tuple of pairs too)."""
    if given is None:
        return (), []
    if isinstance(given, Mapping):
        pairs = {name: typed_parameter(value) for name, value in given.items()}
        return FrozenTypes((name, kind) for name, (kind, _) in pairs.items()), {n: v for n, (_, v) in pairs.items()}
    if isinstance(given, (str, bytes)):
        raise InterfaceError("parameters must be a sequence or a mapping, not text")
    typed = [typed_parameter(value) for value in given]
    return tuple(kind for kind, _ in typed), [value for _, value in typed]


class FrozenTypes(dict[str, SqlType]):
    """Types by parameter name, usable in a cache key."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))
