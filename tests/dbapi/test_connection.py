"""Connections: opening, sharing, settings, closing, and what `import gpudb` costs."""

import gc
import subprocess
import sys

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpudb


def test_connect_without_arguments_opens_a_database_of_its_own_in_memory():
    with gpudb.connect() as one, gpudb.connect() as other:
        one.execute("CREATE TABLE t (a INTEGER)")
        with pytest.raises(gpudb.ProgrammingError):
            other.execute("SELECT * FROM t")


def test_connections_to_one_directory_see_the_same_tables(tmp_path):
    path = tmp_path / "database"
    with gpudb.connect(path) as one, gpudb.connect(str(path)) as other:
        one.execute("CREATE TABLE t AS SELECT 42 AS a")
        assert other.execute("SELECT a FROM t").fetchall() == [(42,)]


def test_a_directory_can_be_reopened_after_its_last_connection_closed(tmp_path):
    path = tmp_path / "database"
    with gpudb.connect(path) as connection:
        connection.execute("CREATE TABLE t AS SELECT 42 AS a")
    with gpudb.connect(path, read_only=True) as connection:
        assert connection.execute("SELECT a FROM t").fetchall() == [(42,)]


def test_a_directory_open_for_writing_cannot_be_opened_read_only_by_the_same_process(tmp_path):
    path = tmp_path / "database"
    with (
        gpudb.connect(path),
        pytest.raises(gpudb.OperationalError, match="read_only"),
        gpudb.connect(path, read_only=True),
    ):
        pass


def test_a_forgotten_connection_releases_its_database(tmp_path):
    path = tmp_path / "database"
    connection = gpudb.connect(path)
    connection.execute("CREATE TABLE t AS SELECT 42 AS a")
    del connection
    gc.collect()
    with gpudb.connect(path, read_only=True) as reader:  # an open writer would refuse this
        assert reader.execute("SELECT a FROM t").fetchall() == [(42,)]


def test_the_context_manager_closes_the_connection_and_accepts_one_closed_inside():
    with gpudb.connect() as connection:
        cursor = connection.execute("SELECT 1")
    assert connection.closed
    with pytest.raises(gpudb.InterfaceError, match="closed"):
        cursor.fetchone()
    with gpudb.connect() as connection:
        connection.close()


def test_commit_and_rollback_outside_a_transaction_change_nothing():
    with gpudb.connect() as connection:
        assert connection.autocommit
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
        connection.rollback()
        connection.commit()
        assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_config_is_applied_before_the_first_statement():
    with gpudb.connect(config={"device": "cpu", "threads": 1}) as connection:
        assert connection.session.settings["device"] == "cpu"
        assert int(connection.session.settings["threads"]) == 1


def test_a_wrong_name_in_config_is_an_error_and_releases_the_database(tmp_path):
    with pytest.raises(gpudb.Error):
        gpudb.connect(tmp_path / "database", config={"no_such_setting": 1})
    with pytest.raises(gpudb.InterfaceError, match="not the name of a setting"):
        gpudb.connect(tmp_path / "database", config={"device = 'cpu'; SELECT": 1})
    gpudb.connect(tmp_path / "database").close()


def test_an_address_that_is_no_servers_is_refused_by_name():
    with pytest.raises(gpudb.InterfaceError, match="not the address of a server: http"):
        gpudb.connect("http://localhost:1234")
    with pytest.raises(gpudb.OperationalError, match="cannot be reached"):
        gpudb.connect("grpc://localhost:1")
    with pytest.raises(gpudb.InterfaceError, match="only servers ask for this: token"):
        gpudb.connect(token="x")


def test_a_registered_table_is_read_under_its_name_until_unregistered():
    with gpudb.connect() as connection:
        connection.register("numbers", pa.table({"a": [1, 2, 3]}))
        assert connection.execute("SELECT sum(a) FROM numbers").fetchone() == (6,)
        connection.unregister("numbers")
        with pytest.raises(gpudb.ProgrammingError):
            connection.execute("SELECT sum(a) FROM numbers")


def test_a_registered_relation_hides_a_table_of_its_name_as_in_duckdb():
    rows = {}
    for engine in (gpudb.connect(), duckdb.connect()):
        with engine as connection:
            connection.execute("CREATE TABLE Numbers (a INTEGER)")
            connection.execute("INSERT INTO numbers VALUES (1), (2)")
            found = [connection.execute("SELECT * FROM numbers").fetchall()]
            for frame in (pa.table({"a": [10, 20, 30]}), pa.table({"a": ["x"], "b": [None]})):
                connection.register("numbers", frame)
                found.append(connection.execute("SELECT * FROM numbers").fetchall())
            for statement in ("DROP TABLE numbers", "DROP TABLE IF EXISTS numbers", "INSERT INTO numbers VALUES ('y')"):
                with pytest.raises((gpudb.ProgrammingError, duckdb.Error)):
                    connection.execute(statement)
            connection.execute("CREATE OR REPLACE TABLE numbers AS SELECT a || '!' AS a FROM numbers")
            found.append(connection.execute("SELECT * FROM numbers").fetchall())
            connection.unregister("numbers")
            found.append(connection.execute("SELECT * FROM numbers").fetchall())
            rows[type(connection)] = found
    assert rows[gpudb.Connection] == rows[duckdb.DuckDBPyConnection]


