"""Kills a writer again and again, and lets the next one check what it finds: python -m tests.storage.kill_loop DIR KILLS

Each writer is a fork of this process (which keeps to one thread), so that hundreds of kills a minute fit.
It opens the database, checks that every acknowledged commit is there, at most one more, and every checksum good, then goes
on committing until it is killed.  Prints one JSON line; exit status 1 after a violation.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time

import pyarrow as pa

from gpudb.storage.database import Database
from gpudb.storage.table import TableBuilder, TableVersion, table_from_arrow

SCHEMA = pa.schema([("step", pa.int64()), ("word", pa.string()), ("real", pa.float64())])
ROWS = 3  # a step adds


def rows_of(step: int) -> pa.Table:
    """The rows that a step adds, made of its number alone."""
    numbers = [step * ROWS + offset for offset in range(ROWS)]
    words = [None if number % 7 == 0 else f"word {number * 31 % 1009}" for number in numbers]
    return pa.table({"step": numbers, "word": words, "real": [number / 3 for number in numbers]}, schema=SCHEMA)


def append(version: TableVersion | None, step: int) -> TableVersion:
    """The next version of the log; in small row groups, so that some are finished and some are not."""
    rows = rows_of(step)
    columns = table_from_arrow("log", rows).columns if version is None else version.columns
    builder = TableBuilder(columns, row_group_rows=4096, previous=version)
    builder.append(rows)
    return builder.finish("log")


def check(database: Database, acknowledged: int) -> int:
    """The steps found; AssertionError where a promise is broken."""
    snapshot = database.snapshot()
    log = snapshot.get("log")
    steps = 0 if log is None else log.num_rows // ROWS
    assert acknowledged <= steps <= acknowledged + 1, f"{acknowledged} commits acknowledged, {steps} found"
    assert ("even" in snapshot) == (steps % 2 == 0 and steps > 0), "a commit's tables belong together"
    if log is not None:
        assert log.num_rows == steps * ROWS, "no part of a commit is there"
        expected = pa.concat_tables([rows_of(step) for step in range(steps)])
        assert log.to_arrow().equals(expected.combine_chunks()), "rows differ"
    return steps


def write(path: str, acknowledged: int, pipe: int) -> None:
    """One writer: check, then commit for ever, and acknowledge each commit on the pipe."""
    database = Database(path)
    step = check(database, acknowledged)
    os.write(pipe, b"%d\n" % step)
    even = table_from_arrow("even", pa.table({"yes": [True]}))
    while True:
        snapshot = database.snapshot()
        new = append(snapshot.get("log"), step)
        step += 1
        database.commit({"log": new, "even": even if step % 2 == 0 else None}, snapshot.version)
        os.write(pipe, b"%d\n" % step)


def main(path: str, kills: int) -> int:
    append(None, 0)  # what is imported at first use is imported here, not in every writer
    acknowledged = 0
    for number in range(kills):
        read, pipe = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                write(path, acknowledged, pipe)
            except BaseException as error:
                print(f"violation: {error!r}", file=sys.stderr, flush=True)
            finally:
                os._exit(status)
        os.close(pipe)
        with os.fdopen(read, "rb") as lines:
            reported: list[bytes] = []
            if number % 2:  # wait for its first commit: every other writer gets to one, however slow the machine is
                reported += [lines.readline(), lines.readline()]
            time.sleep(random.uniform(0.0, 0.12))
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            acknowledged = max(acknowledged, *map(int, filter(None, [*reported, *lines])), 0)
        if not os.WIFSIGNALED(status):
            print(json.dumps({"kills": number, "commits": acknowledged, "violations": 1}))
            return 1
    check(Database(path, read_only=True), acknowledged)
    print(json.dumps({"kills": kills, "commits": acknowledged, "violations": 0}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
