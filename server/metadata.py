"""What the database holds, in the tables that Flight SQL's metadata commands give."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from gpudb import compute as pc
from gpudb.catalog import Schema, View, name_in_schema, schema_of
from gpudb.errors import Error
from gpudb.record import record
from gpudb.server.sql_info import SQL_INFO_SCHEMA, XDBC_SCHEMA, sql_info, xdbc_type_info
from gpudb.session import Database, Session
from gpudb.statement_catalog import StatementCatalog
from gpudb.types import SqlType

Columns = list[tuple[str, SqlType]]

KEYS = pa.schema(
    [
        pa.field("pk_catalog_name", pa.utf8()),
        pa.field("pk_db_schema_name", pa.utf8()),
        pa.field("pk_table_name", pa.utf8(), False),
        pa.field("pk_column_name", pa.utf8(), False),
        pa.field("fk_catalog_name", pa.utf8()),
        pa.field("fk_db_schema_name", pa.utf8()),
        pa.field("fk_table_name", pa.utf8(), False),
        pa.field("fk_column_name", pa.utf8(), False),
        pa.field("key_sequence", pa.int32(), False),
        pa.field("fk_key_name", pa.utf8()),
        pa.field("pk_key_name", pa.utf8()),
        pa.field("update_rule", pa.uint8(), False),
        pa.field("delete_rule", pa.uint8(), False),
    ]
)
SCHEMAS = {
    "CommandGetCatalogs": pa.schema([pa.field("catalog_name", pa.utf8(), False)]),
    "CommandGetDbSchemas": pa.schema(
        [pa.field("catalog_name", pa.utf8()), pa.field("db_schema_name", pa.utf8(), False)]
    ),
    "CommandGetTables": pa.schema(
        [
            pa.field("catalog_name", pa.utf8()),
            pa.field("db_schema_name", pa.utf8()),
            pa.field("table_name", pa.utf8(), False),
            pa.field("table_type", pa.utf8(), False),
        ]
    ),
    "CommandGetTableTypes": pa.schema([pa.field("table_type", pa.utf8(), False)]),
    "CommandGetPrimaryKeys": pa.schema(
        [
            pa.field("catalog_name", pa.utf8()),
            pa.field("db_schema_name", pa.utf8()),
            pa.field("table_name", pa.utf8(), False),
            pa.field("column_name", pa.utf8(), False),
            pa.field("key_name", pa.utf8()),
            pa.field("key_sequence", pa.int32(), False),
        ]
    ),
    "CommandGetImportedKeys": KEYS,
    "CommandGetExportedKeys": KEYS,
    "CommandGetCrossReference": KEYS,
    "CommandGetSqlInfo": SQL_INFO_SCHEMA,
    "CommandGetXdbcTypeInfo": XDBC_SCHEMA,
}
TABLE_SCHEMA = pa.field("table_schema", pa.binary(), False)


@record
class Relation:
    """A table or a view.

    rows     of a table; None for a view
    columns  (name, SQL type) when asked for: those of a view are found by binding its query
    """

    schema: str
    name: str
    kind: str
    rows: int | None
    columns: Callable[[], Columns]


def schema(command: str, message: Any) -> pa.Schema:
    """The schema of a command's rows."""
    found = SCHEMAS[command]
    return found.append(TABLE_SCHEMA) if command == "CommandGetTables" and message.include_schema else found


def table(command: str, message: Any, session: Session, timeout_ms: int = 0) -> pa.Table:
    """The rows of a command; there are no foreign keys, so none are found."""
    match command:
        case "CommandGetSqlInfo":
            return sql_info(message.info, session.database.storage.read_only, timeout_ms)
        case "CommandGetXdbcTypeInfo":
            return xdbc_type_info(message.data_type if message.HasField("data_type") else None)
        case "CommandGetTableTypes":
            return pa.table([["TABLE", "VIEW"]], schema=SCHEMAS[command])
        case "CommandGetCatalogs":
            return pa.table([[catalog_name(session.database)]], schema=SCHEMAS[command])
        case "CommandGetDbSchemas":
            names = _schemas(session) if _in_catalog(message, session) else []
            names = [name for name in names if like(pattern_of(message, "db_schema_filter_pattern"), name)]
            catalog = [catalog_name(session.database)] * len(names)
            return pa.table([catalog, names], schema=SCHEMAS[command])
        case "CommandGetTables":
            return _tables(message, session)
        case "CommandGetPrimaryKeys":
            return _primary_keys(message, session)
    return schema(command, message).empty_table()


