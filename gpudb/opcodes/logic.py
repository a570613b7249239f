"""Masks and choice.  A mask is one byte a row, 0 or 1.  NULL never lives in a value: validity is a mask of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpudb.opcodes.table import ALL, R, opcode, same

Array = Any


@opcode("{out} = {left} and {right}", same((R.MASK,), 2), cpp="left & right", forms=("vv",))
def And(left: Array, right: Array) -> Array:
    """Both."""
    return left & right


@opcode("{out} = {left} or {right}", same((R.MASK,), 2), cpp="left | right", forms=("vv",))
def Or(left: Array, right: Array) -> Array:
    """Either."""
    return left | right


@opcode("{out} = {left} and not {right}", same((R.MASK,), 2), cpp="left & (right ^ 1)", forms=("vv",))
def AndNot(left: Array, right: Array) -> Array:
    """The first without the second."""
    return left & (right ^ 1)


@opcode("{out} = not {x}", same((R.MASK,), 1), cpp="x ^ 1")
def Not(x: Array) -> Array:
    """Negation."""
    return x ^ 1


@opcode(
    "{out} = {condition} ? {then} : {otherwise}",
    [(t, R.MASK, t, t) for t in ALL],
    cpp="condition ? then : otherwise",
    forms=("vvv", "vvs"),
)
def Select(condition: Array, then: Array, otherwise: Array) -> Array:
    """One of two values a row; both are computed before (load, then select)."""
    return np.where(condition != 0, then, otherwise)


@opcode(
    "{out} = {value} where {keep}, else 0", [(t, t, R.MASK) for t in ALL], cpp="keep ? value : Out(0)", forms=("vv",)
)
def Keep(value: Array, keep: Array) -> Array:
    """Zero where the mask is 0: canonical bytes under NULL, and terms of masked sums."""
    return np.where(keep != 0, value, np.asarray(value).dtype.type(0) if np.asarray(value).dtype != object else 0)
