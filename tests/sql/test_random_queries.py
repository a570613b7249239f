"""Random queries, run: the same bytes on `cpu` and `reference`, the answer or an error where DuckDB has it."""

from __future__ import annotations

from functools import cache

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpudb
from benchmarks.equality import difference
from tests.devices.queries import content
from tests.sql import random_tables
from tests.sql.random_queries import RandomQuery, queries
from tests.sql.runner import plain_type

# What gpudb refuses although DuckDB runs it: a part of the message, and why.  Everything else that only one engine runs is
# a bug, with one exception: a constant that does not fit its type is refused when the query is planned, by DuckDB at the
# first row that needs it.
REFUSALS = {
    "beyond 64 bits are not supported": "MIN, MAX and their kin over HUGEINT and wide DECIMAL values",
}


class Engines:
    """One table in DuckDB and in gpudb, on two devices."""

    def __init__(self, rows: int, style: str) -> None:
        data = random_tables.table(rows, style)
        self.oracle = duckdb.connect(config={"threads": "1"})
        # DuckDB's rewrites drop expressions that would fail; without them errors are where the SQL has them.
        self.oracle.execute("PRAGMA disable_optimizer")
        self.oracle.register("source", data)
        self.oracle.execute("CREATE TABLE t AS SELECT * FROM source")
        self.devices = {}
        for device in ("cpu", "reference"):
            self.devices[device] = gpudb.connect()
            self.devices[device].execute(f"SET device = '{device}'")
            self.devices[device].register("source", data)
            self.devices[device].execute("CREATE TABLE t AS SELECT * FROM source")

    def expected(self, sql: str) -> pa.Table | duckdb.Error:
        try:
            return self.oracle.sql(sql).to_arrow_table()
        except duckdb.Error as error:
            return error

    def found(self, sql: str) -> pa.Table | gpudb.Error:
        """What both devices answer; AssertionError where they differ in a byte."""
        answers = []
        for connection in self.devices.values():
            try:
                answers.append(connection.execute(sql).fetch_arrow_table())
            except gpudb.Error as error:
                answers.append(error)
        one, other = answers
        if isinstance(one, pa.Table) and isinstance(other, pa.Table):
            assert one.schema == other.schema
            assert content(one) == content(other), f"cpu and reference differ\n{sql}"
            return one
        assert (type(one), str(one)) == (type(other), str(other)), f"cpu and reference differ\n{sql}\n{one}\n{other}"
        return one


def bits(table: pa.Table) -> list[tuple[list[bool], bytes | list[object]]]:
    """Each column's NULLs and values, floats as the bits they are; `content` wants whole tables, this takes slices too."""
    columns: list[tuple[list[bool], bytes | list[object]]] = []
    for column in table.columns:
        nulls = column.is_null().to_pylist()
        if pa.types.is_floating(column.type):
            columns.append((nulls, column.fill_null(0).to_numpy().tobytes()))
        elif pa.types.is_temporal(column.type):
            columns.append(
                (nulls, column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64()).to_pylist())
            )
        else:
            columns.append((nulls, column.to_pylist()))
    return columns


@cache
def engines(rows: int, style: str) -> Engines:
    return Engines(rows, style)


def check(rows: int, style: str, query: RandomQuery) -> None:
    both, sql = engines(rows, style), query.sql
    expected, found = both.expected(sql), both.found(sql)
    if isinstance(found, gpudb.NotSupportedError):
        assert any(part in str(found) for part in REFUSALS), f"{sql}\n{found}"
        return
    if isinstance(expected, duckdb.Error) or isinstance(found, gpudb.Error):
        if isinstance(both.found(f"EXPLAIN {sql}"), gpudb.DataError):
            return  # a constant that does not fit
        assert isinstance(expected, duckdb.Error), f"only gpudb fails on {rows} {style}\n{sql}\n{found}"
        assert isinstance(found, gpudb.Error), f"only DuckDB fails on {rows} {style}\n{sql}\n{expected}"
        return
    assert found.column_names == expected.column_names, sql
    assert found.schema.types == [plain_type(field.type) for field in expected.schema], f"{sql}\n{expected.schema}"
    wanted = pa.schema([pa.field(field.name, plain_type(field.type)) for field in expected.schema])
    expected = expected.cast(wanted)
    names = [str(position) for position in range(found.num_columns)]
    problem = difference(
        found.rename_columns(names),
        expected.rename_columns(names),
        order_by=[names[at] for at in query.ordered],
        values_only=True,
    )
    assert problem is None, f"{rows} {style}\n{sql}\n{problem}"
    if query.limit:
        words = query.limit.split()
        offset = int(words[words.index("OFFSET") + 1]) if "OFFSET" in words else 0
        length = int(words[1]) if words[0] == "LIMIT" else None
        part = both.found(sql + query.limit)
        assert isinstance(part, pa.Table), f"{sql}{query.limit}\n{part}"
        assert bits(part) == bits(found.slice(offset, length)), f"not the slice it should be: {sql}{query.limit}"


ANY_TABLE = (st.sampled_from(random_tables.ROWS), st.sampled_from(random_tables.STYLES))


@settings(max_examples=100)
@given(rows=ANY_TABLE[0], style=ANY_TABLE[1], query=queries())
def test_random_queries_give_duckdbs_answers_on_every_device(rows: int, style: str, query: RandomQuery) -> None:
    check(rows, style, query)


@pytest.mark.slow
@settings(max_examples=2_000, derandomize=False)
@given(rows=ANY_TABLE[0], style=ANY_TABLE[1], query=queries())
def test_thousands_of_random_queries_give_duckdbs_answers(rows: int, style: str, query: RandomQuery) -> None:
    check(rows, style, query)
