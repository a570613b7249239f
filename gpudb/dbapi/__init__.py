"""PEP 249 on top of a session: connections, cursors, type objects and values as Python objects.

A statement outside a transaction commits as it ends, as in DuckDB, so `commit()` and `rollback()` with no open
transaction do nothing: there is nothing left to keep or to undo.  `begin()`, or BEGIN, opens one, which all cursors of the
connection share (in DuckDB a cursor is a connection of its own).  Threads may share a connection, each with its own cursor;
statements of one connection run one at a time.  Results are streamed: a cursor holds one record batch, and `rowcount` of a
query is -1.
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
