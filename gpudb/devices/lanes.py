"""The device of tests: the kernels as a GPU runs them, LANES to a block, on a CPU.

Every lane is a fiber and every barrier is real; lanes of all blocks take turns in random order.  It is slow, and finds what
the device `cpu`, where a block is one lane, cannot: missing barriers, races, and packs of rows that are not aligned.
"""

from __future__ import annotations

import ctypes

import numpy as np

from gpudb.devices.cpu import CpuDevice
from gpudb.devices.kernels import KernelDevice
from gpudb.errors import InternalError

LANES = 32
GARBAGE = 0xA5  # in memory that nobody has written


class LanesDevice(CpuDevice):
    """Blocks of fibers.

    num_blocks  blocks of a launch
    seed        of the order in which lanes take turns
    lanes       of a block; each number has a library of its own

    Raises DeviceError where no library can be had, InternalError where lanes do not meet at one barrier.
    """

    name = "lanes"
    private = False
    pack_rows = 8
    radix_bits = 4

    def __init__(self, num_blocks: int = 2, tile_rows: int | None = None, seed: int = 1, lanes: int = LANES) -> None:
        from gpudb.kernels import lanes_source

        self.threads = num_blocks
        self.tile_rows = tile_rows or KernelDevice.tile_rows
        self.lanes = lanes
        self.scratch_bytes = (lanes + 9 & ~7) * 8  # kernels/platform.h
        self._load(lanes_source(lanes))
        self._library.gpudb_lanes_seed.argtypes = [ctypes.c_uint64]
        self._library.gpudb_lanes_seed(seed)

    def empty(self, size: int) -> np.ndarray:
        memory = super().empty(size)
        memory[:] = GARBAGE
        return memory

    def blocks(self, tiles: int) -> int:
        return max(1, min(self.threads, tiles))

    def launch(self, kernel: str, arguments: ctypes.Structure, blocks: int) -> None:
        super().launch(kernel, arguments, blocks)
        text = ctypes.create_string_buffer(512)
        self._library.gpudb_lanes_error(text, ctypes.c_int64(len(text)))
        if text.value:
            raise InternalError(f"lanes do not meet in {kernel}: {text.value.decode()}")
