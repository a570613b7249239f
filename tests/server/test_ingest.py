"""Rows that clients send: rows N1 to N5, N15 and N17 of the fault list."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl
import pytest

import gpudb
import gpudb.server
from gpudb.errors import UnavailableError
from gpudb.flight_sql import END_MARKER, PRODUCER, SEQUENCE, end_marker, pack, parse, unpack
from gpudb.ingest import Arrival, Numbered, Target, ingest
from gpudb.server.flight import Server
from gpudb.server.group_commit import GroupCommitter
from gpudb.session import Database, Session

Sql = Callable[..., Any]
CREATE, APPEND, REPLACE, CREATE_APPEND = (1, 1), (2, 2), (1, 3), (1, 2)


def descriptor(table: str, mode: tuple[int, int] = CREATE_APPEND, **options: str) -> fl.FlightDescriptor:
    definition = {"if_not_exist": mode[0], "if_exists": mode[1]}
    entries = [{"key": key, "value": value} for key, value in options.items()]
    return fl.FlightDescriptor.for_command(
        pack("CommandStatementIngest", table=table, table_definition_options=definition, options=entries)
    )


def send(
    client: fl.FlightClient,
    options: fl.FlightCallOptions,
    where: fl.FlightDescriptor,
    batches: list[pa.RecordBatch],
    marker: int | None = None,
) -> int:
    """Send batches, and perhaps the marker of their end; the rows that the server says it took in."""
    writer, reader = client.do_put(where, batches[0].schema, options)
    for batch in batches:
        writer.write_batch(batch)
    if marker is not None:
        writer.write_metadata(end_marker(marker))
    writer.done_writing()
    answer = reader.read()
    writer.close()
    return parse("DoPutUpdateResult", answer.to_pybytes()).record_count


@pytest.fixture
def put(flight: fl.FlightClient, options: fl.FlightCallOptions) -> Callable[..., int]:
    return lambda *arguments, **named: send(flight, options, *arguments, **named)


ROWS = pa.record_batch({"a": pa.array([1, 2, None], pa.int64()), "b": ["x", None, "z"]})


def test_adbc_creates_appends_and_replaces(connect: Callable[..., Any], sql: Sql) -> None:
    table = pa.Table.from_batches([ROWS])
    with connect().cursor() as cursor:
        assert cursor.adbc_ingest("taken", table, mode="create") == 3
        assert cursor.adbc_ingest("taken", table, mode="append") == 3
        with pytest.raises(Exception, match="CatalogError: table already exists: taken"):
            cursor.adbc_ingest("taken", table, mode="create")
        with pytest.raises(Exception, match="CatalogError: table not found: never"):
            cursor.adbc_ingest("never", table, mode="append")
        assert sql("SELECT count(*), sum(a)::INTEGER FROM taken") == [(6, 6)]
        assert cursor.adbc_ingest("taken", pa.table({"c": [9]}), mode="replace") == 1
        assert sql("SELECT * FROM taken") == [(9,)]
        assert cursor.adbc_ingest("taken", pa.table({"c": [10]}), mode="create_append") == 1
        assert sql("SELECT sum(c)::INTEGER FROM taken") == [(19,)]


def test_pandas_and_polars_write_tables(connect: Callable[..., Any], sql: Sql) -> None:
    import pandas
    import polars

    pandas.DataFrame({"n": [1, 2], "t": ["x", "y"]}).to_sql("from_pandas", connect(), index=False)
    assert sql("SELECT * FROM from_pandas") == [(1, "x"), (2, "y")]
    frame = polars.DataFrame({"n": [1, 2], "t": ["x", "y"]})
    frame.write_database("from_polars", connect(), engine="adbc")
    assert sql("SELECT * FROM from_polars") == [(1, "x"), (2, "y")]
    assert polars.read_database("SELECT * FROM from_polars", connect()).equals(frame)


def test_rows_go_into_a_schema_and_a_transaction(connect: Callable[..., Any], sql: Sql) -> None:
    sql("CREATE SCHEMA inner_schema")
    connection = connect(autocommit=False)
    with connection.cursor() as cursor:
        cursor.adbc_ingest("placed", pa.Table.from_batches([ROWS]), mode="create", db_schema_name="inner_schema")
        with pytest.raises(Exception, match="not found"):
            sql("SELECT * FROM inner_schema.placed")
        connection.commit()
        assert sql("SELECT count(*) FROM inner_schema.placed") == [(3,)]
        cursor.adbc_ingest("placed", pa.Table.from_batches([ROWS]), mode="append", db_schema_name="inner_schema")
        cursor.execute("SELECT count(*) FROM inner_schema.placed")
        assert cursor.fetchall() == [(6,)]
        connection.rollback()
        assert sql("SELECT count(*) FROM inner_schema.placed") == [(3,)]


def test_plain_flight_puts_rows_into_a_table_by_its_path(put: Callable[..., int], sql: Sql) -> None:
    assert put(fl.FlightDescriptor.for_path("put"), [ROWS, ROWS]) == 6
    assert put(fl.FlightDescriptor.for_path("put"), [ROWS]) == 3
    assert sql("SELECT count(*), count(a) FROM put") == [(9, 6)]


def test_N2_a_stream_without_its_marker_leaves_nothing(put: Callable[..., int], sql: Sql) -> None:
    where = descriptor("marked", **{END_MARKER: "true"})
    for marker in (None, 2, 4):
        with pytest.raises(fl.FlightServerError, match="OperationalError: the stream broke off: 3 rows came"):
            put(where, [ROWS], marker=marker)
    with pytest.raises(Exception, match="not found"):
        sql("SELECT * FROM marked")
    assert put(where, [ROWS], marker=3) == 3
    assert sql("SELECT count(*) FROM marked") == [(3,)]


CLIENT = """
import sys, time, pyarrow as pa, pyarrow.flight as fl
uri, header, command, rows = sys.argv[1], sys.argv[2].encode(), bytes.fromhex(sys.argv[3]), int(sys.argv[4])
batch = pa.record_batch({"a": pa.array(range(rows), pa.int64()), "b": ["x"] * rows})
options = fl.FlightCallOptions(headers=[(b"authorization", header)])
writer, _ = fl.connect(uri).do_put(fl.FlightDescriptor.for_command(command), batch.schema, options)
for _ in range(5):
    writer.write_batch(batch)
