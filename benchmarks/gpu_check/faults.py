"""Six faults that a GPU can have, each in a process of its own: what is lost, what goes on, and how soon a new one works.

cap         device memory is capped below what the queries read: the same answers, batch by batch or on the CPU
bounds      a kernel writes where it may not: the device is lost and says so, the statement goes on on the CPU
spin        a kernel does not end: the statement times out, the device is lost
kill        the process is killed in the midst of a query: another one works at once, with all memory free
poison      every allocation is full of 0xCD: not one byte of it is in an answer
neighbour   another process holds 90 % of the memory: the same answers

On the fake the driver's part of each is scripted.  `python -m benchmarks.gpu_check.faults NAME KIND` is one such process.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.gpu_check import tables
from benchmarks.gpu_check.budget import Budget
from benchmarks.gpu_check.made_tables import ON_THE_HOST, make
from benchmarks.report import Line, Report
from gpudb.devices import Devices
from gpudb.errors import DeviceError, QueryCancelled
from gpudb.session import Database, Session
from gpudb.storage.table import TableVersion
from tests.devices import queries
from tests.devices.variants import assert_canonical, stored

ROOT = Path(__file__).parents[2]
CHILD_LIMIT_S = 60.0
RECOVERY_S = 30.0  # within which a new process must answer
TIMEOUT_S = 1.0  # of the statement whose kernel does not end
PATIENCE_S = 8.0  # after which it must have come back
SIZES = {
    "cuda": (12_000_000, 64 << 20),
    "fake": (20_000, 400_000),
}  # rows, and the bytes that cap leaves: less than they take
SPIN = """
extern "C" __global__ void spin(volatile int* word) { while (*word == 0) { } }
"""

SQL = (
    "SELECT count(*) FROM narrow WHERE key < 15000",
    "SELECT tiny, count(*), sum(amount), avg(price) FROM narrow GROUP BY tiny",
    "SELECT sum(price), min(large), max(large) FROM narrow WHERE tiny > 7",
    "SELECT key, sum(large), avg(price) FROM narrow GROUP BY key ORDER BY key LIMIT 100",
    "SELECT large, price FROM narrow WHERE key BETWEEN 100 AND 200",
)


class WithGpu(Devices):
    """The devices of a process whose GPU is this one."""

    def __init__(self, gpu: Any) -> None:
        super().__init__()
        self.gpu = gpu

    def _make(self, name: str, settings: Mapping[str, Any]) -> Any:  # type: ignore[override]  # theirs is static
        return self.gpu if name == "cuda" else Devices._make(name, settings)


# ------------------------------------------------------------------------------------------------------- the parent


def check(kind: str, budget: Budget, report: Report) -> bool:
    """All six, one after the other; a line each.  Only the device cuda has these faults."""
    good = True
    for name, run in FAULTS.items():
        if kind not in SIZES:
            line: Line = {"left_out": f"{kind} has no such fault"}
        elif budget.left < 5:
            line = {"left_out": "no time left"}
        else:
            line = run(name, kind, min(CHILD_LIMIT_S, budget.left))
            good &= line["good"]
        report.add({"benchmark": "gpu_check", "part": "faults", "fault": name, **line})
        report.note(f"fault {name}: " + "  ".join(f"{key} {value}" for key, value in line.items())[:220])
    return good


def _child(name: str, kind: str, limit_s: float) -> Line:
    """What one process says of its fault; it is killed past its time."""
    began = time.monotonic()
    process = _start(name, kind)
    try:
        output, problems = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        output, problems = process.communicate()
        return {"good": False, "error": f"no end after {limit_s:.0f} s", "output": output[-300:], "seconds": limit_s}
    seconds = round(time.monotonic() - began, 2)
    lines = [line for line in output.splitlines() if line.startswith("{")]
    if not lines:
        return {"good": False, "error": f"status {process.returncode}: {problems.strip()[-400:]}", "seconds": seconds}
    return {**json.loads(lines[-1]), "seconds": seconds}


def _start(name: str, kind: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.gpu_check.faults", name, kind]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def _first_line(process: subprocess.Popen[str], limit_s: float) -> str:
    """What a process says first; it is killed where that takes too long, and has said nothing then."""
    assert process.stdout is not None
    timer = threading.Timer(limit_s, process.kill)
    timer.start()
    try:
        return process.stdout.readline()
    finally:
        timer.cancel()


def _alone(name: str, kind: str, limit_s: float) -> Line:
    return _child(name, kind, limit_s)


def _and_after(name: str, kind: str, limit_s: float) -> Line:
    """The fault, then a process that must find the GPU as if nothing had been."""
    line = _child(name, kind, limit_s)
    after = _child("after", kind, RECOVERY_S)
    return {**line, "good": line["good"] and after["good"], "after_s": after["seconds"], "after": after.get("error")}


def _killed(name: str, kind: str, limit_s: float) -> Line:
    process = _start("busy", kind)
    began = time.monotonic()
    said = _first_line(process, limit_s)
    time.sleep(0.2 + random.random() * 0.2)  # it asks one query after the other
    process.send_signal(signal.SIGKILL)
    process.communicate()
    if not said.startswith("{"):
        return {"good": False, "error": "the process to kill did not start", "seconds": time.monotonic() - began}
    before = json.loads(said)
    after = _child("after", kind, RECOVERY_S)
    lost = before["free_bytes"] - after.get("free_bytes", 0)
    good = after["good"] and lost < 64 << 20
    return {"good": good, "after_s": after["seconds"], "after": after.get("error"), "bytes_not_freed": lost}


def _beside(name: str, kind: str, limit_s: float) -> Line:
    """Another process takes the memory, this one asks its queries, then the other gives it back."""
    hog = _start("hog", kind)
    assert hog.stdin is not None
    try:
        said = _first_line(hog, limit_s)
        if not said.startswith("{"):
            return {"good": False, "error": "the neighbour could not take the memory"}
        return {**_child(name, kind, limit_s), **json.loads(said)}
    finally:
        hog.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            hog.wait(10)
        hog.kill()
        hog.wait()


FAULTS: dict[str, Callable[[str, str, float], Line]] = {
    "cap": _alone,
    "poison": _alone,
    "neighbour": _beside,
    "kill": _killed,
    "bounds": _and_after,
    "spin": _and_after,
}


# ------------------------------------------------------------------------------------------------------- the children


@contextlib.contextmanager
def _gpu(kind: str, **options: Any) -> Iterator[tuple[Any, Any]]:
    """(the device cuda, the fake behind it or None)."""
    from gpudb.devices.cuda import CudaDevice

    if kind == "cuda":
        yield CudaDevice(**options), None
        return
    from tests.devices.fake_cupy import LANES, fake_gpu

    with fake_gpu() as fake:
        yield CudaDevice(lanes=LANES, **options), fake


def _table(kind: str) -> TableVersion:
    return make(tables.narrow(), SIZES[kind][0], ON_THE_HOST, 1 << 20 if kind == "cuda" else 4096)


def _session(device: Any, *versions: TableVersion, wanted: str = "gpu") -> Session:
    """A session as users have it, whose GPU is this device."""
    database = Database()
    database.storage.commit({version.name: version for version in versions}, database.storage.version)
    database.devices = WithGpu(device)
    session = Session(database)
    session.execute(f"SET device = '{wanted}'")
    return session


def _answers(session: Session, sql: Sequence[str]) -> tuple[list[Any], dict[str, int]]:
    """The bytes of every answer, and how many came from which device."""
    found, devices = [], {}
    for text in sql:
        result = session.execute(text)
        table: pa.Table = result.table()
        assert_canonical(table)
        found.append(queries.content(table))
        device = result.receipt["device"]
        devices[device] = devices.get(device, 0) + 1
        assert device == "cuda" or result.receipt["fallback"], "a fallback without a reason"
    return found, devices


def _same(device: Any, *versions: TableVersion, sql: Sequence[str] = SQL) -> Line:
    """Do all queries give the CPU's bytes?"""
    found, devices = _answers(_session(device, *versions), sql)
    expected, _ = _answers(_on_the_cpu(*versions), sql)
    differing = [text for text, one, other in zip(sql, found, expected, strict=True) if one != other]
    return {"good": not differing, "queries": len(sql), "differing": differing[:3], "ran_on": devices}


