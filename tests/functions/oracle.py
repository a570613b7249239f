"""Random arguments, and the two sides of a comparison: our bodies over arrays, and the same call in live DuckDB."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from gpudb.errors import DataError
from gpudb.functions.registry import Overload, parse_type
from gpudb.types import Interval, SqlType

FAILED = object()
"""Stands for a row on which a function fails."""

ROWS = 400
WORDS = [
    "", "a", "ab", "abc", "Abc", "ABC", "hello", "Hello World", "  padded  ", "xx", "é", "Málaga", "straße",
    "İstanbul", "ΑΣ",
    "e\u0301a", "a\u0308\u0301b", "👍🏽x", "👨‍👩‍👧", "🇩🇪🇫🇷", "한국어", "日本", "%", "_", "a%c", "a_c", "a\\c", "10%",
    "a,b,,c", ",", "a.b*c",
    "line\nbreak", "tab\tx", "0", "12", "-7", "2013-07-04", "N725MQ", "[x]", "(y)", "aaa", "abab", "\u00a0x\u3000",
    "ﬁ", "ǆ",
]  # fmt: skip
INTERVALS = [
    Interval(0, 0, 0), Interval(1, 0, 0), Interval(-1, 0, 0), Interval(14, 3, 0), Interval(0, 1, 0),
    Interval(0, -30, 5), Interval(0, 0, 1),
    Interval(0, 0, 3_600_000_000), Interval(0, 0, -90_000_000_001), Interval(-25, 40, 86_400_000_000),
    Interval(1200, 0, 0), Interval(0, 7, 0),
]  # fmt: skip


def random_value(kind: str, source: random.Random) -> Any:
    """One value of a SQL type: often small, sometimes extreme."""
    extreme = source.random() < 0.25
    if kind == "BOOLEAN":
        return source.random() < 0.5
    if kind in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"):
        low, high = (-(10**38) + 1, 10**38 - 1) if kind == "HUGEINT" else SqlType(kind).bounds  # what Arrow carries
        if extreme:
            return source.choice([low, low + 1, high, high - 1, 0, -1, 1, source.randint(low, high)])
        return max(low, min(high, source.randint(-40, 60)))
    if kind in ("REAL", "DOUBLE"):
        value = source.choice(
            [source.uniform(-10, 10), source.uniform(-1, 1), source.gauss(0, 1e6), float(source.randint(-9, 9)) / 2]
        )
        if extreme:
            value = source.choice(
                [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 5e-324, -2.2e-308, 1.7e308, 1e-17, 0.49999999999999994,
                 4503599627370497.5, -9007199254740993.0, 1e22, source.uniform(-1, 1) * 10.0 ** source.randint(-300, 300)]
            )  # fmt: skip
        return _single(value) if kind == "REAL" else value
    if kind == "DATE":
        if extreme:
            return source.choice(
                [2**31 - 1, -(2**31) + 1, 2**31 - 2, -(2**31) + 2, 0, -1, -719528, -719529, 2932896, 11016]
            )
        return source.choice([source.randint(-40_000, 40_000), source.randint(-3_000_000, 3_000_000)])
    if kind == "TIME":
        return source.choice([0, 86_400_000_000, 86_399_999_999, source.randint(0, 86_400_000_000)])
    if kind == "TIMESTAMPTZ":
        return source.randint(-4_000_000_000_000, 8_000_000_000_000) * 1000
    if kind == "TIMESTAMP":
        if extreme:
            return source.choice(
                [2**63 - 1, -(2**63) + 1, 0, -1, 1, 999_999, -62135596800000000, 951782400000000, 86_399_999_999]
            )
        spread = source.choice([10**12, 10**15, 10**17, 5 * 10**18])
        value = source.randint(-spread, spread)
        return value - value % source.choice([1, 1000, 10**6, 3_600_000_000, 86_400_000_000])
    if kind == "VARCHAR":
        if source.random() < 0.6:
            return source.choice(WORDS)
        return "".join(source.choice("abcAB é1_%.ß🇩🇪\u0301") for _ in range(source.randint(0, 12)))
    if kind == "INTERVAL":
        return source.choice(INTERVALS)
    if kind == "UUID":  # its bits
        return source.randint(-(1 << 127), (1 << 127) - 1)
    if kind == "SPAN":  # the bits of Arrow's month_day_nano
        months, days = source.randint(-(2**31), 2**31 - 1), source.randint(-(2**31), 2**31 - 1)
        nanoseconds = source.randint(-(10**12), 10**12) * 1000
        return int.from_bytes(struct.pack("<iiq", months, days, nanoseconds), "little", signed=True)
    raise AssertionError(f"no random value of {kind}")


def _single(value: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(value))


Generator = Callable[[random.Random], Any]


def integers(low: int, high: int) -> Generator:
    """Uniform integers."""
    return lambda source: source.randint(low, high)


def among(*values: Any) -> Generator:
    """One of some values."""
    return lambda source: source.choice(values)


def near(kind: str, low: int, high: int) -> Generator:
    """Dates or timestamps whose arithmetic stays in range."""
    return lambda source: source.randint(low, high)


def random_columns(
    overload: Overload, generators: dict[int, Generator], seed: int, arity: int | None = None, rows: int = ROWS
) -> list[Any]:
    """One list (a tenth NULLs) per argument; for an INTERVAL one constant."""
    source = random.Random(f"{overload.name} {overload.arguments} {seed}")
    kinds = list(overload.arguments)
    if overload.variadic:
        kinds = kinds[:-1] + kinds[-1:] * source.randint(1, 3)
    columns: list[Any] = []
    for place, kind in enumerate(kinds):
        if kind == "INTERVAL":
            generate = generators.get(place, lambda source: random_value("INTERVAL", source))
            columns.append(generate(source))
            continue
        generate = generators.get(place, lambda source, kind=kind: random_value(kind, source))
        if kind == "VARCHAR" and place == len(kinds) - 1 and overload.name in ("make_timestamptz", "time_bucket"):
            generate = among("UTC", "Europe/Berlin", "america/new_york")
        columns.append([None if source.random() < 0.1 else generate(source) for _ in range(rows)])
    return columns


def arrow_column(kind: str, values: list[Any]) -> pa.Array:
    """Values as lists of Python to the Arrow array both sides read."""
    type_ = parse_type(kind)
    if kind == "DATE":
        return pa.array(values, pa.int32()).cast(pa.date32())
    if kind in ("TIME", "TIMESTAMP", "TIMESTAMPTZ"):
        return pa.array(values, pa.int64()).cast(type_.arrow)
    if kind == "HUGEINT":
        return pa.array([None if v is None else Decimal(v) for v in values], pa.decimal128(38, 0))
    return pa.array(values, type_.arrow)


def python_values(array: pa.Array | pa.ChunkedArray, kind: str) -> list[Any]:
    """A result as Python values: dates as days, timestamps as microseconds."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if kind == "DATE":
        return array.cast(pa.int32()).to_pylist()
    if kind in ("TIME", "TIMESTAMP", "TIMESTAMPTZ"):
        return array.cast(pa.int64()).to_pylist()
    if kind == "HUGEINT":
        return [None if v is None else int(v) for v in array.to_pylist()]
    return array.to_pylist()


