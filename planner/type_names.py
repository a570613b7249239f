"""The names of the types in SQL: those that are here, and those that the dialect has besides."""

from __future__ import annotations

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
    VARCHAR,
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
        REAL: "real float4 float",
        DOUBLE: "double float8",
        DATE: "date",
        TIME: "time",
        TIMESTAMP: "timestamp datetime timestamp_us",
        TIMESTAMPTZ: "timestamptz",
        BLOB: "blob bytea binary varbinary",
        VARCHAR: "varchar text string char bpchar nvarchar",
        INTERVAL: "interval",
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
    """utinyint usmallint uinteger ubigint uhugeint uint8 uint16 uint32 uint64 uint128 bit
    bitstring timetz time_ns timestamp_s timestamp_ms timestamp_ns uuid guid json enum list struct map union
    array row variant geometry bignum varint""".split()
)
