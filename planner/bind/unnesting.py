"""Subqueries that look at rows outside of them, made into joins: no query ever runs row by row.

A subquery's plan names values of the row outside as `Outer`.  Going up from its scans, `Unnesting` collects the conditions
over these values instead of applying them, so that rows are kept for all rows outside at once: at the top the conditions
join them with the rows outside (Neumann and Kemper 2015, "Unnesting Arbitrary Queries", with the pushed-down join delayed
until something needs it).  Where an operator in between works on one outside row's rows at a time, as an aggregate does, each
outside value must be a column: the one that an equality compares it with, else one of the distinct values outside
(the paper's domain), joined in by the conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from functools import partial

from gpudb.errors import NotSupportedError
from gpudb.planner.bind.set_operations import first_of_each
from gpudb.planner.expressions import (
    Case,
    Coalesce,
    Column,
    Comparison,
    Expression,
    Frame,
    IsNull,
    Literal,
    Not,
    Outer,
    Span,
    WindowCall,
    conjunction,
    conjuncts,
)
from gpudb.planner.logical import (
    ASOF,
    Aggregate,
    Filter,
    Join,
    JoinedTexts,
    Kept,
    Limit,
    Node,
    Numbered,
    OutputColumn,
    Picked,
    Project,
    SetOperation,
    Sort,
    UnionAll,
    Unnested,
    Values,
    Window,
)
from gpudb.planner.rules.rewriting import map_expressions, substitute
from gpudb.record import record
from gpudb.types import BIGINT, BOOLEAN

_COUNTS = ("count", "count_star", "entropy")  # of no rows 0; all other aggregates of no rows are NULL
_EQUALITIES = ("=", "is_not_distinct")


@record(frozen=False)
class Dependent:
    """Rows that depend on values of a row outside.

    node        a plan without Outer
    outputs     the columns, over the node's columns and Outer
    conditions  which rows are there for a row outside: what is TRUE of them, over the node's columns and Outer
    counts      of an aggregate without GROUP BY, which has a row also where no row of `node` is there: the columns of
                `node` that are then 0, the others being NULL; None where no row is no row
    """

    node: Node
    outputs: list[Expression]
    conditions: list[Expression] = field(default_factory=list)
    counts: frozenset[int] | None = None


def outer_values(*expressions: Expression) -> set[int]:
    """Numbers of the outside values that expressions read."""
    return {part.index for expression in expressions for part in expression.walk() if isinstance(part, Outer)}


def columns_of(node: Node, start: int = 0) -> list[Expression]:
    """A node's columns as expressions, numbered from `start`."""
    return [Column(type_, start + index, name) for index, (name, type_) in enumerate(node.columns)]


