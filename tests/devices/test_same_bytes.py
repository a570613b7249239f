"""Same bytes: whatever runs a query, and however its rows are stored, every Arrow buffer of the answer is the same.

The rules that this holds are told in gpudb/docs/numeric_rules.md.
"""

from __future__ import annotations

import math
import random
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import gpudb
from gpudb.errors import Error
from gpudb.session import Session
from tests.devices.float_rows import (
    AGGREGATES,
    ARGUMENTS,
    DIRECTIONS,
    FLOATS,
    KEYS,
    LIMITS,
    OTHERS,
    WHERE,
    filled,
    rows_of,
    slots,
)
from tests.devices.queries import QUERIES, content
from tests.devices.queries import database as query_tables
from tests.devices.variants import (
    OneDevice,
    Variant,
    assert_canonical,
    device,
    ready_levels,
    runnable_levels,
    session_on,
    stored,
)
from tests.sql.runner import SQL_FOLDER, Corpus, GpudbEngine, Outcome, Record, parse

ROWS = (1, 63, 64, 65, 1024, 1025, 4095, 4096, 4097, 9000)
ROW_GROUP_ROWS = (4096, 8192, 1 << 20)
REFERENCE = Variant("reference")
NUMERIC_RULES = Path(gpudb.__file__).parent / "docs" / "numeric_rules.md"


def variants(lanes: Sequence[int], levels: Sequence[str]) -> st.SearchStrategy[Variant]:
    """Any device, set up in any way."""
    tiles = st.sampled_from([64, 128, 256, 1024, 4096])
    return st.one_of(
        st.builds(Variant, st.just("cpu"), st.integers(1, 4), tiles, level=st.sampled_from(levels)),
        st.builds(Variant, st.just("lanes"), st.integers(1, 3), tiles, st.sampled_from(lanes)),
        st.builds(Variant, st.just("cuda"), st.just(1), tiles),
        st.just(REFERENCE),
    )


# ------------------------------------------------------------------------------------------------------- queries

arguments, others, keys = st.sampled_from(ARGUMENTS), st.sampled_from(OTHERS), st.sampled_from(KEYS)
aggregates = st.sampled_from(AGGREGATES).flatmap(
    lambda form: st.tuples(*(arguments if slot == "a" else others for slot in slots(form))).map(
        lambda found: filled(form, found)
    )
)


@st.composite
def queries(draw: st.DrawFn) -> str:
    """Groups with aggregates, or rows with expressions, in an order with many ties or in none."""
    where, limit = draw(st.sampled_from(WHERE)), draw(st.sampled_from(LIMITS))
    if draw(st.booleans()):
        grouped = draw(st.lists(keys, max_size=2, unique=True))
        items = [*grouped, *draw(st.lists(aggregates, min_size=1, max_size=4))]
        sql = f"SELECT {', '.join(items)} FROM t{where}{' GROUP BY ' + ', '.join(grouped) if grouped else ''}"
    else:
        distinct = draw(st.sampled_from(["", "", "DISTINCT "]))
        items = draw(st.lists(arguments | others, min_size=1, max_size=4))
        sql = f"SELECT {distinct}{', '.join(items)} FROM t{where}"
    if draw(st.booleans()):
        sql += f" ORDER BY {draw(st.integers(1, len(items)))}{draw(st.sampled_from(DIRECTIONS))}"
    return sql + limit


@dataclass(frozen=True)
class Rows:
    """The rows of `t`, and how they are stored."""

    rows: int
    one: str
    other: str
    seed: int
    row_group_rows: int = 1 << 20
    cuts: tuple[int, ...] = ()

    def plainly(self) -> Rows:
        """The same rows appended in one go."""
        return Rows(self.rows, self.one, self.other, self.seed)


@st.composite
def tables(draw: st.DrawFn) -> Rows:
    rows = draw(st.sampled_from(ROWS))
    kinds = st.sampled_from(list(FLOATS))
    cuts = tuple(sorted(draw(st.sets(st.integers(0, rows), max_size=3))))
    group = draw(st.sampled_from(ROW_GROUP_ROWS))
    return Rows(rows, draw(kinds), draw(kinds), draw(st.integers(0, 3)), group, cuts)


@lru_cache(64)
def session(rows: Rows, variant: Variant) -> Session:
    table = stored(rows_of(rows.rows, rows.one, rows.other, rows.seed), rows.row_group_rows, rows.cuts)
    return session_on(device(variant), [table])


def answer(rows: Rows, variant: Variant, sql: str) -> pa.Table | str:
    """The result, or the error's text."""
    try:
        return session(rows, variant).execute(sql).table()
    except Error as error:
        return f"{type(error).__name__}: {error}"


def check(rows: Rows, variants: Sequence[Variant], sql: str) -> None:
    expected = answer(rows.plainly(), REFERENCE, sql)
    if isinstance(expected, pa.Table):
        assert_canonical(expected)
    for variant in variants:
        note(f"{variant} {rows}\n{sql}")
        found = answer(rows, variant, sql)
        if isinstance(expected, str) or isinstance(found, str):
            assert found == expected
            continue
        for place, name in enumerate(expected.column_names):
            one, other = expected.select([place]), found.select([place])
            assert content(other) == content(one), f"{name}: {first_difference(one, other)}"


def first_difference(one: pa.Table, other: pa.Table) -> str:
    """The first row in which two columns differ."""
    left, right = one.column(0).to_pylist(), other.column(0).to_pylist()
    if len(left) != len(right):
        return f"{len(right)} rows, not {len(left)}"
    row = next((k for k in range(len(left)) if repr(left[k]) != repr(right[k])), None)
    return "bytes that no value shows" if row is None else f"row {row} is {right[row]!r}, not {left[row]!r}"


# ------------------------------------------------------------------------------------------------------- exactness


def rounded(exact: Fraction) -> float:
    """The nearest double, an infinity beyond the range."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def total(values: list[float]) -> float:
    """The sum, rounded once; infinities and NaN by IEEE's rules."""
    if all(map(math.isfinite, values)):
        return rounded(sum(map(Fraction, values), Fraction(0)))
    return sum(value for value in values if not math.isfinite(value))


def variance(values: list[float], less: int) -> float | None:
    """Variance with divisor n - less, rounded once; NULL where that is not positive."""
    if len(values) <= less:
        return None
    if not all(map(math.isfinite, values)):
        return math.nan
    exact = list(map(Fraction, values))
    mean = sum(exact, Fraction(0)) / len(exact)
    return rounded(sum(((x - mean) ** 2 for x in exact), Fraction(0)) / (len(exact) - less))


def near(found: float | None, exact: float | None) -> bool:
    """Equal but for the two divisions' rounding; NaN is NaN, NULL is NULL."""
    if found is None or exact is None:
        return found is exact
    if math.isnan(exact) or math.isinf(exact) or exact == 0:
        return repr(found) == repr(exact)
    return math.isclose(found, exact, rel_tol=5e-16, abs_tol=5e-324)


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize(
    "variant",
    [REFERENCE, Variant("cpu", 2, 64), Variant("lanes", 2, 64), Variant("cuda", 1, 64)],
    ids=lambda v: v.device,
)
def test_sums_and_variances_are_exact_and_rounded_once(variant: Variant, kind: str) -> None:
    rows = Rows(1024, kind, kind, 1)
    sql = "SELECT few, sum(x), avg(x), var_samp(x), var_pop(x), stddev_pop(x) FROM t GROUP BY few"
    groups: dict[int | None, list[float]] = {}
    for few, x in zip(*(rows_of(1024, kind, kind, 1)[name].to_pylist() for name in ("few", "x")), strict=True):
        groups.setdefault(few, []).extend([] if x is None else [x])
    answer = session(rows, variant).execute(sql).table()
    for few, found, average, sample, population, deviation in zip(
        *(c.to_pylist() for c in answer.columns), strict=True
    ):
        values = groups.pop(few)
        expected = total(values)
        assert repr(found) == repr(expected), few
        assert repr(average) == repr(expected / len(values)), few
        assert near(sample, variance(values, 1)) and near(population, variance(values, 0)), few
        assert repr(deviation) == repr(math.sqrt(population)), few
    assert not groups


@pytest.mark.parametrize(
    "variant",
    [REFERENCE, Variant("cpu", 2, 64), Variant("lanes", 2, 64), Variant("cuda", 1, 64)],
    ids=lambda v: v.device,
)
@pytest.mark.parametrize("scale", [1.0, 5e-324, 1e-200, 1e-3, 1e150, 1e200, 8e307])
def test_correlation_does_not_depend_on_the_scale(scale: float, variant: Variant) -> None:
    rows = [(1, 2), (2, -1), (-2, 1), (0, -2), (1, 1)]
    values = ", ".join(f"({x * scale!r}::DOUBLE, {y}::DOUBLE, {-x * scale!r}::DOUBLE)" for x, y in rows)
    sql = f"SELECT corr(x, y), corr(y, x), corr(x, x), corr(x, z) FROM (VALUES {values}) AS v(x, y, z)"
    found = [column[0].as_py() for column in session_on(device(variant), []).execute(sql).table().columns]
    assert found[2:] == [1.0, -1.0]
    assert found[0] == found[1] == pytest.approx(np.corrcoef(np.array(rows).T)[0, 1], rel=1e-14)


