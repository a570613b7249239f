"""What runs, waits and is stopped: rows N12, N13, N19, A12, A13, A16 and O of the fault list."""

from __future__ import annotations

import errno
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl
import pytest

import gpudb.server
from gpudb import errors
from gpudb.flight_sql import encode, pack, parse, unpack
from gpudb.server import audit
from gpudb.server.authentication import Caller
from gpudb.server.command import configuration
from gpudb.server.configuration import Configuration
from gpudb.server.flight import Server, run_all
from gpudb.server.limited_settings import LimitedSettings
from gpudb.server.running import Statements
from gpudb.server.sessions import Handles
from gpudb.session import Database, Session

ENDLESS = "SELECT count(*) FROM range(300000) AS a(i), range(300000) AS b(j) WHERE (i * j) % 7 = 3"


def query(sql: str) -> fl.FlightDescriptor:
    return fl.FlightDescriptor.for_command(pack("CommandStatementQuery", query=sql))


class Client:
    """A plain Flight client of a server."""

    def __init__(self, server: Server) -> None:
        self.flight = fl.connect(server.uri)
        self.options = fl.FlightCallOptions(headers=[(b"authorization", f"Bearer {server.token}".encode())])

    def info(self, sql: str) -> fl.FlightInfo:
        return self.flight.get_flight_info(query(sql), self.options)

    def run(self, sql: str) -> list[dict[str, Any]]:
        return self.flight.do_get(self.info(sql).endpoints[0].ticket, self.options).read_all().to_pylist()

    def start(self, info: fl.FlightInfo) -> Callable[[], BaseException | None]:
        """Fetch on a thread; what is returned waits for the end, and gives the error."""
        errors_: list[BaseException] = []

        def fetch() -> None:
            try:
                self.flight.do_get(info.endpoints[0].ticket, self.options).read_all()
            except BaseException as error:  # noqa: BLE001 - looked at by the test
                errors_.append(error)

        thread = threading.Thread(target=fetch)
        thread.start()

        def wait() -> BaseException | None:
            thread.join(30)
            assert not thread.is_alive(), "it should have ended"
            return errors_[0] if errors_ else None

        return wait

    def queries(self) -> list[dict[str, Any]]:
        """What SHOW QUERIES says of others."""
        return [one for one in self.run("SHOW QUERIES") if one["sql"] != "SHOW QUERIES"]

    def until(self, state: str, count: int = 1) -> list[dict[str, Any]]:
        """Wait until so many statements are in a state."""
        for _ in range(400):
            found = [one for one in self.queries() if one["state"] == state]
            if len(found) >= count:
                return found
            time.sleep(0.02)
        raise AssertionError(f"nothing got to be {state}")


@pytest.fixture
def client(server: Server) -> Client:
    return Client(server)


def ended(client: Client) -> bool:
    for _ in range(100):
        if not client.queries():
            return True
        time.sleep(0.02)
    return False


def no_calls(server: Server) -> bool:
    """Whether no call goes on soon: one ends a little after its client has the answer."""
    for _ in range(100):
        if server._flight.callers.calls == 0:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.slow
def test_N12_a_client_that_goes_away_stops_its_statement(server: Server, client: Client) -> None:
    script = (
        "import sys, pyarrow.flight as fl; c = fl.connect(sys.argv[1]);"
        "o = fl.FlightCallOptions(headers=[(b'authorization', sys.argv[2].encode())]);"
        "i = c.get_flight_info(fl.FlightDescriptor.for_command(sys.argv[3].encode()), o);"
        "print('go', flush=True); c.do_get(i.endpoints[0].ticket, o).read_all()"
    )
    arguments = [sys.executable, "-c", script, server.uri, f"Bearer {server.token}", ENDLESS]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as process:
        client.until("running")
        process.send_signal(signal.SIGKILL)
    began = time.monotonic()
    assert ended(client)
    assert time.monotonic() - began < 2
    assert no_calls(server), "its call is forgotten, too"


def test_N12_a_deadline_of_the_client_stops_its_statement(server: Server, client: Client) -> None:
    info = client.info(ENDLESS)
    short = fl.FlightCallOptions(headers=[(b"authorization", f"Bearer {server.token}".encode())], timeout=0.3)
    with pytest.raises(fl.FlightTimedOutError):
        client.flight.do_get(info.endpoints[0].ticket, short).read_all()
    assert ended(client)


