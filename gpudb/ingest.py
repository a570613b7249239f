"""Rows from elsewhere into a table, all or none: tables made, filled or replaced from a stream of Arrow batches.

A client that numbers its batches (producer, sequence) may send one again when it does not know whether it arrived: the number
is committed with the rows, and a batch that is there already is not added a second time.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import pyarrow as pa

from gpudb.catalog import Definition, Producer, definition_key
from gpudb.errors import (
    AccessError,
    CatalogError,
    ConflictError,
    ConversionError,
    DataError,
    InterfaceError,
    TransactionError,
)
from gpudb.record import record
from gpudb.session import Session
from gpudb.statement_catalog import StatementCatalog
from gpudb.statements import append_rows
from gpudb.storage.arrow import columns_of, sql_type
from gpudb.storage.table import Columns, TableBuilder
from gpudb.storage.transaction import Transaction
from gpudb.types import SqlType

PRODUCERS_KEPT = 1000  # of all clients; each takes 100 bytes in every manifest


@record
class Target:
    """Where rows go.

    name        of the table in the catalog, see `catalog.qualified`
    if_missing  make the table, or fail
    if_there    fail, append to it, or replace it
    """

    name: str
    if_missing: Literal["create", "fail"]
    if_there: Literal["fail", "append", "replace"]


@record
class Numbered:
    """A batch's place among those of its producer."""

    producer: str
    sequence: int


def ingest(
    session: Session,
    target: Target,
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
    numbered: Numbered | None = None,
) -> int:
    """Take rows in; how many came.  An error of `batches`, or of a row, leaves everything as it was.

    Outside a transaction it is one of its own, committed once `batches` has ended.  Raises DataError for arrays that are not
    valid Arrow, ConversionError where columns or values do not fit, CatalogError where the table is not as `target` wants it,
    ConflictError where another statement was faster or the number was used for other rows, TransactionError where the open
    transaction has ended before `batches`.
    """
    if session.read_only:
        raise AccessError("the user may only read, and this would write")
    alone = session.transaction is None
    if alone:
        session.begin()
    transaction = session.transaction
    assert transaction is not None, "there was one, or it was begun"
    try:
        rows = _ingested(session, target, schema, batches, numbered)
        if alone:
            session.commit()
        return rows
    except BaseException:
        if not alone:
            transaction.rollback()  # an error aborts it, as one of a statement does
        raise
    finally:
        if alone and session.transaction is not None:
            session.rollback()


def _ingested(
    session: Session,
    target: Target,
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
    numbered: Numbered | None,
) -> int:
    digest = hashlib.blake2b(digest_size=16)
    count = 0
    transaction = session.transaction

    def valid() -> Iterator[pa.RecordBatch]:
        nonlocal count
        for batch in batches:
            check_batch(batch)
            if numbered is not None:
                digest.update(batch.serialize())
            count += batch.num_rows
            yield batch
        check_transaction(session, transaction)

    known = _known(session, numbered)
    if numbered is not None and known is not None and numbered.sequence <= known.sequence:
        for _ in valid():
            pass
        _check_repeated(known, numbered, digest.hexdigest())
        return count
    _take_in(session, target, schema, valid())
    if numbered is not None:
        _remember(session, {numbered: digest.hexdigest()})
    return count


@record(frozen=False)
class Arrival:
    """A whole stream of rows that has arrived and was checked; `error` or `rows` says how it ended.

    digest  of its rows, where it is numbered
    """

    target: Target
    schema: pa.Schema
    batches: list[pa.RecordBatch]
    numbered: Numbered | None = None
    digest: str = ""
    error: BaseException | None = None

    @property
    def rows(self) -> int:
        """How many came."""
        return sum(batch.num_rows for batch in self.batches)

    def check(self) -> None:
        """DataError unless all values are what their types say."""
        digest = hashlib.blake2b(digest_size=16)
        for batch in self.batches:
            check_batch(batch)
            if self.numbered is not None:
                digest.update(batch.serialize())
        self.digest = digest.hexdigest()


def ingest_together(session: Session, arrivals: Sequence[Arrival]) -> None:
    """Take the rows of several streams in as one transaction, with one commit; an error of one leaves nothing of any."""
    session.begin()
    try:
        latest: dict[str, tuple[int, str]] = {}
        fresh: list[Arrival] = []
        for arrival in arrivals:
            number = arrival.numbered
            if number is not None:
                known = _known(session, number)
                if number.producer in latest:
                    known = Producer(number.producer, *latest[number.producer], 0)
                if known is not None and number.sequence <= known.sequence:
                    _check_repeated(known, number, arrival.digest)
                    continue
                latest[number.producer] = number.sequence, arrival.digest
            fresh.append(arrival)
        while fresh:
            first = fresh[0]
            alike = [one for one in fresh if one.target == first.target and one.schema == first.schema]
            if first.target.if_there != "append":
                alike = [first]  # its order among the others is seen
            fresh = [one for one in fresh if all(one is not other for other in alike)]
            _take_in(session, first.target, first.schema, (batch for one in alike for batch in one.batches))
        if latest:
            _remember(session, {Numbered(name, place): digest for name, (place, digest) in latest.items()})
        session.commit()
    finally:
        if session.transaction is not None:
            session.rollback()


