"""Our engine, through its DB-API."""

from __future__ import annotations

import pyarrow as pa

import gpudb
from benchmarks.peers import SqlPeer
from benchmarks.workload import Workload


class Engine(SqlPeer):
    """gpudb in memory."""

    def __init__(self, threads: int, device: str) -> None:
        self.version = gpudb.__version__
        self.connection = gpudb.connect()
        self.cursor = self.connection.cursor()
        self.cursor.execute(f"SET threads = {threads}")
        self.cursor.execute(f"SET device = '{device}'")

    def load(self, workload: Workload) -> None:
        self.workload = workload
        for table, path in workload.tables.items():
            self.cursor.execute(f"CREATE TABLE {table} AS SELECT * FROM read_parquet('{path}')")

    def run(self, sql: str) -> pa.Table:
        self.cursor.execute(sql)
        return self.cursor.fetch_arrow_table()

    def forget_plans(self) -> None:
        self.connection.session.clear_plan_cache()

    @property
    def device(self) -> str:  # type: ignore[override]  # read from the last receipt
        receipt = self.cursor.receipt
        return str(receipt["device"]) if receipt else "none"

    def bytes_read(self) -> int | None:
        receipt = self.cursor.receipt
        return int(receipt["bytes_read"]) if receipt else None
