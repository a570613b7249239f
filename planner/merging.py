"""MERGE INTO, read from its tokens: sqlglot knows its frame, but few of the forms that DuckDB's actions have.

Names, conditions and values are sqlglot's trees, found by parsing parts of the statement as those of others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot.tokens import Token, TokenType

from gpudb.errors import ParseError
from gpudb.planner.parse import Command
from gpudb.planner.tokens import span_of_token, word_of
from gpudb.record import record

Parser = Callable[[list[Token], str], Any]


@record(eq=False)
class When:
    """WHEN ... THEN ...

    rows       matched, unmatched (in the target) or alone (NOT MATCHED BY SOURCE)
    condition  behind AND, or None
    action     update, delete, insert, nothing or error
    form       what an update or insert takes from the source: listed, all (by position) or name; of an insert also default
    tree       sqlglot's UPDATE or INSERT of what is listed, or the SELECT of an error's message
    """

    rows: str
    condition: Any
    action: str
    form: str
    tree: Any
    span: tuple[int, int]


def merge(tokens: list[Token], sql: str, parse: Parser) -> Command:
    """The command of MERGE INTO target USING source ON condition WHEN ...; `parse` makes sqlglot's tree of tokens.

    merge {target, source, join, whens, with, returning}: `join` is sqlglot's Join of the source, with ON or USING
    """
    start = next(k for k, token in enumerate(tokens) if word_of(token) == "merge")
    whole = _Cut(tokens, start)
    into = start + 1
    if into >= len(tokens) or word_of(tokens[into]) != "into":
        raise ParseError("INTO expected after MERGE", span=span_of_token(tokens[start]))
    using = whole.find(into, {"using"}, "USING expected in MERGE")
    condition = whole.find(using + 1, {"on", "using"}, "ON or USING expected in MERGE")
    first = whole.find(condition, {"when"}, "WHEN expected in MERGE")
    end = whole.find(first, {"returning"}, None)
    select = _like(tokens[start], TokenType.SELECT, "SELECT")
    star, from_ = _like(tokens[start], TokenType.STAR, "*"), _like(tokens[start], TokenType.FROM, "FROM")
    joined = [_like(tokens[using], TokenType.JOIN, "JOIN"), *tokens[using + 1 : first]]
    frame = parse([*tokens[:start], select, star, from_, *tokens[into + 1 : using], *joined], sql)
    target = frame.args["from_"].this
    joins = [*(target.args.get("joins") or ()), *(frame.args.get("joins") or ())]
    if len(joins) != 1:
        raise ParseError(
            "MERGE takes one source: a table, or a query in parentheses", span=span_of_token(tokens[using])
        )
    target.set("joins", None)
    whens, at = [], first
    while at < end:
        following = whole.find(at + 1, {"when"}, None, end)
        whens.append(_when(tokens[at:following], sql, parse))
        at = following
    parts: dict[str, Any] = {"target": target, "source": joins[0].this, "join": joins[0], "whens": whens}
    parts |= {"with": frame.args.get("with_"), "returning": None}
    if end < len(tokens):
        parts["returning"] = parse([_like(tokens[end], TokenType.SELECT, "SELECT"), *tokens[end + 1 :]], sql)
    return Command("merge", parts, {"target": _place(tokens[into + 1 : using])})


class _Cut:
    """Finds words outside of parentheses and CASE ... END."""

    def __init__(self, tokens: list[Token], start: int) -> None:
        self.tokens = tokens
        self.level = [0] * (len(tokens) + 1)
        level = 0
        for k in range(start, len(tokens)):
            word = word_of(tokens[k])
            level -= word in (")", "]", "}", "end")
            self.level[k] = level
            level += word in ("(", "[", "{", "case")

    def find(self, start: int, words: set[str], missing: str | None, end: int | None = None) -> int:
        """The place of the next of these words; ParseError, or the end where `missing` is None."""
        end = len(self.tokens) if end is None else end
        for k in range(start, end):
            if self.level[k] == 0 and word_of(self.tokens[k]) in words:
                return k
        if missing is not None:
            raise ParseError(missing, span=span_of_token(self.tokens[-1]))
        return end


def _when(tokens: list[Token], sql: str, parse: Parser) -> When:
    span = _place(tokens)
    cut = _Cut(tokens, 0)
    then = cut.find(0, {"then"}, "THEN expected in WHEN")
    head = [word_of(token) for token in tokens[1:then]]
    rows, taken = _rows(head, span)
    condition = None
    if taken < len(head):
        if head[taken] != "and" or taken + 1 >= len(head):
            raise ParseError("AND or THEN expected in WHEN", span=span_of_token(tokens[1 + taken]))
        condition = _expression(tokens[2 + taken : then], sql, parse)
    action = tokens[then + 1 :]
    if not action:
        raise ParseError("action expected after THEN", span=span_of_token(tokens[then]))
    words = [part for token in action for part in word_of(token).split() or [""]]
    match words:
        case ["delete"]:
            return When(rows, condition, "delete", "", None, span)
        case ["do", "nothing"]:
            return When(rows, condition, "nothing", "", None, span)
        case ["error", *_]:
            message = _expression(action[1:], sql, parse) if len(action) > 1 else None
            return When(rows, condition, "error", "", message, span)
        case ["update"] | ["update", "set", "*"]:
            return When(rows, condition, "update", "all", None, span)
        case ["update", "by", "name"] | ["insert", "by", "name"]:
            return When(rows, condition, words[0], "name", None, span)
        case ["update", "by", "position"] | ["insert", "by", "position"]:
            return When(rows, condition, words[0], "all", None, span)
        case ["update", "set", *_]:
            name = _like(action[0], TokenType.VAR, "t")
            return When(rows, condition, "update", "listed", parse([action[0], name, *action[1:]], sql), span)
        case ["insert"] | ["insert", "*"]:
            return When(rows, condition, "insert", "all", None, span)
        case ["insert", "default", "values"]:
            return When(rows, condition, "insert", "default", None, span)
        case ["insert", *_]:
            into, name = _like(action[0], TokenType.INTO, "INTO"), _like(action[0], TokenType.VAR, "t")
            return When(rows, condition, "insert", "listed", parse([action[0], into, name, *action[1:]], sql), span)
    raise ParseError("UPDATE, DELETE, INSERT, DO NOTHING or ERROR expected after THEN", span=_place(action))


def _rows(head: list[str], span: tuple[int, int]) -> tuple[str, int]:
    """(which rows, how many words say so)"""
    for rows, text in (
        ("alone", "not matched by source"),
        ("unmatched", "not matched by target"),
        ("unmatched", "not matched"),
        ("matched", "matched"),
    ):
        words = text.split()
        if head[: len(words)] == words:
            return rows, len(words)
    raise ParseError("MATCHED or NOT MATCHED expected after WHEN", span=span)


def _expression(tokens: list[Token], sql: str, parse: Parser) -> Any:
    found = parse([_like(tokens[0], TokenType.SELECT, "SELECT"), *tokens], sql)
    if len(found.expressions) != 1 or found.args.get("from_") is not None:
        raise ParseError("one expression expected", span=_place(tokens))
    return found.expressions[0]


def _like(token: Token, token_type: TokenType, text: str) -> Token:
    return Token(token_type, text, token.line, token.col, token.start, token.end)


def _place(tokens: list[Token]) -> tuple[int, int]:
    return tokens[0].start, tokens[-1].end + 1
