"""SUMMARIZE as sqlglot reads it: `SUMMARIZE t` becomes SELECT * FROM SUMMARY((SELECT * FROM t)), wherever a query may stand."""

from __future__ import annotations

from sqlglot.tokens import Token, TokenType

from gpudb.planner.tokens import word_of

SUMMARY = "\x0bsummary"

_QUERIES = frozenset("select from values with ( pivot unpivot table".split())
_BEFORE = frozenset(("", "(", "explain", "analyze", "describe", "desc"))
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING)
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


def summaries(tokens: list[Token]) -> list[Token]:
    """The tokens of a statement, before any other change to them."""
    words = [word_of(token) for token in tokens]
    if "summarize" not in words:
        return tokens
    before = _BEFORE | {"as"} if words[0] == "create" else _BEFORE
    found: list[Token] = []
    closing: dict[int, list[Token]] = {}
    for at, token in enumerate(tokens):
        if words[at] == "summarize" and at + 1 < len(tokens) and (words[at - 1] if at else "") in before:
            is_query = words[at + 1] in _QUERIES
            if is_query or tokens[at + 1].token_type in _NAMES:
                found += _like(token, "SELECT * FROM", SUMMARY, "( (" if is_query else "( ( SELECT * FROM")
                closing.setdefault(_end(words, at), []).extend(_like(token, ") )"))
                continue
        found += closing.pop(at, ())
        found.append(token)
    return found + closing.pop(len(tokens), [])


def _end(words: list[str], start: int) -> int:
    """The place of the parenthesis around that closes, or the end."""
    depth = 0
    for at in range(start, len(words)):
        depth += (words[at] in _OPENING) - (words[at] in _CLOSING)
        if depth < 0:
            return at
    return len(words)


_KINDS = {
    "SELECT": TokenType.SELECT,
    "*": TokenType.STAR,
    "FROM": TokenType.FROM,
    "(": TokenType.L_PAREN,
    ")": TokenType.R_PAREN,
}


def _like(token: Token, *texts: str) -> list[Token]:
    return [
        Token(_KINDS.get(word, TokenType.VAR), word, token.line, token.col, token.start, token.end)
        for text in texts
        for word in text.split(" ")
    ]
