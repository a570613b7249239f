"""Builds the host kernel library: C++ text in, the path of a shared library for this machine out.

A library is looked for in three places, in this order:

1. in the package: a wheel carries one library a level, named by the digest of the source and flags it was built from,
   so that a library never runs against a source it was not made from;
2. in the user's cache (see `gpudb.kernels.cache`), keyed by source, flags, level and compiler;
3. built now, for this machine's level only, and left in the cache.

A *level* is a set of CPU instructions: x86-64-v2, v3 (AVX2) and v4 (AVX-512), the psABI's names, or armv8-a.  Every
level gives the same bytes: the flags keep floating point exactly IEEE (see FLAGS), so a level changes speed only.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import importlib.util
import logging
import os
import platform
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from gpudb.errors import DeviceError
from gpudb.kernels.cache import cache_folder, is_trusted
from gpudb.record import record

logger = logging.getLogger("gpudb")

# Floating point stays exact: no contraction into fused multiply-adds, no fast-math.  -fno-math-errno only lets sqrt be
# one instruction.  -fno-trapping-math is left out on purpose: g++ 12 then folds (double)(int)x into trunc(x), which
# turns -0.5 into -0.0 where the two conversions give +0.0.
FLAGS = (
    "-O3",
    "-std=c++17",
    "-fPIC",
    "-shared",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fopenmp-simd",  # `omp simd` pragmas only: no OpenMP runtime
    "-fno-semantic-interposition",  # exported functions may be inlined into each other
    "-fno-exceptions",
    "-fno-rtti",
    "-pthread",
    "-Wall",
)

# Written as single instruction sets because -march=x86-64-v3 is unknown to g++ before 11 and spelled otherwise by zig.
_V2 = ("-mcx16", "-msahf", "-mpopcnt", "-msse3", "-mssse3", "-msse4.1", "-msse4.2")
_V3 = (*_V2, "-mavx", "-mavx2", "-mbmi", "-mbmi2", "-mf16c", "-mfma", "-mlzcnt", "-mmovbe")
_V4 = (*_V3, "-mavx512f", "-mavx512bw", "-mavx512cd", "-mavx512dq", "-mavx512vl")
LEVEL_FLAGS: dict[str, tuple[str, ...]] = {
    "x86-64-v2": _V2,
    "x86-64-v3": _V3,
    "x86-64-v4": _V4,
    "armv8-a": ("-march=armv8-a",),
}

# What Linux calls the instruction sets of a level in /proc/cpuinfo (abm is lzcnt, pni is SSE3).
_V2_CPU = frozenset({"cx16", "lahf_lm", "popcnt", "pni", "ssse3", "sse4_1", "sse4_2"})
_V3_CPU = _V2_CPU | {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}
_V4_CPU = _V3_CPU | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
_LEVEL_CPU = {"x86-64-v4": _V4_CPU, "x86-64-v3": _V3_CPU, "x86-64-v2": _V2_CPU}

# Our own copy of the C++ runtime, with its symbols hidden: pyarrow and others bring theirs into the same process.
_STATIC_RUNTIME = ("-static-libgcc", "-static-libstdc++", "-Wl,--exclude-libs,ALL")


@record
class Compiler:
    """A C++ compiler that was found: `command` is the start of its command line, `found_by` says how."""

    command: tuple[str, ...]
    found_by: str

    @property
    def is_zig(self) -> bool:
        return any(Path(word).name.startswith("zig") for word in self.command)

    @functools.cached_property
    def identity(self) -> str:
        """Changes when the compiler does: path, size, time.  A `--version` call would cost every start some ms."""
        parts = []
        for word in self.command:
            path = shutil.which(word)
            if path is None:
                parts.append(word)
                continue
            real = os.path.realpath(path)
            status = os.stat(real)
            parts.append(f"{real} {status.st_size} {status.st_mtime_ns}")
        return "\n".join(parts)

    def __str__(self) -> str:
        return " ".join(self.command)


def levels(machine: str | None = None) -> tuple[str, ...]:
    """The levels a wheel for `machine` carries, this machine by default; empty where there is none."""
    machine = (machine or platform.machine()).lower()
    if machine in ("x86_64", "amd64"):
        return ("x86-64-v2", "x86-64-v3", "x86-64-v4")
    if machine in ("aarch64", "arm64"):
        return ("armv8-a",)
    return ()


@functools.cache
def machine_level() -> str:
    """The highest level this CPU runs.  Raises DeviceError for a CPU that has none."""
    if levels() == ("armv8-a",):
        return "armv8-a"
    if levels():
        flags = _cpu_flags()
        for level, needed in _LEVEL_CPU.items():
            if needed <= flags:
                return level
    raise DeviceError(
        f"device cpu: needs an x86-64-v2 or ARMv8 processor: {platform.machine()}",
        hint="SET device = 'reference' runs queries without it, slowly",
    )


def _cpu_flags() -> frozenset[str]:
    """Instruction sets of the first CPU in /proc/cpuinfo; without that file, what every CPU since 2009 has."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return _V2_CPU
    for line in text.splitlines():
        if line.startswith("flags"):
            return frozenset(line.partition(":")[2].split())
    return _V2_CPU


