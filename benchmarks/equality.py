"""Are two answers equal?  Says why not, in one sentence.

Integers, decimals, text and dates must be exact, floats within 1e-9 relative (NaN equals NaN, infinities by sign), NULL
equals NULL only.  Rows are a multiset; under ORDER BY the columns that it names must also agree position by position
(rows that tie may stand in any order); under LIMIT any valid choice of rows is right.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

RELATIVE = 1e-9


def difference(
    actual: pa.Table,
    expected: pa.Table,
    *,
    order_by: Sequence[str] = (),
    limit: int | None = None,
    values_only: bool = False,
) -> str | None:
    """None when `actual` is a right answer, else the first difference found.

    expected     the whole answer, without LIMIT, in its order
    order_by     names of `expected`'s columns that ORDER BY fixes
    values_only  for other engines: columns by position, cast to `expected`'s types first
    """
    if actual.num_columns != expected.num_columns:
        return f"columns: {actual.num_columns} instead of {expected.num_columns}"
    if not values_only:
        if actual.column_names != expected.column_names:
            return f"column names: {actual.column_names} instead of {expected.column_names}"
        for name, got, wanted in zip(expected.column_names, actual.schema.types, expected.schema.types, strict=True):
            if got != wanted:
                return f"type of {name}: {got} instead of {wanted}"
    elif (problem := _castable(actual, expected.schema)) is not None:
        return problem
    actual = _cast(actual, expected.schema)

    rows = expected.num_rows if limit is None else min(limit, expected.num_rows)
    if actual.num_rows != rows:
        return f"rows: {actual.num_rows} instead of {rows}"
    for name in order_by:
        position = expected.column_names.index(name)
        wanted = expected.column(position).slice(0, rows)
        if (row := _first_mismatch(actual.column(position), wanted)) is not None:
            return (
                f"order: {name} is {_show(actual.column(position), row)} instead of {_show(wanted, row)} in row {row}"
            )
    if rows < expected.num_rows:
        return _not_among(actual, expected)
    return _multisets_differ(actual, expected)


def _castable(actual: pa.Table, schema: pa.Schema) -> str | None:
    try:
        _cast(actual, schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        return f"values do not fit the expected types: {error}"
    return None


def _cast(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """`table` with the schema's names and types, columns by position."""
    columns = []
    for column, field in zip(table.columns, schema, strict=True):
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        columns.append(column.cast(field.type))
    return pa.table(columns, names=schema.names)


def _first_mismatch(actual: pa.ChunkedArray, expected: pa.ChunkedArray) -> int | None:
    """Row of the first unequal value of two equally long columns of one type; None when there is none."""
    if actual.equals(expected):
        return None
    actual_null = np.asarray(actual.is_null())
    unequal = actual_null != np.asarray(expected.is_null())
    present = ~actual_null & ~unequal
    if pa.types.is_floating(actual.type):
        left, right = (column.fill_null(0).to_numpy().astype(np.float64) for column in (actual, expected))
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.abs(left - right) <= RELATIVE * np.maximum(np.abs(left), np.abs(right))
            same = np.where(np.isfinite(left) & np.isfinite(right), near, left == right)
        unequal |= present & ~(same | (np.isnan(left) & np.isnan(right)))
    else:
        unequal |= present & np.asarray(pc.not_equal(actual, expected).fill_null(False))
    return int(np.argmax(unequal)) if unequal.any() else None


def _multisets_differ(actual: pa.Table, expected: pa.Table) -> str | None:
    """Compares in the given order first, which is the common case, and then sorted, exact columns before floats.

    Rows that agree in every exact column are paired by their floats' order; where those differ within the tolerance in
    more than one column, rows may be paired wrongly and a difference reported: never the other way round.
    """
    if all(_first_mismatch(*pair) is None for pair in zip(actual.columns, expected.columns, strict=True)):
        return None
    actual, expected = _sorted(actual), _sorted(expected)
    for name in expected.column_names:
        left, right = actual.column(name), expected.column(name)
        if (row := _first_mismatch(left, right)) is not None:
            return f"value of {name.partition(':')[2]}: {_show(left, row)} instead of {_show(right, row)}"
    return None


def _sorted(table: pa.Table) -> pa.Table:
    """`table` in a canonical row order; its names get their position as prefix, since names may repeat."""
    table = table.rename_columns([f"{position}:{name}" for position, name in enumerate(table.column_names)])
    keys = sorted(table.column_names, key=lambda name: pa.types.is_floating(table.schema.field(name).type))
    return table.take(pc.sort_indices(table, sort_keys=[(key, "ascending") for key in keys]))


def _not_among(actual: pa.Table, expected: pa.Table) -> str | None:
    """The first row of `actual` that has no partner of its own in `expected`, which has more rows."""
    inexact = [position for position, type_ in enumerate(expected.schema.types) if pa.types.is_floating(type_)]
    available: dict[tuple, list[tuple]] = defaultdict(list)
    for row in _rows(expected):
        available[_exact_part(row, inexact)].append(row)
    for row in _rows(actual):
        candidates = available[_exact_part(row, inexact)]
        found = next((one for one in candidates if all(_near(row[at], one[at]) for at in inexact)), None)
        if found is None:
            return f"row is not in the answer without LIMIT: {row}"
        candidates.remove(found)
    return None


def _rows(table: pa.Table) -> list[tuple]:
    if table.num_columns == 0:
        return [()] * table.num_rows
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _exact_part(row: tuple, inexact: list[int]) -> tuple:
    return tuple(value for position, value in enumerate(row) if position not in inexact)


def _near(left: float | None, right: float | None) -> bool:
    if left is None or right is None:
        return left is right
    return (math.isnan(left) and math.isnan(right)) or math.isclose(left, right, rel_tol=RELATIVE)


def _show(column: pa.ChunkedArray, row: int) -> str:
    value = column[row].as_py()
    return "NULL" if value is None else repr(value)
