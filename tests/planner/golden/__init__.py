"""Golden plans: statements over small tables, and the text that EXPLAIN gives for them.

The texts lie beside this file, one a statement, so that a change of the planner or of emission shows in the diff of its
commit.  `python -m tests.planner.golden --write` writes them anew.
"""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa

import gpudb
from benchmarks.flights.queries import Constants, make_queries

FOLDER = Path(__file__).parent
ROWS = 600
START = datetime.datetime(1996, 7, 1)

# Any literals would do: a plan does not depend on them.
CONSTANTS = Constants(
    origins=("La Guardia",),
    destination="Pittsburgh Intl",
    origin="La Guardia",
    flight_numbers=(586,),
    second_start=("1996-07-26 16:30:06",),
    second_end=("1997-05-16 16:30:06",),
    day_start=("1996-07-28 00:00:00",),
    day_end=("1997-05-18 00:00:00",),
)

OTHERS = {
    "filter-ranges": "SELECT flightnum FROM flights WHERE arrdelay BETWEEN 10 AND 20 AND depdelay > 5 AND depdelay <= 60",
    "filter-or-and-not": "SELECT flightnum FROM flights WHERE NOT (arrdelay > 10 OR depdelay < 0) OR arrdelay IS NULL",
    "filter-in-lists": "SELECT count(*) FROM flights WHERE carrier_name IN ('Delta', 'United') AND flightnum IN (586, 590, 594)",
    "filter-not-in-with-null": "SELECT id FROM small WHERE n NOT IN (1, 2, NULL)",
    "filter-that-can-fail-runs-last": "SELECT id FROM small WHERE 10 // n > 2 AND n > 0",
    "group-dense-with-nulls": "SELECT n, flag, count(*), sum(v), min(v), max(v) FROM small GROUP BY n, flag",
    "group-hash-of-wide-keys": "SELECT big, x, count(*), avg(v) FROM small GROUP BY big, x",
    "group-of-floats-and-moments": "SELECT n, sum(x), avg(x), stddev_samp(x), corr(x, v) FROM small GROUP BY n",
    "group-arg-min-and-first": "SELECT n, arg_min(name, v), first(v), any_value(name) FROM small GROUP BY n",
    "aggregate-without-keys": "SELECT count(*), count(n), sum(big), min(name), max(day), bool_or(flag) FROM small",
    "aggregate-sums-plus-constants": "SELECT n, sum(v), sum(v + 1), avg(v - 2) FROM small GROUP BY n",
    "aggregate-filter-and-having": "SELECT n, sum(v) FILTER (WHERE flag) AS total FROM small GROUP BY n HAVING count(*) > 2",
    "group-derived-keys": "SELECT n, n + 1 AS m, n * v AS w, v, count(*) FROM small GROUP BY ALL",
    "grouping-sets": "SELECT n, flag, avg(v), GROUPING(flag) FROM small GROUP BY ROLLUP (n, flag)",
    "median-and-mode": "SELECT n, median(v), mode(name), count(*) FROM small GROUP BY n",
    "count-distinct": "SELECT n, count(DISTINCT name), count(*) FROM small GROUP BY n",
    "distinct": "SELECT DISTINCT n, name FROM small",
    "sort-with-nulls-and-text": "SELECT id, name, x FROM small ORDER BY name DESC NULLS FIRST, x, id",
    "top-k-with-offset": "SELECT id, v FROM small WHERE flag ORDER BY v DESC LIMIT 5 OFFSET 2",
    "limit-without-order": "SELECT id FROM small LIMIT 7",
    "union-all-of-types": "SELECT n, name FROM small UNION ALL SELECT flightnum, dest_state FROM flights",
    "intersect": "SELECT n, flag FROM small WHERE v > 3 INTERSECT SELECT n, flag FROM small WHERE v < 9",
    "except": "SELECT n, flag FROM small EXCEPT SELECT n, flag FROM small WHERE v > 3",
    "except-all": "SELECT n FROM small EXCEPT ALL SELECT flightnum FROM flights WHERE arrdelay > 0",
    "union-by-name": "SELECT n, name FROM small UNION BY NAME SELECT v, n FROM small",
    "series": "SELECT x * 2, day FROM (SELECT x, DATE '2020-01-01' + x::INTEGER AS day FROM range(5, 50, 3) t(x)) WHERE x > 9",
    "distinct-on": "SELECT DISTINCT ON (n) n, name, v FROM small ORDER BY n, v DESC",
    "limit-percent": "SELECT id FROM small WHERE v > 3 LIMIT 12.5% OFFSET 1",
    "recursive": "WITH RECURSIVE x AS (SELECT n, name FROM small WHERE v < 9 UNION SELECT n + 1, name FROM x WHERE n < 7) SELECT * FROM x",
    "cte-read-once": "WITH c AS (SELECT n, sum(v) AS total FROM small GROUP BY n) SELECT max(total), count(*) FROM c WHERE n > 1",
    "subquery-filter-pushed": "SELECT j FROM (SELECT id + v AS j, n FROM small WHERE n > 1) WHERE j < 50",
    "case-guards-a-division": "SELECT CASE WHEN n <> 0 THEN v // n WHEN v > 3 THEN v ELSE -1 END FROM small",
    "coalesce-and-nullif": "SELECT coalesce(n, v, 0), nullif(n, 3), greatest(n, v) FROM small",
    "text-functions": "SELECT upper(name), length(name), name || '-' || name, substr(name, 2, 3) FROM small WHERE name LIKE 'a%'",
    "text-order-comparison": "SELECT id FROM small WHERE name > 'b' AND name <> 'm'",
    "checked-arithmetic": "SELECT v * v, big + 1, price * 2 FROM small",
    "casts": "SELECT v::DOUBLE, x::INTEGER, name::VARCHAR, v::TINYINT, price::DECIMAL(12,1) FROM small",
    "dates": "SELECT day + 3, extract(year FROM day), date_trunc('month', day), extract(dow FROM day) FROM small",
    "join-by-numbers-in-the-probe-pipeline": "SELECT a.id, b.v FROM small a JOIN small b ON a.n = b.id WHERE b.flag",
    "join-left-by-words-and-a-condition": "SELECT a.id, b.name FROM small a LEFT JOIN small b ON a.big = b.big AND a.x = b.x AND a.v < b.v",
    "join-of-texts-grouped": "SELECT s.n, count(*) FROM flights f, small s WHERE f.dest_state = s.name AND f.arrdelay > 10 GROUP BY s.n",
    "join-semi-and-anti": "SELECT id FROM small a SEMI JOIN flights f ON a.v = f.flightnum ANTI JOIN small b ON a.id = b.n",
    "join-full-using": "SELECT id, a.v, b.price FROM small a FULL JOIN small b USING (id)",
    "join-without-keys": "SELECT a.id, b.id FROM small a, small b WHERE a.v + b.v > 50",
    "values": "SELECT a + 1, b FROM (VALUES (1, 'x'), (NULL, 'y')) AS v(a, b) WHERE a > 0",
    "no-table": "SELECT 1 + 1, 'text'",
}

