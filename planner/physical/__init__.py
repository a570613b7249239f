"""Choices that statistics make: which inputs join first, which of two is the build side, and what of that is needed.

They depend on the plan and on what the catalog says, never on the values of literals, which differ where a plan is used
again, and never on the device: so the order of a result's rows is the same everywhere.
"""

from __future__ import annotations

from gpudb.catalog import Catalog
from gpudb.planner.logical import Node
from gpudb.planner.physical.estimates import Estimator
from gpudb.planner.physical.join_order import order_joins
from gpudb.planner.physical.marks import mark_narrowing, mark_repeats
from gpudb.planner.physical.reduction import reduce_build_sides


def choose(plan: Node, catalog: Catalog) -> Node:
    """The plan with its choices made."""
    estimator = Estimator(catalog)
    for choice in (order_joins, reduce_build_sides, mark_repeats, mark_narrowing):
        plan = choice(plan, estimator)
    return plan
