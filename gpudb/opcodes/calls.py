"""Opcodes that call functions which the kernels do not hold.  Each has op_<name> in kernels/ops_call.cuh."""

from __future__ import annotations

from typing import Any

from gpudb.opcodes.table import block_opcode

Operand = Any

MOST_ARGUMENTS = 14
"""Of a function: values, and the masks that say which are not NULL."""
ARGUMENTS_AT_ONCE = 7
"""Operands of one instruction."""


@block_opcode("arguments {a}, {b}, {c}, {d}, {e}, {f}, {g}")
def Arguments(a: Operand, b: Operand, c: Operand, d: Operand, e: Operand, f: Operand, g: Operand) -> None:
    """Arguments of the Call that follows, up to seven to an instruction; 0 behind the last."""


@block_opcode("{out}, {status} = {function} of the arguments, where {alive}")
def Call(out: Operand, status: Operand, alive: Operand, function: Operand) -> None:
    """Call a function for the rows alive, all of them if no mask is named; a row's status says what came of it, 0 its value.

    One call runs over the rows of a tile.  Where a row is not alive, or its status is not 0, the result is 0.
    """


WRITTEN = {"Call": (1,)}
"""Operands that an opcode writes besides its result."""
