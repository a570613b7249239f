"""The names of the types in SQL: those that are here, and those that the dialect has besides."""

from __future__ import annotations

from typing import Any

from gpudb.errors import BindError, NotSupportedError
from gpudb.types import (
    BIGINT,
    BLOB,
    BOOLEAN,
    DATE,
    DOUBLE,
    HUGEINT,
    INTEGER,
    INTERVAL,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TINYINT,
    UBIGINT,
    UINTEGER,
    USMALLINT,
    UTINYINT,
    UUID,
    VARCHAR,
    SqlType,
)

TYPE_NAMES = {
    name: type_
    for type_, names in {
        BOOLEAN: "boolean bool logical",
        TINYINT: "tinyint int1",
        SMALLINT: "smallint int2 short int16",
        INTEGER: "integer int int4 signed int32 integral",
        BIGINT: "bigint int8 long int64 oid",
        HUGEINT: "hugeint int128",
        UTINYINT: "utinyint uint8",
        USMALLINT: "usmallint uint16",
        UINTEGER: "uinteger uint32",
        UBIGINT: "ubigint uint64",
        REAL: "real float4 float",
        DOUBLE: "double float8",
        DATE: "date",
        TIME: "time",
        TIMESTAMP: "timestamp datetime timestamp_us",
        TIMESTAMPTZ: "timestamptz",
        BLOB: "blob bytea binary varbinary",
        VARCHAR: "varchar text string char bpchar nvarchar",
        INTERVAL: "interval",
        UUID: "uuid guid",
    }.items()
    for name in names.split()
}
TYPE_NAMES |= {
    "double precision": DOUBLE,
    "time without time zone": TIME,
    "timestamp without time zone": TIMESTAMP,
    "timestamp with time zone": TIMESTAMPTZ,
    "character varying": VARCHAR,
    "char varying": VARCHAR,
    "character": VARCHAR,
}

# Types that the dialect knows and this engine does not have.
KNOWN_TYPES = frozenset(
    """uhugeint uint128 bit
    bitstring timetz time_ns timestamp_s timestamp_ms timestamp_ns json enum list struct map union
    array row variant geometry bignum varint""".split()
)


def named_type(name: Any) -> SqlType:
    """The type of a SQL name without modifiers, or of Python's int, float and bool; raises BindError, NotSupportedError."""
    if isinstance(name, SqlType):
        return name
    if isinstance(name, type):
        name = {int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN", str: "VARCHAR"}.get(name, name.__name__)
    wanted = " ".join(str(name).lower().split())
    found = TYPE_NAMES.get(wanted)
    if found is None:
        base = wanted.partition("(")[0].strip()
        if base in KNOWN_TYPES or base in ("decimal", "numeric", "dec", "interval"):
            raise NotSupportedError(f"this type is not supported here: {name}")
        raise BindError(f"type not found: {name}")
    return found
