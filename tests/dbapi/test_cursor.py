"""Cursors: running statements, reading rows and Arrow, type objects and Python values."""

import datetime
import uuid
import zoneinfo
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

import gpudb


@pytest.fixture
def connection():
    with gpudb.connect() as connection:
        yield connection


@pytest.fixture
def numbers(connection):
    """A cursor whose connection has table numbers: a 0..9999, b 'text a', NULL for every tenth row."""
    values = list(range(10_000))
    connection.register("source", pa.table({"a": values, "b": [None if v % 10 == 0 else f"text {v}" for v in values]}))
    return connection.execute("CREATE TABLE numbers AS SELECT * FROM source")


def test_a_cursor_iterates_over_its_rows(numbers):
    assert [a for (a,) in numbers.execute("SELECT a FROM numbers WHERE a < 5")] == [0, 1, 2, 3, 4]


def test_row_by_row_fetches_and_arrow_continue_where_the_last_one_ended(numbers):
    cursor = numbers.execute("SELECT a, b FROM numbers")
    assert cursor.fetchone() == (0, None)
    assert cursor.fetchmany(2) == [(1, "text 1"), (2, "text 2")]
    assert cursor.rownumber == 3
    table = cursor.fetch_arrow_table()
    assert table.num_rows == 9997
    assert table.column("a")[0].as_py() == 3
    assert cursor.fetchone() is None
    assert cursor.rownumber == 10_000


def test_fetch_record_batch_gives_batches_of_the_size_asked_for(numbers):
    reader = numbers.execute("SELECT a FROM numbers").fetch_record_batch(3000)
    sizes = [batch.num_rows for batch in reader]
    assert sum(sizes) == 10_000
    assert max(sizes) <= 3000
    with pytest.raises(gpudb.InterfaceError):
        numbers.execute("SELECT a FROM numbers").fetch_record_batch(0)


def test_a_cursor_is_an_arrow_stream(numbers):
    table = pa.table(numbers.execute("SELECT a FROM numbers WHERE a < 3"))
    assert table.column(0).to_pylist() == [0, 1, 2]


def test_frames_hold_all_rows(numbers):
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    frame = numbers.execute("SELECT a, b FROM numbers").fetch_df()
    assert (len(frame), frame["a"].sum(), frame["b"].isna().sum()) == (10_000, 49_995_000, 1000)
    assert numbers.execute("SELECT a FROM numbers").pl().height == 10_000


def test_fetch_df_gives_sums_and_decimals_as_float64(numbers):
    pytest.importorskip("pandas")
    frame = numbers.execute("SELECT sum(a) AS s, CAST(1.5 AS DECIMAL(4,1)) AS d FROM numbers").fetch_df()
    assert frame.dtypes.astype(str).to_dict() == {"s": "float64", "d": "float64"}
    assert frame.iloc[0].tolist() == [49_995_000.0, 1.5]


def test_an_arrow_table_carries_the_receipt(numbers):
    table = numbers.execute("SELECT sum(a) FROM numbers").fetch_arrow_table()
    assert b"gpudb.receipt" in table.schema.metadata
    assert numbers.receipt["device"] in ("cpu", "reference", "cuda", "gpu")


def test_fetching_without_a_result_is_an_interface_error(connection):
    cursor = connection.cursor()
    for fetch in (cursor.fetchone, cursor.fetchall, cursor.fetch_arrow_table, lambda: cursor.receipt):
        with pytest.raises(gpudb.InterfaceError, match="no result"):
            fetch()
    cursor.execute("CREATE TABLE t (a INTEGER)")
    with pytest.raises(gpudb.InterfaceError, match="returned no rows"):
        cursor.fetchone()


def test_a_closed_cursor_refuses_everything(connection):
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    for use in (cursor.fetchone, cursor.nextset, lambda: cursor.execute("SELECT 1"), lambda: cursor.setinputsizes([1])):
        with pytest.raises(gpudb.InterfaceError, match="the cursor is closed"):
            use()


