"""python -m benchmarks.virginia: the 13 queries of the 2010 paper."""

from __future__ import annotations

import sys

from benchmarks import harness
from benchmarks.arguments import add_workload_options, make_parser
from benchmarks.report import Report
from benchmarks.virginia import generator
from benchmarks.virginia.queries import make_workload

QUICK_ROWS = 100_000


def main() -> int:
    """Makes the data, measures, reports.  0 when ours answered every query and equally."""
    parser = make_parser(
        "benchmarks.virginia", "the 13 queries of Bakkum and Skadron 2010, with both variants of their data"
    )
    add_workload_options(parser, 5_000_000, "sqlite,duckdb")
    parser.add_argument("--variant", choices=("both", *generator.VARIANTS), default="both", help="of the FLOAT columns")
    parser.set_defaults(threads=1)
    options = parser.parse_args()
    rows, repeat = (QUICK_ROWS, 1) if options.quick else (options.rows, options.repeat)

    report = Report(options.json)
    good = True
    for variant in generator.VARIANTS if options.variant == "both" else (options.variant,):
        path = options.data / f"virginia-{rows}-{variant}-{options.seed}-{generator.FORMAT}.parquet"
        generator.write(path, rows, options.seed, variant)
        workload = make_workload(str(path), rows, variant, options.queries)
        good &= harness.measure(workload, options.peers, options.threads, repeat, report, options.device)
    report.finish()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
