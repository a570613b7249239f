"""What windows need of devices: bounds in sorted columns, inverted orders, and sums over frames; each against plain Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gpudb.devices.reference import ReferenceDevice
from gpudb.opcodes.evaluate import from_order_words
from gpudb.program import FrameWord
from gpudb.types import RegisterType
from tests.devices.poisoned import POISON, PoisonedDevice
from tests.opcodes.pipelines import Builder, Column, assert_same, device, emitted_values, new_run, stored
from tests.opcodes.test_blocks import assert_same_rows, everywhere, floats, seeded

R = RegisterType
ROWS = [0, 1, 65, 300]
LEAST, GREATEST = -(1 << 63), (1 << 63) - 1


@everywhere
@pytest.mark.parametrize("rows", [1, 65, 700])
@pytest.mark.parametrize("opcode", ["FirstReached", "FirstPassed"])
def test_bounds_in_a_rising_column(where: Any, rows: int, opcode: str) -> None:
    random, builder = seeded(31, rows), Builder()
    # Runs that rise, one after the other: each row looks in one of them.
    starts = np.unique(np.concatenate([[0], random.integers(0, rows, 5)]))
    run = np.searchsorted(starts, np.arange(rows), "right") - 1
    ends = np.append(starts[1:], rows)
    rising = np.concatenate([np.sort(random.integers(-5, 5, e - b)) for b, e in zip(starts, ends, strict=True)])
    wanted = np.where(random.random(rows) < 0.1, random.choice([LEAST, GREATEST], rows), random.integers(-6, 6, rows))
    columns = [
        builder.column(Column(kind, stored(values, kind)))
        for kind, values in ((R.I64, rising), (R.I64, wanted), (R.U32, starts[run]), (R.U32, ends[run]))
    ]
    value, begin, end = (builder.vector(column) for column in columns[1:])
    builder.emit(builder.value(opcode, (R.U32, R.I64, R.I64, R.U32, R.U32), columns[0], value, begin, end))
    (found,) = assert_same_rows(where, builder.pipeline(), [builder.part(rows)])
    below = (lambda x, y: x < y) if opcode == "FirstReached" else (lambda x, y: x <= y)
    for row in range(rows):
        first, last = starts[run[row]], ends[run[row]]
        assert found[row] == first + sum(below(x, wanted[row]) for x in rising[first:last].tolist())


@everywhere
@pytest.mark.parametrize("rows", [*ROWS, 50_000])
def test_an_inverted_order_says_where_each_row_is(where: Any, rows: int) -> None:
    random, at = seeded(32, rows), device(*where)
    word = stored(random.integers(0, 50, rows), R.I64)
    order = at.sort_rows([at.from_host(word)], rows, new_run())
    places = emitted_values(at, at.invert_rows(order, new_run()))[0]
    assert np.array_equal(np.argsort(np.argsort(word[:rows], kind="stable")), places)
    reference = ReferenceDevice()
    inverted = reference.invert_rows(reference.sort_rows([word], rows, new_run()), new_run())
    assert_same([places], emitted_values(reference, inverted), "reference")


def random_frames(rows: int, random: np.random.Generator, shape: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Runs of each row's frame: running, sliding, of partitions, or any; or several runs in order."""
    row = np.arange(rows)
    if shape == "running":
        return [(np.zeros(rows, int), row + 1)]
    if shape == "sliding":
        return [(np.maximum(row - 20, 0), np.minimum(row + 3, rows))]
    if shape == "partitions":
        start = row // 50 * 50
        return [(start, np.minimum(start + 50, rows))]
    cuts = np.sort(random.integers(0, rows + 1, (6 if shape == "several" else 2, rows)), axis=0)
    return [(cuts[k], cuts[k + 1]) for k in range(0, len(cuts), 2)]


@everywhere
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("shape", ["running", "sliding", "partitions", "any", "several"])
def test_words_of_frames(where: Any, rows: int, shape: str) -> None:
    random, at, reference = seeded(33, rows), device(*where), ReferenceDevice()
    frames = [random_frames(rows, random, shape), random_frames(rows, random, "sliding")]
    word = stored(random.integers(LEAST, GREATEST, rows), R.I64)  # sums wrap
    x, y = (stored(floats("large" if rows > 2 else "special", rows, random), R.F64) for _ in range(2))
    keep = stored(random.random(rows) < 0.8, R.MASK)
    columns = {"i64": [word], "x": [x, keep], "xy": [x, y, keep]}
    words = [
        (FrameWord("add", (), 0), "i64"),
        (FrameWord("least", (), 0), "i64"),
        (FrameWord("greatest", (), 1), "i64"),
        (FrameWord("add", (), 1), "i64"),
        (FrameWord("sum", (), 0), "x"),
        (FrameWord("variance", (), 1, 1), "x"),
        (FrameWord("correlation", (), 1), "xy"),
        (FrameWord("covariance", (), 0, 0), "xy"),
    ]
    bounds = [[(stored(b, R.U32), stored(e, R.U32)) for b, e in frame] for frame in frames]
    expected = reference.frame_words(bounds, [(w, columns[c]) for w, c in words], rows, new_run()).words[:rows]
    on_device = {name: [at.from_host(column) for column in given] for name, given in columns.items()}
    handles = [[(at.from_host(b), at.from_host(e)) for b, e in frame] for frame in bounds]
    table = at.frame_words(handles, [(w, on_device[c]) for w, c in words], rows, new_run())
    found = at.to_host(table.arrays["words"], np.int64, rows * len(words)).reshape(rows, len(words))
    assert np.array_equal(expected, found)
    for row in range(0, rows, 7):
        inside = [[i for begin, end in frame for i in range(begin[row], end[row])] for frame in frames]
        values = [[int(word[i]) for i in rows_of_frame] for rows_of_frame in inside]
        assert (int(found[row, 0]) - sum(values[0])) % (1 << 64) == 0
        assert found[row, 1] == min(values[0], default=GREATEST)
        assert found[row, 2] == max(values[1], default=LEAST)
        kept = [float(x[i]) for i in inside[0] if keep[i]]
        if all(map(math.isfinite, kept)):
            try:
                total = math.fsum(kept)
            except OverflowError:
                continue
            assert from_order_words(R.F64, found[row : row + 1, 4])[0] == total


def test_a_cancelled_statement_does_not_go_on_with_the_frames_of_its_rows() -> None:
    at, rows, run = PoisonedDevice(1), 100, new_run()
    run.cancel[0] = 1
    run.check = lambda: None  # type: ignore[method-assign]  # the kernel has begun when somebody cancels
    x, keep = at.from_host(np.ones(rows)), at.from_host(np.ones(rows, np.uint8))
    frame = [(stored(np.zeros(rows, int), R.U32), stored(np.arange(rows) + 1, R.U32))]
    table = at.frame_words([frame], [(FrameWord("sum", (), 0), [x, keep])], rows, run)
    assert set(at.to_host(table.arrays["words"], np.uint8, rows * 8)) == {POISON}
