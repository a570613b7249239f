"""python -m benchmarks.weblog: what reports of web analytics ask."""

from __future__ import annotations

import sys

from benchmarks import harness
from benchmarks.arguments import add_workload_options, make_parser
from benchmarks.report import Report
from benchmarks.weblog import generator
from benchmarks.weblog.queries import QUERIES, make_workload

QUICK_ROWS = 100_000


def main() -> int:
    """Makes the data, measures, reports.  0 when ours answered every query and equally."""
    parser = make_parser("benchmarks.weblog", "forty questions over a table of page views")
    add_workload_options(parser, 5_000_000, "duckdb,duckdb-enum")
    options = parser.parse_args()
    rows, repeat = (QUICK_ROWS, 1) if options.quick else (options.rows, options.repeat)
    report = Report(options.json)
    workload = make_workload(generator.write(options.data, rows, options.seed), rows, options.queries)
    good = harness.measure(workload, options.peers, options.threads, repeat, report, options.device)
    report.finish((query.name for query in QUERIES if not query.in_mean), totals=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
