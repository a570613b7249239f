"""Tokens to the tree of one statement: sqlglot's for queries, CREATE, INSERT and DROP, a `Command` for the others.

sqlglot keeps EXPLAIN, SHOW and SET as text and knows COPY differently, so those are read here, token by token.  Past 600 lines
because there are that many statements; one's few lines have nothing to do with the next one's.
"""

from __future__ import annotations

import logging
from typing import Any

from sqlglot import exp
from sqlglot.errors import ParseError as SqlglotParseError
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType

from gpudb.catalog import qualified
from gpudb.errors import NotSupportedError, ParseError
from gpudb.planner.merging import merge
from gpudb.planner.parse import Command
from gpudb.planner.tokens import (
    DIALECT,
    FUNCTION,
    closing_of,
    plain,
    rewrite,
    span_of_token,
    split_at,
    typed_literals,
    word_of,
)

# Without a handler of its own sqlglot's warnings go to standard error; a program that wants them still gets them.
logging.getLogger("sqlglot").addHandler(logging.NullHandler())

_QUERY_STARTS = frozenset(
    "pivot unpivot select with values from table ( create insert update delete drop merge".split()
)
_CHANGE_STARTS = frozenset("create insert update delete drop merge".split())
_UNSUPPORTED_STARTS = frozenset(
    """analyze attach call checkpoint deallocate detach execute export force grant import install load
    prepare revoke use vacuum replace comment""".split()
)


def statement(tokens: list[Token], sql: str) -> Any:
    """The tree of one statement: sqlglot's, or a Command."""
    first = word_of(tokens[0])
    command = _COMMANDS.get(first)
    if command is not None:
        return command(tokens, sql)
    if first == "merge" or (first == "with" and _merges(tokens)):
        return merge(tokens, sql, _parsed)
    if first in _UNSUPPORTED_STARTS:
        raise NotSupportedError(f"{first.upper()} statements are not supported", span=span_of_token(tokens[0]))
    if first not in _QUERY_STARTS:
        raise ParseError(f"syntax error at or near: {tokens[0].text}", span=span_of_token(tokens[0]))
    return _tree(tokens, sql)


def _merges(tokens: list[Token]) -> bool:
    """Whether a statement that begins with WITH is a MERGE."""
    depth = 0
    for place, token in enumerate(tokens):
        word = word_of(token)
        depth += (word in _OPENING) - (word in _CLOSING)
        if depth == 0 and word == "merge" and word_of(tokens[min(place + 1, len(tokens) - 1)]) == "into":
            return True
    return False


def _tree(tokens: list[Token], sql: str) -> Any:
    at = _returning(tokens)
    if at is None:
        return _parsed(tokens, sql)
    tree, returning = _parsed(tokens[:at], sql), tokens[at]
    start = Token(TokenType.SELECT, "SELECT", returning.line, returning.col, returning.start, returning.end)
    select = _parsed([start, *tokens[at + 1 :]], sql)  # a list as SELECT's: sqlglot's own knows no * EXCLUDE (...)
    more = next((part for part, value in select.args.items() if value and part != "expressions"), None)
    if more is not None or not select.expressions:
        raise ParseError("RETURNING wants expressions, and nothing after them", span=span_of_token(returning))
    tree.set("returning", exp.Returning(expressions=select.expressions))
    return tree


def _returning(tokens: list[Token]) -> int | None:
    """The place of RETURNING in a statement that may have it."""
    depth, changes = 0, False
    for place, token in enumerate(tokens):
        word = word_of(token)
        depth += (word in _OPENING) - (word in _CLOSING)
        if depth:
            continue
        if word == "returning" and changes:
            return place
        changes = changes or word in ("insert", "update", "delete")
        if not changes and word in ("select", "from", "values", "create"):
            return None
    return None


_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


def _parsed(tokens: list[Token], sql: str) -> Any:
    try:
        trees = DIALECT.parser().parse(tokens, sql)
    except SqlglotParseError as error:
        raise _parse_error(error, tokens, sql) from None
    except SqlglotError as error:
        raise ParseError(f"syntax error: {str(error).splitlines()[0]}") from None
    if len(trees) != 1 or trees[0] is None:
        raise ParseError("syntax error", span=span_of_token(tokens[0]))
    typed_literals(trees[0])
    return trees[0]


