"""Columns as text, value by value as DuckDB prints them."""

from __future__ import annotations

from json.encoder import encode_basestring

import numpy as np
import pyarrow as pa

from gpudb import compute as pc
from gpudb.functions.blob import blob_texts
from gpudb.functions.cast_text import print_values
from gpudb.functions.lists import printed
from gpudb.functions.zoned import zoned_texts
from gpudb.types import SqlType


def text_column(column: pa.Array, sql_type: SqlType) -> pa.Array:
    """(rows,) string: each value as text, NULL where the value is NULL."""
    if sql_type.kind == "VARCHAR":
        return column
    if sql_type.child is not None:
        leaf = sql_type
        while leaf.child is not None:
            leaf = leaf.child
        return printed(column, lambda values: text_column(values, leaf))
    if sql_type.is_float:
        values = column.to_numpy(zero_copy_only=False).tolist()
        if sql_type.kind == "REAL":  # the shortest text for a float32: 0.1, not 0.10000000149
            values = [float(str(value)) for value in column.to_numpy(zero_copy_only=False)]
        return _strings(column, [repr(value) for value in values])
    if sql_type.kind == "BLOB":
        return blob_texts(column)
    if sql_type.kind == "TIME":
        return print_values(column, sql_type)
    if sql_type.kind == "TIMESTAMPTZ":
        return zoned_texts(column, column.type.tz)
    if sql_type.is_temporal:
        return _strings(column, _temporal_text(column))
    if sql_type.kind == "INTERVAL":
        return _strings(column, ["" if v is None else interval_text(*v) for v in column.to_pylist()])
    if sql_type.kind == "DECIMAL" and sql_type.scale > 6:  # Arrow would write small values as 1E-7
        return _strings(column, ["" if v is None else format(v, "f") for v in column.to_pylist()])
    return pc.cast(column, pa.string())


def cell_texts(column: pa.Array, sql_type: SqlType) -> list[str | None]:
    """`text_column` as Python texts; of integers without Arrow's compute functions, which take 60 ms to load."""
    if sql_type.is_integer:
        return [None if value is None else str(value) for value in column.to_pylist()]
    texts: list[str | None] = text_column(column, sql_type).to_pylist()
    return texts


def json_column(column: pa.Array, sql_type: SqlType) -> pa.Array:
    """(rows,) string: each value as JSON, with null for NULL; numbers JSON cannot hold (NaN, infinities) as text."""
    if sql_type.child is not None:
        inner = pa.ListArray.from_arrays(column.offsets, json_column(column.values, sql_type.child))
        found = pc.binary_join_element_wise("[", pc.binary_join(inner, ", "), "]", "")
        return pc.if_else(column.is_valid(), found, "null")
    text = text_column(column, sql_type)
    if sql_type.is_float:
        special = {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}
        text = pa.array([None if v is None else special.get(v, v) for v in text.to_pylist()], pa.string())
    elif not (sql_type.is_numeric or sql_type.kind in ("BOOLEAN", "NULL")):
        text = pa.array([None if v is None else encode_basestring(v) for v in text.to_pylist()], pa.string())
    return pc.fill_null(text, "null")


def interval_text(months: int, days: int, nanoseconds: int) -> str:
    """1 year 2 months 40 days 01:01:01.5"""
    sign = -1 if months < 0 else 1
    years, months = sign * (abs(months) // 12), sign * (abs(months) % 12)
    counts = ((years, "year"), (months, "month"), (days, "day"))
    parts = [f"{count} {unit}{'' if abs(count) == 1 else 's'}" for count, unit in counts if count]
    if nanoseconds or not parts:
        seconds, microseconds = divmod(abs(nanoseconds) // 1000, 1_000_000)
        fraction = f".{microseconds:06}".rstrip("0") if microseconds else ""
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"
        parts.append(("-" if nanoseconds < 0 else "") + clock)
    return " ".join(parts)


def _strings(column: pa.Array, texts: list[str]) -> pa.Array:
    """`texts` as an Arrow array with the NULLs of `column`."""
    return pa.array(texts, pa.string(), mask=column.is_null().to_numpy(zero_copy_only=False))


def _temporal_text(column: pa.Array) -> list[str]:
    """DATE as 2013-07-04 and TIMESTAMP as 2013-07-04 05:06:07.25, for any year; text under NULL is arbitrary."""
    is_date = pa.types.is_date32(column.type)
    unit = "D" if is_date else "us"
    integers = pc.fill_null(column.cast(pa.int32() if is_date else pa.int64()), 0)
    # NumPy knows years that Python's datetime does not
    texts = np.datetime_as_string(integers.to_numpy(zero_copy_only=False).astype(f"datetime64[{unit}]")).tolist()
    if not is_date:
        texts = [text.rstrip("0").rstrip(".").replace("T", " ") for text in texts]
    return [_before_christ(text) if text[0] == "-" or text.startswith("0000") else text for text in texts]


def _before_christ(text: str) -> str:
    """Year 0 is 1 BC: -0001-12-31 is written 0002-12-31 (BC)."""
    year, _, rest = text[1:].partition("-") if text[0] == "-" else text.partition("-")
    return f"{int(year) + 1:04}-{rest[:5]} (BC){rest[5:]}"
