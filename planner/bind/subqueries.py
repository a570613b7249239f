"""Subqueries as expressions: a value, EXISTS, IN, ANY and ALL; and LATERAL ones in FROM.

The binder of expressions leaves a `Subquery` where one stands.  When the plan that the expression belongs to is known, the
subquery's plan is joined to it, and columns of the join take the place: the only row's value, or a mark that says whether
there is a row.  So a subquery runs once, however many rows look at it; one that looks back is taken apart by `unnesting`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gpudb.errors import BindError
from gpudb.planner.bind.casts import cast, common_type, comparison_type
from gpudb.planner.bind.context import Context
from gpudb.planner.bind.unnesting import Dependent, Unnesting, columns_of, where
from gpudb.planner.expressions import (
    AggregateCall,
    Case,
    Column,
    Comparison,
    Expression,
    IsNull,
    Literal,
    Or,
    Outer,
    Span,
    conjunction,
    conjuncts,
)
from gpudb.planner.logical import Aggregate, Join, JoinKey, Node, Project, Values
from gpudb.planner.rules.rewriting import bottom_up, map_expressions
from gpudb.record import record
from gpudb.types import BIGINT, BOOLEAN


@record
class Subquery(Expression):
    """A query in place of an expression.

    kind       value (of the only column and row, NULL without a row), exists, or any
    plan       its logical plan, in which `Outer` stands for the arguments
    arguments  what it takes of a row of the query around
    operands   of any: what `operator` compares with the columns of each row, in their types
    """

    kind: str
    plan: Any
    arguments: tuple[Expression, ...]
    operands: tuple[Expression, ...] = ()
    operator: str = "="


def one_column(plan: Node, span: Span | None) -> Node:
    """The plan, if it has one column as a value must."""
    if len(plan.columns) != 1:
        raise BindError(f"a subquery used as an expression has more than one column: {len(plan.columns)}", span=span)
    return plan


def quantified(
    context: Context,
    operands: Sequence[Expression],
    operator: str,
    plan: Node,
    arguments: tuple[Expression, ...],
    span: Span | None,
) -> Subquery:
    """operands operator ANY (plan), compared in the types that DuckDB compares in; IN is = ANY."""
    if len(operands) != len(plan.columns):
        raise BindError(
            f"a subquery has another number of columns than it is compared with: {len(plan.columns)}, {len(operands)}",
            span=span,
        )
    columns, ours, theirs = [], [], []
    for operand, column in zip(operands, columns_of(plan), strict=True):
        assert isinstance(column, Column), "a column of the plan"
        both: list[Expression] = [operand, column]
        # As DuckDB: in the type that holds both, where DECIMALs beyond 38 digits are rounded before they are compared.
        equality = operator in ("=", "<>")
        common = comparison_type(context, both, compared=False) if equality else common_type(context, both)
        if common is None:
            hint = "cast one to the other's type"
            raise BindError(f"cannot compare {operand.type} with {column.type}", span=span, hint=hint)
        columns.append((column.name, common))
        ours.append(cast(context, operand, common))
        theirs.append(cast(context, column, common))
    if tuple(columns) != plan.columns:
        plan = Project(tuple(columns), plan, tuple(theirs))
    return Subquery(BOOLEAN, "any", plan, arguments, tuple(ours), operator, span=span)


def has_subquery(expression: Expression) -> bool:
    """Does a subquery stand in an expression?"""
    return any(isinstance(part, Subquery) for part in expression.walk())


def filtered(plan: Node, condition: Expression) -> Node:
    """The rows of a plan for which a condition with subqueries is TRUE; these look at what the rest of it leaves."""
    terms = conjuncts(condition)
    plan = where(plan, [term for term in terms if not has_subquery(term)])
    found: list[Expression] = []
    for term in terms:
        if not has_subquery(term):
            continue
        if isinstance(term, Subquery) and term.kind == "any" and term.operator == "=":
            # NULL drops a row as FALSE does: the mark says enough.
            plan, parts = attached(plan, (*term.operands, *term.arguments))
            operands = tuple(parts[: len(term.operands)])
            bare = replace(term, operands=operands, arguments=tuple(parts[len(operands) :]))
            plan, known = _true_for_any(plan, bare, operands)
        else:
            plan, (known,) = attached(plan, (term,))
        found.append(known)
    return where(plan, found)


def attached(plan: Node, expressions: Sequence[Expression]) -> tuple[Node, list[Expression]]:
    """(the plan with columns for the subqueries behind its own, the expressions over these columns)."""
    known: dict[Subquery, Expression] = {}

    def placed(part: Expression) -> Expression:
        nonlocal plan
        if not isinstance(part, Subquery):
            return part
        if part not in known:
            plan, known[part] = _joined(plan, part)
        return known[part]

    found = [expression.transform(placed) for expression in expressions]
    return plan, found


def lateral(
    plan: Node,
    rows: Node,
    arguments: tuple[Expression, ...] | None,
    kind: str,
    span: Span | None,
    condition: Expression | None = None,
) -> Node:
    """The rows of a plan beside those of a subquery that looks at them; with a condition, beside those for which it is TRUE.

    arguments  what the subquery takes of a row of the plan; None where it takes nothing of it, but may, as the plan and the
               condition may, of the query around
    kind       inner, or left with NULLs where there are none
    """
    width, values = len(plan.columns), list(arguments or ())

    def inside(part: Expression) -> Expression:  # of the subquery: what is of the plan's row comes from outside
        if isinstance(part, Column) and part.index >= width:
            return replace(part, index=part.index - width)
        if not isinstance(part, (Column, Outer)):
            return part
        if part not in values:
            values.append(part)
        return Outer(part.type, values.index(part), part.name, span=part.span)

    def handed_on(part: Expression) -> Expression:
        return inside(part) if isinstance(part, Outer) else part

    columns = rows.columns
    if arguments is None:
        rows = bottom_up(rows, lambda node: map_expressions(node, lambda part: part.transform(handed_on)))
    if condition is not None:
        rows = filtered(rows, condition.transform(inside))
    unnesting = Unnesting(plan, values, span)
    joined, outputs = _beside(plan, unnesting, unnesting.dependent(rows), kind)
    return Project((*plan.columns, *columns), joined, (*columns_of(plan), *outputs[: len(columns)]))


def _joined(plan: Node, part: Subquery) -> tuple[Node, Expression]:
    unnesting = Unnesting(plan, part.arguments, part.span)
    if part.kind == "value":
        state = unnesting.dependent(part.plan)
        if isinstance(state.node, Values) and not state.node.columns and not state.conditions:
            return plan, unnesting.over_both(state.outputs[0])  # SELECT of one row: the expression itself
        plan, (value,) = _beside(plan, unnesting, state, "single")
        return plan, value
    if part.kind == "exists":
        state = unnesting.dependent(part.plan)
        if state.counts is not None:
            return plan, Literal(BOOLEAN, True)
        return _marked(plan, state.node, unnesting.condition(state))
    if len(part.operands) == 1 and part.operator != "=":
        return _compared_with_extremes(plan, part)
    if len(part.operands) == 1 and not part.arguments:
        return _in_rows(plan, part)
    return _in_dependent_rows(plan, part)


def _beside(plan: Node, unnesting: Unnesting, state: Dependent, kind: str) -> tuple[Node, list[Expression]]:
    """(the plan beside the subquery's rows, the subquery's outputs over that)."""
    rows, outputs = unnesting.values(state, kind != "inner")
    columns = (*plan.columns, *rows.columns)
    kind = kind if state.counts is None else "left"
    condition = unnesting.condition(state)
    return Join(columns, plan, rows, kind, (), condition, tuple(range(len(columns))), unnesting.span), outputs


def _marked(
    plan: Node, rows: Node, condition: Expression | None, keys: tuple[JoinKey, ...] = ()
) -> tuple[Node, Column]:
    """(the plan with a mark behind its columns, the mark): whether there is a row for which the condition is TRUE."""
    width = len(plan.columns)
    outputs = (*range(width), width + len(rows.columns))
    joined = Join((*plan.columns, ("mark", BOOLEAN)), plan, rows, "mark", keys, condition, outputs)
    return joined, Column(BOOLEAN, width, "mark")


def _true_for_any(plan: Node, part: Subquery, operands: Sequence[Expression]) -> tuple[Node, Expression]:
    """(the plan, whether the comparison is TRUE for a row)."""
    unnesting = Unnesting(plan, part.arguments, part.span)
    state = unnesting.dependent(part.plan)
    if state.counts is not None:
        plan, values = _beside(plan, unnesting, state, "single")
        return plan, _compared(part.operator, operands, values)
    pairs = _compared(part.operator, operands, [unnesting.over_both(output) for output in state.outputs])
    return _marked(plan, state.node, unnesting.condition(state, pairs))


def _in_rows(plan: Node, part: Subquery) -> tuple[Node, Expression]:
    """IN as a value: NULL for a miss, if the operand is NULL or one of the rows, unless there are no rows."""
    (operand,) = part.operands
    plan, mark = _true_for_any(plan, part, part.operands)
    calls = (AggregateCall(BIGINT, "count_star", ()), AggregateCall(BIGINT, "count", tuple(columns_of(part.plan))))
    counts = Aggregate((("rows", BIGINT), ("values", BIGINT)), part.plan, (), calls)
    width = len(plan.columns)
    plan = Join((*plan.columns, *counts.columns), plan, counts, "single", (), None, tuple(range(width + 2)))
    rows, values = columns_of(counts, width)
    none = Comparison(BOOLEAN, "=", rows, Literal(BIGINT, 0))
    unknown = Or(BOOLEAN, (IsNull(BOOLEAN, operand), Comparison(BOOLEAN, "<", values, rows)))
    return plan, _three_valued(part, (mark, True), (none, False), (unknown, None))


def _in_dependent_rows(plan: Node, part: Subquery) -> tuple[Node, Expression]:
    """The same for rows that depend on the operand's row, or of several columns: is there one that NULL may hide?"""
    plan, mark = _true_for_any(plan, part, part.operands)
    unnesting = Unnesting(plan, part.arguments, part.span)
    state = unnesting.dependent(part.plan)
    if state.counts is not None:
        return plan, mark  # one row: the comparison with it
    pairs = _compared(part.operator, part.operands, [unnesting.over_both(output) for output in state.outputs])
    plan, unknown = _marked(plan, state.node, unnesting.condition(state, IsNull(BOOLEAN, pairs)))
    return plan, _three_valued(part, (mark, True), (unknown, None))


