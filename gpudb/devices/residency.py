"""Copies of host arrays that stay in a device's memory from one statement to the next.

A host array is a column of a row group of a table version, or a lookup table; all are immutable, so that its identity is
its content's.  A copy in use is pinned: whoever reads it holds a Lease, and the last one to go unpins it.  Copies that
nobody reads are dropped when room is needed, the least recently used first, or when their array is gone.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

import numpy as np

from gpudb.record import record

Key = tuple[int, int, bool]  # identity of an array's owner, bytes, and whether that is another object than the array


@record(frozen=False)
class _Copy:
    """A copy in device memory: its memory, bytes, how many leases are out, and the array's owner."""

    memory: Any
    size: int
    pins: int
    owner: weakref.ref[Any]


class Lease:
    """A copy in use; `memory` is valid while the lease lives."""

    __slots__ = ("_copy", "_residency", "memory")

    def __init__(self, residency: Residency, copy: _Copy, memory: Any) -> None:
        residency.pin(copy)
        self._residency = residency
        self._copy = copy
        self.memory = memory

    def at(self, offset: int) -> Lease:
        """A lease on the same copy, from a byte offset on."""
        return Lease(self._residency, self._copy, self.memory + offset)

    def __del__(self) -> None:
        self._residency.unpin(self._copy)


class Held:
    """Device memory with the bytes of a statement's ledger that it takes; a view of it keeps both."""

    __slots__ = ("_taken", "memory")

    def __init__(self, memory: Any, taken: Any) -> None:
        self._taken = taken
        self.memory = memory

    def at(self, offset: int) -> Held:
        """The memory from a byte offset on."""
        return Held(self.memory + offset, self._taken)


class Residency:
    """The copies in one device's memory; safe to share between threads.

    limit   bytes that they may take
    upload  makes the copy of an array; may raise DeviceMemoryError
    """

    def __init__(self, limit: int, upload: Callable[[np.ndarray], Any]) -> None:
        self.limit = limit
        self.held = 0
        self._upload = upload
        self._lock = threading.RLock()  # a lease may go while a copy is made: __del__ runs wherever it likes
        self._copies: OrderedDict[Key, _Copy] = OrderedDict()
        self._gone: deque[Key] = deque()

    def lease(self, array: np.ndarray, owner: Any = None) -> Lease | None:
        """The copy of an array, made if need be; None where it would not fit beside what is pinned.

        owner  where arrays of one content are made anew each time, the object that stands for the content
        """
        key = (id(array if owner is None else owner), array.nbytes, owner is not None)
        owner = array if owner is None else owner
        with self._lock:
            self._forget_gone()
            copy = self._copies.get(key)
            if copy is not None and copy.owner() is owner:
                self._copies.move_to_end(key)
                return Lease(self, copy, copy.memory)
            if copy is not None:  # its owner is gone, and another object has come to lie at the same place
                self._remove(key)
            if not self._make_room(array.nbytes):
                return None
            reference = weakref.ref(owner, lambda _: self._gone.append(key))
            copy = _Copy(self._upload(array), array.nbytes, 0, reference)
            self._copies[key] = copy
            self.held += copy.size
            return Lease(self, copy, copy.memory)

    def has(self, array: np.ndarray) -> bool:
        """Is there a copy of this array?"""
        with self._lock:
            self._forget_gone()
            copy = self._copies.get((id(array), array.nbytes, False))
            return copy is not None and copy.owner() is array

    def could_hold(self, size: int) -> bool:
        """Would so many bytes more fit, were all that is not pinned dropped?"""
        with self._lock:
            pinned = sum(copy.size for copy in self._copies.values() if copy.pins)
            return pinned + size <= self.limit

    def drop_all(self) -> int:
        """Drop every copy that is not pinned; the bytes that became free."""
        with self._lock:
            self._forget_gone()
            return self._drop(self.held)

    def pin(self, copy: _Copy) -> None:
        """A lease was made."""
        with self._lock:
            copy.pins += 1

    def unpin(self, copy: _Copy) -> None:
        """A lease has gone."""
        with self._lock:
            copy.pins -= 1

    def _make_room(self, size: int) -> bool:
        if self.held + size > self.limit:
            if not self.could_hold(size):
                return False
            self._drop(self.held + size - self.limit)
        return True

    def _drop(self, wanted: int) -> int:
        """Drop copies that nobody reads until `wanted` bytes are free; how many are."""
        freed = 0
        for key in [key for key, copy in self._copies.items() if not copy.pins]:
            if freed >= wanted:
                break
            freed += self._remove(key)
        return freed

    def _forget_gone(self) -> None:
        """Drop the copies of arrays that are no more; a pinned one goes with its lease."""
        waiting = []
        while self._gone:
            key = self._gone.popleft()
            copy = self._copies.get(key)
            if copy is None or copy.owner() is not None:  # dropped before, or the place has a new owner
                continue
            if copy.pins:
                waiting.append(key)
            else:
                self._remove(key)
        self._gone.extend(waiting)

    def _remove(self, key: Key) -> int:
        copy = self._copies.pop(key)
        self.held -= copy.size
        return copy.size
