"""Binding: the plans it makes, the errors it reports and where, and what it notes for the plan cache."""

from __future__ import annotations

import pytest

from gpudb.catalog import Constraint, Constraints
from gpudb.errors import BindError, CatalogError, ConversionError, Error, InterfaceError, NotSupportedError
from gpudb.planner import statements
from gpudb.planner.bind import bind
from gpudb.planner.constants import literal_value
from gpudb.planner.expressions import And, Call, Case, Cast, Coalesce, Column, Comparison, Expression, InList, Literal
from gpudb.planner.logical import Aggregate, Filter, Limit, Node, Project, Scan, SlotName, Sort, UnionAll, Values
from gpudb.planner.parse import parse, shape
from gpudb.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    SMALLINT,
    TIMESTAMP,
    VARCHAR,
    Interval,
    decimal,
)
from tests.planner.catalog import CATALOG, PlainCatalog, bound, plan


def first(sql: str) -> Expression:
    """The first expression of a SELECT without FROM, or over `t`."""
    node = plan(sql if " FROM " in sql else f"{sql} FROM t")
    assert isinstance(node, Project)
    return node.expressions[0]


def condition(sql: str) -> Expression:
    """The bound form of a condition over `t`."""
    node = plan(f"SELECT i FROM t WHERE {sql}")
    assert isinstance(node, Project) and isinstance(node.input, Filter)
    return node.input.predicate


def marked(error: Error) -> str:
    assert error.sql is not None and error.span is not None, str(error)
    return error.sql[error.span[0] : error.span[1]]


# --- Plans -----------------------------------------------------------------------------------------------------------


def test_a_query_is_scan_filter_aggregate_filter_project_sort_limit_from_below() -> None:
    node: Node | None = plan("SELECT s, sum(i) FROM t WHERE i > 1 GROUP BY s HAVING count(*) > 2 ORDER BY 2 LIMIT 3")
    kinds = []
    while node is not None:
        kinds.append(type(node))
        node = next(node.inputs(), None)
    assert kinds == [Limit, Sort, Project, Filter, Aggregate, Filter, Scan]


def test_a_sort_key_that_is_not_selected_travels_as_a_hidden_column() -> None:
    node = plan("SELECT i FROM t ORDER BY bi")
    assert isinstance(node, Project) and [name for name, _ in node.columns] == ["i"]
    assert isinstance(node.input, Sort) and len(node.input.columns) == 2


def test_select_without_from_has_one_row() -> None:
    node = plan("SELECT 1")
    assert isinstance(node, Project) and node.input == Values((), ((),))


def test_equal_aggregates_are_computed_once() -> None:
    node = plan("SELECT sum(i), sum(i) + 1 FROM t HAVING sum(i) > 5")
    aggregate = next(part for part in _walk(node) if isinstance(part, Aggregate))
    assert len(aggregate.aggregates) == 1


def test_distinct_is_an_aggregate_without_aggregates() -> None:
    node = plan("SELECT DISTINCT i, s FROM t")
    assert isinstance(node, Aggregate) and len(node.keys) == 2 and not node.aggregates


def test_distinct_changes_nothing_for_min_and_max() -> None:
    aggregate = next(
        part for part in _walk(plan("SELECT min(DISTINCT i), count(DISTINCT i) FROM t")) if isinstance(part, Aggregate)
    )
    assert [call.distinct for call in aggregate.aggregates] == [False, True]


def test_union_all_is_flat_and_casts_its_branches() -> None:
    node = plan("SELECT i FROM t UNION ALL SELECT bi FROM t UNION ALL SELECT si FROM t")
    assert isinstance(node, UnionAll) and len(node.branches) == 3
    assert all(branch.columns[0][1] == BIGINT for branch in node.branches)


def test_nulls_come_last_unless_the_query_says_otherwise() -> None:
    node = plan("SELECT i FROM t ORDER BY i, i DESC, i NULLS FIRST")
    assert isinstance(node, Sort)
    assert [(key.descending, key.nulls_first) for key in node.keys] == [(False, False), (True, False), (False, True)]


