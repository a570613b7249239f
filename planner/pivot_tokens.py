"""PIVOT and UNPIVOT as sqlglot reads them: what its grammar has no room for is put into calls of a mark, before it is read.

* an aggregate that is more than one call, `USING sum(v) + 1`, and a condition to pivot by, `ON k > 1`: VALUE(...)
* a value with an alias in the statement's form, `ON k IN (1 AS one)`: ALIAS(1, one)
* `PIVOT ... ORDER BY ... LIMIT ...`: SELECT * FROM (PIVOT ...) ORDER BY ... LIMIT ...

`value_of` and `alias_of` undo it.
"""

from __future__ import annotations

from typing import Any

from sqlglot.tokens import Token, TokenType

from gpudb.planner.tokens import plain, word_of

VALUE = "\x0bvalue"
ALIAS = "\x0balias"

_AFTER = ("order by", "limit", "offset")
_PARTS = ("using", "group by", *_AFTER)
_CONDITIONS = frozenset("not = == < <= > >= <> != and or between like ilike is".split())
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_BEFORE_STATEMENT = frozenset(("", "(", "as", ")", "explain", "analyze", "describe", "desc", "summarize"))


def pivots(tokens: list[Token]) -> list[Token]:
    """The tokens of a statement, before any other change to them."""
    words = [word_of(token) for token in tokens]
    if "pivot" not in words and "unpivot" not in words:
        return tokens
    return _Pivots(tokens, words).run()


class _Pivots:
    """One statement: what to put before and behind which token."""

    def __init__(self, tokens: list[Token], words: list[str]) -> None:
        self.tokens = tokens
        self.words = words
        self.before: dict[int, list[Token]] = {}
        self.behind: dict[int, list[Token]] = {}
        self.instead: dict[int, TokenType] = {}

    def run(self) -> list[Token]:
        for at, word in enumerate(self.words):
            if word not in ("pivot", "unpivot") or at + 1 >= len(self.words):
                continue
            clause = self.words[at + 1] == "(" and "for" in self._at_depth(at + 2, self._closing(at + 1))
            if clause and word == "pivot":
                end = self._place("for", at + 2, self._closing(at + 1))
                for start, stop in self._items(at + 2, end):
                    self._aggregate(start, stop)
            elif not clause and (self.words[at - 1] if at else "") in _BEFORE_STATEMENT:
                self._statement(at)
        found: list[Token] = []
        for at, token in enumerate(self.tokens):
            if at in self.instead:
                token = self._like(token, self.instead[at], ",")
            found += [*self.before.get(at, ()), token, *self.behind.get(at, ())]
        return found

    # --- Places ------------------------------------------------------------------------------------------------------

    def _closing(self, at: int) -> int:
        """The place of the parenthesis that closes the one there; the end where none does."""
        depth = 0
        for place in range(at, len(self.words)):
            depth += (self.words[place] in _OPENING) - (self.words[place] in _CLOSING)
            if depth == 0:
                return place
        return len(self.words)

    def _at_depth(self, start: int, stop: int) -> dict[str, int]:
        """Words that stand in no parentheses from one place to another, each with its first place."""
        found: dict[str, int] = {}
        at = start
        while at < stop:
            if self.words[at] in _OPENING:
                at = self._closing(at)
            elif self.words[at]:
                found.setdefault(self.words[at], at)
            at += 1
        return found

    def _place(self, word: str, start: int, stop: int) -> int:
        return self._at_depth(start, stop).get(word, stop)

    def _items(self, start: int, stop: int) -> list[tuple[int, int]]:
        """(start, end) of what commas divide."""
        items, at = [], start
        while at < stop:
            end = self._place(",", at, stop)
            items.append((at, end))
            at = end + 1
        return items

    # --- Changes -----------------------------------------------------------------------------------------------------

    @staticmethod
    def _like(token: Token, kind: TokenType, text: str) -> Token:
        return Token(kind, text, token.line, token.col, token.start, token.end)

    def _call(self, name: str, start: int, stop: int) -> None:
        """name(what stands from one place to another)."""
        first, last = self.tokens[start], self.tokens[stop - 1]
        opening = [self._like(first, TokenType.VAR, name), self._like(first, TokenType.L_PAREN, "(")]
        self.before.setdefault(start, []).extend(opening)
        self.behind.setdefault(stop - 1, []).insert(0, self._like(last, TokenType.R_PAREN, ")"))

    def _statement(self, at: int) -> None:
        words, depth, stop = self.words, 0, len(self.words)
        for place in range(at, len(words)):
            depth += (words[place] in _OPENING) - (words[place] in _CLOSING)
            if depth < 0:
                stop = place
                break
        there = self._at_depth(at + 1, stop)
        parts = {part: there.get(part, stop) for part in _PARTS}
        end = min(parts[part] for part in _AFTER)
        if words[at] == "pivot" and "on" in there:
            for start, last in self._items(there["on"] + 1, min(parts.values())):
                self._pivoted(start, last)
            if parts["using"] < end:
                for start, last in self._items(parts["using"] + 1, min(parts["group by"], end)):
                    self._aggregate(start, last)
        stored = at > 0 and words[at - 1] == "as"  # CREATE TABLE ... AS PIVOT
        if at + 1 < end < stop or stored:
            first, last_token = self.tokens[at], self.tokens[end - 1]
            select = [
                (TokenType.SELECT, "SELECT"),
                (TokenType.STAR, "*"),
                (TokenType.FROM, "FROM"),
                (TokenType.L_PAREN, "("),
            ]
            self.before.setdefault(at, []).extend(self._like(first, kind, text) for kind, text in select)
            self.behind.setdefault(end - 1, []).append(self._like(last_token, TokenType.R_PAREN, ")"))

    def _aggregate(self, start: int, stop: int) -> None:
        """An aggregate, perhaps with an alias."""
        if start >= stop:
            return
        alias = self._place("as", start, stop)
        one_call = (
            start + 1 < stop and self.words[start + 1] == "(" and self._closing(start + 1) + 1 >= min(alias, stop - 1)
        )
        if not one_call or (alias == stop and self._closing(start + 1) + 1 < stop and self.words[stop - 1] in _CLOSING):
            self._call(VALUE, start, alias)

    def _pivoted(self, start: int, stop: int) -> None:
        """What is pivoted by, perhaps with its values."""
        there = self._at_depth(start, stop)
        if there.keys() & _CONDITIONS:
            self._call(VALUE, start, stop)
            return
        at = there.get("in", stop) + 1
        if at >= stop or self.words[at] != "(":
            return
        for first, last in self._items(at + 1, self._closing(at)):
            alias = self._place("as", first, last)
            if alias + 1 < last:
                self._call(ALIAS, first, last)
                self.instead[alias] = TokenType.COMMA


def value_of(node: Any) -> Any:
    """What stands in VALUE(...); any other tree as it is."""
    marked = node.key == "anonymous" and plain(str(node.this)) == VALUE
    return node.expressions[0] if marked else node


def alias_of(node: Any) -> tuple[Any, str]:
    """(value, alias) of ALIAS(...) or of sqlglot's own tree of a value with an alias; '' without one."""
    if node.key in ("pivotalias", "alias"):
        return node.this, plain(node.args["alias"].name)
    if node.key == "anonymous" and plain(str(node.this)) == ALIAS:
        return node.expressions[0], plain(node.expressions[1].name)
    return node, ""
