"""Compiles the device source for NVIDIA GPUs by NVRTC.  Needs no GPU and no CUDA toolkit: two PyPI packages are enough.

Cubins, not PTX: an NVRTC newer than the driver writes PTX that the driver refuses.  Every option that could change a
float is spelled out, because some wrappers add -ftz=true by themselves.

    python -m gpudb.kernels.nvrtc --arch sm_90 --check kernels/registers.json

compiles the whole text, prints the registers of each kernel, and fails when one needs more than was recorded: registers
decide how many tiles a multiprocessor works on at once, so a change that costs some must be seen and meant.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gpudb.errors import DeviceError
from gpudb.kernels.cache import cache_folder, is_trusted, write_atomically
from gpudb.record import record

OPTIONS = (
    "--std=c++17",
    "--fmad=false",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
    "--device-int128",
    "--Ofast-compile=mid",  # for sm_90: 24 s of processor time and 148 registers; without it 124 s and 162
    "--ptxas-options=-v",  # ptxas then writes registers and spills of each kernel into the log
)

# The aim is 15 s for all kernels of an architecture; the limit keeps the one text with every function from growing until it
# is split by the opcodes that a program uses.
COMPILE_LIMIT_S = 60.0


class Resources(NamedTuple):
    """What one kernel needs of a multiprocessor: registers a thread, shared memory a block, spilled bytes a thread."""

    registers: int
    shared_bytes: int
    spill_bytes: int


@record
class Cubin:
    """Machine code of one architecture.

    image      an ELF file, as the driver loads it
    log        what NVRTC and ptxas said, warnings included
    resources  by kernel name
    """

    image: bytes
    log: str
    resources: dict[str, Resources]


def compile_cubin(source: str, arch: str = "sm_90", *, cached: bool = True) -> Cubin:
    """Compile `source`, one text without includes, for `arch` (sm_80, sm_90, ...).

    The cache's key is the whole text, the options and NVRTC's version, so a cubin never outlives what it was made from.
    Raises DeviceError when NVRTC is missing, does not know `arch`, or finds an error in the text.
    """
    nvrtc = _import_nvrtc()
    path = cache_folder() / f"{arch}-{_digest(nvrtc, source, arch)[:32]}.cubin"
    if cached and is_trusted(path):
        log, _, image = path.read_bytes().partition(b"\0")
    else:
        image, log = _compile(nvrtc, source, arch)
        write_atomically(path, log + b"\0" + image)
    text = log.decode(errors="replace")
    return Cubin(image, text, parse_resources(text))


def _import_nvrtc() -> Any:
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()  # loads the library itself
    except Exception as error:  # ImportError, or whatever the loader of the shared library raises
        raise DeviceError(
            f"device gpu: NVRTC cannot be loaded: {error}", hint="pip install 'gpudb-engine[gpu]'"
        ) from error
    return nvrtc


def _digest(nvrtc: Any, source: str, arch: str) -> str:
    _, major, minor = nvrtc.nvrtcVersion()
    return hashlib.sha256("\0".join((f"{major}.{minor}", arch, *OPTIONS, source)).encode()).hexdigest()


def _compile(nvrtc: Any, source: str, arch: str) -> tuple[bytes, bytes]:
    """(cubin, log) of one NVRTC run."""
    result, program = nvrtc.nvrtcCreateProgram(source.encode(), b"gpudb_kernels.cu", 0, [], [])
    _check(nvrtc, result)
    try:
        options = [option.encode() for option in (*OPTIONS, f"--gpu-architecture={arch}")]
        (result,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        log = _fetch(nvrtc, program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog).rstrip(b"\0")
        if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            lines = log.decode(errors="replace").strip().splitlines() or [result.name]
            errors = [line for line in lines if "error" in line] or lines
            raise DeviceError(
                f"device gpu: NVRTC could not build the kernels for {arch}:\n  " + "\n  ".join(errors[:8])
            )
        return _fetch(nvrtc, program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN), log
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _fetch(nvrtc: Any, program: Any, size_of: Any, copy: Any) -> bytes:
    """One of NVRTC's (size, then bytes) pairs of calls."""
    result, size = size_of(program)
    _check(nvrtc, result)
    buffer = bytearray(size)
    _check(nvrtc, copy(program, buffer)[0])
    return bytes(buffer)


def _check(nvrtc: Any, result: Any) -> None:
    if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise DeviceError(f"device gpu: NVRTC failed: {result.name}")


_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


def parse_resources(log: str) -> dict[str, Resources]:
    """Registers, shared and spilled bytes of each kernel in a ptxas log.

    Functions that a kernel calls have lines of their own: their spills count for the kernel above them.
    """
    found: dict[str, Resources] = {}
    entry, spills = "", 0
    for line in log.splitlines():
        if match := _ENTRY.search(line):
            entry, spills = match[1], 0
        elif match := _SPILLS.search(line):
            spills += int(match[1]) + int(match[2])
        elif (match := _USED.search(line)) and entry:
            shared = _SHARED.search(line)
            found[entry] = Resources(int(match[1]), int(shared[1]) if shared else 0, spills)
            entry = ""
    return found


def compare(recorded: dict[str, dict[str, int]], resources: dict[str, Resources]) -> list[str]:
    """One sentence for each kernel that needs more than `recorded`, or that only one side knows."""
    problems = []
    for name in sorted(recorded.keys() | resources.keys()):
        if name not in resources:
            problems.append(f"{name}: recorded, but not in the source any more")
        elif name not in recorded:
            problems.append(f"{name}: not recorded yet")
        else:
            for field, value in resources[name]._asdict().items():
                if value > recorded[name][field]:
                    problems.append(f"{name}: {field} rose from {recorded[name][field]} to {value}")
    return problems


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status: 0, or 1 when a check fails."""
    parser = argparse.ArgumentParser(prog="python -m gpudb.kernels.nvrtc", description=__doc__.splitlines()[0])
    parser.add_argument("--arch", action="append", help="architecture, may be repeated (default: sm_90)")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--record", type=Path, metavar="FILE", help="write the figures to FILE")
    group.add_argument("--check", type=Path, metavar="FILE", help="fail when a figure is above the one in FILE")
    options = parser.parse_args(arguments)

    from gpudb.kernels import device_source

    source = device_source()
    file = options.check or options.record
    recorded: dict[str, Any] = json.loads(file.read_text()) if file is not None and file.exists() else {}
    problems: list[str] = []
    for arch in options.arch or ["sm_90"]:
        started = time.process_time()  # processor time: a busy machine must not fail the check
        cubin = compile_cubin(source, arch, cached=False)
        seconds = time.process_time() - started
        print(f"{arch}: {len(source):,} characters, {len(cubin.image):,} bytes of code, {seconds:.1f} s")
        for name, needs in sorted(cubin.resources.items()):
            print(
                f"  {name:<40} {needs.registers:>4} registers, {needs.shared_bytes} shared, {needs.spill_bytes} spilled"
            )
        if options.check:
            problems += [f"{arch} {problem}" for problem in compare(recorded.get(arch, {}), cubin.resources)]
            if seconds > COMPILE_LIMIT_S:
                problems.append(f"{arch}: compiling took {seconds:.1f} s of {COMPILE_LIMIT_S:.0f} s")
        recorded[arch] = {name: needs._asdict() for name, needs in sorted(cubin.resources.items())}
    if options.record:
        options.record.write_text(json.dumps(recorded, indent=2, sort_keys=True) + "\n")
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        print(f"if it is meant: python -m gpudb.kernels.nvrtc --record {options.check}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
