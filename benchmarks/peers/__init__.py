"""The engines, one small module each, and what the harness asks of them.

A module here is loaded in the engine's own process only, so a machine without an engine can still measure the others.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from typing import Protocol

import pyarrow as pa

from benchmarks.workload import Query, Workload

# Name on the command line → the module here.
MODULES = {
    "gpudb": "gpudb",
    "duckdb": "duckdb",
    "duckdb-enum": "duckdb_enum",
    "polars": "polars",
    "polars-cat": "polars_cat",
    "datafusion": "datafusion",
    "chdb": "chdb",
    "sqlite": "sqlite",
}


class Peer(Protocol):
    """An engine in its own process, holding one workload's table.

    version  as the engine gives it
    device   where the last statement ran: "cpu" for all but ours
    """

    version: str
    device: str

    def __init__(self, threads: int, device: str) -> None:
        """Starts the engine with `threads` threads; `device` says where ours runs.  Raises ImportError when missing."""

    def load(self, workload: Workload) -> None:
        """Reads the table into memory, as the engine's users hold it."""

    def prepare(self, query: Query, repeat: int, *, limited: bool = True) -> Callable[[], pa.Table]:
        """What to call to run the query: only the call is timed, so texts are made here."""

    def forget_plans(self) -> None:
        """Empties the plan cache, where there is one."""

    def bytes_read(self) -> int | None:
        """Bytes of columns that the last statement read, where the engine says so."""


class SqlPeer:
    """What engines that speak SQL share: subclasses give `run` and the spelling that differs from DuckDB's.

    spelling  (pattern, replacement) pairs applied to the statement in turn
    """

    version = ""
    device = "cpu"
    spelling: Sequence[tuple[str, str | Callable[[re.Match[str]], str]]] = ()
    workload: Workload

    def run(self, sql: str) -> pa.Table:
        """The whole answer as an Arrow table."""
        raise NotImplementedError

    def spell(self, sql: str) -> str:
        """The statement in this engine's dialect."""
        for pattern, replacement in self.spelling:
            sql = re.sub(pattern, replacement, sql, flags=re.IGNORECASE)
        return sql

    def prepare(self, query: Query, repeat: int, *, limited: bool = True) -> Callable[[], pa.Table]:
        text = self.spell(query.sql(self.workload.table, repeat, limited=limited))
        return lambda: self.run(text)

    def forget_plans(self) -> None:
        return None

    def bytes_read(self) -> int | None:
        return None


def start(name: str, threads: int, device: str) -> Peer:
    """The engine of that name.  Raises ImportError, whose text names the missing package."""
    module = importlib.import_module(f"benchmarks.peers.{MODULES[name]}")
    engine: Peer = module.Engine(threads, device)
    return engine