# --- our side -------------------------------------------------------------------------------------------------------


def evaluate(overload: Overload, columns: list[Any]) -> list[Any]:
    """The value, None or FAILED per row, from the bodies."""
    rows = next(len(c) for c in columns if isinstance(c, list))
    valid = [all(c[i] is not None for c in columns if isinstance(c, list)) for i in range(rows)]
    if overload.kind == "scalar":
        return _evaluate_scalar(overload, columns, np.array(valid))
    alive = [i for i in range(rows) if valid[i]]
    result: list[Any] = [None] * rows
    found = _evaluate_text(overload, [[c[i] for i in alive] if isinstance(c, list) else c for c in columns])
    for place, value in zip(alive, found, strict=True):
        result[place] = value
    return result


def register_array(kind: str, values: list[Any]) -> np.ndarray:
    """Values as a tile's register holds them; NULL rows hold 0."""
    dtype = parse_type(kind).register.dtype
    array = np.empty(len(values), dtype)
    array[:] = [0 if v is None else v for v in values]
    return array


def scalar_arguments(overload: Overload, columns: list[Any]) -> list[Any]:
    """Register arrays; an Interval stays itself."""
    return [
        c if isinstance(c, Interval) else register_array(kind, c)
        for kind, c in zip(overload.arguments, columns, strict=True)
    ]


