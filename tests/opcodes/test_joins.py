"""Joins below the planner: indexes of build rows, their matches, numbers of pairs, and the opcodes that take pairs apart.

What is expected is said here in plain Python, so that neither the kernels nor the device `reference` are their own oracle.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpudb.devices.work import Part
from gpudb.program import SLOT, GroupTableSlot, Operand, StepRowsSlot
from gpudb.types import RegisterType
from tests.opcodes.pipelines import Builder, Column, device, new_run, outcome, stored

R = RegisterType
DEVICES = [("reference", 1024, 1), ("cpu", 64, 3), ("cpu", 1024, 1), ("lanes32", 64, 2), ("lanes32", 256, 3)]

everywhere = pytest.mark.parametrize("where", DEVICES, ids=lambda d: f"{d[0]}-{d[1]}-{d[2]}")
each_size = pytest.mark.parametrize("rows", [0, 1, 2, 63, 64, 65, 1023, 1024, 1025])


def on_device(at: Any, values: list[int] | np.ndarray, kind: RegisterType) -> Any:
    return at.from_host(stored(np.array(values, kind.dtype), kind))


def on_host(at: Any, array: Any, kind: RegisterType, count: int) -> list[int]:
    if at.name == "reference":
        return list(map(int, array[:count]))
    return [int(v) for v in at.to_host(array, kind.dtype, count)]


def keys_of(rows: int, words: int, distinct: int, seed: int) -> list[tuple[int, ...]]:
    random = np.random.default_rng([rows, words, distinct, seed])
    known = random.integers(-(2**63), 2**63 - 1, (distinct, words))
    known[: distinct // 2, 0] = 5  # keys that differ in one word only
    return [tuple(map(int, known[v])) for v in random.integers(0, distinct, rows)]


def rows_by_key(keys: list[Any]) -> dict[Any, list[int]]:
    found: dict[Any, list[int]] = {}
    for row, key in enumerate(keys):
        found.setdefault(key, []).append(row)
    return found


def probed(at: Any, index: Any, wanted: list[tuple[int, ...]]) -> list[int]:
    """What Probe finds for keys in an index of words."""
    words = len(wanted[0])
    builder = Builder()
    registers = builder.register(R.I64, words)
    sources = []
    for w in range(words):
        sources.append(builder.column(Column(R.I64, stored(np.array([key[w] for key in wanted], np.int64), R.I64))))
        builder.copy_into(Operand(registers.kind, registers.number + w, R.I64), sources[-1])
    alive = builder.column(Column(R.MASK, stored(np.ones(len(wanted), np.uint8), R.MASK)))
    builder.slots.append(GroupTableSlot(0))
    builder.slot_values.append(index.table)
    builder.emit(builder.value("Probe", (R.U32, R.I64), registers, alive, words, Operand(SLOT, 0, R.I64)))
    (found,) = outcome(at, builder.pipeline(), [builder.part(len(wanted))])
    return [int(v) for v in found]


@everywhere
@each_size
@pytest.mark.parametrize("words, distinct", [(1, 4000), (1, 30), (3, 300)])
def test_a_hash_index_finds_every_row_of_a_key_in_row_order(where: Any, rows: int, words: int, distinct: int) -> None:
    at = device(*where)
    keys = keys_of(rows, words, distinct, 1)
    expected = rows_by_key(keys)
    columns = [on_device(at, [key[w] for key in keys], R.I64) for w in range(words)]
    index = at.index_rows(columns, rows, 0, new_run(), "all")
    assert index.repeated == (len(expected) < rows)
    begins, counts, order = at.matches(index, rows, new_run())
    begins, counts = (on_host(at, found, R.U32, index.size + 1) for found in (begins, counts))
    order = on_host(at, order, R.U32, rows)
    wanted = [*expected, *keys_of(50, words, 50, 2)]
    for key, entry in zip(wanted, probed(at, index, wanted), strict=True):
        assert order[begins[entry] : begins[entry] + counts[entry]] == expected.get(key, [])
        assert (entry == 0) == (key not in expected)


@everywhere
@each_size
@pytest.mark.parametrize("form", ["any", "one"])
@pytest.mark.parametrize("words, distinct", [(1, 4000), (3, 300)])
def test_a_hash_index_finds_one_row_of_a_key(where: Any, rows: int, form: str, words: int, distinct: int) -> None:
    at = device(*where)
    keys = keys_of(rows, words, distinct, 1)
    expected = rows_by_key(keys)
    columns = [on_device(at, [key[w] for key in keys], R.I64) for w in range(words)]
    index = at.index_rows(columns, rows, 0, new_run(), form)
    assert index.repeated == (len(expected) < rows)
    wanted = [*expected, *keys_of(50, words, 50, 2)]
    for key, found in zip(wanted, probed(at, index, wanted), strict=True):
        assert found - 1 in expected[key] if key in expected else found == 0


@everywhere
@each_size
@pytest.mark.parametrize("numbers", [1, 30, 5000])
def test_an_index_of_numbers_has_a_row_of_each_and_all_in_row_order(where: Any, rows: int, numbers: int) -> None:
    at = device(*where)
    keys = [int(v) for v in np.random.default_rng([rows, numbers]).integers(0, numbers, rows)]
    expected = rows_by_key(keys)
    index = at.index_rows([on_device(at, keys, R.I64)], rows, numbers, new_run())
    assert index.repeated == (len(expected) < rows)
    first = on_host(at, index.first, R.U32, numbers + 1)
    assert first[0] == 0
    index = at.index_rows([on_device(at, keys, R.I64)], rows, numbers, new_run(), "all")
    begins, counts, order = at.matches(index, rows, new_run())
    begins, counts = (on_host(at, found, R.U32, numbers + 1) for found in (begins, counts))
    order = on_host(at, order, R.U32, rows)
    assert counts[0] == 0
    for number in range(numbers):
        there = expected.get(number, [])
        assert (first[number + 1] == 0) if not there else (first[number + 1] - 1 in there)
        begin = begins[number + 1]
        assert order[begin : begin + counts[number + 1]] == there


@pytest.mark.parametrize(
    "where, rows", [(("cpu", 1024, 3), 400_000), (("lanes32", 64, 3), 40_000)], ids=["cpu", "lanes"]
)
@pytest.mark.parametrize("numbers", [0, 1, 300, 300_000])
@pytest.mark.parametrize("often", [0.0, 0.5])
def test_rows_of_a_key_stay_in_order_where_many_blocks_move_them(
    where: Any, rows: int, numbers: int, often: float
) -> None:
    at = device(*where)
    random = np.random.default_rng([rows, numbers])
    keys = random.integers(0, numbers or 30_000, rows)
    keys[random.random(rows) < often] = (numbers or 30_000) // 3
    index = at.index_rows([on_device(at, keys, R.I64)], rows, numbers, new_run(), "all")
    begins, counts, order = at.matches(index, rows, new_run())
    begins, counts = (on_host(at, found, R.U32, index.size + 1) for found in (begins, counts))
    order = np.array(on_host(at, order, R.U32, rows))
    found = [(begin, order[begin : begin + count]) for begin, count in zip(begins, counts, strict=True) if count]
    found.sort(key=lambda entry: keys[entry[1][0]])  # numbers are in order, entries of a hash table in any
    assert np.concatenate([own for _, own in found]).tolist() == np.argsort(keys, kind="stable").tolist()
    if numbers:
        assert counts == [0, *np.bincount(keys, minlength=numbers)]


@everywhere
@each_size
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_runs_of_a_sorted_column_say_where_each_row_begins(where: Any, rows: int, share: float) -> None:
    at = device(*where)
    random = np.random.default_rng([rows, 7])
    lengths = np.where(random.random(rows) < share, random.integers(1, 9, rows), 0)
    column = np.repeat(np.arange(rows), lengths).tolist()
    begins, counts = at.runs(on_device(at, column, R.I64), len(column), rows, new_run())
    assert on_host(at, counts, R.U32, rows) == lengths.tolist()
    starts = np.cumsum(lengths) - lengths
    found = on_host(at, begins, R.U32, rows)
    assert all(found[row] == starts[row] for row in np.flatnonzero(lengths))


@everywhere
@each_size
@pytest.mark.parametrize("least", [0, 1])
@pytest.mark.parametrize("most", [1, 3, 4_000_000_000])
def test_pairs_are_counted_in_64_bits(where: Any, rows: int, least: int, most: int) -> None:
    at = device(*where)
    counts = [int(v) for v in np.random.default_rng([rows, 3]).integers(0, most, rows, endpoint=True)]
    offsets, pairs = at.pair_offsets(on_device(at, counts, R.U32), rows, least, new_run())
    expected = [0]
    for count in counts:
        expected.append(expected[-1] + max(count, least))
    assert on_host(at, offsets, R.I64, rows + 1) == expected and pairs == expected[-1]


@everywhere
@pytest.mark.parametrize("rows", [1, 3, 64, 1025])
@pytest.mark.parametrize("most", [1, 3, 400])
@pytest.mark.parametrize("least", [0, 1])
@pytest.mark.parametrize("from_pair", [0, 100])
def test_pairs_are_taken_apart(where: Any, rows: int, most: int, least: int, from_pair: int) -> None:
    random = np.random.default_rng([rows, most])
    counts = random.integers(1 - least, most, rows, endpoint=True)
    begins = random.integers(0, 10_000, rows)
    matches = random.permutation(20_000)
    made = np.maximum(counts, least)
    offsets = np.concatenate([[0], np.cumsum(made)])
    probe = np.repeat(np.arange(rows), made)
    place = np.arange(len(probe)) - offsets[probe]
    build = np.where(place < counts[probe], matches[begins[probe] + np.minimum(place, counts[probe])] + 1, 0)
    builder = Builder()
    columns = [
        builder.column(Column(kind, stored(values.astype(kind.dtype), kind)))
        for kind, values in ((R.I64, offsets), (R.U32, begins), (R.U32, counts), (R.U32, matches))
    ]
    builder.slots.append(StepRowsSlot(0))
    builder.slot_values.append(rows)
    found = builder.value("MatchProbe", (R.U32,), columns[0], Operand(SLOT, 0, R.I64))
    builder.emit(found)
    builder.emit(builder.value("MatchBuild", (R.U32,), found, *columns))
    first = min(from_pair, len(probe))
    arrays = [column.stored for column in builder.columns]
    half = (len(probe) - first) // 2
    parts = [Part(half, first, arrays, [rows]), Part(len(probe) - first - half, first + half, arrays, [rows])]
    left, right = outcome(device(*where), builder.pipeline(), parts)
    assert left.tolist() == probe[first:].tolist()
    assert right.tolist() == build[first:].tolist()


@everywhere
@pytest.mark.parametrize("rows", [1, 1025])
@pytest.mark.parametrize("most", [1, 7, 400])
def test_the_nearest_match_is_the_first_that_is_not_below(where: Any, rows: int, most: int) -> None:
    random = np.random.default_rng([rows, most])
    words = random.integers(-(1 << 63), (1 << 63) - 1, 5_000, endpoint=True) >> random.choice([0, 40, 60], 5_000)
    runs = [
        np.sort(random.choice(5_000, count, replace=False)) for count in random.integers(0, most, rows, endpoint=True)
    ]
    order = np.argsort(words, kind="stable")  # rows as the build side has them: in the order of their words
    words = words[order]
    counts = np.array([len(run) for run in runs])
    begins = np.cumsum(counts) - counts
    matches = np.concatenate([*runs, [0]])
    wanted = np.where(random.random(rows) < 0.5, words[random.integers(0, 5_000, rows)], random.integers(-9, 9, rows))
    expected = [
        next((int(row) + 1 for row in run if words[row] >= least), 0) for run, least in zip(runs, wanted, strict=True)
    ]
    builder = Builder()
    columns = [
        builder.column(Column(kind, stored(values.astype(kind.dtype), kind)))
        for kind, values in (
            (R.U32, begins),
            (R.U32, counts),
            (R.I64, wanted),
            (R.U32, matches),
            (R.I64, words),
        )
    ]
    builder.emit(builder.value("Nearest", (R.U32,), *columns))
    (found,) = outcome(device(*where), builder.pipeline(), [Part(rows, 0, [c.stored for c in builder.columns], [])])
    assert found.tolist() == expected