class Unnesting:
    """Takes one subquery's plan apart.

    outside    the plan of the query around
    arguments  the outside values, over its columns; equalities with more than a value add theirs
    """

    def __init__(self, outside: Node, arguments: Sequence[Expression], span: Span | None) -> None:
        self.outside = outside
        self.arguments = list(arguments)
        self.span = span
        self._depends: dict[int, tuple[Node, bool]] = {}

    # ------------------------------------------------------------------------------------------- the top

    def dependent(self, plan: Node) -> Dependent:
        """The subquery's rows and their conditions."""
        return self._of(plan)

    def over_both(self, expression: Expression) -> Expression:
        """An expression over the rows outside and, behind their columns, the subquery's."""
        width = len(self.outside.columns)

        def placed(part: Expression) -> Expression:
            if isinstance(part, Outer):
                return self.arguments[part.index]
            return replace(part, index=part.index + width) if isinstance(part, Column) else part

        return expression.transform(placed)

    def condition(self, state: Dependent, *more: Expression) -> Expression | None:
        """What joins the subquery's rows with those outside; `more` is over both already."""
        return conjunction((*map(self.over_both, state.conditions), *more))

    def values(self, state: Dependent, outer: bool) -> tuple[Node, list[Expression]]:
        """(the subquery's rows, its outputs over the rows outside and these; NULL where an `outer` join finds none of them).

        An aggregate without GROUP BY has its values of no rows there.
        """
        width = len(self.outside.columns)
        if state.counts is not None:
            return state.node, [self._of_no_rows(self.over_both(output), state, width) for output in state.outputs]
        if not outer or all(isinstance(output, Column) for output in state.outputs):
            return state.node, [self.over_both(output) for output in state.outputs]
        there = Project(
            (*state.node.columns, ("there", BOOLEAN)),
            state.node,
            (*columns_of(state.node), Literal(BOOLEAN, True)),
        )
        missed = IsNull(BOOLEAN, Column(BOOLEAN, width + len(state.node.columns), "there"))
        outputs: list[Expression] = []
        for output in state.outputs:
            bare = self.over_both(output)
            if not isinstance(output, Column):
                bare = Case(output.type, (missed,), (Literal(output.type, None),), bare)
            outputs.append(bare)
        return there, outputs

    @staticmethod
    def _of_no_rows(output: Expression, state: Dependent, start: int) -> Expression:
        """The output with counts that are 0 where they are NULL."""

        def placed(part: Expression) -> Expression:
            if isinstance(part, Column) and state.counts and part.index - start in state.counts:
                return Coalesce(part.type, (part, Literal(part.type, 0.0 if part.type.is_float else 0)))
            return part

        return output.transform(placed)

    # ------------------------------------------------------------------------------------------- going up

    def _reads_outside(self, node: Node) -> bool:
        """Is there an Outer in the plan?"""
        known = self._depends.get(id(node))
        if known is None:
            found = bool(outer_values(*expressions_of(node))) or any(map(self._reads_outside, node.inputs()))
            known = self._depends[id(node)] = node, found
        return known[1]

    def _of(self, node: Node) -> Dependent:
        if not self._reads_outside(node):
            return Dependent(node, columns_of(node))
        match node:
            case Filter():
                return self._filter(node)
            case Project():
                state = self._of(node.input)
                return replace(state, outputs=[substitute(part, state.outputs) for part in node.expressions])
            case Aggregate():
                return self._aggregate(node)
            case Sort():
                return self._sort(node)
            case Window():
                return self._window(node)
            case Limit():
                return self._limit(node)
            case Kept():
                return self._of(node.input)
            case Join():
                return self._join(node)
            case UnionAll():
                return self._union(
                    node.columns, node.branches, lambda branches: UnionAll(branches[0].columns, branches)
                )
            case SetOperation():
                return self._union(node.columns, (node.left, node.right), partial(_set_operation, node))
            case Values():
                one = Values((), ((),))
                rows = tuple(Project(node.columns, one, row) for row in node.rows)
                return self._of(rows[0] if len(rows) == 1 else UnionAll(node.columns, rows))
            case Unnested():
                return self._unnested(node)
            case Numbered() | Picked() | JoinedTexts():
                raise self._unsupported("an aggregate over sorted values")
        raise self._unsupported(type(node).__name__.lower())

    def _unsupported(self, what: str) -> NotSupportedError:
        return NotSupportedError(
            f"{what} in a subquery that looks at a row outside of it is not supported", span=self.span
        )

    def _rows(self, node: Node) -> Dependent:
        """As `_of`, with a row of values for no rows where an aggregate without GROUP BY has one."""
        state = self._of(node)
        if state.counts is None:
            return state
        needed = sorted(outer_values(*state.conditions))
        domain = self._domain(needed)
        width = len(needed)
        places = dict(zip(needed, columns_of(domain), strict=True))
        terms = [_placed(term, places, width) for term in state.conditions]
        both = (*domain.columns, *state.node.columns)
        joined = Join(both, domain, state.node, "left", (), conjunction(tuple(terms)), tuple(range(len(both))))
        outputs = [self._of_no_rows(_placed(part, {}, width), state, width) for part in state.outputs]
        conditions = [_equal("is_not_distinct", number, places[number]) for number in needed]
        return Dependent(joined, outputs, conditions)

    def _term(self, term: Expression) -> Expression:
        """The condition; where it compares an expression of outside values only, that is one value more."""
        if not isinstance(term, Comparison) or term.operator not in _EQUALITIES:
            return term
        sides = []
        for side in (term.left, term.right):
            if not isinstance(side, Outer) and outer_values(side) and not _has_column(side):
                self.arguments.append(side.transform(self._argument))
                side = Outer(side.type, len(self.arguments) - 1, "key", span=side.span)
            sides.append(side)
        return replace(term, left=sides[0], right=sides[1])

    def _argument(self, part: Expression) -> Expression:
        return self.arguments[part.index] if isinstance(part, Outer) else part

    def _filter(self, node: Filter) -> Dependent:
        state = self._rows(node.input)
        return self._where(state, [substitute(term, state.outputs) for term in conjuncts(node.predicate)])

    def _where(self, state: Dependent, terms: Iterable[Expression]) -> Dependent:
        """The rows for which more is TRUE."""
        own: list[Expression] = []
        dependent: list[Expression] = []
        for term in terms:
            (dependent if outer_values(term) else own).append(term)
        conditions = [*state.conditions, *map(self._term, dependent)]
        return replace(state, node=where(state.node, own), conditions=conditions)

    def _domain(self, numbers: Sequence[int]) -> Node:
        """The distinct outside values of these numbers."""
        keys = tuple(self.arguments[number] for number in numbers)
        columns = tuple((f"outer {number}", key.type) for number, key in zip(numbers, keys, strict=True))
        return Aggregate(columns, self.outside, keys, ())

    def _bound(self, state: Dependent, *more: Expression) -> tuple[Dependent, dict[int, Expression]]:
        """(the rows with a column for each outside value in them or in `more`, these values over the columns).

        All conditions are equalities with these columns then.
        """
        assert state.counts is None, "rows of no rows are made first"
        needed = outer_values(*state.conditions, *state.outputs, *more)
        values: dict[int, Expression] = {}
        operators: dict[int, str] = {}
        rest: list[Expression] = []
        for term in state.conditions:
            found = _equality(term)
            if found is None or found[0] in values or not self._may_stand_for(found[0], state, term, more):
                rest.append(term)
            else:
                number, values[number], operators[number] = found
        missing = sorted(needed - values.keys())
        if not missing:
            node = where(state.node, [_placed(term, values) for term in rest])
            outputs = [_placed(part, values) for part in state.outputs]
        else:
            node, outputs, values = self._joined_with_domain(state, sorted(needed))
            operators = dict.fromkeys(needed, "is_not_distinct")
        conditions = [_equal(operators[number], number, values[number]) for number in sorted(needed)]
        return Dependent(node, outputs, conditions), values

    @staticmethod
    def _may_stand_for(number: int, state: Dependent, term: Expression, more: Sequence[Expression]) -> bool:
        """Whether a column equal to an outside value may be used for it: of floats not, -0.0 equals 0.0."""
        others = [condition for condition in state.conditions if condition is not term]
        floating = any(part.type.is_float for part in term.walk())
        return not floating or number not in outer_values(*others, *state.outputs, *more)

    def _joined_with_domain(
        self, state: Dependent, needed: list[int]
    ) -> tuple[Node, list[Expression], dict[int, Expression]]:
        """(the rows beside the outside values for which they are there, their outputs, the values' columns)."""
        domain, width = self._domain(needed), len(state.node.columns)
        values = dict(zip(needed, columns_of(domain, width), strict=True))
        columns = (*state.node.columns, *domain.columns)
        condition = conjunction(tuple(_placed(term, values) for term in state.conditions))
        node = Join(columns, state.node, domain, "inner", (), condition, tuple(range(len(columns))))
        return node, [_placed(part, values) for part in state.outputs], values

    # ------------------------------------------------------------------------------------------- operators

    def _aggregate(self, node: Aggregate) -> Dependent:
        """Groups by the outside values, too."""
        state = self._rows(node.input)
        parts = [substitute(part, state.outputs) for part in (*node.keys, *node.aggregates)]
        bound, values = self._bound(replace(state, outputs=parts))
        keys, calls = bound.outputs[: len(node.keys)], bound.outputs[len(node.keys) :]
        numbers = sorted(values)
        extra = tuple((f"outer {number}", values[number].type) for number in numbers)
        wide = (*(values[number] for number in numbers), *keys)
        groups = Aggregate((*extra, *node.columns), bound.node, wide, tuple(calls))  # type: ignore[arg-type]  # calls stay calls
        conditions = _compared_with(bound.conditions, columns_of(groups))
        counts = None
        if not node.keys:
            start = len(numbers)
            counts = frozenset(start + at for at, call in enumerate(node.aggregates) if call.name in _COUNTS)
        return Dependent(groups, columns_of(groups)[len(numbers) :], conditions, counts)

    def _window(self, node: Window) -> Dependent:
        """Partitions by the outside values, too."""
        state = self._rows(node.input)
        parts = (*node.keys, *(key.expression for key in node.order), *node.calls)
        inside = [substitute(part, state.outputs) for part in parts]
        bound, values = self._bound(replace(state, outputs=[*state.outputs, *inside]))
        width = len(state.outputs)
        keys, rest = bound.outputs[width : width + len(node.keys)], bound.outputs[width + len(node.keys) :]
        order = tuple(replace(key, expression=by) for key, by in zip(node.order, rest, strict=False))
        rows = bound.node
        windows = Window(
            (*rows.columns, *node.columns[len(node.input.columns) :]),
            rows,
            (*(values[number] for number in sorted(values)), *keys),
            order,
            tuple(rest[len(order) :]),  # type: ignore[arg-type]  # calls stay calls
        )
        outputs = [*bound.outputs[:width], *columns_of(windows)[len(rows.columns) :]]
        return replace(bound, node=windows, outputs=outputs)

    def _sort(self, node: Sort) -> Dependent:
        state = self._of(node.input)
        if state.counts is not None:
            return state  # one row
        keys = [substitute(key.expression, state.outputs) for key in node.keys]
        if outer_values(*keys):
            state, values = self._bound(state, *keys)
            keys = [_placed(key, values) for key in keys]
        sort_keys = tuple(replace(key, expression=by) for key, by in zip(node.keys, keys, strict=True))
        return replace(state, node=Sort(state.node.columns, state.node, sort_keys))

    def _unnested(self, node: Unnested) -> Dependent:
        """Each row as often as it says, or as a value of the row outside does."""
        state = self._rows(node.input)
        times = substitute(node.times, state.outputs)
        if outer_values(times):
            state, values = self._bound(state, times)
            times = _placed(times, values)
        rows = Unnested.of(state.node, times)
        return replace(state, node=rows, outputs=[*state.outputs, columns_of(rows)[-1]])

    def _limit(self, node: Limit) -> Dependent:
        """The rows from the offset on, so many of them, of each combination of outside values."""
        if node.percent:
            raise self._unsupported("LIMIT in percent")
        count = None if node.count is None else node.count.value
        start = 0 if node.offset is None else node.offset.value
        state = self._of(node.input)
        if count == 0 or (state.counts is not None and start):
            state = self._rows(node.input)
            return replace(state, node=where(state.node, [Literal(BOOLEAN, False)]))
        if state.counts is not None:
            return state
        return self._first(state) if count == 1 and not start else self._sliced(state, start, count)

    def _first(self, state: Dependent) -> Dependent:
        bound, wide = self._widened(state)
        width, all_ = len(state.outputs), len(wide.columns)
        first = first_of_each(wide, list(range(width, all_)), all_) if width < all_ else _only_first(wide)
        return replace(bound, node=first, outputs=columns_of(first)[:width])

    def _sliced(self, state: Dependent, start: int, count: int | None) -> Dependent:
        bound, wide = self._widened(state)
        width = len(state.outputs)
        call = WindowCall(BIGINT, "row_number", (), (), (), (), Frame())
        keys = tuple(columns_of(wide)[width:])
        rows = Window((*wide.columns, ("number", BIGINT)), wide, keys, (), (call,))
        number = columns_of(rows)[-1]
        terms = [Comparison(BOOLEAN, ">", number, Literal(BIGINT, start))] if start else []
        if count is not None:
            terms.append(Comparison(BOOLEAN, "<=", number, Literal(BIGINT, start + count)))
        return replace(bound, node=where(rows, terms), outputs=columns_of(rows)[:width])

    def _widened(self, state: Dependent, *more: Expression) -> tuple[Dependent, Node]:
        """(the bound rows with their conditions over: a plan of the outputs and, behind them, the outside values)."""
        bound, values = self._bound(state, *more)
        expressions = (*bound.outputs, *(values[number] for number in sorted(values)))
        columns = tuple((f"column {at}", part.type) for at, part in enumerate(expressions))
        wide = Project(columns, bound.node, expressions)
        conditions = _compared_with(bound.conditions, columns_of(wide)[len(state.outputs) :])
        return replace(bound, conditions=conditions), wide

    def _union(
        self, columns: tuple[OutputColumn, ...], branches: Sequence[Node], combine: Callable[[tuple[Node, ...]], Node]
    ) -> Dependent:
        """Branches side by side, each with the same outside values behind its columns."""
        states = [self._rows(branch) for branch in branches]
        read = sorted(set().union(*(outer_values(*state.conditions, *state.outputs) for state in states)))
        types = {number: self.arguments[number].type for number in read}
        wanted = [Outer(types[number], number, "") for number in read]
        width, names = len(columns), tuple((f"outer {number}", types[number]) for number in read)
        plans: list[Node] = []
        for state in states:
            bound, wide = self._widened(state, *wanted)
            present = [
                Not(BOOLEAN, IsNull(BOOLEAN, term.right))
                for term in bound.conditions
                if isinstance(term, Comparison) and term.operator == "="
            ]  # a value that must equal another is not NULL
            plans.append(replace(where(wide, present), columns=(*columns, *names)))
        node = combine(tuple(plans))
        conditions: list[Expression] = [
            _equal("is_not_distinct", number, Column(types[number], width + at, "")) for at, number in enumerate(read)
        ]
        return Dependent(node, columns_of(node)[:width], conditions)

    def _join(self, node: Join) -> Dependent:
        left, right = self._rows(node.left), self._rows(node.right)
        if node.kind == "inner":
            return self._inner(node, left, right)
        start = len(left.node.columns)
        both = [*left.outputs, *(_shifted(output, start) for output in right.outputs)]
        needed = [substitute(term, both) for term in _join_terms(node)]
        needed += [_shifted(condition, start) for condition in right.conditions]
        if node.kind in ASOF and any(outer_values(term) and _is_no_key(term, start) for term in needed):
            raise self._unsupported("a condition of ASOF JOIN that is no equality with a value of the row outside")
        read = outer_values(*needed, *right.outputs)
        if read:  # the condition looks outside: values of the left row then, since every one of these has its own pairs
            wanted = [Outer(self.arguments[number].type, number, "") for number in sorted(read)]
            left, values = self._bound(left, *wanted)
            needed = [_grown(term, values, start, len(left.node.columns) - start) for term in needed]
        return self._outer_join(node, left, right, needed)

    def _inner(self, node: Join, left: Dependent, right: Dependent) -> Dependent:
        start = len(left.node.columns)
        both = [*left.outputs, *(_shifted(output, start) for output in right.outputs)]
        terms = [substitute(term, both) for term in _join_terms(node)]
        columns = (*left.node.columns, *right.node.columns)
        own = conjunction(tuple(term for term in terms if not outer_values(term)))
        joined = Join(columns, left.node, right.node, "inner", (), own, tuple(range(len(columns))))
        conditions = [*left.conditions, *(_shifted(condition, start) for condition in right.conditions)]
        conditions += [self._term(term) for term in terms if outer_values(term)]
        return Dependent(joined, [both[index] for index in node.outputs], conditions)

    def _outer_join(self, node: Join, left: Dependent, right: Dependent, terms: list[Expression]) -> Dependent:
        """A join that is not INNER, whose condition `terms` is over the columns of both nodes and no outside value."""
        inner = right.node
        if any(not isinstance(output, Column) for output in right.outputs) and node.kind in (
            "left",
            "single",
            "asof left",
        ):
            if outer_values(*right.outputs):
                raise self._unsupported("a value of the row outside on the right of LEFT JOIN")
            # Outputs become columns, so that they are NULL where the join finds no row.
            old = columns_of(inner)
            wide = (*old, *right.outputs)
            names = tuple((f"column {at}", part.type) for at, part in enumerate(wide))
            inner = Project(names, inner, wide)
            right = replace(right, outputs=columns_of(inner)[len(old) :])
        start = len(left.node.columns)
        columns: tuple[OutputColumn, ...] = (*left.node.columns, *inner.columns)
        outputs = [*left.outputs, *(_shifted(output, start) for output in right.outputs)]
        kept = tuple(range(start)) if node.kind in ("semi", "anti", "mark") else tuple(range(len(columns)))
        if node.kind == "mark":
            outputs = [*left.outputs, *(outputs[len(left.outputs) :]), Column(BOOLEAN, start, "mark")]
            kept, columns = (*kept, len(columns)), (*columns, ("mark", BOOLEAN))
        joined = Join(
            tuple(columns[index] for index in kept),
            left.node,
            inner,
            node.kind,
            (),
            conjunction(tuple(terms)),
            kept,
            node.span,
        )
        return Dependent(joined, [outputs[index] for index in node.outputs], left.conditions)


