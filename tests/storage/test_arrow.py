"""What a user may register, and which Arrow types become which SQL types."""

from __future__ import annotations

import datetime

import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest

from gpudb import types
from gpudb.errors import ConversionError, InterfaceError, NotSupportedError
from gpudb.storage import arrow
from gpudb.storage.table import table_from_arrow

EXPECTED = {"n": [1, None, 3], "t": ["x", "y", None]}


class Capsule:
    """An object that offers nothing but the Arrow PyCapsule protocol."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "source",
    [
        pa.table(EXPECTED),
        pa.record_batch(EXPECTED),
        pa.table(EXPECTED).to_reader(max_chunksize=1),
        polars.DataFrame(EXPECTED),
        polars.DataFrame(EXPECTED).lazy(),
        pandas.DataFrame({"n": pandas.array([1, None, 3], "Int64"), "t": ["x", "y", None]}, index=[5, 6, 7]),
        Capsule(pa.table(EXPECTED)),
    ],
    ids=lambda source: f"{type(source).__module__}.{type(source).__qualname__}",
)
def test_every_kind_of_source_becomes_a_table(source):
    assert table_from_arrow("t", source).to_arrow().to_pydict() == EXPECTED


@pytest.mark.parametrize("source", [42, "text", [1, 2], {"a": [1]}, None])
def test_other_objects_are_refused_by_type(source):
    with pytest.raises(InterfaceError, match=type(source).__qualname__):
        table_from_arrow("t", source)


def test_categories_become_text():
    frame = polars.DataFrame({"c": polars.Series(["b", "a", None, "b"], dtype=polars.Categorical)})
    assert table_from_arrow("t", frame).to_arrow()["c"].to_pylist() == ["b", "a", None, "b"]
    frame = pandas.DataFrame({"c": pandas.Categorical(["b", "a", None, "b"])})
    assert table_from_arrow("t", frame).to_arrow()["c"].to_pylist() == ["b", "a", None, "b"]


def test_a_foreign_dictionary_may_hold_nulls_and_duplicates():
    array = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3, None, 0], pa.int8()), pa.array(["x", None, "x", "y"]))
    version = table_from_arrow("t", pa.table({"c": array}))
    assert version.to_arrow()["c"].to_pylist() == ["x", None, "x", "y", None, "x"]
    assert version.dictionaries[0].values.to_pylist() == ["x", "y"]


def test_batches_with_different_dictionaries_meet_in_one():
    chunks = [pa.array(texts).dictionary_encode() for texts in (["q", "p"], ["p", "r"], ["q", "q"])]
    version = table_from_arrow("t", pa.table({"c": pa.chunked_array(chunks)}))
    assert version.to_arrow()["c"].to_pylist() == ["q", "p", "p", "r", "q", "q"]


@pytest.mark.parametrize(
    "array, kind",
    [
        (pa.array([0, 255, None], pa.uint8()), types.UTINYINT),
        (pa.array([0, 65535], pa.uint16()), types.USMALLINT),
        (pa.array([0, (1 << 32) - 1], pa.uint32()), types.UINTEGER),
        (pa.array([0, (1 << 64) - 1], pa.uint64()), types.UBIGINT),
        (pa.array([1.5, None], pa.float16()), types.REAL),
        (pa.array(["a", None], pa.large_string()), types.VARCHAR),
        (pa.array(["a", "long enough not to be inlined", None], pa.string_view()), types.VARCHAR),
        (pa.array([86_400_000, None], pa.date64()), types.DATE),
        (pa.array([1, 2], pa.timestamp("s")), types.TIMESTAMP),
        (pa.array([1000, None], pa.timestamp("ns")), types.TIMESTAMP),
        (pa.array([1, 2], pa.decimal128(9, 3)), types.decimal(9, 3)),
        (pa.array([1, 2], pa.decimal256(38, 3)), types.decimal(38, 3)),
        (pa.array([1, 2], pa.decimal64(9, 3)), types.decimal(9, 3)),
        (pa.nulls(2), types.INTEGER),
        (pa.array([1, 1, 5]).dictionary_encode(), types.BIGINT),
        (pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["a", "b"])), types.VARCHAR),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_arrow_types_and_their_sql_types(array, kind):
    version = table_from_arrow("t", pa.Table.from_arrays([array], names=["c"]))
    assert version.columns == (("c", kind),)
    expected = array
    if pa.types.is_dictionary(array.type) or pa.types.is_run_end_encoded(array.type):
        expected = pa.array(array.to_pylist(), type=kind.arrow)
    assert version.to_arrow()["c"].to_pylist() == expected.cast(kind.arrow).to_pylist()


@pytest.mark.parametrize(
    "arrow_type",
    [
        pa.list_(pa.int8()),
        pa.struct([("a", pa.int8())]),
        pa.list_(pa.binary()),
        pa.decimal256(50, 2),
    ],
    ids=str,
)
def test_types_without_a_sql_type_are_refused_by_column_and_type(arrow_type):
    with pytest.raises(NotSupportedError, match="column 'odd'"):
        arrow.columns_of(pa.schema([("odd", arrow_type)]))


def test_a_time_zone_makes_a_moment_of_utc():
    moments = pa.array([datetime.datetime(2020, 1, 1), None], pa.timestamp("us", tz="Europe/Berlin"))
    version = table_from_arrow("t", pa.table({"at": moments}))
    assert version.columns == (("at", types.TIMESTAMPTZ),)
    assert version.to_arrow()["at"].to_pylist() == moments.cast(pa.timestamp("us", "UTC")).to_pylist()


def test_nanoseconds_that_would_be_lost_are_an_error():
    with pytest.raises(ConversionError, match="column at"):
        table_from_arrow("t", pa.table({"at": pa.array([1], pa.timestamp("ns"))}))


def test_equal_names_are_told_apart():
    schema = pa.schema([("a", pa.int8()), ("A", pa.int8()), ("a_1", pa.int8())])
    assert [name for name, _ in arrow.columns_of(schema)] == ["a", "A_1", "a_1_1"]


def test_slices_are_read_from_their_offset():
    table = pa.table({"b": [None, True, False, True] * 9, "n": [*range(35), None], "t": ["a", None, "b", "c"] * 9})
    for start in (1, 3, 7, 8, 9):
        sliced = table.slice(start, 20)
        assert table_from_arrow("t", sliced).to_arrow().to_pydict() == sliced.to_pydict()


def test_a_misfit_under_null_does_not_count():
    halves = np.array([5, 0, 7, 7], dtype=np.int64)  # the second value needs 128 bits, and is NULL
    array = pa.Array.from_buffers(pa.decimal128(38, 0), 2, [pa.py_buffer(b"\x01"), pa.py_buffer(halves)])
    assert table_from_arrow("t", pa.table({"d": array})).to_arrow()["d"].to_pylist()[1] is None
