"""Threads that share a connection, each with a cursor of its own (threadsafety 2)."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import gpudb

ROWS = 100_000


@pytest.fixture
def connection():
    with gpudb.connect() as connection:
        connection.register("source", pa.table({"a": range(ROWS), "g": [i % 7 for i in range(ROWS)]}))
        connection.execute("CREATE TABLE t AS SELECT * FROM source")
        yield connection


def test_cursors_of_one_connection_answer_rightly_in_eight_threads(connection):
    def ask(thread: int) -> list[tuple[int, int]]:
        cursor = connection.cursor()
        answers = []
        for group in range(7):
            cursor.execute("SELECT sum(a), count(*) FROM t WHERE g = ? AND a >= ?", [group, thread])
            answers += cursor.fetchall()
        return answers

    with ThreadPoolExecutor(8) as pool:
        for thread, answers in enumerate(pool.map(ask, range(8))):
            for group, (total, count) in enumerate(answers):
                values = range(group, ROWS, 7)
                kept = [v for v in values if v >= thread]
                assert (total, count) == (sum(kept), len(kept))


def test_streams_of_one_connection_interleave(connection):
    def read(threshold: int) -> int:
        cursor = connection.execute("SELECT a FROM t WHERE a >= ?", [threshold])
        return sum(a for (a,) in cursor)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(read, [0, 10, 20, 30])) == [sum(range(low, ROWS)) for low in (0, 10, 20, 30)]


def test_inserts_of_several_threads_are_all_there(connection):
    connection.execute("CREATE TABLE target (a INTEGER)")

    def insert(thread: int) -> None:
        for i in range(20):
            connection.cursor().execute("INSERT INTO target VALUES (?)", [thread * 100 + i])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(insert, range(4)))
    expected = sorted(thread * 100 + i for thread in range(4) for i in range(20))
    assert sorted(a for (a,) in connection.execute("SELECT a FROM target")) == expected


def test_cancel_from_another_thread_stops_the_running_statement_and_nothing_else(connection):
    stop = threading.Event()

    def cancel_until_stopped() -> None:
        while not stop.wait(0.02):
            connection.cancel()

    canceller = threading.Thread(target=cancel_until_stopped)
    canceller.start()
    try:
        deadline = time.monotonic() + 30
        with pytest.raises(gpudb.OperationalError, match="cancel"):
            while time.monotonic() < deadline:
                connection.execute("SELECT g, a, count(*), sum(a * 2) FROM t GROUP BY g, a ORDER BY a DESC").fetchall()
    finally:
        stop.set()
        canceller.join()
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (ROWS,)
