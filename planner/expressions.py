"""Bound expressions: names resolved, types known, implicit casts written out.

Every node is a frozen dataclass with a `type` (the SQL type of its value) and a `span` (where it stands in the
statement, for errors).  Nothing here touches data.  The binder makes these trees, rules rewrite them, `emit` lowers them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, fields
from functools import cache
from typing import Any

from gpudb.functions.registry import Overload
from gpudb.record import record, replace
from gpudb.types import BOOLEAN, SqlType

Span = tuple[int, int]


@record
class Expression:
    """Base: `type` is the SQL type of the value; `span` never takes part in equality."""

    type: SqlType
    span: Span | None = field(default=None, compare=False, kw_only=True)

    def children(self) -> Iterator[Expression]:
        """Direct sub-expressions, in evaluation order."""
        for name in _child_fields(type(self)):  # type: ignore[arg-type]  # mypy takes a type's __hash__ for its instances'
            value = getattr(self, name)
            if isinstance(value, Expression):
                yield value
            elif value is not None:
                yield from value

    def walk(self) -> Iterator[Expression]:
        """This node and everything under it, parents first; in linear time however deep."""
        stack: list[Expression] = [self]
        while stack:
            part = stack.pop()
            yield part
            stack += reversed(list(part.children()))

    def transform(self, function: Callable[[Expression], Expression]) -> Expression:
        """Rebuild bottom-up; returns the same object where `function` changes nothing."""
        if not _child_fields(type(self)):  # type: ignore[arg-type]  # as above
            return function(self)
        return function(self._with_children(lambda child: child.transform(function)))

    def _with_children(self, function: Callable[[Expression], Expression]) -> Expression:
        changes: dict[str, Any] = {}
        for name in _child_fields(type(self)):  # type: ignore[arg-type]  # mypy takes a type's __hash__ for its instances'
            value = getattr(self, name)
            if isinstance(value, Expression):
                new = function(value)
                if new is not value:
                    changes[name] = new
            elif value:
                rebuilt = tuple(function(element) for element in value)
                if any(a is not b for a, b in zip(rebuilt, value, strict=True)):
                    changes[name] = rebuilt
        return replace(self, **changes) if changes else self

    def replaced(self, by: Mapping[Expression, Expression]) -> Expression:
        """The largest parts that are keys of `by` replaced by its values; the same object where there is none."""
        return by[self] if self in by else self._with_children(lambda child: child.replaced(by))


@cache
def _child_fields(kind: type[Expression]) -> tuple[str, ...]:
    """Names of the fields that hold an expression, None, or a tuple of expressions: by their annotations."""
    return tuple(item.name for item in fields(kind) if "Expression" in str(item.type) or "Literal" in str(item.type))


@record
class Literal(Expression):
    """A constant.  value: None, bool, int (also scaled DECIMAL, days, microseconds), float, str, or Interval.

    slot  which literal token or parameter of the statement it came from: then the value is a parameter of the plan
          and may differ when the plan is used again.  None: the value is part of the plan.
    steps what was done to the slot's raw value to get `value`: (operation, source type, target type), operation being
          negate, cast, "cast in" a time zone, a unit of INTERVAL x UNIT, or "microseconds of" an INTERVAL.
          `planner.constants.literal_value` repeats them on another raw value
    bound what the raw value of a number in the text is at most, in every execution: the plan's key holds its width; None
          where it may be any of its type
    """

    value: Any = None
    slot: int | None = None
    steps: tuple[tuple[str, SqlType, SqlType], ...] = ()
    bound: int | None = field(default=None, compare=False, kw_only=True)


@record
class Column(Expression):
    """Column number `index` of the input node's output."""

    index: int
    name: str


@record
class Outer(Expression):
    """Value `index` of those that a subquery takes of the row outside of it; joins take its place before any rule."""

    index: int
    name: str


@record
class Call(Expression):
    """A scalar function or operator of the registry; arguments already have the overload's types.

    name  the registry's canonical name: operators are add subtract multiply divide integer_divide modulo negate
          bit_and bit_or bit_xor bit_not shift_left shift_right power concat like ilike regexp_matches ...
    """

    name: str
    arguments: tuple[Expression, ...]
    overload: Overload | None = field(default=None, compare=False)


