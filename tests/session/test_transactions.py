"""Transactions of several connections: what each sees, who wins a conflict, and that DuckDB does the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import gpudb
from gpudb.errors import ConflictError, QueryCancelled, ReadOnlyError, TransactionError
from gpudb.session import Database, Session
from gpudb.storage import database as storage

SETUP = (
    "CREATE TABLE t (i INTEGER, s VARCHAR)",
    "INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three')",
    "CREATE TABLE u (i INTEGER)",
    "CREATE SCHEMA q",
    "CREATE VIEW doubled AS SELECT 2 * i AS d FROM t",
)


@pytest.fixture(params=["memory", "directory"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    made = Database(":memory:" if request.param == "memory" else str(tmp_path / "db"))
    session = Session(made)
    for statement in SETUP:
        session.execute(statement)
    yield made
    made.close()


def rows(session: Session, sql: str) -> list[tuple[Any, ...]]:
    table = session.execute(sql).table()
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def outcomes_of_duckdb(steps: list[tuple[str, str]]) -> list[object]:
    """What DuckDB's connections a and b return for statements of theirs in turn: rows, or the word error."""
    first = duckdb.connect()
    for statement in SETUP:
        first.execute(statement)
    cursors = {"a": first.cursor(), "b": first.cursor()}
    found: list[object] = []
    for who, sql in steps:
        try:
            rows = cursors[who].execute(sql).fetchall()
            found.append(rows if sql.startswith(("SELECT", "FROM")) else "done")
        except duckdb.Error:
            found.append("error")
    return found


def outcomes_of_gpudb(database: Database, steps: list[tuple[str, str]]) -> list[object]:
    sessions = {"a": Session(database), "b": Session(database)}
    found: list[object] = []
    for who, sql in steps:
        try:
            result = sessions[who].execute(sql)
            table = result.table()
            wanted = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
            found.append(wanted if sql.startswith(("SELECT", "FROM")) else "done")
        except gpudb.Error:
            found.append("error")
    for session in sessions.values():
        session.close()
    return found


def script(text: str) -> list[tuple[str, str]]:
    """`a: BEGIN; b: SELECT 1` as steps."""
    steps = []
    for step in text.split(";"):
        who, _, sql = step.strip().partition(": ")
        steps.append((who, sql))
    return steps


