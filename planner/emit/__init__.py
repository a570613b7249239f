"""Emit: from a logical plan to a program.

`query.emit_program` walks the plan and opens and closes pipelines; `builder.PipelineBuilder` collects one pipeline's
columns, slots, registers and instructions; `expressions.ExpressionEmitter` lowers expressions (with `casts` and `texts`),
proving ranges as it goes (`ranges`); `group_keys` chooses how groups are found, `aggregates` the words of
their aggregates.
"""

from gpudb.planner.emit.query import emit_program

__all__ = ["emit_program"]