@pytest.mark.parametrize("action", ["CancelFlightInfo", "CancelQuery"])
def test_cancel_stops_what_a_flight_info_started(client: Client, action: str) -> None:
    info = client.info(ENDLESS)
    wait = client.start(info)
    client.until("running")
    if action == "CancelFlightInfo":
        body = encode("CancelFlightInfoRequest", info=info.serialize())
    else:
        body = pack("ActionCancelQueryRequest", info=info.serialize())
    (answer,) = client.flight.do_action(fl.Action(action, body), client.options)
    if action == "CancelFlightInfo":
        assert parse("CancelFlightInfoResult", answer.body.to_pybytes()).status == 2
    error = wait()
    assert isinstance(error, fl.FlightCancelledError) and "QueryCancelled: statement cancelled" in str(error)


def test_cancel_of_what_has_not_begun_forgets_its_ticket(client: Client) -> None:
    info = client.info("SELECT 1")
    body = encode("CancelFlightInfoRequest", info=info.serialize())
    statuses = []
    for _ in range(2):
        (answer,) = client.flight.do_action(fl.Action("CancelFlightInfo", body), client.options)
        statuses.append(parse("CancelFlightInfoResult", answer.body.to_pybytes()).status)
    assert statuses == [1, 3]


def test_pyarrows_own_cancel_works(client: Client) -> None:
    info = client.info("SELECT i FROM range(30000000) AS r(i)")
    reader = client.flight.do_get(info.endpoints[0].ticket, client.options)
    reader.read_chunk()
    reader.cancel()
    with pytest.raises((fl.FlightCancelledError, pa.ArrowCancelled)):
        while True:
            reader.read_chunk()
    assert ended(client)


def test_kill_stops_a_statement_by_its_number(client: Client) -> None:
    wait = client.start(client.info(ENDLESS))
    (found,) = client.until("running")
    assert found["sql"] == ENDLESS and found["user"] == "token" and found["seconds"] >= 0
    assert client.run(f"KILL {found['id']}") == [{"Count": 1}]
    error = wait()
    assert isinstance(error, fl.FlightCancelledError) and "cancelled by KILL" in str(error)
    with pytest.raises(fl.FlightServerError, match="there is no such statement"):
        client.run(f"KILL {found['id']}")


def test_kill_and_show_queries_work_through_adbc(client: Client, sql: Any) -> None:
    wait = client.start(client.info(ENDLESS))
    client.until("running")
    number = next(row[0] for row in sql("SHOW QUERIES") if row[2] == "running")
    assert sql(f"KILL {number}") == 1
    assert wait() is not None


def test_A6_others_see_and_kill_no_statement_of_mine() -> None:
    running = Statements(1, 10, 1.0)
    session = Session(Database())
    mine = running.arrive(Caller("ada", "reader", None), "SELECT 1", session, None)
    other, admin = Caller("bob", "writer", None), Caller("root", "admin", None)
    assert running.shown(other) == [] and running.shown(admin) == [mine]
    with pytest.raises(errors.InterfaceError, match="there is no such statement"):
        running.kill(other, mine.number)
    running.kill(admin, mine.number)
    with pytest.raises(errors.QueryCancelled, match="KILL"):
        mine.check()
    running.close()


@pytest.fixture(scope="module")
def small() -> Iterator[Server]:
    """A server that runs one statement at a time, and two wait."""
    with gpudb.server.serve(
        port=0, running=1, waiting=2, queue_seconds=0.5, statement_timeout=1.0, memory_limit=64 << 20
    ) as server:
        yield server


def test_A13_O4_a_full_server_refuses_and_still_kills(small: Server) -> None:
    client = Client(small)
    client.run("SELECT 1")
    waits = [client.start(client.info(ENDLESS))]
    client.until("running")
    waits += [client.start(client.info(ENDLESS + f" AND j > {n}")) for n in range(2)]
    client.until("waiting", 2)
    with pytest.raises(fl.FlightUnavailableError, match="too many statements are waiting"):
        client.run("SELECT 2")
    (found,) = client.until("running")
    client.run(f"KILL {found['id']}")
    ends = [str(wait()) for wait in waits]
    assert "KILL" in ends[0]
    assert sum("waited 0.5 s for its turn" in end or "timed out" in end for end in ends[1:]) == 2
    assert client.run("SELECT 3 AS a") == [{"a": 3}]


