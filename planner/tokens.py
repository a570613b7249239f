"""Tokens, rewritten so that sqlglot's tree keeps what was written; the only file that knows sqlglot's tokens.

sqlglot's parser turns functions and types into its own classes and forgets their spelling and places, and its compiled
classes cannot be subclassed.  So the tokens are changed before it sees them; the binder undoes it with `plain`:

* a function's name gets the prefix FUNCTION, which no built-in has, so every call becomes an `Anonymous` node;
* a type's name becomes one word TYPE + start + TYPE + end + TYPE + text, so every type becomes a user-defined one;
* `DATE '...'` becomes a call of its type's word, which `typed_literals` turns into CAST('...' AS DATE) afterwards, and
  `DECIMAL(5, 2) '...'` becomes such a cast at once; `INTERVAL 3 DAY` a call of INTERVAL_UNIT + "day";
* `EXTRACT(x FROM y)`, `SUBSTRING(x FROM y FOR z)`, `POSITION(x IN y)`, `TRIM(BOTH x FROM y)` and `OVERLAY(x PLACING y FROM z)`
  become plain calls;
* `SELECT * EXCEPT SELECT ...`: the word gets a mark, since sqlglot would read EXCLUDE;
* `GROUPS` of a window's frame becomes a ROWS token, the only one besides RANGE that sqlglot takes there, with its text;
* `row <`, which sqlglot takes for the start of a type, keeps `row` as a plain name;
* `#2` becomes the name POSITION + "2";
* unary plus, which sqlglot drops, becomes its `|/`; parameters carry their offset.

Past 600 lines since one pass from left to right does all of it.
"""

from __future__ import annotations

import re
from typing import Any

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import SqlglotError
from sqlglot.expressions import Anonymous, Cast, DataType, DType
from sqlglot.tokens import Token, TokenType

from gpudb.errors import NotSupportedError, ParseError
from gpudb.planner.parse import hide_parameters
from gpudb.planner.type_names import KNOWN_TYPES, TYPE_NAMES
from gpudb.record import record

FUNCTION = "\x01"
TYPE = "\x03"
INTERVAL_UNIT = "\x04"
PARAMETER = "\x05"
SET_OPERATION = "\x06"
POSITION = "\x07"

DIALECT = DuckDB()
DIALECT.INDEX_OFFSET = 0  # x[1] stays as written, with its place: sqlglot would count from 0

# Words that may stand before "(" without being a function's name.
_NOT_FUNCTIONS = frozenset(
    """all and any anti as asof between by case cast columns copy create cross cube cycle distinct else end escape
    except excluded exists explain extract filter for from full glob group having ilike in inner insert intersect
    interval into is isnull join lateral like limit materialized natural not notnull nulls offset on or order outer
    over overlay partition percent pivot position primary qualify repeatable returning rollup rows select semi set
    sets similar some substring table then to trim try_cast union unique unpivot update using values when where
    window with within key references check default to""".split()
)

# What may follow the star of SELECT *.
_STAR_WORDS = frozenset("exclude except replace rename".split())

# After these a sign is unary.
_BEFORE_OPERAND = frozenset(
    """( [ , = == != <> < <= > >= + - * / // % || ^ ** & | << >> :: ~ !~ ~~ !~~ and or not select where then else when
    between like ilike in by having on limit offset returning case distinct values escape""".split()
) | {"order by", "group by"}

# No comma may follow these; what stands before a list has no empty first item.
_BEFORE_FIRST_OF_A_LIST = frozenset(
    [*"( [ { , . :: select distinct from where having in limit offset with".split(), "group by", "order by"]
)

_OPERATORS = frozenset("= == != <> < <= > >= + - * / // % || ^ ** & | << >> and or".split())

