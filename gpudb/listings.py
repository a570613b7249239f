"""The catalog as tables: information_schema, duckdb_tables() and their kin, read by SQL like any other relation.

A listing has DuckDB's columns, in its order.  Its rows are made when a statement has been bound and is about to run, from the
snapshot that the statement reads, so it sees its own transaction's changes.  What DuckDB holds in lists and maps is text here,
as DuckDB prints it; object ids number the objects of one snapshot, and mean nothing beyond it.  Past 600 lines
because it is one list, most of it names of columns.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gpudb.catalog import Constraint, Constraints, Schema, View, name_in_schema, schema_of
from gpudb.catalog import Sequence as SequenceDefinition
from gpudb.errors import BindError, Error
from gpudb.record import record
from gpudb.settings import ALIASES, SETTINGS
from gpudb.types import BIGINT, BOOLEAN, INTEGER, INTEGER_BITS, VARCHAR, SqlType
from gpudb.version import __version__

if TYPE_CHECKING:
    from gpudb.statement_catalog import StatementCatalog

Row = dict[str, Any]
"""Values by column; NULL where one is not named."""


@record
class Listing:
    """A relation of facts about the database.

    columns   (name, SQL type), as DuckDB has them
    takes     whether it is about one table or view, whose name it is called with
    """

    name: str
    columns: tuple[tuple[str, SqlType], ...]
    takes: bool
    rows: Callable[..., Iterator[Row]]


LISTINGS: dict[str, Listing] = {}
_TYPES = {str(kind): kind for kind in (BIGINT, BOOLEAN, INTEGER, VARCHAR)}


def find_listing(name: str, arguments: Sequence[str] | None) -> Listing | None:
    """The listing of a (lower-case) name, None where there is none; BindError for a wrong number of arguments.

    arguments  what it is called with; None where it is named as a table is
    """
    found = LISTINGS.get(name)
    if found is None or (arguments is None and found.takes):
        return None
    if arguments is not None and len(arguments) != found.takes:
        wanted = "one argument, the name of a table" if found.takes else "no argument"
        raise BindError(f"{name} wants {wanted}")
    return found


def listing(name: str, columns: str) -> Callable[[Callable[..., Iterator[Row]]], Callable[..., Iterator[Row]]]:
    """Register a listing; columns are `name name ... TYPE, name ... TYPE` in order."""

    def register(rows: Callable[..., Iterator[Row]]) -> Callable[..., Iterator[Row]]:
        typed: list[tuple[str, SqlType]] = []
        for part in columns.split(","):
            *names, kind = part.split()
            typed += [(one, _TYPES[kind]) for one in names]
        LISTINGS[name] = Listing(name, tuple(typed), len(inspect.signature(rows).parameters) > 1, rows)
        return rows

    return register


class ListedRows:
    """The rows of a listing for one statement; read as a file is."""

    total_bytes = 0

    def __init__(self, found: Listing, catalog: StatementCatalog, arguments: Sequence[str] | None) -> None:
        self.columns = found.columns
        self._listing = found
        self._catalog = catalog
        self._arguments = arguments

    def batches(self, wanted: Sequence[int], progress: Callable[[int], None]) -> Iterator[pa.RecordBatch]:
        """The rows with the columns of these ordinals."""
        rows = list(self._listing.rows(Facts(self._catalog), *(self._arguments or ())))
        if self._arguments is None:  # duckdb_schemas without parentheses is a view of what users made
            rows = [row for row in rows if not row.get("internal")]
        chosen = [self.columns[ordinal] for ordinal in wanted]
        arrays = [pa.array([row.get(name) for row in rows], kind.arrow) for name, kind in chosen]
        yield pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in chosen])


@record
class Entry:
    """A table, a view or a registered relation.

    number   counts entries of the snapshot, from 1
    kind     table, view or registered
    columns  (name, SQL type); None of a view whose query no longer stands
    """

    number: int
    name: str
    schema: str
    kind: str
    columns: tuple[tuple[str, SqlType], ...] | None
    defaults: dict[str, str]
    num_rows: int = 0
    view: View | None = None
    constraints: Constraints = Constraints("", ())

    @cached_property
    def required(self) -> set[str]:
        """Lower-case names of the columns that hold no NULL."""
        return {name.lower() for name in self.constraints.not_null}

    @property
    def sql(self) -> str | None:
        """The statement that makes it."""
        name = f"{_quoted(self.schema)}.{_quoted(self.name)}" if self.schema != "main" else _quoted(self.name)
        if self.view is not None:
            columns = f" ({', '.join(map(_quoted, self.view.columns))})" if self.view.columns else ""
            return f"CREATE VIEW {name}{columns} AS {self.view.sql};"
        if self.kind != "table":
            return None
        parts = []
        primary = {column.lower() for column in self.constraints.primary_key}
        items = self.constraints.items
        for column, kind in self.columns or ():
            default = self.defaults.get(column.lower())
            own = [one for one in items if [key.lower() for key in one.columns] == [column.lower()]]
            words = [f"{_quoted(column)} {kind}" + (f" DEFAULT({default})" if default is not None else "")]
            words += [_named(one, one.kind) for one in own if one.kind == "NOT NULL" and column.lower() not in primary]
            words += [_named(one, one.kind) for one in own if one.behind]
            parts.append(" ".join(words))
        parts += [_named(one, _written(one)) for one in items if one.kind != "NOT NULL" and not one.behind]
        return f"CREATE TABLE {name}({', '.join(parts)});"


class Facts:
    """What listings are made of: the schemas and entries of one statement's snapshot."""

    def __init__(self, catalog: StatementCatalog) -> None:
        self.catalog = catalog
        self.session = catalog.session
        self.database = catalog.database_name()

    @cached_property
    def schemas(self) -> dict[str, int]:
        """Names of the database's schemas, each with its number."""
        others = sorted(one.name for one in self.catalog.snapshot.definitions.values() if isinstance(one, Schema))
        return {name: number for number, name in enumerate(["main", *others], 1)}

    @cached_property
    def entries(self) -> list[Entry]:
        """Tables, then views, then what is registered in this session; each by schema and name."""
        snapshot = self.catalog.snapshot
        found: list[tuple[str, str, View | None]] = [(key, "table", None) for key in snapshot]
        found += [(one.name, "view", one) for one in snapshot.definitions.values() if isinstance(one, View)]
        found.sort(key=lambda entry: (entry[1], (schema_of(entry[0]) or "").lower(), entry[0].lower()))
        entries = []
        for number, (key, kind, view) in enumerate(found, 1):
            schema = next(
                (one for one in self.schemas if one.lower() == (schema_of(key) or "main").lower()), schema_of(key) or ""
            )
            if view is not None:
                columns, defaults, rows = self._view_columns(view), {}, 0
                constraints = Constraints(key, ())
                name = name_in_schema(key)
            else:
                table = snapshot[key]
                columns, defaults, rows = table.columns, self.catalog.defaults(key), table.num_rows
                constraints = self.catalog.constraints(key)
                name = name_in_schema(table.name)
            entries.append(Entry(number, name, schema, kind, columns, defaults, rows, view, constraints))
        for number, name in enumerate(sorted(self.session.registered_names()), len(entries) + 1):
            table = self.session.registered(name.lower())
            entries.append(Entry(number, name, "main", "registered", table.columns, {}, table.num_rows))
        return entries

    def entry(self, key: str) -> Entry | None:
        """The table or view of a catalog's name; what is registered hides it."""
        schema, name = (schema_of(key) or "main").lower(), name_in_schema(key).lower()
        found = [one for one in self.entries if one.schema.lower() == schema and one.name.lower() == name]
        return found[-1] if found else None

    def _view_columns(self, view: View) -> tuple[tuple[str, SqlType], ...] | None:
        from gpudb.planner.bind import view_columns
        from gpudb.statement_catalog import StatementCatalog

        own = StatementCatalog(self.session, self.catalog.snapshot)
        try:
            return tuple(view_columns(view, own, self.session.settings))
        except Error:
            return None

    def place(self, entry: Entry, what: str = "table") -> Row:
        """The columns of DuckDB's listings that say which entry it is."""
        return {
            "database_name": "temp" if entry.kind == "registered" else self.database,
            "database_oid": 0,
            "schema_name": entry.schema,
            "schema_oid": self.schemas.get(entry.schema),
            f"{what}_name": entry.name,
            f"{what}_oid": entry.number,
            "tags": "{}",
            "internal": False,
        }


