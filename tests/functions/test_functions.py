"""Every function against DuckDB on random arguments, its documented example, and its C++ against its NumPy body."""

from __future__ import annotations

import math

import pytest

from gpudb.functions.registry import FUNCTIONS, Function, Overload
from tests.functions import oracle
from tests.functions.oracle import FAILED, among, integers

CALLS = {
    "like": {2: "({0} LIKE {1})", 3: "like_escape({0}, {1}, {2})"},
    "ilike": {2: "({0} ILIKE {1})", 3: "ilike_escape({0}, {1}, {2})"},
    "glob": {2: "({0} GLOB {1})"},
    "position": {2: "strpos({0}, {1})"},
    "bit_and": {2: "({0} & {1})"},
    "bit_or": {2: "({0} | {1})"},
    "bit_xor": {2: "xor({0}, {1})"},
    "bit_not": {1: "(~{0})"},
    "shift_left": {2: "({0} << {1})"},
    "shift_right": {2: "({0} >> {1})"},
    "add_interval": {2: "({0} + {1})"},
    "subtract_interval": {2: "({0} - {1})"},
    "date_add": {2: "({0} + {1})"},
    "concat_operator": {n: " || ".join(f"{{{k}}}" for k in range(n)) for n in range(2, 6)},
}
"""How DuckDB spells what is not name(arguments)."""

PATTERNS = [
    "a.c",
    "b",
    "[a-c]+",
    "^a",
    "c$",
    "(a)(b)?",
    "x*",
    "",
    "A",
    r"\d+",
    "a|b",
    "(?i)ab",
    ".",
    "é",
    "l+o",
    "(.)(.)",
]
LIKES = ["%", "_", "a%", "%a", "%b%", "a_c", "%a%b%", "", "abc", "a%c", "__", "%é%", "a\\%c", "A%", "%%", "H_llo%"]
GLOBS = ["*", "?", "a*", "*c", "[a-c]*", "[!a]*", "a?c", "", "*.*", "[ab]b[!x]", "a[", "\\*", "[z-a]", "*[é]*"]

FORMATS = [
    "%Y-%m-%d",
    "%H:%M:%S.%f",
    "%a %A %b %B %j",
    "%U %W %V %G %u %w",
    "%I %p %-d %-m %-H %-I %-j %-y %y",
    "%c|%x|%X|%%|%n|%g|%z|%Z",
    "é",
    "%h %-M %-S",
    "",
    "%q",
]
PARSED = [
    ("2013-07-04", "%Y-%m-%d"),
    ("04.07.13 5:06", "%d.%m.%y %H:%M"),
    ("Jul 4, 2013", "%b %d, %Y"),
    ("july 4 2013", "%B %d %Y"),
    ("2013-07-04 12:30:00 AM", "%Y-%m-%d %I:%M:%S %p"),
    ("2013 185", "%Y %j"),
    ("2013 366", "%Y %j"),
    ("2013-02-29", "%Y-%m-%d"),
    ("Thu 2013-07-04", "%a %Y-%m-%d"),
    ("2013-07-04 05:06:07.5", "%Y-%m-%d %H:%M:%S.%f"),
    ("x", "%Y"),
    ("2013-7-4", "%Y-%m-%d"),
    ("20130704", "%Y%m%d"),
    ("12:34", "%H:%M"),
    ("2013-07-04x", "%Y-%m-%d"),
    (" 2013-07-04 ", "%Y-%m-%d"),
    ("-5", "%Y"),
    ("2013-07-04 05:06:07", "%c"),
    ("5%", "%d%%"),
    ("2013-07-04 24:00", "%Y-%m-%d %H:%M"),
    ("2013-W27-4", "%G-W%V-%u"),
    ("2013 27", "%Y %W"),
    ("2013 0 1", "%Y %U %w"),
    ("2013 27 7 08", "%Y %U %u %m"),
    ("2013 4", "%Y %u"),
    ("2013", "%G"),
    ("Infinity", "%Y"),
    ("epoch", "%d"),
    ("1 PM", "%H %p"),
    ("13 PM", "%H %p"),
]

