"""Versions, snapshots and commits, in memory and in a directory alike."""

from __future__ import annotations

import os
import threading

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpudb.catalog import Defaults, Schema, View, definition_key
from gpudb.errors import InterfaceError, OperationalError, ReadOnlyError, StorageError
from gpudb.storage import arrow
from gpudb.storage.column import ALIGNMENT
from gpudb.storage.database import Database
from gpudb.storage.table import TableBuilder, TableVersion, table_from_arrow
from tests.storage.faulty import Recording, Unsynced
from tests.storage.tables import arrow_tables, same
from tests.storage.test_round_trip import check_invariants


@pytest.fixture(params=["memory", "directory"])
def database(request, tmp_path):
    path = ":memory:" if request.param == "memory" else tmp_path / "db"
    with Database(path, file_system=Unsynced()) as opened:
        yield opened


def numbers(*values: int | None) -> TableVersion:
    return table_from_arrow("t", pa.table({"n": pa.array(values, pa.int64())}))


def append(version: TableVersion, table: pa.Table, row_group_rows: int = 4096) -> TableVersion:
    builder = TableBuilder(version.columns, row_group_rows=row_group_rows, previous=version)
    builder.append(table)
    return builder.finish(version.name)


def test_a_snapshot_keeps_its_rows_whatever_is_committed_later(database):
    empty = database.snapshot()
    first = database.commit({"t": numbers(1, 2)}, empty.version)
    second = database.commit({"t": append(first["t"], pa.table({"n": [3]}))}, first.version)
    third = database.commit({"t": None}, second.version)
    assert len(empty) == 0 and list(third) == []
    assert first["T"].to_arrow()["n"].to_pylist() == [1, 2]
    assert second["t"].to_arrow()["n"].to_pylist() == [1, 2, 3]
    assert database.snapshot() is third
    assert [empty.version, first.version, second.version, third.version] == [1, 2, 3, 4]


def test_a_commit_changes_all_its_tables_at_once(database):
    base = database.commit({"a": numbers(1).renamed("a"), "b": numbers(2).renamed("b")}, 1)
    after = database.commit({"a": None, "c": base["a"].renamed("c")}, base.version)
    assert sorted(after) == ["b", "c"] and after["c"].to_arrow()["n"].to_pylist() == [1]


def test_names_are_found_in_any_case_and_shown_as_written(database):
    snapshot = database.commit({"Flüge": numbers(1).renamed("Flüge")}, 1)
    assert list(snapshot) == ["Flüge"] and "FLÜGE" in snapshot and 3 not in snapshot
    assert snapshot["flüge"].name == "Flüge"


def test_a_change_of_an_outdated_table_is_refused(database):
    base = database.commit({"t": numbers(1), "u": numbers(9).renamed("u")}, 1)
    database.commit({"t": numbers(2)}, base.version)
    with pytest.raises(OperationalError, match="another statement changed the table"):
        database.commit({"t": numbers(3)}, base.version)
    database.commit({"u": numbers(8).renamed("u")}, base.version)  # another table is no matter
    assert database.snapshot()["t"].to_arrow()["n"].to_pylist() == [2]


def test_a_closed_database_says_so(database):
    snapshot = database.commit({"t": numbers(1)}, 1)
    database.close()
    database.close()
    with pytest.raises(InterfaceError, match="closed"):
        database.snapshot()
    assert snapshot["t"].to_arrow()["n"].to_pylist() == [1]


def test_threads_that_commit_under_the_lock_lose_nothing(database):
    database.commit({"t": numbers(0)}, 1)

    def work() -> None:
        for _ in range(10):
            with database.write_lock:
                snapshot = database.snapshot()
                database.commit({"t": append(snapshot["t"], pa.table({"n": [1]}))}, snapshot.version)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert database.snapshot()["t"].num_rows == 41


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_what_was_committed_is_there_after_reopening(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("db")
    table = data.draw(arrow_tables(max_rows=30))
    columns = arrow.columns_of(table.schema)
    version = TableVersion.empty("t", columns)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(table)), max_size=3)))
    database = Database(path, file_system=Unsynced())
    reader = Database(path, read_only=True)
    for start, stop in zip([0, *cuts], [*cuts, len(table)], strict=True):
        snapshot = database.snapshot()
        version = append(version, table.slice(start, stop - start))
        version = database.commit({"t": version}, snapshot.version)["t"]
        if data.draw(st.booleans()):
            assert same(reader.snapshot()["t"].to_arrow(), table.slice(0, stop))
        if data.draw(st.booleans()):
            database.close()
            database = Database(path, file_system=Unsynced())
            version = database.snapshot()["t"]
    for opened in (database, reader):
        found = opened.snapshot()["t"]
        assert found.columns == columns and found.layout() == version.layout()
        assert same(found.to_arrow(), table)
        check_invariants(found)
        opened.close()


