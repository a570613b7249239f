"""Logical plan nodes: what a query means, before any choice of how.

Every node is a frozen dataclass with `columns`, its output: a tuple of (name, SqlType).  Expressions over a node's input
name its columns by number (`expressions.Column.index`).  Nodes print stably, so that golden EXPLAINs can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, fields
from typing import Any

from gpudb.planner.expressions import AggregateCall, Expression, Literal, Span, WindowCall
from gpudb.record import record
from gpudb.types import BIGINT, SqlType

OutputColumn = tuple[str, SqlType]


class SlotName(str):
    """The name of a result column that shows literals: `(a + 5)`.

    As a string it shows the values that were bound; `with_values` gives the name for others, when the plan is used again.
    """

    parts: tuple[str | tuple[int, SqlType], ...]

    @classmethod
    def of(cls, parts: tuple[str | tuple[int, SqlType], ...], raw: Sequence[Any]) -> SlotName:
        """parts: text, and (slot, type) where the slot's value is shown; raw: value of each slot."""
        name = cls(shown_name(parts, raw))
        name.parts = parts
        return name

    def with_values(self, raw: Sequence[Any]) -> str:
        """The name with the values of another execution."""
        return shown_name(self.parts, raw)


def shown_name(parts: tuple[str | tuple[int, SqlType], ...], raw: Sequence[Any]) -> str:
    """Text, and literals as they are spelled."""
    return "".join(part if isinstance(part, str) else spelling(part[1], raw[part[0]]) for part in parts)


def spelling(type_: SqlType, value: Any) -> str:
    """A number or string literal as SQL; other spellings of the same value (007, 1_000) are part of a plan's key."""
    if type_.is_text:
        return "'" + value.replace("'", "''") + "'"
    if type_.kind == "DECIMAL":
        digits = f"{value:0{type_.precision}}"
        whole = type_.precision - type_.scale
        return f"{digits[:whole]}.{digits[whole:]}"
    return str(value)


@record
class Node:
    """Base: `columns` is the output, in order."""

    columns: tuple[OutputColumn, ...]

    def inputs(self) -> Iterator[Node]:
        """The nodes below, left to right."""
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, Node):
                yield value
            elif isinstance(value, tuple):
                for element in value:
                    if isinstance(element, Node):
                        yield element


HIDDEN = "\x08"  # begins the name of a column that no statement can name
ROW_NUMBER = -1  # the ordinal of a row's number in its table, from 0: a BIGINT that no table holds


@record
class Scan(Node):
    """Rows of a table in table order.

    table    the catalog's key of the table (lower-case name)
    ordinals which columns of the table are read, in output order; ROW_NUMBER for the row's number
    predicate  rows for which it is TRUE survive; over the scan's own output columns
    """

    table: str
    ordinals: tuple[int, ...]
    predicate: Expression | None = None


@record
class Values(Node):
    """Literal rows: VALUES, and SELECT without FROM (one row, no columns)."""

    rows: tuple[tuple[Expression, ...], ...]


@record
class Series(Node):
    """One column, BIGINT or TIMESTAMP (microseconds): start, start + step, ...; `count` rows, at least one."""

    start: int
    step: int
    count: int


@record
class Filter(Node):
    """Rows of `input` for which `predicate` is TRUE."""

    input: Node
    predicate: Expression


ASOF = {"asof": "inner", "asof left": "left"}
"""Kinds of joins with one pair a left row, and what they are once that is found."""

JoinKey = tuple[Expression, Expression, bool]
"""Over the left input, over the right input, of one type; and whether NULL equals NULL."""


@record
class Join(Node):
    """Pairs of a left and a right row whose keys are equal and for which `residual` is TRUE, in order of (left, right) row.

    kind      inner: the pairs.  left: and left rows without any, with NULLs.  semi: left rows that have a pair, once.
              anti: those that have none.  mark: every left row, and whether it has a pair.  single: as left, but the
              right input may have one row at most, else the statement fails.  asof: of each left row the nearest pair, by the
              residual's one order of an expression of each input; with equal ones the first.  asof left: and left rows
              without any, with NULLs
    residual  over left's columns, then right's
    outputs   which of left's columns, right's, and (mark) the mark behind them come out
    span      where the right input stands, for the error of `single`
    narrows   few rows come out: what is done with them above had better be done with them alone
    repeats   the right input has several rows of a key, as far as is known; else that is found when the program runs

    RIGHT is LEFT with its inputs swapped; FULL is LEFT and, behind that, the right rows of the swapped ANTI.
    """

    left: Node
    right: Node
    kind: str
    keys: tuple[JoinKey, ...]
    residual: Expression | None
    outputs: tuple[int, ...]
    span: Span | None = field(default=None, compare=False)
    narrows: bool = False
    repeats: bool = False

    @property
    def width(self) -> int:
        """Columns of both inputs together."""
        return len(self.left.columns) + len(self.right.columns)


