"""Every overload through gpudb's SQL over a table, against DuckDB: binding, lowering, kernels and results together."""

from __future__ import annotations

import pyarrow as pa
import pytest

import gpudb
from gpudb.functions.registry import Overload
from gpudb.types import Interval
from tests.functions import oracle
from tests.functions.oracle import FAILED, integers
from tests.functions.test_functions import CONSTANT, GENERATORS, OURS, name_of, overloads, template

ROWS = 200
NARROW = {
    "INTEGER": integers(-300, 3000),
    "BIGINT": integers(-300, 3000),
    "DATE": integers(0, 30_000),
    "TIMESTAMP": integers(1_372_900_000_000_000, 1_372_900_000_016_000),
    "TIMESTAMPTZ": integers(1_372_900_000_000_000, 1_372_900_000_016_000),
}
"""Arguments of functions that run once per distinct value: a column of numbers has to be narrow for them."""


@pytest.fixture(scope="module")
def connection() -> gpudb.Connection:
    return gpudb.connect()


def within(overload: Overload, columns: list) -> list:
    """The columns without the rows on which DuckDB fails: those end a statement, and are tested elsewhere."""
    theirs = oracle.duckdb_values(template(overload, len(columns)), overload, columns, overload.result.kind)
    if overload.kind == "macro" or any(not isinstance(c, list | Interval) for c in columns):
        failed = [value is None for value in theirs]
        if all(failed):
            failed[0] = False
    else:
        failed = [value is FAILED for value in oracle.evaluate(overload, columns)]
    keep = [k for k, wrong in enumerate(failed) if not wrong]
    return [[c[k] for k in keep] if isinstance(c, list) else c for c in columns]


def arguments(overload: Overload, seed: int) -> list:
    """Columns and constants: a function that runs once per distinct value varies in its first argument, or in two texts."""
    generators = dict(GENERATORS.get(overload.name, {}))
    first = 1 if overload.name == "strftime" and overload.arguments[0] == "VARCHAR" else 0
    host = overload.kind == "text" or first
    pairs = overload.arguments == ("VARCHAR", "VARCHAR") and not CONSTANT.get(overload.name)
    for place, kind in enumerate(overload.arguments):
        if host and place == first and kind in NARROW:
            generators[place] = NARROW[kind]
        if kind == "HUGEINT":
            generators[place] = integers(-(1 << 63), (1 << 63) - 1)  # what a column stores
    if first:
        generators = {0: GENERATORS["strftime"][1], 1: NARROW[overload.arguments[1]]}
    columns = oracle.random_columns(overload, generators, seed=seed, rows=ROWS)
    found = []
    for place, (kind, column) in enumerate(zip(oracle._kinds(overload, len(columns)), columns, strict=True)):
        if kind == "INTERVAL":
            found.append(Interval(0, 0, 900_000_000))
        elif (host and place != first and not pairs) or place in CONSTANT.get(overload.name, ()) and place != first:
            found.append(next(v for v in column if v is not None))
        else:
            found.append(column)
    return found


@pytest.mark.parametrize("overload", [o for o in overloads() if not o.name.startswith(OURS)], ids=name_of)
def test_function_over_a_table_gives_what_duckdb_gives(connection: gpudb.Connection, overload: Overload) -> None:
    for seed in range(7, 40):  # until the constants are some that the function takes
        columns = arguments(overload, seed)
        theirs = oracle.duckdb_values(template(overload, len(columns)), overload, columns, overload.result.kind)
        if any(value is not None for value in theirs):
            break
    columns = within(overload, columns)
    kinds = oracle._kinds(overload, len(columns))
    names, arrays = [], {}
    for place, (kind, column) in enumerate(zip(kinds, columns, strict=True)):
        if isinstance(column, list):
            arrays[f"a{place}"] = oracle.arrow_column(kind, column)
            names.append(f"CAST(a{place} AS {oracle.sql_type(kind)})" if kind == "HUGEINT" else f"a{place}")
        else:
            names.append(oracle.interval_sql(column) if isinstance(column, Interval) else oracle.literal(column))
    table = pa.table(arrays)
    connection.register("arguments", table)
    call = template(overload, len(columns)).format(*names)
    ours = connection.execute(f"SELECT {call} AS r FROM arguments").fetch_arrow_table()["r"]
    con = oracle.connection()
    con.register("arguments", table)
    theirs = con.sql(f"SELECT {call} AS r FROM arguments").to_arrow_table()["r"]
    assert ours.type == theirs.type
    kind = overload.result.kind
    pairs = zip(oracle.python_values(ours, kind), oracle.python_values(theirs, kind), strict=True)
    wrong = [
        (row, a, b)
        for row, (a, b) in enumerate(pairs)
        if not oracle.same(a, b, relative=1e-12 if overload.result.is_float else 0)
    ]
    shown = [([c[row] if isinstance(c, list) else c for c in columns], a, b) for row, a, b in wrong[:4]]
    assert shown == [], call