@record
class Comparison(Expression):
    """left operator right, both of one type.  operator: = <> < <= > >= ; with NULLs: `is_distinct`, `is_not_distinct`."""

    operator: str
    left: Expression
    right: Expression


@record
class And(Expression):
    """Three-valued AND of two or more BOOLEANs."""

    arguments: tuple[Expression, ...]


@record
class Or(Expression):
    """Three-valued OR of two or more BOOLEANs."""

    arguments: tuple[Expression, ...]


@record
class Not(Expression):
    """Three-valued NOT."""

    argument: Expression


@record
class IsNull(Expression):
    """argument IS NULL; never NULL itself.  IS NOT NULL is Not(IsNull(x))."""

    argument: Expression


@record
class InList(Expression):
    """argument IN (items), all of one type, items being Literals (anything else is bound as an Or of comparisons).

    A NULL among the items makes a miss NULL.  NOT IN is Not(InList(...)).
    """

    argument: Expression
    items: tuple[Literal, ...]


@record
class Case(Expression):
    """CASE WHEN conditions[i] THEN results[i] ... ELSE otherwise END; all results have `type`.

    COALESCE, NULLIF, IFNULL, GREATEST and LEAST keep nodes or calls of their own where they are cheaper.
    """

    conditions: tuple[Expression, ...]
    results: tuple[Expression, ...]
    otherwise: Expression


@record
class Coalesce(Expression):
    """The first argument that is not NULL."""

    arguments: tuple[Expression, ...]


@record
class Cast(Expression):
    """CAST(argument AS type); `try_` gives NULL where CAST raises."""

    argument: Expression
    try_: bool = False


@record
class AggregateCall(Expression):
    """One aggregate of an Aggregate node; its arguments are over the node's input.

    name  count_star count sum avg min max stddev_samp stddev_pop var_samp var_pop corr covar_samp covar_pop bool_and
          bool_or bit_and bit_or bit_xor any_value arg_min arg_max first last (the lowest and the highest row's, NULL too);
          grouping, of keys, until the plan is made
    """

    name: str
    arguments: tuple[Expression, ...]
    distinct: bool = False
    filter: Expression | None = None


UNBOUNDED_PRECEDING, PRECEDING, CURRENT, FOLLOWING, UNBOUNDED_FOLLOWING = range(5)
"""Ends of a window frame, in the order in which they may begin and end one."""


@record
class Frame:
    """Which rows of a partition a window function sees of each row.

    unit     rows, range or groups: what offsets count, and what CURRENT ROW means (the row, or its peers)
    start, end  one of UNBOUNDED_PRECEDING .. UNBOUNDED_FOLLOWING
    exclude  none, current, group or ties: which rows around the current one are left out
    """

    unit: str = "range"
    start: int = UNBOUNDED_PRECEDING
    end: int = CURRENT
    exclude: str = "none"


@record
class WindowCall(Expression):
    """function(arguments) OVER (PARTITION BY partition ORDER BY order frame); of a Window node's call the latter two are ().

    name        row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value, or an
                aggregate as of AggregateCall
    directions  of each ORDER BY term: descending, and whether NULLs come first
    start, end  offsets of the frame's ends: rows or groups, BIGINT; of a RANGE the value to be reached, of the order's type
    """

    name: str
    arguments: tuple[Expression, ...]
    partition: tuple[Expression, ...]
    order: tuple[Expression, ...]
    directions: tuple[tuple[bool, bool], ...]
    frame: Frame
    start: Expression | None = None
    end: Expression | None = None
    filter: Expression | None = None
    distinct: bool = False
    ignore_nulls: bool = False


def has_side_effects(expression: Expression) -> bool:
    """Does it call a function that may give something else the next time?"""
    return any(
        isinstance(part, Call) and part.overload is not None and part.overload.side_effects
        for part in expression.walk()
    )


def conjuncts(condition: Expression | None) -> tuple[Expression, ...]:
    """The terms of a conjunction, flattened; () for None."""
    if condition is None:
        return ()
    if isinstance(condition, And):
        return tuple(term for argument in condition.arguments for term in conjuncts(argument))
    return (condition,)


def conjunction(terms: tuple[Expression, ...]) -> Expression | None:
    """AND of the terms; None for no term."""
    if not terms:
        return None
    return terms[0] if len(terms) == 1 else And(BOOLEAN, terms)
