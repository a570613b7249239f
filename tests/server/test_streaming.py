"""Results that are computed as they are sent: slices that wait for their turn, are stopped, time out, and free what they hold."""

from __future__ import annotations

import gc
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl
import pytest

import gpudb
import gpudb.server
from gpudb import errors
from gpudb.client.session import RemoteSession
from gpudb.server.flight import Server
from gpudb.vm import slices
from tests.server.test_running import Client, ended

ROWS = 5 << 20
QUERY = f"SELECT i, i * 3 AS j FROM range({ROWS}) AS r(i)"
SLICE = 1 << 20


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE_BYTES", 1 << 20)
    monkeypatch.setattr("gpudb.vm.slices.FIRST_BYTES", 1 << 20)


@pytest.fixture(scope="module")
def one() -> Iterator[Server]:
    """A server that runs one statement at a time, for a second at most."""
    with gpudb.server.serve(port=0, running=1, waiting=2, queue_seconds=0.5, statement_timeout=1.0) as server:
        yield server


@pytest.fixture
def client(one: Server) -> Client:
    return Client(one)


def started(client: Client, sql: str = QUERY) -> Any:
    return client.flight.do_get(client.info(sql).endpoints[0].ticket, client.options)


class Gate:
    """Holds each slice but the first until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open, self.passed, whole = threading.Event(), 0, slices.Slices.following

        def following(one: Any) -> Any:
            if one._at:
                assert self.open.wait(10), "the rows before should have arrived by now"
                self.passed += 1
            return whole(one)

        monkeypatch.setattr(slices.Slices, "following", following)


def test_rows_leave_before_the_next_are_computed(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    reader = started(client)
    rows = 0
    while rows < SLICE:
        rows += reader.read_chunk().data.num_rows
    assert (rows, gate.passed) == (SLICE, 0)
    gate.open.set()
    chunks = [reader.read_chunk()]
    while True:
        try:
            chunks.append(reader.read_chunk())
        except StopIteration:
            break
    assert rows + sum(chunk.data.num_rows for chunk in chunks) == ROWS
    assert [chunk.app_metadata is not None for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    receipt = json.loads(chunks[-1].app_metadata.to_pybytes())["receipt"]
    assert receipt["tiles_run"] >= ROWS // 1024 and 0 < receipt["peak_bytes"] < ROWS * 16 // 3
    assert ended(client)


def test_a_reader_who_waits_keeps_nobody_from_running(client: Client) -> None:
    reader = started(client)
    reader.read_chunk()
    assert client.run("SELECT 1 AS a") == [{"a": 1}]
    assert client.until("sending")[0]["sql"] == QUERY
    assert reader.read_all().num_rows == ROWS - (1 << 16)


def test_a_stream_waits_for_its_turn_longer_than_a_new_statement(client: Client, one: Server) -> None:
    reader = started(client)
    reader.read_chunk()
    running = one._flight.running
    with running._lock:
        running._free -= 1  # as a long statement would
    try:
        threading.Timer(0.8, running._give_place).start()
        assert reader.read_all().num_rows == ROWS - (1 << 16)
    finally:
        assert running._free == 1


@pytest.mark.parametrize("stop", ["kill", "cancel"])
def test_a_stream_is_stopped_between_two_slices(client: Client, monkeypatch: pytest.MonkeyPatch, stop: str) -> None:
    gate = Gate(monkeypatch)
    info = client.info(QUERY)
    reader = client.flight.do_get(info.endpoints[0].ticket, client.options)
    reader.read_chunk()
    (found,) = client.queries()
    threading.Timer(0.1, gate.open.set).start()
    if stop == "kill":
        client.run(f"KILL {found['id']}")
    else:
        reader.cancel()
    with pytest.raises((fl.FlightCancelledError, pa.ArrowCancelled)):
        while True:
            reader.read_chunk()  # read_all() makes KeyboardInterrupt of it, in the main thread
    assert ended(client)


def test_O5_the_time_of_all_slices_counts_and_that_of_the_reader_does_not(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = started(client)
    reader.read_chunk()
    time.sleep(1.2)
    assert reader.read_all().num_rows == ROWS - (1 << 16)
    whole = slices.Slices.following

    def slow(one: Any) -> Any:
        time.sleep(0.4)
        return whole(one)

    monkeypatch.setattr(slices.Slices, "following", slow)
    with pytest.raises((fl.FlightTimedOutError, fl.FlightServerError), match="QueryCancelled: statement timed out"):
        started(client).read_all()
    assert ended(client)


def test_O1_a_result_larger_than_its_memory_is_sent(client: Client) -> None:
    wide = ", ".join(f"i + {n}::BIGINT AS c{n}" for n in range(8))
    with gpudb.server.serve(port=0, memory_limit=80 << 20) as server:
        small = Client(server)
        reader = started(small, f"SELECT {wide} FROM range({ROWS}) AS r(i)")
        assert sum(chunk.data.num_rows for chunk in reader) == ROWS
        with pytest.raises(fl.FlightServerError, match="MemoryLimitError"):
            started(small, f"SELECT {wide} FROM range({ROWS}) AS r(i) ORDER BY c1 DESC").read_all()


def test_N13_an_error_in_a_later_slice_is_an_error_and_never_a_short_stream(client: Client) -> None:
    reader = started(client, f"SELECT (i * 3000000000000)::BIGINT AS j, i FROM range({ROWS}) AS r(i)")
    rows = 0
    with pytest.raises(fl.FlightServerError, match=r"OutOfRange|Conversion"):
        while True:
            rows += reader.read_chunk().data.num_rows
    assert 0 < rows < ROWS
    assert ended(client)


def test_N12_a_client_that_goes_away_frees_what_its_stream_held(client: Client, one: Server) -> None:
    reader = started(client)
    reader.read_chunk()
    reader.cancel()
    del reader
    assert ended(client)
    gc.collect()
    assert not [found for found in gc.get_objects() if isinstance(found, slices.Slices)]


def test_a_remote_connection_reads_the_same_and_gets_the_receipt(one: Server) -> None:
    with gpudb.connect(one.uri, token=one.token) as connection:
        assert isinstance(connection._session, RemoteSession)
        cursor = connection.execute(QUERY)
        table = cursor.fetch_arrow_table()
        assert table.num_rows == ROWS and cursor.receipt["tiles_run"] >= ROWS // 1024
        assert table.column("j")[ROWS - 1].as_py() == 3 * (ROWS - 1)
        cursor = connection.execute(QUERY)
        assert cursor.fetchone() == (0, 0)
        cursor.close()
        with pytest.raises(errors.Error):
            connection.execute(
                f"SELECT (i * 3000000000000)::BIGINT AS j, i FROM range({ROWS}) AS r(i)"
            ).fetch_arrow_table()
        assert connection.execute("SELECT 1").fetchone() == (1,)
