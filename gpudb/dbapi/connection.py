"""Connections: one session each, on a database that the connections of a process share."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from gpudb import errors
from gpudb.catalog import qualified
from gpudb.dbapi.cursor import Cursor
from gpudb.dbapi.insert_all import Parameters
from gpudb.session import Database, Session

if TYPE_CHECKING:
    from gpudb.client import RemoteSession


class OpenDatabases:
    """The databases this process has open, by real path, with the number of their connections.

    A process may open a directory for writing once only (it holds a lock), so its connections share one Database; this
    is why the registry is global to the process.  Each `:memory:` is a database of its own; `:memory:NAME` is one that the
    connections of that name share, and goes with the last of them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, tuple[Database, bool, int]] = {}

    def acquire(self, path: str, read_only: bool) -> Database:
        """The database at `path`, opened if this is its first connection."""
        if path == ":memory:":
            return Database(path, read_only)
        in_memory = path.startswith(":memory:")
        key = path if in_memory else os.path.realpath(path)
        with self._lock:
            if key not in self._open:
                self._open[key] = (Database(":memory:" if in_memory else path, read_only), read_only, 0)
            database, opened_read_only, connections = self._open[key]
            if opened_read_only != read_only:
                raise errors.OperationalError(
                    "this process has the database open with another value of read_only: " + path,
                    hint=f"connect with read_only={opened_read_only}, or close the other connections first",
                )
            self._open[key] = (database, opened_read_only, connections + 1)
            return database

    def release(self, database: Database) -> None:
        """One connection less; the last one closes the database."""
        with self._lock:
            for key, (other, read_only, connections) in self._open.items():
                if other is database:
                    if connections > 1:
                        self._open[key] = (database, read_only, connections - 1)
                        return
                    del self._open[key]
                    break
            database.close()


_open_databases = OpenDatabases()


def connect(
    path: str | os.PathLike[str] = ":memory:",
    read_only: bool = False,
    config: Mapping[str, Any] | None = None,
    *,
    user: str | None = None,
    password: str | None = None,
    token: str | None = None,
    tls_root_certs: str | None = None,
) -> Connection:
    """Open a database directory, made if it is not there, a database in memory (a new one, or that of `:memory:NAME`), or a
    session at a server: `grpc://host:port`, `grpc+tls://host:port`.

    config  settings applied before the first statement, such as {"device": "cpu", "threads": 2}
    user, password, token, tls_root_certs  what a server asks for, and certificates that vouch for it; a server that this
            user started on this machine needs none

    Raises LockedError when another process writes the directory, ReadOnlyError, FormatError, CorruptDataError; of a server
    OperationalError where it cannot be reached, AuthenticationError.
    """
    credentials = {"user": user, "password": password, "token": token, "tls_root_certs": tls_root_certs}
    return Connection(
        path, read_only, config, {name: value for name, value in credentials.items() if value is not None}
    )


def _release(session: Session, database: Database) -> None:
    """What closing a connection does, once: explicitly, or when the connection is collected."""
    try:
        session.close()
    finally:
        _open_databases.release(database)


