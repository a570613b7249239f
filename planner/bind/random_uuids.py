"""uuid(): a constant of the statement where there are no rows; over rows, of a random seed and the row's number."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from gpudb.errors import BindError, Error, NotSupportedError
from gpudb.functions import lookup
from gpudb.planner.expressions import Call, Expression, Frame, Literal, Span, WindowCall
from gpudb.planner.parse import parse
from gpudb.types import BIGINT, HUGEINT, UUID

if TYPE_CHECKING:
    from gpudb.planner.bind.context import Context
    from gpudb.planner.bind.expressions import ExpressionBinder

NAMES = ("uuid", "gen_random_uuid", "uuidv4")


def bind_uuid(binder: ExpressionBinder, name: str, arguments: list[Expression], span: Span | None) -> Expression:
    """uuid() and its other names."""
    if arguments:
        raise BindError(f"{name} wants no arguments", span=span)
    context = binder.context
    context.volatile = True
    number = context.row_number
    if number is None and (binder.scope.columns or context.outer or context.recursions):
        if binder.windows is None:
            raise NotSupportedError(
                f"{name}() over rows is supported in the columns of a SELECT only", span=span, hint="use a subquery"
            )
        number = WindowCall(BIGINT, "row_number", (), (), (), (), Frame())
    function = lookup("random_uuid")
    assert function is not None, "the registry has what uuid() is made of"
    seed = Literal(HUGEINT, secrets.randbits(128) - (1 << 127))
    return Call(UUID, "random_uuid", (seed, number or Literal(BIGINT, 0)), function.overloads[0], span=span)


def is_random(context: Context, sql: str | None) -> bool:
    """Whether a DEFAULT gives each row a value of its own."""
    from gpudb.planner.bind.context import Context
    from gpudb.planner.bind.expressions import ExpressionBinder
    from gpudb.planner.bind.scope import Scope

    if sql is None:
        return False
    parsed = parse(f"SELECT {sql}")
    inner = Context(parsed, context.catalog, settings=context.settings)
    try:
        found = ExpressionBinder(inner, Scope(None, ()), clause="DEFAULT").bind(parsed.tree.expressions[0])
    except Error:
        return False  # nextval, which is bound by itself
    return any(isinstance(part, Call) and part.name == "random_uuid" for part in found.walk())