# What may stand before a string as its type: INTEGER '7', DOUBLE PRECISION '1.5', DECIMAL(5, 2) '1.25'.
_LITERAL_TYPES = frozenset({*TYPE_NAMES, *KNOWN_TYPES, "decimal", "numeric", "dec"})
_LITERAL_TYPE_STARTS = _LITERAL_TYPES | {"character", "timestamp with time zone", "time with time zone"}

# Words for which `_Rewriter.step` may do something, besides "... TIME ZONE", before "(" and in column definitions.
_REWRITTEN = _LITERAL_TYPE_STARTS | frozenset("( ) ? :: as interval + . # groups except".split())

_NESTED_TYPES = frozenset((*DuckDB.Parser.NESTED_TYPE_TOKENS, TokenType.STRUCT, TokenType.ARRAY, TokenType.MAP))

INTERVAL_UNITS = {
    name: unit
    for unit, names in {
        "years": "year years",
        "quarters": "quarter quarters",
        "months": "month months",
        "weeks": "week weeks",
        "days": "day days",
        "hours": "hour hours",
        "minutes": "minute minutes",
        "seconds": "second seconds",
        "milliseconds": "millisecond milliseconds",
        "microseconds": "microsecond microseconds",
        "decades": "decade decades",
        "centuries": "century centuries",
        "millennia": "millennium millennia",
    }.items()
    for name in names.split()
}

# EXTRACT's parts that are keywords print in this form; others print as they were written.
_EXTRACT_PARTS = {
    name: part
    for part, names in {
        "YEAR": "year years",
        "MONTH": "month months",
        "DAY": "day days",
        "HOUR": "hour hours",
        "MINUTE": "minute minutes",
        "SECOND": "second seconds",
        "MILLISECONDS": "millisecond milliseconds",
        "MICROSECONDS": "microsecond microseconds",
        "WEEK": "week weeks",
        "QUARTER": "quarter quarters",
        "DECADE": "decade decades",
        "CENTURY": "century centuries",
        "MILLENNIUM": "millennium millennia",
    }.items()
    for name in names.split()
}

_RAW_STATEMENT = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(explain|show|call|execute|prepare|fetch)\b", re.I | re.S)


@record
class Depth:
    """How deep a statement nests (parentheses, CASE, runs of prefix operators) and how long its operator chains are."""

    levels: int
    chain: int
    span: tuple[int, int] | None


def plain(name: str) -> str:
    """A name without the marks that `rewrite` put on it."""
    return name.removeprefix(FUNCTION)


def tokenize(sql: str) -> list[Token]:
    """sqlglot's tokens; the trailing semicolon is left out.  More than one statement, or none, is a ParseError."""
    try:
        text = hide_parameters(sql) if "$" in sql else sql
        start = _RAW_STATEMENT.match(text)
        head: list[Token] = []
        if start is not None:  # sqlglot would take the rest of these as one string
            first, end = start.start(1), start.end(1)
            head.append(Token(TokenType.VAR, text[first:end], 1 + text.count("\n", 0, first), end, first, end - 1))
            text = text[:first] + " " * (end - first) + text[end:]
        found = head + list(DIALECT.tokenize(text))
    except SqlglotError as error:
        raise _tokenizer_error(sql, error) from None
    while found and found[-1].token_type == TokenType.SEMICOLON:
        found.pop()
    if not found:
        raise ParseError("empty statement")
    for index, token in enumerate(found):
        if token.token_type == TokenType.SEMICOLON:
            extra = found[index + 1]
            raise ParseError(
                "one statement expected, more found", span=span_of_token(extra), hint="run statements one by one"
            )
        if token.token_type == TokenType.COMMA:
            before = word_of(found[index - 1]) if index else "select"
            if before in _BEFORE_FIRST_OF_A_LIST:
                raise ParseError("syntax error at or near: ,", span=span_of_token(token))
    return found


