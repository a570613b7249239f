"""Random databases: DuckDB's answers on every device, and answers that agree with each other (TLP and NoREC).

A failure names its seed and number: `python -m tests.sql.test_random_databases SEED NUMBER` runs that one again.

TLP (Rigger and Su 2020, "Finding Bugs in Database Systems via Query Partitioning"): the rows for which a condition is TRUE,
FALSE and NULL are all rows.  NoREC (Rigger and Su 2020, "Detecting Optimization Bugs in Database Engines via Non-Optimizing
Reference Engine Construction"): a filter keeps the rows for which the condition, computed as a value, is TRUE.
"""

from __future__ import annotations

import sys
from collections import Counter
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import gpudb
from benchmarks.equality import difference
from tests.devices.queries import content
from tests.sql.random_databases import Generator
from tests.sql.runner import plain_type
from tests.sql.test_random_joins import OneDevice, lanes

MOST_ROWS = 20_000  # of an answer: the rest tells nothing new
QUERIES = 8  # of one database, in the quick set
SLOW_QUERIES = 40
REFUSALS = ("in a subquery that looks at a row outside", "values beyond 64 bits are not supported")
DEVICES = ("cpu", "reference", "lanes")


class Engines:
    """The tables of a seed in DuckDB and in gpudb, on every device; tiles are small, so that few rows are several."""

    def __init__(self, seed: int) -> None:
        self.generator = Generator(seed)
        self.oracle = duckdb.connect(config={"threads": "1"})
        self.devices = {device: gpudb.connect() for device in DEVICES}
        self.devices["lanes"].session.database.devices = OneDevice(lanes())
        self.devices["reference"].execute("SET device = 'reference'")
        self.devices["cpu"].execute("SET device = 'cpu'")
        self.devices["cpu"].execute("SET tile_rows = 64")
        for name, table in self.generator.tables.items():
            for engine in (self.oracle, *self.devices.values()):
                engine.register("source", table)
                engine.execute(f"CREATE TABLE {name} AS SELECT * FROM source")
                engine.unregister("source")


@cache
def engines(seed: int) -> Engines:
    return Engines(seed)


def check_answer(seed: int, number: int) -> bool:
    """DuckDB's rows, the same bytes on two devices; False where the query is beyond one of the two engines."""
    both = engines(seed)
    sql = both.generator.query(number)
    where = f"\nseed {seed}, number {number}\n{sql}\n"
    try:
        if both.oracle.sql(f"SELECT count(*) FROM ({sql})").fetchall()[0][0] > MOST_ROWS:
            return False
        expected = both.oracle.sql(sql).to_arrow_table()
    except duckdb.Error as error:
        assert not isinstance(error, duckdb.InternalException | duckdb.ParserException), f"{where}{error}"
        return False
    devices = ("cpu", "lanes" if number % 5 == 0 else "reference")
    answers = []
    for device in devices:
        try:
            cursor = both.devices[device].execute(sql)
        except gpudb.NotSupportedError as error:
            assert any(part in str(error) for part in REFUSALS), f"{where}{error}"
            return False
        except gpudb.Error as error:
            raise AssertionError(f"only gpudb fails{where}{error}") from error
        answers.append(cursor.fetch_arrow_table())
        assert cursor.receipt["host_rows"] == 0 and cursor.receipt["fallback"] is None, where
    found, other = answers
    assert content(found) == content(other), f"{devices[0]} and {devices[1]} differ{where}"
    assert found.schema.types == [plain_type(field.type) for field in expected.schema], f"{where}{expected.schema}"
    names = [str(position) for position in range(found.num_columns)]
    problem = difference(found.rename_columns(names), expected.rename_columns(names), values_only=True)
    assert problem is None, f"{where}{problem}"
    return True


def rows(table: pa.Table) -> Counter[Any]:
    """A multiset of rows; NaN is equal to itself."""
    columns = [[repr(value) for value in column.to_pylist()] for column in table.columns]
    return Counter(zip(*columns, strict=True))


def check_partitions(seed: int, number: int) -> bool:
    """TLP and NoREC of one relation and condition; False where they are beyond us."""
    both = engines(seed)
    relation, condition = both.generator.filtered(number)
    connection = both.devices["cpu"]
    names = ", ".join(dict.fromkeys(name for name, _ in relation.columns))
    all_rows = f"SELECT {names} FROM {relation.sql}"
    where = f"\nseed {seed}, filter {number}\n{all_rows} WHERE {condition}\n"
    try:
        if both.oracle.sql(f"SELECT count(*) FROM {relation.sql}").fetchall()[0][0] > MOST_ROWS:
            return False
        whole = rows(connection.execute(all_rows).fetch_arrow_table())
        parts = [
            connection.execute(f"{all_rows} WHERE {part}").fetch_arrow_table()
            for part in (condition, f"NOT {condition}", f"{condition} IS NULL")
        ]
        values = connection.execute(f"SELECT {condition} AS v FROM {relation.sql}").fetch_arrow_table()
    except (gpudb.NotSupportedError, duckdb.Error):
        return False  # said why, or not, by `check_answer`
    except gpudb.Error as error:
        raise AssertionError(f"only gpudb fails{where}{error}") from error
    assert sum((rows(part) for part in parts), Counter()) == whole, f"TLP: the parts are not the whole{where}"
    kept = sum(value is True for value in values.column(0).to_pylist())
    assert kept == parts[0].num_rows, f"NoREC: {parts[0].num_rows} rows are kept, {kept} are TRUE{where}"
    return True


def check_database(seed: int, queries: int) -> None:
    """So many queries and partitions of a seed; most of them must be within our reach."""
    done = [check(seed, number) for number in range(queries) for check in (check_answer, check_partitions)]
    engines.cache_clear()
    assert sum(done) >= len(done) / 2, f"seed {seed}: too little was compared: {sum(done)} of {len(done)}"


def test_random_databases_give_answers_that_agree(sample_seed: int) -> None:
    check_database(sample_seed, QUERIES)


@pytest.mark.slow
@pytest.mark.parametrize("nth", range(50))
def test_2000_random_queries_give_answers_that_agree(sample_seed: int, nth: int) -> None:
    check_database(sample_seed + 1 + nth, SLOW_QUERIES)


if __name__ == "__main__":
    chosen_seed, *numbers = map(int, sys.argv[1:])
    for chosen in numbers or range(SLOW_QUERIES):
        check_answer(chosen_seed, chosen)
        check_partitions(chosen_seed, chosen)
