"""Clients nobody here wrote, at a server: ADBC through the driver of our name, Polars by URI, altertable-flightsql, pandas."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import adbc_driver_gpudb
import adbc_driver_gpudb.dbapi
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gpudb.server
from gpudb import errors

DAY = datetime.date(2020, 2, 29)


@pytest.fixture(autouse=True, scope="module")
def runtime_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUDB_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))
        yield


@pytest.fixture
def server() -> Iterator[gpudb.server.Server]:
    with gpudb.server.serve(port=0) as server:
        yield server


@pytest.fixture
def uri(server: gpudb.server.Server) -> str:
    return server.uri.replace("grpc://", "gpudb://")


@pytest.fixture
def adbc(uri: str) -> Iterator[Any]:
    with adbc_driver_gpudb.dbapi.connect(uri, autocommit=True) as connection:
        yield connection


@pytest.fixture
def trips(adbc: Any) -> Any:
    """A cursor whose connection has the table trips of two rows."""
    cursor = adbc.cursor()
    cursor.execute("CREATE TABLE trips (carrier VARCHAR, delay INTEGER, price DECIMAL(9, 2), day DATE)")
    cursor.executemany(
        "INSERT INTO trips VALUES (?, ?, ?, ?)", [("UA", 12, Decimal("9.50"), DAY), ("AA", None, None, None)]
    )
    return cursor


def test_queries_and_parameters(trips: Any) -> None:
    trips.execute("SELECT * FROM trips ORDER BY carrier DESC")
    assert trips.fetchall() == [("UA", 12, Decimal("9.50"), DAY), ("AA", None, None, None)]
    trips.execute("SELECT carrier FROM trips WHERE delay > ? AND day = ?", (1, DAY))
    assert trips.fetch_arrow_table().to_pylist() == [{"carrier": "UA"}]
    trips.execute("UPDATE trips SET delay = delay + ? WHERE carrier = ?", (1, "UA"))
    trips.execute("SELECT max(delay) FROM trips")
    assert trips.fetchone() == (13,)
    with pytest.raises(Exception, match="column not found: nope"):
        trips.execute("SELECT nope FROM trips")


def test_a_session_keeps_its_settings_and_its_transaction(uri: str, trips: Any) -> None:
    trips.execute("SET threads = 1")
    trips.execute("SHOW threads")
    assert trips.fetchone() == ("1",)
    with adbc_driver_gpudb.dbapi.connect(uri) as other, other.cursor() as cursor:
        cursor.execute("DELETE FROM trips")
        other.rollback()
        cursor.execute("SELECT count(*) FROM trips")
        assert cursor.fetchone() == (2,)


def test_metadata_names_tables_columns_and_types(adbc: Any, trips: Any) -> None:
    (catalog,) = adbc.adbc_get_objects(depth="columns").read_all().to_pylist()
    (schema,) = [one for one in catalog["catalog_db_schemas"] if one["db_schema_name"] == "main"]
    (table,) = schema["db_schema_tables"]
    assert [(c["column_name"], c["xdbc_type_name"]) for c in table["table_columns"]] == [
        ("carrier", "VARCHAR"),
        ("delay", "INTEGER"),
        ("price", "DECIMAL(9,2)"),
        ("day", "DATE"),
    ]
    assert adbc.adbc_get_table_schema("trips").field("price").type == pa.decimal128(9, 2)
    assert adbc.adbc_get_table_types() == ["TABLE", "VIEW"]
    assert adbc.adbc_get_info()["vendor_name"] == "gpudb"
    trips.execute("SELECT table_name FROM information_schema.tables")
    assert trips.fetchall() == [("trips",)]


def test_polars_reads_by_uri(uri: str, trips: Any) -> None:
    frame = pl.read_database_uri("SELECT carrier, delay, day FROM trips ORDER BY delay NULLS LAST", uri, engine="adbc")
    assert frame.rows() == [("UA", 12, DAY), ("AA", None, None)]
    with adbc_driver_gpudb.dbapi.connect(uri, autocommit=True) as connection:
        assert pl.read_database("SELECT count(*) AS n FROM trips", connection).rows() == [(2,)]


def test_pandas_reads_through_adbc(adbc: Any, trips: Any) -> None:
    frame = pd.read_sql("SELECT carrier, delay FROM trips WHERE delay > 0", adbc)
    assert frame.to_dict("records") == [{"carrier": "UA", "delay": 12}]


def test_the_driver_reads_addresses(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    (tmp_path / "ca.pem").write_text("PEM")
    location, found = adbc_driver_gpudb.options(
        f"gpudb://ann:p%40ss@db.example:1?tls=true&tls_root_certs={tmp_path}/ca.pem"
    )
    assert location == "grpc+tls://db.example:1"
    assert (found["username"], found["password"]) == ("ann", "p@ss")
    assert found["adbc.flight.sql.client_option.tls_root_certs"] == "PEM"
    location, found = adbc_driver_gpudb.options("grpc://db.example?token=t")
    assert (location, found["adbc.flight.sql.authorization_header"]) == ("grpc://db.example:8815", "Bearer t")
    with pytest.raises(errors.InterfaceError, match="directory"):
        adbc_driver_gpudb.options("gpudb:///shop")
