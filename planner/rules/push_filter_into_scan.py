"""Filters sink: through projections, sorts, group keys, unions and joins, into the scan; equalities become join keys."""

from __future__ import annotations

from dataclasses import replace

from gpudb.planner.expressions import (
    Cast,
    Column,
    Comparison,
    Expression,
    Literal,
    Not,
    conjunction,
    conjuncts,
    has_side_effects,
)
from gpudb.planner.logical import (
    Aggregate,
    Filter,
    Join,
    JoinKey,
    Node,
    Project,
    Scan,
    SetOperation,
    Sort,
    UnionAll,
    Window,
)
from gpudb.planner.rules.rewriting import bottom_up, columns_read, renumber, substitute, with_inputs
from gpudb.types import BOOLEAN


def push_filter_into_scan(node: Node) -> Node:
    """Filter(Scan) -> Scan(predicate), so rows are dropped while tiles are loaded.

    >>> from gpudb.types import BOOLEAN, INTEGER
    >>> from gpudb.planner.expressions import Column, IsNull
    >>> scan = Scan((("x", INTEGER),), "t", (0,))
    >>> missing = IsNull(BOOLEAN, Column(INTEGER, 0, "x"))
    >>> push_filter_into_scan(Filter(scan.columns, scan, missing)).predicate == missing
    True
    """
    return bottom_up(node, _at)


def _at(node: Node) -> Node:
    match node:
        case Filter():
            return _sink(node)
        case Join():
            return _split(node)
    return node


def _sink(node: Filter) -> Node:
    below = node.input
    match below:
        case Filter():
            return _filtered(below.input, (*conjuncts(below.predicate), *conjuncts(node.predicate)))
        case Scan():
            return replace(below, predicate=_all(below.predicate, node.predicate))
        case Project():
            if any(has_side_effects(below.expressions[index]) for index in columns_read(node.predicate)):
                return node
            predicate = substitute(node.predicate, below.expressions)
            return replace(below, input=_filtered(below.input, conjuncts(predicate)))
        case Sort():
            return with_inputs(below, lambda inner: _filtered(inner, conjuncts(node.predicate)))
        case UnionAll() | SetOperation():
            return with_inputs(below, lambda inner: _filtered(inner, conjuncts(node.predicate)))
        case Aggregate() if below.keys:
            return _below_groups(node, below)
        case Window():
            return _below_windows(node, below)
        case Join(kind="mark"):
            return _by_mark(node, below)
        case Join():
            return _into_join(node, below)
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


def _below_windows(node: Filter, below: Window) -> Node:
    """Terms over the keys of the partitions alone drop whole partitions: they may as well drop their rows."""
    keys = {key.index for key in below.keys if isinstance(key, Column)}
    lower = tuple(term for term in conjuncts(node.predicate) if (read := columns_read(term)) and read <= keys)
    if not lower:
        return node
    window = replace(below, input=_filtered(below.input, lower))
    predicate = conjunction(tuple(term for term in conjuncts(node.predicate) if term not in lower))
    return window if predicate is None else Filter(node.columns, window, predicate)


def _by_mark(node: Filter, join: Join) -> Node:
    """Where the mark must be TRUE, or FALSE, that is SEMI, or ANTI; above it, it is a constant."""
    terms = conjuncts(node.predicate)
    for term in terms:
        wanted = not isinstance(term, Not)
        mark = term.argument if isinstance(term, Not) else term
        if isinstance(mark, Column) and join.outputs[mark.index] == join.width:
            places = [place for place, index in enumerate(join.outputs) if index < join.width]
            outputs = tuple(join.outputs[place] for place in places)
            columns = tuple(join.columns[place] for place in places)
            rows = replace(join, columns=columns, kind="semi" if wanted else "anti", outputs=outputs)
            known: list[Expression] = [Literal(BOOLEAN, wanted) for _ in node.columns]
            for at, place in enumerate(places):
                name, type_ = columns[at]
                known[place] = Column(type_, at, name)
            project = Project(node.columns, _split(rows), tuple(known))
            return _filtered(project, tuple(other for other in terms if other is not term))
    return _into_join(node, join)


def _into_join(node: Filter, join: Join) -> Node:
    """Terms over one input go there; of an inner join, terms over both become part of its condition."""
    width, total = len(join.left.columns), join.width
    inputs = dict(enumerate(join.outputs))
    terms = [renumber(term, inputs) for term in conjuncts(node.predicate)]
    kind = join.kind
    if kind in _WITHOUT_NULLS and any(_rejects_nulls(term, width) for term in terms):
        kind = _WITHOUT_NULLS[kind]  # rows with NULLs for a right row would be dropped anyway
    left: list[Expression] = []
    condition: list[Expression] = []
    upper: list[Expression] = []
    for term, original in zip(terms, conjuncts(node.predicate), strict=True):
        read = columns_read(term)
        if all(index < width for index in read):
            left.append(term)
        elif kind == "inner" and max(read) < total:
            condition.append(term)
        else:
            upper.append(original)
    if not left and not condition:
        return node
    join = replace(join, kind=kind, left=_filtered(join.left, tuple(left)))
    if condition:
        join = replace(join, residual=conjunction((*conjuncts(join.residual), *condition)))
    predicate = conjunction(tuple(upper))
    below = _split(join)
    return below if predicate is None else Filter(node.columns, below, predicate)


_WITHOUT_NULLS = {"left": "inner", "asof left": "asof"}


def _rejects_nulls(term: Expression, width: int) -> bool:
    """Is this comparison never TRUE where all of the right input's columns are NULL?"""
    if not isinstance(term, Comparison) or term.operator in ("is_distinct", "is_not_distinct"):
        return False
    for side in (term.left, term.right):
        while isinstance(side, Cast):
            side = side.argument
        if isinstance(side, Column) and side.index >= width:
            return True
    return False


def _split(join: Join) -> Node:
    """Terms of the condition that look at one input drop its rows before, and equalities become keys."""
    width = len(join.left.columns)
    left: list[Expression] = []
    right: list[Expression] = []
    keys: list[JoinKey] = []
    rest: list[Expression] = []
    terms = conjuncts(join.residual)
    for term in terms:
        read = columns_read(term)
        if isinstance(term, Literal) and term.slot is None and term.value is True:
            continue
        if read and min(read) >= width:
            right.append(renumber(term, {index: index - width for index in read}))
        elif join.kind in ("inner", "semi", "asof") and all(index < width for index in read):
            left.append(term)
        elif (key := _key(term, width)) is not None:
            keys.append(key)
        else:
            rest.append(term)
    if len(rest) == len(terms):
        return join
    return replace(
        join,
        left=_filtered(join.left, tuple(left)),
        right=_filtered(join.right, tuple(right)),
        keys=(*join.keys, *keys),
        residual=conjunction(tuple(rest)),
    )


def _key(term: Expression, width: int) -> JoinKey | None:
    """The key that an equality of the two inputs is; None for anything else."""
    if not isinstance(term, Comparison) or term.operator not in ("=", "is_not_distinct"):
        return None
    left, right = term.left, term.right
    if columns_read(left) and min(columns_read(left)) >= width:
        left, right = right, left
    ours, theirs = columns_read(left), columns_read(right)
    if not ours or not theirs or max(ours) >= width or min(theirs) < width:
        return None
    right = renumber(right, {index: index - width for index in theirs})
    return left, right, term.operator == "is_not_distinct"
