"""Aggregates that need all values of a group: quantiles, mode, entropy, deviation from the median, texts.  They are plans.

Quantiles sort the rows by (keys, value), number them, find where each group begins and how many rows it has, and pick the
values at the places that follow; STRING_AGG sorts likewise, and the host joins the texts.  MODE and ENTROPY count each value
of each group first.  What comes out is joined to the groups of the other aggregates by the keys, so that a group without
values has a row too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gpudb.planner.bind.context import Context
from gpudb.planner.bind.expressions import ExpressionBinder
from gpudb.planner.bind.functions import expand
from gpudb.planner.bind.scope import Scope
from gpudb.planner.bind.unnesting import columns_of, where
from gpudb.planner.expressions import (
    AggregateCall,
    Call,
    Coalesce,
    Column,
    Comparison,
    Expression,
    Frame,
    IsNull,
    Literal,
    Not,
    WindowCall,
    conjunction,
    conjuncts,
)
from gpudb.planner.logical import (
    Aggregate,
    Filter,
    Join,
    JoinedTexts,
    Kept,
    Node,
    Numbered,
    OutputColumn,
    Picked,
    Project,
    Sort,
    SortKey,
    Window,
)
from gpudb.planner.rules.rewriting import bottom_up, columns_read, renumber
from gpudb.types import BIGINT, BOOLEAN, DOUBLE, HUGEINT, TIME, TIMESTAMPTZ

_QUANTILES = ("quantile_cont", "quantile_disc")
NAMES = (*_QUANTILES, "mode", "entropy", "mad", "string_agg", "list_of_first", "first_in_order")
MEDIAN = (Literal(DOUBLE, 0.5), Literal(BOOLEAN, False))


def aggregated(plan: Node, keys: Sequence[Expression], calls: Sequence[AggregateCall], names: Sequence[str]) -> Node:
    """GROUP BY `keys`: the columns are keys, of these names, then aggregates of whatever kind, until `spelled_out`."""
    columns = tuple((name, key.type) for name, key in zip(names, keys, strict=True))
    columns += tuple((call.name, call.type) for call in calls)
    return Aggregate(columns, plan, tuple(keys), tuple(calls))


def spelled_out(context: Context, plan: Node) -> Node:
    """A plan that is bound, its subqueries joined, with plans in the place of such aggregates."""

    def at(node: Node) -> Node:
        if not isinstance(node, Aggregate) or all(call.name not in NAMES for call in node.aggregates):
            return node
        below, keys, calls = read_again(node.input, node.keys, node.aggregates)
        return _Aggregation(context, below, keys, node.columns[: len(keys)]).made(node.columns, calls)

    return bottom_up(plan, at)


def read_again(
    plan: Node, keys: Sequence[Expression], calls: Sequence[AggregateCall]
) -> tuple[Node, list[Expression], list[AggregateCall]]:
    """The same over a plan that may be read several times: where it joins, its rows are kept."""
    if not _joins(plan):
        return plan, list(keys), list(calls)
    read = sorted(columns_read(*keys, *calls))
    if len(read) < len(plan.columns):
        columns = tuple(plan.columns[index] for index in read)
        picked = tuple(Column(type_, index, name) for index, (name, type_) in zip(read, columns, strict=True))
        plan = Project(columns, plan, picked)
    places = {index: place for place, index in enumerate(read)}
    moved: Any = [renumber(part, places) for part in (*keys, *calls)]
    return Kept(plan.columns, plan), moved[: len(keys)], moved[len(keys) :]


def _joins(node: Node) -> bool:
    """Does a pipeline that joins make these rows?"""
    return isinstance(node, Join) or isinstance(node, (Filter, Project)) and _joins(node.input)


class _Aggregation:
    """One GROUP BY with such aggregates among its own.

    columns  names and types of the keys
    """

    def __init__(
        self, context: Context, plan: Node, keys: Sequence[Expression], columns: tuple[OutputColumn, ...]
    ) -> None:
        self.binder = ExpressionBinder(context, Scope(None, ()), clause="an aggregate function")
        self.plan = plan
        self.keys = tuple(keys)
        self.columns = columns

    def sql(self, sql: str, **parts: Expression) -> Expression:
        """An expression by its SQL, over expressions by name."""
        return expand(self.binder, (tuple(parts), sql), list(parts.values()), None)

    def made(self, columns: tuple[OutputColumn, ...], calls: Sequence[AggregateCall]) -> Node:
        width = len(self.keys)
        others = [call for call in calls if call.name not in NAMES]
        if not others and not self.keys:
            others = [AggregateCall(BIGINT, "count_star", ())]  # the row of one group
        base = (*self.columns, *((call.name, call.type) for call in others))
        joined: Node = Aggregate(base, self.plan, self.keys, tuple(others))
        places: dict[AggregateCall, int] = {call: width + place for place, call in enumerate(others)}
        for family in _families(calls):
            found = self._family(family)
            for place, call in enumerate(family):
                places[call] = len(joined.columns) + place
            joined = self._beside(joined, found)
        expressions = columns_of(joined)[:width]
        for call in calls:
            value: Expression = Column(call.type, places[call], call.name, span=call.span)
            if call.name == "entropy":
                value = Coalesce(DOUBLE, (value, Literal(DOUBLE, 0.0)))
            expressions.append(value)
        return Project(columns, joined, tuple(expressions))

    def _beside(self, groups: Node, found: Node) -> Node:
        """The groups, beside the values found for them: NULL where there are none."""
        width = len(self.keys)
        pairs = tuple(zip(columns_of(groups)[:width], columns_of(found)[:width], strict=True))
        both = len(groups.columns)
        outputs = (*range(both), *range(both + width, both + len(found.columns)))
        columns = (*groups.columns, *found.columns[width:])
        kind = "left" if self.keys else "single"
        return Join(columns, groups, found, kind, tuple((a, b, True) for a, b in pairs), None, outputs)

    def _family(self, calls: Sequence[AggregateCall]) -> Node:
        """Keys, then the values of aggregates of one kind over the same values."""
        call = calls[0]
        if call.name in ("string_agg", "list_of_first"):
            return self._texts(call)
        if call.name == "first_in_order":
            return self._end(call)
        value, rows = call.arguments[0], self._rows(call)
        if call.name in _QUANTILES:
            return self._quantiles(rows, calls)
        if call.name == "mad":
            return self._deviation(rows, call)
        counted = Aggregate((*rows.columns, ("count", BIGINT)), rows, tuple(columns_of(rows)), (_COUNT,))
        width = len(self.keys)
        keys, (of, count) = tuple(columns_of(counted)[:width]), columns_of(counted)[width:]
        if call.name == "mode":  # values come in the order of their first rows, so the first of equals wins
            most = AggregateCall(value.type, "arg_max", (of, count), span=call.span)
            return Aggregate((*self.columns, ("mode", value.type)), counted, keys, (most,))
        weighed = self.sql("c * log2(c)", c=count)
        parts = (
            AggregateCall(DOUBLE, "sum", (weighed,)),
            AggregateCall(DOUBLE, "sum", (self.sql("c::DOUBLE", c=count),)),
        )
        sums = Aggregate((*self.columns, ("weighed", DOUBLE), ("rows", DOUBLE)), counted, keys, parts)
        w, n = columns_of(sums)[width:]
        entropy = self.sql("greatest(log2(n) - w / n, 0::DOUBLE)", w=w, n=n)
        return Project((*self.columns, ("entropy", DOUBLE)), sums, (*columns_of(sums)[:width], entropy))

    def _rows(self, call: AggregateCall) -> Node:
        """Keys and value of the rows that count."""
        value = call.arguments[0]
        kept = where(self.plan, [*conjuncts(call.filter), Not(BOOLEAN, IsNull(BOOLEAN, value))])
        columns = (*self.columns, ("value", value.type))
        rows: Node = Project(columns, kept, (*self.keys, value))
        return Aggregate(columns, rows, tuple(columns_of(rows)), ()) if call.distinct else rows

    def _texts(self, call: AggregateCall) -> Node:
        """Keys, then the group's texts in their order."""
        value, separator, *_ = call.arguments
        assert isinstance(separator, Literal), "it is a constant"
        most = None
        if call.name == "list_of_first":
            most = call.arguments[3]
            call = replace(call, arguments=(*call.arguments[:3], *call.arguments[4:]))
        if call.type.child is None:  # NULLs are elements of lists, but no texts
            call = replace(call, filter=conjunction((*conjuncts(call.filter), _present(value))))
        sort = self._in_order(call)
        if most is not None:
            sort = self._first_of(sort, most)
        width, numbered = len(self.keys), Numbered.of(sort)
        least = AggregateCall(BIGINT, "min", (columns_of(numbered)[-1],))
        names = (*self.columns, ("start", BIGINT))
        groups: Node = Aggregate(names, numbered, tuple(columns_of(numbered)[:width]), (least,))
        if not width:  # of no rows there is no text
            start = columns_of(groups)[-1]
            groups = where(groups, [Not(BOOLEAN, IsNull(BOOLEAN, start))])
        joined = JoinedTexts((*names, ("text", call.type)), groups, sort, width, width, separator)
        found = columns_of(joined)
        return Project((*self.columns, ("text", call.type)), joined, (*found[:width], found[-1]))

    def _in_order(self, call: AggregateCall) -> Sort:
        """Keys, value and what orders it, of the rows that count, in that order within the keys."""
        value, _, ways, *orders = call.arguments
        assert isinstance(ways, Literal), "it is a constant"
        columns = (*self.columns, ("value", value.type), *((f"order {k}", key.type) for k, key in enumerate(orders)))
        rows: Node = Project(columns, where(self.plan, conjuncts(call.filter)), (*self.keys, value, *orders))
        if call.distinct:
            rows = Aggregate(columns, rows, tuple(columns_of(rows)), ())
        width = len(self.keys)
        keys = [SortKey(key, False, False) for key in columns_of(rows)[:width]]
        for key, way in zip(columns_of(rows)[width + 1 :], ways.value.split(), strict=True):
            keys.append(SortKey(key, way[0] == "d", way[1] == "f"))
        return Sort(columns, rows, tuple(keys))

    def _first_of(self, sort: Sort, most: Expression) -> Sort:
        """Of rows in an order within the keys, so many of each."""
        rows, width = sort.input, len(self.keys)
        number = WindowCall(BIGINT, "row_number", (), (), (), (), Frame())
        keys = tuple(columns_of(rows)[:width])
        numbered = Window((*rows.columns, ("place", BIGINT)), rows, keys, sort.keys[width:], (number,))
        kept = where(numbered, [Comparison(BOOLEAN, "<=", columns_of(numbered)[-1], most)])
        return Sort(sort.columns, Project(rows.columns, kept, tuple(columns_of(rows))), sort.keys)

    def _end(self, call: AggregateCall) -> Node:
        """Keys, then the value of the first row in an order, or of the last."""
        end = call.arguments[1]
        assert isinstance(end, Literal), "it is a constant"
        width, sort = len(self.keys), self._in_order(call)
        numbered = Numbered.of(sort)
        number = columns_of(numbered)[-1]
        of_group = AggregateCall(BIGINT, "max" if end.value else "min", (number,))
        names = (*self.columns, ("row", BIGINT))
        groups = Aggregate(names, numbered, tuple(columns_of(numbered)[:width]), (of_group,))
        row = columns_of(groups)[-1]
        picked = Picked((*names, ("value", call.type)), groups, sort, width, (row,))
        found = columns_of(picked)
        return Project((*self.columns, ("value", call.type)), picked, (*found[:width], found[-1]))

    def _deviation(self, rows: Node, call: AggregateCall) -> Node:
        """The median of the distances from the median."""
        width = len(self.keys)
        median = self._quantiles(rows, [replace(call, name="quantile_cont", arguments=(*call.arguments, *MEDIAN))])
        beside = self._beside(rows, median)
        value, middle = columns_of(beside)[width:]
        distance = self.sql("abs(x - m)", x=value, m=middle)
        columns = (*self.columns, ("value", distance.type))
        distances = Project(columns, beside, (*columns_of(beside)[:width], distance))
        found = replace(call, name="quantile_cont", arguments=(distance, *MEDIAN))
        return self._quantiles(distances, [found])

    # ------------------------------------------------------------------------------------------- quantiles

    def _quantiles(self, rows: Node, calls: Sequence[AggregateCall]) -> Node:
        """Keys, then a quantile of the last column for each call."""
        width = len(self.keys)
        descending = calls[0].arguments[2].value  # type: ignore[attr-defined]  # a Literal
        sort_keys = tuple(SortKey(key, False, False) for key in columns_of(rows)[:width])
        last = columns_of(rows)[width]
        sort = Sort(rows.columns, rows, (*sort_keys, SortKey(last, descending, False)))
        numbered = Numbered.of(sort)
        row = columns_of(numbered)[-1]
        groups = Aggregate(
            (*self.columns, ("start", BIGINT), ("rows", BIGINT)),
            numbered,
            tuple(columns_of(numbered)[:width]),
            (AggregateCall(BIGINT, "min", (row,)), _COUNT),
        )
        positions: list[Expression] = []
        start, count = columns_of(groups)[width:]
        needed = [[self._place(positions, part) for part in self._positions(call, start, count)] for call in calls]
        names = tuple((f"pick {place}", last.type) for place in range(len(positions)))
        picked = Picked((*groups.columns, *names), groups, sort, width, tuple(positions))
        found = columns_of(picked)
        values = [
            self._value(call, [found[width + 2 + place] for place in places], found[width + 1])
            for call, places in zip(calls, needed, strict=True)
        ]
        columns = (*self.columns, *((call.name, call.type) for call in calls))
        return Project(columns, picked, (*found[:width], *values))

    def _positions(self, call: AggregateCall, start: Expression, rows: Expression) -> list[Expression]:
        """Numbers of the rows that a quantile is made of; NULL where there are none."""
        share = call.arguments[1]
        assert isinstance(share, Literal), "a quantile's share is a constant"
        if call.name == "quantile_cont":
            return [self.sql(f"s + {f}((n - 1) * q)::BIGINT", s=start, n=rows, q=share) for f in ("floor", "ceil")]
        if share.type.kind == "DECIMAL":
            a, b = Literal(BIGINT, share.value), Literal(BIGINT, 10**share.type.scale)
            return [self.sql("s + greatest(1, (n * a + b - 1) // b) - 1", s=start, n=rows, a=a, b=b)]
        return [self.sql("s + greatest(1, n - floor(n - n * q)::BIGINT) - 1", s=start, n=rows, q=share)]

    @staticmethod
    def _place(positions: list[Expression], position: Expression) -> int:
        if position not in positions:
            positions.append(position)
        return positions.index(position)

    def _value(self, call: AggregateCall, picks: list[Expression], rows: Expression) -> Expression:
        """The quantile from the values at its places."""
        if call.name == "quantile_disc":
            return picks[0]
        low, high = picks
        share = self.sql(_SHARE, n=rows, q=call.arguments[1])
        type_ = low.type
        if type_ == TIME:
            sql = "time_of_microseconds(epoch_us(a) + floor((epoch_us(b) - epoch_us(a)) * f + 0.5)::BIGINT)"
            return self.sql(f"CASE WHEN f = 0 THEN a ELSE {sql} END", a=low, b=high, f=share)
        if type_ == TIMESTAMPTZ:
            sql = "make_timestamptz(epoch_us(a) + floor((epoch_us(b) - epoch_us(a)) * f + 0.5)::BIGINT)"
            return self.sql(f"CASE WHEN f = 0 THEN a ELSE {sql} END", a=low, b=high, f=share)
        if type_.is_temporal:
            sql = "make_timestamp(epoch_us(a) + floor((epoch_us(b) - epoch_us(a)) * f + 0.5)::BIGINT)"
            return self.sql(f"CASE WHEN f = 0 THEN a::TIMESTAMP ELSE {sql} END", a=low, b=high, f=share)
        if type_.kind == "DECIMAL":
            if type_.precision > 18:
                first, last = (Call(HUGEINT, "reinterpret", (part,)) for part in (low, high))
                sql = "CASE WHEN f = 0 THEN a ELSE a + trunc((b - a)::DOUBLE * f)::HUGEINT END"
                return Call(type_, "reinterpret", (self.sql(sql, a=first, b=last, f=share),))
            unit = "1" + "0" * type_.scale
            least = f"0.{unit[:0:-1]}"[:-1] + "1" if type_.scale else "1"
            a, b = (self.sql(f"(a * {unit})::BIGINT", a=part) for part in (low, high))
            found = self._between(a, b, share)
            sql = f"CASE WHEN f = 0 THEN a ELSE x::BIGINT * {least} END::{call.type}"
            return self.sql(sql, a=low, f=share, x=found)
        sql = f"(CASE WHEN f = 0 THEN a::DOUBLE ELSE a::DOUBLE * (1 - f) + b::DOUBLE * f END)::{call.type}"
        return self.sql(sql, a=low, b=high, f=share)

    def _between(self, a: Expression, b: Expression, share: Expression) -> Expression:
        """The whole number (a double) of a + (b - a) * share, a sum rounded once: the product is made of exact parts."""
        distance = self.sql("(b - a)::DOUBLE", a=a, b=b)
        f, high = (self.sql(sql, x=x) for sql, x in ((_HIGH_OF_SHARE, share), (_HIGH_OF_DISTANCE, distance)))
        g, low = (self.sql("x - y", x=x, y=y) for x, y in ((share, f), (distance, high)))
        product = self.sql("l * f", l=low, f=f)
        whole = self.sql("a + h * f + floor(p)", a=a, h=high, f=f, p=product)
        rest = self.sql("(p - floor(p) + h * g) + l * g", p=product, h=high, l=low, g=g)
        return self.sql("trunc(w + r)", w=whole, r=rest)


def _present(value: Expression) -> Expression:
    return Not(BOOLEAN, IsNull(BOOLEAN, value))


_COUNT = AggregateCall(BIGINT, "count_star", ())
_SHARE = "(n - 1) * q - floor((n - 1) * q)"
_HIGH_OF_SHARE = "floor(x * 67108864) / 67108864"  # 2**26: products of halves are exact doubles
_HIGH_OF_DISTANCE = "floor(x / 67108864) * 67108864"


def _families(calls: Sequence[AggregateCall]) -> list[list[AggregateCall]]:
    """Quantiles that one sort serves together; other calls each by itself."""
    found: dict[Any, list[AggregateCall]] = {}
    for call in dict.fromkeys(call for call in calls if call.name in NAMES):
        shared = call.name in _QUANTILES
        key: Any = (call.arguments[0], call.filter, call.distinct, call.arguments[2]) if shared else call
        found.setdefault(key, []).append(call)
    return list(found.values())
