"""What window functions sum up over frames, on the device `reference`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpudb.devices.reference_tile import GroupState, WideSums, covariance
from gpudb.opcodes.comparison import OrderWord
from gpudb.program import FrameWord, GroupSink

Array = Any
Frame = list[tuple[Array, Array]]


def frame_words(frames: list[Frame], words: list[tuple[FrameWord, list[Array]]], rows: int) -> GroupState:
    """A table of groups, one a row: its words are those that `FrameWords` of a program says."""
    table = np.zeros((rows + 1, len(words)), np.int64)
    for at, (word, columns) in enumerate(words):
        frame = [(begin[:rows].astype(np.int64), end[:rows].astype(np.int64)) for begin, end in frames[word.frame]]
        table[:rows, at] = KINDS[word.kind]([column[:rows] for column in columns], frame, word)
    return GroupState(GroupSink("one", rows, 0, ()), table, np.zeros((0, 0), np.int64))


def _added(columns: list[Array], frame: Frame, word: FrameWord) -> Array:
    """Differences of running sums, modulo 2**64."""
    sums = np.zeros(len(columns[0]) + 1, np.int64)
    np.cumsum(columns[0], out=sums[1:])
    found = np.zeros(len(columns[0]), np.int64)
    for begin, end in frame:
        found += sums[end] - sums[begin]
    return found


def _extreme(columns: list[Array], frame: Frame, word: FrameWord) -> Array:
    """The least (greatest) word; of runs that begin where the row's before did, from what that one found."""
    values, least = columns[0].tolist(), word.kind == "least"
    better, neutral = (min, (1 << 63) - 1) if least else (max, -(1 << 63))
    found = [neutral] * len(values)
    for begins, ends in frame:
        before, last, best = -1, 0, neutral
        for row, (begin, end) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True)):
            if begin != before or end < last:
                best, last = neutral, begin
            best = better([best, *values[last:end]])
            before, last = begin, max(last, end)
            found[row] = better(found[row], best)
    return np.array(found, np.int64)


def _exact(columns: list[Array], frame: Frame, word: FrameWord) -> Array:
    """Sums over each frame, made anew, and what the kind makes of them, as order words."""
    *values, keep = columns
    pairs = PAIRS[word.kind]
    found = np.zeros(len(keep), np.float64)
    for row in range(len(keep)):
        inside = np.concatenate([np.arange(begin[row], end[row]) for begin, end in frame])
        inside = inside[keep[inside] != 0]
        group = np.zeros(len(inside), np.int64)
        sums = []
        for x, y in pairs:
            total = WideSums.zeros(1)
            total.add(group, values[x][inside], np.ones(len(inside)) if y is None else values[y][inside])
            sums.append(total)
        found[row] = FINISHES[word.kind](sums, len(inside), word.less)
    return np.asarray(OrderWord.body(found))


def _covariance(sums: list[WideSums], count: int, less: int) -> float:
    """From the sums of x, y and x y; or of x and x x."""
    if count <= less:
        return 0.0
    both, exponent = covariance(sums[0], sums[-2], sums[-1], 0, count)
    with np.errstate(all="ignore"):
        return float(np.ldexp(both / count / (count - less), exponent))


def _correlation(sums: list[WideSums], count: int, less: int) -> float:
    x, xx, y, yy, xy = sums
    x_square, x_exponent = covariance(x, x, xx, 0, count)
    y_square, y_exponent = covariance(y, y, yy, 0, count)
    both, exponent = covariance(x, y, xy, 0, count)
    with np.errstate(all="ignore"):
        return float(np.ldexp(both / np.sqrt(x_square * y_square), exponent - (x_exponent + y_exponent) // 2))


Kind = Callable[[list[Array], Frame, FrameWord], Array]
KINDS: dict[str, Kind] = {
    "add": _added,
    "least": _extreme,
    "greatest": _extreme,
    "sum": _exact,
    "variance": _exact,
    "correlation": _exact,
    "covariance": _exact,
}
PAIRS: dict[str, tuple[tuple[int, int | None], ...]] = {  # of which columns products are summed
    "sum": ((0, None),),
    "variance": ((0, None), (0, 0)),
    "correlation": ((0, None), (0, 0), (1, None), (1, 1), (0, 1)),
    "covariance": ((0, None), (1, None), (0, 1)),
}
FINISHES: dict[str, Callable[[list[WideSums], int, int], float]] = {
    "sum": lambda sums, count, less: sums[0].value(0),
    "variance": _covariance,
    "covariance": _covariance,
    "correlation": _correlation,
}
