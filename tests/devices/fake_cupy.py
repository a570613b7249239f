"""The part of CuPy that `devices/cuda.py` uses, without a GPU: the device is a process of its own that runs `lanes`.

It is stricter than a GPU.  The device's memory lies at addresses that mean nothing to this process, and only there is it
mapped in the other: a host pointer that a kernel follows, or a pointer to memory that was freed, ends the device as an
illegal address does.  Streams do nothing until they are waited for, or as a seed decides, so that what is read too early is
poison; memory comes and goes in the order of the stream that kernels run on, as from CuPy's pool, and a copy on another
stream that does not wait for that order is a Misuse.  Misuse is an AssertionError, which no code takes for a device's error.

Faults are scripted: the n-th allocation, launch, kernel or copy fails with a code, and after a fatal one all that follow do.

Past 600 lines: one device, with the names that CuPy has for it.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.machinery
import mmap
import os
import pickle
import random
import re
import select
import subprocess
import sys
import threading
import types
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpudb.devices import launch as structs
from gpudb.devices.lanes import compiler_flags
from gpudb.kernels import device_source, lanes_source
from gpudb.kernels.host_build import host_library

LANES = 32
BASE = 0x2000_0000_0000  # where the device's memory begins, in its own process
REGION = 1 << 37  # bytes of addresses; none is given twice
PAGE = 4096
UNIT = 512  # CuPy's pool rounds up to it
FRESH, STALE, SLACK = (
    0xA5,
    0xDB,
    0xCD,
)  # what lies in memory nobody wrote, in results not there yet, behind an allocation
OUT_OF_MEMORY, ILLEGAL_ADDRESS = 2, 700
NOT_FATAL = frozenset({1, 2, 9, 98, 100, 101, 200, 209, 600, 701, 801})
DEFAULT_SHARED, MOST_SHARED = 48 << 10, 99 << 10
SECONDS = 300  # that a launch may take before the test gives up

STRUCTS: dict[str, type[ctypes.Structure]] = {
    kernel: getattr(structs, struct)
    for kernel, struct in re.findall(r"^ENTRY\((\w+), (\w+)\)", device_source(), re.MULTILINE)
}

# The device's process: maps the memory at its address, nothing of it accessible, and runs what it is sent.
PROCESS = """
import ctypes, mmap, pickle, sys
descriptor, base, size, library, seed = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
NOREPLACE = 0x100000
assert libc.mmap(base, size, 0, mmap.MAP_SHARED | NOREPLACE, descriptor, 0) == base, ctypes.get_errno()
kernels = ctypes.CDLL(library)
launch = kernels.gpudb_lanes_launch
launch.argtypes = [
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_int64
]
launch.restype = None
text = ctypes.create_string_buffer(512)
while True:
    try:
        protections, name, argument, blocks = pickle.load(sys.stdin.buffer)
    except EOFError:
        break
    for address, length, access in protections:
        assert libc.mprotect(address, length, access) == 0, ctypes.get_errno()
    buffer = ctypes.create_string_buffer(argument, len(argument))
    seed = (seed * 0x5851F42D4C957F2D + 1) % 2**64 | 1
    text.value = b""
    launch(ctypes.cast(getattr(kernels, name), ctypes.c_void_p), ctypes.addressof(buffer), blocks, seed, text, len(text))
    pickle.dump(text.value.decode(), sys.stdout.buffer)
    sys.stdout.buffer.flush()
"""


class Misuse(AssertionError):
    """The code under test does what a GPU would not forgive."""


class CUDAError(RuntimeError):
    """As CUDARuntimeError and CUDADriverError: `status` is the code."""

    def __init__(self, status: int) -> None:
        super().__init__(f"fake error {status}")
        self.status = status


class CUDARuntimeError(CUDAError):
    pass


class CUDADriverError(CUDAError):
    pass


class OutOfMemoryError(MemoryError):
    """As CuPy's, which carries no code."""


