"""Random numbers, times and floats as texts, through SQL on every device, against DuckDB."""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpudb

BIG = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.integers(-3, 3), st.sampled_from([-(2**63), 2**63 - 1, 2**31, -(2**31) - 1])
)
DOUBLE = st.one_of(st.floats(), st.sampled_from([0.0, -0.0, 5e-324, 1.7976931348623157e308, 1e16, 0.1, 123456.0]))
TIMES = st.one_of(
    st.integers(-62135596800000000, 253402300799999999),  # years 1 to 9999
    st.integers(1_356_998_400, 1_388_534_400).map(lambda second: second * 1_000_000),
    st.sampled_from([0, -1, 999_999, 1_000_000, 86_400_000_000]),
)
DAYS = st.integers(-719_162, 2_932_896)
CENTS = st.integers(-(10**18) + 1, 10**18 - 1)

ROW = st.tuples(*(st.one_of(st.none(), values) for values in (BIG, DOUBLE, TIMES, DAYS, CENTS, st.integers(0, 5))))

EXPRESSIONS = [
    "big::VARCHAR",
    "x::VARCHAR",
    "ts::VARCHAR",
    "day::VARCHAR",
    "price::VARCHAR",
    "strftime(ts, '%Y-%m-%d %H:%M')",
    "strftime(ts, '%j %I %p %S.%f, %a %B, week %U of %Y')",
    "strftime(day, '%-d.%-m.%y %A')",
    "upper(reverse(ts::VARCHAR))",
    "big::VARCHAR || '/' || x::VARCHAR || '/' || k",
    "concat(x, ts, price)",
    "levenshtein(big::VARCHAR, price::VARCHAR)",
    "CASE WHEN k > 2 THEN x::VARCHAR WHEN k > 0 THEN day::VARCHAR ELSE big::VARCHAR END",
    "coalesce(big::VARCHAR, ts::VARCHAR, 'neither')",
    "ts::VARCHAR < day::VARCHAR",
    "try_cast(big::VARCHAR AS INTEGER)",
    "left(price::VARCHAR, k) = left(big::VARCHAR, k)",
]


def table_of(rows: list[tuple[Any, ...]]) -> pa.Table:
    """Columns big, x, ts, day, price and k."""
    big, x, ts, day, cents, k = (list(column) for column in zip(*rows, strict=True))
    price = [None if c is None else Decimal(c).scaleb(-2) for c in cents]
    return pa.table(
        {
            "big": pa.array(big, pa.int64()),
            "x": pa.array(x, pa.float64()),
            "ts": pa.array(ts, pa.timestamp("us")),
            "day": pa.array(day, pa.int32()).cast(pa.date32()),
            "price": pa.array(price, pa.decimal128(18, 2)),
            "k": pa.array(k, pa.int32()),
        }
    )


@cache
def connection(device: str) -> gpudb.Connection:
    made = gpudb.connect()
    made.execute(f"SET device = '{device}'")
    return made


def assert_as_duckdb(table: pa.Table, sql: str, device: str) -> None:
    ours = connection(device)
    ours.register("t", table)
    theirs = duckdb.connect()
    theirs.register("t", table)
    expected = theirs.sql(sql).fetchall()
    cursor = ours.execute(sql)
    assert cursor.fetchall() == expected, sql
    assert cursor.receipt["host_rows"] == 0


QUERIES = [
    "SELECT {} AS r FROM t",
    "SELECT {} AS r FROM t WHERE k < 4 ORDER BY r NULLS FIRST",
    "SELECT {} AS r, count(*), sum(k) FROM t GROUP BY r ORDER BY r",
    "SELECT k, min({}) FROM t GROUP BY k ORDER BY k",
]


@pytest.mark.parametrize("device", ["cpu", "reference"])
@settings(max_examples=60)
@given(
    rows=st.lists(ROW, min_size=1, max_size=40),
    expression=st.sampled_from(EXPRESSIONS),
    query=st.sampled_from(QUERIES),
)
def test_texts_of_random_values_are_duckdbs(
    rows: list[tuple[Any, ...]], expression: str, query: str, device: str
) -> None:
    assert_as_duckdb(table_of(rows), query.format(expression), device)


@pytest.mark.parametrize("expression", [e for e in EXPRESSIONS if "levenshtein" not in e])
def test_texts_of_many_rows_are_duckdbs(expression: str) -> None:
    random = np.random.default_rng(5)
    rows = 66_000  # more tuples than are evaluated at once

    def some(values: np.ndarray) -> list[Any]:
        return [None if gone else v for v, gone in zip(values.tolist(), random.random(rows) < 0.1, strict=True)]

    columns = [
        some(random.integers(-(2**63), 2**63 - 1, rows)),
        some(random.normal(size=rows) * 10.0 ** random.integers(-30, 30, rows)),
        some(random.integers(0, 2 * 10**15, rows) // 1000 * 1000),
        some(random.integers(-10_000, 40_000, rows)),
        some(random.integers(-(10**17), 10**17, rows)),
        some(random.integers(0, 6, rows)),
    ]
    table = table_of(list(zip(*columns, strict=True)))
    assert_as_duckdb(table, f"SELECT {expression} AS r FROM t", "cpu")
    assert_as_duckdb(
        table, f"SELECT {expression} AS r, count(*) FROM t WHERE k = 3 GROUP BY r ORDER BY r LIMIT 99", "cpu"
    )
