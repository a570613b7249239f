"""Transactions on a directory whose process is killed, whose disk fails or whose power goes: all of one, or nothing."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import gpudb
from gpudb.errors import StorageError
from gpudb.session import Database, Session
from gpudb.storage import database as storage
from gpudb.storage.file_system import FileSystem
from tests.storage.faulty import Dying, Failing, Killed, PowerCut, Recording

ROOT = Path(__file__).parents[2]
STAGED = 70_000  # rows of one INSERT that go to a file before COMMIT
MADE = (
    "CREATE TABLE log (step INTEGER, word VARCHAR)",
    "CREATE TABLE steps (step INTEGER)",
    "CREATE TABLE last AS SELECT -1 AS step",
)


def transaction(step: int) -> list[str]:
    """Statements that belong together: rows in two tables, one changed in a third, a table and a view made anew."""
    return [
        "BEGIN",
        f"INSERT INTO log SELECT {step}, 'word ' || (range % 1000) || ' of {step}' FROM range({STAGED})",
        f"INSERT INTO steps VALUES ({step})",
        f"UPDATE last SET step = {step}",
        f"CREATE OR REPLACE TABLE made AS SELECT {step} AS step",
        f"CREATE OR REPLACE VIEW seen AS SELECT {step} AS step",
        "COMMIT",
    ]


def opened(path: Path, files: FileSystem) -> Session:
    """A session on a directory through other file calls."""
    database = Database()
    database.storage = storage.Database(path, file_system=files)
    return Session(database)


def value(connection: gpudb.Connection, sql: str) -> object:
    return connection.execute(sql).fetchone()[0]


def steps_found(path: Path) -> int:
    """Whole transactions in the database; AssertionError where a part of one is there, or a file too many."""
    with gpudb.connect(path) as connection:
        steps = value(connection, "SELECT count(*) FROM steps")
        assert value(connection, "SELECT count(*) FROM log") == steps * STAGED
        assert value(connection, "SELECT count(DISTINCT step) FROM log") == steps
        assert value(connection, "SELECT count(DISTINCT word) FROM log") == steps * 1000
        assert value(connection, "SELECT step FROM last") == steps - 1
        if steps:
            assert value(connection, "SELECT step FROM made") == value(connection, "SELECT step FROM seen") == steps - 1
        else:
            assert connection.session.tables() == ["last", "log", "steps"]
        directory = connection.session.database.storage._directory
        assert directory is not None
        # Row groups and pieces of dictionaries, of which a dictionary has as many as its size has bits.
        assert set(os.listdir(path / "data")) == set(directory._manifest.files())
    return steps


def test_a_process_killed_at_any_call_of_a_transaction_leaves_all_of_it_or_nothing(tmp_path: Path) -> None:
    files = Dying()
    session = opened(tmp_path / "before", files)
    for statement in (*MADE, *transaction(0)):
        session.execute(statement)
    session.database.close()
    found, calls, acknowledged = [], 0, False
    while not acknowledged:
        path = tmp_path / "db"
        shutil.copytree(tmp_path / "before", path)
        files = Dying()
        session = opened(path, files)
        files.left = calls
        try:
            for statement in transaction(1):
                session.execute(statement)
            acknowledged = True
        except Killed:
            pass
        finally:
            session.database.storage.close()  # the lock of a process that is gone
        found.append(steps_found(path))
        assert found[-1] == 2 or not acknowledged
        shutil.rmtree(path)
        calls += 1
    assert found == sorted(found) and found.count(1) > 8, "until its manifest has its name nothing of it is there"


@pytest.mark.parametrize("method", ["write", "link", "sync", "sync_directory"])
@pytest.mark.parametrize("at", ["INSERT INTO log", "COMMIT"])
def test_a_disk_that_fails_undoes_the_transaction(tmp_path: Path, method: str, at: str) -> None:
    files = Failing()
    session = opened(tmp_path / "db", files)
    for statement in (*MADE, *transaction(0)):
        session.execute(statement)
    failed = False
    for statement in transaction(1):
        if statement.startswith(at):
            files.fail(method, errno.ENOSPC)
        try:
            session.execute(statement)
        except StorageError:
            failed = True
            files.heal()
            break
    assert failed or (method, at) == ("sync_directory", "INSERT INTO log")
    if statement != "COMMIT":
        session.execute("ROLLBACK")
    assert session.transaction is None
    counted = session.execute(
        "SELECT (SELECT count(*) FROM log), (SELECT max(step) FROM steps), step FROM last"
    ).table()
    assert [column.to_pylist() for column in counted.columns] == [[STAGED], [0], [0]]
    session.close()
    session.database.close()
    assert steps_found(tmp_path / "db") == 1


@pytest.mark.parametrize("many", [True, False], ids=["transaction", "one statement"])
@pytest.mark.parametrize("method", ["link", "sync_directory"])
def test_a_commit_of_unknown_outcome_leaves_a_database_that_opens(tmp_path: Path, method: str, many: bool) -> None:
    """The manifest may have its name: the rows it speaks of must stay, whatever this process believes."""

    class Late(Failing):
        def link(self, source: str, target: str) -> None:
            if self.method == "link" and self.path in target:
                FileSystem.link(self, source, target)  # done, and yet an error
            super().link(source, target)

    files = Late()
    session = opened(tmp_path / "db", files)
    for statement in MADE:
        session.execute(statement)
    statements = transaction(0)
    if not many:
        statements = [f"CREATE TABLE big AS SELECT range AS i, 'w' || (range % 50) AS w FROM range({STAGED})"]
    files.fail(method, errno.EIO, "manifest")
    with pytest.raises(StorageError):
        for statement in statements:
            session.execute(statement)
    files.heal()
    with pytest.raises(StorageError, match="until it is opened again"):
        session.execute("INSERT INTO steps VALUES (99)")
    session.close()
    session.database.close()
    if many:
        assert steps_found(tmp_path / "db") == 1
    else:
        with gpudb.connect(tmp_path / "db") as connection:
            assert value(connection, "SELECT count(DISTINCT w) FROM big WHERE i >= 0") == 50


def test_a_power_cut_keeps_whole_transactions_and_every_acknowledged_one(tmp_path: Path) -> None:
    (tmp_path / "live").mkdir()
    recording = Recording(str(tmp_path / "live"))
    session = opened(tmp_path / "live" / "db", recording)
    for statement in MADE:
        session.execute(statement)
    created = len(recording.operations)
    acknowledged = []
    for step in range(3):
        for statement in transaction(step):
            session.execute(statement)
        acknowledged.append(len(recording.operations))
        for statement in transaction(step + 1)[:-1]:
            session.execute(statement)
        session.execute("ROLLBACK")
    session.database.close()
    chance = random.Random(11)
    for number in range(25):
        count = chance.randrange(created, len(recording.operations) + 1)
        kept = sum(1 for at in acknowledged if at <= count)
        disk = tmp_path / f"disk{number}"
        PowerCut(recording.operations, count, chance).materialise(str(disk))
        assert kept <= steps_found(disk / "db") <= kept + 1
        shutil.rmtree(disk)


WRITER = """
import sys, gpudb
from tests.faults.test_transaction_faults import transaction
connection = gpudb.connect(sys.argv[1])
step = connection.execute("SELECT count(*) FROM steps").fetchone()[0]
while True:
    for statement in transaction(step):
        connection.execute(statement)
    step += 1
    print(step, flush=True)
"""


def test_a_killed_writer_of_transactions_loses_no_acknowledged_one(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with gpudb.connect(path) as connection:
        for statement in MADE:
            connection.execute(statement)
    chance, steps = random.Random(5), 0
    for lines in (1, 3, 2):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        for _ in range(lines):
            steps = int(writer.stdout.readline())
        try:
            writer.wait(chance.uniform(0.0, 0.3))
        except subprocess.TimeoutExpired:
            writer.send_signal(signal.SIGKILL)
        steps = max([steps, *(int(line) for line in writer.stdout)])
        assert writer.wait() == -signal.SIGKILL
        writer.stdout.close()
        found = steps_found(path)
        assert steps <= found <= steps + 1
