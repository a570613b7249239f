"""The check of a GPU runs where there is none: on stand-ins, in small, and it finds what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.gpu_check import faults, figures, parity, tables
from benchmarks.gpu_check.__main__ import STAND_IN, main
from benchmarks.gpu_check.budget import Budget
from benchmarks.gpu_check.machine import open_machine
from benchmarks.gpu_check.made_tables import ON_THE_HOST, Made, make
from benchmarks.report import Report
from benchmarks.virginia.queries import make_queries

MADE = [tables.flights(), tables.virginia(), tables.narrow(), tables.keys(1000, True), tables.keys(1000, False)]


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def run(path: Path, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    """The check's status and its lines, the summary last."""
    status = main(["--json", str(path), *arguments])
    return status, lines_of(path)


def test_every_figure_is_measured_on_the_cpu(tmp_path: Path) -> None:
    status, lines = run(
        tmp_path / "lines", "--on", "cpu", "--minutes", "10", "--rows", "3000", "--parts", "figures,faults"
    )
    assert status == 0 and lines[-1]["summary"]["good"] == {"figures": True, "faults": True}
    assert lines[0]["part"] == "start" and lines[0]["stands_in"] and set(lines[0]["would_use"]) == {"duckdb"}
    assert {
        line["fault"]: line["left_out"] for line in lines if line.get("part") == "faults"
    }.keys() == faults.FAULTS.keys()
    named = {line.get("figure") for line in lines}
    assert {f"flights Q{number}" for number in range(1, 18)} | {
        f"virginia {number}" for number in range(1, 14)
    } <= named
    assert {"copy bandwidth", "a new shape", "group by dense key of 1,000", "group by scattered key of 10"} <= named
    assert not [line for line in lines if "error" in line or line.get("problem")]
    measured = [line for line in lines if line.get("part") == "figures" and "device_s" in line]
    assert len(measured) > 40 and all(line["of_copy"] is not None and line["device_s"] > 0 for line in measured)


@pytest.mark.slow
def test_parity_is_sampled_until_the_time_is_over(tmp_path: Path) -> None:
    status, lines = run(tmp_path / "lines", "--on", "cpu", "--minutes", "0.2", "--parts", "parity", "--seed", "3")
    sets = [line for line in lines if line.get("part") == "parity"]
    assert status == 0 and sets[0]["queries"] > 0 and not any(line["differing"] for line in sets)
    assert all(line["seed"] == 3 and line["against"] == "cpu" for line in sets)


@pytest.mark.slow
def test_without_time_nothing_is_measured_and_the_lines_say_so(tmp_path: Path) -> None:
    _, lines = run(tmp_path / "lines", "--on", "cpu", "--minutes", "0")
    assert {line["left_out"] for line in lines if line.get("part") == "figures" and "left_out" in line} == {
        "no time left"
    }
    assert not [line for line in lines if line.get("part") == "parity"]


def test_parity_finds_a_device_whose_answers_differ_in_a_byte(tmp_path: Path) -> None:
    report = Report(str(tmp_path / "lines"))
    with open_machine("cpu") as machine:
        assert parity.check(machine, Budget(3), 1, report)
        export = machine.device.export

        def wrong(*arguments: Any) -> pa.Array:
            found = export(*arguments)
            if found.type != pa.int64() or len(found) == 0:
                return found
            values = found.to_numpy(zero_copy_only=False).copy().view(np.int64)
            values[-1] += 1
            return pa.array(values)

        machine.device.export = wrong
        assert not parity.check(machine, Budget(3), 1, report)
    problems = [line for line in lines_of(tmp_path / "lines") if "problem" in line]
    assert any("row " in line["problem"] for line in problems)  # others: a wrong number makes other groups of texts


@pytest.mark.slow
def test_a_figure_that_fails_is_a_line_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Made:
        raise ValueError("no such\ntable")

    monkeypatch.setattr(tables, "flights", broken)
    report = Report(str(tmp_path / "lines"))
    with open_machine("cpu") as machine:
        assert not figures.Figures(machine, figures.Sizes(1000, 1, 1 << 20, 4096), Budget(60), report).measure()
    lines = lines_of(tmp_path / "lines")
    assert [line["error"] for line in lines if line["figure"] == "flights"] == ["ValueError: no such table"]
    assert [line for line in lines if line["figure"] == "virginia 13" and line["device_s"] > 0]


def test_a_part_that_fails_does_not_take_the_others_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> bool:
        raise ValueError("a bug")

    monkeypatch.setattr(parity, "check", broken)
    status, lines = run(tmp_path / "lines", "--on", "cpu", "--minutes", "0.05", "--rows", "1000")
    assert status == 1 and [line["error"] for line in lines if line.get("part") == "parity"] == ["ValueError: a bug"]
    assert [line for line in lines if line.get("figure") == "copy bandwidth"] and not lines[-1]["summary"]["good"][
        "parity"
    ]


@pytest.mark.parametrize("made", MADE, ids=lambda made: made.name)
def test_a_made_table_has_the_same_rows_on_any_device_and_in_any_row_groups(made: Made) -> None:
    whole, parts = make(made, 9000, ON_THE_HOST), make(made, 9000, ON_THE_HOST, 4096)
    assert [group.rows for group in parts.row_groups] == [4096, 4096, 808]
    rows = whole.to_arrow()
    assert parts.to_arrow().combine_chunks().equals(rows.combine_chunks())
    with open_machine("fake", tile_rows=256) as machine:
        version = machine.make(made, 9000, 4096)
        found = machine.session(version).execute(f"SELECT * FROM {made.name}").table()
    assert found.combine_chunks().equals(rows.combine_chunks())


def test_bounds_of_made_columns_hold_and_every_kind_of_row_is_there() -> None:
    for made in MADE:
        for group in make(made, 20_000, ON_THE_HOST, 8192).row_groups:
            for column, chunk in zip(made.columns, group.chunks, strict=True):
                present = chunk.present()
                values = chunk.values() if present is None else chunk.values()[present]
                assert chunk.minimum <= values.min() and values.max() <= chunk.maximum, column.name
                assert len(set(values.tolist())) > 1 and (present is not None) == column.nulls, column.name
    with open_machine("cpu") as machine:
        session = machine.session(machine.make(tables.flights(), 50_000))
        for query in tables.flight_queries():
            found = session.execute(query.sql("flights")).table()
            assert found.num_rows or query.name in ("Q9", "Q11"), query.name
        session = machine.session(machine.make(tables.virginia(), 50_000))
        for query in make_queries():
            assert session.execute(query.sql("test")).table().num_rows or query.name == "10"


FAULTS = [pytest.param(name, marks=[] if name == "bounds" else pytest.mark.slow) for name in faults.FAULTS]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_fake_is_survived(name: str) -> None:
    line = faults.FAULTS[name](name, "fake", 120)
    assert line["good"], line


@pytest.mark.slow
def test_every_part_runs_on_the_fake(tmp_path: Path) -> None:
    status, lines = run(tmp_path / "lines", "--on", "fake", "--minutes", "5", "--rows", str(STAND_IN.rows // 4))
    assert status == 0, [line for line in lines if "error" in line or line.get("good") is False]
    assert not [line for line in lines if line.get("left_out") == "no time left"]
