"""Loading files into a database directory: time, bytes on disk, and memory under a limit."""

from __future__ import annotations

import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, parquet

from benchmarks import nycflights13
from benchmarks.process import hold_to_processors

COPIES = 30  # of nycflights13: 10.1 M rows


def in_new_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """The function's result, from a process of its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def flights() -> pa.Table:
    """nycflights13's flights, all 19 columns; the one timestamp without its zone, which is UTC."""
    table = nycflights13.read("flights")
    position = table.schema.get_field_index("time_hour")
    return table.set_column(position, "time_hour", table["time_hour"].cast(pa.timestamp("s")))


def write_parquet(path: Path, copies: int) -> Path:
    """`copies` times the flights as Parquet, unless it is there already."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.partial")
        table = flights()
        with parquet.ParquetWriter(partial, table.schema, store_schema=False) as writer:
            for _ in range(copies):
                writer.write_table(table)
        partial.rename(path)
    return path


def write_csv(path: Path, size: int | None = None, copies: int | None = None) -> tuple[Path, int]:
    """The flights as CSV, `copies` times or until `size` bytes, unless it is there already; and its rows."""
    table = flights()
    whole = pa.BufferOutputStream()
    csv.write_csv(table, whole)
    header, body = bytes(whole.getvalue()).split(b"\n", 1)
    if copies is None:
        assert size is not None, "either a size or a number of copies"
        copies = -(-size // len(body))
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.partial")
        with open(partial, "wb") as file:
            file.write(header + b"\n")
            for _ in range(copies):
                file.write(body)
        partial.rename(path)
    return path, copies * table.num_rows


def load_times(threads: int, repeat: int, source: str, copies: int) -> dict[str, Any]:
    """DuckDB's time to load `source` into a new database on disk over ours, in turns; medians.

    details: seconds, and bytes a row on disk, of both
    """
    seconds: dict[str, list[float]] = {"gpudb": [], "duckdb": []}
    sizes: dict[str, int] = {}
    rows = copies * flights().num_rows
    for _ in range(repeat):
        for engine, load in (("gpudb", load_gpudb), ("duckdb", load_duckdb)):
            elapsed, sizes[engine], counted = in_new_process(load, source, threads)
            if counted != rows:
                raise AssertionError(f"{engine} loaded {counted} rows instead of {rows}")
            seconds[engine].append(elapsed)
    ours, theirs = statistics.median(seconds["gpudb"]), statistics.median(seconds["duckdb"])
    return {
        "value": theirs / ours,
        "rows": rows,
        "gpudb_s": round(ours, 3),
        "duckdb_s": round(theirs, 3),
        "gpudb_bytes_a_row": round(sizes["gpudb"] / rows, 2),
        "duckdb_bytes_a_row": round(sizes["duckdb"] / rows, 2),
    }


def load_gpudb(source: str, threads: int) -> tuple[float, int, int]:
    """Seconds, bytes on disk, rows."""
    import gpudb

    hold_to_processors(threads)
    with tempfile.TemporaryDirectory(prefix="gpudb-benchmark-") as folder:
        started = time.perf_counter()
        connection = gpudb.connect(f"{folder}/db")
        cursor = connection.cursor()
        cursor.execute(f"SET threads = {threads}")
        cursor.execute(f"CREATE TABLE flights AS SELECT * FROM {_reader(source)}")
        seconds = time.perf_counter() - started  # a statement that has returned is on disk
        cursor.execute("SELECT count(*) FROM flights")
        rows = int(cursor.fetch_arrow_table().column(0)[0].as_py())
        connection.close()
        return seconds, disk_bytes(Path(folder)), rows


def load_duckdb(source: str, threads: int) -> tuple[float, int, int]:
    """Seconds with the checkpoint that moves the rows to the database file, bytes on disk, rows."""
    import duckdb

    hold_to_processors(threads)
    with tempfile.TemporaryDirectory(prefix="gpudb-benchmark-") as folder:
        started = time.perf_counter()
        connection = duckdb.connect(f"{folder}/db")
        connection.execute(f"SET threads = {threads}")
        connection.execute(f"CREATE TABLE flights AS SELECT * FROM {_reader(source)}")
        connection.execute("CHECKPOINT")
        seconds = time.perf_counter() - started
        rows = connection.sql("SELECT count(*) FROM flights").to_arrow_table().column(0)[0].as_py()
        connection.close()
        return seconds, disk_bytes(Path(folder)), rows


def limited_csv(source: str, rows: int, limit: str, threads: int) -> dict[str, Any]:
    """Loads a CSV file under a memory limit and queries it; the process's peak resident memory in GB (VmHWM).

    Call it in a new process: the peak is the process's.
    """
    import gpudb

    hold_to_processors(threads)
    with tempfile.TemporaryDirectory(prefix="gpudb-benchmark-") as folder:
        connection = gpudb.connect(f"{folder}/db")
        cursor = connection.cursor()
        cursor.execute(f"SET threads = {threads}")
        cursor.execute(f"SET memory_limit = '{limit}'")
        started = time.perf_counter()
        cursor.execute(f"CREATE TABLE flights AS SELECT * FROM {_reader(source)}")
        load_s = time.perf_counter() - started
        started = time.perf_counter()
        cursor.execute(
            "SELECT carrier, count(*) AS n, avg(arr_delay) AS delay FROM flights GROUP BY carrier ORDER BY n DESC"
        )
        answer = cursor.fetch_arrow_table()
        query_s = time.perf_counter() - started
        counted = sum(answer["n"].to_pylist())
        if counted != rows:
            raise AssertionError(f"{counted} rows were loaded instead of {rows}")
        connection.close()
    return {
        "value": round(peak_resident_bytes() / 1e9, 3),
        "rows": rows,
        "file_bytes": os.path.getsize(source),
        "load_s": round(load_s, 2),
        "query_s": round(query_s, 3),
    }


def peak_resident_bytes() -> int:
    """VmHWM of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/self/status has no VmHWM")


def disk_bytes(folder: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _reader(source: str) -> str:
    return f"{'read_csv' if source.endswith('.csv') else 'read_parquet'}('{source}')"
