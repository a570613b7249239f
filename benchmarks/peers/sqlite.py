"""SQLite in memory, its rows fetched as Arrow by PyPI's adbc-driver-sqlite.  One thread, always."""

from __future__ import annotations

import adbc_driver_sqlite
import pyarrow as pa
from adbc_driver_sqlite import dbapi
from pyarrow import parquet

from benchmarks.peers import SqlPeer
from benchmarks.workload import Workload

BATCH_ROWS = 1 << 16


class Engine(SqlPeer):
    """SQLite.  Timestamps are integers, microseconds since 1970: its fastest form, and half the size of text."""

    spelling = (
        (r"extract\(month FROM (\w+)\)", r"CAST(strftime('%m', \1 / 1000000, 'unixepoch') AS INTEGER)"),
        (r"extract\(year FROM (\w+)\)", r"CAST(strftime('%Y', \1 / 1000000, 'unixepoch') AS INTEGER)"),
        (r"extract\(isodow FROM (\w+)\)", r"CAST(strftime('%u', \1 / 1000000, 'unixepoch') AS INTEGER)"),
        (r"date_trunc\('month', (\w+)\)", r"datetime(\1 / 1000000, 'unixepoch', 'start of month')"),
        (r"TIMESTAMP ('[^']*')", r"(unixepoch(\1) * 1000000)"),
        (
            r"ORDER BY key0(, key1)?$",
            lambda found: "ORDER BY key0 NULLS LAST" + (", key1 NULLS LAST" if found[1] else ""),
        ),
    )

    def __init__(self, threads: int, device: str) -> None:
        self.connection = dbapi.connect(autocommit=True)
        self.cursor = self.connection.cursor()
        self.cursor.adbc_statement.set_options(
            **{adbc_driver_sqlite.StatementOptions.BATCH_ROWS.value: str(BATCH_ROWS)}
        )
        self.version = str(self.run("SELECT sqlite_version()").column(0)[0])

    def load(self, workload: Workload) -> None:
        self.workload = workload
        file = parquet.ParquetFile(workload.path)
        schema = pa.schema([(field.name, _stored_type(field.type)) for field in file.schema_arrow])
        columns = ", ".join(_declared(field, workload.primary_key) for field in schema)
        self.cursor.execute(f"CREATE TABLE {workload.table} ({columns})")
        for batch in file.iter_batches(batch_size=BATCH_ROWS):
            stored = pa.table(
                [column.cast(type_) for column, type_ in zip(batch.columns, schema.types, strict=True)], schema=schema
            )
            self.cursor.adbc_ingest(workload.table, stored, mode="append")

    def run(self, sql: str) -> pa.Table:
        self.cursor.execute(sql)
        return self.cursor.fetch_arrow_table()


def _stored_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(type_):
        return pa.int64()
    return pa.int32() if pa.types.is_date32(type_) else type_


def _declared(field: pa.Field, primary_key: str | None) -> str:
    if field.name == primary_key:
        return f"{field.name} INTEGER PRIMARY KEY"
    if pa.types.is_string(field.type):
        return f"{field.name} TEXT"
    return f"{field.name} {'FLOAT' if pa.types.is_floating(field.type) else 'INT'}"
