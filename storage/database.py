"""A database: a chain of immutable versions of all tables, in memory or in a directory.

Readers take a snapshot and keep it; whatever is committed later, they read the same rows.  One thread commits at a time,
and a commit changes all its tables at once.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from gpudb.catalog import Defaults, Definition, definition_key
from gpudb.errors import InterfaceError, OperationalError
from gpudb.storage.table import Columns, RowGroup, RowGroupSink, TableVersion

if TYPE_CHECKING:
    from gpudb.storage.directory import Directory
    from gpudb.storage.file_system import FileSystem

MEMORY = ":memory:"


class Snapshot(Mapping[str, TableVersion]):
    """All tables of one version, by name in any case; iterating gives the names as they were written.

    definitions  views and schemas of the version, by `catalog.definition_key`
    """

    def __init__(
        self, version: int, tables: Mapping[str, TableVersion], definitions: Mapping[str, Definition] | None = None
    ) -> None:
        self.version = version
        self.definitions = definitions or {}
        self._tables = tables  # by case-folded name

    def __getitem__(self, name: str) -> TableVersion:
        return self._tables[name.casefold()]

    def __iter__(self) -> Iterator[str]:
        return (table.name for table in self._tables.values())

    def __len__(self) -> int:
        return len(self._tables)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.casefold() in self._tables


class Staging:
    """Row groups written to the directory while a statement still runs; they are removed unless it commits.

    In memory `sink` is None: a builder then keeps its row groups itself.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._written: list[str] = []

    def sink(self, table: str, columns: Columns) -> RowGroupSink | None:
        """What a TableBuilder gives its finished row groups to, so that a table may be larger than memory."""
        directory = self._database._directory
        if directory is None:
            return None
        number = 0

        def store(group: RowGroup) -> RowGroup:
            nonlocal number
            with self._database.write_lock:
                stored = directory.store_row_group(group, columns, table, number, self._written)
            number += 1
            return stored

        return store

    def _close(self) -> None:
        directory = self._database._directory
        if directory is not None and self._written:
            with self._database.write_lock:
                directory.discard(self._written)


class Database:
    """The tables of one database.

    path       ":memory:", or a directory, which is made when it is not there
    read_only  take no lock and refuse commits; each snapshot then shows the newest version on disk

    write_lock  held by `commit`; a statement that reads, computes and commits may hold it throughout (it is reentrant)

    Raises LockedError when another process writes, FormatError for a newer format, CorruptDataError when a manifest is
    damaged; a damaged row group is reported when it is first read.
    """

    def __init__(
        self, path: str | os.PathLike[str] = MEMORY, read_only: bool = False, file_system: FileSystem | None = None
    ) -> None:
        self.path = os.fspath(path)
        self.write_lock = threading.RLock()
        self._closed = False
        self._directory: Directory | None = None
        self._changed_at: dict[str, int] = {}  # version in which a table was last changed here
        if self.path == MEMORY:
            if read_only:
                raise InterfaceError("a database in memory cannot be opened read-only: it would stay empty")
            self._snapshot = Snapshot(1, {})
        else:
            from gpudb.storage.directory import Directory
            from gpudb.storage.file_system import FileSystem

            self._directory = Directory(self.path, read_only, file_system or FileSystem())
            self._snapshot = self._stored()

    @property
    def read_only(self) -> bool:
        """Whether commits are refused: asked for, or because the file system allows none."""
        return self._directory is not None and self._directory.read_only

    @property
    def version(self) -> int:
        """The version of the newest snapshot."""
        return self.snapshot().version

    def snapshot(self) -> Snapshot:
        """The newest version of all tables; it never changes, and its files stay readable while it is held."""
        self._check_open()
        directory = self._directory
        if directory is not None and directory.read_only:
            with self.write_lock:
                if directory.refresh():
                    self._snapshot = self._stored()
        return self._snapshot

    def _stored(self) -> Snapshot:
        assert self._directory is not None, "a database in memory has its snapshot"
        return Snapshot(self._directory.version, self._directory.tables, self._directory.definitions)

    def commit(
        self,
        changes: Mapping[str, TableVersion | None],
        base_version: int,
        definitions: Mapping[str, Definition | None] | None = None,
    ) -> Snapshot:
        """Make new table versions current, all at once; None drops a table.  Returns the snapshot, once it is durable.

        base_version  of the snapshot that the changes were made from; OperationalError if one of the tables has been
                      changed since.  An error leaves the database as it was.
        definitions   views and schemas that are new, by `catalog.definition_key`; None drops one
        """
        with self.write_lock:
            self._check_open()
            keys = {name.casefold(): table for name, table in changes.items()}
            named = dict(definitions or {})
            for name, table in changes.items():
                if table is None:  # what columns default to goes with them
                    named.setdefault(definition_key(Defaults(name, ())), None)
            named = {key: one for key, one in named.items() if one is not None or key in self._snapshot.definitions}
            for key in (*keys, *named):
                if self._changed_at.get(key, 0) > base_version:
                    raise OperationalError(
                        f"another statement changed the table in the meantime: {key}", hint="run the statement again"
                    )
            kept = {key: one for key, one in self._snapshot.definitions.items() if key not in named}
            kept.update({key: one for key, one in named.items() if one is not None})
            version = self._snapshot.version + 1
            if self._directory is None:
                tables = {key: table for key, table in self._snapshot._tables.items() if key not in keys}
                tables.update({key: table for key, table in keys.items() if table is not None})
            else:
                self._directory.write(keys, kept)
                version, tables = self._directory.version, self._directory.tables
            self._snapshot = Snapshot(version, tables, kept)
            self._changed_at.update(dict.fromkeys((*keys, *named), version))
            return self._snapshot

    @contextlib.contextmanager
    def staging(self) -> Iterator[Staging]:
        """Around a statement that may write row groups before it commits: what is not committed is removed."""
        staging = Staging(self)
        try:
            yield staging
        finally:
            staging._close()

    def close(self) -> None:
        """Give the lock back.  Snapshots that are held stay readable; closing twice is fine."""
        with self.write_lock:
            self._closed = True
            if self._directory is not None:
                self._directory.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("the database is closed")