def test_files_become_relations_of_the_statement() -> None:
    catalog = PlainCatalog()
    plan("SELECT a FROM 'dir/some.parquet'", catalog)
    plan("SELECT some.a FROM 'dir/some.parquet'", catalog)
    plan("SELECT * FROM read_csv('x*.csv', header = true, delim := ';') q WHERE q.a > 1", catalog)
    plan("SELECT * FROM read_parquet(['a', 'b'])", catalog)
    assert catalog.opened == [
        (("dir/some.parquet",), "auto", {}),
        (("dir/some.parquet",), "auto", {}),
        (("x*.csv",), "csv", {"header": True, "delim": ";"}),
        (("a", "b"), "parquet", {}),
    ]


def test_a_file_that_cannot_be_read_is_an_error_with_its_place() -> None:
    with pytest.raises(Error, match="file not found") as caught:
        plan("SELECT * FROM 'missing.csv'")
    assert marked(caught.value) == "'missing.csv'"


def test_a_cte_is_seen_by_those_after_it_only() -> None:
    plan("WITH a AS (SELECT 1 AS x), b AS (SELECT x FROM a) SELECT x FROM b")
    with pytest.raises(CatalogError, match="table not found: b"):
        plan("WITH a AS (SELECT x FROM b), b AS (SELECT 1 AS x) SELECT x FROM a")


def test_thousands_of_conditions_bind() -> None:
    sql = " OR ".join(f"i = {number}" for number in range(3000))
    assert len(condition(sql).arguments) == 3000  # type: ignore[attr-defined]
    assert isinstance(first("SELECT " + " + ".join(["i"] * 400)), Call)


# --- Expressions -----------------------------------------------------------------------------------------------------


def test_between_is_two_comparisons() -> None:
    found = condition("i BETWEEN 1 AND 5")
    assert isinstance(found, And)
    assert [part.operator for part in found.arguments if isinstance(part, Comparison)] == [">=", "<="]


def test_in_with_constants_is_a_list_and_with_columns_a_chain() -> None:
    found = condition("si IN (1, 2, NULL)")
    assert isinstance(found, InList) and [item.type for item in found.items] == [SMALLINT] * 3
    assert isinstance(condition("i IN (1)"), Comparison)
    assert not isinstance(condition("i IN (1, a)"), InList)


def test_a_string_compared_with_a_date_becomes_a_date() -> None:
    found = condition("d = '2013-01-02'")
    assert isinstance(found, Comparison) and found.right == Literal(DATE, 15707, 0, (("cast", VARCHAR, DATE),))


def test_a_literal_repeats_its_steps_on_another_value() -> None:
    found = condition("ts >= TIMESTAMP '2013-01-02'")
    assert isinstance(found, Comparison) and isinstance(found.right, Literal)
    assert found.right.type == TIMESTAMP and found.right.value == 15707 * 86_400_000_000
    assert literal_value(found.right, "2013-01-03 00:00:01") == 15708 * 86_400_000_000 + 1_000_000
    negative = first("SELECT i + -5")
    assert isinstance(negative, Call) and isinstance(negative.arguments[1], Literal)
    assert negative.arguments[1].value == -5 and literal_value(negative.arguments[1], 7) == -7
    interval = first("SELECT d + INTERVAL 3 MONTH")
    assert isinstance(interval, Call) and isinstance(interval.arguments[1], Literal)
    assert interval.arguments[1].value == Interval(months=3)
    assert literal_value(interval.arguments[1], 4) == Interval(months=4)


def test_a_literal_that_is_no_value_of_the_type_is_an_error_with_its_place() -> None:
    with pytest.raises(ConversionError, match="not a value of type DATE") as caught:
        condition("d > 'yesterday'")
    assert marked(caught.value) == "'yesterday'"


@pytest.mark.parametrize(
    "text, value",
    [
        ("3 days", Interval(days=3)),
        ("1 year 2 months", Interval(months=14)),
        ("-1 day", Interval(days=-1)),
        ("1 day ago", Interval(days=-1)),
        ("01:02:03.5", Interval(microseconds=3_723_500_000)),
        ("1.5 months", Interval(months=1, days=15)),
        ("1 week 2 hours", Interval(days=7, microseconds=7_200_000_000)),
    ],
)
def test_intervals_read_as_they_are_written(text: str, value: Interval) -> None:
    assert first(f"SELECT INTERVAL '{text}'") == Literal(INTERVAL, value, 0, (("cast", VARCHAR, INTERVAL),))


