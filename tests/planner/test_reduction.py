"""Build sides reduced to the keys of a small probe side: where it is done, where it is not, and the same rows either way."""

from __future__ import annotations

import pytest

import gpudb
from benchmarks.equality import difference
from gpudb.planner import physical
from gpudb.planner.logical import Node
from tests.devices.queries import content

duckdb = pytest.importorskip("duckdb")

TABLES = (
    (
        "CREATE TABLE big AS SELECT (i * 7919) % 200000 AS id, CASE WHEN i % 11 > 0 THEN i % 20000 END AS k, i % 13 AS v,"
        " 'name ' || (i % 9000) AS s FROM range(200000) t(i)"
    ),
    (
        "CREATE TABLE few AS SELECT CASE WHEN i % 7 > 0 THEN i % 20 * 500 END AS k, i % 13 AS v, 'name ' || (i % 10) AS s, i AS n"
        " FROM range(300) t(i)"
    ),
)

REDUCED = (
    "SELECT n FROM few WHERE v < (SELECT avg(v) FROM big WHERE big.k = few.k)",
    "SELECT n, (SELECT count(*) FROM big WHERE big.k = few.k) AS c FROM few",
    "SELECT n, (SELECT max(s) FROM big WHERE big.k = few.k AND big.v = few.v) AS c FROM few",
    "SELECT n FROM few WHERE EXISTS (SELECT 1 FROM big WHERE big.k = few.k AND big.v <> few.v)",
    "SELECT n FROM few WHERE NOT EXISTS (SELECT 1 FROM big WHERE big.k = few.k AND big.v < few.v)",
    "SELECT n, EXISTS (SELECT 1 FROM big WHERE big.s = few.s AND big.v < few.v) AS e FROM few",
    "SELECT n, c FROM few LEFT JOIN (SELECT k + 1 AS j, count(*) AS c FROM big GROUP BY k + 1) AS g ON g.j = few.k",
    (
        "SELECT n, c FROM few LEFT JOIN (SELECT s, v, count(*) AS c FROM big WHERE id > 9 GROUP BY s, v) g"
        " ON g.s = few.s AND g.v IS NOT DISTINCT FROM few.v"
    ),
    "SELECT n, big.id FROM few LEFT JOIN big ON big.k = few.k AND big.v > few.v",
)

AS_IT_IS = (
    "SELECT n, big.v AS w FROM few LEFT JOIN big ON big.id = few.n",  # one row a key: the index costs little
    "SELECT b.id FROM big AS b LEFT JOIN (SELECT k, count(*) AS c FROM big GROUP BY k) AS g ON g.k = b.k WHERE b.id < 50",
    "SELECT n, c FROM few LEFT JOIN (SELECT v, count(*) AS c FROM big GROUP BY v) AS g ON g.v = few.v",  # needs all groups
    "SELECT n, c FROM few LEFT JOIN (SELECT k, count(*) AS c FROM big GROUP BY k) AS g ON g.c = few.v",  # not by a key
)


@pytest.fixture(scope="module")
def engines() -> tuple[gpudb.Connection, object]:
    ours, theirs = gpudb.connect(), duckdb.connect()
    for statement in TABLES:
        ours.execute(statement)
        theirs.execute(statement)
    return ours, theirs


def is_reduced(ours: gpudb.Connection, sql: str) -> bool:
    """Is the probe side read twice: for its keys, and by the join?"""
    lines = [str(row[2]).strip() for row in ours.execute(f"EXPLAIN {sql}").fetchall()]
    return sum(line.startswith("Scan few") for line in lines) == 2 or any(line.startswith("Kept") for line in lines)


@pytest.mark.parametrize("sql", REDUCED)
def test_only_the_rows_asked_for_are_grouped_or_indexed(engines: tuple[gpudb.Connection, object], sql: str) -> None:
    ours, theirs = engines
    assert is_reduced(ours, sql)
    answers = []
    for device in ("cpu", "reference"):
        ours.execute(f"SET device = '{device}'")
        answers.append(ours.execute(sql).fetch_arrow_table())
    ours.execute("RESET device")
    assert content(answers[0]) == content(answers[1])
    expected = theirs.sql(sql).to_arrow_table()
    assert difference(answers[0], expected) is None


@pytest.mark.parametrize("sql", AS_IT_IS)
def test_what_would_cost_more_is_left_as_it_is(engines: tuple[gpudb.Connection, object], sql: str) -> None:
    ours, theirs = engines
    assert not is_reduced(ours, sql)
    assert difference(ours.execute(sql).fetch_arrow_table(), theirs.sql(sql).to_arrow_table()) is None


@pytest.mark.parametrize("sql", REDUCED[:4])
def test_the_rows_are_the_same_in_the_same_order_without_it(
    engines: tuple[gpudb.Connection, object], sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, _ = engines
    reduced = ours.execute(sql).fetch_arrow_table()

    def as_it_is(plan: Node, estimator: object) -> Node:
        return plan

    monkeypatch.setattr(physical, "reduce_build_sides", as_it_is)
    plain = gpudb.connect()
    for statement in TABLES:
        plain.execute(statement)
    assert not is_reduced(plain, sql)
    assert plain.execute(sql).fetch_arrow_table().equals(reduced)
