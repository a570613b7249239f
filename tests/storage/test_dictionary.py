"""Dictionaries: codes, hashes, ranks, growth, and many versions over one store."""

from __future__ import annotations

from itertools import pairwise

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpudb
from gpudb.storage import dictionary as dictionary_module
from gpudb.storage.dictionary import Dictionary
from gpudb.storage.text_words import hash_bytes, hash_texts, text_buffers, text_order

TEXTS = st.one_of(st.text(max_size=20), st.text(min_size=250, max_size=262), st.sampled_from(["", "\0", "a\0", "ab"]))


@settings(max_examples=100, deadline=None)
@given(st.lists(TEXTS, max_size=30))
def test_one_text_hashes_as_it_does_among_many(texts):
    hashes = hash_texts(*text_buffers(pa.array(texts, pa.string())))
    assert hashes.tolist() == [hash_bytes(text.encode()) for text in texts]


ALIKE = st.lists(st.sampled_from(["", "\0", "a", "b", "é", "common pre", "fix and more of it"]), max_size=8).map(
    "".join
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(TEXTS, ALIKE), max_size=40))
def test_texts_are_ordered_by_their_bytes(texts):
    order = text_order(*text_buffers(pa.array(texts, pa.string())))
    assert sorted(order.tolist()) == list(range(len(texts)))
    assert [texts[row] for row in order] == sorted(texts, key=str.encode)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(TEXTS, max_size=20, unique=True), max_size=5))
def test_every_version_finds_its_texts_and_no_later_ones(batches):
    versions, expected = [Dictionary.empty()], [[]]
    for batch in batches:
        extended, codes = versions[-1].extend(pa.array(batch, pa.string()))
        assert extended.values.take(pa.array(codes)).to_pylist() == batch
        expected.append(expected[-1] + [text for text in batch if text not in expected[-1]])
        versions.append(extended)
    everything = expected[-1]
    for version, texts in zip(versions, expected, strict=True):
        assert version.values.to_pylist() == texts and len(version) == len(texts)
        codes = [texts.index(text) if text in texts else -1 for text in everything]
        assert version.codes_of(pa.array(everything, pa.string())).tolist() == codes
        assert [version.lookup(text) for text in everything] == [None if code < 0 else code for code in codes]
        assert version.lookup("no such text") is None
        order = sorted(range(len(texts)), key=lambda code: texts[code].encode())
        assert version.ranks()[order].tolist() == list(range(len(texts)))
        assert [bytes(version.data[a:b]).decode() for a, b in pairwise(version.offsets)] == texts


def test_two_versions_that_grow_from_one_do_not_see_each_other():
    base, _ = Dictionary.empty().extend(pa.array(["a", "b"]))
    left, _ = base.extend(pa.array(["left"]))
    right, _ = base.extend(pa.array(["right"]))
    assert left.values.to_pylist() == ["a", "b", "left"]
    assert right.values.to_pylist() == ["a", "b", "right"]
    assert left.lookup("right") is None and right.lookup("left") is None


def test_texts_of_equal_hash_keep_their_own_codes(monkeypatch):
    monkeypatch.setattr(dictionary_module, "hash_bytes", lambda data: 5)
    monkeypatch.setattr(
        dictionary_module, "hash_texts", lambda offsets, data: np.full(len(offsets) - 1, 5, dtype=np.uint64)
    )
    texts = [f"text {number}" for number in range(40)]
    first, _ = Dictionary.empty().extend(pa.array(texts[:20]))
    second, codes = first.extend(pa.array(texts))
    assert codes.tolist() == list(range(40))
    assert [second.lookup(text) for text in texts] == list(range(40)) and second.lookup("other") is None


def test_a_sorted_dictionary_maps_every_old_code():
    unsorted, _ = Dictionary.empty().extend(pa.array(["pear", "apple", "é", "Zebra"]))
    ordered, translation = unsorted.sorted()
    assert ordered.values.to_pylist() == ["Zebra", "apple", "pear", "é"]
    assert ordered.values.take(pa.array(translation)).to_pylist() == unsorted.values.to_pylist()
    assert ordered.sorted_count == 4 and ordered.sorted()[1] is None


def test_small_appends_share_the_text_of_their_elders():
    version, grown = Dictionary.empty(), 0
    for number in range(2000):
        newer, _ = version.extend(pa.array([f"entry {number}"]))
        grown += newer.data.ctypes.data != version.data.ctypes.data
        version = newer
    assert version.values.to_pylist() == [f"entry {number}" for number in range(2000)]
    assert grown < 30, "the store grows by a factor, not at every append"


def test_more_text_than_arrow_can_address_is_refused(monkeypatch):
    monkeypatch.setattr(dictionary_module, "MAX_ENTRIES", 3)
    with pytest.raises(OverflowError):
        Dictionary.empty().extend(pa.array(["a", "b", "c"]))


@pytest.mark.parametrize("order", ["as loaded", "sorted"])
def test_many_texts_that_hardly_repeat_are_not_sorted_and_nobody_sees_it(order, monkeypatch):
    monkeypatch.setattr(dictionary_module, "MANY_ENTRIES", 50 if order == "as loaded" else 1 << 17)
    monkeypatch.setattr("gpudb.storage.table.ABSORB_BYTES", 1)  # each batch for itself
    monkeypatch.setattr("gpudb.vm.BATCH_ROWS", 64)
    rows = pa.table({"id": range(100), "t": [None if k % 9 == 0 else f"{k * 37 % 100} é" for k in range(100)]})
    ours, theirs = gpudb.connect(), duckdb.connect()
    ours.register("source", pa.concat_tables([rows.slice(0, 30), rows.slice(30)]))
    theirs.register("source", rows)
    for connection in (ours, theirs):
        connection.execute("CREATE TABLE t AS SELECT * FROM source")
    dictionary = ours._session.database.storage.snapshot()["t"].dictionaries[1]
    assert (dictionary.sorted_count == len(dictionary)) == (order == "sorted")
    for sql in (
        "SELECT * FROM t ORDER BY t NULLS FIRST, id",
        "SELECT min(t), max(t), count(*) FROM t WHERE t >= '3' AND t < '7'",
        "SELECT t, count(*) FROM t WHERE id % 2 = 0 GROUP BY t ORDER BY t DESC LIMIT 20",
        "SELECT a.id FROM t a JOIN t b ON a.t < b.t WHERE b.id = 40 ORDER BY 1",
    ):
        assert ours.execute(sql).fetchall() == theirs.execute(sql).fetchall(), sql