def _compared_with_extremes(plan: Node, part: Subquery) -> tuple[Node, Expression]:
    """An order, or <>, is TRUE for any row if it is for the least or the greatest value."""
    (operand,) = part.operands
    (value,) = columns_of(part.plan)
    type_ = value.type
    calls = (
        AggregateCall(type_, "min", (value,)),
        AggregateCall(type_, "max", (value,)),
        AggregateCall(BIGINT, "count_star", ()),
        AggregateCall(BIGINT, "count", (value,)),
    )
    columns = (("min", type_), ("max", type_), ("rows", BIGINT), ("values", BIGINT))
    unnesting = Unnesting(plan, part.arguments, part.span)
    state = unnesting.dependent(Aggregate(columns, part.plan, (), calls))
    plan, (least, greatest, rows, values) = _beside(plan, unnesting, state, "single")
    ends = {"<": (greatest,), "<=": (greatest,), ">": (least,), ">=": (least,), "<>": (least, greatest)}[part.operator]
    terms = tuple(Comparison(BOOLEAN, part.operator, operand, end) for end in ends)
    true = terms[0] if len(terms) == 1 else Or(BOOLEAN, terms)
    none = Comparison(BOOLEAN, "=", rows, Literal(BIGINT, 0))
    unknown = Or(BOOLEAN, (IsNull(BOOLEAN, operand), Comparison(BOOLEAN, "<", values, rows)))
    return plan, _three_valued(part, (true, True), (none, False), (unknown, None))


def _compared(operator: str, operands: Sequence[Expression], values: Sequence[Expression]) -> Expression:
    terms = [Comparison(BOOLEAN, operator, one, other) for one, other in zip(operands, values, strict=True)]
    found = conjunction(tuple(terms))
    assert found is not None, "there is an operand"
    return found


def _three_valued(part: Subquery, *cases: tuple[Expression, bool | None]) -> Expression:
    """CASE of conditions and truth values, FALSE for the rest."""
    results = tuple(Literal(BOOLEAN, value) for _, value in cases)
    return Case(BOOLEAN, tuple(condition for condition, _ in cases), results, Literal(BOOLEAN, False), span=part.span)
