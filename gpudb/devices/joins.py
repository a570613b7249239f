"""Joins on devices that run kernels: indexes of build sides, and numbers of pairs.

An index leads from a key to build rows.  Numbered keys (their ranges multiply to a small number) have an array by number;
others a hash table of 64-bit words, in which one row of each key stands for all of it.  Key numbers and such rows are called
entries; arrays by entry begin with a place for none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gpudb.devices import launch as structs
from gpudb.devices.work import RowIndex, Run

if TYPE_CHECKING:
    from gpudb.devices.kernels import KernelDevice

PARTS = 256  # MATCH_PARTS of kernels/matches.cuh


@dataclass
class ProbedRows:
    """A hash table of build rows on a device, as Probe reads it: the struct, and the arrays behind it kept alive."""

    table: Any
    arrays: list[Any] = field(default_factory=list)


def index_rows(device: KernelDevice, words: list[Any], rows: int, numbers: int, run: Run, form: str) -> RowIndex:
    """Build rows by key: one array of numbers below `numbers`, or (numbers 0) arrays of key words."""
    if rows >= (1 << 32) - 1:
        raise run.too_many_rows("the build side of a join", rows)
    if numbers and form == "all":
        return RowIndex(True, numbers, words[0], None, None)
    repeated = device.zeros(8)
    blocks = device.blocks(-(-rows // 16384))
    arguments = structs.IndexLaunch(rows=rows, repeated=device.address(repeated), word=device.address(words[0]))
    if numbers:
        run.ledger.take((numbers + 1) * 4)
        first = device.zeros((numbers + 1) * 4)
        arguments.first = device.address(first)
        if rows:
            device.launch("gpudb_index_numbers", arguments, blocks)
            device.launch("gpudb_index_repeated", arguments, blocks)
        return RowIndex(bool(device.to_host(repeated, np.int64, 1)[0]), numbers, words[0], first, None)
    heads_count = 1 << max(3, (2 * rows - 1).bit_length())
    run.ledger.take(heads_count * 8 + rows * 8 * (1 + len(words) * (len(words) > 1)))
    heads, entry = device.zeros(heads_count * 8), device.empty(rows * 8)
    keys = words[0]
    arguments.key_words, arguments.head_mask = len(words), heads_count - 1
    if len(words) > 1:
        keys = device.empty(rows * len(words) * 8)
        arguments.keys = device.address(keys)
        for at, word in enumerate(words):
            arguments.word, arguments.at = device.address(word), at
            if rows:
                device.launch("gpudb_index_keys", arguments, blocks)
    arguments.keys, arguments.heads = device.address(keys), device.address(heads)
    arguments.entry = device.address(entry)
    if rows:
        device.launch("gpudb_index_rows", arguments, blocks)
    table = structs.GroupTable(
        keys=device.address(keys), heads=device.address(heads), key_words=len(words), head_mask=heads_count - 1
    )
    probed = ProbedRows(table, [keys, heads])
    return RowIndex(bool(device.to_host(repeated, np.int64, 1)[0]), rows, entry, None, probed)


def matches(device: KernelDevice, index: RowIndex, rows: int, run: Run) -> list[Any]:
    """[first match, number of matches] by 1 + entry, and the build rows of all matches: those of an entry in row order."""
    size = index.size
    shift = max(0, (size - 1).bit_length() - PARTS.bit_length() + 1)
    parts = -(-size >> shift)
    blocks = device.blocks(-(-max(rows, size) // 16384))
    run.ledger.take(rows * 12 + (size + 1) * 8)
    begins, counts, order = device.empty((size + 1) * 4), device.empty((size + 1) * 4), device.empty((rows + 1) * 4)
    moved, starts = device.empty(rows * 8), device.empty((parts * blocks + 1) * 4)
    own, lanes = device.empty(blocks * PARTS * 4), device.empty(blocks * device.lanes * 4)
    arguments = structs.MatchesLaunch(
        entry=device.address(index.entries),
        moved=device.address(moved),
        starts=device.address(starts),
        own=device.address(own),
        lanes=device.address(lanes),
        begins=device.address(begins),
        counts=device.address(counts),
        order=device.address(order),
        rows=rows,
        size=blocks,
        shift=shift,
        parts=parts,
    )
    device.launch("gpudb_match_count", arguments, blocks)
    device.launch("gpudb_match_starts", arguments, 1)
    run.check()
    arguments.size = size
    device.launch("gpudb_match_move", arguments, blocks)
    device.launch("gpudb_match_entries", arguments, blocks)
    run.ledger.give_back(rows * 8)
    return [begins, counts, order]


def runs(device: KernelDevice, column: Any, rows: int, size: int, run: Run) -> list[Any]:
    """[where each number below `size` begins in a sorted column, how often it occurs]."""
    return _runs(device, device.address(column), 0, rows, size, 0, run)


def _runs(device: KernelDevice, word: int, order: int, rows: int, size: int, plus: int, run: Run) -> list[Any]:
    run.ledger.take((size + plus) * 8)
    begins, counts = device.zeros((size + plus) * 4), device.zeros((size + plus) * 4)
    arguments = structs.RunsLaunch(
        order=order,
        word=word,
        begins=device.address(begins),
        counts=device.address(counts),
        rows=rows,
        plus=plus,
        size=size + plus,
    )
    if rows:
        device.launch("gpudb_run_ends", arguments, device.blocks(-(-rows // 16384)))
    device.launch("gpudb_run_counts", arguments, device.blocks(-(-(size + plus) // 16384)))
    return [begins, counts]


def pair_offsets(device: KernelDevice, counts: Any, rows: int, least: int, run: Run) -> tuple[Any, int]:
    """(number of each row's first pair, rows + 1 of int64; number of pairs), a row having `least` pairs at least."""
    run.ledger.take((rows + 1) * 8)
    blocks = device.blocks(-(-rows // 16384))
    workers = blocks * device.lanes
    offsets, sums = device.empty((rows + 1) * 8), device.zeros((workers + 1) * 8)
    arguments = structs.PairsLaunch(
        counts=device.address(counts),
        sums=device.address(sums),
        offsets=device.address(offsets),
        rows=rows,
        least=least,
        workers=workers,
    )
    device.launch("gpudb_pair_sums", arguments, blocks)
    device.launch("gpudb_pair_scan", arguments, 1)
    device.launch("gpudb_pair_offsets", arguments, blocks)
    return offsets, int(device.to_host(sums, np.int64, workers + 1)[workers])
