"""ORDER BY with LIMIT: rows that cannot be among the first are left out early, and the first are DuckDB's on every device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import gpudb
from gpudb.devices import Devices
from gpudb.devices.kernels import scattering_step
from gpudb.devices.lanes import LanesDevice

ROWS = 5_000
Engines = tuple[gpudb.Connection, duckdb.DuckDBPyConnection]


def frame() -> pa.Table:
    random = np.random.default_rng(5)
    nulls = random.random(ROWS) < 0.1

    def column(values: Any, kind: pa.DataType) -> pa.Array:
        return pa.array(values, kind, mask=nulls)

    texts = [f"t{number}" for number in random.integers(0, 900, ROWS)]
    return pa.table(
        {
            "id": pa.array(np.arange(ROWS), pa.int64()),
            "few": column(random.integers(-3, 3, ROWS), pa.int8()),
            "wide": column(random.integers(-(1 << 63), (1 << 63) - 1, ROWS), pa.int64()),
            "x": column(random.choice([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-300, 5.5], ROWS), pa.float64()),
            "text": column(np.array(texts, object), pa.string()),
            "day": column(random.integers(0, 20_000, ROWS).astype(np.int32), pa.date32()),
            "falling": pa.array(np.arange(ROWS)[::-1], pa.int32()),
        }
    )


@pytest.fixture(scope="module", params=["cpu", "two threads", "lanes", "reference"])
def engines(request: pytest.FixtureRequest) -> Iterator[Engines]:
    ours, oracle = gpudb.connect(), duckdb.connect()
    data = frame()
    for connection in (ours, oracle):
        connection.register("frame", data)
        connection.execute("CREATE TABLE t AS SELECT * FROM frame")
    ours.execute(f"SET device = '{'reference' if request.param == 'reference' else 'cpu'}'")
    ours.execute(f"SET threads = {2 if request.param == 'two threads' else 1}")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "lanes":
            lanes = LanesDevice(2, 256)
            patch.setattr(Devices, "choose", lambda self, settings: (lanes, "a test", None))
        yield ours, oracle


@pytest.mark.parametrize("key", ["few", "wide", "x", "text", "day", "falling", "wide::HUGEINT * 5", "few + id"])
@pytest.mark.parametrize("order", ["ASC NULLS FIRST", "ASC NULLS LAST", "DESC NULLS FIRST", "DESC NULLS LAST"])
def test_the_first_rows_are_duckdbs(engines: Engines, key: str, order: str) -> None:
    ours, oracle = engines
    for limit in ("7 OFFSET 3", "1000", "9000"):
        for where in ("TRUE", "id % 5 <> 0"):
            sql = f"SELECT id, text FROM t WHERE {where} ORDER BY {key} {order}, id LIMIT {limit}"
            assert ours.execute(sql).fetchall() == oracle.execute(sql).fetchall(), sql


def test_what_fails_in_a_row_that_is_not_among_the_first_still_fails(engines: Engines) -> None:
    for connection in engines:
        with pytest.raises((gpudb.Error, duckdb.Error)):
            connection.execute("SELECT 1 // (id - 4999) FROM t ORDER BY id LIMIT 1").fetchall()


@pytest.mark.parametrize("tiles", [1, 2, 3, 4, 5, 6, 30, 64, 977, 1000])
def test_a_step_visits_every_tile(tiles: int) -> None:
    step = scattering_step(tiles)
    assert sorted(n * step % tiles for n in range(tiles)) == list(range(tiles))
