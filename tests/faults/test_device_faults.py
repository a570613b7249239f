"""Faults of a GPU, on the fake CuPy: the same answer or an error that says what happened, never a wrong row, never a leak.

The tests are named after the rows of `gpudb/docs/faults_of_devices.md`.
"""

from __future__ import annotations

import gc
import logging
import math
import os
import random
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from benchmarks.flights import generator as flights_generator
from benchmarks.flights.queries import generated_constants
from benchmarks.flights.queries import make_queries as flights_queries
from benchmarks.virginia import generator as virginia_generator
from benchmarks.virginia.queries import make_queries as virginia_queries
from gpudb.devices import Devices, kernels
from gpudb.devices import launch as structs
from gpudb.devices.cuda import CudaDevice
from gpudb.errors import DeviceError, DeviceLostError, DeviceMemoryError, Error, QueryCancelled
from gpudb.session import Database, Session
from gpudb.storage import arrow
from gpudb.storage.table import TableBuilder
from tests.devices.fake_cupy import ILLEGAL_ADDRESS, OUT_OF_MEMORY, FakeGpu, Faults, fake_gpu
from tests.devices.queries import content
from tests.devices.test_lanes_sql import shown
from tests.sql.runner import SQL_FOLDER, Corpus, GpudbEngine, parse

ROWS = 5000
ROW_GROUP_ROWS = 4096
SAMPLES = 9
ALWAYS = 1 << 30
FATAL = (700, 702, 714, 715, 716, 717, 718, 719, 214, 220, 805, 806, 999)


@cache
def tables() -> Database:
    """The benchmarks' tables, small."""
    made = Database()
    flights = pa.concat_tables(flights_generator.row_groups(ROWS, 0, False, False)).slice(0, ROWS)
    found = {"flights": flights, "test": virginia_generator.rows_of(0, ROWS, 0, "floats")}
    versions = {}
    for name, table in found.items():
        builder = TableBuilder(arrow.columns_of(table.schema), row_group_rows=ROW_GROUP_ROWS)
        builder.append(table)
        versions[name] = builder.finish(name)
    made.storage.commit(versions, made.storage.version)
    return made


QUERIES = {
    **{f"flights {query.name}": query.sql("flights") for query in flights_queries(generated_constants())},
    **{f"virginia {query.name}": query.sql("test") for query in virginia_queries()},
    "join of one": "SELECT f.dest_state, count(*), sum(t.uniformi) FROM flights f JOIN test t ON f.flightnum = t.id GROUP BY 1",
    "join of many": "SELECT a.id, b.id FROM test a JOIN test b ON a.uniformi = b.uniformi WHERE a.id < 200",
    "recursion": "WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT (n * 7) % 31 FROM r) SELECT n FROM r",
    "set": "SELECT id FROM test WHERE uniformi > 90 INTERSECT SELECT flightnum FROM flights",
    "subquery": "SELECT id, uniformi FROM test WHERE uniformi = (SELECT max(uniformi) FROM test)",
}


def session_for(device: str) -> Session:
    shared = Database()
    shared.storage = tables().storage
    session = Session(shared)
    session.execute(f"SET device = '{device}'")
    return session


@cache
def expected(sql: str) -> Any:
    return content(session_for("reference").execute(sql).table())


class Machine:
    """A session on a fake GPU, whose faults can be set anew for each statement."""

    def __init__(self, gpu: FakeGpu, device: str) -> None:
        self.gpu = gpu
        self.session = session_for(device)
        self.run("SELECT max(id) FROM test")  # starts the device

    @property
    def device(self) -> Any:
        return self.session.database.devices._made["cuda"]

    def run(self, sql: str, faults: Faults | None = None) -> dict[str, Any]:
        """Run a statement under faults, counted from here on: its rows are right; its receipt."""
        self.gpu.counts.clear()
        self.gpu.faults = faults or Faults()
        try:
            result = self.session.execute(sql)
            assert content(result.table()) == expected(sql), sql
            return result.receipt
        finally:
            self.gpu.faults = Faults()

    def held(self) -> int:
        gc.collect()
        return int(self.device.used_bytes())


@contextmanager
def machine(device: str = "gpu", **options: Any) -> Iterator[Machine]:
    with fake_gpu(**options) as gpu:
        yield Machine(gpu, device)


