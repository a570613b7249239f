"""TABLESAMPLE and USING SAMPLE: some rows, by a hash of their numbers and a seed; so one seed means the same rows always.

BERNOULLI keeps each row with a probability, SYSTEM so each block of 2,048 rows; RESERVOIR keeps an exact number of rows, those
with the least hashes.  Rows keep their order.  Without a seed every execution has one of its own.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from gpudb.errors import BindError, NotSupportedError
from gpudb.planner.bind.context import span_of
from gpudb.planner.bind.expressions import ExpressionBinder
from gpudb.planner.bind.functions import expand
from gpudb.planner.bind.scope import Scope
from gpudb.planner.bind.unnesting import columns_of, where
from gpudb.planner.expressions import Comparison, Expression, Frame, Literal, WindowCall
from gpudb.planner.logical import Node, Numbered, Project, SortKey, Window
from gpudb.planner.tokens import plain
from gpudb.types import BIGINT, BOOLEAN

if TYPE_CHECKING:
    from gpudb.planner.bind.relations import RelationBinder

BLOCK = 2048  # rows
_BITS = 31  # of a hash: products of two such numbers stay in 64 bits
_MASK = (1 << _BITS) - 1
_HASH = (
    f"(xor(n & {_MASK}, n >> {_BITS}) * 1597334677 + s) & {_MASK}",
    f"(xor(h, h >> 15) * 739982445) & {_MASK}",
    f"(xor(h, h >> 12) * 1822226941) & {_MASK}",
    "xor(h, h >> 15)",
)


def sampled(query: RelationBinder, plan: Node, node: Any) -> Node:
    """The rows of a plan that a sqlglot TableSample keeps."""
    context, span = query.context, span_of(node)
    method = plain(str(node.args["method"].name)).lower() if node.args.get("method") is not None else ""
    percent, size = node.args.get("percent"), node.args.get("size")
    if (percent is None) == (size is None) or method not in ("bernoulli", "system", "reservoir"):
        raise NotSupportedError("a sample in this form is not supported", span=span)
    if size is not None and method == "bernoulli":
        raise BindError("BERNOULLI wants a share, not a number of rows", span=span)
    count = _number(query, percent if percent is not None else size, "a sample")
    if percent is not None and not 0 <= count <= 100:
        raise BindError(f"a sample is 0 to 100 percent, not {count:g}", span=span)
    seed = node.args.get("seed") or None  # sqlglot has False where parentheses hold none
    if seed is None:
        context.volatile = True
    start = int(_number(query, seed, "a seed")) if seed is not None else secrets.randbits(_BITS)
    numbered = Numbered.of(plan)
    number = columns_of(numbered)[-1]
    binder = ExpressionBinder(context, Scope(None, ()), clause="SAMPLE")

    def hashed(of: Expression) -> Expression:
        found = expand(binder, (("n", "s"), _HASH[0]), [of, Literal(BIGINT, start * 2654435761 & _MASK)], None)
        for round_ in _HASH[1:]:
            found = expand(binder, (("h",), round_), [found], None)
        return found

    kept: Node
    if percent is not None and method != "reservoir":
        if method == "system":
            number = expand(binder, (("n",), f"n // {BLOCK}"), [number], None)
        bound = Literal(BIGINT, round(count / 100 * (1 << _BITS)))
        kept = where(numbered, [Comparison(BOOLEAN, "<", hashed(number), bound)])
    else:
        kept = _least(binder, numbered, hashed(number), count, percent is not None)
    return Project(plan.columns, kept, tuple(columns_of(plan)))


def _least(binder: ExpressionBinder, rows: Node, hashed: Expression, count: float, percent: bool) -> Node:
    """So many rows, or that share of them rounded to the nearest number, with the least hashes."""
    place = WindowCall(BIGINT, "row_number", (), (), (), (), Frame())
    ordered = Window((*rows.columns, ("place", BIGINT)), rows, (), (SortKey(hashed, False, False),), (place,))
    at = columns_of(ordered)[-1]
    if not percent:
        return where(ordered, [Comparison(BOOLEAN, "<=", at, Literal(BIGINT, int(count)))])
    total = WindowCall(BIGINT, "count_star", (), (), (), (), Frame())
    counted = Window((*ordered.columns, ("rows", BIGINT)), ordered, (), (), (total,))
    sql = f"a <= floor(n * {count / 100!r}::DOUBLE + 0.5)"
    return where(counted, [expand(binder, (("a", "n"), sql), [at, columns_of(counted)[-1]], None)])


def _number(query: RelationBinder, node: Any, what: str) -> float:
    """A constant, which the plan consumes."""
    bound = ExpressionBinder(query.context, Scope(None, ()), clause="SAMPLE").bind(node)
    if not isinstance(bound, Literal) or not bound.type.is_numeric or bound.value is None:
        raise BindError(f"{what} wants a number that is constant", span=span_of(node))
    query.context.consume(bound)
    return bound.value / 10**bound.type.scale if bound.type.kind == "DECIMAL" else float(bound.value)