def test_date_arithmetic_has_the_types_of_the_standard() -> None:
    assert first("SELECT d + 1").type == DATE
    assert first("SELECT d + INTERVAL 1 DAY").type == TIMESTAMP
    assert first("SELECT d - d").type == BIGINT
    assert first("SELECT ts - ts").type == INTERVAL


def test_division_follows_the_setting() -> None:
    assert first("SELECT i / 2").type == DOUBLE
    statement = bound("SELECT i / 2 FROM t", integer_division=True)
    assert isinstance(statement, statements.Query) and statement.plan.columns[0][1] == INTEGER


def test_decimal_operands_of_plus_come_to_the_result_type() -> None:
    found = first("SELECT d92 + d184")
    assert isinstance(found, Call) and found.type == decimal(19, 4)
    assert all(argument.type == found.type for argument in found.arguments)


def test_nullif_is_a_case_and_try_cast_stays_a_cast() -> None:
    assert isinstance(first("SELECT nullif(i, 0)"), Case)
    found = first("SELECT TRY_CAST('x' AS INTEGER)")
    assert isinstance(found, Cast) and found.try_


def test_date_parts_become_functions_of_their_own() -> None:
    names = {
        first(sql).name  # type: ignore[attr-defined]
        for sql in (
            "SELECT EXTRACT(month FROM ts) FROM t",
            "SELECT month(ts)",
            "SELECT date_part('mon', ts)",
            "SELECT datepart('MONTHS', ts)",
        )
    }
    assert len(names) == 1


def test_aliases_can_be_used_after_they_are_given() -> None:
    node = plan("SELECT i + 1 AS j, j * 2 AS k FROM t WHERE k > 3 AND j < 9")
    assert isinstance(node, Project) and [name for name, _ in node.columns] == ["j", "k"]


def test_a_column_wins_over_an_alias_but_not_in_order_by() -> None:
    node = plan("SELECT -i AS i, i + 1 AS j FROM t ORDER BY i")
    assert isinstance(node, Sort) and node.keys[0].expression == Column(INTEGER, 0, "i")
    assert isinstance(node.input, Project)
    second = node.input.expressions[1]
    assert isinstance(second, Call) and isinstance(second.arguments[0], Column)


# --- Statements ------------------------------------------------------------------------------------------------------


def test_insert_gives_every_column_of_the_table_in_order_and_type() -> None:
    catalog = PlainCatalog(u=(("a", INTEGER), ("b", VARCHAR), ("c", DATE)))
    statement = bound("INSERT INTO u (c, a) VALUES ('2013-01-01', 1.6), (DEFAULT, NULL)", catalog)
    assert isinstance(statement, statements.Insert) and statement.ordinals == (2, 0)
    assert statement.plan.columns == catalog.layouts["u"].columns
    query = bound(
        "INSERT INTO u SELECT bi, i, ts FROM t",
        PlainCatalog(u=catalog.layouts["u"].columns, t=CATALOG.layouts["t"].columns),
    )
    assert isinstance(query, statements.Insert) and query.plan.columns == catalog.layouts["u"].columns


def test_create_table_has_columns_and_constraints() -> None:
    statement = bound('CREATE TABLE IF NOT EXISTS u (a INT NOT NULL, "B c" DECIMAL(10,2), d TIMESTAMP)')
    assert statement == statements.CreateTable(
        "u",
        (("a", INTEGER), ("B c", decimal(10, 2)), ("d", TIMESTAMP)),
        Constraints("u", (Constraint("NOT NULL", ("a",)),)),
        True,
        False,
        consumed=frozenset({0, 1}),
    )


def test_create_table_as_makes_names_unique_and_types_real() -> None:
    statement = bound("CREATE OR REPLACE TABLE u AS SELECT i, i, NULL AS n FROM t")
    assert isinstance(statement, statements.CreateTableAs) and statement.or_replace
    assert statement.plan.columns == (("i", INTEGER), ("i_1", INTEGER), ("n", INTEGER))


def test_copy_knows_its_format() -> None:
    statement = bound("COPY (SELECT i FROM t) TO 'out.parquet'")
    assert isinstance(statement, statements.CopyTo) and statement.format == "parquet"
    loaded = bound("COPY t (i, s) FROM 'f.csv' (HEADER)")
    assert isinstance(loaded, statements.CopyFrom)
    assert (loaded.ordinals, loaded.paths, loaded.format, loaded.options) == (
        (2, 11),
        ("f.csv",),
        "auto",
        {"header": True},
    )


