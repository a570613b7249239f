"""SQL types, register types and the rules that tie them to Arrow.

A **SQL type** is what a user sees.  A **register type** is how one value lies in a tile's registers while a program
runs.  They differ on purpose: `emit` picks the narrowest register that holds a proven range (an INTEGER that is known to
be 0..200 travels as u8).  TEXT travels as u32 dictionary codes, BOOLEAN as mask bytes 0/1, DECIMAL as a scaled integer.
"""

from __future__ import annotations

import enum
from functools import cached_property

import numpy as np
import pyarrow as pa

from gpudb.record import record


class RegisterType(enum.Enum):
    """How a value lies in a register: (suffix in opcode names, C++ name, NumPy dtype, bytes)."""

    MASK = ("mask", "Mask", np.uint8, 1)
    U8 = ("u8", "uint8", np.uint8, 1)
    U16 = ("u16", "uint16", np.uint16, 2)
    U32 = ("u32", "uint32", np.uint32, 4)
    I32 = ("i32", "int32", np.int32, 4)
    I64 = ("i64", "int64", np.int64, 8)
    I128 = ("i128", "int128", np.object_, 16)
    F32 = ("f32", "float32", np.float32, 4)
    F64 = ("f64", "float64", np.float64, 8)

    # Members are equal only to themselves; Enum's own hash is Python code, and programs are full of types.
    __hash__ = object.__hash__

    def __init__(self, suffix: str, cpp: str, dtype: type, width: int) -> None:
        self.suffix = suffix
        self.cpp = cpp
        self.dtype = np.dtype(dtype)
        self.width = width

    @property
    def is_integer(self) -> bool:
        return self not in (RegisterType.MASK, RegisterType.F32, RegisterType.F64)

    @property
    def is_float(self) -> bool:
        return self in (RegisterType.F32, RegisterType.F64)


INTEGER_BITS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128}
UNSIGNED_BITS = {"UTINYINT": 8, "USMALLINT": 16, "UINTEGER": 32, "UBIGINT": 64}


@record
class SqlType:
    """One SQL type.  `precision` and `scale` are set for DECIMAL only, `child`, the type of its elements, for LIST,
    `values` in their order for ENUM.

    kind  BOOLEAN TINYINT SMALLINT INTEGER BIGINT HUGEINT UTINYINT USMALLINT UINTEGER UBIGINT DECIMAL REAL DOUBLE
          DATE TIME TIMESTAMP TIMESTAMPTZ VARCHAR BLOB ENUM INTERVAL UUID LIST NULL (the type of a bare NULL literal before
          it meets another type)
    """

    kind: str
    precision: int = 0
    scale: int = 0
    child: SqlType | None = None
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The name DuckDB prints: REAL is FLOAT there, a bare NULL is "NULL"."""
        if self.kind == "DECIMAL":
            return f"DECIMAL({self.precision},{self.scale})"
        if self.child is not None:
            return f"{self.child}[]"
        if self.kind == "ENUM":
            return f"ENUM({', '.join(quoted_text(value) for value in self.values)})"
        return {"REAL": "FLOAT", "NULL": '"NULL"', "TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE"}.get(self.kind, self.kind)

    @property
    def is_integer(self) -> bool:
        return self.kind in INTEGER_BITS or self.kind in UNSIGNED_BITS

    @property
    def is_unsigned(self) -> bool:
        return self.kind in UNSIGNED_BITS

    @property
    def is_float(self) -> bool:
        return self.kind in ("REAL", "DOUBLE")

    @property
    def is_numeric(self) -> bool:
        return self.is_integer or self.is_float or self.kind == "DECIMAL"

    @property
    def is_temporal(self) -> bool:
        return self.kind in ("DATE", "TIMESTAMP", "TIMESTAMPTZ")

    @property
    def is_text(self) -> bool:
        return self.kind == "VARCHAR"

    @property
    def is_coded(self) -> bool:
        """True where values are codes of a dictionary: texts, and bytes and lists as `functions` spells them."""
        return self.kind in ("VARCHAR", "BLOB", "LIST")

    @property
    def entries(self) -> pa.DataType:
        """The Arrow type of values where a function runs over dictionary entries: a list is text there, an INTERVAL or UUID
        bits, an ENUM its value's place."""
        if self.kind == "ENUM":
            return pa.int32()
        if self.kind in ("INTERVAL", "UUID"):
            return pa.decimal128(38)
        return pa.string() if self.is_coded else self.arrow

    @property
    def is_exact(self) -> bool:
        """True where a value is an integer times a constant, or bits (INTERVAL, UUID): everything but floats and text."""
        return (
            self.is_integer
            or self.is_temporal
            or self.kind in ("DECIMAL", "BOOLEAN", "TIME", "INTERVAL", "UUID", "ENUM")
        )

    @property
    def is_wide(self) -> bool:
        """True where a value may need 128 bits."""
        return self.kind in ("DECIMAL", "HUGEINT", "UBIGINT", "INTERVAL", "UUID")

    @cached_property
    def bounds(self) -> tuple[int, int]:
        """Inclusive (low, high) of the integer behind an exact type, in units of the stored integer.

        TIME in microseconds, to 24:00:00; DATE in days, TIMESTAMP and TIMESTAMPTZ (of UTC) in microseconds since
        1970-01-01; DECIMAL scaled by 10**scale.
        """
        if self.is_unsigned:
            return 0, (1 << UNSIGNED_BITS[self.kind]) - 1
        if self.is_integer:
            half = 1 << (INTEGER_BITS[self.kind] - 1)
            return -half, half - 1
        if self.kind == "DECIMAL":
            return -(10**self.precision) + 1, 10**self.precision - 1
        if self.kind == "BOOLEAN":
            return 0, 1
        if self.kind == "DATE":
            return -(1 << 31) + 1, (1 << 31) - 1
        if self.kind in ("INTERVAL", "UUID"):
            return -(1 << 127), (1 << 127) - 1
        if self.kind == "ENUM":
            return 0, max(0, len(self.values) - 1)
        if self.kind == "TIME":
            return 0, 86_400_000_000
        if self.kind in ("TIMESTAMP", "TIMESTAMPTZ"):
            return -(1 << 63) + 1, (1 << 63) - 1
        raise AssertionError(f"bounds of a type without them: {self}")

    @cached_property
    def register(self) -> RegisterType:
        """The widest register this type ever needs; `emit` may prove a narrower one."""
        return {
            "BOOLEAN": RegisterType.MASK,
            "TINYINT": RegisterType.I32,
            "SMALLINT": RegisterType.I32,
            "INTEGER": RegisterType.I32,
            "BIGINT": RegisterType.I64,
            "HUGEINT": RegisterType.I128,
            "UTINYINT": RegisterType.I32,
            "USMALLINT": RegisterType.I32,
            "UINTEGER": RegisterType.I64,
            "UBIGINT": RegisterType.I128,
            "DECIMAL": RegisterType.I64 if self.precision <= 18 else RegisterType.I128,
            "REAL": RegisterType.F32,
            "DOUBLE": RegisterType.F64,
            "DATE": RegisterType.I32,
            "TIME": RegisterType.I64,
            "TIMESTAMP": RegisterType.I64,
            "TIMESTAMPTZ": RegisterType.I64,
            "VARCHAR": RegisterType.U32,
            "BLOB": RegisterType.U32,
            "ENUM": RegisterType.I32,
            "INTERVAL": RegisterType.I128,
            "UUID": RegisterType.I128,
            "LIST": RegisterType.U32,
            "NULL": RegisterType.I32,
        }[self.kind]

    @cached_property
    def arrow(self) -> pa.DataType:
        """The Arrow type of a column; HUGEINT is decimal128(38, 0), as DuckDB exports it.  A result's TIMESTAMPTZ names the
        session's zone (`shown_in`)."""
        if self.kind == "DECIMAL":
            return pa.decimal128(self.precision, self.scale)
        if self.child is not None:
            return pa.list_(pa.field("l", self.child.arrow))
        if self.kind == "ENUM":
            count = len(self.values)
            index = pa.uint8() if count <= 1 << 8 else pa.uint16() if count <= 1 << 16 else pa.uint32()
            return pa.dictionary(index, pa.string())
        return {
            "BOOLEAN": pa.bool_(),
            "TINYINT": pa.int8(),
            "SMALLINT": pa.int16(),
            "INTEGER": pa.int32(),
            "BIGINT": pa.int64(),
            "HUGEINT": pa.decimal128(38, 0),
            "UTINYINT": pa.uint8(),
            "USMALLINT": pa.uint16(),
            "UINTEGER": pa.uint32(),
            "UBIGINT": pa.uint64(),
            "REAL": pa.float32(),
            "DOUBLE": pa.float64(),
            "DATE": pa.date32(),
            "TIME": pa.time64("us"),
            "TIMESTAMP": pa.timestamp("us"),
            "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
            "VARCHAR": pa.string(),
            "BLOB": pa.binary(),
            "INTERVAL": pa.month_day_nano_interval(),
            "UUID": pa.string(),
            "NULL": pa.int32(),
        }[self.kind]


