"""GROUP BY: from expressions over the input to expressions over the groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from gpudb.errors import BindError
from gpudb.planner.bind.context import Context
from gpudb.planner.bind.subqueries import Subquery
from gpudb.planner.expressions import AggregateCall, Column, Expression, Literal, Outer
from gpudb.planner.rules.rewriting import bottom_up, map_expressions
from gpudb.record import record
from gpudb.types import BIGINT


def map_children(expression: Expression, function: Callable[[Expression], Expression]) -> Expression:
    """The expression with `function` applied to each direct child; the same object where nothing changes."""
    changes: dict[str, Any] = {}
    for item in fields(expression):
        value = getattr(expression, item.name)
        if isinstance(value, Expression):
            new: Any = function(value)
        elif isinstance(value, tuple) and any(isinstance(element, Expression) for element in value):
            new = tuple(function(element) if isinstance(element, Expression) else element for element in value)
            if all(a is b for a, b in zip(new, value, strict=True)):
                new = value
        else:
            continue
        if new is not value:
            changes[item.name] = new
    return replace(expression, **changes) if changes else expression


def by_value(expression: Expression) -> Expression:
    """The expression with its literals as plain values, so that `a + 1` here equals `a + 1` there."""

    def strip(part: Expression) -> Expression:
        if isinstance(part, Literal) and part.slot is not None:
            return Literal(part.type, part.value)
        return part

    return expression.transform(strip)


@record
class GroupBy:
    """What GROUP BY says: all keys, and the numbers of those that make each grouping set; sets is None for one set of all."""

    keys: list[Expression]
    sets: tuple[tuple[int, ...], ...] | None


class Groups:
    """The keys of one aggregation, and the aggregate calls that the clauses above it need.

    After `rewrite`, Column i is key i for i < len(keys), else aggregate i - len(keys).  GROUPING is an aggregate among them,
    of the columns that are the keys it asks about.
    """

    def __init__(self, context: Context, by: GroupBy | None) -> None:
        self.context = context
        self.keys = keys = by.keys if by is not None else []
        self.sets = by.sets if by is not None else None
        self.positions: dict[Expression, int] = {}
        self.own = {id(key): index for index, key in enumerate(keys)}  # where several keys have one value
        for index, key in enumerate(keys):
            self.positions.setdefault(by_value(key), index)
        self.aggregates: list[AggregateCall] = []
        self.aggregate_positions: dict[AggregateCall, int] = {}

    def rewrite(self, expression: Expression) -> Expression:
        """The expression over the groups; a column that is no key is a BindError."""
        if not isinstance(expression, Literal) or any(
            expression is key for key in self.keys
        ):  # a constant by its ordinal
            own = None if self.sets is None else self.own.get(id(expression))
            index = self.positions.get(by_value(expression)) if own is None else own
            if index is not None:
                key = self.keys[index]
                if not isinstance(expression, Column):
                    # Equal by the values of their literals: other values may not be equal.
                    self.context.consume(expression)
                    self.context.consume(key)
                name = expression.name if isinstance(expression, Column) else ""
                return Column(key.type, index, name, span=expression.span)
        if isinstance(expression, AggregateCall):
            if expression.name == "grouping":
                expression = self._of_keys(expression)
                if self.sets is None:
                    return Literal(BIGINT, 0, span=expression.span)  # every key is in the one set
            position = self.aggregate_positions.get(expression)
            if position is None:
                position = len(self.aggregates)
                self.aggregate_positions[expression] = position
                self.aggregates.append(expression)
            return Column(expression.type, len(self.keys) + position, expression.name, span=expression.span)
        if isinstance(expression, Column):
            raise BindError(
                f"column must be in GROUP BY or in an aggregate function: {expression.name}",
                span=expression.span,
                hint=f"add it to GROUP BY, or write any_value({expression.name})",
            )
        if isinstance(expression, Subquery):
            expression = self._with_keys_outside(expression)
        return map_children(expression, self.rewrite)

    def _of_keys(self, call: AggregateCall) -> AggregateCall:
        """GROUPING over numbers of keys; without arguments of all keys."""
        if not self.keys:
            raise BindError("GROUPING without GROUP BY", span=call.span)
        for argument in call.arguments:
            if isinstance(argument, Literal) or by_value(argument) not in self.positions:
                raise BindError("GROUPING wants keys of GROUP BY", span=argument.span or call.span)
        found = [self.rewrite(argument) for argument in call.arguments]
        if not found:
            found = [Column(key.type, index, "") for index, key in enumerate(self.keys)]
        return replace(call, arguments=tuple(found))

    def _with_keys_outside(self, subquery: Subquery) -> Subquery:
        """The subquery with each key that it computes of outside values, `t.a + 1` of GROUP BY a + 1, as one such value."""
        arguments = list(subquery.arguments)

        def raised(part: Expression) -> Expression:
            return arguments[part.index] if isinstance(part, Outer) else part

        def placed(part: Expression) -> Expression:
            if not isinstance(part, Outer | Column | Literal) and not _reads_rows(part):
                value = part.transform(raised)
                index = self.positions.get(by_value(value))
                if index is not None:
                    self.context.consume(value)
                    self.context.consume(self.keys[index])
                    if value not in arguments:
                        arguments.append(value)
                    return Outer(part.type, arguments.index(value), "key", span=part.span)
            return map_children(part, placed)

        plan = bottom_up(subquery.plan, lambda node: map_expressions(node, placed))
        if plan is subquery.plan:
            return subquery
        used: list[Expression] = []

        def renumbered(part: Expression) -> Expression:
            if not isinstance(part, Outer):
                return part
            if arguments[part.index] not in used:
                used.append(arguments[part.index])
            return replace(part, index=used.index(arguments[part.index]))

        plan = bottom_up(plan, lambda node: map_expressions(node, lambda inner: inner.transform(renumbered)))
        return replace(subquery, plan=plan, arguments=tuple(used))


def _reads_rows(expression: Expression) -> bool:
    """Does it read the rows of its own query, or is it an aggregate of them?"""
    return any(isinstance(part, Column | AggregateCall) for part in expression.walk())


def reads_rows(expression: Expression) -> bool:
    """Does it read columns of its own query's rows outside of aggregates?"""
    if isinstance(expression, Column | AggregateCall):
        return isinstance(expression, Column)
    return any(map(reads_rows, expression.children()))
