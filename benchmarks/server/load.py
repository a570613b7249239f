"""Load from processes apart from the server: closed loops, which ask again when answered; open ones, which ask by the clock.

A closed loop hides stalls (nobody asks while all wait), an open one does not: its latency counts from when a request was due.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl

from benchmarks.server.processes import call_options
from gpudb.flight_sql import PRODUCER, SEQUENCE, pack

PROCESSES = 2
READ_ROWS = 1000


@dataclass
class Counted:
    """What one process saw.  latencies in seconds; errors by their class."""

    latencies: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    bytes: int = 0


@dataclass(frozen=True)
class Load:
    """What each process does.

    kind     read (all 1,000 rows of a table, by a condition that differs each time), or write (batches of 1,000 rows)
    clients  threads of each process, a connection each
    rate     requests a second of the whole process; None: as fast as they are answered
    """

    uri: str
    token: str
    kind: str
    clients: int
    seconds: float
    rate: float | None = None


def offered(load: Load, clients: int) -> dict[str, Any]:
    """Run a load of so many clients in PROCESSES processes; figures of all of them."""
    context = multiprocessing.get_context("spawn")
    share = max(1, clients // PROCESSES)
    started = []
    for number in range(PROCESSES if clients > 1 else 1):
        ours, theirs = context.Pipe()
        one = Load(load.uri, load.token, load.kind, share, load.seconds, load.rate and load.rate / PROCESSES)
        process = context.Process(target=_serve, args=(theirs, one, number), daemon=True)
        process.start()
        theirs.close()
        started.append((process, ours))
    for _, connection in started:
        connection.recv()  # connected and warm
    for _, connection in started:
        connection.send("go")
    whole = Counted()
    for process, connection in started:
        counted: Counted = connection.recv()
        whole.latencies += counted.latencies
        whole.errors += counted.errors
        whole.bytes += counted.bytes
        process.join()
    return figures(whole, load.seconds) | {"clients": share * len(started)}


def figures(counted: Counted, seconds: float) -> dict[str, Any]:
    """Rates and percentiles (milliseconds) of what was counted."""
    ordered = sorted(counted.latencies)

    def percentile(share: float) -> float | None:
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1e3, 3) if ordered else None

    return {
        "per_second": round(len(ordered) / seconds, 1),
        "p50_ms": percentile(0.5),
        "p99_ms": percentile(0.99),
        "max_ms": percentile(1.0),
        "errors": dict(counted.errors),
        "bytes_per_second": round(counted.bytes / seconds),
    }


def _serve(connection: Any, load: Load, number: int) -> None:
    counted, lock = Counted(), threading.Lock()
    ready, go = threading.Barrier(load.clients + 1), threading.Event()
    threads = [
        threading.Thread(target=_client, args=(load, number * load.clients + n, counted, lock, ready, go))
        for n in range(load.clients)
    ]
    for thread in threads:
        thread.start()
    ready.wait()
    connection.send("ready")
    connection.recv()
    go.set()
    for thread in threads:
        thread.join()
    connection.send(counted)


def _client(
    load: Load, number: int, counted: Counted, lock: threading.Lock, ready: threading.Barrier, go: threading.Event
) -> None:
    client, options = fl.connect(load.uri), call_options(load.token)
    ask = (_reader if load.kind == "read" else _writer)(client, options, load, number)
    with contextlib.suppress(fl.FlightError):  # it is counted when the clock runs
        ask(0)
    ready.wait()
    go.wait()
    latencies, errors, received = [], Counter(), 0
    began = time.perf_counter()
    end, turn = began + load.seconds, 0
    pause = None if load.rate is None else load.clients / load.rate
    while (now := time.perf_counter()) < end:
        due = now
        if pause is not None:
            due = began + (turn + number % load.clients / load.clients) * pause
            if due >= end:
                break
            time.sleep(max(0.0, due - now))
        turn += 1
        try:
            received += ask(turn)
            latencies.append(time.perf_counter() - due)
        except fl.FlightError as error:
            errors[type(error).__name__] += 1
    with lock:
        counted.latencies += latencies
        counted.errors += errors
        counted.bytes += received


def _reader(client: fl.FlightClient, options: Any, load: Load, number: int) -> Callable[[int], int]:
    def ask(turn: int) -> int:
        sql = f"SELECT k, a, b FROM points WHERE k >= {-number * 1_000_000 - turn}"
        info = client.get_flight_info(
            fl.FlightDescriptor.for_command(pack("CommandStatementQuery", query=sql)), options
        )
        table = client.do_get(info.endpoints[0].ticket, options).read_all()
        assert table.num_rows == READ_ROWS, "all rows pass"
        return int(table.nbytes)

    return ask


def _writer(client: fl.FlightClient, options: Any, load: Load, number: int) -> Callable[[int], int]:
    def ask(turn: int) -> int:
        first = (number * 10_000_000 + turn) * READ_ROWS
        batch = pa.record_batch({"k": pa.array(range(first, first + READ_ROWS), pa.int64()), "a": [number] * READ_ROWS})
        command = pack(
            "CommandStatementIngest",
            table="sent",
            table_definition_options={"if_not_exist": 1, "if_exists": 2},
            options=[{"key": PRODUCER, "value": f"writer {number}"}, {"key": SEQUENCE, "value": str(turn)}],
        )
        writer, answers = client.do_put(fl.FlightDescriptor.for_command(command), batch.schema, options)
        writer.write_batch(batch)
        writer.done_writing()
        answer = answers.read()  # which comes once it is on disk
        writer.close()  # raises the server's error
        assert answer is not None, "a call without an error has an answer"
        return int(batch.nbytes)

    return ask
