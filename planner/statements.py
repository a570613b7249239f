"""Bound statements: what the session is asked to do, names resolved and types known.

Every statement carries `consumed`, the slots whose *value* shaped it (ordinals, LIMIT, date parts, type modifiers, literals
that GROUP BY matched by value): a cached plan may serve another statement of the same key only if those values agree.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

from gpudb.catalog import Constraint, Constraints, Enum, Sequence, View
from gpudb.planner.logical import Node
from gpudb.record import record
from gpudb.types import SqlType


@record
class Statement:
    """Base.

    consumed  literal and parameter slots whose value is part of the plan
    volatile  it holds the time of binding (current_date): do not keep its plan
    tables    catalog keys of the tables and views it reads
    draws     (nextval, currval or rows, name of a sequence): the value of each is that of a slot behind those of literals and
              parameters, in order; of `rows` the first of as many numbers as an INSERT has rows
    """

    consumed: frozenset[int] = field(default=frozenset(), kw_only=True)
    volatile: bool = field(default=False, kw_only=True)
    tables: frozenset[str] = field(default=frozenset(), kw_only=True)
    draws: tuple[tuple[str, str], ...] = field(default=(), kw_only=True)


@record
class Query(Statement):
    """SELECT, VALUES, FROM: rows of `plan`."""

    plan: Node


@record
class Explain(Statement):
    """EXPLAIN [ANALYZE | MEMORY] statement."""

    mode: Literal["plain", "analyze", "memory"]
    statement: Statement


@record
class CreateTable(Statement):
    """CREATE TABLE with columns; defaults are (column, SQL)."""

    name: str
    columns: tuple[tuple[str, SqlType], ...]
    constraints: Constraints
    if_not_exists: bool
    or_replace: bool
    defaults: tuple[tuple[str, str], ...] = ()


@record
class CreateTableAs(Statement):
    """CREATE TABLE ... AS query; the plan's columns are the table's, names made unique."""

    name: str
    plan: Node
    if_not_exists: bool
    or_replace: bool
    with_data: bool = True


@record
class DropTable(Statement):
    """DROP TABLE."""

    name: str
    if_exists: bool


@record
class CreateView(Statement):
    """CREATE VIEW."""

    view: View
    if_not_exists: bool
    or_replace: bool


@record
class DropView(Statement):
    """DROP VIEW."""

    name: str
    if_exists: bool


@record
class CreateSchema(Statement):
    """CREATE SCHEMA."""

    name: str
    if_not_exists: bool


@record
class CreateType(Statement):
    """CREATE TYPE ... AS ENUM."""

    enum: Enum
    if_not_exists: bool


@record
class DropType(Statement):
    """DROP TYPE."""

    name: str
    if_exists: bool


@record
class CreateSequence(Statement):
    """CREATE SEQUENCE."""

    sequence: Sequence
    if_not_exists: bool
    or_replace: bool


@record
class DropSequence(Statement):
    """DROP SEQUENCE."""

    name: str
    if_exists: bool


@record
class DropSchema(Statement):
    """DROP SCHEMA; `cascade` drops what is in it too."""

    name: str
    if_exists: bool
    cascade: bool


@record
class Insert(Statement):
    """INSERT INTO table; `plan` has one column per column of the table, in its order, cast to its type.

    ordinals   the columns that the statement gives; the others are NULL in the plan
    returning  the plan of RETURNING, over the catalog's `changed_rows`
    """

    table: str
    ordinals: tuple[int, ...]
    plan: Node
    returning: Node | None = None


@record
class Delete(Statement):
    """DELETE FROM table; `plan` has the numbers of its rows, perhaps repeated.  None: all rows, also TRUNCATE.

    returning  the plan of RETURNING, over the catalog's `changed_rows`; `plan` then has all columns of the rows, too
    """

    table: str
    plan: Node | None
    returning: Node | None = None


@record
class Update(Statement):
    """UPDATE table; `plan` has row numbers and one column per ordinal, cast to its type.

    Of several values for one row the last counts.

    returning  the plan of RETURNING, over the catalog's `changed_rows`; `plan` then has the other columns, too, in order
    """

    table: str
    ordinals: tuple[int, ...]
    plan: Node
    returning: Node | None = None


@record
class Upsert(Statement):
    """INSERT ... ON CONFLICT, INSERT OR REPLACE and OR IGNORE.

    plan       the rows that are proposed, as Insert's
    added      numbers of proposed rows, from 0, and all columns of the rows that are added, over the catalog's `proposed_rows`
    changed    the table's rows that others change, numbers of the proposed rows behind the row numbers; None of DO NOTHING
    returning  the plan of RETURNING, over the catalog's `changed_rows`; `changed` then has all columns
    """

    table: str
    plan: Node
    added: Node
    changed: Update | None
    returning: Node | None = None


@record
class MergeError:
    """WHEN ... THEN ERROR: `plan` has one column, a message for each row that it is about; `rows` says which those are."""

    plan: Node
    rows: str


MergePart = Update | Delete | Insert | MergeError


@record
class Merge(Statement):
    """MERGE INTO: what each WHEN does, all of them to the table as it was; one pair of rows is in one of `parts` at most.

    returning  the plans of RETURNING for rows that were updated, deleted and inserted, over the catalog's `changed_rows`;
               the plans of `parts` then have all columns
    """

    table: str
    parts: tuple[MergePart, ...]
    returning: tuple[Node, ...] | None = None


@record
class AddColumn(Statement):
    """ALTER TABLE ... ADD COLUMN; `plan` has one row with the value of the column in rows that are there.

    constraints  of the table from now on
    """

    table: str
    column: tuple[str, SqlType]
    plan: Node
    default: str | None
    constraints: Constraints


@record
class SetConstraints(Statement):
    """ALTER TABLE ... SET and DROP NOT NULL, ADD PRIMARY KEY and UNIQUE: what the table's rows must fulfil from now on.

    added  which of them are new
    """

    table: str
    constraints: Constraints
    added: tuple[Constraint, ...]


@record
class SetDefault(Statement):
    """ALTER TABLE ... ALTER COLUMN ... SET or DROP DEFAULT (None)."""

    table: str
    ordinal: int
    default: str | None


@record
class SetType(Statement):
    """ALTER TABLE ... ALTER COLUMN ... TYPE; `plan` has the table's rows with the column cast."""

    table: str
    plan: Node


