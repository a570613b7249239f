"""A recursion that does not end is stopped: by cancel, by a time-out, by the number of its rounds."""

from __future__ import annotations

import threading

import pytest

import gpudb
from gpudb.vm import recursion

ENDLESS = "WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT n % 5 + 1 FROM x) SELECT count(*) FROM x"


@pytest.fixture(params=["cpu", "reference"])
def connection(request: pytest.FixtureRequest) -> gpudb.Connection:
    opened = gpudb.connect()
    opened.execute(f"SET device = '{request.param}'")
    return opened


def test_it_is_cancelled(connection: gpudb.Connection) -> None:
    timer = threading.Timer(0.5, connection.session.cancel)
    timer.start()
    with pytest.raises(gpudb.OperationalError, match="cancelled"):
        connection.execute(ENDLESS)


def test_it_times_out(connection: gpudb.Connection) -> None:
    connection.execute("SET statement_timeout = 0.5")
    with pytest.raises(gpudb.OperationalError, match="timed out"):
        connection.execute(ENDLESS)


def test_its_rounds_are_limited(connection: gpudb.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recursion, "MOST_ROUNDS", 50)
    with pytest.raises(gpudb.OperationalError, match="not come to an end after 50 rounds"):
        connection.execute(ENDLESS)
    found = connection.execute(
        "WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM x WHERE n < 50) SELECT max(n) FROM x"
    )
    assert found.fetchone() == (50,)


def test_a_table_s_dictionary_stays_as_it_is(connection: gpudb.Connection) -> None:
    connection.execute("CREATE TABLE t AS SELECT 'a' AS s")
    before = connection.session.database.storage.snapshot()["t"].dictionaries[0]
    sql = "WITH RECURSIVE x AS (SELECT s FROM t UNION ALL SELECT s || 'b' FROM x WHERE length(s) < 4) SELECT s FROM x"
    for _ in range(2):
        assert connection.execute(sql).fetchall() == [("a",), ("ab",), ("abb",), ("abbb",)]
    assert before is not None and before.values.to_pylist() == ["a"]
    connection.execute("INSERT INTO t VALUES ('z')")
    assert connection.execute("SELECT s FROM t").fetchall() == [("a",), ("z",)]
