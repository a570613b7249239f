"""Binding: names get columns, expressions get types, implicit casts are written out.

    parsed = parse("SELECT carrier, avg(delay) FROM flights GROUP BY 1")
    statement = bind(parsed, catalog)          # a planner.statements.Query with a logical plan

Modules: `scope` finds columns, `casts` knows the types, `operators`, `functions` and `aggregates` know what may be
called, `names` what a result column is called, `grouping` puts expressions over groups, `query` and `statements` put it all
together.  What is valid SQL but not here raises NotSupportedError with its name and place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from gpudb.catalog import Catalog, View
from gpudb.errors import Error, InterfaceError
from gpudb.planner.bind.context import Context, parameters_by_name
from gpudb.planner.bind.ordered_aggregates import spelled_out
from gpudb.planner.bind.statements import StatementBinder
from gpudb.planner.expressions import Expression
from gpudb.planner.logical import Node
from gpudb.planner.parse import Parsed, on_a_big_stack
from gpudb.planner.statements import Explain, Statement
from gpudb.types import SqlType

__all__ = ["bind", "view_columns"]


def bind(
    parsed: Parsed,
    catalog: Catalog,
    parameter_types: Sequence[SqlType] | Mapping[str, SqlType] | None = None,
    *,
    parameter_values: Sequence[Any] | Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Statement:
    """The bound statement; raises BindError, CatalogError, NotSupportedError or a DataError of a literal, with the place.

    parameter_types   by position or by name
    parameter_values  likewise, in the form of `Literal.value`; needed where the plan consumes them (LIMIT ?)
    settings          integer_division changes what / means
    """
    context = Context(
        parsed,
        catalog,
        parameters_by_name(parameter_types),
        parameters_by_name(parameter_values),
        settings or {},
    )

    surplus = [name for name in context.parameter_types if name not in parsed.parameters]
    if surplus:
        raise InterfaceError(
            f"the statement has no such parameter: {', '.join(surplus)}", hint=_parameters_of(parsed)
        ).attach_sql(parsed.sql)

    def run() -> Statement:
        statement: Statement = _spelled_out(context, StatementBinder(context).bind(parsed.tree))
        return statement

    try:
        statement = on_a_big_stack(run) if parsed.deep else run()
    except Error as error:
        error.attach_sql(parsed.sql)
        raise
    notes: dict[str, Any] = {
        "consumed": frozenset(context.consumed),
        "tables": frozenset(context.tables),
        "volatile": context.volatile,
        "draws": tuple(context.draws),
    }
    if isinstance(statement, Explain):
        statement = replace(statement, statement=replace(statement.statement, **notes))
    return replace(statement, **notes)


def _spelled_out(context: Context, value: Any) -> Any:
    """A statement, or a part of one, with its plans as they can be run."""
    if isinstance(value, Node):
        return spelled_out(context, value)
    if isinstance(value, tuple):
        parts_of = tuple(_spelled_out(context, part) for part in value)
        return parts_of if any(new is not old for new, old in zip(parts_of, value, strict=True)) else value
    if not is_dataclass(value) or isinstance(value, (Expression, SqlType)):
        return value
    parts = {item.name: getattr(value, item.name) for item in fields(value)}
    changes = {name: new for name, part in parts.items() if (new := _spelled_out(context, part)) is not part}
    return replace(value, **changes) if changes else value  # type: ignore[type-var]  # no class, but one's instance


def view_columns(view: View, catalog: Catalog, settings: Mapping[str, Any]) -> list[tuple[str, SqlType]]:
    """(name, SQL type) of a view's columns; raises what binding its query raises."""
    from gpudb.planner.bind.views import own_plan
    from gpudb.planner.parse import parse

    return list(own_plan(Context(parse(view.sql), catalog, settings=settings), view).columns)


def _parameters_of(parsed: Parsed) -> str:
    """What a statement takes, as a hint."""
    return f"its parameters are: {', '.join(parsed.parameters)}" if parsed.parameters else "it takes no parameters"