def find_compiler() -> Compiler | None:
    """The first of CXX, g++, clang++ and the ziglang package.  A CXX that cannot be run raises DeviceError."""
    chosen = shlex.split(os.environ.get("CXX", ""))
    if chosen:
        if shutil.which(chosen[0]) is None:
            raise DeviceError(
                f"device cpu: the compiler that CXX names cannot be run: {chosen[0]}",
                hint="correct or unset CXX, or SET device = 'reference'",
            )
        return Compiler(tuple(chosen), "CXX")
    for name in ("g++", "clang++"):
        if path := shutil.which(name):
            return Compiler((path,), name)
    if importlib.util.find_spec("ziglang") is not None:
        return Compiler((sys.executable, "-m", "ziglang", "c++"), "ziglang")
    return None


def host_library(source: str, level: str | None = None, extra_flags: tuple[str, ...] = ()) -> Path:
    """Path of a shared library built from `source` for this machine; builds and caches it when there is none.

    level        one of `levels()`, for tests; by default the highest that this CPU runs
    extra_flags  given to the compiler after all others

    Raises DeviceError when there is neither a library nor a compiler, or when the compiler fails.
    """
    level = level or machine_level()
    if found := built_library(source, level, extra_flags):
        return found
    compiler = find_compiler()
    if compiler is None:
        raise DeviceError(
            "device cpu: its kernels are not built for this machine and there is no C++ compiler: looked for the "
            "variable CXX, g++, clang++ and the Python package ziglang",
            hint="install g++ (apt install g++), or pip install ziglang, or SET device = 'reference', which is slow",
        )
    path = cache_folder() / _cached_name(source, level, compiler, extra_flags)
    with _only_one_builder(path):
        if not is_trusted(path):  # another process may have built it while this one waited
            _build_into(path, source, level, compiler, extra_flags)
    return path


def built_library(source: str, level: str | None = None, extra_flags: tuple[str, ...] = ()) -> Path | None:
    """The library that `host_library` would return at once; None when it would have to compile one."""
    level = level or machine_level()
    if not extra_flags and (packaged := packaged_library(source, level)):
        return packaged
    folder = cache_folder()
    compiler = find_compiler()
    if compiler is not None:
        path = folder / _cached_name(source, level, compiler, extra_flags)
        return path if is_trusted(path) else None
    # A library is as right without its compiler as with it, whichever that was.
    others = sorted(folder.glob(f"{level}-{_source_digest(source, level, extra_flags)[:24]}-*.so"))
    return next(filter(is_trusted, others), None)


def packaged_library(source: str, level: str) -> Path | None:
    """The library that came with the wheel, if it was built from this very source with these very flags."""
    path = Path(__file__).parent / packaged_name(source, level)
    return path if path.is_file() else None


