"""A session at a server: values, errors, receipts, streams, credentials, the shell."""

from __future__ import annotations

import datetime
import io
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl
import pytest
import sqlalchemy as sa

import gpudb
import gpudb.server
from gpudb import errors, token_file
from gpudb.__main__ import main
from gpudb.client import Address
from gpudb.server.users import Users


@pytest.fixture(autouse=True, scope="module")
def runtime_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUDB_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))
        yield


@pytest.fixture(scope="module")
def server(runtime_folder: None) -> Iterator[gpudb.server.Server]:
    with gpudb.server.serve(port=0) as server:
        yield server


@pytest.fixture
def remote(server) -> Iterator[gpudb.Connection]:
    with gpudb.connect(server.uri) as connection:
        yield connection


@pytest.mark.parametrize(
    "value",
    [None, True, 7, -(2**40), 2.5, "it's", Decimal("12.50"), datetime.date(2020, 2, 29)]
    + [datetime.datetime(2020, 2, 29, 12, 30, 1, 5), Decimal("1E+3")],
)
def test_parameters_arrive_as_in_this_process(remote: gpudb.Connection, value: object) -> None:
    with gpudb.connect() as local:
        here, there = (one.execute("SELECT ? AS v, typeof(?) AS t", [value, value]) for one in (local, remote))
        assert there.fetchall() == here.fetchall()


def test_intervals_arrive_as_in_this_process(remote: gpudb.Connection) -> None:
    sql, step = "SELECT TIMESTAMP '2020-02-28 12:00:00' + ? AS v", datetime.timedelta(days=3, microseconds=5)
    with gpudb.connect() as local:
        assert remote.execute(sql, [step]).fetchall() == local.execute(sql, [step]).fetchall()


def test_integers_beyond_64_bits_arrive_too(remote: gpudb.Connection) -> None:
    assert remote.execute("SELECT ? + 1 AS v", [2**100]).fetchone() == (2**100 + 1,)
    assert remote.execute("SELECT $a || $b AS v", {"b": "y", "a": "x"}).fetchone() == ("xy",)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT nope FROM t",
        "SELECT * FROM nowhere",
        "SELEC 1",
        "SELECT CAST('x' AS INTEGER)",
        "SELECT lag(a) OVER (ORDER BY a) FROM t",
    ]
    + ["SELECT CAST(300 AS TINYINT)", "CREATE TABLE t (a INTEGER)", "SELECT ?", "SET threads = 0", "COMMIT"],
)
def test_errors_are_those_of_this_process(sql: str, tmp_path) -> None:
    with gpudb.server.serve(port=0) as server, gpudb.connect(server.uri) as remote, gpudb.connect() as local:
        caught = []
        for one in (local, remote):
            one.execute("CREATE TABLE t (a INTEGER)")
            try:
                one.execute(sql).fetchall()
            except errors.Error as error:
                caught.append(error)
        if not caught:
            return  # it became possible
        here, there = caught
        assert (type(there), str(there), there.span) == (type(here), str(here), here.span)


@pytest.mark.parametrize(
    ("wrong", "kind"), [("SELECT nope FROM gone", errors.BindError), ("SELECT ?", errors.InterfaceError)]
)
def test_an_error_aborts_a_transaction_also_one_that_planning_finds(
    remote: gpudb.Connection, wrong: str, kind: type[errors.Error]
) -> None:
    remote.begin()
    remote.execute("CREATE TABLE gone (a INTEGER)")
    with pytest.raises(kind):
        remote.execute(wrong)
    with pytest.raises(errors.TransactionError, match="aborted"):
        remote.execute("INSERT INTO gone VALUES (1)")
    assert remote.session.transaction.aborted
    remote.rollback()
    assert not remote.in_transaction
    with pytest.raises(errors.CatalogError):
        remote.execute("SELECT * FROM gone")


def test_the_receipt_comes_behind_the_last_row(remote: gpudb.Connection) -> None:
    cursor = remote.execute("SELECT range AS a FROM range(200000)")
    cursor.fetchone()
    assert cursor.receipt == {}
    assert sum(batch.num_rows for batch in cursor.fetch_record_batch()) == 199_999
    assert cursor.receipt["device"] and cursor.receipt["tiles_run"] > 0


def test_a_large_result_is_streamed(remote: gpudb.Connection) -> None:
    remote.execute("CREATE TABLE large AS SELECT range AS a, range * 3 AS b FROM range(3000000)")
    reader = remote.execute("SELECT * FROM large").fetch_record_batch(10_000)
    first = reader.read_next_batch()
    assert first.num_rows == 10_000 and pa.total_allocated_bytes() < 40 << 20  # of 48 MB
    assert sum(batch.num_rows for batch in reader) == 2_990_000
    remote.execute("DROP TABLE large")