def _on_the_cpu(*versions: TableVersion) -> Session:
    from gpudb.devices.cpu import CpuDevice

    class OnlyCpu(Devices):
        def choose(self, settings: Mapping[str, Any]) -> tuple[Any, str, str | None]:
            return CpuDevice(), "gpu_check", "gpu_check asks the CPU"

    database = Database()
    database.storage.commit({version.name: version for version in versions}, database.storage.version)
    database.devices = OnlyCpu()
    return Session(database)


def _cap(kind: str) -> Line:
    limit = SIZES[kind][1]
    with _gpu(kind, memory_limit=limit) as (device, _):
        line = _same(device, version := _table(kind))
        assert version.nbytes > limit // 4, "the table is larger than what may stay of it"
        left = device.used_bytes()
        return {
            **line,
            "good": line["good"] and left == 0,
            "limit": limit,
            "table_bytes": version.nbytes,
            "bytes_left": left,
        }


def _poison(kind: str) -> Line:
    with _gpu(kind) as (device, _):
        _poisoned(device)
        versions = [stored(queries.flights(), 4096, [], "flights"), stored(queries.dozen(), 4096, [], "dozen")]
        versions.append(stored(queries.flights().slice(0, 0), 4096, [], "empty"))
        return _same(device, *versions, sql=queries.QUERIES if kind == "cuda" else queries.QUERIES[::9])


def _poisoned(device: Any) -> None:
    """Every allocation of the device is full of 0xCD from now on."""
    empty = device.empty

    def full(size: int) -> Any:
        memory = empty(size)
        memory.memset_async(0xCD, size, device._compute)
        return memory

    device.empty = full


