"""Filters sink: through projections, sorts, group keys and unions, into the scan."""

from __future__ import annotations

from dataclasses import replace

from gpudb.planner.expressions import Expression, conjunction, conjuncts
from gpudb.planner.logical import Aggregate, Filter, Node, Project, Scan, SetOperation, Sort, UnionAll
from gpudb.planner.rules.rewriting import bottom_up, columns_read, substitute, with_inputs


def push_filter_into_scan(node: Node) -> Node:
    """Filter(Scan) -> Scan(predicate), so rows are dropped while tiles are loaded.

    >>> from gpudb.types import BOOLEAN, INTEGER
    >>> from gpudb.planner.expressions import Column, IsNull
    >>> scan = Scan((("x", INTEGER),), "t", (0,))
    >>> missing = IsNull(BOOLEAN, Column(INTEGER, 0, "x"))
    >>> push_filter_into_scan(Filter(scan.columns, scan, missing)).predicate == missing
    True
    """
    return bottom_up(node, lambda inner: _sink(inner) if isinstance(inner, Filter) else inner)


def _sink(node: Filter) -> Node:
    below = node.input
    match below:
        case Filter():
            return _filtered(below.input, (*conjuncts(below.predicate), *conjuncts(node.predicate)))
        case Scan():
            return replace(below, predicate=_all(below.predicate, node.predicate))
        case Project():
            predicate = substitute(node.predicate, below.expressions)
            return replace(below, input=_filtered(below.input, conjuncts(predicate)))
        case Sort():
            return with_inputs(below, lambda inner: _filtered(inner, conjuncts(node.predicate)))
        case UnionAll() | SetOperation():
            return with_inputs(below, lambda inner: _filtered(inner, conjuncts(node.predicate)))
        case Aggregate() if below.keys:
            return _below_groups(node, below)
    return node


def _filtered(node: Node, terms: tuple[Expression, ...]) -> Node:
    """Filter(node) pushed on; node itself without terms."""
    predicate = conjunction(terms)
    return node if predicate is None else _sink(Filter(node.columns, node, predicate))


def _all(first: Expression | None, second: Expression) -> Expression:
    both = conjunction((*conjuncts(first), *conjuncts(second)))
    assert both is not None, "a filter has a predicate"
    return both


def _below_groups(node: Filter, below: Aggregate) -> Node:
    """Terms over keys alone drop whole groups: they may as well drop their rows."""
    lower: list[Expression] = []
    upper: list[Expression] = []
    for term in conjuncts(node.predicate):
        read = columns_read(term)
        (lower if read and max(read) < len(below.keys) else upper).append(term)
    if not lower:
        return node
    terms = tuple(substitute(term, below.keys) for term in lower)
    aggregate = replace(below, input=_filtered(below.input, terms))
    predicate = conjunction(tuple(upper))
    return aggregate if predicate is None else Filter(node.columns, aggregate, predicate)
