"""The fake CuPy is as strict as it says, and has no name that CuPy lacks."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gpudb.devices import launch as structs
from tests.devices.fake_cupy import FRESH, LANES, CUDARuntimeError, FakeGpu, Faults, Misuse, OutOfMemoryError


@pytest.fixture
def gpu() -> Iterator[FakeGpu]:
    made = FakeGpu(memory=1 << 20)
    yield made
    made.close()


def address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


class Things:
    """A stream, a pool and the ways to use them."""

    def __init__(self, gpu: FakeGpu) -> None:
        self.cuda = gpu.cuda
        self.stream = gpu.cuda.Stream(non_blocking=True)
        self.pool = gpu.cuda.MemoryPool()
        self.module = gpu.cuda.Module()
        self.module.load(b"\x7fELF")

    def fill(self, words: int, groups: int = 4, initial: int | None = None) -> None:
        """Launch the kernel that fills `groups` words."""
        self.initial = self.pool.malloc(64)
        self.initial.memset_async(1, 64, self.stream)
        self.launch(
            "gpudb_fill",
            structs.FillLaunch(words=words, initial=initial or self.initial.ptr, groups=groups, stride=1),
        )

    def launch(self, name: str, arguments: ctypes.Structure) -> None:
        value = np.frombuffer(bytes(arguments), f"V{ctypes.sizeof(arguments)}")
        self.module.get_function(name)((1,), (LANES,), (value,), 0, self.stream)

    def read(self, memory: Any, size: int) -> np.ndarray:
        found = np.empty(size, np.uint8)
        memory.copy_to_host_async(address(found), size, self.stream)
        return found


def test_a_kernel_writes_device_memory(gpu: FakeGpu) -> None:
    things = Things(gpu)
    memory = things.pool.malloc(512)
    things.fill(memory.ptr)
    found = things.read(memory, 40)
    things.stream.synchronize()
    assert found[:32].tolist() == [1] * 32 and found[32:].tolist() == [FRESH] * 8


def test_a_result_is_poison_until_its_stream_is_waited_for(gpu: FakeGpu) -> None:
    things = Things(gpu)
    memory = things.pool.malloc(512)
    memory.memset_async(1, 512, things.stream)
    found = things.read(memory, 8)
    assert 1 not in found.tolist()
    things.stream.synchronize()
    assert found.tolist() == [1] * 8


def test_a_host_pointer_in_a_struct_is_misuse(gpu: FakeGpu) -> None:
    things = Things(gpu)
    things.fill(address(np.zeros(8, np.int64)))
    with pytest.raises(Misuse, match="gpudb_fill: words"):
        things.stream.synchronize()


def test_a_host_pointer_that_a_kernel_follows_ends_the_device(gpu: FakeGpu) -> None:
    things = Things(gpu)
    words = np.zeros(8, np.int64)
    table = np.frombuffer(bytes(structs.GroupTable(words=address(words), capacity=1, copies=2, stride=1)), np.uint8)
    memory = things.pool.malloc(1024)
    memory.memset_async(0, 1024, things.stream)
    memory.copy_from_host_async(address(table), table.nbytes, things.stream)
    kinds = things.pool.malloc(8)
    kinds.memset_async(0, 8, things.stream)
    launch = structs.MergeLaunch(tables=memory.ptr, kinds=kinds.ptr, full=memory.ptr, num_tables=1, keyed=0)
    things.launch("gpudb_merge", launch)
    with pytest.raises(CUDARuntimeError) as error:
        things.stream.synchronize()
    assert error.value.status == 700
    with pytest.raises(CUDARuntimeError):
        things.pool.malloc(8)


def test_memory_that_was_freed_is_not_there_any_more(gpu: FakeGpu) -> None:
    things = Things(gpu)
    memory, kept = things.pool.malloc(512), things.pool.malloc(512)
    things.fill(kept.ptr)
    freed = memory.ptr
    del memory
    things.fill(freed)
    with pytest.raises(Misuse, match="no device memory in use"):
        things.stream.synchronize()


def test_memory_may_be_freed_while_its_stream_still_has_to_use_it(gpu: FakeGpu) -> None:
    things = Things(gpu)
    memory = things.pool.malloc(512)
    things.fill(memory.ptr)
    found = things.read(memory, 8)
    del memory
    things.stream.synchronize()
    assert found.tolist() == [1] * 8


def test_another_stream_has_to_wait_for_fresh_memory(gpu: FakeGpu) -> None:
    things = Things(gpu)
    things.fill(things.pool.malloc(512).ptr)
    memory, other = things.pool.malloc(512), things.cuda.Stream(non_blocking=True)
    memory.memset_async(0, 8, other)
    with pytest.raises(Misuse, match="before the stream"):
        other.synchronize()


def test_another_stream_that_waits_for_an_event_finds_what_was_done_before(gpu: FakeGpu) -> None:
    things = Things(gpu)
    memory, other, event = things.pool.malloc(512), things.cuda.Stream(non_blocking=True), things.cuda.Event()
    things.fill(memory.ptr)
    event.record(things.stream)
    other.wait_event(event)
    found = np.empty(8, np.uint8)
    memory.copy_to_host_async(address(found), 8, other)
    other.synchronize()
    assert found.tolist() == [1] * 8


def test_pinned_memory_is_read_when_the_copy_runs(gpu: FakeGpu) -> None:
    things = Things(gpu)
    pinned = np.frombuffer(things.cuda.alloc_pinned_memory(8), np.uint8)
    pageable = np.full(8, 3, np.uint8)
    memory = things.pool.malloc(512)
    pinned[:] = 3
    memory.copy_from_host_async(address(pinned), 8, things.stream)
    (memory + 8).copy_from_host_async(address(pageable), 8, things.stream)
    pinned[:] = pageable[:] = 4
    found = things.read(memory, 16)
    things.stream.synchronize()
    assert found.tolist() == [4] * 8 + [3] * 8


def test_writing_behind_an_allocation_is_misuse(gpu: FakeGpu) -> None:
    things = Things(gpu)
    memory = things.pool.malloc(512)
    things.fill(memory.ptr, groups=65)
    del memory
    with pytest.raises(Misuse, match="behind the end"):
        things.stream.synchronize()


@pytest.mark.parametrize(
    "arguments",
    [(), (np.zeros(1, "V8"),), (1, 2), (np.zeros(32, np.uint8),), [np.zeros(1, "V32")]],
    ids=["none", "a short struct", "two numbers", "an array of bytes", "a list"],
)
def test_other_arguments_than_one_struct_are_misuse(gpu: FakeGpu, arguments: Any) -> None:
    things = Things(gpu)
    with pytest.raises(Misuse):
        things.module.get_function("gpudb_fill")((1,), (LANES,), arguments, 0, things.stream)


def test_a_device_pointer_where_a_host_pointer_belongs_is_misuse(gpu: FakeGpu) -> None:
    things = Things(gpu)
    memory = things.pool.malloc(512)
    with pytest.raises(Misuse, match="host pointer belongs"):
        memory.copy_from_host_async(memory.ptr, 8, things.stream)


def test_memory_is_as_large_as_it_is_said_to_be(gpu: FakeGpu) -> None:
    things = Things(gpu)
    kept = things.pool.malloc(1 << 19)
    with pytest.raises(OutOfMemoryError):
        things.pool.malloc((1 << 19) + 1)
    del kept
    assert things.pool.malloc(1 << 20).ptr


def test_a_scripted_fault_comes_at_its_number_and_a_fatal_one_stays() -> None:
    gpu = FakeGpu(faults=Faults().at("launch", 2, 701).at("launch", 3, 719))
    try:
        things = Things(gpu)
        memory = things.pool.malloc(512)
        things.fill(memory.ptr)
        for code in (701, 719):
            with pytest.raises(RuntimeError) as error:
                things.fill(memory.ptr)
            assert error.value.status == code  # type: ignore[attr-defined]
        with pytest.raises(RuntimeError):
            things.stream.synchronize()
    finally:
        gpu.close()


def test_every_name_of_the_fake_is_one_of_cupy(gpu: FakeGpu) -> None:
    if importlib.util.find_spec("cupy") is None:
        pytest.skip("CuPy is not installed")
    from cupy import cuda

    for name, fake in vars(gpu.cuda).items():
        real = getattr(cuda, name)
        for member in vars(fake):
            if not member.startswith("_") and member not in OURS.get(name, ()):
                assert hasattr(real, member), f"cupy.cuda.{name}.{member}"


OURS = {"Function": ("name",), "Stream": ("queue",), "Event": ("recorded",), "MemoryPool": ("give_back",)}