GENERATORS = {
    "repeat": {1: integers(-2, 5)},
    "substring": {1: integers(-9, 9), 2: integers(-9, 9)},
    "substring_grapheme": {1: integers(-9, 9), 2: integers(-9, 9)},
    "left": {1: integers(-6, 9)},
    "right": {1: integers(-6, 9)},
    "left_grapheme": {1: integers(-6, 9)},
    "right_grapheme": {1: integers(-6, 9)},
    "split_part": {1: among(",", "a", "", "ab", "-"), 2: integers(-4, 4)},
    "lpad": {1: integers(-3, 12)},
    "rpad": {1: integers(-3, 12)},
    "trim": {1: among("", " ", "ab", "xé", "c0")},
    "ltrim": {1: among("", " ", "ab", "xé", "c0")},
    "rtrim": {1: among("", " ", "ab", "xé", "c0")},
    "replace": {1: among("", "a", "ab", "é", "l"), 2: among("", "x", "aa")},
    "translate": {1: among("", "abc", "aab", "é%"), 2: among("", "x", "xyz")},
    "overlay": {2: integers(-3, 9), 3: integers(-3, 9)},
    "position": {1: among("", "a", "b", "lo", "é", "x")},
    "contains": {1: among("", "a", "b", "lo", "é", "x")},
    "starts_with": {1: among("", "a", "A", "He", "é", "x")},
    "ends_with": {1: among("", "a", "c", "lo", "é", "x")},
    "to_base": {0: among(0, 1, 5, 255, 10**18, -1, 36), 1: integers(1, 37), 2: integers(-1, 66)},
    "chr": {0: among(65, 233, 0x1F44D, 0xD800, -1, 0x110000, 1, 0x10FFFF)},
    "jaro_similarity": {2: among(0.0, 0.5, 0.9)},
    "jaro_winkler_similarity": {2: among(0.0, 0.5, 0.9)},
    "like": {1: among(*LIKES), 2: among("", "\\", "!", "xx")},
    "ilike": {1: among(*LIKES), 2: among("", "\\", "!")},
    "glob": {1: among(*GLOBS)},
    "regexp_matches": {1: among(*PATTERNS, "("), 2: among("", "i", "s", "c", "l", "m", "g", "q", "ic", "ci")},
    "regexp_full_match": {1: among(*PATTERNS, "("), 2: among("", "i", "s", "c", "l")},
    "regexp_replace": {1: among(*PATTERNS), 2: among("", "X", r"[\0]", r"\1", "a\\\\b"), 3: among("", "g", "i", "gi")},
    "regexp_extract": {1: among(*PATTERNS), 2: integers(-1, 10), 3: among("", "i", "s")},
    "round": {1: among(-400, -19, -18, -10, -9, -3, -2, -1, 0, 1, 2, 5, 15, 22, 310)},
    "trunc": {1: among(-400, -19, -18, -10, -9, -3, -2, -1, 0, 1, 2, 5, 15, 22, 310)},
    "round_even": {1: among(-400, -19, -18, -10, -9, -3, -2, -1, 0, 1, 2, 5, 15, 22, 310)},
    "shift_left": {0: integers(-1, 60), 1: integers(-2, 66)},
    "shift_right": {1: integers(-2, 66)},
    "time_bucket": {
        1: among(*range(-100_000_000, 100_000_000, 99_991)),
        2: among(*range(-20_000, 20_000, 997)),
    },  # dates that are timestamps too
    "strftime": {1: among(*FORMATS)},
    "make_date": {
        0: among(2013, 1970, 0, -44, 5881580, -5877641, 9999999, 2016, 1900),
        1: integers(0, 13),
        2: integers(0, 32),
    },
    "make_timestamp": {
        0: among(2013, 1970, 0, 294247, -290308, 9999999),
        1: integers(1, 12),
        2: integers(1, 31),
        3: integers(-1, 25),
        4: integers(0, 60),
        5: among(0.0, 1.5, 59.9999999, 60.0, 60.5, -1.0, math.nan, 12.345678, 5.6789999),
    },
    "factorial": {0: integers(-2, 40)},
    "binom": {0: integers(-2, 120), 1: integers(-2, 120)},
}
"""Generators of single arguments, by function and place, where random values would rarely be interesting."""

GENERATORS["make_timestamptz"] = GENERATORS[
    "make_timestamp"
] | {  # DuckDB takes an hour 25 there: its calendar is lenient
    0: among(2013, 1970, 1880, 2400),
    2: integers(1, 28),
    3: integers(0, 23),
    4: integers(0, 59),
    5: among(0.0, 1.5, 12.345678, 59.25),
}
CONSTANT: dict[str, tuple[int, ...]] = {
    "regexp_matches": (1, 2), "regexp_full_match": (1, 2), "regexp_replace": (3,), "regexp_extract": (2, 3),
    "strftime": (1,), "strptime": (1,), "try_strptime": (1,), "like": (2,), "ilike": (2,),
}  # fmt: skip
"""Arguments that DuckDB takes as constants only: each value is asked for by itself."""


