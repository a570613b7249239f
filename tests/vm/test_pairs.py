"""Pairs of joins in parts: some at a time, the same rows whatever the part; what is not wanted is not made."""

from __future__ import annotations

from typing import Any

import pytest

import gpudb
from gpudb import vm
from gpudb.errors import MemoryLimitError
from gpudb.planner.emit import query

ROWS = 700


@pytest.fixture(params=["cpu", "reference"])
def connection(request: pytest.FixtureRequest) -> gpudb.Connection:
    made = gpudb.connect()
    made.execute(f"SET device = '{request.param}'")
    made.execute(f"CREATE TABLE t AS SELECT range AS k, range % 10 AS g FROM range({ROWS})")
    return made


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vm, "PART_PAIRS", 1000)
    monkeypatch.setattr(vm, "PAIR_BYTES", 50_000)
    monkeypatch.setattr(vm, "GROUPED_PARTS", 3)


PAIRS = [(a, b) for a in range(ROWS) for b in range(ROWS)]


def test_filtered_pairs_come_in_order_from_many_parts(connection: gpudb.Connection, small_parts: None) -> None:
    found = connection.execute("SELECT a.k, b.k FROM t a, t b WHERE (a.k + 3 * b.k) % 97 = 5").fetchall()
    assert found == [(a, b) for a, b in PAIRS if (a + 3 * b) % 97 == 5]


def test_grouped_pairs_of_many_parts_are_one_table(connection: gpudb.Connection, small_parts: None) -> None:
    found = connection.execute("SELECT a.g, count(*), sum(b.k) FROM t a, t b WHERE a.k < b.k GROUP BY a.g").fetchall()
    kept = [(a % 10, b) for a, b in PAIRS if a < b]
    expected = [(g, len(them), sum(them)) for g in range(10) if (them := [b for h, b in kept if h == g])]
    assert found == expected
    assert connection.execute("SELECT count(*) FROM t a, t b").fetchone() == (ROWS * ROWS,)


def test_true_pairs_of_many_parts_mark_their_probe_rows(connection: gpudb.Connection, small_parts: None) -> None:
    sql = "SELECT a.k FROM t a {} t b ON a.g = b.g AND b.k + 650 < a.k"
    kept = [k for k in range(ROWS) if any(b % 10 == k % 10 and b + 650 < k for b in range(ROWS))]
    assert connection.execute(sql.format("SEMI JOIN")).fetchall() == [(k,) for k in kept]
    assert connection.execute(sql.format("ANTI JOIN")).fetchall() == [(k,) for k in range(ROWS) if k not in kept]


def test_a_limit_makes_no_more_pairs_than_it_wants() -> None:
    connection = gpudb.connect()
    connection.execute("CREATE TABLE u AS SELECT range AS k FROM range(3000000)")  # 9 * 10**12 pairs
    assert connection.execute("SELECT a.k, b.k FROM u a, u b LIMIT 3 OFFSET 2").fetchall() == [(0, 2), (0, 3), (0, 4)]
    found = connection.execute("SELECT a.k, b.k FROM u a, u b WHERE b.k % 1000 = 7 LIMIT 2").fetchall()
    assert found == [(0, 7), (0, 1007)]


def test_pairs_past_the_memory_limit_are_refused_before_they_are_made() -> None:
    connection = gpudb.connect()
    connection.execute("CREATE TABLE u AS SELECT range AS k FROM range(3000000)")
    with pytest.raises(MemoryLimitError):
        connection.execute("SELECT a.k, b.k FROM u a, u b ORDER BY b.k")


def test_explain_analyze_shows_the_program_that_ran() -> None:
    connection = gpudb.connect()
    connection.execute("CREATE TABLE t AS SELECT range % 5 AS k FROM range(50)")
    sql = "SELECT count(*) FROM t a JOIN t b USING (k)"
    shown = connection.execute(f"EXPLAIN ANALYZE {sql}").fetchall()
    assert any(row[2] == "CountPairs" for row in shown)
    assert {row[0]: row[4] for row in shown if row[2] == "CountPairs"} and any(row[4] == 500 for row in shown)
    memory = connection.execute(f"EXPLAIN MEMORY {sql}").fetchall()
    assert all(row[4] is not None and row[4] > 0 for row in memory if row[2] in ("IndexRows", "Pipeline"))


def test_a_join_that_met_a_repeated_key_expects_it_from_then_on() -> None:
    connection = gpudb.connect()
    # Five keys far apart: the columns' statistics do not tell that they repeat.
    connection.execute("CREATE TABLE t AS SELECT (range % 5) * (range % 5) * 9999 + range % 5 AS k FROM range(50)")
    sql = "SELECT count(*) FROM t a JOIN t b USING (k)"
    first = connection.execute(sql)
    assert first.fetchone() == (500,)
    again = connection.execute(sql)
    assert again.fetchone() == (500,) and again.receipt["plan_cached"]
    assert again.receipt["tiles_run"] < first.receipt["tiles_run"]  # nothing is tried in vain


def test_a_join_whose_statistics_tell_that_keys_repeat_expects_it_at_once() -> None:
    connection = gpudb.connect()
    connection.execute("CREATE TABLE t AS SELECT range % 5 AS k FROM range(50)")
    sql = "SELECT count(*) FROM t a JOIN t b USING (k)"
    first, again = connection.execute(sql), connection.execute(sql)
    assert first.fetchone() == again.fetchone() == (500,)
    assert first.receipt["tiles_run"] == again.receipt["tiles_run"]


def test_joins_that_all_meet_repeated_keys_are_not_tried_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = gpudb.connect()
    connection.execute("CREATE TABLE t AS SELECT (range % 5) * (range % 5) * 9999 + range % 5 AS k FROM range(10)")
    made: list[frozenset[int]] = []
    emitted = query.emit_program

    def counted(*arguments: Any, repeated: frozenset[int] = frozenset(), **named: Any) -> Any:
        made.append(repeated)
        return emitted(*arguments, repeated=repeated, **named)

    monkeypatch.setattr(query, "emit_program", counted)
    # Each alone, behind LEFT JOIN, so that each is met by a run of its own.
    joins = " ".join(f"LEFT JOIN t AS t{n} ON t{n}.k = t{n - 1}.k" for n in range(1, 7))
    assert connection.execute(f"SELECT count(*) FROM t AS t0 {joins}").fetchone() == (5 * 2**7,)
    assert len(made) == 3, "two were met one by one, the third stands for all"
    unique = " ".join(f"LEFT JOIN (SELECT DISTINCT k FROM t) AS u{n} ON u{n}.k = t0.k" for n in range(1, 4))
    made.clear()
    assert connection.execute(f"SELECT count(*) FROM t AS t0 {joins} {unique}").fetchone() == (5 * 2**7,)
    assert len(made) == 3


def test_a_join_without_keys_expects_all_rows_of_its_build_side_at_once() -> None:
    connection = gpudb.connect()
    connection.execute("CREATE TABLE t AS SELECT range AS k FROM range(50)")
    sql = "SELECT count(*) FROM t a JOIN t b ON a.k < b.k"
    first, again = connection.execute(sql), connection.execute(sql)
    assert first.fetchone() == again.fetchone() == (1225,)
    assert first.receipt["tiles_run"] == again.receipt["tiles_run"]
