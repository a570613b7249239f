"""Project over Project becomes one, where nothing is computed twice for it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from gpudb.planner.expressions import Column, Literal
from gpudb.planner.logical import Aggregate, Node, Project
from gpudb.planner.rules.rewriting import bottom_up, substitute


def merge_projects(node: Node) -> Node:
    """Project(Project) -> Project, and Aggregate(Project) -> Aggregate.

    >>> from gpudb.types import INTEGER
    >>> from gpudb.planner.logical import Scan
    >>> x = Column(INTEGER, 0, "x")
    >>> scan = Scan((("x", INTEGER),), "t", (0,))
    >>> inner = Project((("y", INTEGER),), scan, (x,))
    >>> merge_projects(Project((("z", INTEGER),), inner, (Column(INTEGER, 0, "y"),))).input is scan
    True
    """
    return bottom_up(node, _at)


def _at(node: Node) -> Node:
    if not isinstance(node, (Project, Aggregate)) or not isinstance(node.input, Project):
        return node
    below = node.input
    own = node.expressions if isinstance(node, Project) else (*node.keys, *node.aggregates)
    uses = Counter(part.index for expression in own for part in expression.walk() if isinstance(part, Column))
    for index, count in uses.items():
        if count > 1 and not isinstance(below.expressions[index], (Column, Literal)):
            return node
    if isinstance(node, Project):
        merged = tuple(substitute(expression, below.expressions) for expression in node.expressions)
        return _at(Project(node.columns, below.input, merged))
    keys = tuple(substitute(key, below.expressions) for key in node.keys)
    aggregates = tuple(substitute(call, below.expressions) for call in node.aggregates)
    return _at(replace(node, input=below.input, keys=keys, aggregates=aggregates))  # type: ignore[arg-type]