def test_O5_a_statement_that_runs_too_long_is_stopped(small: Server) -> None:
    client = Client(small)
    began = time.monotonic()
    with pytest.raises(fl.FlightTimedOutError, match="QueryCancelled: statement timed out"):
        client.run(ENDLESS)
    assert time.monotonic() - began < 4


def test_O1_a_statement_past_its_memory_ends_and_no_other(small: Server) -> None:
    client = Client(small)
    with pytest.raises(fl.FlightServerError, match="MemoryLimitError"):
        client.run("SELECT i, i + 1 AS j FROM range(50000000) AS r(i) ORDER BY j DESC")
    assert client.run("SELECT 1 AS a") == [{"a": 1}]


def test_A12_set_lowers_limits_and_never_raises_them() -> None:
    settings = LimitedSettings({"statement_timeout": 60.0, "memory_limit": 1 << 30})
    settings.set("statement_timeout", 5)
    assert settings["statement_timeout"] == 5.0
    for name, value in (("statement_timeout", 61), ("statement_timeout", 0), ("max_memory", "2GB")):
        with pytest.raises(errors.AccessError, match="the operator allows no more than"):
            settings.set(name, value)
    for name, value in (("statement_timeout", "nan"), ("statement_timeout", "inf"), ("max_memory", "9" * 400)):
        with pytest.raises(errors.BindError, match="bad value for setting"):
            settings.set(name, value)
    assert settings["statement_timeout"] == 5.0
    settings.reset("statement_timeout")
    assert settings["statement_timeout"] == 60.0
    unlimited = LimitedSettings({"statement_timeout": 0.0})
    unlimited.set("statement_timeout", 1000)


def test_A12_temporary_files_lie_where_the_operator_says() -> None:
    settings = LimitedSettings(Configuration(memory_limit=1 << 20).limits)
    for value in ("/etc", "", "auto"):
        with pytest.raises(errors.AccessError, match="only the operator chooses temp_directory"):
            settings.set("temp_directory", value)
    for value in ("5MB", "0"):
        with pytest.raises(errors.AccessError, match="the operator allows no more than 4194304"):
            settings.set("max_temp_directory_size", value)
    settings.set("max_temp_directory_size", "1MB")
    assert (settings["temp_directory"], settings["max_temp_directory_size"]) == ("auto", 1_000_000)


