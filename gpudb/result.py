"""What a statement gives, here or at a server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from typing import Any

import pyarrow as pa

from gpudb.errors import MemoryLimitError
from gpudb.record import record
from gpudb.types import SqlType


@record(frozen=False)
class Pace:
    """How rows go on that are computed as they are read.

    width, limit  bytes of a row as the engine holds it, and of the rows that may be held together
    around  what each further slice runs in: whoever has many statements lets each wait for its turn there
    """

    width: int
    limit: int
    around: Callable[[], AbstractContextManager[None]] = nullcontext

    def check(self, rows: int) -> None:
        """Raise MemoryLimitError where so many rows are more than may be held together."""
        if rows * self.width > self.limit:
            raise MemoryLimitError(
                f"result is larger than memory_limit allows: {rows * self.width:,} of {self.limit:,} bytes, and more to come",
                hint="read it batch by batch (fetch_record_batch), or SET memory_limit to a larger size",
            )


@record(frozen=False)
class Result:
    """The rows of one statement, or the number of rows it changed.

    rowcount  rows changed by INSERT, COPY and CREATE TABLE AS; -1 for queries
    receipt   how it ran; complete once the last batch has been read
    pace      of rows that are computed as they are read; None where all are there
    """

    schema: pa.Schema
    types: list[SqlType]
    rowcount: int = -1
    receipt: dict[str, Any] = field(default_factory=dict)
    _batches: Iterator[pa.RecordBatch] = field(default_factory=lambda: iter(()))
    pace: Pace | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, once."""
        return self._batches

    def table(self) -> pa.Table:
        """All rows, with the receipt in the schema's metadata under `gpudb.receipt`.

        Raises MemoryLimitError where they are too many.
        """
        batches, rows = [], 0
        for batch in self.batches():
            batches.append(batch)
            rows += batch.num_rows
            if self.pace is not None:
                self.pace.check(rows)
        # The receipt is complete after the last.
        return pa.Table.from_batches(batches, self.schema.with_metadata({"gpudb.receipt": json.dumps(self.receipt)}))
