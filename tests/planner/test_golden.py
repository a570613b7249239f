"""Plans are those that lie in `golden/`; what EXPLAIN ANALYZE counts is what DuckDB counts."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

import duckdb
import pytest

import gpudb
from tests.planner import golden
from tests.planner.golden import STATEMENTS, explained, path_of

RENEW = "python -m tests.planner.golden --write"


@pytest.fixture(scope="module")
def ours() -> Iterator[gpudb.Connection]:
    with golden.connect() as connection:
        yield connection


@pytest.fixture(scope="module")
def theirs() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for name, table in (("flights", golden.flights()), ("small", golden.small())):
            connection.register(f"arrow_{name}", table)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM arrow_{name}")
        yield connection


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_plan_is_the_golden_one(ours: gpudb.Connection, name: str) -> None:
    path = path_of(name)
    before = path.read_text().splitlines() if path.exists() else []
    now = explained(ours, STATEMENTS[name]).splitlines()
    difference = "\n".join(difflib.unified_diff(before, now, f"golden/{path.name}", "EXPLAIN now", lineterm="", n=2))
    assert not difference, f"the plan has changed; if it was meant to: {RENEW}\n{difference}"


def test_every_golden_plan_belongs_to_a_statement() -> None:
    assert {path.name for path in golden.FOLDER.glob("*.txt")} == {path_of(name).name for name in STATEMENTS}


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_with_a_golden_plan_has_duckdbs_answer(
    ours: gpudb.Connection, theirs: duckdb.DuckDBPyConnection, name: str
) -> None:
    sql = STATEMENTS[name]
    found, expected = ours.execute(sql).fetchall(), theirs.execute(sql).fetchall()
    if "ORDER BY" not in sql:
        found, expected = sorted(found, key=repr), sorted(expected, key=repr)
    assert len(found) == len(expected)
    for row, other in zip(found, expected, strict=True):
        close = [
            a == b or (isinstance(a, float) and a == pytest.approx(b, rel=1e-12))
            for a, b in zip(row, other, strict=True)
        ]
        assert all(close), f"{row}, not {other}"


FILTERED = "FROM flights WHERE arrdelay > 0 AND depdelay < 200 AND carrier_name <> 'Delta'"
GROUPED = f"SELECT origin_name, dest_state, flightnum % 50 AS k, count(*) AS c {FILTERED} GROUP BY ALL"


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize(
    ("sql", "counts"),
    [
        ("SELECT flightnum FROM flights", ["SELECT count(*) FROM flights"]),
        ("SELECT flightnum FROM flights WHERE arrdelay > 0", ["SELECT count(*) FROM flights WHERE arrdelay > 0"]),
        (f"SELECT flightnum {FILTERED}", [f"SELECT count(*) {FILTERED}"]),
        (f"SELECT flightnum {FILTERED} AND arrdelay > 5000", ["SELECT 0"]),
        (
            f"SELECT flightnum {FILTERED} ORDER BY flightnum",
            [f"SELECT count(*) {FILTERED}"] * 3,
        ),
        (
            f"SELECT f FROM (SELECT flightnum AS f, arrdelay AS a {FILTERED} LIMIT 100) WHERE a > 90",
            [
                f"SELECT count(*) {FILTERED}",
                "SELECT 100",
                f"SELECT count(*) FROM (SELECT arrdelay AS a {FILTERED} LIMIT 100) WHERE a > 90",
            ],
        ),
        (GROUPED, [None, f"SELECT count(*) FROM ({GROUPED})", f"SELECT count(*) FROM ({GROUPED})"]),
        (
            f"SELECT * FROM ({GROUPED}) WHERE c > 1",
            [None, f"SELECT count(*) FROM ({GROUPED})", f"SELECT count(*) FROM ({GROUPED}) WHERE c > 1"],
        ),
        (
            f"{GROUPED} HAVING k > 20",
            [None, f"SELECT count(*) FROM ({GROUPED}) WHERE k > 20", f"SELECT count(*) FROM ({GROUPED}) WHERE k > 20"],
        ),
        (f"SELECT sum(arrdelay), count(*) {FILTERED}", [None, "SELECT 1", "SELECT 1"]),
    ],
)
def test_explain_analyze_counts_the_rows_alive_after_each_step(
    ours: gpudb.Connection, theirs: duckdb.DuckDBPyConnection, sql: str, counts: list[str | None], device: str
) -> None:
    ours.execute(f"SET device = '{device}'")
    lines = ours.execute(f"EXPLAIN ANALYZE {sql}").fetchall()
    steps = [
        (rows, milliseconds) for step, line, _, _, rows, milliseconds in lines if step is not None and line is None
    ]
    expected = [None if count is None else theirs.execute(count).fetchall()[0][0] for count in counts]
    assert [rows for rows, _ in steps] == expected, (
        "rows after each step; a table of groups is counted once it is in order"
    )
    assert all(milliseconds >= 0 for _, milliseconds in steps)


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("rest", ["", " GROUP BY origin_name"])
def test_explain_analyze_counts_the_rows_that_pass_each_test_of_a_filter(
    ours: gpudb.Connection, theirs: duckdb.DuckDBPyConnection, rest: str, device: str
) -> None:
    ours.execute(f"SET device = '{device}'")
    lines = ours.execute(f"EXPLAIN ANALYZE SELECT origin_name {FILTERED}{rest}").fetchall()
    counted = [rows for step, line, _, _, rows, _ in lines if step == 0 and line is not None]
    conditions = [
        "arrdelay IS NOT NULL",
        "depdelay IS NOT NULL",
        "arrdelay > 0",
        "depdelay < 200",
        "carrier_name <> 'Delta'",
        "arrdelay > 0 AND depdelay < 200",
        "arrdelay > 0 AND depdelay < 200 AND carrier_name <> 'Delta'",
    ]
    expected = [theirs.execute(f"SELECT count(*) FROM flights WHERE {c}").fetchall()[0][0] for c in conditions]
    assert len(set(expected)) >= 6, "counts that differ say which test they belong to"
    assert set(expected) <= set(counted), dict(zip(conditions, expected, strict=True))
    places = [counted.index(rows) for rows in (expected[2], expected[5], expected[6])]
    assert places == sorted(places), "a row that fails one test passes none after it"
