"""Statements that the server answers itself: SHOW QUERIES and KILL, which run however full it is."""

from __future__ import annotations

import re
import time

import pyarrow as pa

from gpudb.planner import statements
from gpudb.result import Result
from gpudb.server.authentication import Caller
from gpudb.server.running import Statements
from gpudb.session import Description
from gpudb.types import BIGINT, DOUBLE, VARCHAR

_SHOW = re.compile(r"\s*SHOW\s+QUERIES\s*;?\s*", re.IGNORECASE)
_KILL = re.compile(r"\s*KILL\s+(\d{1,18})\s*;?\s*", re.IGNORECASE)
SCHEMA = pa.schema(
    [("id", pa.int64()), ("user", pa.string()), ("state", pa.string()), ("seconds", pa.float64()), ("sql", pa.string())]
    + [("progress", pa.float64())]  # share that is done, of one that runs
)


class Kill(statements.Statement):
    """KILL number."""


def described(sql: str) -> Description | None:
    """What one of the server's own statements would give; None for all others."""
    if _SHOW.fullmatch(sql):
        return Description(statements.Show, SCHEMA)
    return Description(Kill, None) if _KILL.fullmatch(sql) else None


def run(sql: str, caller: Caller, running: Statements) -> Result | None:
    """Run one of the server's own statements; None for all others."""
    if _SHOW.fullmatch(sql):
        now = time.monotonic()
        rows = [
            (one.number, one.user, one.state, now - one.began, one.sql, one.session.progress())
            for one in running.shown(caller)
        ]
        arrays = [pa.array([row[k] for row in rows], field.type) for k, field in enumerate(SCHEMA)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
        return Result(SCHEMA, [BIGINT, VARCHAR, VARCHAR, DOUBLE, VARCHAR, DOUBLE], -1, {}, iter([batch]))
    found = _KILL.fullmatch(sql)
    if found is None:
        return None
    running.kill(caller, int(found[1]))
    return Result(pa.schema([]), [], 1)
