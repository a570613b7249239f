"""uuid(): a constant of the statement where there are no rows; over rows, of a random seed and the row's number."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from gpudb.errors import BindError, NotSupportedError
from gpudb.functions import lookup
from gpudb.planner.expressions import Call, Expression, Frame, Literal, Span, WindowCall
from gpudb.types import BIGINT, HUGEINT, UUID

if TYPE_CHECKING:
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


def is_random(sql: str | None) -> bool:
    """Whether a DEFAULT gives each row a value of its own."""
    return sql is not None and any(f"{name}(" in sql.lower() for name in NAMES)
