"""What is checked: a device, with a clock for what runs on it, and a place to make tables in its memory."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.gpu_check.made_tables import ON_THE_HOST, Made, Place, make
from gpudb.session import Session
from gpudb.storage.table import TableVersion
from tests.devices.variants import session_on

MOST_HOST_ROWS = 10_000_000  # made by NumPy for a GPU: 100 M rows would take the minutes that there are
KINDS = ("auto", "cuda", "fake", "lanes", "cpu")


@dataclass
class Timing:
    """One query, run several times.

    first_s   seconds of the first run, whose shape nobody has seen
    wall_s    median seconds of the later ones, the answer's rows read
    device_s  seconds that the device was at work in one of them, by `Machine.clock`
    launches  kernels that this was
    """

    first_s: float
    wall_s: float
    device_s: float
    launches: int
    bytes_read: int
    table: pa.Table


class Machine:
    """One device, and what stands beside it.

    kind     cuda, or a stand-in: fake (the device cuda on a GPU that is played), lanes, cpu
    no_cupy  why CuPy's own kernels cannot be used, or None: it compiles them with the headers of a CUDA toolkit
    clock    what device seconds are: "events" of the GPU; of a stand-in the "launches", or the "wall" where they do not wait
    """

    def __init__(self, kind: str, device: Any) -> None:
        self.kind = kind
        self.device = device
        self.clock = {"cuda": "events", "fake": "wall"}.get(kind, "launches")
        self.no_cupy = _why_no_kernels_of_cupy() if self.real else "no CuPy beside a stand-in"
        self._launch = device.launch

    @property
    def real(self) -> bool:
        """Whether its figures say anything about a GPU."""
        return self.kind == "cuda"

    def describe(self) -> dict[str, Any]:
        """What a figure was measured on."""
        found: dict[str, Any] = {"device": self.device.name, "stands_in": not self.real, "clock": self.clock}
        if self.real:
            import cupy

            properties = cupy.cuda.runtime.getDeviceProperties(0)
            free, total = cupy.cuda.runtime.memGetInfo()
            found |= {
                "gpu": properties["name"].decode(),
                "architecture": self.device.architecture,
                "multiprocessors": self.device.multiprocessors,
                "memory_bytes": total,
                "free_bytes": free,
                "driver": cupy.cuda.runtime.driverGetVersion(),
                "cupy": cupy.__version__,
                "no_kernels_of_cupy": self.no_cupy,
            }
        return found

    # ------------------------------------------------------------------------------------------------ tables

    def session(self, *tables: TableVersion) -> Session:
        """A session over the tables that runs everything on this device."""
        return session_on(self.device, tables)

    def make(self, made: Made, rows: int, row_group_rows: int = 1 << 20) -> TableVersion:
        """The table, its columns in this device's memory."""
        table = make(made, rows, self._place(), row_group_rows)
        if self.real:  # made on the stream that others do not wait for
            import cupy

            cupy.cuda.runtime.deviceSynchronize()
        return table

    def most_rows(self, rows: int) -> int:
        """So many rows, or fewer where they have to be made on the host."""
        return min(rows, MOST_HOST_ROWS) if self.real and self.no_cupy is not None else rows

    def _place(self) -> Place:
        if self.kind in ("lanes", "cpu"):
            return ON_THE_HOST
        if self.no_cupy is not None:
            return Place(np, self.device.from_host, False)
        import cupy

        return Place(cupy, lambda array: array.data, False)

    def free(self) -> None:
        """Give back the memory of tables that are gone."""
        if self.real:
            import cupy

            cupy.get_default_memory_pool().free_all_blocks()

    # ------------------------------------------------------------------------------------------------ time

    def timed(self, session: Session, queries: Sequence[str]) -> Timing:
        """Run the first query, then the others, which have its shape; device time is the last one's, run once more."""
        began = time.perf_counter()
        session.execute(queries[0]).table()
        first = time.perf_counter() - began
        walls = []
        for sql in queries[1:]:
            began = time.perf_counter()
            session.execute(sql).table()
            walls.append(time.perf_counter() - began)
        with self.watched() as launched:
            result = session.execute(queries[-1])
            table = result.table()
        spent = walls[-1] if self.clock == "wall" else sum(seconds for _, seconds in launched)
        bytes_read = int(result.receipt["bytes_read"])
        return Timing(first, statistics.median(walls), spent, len(launched), bytes_read, table)

    @contextlib.contextmanager
    def watched(self) -> Iterator[list[tuple[str, float]]]:
        """(kernel, seconds) of every launch inside; complete afterwards."""
        found: list[tuple[str, float]] = []
        events: list[tuple[str, Any, Any]] = []

        def with_events(kernel: str, arguments: Any, blocks: int) -> None:
            start, stop = self._event(), self._event()
            start.record(self.device._compute)
            self._launch(kernel, arguments, blocks)
            stop.record(self.device._compute)
            events.append((kernel, start, stop))

        def with_clock(kernel: str, arguments: Any, blocks: int) -> None:
            began = time.perf_counter()
            self._launch(kernel, arguments, blocks)
            found.append((kernel, time.perf_counter() - began))

        self.device.launch = with_events if self.clock == "events" else with_clock
        try:
            yield found
        finally:
            self.device.launch = self._launch
        for kernel, start, stop in events:
            stop.synchronize()
            found.append((kernel, self._between(start, stop)))

    def seconds(self, work: Callable[[], Any]) -> float:
        """Seconds of work that is put on the device's stream."""
        if self.clock != "events":
            began = time.perf_counter()
            work()
            return time.perf_counter() - began
        start, stop = self._event(), self._event()
        start.record(self.device._compute)
        work()
        stop.record(self.device._compute)
        stop.synchronize()
        return self._between(start, stop)

    def copy_bandwidth(self, size: int, repeat: int = 10) -> float:
        """Bytes a second, read and written, of the best of several copies within the device's memory."""
        source, target = self.device.zeros(size), self.device.empty(size)

        def copy() -> None:
            self.device.copy(target, source, size)
            if self.clock == "wall":
                self.device.to_host(target, np.uint8, 1)  # which waits for it

        return 2 * size / min(self.seconds(copy) for _ in range(repeat))

    @staticmethod
    def _event() -> Any:
        from cupy.cuda import Event

        return Event()

    @staticmethod
    def _between(start: Any, stop: Any) -> float:
        from cupy.cuda import get_elapsed_time

        return float(get_elapsed_time(start, stop)) / 1e3