def test_pandas_and_polars_frames_can_be_registered():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    with gpudb.connect() as connection:
        connection.register("from_pandas", pandas.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"]}))
        connection.register("from_polars", polars.DataFrame({"a": [4, 5], "b": ["x", None]}))
        assert connection.execute("SELECT sum(a), count(b) FROM from_pandas").fetchone() == (6, 2)
        assert connection.execute("SELECT sum(a), count(b) FROM from_polars").fetchone() == (9, 1)


def test_pep_249_names_are_on_the_module():
    assert (gpudb.apilevel, gpudb.threadsafety, gpudb.paramstyle) == ("2.0", 2, "qmark")
    for name in gpudb.__all__:
        assert getattr(gpudb, name) is not None
    with pytest.raises(AttributeError):
        gpudb.no_such_name  # noqa: B018 - reading it is the test
    assert issubclass(gpudb.ProgrammingError, gpudb.DatabaseError)


def modules_after(statement: str) -> set[str]:
    """Top-level modules loaded in a fresh interpreter by `statement`."""
    program = f"{statement}\nimport sys; print(' '.join({{name.partition('.')[0] for name in sys.modules}}))"
    return set(
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    )


def test_import_gpudb_loads_no_more_than_it_needs():
    heavy = {"cupy", "numba", "pandas", "duckdb", "polars", "sqlglot", "prompt_toolkit", "pygments", "rich"}
    assert not heavy & modules_after("import gpudb")
    assert not heavy & modules_after("import gpudb; gpudb.connect().cursor(); gpudb.STRING, gpudb.Error")


def test_unsigned_64_bit_columns_are_ubigint_from_arrow_as_from_files(tmp_path):
    fits = pa.table({"u": pa.array([2**64 - 1, None, 0], pa.uint64())})
    pq.write_table(fits, tmp_path / "fits.parquet")
    with gpudb.connect() as connection:
        connection.register("t", fits)
        asked = "SELECT u, typeof(u) FROM "
        from_arrow = connection.execute(asked + "t").fetchall()
        assert from_arrow == connection.execute(f"{asked}'{tmp_path / 'fits.parquet'}'").fetchall()
        assert from_arrow == [(2**64 - 1, "UBIGINT"), (None, "UBIGINT"), (0, "UBIGINT")]


def test_begin_commit_and_rollback_do_what_they_do_in_duckdb():
    outcomes = {}
    for engine in (gpudb.connect(), duckdb.connect()):
        with engine as connection:
            connection.execute("CREATE TABLE t AS SELECT 1 AS a")
            found = [connection.begin() is connection]
            connection.execute("INSERT INTO t VALUES (2)")
            connection.rollback()
            found.append(connection.execute("SELECT a FROM t").fetchall())
            connection.begin().execute("INSERT INTO t VALUES (?)", [3])
            connection.executemany("INSERT INTO t VALUES (?)", [[4], [5]])
            connection.commit()
            connection.commit()  # nothing is open: nothing to do
            found.append(connection.execute("SELECT a FROM t").fetchall())
            connection.begin()
            for statement in ("SELECT nothing", "SELECT 1"):
                with pytest.raises((gpudb.Error, duckdb.Error)):
                    connection.execute(statement)
            connection.commit()
            with pytest.raises((gpudb.OperationalError, duckdb.OperationalError), match="no transaction is"):
                connection.execute("COMMIT")
            outcomes[type(connection)] = found
    assert outcomes[gpudb.Connection] == outcomes[duckdb.DuckDBPyConnection]


def test_cursors_of_a_connection_share_its_transaction_and_other_connections_do_not(tmp_path):
    path = tmp_path / "database"
    with gpudb.connect(path) as one, gpudb.connect(path) as other:
        one.execute("CREATE TABLE t (a INTEGER)")
        cursor, second = one.cursor(), one.cursor()
        assert not one.in_transaction
        cursor.execute("BEGIN")
        second.execute("INSERT INTO t VALUES (1)")
        assert one.in_transaction and one.autocommit and not other.in_transaction
        assert cursor.execute("SELECT count(*) FROM t").fetchone() == (1,)
        assert other.execute("SELECT count(*) FROM t").fetchone() == (0,)
        one.commit()
        assert not one.in_transaction
        assert other.execute("SELECT count(*) FROM t").fetchone() == (1,)


@pytest.mark.parametrize("leave", ["close", "with", "forget"])
def test_leaving_a_connection_rolls_its_transaction_back(tmp_path, leave):
    path = tmp_path / "database"
    with gpudb.connect(path) as kept:
        kept.execute("CREATE TABLE t (a INTEGER)")
        connection = gpudb.connect(path)
        connection.begin().execute("INSERT INTO t SELECT * FROM range(200000)")  # enough to lie on disk before COMMIT
        connection.execute("CREATE TABLE u (a INTEGER)")
        assert list((path / "data").iterdir())
        if leave == "with":
            with connection:
                pass
        elif leave == "close":
            connection.close()
        else:
            del connection
            gc.collect()
        assert kept.session.tables() == ["t"]
        assert kept.execute("SELECT count(*) FROM t").fetchone() == (0,)
        assert not list((path / "data").iterdir())


def test_several_statements_in_one_text_may_hold_a_transaction():
    with gpudb.connect() as connection:
        connection.execute("CREATE TABLE t (a INTEGER); BEGIN; INSERT INTO t VALUES (1); COMMIT; BEGIN; DELETE FROM t")
        connection.rollback()
        assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]
        with pytest.raises(gpudb.ProgrammingError):
            connection.execute("BEGIN; INSERT INTO t VALUES (2); SELECT nothing; COMMIT")
        assert connection.in_transaction
        connection.rollback()
        assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]
