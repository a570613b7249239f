"""Listings of the catalog: what they see, and when; their values are compared with DuckDB's in tests/sql."""

from __future__ import annotations

import os

import duckdb
import pyarrow as pa
import pytest

import gpudb
from gpudb import errors
from gpudb.listings import LISTINGS

NAMES = "SELECT table_name FROM information_schema.tables ORDER BY 1"
AS_TEXT = {"MAP(VARCHAR, VARCHAR)", "VARCHAR[]", "BIGINT[]", "VARIANT"}  # types of DuckDB's listings that are text here
BARE = ("pragma_database_list", "sqlite_master")  # which DuckDB knows as views only


@pytest.mark.parametrize("name", [name for name in LISTINGS if " " not in name])
def test_a_listing_has_duckdbs_columns_and_types(name: str) -> None:
    found = LISTINGS[name]
    called = f"{name}('t')" if found.takes else (name if "." in name or name in BARE else f"{name}()")
    oracle = duckdb.connect().execute("CREATE TABLE t (a INTEGER)")
    theirs = oracle.execute(f"DESCRIBE SELECT * FROM {called}").fetchall()
    expected = [(column, "VARCHAR" if kind in AS_TEXT else kind) for column, kind, *_ in theirs]
    if name == "duckdb_settings":
        expected.remove(("typed_value", "VARCHAR"))  # the same as `value`
    assert [(column, str(kind)) for column, kind in found.columns] == expected


def test_a_listing_is_made_anew_for_every_statement() -> None:
    connection = gpudb.connect()
    assert connection.execute(NAMES).fetchall() == []
    connection.execute("CREATE TABLE one (a INTEGER)")
    assert connection.execute(NAMES).fetchall() == [("one",)]
    connection.execute("ALTER TABLE one RENAME TO two")
    cursor = connection.execute(NAMES)
    assert cursor.fetchall() == [("two",)] and cursor.receipt["plan_cached"] is False


def test_a_view_over_a_listing_is_made_anew_too() -> None:
    connection = gpudb.connect()
    connection.execute(f"CREATE VIEW names AS {NAMES}")
    connection.execute("CREATE TABLE one (a INTEGER)")
    assert connection.execute("SELECT * FROM names").fetchall() == [("names",), ("one",)]
    assert connection.execute(
        "SELECT column_name FROM information_schema.columns WHERE table_name = 'names'"
    ).fetchall()


def test_a_transaction_lists_its_own_tables_and_no_one_elses(tmp_path) -> None:
    path = os.fspath(tmp_path / "shop")
    with gpudb.connect(path) as one, gpudb.connect(path) as other:
        one.begin()
        one.execute("CREATE TABLE mine (a INTEGER)")
        assert one.execute(NAMES).fetchall() == [("mine",)]
        assert other.execute(NAMES).fetchall() == []
        other.execute("CREATE TABLE theirs (a INTEGER)")
        assert one.execute(NAMES).fetchall() == [("mine",)]
        one.commit()
        assert one.execute(NAMES).fetchall() == [("mine",), ("theirs",)]


def test_a_database_on_disk_is_called_as_its_folder(tmp_path) -> None:
    with gpudb.connect(tmp_path / "shop") as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
        assert connection.execute("SELECT current_database()").fetchone() == ("shop",)
        assert connection.execute("SELECT a FROM shop.main.t").fetchone() == (1,)
        listed = connection.execute("SELECT database_name, path FROM duckdb_databases()").fetchall()
        assert listed == [("shop", os.fspath(tmp_path / "shop"))]


def test_what_is_registered_is_a_view_of_this_session() -> None:
    connection = gpudb.connect()
    connection.register("frame", pa.table({"n": pa.array([1, 2], pa.int32())}))
    rows = connection.execute("SELECT table_catalog, table_name, table_type FROM information_schema.tables").fetchall()
    assert rows == [("temp", "frame", "VIEW")]
    assert connection.execute("PRAGMA table_info('frame')").fetchall() == [(0, "n", "INTEGER", False, None, False)]


def test_a_view_that_no_longer_binds_is_listed_without_columns() -> None:
    connection = gpudb.connect()
    connection.execute("CREATE TABLE t (a INTEGER)")
    connection.execute("CREATE VIEW v AS SELECT a FROM t")
    connection.execute("DROP TABLE t")
    assert connection.execute("SELECT view_name, column_count, is_bound FROM duckdb_views()").fetchall() == [
        ("v", None, False)
    ]
    assert connection.execute("SELECT * FROM information_schema.columns").fetchall() == []
    with pytest.raises(errors.CatalogError, match="table not found: t"):
        connection.execute("PRAGMA table_info('v')")


def test_the_statement_in_a_listing_makes_the_table_again() -> None:
    connection = gpudb.connect()
    connection.execute("""CREATE TABLE "my table" ("select" INTEGER DEFAULT 1 + 1, b VARCHAR DEFAULT 'it''s')""")
    (sql,) = connection.execute("SELECT sql FROM duckdb_tables()").fetchone()
    again = gpudb.connect()
    again.execute(sql)
    assert again.execute("SELECT sql FROM duckdb_tables()").fetchone() == (sql,)
    again.execute('INSERT INTO "my table" DEFAULT VALUES')
    assert again.execute('SELECT * FROM "my table"').fetchall() == [(2, "it's")]


def test_a_listing_can_be_kept_as_a_table() -> None:
    connection = gpudb.connect()
    connection.execute("CREATE TABLE t (a INTEGER, b VARCHAR)")
    connection.execute("CREATE TABLE kept AS SELECT * FROM information_schema.columns")
    assert connection.execute("SELECT table_name, column_name FROM kept").fetchall() == [("t", "a"), ("t", "b")]