@contextlib.contextmanager
def open_machine(kind: str, **options: Any) -> Iterator[Machine]:
    """The GPU; where there is none, auto takes the fake.  Raises DeviceError where the kind that is asked for cannot be had."""
    if kind == "auto":
        kind = "cuda" if why_no_gpu() is None else "fake"
    if kind == "cpu":
        from gpudb.devices.cpu import CpuDevice

        yield Machine(kind, CpuDevice(**options))
    elif kind == "lanes":
        from gpudb.devices.lanes import LanesDevice

        yield Machine(kind, LanesDevice(**options))
    elif kind == "fake":
        from gpudb.devices.cuda import CudaDevice
        from tests.devices.fake_cupy import LANES, fake_gpu

        with fake_gpu():
            yield Machine(kind, CudaDevice(lanes=LANES, **options))
    else:
        from gpudb.devices.cuda import CudaDevice

        yield Machine(kind, CudaDevice(**options))


def _why_no_kernels_of_cupy() -> str | None:
    try:
        import cupy

        numbers = cupy.arange(8, dtype=cupy.uint64)
        assert int(((numbers * cupy.uint64(3)) >> cupy.uint64(1)).sum()) == 40
    except Exception as error:
        return " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return None


def why_no_gpu() -> str | None:
    """Why the GPU cannot be used, or None."""
    try:
        import cupy

        if cupy.cuda.runtime.getDeviceCount() < 1:
            return "no GPU"
    except Exception as error:  # ImportError, or whatever the driver's absence raises
        return " ".join(f"{type(error).__name__}: {error}".split())
    return None