def functions() -> list[Function]:
    return [f for name, f in sorted(FUNCTIONS.items()) if name == f.name]


def overloads() -> list[Overload]:
    """All but those over INTERVALs of rows, bytes and UUIDs, which `tests/sql/types` compares."""
    return [o for f in functions() for o in f.overloads if not {"SPAN", "BLOB", "UUID"} & {*o.arguments, o.result.kind}]


def name_of(overload: Overload) -> str:
    return f"{overload.name}({', '.join(overload.arguments)})"


PARTS = ("date_part", "date_trunc", "date_diff", "date_sub")
OURS = (
    "first_day_of_",
    "day_number",
    "bucket_start",
    "without_prefix",
    "date_as_",
    "timestamp_as_",
    "dayname_of",
    "monthname_of",
    "at_time_zone",
    "time_of_microseconds",
    "interval_",
    "blob_",
    "try_blob_",
    "random_uuid",
    "uuid_milliseconds",
    "uuid_of_",
    "try_uuid_of_",
    "zoned_",
    "try_zoned_",
)
"""Functions that DuckDB does not have: macros are made of them, and compared there."""


def template(overload: Overload, arity: int) -> str:
    for name in PARTS:
        if overload.name.startswith(f"{name}_"):
            part = overload.name.removeprefix(f"{name}_")
            return f"{name}('{part}', {', '.join(f'{{{k}}}' for k in range(arity))})"
    found = CALLS.get(overload.name, {}).get(arity)
    return found or f"{overload.name}({', '.join(f'{{{k}}}' for k in range(arity))})"


@pytest.mark.parametrize(
    "overload",
    [o for o in overloads() if o.kind == "text" and "strptime" not in o.name and not o.name.startswith(OURS)],
    ids=name_of,
)
def test_text_function_gives_what_duckdb_gives(overload: Overload) -> None:
    columns = oracle.random_columns(overload, GENERATORS.get(overload.name, {}), seed=1)
    only_constant = [k for k in CONSTANT.get(overload.name, ()) if k < len(columns)]
    if not only_constant:
        check(overload, columns)
    if len(columns) > 1:  # the same with constants after the first argument, which bodies treat apart
        combinations = {tuple(c[row] for c in columns[1:]) for row in range(40)}
        for constants in sorted(c for c in combinations if None not in c)[:12]:
            check(overload, [columns[0], *constants])
            if only_constant:
                check(overload, [c if k not in only_constant else constants[k - 1] for k, c in enumerate(columns)])


@pytest.mark.parametrize(
    "overload", [o for o in overloads() if o.kind == "scalar" and not o.name.startswith(OURS)], ids=name_of
)
def test_scalar_function_gives_what_duckdb_gives(overload: Overload) -> None:
    intervals = oracle.INTERVALS if "INTERVAL" in overload.arguments else [None]
    for interval in intervals:
        columns = oracle.random_columns(overload, GENERATORS.get(overload.name, {}), seed=1, rows=1000)
        check(
            overload,
            [interval if kind == "INTERVAL" else c for c, kind in zip(columns, overload.arguments, strict=True)],
        )


@pytest.mark.parametrize("name", ["strptime", "try_strptime"])
@pytest.mark.parametrize(("value", "pattern"), PARSED)
def test_text_is_read_by_a_format_as_duckdb_reads_it(name: str, value: str, pattern: str) -> None:
    check(FUNCTIONS[name].overloads[0], [[value, None, "2013-07-04", ""], pattern])


def check(overload: Overload, columns: list) -> None:
    ours = oracle.evaluate(overload, columns)
    theirs = oracle.duckdb_values(template(overload, len(columns)), overload, columns, overload.result.kind)
    relative = 1e-12 if overload.result.is_float else 0.0
    for row, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        arguments = [c[row] if isinstance(c, list) else c for c in columns]
        message = f"{name_of(overload)}{arguments}: {a!r}, DuckDB {b!r}"
        assert oracle.same(None if a is FAILED else a, b, relative=relative), message
