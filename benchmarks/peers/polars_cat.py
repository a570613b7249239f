"""Polars with every text column as a Categorical, which its user has to ask for."""

from __future__ import annotations

import polars as pl

from benchmarks.peers import polars


class Engine(polars.Engine):
    """Polars, text as Categorical."""

    def read(self, path: str) -> pl.DataFrame:
        return super().read(path).with_columns(pl.col(pl.String).cast(pl.Categorical)).rechunk()
