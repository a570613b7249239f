"""The plan cache: a kept plan serves another statement of its shape only where no value that shaped it differs.

Every statement here has the shape of another; both must give DuckDB's rows and names, and the receipt must say whether the
second one came from the cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import gpudb

TABLE = """CREATE TABLE t (i INTEGER, b BIGINT, x DOUBLE, p DECIMAL(9,3), s VARCHAR, d DATE, m TIMESTAMP);
INSERT INTO t VALUES
  (1, 10, 1.25, 1.234, 'apple', '2020-01-31', '2020-01-31 10:20:30'),
  (2, 20, 2.75, 2.345, 'pear', '2020-02-29', '2020-02-29 23:59:59'),
  (3, 30, -1.5, 3.456, 'fig', '2021-03-01', '2021-03-01 00:00:00'),
  (2, 10, NULL, NULL, NULL, NULL, NULL),
  (5, 50, 9.125, -7.895, 'apple pie', '2022-12-31', '2022-12-31 12:00:00')"""


@dataclass
class Engines:
    """gpudb and DuckDB with the same tables."""

    ours: gpudb.Connection
    theirs: duckdb.DuckDBPyConnection

    def both(self, *statements: str) -> None:
        """Run statements that change something on both."""
        for statement in statements:
            self.ours.execute(statement)
            self.theirs.execute(statement)

    def is_cached(self, sql: str, parameters: Sequence[Any] = ()) -> bool:
        """Whether the plan came from the cache; the answer must be DuckDB's, names and all."""
        cursor = self.ours.execute(sql, list(parameters))
        theirs = self.theirs.execute(sql, list(parameters))
        assert [column[0] for column in cursor.description or ()] == [
            column[0] for column in theirs.description or ()
        ], sql
        found, expected = cursor.fetchall(), theirs.fetchall()
        if "ORDER BY" not in sql:
            found, expected = sorted(found, key=repr), sorted(expected, key=repr)
        assert found == expected, sql
        cached: bool = cursor.receipt["plan_cached"]
        return cached


def connected() -> Iterator[Engines]:
    with duckdb.connect() as theirs, gpudb.connect() as ours:
        made = Engines(ours, theirs)
        made.both(*TABLE.split(";"))
        yield made


@pytest.fixture
def engines() -> Iterator[Engines]:
    """Engines that a test may change."""
    yield from connected()


@pytest.fixture(scope="module")
def shared_engines() -> Iterator[Engines]:
    """Engines that tests only read."""
    yield from connected()


@pytest.fixture
def unplanned(shared_engines: Engines) -> Engines:
    """Those, with no plan kept."""
    shared_engines.ours.session.clear_plan_cache()
    return shared_engines


