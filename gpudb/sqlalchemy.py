"""A dialect for SQLAlchemy 2: `create_engine("gpudb:///folder")` in this process, `"gpudb+flight://host:port"` at a server.

    gpudb://                     a database in memory, which the engine's connections share and which goes with the last
    gpudb:///shop                the directory `shop`; gpudb:////data/shop is an absolute path
    gpudb:///shop?read_only=true&device=cpu     other names in the query are settings

SQLAlchemy finds it by its entry point; nothing else of gpudb imports it.

FOREIGN KEY and indexes, which the engine does not have, are left out of a CREATE TABLE, each time with a warning.  A
transaction is a snapshot, which SQLAlchemy calls REPEATABLE READ; of two that change one table the second to commit gets an
OperationalError.
"""

from __future__ import annotations

import itertools
import re
import weakref
from typing import Any

from sqlalchemy import exc, pool, text, util
from sqlalchemy import types as sqltypes
from sqlalchemy.engine import default, reflection
from sqlalchemy.engine.url import URL
from sqlalchemy.sql import compiler

_memory_numbers = itertools.count(1)  # one database in memory an engine


class TINYINT(sqltypes.Integer):
    """8-bit integers."""

    __visit_name__ = "TINYINT"


class HUGEINT(sqltypes.Integer):
    """128-bit integers: what SUM of integers is."""

    __visit_name__ = "HUGEINT"


TYPES: dict[str, type[sqltypes.TypeEngine[Any]]] = {
    "BOOLEAN": sqltypes.BOOLEAN,
    "TINYINT": TINYINT,
    "SMALLINT": sqltypes.SMALLINT,
    "INTEGER": sqltypes.INTEGER,
    "BIGINT": sqltypes.BIGINT,
    "HUGEINT": HUGEINT,
    "UTINYINT": sqltypes.SMALLINT,
    "USMALLINT": sqltypes.INTEGER,
    "UINTEGER": sqltypes.BIGINT,
    "UBIGINT": HUGEINT,
    "FLOAT": sqltypes.REAL,  # of 32 bits, as DuckDB calls it
    "DOUBLE": sqltypes.DOUBLE,
    "DATE": sqltypes.DATE,
    "TIME": sqltypes.TIME,
    "TIMESTAMP": sqltypes.TIMESTAMP,
    "VARCHAR": sqltypes.VARCHAR,
    "INTERVAL": sqltypes.Interval,
    "BLOB": sqltypes.BLOB,
    "UUID": sqltypes.UUID,
}
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")


def type_of(name: str) -> sqltypes.TypeEngine[Any]:
    """SQLAlchemy's type of a SQL type as `information_schema.columns` prints it."""
    found = _DECIMAL.fullmatch(name)
    if found is not None:
        return sqltypes.DECIMAL(int(found[1]), int(found[2]))
    if name == "TIMESTAMP WITH TIME ZONE":
        return sqltypes.TIMESTAMP(timezone=True)
    return TYPES.get(name, sqltypes.NullType)()


