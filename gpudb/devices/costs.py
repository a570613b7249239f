"""What a statement would take on the CPU and on a GPU, for SET device = 'auto'.  Every figure is measured on this machine.

The CPU's seconds a byte are those of the statements that ran on it.  A GPU's three figures are taken when it starts: a
launch with the wait for it, a byte copied in, a byte read there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gpudb.record import record

FIRST_GUESS_S = 0.5e-9  # a byte, before any statement was measured: 2 GB/s
SMALLEST_MEASURED = 1 << 20  # bytes read by a statement that says something about the speed of reading
NEWEST_COUNTS = 0.25
LAUNCHES = 4  # of a step, with what it copies in and out
READ_AGAIN = 4  # times that a column which is copied now is expected to be read there


@record(frozen=False)
class Demand:
    """What a statement asks of a device.

    steps   of its program
    bytes   of table columns that it reads
    arrays  gives those of these columns that are in memory; the rest of the bytes still lies in files
    """

    steps: int
    bytes: int
    arrays: Callable[[], Iterable[np.ndarray]]


@record(frozen=False)
class Costs:
    """Figures of this machine.

    worth_a_gpu_s  seconds on the CPU below which no GPU is asked, nor started
    """

    cpu_byte_s: float = FIRST_GUESS_S
    worth_a_gpu_s: float = 2e-3

    def learn(self, size: int, seconds: float) -> None:
        """A statement read so many bytes on the CPU in so many seconds."""
        if size >= SMALLEST_MEASURED:
            self.cpu_byte_s += NEWEST_COUNTS * (seconds / size - self.cpu_byte_s)

    def cpu_seconds(self, demand: Demand) -> float:
        """On the CPU."""
        return demand.bytes * self.cpu_byte_s

    def gpu_seconds(self, demand: Demand, gpu: Any) -> float:
        """On a GPU, whose columns stay: a copy is shared by the statements that will find it there."""
        there = sum(array.nbytes for array in demand.arrays() if gpu.columns.has(array))
        missing = max(0, demand.bytes - there)
        return (
            demand.steps * LAUNCHES * gpu.round_trip_s + missing * gpu.copy_s / READ_AGAIN + demand.bytes * gpu.read_s
        )
