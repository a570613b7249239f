"""Random HUGEINT and DECIMAL columns of every size: each value and each double as DuckDB has it, or an error where it has one."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import gpudb

ROWS = 120
TYPES = (
    "HUGEINT",
    "DECIMAL(38,0)",
    "DECIMAL(38,3)",
    "DECIMAL(38,20)",
    "DECIMAL(20,5)",
    "DECIMAL(18,3)",
    "DECIMAL(18,17)",
)
DIGITS = (4, 17, 19, 30, 38)
QUICK = {("HUGEINT", 38), ("DECIMAL(38,3)", 19), ("DECIMAL(38,3)", 38), ("DECIMAL(20,5)", 17)}
each_table = pytest.mark.parametrize(
    ("type_", "digits"),
    [
        pytest.param(type_, digits, marks=() if (type_, digits) in QUICK else pytest.mark.slow)
        for type_ in TYPES
        for digits in DIGITS
    ],
)
OF_ONE = (
    "x::DOUBLE",
    "x::REAL",
    "x::VARCHAR",
    "x::HUGEINT",
    "x::BIGINT",
    "x::DECIMAL(38,2)",
    "x::DECIMAL(20,1)",
    "TRY_CAST(x AS DECIMAL(38,30))",
    "TRY_CAST(x AS INTEGER)",
    "x::VARCHAR::HUGEINT",
    "x::DOUBLE::DECIMAL(38,5)",
    "TRY_CAST(x::DOUBLE AS HUGEINT)",
    "-x",
    "abs(x)",
    "sign(x)",
    "round(x)",
    "floor(x)",
    "round(x, 1)",
    "round(x, -3)",
    "trunc(x, 2)",
    "x / 7",
    "x % 7",
    "x + 1",
    "x * 3",
    "x - 0.25",
    "x * 1.5",
    "x + 1e0",
    "least(x, 5)",
)
OF_TWO = ("x + y", "x - y", "x * y", "x / y", "x % y", "x < y", "x = y", "greatest(x, y)", "CASE WHEN x > y THEN x END")
OF_GROUPS = (
    "sum(x)",
    "avg(x)",
    "min(x)",
    "max(x)",
    "count(DISTINCT x)",
    "arg_min(y, x)",
    "arg_max(x, y)",
)


def column(type_: str, digits: int, draw: random.Random) -> pa.Array:
    """(ROWS,) values of a type with at most so many digits, few of them twice, some NULL."""
    # Sums of more digits leave 128 bits on their way in DuckDB, though they end inside.
    precision, scale = (36, 0) if type_ == "HUGEINT" else map(int, type_[8:-1].split(","))
    most = 10 ** min(digits, precision) - 1
    pool = [draw.randint(-most, most) // 10 ** draw.choice((0, 0, 0, draw.randrange(digits))) for _ in range(ROWS // 2)]
    pool += [most, -most, 0, 1, 5 * 10**scale // 2]
    values = [None if draw.random() < 0.05 else max(-most, min(most, draw.choice(pool))) for _ in range(ROWS)]
    return pa.array(
        [None if v is None else Decimal((int(v < 0), tuple(map(int, str(abs(v)))), -scale)) for v in values],
        pa.decimal128(precision, scale),
    )


@pytest.fixture(scope="module")
def engines() -> Any:
    return duckdb.connect(config={"threads": "1"}), gpudb.connect()


def filled(engines: Any, type_: str, digits: int) -> str:
    """A table in both engines, made when it is first asked for."""
    name = f"t_{digits}_" + "".join(c if c.isalnum() else "_" for c in type_)
    draw = random.Random(name)
    columns = {
        "k": pa.array(range(ROWS)),
        "x": column(type_, digits, draw),
        "y": column(draw.choice(TYPES), draw.choice(DIGITS), draw),
    }
    for engine in engines:
        engine.register("rows", pa.table(columns))
        engine.execute(f"CREATE TABLE IF NOT EXISTS {name} AS SELECT k, x::{type_} AS x, y FROM rows")
        engine.unregister("rows")
    return name


def outcome(engine: Any, sql: str) -> Any:
    """The rows, doubles to the last bit, and their types; or that it fails."""
    try:
        cursor = engine.execute(sql)
        return [tuple(map(repr, row)) for row in cursor.fetchall()]
    except (duckdb.Error, gpudb.Error) as error:
        if isinstance(error, gpudb.NotSupportedError | gpudb.InternalError):
            raise
        return "an error"


def compare(engines: Any, table: str, select: str, expressions: tuple[str, ...], rest: str) -> None:
    oracle, ours = engines
    wrong = []
    for expression in expressions:
        sql = f"SELECT {select.format(expression)} FROM {table} {rest}"
        expected, found = outcome(oracle, sql), outcome(ours, sql)
        if expected != found:
            pairs = zip(expected, found, strict=False) if "an error" not in (expected, found) else []
            first = next(((a, b) for a, b in pairs if a != b), (expected[:80], found[:80]))
            wrong.append(f"{sql}\n  DuckDB {first[0]}\n  gpudb  {first[1]}")
    assert not wrong, "\n".join(wrong)


@each_table
def test_values_of_columns(engines: Any, type_: str, digits: int) -> None:
    table = filled(engines, type_, digits)
    compare(engines, table, "k, x, {0} AS v, typeof({0}) AS t", OF_ONE, "ORDER BY k")
    compare(engines, table, "k, x, y, {0} AS v, typeof({0}) AS t", OF_TWO, "ORDER BY k")


@each_table
def test_aggregates(engines: Any, type_: str, digits: int) -> None:
    table = filled(engines, type_, digits)
    compare(engines, table, "{0} AS v", OF_GROUPS, "")
    exact = tuple(
        call for call in OF_GROUPS if call != "avg(x)"
    )  # which DuckDB rounds in groups otherwise than without
    compare(engines, table, "k % 5 AS g, {0} AS v", exact, "GROUP BY g ORDER BY g")


def test_values_go_through_files_directories_and_parameters(tmp_path: Path) -> None:
    rows = [
        (1, (1 << 127) - 1, Decimal("12345678901234567890123456789012345.125")),
        (2, -(1 << 127), Decimal("-0.001")),
        (3, None, None),
        (4, 5, Decimal(7)),
    ]
    path = str(tmp_path / "database")
    with gpudb.connect(path) as connection:
        connection.execute("CREATE TABLE h (k INTEGER, a HUGEINT, d DECIMAL(38,3))")
        for row in rows:
            connection.execute("INSERT INTO h VALUES (?, ?, ?)", row)
        connection.execute("CREATE TABLE narrow AS SELECT k, a % 100 AS a FROM h")
    with gpudb.connect(path) as connection:
        found = connection.execute("SELECT * FROM h ORDER BY k").fetchall()
        assert found == rows and repr(found[0][1]) == repr(rows[0][1])
        assert connection.execute("SELECT a FROM narrow ORDER BY k").fetchall() == [(27,), (-28,), (None,), (5,)]
        assert connection.execute("SELECT k FROM h WHERE a = ? OR d < ?", [rows[0][1], Decimal(0)]).fetchall() == [
            (1,),
            (2,),
        ]
        for format_ in ("csv", "parquet", "arrow"):
            file = str(tmp_path / f"rows.{format_}")
            connection.execute(f"COPY h TO '{file}'")
            connection.execute("CREATE OR REPLACE TABLE back AS SELECT * FROM h LIMIT 0")
            connection.execute(f"COPY back FROM '{file}'")
            assert connection.execute("SELECT * FROM back ORDER BY k").fetchall() == rows, format_
        assert connection.execute(f"SELECT a FROM '{tmp_path}/rows.csv' ORDER BY k").fetchall() == [
            (r[1],) for r in rows
        ]
        assert connection.execute("SELECT list(a ORDER BY k) FROM h").fetchall() == [([r[1] for r in rows],)]
