"""Table versions that differ from another one: rows gone, values replaced, columns added, dropped and renamed.

Row groups that a change does not touch stay the same objects, so that their files, and what devices hold of them, stay too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from gpudb.errors import ConversionError
from gpudb.storage import arrow
from gpudb.storage.column import Chunk, same_dtype
from gpudb.storage.dictionary import Dictionary
from gpudb.storage.table import ROW_GROUP_ROWS, RowGroup, RowGroupSink, TableBuilder, TableVersion, encode
from gpudb.types import SqlType


def without_rows(
    table: TableVersion, rows: np.ndarray, sink: RowGroupSink | None = None, row_group_rows: int = ROW_GROUP_ROWS
) -> TableVersion:
    """The version without some rows: row groups from the first touched one on are written anew, those before it are kept.

    rows  (n,) int64 row numbers, ascending, each once
    """
    if not len(rows):
        return table
    first = _place(table, int(rows[0]))
    builder = TableBuilder.behind(table, first, row_group_rows, sink)
    for group in table.row_groups[first:]:
        low, high = np.searchsorted(rows, (group.first_row, group.first_row + group.rows))
        keep = np.ones(group.rows, np.bool_)
        keep[rows[low:high] - group.first_row] = False
        builder.append_group(group, keep)
    return builder.finish(table.name)


def with_values(
    table: TableVersion, rows: np.ndarray, ordinals: Sequence[int], values: Sequence[pa.ChunkedArray]
) -> TableVersion:
    """The version with new values of some columns in some rows; only row groups that hold such rows are written anew.

    rows    (n,) int64 row numbers, ascending, each once
    values  (n,) one a column of `ordinals`, in the SQL types' Arrow form

    Raises ConversionError where a value does not fit its column.
    """
    dictionaries = list(table.dictionaries)
    fresh: list[arrow.Plain] = []
    for ordinal, column in zip(ordinals, values, strict=True):
        name, kind = table.columns[ordinal]
        try:
            plain, grown = arrow.plain_values(column, kind, dictionaries[ordinal])
        except ConversionError as error:
            raise ConversionError(f"column {name}: {error.message}", hint=error.hint) from error
        fresh.append(plain)
        dictionaries[ordinal] = grown
    groups = []
    for group in table.row_groups:
        low, high = np.searchsorted(rows, (group.first_row, group.first_row + group.rows))
        if low == high:
            groups.append(group)
            continue
        chunks = list(group.chunks)
        for ordinal, (new, present) in zip(ordinals, fresh, strict=True):
            part = new[low:high], None if present is None else present[low:high]
            name, kind = table.columns[ordinal]
            chunks[ordinal] = _replaced(chunks[ordinal], rows[low:high] - group.first_row, part, kind, name)
        groups.append(RowGroup(group.rows, tuple(chunks), group.first_row))
    return TableVersion.assemble(table.name, table.columns, groups, dictionaries)


def _replaced(chunk: Chunk, places: np.ndarray, new: arrow.Plain, kind: SqlType, name: str) -> Chunk:
    values, replacing = same_dtype(np.array(chunk.values()), new[0])
    present = chunk.present()
    mask = np.ones(chunk.rows, np.bool_) if present is None else np.array(present)
    values[places] = replacing
    mask[places] = True if new[1] is None else new[1]
    return encode(values, None if mask.all() else mask, kind, name)


def with_rows_behind(
    table: TableVersion, other: TableVersion, start: int, sink: RowGroupSink | None = None
) -> TableVersion:
    """The version with the rows of another one of the same columns, from its row `start` on, behind its own."""
    builder = TableBuilder(table.columns, previous=table, sink=sink)
    for group in other.row_groups:
        if group.first_row + group.rows > start:
            rows = TableVersion(other.name, other.columns, (replace(group, first_row=0),), other.dictionaries)
            builder.append(rows.to_arrow().slice(max(0, start - group.first_row)))
    return builder.finish(table.name)


def with_column(table: TableVersion, name: str, kind: SqlType, value: pa.ChunkedArray) -> TableVersion:
    """The version with one more column, which holds `value` (one row, in the type's Arrow form) in every row."""
    (values, present), dictionary = arrow.plain_values(value, kind, Dictionary.empty() if kind.is_coded else None)
    groups = []
    for group in table.row_groups:
        mask = None if present is None else np.repeat(present, group.rows)
        chunk = encode(np.repeat(values, group.rows), mask, kind, name)
        groups.append(RowGroup(group.rows, (*group.chunks, chunk), group.first_row))
    columns = (*table.columns, (name, kind))
    return TableVersion.assemble(table.name, columns, groups, (*table.dictionaries, dictionary))


def without_column(table: TableVersion, ordinal: int) -> TableVersion:
    """The version without a column."""

    def rest(items: Sequence) -> tuple:
        return (*items[:ordinal], *items[ordinal + 1 :])

    groups = tuple(RowGroup(group.rows, rest(group.chunks), group.first_row) for group in table.row_groups)
    return TableVersion(table.name, rest(table.columns), groups, rest(table.dictionaries))


def with_name_of_column(table: TableVersion, ordinal: int, name: str) -> TableVersion:
    """The version with another name for a column."""
    columns = list(table.columns)
    columns[ordinal] = (name, columns[ordinal][1])
    return replace(table, columns=tuple(columns))


def _place(table: TableVersion, row: int) -> int:
    """Which row group holds a row."""
    starts = [group.first_row for group in table.row_groups]
    return int(np.searchsorted(starts, row, side="right")) - 1


def narrowed(table: TableVersion, ordinals: Sequence[int]) -> TableVersion:
    """The version with some of its columns only."""
    groups = (RowGroup(one.rows, tuple(one.chunks[k] for k in ordinals), one.first_row) for one in table.row_groups)
    columns = tuple(table.columns[k] for k in ordinals)
    return TableVersion(table.name, columns, tuple(groups), tuple(table.dictionaries[k] for k in ordinals))


def rows_at(table: TableVersion, rows: np.ndarray) -> TableVersion:
    """Some rows of a version, in its codes; rows (n,) int64 row numbers, ascending, each once."""
    builder = TableBuilder.behind(table, 0)
    for group in table.row_groups:
        low, high = np.searchsorted(rows, (group.first_row, group.first_row + group.rows))
        if low < high:
            keep = np.zeros(group.rows, np.bool_)
            keep[rows[low:high] - group.first_row] = True
            builder.append_group(group, keep)
    return builder.finish(table.name)


def rows_from(table: TableVersion, start: int) -> TableVersion:
    """The rows from number `start` on, in any order: whole row groups are shared, and come first."""
    behind = [group for group in table.row_groups if group.first_row + group.rows > start]
    if not behind or behind[0].first_row >= start:
        return TableVersion.assemble(table.name, table.columns, behind, table.dictionaries)
    shared = TableVersion.assemble(table.name, table.columns, behind[1:-1], table.dictionaries)
    builder = TableBuilder.behind(shared, len(shared.row_groups))
    for group in (behind[0], behind[-1]) if len(behind) > 1 else (behind[0],):
        builder.append_group(group, np.arange(group.first_row, group.first_row + group.rows) >= start)
    return builder.finish(table.name)


def overlapping(table: TableVersion, part: TableVersion) -> TableVersion:
    """The row groups that may hold a row which equals one of `part` in all columns, none of them NULL.

    Both have the same columns, and codes of the same dictionaries; only ranges are looked at.
    """

    def ranges(chunks: Sequence[Chunk]) -> tuple[float | None, float | None]:
        known = [chunk for chunk in chunks if chunk.minimum is not None and chunk.maximum is not None]
        if not known:
            return None, None
        return min(one.minimum for one in known), max(one.maximum for one in known)  # type: ignore[type-var]  # none is None, by the line above

    wanted = [ranges([group.chunks[k] for group in part.row_groups]) for k in range(len(part.columns))]
    groups = []
    for group in table.row_groups:
        apart = False
        for chunk, (low, high) in zip(group.chunks, wanted, strict=True):
            if low is None or high is None or chunk.minimum is None or chunk.maximum is None:
                apart = True
            else:
                apart = apart or chunk.maximum < low or chunk.minimum > high  # never so of NaN
        if not apart:
            groups.append(group)
    return TableVersion.assemble(table.name, table.columns, groups, part.dictionaries)
