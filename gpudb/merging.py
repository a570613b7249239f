"""What MERGE INTO and INSERT ... ON CONFLICT do: rows found by plans, and the next version of the table made of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from gpudb.constraints import check_added, check_replaced
from gpudb.errors import IntegrityError
from gpudb.planner import statements
from gpudb.result import Result
from gpudb.session import Session
from gpudb.statement_catalog import StatementCatalog
from gpudb.storage.changes import with_values, without_rows
from gpudb.storage.database import Change
from gpudb.storage.table import TableBuilder, TableVersion


class Merging:
    """One such statement in a session; `table` is the version that it was bound to."""

    def __init__(
        self, session: Session, table: TableVersion, raw: list[Any], catalog: StatementCatalog, stages: Any, lap: Any
    ) -> None:
        self.session = session
        self.table = table
        self.raw = raw
        self.catalog = catalog
        self.stages = stages
        self.lap = lap

    def upsert(self, statement: statements.Upsert) -> tuple[int, Result | None]:
        """(rows added and changed, those of RETURNING); rows that have keys of the table change its rows, or nothing."""
        table = self.table
        with self.session.store.write_lock, self.session.store.staging() as staging:
            proposed, count = [], 0
            for batch in self.session.query_batches(statement.plan, self.raw, self.catalog, self.lap):
                numbers = pa.array(np.arange(count, count + batch.num_rows))
                names = [f"c{k}" for k in range(batch.num_columns + 1)]
                proposed.append(pa.record_batch([*batch.columns, numbers], names=names))
                count += batch.num_rows
            if statement.draws:
                from gpudb.sequences import give_out

                give_out(self.session, statement.draws, count)
            self.catalog.give_proposed_rows(proposed)
            added = self.rows(statement.added)
            new, whole = table, added
            rows = np.zeros(0, np.int64)
            ordinals: tuple[int, ...] = ()
            if statement.changed is not None:
                ordinals = statement.changed.ordinals
                changed = in_order(self.rows(statement.changed.plan))
                rows = changed.column(0).to_numpy()
                new = with_values(table, rows, ordinals, changed.columns[2 : len(ordinals) + 2])
                if statement.returning is not None:
                    columns = whole_rows(table, ordinals, changed.remove_column(1)).columns
                    own = pa.table([changed.column(1), *columns], names=added.column_names)
                    whole = in_order(pa.concat_tables([own, added]))
            new = self.checked(new, rows, set(ordinals), [added.remove_column(0)], staging)
            result = None
            if statement.returning is not None:
                result = self.returned(statement.returning, whole.remove_column(0))
            self.write(new, bool(len(rows)), added.num_rows)
        return len(rows) + added.num_rows, result

    def merge(self, statement: statements.Merge) -> tuple[int, Result | None]:
        """(rows touched, those of RETURNING); all parts see the table as it was."""
        table = new = self.table
        touched: dict[str, list[pa.Table]] = {"UPDATE": [], "DELETE": [], "INSERT": []}
        count, ordinals = 0, set[int]()
        updated = deleted = np.zeros(0, np.int64)
        with self.session.store.write_lock, self.session.store.staging() as staging:
            for part in statement.parts:
                found = self.rows(part.plan)
                match part:
                    case statements.MergeError():
                        refuse(part, found)
                    case statements.Update():
                        count += found.num_rows
                        found = in_order(found)
                        rows = found.column(0).to_numpy()
                        updated = np.union1d(updated, rows)
                        ordinals.update(part.ordinals)
                        new = with_values(new, rows, part.ordinals, found.columns[1 : len(part.ordinals) + 1])
                        if statement.returning is not None:
                            touched["UPDATE"].append(whole_rows(table, part.ordinals, found))
                    case statements.Delete():
                        found = in_order(found)
                        count += found.num_rows
                        deleted = np.union1d(deleted, found.column(0).to_numpy())
                        if statement.returning is not None:
                            touched["DELETE"].append(whole_rows(table, (), found))
                    case statements.Insert():
                        count += found.num_rows
                        touched["INSERT"].append(found)
            if len(deleted):
                new = without_rows(new, deleted, staging.sink(table.name, table.columns))
                updated = np.setdiff1d(updated, deleted, assume_unique=True)
            rows = updated - np.searchsorted(deleted, updated)
            new = self.checked(new, rows, ordinals, touched["INSERT"], staging)
            result = None
            if statement.returning is not None:
                results = [
                    self.returned(plan, rows_of_kind)
                    for plan, tables in zip(statement.returning, touched.values(), strict=True)
                    for rows_of_kind in tables
                ] or [self.returned(statement.returning[0], named(table))]
                result = together(results)
            added = sum(one.num_rows for one in touched["INSERT"])
            self.write(new, bool(len(updated) or len(deleted)), added)
        return count, result

    def rows(self, plan: Any) -> pa.Table:
        """The rows of a plan, in columns c0, c1, ..."""
        return self.session.query_table(plan, self.raw, self.catalog, self.lap)

    def checked(
        self, new: TableVersion, rows: np.ndarray, ordinals: set[int], added: list[pa.Table], staging: Any
    ) -> TableVersion:
        """The version with rows added, once those and the changed ones (by number) fulfil the table's constraints."""
        constraints = self.catalog.constraints(self.table.name)
        if len(rows):
            check_replaced(self.session, constraints, new, rows, ordinals)
        if not any(one.num_rows for one in added):
            return new
        name, columns = self.table.name, self.table.columns
        builder = TableBuilder(columns, previous=new, sink=staging.sink(name, columns))
        for one in added:
            builder.append(one)
        whole = builder.finish(name)
        check_added(self.session, constraints, new, whole)
        return whole

    def returned(self, plan: Any, rows: pa.Table) -> Result:
        """The rows of RETURNING over rows of the table; computed before the change is committed, since its error undoes it."""
        self.catalog.give_changed_rows(rows.to_batches())
        _, program = self.session.program(plan, self.raw, self.catalog, self.lap)
        return self.session.run_program(
            program, program.types, self.raw, self.catalog, self.stages, self.lap, cached=False, whole=True
        )

    def write(self, new: TableVersion, changed: bool, added: int) -> None:
        if changed or added:
            change = Change.ROWS_CHANGED if changed else Change.ROWS_ADDED
            self.session.write(self.catalog, {self.table.name: new}, change)


