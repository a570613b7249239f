"""A server for the tests of a file, and clients of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi as adbc
import pyarrow.flight as fl
import pytest

import gpudb.server
from gpudb.server import users
from gpudb.server.flight import Server


@pytest.fixture(autouse=True, scope="module")
def runtime_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Token files of tests stay out of the user's folder."""
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUDB_RUNTIME_DIR", str(folder))
        patch.setitem(users.SCRYPT, "n", 1 << 8)  # 128 times less work a password
        yield folder


@pytest.fixture(scope="module")
def server(runtime_folder: Path) -> Iterator[Server]:
    """A server with a database in memory."""
    with gpudb.server.serve(port=0) as server:
        yield server


@pytest.fixture
def connect(server: Server) -> Iterator[Callable[..., Any]]:
    """Opens an ADBC connection to the server."""
    opened = []

    def connection(autocommit: bool = True, cookies: bool = True) -> Any:
        options = {
            "adbc.flight.sql.authorization_header": f"Bearer {server.token}",
            "adbc.flight.sql.rpc.with_cookie_middleware": str(cookies).lower(),
        }
        opened.append(adbc.connect(server.uri, db_kwargs=options, autocommit=autocommit))
        return opened[-1]

    yield connection
    for one in opened:
        one.close()


@pytest.fixture
def sql(connect: Callable[..., Any]) -> Callable[..., Any]:
    """Runs a statement on a connection: the rows, or how many were changed."""
    cursor = connect().cursor()

    def run(text: str, parameters: Any = None) -> Any:
        cursor.execute(text, parameters)
        return cursor.fetchall() if cursor.description else cursor.rowcount

    return run


@pytest.fixture
def flight(server: Server) -> Iterator[fl.FlightClient]:
    """A plain Flight client; give its calls `options`."""
    with fl.connect(server.uri) as client:
        yield client


@pytest.fixture
def options(server: Server) -> fl.FlightCallOptions:
    """Call options with the server's token."""
    return fl.FlightCallOptions(headers=[(b"authorization", f"Bearer {server.token}".encode())])