def test_describe_and_show_give_columns_or_a_setting() -> None:
    described = bound("DESCRIBE SELECT count(*) AS n FROM t")
    assert isinstance(described, statements.Describe) and described.columns == (("n", BIGINT),)
    assert isinstance(bound("DESCRIBE t"), statements.Describe)
    assert bound("SHOW threads") == statements.Show("threads")
    assert isinstance(bound("SHOW TABLES"), statements.ShowTables)


# --- What the plan cache must know -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql, consumed",
    [
        ("SELECT i + 1 FROM t WHERE s = 'x' AND d > '2013-01-01' AND s LIKE 'a%' AND i IN (1, 2)", set()),
        ("SELECT i FROM t ORDER BY 1", {0}),
        ("SELECT i, count(*) FROM t GROUP BY 1", {0}),
        ("SELECT i FROM t LIMIT 10 OFFSET 5", {0, 1}),
        ("SELECT i::DECIMAL(10, 2) + 5 FROM t", {0, 1}),
        ("SELECT i + 1 FROM t GROUP BY i + 1", {0, 1}),
        ("SELECT i + 1 FROM t ORDER BY i + 1", {0, 1}),
        ("SELECT date_trunc('month', ts), 7 FROM t", {0}),
        ("SELECT EXTRACT('month' FROM ts) FROM t", {0}),
        ("SELECT round(d92, 1) FROM t", {0}),
        ("SELECT ts + INTERVAL 3 DAY, ts + INTERVAL '3 days' FROM t", set()),
        ("SELECT * FROM read_csv('f', header = true, skip = 3)", {0, 1}),
    ],
)
def test_literals_whose_value_shaped_the_plan_are_noted(sql: str, consumed: set[int]) -> None:
    assert bound(sql).consumed == consumed


def test_tables_are_noted_and_the_date_of_today_forbids_reuse() -> None:
    assert bound("SELECT i FROM T").tables == {"t"}
    assert not bound("SELECT i FROM t").volatile
    assert bound("SELECT current_date FROM t").volatile and bound("EXPLAIN SELECT today()").volatile


def test_a_parameter_takes_the_slot_after_the_literals() -> None:
    statement = bind(
        parse("SELECT i + 1 FROM t WHERE s = ? AND i > ? LIMIT ?"),
        CATALOG,
        [VARCHAR, INTEGER, BIGINT],
        parameter_values=["x", 5, 3],
    )
    assert statement.consumed == {3}
    assert isinstance(statement, statements.Query)
    slots = [part.slot for node in _walk(statement.plan) for part in _expressions(node) if isinstance(part, Literal)]
    assert sorted(slot for slot in slots if slot is not None) == [0, 1, 2]


def test_named_parameters_take_any_order() -> None:
    statement = bind(parse("SELECT $b, $a, $b"), CATALOG, {"a": INTEGER, "$b": VARCHAR})
    assert isinstance(statement, statements.Query)
    assert [type_ for _, type_ in statement.plan.columns] == [VARCHAR, INTEGER, VARCHAR]


def test_a_parameter_without_a_value_is_an_error_with_its_place() -> None:
    with pytest.raises(InterfaceError, match="no value given for parameter: 2") as caught:
        bind(parse("SELECT ?, ?"), CATALOG, [INTEGER])
    assert caught.value.span == (10, 11)


