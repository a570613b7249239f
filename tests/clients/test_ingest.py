"""`connection.ingest()`, here and at a server; and what other clients call ingest: ADBC, pandas and Polars over it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import adbc_driver_gpudb.dbapi
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gpudb
import gpudb.server
from gpudb import errors

ROWS = pa.table({"a": pa.array([1, 2, None], pa.int32()), "b": ["x", None, "it's"]})


@pytest.fixture(autouse=True, scope="module")
def runtime_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUDB_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))
        yield


@pytest.fixture
def server() -> Iterator[gpudb.server.Server]:
    with gpudb.server.serve(port=0) as server:
        yield server


@pytest.fixture(params=["here", "server"])
def connection(request: pytest.FixtureRequest) -> Iterator[gpudb.Connection]:
    place = ":memory:" if request.param == "here" else request.getfixturevalue("server").uri
    with gpudb.connect(place) as connection:
        yield connection


def rows(connection: gpudb.Connection, table: str = "t") -> Any:
    return connection.execute(f"SELECT * FROM {table}").fetchall()


def test_rows_are_created_appended_and_replaced(connection: gpudb.Connection) -> None:
    expected = [(1, "x"), (2, None), (None, "it's")]
    with pytest.raises(errors.CatalogError, match="table not found: t"):
        connection.ingest("t", ROWS)
    assert connection.ingest("t", ROWS, "create") == 3
    assert rows(connection) == expected
    with pytest.raises(errors.CatalogError, match="already exists"):
        connection.ingest("t", ROWS, "create")
    assert connection.ingest("t", pl.from_arrow(ROWS)) == 3
    assert connection.ingest("t", pd.DataFrame({"b": ["z"], "a": [7]}), "create_append") == 1
    assert rows(connection) == [*expected, *expected, (7, "z")]
    assert connection.ingest("t", ROWS.slice(1, 1), "replace") == 1
    assert rows(connection) == [(2, None)]
    connection.execute("CREATE SCHEMA s")
    assert connection.ingest("u", ROWS, "create", schema="s") == 3
    assert len(rows(connection, "s.u")) == 3


def test_all_rows_come_or_none(connection: gpudb.Connection) -> None:
    connection.execute("CREATE TABLE t (a TINYINT)")

    def batches(bad: bool) -> Iterator[pa.RecordBatch]:
        for start in range(0, 100, 10):
            yield pa.record_batch({"a": pa.array(range(start, start + 10), pa.int64())})
        if bad:
            raise ValueError("the file ended too early")

    schema = pa.schema([("a", pa.int64())])
    with pytest.raises(ValueError, match="too early"):
        connection.ingest("t", pa.RecordBatchReader.from_batches(schema, batches(bad=True)))
    assert rows(connection) == []
    with pytest.raises(errors.Error, match="300"):
        connection.ingest("t", pa.table({"a": [1, 300]}))
    with pytest.raises(errors.ConversionError, match="not in the table: nope"):
        connection.ingest("t", pa.table({"a": [1], "nope": [1]}))
    assert rows(connection) == []
    assert connection.ingest("t", pa.RecordBatchReader.from_batches(schema, batches(bad=False))) == 100
    assert len(rows(connection)) == 100


def test_rows_of_one_number_are_taken_once(connection: gpudb.Connection) -> None:
    connection.execute("CREATE TABLE t (a INTEGER, b VARCHAR)")
    for _ in range(3):
        assert connection.ingest("t", ROWS, producer="loader", sequence=1) == 3
    assert connection.ingest("t", ROWS.slice(0, 1), producer="loader", sequence=2) == 1
    assert len(rows(connection)) == 4
    with pytest.raises(errors.ConflictError):
        connection.ingest("t", ROWS, producer="loader", sequence=2)


def test_an_ingest_belongs_to_the_open_transaction(connection: gpudb.Connection) -> None:
    connection.begin()
    connection.ingest("t", ROWS, "create")
    assert len(rows(connection)) == 3
    connection.rollback()
    with pytest.raises(errors.CatalogError):
        rows(connection)


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_rows_whose_transaction_ends_while_they_come_are_not_kept(tmp_path: Path, end: str) -> None:
    with gpudb.connect(tmp_path / "db") as connection:
        connection.execute("CREATE TABLE t (a BIGINT)")
        connection.begin()

        def batches() -> Iterator[pa.RecordBatch]:
            yield pa.record_batch({"a": [1]})
            connection.execute(end)  # as another thread may
            yield pa.record_batch({"a": [2]})

        with pytest.raises(errors.TransactionError, match="ended while its rows came"):
            connection.ingest("t", pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), batches()))
        assert rows(connection) == []


def test_a_mode_that_is_none_is_refused(connection: gpudb.Connection) -> None:
    with pytest.raises(errors.InterfaceError, match="not a mode"):
        connection.ingest("t", ROWS, "upsert")  # type: ignore[arg-type]


def test_adbc_pandas_and_polars_ingest_at_a_server(server: gpudb.server.Server) -> None:
    uri = server.uri.replace("grpc://", "gpudb://")
    with adbc_driver_gpudb.dbapi.connect(uri) as adbc, adbc.cursor() as cursor:
        assert cursor.adbc_ingest("t", ROWS, mode="create") == 3
        assert cursor.adbc_ingest("t", ROWS, mode="append") == 3
        adbc.commit()
        assert pd.DataFrame({"a": [1], "b": ["p"]}).to_sql("t", adbc, if_exists="append", index=False) == 1
        assert pl.DataFrame({"a": [2], "b": ["q"]}).write_database("t", adbc, if_table_exists="append") in (1, -1)
        adbc.commit()
        cursor.execute("SELECT count(*), max(b) FROM t")
        assert cursor.fetchone() == (8, "x")
    assert pl.DataFrame({"c": [2.5]}).write_database("p", uri, if_table_exists="replace", engine="adbc") in (1, -1)
    assert pl.read_database_uri("SELECT * FROM p", uri, engine="adbc").rows() == [(2.5,)]


def test_cancel_stops_an_ingest_and_nothing_of_it_is_kept(server: gpudb.server.Server) -> None:
    with gpudb.connect(server.uri) as connection:
        connection.execute("CREATE TABLE t (a BIGINT)")
        made = []

        def batches() -> Iterator[pa.RecordBatch]:
            for number in range(1000):
                if number == 3:
                    connection.cancel()  # as another thread, or Ctrl-C, does
                made.append(number)
                yield pa.record_batch({"a": [number]})

        with pytest.raises(errors.QueryCancelled):
            connection.ingest("t", pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), batches()))
        assert made == [0, 1, 2, 3] and rows(connection) == []
        assert connection.ingest("t", pa.table({"a": [1]})) == 1


class BrokenWriter:
    """A stream to a server whose second batch does not get out."""

    def __init__(self, writer: Any) -> None:
        self._writer, self._batches = writer, 0

    def write_batch(self, batch: pa.RecordBatch) -> None:
        self._batches += 1
        if self._batches > 1:
            raise pa.ArrowInvalid("it cannot be written")
        self._writer.write_batch(batch)

    def __enter__(self) -> Any:
        return self._writer.__enter__()

    def __exit__(self, *error: object) -> None:
        self._writer.__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)


class BrokenClient:
    """A client whose streams are broken ones."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def do_put(self, *arguments: Any) -> Any:
        writer, reader = self._client.do_put(*arguments)
        return BrokenWriter(writer), reader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


def test_a_batch_that_does_not_get_out_takes_the_others_with_it(server: gpudb.server.Server) -> None:
    with gpudb.connect(server.uri) as connection:
        connection.execute("CREATE TABLE t (a INTEGER, b VARCHAR)")
        connection.session._client = BrokenClient(connection.session._client)
        two = pa.Table.from_batches([*ROWS.to_batches(), *ROWS.to_batches()])
        with pytest.raises(errors.OperationalError):
            connection.ingest("t", two)
        assert rows(connection) == []
        assert connection.ingest("t", ROWS) == 3