def _tokenizer_error(sql: str, error: Exception) -> ParseError:
    """The only texts that do not tokenize end inside a string, a quoted name or a comment: find where that starts."""
    position, quote = 0, None
    index = 0
    while index < len(sql):
        character = sql[index]
        if quote is None and sql.startswith("--", index):
            index = (sql.find("\n", index) + 1) or len(sql)
            continue
        if quote is None and character in "'\"":
            position, quote = index, character
        elif character == quote:
            quote = None
        index += 1
    if quote is not None:
        what = "string" if quote == "'" else "quoted name"
        return ParseError(f"unterminated {what}", span=(position, len(sql)), hint=f"close it with {quote}")
    return ParseError(f"text is not SQL: {str(error).splitlines()[0]}")


def depth(tokens: list[Token]) -> Depth:
    """Nesting of a statement before it is parsed."""
    level = deepest = run = chain = 0
    span: tuple[int, int] | None = None
    for token in tokens:
        text = token.text.lower() if token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER) else "'"
        if text in ("(", "[", "{", "case"):
            level += 1
        elif text in (")", "]", "}", "end"):
            level = max(0, level - 1)
        if text in ("not", "-", "+", "~", "@"):
            run += 1
        elif text != "(":
            run = 0
        if text in _OPERATORS or text == "::":
            chain += 1
        if level + run > deepest:
            deepest = level + run
            span = span_of_token(token) if deepest <= 501 else span
    return Depth(deepest, chain, span)


def span_of_token(token: Token) -> tuple[int, int]:
    return token.start, token.end + 1


def _new(like: Token, token_type: TokenType, text: str) -> Token:
    """A token that stands where `like` stands."""
    return Token(token_type, text, like.line, like.col, like.start, like.end)


def _parameter_and_cast(token: Token) -> tuple[Token, ...]:
    """?:: is one token for sqlglot; here it is a parameter that is cast."""
    if token.token_type != TokenType.QDCOLON:
        return (token,)
    mark, line, end = token.start, token.line, token.end
    return (
        Token(TokenType.PLACEHOLDER, "?", line, token.col - 2, mark, mark),
        Token(TokenType.DCOLON, "::", line, token.col, mark + 1, end),
    )


def word_of(token: Token) -> str:
    """Lower-case text of a token that is not a string, a number or a quoted name; else ''."""
    if token.token_type in (TokenType.STRING, TokenType.NUMBER, TokenType.IDENTIFIER):
        return ""
    return token.text.lower()


def rewrite(tokens: list[Token], sql: str) -> tuple[list[Token], tuple[str, ...]]:
    """The tokens as the module's docstring says, and the names of the parameters in order of first use."""
    return _Rewriter(tokens, sql).run()


def typed_literals(tree: Any) -> None:
    """Put a cast where `DATE '...'` was.

    For a type's name in a cast sqlglot runs its generator, tokenizer and parser twice over: 0.07 ms each time, 0.2 the first.
    """
    for call in list(tree.find_all(Anonymous)):
        word = str(call.this)
        if word.startswith(TYPE):
            call.replace(Cast(this=call.expressions[0], to=DataType(this=DType.USERDEFINED, kind=word)))


_SAMPLES, _SAMPLED = ("tablesample", "sample"), ("rows", "percent", "%")