def in_order(found: pa.Table) -> pa.Table:
    """Rows in order of their first column's numbers, of several with one number the last."""
    numbers = found.column(0).to_numpy()
    order = np.argsort(numbers, kind="stable")
    last = np.append(numbers[order][1:] != numbers[order][:-1], True)[: len(numbers)]
    if last.all() and not (np.diff(order) < 0).any():
        return found
    return found.take(order[last])


def whole_rows(table: TableVersion, ordinals: tuple[int, ...], found: pa.Table) -> pa.Table:
    """Rows of a table from what a plan found: their numbers, the new values of `ordinals`, the others' values in order."""
    others = [k for k in range(len(table.columns)) if k not in ordinals]
    place = {ordinal: position for position, ordinal in enumerate((*ordinals, *others), 1)}
    columns = [found.column(place[k]) for k in range(len(table.columns))]
    return pa.table(columns, names=[f"c{k}" for k in range(len(columns))])


def named(table: TableVersion) -> pa.Table:
    """No row of a table."""
    return pa.schema([(f"c{k}", kind.arrow) for k, (_, kind) in enumerate(table.columns)]).empty_table()


def refuse(part: statements.MergeError, found: pa.Table) -> None:
    """IntegrityError where a WHEN ... THEN ERROR is about a row."""
    if found.num_rows:
        message = found.column(0)[0].as_py()
        shown = "" if message is None else f": {message}"
        raise IntegrityError(f"MERGE met a row of WHEN {part.rows} THEN ERROR{shown}")


def together(results: list[Result]) -> Result:
    """The rows of several results of one schema, in turn."""
    first = results[0]

    def batches() -> Iterator[pa.RecordBatch]:
        yield from chain.from_iterable(one.batches() for one in results)

    return Result(first.schema, first.types, -1, first.receipt, batches())
