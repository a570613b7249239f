"""Build sides reduced to the keys that a small probe side has.

Where few rows look into an index of many, most of the index is made for nothing.  So the few rows are made first and kept,
the rows of the build side are dropped whose key is none of theirs, before they are grouped or sorted by key, and the join
reads the kept rows (sideways information passing; magic sets, Bancilhon et al. 1986).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

from gpudb.planner.expressions import Expression
from gpudb.planner.logical import Aggregate, Filter, Join, JoinKey, Kept, Node, Project, Scan, Values
from gpudb.planner.physical.estimates import Estimator, distinct_values, key_selectivity
from gpudb.planner.rules.rewriting import bottom_up, columns_read, renumber, substitute
from gpudb.record import record

LEAST_ROWS = 65_536  # fewer are indexed in less time than three more steps take
MOST_KEPT = 0.25  # of the large side's rows: with more the look-ups before cost what is saved behind


def reduce_build_sides(node: Node, estimator: Estimator) -> Node:
    """Every join of which one side is much larger than what the other asks for; the same object where there is none."""
    return bottom_up(node, lambda inner: _reduced(inner, estimator))


def _reduced(node: Node, estimator: Estimator) -> Node:
    if not isinstance(node, Join) or not node.keys:
        return node
    ours, theirs = tuple(key[0] for key in node.keys), tuple(key[1] for key in node.keys)
    asked = _asked_for(node.right, theirs, node.left, ours, node, estimator)
    if asked is not None:
        return replace(node, right=asked[0], left=asked[1])
    if node.kind in ("inner", "semi"):  # left rows without a match go as well: before they are grouped, if they are
        asked = _asked_for(node.left, ours, node.right, theirs, node, estimator)
        if asked is not None:
            return replace(node, left=asked[0], right=asked[1])
    return node


@record
class Place:
    """Where rows of a build side can be dropped: the node there, its keys, and what makes the build side of a new node."""

    node: Node
    keys: tuple[Expression, ...]
    rebuilt: Callable[[Node], Node]
    grouped: bool


def _asked_for(
    large: Node,
    keys: tuple[Expression, ...],
    few: Node,
    others: tuple[Expression, ...],
    join: Join,
    estimator: Estimator,
) -> tuple[Node, Node] | None:
    """(a side of the join with only those rows whose keys the other has, the other side as it is then read)."""
    place = _place(large, keys, lambda new: new, False)
    null_equal = [key[2] for key in join.keys]
    terms: tuple[JoinKey, ...] = tuple(zip(place.keys, others, null_equal, strict=True))
    there, asking = estimator.of(place.node), estimator.of(few)
    values = min(there.rows, prod(distinct_values(key, there) for key in place.keys))
    indexed = large is join.right and (join.residual is not None or values * 2 < there.rows)  # all rows, by key: costly
    kept = asking.rows * key_selectivity(terms, there, asking)
    if there.rows < LEAST_ROWS or kept > MOST_KEPT or not (place.grouped or indexed):
        return None
    if not isinstance(few, (Kept, Aggregate, Scan, Values)):  # these are made once anyway, or cheap to make again
        few = Kept(few.columns, few)
    below = place.node
    some = Join(below.columns, below, few, "semi", terms, None, tuple(range(len(below.columns))))
    return place.rebuilt(some), few


def _place(node: Node, keys: tuple[Expression, ...], rebuilt: Callable[[Node], Node], grouped: bool) -> Place:
    """The deepest place where rows with other keys can go: under groups, as long as the keys are keys of the groups."""

    def inside(below: Node, moved: tuple[Expression, ...], groups: bool = grouped) -> Place:
        return _place(below, moved, lambda new: rebuilt(replace(node, input=new)), groups)  # type: ignore[call-arg]  # all have one

    match node:
        case Filter():
            return inside(node.input, keys)
        case Project():
            return inside(node.input, tuple(substitute(key, node.expressions) for key in keys))
        case Aggregate() if all(index < len(node.keys) for index in columns_read(*keys)):
            return inside(node.input, tuple(substitute(key, node.keys) for key in keys), True)
        case Join(kind="inner"):
            side = _side(node, keys)
            if side is not None:
                on_left, moved = side
                if on_left:
                    return _place(node.left, moved, lambda new: rebuilt(replace(node, left=new)), grouped)
                return _place(node.right, moved, lambda new: rebuilt(replace(node, right=new)), grouped)
    return Place(node, keys, rebuilt, grouped)


def _side(node: Join, keys: tuple[Expression, ...]) -> tuple[bool, tuple[Expression, ...]] | None:
    """(whether it is the left input of an inner join that all keys read, the keys over it); None if they read both."""
    width = len(node.left.columns)
    wide = tuple(renumber(key, dict(enumerate(node.outputs))) for key in keys)
    read = columns_read(*wide)
    if read and max(read) < width:
        return True, wide
    if read and min(read) >= width:
        return False, tuple(renumber(key, {index: index - width for index in read}) for key in wide)
    return None
