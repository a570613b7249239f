"""The device `cuda`: NVIDIA GPUs, through CuPy for memory and launches and NVRTC for the kernels.

Everything runs in the order of one stream, `compute`; only host arrays on their way in go through a second one, `copies`, so
that row groups are copied while others are worked on.  Registers, program and parameters of a block lie in shared memory.

An error of the driver is told apart by its code: out of memory (caches are emptied and the allocation tried again, then
DeviceMemoryError), harmless (DeviceError), and all others, after which nothing can run on the device until this process is
started anew (DeviceLostError, now and for whatever is asked of it later).
"""

from __future__ import annotations

import ctypes
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Any

import numpy as np

from gpudb.devices import launch as structs
from gpudb.devices.kernels import KernelDevice
from gpudb.devices.residency import Held, Lease, Residency
from gpudb.devices.work import Part, Run, Work
from gpudb.errors import DeviceError, DeviceLostError, DeviceMemoryError, InternalError
from gpudb.program import COLUMN, Pipeline
from gpudb.record import record

LANES = 128  # threads of a block: eight rows each make a tile of 1,024
SLACK = 64  # bytes behind every allocation that may be read
COLUMNS_SHARE = 0.6  # of the memory that is free at the start, for columns that stay
PINNED_BYTES = 16 << 20  # of each of the two buffers that host arrays go through
DIRECT_BYTES = 64 << 10  # up to which the driver takes a copy along with its command
STREAMED_BYTES = 64 << 20  # of each of the two pieces of device memory that columns which do not stay are copied to
SPARING_BYTES = 4 << 20  # the same, once memory has been too short
SPLIT_ROWS = 4096  # a row group is split at multiples of so many rows: storage.column.TILE_ROWS
STAGED_BYTES = 16 << 10  # of program and parameters that a block copies; longer ones are read where they lie
WORDS = 256
GRACE_SECONDS = 2.0  # that a kernel may go on after it was told to stop

MEMORY_ALLOCATION = 2
# Codes of cudaError_t (CUresult has most of them) after which the context still works, or before there is one: invalid value,
# configuration, function or handle; no image for this GPU; out of launch resources; not supported; no driver, no card.
HARMLESS = frozenset({1, 3, 9, 35, 46, 98, 100, 101, 200, 209, 400, 500, 600, 701, 720, 801, 802, 803, 804})


@record(frozen=False)
class _Batch:
    """Tiles first .. last of a pipeline, and what has to be copied before they run: (device memory, host bytes) pairs."""

    first_tile: int
    last_tile: int
    copies: list[tuple[Any, np.ndarray]]


@record(frozen=False)
class _Stream:
    """The batches of a pipeline whose columns do not all stay; `read` are events: the launch that read a slot is over."""

    batches: list[_Batch]
    slots: list[Any]
    read: list[Any] = field(default_factory=list)


