"""Every node outputs only the columns that someone above reads."""

from __future__ import annotations

from gpudb.planner.expressions import Expression
from gpudb.planner.logical import (
    Aggregate,
    Filter,
    Given,
    Join,
    JoinedTexts,
    Kept,
    Limit,
    Node,
    Numbered,
    Picked,
    Project,
    Recursive,
    Scan,
    Series,
    SetOperation,
    Sort,
    UnionAll,
    Unnested,
    Values,
    Window,
)
from gpudb.planner.rules.rewriting import columns_read, map_expressions, renumber, with_inputs
from gpudb.record import replace

Positions = dict[int, int]


def prune_columns(node: Node) -> Node:
    """Narrow every node of a plan; its own columns stay.

    >>> from gpudb.types import INTEGER
    >>> from gpudb.planner.expressions import Column
    >>> scan = Scan((("x", INTEGER), ("y", INTEGER)), "t", (0, 1))
    >>> prune_columns(Project((("y", INTEGER),), scan, (Column(INTEGER, 1, "y"),))).input.ordinals
    (1,)
    """
    pruned, positions = _prune(node, set(range(len(node.columns))))
    assert positions == {index: index for index in range(len(node.columns))}, "the outermost columns stay"
    return pruned


def _prune(node: Node, wanted: set[int]) -> tuple[Node, Positions]:
    """The node with at least the wanted columns, and where each kept column is now."""
    match node:
        case Scan():
            return _scan(node, wanted)
        case Series():
            return node, _identity(node)
        case Values():
            kept = sorted(wanted)
            if len(kept) == len(node.columns):
                return node, _identity(node)
            rows = tuple(tuple(row[index] for index in kept) for row in node.rows)
            return replace(node, columns=_pick(node, kept), rows=rows), _positions(kept)
        case Filter():
            inner, positions = _prune(node.input, wanted | columns_read(node.predicate))
            return _over(node, inner, positions), positions
        case Sort():
            inner, positions = _prune(node.input, wanted | columns_read(*(key.expression for key in node.keys)))
            return _over(node, inner, positions), positions
        case Limit():
            inner, positions = _prune(node.input, wanted)
            return _over(node, inner, positions), positions
        case Project():
            return _project(node, wanted)
        case Aggregate():
            return _aggregate(node, wanted)
        case Window():
            return _window(node, wanted)
        case UnionAll():
            return _union(node, wanted)
        case Given():
            return node, _identity(node)
        case Numbered():
            return _numbered(node, wanted)
        case Unnested():
            return _unnested(node, wanted)
        case SetOperation() | Recursive() | Kept() | Picked() | JoinedTexts():
            return with_inputs(node, prune_columns), _identity(node)  # rows are compared whole, or read several times
        case Join():
            return _join(node, wanted)
    raise AssertionError(f"prune_columns does not know this node: {type(node).__name__}")


def _identity(node: Node) -> Positions:
    return {index: index for index in range(len(node.columns))}


def _positions(kept: list[int]) -> Positions:
    return {old: new for new, old in enumerate(kept)}


def _pick(node: Node, kept: list[int]) -> tuple:
    return tuple(node.columns[index] for index in kept)


def _moved(expression: Expression, positions: Positions) -> Expression:
    return renumber(expression, positions)


def _over(node: Filter | Sort | Limit, inner: Node, positions: Positions) -> Node:
    """A node that passes its input's columns on, over the narrower input, under its own names."""
    if inner is node.input:
        return node
    kept = sorted(positions, key=lambda old: positions[old])
    moved = map_expressions(node, lambda expression: _moved(expression, positions))
    return replace(moved, columns=_pick(node, kept), input=inner)


def _scan(node: Scan, wanted: set[int]) -> tuple[Node, Positions]:
    kept = sorted(wanted | columns_read(node.predicate))
    if len(kept) == len(node.columns):
        return node, _identity(node)
    positions = _positions(kept)
    predicate = None if node.predicate is None else _moved(node.predicate, positions)
    ordinals = tuple(node.ordinals[index] for index in kept)
    return replace(node, columns=_pick(node, kept), ordinals=ordinals, predicate=predicate), positions


def _numbered(node: Numbered, wanted: set[int]) -> tuple[Node, Positions]:
    number = len(node.columns) - 1
    inner, positions = _prune(node.input, wanted - {number})
    if number not in wanted:
        return inner, positions
    if inner is node.input:
        return node, _identity(node)
    kept = sorted(positions, key=lambda old: positions[old])
    columns = (*_pick(node, kept), node.columns[number])
    return Numbered(columns, inner), {**positions, number: len(kept)}