def test_settings_and_transactions_are_a_sessions_own(server, remote: gpudb.Connection) -> None:
    with gpudb.connect(server.uri, config={"threads": 1}) as other:
        assert other.execute("SHOW threads").fetchone() == ("1",)
        assert remote.execute("SHOW threads").fetchone() != ("1",)
        remote.begin().execute("CREATE TABLE mine (a INTEGER)")
        with pytest.raises(errors.CatalogError):
            other.execute("SELECT * FROM mine")
        remote.commit()
        assert other.execute("SELECT * FROM mine").fetchall() == []
        other.execute("DROP TABLE mine")


def test_a_connection_that_closes_rolls_back(server, remote: gpudb.Connection) -> None:
    other = gpudb.connect(server.uri)
    other.begin().execute("CREATE TABLE never (a INTEGER)")
    other.close()
    with pytest.raises(errors.CatalogError):
        remote.execute("SELECT * FROM never")
    with pytest.raises(errors.InterfaceError, match="closed"):
        other.execute("SELECT 1")


def test_many_rows_go_in_at_once(remote: gpudb.Connection) -> None:
    remote.execute("CREATE TABLE many (a INTEGER, b VARCHAR)")
    rows = [(number, None if number % 7 == 0 else str(number)) for number in range(5000)]
    assert remote.executemany("INSERT INTO many VALUES (?, ?)", rows).rowcount == 5000
    assert remote.execute("SELECT * FROM many").fetchall() == rows
    with pytest.raises(errors.DataError):
        remote.executemany("INSERT INTO many VALUES (?, ?)", [(1, "a"), (2**40, "b")])
    assert remote.execute("SELECT count(*) FROM many").fetchone() == (5000,)
    remote.execute("DROP TABLE many")


def test_credentials_are_asked_for_and_found(server, monkeypatch: pytest.MonkeyPatch) -> None:
    place = server.uri.removeprefix("grpc://")
    with (
        gpudb.connect(server.uri, token=server.token) as one,
        gpudb.connect(f"grpc://token:{server.token}@{place}") as two,
    ):
        assert one.execute("SELECT 1").fetchone() == two.execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(errors.OperationalError, match="credentials"):
        gpudb.connect(server.uri, token="wrong")
    monkeypatch.setattr(token_file, "read", lambda port: None)
    with pytest.raises(errors.OperationalError, match="credentials"):
        gpudb.connect(server.uri)


@pytest.mark.parametrize("uri", ["grpc://", "grpc://host/path", "grpc://host:port", "grpc://host?nope=1", "ftp://host"])
def test_an_address_that_is_none_is_an_interface_error(uri: str) -> None:
    with pytest.raises(errors.InterfaceError):
        gpudb.connect(uri)


def test_a_login_that_fails_leaves_no_connection_and_shows_no_password(server, monkeypatch) -> None:
    closed = []

    class Client(fl.FlightClient):
        def close(self) -> None:
            closed.append(self)
            super().close()

    monkeypatch.setattr(fl, "FlightClient", Client)
    with pytest.raises(errors.AuthenticationError) as caught:
        gpudb.connect(server.uri, user="ada", password="a secret password")
    assert len(closed) == 1 and "secret" not in str(caught.value)
    address = Address.of("grpc://ada:a%20secret@localhost:1?token=secret", None, None, None, None)
    assert (address.password, address.token) == ("a secret", "secret") and "secret" not in repr(address)


def test_a_session_that_is_closed_takes_no_rows(server) -> None:
    connection = gpudb.connect(server.uri)
    session = connection.session
    connection.close()
    with pytest.raises(errors.InterfaceError, match="the session is closed"):
        session.ingest("t", pa.table({"a": [1]}).to_reader(), "create", "main", None, 0)


def test_threads_share_a_connection(remote: gpudb.Connection) -> None:
    found = []

    def ask(number: int) -> None:
        cursor = remote.cursor()
        found.extend(cursor.execute("SELECT ? AS a FROM range(100)", [number]).fetchall())

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted((number,) for number in range(8) for _ in range(100))


