"""Constraints between transactions, on disk, over tables of many row groups, and what asking for them costs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import gpudb
from gpudb.errors import ConflictError, IntegrityError
from gpudb.session import Database, Session
from gpudb.storage import database as storage
from tests.storage.faulty import Dying, Killed, Unsynced

SETUP = "CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR UNIQUE, n INTEGER NOT NULL CHECK (n >= 0))"


@pytest.fixture(params=["memory", "directory"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    made = Database(":memory:" if request.param == "memory" else str(tmp_path / "db"))
    session = Session(made)
    session.execute(SETUP)
    session.execute("INSERT INTO t VALUES (1, 'one', 1), (2, 'two', 2)")
    yield made
    made.close()


def rows(session: Session, sql: str) -> list[tuple[Any, ...]]:
    table = session.execute(sql).table()
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def both(database: Database, first: str, second: str) -> tuple[Session, Session]:
    """Two open transactions that have run a statement each."""
    one, other = Session(database), Session(database)
    for session, sql in ((one, first), (other, second)):
        session.begin()
        session.execute(sql)
    return one, other


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("INSERT INTO t VALUES (7, 'x', 1)", "INSERT INTO t VALUES (7, 'y', 1)"),
        ("INSERT INTO t VALUES (7, 'x', 1)", "INSERT INTO t VALUES (8, 'x', 1)"),
        ("INSERT INTO t VALUES (7, 'x', 1)", "UPDATE t SET id = id + 5"),
        ("UPDATE t SET name = name || '!'", "INSERT INTO t VALUES (9, 'one!', 1)"),
    ],
)
def test_of_two_transactions_that_make_one_key_the_second_fails_as_it_commits(
    database: Database, first: str, second: str
) -> None:
    one, other = both(database, first, second)
    one.commit()
    kept = rows(one, "SELECT * FROM t ORDER BY id")
    with pytest.raises(IntegrityError, match="duplicate key"):
        other.commit()
    assert rows(other, "SELECT * FROM t ORDER BY id") == kept
    other.execute("INSERT INTO t VALUES (100, 'hundred', 1)")


def test_transactions_that_make_other_keys_both_commit(database: Database) -> None:
    one, other = both(database, "INSERT INTO t VALUES (7, 'x', 1)", "INSERT INTO t VALUES (8, 'y', 1)")
    one.commit()
    other.commit()
    assert rows(one, "SELECT id FROM t") == [(1,), (2,), (7,), (8,)]


def test_a_key_that_was_deleted_can_be_made_again_in_the_same_transaction(database: Database) -> None:
    session = Session(database)
    session.begin()
    session.execute("DELETE FROM t WHERE id = 1")
    session.execute("INSERT INTO t VALUES (1, 'uno', 1)")
    session.commit()
    assert rows(session, "SELECT name FROM t ORDER BY id") == [("uno",), ("two",)]


def test_a_statement_that_breaks_a_constraint_leaves_no_row_and_ends_its_transaction(database: Database) -> None:
    session = Session(database)
    session.begin()
    session.execute("INSERT INTO t VALUES (3, 'three', 3)")
    with pytest.raises(IntegrityError, match="CHECK constraint failed: t_n_check of table t"):
        session.execute("INSERT INTO t VALUES (4, 'four', 4), (5, 'five', -5)")
    session.rollback()
    assert rows(session, "SELECT count(*) FROM t") == [(2,)]


@pytest.mark.parametrize("alter", ["ALTER COLUMN name SET NOT NULL", "ADD UNIQUE (n)"])
def test_a_constraint_that_is_made_while_others_add_rows_is_a_conflict(database: Database, alter: str) -> None:
    one, other = both(database, f"ALTER TABLE t {alter}", "INSERT INTO t VALUES (9, NULL, 1)")
    one.commit()
    with pytest.raises(ConflictError):
        other.commit()


def test_rows_that_a_client_ingests_are_checked(database: Database) -> None:
    from gpudb.ingest import Target, ingest

    session = Session(database)
    batch = pa.record_batch({"id": [5, 6, 5], "name": ["a", "b", "c"], "n": [1, 1, 1]})
    with pytest.raises(IntegrityError, match="duplicate key: id: 5, row 3"):
        ingest(session, Target("t", "fail", "append"), batch.schema, iter([batch]))
    assert ingest(session, Target("t", "fail", "append"), batch.schema, iter([batch.slice(0, 2)])) == 2
    assert ingest(session, Target("t", "fail", "replace"), batch.schema, iter([batch])) == 3  # a new table, without any
    assert rows(session, "SELECT constraint_name FROM duckdb_constraints()") == []


def test_constraints_are_there_after_the_database_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with gpudb.connect(path) as connection:
        connection.execute(SETUP)
        connection.execute("INSERT INTO t VALUES (1, 'one', 1)")
        connection.execute("ALTER TABLE t RENAME COLUMN n TO number")
        connection.execute("ALTER TABLE t RENAME TO u")
        (sql,) = connection.execute("SELECT sql FROM duckdb_tables()").fetchone()
    with gpudb.connect(path) as connection:
        assert connection.execute("SELECT sql FROM duckdb_tables()").fetchone() == (sql,)
        for row, message in (
            ("1, 'x', 1", "PRIMARY KEY constraint failed: u_id_pkey of table u, duplicate key: id: 1"),
            ("2, 'one', 1", "UNIQUE constraint failed: u_name_key of table u, duplicate key: name: one"),
            ("2, 'x', NULL", "NOT NULL constraint failed: u.number"),
            ("2, 'x', -1", r"CHECK constraint failed: u_number_check of table u, CHECK\(\(number >= 0\)\): number: -1"),
        ):
            with pytest.raises(IntegrityError, match=message):
                connection.execute(f"INSERT INTO u VALUES ({row})")
        connection.execute("DROP TABLE u")
        connection.execute("CREATE TABLE u (id INTEGER)")
    with gpudb.connect(path) as connection:
        assert connection.execute("SELECT * FROM duckdb_constraints()").fetchall() == []


def test_a_kill_at_any_moment_leaves_a_table_with_its_constraints_or_none(tmp_path: Path) -> None:
    steps = (
        SETUP,
        "INSERT INTO t VALUES (1, 'one', 1)",
        "ALTER TABLE t ADD UNIQUE (n)",
        "INSERT INTO t VALUES (2, 'x', 5)",
    )
    for moment in range(1, 40):
        path = str(tmp_path / f"db{moment}")
        files = Dying()
        done = 0
        database = Database(":memory:")
        try:
            database.storage = storage.Database(path, file_system=files)
            files.left = moment
            session = Session(database)
            for step in steps:
                session.execute(step)
                done += 1
        except Killed:
            pass
        database.storage.close()
        again = Database(":memory:")
        again.storage = storage.Database(path, file_system=Unsynced())
        found = rows(Session(again), "SELECT constraint_type, constraint_text FROM duckdb_constraints() ORDER BY 1, 2")
        keys = [text for kind, text in found if kind == "UNIQUE"]
        assert keys in ([], ['UNIQUE("name")'], ['UNIQUE("name")', "UNIQUE(n)"])
        assert len(keys) >= (0, 1, 1, 2, 2)[done]
        if keys:
            with pytest.raises(IntegrityError):
                Session(again).execute("INSERT INTO t VALUES (50, 'a', 1), (51, 'a', 2)")
        again.close()
        if done == len(steps):
            return
    raise AssertionError("every moment was one in which the writer died")


def test_keys_are_looked_for_in_all_row_groups() -> None:
    session = Session(Database())
    session.execute("CREATE TABLE big (id BIGINT PRIMARY KEY, word VARCHAR UNIQUE)")
    session.execute("INSERT INTO big SELECT range, 'w' || range FROM range(140000)")
    session.execute("INSERT INTO big SELECT range, 'w' || range FROM range(200000, 270000)")
    for id_, word in (
        (0, "new"),
        (69_999, "new"),
        (139_999, "new"),
        (269_999, "new"),
        (150_000, "w7"),
        (-1, "w269999"),
    ):
        with pytest.raises(IntegrityError, match=r"duplicate key: .*, row 2"):
            session.execute(f"INSERT INTO big VALUES (1000000, 'million'), ({id_}, '{word}')")
    session.execute("INSERT INTO big VALUES (150000, 'w150000')")
    session.execute("UPDATE big SET id = -id WHERE id > 0")
    with pytest.raises(IntegrityError, match="duplicate key: id: -7"):
        session.execute("UPDATE big SET id = -7 WHERE word = 'w210000'")
    assert rows(session, "SELECT count(*), count(DISTINCT id) FROM big") == [(210_001, 210_001)]


def test_a_new_greatest_key_is_added_without_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(Database())
    session.execute("CREATE TABLE log (id BIGINT PRIMARY KEY, word VARCHAR UNIQUE)")
    session.execute("INSERT INTO log SELECT range, 'w' || range FROM range(1000)")
    asked: list[object] = []
    original = Session.query_batches

    def counted(self: Session, *arguments: Any) -> Any:
        asked.append(arguments)
        return original(self, *arguments)

    monkeypatch.setattr(Session, "query_batches", counted)
    session.execute("INSERT INTO log VALUES (1000, 'w1000')")
    assert len(asked) == 1  # the rows of VALUES
    with pytest.raises(IntegrityError):
        session.execute("INSERT INTO log VALUES (1000, 'w1001')")


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("HUGEINT", ("170141183460469231731687303715884105727", "-5", "1")),
        ("DECIMAL(38,4)", ("1234567890123456789012345.5", "2.5", "3")),
        ("TIME", ("'10:00:00'", "'11:00:00'", "'12:00:00'")),
        ("TIMESTAMPTZ", ("'2020-01-01 00:00:00+00'", "'2020-01-02 00:00:00+00'", "'2020-01-03 00:00:00+00'")),
        ("TIMESTAMP", ("'2020-01-01'", "'2020-01-02'", "'2020-01-03'")),
        ("REAL", ("1.5", "'nan'", "'-inf'")),
        ("BOOLEAN", ("true", "false", "NULL")),
    ],
)
def test_keys_may_be_of_any_type(kind: str, values: tuple[str, str, str]) -> None:
    first, second, third = values
    session = Session(Database())
    session.execute(f"CREATE TABLE t (k {kind} UNIQUE, n INTEGER)")
    session.execute(f"INSERT INTO t VALUES ({first}, 1), ({second}, 2)")
    session.execute(f"INSERT INTO t VALUES ({third}, 3)")
    for refused in (f"INSERT INTO t VALUES ({first}, 4)", f"UPDATE t SET k = {second} WHERE n = 1"):
        with pytest.raises(IntegrityError, match="duplicate key: k: "):
            session.execute(refused)
    session.execute(f"INSERT INTO t VALUES ({second}, 4) ON CONFLICT DO UPDATE SET n = excluded.n")
    session.execute("MERGE INTO t USING t AS s ON t.k = s.k WHEN MATCHED THEN UPDATE SET n = s.n + 1, k = s.k")
    assert sorted(n for (n,) in rows(session, "SELECT n FROM t")) == [2, 4 - (third == "NULL"), 5]
