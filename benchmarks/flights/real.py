"""nycflights13 under the benchmark's column names: 336,776 real rows with their real NULLs, names and times."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from benchmarks import nycflights13
from benchmarks.flights.airports import state_of
from benchmarks.flights.generator import READ_COLUMNS, texts, timestamps


def real_table() -> pa.Table:
    """READ_COLUMNS of nycflights13, in its order.

    Four destinations are not among its airports: their name, state and latitude are NULL.  Cancelled flights have no
    times and no delays.
    """
    flights = nycflights13.read("flights")
    carrier_names = _lookup("airlines", "carrier", "name")
    airport_names = _lookup("airports", "faa", "name")
    airports = nycflights13.read("airports")
    latitude, longitude = airports["lat"].to_numpy(), airports["lon"].to_numpy()
    codes = airports["faa"].to_pylist()
    states = dict(zip(codes, state_of(latitude, longitude), strict=True))
    latitudes = dict(zip(codes, latitude, strict=True))

    departure, departed = _clock_times(flights, "dep_time", "dep_delay")
    arrival, arrived = _clock_times(flights, "arr_time", "arr_delay")
    arrival = arrival + np.where(arrival < departure, 1440, 0)  # landed after midnight
    columns = {
        "uniquecarrier": flights["carrier"],
        "flightnum": flights["flight"].cast(pa.int16()),
        "arrdelay": flights["arr_delay"].cast(pa.int16()),
        "depdelay": flights["dep_delay"].cast(pa.int16()),
        "dep_timestamp": timestamps(departure, departed),
        "arr_timestamp": timestamps(arrival, arrived),
        "carrier_name": _translated(flights["carrier"], carrier_names),
        "origin_name": _translated(flights["origin"], airport_names),
        "dest_name": _translated(flights["dest"], airport_names),
        "dest_state": _translated(flights["dest"], states),
    }
    destination = flights["dest"].combine_chunks().dictionary_encode()
    by_code = pa.array([latitudes.get(code) for code in destination.dictionary.to_pylist()], pa.float32())
    columns["dest_lat"] = by_code.take(destination.indices)
    return pa.table({field.name: columns[field.name] for field in READ_COLUMNS})


def write(path: Path) -> Path:
    """Writes the table as one Parquet file unless it is there already."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.partial")
        parquet.write_table(real_table(), partial, store_schema=False)
        partial.rename(path)
    return path


def _lookup(name: str, key: str, value: str) -> dict[str, str]:
    table = nycflights13.read(name)
    return dict(zip(table[key].to_pylist(), table[value].to_pylist(), strict=True))


def _translated(column: pa.ChunkedArray, names: dict[str, str]) -> pa.Array:
    """Codes replaced by what they stand for; NULL where unknown."""
    encoded = column.combine_chunks().dictionary_encode()
    translated = [names.get(code) for code in encoded.dictionary.to_pylist()]
    codes = np.where([name is None for name in translated], -1, np.arange(len(translated)))
    return texts(codes[encoded.indices.to_numpy()], [name or "" for name in translated])


def _clock_times(flights: pa.Table, clock: str, delay: str) -> tuple[np.ndarray, np.ndarray]:
    """(rows,) int64 minutes since 1970 of a column of hhmm, and where it is present.

    The date is the planned departure's; a departure more than 12 hours off its plan by the clock left the next day.
    """
    present = np.asarray(flights[clock].is_valid()) & np.asarray(flights[delay].is_valid())
    hhmm = flights[clock].fill_null(0).to_numpy()
    year, month, day = (flights[name].to_numpy() for name in ("year", "month", "day"))
    date = ((year - 1970) * 12 + month - 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) + day - 1
    minutes = date * 1440 + hhmm // 100 * 60 + hhmm % 100
    if clock == "dep_time":
        planned = flights["sched_dep_time"].to_numpy()
        late = (flights[delay].fill_null(0).to_numpy() > 0) & (hhmm < planned)
        minutes = minutes + np.where(late, 1440, 0)
    return minutes, present
