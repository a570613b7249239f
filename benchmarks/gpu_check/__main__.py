"""python -m benchmarks.gpu_check: parity, figures and faults of a GPU that is to be had for a few minutes.

Needs numpy, pyarrow, sqlglot, cupy and nvrtc (the extra `gpu`); every line is written as soon as it is measured.  With no
GPU the same steps run in small on a GPU that is played, so that the check itself is known to work.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace

import gpudb
from benchmarks.gpu_check import faults, parity
from benchmarks.gpu_check.budget import Budget
from benchmarks.gpu_check.figures import Figures, Sizes
from benchmarks.gpu_check.machine import KINDS, open_machine, why_no_gpu
from benchmarks.report import Line, Report

SHARES = {"parity": 0.3, "figures": 0.5}  # of the time; the faults get what is left
PARTS = ("parity", "figures", "faults")
WOULD_USE = {"duckdb": "flights over 10 M rows beside it, both answers compared"}
REAL = Sizes(rows=100_000_000, repeat=3, copied=1 << 30)
STAND_IN = Sizes(rows=20_000, repeat=2, copied=1 << 20, row_group_rows=8192)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the parts in turn.  0 when nothing differed, failed or was lost that should not be."""
    options = _options(arguments)
    budget = Budget(options.minutes * 60)
    report = Report(options.json)
    start: Line = {"benchmark": "gpu_check", "part": "start", "version": gpudb.__version__, "seed": options.seed}
    start |= {"minutes": options.minutes, "no_gpu": why_no_gpu()}
    start["would_use"] = {
        name: {"installed": importlib.util.find_spec(name) is not None, "for": what} for name, what in WOULD_USE.items()
    }
    good: dict[str, bool] = {}
    kind = _device_parts(options, budget, report, start, good)
    gc.collect()  # the device's memory is free for the processes of the faults
    if "faults" in options.parts:
        good["faults"] = _attempt("faults", lambda part: faults.check(kind, part, report), budget, report)
    report.write_summary({"good": good, "seconds": round(budget.seconds - budget.left, 1)})
    return 0 if all(good.values()) else 1


def _device_parts(
    options: argparse.Namespace, budget: Budget, report: Report, start: Line, good: dict[str, bool]
) -> str:
    """The parts that run in this process; the kind of device that they ran on."""
    began = time.perf_counter()
    with open_machine(options.on, tile_rows=options.tile_rows) as machine:
        report.add({**start, **machine.describe(), "started_s": round(time.perf_counter() - began, 3)})
        report.note(f"gpu_check on {machine.kind}: {options.minutes:g} minutes, seed {options.seed}")
        sizes = REAL if machine.real else STAND_IN
        sizes = replace(sizes, rows=machine.most_rows(options.rows or sizes.rows))
        steps: dict[str, Callable[[Budget], bool]] = {
            "parity": lambda part: parity.check(machine, part, options.seed, report),
            "figures": lambda part: Figures(machine, sizes, part, report).measure(),
        }
        for name, step in steps.items():
            if name in options.parts:
                good[name] = _attempt(name, step, budget.part(SHARES[name]), report)
        gc.collect()
        machine.free()
        return machine.kind


def _attempt(name: str, step: Callable[[Budget], bool], budget: Budget, report: Report) -> bool:
    """Run a part; one that fails must not take the others with it."""
    try:
        return step(budget)
    except Exception as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())[:500]
        report.add({"benchmark": "gpu_check", "part": name, "error": text, "traceback": traceback.format_exc()[-2000:]})
        report.note(f"{name} failed: {text}")
        return False


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_check", description=__doc__.split("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=5.0, help="for everything together")
    parser.add_argument("--json", metavar="FILE", help="append the lines to FILE instead of printing them")
    parser.add_argument("--seed", type=int, default=0, help="of the sample of parity")
    parser.add_argument("--rows", type=int, help="of the tables that figures are measured over")
    parser.add_argument("--tile-rows", type=int, help="rows of a tile; by default the device's own")
    parser.add_argument("--on", choices=KINDS, default="auto", help="auto: the GPU, without one the fake")
    parser.add_argument("--parts", type=lambda text: text.split(","), default=list(PARTS), help=",".join(PARTS))
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    return options


if __name__ == "__main__":
    sys.exit(main())
