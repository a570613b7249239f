"""Every record of every `.test` file, on every device; see `runner` for the format of the files."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from tests.sql import runner
from tests.sql.runner import Corpus, Record, check, check_oracle, gpudb_outcomes, oracle_outcomes

CORPUS = Corpus()
CHECKS = list(CORPUS.records())
ON_REFERENCE = 1 / 4  # of the files, others in every run; the slow set takes the rest


def name_of(case: tuple[Path, int, Record]) -> str:
    """file:line of a record, with its position where a loop repeats the line."""
    path, position, record = case
    return f"{path.relative_to(runner.SQL_FOLDER)}:{record.line}:{position}"


def known_gaps() -> dict[str, pytest.MarkDecorator]:
    """Marks of the checks listed in known_gaps.txt: they must fail, and the file says why."""
    text = (runner.SQL_FOLDER / "known_gaps.txt").read_text()
    gaps = dict(line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#"))
    assert set(gaps) <= {name_of(case) for case in CHECKS}, "known_gaps.txt names a record that is not there"
    return {name: pytest.mark.xfail(strict=True, reason=reason) for name, reason in gaps.items()}


def is_sampled(path: Path) -> bool:
    return random.Random(f"{path.name} {os.environ['GPUDB_TEST_SEED']}").random() < ON_REFERENCE


def cases() -> list[Any]:
    """Every check on the CPU, and on the reference, which takes as long as all others together."""
    gaps = known_gaps()
    found = []
    for device in ("cpu", "reference"):
        for case in CHECKS:
            marks = [gaps[name_of(case)]] if name_of(case) in gaps else []
            if device == "reference" and not is_sampled(case[0]):
                marks.append(pytest.mark.slow)
            found.append(pytest.param(device, case, id=f"{device}-{name_of(case)}", marks=marks))
    return found


@pytest.mark.parametrize("device, case", cases())
def test_record(device: str, case: tuple[Path, int, Record]) -> None:
    path, position, record = case
    try:
        check(record, gpudb_outcomes(path, device)[position], oracle_outcomes(path)[position])
    except AssertionError as error:
        raise AssertionError(f"{path}:{record.line} on {device}\n{record.sql}\n{error}") from None


@pytest.mark.parametrize("path", CORPUS.files, ids=lambda path: str(path.relative_to(runner.SQL_FOLDER)))
def test_every_record_is_one_that_duckdb_agrees_with(path: Path) -> None:
    wrong = []
    for record, outcome in zip(runner.parse(path), oracle_outcomes(path), strict=True):
        try:
            check_oracle(record, outcome)
        except AssertionError as error:
            wrong.append(f"{path}:{record.line} {record.sql}\n    {str(error)[:300]}")
    assert not wrong, "\n".join(wrong)


def test_the_corpus_has_1500_checks_of_distinct_shape() -> None:
    assert len(CORPUS.shapes()) >= 1500