@pytest.mark.parametrize(
    ("expression", "type_object", "value"),
    [
        ("CAST(1 AS TINYINT)", "NUMBER", 1),
        ("CAST(9223372036854775807 AS BIGINT)", "NUMBER", 9223372036854775807),
        ("CAST(12.50 AS DECIMAL(10,2))", "NUMBER", Decimal("12.50")),
        ("CAST(0.5 AS DOUBLE)", "NUMBER", 0.5),
        ("true", "NUMBER", True),
        ("'text'", "STRING", "text"),
        ("DATE '2013-07-04'", "DATETIME", datetime.date(2013, 7, 4)),
        ("TIMESTAMP '2013-07-04 05:06:07.25'", "DATETIME", datetime.datetime(2013, 7, 4, 5, 6, 7, 250_000)),
        ("CAST(NULL AS INTEGER)", "NUMBER", None),
    ],
)
def test_values_are_python_objects_and_types_equal_their_type_object(connection, expression, type_object, value):
    cursor = connection.execute(f"SELECT {expression} AS x")
    name, type_code, *_ = cursor.description[0]
    assert name == "x"
    equal = [n for n in ("STRING", "BINARY", "NUMBER", "DATETIME", "ROWID") if type_code == getattr(gpudb, n)]
    assert equal == [type_object]
    assert getattr(gpudb, type_object) == type_code
    (fetched,) = cursor.fetchone()
    assert fetched == value
    assert type(fetched) is type(value)


def test_description_has_the_precision_and_scale_of_decimals_only(connection):
    decimal, integer = connection.execute("SELECT CAST(1 AS DECIMAL(10,2)) AS d, 1 AS i").description
    assert decimal[4:6] == (10, 2)
    assert integer[2:] == (None, None, None, None, None)


def test_the_sum_of_integers_is_an_int(numbers):
    (total,) = numbers.execute("SELECT sum(a) FROM numbers").fetchone()
    assert (total, type(total)) == (49_995_000, int)


def test_a_year_that_python_cannot_hold_is_a_data_error(connection):
    with pytest.raises(gpudb.DataError, match="column d"):
        connection.execute("SELECT DATE '12345-01-01' AS d").fetchone()


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        ("SELECT ? + 1, ?", [41, "it's"]),
        ("SELECT $1 + 1, $2", (41, "it's")),
        ("SELECT $number + 1, $text", {"number": 41, "text": "it's"}),
    ],
)
def test_parameters_come_by_position_and_by_name(connection, sql, parameters):
    assert connection.execute(sql, parameters).fetchone() == (42, "it's")


def test_text_in_place_of_a_list_of_parameters_is_an_interface_error(connection):
    with pytest.raises(gpudb.InterfaceError, match="list, a tuple or a mapping"):
        connection.execute("SELECT ?", "x")


def test_several_statements_all_run_and_the_first_result_set_is_current(connection):
    cursor = connection.execute("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (2); SELECT sum(a) FROM t")
    assert cursor.fetchall() == [(3,)]
    cursor = connection.execute("DROP TABLE t; CREATE TABLE u (a INTEGER);")
    assert cursor.description is None
    with pytest.raises(gpudb.InterfaceError, match="single statement"):
        connection.execute("SELECT ?; SELECT 2", [1])


def test_an_error_stops_the_statements_after_it(connection):
    with pytest.raises(gpudb.ProgrammingError):
        connection.execute(
            "CREATE TABLE before (a INTEGER); SELECT no_such_column FROM before; CREATE TABLE after (a INTEGER)"
        )
    assert connection.session.tables() == ["before"]


def test_a_semicolon_inside_text_parts_nothing(connection):
    assert connection.execute("SELECT 'a;b' -- ;\n").fetchall() == [("a;b",)]


def test_executemany_of_an_insert_counts_all_rows_and_inserts_all_or_none(connection):
    connection.execute("CREATE TABLE t (a INTEGER, b VARCHAR, d DATE)")
    rows = [(i, None if i % 3 == 0 else f"text {i}", datetime.date(2013, 1, 1)) for i in range(1000)]
    cursor = connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    assert cursor.rowcount == 1000
    assert connection.execute("SELECT * FROM t").fetchall() == rows
    with pytest.raises(gpudb.DataError):
        connection.executemany("INSERT INTO t (a) VALUES (?)", [(1,), (2**40,)])
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (1000,)


def test_executemany_takes_columns_of_nulls_mixed_types_and_mappings(connection):
    connection.execute("CREATE TABLE t (a DOUBLE, b VARCHAR)")
    connection.executemany("INSERT INTO t VALUES (?, ?)", [(1.5, None), (2.5, None)])
    connection.executemany("INSERT INTO t VALUES (?, ?)", [(1, "x"), (2.25, "y")])
    connection.executemany("INSERT INTO t VALUES ($a, $b)", [{"a": 3, "b": "z"}, {"a": 4, "b": None}])
    assert connection.executemany("INSERT INTO t VALUES (?, ?)", []).rowcount == 0
    expected = [(1.5, None), (2.5, None), (1.0, "x"), (2.25, "y"), (3.0, "z"), (4.0, None)]
    assert connection.execute("SELECT * FROM t").fetchall() == expected


def test_executemany_refuses_a_query(connection):
    with pytest.raises(gpudb.InterfaceError, match="return nothing"):
        connection.executemany("SELECT ?", [[1], [2]])


