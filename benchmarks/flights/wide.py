"""The other 41 columns of HeavyDB's flights table, for `--columns all`: names, order and widths as there.

Names and widths: heavyai/heavydb, Benchmarks/import_table_schemas/flights.sql: SMALLINT, TEXT ENCODING DICT, FLOAT.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks import nycflights13
from benchmarks.flights.airports import Airports, Routes
from benchmarks.flights.generator import (
    READ_COLUMNS,
    Draw,
    Recorded,
    departure_and_arrival,
    scheduled_departure,
    texts,
)

_ORDER = (
    "flight_year flight_mmonth flight_dayofmonth flight_dayofweek deptime crsdeptime arrtime crsarrtime "
    "uniquecarrier flightnum tailnum actualelapsedtime crselapsedtime airtime arrdelay depdelay origin dest "
    "distance taxiin taxiout cancelled cancellationcode diverted carrierdelay weatherdelay nasdelay securitydelay "
    "lateaircraftdelay dep_timestamp arr_timestamp carrier_name plane_type plane_manufacturer plane_issue_date "
    "plane_model plane_status plane_aircraft_type plane_engine_type plane_year origin_name origin_city origin_state "
    "origin_country origin_lat origin_lon dest_name dest_city dest_state dest_country dest_lat dest_lon"
).split()
_TEXT = {"tailnum", "origin", "dest", "cancellationcode"} | {
    name
    for name in _ORDER
    if name.startswith(("plane_", "origin_", "dest_")) and not name.endswith(("_year", "_date", "_lat", "_lon"))
}
_READ = {field.name: field for field in READ_COLUMNS}


def _field(name: str) -> pa.Field:
    if name in _READ:
        return _READ[name]
    if name in _TEXT:
        return pa.field(name, pa.string())
    if name.endswith(("_lat", "_lon")):
        return pa.field(name, pa.float32())
    return pa.field(name, pa.date32() if name == "plane_issue_date" else pa.int16())


ALL_COLUMNS = tuple(_field(name) for name in _ORDER)


@dataclass(frozen=True)
class Planes:
    """What nycflights13 knows of each tail number: (tails,) object, None where unknown; year int16, 0 unknown."""

    manufacturer: np.ndarray
    model: np.ndarray
    aircraft: np.ndarray
    engine: np.ndarray
    year: np.ndarray


def read_planes(tails: list[str]) -> Planes:
    """The planes of these tail numbers, in their order."""
    known = {row["tailnum"]: row for row in nycflights13.read("planes").to_pylist()}
    rows = [known.get(tail, {}) for tail in tails]

    def column(name: str) -> np.ndarray:
        return np.array([row.get(name) for row in rows], dtype=object)

    year = np.array([row.get("year") or 0 for row in rows], dtype=np.int16)
    return Planes(column("manufacturer"), column("model"), column("type"), column("engine"), year)


def other_columns(
    recorded: Recorded, airports: Airports, routes: Routes, draw: Draw, planes: Planes
) -> dict[str, pa.Array]:
    """Every column of a row group that `generator.read_columns` does not make."""
    columns = _time_columns(recorded, draw) | _delay_columns(recorded, draw) | _plane_columns(recorded, draw, planes)
    columns["distance"] = pa.array(routes.distance[draw.route])
    for prefix, end in (("origin", routes.origin[draw.route]), ("dest", routes.destination[draw.route])):
        columns[prefix] = texts(end, airports.code)
        columns[f"{prefix}_city"] = texts(end, airports.city)
        columns[f"{prefix}_state"] = texts(end, airports.state)
        columns[f"{prefix}_country"] = texts(np.zeros(len(end), np.int32), ["USA"])
        columns[f"{prefix}_lat"] = pa.array(airports.latitude[end])
        columns[f"{prefix}_lon"] = pa.array(airports.longitude[end])
    return columns


def _time_columns(recorded: Recorded, draw: Draw) -> dict[str, pa.Array]:
    scheduled = scheduled_departure(recorded, draw)
    departure, arrival = departure_and_arrival(recorded, draw)
    departed, arrived = recorded.departed[draw.recorded], recorded.arrived[draw.recorded]
    date = scheduled.astype("datetime64[m]").astype("datetime64[D]")
    month = date.astype("datetime64[M]")
    rows = len(date)
    taxi_out = draw.rng.integers(5, 35, rows).astype(np.int16)
    taxi_in = draw.rng.integers(2, 12, rows).astype(np.int16)
    elapsed = (arrival - departure).astype(np.int16)
    return {
        "flight_year": _int16(month.astype("datetime64[Y]").astype(int) + 1970),
        "flight_mmonth": _int16(month.astype(int) % 12 + 1),
        "flight_dayofmonth": _int16((date - month.astype("datetime64[D]")).astype(int) + 1),
        "flight_dayofweek": _int16((date.astype(int) + 3) % 7 + 1),
        "deptime": _clock(departure, departed),
        "crsdeptime": _clock(scheduled),
        "arrtime": _clock(arrival, arrived),
        "crsarrtime": _clock(scheduled + draw.scheduled_minutes),
        "actualelapsedtime": _int16(elapsed, arrived),
        "crselapsedtime": _int16(draw.scheduled_minutes),
        "airtime": _int16(np.maximum(elapsed - taxi_in - taxi_out, 10), arrived),
        "taxiin": _int16(taxi_in, arrived),
        "taxiout": _int16(taxi_out, departed),
    }


def _delay_columns(recorded: Recorded, draw: Draw) -> dict[str, pa.Array]:
    """An arrival delay of 15 minutes or more is split over five causes, as the source of the original table does."""
    departed, arrived = recorded.departed[draw.recorded], recorded.arrived[draw.recorded]
    late = arrived & (recorded.arrival_delay[draw.recorded] >= 15)
    left = np.where(late, recorded.arrival_delay[draw.recorded], 0).astype(np.int32)
    rows = len(left)
    columns = {}
    for name, share in (("weatherdelay", 0.06), ("nasdelay", 0.45), ("securitydelay", 0.004), ("carrierdelay", 0.7)):
        part = (left * np.minimum(draw.rng.random(rows) * 2 * share, 1)).astype(np.int32)
        left = left - part
        columns[name] = _int16(part, late)
    reasons = draw.rng.choice(4, rows, p=[0.42, 0.36, 0.21, 0.01])
    return columns | {
        "lateaircraftdelay": _int16(left, late),
        "cancelled": _int16(~departed),
        "cancellationcode": texts(np.where(departed, -1, reasons), ["A", "B", "C", "D"]),
        "diverted": _int16(departed & ~arrived),
    }


def _plane_columns(recorded: Recorded, draw: Draw, planes: Planes) -> dict[str, pa.Array]:
    tail = recorded.tail[draw.recorded]
    known = (tail >= 0) & (planes.year[tail] > 0)
    year = planes.year[tail]
    # A certificate is issued within the year of manufacture, on a day that follows from the tail number.
    issued = (year.astype(int) - 1970).astype("datetime64[Y]").astype("datetime64[D]").astype(np.int32) + tail % 365
    return {
        "tailnum": texts(tail, recorded.tails),
        "plane_type": texts(np.where(known, 0, -1), ["Corporation"]),
        "plane_manufacturer": _plane_text(tail, planes.manufacturer),
        "plane_issue_date": pa.array(issued.astype(np.int32), pa.int32(), mask=~known).cast(pa.date32()),
        "plane_model": _plane_text(tail, planes.model),
        "plane_status": texts(np.where(known, 0, -1), ["Valid"]),
        "plane_aircraft_type": _plane_text(tail, planes.aircraft),
        "plane_engine_type": _plane_text(tail, planes.engine),
        "plane_year": _int16(year, known),
    }


def _plane_text(tail: np.ndarray, values: np.ndarray) -> pa.Array:
    missing = np.array([value is None for value in values])
    return texts(np.where((tail < 0) | missing[tail], -1, tail), np.where(missing, "", values))


def _int16(values: np.ndarray, present: np.ndarray | None = None) -> pa.Array:
    return pa.array(values.astype(np.int16), mask=None if present is None else ~present)


def _clock(minutes: np.ndarray, present: np.ndarray | None = None) -> pa.Array:
    """Minutes since 1970 as the clock shows them: 1435 is 14:35."""
    of_day = minutes % 1440
    return _int16(of_day // 60 * 100 + of_day % 60, present)
