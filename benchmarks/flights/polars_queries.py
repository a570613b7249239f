"""Q1-Q17 as a Polars user writes them: name → (LazyFrame, literals) → LazyFrame."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

import polars as pl

from benchmarks.workload import Literal

Spelling = Callable[[pl.LazyFrame, Mapping[str, Literal]], pl.LazyFrame]

ROUTE = ("origin_name", "dest_name")


def mean(name: str) -> pl.Expr:
    """avg(name)."""
    return pl.col(name).mean()


def departing(frame: pl.LazyFrame, values: Mapping[str, Literal]) -> pl.LazyFrame:
    """The rows of Q12's or Q13's range."""
    start, end = (datetime.fromisoformat(str(values[slot])) for slot in ("start", "end"))
    return frame.filter((pl.col("dep_timestamp") >= start) & (pl.col("dep_timestamp") < end))


def busiest_carriers(frame: pl.LazyFrame, values: Mapping[str, Literal]) -> pl.LazyFrame:
    """Q12 and Q16."""
    grouped = departing(frame, values).group_by(pl.col("carrier_name").alias("key0"))
    averages = (mean("depdelay").alias("x"), mean("arrdelay").alias("y"), pl.len().alias("size"))
    return grouped.agg(*averages).sort("size", descending=True).head(50)


def flight(frame: pl.LazyFrame, values: Mapping[str, Literal]) -> pl.LazyFrame:
    """Q9."""
    wanted = (pl.col("origin_name") == values["origin"]) & (pl.col("flightnum") == values["number"])
    return frame.filter(wanted).select("uniquecarrier", "flightnum", "dep_timestamp", "dest_lat")


def by_month_of_arrival(frame: pl.LazyFrame, values: Mapping[str, Literal]) -> pl.LazyFrame:
    """Q14."""
    arrival = pl.col("arr_timestamp").dt
    keys = (arrival.month().alias("key0"), arrival.weekday().alias("key1"))
    counted = departing(frame, values).group_by(*keys).agg(pl.len().alias("color"))
    return counted.sort("key0", "key1", nulls_last=True)


def by_destination_and_month(frame: pl.LazyFrame, values: Mapping[str, Literal]) -> pl.LazyFrame:
    """Q6."""
    departure = pl.col("dep_timestamp").dt
    keys = (departure.month().alias("m"), departure.year().alias("y"))
    return frame.group_by("dest_name", *keys).agg(mean("arrdelay").alias("del"))


def by_state(frame: pl.LazyFrame, values: Mapping[str, Literal]) -> pl.LazyFrame:
    """Q15."""
    grouped = departing(frame, values).group_by("dest_state").agg(mean("arrdelay").alias("val"))
    # Cast after grouping: categories sort in an order of their own.
    return grouped.select(pl.col("dest_state").cast(pl.String).alias("key0"), "val").sort("key0", nulls_last=True)


def products(frame: pl.LazyFrame, values: Mapping[str, Literal]) -> pl.LazyFrame:
    """Q10."""
    product = pl.col("arrdelay").cast(pl.Int32) * pl.col("depdelay").cast(pl.Int32)
    return frame.group_by(*ROUTE).agg(mean("arrdelay"), mean("depdelay"), product.mean().alias("product"))


def sums(frame: pl.LazyFrame, values: Mapping[str, Literal]) -> pl.LazyFrame:
    """Q17."""
    total = (pl.col("arrdelay") + pl.col("depdelay")).mean().alias("total")
    return frame.group_by(*ROUTE).agg(mean("arrdelay"), mean("depdelay"), total)


QUERIES: dict[str, Spelling] = {
    "warmup": lambda frame, _: frame.select(pl.col("flightnum").max()),
    "Q1": lambda frame, _: frame.select(pl.len()),
    "Q2": lambda frame, _: frame.group_by("carrier_name").agg(pl.len()),
    "Q3": lambda frame, _: frame.group_by("carrier_name").agg(mean("arrdelay")),
    "Q4": lambda frame, _: frame.group_by(*ROUTE).agg(mean("arrdelay")),
    "Q5": lambda frame, _: frame.group_by(pl.col("dep_timestamp").dt.truncate("1mo").alias("ym")).agg(mean("arrdelay")),
    "Q6": by_destination_and_month,
    "Q7": lambda frame, values: frame.filter(pl.col("origin_name") == values["origin"]).select(pl.len()),
    "Q8": lambda frame, values: frame.filter(
        (pl.col("origin_name") == values["origin"]) & (pl.col("dest_name") == values["destination"])
    ).select(pl.len()),
    "Q9": flight,
    "Q10": products,
    "Q11": lambda frame, values: flight(frame, values).head(5000),
    "Q12": busiest_carriers,
    "Q13": lambda frame, values: departing(frame, values).select(pl.len().alias("val")),
    "Q14": by_month_of_arrival,
    "Q15": by_state,
    "Q16": busiest_carriers,
    "Q17": sums,
}
