"""chDB (ClickHouse in the process): a table in memory, text as LowCardinality(String)."""

from __future__ import annotations

import chdb
import pyarrow as pa
from chdb.session import Session
from pyarrow import parquet

from benchmarks.peers import SqlPeer
from benchmarks.workload import Workload

TYPES = {
    pa.string(): "String",
    pa.bool_(): "Bool",
    pa.int8(): "Int8",
    pa.int16(): "Int16",
    pa.int32(): "Int32",
    pa.int64(): "Int64",
    pa.float32(): "Float32",
    pa.float64(): "Float64",
    pa.date32(): "Date32",
    pa.timestamp("us"): "DateTime64(6)",
}


def column_type(field: pa.Field) -> str:
    """Nullable only where the data has NULLs, since ClickHouse pays for it."""
    name = f"Nullable({TYPES[field.type]})" if field.nullable else TYPES[field.type]
    return f"LowCardinality({name})" if pa.types.is_string(field.type) else name


class Engine(SqlPeer):
    """ClickHouse's Memory engine; its query cache is off by default."""

    spelling = (
        (r"extract\(isodow FROM (\w+)\)", r"toDayOfWeek(\1)"),
        (r"extract\(month FROM (\w+)\)", r"toMonth(\1)"),
        (r"extract\(year FROM (\w+)\)", r"toYear(\1)"),
        (r"date_trunc\('month', (\w+)\)", r"toStartOfMonth(\1)"),
        (r"\bstddev\(", "stddevSamp("),
        (r"(\w+) // (\d+)", r"intDiv(\1, \2)"),
        (r"TIMESTAMP '([^']*)'", r"toDateTime64('\1', 6)"),
    )

    def __init__(self, threads: int, device: str) -> None:
        self.version = chdb.__version__
        self.session = Session()
        self.threads = threads

    def load(self, workload: Workload) -> None:
        self.workload = workload
        columns = ", ".join(f"{field.name} {column_type(field)}" for field in parquet.read_schema(workload.path))
        self.session.query("CREATE DATABASE bench")
        self.session.query("USE bench")
        # Times in the data have no zone: read them as UTC, whatever the machine's zone is.
        self.session.query(
            f"SET session_timezone = 'UTC', max_threads = {self.threads}, use_query_cache = 0, cast_keep_nullable = 1"
        )
        self.session.query(f"CREATE TABLE {workload.table} ({columns}) ENGINE = Memory")
        self.session.query(f"INSERT INTO {workload.table} SELECT * FROM file('{workload.path}', Parquet)")

    def run(self, sql: str) -> pa.Table:
        return self.session.query(sql, "ArrowTable")
