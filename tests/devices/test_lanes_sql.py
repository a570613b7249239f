"""The whole SQL corpus with 32 lanes a block: rows and errors are the reference's, record by record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpudb.devices import Devices
from gpudb.devices.lanes import LanesDevice
from tests.devices.queries import content
from tests.sql.runner import SQL_FOLDER, Corpus, GpudbEngine, Outcome, parse


def shown(outcome: Outcome, folder: Path) -> Any:
    """The bytes of the rows, or the error without the folder's name."""
    if outcome.error is not None:
        return f"{type(outcome.error).__name__}: {outcome.error}".replace(str(folder), "")
    return None if outcome.table is None else content(outcome.table)


@pytest.mark.slow
@pytest.mark.parametrize("path", Corpus().files, ids=lambda path: str(path.relative_to(SQL_FOLDER)))
def test_lanes_answer_as_the_reference_does(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lanes = LanesDevice(2, 64)
    records = [record for record in parse(path) if "EXPLAIN ANALYZE" not in record.sql.upper()]  # which shows times
    answers = {}
    for name in ("reference", "lanes"):
        folder = tmp_path / name[0]
        folder.mkdir()
        with monkeypatch.context() as patch:
            if name == "lanes":
                patch.setattr(Devices, "choose", lambda self, settings: (lanes, "a test", None))
            engine = GpudbEngine(str(folder), "reference")
            answers[name] = [shown(engine.run(record), folder) for record in records]
    for record, expected, found in zip(records, answers["reference"], answers["lanes"], strict=True):
        assert found == expected, record.sql