def test_row_groups_of_a_directory_lie_in_files_that_any_arrow_tool_reads(tmp_path):
    with Database(tmp_path / "db") as database:
        rows = pa.table({"n": np.arange(5000) + 1000, "t": [f"x{i % 7}" for i in range(5000)]})
        database.commit({"t": table_from_arrow("t", rows)}, 1)
    found = {}
    for name in os.listdir(tmp_path / "db" / "data"):
        with pa.memory_map(str(tmp_path / "db" / "data" / name)) as file:
            table = pa.ipc.open_file(file).read_all()
            table.validate(full=True)
            found.update(zip(table.schema.names, [(table.schema, column) for column in table.columns], strict=True))
    schema, stored = found["n"]
    base = int(schema.field("n").metadata[b"gpudb.base"])
    assert int(schema.metadata[b"gpudb.rows"]) == 5000 and len(stored) == 8192
    assert (stored.to_numpy()[:5000].astype(np.int64) + base == rows["n"].to_numpy()).all()
    assert found["text"][1].to_pylist() == [f"x{i}" for i in range(7)]


def test_stored_chunks_are_used_where_they_lie(tmp_path):
    with Database(tmp_path / "db") as database:
        database.commit({"t": table_from_arrow("t", pa.table({"n": [1, 2, None], "x": [1.5, 2.5, 3.5]}))}, 1)
    with Database(tmp_path / "db", read_only=True) as database:
        for chunk in database.snapshot()["t"].row_groups[0].chunks:
            for array in (chunk.stored, chunk.validity):
                if array is not None:
                    assert array.ctypes.data % ALIGNMENT == 0 and not array.flags.writeable and not array.flags.owndata
            chunk.release()
            assert chunk.present() is None or chunk.present().tolist() == [True, True, False]


def test_released_memory_is_read_again_when_needed(tmp_path):
    with Database(tmp_path / "db", file_system=Unsynced()) as database:
        rows = np.arange(1 << 19) % 50_000
        narrow = database.commit({"t": table_from_arrow("t", pa.table({"n": rows}))}, 1)
        wide = append(narrow["t"], pa.table({"n": [1 << 20, 3, 4]}), row_group_rows=1 << 20)
        table = database.commit({"t": wide}, narrow.version)["t"]
        mapped, widened = narrow["t"].row_groups[0].chunks[0], table.row_groups[0].chunks[0]
        assert (mapped.dtype, widened.dtype) == (np.uint16, np.uint32)
        for _ in range(2):
            assert np.array_equal(widened.values(), rows) and np.array_equal(mapped.values(), rows)
            before = resident_bytes()
            table.release()
            assert widened._buffers is None
            assert before - resident_bytes() > 900_000, "two bytes a row were mapped"


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_opening_reads_no_rows(tmp_path):
    with Database(tmp_path / "db") as database:
        database.commit({"t": table_from_arrow("t", pa.table({"n": [1, 2], "s": ["a", "b"]}))}, 1)
    with Database(tmp_path / "db") as database:
        table = database.snapshot()["t"]
        assert table.layout().layouts[1].distinct == 2 and table.num_rows == 2 and table.nbytes > 0
        assert not table.dictionaries[1].is_loaded
        assert table.row_groups[0].chunks[0]._buffers is None


def test_an_append_leaves_the_finished_row_groups_files_alone(tmp_path):
    with Database(tmp_path / "db", file_system=Unsynced()) as database:
        first = database.commit({"t": table_from_arrow("t", pa.table({"n": np.arange(70_000)}))}, 1)
        before = set(os.listdir(tmp_path / "db" / "data"))
        more = append(first["t"], pa.table({"n": [69_999]}), row_group_rows=1 << 20)
        database.commit({"t": more}, first.version)
        after = set(os.listdir(tmp_path / "db" / "data"))
    assert len(before) == len(after) == 2 and len(before & after) == 1


def test_a_wider_append_widens_what_is_read_and_not_what_is_stored(tmp_path):
    with Database(tmp_path / "db", file_system=Unsynced()) as database:
        first = database.commit({"t": table_from_arrow("t", pa.table({"n": np.arange(65_536) % 200}))}, 1)
        wide = append(first["t"], pa.table({"n": pa.array([1 << 20, 3, 4, None])}), row_group_rows=1 << 20)
        second = database.commit({"t": wide}, first.version)
        assert [group.chunks[0].dtype for group in second["t"].row_groups] == [np.uint32, np.uint32]
    with Database(tmp_path / "db", read_only=True) as database:
        table = database.snapshot()["t"]
        check_invariants(table)
        assert table.layout() == second["t"].layout()
        assert table.to_arrow()["n"].to_pylist() == [*(np.arange(65_536) % 200).tolist(), 1 << 20, 3, 4, None]
        assert database.snapshot()["t"] is table


def test_many_appends_make_few_dictionary_pieces(tmp_path):
    columns = arrow.columns_of(pa.schema([("s", pa.string())]))
    with Database(tmp_path / "db", file_system=Unsynced()) as database:
        version = TableVersion.empty("t", columns)
        for number in range(100):
            version = append(version, pa.table({"s": [f"text {number}"]}))
            version = database.commit({"t": version}, database.snapshot().version)["t"]
        assert len(os.listdir(tmp_path / "db" / "data")) <= 1 + 7
    with Database(tmp_path / "db") as database:
        assert database.snapshot()["t"].to_arrow()["s"].to_pylist() == [f"text {number}" for number in range(100)]


def test_a_replaced_table_gets_a_dictionary_of_its_own(tmp_path):
    def texts(*values: str) -> TableVersion:
        return table_from_arrow("t", pa.table({"s": values}))

    with Database(tmp_path / "db") as database, Database(tmp_path / "db", read_only=True) as reader:
        for values in (["a", "b", "c"], ["b", "z"], ["b", "q", "z"]):
            database.commit({"t": texts(*values)}, database.snapshot().version)
            assert reader.snapshot()["t"].to_arrow()["s"].to_pylist() == values


def test_an_old_version_can_be_committed_again(tmp_path):
    with Database(tmp_path / "db") as database:
        old = database.commit({"t": table_from_arrow("t", pa.table({"s": ["a", "b"]}))}, 1)
        newer = database.commit({"t": append(old["t"], pa.table({"s": ["c"]}))}, old.version)
        database.commit({"t": old["t"]}, newer.version)
    with Database(tmp_path / "db") as database:
        assert database.snapshot()["t"].to_arrow()["s"].to_pylist() == ["a", "b"]


def test_a_version_of_one_database_can_be_committed_to_another(tmp_path):
    with Database(tmp_path / "one") as one, Database(tmp_path / "two") as two:
        snapshot = one.commit({"t": numbers(5, None, 7)}, 1)
        two.commit({"t": snapshot["t"]}, 1)
    with Database(tmp_path / "two") as two:
        assert two.snapshot()["t"].to_arrow()["n"].to_pylist() == [5, None, 7]


def test_staged_row_groups_are_removed_unless_they_are_committed(tmp_path):
    columns = arrow.columns_of(pa.schema([("n", pa.int64())]))
    with Database(tmp_path / "db", file_system=Unsynced()) as database:
        for commit in (False, True):
            with database.staging() as staging:
                builder = TableBuilder(columns, row_group_rows=4096, sink=staging.sink("t", columns))
                builder.append(pa.table({"n": np.arange(10_000)}))
                assert len(os.listdir(tmp_path / "db" / "data")) == 2
                if commit:
                    database.commit({"t": builder.finish("t")}, 1)
            assert len(os.listdir(tmp_path / "db" / "data")) == (3 if commit else 0)
    with Database(tmp_path / "db", read_only=True) as database:
        assert database.snapshot()["t"].to_arrow()["n"].to_pylist() == list(range(10_000))


def test_text_that_is_staged_gets_ranks_for_what_the_first_row_group_holds(tmp_path):
    columns = arrow.columns_of(pa.schema([("s", pa.string())]))
    words = [f"w{number * 7919 % 4096:04d}" for number in range(4096)]
    with Database(tmp_path / "db", file_system=Unsynced()) as database, database.staging() as staging:
        builder = TableBuilder(columns, row_group_rows=4096, sink=staging.sink("t", columns))
        for start in range(0, 4096, 1000):
            builder.append(pa.table({"s": words[start : start + 1000]}))
        builder.append(pa.table({"s": ["a later one", None]}))
        database.commit({"t": builder.finish("t")}, 1)
    with Database(tmp_path / "db") as database:
        table = database.snapshot()["t"]
        assert table.dictionaries[0].sorted_count == 4096 and len(table.dictionaries[0]) == 4097
        assert table.to_arrow()["s"].to_pylist() == [*words, "a later one", None]


