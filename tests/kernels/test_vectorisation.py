"""The report tells SIMD loops from scalar ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpudb.kernels import vectorisation
from gpudb.kernels.host_build import Compiler

TEXT = """
struct Instruction { const int* from; int* to; };
struct Tile { int rows; };
template <class T> struct Vector {};
struct operator_Add { static int apply(int x) { return x + 1; } };
struct operator_Walk { static int apply(int x) { while (x > 0 && x % 7 != 3) x = x * 5 - 1; return x; } };
template <class Op, class Out, int WIDTH, class In>
__attribute__((noinline)) void elementwise1(const Tile& tile, const Instruction& ins) {
    const int* __restrict__ from = ins.from;
    int* __restrict__ to = ins.to;
    const int rows = tile.rows;
    for (int i = 0; i < rows; ++i) to[i] = Op::apply(from[i]);
}
extern "C" void run(const Tile* tile, const Instruction* ins) {
    elementwise1<operator_Add, int, 1, Vector<int>>(*tile, *ins);
    elementwise1<operator_Walk, int, 1, Vector<int>>(*tile, *ins);
}
"""


def test_a_simple_loop_is_counted_and_a_walk_is_not(tmp_path: Path) -> None:
    counts = vectorisation.loop_counts(TEXT, Compiler(("g++",), "g++"), tmp_path)
    assert {re.sub(r"\s", "", name): count > 0 for name, count in counts.items()} == {
        "Add<int,1,Vector<int>>": True,
        "Walk<int,1,Vector<int>>": False,
    }


def test_a_scalar_loop_without_a_reason_fails_the_check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gpudb.kernels.host_source", lambda: TEXT)
    assert vectorisation.main() == 1
    assert "scalar without a reason: Walk<int" in capsys.readouterr().err
    monkeypatch.setattr(vectorisation, "REASONS", ((r"Walk<.*", "it walks"),))
    assert vectorisation.main() == 0


@pytest.mark.parametrize(
    ("variant", "explained"),
    [
        ("Add<__int128, 1, Vector<__int128>, Scalar<__int128> >", True),
        ("Add<int, 1, Vector<int>, Scalar<int> >", False),
        ("Modulo<int, 1, Vector<int>, Scalar<int> >", True),
        ("Select<int, 1, Vector<unsigned char>, Vector<int>, Vector<int> >", False),
    ],
)
def test_reasons_name_what_hardware_lacks_and_nothing_else(variant: str, explained: bool) -> None:
    assert (vectorisation.reason(variant) is not None) == explained