def _parse_error(error: SqlglotParseError, tokens: list[Token], sql: str) -> ParseError:
    """sqlglot's complaint with our span: the token whose end it names."""
    detail = error.errors[0] if error.errors else {}
    line, column = detail.get("line"), detail.get("col")
    at = next((token for token in tokens if (token.line, token.col) == (line, column)), tokens[-1])
    description = str(detail.get("description") or "")
    shown = sql[at.start : at.end + 1]
    if at is tokens[-1] and not description.startswith("Invalid expression"):
        return ParseError("syntax error at end of input", span=span_of_token(at))
    if description.startswith("Expecting"):
        return ParseError(
            f"syntax error near: {shown}", span=span_of_token(at), hint=description[0].lower() + description[1:]
        )
    return ParseError(f"syntax error at or near: {shown}", span=span_of_token(at))


# --- Statements that are no queries ----------------------------------------------------------------------------------


def _expect_end(tokens: list[Token], index: int) -> None:
    if index < len(tokens):
        raise ParseError(f"syntax error at or near: {tokens[index].text}", span=span_of_token(tokens[index]))


def _name_at(tokens: list[Token], index: int, what: str) -> str:
    """One name; quotes are gone, marks are removed."""
    if index >= len(tokens):
        raise ParseError(f"{what} expected at end of input", span=span_of_token(tokens[-1]))
    return plain(tokens[index].text)


def _dotted(tokens: list[Token], index: int, what: str) -> tuple[str, int]:
    """(the catalog's name of table, schema.table or database.schema.table, the index behind it)."""
    parts = [_name_at(tokens, index, what)]
    index += 1
    while index < len(tokens) and word_of(tokens[index]) == ".":
        parts.append(_name_at(tokens, index + 1, what))
        index += 2
    return (qualified(parts[-1], parts[-2]) if len(parts) > 1 else qualified(parts[0])), index


def _place(tokens: list[Token], start: int, end: int) -> tuple[int, int]:
    return tokens[start].start, tokens[end - 1].end + 1


def _words(tokens: list[Token], index: int, *words: str) -> int:
    """The index behind the words if they stand at `index`, else `index`."""
    found = [word_of(token) for token in tokens[index : index + len(words)]]
    return index + len(words) if found == list(words) else index


def _create(tokens: list[Token], sql: str) -> Any:
    """CREATE VIEW and CREATE SCHEMA; CREATE TABLE is sqlglot's."""
    start = _words(tokens, 1, "or", "replace")
    kind = word_of(tokens[start]) if start < len(tokens) else ""
    if kind in ("temp", "temporary", "recursive") and word_of(tokens[min(start + 1, len(tokens) - 1)]) == "view":
        raise NotSupportedError(f"CREATE {kind.upper()} VIEW is not supported", span=span_of_token(tokens[start]))
    if kind == "type":
        return _create_type(tokens, start, sql)
    if kind not in ("view", "schema", "sequence"):
        return _tree(tokens, sql)
    index = _words(tokens, start + 1, "if", "not", "exists")
    parts: dict[str, Any] = {"replace": start > 1, "exists": index > start + 1}
    if kind == "schema":
        parts["name"] = _name_at(tokens, index, "name of a schema")
        _expect_end(tokens, index + 1)
        return Command("create_schema", parts, {"name": span_of_token(tokens[index])})
    parts["name"], end = _dotted(tokens, index, f"name of a {kind}")
    spans = {"name": _place(tokens, index, end)}
    if kind == "sequence":
        parts["options"] = _sequence_options(tokens, end)
        return Command("create_sequence", parts, spans)
    parts["columns"] = []
    if end < len(tokens) and word_of(tokens[end]) == "(":
        closing = closing_of(tokens, end)
        parts["columns"] = [plain(token.text) for token in tokens[end + 1 : closing] if word_of(token) != ","]
        end = closing + 1
    query = _words(tokens, end, "as")
    if query == end or query >= len(tokens):
        raise ParseError(
            "AS and a query expected in CREATE VIEW", span=span_of_token(tokens[min(end, len(tokens) - 1)])
        )
    if word_of(tokens[query]) not in _QUERY_STARTS - _CHANGE_STARTS:
        raise ParseError("query expected after AS", span=span_of_token(tokens[query]))
    parts["sql"] = sql[tokens[query].start : tokens[-1].end + 1]
    return Command("create_view", parts, spans)


