"""Windows on devices that run kernels: each row's place in an order, and what its frame sums up to."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gpudb.devices import launch as structs
from gpudb.devices.work import Emitted, Run
from gpudb.program import FrameWord
from gpudb.types import RegisterType

if TYPE_CHECKING:
    from gpudb.devices.kernels import KernelDevice

FANOUT = 16  # of kernels/window.cuh
EXACT = {"sum": 0, "variance": 1, "correlation": 2, "covariance": 3}
ROWS_OF_A_BLOCK = 16384
Frame = list[tuple[Any, Any]]


def invert_rows(device: KernelDevice, order: Emitted, run: Run) -> Emitted:
    """Each row's place in an order of all rows: one u32 column."""
    rows = order.rows
    places = device.held(run, (rows + 1) * 4)
    arguments = structs.InvertLaunch(order=device.address(order.columns[0]), places=device.address(places), rows=rows)
    device.launch("gpudb_invert", arguments, device.blocks(-(-rows // ROWS_OF_A_BLOCK)))
    return Emitted(rows, [places], (RegisterType.U32,))


def frame_words(
    device: KernelDevice, frames: list[Frame], words: list[tuple[FrameWord, list[Any]]], rows: int, run: Run
) -> Any:
    """Groups, one a row, of what window functions sum up over its frame."""
    stride = len(words)
    table = device.held(run, max(1, rows * stride) * 8)
    bounds = [
        device.from_host(np.array([device.address(side) for run_ in frame for side in run_], np.uint64))
        for frame in frames
    ]
    blocks = device.blocks(-(-rows // ROWS_OF_A_BLOCK))
    for at, (word, columns) in enumerate(words):
        run.check()
        arguments = structs.WindowLaunch(
            bounds=device.address(bounds[word.frame]),
            words=device.address(device.view(table, at * 8)),
            rows=rows,
            stride=stride,
            runs=len(frames[word.frame]),
            workers=blocks * device.lanes,
            greatest=word.kind == "greatest",
            less=word.less,
            cancel=device.cancel_word(run),
        )
        if not rows:
            continue
        if word.kind == "add":
            _add(device, arguments, columns[0], blocks, run)
        elif word.kind in EXACT:
            *values, keep = [device.address(column) for column in columns]
            arguments.x, arguments.y, arguments.keep = values[0], values[-1], keep
            arguments.kind = EXACT[word.kind]
            device.launch("gpudb_window_exact", arguments, blocks)
        else:
            _extreme(device, arguments, columns[0], blocks, run)
    run.check()
    return table


def _add(device: KernelDevice, arguments: Any, column: Any, blocks: int, run: Run) -> None:
    sums, prefix = device.empty((arguments.workers + 1) * 8), device.held(run, (arguments.rows + 1) * 8)
    arguments.column = device.address(column)
    arguments.sums, arguments.prefix = device.address(sums), device.address(prefix)
    device.launch("gpudb_window_sums", arguments, blocks)
    device.launch("gpudb_window_scan", arguments, 1)
    device.launch("gpudb_window_prefix", arguments, blocks)
    device.launch("gpudb_window_add", arguments, blocks)


def _extreme(device: KernelDevice, arguments: Any, column: Any, blocks: int, run: Run) -> None:
    sizes = [arguments.rows]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // FANOUT))
    nodes = device.held(run, sum(sizes[1:]) * 8 + 8)
    below, place = device.address(column), device.address(nodes)
    for size, above in pairwise(sizes):
        level = structs.WindowLaunch(column=below, nodes=place, rows=size, greatest=arguments.greatest)
        device.launch("gpudb_window_level", level, device.blocks(-(-size // ROWS_OF_A_BLOCK)))
        below, place = place, place + above * 8
    arguments.column, arguments.nodes = device.address(column), device.address(nodes)
    device.launch("gpudb_window_extreme", arguments, blocks)
