"""Random changes, one after the other: after each one the table is DuckDB's, on every device and when it is opened again.

Transactions, too: other connections then see the table as it was, and as it is after COMMIT.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpudb
from benchmarks.equality import difference
from tests.sql import random_tables
from tests.sql.random_queries import booleans, dates, numbers, texts
from tests.sql.runner import plain_type

VALUES = {
    "i": numbers(1),
    "si": numbers(0),
    "bi": numbers(1),
    "f": numbers(1),
    "d92": numbers(0),
    "s": texts(1),
    "x": booleans(1),
    "d": dates(0),
    "a": st.sampled_from(["a + 1", "b", "NULL", "DEFAULT", "-a"]),
}
WHERE = st.one_of(st.just(""), booleans(1).map(" WHERE {}".format), booleans(1).map(" WHERE {} AND i % 3 = 0".format))


@st.composite
def changes(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(["update"] * 4 + ["delete", "delete", "insert", "truncate", "add", "drop"]))
    if kind == "update":
        columns = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3, unique=True))
        return f"UPDATE t SET {', '.join(f'{column} = {draw(VALUES[column])}' for column in columns)}{draw(WHERE)}"
    if kind == "delete":
        return f"DELETE FROM t{draw(WHERE)}"
    if kind == "insert":
        return draw(
            st.sampled_from(
                ["INSERT INTO t (i, s, b) VALUES (7, 'seven', 1)", "INSERT INTO t SELECT * FROM t LIMIT 700"]
            )
        )
    if kind == "truncate":
        return "TRUNCATE t"
    column = draw(st.sampled_from(["r", "ti", "ts", "d184"]))
    return (
        f"ALTER TABLE t DROP COLUMN IF EXISTS {column}"
        if kind == "drop"
        else f"ALTER TABLE t ADD COLUMN IF NOT EXISTS {column} REAL"
    )


@contextmanager
def engines(rows: int, style: str) -> Iterator[tuple[duckdb.DuckDBPyConnection, dict[str, gpudb.Connection], Path]]:
    data = random_tables.table(rows, style)
    with tempfile.TemporaryDirectory() as folder, duckdb.connect(config={"threads": "1"}) as oracle:
        oracle.execute("PRAGMA disable_optimizer")
        path = Path(folder) / "db"
        ours = {"cpu": gpudb.connect(str(path)), "reference": gpudb.connect()}
        oracle.register("source", data)
        oracle.execute("CREATE TABLE t AS SELECT * FROM source")
        for device, connection in ours.items():
            connection.execute(f"SET device = '{device}'")
            connection.register("source", data)
            connection.execute("CREATE TABLE t AS SELECT * FROM source")
        yield oracle, ours, path
        for connection in ours.values():
            connection.close()


def outcome(connection: Any, sql: str) -> Any:
    """The rows that a statement changed, or that it failed."""
    try:
        cursor = connection.execute(sql)
        return cursor.fetchall() if not isinstance(connection, gpudb.Connection) else cursor.rowcount
    except gpudb.NotSupportedError:
        raise
    except (gpudb.Error, duckdb.Error) as error:
        return error


def assert_same(connection: gpudb.Connection, oracle: duckdb.DuckDBPyConnection, why: str) -> None:
    found = connection.execute("SELECT * FROM t").fetch_arrow_table()
    expected = oracle.sql("SELECT * FROM t").to_arrow_table()
    assert found.column_names == expected.column_names, why
    assert found.schema.types == [plain_type(field.type) for field in expected.schema], why
    problem = difference(found, expected, order_by=[], values_only=True)
    assert problem is None, f"{why}\n{problem}"


def assert_aborted(connection: gpudb.Connection, oracle: duckdb.DuckDBPyConnection, why: str) -> None:
    """Neither engine runs anything before the transaction's end."""
    for engine, error in ((connection, gpudb.OperationalError), (oracle, duckdb.OperationalError)):
        with pytest.raises(error, match="transaction is aborted"):
            engine.execute("SELECT * FROM t")
            raise AssertionError(why)


def check(rows: int, style: str, statements: list[str]) -> None:
    with engines(rows, style) as (oracle, ours, path), gpudb.connect(str(path)) as other:
        done = []
        other_oracle = oracle.cursor()
        for sql in statements:
            results = {}
            for device, connection in ours.items():
                results[device] = outcome(connection, sql)
            expected = outcome(oracle, sql)
            done.append(sql)
            why = f"{rows} {style}\n" + ";\n".join(done)
            failed = isinstance(expected, duckdb.Error)
            for device, result in results.items():
                assert isinstance(result, gpudb.Error) == failed, f"{why}\n{device}: {result}\nDuckDB: {expected}"
                if not failed and sql.startswith(("UPDATE", "DELETE", "TRUNCATE")):
                    assert result == expected[0][0], f"{why}\n{device}: {result} rows, DuckDB: {expected}"
                transaction = ours[device].session.transaction
                aborted = transaction is not None and transaction.aborted
                (assert_aborted if aborted else assert_same)(ours[device], oracle, f"{why}\non {device}")
            assert_same(other, other_oracle, f"{why}\nby another connection")
        ours.pop("cpu").close()
        other.close()
        if transaction is not None:
            oracle.rollback()
        with gpudb.connect(str(path), read_only=True) as again:
            assert_same(again, oracle, f"opened again, {why}")


ARGUMENTS = {
    "rows": st.sampled_from([0, 1, 1024, 5000]),
    "style": st.sampled_from(random_tables.STYLES),
    "statements": st.lists(changes(), min_size=1, max_size=6),
}


IN_TRANSACTIONS = {
    **ARGUMENTS,
    "statements": st.lists(
        st.one_of(changes(), changes(), st.sampled_from(["BEGIN", "BEGIN", "COMMIT", "ROLLBACK"])),
        min_size=2,
        max_size=12,
    ).map(lambda statements: ["BEGIN", *statements]),
}


@settings(max_examples=15, deadline=None)
@given(**ARGUMENTS)
def test_random_changes_leave_duckdbs_rows(rows: int, style: str, statements: list[str]) -> None:
    check(rows, style, statements)


@pytest.mark.slow
@settings(max_examples=400, deadline=None, derandomize=False)
@given(**ARGUMENTS)
def test_many_random_changes_leave_duckdbs_rows(rows: int, style: str, statements: list[str]) -> None:
    check(rows, style, statements)


@settings(max_examples=15, deadline=None)
@given(**IN_TRANSACTIONS)
def test_random_transactions_leave_duckdbs_rows(rows: int, style: str, statements: list[str]) -> None:
    check(rows, style, statements)


@pytest.mark.slow
@settings(max_examples=250, deadline=None, derandomize=False)
@given(**IN_TRANSACTIONS)
def test_many_random_transactions_leave_duckdbs_rows(rows: int, style: str, statements: list[str]) -> None:
    check(rows, style, statements)