@dataclass
class Faults:
    """What is to fail: by kind (malloc, pinned, launch, kernel, copy, wait), number from 1 on -> the driver's code.

    hang       number of the kernel that never ends
    disguised  the out-of-memory error is raised although the code is another, as some libraries do
    """

    codes: dict[str, dict[int, int]] = field(default_factory=dict)
    hang: int = 0
    disguised: bool = False

    def at(self, kind: str, number: int, code: int, times: int = 1) -> Faults:
        """These faults and one more: the `number`-th of a kind, and those behind it, `times` in all."""
        self.codes.setdefault(kind, {}).update(dict.fromkeys(range(number, number + times), code))
        return self


@dataclass
class Allocation:
    """Memory of the device: pending until the stream of kernels gets to its allocation, then live, then freed."""

    address: int
    size: int
    state: str = "pending"

    @property
    def pages(self) -> int:
        return -(-self.size // PAGE) * PAGE


@dataclass
class Operation:
    """Something put on a stream."""

    run: Callable[[], None]
    waits_for: Operation | None = None
    stream: Any = None
    done: bool = False


class FakeGpu:
    """One device, its process, and the modules `cupy` and `cupy.cuda` to reach it by.

    memory    bytes that can be allocated
    change    what is done to the kernels' text before it is compiled
    schedule  lazy: streams run only when waited for; eager: at once; copies: at once but for the one that kernels run on; else
              the seed of a random choice
    """

    def __init__(
        self,
        memory: int = 1 << 30,
        faults: Faults | None = None,
        schedule: str | int = "lazy",
        lanes: int = LANES,
        change: Callable[[str], str] = str,
    ) -> None:
        self.memory_bytes = memory
        self.faults = faults or Faults()
        self.lanes = lanes
        self.counts: Counter[str] = Counter()
        self.launched: list[str] = []
        self.sticky: int | None = None
        self.lock = threading.RLock()
        self.streams: list[Any] = []
        self.kernels_on: Any = None
        self.allocations: dict[int, Allocation] = {}
        self.pinned: dict[int, int] = {}
        self.protections: list[tuple[int, int, int]] = []
        self.hung = False
        self._running = 0
        self._eager = schedule == "eager"
        self._copies_first = schedule == "copies"
        self._random = random.Random(schedule) if isinstance(schedule, int) else None
        self._next = BASE
        self._descriptor = os.memfd_create("fake-gpu")
        os.ftruncate(self._descriptor, REGION)
        self._map = mmap.mmap(self._descriptor, REGION)
        self.bytes = np.frombuffer(self._map, np.uint8)
        library = str(host_library(change(lanes_source(lanes)), extra_flags=compiler_flags()))
        arguments = [str(n) for n in (self._descriptor, BASE, REGION)] + [library, "7"]
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-E", "-c", PROCESS, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=[self._descriptor],
        )
        self.cuda = self._namespace()
        self.cupy = types.ModuleType("cupy")
        self.cupy.cuda = self.cuda  # type: ignore[attr-defined]
        self.cupy.__spec__ = importlib.machinery.ModuleSpec("cupy", None)

    def close(self) -> None:
        """End the device's process."""
        with contextlib.suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()  # type: ignore[union-attr]
        os.close(self._descriptor)

    # ------------------------------------------------------------------------------- faults

    def count(self, kind: str, error: type[CUDAError] = CUDARuntimeError) -> None:
        """One more call of a kind: raise what is scripted for it, or the sticky error."""
        if self.sticky is not None:
            self.counts["refused"] += 1
            raise error(self.sticky)
        self.counts[kind] += 1
        code = self.faults.codes.get(kind, {}).get(self.counts[kind])
        if code is not None:
            self.fail(code)
            raise error(code)

    def fail(self, code: int) -> None:
        """What a code leaves behind."""
        if code not in NOT_FATAL:
            self.sticky = code
            for stream in self.streams:
                stream.queue.clear()

    # ------------------------------------------------------------------------------- streams

    def put(self, stream: Any, run: Callable[[], None], waits_for: Operation | None = None) -> Operation:
        """Put an operation on a stream; what runs before it is waited for is the schedule's choice."""
        if not isinstance(stream, self.cuda.Stream):
            raise Misuse(f"no stream of ours: {stream!r}")
        operation = Operation(run, waits_for, stream)
        stream.queue.append(operation)
        if self._running:  # memory is freed wherever Python likes: its operation waits for its turn
            return operation
        if self._eager or (self._copies_first and stream is not self.kernels_on):
            self.advance(stream, len(stream.queue))
        elif self._random is not None and self._random.random() < 0.3:
            other = self._random.choice(self.streams)
            self.advance(other, self._random.randint(0, len(other.queue)))
        return operation

    def advance(self, stream: Any, steps: int) -> None:
        """Run some of a stream's operations, as far as they wait for no other stream."""
        with self._at_work():
            for _ in range(steps):
                if not stream.queue or self.hung:
                    return
                head = stream.queue[0]
                if head.waits_for is not None and not head.waits_for.done:
                    return
                self._run(stream)

    def hangs(self, stream: Any) -> bool:
        """Would a stream, now that it is waited for, never end?"""
        return self.hung or (
            self.faults.hang > self.counts["kernel"] and stream is self.kernels_on and bool(stream.queue)
        )

    def complete(self, stream: Any, until: Operation | None = None) -> None:
        """Run a stream up to an operation, or all of it, and what it waits for on others."""
        with self._at_work():
            while stream.queue and not (until is not None and until.done):
                if self.hung:
                    raise Misuse("waited without end for a kernel that does not end")
                head = stream.queue[0]
                if head.waits_for is not None and not head.waits_for.done:
                    self.complete(head.waits_for.stream, head.waits_for)
                if stream.queue and stream.queue[0] is head:
                    self._run(stream)
        if self.sticky is not None:
            raise CUDARuntimeError(self.sticky)

    @contextlib.contextmanager
    def _at_work(self) -> Iterator[None]:
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1

    @staticmethod
    def _run(stream: Any) -> None:
        operation = stream.queue.pop(0)
        operation.run()
        operation.done = True

    # ------------------------------------------------------------------------------- memory

    def allocate(self, size: int) -> Allocation:
        """Fresh memory, full of poison, from the place on where the stream of kernels is."""
        found = Allocation(self._next, size)
        self._next += found.pages + PAGE  # a page that nobody may touch
        if self._next > BASE + REGION:
            raise Misuse("no addresses are left")
        self.allocations[found.address] = found

        def begin() -> None:
            found.state = "live"
            start = found.address - BASE
            self.bytes[start : start + size] = FRESH
            self.bytes[start + size : start + found.pages] = SLACK
            self.protections.append((found.address, found.pages, mmap.PROT_READ | mmap.PROT_WRITE))

        self._in_order(begin)
        return found

    def release(self, found: Allocation) -> None:
        """Free memory once the stream of kernels gets there."""

        def end() -> None:
            start = found.address - BASE
            if (self.bytes[start + found.size : start + found.pages] != SLACK).any():
                raise Misuse(f"written behind the end of {found.size} bytes")
            found.state = "freed"
            del self.allocations[found.address]
            self.protections.append((found.address, found.pages, 0))
            self._map.madvise(mmap.MADV_REMOVE, start, found.pages)

        if self.sticky is None:
            self._in_order(end)

    def _in_order(self, run: Callable[[], None]) -> None:
        if self.kernels_on is None:
            run()
        else:
            self.put(self.kernels_on, run)

    def at(self, address: int, size: int, what: str) -> np.ndarray:
        """Device memory as an operation that runs now sees it."""
        owner = self.owner(address)
        if owner is None:
            raise Misuse(f"{what}: {address:#x} is no device memory in use")
        if owner.state != "live":
            raise Misuse(f"{what}: the memory is used before the stream that it is allocated on gets there")
        if address + size > owner.address + owner.size:
            raise Misuse(f"{what}: {size} bytes reach past the end of the allocation")
        return self.bytes[address - BASE : address - BASE + size]

    def owner(self, address: int) -> Allocation | None:
        """The allocation that an address lies in."""
        for found in self.allocations.values():
            if found.address <= address < found.address + found.size:
                return found
        return None

    # ------------------------------------------------------------------------------- launches

    def run_kernel(self, name: str, argument: bytes, blocks: int) -> None:
        """Run a kernel in the device's process; where that ends, by an address that is not its own, the device is lost."""
        self.counts["kernel"] += 1
        code = self.faults.codes.get("kernel", {}).get(self.counts["kernel"])
        if code is not None:
            self.fail(code)
            return
        if self.faults.hang == self.counts["kernel"]:
            self.hung = True
            return
        struct = STRUCTS[name].from_buffer_copy(argument)
        for pointer, kind in struct._fields_:
            value = getattr(struct, pointer)
            if kind is structs.Pointer and value:
                self.at(value, 1, f"{name}: {pointer}")
        self.launched.append(name)
        message = pickle.dumps((self.protections, name, argument, blocks))
        self.protections = []
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(message)
            self._process.stdin.flush()
            if not select.select([self._process.stdout], [], [], SECONDS)[0]:
                raise Misuse(f"{name} ran for {SECONDS} s")
            said = pickle.load(self._process.stdout)
        except (EOFError, BrokenPipeError):
            self.fail(ILLEGAL_ADDRESS)
            return
        if said:
            raise Misuse(f"{name}: {said}")

    # ------------------------------------------------------------------------------- what cupy.cuda has

    def _namespace(self) -> Any:
        gpu = self

        class Stream:
            """A queue of operations."""

            def __init__(self, null: bool = False, non_blocking: bool = False, ptds: bool = False) -> None:
                if not non_blocking:
                    raise Misuse("a blocking stream waits for the legacy one")
                self.queue: list[Operation] = []
                gpu.streams.append(self)
                self.ptr = len(gpu.streams)

            @property
            def done(self) -> bool:
                with gpu.lock:
                    if gpu.sticky is not None:
                        raise CUDARuntimeError(gpu.sticky)
                    gpu.advance(self, 1)
                    if self.queue and self.queue[0].waits_for is not None:  # it moves on by itself, as on a GPU
                        for other in gpu.streams:
                            gpu.advance(other, 1)
                    return not self.queue and not gpu.hung

            def synchronize(self) -> None:
                with gpu.lock:
                    gpu.count("wait")
                    gpu.complete(self)

            def wait_event(self, event: Any) -> None:
                with gpu.lock:
                    if event.recorded is not None:
                        gpu.put(self, lambda: None, event.recorded)

        class Event:
            """A place in a stream."""

            def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
                self.recorded: Operation | None = None

            def record(self, stream: Any = None) -> None:
                with gpu.lock:
                    if stream is None:
                        raise Misuse("an event on the legacy stream")
                    self.recorded = gpu.put(stream, lambda: None)

            @property
            def done(self) -> bool:
                with gpu.lock:
                    if gpu.sticky is not None:
                        raise CUDARuntimeError(gpu.sticky)
                    for stream in gpu.streams:
                        gpu.advance(stream, 1)
                    return self.recorded is None or self.recorded.done

            def synchronize(self) -> None:
                with gpu.lock:
                    gpu.count("wait")
                    if self.recorded is not None and not self.recorded.done:
                        gpu.complete(self.recorded.stream, self.recorded)

        class PooledMemory:
            """An allocation; the last pointer into it gives it back."""

            def __init__(self, pool: Any, found: Allocation) -> None:
                self.pool, self.found = pool, found
                self.ptr, self.size = found.address, found.size

            def __del__(self) -> None:
                with gpu.lock:
                    self.pool.give_back(self.found)

        class MemoryPointer:
            """A place in device memory."""

            def __init__(self, mem: Any, offset: int) -> None:
                self.mem = mem
                self.ptr = mem.ptr + offset

            def __add__(self, offset: int) -> Any:
                return MemoryPointer(self.mem, self.ptr - self.mem.ptr + int(offset))

            def _copy(self, stream: Any, run: Callable[[], None]) -> None:
                gpu.count("copy")
                gpu.put(stream, run)

            def copy_from_host_async(self, mem: int, size: int, stream: Any = None) -> None:
                with gpu.lock:
                    _no_device_address(mem)
                    here = self.ptr
                    pinned = any(at <= mem and mem + size <= at + length for at, length in gpu.pinned.items())
                    staged = (
                        None if pinned else ctypes.string_at(mem, size)
                    )  # pageable memory is read before it returns

                    def run() -> None:
                        source = ctypes.string_at(mem, size) if staged is None else staged
                        gpu.at(here, size, "copy from the host")[:] = np.frombuffer(source, np.uint8)

                    self._copy(stream, run)

            def copy_to_host_async(self, mem: int, size: int, stream: Any = None) -> None:
                with gpu.lock:
                    _no_device_address(mem)
                    here = self.ptr
                    if gpu.hangs(stream):  # a copy to pageable memory may return only when it is over
                        raise Misuse("waits without end: copy to the host behind a kernel that does not end")
                    ctypes.memset(mem, STALE, size)

                    def run() -> None:
                        ctypes.memmove(mem, gpu.at(here, size, "copy to the host").tobytes(), size)

                    self._copy(stream, run)

            def copy_from_device_async(self, src: Any, size: int, stream: Any = None) -> None:
                with gpu.lock:
                    if not isinstance(src, MemoryPointer):
                        raise Misuse("a copy on the device from something else")
                    here, there = self.ptr, src.ptr

                    def run() -> None:
                        gpu.at(here, size, "copy on the device")[:] = gpu.at(there, size, "copy on the device")

                    self._copy(stream, run)

            def memset_async(self, value: int, size: int, stream: Any = None) -> None:
                with gpu.lock:
                    here = self.ptr

                    def run() -> None:
                        gpu.at(here, size, "memset")[:] = value

                    self._copy(stream, run)

        class MemoryPool:
            """Sizes that were freed are kept for allocations of the same size, and count until they are let go."""

            def __init__(self) -> None:
                self.limit = 0
                self.used = 0
                self.kept: Counter[int] = Counter()

            def _kept_bytes(self) -> int:
                return sum(size * count for size, count in self.kept.items())

            def malloc(self, size: int) -> Any:
                with gpu.lock:
                    if gpu.sticky is not None:
                        gpu.counts["refused"] += 1
                        raise CUDARuntimeError(gpu.sticky)
                    rounded = -(-int(size) // UNIT) * UNIT
                    gpu.counts["malloc"] += 1
                    code = gpu.faults.codes.get("malloc", {}).get(gpu.counts["malloc"])
                    if code is not None:
                        gpu.fail(code)
                        if code == OUT_OF_MEMORY or gpu.faults.disguised:
                            raise OutOfMemoryError("fake")
                        raise CUDARuntimeError(code)
                    if self.kept[rounded]:
                        self.kept[rounded] -= 1
                    else:
                        if self.limit and self.used + self._kept_bytes() + rounded > self.limit:
                            raise OutOfMemoryError(f"limit of {self.limit} bytes")
                        if self.used + self._kept_bytes() + rounded > gpu.memory_bytes:
                            self.free_all_blocks()
                            if self.used + rounded > gpu.memory_bytes:
                                raise OutOfMemoryError(f"memory of {gpu.memory_bytes} bytes")
                    self.used += rounded
                    return MemoryPointer(PooledMemory(self, gpu.allocate(rounded)), 0)

            def give_back(self, found: Allocation) -> None:
                self.used -= found.size
                self.kept[found.size] += 1
                gpu.release(found)

            def free_all_blocks(self) -> None:
                self.kept.clear()

            def used_bytes(self) -> int:
                return self.used

            def total_bytes(self) -> int:
                return self.used + self._kept_bytes()

            def set_limit(self, size: int) -> None:
                self.limit = size

        class PinnedMemoryPointer(bytearray):
            """Host memory that the copy engine reads when its turn comes."""

        class Function:
            """A kernel of a module."""

            def __init__(self, name: str) -> None:
                self.name = name
                self.ptr = id(self)
                self.most_shared = DEFAULT_SHARED
                functions[self.ptr] = self

            def __call__(
                self, grid: tuple[int, ...], block: tuple[int, ...], args: Any, shared_mem: int = 0, stream: Any = None
            ) -> None:
                with gpu.lock:
                    if not isinstance(args, tuple) or len(args) != 1 or not isinstance(args[0], np.ndarray):
                        raise Misuse(f"{self.name} takes one struct, not {args!r}")
                    argument = args[0]
                    if argument.size != 1 or argument.nbytes != ctypes.sizeof(STRUCTS[self.name]):
                        raise Misuse(f"{self.name}: an argument of {argument.size} x {argument.itemsize} bytes")
                    if block != (gpu.lanes,) or len(grid) != 1 or not 1 <= grid[0] < 1 << 31:
                        raise Misuse(f"{self.name}: a grid of {grid} and blocks of {block}")
                    if shared_mem > self.most_shared:
                        raise CUDADriverError(1)
                    if (self.name == "gpudb_pipeline") != bool(shared_mem or _arena(argument)):
                        raise Misuse(f"{self.name}: {shared_mem} bytes of shared memory")
                    gpu.count("launch", CUDADriverError)
                    gpu.kernels_on = stream
                    content = argument.tobytes()
                    gpu.put(stream, lambda: gpu.run_kernel(self.name, content, grid[0]))

        class Module:
            """A cubin."""

            def load(self, cubin: bytes) -> None:
                if not isinstance(cubin, bytes) or not cubin.startswith(b"\x7fELF"):
                    raise CUDADriverError(200)
                if gpu.sticky is not None:
                    raise CUDADriverError(gpu.sticky)

            def get_function(self, name: str) -> Any:
                if name not in STRUCTS:
                    raise CUDADriverError(500)
                return Function(name)

        class Device:
            """The only one."""

            def __init__(self, device: int) -> None:
                if device != 0:
                    raise CUDARuntimeError(101)
                self.compute_capability = "90"

        def alloc_pinned_memory(size: int) -> Any:
            with gpu.lock:
                gpu.count("pinned")
                memory = PinnedMemoryPointer(size)
                gpu.pinned[np.frombuffer(memory, np.uint8).__array_interface__["data"][0]] = size
                return memory

        def synchronize_device() -> None:
            with gpu.lock:
                gpu.count("wait")
                for stream in gpu.streams:
                    gpu.complete(stream)

        def free_memory() -> tuple[int, int]:
            if gpu.sticky is not None:
                raise CUDARuntimeError(gpu.sticky)
            return gpu.memory_bytes, gpu.memory_bytes

        def set_attribute(function: int, attribute: int, value: int) -> None:
            if attribute != 8 or value > MOST_SHARED:
                raise CUDADriverError(1)
            functions[function].most_shared = value

        functions: dict[int, Any] = {}
        attributes = {"cudaDevAttrMultiProcessorCount": 16, "cudaDevAttrMaxSharedMemoryPerBlockOptin": 97}
        values = {16: 2, 97: MOST_SHARED}
        return types.SimpleNamespace(
            Device=Device,
            Stream=Stream,
            Event=Event,
            MemoryPool=MemoryPool,
            MemoryPointer=MemoryPointer,
            Module=Module,
            Function=Function,
            alloc_pinned_memory=alloc_pinned_memory,
            memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
            runtime=types.SimpleNamespace(
                CUDARuntimeError=CUDARuntimeError,
                deviceGetAttribute=lambda attribute, device: values[attribute],
                deviceSynchronize=synchronize_device,
                memGetInfo=free_memory,
                **attributes,
            ),
            driver=types.SimpleNamespace(
                CUDADriverError=CUDADriverError,
                CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8,
                funcSetAttribute=set_attribute,
                occupancyMaxActiveBlocksPerMultiprocessor=lambda function, lanes, shared: 1,
            ),
        )


def _no_device_address(address: int) -> None:
    if BASE <= address < BASE + REGION:
        raise Misuse("a device pointer where a host pointer belongs")


def _arena(argument: np.ndarray) -> int:
    """The arena of a Launch, where the argument is one."""
    if argument.nbytes != ctypes.sizeof(structs.Launch):
        return 0
    return int(structs.Launch.from_buffer_copy(argument.tobytes()).arena)


@contextlib.contextmanager
def fake_gpu(**options: Any) -> Iterator[FakeGpu]:
    """A fake that `import cupy` finds, with kernels that need no NVRTC."""
    import pytest

    from gpudb.devices import cuda
    from gpudb.kernels import nvrtc

    gpu = FakeGpu(**options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "cupy", gpu.cupy)
        patch.setitem(sys.modules, "cupy.cuda", gpu.cuda)
        patch.setattr(cuda, "LANES", gpu.lanes)
        patch.setattr(nvrtc, "compile_cubin", lambda source, arch: nvrtc.Cubin(b"\x7fELF", "", {}))
        try:
            yield gpu
        finally:
            gpu.close()
