"""Sequences between connections, transactions and runs of the program: no number is given out twice."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import gpudb
from gpudb.errors import NotSupportedError, ReadOnlyError, TransactionError
from gpudb.session import Database, Session


def value(session: Session, sql: str) -> object:
    return session.execute(sql).table().column(0)[0].as_py()


def test_numbers_go_on_after_the_database_is_opened_again(tmp_path: Path) -> None:
    with gpudb.connect(tmp_path / "db") as connection:
        connection.execute("CREATE SEQUENCE q START 5")
        connection.execute("CREATE TABLE t (id INTEGER DEFAULT nextval('q'), x INTEGER)")
        connection.execute("INSERT INTO t (x) VALUES (1), (2)")
        assert connection.execute("SELECT nextval('q')").fetchone() == (7,)
    with gpudb.connect(tmp_path / "db") as connection:
        connection.execute("INSERT INTO t (x) SELECT range FROM range(3)")
        assert connection.execute("SELECT id FROM t").fetchall() == [(5,), (6,), (8,), (9,), (10,)]
        assert connection.execute("SELECT currval('q')").fetchone() == (10,)
    with (
        gpudb.connect(tmp_path / "db", read_only=True) as connection,
        pytest.raises(ReadOnlyError),
    ):
        connection.execute("SELECT nextval('q')")


def test_a_number_that_was_drawn_in_a_transaction_is_gone_when_that_is_rolled_back() -> None:
    database = Database()
    one, other = Session(database), Session(database)
    one.execute("CREATE SEQUENCE q")
    one.execute("CREATE TABLE t (id INTEGER DEFAULT nextval('q') PRIMARY KEY, x INTEGER)")
    for session in (one, other):
        session.begin()
        session.execute("INSERT INTO t (x) VALUES (1), (2)")
    assert value(Session(database), "SELECT nextval('q')") == 5
    one.rollback()
    other.commit()
    assert other.execute("SELECT id FROM t").table().column(0).to_pylist() == [3, 4]
    one.begin(read_only=True)
    with pytest.raises(TransactionError, match="READ ONLY"):
        one.execute("SELECT nextval('q')")


def test_a_sequence_that_a_transaction_makes_is_its_own_until_it_commits() -> None:
    database = Database()
    session = Session(database)
    session.begin()
    session.execute("CREATE SEQUENCE q")
    session.execute("CREATE TABLE t (id INTEGER DEFAULT nextval('q'), x INTEGER)")
    session.execute("INSERT INTO t (x) VALUES (1), (2)")
    assert value(session, "SELECT nextval('q')") == 3
    session.commit()
    assert value(Session(database), "SELECT nextval('q')") == 4


def test_sessions_in_threads_get_other_numbers() -> None:
    database = Database()
    Session(database).execute("CREATE SEQUENCE q")
    Session(database).execute("CREATE TABLE t (id INTEGER DEFAULT nextval('q') PRIMARY KEY, x INTEGER)")

    def insert() -> None:
        session = Session(database)
        for _ in range(10):
            session.execute("INSERT INTO t (x) VALUES (1), (2)")

    threads = [threading.Thread(target=insert) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Session(database).execute("SELECT id FROM t ORDER BY id").table().column(0).to_pylist() == list(range(1, 61))


def test_asking_what_a_statement_gives_draws_nothing() -> None:
    session = Session(Database())
    session.execute("CREATE SEQUENCE q")
    session.execute("CREATE TABLE t (id INTEGER DEFAULT nextval('q'), x INTEGER)")
    assert session.describe("SELECT nextval('q') AS n").schema.names == ["n"]
    session.describe("INSERT INTO t (x) SELECT range FROM range(3) RETURNING id")
    session.execute("EXPLAIN SELECT nextval('q')").table()
    session.execute("EXPLAIN INSERT INTO t (x) SELECT range FROM range(3)").table()
    assert [value(session, "SELECT nextval('q')") for _ in range(3)] == [1, 2, 3]


def test_rows_of_an_upsert_get_numbers() -> None:
    session = Session(Database())
    session.execute("CREATE SEQUENCE q")
    session.execute("CREATE TABLE t (id INTEGER DEFAULT nextval('q'), x INTEGER PRIMARY KEY)")
    session.execute("INSERT INTO t (x) VALUES (7), (8)")
    session.execute("INSERT INTO t (x) VALUES (8), (9) ON CONFLICT (x) DO UPDATE SET id = excluded.id + 100")
    assert sorted(zip(*session.execute("SELECT x, id FROM t").table().to_pydict().values(), strict=True)) == [
        (7, 1),
        (8, 103),
        (9, 4),
    ]
    assert value(session, "SELECT nextval('q')") == 5


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT nextval('q') FROM t",
        "SELECT * FROM t WHERE x < nextval('q')",
        "CREATE VIEW v AS SELECT nextval('q') AS n",
        "UPDATE t SET id = DEFAULT",
        "ALTER TABLE t ADD COLUMN more INTEGER DEFAULT nextval('q')",
        "CREATE TABLE u (id INTEGER DEFAULT nextval('q') + 1)",
        "SELECT nextval(x) FROM t",
        "MERGE INTO t USING (VALUES (1)) AS s(x) ON t.x = s.x WHEN NOT MATCHED THEN INSERT (x) VALUES (s.x)",
    ],
)
def test_what_has_one_value_for_several_rows_is_refused(sql: str) -> None:
    session = Session(Database())
    session.execute("CREATE SEQUENCE q")
    session.execute("CREATE TABLE t (id INTEGER DEFAULT nextval('q'), x INTEGER)")
    with pytest.raises(NotSupportedError):
        session.execute(sql)
