"""Whether rows fulfil a table's constraints: asked by programs over the rows that are new, and the table.

NOT NULL is answered by the counts that chunks keep.  A CHECK is a query of the new rows.  A key is looked for in the row groups
whose ranges leave it possible, by a semi join with the new rows; two new rows of one key by a GROUP BY.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gpudb.catalog import Constraint, Constraints, name_in_schema
from gpudb.errors import IntegrityError
from gpudb.session import Session, untimed
from gpudb.statement_catalog import StatementCatalog
from gpudb.storage.changes import narrowed, overlapping, rows_at, rows_from
from gpudb.storage.table import TableVersion, table_from_arrow

NEW, OLD, PLACE = "new rows", "old rows", "place of the row"  # relations and a column that no statement can name


def check_added(session: Session, constraints: Constraints, before: TableVersion, after: TableVersion) -> None:
    """IntegrityError unless the rows of `after` behind those of `before` fulfil a table's constraints."""
    _Check(session, constraints, after, before.num_rows).added(before)


def check_replaced(
    session: Session, constraints: Constraints, after: TableVersion, rows: np.ndarray, ordinals: Collection[int]
) -> None:
    """The same of rows that a table had before with other values in columns `ordinals`; rows (n,) int64, ascending."""
    names = {after.columns[ordinal][0].lower() for ordinal in ordinals}
    touched = tuple(one for one in constraints.items if names.intersection(name.lower() for name in one.columns))
    if touched:
        _Check(session, Constraints(constraints.name, touched), after, None).replaced(rows)


def check_all(session: Session, constraints: Constraints, table: TableVersion) -> None:
    """The same of all rows of a table."""
    _Check(session, constraints, table, None).all()


def check_merged(session: Session, constraints: Constraints, first: TableVersion, merged: TableVersion) -> None:
    """The keys of rows that go behind those of another transaction: of that one nothing was known when they were checked."""
    _Check(session, Constraints(constraints.name, constraints.keys), merged, None, first.num_rows).added(first)