def _evaluate_scalar(overload: Overload, columns: list[Any], valid: np.ndarray) -> list[Any]:
    arguments = scalar_arguments(overload, columns)
    rows = len(valid)
    with np.errstate(all="ignore"):
        value = np.broadcast_to(np.asarray(overload.body(*arguments)), rows).astype(overload.result.register.dtype)
        nulls = ~valid
        if overload.null_when is not None:
            nulls = nulls | np.broadcast_to(np.asarray(overload.null_when[1](*arguments), bool), rows)
        failed = np.zeros(rows, bool)
        if overload.domain is not None:
            failed = ~np.broadcast_to(np.asarray(overload.domain[1](*arguments), bool), rows) & ~nulls
    values = value.tolist()
    if overload.result.kind == "BOOLEAN":
        values = [bool(v) for v in values]
    return [FAILED if failed[i] else None if nulls[i] else values[i] for i in range(rows)]


def _evaluate_text(overload: Overload, columns: list[Any]) -> list[Any]:
    rows = next(len(c) for c in columns if isinstance(c, list))
    if not rows:
        return []
    arguments = [
        arrow_column(kind, c) if isinstance(c, list) else c
        for kind, c in zip(_kinds(overload, len(columns)), columns, strict=True)
    ]
    try:
        result = overload.body(*arguments)
    except DataError:
        if rows == 1:
            return [FAILED]
        return [
            value for i in range(rows)
            for value in _evaluate_text(overload, [[c[i]] if isinstance(c, list) else c for c in columns])
        ]  # fmt: skip
    assert result.type == overload.result.arrow, f"{overload.name} gave {result.type}"
    assert len(result) == rows
    return python_values(result, overload.result.kind)


def _kinds(overload: Overload, count: int) -> list[str]:
    kinds = list(overload.arguments)
    return kinds + kinds[-1:] * (count - len(kinds)) if overload.variadic else kinds[:count]


# --- DuckDB's side --------------------------------------------------------------------------------------------------


@cache
def connection() -> duckdb.DuckDBPyConnection:
    """One DuckDB for all tests."""
    found = duckdb.connect()
    found.execute("SET threads = 1")
    return found


def sql_type(kind: str) -> str:
    """The name of a type in SQL."""
    return {"REAL": "FLOAT", "TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE"}.get(kind, kind)


def literal(value: Any) -> str:
    """A constant in SQL."""
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def interval_sql(value: Interval) -> str:
    """An INTERVAL literal."""
    return f"INTERVAL '{value.months} months {value.days} days {value.microseconds} microseconds'"


def duckdb_values(
    template: str, overload: Overload, columns: list[Any], result_kind: str, *, try_: bool = True
) -> list[Any]:
    """The call per row in DuckDB, NULL where it fails; template has {0}, {1} ... for the arguments."""
    arrays, arguments = {}, []
    for place, (kind, column) in enumerate(zip(_kinds(overload, len(columns)), columns, strict=True)):
        if isinstance(column, Interval):
            arguments.append(f"({interval_sql(column)})")
        elif isinstance(column, list):
            arrays[f"a{place}"] = arrow_column(kind, column)
            arguments.append(f"CAST(a{place} AS {sql_type(kind)})" if kind == "HUGEINT" else f"a{place}")
        else:
            arguments.append(literal(column))
    call = template.format(*arguments)
    table = pa.table(arrays)
    con = connection()
    con.register("arguments", table)
    cast = f"CAST({call} AS {sql_type(result_kind)})" if result_kind == "HUGEINT" else call
    try:
        relation = con.sql(
            f"SELECT {f'TRY({cast})' if try_ else cast} AS result, typeof({call}) AS kind FROM arguments"
        )
        result = relation.to_arrow_table()
    except (
        duckdb.InvalidInputException,
        duckdb.SyntaxException,
        duckdb.NotImplementedException,
    ):  # a constant argument is wrong
        return [None] * table.num_rows
    kinds = set(result["kind"].to_pylist())
    expected = {sql_type(result_kind)} | ({'"NULL"'} if result["result"].null_count else set())
    assert kinds <= expected, f"{call} has type {kinds} in DuckDB, not {result_kind}"
    return python_values(result["result"], result_kind)


def same(ours: Any, theirs: Any, *, ulps: int = 0, relative: float = 0.0) -> bool:
    """Equal, NaN to NaN; floats within some units in the last place or a relative distance."""
    if ours is None or theirs is None:
        return ours is theirs
    if isinstance(ours, float) and isinstance(theirs, float):
        if math.isnan(ours) or math.isnan(theirs):
            return math.isnan(ours) and math.isnan(theirs)
        if ours == theirs:
            return True
        if math.isinf(ours) or math.isinf(theirs):
            return False
        distance = abs(ours - theirs)
        return distance <= max(ulps * math.ulp(theirs), relative * abs(theirs))
    return type(ours) is type(theirs) and ours == theirs
