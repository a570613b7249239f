"""Lists, rows that come several times, and aggregates over frames on `lanes`: nothing of them rests on one thread a block."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import gpudb
from tests.sql.test_random_joins import OneDevice, lanes

TABLE = """CREATE TABLE n AS SELECT range AS id, range * 5 % 7 AS k, CASE WHEN range % 4 < 3 THEN range * 7 % 11 END AS v,
CASE range % 3 WHEN 0 THEN 'a' WHEN 1 THEN 'b' END AS s FROM range(300)"""
STATEMENTS = [
    "SELECT id, unnest(range(k)) AS i, unnest([v, id]) AS j FROM n",
    "SELECT k, array_agg(v ORDER BY id DESC) AS l, array_agg(s) AS t, max(v, 3) AS m FROM n GROUP BY k",
    "SELECT l[2] AS x, len(l) AS c, list_contains(l, 3) AS h FROM (SELECT [k, v, id] AS l FROM n)",
    "SELECT l, count(*) AS c FROM (SELECT [k, v] AS l FROM n) GROUP BY l",
    "SELECT sum(y) AS s FROM n, unnest([k, v, NULL]) AS u(y)",
    "SELECT id, median(v) OVER (PARTITION BY k ORDER BY id ROWS 3 PRECEDING) AS m FROM n",
    "SELECT id, count(DISTINCT s) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) AS c FROM n",
]


@pytest.fixture(scope="module")
def connection() -> Iterator[gpudb.Connection]:
    with gpudb.connect() as connection:
        connection.session.database.devices = OneDevice(lanes())  # type: ignore[union-attr, assignment]  # embedded; a test
        connection.execute(TABLE)
        yield connection


@pytest.mark.parametrize("sql", STATEMENTS)
def test_lanes_give_what_the_oracle_gives(connection: gpudb.Connection, sql: str) -> None:
    oracle = duckdb.connect()
    oracle.execute(TABLE)
    assert sorted(map(repr, connection.execute(sql).fetchall())) == sorted(map(repr, oracle.sql(sql).fetchall()))