class _Rewriter:
    """One pass from left to right; `opened` holds what each open parenthesis belongs to."""

    def __init__(self, tokens: list[Token], sql: str) -> None:
        if any(token.token_type == TokenType.QDCOLON for token in tokens):
            tokens = [part for token in tokens for part in _parameter_and_cast(token)]
        self.tokens = tokens
        self.sql = sql
        self.position = 0
        self.output: list[Token] = []
        self.parameters: list[str] = []
        self.opened: list[str] = []
        self.closed = ""  # what the last parenthesis that was closed belongs to
        self.words = [word_of(token) for token in tokens]
        start = 0
        if self.words[0] == "explain":
            start = 2 if self.words[1:2] in (["analyze"], ["analyse"], ["memory"]) else 1
        self.defines_columns = self.words[start : start + 1] == ["create"] and "table" in self.words[start : start + 6]

    def run(self) -> tuple[list[Token], tuple[str, ...]]:
        words = self.words
        while self.position < len(words):
            word = words[self.position]
            # Most words stay what they are: step() costs 2 us each, of 1 ms that a short statement takes to parse.
            following = self.peek()
            if word in _REWRITTEN or word.endswith("zone") or following in ("(", "<") or self.defines_columns:
                self.step()
            else:
                self.output.append(self.tokens[self.position])
                self.position += 1
        return self.output, tuple(self.parameters)

    def peek(self, ahead: int = 1) -> str:
        """Lower-case text of a token ahead, '' at the end."""
        index = self.position + ahead
        return self.words[index] if index < len(self.words) else ""

    def kind(self, ahead: int = 1) -> TokenType | None:
        index = self.position + ahead
        return self.tokens[index].token_type if index < len(self.tokens) else None

    def step(self) -> None:
        token, word = self.tokens[self.position], self.words[self.position]
        if word == "(":
            self.opened.append(self.owner())
        elif word == ")" and self.opened:
            self.closed = self.opened.pop()
        if word == "?":
            self.parameter(token)
        elif word == "::" or (word == "as" and self.opened and self.opened[-1] == "cast"):
            self.output.append(token)
            self.position += 1
            self.type_name()
        elif self.starts_column_definition(word):
            self.column_definition()
        elif (
            word == "interval"
            and self.interval(token)
            or " ".join(word.split()) in _LITERAL_TYPE_STARTS
            and self.typed_literal()
        ):
            pass
        elif word == "+" and self.is_prefix():
            self.output.append(_new(token, TokenType.PIPE_SLASH, "+"))
            self.position += 1
        elif word == "." and self.leading_point(token):
            pass
        elif word == "#" and self.kind() == TokenType.NUMBER and self.is_prefix():
            number = self.tokens[self.position + 1]
            marked = POSITION + number.text
            self.output.append(Token(TokenType.VAR, marked, token.line, number.col, token.start, number.end))
            self.position += 2
        elif word == "groups" and self.is_frame_unit():
            self.output.append(_new(token, TokenType.ROWS, token.text))
            self.position += 1
        elif word in _SAMPLES and self.kind() == TokenType.L_PAREN and self.peek(3) in _SAMPLED:
            self.output += [token, *self.tokens[self.position + 2 : self.position + 4]]  # (10 ROWS) without parentheses
            self.position += 5
        elif word == "except" and self.is_set_operation():
            self.output.append(_new(token, TokenType.EXCEPT, SET_OPERATION + token.text))
            self.position += 1
        elif self.peek() == "<" and token.token_type in _NESTED_TYPES:  # a column: DuckDB has no row<type>
            self.output.append(_new(token, TokenType.VAR, token.text))
            self.position += 1
        elif self.kind() == TokenType.L_PAREN and word in _SPECIAL_FORMS:
            self.special_form(word)
        elif self.kind() == TokenType.L_PAREN and self.is_function(word, token):
            self.output.append(_new(token, TokenType.VAR, FUNCTION + token.text))
            self.position += 1
        else:
            self.output.append(token)
            self.position += 1

    def owner(self) -> str:
        """What the parenthesis at this position belongs to."""
        before = self.output[-1] if self.output else None
        word = word_of(before) if before else ""
        if word in ("cast", "try_cast"):
            return "cast"
        if word in _STAR_WORDS:  # marked where they are functions
            return "star"
        if word in ("over", "as"):  # AS of the WINDOW clause; a query in such parentheses has no frame at its own level
            return "window"
        depth_one = not self.opened and self.defines_columns and "as" not in {word_of(token) for token in self.output}
        named = before is not None and (before.token_type == TokenType.IDENTIFIER or word not in ("", "as"))
        return "columns" if depth_one and named else ""

    def is_prefix(self) -> bool:
        return not self.output or word_of(self.output[-1]) in _BEFORE_OPERAND

    def leading_point(self, token: Token) -> bool:
        """`.5`: sqlglot has the point and the digits apart, and would forget where they stood."""
        if self.kind() != TokenType.NUMBER or not self.is_prefix():
            return False
        digits = self.tokens[self.position + 1]
        if digits.start != token.end + 1:
            return False
        text = "." + digits.text
        self.output.append(Token(TokenType.NUMBER, text, token.line, digits.col, token.start, digits.end))
        self.position += 2
        return True

    def is_frame_unit(self) -> bool:
        """Whether GROUPS at this position begins a window's frame, rather than being a name."""
        begins = self.peek() in ("between", "unbounded", "current") or self.peek(2) in ("preceding", "following")
        return begins and bool(self.opened) and self.opened[-1] == "window"

    def is_set_operation(self) -> bool:
        """Whether EXCEPT at this position comes between queries, rather than columns after a star."""
        starts = ("select", "from", "values", "with", "table", "all", "distinct")
        return self.peek() in starts or (self.peek() == "(" and self.peek(2) in (*starts, "("))

    def is_function(self, word: str, token: Token) -> bool:
        if not (word[:1].isalpha() or word[:1] == "_") or " " in word or word in _NOT_FUNCTIONS:
            return False
        before = word_of(self.output[-1]) if self.output else ""
        if word == "conflict" and before == "on":
            return False
        if word in _STAR_WORDS:
            # SELECT * REPLACE (...): the star stands for columns, not for a product.
            earlier = word_of(self.output[-2]) if len(self.output) > 1 else ""
            if before == "*":
                if earlier == "(" and len(self.output) > 2 and word_of(self.output[-3]) == "columns":
                    return False
                return earlier not in ("select", "returning", ",", ".", "")
            return not (before == ")" and self.closed == "star") and earlier not in _STAR_WORDS
        return True

    def parameter(self, token: Token) -> None:
        following = self.tokens[self.position + 1] if self.position + 1 < len(self.tokens) else None
        adjacent = following is not None and following.start == token.end + 1
        if following is not None and adjacent and (self.sql[token.start] == "$" or following.text.isdigit()):
            name, width = following.text, 2
        else:
            name, width = str(len(self.parameters) + 1), 1
        last = self.tokens[self.position + width - 1]
        if name not in self.parameters:
            self.parameters.append(name)
        self.output.append(_new(token, TokenType.PARAMETER, "$"))
        marked = f"{name}{PARAMETER}{token.start}{PARAMETER}{last.end + 1}"
        self.output.append(_new(last, TokenType.VAR, marked))
        self.position += width

    def type_name(self) -> None:
        """The type at this position as one word that carries its place; brackets and arguments stay as they are."""
        if self.position >= len(self.tokens):
            return
        first = self.tokens[self.position]
        if not (first.text[:1].isalpha() or first.text[:1] == "_"):
            return
        words, last = [first.text], first
        while _continues_type([word.lower() for word in words], self.peek()):
            self.position += 1
            last = self.tokens[self.position]
            words.append(last.text)
        marked = f"{TYPE}{first.start}{TYPE}{last.end + 1}{TYPE}" + "\xa0".join(words)
        self.output.append(Token(TokenType.VAR, marked, first.line, first.col, first.start, last.end))
        self.position += 1
        self.skip_precision_words(words)

    def skip_precision_words(self, words: list[str]) -> None:
        """TIMESTAMP(6) WITHOUT TIME ZONE: the words after the parenthesis say nothing new."""
        if words[0].lower() == "timestamp" and [self.peek(i) for i in range(3, 6)] == ["without", "time", "zone"]:
            self.output.extend(self.tokens[self.position : self.position + 3])
            self.position += 6

    def starts_column_definition(self, word: str) -> bool:
        if not (self.opened and self.opened[-1] == "columns" and self.output):
            return False
        if word in ("constraint", "primary", "unique", "check", "foreign", "like", "(", ")", ","):
            return False
        return word_of(self.output[-1]) in ("(", ",")

    def column_definition(self) -> None:
        self.output.append(self.tokens[self.position])
        self.position += 1
        if self.kind(0) == TokenType.IDENTIFIER or self.peek(0) not in (",", ")", ""):
            self.type_name()

    def typed_literal(self) -> bool:
        """DATE '...', DOUBLE PRECISION '...', DECIMAL(5, 2) '...': CAST('...' AS type); False where it is none."""
        token = self.tokens[self.position]
        words, ahead, last = [token.text], 1, token
        while _continues_type([word.lower() for word in words], self.peek(ahead)):
            last = self.tokens[self.position + ahead]
            words.append(last.text)
            ahead += 1
        arguments: list[Token] = []
        if self.peek(ahead) == "(":
            start = self.position + ahead
            arguments = self.tokens[start : closing_of(self.tokens, start) + 1]
            if any(one.token_type not in (TokenType.NUMBER, TokenType.COMMA) for one in arguments[1:-1]):
                return False
            ahead += len(arguments)
        name = " ".join(" ".join(words).lower().split())  # sqlglot has some of two words in one token
        if self.kind(ahead) != TokenType.STRING or not (name in _LITERAL_TYPES or "time zone" in name):
            return False
        value = self.tokens[self.position + ahead]
        type_word = _new(token, TokenType.VAR, f"{TYPE}{token.start}{TYPE}{last.end + 1}{TYPE}" + "\xa0".join(words))
        opening, closing = _new(token, TokenType.L_PAREN, "("), _new(token, TokenType.R_PAREN, ")")
        if arguments:
            cast, as_ = _new(token, TokenType.VAR, "CAST"), _new(token, TokenType.ALIAS, "AS")
            self.output += [cast, opening, value, as_, type_word, *arguments, closing]
        else:
            self.output += [type_word, opening, value, closing]
        self.position += ahead + 1
        return True

    def interval(self, token: Token) -> bool:
        """INTERVAL operand UNIT as a call, INTERVAL '...' as a cast; False where `interval` is a name."""
        if self.position + 1 >= len(self.tokens):
            return False
        if self.kind() == TokenType.STRING and self.peek(2) not in INTERVAL_UNITS:
            return self.typed_literal()
        end = self.position + 2
        if self.peek() == "(":
            end = closing_of(self.tokens, self.position + 1) + 1
        elif self.peek() in ("-", "$"):
            end += 1
        unit = word_of(self.tokens[end]) if end < len(self.tokens) else ""
        if unit not in INTERVAL_UNITS:
            return False
        if end + 1 < len(self.tokens) and word_of(self.tokens[end + 1]) == "to" and unit in ("year", "day", "hour"):
            raise NotSupportedError(
                "INTERVAL ... TO ... is not supported",
                span=(token.start, self.tokens[min(end + 2, len(self.tokens) - 1)].end + 1),
                hint="write INTERVAL '1 year 2 months'",
            )
        self.output.append(_new(token, TokenType.VAR, INTERVAL_UNIT + INTERVAL_UNITS[unit]))
        self.output.append(_new(token, TokenType.L_PAREN, "("))
        self.splice(self.tokens[self.position + 1 : end])
        self.output.append(_new(self.tokens[end], TokenType.R_PAREN, ")"))
        self.position = end + 1
        return True

    def splice(self, tokens: list[Token]) -> None:
        """Rewrite a stretch of tokens by itself and append it."""
        inner = _Rewriter(tokens, self.sql) if tokens else None
        if inner is not None:
            inner.parameters = self.parameters
            self.output += inner.run()[0]

    def special_form(self, word: str) -> None:
        """EXTRACT, SUBSTRING, POSITION, TRIM and OVERLAY with words between their arguments, as plain calls."""
        opening = self.position + 1
        end = closing_of(self.tokens, opening)
        pieces = split_at(self.tokens[opening + 1 : end], _SPECIAL_FORMS[word])
        token = self.tokens[self.position]
        name, arguments = _plain_call(word, token, pieces)
        self.output.append(_new(token, TokenType.VAR, FUNCTION + name))
        self.output.append(self.tokens[opening])
        for index, argument in enumerate(arguments):
            if index:
                self.output.append(_new(token, TokenType.COMMA, ","))
            self.splice(argument)
        self.output.append(self.tokens[end])
        self.position = end + 1