@record
class Project(Node):
    """One expression per output column."""

    input: Node
    expressions: tuple[Expression, ...]


@record
class Aggregate(Node):
    """GROUP BY `keys` (none: one row over everything); output is keys, then aggregates.

    Groups come in order of their first row.  DISTINCT is an Aggregate with keys and no aggregates.
    """

    input: Node
    keys: tuple[Expression, ...]
    aggregates: tuple[AggregateCall, ...]


@record
class SortKey:
    """One ORDER BY term over the input's columns."""

    expression: Expression
    descending: bool
    nulls_first: bool


@record
class Sort(Node):
    """Stable sort: ties keep input order."""

    input: Node
    keys: tuple[SortKey, ...]


@record
class Window(Node):
    """The rows of `input` in their order and, behind their columns, a value for each call.

    keys   rows of equal values are a partition; none: all rows are one
    order  of the rows of a partition; rows of equal values are peers
    """

    input: Node
    keys: tuple[Expression, ...]
    order: tuple[SortKey, ...]
    calls: tuple[WindowCall, ...]


@record
class Picked(Node):
    """Rows of `left` beside values of rows of `right`: of column `picked`, in the row whose number each expression says.

    expressions  BIGINT, over left's columns: a number of a row, in the order of `right`; NULL gives NULL
    """

    left: Node
    right: Sort
    picked: int
    expressions: tuple[Expression, ...]


@record
class JoinedTexts(Node):
    """Rows of `left` beside texts of rows of `right`, one behind the other, `separator` between them; or lists of its values.

    picked  which of right's columns is joined: texts, or values of the type of the elements where the result is a LIST
    start   which of left's columns has the number of the first row, in the order of `right`; each next row of `left` goes on
            where this one ends, and the last one's end with `right`
    """

    left: Node
    right: Sort
    picked: int
    start: int
    separator: Literal


@record
class Limit(Node):
    """Rows offset .. offset + count of the input; either may be None.  Literals, so that parameters work.

    percent  count is a share of the input's rows, 0 to 100, rounded down
    """

    input: Node
    count: Literal | None
    offset: Literal | None
    percent: bool = False


@record
class Kept(Node):
    """The rows of `input`, made once however often they are read."""

    input: Node


@record
class Numbered(Node):
    """The rows of `input` with their numbers, from 0, in one more column: a BIGINT."""

    input: Node

    @classmethod
    def of(cls, node: Node) -> Numbered:
        """The rows of a plan, numbered."""
        return cls((*node.columns, (HIDDEN + "number", BIGINT)), node)


@record
class Unnested(Node):
    """The rows of `input`, each as often as `times` (BIGINT, 0 or more) says, and behind their columns which of these it is.

    The last column is a BIGINT from 0.  A row for which `times` is NULL does not come out.
    """

    input: Node
    times: Expression

    @classmethod
    def of(cls, node: Node, times: Expression) -> Unnested:
        """The rows of a plan, repeated."""
        return cls((*node.columns, (HIDDEN + "turn", BIGINT)), node, times)


@record
class UnionAll(Node):
    """Rows of each input in turn; inputs have equal column types."""

    branches: tuple[Node, ...]


@record
class Recursive(Node):
    """WITH RECURSIVE: the rows of `left`, then again and again those of `right` over the rows that were new before.

    number    by which `right` names its rows (`Given`): how many recursions it stands in
    distinct  UNION: a row that was there before is not new; else UNION ALL
    """

    left: Node
    right: Node
    number: int
    distinct: bool


@record
class Given(Node):
    """The new rows of the last round of a recursion; with `whole`, all so far."""

    number: int
    whole: bool = False


@record
class SetOperation(Node):
    """INTERSECT or EXCEPT of two inputs with equal column types; NULLs are equal to each other.

    kind  intersect or except
    all   a row that is l times on the left and r times on the right comes min(l, r) or l - r times, not once

    Rows come in order of their first on the left, equal rows together.
    """

    kind: str
    all: bool
    left: Node
    right: Node