ALIKE = {
    "others see nothing before COMMIT": (
        "a: BEGIN; a: INSERT INTO t VALUES (4, 'four'); a: UPDATE t SET s = 'new'; a: CREATE TABLE x (i INTEGER);"
        "b: FROM t ORDER BY i; b: FROM x; a: FROM t ORDER BY i; a: COMMIT; b: FROM t ORDER BY i; b: FROM x"
    ),
    "others never see what was rolled back": (
        "a: BEGIN; a: DELETE FROM t; a: DROP TABLE u; a: ALTER TABLE t RENAME TO v; b: FROM t ORDER BY i; b: FROM u;"
        "a: FROM v; a: ROLLBACK; a: FROM t ORDER BY i; b: FROM t ORDER BY i; b: FROM u; a: FROM v"
    ),
    "the snapshot is that of the first statement that looks at a table": (
        "a: BEGIN; b: INSERT INTO t VALUES (4, 'four'); a: SELECT 1; b: INSERT INTO t VALUES (5, 'five');"
        "a: SELECT count(*) FROM t; b: INSERT INTO t VALUES (6, 'six'); b: CREATE TABLE x (i INTEGER);"
        "b: CREATE OR REPLACE TABLE u AS SELECT 'text' AS i; a: SELECT count(*) FROM t; a: SELECT count(*) FROM doubled;"
        "a: FROM u; a: COMMIT; a: SELECT count(*) FROM t; a: FROM u; a: FROM x"
    ),
    "a table that the snapshot lacks is not there": (
        "a: BEGIN; a: FROM u; b: CREATE TABLE x (i INTEGER); a: FROM x; a: COMMIT; a: FROM x"
    ),
    "a dropped table stays readable": (
        "a: BEGIN; a: SELECT count(*) FROM t; b: DROP TABLE t; a: SELECT sum(i) FROM t; a: COMMIT; a: FROM t"
    ),
    "one shape of query over tables that differ": (
        "a: SELECT max(i) AS m FROM u; a: BEGIN; a: DROP TABLE u; a: CREATE TABLE u AS SELECT 'text' AS i;"
        "a: SELECT max(i) AS m FROM u; b: SELECT max(i) AS m FROM u; a: INSERT INTO u VALUES ('z');"
        "a: SELECT max(i) AS m FROM u; a: ROLLBACK;"
        "a: SELECT max(i) AS m FROM u; b: SELECT max(i) AS m FROM u"
    ),
    "texts that only one of two branches of a column holds": (
        "a: BEGIN; a: SELECT count(*) FROM t; a: INSERT INTO t VALUES (7, 'mine');"
        "b: INSERT INTO t VALUES (8, 'theirs'); a: SELECT i FROM t WHERE s = 'theirs'; b: SELECT i FROM t WHERE s = 'mine';"
        "a: SELECT i, upper(s) AS w FROM t WHERE s LIKE '%i%' ORDER BY s; b: SELECT i, upper(s) AS w FROM t WHERE s LIKE '%i%' ORDER BY s;"
        "a: COMMIT; b: SELECT i, upper(s) AS w FROM t WHERE s LIKE '%i%' ORDER BY s; a: SELECT i FROM t WHERE s = 'theirs'"
    ),
    "two that add rows both keep them": (
        "a: BEGIN; b: BEGIN; a: SELECT count(*) FROM t; b: SELECT count(*) FROM t; a: INSERT INTO t VALUES (4, 'a');"
        "b: INSERT INTO t VALUES (5, 'b'); a: COMMIT; b: INSERT INTO t VALUES (6, 'b'); b: SELECT count(*) FROM t;"
        "b: COMMIT; a: FROM t"
    ),
    "rows added beside an update": (
        "a: BEGIN; b: BEGIN; a: SELECT count(*) FROM t; b: SELECT count(*) FROM t; a: UPDATE t SET i = i + 100;"
        "b: INSERT INTO t VALUES (5, 'b'); b: COMMIT; a: SELECT count(*) FROM t; a: COMMIT; a: FROM t ORDER BY i"
    ),
    "an update beside rows added": (
        "a: BEGIN; b: BEGIN; a: SELECT count(*) FROM t; b: SELECT count(*) FROM t; a: UPDATE t SET i = i + 100;"
        "b: INSERT INTO t VALUES (5, 'b'); a: COMMIT; b: SELECT count(*) FROM t; b: COMMIT; a: FROM t ORDER BY i"
    ),
    "rows added beside TRUNCATE": (
        "a: BEGIN; b: BEGIN; a: SELECT count(*) FROM t; b: SELECT count(*) FROM t; a: TRUNCATE t;"
        "b: INSERT INTO t VALUES (5, 'b'); a: COMMIT; b: COMMIT; a: FROM t"
    ),
    "the same row updated twice": (
        "a: BEGIN; b: BEGIN; a: SELECT count(*) FROM t; b: SELECT count(*) FROM t; a: UPDATE t SET s = 'a' WHERE i = 1;"
        "a: COMMIT; b: UPDATE t SET s = 'b' WHERE i = 1; b: SELECT 1; b: COMMIT; b: FROM t ORDER BY i"
    ),
    "the same row deleted twice": (
        "a: BEGIN; b: BEGIN; a: SELECT count(*) FROM t; b: SELECT count(*) FROM t; a: DELETE FROM t WHERE i = 1;"
        "a: COMMIT; b: DELETE FROM t WHERE i = 1; b: SELECT 1; b: ROLLBACK; b: FROM t ORDER BY i"
    ),
    "rows for a table that was dropped": (
        "a: BEGIN; b: BEGIN; a: SELECT count(*) FROM t; b: SELECT count(*) FROM t; a: DROP TABLE t;"
        "b: INSERT INTO t VALUES (5, 'b'); a: COMMIT; b: COMMIT; b: FROM t"
    ),
    "rows for a table that was made anew": (
        "a: BEGIN; b: BEGIN; a: FROM u; b: FROM u; a: CREATE OR REPLACE TABLE u (i INTEGER); b: INSERT INTO u VALUES (5);"
        "a: COMMIT; b: COMMIT; b: FROM u"
    ),
    "rows for a table that was altered": (
        "a: BEGIN; b: BEGIN; a: FROM u; b: FROM u; a: ALTER TABLE u ADD COLUMN j INTEGER; a: COMMIT;"
        "b: INSERT INTO u VALUES (5); b: COMMIT; b: FROM u"
    ),
    "a table made twice": (
        "a: BEGIN; b: BEGIN; a: FROM u; b: FROM u; a: CREATE TABLE x (i INTEGER); a: COMMIT;"
        "b: CREATE TABLE IF NOT EXISTS x (j INTEGER); b: COMMIT; b: FROM x"
    ),
    "a view made twice": (
        "a: BEGIN; b: BEGIN; a: FROM u; b: FROM u; a: CREATE VIEW x AS SELECT 1 AS a; a: COMMIT;"
        "b: CREATE OR REPLACE VIEW x AS SELECT 2 AS a; b: COMMIT; b: FROM x"
    ),
    "a table made in a schema that is dropped": (
        "a: BEGIN; b: BEGIN; a: FROM u; b: FROM u; a: DROP SCHEMA q; b: CREATE TABLE q.x (i INTEGER); a: COMMIT;"
        "b: COMMIT; a: SELECT 1; b: FROM q.x"
    ),
    "a schema dropped when a table has been made in it": (
        "a: BEGIN; b: BEGIN; a: FROM u; b: FROM u; a: CREATE TABLE q.x (i INTEGER); b: DROP SCHEMA q; a: COMMIT;"
        "b: COMMIT; a: FROM q.x; b: FROM q.x"
    ),
    "changes of different tables": (
        "a: BEGIN; b: BEGIN; a: FROM u; b: FROM u; a: UPDATE t SET i = -i; b: INSERT INTO u VALUES (1); b: DELETE FROM u;"
        "b: INSERT INTO u VALUES (2); a: COMMIT; b: FROM t ORDER BY i; b: COMMIT; b: FROM t ORDER BY i; b: FROM u"
    ),
    "a transaction that changed nothing": "a: BEGIN; a: FROM u; a: DELETE FROM t WHERE i > 9; a: COMMIT; a: FROM t ORDER BY i",
    "an error in another connection's statement": (
        "a: BEGIN; a: INSERT INTO u VALUES (1); b: SELECT nothing FROM u; a: FROM u; a: COMMIT; b: FROM u"
    ),
}