def _take_in(session: Session, target: Target, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    """Rows that were checked, into the open transaction."""
    catalog = StatementCatalog(session)
    if catalog.view(target.name) is not None:
        raise CatalogError(f"rows go into tables, and this is a view: {target.name}")
    there = target.name in catalog.snapshot
    if there and target.if_there == "fail":
        raise CatalogError(f"table already exists: {target.name}")
    if not there and target.if_missing == "fail":
        raise CatalogError(f"table not found: {target.name}")
    if there and target.if_there == "append":
        order = matched(schema, catalog.snapshot[target.name].columns)
        append_rows(session, target.name, (batch.select(order) for batch in batches), catalog)
        return
    columns = new_columns(schema)
    with session.store.staging() as staging:
        builder = TableBuilder(columns, sink=staging.sink(target.name, columns))
        for batch in batches:
            builder.append(batch)
        if there:
            session.write(catalog, {target.name: None})  # with the values that its columns default to
        session.write(catalog, {target.name: builder.finish(target.name)})


def check_transaction(session: Session, transaction: Transaction | None) -> None:
    """TransactionError unless this is still the open one: no lock is held while a client takes its time with its rows."""
    if session.transaction is not transaction:
        raise TransactionError("the transaction ended while its rows came", hint="none of them is kept")


def check_batch(batch: pa.RecordBatch) -> None:
    """DataError unless every value is what its type says: offsets, UTF-8, dictionary indices, decimals.

    A batch that is only checked for its structure may crash whoever reads it.
    """
    try:
        batch.validate(full=True)
    except pa.ArrowException as error:
        raise DataError(f"the rows are not valid Arrow: {str(error).splitlines()[0]}") from None


def new_columns(schema: pa.Schema) -> Columns:
    """The columns of a table that is made for such rows."""
    names = [name.casefold() for name in schema.names]
    if not names:
        raise InterfaceError("a table has at least one column")
    for name in names:
        if not name or "\0" in name or names.count(name) > 1:
            raise InterfaceError(f"not a name for a column, or one that is there twice: {name!r}")
    return columns_of(schema)


def matched(schema: pa.Schema, columns: Columns) -> list[int]:
    """Which column of the rows goes into each of the table's, by name in any case; ConversionError names what differs."""
    places: dict[str, int] = {}
    for place, name in enumerate(schema.names):
        if places.setdefault(name.casefold(), place) != place:
            raise ConversionError(f"the rows have a column twice: {name}")
    wanted = {name.casefold(): name for name, _ in columns}
    missing = [name for key, name in wanted.items() if key not in places]
    surplus = [schema.names[place] for key, place in places.items() if key not in wanted]
    if missing or surplus:
        parts = [f"missing: {', '.join(missing)}"] if missing else []
        parts += [f"not in the table: {', '.join(surplus)}"] if surplus else []
        raise ConversionError(f"the rows have other columns than the table; {'; '.join(parts)}")
    for name, kind in columns:
        field = schema.field(places[name.casefold()])
        if not _fits(field, kind):
            raise ConversionError(f"the column {name} is {kind} in the table, and {field.type} in the rows")
    return [places[name.casefold()] for name, _ in columns]


def _fits(field: pa.Field, kind: SqlType) -> bool:
    """Whether values of a field may become ones of a type, each where it can be exactly that."""
    if pa.types.is_null(field.type):
        return True
    given = sql_type(field.type, field.name)
    return given.kind == kind.kind or (given.is_numeric and kind.is_numeric) or (given.is_temporal and kind.is_temporal)


def _known(session: Session, numbered: Numbered | None) -> Producer | None:
    """What is remembered of a producer."""
    if numbered is None:
        return None
    key = definition_key(Producer(numbered.producer, 0, "", 0))
    found = StatementCatalog(session).snapshot.definitions.get(key)
    return found if isinstance(found, Producer) else None


def _check_repeated(known: Producer, numbered: Numbered, digest: str) -> None:
    """ConflictError where rows come under the last number that other rows came under."""
    if numbered.sequence == known.sequence and digest != known.digest:
        raise ConflictError(f"other rows were sent under this number: {numbered.producer} {numbered.sequence}")


def _remember(session: Session, digests: Mapping[Numbered, str]) -> None:
    catalog = StatementCatalog(session)
    now = int(time.time())
    new = {one.producer: Producer(one.producer, one.sequence, digest, now) for one, digest in digests.items()}
    others = [one for one in catalog.snapshot.definitions.values() if isinstance(one, Producer) and one.name not in new]
    oldest = sorted(others, key=lambda one: one.at)[: max(0, len(others) + len(new) - PRODUCERS_KEPT)]
    changes: dict[str, Definition | None] = {definition_key(one): None for one in oldest}
    changes |= {definition_key(one): one for one in new.values()}
    session.write(catalog, {}, definitions=changes)
