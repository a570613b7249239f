"""SUMMARIZE: a row of facts about each column of a query, from one aggregation of its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpudb.planner.bind.expressions import ExpressionBinder
from gpudb.planner.bind.functions import expand
from gpudb.planner.bind.grouping import Groups
from gpudb.planner.bind.scope import Scope
from gpudb.planner.expressions import Column, Expression, Literal
from gpudb.planner.logical import Kept, Node, Project, UnionAll
from gpudb.types import BIGINT, VARCHAR, SqlType, decimal

if TYPE_CHECKING:
    from gpudb.planner.bind.relations import RelationBinder

_NULL = "NULL::VARCHAR"
_ALWAYS = ("min(x)::VARCHAR", "max(x)::VARCHAR", "approx_count_distinct(x)")
_QUARTILES = tuple(f"quantile_disc(x, {share})::VARCHAR" for share in ("0.25", "0.5", "0.75"))
_MOMENT = "make_timestamp(avg(epoch_us(x::TIMESTAMP))::BIGINT)::VARCHAR"
_COUNTS = ("count(*)", "(CASE WHEN count(*) > 0 THEN 100 * (count(*) - count(x)) / count(*) END)::DECIMAL(9,2)")
COLUMNS = (
    *((name, VARCHAR) for name in ("column_name", "column_type", "min", "max")),
    ("approx_unique", BIGINT),
    *((name, VARCHAR) for name in ("avg", "std", "q25", "q50", "q75")),
    ("count", BIGINT),
    ("null_percentage", decimal(9, 2)),
)


def summary(query: RelationBinder, plan: Node) -> Node:
    """The facts about the columns of a plan, in their order."""
    from gpudb.planner.bind.query import aggregate

    binder = ExpressionBinder(query.context, Scope(None, plan.columns), clause="SUMMARIZE", aggregates=True)
    groups = Groups(query.context, None)
    rows: list[tuple[Expression, ...]] = []
    for number, (name, type_) in enumerate(plan.columns):
        column = Column(type_, number, name)
        facts = [groups.rewrite(expand(binder, (("x",), sql), [column], None)) for sql in _facts(type_)]
        rows.append((Literal(VARCHAR, str(name)), Literal(VARCHAR, str(type_)), *facts))
    groups_plan = aggregate(plan, groups)
    once = Kept(groups_plan.columns, groups_plan)
    branches = tuple(Project(COLUMNS, once, row) for row in rows)
    return branches[0] if len(branches) == 1 else UnionAll(COLUMNS, branches)


def _facts(type_: SqlType) -> tuple[str, ...]:
    """SQL of each fact about a column `x` of a type."""
    if type_.is_numeric:
        measures = ("avg(x)::VARCHAR", "stddev(x::DOUBLE)::VARCHAR", *_QUARTILES)
    elif type_.is_temporal:
        measures = (_MOMENT, _NULL, *_QUARTILES)
    else:
        measures = (_NULL,) * 5
    return (*_ALWAYS, *measures, *_COUNTS)
