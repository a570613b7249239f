"""How text functions walk over their arguments: arrays of distinct values beside constants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from gpudb.types import SqlType


def length(*arguments: Any) -> int:
    """Number of rows: that of the first array (constants go with any number)."""
    for argument in arguments:
        if isinstance(argument, pa.Array):
            return len(argument)
    raise AssertionError("a text function needs at least one array")


def values(argument: Any, count: int) -> Iterable[Any]:
    """An argument as Python values, a constant repeated; dates are days, times and timestamps microseconds."""
    if not isinstance(argument, pa.Array):
        return [argument] * count
    if pa.types.is_date32(argument.type):
        return argument.cast(pa.int32()).to_pylist()
    if pa.types.is_timestamp(argument.type) or pa.types.is_time64(argument.type):
        return argument.cast(pa.int64()).to_pylist()
    return argument.to_pylist()


def rows(*arguments: Any) -> Iterator[tuple[Any, ...]]:
    """Tuples of Python values, one per row."""
    count = length(*arguments)
    return zip(*(values(argument, count) for argument in arguments), strict=True)


def per_row(function: Callable[..., Any], result: SqlType, *arguments: Any) -> pa.Array:
    """function(*values of one row) over all rows; a None it gives is NULL."""
    return pa.array([function(*row) for row in rows(*arguments)], result.arrow)


def is_constant(*arguments: Any) -> bool:
    """True where none of the arguments is an array."""
    return not any(isinstance(argument, pa.Array) for argument in arguments)


def text_array(argument: Any, count: int) -> pa.Array:
    """A VARCHAR argument as an array; a constant is repeated."""
    return argument if isinstance(argument, pa.Array) else pa.repeat(pa.scalar(argument, pa.string()), count)
