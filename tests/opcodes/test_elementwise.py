"""Every elementwise opcode, compiled and launched, gives the bits of its NumPy body, at every tile edge."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Sequence

import numpy as np
import pytest

from gpudb.instruction_set import instruction_set
from gpudb.opcodes import Opcode, Variant
from gpudb.opcodes.evaluate import evaluate
from gpudb.program import Operand
from gpudb.time_zones import zone
from gpudb.types import RegisterType
from tests.opcodes.pipelines import (
    SPECIAL_FLOATS,
    Builder,
    Column,
    assert_same,
    device,
    outcome,
    random_column,
    random_values,
    stored,
)

R = RegisterType
TILE = 64  # the smallest: edges lie close together
SIZES = [0, 1, TILE - 1, TILE, TILE + 1, 5 * TILE + 17]
LARGE_TILE = 1024
TABLE_ROWS = {R.U8: 256, R.U16: 1000, R.U32: 1000}

OPCODES = [o for o in instruction_set().opcodes.values() if o.role == "elementwise"]


def variants_of(opcode: Opcode) -> list[Variant]:
    return [v for v in instruction_set().variants if v.opcode is opcode]


def operands(
    builder: Builder, variant: Variant, rows: int, random: np.random.Generator
) -> tuple[list[Operand], list[np.ndarray]]:
    """Random operands of one variant, and what the body gets for them; where an opcode has a domain, from it."""
    given, values = [], []
    for place, (kind, form) in enumerate(zip(variant.signature[1:], variant.form, strict=True)):
        if form == "p":
            if variant.opcode.name == "ZoneOffset":
                table = np.frombuffer(zone("America/New_York").table, np.int64)
            else:
                table = random_values(kind, TABLE_ROWS[variant.signature[1]], random)
            given.append(builder.lookup_table(kind, table))
            values.append(table)
        elif form == "s":
            value = random_values(kind, 64, random)[random.integers(64)]
            value = in_domain(variant, place, np.array([value], kind.dtype))[0]
            given.append(builder.constant(kind, value))
            scalar = np.empty((), kind.dtype)
            scalar[()] = value
            values.append(scalar)
        else:
            column = random_column(kind, rows, random)
            column = Column(kind, stored(in_domain(variant, place, column.values(rows)), kind))
            given.append(builder.column(column))
            values.append(column.values(rows))
    return given, values


def in_domain(variant: Variant, place: int, values: np.ndarray) -> np.ndarray:
    """Indexes of a table's entries, positive divisors, shifts below 64; anything goes elsewhere."""
    match variant.opcode.name, place:
        case "Lookup", 0:
            return values % values.dtype.type(TABLE_ROWS[variant.signature[1]] - 1)
        case (("FloorDivide" | "DivideRounded" | "DivideCode" | "Ratio"), 1):
            if values.dtype == object:
                return np.array([abs(v) // 2 + 1 for v in values], object)
            return np.abs(values // 2).astype(values.dtype) + values.dtype.type(1)
        case "ShiftRight", 1:
            return values & 63
    return values


def counts(variant: Variant, values: list[np.ndarray], rows: int) -> np.ndarray:
    """Rows that a function is defined for; elsewhere its bits mean nothing."""
    name, _, arguments = variant.opcode.name.partition(":")
    domain = instruction_set().opcodes.get(f"{name}_domain:{arguments}")
    if domain is None:
        return np.ones(rows, bool)
    return evaluate(Variant(domain, (R.MASK, *variant.signature[1:]), variant.form), values, rows) != 0


def check(name: str, opcode: Opcode, rows: int, tile_rows: int) -> None:
    random = np.random.default_rng([zlib.crc32(opcode.name.encode()), rows])
    builder, expected = Builder(), []
    for variant in variants_of(opcode):
        given, values = operands(builder, variant, rows, random)
        builder.emit(builder.run(variant, *given))
        expected.append((evaluate(variant, values, rows), counts(variant, values, rows)))
    found = outcome(device(name, tile_rows), builder.pipeline(), [builder.part(rows)])
    for variant, (left, defined), right in zip(variants_of(opcode), expected, found, strict=True):
        assert_same([left[defined]], [right[defined]], f"{variant} {variant.form} over {rows} rows")


@pytest.mark.parametrize(
    "name", ["cpu", "lanes32", *(pytest.param(n, marks=pytest.mark.slow) for n in ("lanes64", "lanes256"))]
)
@pytest.mark.parametrize("opcode", OPCODES, ids=lambda o: o.name)
def test_opcode_agrees_with_its_body(opcode: Opcode, name: str) -> None:
    for rows in SIZES:
        check(name, opcode, rows, TILE)


@pytest.mark.slow
@pytest.mark.parametrize("opcode", OPCODES, ids=lambda o: o.name)
def test_opcode_agrees_with_its_body_where_each_of_many_lanes_has_a_pack(opcode: Opcode) -> None:
    check("lanes256", opcode, 2048 + 17, 2048)


@pytest.mark.parametrize("rows", [LARGE_TILE - 1, LARGE_TILE + 1])
def test_all_opcodes_agree_with_their_bodies_on_the_edges_of_a_usual_tile(rows: int) -> None:
    for opcode in OPCODES:
        check("cpu", opcode, rows, LARGE_TILE)


def meeting(kinds: Sequence[RegisterType]) -> list[np.ndarray]:
    """One array a type, so that every combination of special values stands in a row: NaN with NaN, -0.0 with 0.0."""
    special = []
    for kind in kinds:
        if kind is R.MASK:
            special.append([0, 1])
        elif kind.is_float:
            special.append(SPECIAL_FLOATS)
        else:
            signed = kind in (R.I32, R.I64, R.I128)
            low, high = (
                (-(1 << 8 * kind.width - 1), (1 << 8 * kind.width - 1) - 1)
                if signed
                else (0, (1 << 8 * kind.width) - 1)
            )
            special.append([low, low + 1, high, high - 1, 0, 1, *((-1, -2) if signed else (2, 3))])
    rows = list(itertools.product(*special))
    found = []
    for k, kind in enumerate(kinds):
        values = np.empty(len(rows), object)
        values[:] = [row[k] for row in rows]
        with np.errstate(over="ignore"):
            found.append(values if kind is R.I128 else values.astype(kind.dtype))
    return found


@pytest.mark.parametrize(
    "opcode", [o for o in OPCODES if any(v.form == "vv" for v in variants_of(o))], ids=lambda o: o.name
)
def test_opcode_agrees_with_its_body_where_special_values_meet(opcode: Opcode) -> None:
    for variant in variants_of(opcode):
        if variant.form != "vv":
            continue
        values = [in_domain(variant, k, v) for k, v in enumerate(meeting(variant.signature[1:]))]
        builder, rows = Builder(), len(values[0])
        columns = [Column(kind, stored(v, kind)) for kind, v in zip(variant.signature[1:], values, strict=True)]
        builder.emit(builder.run(variant, *(builder.column(column) for column in columns)))
        values = [column.values(rows) for column in columns]
        expected, defined = evaluate(variant, values, rows), counts(variant, values, rows)
        (found,) = outcome(device("cpu", TILE), builder.pipeline(), [builder.part(rows)])
        assert_same([expected[defined]], [found[defined]], str(variant))
