"""Random single-table queries: names, types and refusals as DuckDB's, and plans that the rules keep whole."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudb.errors import DataError, Error
from gpudb.planner.rules import apply_rules
from tests.planner.catalog import duckdb_with_table, our_columns, plan, their_columns
from tests.planner.test_rules import check, walk

NUMBERS = st.sampled_from("ti si i bi r f d92 d184 a b t.a 1 200 40000 3000000000 -5 1.5 2e3 NULL".split())
TEXTS = st.sampled_from(["s", "t.s", "'x'", "'it''s'", "''"])
DATES = st.sampled_from(["d", "ts", "DATE '2013-01-01'", "TIMESTAMP '2013-01-01 10:00:00'"])
BOOLEANS = st.sampled_from(["x", "TRUE", "NULL", "NOT x"])


def numbers(depth: int) -> st.SearchStrategy[str]:
    if depth == 0:
        return NUMBERS
    inner = numbers(depth - 1)
    return st.one_of(
        NUMBERS,
        st.builds("({} {} {})".format, inner, st.sampled_from("+ - * / // %".split()), inner),
        st.builds("-({})".format, inner),
        st.builds("{}({})".format, st.sampled_from(["abs", "sign", "round", "floor", "sqrt"]), inner),
        st.builds("CASE WHEN {} THEN {} ELSE {} END".format, booleans(depth - 1), inner, inner),
        st.builds("{}({}, {})".format, st.sampled_from(["coalesce", "greatest", "least", "nullif"]), inner, inner),
        st.builds(
            "CAST({} AS {})".format, inner, st.sampled_from(["BIGINT", "int", "double", "DECIMAL(12,3)", "real"])
        ),
        st.builds("length({})".format, texts(depth - 1)),
        st.builds("extract({} FROM {})".format, st.sampled_from(["year", "month", "isodow", "hour"]), DATES),
    )


def texts(depth: int) -> st.SearchStrategy[str]:
    if depth == 0:
        return TEXTS
    inner = texts(depth - 1)
    return st.one_of(
        TEXTS,
        st.builds("{}({})".format, st.sampled_from(["upper", "LOWER", "trim", "reverse"]), inner),
        st.builds("({} || {})".format, inner, inner),
        st.builds("{}::varchar".format, NUMBERS),
        st.builds("substring({}, 1, 2)".format, inner),
    )


def booleans(depth: int) -> st.SearchStrategy[str]:
    if depth == 0:
        return BOOLEANS
    inner = booleans(depth - 1)
    number = numbers(depth - 1)
    return st.one_of(
        BOOLEANS,
        st.builds(
            "{} {} {}".format, number, st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM"]), number
        ),
        st.builds(
            "{} {} '{}'".format,
            texts(depth - 1),
            st.sampled_from(["LIKE", "NOT LIKE", "ILIKE"]),
            st.sampled_from(["a%", "_b"]),
        ),
        st.builds("{} BETWEEN {} AND {}".format, number, NUMBERS, NUMBERS),
        st.builds("{} {}IN ({}, {})".format, number, st.sampled_from(["", "NOT "]), NUMBERS, NUMBERS),
        st.builds("({} {} {})".format, inner, st.sampled_from(["AND", "OR"]), inner),
        st.builds("({}) IS {}".format, number, st.sampled_from(["NULL", "NOT NULL"])),
        st.builds("{} >= '2013-01-01'".format, DATES),
        st.builds("NOT ({})".format, inner),
    )


def expressions(depth: int) -> st.SearchStrategy[str]:
    return st.one_of(
        numbers(depth), texts(depth), booleans(depth), DATES, st.builds("{} + INTERVAL 1 DAY".format, DATES)
    )


AGGREGATES = st.one_of(
    st.just("count(*)"),
    st.builds(
        "{}({})".format, st.sampled_from(["sum", "avg", "min", "MAX", "count", "stddev", "any_value"]), numbers(1)
    ),
    st.builds("count(DISTINCT {})".format, expressions(1)),
    st.builds("{}({}) FILTER (WHERE {})".format, st.sampled_from(["sum", "count"]), NUMBERS, booleans(1)),
    st.builds("{}({})".format, st.sampled_from(["min", "max"]), texts(0) | DATES),
)


@st.composite
def queries(draw: st.DrawFn) -> str:
    """A query over `t`: grouped or not, perhaps over a subquery or a UNION."""
    where = draw(st.one_of(st.just(""), st.builds(" WHERE {}".format, booleans(2))))
    if draw(st.booleans()):
        keys = draw(st.lists(expressions(1), min_size=1, max_size=2))
        aggregates = draw(st.lists(AGGREGATES, min_size=1, max_size=3))
        names = [f"{key} AS k{index}" if draw(st.booleans()) else key for index, key in enumerate(keys)]
        group = draw(st.sampled_from([", ".join(str(index + 1) for index in range(len(keys))), "ALL"]))
        having = draw(st.sampled_from(["", " HAVING count(*) > 1", " HAVING sum(i) > 5 OR max(s) = 'x'"]))
        order = draw(st.sampled_from(["", " ORDER BY 1", " ORDER BY ALL", " ORDER BY 2 DESC NULLS FIRST"]))
        return f"SELECT {', '.join([*names, *aggregates])} FROM t{where} GROUP BY {group}{having}{order}"
    items = draw(st.lists(expressions(2), min_size=1, max_size=4))
    distinct = draw(st.sampled_from(["", "DISTINCT "]))
    order = draw(st.sampled_from(["", " ORDER BY 1 DESC", " ORDER BY 1 NULLS FIRST LIMIT 5", " LIMIT 3 OFFSET 1"]))
    sql = f"SELECT {distinct}{', '.join(items)} FROM t{where}{order}"
    shape = draw(st.sampled_from(["plain", "subquery", "union", "cte"]))
    if shape == "subquery":
        return f"SELECT * FROM ({sql}) q"
    if shape == "union" and not order:
        return f"{sql} UNION ALL {sql}"
    return f"WITH c AS ({sql}) SELECT count(*), * FROM c GROUP BY ALL" if shape == "cte" else sql


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb_with_table() as opened:
        yield opened


@given(sql=queries())
def test_random_queries_have_duckdbs_columns(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
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


@given(sql=queries())
def test_rules_keep_random_plans_whole(sql: str) -> None:
    try:
        before = plan(sql)
    except Error:
        return
    after = apply_rules(before)
    assert after.columns == before.columns
    for node in walk(after):
        check(node)
