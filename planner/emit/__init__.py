"""Emit: from a logical plan to a program.

`query.emit_program` walks the plan and opens and closes pipelines; `builder.PipelineBuilder` collects one pipeline's
columns, slots, registers and instructions; `expressions.ExpressionEmitter` lowers expressions, proving ranges as it goes;
`aggregates` chooses the group strategy and the accumulator words.
"""

from gpudb.planner.emit.query import emit_program

__all__ = ["emit_program"]
