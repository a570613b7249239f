"""DataFusion over a table cached in memory."""

from __future__ import annotations

import datafusion
import pyarrow as pa

from benchmarks.peers import SqlPeer
from benchmarks.workload import Workload


class Engine(SqlPeer):
    """DataFusion; its worker threads follow the process's processors, which the harness sets."""

    spelling = (
        (r"extract\(isodow FROM (\w+)\)", r"((CAST(date_part('dow', \1) AS BIGINT) + 6) % 7 + 1)"),
        (r"\bNOT (\w+)", r"\1 = 0"),
    )

    def __init__(self, threads: int, device: str) -> None:
        self.version = datafusion.__version__
        self.context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(threads))

    def load(self, workload: Workload) -> None:
        self.workload = workload
        for table, path in workload.tables.items():
            self.context.register_table(table, self.context.read_parquet(path).cache())

    def run(self, sql: str) -> pa.Table:
        return self.context.sql(sql).to_arrow_table()
