"""The binary modes: Parquet, and Arrow IPC (its stream form, which a pipe can carry)."""

from __future__ import annotations

from typing import BinaryIO

import pyarrow as pa

from gpudb.errors import NotSupportedError
from gpudb.shell.output import Rows, Style


def write_parquet(result: Rows, style: Style, stream: BinaryIO) -> int:
    """One Parquet file."""
    from pyarrow import parquet

    rows = 0
    try:
        with parquet.ParquetWriter(stream, result.schema) as writer:
            for batch in result.batches():
                writer.write_batch(batch)
                rows += batch.num_rows
    except pa.ArrowNotImplementedError as error:
        raise NotSupportedError(
            f"Parquet cannot hold this result: {error}", hint="CAST the column to VARCHAR"
        ) from None
    return rows


def write_arrow(result: Rows, style: Style, stream: BinaryIO) -> int:
    """One Arrow IPC stream."""
    rows = 0
    with pa.ipc.new_stream(stream, result.schema) as writer:
        for batch in result.batches():
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows
