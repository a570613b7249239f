"""Copies that stay: what is pinned stays, the rest goes least recently used first, and a new array is never an old one."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from gpudb.devices.residency import Residency


class Memory(bytes):
    """What an upload gives: the array's bytes."""

    def __add__(self, offset: Any) -> Memory:
        return Memory(self[offset:])


def residency(limit: int) -> Residency:
    return Residency(limit, lambda array: Memory(array.tobytes()))


def array(value: int, size: int = 100) -> np.ndarray:
    return np.full(size, value, np.uint8)


def test_a_second_lease_finds_the_copy_of_the_first() -> None:
    uploads = []
    kept = Residency(1000, lambda given: uploads.append(given.nbytes) or Memory(given.tobytes()))
    one = array(1)
    for _ in range(3):
        lease = kept.lease(one)
        assert lease is not None and lease.memory == bytes([1]) * 100
    assert uploads == [100] and kept.held == 100


def test_the_least_recently_used_copy_goes_first() -> None:
    kept, arrays = residency(300), [array(k) for k in range(4)]
    for k in (0, 1, 2, 0, 3):
        assert kept.lease(arrays[k]) is not None
    assert [kept.has(a) for a in arrays] == [True, False, True, True]


def test_what_is_read_is_not_dropped() -> None:
    kept, arrays = residency(200), [array(k) for k in range(3)]
    pins = [kept.lease(a) for a in arrays[:2]]
    assert kept.lease(arrays[2]) is None and kept.drop_all() == 0
    part = pins[0].at(90)  # type: ignore[union-attr]
    assert part.memory == bytes(10)
    del pins
    assert kept.drop_all() == 100, "a lease on a part pins the whole"
    assert kept.lease(arrays[2]) is not None


def test_a_copy_goes_with_its_array_and_a_pinned_one_with_its_lease() -> None:
    kept = residency(1000)
    one, two = array(1), array(2)
    kept.lease(one)
    pin = kept.lease(two)
    del one, two
    assert kept.drop_all() == 0 and kept.held == 100, "the first is gone already"
    assert pin is not None and pin.memory == bytes([2]) * 100
    del pin
    kept.has(array(0))
    assert kept.held == 0


def test_views_that_are_made_anew_are_found_by_their_owner() -> None:
    kept, store = residency(1000), array(7, 300)
    owner = np.zeros(2, np.int32)
    first = kept.lease(store[:150], owner)
    again = kept.lease(store[:150], owner)
    assert first is not None and again is not None and first.memory is again.memory
    longer, other = kept.lease(store[:200], owner), kept.lease(owner)
    assert longer is not None and len(longer.memory) == 200
    assert other is not None and other.memory == bytes(8)


def test_arrays_that_come_and_go_are_never_taken_for_one_another() -> None:
    kept, choice = residency(2000), random.Random(3)
    held: list[tuple[np.ndarray, int]] = []
    leases: list[tuple[Any, int]] = []
    for _ in range(3000):  # identities are used again all the time
        if held and choice.random() < 0.5:
            held.pop(choice.randrange(len(held)))
        if leases and choice.random() < 0.5:
            leases.pop(choice.randrange(len(leases)))
        value = choice.randrange(256)
        held.append((array(value), value))
        given, value = choice.choice(held)
        lease = kept.lease(given)
        if lease is not None:
            leases.append((lease, value))
        assert all(found.memory[0] == value for found, value in leases)
        assert kept.held <= 2000
