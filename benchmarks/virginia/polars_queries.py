"""The 13 queries as a Polars user writes them: name → (LazyFrame, literals) → LazyFrame."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl

from benchmarks.workload import Literal

Spelling = Callable[[pl.LazyFrame, Mapping[str, Literal]], pl.LazyFrame]


def _spellings(suffix: str, first: int) -> dict[str, Spelling]:
    """The five queries over one kind of column: "i" integers, "f" floats."""
    uniform, five, twenty = (pl.col(name) for name in (f"uniform{suffix}", f"normal{suffix}5", f"normal{suffix}20"))

    def ranges(frame: pl.LazyFrame, values: Mapping[str, Literal]) -> pl.LazyFrame:
        return frame.filter((uniform > values["low"]) & (five < values["high"])).select("id", uniform, five)

    def sums(frame: pl.LazyFrame, values: Mapping[str, Literal]) -> pl.LazyFrame:
        return frame.filter((twenty + values["up"]) > (uniform - 10)).select("id", five, twenty)

    def products(frame: pl.LazyFrame, values: Mapping[str, Literal]) -> pl.LazyFrame:
        product = five * twenty
        return frame.filter((product >= values["low"]) & (product <= values["high"])).select("id", five, twenty)

    def zeros(frame: pl.LazyFrame, values: Mapping[str, Literal]) -> pl.LazyFrame:
        return frame.filter((uniform == 0) | (five == 0) | (twenty == 0)).select("id", uniform, five, twenty)

    spelled: tuple[Spelling, ...] = (ranges, ranges, sums, products, zeros)
    return {str(first + 2 * position): spelling for position, spelling in enumerate(spelled)}


QUERIES: dict[str, Spelling] = {
    "warmup": lambda frame, _: frame.select(pl.col("id").max()),
    **_spellings("i", 1),
    **_spellings("f", 2),
    "11": lambda frame, _: frame.select(pl.col("normalf20").cast(pl.Float64).sum()),
    "12": lambda frame, values: frame.filter(pl.col("uniformi") > values["low"]).select(pl.col("uniformi").mean()),
    "13": lambda frame, _: frame.select(pl.col("normali5").max().alias("max"), pl.col("normali5").min().alias("min")),
}
