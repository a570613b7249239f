"""What a statement gives, here or at a server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import field
from typing import Any

import pyarrow as pa

from gpudb.record import record
from gpudb.types import SqlType


@record(frozen=False)
class Result:
    """The rows of one statement, or the number of rows it changed.

    rowcount  rows changed by INSERT, COPY and CREATE TABLE AS; -1 for queries
    receipt   how it ran; complete once the last batch has been read
    """

    schema: pa.Schema
    types: list[SqlType]
    rowcount: int = -1
    receipt: dict[str, Any] = field(default_factory=dict)
    _batches: Iterator[pa.RecordBatch] = field(default_factory=lambda: iter(()))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, once."""
        return self._batches

    def table(self) -> pa.Table:
        """All rows, with the receipt in the schema's metadata under `gpudb.receipt`."""
        batches = list(self.batches())  # the receipt is complete after them
        return pa.Table.from_batches(batches, self.schema.with_metadata({"gpudb.receipt": json.dumps(self.receipt)}))
