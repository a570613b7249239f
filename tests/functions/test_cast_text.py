"""Casts between VARCHAR and every other type, against DuckDB: what it prints, and what it reads or refuses."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
import pytest

from gpudb.errors import ConversionError
from gpudb.functions import cast_text
from gpudb.functions.cast_text import parse_values, print_values
from gpudb.functions.registry import Overload, parse_type
from gpudb.types import Interval, SqlType, decimal
from tests.functions import oracle

KINDS = ["BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "REAL", "DOUBLE", "DATE", "TIMESTAMP"]
NUMBERS = [
    "", " ", "0", "-0", "+5", "12", " 12 ", "\t12\n", "1_000", "1__0", "_10", "10_", "1 2", "0x1F", "0X1f", "-0x1F",
    "0x", "0x1_F", "0b11", "0b102", "0o17",
    "1.5", "2.5", "-1.5", "-2.5", "0.5", "-.5", "-.4", "0.49", "1.", ".5", ".", "-", "+-5", "1e2", "1E2", "1e+5",
    "1e-1", "5e-1", "15e-1", "149e-2", "1.5e1",
    "1e", "e5", "1e10", "1e400", "-1e400", "1e-400", "127.4", "127.5", "128", "-128.4", "-129", "32767", "32768",
    "2147483647", "2147483647.4", "-2147483649",
    "9223372036854775807", "9223372036854775808", "1.49999999999999999999999999999999999", "12345678.9e-2", "00012",
    "1.5.", "1.5_0", "1_0.5", "1e1_0", "1e 5",
    "nan", "NaN", "-nan", "inf", "-Infinity", "+inf", "infi", "1d", "1f", "1._5", "1_e5", "1e_5", ".e5", "1.e5",
    ".5e5", "0x10", "true", "１２", "1e9999999999",
    "0e9999999999", "1e38", "99999999999999999999999999999999999999", "0.1", "16777217", "16777217.0000001", "1e39",
    "3.4028235677973366e38", "1e-46",
    "7.006492321624086e-46", "123456789012345678", "1.7976931348623157e308", "1.7976931348623159e308",
    "2.2250738585072014e-308", "5e-324", "2e-324", "1\u001f", "1\u00a0",
]  # fmt: skip
BOOLEANS = [
    "true",
    "TRUE",
    "tRuE",
    "t",
    "T",
    "yes",
    "y",
    "1",
    "false",
    "f",
    "F",
    "no",
    "N",
    "0",
    "on",
    "off",
    "tr",
    "2",
    " true ",
    "",
    "00",
]
DATES = [
    "2013-07-04", "2013-7-4", "2013/07/04", "2013\\07\\04", "2013 07 04", " 2013-07-04 ", "2013-07/04",
    "2013-007-04", "2013-07-004", "2013-02-29", "2012-02-29",
    "2013-13-01", "2013-00-01", "20130704", "2013.07.04", "2013- 7-4", "13-07-04", "0001-01-01", "0000-01-01",
    "-44-03-15", "--5-1-1", "+2013-07-04", "0044-03-15 (BC)",
    "0044-03-15 (bc)", "0044-03-15(BC)", "0044-03-15  (BC)", "0000-01-01 (BC)", "-5-01-01 (BC)", "2013-07-04 BC",
    "infinity", "-infinity", "Infinity", "inf", "-inf",
    "+infinity", "epoch", "EPOCH", "-epoch", " infinity ", "infinity x", "infin", "12013-07-04", "5881580-07-10",
    "5881580-07-11", "5877642-06-25 (BC)",
    "5877642-06-24 (BC)", "9999999-01-01", "99999999999-01-01", "", "x", "2013", "2013-", "2013-07-", "2013-07",
    "2013-07-04x", "2013-07-04 junk", "2013-07-04T",
    "2013-07-04 1", "2013-07-04 12:00", "2013-07-04T12:00:00", "2013-07-04t12:00", "2013-07-04 12:00:00+02",
    "2013-07-04 99:00", "02013-07-04",
]  # fmt: skip
TIMES = [
    " 12:34:56", "T12:34:56", " 12:34", " 1:2:3", "  12:34:56", "T 12:00", " 12:34:56.5", " 12:34:56.123456",
    " 12:34:56.1234567", " 12:34:56.9999999", " 12:34:56.",
    " 12:34:56,5", " 12:34.5", " 12:34:", " 12", " 12:", " 24:00:00", " 24:00", " 24:00:00.000001", " 24:00:01",
    " 25:34:05", " 23:60:00", " 23:59:60", " 012:34:05",
    " 12:034:05", " 12:34:056", " 12:34:56Z", " 12:34Z", " 12:34:56z", " 12:34:56ZZ", " 12:34:56Z ", " 12:34:56 Z",
    " 12:34:56 UTC", " 12:34:56 utc", " 12:34:56  UTC",
    " 12:34:56 UTC  ", " 12:34:56 UTC x", " 12:34:56 Europe/Berlin", " 12:34:56 foo!", " 12:34:56 a_b+5",
    " 12:34:56foo", " 12:34:56 1", " 12:34:56 !", " 12:34:56+02",
    " 12:34:56 +02", " 12:34:56+0230", " 12:34:56+02:30", " 12:34:56-02:30:15", " 12:34:56+2", " 12:34:56+02:3",
    " 12:34:56+02:30:1", " 12:34:56+02:30:15x",
    " 12:34:56+023", " 12:34:56+0230x", " 12:34:56+02 x", " 12:34:56+002", " 12:34:56-", " 12:34:56+99",
    " 12:34:56 BC", "Z", " +02", "   ", " ", " (BC) 12:34",
    " (BC)T12:34:56.5", "(BC) 12:34", " 12-34-56", " :34:56",
]  # fmt: skip
TIMESTAMPS = [
    *DATES, *(f"2013-07-04{time}" for time in TIMES), "294247-01-10 04:00:54.775806", "294247-01-10 04:00:54.775807",
    "290309-12-22 (BC) 00:00:00",
    "290309-12-21 (BC) 00:00:00", "12:34:56", "1969-12-31 23:59:59.999999", "infinity 12:00", "epoch 12:00",
]  # fmt: skip
TEXTS = {"BOOLEAN": BOOLEANS + NUMBERS, "DATE": DATES, "TIMESTAMP": TIMESTAMPS}
DECIMALS = [
    decimal(4, 1),
    decimal(10, 2),
    decimal(18, 4),
    decimal(38, 0),
    decimal(38, 10),
    decimal(2, 2),
    decimal(5, 0),
]


def random_texts(kind: str) -> list[str]:
    """Texts of the right kind's characters, mostly wrong."""
    source = random.Random(kind)
    letters = {"DATE": "0123-/ (BC)", "TIMESTAMP": "01239-: .TZ+"}.get(kind, "0123459.eE+-_ xX")
    return ["".join(source.choice(letters) for _ in range(source.randint(1, 9))) for _ in range(1500)]


