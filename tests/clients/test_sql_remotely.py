"""The SQL corpus at a server: every statement gives what it gives in this process, its error too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import gpudb
import gpudb.server
from tests.sql import runner

# Statements about what a server does not let clients do, or does by its own rules.
LEFT_OUT = ("files",)  # of the folders: a server reads files below its roots only
QUICK = ("parameters",)


@pytest.fixture(autouse=True, scope="module")
def runtime_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUDB_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))
        yield


def files() -> list[object]:
    found = []
    for path in runner.Corpus().files:
        folder = path.relative_to(runner.SQL_FOLDER).parts[0]
        if folder not in LEFT_OUT:
            marks = [] if path.stem in QUICK else [pytest.mark.slow]
            found.append(pytest.param(path, id=str(path.relative_to(runner.SQL_FOLDER)), marks=marks))
    return found


def is_left_out(sql: str) -> bool:
    """Times differ from run to run, and files are the server's."""
    return "${FOLDER}" in sql or "/missing.csv" in sql or "EXPLAIN ANALYZE" in sql.upper()


def outcome(connection: gpudb.Connection, record: runner.Record) -> tuple[object, ...]:
    """(columns, rows) of a record, or (class, text) of its error."""
    try:
        cursor = connection.execute(record.sql, record.parameters)
        if cursor.description is None:
            return ("changed", cursor.rowcount)
        table = cursor.fetch_arrow_table()
        return (
            table.schema.remove_metadata(),
            [column.combine_chunks().to_string(window=1 << 20) for column in table.columns],
        )
    except gpudb.Error as error:
        return (type(error), str(error))


@pytest.mark.parametrize("path", files())
def test_a_file_of_the_corpus_gives_the_same_at_a_server(path: Path) -> None:
    with gpudb.server.serve(port=0) as server, gpudb.connect(server.uri) as remote, gpudb.connect() as local:
        for record in runner.parse(path):
            if not is_left_out(record.sql):
                here, there = (outcome(one, record) for one in (local, remote))
                assert there == here, f"{path}:{record.line}\n{record.sql}"
