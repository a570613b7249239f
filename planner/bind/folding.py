"""Constant expressions where a plan wants one value: LIMIT 2 * 10, range(1000 * 1000)."""

from __future__ import annotations

from gpudb.errors import OutOfRangeError
from gpudb.planner.bind.context import Context
from gpudb.planner.expressions import Call, Expression, Literal

_OPERATORS = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
}


def folded(context: Context, expression: Expression) -> Literal | None:
    """The expression as a literal whose value is part of the plan; None where it is no arithmetic of integer constants."""
    if isinstance(expression, Literal):
        context.consume(expression)
        return expression
    if not (isinstance(expression, Call) and expression.name in _OPERATORS and expression.type.is_integer):
        return None
    operands = [folded(context, argument) for argument in expression.arguments]
    values = [operand.value for operand in operands if operand is not None and operand.type.is_integer]
    if len(values) != 2:
        return None
    if None in values:
        return Literal(expression.type, None, span=expression.span)
    value = _OPERATORS[expression.name](*values)
    low, high = expression.type.bounds
    if not low <= value <= high:
        raise OutOfRangeError(f"a constant lies outside the range of {expression.type}: {value}", span=expression.span)
    return Literal(expression.type, value, span=expression.span)
