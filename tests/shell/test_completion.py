"""What Tab offers."""

import pytest

from gpudb.shell.completion import complete

CATALOG = {"flights": ["carrier", "delay", "dest"], "planes": ["tailnum", "seats"], "odd name": ["a b"]}


@pytest.mark.parametrize(
    ("text", "word", "offered"),
    [
        ("SELECT * FROM fl", "fl", ["flights"]),
        ("SELECT * FROM ", "", ["flights", '"odd name"', "planes"]),
        ("SELECT ca", "ca", ["carrier", "case", "cast"]),
        ("SELECT CA", "CA", ["carrier", "CASE", "CAST"]),
        ("SELECT flights.d", "d", ["delay", "dest"]),
        ("SELECT flights.", "", ["carrier", "delay", "dest"]),
        ("SELECT 1 FROM planes WHERE se", "se", ["seats", "select", "set"]),
        ("SELECT 1 FROM planes WHERE del", "del", []),
        ("sel", "sel", ["select"]),
        ("", "", []),
        (".mo", ".mo", [".mode"]),
        (".mode j", "j", ["json", "jsonlines"]),
        (".timer ", "", ["off", "on"]),
        ("\\d fl", "fl", ["flights"]),
        (".schema p", "p", ["planes"]),
        ("\\ti", "\\ti", ["\\timing"]),
    ],
)
def test_candidates_fit_the_place_of_the_cursor(text, word, offered):
    assert complete(text, CATALOG) == (word, offered)
