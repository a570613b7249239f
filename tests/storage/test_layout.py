"""Layouts: what the planner relies on, and that ordinary appends keep it."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from gpudb.storage.table import TableBuilder, TableVersion, round_outwards, table_from_arrow
from gpudb.types import RegisterType


def layout_of(**columns: object):
    return table_from_arrow("t", pa.table(columns)).layout().layouts


def append(version: TableVersion, table: pa.Table) -> TableVersion:
    builder = TableBuilder(version.columns, previous=version)
    builder.append(table)
    return builder.finish(version.name)


def test_each_kind_of_column_says_how_it_is_stored():
    small, framed, wide, flag, real, double, text, constant, nothing = layout_of(
        small=[1, 2, 3],
        framed=[1000, 1001, 1002],
        wide=[0, 1, 1 << 40],
        flag=[True, False, True],
        real=pa.array([1.5, 2.5, 3.0], pa.float32()),
        double=[1.0, 2.0, 5.0],
        text=["a", "b", "c"],
        constant=[9, 9, 9],
        nothing=pa.nulls(3, pa.int64()),
    )
    assert (small.stored, small.encoded, small.has_nulls) == (RegisterType.U8, False, False)
    assert (framed.stored, framed.encoded) == (RegisterType.U8, True)
    assert (wide.stored, wide.encoded) == (RegisterType.I64, False)
    assert (flag.stored, flag.low, flag.high, flag.distinct) == (RegisterType.MASK, 0, 1, 2)
    assert (real.stored, real.low, real.high) == (RegisterType.F32, 1.0, 4.0)
    assert (double.stored, double.low, double.high) == (RegisterType.F64, 1.0, 8.0)
    assert (text.stored, text.low, text.high, text.distinct) == (RegisterType.U8, 0, 3, 4)
    assert (constant.stored, constant.distinct) == (None, 1) and constant.low <= 9 <= constant.high
    assert (nothing.stored, nothing.low, nothing.high, nothing.has_nulls) == (None, None, None, True)


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_floats_with_nan_or_infinity_have_no_bounds(odd):
    (layout,) = layout_of(x=[1.0, odd])
    assert layout.low is None and layout.high is None


@pytest.mark.parametrize("value", [1.7976931348623157e308, 5e-324, -5e-324, -1e300, 0.1, -0.1, 1.0, -1.0, 0.0])
def test_float_bounds_enclose_the_value(value):
    (layout,) = layout_of(x=[value, value])
    assert layout.low is None or layout.low <= value <= layout.high


@pytest.mark.parametrize(
    "low, high, expected",
    [
        (0, 0, (0, 0)),
        (1987, 2008, (1984, 2015)),
        (1, 7, (0, 7)),
        (-3, 3, (-4, 3)),
        (0, 1 << 20, (0, (1 << 20) + (1 << 19) - 1)),
    ],
)
def test_ranges_are_rounded_outwards(low, high, expected):
    assert round_outwards(low, high) == expected


def test_bounds_never_leave_the_type():
    (layout,) = layout_of(x=pa.array([-128, 127], pa.int8()))
    assert (layout.low, layout.high) == (-128, 127)


def test_ordinary_appends_keep_the_layout_version():
    random = np.random.default_rng(1)
    rows = {"day": random.integers(8000, 8200, 60_000), "city": [f"c{i % 100}" for i in range(60_000)]}
    first = table_from_arrow("t", pa.table(rows))
    second = append(first, pa.table({"day": [8123], "city": ["c7"]}))
    assert second.layout() == first.layout()


@pytest.mark.parametrize(
    "row", [{"day": 5, "city": "a"}, {"day": 9, "city": "b"}, {"day": 1 << 20, "city": "a"}, {"day": None, "city": "a"}]
)
def test_a_layout_changes_its_version_when_its_text_changes(row):
    first = table_from_arrow("t", pa.table({"day": [4, 5, 6, 7, 7], "city": ["a"] * 5}))
    second = append(first, pa.Table.from_pylist([row], schema=pa.schema([("day", pa.int64()), ("city", pa.string())])))
    assert (second.layout().version == first.layout().version) == (second.layout() == first.layout())
    assert (second.layout() == first.layout()) == (row == {"day": 5, "city": "a"})


def test_a_constant_row_group_beside_others_is_stored_in_their_width():
    first = TableBuilder(table_from_arrow("t", pa.table({"a": [1]})).columns, row_group_rows=4096)
    first.append(pa.table({"a": np.concatenate([np.full(4096, 70), np.arange(4096)])}))
    version = first.finish("t")
    constant, other = (group.chunks[0] for group in version.row_groups)
    assert constant.stored is not None and constant.stored.dtype == other.stored.dtype == np.uint16
    assert not version.layout().layouts[0].encoded and constant.values().tolist() == [70] * 4096


def test_chunks_without_nulls_share_one_piece_of_ones():
    builder = TableBuilder(table_from_arrow("t", pa.table({"a": [1]})).columns, row_group_rows=4096)
    values = [*range(8192), *([None] * 4096)]
    builder.append(pa.table({"a": pa.array(values, pa.int64())}))
    first, second, third = (group.chunks[0].validity for group in builder.finish("t").row_groups)
    assert first.ctypes.data == second.ctypes.data and (first == 255).all() and not third.any()