def expressions_of(node: Node) -> list[Expression]:
    """The expressions of a node itself."""
    found: list[Expression] = []

    def noted(expression: Expression) -> Expression:
        found.append(expression)
        return expression

    map_expressions(node, noted)
    return found


def _join_terms(node: Join) -> list[Expression]:
    """A join's whole condition, over both inputs."""
    width = len(node.left.columns)
    keys = [
        Comparison(BOOLEAN, "is_not_distinct" if null_equal else "=", ours, _shifted(theirs, width))
        for ours, theirs, null_equal in node.keys
    ]
    return [*keys, *conjuncts(node.residual)]


def _compared_with(conditions: Sequence[Expression], columns: Sequence[Expression]) -> list[Expression]:
    """Equalities of outside values, in their order, with these columns instead."""
    return [replace(term, right=column) for term, column in zip(conditions, columns, strict=False)]  # type: ignore[call-arg]  # Comparisons


def _only_first(node: Node) -> Node:
    return Limit(node.columns, node, Literal(BIGINT, 1), None)


def _set_operation(node: SetOperation, branches: tuple[Node, ...]) -> Node:
    return SetOperation(branches[0].columns, node.kind, node.all, branches[0], branches[1])


def where(node: Node, terms: Sequence[Expression]) -> Node:
    """The rows for which all terms are TRUE; the node itself without terms."""
    predicate = conjunction(tuple(terms))
    return node if predicate is None else Filter(node.columns, node, predicate)