# ------------------------------------------------------------------------------------------------------- properties


@settings(max_examples=120)
@given(rows=tables(), chosen=st.lists(variants([32], ready_levels()), min_size=1, max_size=2), sql=queries())
def test_any_device_over_any_storage_gives_the_bytes_of_the_reference(
    rows: Rows, chosen: list[Variant], sql: str
) -> None:
    check(rows, chosen, sql)


@pytest.mark.slow
@settings(max_examples=2_000, derandomize=False)
@given(data=st.data(), rows=tables(), sql=queries())
def test_any_level_and_any_number_of_lanes_gives_the_bytes_of_the_reference(
    data: st.DataObject, rows: Rows, sql: str
) -> None:
    chosen = data.draw(st.lists(variants([32, 64, 256], runnable_levels()), min_size=1, max_size=2))
    check(rows, chosen, sql)


# ------------------------------------------------------------------------------------------------------- whole corpora


@pytest.mark.parametrize("sql", QUERIES, ids=str)
def test_answers_leave_nothing_under_null_or_behind_the_last_row(sql: str) -> None:
    assert_canonical(session_of_queries().execute(sql).table())


@cache
def session_of_queries() -> Session:
    """The tables of `queries` on the cpu."""
    database = query_tables()
    database.devices = OneDevice(device(Variant("cpu", 2, 256)))
    return Session(database)


def assert_one_answer(path: Path, settings: Sequence[str]) -> None:
    """Every record of a `.test` file on the reference, and on the cpu as it is set up, with the same bytes or error."""
    with tempfile.TemporaryDirectory() as folder:
        one, other = f"{folder}/1", f"{folder}/2"
        answers = []
        for name, device_name in ((one, "reference"), (other, "cpu")):
            Path(name).mkdir()
            engine = GpudbEngine(name, device_name)
            for setting in settings:
                engine.connection.execute(setting)
            answers.append([shown(engine.run(record), name) for record in records_of(path)])
    for record, expected, found in zip(records_of(path), *answers, strict=True):
        assert found == expected, f"{path}:{record.line} after {settings}\n{record.sql}"


def records_of(path: Path) -> list[Record]:
    """The records of a file but those that show times."""
    return [record for record in parse(path) if "EXPLAIN ANALYZE" not in record.sql.upper()]


def shown(outcome: Outcome, folder: str) -> Any:
    """The bytes of the rows, or the error without the folder's name."""
    if outcome.error is not None:
        return f"{type(outcome.error).__name__}: {outcome.error}".replace(folder, "")
    if outcome.table is None:
        return None
    assert_canonical(outcome.table)
    return content(outcome.table)


def random_settings(chosen: random.Random) -> list[str]:
    """Threads and rows of a tile."""
    return [f"SET threads = {chosen.randint(1, 4)}", f"SET tile_rows = {chosen.choice([64, 256, 1024, 4096])}"]


def test_a_sample_of_the_sql_corpus_gives_the_same_bytes(sample_seed: int) -> None:
    chosen = random.Random(sample_seed)
    for path in chosen.sample(Corpus().files, 4):
        assert_one_answer(path, random_settings(chosen))


@pytest.mark.slow
@pytest.mark.parametrize("path", Corpus().files, ids=lambda path: str(path.relative_to(SQL_FOLDER)))
def test_the_sql_corpus_gives_the_same_bytes(path: Path) -> None:
    assert_one_answer(path, random_settings(random.Random(str(path.relative_to(SQL_FOLDER)))))


# ------------------------------------------------------------------------------------------------------- the page


def test_the_page_of_numeric_rules_names_tests_that_are_there() -> None:
    root = Path(__file__).parents[2]
    path: Path | None = None
    named = re.findall(r"`(tests/[\w/]+\.(?:py|test))?(?:::(test_\w+))?`", NUMERIC_RULES.read_text())
    named = [(file, test) for file, test in named if file or test]
    assert len(named) > 10
    for file, test in named:
        path = root / file if file else path
        assert path is not None and path.is_file(), file
        assert not test or f"def {test}(" in path.read_text(), test
