"""The device `cuda` on the fake CuPy: the reference's bytes, whatever streams do, and whether columns stay or are streamed."""

from __future__ import annotations

import ctypes
import gc
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from gpudb.devices.cuda import CudaDevice
from gpudb.kernels import device_source
from gpudb.kernels.nvrtc import compile_cubin
from gpudb.session import Database, Session
from tests.devices.fake_cupy import STRUCTS, FakeGpu, fake_gpu
from tests.devices.queries import FAILING, QUERIES, content
from tests.devices.test_parity import OneDevice, answer, tables


@contextmanager
def session_on(tile_rows: int = 256, **options: Any) -> Iterator[tuple[Session, CudaDevice, FakeGpu]]:
    """A session over the tables, its only device, and the GPU behind that."""
    with fake_gpu(**options) as gpu:
        device = CudaDevice(tile_rows)
        shared = Database()
        shared.storage = tables().storage
        shared.devices = OneDevice(device)  # type: ignore[assignment]
        yield Session(shared), device, gpu


def assert_same(session: Session, sql: str) -> None:
    expected = answer("reference", sql)
    try:
        found: pa.Table | str = session.execute(sql).table()
    except Exception as error:  # Misuse of the fake among them
        found = f"{type(error).__name__}: {error}"
    if isinstance(expected, str) or isinstance(found, str):
        assert found == expected, sql
    else:
        assert content(found) == content(expected), sql


@pytest.fixture(scope="module")
def whole() -> Iterator[tuple[Session, CudaDevice, FakeGpu]]:
    with session_on() as made:
        yield made


@pytest.mark.parametrize("sql", QUERIES + FAILING, ids=str)
def test_cuda_gives_the_bytes_of_the_reference_and_keeps_no_memory(
    whole: tuple[Session, CudaDevice, FakeGpu], sql: str
) -> None:
    session, device, _ = whole
    assert_same(session, sql)
    assert device.used_bytes() == 0


SOME = QUERIES[::7] + FAILING[:2]


@pytest.fixture(scope="module", params=["eager", 5, 6])
def scheduled(request: Any) -> Iterator[Session]:
    with session_on(1024, schedule=request.param) as (session, _, _):
        yield session


@pytest.mark.parametrize("sql", SOME, ids=str)
def test_the_answer_does_not_depend_on_when_streams_run(scheduled: Session, sql: str) -> None:
    assert_same(scheduled, sql)


@pytest.fixture(scope="module", params=["lazy", "eager", "copies", 7])
def streamed(request: Any) -> Iterator[tuple[Session, CudaDevice, FakeGpu]]:
    """No column stays, and a slot holds 20 kB: some 4,096 rows of a few columns."""
    with session_on(schedule=request.param) as made:
        device = made[1]
        device.columns.limit = 0
        device.streamed_bytes = 20_000
        yield made


@pytest.mark.parametrize("sql", SOME, ids=str)
def test_columns_that_do_not_stay_are_streamed(streamed: tuple[Session, CudaDevice, FakeGpu], sql: str) -> None:
    session, device, _ = streamed
    assert_same(session, sql)
    assert device.columns.held == 0