def _written(constraint: Constraint) -> str:
    from gpudb.planner.bind.constraints import written

    return written(constraint)


def _named(constraint: Constraint, words: str) -> str:
    """A constraint with the name that it was given."""
    return words if constraint.label is None else f"CONSTRAINT {_quoted(constraint.label)} {words}"


def _quoted(name: str) -> str:
    from gpudb.planner.bind.names import quoted

    return quoted(name)


def numeric_facts(kind: SqlType) -> tuple[int | None, int | None, int | None]:
    """(precision, its radix, scale) of a numeric type; NULLs for others."""
    if kind.kind in INTEGER_BITS:  # as in DuckDB, not of unsigned ones
        return INTEGER_BITS[kind.kind], 2, 0
    if kind.is_float:
        return (24 if kind.kind == "REAL" else 53), 2, 0
    if kind.kind == "DECIMAL":
        return kind.precision, 10, kind.scale
    return None, None, None


# --- DuckDB's functions ----------------------------------------------------------------------------------------------


@listing(
    "duckdb_databases",
    """database_name VARCHAR, database_oid BIGINT, path comment tags VARCHAR, internal BOOLEAN, type VARCHAR,
    readonly encrypted BOOLEAN, cipher options VARCHAR""",
)
def _duckdb_databases(facts: Facts) -> Iterator[Row]:
    storage = facts.session.database.storage
    facts_of = {"database_oid": 0, "tags": "{}", "type": "gpudb", "encrypted": False, "options": "{}"}
    yield {
        "database_name": facts.database,
        "path": _path(facts),
        "internal": False,
        "readonly": storage.read_only,
        **facts_of,
    }


