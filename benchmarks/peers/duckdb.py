"""DuckDB in memory, text as VARCHAR: as users load it."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from benchmarks.peers import SqlPeer
from benchmarks.workload import Workload


class Engine(SqlPeer):
    """DuckDB through its relation API, whose path to Arrow copies no rows (a cursor's copies them once more)."""

    def __init__(self, threads: int, device: str) -> None:
        self.version = duckdb.__version__
        self.connection = duckdb.connect()
        self.connection.execute(f"SET threads = {threads}")

    def load(self, workload: Workload) -> None:
        self.workload = workload
        for table, path in workload.tables.items():
            self.connection.execute(f"CREATE TABLE {table} AS SELECT * FROM read_parquet('{path}')")

    def run(self, sql: str) -> pa.Table:
        return self.connection.sql(sql).to_arrow_table()