PART_OF_THE_KEY = {
    "ordinals of ORDER BY": ("SELECT i, b, x FROM t ORDER BY {}, {}, 3", [(1, 2), (2, 1)]),
    "ordinals of GROUP BY": ("SELECT {}, i, count(*) FROM t GROUP BY {}, 2", [("b", 1), ("s", 1)]),
    "which ordinal": ("SELECT i + b, b, count(*) FROM t GROUP BY ALL ORDER BY {}, 1", [(1,), (2,)]),
    "LIMIT": ("SELECT i, b FROM t ORDER BY i, b LIMIT {}", [(2,), (3,), (0,)]),
    "OFFSET": ("SELECT i, b FROM t ORDER BY i, b LIMIT 5 OFFSET {}", [(1,), (4,)]),
    "LIMIT without ORDER BY": ("SELECT i FROM t LIMIT {}", [(1,), (4,)]),
    "scale of a type": ("SELECT p::DECIMAL(9,{}) FROM t", [(1,), (2,)]),
    "precision of a type": ("SELECT i::DECIMAL({},2) * 100000 FROM t", [(9,), (18,)]),
    "scale of a type in a CAST": ("SELECT CAST(x AS DECIMAL(9, {})) FROM t WHERE x > 0", [(0,), (2,)]),
    "digits of round": ("SELECT round(p, {}) FROM t", [(1,), (2,), (3,)]),
    "part of a date": ("SELECT date_part('{}', m) FROM t", [("year",), ("month",), ("minute",)]),
    "part in EXTRACT": ("SELECT extract('{}' FROM d) FROM t", [("year",), ("day",), ("isodow",)]),
    "unit of date_trunc": ("SELECT date_trunc('{}', m) FROM t", [("year",), ("month",), ("hour",)]),
    "unit of date_diff": ("SELECT date_diff('{}', d, DATE '2020-01-15') FROM t", [("day",), ("month",)]),
    "unit of an INTERVAL": ("SELECT m + INTERVAL 1 {} FROM t", [("DAY",), ("MONTH",), ("HOUR",)]),
    "length of an IN list": ("SELECT i FROM t WHERE i IN ({})", [("1, 2",), ("1, 2, 3",), ("5",)]),
    "length of an IN list of texts": ("SELECT i FROM t WHERE s IN ({})", [("'fig', 'x'",), ("'fig', 'pear', 'x'",)]),
    "names that are looked up": ("SELECT * FROM (SELECT i + {} FROM t)", [(1,), (2,)]),
    "keys that must equal an expression": ("SELECT i % {}, count(*) FROM t GROUP BY i % {}", [(2, 2), (3, 3)]),
    "order by an expression that is selected": ("SELECT i * {} FROM t ORDER BY i * {}", [(2, 2), (-3, -3)]),
    "width of an integer": ("SELECT i + {} FROM t", [(1,), (3_000_000_000,), (30_000_000_000_000_000_000,)]),
    "width of a compared integer": ("SELECT i FROM t WHERE i < {}", [(3,), (3_000,), (3_000_000_000,)]),
    "digits of a DECIMAL": ("SELECT p + {} FROM t", [("1.5",), ("1.55",), ("11.5",)]),
    "a number with an exponent": ("SELECT i FROM t WHERE x > {}", [("1e0",), ("2e0",)]),
    "spelling of a number": ("SELECT {} FROM t", [("7",), ("007",), ("0_7",)]),
    "sign": ("SELECT i - 3 FROM t WHERE i - 3 = {}", [("1",), ("-1",)]),
    "TRUE and FALSE": ("SELECT i FROM t WHERE (i = 2) = {}", [("TRUE",), ("FALSE",)]),
    "NULL": ("SELECT coalesce(x, {}) FROM t", [("1.5",), ("NULL",)]),
    "case of a quoted name": ('SELECT i AS "{}" FROM t', [("a",), ("A",)]),
    "escape strings": ("SELECT s FROM t WHERE s = E'{}'", [("fig",), ("pear",)]),
}

