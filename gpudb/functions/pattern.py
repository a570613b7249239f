"""Patterns over text: LIKE, ILIKE, GLOB and regular expressions.

Everything is matched by RE2 or plain substring search, both through Arrow compute, in time linear in the text: no pattern
can hang a query, as Python's `re` could.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from gpudb import compute
from gpudb.errors import DataError
from gpudb.functions.registry import macro, text
from gpudb.functions.rows import is_constant, length, text_array
from gpudb.types import BOOLEAN, VARCHAR, SqlType


def quote(literal: str) -> str:
    """A regular expression that matches exactly `literal`.

    >>> quote("1+1")
    '1\\\\+1'
    """
    parts = (c if c.isalnum() or c == "_" or c > "\x7f" else "\\x00" if c == "\0" else "\\" + c for c in literal)
    return "".join(parts)


def _per_constants(function: Callable[..., pa.Array], result: SqlType, string: Any, *constants: Any) -> pa.Array:
    """function(array, *Python constants), once for every distinct combination of the arguments after the first."""
    if is_constant(*constants) and isinstance(string, pa.Array):
        return function(string, *constants)
    count = length(string, *constants)
    strings = text_array(string, count)
    columns = [c.to_pylist() if isinstance(c, pa.Array) else [c] * count for c in constants]
    places: dict[tuple[Any, ...], list[int]] = {}
    for place, combination in enumerate(zip(*columns, strict=True)):
        places.setdefault(combination, []).append(place)
    if not places:
        return pa.array([], result.arrow)
    pieces, order = [], []
    for combination, some in places.items():
        chosen = np.array(some)
        pieces.append(function(strings.take(pa.array(chosen)), *combination))
        order.append(chosen)
    back = np.argsort(np.concatenate(order), kind="stable")
    return pa.concat_arrays(pieces).take(pa.array(back))


def _matches(strings: pa.Array, expression: str) -> pa.Array:
    try:
        return compute.match_substring_regex(strings, expression)
    except pa.ArrowInvalid as error:
        raise _invalid(error) from None


def _invalid(error: Exception) -> DataError:
    reason = str(error).removeprefix("Invalid: ").removeprefix("Invalid regular expression: ")
    return DataError(f"invalid regular expression: {reason}")


# --- LIKE -----------------------------------------------------------------------------------------------------------


def _like_parts(pattern: str, escape: str) -> list[str | None]:
    """A LIKE pattern as literals, "" for `_`, and None for `%`."""
    if len(escape) > 1:
        raise DataError(f"escape text of LIKE longer than one character: {escape}")
    parts: list[str | None] = []
    characters = iter(pattern)
    for character in characters:
        if escape and character == escape:
            character = next(characters, "")
            if not character:
                raise DataError(f"LIKE pattern ends with its escape character: {pattern}")
        elif character == "%":
            if not parts or parts[-1] is not None:
                parts.append(None)
            continue
        elif character == "_":
            parts.append("")
            continue
        if parts and parts[-1]:
            parts[-1] += character
        else:
            parts.append(character)
    return parts


def _like(strings: pa.Array, pattern: str, escape: str = "") -> pa.Array:
    match _like_parts(pattern, escape):
        case []:
            return compute.equal(strings, "")
        case [None]:
            return pa.repeat(pa.scalar(True), len(strings))
        case [str(literal)] if literal:
            return compute.equal(strings, literal)
        case [str(literal), None] if literal:
            return compute.starts_with(strings, literal)
        case [None, str(literal)] if literal:
            return compute.ends_with(strings, literal)
        case [None, str(literal), None] if literal:
            return compute.match_substring(strings, literal)
        case parts:
            body = "".join(".*" if part is None else quote(part) if part else "." for part in parts)
            return _matches(strings, f"(?s)\\A{body}\\z")


@text("VARCHAR, VARCHAR -> BOOLEAN; VARCHAR, VARCHAR, VARCHAR -> BOOLEAN", aliases=("like_escape", "~~"))
def like(string: Any, pattern: Any, escape: Any = "") -> pa.Array:
    """Whether all of a text fits a pattern: `_` is any character, `%` any number of them; case counts.

    >>> sql("SELECT 'Charlottesville' LIKE 'Ch%v_lle', like_escape('10%', '10!%', '!')")
    true | true
    """
    return _per_constants(_like, BOOLEAN, string, pattern, escape)


@text("VARCHAR, VARCHAR -> BOOLEAN; VARCHAR, VARCHAR, VARCHAR -> BOOLEAN", aliases=("ilike_escape", "~~*"))
def ilike(string: Any, pattern: Any, escape: Any = "") -> pa.Array:
    """As LIKE, both sides in lower case.

    >>> sql("SELECT 'Charlottesville' ILIKE 'CHAR%'")
    true
    """

    def one(strings: pa.Array, some: str, mark: str) -> pa.Array:
        return _like(strings, compute.utf8_lower(pa.scalar(some)).as_py(), mark)

    lowered = (
        compute.utf8_lower(string) if isinstance(string, pa.Array) else compute.utf8_lower(pa.scalar(string)).as_py()
    )
    return _per_constants(one, BOOLEAN, lowered, pattern, escape)


macro(
    "not_like_escape",
    "string, pattern, escape",
    "NOT like_escape(string, pattern, escape)",
    """Whether a text does not fit a pattern with an escape character.

    >>> sql("SELECT not_like_escape('10%', '10!%', '!')")
    false
    """,
    aliases=("not_like",),
)

macro(
    "not_ilike_escape",
    "string, pattern, escape",
    "NOT ilike_escape(string, pattern, escape)",
    """Whether a text does not fit a pattern with an escape character, in lower case.

    >>> sql("SELECT not_ilike_escape('A%', 'b!%', '!')")
    true
    """,
    aliases=("not_ilike",),
)


def _glob(strings: pa.Array, pattern: str) -> pa.Array:
    expression = _glob_expression(pattern)
    if expression is None:
        return pa.repeat(pa.scalar(False), len(strings))
    return _matches(strings, expression)


def _glob_expression(pattern: str) -> str | None:
    """A GLOB pattern as a regular expression; None for one that fits nothing."""
    body, place = "", 0
    while place < len(pattern):
        character = pattern[place]
        place += 1
        if character == "*":
            body += ".*"
        elif character == "?":
            body += "."
        elif character == "\\":
            if place == len(pattern):
                return None
            body += quote(pattern[place])
            place += 1
        elif character == "[":
            negated = pattern[place : place + 1] in ("!", "^")
            place += negated
            ranges, first = [], True
            while True:
                if place == len(pattern):
                    return None
                low = pattern[place]
                place += 1
                if low == "]" and not first:
                    break
                first = False
                high = low
                if pattern[place : place + 1] == "-" and pattern[place + 1 : place + 2] not in ("", "]"):
                    high = pattern[place + 1]
                    place += 2
                if low <= high:
                    ranges.append(f"{_class_quote(low)}-{_class_quote(high)}")
            inside = "".join(ranges)
            body += f"[{'^' if negated else ''}{inside}]" if inside else "." if negated else "[^\\x00-\\x{10FFFF}]"
        else:
            body += quote(character)
    return f"(?s)\\A{body}\\z"


def _class_quote(character: str) -> str:
    return f"\\x{{{ord(character):X}}}"


@text("VARCHAR, VARCHAR -> BOOLEAN", aliases=("~~~",))
def glob(string: Any, pattern: Any) -> pa.Array:
    """Whether all of a text fits a shell pattern: `*`, `?`, `[a-z]`, `[!a-z]`, and a backslash before a plain character.

    >>> sql("SELECT 'flights.csv' GLOB '*.csv'")
    true
    """
    return _per_constants(_glob, BOOLEAN, string, pattern)


# --- regular expressions --------------------------------------------------------------------------------------------


def _with_options(pattern: str, options: str, *, replace: bool = False) -> tuple[str, bool]:
    """(expression, replace all) for a pattern and option letters.

    c, i  case counts, or not      s  a dot matches a line end      m, n, p  it does not
    l     the pattern is literal   g  replace every match (regexp_replace only)
    """
    fold, dot_all, literal, everywhere = False, False, False, False
    for option in options:
        match option:
            case "c":
                fold = False
            case "i":
                fold = True
            case "l":
                literal = True
            case "m" | "n" | "p":
                dot_all = False
            case "s":
                dot_all = True
            case "g" if replace:
                everywhere = True
            case "g":
                raise DataError("option g of a regular expression is for regexp_replace alone")
            case " " | "\t" | "\n":
                pass
            case _:
                raise DataError(f"unknown option of a regular expression: {option}")
    flags = ("i" if fold else "") + ("s" if dot_all else "")
    body = quote(pattern) if literal else pattern
    return (f"(?{flags}:{body})" if flags else body), everywhere


def _regexp_matches(strings: pa.Array, pattern: str, options: str) -> pa.Array:
    return _matches(strings, _with_options(pattern, options)[0])


def _regexp_full_match(strings: pa.Array, pattern: str, options: str) -> pa.Array:
    return _matches(strings, f"\\A(?:{_with_options(pattern, options)[0]})\\z")


@text("VARCHAR, VARCHAR -> BOOLEAN; VARCHAR, VARCHAR, VARCHAR -> BOOLEAN")
def regexp_matches(string: Any, pattern: Any, options: Any = "") -> pa.Array:
    """Whether a regular expression (RE2) matches somewhere in a text.

    >>> sql("SELECT regexp_matches('N725MQ', '[0-9]{3}'), regexp_matches('abc', 'B', 'i')")
    true | true
    """
    return _per_constants(_regexp_matches, BOOLEAN, string, pattern, options)


@text("VARCHAR, VARCHAR -> BOOLEAN; VARCHAR, VARCHAR, VARCHAR -> BOOLEAN")
def regexp_full_match(string: Any, pattern: Any, options: Any = "") -> pa.Array:
    """Whether a regular expression (RE2) matches all of a text.

    >>> sql("SELECT regexp_full_match('N725MQ', '[0-9]{3}')")
    false
    """
    return _per_constants(_regexp_full_match, BOOLEAN, string, pattern, options)


def _regexp_replace(strings: pa.Array, pattern: str, replacement: str, options: str) -> pa.Array:
    expression, everywhere = _with_options(pattern, options, replace=True)
    try:
        return compute.replace_substring_regex(
            strings, expression, replacement, max_replacements=None if everywhere else 1
        )
    except pa.ArrowInvalid as error:
        raise _invalid(error) from None


@text("VARCHAR, VARCHAR, VARCHAR -> VARCHAR; VARCHAR, VARCHAR, VARCHAR, VARCHAR -> VARCHAR")
def regexp_replace(string: Any, pattern: Any, replacement: Any, options: Any = "") -> pa.Array:
    r"""Replace the first match of a regular expression (every one, with option g); \1 to \9 stand for its groups.

    >>> sql("SELECT regexp_replace('2013-07-04', '(\d+)-(\d+)', '\2/\1'), regexp_replace('aaa', 'a', 'b', 'g')")
    07/2013-04 | bbb
    """
    return _per_constants(_regexp_replace, VARCHAR, string, pattern, replacement, options)


def _regexp_extract(strings: pa.Array, pattern: str, group: int, options: str) -> pa.Array:
    if not 0 <= group <= 9:
        raise DataError(f"group of regexp_extract not between 0 and 9: {group}")
    expression = _with_options(pattern, options)[0]
    matched = _matches(strings, expression)
    nothing = pa.scalar("", pa.string())
    # the shortest start, so that the leftmost match is taken, and all that follows: what is left is the group
    inner = f"({expression})" if group == 0 else f"(?:{expression})"
    try:
        cut = compute.replace_substring_regex(
            strings, f"\\A(?s:.*?){inner}(?s:.*)\\z", f"\\{max(group, 1)}", max_replacements=1
        )
    except pa.ArrowInvalid:  # the expression is valid, so it has fewer groups
        return pa.repeat(nothing, len(strings))
    return compute.if_else(matched, cut, nothing)


@text(
    "VARCHAR, VARCHAR -> VARCHAR; VARCHAR, VARCHAR, INTEGER -> VARCHAR; VARCHAR, VARCHAR, INTEGER, VARCHAR -> VARCHAR"
)
def regexp_extract(string: Any, pattern: Any, group: Any = 0, options: Any = "") -> pa.Array:
    r"""The first match of a regular expression, or one of its groups; empty where there is none.

    >>> sql("SELECT regexp_extract('flight N725MQ', '[0-9]+'), regexp_extract('a=1', '(\w)=(\d)', 2)")
    725 | 1
    """
    return _per_constants(_regexp_extract, VARCHAR, string, pattern, group, options)


@text("VARCHAR -> VARCHAR")
def regexp_escape(string: pa.Array) -> pa.Array:
    """A regular expression that matches exactly a text.

    >>> sql("SELECT regexp_escape('1+1')")
    1\\+1
    """
    return pa.array([quote(value) for value in string.to_pylist()], pa.string())
