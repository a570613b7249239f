"""Aggregates over windows that no running sum makes: medians, modes, arg_min, lists, DISTINCT ones and their kin, as plans.

Over a whole partition they are those of a GROUP BY, joined to its rows.  Over other frames each row is repeated for the rows
of its frame: rows get numbers in the order of the window, where a frame is a run of them, and the rows with these numbers are
joined to the row and aggregated by it.  That costs what all frames hold together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gpudb.planner.bind.context import Context
from gpudb.planner.bind.expressions import ExpressionBinder
from gpudb.planner.bind.functions import expand
from gpudb.planner.bind.ordered_aggregates import aggregated
from gpudb.planner.bind.scope import Scope
from gpudb.planner.bind.subqueries import attached
from gpudb.planner.bind.unnesting import columns_of, where
from gpudb.planner.bind.windows import is_framed
from gpudb.planner.expressions import (
    CURRENT,
    UNBOUNDED_FOLLOWING,
    UNBOUNDED_PRECEDING,
    AggregateCall,
    Coalesce,
    Column,
    Comparison,
    Expression,
    Frame,
    Literal,
    Or,
    WindowCall,
)
from gpudb.planner.logical import Join, Kept, Node, Project, Sort, SortKey, Unnested, Window
from gpudb.types import BIGINT, BOOLEAN


def framed(context: Context, plan: Node, *lists: Sequence[Expression]) -> tuple[Node, list[list[Expression]]]:
    """(the plan with columns for such calls in the expressions behind its own, the expressions over these columns)."""
    calls = dict.fromkeys(
        part
        for expressions in lists
        for one in expressions
        for part in one.walk()
        if isinstance(part, WindowCall) and is_framed(part)
    )
    together: dict[Any, list[WindowCall]] = {}
    for call in calls:
        key = (call.partition, call.order, call.directions, call.frame, call.start, call.end)
        together.setdefault(key, []).append(call)
    columns: dict[Expression, Expression] = {}
    for (partition, order, directions, *_), same in together.items():
        bare = tuple(replace(call, partition=(), order=(), directions=()) for call in same)
        plan, inputs = attached(plan, (*partition, *order, *bare))
        keys, terms = inputs[: len(partition)], inputs[len(partition) : len(partition) + len(order)]
        sort_keys = tuple(SortKey(term, *way) for term, way in zip(terms, directions, strict=True))
        width = len(plan.columns)
        over = inputs[len(partition) + len(order) :]
        plan = _Framed(context, plan, keys, sort_keys, over).made()  # type: ignore[arg-type]  # attached() gives calls for calls
        for at, call in enumerate(same):
            value: Expression = Column(call.type, width + at, call.name, span=call.span)
            if call.name in ("count", "count_star", "entropy"):  # of an empty frame
                value = Coalesce(call.type, (value, Literal(call.type, 0.0 if call.type.is_float else 0)))
            columns[call] = value
    return plan, [[expression.replaced(columns) for expression in expressions] for expressions in lists]


class _Framed:
    """Calls over one window: their values behind the columns of the plan."""

    def __init__(
        self,
        context: Context,
        plan: Node,
        keys: Sequence[Expression],
        order: tuple[SortKey, ...],
        calls: Sequence[WindowCall],
    ) -> None:
        self.context = context
        self.plan = plan
        self.keys = tuple(keys)
        self.order = order
        self.window = calls[0]
        self.calls = [AggregateCall(c.type, c.name, c.arguments, c.distinct, c.filter, span=c.span) for c in calls]
        self.named = tuple((call.name, call.type) for call in self.calls)

    def made(self) -> Node:
        frame = self.window.frame
        whole = frame.start == UNBOUNDED_PRECEDING and (
            frame.end == UNBOUNDED_FOLLOWING or (frame.end == CURRENT and frame.unit != "rows" and not self.order)
        )
        return self._of_partitions() if whole and frame.exclude == "none" else self._of_frames()

    def _grouped(self, rows: Node, keys: Sequence[Expression]) -> Node:
        names = [f"key {number}" for number in range(len(keys))]
        return aggregated(rows, keys, self.calls, names)

    def _of_partitions(self) -> Node:
        rows = Kept(self.plan.columns, self.plan)
        groups = self._grouped(Sort(rows.columns, rows, self.order) if self.order else rows, self.keys)
        own = columns_of(groups)[: len(self.keys)]
        pairs = tuple((ours, theirs, True) for ours, theirs in zip(self.keys, own, strict=True))
        return self._beside(rows, groups, pairs, "left" if pairs else "single")

    def _beside(self, rows: Node, values: Node, pairs: tuple[Any, ...], kind: str) -> Node:
        """The plan's columns of rows, beside the values found for them."""
        width, first = len(self.plan.columns), len(rows.columns) + len(values.columns) - len(self.named)
        outputs = (*range(width), *range(first, first + len(self.named)))
        return Join((*self.plan.columns, *self.named), rows, values, kind, pairs, None, outputs)

    def _of_frames(self) -> Node:
        width = len(self.plan.columns)
        number = WindowCall(BIGINT, "row_number", (), (), (), (), Frame())
        by = (*(SortKey(key, False, False) for key in self.keys), *self.order)
        numbered = Window((*self.plan.columns, ("number", BIGINT)), self.plan, (), by, (number,))
        own = columns_of(numbered)[width]
        bare = replace(self.window.frame, exclude="none")
        of_frame = replace(
            self.window, type=BIGINT, arguments=(), frame=bare, filter=None, distinct=False, ignore_nulls=False
        )
        facts = (
            replace(of_frame, name="first_value", arguments=(own,)),
            replace(of_frame, name="count_star"),
            WindowCall(BIGINT, "rank", (), (), (), (), Frame()),
        )
        names = (("first", BIGINT), ("rows", BIGINT), ("rank", BIGINT))
        windows = Window((*numbered.columns, *names), numbered, self.keys, self.order, facts)
        rows = Kept(windows.columns, windows)
        own, first, size, rank = columns_of(rows)[width:]
        plain = Project((("number", BIGINT), *names), rows, (own, first, size, rank))
        repeated = Unnested.of(plain, columns_of(plain)[2])
        of, start, _, of_rank, turn = columns_of(repeated)
        binder = ExpressionBinder(self.context, Scope(None, ()), clause="OVER")
        wanted = expand(binder, (("a", "b"), "a + b"), [start, turn], None)
        left = Project((("of", BIGINT), ("of rank", BIGINT), ("wanted", BIGINT)), repeated, (of, of_rank, wanted))
        both = (*left.columns, *rows.columns)
        key = (columns_of(left)[2], own, False)
        pairs: Node = Join(both, left, rows, "inner", (key,), None, tuple(range(len(both))))
        of, of_rank, _, *inside = columns_of(pairs)
        pairs = where(pairs, self._not_excluded(of, inside[width], of_rank, inside[width + 3]))
        seen = Project((*self.plan.columns, ("of", BIGINT)), pairs, (*inside[:width], of))
        groups = self._grouped(seen, (columns_of(seen)[-1],))
        return self._beside(rows, groups, ((own, columns_of(groups)[0], False),), "left")

    def _not_excluded(
        self, row: Expression, other: Expression, rank: Expression, other_rank: Expression
    ) -> Sequence[Expression]:
        """What EXCLUDE leaves of the rows of a frame."""
        exclude = self.window.frame.exclude
        another = Comparison(BOOLEAN, "<>", row, other)
        no_peer = Comparison(BOOLEAN, "<>", rank, other_rank)
        if exclude == "ties":
            return [Or(BOOLEAN, (no_peer, Comparison(BOOLEAN, "=", row, other)))]
        found: dict[str, Sequence[Expression]] = {"none": (), "current": (another,), "group": (no_peer,)}
        return found[exclude]
