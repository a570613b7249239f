"""What the planner may know of the data: a protocol, so that the planner touches no data, no device and no file.

Statistics are rounded outwards (ranges and row bounds to powers of two), so that ordinary appends keep cached plans.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Sequence as Several
from dataclasses import replace
from typing import Any, Protocol

from gpudb.errors import NotSupportedError, OutOfRangeError
from gpudb.functions.registry import Function
from gpudb.record import record
from gpudb.types import RegisterType, SqlType


@record
class ColumnLayout:
    """How one column of a table version is stored, as far as `emit` relies on it; part of the plan cache's key.

    stored    register type of the stored values: U8 U16 U32 I64 (integers, codes), MASK, F32, F64; None: one constant a
              row group, nothing stored
    has_nulls whether validity bits are stored
    low, high inclusive bounds of the SQL value behind it (scaled integer), rounded outwards; for text of the code;
              for floats bounds as Python floats (None when NaN or an infinity occurs)
    encoded   True where value = base + scale * stored needs doing; False where stored is the value
    distinct  upper bound of distinct values, rounded up to a power of two (dictionary size, or range), or None
    """

    stored: RegisterType | None
    has_nulls: bool
    low: int | float | None
    high: int | float | None
    encoded: bool
    distinct: int | None = None


SMALLEST_ROW_BOUND = 4096  # of a table, so that small ones can grow without many new plans


@record
class TableLayout:
    """One table version as the planner sees it.

    name        the catalog's key
    columns     (name as written, SQL type) in order
    layouts     one ColumnLayout a column
    row_bound   power of two that no later version of this layout exceeds
    rows        about how many rows there are: row_bound, of a small table the next power of four
    version     changes whenever anything here changes
    """

    name: str
    columns: tuple[tuple[str, SqlType], ...]
    layouts: tuple[ColumnLayout, ...]
    row_bound: int
    rows: int
    version: int


@record
class View:
    """A query with a name; it is bound anew wherever it is used.

    name     as written; `schema.view` in a schema other than main
    columns  names of its first columns, where it was made with names
    sql      the query
    """

    name: str
    columns: tuple[str, ...]
    sql: str


@record
class Schema:
    """A schema other than main, which is always there."""

    name: str


@record
class Defaults:
    """What columns of a table hold in rows that leave them out.

    name     of the table
    columns  (name of a column, SQL of its DEFAULT)
    """

    name: str
    columns: tuple[tuple[str, str], ...]


@record
class Constraint:
    """What rows of a table must fulfil.

    kind     NOT NULL, CHECK, UNIQUE or PRIMARY KEY
    columns  names of the columns that it is about, in the order of the key
    sql      of a CHECK: the condition, which no row may make false
    label    the name that it was given, where it was
    behind   a key that was written behind its one column, not behind all columns
    """

    kind: str
    columns: tuple[str, ...]
    sql: str | None = None
    label: str | None = None
    behind: bool = False

    @property
    def is_key(self) -> bool:
        """Whether it allows no two rows with the same values."""
        return self.kind in ("UNIQUE", "PRIMARY KEY")

    def called(self, table: str) -> str:
        """The name that it was given, or else one as DuckDB makes it; `table` without its schema."""
        ending = {"NOT NULL": "not_null", "CHECK": "check", "UNIQUE": "key", "PRIMARY KEY": "pkey"}[self.kind]
        return self.label or "_".join((table, *(name.lower() for name in self.columns), ending))


@record
class Constraints:
    """What rows of a table must fulfil; a primary key's columns have their NOT NULL, too.

    name  of the table
    """

    name: str
    items: tuple[Constraint, ...]

    @property
    def not_null(self) -> tuple[str, ...]:
        """Names of columns that hold no NULL."""
        return tuple(one.columns[0] for one in self.items if one.kind == "NOT NULL")

    @property
    def keys(self) -> tuple[Constraint, ...]:
        """PRIMARY KEY and UNIQUE, in order."""
        return tuple(one for one in self.items if one.is_key)

    @property
    def checks(self) -> tuple[Constraint, ...]:
        """CHECKs, in order."""
        return tuple(one for one in self.items if one.kind == "CHECK")

    @property
    def primary_key(self) -> tuple[str, ...]:
        """Names of the primary key's columns, none where there is no such key."""
        return next((one.columns for one in self.items if one.kind == "PRIMARY KEY"), ())


@record
class Sequence:
    """Numbers that are given out once each: `start`, then each `increment` more than the one before.

    minimum, maximum  bounds of them; behind the last one follows, with `cycle`, the first again, else an error
    next              the next number
    last              the one given out last, None before the first
    """

    name: str
    start: int
    increment: int
    minimum: int
    maximum: int
    cycle: bool
    next: int
    last: int | None

    def after(self, count: int) -> Sequence:
        """The sequence when `count` numbers have been given out; OutOfRangeError where it does not have as many."""
        last = self.next + self.increment * (count - 1)
        if not self.minimum <= last <= self.maximum:
            if self.cycle:
                raise NotSupportedError(
                    f"rows that get numbers from both ends of a sequence are not supported: {self.name}"
                )
            bound = self.maximum if self.increment > 0 else self.minimum
            raise OutOfRangeError(f"nextval: the sequence has no more numbers: {self.name}, {bound}")
        following = last + self.increment
        if self.cycle and not self.minimum <= following <= self.maximum:
            following = self.minimum if self.increment > 0 else self.maximum
        return replace(self, next=following, last=last)


