"""A transaction: changes of several statements that nobody else sees before they are committed, all at once.

Its statements read one snapshot with its own changes on top.  Of two transactions that change the same rows' table the
first to commit wins, with one exception: rows that one of them only added go behind what the other one leaves, so that
transactions which load the same table do not fail each other.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping

from gpudb.catalog import Definition
from gpudb.errors import ConflictError, TransactionError
from gpudb.storage.changes import with_rows_behind
from gpudb.storage.database import Change, Database, Snapshot, Staging
from gpudb.storage.table import TableVersion

RETRY = "ROLLBACK, and run the transaction again"


class Transaction:
    """What one session does from BEGIN to COMMIT or ROLLBACK; it offers statements what Database does.

    read_only   it refuses changes
    aborted     a statement failed: only its end is left
    write_lock  held by a statement that reads, computes and writes; nobody else waits for it

    No lock of the database is held between two statements.  A directory's lock is the process's from open to close.
    """

    def __init__(self, database: Database, read_only: bool = False) -> None:
        self.read_only = read_only
        self.aborted = False
        self.write_lock = threading.RLock()
        self._database = database
        self._staging = Staging(database)
        self._base: Snapshot | None = None  # what it started from
        self._current: Snapshot | None = None  # that, with its own changes
        self._changes: dict[str, Change] = {}  # of tables, by key
        self._definitions: set[str] = set()  # keys of definitions made, replaced or dropped

    def snapshot(self) -> Snapshot:
        """All tables as its statements see them; the first call decides which version that is, as in DuckDB."""
        if self.aborted:
            raise TransactionError(
                "the current transaction is aborted, by an error in it", hint="ROLLBACK ends it; nothing of it is kept"
            )
        with self.write_lock:  # completion in a shell may ask from another thread
            if self._current is None:
                self._base = self._current = self._database.snapshot()
            return self._current

    def defines(self, key: str) -> bool:
        """Whether it has made, replaced or dropped the definition of a key."""
        return key in self._definitions

    @contextlib.contextmanager
    def staging(self) -> Iterator[Staging]:
        """Around a statement that may write row groups; they stay until the transaction ends."""
        yield self._staging

    def write(
        self,
        changes: Mapping[str, TableVersion | None],
        definitions: Mapping[str, Definition | None] | None,
        change: Change,
    ) -> None:
        """Take over what a statement did; ConflictError where it is known by now that it cannot be committed."""
        current = self.snapshot()
        assert self._base is not None, "the snapshot was taken above"
        self._database.check_writable()
        named = current.definitions_changed(changes, definitions)
        kinds = {name.casefold(): max(change, self._changes.get(name.casefold(), change)) for name in changes}
        self._check(kinds, named)
        self._current = current.changed(current.version, changes, named)
        self._changes.update(kinds)
        self._definitions.update(named)

    def commit(self, check: Callable[[Snapshot, TableVersion, TableVersion], None] | None = None) -> None:
        """Make everything current and durable, or nothing; the transaction is over either way.

        check  is given each table that gets rows of two transactions: definitions as they will be, the one's version, and both
               together, the other's rows behind; what it raises ends the transaction
        """
        database = self._database
        try:
            if not (self._changes or self._definitions) or self.aborted:
                return
            with database.write_lock:
                base, mine = self._base, self._current
                assert base is not None and mine is not None, "who changed something has read something"
                named = {key: mine.definitions.get(key) for key in self._definitions}
                self._check(self._changes, named)
                newest = database.snapshot()
                changes: dict[str, TableVersion | None] = {}
                for key, change in self._changes.items():
                    version = mine.get(key)
                    if version is None and key not in base:
                        continue  # made and dropped again
                    if version is not None and change < Change.DEFINED:
                        version = self._merged(key, change, base[key], version, newest, check)
                    changes[version.name if version is not None else key] = version
                kinds = {name: self._changes[name.casefold()] for name in changes}
                if changes or newest.definitions_changed(changes, named):
                    database.install(changes, named, kinds)
                self._staging.close()  # before others commit and remove files that are its own by now
        finally:
            self.rollback()

    def rollback(self) -> None:
        """Forget everything, and remove what was stored for it; does nothing the second time."""
        self.aborted = True
        self._base = self._current = None
        self._changes, self._definitions = {}, set()
        self._staging.close()

    def _check(self, kinds: Mapping[str, Change], definitions: Mapping[str, Definition | None]) -> None:
        """ConflictError where others committed since the snapshot what these changes cannot go together with."""
        assert self._base is not None, "there is something to compare with"
        version = self._base.version
        for key, mine in kinds.items():
            theirs = self._database.changed_since(key, version)
            if theirs is not None and not _go_together(mine, theirs):
                raise ConflictError(f"another transaction changed the table and committed first: {key}", hint=RETRY)
        for key in definitions:
            theirs = self._database.changed_since(key, version)
            table = key.partition("\0")[0]  # values that columns default to are gone with their table
            if theirs is None and table != key and table not in kinds:
                theirs = self._database.changed_since(table, version)
                theirs = theirs if theirs is Change.DEFINED else None
            if theirs is not None:
                raise ConflictError(
                    f"another transaction changed the definition and committed first: {table.rstrip('.')}", hint=RETRY
                )

    def _merged(
        self,
        key: str,
        change: Change,
        base: TableVersion,
        mine: TableVersion,
        newest: Snapshot,
        check: Callable[[Snapshot, TableVersion, TableVersion], None] | None,
    ) -> TableVersion:
        """My version of a table together with what others committed since the snapshot."""
        if self._database.changed_since(key, self._base.version if self._base is not None else 0) is None:
            return mine
        theirs = newest[key]
        first, second = (theirs, mine) if change is Change.ROWS_ADDED else (mine, theirs)
        merged = with_rows_behind(first, second, base.num_rows, self._staging.sink(first.name, first.columns))
        if check is not None:
            check(newest, first, merged)
        return merged


def _go_together(mine: Change, theirs: Change) -> bool:
    """Whether one only added rows, and the other left the table's definition alone."""
    return min(mine, theirs) is Change.ROWS_ADDED and max(mine, theirs) is not Change.DEFINED
