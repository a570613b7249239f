"""Who may connect and what they may do: rows A, N14 and N16 of the fault list."""

from __future__ import annotations

import io
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi as adbc
import pyarrow as pa
import pyarrow.flight as fl
import pytest

import gpudb.server
from gpudb import errors, token_file
from gpudb.flight_sql import pack
from gpudb.server import user_command
from gpudb.server.flight import Server
from gpudb.server.users import AT_ONCE, FREE_FAILURES, Users

QUERY = fl.FlightDescriptor.for_command(pack("CommandStatementQuery", query="SELECT 1 AS a"))
CALLS = {
    fl.FlightMethod.HANDSHAKE: lambda client, options: client.authenticate_basic_token(secrets.token_hex(4), "x"),
    fl.FlightMethod.LIST_FLIGHTS: lambda client, options: list(client.list_flights(options=options)),
    fl.FlightMethod.GET_FLIGHT_INFO: lambda client, options: client.get_flight_info(QUERY, options),
    fl.FlightMethod.GET_SCHEMA: lambda client, options: client.get_schema(QUERY, options),
    fl.FlightMethod.DO_GET: lambda client, options: client.do_get(fl.Ticket(b"x"), options).read_all(),
    fl.FlightMethod.DO_PUT: lambda client, options: put(client, options),
    fl.FlightMethod.DO_ACTION: lambda client, options: list(client.do_action(fl.Action("CloseSession", b""), options)),
    fl.FlightMethod.LIST_ACTIONS: lambda client, options: list(client.list_actions(options)),
    fl.FlightMethod.DO_EXCHANGE: lambda client, options: exchange(client, options),
}
HEADERS = {
    "none": None,
    "empty": "",
    "garbage": "Bearer !$%",
    "wrong": "Bearer " + "x" * 43,
    "truncated": None,  # of the right one; set below
    "unsigned": "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.",
    "scheme": "Negotiate abc",
    "basic": "Basic !!!",
}


def put(client: fl.FlightClient, options: Any) -> None:
    writer, _ = client.do_put(QUERY, pa.schema([]), options)
    writer.done_writing()
    writer.close()


def exchange(client: fl.FlightClient, options: Any) -> None:
    writer, reader = client.do_exchange(QUERY, options)
    writer.done_writing()
    reader.read_all()