def _create_type(tokens: list[Token], start: int, sql: str) -> Any:
    """CREATE TYPE name AS ENUM ('a', 'b'), or of the values of a query."""
    index = _words(tokens, start + 1, "if", "not", "exists")
    name = _name_at(tokens, index, "name of a type")
    span = span_of_token(tokens[index])
    place = index + 3
    words = [plain(one.text).lower() for one in tokens[index + 1 : place + 1]]
    if words != ["as", "enum", "("]:
        raise NotSupportedError("CREATE TYPE of anything but ENUM (...) is not supported", span=span)
    closing = closing_of(tokens, place)
    items = tokens[place + 1 : closing]
    parts = {"name": name, "exists": index > start + 1, "replace": start > 1}
    if items and word_of(items[0]) in _QUERY_STARTS - _CHANGE_STARTS:
        _expect_end(tokens, closing + 1)
        query = sql[items[0].start : items[-1].end + 1]
        return Command("create_type", {**parts, "sql": query}, {"name": span})
    texts, commas = items[::2], items[1::2]
    if any(one.token_type != TokenType.STRING for one in texts) or any(word_of(one) != "," for one in commas):
        raise NotSupportedError("an ENUM of anything but texts is not supported", span=span)
    _expect_end(tokens, closing + 1)
    return Command("create_type", {**parts, "values": [one.text for one in texts]}, {"name": span})


def _sequence_options(tokens: list[Token], index: int) -> dict[str, Any]:
    """START, INCREMENT, MINVALUE, MAXVALUE and CYCLE of CREATE SEQUENCE."""
    options: dict[str, Any] = {}
    while index < len(tokens):
        word, at = word_of(tokens[index]), index
        if word == "no" and index + 1 < len(tokens) and word_of(tokens[index + 1]) in ("minvalue", "maxvalue", "cycle"):
            options.pop(word_of(tokens[index + 1]), None)
            index += 2
            continue
        if word == "cycle":
            options["cycle"] = True
            index += 1
            continue
        if word not in ("start", "increment", "minvalue", "maxvalue"):
            raise NotSupportedError(
                f"CREATE SEQUENCE ... {word.upper()} is not supported", span=span_of_token(tokens[at])
            )
        index = max(_words(tokens, index + 1, "with"), _words(tokens, index + 1, "by"))
        sign = -1 if index < len(tokens) and word_of(tokens[index]) == "-" else 1
        index += sign < 0
        if index >= len(tokens) or not tokens[index].text.isdigit():
            raise ParseError(
                "integer expected in CREATE SEQUENCE", span=span_of_token(tokens[min(index, len(tokens) - 1)])
            )
        if word in options:
            raise ParseError(f"{word.upper()} is there twice", span=span_of_token(tokens[at]))
        options[word] = sign * int(tokens[index].text)
        index += 1
    return options


def _drop(tokens: list[Token], sql: str) -> Any:
    """DROP VIEW, DROP SCHEMA and DROP TYPE; DROP TABLE is sqlglot's."""
    kind = word_of(tokens[1]) if len(tokens) > 1 else ""
    if kind not in ("view", "schema", "sequence", "type"):
        return _tree(tokens, sql)
    start = _words(tokens, 2, "if", "exists")
    parts: dict[str, Any] = {"exists": start > 2}
    if kind in ("view", "sequence"):
        parts["name"], end = _dotted(tokens, start, f"name of a {kind}")
    else:
        parts["name"], end = _name_at(tokens, start, f"name of a {kind}"), start + 1
    spans = {"name": _place(tokens, start, end)}
    parts["cascade"] = end < len(tokens) and word_of(tokens[end]) == "cascade"
    if end < len(tokens) and word_of(tokens[end]) in ("cascade", "restrict"):
        end += 1
    elif end < len(tokens) and word_of(tokens[end]) == ",":
        raise NotSupportedError(f"DROP of several {kind}s is not supported", span=span_of_token(tokens[end]))
    _expect_end(tokens, end)
    return Command(f"drop_{kind}", parts, spans)


def _truncate(tokens: list[Token], sql: str) -> Command:
    start = _words(tokens, 1, "table")
    name, end = _dotted(tokens, start, "table")
    _expect_end(tokens, end)
    return Command("truncate", {"table": name}, {"table": _place(tokens, start, end)})


