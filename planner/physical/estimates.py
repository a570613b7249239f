"""How many rows a node has and how many distinct values a column, by what the catalog knows: rough, and cheap.

Equality keeps one value in as many as there are distinct ones; what else a predicate keeps is a constant of System R's kind
(Selinger et al. 1979, table 1).  Columns are taken as independent, except that several keys of one join keep no less than
one row in as many as the larger side has.
"""

from __future__ import annotations

from math import prod

from gpudb.catalog import Catalog
from gpudb.planner.expressions import (
    And,
    Call,
    Cast,
    Column,
    Comparison,
    Expression,
    InList,
    IsNull,
    Literal,
    Not,
    Or,
    conjuncts,
)
from gpudb.planner.logical import (
    Aggregate,
    Filter,
    Join,
    JoinedTexts,
    JoinKey,
    Kept,
    Limit,
    Node,
    Numbered,
    Picked,
    Project,
    Scan,
    Values,
    Window,
)
from gpudb.record import record

RANGE = 0.3  # of rows that < or > keeps
OTHER_END = 0.8  # of what the first end of a range kept, that its other end keeps
LIKE = 0.05  # that a pattern keeps
UNKNOWN = 0.2  # that any other condition keeps
NULLS = 0.05  # that are NULL


@record
class Estimate:
    """rows     after predicates
    whole    before those of the scan itself: what distinct values were counted over
    distinct one a column, at most `whole`
    """

    rows: float
    whole: float
    distinct: tuple[float, ...]


class Estimator:
    """Estimates of the nodes of one plan."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._known: dict[Node, Estimate] = {}

    def of(self, node: Node) -> Estimate:
        """The estimate of a node's output."""
        found = self._known.get(node)
        if found is None:
            found = self._known[node] = self._made(node)
        return found

    def _made(self, node: Node) -> Estimate:
        match node:
            case Scan():
                return self._scan(node)
            case Filter(input=below):
                inner = self.of(below)
                kept = inner.rows * selectivity(node.predicate, inner)
                return Estimate(kept, inner.whole, inner.distinct)
            case Project(input=below):
                inner = self.of(below)
                distinct = tuple(distinct_values(expression, inner) for expression in node.expressions)
                return Estimate(inner.rows, inner.whole, distinct)
            case Aggregate(input=below):
                inner = self.of(below)
                keys = tuple(min(inner.rows, distinct_values(key, inner)) for key in node.keys)
                groups = max(1.0, min(inner.rows, prod(keys)))
                return Estimate(groups, groups, (*keys, *(groups for _ in node.aggregates)))
            case Limit(input=below, count=Literal(slot=None, value=int(count))):
                inner = self.of(below)
                rows = min(inner.rows, float(count))
                return Estimate(rows, rows, tuple(min(rows, values) for values in inner.distinct))
            case Kept(input=below):
                return self.of(below)
            case Window(input=below):
                inner = self.of(below)
                return Estimate(inner.rows, inner.whole, (*inner.distinct, *(inner.rows for _ in node.calls)))
            case Numbered(input=below):
                inner = self.of(below)
                return Estimate(inner.rows, inner.whole, (*inner.distinct, inner.rows))
            case JoinedTexts(left=below):
                inner = self.of(below)
                return Estimate(inner.rows, inner.whole, (*inner.distinct, inner.rows))
            case Picked(left=below):
                inner = self.of(below)
                return Estimate(inner.rows, inner.whole, (*inner.distinct, *(inner.rows for _ in node.expressions)))
            case Values():
                rows = float(len(node.rows))
                return Estimate(rows, rows, tuple(rows for _ in node.columns))
            case Join():
                return self._join(node)
        inputs = [self.of(inner) for inner in node.inputs()]
        rows = sum(inner.rows for inner in inputs) or 1.0
        return Estimate(rows, rows, tuple(rows for _ in node.columns))

    def _scan(self, node: Scan) -> Estimate:
        layout = self._catalog.table(node.table)
        assert layout is not None, f"table vanished while planning: {node.table}"
        rows = float(layout.rows)
        layouts = [layout.layouts[ordinal] for ordinal in node.ordinals]
        whole = Estimate(rows, rows, tuple(min(rows, float(column.distinct or rows)) for column in layouts))
        return Estimate(rows * selectivity(node.predicate, whole), rows, whole.distinct)

    def _join(self, node: Join) -> Estimate:
        left, right = self.of(node.left), self.of(node.right)
        both = Estimate(left.rows * right.rows, left.whole * right.whole, (*left.distinct, *right.distinct))
        pairs = both.rows * key_selectivity(node.keys, left, right) * selectivity(node.residual, both)
        if node.kind == "inner":
            rows = pairs
        elif node.kind == "left":
            rows = max(left.rows, pairs)
        elif node.kind == "semi":
            rows = min(left.rows, pairs)
        elif node.kind == "anti":
            rows = max(UNKNOWN * left.rows, left.rows - pairs)
        else:
            rows = left.rows
        distinct = (*both.distinct, 2.0)
        whole = max(1.0, rows, left.whole, right.whole if node.kind == "inner" else 1.0)
        return Estimate(max(1.0, rows), whole, tuple(distinct[index] for index in node.outputs))


