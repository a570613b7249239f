"""A Project that only passes its input on goes away."""

from __future__ import annotations

from dataclasses import replace

from gpudb.planner.expressions import Column
from gpudb.planner.logical import Node, Project
from gpudb.planner.rules.rewriting import bottom_up


def remove_trivial_project(node: Node) -> Node:
    """Project of all input columns in order -> the input, under the Project's names.

    >>> from gpudb.types import INTEGER
    >>> from gpudb.planner.logical import Scan
    >>> scan = Scan((("x", INTEGER),), "t", (0,))
    >>> remove_trivial_project(Project((("y", INTEGER),), scan, (Column(INTEGER, 0, "x"),))).columns[0][0]
    'y'
    """
    return bottom_up(node, _at)


def _at(node: Node) -> Node:
    if not isinstance(node, Project) or len(node.expressions) != len(node.input.columns):
        return node
    for index, expression in enumerate(node.expressions):
        if not isinstance(expression, Column) or expression.index != index:
            return node
    return node.input if node.input.columns == node.columns else replace(node.input, columns=node.columns)
