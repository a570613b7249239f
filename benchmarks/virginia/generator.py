"""Makes the table `test`: a row id, three integers and three floats, 28 bytes a row.

uniform is flat over (-100, 100), normal5 and normal20 have these standard deviations; integers are draws with their
fraction cut off.  The paper's own generator bound its FLOAT columns as integers, so the published row counts are those
of floats without a fraction.  Both variants exist here: `truncated` is comparable with the paper, `floats` is what it
meant.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

VARIANTS = ("truncated", "floats")
CHUNK_ROWS = 1 << 20
FORMAT = 1  # part of the file name: raise it when the same seed gives other rows

SCHEMA = pa.schema(
    [pa.field("id", pa.int32(), nullable=False)]
    + [pa.field(name, pa.int32(), nullable=False) for name in ("uniformi", "normali5", "normali20")]
    + [pa.field(name, pa.float32(), nullable=False) for name in ("uniformf", "normalf5", "normalf20")]
)


def rows_of(start: int, rows: int, seed: int, variant: str) -> pa.Table:
    """Rows [start, start + rows); both variants come from the same draws."""
    rng = np.random.default_rng([seed, start])
    columns = [pa.array(np.arange(start + 1, start + rows + 1, dtype=np.int32))]
    for field in list(SCHEMA)[1:]:
        if field.name.startswith("uniform"):
            drawn = rng.uniform(-100, 100, rows)
        else:
            drawn = rng.normal(0, 20 if field.name.endswith("20") else 5, rows)
        if pa.types.is_integer(field.type) or variant == "truncated":
            drawn = np.trunc(drawn) + 0.0  # adding 0 turns -0.0 into 0.0, as the trip through an int did
        columns.append(pa.array(drawn.astype(field.type.to_pandas_dtype())))
    return pa.table(columns, schema=SCHEMA)


def write(path: Path, rows: int, seed: int, variant: str) -> Path:
    """Writes the table as one Parquet file unless it is there already."""
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    with parquet.ParquetWriter(partial, SCHEMA, use_dictionary=False, store_schema=False) as writer:
        for start in range(0, rows, CHUNK_ROWS):
            writer.write_table(rows_of(start, min(CHUNK_ROWS, rows - start), seed, variant))
    partial.rename(path)
    return path