def test_a_commit_is_acknowledged_only_when_everything_is_on_disk(tmp_path):
    recording = Recording(str(tmp_path))
    with Database(tmp_path / "db", file_system=recording) as database:
        recording.operations.clear()
        database.commit({"t": numbers(1, 2)}, 1)
    steps = [(kind, os.path.basename(os.path.dirname(name)) or name) for kind, name, _ in recording.operations]
    steps = [(kind, folder) for kind, folder in steps if kind != "remove"]
    assert steps == [
        ("write", "tmp"),
        ("sync file", "tmp"),
        ("link", "data"),
        ("sync folder", "db"),
        ("write", "tmp"),
        ("sync file", "tmp"),
        ("link", "manifest"),
        ("sync folder", "db"),
    ]
    assert [name for kind, name, _ in recording.operations if kind == "sync folder"] == ["db/data", "db/manifest"]


def test_files_and_folders_are_private(tmp_path):
    with Database(tmp_path / "db") as database:
        database.commit({"t": numbers(1, 2)}, 1)
    for folder, _, files in os.walk(tmp_path / "db"):
        assert os.stat(folder).st_mode & 0o777 == 0o700
        assert all(os.stat(os.path.join(folder, name)).st_mode & 0o777 == 0o600 for name in files)


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(StorageError, match="not a gpudb database"):
        Database(tmp_path)
    assert os.listdir(tmp_path) == ["notes.txt"]


def test_a_file_is_not_a_database(tmp_path):
    (tmp_path / "file").write_text("a,b")
    with pytest.raises(StorageError, match="this is a file"):
        Database(tmp_path / "file")


def test_reading_needs_a_database(tmp_path):
    with pytest.raises(StorageError, match="no database to read"):
        Database(tmp_path / "nothing", read_only=True)
    assert not (tmp_path / "nothing").exists()
    with pytest.raises(InterfaceError, match="in memory"):
        Database(read_only=True)


def test_a_read_only_database_takes_no_commit(tmp_path):
    Database(tmp_path / "db").close()
    with Database(tmp_path / "db", read_only=True) as database:
        with pytest.raises(ReadOnlyError, match="reading only"):
            database.commit({"t": numbers(1)}, 1)
        assert database.read_only


def test_views_and_schemas_are_kept_with_the_version(tmp_path):
    view, schema, defaults = View("Late", ("a",), "SELECT n FROM t"), Schema("S"), Defaults("T", (("N", "1 + 1"),))
    keys = {definition_key(one): one for one in (view, schema, defaults)}
    with Database(tmp_path / "db") as database:
        base = database.commit({"t": numbers(1)}, 1)
        after = database.commit({}, base.version, keys)
        assert base.definitions == {} and after.definitions == keys
    with Database(tmp_path / "db") as database, Database(tmp_path / "db", read_only=True) as reader:
        assert database.snapshot().definitions == reader.snapshot().definitions == keys
        for number in range(70):  # past the next full manifest
            database.commit({"t": numbers(number)}, database.version)
        last = database.commit({"t": None}, database.version, {definition_key(view): None})
        assert last.definitions == reader.snapshot().definitions == {definition_key(schema): schema}
    with Database(tmp_path / "db") as database:
        assert database.snapshot().definitions == last.definitions and list(database.snapshot()) == []


def test_a_manifest_without_views_is_one_that_older_readers_take(tmp_path):
    with Database(tmp_path / "db") as database:
        database.commit({"t": numbers(1)}, 1)
        database.commit({}, 2, {"v": View("v", (), "SELECT 1")})
        database.commit({}, 3, {"v": None})
    heads = [path.read_bytes().split()[1] for path in sorted((tmp_path / "db" / "manifest").iterdir())]
    assert heads == [b"1", b"1", b"2", b"1"]


def test_a_change_of_an_outdated_view_is_refused(database):
    database.commit({}, 1, {"v": View("v", (), "SELECT 1")})
    with pytest.raises(OperationalError, match="another statement changed"):
        database.commit({}, 1, {"v": None})
    assert list(database.snapshot().definitions) == ["v"]