def test_N13_a_failure_behind_some_rows_is_an_error_and_never_a_short_stream(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    import gpudb.server.results as results

    whole = results.pieces

    def failing(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for number, piece in enumerate(whole(batch)):
            if number == 3:
                raise errors.DeviceError("the device has gone")
            yield piece

    monkeypatch.setattr(results, "pieces", failing)
    info = client.info("SELECT i FROM range(1000000) AS r(i)")
    reader = client.flight.do_get(info.endpoints[0].ticket, client.options)
    rows = 0
    with pytest.raises(fl.FlightServerError, match="DeviceError: the device has gone"):
        while True:
            rows += reader.read_chunk().data.num_rows
    assert rows == 2 << 16  # the third message was held back until it was known whether it is the last
    assert ended(client)


def test_rows_leave_before_the_last_are_made(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    import gpudb.server.results as results

    gate = threading.Event()
    whole = results.pieces

    def slow(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for number, piece in enumerate(whole(batch)):
            if number == 2:
                assert gate.wait(10), "the first rows should have arrived by now"
            yield piece

    monkeypatch.setattr(results, "pieces", slow)
    info = client.info("SELECT i FROM range(1000000) AS r(i)")
    reader = client.flight.do_get(info.endpoints[0].ticket, client.options)
    assert reader.read_chunk().data.num_rows == 1 << 16
    gate.set()
    assert reader.read_all().num_rows == 1_000_000 - (1 << 16)


def test_N10_calls_past_the_most_at_a_time_are_refused_and_those_that_end_are_forgotten() -> None:
    with gpudb.server.serve(port=0, calls=2, running=2) as server:
        client = Client(server)
        infos = [client.info(f"{ENDLESS} AND j > {n}") for n in range(2)]
        waits = [client.start(info) for info in infos]
        for _ in range(200):
            if server._flight.callers.calls == 2:
                break
            time.sleep(0.02)
        with pytest.raises(fl.FlightUnavailableError, match="too many calls at a time"):
            client.info("SELECT 1")
        for one in server._flight.running.shown(Caller("token", "admin", None)):
            server._flight.running.kill(Caller("token", "admin", None), one.number)
        assert all(wait() is not None for wait in waits)
        assert no_calls(server)
        assert client.run("SELECT 1 AS a") == [{"a": 1}]


def test_plans_that_wait_for_a_lock_hold_up_no_others(small: Server) -> None:
    client, planning = Client(small), small._flight._planning
    taken = 0
    while planning.acquire(blocking=False):  # as statements would that wait for their session
        taken += 1
    try:
        assert client.run("SELECT 4 AS a") == [{"a": 4}]
    finally:
        planning.release(taken)


def test_N19_drain_lets_statements_end_and_refuses_new_ones() -> None:
    with gpudb.server.serve(port=0, drain_seconds=0.3) as server:
        client = Client(server)
        wait = client.start(client.info(ENDLESS))
        client.until("running")
        refused = client.info("SELECT 1")
        drained: list[bool] = []
        thread = threading.Thread(target=lambda: drained.append(server.drain()))
        thread.start()
        time.sleep(0.1)
        with pytest.raises(fl.FlightUnavailableError, match="the server is about to stop"):
            client.flight.do_get(refused.endpoints[0].ticket, client.options).read_all()
        thread.join()
        assert drained == [False]
        assert "the server stops" in str(wait())


def test_N19_sigterm_ends_the_command_and_removes_its_token(tmp_path: Path, runtime_folder: Path) -> None:
    environment = {
        **os.environ,
        "GPUDB_RUNTIME_DIR": str(tmp_path / "run"),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    arguments = [sys.executable, "-m", "gpudb", "serve", str(tmp_path / "db"), "--port", "0"]
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        uri = process.stdout.readline().split()[-1]
        process.stdout.readline()
        (path,) = (tmp_path / "run").iterdir()
        options = fl.FlightCallOptions(headers=[(b"authorization", f"Bearer {path.read_text().strip()}".encode())])
        with fl.connect(uri) as flight:
            info = flight.get_flight_info(query("CREATE TABLE made AS SELECT 'a secret' AS a"), options)
            flight.do_get(info.endpoints[0].ticket, options).read_all()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        log = process.stderr.read()
    assert not path.exists()
    (line,) = [line for line in log.splitlines() if "gpudb.audit" in line]
    assert json.loads(line[line.index("{") :]) == {
        "event": "create",
        "user": "token",
        "sql": "CREATE TABLE made AS SELECT ? AS a",  # A16: literals are not logged
    }
    with gpudb.connect(tmp_path / "db") as connection:
        assert connection.execute("SELECT a FROM made").fetchone() == ("a secret",)


def until(condition: Callable[[], Any]) -> Any:
    """What a condition gives once it holds."""
    for _ in range(500):
        if found := condition():
            return found
        time.sleep(0.01)
    raise AssertionError("it never held")


def receiving(server: Server) -> int:
    """The number of the one stream of rows that comes."""
    found = until(lambda: server._flight.running.shown(Caller("token", "admin", None)))
    assert [one.state for one in found] == ["receiving"]
    number: int = found[0].number
    return number


def test_the_end_of_a_server_waits_for_no_stream_that_its_client_leaves_open(tmp_path: Path) -> None:
    rows = pa.record_batch({"a": [1, 2, 3]})
    with gpudb.server.serve(str(tmp_path / "db"), port=0) as server:
        client = Client(server)
        writer, _ = client.flight.do_put(fl.FlightDescriptor.for_path("left"), rows.schema, client.options)
        writer.write_batch(rows)
        receiving(server)
        began = time.monotonic()
        server.close()
        assert time.monotonic() - began < 5, "it waits for its client"
    with gpudb.connect(tmp_path / "db") as connection:
        assert connection.session.tables() == []


def test_the_end_of_a_server_waits_for_no_client_who_reads_nothing() -> None:
    with gpudb.server.serve(port=0) as server:
        client = Client(server)
        info = client.info("SELECT i, i * 2 AS j FROM range(3000000) AS r(i)")
        reader = client.flight.do_get(info.endpoints[0].ticket, client.options)
        assert reader.read_chunk().data.num_rows > 0
        time.sleep(0.3)  # until the next message waits for its reader
        began = time.monotonic()
        server.close()
        assert time.monotonic() - began < 5, "it waits for its client"


def test_an_ingest_is_shown_killed_and_refused_as_a_statement_is(small: Server) -> None:
    client = Client(small)
    rows = pa.record_batch({"a": [1, 2, 3]})

    def put() -> Any:
        return client.flight.do_put(fl.FlightDescriptor.for_path("killed"), rows.schema, client.options)

    writer, answers = put()
    writer.write_batch(rows)
    number = receiving(small)
    (shown,) = [row for row in client.run("SHOW QUERIES") if row["id"] == number]
    assert (shown["sql"], shown["state"]) == ("INGEST INTO killed", "receiving")
    client.run(f"KILL {number}")
    with pytest.raises(fl.FlightCancelledError, match="cancelled by KILL"):
        writer.write_batch(rows)
        writer.done_writing()
        answers.read()
        writer.close()
    with pytest.raises(fl.FlightError, match="table not found"):
        client.run("SELECT * FROM killed")
    small._flight.running.draining = True
    try:
        with pytest.raises(fl.FlightUnavailableError, match="about to stop"):
            writer, answers = put()
            writer.done_writing()
            answers.read()
            writer.close()
    finally:
        small._flight.running.draining = False


def test_statements_of_a_transaction_do_not_wait_for_rows_that_a_client_is_slow_to_send(small: Server) -> None:
    client = Client(small)
    (answer,) = client.flight.do_action(
        fl.Action("BeginTransaction", pack("ActionBeginTransactionRequest")), client.options
    )
    handle = unpack(answer.body.to_pybytes())[1].transaction_id
    rows = pa.record_batch({"a": [1, 2, 3]})

    def run(sql: str) -> list[dict[str, Any]]:
        command = pack("CommandStatementQuery", query=sql, transaction_id=handle)
        info = client.flight.get_flight_info(fl.FlightDescriptor.for_command(command), hurried)
        return client.flight.do_get(info.endpoints[0].ticket, hurried).read_all().to_pylist()

    header = (b"authorization", f"Bearer {small.token}".encode())
    hurried = fl.FlightCallOptions(headers=[header], timeout=10)
    command = pack(
        "CommandStatementIngest",
        table="slow",
        transaction_id=handle,
        table_definition_options={"if_not_exist": 2, "if_exists": 2},
    )
    run("CREATE TABLE slow (a BIGINT)")
    writer, answers = client.flight.do_put(fl.FlightDescriptor.for_command(command), rows.schema, client.options)
    writer.write_batch(rows)
    receiving(small)
    time.sleep(0.1)  # until the batch is there
    assert run("SELECT count(*) AS n FROM slow") == [{"n": 0}]
    writer.done_writing()
    assert parse("DoPutUpdateResult", answers.read().to_pybytes()).record_count == 3
    writer.close()
    assert run("SELECT count(*) AS n FROM slow") == [{"n": 3}]
    request = pack("ActionEndTransactionRequest", transaction_id=handle, action=2)
    assert list(client.flight.do_action(fl.Action("EndTransaction", request), client.options)) == []


def test_a_server_answers_only_once_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    made = Statements.__init__
    answered: list[int] = []

    def make(*arguments: Any) -> None:
        with socket.socket() as probe:
            answered.append(probe.connect_ex(("127.0.0.1", port)))
        made(*arguments)

    monkeypatch.setattr(Statements, "__init__", make)
    with gpudb.server.serve(port=port) as server, socket.create_connection(("127.0.0.1", server.port)):
        assert answered == [errno.ECONNREFUSED]
        threads = threading.active_count()
        with pytest.raises(errors.OperationalError, match="cannot listen"):
            gpudb.server.serve(port=port)
        assert threading.active_count() <= threads, "those of a server that did not start have ended"


def test_sets_of_parameters_that_are_stopped_half_way_are_not_committed() -> None:
    session = Session(Database(":memory:"))
    session.execute("CREATE TABLE t(a INTEGER)")
    session.execute("BEGIN")
    checks = iter([None, errors.QueryCancelled("statement cancelled by KILL")])

    def check() -> None:
        if (error := next(checks)) is not None:
            raise error

    with pytest.raises(errors.QueryCancelled):
        run_all(session, "INSERT INTO t SELECT ?", [[1], [2]], check)
    session.execute("COMMIT")
    assert session.execute("SELECT count(*) FROM t").table()[0][0].as_py() == 0


def test_a_session_that_is_too_old_is_closed_and_made_once_for_calls_at_the_same_time() -> None:
    closed: list[object] = []
    sessions: Handles[object] = Handles("session", 0.2, forget=closed.append)

    def make() -> object:
        time.sleep(0.02)
        return object()

    with ThreadPoolExecutor(4) as threads:
        found = set(threads.map(lambda _: sessions.get_or_make("ada", b"ada 1", make), range(4)))
    assert len(found) == 1 and closed == []
    time.sleep(0.25)
    assert sessions.get_or_make("ada", b"ada 1", make) not in found
    assert closed == list(found)


def test_A6_nobody_pushes_out_what_belongs_to_others() -> None:
    closed: list[str] = []
    kept: Handles[str] = Handles("transaction", 60.0, at_most=5, forget=closed.append)
    mine = kept.put("ada", "ada's")
    theirs = [kept.put("bob", f"bob's {number}") for number in range(8)]
    assert kept.get("ada", mine) == "ada's"
    assert closed == [f"bob's {number}" for number in range(4)]
    assert [kept.find("bob", handle) for handle in theirs[4:]] == [f"bob's {number}" for number in range(4, 8)]
    for handle in theirs[4:]:
        kept.pop("bob", handle)
    for number in range(5):
        kept.get_or_make("ada", b"ada %d" % number, lambda: "another")
    assert kept.find("ada", mine) is None and closed[-1] == "ada's", "the longest unused one of her own"


def test_O4_a_statement_behind_many_comments_does_not_hold_up_the_server(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "gpudb.audit")
    comments = "/**/" * 20  # the time grew twofold with each
    began = time.process_time()
    audit.note_statement("ada", comments + "SELECT 1")
    assert time.process_time() - began < 0.05
    audit.note_statement("ada", comments + "-- and one more\n DROP TABLE t")
    assert [json.loads(record.getMessage())["event"] for record in caplog.records] == ["drop"]


def test_A16_the_audit_log_has_one_line_an_event(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "gpudb.audit")
    with fl.connect(server.uri) as flight, pytest.raises(fl.FlightUnauthenticatedError):
        flight.authenticate_basic_token('x\n{"event": "login"}', "a secret password")
    with fl.connect(server.uri) as flight:
        flight.authenticate_basic_token("token", server.token)
    lines = [json.loads(record.getMessage()) for record in caplog.records if record.name == "gpudb.audit"]
    assert [line["event"] for line in lines] == ["denied", "login"]
    assert server.token not in caplog.text and "secret" not in caplog.text


def test_O7_a_configuration_file_that_is_wrong_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "gpudb.toml"
    path.write_text("port = 99\nstatement_timeout = 5\nread_only = true\n")
    options = {"config": str(path), "port": 7, "insecure": False, "host": None}
    found = configuration(dict(options))
    assert (found.port, found.statement_timeout, found.read_only) == (7, 5, True)
    assert configuration({**options, "port": 0}).port == 0
    for text, message in (
        ("prot = 99", "no such option in .*: prot"),
        ("port = '99'", "not a value for port in .*: '99'"),
        ("port = true", "not a value for port"),
        ("port 99", "cannot read the configuration"),
    ):
        path.write_text(text)
        with pytest.raises(errors.OperationalError, match=message):
            configuration(dict(options))
