"""Drawing from sequences: a number that was given out is stored at once, whatever becomes of the statement."""

from __future__ import annotations

from collections.abc import Sequence as Several

from gpudb.catalog import Sequence, definition_key
from gpudb.errors import AccessError, CatalogError, OperationalError, TransactionError
from gpudb.session import Session
from gpudb.storage.database import Change

Draws = Several[tuple[str, str]]


def peek(session: Session, draws: Draws) -> list[int]:
    """What the draws of a statement would give, as far as that is known without giving it out."""
    return [current(session, name).next for _, name in draws]


def draw(session: Session, draws: Draws) -> list[int]:
    """The value of each draw, in order; those of `rows` are given out by `give_out` once it is known how many."""
    values = []
    with session.database.storage.write_lock:
        for how, name in draws:
            found = current(session, name)
            if how == "currval":
                if found.last is None:
                    raise OperationalError(f"currval: nothing was drawn from the sequence yet: {found.name}")
                values.append(found.last)
                continue
            check_writable(session)
            values.append(found.next)
            if how == "nextval":
                store(session, found.after(1))
    return values


def give_out(session: Session, draws: Draws, rows: int) -> None:
    """Note that rows have got the numbers that `draw` began with; its caller has held the database's `write_lock` since."""
    for how, name in draws:
        if how == "rows" and rows:
            store(session, current(session, name).after(rows))


def current(session: Session, name: str) -> Sequence:
    """A sequence as it is now, whatever version an open transaction reads."""
    key = definition_key(Sequence(name, 0, 0, 0, 0, False, 0, None))
    transaction = session.transaction
    own = transaction is not None and transaction.defines(key)
    snapshot = session.store.snapshot() if own else session.database.storage.snapshot()
    found = snapshot.definitions.get(key)
    if not isinstance(found, Sequence):
        raise CatalogError(f"sequence not found: {name}")
    return found


def store(session: Session, sequence: Sequence) -> None:
    """Commit what a sequence has come to; one that an open transaction has made goes with that."""
    key = definition_key(sequence)
    transaction = session.transaction
    if transaction is not None and transaction.defines(key):
        transaction.write({}, {key: sequence}, Change.DEFINED)
    else:
        session.database.storage.install({}, {key: sequence}, {})


def check_writable(session: Session) -> None:
    """An error where the session may not write: what was drawn is stored."""
    if session.read_only:
        raise AccessError("the user may only read, and nextval writes")
    if session.transaction is not None and session.transaction.read_only:
        raise TransactionError("the transaction is READ ONLY, and nextval writes", hint="BEGIN without READ ONLY")
    session.database.storage.check_writable()