def _has_column(expression: Expression) -> bool:
    return any(isinstance(part, Column) for part in expression.walk())


def _equal(operator: str, number: int, column: Expression) -> Expression:
    return Comparison(BOOLEAN, operator, Outer(column.type, number, ""), column)


def _equality(term: Expression) -> tuple[int, Expression, str] | None:
    """(number of an outside value, what it equals, the operator): None for other conditions."""
    if not isinstance(term, Comparison) or term.operator not in _EQUALITIES:
        return None
    for one, other in ((term.left, term.right), (term.right, term.left)):
        if isinstance(one, Outer) and not outer_values(other):
            return one.index, other, term.operator
    return None


def _is_no_key(term: Expression, start: int) -> bool:
    """A condition over the right input, whose columns are those from `start` on, but no equality with an outside value."""
    over_right = any(isinstance(part, Column) and part.index >= start for part in term.walk())
    return over_right and _equality(term) is None


def _placed(expression: Expression, values: dict[int, Expression], shift: int = 0) -> Expression:
    """The expression with outside values filled in, and its columns `shift` further on."""

    def placed(part: Expression) -> Expression:
        if isinstance(part, Outer):
            return values.get(part.index, part)
        return replace(part, index=part.index + shift) if shift and isinstance(part, Column) else part

    return expression.transform(placed)


def _shifted(expression: Expression, shift: int) -> Expression:
    return _placed(expression, {}, shift)


def _grown(expression: Expression, values: dict[int, Expression], width: int, more: int) -> Expression:
    """A condition over a left and a right node whose left one got `more` columns behind its `width`."""

    def placed(part: Expression) -> Expression:
        if isinstance(part, Outer):
            return values[part.index]
        if isinstance(part, Column) and part.index >= width:
            return replace(part, index=part.index + more)
        return part

    return expression.transform(placed)
