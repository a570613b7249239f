"""Values as text: what DuckDB prints is what the shell prints."""

import datetime
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

from gpudb.shell.values import interval_text, json_column, text_column
from gpudb.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTERVAL, REAL, TIMESTAMP, VARCHAR, decimal


def texts(sql_type, values: list) -> list[str | None]:
    return text_column(pa.array(values, sql_type.arrow), sql_type).to_pylist()


def duckdb_texts(type_name: str, literals: list[str]) -> list[str]:
    rows = ", ".join(f"(CAST({literal} AS {type_name}))" for literal in literals)
    return [text for (text,) in duckdb.sql(f"SELECT CAST(x AS VARCHAR) FROM (VALUES {rows}) AS t(x)").fetchall()]


FLOATS = ["0.0", "1.0", "-2.5", "0.1", "1e-5", "1e-7", "1e15", "1e16", "1e20", "123456.789", "'nan'", "'inf'", "'-inf'"]


@pytest.mark.parametrize("sql_type", [DOUBLE, REAL])
def test_floats_are_the_shortest_text_that_reads_back(sql_type):
    values = [float(literal.strip("'")) for literal in FLOATS]
    assert texts(sql_type, values) == duckdb_texts(str(sql_type), FLOATS)


def test_dates_and_timestamps_of_any_year():
    days = [0, -1, 15889, -719528, -719529, 3_000_000]
    assert texts(DATE, days) == duckdb_texts("DATE", [f"DATE '1970-01-01' + {day}" for day in days])
    microseconds = [0, 1, 1_500_000, -1, 1372914367250000, 10**15]
    assert texts(TIMESTAMP, microseconds) == duckdb_texts("TIMESTAMP", [f"make_timestamp({us})" for us in microseconds])


@pytest.mark.parametrize(
    ("months", "days", "microseconds"),
    [
        (0, 0, 0),
        (14, 40, 3_661_000_000),
        (12, 1, 0),
        (-1, -1, -1),
        (0, 2, 500_000),
        (0, 0, 360_000_000_000),
        (-14, 0, 5),
    ],
)
def test_intervals(months, days, microseconds):
    literal = f"to_months({months}) + to_days({days}) + to_microseconds({microseconds})"
    assert [interval_text(months, days, microseconds * 1000)] == duckdb_texts("INTERVAL", [literal])


def test_decimals_are_never_in_scientific_notation():
    assert texts(decimal(20, 10), [0, 1, None]) == ["0.0000000000", "1.0000000000", None]
    assert text_column(pa.array(["0.0000000001"]).cast(pa.decimal128(20, 10)), decimal(20, 10)).to_pylist() == [
        "0.0000000001"
    ]
    assert texts(decimal(10, 2), [Decimal("1.50")]) == ["1.50"]


@pytest.mark.parametrize(
    "sql_type", [BIGINT, BOOLEAN, DOUBLE, REAL, DATE, TIMESTAMP, VARCHAR, INTERVAL, decimal(18, 8)]
)
def test_null_stays_null_and_becomes_null_in_json(sql_type):
    column = pa.array([None], sql_type.arrow)
    assert text_column(column, sql_type).to_pylist() == [None]
    assert json_column(column, sql_type).to_pylist() == ["null"]


def test_json_quotes_what_is_not_a_number_or_a_boolean():
    def as_json(sql_type, value):
        return json_column(pa.array([value], sql_type.arrow), sql_type)[0].as_py()

    assert as_json(VARCHAR, 'say "hé"\n\\') == r'"say \"hé\"\n\\"'
    assert as_json(DOUBLE, float("nan")) == '"NaN"'
    assert as_json(DOUBLE, float("-inf")) == '"-Infinity"'
    assert as_json(BOOLEAN, True) == "true"
    assert as_json(DATE, datetime.date(2013, 1, 2)) == '"2013-01-02"'
