"""A row that fails leaves garbage behind it: nothing may be written or read where such a value points."""

from __future__ import annotations

import pytest

import gpudb

FAILING = [
    "SELECT t * t AS k, count(*) FROM tiny GROUP BY k",
    "SELECT CAST(i AS TINYINT) AS k, sum(i) FROM tiny GROUP BY k",
    "SELECT CAST(t * t AS VARCHAR) FROM tiny",
    "SELECT CAST(CAST(i AS TINYINT) AS VARCHAR) AS k, count(*) FROM tiny GROUP BY k",
    "SELECT count(DISTINCT t * t) FROM tiny",
]


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("sql", FAILING)
def test_a_failing_row_is_an_error_and_writes_nowhere(sql: str, device: str) -> None:
    connection = gpudb.connect()
    connection.execute(f"SET device = '{device}'")
    connection.execute("CREATE TABLE tiny (t TINYINT, i INTEGER)")
    connection.execute("INSERT INTO tiny VALUES (1, 1), (127, 2000000000), (-128, -2000000000), (3, 3)")
    for _ in range(20):
        with pytest.raises(gpudb.Error, match="TINYINT"):
            connection.execute(sql)
    assert connection.execute("SELECT count(*), sum(t) FROM tiny").fetchone() == (4, 3)