@pytest.mark.parametrize("name", ALIKE)
def test_steps_of_two_connections_end_as_in_duckdb(name: str, database: Database) -> None:
    steps = script(ALIKE[name])
    found, expected = outcomes_of_gpudb(database, steps), outcomes_of_duckdb(steps)
    for step, mine, theirs in zip(steps, found, expected, strict=True):
        assert mine == theirs, f"{step}: {mine}, DuckDB: {theirs}"


def test_a_conflict_of_rows_that_differ_is_one_all_the_same_and_says_what_to_do(database: Database) -> None:
    """DuckDB compares rows; here a table is what two transactions may not both change."""
    one, other = Session(database), Session(database)
    for session in (one, other):
        session.execute("BEGIN")
        session.execute("SELECT count(*) FROM t")
    one.execute("UPDATE t SET s = 'one' WHERE i = 1")
    other.execute("UPDATE t SET s = 'other' WHERE i = 2")
    other.execute("INSERT INTO u VALUES (1)")
    one.execute("COMMIT")
    with pytest.raises(ConflictError, match="committed first: t\nhint: ROLLBACK, and run the transaction again"):
        other.execute("COMMIT")
    assert other.transaction is None, "a COMMIT that failed has ended the transaction"
    assert rows(other, "FROM u") == [], "nothing of it is kept"
    assert rows(other, "SELECT s FROM t ORDER BY i") == [("one",), ("two",), ("three",)]
    assert issubclass(ConflictError, TransactionError) and issubclass(ConflictError, gpudb.OperationalError)


