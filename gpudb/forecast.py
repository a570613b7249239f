"""EXPLAIN MEMORY: the bytes each step of a program is expected to hold, from row bounds known before it runs."""

from __future__ import annotations

from gpudb.program import EmitSink, Pipeline, Program


def forecast_bytes(program: Program) -> dict[int | None, int]:
    """Upper bound of bytes per pipeline: emitted columns at the source's row bound, dense group tables."""
    found: dict[int | None, int] = {}
    for number, pipeline in program.pipelines:
        found[number] = _pipeline_bytes(pipeline)
    return found


def _pipeline_bytes(pipeline: Pipeline) -> int:
    sink = pipeline.sink
    if isinstance(sink, EmitSink):
        width = sum(kind.width for kind in sink.columns)
        return pipeline.row_bound * width * (2 if sink.filtered else 1)
    groups = sink.capacity if sink.kind != "hash" else pipeline.row_bound
    if sink.kind == "indexed":
        groups = min(groups, pipeline.row_bound)
    heads = (sink.capacity + 1) * 4 if sink.kind == "indexed" else 0
    return (groups + 1) * (len(sink.words) + sink.key_words) * 8 + heads