PARAMETERS = {
    "an integer": ("SELECT i, b FROM t WHERE i > {}", [(1,), (2,), (100,), (0,)]),
    "an integer under a function": ("SELECT i FROM t WHERE b * {} > 50", [(2,), (3,), (0,)]),
    "an integer that is selected": ("SELECT i + {}, {} FROM t", [(1, 5), (2, 6)]),
    "what sums add": ("SELECT i, sum(b + {}), avg(b - {}), sum(b) FROM t GROUP BY i", [(1, 2), (2, 1), (100, 0)]),
    "a negative integer": ("SELECT i FROM t WHERE b > -{}", [(5,), (9,)]),
    "ends of BETWEEN": ("SELECT i FROM t WHERE i BETWEEN {} AND {}", [(1, 2), (2, 5), (5, 2)]),
    "integers of an IN list": ("SELECT i FROM t WHERE i IN ({}, {})", [(1, 2), (3, 5), (7, 8)]),
    "integers of NOT IN": ("SELECT i FROM t WHERE b NOT IN ({}, {})", [(10, 20), (30, 99)]),
    "a DECIMAL": ("SELECT i FROM t WHERE p = {}", [("1.234",), ("2.345",), ("9.999",)]),
    "a DECIMAL beside a DOUBLE": ("SELECT i FROM t WHERE x > {}", [("1.5",), ("2.5",)]),
    "a text": ("SELECT i FROM t WHERE s = '{}'", [("fig",), ("pear",), ("nobody",), ("it''s",), ("",)]),
    "texts of an IN list": ("SELECT i FROM t WHERE s IN ('{}', '{}')", [("pear", "fig"), ("apple", "x"), ("x", "y")]),
    "a text in order": ("SELECT i FROM t WHERE s < '{}'", [("b",), ("g",), ("zzz",)]),
    "a pattern": ("SELECT i FROM t WHERE s LIKE '{}'", [("a%",), ("%r",), ("_ig",), ("fig",), ("%p%p%",)]),
    "a regular expression": ("SELECT regexp_matches(s, '{}') FROM t", [("a.p",), ("f.g",)]),
    "a text that is joined": ("SELECT s || '{}' FROM t", [("x",), ("yz",)]),
    "arguments of text functions": (
        "SELECT substr(s, {}, {}), lpad(s, {}, '{}') FROM t",
        [(1, 2, 6, "*"), (2, 3, 8, "-")],
    ),
    "a date": ("SELECT i FROM t WHERE d >= DATE '{}'", [("2020-02-01",), ("2021-02-01",), ("1992-01-01",)]),
    "a text that is a date": ("SELECT i FROM t WHERE d = '{}'", [("2020-01-31",), ("2021-03-01",)]),
    "a timestamp": ("SELECT i FROM t WHERE m >= TIMESTAMP '{}'", [("2020-02-01",), ("2021-02-01 10:00:00",)]),
    "an amount of an INTERVAL": ("SELECT m + INTERVAL {} DAY FROM t", [(1,), (2,), (100,)]),
    "an INTERVAL in words": ("SELECT m + INTERVAL '{}' FROM t", [("1 day",), ("3 months",), ("2 hours 5 minutes",)]),
    "branches of CASE": ("SELECT CASE WHEN i > {} THEN '{}' ELSE '{}' END FROM t", [(1, "a", "b"), (2, "c", "d")]),
    "COALESCE": ("SELECT coalesce(x, {}) FROM t", [("7.5",), ("8.5",)]),
    "HAVING": ("SELECT i, count(*) FROM t GROUP BY i HAVING count(*) > {}", [(1,), (0,), (5,)]),
    "digits of a function that takes them at run time": ("SELECT round(x, {}) FROM t", [(1,), (2,)]),
    "a format to print by": ("SELECT strftime(d, '{}') FROM t", [("%Y",), ("%d.%m",)]),
    "a format to read by": ("SELECT strptime('2020-01-02', '{}')", [("%Y-%m-%d",), ("%Y-%d-%m",)]),
    "VALUES": ("SELECT * FROM (VALUES ({}, '{}')) AS v(a, b)", [(1, "x"), (2, "y")]),
    "a branch of UNION ALL": ("SELECT i FROM t UNION ALL SELECT {}", [(1,), (9,)]),
    "FILTER": ("SELECT sum(b) FILTER (WHERE i > {}) FROM t", [(1,), (2,), (50,)]),
}


@pytest.mark.parametrize("kind", PART_OF_THE_KEY)
def test_a_value_that_shaped_a_plan_needs_a_plan_of_its_own(unplanned: Engines, kind: str) -> None:
    template, choices = PART_OF_THE_KEY[kind]
    statements = [template.format(*values) for values in choices]
    assert [unplanned.is_cached(sql) for sql in statements] == [False] * len(statements)
    assert [unplanned.is_cached(sql) for sql in statements] == [True] * len(statements), "each has a plan now"


@pytest.mark.parametrize("kind", PARAMETERS)
def test_a_value_that_shaped_nothing_is_a_parameter_of_the_plan(unplanned: Engines, kind: str) -> None:
    template, choices = PARAMETERS[kind]
    first, *others = [template.format(*values) for values in choices]
    assert not unplanned.is_cached(first)
    assert [unplanned.is_cached(sql) for sql in others] == [True] * len(others)
    assert unplanned.is_cached(first)