# --- Errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql, message, at",
    [
        ("SELECT ii FROM t WHERE weird > 1", "column not found: ii", "ii"),
        ("SELECT t.nothing FROM t", "column not found: nothing", "t.nothing"),
        ("SELECT u.i FROM t", "table not found in FROM: u", "u.i"),
        ("SELECT i FROM tt", "table not found: tt", "tt"),
        ("SELECT upperr(s) FROM t", "function not found: upperr", "upperr"),
        ("SELECT CAST(i AS integr) FROM t", "type not found: integr", "integr"),
        ("SELECT i::decimal(40, 2) FROM t", "DECIMAL wants", "decimal"),
        ("SELECT s + 1 FROM t", r"no operator \+ for VARCHAR and INTEGER", "s + 1"),
        ("SELECT upper(i) FROM t", r"no form of upper takes these arguments: \(INTEGER\)", "upper(i"),
        ("SELECT i FROM t WHERE sum(i) > 1", "aggregate function is not allowed in WHERE: sum", "sum"),
        ("SELECT sum(sum(i)) FROM t", "aggregate function is not allowed in the arguments of sum: sum", "sum"),
        ("SELECT sum(i) AS z, max(z) FROM t", "aggregate functions do not nest: max", "sum(i"),
        ("SELECT i, sum(bi) FROM t", "column must be in GROUP BY or in an aggregate function: i", "i"),
        ("SELECT i FROM t ORDER BY 3", "ORDER BY position is not 1 to 1: 3", "3"),
        ("SELECT i FROM t GROUP BY 0", "GROUP BY position is not 1 to 1: 0", "0"),
        ("SELECT d = 1 FROM t", "cannot compare DATE with INTEGER", "d = 1"),
        (
            "SELECT CASE WHEN x THEN 1 ELSE d END FROM t",
            "results have no common type: INTEGER, DATE",
            "x THEN 1 ELSE d",
        ),
        ("SELECT d::INTEGER FROM t", "cannot cast DATE to INTEGER", "d::INTEGER"),
        ("SELECT i FROM t UNION ALL SELECT i, s FROM t", "branches of UNION have different numbers", "i, s FROM t"),
        ("SELECT date_part('moth', ts) FROM t", "part of a date not found: moth", "'moth'"),
        ("SELECT upper(DISTINCT s) FROM t", "DISTINCT belongs to an aggregate function", "upper"),
        ("SELECT lower(s) FILTER (WHERE x) FROM t", "FILTER belongs to an aggregate function", "lower"),
        ("SELECT sum(s) FROM t", "sum does not take these types: VARCHAR", "sum(s"),
        ("SELECT i FROM t LIMIT -1", "LIMIT must not be negative: -1", "1"),
        ("CREATE TABLE u (a INT, A INT)", "two columns have one name: A", "A"),
        ("INSERT INTO t (i, j) VALUES (1, 2)", "column not found: j", "j"),
        ("INSERT INTO t (i) VALUES (1, 2)", "INSERT gives 2 values for 1 columns", "1, 2"),
    ],
)
def test_an_error_says_what_and_where(sql: str, message: str, at: str) -> None:
    with pytest.raises(CatalogError if message.startswith("table not found: ") else BindError, match=message) as caught:
        bound(sql)
    assert marked(caught.value) == at


@pytest.mark.parametrize(
    "sql, hint",
    [
        ("SELECT wierd_name FROM (SELECT i AS weird_name FROM t)", "did you mean weird_name?"),
        ("SELECT upperr(s) FROM t", "did you mean upper?"),
        ("SELECT avrg(i) FROM t", "did you mean avg?"),
        ("SELECT i FROM flights", "there are: t"),
        ("SELECT u.i FROM t", "did you mean t.i?"),
        ("SELECT i::integr FROM t", "did you mean integer?"),
        ("SELECT i, sum(bi) FROM t", "add it to GROUP BY, or write any_value(i)"),
    ],
)
def test_an_error_says_what_was_probably_meant(sql: str, hint: str) -> None:
    with pytest.raises(CatalogError if "flights" in sql else BindError) as caught:
        bound(sql)
    assert caught.value.hint == hint


def test_a_missing_table_of_a_statement_is_a_catalog_error() -> None:
    for sql in ("DROP TABLE u", "INSERT INTO u VALUES (1)", "DESCRIBE u", "COPY u FROM 'f'"):
        with pytest.raises(CatalogError, match="table not found: u") as caught:
            bound(sql)
        assert marked(caught.value) == "u"
    assert bound("DROP TABLE IF EXISTS u") == statements.DropTable("u", True)


