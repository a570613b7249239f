"""What a result column is called: the dialect prints an expression in a form of its own, and the column takes that name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gpudb.errors import NotSupportedError
from gpudb.planner.bind.casts import type_words
from gpudb.planner.bind.context import span_of
from gpudb.planner.bind.keywords import KEYWORDS
from gpudb.planner.bind.over import Over, end_of_frame, over
from gpudb.planner.constants import interval_type
from gpudb.planner.expressions import CURRENT, UNBOUNDED_PRECEDING
from gpudb.planner.logical import SlotName, spelling
from gpudb.planner.parse import Parsed
from gpudb.planner.tokens import INTERVAL_UNIT, PARAMETER, POSITION, plain

_SLOT = "\x00"  # encloses the number of a slot while a name is put together
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_BINARY = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "intdiv": "//",
    "mod": "%",
    "pow": "^",
    "eq": "=",
    "neq": "!=",
    "lt": "<",
    "lte": "<=",
    "gt": ">",
    "gte": ">=",
    "dpipe": "||",
    "bitwiseand": "&",
    "bitwiseor": "|",
    "bitwiseleftshift": "<<",
    "bitwiserightshift": ">>",
    "nullsafeeq": "IS NOT DISTINCT FROM",
    "nullsafeneq": "IS DISTINCT FROM",
    "glob": "~~~",
}
_PREFIX = {"neg": "-", "sqrt": "+", "bitwisenot": "~", "abs": "@"}

# Type names that are keywords print in this form; others as they were written.
_TYPES = {
    "int": "INTEGER",
    "integer": "INTEGER",
    "bigint": "BIGINT",
    "smallint": "SMALLINT",
    "real": "FLOAT",
    "float": "FLOAT",
    "double precision": "DOUBLE",
    "boolean": "BOOLEAN",
    "varchar": "VARCHAR",
    "char": "VARCHAR",
    "character": "VARCHAR",
    "character varying": "VARCHAR",
    "char varying": "VARCHAR",
    "decimal": "DECIMAL",
    "numeric": "DECIMAL",
    "dec": "DECIMAL",
    "time": "TIME",
    "time without time zone": "TIME",
    "timestamp": "TIMESTAMP",
    "timestamp without time zone": "TIMESTAMP",
    "timestamp with time zone": "TIMESTAMP WITH TIME ZONE",
    "interval": "INTERVAL",
}


def column_name(
    node: Any, parsed: Parsed, integer_division: bool = False, windows: Mapping[str, Over] | None = None
) -> str:
    """The name of a result column that has no alias: a SlotName where it shows literals.  `node` is a sqlglot tree.

    integer_division  the setting: every / is printed as // then, also where it divides floats
    windows           those of the query's WINDOW clause, by lower-case name: what they hold is printed
    """
    while node.key == "paren":
        node = node.this
    if node.key == "column":
        return str(node.name).replace(POSITION, "#")
    marked = _Printer(parsed, integer_division, windows or {}).print(node)
    if _SLOT not in marked:
        return marked
    pieces = marked.split(_SLOT)  # text and slots take turns
    parts = tuple(
        (int(piece), parsed.literals[int(piece)][0]) if position % 2 else piece for position, piece in enumerate(pieces)
    )
    return SlotName.of(parts, [value for _, value in parsed.literals])


def quoted(name: str) -> str:
    """A name in double quotes where it would not read back without."""
    name = plain(name)
    if _PLAIN_NAME.fullmatch(name) and name.lower() not in KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def string(text: str) -> str:
    """A string as SQL."""
    return "'" + text.replace("'", "''") + "'"


_QUOTED_OR_WORD = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\w+""")
_WORDS = frozenset(
    "SELECT FROM WHERE GROUP ORDER BY HAVING LIMIT OFFSET AS ON USING JOIN LEFT RIGHT FULL INNER CROSS UNION ALL DISTINCT AND"
    " OR NOT IN IS NULL VALUES WITH ASC DESC CASE WHEN THEN ELSE END CAST EXISTS BETWEEN LIKE".split()
)


