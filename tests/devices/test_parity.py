"""One answer everywhere: every query gives the same bytes, or the same error, on every device, tile and thread count."""

from __future__ import annotations

import math
import random
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gpudb.devices.cpu import CpuDevice
from gpudb.devices.lanes import LanesDevice
from gpudb.devices.reference import ReferenceDevice
from gpudb.errors import DeviceError, Error
from gpudb.session import Database, Session
from tests.devices.queries import FAILING, QUERIES, content, database
from tests.devices.variants import OneDevice

DEVICES = {
    f"cpu, {threads} threads, tiles of {tile_rows}": (CpuDevice, threads, tile_rows)
    for threads in (1, 2, 3)
    for tile_rows in (64, 256, 1024, 4096)
}
LANES = {
    "lanes, 2 blocks, tiles of 64": (LanesDevice, 2, 64),
    "lanes, 3 blocks, tiles of 1024": (LanesDevice, 3, 1024),
}


@cache
def tables() -> Database:
    return database()


@cache
def session(name: str) -> Session:
    """A session of its own database, which shares the tables, on one device."""
    if name == "reference":
        device: Any = ReferenceDevice()
    else:
        make, threads, tile_rows = {**DEVICES, **LANES}[name]
        device = make(threads, tile_rows)
    shared = Database()
    shared.storage = tables().storage
    shared.devices = OneDevice(device)
    return Session(shared)


def answer(name: str, sql: str) -> pa.Table | str:
    """The result, or the error's text."""
    try:
        return session(name).execute(sql).table()
    except Error as error:
        return f"{type(error).__name__}: {error}"


def assert_same_answer(sql: str, name: str) -> None:
    expected, found = answer("reference", sql), answer(name, sql)
    assert isinstance(expected, str) == (sql in FAILING), expected
    if isinstance(expected, str) or isinstance(found, str):
        assert found == expected, name
        return
    for column in expected.column_names:
        one, other = expected.select([column]), found.select([column])
        assert content(one) == content(other), f"{name}: {column}: {difference(one, other)}"


def difference(one: pa.Table, other: pa.Table) -> str:
    """The first row in which two columns differ."""
    left, right = one.column(0).to_pylist(), other.column(0).to_pylist()
    if len(left) != len(right):
        return f"{len(right)} rows, not {len(left)}"
    row = next((k for k in range(len(left)) if repr(left[k]) != repr(right[k])), None)
    return "bytes that no value shows" if row is None else f"row {row} is {right[row]!r}, not {left[row]!r}"


@pytest.mark.slow
@pytest.mark.parametrize("sql", QUERIES + FAILING, ids=str)
def test_the_cpu_gives_the_bytes_of_the_reference_for_all_threads_and_tiles(sql: str) -> None:
    for name in DEVICES:
        assert_same_answer(sql, name)


@pytest.mark.parametrize("sql", QUERIES + FAILING, ids=str)
def test_the_cpu_gives_the_bytes_of_the_reference_for_any_threads_and_tiles(sql: str, sample_seed: int) -> None:
    for name in random.Random(f"{sample_seed} {sql}").sample(sorted(DEVICES), 3):
        assert_same_answer(sql, name)


@pytest.mark.parametrize("sql", QUERIES + FAILING, ids=str)
def test_lanes_give_the_bytes_of_the_reference(sql: str) -> None:
    for name in LANES:
        assert_same_answer(sql, name)


EVERY_DEVICE = ["reference", "cpu, 2 threads, tiles of 256", "lanes, 2 blocks, tiles of 64"]


@pytest.mark.parametrize("name", EVERY_DEVICE)
def test_sums_of_floats_are_exact_and_rounded_once(name: str) -> None:
    sql = "SELECT sum(air_time), sum(scattered), sum(speed), sum(x) FROM (SELECT *, scattered * scattered AS x FROM flights)"
    sums = [column[0].as_py() for column in session(name).execute(sql).table().columns]
    flights_read = tables().storage.snapshot()["flights"].to_arrow()
    columns = [flights_read[c].drop_null().to_pylist() for c in ("air_time", "scattered", "speed")]
    columns.append([x * x for x in columns[1]])
    assert sums == [math.fsum(column) for column in columns]


@pytest.mark.parametrize("name", EVERY_DEVICE)
def test_a_tiny_float_counts_when_large_ones_cancel(name: str) -> None:
    sql = (
        "SELECT g, sum(x), avg(x) FROM (VALUES (1, 1e270), (1, 1e-270), (1, -1e270), (2, 4e-324)) AS v(g, x) GROUP BY g"
    )
    sums = session(name).execute(sql).table()
    assert sums["sum(x)"].to_pylist() == [1e-270, 5e-324]


@pytest.mark.parametrize("name", EVERY_DEVICE)
def test_one_nan_leaves_the_machine(name: str) -> None:
    sql = """SELECT x - x AS a, (x - x)::REAL AS b, -(x - x) AS c, sqrt(-x) AS d, sum(x) - sum(x) AS e, avg(-y) AS f
             FROM (VALUES ('inf'::DOUBLE, 'nan'::DOUBLE)) AS v(x, y) GROUP BY x"""
    for column in session(name).execute(sql).table().columns:
        value = column.chunk(0).buffers()[1].to_pybytes()
        assert value == (np.float64("nan") if column.type == pa.float64() else np.float32("nan")).tobytes()


def test_the_reference_is_chosen_by_its_name_and_told_in_the_receipt() -> None:
    fresh = Session(Database())
    fresh.execute("SET device = 'reference'")
    result = fresh.execute("SELECT 1 + 1")
    assert result.table().column(0).to_pylist() == [2]
    assert result.receipt["device"] == "reference" and result.receipt["fallback"] is None


def test_without_a_library_or_compiler_queries_run_on_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_library(*_: Any) -> None:
        raise DeviceError("device cpu: no C++ compiler")

    monkeypatch.setattr("gpudb.kernels.host_build.host_library", no_library)
    result = Session(Database()).execute("SELECT 6 * 7")
    assert result.table().column(0).to_pylist() == [42]
    assert result.receipt["device"] == "reference" and "no C++ compiler" in result.receipt["fallback"]


@pytest.mark.parametrize("name", ["reference", "cpu, 2 threads, tiles of 64"])
@pytest.mark.parametrize("clauses", ["", " LIMIT 9000", " ORDER BY id", " ORDER BY id LIMIT 50 OFFSET 3"])
def test_every_nan_of_a_result_has_the_same_bits(name: str, clauses: str) -> None:
    found = answer(name, f"SELECT id, (month - 3) / (month - 3) * -1 AS x, ratio FROM flights WHERE id > 5{clauses}")
    assert isinstance(found, pa.Table)
    for column in ("x", "ratio"):
        values = found[column].fill_null(0).to_numpy()
        assert set(values[np.isnan(values)].view(np.uint64).tolist()) <= {0x7FF8000000000000}
    assert np.isnan(found["x"].to_numpy()).any()
