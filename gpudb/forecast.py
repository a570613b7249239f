"""EXPLAIN MEMORY: the bytes each step of a program is expected to hold, from row bounds known before it runs."""

from __future__ import annotations

from gpudb.program import CountPairs, EmitSink, FrameWords, GroupSource, IndexRows, Pipeline, Program, StepSource
from gpudb.vm.slices import slice_bytes

MOST = (1 << 63) - 1  # that a BIGINT shows


def forecast_bytes(program: Program) -> dict[int | None, int]:
    """Upper bound of bytes per step: emitted columns at the source's row bound, group tables, indexes of joins."""
    found: dict[int | None, int] = {}
    for number, step in enumerate(program.steps):
        if isinstance(step, Pipeline):
            found[number] = min(MOST, _pipeline_bytes(step, number == program.rows_as_they_come))
        elif isinstance(step, IndexRows):
            found[number] = _index_bytes(step, _bound(program, step.step))
        elif isinstance(step, CountPairs):
            found[number] = (_bound(program, step.step) + 1) * 8
        elif isinstance(step, FrameWords):
            rows = _bound(program, step.step)
            found[number] = (rows + 1) * 8 * (len(step.words) + 1)
    return found


def _bound(program: Program, step: int) -> int:
    pipeline = program.steps[step]
    assert isinstance(pipeline, Pipeline), "what a join reads was emitted"
    return pipeline.row_bound


def _index_bytes(index: IndexRows, rows: int) -> int:
    """By number a row each; by words a hash table, the words side by side, each row's entry; of all rows three lists more."""
    if index.numbers:
        held = (index.numbers + 1) * 4
    else:
        held = (8 << max(3, (2 * rows - 1).bit_length())) + rows * 8 * (1 + len(index.words) * (len(index.words) > 1))
    entries = index.numbers or rows
    return held + ((entries + 1) * 8 + rows * 28 if index.form == "all" else 0)


def _pipeline_bytes(pipeline: Pipeline, last: bool) -> int:
    sink = pipeline.sink
    if isinstance(sink, EmitSink):
        width = sum(kind.width for kind in sink.columns)
        held = pipeline.row_bound * width
        if last and sink.limit is None and not isinstance(pipeline.source, GroupSource | StepSource):
            held = slice_bytes(pipeline.row_bound, width)
        return held * (2 if sink.filtered else 1)
    groups = sink.capacity if sink.kind != "hash" else pipeline.row_bound
    if sink.kind == "indexed":
        groups = min(groups, pipeline.row_bound)
    heads = (sink.capacity + 1) * 4 if sink.kind == "indexed" else 0
    return (groups + 1) * (len(sink.words) + sink.key_words) * 8 + heads
