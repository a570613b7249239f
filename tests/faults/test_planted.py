"""Planted faults: a copy of the source with one mistake in it, whose tests must fail.

What is tested here is the suite: a mistake of this kind, made by somebody later, does not pass it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.faults.planted import KERNEL_FAULTS, OTHER_FAULTS, Fault

ROOT = Path(__file__).parents[2]
COPIED = ("gpudb", "kernels", "planner", "server", "storage", "benchmarks", "tests", "pyproject.toml")
OPCODE_FAMILIES = {"arithmetic", "comparison", "logic", "conversion", "sinks", "functions"}

# Kernels of a copy are built once and used for a second: 3 s to build, 30 with the usual flags.
QUICK_BUILD = "-O0"

# How a failure begins: an assertion's, or what the device `lanes` says of lanes that do wrong.
NOTICED = (
    r"AssertionError|assert |Failed: DID NOT RAISE|gpudb.errors.InternalError: gpudb_\w+: (lane \d+|\d+ of \d+ lanes) "
)

BUILD = """
from gpudb.kernels import host_source
from gpudb.kernels.host_build import host_library
host_library(host_source())
"""

# The folder of the copy stands first on the path, whatever is installed.
RUN_PYTEST = """
import sys, gpudb, pytest
from pathlib import Path
assert Path.cwd() in Path(gpudb.__file__).parents, f"not the copy: {gpudb.__file__}"
sys.exit(pytest.main(["-n", "0", *sys.argv[1:]]))
"""


@dataclass(frozen=True)
class Verdict:
    """What pytest said: its exit code, how many tests passed, the first line of each failure, and errors aside."""

    code: int
    passed: int
    failures: tuple[str, ...]
    errors: int
    output: str


class Copy:
    """The source tree in a folder of its own."""

    def __init__(self, folder: Path, builds: bool) -> None:
        self.folder = folder / "copy"
        self.folder.mkdir()
        for name in COPIED:
            if (ROOT / name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "*.so")
                shutil.copytree(ROOT / name, self.folder / name, symlinks=True, ignore=ignored)
            else:
                shutil.copy2(ROOT / name, self.folder / name)
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        self.environment.pop("PYTHONPATH", None)
        if builds:
            self.environment |= {"GPUDB_CXXFLAGS": QUICK_BUILD, "GPUDB_CACHE_DIR": str(folder / "cache")}

    def plant(self, fault: Fault) -> None:
        """Make the mistake; its text must be there exactly once."""
        path = self.folder / fault.file
        text = path.read_text()
        assert text.count(fault.old) == 1, f"{fault.file} has this text {text.count(fault.old)} times:\n{fault.old}"
        path.write_text(text.replace(fault.old, fault.new))

    def build(self) -> None:
        """Compile the kernels: a mistake that the compiler notices is not one for the tests."""
        done = self._python("-c", BUILD)
        assert done.returncode == 0, done.stdout

    def test(self, arguments: Sequence[str]) -> Verdict:
        """Run tests of the copy."""
        report = self.folder / "report.xml"
        options = ("-q", "-p", "no:cacheprovider", "--tb=short", f"--junitxml={report}")
        done = self._python("-c", RUN_PYTEST, *options, *arguments)
        assert report.exists(), done.stdout
        suite = ElementTree.parse(report).getroot().find("testsuite")
        assert suite is not None, "a report has a suite"
        failures = tuple(failure.attrib["message"] for failure in suite.iter("failure"))
        errors, skipped = int(suite.attrib["errors"]), int(suite.attrib["skipped"])
        passed = int(suite.attrib["tests"]) - len(failures) - errors - skipped
        return Verdict(done.returncode, passed, failures, errors, done.stdout)

    def _python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )


def assert_noticed(fault: Fault, folder: Path) -> None:
    copy = Copy(folder, fault.builds)
    copy.plant(fault)
    if fault.builds:
        copy.build()
    verdict = copy.test(("-x", *fault.selection))  # one test that fails is enough
    assert verdict.code == 1 and verdict.errors == 0, f"no tests failed: {verdict.output}"
    wrong = [message for message in verdict.failures if re.match(NOTICED, message)]
    assert wrong, f"tests failed, but none by an assertion: {verdict.output}"


def assert_all_pass(faults: Sequence[Fault], folder: Path) -> None:
    copy = Copy(folder, any(fault.builds for fault in faults))
    for selection in dict.fromkeys(fault.selection for fault in faults):
        verdict = copy.test(selection)
        assert verdict.code == 0 and verdict.passed, verdict.output


def name_of(fault: Fault) -> str:
    return f"{fault.family}: {fault.name}"


@pytest.mark.slow
@pytest.mark.parametrize("fault", KERNEL_FAULTS, ids=name_of)
def test_a_fault_in_a_kernel_is_noticed(fault: Fault, tmp_path: Path) -> None:
    assert_noticed(fault, tmp_path)


@pytest.mark.slow
def test_the_same_tests_pass_on_kernels_without_a_fault(tmp_path: Path) -> None:
    assert_all_pass(KERNEL_FAULTS, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("fault", OTHER_FAULTS, ids=name_of)
def test_a_fault_outside_of_kernels_is_noticed(fault: Fault, tmp_path: Path) -> None:
    assert_noticed(fault, tmp_path)


@pytest.mark.slow
def test_the_same_tests_pass_without_a_fault(tmp_path: Path) -> None:
    assert_all_pass(OTHER_FAULTS, tmp_path)


def test_every_family_of_opcodes_and_every_file_of_kernels_has_a_fault() -> None:
    faults = [*KERNEL_FAULTS, *OTHER_FAULTS]
    assert len({fault.name for fault in faults}) == len(faults) >= 20
    assert {fault.family for fault in faults} >= OPCODE_FAMILIES
    operations = {path.name for path in (ROOT / "kernels").glob("*.cuh")}
    assert {Path(fault.file).name for fault in faults} >= operations
