"""Where the rows that joins leave of a scan are so few that a pipeline should go on with these alone.

Dropped rows stay in their tiles, marked as dead, since to move the others costs more than to skip the dead; but behind a
join that keeps one row in ten every further look-up and sum is done ten times for one that counts.
"""

from __future__ import annotations

from dataclasses import replace

from gpudb.planner.logical import Aggregate, Filter, Join, Node, Project
from gpudb.planner.physical.estimates import Estimator
from gpudb.planner.rules.rewriting import with_inputs

FEW = 0.25  # of a scan's rows


def mark_narrowing(node: Node, estimator: Estimator) -> Node:
    """The plan with a mark on the first join under each Aggregate that leaves few of its scan's rows."""
    node = with_inputs(node, lambda inner: mark_narrowing(inner, estimator))
    if not isinstance(node, Aggregate):
        return node
    below = _marked(node.input, estimator)
    return node if below is None else replace(node, input=below)


def _marked(node: Node, estimator: Estimator) -> Node | None:
    """The chain of look-ups down to a scan with its mark; None where no join leaves few rows."""
    if isinstance(node, (Project, Filter)):
        below = _marked(node.input, estimator)
        return None if below is None else replace(node, input=below)
    if not isinstance(node, Join):
        return None
    below = _marked(node.left, estimator)
    if below is not None:
        return replace(node, left=below)
    few = node.kind in ("inner", "semi", "anti") and estimator.of(node).rows < FEW * _scanned(node.left, estimator)
    return replace(node, narrows=True) if few else None


def _scanned(node: Node, estimator: Estimator) -> float:
    """Rows of the scan at the beginning of a chain."""
    while isinstance(node, (Project, Filter, Join)):
        node = node.left if isinstance(node, Join) else node.input
    return estimator.of(node).whole
