"""The device of tests notices what lanes do wrong: barriers that not all come to, and steps that are not safe."""

from __future__ import annotations

import ctypes
import itertools
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from gpudb.devices.lanes import GARBAGE, LanesDevice, LanesLibrary
from gpudb.errors import InternalError
from gpudb.kernels import FOLDER, lanes_source
from gpudb.types import RegisterType as R
from tests.opcodes.pipelines import Builder, Column, outcome, stored

ROOT = Path(__file__).parents[2]
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

/// The same without a step at which others are let go first: a plain sum.
DEVICE void test_adding_block(const Words& in, int64 block, int64 blocks) {
    for (int i = 0; i < 100; ++i) in.words[0] += 1;
}
ENTRY(test_adding, Words)

/// Neighbours in shared memory; `count` says whether they meet between.
DEVICE void test_sharing_block(const Words& in, int64 block, int64 blocks) {
    int64* shared = (int64*)gpudb_shared_memory(LANES * 8);
    shared[LANE] = 100 + LANE;
    AT_INSTRUCTION(5, 1);
    if (in.count) sync_lanes();
    in.words[block * LANES + LANE] = shared[(LANE + 1) % LANES];
}
ENTRY(test_sharing, Words)

/// Lane 2 reads, or where `count` writes, the word behind what the block has.
DEVICE void test_passing_block(const Words& in, int64 block, int64 blocks) {
    int64* shared = (int64*)gpudb_shared_memory(LANES * 8);
    AT_INSTRUCTION(0, 1);
    if (LANE != 2) return;
    if (in.count) shared[LANES] = 1; else in.words[0] = shared[LANES];
}
ENTRY(test_passing, Words)

/// Every lane writes to an array of its own, and lane 5 behind its end.
DEVICE void test_local_block(const Words& in, int64 block, int64 blocks) {
    volatile int64 own[5];
    sync_lanes();
    volatile int64* place = own;
    asm volatile("" : "+r"(place));  // now the compiler does not know how many there are
    place[LANE < 6 ? LANE : 0] = LANE;
    in.words[LANE] = own[0];
}
ENTRY(test_local, Words)

/// A sum that does not fit.
DEVICE void test_signed_block(const Words& in, int64 block, int64 blocks) {
    sync_lanes();
    if (LANE == 0) in.words[0] = in.words[1] + in.words[2];
}
ENTRY(test_signed, Words)

/// What is in shared memory when a block begins; then it is left full of ones.
DEVICE void test_beginning_block(const Words& in, int64 block, int64 blocks) {
    int64* shared = (int64*)gpudb_shared_memory(LANES * 8);
    in.words[block * LANES + LANE] = shared[LANE];
    shared[LANE] = 1;
}
ENTRY(test_beginning, Words)