class _Check:
    """One table version that is to fulfil constraints.

    counted  number of the row that is the first of those that the statement brings: errors count from there, if at all
    """

    def __init__(
        self,
        session: Session,
        constraints: Constraints,
        table: TableVersion,
        counted: int | None,
        start: int | None = None,
    ) -> None:
        self.session = session
        self.constraints = constraints
        self.table = table
        self.counted = counted
        self.start = counted if start is None else start
        self.places = {name.lower(): ordinal for ordinal, (name, _) in enumerate(table.columns)}

    def added(self, before: TableVersion) -> None:
        assert self.start is not None, "rows are added behind others"
        start = self.start
        self.not_null(before.num_rows)
        checks = self.constraints.checks
        if checks:
            self.check(rows_from(self.narrow(self.table, _columns(checks)), start))
        for key in self.constraints.keys:
            new = rows_from(self.narrow(self.table, key.columns), start)
            old = overlapping(self.narrow(before, key.columns), new)
            if old.num_rows:
                names = ", ".join(map(_quoted, key.columns))
                found = self.query(
                    f"SELECT {names} FROM {_name(OLD)} SEMI JOIN {_name(NEW)} USING ({names}) LIMIT 1", new, old
                )
                self.refuse_key(key, found)
            if new.num_rows > 1:
                self.refuse_key(key, self.query(_repeated(key, ""), new, old))

    def replaced(self, rows: np.ndarray) -> None:
        self.not_null(0)
        checks = self.constraints.checks
        if checks:
            self.check(rows_at(self.narrow(self.table, _columns(checks)), rows))
        for key in self.constraints.keys:
            whole = self.narrow(self.table, key.columns)
            if len(rows) == self.table.num_rows:
                self.refuse_key(key, self.query(_repeated(key, ""), whole, whole))
                continue
            new = rows_at(whole, rows)
            near = overlapping(whole, new)
            if near.num_rows > 1:
                names = ", ".join(map(_quoted, key.columns))
                found = self.query(_repeated(key, f" SEMI JOIN {_name(OLD)} USING ({names})"), near, new)
                self.refuse_key(key, found)

    def all(self) -> None:
        self.not_null(0)
        checks = self.constraints.checks
        if checks:
            self.check(self.narrow(self.table, _columns(checks)))
        for key in self.constraints.keys:
            whole = self.narrow(self.table, key.columns)
            self.refuse_key(key, self.query(_repeated(key, ""), whole, whole))

    def narrow(self, table: TableVersion, columns: Sequence[str]) -> TableVersion:
        """A version's columns of these names; of no name the first column, since rows are counted by one."""
        return narrowed(table, [self.places[name.lower()] for name in columns] or [0])

    # What is asked

    def not_null(self, start: int) -> None:
        """No NULL in the row groups behind `start`; those before are as they were."""
        for name in self.constraints.not_null:
            ordinal = self.places[name.lower()]
            for group in self.table.row_groups:
                chunk = group.chunks[ordinal]
                if group.first_row + group.rows > start and chunk.null_count:
                    present = chunk.present()
                    assert present is not None, "NULLs were counted"
                    place = group.first_row + int(np.argmin(present))
                    raise IntegrityError(f"NOT NULL constraint failed: {self.called()}.{name}{self.row(place)}")

    def check(self, rows: TableVersion) -> None:
        """No row makes a CHECK false."""
        table = _quoted(self.called())
        for one in self.constraints.checks:
            broken = f"NOT coalesce(CAST(({one.sql}) AS BOOLEAN), true)"
            found = self.query(f"SELECT * FROM {_name(NEW)} AS {table} WHERE {broken} LIMIT 1", rows, rows)
            if found.num_rows:
                names = [name.lower() for name, _ in rows.columns]
                found = found.select([names.index(name.lower()) for name in one.columns])
                raise IntegrityError(
                    f"CHECK constraint failed: {one.called(self.called())} of table {self.called()}, "
                    f"CHECK({one.sql}): {_shown(one.columns, found)}{self.row_of(one.columns, found)}"
                )

    def query(self, sql: str, new: TableVersion, old: TableVersion) -> pa.Table:
        """The rows of a query over NEW and OLD."""
        from gpudb.planner.bind import bind
        from gpudb.planner.parse import parse

        session = self.session
        parsed = parse(sql)
        catalog = StatementCatalog(session)
        catalog.loaded.update({NEW: new, OLD: old})
        catalog.deep = parsed.deep
        statement: Any = bind(parsed, catalog, settings=session.settings)
        raw = [value for _, value in parsed.literals]
        return session.query_table(statement.plan, raw, catalog, untimed)

    # What is said

    def called(self) -> str:
        """The table's name without its schema."""
        return name_in_schema(self.table.name)

    def refuse_key(self, key: Constraint, found: pa.Table) -> None:
        """IntegrityError where there is a row with a key that is there twice."""
        if found.num_rows:
            raise IntegrityError(
                f"{key.kind} constraint failed: {key.called(self.called())} of table {self.called()}, "
                f"duplicate key: {_shown(key.columns, found)}{self.row_of(key.columns, found)}"
            )

    def row_of(self, columns: Sequence[str], found: pa.Table) -> str:
        """`, row 3`: the last of the rows that came with the values of one row; nothing where rows are not counted."""
        if self.counted is None or not columns:
            return ""
        narrow = self.narrow(self.table, columns)
        wanted = table_from_arrow(OLD, found, narrow.columns)
        same = " AND ".join(f"n.{_quoted(name)} IS NOT DISTINCT FROM o.{_quoted(name)}" for name in columns)
        numbered = f"(SELECT *, row_number() OVER () AS {_name(PLACE)} FROM {_name(NEW)})"
        sql = f"SELECT max(n.{_name(PLACE)}) FROM {numbered} AS n JOIN {_name(OLD)} AS o ON {same}"
        place = self.query(sql, narrow, wanted).column(0)[0].as_py()
        return "" if place is None else self.row(place - 1)

    def row(self, place: int) -> str:
        if self.counted is None or place < self.counted:
            return ""
        return f", row {place - self.counted + 1}"


def _columns(checks: Sequence[Constraint]) -> list[str]:
    """The columns that conditions are about, each once."""
    return list(dict.fromkeys(name for one in checks for name in one.columns))


def _repeated(key: Constraint, join: str) -> str:
    """The query of one key that NEW has twice; `join` leaves the rows that it is looked for in."""
    names = ", ".join(map(_quoted, key.columns))
    known = " AND ".join(f"{_quoted(name)} IS NOT NULL" for name in key.columns)
    return f"SELECT {names} FROM {_name(NEW)}{join} WHERE {known} GROUP BY {names} HAVING count(*) > 1 LIMIT 1"


def _shown(columns: Sequence[str], found: pa.Table) -> str:
    """`a: 1, b: x`, of one row."""
    values = [column[0].as_py() for column in found.columns]
    return ", ".join(
        f"{name}: {'NULL' if value is None else value}" for name, value in zip(columns, values, strict=True)
    )


def _name(text: str) -> str:
    return f'"{text}"'


def _quoted(name: str) -> str:
    from gpudb.planner.bind.names import quoted

    return quoted(name)