FLIGHTS = QUERIES["flights Q4"]
SUMS = "SELECT count(*), sum(depdelay), avg(arrdelay), max(carrier_name) FROM flights"


# ------------------------------------------------------------------------------- G1, G2, G15, G17: memory


def allocations(found: Machine, sql: str) -> int:
    """How many a statement makes, its columns not on the device yet."""
    found.device.columns.drop_all()
    assert found.run(sql)["device"] == "cuda"
    return int(found.gpu.counts["malloc"])


def fails_at(found: Machine, sql: str, number: int, times: int) -> str:
    """Run a statement whose `number`-th allocation fails, and those behind it; the rung of the ladder that it came to."""
    found.device.columns.drop_all()
    receipt = found.run(sql, Faults().at("malloc", number, OUT_OF_MEMORY, times=min(times, 4000)))
    assert found.held() == 0, (sql, number, times)
    if receipt["device"] != "cuda":
        assert "out of memory" in receipt["fallback"]
        return "elsewhere"
    assert receipt["fallback"] is None
    return "small batches" if "device memory was short" in receipt["reason"] else "retried"


def test_G1_any_allocation_may_fail_and_the_answer_is_the_same(sample_seed: int) -> None:
    choice = random.Random(sample_seed)
    with machine() as found:
        for times in (1, 2, ALWAYS) * (SAMPLES // 3):
            sql = QUERIES[choice.choice(sorted(QUERIES))]
            rung = fails_at(found, sql, choice.randint(1, allocations(found, sql)), times)
            assert times > 1 or rung == "retried"


@pytest.mark.slow
@pytest.mark.parametrize("name", QUERIES)
def test_G1_every_allocation_of_every_query_fails_once_twice_and_for_good(name: str) -> None:
    with machine() as found:
        for number in range(1, allocations(found, QUERIES[name]) + 1):
            for times in (1, 2, ALWAYS):
                fails_at(found, QUERIES[name], number, times)


def test_G1_the_ladder_goes_rung_by_rung() -> None:
    with machine() as found:
        numbers = range(1, allocations(found, FLIGHTS) + 1, 5)
        number = next(n for n in numbers if fails_at(found, FLIGHTS, n, 2) == "small batches")
        assert fails_at(found, FLIGHTS, number, 1) == "retried"
        assert fails_at(found, FLIGHTS, number, ALWAYS) == "elsewhere"
        assert found.run(FLIGHTS)["device"] == "cuda", "memory that comes back is used again"


def test_G1_under_gpu_with_an_exclamation_mark_no_memory_is_an_error() -> None:
    with machine("gpu!") as found:
        with pytest.raises(DeviceMemoryError, match="out of memory"):
            found.run(FLIGHTS, Faults().at("malloc", 5, OUT_OF_MEMORY, times=4000))
        assert found.held() == 0
        assert found.run(FLIGHTS)["device"] == "cuda"


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 12])
def test_G1_a_failure_of_the_export_does_not_repeat_a_row(
    step: int, monkeypatch: pytest.MonkeyPatch, sample_seed: int
) -> None:
    monkeypatch.setattr("gpudb.vm.BATCH_ROWS", 1000)
    sql = "SELECT id, uniformi FROM test WHERE uniformi > 0"
    with machine() as found:
        for number in range(allocations(found, sql) - sample_seed % step, 0, -step):
            found.device.columns.drop_all()
            receipt = found.run(sql, Faults().at("malloc", number, OUT_OF_MEMORY, times=4000))
            reached = found.gpu.counts["malloc"] >= number  # tiles that come in order need no room to be put in order
            assert (receipt["device"] == "cpu") == reached and found.held() == 0


