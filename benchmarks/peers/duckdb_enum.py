"""DuckDB with every text column as an ENUM of its values: dictionary codes that its user has to ask for."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import parquet

from benchmarks.peers import duckdb
from benchmarks.workload import Workload


class Engine(duckdb.Engine):
    """DuckDB, text as ENUM."""

    def load(self, workload: Workload) -> None:
        self.workload = workload
        columns = []
        for field in parquet.read_schema(workload.path):
            name = field.name
            if pa.types.is_string(field.type):
                values = (
                    f"SELECT DISTINCT {name} FROM read_parquet('{workload.path}') WHERE {name} IS NOT NULL ORDER BY ALL"
                )
                self.connection.execute(f"CREATE TYPE {name}_values AS ENUM ({values})")
                name = f"CAST({name} AS {name}_values) AS {name}"
            columns.append(name)
        source = f"SELECT {', '.join(columns)} FROM read_parquet('{workload.path}')"
        self.connection.execute(f"CREATE TABLE {workload.table} AS {source}")
