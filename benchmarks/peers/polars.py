"""Polars: an in-memory frame, text as String: as users load it."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import polars as pl
import pyarrow as pa

from benchmarks.workload import Query, Workload


class Engine:
    """Polars' lazy API over a loaded frame; the harness sets POLARS_MAX_THREADS before the import."""

    device = "cpu"

    def __init__(self, threads: int, device: str) -> None:
        self.version = pl.__version__
        if pl.thread_pool_size() != threads:
            raise RuntimeError(f"Polars has {pl.thread_pool_size()} threads, not {threads}")

    def load(self, workload: Workload) -> None:
        self.spellings = importlib.import_module(f"{workload.package}.polars_queries").QUERIES
        self.frame = self.read(workload.path).lazy()

    def read(self, path: str) -> pl.DataFrame:
        """The table as one frame."""
        return pl.read_parquet(path).rechunk()

    def prepare(self, query: Query, repeat: int, *, limited: bool = True) -> Callable[[], pa.Table]:
        spelling, values = self.spellings[query.name], query.values(repeat)
        return lambda: spelling(self.frame, values).collect().to_arrow()

    def forget_plans(self) -> None:
        return None

    def bytes_read(self) -> int | None:
        return None
