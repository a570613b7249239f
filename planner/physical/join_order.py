"""The order of inner joins, and which side of each is indexed.

Inner joins that stand on one another are taken apart into inputs and terms, and put together anew: all connected sets of
inputs are tried, small ones first (Selinger et al. 1979; bushy trees too), where there are few, else the cheapest pair joins
next.  The left input of a join streams through, the right one is emitted and indexed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import prod

from gpudb.planner.expressions import Comparison, Expression, conjunction, conjuncts
from gpudb.planner.logical import Filter, Join, JoinKey, Node, OutputColumn
from gpudb.planner.physical.estimates import Estimate, Estimator, distinct_values, equal_share, selectivity
from gpudb.planner.rules.rewriting import columns_read, renumber, with_inputs
from gpudb.record import record
from gpudb.types import BOOLEAN

MOST_TRIED = 10  # inputs of which all connected sets are tried: 10 in a star are some 500
MOST_PAIRS = 4_000  # pairs of sets to try, some 20 ms: where every input is tied to every other, 10 have 30,000

# What a row costs, in units of a look-up.  A ten-million-row probe side over 4,000 keys is the unit's measure.
PROBE, BUILD, OUT, PAIRS = 1.0, 3.0, 0.3, 3.0
EMIT = 50_000.0  # once for a build side that is a join itself: its rows must be emitted, and others wait for them
SORT = 3.0  # a build row more, where keys have several: they are sorted by key, 16 to 40 ns a row of six million


def order_joins(node: Node, estimator: Estimator) -> Node:
    """Every group of inner joins in the order that is estimated to cost least; the same object where nothing changes."""
    return _Orderer(estimator).ordered(node)


@record
class Term:
    """A condition over the columns of all inputs, numbered through, and the set of inputs that it reads, as bits."""

    expression: Expression
    inputs: int


@record
class Tree:
    """A way to join a set of inputs: an input's number, or two trees, the left streaming, the right indexed."""

    inputs: int
    rows: float
    cost: float
    leaf: int = -1
    sides: tuple[Tree, Tree] | None = None


class _Orderer:
    def __init__(self, estimator: Estimator) -> None:
        self.estimator = estimator
        self._known: dict[Node, Node] = {}  # what stands in a plan twice is ordered once

    def ordered(self, node: Node) -> Node:
        found = self._known.get(node)
        if found is None:
            found = self._known[node] = self._ordered(node)
        return found

    def _ordered(self, node: Node) -> Node:
        if isinstance(node, Join) and node.kind == "inner":
            return self._region(node)
        if isinstance(node, Join):
            left, right = self.ordered(node.left), self.ordered(node.right)
            return node if left is node.left and right is node.right else replace(node, left=left, right=right)
        return with_inputs(node, self.ordered)

    def _region(self, node: Join) -> Node:
        """The inner joins from this node down to what is none."""
        leaves: list[Node] = []
        terms: list[Expression] = []
        outputs = _flatten(node, leaves, terms)
        region = Region(*_applied([self.ordered(leaf) for leaf in leaves], terms), self.estimator)
        made = region.built(region.best(), tuple(outputs), node.columns)
        return node if made == node else made


def _flatten(node: Join, leaves: list[Node], terms: list[Expression]) -> list[int]:
    """Collect inputs and conditions; the node's output columns, numbered through all inputs."""
    numbers: list[int] = []
    widths: list[int] = []
    for side in (node.left, node.right):
        if isinstance(side, Join) and side.kind == "inner":
            found = _flatten(side, leaves, terms)
        else:
            start = sum(len(leaf.columns) for leaf in leaves)
            leaves.append(side)
            found = list(range(start, start + len(side.columns)))
        numbers += found
        widths.append(len(found))
    ours, theirs = dict(enumerate(numbers[: widths[0]])), dict(enumerate(numbers[widths[0] :]))
    for left, right, null_equal in node.keys:
        operator = "is_not_distinct" if null_equal else "="
        terms.append(Comparison(BOOLEAN, operator, renumber(left, ours), renumber(right, theirs)))
    terms += [renumber(term, dict(enumerate(numbers))) for term in conjuncts(node.residual)]
    return [numbers[index] for index in node.outputs]


def _applied(leaves: list[Node], terms: list[Expression]) -> tuple[list[Node], list[Expression]]:
    """Conditions that read one input, or none, become filters of it, or of the first; the inputs, and the other conditions."""
    owner = [k for k, leaf in enumerate(leaves) for _ in leaf.columns]
    starts = [sum(len(leaf.columns) for leaf in leaves[:k]) for k in range(len(leaves))]
    filtered, rest = list(leaves), []
    for term in terms:
        columns = columns_read(term)
        inputs = {owner[column] for column in columns} or {0}
        if len(inputs) > 1:
            rest.append(term)
            continue
        leaf = inputs.pop()
        moved = renumber(term, {column: column - starts[leaf] for column in columns})
        filtered[leaf] = Filter(filtered[leaf].columns, filtered[leaf], moved)
    return filtered, rest


