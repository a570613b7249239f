"""Tables in several row groups, and queries over them that touch every kind of pipeline."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from gpudb.session import Database
from gpudb.storage import arrow
from gpudb.storage.table import TableBuilder

ROW_GROUP_ROWS = 4096
ROWS = 2 * ROW_GROUP_ROWS + 1234  # the last row group ends inside a tile of any size

CARRIERS = ["AA", "B6", "DL", "UA", "WN", "9E", "Ünïted", ""]
AIRPORTS = ["ATL", "BOS", "JFK", "LAX", "MSP", "ORD", "SFO"]


def flights(rows: int = ROWS, seed: int = 7) -> pa.Table:
    """Flights with NULLs, floats that hold NaN and infinities, texts with few and with many distinct values."""
    random = np.random.default_rng(seed)

    def some(values: object, share: float = 0.15, type_: pa.DataType | None = None) -> pa.Array:
        return pa.array(values, type_, mask=random.random(rows) < share)

    ratio = random.normal(size=rows)
    ratio[random.integers(0, rows, 40)] = np.nan
    ratio[random.integers(0, rows, 20)] = np.inf
    ratio[random.integers(0, rows, 20)] = -np.inf
    ratio[random.integers(0, rows, 200)] = 0.0
    ratio[random.integers(0, rows, 200)] = -0.0
    scattered = random.normal(size=rows) * 10.0 ** random.integers(-200, 200, rows)
    start = np.datetime64("2013-01-01T00:00", "us")
    departed = start + random.integers(0, 365 * 86400, rows).astype("timedelta64[s]")
    cents = random.integers(-(10**6), 10**6, rows)
    return pa.table(
        {
            "id": np.arange(rows),
            "month": pa.array(random.integers(1, 13, rows), pa.int8()),
            "carrier": some(random.choice(CARRIERS, rows), 0.1),
            "origin": pa.array(random.choice(AIRPORTS, rows)),
            "tail": some([f"N{n}" for n in random.integers(0, 6000, rows)]),
            "delay": some(np.round(random.exponential(20, rows) - 10).astype(np.int32), 0.2),
            "distance": pa.array(random.integers(0, 5000, rows) * 3, pa.int32()),
            "big": random.integers(-(2**62), 2**62, rows),
            "wide": some(random.integers(-(2**40), 2**40, rows)),
            "air_time": some(np.round(random.gamma(4.0, 30.0, rows), 1)),
            "ratio": some(ratio),
            "scattered": scattered,
            "speed": pa.array(random.normal(400, 50, rows).astype(np.float32)),
            "price": some([Decimal(int(c)).scaleb(-2) for c in cents], 0.1, pa.decimal128(10, 2)),
            "fee": pa.array([Decimal(int(c) * 10**9 + 7).scaleb(-4) for c in cents], pa.decimal128(30, 4)),
            "day": pa.array(departed.astype("datetime64[D]")),
            "departed": some(departed),
            "cancelled": some(random.random(rows) < 0.05),
            "constant": pa.array(np.full(rows, 42, np.int32)),
            "nothing": pa.nulls(rows, pa.int32()),
            "late": some(np.where(np.arange(rows) < ROW_GROUP_ROWS, 3, 70_000)),
        }
    )


def dozen() -> pa.Table:
    """A dozen rows."""
    return pa.table(
        {
            "n": pa.array([3, 1, None, 2, 2, 3, None, 1, 5, 4, 3, 2]),
            "x": pa.array([1.5, None, -0.0, 0.0, float("nan"), 2.5, float("inf"), None, 1e300, -1e300, 1e-300, 7.0]),
            "t": pa.array(["b", "a", None, "c", "b", "", "ä", "a", "zz", "z", "B", "b"]),
            "d": pa.array([datetime.date(2020, 1, 1 + k) for k in range(12)]),
        }
    )


def database() -> Database:
    """The tables flights (several row groups), dozen and empty."""
    made = Database()
    tables = {}
    for name, table in {"flights": flights(), "dozen": dozen(), "empty": flights().slice(0, 0)}.items():
        builder = TableBuilder(arrow.columns_of(table.schema), row_group_rows=ROW_GROUP_ROWS)
        builder.append(table)
        tables[name] = builder.finish(name)
    made.storage.commit(tables, made.storage.version)
    return made


def content(table: pa.Table) -> list[Any]:
    """Schema and the bytes of every buffer."""
    chunks = [chunk for column in table.columns for chunk in column.chunks]
    assert all(chunk.offset == 0 for chunk in chunks)
    buffers = [[None if b is None else b.to_pybytes() for b in chunk.buffers()] for chunk in chunks]
    return [table.schema.remove_metadata(), table.num_rows, buffers]


QUERIES = [
    # rows as they are
    "SELECT * FROM flights",
    "SELECT * FROM dozen",
    "SELECT * FROM empty",
    "SELECT id, carrier, ratio FROM flights WHERE delay > 30",
    "SELECT id FROM flights WHERE carrier = 'AA' AND distance BETWEEN 600 AND 9000 AND delay <> 0",
    "SELECT id FROM flights WHERE carrier = 'nobody'",
    "SELECT id, tail FROM flights WHERE tail LIKE 'N1%7' OR tail IS NULL",
    "SELECT id FROM flights WHERE ratio > 1e300 OR ratio = 0 OR ratio IS DISTINCT FROM ratio",
    "SELECT id FROM flights WHERE month IN (1, 3, 12) AND carrier IN ('AA', 'UA', 'nobody')",
    "SELECT id FROM flights WHERE NOT (cancelled OR delay > 0)",
    "SELECT id FROM flights WHERE id >= 5000 AND id < 5003",
    "SELECT late, constant, nothing FROM flights WHERE late > 3 LIMIT 50",
    # expressions
    "SELECT delay + distance, delay * 7 - 1, big / 3, big % 1000, -wide, abs(delay) FROM flights",
    "SELECT ratio + 1, ratio * ratio, ratio / air_time, speed * 2, sqrt(abs(ratio)), exp(speed / 100) FROM flights",
    "SELECT price + 1.25, price * price, CAST(price AS DOUBLE), CAST(price AS DECIMAL(12, 1)), fee + 1 FROM flights",
    "SELECT CAST(delay AS DOUBLE) / 3, CAST(speed AS BIGINT), CAST(air_time AS INTEGER), CAST(big AS HUGEINT) * 5 FROM flights",
    "SELECT upper(carrier), length(tail), carrier || '-' || origin, substr(tail, 2, 2) FROM flights",
    "SELECT CAST(delay AS VARCHAR), CAST(month AS VARCHAR) || 'm' FROM flights",
    "SELECT CASE WHEN delay > 15 THEN 'late' WHEN delay IS NULL THEN 'unknown' ELSE 'on time' END, coalesce(delay, -1) FROM flights",
    "SELECT year(day), month(departed), extract('hour' FROM departed), date_trunc('month', departed), day + 3 FROM flights",
    "SELECT cancelled AND delay > 0, cancelled OR ratio > 0, cancelled IS NULL, NOT cancelled FROM flights",
    "SELECT carrier < origin, carrier = 'AA', tail > 'N3' FROM flights",
    "SELECT round(air_time / 7, 2), floor(ratio), ceil(speed), ln(air_time), sin(speed), pow(air_time, 0.5) FROM flights",
    "SELECT nullif(month, 5), greatest(delay, 10), least(air_time, 50), nothing + 1, constant * delay FROM flights",
    # texts of numbers and times that span too much for a table, and of several columns
    "SELECT big::VARCHAR, departed::VARCHAR, ratio::VARCHAR, speed::VARCHAR, scattered::VARCHAR, price::VARCHAR FROM flights",
    "SELECT upper(strftime(departed, '%a %d %H:%M')) AS k, count(*), min(fee::VARCHAR), max(wide::VARCHAR) FROM flights GROUP BY k",
    "SELECT id FROM flights WHERE wide::VARCHAR LIKE '%7' AND delay > 0 OR strftime(departed, '%M') = '30'",
    "SELECT CASE WHEN delay > 15 THEN big::VARCHAR WHEN ratio = 0 THEN ratio::VARCHAR ELSE tail END FROM flights ORDER BY 1 LIMIT 999",
    "SELECT tail || '/' || wide || '/' || price || '/' || carrier, levenshtein(tail, big::VARCHAR), tail || big FROM flights",
    "SELECT carrier || sum(distance), avg(ratio)::VARCHAR, count(DISTINCT departed::VARCHAR) FROM flights GROUP BY carrier",
    "SELECT strftime(departed, '%H'), big::VARCHAR || id FROM flights WHERE id BETWEEN 4000 AND 4200 ORDER BY departed::VARCHAR",
    "SELECT ratio::VARCHAR AS t FROM flights UNION ALL SELECT x::VARCHAR FROM dozen UNION ALL SELECT tail FROM flights",
    "SELECT ratio::VARCHAR, upper(big::VARCHAR) FROM empty",
    # one group
    "SELECT count(*), count(delay), sum(delay), avg(delay), min(delay), max(delay) FROM flights",
    "SELECT sum(big), avg(big), min(big), max(big), sum(wide), sum(price), avg(price), min(price), sum(cancelled::INT) FROM flights",
    "SELECT sum(air_time), avg(air_time), min(ratio), max(ratio), sum(speed), avg(speed) FROM flights",
    "SELECT sum(ratio), avg(ratio) FROM flights",
    "SELECT sum(scattered), avg(scattered), sum(scattered) FILTER (WHERE month = 3) FROM flights",
    "SELECT var_samp(air_time), stddev_pop(delay), corr(air_time, distance), var_pop(scattered), corr(ratio, speed) FROM flights",
    "SELECT min(carrier), max(tail), min(day), max(departed), bool_and(cancelled), bool_or(cancelled) FROM flights",
    "SELECT arg_min(tail, delay), arg_max(id, delay), first(tail), any_value(nothing), count(nothing) FROM flights",
    "SELECT count(DISTINCT carrier), count(DISTINCT tail), sum(DISTINCT delay), avg(DISTINCT month) FROM flights",
    "SELECT count(*), sum(delay), min(tail), avg(ratio), stddev_samp(speed) FROM flights WHERE id < 0",
    "SELECT count(*), sum(delay), max(ratio), first(tail), corr(speed, ratio) FROM empty",
    "SELECT sum(delay) FILTER (WHERE carrier = 'AA'), count(*) FILTER (WHERE cancelled) FROM flights WHERE month > 6",
    # many groups
    "SELECT carrier, count(*), sum(delay), avg(air_time), min(tail), max(ratio) FROM flights GROUP BY carrier",
    "SELECT carrier, month, cancelled, count(*), sum(distance), avg(price) FROM flights GROUP BY ALL",
    "SELECT month, sum(scattered), avg(ratio), var_samp(scattered), corr(air_time, ratio) FROM flights GROUP BY month",
    "SELECT tail, count(*), sum(big), avg(air_time), arg_max(id, delay) FROM flights GROUP BY tail",
    "SELECT big, count(*) FROM flights GROUP BY big",
    "SELECT ratio, count(*), min(id) FROM flights GROUP BY ratio",
    "SELECT tail, day, ratio, wide, count(*), sum(delay), first(id) FROM flights GROUP BY ALL",
    "SELECT wide, big, scattered, tail, sum(air_time) FROM flights GROUP BY ALL",
    "SELECT delay::HUGEINT * 10000000000000000000000 AS h, month, count(*), sum(id) FROM flights GROUP BY ALL",
    "SELECT fee % 7, delay > 0, count(*) FROM (SELECT id % 7 AS fee, delay FROM flights) GROUP BY ALL",
    "SELECT carrier, count(DISTINCT tail), count(DISTINCT month), sum(DISTINCT delay) FROM flights GROUP BY carrier",
    "SELECT tail, count(DISTINCT delay) FROM flights GROUP BY tail",
    "SELECT carrier, count(*) FROM flights GROUP BY carrier HAVING count(*) > 1100 AND min(delay) < -9",
    "SELECT carrier, sum(delay) FILTER (WHERE month < 3), first(tail), stddev_samp(delay) FROM flights WHERE delay > 0 GROUP BY 1",
    "SELECT date_trunc('month', departed) AS m, origin, avg(delay) FROM flights GROUP BY 1, 2",
    "SELECT t, sum(x), avg(n), corr(n, x), count(*) FROM dozen GROUP BY t",
    "SELECT carrier, count(*) FROM empty GROUP BY carrier",
    "SELECT tail, sum(big) FROM empty GROUP BY tail",
    # distinct, order, limit
    "SELECT DISTINCT carrier, origin FROM flights",
    "SELECT DISTINCT tail FROM flights",
    "SELECT DISTINCT ratio FROM flights ORDER BY ratio DESC NULLS LAST",
    "SELECT * FROM flights ORDER BY delay DESC, tail NULLS FIRST, ratio LIMIT 77",
    "SELECT id, fee, price FROM flights ORDER BY fee, price DESC LIMIT 300 OFFSET 123",
    "SELECT id, ratio, x FROM (SELECT id, ratio, ratio * 2 AS x FROM flights) ORDER BY x DESC, id",
    "SELECT t, n, x FROM dozen ORDER BY n NULLS FIRST, t DESC, x",
    "SELECT id, carrier, ratio FROM flights LIMIT 5 OFFSET 4093",
    "SELECT id, tail FROM flights WHERE delay > 40 LIMIT 300",
    "SELECT sum(id), count(*), max(tail) FROM (SELECT id, tail FROM flights LIMIT 999 OFFSET 3)",
    "SELECT fee, cancelled, id + 1 FROM (SELECT fee, cancelled, id FROM flights LIMIT 5000 OFFSET 4097) WHERE cancelled",
    "SELECT carrier, count(*) AS n FROM flights GROUP BY carrier ORDER BY n DESC, carrier LIMIT 3 OFFSET 1",
    "SELECT month, carrier FROM (SELECT month, carrier, count(*) AS n FROM flights GROUP BY ALL) WHERE n > 70 ORDER BY n DESC",
    "SELECT avg(n), max(m) FROM (SELECT tail, count(*) AS n, min(delay) AS m FROM flights GROUP BY tail)",
    "SELECT id FROM flights LIMIT 0",
    # joins: by numbers, by words, of texts; one match and many; conditions that are no keys
    "SELECT f.id, d.x, d.t FROM flights f JOIN dozen d ON f.tail = 'N' || d.n WHERE f.delay > 5",
    "SELECT f.id, d.x FROM flights f LEFT JOIN dozen d ON f.month = d.n AND f.ratio < d.x WHERE f.id < 3000",
    "SELECT a.id, b.id AS other, b.tail FROM flights a JOIN flights b ON a.tail = b.tail AND a.big < b.big WHERE a.month = 3",
    "SELECT a.carrier, count(*), sum(b.delay), min(b.tail) FROM flights a JOIN flights b ON a.wide = b.wide AND a.day = b.day GROUP BY 1",
    "SELECT id FROM flights f SEMI JOIN dozen d ON f.delay = d.n ANTI JOIN flights e ON f.tail = e.tail AND f.id < e.id",
    "SELECT d.n, e.t, e.x FROM dozen d FULL JOIN (SELECT * FROM dozen WHERE n > 2) e ON d.t = e.t AND d.x IS NOT DISTINCT FROM e.x",
    "SELECT count(*), sum(a.n * b.n) FROM dozen a, dozen b, dozen c WHERE a.n + b.n > c.n AND a.t <> c.t",
    "SELECT f.id, e.id AS other FROM flights f RIGHT JOIN empty e ON f.id = e.id UNION ALL SELECT id, month FROM flights LEFT JOIN empty USING (id, month)",
    "SELECT id, month IN (SELECT n FROM dozen) AS m FROM flights WHERE delay NOT IN (SELECT n FROM dozen WHERE n > 1) AND id < 2000",
    # unions, values, constants
    "SELECT carrier, delay FROM flights UNION ALL SELECT t, n FROM dozen UNION ALL SELECT origin, NULL FROM flights",
    "SELECT x, count(*) FROM (SELECT ratio AS x FROM flights UNION ALL SELECT x FROM dozen) GROUP BY x",
    "SELECT n, t FROM dozen WHERE n > 1 UNION ALL SELECT month, tail FROM flights WHERE id > 9300 ORDER BY 2, 1",
    "SELECT carrier, month FROM flights UNION SELECT t, n FROM dozen",
    "SELECT tail, ratio FROM flights WHERE id < 6000 INTERSECT SELECT tail, ratio FROM flights WHERE id > 3000",
    "SELECT carrier, month FROM flights WHERE id < 6000 INTERSECT ALL SELECT carrier, month FROM flights WHERE id > 3000",
    "SELECT tail FROM flights EXCEPT SELECT tail FROM flights WHERE delay > 20",
    "SELECT carrier, delay > 5 FROM flights EXCEPT ALL SELECT carrier, delay > 5 FROM flights WHERE month < 9 ORDER BY 2 DESC LIMIT 1500",
    "SELECT count(*), sum(m) FROM (SELECT month AS m, origin FROM flights EXCEPT ALL SELECT n, t FROM dozen)",
    "SELECT range, range * 3 % 7 FROM range(-3000, 100000, 7) WHERE range % 5 <> 1",
    "SELECT x % 1000 AS k, count(*), sum(x), min(x) FROM generate_series(300000, 1, -2) t(x) GROUP BY k",
    "SELECT * FROM generate_series(TIMESTAMP '1999-12-31 10:00:00', TIMESTAMP '2030-01-01', INTERVAL 1 MONTH)",
    "SELECT * FROM range(20000000000) LIMIT 5 OFFSET 1030",
    "SELECT DISTINCT ON (carrier) carrier, id, tail FROM flights ORDER BY carrier, delay DESC, id",
    "SELECT DISTINCT ON (tail, month) id, ratio FROM flights ORDER BY ratio LIMIT 2000",
    "SELECT id FROM flights WHERE delay > 5 LIMIT 12.5% OFFSET 7",
    "WITH RECURSIVE x AS (SELECT id, month AS m FROM flights WHERE id < 900 UNION ALL SELECT id, m - 3 FROM x WHERE m > 2) SELECT * FROM x",
    "WITH RECURSIVE x AS (SELECT t, n FROM dozen UNION SELECT t || 'x', n % 4 + 1 FROM x WHERE length(t) < 5) SELECT t, n FROM x",
    "VALUES (1, 'a', 1.5), (NULL, 'b', 2.25), (3, NULL, NULL)",
    "SELECT a + 1, b || '!' FROM (VALUES (1, 'a'), (NULL, 'b'), (3, NULL)) AS v(a, b) ORDER BY a DESC",
    "SELECT 1 AS one, 'text' AS t, NULL AS n, TRUE AS b, DATE '2020-02-29' AS d, CAST(2 AS HUGEINT) AS h, 1e0 / 3 AS x",
    "SELECT h, h * 3, -h, h > 0, h % 7 FROM (VALUES (CAST(170141183460469231731 AS HUGEINT)), (-5), (NULL)) AS v(h) ORDER BY h",
]

FAILING = [  # the first row that fails is reported
    "SELECT CAST(delay * 1000 AS TINYINT) FROM flights",
    "SELECT big * 3 FROM flights",
    "SELECT CAST(scattered AS SMALLINT), CAST(delay * 1000 AS TINYINT) FROM flights WHERE id >= 5000 AND abs(scattered) < 1e5",
    "SELECT CAST(id - 5000 AS TINYINT), CAST(40000 - id * 8 AS SMALLINT) FROM flights WHERE id > 4990",
    "SELECT CAST(tail AS INTEGER) FROM flights WHERE id > 17",
    "SELECT CAST(big::VARCHAR AS INTEGER) FROM flights",
    "SELECT chr(CAST(wide % 3000000 AS INTEGER)) FROM flights WHERE id > 100",
    "SELECT CAST(40000 - id * 8 AS SMALLINT)::VARCHAR, chr(CAST(big % 70000 AS INTEGER) + 1000000) FROM flights WHERE id > 4000",
    "SELECT CASE WHEN big > 0 THEN chr(CAST(wide % 3000000 AS INTEGER)) END FROM flights WHERE wide > 5",
    "SELECT sum(price * 1000000000) FROM flights WHERE CAST(scattered AS BIGINT) > 0",
]