class CudaDevice(KernelDevice):
    """The first GPU that this process sees.

    lanes          threads of a block
    memory_limit   bytes of device memory that may be used; None for all
    lost           why nothing can run any more, or None

    Raises DeviceError where CuPy, a driver or a GPU is missing, or the kernels cannot be built.
    """

    name = "cuda"
    private = False
    pack_rows = 8
    radix_bits = 4
    most_staged = STAGED_BYTES

    def __init__(self, tile_rows: int | None = None, lanes: int | None = None, memory_limit: int | None = None) -> None:
        self.lost: str | None = None
        self.lanes = lanes or LANES
        self.tile_rows = tile_rows or KernelDevice.tile_rows
        self.scratch_bytes = (self.lanes + 9 & ~7) * 8  # SCRATCH_WORDS
        self._process = os.getpid()
        self._local = threading.local()
        self._sending = threading.RLock()
        self._cupy = cuda = _import_cupy()
        with self._translated("start"):
            device = cuda.Device(0)
            self.architecture = f"sm_{device.compute_capability}"
            runtime = cuda.runtime
            self.multiprocessors = int(runtime.deviceGetAttribute(runtime.cudaDevAttrMultiProcessorCount, 0))
            self.shared_bytes = int(runtime.deviceGetAttribute(runtime.cudaDevAttrMaxSharedMemoryPerBlockOptin, 0))
            self._compute = cuda.Stream(non_blocking=True)
            self._copies = cuda.Stream(non_blocking=True)
            self._urgent = cuda.Stream(non_blocking=True)  # for a word that must not wait for the others
            self._pool = cuda.MemoryPool()
            free, _ = runtime.memGetInfo()
            if memory_limit is not None:
                self._pool.set_limit(size=memory_limit)
                free = min(free, memory_limit)
        self.columns = Residency(int(free * COLUMNS_SHARE), self._uploaded)
        self.streamed_bytes = min(STREAMED_BYTES, free // 16)
        self._load()
        self._buffers = [self._host_buffer(PINNED_BYTES) for _ in range(2)]
        self._turn = 0
        self._words: list[Any] = []  # of device memory, to tell kernels that they are cancelled
        self._more_words()
        self._own_bytes = int(self._pool.used_bytes())
        self._measure(min(4 << 20, free // 16))

    # ------------------------------------------------------------------------------- kernels

    def _load(self) -> None:
        from gpudb.kernels import device_source
        from gpudb.kernels.nvrtc import compile_cubin

        cubin = compile_cubin(device_source(), self.architecture)
        with self._translated("load its kernels"):
            self._module = self._cupy.Module()
            self._module.load(cubin.image)
            self._functions: dict[str, Any] = {}
            self._per_multiprocessor: dict[int, int] = {}
            driver = self._cupy.driver
            attribute = driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            driver.funcSetAttribute(self._function("gpudb_pipeline").ptr, attribute, self.shared_bytes)

    def _function(self, kernel: str) -> Any:
        function = self._functions.get(kernel)
        if function is None:
            function = self._functions[kernel] = self._module.get_function(kernel)
        return function

    def launch(self, kernel: str, arguments: ctypes.Structure, blocks: int) -> None:
        shared = 0
        if isinstance(arguments, structs.Launch) and not arguments.arena:
            shared = int(arguments.arena_bytes)
        # A kernel takes its struct by value: CuPy passes a NumPy array of one element so.
        value = np.frombuffer(bytes(arguments), f"V{ctypes.sizeof(arguments)}")
        with self._translated(f"launch {kernel}"):
            self._function(kernel)((blocks,), (self.lanes,), (value,), shared, self._compute)

    def blocks(self, tiles: int) -> int:
        return max(1, min(tiles, 4 * self.multiprocessors))

    def pipeline_blocks(self, tiles: int, arena_bytes: int) -> int:
        """As many as the multiprocessors hold at once: they take tiles until none is left."""
        shared = arena_bytes if arena_bytes <= self.shared_bytes else 0
        if shared not in self._per_multiprocessor:
            with self._translated("ask for its occupancy"):
                function = self._function("gpudb_pipeline")
                found = self._cupy.driver.occupancyMaxActiveBlocksPerMultiprocessor(function.ptr, self.lanes, shared)
            self._per_multiprocessor[shared] = max(1, int(found))
        return max(1, min(tiles, self.multiprocessors * self._per_multiprocessor[shared]))

    def tile_rows_of(self, pipeline: Pipeline) -> int:
        """The largest tile whose registers leave room for a second block beside it, else the smallest; at least 64."""
        rows = self.tile_rows
        while rows > 64 and self.arena_bytes(pipeline, rows) > self.shared_bytes // 2:
            rows //= 2
        return rows if self.arena_bytes(pipeline, rows) <= self.shared_bytes else self.tile_rows

    def arena(self, blocks: int, arena_bytes: int) -> Any:
        """In shared memory; in device memory only where 64 rows of registers are more than a block may have of it."""
        return None if arena_bytes <= self.shared_bytes else self.empty(blocks * arena_bytes)

    # ------------------------------------------------------------------------------- memory

    def empty(self, size: int) -> Any:
        with self._translated("allocate"):
            try:
                return self._pool.malloc(size + SLACK)
            except Exception as error:
                if self._code(error) != MEMORY_ALLOCATION:
                    raise
        with self._translated(f"allocate {size:,} bytes"):
            self.columns.drop_all()
            self._pool.free_all_blocks()
            return self._pool.malloc(size + SLACK)

    def zeros(self, size: int) -> Any:
        memory = self.empty(size)
        if size:
            with self._translated("clear memory"):
                memory.memset_async(0, size, self._compute)
        return memory

    def held(self, run: Run, size: int, zero: bool = False) -> Held:
        taken = run.ledger.taken(size)
        return Held(self.zeros(size) if zero else self.empty(size), taken)

    def from_host(self, array: np.ndarray) -> Any:
        array = np.ascontiguousarray(array)
        memory = self.empty(array.nbytes)
        if array.nbytes:
            with self._translated("copy to the device"):  # the driver has the bytes when the call returns: not pinned
                memory.copy_from_host_async(_host_address(array), array.nbytes, self._compute)
        return memory

    def to_host(self, handle: Any, dtype: Any, count: int) -> np.ndarray:
        found = np.empty(count, dtype)
        if found.nbytes:
            self._finish()  # first: a copy to pageable memory returns when all before it is over, and hears of no cancel
            with self._translated("copy from the device"):
                self._memory(handle).copy_to_host_async(_host_address(found), found.nbytes, self._compute)
                self._compute.synchronize()
        return found

    def copy(self, target: Any, source: Any, size: int) -> None:
        if size:
            with self._translated("copy on the device"):
                self._memory(target).copy_from_device_async(self._memory(source), size, self._compute)

    def view(self, handle: Any, offset: int) -> Any:
        return handle.at(offset) if isinstance(handle, (Lease, Held)) else handle + offset

    def address(self, handle: Any) -> int:
        return 0 if handle is None else int(self._memory(handle).ptr)

    def _memory(self, handle: Any) -> Any:
        memory = handle.memory if isinstance(handle, (Lease, Held)) else handle
        if not isinstance(memory, self._cupy.MemoryPointer):
            raise InternalError(f"device cuda: no device memory: {type(handle).__name__}")
        return memory

    def resident(self, array: Any, owner: Any = None) -> Any:
        if not isinstance(array, np.ndarray):
            return array
        return self.columns.lease(array, owner) or self.from_host(array)

    def used_bytes(self) -> int:
        """Bytes of device memory in use, copies that stay for later statements not counted."""
        self.columns.drop_all()
        return int(self._pool.used_bytes()) - self.columns.held - self._own_bytes

    # ------------------------------------------------------------------------------- host arrays on their way in

    def _host_buffer(self, size: int) -> tuple[np.ndarray, Any]:
        """(size,) uint8 that the copy engine reads by itself, and the event of its last copy; pageable where none is left."""
        try:
            memory: Any = self._cupy.alloc_pinned_memory(size)
        except Exception as error:
            if self._code(error) != MEMORY_ALLOCATION:
                raise self._failure(error, "allocate pinned memory") from None
            memory = bytearray(min(size, 1 << 20))
        return np.frombuffer(memory, np.uint8), self._cupy.Event(disable_timing=True)

    def _uploaded(self, array: np.ndarray) -> Any:
        """A copy of a host array that stays."""
        if array.nbytes <= DIRECT_BYTES:
            return self.from_host(array)
        memory = self.empty(array.nbytes)
        with self._sending, self._translated("copy to the device"):
            self._behind(self._copies, self._compute)  # which may still use what lay there before
            self._send(memory, array.reshape(-1).view(np.uint8))
            self._behind(self._compute, self._copies)
        return memory

    def _send(self, target: Any, source: np.ndarray) -> None:
        """Bytes to the device, on the stream of copies, through the two buffers in turn."""
        at = 0
        while at < len(source):
            buffer, copied = self._buffers[self._turn]
            self._turn = 1 - self._turn
            self._wait(copied)
            size = min(len(buffer), len(source) - at)
            buffer[:size] = source[at : at + size]
            (target + at).copy_from_host_async(_host_address(buffer), size, self._copies)
            copied.record(self._copies)
            at += size

    def _behind(self, later: Any, earlier: Any) -> None:
        """What is put on one stream from now on waits for what has been put on the other."""
        event = self._cupy.Event(disable_timing=True)
        event.record(earlier)
        later.wait_event(event)

    def fitted(self, work: Work, parts: list[Part]) -> list[Part]:
        """Columns that stay are leased, as far as they fit; the others get places that they are copied to batch by batch."""
        work.streamed = None
        run, pipeline = work.run, work.pipeline
        gathered = {
            operand.number
            for instruction in pipeline.instructions
            if instruction.variant.opcode.name == "Gather"
            for operand in instruction.operands
            if operand.kind == COLUMN
        }
        if run.sparing:
            self.columns.drop_all()
        leased = []
        for part in parts:
            columns = list(part.columns)
            for k, array in enumerate(columns):
                if isinstance(array, np.ndarray):
                    if k in gathered:
                        columns[k] = self.resident(array)
                    elif not run.sparing or self.columns.has(array):
                        columns[k] = self._leased(array) or array
            leased.append(replace(part, columns=columns))
        if not any(isinstance(column, np.ndarray) for part in leased for column in part.columns):
            return leased
        return self._streamed(work, leased)

    def _leased(self, array: np.ndarray) -> Lease | None:
        try:
            return self.columns.lease(array)
        except DeviceMemoryError:
            return None

    def _streamed(self, work: Work, parts: list[Part]) -> list[Part]:
        """Parts, split where one is too large, with their host columns in places of two slots; the plan is work.streamed."""
        limit = min(SPARING_BYTES, self.streamed_bytes // 4) if work.run.sparing else self.streamed_bytes
        tile_rows = self.tile_rows_of(work.pipeline)
        pieces = [piece for part in parts for piece in self._split(work.pipeline, part, limit)]
        batches = [_Batch(0, 0, [])]
        used, largest = 0, 0
        places: list[list[tuple[int, int]]] = []  # of each piece: (column, offset in its batch's slot)
        slot_of: list[int] = []
        for piece in pieces:
            sizes = [(k, _bytes_of(piece, k)) for k, c in enumerate(piece.columns) if isinstance(c, np.ndarray)]
            needed = sum(size for _, size in sizes)
            if used and used + needed > limit:
                batches.append(_Batch(batches[-1].last_tile, batches[-1].last_tile, []))
                used = 0
            offsets = []
            for k, size in sizes:
                offsets.append((k, used))
                used += size
            largest = max(largest, used)
            places.append(offsets)
            slot_of.append(len(batches) - 1)
            batches[-1].last_tile += -(-piece.rows // tile_rows)
        slots = [self.empty(largest) for _ in range(min(2, len(batches)))]
        found = []
        for piece, offsets, number in zip(pieces, places, slot_of, strict=True):
            columns = list(piece.columns)
            for k, offset in offsets:
                place = slots[number % 2] + offset
                batches[number].copies.append((place, columns[k].reshape(-1).view(np.uint8)))
                columns[k] = place
            found.append(replace(piece, columns=columns))
        with self._translated("copy to the device"):
            work.streamed = _Stream(batches, slots, [self._cupy.Event(disable_timing=True) for _ in slots])
            for event in work.streamed.read:
                event.record(self._compute)  # which may still use what lay there before
        return found

    def _split(self, pipeline: Pipeline, part: Part, limit: int) -> Iterator[Part]:
        """The rows of a part, so many at a time that its host columns fit into `limit` bytes, or SPLIT_ROWS."""
        bits = sum(_row_bits(pipeline, k) for k, column in enumerate(part.columns) if isinstance(column, np.ndarray))
        step = max(1, 8 * limit // max(1, bits) // SPLIT_ROWS) * SPLIT_ROWS
        for start in range(0, part.rows, step):
            rows = min(step, part.rows - start)
            padded = -(-rows // SPLIT_ROWS) * SPLIT_ROWS
            columns: list[Any] = []
            for k, column in enumerate(part.columns):
                begin, end = (row * _row_bits(pipeline, k) // 8 for row in (start, start + padded))
                if pipeline.columns[k].step is not None:  # read at row numbers of its own
                    columns.append(column)
                elif isinstance(column, np.ndarray):
                    columns.append(column.reshape(-1).view(np.uint8)[begin:end])
                else:
                    columns.append(None if column is None else self.view(column, begin))
            yield Part(rows, part.first_row + start, columns, part.slots)

    def _go(self, work: Work, arguments: Any, blocks: int) -> None:
        if work.streamed is None:
            super()._go(work, arguments, blocks)
            return
        tiles, step = arguments.num_tiles, arguments.tile_step
        arguments.tile_step = 1
        for number, batch in enumerate(work.streamed.batches):
            work.run.check()
            read = work.streamed.read[number % 2]
            with self._sending, self._translated("copy to the device"):
                self._copies.wait_event(read)
                for place, source in batch.copies:
                    self._send(place, source)
                self._behind(self._compute, self._copies)
            counter = self.from_host(np.array([batch.first_tile], np.int64))
            arguments.next_tile, arguments.num_tiles = self.address(counter), batch.last_tile
            self.launch("gpudb_pipeline", arguments, blocks)
            with self._translated("copy to the device"):
                read.record(self._compute)
        arguments.num_tiles, arguments.tile_step = tiles, step

    # ------------------------------------------------------------------------------- waiting

    def run_pipeline(self, work: Work) -> Any:
        try:
            return super().run_pipeline(work)
        finally:
            watched, self._local.watched = getattr(self._local, "watched", None), None
            if watched is not None:
                self._words.append(watched[1])

    def cancel_word(self, run: Run) -> int:
        """A word of device memory; whoever waits for the device writes it when the run is cancelled.

        It is used for nothing else, as that write does not wait for what was put on the compute stream before.
        """
        if not self._words:
            self._more_words()
        word = self._words.pop()
        with self._translated("clear memory"):
            word.memset_async(0, 8, self._compute)
        self._local.watched = (run, word)
        return self.address(word)

    def _more_words(self) -> None:
        memory = self.zeros(8 * WORDS)
        self._words += [memory + 8 * k for k in range(WORDS)]

    def _finish(self) -> None:
        """Wait until all that was put on the compute stream is done."""
        with self._translated("run"):
            self._wait(self._compute)

    def _wait(self, thing: Any) -> None:
        """Wait for a stream or an event; what the watched run asks for is passed on to its kernels meanwhile.

        Raises QueryCancelled, and the device is lost, where they do not end for all that.
        """
        watched = getattr(self._local, "watched", None)
        waits, told = 0, 0.0
        while watched is not None and not thing.done:
            run, word = watched
            now = time.monotonic()
            if run.cancel[0]:  # again and again: it may have been cleared only now
                told = told or now
                word.copy_from_host_async(_host_address(run.cancel), 8, self._urgent)
            if told and now > told + GRACE_SECONDS:
                self._lose("a kernel does not end")
                run.check()
            waits += 1
            time.sleep(0 if waits < 50 else min(1e-3, waits * 1e-6))
        thing.synchronize()
        if told:
            self._urgent.synchronize()  # the word is another run's before long: nothing may be on its way there

    # ------------------------------------------------------------------------------- errors

    @contextmanager
    def _translated(self, doing: str) -> Iterator[None]:
        """Errors of the driver as ours; nothing is asked of a lost device, nor from a process that was forked."""
        if self.lost is not None:
            raise DeviceLostError(f"device cuda: lost: {self.lost}", hint="start this process anew")
        if os.getpid() != self._process:
            raise DeviceError(
                "device cuda: CUDA does not work in a forked process", hint="start it by spawn, or SET device = 'cpu'"
            )
        try:
            yield
        except Exception as error:
            if self._code(error) is None:
                raise
            raise self._failure(error, doing) from None

    def _code(self, error: Exception) -> int | None:
        """The driver's code of an error; None where it is not the driver's.

        Out of memory without a code of its own may be an earlier fatal error in disguise: the device is asked.
        """
        status = getattr(error, "status", None)
        if status is None and isinstance(error, MemoryError):
            try:
                self._cupy.runtime.deviceSynchronize()
            except Exception as earlier:
                status = getattr(earlier, "status", None)
            return MEMORY_ALLOCATION if status is None else int(status)
        return None if status is None else int(status)

    def _failure(self, error: Exception, doing: str) -> DeviceError:
        code = self._code(error)
        if code == MEMORY_ALLOCATION:
            return DeviceMemoryError(f"device cuda: out of memory: cannot {doing}")
        if code in HARMLESS:
            return DeviceError(f"device cuda: cannot {doing}: {error}")
        self._lose(f"cannot {doing}: {error}, code {code}")
        return DeviceLostError(f"device cuda: lost: {self.lost}", hint="start this process anew")

    def _lose(self, why: str) -> None:
        self.lost = self.lost or why

    # ------------------------------------------------------------------------------- what it costs

    def _measure(self, size: int) -> None:
        """Seconds of a launch and the wait for it, of a byte copied in, and of a byte read on the device; by `size` bytes."""
        word, source, target = self.zeros(64), self.zeros(size), self.zeros(size)
        host = np.zeros(size, np.uint8)
        fill = structs.FillLaunch(words=self.address(word), initial=self.address(word), groups=1, stride=1)

        def launch() -> None:
            self.launch("gpudb_fill", fill, 1)

        def send() -> None:
            with self._sending, self._translated("copy to the device"):
                self._send(target, host)
                self._behind(self._compute, self._copies)

        self.round_trip_s = self._seconds(launch)
        self.copy_s = self._seconds(send) / size
        self.read_s = self._seconds(lambda: self.copy(target, source, size)) / (2 * size)

    def _seconds(self, work: Callable[[], None]) -> float:
        found = []
        for _ in range(5):
            began = time.perf_counter()
            work()
            self._finish()
            found.append(time.perf_counter() - began)
        return statistics.median(found)


def _import_cupy() -> Any:
    try:
        from cupy import cuda
    except Exception as error:  # ImportError, or whatever the loader of a shared library raises
        raise DeviceError(
            f"device cuda: CuPy cannot be loaded: {error}", hint="pip install 'gpudb-engine[gpu]'"
        ) from None
    return cuda


def _host_address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def _row_bits(pipeline: Pipeline, column: int) -> int:
    """Bits that a row takes of a pipeline's column."""
    source = pipeline.columns[column]
    return 1 if source.part == "validity" else 8 * source.type.width


def _bytes_of(part: Part, column: int) -> int:
    return -(-int(part.columns[column].nbytes) // 256) * 256