def _alter(tokens: list[Token], sql: str) -> Command:
    """ALTER TABLE name ADD | DROP | RENAME ..."""
    if len(tokens) < 2 or word_of(tokens[1]) != "table":
        what = word_of(tokens[1]).upper() if len(tokens) > 1 else ""
        raise NotSupportedError(
            f"ALTER {what} is not supported", span=span_of_token(tokens[-1 if len(tokens) < 2 else 1])
        )
    start = _words(tokens, 2, "if", "exists")
    name, index = _dotted(tokens, start, "table")
    parts: dict[str, Any] = {"table": name, "if_exists": start > 2}
    spans = {"table": _place(tokens, start, index)}
    action = word_of(tokens[index]) if index < len(tokens) else ""
    at = _words(tokens, index + 1, "column")
    first = word_of(tokens[at]).split() if at < len(tokens) else []
    if action == "add" and not (first and first[0] in ("constraint", "primary", "unique", "check", "foreign")):
        after = _words(tokens, at, "if", "not", "exists")
        parts |= {"column_exists": after > at, "definition": _column_definition(tokens, after, sql)}
        spans["column"] = span_of_token(tokens[after])
        return Command("add_column", parts, spans)
    if action == "drop" and first[:1] == ["constraint"]:
        raise NotSupportedError("ALTER TABLE ... DROP CONSTRAINT is not supported", span=span_of_token(tokens[at]))
    if action == "drop":
        after = _words(tokens, at, "if", "exists")
        parts |= {"column_exists": after > at, "column": _name_at(tokens, after, "column")}
        spans["column"] = span_of_token(tokens[after])
        _expect_end(tokens, max(_words(tokens, after + 1, "cascade"), _words(tokens, after + 1, "restrict")))
        return Command("drop_column", parts, spans)
    if action == "rename":
        if word_of(tokens[min(at, len(tokens) - 1)]) == "to":
            parts["name"] = _name_at(tokens, at + 1, "name")
            spans["name"] = span_of_token(tokens[at + 1])
            _expect_end(tokens, at + 2)
            return Command("rename_table", parts, spans)
        parts["column"] = _name_at(tokens, at, "column")
        spans["column"] = span_of_token(tokens[at])
        to = _words(tokens, at + 1, "to")
        if to == at + 1:
            raise ParseError("TO and a name expected", span=span_of_token(tokens[at]))
        parts["name"] = _name_at(tokens, to, "name")
        spans["name"] = span_of_token(tokens[to])
        _expect_end(tokens, to + 1)
        return Command("rename_column", parts, spans)
    if action == "add":
        parts["constraint"] = _table_constraint(tokens, index + 1, sql)
        spans["constraint"] = _place(tokens, index + 1, len(tokens))
        return Command("add_constraint", parts, spans)
    words = [word_of(token) for token in tokens[at + 1 : at + 4]]
    if action == "alter" and words[:1] in (["set"], ["drop"]) and " ".join(words[1:]) == "not null":
        parts |= {"column": _name_at(tokens, at, "column"), "required": words[0] == "set"}
        spans["column"] = span_of_token(tokens[at])
        _expect_end(tokens, at + (4 if len(words) == 3 else 3))
        return Command("set_not_null", parts, spans)
    words = words[:2]
    if action == "alter" and words in (["set", "default"], ["drop", "default"]):
        parts |= {"column": _name_at(tokens, at, "column"), "definition": None}
        spans["column"] = span_of_token(tokens[at])
        if words[0] == "set":
            parts["definition"] = _expression(tokens, at + 3, sql)
        else:
            _expect_end(tokens, at + 3)
        return Command("set_default", parts, spans)
    typed = max(_words(tokens, at + 1, "type"), _words(tokens, at + 1, "set", "data", "type"))
    if action == "alter" and typed > at + 1:
        using = next((k for k in range(typed, len(tokens)) if word_of(tokens[k]) == "using"), None)
        if using is not None:
            raise NotSupportedError(
                "ALTER COLUMN ... TYPE ... USING is not supported", span=span_of_token(tokens[using])
            )
        definition = _column_definition([tokens[at], *tokens[typed:]], 0, sql)
        parts |= {"column": _name_at(tokens, at, "column"), "definition": definition}
        spans |= {"column": span_of_token(tokens[at]), "type": _place(tokens, typed, len(tokens))}
        return Command("set_type", parts, spans)
    shown = " ".join(word_of(token).upper() for token in tokens[index : index + 2])
    place = span_of_token(tokens[min(index, len(tokens) - 1)])
    raise NotSupportedError(f"ALTER TABLE ... {shown} is not supported", span=place)


