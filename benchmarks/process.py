"""An engine in a process of its own: the side that measures, and the side that asks."""

from __future__ import annotations

import gc
import multiprocessing
import os
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import pyarrow as pa

from benchmarks import peers
from benchmarks.workload import Query, Workload

QUERY_LIMIT_S = 900.0  # an engine that takes longer is stopped; its other queries count as failed
LOAD_LIMIT_S = 3600.0


@dataclass(frozen=True)
class Request:
    """One run.  cold: forget plans first.  keep: path for the answer as an Arrow IPC stream, written off the clock."""

    query: Query
    repeat: int
    cold: bool = False
    limited: bool = True
    keep: str | None = None


@dataclass(frozen=True)
class Measured:
    """A run that worked."""

    seconds: float
    rows_out: int
    device: str
    bytes_read: int | None


@dataclass(frozen=True)
class Ready:
    """The engine holds its data and has answered the warm-up."""

    version: str
    load_s: float


@dataclass(frozen=True)
class Failed:
    """What went wrong, in a line.  missing: the engine's package is not installed."""

    reason: str
    missing: bool = False


class EngineProcess:
    """The asking side."""

    def __init__(self, name: str, workload: Workload, threads: int, device: str) -> None:
        """Starts the process; `ready` says how that went.  device: for our engine."""
        self.name = name
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, name, workload, threads, device), daemon=True)
        self._process.start()
        theirs.close()
        self.ready: Ready | Failed = self._receive(LOAD_LIMIT_S)

    def run(self, request: Request) -> Measured | Failed:
        """One run; a process that died or took too long answers Failed from then on."""
        try:
            self._connection.send(request)
        except OSError:
            return Failed("the process is gone")
        return self._receive(QUERY_LIMIT_S)

    def close(self) -> None:
        """Ends the process."""
        try:
            self._connection.send(None)
            self._process.join(timeout=10)
        except OSError:
            pass
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._connection.close()

    def _receive(self, limit_s: float) -> Any:
        """A Failed, or what was asked for."""
        try:
            if self._connection.poll(limit_s):
                return self._connection.recv()
        except (EOFError, OSError):
            self._process.join(timeout=10)
            return Failed(f"the process ended with status {self._process.exitcode}")
        self._process.kill()
        return Failed(f"no answer in {limit_s:.0f} s")


def hold_to_processors(threads: int) -> None:
    """Keeps this process to `threads` processors, so an engine without a thread setting has no more than the others."""
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, allowed[:threads])
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    pa.set_cpu_count(threads)


def _serve(connection: Connection, name: str, workload: Workload, threads: int, device: str) -> None:
    """The measuring side: loads, then answers requests until None or the pipe's end."""
    hold_to_processors(threads)
    try:
        engine = peers.start(name, threads, device)
        started = time.perf_counter()
        engine.load(workload)
        load_s = time.perf_counter() - started
        engine.prepare(workload.warmup, 0)()
    except Exception as error:  # the report is all that leaves this process
        connection.send(Failed(_one_line(error), missing=isinstance(error, ImportError)))
        return
    connection.send(Ready(engine.version, load_s))
    gc.disable()
    while True:
        try:
            request = connection.recv()
        except EOFError:
            return
        if request is None:
            return
        try:
            connection.send(_measure(engine, request))
        except Exception as error:
            connection.send(Failed(_one_line(error)))
        gc.collect()


def _measure(engine: peers.Peer, request: Request) -> Measured:
    call = engine.prepare(request.query, request.repeat, limited=request.limited)
    if request.cold:
        engine.forget_plans()
    started = time.perf_counter()
    table = call()
    seconds = time.perf_counter() - started
    if request.keep is not None:
        with pa.OSFile(request.keep, "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    return Measured(seconds, table.num_rows, engine.device, engine.bytes_read())


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}"
