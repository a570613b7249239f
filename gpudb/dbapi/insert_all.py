"""executemany() of a plain INSERT: all sets of parameters in one statement."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gpudb.result import Result
from gpudb.session import Session

if TYPE_CHECKING:
    from gpudb.client import RemoteSession

Parameters = Sequence[Any] | Mapping[str, Any]

PARAMETERS_TABLE = "__executemany_parameters"
_NAME = r'(?:"(?:[^"]|"")+"|[A-Za-z_]\w*)'
_INSERT_ALL = re.compile(
    rf"\s*INSERT\s+INTO\s+(?P<target>{_NAME}(?:\.{_NAME})*\s*(?:\(\s*{_NAME}(?:\s*,\s*{_NAME})*\s*\))?)"
    r"\s*VALUES\s*\(\s*(?P<marks>\?(?:\s*,\s*\?)*)\s*\)\s*;?\s*",
    re.IGNORECASE,
)


def insert_all(session: Session | RemoteSession, sql: str, sets: list[Parameters]) -> Result | None:
    """Run `INSERT INTO t VALUES (?, ?)` over all sets as one INSERT ... SELECT from an Arrow table; a server does the same.

    None when the statement or the values have another form: then each set is a statement of its own.
    """
    match = _INSERT_ALL.fullmatch(sql)
    width = match["marks"].count("?") if match else 0
    if match is None or len(sets) < 2 or any(isinstance(row, Mapping) or len(row) != width for row in sets):
        return None
    if not isinstance(session, Session):
        return session.execute_all(sql, sets)
    arrays, expressions = {}, []
    for position, values in enumerate(zip(*sets, strict=True)):
        if all(value is None for value in values):
            expressions.append("NULL")
            continue
        if len({type(value) for value in values if value is not None}) > 1:
            return None  # each value would be converted by its own type's rules
        try:
            arrays[f"c{position}"] = pa.array(values)
        except (pa.ArrowException, OverflowError):
            return None
        expressions.append(f"c{position}")
    if not arrays:
        return None
    session.register(PARAMETERS_TABLE, pa.table(arrays))
    try:
        return session.execute(f"INSERT INTO {match['target']} SELECT {', '.join(expressions)} FROM {PARAMETERS_TABLE}")
    finally:
        session.unregister(PARAMETERS_TABLE)
