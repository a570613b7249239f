"""What reading files looks like from above: columns, a stream of record batches, and the rows that were left out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field

import pyarrow as pa

from gpudb.errors import InputError
from gpudb.record import record
from gpudb.types import SqlType

MOST_REASONS = 10


@record
class RejectedRow:
    """One row that could not be read.

    line    1-based physical line its record starts on
    column  name of the column at fault, or None where the row as a whole is
    text    the text at fault
    reason  one clause, without the text
    """

    path: str
    line: int
    column: str | None
    text: str
    reason: str

    def __str__(self) -> str:
        text = self.text if len(self.text) <= 80 else self.text[:77] + "..."
        column = f", column {self.column}" if self.column is not None else ""
        return f"{self.reason}: line {self.line}{column}, text {text!r}, file {self.path}"

    def error(self, hint: str | None = None) -> InputError:
        """The same as an error, for readers that do not leave rows out."""
        return InputError(f"cannot read row: {self}", hint=hint)


@record(frozen=False)
class RejectedRows:
    """How many rows `ignore_errors` left out, and the first ten of them with their reasons."""

    count: int = 0
    first: list[RejectedRow] = field(default_factory=list)

    def add(self, count: int, first: Sequence[RejectedRow]) -> None:
        self.count += count
        self.first += first[: max(0, MOST_REASONS - len(self.first))]

    def __str__(self) -> str:
        if self.count == 0:
            return "no rows were left out"
        lines = [f"{self.count} row{'s were' if self.count > 1 else ' was'} left out:", *map(str, self.first)]
        if self.count > len(self.first):
            lines.append(f"and {self.count - len(self.first)} more")
        return "\n  ".join(lines)


class FileRelation(ABC):
    """The rows of one file or of several with the same columns, read as a stream in file order.

    columns      (name, SQL type), names unique without regard to case
    rejected     what the latest `batches()` left out; complete once that stream has ended
    total_bytes  sum of the files' sizes on disk
    """

    columns: tuple[tuple[str, SqlType], ...]
    rejected: RejectedRows
    total_bytes: int

    @abstractmethod
    def batches(
        self, columns: Sequence[int] | None = None, progress: Callable[[int], None] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows, in file order, in the SQL types' Arrow form, with memory bounded whatever the files' size.

        VARCHAR comes as string, or as dictionary<int32, string> where the file holds it so.

        columns   positions to read, in the order wanted, at least one; None: all
        progress  called with the bytes of input consumed so far, of `total_bytes`
        Raises InputError at the first row that cannot be read.
        """

    def schema(self, columns: Sequence[int] | None = None) -> pa.Schema:
        """Arrow schema of the batches."""
        chosen = self.columns if columns is None else [self.columns[i] for i in columns]
        return pa.schema([(name, sql_type.arrow) for name, sql_type in chosen])


def quoted_list(names: Sequence[str]) -> str:
    """Names for a message: at most ten, then how many more."""
    shown = ", ".join(names[:10])
    return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"
