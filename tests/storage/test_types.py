"""Columns of every kind in a database directory: what is written is what a new process of it reads, to the extremes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import gpudb

ROWS = {
    "TIMESTAMPTZ": (
        "'infinity'",
        "'-infinity'",
        "'1970-01-01 00:00:00.000001+00'",
        "'2021-07-01 12:00:00 Europe/Berlin'",
    ),
    "TIME": ("'00:00:00'", "'24:00:00'", "'23:59:59.999999'", "'12:34'"),
    "INTERVAL": ("'2147483647 months -2147483648 days 1 microsecond'", "'1 month'", "'30 days'", "'-00:00:00.000001'"),
    "ENUM('b', 'a', 'it''s')": ("'a'", "'b'", "'it''s'", "'a'"),
    "UUID": (
        "'00000000-0000-0000-0000-000000000000'",
        "'{FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF}'",
        "'7fffffff-ffff-ffff-ffff-ffffffffffff'",
        "uuid()",
    ),
    "BLOB": r"'\x00\xFF' '' 'abc' '\xC3\xA9\x80'".split(),
}


@pytest.mark.parametrize("kind", ROWS)
def test_a_directory_keeps_columns_of_a_type(kind: str, tmp_path: Path) -> None:
    values = [*ROWS[kind], "NULL"]
    query = "SELECT id, x, x::VARCHAR AS s FROM t ORDER BY id"
    with gpudb.connect(tmp_path / "db") as connection:
        connection.execute(f"CREATE TABLE t (id INTEGER, x {kind})")
        rows = ", ".join(f"({k}, {value})" for k, value in enumerate(values))
        connection.execute(f"INSERT INTO t VALUES {rows}")
        connection.execute("INSERT INTO t SELECT id + 5, x FROM t")
        connection.execute("DELETE FROM t WHERE id = 0")
        written = connection.execute(query).fetch_arrow_table()
    with gpudb.connect(tmp_path / "db") as connection:
        read = connection.execute(query).fetch_arrow_table()
        assert read.equals(written)
        assert read.num_rows == 9 and read["s"].null_count == 2
        assert connection.execute("SELECT typeof(x) FROM t LIMIT 1").fetchall() == [(str(connection_type(kind)),)]
        connection.register("arrow", pa.table({"x": read["x"]}))  # in from Arrow as it went out
        assert connection.execute(f"SELECT x::{kind} AS x FROM arrow").fetch_arrow_table()["x"].equals(read["x"])


def connection_type(kind: str) -> str:
    return "TIMESTAMP WITH TIME ZONE" if kind == "TIMESTAMPTZ" else kind