@listing(
    "duckdb_schemas",
    """oid BIGINT, database_name VARCHAR, database_oid BIGINT, schema_name comment tags VARCHAR, internal BOOLEAN,
    sql parent_schema VARCHAR, parent_schema_oid BIGINT""",
)
def _duckdb_schemas(facts: Facts) -> Iterator[Row]:
    for name, number in facts.schemas.items():
        yield {
            "oid": number,
            "database_name": facts.database,
            "database_oid": 0,
            "schema_name": name,
            "tags": "{}",
            "internal": name == "main",
        }


@listing(
    "duckdb_tables",
    """database_name VARCHAR, database_oid BIGINT, schema_name VARCHAR, schema_oid BIGINT, table_name VARCHAR,
    table_oid BIGINT, comment tags VARCHAR, internal temporary has_primary_key BOOLEAN,
    estimated_size column_count index_count check_constraint_count BIGINT, sql VARCHAR""",
)
def _duckdb_tables(facts: Facts) -> Iterator[Row]:
    for entry in facts.entries:
        if entry.kind == "table":
            yield {
                **facts.place(entry),
                "temporary": False,
                "has_primary_key": bool(entry.constraints.primary_key),
                "estimated_size": entry.num_rows,
                "column_count": len(entry.columns or ()),
                "index_count": len(entry.constraints.keys),
                "check_constraint_count": len(entry.constraints.checks),
                "sql": entry.sql,
            }


@listing(
    "duckdb_views",
    """database_name VARCHAR, database_oid BIGINT, schema_name VARCHAR, schema_oid BIGINT, view_name VARCHAR,
    view_oid BIGINT, comment tags VARCHAR, internal temporary BOOLEAN, column_count BIGINT, sql VARCHAR, is_bound BOOLEAN""",
)
def _duckdb_views(facts: Facts) -> Iterator[Row]:
    for entry in facts.entries:
        if entry.kind != "table":
            yield {
                **facts.place(entry, "view"),
                "temporary": entry.kind == "registered",
                "column_count": None if entry.columns is None else len(entry.columns),
                "sql": entry.sql,
                "is_bound": entry.columns is not None,
            }


@listing(
    "duckdb_columns",
    """database_name VARCHAR, database_oid BIGINT, schema_name VARCHAR, schema_oid BIGINT, table_name VARCHAR,
    table_oid BIGINT, column_name VARCHAR, column_index INTEGER, comment VARCHAR, internal BOOLEAN, column_default VARCHAR,
    is_nullable BOOLEAN, data_type VARCHAR, data_type_id BIGINT,
    character_maximum_length numeric_precision numeric_precision_radix numeric_scale INTEGER, tags VARCHAR,
    is_generated BOOLEAN, generation_expression VARCHAR""",
)
def _duckdb_columns(facts: Facts) -> Iterator[Row]:
    for entry in facts.entries:
        place = facts.place(entry)
        for number, (name, kind) in enumerate(entry.columns or (), 1):
            precision, radix, scale = numeric_facts(kind)
            yield {
                **place,
                "column_name": name,
                "column_index": number,
                "column_default": entry.defaults.get(name.lower()),
                "is_nullable": name.lower() not in entry.required,
                "data_type": str(kind),
                "data_type_id": _TYPE_IDS.get(kind.kind),
                "numeric_precision": precision,
                "numeric_precision_radix": radix,
                "numeric_scale": scale,
                "is_generated": False,
            }


