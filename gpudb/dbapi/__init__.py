"""PEP 249 on top of a session: connections, cursors, type objects and values as Python objects.

Every statement commits as it ends, as DuckDB's do outside a transaction, so `commit()` and `rollback()` with no open
transaction do nothing: there is nothing left to keep or to undo.  Threads may share a connection, each with its own
cursor; statements of one connection run one at a time.  Results are streamed: a cursor holds one record batch, and
`rowcount` of a query is -1.
"""

from __future__ import annotations

from gpudb.dbapi.connection import Connection, connect
from gpudb.dbapi.cursor import Cursor
from gpudb.dbapi.type_objects import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "Date",
    "DateFromTicks",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "connect",
]
