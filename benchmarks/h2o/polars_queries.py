"""g1-g10 as a Polars user writes them: name → (LazyFrame, literals) → LazyFrame."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl

from benchmarks.workload import Literal

Spelling = Callable[[pl.LazyFrame, Mapping[str, Literal]], pl.LazyFrame]


def grouped(keys: str, *aggregates: pl.Expr) -> Spelling:
    """GROUP BY these columns."""
    return lambda frame, _: frame.group_by(keys.split()).agg(*aggregates)


v1, v2, v3 = (pl.col(name) for name in ("v1", "v2", "v3"))

QUERIES: dict[str, Spelling] = {
    "warmup": lambda frame, _: frame.select(v1.max()),
    "g1": grouped("id1", v1.sum()),
    "g2": grouped("id1 id2", v1.sum()),
    "g3": grouped("id3", v1.sum(), v3.mean()),
    "g4": grouped("id4", v1.mean(), v2.mean(), v3.mean()),
    "g5": grouped("id6", v1.sum(), v2.sum(), v3.sum()),
    "g6": grouped("id4 id5", v3.median().alias("median_v3"), v3.std().alias("sd_v3")),
    "g7": grouped("id3", (v1.max() - v2.min()).alias("range_v1_v2")),
    "g8": lambda frame, _: (
        frame.filter(v3.is_not_null()).group_by("id6").agg(v3.top_k(2).alias("largest2_v3")).explode("largest2_v3")
    ),
    "g9": grouped("id2 id4", (pl.corr("v1", "v2") ** 2).alias("r2")),
    "g10": grouped("id1 id2 id3 id4 id5 id6", v3.sum(), pl.len().alias("count")),
}