def distinct_values(expression: Expression, over: Estimate) -> float:
    """How many values an expression takes, at most."""
    if isinstance(expression, Column):
        return over.distinct[expression.index]
    if isinstance(expression, Literal):
        return 1.0
    columns = [part for part in expression.walk() if isinstance(part, Column)]
    return min(over.whole, prod(over.distinct[column.index] for column in columns))


def key_selectivity(keys: tuple[JoinKey, ...], left: Estimate, right: Estimate) -> float:
    """The share of all pairs whose keys are equal."""
    if not keys:
        return 1.0
    shares = [
        equal_share((distinct_values(ours, left), left.whole), (distinct_values(theirs, right), right.whole))
        for ours, theirs, _ in keys
    ]
    return max(prod(shares), 1 / max(left.whole, right.whole, 1.0))


def equal_share(left: tuple[float, float], right: tuple[float, float]) -> float:
    """The share of pairs that are equal, by each side's (distinct values, rows before predicates).

    Where one side is a key and the other is not, the other refers to it, and each of its rows finds one: its own number of
    values, which is that of its range, tells less.
    """
    sides = [(min(values, rows), rows) for values, rows in (left, right)]
    keys = [rows for values, rows in sides if values * 2 >= rows]  # numbers of rows are rounded up to powers of two
    return 1 / max(1.0, keys[0] if len(keys) == 1 else max(values for values, _ in sides))


def selectivity(predicate: Expression | None, over: Estimate) -> float:
    """The share of rows for which a predicate is TRUE."""
    kept = 1.0
    bounded: set[Expression] = set()
    for term in conjuncts(predicate):
        if isinstance(term, Comparison) and term.operator in ("<", "<=", ">", ">="):
            sides = {side for side in (term.left, term.right) if not isinstance(side, Literal)}
            if sides & bounded:
                kept *= OTHER_END
                continue
            bounded |= sides
        kept *= _term(term, over)
    return kept


def _term(term: Expression, over: Estimate) -> float:
    match term:
        case Comparison(operator="=" | "is_not_distinct", left=left, right=right):
            return 1 / max(1.0, distinct_values(_plain(left), over), distinct_values(_plain(right), over))
        case Comparison(operator="<>" | "is_distinct", left=left, right=right):
            return 1 - 0.5 / max(1.0, distinct_values(_plain(left), over), distinct_values(_plain(right), over))
        case Comparison():
            return RANGE
        case InList(argument=argument, items=items):
            return min(0.9, len(items) / max(1.0, distinct_values(_plain(argument), over)))
        case IsNull():
            return NULLS
        case Not(argument=argument):
            return max(0.1, 1 - _term(argument, over))
        case Or(arguments=arguments):
            return 1 - prod(1 - selectivity(argument, over) for argument in arguments)
        case And():
            return selectivity(term, over)
        case Call(name="like" | "ilike"):
            return LIKE
        case Literal(slot=None, value=value):
            return 1.0 if value is True else 0.0
    return UNKNOWN


def _plain(expression: Expression) -> Expression:
    while isinstance(expression, Cast):
        expression = expression.argument
    return expression
