"""The tests of the DB-API once more, at a server: `gpudb.connect()` is answered by one for each database."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import gpudb
import gpudb.server
from tests.dbapi import test_connection, test_cursor, test_dbapi20, test_threads

# What only a database in this process has.
LOCAL = {
    "test_connect_without_arguments_opens_a_database_of_its_own_in_memory",
    "test_a_directory_can_be_reopened_after_its_last_connection_closed",
    "test_a_directory_open_for_writing_cannot_be_opened_read_only_by_the_same_process",
    "test_a_forgotten_connection_releases_its_database",
    "test_a_wrong_name_in_config_is_an_error_and_releases_the_database",
    "test_an_address_that_is_no_servers_is_refused_by_name",
    "test_a_registered_table_is_read_under_its_name_until_unregistered",
    "test_a_registered_relation_hides_a_table_of_its_name_as_in_duckdb",
    "test_pandas_and_polars_frames_can_be_registered",
    "test_pep_249_names_are_on_the_module",
    "test_import_gpudb_loads_no_more_than_it_needs",
    "test_uuids_are_parameters_arrow_extension_values_and_python_objects",
    "test_unsigned_64_bit_columns_are_ubigint_from_arrow_as_from_files",
}


class Servers:
    """A server for each database that a test opens, and connections to it."""

    def __init__(self, connect: Callable[..., gpudb.Connection]) -> None:
        self._connect = connect
        self._servers: dict[str, gpudb.server.Server] = {}

    def connect(self, path: str | os.PathLike[str] = ":memory:", **options: object) -> gpudb.Connection:
        key = os.fspath(path)
        if "://" in key:
            return self._connect(key, **options)
        if key == ":memory:":
            key += str(len(self._servers))
        if key not in self._servers:
            self._servers[key] = gpudb.server.serve(os.fspath(path), port=0)
        return self._connect(self._servers[key].uri, **options)

    def close(self) -> None:
        for server in self._servers.values():
            server.close()


@pytest.fixture(autouse=True)
def servers(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    monkeypatch.setenv("GPUDB_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))
    found = Servers(gpudb.connect)
    monkeypatch.setattr(gpudb, "connect", found.connect)
    yield found
    found.close()


@pytest.fixture
def connection(request: pytest.FixtureRequest) -> Iterator[gpudb.Connection]:
    """A connection; for the tests of threads with the table that they read."""
    with gpudb.connect() as connection:
        if request.function.__name__ in vars(test_threads):
            rows = test_threads.ROWS
            connection.execute(f"CREATE TABLE t AS SELECT range AS a, range % 7 AS g FROM range({rows})")
        yield connection


@pytest.fixture
def numbers(connection: gpudb.Connection) -> gpudb.Cursor:
    """A cursor whose connection has the table that test_cursor's fixture of this name makes."""
    return connection.execute(
        "CREATE TABLE numbers AS SELECT range AS a, CASE WHEN range % 10 > 0 THEN 'text ' || range END AS b FROM range(10000)"
    )


def _again(test: Callable[..., None], slow: bool) -> Callable[..., None]:
    """The same test under a mark that the first one does not get."""

    @functools.wraps(test)
    def run(*arguments: Any, **given: Any) -> None:
        test(*arguments, **given)

    return pytest.mark.slow(run) if slow else run


for _module in (test_connection, test_cursor, test_threads):
    for _name, _test in vars(_module).items():
        if _name.startswith("test_") and _name not in LOCAL:
            globals()[_name] = _again(_test, slow=_module is not test_cursor)


@pytest.mark.slow
class TestSuiteAtAServer(test_dbapi20.TestInMemory):
    """PEP 249's public suite; its connections are to one database."""

    @pytest.fixture(autouse=True)
    def _one_server(self, servers: Servers, tmp_path) -> Iterator[None]:
        self.connect_args = (os.fspath(tmp_path / "database"),)
        yield
