"""The device of tests notices what lanes do wrong: barriers that not all come to, and steps that are not safe."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from gpudb.kernels import FOLDER
from gpudb.kernels.host_build import host_library

LANES = 8
KERNELS = """
struct Words { int64* words; int64 count; };

/// Every lane writes its word, then reads its neighbour's: `count` says whether they meet between.
DEVICE void test_neighbours_block(const Words& in, int64 block, int64 blocks) {
    int64* words = in.words + block * 2 * LANES;
    words[LANE] = 100 + LANE;
    if (in.count) sync_lanes();
    words[LANES + LANE] = words[(LANE + 1) % LANES];
}
ENTRY(test_neighbours, Words)

/// One lane ends while the others wait.
DEVICE void test_leaver_block(const Words& in, int64 block, int64 blocks) {
    if (LANE == 3) return;
    sync_lanes();
}
ENTRY(test_leaver, Words)

/// Lanes wait at two barriers.
DEVICE void test_two_barriers_block(const Words& in, int64 block, int64 blocks) {
    if (LANE < 3) sync_lanes();
    else
        sync_lanes();
}
ENTRY(test_two_barriers, Words)

/// Lanes of all blocks count: safely, or with a read, another lane's turn, and a write.
DEVICE void test_counting_block(const Words& in, int64 block, int64 blocks) {
    for (int i = 0; i < 100; ++i) {
        if (in.count) { atomic_add(in.words, 1); continue; }
        const int64 seen = in.words[0];
        fence();
        in.words[0] = seen + 1;
    }
}
ENTRY(test_counting, Words)
"""


class Words(ctypes.Structure):
    _fields_ = [("words", ctypes.c_uint64), ("count", ctypes.c_int64)]


@cache
def library() -> ctypes.CDLL:
    folder = Path(FOLDER)
    text = (folder / "platform.h").read_text() + KERNELS + (folder / "lanes.cpp").read_text()
    return ctypes.CDLL(str(host_library(f"#define GPUDB_LANES {LANES}\n" + text)))


def launch(name: str, words: np.ndarray, count: int, blocks: int = 1) -> str:
    """Run a kernel; what its lanes did wrong."""
    arguments = Words(words.__array_interface__["data"][0], count)
    getattr(library(), name)(ctypes.byref(arguments), ctypes.c_int64(blocks))
    text = ctypes.create_string_buffer(512)
    library().gpudb_lanes_error(text, ctypes.c_int64(len(text)))
    return text.value.decode()


def test_a_barrier_lets_every_lane_see_what_the_others_wrote() -> None:
    words = np.zeros(3 * 2 * LANES, np.int64)
    assert launch("test_neighbours", words, 1, blocks=3) == ""
    expected = [100 + (lane + 1) % LANES for lane in range(LANES)]
    assert words.reshape(3, 2, LANES)[:, 1].tolist() == [expected] * 3


def test_a_missing_barrier_shows_as_wrong_words() -> None:
    words = np.zeros(2 * LANES, np.int64)
    assert launch("test_neighbours", words, 0) == ""
    assert (words[LANES:] == 0).any()


def test_a_lane_that_ends_while_others_wait_is_an_error() -> None:
    assert "1 lanes of a block ended while others wait" in launch("test_leaver", np.zeros(1, np.int64), 0)
    assert launch("test_neighbours", np.zeros(2 * LANES, np.int64), 1) == "", "the next launch is clean"


def test_lanes_at_different_barriers_are_an_error() -> None:
    assert "different barriers" in launch("test_two_barriers", np.zeros(1, np.int64), 0)


@pytest.mark.parametrize("atomic", [True, False])
def test_only_atomic_steps_are_safe_between_blocks(atomic: bool) -> None:
    words = np.zeros(1, np.int64)
    launch("test_counting", words, int(atomic), blocks=2)
    assert (words[0] == 2 * LANES * 100) == atomic
