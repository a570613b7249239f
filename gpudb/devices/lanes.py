"""The device of tests: the kernels as a GPU runs them, many lanes to a block, on a CPU.

Every lane is a fiber and every barrier is real; lanes of all blocks take turns in random order, at any access to memory.  It
finds what the device `cpu`, where a block is one lane, cannot: barriers that not all lanes reach, races, accesses beside a
block's shared memory, packs of rows that are not aligned.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np

from gpudb.devices.cpu import CpuDevice
from gpudb.devices.kernels import KernelDevice
from gpudb.devices.memory import MemoryPool
from gpudb.errors import InternalError

# Lanes are told of every access to memory: kernels/lanes.cpp has the functions that -fsanitize=thread calls, so nothing may
# link the compiler's.
WATCHED = (
    *("-fsanitize=thread", "--param=tsan-distinguish-volatile=1", "--param=tsan-instrument-func-entry-exit=0"),
    *("-Wno-tsan", "-nodefaultlibs", "-lc", "-lm", "-lgcc"),
)

GARBAGE = 0xA5  # in memory that nobody has written
SEED_STEP = 0x9E3779B97F4A7C15  # odd: the seeds of 2**64 launches differ


def compiler_flags() -> tuple[str, ...]:
    """What lanes are compiled with; a sanitizer in GPUDB_CXXFLAGS watches by itself, and two do not go together."""
    given = os.environ.get("GPUDB_CXXFLAGS", "")
    optimised = () if "-O" in given else ("-O1",)  # builds in half the time of -O3, and tests are no slower
    return optimised if "-fsanitize" in given else (*optimised, *WATCHED)


class LanesLibrary:
    """Kernels compiled for many lanes a block, loaded: what `gpudb.kernels.lanes_source` gives.

    watched  whether lanes are told of every access to memory, and so of races in shared memory

    Raises DeviceError where no library can be had.
    """

    def __init__(self, source: str) -> None:
        from gpudb.kernels.host_build import host_library

        flags = compiler_flags()
        self.watched = set(WATCHED) <= set(flags)
        self._library = ctypes.CDLL(str(host_library(source, extra_flags=flags)))
        self._launch = self._library.gpudb_lanes_launch
        self._launch.argtypes = [
            *(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_int64)
        ]
        self._launch.restype = None
        self._kernels: dict[str, Any] = {}

    def launch(self, kernel: str, arguments: ctypes.Structure, blocks: int, seed: int = 1) -> None:
        """Run `blocks` blocks of a kernel, whose lanes take turns as `seed` says.

        Raises InternalError, which names kernel, barrier and opcode, where the lanes of a block do not meet at one barrier,
        touch one byte of shared memory with no barrier between, one of them writing, or touch what is beside it.
        """
        entry = self._kernels.get(kernel)
        if entry is None:
            entry = self._kernels[kernel] = ctypes.cast(getattr(self._library, kernel), ctypes.c_void_p)
        told = ctypes.create_string_buffer(512)
        self._launch(entry, ctypes.addressof(arguments), blocks, seed, told, len(told))
        if told.value:
            raise InternalError(f"{kernel}: {told.value.decode()}")


def lanes_library(lanes: int) -> LanesLibrary:
    """The kernels with so many lanes a block; built when first asked for."""
    from gpudb.kernels import lanes_source

    return LanesLibrary(lanes_source(lanes))


class LanesDevice(CpuDevice):
    """Blocks of many fibers.

    num_blocks  blocks of a launch
    lanes       fibers of a block: 32, 64 or 256, as GPUs have them
    seed        of the order in which lanes take turns: another one for each launch, and the same ones every time

    Raises DeviceError where no library can be had, InternalError where `LanesLibrary.launch` does.
    """

    name = "lanes"
    private = False
    pack_rows = 8
    radix_bits = 4

    def __init__(self, num_blocks: int = 2, tile_rows: int | None = None, seed: int = 1, lanes: int = 32) -> None:
        self.threads = num_blocks
        self.tile_rows = tile_rows or KernelDevice.tile_rows
        self.lanes = lanes
        self.scratch_bytes = (lanes + 9 & ~7) * 8  # SCRATCH_WORDS of kernels/platform.h
        self._seed = seed
        self._launches = 0
        self.kernels = lanes_library(lanes)
        self._pool = MemoryPool()

    def empty(self, size: int) -> np.ndarray:
        memory = super().empty(size)
        memory[:] = GARBAGE
        return memory

    def arena(self, blocks: int, arena_bytes: int) -> None:
        """None: a block has its shared memory from the library, which fills it with garbage."""

    def blocks(self, tiles: int) -> int:
        return max(1, min(self.threads, tiles))

    def launch(self, kernel: str, arguments: ctypes.Structure, blocks: int) -> None:
        self._launches += 1
        seed = (self._seed + self._launches) * SEED_STEP % 2**64 | 1
        self.kernels.launch(kernel, arguments, blocks, seed)
