"""Temporary files: zeros at first, what was written after any unmapping, no name, no byte kept, and a clear error."""

from __future__ import annotations

import errno
import gc
import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from gpudb.devices import temporary_files
from gpudb.devices.temporary_files import TemporaryFiles
from gpudb.errors import MemoryLimitError

PAGE = os.sysconf("SC_PAGE_SIZE")


def test_a_piece_is_zeros_and_keeps_what_is_written_when_it_is_unmapped(tmp_path: Path) -> None:
    files = TemporaryFiles(str(tmp_path), None, 0)
    piece = files.take(3 * PAGE + 5)
    assert piece.nbytes == 3 * PAGE + 5 and not piece.any() and piece.ctypes.data % PAGE == 0
    piece[:] = np.arange(len(piece)) % 251
    files.unmap()
    assert (piece == np.arange(len(piece)) % 251).all()
    assert (files.held, files.peak) == (4 * PAGE, 4 * PAGE)


def test_a_view_keeps_its_piece_and_the_last_one_gives_it_back(tmp_path: Path) -> None:
    files = TemporaryFiles(str(tmp_path), None, 0)
    piece = files.take(PAGE)
    view = piece[100:200].view(np.uint32)
    view[:] = 7
    del piece
    gc.collect()
    assert files.held == PAGE and (view == 7).all()
    del view
    assert (files.held, files.peak) == (0, PAGE)


@pytest.mark.parametrize("nameless", [True, False])
def test_no_file_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nameless: bool) -> None:
    if not nameless:
        opened = os.open

        def refusing(path: str, flags: int, mode: int = 0o777) -> int:
            if flags & os.O_TMPFILE == os.O_TMPFILE:
                raise OSError(errno.EOPNOTSUPP, "not here")
            return opened(path, flags, mode)

        monkeypatch.setattr(os, "open", refusing)
    files = TemporaryFiles(str(tmp_path), None, 0)
    piece = files.take(PAGE)
    piece[:] = 1
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("fault", ["_open", "_allocate"])
def test_a_full_disk_is_an_error_that_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    files = TemporaryFiles(str(tmp_path), None, 0)
    monkeypatch.setattr(files, fault, full)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(MemoryLimitError, match=rf"temporary file of {PAGE:,} bytes in .*: No space left on device"):
        files.take(10)
    assert files.held == 0 and len(os.listdir("/proc/self/fd")) <= before


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MemoryLimitError, match="No such file or directory"):
        TemporaryFiles(str(tmp_path / "none"), None, 0).take(1)


def test_the_limit_of_files_holds(tmp_path: Path) -> None:
    files = TemporaryFiles(str(tmp_path), 2 * PAGE, 0)
    kept = [files.take(PAGE), files.take(1)]
    with pytest.raises(MemoryLimitError, match="max_temp_directory_size"):
        files.take(1)
    with pytest.raises(MemoryLimitError, match="max_temp_directory_size"):
        files.check(1)
    kept.pop()
    assert files.take(1).nbytes == 1


def test_more_than_the_disk_has_is_refused_before_it_is_taken(tmp_path: Path) -> None:
    files = TemporaryFiles(str(tmp_path), None, 0)
    files.check(1 << 20)
    with pytest.raises(MemoryLimitError, match="no room"):
        files.check(1 << 62)
    assert files.held == 0


def resident(array: np.ndarray) -> int:
    """KB of the mapping behind an array that are resident in this process."""
    start = f"{array.ctypes.data // PAGE * PAGE:x}-"
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    for line in lines:
        if line.startswith(start):
            return next(int(later.split()[1]) for later in lines if later.startswith("Rss:"))
    raise AssertionError("no mapping begins there")


def test_what_is_too_much_is_unmapped_while_it_is_used_and_the_thread_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(temporary_files, "LEAST_MAPPED", 0)
    others: list[int] = []
    files = TemporaryFiles(str(tmp_path), None, 0, lambda: others.append(1))
    piece = files.take(1 << 22)
    piece[:] = 3
    deadline = time.monotonic() + 10
    while resident(piece) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert resident(piece) == 0 and others and piece.sum() == 3 << 22
    del piece
    names = {"gpudb unmaps"}
    while names & {thread.name for thread in threading.enumerate()} and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not names & {thread.name for thread in threading.enumerate()}