def relations(session: Session) -> Iterator[Relation]:
    """All tables and views, sorted by schema and name."""
    catalog = StatementCatalog(session)

    def columns_of_view(view: View) -> Columns:
        from gpudb.planner.bind import view_columns

        try:
            return view_columns(view, catalog, session.settings)
        except Error:  # a table it reads is gone or has changed
            return []

    for name in sorted(catalog.names(), key=lambda one: (schema_of(one) or "main", name_in_schema(one))):
        place = schema_of(name) or "main", name_in_schema(name)
        view = catalog.view(name)
        if view is not None:
            yield Relation(*place, "VIEW", None, lambda view=view: columns_of_view(view))  # type: ignore[misc]
        else:
            version = catalog.snapshot[name]
            yield Relation(*place, "TABLE", version.num_rows, lambda version=version: list(version.columns))  # type: ignore[misc]


def arrow_columns(columns: Columns) -> pa.Schema:
    """The schema of a relation's rows; a field's metadata names its type and its size, as drivers read them."""
    fields = []
    for name, kind in columns:
        notes = {"ARROW:FLIGHT:SQL:TYPE_NAME": str(kind), "ARROW:FLIGHT:SQL:IS_SEARCHABLE": "1"}
        if kind.precision:
            notes |= {"ARROW:FLIGHT:SQL:PRECISION": str(kind.precision), "ARROW:FLIGHT:SQL:SCALE": str(kind.scale)}
        fields.append(pa.field(name, kind.arrow, metadata=notes))
    return pa.schema(fields)


def catalog_name(database: Database) -> str:
    """What the database is called: its folder's name without an ending, as in DuckDB."""
    if database.path == ":memory:":
        return "memory"
    return os.path.basename(os.path.normpath(database.path)).split(".")[0] or "gpudb"


def like(pattern: str | None, value: str) -> bool:
    """SQL's LIKE with % and _, as filter patterns have it; None lets everything pass."""
    if pattern is None:
        return True
    return bool(pc.match_like(pa.array([value]), pattern)[0].as_py())  # RE2: linear, whatever the pattern


def pattern_of(message: Any, name: str) -> str | None:
    """An optional text of a message; None where it is absent."""
    return getattr(message, name) if message.HasField(name) else None


def _in_catalog(message: Any, session: Session) -> bool:
    wanted = pattern_of(message, "catalog")
    return wanted is None or wanted == catalog_name(session.database)


def _schemas(session: Session) -> list[str]:
    definitions = StatementCatalog(session).snapshot.definitions.values()
    return sorted({"main", *(one.name for one in definitions if isinstance(one, Schema))})


def _primary_keys(message: Any, session: Session) -> pa.Table:
    catalog = StatementCatalog(session)
    rows = []
    schema_wanted, table_wanted = pattern_of(message, "db_schema"), str(message.table).lower()
    for name in catalog.snapshot if _in_catalog(message, session) else ():
        place = schema_of(name) or "main", name_in_schema(name)
        in_schema = schema_wanted is None or place[0].lower() == schema_wanted.lower()
        if in_schema and place[1].lower() == table_wanted:
            for key in catalog.constraints(name).keys:
                if key.kind == "PRIMARY KEY":
                    head = [catalog_name(session.database), *place]
                    rows += [[*head, column, key.called(place[1]), n] for n, column in enumerate(key.columns, 1)]
    schema_of_keys = SCHEMAS["CommandGetPrimaryKeys"]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in schema_of_keys]
    return pa.table(columns, schema=schema_of_keys)


def _tables(message: Any, session: Session) -> pa.Table:
    rows = []
    for found in relations(session) if _in_catalog(message, session) else ():
        if (
            like(pattern_of(message, "db_schema_filter_pattern"), found.schema)
            and like(pattern_of(message, "table_name_filter_pattern"), found.name)
            and (not message.table_types or found.kind in message.table_types)
        ):
            row = [catalog_name(session.database), found.schema, found.name, found.kind]
            rows.append(
                [*row, arrow_columns(found.columns()).serialize().to_pybytes()] if message.include_schema else row
            )
    wanted = schema("CommandGetTables", message)
    return pa.table([list(column) for column in zip(*rows, strict=True)] or [[] for _ in wanted], schema=wanted)
