"""Joins on devices that run kernels: indexes of build sides, and numbers of pairs.

An index leads from a key to build rows.  Numbered keys (their ranges multiply to a small number) have an array by number;
others a hash table of 64-bit words, in which one row of each key stands for all of it.  Key numbers and such rows are called
entries; arrays by entry begin with a place for none.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from gpudb.devices import launch as structs
from gpudb.devices.work import RowIndex, Run
from gpudb.record import record

if TYPE_CHECKING:
    from gpudb.devices.kernels import KernelDevice

MOST_PARTS = 1024  # of kernels/index.cuh
PART_SLOTS = 1 << 12  # of a part, at least


@record(frozen=False)
class ProbedRows:
    """A hash table of build rows on a device, as Probe reads it: the struct, and the arrays behind it kept alive."""

    table: Any
    arrays: list[Any] = field(default_factory=list)


@record(frozen=False)
class MovedRows:
    """Rows in order of their parts, on a device: the launch that moved them, and the arrays behind it kept alive."""

    arguments: Any
    arrays: list[Any]


def index_rows(device: KernelDevice, words: list[Any], rows: int, numbers: int, run: Run, form: str) -> RowIndex:
    """Build rows by key: one array of numbers below `numbers`, or (numbers 0) arrays of key words."""
    if rows >= (1 << 32) - 1:
        raise run.too_many_rows("the build side of a join", rows)
    if not numbers:
        return _index_words(device, words, rows, run, form)
    if form == "all":
        shift = max(0, (numbers - 1).bit_length() - MOST_PARTS.bit_length() + 1)
        arguments = structs.IndexLaunch(
            rows=rows, size=numbers, word=device.address(words[0]), shift=shift, parts=-(-numbers >> shift)
        )
        return RowIndex(True, numbers, _moved(device, arguments, run), None, None)
    repeated, first = device.zeros(8), device.held(run, (numbers + 1) * 4, zero=True)
    arguments = structs.IndexLaunch(
        rows=rows, repeated=device.address(repeated), word=device.address(words[0]), first=device.address(first)
    )
    blocks = device.blocks(-(-rows // 16384))
    if rows:
        device.launch("gpudb_index_numbers", arguments, blocks)
        device.launch("gpudb_index_repeated", arguments, blocks)
    return RowIndex(bool(device.to_host(repeated, np.int64, 1)[0]), numbers, None, first, None)


def _index_words(device: KernelDevice, words: list[Any], rows: int, run: Run, form: str) -> RowIndex:
    bits = max(3, (rows + rows // 3).bit_length())
    width = (1 + len(words)) * 8
    slots, records = device.held(run, width << bits, zero=True), device.held(run, rows * width)
    repeated = device.zeros(8)
    columns = device.from_host(np.array([device.address(word) for word in words], np.uint64))
    parts = min(MOST_PARTS, max(1, (1 << bits) // PART_SLOTS))
    arguments = structs.IndexLaunch(
        words=device.address(columns),
        slots=device.address(slots),
        repeated=device.address(repeated),
        records=device.address(records),
        rows=rows,
        size=rows,
        key_words=len(words),
        slot_mask=(1 << bits) - 1,
        shift=bits - parts.bit_length() + 1,
        parts=parts,
        all=form == "all",
    )
    moved = _moved(device, arguments, run)
    device.launch("gpudb_index_words", arguments, arguments.blocks)
    table = structs.GroupTable(slots=device.address(slots), key_words=len(words), head_mask=(1 << bits) - 1)
    return RowIndex(bool(device.to_host(repeated, np.int64, 1)[0]), rows, moved, None, ProbedRows(table, [slots]))


def _moved(device: KernelDevice, arguments: Any, run: Run) -> MovedRows:
    """Put rows in order of their parts; the launch goes on with where they are."""
    rows, parts = arguments.rows, arguments.parts
    blocks = device.blocks(-(-max(rows, arguments.size) // 16384))
    moved, starts = device.held(run, rows * 8), device.empty((parts * blocks + 1) * 4)
    own, lanes = device.empty(blocks * MOST_PARTS * 4), device.empty(blocks * device.lanes * 4)
    arguments.moved, arguments.starts = device.address(moved), device.address(starts)
    arguments.own, arguments.lanes, arguments.blocks = device.address(own), device.address(lanes), blocks
    device.launch("gpudb_part_count", arguments, blocks)
    device.launch("gpudb_part_starts", arguments, 1)
    run.check()
    device.launch("gpudb_part_move", arguments, blocks)
    return MovedRows(arguments, [moved, starts, own, lanes])


def matches(device: KernelDevice, index: RowIndex, rows: int, run: Run) -> list[Any]:
    """[first match, number of matches] by 1 + entry, and the build rows of all matches: those of an entry in row order."""
    begins, counts = device.held(run, (index.size + 1) * 4), device.held(run, (index.size + 1) * 4)
    order = device.held(run, (rows + 1) * 4)
    arguments = index.entries.arguments
    arguments.begins, arguments.counts = device.address(begins), device.address(counts)
    arguments.order = device.address(order)
    device.launch("gpudb_index_matches", arguments, arguments.blocks)
    return [begins, counts, order]


def runs(device: KernelDevice, column: Any, rows: int, size: int, run: Run) -> list[Any]:
    """[where each number below `size` begins in a sorted column, how often it occurs]."""
    return _runs(device, device.address(column), 0, rows, size, 0, run)


def _runs(device: KernelDevice, word: int, order: int, rows: int, size: int, plus: int, run: Run) -> list[Any]:
    begins, counts = (device.held(run, (size + plus) * 4, zero=True) for _ in range(2))
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
    blocks = device.blocks(-(-rows // 16384))
    workers = blocks * device.lanes
    offsets, sums = device.held(run, (rows + 1) * 8), device.zeros((workers + 1) * 8)
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
