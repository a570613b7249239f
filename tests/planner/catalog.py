"""A catalog without data, and the same tables in DuckDB: what the planner's tests compare."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import duckdb

from gpudb.catalog import Constraints, TableLayout, View
from gpudb.errors import InputError
from gpudb.planner.bind import bind
from gpudb.planner.logical import Node
from gpudb.planner.parse import parse
from gpudb.planner.statements import Query, Statement
from gpudb.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    HUGEINT,
    INTEGER,
    REAL,
    SMALLINT,
    TIMESTAMP,
    TINYINT,
    VARCHAR,
    SqlType,
    decimal,
)

COLUMNS: tuple[tuple[str, SqlType], ...] = (
    ("ti", TINYINT),
    ("si", SMALLINT),
    ("i", INTEGER),
    ("bi", BIGINT),
    ("hi", HUGEINT),
    ("r", REAL),
    ("f", DOUBLE),
    ("d92", decimal(9, 2)),
    ("d184", decimal(18, 4)),
    ("d30", decimal(30, 5)),
    ("x", BOOLEAN),
    ("s", VARCHAR),
    ("d", DATE),
    ("ts", TIMESTAMP),
    ("a", INTEGER),
    ("b", INTEGER),
    ("Weird Name", INTEGER),
    ("select", INTEGER),
)


class PlainCatalog:
    """Tables by name, as (name, type) columns; files by path."""

    def __init__(self, **tables: tuple[tuple[str, SqlType], ...]) -> None:
        self.layouts = {name: TableLayout(name, columns, (), 1024, 1024, 1) for name, columns in tables.items()}
        self.opened: list[tuple[tuple[str, ...], str, dict[str, object]]] = []

    def table(self, name: str) -> TableLayout | None:
        return self.layouts.get(name.lower())

    def view(self, name: str) -> View | None:
        return None

    def has_schema(self, name: str) -> bool:
        return False

    def enum(self, name: str) -> tuple[str, ...] | None:
        return ("sad", "ok", "happy") if name.lower() == "mood" else None

    def defaults(self, name: str) -> dict[str, str]:
        return {}

    def constraints(self, name: str) -> Constraints:
        return Constraints(name, ())

    def sequence(self, name: str) -> None:
        return None

    def function(self, name: str) -> None:
        return None

    def table_names(self) -> list[str]:
        return list(self.layouts)

    def database_name(self) -> str:
        return "memory"

    def listing(self, name: str, arguments: Sequence[str] | None = None) -> TableLayout | None:
        return None

    def changed_rows(self, table: TableLayout) -> TableLayout:
        return TableLayout("changed rows", table.columns, (), 1024, 1024, 1)

    def proposed_rows(self, table: TableLayout) -> TableLayout:
        return TableLayout("proposed rows", table.columns, (), 1024, 1024, 1)

    def values_of(self, plan: Any, raw: list[Any]) -> list[Any]:
        return ["one", "two"]

    def file(self, paths: tuple[str, ...], file_format: str, options: dict[str, object]) -> TableLayout:
        self.opened.append((paths, file_format, options))
        if "missing" in paths[0]:
            raise InputError(f"file not found: {paths[0]}")
        return TableLayout("file", (("a", INTEGER), ("b", VARCHAR)), (), 1024, 1024, 1)


CATALOG = PlainCatalog(t=COLUMNS)


def bound(sql: str, catalog: PlainCatalog = CATALOG, *args: object, **settings: object) -> Statement:
    """The bound form of a statement."""
    return bind(parse(sql), catalog, *args, settings=settings)  # type: ignore[arg-type]


def plan(sql: str, catalog: PlainCatalog = CATALOG) -> Node:
    """The plan of a query."""
    statement = bound(sql, catalog)
    assert isinstance(statement, Query)
    return statement.plan


def our_columns(sql: str) -> list[tuple[str, str]]:
    """(name, type) of each result column, as the binder has it."""
    return [(name, str(type_)) for name, type_ in plan(sql).columns]


def duckdb_with_table() -> duckdb.DuckDBPyConnection:
    """A DuckDB connection with the table `t`."""
    connection = duckdb.connect()
    columns = ", ".join(f'"{name}" {type_}' for name, type_ in COLUMNS)
    connection.execute(f"CREATE TABLE t ({columns})")
    return connection


def their_columns(connection: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[str, str]]:
    """(name, type) of each result column, as DuckDB has it."""
    return [(row[0], row[1]) for row in connection.execute(f"DESCRIBE {sql}").fetchall()]


def spelled(text: str) -> list[str]:
    """The lines of a block of SQL, without blank lines and `#` comments."""
    return [line.strip() for line in text.splitlines() if line.strip() and not re.match(r"\s*#", line)]
