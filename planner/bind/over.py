"""Windows as they are written: OVER (...), OVER name, and the WINDOW clause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpudb.errors import BindError
from gpudb.planner.bind.context import span_of
from gpudb.planner.expressions import CURRENT, FOLLOWING, PRECEDING, UNBOUNDED_FOLLOWING, UNBOUNDED_PRECEDING
from gpudb.planner.tokens import plain
from gpudb.record import record


@record
class Over:
    """A window as it is written: the trees of its parts."""

    partition: tuple[Any, ...] = ()
    order: Any = None
    spec: Any = None


def named_windows(nodes: Sequence[Any]) -> dict[str, Over]:
    """The windows of a WINDOW clause by lower-case name; each may build on those before it."""
    found: dict[str, Over] = {}
    for node in nodes:
        name = plain(node.name).lower()
        if name in found:
            raise BindError(f"window is defined twice: {name}", span=span_of(node))
        found[name] = over(node, found)
    return found


def over(node: Any, known: Mapping[str, Over]) -> Over:
    """The parts of a window, those of the named one that it builds on included."""
    partition, order, spec = tuple(node.args.get("partition_by") or ()), node.args.get("order"), node.args.get("spec")
    alias = node.args.get("alias")
    if alias is None:
        return Over(partition, order, spec)
    base = known.get(plain(alias.name).lower())
    if base is None:
        raise BindError(f"window not found: {alias.name}", span=span_of(alias) or span_of(node))
    if partition and base.partition:
        raise BindError(f"the window has PARTITION BY already: {alias.name}", span=span_of(node))
    if order is not None and base.order is not None:
        raise BindError(f"the window has ORDER BY already: {alias.name}", span=span_of(node))
    if base.spec is not None and "partition_by" in node.args:  # in parentheses: a window of its own
        raise BindError(f"the window has a frame already: {alias.name}", span=span_of(node))
    return Over(partition or base.partition, order or base.order, spec or base.spec)


def end_of_frame(spec: Any, which: str) -> tuple[int, Any]:
    """(the kind of an end of a frame, the tree of its offset or None)."""
    value, side = spec.args.get(which), str(spec.args.get(which + "_side") or "").lower()
    following = side == "following"
    if isinstance(value, str):
        if value.upper() == "CURRENT ROW":
            return CURRENT, None
        return (UNBOUNDED_FOLLOWING if following else UNBOUNDED_PRECEDING), None
    return (FOLLOWING if following else PRECEDING), value
