"""CASE, COALESCE, IS NULL and filters whose outcome is part of the plan; literals with a slot stay parameters."""

from __future__ import annotations

from gpudb.planner.expressions import Case, Coalesce, Expression, IsNull, Literal
from gpudb.planner.logical import Filter, Node
from gpudb.planner.rules.rewriting import bottom_up, map_expressions
from gpudb.types import BOOLEAN


def fold_constants(node: Node) -> Node:
    """Fold what depends on no parameter and no column.

    >>> from gpudb.planner.logical import Scan
    >>> scan = Scan((), "t", ())
    >>> fold_constants(Filter((), scan, Literal(BOOLEAN, True))) is scan
    True
    """
    return bottom_up(node, _at)


def _at(node: Node) -> Node:
    node = map_expressions(node, lambda expression: expression.transform(_step))
    if isinstance(node, Filter) and _constant(node.predicate) and node.predicate.value is True:  # type: ignore[attr-defined]
        return node.input
    return node


def _constant(expression: Expression) -> bool:
    """A literal whose value no other execution can change."""
    return isinstance(expression, Literal) and expression.slot is None


def _step(expression: Expression) -> Expression:
    match expression:
        case IsNull(argument=Literal(slot=None, value=value)):
            return Literal(BOOLEAN, value is None, span=expression.span)
        case Coalesce(arguments=arguments):
            kept = [a for a in arguments if not (isinstance(a, Literal) and a.slot is None and a.value is None)]
            first = next((i for i, a in enumerate(kept) if _constant(a)), len(kept))
            kept = kept[: first + 1]
            if not kept:
                return arguments[0]
            if len(kept) == 1:
                return kept[0]
            return (
                expression
                if len(kept) == len(arguments)
                else Coalesce(expression.type, tuple(kept), span=expression.span)
            )
        case Case():
            return _case(expression)
    return expression


def _case(case: Case) -> Expression:
    """Branches that never hold go; the first that always holds ends the CASE."""
    conditions, results, otherwise = [], [], case.otherwise
    for condition, result in zip(case.conditions, case.results, strict=True):
        if isinstance(condition, Literal) and condition.slot is None:
            if condition.value:
                otherwise = result
                break
            continue
        conditions.append(condition)
        results.append(result)
    if not conditions:
        return otherwise
    if len(conditions) == len(case.conditions):
        return case
    return Case(case.type, tuple(conditions), tuple(results), otherwise, span=case.span)