def _unnested(node: Unnested, wanted: set[int]) -> tuple[Node, Positions]:
    """Rows are repeated whether anybody reads which time it is or not."""
    number = len(node.columns) - 1
    inner, positions = _prune(node.input, (wanted - {number}) | columns_read(node.times))
    if inner is node.input:
        return node, _identity(node)
    kept = sorted(positions, key=lambda old: positions[old])
    columns = (*_pick(node, kept), node.columns[number])
    return Unnested(columns, inner, _moved(node.times, positions)), {**positions, number: len(kept)}


def _project(node: Project, wanted: set[int]) -> tuple[Node, Positions]:
    kept = sorted(wanted)
    expressions = tuple(node.expressions[index] for index in kept)
    inner, positions = _prune(node.input, columns_read(*expressions))
    if len(kept) == len(node.columns) and inner is node.input:
        return node, _identity(node)
    moved = tuple(_moved(expression, positions) for expression in expressions)
    return Project(_pick(node, kept), inner, moved), _positions(kept)


def _aggregate(node: Aggregate, wanted: set[int]) -> tuple[Node, Positions]:
    """Keys stay, they make the groups; aggregates that nobody reads go, but one where there is no key."""
    count = len(node.keys)
    kept = [*range(count), *(index for index in sorted(wanted) if index >= count)]
    if not kept and node.aggregates:
        kept = [0]
    aggregates = tuple(node.aggregates[index - count] for index in kept[count:])
    inner, positions = _prune(node.input, columns_read(*node.keys, *aggregates))
    if len(kept) == len(node.columns) and inner is node.input:
        return node, _identity(node)
    keys = tuple(_moved(key, positions) for key in node.keys)
    calls = tuple(_moved(call, positions) for call in aggregates)
    return Aggregate(_pick(node, kept), inner, keys, calls), _positions(kept)  # type: ignore[arg-type]


def _window(node: Window, wanted: set[int]) -> tuple[Node, Positions]:
    """Calls that nobody reads go; without any, the node."""
    width = len(node.input.columns)
    calls = [index for index in sorted(wanted) if index >= width]
    if not calls:
        return _prune(node.input, wanted)
    read = columns_read(*node.keys, *(key.expression for key in node.order), *(node.calls[at - width] for at in calls))
    inner, positions = _prune(node.input, {index for index in wanted if index < width} | read)
    if len(calls) == len(node.calls) and inner is node.input:
        return node, _identity(node)
    moves = positions | {old: len(inner.columns) + new for new, old in enumerate(calls)}
    kept = sorted(moves, key=lambda old: moves[old])
    fewer = replace(node, calls=tuple(node.calls[index - width] for index in calls))
    moved = map_expressions(fewer, lambda expression: _moved(expression, positions))
    return replace(moved, columns=_pick(node, kept), input=inner), moves


def _union(node: UnionAll, wanted: set[int]) -> tuple[Node, Positions]:
    """All branches keep the same columns; one that kept more gets a Project."""
    from gpudb.planner.expressions import Column

    kept = sorted(wanted)
    branches = []
    for branch in node.branches:
        pruned, positions = _prune(branch, wanted)
        if sorted(positions) != kept:
            columns = tuple(pruned.columns[positions[index]] for index in kept)
            picked = tuple(
                Column(type_, positions[index], name) for index, (name, type_) in zip(kept, columns, strict=True)
            )
            pruned = Project(columns, pruned, picked)
        branches.append(pruned)
    if all(new is old for new, old in zip(branches, node.branches, strict=True)):
        return node, _identity(node)
    return UnionAll(_pick(node, kept), tuple(branches)), _positions(kept)


def _join(node: Join, wanted: set[int]) -> tuple[Node, Positions]:
    """What comes out narrows, and the inputs to what comes out or is compared."""
    kept = sorted(wanted)
    outputs = tuple(node.outputs[index] for index in kept)
    read = {*outputs, *columns_read(node.residual)}
    width, total = len(node.left.columns), node.width
    left, left_positions = _prune(
        node.left, {index for index in read if index < width} | columns_read(*(key[0] for key in node.keys))
    )
    right, right_positions = _prune(
        node.right,
        {index - width for index in read if width <= index < total} | columns_read(*(key[1] for key in node.keys)),
    )
    if len(kept) == len(node.columns) and left is node.left and right is node.right:
        return node, _identity(node)
    moves = dict(left_positions)
    moves |= {width + old: len(left.columns) + new for old, new in right_positions.items()}
    moves[total] = len(left.columns) + len(right.columns)
    pruned = replace(
        node,
        columns=_pick(node, kept),
        left=left,
        right=right,
        keys=tuple((_moved(a, left_positions), _moved(b, right_positions), null) for a, b, null in node.keys),
        residual=None if node.residual is None else _moved(node.residual, moves),
        outputs=tuple(moves[index] for index in outputs),
    )
    return pruned, _positions(kept)
