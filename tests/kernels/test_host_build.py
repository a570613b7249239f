"""The host library is found or built for this machine, and its flags leave floating point exactly IEEE."""

from __future__ import annotations

import ctypes
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gpudb.errors import DeviceError
from gpudb.kernels import cache, host_build
from gpudb.kernels.host_build import Compiler, built_library, host_library

SMALL = """
#include <atomic>
#include <thread>
extern "C" double truncate(double x) { return (double)(int)x; }
extern "C" double multiply_add(double x, double y, double z) { return x * y + z; }
extern "C" int threads() {
    std::atomic<int> count{0};
    std::thread first([&] { ++count; }), second([&] { ++count; });
    first.join();
    second.join();
    return count;
}
"""

RUNNABLE_LEVELS = [level for level in host_build.levels() if level <= host_build.machine_level()]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPUDB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("GPUDB_CXXFLAGS", raising=False)
    return tmp_path / "cache" / "kernels"


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    find_spec = host_build.importlib.util.find_spec
    monkeypatch.setattr(
        host_build.importlib.util, "find_spec", lambda name: None if name == "ziglang" else find_spec(name)
    )


def _double_function(library: Path, name: str) -> Callable[..., float]:
    function = ctypes.CDLL(str(library))[name]
    function.restype = ctypes.c_double
    return lambda *values: function(*map(ctypes.c_double, values))


def test_a_library_is_built_once_and_found_afterwards(own_cache: Path) -> None:
    assert built_library(SMALL) is None
    path = host_library(SMALL)
    assert path.parent == own_cache and ctypes.CDLL(str(path)).threads() == 2
    built_at = path.stat().st_mtime_ns
    assert host_library(SMALL) == built_library(SMALL) == path
    assert path.stat().st_mtime_ns == built_at
    assert built_library(SMALL + "// changed") is None


@pytest.mark.parametrize("level", RUNNABLE_LEVELS)
def test_no_level_bends_floating_point(level: str) -> None:
    """-fno-trapping-math would give -0.0 for the first, a fused multiply-add 2**-60 for the second."""
    library = host_library(SMALL, level)
    assert math.copysign(1, _double_function(library, "truncate")(-0.5)) == 1
    x = 1 + 2.0**-30
    assert _double_function(library, "multiply_add")(x, x, -(1 + 2.0**-29)) == 0


def test_processes_that_start_together_share_one_build(own_cache: Path) -> None:
    script = f"from gpudb.kernels.host_build import host_library; print(host_library({SMALL!r}))"
    processes = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    paths = {process.communicate(timeout=120)[0].strip() for process in processes}
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert len(paths) == 1 and ctypes.CDLL(paths.pop()).threads() == 2
    assert sorted(path.suffix for path in own_cache.iterdir()) == [".lock", ".so"]


def test_without_a_compiler_the_error_says_what_was_sought_and_what_to_do(no_compiler: None) -> None:
    with pytest.raises(DeviceError) as caught:
        host_library(SMALL)
    for words in ("CXX", "g++", "clang++", "pip install ziglang", "SET device = 'reference'"):
        assert words in str(caught.value)


def test_a_library_outlives_its_compiler(request: pytest.FixtureRequest) -> None:
    path = host_library(SMALL)
    request.getfixturevalue("no_compiler")
    assert host_library(SMALL) == path


def test_cxx_comes_before_gxx_and_gxx_before_clangxx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("g++", "clang++", "mine"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CXX", "mine -m64")
    assert host_build.find_compiler() == Compiler(("mine", "-m64"), "CXX")
    monkeypatch.delenv("CXX")
    assert host_build.find_compiler() == Compiler((str(tmp_path / "g++"),), "g++")
    (tmp_path / "g++").unlink()
    assert host_build.find_compiler() == Compiler((str(tmp_path / "clang++"),), "clang++")
    (tmp_path / "clang++").unlink()
    monkeypatch.setattr(host_build.importlib.util, "find_spec", lambda name: object())
    assert host_build.find_compiler() == Compiler((sys.executable, "-m", "ziglang", "c++"), "ziglang")


def test_a_cxx_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler -O2")
    with pytest.raises(DeviceError, match="CXX names cannot be run: no-such-compiler"):
        host_library(SMALL)


def test_a_text_that_does_not_compile_gives_the_compilers_words(own_cache: Path) -> None:
    with pytest.raises(DeviceError, match=r"(?s)could not build the kernels: \S+\n.*nonsense"):
        host_library("int f() { return nonsense; }")
    assert [path.suffix for path in own_cache.iterdir()] == [".lock"]


def test_a_packaged_library_serves_only_its_own_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    level = host_build.machine_level()
    packaged = tmp_path / host_build.packaged_name(SMALL, level)
    packaged.touch()
    monkeypatch.setattr(host_build, "__file__", str(tmp_path / "host_build.py"))
    assert built_library(SMALL) == packaged
    assert built_library(SMALL + "// changed") is None
    monkeypatch.setenv("GPUDB_CXXFLAGS", "-g")
    assert built_library(SMALL) is None


def test_the_highest_level_that_the_cpu_has_is_picked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_build.platform, "machine", lambda: "x86_64")
    for level, flags in host_build._LEVEL_CPU.items():
        monkeypatch.setattr(host_build, "_cpu_flags", lambda flags=flags: flags | {"fpu"})
        assert host_build.machine_level.__wrapped__() == level
    monkeypatch.setattr(host_build, "_cpu_flags", lambda: host_build._V2_CPU - {"popcnt"})
    with pytest.raises(DeviceError, match="x86-64-v2"):
        host_build.machine_level.__wrapped__()


def test_a_library_that_others_may_write_is_not_loaded_but_built_again() -> None:
    path = host_library(SMALL)
    path.write_bytes(b"planted")
    path.chmod(0o777)
    assert built_library(SMALL) is None
    assert host_library(SMALL) == path
    assert ctypes.CDLL(str(path)).threads() == 2


@pytest.mark.parametrize("unusable", ["a file", "open to all"])
def test_a_cache_that_cannot_be_used_gives_way_to_a_private_folder(
    unusable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    monkeypatch.setenv("GPUDB_CACHE_DIR", str(place))
    if unusable == "a file":
        place.touch()
    else:
        (place / "kernels").mkdir(parents=True)
        (place / "kernels").chmod(0o777)
    folder = cache.cache_folder()
    assert place not in folder.parents
    assert os.stat(folder).st_mode & 0o077 == 0