@record
class Producer:
    """Up to which of its batches a client's rows were taken in, so that none is taken in twice.

    sequence  number of the last batch
    digest    of its rows, in hexadecimal
    at        seconds since 1970 when it was: the longest unheard of is forgotten first
    """

    name: str
    sequence: int
    digest: str
    at: int


@record
class Enum:
    """A type that CREATE TYPE made: texts in their order.  Columns of it hold the texts themselves, not its name."""

    name: str
    values: tuple[str, ...]


Definition = View | Schema | Defaults | Constraints | Sequence | Producer | Enum
"""What a database holds beside tables, under `definition_key`."""


INFORMATION_SCHEMA = "information_schema"  # of the standard's listings; it holds nothing else


def qualified(name: str, schema: str = "main") -> str:
    """The name of a table or view in the catalog: `table`, or `schema.table`; a part with a dot stands in double quotes."""
    parts = [name] if schema.lower() == "main" else [schema, name]
    return ".".join(_quoted(part) for part in parts)


def _quoted(part: str) -> str:
    return '"' + part.replace('"', '""') + '"' if "." in part or '"' in part else part


_PART = re.compile(r'"(?:[^"]|"")*"|[^.]+')


def _parts(name: str) -> list[str]:
    """A name of the catalog, taken apart, without its quotes."""
    return [part[1:-1].replace('""', '"') if part[0] == '"' else part for part in _PART.findall(name)]


def schema_of(name: str) -> str | None:
    """The schema of a name of the catalog; None for main."""
    parts = _parts(name)
    return parts[0] if len(parts) > 1 else None


def name_in_schema(name: str) -> str:
    """A name of the catalog without its schema and quotes."""
    return _parts(name)[-1]


def definition_key(definition: Definition) -> str:
    """Views share the names of tables; a schema's key ends with a dot, which no table's does, a producer's begins with \\1."""
    name = definition.name.casefold()
    match definition:
        case View():
            return name
        case Defaults():
            return f"{name}\0defaults"
        case Constraints():
            return f"{name}\0constraints"
        case Sequence():
            return f"{name}\0sequence"
        case Producer():
            return "\1" + definition.name
        case Enum():
            return f"{name}\0type"
    return _quoted(name) + "."


class Catalog(Protocol):
    """Names to tables; implemented by the session over its pinned versions.  Names are those that `qualified` makes."""

    def table(self, name: str) -> TableLayout | None:
        """The table or registered relation called `name` (case-insensitive), or None."""

    def view(self, name: str) -> View | None:
        """The view called `name` (case-insensitive), or None; no table has the name of a view."""

    def has_schema(self, name: str) -> bool:
        """Is there a schema called `name` (case-insensitive)?"""

    def enum(self, name: str) -> tuple[str, ...] | None:
        """The texts of the ENUM called `name` (case-insensitive), or None."""

    def defaults(self, name: str) -> Mapping[str, str]:
        """The SQL of the DEFAULT of each column of a table that has one, by the column's lower-case name."""

    def constraints(self, name: str) -> Constraints:
        """What rows of a table must fulfil; empty where nothing is said."""

    def sequence(self, name: str) -> Sequence | None:
        """The sequence called `name` (case-insensitive), or None."""

    def function(self, name: str) -> Function | None:
        """The Python function called `name` (lower case) of the connection, or None; it hides no other function."""

    def table_names(self) -> list[str]:
        """All names, for hints and SHOW TABLES."""

    def database_name(self) -> str:
        """What the database is called before a schema's name: `memory`, or the last part of its directory's path."""

    def listing(self, name: str, arguments: Several[str] | None = None) -> TableLayout | None:
        """A listing of the catalog, `information_schema.tables`, as a relation of this statement; None of another name.

        arguments  of a call, duckdb_tables(); None where it is named as a table is.  BindError for a wrong number.
        """

    def values_of(self, plan: Any, raw: list[Any]) -> list[Any]:
        """The values of a plan's only column, found now: PIVOT's columns depend on them.

        raw  the value of each slot of the statement
        """

    def changed_rows(self, table: TableLayout) -> TableLayout:
        """The rows that this statement adds to a table, changes in it or removes, as a relation: RETURNING reads it."""

    def proposed_rows(self, table: TableLayout) -> TableLayout:
        """The rows that an INSERT ... ON CONFLICT proposes, as a relation: HIDDEN and the name of each column, and `number`."""

    def file(self, paths: tuple[str, ...], file_format: str, options: dict[str, object]) -> TableLayout:
        """The rows of files as a relation of this statement: `FROM 'f.parquet'`, `read_csv('*.csv', ...)`.

        file_format  auto, csv, parquet or arrow; auto looks at the content.  Raises InputError, which the binder gives
        the place in the SQL.
        """
