"""Statements of clients that nobody here wrote: ADBC's Flight SQL driver, altertable's, and plain Flight."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import altertable_flightsql
import pyarrow as pa
import pyarrow.flight as fl
import pytest

from gpudb.flight_sql import encode, pack, parse, unpack
from gpudb.server.flight import Server

Sql = Callable[..., Any]


def test_a_query_gives_rows(sql: Sql) -> None:
    assert sql("SELECT 6 * 7 AS answer, 'x' AS text") == [(42, "x")]


def test_statements_change_tables_and_say_how_many_rows(sql: Sql) -> None:
    sql("CREATE TABLE changed(a INTEGER, b VARCHAR)")
    assert sql("INSERT INTO changed VALUES (1, 'x'), (2, 'y')") == 2
    assert sql("UPDATE changed SET b = 'z' WHERE a = 1") == 1
    assert sql("SELECT * FROM changed ORDER BY a") == [(1, "z"), (2, "y")]
    assert sql("INSERT INTO changed VALUES (3, 'w') RETURNING a + 1") == [(4,)]
    assert sql("SELECT count(*) FROM changed") == [(3,)]


def test_parameters_are_bound(sql: Sql) -> None:
    assert sql("SELECT ? + 1, $2", (41, "x")) == [(42, "x")]
    assert sql("SELECT ?::VARCHAR", (None,)) == [(None,)]


def test_a_query_runs_once_for_each_bound_row(connect: Callable[..., Any]) -> None:
    with connect().cursor() as cursor:
        cursor.adbc_prepare("SELECT ? * 2 AS double")
        cursor.execute("SELECT ? * 2 AS double", pa.record_batch({"p": [1, 2, 3]}))
        assert cursor.fetchall() == [(2,), (4,), (6,)]


@pytest.mark.parametrize("statement", ["INSERT INTO many VALUES (?, ?)", "INSERT INTO many SELECT ?, ?"])
def test_executemany_inserts_all_rows(connect: Callable[..., Any], statement: str) -> None:
    with connect().cursor() as cursor:
        cursor.execute("CREATE OR REPLACE TABLE many(a INTEGER, b VARCHAR)")
        cursor.executemany(statement, [(1, "x"), (2, "y"), (3, None)])
        cursor.execute("SELECT * FROM many ORDER BY a")
        assert cursor.fetchall() == [(1, "x"), (2, "y"), (3, None)]


def test_executemany_keeps_nothing_of_a_batch_that_fails(connect: Callable[..., Any]) -> None:
    with connect().cursor() as cursor:
        cursor.execute("CREATE OR REPLACE TABLE narrow(a TINYINT)")
        with pytest.raises(Exception, match="OutOfRangeError"):
            cursor.executemany("INSERT INTO narrow SELECT ?", [(1,), (1000,)])
        cursor.execute("SELECT count(*) FROM narrow")
        assert cursor.fetchall() == [(0,)]


def test_a_script_runs_all_its_statements(connect: Callable[..., Any], sql: Sql) -> None:
    with connect().cursor() as cursor:
        cursor.executescript("CREATE TABLE scripted(a INTEGER); INSERT INTO scripted VALUES (1), (2)")
    assert sql("SELECT sum(a)::INTEGER FROM scripted") == [(3,)]


def test_what_a_statement_gives_is_known_before_it_runs(connect: Callable[..., Any]) -> None:
    with connect().cursor() as cursor:
        schema = cursor.adbc_execute_schema("SELECT 1::BIGINT AS a, 'x' AS b")
        assert schema == pa.schema([("a", pa.int64()), ("b", pa.string())])
        assert cursor.adbc_prepare("SELECT ? + ?") == pa.schema([("1", pa.null()), ("2", pa.null())])


def test_an_error_names_its_class_and_place(sql: Sql) -> None:
    with pytest.raises(Exception, match=r"(?s)BindError: column not found: nope.*SELECT nope FROM.*\^\^\^\^"):
        sql("SELECT nope FROM (SELECT 1 AS a)")


def test_show_describe_and_explain_give_rows(sql: Sql) -> None:
    assert sql("DESCRIBE SELECT 1 AS a") == [("a", "INTEGER", "YES", None, None, None)]
    assert sql("SHOW integer_division") == [("False",)]
    assert any("emit" in row[3] for row in sql("EXPLAIN SELECT 1"))


def test_settings_stay_in_a_clients_session(connect: Callable[..., Any]) -> None:
    first, second = connect().cursor(), connect().cursor()
    first.execute("SET integer_division = true")
    for cursor, value in ((first, "True"), (second, "False")):
        cursor.execute("SHOW integer_division")
        assert cursor.fetchall() == [(value,)]


def test_a_client_without_a_session_is_told_that_set_and_begin_need_one(connect: Callable[..., Any]) -> None:
    with connect(cookies=False).cursor() as cursor:
        for statement in ("SET threads = 1", "BEGIN"):
            with pytest.raises(Exception, match="needs a session, and this client keeps no cookies"):
                cursor.execute(statement)


def test_begin_and_rollback_in_sql(sql: Sql) -> None:
    sql("CREATE TABLE undone(a INTEGER)")
    sql("BEGIN")
    sql("INSERT INTO undone VALUES (1)")
    assert sql("SELECT count(*) FROM undone") == [(1,)]
    sql("ROLLBACK")
    assert sql("SELECT count(*) FROM undone") == [(0,)]


def test_transactions_commit_and_roll_back(connect: Callable[..., Any], sql: Sql) -> None:
    sql("CREATE TABLE kept(a INTEGER)")
    connection = connect(autocommit=False)
    count = "SELECT count(*) FROM kept"
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO kept VALUES (1)")
        assert sql(count) == [(0,)]
        connection.commit()
        assert sql(count) == [(1,)]
        cursor.execute("INSERT INTO kept VALUES (2)")
        cursor.execute(count)
        assert cursor.fetchall() == [(2,)]
        connection.rollback()
        cursor.execute(count)  # prepared in the transaction before: it runs in the one that is open now
        assert cursor.fetchall() == [(1,)]


def test_a_second_client_works_as_well(server: Server) -> None:
    with altertable_flightsql.Client("token", server.token, host="127.0.0.1", port=server.port, tls=False) as client:
        client.execute("CREATE TABLE altered(a INTEGER)")
        assert client.execute("INSERT INTO altered VALUES (1), (2)") == 2
        assert client.query("SELECT sum(a)::INTEGER AS s FROM altered").read_all().to_pydict() == {"s": [3]}
        with client.prepare("SELECT a FROM altered WHERE a > ?") as prepared:
            assert prepared.query(parameters=[1]).read_all().to_pydict() == {"a": [2]}


def test_plain_flight_asks_with_sql_and_gets_a_receipt(flight: fl.FlightClient, options: fl.FlightCallOptions) -> None:
    info = flight.get_flight_info(fl.FlightDescriptor.for_command(b"SELECT * FROM range(3) AS r(i)"), options)
    assert info.schema == pa.schema([("i", pa.int64())])
    reader = flight.do_get(info.endpoints[0].ticket, options)
    chunks = list(reader)
    assert pa.Table.from_batches([chunk.data for chunk in chunks]).to_pydict() == {"i": [0, 1, 2]}
    receipt = json.loads(chunks[-1].app_metadata.to_pybytes())["receipt"]
    assert receipt["fallback"] is None and receipt["stages_ms"]["run"] >= 0


def test_a_query_without_rows_still_has_a_schema_and_a_receipt(
    flight: fl.FlightClient, options: fl.FlightCallOptions
) -> None:
    info = flight.get_flight_info(fl.FlightDescriptor.for_command(b"SELECT 1 AS a WHERE false"), options)
    chunks = list(flight.do_get(info.endpoints[0].ticket, options))
    assert [chunk.data.num_rows for chunk in chunks] == [0]
    assert chunks[0].data.schema.names == ["a"]
    assert "receipt" in json.loads(chunks[-1].app_metadata.to_pybytes())


def test_rows_leave_in_messages_of_a_few_megabytes(flight: fl.FlightClient, options: fl.FlightCallOptions) -> None:
    query = b"SELECT i, repeat('x', 500) || i::VARCHAR AS t FROM range(12000) AS r(i)"
    info = flight.get_flight_info(fl.FlightDescriptor.for_command(query), options)
    batches = [chunk.data for chunk in flight.do_get(info.endpoints[0].ticket, options)]
    assert sum(batch.num_rows for batch in batches) == 12_000
    assert max(batch.nbytes for batch in batches) < 6 << 20


def test_tables_are_listed_and_read_by_path(flight: fl.FlightClient, options: fl.FlightCallOptions, sql: Sql) -> None:
    sql("CREATE SCHEMA listed")
    sql('CREATE TABLE listed."a.b" AS SELECT 1 AS x UNION ALL SELECT 2')
    found = {tuple(info.descriptor.path): info for info in flight.list_flights(options=options)}
    info = found[b"listed", b"a.b"]
    assert info.total_records == 2 and info.schema.names == ["x"]
    info = flight.get_flight_info(info.descriptor, options)
    assert flight.do_get(info.endpoints[0].ticket, options).read_all().to_pydict() == {"x": [1, 2]}


def test_a_statement_that_changes_something_runs_once_a_ticket(
    flight: fl.FlightClient, options: fl.FlightCallOptions, sql: Sql
) -> None:
    sql("CREATE TABLE once(a INTEGER)")
    info = flight.get_flight_info(fl.FlightDescriptor.for_command(b"INSERT INTO once VALUES (1)"), options)
    assert sql("SELECT count(*) FROM once") == [(0,)]  # planned, and not run
    assert flight.do_get(info.endpoints[0].ticket, options).read_all().to_pydict() == {"Count": [1]}
    with pytest.raises(fl.FlightServerError, match="ticket not found"):
        flight.do_get(info.endpoints[0].ticket, options).read_all()
    assert sql("SELECT count(*) FROM once") == [(1,)]


def test_a_ticket_of_a_table_that_has_changed_since_is_refused(
    flight: fl.FlightClient, options: fl.FlightCallOptions, sql: Sql
) -> None:
    sql("CREATE TABLE moving(a INTEGER)")
    info = flight.get_flight_info(fl.FlightDescriptor.for_command(b"SELECT * FROM moving"), options)
    sql("ALTER TABLE moving ADD COLUMN b VARCHAR")
    with pytest.raises(fl.FlightServerError, match="ConflictError: a table was changed between planning and running"):
        flight.do_get(info.endpoints[0].ticket, options).read_all()


def test_messages_are_those_of_the_published_protocol() -> None:
    from altertable_flightsql.generated import arrow_flight_sql_pb2 as published

    theirs = published.CommandGetTables(catalog="", table_types=["a", "b"], include_schema=True)
    assert encode("CommandGetTables", catalog="", table_types=["a", "b"], include_schema=True) == (
        theirs.SerializeToString()
    )
    assert unpack(pack("CommandGetSqlInfo", info=[8, 9]))[1].info == [8, 9]
    ingest = published.CommandStatementIngest(table="t")
    ingest.options["a"] = "b"
    found = parse("CommandStatementIngest", ingest.SerializeToString())
    assert [(one.key, one.value) for one in found.options] == [("a", "b")]
    assert not found.HasField("schema") and found.table == "t"


def test_every_message_has_the_fields_of_the_published_protocol() -> None:
    from altertable_flightsql.generated import arrow_flight_sql_pb2 as published

    from gpudb.flight_sql import _FLIGHT_SQL, message

    compared = 0
    for name in _FLIGHT_SQL:
        theirs = published.DESCRIPTOR.message_types_by_name.get(name)
        if theirs is None:
            continue
        ours = message(name).DESCRIPTOR.fields_by_number
        for field in theirs.fields:
            assert ours[field.number].name == field.name
            assert ours[field.number].is_repeated == field.is_repeated
            assert ours[field.number].has_presence == field.has_presence
            compared += 1
    assert compared > 40


def metadata(flight: fl.FlightClient, options: fl.FlightCallOptions, name: str, **fields: Any) -> pa.Table:
    info = flight.get_flight_info(fl.FlightDescriptor.for_command(pack(name, **fields)), options)
    table = flight.do_get(info.endpoints[0].ticket, options).read_all()
    assert table.schema.equals(info.schema)
    return table


def test_metadata_commands_say_what_there_is(flight: fl.FlightClient, options: fl.FlightCallOptions, sql: Sql) -> None:
    sql("CREATE SCHEMA looked_at")
    sql("CREATE TABLE looked_at.first(a DECIMAL(9, 2), b VARCHAR)")
    sql("CREATE VIEW looked_at.second AS SELECT a * 2 AS double FROM looked_at.first")
    assert metadata(flight, options, "CommandGetCatalogs").to_pylist() == [{"catalog_name": "memory"}]
    schemas = metadata(flight, options, "CommandGetDbSchemas", db_schema_filter_pattern="looked%")
    assert schemas.to_pylist() == [{"catalog_name": "memory", "db_schema_name": "looked_at"}]
    assert metadata(flight, options, "CommandGetDbSchemas", catalog="another").num_rows == 0
    tables = metadata(flight, options, "CommandGetTables", db_schema_filter_pattern="looked_at", include_schema=True)
    assert tables.column("table_name").to_pylist() == ["first", "second"]
    assert tables.column("table_type").to_pylist() == ["TABLE", "VIEW"]
    first, second = (pa.ipc.read_schema(pa.py_buffer(data)) for data in tables.column("table_schema").to_pylist())
    assert first.types == [pa.decimal128(9, 2), pa.string()] and second.names == ["double"]
    assert first.field("a").metadata[b"ARROW:FLIGHT:SQL:TYPE_NAME"] == b"DECIMAL(9,2)"
    views = metadata(flight, options, "CommandGetTables", table_types=["VIEW"], table_name_filter_pattern="s_c%")
    assert views.column("table_name").to_pylist() == ["second"]
    assert metadata(flight, options, "CommandGetTableTypes").column(0).to_pylist() == ["TABLE", "VIEW"]
    for keys in ("PrimaryKeys", "ImportedKeys", "ExportedKeys"):
        assert metadata(flight, options, f"CommandGet{keys}", table="first").num_rows == 0
    assert metadata(flight, options, "CommandGetCrossReference", pk_table="a", fk_table="b").num_rows == 0


def test_primary_keys_are_told(flight: fl.FlightClient, options: fl.FlightCallOptions, sql: Sql) -> None:
    sql("CREATE SCHEMA keyed")
    sql("CREATE TABLE keyed.pairs(a INTEGER, b VARCHAR, c INTEGER UNIQUE, CONSTRAINT both PRIMARY KEY (b, a))")
    found = metadata(flight, options, "CommandGetPrimaryKeys", table="pairs", db_schema="keyed").to_pylist()
    place = {"catalog_name": "memory", "db_schema_name": "keyed", "table_name": "pairs", "key_name": "both"}
    assert found == [{**place, "column_name": "b", "key_sequence": 1}, {**place, "column_name": "a", "key_sequence": 2}]
    assert metadata(flight, options, "CommandGetPrimaryKeys", table="pairs").num_rows == 2
    assert metadata(flight, options, "CommandGetPrimaryKeys", table="pairs", db_schema="main").num_rows == 0


def test_types_are_listed_with_odbcs_numbers(flight: fl.FlightClient, options: fl.FlightCallOptions) -> None:
    every = metadata(flight, options, "CommandGetXdbcTypeInfo")
    assert {"TIME", "TIMESTAMP WITH TIME ZONE", "BLOB"} <= set(every.column("type_name").to_pylist())
    assert every.num_rows == 21
    (found,) = metadata(flight, options, "CommandGetXdbcTypeInfo", data_type=93).to_pylist()
    assert (found["type_name"], found["sql_data_type"], found["literal_prefix"]) == ("TIMESTAMP", 9, "'")


def test_sql_info_gives_everything_for_an_empty_list(flight: fl.FlightClient, options: fl.FlightCallOptions) -> None:
    every = metadata(flight, options, "CommandGetSqlInfo")
    found = dict(zip(every.column(0).to_pylist(), every.column(1).to_pylist(), strict=True))
    assert len(found) == 91 and found[0] == "gpudb" and found[100] == 60_000
    some = metadata(flight, options, "CommandGetSqlInfo", info=[8, 4, 99_999])
    assert some.column(0).to_pylist() == [4, 8]


def test_session_options_are_settings(server: Server, flight: fl.FlightClient) -> None:
    from altertable_flightsql.generated import arrow_flight_pb2 as published

    login = flight.authenticate_basic_token("token", server.token)
    options = fl.FlightCallOptions(headers=[login])

    def act(name: str, request: Any, answer: Any) -> Any:
        (result,) = flight.do_action(fl.Action(name, request.SerializeToString()), options)
        return answer.FromString(result.body.to_pybytes())

    value = published.SessionOptionValue
    wanted = {
        "integer_division": value(bool_value=True),
        "catalog": value(string_value="memory"),
        "schema": value(string_value="elsewhere"),
        "threads": value(string_value="many"),
        "nonsense": value(int64_value=1),
    }
    request = published.SetSessionOptionsRequest(session_options=wanted)
    failed = act("SetSessionOptions", request, published.SetSessionOptionsResult).errors
    assert {name: error.value for name, error in failed.items()} == {"schema": 2, "threads": 2, "nonsense": 1}
    found = act("GetSessionOptions", published.GetSessionOptionsRequest(), published.GetSessionOptionsResult)
    assert found.session_options["integer_division"].bool_value
    assert found.session_options["catalog"].string_value == "memory"
    closed = act("CloseSession", published.CloseSessionRequest(), published.CloseSessionResult)
    assert closed.status == published.CloseSessionResult.CLOSED
    found = act("GetSessionOptions", published.GetSessionOptionsRequest(), published.GetSessionOptionsResult)
    assert not found.session_options["integer_division"].bool_value
