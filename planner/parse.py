"""Text to a syntax tree: one statement, DuckDB's dialect, sqlglot's grammar.

Three steps, each usable alone:

* `shape(sql)` splits a statement into its plan-cache key and its literal values with one regular expression, without
  sqlglot; it runs for every execute.
* `parse(sql)` tokenizes, rewrites the tokens (`planner.tokens`) so that sqlglot keeps what the binder needs (names of
  functions and types as written, with their places), and parses.  Statements sqlglot has no use for (EXPLAIN, SET, COPY ...)
  become a `Command`.
* `split_statements(text)` cuts a script at its semicolons.

Numbering: literal tokens take the slots 0 .. n - 1 in the order of the text, parameters the slots after them.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from dataclasses import field
from typing import Any, TypeVar

from gpudb.errors import NotSupportedError, ParseError
from gpudb.record import record
from gpudb.types import BIGINT, DOUBLE, HUGEINT, INTEGER, VARCHAR, SqlType, decimal

Value = TypeVar("Value")

MAXIMUM_DEPTH = 500  # nesting levels of one statement
SHALLOW = 30  # levels that the caller's stack surely takes; sqlglot needs up to 24 frames a level
STACK_BYTES = 512 << 20  # of the thread for deep statements; only touched pages cost memory
DEEP_RECURSION_LIMIT = 60_000

# A gap is everything between two literals: words, quoted names, comments, parameters, operators.  Escape strings (E'..')
# and dollar quotes stay in the gap, so that their text is part of the key.
_SHAPE = re.compile(
    r"""(
      (?: [^'"\w$./?-]++
        | [eExXbBnN]'(?:[^'\\]|\\.|'')*+'
        | [^\W\d][\w$]*+
        | "(?:[^"]|"")*+"
        | --[^\n]*+
        | /\*.*?\*/
        | \$(?P<tag>[A-Za-z_]*)\$.*?\$(?P=tag)\$
        | \$\w++
        | \?\d*+
        | \.(?!\d)
        | [-/$]
      )*+
    )
    (?: ( (?:\d[\d_]*+(?:\.[\d_]*+)?|\.\d[\d_]*+)(?:[eE][+-]?\d++)? )
      | '((?:[^']|'')*+)'
      | (.)
      | \Z
    )""",
    re.VERBOSE | re.DOTALL,
)

_STRING = "''"  # a string's marker in the key; two characters, since a lone quote is a marker too
Literals = tuple[tuple[SqlType, Any], ...]
Key = tuple[str, ...]


@record
class Command:
    """A statement that sqlglot does not parse for us: `name` and what belongs to it.

    explain {mode, statement}; describe {statement | table}; show {name}; show_tables;
    listing {name, arguments | schema}; set {name, value}; reset {name};
    create_view {name, columns, sql, exists, replace}; create_schema {name, exists, replace};
    create_sequence {name, options, exists, replace}; drop_view, drop_sequence and drop_schema {name, exists, cascade};
    truncate {table}; rename_table {table, if_exists, name};
    add_column, drop_column and rename_column {table, if_exists, definition | column, column_exists, name};
    set_default {table, if_exists, column, definition or None}; set_type {table, if_exists, column, definition};
    merge {target, source, join, whens, with, returning};
    set_not_null {table, if_exists, column, required}; add_constraint {table, if_exists, constraint};
    begin {read_only}; commit; rollback; copy_from {table, columns, paths, options}; copy_to {statement, path, options}.
    `table` and `statement` are sqlglot trees or Commands; `spans` gives the place of a part by its name.
    """

    name: str
    parts: dict[str, Any] = field(default_factory=dict)
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)


@record
class Parsed:
    """One parsed statement.

    tree        sqlglot expression, or a Command
    literals    (type, value) of each literal token, in order of the text: slot i
    slots       start offset of a literal token -> its slot
    parameters  names of the parameters in order of first use; slot len(literals) + position.  `?` are "1", "2", ...
    key         the statement with each literal replaced by its type: equal keys may share a plan, as far as consumed
                literal values agree too
    deep        nested so far that walking the tree wants `on_a_big_stack`
    """

    sql: str
    tree: Any
    literals: Literals
    slots: dict[int, int]
    parameters: tuple[str, ...]
    key: Key
    deep: bool = False


def shape(sql: str) -> tuple[Key, Literals]:
    """The plan-cache key of a statement, and the values of its literals: (type, value) in order of the text.

    A number's marker in the key holds its type and its width class, since typing depends on what it fits into; and its
    text where that does not follow from type and value (1e5, 007, 1_000), since result columns are named by it.
    """
    key: list[str] = []
    literals: list[tuple[SqlType, Any]] = []
    for gap, _, number, text, other in _SHAPE.findall(sql):
        key.append(gap)
        if number:
            marker, literal = _number(number)
            key.append(marker)
            literals.append(literal)
        elif other:
            key.append(other)
        elif text:
            key.append(_STRING)
            literals.append((VARCHAR, text.replace("''", "'") if "''" in text else text))
        else:
            # An empty string and the end of the statement look alike to findall; the end is told apart below.
            key.append("")
    return _with_empty_strings(sql, key, literals) if "''" in sql else (tuple(key), tuple(literals))


def _with_empty_strings(sql: str, key: list[str], literals: list[tuple[SqlType, Any]]) -> tuple[Key, Literals]:
    """The slow form of `shape`, for statements where '' occurs."""
    key.clear()
    literals.clear()
    for match in _SHAPE.finditer(sql):
        key.append(match[1])
        if match[3] is not None:
            marker, literal = _number(match[3])
            key.append(marker)
            literals.append(literal)
        elif match[4] is not None:
            key.append(_STRING)
            literals.append((VARCHAR, match[4].replace("''", "'")))
        else:
            key.append(match[5] or "")
    return tuple(key), tuple(literals)


def literal_starts(sql: str) -> list[int]:
    """Start offset of each literal token that `shape` counts, in order."""
    starts = []
    for match in _SHAPE.finditer(sql):
        if match[3] is not None:
            starts.append(match.start(3))
        elif match[4] is not None:
            starts.append(match.start(4) - 1)
    return starts


def moved_span(span: tuple[int, int] | None, old: str, new: str) -> tuple[int, int] | None:
    """Where a place in `old` is in `new`, a statement of the same key: their literals may differ in length."""
    if span is None or old == new:
        return span

    def moved(offset: int) -> int:
        shift = 0
        for before, after in zip(_SHAPE.finditer(old), _SHAPE.finditer(new), strict=False):
            if before.end() >= offset:
                # Inside a literal only its start has a counterpart; its end is the literal's end.
                inside = offset > before.end(1)
                return after.end() if inside else offset + shift
            shift = after.end() - before.end()
        return offset + shift

    return moved(span[0]), moved(span[1])


def _number(text: str) -> tuple[str, tuple[SqlType, Any]]:
    """Key marker, type and value of a numeric token: INTEGER, BIGINT, HUGEINT, DECIMAL (scaled integer) or DOUBLE."""
    if text.isdigit() and (text[0] != "0" or len(text) == 1):
        value = int(text)
        if value < 128:
            return "8", (INTEGER, value)
        return _integer(value)
    if "_" in text or text.isdigit():
        marker, literal = _number(text.replace("_", "").lstrip("0") or "0")
        return f"{marker} {text}", literal
    if "e" in text or "E" in text:
        return text, (DOUBLE, float(text))
    whole, _, fraction = text.partition(".")
    digits = len(whole) + len(fraction)  # every digit that is written, zeros that lead too: 007.50 is DECIMAL(5,2)
    if digits > 38:
        return text, (DOUBLE, float(text))
    return f"{digits}.{len(fraction)}", (decimal(digits, len(fraction)), int(whole + fraction or "0"))


def _integer(value: int) -> tuple[str, tuple[SqlType, Any]]:
    """An integer token; powers of two on the edge of a type get markers of their own, since -128 fits where 128 does not."""
    for bits, type_ in ((8, INTEGER), (16, INTEGER), (32, INTEGER), (64, BIGINT), (128, HUGEINT)):
        edge = 1 << (bits - 1)
        if value < edge:
            return str(bits), (type_, value)
        if value == edge:
            wider = {32: BIGINT, 64: HUGEINT}.get(bits, type_)
            return f"={bits}", (wider, value)
    return str(value), (DOUBLE, float(value))


def most_written(type_: SqlType, value: Any) -> int | None:
    """The greatest number whose token has the same marker in the key as this one's; None where the key does not say."""
    if type_.kind == "DECIMAL":
        return int(10**type_.precision - 1)
    if not type_.is_integer:
        return None
    return next(edge if value == edge else edge - 1 for edge in _EDGES if value <= edge)


