"""A database: a chain of immutable versions of all tables, in memory or in a directory.

Readers take a snapshot and keep it; whatever is committed later, they read the same rows.  One thread commits at a time,
and a commit changes all its tables at once.
"""

from __future__ import annotations

import contextlib
import enum
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from gpudb.catalog import Constraints, Defaults, Definition, Schema, View, definition_key, schema_of
from gpudb.errors import ConflictError, InterfaceError
from gpudb.storage.table import Columns, RowGroup, RowGroupSink, TableVersion

if TYPE_CHECKING:
    from gpudb.storage.directory import Directory
    from gpudb.storage.file_system import FileSystem

MEMORY = ":memory:"


class Change(enum.IntEnum):
    """How a table differs from an older version of it; what keeps more of the older one is smaller."""

    ROWS_ADDED = 1  # behind those that were there
    ROWS_CHANGED = 2  # rows changed or removed, too
    DEFINED = 3  # made, altered, renamed or dropped; views, schemas and defaults know nothing else


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

    def changed(
        self,
        version: int,
        changes: Mapping[str, TableVersion | None],
        definitions: Mapping[str, Definition | None] | None = None,
    ) -> Snapshot:
        """This snapshot with new table versions, by name in any case, and definitions; None drops one."""
        named = self.definitions_changed(changes, definitions)
        tables = {**self._tables, **{name.casefold(): table for name, table in changes.items()}}
        kept = {**self.definitions, **named}
        return Snapshot(
            version,
            {key: table for key, table in tables.items() if table is not None},
            {key: one for key, one in kept.items() if one is not None},
        )

    def definitions_changed(
        self, changes: Mapping[str, TableVersion | None], definitions: Mapping[str, Definition | None] | None
    ) -> dict[str, Definition | None]:
        """The definitions that go or come with such a change: with a table go its defaults and constraints."""
        named = dict(definitions or {})
        for name, table in changes.items():
            if table is None:
                named.setdefault(definition_key(Defaults(name, ())), None)
                named.setdefault(definition_key(Constraints(name, ())), None)
        return {key: one for key, one in named.items() if one is not None or key in self.definitions}

    def without_schema(self, names: Iterable[str]) -> str | None:
        """One of these tables and views, by name in any case, whose schema is not there; None where all have theirs."""
        for name in names:
            schema = schema_of(name) if "." in name else None
            if schema is not None and definition_key(Schema(schema)) not in self.definitions:
                return name
        return None


class Staging:
    """Row groups written to the directory before they are committed; they are removed unless a commit names them.

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

    def close(self) -> None:
        """Remove what no commit has named; closing twice is fine."""
        directory = self._database._directory
        if directory is not None and self._written:
            with self._database.write_lock:
                directory.discard(self._written)
                self._written.clear()


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
        self._changed_at: dict[str, dict[Change, int]] = {}  # versions in which a table was last changed here
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
    def temporary_folder(self) -> str | None:
        """A folder for files that no other process needs, swept when the database is opened; None in memory."""
        return None if self._directory is None else self._directory.temporary_folder

    def unmap(self) -> None:
        """Let no page of the tables' files be resident: each comes back when it is touched."""
        if self._directory is not None:
            self._directory.unmap()

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
        change: Change = Change.DEFINED,
    ) -> Snapshot:
        """Make new table versions current, all at once; None drops a table.  Returns the snapshot, once it is durable.

        base_version  of the snapshot that the changes were made from; ConflictError if one of the tables has been
                      changed since.  An error leaves the database as it was.
        definitions   views and schemas that are new, by `catalog.definition_key`; None drops one
        change        how the tables differ from those of base_version
        """
        with self.write_lock:
            self._check_open()
            named = self._snapshot.definitions_changed(changes, definitions)
            for key in (*(name.casefold() for name in changes), *named):
                if self.changed_since(key, base_version) is not None:
                    raise ConflictError(
                        f"another statement changed the table in the meantime: {key}", hint="run the statement again"
                    )
            return self.install(changes, definitions, dict.fromkeys(changes, change))

    def install(
        self,
        changes: Mapping[str, TableVersion | None],
        definitions: Mapping[str, Definition | None] | None,
        kinds: Mapping[str, Change],
    ) -> Snapshot:
        """Commit what its caller, who holds `write_lock`, has found free of conflicts; `kinds` by the names in `changes`."""
        self._check_open()
        named = self._snapshot.definitions_changed(changes, definitions)
        new = self._snapshot.changed(self._snapshot.version + 1, changes, named)
        made = [name for name, table in changes.items() if table is not None]
        made += [one.name for one in named.values() if isinstance(one, View)]
        if any(key.endswith(".") for key, one in named.items() if one is None):  # a schema goes
            made = [*new, *(one.name for one in new.definitions.values() if isinstance(one, View))]
        lost = new.without_schema(made)
        if lost is not None:
            raise ConflictError(f"its schema was dropped in the meantime: {lost}", hint="run the statement again")
        if self._directory is not None:
            self._directory.write({name.casefold(): table for name, table in changes.items()}, new.definitions)
            new = Snapshot(self._directory.version, self._directory.tables, new.definitions)
        self._snapshot = new
        for name in changes:
            self._changed_at.setdefault(name.casefold(), {})[kinds[name]] = new.version
        for key in named:
            self._changed_at.setdefault(key, {})[Change.DEFINED] = new.version
        return new

    def changed_since(self, key: str, version: int) -> Change | None:
        """The greatest change of a table or definition, by its key, that was committed after a version."""
        return max((kind for kind, at in self._changed_at.get(key, {}).items() if at > version), default=None)

    def check_writable(self) -> None:
        """Raise ReadOnlyError where a commit would be refused."""
        with self.write_lock:
            self._check_open()
            if self._directory is not None:
                self._directory.check_writable()

    @contextlib.contextmanager
    def staging(self) -> Iterator[Staging]:
        """Around a statement that may write row groups before it commits: what is not committed is removed."""
        staging = Staging(self)
        try:
            yield staging
        finally:
            staging.close()

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