@listing(
    "duckdb_constraints",
    """database_name VARCHAR, database_oid BIGINT, schema_name VARCHAR, schema_oid BIGINT, table_name VARCHAR,
    table_oid constraint_index BIGINT, constraint_type constraint_text expression constraint_column_indexes
    constraint_column_names constraint_name referenced_table referenced_column_names VARCHAR""",
)
def _duckdb_constraints(facts: Facts) -> Iterator[Row]:
    for entry in facts.entries:
        places = {name.lower(): ordinal for ordinal, (name, _) in enumerate(entry.columns or ())}
        for number, one in enumerate(entry.constraints.items):
            yield {
                **facts.place(entry),
                "constraint_index": number,
                "constraint_type": one.kind,
                "constraint_text": _written(one),
                "expression": one.sql,
                "constraint_column_indexes": f"[{', '.join(str(places[name.lower()]) for name in one.columns)}]",
                "constraint_column_names": f"[{', '.join(one.columns)}]",
                "constraint_name": one.called(entry.name),
                "referenced_column_names": "[]",
            }


# DuckDB's numbers of types, which some clients read.
_TYPE_IDS = {
    "BOOLEAN": 10,
    "TINYINT": 11,
    "SMALLINT": 12,
    "INTEGER": 13,
    "BIGINT": 14,
    "DATE": 15,
    "TIME": 16,
    "TIMESTAMP": 19,
    "DECIMAL": 21,
    "REAL": 22,
    "DOUBLE": 23,
    "VARCHAR": 25,
    "BLOB": 26,
    "UTINYINT": 28,
    "USMALLINT": 29,
    "UINTEGER": 30,
    "UBIGINT": 31,
    "TIMESTAMPTZ": 32,
    "INTERVAL": 27,
    "HUGEINT": 50,
    "UUID": 54,
}


@listing(
    "duckdb_sequences",
    """database_name VARCHAR, database_oid BIGINT, schema_name VARCHAR, schema_oid BIGINT, sequence_name VARCHAR,
    sequence_oid BIGINT, comment tags VARCHAR, temporary BOOLEAN, start_value min_value max_value increment_by BIGINT,
    cycle BOOLEAN, last_value BIGINT, sql VARCHAR""",
)
def _duckdb_sequences(facts: Facts) -> Iterator[Row]:
    found = [one for one in facts.catalog.snapshot.definitions.values() if isinstance(one, SequenceDefinition)]
    for number, one in enumerate(sorted(found, key=lambda one: one.name.lower()), 1):
        schema = schema_of(one.name) or "main"
        place = name_in_schema(one.name) if schema == "main" else f"{_quoted(schema)}.{name_in_schema(one.name)}"
        bounds = f"INCREMENT BY {one.increment} MINVALUE {one.minimum} MAXVALUE {one.maximum}"
        yield {
            "database_name": facts.database,
            "database_oid": 0,
            "schema_name": schema,
            "schema_oid": facts.schemas.get(schema),
            "sequence_name": name_in_schema(one.name),
            "sequence_oid": number,
            "tags": "{}",
            "temporary": False,
            "start_value": one.start,
            "min_value": one.minimum,
            "max_value": one.maximum,
            "increment_by": one.increment,
            "cycle": one.cycle,
            "last_value": one.last,
            "sql": f"CREATE SEQUENCE {place} {bounds} START {one.next} {'CYCLE' if one.cycle else 'NO CYCLE'};",
        }


@listing("duckdb_settings", "name value description input_type scope aliases VARCHAR")
def _duckdb_settings(facts: Facts) -> Iterator[Row]:
    for name in sorted(SETTINGS):
        value = facts.session.settings[name]
        kinds: dict[type, str] = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE"}
        aliases = [alias for alias, meant in ALIASES.items() if meant == name]
        yield {
            "name": name,
            "value": str(value).lower() if isinstance(value, bool) else str(value),
            "description": SETTINGS[name].meaning,
            "input_type": kinds.get(type(value), "VARCHAR"),
            "scope": "LOCAL",
            "aliases": f"[{', '.join(aliases)}]",
        }


