"""Statements that add rows to one table at the same time all keep their rows."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import gpudb


@pytest.mark.parametrize("place", ["memory", "directory"])
def test_rows_of_concurrent_inserts_all_arrive(place: str, tmp_path: Path) -> None:
    first = gpudb.connect(":memory:" if place == "memory" else str(tmp_path / "db"))
    first.execute("CREATE TABLE t (writer INTEGER, i INTEGER)")
    connections = [first.cursor() for _ in range(4)]
    if place == "directory":
        connections = [gpudb.connect(str(tmp_path / "db")).cursor() for _ in range(4)]
    failures: list[BaseException] = []

    def write(number: int) -> None:
        try:
            for i in range(25):
                connections[number].execute("INSERT INTO t VALUES (?, ?)", [number, i])
        except gpudb.Error as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    rows = first.execute("SELECT writer, count(*), count(DISTINCT i) FROM t GROUP BY writer ORDER BY writer").fetchall()
    assert rows == [(number, 25, 25) for number in range(4)]


def test_a_table_that_was_made_anew_while_rows_were_computed_is_a_conflict(tmp_path: Path) -> None:
    first = gpudb.connect(str(tmp_path / "db"))
    other = gpudb.connect(str(tmp_path / "db"))
    first.execute("CREATE TABLE t (i INTEGER)")
    source = tmp_path / "rows.csv"
    source.write_text("i\n" + "1\n" * 10)
    session = first.session
    catalog_of_before = session.database.storage.snapshot()
    other.execute("CREATE OR REPLACE TABLE t (a VARCHAR, b INTEGER)")
    from gpudb.statement_catalog import StatementCatalog
    from gpudb.statements import append_rows

    with pytest.raises(gpudb.OperationalError, match="changed"):
        append_rows(session, "t", iter(()), StatementCatalog(session, catalog_of_before))
