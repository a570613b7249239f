"""Memory of a statement that lies in temporary files: what memory_limit leaves no room for.

Each piece is a file of its own, mapped and shared, without a name: it is gone with the last who has the piece, and with the
process, however that ends.  Its place on the disk is taken before it is mapped, so that a full disk is an error and not the
end of the process at a later touch.  What is written goes to the page cache, from where the kernel moves it to the disk when
others need the memory.

A piece's pages count as resident while they are mapped, though the kernel may take them away at any time.  Unmapping them
loses nothing, even under those who read and write them, and costs 0.1 to 0.5 us a page touched again.  So a thread does that
whenever more of files is mapped than the statement's share: what is resident stays near memory_limit, whatever is spilled.
"""

from __future__ import annotations

import errno
import logging
import mmap
import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import IO, Any

import numpy as np

from gpudb.errors import MemoryLimitError

logger = logging.getLogger("gpudb")

LOOK_SECONDS = 0.005  # between two looks at what is resident
LEAST_MAPPED = 1 << 26  # bytes of files that stay mapped beside the program's own
HINT = "SET temp_directory to a folder with more room, or memory_limit to a larger size"


class _Piece:
    """A mapped file: arrays over it hold this object, and the last one to go gives its bytes back."""

    __slots__ = ("__array_interface__", "__weakref__", "_array", "_files", "_size", "mapping")

    def __init__(self, files: TemporaryFiles, mapping: mmap.mmap, size: int) -> None:
        self._files = files
        self._array = np.frombuffer(mapping, np.uint8)
        self._size = size
        self.mapping = mapping
        self.__array_interface__: Any = self._array.__array_interface__

    def __del__(self) -> None:
        self._files.give_back(self._size)


class TemporaryFiles:
    """The temporary files of one statement; safe to share between threads.

    folder  where they lie
    limit   bytes that they may take together; None for what the disk has
    held, peak  bytes that they take, and took at most
    mapped  bytes of files that may stay mapped
    unmap   what else to unmap when there are more
    """

    def __init__(self, folder: str, limit: int | None, mapped: int, unmap: Callable[[], None] | None = None) -> None:
        self.folder = folder
        self.limit = limit
        self.held = 0
        self.peak = 0
        self.mapped = max(mapped, LEAST_MAPPED)
        self._unmap = unmap
        self._lock = threading.RLock()
        self._pieces: weakref.WeakSet[_Piece] = weakref.WeakSet()
        self._watching = False

    def take(self, size: int) -> np.ndarray:
        """(size,) uint8 of zeros, aligned to a page.  Raises MemoryLimitError where there is no room for them."""
        whole = -(-max(1, size) // mmap.PAGESIZE) * mmap.PAGESIZE
        self._reserve(whole)
        try:
            descriptor = self._open()
            try:
                self._allocate(descriptor, whole)
                mapping = mmap.mmap(descriptor, whole)
            finally:
                os.close(descriptor)
        except OSError as error:
            self.give_back(whole)
            raise self._no_room(whole, error.strerror or str(error)) from None
        piece = _Piece(self, mapping, whole)
        with self._lock:
            self._pieces.add(piece)
            if not self._watching:
                self._watching = True
                threading.Thread(target=_watch, args=(weakref.ref(self),), name="gpudb unmaps", daemon=True).start()
        return np.asarray(piece)[:size]

    def check(self, size: int) -> None:
        """Raise MemoryLimitError where there is no room for so many bytes, which nobody takes yet."""
        self._reserve(size)
        self.give_back(size)
        try:
            disk = os.statvfs(self.folder)
        except OSError as error:
            raise self._no_room(size, error.strerror or str(error)) from None
        free = disk.f_bavail * disk.f_frsize
        if size > free:
            raise self._no_room(size, f"{free:,} are free")

    def give_back(self, size: int) -> None:
        """The bytes are free again."""
        with self._lock:
            self.held -= size

    def unmap(self) -> None:
        """Let no page of the files be resident: each comes back when it is touched."""
        with self._lock:  # nobody adds a piece meanwhile
            pieces = list(self._pieces)
        for piece in pieces:
            piece.mapping.madvise(mmap.MADV_DONTNEED)
        if self._unmap is not None:
            self._unmap()

    def _no_room(self, size: int, reason: str) -> MemoryLimitError:
        return MemoryLimitError(
            f"no room for what memory_limit leaves no room for: a temporary file of {size:,} bytes in {self.folder}: {reason}",
            hint=HINT,
        )

    def _reserve(self, size: int) -> None:
        with self._lock:
            if self.limit is not None and self.held + size > self.limit:
                raise MemoryLimitError(
                    "statement needs more memory than memory_limit, and more temporary files than "
                    f"max_temp_directory_size, allows: {self.held + size:,} of {self.limit:,} bytes in files",
                    hint="SET max_temp_directory_size or memory_limit to a larger size, or read fewer rows or columns",
                )
            self.held += size
            self.peak = max(self.peak, self.held)

    def _open(self) -> int:
        """A descriptor of a new file without a name."""
        try:
            return os.open(self.folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
                raise
        import tempfile  # not every file system can do that

        descriptor, path = tempfile.mkstemp(prefix="gpudb-", dir=self.folder)
        os.unlink(path)
        return descriptor

    def _allocate(self, descriptor: int, size: int) -> None:
        """Take the file's place on the disk."""
        os.posix_fallocate(descriptor, 0, size)


def _mapped_bytes(memory: IO[bytes]) -> int:
    """Bytes of files that are resident, by /proc/self/statm."""
    memory.seek(0)
    return int(memory.read().split()[2]) * mmap.PAGESIZE


def _watch(files: weakref.ref[TemporaryFiles]) -> None:
    """Unmap files whenever more of them is resident than may be, as long as there are pieces."""
    try:
        with open("/proc/self/statm", "rb", buffering=0) as memory:
            found = files()
            if found is not None:
                found.unmap()
            del found
            libraries = _mapped_bytes(
                memory
            )  # what stays: it must not count, or a process with many would unmap for ever
            while True:
                time.sleep(LOOK_SECONDS)
                found = files()
                if found is None:
                    return
                with found._lock:
                    if not found._pieces:
                        found._watching = False
                        return
                if _mapped_bytes(memory) - libraries > found.mapped:
                    found.unmap()
                del found
    except (
        OSError,
        ValueError,
    ) as error:  # no /proc, or a file that was closed: the kernel still takes pages when it must
        logger.warning("temporary files stay mapped until the kernel needs their memory: %s", error)
        found = files()
        if found is not None:
            found._watching = False
