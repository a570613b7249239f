"""What outlives one call: settings of a client, its transactions, prepared statements, and tickets not yet fetched.

gRPC tells nothing about connections, so a client's session is known by a cookie (or by the bearer token that it got for its
password).  One without either has no session: it may do everything but SET and BEGIN, which would be forgotten at once.

Handles and tickets are random, belong to the user they were made for, and are "not found" for everybody else.
"""

from __future__ import annotations

import secrets
import threading
import time
import weakref
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from gpudb.errors import InterfaceError, OperationalError
from gpudb.flight_sql import PARAMETERS
from gpudb.ingest import check_batch
from gpudb.record import record
from gpudb.server.authentication import Caller
from gpudb.session import Database, Session
from gpudb.settings import Settings
from gpudb.storage.file_access import FileAccess

Kept = TypeVar("Kept")
TICKET_SECONDS = 300.0
IDLE_SECONDS = 3600.0  # of sessions, prepared statements and transactions that nobody uses
KEPT_AT_MOST = 10_000  # tickets, and prepared statements, of all clients


class FixedSettings(Settings):
    """Settings of a statement whose client has no session: SET would be forgotten at once, and so it is refused."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._values = dict(settings)

    def set(self, name: str, value: Any) -> None:
        raise InterfaceError(
            "SET needs a session, and this client keeps no cookies",
            hint="use a client that keeps cookies, or log in with a user and a password",
        )

    def reset(self, name: str) -> None:
        self.set(name, None)


@record(frozen=False)
class ClientSession:
    """What one client has set, and its open transaction if it said BEGIN.

    latest  the handle of the transaction that it began last
    """

    settings: Settings
    transaction: Session | None = None
    latest: bytes = b""

    def close(self) -> None:
        """Roll back what is open."""
        if self.transaction is not None:
            self.transaction.close()
            self.transaction = None


@record(frozen=False)
class Prepared:
    """A prepared statement.

    names     of its parameters, in order
    rows      sets of parameters bound to it: one run each
    """

    sql: str
    transaction: bytes
    names: tuple[str, ...]
    rows: list[Any] | None = None


@record(frozen=False)
class Ticket:
    """A planned statement that waits for its DoGet.

    schema    what was announced; None where parameters were still to come
    once      it changes something: a second DoGet is refused
    """

    sql: str
    transaction: bytes
    schema: Any
    prepared: Prepared | None = None
    once: bool = False


class Handles(Generic[Kept]):
    """Things by random handle, each for one user only.  Those that are old go, and of too many the longest unused of the user
    who has most, so that nobody can push out what belongs to others.

    what    for errors: "ticket", "prepared statement"
    forget  called with a thing that was not asked for any more
    """

    def __init__(
        self, what: str, seconds: float, at_most: int = KEPT_AT_MOST, forget: Callable[[Kept], None] | None = None
    ) -> None:
        self._what = what
        self._seconds = seconds
        self._at_most = at_most
        self._forget = forget
        self._kept: OrderedDict[bytes, tuple[str, Kept, float]] = OrderedDict()
        self._owned: Counter[str] = Counter()  # how many each user has
        self._lock = threading.Lock()

    def put(self, user: str, thing: Kept) -> bytes:
        """Keep a thing; the handle it is found by."""
        handle = secrets.token_bytes(16)
        with self._lock:
            self._kept[handle] = (user, thing, time.monotonic())
            self._owned[user] += 1
        self._sweep()
        return handle

    def get(self, user: str, handle: bytes) -> Kept:
        """The thing of a handle; InterfaceError where this user has none of it."""
        with self._lock:
            owner, thing, used = self._kept.get(handle, (None, None, 0.0))
            if owner == user and time.monotonic() - used < self._seconds:
                self._kept[handle] = (user, thing, time.monotonic())  # type: ignore[assignment]
                self._kept.move_to_end(handle)
                return thing  # type: ignore[return-value]
        raise InterfaceError(
            f"{self._what} not found", hint="it is not of this server and user, was closed, or expired"
        )

    def get_or_make(self, user: str, handle: bytes, make: Callable[[], Kept]) -> Kept:
        """The thing of a handle that its user has chosen, made where there is none; one that is too old goes before."""
        now = time.monotonic()
        with self._lock:  # two calls of a new client find the same one
            owner, old, used = self._kept.pop(handle, (user, None, now))
            assert owner == user, "the handle begins with its user"
            self._owned[user] += old is None
            thing = make() if old is None or now - used >= self._seconds else old
            self._kept[handle] = user, thing, now
        if thing is not old:
            self._tell([] if old is None else [old])
            self._sweep()
        return thing

    def find(self, user: str, handle: bytes) -> Kept | None:
        """The thing of a handle, or None."""
        try:
            return self.get(user, handle)
        except InterfaceError:
            return None

    def pop(self, user: str, handle: bytes) -> Kept | None:
        """Forget a handle; its thing, or None where there is none of this user."""
        with self._lock:
            if self._kept.get(handle, (None,))[0] != user:
                return None
            return self._removed(handle)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            gone = [thing for _, thing, _ in self._kept.values()]
            self._kept.clear()
            self._owned.clear()
        self._tell(gone)

    def _sweep(self) -> None:
        gone = []
        with self._lock:
            oldest = time.monotonic() - self._seconds
            while self._kept and next(iter(self._kept.values()))[2] < oldest:
                gone.append(self._removed(next(iter(self._kept))))
            while len(self._kept) > self._at_most:
                ((most, _),) = self._owned.most_common(1)
                gone.append(self._removed(next(handle for handle, (owner, *_) in self._kept.items() if owner == most)))
        self._tell(gone)

    def _removed(self, handle: bytes) -> Kept:
        """The thing of a handle that is there, which goes; for who holds the lock."""
        owner, thing, _ = self._kept.pop(handle)
        self._owned[owner] -= 1
        if not self._owned[owner]:
            del self._owned[owner]
        return thing

    def _tell(self, gone: list[Kept]) -> None:
        for thing in gone if self._forget is not None else ():
            assert self._forget is not None, "checked above"
            self._forget(thing)


class Sessions:
    """All that is kept between calls, of all clients."""

    def __init__(self, database: Database, files: FileAccess, settings: Callable[[], Settings]) -> None:
        self._database = database
        self._files = files
        self._fixed = FixedSettings(settings())  # one for all, as nobody can change it
        self._of_handles: weakref.WeakSet[Session] = weakref.WeakSet()  # those of BeginTransaction
        self._settings = settings
        self.clients: Handles[ClientSession] = Handles("session", IDLE_SECONDS, 1000, ClientSession.close)
        self.transactions: Handles[Session] = Handles("transaction", IDLE_SECONDS, 1000, Session.close)
        self.prepared: Handles[Prepared] = Handles("prepared statement", IDLE_SECONDS)
        self.tickets: Handles[Ticket] = Handles("ticket", TICKET_SECONDS)

    def client(self, user: str, key: str | None) -> ClientSession | None:
        """The session of a client that shows a key; made when it is new.  None without a key."""
        if key is None:
            return None
        return self.clients.get_or_make(user, _session_handle(user, key), lambda: ClientSession(self._settings()))

    def engine(
        self, caller: Caller, client: ClientSession | None, transaction: bytes, for_prepared: bool = False
    ) -> Session:
        """The engine's session for a statement: that of the transaction it is in, or a new one with the client's settings.

        for_prepared  where the transaction that it was prepared in is over, the one that the client has begun since
        """
        if transaction:
            if for_prepared and client is not None and self.transactions.find(caller.user, transaction) is None:
                transaction = client.latest or transaction
            found = self.transactions.get(caller.user, transaction)
        elif client is not None and client.transaction is not None:
            found = client.transaction
        else:
            found = Session(self._database, self.settings_of(client))
            found.files = self._files
            found.watched = True
        found.read_only = caller.role == "reader"  # as it is now: the role may have changed since BEGIN
        return found

    def begin(self, caller: Caller, client: ClientSession | None) -> bytes:
        """Open a transaction that a handle stands for."""
        session = self.engine(caller, None, b"")
        session.settings = self.settings_of(client)
        session.begin()
        self._of_handles.add(session)
        handle = self.transactions.put(caller.user, session)
        if client is not None:
            client.latest = handle
        return handle

    def after(self, client: ClientSession | None, session: Session) -> None:
        """A statement has run: its session stays the client's while the transaction of its BEGIN is open."""
        if session in self._of_handles:
            return
        if client is not None:
            if session.transaction is not None:
                client.transaction = session
            elif client.transaction is session:
                client.transaction = None
        elif session.transaction is not None:
            session.close()
            raise InterfaceError(
                "BEGIN needs a session, and this client keeps no cookies",
                hint="use the action BeginTransaction, or a client that keeps cookies",
            )

    def settings_of(self, client: ClientSession | None) -> Settings:
        """What statements of a client run with."""
        return self._fixed if client is None else client.settings

    def forget(self, user: str, key: str | None) -> None:
        """The session of a client ends: what is open in it is rolled back."""
        found = self.clients.pop(user, _session_handle(user, key or ""))
        if found is not None:
            found.close()

    def end(self, user: str, transaction: bytes, commit: bool) -> None:
        """Commit or roll back; OperationalError where a commit keeps nothing because a statement had failed."""
        session = self.transactions.get(user, transaction)
        self.transactions.pop(user, transaction)
        failed = session.transaction is not None and session.transaction.aborted
        if session.transaction is not None:
            session.execute("COMMIT" if commit else "ROLLBACK")
        session.close()
        if commit and failed:
            raise OperationalError("nothing was committed: a statement of the transaction had failed")

    def close(self) -> None:
        """Forget everything, and roll back what is open."""
        for handles in (self.clients, self.transactions, self.prepared, self.tickets):
            handles.clear()


def parameter_rows(prepared: Prepared, batches: Iterator[Any]) -> list[Any]:
    """The sets of parameters that a client sends: a list each, or a mapping where the statement names its parameters.

    Our own client says which of the two they are; those of others may name columns as they like, and go by their order.
    """
    rows: list[Any] = []
    for batch in batches:
        check_batch(batch)
        said = (batch.schema.metadata or {}).get(PARAMETERS.encode())
        named = said == b"named" if said else any(not name.isdigit() for name in prepared.names)
        columns = [column.to_pylist() for column in batch.columns]
        names = batch.schema.names if said or set(batch.schema.names) == set(prepared.names) else prepared.names
        sets: list[Any] = (
            list(map(list, zip(*columns, strict=True))) if columns else [[] for _ in range(batch.num_rows)]
        )
        rows += [dict(zip(names, values, strict=False)) for values in sets] if named else sets
    return rows


def _session_handle(user: str, key: str) -> bytes:
    """A key that another user shows is another session."""
    return f"{user}\0{key}".encode()