STATEMENTS = {**{f"flights-{query.name}": query.sql("flights") for query in make_queries(CONSTANTS)}, **OTHERS}


def flights() -> pa.Table:
    """Flights as the benchmark has them: its columns and types, NULL delays, departures in order."""
    rows = range(ROWS)
    carriers = ["American", "Delta", "Southwest", "United"]
    places = ["La Guardia", "Newark Liberty Intl", "Pittsburgh Intl", "San Francisco Intl"]
    late = [None if k % 50 == 7 else k * 37 % 400 - 60 for k in rows]
    departures = [START + datetime.timedelta(hours=k, minutes=k * 7 % 60) for k in rows]
    return pa.table(
        {
            "uniquecarrier": [carriers[k * 7 % 4][:2] for k in rows],
            "flightnum": pa.array([586 + k * 11 % 3000 for k in rows], pa.int16()),
            "arrdelay": pa.array(late, pa.int16()),
            "depdelay": pa.array([None if v is None else v + 9 for v in late], pa.int16()),
            "dep_timestamp": pa.array(departures, pa.timestamp("us")),
            "arr_timestamp": pa.array([d + datetime.timedelta(minutes=95) for d in departures], pa.timestamp("us")),
            "carrier_name": [carriers[k * 7 % 4] for k in rows],
            "origin_name": [places[k % 4] for k in rows],
            "dest_name": [places[(k + 1) % 4] for k in rows],
            "dest_state": ["NY", "NJ", "PA", "CA"] * (ROWS // 4),
            "dest_lat": pa.array([40.0 + k % 4 for k in rows], pa.float32()),
        }
    )


def small() -> pa.Table:
    """One column a kind of value, most with NULLs."""
    rows = range(40)

    def some(values: list[object], kind: pa.DataType) -> pa.Array:
        return pa.array([None if k % 9 == 4 else value for k, value in enumerate(values)], kind)

    return pa.table(
        {
            "id": pa.array(rows, pa.int32()),
            "n": some([k % 5 for k in rows], pa.int32()),
            "v": pa.array([k * 13 % 31 for k in rows], pa.int32()),
            "big": some([(k * 7919 % 11) << 50 for k in rows], pa.int64()),
            "x": some([k * 0.5 - 3 for k in rows], pa.float64()),
            "price": some([None if k == 3 else k * 25 for k in rows], pa.int64())
            .cast(pa.decimal128(20, 0))
            .cast(pa.decimal128(22, 2)),
            "name": some([["apple", "beta", "mango", "zed"][k % 4] for k in rows], pa.string()),
            "flag": some([k % 3 == 0 for k in rows], pa.bool_()),
            "day": pa.array([datetime.date(2020, 1, 1) + datetime.timedelta(days=9 * k) for k in rows]),
        }
    )


def connect() -> gpudb.Connection:
    """A connection with the tables."""
    connection = gpudb.connect()
    for name, table in (("flights", flights()), ("small", small())):
        connection.register(f"arrow_{name}", table)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM arrow_{name}")
        connection.unregister(f"arrow_{name}")
    return connection


def explained(connection: gpudb.Connection, sql: str) -> str:
    """The statement and what EXPLAIN says: the logical tree, then each step and its instructions."""
    lines = [sql, ""]
    for step, line, operation, comment in connection.execute(f"EXPLAIN {sql}").fetchall():
        if step is None:
            lines.append(operation)
        elif line is None:
            lines += ["", f"{step} {operation}: {comment}"]
        else:
            lines.append(f"  {operation:<24} {comment}")
    return "\n".join(lines) + "\n"


def path_of(name: str) -> Path:
    """The file of a statement's golden text."""
    return FOLDER / f"{name}.txt"