@record
class DropColumn(Statement):
    """ALTER TABLE ... DROP COLUMN; `constraints` are what is left of the table's."""

    table: str
    ordinal: int
    constraints: Constraints


@record
class RenameColumn(Statement):
    """ALTER TABLE ... RENAME COLUMN; `constraints` are the table's with that name."""

    table: str
    ordinal: int
    name: str
    constraints: Constraints


@record
class RenameTable(Statement):
    """ALTER TABLE ... RENAME TO; both are names of the catalog."""

    table: str
    name: str


@record
class Nothing(Statement):
    """A statement that has nothing to do: ... IF EXISTS of what is not there."""


@record
class CopyFrom(Statement):
    """COPY table FROM paths.  format: auto, csv, parquet or arrow; ordinals: target columns in file order, None for all."""

    table: str
    ordinals: tuple[int, ...] | None
    paths: tuple[str, ...]
    format: str
    options: dict[str, Any]


@record
class CopyTo(Statement):
    """COPY (query) TO path.  format: csv, parquet, arrow or json, from the option or the path's ending."""

    plan: Node
    path: str
    format: str
    options: dict[str, Any]


@record
class Describe(Statement):
    """DESCRIBE query or table: one row a column; defaults by lower-case name, constraints of a table."""

    columns: tuple[tuple[str, SqlType], ...]
    defaults: tuple[tuple[str, str], ...] = ()
    constraints: Constraints | None = None


@record
class ShowTables(Statement):
    """SHOW TABLES."""


@record
class Set(Statement):
    """SET name = value."""

    name: str
    value: str | int | float | bool


@record
class Reset(Statement):
    """RESET name."""

    name: str


@record
class Show(Statement):
    """SHOW name: the value of a setting."""

    name: str


@record
class Begin(Statement):
    """BEGIN TRANSACTION [READ ONLY]."""

    read_only: bool


@record
class Commit(Statement):
    """COMMIT."""


@record
class Rollback(Statement):
    """ROLLBACK."""