def test_a_statement_on_its_own_that_commits_first_wins_over_a_transaction(database: Database) -> None:
    one, other = Session(database), Session(database)
    one.execute("BEGIN")
    one.execute("UPDATE t SET i = 10 WHERE i = 1")
    other.execute("DELETE FROM t WHERE i = 3")
    with pytest.raises(ConflictError):
        one.execute("COMMIT")
    assert rows(one, "SELECT i FROM t ORDER BY i") == [(1,), (2,)]


def test_tables_of_a_commit_appear_together_to_readers_on_other_threads(database: Database) -> None:
    writer = Session(database)
    done = threading.Event()
    torn: list[object] = []

    def read() -> None:
        reader = Session(database)
        while not done.is_set():
            counts = rows(reader, "SELECT (SELECT count(*) FROM t) - 3 AS a, (SELECT count(*) FROM u) AS b")
            if counts[0][0] != counts[0][1]:
                torn.append(counts)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(20):
        writer.execute("BEGIN")
        writer.execute(f"INSERT INTO t VALUES ({number}, 'row {number}')")
        writer.execute(f"INSERT INTO u VALUES ({number})")
        writer.execute("COMMIT" if number % 3 else "ROLLBACK")
    done.set()
    reader.join()
    assert torn == []
    assert rows(writer, "SELECT count(*) FROM u") == [(13,)]


def test_transactions_of_many_threads_that_add_rows_all_keep_them(database: Database) -> None:
    failures: list[BaseException] = []

    def write(number: int) -> None:
        session = Session(database)
        try:
            for step in range(5):
                session.execute("BEGIN")
                session.execute(f"INSERT INTO t VALUES ({number}, 'step {step}')")
                session.execute(f"INSERT INTO u SELECT {number} FROM range(3)")
                session.execute("COMMIT")
        except gpudb.Error as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    session = Session(database)
    assert rows(session, "SELECT count(*), count(DISTINCT s) FROM t WHERE s LIKE 'step%'") == [(20, 5)]
    assert rows(session, "SELECT i, count(*) FROM u GROUP BY i ORDER BY i") == [(number, 15) for number in range(4)]


def test_a_result_that_is_being_read_outlives_its_transaction(database: Database) -> None:
    session = Session(database)
    session.execute("BEGIN")
    session.execute("UPDATE t SET i = 10 * i")
    result = session.execute("SELECT i FROM t ORDER BY i")
    session.execute("ROLLBACK")
    assert [value for batch in result.batches() for value in batch.column(0).to_pylist()] == [10, 20, 30]


def test_a_closed_session_rolls_back(database: Database) -> None:
    session = Session(database)
    session.execute("BEGIN")
    session.execute("DELETE FROM t")
    session.close()
    assert session.transaction is None
    assert rows(Session(database), "SELECT count(*) FROM t") == [(3,)]


