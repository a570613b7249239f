"""What emission should know of a join: does it leave few rows, and has its build side several rows of a key?

Dropped rows stay in their tiles, marked as dead, since to move the others costs more than to skip the dead; but behind a
join that keeps one row in ten every further look-up and sum is done ten times for one that counts.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from gpudb.planner.logical import Aggregate, Filter, Join, Node, Project
from gpudb.planner.physical.estimates import Estimator, distinct_values
from gpudb.planner.rules.rewriting import bottom_up

FEW = 0.25  # of a scan's rows


def mark_narrowing(node: Node, estimator: Estimator) -> Node:
    """The plan with a mark on the first join under each Aggregate that leaves few of its scan's rows."""

    def marked(inner: Node) -> Node:
        below = _marked(inner.input, estimator) if isinstance(inner, Aggregate) else None
        return inner if below is None else replace(inner, input=below)  # type: ignore[call-arg]  # an Aggregate

    return bottom_up(node, marked)


def mark_repeats(node: Node, estimator: Estimator) -> Node:
    """The plan with a mark on each join whose build side has more rows than its keys can have values.

    Without it a program of look-ups stops at the first second row of a key, and another one is made: the first run of a
    query takes twice as long.
    """

    def marked(inner: Node) -> Node:
        if not isinstance(inner, Join):
            return inner
        right = estimator.of(inner.right)
        values = prod(distinct_values(key, right) for _, key, _ in inner.keys)
        return replace(inner, repeats=True) if right.rows > 2 * values else inner

    return bottom_up(node, marked)


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