_SPECIAL_FORMS = {
    "extract": {"from"},
    "substring": {"from", "for"},
    "position": {"in"},
    "trim": {"from", "both", "leading", "trailing"},
    "overlay": {"placing", "from", "for"},
}


def split_at(tokens: list[Token], separators: set[str]) -> list[tuple[str, list[Token]]]:
    """Pieces between separators outside of parentheses: (the separator before it, its tokens)."""
    pieces: list[tuple[str, list[Token]]] = [("", [])]
    level = 0
    for token in tokens:
        word = word_of(token)
        level += (word in ("(", "[")) - (word in (")", "]"))
        if level == 0 and word in separators:
            pieces.append((word, []))
        else:
            pieces[-1][1].append(token)
    return pieces


def _plain_call(word: str, token: Token, pieces: list[tuple[str, list[Token]]]) -> tuple[str, list[list[Token]]]:
    """Function name and arguments of a special form; without separators the call stays as it is."""
    marks = [separator for separator, _ in pieces[1:]]
    parts = [piece for _, piece in pieces]
    if not marks:
        return token.text, parts
    if word == "extract" and marks == ["from"] and len(parts[0]) == 1:
        part = parts[0][0]
        if part.token_type != TokenType.STRING:
            part = _new(part, TokenType.STRING, _EXTRACT_PARTS.get(part.text.lower(), part.text))
        return "date_part", [[part], parts[1]]
    if word == "substring" and marks == ["for"]:
        return token.text, [parts[0], [_new(token, TokenType.NUMBER, "1")], parts[1]]
    if word == "substring" and marks in (["from"], ["from", "for"]):
        return token.text, parts
    if word == "position" and marks == ["in"]:
        return token.text, [parts[1], parts[0]]
    if word == "overlay" and marks in (["placing", "from"], ["placing", "from", "for"]):
        return token.text, parts
    if word == "trim":
        name = {"leading": "ltrim", "trailing": "rtrim"}.get(marks[0], token.text)
        if marks[0] == "from" and len(marks) == 1:
            return name, [parts[1], parts[0]] if parts[0] else [parts[1]]
        if not parts[0] and len(marks) == 1:
            return name, [parts[1]]
        if not parts[0] and marks[1:] == ["from"]:
            return name, [parts[2], parts[1]] if parts[1] else [parts[2]]
    raise ParseError(f"arguments of {word.upper()} not understood", span=span_of_token(token))


def _continues_type(words: list[str], following: str) -> bool:
    """Whether `following` belongs to the type's name: double precision, timestamp with time zone, character varying."""
    longer = [*words, following]
    return any(phrase[: len(longer)] == longer for phrase in _LONG_TYPES)


_LONG_TYPES = [
    "double precision".split(),
    "timestamp with time zone".split(),
    "timestamp without time zone".split(),
    "time with time zone".split(),
    "time without time zone".split(),
    "character varying".split(),
    "char varying".split(),
]


def closing_of(tokens: list[Token], opening: int) -> int:
    """Index of the parenthesis that closes the one at `opening`."""
    level = 0
    for index in range(opening, len(tokens)):
        level += (word_of(tokens[index]) == "(") - (word_of(tokens[index]) == ")")
        if level == 0:
            return index
    raise ParseError("parenthesis is not closed", span=span_of_token(tokens[opening]))
