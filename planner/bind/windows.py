"""Window functions: name(arguments) OVER (PARTITION BY ... ORDER BY ... frame), and the nodes that compute them.

Calls are bound as parts of expressions.  `windowed` takes them out of the expressions of a SELECT: those of one partition and
order become one Window node, and each a column of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpudb.errors import BindError, NotSupportedError
from gpudb.planner.bind import aggregates
from gpudb.planner.bind.casts import cast, common_type
from gpudb.planner.bind.context import join_spans, own_span, span_of
from gpudb.planner.bind.names import describe
from gpudb.planner.bind.operators import arithmetic
from gpudb.planner.bind.over import Over, end_of_frame, over
from gpudb.planner.bind.subqueries import attached
from gpudb.planner.expressions import (
    CURRENT,
    FOLLOWING,
    PRECEDING,
    UNBOUNDED_FOLLOWING,
    UNBOUNDED_PRECEDING,
    AggregateCall,
    Column,
    Expression,
    Frame,
    Literal,
    Span,
    WindowCall,
)
from gpudb.planner.logical import Node, SortKey, Window
from gpudb.planner.tokens import plain
from gpudb.types import BIGINT, DOUBLE, NULL, SqlType

if TYPE_CHECKING:
    from gpudb.planner.bind.expressions import ExpressionBinder

# Least and greatest number of arguments.
_ARGUMENTS = {
    "row_number": (0, 0),
    "rank": (0, 0),
    "dense_rank": (0, 0),
    "percent_rank": (0, 0),
    "cume_dist": (0, 0),
    "ntile": (1, 1),
    "lag": (1, 3),
    "lead": (1, 3),
    "first_value": (1, 1),
    "last_value": (1, 1),
    "nth_value": (2, 2),
}
_SPELLINGS = {"rank_dense": "dense_rank", "first": "first_value", "last": "last_value", "arbitrary": "first_value"}
NAMES = (*_ARGUMENTS, "rank_dense")
_SHARES = ("percent_rank", "cume_dist")
_OF_VALUES = ("lag", "lead", "first_value", "last_value", "nth_value")
_SUMMED = frozenset(  # aggregates that are summed up over frames
    """count_star count sum avg min max bool_and bool_or var_samp var_pop stddev_samp stddev_pop corr covar_samp
    covar_pop""".split()
)
_CHOSEN = {"first": "first_value", "any_value": "first_value", "last": "last_value"}
_EXCLUDED = {"NO OTHERS": "none", "CURRENT ROW": "current", "GROUP": "group", "TIES": "ties"}


def bind_window(binder: ExpressionBinder, node: Any) -> Expression:
    """The call, or an expression of several where an aggregate is made of others."""
    if binder.windows is None:
        raise BindError(f"window function is not allowed in {binder.clause}", span=span_of(node))
    function, condition, ignore_nulls = _function(node)
    written = plain(str(function.this)).lower()
    place = own_span(function)
    inner = binder.inside_window(written)
    parts = over(node, binder.windows)
    partition = tuple(inner.bind(item) for item in parts.partition)
    order, directions = _order(inner, parts)
    keys = _Keys(inner, partition, order, directions, place)
    name = _SPELLINGS.get(written, written)
    in_order = aggregates.is_aggregate(written) and any(node.key == "order" for node in function.expressions)
    if name in _ARGUMENTS and not in_order:
        if condition is not None and name not in _OF_VALUES:
            raise BindError(f"FILTER belongs to an aggregate function, this is none: {written}", span=place)
        return _plain_call(keys, name, written, function, condition, ignore_nulls, parts.spec)
    if not aggregates.is_aggregate(written):
        raise BindError(f"not a window function, nor an aggregate function: {written}", span=place)
    if ignore_nulls:
        raise BindError(f"IGNORE NULLS does not belong to this function: {written}", span=place)
    bound = aggregates.bind_aggregate(inner, written, function, condition, over=True)
    return _over_window(bound, keys, *keys.frame(parts.spec))


def _over_window(
    expression: Expression, keys: _Keys, frame: Frame, start: Expression | None, end: Expression | None
) -> Expression:
    """The expression with its outermost aggregates as calls over the window."""
    if not isinstance(expression, AggregateCall):
        return expression.replaced(
            {part: _over_window(part, keys, frame, start, end) for part in _outermost_aggregates(expression)}
        )
    name = expression.name
    if name == "grouping":
        raise NotSupportedError(f"{name} as a window function is not supported", span=expression.span)
    return WindowCall(
        expression.type,
        name if expression.filter is not None else _CHOSEN.get(name, name),
        expression.arguments,
        keys.partition,
        keys.order,
        keys.directions,
        frame,
        start,
        end,
        expression.filter,
        expression.distinct,
        name == "any_value",
        span=expression.span,
    )


def is_framed(call: WindowCall) -> bool:
    """Whether a call is made of the rows of its frames (`framed_aggregates`): no running sum, and no place, says its value."""
    return call.distinct or (call.name not in _SUMMED and call.name not in _ARGUMENTS)


def _outermost_aggregates(expression: Expression) -> list[Expression]:
    if isinstance(expression, AggregateCall):
        return [expression]
    return [part for child in expression.children() for part in _outermost_aggregates(child)]


def _function(node: Any) -> tuple[Any, Any, bool]:
    """(the function's tree, the condition of its FILTER, whether it ignores NULLs)."""
    function, condition, ignore_nulls = node.this, None, False
    while function.key in ("filter", "ignorenulls", "respectnulls"):
        if function.key == "filter":
            condition = function.expression.this
        else:
            ignore_nulls = function.key == "ignorenulls"
        function = function.this
    if function.key != "anonymous":
        raise NotSupportedError(f"{describe(function)} with OVER is not supported", span=span_of(node))
    last = function.expressions[-1] if function.expressions else None
    return function, condition, ignore_nulls or (last is not None and last.key == "ignorenulls")


def _order(binder: ExpressionBinder, parts: Over) -> tuple[tuple[Expression, ...], tuple[tuple[bool, bool], ...]]:
    """ORDER BY of a window: expressions, and of each whether it descends and NULLs come first."""
    expressions: list[Expression] = []
    directions: list[tuple[bool, bool]] = []
    in_range = parts.spec is not None and str(parts.spec.args["kind"]).lower() == "range"  # may have offsets from it
    for term in parts.order.expressions if parts.order is not None else ():
        expression = binder.bind(term.this)
        if isinstance(expression, Literal) and not in_range:
            binder.context.consume(expression)  # a constant orders nothing
            continue
        expressions.append(expression)
        directions.append((bool(term.args.get("desc")), bool(term.args.get("nulls_first"))))
    return tuple(expressions), tuple(directions)


class _Keys:
    """A window's partition and order, bound; `frame` may cast the order for a RANGE."""

    def __init__(
        self,
        binder: ExpressionBinder,
        partition: tuple[Expression, ...],
        order: tuple[Expression, ...],
        directions: tuple[tuple[bool, bool], ...],
        place: Span | None,
    ) -> None:
        self.binder = binder
        self.partition = partition
        self.order = order
        self.directions = directions
        self.place = place

    def frame(self, spec: Any) -> tuple[Frame, Expression | None, Expression | None]:
        """(the frame, the offsets of its ends)."""
        if spec is None:
            return Frame(), None, None
        unit = str(spec.args["kind"]).lower()
        start, offset = end_of_frame(spec, "start")
        end, other = end_of_frame(spec, "end") if spec.args.get("end") is not None else (CURRENT, None)
        if start == UNBOUNDED_FOLLOWING or end == UNBOUNDED_PRECEDING or (start, end) in _BACKWARDS:
            raise BindError("a window frame begins behind its end", span=span_of(spec) or self.place)
        exclude = spec.args.get("exclude")
        excluded = "none" if exclude is None else _EXCLUDED[str(exclude.name or exclude.this).upper()]
        frame = Frame(unit, start, end, excluded)
        nodes = (offset, other)
        if unit == "range" and any(node is not None for node in nodes):
            return frame, *self._values(frame, nodes)
        bound = [None if node is None else self._count(node) for node in nodes]
        return frame, bound[0], bound[1]

    def _count(self, node: Any) -> Expression:
        offset = self.binder.bind(node)
        if offset.type.is_text and self.binder.context.is_literal_token(offset):
            return cast(self.binder.context, offset, BIGINT)
        if not (offset.type.is_numeric or offset.type.kind in ("BOOLEAN", "NULL")):
            raise BindError(f"offset of a window frame wants a number, not {offset.type}", span=offset.span)
        return cast(self.binder.context, offset, BIGINT)

    def _values(self, frame: Frame, nodes: tuple[Any, Any]) -> tuple[Expression | None, Expression | None]:
        """What the order must reach at either end; both of one type, which the order is cast to."""
        if len(self.order) != 1:
            raise BindError("RANGE with an offset wants one ORDER BY expression", span=self.place)
        context, key, descending = self.binder.context, self.order[0], self.directions[0][0]
        values: list[Expression | None] = []
        for node, side in zip(nodes, (frame.start, frame.end), strict=True):
            if node is None:
                values.append(None)
                continue
            offset = self.binder.bind(node)
            name = "subtract" if (side == PRECEDING) != descending else "add"
            values.append(arithmetic(context, name, key, offset))
        given = [key, *(value for value in values if value is not None)]
        type_ = common_type(context, given)
        if type_ is None or type_.is_text:
            shown = ", ".join(str(item.type) for item in given)
            raise BindError(f"no RANGE over these types: {shown}", span=self.place)
        self.order = (cast(context, key, type_),)
        bounds = [None if value is None else cast(context, value, type_) for value in values]
        return bounds[0], bounds[1]


_BACKWARDS = ((CURRENT, PRECEDING), (FOLLOWING, PRECEDING), (FOLLOWING, CURRENT))


def _plain_call(
    keys: _Keys, name: str, written: str, function: Any, condition: Any, ignore_nulls: bool, spec: Any
) -> WindowCall:
    """A function that is no aggregate."""
    binder, place = keys.binder, keys.place
    context = binder.context
    least, most = _ARGUMENTS[name]
    nodes = [node.this if node.key in ("ignorenulls", "respectnulls") else node for node in function.expressions]
    if any(node.key in ("order", "distinct") for node in nodes):
        raise NotSupportedError(f"{describe(nodes[0])} in {written} is not supported", span=place)
    if not least <= len(nodes) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise BindError(f"{written} wants {wanted} argument(s), not {len(nodes)}", span=place)
    if ignore_nulls and name not in _OF_VALUES:
        raise BindError(f"IGNORE NULLS does not belong to this function: {written}", span=place)
    arguments = [binder.bind(node) for node in nodes]
    type_: SqlType = DOUBLE if name in _SHARES else BIGINT
    if name in _OF_VALUES:
        type_ = arguments[0].type
        if len(arguments) == 3:
            common = common_type(context, [arguments[0], arguments[2]])
            if common is None:
                shown = f"{arguments[0].type}, {arguments[2].type}"
                raise BindError(f"{written} has a default of another type: {shown}", span=place)
            type_ = common if type_ == NULL else type_
            arguments[0], arguments[2] = (cast(context, arguments[k], type_) for k in (0, 2))
    for at in (0,) if name == "ntile" else (1,):
        if at < len(arguments):
            if arguments[at].type.is_text and context.is_literal_token(arguments[at]):
                arguments[at] = cast(context, arguments[at], BIGINT)
            if not (arguments[at].type.is_integer or arguments[at].type.kind == "NULL"):
                raise BindError(f"{written} wants an integer, not {arguments[at].type}", span=arguments[at].span)
            arguments[at] = cast(context, arguments[at], BIGINT)
    frame, start, end = keys.frame(spec)
    filter_ = None if condition is None else binder.condition(condition)
    if filter_ is not None:
        raise NotSupportedError(f"FILTER with {written} is not supported", span=place)
    span = join_spans(place, *(argument.span for argument in arguments))
    return WindowCall(
        type_,
        name,
        tuple(arguments),
        keys.partition,
        keys.order,
        keys.directions,
        frame,
        start,
        end,
        None,
        False,
        ignore_nulls,
        span=span,
    )


def contains_window(expression: Expression) -> bool:
    """Whether a window function occurs in a bound expression."""
    return any(isinstance(part, WindowCall) for part in expression.walk())


def windowed(plan: Node, *lists: Sequence[Expression]) -> tuple[Node, list[list[Expression]]]:
    """(the plan with a Window node for each partition and order in the expressions, the expressions over its columns)."""
    calls = dict.fromkeys(
        part for expressions in lists for one in expressions for part in one.walk() if isinstance(part, WindowCall)
    )
    if not calls:
        return plan, [list(expressions) for expressions in lists]
    nodes: dict[Any, list[WindowCall]] = {}
    for call in calls:
        nodes.setdefault((call.partition, call.order, call.directions), []).append(call)
    columns: dict[Expression, Expression] = {}
    for (partition, order, directions), together in nodes.items():
        width = len(plan.columns)
        bare = tuple(replace(call, partition=(), order=(), directions=()) for call in together)
        plan, inputs = attached(plan, (*partition, *order, *bare))
        width = len(plan.columns)
        keys, terms = inputs[: len(partition)], inputs[len(partition) : len(partition) + len(order)]
        sort_keys = tuple(SortKey(term, *way) for term, way in zip(terms, directions, strict=True))
        named = tuple((call.name, call.type) for call in together)
        plan = Window(
            (*plan.columns, *named),
            plan,
            tuple(keys),
            sort_keys,
            tuple(inputs[len(partition) + len(order) :]),  # type: ignore[arg-type]  # attached() gives calls for calls
        )
        for at, call in enumerate(together):
            columns[call] = Column(call.type, width + at, call.name, span=call.span)
    return plan, [[expression.replaced(columns) for expression in expressions] for expressions in lists]