def test_errors_show_the_place_in_the_statement(connection):
    connection.execute("CREATE TABLE t (delay INTEGER)")
    with pytest.raises(gpudb.ProgrammingError) as caught:
        connection.execute("SELECT dela FROM t")
    assert "SELECT dela FROM t\n         ^^^^" in str(caught.value)


def test_returning_gives_rows_as_a_query_does_and_the_change_is_there_before_they_are_read():
    rows = {}
    for engine in (gpudb.connect(), duckdb.connect()):
        with engine as connection:
            connection.execute("CREATE TABLE t (i INTEGER, s VARCHAR)")
            cursor = connection.cursor()
            cursor.execute("INSERT INTO t VALUES (1, 'one'), (2, 'two') RETURNING i, upper(s) AS s")
            assert [column[0] for column in cursor.description] == ["i", "s"]
            other = connection.cursor()
            found = [other.execute("SELECT count(*) FROM t").fetchone(), cursor.fetchall()]
            found.append(connection.execute("UPDATE t SET i = i + 10 WHERE s = 'two' RETURNING *").fetchall())
            found.append(connection.execute("DELETE FROM t RETURNING i").fetchall())
            rows[type(connection)] = found
    assert rows[gpudb.Connection] == rows[duckdb.DuckDBPyConnection]


def test_returning_of_many_rows_over_several_row_groups(tmp_path):
    with gpudb.connect(tmp_path / "db") as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS i, 'word ' || (range % 7) AS s FROM range(150000)")
        cursor = connection.execute("DELETE FROM t WHERE i % 3 = 1 RETURNING i, s")
        table = cursor.fetch_arrow_table()
        numbers = range(1, 150_000, 3)
        assert table["i"].to_pylist() == list(numbers)
        assert table["s"].to_pylist() == [f"word {number % 7}" for number in numbers]
        assert cursor.rowcount == -1
        cursor = connection.execute("INSERT INTO t SELECT i + 1, s || '!' FROM t RETURNING s, i")
        assert cursor.fetch_arrow_table().num_rows == 100_000
        assert connection.execute("SELECT count(*), count(DISTINCT s) FROM t").fetchone() == (200_000, 14)
        cursor = connection.execute("INSERT INTO t VALUES (?, ?) RETURNING i + ? AS n", [1, "p", 100])
        assert cursor.fetchall() == [(101,)]


def test_executemany_refuses_returning_before_anything_is_changed():
    with gpudb.connect() as connection:
        connection.execute("CREATE TABLE t (i INTEGER, s VARCHAR)")
        with pytest.raises(gpudb.InterfaceError, match="return nothing"):
            connection.executemany("INSERT INTO t VALUES (?, 'x') RETURNING i", [[1], [2]])
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)
        connection.executemany("INSERT INTO t VALUES (?, 'returning')", [[1], [2]])
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (2,)


def test_times_and_moments_are_parameters_and_results() -> None:
    zone = zoneinfo.ZoneInfo("Europe/Berlin")
    moment = datetime.datetime(2021, 7, 1, 12, 30, 15, 250000, zone)
    given = [moment, datetime.time(23, 59, 59, 999999)]
    with gpudb.connect() as ours, duckdb.connect() as theirs:
        ours.execute("SET TimeZone = 'America/New_York'")
        theirs.execute("SET TimeZone = 'America/New_York'")
        sql = "SELECT ? AS a, ? AS b, TIME '24:00:00' AS c, NULL::TIME AS d"
        cursor = ours.execute(sql, given)
        rows = cursor.fetchall()
        assert rows == theirs.execute(sql, given).fetchall() == [(*given, "24:00:00", None)]
        assert rows[0][0].tzinfo == zoneinfo.ZoneInfo("America/New_York")
        assert all(column[1] == gpudb.DATETIME for column in cursor.description)
        with pytest.raises(gpudb.InterfaceError, match="time zone"):
            ours.execute("SELECT ?", [datetime.time(1, 2, tzinfo=zone)])


def test_uuids_are_parameters_arrow_extension_values_and_python_objects() -> None:
    values = [uuid.UUID(int=0), uuid.UUID(int=(1 << 128) - 1), None]
    with gpudb.connect() as connection:
        connection.register("given", pa.table({"u": pa.array([v and v.bytes for v in values], pa.uuid())}))
        rows = connection.execute("SELECT u, [u], typeof(u), u = ? FROM given", [values[1]]).fetchall()
    assert [row[:3] for row in rows] == [(v, [v], "UUID") for v in values]
    assert [row[3] for row in rows] == [False, True, None]