print("sent", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("with_marker", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_N1_a_client_that_is_killed_leaves_nothing(server: Server, sql: Sql, with_marker: bool) -> None:
    sql("CREATE OR REPLACE TABLE killed(a BIGINT, b VARCHAR)")
    command = descriptor("killed", APPEND, **({END_MARKER: "true"} if with_marker else {})).command.hex()
    arguments = [sys.executable, "-c", CLIENT, server.uri, f"Bearer {server.token}", command, "1000"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None and client.stdout.readline() == "sent\n"
        client.send_signal(signal.SIGKILL)
    time.sleep(0.3)
    assert sql("SELECT count(*) FROM killed") == [(0,)]


@pytest.mark.parametrize(
    "rows, message",
    [
        ({"a": [1]}, r"missing: b"),
        ({"a": [1], "b": ["x"], "c": [2]}, r"not in the table: c"),
        ({"a": [1], "renamed": ["x"]}, r"missing: b; not in the table: renamed"),
        ({"a": ["1"], "b": ["x"]}, r"the column a is BIGINT in the table, and string in the rows"),
        ({"a": [1], "b": [2]}, r"the column b is VARCHAR in the table, and int64 in the rows"),
        ({"a": [1.5], "b": ["x"]}, r"does not fit BIGINT"),
        ({"a": [b"1"], "b": ["x"]}, r"the column a is BIGINT in the table, and binary in the rows"),
        ({"a": [[1]], "b": ["x"]}, r"columns of this Arrow type are not supported"),
    ],
)
def test_N15_rows_that_do_not_fit_are_refused_with_the_difference(
    put: Callable[..., int], sql: Sql, rows: dict[str, list[Any]], message: str
) -> None:
    sql("CREATE OR REPLACE TABLE strict(a BIGINT, b VARCHAR)")
    with pytest.raises(fl.FlightServerError, match=message):
        put(descriptor("strict", APPEND), [pa.record_batch(rows)])
    assert sql("SELECT count(*) FROM strict") == [(0,)]


def test_N15_order_and_case_of_columns_are_free_and_exact_values_are_widened(put: Callable[..., int], sql: Sql) -> None:
    sql("CREATE OR REPLACE TABLE lenient(a BIGINT, b VARCHAR, c DOUBLE, d DECIMAL(10, 2))")
    rows = {"D": pa.array([5], pa.int8()), "B": pa.array(["x"]).dictionary_encode(), "C": [2.0], "A": [1.0]}
    assert put(descriptor("lenient", APPEND), [pa.record_batch(rows)]) == 1
    assert sql("SELECT a, b, c, d::VARCHAR FROM lenient") == [(1, "x", 2.0, "5.00")]


def crafted() -> Iterator[tuple[str, pa.Array]]:
    """Arrays whose structure is right and whose contents are not."""
    offsets = pa.py_buffer(np.array([0, 1, 100], np.int32).tobytes())
    yield "offsets", pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"xy" + b"z" * 98)])
    down = pa.py_buffer(np.array([0, 2, 1], np.int32).tobytes())
    yield "falling offsets", pa.Array.from_buffers(pa.string(), 2, [None, down, pa.py_buffer(b"xy")])
    two = pa.py_buffer(np.array([0, 1, 2], np.int32).tobytes())
    yield "UTF-8", pa.Array.from_buffers(pa.string(), 2, [None, two, pa.py_buffer(b"\xff\xfe")])
    indices = pa.array([0, 7], pa.int32())
    yield "dictionary index", pa.DictionaryArray.from_arrays(indices, pa.array(["x"]), safe=False)
    huge = pa.py_buffer(b"\xff" * 15 + b"\x7f" + b"\0" * 16)
    yield "decimal", pa.Array.from_buffers(pa.decimal128(3, 0), 2, [None, huge])


