"""Small pipelines made by hand, random columns for them, and the devices that run them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from gpudb.devices.cpu import CpuDevice
from gpudb.devices.lanes import LanesDevice
from gpudb.devices.reference import ReferenceDevice
from gpudb.devices.reference_tile import values_of_type
from gpudb.devices.work import Emitted, Ledger, Part, PipelineFailure, Run, Work
from gpudb.instruction_set import instruction_set
from gpudb.opcodes import Variant
from gpudb.opcodes.evaluate import wrapped
from gpudb.program import (
    COLUMN,
    PLAIN,
    REGISTER,
    SLOT,
    ConstantSlot,
    EmitSink,
    GroupSink,
    Instruction,
    MemberTable,
    Operand,
    Pipeline,
    SingleRowSource,
    SourceColumn,
    TableSlot,
)
from gpudb.types import BIGINT, RegisterType

R = RegisterType
PADDED = 4096
WORDS_MASK = (1 << 64) - 1
SPECIAL_FLOATS = [
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, np.nan, np.inf, -np.inf, 5e-324, -5e-324, 2.2e-308, 1e-40, 3.4e38),
    *(
        1.7976931348623157e308,
        -1.7976931348623157e308,
        4503599627370497.5,
        9.3e18,
        -9.3e18,
        2147483647.5,
        -2147483648.5,
    ),
]
# Integers halfway between two floats of 24 or 53 bits, and next to that.
HALFWAY = [
    sign * ((1 << top) + (odd << top - bits + 1) + (1 << top - bits) + beside)
    for bits, top in ((24, 27), (24, 40), (24, 61), (53, 56), (53, 62), (53, 70), (53, 100), (53, 125))
    for odd in (0, 1)
    for beside in (-1, 0, 1)
    for sign in (-1, 1)
]


@dataclass
class Column:
    """What a pipeline reads.

    stored  host memory as storage lays it out: whole tiles, zeros behind the last row, I128 as pairs of words
    """

    type: RegisterType
    stored: np.ndarray
    part: str = "stored"

    def values(self, rows: int) -> np.ndarray:
        """(rows,) as a register of the device reference holds them."""
        return values_of_type(self.stored, self.type)[:rows]


def stored(values: np.ndarray, kind: RegisterType) -> np.ndarray:
    """Values in host memory, aligned to 64 bytes, up to a multiple of PADDED rows."""
    count = max(1, -(-len(values) // PADDED)) * PADDED
    dtype, each = (np.dtype(np.uint64), 2) if kind is R.I128 else (kind.dtype, 1)
    raw = np.zeros(count * each * dtype.itemsize + 64, np.uint8)
    start = -raw.__array_interface__["data"][0] % 64
    array = raw[start : start + count * each * dtype.itemsize].view(dtype)
    if kind is R.I128:
        array[0 : 2 * len(values) : 2] = [int(v) & WORDS_MASK for v in values]
        array[1 : 2 * len(values) : 2] = [int(v) >> 64 & WORDS_MASK for v in values]
    else:
        array[: len(values)] = values
    return array


def random_values(kind: RegisterType, rows: int, random: np.random.Generator) -> np.ndarray:
    """Any bits, small numbers, and the extremes."""
    if kind is R.MASK:
        return random.integers(0, 2, rows).astype(np.uint8)
    if kind.is_float:
        bits = random.integers(0, 256, rows * kind.width, np.uint8).view(kind.dtype)
        usual = (random.normal(size=rows) * 10.0 ** random.integers(-3, 12, rows)).astype(kind.dtype)
        with np.errstate(over="ignore"):
            special = random.choice(SPECIAL_FLOATS, rows).astype(kind.dtype)
        return np.choose(random.integers(0, 3, rows), [bits, usual, special])
    width = 8 * kind.width
    signed = kind in (R.I32, R.I64, R.I128)
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
    extremes = [
        low,
        low + 1,
        high,
        high - 1,
        0,
        1,
        *((-1, -2) if signed else (2, 3)),
        1 << width // 2,
        (1 << width // 2) - 1,
        *(number for number in HALFWAY if low <= number <= high),
    ]
    words = random.integers(0, 1 << 64, (rows, 2), np.uint64)
    which = random.integers(0, 3, rows).tolist()
    small = random.integers(-100, 100, rows).tolist()
    chosen = random.integers(0, len(extremes), rows).tolist()
    found = np.empty(rows, object)
    found[:] = [(a | b << 64, small[i], extremes[chosen[i]])[which[i]] for i, (a, b) in enumerate(words.tolist())]
    return wrapped(found) if kind is R.I128 else (found & WORDS_MASK).astype(np.uint64).astype(kind.dtype)


def random_column(kind: RegisterType, rows: int, random: np.random.Generator) -> Column:
    """A column of random values."""
    return Column(kind, stored(random_values(kind, rows, random), kind))


# ------------------------------------------------------------------------------------------------------------ building


@dataclass
class Builder:
    """A pipeline under construction; no register's place is used twice."""

    columns: list[Column] = field(default_factory=list)
    slots: list[Any] = field(default_factory=list)
    slot_values: list[Any] = field(default_factory=list)
    registers: list[tuple[RegisterType, int]] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)
    outputs: list[RegisterType] = field(default_factory=list)
    messages: list[tuple[str, str, Any]] = field(default_factory=list)
    arena: int = 0

    def column(self, column: Column) -> Operand:
        self.columns.append(column)
        return Operand(COLUMN, len(self.columns) - 1, column.type)

    def constant(self, kind: RegisterType, value: Any) -> Operand:
        self.slots.append(ConstantSlot(kind, BIGINT, None))
        self.slot_values.append(value)
        return Operand(SLOT, len(self.slots) - 1, kind)

    def lookup_table(self, kind: RegisterType, values: np.ndarray) -> Operand:
        self.slots.append(TableSlot(MemberTable(None, 0, ())))
        self.slot_values.append(stored(values, kind))
        return Operand(SLOT, len(self.slots) - 1, R.I64)

    def register(self, kind: RegisterType, count: int = 1) -> Operand:
        first = len(self.registers)
        for _ in range(count):
            self.registers.append((kind, self.arena))
            self.arena += kind.width
        return Operand(REGISTER, first, kind)

    def run(self, variant: Variant, *inputs: Operand) -> Operand:
        """An elementwise instruction; its result's register."""
        out = self.register(variant.signature[0])
        self.instructions.append(Instruction(variant, (out, *inputs)))
        return out

    def make(self, name: str, signature: tuple[RegisterType, ...], form: str, *inputs: Operand) -> Operand:
        """The same by name."""
        return self.run(Variant(instruction_set().opcodes[name], signature, form), *inputs)

    def block(self, name: str, signature: tuple[RegisterType, ...], *operands: Operand | int) -> None:
        """An instruction where rows meet."""
        wrapped_operands = tuple(o if isinstance(o, Operand) else Operand(PLAIN, o) for o in operands)
        variant = Variant(instruction_set().opcodes[name], signature, "")
        assert signature in variant.opcode.signatures
        self.instructions.append(Instruction(variant, wrapped_operands))

    def value(
        self, name: str, signature: tuple[RegisterType, ...], *operands: Operand | int, count: int = 1
    ) -> Operand:
        """A block instruction whose first operand is a new register (or the first of several)."""
        out = self.register(signature[0], count)
        self.block(name, signature, out, *operands)
        return out

    def vector(self, operand: Operand) -> Operand:
        """A column or constant in a register."""
        assert operand.type is not None
        return self.make("Copy", (operand.type, operand.type), "s" if operand.kind == SLOT else "v", operand)

    def copy_into(self, target: Operand, operand: Operand) -> None:
        """A column's values in a given register."""
        assert operand.type is not None
        variant = Variant(instruction_set().opcodes["Copy"], (operand.type, operand.type), "v")
        self.instructions.append(Instruction(variant, (target, operand)))

    def emit(self, value: Operand, rows: Operand | None = None) -> None:
        """One more output column."""
        assert value.type is not None
        width = {1: R.U8, 2: R.U16, 4: R.U32, 8: R.I64, 16: R.I128}[value.type.width]
        self.outputs.append(value.type)
        if rows is None:
            self.block("EmitAll", (width,), len(self.outputs) - 1, value)
        else:
            self.block("Emit", (width, R.U32), len(self.outputs) - 1, value, rows)

    def pipeline(self, sink: GroupSink | None = None, filtered: bool = False) -> Pipeline:
        """What was built; without a group table its sink is what was emitted."""
        return Pipeline(
            source=SingleRowSource(),
            columns=tuple(SourceColumn(k, c.part, c.type) for k, c in enumerate(self.columns)),
            slots=tuple(self.slots),
            instructions=tuple(self.instructions),
            registers=tuple(self.registers),
            arena=max(16, self.arena),
            sink=sink or EmitSink(tuple(self.outputs), (), filtered),
            messages=tuple(self.messages),
        )

    def part(self, rows: int, first_row: int = 0) -> Part:
        """All columns as one row group."""
        return Part(rows, first_row, [c.stored for c in self.columns], self.slot_values)


