"""A database directory: its files, its lock, the commit protocol, and recovery.

    FORMAT                   magic, format, the oldest reader that may open it, required features
    LOCK                     flock of the one writing process, and its process id
    data/<32 hex>.arrow      immutable row groups and pieces of dictionaries
    manifest/<20 digits>.json  one chain of versions of all tables
    tmp/                     files that have no final name yet

Commit: write a temporary file, fsync it, `link` it to its final name; fsync data/; the manifest in the same way; fsync
manifest/; only then is a statement acknowledged.  `link` never replaces a file.  A reader maps every file of a version
when it opens that version, so it can go on reading whatever the writer removes; it takes no lock.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import re
import uuid
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from gpudb.catalog import Definition
from gpudb.errors import CorruptDataError, FormatError, LockedError, ReadOnlyError, StorageError
from gpudb.storage import manifest as manifests
from gpudb.storage.dictionary import Dictionary
from gpudb.storage.file_format import (
    MappedFile,
    PieceEntry,
    RowGroupEntry,
    dictionary_piece,
    read_dictionary,
    read_row_group,
    row_group_file,
)
from gpudb.storage.file_system import FileSystem
from gpudb.storage.manifest import DictionaryEntry, Manifest, TableEntry
from gpudb.storage.table import TAIL_ROWS, Columns, RowGroup, TableVersion

FORMAT = 1  # this reader's and writer's format; a database says the oldest reader's that may open it
FEATURES: frozenset[str] = frozenset()  # features that a database may require of us
MAGIC = "gpudb database"
DATA_NAME = re.compile(r"[0-9a-f]{32}\.arrow")
FOLDERS = ("data", "manifest", "tmp")
ATTEMPTS = 20  # times a reader starts again because the writer removed the version it was opening

log = logging.getLogger("gpudb.storage")


class Directory:
    """An open database directory.

    version    of the newest manifest read or written
    tables     {case-folded name: TableVersion} of that version
    read_only  also true when the file system allows no writing

    One process writes.  Not safe for several threads: Database calls it under its lock.
    """

    def __init__(self, path: str, read_only: bool, file_system: FileSystem) -> None:
        self.path = os.path.abspath(path)
        self.read_only = read_only
        self._files_of = file_system
        self._lock: weakref.finalize | None = None  # calling it gives the lock back; so does forgetting the object
        self._owner = object()  # marks the row groups that lie here
        self._failure: str | None = None  # why no more commits are taken
        self._unsynced = False  # names in data/ that no fsync covers yet
        self._files: dict[str, MappedFile] = {}  # of the current version, and staged ones
        self.tables: dict[str, TableVersion] = {}
        self._manifest: Manifest
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    @property
    def version(self) -> int:
        return self._manifest.version

    @property
    def temporary_folder(self) -> str:
        """Where files lie that have no final name yet; it is swept when the directory is opened for writing."""
        return self._tmp_folder

    def unmap(self) -> None:
        """Let no page of the files of the current version be resident: each comes back when it is touched."""
        for file in list(self._files.values()):
            file.unmap()

    @property
    def definitions(self) -> Mapping[str, Definition]:
        """Views and schemas of that version, by key."""
        return self._manifest.definitions

    def close(self) -> None:
        """Give the lock back; versions that are held stay readable."""
        if self._lock is not None:
            self._lock()
            self._lock = None

    # Opening

    def _open(self) -> None:
        with self._reported("cannot open the database"):
            names = self._names()
            if names is None and self.read_only:
                raise StorageError(f"there is no database to read at {self.path}")
            if not self.read_only:
                self._take_lock(names)
            names = self._names() or []
            if "FORMAT" not in names:
                if self.read_only:
                    raise StorageError(f"there is no gpudb database in the folder {self.path}")
                self._create()
            self._check_format()
            self._read_newest()
            if not self.read_only:
                self._files_of.make_directory(self._tmp_folder)  # a copy of a database may lack the empty folder
                self._sweep()

    def _names(self) -> list[str] | None:
        """Names in the database's folder; None when it is not there."""
        try:
            return self._files_of.list(self.path)
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            raise StorageError(
                f"a gpudb database is a folder, and this is a file: {self.path}",
                hint="read a data file by its name: SELECT * FROM 'file.parquet'",
            ) from None

    def _take_lock(self, names: list[str] | None) -> None:
        """Lock the folder for writing (and make it first), or go read-only where nothing can be written."""
        if names is None:
            self._files_of.make_directory(self.path)
            self._files_of.sync_directory(os.path.dirname(self.path))
            names = []
        elif names and "FORMAT" not in names and not set(names) <= {*FOLDERS, "LOCK"}:
            raise StorageError(
                f"the folder is not a gpudb database, and not empty: {self.path}", hint="name a new or an empty folder"
            )
        lock = os.path.join(self.path, "LOCK")
        try:
            self._lock = weakref.finalize(self, self._files_of.unlock, self._files_of.lock(lock))
        except BlockingIOError:
            owner = self._files_of.read(lock).decode("ascii", "replace").strip() or "unknown"
            here = " (this process)" if owner == str(os.getpid()) else ""
            raise LockedError(
                f"the database is locked by pid {owner}{here}: {self.path}",
                hint="one process writes at a time; open it with read_only=True to read beside it"
                if not here
                else "share one connection: cursors and threads of a process may use the same one",
            ) from None
        except OSError as error:
            if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM) or "FORMAT" not in names:
                raise
            log.warning("the database is opened read-only, because it cannot be written: %s", error)
            self.read_only = True

    def _create(self) -> None:
        """An empty database; FORMAT comes last, so that a folder without it is one to finish."""
        for name in FOLDERS:
            self._files_of.make_directory(os.path.join(self.path, name))
        versions = manifests.versions_in(self._files_of.list(self._manifest_folder))
        if versions not in ([], [1]):
            raise CorruptDataError(f"the FORMAT file of the database is missing: {self.path}")
        if not versions:
            content, _ = manifests.encode(None, {}, {})
            self._publish(self._manifest_path(1), [content])
            self._files_of.sync_directory(self._manifest_folder)
        words = {"magic": MAGIC, "format": FORMAT, "min_reader": FORMAT, "features": []}
        self._publish(os.path.join(self.path, "FORMAT"), [json.dumps(words).encode() + b"\n"])
        self._files_of.sync_directory(self.path)

    def _check_format(self) -> None:
        data = self._files_of.read(os.path.join(self.path, "FORMAT"))
        try:
            words = json.loads(data)
            magic, min_reader, features = words["magic"], words["min_reader"], words["features"]
            readable = magic == MAGIC and isinstance(min_reader, int) and isinstance(features, list)
        except (ValueError, KeyError, TypeError):
            readable = False
        if not readable:
            raise CorruptDataError(f"the FORMAT file of the database is damaged: {self.path}")
        if min_reader > FORMAT:
            raise FormatError(
                f"the database was written by a newer gpudb: it needs format {min_reader}, this one reads up to {FORMAT}"
            )
        unknown = sorted(str(feature) for feature in features if feature not in FEATURES)
        if unknown:
            raise FormatError(f"the database needs features that this gpudb does not have: {', '.join(unknown)}")

    def refresh(self) -> bool:
        """Look for a version written by another process; True when there is a newer one, which is then read."""
        with self._reported("cannot read the database"):
            versions = manifests.versions_in(self._files_of.list(self._manifest_folder))
            if versions and versions[-1] == self.version:
                return False
            self._read_newest()
        return True

    def _read_newest(self) -> None:
        """Read the newest version, and map its files before the writer may remove them."""
        for _ in range(ATTEMPTS):
            versions = manifests.versions_in(self._files_of.list(self._manifest_folder))
            base = getattr(self, "_manifest", None)
            if not versions or (base is not None and versions[-1] < base.version):
                raise CorruptDataError(
                    f"the manifests of the database are missing: {self._manifest_folder}",
                    hint="restore the database's folder from a copy",
                )
            if base is not None and versions[-1] - base.version > manifests.FULL_EVERY:
                base = None
            newest = versions[-1]
            try:
                manifest = manifests.read_chain(newest, self._read_manifest, base, self._owner)
            except FileNotFoundError as error:
                if self._is_newest(newest):
                    raise CorruptDataError(
                        f"a manifest is missing: {os.path.basename(error.filename or '')} in {self._manifest_folder}",
                        hint="restore the database's folder from a copy",
                    ) from error
                continue
            files = self._map(manifest.files())
            if any(isinstance(file.fault, FileNotFoundError) for file in files.values()) and not self._is_newest(
                newest
            ):
                continue
            self._adopt(manifest, files)
            return
        raise StorageError("the database changed too fast to be opened; try again")

    def _is_newest(self, version: int) -> bool:
        return manifests.versions_in(self._files_of.list(self._manifest_folder))[-1:] == [version]

    def _read_manifest(self, version: int) -> bytes:
        return self._files_of.read(self._manifest_path(version))

    def _map(self, wanted: Mapping[str, int]) -> dict[str, MappedFile]:
        """The files of a version; those mapped already are taken over."""
        return {
            name: self._files.get(name) or MappedFile(self._files_of, os.path.join(self._data_folder, name), nbytes)
            for name, nbytes in wanted.items()
        }

    def _adopt(self, manifest: Manifest, files: dict[str, MappedFile]) -> None:
        """Make the version current: tables that did not change stay the same objects."""
        before = getattr(self, "_manifest", None)
        old: Mapping[str, TableEntry] = {} if before is None else before.tables
        self._files = files
        self.tables = {
            key: self.tables[key] if entry is old.get(key) else self._table(entry, old.get(key), self.tables.get(key))
            for key, entry in manifest.tables.items()
        }
        self._manifest = manifest

    def _table(self, entry: TableEntry, old: TableEntry | None, before: TableVersion | None) -> TableVersion:
        """A table version over mapped files; row groups and dictionaries known from `before` are taken over."""
        known: dict[str | None, RowGroup] = {}
        for kept in before.row_groups if before is not None else ():
            if isinstance(kept.file, RowGroupEntry) and kept.file.file is not None:
                known[kept.file.file] = kept
        groups = []
        for number, group in enumerate(entry.row_groups):
            file = None if group.file is None else self._files[group.file]
            groups.append(known.get(group.file) or read_row_group(group, file, entry.name, entry.columns, number))
        dictionaries: list[Dictionary | None] = []
        for index, dictionary in enumerate(entry.dictionaries):
            if dictionary is None:
                dictionaries.append(None)
                continue
            older = None
            if old is not None and before is not None and index < len(old.dictionaries):
                previous = old.dictionaries[index]
                if previous is not None and previous.identity == dictionary.identity:
                    older = before.dictionaries[index]
            if older is not None and len(older) == dictionary.count:
                dictionaries.append(older)
                continue
            pieces = [(piece, self._files[piece.file]) for piece in dictionary.pieces]
            what = f"table {entry.name}, column {entry.columns[index][0]}"
            dictionaries.append(read_dictionary(pieces, dictionary.sorted_count, older, what))
        return TableVersion.assemble(entry.name, entry.columns, groups, dictionaries)

    def _sweep(self) -> None:
        """Remove what no kept version names: leftovers of killed writers.  Only the holder of the lock does so."""
        keep = self._manifest.files()
        rubbish = [os.path.join(self._tmp_folder, name) for name in self._files_of.list(self._tmp_folder)]
        for name in self._files_of.list(self._data_folder):
            if DATA_NAME.fullmatch(name) and name not in keep:
                rubbish.append(os.path.join(self._data_folder, name))
        self._remove(rubbish)
        self._remove_old_manifests()

    def _remove_old_manifests(self) -> None:
        """Keep the chain from the full manifest before the last one on: readers may be in the middle of it."""
        oldest = self._manifest.last_full - manifests.FULL_EVERY
        versions = manifests.versions_in(self._files_of.list(self._manifest_folder))
        self._remove(self._manifest_path(version) for version in versions if version < oldest)

    def _remove(self, paths: Iterable[str]) -> None:
        """Take names away; one that stays is only space, and is swept when the database is opened next."""
        for path in paths:
            try:
                self._files_of.remove(path)
            except OSError as error:
                log.warning("a file that is no longer needed cannot be removed: %s", error)

    # Writing

    def write(self, changes: Mapping[str, TableVersion | None], definitions: Mapping[str, Definition]) -> None:
        """Commit new table versions (None drops a table) and all definitions as the next version; make it current.

        Returns once it is durable.  On an error before the manifest has its name nothing has changed; on one after it
        the database takes no more commits until it is opened again, and what is on disk then holds.
        """
        self.check_writable()
        old = self._manifest
        tables = dict(old.tables)
        versions = dict(self.tables)
        written: list[str] = []
        try:
            with self._reported("the statement could not be stored"):
                for key, version in changes.items():
                    if version is None:
                        tables.pop(key, None)
                        versions.pop(key, None)
                    else:
                        tables[key], versions[key] = self._store_table(version, key, written)
                if self._unsynced:
                    self._sync(self._data_folder)
                    self._unsynced = False
        except BaseException:
            self._discard(written)
            raise
        content, manifest = manifests.encode(old, tables, definitions)
        self._commit_manifest(manifest.version, content, written)
        self._manifest, self.tables = manifest, versions
        gone = old.files().keys() - manifest.files().keys() if changes else ()
        self._discard(gone)
        if manifest.last_full == manifest.version:
            self._remove_old_manifests()

    def _commit_manifest(self, version: int, content: bytes, written: list[str]) -> None:
        """The commit itself: the manifest gets its name, and the name is made durable."""
        with self._reported("the statement could not be stored"):
            try:
                self._publish(self._manifest_path(version), [content])
            except FileExistsError:
                self._failure = "another process wrote to it in spite of the lock"
                raise
            except OSError:
                if self._manifest_exists(version):  # the name is there: what is on disk decides, not we
                    self._failure = "the outcome of a commit is unknown"
                else:
                    self._discard(written)
                raise
            self._sync(self._manifest_folder)

    def _manifest_exists(self, version: int) -> bool:
        try:
            return version in manifests.versions_in(self._files_of.list(self._manifest_folder))
        except OSError:
            return True

    def _store_table(self, version: TableVersion, key: str, written: list[str]) -> tuple[TableEntry, TableVersion]:
        """(the entry, the version over its files) once all its row groups and dictionary pieces have their names."""
        groups = []
        for number, group in enumerate(version.row_groups):
            if self._has(group):
                groups.append(group)
                continue
            stored = self.store_row_group(group, version.columns, version.name, number, written)
            in_memory = group.rows < TAIL_ROWS  # the next append takes these rows in
            groups.append(RowGroup(group.rows, group.chunks, group.first_row, stored.file) if in_memory else stored)
        old = self._manifest.tables.get(key)
        dictionaries = [
            self._store_dictionary(dictionary, index, old, key, written)
            for index, dictionary in enumerate(version.dictionaries)
        ]
        entries = tuple(group.file for group in groups if isinstance(group.file, RowGroupEntry))
        entry = TableEntry(version.name, version.columns, entries, tuple(dictionaries))
        return entry, TableVersion.assemble(version.name, version.columns, groups, version.dictionaries)

    def _has(self, group: RowGroup) -> bool:
        """Whether the row group lies in this directory, in a file that is still there."""
        entry = group.file
        return (
            isinstance(entry, RowGroupEntry)
            and entry.owner is self._owner
            and (entry.file is None or entry.file in self._files)
        )

    def store_row_group(
        self, group: RowGroup, columns: Columns, table: str, number: int, written: list[str]
    ) -> RowGroup:
        """Write a row group into its file, and return it as it is read from there; `written` gets the file's name."""
        self.check_writable()
        content, entry = row_group_file(group, columns)
        name = None
        if content is not None:
            name = self._write_data(content, written)
        entry = RowGroupEntry(name, entry.nbytes, entry.rows, entry.chunks, self._owner)
        return read_row_group(entry, None if name is None else self._files[name], table, columns, number)

    def _store_dictionary(
        self, dictionary: Dictionary | None, index: int, table: TableEntry | None, key: str, written: list[str]
    ) -> DictionaryEntry | None:
        """The entry of a dictionary: pieces written already stay, new texts make one more.

        Small pieces at the end go into the new one, so that n appends make about log n pieces and write each text about
        log n times.
        """
        if dictionary is None:
            return None
        identity, start = uuid.uuid4().hex, 0
        pieces: tuple[PieceEntry, ...] = ()
        if table is not None and key in self.tables and index < len(table.dictionaries):
            before, stored = table.dictionaries[index], self.tables[key].dictionaries[index]
            if before is not None and stored is not None and dictionary.extends(stored):
                identity, pieces, start = before.identity, before.pieces, before.count
        if len(dictionary) > start:
            while pieces and pieces[-1].count <= len(dictionary) - start:
                start -= pieces[-1].count
                pieces = pieces[:-1]
            content, places = dictionary_piece(dictionary, start)
            name = self._write_data(content, written)
            pieces = (*pieces, PieceEntry(name, content.size, len(dictionary) - start, *places))
        return DictionaryEntry(identity, dictionary.sorted_count, pieces)

    def _write_data(self, content: pa.Buffer, written: list[str]) -> str:
        """Write a data file under its final name; it is durable once data/ is synced."""
        name = f"{uuid.uuid4().hex}.arrow"
        path = os.path.join(self._data_folder, name)
        view = memoryview(content)
        with self._reported("the rows could not be stored"):
            self._publish(path, [view])
        self._unsynced = True
        written.append(name)
        self._files[name] = MappedFile(self._files_of, path, len(view))
        return name

    def discard(self, names: Iterable[str]) -> None:
        """Remove staged files that the current version does not name.

        After a commit of unknown outcome all stay, since the version on disk may name them; opening it sweeps the others.
        """
        if self._failure is not None:
            return
        keep = self._manifest.files()
        self._discard(name for name in names if name not in keep)

    def _discard(self, names: Iterable[str]) -> None:
        paths = []
        for name in names:
            self._files.pop(name, None)
            paths.append(os.path.join(self._data_folder, name))
        self._remove(paths)

    def _publish(self, path: str, pieces: Sequence[bytes | memoryview]) -> None:
        """Write a file under a temporary name, force it to disk, then give it its final name."""
        temporary = os.path.join(self._tmp_folder, uuid.uuid4().hex)
        try:
            self._files_of.write(temporary, pieces)
            self._files_of.link(temporary, path)
        finally:
            with contextlib.suppress(OSError):
                self._files_of.remove(temporary)

    def _sync(self, folder: str) -> None:
        """fsync a folder.  Linux reports a failed write-back once and then forgets it, so after one error we stop."""
        try:
            self._files_of.sync_directory(folder)
        except OSError as error:
            self._failure = f"fsync failed: {error.strerror or error}"
            raise

    def check_writable(self) -> None:
        if self.read_only:
            raise ReadOnlyError(f"the database is open for reading only: {self.path}")
        if self._failure is not None:
            raise ReadOnlyError(
                f"the database takes no more changes until it is opened again: {self._failure}",
                hint="close it and open it again: what is on disk then holds",
            )

    @contextlib.contextmanager
    def _reported(self, what: str) -> Iterator[None]:
        """Errors of the file system as StorageErrors."""
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            if error.errno == errno.EROFS:
                raise ReadOnlyError(f"{what}: the file system is read-only: {self.path}") from error
            raise StorageError(f"{what}: {reason}: {error.filename or self.path}") from error

    @property
    def _data_folder(self) -> str:
        return os.path.join(self.path, "data")

    @property
    def _manifest_folder(self) -> str:
        return os.path.join(self.path, "manifest")

    @property
    def _tmp_folder(self) -> str:
        return os.path.join(self.path, "tmp")

    def _manifest_path(self, version: int) -> str:
        return os.path.join(self._manifest_folder, manifests.file_name(version))