@listing(
    "duckdb_functions",
    """database_name database_oid schema_name function_name alias_of function_type description comment tags return_type
    parameters parameter_types varargs macro_definition VARCHAR, has_side_effects internal BOOLEAN, extension_name VARCHAR,
    function_oid BIGINT, examples stability categories VARCHAR""",
)
def _duckdb_functions(facts: Facts) -> Iterator[Row]:
    from gpudb.functions import FUNCTIONS
    from gpudb.planner.bind import aggregates

    everywhere = {
        "database_name": "system",
        "database_oid": "0",
        "schema_name": "main",
        "tags": "{}",
        "internal": True,
        "has_side_effects": False,
        "examples": "[]",
        "stability": "CONSISTENT",
        "categories": "[]",
    }
    for name in sorted(FUNCTIONS):
        function = FUNCTIONS[name]
        about = {
            **everywhere,
            "function_name": name,
            "alias_of": function.name if name != function.name else None,
            "description": function.doc.strip().partition("\n")[0],
            "function_type": "scalar",
        }
        for overload in function.overloads:
            arguments = overload.arguments[:-1] if overload.variadic else overload.arguments
            yield {
                **about,
                "return_type": str(overload.result),
                "parameters": f"[{', '.join(overload.parameters[: len(arguments)])}]",
                "parameter_types": f"[{', '.join(map(_type_name, arguments))}]",
                "varargs": _type_name(overload.arguments[-1]) if overload.variadic else None,
            }
        if not function.overloads:
            yield {**about, "parameters": f"[{', '.join(function.parameters)}]"}
    for name in sorted(aggregates.NAMES):
        yield {**everywhere, "function_name": name, "function_type": "aggregate"}
    for name, found in sorted(LISTINGS.items()):
        if name.isidentifier():
            taken = "[VARCHAR]" if found.takes else "[]"
            yield {**everywhere, "function_name": name, "function_type": "table", "parameter_types": taken}


def _type_name(kind: str) -> str:
    return "FLOAT" if kind == "REAL" else kind