def test_white_space_and_comments_are_part_of_the_key_but_not_of_the_answer(engines: Engines) -> None:
    assert not engines.is_cached("SELECT i FROM t WHERE i > 1")
    assert not engines.is_cached("SELECT i  FROM t WHERE i > 1 -- 2")
    assert engines.is_cached("SELECT i FROM t WHERE i > 2")


def test_the_types_of_parameters_are_part_of_the_key_and_their_values_are_not(engines: Engines) -> None:
    sql = "SELECT i FROM t WHERE b > ?"
    assert [engines.is_cached(sql, [value]) for value in (10, 20, 1.5, 25.5, 3_000_000_000)] == [
        False,
        True,
        False,
        True,
        False,
    ]
    assert [engines.is_cached("SELECT i FROM t WHERE s = ?", [text]) for text in ("fig", "pear", "x")] == [
        False,
        True,
        True,
    ]


def test_a_parameter_of_limit_is_part_of_the_key(engines: Engines) -> None:
    sql = "SELECT i, b FROM t ORDER BY i, b LIMIT ?"
    assert [engines.is_cached(sql, [count]) for count in (2, 3, 2, 3)] == [False, False, True, True]


def test_a_setting_that_changes_types_is_part_of_the_key(engines: Engines) -> None:
    sql = "SELECT b / 3, x / 2, sum(b / 7 + 1) FROM t WHERE b > 10 GROUP BY ALL"
    for value, cached in (("false", False), ("true", False), ("false", True), ("true", True)):
        engines.both(f"SET integer_division = {value}")
        assert engines.is_cached(sql) == cached


def test_without_a_plan_cache_nothing_is_cached(engines: Engines) -> None:
    sql = "SELECT i FROM t WHERE i > 1"
    assert not engines.is_cached(sql) and engines.is_cached(sql)
    engines.ours.execute("SET plan_cache = false")
    assert not engines.is_cached(sql)
    engines.ours.execute("SET plan_cache = true")
    assert engines.is_cached(sql)


def test_a_change_of_device_keeps_plans(engines: Engines) -> None:
    sql = "SELECT i, sum(b) FROM t GROUP BY i"
    assert not engines.is_cached(sql)
    for device in ("reference", "cpu"):
        engines.ours.execute(f"SET device = '{device}'")
        assert engines.is_cached(sql)


QUERIES = (
    "SELECT count(*), sum(b), min(s), max(x) FROM t WHERE b >= 10",
    "SELECT s, count(*) FROM t GROUP BY s",
    "SELECT i, b FROM t WHERE s = 'fig' OR d < DATE '2021-01-01'",
)


def test_rows_like_those_that_were_there_keep_plans(engines: Engines) -> None:
    engines.both("INSERT INTO t SELECT * FROM t")
    assert [engines.is_cached(sql) for sql in QUERIES] == [False] * len(QUERIES)
    engines.both("INSERT INTO t VALUES (3, 40, 2.5, 2.345, 'pear', '2021-01-01', '2021-01-01 00:00:00')")
    assert [engines.is_cached(sql) for sql in QUERIES] == [True] * len(QUERIES)


@pytest.mark.parametrize(
    "row",
    [
        "(3, 4000000000, 2.5, 2.345, 'fig', '2021-01-01', '2021-01-01 00:00:00')",
        "(3, -1, 2.5, 2.345, 'fig', '2021-01-01', '2021-01-01 00:00:00')",
        "(3, NULL, 2.5, 2.345, 'fig', '2021-01-01', '2021-01-01 00:00:00')",
    ],
)
def test_a_row_past_the_widths_or_ranges_that_a_plan_relies_on_needs_a_new_plan(engines: Engines, row: str) -> None:
    sql = QUERIES[0]
    assert not engines.is_cached(sql) and engines.is_cached(sql)
    engines.both(f"INSERT INTO t VALUES {row}")
    assert not engines.is_cached(sql)
    assert engines.is_cached(sql)


