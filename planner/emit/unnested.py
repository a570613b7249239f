"""Rows that come several times: UNNEST.

The rows are emitted with how often each comes, and a pipeline over the pairs that these counts make, as of a join, gathers
them again; a pair's number among those of its row is its own number less that of the row's first pair.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from gpudb.planner.emit.builder import Value
from gpudb.planner.emit.joins import Rows
from gpudb.planner.emit.streams import LazyValues, Stream
from gpudb.planner.logical import Unnested
from gpudb.program import CountPairs, PairSource, PlainSlot, SourceColumn, StepRowsSlot
from gpudb.types import BIGINT, RegisterType

if TYPE_CHECKING:
    from gpudb.planner.emit.query import QueryEmitter

R = RegisterType
MOST = (1 << 32) - 1
TOO_MANY = f"UNNEST makes more than {MOST} rows of one"


def unnested(query: QueryEmitter, node: Unnested) -> Callable[[], Stream]:
    """Emit the rows with their counts; what opens pipelines over the repeated rows."""
    stream = query.stream(node.input)
    builder, emitter = stream.builder, stream.emitter()
    value = emitter.value(node.times)
    times = replace(value, operand=builder.vector(emitter.in_register(value, R.I64)), type=R.I64, stored=None)
    if times.high is None or times.high > MOST:
        times = emitter.within(times, 0, MOST, False, TOO_MANY, node.times)
    count = builder.make("Convert", R.U32, times.operand)
    if times.valid is not None:
        count = builder.make("Keep", R.U32, count, times.valid)
    some = builder.make("Ne", R.MASK, count, builder.slot(PlainSlot(R.U32, 0)))
    stream.alive, stream.filtered = builder.both(stream.alive, some), True
    stream.compact()
    width = len(node.input.columns)
    counted = Value(BIGINT, R.U32, count, None, 0, MOST)
    step, became = query.emit(stream, [*(stream.values[k] for k in range(width)), counted])
    rows = Rows(step, {k: (k, became[k]) for k in range(width)})
    pairs = query.add(CountPairs(SourceColumn(width, "stored", R.U32, step), 0))
    bound = stream.row_bound * max(1, min(int(times.high), MOST))

    def opened() -> Stream:
        over = query.builder(PairSource(pairs), bound)
        offsets = over.column(0, "array", R.I64, pairs)
        row = over.block_once("MatchProbe", (R.U32,), R.U32, offsets, over.slot(StepRowsSlot(step)))

        def turn() -> Value:
            first = over.block_once("Gather", (R.I64, R.I64, R.U32), R.I64, offsets, row)
            number = over.make("Subtract", R.I64, over.block_once("RowNumber", (R.I64,), R.I64), first)
            return Value(BIGINT, R.I64, number, None, 0, max(0, min(int(times.high), MOST) - 1))

        makers = [partial(rows.value, over, k, row, None) for k in range(width)]
        return Stream(over, LazyValues([*makers, turn]), None, bound)

    return opened
