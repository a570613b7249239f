"""Arrow tables of generated columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def table_of(**columns: pa.Array | np.ndarray | list[str]) -> pa.Table:
    """A table none of whose columns has NULLs, and whose schema says so."""
    arrays = [pa.array(values) if not isinstance(values, pa.Array) else values for values in columns.values()]
    fields = [pa.field(name, array.type, nullable=False) for name, array in zip(columns, arrays, strict=True)]
    return pa.table(arrays, schema=pa.schema(fields))