class GpudbCompiler(compiler.SQLCompiler):
    """Expressions as DuckDB spells them."""

    def visit_empty_set_expr(self, element_types: Any, **kw: Any) -> str:
        columns = ", ".join(
            f"CAST(NULL AS {self.dialect.type_compiler_instance.process(kind)})"
            if not kind._isnull
            else "CAST(NULL AS INTEGER)"
            for kind in element_types or [sqltypes.INTEGER()]
        )
        return f"SELECT {columns} WHERE 1 = 0"

    def update_from_clause(
        self, update_stmt: Any, from_table: Any, extra_froms: Any, from_hints: Any, **kw: Any
    ) -> str:
        return "FROM " + self._relations(extra_froms, from_hints, kw)

    def delete_extra_from_clause(
        self, delete_stmt: Any, from_table: Any, extra_froms: Any, from_hints: Any, **kw: Any
    ) -> str:
        return "USING " + self._relations(extra_froms, from_hints, kw)

    def _relations(self, extra_froms: Any, from_hints: Any, kw: dict[str, Any]) -> str:
        kw["asfrom"] = True
        return ", ".join(relation._compiler_dispatch(self, fromhints=from_hints, **kw) for relation in extra_froms)

    def get_select_precolumns(self, select: Any, **kw: Any) -> str:
        if select._distinct_on:
            return f"DISTINCT ON ({', '.join(self.process(column, **kw) for column in select._distinct_on)}) "
        return "DISTINCT " if select._distinct else ""

    def limit_clause(self, select: Any, **kw: Any) -> str:
        """LIMIT and OFFSET in either number; the base writes LIMIT -1 where only OFFSET is given."""
        parts = ""
        if select._limit_clause is not None:
            parts += f"\n LIMIT {self.process(select._limit_clause, **kw)}"
        if select._offset_clause is not None:
            parts += f"\n OFFSET {self.process(select._offset_clause, **kw)}"
        return parts

    def visit_ilike_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._like(binary, "ILIKE", kw)

    def visit_not_ilike_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._like(binary, "NOT ILIKE", kw)

    def _like(self, binary: Any, word: str, kw: dict[str, Any]) -> str:
        escape = binary.modifiers.get("escape", None)
        return f"{self.process(binary.left, **kw)} {word} {self.process(binary.right, **kw)}" + (
            f" ESCAPE {self.render_literal_value(escape, sqltypes.STRINGTYPE)}" if escape is not None else ""
        )

    def visit_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._regular_expression("regexp_matches", [binary.left, binary.right], binary.modifiers["flags"], kw)

    def visit_not_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"NOT {self.visit_regexp_match_op_binary(binary, operator, **kw)}"

    def visit_regexp_replace_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        parts = [binary.left, *binary.right.clauses]
        return self._regular_expression("regexp_replace", parts, binary.modifiers["flags"] or "g", kw)

    def _regular_expression(self, name: str, parts: list[Any], flags: str | None, kw: dict[str, Any]) -> str:
        arguments = [self.process(part, **kw) for part in parts]
        if flags is not None:
            arguments.append(self.render_literal_value(flags, sqltypes.STRINGTYPE))
        return f"{name}({', '.join(arguments)})"

    def visit_bitwise_xor_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"xor({self.process(binary.left, **kw)}, {self.process(binary.right, **kw)})"


class GpudbDDLCompiler(compiler.DDLCompiler):
    """CREATE TABLE with what the engine has; a warning for each kind of constraint that it leaves out."""

    def get_column_specification(self, column: Any, **kwargs: Any) -> str:
        if column.computed is not None or column.identity is not None:
            raise exc.CompileError(f"gpudb has no generated columns: {column.table.name}.{column.name}")
        kind = self.dialect.type_compiler_instance.process(column.type, type_expression=column)
        specification = f"{self.preparer.format_column(column)} {kind}"
        default_sql = self.get_column_default_string(column)
        if default_sql is not None:
            specification += f" DEFAULT {default_sql}"
        return specification if column.nullable else f"{specification} NOT NULL"

    def create_table_constraints(self, table: Any, _include_foreign_key_constraints: Any = None, **kw: Any) -> str:
        if table.foreign_key_constraints:
            util.warn(f"gpudb has no foreign keys, they are left out of table {table.name}")
        return super().create_table_constraints(table, _include_foreign_key_constraints=set(), **kw)

    def visit_create_index(
        self, create: Any, include_schema: Any = False, include_table_schema: Any = True, **kw: Any
    ) -> str:
        """Nothing: an engine that scans has no use for one, and pandas' to_sql() asks for it."""
        util.warn(f"gpudb has no indexes, this one is left out: {create.element.name}")
        return "SELECT NULL AS no_index"

    def visit_drop_index(self, drop: Any, **kw: Any) -> str:
        return "SELECT NULL AS no_index"

    def visit_foreign_key_constraint(self, constraint: Any, **kw: Any) -> str:
        raise exc.CompileError(f"gpudb has no foreign keys: table {constraint.table.name}")


