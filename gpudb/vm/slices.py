"""The last pipeline's rows in slices, a few parts at a time: the first leave before the last are made, and never all are held.

What is small is one slice, as another launch would cost more than it saves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gpudb.devices.work import Emitted, Part, Run
from gpudb.record import record
from gpudb.storage.table import ROW_GROUP_ROWS

FIRST_BYTES = 1 << 24  # of emitted rows, if all are that are read: what fits into the first slice is not cut
SLICE_BYTES = 1 << 26  # of the later ones, which grow to this; a slice is one part at least


def slice_bytes(rows: int, width: int) -> int:
    """Bytes that a slice holds at most, of so many rows in all."""
    return min(rows * width, max(SLICE_BYTES, ROW_GROUP_ROWS * width))


@record
class LazyParts(Sequence[Part]):
    """Parts that are made when they are asked for, since making one reads and verifies what a table has on disk.

    first_rows  number of each one's first row, and rows: how many
    make        a part by its number
    """

    first_rows: Sequence[int]
    rows: Sequence[int]
    make: Callable[[int], Part]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self.make(k) for k in range(*index.indices(len(self.rows)))]
        return self.make(range(len(self.rows))[index])


class Slices:
    """Hands out a pipeline's rows slice by slice; between two of them nothing runs.

    parts    what the pipeline reads, each of so many rows
    width    bytes of a row that it emits
    emit     runs it over some parts
    """

    def __init__(
        self,
        parts: Sequence[Part],
        rows: Sequence[int],
        width: int,
        run: Run,
        emit: Callable[[Sequence[Part]], Emitted],
    ) -> None:
        self._parts, self._rows = parts, rows
        self.width, self._run, self._emit = width, run, emit
        self._at = self._read = 0
        self._most = FIRST_BYTES

    def following(self) -> Emitted | None:
        """The next slice's rows, which may be none; None behind the last."""
        begin = self._at
        if begin == len(self._rows):
            return None
        self._at = self._end(begin)
        found = self._emit(self._parts[begin : self._at])
        self._read += sum(self._rows[begin : self._at])
        self._run.progress = self._read / sum(self._rows)
        return found

    def _end(self, begin: int) -> int:
        """Where the slice ends that begins with this part."""
        end, size = begin, 0
        while end < len(self._rows):
            size += self._rows[end] * self.width
            if size > self._most and end > begin:
                break
            end += 1
        self._most = min(SLICE_BYTES, 2 * self._most)
        return end
