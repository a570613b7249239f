"""Expressions of literals are computed once an execution: with other literals too, and rows still decide what fails."""

from __future__ import annotations

from typing import Any

import pytest

import gpudb
from gpudb.errors import Error

duckdb = pytest.importorskip("duckdb")

ROWS = "(VALUES (1, DATE '2020-02-28', 0.5), (2, DATE '2020-02-29', 1.25), (NULL, NULL, NULL), (40, DATE '2021-01-01', 9.75))"


@pytest.fixture
def connections() -> tuple[gpudb.Connection, Any]:
    ours, theirs = gpudb.connect(), duckdb.connect()
    for connection in (ours, theirs):
        connection.execute(f"CREATE TABLE t AS SELECT * FROM {ROWS} AS v(i, d, x)")
        connection.execute("CREATE TABLE nobody AS SELECT * FROM t WHERE i = 3")
    return ours, theirs


SHAPES = {
    "date and interval": ("SELECT count(*) FROM t WHERE d < DATE '{}' + INTERVAL '{}' DAY", [("2020-02-27", 1), ("2020-02-28", 2), ("1999-12-31", 0)]),
    "decimals": ("SELECT i FROM t WHERE x BETWEEN {} - 0.01 AND {} + 0.01", [("0.51", "1.24"), ("9.76", "9.74"), ("0.50", "0.50")]),
    "integers": ("SELECT i + ({} + {}) * 2 AS j FROM t WHERE i < {} * {}", [(1, 2, 3, 4), (100, 27, 20, 2), (5, 5, 0, 9)]),
    "NULL for some": ("SELECT i FROM t WHERE i > {} / {} OR i = 40", [(9, 5), (9, 0), (0, 0), (4, 2)]),
    "conditions": ("SELECT i FROM t WHERE {} < {} AND i > 1", [(1, 2), (2, 1), (5, 5)]),
    "group keys": ("SELECT i // ({} + {}) AS k, count(*) FROM t GROUP BY k ORDER BY k", [(1, 1), (3, 4), (20, 20)]),
    "functions": ("SELECT i FROM t WHERE i >= abs({} - {}) AND x < sqrt({}::DOUBLE)", [(3, 5, 2), (9, 5, 100), (1, 1, 0)]),
    "in a text": ("SELECT CAST({} + {} AS VARCHAR) || 'x' AS a FROM t", [(1, 2), (50, 60)]),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_other_literals_give_their_own_answer_from_the_kept_plan(
    connections: tuple[gpudb.Connection, Any], name: str
) -> None:
    shape, literals = SHAPES[name]
    for number, values in enumerate([*literals, *literals]):
        sql = shape.format(*values)
        ours = connections[0].execute(sql)
        assert ours.fetchall() == connections[1].execute(sql).fetchall(), sql
        if number >= len(literals):
            assert ours.receipt["plan_cached"], sql


def test_an_expression_that_fails_fails_where_a_row_needs_it(connections: tuple[gpudb.Connection, Any]) -> None:
    shape = "SELECT i + ({} + 1) AS j FROM {}"
    for table, fails in (("nobody", False), ("t", True)):
        sql = shape.format("CAST('x' || '1' AS INTEGER)", table)
        if fails:
            with pytest.raises(Error):
                connections[0].execute(sql).fetchall()
        else:
            assert connections[0].execute(sql).fetchall() == []


def test_a_kept_plan_meets_a_literal_that_fails(connections: tuple[gpudb.Connection, Any]) -> None:
    shape = "SELECT count(*) FROM t WHERE d < DATE '2020-01-01' + INTERVAL '{}' YEAR"
    assert connections[0].execute(shape.format("1")).fetchall() == connections[1].execute(shape.format("1")).fetchall()
    with pytest.raises(Error):
        connections[0].execute(shape.format("999999")).fetchall()
    assert connections[0].execute(shape.format("1")).fetchall() == connections[1].execute(shape.format("1")).fetchall()


def test_a_range_that_ends_in_an_expression_skips_row_groups(connections: tuple[gpudb.Connection, Any]) -> None:
    connections[0].execute("CREATE TABLE days AS SELECT DATE '2000-01-01' + i::INTEGER AS d FROM range(100000) t(i)")
    result = connections[0].execute("SELECT count(*) FROM days WHERE d >= DATE '2400-01-01' + 0 * 3")
    assert result.fetchall() == [(0,)]
    assert result.receipt["tiles_skipped"] > 0
