"""Subqueries as expressions: a value, EXISTS, IN.

The binder of expressions leaves a `Subquery` where one stands.  When the plan that the expression belongs to is known, the
subquery's plan is joined to it, and a column of the join takes the place: the only row's value, or a mark that says whether
there is a row.  So a subquery runs once, however many rows look at it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpudb.errors import BindError
from gpudb.planner.bind.casts import cast, comparison_type
from gpudb.planner.bind.context import Context
from gpudb.planner.expressions import (
    AggregateCall,
    Case,
    Column,
    Comparison,
    Expression,
    IsNull,
    Literal,
    Or,
    Span,
    conjunction,
    conjuncts,
)
from gpudb.planner.logical import Aggregate, Filter, Join, JoinKey, Node, Project
from gpudb.record import record
from gpudb.types import BIGINT, BOOLEAN


@record
class Subquery(Expression):
    """A query in place of an expression.

    kind       value (of the only column and row, NULL without a row), exists, or in (is `arguments[0]` among the rows?)
    plan       its logical plan
    arguments  what stands before IN, in the type of `columns`
    """

    kind: str
    plan: Any
    arguments: tuple[Expression, ...] = ()


def one_column(plan: Node, span: Span | None) -> Node:
    """The plan, if it has one column as a value must."""
    if len(plan.columns) != 1:
        raise BindError(f"a subquery used as an expression has more than one column: {len(plan.columns)}", span=span)
    return plan


def membership(context: Context, argument: Expression, plan: Node, span: Span | None) -> Subquery:
    """argument IN (plan), compared in the type that DuckDB compares in."""
    name, type_ = one_column(plan, span).columns[0]
    column = Column(type_, 0, name, span=span)
    common = comparison_type(context, [argument, column])
    if common is None:
        raise BindError(f"cannot compare {argument.type} with {type_}", span=span, hint="cast one to the other's type")
    if common != type_:
        plan = Project(((name, common),), plan, (cast(context, column, common),))
    return Subquery(BOOLEAN, "in", plan, (cast(context, argument, common),), span=span)


def filtered(plan: Node, condition: Expression) -> Node:
    """The rows of a plan for which a condition with subqueries is TRUE."""
    terms: list[Expression] = []
    for term in conjuncts(condition):
        if isinstance(term, Subquery) and term.kind == "in":  # NULL drops a row as FALSE does: the mark says enough
            plan, (argument,) = attached(plan, term.arguments)
            plan, mark = _marked(plan, term.plan, argument)
            terms.append(mark)
        else:
            plan, (bound,) = attached(plan, (term,))
            terms.append(bound)
    predicate = conjunction(tuple(terms))
    assert predicate is not None, "a condition has a term"
    return Filter(plan.columns, plan, predicate)


def attached(plan: Node, expressions: Sequence[Expression]) -> tuple[Node, list[Expression]]:
    """(the plan with a column for each subquery behind its own, the expressions over these columns)."""
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


def _joined(plan: Node, part: Subquery) -> tuple[Node, Expression]:
    width = len(plan.columns)
    if part.kind == "exists":
        return _marked(plan, part.plan, None)
    if part.kind == "value":
        columns = (*plan.columns, ("subquery", part.type))
        joined = Join(columns, plan, part.plan, "single", (), None, tuple(range(width + 1)), part.span)
        return joined, Column(part.type, width, "subquery", span=part.span)
    return _three_valued(plan, part)


def _marked(plan: Node, rows: Node, argument: Expression | None) -> tuple[Node, Column]:
    """(the plan with a mark behind its columns, the mark): whether there are rows, or any whose value is the argument."""
    width = len(plan.columns)
    keys: tuple[JoinKey, ...] = ()
    if argument is not None:
        name, type_ = rows.columns[0]
        keys = ((argument, Column(type_, 0, name), False),)
    outputs = (*range(width), width + len(rows.columns))
    joined = Join((*plan.columns, ("mark", BOOLEAN)), plan, rows, "mark", keys, None, outputs)
    return joined, Column(BOOLEAN, width, "mark")


def _three_valued(plan: Node, part: Subquery) -> tuple[Node, Expression]:
    """IN as a value: NULL for a miss, if the argument is NULL or one of the rows, unless there are no rows."""
    (argument,) = part.arguments
    plan, mark = _marked(plan, part.plan, argument)
    width = len(plan.columns)
    name, type_ = part.plan.columns[0]
    calls = (AggregateCall(BIGINT, "count_star", ()), AggregateCall(BIGINT, "count", (Column(type_, 0, name),)))
    counts = Aggregate((("rows", BIGINT), ("values", BIGINT)), part.plan, (), calls)
    plan = Join((*plan.columns, *counts.columns), plan, counts, "single", (), None, tuple(range(width + 2)))
    rows, values = (Column(BIGINT, width + k, label) for k, label in enumerate(("rows", "values")))
    none = Comparison(BOOLEAN, "=", rows, Literal(BIGINT, 0))
    unknown = Or(BOOLEAN, (IsNull(BOOLEAN, argument), Comparison(BOOLEAN, "<", values, rows)))
    results = tuple(Literal(BOOLEAN, value) for value in (True, False, None))
    return plan, Case(BOOLEAN, (mark, none, unknown), results, Literal(BOOLEAN, False), span=part.span)
