"""Versions with rows gone, values replaced and columns changed: the rows that Arrow gives, row groups that are kept."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from gpudb.errors import ConversionError
from gpudb.storage.changes import with_column, with_name_of_column, with_values, without_column, without_rows
from gpudb.storage.database import Database
from gpudb.storage.table import TableBuilder, TableVersion
from gpudb.types import BIGINT, DOUBLE, INTEGER, VARCHAR
from tests.storage.faulty import Unsynced
from tests.storage.test_round_trip import check_invariants

COLUMNS = (("n", INTEGER), ("s", VARCHAR), ("x", DOUBLE))
GROUP = 4096
ROWS = 3 * GROUP + 123


def rows_of(rows: int = ROWS) -> pa.Table:
    random = np.random.default_rng(rows)
    return pa.table(
        {
            "n": pa.array(random.integers(0, 200, rows), pa.int32(), mask=random.random(rows) < 0.1),
            "s": pa.array([f"text {k}" for k in random.integers(0, 300, rows)], mask=random.random(rows) < 0.1),
            "x": pa.array(random.normal(size=rows), mask=random.random(rows) < 0.1),
        }
    )


@pytest.fixture(params=["memory", "directory"])
def database(request, tmp_path):
    path = ":memory:" if request.param == "memory" else tmp_path / "db"
    with Database(path, file_system=Unsynced()) as opened:
        yield opened


def stored(database: Database) -> TableVersion:
    builder = TableBuilder(COLUMNS, row_group_rows=GROUP)
    builder.append(rows_of())
    return database.commit({"t": builder.finish("t")}, database.version)["t"]


def committed(database: Database, version: TableVersion) -> TableVersion:
    """The version as the database has it, and as it is when the database is opened again."""
    found = database.commit({"t": version}, database.version)["t"]
    check_invariants(found)
    if database.path != ":memory:":
        with Database(database.path, read_only=True, file_system=Unsynced()) as again:
            assert again.snapshot()["t"].to_arrow().equals(found.to_arrow())
    return found


def kept(old: TableVersion, new: TableVersion) -> list[bool]:
    """Of each row group: whether it has the chunks, and in a directory the file, that it had."""
    return [
        all(a is b for a, b in zip(before.chunks, after.chunks, strict=True)) and before.file == after.file
        for before, after in zip(old.row_groups, new.row_groups, strict=False)
    ]


CHOICES = {
    "none": [],
    "first": [0],
    "last": [ROWS - 1],
    "edges": [GROUP - 1, GROUP, 2 * GROUP - 1, 2 * GROUP],
    "a whole row group": range(GROUP, 2 * GROUP),
    "all but one": [k for k in range(ROWS) if k != GROUP + 7],
    "all": range(ROWS),
    "every third": range(0, ROWS, 3),
    "behind the first": range(GROUP + 5, ROWS, 7),
}


@pytest.mark.parametrize("name", CHOICES)
def test_rows_go_and_row_groups_before_the_first_stay(database, name):
    table = stored(database)
    gone = np.array(CHOICES[name], np.int64)
    expected = rows_of().filter(pa.array(np.isin(np.arange(ROWS), gone, invert=True)))
    new = committed(database, without_rows(table, gone, row_group_rows=GROUP))
    assert new.to_arrow().equals(expected.combine_chunks())
    untouched = len(table.row_groups) if not len(gone) else int(gone[0]) // GROUP
    assert kept(table, new)[:untouched] == [True] * untouched
    more = TableBuilder(COLUMNS, row_group_rows=GROUP, previous=new)
    more.append(rows_of(500))
    again = committed(database, more.finish("t"))
    assert again.to_arrow().equals(pa.concat_tables([expected, rows_of(500)]).combine_chunks())


@pytest.mark.parametrize("name", CHOICES)
def test_values_are_replaced_and_row_groups_without_them_stay(database, name):
    table = stored(database)
    rows = np.array(CHOICES[name], np.int64)
    numbers = pa.array(rows.astype(np.int32) * 1000, mask=rows % 5 == 0)
    texts = pa.array([f"new {row % 50}" for row in rows], pa.string(), mask=rows % 7 == 0)
    new = committed(
        database, with_values(table, rows, (0, 1), [pa.chunked_array([numbers]), pa.chunked_array([texts])])
    )
    columns = {field: rows_of()[field].to_pylist() for field in ("n", "s", "x")}
    for row, number, text in zip(rows.tolist(), numbers.to_pylist(), texts.to_pylist(), strict=True):
        columns["n"][row], columns["s"][row] = number, text
    assert {field: new.to_arrow()[field].to_pylist() for field in columns} == columns
    touched = {int(row) // GROUP for row in rows}
    same_files = [
        a.file is not None and a.file == b.file for a, b in zip(table.row_groups, new.row_groups, strict=True)
    ]
    for number in range(len(table.row_groups)):
        if number not in touched:
            assert new.row_groups[number].chunks[2] is table.row_groups[number].chunks[2]
            assert database.path == ":memory:" or same_files[number]


def test_a_value_that_does_not_fit_is_an_error(database):
    table = stored(database)
    with pytest.raises(ConversionError, match="column n"):
        with_values(table, np.array([3]), (0,), [pa.chunked_array([pa.array([1 << 40])])])
    assert database.snapshot()["t"].to_arrow().equals(rows_of().combine_chunks())


@pytest.mark.parametrize("value", [None, 7, -(1 << 40)])
def test_a_column_more_and_a_column_less(database, value):
    table = stored(database)
    wide = committed(database, with_column(table, "more", BIGINT, pa.chunked_array([pa.array([value], pa.int64())])))
    more = pa.array([value] * ROWS, pa.int64())
    assert wide.to_arrow().equals(rows_of().append_column("more", more).combine_chunks())
    narrow = committed(database, without_column(wide, 1))
    assert narrow.to_arrow().equals(rows_of().drop_columns("s").append_column("more", more).combine_chunks())


def test_a_text_column_more(database):
    table = with_column(stored(database), "t", VARCHAR, pa.chunked_array([pa.array(["x"])]))
    assert set(committed(database, table).to_arrow()["t"].to_pylist()) == {"x"}


def test_another_name_for_a_column_keeps_all_row_groups(database):
    table = stored(database)
    new = committed(database, with_name_of_column(table, 1, "other"))
    assert kept(table, new) == [True] * len(table.row_groups)
    assert new.to_arrow().equals(rows_of().rename_columns(["n", "other", "x"]).combine_chunks())
    assert new.layout().version != table.layout().version