@pytest.mark.parametrize("schedule", ["lazy", "eager", "copies", 8])
def test_large_columns_that_stay_come_through_the_pinned_buffers(
    schedule: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpudb.devices.cuda.DIRECT_BYTES", 0)
    monkeypatch.setattr("gpudb.devices.cuda.PINNED_BYTES", 10_000)
    with session_on(schedule=schedule) as (session, device, _):
        for sql in SOME[::3]:
            assert_same(session, sql)
        assert device.columns.held > 0


def test_streaming_takes_a_launch_for_every_batch() -> None:
    with session_on() as (session, device, gpu):
        sql = "SELECT sum(big), count(*) FROM flights"

        def launches() -> int:
            gpu.launched.clear()
            assert_same(session, sql)
            return gpu.launched.count("gpudb_pipeline")

        once = launches()
        assert launches() == once
        device.columns.drop_all()
        device.columns.limit, device.streamed_bytes = 0, 1
        assert launches() == once + 2, "three row groups, one at a time"


def test_columns_stay_on_the_device_until_their_table_is_gone() -> None:
    with session_on() as (session, device, gpu):
        session.execute("CREATE TABLE t AS SELECT id, big FROM flights")
        sql = "SELECT sum(big) FROM t WHERE id > 17"
        first = session.execute(sql).table()
        copies = gpu.counts["copy"]
        assert session.execute(sql).table().equals(first)
        again = gpu.counts["copy"] - copies
        held = device.columns.held
        assert held > 9000 * 8
        assert again < copies
        session.clear_plan_cache()
        session.execute("DROP TABLE t")
        gc.collect()
        device.columns.lease(tables().storage.snapshot()["dozen"].row_groups[0].chunks[0].stored)
        assert device.columns.held < held - 9000 * 8


def test_the_least_recently_used_columns_go_first() -> None:
    with session_on() as (session, device, _):
        flights = tables().storage.snapshot()["flights"]
        columns = [flights.row_groups[0].chunks[k].stored for k in (0, 7, 8)]
        device.columns.limit = sum(c.nbytes for c in columns[:2])
        assert_same(session, "SELECT max(id) FROM flights WHERE id < 4000")
        assert device.columns.has(columns[0])
        assert_same(session, "SELECT max(big) FROM flights WHERE id < 4000")
        assert device.columns.has(columns[0]) and device.columns.has(columns[1])
        assert_same(session, "SELECT max(id) FROM flights WHERE id < 4000")
        assert_same(session, "SELECT max(wide) FROM flights")
        assert not device.columns.has(columns[1])


def test_a_dictionary_that_has_grown_in_place_is_copied_anew() -> None:
    with session_on() as (session, _, _):
        session.execute("CREATE TABLE words (w VARCHAR)")
        for number in range(40):
            session.execute(f"INSERT INTO words VALUES ('word {number}')")
            found = session.execute("SELECT w FROM words").table().column(0).to_pylist()
            assert found == [f"word {n}" for n in range(number + 1)]


@pytest.mark.parametrize("shared", [99 << 10, 8 << 10, 1 << 10])
def test_tiles_are_as_large_as_shared_memory_allows(shared: int) -> None:
    with session_on(1024) as (session, device, _):
        device.shared_bytes = shared
        for sql in SOME[:6]:
            assert_same(session, sql)


def test_explain_analyze_counts_the_rows_that_were_streamed() -> None:
    with session_on() as (session, device, _):
        device.columns.limit, device.streamed_bytes = 0, 20_000
        lines = session.execute("EXPLAIN ANALYZE SELECT sum(big) FROM flights WHERE id >= 0").table().to_pylist()
        assert max(line["rows"] or 0 for line in lines) == tables().storage.snapshot()["flights"].num_rows


def kernel_argument_bytes(cubin: bytes) -> dict[str, int]:
    """Bytes of arguments that each kernel of a cubin takes, by the sections that NVRTC writes for the driver."""
    found = {}
    table, entry, count, names = (
        struct.unpack_from(form, cubin, at)[0] for form, at in (("<Q", 40), ("<H", 58), ("<H", 60), ("<H", 62))
    )
    heads = [struct.unpack_from("<IIQQQQ", cubin, table + k * entry) for k in range(count)]
    for head in heads:
        begin = heads[names][4] + head[0]
        name = cubin[begin : cubin.index(b"\0", begin)].decode()
        at, end = head[4], head[4] + head[5]
        while name.startswith(".nv.info.gpudb_") and at < end:
            form, attribute, value = struct.unpack_from("<BBH", cubin, at)
            if attribute == 0x19:  # EIATTR_CBANK_PARAM_SIZE
                found[name.removeprefix(".nv.info.")] = value
            at += 4 + (value if form == 4 else 0)
    return found


@pytest.mark.slow
def test_every_kernel_of_the_cubin_takes_the_struct_that_the_device_packs() -> None:
    pytest.importorskip("cuda.bindings")
    cubin = compile_cubin(device_source(), "sm_90")  # by a name of its own: the fake takes the module's
    assert kernel_argument_bytes(cubin.image) == {name: ctypes.sizeof(kind) for name, kind in STRUCTS.items()}
