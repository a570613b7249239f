"""Random inserts, upserts, updates and merges of tables with keys: each is refused, or leaves the rows, that DuckDB refuses or leaves."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import gpudb
from gpudb.errors import IntegrityError

TABLES = (
    "CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER UNIQUE, c VARCHAR NOT NULL, d DOUBLE CHECK (d < 90))",
    "CREATE TABLE t (a INTEGER, b INTEGER, c VARCHAR, d DOUBLE, PRIMARY KEY (c, a), CHECK (b > 0 OR d IS NULL))",
    "CREATE TABLE t (a INTEGER UNIQUE, b INTEGER, c VARCHAR DEFAULT 'x', d DOUBLE UNIQUE)",
    "CREATE TABLE t (a INTEGER, b INTEGER NOT NULL, c VARCHAR UNIQUE, d DOUBLE)",
)
TARGETS = ("a", "c, a", "a", "c")  # of ON CONFLICT DO UPDATE, one for each table


class Statements:
    """Draws statements about `t`; `target` names a key of it."""

    def __init__(self, chance: random.Random, target: str) -> None:
        self.chance = chance
        self.target = target

    def value(self, kind: str) -> str:
        if self.chance.random() < 0.12:
            return "NULL"
        number = self.chance.randrange(40)
        return {"c": f"'w{number % 25}'", "d": f"{number * 2.5}"}.get(kind, str(number))

    def row(self) -> str:
        return f"({', '.join(self.value(column) for column in 'abcd')})"

    def source(self) -> str:
        if self.chance.random() < 0.7:
            return f"VALUES {', '.join(self.row() for _ in range(self.chance.randrange(1, 5)))}"
        return f"SELECT a + {self.chance.randrange(30)}, b + 1, c, d FROM t WHERE a % {self.chance.randrange(2, 5)} = 0"

    def condition(self) -> str:
        column = self.chance.choice("abd")
        return f"t.{column} {self.chance.choice(['<', '=', '>', 'IS DISTINCT FROM'])} {self.chance.randrange(40)}"

    def insert(self) -> str:
        return f"INSERT INTO t {self.source()}"

    def ignore(self) -> str:
        if "UNIQUE" not in self.target and self.chance.random() < 0.5:
            return f"INSERT INTO t {self.source()} ON CONFLICT ({self.target}) DO NOTHING"
        return f"INSERT OR IGNORE INTO t {self.source()}"

    def upsert(self) -> str:
        changes = self.chance.choice(
            ["b = excluded.b", "d = excluded.d, b = t.b + 1", "d = NULL", "b = b + excluded.b"]
        )
        where = f" WHERE {self.condition()}" if self.chance.random() < 0.4 else ""
        return f"INSERT INTO t {self.source()} ON CONFLICT ({self.target}) DO UPDATE SET {changes}{where}"

    def update(self) -> str:
        column = self.chance.choice("abcd")
        value = self.chance.choice(
            [self.value(column), self.value(column), f"{column}", {"c": "c || 'x'"}.get(column, f"{column} + 1")]
        )
        return f"UPDATE t SET {column} = {value} WHERE {self.condition()}"

    def delete(self) -> str:
        return f"DELETE FROM t WHERE {self.condition()} AND b % 3 = 0"

    def merge(self) -> str:
        keys = self.chance.sample(
            range(40), self.chance.randrange(1, 5)
        )  # of several rows for one the order would count
        rows = ", ".join(f"({key}, {', '.join(self.value(column) for column in 'bcd')})" for key in keys)
        whens = [
            f"WHEN MATCHED AND {self.condition()} THEN DELETE",
            "WHEN MATCHED THEN UPDATE SET b = s.b",
            f"WHEN MATCHED AND {self.condition()} THEN UPDATE SET d = coalesce(s.d, t.d) + 1, c = s.c",
            "WHEN MATCHED THEN DO NOTHING",
            "WHEN NOT MATCHED AND s.b > 20 THEN INSERT (a, c, b) VALUES (s.a, s.c, s.b)",
            "WHEN NOT MATCHED THEN INSERT BY NAME",
            f"WHEN NOT MATCHED BY SOURCE AND {self.condition()} THEN UPDATE SET d = d - 1",
            "WHEN NOT MATCHED BY SOURCE AND t.a % 7 = 0 THEN DELETE",
        ]
        chosen = sorted(self.chance.sample(whens, self.chance.randrange(1, 4)), key=lambda when: " AND " not in when)
        last = {when.partition(" THEN")[0]: when for when in chosen}  # nothing may follow one without a condition
        return f"MERGE INTO t USING (VALUES {rows}) AS s(a, b, c, d) ON t.a = s.a {' '.join(last.values())}"

    def draw(self) -> str:
        kinds: list[Callable[[], str]] = [self.insert, self.insert, self.ignore, self.upsert, self.upsert, self.update]
        return self.chance.choice([*kinds, self.update, self.delete, self.merge, self.merge])()


def outcome(connection: object, sql: str) -> str:
    try:
        connection.execute(sql)  # type: ignore[attr-defined]
    except (duckdb.ConstraintException, IntegrityError):
        return "refused"
    return "done"


def rows(connection: object) -> list[tuple[object, ...]]:
    return sorted(connection.execute("SELECT * FROM t").fetchall(), key=repr)  # type: ignore[attr-defined]


def compare(seed: int, steps: int, path: str) -> None:
    chance = random.Random(seed)
    table = chance.randrange(len(TABLES))
    with duckdb.connect() as oracle, gpudb.connect(path) as ours:
        for connection in (oracle, ours):
            connection.execute(TABLES[table])
        drawn = Statements(chance, TARGETS[table])
        for step in range(steps):
            sql = drawn.draw()
            expected = outcome(oracle, sql)
            assert outcome(ours, sql) == expected, f"seed {seed}, step {step}: {sql}"
            assert rows(ours) == rows(oracle), f"seed {seed}, step {step}: {sql}"
        kept = rows(ours)
    if path != ":memory:":
        with gpudb.connect(path) as again:
            assert rows(again) == kept
            assert outcome(again, "INSERT INTO t SELECT * FROM t") == ("refused" if kept else "done")


@pytest.mark.parametrize("seed", range(4))
def test_what_keys_let_in_is_what_duckdb_lets_in(seed: int, tmp_path: Path) -> None:
    compare(seed, 12, str(tmp_path / "db") if seed % 2 else ":memory:")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 116))
def test_what_keys_let_in_is_what_duckdb_lets_in_for_longer(seed: int, tmp_path: Path) -> None:
    compare(seed, 40, str(tmp_path / "db") if seed % 3 == 0 else ":memory:")
