"""File systems that fail, that count, and that lose power."""

from __future__ import annotations

import errno
import mmap
import os
import random
from collections.abc import Iterable

from gpudb.storage.file_system import FileSystem


class Failing(FileSystem):
    """Raises an error from the next calls of one method whose path or descriptor a test chose.

    method  name of the method to fail, or None
    """

    def __init__(self) -> None:
        self.method: str | None = None
        self.number = errno.EIO
        self.path = ""

    def fail(self, method: str, number: int, path: str = "") -> None:
        """From now on `method` raises errno `number` where the call's path contains `path`."""
        self.method, self.number, self.path = method, number, path

    def heal(self) -> None:
        self.method = None

    def _visit(self, method: str, path: str = "") -> None:
        if method == self.method and self.path in path:
            raise OSError(self.number, os.strerror(self.number), path)

    def write(self, path: str, pieces: Iterable[bytes | memoryview]) -> None:
        self._visit("write", path)
        super().write(path, pieces)

    def write_some(self, descriptor: int, view: memoryview) -> int:
        self._visit("write_some")
        return super().write_some(descriptor, view)

    def sync(self, descriptor: int) -> None:
        self._visit("sync")
        super().sync(descriptor)

    def sync_directory(self, path: str) -> None:
        self._visit("sync_directory", path)
        super().sync_directory(path)

    def link(self, source: str, target: str) -> None:
        self._visit("link", target)
        super().link(source, target)

    def map(self, path: str) -> mmap.mmap:
        self._visit("map", path)
        return super().map(path)

    def load(self, mapping: mmap.mmap, offset: int, length: int) -> None:
        self._visit("load")
        super().load(mapping, offset, length)

    def lock(self, path: str) -> int:
        self._visit("lock", path)
        return super().lock(path)


class Unsynced(FileSystem):
    """Without fsync: for tests of many commits that are not about power cuts."""

    def sync(self, descriptor: int) -> None:
        pass


class Killed(BaseException):
    """What a call raises in a process that is no more; nothing that handles errors catches it."""


class Dying(Unsynced):
    """The files of a process that is killed before its n-th change of the disk: from then on nothing reaches it.

    left  changes still to come before the kill; None: it lives on
    """

    def __init__(self) -> None:
        self.left: int | None = None

    def _change(self) -> None:
        if self.left == 0:
            raise Killed
        if self.left is not None:
            self.left -= 1

    def write(self, path: str, pieces: Iterable[bytes | memoryview]) -> None:
        self._change()
        super().write(path, pieces)

    def sync_directory(self, path: str) -> None:
        self._change()
        super().sync_directory(path)

    def link(self, source: str, target: str) -> None:
        self._change()
        super().link(source, target)

    def remove(self, path: str) -> None:
        self._change()
        super().remove(path)


class Recording(Unsynced):
    """Records what reaches the disk and in which order, so that a power cut can be played at any moment.

    skip  a kind of sync that is left out: "file", "data", "manifest", to show that the model notices
    """

    def __init__(self, root: str, skip: str = "") -> None:
        self.root = root
        self.skip = skip
        self.operations: list[tuple[str, str, object]] = []

    def _name(self, path: str) -> str:
        return os.path.relpath(path, self.root)

    def make_directory(self, path: str) -> None:
        super().make_directory(path)
        self.operations.append(("folder", self._name(path), None))

    def write(self, path: str, pieces: Iterable[bytes | memoryview]) -> None:
        content = b"".join(bytes(piece) for piece in pieces)
        super().write(path, [content])
        self.operations.append(("write", self._name(path), content))
        if self.skip != "file":
            self.operations.append(("sync file", self._name(path), None))

    def link(self, source: str, target: str) -> None:
        super().link(source, target)
        self.operations.append(("link", self._name(target), self._name(source)))

    def remove(self, path: str) -> None:
        super().remove(path)
        self.operations.append(("remove", self._name(path), None))

    def sync_directory(self, path: str) -> None:
        super().sync_directory(path)
        if self.skip != os.path.basename(path):
            self.operations.append(("sync folder", self._name(path), None))


class PowerCut:
    """The disk after the first `count` operations of a recording: what was not synced is there or not by chance."""

    def __init__(self, operations: list[tuple[str, str, object]], count: int, chance: random.Random) -> None:
        self.folders: set[str] = set()
        contents: dict[int, bytes] = {}
        synced: set[int] = set()
        durable: dict[str, int | None] = {}  # name -> file, for sure
        pending: list[tuple[str, int | None]] = []  # changes of names that no sync covers yet
        now: dict[str, int] = {}
        for number, (kind, name, detail) in enumerate(operations[:count]):
            if kind == "folder":
                self.folders.add(name)
            elif kind == "write":
                assert isinstance(detail, bytes)
                contents[number] = detail
                now[name] = number
                pending.append((name, number))
            elif kind == "sync file":
                synced.add(now[name])
            elif kind == "link":
                now[name] = now[str(detail)]
                pending.append((name, now[name]))
            elif kind == "remove":
                now.pop(name)
                pending.append((name, None))
            else:
                folder = "" if name == "." else name
                durable.update(change for change in pending if os.path.dirname(change[0]) == folder)
                pending = [change for change in pending if os.path.dirname(change[0]) != folder]
        durable.update(change for change in pending if chance.random() < 0.5)
        self.files: dict[str, bytes] = {}
        for name, found in durable.items():
            if found is None:
                continue
            content = contents[found]
            if found not in synced:  # torn: a part of it, or zeros
                length = chance.randrange(len(content) + 1)
                content = content[:length] + bytes(len(content) - length) * chance.randrange(2)
            self.files[name] = content

    def materialise(self, root: str) -> None:
        """Write the disk's state into a folder."""
        os.mkdir(root)
        for folder in sorted(self.folders):
            if folder != ".":
                os.makedirs(os.path.join(root, folder), exist_ok=True)
        for name, content in self.files.items():
            with open(os.path.join(root, name), "wb") as file:
                file.write(content)
