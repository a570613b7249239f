"""What a statement holds of its intermediate results: no longer than something reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gpudb
from gpudb.devices.work import Run
from gpudb.session import Database, Session

ROWS = 60_000


@pytest.fixture(scope="module")
def session() -> Session:
    made = Session(Database())
    random = np.random.default_rng(5)
    table = pa.table(
        {
            "k": random.permutation(ROWS) * 999_983,  # far apart: no small numbers
            "g": random.integers(0, 20_000, ROWS) * 1_000_003,
            "x": random.random(ROWS) * 10.0 ** random.integers(-180, 180, ROWS),
        }
    )
    made.register("given", table)
    made.execute("CREATE TABLE t AS SELECT * FROM given")
    made.execute("SET threads = 2")
    return made


def run_of(session: Session, monkeypatch: pytest.MonkeyPatch, sql: str) -> tuple[Run, Any, pa.Table]:
    """(the run of a statement, its receipt, its rows)."""
    runs: list[Run] = []
    start = session.start_run

    def watched() -> Run:
        runs.append(start())
        return runs[-1]

    with monkeypatch.context() as patch:
        patch.setattr(session, "start_run", watched)
        result = session.execute(sql)
        rows = result.table()
    return runs[0], result.receipt, rows


STATEMENTS = {
    "group": "SELECT g, count(*) FROM t GROUP BY g",
    "sort": "SELECT k FROM t ORDER BY x, k",
    "join": "SELECT a.k, b.k FROM t a JOIN t b USING (g) WHERE a.x < b.x",
    "window": "SELECT sum(k) OVER (ORDER BY k ROWS 5 PRECEDING), max(k) OVER (PARTITION BY g) FROM t",
    "set": "SELECT g FROM t EXCEPT ALL SELECT DISTINCT g FROM t",
    "recursive": "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 20) SELECT * FROM r",
    "exact": "SELECT g, sum(x) FROM t GROUP BY g",  # whose floats three fixed-point lanes cannot hold
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_every_byte_is_given_back_once_the_rows_are_read(
    session: Session, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    run, receipt, rows = run_of(session, monkeypatch, STATEMENTS[name])
    assert receipt["peak_bytes"] >= (100_000 if rows.num_rows > 1000 else 1)
    del rows
    assert run.ledger.held == 0


def test_what_one_part_of_a_statement_held_is_there_for_the_next(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each SELECT needs a table of groups and counts its rows: none of it outlasts that."""
    one = "SELECT count(*), max(n) FROM (SELECT g, count(*) AS n FROM t WHERE k <> {} GROUP BY g)"
    _, alone, _ = run_of(session, monkeypatch, one.format(1))
    several = " UNION ALL ".join(one.format(n) for n in (1, 2, 3, 4, 5))
    _, together, _ = run_of(session, monkeypatch, several)
    assert alone["peak_bytes"] > 500_000
    assert together["peak_bytes"] < 1.2 * alone["peak_bytes"]


def test_a_program_that_starts_anew_holds_nothing_of_its_first_run(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five keys whose repetition no statistics tell: the join's program for that runs instead."""
    session.execute("CREATE TABLE j AS SELECT k, (k % 50) * (k % 50) * 9999 + k % 50 AS r FROM t")
    sql = "SELECT count(*), sum(a.k) FROM j a JOIN (SELECT k, r FROM j WHERE k % 7 = 0) b USING (r)"
    _, first, _ = run_of(session, monkeypatch, sql)
    _, again, _ = run_of(session, monkeypatch, sql)
    assert first["tiles_run"] > again["tiles_run"], "the first run tried the program for unique keys"
    assert first["peak_bytes"] <= 1.05 * again["peak_bytes"]


def test_a_result_that_is_read_late_holds_only_its_own_rows(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Run] = []
    start = session.start_run

    def noted() -> Run:
        runs.append(start())
        return runs[-1]

    monkeypatch.setattr(session, "start_run", noted)
    result = session.execute("SELECT k, x FROM t ORDER BY x, k")
    assert runs[0].ledger.held <= ROWS * 17 + 4096  # eight bytes each, and a mask
    assert result.table().num_rows == ROWS


def test_memory_limit_is_what_is_needed_at_a_time(session: Session) -> None:
    """All of them together would need twice the limit."""
    one = "SELECT count(*), max(n) FROM (SELECT g, count(*) AS n FROM t WHERE k <> {} GROUP BY g)"
    cursor = session.execute(one.format(1))
    cursor.table()
    needed = cursor.receipt["peak_bytes"]
    other = Session(session.database)
    other.execute("SET threads = 2")
    other.execute(f"SET memory_limit = '{int(needed * 1.3)}'")
    several = " UNION ALL ".join(one.format(n) for n in (1, 2, 3, 4, 5))
    assert other.execute(several).table().num_rows == 5
    other.execute(f"SET memory_limit = '{needed // 2}'")
    with pytest.raises(gpudb.OperationalError, match="more memory than memory_limit allows"):
        other.execute(several).table()