BOOLEAN = SqlType("BOOLEAN")
TINYINT = SqlType("TINYINT")
SMALLINT = SqlType("SMALLINT")
INTEGER = SqlType("INTEGER")
BIGINT = SqlType("BIGINT")
HUGEINT = SqlType("HUGEINT")
UTINYINT = SqlType("UTINYINT")
USMALLINT = SqlType("USMALLINT")
UINTEGER = SqlType("UINTEGER")
UBIGINT = SqlType("UBIGINT")
REAL = SqlType("REAL")
DOUBLE = SqlType("DOUBLE")
DATE = SqlType("DATE")
TIME = SqlType("TIME")
TIMESTAMP = SqlType("TIMESTAMP")
TIMESTAMPTZ = SqlType("TIMESTAMPTZ")
VARCHAR = SqlType("VARCHAR")
BLOB = SqlType("BLOB")
INTERVAL = SqlType("INTERVAL")
UUID = SqlType("UUID")
NULL = SqlType("NULL")


def quoted_text(text: str) -> str:
    """A text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def enum_of(values: tuple[str, ...]) -> SqlType:
    """The ENUM of some texts, in their order."""
    return SqlType("ENUM", values=values)


def shown_in(sql: SqlType, zone: str) -> pa.DataType:
    """The Arrow type of a result column in a session of a time zone."""
    if sql.child is not None:
        return pa.list_(pa.field("l", shown_in(sql.child, zone)))
    return pa.timestamp("us", zone) if sql.kind == "TIMESTAMPTZ" else sql.arrow


def decimal(precision: int, scale: int) -> SqlType:
    """DECIMAL(precision, scale); precision 1..38, 0 <= scale <= precision."""
    assert 1 <= precision <= 38 and 0 <= scale <= precision, "DECIMAL out of range"
    return SqlType("DECIMAL", precision, scale)


@record
class Interval:
    """An INTERVAL value: months, days and microseconds, never normalised into each other (as DuckDB and PostgreSQL)."""

    months: int = 0
    days: int = 0
    microseconds: int = 0


def list_of(child: SqlType) -> SqlType:
    """The type of lists of values of a type; of bare NULLs, as DuckDB stores those, INTEGER[]."""
    return SqlType("LIST", child=INTEGER if child.kind == "NULL" else child)