def options_with(header: str | None) -> fl.FlightCallOptions:
    return fl.FlightCallOptions(headers=[] if header is None else [(b"authorization", header.encode("latin-1"))])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database directory with three users, and a folder of files."""
    folder = tmp_path_factory.mktemp("served")
    gpudb.connect(folder / "db").close()
    users = Users.of_database(str(folder / "db"))
    for role in ("admin", "writer", "reader"):
        users.add(f"the {role}", f"{role} password", role)
    (folder / "files").mkdir()
    (folder / "files" / "in.csv").write_text("a\n1\n")
    (folder / "secret.csv").write_text("a\n2\n")
    (folder / "files" / "link.csv").symlink_to(folder / "secret.csv")
    return folder


@pytest.fixture(scope="module")
def served(folder: Path, runtime_folder: Path) -> Iterator[Server]:
    with gpudb.server.serve(
        str(folder / "db"), port=0, import_root=str(folder / "files"), export_root=str(folder / "files")
    ) as server:
        yield server


def login(server: Server, role: str) -> Any:
    options = {"username": f"the {role}", "password": f"{role} password"}
    return adbc.connect(server.uri, db_kwargs=options, autocommit=True)


def run(connection: Any, sql: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall() if cursor.description else cursor.rowcount


def test_A1_every_call_exists_in_the_list_that_is_tried() -> None:
    assert set(CALLS) == set(fl.FlightMethod) - {fl.FlightMethod.INVALID}


@pytest.mark.parametrize("method", CALLS, ids=lambda method: method.name)
def test_A1_no_call_works_without_the_right_credentials(server: Server, method: Any) -> None:
    with fl.connect(server.uri) as client:
        for name, header in HEADERS.items():
            header = f"Bearer {server.token}"[:-1] if name == "truncated" else header
            with pytest.raises((fl.FlightUnauthenticatedError, OSError), match="AuthenticationError: no valid cred"):
                CALLS[method](client, options_with(header))


def test_A1_a_bearer_token_of_a_login_works_and_ends_with_its_user(folder: Path, served: Server) -> None:
    users = Users.of_database(str(folder / "db"))
    users.add("passing", "passing password", "writer")
    with fl.connect(served.uri) as client:
        options = fl.FlightCallOptions(headers=[client.authenticate_basic_token("passing", "passing password")])
        assert client.get_schema(QUERY, options).schema.names == ["a"]
        users.remove("passing")
        with pytest.raises(OSError, match="AuthenticationError"):  # A3: on a session that is open
            client.get_schema(QUERY, options)


def test_A2_guessing_a_password_waits_after_five_failures(tmp_path: Path) -> None:
    users = Users(tmp_path / "users.json")
    users.add("ada", "right password", "reader")
    assert users.check("ada", "right password") == "reader"
    for _ in range(5):
        assert users.check("ada", "wrong password") is None
    with pytest.raises(errors.UnavailableError, match="too many wrong passwords"):
        users.check("ada", "right password")
    assert users.check("nobody", "right password") is None


def test_A2_guesses_that_come_at_the_same_time_are_counted_each(tmp_path: Path) -> None:
    users = Users(tmp_path / "users.json")
    users.add("ada", "right password", "reader")

    def guess(_: int) -> bool:
        """Whether the password was looked at."""
        try:
            return users.check("ada", "wrong password") is None
        except errors.UnavailableError:
            return False

    with ThreadPoolExecutor(40) as threads:
        assert sum(threads.map(guess, range(200))) <= FREE_FAILURES + AT_ONCE


def test_A2_a_password_is_kept_as_a_hash_in_a_file_of_its_user(tmp_path: Path) -> None:
    users = Users(tmp_path / "users.json")
    users.add("ada", "a secret of ours", "reader")
    assert "secret" not in (tmp_path / "users.json").read_text()
    assert (tmp_path / "users.json").stat().st_mode & 0o777 == 0o600


def test_A5_tickets_and_handles_of_others_are_not_found(served: Server) -> None:
    with fl.connect(served.uri) as client:
        headers = [client.authenticate_basic_token(f"the {r}", f"{r} password") for r in ("admin", "writer")]
        mine, theirs = (fl.FlightCallOptions(headers=[header]) for header in headers)
        ticket = client.get_flight_info(QUERY, mine).endpoints[0].ticket
        with pytest.raises(fl.FlightServerError, match="ticket not found"):
            client.do_get(ticket, theirs).read_all()
        edited = ticket.ticket[:-1] + bytes([ticket.ticket[-1] ^ 1])
        with pytest.raises(fl.FlightServerError, match="ticket not found"):  # A4
            client.do_get(fl.Ticket(edited), mine).read_all()
        assert client.do_get(ticket, mine).read_all().num_rows == 1
        action = fl.Action("CreatePreparedStatement", pack("ActionCreatePreparedStatementRequest", query="SELECT 1"))
        handle = next(iter(client.do_action(action, mine))).body.to_pybytes()[-18:-2]
        stolen = fl.FlightDescriptor.for_command(
            pack("CommandPreparedStatementQuery", prepared_statement_handle=handle)
        )
        with pytest.raises(fl.FlightServerError, match="prepared statement not found"):  # A6
            client.get_flight_info(stolen, theirs)


def test_A9_files_are_read_below_the_root_only(folder: Path, served: Server) -> None:
    with login(served, "admin") as connection:
        assert run(connection, "SELECT a FROM 'in.csv'") == [(1,)]
        assert run(connection, "SELECT a FROM read_csv('*n.csv')") == [(1,)]
        assert run(connection, f"SELECT a FROM '{folder}/files/in.csv'") == [(1,)]
        for path in (
            "../secret.csv",
            f"{folder}/secret.csv",
            "link.csv",
            "*.csv",  # one of them is the link
            "x/../../secret.csv",
            "../*.csv",
            "*/../../secret.csv",
            "/etc/passwd",
            "/proc/self/environ",
            "/etc/*",
            f"{folder}/files2/in.csv",
            "~/.bashrc/../../etc/passwd",
        ):
            for statement in (f"SELECT * FROM '{path}'", f"SELECT * FROM read_csv('{path}')"):
                with pytest.raises(
                    Exception, match=r"AccessError: the path is not under|file not found|no files match"
                ):
                    run(connection, statement)
        run(connection, "CREATE TABLE copied(a INTEGER)")
        with pytest.raises(Exception, match="AccessError"):
            run(connection, "COPY copied FROM '../secret.csv'")
        with pytest.raises(Exception, match=r"NotSupportedError|AccessError|not found"):
            run(connection, "SELECT * FROM 'https://example.com/f.csv'")


def test_A9_a_refusal_does_not_tell_whether_there_is_such_a_file(served: Server) -> None:
    with login(served, "admin") as connection:
        said = []
        for path in ("/etc/passwd", "/etc/passwe"):
            with pytest.raises(Exception, match="AccessError") as caught:
                run(connection, f"SELECT * FROM '{path}'")
            said.append(str(caught.value).replace(path, "PATH"))
        assert said[0] == said[1]


def test_A10_files_are_made_below_the_root_and_none_is_replaced(folder: Path, served: Server) -> None:
    with login(served, "admin") as connection:
        run(connection, "COPY (SELECT 7 AS a) TO 'out.csv'")
        assert (folder / "files" / "out.csv").read_text() == "a\n7\n"
        with pytest.raises(Exception, match="the file exists, and is not replaced"):
            run(connection, "COPY (SELECT 8 AS a) TO 'out.csv'")
        for path in ("../out.csv", f"{folder}/db/users.json", "/tmp/out.csv"):
            with pytest.raises(Exception, match="AccessError"):
                run(connection, f"COPY (SELECT 8 AS a) TO '{path}'")


def test_A9_without_a_root_no_file_is_read_or_made(sql: Any, tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("a\n1\n")
    for statement in (f"SELECT * FROM '{tmp_path}/f.csv'", f"COPY (SELECT 1) TO '{tmp_path}/g.csv'"):
        with pytest.raises(Exception, match="AccessError: statements may not"):
            sql(statement)
    assert sorted(os.listdir(tmp_path)) == ["f.csv"]


def test_A11_a_reader_changes_nothing(folder: Path, served: Server) -> None:
    with login(served, "writer") as connection:
        run(connection, "CREATE TABLE kept AS SELECT 1 AS a")
    with login(served, "reader") as connection:
        for statement in (
            "INSERT INTO kept VALUES (2)",
            "INSERT INTO kept VALUES (2) RETURNING a",
            "UPDATE kept SET a = 3",
            "DELETE FROM kept",
            "TRUNCATE kept",
            "DROP TABLE kept",
            "ALTER TABLE kept ADD COLUMN b INTEGER",
            "CREATE TABLE other AS SELECT 1 AS a",
            "CREATE VIEW v AS SELECT 1 AS a",
            "CREATE SCHEMA s",
            "COPY kept FROM 'in.csv'",
            "COPY (SELECT 1) TO 'reader.csv'",
        ):
            with pytest.raises(Exception, match="AccessError: the user may only read"):
                run(connection, statement)
        assert run(connection, "SELECT * FROM kept") == [(1,)]
        assert run(connection, "SELECT count(*) FROM 'in.csv'") == [(1,)]
    assert not (folder / "files" / "reader.csv").exists()


@pytest.mark.parametrize(
    "options, message",
    [
        ({"host": "0.0.0.0"}, "would send passwords in clear text"),
        ({"host": "0.0.0.0", "tls_cert": "CERT"}, "TLS needs a certificate and its key"),
        ({"host": "0.0.0.0", "tls_cert": "CERT", "tls_key": "CERT"}, "the database has no users"),
        ({"tls_cert": "/nowhere", "tls_key": "/nowhere"}, "cannot read the file for TLS"),
        ({"import_root": "/nowhere"}, "the root for files is not a folder"),
    ],
)
def test_A14_a_server_that_would_not_be_safe_does_not_start(
    tmp_path: Path, options: dict[str, str], message: str
) -> None:
    (tmp_path / "cert").write_text("not looked at")
    options = {name: str(tmp_path / "cert") if value == "CERT" else value for name, value in options.items()}
    with pytest.raises(errors.OperationalError, match=message):
        gpudb.server.serve(str(tmp_path / "db"), port=0, **options)


def test_A14_insecure_warns_and_lets_everybody_in(caplog: pytest.LogCaptureFixture) -> None:
    with gpudb.server.serve(port=0, insecure=True) as server, adbc.connect(server.uri, autocommit=True) as connection:
        assert run(connection, "SELECT 1") == [(1,)]
        assert "every client is an administrator" in caplog.text


def test_a_token_is_left_for_clients_of_the_same_user_and_removed_at_the_end() -> None:
    with gpudb.server.serve(port=0) as server:
        path = token_file.path(server.port)
        assert token_file.read(server.port) == server.token
        assert path.stat().st_mode & 0o777 == 0o600
    assert not path.exists()


def test_a_folder_of_tokens_that_others_may_write_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run").chmod(0o777)
    monkeypatch.setenv("GPUDB_RUNTIME_DIR", str(tmp_path / "run"))
    for _ in range(2):  # the second would find the database locked if the first had left a server behind
        with pytest.raises(errors.OperationalError, match="others may write the folder of tokens"):
            gpudb.server.serve(str(tmp_path / "db"), port=0)


def test_what_cannot_be_served_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("a")
    with pytest.raises(errors.Error, match="file"):
        gpudb.server.serve(str(tmp_path / "file"), port=0)
    monkeypatch.setenv("GPUDB_RUNTIME_DIR", str(tmp_path / "file" / "run"))
    with pytest.raises(errors.OperationalError, match="cannot make the folder of tokens"):
        gpudb.server.serve(port=0)


def test_users_that_cannot_be_written_or_read_are_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(errors.OperationalError, match="cannot write the file of users: No such file"):
        Users(tmp_path / "missing" / "users.json").add("ada", "a password", "reader")
    (tmp_path / "users.json").symlink_to("users.json")
    with pytest.raises(errors.OperationalError, match="cannot read the file of users: Too many levels"):
        Users(tmp_path / "users.json").all()


def test_a_port_that_is_taken_is_a_clear_error(server: Server) -> None:
    with pytest.raises(errors.OperationalError, match=r"cannot listen at 127\.0\.0\.1"):
        gpudb.server.serve(port=server.port)


def test_N14_no_error_has_a_traceback_or_a_path_of_the_server(folder: Path, served: Server) -> None:
    texts = []
    options = options_with(f"Bearer {served.token}")
    with fl.connect(served.uri) as client:
        for call in (
            lambda: client.get_flight_info(fl.FlightDescriptor.for_command(b"SELECT * FROM 'nope.csv'"), options),
            lambda: client.get_flight_info(fl.FlightDescriptor.for_command(b"SELEC"), options),
            lambda: client.get_flight_info(fl.FlightDescriptor.for_command(b"\xff\xfe"), options),
            lambda: client.get_flight_info(fl.FlightDescriptor.for_path("a", "b", "c"), options),
            lambda: client.get_flight_info(fl.FlightDescriptor.for_path(b"\xff"), options),
            lambda: client.do_get(fl.Ticket(b"\xff"), options).read_all(),
            lambda: client.do_get(fl.Ticket(pack("TicketStatementQuery")), options).read_all(),
            lambda: list(client.do_action(fl.Action("nope", b""), options)),
            lambda: list(client.do_action(fl.Action("CreatePreparedStatement", b"\xff"), options)),
            lambda: exchange(client, options),
            lambda: put(client, options),
        ):
            with pytest.raises(fl.FlightError) as caught:
                call()
            texts.append(str(caught.value))
    assert len(texts) == 11
    for text in texts:
        assert "Traceback" not in text and ".py" not in text and str(folder) not in text, text


@pytest.mark.parametrize("sql", ["SELECT path FROM duckdb_databases()", "SELECT file FROM pragma_database_list"])
def test_N14_no_listing_has_a_path_of_the_server(served: Server, sql: str) -> None:
    with login(served, "reader") as connection:
        assert run(connection, sql) == [(None,)]


def test_N14_a_mistake_of_ours_is_told_by_a_number_only(
    server: Server, options: fl.FlightCallOptions, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(gpudb.server.flight.Session, "describe", lambda *_: {}["/a/secret/path"])
    with fl.connect(server.uri) as client, pytest.raises(fl.FlightInternalError) as caught:
        client.get_flight_info(QUERY, options)
    assert "secret" not in str(caught.value) and "internal error; the server's log has it under" in str(caught.value)
    assert "/a/secret/path" in caplog.text


@pytest.mark.parametrize("rounds", [60, pytest.param(1_700, marks=pytest.mark.slow)])
def test_N16_malformed_requests_are_refused_and_the_server_lives(
    server: Server, options: fl.FlightCallOptions, sample_seed: int, rounds: int
) -> None:
    import random

    chance = random.Random(sample_seed)
    good = [
        QUERY.command,
        pack("CommandGetTables", include_schema=True, table_types=["TABLE"]),
        pack("TicketStatementQuery", statement_handle=b"x" * 16),
        pack("ActionCreatePreparedStatementRequest", query="SELECT 1"),
        pack("CommandStatementIngest", table="t", options=[{"key": "gpudb.end", "value": "true"}]),
    ]
    names = [action.type for action in fl.connect(server.uri).list_actions(options)] + ["nope", ""]
    schema = pa.schema([("a", pa.int64())])
    headers = [(b"authorization", f"Bearer {server.token}".encode())]
    bounded = fl.FlightCallOptions(headers=headers, timeout=30.0)

    def put(client: fl.FlightClient, body: bytes) -> None:
        writer, _ = client.do_put(fl.FlightDescriptor.for_command(body), schema, bounded)
        writer.done_writing()
        writer.close()

    with fl.connect(server.uri) as client:
        for _ in range(rounds):
            data = bytearray(chance.choice(good))
            for _ in range(chance.randint(1, 4)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            body = bytes(data[: chance.randint(0, len(data))]) if chance.random() < 0.3 else bytes(data)
            for call in (
                lambda body=body: client.get_flight_info(fl.FlightDescriptor.for_command(body), bounded),
                lambda body=body: client.do_get(fl.Ticket(body), bounded).read_all(),
                lambda body=body: list(client.do_action(fl.Action(chance.choice(names), body), bounded)),
                lambda body=body: put(client, body),
            ):
                try:
                    call()
                except fl.FlightTimedOutError as error:
                    raise AssertionError(f"it hangs: {body!r}") from error
                except fl.FlightError as error:
                    for never in ("Traceback", "InternalError", ".py"):
                        assert never not in str(error), (body, str(error))
        assert client.get_schema(QUERY, options).schema.names == ["a"]


def test_users_are_managed_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    database = str(tmp_path / "db")
    monkeypatch.setattr(sys, "stdin", io.StringIO("a long password\n"))
    assert user_command.main(["add", database, "ada", "--role", "writer"]) == 0
    assert Users.of_database(database).check("ada", "a long password") == "writer"
    assert user_command.main(["list", database]) == 0
    assert capsys.readouterr().out == "ada\twriter\n"
    assert user_command.main(["remove", database, "ada"]) == 0
    assert user_command.main(["remove", database, "ada"]) == 1
    assert "there is no such user: ada" in capsys.readouterr().err


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """(certificate, key) for 127.0.0.1, signed by itself."""
    folder = tmp_path_factory.mktemp("tls")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost".split()
    command += ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    command += ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no openssl to make a certificate with: {error}")
    return str(folder / "cert.pem"), str(folder / "key.pem")


def test_A15_tls_with_a_user_serves_other_machines(folder: Path, certificate: tuple[str, str], tmp_path: Path) -> None:
    cert, key = certificate
    gpudb.connect(tmp_path / "db").close()
    Users.of_database(str(tmp_path / "db")).add("ada", "a long password", "reader")
    with gpudb.server.serve(str(tmp_path / "db"), host="0.0.0.0", port=0, tls_cert=cert, tls_key=key) as server:
        assert server.token is None
        uri = f"grpc+tls://127.0.0.1:{server.port}"
        trusted = {"adbc.flight.sql.client_option.tls_root_certs": Path(cert).read_text()}
        login = {"username": "ada", "password": "a long password"}
        with adbc.connect(uri, db_kwargs={**trusted, **login}, autocommit=True) as connection:
            assert run(connection, "SELECT 1") == [(1,)]
        with pytest.raises(adbc.Error):  # who does not know the certificate refuses it
            adbc.connect(uri, db_kwargs=login, autocommit=True)
        with pytest.raises(OSError, match="Unavailable"), fl.connect(f"grpc://127.0.0.1:{server.port}") as client:
            client.get_schema(QUERY, timeout_of(5))


def timeout_of(seconds: float) -> fl.FlightCallOptions:
    return fl.FlightCallOptions(timeout=seconds)
