"""Groups part by part, where a table of all of them outgrows memory_limit.

A table of groups is read and written all over, which memory in files does not bear: six million groups took 35 s of processor
time that way under 256 MB, 1.4 s without a limit, and 3.0 s in parts.  So the rows are read once for each part of the keys,
into a table that fits, and a part's groups are kept in order of their first rows.  Whoever reads all groups in that order then
goes through as many runs as there are parts, each from its beginning to its end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpudb.devices import launch as structs
from gpudb.devices.kernels import GroupState, KernelDevice
from gpudb.devices.work import Work
from gpudb.program import GroupSink
from gpudb.record import record

MOST_PARTS = 256
LEAST_SHARE = 8  # the tables of a part may take this part of memory_limit, whatever else is held
LEAST_ROOM = 1 << 18  # and so many bytes


@record
class TooManyGroups(Exception):
    """A table of groups would outgrow memory_limit; so many groups are expected at most."""

    expected: int


def check(device: KernelDevice, work: Work, states: list[GroupState], needed: int, share: float) -> None:
    """Raise TooManyGroups where tables that are to grow would not fit, and parts are possible.

    needed  bytes of these tables once they have grown
    share   of the tiles, those whose rows have their groups
    """
    ledger = work.run.ledger
    if not work.parted or ledger.files is None or any(state.table.parts for state in states) or ledger.fits(needed):
        return
    rows = sum(part.rows for part in work.parts)
    found = sum(device.entries(state) for state in states)
    raise TooManyGroups(rows if share == 0 else min(rows, int(found / share) + 1))


def leave_out(heads: np.ndarray, table: Any) -> None:
    """Point the numbers of other parts at the trash group."""
    numbers, parts = int(table.numbers), int(table.parts)
    entries = heads.view(np.uint8)[: numbers * 4].view(np.uint32)
    first, last = (numbers * k // parts for k in (int(table.part), int(table.part) + 1))
    entries[:first] = entries[last:] = table.capacity + 1


def groups(
    device: KernelDevice, work: Work, sink: GroupSink, arguments: Any, tiles: int, blocks: int, expected: int
) -> GroupState:
    """The groups of a pipeline, their entries without places to find them by: only one by one can they be read."""
    run = work.run
    room = max(LEAST_ROOM, run.ledger.limit // LEAST_SHARE, run.ledger.limit // 4 * 3 - run.ledger.held)
    fixed = device.table_bytes(sink, 0)  # what every table has however few its groups: a place for each number of a key
    if device.private and blocks * fixed > room // 2:
        blocks = 1  # 1 M groups of 3 M numbers under 20 MB: 0.6 s with one table, 22 s and 256 parts with two
    count = blocks if device.private else 1
    parts, room = 2, max(LEAST_ROOM, room - count * fixed)
    while parts < MOST_PARTS and count * (device.table_bytes(sink, 2 * expected // parts) - fixed) > room:
        parts *= 2
    found: list[tuple[int, np.ndarray, np.ndarray]] = []
    for part in range(parts):
        run.check()
        run.tiles_run += tiles if part else 0
        found.append(_part(device, work, sink, arguments, tiles, blocks, (parts, part, expected)))
    total = sum(size for size, _, _ in found)
    words = device.held(run, (total + 1) * len(sink.words) * 8)
    keys = device.held(run, (total + 1) * sink.key_words * 8)
    at = 0
    while found:
        size, some_words, some_keys = found.pop(0)
        for target, source, width in ((words, some_words, len(sink.words)), (keys, some_keys, sink.key_words)):
            device.copy(device.view(target, at * width * 8), source, size * width * 8)
        at += size
    used = device.from_host(np.array([total, 0], np.int64))
    table = structs.GroupTable(
        words=device.address(words),
        keys=device.address(keys),
        used=device.address(used),
        stride=len(sink.words),
        capacity=total,
        copies=1,
        key_words=sink.key_words,
    )
    return GroupState(sink, table, {"words": words, "keys": keys, "used": used}, None)


def _part(
    device: KernelDevice,
    work: Work,
    sink: GroupSink,
    arguments: Any,
    tiles: int,
    blocks: int,
    which: tuple[int, int, int],
) -> tuple[int, np.ndarray, np.ndarray]:
    """(how many groups a part has, their words, their keys), in order of their first rows.

    which  (parts, part, groups expected of all)
    """
    run = work.run
    parts, part, expected = which
    capacity = min(max(64, expected // parts * 5 // 4), sink.capacity if sink.kind == "indexed" else 1 << 31)
    states = [device.new_table(sink, capacity, 1, run, parts, part) for _ in range(blocks if device.private else 1)]
    device.find_groups(work, arguments, tiles, blocks, states)
    whole = device.merged(states, run)
    rows = max((p.first_row + p.rows for p in work.parts), default=0)
    order = device.order_groups(whole, rows, run)
    places = device.to_host(order.columns[0], np.uint32, order.rows)
    copies = []
    for name, width in (("words", len(sink.words)), ("keys", sink.key_words)):
        table = device.to_host(whole.arrays[name], np.int64, (whole.capacity + 1) * width).reshape(-1, width)
        copy = device.held(run, order.rows * width * 8)
        target = device.to_host(copy, np.int64, order.rows * width).reshape(-1, width)
        np.take(table, places, axis=0, out=target, mode="clip")  # by "raise" it would make a copy first
        copies.append(copy)
    return order.rows, copies[0], copies[1]
