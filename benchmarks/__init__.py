"""Benchmarks: one folder a benchmark, one command each, one JSON line a measurement.

    python -m benchmarks.flights  --rows 10000000 --peers duckdb,duckdb-enum --threads 2 --repeat 7 --json FILE
    python -m benchmarks.virginia --rows 5000000 --peers sqlite,duckdb --threads 1 --repeat 7 --json FILE
    python -m benchmarks.engine   --json FILE
    python -m benchmarks.server   --clients 256 --seconds 60 --json FILE

`--quick` runs any of them small and once: it proves that they work and says nothing about speed.

The rules, the same for every engine: a process of its own, held to the same number of processors; the data loaded
before the clock starts; engines take turns (A B A B); every result becomes an Arrow table inside the clock; repeats
vary a literal where the query has one; no engine's result cache is on.

`workload` says what a query is, `harness` runs it, `process` is an engine in a process, `equality` compares answers,
`report` writes lines, `peers/` knows the engines.
"""
