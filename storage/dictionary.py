"""Text as codes: a column-wide, append-only dictionary with a stored 64-bit hash an entry and an open-addressing index.

A Dictionary is an immutable view of the first `len` entries of a store that several versions share.  Extending the
newest version writes behind the entries every older one can see, so that 10,000 small appends copy no old text.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

SEED = 0x9E3779B97F4A7C15
MULTIPLIER = 0xD6E8FEB86659FD93
WORDS_MASK = (1 << 64) - 1
LONG_BYTES = 256  # longer text is hashed by blake2b, one by one: a vector step for each 8 bytes would not pay
MAX_ENTRIES = 1 << 31  # codes are read as int32 by Arrow
EMPTY = -1
KEEP_MASKS = np.array([(1 << 8 * count) - 1 for count in range(8)] + [WORDS_MASK], dtype=np.uint64)


def hash_bytes(data: bytes) -> int:
    """The 64-bit hash of one UTF-8 text; hash_texts gives the same for many."""
    if len(data) > LONG_BYTES:
        return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")
    state = SEED ^ len(data)
    for start in range(0, len(data), 8):
        state = ((state ^ int.from_bytes(data[start : start + 8], "little")) * MULTIPLIER) & WORDS_MASK
        state ^= state >> 32
    state = (state * MULTIPLIER) & WORDS_MASK
    return state ^ (state >> 29)


def hash_texts(offsets: np.ndarray, data: np.ndarray) -> np.ndarray:
    """(n,) uint64 hashes of n texts.

    offsets  (n + 1,) int64 byte offsets into data; data  (bytes,) uint8
    """
    starts, lengths = offsets[:-1], np.diff(offsets)
    padded = np.zeros(int(offsets[-1]) + 8, dtype=np.uint8)
    padded[: int(offsets[-1])] = data[: int(offsets[-1])]
    words = np.ndarray(shape=(len(padded) - 7,), dtype="<u8", buffer=padded, strides=(1,))  # one at every byte
    state = np.uint64(SEED) ^ lengths.astype(np.uint64)
    multiplier, half = np.uint64(MULTIPLIER), np.uint64(32)
    short = lengths <= LONG_BYTES
    longest = int(lengths[short].max(initial=0))
    for begin in range(0, longest, 8):
        rows = np.flatnonzero((lengths > begin) & short)
        left = np.minimum(lengths[rows] - begin, 8)
        mixed = (state[rows] ^ (words[starts[rows] + begin] & KEEP_MASKS[left])) * multiplier
        state[rows] = mixed ^ (mixed >> half)
    state *= multiplier
    state ^= state >> np.uint64(29)
    for row in np.flatnonzero(~short):
        state[row] = hash_bytes(data[starts[row] : starts[row] + lengths[row]].tobytes())
    return state


def text_buffers(texts: pa.StringArray) -> tuple[np.ndarray, np.ndarray]:
    """(offsets (n + 1,) int64 from 0, data (bytes,) uint8) of a string array without NULL; data is a view."""
    _, offset_buffer, data_buffer = texts.buffers()
    if len(texts) == 0 or offset_buffer is None:
        return np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.uint8)
    offsets = np.frombuffer(offset_buffer, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(
        np.int64
    )
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.frombuffer(data_buffer, dtype=np.uint8)[first:last] if last > first else np.zeros(0, dtype=np.uint8)
    return offsets - first, data


class _Store:
    """Entries shared by the versions of one dictionary: grown in place behind the last one; guarded by `lock`."""

    def __init__(self) -> None:
        self.count = 0
        self.offsets = np.zeros(16, dtype=np.int32)  # (capacity + 1,)
        self.data = np.zeros(64, dtype=np.uint8)
        self.hashes = np.zeros(15, dtype=np.uint64)
        self.slots = np.full(32, EMPTY, dtype=np.int32)  # a code, or EMPTY; linear probing from hash modulo size
        self.lock = threading.Lock()

    def append(self, offsets: np.ndarray, data: np.ndarray, hashes: np.ndarray) -> None:
        """Add texts that the index does not hold; arrays that older versions look at are replaced, never changed."""
        count = len(hashes)
        used = int(self.offsets[self.count])
        self.offsets = _grown(self.offsets, self.count + 1, self.count + count + 1)
        self.data = _grown(self.data, used, used + len(data))
        self.hashes = _grown(self.hashes, self.count, self.count + count)
        self.offsets[self.count + 1 : self.count + count + 1] = offsets[1:] + used
        self.data[used : used + len(data)] = data
        self.hashes[self.count : self.count + count] = hashes
        codes = np.arange(self.count, self.count + count, dtype=np.int32)
        self.count += count
        if 2 * self.count > len(self.slots):
            slots = np.full(1 << (4 * self.count - 1).bit_length(), EMPTY, dtype=np.int32)
            _insert(slots, np.arange(self.count, dtype=np.int32), self.hashes[: self.count])
            self.slots = slots
        else:
            _insert(self.slots, codes, hashes)


class Dictionary:
    """The distinct texts of a column, in order of their codes; immutable.

    values        (n,) pa.StringArray, without NULL and without duplicates
    hashes        (n,) uint64 of the UTF-8 bytes
    sorted_count  codes below it are ranks among themselves (binary collation: order of the UTF-8 bytes)

    `len(dictionary)` and the identity of the object name a version; `extend` makes the next one.
    """

    def __init__(self, store: _Store, count: int, sorted_count: int) -> None:
        self._store = store
        self._count = count
        self._offsets, self._data, self._slots = store.offsets, store.data, store.slots
        self.hashes = store.hashes[:count]
        self.sorted_count = sorted_count
        self._values: pa.StringArray | None = None
        self._ranks: np.ndarray | None = None
        self._found: dict[str, int | None] = {}

    @staticmethod
    def empty() -> Dictionary:
        return Dictionary(_Store(), 0, 0)

    @staticmethod
    def of(texts: pa.StringArray | Sequence[str]) -> Dictionary:
        """The dictionary of distinct texts, sorted."""
        array = texts if isinstance(texts, pa.Array) else pa.array(texts, type=pa.string())
        return Dictionary.empty().extend(array.take(pc.sort_indices(array)))[0].with_sorted_count()

    @staticmethod
    def from_pieces(pieces: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]], sorted_count: int) -> Dictionary:
        """From stored pieces (offsets (n + 1,) from 0, data, hashes (n,)), which are trusted to hold no duplicate."""
        store = _Store()
        for offsets, data, hashes in pieces:
            store.append(offsets, data, hashes)
        return Dictionary(store, store.count, sorted_count)

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
            buffers = [None, pa.py_buffer(self._offsets[: self._count + 1]), pa.py_buffer(self._data)]
            self._values = pa.StringArray.from_buffers(self._count, buffers[1], buffers[2])
        return self._values

    @property
    def offsets(self) -> np.ndarray:
        """(n + 1,) int32 byte offsets into `data`."""
        return self._offsets[: self._count + 1]

    @property
    def data(self) -> np.ndarray:
        """(bytes,) uint8: the UTF-8 of all texts, end to end."""
        return self._data[: int(self._offsets[self._count])]

    @property
    def nbytes(self) -> int:
        """Bytes of text, offsets and hashes."""
        return int(self._offsets[self._count]) + self.offsets.nbytes + self.hashes.nbytes

    def ranks(self) -> np.ndarray:
        """(n,) uint32: the place of each code in the order of UTF-8 bytes."""
        if self._ranks is None:
            if self.sorted_count == self._count:
                ranks = np.arange(self._count, dtype=np.uint32)
            else:
                ranks = np.empty(self._count, dtype=np.uint32)
                order = pc.sort_indices(self.values).to_numpy(zero_copy_only=False)
                ranks[order] = np.arange(self._count, dtype=np.uint32)
            self._ranks = ranks
        return self._ranks

    def lookup(self, value: str) -> int | None:
        """The code of one text, or None; some microseconds, less for a text asked for before."""
        if value in self._found:
            return self._found[value]
        data = value.encode("utf-8", "surrogatepass")
        hashed, slots = hash_bytes(data), self._slots
        slot = hashed & (len(slots) - 1)
        code: int | None = None
        while (found := int(slots[slot])) != EMPTY:
            if found < self._count and int(self.hashes[found]) == hashed:
                text = self._data[int(self._offsets[found]) : int(self._offsets[found + 1])]
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

    def extend(self, texts: pa.StringArray) -> tuple[Dictionary, np.ndarray]:
        """(the dictionary with the new ones among `texts` behind its entries, (n,) int32 code of each text).

        texts  distinct, no NULL.  Raises OverflowError past 2 GiB of text or 2**31 entries.
        """
        offsets, data = text_buffers(texts)
        hashes = hash_texts(offsets, data)
        codes = self._probe(texts, hashes)
        missing = np.flatnonzero(codes == EMPTY)
        if len(missing) == 0:
            return self, codes
        new = texts if len(missing) == len(texts) else texts.take(pa.array(missing))
        new_offsets, new_data = text_buffers(new)
        if int(self._offsets[self._count]) + len(new_data) >= 1 << 31 or self._count + len(new) >= MAX_ENTRIES:
            raise OverflowError("a text column holds more than 2 GiB of distinct text")
        codes[missing] = np.arange(self._count, self._count + len(missing), dtype=np.int32)
        store = self._store
        with store.lock:
            if store.count != self._count:  # another version grew from this one: leave its entries alone
                store = self._copy_of_store()
            store.append(new_offsets, new_data, hashes[missing])
            extended = Dictionary(store, store.count, self.sorted_count)
        return extended, codes

    def sorted(self) -> tuple[Dictionary, np.ndarray | None]:
        """(the dictionary in the order of UTF-8 bytes, (n,) uint32 new code of each old one, None when unchanged)."""
        if self.sorted_count == self._count:
            return self, None
        order = pc.sort_indices(self.values)
        ranks = self.ranks()
        texts = self.values.take(order)
        offsets, data = text_buffers(texts)
        store = _Store()
        store.append(offsets, data, self.hashes[order.to_numpy(zero_copy_only=False)])
        return Dictionary(store, store.count, store.count), ranks

    def with_sorted_count(self) -> Dictionary:
        """The same, declared sorted from end to end."""
        return Dictionary(self._store, self._count, self._count)

    def _copy_of_store(self) -> _Store:
        store = _Store()
        store.append(self.offsets.astype(np.int64), self.data, self.hashes)
        return store

    def _probe(self, texts: pa.StringArray, hashes: np.ndarray) -> np.ndarray:
        """(n,) int32 codes by hash, then by comparing the texts; -1 where there is none."""
        codes = np.full(len(hashes), EMPTY, dtype=np.int32)
        if self._count == 0:
            return codes
        slots, mask = self._slots, len(self._slots) - 1
        rows = np.arange(len(hashes))
        places = (hashes & np.uint64(mask)).astype(np.int64)
        while len(rows):
            found = slots[places]
            visible = (found != EMPTY) & (found < self._count)
            same = np.zeros(len(rows), dtype=np.bool_)
            same[visible] = self.hashes[found[visible]] == hashes[rows[visible]]
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
