"""What goes into a table comes out of it, bit by bit, for every type, in one go and in pieces."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpudb.errors import ConversionError
from gpudb.storage import arrow
from gpudb.storage.column import ALIGNMENT, TILE_ROWS, WIDE, padded_rows
from gpudb.storage.table import TableBuilder, TableVersion, table_from_arrow
from gpudb.types import HUGEINT
from tests.storage.tables import KINDS, arrow_tables, same

PATIENT = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def check_invariants(version: TableVersion) -> None:
    """What Chunk, RowGroup and TableVersion promise to the kernels."""
    first_row = 0
    for number, group in enumerate(version.row_groups):
        assert group.first_row == first_row
        first_row += group.rows
        assert group.rows % TILE_ROWS == 0 or number == len(version.row_groups) - 1
        assert len(group.chunks) == len(version.columns)
    for index, (_, kind) in enumerate(version.columns):
        chunks = [group.chunks[index] for group in version.row_groups]
        assert len({chunk.dtype for chunk in chunks}) <= 1
        assert len({chunk.validity is None for chunk in chunks}) <= 1
        layout = version.layout().layouts[index]
        for chunk in chunks:
            rows = chunk.rows
            present = chunk.present()
            assert chunk.null_count == (0 if present is None else rows - int(present.sum()))
            if chunk.validity is not None:
                assert chunk.validity.dtype == np.uint8 and len(chunk.validity) == padded_rows(rows) // 8
            if chunk.stored is not None:
                assert chunk.stored.ctypes.data % ALIGNMENT == 0
                assert len(chunk.stored) == padded_rows(rows)
                assert not chunk.stored[rows:].view(np.uint8).any()
                assert present is None or not chunk.stored[:rows][~present].view(np.uint8).any()
                assert not chunk.encoded or chunk.stored.dtype.kind == "u"
            inhabited = chunk.values() if present is None else chunk.values()[present]
            if inhabited.dtype == WIDE:
                inhabited = np.array([low + (high << 64) for low, high in inhabited.tolist()], object)
            if len(inhabited) == 0:
                assert chunk.minimum is None and chunk.maximum is None
                continue
            np.testing.assert_equal(chunk.maximum, inhabited.max() + 0)
            np.testing.assert_equal(chunk.minimum, (np.fmin if kind.is_float else np.minimum).reduce(inhabited) + 0)
            if layout.low is not None and layout.high is not None:
                assert layout.low <= chunk.minimum and chunk.maximum <= layout.high
            if not kind.is_float and layout.distinct is not None:
                assert layout.distinct >= len(np.unique(inhabited))


@PATIENT
@given(arrow_tables())
def test_a_table_returns_the_rows_it_was_given(table):
    version = table_from_arrow("t", table)
    assert same(version.to_arrow(), table)
    check_invariants(version)


@PATIENT
@given(st.data())
def test_appending_in_pieces_gives_the_same_rows_as_one_load(data):
    table = data.draw(arrow_tables(max_rows=60))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(table)), max_size=6)))
    columns = arrow.columns_of(table.schema)
    version = TableVersion.empty("t", columns)
    for start, stop in zip([0, *cuts], [*cuts, len(table)], strict=True):
        before, rows_before = version.to_arrow(), version.num_rows
        builder = TableBuilder(columns, previous=version)
        builder.append(table.slice(start, stop - start))
        newer = builder.finish("t")
        assert same(version.to_arrow(), before) and version.num_rows == rows_before
        version = newer
        check_invariants(version)
    assert same(version.to_arrow(), table)


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("rows", [0, 1, 4095, 4096, 4097, 12288, 13000])
def test_row_groups_end_on_tile_edges_and_keep_every_row(kind, rows):
    arrow_type, _ = KINDS[kind]
    random = np.random.default_rng(rows)
    numbers = random.integers(-50, 50, rows) * np.where(np.arange(rows) > 8192, 1000, 1)  # later row groups are wider
    mask = (np.arange(rows) > 4096) & (random.random(rows) < 0.3)  # NULLs from the second row group on
    table = pa.table({"c": values_of(arrow_type, numbers, mask)})
    columns = arrow.columns_of(table.schema)
    version = TableVersion.empty("t", columns)
    for start in range(0, rows, 5000):
        builder = TableBuilder(columns, row_group_rows=4096, previous=version)
        builder.append(table.slice(start, 5000))
        version = builder.finish("t")
    assert [group.rows for group in version.row_groups] == [4096] * (rows // 4096) + [rows % 4096] * (rows % 4096 > 0)
    check_invariants(version)
    assert same(version.to_arrow(), table)


def values_of(arrow_type: pa.DataType, numbers: np.ndarray, mask: np.ndarray) -> pa.Array:
    """Numbers as values of any type, NULL where the mask says so."""
    if pa.types.is_boolean(arrow_type):
        return pa.array(numbers > 0, mask=mask)
    if pa.types.is_string(arrow_type):
        return pa.array([f"text {number}" for number in numbers], type=arrow_type, mask=mask)
    if pa.types.is_decimal(arrow_type):
        return pa.array([Decimal(int(n) % 1000).scaleb(-arrow_type.scale) for n in numbers], type=arrow_type, mask=mask)
    if pa.types.is_integer(arrow_type) and arrow_type.bit_width < 32:
        return pa.array(numbers % 100, type=arrow_type, mask=mask)
    if pa.types.is_date32(arrow_type):
        return pa.array(numbers.astype(np.int32), mask=mask).cast(arrow_type)
    if pa.types.is_timestamp(arrow_type):
        return pa.array(numbers * 3_600_000_000, mask=mask).cast(arrow_type)
    return pa.array(numbers.astype(arrow_type.to_pandas_dtype()), type=arrow_type, mask=mask)


def test_the_tail_takes_whole_multiples_of_its_size_into_finished_row_groups():
    columns = arrow.columns_of(pa.schema([("a", pa.int32())]))
    version = TableVersion.empty("t", columns)
    sizes = []
    for _ in range(3):
        builder = TableBuilder(columns, previous=version)
        builder.append(pa.table({"a": pa.array(np.arange(100_000, dtype=np.int32))}))
        version = builder.finish("t")
        sizes.append([group.rows for group in version.row_groups])
    assert sizes == [[65536, 34464], [65536, 131072, 3392], [65536, 131072, 65536, 37856]]


def test_an_append_shares_the_finished_row_groups():
    columns = arrow.columns_of(pa.schema([("a", pa.int32())]))
    first = table_from_arrow("t", pa.table({"a": pa.array(np.arange(70_000, dtype=np.int32))}))
    builder = TableBuilder(columns, previous=first)
    builder.append(pa.table({"a": pa.array([69_000], pa.int32())}))
    second = builder.finish("t")
    assert second.row_groups[0].chunks[0].stored is first.row_groups[0].chunks[0].stored
    assert second.num_rows == first.num_rows + 1


def test_decimals_past_64_bits_come_back_and_narrow_chunks_beside_them_are_widened():
    big = [Decimal(2) ** 64, None, -(Decimal(10) ** 37)]
    builder = TableBuilder((("big", HUGEINT),), row_group_rows=TILE_ROWS)
    for values in (big * TILE_ROWS, [Decimal(7)] * TILE_ROWS, [None] * TILE_ROWS, [Decimal(3), Decimal(500)]):
        builder.append(pa.table({"big": pa.array(values, pa.decimal128(38, 0))}))
    version = builder.finish("t")
    chunks = [group.chunks[0] for group in version.row_groups]
    assert {chunk.dtype for chunk in chunks} == {WIDE} and not any(chunk.encoded for chunk in chunks)
    back = version.to_arrow().column("big").to_pylist()
    assert back == big * TILE_ROWS + [Decimal(7)] * TILE_ROWS + [None] * TILE_ROWS + [Decimal(3), Decimal(500)]


def test_a_decimal_past_its_precision_is_refused():
    array = pa.Array.from_buffers(pa.decimal128(3, 0), 1, [None, pa.py_buffer(np.array([1000, 0], np.int64))])
    with pytest.raises(ConversionError, match=r"outside the range of DECIMAL\(3,0\): 1000"):
        table_from_arrow("t", pa.table({"d": array}))


def test_every_nan_is_stored_as_one_pattern_and_is_the_greatest():
    odd_nan = np.array([0x7FF8000000000001, 0xFFF8000000000123], dtype=np.uint64).view(np.float64)
    version = table_from_arrow("t", pa.table({"x": np.array([1.0, *odd_nan, np.inf])}))
    chunk = version.row_groups[0].chunks[0]
    assert len(set(chunk.stored[1:3].view(np.uint64).tolist())) == 1
    assert np.isnan(chunk.maximum) and chunk.minimum == 1.0


def test_the_row_count_of_an_append_is_counted():
    builder = TableBuilder(arrow.columns_of(pa.schema([("a", pa.int64())])))
    builder.append(pa.table({"a": [1, 2]}))
    builder.append(pa.record_batch({"a": [3]}))
    assert builder.num_rows == 3 and builder.finish("t").num_rows == 3


def test_a_batch_with_other_columns_is_refused():
    builder = TableBuilder(arrow.columns_of(pa.schema([("a", pa.int64())])))
    with pytest.raises(ConversionError, match="has 1, the rows have 2"):
        builder.append(pa.table({"a": [1], "b": [2]}))


def test_text_of_a_bulk_load_gets_codes_that_are_ranks():
    words = [f"w{number * 7919 % 1000:03d}" for number in range(1000)]
    version = table_from_arrow("t", pa.table({"w": words * 200}))  # several absorbed stretches
    dictionary = version.dictionaries[0]
    assert dictionary.values.to_pylist() == sorted(words)
    assert dictionary.sorted_count == 1000
    assert version.to_arrow()["w"].to_pylist() == words * 200
