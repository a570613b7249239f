"""Random joins and subqueries, run: DuckDB's rows, the same bytes on `cpu` (its memory poisoned), `reference` and (some)
on `lanes`, nothing done on the host."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpudb
from benchmarks.equality import difference
from gpudb.devices.lanes import LanesDevice
from tests.devices.poisoned import PoisonedDevice
from tests.devices.queries import content
from tests.sql import random_joins, random_subqueries
from tests.sql.random_joins import queries
from tests.sql.runner import plain_type

MOST_ROWS = 60_000  # of an answer: the rest tells nothing new


@dataclass(frozen=True)
class Tables:
    """How many rows the tables l, r and t have, and what is in them."""

    rows: tuple[int, int, int]
    style: str


class OneDevice:
    """Chooses the same device whatever the settings say."""

    def __init__(self, device: Any) -> None:
        self.device = device

    def choose(self, settings: Any) -> tuple[Any, str, None]:
        return self.device, "a test", None


@cache
def lanes() -> LanesDevice:
    return LanesDevice(2, 64)


@cache
def poisoned() -> PoisonedDevice:
    return PoisonedDevice(2)


class Engines:
    """The same three tables in DuckDB and in gpudb, on every device."""

    def __init__(self, tables: Tables) -> None:
        data = {
            name: random_joins.table(name, rows, tables.style) for name, rows in zip("lrt", tables.rows, strict=True)
        }
        self.oracle = duckdb.connect(config={"threads": "1"})
        self.devices = {}
        for device in ("cpu", "reference", "lanes"):
            connection = self.devices[device] = gpudb.connect()
            if device == "reference":
                connection.execute("SET device = 'reference'")
            else:
                connection.session.database.devices = OneDevice(lanes() if device == "lanes" else poisoned())
        for name, table in data.items():
            for engine in (self.oracle, *self.devices.values()):
                engine.register("source", table)
                engine.execute(f"CREATE TABLE {name} AS SELECT * FROM source")
                engine.unregister("source")


@lru_cache(maxsize=24)  # of the slow tests' hundreds of sizes, tables and engines would take gigabytes
def engines(tables: Tables) -> Engines:
    return Engines(tables)


def check(tables: Tables, sql: str, devices: tuple[str, ...] = ("cpu", "reference")) -> None:
    both = engines(tables)
    try:
        size = both.oracle.sql(f"SELECT count(*) FROM ({sql})").fetchall()[0][0]
        if size > MOST_ROWS:
            return
        expected = both.oracle.sql(sql).to_arrow_table()
    except duckdb.NotImplementedException:
        return  # IN of several columns in a subquery that looks at a row outside
    except duckdb.Error as error:
        with pytest.raises(gpudb.Error):
            both.devices[devices[0]].execute(sql)
        assert isinstance(error, duckdb.Error)
        return
    answers = []
    for device in devices:
        cursor = both.devices[device].execute(sql)
        answers.append(cursor.fetch_arrow_table())
        assert cursor.receipt["host_rows"] == 0 and cursor.receipt["fallback"] is None
    for device, answer in zip(devices[1:], answers[1:], strict=True):
        assert content(answer) == content(answers[0]), f"{devices[0]} and {device} differ on {tables}\n{sql}"
    found = answers[0]
    assert found.column_names == expected.column_names, sql
    assert found.schema.types == [plain_type(field.type) for field in expected.schema], f"{sql}\n{expected.schema}"
    names = [str(position) for position in range(found.num_columns)]
    problem = difference(found.rename_columns(names), expected.rename_columns(names), values_only=True)
    assert problem is None, f"{tables}\n{sql}\n{problem}"


ANY_ROWS = st.sampled_from(random_joins.ROWS)
TABLES = st.builds(
    Tables,
    st.sampled_from(
        [(40, 3, 1), (0, 40, 3), (40, 0, 40), (1023, 40, 3), (40, 1024, 1), (1025, 1025, 40), (1024, 1, 1023)]
    ),
    st.sampled_from(["few", "many", "sparse"]),
)


@settings(max_examples=150)
@given(tables=TABLES, sql=queries())
def test_random_joins_give_duckdbs_rows_on_cpu_and_reference(tables: Tables, sql: str) -> None:
    check(tables, sql)


@settings(max_examples=25)
@given(
    tables=st.builds(
        Tables, st.sampled_from([(40, 130, 3), (130, 40, 1), (0, 3, 40)]), st.sampled_from(["few", "many"])
    ),
    sql=queries(),
)
def test_random_joins_give_the_same_bytes_on_lanes(tables: Tables, sql: str) -> None:
    check(tables, sql, ("lanes", "cpu"))


@pytest.mark.slow
@settings(max_examples=600, derandomize=False)
@given(
    tables=st.builds(Tables, st.tuples(ANY_ROWS, ANY_ROWS, ANY_ROWS), st.sampled_from(["few", "many", "sparse"])),
    sql=queries(),
)
def test_hundreds_of_random_joins_give_duckdbs_rows(tables: Tables, sql: str) -> None:
    check(tables, sql)


@settings(max_examples=40)
@given(
    tables=st.builds(
        Tables, st.sampled_from([(40, 40, 3), (0, 40, 3), (40, 0, 40), (130, 40, 40)]), st.sampled_from(["few", "many"])
    ),
    sql=random_subqueries.queries(),
)
def test_random_subqueries_give_duckdbs_rows_on_cpu_and_reference(tables: Tables, sql: str) -> None:
    check(tables, sql)


@pytest.mark.slow
@settings(max_examples=500, derandomize=False)
@given(
    tables=st.builds(
        Tables,
        st.tuples(*[st.sampled_from([0, 1, 3, 40, 1025])] * 3),
        st.sampled_from(["few", "many", "sparse"]),
    ),
    sql=random_subqueries.queries(),
)
def test_hundreds_of_random_subqueries_give_duckdbs_rows(tables: Tables, sql: str) -> None:
    check(tables, sql)


def test_a_subquery_without_rows_reads_nothing_behind_its_matches() -> None:
    sql = (
        "SELECT l.u, (SELECT r.s FROM r WHERE l.d92 IS NOT DISTINCT FROM r.d92 AND r.u = l.u + 1 AND r.ti < 3"
        " ORDER BY r.u LIMIT 1) AS a FROM l"
    )
    check(Tables((40, 0, 1), "many"), sql)
