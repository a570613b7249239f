"""DEFAULT of a column: SQL that is kept with the table, and bound anew where a row leaves the column out."""

from __future__ import annotations

from typing import Any

from gpudb.errors import BindError, Error
from gpudb.planner.bind.casts import cast, castable
from gpudb.planner.bind.context import Context, span_of
from gpudb.planner.bind.expressions import ExpressionBinder
from gpudb.planner.bind.names import column_name
from gpudb.planner.bind.scope import Scope
from gpudb.planner.bind.sequences import drawn, sequence_of_default
from gpudb.planner.bind.views import constant
from gpudb.planner.expressions import Expression, Literal
from gpudb.planner.parse import parse
from gpudb.types import SqlType


def default_sql(context: Context, node: Any, type_: SqlType) -> str:
    """The SQL that DEFAULT says, as it is kept; an error where the column cannot take its value.  `node` is a sqlglot tree."""
    sql = str(column_name(node, context.parsed))
    try:
        bound_default(context, sql, type_)
        sequence_of_default(context, sql)
    except Error as error:
        raise type(error)(f"DEFAULT: {error.message}", span=span_of(node), hint=error.hint) from error
    return sql


def default_value(context: Context, layout: Any, ordinal: int, number: Expression | None = None) -> Expression:
    """What a row of a table has in a column that it leaves out: NULL, or the column's DEFAULT.

    number  of the row, where there are several
    """
    name, type_ = layout.columns[ordinal]
    sql = context.catalog.defaults(layout.name).get(name.lower())
    if sql is None:
        return Literal(type_, None)
    sequence = sequence_of_default(context, sql)
    if sequence is not None:
        context.volatile = True
        return cast(context, drawn(context, "nextval", sequence, None), type_)
    try:
        return bound_default(context, sql, type_, number)
    except Error as error:
        raise type(error)(f"DEFAULT of column {name}: {error.message}", hint=error.hint) from error


def bound_default(context: Context, sql: str, type_: SqlType, number: Expression | None = None) -> Expression:
    """The value of a DEFAULT, of the column's type."""
    parsed = parse(f"SELECT {sql}")
    inner = Context(parsed, context.catalog, settings=context.settings, row_number=number)
    expression = ExpressionBinder(inner, Scope(None, ()), clause="DEFAULT").bind(parsed.tree.expressions[0])
    if not castable(expression.type, type_):
        raise BindError(f"cannot cast {expression.type} to {type_}")
    context.volatile |= inner.volatile
    found: Expression = constant(cast(inner, expression, type_))
    return found