_EDGES = tuple(1 << (bits - 1) for bits in (8, 16, 32, 64, 128))


def split_statements(text: str) -> list[str]:
    """The statements of a script, without their semicolons; what holds no more than comments is left out.

    >>> split_statements("SELECT ';'; -- done;")
    ["SELECT ';'"]
    """
    statements, start = [], 0
    for match in _LEXEME.finditer(text):
        if match[0] == ";":
            statements.append(text[start : match.start()])
            start = match.end()
    statements.append(text[start:])
    return [one.strip() for one in statements if _COMMENTS.sub("", one).strip()]


_LEXEME = re.compile(
    r"""[eE]'(?:[^'\\]|\\.|'')*+(?:'|\Z) | '(?:[^']|'')*+(?:'|\Z) | "(?:[^"]|"")*+(?:"|\Z) | --[^\n]*+ | /\*.*?(?:\*/|\Z)
      | \$(?P<tag>[A-Za-z_]*)\$.*?(?:\$(?P=tag)\$|\Z) | ; | \$\w++ | \w[\w$]*+ | \s++ | .""",
    re.VERBOSE | re.DOTALL,
)
_COMMENTS = re.compile(r"--[^\n]*+|/\*.*?\*/", re.DOTALL)


def hide_parameters(sql: str) -> str:
    """`$name` as `?name`, of equal length: sqlglot would read `$1+$2` as the start of a dollar-quoted string."""
    return _LEXEME.sub(lambda match: "?" + match[0][1:] if _PARAMETER.fullmatch(match[0]) else match[0], sql)


