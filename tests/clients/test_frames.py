"""pandas and Polars read and write through SQLAlchemy and through our own DB-API."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pandas as pd
import polars as pl
import pytest
import sqlalchemy as sa

import gpudb

DAY = datetime.date(2020, 2, 29)
ROWS = {
    "n": [1, 2, None],
    "x": [0.5, None, 2.5],
    "name": ["a", None, "it's"],
    "at": [datetime.datetime(2020, 1, 1, 12, 30, 0, 250_000), None, datetime.datetime(1969, 12, 31)],
    "yes": [True, None, False],
}


@pytest.fixture
def engine():
    found = sa.create_engine("gpudb://")
    yield found
    found.dispose()


def test_pandas_writes_and_reads_through_sqlalchemy(engine: sa.Engine) -> None:
    frame = pd.DataFrame({"n": [1, 2, 3], "x": [0.5, None, 2.5], "name": ["a", None, "c"]})
    with pytest.warns(sa.exc.SAWarning, match="no indexes"):
        assert frame.to_sql("t", engine, index_label="line") == 3
    assert frame.to_sql("t", engine, if_exists="append", index_label="line") == 3
    again = pd.read_sql("SELECT n, x, name FROM t WHERE line < 3 LIMIT 3", engine)
    pd.testing.assert_frame_equal(again, frame)
    assert pd.read_sql_table("t", engine, columns=["n"])["n"].tolist() == [1, 2, 3] * 2
    chunks = list(pd.read_sql("SELECT n FROM t", engine, chunksize=4))
    assert [len(chunk) for chunk in chunks] == [4, 2]
    assert frame.to_sql("t", engine, if_exists="replace", index=False) == 3
    assert pd.read_sql(sa.text("SELECT count(*) AS k FROM t WHERE n > :low"), engine, params={"low": 1})[
        "k"
    ].tolist() == [2]


@pytest.mark.filterwarnings("ignore:pandas only supports SQLAlchemy")
def test_pandas_writes_and_reads_through_a_connection_alone() -> None:
    frame = pd.DataFrame({"n": [1, 2], "name": ["a", None]})
    with gpudb.connect() as connection:
        frame.to_sql("t", connection, index=False)
        frame.to_sql("t", connection, index=False, if_exists="append")
        again = pd.read_sql("SELECT * FROM t WHERE n > ? ORDER BY name", connection, params=[1])
        assert again["n"].tolist() == [2, 2]


def test_polars_reads_through_a_connection() -> None:
    with gpudb.connect() as connection:
        frame = pl.DataFrame(ROWS)
        connection.register("given", frame)
        found = pl.read_database("SELECT * FROM given", connection)
        assert found.to_dict(as_series=False) == ROWS
        sql = "SELECT CAST(1.5 AS DECIMAL(9, 2)) AS d, DATE '2020-02-29' AS day, CAST(1 AS SMALLINT) AS s"
        assert pl.read_database(sql, connection).rows() == [(Decimal("1.50"), DAY, 1)]
        assert pl.DataFrame(connection.execute(sql)).schema == {"d": pl.Decimal(9, 2), "day": pl.Date, "s": pl.Int16}
        empty = pl.read_database("SELECT n, name FROM given WHERE n > 100", connection)
        assert empty.shape == (0, 2)


def test_polars_writes_and_reads_through_sqlalchemy(engine: sa.Engine) -> None:
    frame = pl.DataFrame(ROWS)
    assert frame.write_database("t", engine, if_table_exists="replace") == 3
    assert frame.write_database("t", engine, if_table_exists="append") == 3
    assert pl.read_database("SELECT * FROM t", engine).to_dict(as_series=False) == {k: v * 2 for k, v in ROWS.items()}
    with engine.connect() as connection:
        kinds = connection.exec_driver_sql("SELECT data_type FROM information_schema.columns").scalars().all()
    assert kinds == ["BIGINT", "DOUBLE", "VARCHAR", "TIMESTAMP", "BOOLEAN"]