SCRIPT = """.tables
.schema
.mode csv
.describe trips
SELECT carrier, sum(delay) AS s FROM trips GROUP BY carrier;
BEGIN; DELETE FROM trips; ROLLBACK;
SELECT count(*) FROM trips;
SELECT nope FROM trips;
.mode jsonlines
SELECT * FROM late;
DROP VIEW late; DROP TABLE trips;
"""
MADE = """CREATE TABLE trips (carrier VARCHAR DEFAULT 'UA', delay INTEGER);
INSERT INTO trips VALUES ('UA', 12), ('AA', -3), (NULL, NULL);
CREATE VIEW late (who, "how late") AS SELECT carrier, delay FROM trips WHERE delay > 0;
"""


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty home directory; compiled kernels stay where they are."""
    monkeypatch.setenv("XDG_CACHE_HOME", os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"))
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.usefixtures("home")
def test_the_shell_shows_what_it_shows_of_a_database_here(server, capfd, monkeypatch) -> None:
    shown = []
    for place in (":memory:", server.uri):
        monkeypatch.setattr(sys, "stdin", io.StringIO(MADE + SCRIPT))
        code = main([place])
        shown.append((code, *capfd.readouterr()))
    assert shown[1] == shown[0]
    assert shown[0][0] == 1 and "BindError: column not found: nope" in shown[0][2] and '"how late":12' in shown[0][1]


@pytest.mark.usefixtures("home")
def test_the_shell_sends_files_of_its_own_machine(server, capfd, monkeypatch, tmp_path) -> None:
    (tmp_path / "it's.csv").write_text("a,b\n1,x\n2,y\n")
    (tmp_path / "bad.csv").write_text("a,b\nx,1\n")
    lines = [f'.open "{server.uri}"', f'.import "{tmp_path}/it\'s.csv" sent', f'.import "{tmp_path}/it\'s.csv" sent']
    lines += [f'.import "{tmp_path}/bad.csv" sent', ".mode csv", "SELECT sum(a), max(b) FROM sent; DROP TABLE sent;"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(lines)))
    assert main([]) == 1
    out, err = capfd.readouterr()
    assert out == "sum(a),max(b)\n6,y\n"
    assert "the column a is BIGINT in the table" in err


@pytest.mark.usefixtures("home")
def test_the_shell_says_when_there_is_no_server(capfd) -> None:
    assert main(["grpc://127.0.0.1:1", "-c", "SELECT 1"]) == 2
    assert "OperationalError: the server cannot be reached" in capfd.readouterr().err


def test_sqlalchemy_reaches_a_server(server) -> None:
    place = server.uri.removeprefix("grpc://")
    engine = sa.create_engine(f"gpudb+flight://{place}")
    table = sa.Table("flown", sa.MetaData(), sa.Column("a", sa.Integer), sa.Column("b", sa.Numeric(9, 2)))
    table.create(engine)
    with engine.begin() as connection:
        connection.execute(table.insert(), [{"a": 1, "b": Decimal("1.50")}, {"a": 2, "b": None}])
        assert connection.execute(sa.select(table).order_by(table.c.a)).all() == [(1, Decimal("1.50")), (2, None)]
    again = sa.Table("flown", sa.MetaData(), autoload_with=engine)
    assert [str(column.type) for column in again.columns] == ["INTEGER", "DECIMAL(9, 2)"]
    with engine.connect() as connection:
        connection.execute(table.delete())
        connection.rollback()
        assert connection.execute(sa.select(sa.func.count()).select_from(table)).scalar() == 2
    table.drop(engine)
    engine.dispose()
    with_token = sa.create_engine(f"gpudb+flight://token:{server.token}@{place}?threads=1")
    with with_token.connect() as connection:
        assert connection.exec_driver_sql("SHOW threads").scalar() == "1"
    with_token.dispose()


def test_sqlalchemy_connects_anew_where_a_server_was_started_again(tmp_path: Path, server) -> None:
    path = str(tmp_path / "db")
    first = gpudb.server.serve(path, port=0)
    engine = sa.create_engine(first.uri.replace("grpc://", "gpudb+flight://"), pool_pre_ping=True)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE t AS SELECT 1 AS a")
    first.close()
    with pytest.raises(sa.exc.OperationalError, match="cannot be reached"):
        engine.connect()
    with gpudb.server.serve(path, port=first.port), engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT a FROM t").scalar() == 1
    engine.dispose()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """(certificate, key) for 127.0.0.1, signed by itself."""
    folder = tmp_path_factory.mktemp("tls")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost".split()
    command += ["-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except OSError as error:
        pytest.skip(f"no openssl to make a certificate with: {error}")
    return str(folder / "cert.pem"), str(folder / "key.pem")


def test_a_user_logs_in_over_tls(certificate: tuple[str, str], tmp_path: Path, server) -> None:
    cert, key = certificate
    database = str(tmp_path / "db")
    gpudb.connect(database).close()
    Users.of_database(database).add("ann", "secret word", "reader")
    with gpudb.server.serve(database, host="0.0.0.0", port=0, tls_cert=cert, tls_key=key) as other:
        uri = f"grpc+tls://127.0.0.1:{other.port}"
        with gpudb.connect(uri, user="ann", password="secret word", tls_root_certs=cert) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
            with pytest.raises(errors.AccessError):
                connection.execute("CREATE TABLE t (a INTEGER)")
        with pytest.raises(errors.AuthenticationError, match="credentials"):
            gpudb.connect(uri, user="ann", password="guess", tls_root_certs=cert)
        with pytest.raises(errors.OperationalError, match="cannot be reached"):
            gpudb.connect(uri, user="ann", password="secret word")  # nobody vouches for the server
        engine = sa.create_engine(
            f"gpudb+flight://ann:secret%20word@127.0.0.1:{other.port}", connect_args={"tls_root_certs": cert}
        )
        with pytest.raises(sa.exc.OperationalError), engine.connect():
            pass  # tls=true is missing
        engine = sa.create_engine(
            f"gpudb+flight://ann:secret%20word@127.0.0.1:{other.port}?tls=true&tls_root_certs={cert}"
        )
        with engine.connect() as connection:
            assert connection.exec_driver_sql("SELECT 2").scalar() == 2
        engine.dispose()


ENDLESS = "SELECT count(*) FROM range(300000) AS a(i), range(300000) AS b(j) WHERE (i * j) % 7 = 3"


def until(condition: Callable[[], Any], seconds: float = 20) -> Any:
    """What a condition gives once it is true."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)
    return found


