"""The benchmarks over several tables: the same data for the same seed, and statements that DuckDB answers with rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow import parquet

import gpudb
from benchmarks.equality import difference
from benchmarks.h2o import generator as h2o_generator
from benchmarks.h2o import queries as h2o_queries
from benchmarks.ssb import generator as ssb_generator
from benchmarks.ssb import queries as ssb_queries
from benchmarks.tpch import data as tpch_data
from benchmarks.tpch import queries as tpch_queries
from benchmarks.weblog import generator as weblog_generator
from benchmarks.weblog import queries as weblog_queries
from benchmarks.workload import Workload, read_statement

duckdb = pytest.importorskip("duckdb")
SCALE = 0.01


@pytest.fixture(scope="module")
def tpch(tmp_path_factory: pytest.TempPathFactory) -> Workload:
    try:
        tables = tpch_data.write(tmp_path_factory.mktemp("tpch"), SCALE)
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    return tpch_queries.make_workload(tables, SCALE, parquet.read_metadata(tables["lineitem"]).num_rows)


@pytest.fixture(scope="module")
def ssb(tmp_path_factory: pytest.TempPathFactory) -> Workload:
    tables = ssb_generator.write(tmp_path_factory.mktemp("ssb"), SCALE, 0)
    return ssb_queries.make_workload(tables, parquet.read_metadata(tables["lineorder"]).num_rows)


def loaded(workload: Workload) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for table, path in workload.tables.items():
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{path}')")
    return connection


def rows_of(workload: Workload) -> dict[str, list[int]]:
    """Query → rows of its answer with each set of literals, LIMIT left out."""
    connection = loaded(workload)
    return {
        query.name: [
            connection.sql(query.sql(workload.table, k, limited=False)).to_arrow_table().num_rows for k in range(4)
        ]
        for query in workload.queries
    }


def test_tpch_has_22_queries_that_return_rows(tpch: Workload) -> None:
    rows = rows_of(tpch)
    assert len(rows) == 22
    few = {"Q2", "Q18", "Q20", "Q21"}  # of large orders and of certain parts a hundredth of the data has hardly any
    assert {name for name, counts in rows.items() if not any(counts)} <= few


def test_every_literal_of_tpch_changes_its_query(tpch: Workload) -> None:
    for query in tpch.queries:
        texts = {query.sql("", repeat) for repeat in range(2)}
        assert len(texts) == 2, f"{query.name} is the same in every repeat"
        assert "{" not in "".join(texts), f"{query.name} has a slot without values"


def test_ssb_has_13_queries_and_most_return_rows(ssb: Workload) -> None:
    rows = rows_of(ssb)
    assert len(rows) == 13
    assert {name for name, counts in rows.items() if not any(counts)} <= {"Q2.3", "Q3.3", "Q3.4", "Q4.3"}


def test_ssb_refers_to_rows_that_exist(ssb: Workload) -> None:
    connection = loaded(ssb)
    joined = connection.sql(
        "SELECT count(*) FROM lineorder JOIN dates ON lo_orderdate = d_datekey JOIN part ON lo_partkey = p_partkey"
        " JOIN customer ON lo_custkey = c_custkey JOIN supplier ON lo_suppkey = s_suppkey"
    ).fetchall()
    assert joined == [(ssb.rows,)]


def test_ssb_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    one = ssb_generator.write(tmp_path / "one", 0.001, 7)
    other = ssb_generator.write(tmp_path / "other", 0.001, 7)
    assert all(parquet.read_table(one[name]).equals(parquet.read_table(other[name])) for name in one)
    different = ssb_generator.write(tmp_path / "one", 0.001, 8)
    assert not parquet.read_table(one["lineorder"]).equals(parquet.read_table(different["lineorder"]))


def test_h2o_groups_have_the_sizes_asked_for(tmp_path: Path) -> None:
    tables = h2o_generator.write_groupby(tmp_path, 50_000, 10, 0)
    workload = h2o_queries.make_workload("groupby-10", h2o_queries.GROUPBY, tables, 50_000)
    connection = loaded(workload)
    groups = {query.name: connection.sql(query.sql("x")).to_arrow_table().num_rows for query in workload.queries}
    assert groups["g1"] == groups["g4"] == 10
    assert groups["g2"] == 100
    assert 4900 < groups["g3"] <= 5000
    assert groups["g10"] > 45_000


def test_h2o_joins_match_nine_rows_of_ten(tmp_path: Path) -> None:
    tables = h2o_generator.write_join(tmp_path, 20_000, 0)
    workload = h2o_queries.make_workload("join", h2o_queries.JOIN, tables, 20_000)
    connection = loaded(workload)
    rows = {query.name: connection.sql(query.sql("x")).to_arrow_table().num_rows for query in workload.queries}
    assert rows["j3"] == 20_000
    assert 0.87 * 20_000 < rows["j5"] < 0.93 * 20_000
    assert rows["j2"] == rows["j4"]


def check_answers(workload: Workload) -> None:
    """Every query, with two sets of literals, answers as DuckDB does."""
    oracle, ours = loaded(workload), gpudb.connect()
    for table, path in workload.tables.items():
        ours.execute(f"CREATE TABLE {table} AS SELECT * FROM read_parquet('{path}')")
    for query in workload.queries:
        for repeat in range(2):
            answer = ours.execute(query.sql(workload.table, repeat))
            table = answer.fetch_arrow_table()
            wanted = oracle.sql(query.sql(workload.table, repeat, limited=False)).to_arrow_table()
            problem = difference(table, wanted, order_by=query.order_by, limit=query.limit)
            assert problem is None, f"{query.name}: {problem}"
            assert answer.receipt["host_rows"] == 0


def test_tpch_has_the_answers_of_duckdb(tpch: Workload) -> None:
    check_answers(tpch)


def test_ssb_has_the_answers_of_duckdb(ssb: Workload) -> None:
    check_answers(ssb)


def test_h2o_has_the_answers_of_duckdb(tmp_path: Path) -> None:
    grouped = h2o_generator.write_groupby(tmp_path, 30_000, 10, 0)
    check_answers(h2o_queries.make_workload("groupby-10", h2o_queries.GROUPBY, grouped, 30_000))
    joined = h2o_generator.write_join(tmp_path, 30_000, 0)
    check_answers(h2o_queries.make_workload("join", h2o_queries.JOIN, joined, 30_000))


def test_weblog_has_40_questions_with_rows_and_the_answers_of_duckdb(tmp_path: Path) -> None:
    workload = weblog_queries.make_workload(weblog_generator.write(tmp_path, 20_000, 0), 20_000)
    rows = rows_of(workload)
    assert len(rows) == 40
    assert rows["W16"] == [20_000] * 4, "as many groups as rows"
    few = {"W31", "W32", "W19"}  # groups of a thousand rows: there are hardly any in so few rows
    assert all(min(counts) >= 1 for name, counts in rows.items() if name not in few)
    check_answers(workload)


def test_a_statement_file_gives_its_order_and_limit(tmp_path: Path) -> None:
    file = tmp_path / "q.sql"
    file.write_text(
        "-- where it comes from\nSELECT a, sum(b) AS c\nFROM t\nGROUP BY a\nORDER BY c DESC, a\nLIMIT 10;\n"
    )
    query = read_statement(file, "q", {})
    assert (query.order_by, query.limit) == (("c", "a"), 10)
    assert query.sql("") == "SELECT a, sum(b) AS c\nFROM t\nGROUP BY a\nORDER BY c DESC, a LIMIT 10"
    assert query.sql("", limited=False).endswith("ORDER BY c DESC, a")
