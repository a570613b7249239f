"""The harness: lines have one schema, failures are reported and survived, ratios follow the rules."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from benchmarks import arguments, harness
from benchmarks.process import EngineProcess, Failed, Measured, Ready, Request
from benchmarks.report import Report, ratio, summarise
from benchmarks.virginia import generator, queries
from benchmarks.workload import Query, Workload, shifted

pytest.importorskip("duckdb")

KEYS = [
    "benchmark",
    "query",
    "engine",
    "version",
    "device",
    "threads",
    "rows",
    "rows_out",
    "selectivity",
    "cold_s",
    "min_s",
    "median_s",
    "bytes_read",
    "equal",
]
ROWS = 5_000


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Workload:
    path = generator.write(tmp_path_factory.mktemp("virginia") / "test.parquet", ROWS, 0, "truncated")
    return queries.make_workload(str(path), ROWS, "truncated", only=["1", "13"])


@pytest.fixture(scope="module")
def duckdb_process(workload: Workload) -> Iterator[EngineProcess]:
    process = EngineProcess("duckdb", workload, 1, "auto")
    yield process
    process.close()


def test_every_measurement_is_one_line_with_every_key(workload: Workload, tmp_path: Path) -> None:
    report = Report(str(tmp_path / "lines.json"))
    harness.measure(workload, ["duckdb", "duckdb-enum"], 1, 2, report)
    report.finish()
    *lines, last = [json.loads(text) for text in (tmp_path / "lines.json").read_text().splitlines()]
    measured = [line for line in lines if line["engine"] == "duckdb-enum"]
    assert [line["query"] for line in measured] == ["1", "13"]
    for line in measured:
        assert list(line) == KEYS
        assert line["equal"] is True and line["rows"] == ROWS and line["threads"] == 1
        assert 0 < line["min_s"] <= line["median_s"] and line["cold_s"] > 0
    assert measured[0]["rows_out"] > 1 and measured[1]["rows_out"] == 1
    assert measured[0]["selectivity"] == pytest.approx(measured[0]["rows_out"] / ROWS)
    assert set(last["summary"]) == {"geomean_vs", "worst_vs", "cold_minus_hot_ms"}


def test_a_query_that_fails_is_reported_and_the_next_one_runs(duckdb_process: EngineProcess) -> None:
    assert isinstance(duckdb_process.ready, Ready)
    outcome = duckdb_process.run(Request(Query("bad", "no_such_column"), 0))
    assert isinstance(outcome, Failed) and "no_such_column" in outcome.reason and not outcome.missing
    assert isinstance(duckdb_process.run(Request(Query("good", "count(*)"), 0)), Measured)


def test_a_process_that_ends_is_a_failure_not_a_hang(workload: Workload) -> None:
    process = EngineProcess("duckdb", workload, 1, "auto")
    process.close()
    outcome = process.run(Request(workload.queries[0], 0))
    assert isinstance(outcome, Failed)


def test_a_peer_that_cannot_load_is_left_out(workload: Workload, tmp_path: Path) -> None:
    absent = dataclasses.replace(workload, path="absent.parquet")
    report = Report(str(tmp_path / "lines.json"))
    assert harness.measure(absent, ["duckdb"], 1, 1, report) is False
    assert [line["engine"] for line in report.lines] == ["gpudb", "duckdb"]
    assert "absent.parquet" in report.lines[1]["error"]


def line(engine: str, query: str, median_s: float | None, cold_s: float = 0.05) -> dict:
    return {"benchmark": "b", "query": query, "engine": engine, "median_s": median_s, "cold_s": cold_s}


def test_the_summary_is_the_geometric_mean_of_ratios_of_medians() -> None:
    lines = [
        line("gpudb", "Q1", 0.001, 0.5),
        line("duckdb", "Q1", 9.0),
        line("gpudb", "Q2", 0.010, 0.013),
        line("duckdb", "Q2", 0.020),
        line("gpudb", "Q3", 0.010, 0.011),
        line("duckdb", "Q3", 0.080),
        line("gpudb", "Q4", 0.010, 0.012),
        line("duckdb", "Q4", None),
        {"benchmark": "b", "engine": "chdb", "missing": "not installed"},
    ]
    summary = summarise(lines, ["Q1"])
    assert summary["geomean_vs"] == {"duckdb": pytest.approx(math.sqrt(2 * 8))}
    assert summary["worst_vs"] == {"duckdb": ["Q2", 2.0]}
    assert summary["cold_minus_hot_ms"] == pytest.approx(2.0)


def test_a_time_below_a_millisecond_counts_as_one() -> None:
    assert ratio(0.004, 0.0001) == pytest.approx(4)
    assert ratio(0.0001, 0.0002) == 1


def test_literals_change_from_repeat_to_repeat_the_published_ones_first() -> None:
    query = Query(
        "q", "count(*)", "a = '{name}' AND b > {low}", limit=3, literals={"name": ("x", "it's"), "low": (1, 2)}
    )
    assert query.sql("t") == "SELECT count(*) FROM t WHERE a = 'x' AND b > 1 LIMIT 3"
    assert query.sql("t", 1) == "SELECT count(*) FROM t WHERE a = 'it''s' AND b > 2 LIMIT 3"
    assert query.sql("t", 2, limited=False) == "SELECT count(*) FROM t WHERE a = 'x' AND b > 1"
    assert query.counting().sql("t", 1) == "SELECT count(*) FROM t WHERE a = 'it''s' AND b > 2"


def test_the_seven_repeats_of_a_varied_query_are_all_different() -> None:
    for query in queries.make_queries():
        if query.literals:
            assert len({query.sql("test", repeat) for repeat in range(8)}) == 8


def test_slow_queries_are_repeated_twice_only() -> None:
    runs = harness.Runs(cold_s=1.0, hot_s=[2.0, 3.0])
    assert not runs.slow
    runs.hot_s.append(harness.SLOW_S + 1)
    assert runs.slow


def test_an_unknown_peer_is_refused_by_name() -> None:
    parser = arguments.make_parser("benchmarks.flights", "")
    arguments.add_workload_options(parser, 10, "duckdb")
    with pytest.raises(SystemExit):
        parser.parse_args(["--peers", "duckdb,oracle"])
    assert parser.parse_args(["--peers", "duckdb,sqlite"]).peers == ["duckdb", "sqlite"]


def test_shifted_timestamps_keep_their_format() -> None:
    assert shifted("1996-12-31 16:30:06", timedelta(hours=8), 2) == ("1996-12-31 16:30:06", "1997-01-01 00:30:06")
