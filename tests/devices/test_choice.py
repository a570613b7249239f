"""SET device: which device runs a statement, and what its receipt says of it."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from gpudb.errors import DeviceError
from gpudb.kernels import nvrtc
from gpudb.session import Database, Session
from tests.devices.fake_cupy import FakeGpu, Faults, fake_gpu
from tests.devices.test_parity import tables


def fresh_session(device: str) -> Session:
    """A session over the tables."""
    shared = Database()
    shared.storage = tables().storage
    made = Session(shared)
    made.execute(f"SET device = '{device}'")
    return made


@pytest.fixture
def gpu() -> Iterator[FakeGpu]:
    with fake_gpu() as made:
        yield made


SUM = "SELECT sum(big) FROM flights"


def receipt(session: Session, sql: str = SUM) -> dict[str, Any]:
    """The receipt of a statement that was read to its end; its rows are right."""
    result = session.execute(sql)
    found = result.table()
    assert found.equals(fresh_session("reference").execute(sql).table())
    return result.receipt


@pytest.mark.parametrize("device", ["gpu", "gpu!"])
def test_the_receipt_names_the_gpu_that_ran_the_statement(gpu: FakeGpu, device: str) -> None:
    found = receipt(fresh_session(device))
    assert (found["device"], found["reason"], found["fallback"]) == ("cuda", f"SET device = '{device}'", None)
    assert "gpudb_pipeline" in gpu.launched


def test_auto_runs_little_work_on_the_cpu_and_says_so(gpu: FakeGpu) -> None:
    found = receipt(fresh_session("auto"))
    assert found["device"] == "cpu" and found["reason"].startswith("auto: about ") and found["fallback"] is None
    assert not gpu.launched, "no GPU is started for it"


def test_auto_takes_the_device_that_would_be_done_sooner(gpu: FakeGpu) -> None:
    session = fresh_session("auto")
    costs = session.database.devices.costs
    costs.worth_a_gpu_s = 0.0
    costs.cpu_byte_s = 1.0
    found = receipt(session)
    assert (found["device"], found["reason"]) == ("cpu", "auto: a GPU is being started"), "nobody waits for it"
    session.database.devices.wait_for_gpu()
    found = receipt(session)
    assert found["device"] == "cuda" and "s on cpu, " in found["reason"]
    costs.cpu_byte_s = 0.0
    found = receipt(session)
    assert found["device"] == "cpu" and "s on cpu, " in found["reason"]


def test_auto_reckons_with_what_the_gpu_has_already(gpu: FakeGpu) -> None:
    session = fresh_session("auto")
    costs = session.database.devices.costs
    costs.worth_a_gpu_s, costs.cpu_byte_s = 0.0, 1.0
    for _ in range(2):
        receipt(session)
        session.database.devices.wait_for_gpu()
    device = session.database.devices._made["cuda"]
    device.round_trip_s, device.read_s, device.copy_s = 0.0, 0.0, 1e9
    costs.cpu_byte_s = 1e-12
    assert receipt(session)["device"] == "cuda"
    device.columns.drop_all()
    assert receipt(session)["device"] == "cpu"


def test_auto_reckons_with_the_columns_of_joined_tables(gpu: FakeGpu) -> None:
    session = fresh_session("auto")
    session.database.devices.costs.worth_a_gpu_s = 0.0
    sql = "SELECT d.t, count(*), max(f.big) FROM flights AS f JOIN dozen AS d ON f.month = d.n GROUP BY d.t"
    for _ in range(2):
        assert receipt(session, sql)["reason"].startswith("auto: ")
        session.database.devices.wait_for_gpu()


def test_what_the_cpu_takes_is_learned_from_what_it_took() -> None:
    session = fresh_session("auto")
    costs = session.database.devices.costs
    first = costs.cpu_byte_s
    costs.learn(1 << 30, 100.0)
    assert costs.cpu_byte_s > first
    costs.learn(10, 1e9)
    assert costs.cpu_byte_s < 1.0, "a few bytes say nothing"


def test_without_a_gpu_gpu_falls_back_and_says_why(caplog: pytest.LogCaptureFixture) -> None:
    faults = Faults().at("wait", 1, 35, times=9)
    with fake_gpu(faults=faults) as gpu, caplog.at_level(logging.WARNING, "gpudb"):
        gpu.sticky = 35  # as without a driver: every call fails
        session = fresh_session("gpu")
        for _ in range(2):
            found = receipt(session)
            assert found["device"] == "cpu" and found["fallback"].startswith("gpu: device cuda: ")
        assert len(caplog.records) == 1, "one warning"
        shown = session.execute("SHOW device").table().to_pylist()
        assert shown == [{"device": "gpu", "no_gpu": found["fallback"].removeprefix("gpu: ")}]


def test_gpu_with_an_exclamation_mark_refuses_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    session = fresh_session("gpu!")
    with pytest.raises(DeviceError, match="no GPU can be used: device cuda: CuPy"):
        session.execute("SELECT 1")
    session.execute("SET device = 'auto'")
    assert session.execute("SELECT 1").receipt["device"] in ("cpu", "reference")


def test_a_machine_without_cupy_is_told_apart_from_one_with_a_broken_gpu() -> None:
    session = fresh_session("auto")
    devices = session.database.devices
    why = devices.why_no_gpu()
    if why is not None:
        assert why == "device cuda: CuPy is not installed"
        assert receipt(session)["reason"] == "no GPU"


def test_kernels_that_cannot_be_built_leave_the_cpu(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def no_compiler(source: str, arch: str) -> Any:
        asked.append(arch)
        raise DeviceError("device gpu: NVRTC cannot be loaded")

    monkeypatch.setattr(nvrtc, "compile_cubin", no_compiler)
    session = fresh_session("gpu")
    for _ in range(2):
        assert receipt(session)["fallback"] == "gpu: device gpu: NVRTC cannot be loaded"
    assert asked == ["sm_90"], "asked for this card, and once"


def test_a_gpu_does_not_work_in_a_forked_child(gpu: FakeGpu) -> None:
    session = fresh_session("gpu!")
    receipt(session)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            session.execute(SUM)
        except DeviceError as error:
            status = 0 if "forked" in str(error) else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    receipt(session)