/// The lanes of all blocks, in the order of their turns.
DEVICE void test_order_block(const Words& in, int64 block, int64 blocks) {
    sync_lanes();
    in.words[1 + atomic_add(in.words, 1)] = block * LANES + LANE;
}
ENTRY(test_order, Words)
"""


class Words(ctypes.Structure):
    _fields_ = [("words", ctypes.c_uint64), ("count", ctypes.c_int64)]


@cache
def library() -> LanesLibrary:
    folder = Path(FOLDER)
    names = '#line 1 "names"\nstatic const char* const gpudb_opcode_names[] = {"Something", "Nothing"};\n'
    text = (
        (folder / "platform.h").read_text()
        + f'\n#line 1 "kernels"{KERNELS}'
        + names
        + (folder / "lanes.cpp").read_text()
    )
    return LanesLibrary(f"#define GPUDB_LANES {LANES}\n" + text)


def launch(name: str, words: np.ndarray, count: int, blocks: int = 1, seed: int = 1) -> str:
    """Run a kernel; what its lanes did wrong."""
    arguments = Words(words.__array_interface__["data"][0], count)
    try:
        library().launch(name, arguments, blocks, seed)
    except InternalError as error:
        return error.message
    return ""


@pytest.fixture
def watched() -> None:
    """The test needs a library whose lanes are told of every access."""
    if not library().watched:
        pytest.skip("another sanitizer watches memory")


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
    assert "test_leaver: 7 of 8 lanes wait at kernels:15, lane 3 at its end" in launch(
        "test_leaver", np.zeros(1, np.int64), 0
    )
    assert launch("test_neighbours", np.zeros(2 * LANES, np.int64), 1) == "", "the next launch is clean"


def test_lanes_at_different_barriers_are_an_error() -> None:
    told = launch("test_two_barriers", np.zeros(1, np.int64), 0)
    assert told == "test_two_barriers: 3 of 8 lanes wait at kernels:21, lane 3 at kernels:23"


@pytest.mark.parametrize("atomic", [True, False])
def test_only_atomic_steps_are_safe_between_blocks(atomic: bool) -> None:
    words = np.zeros(1, np.int64)
    launch("test_counting", words, int(atomic), blocks=2)
    assert (words[0] == 2 * LANES * 100) == atomic


def test_a_plain_update_of_a_word_is_seen_to_be_none(watched: None) -> None:
    words = np.zeros(1, np.int64)
    assert launch("test_adding", words, 0, blocks=2) == ""
    assert 0 < words[0] < 2 * LANES * 100


def test_a_missing_barrier_before_shared_memory_is_an_error_that_names_the_opcode(watched: None) -> None:
    words = np.zeros(2 * LANES, np.int64)
    told = launch("test_sharing", words, 0, blocks=2)
    assert re.fullmatch(
        r"test_sharing: lane \d (reads|writes) byte \d+ of shared memory, which lane \d (read|wrote) "
        r"since the last barrier, in Nothing \(instruction 5\)",
        told,
    )
    assert launch("test_sharing", words, 1, blocks=2) == ""
    assert words.tolist() == [100 + (lane + 1) % LANES for lane in range(LANES)] * 2


@pytest.mark.parametrize("verb", ["reads", "writes"])
def test_an_access_behind_shared_memory_is_an_error_that_names_the_opcode(verb: str, watched: None) -> None:
    told = launch("test_passing", np.zeros(1, np.int64), int(verb == "writes"))
    expected = f"lane 2 {verb} byte 64 of shared memory, which has not so many, in Nothing (instruction 0)"
    assert told == f"test_passing: {expected}"


def test_shared_memory_is_full_of_garbage_before_each_block() -> None:
    for _ in range(2):
        words = np.zeros(3 * LANES, np.int64)
        assert launch("test_beginning", words, 0, blocks=3) == ""
        assert set(words.tobytes()) == {GARBAGE}


def test_blocks_take_turns_in_an_order_that_the_seed_decides() -> None:
    orders = []
    for seed in (1, 2, 1):
        words = np.zeros(1 + 4 * LANES, np.int64)
        assert launch("test_order", words, 0, blocks=4, seed=seed) == ""
        orders.append(words[1:].tolist())
        assert sorted(orders[-1]) == list(range(4 * LANES))
        blocks = [lane // LANES for lane in orders[-1]]
        changes = sum(one != other for one, other in itertools.pairwise(blocks))
        assert changes > 8, "blocks one after the other would change three times"
    assert orders[0] == orders[2] != orders[1]


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [32, 256])
def test_a_barrier_in_a_program_that_not_all_lanes_reach_names_kernel_barrier_and_opcode(lanes: int) -> None:
    text = lanes_source(lanes)
    whole = "return block_sum(tile, any) != 0;"
    assert text.count(whole) == 1
    library = LanesLibrary(text.replace(whole, "return any || block_sum(tile, any) != 0;"))
    device = LanesDevice(2, 64, lanes=lanes)
    device.kernels = library
    builder = Builder()
    alive = builder.column(Column(R.MASK, stored(np.arange(64) == 5, R.MASK)))
    builder.block("SkipIfNone", (), alive)
    builder.emit(alive, builder.value("Compact", (R.U32,), alive))
    with pytest.raises(InternalError) as caught:
        outcome(device, builder.pipeline(filtered=True), [builder.part(64)])
    assert re.match(
        rf"gpudb_pipeline: {lanes - 1} of {lanes} lanes wait at tile.cuh:\d+, SkipIfNone \(instruction 0\), "
        r"lane 5 at vm.cuh:\d+, SkipIfNone \(instruction 0\)",
        caught.value.message,
    )


SANITIZERS = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -g1"


def sanitizer_runtimes() -> str | None:
    """The libraries that a process of g++'s sanitizers must load first; None where there are none."""
    paths = []
    for name in ("libasan.so", "libubsan.so"):
        try:
            done = subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return None
        paths.append(done.stdout.strip())
    return " ".join(paths) if all(Path(path).is_absolute() for path in paths) else None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "count", "report"),
    [
        ("test_sharing", 1, None),
        ("test_passing", 0, r"heap-buffer-overflow(.|\n)*READ of size 8(.|\n)*in test_passing_block"),
        ("test_passing", 1, r"heap-buffer-overflow(.|\n)*WRITE of size 8(.|\n)*in test_passing_block"),
        ("test_local", 0, r"stack-buffer-overflow(.|\n)*WRITE of size 8(.|\n)*in test_local_block"),
        ("test_signed", 0, r"runtime error: signed integer overflow(.|\n)*in test_signed_block"),
    ],
)
def test_sanitizers_see_what_a_lane_does(kernel: str, count: int, report: str | None) -> None:
    runtimes = sanitizer_runtimes()
    if runtimes is None:
        pytest.skip("no g++ with sanitizers")
    code = f"""
import numpy as np
from tests.devices.test_lanes import launch
words = np.zeros(64, np.int64)
words[1] = words[2] = 1 << 62
assert launch({kernel!r}, words, {count}) == "", "of the sanitizer's report, not of the device's own"
print("the kernel has run")
"""
    environment = {**os.environ, "CXX": "g++", "GPUDB_CXXFLAGS": SANITIZERS, "LD_PRELOAD": runtimes}
    environment |= {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    if report is None:
        assert (done.returncode, done.stdout, done.stderr) == (0, "the kernel has run\n", "")
    else:
        assert done.returncode != 0 and re.search(report, done.stderr), done.stderr