_DIRECTION = re.compile(r"[\s)]*(\b(asc|desc)\b)?(\s*\bnulls\s+(first|last)\b)?", re.IGNORECASE)
FRAME_ENDS = ("UNBOUNDED PRECEDING", "{} PRECEDING", "CURRENT ROW", "{} FOLLOWING", "UNBOUNDED FOLLOWING")

OPPOSITES = {"=": "<>", "<>": "=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}

_SLICE = ("this", "expression", "step")  # its parts in a sqlglot tree


class _Printer:
    """Trees to text; one method per kind of node that is no operator."""

    def __init__(self, parsed: Parsed, integer_division: bool, windows: Mapping[str, Over]) -> None:
        self.windows = windows
        self.parsed = parsed
        self.sql = parsed.sql
        self.integer_division = integer_division

    def print(self, node: Any) -> str:
        key = node.key
        if key in _BINARY:
            return self.binary(node, _BINARY[key])
        if key in ("and", "or"):
            terms = f" {key.upper()} ".join(self.print(term) for term in chain(node))
            return f"({terms})"
        if key in _PREFIX:
            return self.prefix(node, _PREFIX[key])
        method = getattr(self, "print_" + key, None)
        if method is None:
            raise NotSupportedError(f"{describe(node)} is not supported", span=span_of(node))
        return str(method(node))

    def list(self, nodes: Any) -> str:
        return ", ".join(self.print(node) for node in nodes)

    def binary(self, node: Any, operator: str) -> str:
        if node.key == "pow":
            operator = self.power(node)
        elif node.key == "div" and self.integer_division:
            operator = "//"
        elif node.expression.key == "all":
            return f"(NOT ({self.print(node.this)} {OPPOSITES[operator]} {self.print_any(node.expression)}))"
        return f"({self.print(node.this)} {operator} {self.print(node.expression)})"

    def power(self, node: Any) -> str:
        """sqlglot reads ^ and ** alike: look at what was written between the operands."""
        left, right = span_of(node.this), span_of(node.expression)
        return "**" if left and right and "**" in self.sql[left[1] : right[0]] else "^"

    def prefix(self, node: Any, operator: str) -> str:
        if operator == "-":
            sign, number = negated_number(node)
            if number is not None:
                return sign + self.print_literal(number)
        return f"({operator}({self.print(node.this)}))"

    def print_paren(self, node: Any) -> str:
        return self.print(node.this)

    def print_column(self, node: Any) -> str:
        if node.this.key == "star":
            return self.print_star(node.this)
        parts = [node.args.get(part) for part in ("catalog", "db", "table", "this")]
        if node.name.startswith(POSITION):
            return str(node.name).replace(POSITION, "#")
        return ".".join(quoted(part.name) for part in parts if part is not None)

    def print_star(self, node: Any) -> str:
        return "*"

    def print_literal(self, node: Any) -> str:
        place = span_of(node)
        written = self.sql[place[0] : place[1]] if place else ""
        slot = self.parsed.slots.get(place[0]) if place else None
        if slot is not None and spelling(*self.parsed.literals[slot]) == written:
            return f"{_SLOT}{slot}{_SLOT}"
        if node.is_string:
            return string(node.this)
        return written if written[:1].isdigit() or written[:1] == "." else str(node.this)

    def print_rawstring(self, node: Any) -> str:
        return string(node.this)

    print_bytestring = print_rawstring

    def print_null(self, node: Any) -> str:
        return "NULL"

    def print_boolean(self, node: Any) -> str:
        return "true" if node.this else "false"

    def print_placeholder(self, node: Any) -> str:
        return "$" + str(node.this).split(PARAMETER)[0]

    def print_not(self, node: Any) -> str:
        inner = node.this
        if inner.key == "is" and not self.is_prefix_not(inner):
            return self.is_test(inner, negated=True)
        return f"(NOT {self.print(inner)})"

    def is_prefix_not(self, node: Any) -> bool:
        """Whether NOT stands before the operand (NOT a IS NULL) and not within the test (a IS NOT NULL)."""
        place = span_of(node.this)
        if place is None:
            return False
        before, parentheses = self.sql[: place[0]], 0
        leftmost = node.this
        while leftmost is not None:
            parentheses += leftmost.key == "paren"
            leftmost = leftmost.args.get("this") if hasattr(leftmost, "args") else None
            leftmost = leftmost if hasattr(leftmost, "key") else None
        return re.search(r"\bnot\s*" + r"\(\s*" * parentheses + r"$", before, re.IGNORECASE) is not None

    def print_is(self, node: Any) -> str:
        return self.is_test(node, negated=False)

    def is_test(self, node: Any, negated: bool) -> str:
        value = node.expression
        if value.key == "boolean":
            operator = "IS DISTINCT FROM" if negated else "IS NOT DISTINCT FROM"
            return f"(CAST({self.print(node.this)} AS BOOLEAN) {operator} {self.print(value)})"
        return f"({self.print(node.this)} IS {'NOT ' if negated else ''}NULL)"

    def print_like(self, node: Any, operator: str = "~~") -> str:
        negated = "!" if node.args.get("negate") else ""
        return f"({self.print(node.this)} {negated}{operator} {self.print(node.expression)})"

    def print_ilike(self, node: Any) -> str:
        return self.print_like(node, "~~*")

    def print_escape(self, node: Any) -> str:
        like = node.this
        found = f"{like.key}_escape({self.list([like.this, like.expression, node.expression])})"
        return f"(NOT {found})" if like.args.get("negate") else found

    def print_similarto(self, node: Any) -> str:
        return f"regexp_full_match({self.list([node.this, node.expression])})"

    def print_regexplike(self, node: Any) -> str:
        return f"regexp_matches({self.list([node.this, node.expression])})"

    def print_between(self, node: Any) -> str:
        low, high = self.print(node.args["low"]), self.print(node.args["high"])
        return f"({self.print(node.this)} BETWEEN {low} AND {high})"

    def print_subquery(self, node: Any) -> str:
        return f"({self.written(node.this)})"

    def print_exists(self, node: Any) -> str:
        return f"EXISTS({self.written(node.this)})"

    def print_any(self, node: Any) -> str:
        return f"ANY({self.written(node.this.this if node.this.key == 'subquery' else node.this)})"

    def print_tuple(self, node: Any) -> str:
        return f'"row"({self.list(node.expressions)})'

    def written(self, query: Any) -> str:
        """A subquery as it stands in the statement, between its parentheses."""
        place = span_of(query)
        begin = place[0] if place is not None else 0
        opening = re.compile(r"\(\s*(select|with|from|values|\()", re.IGNORECASE)
        starts = [found.start() + 1 for found in opening.finditer(self.sql, 0, begin + 8) if found.start() < begin]
        start = starts[-1] if starts else begin
        depth, end = 1, start
        for end in range(start, len(self.sql)):
            depth += {"(": 1, ")": -1}.get(self.sql[end], 0)
            if depth == 0:
                break
        pieces, at = [], start
        for offset, slot in sorted(self.parsed.slots.items()):
            spelled = spelling(*self.parsed.literals[slot]) if slot < len(self.parsed.literals) else ""
            if at <= offset < end and spelled and self.sql.startswith(spelled, offset):
                pieces += [self.sql[at:offset], f"{_SLOT}{slot}{_SLOT}"]
                at = offset + len(spelled)
        text = " ".join("".join([*pieces, self.sql[at:end]]).split())
        return _QUOTED_OR_WORD.sub(lambda word: word[0].upper() if word[0].upper() in _WORDS else word[0], text)

    def print_in(self, node: Any) -> str:
        if node.args.get("query") is not None:
            return f"({self.print(node.this)} = ANY({self.written(node.args['query'].this)}))"
        return f"({self.print(node.this)} IN ({self.list(node.expressions)}))"

    def print_case(self, node: Any) -> str:
        parts = ["CASE "]
        for branch in node.args["ifs"]:
            condition = self.print(branch.this)
            if node.this is not None:
                condition = f"({self.print(node.this)} = {condition})"
            parts.append(f"WHEN ({condition}) THEN ({self.print(branch.args['true'])})")
        default = node.args.get("default")
        parts.append(f"ELSE {self.print(default) if default is not None else 'NULL'} END")
        return " ".join(parts)

    def print_cast(self, node: Any, word: str = "CAST") -> str:
        name, arguments, _ = type_words(node.args["to"])
        shown = _TYPES.get(" ".join(name.lower().split()), name)
        if arguments and shown != "TIMESTAMP":
            shown += f"({', '.join(str(argument.this.this) for argument in arguments)})"
        return f"{word}({self.print(node.this)} AS {shown})"

    def print_trycast(self, node: Any) -> str:
        return self.print_cast(node, "TRY_CAST")

    def print_filter(self, node: Any) -> str:
        return f"{self.print(node.this)} FILTER (WHERE {self.print(node.expression.this)})"

    def print_ignorenulls(self, node: Any) -> str:
        return f"{self.print(node.this)} IGNORE NULLS"

    def print_respectnulls(self, node: Any) -> str:
        return self.print(node.this)

    def print_window(self, node: Any) -> str:
        parts = over(node, self.windows)
        inside = []
        if parts.partition:
            inside.append(f"PARTITION BY {self.list(parts.partition)}")
        if parts.order is not None:
            inside.append(f"ORDER BY {', '.join(map(self.sort_term, parts.order.expressions))}")
        if parts.spec is not None:
            inside.append(self.frame(parts.spec))
        function = re.sub(r"^count_star\(\)", "count()", self.print(node.this))
        function = re.sub(r'^"(\w+)"\(', r"\1(", function)
        function = re.sub(r"^(first|last)\(", r"\1_value(", function)
        return f"{function} OVER ({' '.join(filter(None, inside))})"

    def sort_term(self, term: Any) -> str:
        """With ASC, DESC and NULLS as they were written; sqlglot's tree has defaults in their place."""
        place = span_of(term.this)
        written = _DIRECTION.match(self.sql, place[1]) if place else None
        words = written[0].strip(" )\t\n").upper().split() if written else []
        if not words:  # behind an expression that ends with a keyword: what is no default was written
            words = ["DESC"] * bool(term.args.get("desc")) + ["NULLS FIRST"] * bool(term.args.get("nulls_first"))
        return " ".join([self.print(term.this), *words])

    def frame(self, spec: Any) -> str:
        """A frame, "" for the one that a window has anyway."""
        ends = []
        for which in ("start", "end"):
            side, offset = end_of_frame(spec, which) if spec.args.get(which) is not None else (CURRENT, None)
            ends.append(FRAME_ENDS[side].format("" if offset is None else self.print(offset)))
        exclude = spec.args.get("exclude")
        exclude = "" if exclude is None else str(exclude.name or exclude.this).upper()
        excluded = "" if exclude in ("", "NO OTHERS") else f" EXCLUDE {exclude}"
        unit = str(spec.args["kind"]).upper()
        if not excluded and [unit, *ends] == ["RANGE", FRAME_ENDS[UNBOUNDED_PRECEDING], FRAME_ENDS[CURRENT]]:
            return ""
        return f"{unit} BETWEEN {ends[0]} AND {ends[1]}{excluded}"

    def print_withingroup(self, node: Any) -> str:
        call = node.this
        terms = [
            f"{self.print(term.this)}{' DESC' if term.args.get('desc') else ''}" for term in node.expression.expressions
        ]
        order = f"ORDER BY {', '.join(terms)}"
        name = plain(str(call.this)).lower()
        if not call.expressions:
            return f"{quoted(name)}() WITHIN GROUP ( {order})"
        return f"{quoted(name.replace('percentile', 'quantile'))}({self.list(call.expressions)} {order})"

    def print_distinct(self, node: Any) -> str:
        return "DISTINCT " + self.list(node.expressions)

    def print_order(self, node: Any) -> str:
        return f"{self.print(node.this)} ORDER BY {', '.join(map(self.sort_term, node.expressions))}"

    def print_attimezone(self, node: Any) -> str:
        return f"timezone({self.print(node.args['zone'])}, {self.print(node.this)})"

    def print_currentdate(self, node: Any) -> str:
        return "current_date"

    def print_currenttimestamp(self, node: Any) -> str:
        return "current_timestamp"

    def print_array(self, node: Any) -> str:
        return f"list_value({self.list(node.expressions)})"

    def print_bracket(self, node: Any) -> str:
        return f"{self.print(node.this)}[{self.list(node.expressions)}]"

    def print_slice(self, node: Any) -> str:
        begin, end, step = ("" if part is None else self.print(part) for part in map(node.args.get, _SLICE))
        return f"{begin}:{end}" if not step else f"{begin}:{end or '-'}:{step}"

    def print_anonymous(self, node: Any) -> str:
        name = str(node.this)
        arguments = node.expressions
        if name.startswith(INTERVAL_UNIT):
            unit = name.removeprefix(INTERVAL_UNIT)
            operand = f"CAST({self.print(arguments[0])} AS DOUBLE)"
            type_ = interval_type(unit)
            return f"to_{unit}(CAST(trunc({operand}) AS {type_}))" if type_ else f"to_{unit}({operand})"
        name = plain(name).lower()
        if name == "count" and (not arguments or arguments[0].key == "star"):
            return "count_star()"
        if name in ("grouping", "grouping_id"):
            return f"GROUPING({self.list(arguments)})"
        if name in ("coalesce", "ifnull"):
            return f"COALESCE({self.list(arguments)})"
        if name == "date" and len(arguments) == 1:
            return f"CAST({self.print(arguments[0])} AS DATE)"
        return f"{quoted(name)}({self.list(arguments)})"


def chain(node: Any) -> list[Any]:
    """The terms of a AND (b AND c), or of OR or ||, without recursion: chains may be thousands long."""
    terms, stack = [], [node]
    while stack:
        part = stack.pop()
        inner = part
        while inner.key == "paren":
            inner = inner.this
        if inner.key == node.key:
            part = inner
            stack += [part.expression, part.this]
        else:
            terms.append(part)
    return terms


def negated_number(node: Any) -> tuple[str, Any | None]:
    """-1, - -1 and -(1) print as numbers: the sign, and the literal or None."""
    sign, inner = "-", node.this
    while inner.key in ("paren", "neg"):
        if inner.key == "neg":
            sign = "" if sign else "-"
        inner = inner.this
    if inner.key != "literal" or inner.is_string:
        return sign, None
    return sign, inner


def describe(node: Any) -> str:
    """What a construct is called in an error."""
    return {
        "window": "window function (OVER)",
        "subquery": "scalar subquery",
        "exists": "EXISTS",
        "bracket": "indexing with [ ]",
        "array": "list",
        "struct": "struct",
        "lambda": "lambda",
        "tuple": "row value",
        "any": "ANY",
        "all": "ALL",
        "collate": "COLLATE",
        "jsonextract": "-> operator",
        "jsonextractscalar": "->> operator",
        "columns": "COLUMNS",
        "interval": "INTERVAL in this form",
        "star": "* in this place",
        "withingroup": "WITHIN GROUP",
        "ignorenulls": "IGNORE NULLS",
        "map": "map",
        "currenttime": "CURRENT_TIME",
        "nextvaluefor": "nextval",
        "dot": "field access with a dot",
        "select": "subquery",
    }.get(node.key, node.key.upper())
