"""The SQL corpus with many lanes a block: rows and errors are the reference's, record by record."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from gpudb.devices import Devices
from gpudb.devices.lanes import LanesDevice
from tests.devices.queries import content
from tests.sql.runner import SQL_FOLDER, Corpus, GpudbEngine, Outcome, Record, parse

# Lanes a block, blocks, rows of a tile: the corpus has few tables of more rows than a tile of a GPU, 8 a lane.
QUICK = (32, 2, 64)
ALL = [QUICK, (64, 3, 128), (256, 2, 256)]
SAMPLE = 1 / 8  # of the queries

each_file = pytest.mark.parametrize("path", Corpus().files, ids=lambda path: str(path.relative_to(SQL_FOLDER)))


def records_of(path: Path) -> list[Record]:
    return [record for record in parse(path) if "EXPLAIN ANALYZE" not in record.sql.upper()]  # which shows times


def shown(outcome: Outcome, folder: Path) -> Any:
    """The bytes of the rows, or the error without the folder's name."""
    if outcome.error is not None:
        return f"{type(outcome.error).__name__}: {outcome.error}".replace(str(folder), "")
    return None if outcome.table is None else content(outcome.table)


def answers(records: list[Record], folder: Path) -> list[Any]:
    folder.mkdir()
    engine = GpudbEngine(str(folder), "reference")
    return [shown(engine.run(record), folder) for record in records]


def assert_the_same_on_lanes(
    records: list[Record],
    shapes: list[tuple[int, int, int]],
    seed: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = answers(records, tmp_path / "r")  # one letter each, as a message points into the path
    for number, (lanes, blocks, tile_rows) in enumerate(shapes):
        device = LanesDevice(blocks, tile_rows, seed, lanes)
        monkeypatch.setattr(Devices, "choose", lambda self, settings, device=device: (device, "a test", None))
        found = answers(records, tmp_path / str(number))
        for record, one, other in zip(records, expected, found, strict=True):
            assert one == other, f"{record.sql}\n{lanes} lanes, {blocks} blocks, tiles of {tile_rows}, seed {seed}"


@each_file
def test_a_sample_of_queries_is_answered_on_lanes_as_on_the_reference(
    path: Path, sample_seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = random.Random(f"{path.name} {sample_seed}")
    records = [record for record in records_of(path) if record.is_statement or chosen.random() < SAMPLE]
    assert_the_same_on_lanes(records, [QUICK], sample_seed, tmp_path, monkeypatch)


@pytest.mark.slow
@each_file
def test_every_query_is_answered_on_lanes_as_on_the_reference(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_the_same_on_lanes(records_of(path), ALL, 1, tmp_path, monkeypatch)
