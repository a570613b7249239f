"""NOT moves down to comparisons, AND and OR are flattened, TRUE and FALSE drop out, what all terms of OR share comes out."""

from __future__ import annotations

from dataclasses import replace

from gpudb.planner.expressions import (
    And,
    Column,
    Comparison,
    Expression,
    Literal,
    Not,
    Or,
    conjunction,
    conjuncts,
)
from gpudb.planner.logical import Node
from gpudb.planner.rules.rewriting import bottom_up, map_expressions
from gpudb.types import BOOLEAN

_OPPOSITE = {
    "=": "<>",
    "<>": "=",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
    "is_distinct": "is_not_distinct",
    "is_not_distinct": "is_distinct",
}


def simplify_predicates(node: Node) -> Node:
    """Simplify the BOOLEAN expressions of a plan; three-valued logic stays what it is.

    >>> from gpudb.types import INTEGER
    >>> from gpudb.planner.expressions import Column
    >>> x, y = Column(INTEGER, 0, "x"), Column(INTEGER, 1, "y")
    >>> simplified(Not(BOOLEAN, Comparison(BOOLEAN, "<", x, y))).operator
    '>='
    """
    return bottom_up(node, lambda inner: map_expressions(inner, simplified))


def simplified(expression: Expression) -> Expression:
    """One expression, simplified."""
    return expression.transform(_step)


def _step(expression: Expression) -> Expression:
    match expression:
        case Not(argument=argument):
            return _negated(argument) or expression
        case And(arguments=arguments):
            return _flattened(expression, And, arguments)
        case Or(arguments=arguments):
            flat = _flattened(expression, Or, arguments)
            return _shared_taken_out(flat) if isinstance(flat, Or) else flat
    return expression


def _shared_taken_out(expression: Or) -> Expression:
    """(a AND b) OR (a AND c) as a AND (b OR c): joins look for equalities among the terms of AND.

    Both are TRUE, FALSE and NULL for the same a, b and c.  Only where a cannot fail, as it is asked in more rows then.
    """
    branches = [conjuncts(argument) for argument in expression.arguments]
    shared = tuple(term for term in branches[0] if _is_safe(term) and all(term in branch for branch in branches[1:]))
    if not shared:
        return expression
    rest = [conjunction(tuple(term for term in branch if term not in shared)) for branch in branches]
    if any(term is None for term in rest):  # a OR (a AND b) is a
        return conjunction(shared) or expression
    other = Or(BOOLEAN, tuple(term for term in rest if term is not None), span=expression.span)
    return And(BOOLEAN, (*shared, other), span=expression.span)


def _is_safe(term: Expression) -> bool:
    """A comparison of columns and literals never fails."""
    return isinstance(term, Comparison) and all(isinstance(side, Column | Literal) for side in (term.left, term.right))


def _negated(argument: Expression) -> Expression | None:
    """NOT argument without the NOT; None where it stays (IS NOT NULL, NOT IN, NOT of a column)."""
    match argument:
        case Not(argument=inner):
            return inner
        case Comparison(operator=operator):
            return replace(argument, operator=_OPPOSITE[operator])
        case Literal(value=value, slot=None):
            return Literal(BOOLEAN, None if value is None else not value, span=argument.span)
        case And(arguments=arguments):
            return Or(
                BOOLEAN, tuple(_step(Not(BOOLEAN, term, span=term.span)) for term in arguments), span=argument.span
            )
        case Or(arguments=arguments):
            return And(
                BOOLEAN, tuple(_step(Not(BOOLEAN, term, span=term.span)) for term in arguments), span=argument.span
            )
    return None


def _flattened(expression: Expression, kind: type[And] | type[Or], arguments: tuple[Expression, ...]) -> Expression:
    """AND in AND and OR in OR become one; the neutral constant drops out, the absorbing one wins."""
    neutral = kind is And
    terms: list[Expression] = []
    for argument in arguments:
        terms += argument.arguments if isinstance(argument, kind) else [argument]
    kept = []
    for term in terms:
        if isinstance(term, Literal) and term.slot is None and term.value is not None:
            if term.value == neutral:
                continue
            return term
        kept.append(term)
    if not kept:
        return Literal(BOOLEAN, neutral, span=expression.span)
    if len(kept) == 1:
        return kept[0]
    same = len(kept) == len(arguments) and all(a is b for a, b in zip(kept, arguments, strict=True))
    return expression if same else kind(BOOLEAN, tuple(kept), span=expression.span)
