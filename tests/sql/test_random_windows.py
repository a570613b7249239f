"""Random window functions, run: DuckDB's rows, the same bytes on `cpu`, `reference` and (some) on `lanes`, nothing on the host."""

from __future__ import annotations

from functools import cache
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpudb
from benchmarks.equality import difference
from tests.devices.queries import content
from tests.sql import random_windows
from tests.sql.runner import plain_type
from tests.sql.test_random_joins import OneDevice, lanes, poisoned


@cache
def engines(rows: int, style: str) -> dict[str, Any]:
    """The same table t in DuckDB and in gpudb, on every device."""
    found: dict[str, Any] = {"oracle": duckdb.connect(config={"threads": "1"})}
    for device in ("cpu", "reference", "lanes"):
        connection = found[device] = gpudb.connect()
        if device == "reference":
            connection.execute("SET device = 'reference'")
        else:
            connection.session.database.devices = OneDevice(lanes() if device == "lanes" else poisoned())
    for engine in found.values():
        engine.register("source", random_windows.table(rows, style))
        engine.execute("CREATE TABLE t AS SELECT * FROM source")
        engine.unregister("source")
    return found


def check(rows: int, style: str, sql: str, devices: tuple[str, ...]) -> None:
    there = engines(rows, style)
    try:
        expected = there["oracle"].sql(sql).to_arrow_table()
    except duckdb.Error:  # an overflow
        with pytest.raises(gpudb.Error):
            there[devices[0]].execute(sql).fetch_arrow_table()
        return
    answers = []
    for device in devices:
        cursor = there[device].execute(sql)
        answers.append(cursor.fetch_arrow_table())
        assert cursor.receipt["host_rows"] == 0 and cursor.receipt["fallback"] is None
    for device, answer in zip(devices[1:], answers[1:], strict=True):
        assert content(answer) == content(answers[0]), f"{devices[0]} and {device} differ on {rows} {style}\n{sql}"
    found = answers[0]
    assert found.schema.types == [plain_type(field.type) for field in expected.schema], f"{sql}\n{expected.schema}"
    names = [str(position) for position in range(found.num_columns)]
    problem = difference(found.rename_columns(names), expected.rename_columns(names), values_only=True)
    assert problem is None, f"{rows} {style}\n{sql}\n{problem}"


STYLES = st.sampled_from(["tame", "sparse", "extreme"])


@settings(max_examples=60)
@given(rows=st.sampled_from([0, 1, 40, 1023, 1025]), style=STYLES, data=st.data())
def test_random_windows_give_duckdbs_rows_on_cpu_and_reference(rows: int, style: str, data: st.DataObject) -> None:
    check(rows, style, data.draw(random_windows.queries(style != "extreme")), ("cpu", "reference"))


@settings(max_examples=12)
@given(rows=st.sampled_from([0, 1, 40, 130]), style=STYLES, data=st.data())
def test_random_windows_give_the_same_bytes_on_lanes(rows: int, style: str, data: st.DataObject) -> None:
    check(rows, style, data.draw(random_windows.queries(style != "extreme")), ("lanes", "cpu"))


@pytest.mark.slow
@settings(max_examples=500, derandomize=False)
@given(rows=st.sampled_from([0, 1, 40, 1023, 1025, 4096]), style=STYLES, data=st.data())
def test_hundreds_of_random_windows_give_duckdbs_rows(rows: int, style: str, data: st.DataObject) -> None:
    check(rows, style, data.draw(random_windows.queries(style != "extreme")), ("cpu",))
