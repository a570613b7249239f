"""python -m benchmarks.server --clients 256 --seconds 60 --json FILE: the server's figures, each with its floor and aim."""

from __future__ import annotations

import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl

import gpudb
from benchmarks.arguments import make_parser, names
from benchmarks.engine.__main__ import Figure
from benchmarks.report import SUBJECT, Line, Report
from benchmarks.server.load import READ_ROWS, Load, offered
from benchmarks.server.processes import Served, call_options, plain_server
from gpudb.flight_sql import pack

Measure = Callable[[Namespace, Report], dict[str, Any]]
EXPORT = "SELECT k, a, b, t FROM exported"


def readers_figure(options: Namespace, report: Report) -> dict[str, Any]:
    """Readers of 1,000 rows each, as fast as they are answered: the 99th percentile; then at half of that rate by the clock."""
    with tempfile.TemporaryDirectory() as folder, _served(folder, options) as server:
        make = f"CREATE TABLE points AS SELECT i AS k, i % 97 AS a, i / 7.0 AS b FROM range({READ_ROWS}) AS r(i)"
        _run(fl.connect(server.uri), call_options(server.token), make)
        load = Load(server.uri, server.token, "read", 0, options.seconds)
        closed = offered(load, options.clients)
        rate = max(1.0, closed["per_second"] / 2)
        opened = offered(Load(server.uri, server.token, "read", 0, options.seconds, rate), options.clients)
        found = {"rows": READ_ROWS, "closed": closed, "open": opened, "open_rate": rate, "process": server.status()}
        if closed["errors"] or opened["errors"]:
            raise RuntimeError(f"readers got errors: {closed['errors']} {opened['errors']}")
        return found | {"value": closed["p99_ms"]}


def export_figure(options: Namespace, report: Report) -> dict[str, Any]:
    """One client reads a table of numbers and text; our bytes a second over those of a plain pyarrow Flight server."""
    rows = 200_000 if options.quick else 5_000_000
    processors = sorted(os.sched_getaffinity(0))[: options.threads]
    with tempfile.TemporaryDirectory() as folder, _served(folder, options) as server:
        client, call = fl.connect(server.uri), call_options(server.token)
        _run(
            client,
            call,
            "CREATE TABLE exported AS SELECT i AS k, (i * 7919) % 10007 AS a, i / 3.0 AS b, "
            f"'carrier ' || (i % 1000)::VARCHAR AS t FROM range({rows}) AS r(i)",
        )
        whole = _run(client, call, EXPORT)
        path = str(Path(folder) / "exported.arrow")
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, whole.schema) as writer:
            writer.write_table(whole)
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=plain_server, args=(theirs, path, processors), daemon=True)
        process.start()
        plain = fl.connect(f"grpc://127.0.0.1:{ours.recv()}")
        times: dict[str, list[float]] = {"gpudb": [], "plain": []}
        for _ in range(options.repeat):
            for name in times:  # A B A B
                began = time.perf_counter()
                table = _run(client, call, EXPORT) if name == "gpudb" else plain.do_get(fl.Ticket(b"")).read_all()
                times[name].append(time.perf_counter() - began)
                assert table.num_rows == rows, "all rows came"
        ours.send("end")
        process.join(10)
    speeds = {name: whole.nbytes / statistics.median(seconds) for name, seconds in times.items()}
    return {
        "rows": rows,
        "bytes": whole.nbytes,
        "gpudb_bytes_per_second": round(speeds["gpudb"]),
        "plain_bytes_per_second": round(speeds["plain"]),
        "value": speeds["gpudb"] / speeds["plain"],
    }


def statement_figure(options: Namespace, report: Report) -> dict[str, Any]:
    """execute + fetchone through ADBC, one client: the median in milliseconds."""
    import adbc_driver_flightsql.dbapi as adbc

    statements = 50 if options.quick else 2_000
    with tempfile.TemporaryDirectory() as folder, _served(folder, options) as server:
        login = {"username": "token", "password": server.token}
        with adbc.connect(server.uri, db_kwargs=login, autocommit=True) as connection, connection.cursor() as cursor:
            times = []
            for number in range(statements + 20):
                began = time.perf_counter()
                cursor.execute(f"SELECT {number} + 1")
                row = cursor.fetchone()
                times.append(time.perf_counter() - began)
                assert row == (number + 1,), "the answer is right"
    ordered = sorted(times[20:])
    return {
        "p99_ms": round(ordered[int(0.99 * len(ordered))] * 1e3, 3),
        "value": statistics.median(ordered) * 1e3,
    }


