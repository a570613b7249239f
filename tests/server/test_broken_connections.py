"""Connections that are cut: row N20 of the fault list.  Rows are right, or there is an error; never fewer rows."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl

from gpudb.flight_sql import END_MARKER, end_marker, pack
from gpudb.server.flight import Server


class CuttingProxy:
    """Passes connections on to a port, and cuts each after so many bytes of its client and of the server.

    cut  (bytes from the client, bytes from the server) that pass
    """

    def __init__(self, port: int, cut: tuple[int, int]) -> None:
        self._target, self._cut = port, cut
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.uri = f"grpc://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                for source, sink, left in ((client, server, self._cut[0]), (server, client, self._cut[1])):
                    threading.Thread(target=self._pass, args=(source, sink, left), daemon=True).start()

    @staticmethod
    def _pass(source: socket.socket, sink: socket.socket, left: int) -> None:
        with contextlib.suppress(OSError):
            while left > 0 and (data := source.recv(min(left, 1 << 16))):
                sink.sendall(data)
                left -= len(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listening.close()


def through(server: Server, cut: tuple[int, int], work: Callable[[fl.FlightClient, Any], Any]) -> Any:
    """What `work` gives through a connection that is cut; None where it ends in an error."""
    proxy = CuttingProxy(server.port, cut)
    options = fl.FlightCallOptions(timeout=10, headers=[(b"authorization", f"Bearer {server.token}".encode())])
    try:
        with fl.connect(proxy.uri) as client:
            return work(client, options)
    except (pa.ArrowException, OSError):
        return None
    finally:
        proxy.close()


UNCUT = 1 << 40
SQL = b"SELECT i, i * 2 AS j FROM range(200000) AS r(i)"


def read(client: fl.FlightClient, options: Any) -> pa.Table:
    info = client.get_flight_info(fl.FlightDescriptor.for_command(SQL), options)
    return client.do_get(info.endpoints[0].ticket, options).read_all()


def test_N20_a_result_over_a_connection_that_is_cut_is_whole_or_an_error(server: Server, sample_seed: int) -> None:
    whole = through(server, (UNCUT, UNCUT), read)
    assert whole.num_rows == 200_000
    chance = random.Random(sample_seed)
    outcomes = []
    for _ in range(6):
        found = through(server, (UNCUT, chance.randrange(1, 4_000_000)), read)
        outcomes.append(found is None)
        assert found is None or found.equals(whole)
    outcomes.append(through(server, (UNCUT, 1_000_000), read) is None)
    assert outcomes[-1], "this one was cut"


def test_N20_rows_over_a_connection_that_is_cut_are_all_kept_or_none(
    server: Server, flight: fl.FlightClient, options: fl.FlightCallOptions, sample_seed: int
) -> None:
    batch = pa.record_batch({"a": pa.array(range(20_000), pa.int64())})
    chance = random.Random(sample_seed)
    kept = 0
    for turn in range(12):
        command = pack(
            "CommandStatementIngest",
            table=f"cut_{turn}",
            table_definition_options={"if_not_exist": 1, "if_exists": 1},
            options=[{"key": END_MARKER, "value": "true"}],
        )

        def write(client: fl.FlightClient, call: Any, command: bytes = command) -> bool:
            writer, answers = client.do_put(fl.FlightDescriptor.for_command(command), batch.schema, call)
            for _ in range(3):
                writer.write_batch(batch)
            writer.write_metadata(end_marker(60_000))
            writer.done_writing()
            answer = answers.read()
            writer.close()
            return answer is not None

        cut = (chance.randrange(1, 700_000), UNCUT) if turn % 2 else (UNCUT, chance.randrange(1, 400))
        acknowledged = through(server, cut if turn else (UNCUT, UNCUT), write)
        query = fl.FlightDescriptor.for_command(f"SELECT count(*) AS n FROM cut_{turn}".encode())
        try:
            info = flight.get_flight_info(query, options)
            rows = flight.do_get(info.endpoints[0].ticket, options).read_all().column(0)[0].as_py()
        except fl.FlightError:
            rows = 0
        assert rows in (0, 60_000)
        assert rows == 60_000 or not acknowledged
        kept += rows == 60_000
    assert kept >= 1, "the first one was not cut"