@pytest.mark.parametrize("name, array", [pytest.param(*one, id=one[0]) for one in crafted() if one[0] != "offsets"])
def test_N4_contents_that_are_not_what_the_type_says_are_refused(
    put: Callable[..., int], sql: Sql, name: str, array: pa.Array
) -> None:
    with pytest.raises(fl.FlightServerError, match="DataError: the rows are not valid Arrow"):
        put(descriptor("hostile"), [pa.record_batch({"a": array})])
    with pytest.raises(Exception, match="not found"):
        sql("SELECT * FROM hostile")


@pytest.mark.parametrize("command", ["CommandPreparedStatementQuery", "CommandPreparedStatementUpdate"])
def test_N4_parameters_that_are_not_what_their_type_says_are_refused(
    flight: fl.FlightClient, options: fl.FlightCallOptions, command: str
) -> None:
    request = pack("ActionCreatePreparedStatementRequest", query="SELECT ?")
    (answer,) = flight.do_action(fl.Action("CreatePreparedStatement", request), options)
    handle = unpack(answer.body.to_pybytes())[1].prepared_statement_handle
    where = fl.FlightDescriptor.for_command(pack(command, prepared_statement_handle=handle))
    for name, array in crafted():
        if name == "offsets":  # pyarrow's client does not send it
            continue
        with pytest.raises(fl.FlightServerError, match="DataError: the rows are not valid Arrow"):
            send(flight, options, where, [pa.record_batch({"1": array})])


