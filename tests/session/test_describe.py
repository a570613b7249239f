"""What a statement would give, told without running it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudb import errors
from gpudb.planner import statements
from gpudb.session import Database, Description, Session


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a + 5, b FROM t",
        "INSERT INTO t VALUES (1, 'x') RETURNING a AS one, *",
        "UPDATE t SET a = 2 RETURNING b",
        "DELETE FROM t RETURNING *",
        "EXPLAIN SELECT a FROM t",
        "EXPLAIN ANALYZE SELECT a FROM t",
        "EXPLAIN MEMORY SELECT a FROM t",
        "EXPLAIN INSERT INTO t VALUES (1, 'x')",
        "EXPLAIN TRUNCATE t",
        "DESCRIBE t",
        "SHOW TABLES",
        "SHOW threads",
        "SHOW device",
    ],
)
def test_the_schema_is_that_of_the_rows_and_nothing_is_run(sql: str) -> None:
    session = Session(Database())
    session.execute("CREATE TABLE t(a INTEGER, b VARCHAR)")
    session.execute("INSERT INTO t VALUES (1, 'y')")
    described = session.describe(sql)
    assert session.execute("SELECT a, b FROM t").table().to_pylist() == [{"a": 1, "b": "y"}]
    assert described.schema.equals(session.execute(sql).schema)


@pytest.mark.parametrize(
    "sql, kind",
    [
        ("INSERT INTO t VALUES (1)", statements.Insert),
        ("CREATE TABLE u AS SELECT 1 AS a", statements.CreateTableAs),
        ("SET threads = 1", statements.Set),
        ("BEGIN", statements.Begin),
    ],
)
def test_a_statement_without_rows_has_no_schema(sql: str, kind: type) -> None:
    session = Session(Database())
    session.execute("CREATE TABLE t(a INTEGER)")
    assert session.describe(sql) == Description(kind, None)
    assert session.tables() == ["t"] and session.transaction is None


def test_a_query_of_a_described_shape_finds_its_plan() -> None:
    session = Session(Database())
    described = session.describe("SELECT ? + 1, 'a'", [1])
    result = session.execute("SELECT ? + 1, 'b'", [2])
    assert result.receipt["plan_cached"]
    assert [field.type for field in described.schema] == [field.type for field in result.schema]
    assert session.describe("SELECT ? + 1, 'c'", [3]).schema.names[1] == "'c'"


def test_a_query_over_files_is_described_without_reading_their_rows(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text("a,b\n1,x\n")
    session = Session(Database())
    sql = f"SELECT a + 1 AS c, b FROM '{path}'"
    assert session.describe(sql).schema.equals(session.execute(sql).schema)


def test_errors_are_those_of_running_it() -> None:
    session = Session(Database())
    with pytest.raises(errors.BindError, match=r"(?s)column not found: nope.*SELECT nope"):
        session.describe("SELECT nope FROM (SELECT 1 AS a)")
