"""ibis by its own compiler: an expression becomes SQL of DuckDB's dialect, which runs here and there."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import gpudb

TRIPS = pa.table(
    {
        "carrier": ["UA", "AA", "UA", None, "DL", "AA"],
        "delay": pa.array([12, -3, None, 7, 40, 5], pa.int32()),
        "distance": [2475.0, 762.5, 1400.0, 529.0, None, 187.25],
        "day": pa.array([0, 1, 2, 366, 800, 31], pa.date32()),
    }
)
CARRIERS = pa.table({"carrier": ["UA", "AA", "B6"], "name": ["United", "American", "JetBlue"]})


def ibis() -> Any:
    """The package, once a test needs it."""
    return importlib.import_module("ibis")


Expression = Callable[[Any, Any], Any]
EXPRESSIONS: dict[str, Expression] = {
    "filter": lambda t, c: t.filter(t.delay > 0, t.carrier.notnull()).select("carrier", twice=t.delay * 2),
    "group": lambda t, c: t.group_by("carrier").agg(n=t.count(), mean=t.delay.mean(), far=t.distance.max()),
    "join": lambda t, c: t.join(c, "carrier").select("name", "delay"),
    "left": lambda t, c: t.left_join(c, "carrier").select("delay", "name"),
    "case": lambda t, c: t.mutate(late=ibis().cases((t.delay > 10, "late"), (t.delay > 0, "some"), else_="no")),
    "text": lambda t, c: c.mutate(up=c.name.upper(), n=c.name.length(), has=c.name.contains("e")),
    "dates": lambda t, c: t.mutate(y=t.day.year(), m=t.day.month()).group_by("y").agg(n=ibis()._.count()),
    "distinct": lambda t, c: t.select("carrier").distinct(),
    "limit": lambda t, c: t.order_by(t.delay.desc()).limit(2),
    "in": lambda t, c: t.filter(t.carrier.isin(["UA", "DL"])),
    "semi": lambda t, c: t.semi_join(c, "carrier"),
    "union": lambda t, c: t.select("carrier").union(c.select("carrier")),
    "window": lambda t, c: t.mutate(r=ibis().row_number().over(ibis().window(order_by=[t.distance, t.delay]))),
    "cast": lambda t, c: t.mutate(s=t.delay.cast("string"), f=t.delay.cast("float64") / 3),
}


@pytest.fixture(scope="module")
def both() -> Any:
    """(a connection of ours, one of DuckDB's), with the same tables."""
    connections = gpudb.connect(), duckdb.connect()
    for connection in connections:
        for name, rows in (("trips", TRIPS), ("carriers", CARRIERS)):
            connection.register("given", rows)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
            connection.unregister("given")
    return connections


def table(connection: gpudb.Connection, name: str) -> Any:
    """A table of ours as ibis's: its schema is all that ibis needs to know."""
    columns = connection.execute(f"SELECT * FROM {name} LIMIT 0").description
    from ibis.backends.sql.datatypes import DuckDBType

    return ibis().table({column: DuckDBType.from_string(str(kind)) for column, kind, *_ in columns}, name=name)


@pytest.mark.slow  # for ibis alone takes two seconds to load
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_what_ibis_writes_gives_what_it_gives_in_duckdb(name: str, both: Any) -> None:
    ours, theirs = both
    sql = str(ibis().to_sql(EXPRESSIONS[name](table(ours, "trips"), table(ours, "carriers")), dialect="duckdb"))
    found, expected = ours.execute(sql), theirs.execute(sql)
    assert [column[0] for column in found.description] == [column[0] for column in expected.description]
    assert sorted(map(repr, found.fetchall())) == sorted(map(repr, expected.fetchall()))
