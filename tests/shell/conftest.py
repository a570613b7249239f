"""Runs the shell in this process (fast), or as a process of its own where that matters."""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy
import pyarrow as pa
import pytest
from pyarrow import parquet

from gpudb.__main__ import main


@dataclass
class Finished:
    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    """An empty home directory, so that nobody's ~/.gpudbrc or history takes part."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    monkeypatch.setenv("XDG_CACHE_HOME", cache)  # compiled kernels stay where they are
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    return folder


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Ctrl-C works, in processes started here too, where the tests run in the background of a script that ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def shell(capfd, monkeypatch) -> Callable[..., Finished]:
    """shell("-csv", "-c", "SELECT 1", stdin=""): exit code, standard output and standard error."""

    def run(*arguments: str, stdin: str = "") -> Finished:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        capfd.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as leaving:
            code = leaving.code
        out, err = capfd.readouterr()
        return Finished(code, out, err)

    return run


@pytest.fixture
def process() -> Callable[..., subprocess.CompletedProcess]:
    """process("-c", "SELECT 1", stdin=b""): the shell as a process, with bytes."""

    def run(*arguments: str, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, "-m", "gpudb", *map(str, arguments)],
            input=stdin,
            capture_output=True,
            check=False,
            env={**os.environ, **environment},
            timeout=120,
        )

    return run


@pytest.fixture
def numbers(tmp_path) -> Callable[[int], str]:
    """numbers(100): a file to put after FROM, with a column n of 0 to 99."""

    def write(count: int) -> str:
        file = tmp_path / f"numbers{count}.parquet"
        parquet.write_table(pa.table({"n": numpy.arange(count)}), file)
        return f"'{file}'"

    return write