def test_texts_that_a_dictionary_learns_later_are_found_by_kept_plans(engines: Engines) -> None:
    engines.both("CREATE TABLE names (s VARCHAR)", "INSERT INTO names VALUES ('b'), ('d'), ('f'), ('h'), ('j')")
    queries = (
        "SELECT s FROM names WHERE s = 'c'",
        "SELECT s FROM names WHERE s > 'c' ORDER BY s",
        "SELECT min(s), max(s) FROM names",
        "SELECT upper(s), count(*) FROM names WHERE s LIKE 'c%' GROUP BY ALL",
    )
    assert [engines.is_cached(sql) for sql in queries] == [False] * len(queries)
    engines.both("INSERT INTO names VALUES ('c'), ('z'), ('a')")  # 8 texts, as many as the plans are made for
    assert [engines.is_cached(sql) for sql in queries] == [True] * len(queries)


def test_a_table_of_the_same_name_and_other_columns_needs_a_new_plan(engines: Engines) -> None:
    sql = "SELECT max(i), count(*) FROM t WHERE b > 10"
    assert not engines.is_cached(sql)
    engines.both("DROP TABLE t", "CREATE TABLE t (b DOUBLE, i VARCHAR)", "INSERT INTO t VALUES (10.5, 'x'), (9, 'z')")
    assert not engines.is_cached(sql)
    engines.both("DROP TABLE t", *TABLE.split(";"))
    assert engines.is_cached(sql), "the layout that it was planned for is back"


def test_other_columns_under_a_registered_name_need_a_new_plan(engines: Engines) -> None:
    sql = "SELECT max(v) FROM frame WHERE k > 1"
    for data in ({"k": [1, 2], "v": [10, 20]}, {"v": ["a", "b"], "k": [2, 2]}, {"k": [1.5, 0.5], "v": [7, 8]}):
        for engine in (engines.ours, engines.theirs):
            engine.register("frame", pa.table(data))
        assert not engines.is_cached(sql)


def test_sessions_of_one_database_share_plans(engines: Engines) -> None:
    sql = "SELECT i FROM t WHERE i > 1"
    assert not engines.is_cached(sql)
    other = engines.ours.cursor()
    assert sorted(other.execute("SELECT i FROM t WHERE i > 2").fetchall()) == [(3,), (5,)]
    assert other.receipt["plan_cached"]


def test_an_error_of_a_kept_plan_points_into_its_own_statement(engines: Engines) -> None:
    engines.ours.execute("SELECT 100000 + 1, (i * 1000)::TINYINT FROM t WHERE i > 7")
    with pytest.raises(gpudb.Error) as caught:
        engines.ours.execute("SELECT 999999 + 1, (i * 9999)::TINYINT FROM t WHERE i > 1")
    shown = str(caught.value).splitlines()
    assert "i * 9999" in shown[1] and shown[2].index("^") == shown[1].index("i * 9999")


def test_a_plan_does_not_outlive_its_view(engines):
    sql = "SELECT * FROM v WHERE n > 1"
    engines.both("CREATE VIEW v AS SELECT i AS n FROM t", "CREATE VIEW w AS SELECT n + 1 AS n FROM v")
    assert not engines.is_cached(sql) and engines.is_cached(sql)
    assert not engines.is_cached("SELECT n FROM w") and engines.is_cached("SELECT n FROM w")
    engines.both("CREATE OR REPLACE VIEW v AS SELECT b AS n, 'more' AS m FROM t")
    assert not engines.is_cached(sql) and not engines.is_cached("SELECT n FROM w")
    engines.both("DROP VIEW v", "CREATE TABLE v AS SELECT 7 AS n")
    assert not engines.is_cached(sql) and not engines.is_cached("SELECT n FROM w")
    engines.both("DROP TABLE v", "CREATE VIEW v AS SELECT i AS n FROM t WHERE i < 3")
    assert not engines.is_cached(sql) and engines.is_cached(sql)


def test_a_view_and_a_literal_beside_it_keep_apart(engines):
    engines.both("CREATE VIEW v AS SELECT i + 100 AS n, 'x' AS s FROM t LIMIT 3")
    assert not engines.is_cached("SELECT n + 5, s FROM v WHERE n > 101")
    assert engines.is_cached("SELECT n + 7, s FROM v WHERE n > 102")
