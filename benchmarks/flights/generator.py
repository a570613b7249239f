"""Makes the flights table: seeded, vectorised, a row group at a time, so memory does not grow with the rows.

Carrier, flight number, plane, time of day and delays are drawn together, row by row, from nycflights13, so their skew,
their correlation and their NULLs (a cancelled flight has no delay) are real.  Routes run between all its airports
(`airports`), dates from October 1987 to December 2008, as in the table that the published queries were written for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from benchmarks import nycflights13
from benchmarks.flights import airports as airports_module
from benchmarks.flights.airports import Airports, Routes

FORMAT = 1  # part of the file name: raise it when the same seed gives other rows
CHUNK_ROWS = 1 << 20
FIRST_DAY = np.datetime64("1987-10-01")
DAYS = int((np.datetime64("2009-01-01") - FIRST_DAY).astype(int))
GROWTH = 0.4  # the last day has 1.4 times the first day's flights
FLIGHT_NUMBERS = 8  # every second flight from NAMED_ORIGINS[0] has one of these, from FIRST_FLIGHT_NUMBER on
FIRST_FLIGHT_NUMBER = 586

# What Q1-Q17 read, in HeavyDB's order and widths.
READ_COLUMNS = (
    pa.field("uniquecarrier", pa.string(), nullable=False),
    pa.field("flightnum", pa.int16(), nullable=False),
    pa.field("arrdelay", pa.int16()),
    pa.field("depdelay", pa.int16()),
    pa.field("dep_timestamp", pa.timestamp("us")),
    pa.field("arr_timestamp", pa.timestamp("us")),
    pa.field("carrier_name", pa.string(), nullable=False),
    pa.field("origin_name", pa.string(), nullable=False),
    pa.field("dest_name", pa.string(), nullable=False),
    pa.field("dest_state", pa.string(), nullable=False),
    pa.field("dest_lat", pa.float32(), nullable=False),
)


@dataclass(frozen=True)
class Recorded:
    """nycflights13's flights as arrays, one entry a flight, and the names its codes stand for.

    carrier, tail     int32 codes into carriers, tails; tail -1 is NULL
    flight, minute    int16: flight number, scheduled departure in minutes after midnight
    departure_delay, arrival_delay  int16 minutes, where `departed` and `arrived`
    """

    carriers: list[str]
    carrier_names: list[str]
    tails: list[str]
    carrier: np.ndarray
    tail: np.ndarray
    flight: np.ndarray
    minute: np.ndarray
    departed: np.ndarray
    departure_delay: np.ndarray
    arrived: np.ndarray
    arrival_delay: np.ndarray


@dataclass(frozen=True)
class Draw:
    """One row group's rows before they become columns: (rows,) arrays.

    day        int32 days after FIRST_DAY
    recorded   int32 positions in Recorded
    route      int32 positions in Routes
    flightnum  int16
    scheduled_minutes  int32, the flight's planned length
    """

    rng: np.random.Generator
    day: np.ndarray
    recorded: np.ndarray
    route: np.ndarray
    flightnum: np.ndarray
    scheduled_minutes: np.ndarray


def read_recorded() -> Recorded:
    """nycflights13's flights and airlines."""
    flights, airlines = nycflights13.read("flights"), nycflights13.read("airlines")
    names = dict(zip(airlines["carrier"].to_pylist(), airlines["name"].to_pylist(), strict=True))
    carrier = flights["carrier"].combine_chunks().dictionary_encode()
    tail = flights["tailnum"].combine_chunks().dictionary_encode()
    carriers = carrier.dictionary.to_pylist()
    scheduled = flights["sched_dep_time"].to_numpy()

    def delay(name: str) -> tuple[np.ndarray, np.ndarray]:
        column = flights[name].combine_chunks()
        return np.asarray(column.is_valid()), column.fill_null(0).to_numpy().astype(np.int16)

    departed, departure_delay = delay("dep_delay")
    arrived, arrival_delay = delay("arr_delay")
    return Recorded(
        carriers=carriers,
        carrier_names=[names[code] for code in carriers],
        tails=tail.dictionary.to_pylist(),
        carrier=carrier.indices.to_numpy(),
        tail=tail.indices.fill_null(-1).to_numpy(),
        flight=flights["flight"].to_numpy().astype(np.int16),
        minute=(scheduled // 100 * 60 + scheduled % 100).astype(np.int16),
        departed=departed,
        departure_delay=departure_delay,
        arrived=arrived,
        arrival_delay=arrival_delay,
    )


def draw_rows(
    recorded: Recorded, airports: Airports, routes: Routes, start: int, rows: int, total: int, seed: int, shuffled: bool
) -> Draw:
    """Rows [start, start + rows) of `total`; the same whatever was drawn before."""
    rng = np.random.default_rng([seed, 3, start])
    share = rng.random(rows) if shuffled else (start + np.arange(rows)) / total
    # Traffic grows linearly over the years; this inverts its running total.
    passed = (np.sqrt(1 + GROWTH * (2 + GROWTH) * share) - 1) / GROWTH
    day = np.minimum((passed * DAYS).astype(np.int32), DAYS - 1)
    picked = rng.integers(0, len(recorded.flight), rows, dtype=np.int32)
    if not shuffled:  # days ascend already: this orders the flights within a day
        picked = picked[np.argsort(day * 1440 + recorded.minute[picked], kind="stable")]
    route = routes.draw(rng, rows)
    flightnum = recorded.flight[picked]
    home = airports.position(airports_module.NAMED_ORIGINS[0])
    numbered = np.flatnonzero(routes.origin[route] == home)[::2]
    flightnum[numbered] = FIRST_FLIGHT_NUMBER + rng.integers(0, FLIGHT_NUMBERS, len(numbered))
    scheduled_minutes = (40 + routes.distance[route] / 7.5).astype(np.int32)
    return Draw(rng, day, picked, route, flightnum, scheduled_minutes)


def scheduled_departure(recorded: Recorded, draw: Draw) -> np.ndarray:
    """(rows,) int64: minutes since 1970."""
    first = int(FIRST_DAY.astype("datetime64[m]").astype(np.int64))
    return first + draw.day.astype(np.int64) * 1440 + recorded.minute[draw.recorded]


def departure_and_arrival(recorded: Recorded, draw: Draw) -> tuple[np.ndarray, np.ndarray]:
    """Two (rows,) int64: minutes since 1970, of meaning where `departed` and `arrived`; in the origin's local time."""
    scheduled = scheduled_departure(recorded, draw)
    departure = scheduled + recorded.departure_delay[draw.recorded]
    return departure, scheduled + draw.scheduled_minutes + recorded.arrival_delay[draw.recorded]


def timestamps(minutes: np.ndarray, present: np.ndarray) -> pa.Array:
    """Minutes since 1970 as timestamp[us], NULL where not present."""
    return pa.array(minutes * 60_000_000, pa.int64(), mask=~present).cast(pa.timestamp("us"))


def texts(codes: np.ndarray, values: list[str] | np.ndarray) -> pa.Array:
    """Text as dictionary codes, which Parquet stores as they are; a code below 0 is NULL."""
    unique, position = np.unique(np.asarray(values, dtype=object), return_inverse=True)
    codes = np.where(codes < 0, -1, position[codes]).astype(np.int32)
    indices = pa.array(codes, mask=codes < 0)
    return pa.DictionaryArray.from_arrays(indices, pa.array(unique.tolist(), pa.string()))


def read_columns(recorded: Recorded, airports: Airports, routes: Routes, draw: Draw) -> dict[str, pa.Array]:
    """READ_COLUMNS of a row group."""
    picked = draw.recorded
    departure, arrival = departure_and_arrival(recorded, draw)
    departed, arrived = recorded.departed[picked], recorded.arrived[picked]
    origin, destination = routes.origin[draw.route], routes.destination[draw.route]
    return {
        "uniquecarrier": texts(recorded.carrier[picked], recorded.carriers),
        "flightnum": pa.array(draw.flightnum),
        "arrdelay": pa.array(recorded.arrival_delay[picked], mask=~arrived),
        "depdelay": pa.array(recorded.departure_delay[picked], mask=~departed),
        "dep_timestamp": timestamps(departure, departed),
        "arr_timestamp": timestamps(arrival, arrived),
        "carrier_name": texts(recorded.carrier[picked], recorded.carrier_names),
        "origin_name": texts(origin, airports.name),
        "dest_name": texts(destination, airports.name),
        "dest_state": texts(destination, airports.state),
        "dest_lat": pa.array(airports.latitude[destination]),
    }


def row_groups(rows: int, seed: int, shuffled: bool, wide: bool) -> Iterator[pa.Table]:
    """The table, a row group at a time, text as dictionaries; `wide` gives all 52 columns."""
    from benchmarks.flights import wide as wide_module

    recorded = read_recorded()
    airports = airports_module.load_airports(seed)
    routes = airports_module.make_routes(airports, seed)
    planes = wide_module.read_planes(recorded.tails) if wide else None
    fields = wide_module.ALL_COLUMNS if wide else READ_COLUMNS
    schema = pa.schema(fields)
    for start in range(0, rows, CHUNK_ROWS):
        count = min(CHUNK_ROWS, rows - start)
        draw = draw_rows(recorded, airports, routes, start, count, rows, seed, shuffled)
        columns = read_columns(recorded, airports, routes, draw)
        if planes is not None:
            columns |= wide_module.other_columns(recorded, airports, routes, draw, planes)
        yield pa.table(
            [columns[field.name] for field in schema],
            schema=pa.schema([field.with_type(columns[field.name].type) for field in schema]),
        )


def write(path: Path, rows: int, seed: int = 0, *, shuffled: bool = False, wide: bool = False) -> Path:
    """Writes the table as one Parquet file unless it is there already; a half-written file never has the final name."""
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    writer = None
    for table in row_groups(rows, seed, shuffled, wide):
        if writer is None:
            named = [field.name for field in table.schema if pa.types.is_dictionary(field.type)]
            # Without the stored Arrow schema readers see plain text, as in a file from anywhere else.
            writer = parquet.ParquetWriter(partial, table.schema, use_dictionary=named, store_schema=False)
        writer.write_table(table, row_group_size=CHUNK_ROWS)
    if writer is None:
        raise ValueError("a table needs at least one row")
    writer.close()
    partial.rename(path)
    return path