@pytest.mark.parametrize(
    "sql, construct",
    [
        ("SELECT * FROM t FULL JOIN LATERAL (SELECT t.i) AS u ON true", "FULL JOIN of a subquery"),
        ("SELECT i FROM t WHERE i IN (SELECT u.i FROM t AS u WHERE u.a = t.b LIMIT 20%)", "a row outside of it"),
        ("SELECT * FROM t FULL JOIN t AS u ON t.i = (SELECT 1)", "a subquery in ON of FULL JOIN"),
        ("SELECT i FROM t WHERE i = ANY ([1, 2])", "ANY of a list"),
        ("SELECT {'a': 1}", "struct"),
        ("SELECT s[1] FROM t", "\\[ \\]"),
        ("SELECT mad(d) FROM t", "mad"),
        ("SELECT s COLLATE nocase FROM t", "COLLATE"),
        ("SELECT i::JSON FROM t", "JSON"),
        ("SELECT i::INTEGER[] FROM t", "type"),
        ("SELECT i FROM t WHERE COLUMNS(*) = 1", "COLUMNS"),
        ("SELECT INTERVAL '1-2' YEAR TO MONTH", "INTERVAL ... TO"),
        ("CREATE TEMP VIEW v AS SELECT 1", "TEMP VIEW"),
        ("CREATE TABLE u (a INT REFERENCES t(i))", "FOREIGN KEY"),
        ("CREATE TEMP TABLE u (a INT)", "TEMPORARY"),
    ],
)
def test_valid_sql_that_is_not_there_is_named_with_its_place(sql: str, construct: str) -> None:
    with pytest.raises(NotSupportedError, match=construct) as caught:
        bound(sql)
    assert caught.value.span is not None, str(caught.value)


def test_booleans_are_conditions_and_numbers_become_them() -> None:
    assert condition("x").type == BOOLEAN
    assert isinstance(condition("i"), Cast)


def _walk(node: Node) -> list[Node]:
    return [node, *(inner for below in node.inputs() for inner in _walk(below))]


def _expressions(node: Node) -> list[Expression]:
    own: list[Expression] = []
    if isinstance(node, Project):
        own = list(node.expressions)
    elif isinstance(node, Filter):
        own = [node.predicate]
    return [part for expression in own for part in expression.walk()]


# --- Names that show literals ----------------------------------------------------------------------------------------


def named(sql: str, raw: list[object]) -> list[str]:
    """The names of a query's columns when its plan is used again with other literals."""
    return [name.with_values(raw) if isinstance(name, SlotName) else name for name, _ in plan(sql).columns]


def test_a_name_shows_the_literals_of_each_execution() -> None:
    sql = "SELECT i + 5, s || 'x', i - -2, d92 * 1.50, i AS j, .5, 2. FROM t WHERE i > 3"
    assert [str(name) for name, _ in plan(sql).columns] == [
        "(i + 5)",
        "(s || 'x')",
        "(i - -2)",
        "(d92 * 1.50)",
        "j",
        ".5",
        "2.",
    ]
    assert named(sql, [7, "it's", 3, 225, 7, 3, 9]) == [
        "(i + 7)",
        "(s || 'it''s')",
        "(i - -3)",
        "(d92 * 2.25)",
        "j",
        ".7",
        "3.",
    ]


@pytest.mark.parametrize("number", ["007", "1_000", "1e5", "1" * 40])
def test_a_number_whose_spelling_its_value_does_not_tell_is_part_of_the_key(number: str) -> None:
    assert named(f"SELECT i + {number} FROM t", []) == [f"(i + {number})"]
    assert shape(f"SELECT {number}")[0] != shape(f"SELECT {int(float(number.replace('_', '')))}")[0]


def test_names_that_are_looked_up_consume_their_literals() -> None:
    assert bound("SELECT * FROM (SELECT i + 1, i + 2 FROM t)").consumed == {0, 1}
    assert bound("SELECT i + 1 FROM t").consumed == set()
    assert bound("CREATE TABLE u AS SELECT i + 1 FROM t").consumed == {0}


def test_a_comparison_of_intervals_counts_microseconds() -> None:
    found = condition("ts - TIMESTAMP '2013-01-01' > INTERVAL '1 month 2 days'")
    assert isinstance(found, Comparison) and isinstance(found.right, Literal)
    assert found.right.type == BIGINT and found.right.value == 32 * 86_400_000_000
    assert literal_value(found.right, "1 day") == 86_400_000_000


def test_an_argument_of_a_macro_stays_a_parameter() -> None:
    found = first("SELECT ifnull(i, 5)")
    assert isinstance(found, Coalesce) and found.arguments[1] == Literal(INTEGER, 5, 0)
