"""Rows of a statement as a stream of Flight messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pyarrow as pa

from gpudb.result import Result
from gpudb.server.failures import Failures

MESSAGE_BYTES = 4 << 20  # of a batch that is sent: clients written in Go refuse messages past 16 MiB
MESSAGE_ROWS = 1 << 16


def pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A batch in slices of at most MESSAGE_ROWS rows and about MESSAGE_BYTES; nothing is copied."""
    rows = batch.num_rows
    step = MESSAGE_ROWS
    if batch.nbytes > MESSAGE_BYTES:
        step = max(1, min(MESSAGE_ROWS, rows * MESSAGE_BYTES // batch.nbytes))
    for start in range(0, rows, step):
        yield batch.slice(start, step)


class RowStream:
    """Iterates over what pyarrow's GeneratorStream sends: batches, and the receipt as app_metadata of the last one.

    results  run when the one before it is read to its end; all have `schema`
    check    called before each message; raises to end the stream with an error
    close    called once: at the end, at an error, or when the stream is dropped without having been read
    """

    def __init__(
        self,
        schema: pa.Schema,
        results: Iterator[Result],
        failures: Failures,
        check: Callable[[], None] = lambda: None,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self._failures = failures
        self._check = check
        self._close: Callable[[], None] | None = close
        self._messages = self._sent(schema, results)

    def __iter__(self) -> RowStream:
        return self

    def __next__(self) -> Any:
        try:
            with self._failures.answering():
                self._check()
                return next(self._messages)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of everything; closing twice is fine."""
        close, self._close = self._close, None
        if close is not None:
            self._messages.close()
            close()

    __del__ = close

    @staticmethod
    def _sent(schema: pa.Schema, results: Iterator[Result]) -> Generator[Any, None, None]:
        """All rows; one message is held back until it is known to be the last, none while others are still to be computed."""
        held: pa.RecordBatch | None = None
        receipt: dict[str, Any] = {}
        rowcount = -1
        for result in results:
            for batch in result.batches():
                for piece in pieces(batch):
                    if held is not None:
                        yield held
                    held = piece
                if result.pace is not None and held is not None:
                    yield held
                    held = batch = piece = None
            receipt, rowcount = result.receipt, result.rowcount
        if held is None:
            held = pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
        yield held, pa.py_buffer(json.dumps({"receipt": receipt, "rowcount": rowcount}).encode())
