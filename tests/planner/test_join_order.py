"""The order of joins: by statistics, never through a product of what conditions tie together, and the same rows in any order."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pyarrow as pa
import pytest

import gpudb

duckdb = pytest.importorskip("duckdb")

ROWS = {"fact": 20_000, "large": 2_000, "middle": 200, "small": 20, "tiny": 4}


@pytest.fixture(scope="module")
def connections() -> tuple[gpudb.Connection, duckdb.DuckDBPyConnection]:
    """Tables of one id column each, unique but in `fact`, and columns that refer to every other table; some are NULL."""
    draw = random.Random(0)
    ours, theirs = gpudb.connect(), duckdb.connect()
    for name, rows in ROWS.items():
        columns = {f"{name}_id": [draw.randrange(rows // 2) if name == "fact" else row for row in range(rows)]}
        for other, size in ROWS.items():
            if other != name:
                columns[f"{name}_{other}"] = [
                    None if draw.random() < 0.05 else draw.randrange(size) for _ in range(rows)
                ]
        columns[f"{name}_v"] = [draw.randrange(10) for _ in range(rows)]
        table = pa.table({column: pa.array(values, pa.int32()) for column, values in columns.items()})
        for connection in (ours, theirs):
            connection.register("made", table)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM made")
    return ours, theirs


def scans(ours: gpudb.Connection, sql: str) -> list[str]:
    """The tables of a plan, as EXPLAIN shows them from top to bottom: of a join the left input first."""
    lines = [str(row[2] if isinstance(row[2], str) else row[0]) for row in ours.execute(f"EXPLAIN {sql}").fetchall()]
    return [line.split()[1] for line in lines if line.strip().startswith("Scan ")]


def joined(*tables: str) -> str:
    return f"SELECT count(*) FROM {', '.join(tables)}"


@pytest.fixture(scope="module")
def sized() -> gpudb.Connection:
    """Tables of numbers of rows that the catalog tells apart: it rounds them up to powers of two, and small ones further."""
    connection = gpudb.connect()
    for name, rows, other in (("a", 300_000, 100_000), ("b", 100_000, 20_000), ("c", 20_000, 10)):
        connection.execute(
            f"CREATE TABLE {name} AS SELECT i AS {name}_id, i % {other} AS {name}_k FROM range({rows}) t(i)"
        )
    return connection


@pytest.mark.parametrize("tables", list(itertools.permutations("abc")))
def test_the_largest_input_streams_and_the_others_are_indexed(sized: gpudb.Connection, tables: tuple[str, ...]) -> None:
    assert scans(sized, f"{joined(*tables)} WHERE a_k = b_id AND b_k = c_id")[0] == "a"
    assert sized.execute(f"{joined(*tables)} WHERE a_k = b_id AND b_k = c_id").fetchone() == (300_000,)


def test_a_filtered_input_joins_before_others(sized: gpudb.Connection) -> None:
    plan = scans(sized, f"{joined('a', 'b', 'c')} WHERE a_k = b_id AND b_k = c_id AND c_k = 7")
    assert plan == ["a", "b", "c"], "b, which c leaves little of, is joined with c before a looks anything up"


def test_inputs_that_nothing_ties_together_do_not_meet_before_they_must(
    connections: tuple[gpudb.Connection, object],
) -> None:
    sql = f"{joined('large', 'middle', 'fact')} WHERE fact_large = large_id AND fact_middle = middle_id"
    plan = "\n".join(str(row) for row in connections[0].execute(f"EXPLAIN {sql}").fetchall())
    assert connections[0].execute(sql).receipt["tiles_run"] < 200, plan  # 400,000 pairs would be as many tiles more


@pytest.mark.parametrize("seed", range(24))
def test_any_joins_of_several_tables_have_the_rows_of_duckdb(
    connections: tuple[gpudb.Connection, duckdb.DuckDBPyConnection], seed: int
) -> None:
    draw = random.Random(seed)
    aliases = {f"t{k}": draw.choice(list(ROWS)[1:] if k else list(ROWS)) for k in range(draw.randint(2, 6))}
    names = list(aliases)

    def reference(one: str, other: str) -> str:
        """An equality of a column of `one` that refers to the table of `other`, if it has one, and its id."""
        column = f"{aliases[one]}_{aliases[other]}" if aliases[one] != aliases[other] else f"{aliases[one]}_id"
        return f"{one}.{column} = {other}.{aliases[other]}_id"

    terms = [reference(draw.choice(names[:k]), name) for k, name in enumerate(names) if k]
    for _ in range(draw.randint(0, 3)):
        one, other = draw.choice(names), draw.choice(names)
        terms.append(
            draw.choice(
                [
                    f"{one}.{aliases[one]}_v {draw.choice(['<', '=', '<>'])} {draw.randrange(10)}",
                    f"{one}.{aliases[one]}_v + {other}.{aliases[other]}_v > {draw.randrange(15)}",
                    f"{one}.{aliases[one]}_v IS NOT DISTINCT FROM {other}.{aliases[other]}_v",
                    f"({one}.{aliases[one]}_v = 3 OR {other}.{aliases[other]}_v = 4)",
                ]
            )
        )
    columns = ", ".join(f"{name}.{aliases[name]}_id AS {name}" for name in names)
    tables = ", ".join(f"{table} {name}" for name, table in aliases.items())
    sql = f"SELECT {columns} FROM {tables} WHERE {' AND '.join(terms)}"
    if draw.random() < 0.3:
        last = names[-1]
        sql = f"SELECT {columns} FROM {tables.rsplit(', ', 1)[0]} LEFT JOIN {aliases[last]} {last} ON {terms.pop(len(names) - 2)}"
        kept = [term for term in terms if f"{last}." not in term or draw.random() < 0.5]
        sql = sql.replace(", ", " CROSS JOIN ").replace(
            f"SELECT {columns.replace(', ', ' CROSS JOIN ')}", f"SELECT {columns}"
        )
        sql += f" WHERE {' AND '.join(kept)}" if kept else ""
    ours, theirs = connections
    wanted = theirs.execute(f"SELECT count(*) FROM ({sql})").fetchone()
    assert wanted is not None
    if wanted[0] > 300_000:
        pytest.skip("too many rows to compare")
    assert Counter(ours.execute(sql).fetchall()) == Counter(theirs.execute(sql).fetchall()), sql


def test_a_fact_is_streamed_past_dimensions_whose_rows_the_bounds_exaggerate() -> None:
    connection = gpudb.connect()
    connection.execute("CREATE TABLE few AS SELECT 'C' || range AS name, range % 3 AS kind FROM range(20)")
    connection.execute("CREATE TABLE many AS SELECT 'C' || range % 20 AS name, range % 365 AS day FROM range(300000)")
    sql = "EXPLAIN SELECT count(*) FROM many JOIN few USING (name) WHERE kind = 1"
    scans = [row[2].split()[1] for row in connection.execute(sql).fetchall() if row[0] is None and "Scan" in row[2]]
    assert scans == ["many", "few"]
