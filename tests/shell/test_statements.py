"""Cutting input into statements and commands."""

import pytest

from gpudb.shell.statements import StatementReader


def cut(text: str) -> tuple[list[str], str | None]:
    reader = StatementReader()
    return reader.feed(text), reader.rest()


@pytest.mark.parametrize(
    ("text", "items", "rest"),
    [
        ("SELECT 1; SELECT 2;", ["SELECT 1;", "SELECT 2;"], None),
        ("SELECT 1", [], "SELECT 1"),
        ("SELECT\n1\n;\n", ["SELECT\n1\n;"], None),
        (";; \n;", [], None),
        ("SELECT ';';", ["SELECT ';';"], None),
        ("SELECT 'it''s; fine';", ["SELECT 'it''s; fine';"], None),
        ('SELECT 1 AS ";" ;', ['SELECT 1 AS ";" ;'], None),
        ("SELECT $$a;b$$; SELECT $tag$;$$;$tag$;", ["SELECT $$a;b$$;", "SELECT $tag$;$$;$tag$;"], None),
        ("SELECT $1; SELECT $name;", ["SELECT $1;", "SELECT $name;"], None),
        (r"SELECT E'it\'s; fine';", [r"SELECT E'it\'s; fine';"], None),
        ("SELECT DATE'2013-01-01'; SELECT 2;", ["SELECT DATE'2013-01-01';", "SELECT 2;"], None),
        ("SELECT 1 -- not ; here\n;", ["SELECT 1 -- not ; here\n;"], None),
        ("SELECT /* ; /* nested ; */ ; */ 1;", ["SELECT /* ; /* nested ; */ ; */ 1;"], None),
        ("-- a comment alone\n", [], None),
        ("/* open", [], "/* open"),
        ("SELECT 'open;\n", [], "SELECT 'open;"),
        (".tables\nSELECT 1;\n\\d\n", [".tables", "SELECT 1;", "\\d"], None),
        ("-- first\n.mode csv\nSELECT 1;", [".mode csv", "SELECT 1;"], None),
        ("SELECT 1\n.5;", ["SELECT 1\n.5;"], None),
        ("SELECT 'a\n.tables\n';", ["SELECT 'a\n.tables\n';"], None),
        ("SELECT 1;\r\n.mode csv\r\n", ["SELECT 1;", ".mode csv"], None),
    ],
)
def test_input_is_cut_at_semicolons_outside_quotes_and_comments(text, items, rest):
    assert cut(text) == (items, rest)


def test_the_reader_knows_whether_a_statement_is_open():
    reader = StatementReader()
    states = []
    for line in ["-- comment", "SELECT 1", "+ 2;", "/* a", "*/", "SELECT '", "';"]:
        reader.feed(line)
        states.append(reader.pending)
    assert states == [False, True, False, True, False, True, False]


def test_a_long_statement_is_read_in_linear_time():
    reader = StatementReader()
    for _ in range(50_000):
        assert reader.feed("(1, 'text', NULL),") == []
    assert len(reader.feed("(2, '', 3);")) == 1
