"""Random single-table queries: names, types and refusals as DuckDB's, and plans that the rules keep whole."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from hypothesis import given

from gpudb.errors import DataError, Error
from gpudb.planner.rules import apply_rules
from tests.planner.catalog import duckdb_with_table, our_columns, plan, their_columns
from tests.planner.test_rules import check, walk
from tests.sql.random_queries import RandomQuery, queries


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb_with_table() as opened:
        yield opened


@given(query=queries())
def test_random_queries_have_duckdbs_columns(connection: duckdb.DuckDBPyConnection, query: RandomQuery) -> None:
    sql = query.sql + query.limit
    try:
        theirs = their_columns(connection, sql)
    except duckdb.Error:
        theirs = None
    try:
        ours = our_columns(sql)
    except DataError:
        return  # a literal that does not fit: DuckDB reports it at the first row
    except Error as error:
        assert theirs is None, (sql, error)
        return
    assert ours == theirs, sql


@given(query=queries())
def test_rules_keep_random_plans_whole(query: RandomQuery) -> None:
    sql = query.sql + query.limit
    try:
        before = plan(sql)
    except Error:
        return
    after = apply_rules(before)
    assert after.columns == before.columns
    for node in walk(after):
        check(node)
