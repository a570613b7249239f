"""gpudb: SQL analytics on a virtual machine that runs the same kernels on GPUs and CPUs.

    >>> import gpudb
    >>> connection = gpudb.connect()
    >>> connection.execute("SELECT 6 * 7").fetchone()
    (42,)

The life of a query, and where to read about each step:

1. `gpudb.dbapi` (PEP 249: connections, cursors) or `gpudb.shell` (the command `gpudb`) hands the text to
   `gpudb.session`, which holds the settings and the plan cache.  A statement whose shape was seen before, literals
   aside, goes straight to step 6.
2. `gpudb.planner.parse` turns text into sqlglot's tree (DuckDB's dialect), and guards its depth.
3. `gpudb.planner.bind` gives every name a column and every expression a type, from the catalog.
4. `gpudb.planner.rules` rewrites the tree, one plain function a rule.
5. `gpudb.planner.emit` chooses how each part runs and writes a `gpudb.program.Program`: pipelines of instructions from
   the table `gpudb.opcodes`.  `Program.verify()` refuses a program that could read what was never written.
6. `gpudb.vm` runs the program on a device of `gpudb.devices`, tile by tile, over the narrow columns of
   `gpudb.storage`, with the block functions of `gpudb.kernels`: one CUDA C++ text, compiled for GPU and CPU alike.
7. The answer leaves as a stream of Arrow record batches, with a receipt: where it ran, what it read, how long.

`EXPLAIN` prints what steps 4 and 5 made, and `EXPLAIN ANALYZE` what step 6 did with it.

Everything loads at its first use, so that the import is cheap: `connect` brings in Arrow, the first query sqlglot.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gpudb.version import __version__

if TYPE_CHECKING:
    from gpudb.dbapi import (
        BINARY,
        DATETIME,
        NUMBER,
        ROWID,
        STRING,
        Binary,
        Connection,
        Cursor,
        Date,
        DateFromTicks,
        Time,
        TimeFromTicks,
        Timestamp,
        TimestampFromTicks,
        connect,
    )
    from gpudb.errors import (
        DatabaseError,
        DataError,
        Error,
        IntegrityError,
        InterfaceError,
        InternalError,
        NotSupportedError,
        OperationalError,
        ProgrammingError,
        Warning,
    )

apilevel = "2.0"
threadsafety = 2  # threads may share a connection, each with a cursor of its own
paramstyle = "qmark"  # `$1` and `$name` work too

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "__version__",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]


def __getattr__(name: str) -> Any:
    """Bring in PEP 249's names at their first use (PEP 562), and keep them."""
    if name not in __all__:
        raise AttributeError(f"module 'gpudb' has no attribute {name!r}")
    errors = importlib.import_module("gpudb.errors")
    value = getattr(errors if hasattr(errors, name) else importlib.import_module("gpudb.dbapi"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
