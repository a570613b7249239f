"""Arrow record batches as rows of Python objects."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from gpudb import errors
from gpudb.types import SqlType

A_DAY = 86_400_000_000  # microseconds


def python_rows(batch: pa.RecordBatch, types: Sequence[SqlType]) -> list[tuple[Any, ...]]:
    """The rows of a batch as tuples of Python values; NULL is None.

    HUGEINT gives int, DECIMAL decimal.Decimal, DATE, TIME and TIMESTAMP datetime objects (24:00:00, which Python has not, is
    text), INTERVAL timedelta with months of
    30 days, UUID uuid.UUID, as DuckDB does.  A date past year 9999 is a DataError.
    """
    columns = []
    for position, sql_type in enumerate(types):
        column = batch.column(position)
        try:
            if column.null_count == 0 and (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
                columns.append(column.to_numpy(zero_copy_only=False).tolist())  # 10 times to_pylist's speed
                continue
            values = _times(column) if sql_type.kind == "TIME" else column.to_pylist()
        except (ValueError, OverflowError) as error:
            raise errors.DataError(
                f"column {batch.schema.names[position]} holds a {sql_type} that Python's datetime cannot: {error}",
                hint="fetch_arrow_table() reads it, or CAST it to VARCHAR",
            ) from None
        if sql_type.kind == "HUGEINT":
            values = [None if value is None else int(value) for value in values]
        elif sql_type.child is not None:
            values = _elements(values, sql_type.child)
        elif sql_type.kind == "INTERVAL":
            values = [None if value is None else _timedelta(value) for value in values]
        elif sql_type.kind == "UUID":
            values = [None if value is None else uuid.UUID(value) for value in values]
        columns.append(values)
    return list(zip(*columns, strict=True))


def _times(column: pa.Array) -> list[Any]:
    midnight = datetime.datetime.min
    counts: list[int | None] = column.cast(pa.int64()).to_pylist()
    return [
        None if n is None else (midnight + datetime.timedelta(microseconds=n)).time() if n < A_DAY else "24:00:00"
        for n in counts
    ]


def _elements(values: list[Any], child: SqlType) -> list[Any]:
    """Lists whose elements are ints where the SQL type is HUGEINT, uuid.UUID where it is UUID."""
    if child.child is not None:
        return [None if value is None else _elements(value, child.child) for value in values]
    make = {"HUGEINT": int, "UUID": uuid.UUID}.get(child.kind)
    if make is None:
        return values
    return [None if value is None else [None if one is None else make(one) for one in value] for value in values]


def _timedelta(value: pa.MonthDayNano) -> datetime.timedelta:
    return datetime.timedelta(days=30 * value.months + value.days, microseconds=value.nanoseconds // 1000)
