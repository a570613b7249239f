"""GROUPING SETS, ROLLUP and CUBE: which sets of keys they mean, and a plan that makes coarse groups of finer ones.

Each set is an Aggregate of its own, and their rows stand one behind the other, in the order of the sets; a key that is not of
a row's set is NULL there.  A set whose keys are all keys of another one reads that one's groups instead of the input, where
every aggregate can be put together from parts (a sum from sums, a count from counts).  10 M rows, four aggregates, processor
time of one thread: ROLLUP (year, month, carrier) 107 ms so, 303 from the input each time, DuckDB 471; CUBE of three keys
200, 638, 1,069; where the finest set has half a million groups 2,296, 1,985, 2,661.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product
from math import prod
from typing import Any

from gpudb.errors import BindError, NotSupportedError
from gpudb.planner.bind.casts import cast
from gpudb.planner.bind.context import Context, span_of
from gpudb.planner.bind.grouping import GroupBy, Groups, by_value
from gpudb.planner.bind.operators import arithmetic
from gpudb.planner.bind.ordered_aggregates import aggregated, read_again
from gpudb.planner.bind.subqueries import attached
from gpudb.planner.expressions import AggregateCall, Coalesce, Column, Expression, Literal
from gpudb.planner.logical import Aggregate, Node, OutputColumn, Project, UnionAll
from gpudb.types import BIGINT, DOUBLE, HUGEINT, decimal

MOST_SETS = 4096  # each is a part of the program
_SETS = ("groupingsets", "rollup", "cube")
_OF_THEMSELVES = ("min", "max", "bool_and", "bool_or")  # the least of the parts' least values, and so on

Keys = tuple[Any, ...]
"""Trees of the keys of one grouping set."""


def grouped_by(
    context: Context, elements: Sequence[Any], key: Callable[[Any], Expression], selected: Sequence[Expression]
) -> GroupBy:
    """The keys and sets of GROUP BY a, ROLLUP (b, c), ...: of each element one alternative, in every combination.

    elements  sqlglot trees
    key       binds one key
    selected  the select list: of ROLLUP (1, 2) each is a key of its own, though their values may be the same
    """
    several = any(element.key in _SETS for element in elements)
    if not several:
        return GroupBy([key(part) for element in elements for part in _parts(element)], None)
    alternatives = [list(_alternatives(element)) for element in elements]
    if prod(map(len, alternatives)) > MOST_SETS:
        raise NotSupportedError(f"more than {MOST_SETS} grouping sets are not supported", span=span_of(elements[0]))
    keys: list[Expression] = []
    positions: dict[Expression, int] = {}
    numbers: dict[int, int] = {}
    items = {id(item) for item in selected}
    of_items: dict[int, int] = {}

    def number(tree: Any) -> int:
        if id(tree) not in numbers:
            bound = key(tree)
            if id(bound) in items:
                place = of_items.setdefault(id(bound), len(keys))
                positions.setdefault(by_value(bound), place)
            else:
                place = positions.setdefault(by_value(bound), len(keys))
            if place == len(keys):
                keys.append(bound)
            else:  # equal by the values of their literals: other values may not be equal
                context.consume(bound)
                context.consume(keys[place])
            numbers[id(tree)] = place
        return numbers[id(tree)]

    sets = tuple(
        tuple(dict.fromkeys(number(tree) for keys_of_one in chosen for tree in keys_of_one))
        for chosen in product(*alternatives)
    )
    return GroupBy(keys, sets)


def _parts(element: Any) -> Keys:
    """The keys of (a, b), of (a) and of a."""
    return tuple(element.expressions) if element.key == "tuple" and not element.expressions else (element,)


def _alternatives(element: Any) -> Iterator[Keys]:
    """The sets that an element of GROUP BY stands for, from fine to coarse."""
    if element.key in _SETS and not element.expressions:
        raise BindError(f"{element.key.upper()} wants keys", span=span_of(element))
    composite = [tuple(part.expressions) if part.key == "tuple" else (part,) for part in element.expressions]
    if element.key == "rollup":
        for count in range(len(composite), -1, -1):
            yield sum(composite[:count], ())
    elif element.key == "cube":
        if len(composite) > MOST_SETS.bit_length():
            raise NotSupportedError(f"more than {MOST_SETS} grouping sets are not supported", span=span_of(element))
        for count in range(len(composite), -1, -1):
            for chosen in combinations(composite, count):
                yield sum(chosen, ())
    elif element.key == "groupingsets":
        for inner in element.expressions:
            if inner.key in _SETS:
                yield from _alternatives(inner)
            else:
                yield tuple(inner.expressions) if inner.key == "tuple" else (inner,)
    else:
        yield _parts(element)


def aggregate_sets(context: Context, plan: Node, groups: Groups) -> Node:
    """The rows of all grouping sets: keys, then aggregates."""
    assert groups.sets is not None, "there are grouping sets"
    plan, inputs = attached(plan, (*groups.keys, *groups.aggregates))
    keys, calls = inputs[: len(groups.keys)], inputs[len(groups.keys) :]
    maker = _Sets(context, plan, keys, [call for call in calls if isinstance(call, AggregateCall)])
    branches = tuple(maker.branch(chosen) for chosen in groups.sets)
    return branches[0] if len(branches) == 1 else UnionAll(branches[0].columns, branches)


class _Sets:
    """Makes the rows of one grouping set after the other.

    plan   the input
    keys   of all sets, over it
    calls  all aggregates; those of `parts` are what is computed of each set
    """

    def __init__(
        self, context: Context, plan: Node, keys: Sequence[Expression], calls: Sequence[AggregateCall]
    ) -> None:
        self.context = context
        self.calls = calls
        self.parts: list[AggregateCall] = []
        self.mergeable = all(call.name == "grouping" or _is_mergeable(call) for call in calls)
        self.finals = [self._final(call) for call in calls]
        self.plan, self.keys, self.parts = read_again(plan, keys, self.parts)
        self.made: dict[tuple[int, ...], Node] = {}

    def _part(self, call: AggregateCall) -> int:
        """The number of a part, which is computed once."""
        if call not in self.parts:
            self.parts.append(call)
        return self.parts.index(call)

    def _final(self, call: AggregateCall) -> Callable[[Sequence[Expression]], Expression]:
        """Makes an aggregate of the columns of the parts."""
        if call.name == "avg" and self.mergeable:
            type_ = call.arguments[0].type
            total = decimal(38, type_.scale) if type_.kind == "DECIMAL" else HUGEINT
            of = self._part(replace(call, name="sum", type=total))
            count = self._part(replace(call, name="count", type=BIGINT))
            return lambda parts: arithmetic(
                self.context, "divide", cast(self.context, parts[of], DOUBLE), cast(self.context, parts[count], DOUBLE)
            )
        if call.name == "grouping":
            return lambda parts: Literal(BIGINT, None)  # each set has its own
        place = self._part(call)
        return lambda parts: parts[place]

    def branch(self, chosen: tuple[int, ...]) -> Node:
        """The rows of one set: all keys, NULL where they are not of it, and all aggregates."""
        made = self._groups(chosen)
        places = {key: place for place, key in enumerate(sorted(chosen))}
        expressions: list[Expression] = []
        columns: list[OutputColumn] = []
        for number, key in enumerate(self.keys):
            name = key.name if isinstance(key, Column) else f"key {number}"
            here = Column(key.type, places[number], name) if number in places else Literal(key.type, None)
            expressions.append(here)
            columns.append((name, key.type))
        width = len(places)
        parts = [Column(part.type, width + place, part.name) for place, part in enumerate(self.parts)]
        for call, final in zip(self.calls, self.finals, strict=True):
            value = final(parts)
            if call.name == "grouping":
                bits = [str(int(argument.index not in places)) for argument in call.arguments]  # type: ignore[attr-defined]  # Columns
                value = Literal(BIGINT, int("".join(bits), 2))
            expressions.append(value)
            columns.append((call.name, call.type))
        return Project(tuple(columns), made, tuple(expressions))

    def _groups(self, chosen: tuple[int, ...]) -> Node:
        """The Aggregate of a set: of the input, or of the groups of a finer set."""
        wanted = tuple(sorted(chosen))
        if wanted not in self.made:
            finer = [other for other in self.made if self.mergeable and set(other) > set(wanted)]
            if finer:
                self.made[wanted] = self._merged(wanted, min(finer, key=len))
            else:
                keys = [self.keys[number] for number in wanted]
                names = [f"key {number}" for number in wanted]
                self.made[wanted] = aggregated(self.plan, keys, self.parts, names)
        return self.made[wanted]

    def _merged(self, wanted: tuple[int, ...], finer: tuple[int, ...]) -> Node:
        """Groups of groups."""
        below = self.made[finer]
        keys = tuple(Column(self.keys[number].type, finer.index(number), f"key {number}") for number in wanted)
        calls: list[AggregateCall] = []
        finals: list[Expression] = [Column(key.type, place, key.name) for place, key in enumerate(keys)]
        for place, part in enumerate(self.parts):
            column = Column(part.type, len(finer) + place, part.name)
            counts = part.name in ("count", "count_star")
            call = AggregateCall(HUGEINT if counts else part.type, "sum" if counts else part.name, (column,))
            calls.append(call)
            merged: Expression = Column(call.type, len(wanted) + place, part.name)
            if counts:
                merged = Coalesce(BIGINT, (cast(self.context, merged, BIGINT), Literal(BIGINT, 0)))
            finals.append(merged)
        columns = tuple((key.name, key.type) for key in keys)
        inner = Aggregate((*columns, *((call.name, call.type) for call in calls)), below, keys, tuple(calls))
        return Project((*columns, *((part.name, part.type) for part in self.parts)), inner, tuple(finals))


def _is_mergeable(call: AggregateCall) -> bool:
    """Whether an aggregate of groups can be made of those of finer groups.  Float sums are rounded once: they cannot."""
    if call.distinct:
        return False
    if call.name in ("sum", "avg"):
        type_ = call.arguments[0].type
        return type_.is_integer or type_.kind == "DECIMAL"
    return call.name in ("count", "count_star", *_OF_THEMSELVES)