def _expression(tokens: list[Token], index: int, sql: str) -> Any:
    """sqlglot's tree of an expression that is all that is left."""
    if index >= len(tokens):
        raise ParseError("expression expected at end of input", span=span_of_token(tokens[-1]))
    like = tokens[index]
    select = Token(TokenType.SELECT, "SELECT", like.line, like.col, like.start, like.end)
    found = _tree([select, *tokens[index:]], sql)
    if len(found.expressions) != 1 or found.args.get("from_") is not None:
        raise ParseError("one expression expected", span=span_of_token(like))
    return found.expressions[0]


def _column_definition(tokens: list[Token], index: int, sql: str) -> Any:
    """sqlglot's tree of a column's name, type and constraints, which it has for CREATE TABLE."""
    definitions = _definitions(tokens, index, sql)
    if len(definitions) != 1 or definitions[0].key != "columndef":
        raise ParseError("one column expected", span=span_of_token(tokens[index]))
    return definitions[0]


def _table_constraint(tokens: list[Token], index: int, sql: str) -> Any:
    """sqlglot's tree of a constraint behind a table's columns."""
    definitions = _definitions(tokens, index, sql)
    if len(definitions) != 1 or definitions[0].key == "columndef":
        raise ParseError("one constraint expected", span=span_of_token(tokens[index]))
    return definitions[0]


def _definitions(tokens: list[Token], index: int, sql: str) -> list[Any]:
    """sqlglot's trees of what stands between a table's parentheses."""
    if index >= len(tokens):
        raise ParseError("column expected at end of input", span=span_of_token(tokens[-1]))
    like = tokens[index]
    around = [
        Token(kind, text, like.line, like.col, like.start, like.end)
        for kind, text in (
            (TokenType.CREATE, "CREATE"),
            (TokenType.TABLE, "TABLE"),
            (TokenType.VAR, "t"),
            (TokenType.L_PAREN, "("),
            (TokenType.R_PAREN, ")"),
        )
    ]
    plain_ones = [
        Token(token.token_type, plain(token.text), token.line, token.col, token.start, token.end)
        for token in tokens[index:]
    ]
    rewritten, _ = rewrite([*around[:4], *plain_ones, around[4]], sql)
    found: list[Any] = _tree(rewritten, sql).this.expressions
    return found


def _explain(tokens: list[Token], sql: str) -> Command:
    mode, index = "plain", 1
    word = word_of(tokens[1]) if len(tokens) > 1 else ""
    if word in ("analyze", "analyse", "memory"):
        mode, index = ("analyze" if word != "memory" else "memory"), 2
    if index >= len(tokens):
        raise ParseError("statement expected after EXPLAIN", span=span_of_token(tokens[-1]))
    if word_of(tokens[index]) == "(" and index + 1 < len(tokens) and word_of(tokens[index + 1]) == FUNCTION + "format":
        raise NotSupportedError("EXPLAIN (FORMAT ...) is not supported", span=span_of_token(tokens[index + 1]))
    return Command("explain", {"mode": mode, "statement": statement(tokens[index:], sql)})


def _describe(tokens: list[Token], sql: str) -> Command:
    if len(tokens) == 1:
        return Command("show_tables")
    if word_of(tokens[1]) in _QUERY_STARTS:
        return Command("describe", {"statement": statement(tokens[1:], sql)})
    name, end = _dotted(tokens, 1, "table")
    _expect_end(tokens, end)
    return Command("describe", {"table": name}, {"table": _place(tokens, 1, end)})


def _show(tokens: list[Token], sql: str) -> Command:
    words = [word_of(token) for token in tokens[1:]]
    if words == ["tables"]:
        return Command("show_tables")
    if words in (["all", "tables"], ["databases"], ["schemas"]):
        return Command("listing", {"name": f"show {' '.join(words)}", "arguments": []})
    if words[:2] in (["tables", "from"], ["tables", "in"]) and len(words) > 2:
        _expect_end(tokens, 4)
        parts = {"name": "show tables from", "schema": _name_at(tokens, 3, "name of a schema")}
        return Command("listing", parts, {"name": span_of_token(tokens[3])})
    name, end = _dotted(tokens, 1, "name")
    _expect_end(tokens, end)
    return Command("show", {"name": name}, {"name": _place(tokens, 1, end)})