class GpudbTypeCompiler(compiler.GenericTypeCompiler):
    """Types by DuckDB's names; FLOAT there has 32 bits, so that a float of unknown precision is DOUBLE."""

    def visit_FLOAT(self, type_: Any, **kw: Any) -> str:
        return "REAL" if type_.precision is not None and type_.precision <= 24 else "DOUBLE"

    def visit_DATETIME(self, type_: Any, **kw: Any) -> str:
        return self.visit_TIMESTAMP(type_, **kw)

    def visit_TIMESTAMP(self, type_: Any, **kw: Any) -> str:
        return "TIMESTAMP WITH TIME ZONE" if type_.timezone else "TIMESTAMP"

    def visit_TEXT(self, type_: Any, **kw: Any) -> str:
        return "VARCHAR"

    visit_CLOB = visit_NCLOB = visit_TEXT

    def visit_TINYINT(self, type_: Any, **kw: Any) -> str:
        return "TINYINT"

    def visit_HUGEINT(self, type_: Any, **kw: Any) -> str:
        return "HUGEINT"


class GpudbIdentifierPreparer(compiler.IdentifierPreparer):
    """Names in double quotes where they are keywords."""

    def __init__(self, dialect: Any, **kw: Any) -> None:
        from gpudb.planner.bind.keywords import KEYWORDS

        super().__init__(dialect, **kw)
        self.reserved_words = {*self.reserved_words, *KEYWORDS}