def test_commit_of_an_aborted_transaction_keeps_nothing_and_logs_it(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    session = Session(database)
    session.execute("BEGIN")
    session.execute("DELETE FROM t")
    with pytest.raises(gpudb.DataError):
        session.execute("SELECT CAST(s AS INTEGER) FROM t UNION ALL SELECT CAST('x' AS INTEGER)")
    session.execute("COMMIT")
    assert "rolled back" in caplog.text
    assert rows(session, "SELECT count(*) FROM t") == [(3,)]


def test_metadata_of_a_session_are_those_of_its_transaction(database: Database) -> None:
    session, other = Session(database), Session(database)
    session.execute("BEGIN")
    session.execute("CREATE TABLE made (a INTEGER DEFAULT 3)")
    session.execute("ALTER TABLE u ADD COLUMN j VARCHAR")
    assert "made" in session.tables() and "made" not in other.tables()
    assert [name for name, _ in session.columns("u")] == ["i", "j"]
    assert [name for name, _ in other.columns("u")] == ["i"]
    assert session.defaults("made") == {"a": "3"}


def test_a_database_open_for_reading_has_transactions_that_keep_its_version(tmp_path: Path) -> None:
    with storage.Database(tmp_path / "db"):
        pass
    writer = Session(Database(str(tmp_path / "db")))
    writer.execute("CREATE TABLE t AS SELECT 1 AS i")
    reader = Session(Database(str(tmp_path / "db"), read_only=True))
    reader.execute("BEGIN")
    assert rows(reader, "FROM t") == [(1,)]
    writer.execute("BEGIN")
    writer.execute("UPDATE t SET i = 2")
    writer.execute("COMMIT")
    assert rows(reader, "FROM t") == [(1,)]
    with pytest.raises(ReadOnlyError):
        reader.execute("INSERT INTO t VALUES (3)")
    reader.execute("ROLLBACK")
    assert rows(reader, "FROM t") == [(2,)]
    for session in (reader, writer):
        session.close()
        session.database.close()


def test_a_statement_that_runs_out_of_time_aborts_its_transaction() -> None:
    session = Session(Database())
    session.execute("CREATE TABLE t AS SELECT range AS i FROM range(3000000)")
    session.execute("SET statement_timeout = 0.05")
    session.execute("BEGIN")
    with pytest.raises(QueryCancelled):
        session.execute("SELECT count(*) FROM t AS a JOIN t AS b ON a.i % 1000 = b.i % 1000")
    with pytest.raises(TransactionError, match="aborted"):
        session.execute("SELECT 1")
    session.execute("ROLLBACK")
    assert rows(session, "SELECT 1 AS a") == [(1,)]


def test_closing_a_session_stops_what_its_transaction_still_runs() -> None:
    database = Database()
    session = Session(database)
    session.execute("CREATE TABLE t AS SELECT range AS i FROM range(3000000)")
    session.execute("BEGIN")
    session.execute("DELETE FROM t WHERE i < 10")
    outcome: list[object] = []

    def count() -> None:
        try:
            outcome.append(session.execute("SELECT count(*) FROM t AS a JOIN t AS b ON a.i % 100 = b.i % 100"))
        except gpudb.Error as error:
            outcome.append(error)

    thread = threading.Thread(target=count)
    thread.start()
    while session.progress() is None and thread.is_alive():
        thread.join(0.01)
    session.close()
    thread.join()
    assert isinstance(outcome[0], QueryCancelled)
    assert rows(Session(database), "SELECT count(*) FROM t") == [(3_000_000,)]


def test_no_update_is_lost_among_threads_that_run_a_conflicting_transaction_again(database: Database) -> None:
    session = Session(database)
    session.execute("CREATE TABLE counter AS SELECT 0 AS n")

    def count(number: int) -> None:
        mine = Session(database)
        done = 0
        while done < 5:
            mine.execute("BEGIN")
            try:
                mine.execute(f"INSERT INTO u VALUES ({number * 100 + done})")
                mine.execute("UPDATE counter SET n = n + 1")
                mine.execute("COMMIT")
                done += 1
            except ConflictError:
                if mine.transaction is not None:  # the UPDATE failed, not COMMIT
                    mine.execute("ROLLBACK")

    threads = [threading.Thread(target=count, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows(session, "SELECT n, (SELECT count(DISTINCT i) FROM u), (SELECT count(*) FROM u) FROM counter") == [
        (15, 15, 15)
    ]


def test_parameters_that_are_none_abort_nothing() -> None:
    with gpudb.connect() as connection, duckdb.connect() as oracle:
        for one in (connection, oracle):
            one.begin()
            one.execute("CREATE TABLE t (a INTEGER)")
            for bad in ([object()], [2**200]):
                with pytest.raises(Exception, match=r"type|integer"):
                    one.execute("SELECT ?", bad)
            one.execute("INSERT INTO t VALUES (1)")
            one.commit()
            assert one.execute("SELECT * FROM t").fetchall() == [(1,)]
