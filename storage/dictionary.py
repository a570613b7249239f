"""Text as codes: a column-wide, append-only dictionary with a stored 64-bit hash an entry and an open-addressing index.

A Dictionary is an immutable view of the first `len` entries of a store that several versions share.  Extending the
newest version writes behind the entries every older one can see, so that 10,000 small appends copy no old text.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from gpudb import compute as pc
from gpudb.storage.text_words import hash_bytes, hash_texts, text_buffers, text_order

MAX_ENTRIES = 1 << 31  # codes are read as int32 by Arrow
EMPTY = -1
MANY_ENTRIES = 1 << 17


class Store:
    """Entries shared by the versions of one dictionary: grown in place behind the last one; guarded by `lock`."""

    def __init__(self) -> None:
        self.count = 0
        self.offsets = np.zeros(16, dtype=np.int32)  # (capacity + 1,)
        self.data = np.zeros(64, dtype=np.uint8)
        self.hashes = np.zeros(15, dtype=np.uint64)
        self.lock = threading.RLock()
        self._slots: np.ndarray | None = None

    @staticmethod
    def of(offsets: np.ndarray, data: np.ndarray, hashes: np.ndarray) -> Store:
        """A store of distinct texts: offsets (n + 1,) from 0, data (bytes,) uint8, hashes (n,) uint64."""
        store = Store()
        store.append(offsets, data, hashes)
        return store

    def append(self, offsets: np.ndarray, data: np.ndarray, hashes: np.ndarray) -> None:
        """Add texts that it does not hold; arrays that older versions look at are replaced, never changed."""
        count = len(hashes)
        used = int(self.offsets[self.count])
        self.offsets = _grown(self.offsets, self.count + 1, self.count + count + 1)
        self.data = _grown(self.data, used, used + len(data))
        self.hashes = _grown(self.hashes, self.count, self.count + count)
        self.offsets[self.count + 1 : self.count + count + 1] = offsets[1:] + used
        self.data[used : used + len(data)] = data
        self.hashes[self.count : self.count + count] = hashes
        self.count += count
        if self._slots is None:
            return
        if 2 * self.count > len(self._slots):
            self._slots = self._new_slots()
        else:
            _insert(self._slots, np.arange(self.count - count, self.count, dtype=np.int32), hashes)

    def slots(self) -> np.ndarray:
        """The index: codes or EMPTY, by linear probing from hash modulo size.  Made when it is first needed.

        It may hold codes that a version does not have yet: whoever probes passes over those.
        """
        if self._slots is None:
            with self.lock:
                if self._slots is None:
                    self._slots = self._new_slots()
        return self._slots

    def _new_slots(self) -> np.ndarray:
        slots = np.full(1 << (4 * self.count + 15).bit_length(), EMPTY, dtype=np.int32)
        _insert(slots, np.arange(self.count, dtype=np.int32), self.hashes[: self.count])
        return slots


class _View:
    """The arrays of a store as one version found them."""

    def __init__(self, store: Store, count: int) -> None:
        self.store = store
        self.offsets = store.offsets[: count + 1]
        self.data = store.data
        self.hashes = store.hashes[:count]


class Dictionary:
    """The distinct texts of a column, in order of their codes; immutable.

    values        (n,) pa.StringArray, without NULL and without duplicates
    hashes        (n,) uint64 of the UTF-8 bytes
    sorted_count  codes below it are ranks among themselves (binary collation: order of the UTF-8 bytes)

    `len(dictionary)` and the identity of the object name a version; `extend` makes the next one.  A dictionary of a
    database directory is read, and its checksums verified, when its texts are first asked for.
    """

    def __init__(self, store: Store | Callable[[], Store], count: int, sorted_count: int) -> None:
        self._source = store
        self._count = count
        self.sorted_count = sorted_count
        self._lock = threading.Lock()
        self._loaded: _View | None = None
        self._values: pa.StringArray | None = None
        self._ranks: np.ndarray | None = None
        self._found: dict[str, int | None] = {}
        if isinstance(store, Store):
            self._loaded = _View(store, count)

    @staticmethod
    def empty() -> Dictionary:
        return Dictionary(Store(), 0, 0)

    @staticmethod
    def of(texts: pa.StringArray | Sequence[str]) -> Dictionary:
        """The dictionary of distinct texts, sorted."""
        array = texts if isinstance(texts, pa.Array) else pa.array(texts, type=pa.string())
        order = text_order(*text_buffers(array))
        return Dictionary.empty().extend(array.take(pa.array(order)))[0].with_sorted_count()

    @property
    def _view(self) -> _View:
        if self._loaded is None:
            with self._lock:
                if self._loaded is None:
                    assert not isinstance(self._source, Store), "a store is looked at from the start"
                    self._loaded = _View(self._source(), self._count)
        return self._loaded

    @property
    def is_loaded(self) -> bool:
        """Whether its texts are in memory."""
        return self._loaded is not None

    def extends(self, older: Dictionary) -> bool:
        """Whether this dictionary starts with all entries of `older`."""
        if self is older or len(older) == 0:
            return True
        if len(older) > len(self) or not older.is_loaded:  # to extend a dictionary is to have loaded it
            return False
        mine, theirs = self._view, older._view
        if mine.store is theirs.store:
            return True
        size = int(theirs.offsets[-1])
        return (
            int(mine.offsets[len(older)]) == size
            and np.array_equal(mine.hashes[: len(older)], theirs.hashes)
            and np.array_equal(mine.data[:size], theirs.data[:size])
        )

    def __len__(self) -> int:
        return self._count

    @property
    def version(self) -> int:
        """Entries so far; of two dictionaries of one column the longer is the newer."""
        return self._count

    @property
    def values(self) -> pa.StringArray:
        """(n,) texts by code, zero-copy over the shared store."""
        if self._values is None:
            offsets, data = pa.py_buffer(self._view.offsets), pa.py_buffer(self._view.data)
            self._values = pa.StringArray.from_buffers(self._count, offsets, data)
        return self._values

    @property
    def offsets(self) -> np.ndarray:
        """(n + 1,) int32 byte offsets into `data`."""
        return self._view.offsets

    @property
    def hashes(self) -> np.ndarray:
        """(n,) uint64 hashes of the texts."""
        return self._view.hashes

    @property
    def data(self) -> np.ndarray:
        """(bytes,) uint8: the UTF-8 of all texts, end to end."""
        return self._view.data[: int(self._view.offsets[self._count])]

    @property
    def nbytes(self) -> int:
        """Bytes of text, offsets and hashes; 0 until they are in memory."""
        if self._loaded is None:
            return 0
        return int(self._loaded.offsets[self._count]) + self._loaded.offsets.nbytes + self._loaded.hashes.nbytes

    def ranks(self) -> np.ndarray:
        """(n,) uint32: the place of each code in the order of UTF-8 bytes."""
        if self._ranks is None:
            if self.sorted_count == self._count:
                ranks = np.arange(self._count, dtype=np.uint32)
            else:
                ranks = np.empty(self._count, dtype=np.uint32)
                ranks[text_order(self.offsets, self.data)] = np.arange(self._count, dtype=np.uint32)
            self._ranks = ranks
        return self._ranks

    def lookup(self, value: str) -> int | None:
        """The code of one text, or None; some microseconds, less for a text asked for before."""
        if value in self._found:
            return self._found[value]
        data = value.encode("utf-8", "surrogatepass")
        view = self._view
        hashed, slots = hash_bytes(data), view.store.slots()
        slot = hashed & (len(slots) - 1)
        code: int | None = None
        while (found := int(slots[slot])) != EMPTY:
            if found < self._count and int(view.hashes[found]) == hashed:
                text = view.data[int(view.offsets[found]) : int(view.offsets[found + 1])]
                if text.tobytes() == data:
                    code = found
                    break
            slot = (slot + 1) & (len(slots) - 1)
        if len(self._found) < 4096:
            self._found[value] = code
        return code

    def codes_of(self, texts: pa.StringArray) -> np.ndarray:
        """(n,) int32 codes of texts (no NULL among them), -1 where the dictionary does not hold one."""
        offsets, data = text_buffers(texts)
        return self._probe(texts, hash_texts(offsets, data))

    def extend(self, texts: pa.StringArray, hashes: np.ndarray | None = None) -> tuple[Dictionary, np.ndarray]:
        """(the dictionary with the new ones among `texts` behind its entries, (n,) int32 code of each text).

        texts   distinct, no NULL
        hashes  theirs, where the caller has them already

        Raises OverflowError past 2 GiB of text or 2**31 entries.
        """
        if hashes is None:
            hashes = hash_texts(*text_buffers(texts))
        codes = self._probe(texts, hashes)
        missing = np.flatnonzero(codes == EMPTY)
        if len(missing) == 0:
            return self, codes
        new = texts if len(missing) == len(texts) else texts.take(pa.array(missing))
        new_offsets, new_data = text_buffers(new)
        if int(self.offsets[-1]) + len(new_data) >= 1 << 31 or self._count + len(new) >= MAX_ENTRIES:
            raise OverflowError("a text column holds more than 2 GiB of distinct text")
        codes[missing] = np.arange(self._count, self._count + len(missing), dtype=np.int32)
        with self._view.store.lock:
            store = self.writable_store()
            store.append(new_offsets, new_data, hashes[missing])
            extended = Dictionary(store, store.count, self.sorted_count)
        return extended, codes

    def writable_store(self) -> Store:
        """The store behind whose entries the next version may write: a copy, where another version did so already."""
        store = self._view.store
        return store if store.count == self._count else Store.of(self.offsets, self.data, self.hashes)

    def is_worth_sorting(self, rows: int) -> bool:
        """Whether a load of so many rows should sort it.

        Not where there are many entries and hardly a text occurs twice, as in comments and URLs: to sort them is a third
        to a half of the load (TPC-H's lineitem at SF1: 23 s of processor time with, 14 without), and few queries ask
        for their order; the first that does makes `ranks`.
        """
        return self._count < MANY_ENTRIES or 2 * self._count <= rows

    def sorted(self) -> tuple[Dictionary, np.ndarray | None]:
        """(the dictionary in the order of UTF-8 bytes, (n,) uint32 new code of each old one, None when unchanged)."""
        if self.sorted_count == self._count:
            return self, None
        ranks = self.ranks()
        order = np.empty(self._count, dtype=np.int64)
        order[ranks] = np.arange(self._count)
        offsets, data = text_buffers(self.values.take(pa.array(order)))
        store = Store.of(offsets, data, self.hashes[order])
        return Dictionary(store, store.count, store.count), ranks

    def with_sorted_count(self) -> Dictionary:
        """The same, declared sorted from end to end."""
        return Dictionary(self._view.store, self._count, self._count)

    def _probe(self, texts: pa.StringArray, hashes: np.ndarray) -> np.ndarray:
        """(n,) int32 codes by hash, then by comparing the texts; -1 where there is none."""
        codes = np.full(len(hashes), EMPTY, dtype=np.int32)
        if self._count == 0:
            return codes
        slots = self._view.store.slots()
        mask, stored_hashes = len(slots) - 1, self.hashes
        rows = np.arange(len(hashes))
        places = (hashes & np.uint64(mask)).astype(np.int64)
        while len(rows):
            found = slots[places]
            visible = (found != EMPTY) & (found < self._count)
            same = np.zeros(len(rows), dtype=np.bool_)
            same[visible] = stored_hashes[found[visible]] == hashes[rows[visible]]
            candidates = np.flatnonzero(same)
            if len(candidates):  # equal hashes: only the texts decide
                mine = texts if len(candidates) == len(texts) else texts.take(pa.array(rows[candidates]))
                equal = pc.equal(mine, self.values.take(pa.array(found[candidates])))
                hit = candidates[equal.to_numpy(zero_copy_only=False)]
                codes[rows[hit]] = found[hit]
                found[hit] = EMPTY  # done
            going = np.flatnonzero(found != EMPTY)
            rows, places = rows[going], (places[going] + 1) & mask
        return codes


def _grown(array: np.ndarray, used: int, needed: int) -> np.ndarray:
    """`array` when it has room for `needed`, else a copy of its first `used` with room for 1.5 x as many."""
    if needed <= len(array):
        return array
    larger = np.zeros(needed + needed // 2, dtype=array.dtype)
    larger[:used] = array[:used]
    return larger


def _insert(slots: np.ndarray, codes: np.ndarray, hashes: np.ndarray) -> None:
    """Put each code into the first free slot from its hash on; the last to write a slot wins it, the others go on."""
    mask = len(slots) - 1
    places = (hashes & np.uint64(mask)).astype(np.int64)
    while len(codes):
        free = slots[places] == EMPTY
        slots[places[free]] = codes[free]
        going = np.flatnonzero(slots[places] != codes)
        codes, places = codes[going], (places[going] + 1) & mask