_PRAGMAS = frozenset("table_info show_tables database_list version".split())


def _pragma(tokens: list[Token], sql: str) -> Command:
    """PRAGMA table_info('t'), and those without an argument; what sets something is SET here."""
    name = _name_at(tokens, 1, "name of a pragma").lower()
    if name not in _PRAGMAS:
        raise NotSupportedError(
            f"PRAGMA is not supported: {name}",
            span=span_of_token(tokens[0]),
            hint=f"there are: {', '.join(sorted(_PRAGMAS))}; SET changes settings",
        )
    if name == "show_tables":
        _expect_end(tokens, 2)
        return Command("show_tables")
    arguments, end, spans = [], 2, {"name": span_of_token(tokens[1])}
    if end < len(tokens) and word_of(tokens[end]) == "(":
        if end + 1 < len(tokens) and tokens[end + 1].token_type == TokenType.STRING:
            argument, end = tokens[end + 1].text, end + 2
        else:
            argument, end = _dotted(tokens, end + 1, "table")
        arguments.append(argument)
        spans["name"] = _place(tokens, 3, end)
        if end >= len(tokens) or word_of(tokens[end]) != ")":
            raise ParseError(") expected", span=span_of_token(tokens[min(end, len(tokens) - 1)]))
        end += 1
    _expect_end(tokens, end)
    return Command("listing", {"name": f"pragma_{name}", "arguments": arguments}, spans)


def _set(tokens: list[Token], sql: str) -> Command:
    index = 1
    scope = word_of(tokens[1]) if len(tokens) > 1 else ""
    if scope in ("variable", "schema"):
        raise NotSupportedError(f"SET {scope.upper()} is not supported", span=span_of_token(tokens[1]))
    if scope in ("session", "global", "local") and len(tokens) > 3 and word_of(tokens[2]) not in ("=", "to"):
        index = 2
    name = _name_at(tokens, index, "name of a setting")
    if index + 1 >= len(tokens) or word_of(tokens[index + 1]) not in ("=", "to"):
        raise ParseError(
            "= expected after the name of a setting", span=span_of_token(tokens[min(index + 1, len(tokens) - 1)])
        )
    rest = tokens[index + 2 :]
    if not rest:
        raise ParseError("value expected after =", span=span_of_token(tokens[-1]))
    if len(rest) == 1 and word_of(rest[0]) == "default":
        return Command("reset", {"name": name.lower()}, {"name": span_of_token(tokens[index])})
    value = _setting_value(rest)
    spans = {"name": span_of_token(tokens[index]), "value": (rest[0].start, rest[-1].end + 1)}
    return Command("set", {"name": name.lower(), "value": value}, spans)


def _setting_value(tokens: list[Token]) -> str | int | float | bool:
    """A string, a number, TRUE / FALSE, or a bare word such as `auto` or `gpu!`."""
    first = tokens[0]
    if first.token_type == TokenType.STRING and len(tokens) == 1:
        return first.text
    text = "".join(plain(token.text) for token in tokens)
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    if len(tokens) > 2:
        raise ParseError("one value expected", span=(first.start, tokens[-1].end + 1))
    return text


def _reset(tokens: list[Token], sql: str) -> Command:
    index = 2 if len(tokens) > 2 and word_of(tokens[1]) in ("session", "global", "local") else 1
    name = _name_at(tokens, index, "name of a setting")
    _expect_end(tokens, index + 1)
    return Command("reset", {"name": name.lower()}, {"name": span_of_token(tokens[index])})


def _transaction(tokens: list[Token], sql: str) -> Command:
    """BEGIN | START | COMMIT | END | ROLLBACK | ABORT [TRANSACTION | WORK]; the first two with READ ONLY or READ WRITE."""
    words = [word_of(token) for token in tokens]
    name = {"begin": "begin", "start": "begin", "commit": "commit", "end": "commit"}.get(words[0], "rollback")
    index = 2 if words[1:2] in (["transaction"], ["work"]) else 1
    parts: dict[str, Any] = {}
    if name == "begin" and words[index : index + 2] in (["read", "only"], ["read", "write"]):
        if words[index + 1] == "only":
            parts["read_only"] = True
        index += 2
    _expect_end(tokens, index)
    return Command(name, parts)