def running(connection: gpudb.Connection) -> list[Any]:
    rows = connection.execute("SHOW QUERIES").fetchall()
    return [row for row in rows if row[4] == ENDLESS and row[2] == "running"]


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("who", [pytest.param("program", marks=pytest.mark.slow), "shell"])
def test_ctrl_c_stops_the_statement_at_the_server(server, remote: gpudb.Connection, who: str) -> None:
    script = "import sys, gpudb; gpudb.connect(sys.argv[1]).execute(sys.argv[2]).fetchall()"
    program = [sys.executable, "-c", script, server.uri, ENDLESS]
    shell = [sys.executable, "-m", "gpudb", server.uri, "-c", ENDLESS]
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # children of a script in the background ignore it
    try:
        with subprocess.Popen(program if who == "program" else shell, stderr=subprocess.PIPE, text=True) as process:
            until(lambda: running(remote))
            began = time.monotonic()
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=20)
            until(lambda: not running(remote))
            assert time.monotonic() - began < 5
    finally:
        signal.signal(signal.SIGINT, before)
    assert process.returncode == (130 if who == "shell" else -signal.SIGINT), err
    assert ("KeyboardInterrupt" in err) == (who == "program")


def test_cancel_and_progress_from_another_thread(remote: gpudb.Connection) -> None:
    caught: list[BaseException] = []

    def run() -> None:
        try:
            remote.execute(ENDLESS)
        except errors.Error as error:
            caught.append(error)

    assert remote.session.progress() is None
    thread = threading.Thread(target=run)
    thread.start()
    until(lambda: remote.session.progress() is not None)
    assert 0 <= (remote.session.progress() or 0) <= 1
    remote.cancel()
    thread.join(20)
    assert [type(error) for error in caught] == [errors.QueryCancelled]
    assert remote.execute("SELECT 1").fetchone() == (1,)


class Forgetful(fl.FlightServerBase):
    """A server that ends its streams without a word."""

    def do_action(self, context: Any, action: fl.Action) -> list[bytes]:
        return [b""]

    def get_flight_info(self, context: Any, descriptor: fl.FlightDescriptor) -> fl.FlightInfo:
        return fl.FlightInfo(self.rows.schema, descriptor, [fl.FlightEndpoint(b"ticket", [])], -1, -1)

    def do_get(self, context: Any, ticket: fl.Ticket) -> fl.FlightDataStream:
        return fl.RecordBatchStream(self.rows)

    rows = pa.table({"a": [1, 2, 3]})


def test_rows_without_their_end_are_an_error() -> None:
    with Forgetful("grpc://127.0.0.1:0") as server, gpudb.connect(f"grpc://127.0.0.1:{server.port}") as connection:
        cursor = connection.execute("SELECT 1")
        with pytest.raises(errors.OperationalError, match="broke off"):
            cursor.fetchall()


@pytest.mark.slow
def test_a_server_that_is_killed_is_an_error_in_the_middle_of_the_rows(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gpudb", "serve", str(tmp_path / "db"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = until(process.stdout.readline)
        uri = re.search(r"grpc://\S+", line)[0]
        connection = gpudb.connect(uri)
        reader = connection.execute("SELECT range AS a FROM range(30000000)").fetch_record_batch()
        assert reader.read_next_batch().num_rows > 0
        process.kill()
        with pytest.raises((errors.OperationalError, OSError)):
            while True:
                reader.read_next_batch()
    with pytest.raises(errors.OperationalError, match="cannot be reached"):
        connection.execute("SELECT 1")
    connection.close()
