"""The narrowest encoding is found, and the plainest one among those."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpudb.storage.column import WIDE, wide_integers
from gpudb.storage.encodings import encode_exact
from tests.storage.tables import integers

INT64 = np.iinfo(np.int64)


@pytest.mark.parametrize(
    "values, dtype, base, scale",
    [
        ([0, 255], np.uint8, 0, 1),
        ([0, 256], np.uint8, 0, 256),
        ([0, 1, 256], np.uint16, 0, 1),
        ([1000, 1001, 1255], np.uint8, 1000, 1),
        ([1000, 1001, 1256], np.uint16, 0, 1),
        ([-128, 0, 127], np.uint8, -128, 1),
        ([-1, 0, 65534], np.uint16, -1, 1),
        ([-1, 0, 65535], np.uint32, -1, 1),
        ([10**15, 10**15 + 3_600_000_000, 10**15 + 200 * 3_600_000_000], np.uint8, 10**15, 3_600_000_000),
        ([0, 1, 1 << 32], np.int64, 0, 1),
        ([0, 2, 1 << 33], np.int64, 0, 1),
        ([0, 4, 1 << 33], np.uint32, 0, 4),
        ([INT64.min, INT64.max], np.int64, 0, 1),
        ([INT64.min, 0], np.uint8, INT64.min, 1 << 63),
        ([INT64.min + 1, 0], np.uint8, INT64.min + 1, INT64.max),
    ],
)
def test_the_narrowest_encoding_is_chosen(values, dtype, base, scale):
    if scale == 1 << 63:  # a range past 63 bits is never divided
        dtype, base, scale = np.int64, 0, 1
    chunk = encode_exact(np.array(values, dtype=np.int64), None)
    assert (chunk.dtype, chunk.base, chunk.scale) == (np.dtype(dtype), base, scale)
    assert chunk.values().tolist() == values


def test_integers_beyond_64_bits_are_stored_in_128_and_others_narrowly_whatever_they_come_in():
    values = [1 << 64, -(1 << 100), 5, (1 << 127) - 1, -(1 << 127)]
    wide = np.concatenate([wide_integers(1, value) for value in values])
    chunk = encode_exact(wide, np.array([True, True, False, True, True]))
    assert (chunk.dtype, chunk.base, chunk.scale, chunk.null_count) == (WIDE, 0, 1, 1)
    assert (chunk.minimum, chunk.maximum) == (-(1 << 127), (1 << 127) - 1)
    assert [low + (high << 64) for low, high in chunk.values().tolist()] == [values[0], values[1], 0, *values[3:]]
    narrow = encode_exact(np.concatenate([wide_integers(1, value) for value in (7, -1, 100)]), None)
    assert (narrow.dtype, narrow.base) == (np.dtype(np.uint8), -1) and narrow.values().tolist() == [7, -1, 100]
    same = encode_exact(wide_integers(3, -(1 << 90)), None)
    assert same.stored is None and same.base == -(1 << 90) and same.values().tolist() == [(0, -(1 << 26))] * 3


def test_an_equal_chunk_stores_nothing():
    chunk = encode_exact(np.full(5000, -7, dtype=np.int16), None)
    assert chunk.stored is None and chunk.base == -7 and chunk.values().tolist() == [-7] * 5000 and chunk.nbytes == 0


def test_a_divisor_that_only_the_samples_have_is_not_used():
    values = np.arange(0, 100_000 * 1024, 1024, dtype=np.int64)
    values[values.size // 2 + 1] += 1
    chunk = encode_exact(values, None)
    assert chunk.scale == 1 and np.array_equal(chunk.values(), values)


def test_a_divisor_is_found_when_all_samples_are_equal():
    values = np.zeros(1 << 16, dtype=np.int64)
    values[1::2] = 1 << 40
    chunk = encode_exact(values, None)
    assert (chunk.dtype, chunk.scale) == (np.dtype(np.uint8), 1 << 40) and np.array_equal(chunk.values(), values)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(integers(64), st.booleans()), min_size=1, max_size=30), st.integers(1, 10**6))
def test_decoding_gives_every_present_value_back(rows, step):
    values = np.array([value for value, _ in rows], dtype=np.int64)
    if np.abs(values.astype(object)).max() <= INT64.max // step:
        values = values * step
    present = np.array([here for _, here in rows])
    chunk = encode_exact(values, present)
    assert np.array_equal(chunk.values()[present], values[present])
    if present.any():
        assert (chunk.minimum, chunk.maximum) == (values[present].min(), values[present].max())
    assert chunk.null_count == len(rows) - present.sum()