def packaged_name(source: str, level: str) -> str:
    """File name of a library inside the wheel; it carries the digest of what it was built from."""
    return f"libgpudb-{level}-{_source_digest(source, level)[:24]}.so"


def compile_library(
    source: str, level: str, output: Path, compiler: Compiler, extra_flags: tuple[str, ...] = ()
) -> str:
    """Compile `source` into `output`; returns what the compiler said (warnings, -fopt-info reports).

    The folder of `output` must exist and gets a temporary file.  Raises DeviceError with the compiler's first lines.
    """
    import subprocess  # every other start does without, and is 3 ms sooner

    with tempfile.TemporaryDirectory(dir=output.parent, prefix="build-") as folder:
        text = Path(folder) / "gpudb_kernels.cpp"
        text.write_text(source)
        built = Path(folder) / "library.so"
        command = [*compiler.command, *_flags(level)]
        if compiler.is_zig:
            command += ["-fno-sanitize=undefined", "-Wl,-s"]  # zig turns a trap on undefined behaviour on by itself
        runtime = () if compiler.is_zig or sys.platform != "linux" else _STATIC_RUNTIME
        # Some distributions ship no static libstdc++: then link to the shared one.
        for link in (runtime, ()) if runtime else ((),):
            arguments = [*command, *link, "-o", str(built), str(text), *extra_flags]
            done = subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            if done.returncode == 0 or "stdc++" not in done.stderr:
                break
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines()
            errors = [line for line in lines if "error" in line] or lines
            raise DeviceError(
                f"device cpu: the compiler could not build the kernels: {compiler}\n  " + "\n  ".join(errors[:8]),
                hint="name another compiler in CXX (g++ 9, clang 11 or newer), or SET device = 'reference'",
            )
        built.chmod(0o755)  # whatever the umask: a library that others may write is not trusted
        os.replace(built, output)  # atomic: nobody ever loads half a library
        return done.stderr


def build_levels(source: str, folder: Path, compiler: Compiler) -> list[Path]:
    """Compile `source` for every level of this machine's kind, all at once, into `folder`, named for a wheel."""
    from concurrent.futures import ThreadPoolExecutor

    folder.mkdir(parents=True, exist_ok=True)

    def build(level: str) -> Path:
        path = folder / packaged_name(source, level)
        if not path.exists():
            compile_library(source, level, path, compiler)
        return path

    with ThreadPoolExecutor() as pool:
        return list(pool.map(build, levels()))


def _flags(level: str) -> tuple[str, ...]:
    """All flags of a level; GPUDB_CXXFLAGS adds more (sanitizers, debug information)."""
    return (*FLAGS, *LEVEL_FLAGS[level], *shlex.split(os.environ.get("GPUDB_CXXFLAGS", "")))


def _source_digest(source: str, level: str, extra_flags: tuple[str, ...] = ()) -> str:
    return hashlib.sha256("\0".join((*_flags(level), *extra_flags, source)).encode()).hexdigest()


def _cached_name(source: str, level: str, compiler: Compiler, extra_flags: tuple[str, ...]) -> str:
    compiler_digest = hashlib.sha256(compiler.identity.encode()).hexdigest()
    return f"{level}-{_source_digest(source, level, extra_flags)[:24]}-{compiler_digest[:12]}.so"


@contextlib.contextmanager
def _only_one_builder(path: Path) -> Iterator[None]:
    """Hold a lock beside `path`, so that processes that start together compile once; without locks they all compile."""
    with open(path.with_suffix(".lock"), "w") as lock:
        with contextlib.suppress(OSError):  # some network file systems have no locks; the rename alone keeps it right
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build_into(path: Path, source: str, level: str, compiler: Compiler, extra_flags: tuple[str, ...]) -> None:
    logger.info("building the cpu kernels for %s with %s, once", level, compiler)
    started = time.monotonic()
    compile_library(source, level, path, compiler, extra_flags)
    logger.info("built %s in %.1f s", path, time.monotonic() - started)