def parts_of(builder: Builder, sizes: Sequence[int], random: np.random.Generator, first: int = 0) -> list[Part]:
    """Row groups of the given sizes, from row `first` on, each with random columns of the builder's types."""
    parts = []
    for rows in sizes:
        columns = []
        for column in builder.columns:
            if column.part == "validity":
                columns.append(stored(random.integers(0, 256, -(-rows // 8)).astype(np.uint8), R.U8))
            else:
                columns.append(stored(random_values(column.type, rows, random), column.type))
        parts.append(Part(rows, first, columns, builder.slot_values))
        first += rows
    return parts


# ------------------------------------------------------------------------------------------------------------ running


@cache
def device(name: str, tile_rows: int = 1024, threads: int = 1) -> Any:
    """A device by name, made once: reference, cpu, or lanes32 and the like."""
    if name == "reference":
        return ReferenceDevice()
    if name == "cpu":
        return CpuDevice(threads, tile_rows)
    return LanesDevice(threads, tile_rows, lanes=int(name.removeprefix("lanes")))


def new_run() -> Run:
    """A run without limits."""
    return Run(Ledger(1 << 40))


def emitted_values(where: Any, emitted: Emitted) -> list[np.ndarray]:
    """Emitted columns on the host, as registers of the device reference hold them."""
    if where.name == "reference":
        return [values_of_type(c, kind)[: emitted.rows] for c, kind in zip(emitted.columns, emitted.types, strict=True)]
    found = []
    for column, kind in zip(emitted.columns, emitted.types, strict=True):
        dtype, each = (np.dtype(np.uint64), 2) if kind is R.I128 else (kind.dtype, 1)
        found.append(values_of_type(where.to_host(column, dtype, emitted.rows * each).copy(), kind))
    return found


def outcome(where: Any, pipeline: Pipeline, parts: list[Part], **tables: Any) -> Any:
    """The emitted values, the group table, or the failure."""
    try:
        result = where.run_pipeline(Work(pipeline, parts, new_run(), **tables))
    except PipelineFailure as failure:
        return ("failed", failure.row, failure.message)
    return emitted_values(where, result) if isinstance(result, Emitted) else result


def same_values(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Row by row the same bits; one NaN is as good as another, as registers may hold any."""
    if left.dtype.kind != "f":
        return np.asarray(left == right, bool)
    bits = f"u{left.dtype.itemsize}"
    same = np.ascontiguousarray(left).view(bits) == np.ascontiguousarray(right).view(bits)
    return same | (np.isnan(left) & np.isnan(right))


def assert_same(expected: list[np.ndarray], found: list[np.ndarray], what: str = "") -> None:
    """All columns alike."""
    assert len(expected) == len(found)
    for k, (left, right) in enumerate(zip(expected, found, strict=True)):
        assert len(left) == len(right), f"{what}: column {k} has {len(right)} rows, not {len(left)}"
        same = same_values(left, right)
        row = int(np.argmin(same)) if len(same) else 0
        assert same.all(), f"{what}: column {k}, row {row} is {right[row]!r}, not {left[row]!r}"