class Region:
    """Inputs that are joined, the conditions, and what is known of both."""

    def __init__(self, leaves: list[Node], terms: list[Expression], estimator: Estimator) -> None:
        self.leaves = leaves
        self.starts = [sum(len(leaf.columns) for leaf in leaves[:k]) for k in range(len(leaves))]
        self.owner = [k for k, leaf in enumerate(leaves) for _ in leaf.columns]
        self.estimates = [estimator.of(leaf) for leaf in leaves]
        self.terms = [Term(term, self._inputs(columns_read(term))) for term in terms]
        whole = prod(estimate.whole for estimate in self.estimates)
        distinct = tuple(values for estimate in self.estimates for values in estimate.distinct)
        self.all = Estimate(whole, whole, distinct)
        self.shares = self._shares()
        self.neighbours = [0] * len(leaves)
        for term in self.terms:
            if term.inputs.bit_count() == 2:
                for leaf in _bits(term.inputs):
                    self.neighbours[leaf] |= term.inputs & ~(1 << leaf)
        self._rows: dict[int, float] = {}

    def _inputs(self, columns: Iterable[int]) -> int:
        found = 0
        for column in columns:
            found |= 1 << self.owner[column]
        return found

    def _shares(self) -> dict[int, float]:
        """Set of inputs -> the share of their pairs that the conditions over just these keep.

        Equalities of two inputs keep no less than one row in as many as the larger has: their keys may depend on each other.
        """
        shares: dict[int, float] = {}
        for inputs in {term.inputs for term in self.terms}:
            terms = [term.expression for term in self.terms if term.inputs == inputs]
            equal = [term for term in terms if _is_equality(term)]
            rest = [term for term in terms if not _is_equality(term)]
            share = prod(self._equal_share(term) for term in equal)
            if equal and inputs.bit_count() == 2:
                share = max(share, 1 / max(self.estimates[leaf].whole for leaf in _bits(inputs)))
            shares[inputs] = share * selectivity(conjunction(tuple(rest)), self.all)
        return shares

    def _equal_share(self, term: Expression) -> float:
        assert isinstance(term, Comparison), "an equality"
        sides = []
        for side in (term.left, term.right):
            rows = max((self.estimates[leaf].whole for leaf in _bits(self._inputs(columns_read(side)))), default=1.0)
            sides.append((distinct_values(side, self.all), rows))
        return equal_share(sides[0], sides[1])

    def rows(self, inputs: int) -> float:
        """Rows of the join of a set of inputs, in whatever order."""
        found = self._rows.get(inputs)
        if found is None:
            found = prod(self.estimates[leaf].rows for leaf in _bits(inputs))
            for needed, share in self.shares.items():
                if needed & inputs == needed:
                    found *= share
            found = self._rows[inputs] = max(1.0, found)
        return found

    def around(self, inputs: int) -> int:
        """The inputs that a condition ties to a set."""
        found = 0
        for leaf in _bits(inputs):
            found |= self.neighbours[leaf]
        return found & ~inputs

    # ------------------------------------------------------------------------------------------- choosing

    def best(self) -> Tree:
        """The cheapest tree that was found; inputs that nothing ties together meet last, the largest on the left."""
        leaves = [Tree(1 << k, self.rows(1 << k), 0.0, k) for k in range(len(self.leaves))]
        left = (1 << len(leaves)) - 1
        parts: list[Tree] = []
        while left:
            component, fringe = left & -left, left & -left
            while fringe := self.around(component):
                component |= fringe
            members = [leaf for leaf in leaves if leaf.inputs & component]
            tried = self._tried(members) if len(members) <= MOST_TRIED else None
            parts.append(tried or self._greedy(members))
            left &= ~component
        parts.sort(key=lambda tree: -tree.rows)
        joined = parts[0]
        for part in parts[1:]:
            joined = self._pair(joined, part)
        return joined

    def _tried(self, leaves: list[Tree]) -> Tree | None:
        """The cheapest of all trees; None where there are too many."""
        pairs = 0
        by_size: list[dict[int, Tree]] = [{}, {leaf.inputs: leaf for leaf in leaves}]
        for size in range(2, len(leaves) + 1):
            found: dict[int, Tree] = {}
            for smaller in range(1, size):
                for left in by_size[smaller].values():
                    around = self.around(left.inputs)
                    for right in by_size[size - smaller].values():
                        if left.inputs & right.inputs or not around & right.inputs:
                            continue
                        pairs += 1
                        if pairs > MOST_PAIRS:
                            return None
                        known = found.get(left.inputs | right.inputs)
                        if known is not None and left.cost + right.cost >= known.cost:
                            continue
                        tree = self._pair(left, right)
                        if known is None or tree.cost < known.cost:
                            found[tree.inputs] = tree
            by_size.append(found)
        return next(iter(by_size[-1].values()))

    def _greedy(self, leaves: list[Tree]) -> Tree:
        trees = list(leaves)
        while len(trees) > 1:
            pairs = [
                self._pair(left, right)
                for left in trees
                for right in trees
                if left is not right and self.around(left.inputs) & right.inputs
            ]
            chosen = min(pairs, key=lambda tree: (tree.rows, tree.cost))
            trees = [tree for tree in trees if not tree.inputs & chosen.inputs]
            trees.append(chosen)
        return trees[0]

    def _pair(self, left: Tree, right: Tree) -> Tree:
        inputs = left.inputs | right.inputs
        rows = self.rows(inputs)
        cost = left.cost + right.cost + PROBE * left.rows + BUILD * right.rows + OUT * rows
        if right.sides is not None:
            cost += EMIT
        if not self._unique(left.inputs, right):
            cost += SORT * right.rows + PAIRS * (left.rows + rows)
        return Tree(inputs, rows, cost, sides=(left, right))

    def _unique(self, left: int, right: Tree) -> bool:
        """Will a key have one row at most on the right side?"""
        keys = 1.0
        for term in self.terms:
            if term.inputs & left and term.inputs & right.inputs and _is_equality(term.expression):
                assert isinstance(term.expression, Comparison), "an equality"
                for side in (term.expression.left, term.expression.right):
                    if not self._inputs(columns_read(side)) & left:
                        keys *= distinct_values(side, self.all)
        whole = max(self.estimates[leaf].whole for leaf in _bits(right.inputs))
        return keys * 2 >= min(right.rows, whole)  # row bounds are rounded up to powers of two

    # ------------------------------------------------------------------------------------------- building

    def built(self, tree: Tree, outputs: tuple[int, ...], columns: tuple[OutputColumn, ...]) -> Node:
        """The joins of a tree, with the columns `outputs` under the names they had."""
        node, numbers = self._node(tree, set(outputs), top=outputs)
        assert numbers == outputs, "the region's columns come out in their order"
        return replace(node, columns=columns)

    def _node(self, tree: Tree, wanted: set[int], top: tuple[int, ...] | None = None) -> tuple[Node, tuple[int, ...]]:
        """A tree's node, and which columns, numbered through all inputs, it gives: of `wanted`, those that it has."""
        if tree.sides is None:
            leaf = self.leaves[tree.leaf]
            return leaf, tuple(range(self.starts[tree.leaf], self.starts[tree.leaf] + len(leaf.columns)))
        left, right = tree.sides
        here = [
            term.expression
            for term in self.terms
            if not term.inputs & ~tree.inputs and all(term.inputs & ~side.inputs for side in tree.sides)
        ]
        below = wanted | columns_read(*here)
        left_node, left_numbers = self._node(left, below)
        right_node, right_numbers = self._node(right, below)
        places = {number: place for place, number in enumerate((*left_numbers, *right_numbers))}
        keys: list[JoinKey] = []
        rest: list[Expression] = []
        width = len(left_numbers)
        for term in here:
            key = self._key(term, left.inputs, right.inputs)
            if key is None:
                rest.append(renumber(term, places))
            else:
                ours, theirs, null_equal = key
                to_right = {number: places[number] - width for number in columns_read(theirs)}
                keys.append((renumber(ours, places), renumber(theirs, to_right), null_equal))
        numbers = top if top is not None else tuple(number for number in places if number in wanted)
        all_columns = (*left_node.columns, *right_node.columns)
        outputs = tuple(places[number] for number in numbers)
        columns = tuple(all_columns[place] for place in outputs)
        return Join(columns, left_node, right_node, "inner", tuple(keys), conjunction(tuple(rest)), outputs), numbers

    def _key(self, term: Expression, left: int, right: int) -> JoinKey | None:
        """The key that an equality of the two sides is; None for anything else."""
        if not _is_equality(term):
            return None
        assert isinstance(term, Comparison), "an equality"
        null_equal = term.operator == "is_not_distinct"
        sides = [(side, self._inputs(columns_read(side))) for side in (term.left, term.right)]
        for (ours, mine), (theirs, others) in (sides, sides[::-1]):
            if mine and others and mine & left == mine and others & right == others:
                return ours, theirs, null_equal
        return None


def _is_equality(term: Expression) -> bool:
    return isinstance(term, Comparison) and term.operator in ("=", "is_not_distinct")


def _bits(inputs: int) -> list[int]:
    """The numbers of the inputs of a set."""
    return [k for k in range(inputs.bit_length()) if inputs >> k & 1]
