"""Parsing: one statement, places in errors, depth, scripts, and the shape that the plan cache keys on."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudb.errors import Error, NotSupportedError, ParseError
from gpudb.planner.parse import Command, is_complete, literal_starts, moved_span, parse, shape, split_statements
from gpudb.types import BIGINT, DOUBLE, HUGEINT, INTEGER, VARCHAR, decimal


def marked(error: Error) -> str:
    """The part of the statement that an error points at."""
    assert error.sql is not None and error.span is not None, str(error)
    return error.sql[error.span[0] : error.span[1]]


# --- Shapes ----------------------------------------------------------------------------------------------------------


def test_statements_that_differ_in_literals_alone_have_one_shape() -> None:
    first = shape("SELECT a + 1 FROM t WHERE s = 'x' AND b < 2.5")
    second = shape("SELECT a + 7 FROM t WHERE s = 'a longer text' AND b < 9.1")
    assert first[0] == second[0]
    assert first[1] == ((INTEGER, 1), (VARCHAR, "x"), (decimal(2, 1), 25))
    assert second[1] == ((INTEGER, 7), (VARCHAR, "a longer text"), (decimal(2, 1), 91))


@pytest.mark.parametrize(
    "other",
    [
        "SELECT a + 300 FROM t",  # fits no TINYINT: another type beside a TINYINT column
        "SELECT a + 128 FROM t",
        "SELECT a + 1.0 FROM t",
        "SELECT a + 1e0 FROM t",
        "SELECT a + '1' FROM t",
        "SELECT a + $1 FROM t",
        "SELECT a + ? FROM t",
        "SELECT b + 1 FROM t",
        "SELECT a - 1 FROM t",
        'SELECT a + 1 FROM "t"',
        "SELECT a + 1 FROM t LIMIT 1",
        "SELECT a + 1 FROM t '",
        "SELECT a + E'1' FROM t",
        "SELECT a + $$1$$ FROM t",
    ],
)
def test_statements_that_differ_otherwise_have_different_shapes(other: str) -> None:
    assert shape(other)[0] != shape("SELECT a + 1 FROM t")[0]


def test_text_that_is_no_plain_literal_is_part_of_the_shape() -> None:
    assert shape("SELECT E'a\\'b', 1")[0] != shape("SELECT E'a\\'c', 1")[0]
    assert shape("SELECT $$a$$")[0] != shape("SELECT $$b$$")[0]
    assert shape("SELECT $q$'$q$, 'x'")[1] == ((VARCHAR, "x"),)


def test_digits_in_names_comments_and_parameters_are_no_literals() -> None:
    sql = """SELECT a1, "b 2", $3, t.c4 /* 5 */ -- 6 '7'
             FROM t WHERE x = 8"""
    assert shape(sql)[1] == ((INTEGER, 8),)
    assert literal_starts(sql) == [sql.index("8", sql.index("WHERE"))]


def test_an_empty_string_is_a_literal() -> None:
    assert shape("SELECT '', 1, 'it''s'")[1] == ((VARCHAR, ""), (INTEGER, 1), (VARCHAR, "it's"))
    assert shape("SELECT ''")[0] == shape("SELECT 'x'")[0]


@pytest.mark.parametrize(
    "text, type_, value",
    [
        ("0", INTEGER, 0),
        ("2147483647", INTEGER, 2147483647),
        ("2147483648", BIGINT, 2147483648),
        ("9223372036854775808", HUGEINT, 9223372036854775808),
        ("1_000", INTEGER, 1000),
        ("007.50", decimal(5, 2), 750),
        (".5", decimal(1, 1), 5),
        ("5.", decimal(1, 0), 5),
        ("1e3", DOUBLE, 1000.0),
        (".5E-1", DOUBLE, 0.05),
        ("1" * 40, DOUBLE, float("1" * 40)),
    ],
)
def test_a_number_has_the_type_of_its_spelling(text: str, type_: object, value: object) -> None:
    assert shape(f"SELECT {text}")[1] == ((type_, value),)


@given(
    st.lists(
        st.sampled_from(["1", "300", "'a'", "''", "x", '"q 1"', "--'\n", "/*1*/", "$1", "?", ".", "1.5", " ", "-"])
    )
)
def test_the_shape_sees_the_literals_that_the_parser_sees(parts: list[str]) -> None:
    from sqlglot.dialects.duckdb import DuckDB
    from sqlglot.errors import SqlglotError
    from sqlglot.tokens import TokenType

    from gpudb.planner.parse import hide_parameters

    sql = " ".join(["SELECT", *parts])
    try:
        tokens = DuckDB().tokenize(hide_parameters(sql))
    except SqlglotError:
        return
    expected = [
        token.start
        for before, token in zip([None, *tokens], tokens, strict=False)
        if token.token_type in (TokenType.NUMBER, TokenType.STRING)
        and not (before is not None and before.text == "?" and before.end + 1 == token.start)
    ]
    # sqlglot takes `. 5` and `.5` apart: the point belongs to the number.
    found = [start + (sql[start] == ".") for start in literal_starts(sql)]
    assert found == expected


def test_a_shape_takes_less_than_a_tenth_of_a_millisecond() -> None:
    import time

    sql = (
        "SELECT carrier, count(*) AS n, avg(delay) FROM flights WHERE month = 3 AND origin <> 'EWR' GROUP BY 1 LIMIT 10"
    )
    shape(sql)
    best = min(_seconds(lambda: shape(sql), 200, time.perf_counter) for _ in range(7))
    assert best < 100e-6


def _seconds(function, times, clock) -> float:  # type: ignore[no-untyped-def]
    start = clock()
    for _ in range(times):
        function()
    return (clock() - start) / times


def test_a_place_moves_with_the_literals_before_it() -> None:
    old, new = "SELECT 1, 'ab', x + 1", "SELECT 20, '', x + 1"
    for text in ("SELECT", "x", "x + 1"):
        start = old.index(text)
        moved = moved_span((start, start + len(text)), old, new)
        assert moved is not None and new[moved[0] : moved[1]] == text
    start = old.index("'ab'")
    moved = moved_span((start, start + 4), old, new)
    assert moved is not None and new[moved[0] : moved[1]] == "''"
    assert moved_span(None, old, new) is None


def test_a_lone_quote_is_no_string() -> None:
    assert shape("SELECT 'x'")[0] != shape("SELECT '")[0]


# --- Scripts ---------------------------------------------------------------------------------------------------------


def test_a_script_is_cut_at_semicolons_outside_of_text() -> None:
    script = """
        SELECT ';' AS "a;b"; -- not here;
        /* nor; here */ SELECT $$;$$, E'\\';';
        ;; -- nothing;
        SELECT 1
    """
    assert split_statements(script) == [
        "SELECT ';' AS \"a;b\"",
        "-- not here;\n        /* nor; here */ SELECT $$;$$, E'\\';'",
        "-- nothing;\n        SELECT 1",
    ]
    assert split_statements(" -- only a comment") == []


def test_text_is_complete_when_its_last_semicolon_ends_a_statement() -> None:
    assert is_complete("SELECT 1;") and is_complete("SELECT ';'; -- done")
    assert not is_complete("SELECT 1") and not is_complete("SELECT ';") and not is_complete("SELECT 1 -- ;")


# --- Errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql, at",
    [
        ("SELEC 1", "SELEC"),
        ("SELECT a b c FROM t", "c"),
        ("SELECT a,, b FROM t", ","),
        ("SELECT 1; SELECT 2", "SELECT"),
        ("SELECT 'abc", "'abc"),
        ('SELECT "abc', '"abc'),
        ("SELECT (1", "1"),
        ("SELECT a FROM", "FROM"),
        ("SELECT a FROM t WHERE", "WHERE"),
        ("SET threads", "threads"),
        ("COPY t 'f.csv'", "'f.csv'"),
    ],
)
def test_a_parse_error_points_at_its_place(sql: str, at: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(sql)
    assert marked(caught.value) == at
    assert "sqlglot" not in str(caught.value) and "\x1b" not in str(caught.value)


@pytest.mark.parametrize("sql", ["", "  ", "-- nothing", ";"])
def test_an_empty_statement_is_a_parse_error(sql: str) -> None:
    with pytest.raises(ParseError, match="empty statement"):
        parse(sql)


@pytest.mark.parametrize("word", ["PRAGMA", "ATTACH", "USE", "CALL", "INSTALL"])
def test_other_statements_are_named_as_not_supported(word: str) -> None:
    with pytest.raises(NotSupportedError, match=word) as caught:
        parse(f"{word} something")
    assert marked(caught.value) == word


# --- Depth -----------------------------------------------------------------------------------------------------------


def test_four_hundred_levels_parse_and_six_hundred_are_refused() -> None:
    deep = parse("SELECT " + "(" * 400 + "1" + ")" * 400)
    assert deep.deep
    for opening, closing in (("(", ")"), ("- ", ""), ("CASE WHEN ", " THEN 1 END")):
        with pytest.raises(ParseError, match="nested too deeply") as caught:
            parse("SELECT " + opening * 600 + "1" + closing * 600)
        assert caught.value.span is not None


def test_a_chain_of_thousands_of_operators_parses() -> None:
    assert parse("SELECT " + " + ".join(["a"] * 3000)).deep
    assert parse("SELECT * FROM t WHERE " + " OR ".join(f"a = {i}" for i in range(3000))).deep


# --- Commands --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql, name, parts",
    [
        ("SET threads = 4", "set", {"name": "threads", "value": 4}),
        ("set memory_limit to '1GB'", "set", {"name": "memory_limit", "value": "1GB"}),
        ("SET device = gpu!", "set", {"name": "device", "value": "gpu!"}),
        ("SET integer_division = true", "set", {"name": "integer_division", "value": True}),
        ("SET timeout = -1.5", "set", {"name": "timeout", "value": -1.5}),
        ("SET threads = DEFAULT", "reset", {"name": "threads"}),
        ("RESET threads", "reset", {"name": "threads"}),
        ("SHOW TABLES", "show_tables", {}),
        ("SHOW threads", "show", {"name": "threads"}),
        ("DESCRIBE t", "describe", {"table": "t"}),
        ("BEGIN TRANSACTION", "begin", {}),
        ("START TRANSACTION", "begin", {}),
        ("commit", "commit", {}),
        ("ROLLBACK;", "rollback", {}),
        ("COPY t FROM 'f.csv'", "copy_from", {"table": "t", "paths": ["f.csv"], "options": {}}),
        (
            "COPY t (a, b) FROM ['f', 'g'] (FORMAT csv, HEADER, DELIMITER ';', NULLSTR '')",
            "copy_from",
            {
                "table": "t",
                "columns": [("a", (8, 9)), ("b", (11, 12))],
                "paths": ["f", "g"],
                "options": {"format": "csv", "header": True, "delimiter": ";", "nullstr": ""},
            },
        ),
        (
            "COPY t TO 'f' WITH (FORMAT parquet)",
            "copy_to",
            {"table": "t", "paths": ["f"], "options": {"format": "parquet"}},
        ),
    ],
)
def test_commands_are_taken_apart(sql: str, name: str, parts: dict[str, object]) -> None:
    tree = parse(sql).tree
    assert isinstance(tree, Command)
    assert (tree.name, tree.parts) == (name, parts)


def test_explain_keeps_the_places_of_its_statement() -> None:
    parsed = parse("EXPLAIN ANALYZE SELECT a FROM t WHERE b = 5")
    assert parsed.tree.parts["mode"] == "analyze"
    assert list(parsed.slots) == [parsed.sql.index("5")]


def test_parameters_are_numbered_in_order_of_first_use() -> None:
    assert parse("SELECT ?, ?").parameters == ("1", "2")
    assert parse("SELECT $2+$1, $2").parameters == ("2", "1")
    assert parse("SELECT $name || '$no' || $other").parameters == ("name", "other")


def test_sqlglot_loads_at_the_first_query_only() -> None:
    code = "import sys, gpudb, gpudb.planner.parse as p; p.shape('SELECT 1'); assert 'sqlglot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
