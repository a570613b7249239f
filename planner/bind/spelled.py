"""Expressions written as SQL over bound parts, for operators and casts that are made of functions."""

from __future__ import annotations

from dataclasses import replace

from gpudb.planner.bind.context import Context
from gpudb.planner.expressions import Expression, Span


def spelled(context: Context, sql: str, span: Span | None = None, **parts: Expression) -> Expression:
    """The SQL with bound expressions in the place of its names."""
    from gpudb.planner.bind.expressions import ExpressionBinder
    from gpudb.planner.bind.functions import expand
    from gpudb.planner.bind.scope import Scope

    binder = ExpressionBinder(context, Scope(None, ()), clause="an operator")
    found = expand(binder, (tuple(parts), sql), list(parts.values()), span)
    return replace(found, span=span) if span is not None else found
