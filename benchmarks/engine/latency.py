"""Fixed costs: a new query shape, a cached statement, the shell's start."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks import harness
from benchmarks.flights import generator
from benchmarks.flights.queries import make_workload
from benchmarks.report import SUBJECT, Report, summarise


def first_runs(threads: int, device: str, repeat: int, rows: int, data: Path, report: Report) -> dict[str, Any]:
    """First run minus later run over Q2-Q17, milliseconds, the median; the flights lines go to the report too.

    details: slower_than_duckdb  the queries whose first run took longer than DuckDB's first run
    """
    path = generator.write(data / f"flights-{rows}-read-time-0-{generator.FORMAT}.parquet", rows)
    queries = [f"Q{number}" for number in range(2, 18)]
    before = len(report.lines)
    if not harness.measure(make_workload(str(path), rows, only=queries), ["duckdb"], threads, repeat, report, device):
        raise AssertionError("not every query was answered as DuckDB answers it: see the flights lines")
    lines = report.lines[before:]
    first = {(line["engine"], line["query"]): line["cold_s"] for line in lines if line.get("cold_s") is not None}
    slower = [name for name in queries if first.get((SUBJECT, name), 0) > first.get(("duckdb", name), float("inf"))]
    value = summarise(lines)["cold_minus_hot_ms"]
    return {"value": value, "rows": rows, "slower_than_duckdb": slower}


def cached_statement(threads: int, device: str, statements: int) -> dict[str, Any]:
    """Milliseconds of one statement over a one-row table, from SQL text to Arrow, new literals each time: the median.

    details: duckdb_ms  the same in DuckDB
    """
    import duckdb

    import gpudb

    connection = gpudb.connect()
    cursor = connection.cursor()
    cursor.execute(f"SET threads = {threads}")
    cursor.execute(f"SET device = '{device}'")
    cursor.execute("CREATE TABLE one (x INTEGER)")
    cursor.execute("INSERT INTO one VALUES (1)")

    def ours(sql: str) -> pa.Table:
        cursor.execute(sql)
        return cursor.fetch_arrow_table()

    peer = duckdb.connect()
    peer.execute(f"SET threads = {threads}")
    peer.execute("CREATE TABLE one AS SELECT 1::INTEGER AS x")
    value = _median_ms(ours, statements)
    if not cursor.receipt["plan_cached"]:
        raise AssertionError("the last statement was planned anew: new literals must find the cached plan")
    return {"value": value, "rows": 1, "duckdb_ms": _median_ms(lambda sql: peer.sql(sql).to_arrow_table(), statements)}


def _median_ms(run: Callable[[str], pa.Table], statements: int) -> float:
    seconds = []
    for number in range(2, statements + 2):
        sql = f"SELECT x + {number} AS y FROM one WHERE x < {number}"
        started = time.perf_counter()
        table = run(sql)
        seconds.append(time.perf_counter() - started)
        assert table.column(0)[0].as_py() == number + 1, "the answer must follow the literal"
    return round(statistics.median(seconds) * 1e3, 4)


def shell_start(repeat: int) -> dict[str, Any]:
    """Seconds of `gpudb -c "select 1"` from a warm disk, the median."""
    script = shutil.which("gpudb", path=str(Path(sys.executable).parent))
    command = [*([script] if script else [sys.executable, "-m", "gpudb"]), "-c", "select 1"]
    seconds = []
    for _ in range(repeat + 2):
        started = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        seconds.append(time.perf_counter() - started)
        if done.returncode != 0 or "1" not in done.stdout:
            raise AssertionError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-300:]}")
    return {
        "value": round(statistics.median(seconds[2:]), 3),
        "command": " ".join(command[1:] if script is None else ["gpudb", *command[1:]]),
    }
