"""The device `cpu`: the kernels compiled by the host compiler, run by a thread pool inside the library.

Memory is host memory, so columns and lookup tables are read where they lie.  The GIL is released during every launch.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import numpy as np

from gpudb.devices import parted_groups
from gpudb.devices.kernels import GroupState, KernelDevice
from gpudb.devices.memory import MemoryPool, Tied, address_of
from gpudb.devices.work import Run, Work
from gpudb.functions.python import PythonFunction
from gpudb.program import GroupSink


class CpuDevice(KernelDevice):
    """The processor's cores.

    library  another build of the kernels, for tests; None for the one of this machine

    Raises DeviceError where no library can be had.
    """

    name = "cpu"
    private = True
    spills = True

    def __init__(self, threads: int | None = None, tile_rows: int | None = None, library: Path | None = None) -> None:
        from gpudb.kernels import host_source

        self.threads = threads or len(os.sched_getaffinity(0))
        self.tile_rows = tile_rows or KernelDevice.tile_rows
        self._load(host_source(), library)

    def _load(self, source: str, library: Path | None = None) -> None:
        from gpudb.kernels.host_build import host_library

        self._library = ctypes.CDLL(str(library or host_library(source)))
        self._functions: dict[str, Any] = {}
        self._pool = MemoryPool()

    def empty(self, size: int) -> np.ndarray:
        return self._pool.take(size + 64, zero=False)

    def zeros(self, size: int) -> np.ndarray:
        return self._pool.take(size + 64, zero=True)

    def held(self, run: Run, size: int, zero: bool = False) -> np.ndarray:
        ledger = run.ledger
        if ledger.files is not None and not ledger.fits(size):
            return ledger.files.take(size + 64)
        taken = ledger.taken(size)
        return np.asarray(Tied(self.zeros(size) if zero else self.empty(size), taken))

    def before_growth(self, work: Work, states: list[GroupState], needed: int, share: float) -> None:
        parted_groups.check(self, work, states, needed, share)

    def leave_out(self, heads: Any, table: Any) -> None:
        parted_groups.leave_out(heads, table)

    def _run_groups(self, work: Work, sink: GroupSink, arguments: Any, tiles: int, blocks: int) -> GroupState:
        try:
            return super()._run_groups(work, sink, arguments, tiles, blocks)
        except parted_groups.TooManyGroups as found:  # for memory at once
            expected = found.expected
        return parted_groups.groups(self, work, sink, arguments, tiles, blocks, expected)

    def from_host(self, array: np.ndarray) -> np.ndarray:
        return array if array.flags.c_contiguous else np.ascontiguousarray(array)

    def to_host(self, handle: np.ndarray, dtype: Any, count: int) -> np.ndarray:
        dtype = np.dtype(dtype)
        return handle.view(np.uint8)[: count * dtype.itemsize].view(dtype)

    def address(self, handle: Any) -> int:
        return 0 if handle is None else address_of(handle)

    def callee(self, function: PythonFunction) -> int:
        return address_of(function.table)

    def copy(self, target: np.ndarray, source: np.ndarray, size: int) -> None:
        target[:size] = source.view(np.uint8)[:size]

    def blocks(self, tiles: int) -> int:
        return max(1, min(self.threads, -(-tiles // 8)))

    def launch(self, kernel: str, arguments: ctypes.Structure, blocks: int) -> None:
        function = self._functions.get(kernel)
        if function is None:
            function = getattr(self._library, kernel)
            function.argtypes = [ctypes.c_void_p, ctypes.c_int64]
            function.restype = None
            self._functions[kernel] = function
        function(ctypes.addressof(arguments), blocks)