def _neighbour(kind: str) -> Line:
    with _gpu(kind) as (device, _):
        return _same(device, _table(kind))


def _hog(kind: str) -> Line:
    """Holds 90 % of the memory until its standard input ends; the fake has no neighbours, and says so."""
    held = 0
    if kind == "cuda":
        import cupy

        free, _ = cupy.cuda.runtime.memGetInfo()
        held = int(free * 0.9)
        memory = cupy.cuda.runtime.malloc(held)
    print(json.dumps({"held_bytes": held}), flush=True)
    sys.stdin.read()
    if held:
        cupy.cuda.runtime.free(memory)
    return {"good": True}


def _busy(kind: str) -> Line:
    """Asks one query after the other until it is killed."""
    with _gpu(kind) as (device, _):
        free = _free_bytes(kind)
        session = _session(device, _table(kind))
        session.execute(SQL[0]).table()
        print(json.dumps({"good": True, "free_bytes": free}), flush=True)
        while True:
            for sql in SQL:
                session.execute(sql).table()


def _free_bytes(kind: str) -> int:
    if kind != "cuda":
        return 0
    import cupy

    return int(cupy.cuda.runtime.memGetInfo()[0])


def _after(kind: str) -> Line:
    with _gpu(kind) as (device, _):
        free = _free_bytes(kind)
        line = _same(device, _table(kind))
        good = line["good"] and set(line["ran_on"]) == {"cuda"}
        return {**line, "good": good, "free_bytes": free}


def _bounds(kind: str) -> Line:
    from gpudb.devices import launch as structs

    with _gpu(kind) as (device, fake):
        version = _table(kind)
        session = _session(device, version)
        session.execute(SQL[0]).table()
        if fake is None:
            word = device.zeros(64)
            nowhere = structs.FillLaunch(words=0x10, initial=device.address(word), groups=1024, stride=1)
            device.launch("gpudb_fill", nowhere, 1)
        else:
            fake.faults.at("kernel", fake.counts["kernel"] + 1, 700)
        return _lost(device, session, version)


def _lost(device: Any, session: Session, version: TableVersion) -> Line:
    """After a fatal error: the device says that it is lost, statements go on on the CPU, and gpu! refuses."""
    began = time.monotonic()
    found, devices = _answers(session, SQL)
    seconds = time.monotonic() - began
    expected, _ = _answers(_on_the_cpu(version), SQL)
    session.execute("SET device = 'gpu!'")
    try:
        session.execute(SQL[0]).table()
        refused = "not refused"
    except DeviceError as error:
        refused = error.message
    good = found == expected and "cuda" not in devices and device.lost is not None and "lost" in refused
    return {"good": good, "ran_on": devices, "lost": device.lost, "refused": refused, "answers_s": round(seconds, 3)}


def _spin(kind: str) -> Line:
    with _gpu(kind) as (device, fake):
        version = _table(kind)
        session = _session(device, version)
        session.execute(SQL[0]).table()
        if fake is None:
            _spins(device)
        else:
            fake.faults.hang = fake.counts["kernel"] + 1
        session.execute(f"SET statement_timeout = {TIMEOUT_S}")
        began = time.monotonic()
        try:
            session.execute(SQL[0]).table()
            ended = "answered"
        except QueryCancelled as error:
            ended = error.message
        except DeviceError as error:
            ended = error.message
        seconds = time.monotonic() - began
        session.execute("SET statement_timeout = 0")
        line = _lost(device, session, version)
        good = line["good"] and seconds < PATIENCE_S and ended != "answered"
        return {**line, "good": good, "ended": ended, "ended_s": round(seconds, 3)}


def _spins(device: Any) -> None:
    """The next pipeline is a kernel that does not end."""
    import numpy as np

    from gpudb.kernels.nvrtc import compile_cubin

    module = device._cupy.Module()
    module.load(compile_cubin(SPIN, device.architecture).image)
    function, word, launch = module.get_function("spin"), device.zeros(64), device.launch
    address = np.uint64(device.address(word))

    def spin(kernel: str, arguments: Any, blocks: int) -> None:
        if kernel == "gpudb_pipeline":
            function((1,), (1,), (address,), 0, device._compute)
        else:
            launch(kernel, arguments, blocks)

    device.launch = spin


CHILDREN: dict[str, Callable[[str], Line]] = {
    "cap": _cap,
    "poison": _poison,
    "neighbour": _neighbour,
    "hog": _hog,
    "busy": _busy,
    "after": _after,
    "bounds": _bounds,
    "spin": _spin,
}


def main() -> None:
    """One process: prints its line and ends at once, whatever the device does."""
    name, kind = sys.argv[1:3]
    try:
        line = CHILDREN[name](kind)
    except Exception as error:  # the line is all that leaves this process
        line = {"good": False, "error": " ".join(f"{type(error).__name__}: {error}".split())[:500]}
    print(json.dumps(line), flush=True)
    os._exit(0)  # a kernel that does not end would hold up the driver's own way out


if __name__ == "__main__":
    main()