def _copy(tokens: list[Token], sql: str) -> Command:
    """COPY table [(columns)] FROM paths [options]; COPY table | (query) TO path [options]."""
    if len(tokens) < 4:
        raise ParseError("COPY wants a table or a query, FROM or TO, and a file", span=span_of_token(tokens[-1]))
    parts: dict[str, Any] = {}
    spans: dict[str, tuple[int, int]] = {}
    index = 1
    if word_of(tokens[1]) == "(":
        end = closing_of(tokens, 1)
        parts["statement"] = statement(tokens[2:end], sql)
        index = end + 1
    else:
        parts["table"], index = _dotted(tokens, 1, "table")
        spans["table"] = _place(tokens, 1, index)
        if index < len(tokens) and word_of(tokens[index]) == "(":
            end = closing_of(tokens, index)
            parts["columns"] = [
                (plain(token.text), span_of_token(token)) for token in tokens[index + 1 : end] if word_of(token) != ","
            ]
            index = end + 1
    direction = word_of(tokens[index]) if index < len(tokens) else ""
    if direction not in ("from", "to") or (direction == "from" and "table" not in parts):
        at = tokens[min(index, len(tokens) - 1)]
        raise ParseError("FROM or TO expected in COPY", span=span_of_token(at))
    parts["paths"], index = _paths(tokens, index + 1)
    spans["paths"] = span_of_token(tokens[index - 1])
    parts["options"] = _copy_options(tokens, index)
    return Command(f"copy_{direction}", parts, spans)


def _paths(tokens: list[Token], index: int) -> tuple[list[str], int]:
    """'f', or a list ['f', 'g']."""
    if index < len(tokens) and tokens[index].token_type == TokenType.STRING:
        return [tokens[index].text], index + 1
    if index < len(tokens) and word_of(tokens[index]) == "[":
        end = next((i for i in range(index, len(tokens)) if word_of(tokens[i]) == "]"), None)
        if end is not None:
            return [token.text for token in tokens[index:end] if token.token_type == TokenType.STRING], end + 1
    raise ParseError("file name expected, in single quotes", span=span_of_token(tokens[min(index, len(tokens) - 1)]))


def _copy_options(tokens: list[Token], index: int) -> dict[str, Any]:
    """[WITH] (name value, ...), or name value pairs without parentheses; a name alone is TRUE."""
    if index < len(tokens) and word_of(tokens[index]) == "with":
        index += 1
    rest = tokens[index:]
    if rest and word_of(rest[0]) == "(":
        end = closing_of(rest, 0)
        _expect_end(rest, end + 1)
        rest = rest[1:end]
        groups = [piece for _, piece in split_at(rest, {","})]
    else:
        groups = [rest[position : position + 2] for position in range(0, len(rest), 2)]
    options: dict[str, Any] = {}
    for group in groups:
        if group:
            name = plain(group[0].text).lower()
            values = [token for token in group[1:] if word_of(token) != "="]
            options[name] = _option_value(values) if values else True
    return options


def _option_value(tokens: list[Token]) -> Any:
    """One option's value; (a, b) and [a, b] are lists, 'k': v in braces a dictionary."""
    opening = word_of(tokens[0])
    if opening in ("(", "[", "{"):
        pieces = [piece for _, piece in split_at(tokens[1:-1], {","}) if piece]
        if opening == "{":
            return {piece[0].text: _setting_value(piece[2:]) for piece in pieces if len(piece) > 2}
        return [_setting_value(piece) for piece in pieces]
    return _setting_value(tokens)


_COMMANDS = {
    "create": _create,
    "drop": _drop,
    "alter": _alter,
    "truncate": _truncate,
    "explain": _explain,
    "describe": _describe,
    "desc": _describe,
    "show": _show,
    "pragma": _pragma,
    "set": _set,
    "reset": _reset,
    "begin": _transaction,
    "start": _transaction,
    "commit": _transaction,
    "end": _transaction,
    "rollback": _transaction,
    "abort": _transaction,
    "copy": _copy,
}