_PARAMETER = re.compile(r"\$\w+")


def is_complete(text: str) -> bool:
    """Whether the text ends with a semicolon that ends a statement: not one in a string, name or comment."""
    last = ""
    for match in _LEXEME.finditer(text):
        if not match[0].isspace() and not match[0].startswith(("--", "/*")):
            last = match[0]
    return last == ";"


def parse(sql: str) -> Parsed:
    """Exactly one statement, or ParseError with a span.  Nesting beyond 500 levels is refused."""
    from gpudb.planner import commands, pivot_tokens, summarize_tokens, tokens  # sqlglot loads here, at the first query

    try:
        key, literals = shape(sql)
        starts = literal_starts(sql)
        found = tokens.tokenize(sql)
        depth = tokens.depth(found)
        if depth.levels > MAXIMUM_DEPTH:
            message = f"statement nested too deeply: more than {MAXIMUM_DEPTH} levels"
            raise ParseError(message, span=depth.span, hint="split it with WITH ... AS (...)")
        deep = depth.levels > SHALLOW or depth.chain > 4 * SHALLOW
        slots = {start: slot for slot, start in enumerate(starts)}
        rewritten, parameters = tokens.rewrite(pivot_tokens.pivots(summarize_tokens.summaries(found)), sql)

        def build() -> Any:
            return commands.statement(rewritten, sql)

        tree = on_a_big_stack(build) if deep else build()
    except (ParseError, NotSupportedError) as error:
        error.attach_sql(sql)
        raise
    return Parsed(sql, tree, literals, slots, parameters, key, deep)


def on_a_big_stack(function: Callable[[], Value]) -> Value:
    """Run `function` on a thread with a 512 MB stack and a raised recursion limit: for deeply nested statements."""
    if threading.current_thread().name == _THREAD_NAME:
        return function()
    outcome: list[Any] = [None, None]

    def run() -> None:
        try:
            outcome[0] = function()
        except BaseException as error:  # noqa: BLE001 - it is raised again below, on the caller's thread
            outcome[1] = error

    with _STACK_LOCK:
        old_limit, old_size = sys.getrecursionlimit(), threading.stack_size(STACK_BYTES)
        sys.setrecursionlimit(max(old_limit, DEEP_RECURSION_LIMIT))
        try:
            thread = threading.Thread(target=run, name=_THREAD_NAME)
            thread.start()
        finally:
            threading.stack_size(old_size)
        try:
            thread.join()
        finally:
            sys.setrecursionlimit(old_limit)
    if outcome[1] is not None:
        raise outcome[1]
    return outcome[0]


_THREAD_NAME = "gpudb-deep-statement"
_STACK_LOCK = threading.Lock()  # stack size and recursion limit belong to the process