def test_G2_a_working_set_eight_times_the_memory_is_streamed() -> None:
    stored = tables().storage.snapshot()["flights"].nbytes
    with machine("gpu!", memory=max(1 << 18, stored // 8)) as found:
        receipt = found.run(SUMS)
        assert receipt["device"] == "cuda"
        assert found.gpu.launched.count("gpudb_pipeline") > 2
        assert found.held() == 0


def test_G15_without_pinned_memory_columns_come_through_pageable() -> None:
    faults = Faults().at("pinned", 1, OUT_OF_MEMORY, times=9)
    with machine("gpu!", faults=faults) as found:
        for sql in (SUMS, FLIGHTS):
            assert found.run(sql)["device"] == "cuda"


@pytest.mark.parametrize("number", [1, 9, 20, 30])
def test_G17_memory_that_another_process_takes_meanwhile(number: int) -> None:
    with machine() as found:
        allocate = found.gpu.allocate

        def and_take(size: int) -> Any:
            if found.gpu.counts["malloc"] == number:
                found.gpu.memory_bytes = 0
            return allocate(size)

        found.device.columns.drop_all()
        found.gpu.allocate = and_take  # type: ignore[method-assign]
        receipt = found.run(FLIGHTS)
        assert receipt["device"] == "cpu" and "out of memory" in receipt["fallback"]
        assert found.held() == 0
        found.gpu.allocate, found.gpu.memory_bytes = allocate, 1 << 30  # type: ignore[method-assign]
        assert found.run(FLIGHTS)["device"] == "cuda"


# ------------------------------------------------------------------------------- G3, G4, G23: fatal errors


@pytest.mark.parametrize("code", FATAL)
def test_G3_and_G23_after_a_fatal_error_nothing_runs_on_the_device_again(code: int) -> None:
    with machine() as found:
        receipt = found.run(FLIGHTS, Faults().at("kernel", 2, code))
        assert receipt["device"] == "cpu"
        assert "lost" in receipt["fallback"] and str(code) in receipt["fallback"]
        launched = len(found.gpu.launched)
        receipt = found.run(SUMS)
        assert receipt["device"] == "cpu" and str(code) in receipt["fallback"], "it says why, for good"
        assert len(found.gpu.launched) == launched, "nothing is tried again"
        found.session.execute("SET device = 'auto'")
        receipt = found.run(SUMS)
        assert receipt["device"] == "cpu" and receipt["reason"].startswith("no GPU: device cuda: lost")
        found.session.execute("SET device = 'gpu!'")
        with pytest.raises(DeviceError, match="lost"):
            found.run(SUMS)


@pytest.mark.parametrize("kind", ["launch", "copy", "wait", "kernel", "malloc"])
def test_G3_a_fatal_error_may_come_from_any_call(kind: str) -> None:
    with machine() as found:
        allocations(found, FLIGHTS)
        calls = found.gpu.counts[kind]
    for number in sorted({1, 2, calls // 2, calls}):
        with machine() as found:
            found.device.columns.drop_all()
            receipt = found.run(FLIGHTS, Faults().at(kind, number, 700))
            assert receipt["device"] == "cpu" and "lost" in receipt["fallback"], (kind, number)


@pytest.mark.parametrize("code", [1, 98, 209, 701])
def test_G3_an_error_that_leaves_the_device_whole_does_not_lose_it(code: int) -> None:
    with machine() as found:
        receipt = found.run(FLIGHTS, Faults().at("launch", 2, code))
        assert receipt["device"] == "cpu" and "cannot launch" in receipt["fallback"]
        assert found.run(FLIGHTS)["device"] == "cuda"
        assert found.held() == 0


def test_G4_a_fatal_error_that_comes_as_out_of_memory_is_told_by_its_code() -> None:
    faults = Faults(disguised=True)
    with machine() as found:
        found.device.columns.drop_all()
        receipt = found.run(FLIGHTS, faults.at("malloc", 7, 700))
        assert receipt["device"] == "cpu" and "lost" in receipt["fallback"]
        assert found.gpu.counts["malloc"] == 7, "it is not tried again"


def test_G4_a_kernel_that_failed_unseen_is_found_when_memory_is_short() -> None:
    at_once = []
    for number in range(1, 30, 4):
        with machine() as found:
            faults = Faults().at("kernel", 1, 719).at("malloc", number, OUT_OF_MEMORY, times=2)
            found.device.columns.drop_all()
            receipt = found.run(FLIGHTS, faults)
            assert receipt["device"] == "cpu" and "lost" in receipt["fallback"] and "719" in receipt["fallback"]
            if "cannot allocate" in receipt["fallback"]:
                at_once.append(found.gpu.counts["malloc"] == number)
    assert at_once and all(at_once), "memory is not asked for again"


# ------------------------------------------------------------------------------- G5: no end


@pytest.mark.parametrize("how", ["time-out", "cancel"])
def test_G5_a_kernel_that_never_ends_is_given_up_and_the_device_with_it(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpudb.devices.cuda.GRACE_SECONDS", 0.2)
    with machine() as found:
        if how == "time-out":
            found.session.execute("SET statement_timeout = 0.2")
        else:
            threading.Timer(0.2, found.session.cancel).start()
        began = time.monotonic()
        with pytest.raises(QueryCancelled):
            found.run(SUMS, Faults(hang=1))
        assert time.monotonic() - began < 5
        found.session.execute("RESET statement_timeout")
        receipt = found.run(SUMS)
        assert receipt["device"] == "cpu" and "a kernel does not end" in receipt["fallback"]


def test_G5_a_kernel_that_never_ends_is_given_up_while_columns_are_streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpudb.devices.cuda.GRACE_SECONDS", 0.2)
    with machine() as found:
        found.device.columns.limit, found.device.streamed_bytes = 0, 1
        found.device._buffers = [(buffer[:1000], event) for buffer, event in found.device._buffers]
        found.session.execute("SET statement_timeout = 0.2")
        with pytest.raises(QueryCancelled):
            found.run(SUMS, Faults(hang=2))
        found.session.execute("RESET statement_timeout")
        assert "a kernel does not end" in found.run(SUMS)["fallback"]


def test_G5_a_cancelled_statement_stops_at_a_tile_and_the_device_goes_on() -> None:
    with machine("gpu!", schedule="lazy") as found:
        run_kernel = found.gpu.run_kernel

        def cancel_first(name: str, argument: bytes, blocks: int) -> None:
            found.session.cancel()
            run_kernel(name, argument, blocks)

        found.gpu.run_kernel = cancel_first  # type: ignore[method-assign]
        with pytest.raises(QueryCancelled):
            found.run(SUMS)
        found.gpu.run_kernel = run_kernel  # type: ignore[method-assign]
        assert found.run(SUMS)["device"] == "cuda" and found.held() == 0


# ------------------------------------------------------------------------------- G6, G21, G22: no GPU, no compiler, fork


@pytest.mark.parametrize("code", [35, 100, 803])
def test_G6_without_a_driver_or_a_card_statements_run_on_the_cpu(code: int, caplog: pytest.LogCaptureFixture) -> None:
    with fake_gpu() as gpu, caplog.at_level(logging.WARNING, "gpudb"):
        gpu.sticky = code
        session = session_for("gpu")
        for _ in range(3):
            result = session.execute(SUMS)
            assert content(result.table()) == expected(SUMS)
            assert result.receipt["device"] == "cpu" and str(code) in result.receipt["fallback"]
        assert len(caplog.records) == 1
        assert str(code) in session.execute("SHOW device").table()["no_gpu"][0].as_py()


def test_G21_a_program_too_long_to_stage_runs_all_the_same() -> None:
    terms = " + ".join(f"(depdelay::BIGINT * {n} - arrdelay)" for n in range(1, 300))
    with machine("gpu!") as found:
        assert found.run(f"SELECT sum({terms}) FROM flights")["device"] == "cuda"


def test_G22_a_forked_process_is_told_to_be_spawned_and_its_parent_goes_on() -> None:
    with machine("gpu!") as found:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                found.session.execute(SUMS)
            except DeviceError as error:
                status = 0 if "spawn" in str(error) else 2
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        assert found.run(SUMS)["device"] == "cuda"


# ------------------------------------------------------------------------------- G8: tables that were guessed too small


@pytest.mark.parametrize("capacity", [1, 7])
def test_G8_a_group_table_that_starts_too_small_counts_nothing_twice(
    capacity: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "FIRST_CAPACITY", capacity)
    with machine("gpu!") as found:
        for sql in (
            "SELECT flightnum, count(*), sum(depdelay), min(carrier_name) FROM flights GROUP BY flightnum",
            "SELECT uniformf, count(*) FROM test GROUP BY uniformf",
        ):
            assert found.run(sql)["device"] == "cuda"
        assert found.held() == 0


# ------------------------------------------------------------------------------- G9: all hashes are equal


def same_hashes(source: str) -> str:
    """Kernels whose hash of every key is the same."""
    start = source.index("DEVICE uint64 hash_step")
    body = source.index("{", start)
    return source[: body + 1] + " return 0; " + source[body + 1 :]


@pytest.mark.slow
def test_G9_where_all_hashes_are_equal_groups_are_right_and_come_to_an_end() -> None:
    with machine("gpu!", change=same_hashes) as found:
        for sql in (
            "SELECT flightnum, depdelay, count(*), sum(arrdelay) FROM flights WHERE flightnum < 1000 GROUP BY ALL",
            "SELECT uniformf, count(*) FROM test WHERE id < 700 GROUP BY uniformf",
        ):
            began = time.process_time()
            assert found.run(sql)["device"] == "cuda"
            assert time.process_time() - began < 60


# ------------------------------------------------------------------------------- G12, G13, G24: the same bytes


def test_G12_a_sum_of_floats_is_the_same_whatever_streams_and_lanes_do() -> None:
    sql = "SELECT sum(normalf20), avg(uniformf), sum(normalf5 * 1e-9) FROM test"
    column = tables().storage.snapshot()["test"].to_arrow()["normalf20"].to_pylist()
    for schedule in ("lazy", "eager", 11, 12):
        with machine("gpu!", schedule=schedule) as found:
            for _ in range(5):
                found.run(sql)
                assert found.session.execute(sql).table()[0][0].as_py() == math.fsum(column)


def test_G13_no_byte_of_the_device_leaves_it_under_null_or_in_padding() -> None:
    sql = "SELECT arrdelay, depdelay + 1, arrdelay > 3, CASE WHEN depdelay > 30 THEN carrier_name END FROM flights"
    with machine("gpu!") as found:  # whose fresh memory is 0xA5
        found.run(sql)
        table = found.session.execute(sql).table()
    for column in table.columns[:2]:
        for chunk in column.chunks:
            validity, values = (buffer.to_pybytes() for buffer in chunk.buffers())
            width = chunk.type.bit_width // 8
            for row in range(len(chunk)):
                if not validity[row // 8] >> (row % 8) & 1:
                    assert values[row * width : (row + 1) * width] == bytes(width)
            if len(chunk) % 8:
                assert validity[len(chunk) // 8] >> (len(chunk) % 8) == 0


def test_G14_a_kernel_that_leaves_its_memory_ends_the_device() -> None:
    with fake_gpu() as gpu:
        device = CudaDevice()
        memory, initial = device.empty(512), device.zeros(64)
        fill = structs.FillLaunch(words=device.address(memory), initial=device.address(initial), groups=4096, stride=1)
        device.launch("gpudb_fill", fill, 1)
        with pytest.raises(DeviceLostError, match=str(ILLEGAL_ADDRESS)):
            device.to_host(memory, "u1", 8)
        assert gpu.sticky == ILLEGAL_ADDRESS
        with pytest.raises(DeviceLostError):
            device.empty(8)
        assert not gpu.counts["refused"], "a lost device is not asked"


@pytest.mark.slow
@pytest.mark.parametrize("path", Corpus().files, ids=lambda path: str(path.relative_to(SQL_FOLDER)))
def test_G24_the_sql_corpus_answers_as_the_reference_does(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, corpus_device: CudaDevice
) -> None:
    records = [record for record in parse(path) if "EXPLAIN ANALYZE" not in record.sql.upper()]  # which shows times
    device = corpus_device
    answers = {}
    for name in ("reference", "cuda"):
        folder = tmp_path / name[0]
        folder.mkdir()
        with monkeypatch.context() as patch:
            if name == "cuda":
                patch.setattr(Devices, "choose", lambda self, settings: (device, "a test", None))
            engine = GpudbEngine(str(folder), "reference")
            answers[name] = [shown(engine.run(record), folder) for record in records]
    for record, wanted, found in zip(records, answers["reference"], answers["cuda"], strict=True):
        assert found == wanted, record.sql
    assert device.lost is None


@pytest.fixture(scope="module")
def corpus_device() -> Iterator[CudaDevice]:
    with fake_gpu():
        yield CudaDevice(64)


@pytest.mark.parametrize("name", QUERIES)
def test_G24_the_gpu_gives_the_bytes_of_the_reference(name: str, workloads: Machine) -> None:
    assert workloads.run(QUERIES[name])["device"] == "cuda"


@pytest.fixture(scope="module")
def workloads() -> Iterator[Machine]:
    with machine("gpu!") as found:
        yield found


# ------------------------------------------------------------------------------- G16, G18: many statements


def test_G16_many_sessions_share_a_device_whose_memory_is_short() -> None:
    errors: list[BaseException] = []
    with fake_gpu(memory=3 << 20) as gpu:
        first = Machine(gpu, "gpu")

        def work(number: int) -> None:
            try:
                session = Session(first.session.database)
                session.execute("SET device = 'gpu'")
                for sql in sorted(QUERIES.values())[number::8]:
                    assert content(session.execute(sql).table()) == expected(sql)
            except BaseException as error:
                errors.append(error)

        for sql in QUERIES.values():
            expected(sql)
        threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
            assert not thread.is_alive(), "no thread waits for ever"
        assert not errors, errors[0]
        assert first.held() == 0


@pytest.mark.parametrize("statements", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_G18_after_many_statements_some_of_which_fail_no_memory_is_missing(statements: int) -> None:
    choice = random.Random(statements)
    failing = "SELECT CAST(depdelay * 1000 AS TINYINT) FROM flights"
    with machine() as found:
        for _ in range(statements):
            if choice.random() < 0.2:
                with pytest.raises(Error):
                    found.session.execute(failing).table()
                continue
            faults = Faults()
            if choice.random() < 0.5:
                faults.at("malloc", choice.randint(1, 40), OUT_OF_MEMORY, times=choice.choice((1, 2, 4000)))
            found.run(QUERIES[choice.choice(sorted(QUERIES))], faults)
        assert found.held() == 0


# ------------------------------------------------------------------------------- G19, G20: told, and no row twice


def test_G19_a_statement_that_leaves_the_gpu_says_so_everywhere(caplog: pytest.LogCaptureFixture) -> None:
    with machine() as found, caplog.at_level(logging.WARNING, "gpudb"):
        faults = Faults().at("malloc", 3, OUT_OF_MEMORY, times=4000)
        receipt = found.run(FLIGHTS, faults)
        assert receipt["device"] == "cpu" and receipt["fallback"].startswith("gpu: device cuda: out of memory")
        for number in (5, 9):
            found.run(FLIGHTS, Faults().at("malloc", number, OUT_OF_MEMORY, times=4000))
        assert ["out of memory" in record.getMessage() for record in caplog.records] == [True], "a warning, once"
        found.gpu.counts.clear()
        found.gpu.faults = Faults().at("malloc", 3, OUT_OF_MEMORY, times=4000)
        found.device.columns.drop_all()
        analyzed = found.session.execute(f"EXPLAIN ANALYZE {FLIGHTS}")
        assert analyzed.receipt["device"] == "cpu" and "out of memory" in analyzed.receipt["fallback"]


@pytest.mark.parametrize("kind", ["copy", "launch", "kernel", "wait"])
def test_G20_a_failure_after_rows_were_handed_out_repeats_and_loses_none(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpudb.vm.BATCH_ROWS", 1000)
    sql = "SELECT id, normali5, uniformf FROM test WHERE uniformi > -50"
    with machine() as found:
        for _ in range(2):  # the second time its columns are there
            assert found.run(sql)["device"] == "cuda"
        calls = found.gpu.counts[kind]
    for number in range(calls, max(0, calls - 12), -3):
        with machine() as found:
            found.run(sql)
            receipt = found.run(sql, Faults().at(kind, number, 700))
            assert receipt["device"] == "cpu" and "lost" in receipt["fallback"]


# ------------------------------------------------------------------------------- the page


def test_every_row_of_the_page_has_its_test_or_its_reason() -> None:
    page = (Path(kernels.__file__).parent.parent / "docs" / "faults_of_devices.md").read_text()
    rows = dict(re.findall(r"^\| (G\d+) \|.*\| (.*) \|$", page, re.MULTILINE))
    assert list(rows) == [f"G{number}" for number in range(1, 25)]
    named = {row for name in globals() if name.startswith("test_G") for row in re.findall(r"G\d+", name)}
    assert {row for row, held in rows.items() if held.startswith("tests")} == named
