"""python -m benchmarks.tpch: TPC-H's 22 queries."""

from __future__ import annotations

import sys

from pyarrow import parquet

from benchmarks import harness
from benchmarks.arguments import add_scale_options, make_parser
from benchmarks.report import Report
from benchmarks.tpch import data
from benchmarks.tpch.queries import make_workload

QUICK_SCALE = 0.01


def main() -> int:
    """Makes the data, measures, reports.  0 when ours answered every query and equally."""
    parser = make_parser("benchmarks.tpch", "TPC-H's 22 queries")
    add_scale_options(parser, "duckdb,duckdb-enum")
    options = parser.parse_args()
    scale, repeat = (QUICK_SCALE, 1) if options.quick else (options.scale, options.repeat)
    tables = data.write(options.data, scale)
    rows = parquet.read_metadata(tables["lineitem"]).num_rows
    report = Report(options.json)
    workload = make_workload(tables, scale, rows, options.queries)
    good = harness.measure(workload, options.peers, options.threads, repeat, report, options.device)
    report.finish(totals=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
