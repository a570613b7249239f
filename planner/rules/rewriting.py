"""What several rules need: walking plans, replacing columns by expressions, finding the columns an expression reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from gpudb.planner.expressions import Column, Expression
from gpudb.planner.logical import Node, SortKey, UnionAll
from gpudb.record import replace

# The fields of nodes by what they hold; a node has some of them.
_INPUT_FIELDS = ("input", "left", "right")
_EXPRESSION_FIELDS = ("predicate", "expressions", "keys", "residual", "aggregates", "rows", "order", "calls", "times")


@cache
def _fields(kind: type[Node], names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the names that are fields of such nodes."""
    return tuple(name for name in names if name in kind.__dataclass_fields__)


def with_inputs(node: Node, function: Callable[[Node], Node]) -> Node:
    """The node over `function` of each input; the same object where nothing changes."""
    if isinstance(node, UnionAll):
        branches = tuple(function(branch) for branch in node.branches)
        same = all(a is b for a, b in zip(branches, node.branches, strict=True))
        return node if same else replace(node, branches=branches)
    changes: dict[str, Any] = {}
    for name in _fields(type(node), _INPUT_FIELDS):  # type: ignore[arg-type]  # mypy takes a type's __hash__ for its instances'
        old = getattr(node, name)
        if (new := function(old)) is not old:
            changes[name] = new
    return replace(node, **changes) if changes else node


def bottom_up(node: Node, function: Callable[[Node], Node]) -> Node:
    """`function` at every node, inputs first; once for a part that stands in a plan twice."""
    known: dict[int, Node] = {}  # by identity: the hash of a node is that of its whole tree

    def rewritten(inner: Node) -> Node:
        found = known.get(id(inner))
        if found is None:
            found = known[id(inner)] = function(with_inputs(inner, rewritten))
        return found

    return rewritten(node)


def map_expressions(node: Node, function: Callable[[Expression], Expression]) -> Node:
    """The node with `function` applied to each of its own expressions (not to those of its inputs)."""

    def mapped(value: Any) -> Any:
        if isinstance(value, Expression):
            return function(value)
        if isinstance(value, SortKey):
            expression = function(value.expression)
            return value if expression is value.expression else replace(value, expression=expression)
        if isinstance(value, tuple):
            new = tuple(mapped(element) for element in value)
            return value if all(a is b for a, b in zip(new, value, strict=True)) else new
        return value

    changes: dict[str, Any] = {}
    for name in _fields(type(node), _EXPRESSION_FIELDS):  # type: ignore[arg-type]  # as above
        value = getattr(node, name)
        if value is not None:
            new = mapped(value)
            if new is not value:
                changes[name] = new
    return replace(node, **changes) if changes else node


def substitute(expression: Expression, by: Sequence[Expression]) -> Expression:
    """The expression with Column i replaced by expression i: from over a Project to under it."""

    def replaced(part: Expression) -> Expression:
        return by[part.index] if isinstance(part, Column) else part

    return expression.transform(replaced)


def renumber(expression: Expression, positions: Mapping[int, int]) -> Expression:
    """The expression with its columns at new positions."""

    def moved(part: Expression) -> Expression:
        if isinstance(part, Column) and positions[part.index] != part.index:
            return replace(part, index=positions[part.index])
        return part

    return expression.transform(moved)


def columns_read(*expressions: Expression | None) -> set[int]:
    """Numbers of the input columns that expressions read."""
    return {
        part.index
        for expression in expressions
        if expression is not None
        for part in expression.walk()
        if isinstance(part, Column)
    }
