"""Every file call of a database directory, in one place, so that tests can make each of them fail.

A subclass that raises OSError from one of these methods is a broken disk; one that ends the process is a power cut.
Nothing else in storage touches the files of a database.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
from collections.abc import Iterable

DIRECTORY_MODE, FILE_MODE = 0o700, 0o600
POPULATE_READ = 22  # MADV_POPULATE_READ: read pages in now; an error is an errno where a later touch would be a SIGBUS
WRITE_BYTES = 8 << 20  # bytes a write call


class FileSystem:
    """The calls of the real file system; each raises OSError."""

    def make_directory(self, path: str) -> None:
        """Create a directory (mode 0700) whose parent exists; fine if it is there."""
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, DIRECTORY_MODE)

    def list(self, path: str) -> list[str]:
        """Names in a directory, in no order."""
        return os.listdir(path)

    def read(self, path: str) -> bytes:
        """The whole of a small file."""
        with open(path, "rb", buffering=0) as file:
            return file.read()

    def write(self, path: str, pieces: Iterable[bytes | memoryview]) -> None:
        """Write a new file (mode 0600) and force it to disk; FileExistsError when the name is taken."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        try:
            for piece in pieces:
                view = memoryview(piece).cast("B")
                while len(view):
                    view = view[self.write_some(descriptor, view[:WRITE_BYTES]) :]
            self.sync(descriptor)
        finally:
            os.close(descriptor)

    def write_some(self, descriptor: int, view: memoryview) -> int:
        """Bytes written, at least one."""
        return os.write(descriptor, view)

    def sync(self, descriptor: int) -> None:
        """fsync of a file or directory."""
        os.fsync(descriptor)

    def sync_directory(self, path: str) -> None:
        """Make the names in a directory durable."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.sync(descriptor)
        finally:
            os.close(descriptor)

    def link(self, source: str, target: str) -> None:
        """Give a file its final name; FileExistsError instead of replacing another one."""
        os.link(source, target)

    def remove(self, path: str) -> None:
        """Take a name away."""
        os.unlink(path)

    def map(self, path: str) -> mmap.mmap:
        """The file mapped for reading: it stays readable when its name is taken away."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if os.fstat(descriptor).st_size == 0:
                raise OSError(errno.EIO, "the file is empty")
            return mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)
        finally:
            os.close(descriptor)

    def load(self, mapping: mmap.mmap, offset: int, length: int) -> None:
        """Read a stretch of a mapping from disk, so that an error is an OSError and not the end of the process."""
        start = offset // mmap.PAGESIZE * mmap.PAGESIZE
        try:
            mapping.madvise(POPULATE_READ, start, offset + length - start)
        except OSError as error:
            if error.errno != errno.EINVAL:  # kernels before 5.14 do not know it: the pages come when touched
                raise

    def lock(self, path: str) -> int:
        """A descriptor that holds the exclusive lock on `path` until it is closed or the process ends.

        BlockingIOError when another process, or another descriptor of this one, holds it.
        """
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def unlock(self, descriptor: int) -> None:
        """Give a lock back."""
        os.close(descriptor)