def in_duckdb(values: pa.Array, cast: str) -> pa.Array:
    con = oracle.connection()
    con.register("given", pa.table({"x": values}))
    return con.sql(f"SELECT {cast} AS r FROM given").to_arrow_table()["r"].combine_chunks()


@pytest.mark.parametrize("kind", KINDS)
def test_values_print_as_duckdb_prints_them(kind: str) -> None:
    made = oracle.random_columns(Overload("print", "text", (kind,), parse_type(kind)), {}, seed=5, rows=3000)[0]
    if kind in ("REAL", "DOUBLE"):
        spread = random.Random(kind)
        made += [spread.uniform(-(2.0**k), 2.0**k) for k in range(-20, 60) for _ in range(40)]
        made += (
            [10.0**k for k in range(-40, 38)]
            + [-(10.0**k) / 3 for k in range(-20, 20)]
            + [123456789.0, 16777216.0, 1e15, 1e16, 9999999.0]
        )
    values = oracle.arrow_column(kind, made)
    ours = print_values(values, SqlType(kind))
    theirs = in_duckdb(values, f"CAST(CAST(x AS {oracle.sql_type(kind)}) AS VARCHAR)")
    wrong = [
        (v, a, b) for v, a, b in zip(made, ours.to_pylist(), theirs.to_pylist(), strict=True) if a != b and b != "-nan"
    ]
    assert wrong[:5] == []


