"""A server in a process of its own, as `gpudb serve` starts it, and a plain Arrow Flight server to compare with."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.flight as fl


class Served:
    """`gpudb serve DATABASE` on a free port; usable in a `with`.

    uri, token  what clients need
    """

    def __init__(self, database: str, threads: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="gpudb-run-")
        environment = {**os.environ, "GPUDB_RUNTIME_DIR": self._folder.name}
        config = Path(self._folder.name) / "gpudb.toml"
        config.write_text("statement_timeout = 0\n")
        command = [sys.executable, "-m", "gpudb", "serve", database, "--port", "0", "--config", str(config)]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        os.sched_setaffinity(self._process.pid, sorted(os.sched_getaffinity(0))[:threads])
        assert self._process.stdout is not None, "it is piped"
        first = self._process.stdout.readline()
        if not first:
            raise RuntimeError("the server did not start")
        self.uri = first.split()[-1]
        path = self._process.stdout.readline().split()[-1]
        self.token = Path(path).read_text().strip()

    def status(self) -> dict[str, int]:
        """Resident bytes (now and at most) and threads of the process."""
        wanted = {"VmRSS": "rss_bytes", "VmHWM": "peak_rss_bytes", "Threads": "threads"}
        found = {}
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name in wanted:
                words = value.split()
                found[wanted[name]] = int(words[0]) * (1024 if words[-1] == "kB" else 1)
        return found

    def kill(self) -> None:
        """SIGKILL, as a crash would end it."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._folder.cleanup()


def call_options(token: str) -> fl.FlightCallOptions:
    """What a client shows with each call."""
    return fl.FlightCallOptions(headers=[(b"authorization", f"Bearer {token}".encode())])


class PlainServer(fl.FlightServerBase):
    """Sends a table that is there as Arrow, with nothing around it: what no server can be faster than."""

    def __init__(self, table: pa.Table) -> None:
        super().__init__("grpc://127.0.0.1:0")
        self._table = table

    def do_get(self, context: Any, ticket: fl.Ticket) -> fl.RecordBatchStream:
        return fl.RecordBatchStream(self._table)


def plain_server(connection: Any, path: str, processors: list[int]) -> None:
    """Serve the table of an Arrow IPC file until the other side hangs up; for a process of its own."""
    os.sched_setaffinity(0, processors)
    with pa.memory_map(path) as file:
        table = pa.ipc.open_file(file).read_all()
    server = PlainServer(pa.Table.from_batches(table.combine_chunks().to_batches(max_chunksize=1 << 16)))
    connection.send(server.port)
    with contextlib.suppress(EOFError):
        connection.recv()
    server.shutdown()
