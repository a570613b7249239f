"""What the virtual machine hands to a device: pipelines with their parameters filled in, and what comes back."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np

from gpudb.devices.temporary_files import TemporaryFiles
from gpudb.errors import MemoryLimitError, NotSupportedError, QueryCancelled
from gpudb.program import Pipeline
from gpudb.record import record
from gpudb.types import RegisterType

SMALL_SHARE = 64  # what is less than this part of memory_limit is small


@record(frozen=False)
class Part:
    """The rows of one row group (or of one intermediate) as a pipeline reads them.

    rows, first_row  how many, and the number of the first in the pipeline's source
    columns  one array a pipeline column (host arrays of a table, or a device's own arrays); None for a missing one
    slots    one value a parameter slot: a number, a NumPy array for a lookup table, or the device's own finished hash table
    """

    rows: int
    first_row: int
    columns: list[Any]
    slots: list[Any]


@record(frozen=False)
class Ledger:
    """Bytes that a statement holds on a device, against its limit; safe to share between threads.

    files  where what does not fit goes, on devices that can; None where it goes nowhere
    """

    limit: int
    files: TemporaryFiles | None = None
    held: int = 0
    peak: int = 0
    lock: Any = field(
        default_factory=threading.RLock
    )  # memory may go while other is taken: __del__ runs wherever it likes

    @property
    def spilled(self) -> int:
        """Bytes that lay in temporary files at most."""
        return 0 if self.files is None else self.files.peak

    def take(self, size: int) -> None:
        """Account for an allocation; raises MemoryLimitError when it does not fit."""
        with self.lock:
            if self.held + size > self.limit:
                needed = self.held + size
                hint = "SET memory_limit to a larger size, or read fewer rows or columns"
                if self.files is None:
                    hint += "; SET temp_directory to a folder, and what does not fit goes there"
                raise MemoryLimitError(
                    f"statement needs more memory than memory_limit allows: {needed:,} of {self.limit:,} bytes",
                    hint=hint,
                )
            self.held += size
            self.peak = max(self.peak, self.held)

    def give_back(self, size: int) -> None:
        """The bytes are free again."""
        with self.lock:
            self.held -= size

    def fits(self, size: int) -> bool:
        """Is there room for so many bytes?  Much at once leaves room for a lot of small things."""
        share = self.limit if size < self.limit // SMALL_SHARE else self.limit // 4 * 3
        return self.held + size <= share

    def check(self, size: int, spilled: bool) -> None:
        """Raise MemoryLimitError where there is no room for so many bytes, nor in files, which nobody takes yet."""
        if spilled and self.files is not None and not self.fits(size):
            self.files.check(size)
        else:
            self.take(size)
            self.give_back(size)

    def taken(self, size: int) -> Taken:
        """As `take`, until the last who has what this gives lets it go."""
        self.take(size)
        return Taken(self, size)


class Taken:
    """Bytes of a ledger, given back when this object goes: whoever has the memory that they stand for has it, too."""

    __slots__ = ("_ledger", "_size")

    def __init__(self, ledger: Ledger, size: int) -> None:
        self._ledger = ledger
        self._size = size

    def __del__(self) -> None:
        self._ledger.give_back(self._size)


@record
class StepProfile:
    """What EXPLAIN ANALYZE shows of a step: rows it left (None: groups), and per instruction its seconds and rows."""

    step: int
    seconds: float
    rows: int | None
    instructions: tuple[tuple[float, int], ...] = ()


@record(frozen=False)
class Run:
    """One execution of a program: cancellation, memory, and the counters of its receipt.

    cancel   (1,) int64, set to non-zero by another thread; kernels read it once a tile
    sparing  device memory was too short the first time: the device is to keep as little in it as it can
    seconds  it ran, without those it has run since `began`
    """

    ledger: Ledger
    cancel: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))
    tiles_run: int = 0
    tiles_skipped: int = 0
    bytes_read: int = 0
    host_rows: int = 0
    progress: float = 0.0
    timer: Any = None
    profile: list[StepProfile] | None = None
    sparing: bool = False
    seconds: float = 0.0
    began: float = 0.0

    def again(self, sparing: bool) -> Run:
        """The statement from its start: it is cancelled, and its time runs out, as this run would have."""
        return Run(
            Ledger(self.ledger.limit, self.ledger.files),
            self.cancel,
            timer=self.timer,
            profile=self.profile,
            sparing=sparing,
            seconds=self.seconds,
            began=self.began,
        )

    def too_many_rows(self, what: str, rows: int) -> NotSupportedError:
        """The error for more rows than row numbers of 32 bits tell apart."""
        return NotSupportedError(f"{what} has more than 2**32 rows: {rows:,}")

    def check(self) -> None:
        """Raise QueryCancelled if somebody asked for it; value 2 means the time-out."""
        if self.cancel[0]:
            reason = "statement timed out" if self.cancel[0] == 2 else "statement cancelled"
            raise QueryCancelled(reason)


@record(frozen=False)
class Work:
    """A pipeline ready to run.

    source_table  the finished group table that its GroupWord instructions read
    top           rows of an order that are wanted of an Emit sink, for KeepTop; None for all
    into          the group table that its sink adds to, when it is not a new one
    profile       (instructions, 2) int64 to which the device adds each instruction's time, in units of its own, and rows:
                  the ones of the mask it makes, or those it ran over; None where nobody asks
    streamed      what the device copies in while the pipeline runs: its own business
    parted        its groups are only read one by one, so that the device may make them part by part
    """

    pipeline: Pipeline
    parts: Sequence[Part]
    run: Run
    source_table: Any = None
    into: Any = None
    top: int | None = None
    profile: np.ndarray | None = None
    streamed: Any = None
    parted: bool = False


@record(frozen=False)
class Emitted:
    """Rows that an Emit sink left: one device array a sink column, each of `rows` values."""

    rows: int
    columns: list[Any]
    types: tuple[RegisterType, ...]


@record(frozen=False)
class RowIndex:
    """Build rows of a join by key: what `index_rows` of a device gives.

    repeated  two rows have one key, or may have where all rows are wanted
    size      entries: key numbers, or as many as rows, of which some stand for their keys
    entries   the entries of the build rows, which `matches` of the device reads: its own business
    first     by 1 + key number, 1 + one of its rows, u32; None where keys have no numbers, or all rows are wanted
    table     what Probe reads where they have none: it finds 1 + a row, or 1 + entry where all rows are wanted
    """

    repeated: bool
    size: int
    entries: Any
    first: Any
    table: Any


@record
class PipelineFailure(Exception):
    """A Fail instruction fired: the row's number in its source, and the message's number."""

    row: int
    message: int


class InexactSum(Exception):
    """A float sum does not fit its fixed-point lanes: the program's exact form must run."""