@pytest.mark.parametrize("type_", DECIMALS, ids=str)
def test_decimals_print_as_duckdb_prints_them(type_: SqlType) -> None:
    source = random.Random(str(type_))
    low, high = type_.bounds
    scaled = [0, 1, -1, low, high, 5, -5] + [
        source.randint(low, high) // 10 ** source.randint(0, type_.precision) for _ in range(300)
    ]
    values = pa.array([Decimal(v).scaleb(-type_.scale, cast_text._WIDE) for v in scaled] + [None], type_.arrow)
    assert print_values(values, type_).to_pylist() == in_duckdb(values, "CAST(x AS VARCHAR)").to_pylist()


@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_read_as_duckdb_reads_them(kind: str) -> None:
    texts = TEXTS.get(kind, NUMBERS) + random_texts(kind)
    if kind == "HUGEINT":
        texts = [t for t in texts if abs(cast_text.parse_integer(t) or 0) < 10**38]  # what Arrow carries
    compare_parsed(texts, SqlType(kind), oracle.sql_type(kind))


@pytest.mark.parametrize("type_", DECIMALS, ids=str)
def test_texts_are_read_as_decimals_as_duckdb_reads_them(type_: SqlType) -> None:
    compare_parsed(NUMBERS + random_texts("DECIMAL"), type_, str(type_))


def compare_parsed(texts: list[str], type_: SqlType, name: str) -> None:
    values = pa.array([*texts, None], pa.string())
    ours = parse_values(values, type_, try_=True)
    theirs = in_duckdb(values, f"TRY_CAST(x AS {name})")
    assert ours.type == type_.arrow
    kind = "" if type_.kind == "DECIMAL" else type_.kind
    pairs = zip(values.to_pylist(), oracle.python_values(ours, kind), oracle.python_values(theirs, kind), strict=True)
    assert [(t, a, b) for t, a, b in pairs if not oracle.same(a, b)][:8] == []


def test_a_column_of_usual_dates_takes_the_short_way_and_agrees() -> None:
    texts = [
        f"{year:04}-{month:02}-{day:02}"
        for year in (1, 1969, 1970, 2012, 9999)
        for month in range(1, 13)
        for day in (1, 28, 29)
    ]
    texts = [t for t in texts if cast_text.parse_date(t) is not None]
    ours = parse_values(pa.array([*texts, None]), SqlType("DATE")).cast(pa.int32()).to_pylist()
    assert ours == [cast_text.parse_date(t) for t in texts] + [None]


def test_a_text_that_is_no_value_is_named() -> None:
    with pytest.raises(ConversionError, match="not a value of type INTEGER: 'one'"):
        parse_values(pa.array(["1", "one", "two"]), SqlType("INTEGER"))


@pytest.mark.parametrize(
    "value", oracle.INTERVALS + [Interval(25, -1, -1), Interval(0, 0, 1_500_000), Interval(-13, 0, 0)], ids=str
)
def test_intervals_print_as_duckdb_prints_them(value: Interval) -> None:
    theirs = oracle.connection().sql(f"SELECT CAST({oracle.interval_sql(value)} AS VARCHAR)").fetchall()[0][0]
    assert cast_text.print_interval(value) == theirs


def test_civil_and_days_of_are_inverse_and_follow_duckdb() -> None:
    days = list(range(-800_000, 800_000, 997)) + [-719528, -719529, 0, 11016, 59]
    assert [cast_text.days_of(*cast_text.civil(d)) for d in days] == days
    theirs = in_duckdb(oracle.arrow_column("DATE", days), "[year(x), month(x), day(x)]").to_pylist()
    assert [list(cast_text.civil(d)) for d in days] == theirs