def ingest_figure(options: Namespace, report: Report) -> dict[str, Any]:
    """64 writers of batches of 1,000 rows into a directory: batches a second that were acknowledged, which is when on disk."""
    with tempfile.TemporaryDirectory() as folder, _served(folder, options) as server:
        writers = 4 if options.quick else 64
        found = offered(Load(server.uri, server.token, "write", 0, min(options.seconds, 20)), writers)
        rows = _run(fl.connect(server.uri), call_options(server.token), "SELECT count(DISTINCT k), count(*) FROM sent")
        distinct, every = (column[0].as_py() for column in rows.columns)
        if distinct != every or found["errors"]:
            raise RuntimeError(f"{every - distinct} rows are there twice; errors: {found['errors']}")
        return {"rows": every, "ingest": found, "process": server.status(), "value": found["per_second"]}


FIGURES = {
    "readers": Figure("ms, 99th percentile of closed loops", 500, 250, False, readers_figure),
    "export": Figure("of a plain Flight server's bytes a second", 0.7, 0.95, True, export_figure),
    "statement": Figure("ms, execute + fetchone through ADBC", 5, 2, False, statement_figure),
    "ingest": Figure("durable batches of 1,000 rows a second", 1_000, 3_000, True, ingest_figure),
}


def main() -> int:
    """Measures the figures, reports them.  0 when each reached its floor, or with --quick could be measured."""
    parser = make_parser("benchmarks.server", "the server under load; clients run on the same processors")
    parser.add_argument("--clients", type=int, default=256, help="readers at a time")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each load")
    parser.add_argument("--figures", type=names, default=list(FIGURES), help=f"of {', '.join(FIGURES)}")
    options = parser.parse_args()
    unknown = [name for name in options.figures if name not in FIGURES]
    if unknown:
        parser.error(f"no such figure: {', '.join(unknown)} (there are {', '.join(FIGURES)})")
    if options.quick:
        options.repeat, options.clients, options.seconds = 1, min(options.clients, 4), min(options.seconds, 1.0)
    report = Report(options.json)
    reached: dict[str, str] = {}
    for name in options.figures:
        line = measure(name, options, report)
        report.add(line)
        reached[name] = line["reached"]
        shown = line.get("error") or f"{line['value']:.3f} {line['unit']}"
        report.note(f"{name}: {shown} (floor {line['floor']}, aim {line['aim']}): {line['reached']}")
    report.write_summary({"reached": reached})
    return 1 if {"neither", "failed"} & set(reached.values()) else 0


def measure(name: str, options: Namespace, report: Report) -> Line:
    """One figure's line; one that cannot be measured says why under `error`."""
    figure = FIGURES[name]
    line: Line = {
        "benchmark": "server",
        "query": name,
        "engine": SUBJECT,
        "version": gpudb.__version__,
        "device": options.device,
        "threads": options.threads,
        "rows": None,
        "value": None,
        "unit": figure.unit,
        "floor": figure.floor,
        "aim": figure.aim,
    }
    try:
        line |= figure.measure(options, report)
    except Exception as error:  # one figure must not take the others with it
        return line | {"reached": "failed", "error": " ".join(f"{type(error).__name__}: {error}".split())}
    return line | {"reached": "not judged" if options.quick else figure.reached(line["value"])}


def _served(folder: str, options: Namespace) -> Served:
    return Served(str(Path(folder) / "db"), options.threads)


def _run(client: fl.FlightClient, call: fl.FlightCallOptions, sql: str) -> pa.Table:
    descriptor = fl.FlightDescriptor.for_command(pack("CommandStatementQuery", query=sql))
    return client.do_get(client.get_flight_info(descriptor, call).endpoints[0].ticket, call).read_all()


if __name__ == "__main__":
    sys.exit(main())