class GpudbDialect(default.DefaultDialect):
    """gpudb in this process."""

    name = "gpudb"
    driver = "gpudb"
    default_paramstyle = "qmark"
    default_schema_name = "main"
    max_identifier_length = 1024

    statement_compiler = GpudbCompiler
    ddl_compiler = GpudbDDLCompiler
    type_compiler_cls = GpudbTypeCompiler
    preparer: type[compiler.IdentifierPreparer] = GpudbIdentifierPreparer

    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_default_values = True
    supports_default_metavalue = True
    supports_empty_insert = True
    supports_multivalues_insert = True
    supports_schemas = True
    supports_views = True
    supports_alter = True
    supports_sequences = False
    supports_comments = False
    supports_is_distinct_from = True
    div_is_floordiv = False
    supports_sane_rowcount = True
    supports_sane_multi_rowcount = True
    insert_returning = True
    update_returning = True
    delete_returning = True
    use_insertmanyvalues = True  # executemany() with RETURNING becomes VALUES of many rows
    postfetch_lastrowid = False
    default_isolation_level = "REPEATABLE READ"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._autocommit: weakref.WeakSet[Any] = weakref.WeakSet()  # connections without transactions

    # --- Connecting --------------------------------------------------------------------------------------------------

    @classmethod
    def import_dbapi(cls) -> Any:
        import gpudb

        return gpudb

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:
        return pool.QueuePool

    def create_connect_args(self, url: URL) -> Any:
        if url.host or url.username:
            raise exc.ArgumentError(f"gpudb:// opens directories; a server is gpudb+flight://{url.host}: {url!r}")
        config = dict(url.query)
        options: dict[str, Any] = {"read_only": str(config.pop("read_only", "false")).lower() in ("true", "1", "yes")}
        if config:
            options["config"] = config
        in_memory = url.database in (None, "", ":memory:")  # :memory:NAME is shared by all engines that name it
        return [f":memory:engine {next(_memory_numbers)}" if in_memory else url.database], options

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:
        return isinstance(e, self.dbapi.InterfaceError) and "connection is closed" in str(e)  # type: ignore[union-attr]  # set once it is used

    def _get_server_version_info(self, connection: Any) -> tuple[int, ...]:
        shown = connection.exec_driver_sql("SELECT version()").scalar()
        return tuple(int(part) for part in re.findall(r"\d+", str(shown)))

    def _get_default_schema_name(self, connection: Any) -> str:
        return "main"

    # --- Transactions ------------------------------------------------------------------------------------------------

    def do_begin(self, dbapi_connection: Any) -> None:
        own = getattr(dbapi_connection, "dbapi_connection", dbapi_connection)  # behind the pool's proxy
        if own not in self._autocommit:
            own.begin()

    def get_isolation_level_values(self, dbapi_connection: Any) -> list[Any]:
        return ["REPEATABLE READ", "AUTOCOMMIT"]

    def set_isolation_level(self, dbapi_connection: Any, level: str) -> None:
        (self._autocommit.add if level == "AUTOCOMMIT" else self._autocommit.discard)(dbapi_connection)

    def get_isolation_level(self, dbapi_connection: Any) -> Any:
        return "AUTOCOMMIT" if dbapi_connection in self._autocommit else "REPEATABLE READ"

    def get_default_isolation_level(self, dbapi_conn: Any) -> Any:
        return "REPEATABLE READ"

    def detect_autocommit_setting(self, dbapi_conn: Any) -> bool:
        return dbapi_conn in self._autocommit

    def do_savepoint(self, connection: Any, name: str) -> None:
        raise NotImplementedError("gpudb has no savepoints")

    # --- Reflection --------------------------------------------------------------------------------------------------

    def _rows(self, connection: Any, sql: str, **parameters: Any) -> list[Any]:
        return list(connection.execute(text(sql), parameters))

    @reflection.cache
    def get_schema_names(self, connection: Any, **kw: Any) -> list[str]:
        sql = "SELECT schema_name FROM duckdb_schemas() WHERE database_name = current_database() ORDER BY 1"
        return [name for (name,) in self._rows(connection, sql)]

    def _names(self, connection: Any, kind: str, schema: str | None) -> list[str]:
        sql = """SELECT table_name FROM information_schema.tables
            WHERE table_type = :kind AND lower(table_schema) = lower(:schema) ORDER BY table_name"""
        return [name for (name,) in self._rows(connection, sql, kind=kind, schema=schema or "main")]

    @reflection.cache
    def get_table_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        return self._names(connection, "BASE TABLE", schema)

    @reflection.cache
    def get_view_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        return self._names(connection, "VIEW", schema)

    @reflection.cache
    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> bool:
        sql = """SELECT 1 FROM information_schema.tables
            WHERE lower(table_name) = lower(:name) AND lower(table_schema) = lower(:schema)"""
        return bool(self._rows(connection, sql, name=table_name, schema=schema or "main"))

    @reflection.cache
    def has_schema(self, connection: Any, schema_name: str, **kw: Any) -> bool:
        return schema_name.lower() in {name.lower() for name in self.get_schema_names(connection, **kw)}

    @reflection.cache
    def has_index(
        self, connection: Any, table_name: str, index_name: str, schema: str | None = None, **kw: Any
    ) -> bool:
        return False

    @reflection.cache
    def get_columns(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> list[Any]:
        sql = """SELECT column_name, data_type, column_default, is_nullable FROM information_schema.columns
            WHERE lower(table_name) = lower(:name) AND lower(table_schema) = lower(:schema) ORDER BY ordinal_position"""
        found = self._rows(connection, sql, name=table_name, schema=schema or "main")
        if not found:
            raise exc.NoSuchTableError(f"{schema}.{table_name}" if schema else table_name)
        return [
            {"name": name, "type": type_of(kind), "nullable": nullable == "YES", "default": default_sql}
            for name, kind, default_sql, nullable in found
        ]

    @reflection.cache
    def get_view_definition(self, connection: Any, view_name: str, schema: str | None = None, **kw: Any) -> str:
        sql = """SELECT sql FROM duckdb_views()
            WHERE lower(view_name) = lower(:name) AND lower(schema_name) = lower(:schema)"""
        found = self._rows(connection, sql, name=view_name, schema=schema or "main")
        if not found:
            raise exc.NoSuchTableError(f"{schema}.{view_name}" if schema else view_name)
        return str(found[0][0])

    def _nothing(self, connection: Any, table_name: str, schema: str | None, empty: Any, **kw: Any) -> Any:
        """What a table that is there does not have."""
        if not self.has_table(connection, table_name, schema, **kw):
            raise exc.NoSuchTableError(f"{schema}.{table_name}" if schema else table_name)
        return empty

    def _keys(self, connection: Any, kind: str, table_name: str, schema: str | None, **kw: Any) -> dict[str, list[str]]:
        """The columns of each key of a kind, by its name."""
        sql = """SELECT constraint_name, column_name FROM information_schema.key_column_usage
            JOIN information_schema.table_constraints USING (table_schema, table_name, constraint_name)
            WHERE constraint_type = :kind AND lower(table_name) = lower(:name) AND lower(table_schema) = lower(:schema)
            ORDER BY constraint_name, ordinal_position"""
        found: dict[str, list[str]] = self._nothing(connection, table_name, schema, {}, **kw)
        for label, column in self._rows(connection, sql, kind=kind, name=table_name, schema=schema or "main"):
            found.setdefault(label, []).append(column)
        return found

    @reflection.cache
    def get_pk_constraint(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        keys = self._keys(connection, "PRIMARY KEY", table_name, schema, **kw)
        label, columns = next(iter(keys.items()), (None, []))
        return {"constrained_columns": columns, "name": label}

    def get_foreign_keys(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        return self._nothing(connection, table_name, schema, [], **kw)

    def get_indexes(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        return self._nothing(connection, table_name, schema, [], **kw)

    @reflection.cache
    def get_unique_constraints(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        keys = self._keys(connection, "UNIQUE", table_name, schema, **kw)
        return [{"name": label, "column_names": columns} for label, columns in keys.items()]

    @reflection.cache
    def get_check_constraints(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        sql = """SELECT constraint_name, expression FROM duckdb_constraints() WHERE constraint_type = 'CHECK'
            AND lower(table_name) = lower(:name) AND lower(schema_name) = lower(:schema) ORDER BY constraint_name"""
        self._nothing(connection, table_name, schema, [], **kw)
        found = self._rows(connection, sql, name=table_name, schema=schema or "main")
        return [{"name": label, "sqltext": _without_parentheses(condition)} for label, condition in found]


def _without_parentheses(condition: str) -> str:
    """A condition without the pair of parentheses around all of it."""
    level = 0
    for place, character in enumerate(condition):
        level += (character == "(") - (character == ")")
        if level == 0 and place < len(condition) - 1:
            return condition
    return condition[1:-1] if condition.startswith("(") else condition


class GpudbFlightDialect(GpudbDialect):
    """gpudb at a server: gpudb+flight://user:password@host:port?tls=true&tls_root_certs=FILE&token=TOKEN.

    Other names in the query are settings.
    """

    driver = "flight"
    supports_statement_cache = True

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:
        gone = isinstance(e, self.dbapi.OperationalError) and "cannot be reached" in str(e)  # type: ignore[union-attr]  # set once it is used
        return gone or super().is_disconnect(e, connection, cursor)

    def create_connect_args(self, url: URL) -> Any:
        if not url.host or url.database:
            raise exc.ArgumentError(f"the address of a server is gpudb+flight://host:port: {url!r}")
        config = {name: str(value) for name, value in url.query.items()}
        scheme = "grpc+tls" if config.pop("tls", "false").lower() in ("true", "1", "yes") else "grpc"
        options: dict[str, Any] = {name: config.pop(name) for name in ("token", "tls_root_certs") if name in config}
        if url.username:
            options |= {"user": url.username, "password": url.password or ""}
        if config:
            options["config"] = config
        host = f"[{url.host}]" if ":" in url.host else url.host
        return [f"{scheme}://{host}:{url.port}" if url.port else f"{scheme}://{host}"], options


dialect = GpudbDialect