class Connection:
    """One session on a database, here or at a server.  May be shared by threads, one cursor each.

    session         the session below: settings, catalog, progress
    autocommit      always True: a statement outside a transaction is committed as it ends
    in_transaction  whether begin() or BEGIN opened a transaction that is not over; its cursors are all in it
    """

    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(
        self,
        path: str | os.PathLike[str] = ":memory:",
        read_only: bool = False,
        config: Mapping[str, Any] | None = None,
        credentials: Mapping[str, str] | None = None,
    ) -> None:
        path = os.fspath(path)
        self._lock = threading.RLock()  # held during each call into the session, never between two of them
        self._session: Session | RemoteSession
        if "://" in path:
            from gpudb.client import RemoteSession  # pyarrow.flight takes 0.1 s to load

            if read_only:
                raise errors.InterfaceError(
                    "read_only is not for the address of a server", hint="the server's user may have the role reader"
                )
            self._session = remote = RemoteSession(path, **(credentials or {}))
            self._finalizer: weakref.finalize[Any, Any] = weakref.finalize(self, remote.close)
        else:
            if credentials:
                raise errors.InterfaceError(f"only servers ask for this: {', '.join(credentials)}")
            database = _open_databases.acquire(path, read_only)
            self._session = session = Session(database)
            self._finalizer = weakref.finalize(self, _release, session, database)
        try:
            for name, value in (config or {}).items():
                self._session.execute(_set_statement(name, value))
        except BaseException:
            self._finalizer()
            raise

    @property
    def session(self) -> Session | RemoteSession:
        self._check_open()
        return self._session

    @property
    def autocommit(self) -> bool:
        return True

    @property
    def in_transaction(self) -> bool:
        return self.session.transaction is not None

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive

    def cursor(self) -> Cursor:
        """A new cursor; cursors of one connection see each other's changes at once, and share its transaction."""
        self._check_open()
        return Cursor(self)

    def execute(self, sql: str, parameters: Parameters | None = None) -> Cursor:
        """A new cursor that has run `sql`."""
        return self.cursor().execute(sql, parameters)

    def executemany(self, sql: str, seq_of_parameters: Iterable[Parameters]) -> Cursor:
        """A new cursor that has run `sql` once for each set of parameters."""
        return self.cursor().executemany(sql, seq_of_parameters)

    def register(self, name: str, data: Any) -> None:
        """Let SQL read a pyarrow Table or RecordBatchReader, a pandas or a Polars frame under `name`."""
        with self._lock:
            self.session.register(name, data)

    def unregister(self, name: str) -> None:
        """Forget a registered name."""
        with self._lock:
            self.session.unregister(name)

    def create_function(
        self,
        name: str,
        function: Callable[..., Any],
        parameters: Sequence[Any] | None = None,
        return_type: Any = None,
        *,
        nulls: Literal["default", "special"] = "default",
        side_effects: bool = False,
        replace: bool = False,
    ) -> Self:
        """Let statements of this connection call a Python function, which numba compiles now, once a tile of rows.

        parameters, return_type  SQL types by name (BOOLEAN, integers up to BIGINT, REAL, DOUBLE, DATE, TIMESTAMP), or None
                      for the annotations int, float and bool.  The function gets a DATE as days and a TIMESTAMP as
                      microseconds since 1970-01-01, integers of 64 bits that wrap, and floats of 64 bits
        nulls         default: a NULL argument makes the value NULL, and the function is not called; special: it is called
                      with None, and may return None
        side_effects  it may give another value the next time (random numbers): it is called anew for every row and every
                      place in the statement
        replace       take the place of a function that this connection has by this name

        Raises CatalogError where SQL has a function of this name, NotSupportedError where numba is not installed or cannot
        compile it (the message says why), for other types, and at a server.
        """
        with self._lock:
            session = self.session
            if not isinstance(session, Session):
                raise errors.NotSupportedError(f"a Python function runs in this process only, not at a server: {name}")
            session.create_function(
                name, function, parameters, return_type, nulls=nulls, side_effects=side_effects, replace=replace
            )
        return self

    def remove_function(self, name: str) -> Self:
        """Forget a Python function of this connection."""
        with self._lock:
            session = self.session
            if not isinstance(session, Session):
                raise errors.NotSupportedError(f"a Python function runs in this process only, not at a server: {name}")
            session.remove_function(name)
        return self

    def ingest(
        self,
        table: str,
        data: Any,
        mode: Literal["append", "create", "replace", "create_append"] = "append",
        schema: str = "main",
        producer: str | None = None,
        sequence: int = 0,
    ) -> int:
        """Take the rows of a frame, an Arrow table or a stream of batches into a table, all or none; how many they were.

        mode      append needs the table to be there, create needs it not to be, replace and create_append take both
        producer, sequence  number the rows: sent again under the same number they are not added a second time
        """
        from gpudb.storage.arrow import batches_of

        if mode not in ("append", "create", "replace", "create_append"):
            raise errors.InterfaceError(f"not a mode of ingest(): {mode!r}")
        reader = batches_of(data)
        with self._lock:
            session = self.session
            if not isinstance(session, Session):
                return session.ingest(table, reader, mode, schema, producer, sequence)
            from gpudb.ingest import Numbered, Target, ingest

            target = Target(
                qualified(table, schema),
                "fail" if mode == "append" else "create",
                "fail" if mode == "create" else "replace" if mode == "replace" else "append",
            )
            numbered = None if producer is None else Numbered(producer, sequence)
            return ingest(session, target, reader.schema, reader, numbered)

    def cancel(self) -> None:
        """Stop the running statement, from any thread: it raises QueryCancelled where it runs."""
        self.session.cancel()

    def begin(self) -> Self:
        """Open a transaction, as BEGIN does: what follows is kept or undone as one, by commit() or rollback()."""
        with self._lock:
            self.session.execute("BEGIN")
        return self

    def commit(self) -> None:
        """Commit the open transaction; without one nothing is left to do, as each statement was committed as it ended.

        Raises ConflictError, and keeps nothing, where another transaction changed the same table and was faster.  One
        that an error has aborted is rolled back.
        """
        with self._lock:
            if self.session.transaction is not None:
                self._session.execute("COMMIT")

    def rollback(self) -> None:
        """Undo the open transaction; without one there is nothing to undo."""
        with self._lock:
            if self.session.transaction is not None:
                self._session.execute("ROLLBACK")

    def close(self) -> None:
        """Close the session and its cursors, and roll back an open transaction.

        Closing twice is an error, as PEP 249's test suite wants it.
        """
        self._check_open()
        self._finalizer()

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._finalizer()  # does nothing after close()

    def _check_open(self) -> None:
        if not self._finalizer.alive:
            raise errors.InterfaceError("the connection is closed")


def _set_statement(name: str, value: Any) -> str:
    """SET for one entry of `config`."""
    if not name.isidentifier():
        raise errors.InterfaceError("not the name of a setting: " + repr(name))
    if isinstance(value, bool | int | float):
        return f"SET {name} = {str(value).lower()}"
    return "SET {} = '{}'".format(name, str(value).replace("'", "''"))
