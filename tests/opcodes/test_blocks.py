"""Opcodes where rows meet: random pipelines give on kernels, with one lane a block and with many, what the reference gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpudb.devices.reference import ReferenceDevice
from gpudb.devices.work import Emitted, InexactSum, Ledger, Part, Run, Work
from gpudb.program import SLOT, GroupSink, GroupTableSlot, Operand, Pipeline
from gpudb.types import RegisterType
from tests.opcodes.pipelines import (
    Builder,
    Column,
    assert_same,
    device,
    emitted_values,
    new_run,
    outcome,
    parts_of,
    random_values,
    stored,
)

R = RegisterType
TYPES = list(R)
GREATEST, LEAST = (1 << 63) - 1, -(1 << 63)
WIDE_WORDS = 137
MASK64 = (1 << 64) - 1
# Name, rows of a tile, threads or blocks.  A GPU's tile has 8 rows a lane; where it has fewer some lanes have none.
DEVICES = [("cpu", 64, 3), ("cpu", 1024, 1), ("lanes32", 64, 2), ("lanes32", 256, 3)]
SLOW_DEVICES = [("lanes64", 64, 2), ("lanes64", 512, 3), ("lanes256", 256, 2), ("lanes256", 2048, 3)]
SIZES = [[], [1], [64], [130], [64, 65, 0, 63, 1], [4096, 1000]]

everywhere = pytest.mark.parametrize(
    "where",
    [*DEVICES, *(pytest.param(device, marks=pytest.mark.slow) for device in SLOW_DEVICES)],
    ids=lambda d: f"{d[0]}-{d[1]}-{d[2]}",
)
each_size = pytest.mark.parametrize("sizes", SIZES, ids=str)


def seeded(*numbers: int) -> np.random.Generator:
    return np.random.default_rng(list(numbers))


def column(builder: Builder, kind: RegisterType, part: str = "stored") -> Operand:
    """A column whose values come with the parts."""
    return builder.column(Column(kind, stored(np.zeros(0), kind), part))


def assert_same_rows(where: tuple[str, int, int], pipeline: Pipeline, parts: list[Part]) -> list[np.ndarray]:
    expected = outcome(ReferenceDevice(), pipeline, parts)
    assert_same(expected, outcome(device(*where), pipeline, parts), str(where))
    return expected


# ------------------------------------------------------------------------------------------------------------ rows


@everywhere
@each_size
@pytest.mark.parametrize("share", [0.0, 0.004, 0.5, 1.0])
@pytest.mark.parametrize("skip", [False, True])
def test_packed_rows_keep_their_order(where: Any, sizes: list[int], share: float, skip: bool) -> None:
    builder = Builder()
    alive = column(builder, R.MASK)
    values = [column(builder, kind) for kind in TYPES]
    bits = column(builder, R.MASK, "validity")
    registers = [builder.vector(value) for value in values]
    if skip:
        builder.block("SkipIfNone", (), alive)
    rows = builder.value("Compact", (R.U32,), alive)
    for value in (*values, *registers):
        assert value.type is not None
        builder.emit(value, rows)
        builder.emit(builder.value("Pick", (value.type, value.type, R.U32), value, rows))
    builder.emit(builder.value("PickValidity", (R.MASK, R.U32), bits, rows))
    builder.emit(builder.value("RowNumber", (R.I64,)))
    parts = parts_of(builder, sizes, seeded(1, len(sizes)))
    for part in parts:
        part.columns[0] = stored(seeded(2, part.rows).random(part.rows) < share, R.MASK)
    found = assert_same_rows(where, builder.pipeline(filtered=True), parts)
    alive_rows = np.concatenate([np.zeros(0), *(part.columns[0][: part.rows] for part in parts)])
    assert found[-1].tolist() == np.flatnonzero(alive_rows).tolist()


@everywhere
@each_size
@pytest.mark.parametrize("most", [None, 1, 50, 100_000])
def test_keep_top_keeps_the_first_rows(where: Any, sizes: list[int], most: int | None) -> None:
    builder = Builder()
    word, alive = column(builder, R.I64), column(builder, R.MASK)
    kept = builder.value("KeepTop", (R.MASK, R.I64, R.MASK), word, alive)
    rows = builder.value("Compact", (R.U32,), kept)
    builder.emit(word, rows)
    builder.emit(builder.value("RowNumber", (R.I64,)))
    parts = parts_of(builder, sizes, seeded(14, len(sizes)))
    work = Work(builder.pipeline(filtered=True), parts, new_run(), top=most)
    at = device(*where)
    words, numbers = emitted_values(at, at.run_pipeline(work))
    everything = [p.columns[0][: p.rows] for p in parts], [p.columns[1][: p.rows] != 0 for p in parts]
    all_words, keep = (np.concatenate([np.zeros(0, np.int64), *found]) for found in everything)
    wanted = np.flatnonzero(keep)
    assert words.tolist() == all_words[numbers].tolist() and set(numbers.tolist()) <= set(wanted.tolist())
    if most is not None and most < len(wanted):
        wanted = wanted[np.argsort(all_words[wanted], kind="stable")][:most]
    assert set(wanted.tolist()) <= set(numbers.tolist())
    if most is None:
        assert len(wanted) == len(numbers)


@everywhere
@each_size
def test_unfiltered_rows_numbers_and_validity_bits(where: Any, sizes: list[int]) -> None:
    builder = Builder()
    values = [column(builder, kind) for kind in TYPES]
    bits = column(builder, R.MASK, "validity")
    for value in values:
        builder.emit(value)
        builder.emit(builder.vector(value))
    builder.emit(builder.value("ExpandValidity", (R.MASK,), bits))
    builder.emit(builder.value("RowNumber", (R.I64,)))
    found = assert_same_rows(where, builder.pipeline(), parts_of(builder, sizes, seeded(3, len(sizes))))
    assert found[-1].tolist() == list(range(sum(sizes)))


@everywhere
@pytest.mark.parametrize("rows", [1, 64, 65, 1500])
def test_gathered_values(where: Any, rows: int) -> None:
    builder, random = Builder(), seeded(4, rows)
    at = builder.column(Column(R.U32, stored(random.integers(0, rows, rows), R.U32)))
    for kind in TYPES:
        values = builder.column(Column(kind, stored(random_values(kind, rows, random), kind)))
        builder.emit(builder.value("Gather", (kind, kind, R.U32), values, at))
    assert_same_rows(where, builder.pipeline(), [builder.part(rows)])


@everywhere
@pytest.mark.parametrize("rows", [1, 63, 65])
def test_no_index_is_taken_from_behind_the_rows_of_a_tile(where: Any, rows: int) -> None:
    builder = Builder()
    table = builder.lookup_table(R.I64, np.arange(100) * 7)
    for kind in (R.U8, R.U16, R.U32):
        numbers = builder.value("RowNumber", (R.I64,))  # behind the last row its register holds anything
        index = builder.make("Convert", (R.U32, R.I64), "v", numbers)
        if kind is not R.U32:
            index = builder.make("Convert", (kind, R.U32), "v", index)
        builder.emit(builder.make("Lookup", (R.I64, kind, R.I64), "vp", index, table))
    for found in assert_same_rows(where, builder.pipeline(), [Part(rows, 0, [], builder.slot_values)]):
        assert found.tolist() == [7 * row for row in range(rows)]


@everywhere
@pytest.mark.parametrize("seed", range(6))
def test_the_first_failing_row_and_instruction_is_reported(where: Any, seed: int) -> None:
    builder, random = Builder(), seeded(5, seed)
    masks = [column(builder, R.MASK) for _ in range(4)]
    for message in range(3):
        builder.block("Fail", (), masks[message], masks[3], 2 - message)
    builder.emit(masks[0])
    parts = parts_of(builder, [1000, 64, 500], random)
    for part in parts:
        for k in range(3):
            part.columns[k] = stored(random.random(part.rows) < (0.002 if seed < 5 else 0.0), R.MASK)
    expected = outcome(ReferenceDevice(), builder.pipeline(), parts)
    found = outcome(device(*where), builder.pipeline(), parts)
    if seed < 5:
        assert expected[0] == "failed" and found == expected
    else:
        assert_same(expected, found)


# ------------------------------------------------------------------------------------------------------------ groups


class Words:
    """The words of a group table, as they are asked for."""

    def __init__(self) -> None:
        self.found: list[tuple[str, int]] = [("min", GREATEST)]

    def take(self, kind: str, initial: int, count: int = 1) -> int:
        self.found += [(kind, initial)] * count
        return len(self.found) - count

    def take_arg(self) -> int:
        self.found += [("arg", GREATEST), ("rest", GREATEST), ("rest", 0)]
        return len(self.found) - 3

    def take_wide_arg(self) -> int:
        self.found += [("arg", GREATEST), ("rest", GREATEST), ("rest", GREATEST), ("rest", 0)]
        return len(self.found) - 4


def groups_on(
    where: Any,
    runs: list[tuple[Pipeline, list[Part]]],
    read: Callable[[Operand, Builder], None],
    run: Run | None = None,
) -> list[np.ndarray]:
    """One column an output of `read`, over the groups that the pipelines left in one table, in order."""
    state: Any = None
    rows, run = 0, run or new_run()
    for pipeline, parts in runs:
        state = where.run_pipeline(Work(pipeline, parts, run, into=state))
        rows = max(part.first_row + part.rows for part in parts) if parts else rows
    if where.name != "reference" and state.sink.key_words:
        size = where.table_bytes(state.sink, state.capacity)
        assert run.ledger.held == size, "every table but the last was given back"
    order: Emitted = where.order_groups(state, rows, new_run())
    builder = Builder()
    read(builder.column(Column(R.U32, np.zeros(0, np.uint32))), builder)
    part = Part(order.rows, 0, [order.columns[0]], builder.slot_values)
    return emitted_values(where, where.run_pipeline(Work(builder.pipeline(), [part], new_run(), source_table=state)))


def assert_same_groups(
    where: Any, runs: list[tuple[Pipeline, list[Part]]], read: Callable[[Operand, Builder], None]
) -> list[np.ndarray]:
    expected = groups_on(ReferenceDevice(), runs, read)
    assert_same(expected, groups_on(device(*where), runs, read), str(where))
    return expected


def emit_words(words: list[int]) -> Callable[[Operand, Builder], None]:
    def read(group: Operand, builder: Builder) -> None:
        for word in words:
            builder.emit(builder.value("GroupWord", (R.I64, R.U32), group, word))

    return read


@everywhere
@each_size
def test_reductions_of_one_group(where: Any, sizes: list[int]) -> None:
    builder, words = Builder(), Words()
    reduced = []
    for kind in (R.MASK, R.U8, R.U16, R.U32, R.I32, R.I64):
        reduced.append(words.take("add", 0))
        builder.block("ReduceAdd", (kind,), reduced[-1], column(builder, kind))
    for kind in (R.U8, R.U16, R.U32):
        reduced += [word := words.take("add", 0, 2), word + 1]
        base, scale = builder.constant(R.I64, -(1 << 62) + 7), builder.constant(R.I64, (1 << 33) + 3)
        builder.block("ReduceStored", (kind,), word, column(builder, kind), column(builder, R.MASK), base, scale)
    for name, kind, initial in (("ReduceMin", "min", GREATEST), ("ReduceMax", "max", LEAST)):
        reduced.append(words.take(kind, initial))
        builder.block(name, (R.I64,), reduced[-1], column(builder, R.I64))
    first = words.take("add", 0, 3)
    x, keep = column(builder, R.F64), column(builder, R.MASK)
    builder.block("ReduceFixed", (R.F64,), first, x, keep, builder.constant(R.F64, 2.0**8))
    parts = parts_of(builder, sizes, seeded(6, len(sizes)))
    for part in parts:
        part.columns[x.number] = stored(fixed_point_values(part.rows, seeded(7, part.rows)), R.F64)

    def read(group: Operand, reader: Builder) -> None:
        emit_words([*reduced, first, first + 1, first + 2])(group, reader)
        scale = reader.constant(R.F64, 2.0**8)
        reader.emit(reader.value("FixedToFloat", (R.F64, R.U32), group, first, scale))

    pipeline = builder.pipeline(GroupSink("one", 1, 0, tuple(words.found)))
    assert_same_groups(where, [(pipeline, parts)], read)


def fixed_point_values(rows: int, random: np.random.Generator) -> np.ndarray:
    """Doubles below 2 ** 24 that three lanes at scale 2 ** 8 hold."""
    return np.ldexp(random.integers(-(2**52), 2**52, rows).astype(float), random.integers(-60, -29, rows))


@everywhere
@pytest.mark.parametrize(
    ("bad", "scale_exponent"),
    [(bad, 8) for bad in (np.nan, np.inf, -np.inf, 2.0**25, -(2.0**25), 1e-30, 5e-324, -(2.0**-73))]
    + [(2.0**-300, -868), (-5e-324, -2)],  # times the scale it is zero
)
def test_a_value_that_lanes_cannot_hold_is_told(where: Any, bad: float, scale_exponent: int) -> None:
    for grouped in (False, True):
        for row in (0, 70, 299):
            builder, words = Builder(), Words()
            values = np.full(300, 2.0**-scale_exponent)
            values[row] = bad
            x = builder.column(Column(R.F64, stored(values, R.F64)))
            keep = np.ones(300, np.uint8)
            mask = builder.column(Column(R.MASK, stored(keep, R.MASK)))
            word = words.take("add", 0, 3)
            scale = builder.constant(R.F64, 2.0**scale_exponent)
            if grouped:
                builder.value("SplitFixed", (R.I64, R.F64), x, mask, scale, count=3)
            else:
                builder.block("ReduceFixed", (R.F64,), word, x, mask, scale)
            pipeline = builder.pipeline(GroupSink("one", 1, 0, tuple(words.found)))
            part = builder.part(300)
            for at in (ReferenceDevice(), device(*where)):
                with pytest.raises(InexactSum):
                    at.run_pipeline(Work(pipeline, [part], new_run()))
            keep[row] = 0
            part.columns[mask.number] = stored(keep, R.MASK)
            for at in (ReferenceDevice(), device(*where)):
                at.run_pipeline(Work(pipeline, [part], new_run()))


@everywhere
@each_size
@pytest.mark.parametrize("capacity", [1, 7, 3000])
def test_dense_groups(where: Any, sizes: list[int], capacity: int) -> None:
    builder, words = Builder(), Words()
    group = column(builder, R.U32)
    integers = [column(builder, R.I64) for _ in range(4)]
    keep = column(builder, R.MASK)
    key, low = column(builder, R.I64), column(builder, R.I64)
    x = column(builder, R.F64)
    builder.block("GroupFirst", (R.U32,), group)
    read: list[int] = [0]
    for count in (1, 2, 3, 4):
        word = words.take("add", 0, count)
        builder.block(f"GroupAdd{count}", (R.U32,), group, word, *(builder.vector(v) for v in integers[:count]))
        read += range(word, word + count)
    for name, kind, initial in (
        ("GroupMin", "min", GREATEST),
        ("GroupMax", "max", LEAST),
        ("GroupAnd", "and", -1),
        ("GroupXor", "xor", 0),
    ):
        read.append(words.take(kind, initial))
        builder.block(name, (R.U32, R.I64), group, read[-1], integers[0])
    arg = words.take_arg()
    read += [arg, arg + 1, arg + 2]
    builder.block("GroupArgMin", (R.U32, R.I64), group, arg, key, integers[1], keep)
    arg = words.take_wide_arg()
    read += range(arg, arg + 4)
    builder.block("GroupArgMinWide", (R.U32, R.I64), group, arg, key, low, integers[1], keep)
    lanes = builder.value("SplitFixed", (R.I64, R.F64), x, keep, builder.constant(R.F64, 2.0**8), count=3)
    fixed = words.take("add", 0, 3)
    operands = [Operand(lanes.kind, lanes.number + k, R.I64) for k in range(3)]
    builder.block("GroupAdd3", (R.U32,), group, fixed, *operands)

    def values(groups: Operand, reader: Builder) -> None:
        emit_words(read)(groups, reader)
        reader.emit(reader.value("FixedToFloat", (R.F64, R.U32), groups, fixed, reader.constant(R.F64, 2.0**8)))

    sink = GroupSink("dense", capacity, 0, tuple(words.found))
    parts = parts_of(builder, sizes, seeded(8, capacity, len(sizes)))
    random = seeded(9, capacity, len(sizes))
    for part in parts:
        part.columns[group.number] = stored(random.integers(0, capacity + 1, part.rows), R.U32)  # some are trash
        for number in (key.number, low.number):
            part.columns[number] = stored(random.integers(-2, 3, part.rows), R.I64)  # many ties
        part.columns[x.number] = stored(fixed_point_values(part.rows, random), R.F64)
    assert_same_groups(where, [(builder.pipeline(sink), parts)], values)


@everywhere
@pytest.mark.parametrize("kind", ["usual", "special", "any bits", "large", "tiny", "cancelling", "ties", "small"])
@pytest.mark.parametrize("rows", [1, 2, 700])
def test_exact_sums_variances_and_correlations(where: Any, kind: str, rows: int) -> None:
    capacity, random = 3, seeded(10, rows)
    builder, words = Builder(), Words()
    group = builder.column(Column(R.U32, stored(random.integers(0, capacity + 1, rows), R.U32)))
    keep = builder.column(Column(R.MASK, stored(random.random(rows) < 0.8, R.MASK)))
    x, y = (builder.column(Column(R.F64, stored(floats(kind, rows, random), R.F64))) for _ in range(2))
    one = builder.vector(builder.constant(R.F64, 1.0))
    builder.block("GroupFirst", (R.U32,), group)
    count = words.take("add", 0)
    counted = builder.make("Convert", (R.I64, R.MASK), "v", keep)
    builder.block("GroupAdd1", (R.U32,), group, count, counted)
    sums = words.take("add", 0, 8 * WIDE_WORDS)
    for k, (left, right) in enumerate([(x, one), (x, x), (y, one), (y, y), (x, y), (x, one), (y, one), (x, y)]):
        builder.block("GroupAddWide", (R.U32, R.F64), group, sums + k * WIDE_WORDS, left, right, keep)

    def read(groups: Operand, reader: Builder) -> None:
        for k in range(5):
            reader.emit(reader.value("WideToFloat", (R.F64, R.U32), groups, sums + k * WIDE_WORDS))
        for less in (0, 1):
            reader.emit(reader.value("WideVariance", (R.F64, R.U32), groups, count, sums, less))
            together = sums + 5 * WIDE_WORDS
            reader.emit(reader.value("WideCovariance", (R.F64, R.U32), groups, count, together, less))
        reader.emit(reader.value("WideCorrelation", (R.F64, R.U32), groups, count, sums))

    pipeline = builder.pipeline(GroupSink("dense", capacity, 0, tuple(words.found)))
    assert_same_groups(where, [(pipeline, [builder.part(rows)])], read)


@everywhere
@pytest.mark.parametrize("rows", [1, 2, 700])
def test_moments_by_lanes(where: Any, rows: int) -> None:
    capacity, random = 3, seeded(11, rows)
    builder, words = Builder(), Words()
    group = builder.column(Column(R.U32, stored(random.integers(0, capacity + 1, rows), R.U32)))
    keep = builder.column(Column(R.MASK, stored(random.random(rows) < 0.8, R.MASK)))
    scale = builder.constant(R.F64, 2.0**8)
    builder.block("GroupFirst", (R.U32,), group)
    count = words.take("add", 0)
    counted = builder.make("Convert", (R.I64, R.MASK), "v", keep)
    builder.block("GroupAdd1", (R.U32,), group, count, counted)
    split = []
    for _ in range(2):
        value = builder.column(Column(R.F64, stored(fixed_point_values(rows, random), R.F64)))
        split.append((builder.value("SplitFixed", (R.I64, R.F64), value, keep, scale, count=3), 3))
    (x, _), (y, _) = split
    for left, right in ((x, x), (y, y), (x, y)):
        split.append((builder.value("SplitProduct", (R.I64, R.I64, R.I64), left, right, count=6), 6))
    of_x, of_y, of_xx, of_yy, of_xy = split
    sums = []
    for parts in ((of_x, of_xx), (of_x, of_y, of_xy), (of_x, of_y, of_xx, of_yy, of_xy)):
        sums.append(words.take("add", 0, sum(lanes for _, lanes in parts)))
        at = sums[-1]
        for first, lanes in parts:
            for k in range(lanes):
                builder.block("GroupAdd1", (R.U32,), group, at, Operand(first.kind, first.number + k, R.I64))
                at += 1

    def read(groups: Operand, reader: Builder) -> None:
        for less in (0, 1):
            reader.emit(reader.value("LaneVariance", (R.F64, R.U32), groups, count, sums[0], less))
            reader.emit(reader.value("LaneCovariance", (R.F64, R.U32), groups, count, sums[1], less))
        reader.emit(reader.value("LaneCorrelation", (R.F64, R.U32), groups, count, sums[2]))

    pipeline = builder.pipeline(GroupSink("dense", capacity, 0, tuple(words.found)))
    assert_same_groups(where, [(pipeline, [builder.part(rows)])], read)


@everywhere
@pytest.mark.parametrize(
    ("terms", "factor", "total"),
    [
        ([1.0, 2.0**-53], 1.0, 1.0),
        ([1.0, 2.0**-53, 2.0**-1074], 1.0, 1.0 + 2.0**-52),
        ([1.0, 2.0**-53, -(2.0**-1074)], 1.0, 1.0),
        ([1.0 + 2.0**-52, 2.0**-53], 1.0, 1.0 + 2.0**-51),
        ([-1.0, -(2.0**-53), -(2.0**-500)], 1.0, -1.0 - 2.0**-52),
        ([1.7976931348623157e308, 2.0**970], 1.0, np.inf),
        ([1.7976931348623157e308, 2.0**970, -(2.0**-1074)], 1.0, 1.7976931348623157e308),
        ([2.0**-1074, -(2.0**-1074)], 1.0, 0.0),
        ([2.0**-535], 2.0**-540, 0.0),
        ([2.0**-535, 2.0**-600], 2.0**-540, 2.0**-1074),
        ([2.0**-534, 2.0**-535, -(2.0**-600)], 2.0**-540, 2.0**-1074),
    ],
)
def test_an_exact_sum_is_rounded_once_to_nearest_even(
    where: Any, terms: list[float], factor: float, total: float
) -> None:
    builder, words = Builder(), Words()
    group = builder.vector(builder.constant(R.U32, 0))
    keep = builder.vector(builder.constant(R.MASK, 1))
    y = builder.vector(builder.constant(R.F64, factor))
    x = builder.column(Column(R.F64, stored(np.array(terms), R.F64)))
    builder.block("GroupFirst", (R.U32,), group)
    word = words.take("add", 0, WIDE_WORDS)
    builder.block("GroupAddWide", (R.U32, R.F64), group, word, x, y, keep)
    pipeline = builder.pipeline(GroupSink("dense", 1, 0, tuple(words.found)))

    def read(groups: Operand, reader: Builder) -> None:
        reader.emit(reader.value("WideToFloat", (R.F64, R.U32), groups, word))

    assert assert_same_groups(where, [(pipeline, [builder.part(len(terms))])], read)[0].tolist() == [total]


def floats(kind: str, rows: int, random: np.random.Generator) -> np.ndarray:
    """Doubles of one kind."""
    normal = random.normal(size=rows)
    match kind:
        case "usual":
            return normal * 1000
        case "special":
            return np.where(random.random(rows) < 0.02, random.choice([np.nan, np.inf, -np.inf], rows), normal)
        case "any bits":
            return np.nan_to_num(random.integers(0, 1 << 64, rows, np.uint64).view(np.float64))
        case "large":
            return np.copysign(1.7e308, normal) * random.random(rows)
        case "tiny":
            return np.ldexp(random.integers(-9, 9, rows).astype(float), random.integers(-1074, -1000, rows))
        case "small":  # squares and products near the least double
            return np.ldexp(normal, random.integers(-545, -530, rows))
        case "ties":  # sums halfway between two doubles, or just beside that
            return np.ldexp(random.choice([-1.0, 1.0], rows), random.choice([0, 1, -53, -54, -120, -300], rows))
    parts = np.concatenate([normal * 1e300, normal * 1e-300, np.zeros(rows)])
    return random.permutation(np.concatenate([parts, -parts[:rows]]))[:rows]


@everywhere
@pytest.mark.parametrize("key_words", [1, 2, 3])
@pytest.mark.parametrize("distinct", [1, 50, 3000, 6000, 30_000])
def test_hash_groups_grow_and_are_ordered_by_their_first_row(where: Any, key_words: int, distinct: int) -> None:
    random = seeded(11, key_words, distinct)
    builder, words = Builder(), Words()
    columns = [column(builder, R.I64) for _ in range(key_words)]
    alive, value = column(builder, R.MASK), column(builder, R.I64)
    keys = builder.register(R.I64, key_words)
    for k, operand in enumerate(columns):
        builder.copy_into(Operand(keys.kind, keys.number + k, R.I64), operand)
    group = builder.value("GroupFind", (R.U32, R.I64), keys, alive, key_words)
    builder.block("GroupFirst", (R.U32,), group)
    added, least, greatest, common, odd, arg, wide = (
        words.take("add", 0),
        words.take("min", GREATEST),
        words.take("max", LEAST),
        words.take("and", -1),
        words.take("xor", 0),
        words.take_arg(),
        words.take_wide_arg(),
    )
    builder.block("GroupAdd1", (R.U32,), group, added, builder.vector(value))
    builder.block("GroupMin", (R.U32, R.I64), group, least, value)
    builder.block("GroupMax", (R.U32, R.I64), group, greatest, value)
    builder.block("GroupAnd", (R.U32, R.I64), group, common, value)
    builder.block("GroupXor", (R.U32, R.I64), group, odd, value)
    builder.block("GroupArgMin", (R.U32, R.I64), group, arg, value, value, alive)
    builder.block("GroupArgMinWide", (R.U32, R.I64), group, wide, columns[0], value, value, alive)

    def read(groups: Operand, reader: Builder) -> None:
        for k in range(key_words):
            reader.emit(reader.value("GroupKey", (R.I64, R.U32), groups, k))
        emit_words([0, added, least, greatest, common, odd, *range(arg, arg + 3), *range(wide, wide + 4)])(
            groups, reader
        )

    pipeline = builder.pipeline(GroupSink("hash", 0, key_words, tuple(words.found)))
    pool = random.integers(LEAST, GREATEST, (max(1, distinct), key_words), np.int64, endpoint=True)
    runs = []
    for sizes, first in (([4096, 4096, 777], 0), ([4096 * 2], 10_000)):
        parts = parts_of(builder, sizes, random, first)
        for part in parts:
            chosen = pool[random.integers(0, len(pool), part.rows)]
            for k in range(key_words):
                part.columns[k] = stored(chosen[:, k], R.I64)
            part.columns[alive.number] = stored(random.random(part.rows) < 0.9, R.MASK)
        runs.append((pipeline, parts))
    found = assert_same_groups(where, runs, read)
    assert len(set(zip(*(f.tolist() for f in found[:key_words]), strict=True))) == len(found[0]), "a key has one group"


@everywhere
@pytest.mark.parametrize("numbers", [1, 50, 5000, 200_000])
@pytest.mark.parametrize("count", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 3)), 4])
@pytest.mark.parametrize("compact", [False, True])
def test_indexed_groups_grow_and_are_ordered_by_their_first_row(
    where: Any, numbers: int, count: int, compact: bool
) -> None:
    random = seeded(13, numbers, count)
    builder, words = Builder(), Words()
    number, alive = column(builder, R.U32), column(builder, R.MASK)
    values: list[Operand] = [column(builder, R.I64) for _ in range(count)]
    if compact:
        rows = builder.value("Compact", (R.U32,), alive)
        number = builder.value("Pick", (R.U32, R.U32, R.U32), number, rows)
        values = [builder.value("Pick", (R.I64, R.I64, R.U32), v, rows) for v in values]
    group = builder.value("GroupIndex", (R.U32, R.U32), number)
    first = words.take("add", 0, count)
    assert first == 1, "GroupFirstAdd adds behind the first row"
    builder.block(f"GroupFirstAdd{count}", (R.U32,), group, first, *values)

    def read(groups: Operand, reader: Builder) -> None:
        reader.emit(reader.value("GroupKey", (R.I64, R.U32), groups, 0))
        emit_words([0, *range(first, first + count)])(groups, reader)

    pipeline = builder.pipeline(GroupSink("indexed", numbers, 1, tuple(words.found)))
    runs = []
    for sizes, row in (([4096, 4096, 777], 0), ([4096 * 2], 10_000)):
        parts = parts_of(builder, sizes, random, row)
        for part in parts:  # the number past the last is the trash group's
            part.columns[0] = stored(random.integers(0, numbers + 1, part.rows), R.U32)
            part.columns[1] = stored(random.random(part.rows) < 0.3, R.MASK)
        runs.append((pipeline, parts))
    found = assert_same_groups(where, runs, read)
    assert len(set(found[0].tolist())) == len(found[0]), "a number has one group"


def counted_keys(where: Any, keys: np.ndarray, limit: int) -> tuple[list[np.ndarray], int]:
    """([keys, first rows, counts] of the groups, most bytes held on the way)."""
    builder, words = Builder(), Words()
    key = builder.column(Column(R.I64, stored(keys, R.I64)))
    register = builder.register(R.I64, 1)
    builder.copy_into(register, key)
    group = builder.value("GroupFind", (R.U32, R.I64), register, builder.vector(builder.constant(R.MASK, 1)), 1)
    builder.block("GroupFirst", (R.U32,), group)
    count = words.take("add", 0)
    builder.block("GroupAdd1", (R.U32,), group, count, builder.vector(builder.constant(R.I64, 1)))

    def read(groups: Operand, reader: Builder) -> None:
        reader.emit(reader.value("GroupKey", (R.I64, R.U32), groups, 0))
        emit_words([0, count])(groups, reader)

    pipeline, run = builder.pipeline(GroupSink("hash", 0, 1, tuple(words.found))), Run(Ledger(limit))
    return groups_on(where, [(pipeline, [builder.part(len(keys))])], read, run), run.ledger.peak


@everywhere
def test_keys_that_never_repeat_are_as_many_groups(where: Any) -> None:
    keys = seeded(15).permutation(30_011)
    found, _ = counted_keys(device(*where), keys, 1 << 40)
    assert found[0].tolist() == keys.tolist()
    assert found[1].tolist() == list(range(len(keys))) and found[2].tolist() == [1] * len(keys)


@pytest.mark.parametrize("where", [("cpu", 1024, 1), ("lanes32", 64, 1)], ids=str)
def test_a_table_does_not_grow_to_what_is_expected_where_less_fits(where: Any) -> None:
    keys = np.arange(30_000) % 6000  # so that the first rows make a table expect 33,000 groups
    expected, peak = counted_keys(device(*where), keys, 1 << 40)
    found, less = counted_keys(device(*where), keys, peak - 1)
    assert_same(expected, found, str(where))
    assert found[2].tolist() == [5] * 6000 and less < 0.8 * peak


def hash_step(hashed: int, word: int) -> int:
    """The same as in kernels/ops_group.cuh."""
    x = ((hashed ^ (word & MASK64)) + 0x9E3779B97F4A7C15) & MASK64
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK64
    return x ^ (x >> 31)


@everywhere
def test_keys_of_one_hash_are_groups_of_their_own(where: Any) -> None:
    firsts = [0, 1, -1, 7, LEAST, GREATEST]
    seconds = [hash_step(0, first) ^ 12345 for first in firsts]  # so that the second step starts from one number
    keys = [
        (first, second - (1 << 64) if second >> 63 else second) for first, second in zip(firsts, seconds, strict=True)
    ]
    assert len({hash_step(hash_step(0, first), second) for first, second in keys}) == 1
    rows = [keys[k] for k in seeded(14).integers(0, len(keys), 300)]
    builder, words = Builder(), Words()
    registers = builder.register(R.I64, 2)
    for k in range(2):
        word = builder.column(Column(R.I64, stored(np.array([row[k] for row in rows], np.int64), R.I64)))
        builder.copy_into(Operand(registers.kind, registers.number + k, R.I64), word)
    group = builder.value("GroupFind", (R.U32, R.I64), registers, builder.vector(builder.constant(R.MASK, 1)), 2)
    builder.block("GroupFirst", (R.U32,), group)
    count = words.take("add", 0)
    builder.block("GroupAdd1", (R.U32,), group, count, builder.vector(builder.constant(R.I64, 1)))

    def read(groups: Operand, reader: Builder) -> None:
        for k in range(2):
            reader.emit(reader.value("GroupKey", (R.I64, R.U32), groups, k))
        emit_words([0, count])(groups, reader)

    pipeline = builder.pipeline(GroupSink("hash", 0, 2, tuple(words.found)))
    found = assert_same_groups(where, [(pipeline, [builder.part(len(rows))])], read)
    assert len(found[0]) == len(keys)


@everywhere
@pytest.mark.parametrize("key_words", [1, 2, 3])
@pytest.mark.parametrize("distinct", [1, 50, 6000])
def test_a_probe_finds_the_entry_of_its_key_or_none(where: Any, key_words: int, distinct: int) -> None:
    random = seeded(14, key_words, distinct)
    pool = random.integers(LEAST, GREATEST, (2 * distinct, key_words), np.int64, endpoint=True)
    held = pool[:distinct]  # the other half is never inserted
    for at in (ReferenceDevice(), device(*where)):
        builder = Builder()
        keys, alive, columns = key_registers(builder, key_words)
        builder.block("GroupFirst", (R.U32,), builder.value("GroupFind", (R.U32, R.I64), keys, alive, key_words))
        pipeline = builder.pipeline(GroupSink("hash", 0, key_words, (("min", GREATEST),)))
        part = Part(distinct, 0, [*(stored(held[:, k], R.I64) for k in range(key_words)), None], [])
        part.columns[alive.number] = stored(np.ones(distinct), R.MASK)
        table = at.run_pipeline(Work(pipeline, [part], new_run()))

        groups = at.order_groups(table, distinct, new_run())
        (numbers,) = emitted_values(at, groups)
        entry_of = {tuple(held[row].tolist()): int(number) + 1 for row, number in enumerate(numbers)}
        assert len(set(entry_of.values())) == distinct

        builder = Builder()
        keys, alive, columns = key_registers(builder, key_words)
        builder.slots.append(GroupTableSlot(0))
        builder.slot_values.append(table)
        builder.emit(builder.value("Probe", (R.U32, R.I64), keys, alive, key_words, Operand(SLOT, 0, R.I64)))
        parts = parts_of(builder, [4096, 777, 1], random)
        expected = []
        for part in parts:
            chosen = pool[random.integers(0, len(pool), part.rows)]
            counted = random.random(part.rows) < 0.9
            for k, operand in enumerate(columns):
                part.columns[operand.number] = stored(chosen[:, k], R.I64)
            part.columns[alive.number] = stored(counted, R.MASK)
            known = [entry_of.get(tuple(key), 0) for key in chosen.tolist()]
            expected += [entry if count else 0 for entry, count in zip(known, counted, strict=True)]
        (found,) = outcome(at, builder.pipeline(), parts)
        assert found.tolist() == expected


def key_registers(builder: Builder, key_words: int) -> tuple[Operand, Operand, list[Operand]]:
    """(first of the consecutive registers of a key, mask of rows that count, the columns of the key)."""
    columns = [column(builder, R.I64) for _ in range(key_words)]
    alive = column(builder, R.MASK)
    keys = builder.register(R.I64, key_words)
    for k, operand in enumerate(columns):
        builder.copy_into(Operand(keys.kind, keys.number + k, R.I64), operand)
    return keys, alive, columns


# ------------------------------------------------------------------------------------------------------------ order


@everywhere
@pytest.mark.parametrize("rows", [0, 1, 2, 63, 256, 257, 5000])
def test_sorted_rows_keep_ties_in_order(where: Any, rows: int) -> None:
    random = seeded(12, rows)
    at = device(*where)
    words = [
        stored(random.integers(-2, 2, rows), R.I64),
        stored(random_values(R.I64, rows, random) if rows % 2 else random.integers(-(10**6), 10**6, rows), R.I64),
        stored(np.full(rows, 7), R.I64),
    ]
    for chosen in ([0], [1], [2], [0, 1], [0, 2, 1], []):
        expected = ReferenceDevice().sort_rows([words[k] for k in chosen], rows, new_run())
        found = at.sort_rows([at.from_host(words[k]) for k in chosen], rows, new_run())
        assert_same(emitted_values(ReferenceDevice(), expected), emitted_values(at, found), f"{where}, words {chosen}")


@everywhere
@pytest.mark.parametrize("rows", [0, 1, 63, 5000, 50_000])
@pytest.mark.parametrize("most", [1, 2, 5])
def test_repeated_rows_stay_in_order(where: Any, rows: int, most: int) -> None:
    at = device(*where)
    counts = seeded(16, rows).integers(-1, most, rows)
    expected = np.repeat(np.arange(rows), np.maximum(counts, 0)).astype(np.uint32)
    found = at.repeat_rows(at.from_host(stored(counts, R.I64)), rows, new_run())
    reference = ReferenceDevice().repeat_rows(counts, rows, new_run())
    assert_same([expected], emitted_values(ReferenceDevice(), reference), "reference")
    assert_same([expected], emitted_values(at, found), str(where))


@everywhere
@pytest.mark.parametrize("start", [0, 1, 8, 13, 64])
def test_slices_and_concatenations(where: Any, start: int) -> None:
    builder = Builder()
    for kind in TYPES:
        builder.emit(column(builder, kind))
    parts = parts_of(builder, [500], seeded(13, start))
    found = []
    for at in (ReferenceDevice(), device(*where)):
        emitted = at.run_pipeline(Work(builder.pipeline(), parts, new_run()))
        sliced = at.slice_emitted(emitted, start, 400)
        both = at.concatenated([sliced, at.slice_emitted(emitted, 3, 3), at.slice_emitted(emitted, 7, 100)], new_run())
        # What was sliced is read in place by the next pipeline.
        part = Part(400 - start, 0, sliced.columns, [])
        again = at.run_pipeline(Work(builder.pipeline(), [part], new_run()))
        found.append([*emitted_values(at, sliced), *emitted_values(at, both), *emitted_values(at, again)])
    assert_same(found[0], found[1], str(where))