@listing(
    "duckdb_types",
    """database_name VARCHAR, database_oid BIGINT, schema_name VARCHAR, schema_oid type_oid BIGINT, type_name VARCHAR,
    type_size BIGINT, logical_type type_category comment tags VARCHAR, internal BOOLEAN,
    extension_name labels parameters parameter_types varargs VARCHAR""",
)
def _duckdb_types(facts: Facts) -> Iterator[Row]:
    from gpudb.planner.type_names import TYPE_NAMES

    for name, kind in sorted(TYPE_NAMES.items()):
        numeric = kind.is_numeric
        yield {
            "database_name": facts.database,
            "database_oid": 0,
            "schema_name": "main",
            "schema_oid": 1,
            "type_oid": _TYPE_IDS.get(kind.kind),
            "type_name": name,
            "type_size": 16 if kind.is_coded or kind.kind == "UUID" else max(1, kind.arrow.bit_width // 8),
            "logical_type": str(kind),
            "type_category": _category(kind, numeric),
            "tags": "{}",
            "internal": True,
            "parameters": "[]",
            "parameter_types": "[]",
        }


def _category(kind: SqlType, numeric: bool) -> str:
    if numeric:
        return "NUMERIC"
    if kind.kind in ("DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "INTERVAL"):
        return "DATETIME"
    return "BOOLEAN" if kind.kind == "BOOLEAN" else "STRING"


# --- What PRAGMA and SHOW print --------------------------------------------------------------------------------------


@listing("pragma_table_info", "cid INTEGER, name type VARCHAR, notnull BOOLEAN, dflt_value VARCHAR, pk BOOLEAN")
def _pragma_table_info(facts: Facts, key: str) -> Iterator[Row]:
    entry = facts.entry(key)
    assert entry is not None, "the binder has found the table"
    for number, (name, kind) in enumerate(entry.columns or ()):
        yield {
            "cid": number,
            "name": name,
            "type": str(kind),
            "notnull": name.lower() in entry.required,
            "dflt_value": entry.defaults.get(name.lower()),
            "pk": name.lower() in {key.lower() for key in entry.constraints.primary_key},
        }


@listing("pragma_database_list", "seq BIGINT, name file VARCHAR")
def _pragma_database_list(facts: Facts) -> Iterator[Row]:
    yield {"seq": 0, "name": facts.database, "file": _path(facts)}


def _path(facts: Facts) -> str | None:
    """Where the database lies; None for one in memory, and for clients of a server, whose folders are no business of theirs."""
    path = facts.session.database.storage.path
    return None if path == ":memory:" or facts.session.files is not None else path


@listing("pragma_version", "library_version source_id codename VARCHAR")
def _pragma_version(facts: Facts) -> Iterator[Row]:
    yield {"library_version": f"v{__version__}", "source_id": "", "codename": "gpudb"}


@listing("show all tables", "database schema name column_names column_types VARCHAR, temporary BOOLEAN")
def _show_all_tables(facts: Facts) -> Iterator[Row]:
    for entry in sorted(facts.entries, key=lambda one: (one.kind == "registered", one.schema, one.name)):
        yield {
            "database": facts.place(entry)["database_name"],
            "schema": entry.schema,
            "name": entry.name,
            "column_names": f"[{', '.join(name for name, _ in entry.columns or ())}]",
            "column_types": f"[{', '.join(str(kind) for _, kind in entry.columns or ())}]",
            "temporary": entry.kind == "registered",
        }


@listing("show tables from", "name VARCHAR")
def _show_tables_from(facts: Facts, schema: str) -> Iterator[Row]:
    for entry in sorted(facts.entries, key=lambda one: one.name):
        if entry.schema.lower() == schema.lower():
            yield {"name": entry.name}


@listing("show databases", "database_name VARCHAR")
def _show_databases(facts: Facts) -> Iterator[Row]:
    yield {"database_name": facts.database}


@listing("show schemas", "database_name schema_name VARCHAR, current BOOLEAN")
def _show_schemas(facts: Facts) -> Iterator[Row]:
    for name in facts.schemas:
        yield {"database_name": facts.database, "schema_name": name, "current": name == "main"}


@listing("sqlite_master", "type name tbl_name VARCHAR, rootpage INTEGER, sql VARCHAR")
def _sqlite_master(facts: Facts) -> Iterator[Row]:
    for entry in facts.entries:
        kind = "table" if entry.kind == "table" else "view"
        yield {"type": kind, "name": entry.name, "tbl_name": entry.name, "rootpage": 0, "sql": entry.sql}


# --- The standard's schema -------------------------------------------------------------------------------------------


@listing(
    "information_schema.schemata",
    """catalog_name schema_name schema_owner default_character_set_catalog default_character_set_schema
    default_character_set_name sql_path VARCHAR""",
)
def _schemata(facts: Facts) -> Iterator[Row]:
    own = {"catalog_name": facts.database, "schema_owner": "duckdb"}
    for name in facts.schemas:
        yield {**own, "schema_name": name}
    for database, name in (
        ("system", "information_schema"),
        ("system", "main"),
        ("system", "pg_catalog"),
        ("temp", "main"),
    ):
        yield {"catalog_name": database, "schema_owner": "duckdb", "schema_name": name}


@listing(
    "information_schema.tables",
    """table_catalog table_schema table_name table_type self_referencing_column_name reference_generation
    user_defined_type_catalog user_defined_type_schema user_defined_type_name is_insertable_into is_typed commit_action
    TABLE_COMMENT VARCHAR""",
)
def _tables(facts: Facts) -> Iterator[Row]:
    for entry in facts.entries:
        is_table = entry.kind == "table"
        yield {
            "table_catalog": facts.place(entry)["database_name"],
            "table_schema": entry.schema,
            "table_name": entry.name,
            "table_type": "BASE TABLE" if is_table else "VIEW",
            "is_insertable_into": "YES" if is_table else "NO",
            "is_typed": "NO",
        }


@listing(
    "information_schema.views",
    """table_catalog table_schema table_name view_definition check_option is_updatable is_insertable_into
    is_trigger_updatable is_trigger_deletable is_trigger_insertable_into VARCHAR""",
)
def _views(facts: Facts) -> Iterator[Row]:
    for entry in facts.entries:
        if entry.kind != "table":
            yield {
                "table_catalog": facts.place(entry)["database_name"],
                "table_schema": entry.schema,
                "table_name": entry.name,
                "view_definition": entry.sql,
                "check_option": "NONE",
                **dict.fromkeys(
                    """is_updatable is_insertable_into is_trigger_updatable is_trigger_deletable
                    is_trigger_insertable_into""".split(),
                    "NO",
                ),
            }


@listing(
    "information_schema.columns",
    """table_catalog table_schema table_name column_name VARCHAR, ordinal_position INTEGER,
    column_default is_nullable data_type VARCHAR,
    character_maximum_length character_octet_length numeric_precision numeric_precision_radix numeric_scale
    datetime_precision INTEGER, interval_type VARCHAR, interval_precision INTEGER,
    character_set_catalog character_set_schema character_set_name collation_catalog collation_schema collation_name
    domain_catalog domain_schema domain_name udt_catalog udt_schema udt_name scope_catalog scope_schema scope_name VARCHAR,
    maximum_cardinality BIGINT, dtd_identifier VARCHAR, is_self_referencing is_identity BOOLEAN,
    identity_generation identity_start identity_increment identity_maximum identity_minimum VARCHAR, identity_cycle BOOLEAN,
    is_generated generation_expression VARCHAR, is_updatable BOOLEAN, COLUMN_COMMENT VARCHAR""",
)
def _columns(facts: Facts) -> Iterator[Row]:
    for row in _duckdb_columns(facts):
        yield {
            **row,
            "table_catalog": row["database_name"],
            "table_schema": row["schema_name"],
            "ordinal_position": row["column_index"],
            "is_nullable": "YES" if row["is_nullable"] else "NO",
            "is_generated": "NEVER",
        }


@listing(
    "information_schema.table_constraints",
    """constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name constraint_type
    is_deferrable initially_deferred enforced nulls_distinct VARCHAR""",
)
def _table_constraints(facts: Facts) -> Iterator[Row]:
    for row, one in _standard_constraints(facts):
        yield {
            **row,
            "constraint_type": one.kind if one.is_key else "CHECK",
            **dict.fromkeys(("is_deferrable", "initially_deferred"), "NO"),
            **dict.fromkeys(("enforced", "nulls_distinct"), "YES"),
        }


@listing(
    "information_schema.key_column_usage",
    """constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name column_name VARCHAR,
    ordinal_position position_in_unique_constraint BIGINT""",
)
def _key_column_usage(facts: Facts) -> Iterator[Row]:
    for row, one in _standard_constraints(facts):
        if one.is_key:
            yield from ({**row, "column_name": name, "ordinal_position": n} for n, name in enumerate(one.columns, 1))


@listing(
    "information_schema.check_constraints",
    "constraint_catalog constraint_schema constraint_name check_clause VARCHAR",
)
def _check_constraints(facts: Facts) -> Iterator[Row]:
    for row, one in _standard_constraints(facts):
        if one.kind == "CHECK":
            yield {**row, "check_clause": _written(one)}
        elif one.kind == "NOT NULL":
            yield {**row, "check_clause": f"{_quoted(one.columns[0])} IS NOT NULL"}


@listing(
    "information_schema.constraint_column_usage",
    """table_catalog table_schema table_name column_name constraint_catalog constraint_schema constraint_name
    constraint_type constraint_text VARCHAR""",
)
def _constraint_column_usage(facts: Facts) -> Iterator[Row]:
    for row, one in _standard_constraints(facts):
        if one.kind != "NOT NULL":
            for name in one.columns:
                yield {**row, "column_name": name, "constraint_type": one.kind, "constraint_text": _written(one)}


@listing(
    "information_schema.constraint_table_usage",
    """table_catalog table_schema table_name constraint_catalog constraint_schema constraint_name constraint_type
    VARCHAR""",
)
def _constraint_table_usage(facts: Facts) -> Iterator[Row]:
    for row, one in _standard_constraints(facts):
        if one.kind != "NOT NULL":
            yield {**row, "constraint_type": one.kind}


@listing(
    "information_schema.referential_constraints",
    """constraint_catalog constraint_schema constraint_name unique_constraint_catalog unique_constraint_schema
    unique_constraint_name match_option update_rule delete_rule VARCHAR""",
)
def _referential_constraints(facts: Facts) -> Iterator[Row]:
    yield from ()  # there are no foreign keys


def _standard_constraints(facts: Facts) -> Iterator[tuple[Row, Constraint]]:
    """(the columns that say which it is, the constraint) of each table's constraints."""
    for entry in facts.entries:
        for one in entry.constraints.items:
            place = {"constraint_catalog": facts.database, "constraint_schema": entry.schema}
            place |= {"constraint_name": one.called(entry.name), "table_catalog": facts.database}
            yield {**place, "table_schema": entry.schema, "table_name": entry.name}, one
