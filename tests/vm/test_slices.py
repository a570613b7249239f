"""Results that are computed as they are read: the rows, errors, receipts, limits and snapshots of a whole one."""

from __future__ import annotations

import gc
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import gpudb
from gpudb import errors
from gpudb.devices import Devices
from gpudb.devices.lanes import LanesDevice
from gpudb.storage import table as storage_table
from gpudb.vm import slices

GROUP = 4096
GROUPS = 12
ROWS = GROUP * GROUPS + 77
DATA = f"""SELECT i AS k, CASE WHEN i % 5 = 0 THEN NULL ELSE i * 7 END AS a, i / 7.0 AS b, 't' || (i % 900)::VARCHAR AS s,
    CASE WHEN i % 3 = 0 THEN NULL ELSE i::DECIMAL(30, 2) END AS d FROM range({ROWS}) AS r(i)"""
QUERIES = [
    "SELECT * FROM t",
    "SELECT k, upper(s) AS u, a + 1 AS a FROM t WHERE k % 3 = 0",
    "SELECT k FROM t WHERE k IN (5, 40000, 49000)",
    "SELECT k FROM t WHERE k < 0",
    "SELECT t.k, u.s FROM t JOIN t u ON t.k = u.a",
    "SELECT t.k, u.k AS other FROM t LEFT JOIN t u ON t.s = u.s AND u.k < 4000 WHERE t.k < 20000",
    "SELECT k FROM t UNION ALL SELECT a FROM t",
    "SELECT k FROM t LIMIT 30000 OFFSET 20000",
    "SELECT k, a FROM t ORDER BY a DESC, k",
    "SELECT [k, a] AS l, k::VARCHAR AS v FROM t",
]


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row groups of 4,096 rows, and slices of one to four of them."""
    monkeypatch.setattr(slices, "FIRST_BYTES", 1 << 15)
    monkeypatch.setattr("gpudb.vm.FIRST_BYTES", 1 << 15)
    monkeypatch.setattr(slices, "SLICE_BYTES", 1 << 17)
    init = storage_table.TableBuilder.__init__

    def small(self: Any, columns: Any, row_group_rows: int = 0, *arguments: Any, **others: Any) -> None:
        init(self, columns, GROUP, *arguments, **others)

    monkeypatch.setattr(storage_table.TableBuilder, "__init__", small)


def filled(database: str = ":memory:") -> gpudb.Connection:
    connection = gpudb.connect(database)
    connection.execute("SET device = 'cpu'")
    connection.execute(f"CREATE TABLE t AS {DATA}")
    return connection


@pytest.fixture
def connection() -> Iterator[gpudb.Connection]:
    with filled() as made:
        yield made


def whole(connection: gpudb.Connection, sql: str, monkeypatch: pytest.MonkeyPatch) -> pa.Table:
    with monkeypatch.context() as patch:
        patch.setattr("gpudb.vm.FIRST_BYTES", 1 << 60)
        return connection.execute(sql).fetch_arrow_table()


def test_the_table_has_its_row_groups(connection: gpudb.Connection) -> None:
    assert len(connection._session.database.storage.snapshot()["t"].row_groups) == GROUPS + 1


@pytest.mark.parametrize("device, queries", [("cpu", QUERIES), ("reference", QUERIES[:6]), ("lanes", QUERIES[1:2])])
def test_rows_are_those_of_a_whole_result(device: str, queries: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with filled() as connection, pytest.MonkeyPatch.context() as patch:
        if device == "lanes":
            lanes = LanesDevice(2, 256)
            patch.setattr(Devices, "choose", lambda self, settings: (lanes, "a test", None))
        else:
            connection.execute(f"SET device = '{device}'")
        for sql in queries:
            expected = whole(connection, sql, monkeypatch)
            found = connection.execute(sql).fetch_arrow_table()
            assert found.equals(expected), sql
            read = connection.execute(sql).fetch_record_batch(1000).read_all()
            assert read.equals(expected.replace_schema_metadata(None)), sql


def test_the_first_rows_come_before_the_last_are_made(connection: gpudb.Connection) -> None:
    cursor = connection.execute("SELECT k, a, b FROM t")
    reader = cursor.fetch_record_batch()
    first = reader.read_next_batch()
    began = cursor.receipt["tiles_run"]
    assert first.num_rows == GROUP and 0 < began < GROUPS
    rows = first.num_rows + sum(batch.num_rows for batch in reader)
    assert rows == ROWS
    assert cursor.receipt["tiles_run"] >= GROUPS * 4 > began
    assert set(cursor.receipt["stages_ms"]) >= {"run", "export"}


def test_a_receipt_counts_what_a_whole_one_does(connection: gpudb.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT k, s FROM t WHERE k BETWEEN 9000 AND 40000"
    expected = json.loads(whole(connection, sql, monkeypatch).schema.metadata[b"gpudb.receipt"])
    found = json.loads(connection.execute(sql).fetch_arrow_table().schema.metadata[b"gpudb.receipt"])
    assert found["tiles_skipped"] > 0
    for count in ("device", "tiles_run", "tiles_skipped", "bytes_read", "host_rows"):
        assert found[count] == expected[count], count
    assert found["peak_bytes"] < expected["peak_bytes"]


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_a_result_larger_than_memory_passes_through_it(connection: gpudb.Connection, device: str) -> None:
    connection.execute(f"SET device = '{device}'")
    connection.execute("SET memory_limit = '400KB'")
    with pytest.raises(errors.MemoryLimitError):
        connection.execute("SELECT k, a, b, d FROM t ORDER BY b DESC").fetchall()
    cursor = connection.execute("SELECT k, a, b, d FROM t")
    assert sum(batch.num_rows for batch in cursor.fetch_record_batch()) == ROWS
    assert 0 < cursor.receipt["peak_bytes"] <= 400_000


def test_rows_that_are_wanted_together_fit_into_memory(connection: gpudb.Connection) -> None:
    connection.execute("SET memory_limit = '900KB'")
    for fetch in ("fetch_arrow_table", "fetchall", "fetch_df"):
        with pytest.raises(errors.MemoryLimitError, match="and more to come"):
            getattr(connection.execute("SELECT k, a, b FROM t"), fetch)()
    assert len(connection.execute("SELECT k, a, b FROM t").fetchmany(1000)) == 1000


def test_pairs_of_a_join_pass_through_memory(connection: gpudb.Connection) -> None:
    connection.execute("SET memory_limit = '40MB'")
    cursor = connection.execute("SELECT t.k, u.k FROM t, (SELECT k FROM t WHERE k < 100) u")
    assert sum(batch.num_rows for batch in cursor.fetch_record_batch()) == ROWS * 100


OVERFLOW = "SELECT (k * 3000000000 * 100000)::BIGINT AS q FROM t"  # from row 30,745 on


def test_an_error_is_the_one_of_the_first_row_and_comes_behind_the_rows_before_it(
    connection: gpudb.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = OVERFLOW
    with pytest.raises(gpudb.Error) as expected:
        whole(connection, sql, monkeypatch)
    for _ in range(2):  # planned, and from the cache
        with pytest.raises(gpudb.Error) as found:
            connection.execute(sql).fetch_arrow_table()
        assert (type(found.value), str(found.value)) == (type(expected.value), str(expected.value))
    other = sql.replace("FROM t", "FROM t WHERE k >= 0")
    moved = f"   {other}"
    cursor = connection.execute(moved)
    reader, rows = cursor.fetch_record_batch(), 0
    with pytest.raises(gpudb.Error) as late:
        for batch in reader:
            rows += batch.num_rows
    assert 0 < rows < 40000
    assert "^" in str(late.value) and moved.strip() in str(late.value)


def test_an_error_behind_some_rows_aborts_the_transaction(connection: gpudb.Connection) -> None:
    connection.execute("BEGIN")
    connection.execute("CREATE TABLE made AS SELECT 1 AS a")
    cursor = connection.execute(OVERFLOW)
    with pytest.raises(gpudb.Error):
        cursor.fetchall()
    with pytest.raises(errors.TransactionError, match="aborted"):
        connection.execute("SELECT 1")
    connection.execute("ROLLBACK")
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (ROWS,)


def test_a_statement_that_stores_rows_keeps_none_of_a_failing_one(connection: gpudb.Connection) -> None:
    connection.execute("CREATE TABLE kept(q BIGINT)")
    with pytest.raises(gpudb.Error):
        connection.execute(f"INSERT INTO kept {OVERFLOW}")
    with pytest.raises(gpudb.Error):
        connection.execute("INSERT INTO kept SELECT k FROM t RETURNING (q * 3000000000 * 100000)::BIGINT")
    assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)


@pytest.mark.parametrize("place", ["memory", "directory"])
def test_a_writer_between_two_batches_changes_nothing(place: str, tmp_path: Path) -> None:
    with filled(":memory:" if place == "memory" else str(tmp_path / "db")) as connection:
        expected = connection.execute("SELECT * FROM t").fetch_arrow_table().replace_schema_metadata(None)
        reader = connection.execute("SELECT * FROM t").fetch_record_batch()
        batches = [reader.read_next_batch()]
        for change in ("DELETE FROM t WHERE k % 2 = 0", "UPDATE t SET s = 'new' || s", "INSERT INTO t(k) VALUES (-1)"):
            connection.execute(change)
            batches.append(reader.read_next_batch())
        connection.execute("DROP TABLE t")
        connection.execute("CREATE TABLE t AS SELECT 1 AS k")
        gc.collect()
        assert pa.Table.from_batches([*batches, *reader], expected.schema).equals(expected)


def test_a_transaction_that_ends_between_two_batches_changes_nothing(tmp_path: Path) -> None:
    with filled(str(tmp_path / "db")) as connection:
        connection.execute("BEGIN")
        connection.execute("CREATE TABLE u AS SELECT k + 1 AS k, s FROM t")
        reader = connection.execute("SELECT k, s FROM u").fetch_record_batch()
        reader.read_next_batch()
        connection.execute("ROLLBACK")
        assert sum(batch.num_rows for batch in reader) == ROWS - GROUP


def test_cancel_ends_a_result_that_is_being_read(connection: gpudb.Connection) -> None:
    reader = connection.execute("SELECT k FROM t").fetch_record_batch()
    reader.read_next_batch()
    connection.cancel()
    with pytest.raises(errors.QueryCancelled):
        reader.read_all()
    connection.cancel()  # of nothing
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (ROWS,)
    assert not connection._session._unread


def test_time_is_that_of_the_statement_and_not_of_its_reader(connection: gpudb.Connection) -> None:
    connection.execute("SET statement_timeout = 0.3")
    reader = connection.execute("SELECT k FROM t").fetch_record_batch()
    reader.read_next_batch()
    time.sleep(0.4)
    assert reader.read_all().num_rows == ROWS - GROUP
    connection.execute("SET statement_timeout = 0.000001")
    with pytest.raises(errors.QueryCancelled, match="timed out"):
        connection.execute("SELECT k FROM t").fetchall()


def test_a_half_read_result_that_is_dropped_frees_everything(connection: gpudb.Connection) -> None:
    gc.disable()
    try:
        for end in ("close", "execute", "drop"):
            cursor = connection.cursor()
            reader = cursor.execute("SELECT k, a, b FROM t").fetch_record_batch()
            reader.read_next_batch()
            assert len(connection._session._unread) == 1
            if end == "close":
                cursor.close()
            elif end == "execute":
                cursor.execute("SELECT 1")
            del reader, cursor
            assert not connection._session._unread, end
    finally:
        gc.enable()


def test_a_reader_of_an_older_result_never_gives_rows_of_a_newer_one(connection: gpudb.Connection) -> None:
    cursor = connection.cursor()
    reader = cursor.execute("SELECT k FROM t").fetch_record_batch()
    reader.read_next_batch()
    unread = cursor.execute("SELECT k FROM t").fetch_record_batch()
    cursor.execute("SELECT -k FROM t")
    for old in (reader, unread):
        with pytest.raises(errors.InterfaceError, match="another statement"):
            old.read_next_batch()
    assert cursor.fetchone() == (0,)


def test_others_of_the_session_run_between_two_batches(connection: gpudb.Connection) -> None:
    readers = [connection.cursor().execute(f"SELECT k + {n} AS k FROM t").fetch_record_batch() for n in range(3)]
    sums = [0, 0, 0]
    for batches in zip(*readers, strict=True):
        for n, batch in enumerate(batches):
            sums[n] += sum(batch.column(0).to_pylist())
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (ROWS,)
    assert sums == [ROWS * (ROWS - 1) // 2 + n * ROWS for n in range(3)]


def test_a_device_that_fails_behind_some_rows_is_followed_by_another(
    connection: gpudb.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = connection._session
    expected = (
        connection.execute("SELECT k, s FROM t WHERE k % 2 = 0").fetch_arrow_table().replace_schema_metadata(None)
    )
    device = session.database.devices.choose(session.settings)[0]
    calls = 0

    def failing(work: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise errors.DeviceError("device cuda: it has gone")
        return type(device).run_pipeline(device, work)

    other = session.database.devices._make("reference", session.settings)
    monkeypatch.setattr(device, "run_pipeline", failing)
    monkeypatch.setattr(Devices, "after", lambda self, *arguments: (other, "gpu: it has gone"))
    cursor = connection.execute("SELECT k, s FROM t WHERE k % 2 = 0")
    found = cursor.fetch_record_batch().read_all()
    assert found.equals(expected) and calls == 3
    assert cursor.receipt["device"] == "reference" and cursor.receipt["fallback"] == "gpu: it has gone"


def test_threads_read_results_of_one_connection_side_by_side(connection: gpudb.Connection) -> None:
    found: list[int] = []

    def read() -> None:
        found.append(connection.cursor().execute("SELECT k, a, s FROM t").fetch_record_batch().read_all().num_rows)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [ROWS] * 4
