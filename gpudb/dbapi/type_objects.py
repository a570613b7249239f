"""PEP 249's type objects and constructors."""

from __future__ import annotations

import datetime

from gpudb.types import SqlType


class TypeObject:
    """A PEP 249 type object: equal to the SQL type of a description entry when it is one of `kinds`."""

    def __init__(self, name: str, *kinds: str) -> None:
        self.name = name
        self.kinds = frozenset(kinds)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SqlType):
            return other.kind in self.kinds
        return self is other

    __hash__ = None  # type: ignore[assignment]  # equal to several types, so no hash could be consistent

    def __repr__(self) -> str:
        return f"gpudb.{self.name}"


STRING = TypeObject("STRING", "VARCHAR")
BINARY = TypeObject("BINARY", "BLOB")
NUMBER = TypeObject(
    "NUMBER",
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "HUGEINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
    "DECIMAL",
    "REAL",
    "DOUBLE",
    "BOOLEAN",
)
DATETIME = TypeObject("DATETIME", "DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "INTERVAL")
ROWID = TypeObject("ROWID")  # gpudb shows no row ids, so nothing equals it

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:
    """The local date of `ticks` seconds since 1970-01-01 UTC."""
    return datetime.date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> datetime.time:
    """The local time of day of `ticks` seconds since 1970-01-01 UTC."""
    return datetime.datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """The local date and time of `ticks` seconds since 1970-01-01 UTC."""
    return datetime.datetime.fromtimestamp(ticks)
