"""Every record of every `.test` file, on every device; see `runner` for the format of the files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.sql import runner
from tests.sql.runner import Corpus, Record, check, check_oracle, gpudb_outcomes, oracle_outcomes

CORPUS = Corpus()
CHECKS = list(CORPUS.records())
DEVICES = ["cpu", "reference"]


def name_of(case: tuple[Path, int, Record]) -> str:
    """file:line of a record, with its position where a loop repeats the line."""
    path, position, record = case
    return f"{path.relative_to(runner.SQL_FOLDER)}:{record.line}:{position}"


def with_known_gaps() -> list[Any]:
    """The checks, those listed in known_gaps.txt marked: they must fail, and the file says why."""
    text = (runner.SQL_FOLDER / "known_gaps.txt").read_text()
    gaps = dict(line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#"))
    assert set(gaps) <= {name_of(case) for case in CHECKS}, "known_gaps.txt names a record that is not there"
    marks = {name: pytest.mark.xfail(strict=True, reason=reason) for name, reason in gaps.items()}
    return [pytest.param(c, id=name_of(c), marks=[marks[name_of(c)]] if name_of(c) in marks else []) for c in CHECKS]


@pytest.mark.parametrize("case", with_known_gaps())
@pytest.mark.parametrize("device", DEVICES)
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