def mutated_streams(rounds: int, seed: int) -> Iterator[bytes]:
    chance = random.Random(seed)
    batch = pa.record_batch(
        {
            "i": pa.array(range(50), pa.int32()),
            "t": [None if n % 7 == 0 else "é" * (n % 5) for n in range(50)],
            "d": pa.array(["x", "y"] * 25).dictionary_encode(),
            "f": [n / 3 for n in range(50)],
            "b": [n % 2 == 0 for n in range(50)],
        }
    )
    for codec in (None, "zstd", "lz4"):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
            writer.write_batch(batch)
        whole = sink.getvalue().to_pybytes()
        for _ in range(rounds):
            data = bytearray(whole)
            for _ in range(chance.randint(1, 6)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            yield bytes(data[: chance.randint(8, len(data))]) if chance.random() < 0.1 else bytes(data)


MUTANTS = """
import sys, pyarrow as pa
from gpudb.errors import Error
from gpudb.ingest import Target, ingest
from gpudb.session import Database, Session
from tests.server.test_ingest import mutated_streams
database = Database()
taken = refused = 0
for number, data in enumerate(mutated_streams(int(sys.argv[1]), int(sys.argv[2]))):
    try:
        reader = pa.ipc.open_stream(data)
        ingest(Session(database), Target("t", "create", "replace"), reader.schema, reader)
        Session(database).execute("SELECT count(*), count(DISTINCT t), max(t) FROM t").table()
        taken += 1
    except (Error, pa.ArrowException, OSError, EOFError, MemoryError, UnicodeDecodeError):
        refused += 1
print(taken, refused)
"""


def no_crash(rounds: int, seed: int) -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", MUTANTS, str(rounds), str(seed)],
        capture_output=True,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert sum(map(int, done.stdout.split())) == 3 * rounds


def test_N3_mutated_streams_end_in_errors_and_never_in_a_crash(sample_seed: int) -> None:
    no_crash(15, sample_seed)


@pytest.mark.parametrize(
    "kind", [pa.int32(), pa.uint64(), pa.float64(), pa.decimal128(30, 2), pa.string(), pa.binary(), "dictionary"]
)
def test_N3_a_buffer_may_end_in_the_middle_of_a_value_that_is_none(kind: Any) -> None:
    wanted = [b"xy", b"z"] if kind == pa.binary() else ["xy", "z"] if kind in (pa.string(), "dictionary") else [1, 2]
    whole = pa.array(wanted).dictionary_encode() if kind == "dictionary" else pa.array(wanted, kind)
    longer = [None if one is None else pa.py_buffer(one.to_pybytes() + b"abc") for one in whole.buffers()]
    if kind == "dictionary":
        indices = pa.Array.from_buffers(pa.int32(), 2, longer[:2])
        array = pa.DictionaryArray.from_arrays(indices, whole.dictionary)
    else:
        array = pa.Array.from_buffers(kind, 2, longer)
    batch = pa.record_batch({"a": array})
    session = Session(Database())
    ingest(session, Target("t", "create", "replace"), batch.schema, iter([batch, batch.slice(1)]))
    found = session.execute("SELECT a FROM t").table().column("a").to_pylist()
    assert found == pa.array([*wanted, wanted[1]], whole.type if kind != "dictionary" else None).to_pylist()


@pytest.mark.slow
def test_N3_twenty_thousand_mutated_streams(sample_seed: int) -> None:
    no_crash(6_700, sample_seed)


def test_N5_extension_types_bring_no_code_with_them(put: Callable[..., int], sql: Sql) -> None:
    # The shape of CVE-2023-47248: a type whose metadata is a pickle that runs a command when it is loaded.
    metadata = {
        "ARROW:extension:name": "arrow.py_extension_type",
        "ARROW:extension:metadata": b"cos\nsystem\n(S'true'\ntR.",
    }
    schema = pa.schema([pa.field("a", pa.int64(), metadata=metadata)])
    assert put(descriptor("extended"), [pa.record_batch([pa.array([1])], schema=schema)]) == 1
    assert sql("SELECT a FROM extended") == [(1,)]
    root = Path(__file__).parents[2]
    for path in [*(root / "server").glob("*.py"), root / "gpudb" / "flight_sql.py", root / "gpudb" / "ingest.py"]:
        text = path.read_text()
        assert "pickle" not in text and "eval(" not in text and "exec(" not in text, path


def test_N6_a_batch_that_is_too_large_once_unpacked_is_refused(
    put: Callable[..., int], sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpudb.server.ingest, "LARGEST_BATCH", 1 << 20)
    with pytest.raises(fl.FlightServerError, match="a batch is too large: 1,600,000 bytes"):
        put(descriptor("bomb"), [pa.record_batch({"a": np.zeros(200_000, np.int64)})])


def test_N17_a_number_that_was_used_adds_no_rows_a_second_time(put: Callable[..., int], sql: Sql) -> None:
    def numbered(sequence: int) -> fl.FlightDescriptor:
        return descriptor("numbered", **{PRODUCER: "sender", SEQUENCE: str(sequence)})

    assert put(numbered(1), [ROWS]) == 3
    assert put(numbered(1), [ROWS]) == 3  # acknowledged, and not added
    assert put(numbered(2), [ROWS]) == 3
    assert put(numbered(1), [ROWS]) == 3
    assert sql("SELECT count(*) FROM numbered") == [(6,)]
    with pytest.raises(fl.FlightServerError, match="ConflictError: other rows were sent under this number: sender 2"):
        put(numbered(2), [ROWS.slice(1)])
    assert sql("SELECT count(*) FROM numbered") == [(6,)]


def test_N18_a_number_outlives_the_server(tmp_path: Path) -> None:
    for _ in range(3):
        with gpudb.server.serve(str(tmp_path / "db"), port=0) as server, fl.connect(server.uri) as client:
            options = fl.FlightCallOptions(headers=[(b"authorization", f"Bearer {server.token}".encode())])
            where = descriptor("kept", **{PRODUCER: "sender", SEQUENCE: "1"})
            assert send(client, options, where, [ROWS]) == 3
    with gpudb.connect(tmp_path / "db") as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (3,)


def test_many_writers_of_one_table_lose_nothing(server: Server, options: fl.FlightCallOptions, sql: Sql) -> None:
    failed = []

    def write(number: int) -> None:
        with fl.connect(server.uri) as client:
            for _ in range(5):
                try:
                    send(client, options, descriptor("shared"), [ROWS])  # the first of them makes the table
                except fl.FlightError as error:
                    failed.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert sql("SELECT count(*) FROM shared") == [(8 * 5 * 3,)]


def test_of_a_group_only_those_fail_that_cannot_be_kept() -> None:
    database = Database()
    committer = GroupCommitter(database)
    target, schema = Target("t", "create", "append"), ROWS.schema
    committer.commit(Arrival(target, schema, [ROWS]))
    good = [Arrival(target, schema, [ROWS], Numbered("p", n), f"{n}") for n in range(1, 4)]
    other = pa.record_batch({"a": [1], "c": [2]})
    bad = Arrival(target, other.schema, [other])
    again = Arrival(target, schema, [ROWS], Numbered("p", 3), "3")
    clash = Arrival(target, schema, [ROWS], Numbered("p", 3), "of other rows")
    committer._commit([*good, bad, again, clash])
    assert [one.error for one in (*good, again)] == [None] * 4
    assert "not in the table: c" in str(bad.error) and "other rows were sent" in str(clash.error)
    assert Session(database).execute("SELECT count(*) FROM t").table().column(0).to_pylist() == [12]
    committer.close()
    with pytest.raises(UnavailableError):
        committer.commit(Arrival(target, schema, [ROWS]))


def test_a_stream_too_large_for_a_group_goes_in_by_itself(
    put: Callable[..., int], sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpudb.server.flight, "GROUPED_BYTES", 100)
    where = descriptor("large", **{PRODUCER: "large", SEQUENCE: "1"})
    for _ in range(2):
        assert put(where, [ROWS] * 5) == 15
    assert sql("SELECT count(*) FROM large") == [(15,)]


class Victim:
    """A server in a process of its own that is killed again and again; always at the same port once it has one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = 0
        self.start()

    def start(self) -> None:
        environment = {**os.environ, "GPUDB_RUNTIME_DIR": str(self.folder / "run")}
        environment["PYTHONPATH"] = str(Path(__file__).parents[2])
        arguments = [sys.executable, "-m", "gpudb", "serve", str(self.folder / "db"), "--port", str(self.port)]
        for _ in range(50):
            log = open(self.folder / "log", "w+")  # noqa: SIM115 - the process writes into it
            self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
            assert self.process.stdout is not None
            first = self.process.stdout.readline()
            if first:
                self.port = int(first.rpartition(":")[2])
                path = self.process.stdout.readline().split()[-1]
                self.token = Path(path).read_text().strip()
                return
            said = (self.folder / "log").read_text()
            assert "cannot listen" in said, said  # a client that tries to connect may have got the port as its own
            self.process.wait()
            time.sleep(0.2)
        raise AssertionError("the port stays taken")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.mark.slow
def test_N18_no_row_is_lost_or_doubled_when_the_server_is_killed_again_and_again(tmp_path: Path) -> None:
    victim = Victim(tmp_path)
    acknowledged: dict[int, int] = {}
    stop = threading.Event()

    def write(number: int) -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            keys = [(number * 1_000_000 + turn) * 10 + k for k in range(10)]
            batch = pa.record_batch({"k": pa.array(keys, pa.int64())})
            where = descriptor("sent", **{PRODUCER: f"writer {number}", SEQUENCE: str(turn)})
            while True:  # until it is acknowledged
                call = fl.FlightCallOptions(timeout=20, headers=[(b"authorization", f"Bearer {victim.token}".encode())])
                try:
                    with fl.connect(f"grpc://127.0.0.1:{victim.port}") as client:
                        send(client, call, where, [batch])
                    break
                except (fl.FlightError, pa.ArrowException, OSError, AttributeError):
                    if stop.is_set():
                        return
                    time.sleep(0.05)
            acknowledged[number] = turn

    threads = [threading.Thread(target=write, args=(number,), daemon=True) for number in range(8)]
    for thread in threads:
        thread.start()
    kills, chance, until = 0, random.Random(1), time.monotonic() + 60
    while time.monotonic() < until or kills < 20:
        time.sleep(chance.uniform(0.2, 1.2))
        victim.kill()
        kills += 1
        victim.start()
    stop.set()
    for thread in threads:
        thread.join()
    victim.kill()
    with gpudb.connect(tmp_path / "db") as connection:
        every, distinct = connection.execute("SELECT count(*), count(DISTINCT k) FROM sent").fetchone()
        assert every == distinct, "rows are there twice"
        found = {row[0] for row in connection.execute("SELECT k FROM sent").fetchall()}
    assert sum(acknowledged.values()) > kills
    for number, turns in acknowledged.items():
        for turn in range(1, turns + 1):
            assert (number * 1_000_000 + turn) * 10 in found, "an acknowledged batch was lost"
