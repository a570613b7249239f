"""Zone maps: a row group is skipped where no row of it can match, and nowhere else."""

from __future__ import annotations

import datetime
from decimal import Decimal
from functools import cache

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from gpudb.session import Database, Session
from gpudb.storage import arrow
from gpudb.storage.table import TableBuilder

GROUP_ROWS = 4096
GROUPS = 5  # and a shorter one
STEP = 60  # of `minute`, so that it is stored as a multiple


def rows() -> pa.Table:
    """Ascending columns, so that every row group has a range of its own; one group has nothing but NULL in `n`."""
    count = GROUPS * GROUP_ROWS + 77
    numbers = np.arange(count)
    hidden = (numbers // GROUP_ROWS == 2) | (numbers % 7 == 3)
    start = np.datetime64("2013-01-01T00:00", "us")
    return pa.table(
        {
            "id": pa.array(numbers, pa.int32()),
            "n": pa.array(numbers - 9000, pa.int32(), mask=hidden),
            "minute": pa.array(numbers * STEP, pa.int64()),
            "moment": pa.array(start + (numbers * 3600).astype("timedelta64[s]")),
            "day": pa.array((start + (numbers // 24).astype("timedelta64[D]")).astype("datetime64[D]")),
            "price": pa.array([Decimal(n) / 4 for n in range(count)], pa.decimal128(14, 2)),
            "part": pa.array(numbers // GROUP_ROWS, pa.int8()),
        }
    )


@cache
def ours() -> Session:
    database = Database()
    table = rows()
    builder = TableBuilder(arrow.columns_of(table.schema), row_group_rows=GROUP_ROWS)
    builder.append(table)
    database.storage.commit({"t": builder.finish("t")}, database.storage.version)
    return Session(database)


@cache
def theirs() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.register("arrow_rows", rows())
    connection.execute("CREATE TABLE t AS SELECT * FROM arrow_rows")
    return connection


def edges(column: str) -> list[str]:
    """Literals at the ends of the first, a middle and the last row group, one beside each, and between stored values."""
    table = rows()
    found: dict[str, None] = {}
    for position in (0, GROUP_ROWS - 1, GROUP_ROWS, 3 * GROUP_ROWS - 1, 3 * GROUP_ROWS, table.num_rows - 1):
        value = table[column][position].as_py()
        if value is None:
            continue
        match value:
            case datetime.datetime():
                beside = [value + datetime.timedelta(microseconds=k) for k in (-1, 0, 1)]
                found |= {f"TIMESTAMP '{v}'": None for v in beside}
            case datetime.date():
                found |= {f"DATE '{value + datetime.timedelta(days=k)}'": None for k in (-1, 0, 1)}
            case _:
                found |= {f"{value + k}": None for k in (-1, 0, 1)}
    return list(found)


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "=", "<>"])
@pytest.mark.parametrize("column", ["id", "n", "minute", "moment", "day", "price", "part"])
def test_no_row_of_a_skipped_row_group_would_have_matched(column: str, operator: str, device: str) -> None:
    ours().execute(f"SET device = '{device}'")
    for literal in edges(column):
        sql = f"SELECT count(*), min(id), max(id) FROM t WHERE {column} {operator} {literal}"
        found = ours().execute(sql).table().to_pylist()
        assert [tuple(row.values()) for row in found] == theirs().execute(sql).fetchall(), sql


@pytest.mark.parametrize(
    ("condition", "groups"),
    [
        ("id >= 0", 6),
        ("id < 4096", 1),
        ("id <= 4096", 2),
        ("id > 4095", 5),
        ("id > 4094", 6),
        ("id = 4096", 1),
        ("id = -1", 0),
        ("id BETWEEN 4095 AND 4096", 2),
        ("id > 4095 AND id < 8192", 1),
        ("id > 20556", 0),
        ("id >= 20556", 1),
        ("n < -4904", 1),
        ("n < -4903", 2),
        ("n IS NULL AND id < 10", 1),
        ("minute > 245699 AND minute < 245701", 1),
        ("moment < TIMESTAMP '2013-06-20 16:00:00'", 1),
        ("day = DATE '2013-01-01'", 1),
        ("id < 10 OR id > 20000", 6),
    ],
)
def test_only_row_groups_that_may_match_are_run(condition: str, groups: int) -> None:
    ours().execute("SET device = 'cpu'")
    sql = f"SELECT count(*) FROM t WHERE {condition}"
    result = ours().execute(sql)
    assert [(n,) for n in result.table().column(0).to_pylist()] == theirs().execute(sql).fetchall()
    assert run_groups(result.receipt) == groups


def run_groups(receipt: dict[str, int]) -> int:
    """Row groups that were not skipped, from the tiles that were: a whole row group has as many each, the last has one."""
    whole, rest = divmod(receipt["tiles_skipped"], GROUP_ROWS // ours().settings["tile_rows"])
    return GROUPS + 1 - whole - rest
