"""Arrow tables of generated columns, and Parquet files of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

CHUNK_ROWS = 1 << 20


def table_of(**columns: pa.Array | np.ndarray | list[str]) -> pa.Table:
    """A table none of whose columns has NULLs, and whose schema says so."""
    arrays = [pa.array(values) if not isinstance(values, pa.Array) else values for values in columns.values()]
    fields = [pa.field(name, array.type, nullable=False) for name, array in zip(columns, arrays, strict=True)]
    return pa.table(arrays, schema=pa.schema(fields))


def write_chunks(path: Path, rows: int, chunk: Callable[[int, int], pa.Table]) -> str:
    """Writes a table, a row group at a time, unless it is there already.  chunk: (first row, rows) → those rows."""
    if path.exists():
        return str(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    first = chunk(0, min(rows, CHUNK_ROWS))
    with parquet.ParquetWriter(partial, first.schema) as writer:
        writer.write_table(first)
        for start in range(CHUNK_ROWS, rows, CHUNK_ROWS):
            writer.write_table(chunk(start, min(CHUNK_ROWS, rows - start)))
    partial.rename(path)
    return str(path)
