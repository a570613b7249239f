"""python -m benchmarks.h2o: the group-by and join questions of db-benchmark."""

from __future__ import annotations

import sys

from benchmarks import harness
from benchmarks.arguments import add_workload_options, make_parser
from benchmarks.h2o import generator
from benchmarks.h2o.queries import GROUPBY, JOIN, make_workload
from benchmarks.report import Report

QUICK_ROWS = 100_000


def main() -> int:
    """Makes the data, measures, reports.  0 when ours answered every query and equally."""
    parser = make_parser("benchmarks.h2o", "group-by and join questions of h2o.ai's db-benchmark")
    add_workload_options(parser, 10_000_000, "duckdb,duckdb-enum")
    parser.add_argument("--questions", choices=("groupby", "join", "both"), default="both")
    parser.add_argument(
        "--groups", type=int, default=100, metavar="K", help="values of the small keys; 10: more groups"
    )
    options = parser.parse_args()
    rows, repeat = (QUICK_ROWS, 1) if options.quick else (options.rows, options.repeat)
    report = Report(options.json)
    good = True
    if options.questions in ("groupby", "both"):
        tables = generator.write_groupby(options.data, rows, options.groups, options.seed)
        workload = make_workload(f"groupby-{options.groups}", GROUPBY, tables, rows, options.queries)
        good &= harness.measure(workload, options.peers, options.threads, repeat, report, options.device)
    if options.questions in ("join", "both"):
        tables = generator.write_join(options.data, rows, options.seed)
        workload = make_workload("join", JOIN, tables, rows, options.queries)
        good &= harness.measure(workload, options.peers, options.threads, repeat, report, options.device)
    report.finish((query.name for query in GROUPBY if not query.in_mean), totals=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
