"""DuckDB with every text column as an ENUM of its values: dictionary codes that its user has to ask for."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import parquet

from benchmarks.peers import duckdb
from benchmarks.workload import Workload

MOST_DISTINCT = 0.1  # values a row: a column with more stays VARCHAR, whose ENUM would be larger and slower


class Engine(duckdb.Engine):
    """DuckDB, text as ENUM where a value occurs ten times or more on average."""

    def load(self, workload: Workload) -> None:
        self.workload = workload
        for table, path in workload.tables.items():
            source = f"read_parquet('{path}')"
            columns = [self._column(table, source, field) for field in parquet.read_schema(path)]
            self.connection.execute(f"CREATE TABLE {table} AS SELECT {', '.join(columns)} FROM {source}")

    def _column(self, table: str, source: str, field: pa.Field) -> str:
        name = field.name
        if not (pa.types.is_string(field.type) or pa.types.is_string_view(field.type)):
            return name
        share = self.connection.execute(
            f"SELECT approx_count_distinct({name}) / count({name}) FROM {source}"
        ).fetchone()
        assert share is not None, "an aggregate has one row"
        if share[0] is None or share[0] > MOST_DISTINCT:
            return name
        values = f"SELECT DISTINCT {name} FROM {source} WHERE {name} IS NOT NULL ORDER BY ALL"
        self.connection.execute(f"CREATE TYPE {table}_{name} AS ENUM ({values})")
        return f"CAST({name} AS {table}_{name}) AS {name}"
