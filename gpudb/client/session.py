"""A session at a server: statements as Arrow Flight SQL, their rows as they come.

Statements go out by GetFlightInfo, which plans them, and DoGet, which runs them and streams the rows; those with parameters are
prepared first.  The server knows the session by a cookie, which this side chooses.  A thread of its own waits for the server
while the main thread can still be told of Ctrl-C, which cancels the statement there.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.flight as fl

from gpudb import flight_sql
from gpudb.catalog import View
from gpudb.client.address import Address
from gpudb.client.failures import as_gpudb_errors, error_of
from gpudb.errors import (
    CatalogError,
    Error,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ParameterValueError,
    QueryCancelled,
)
from gpudb.parameters import typed_parameters
from gpudb.record import record
from gpudb.result import Result
from gpudb.storage.arrow import sql_type
from gpudb.types import BIGINT, HUGEINT, INTERVAL, SqlType, list_of

Answer = TypeVar("Answer")
COOKIE = "arrow_flight_session_id"
NO_ROWS = b"gpudb.no_rows"  # in a schema's metadata: the one row is the number of rows that were changed
_TRANSACTION = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*+(begin|start|commit|end|rollback|abort)\b", re.I | re.S)
_INGEST = {"create": (1, 1), "append": (2, 2), "replace": (1, 3), "create_append": (1, 2)}
_ROWS_OF_A_MESSAGE = 1 << 16
_ENDS = ("commit", "end", "rollback", "abort")
_WIDEST_PARAMETER = 1 << 63


@record(frozen=False)
class RemoteTransaction:
    """An open transaction, as far as this side knows."""

    aborted: bool = False


class RemoteSession:
    """What `session.Session` is for a database in this process, for one at a server.  Safe to share between threads.

    transaction  the open one, or None
    location     where the server is, without credentials
    """

    def __init__(
        self,
        uri: str,
        user: str | None = None,
        password: str | None = None,
        token: str | None = None,
        tls_root_certs: str | None = None,
    ) -> None:
        address = Address.of(uri, user, password, token, tls_root_certs)
        self.transaction: RemoteTransaction | None = None
        self._closed = False
        self.location = address.location
        self._running: fl.FlightInfo | None = None
        self._sql: str | None = None  # the statement that runs
        self._reading: Any = None  # the stream whose next batch is waited for
        self._stop_sending = threading.Event()  # of the ingest that runs
        self._waiting = ThreadPoolExecutor(2, "gpudb-remote")
        self._key = secrets.token_urlsafe(24)
        options = {} if address.tls_root_certs is None else {"tls_root_certs": address.tls_root_certs}
        with as_gpudb_errors():
            self._client = fl.FlightClient(address.location, **options)
        headers = [(b"cookie", f"{COOKIE}={self._key}".encode())]
        try:
            if address.token is not None:
                headers.append((b"authorization", f"Bearer {address.token}".encode()))
            elif address.user is not None:
                headers.append(self._log_in(address.user, address.password or ""))
            self._options = fl.FlightCallOptions(headers=headers)
            self._action("GetSessionOptions", flight_sql.encode("GetSessionOptionsRequest"))  # or there is no server
        except BaseException:
            self._client.close()
            raise

    def _log_in(self, user: str, password: str) -> tuple[bytes, bytes]:
        """The header that stands for the password from now on."""
        try:
            header: tuple[bytes, bytes] = self._client.authenticate_basic_token(user, password)
            return header
        except (pa.ArrowException, fl.FlightError) as error:
            found = error_of(error)
            if isinstance(found, InternalError):  # pyarrow's word for a connection that ends within the handshake
                found = OperationalError(
                    "the server cannot be reached, or its certificate is not known", hint="tls_root_certs names a file"
                )
            raise found from None

    # ------------------------------------------------------------------------------------- statements

    def execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None) -> Result:
        """Run exactly one statement.  Errors are those that the same statement has in this process."""
        if self._closed:
            raise InterfaceError("the session is closed")
        typed_parameters(parameters)  # raises what it raises there, before anything is sent
        return self._guarded(sql, lambda: self._execute(sql, parameters))

    def _guarded(self, sql: str, job: Callable[[], Result]) -> Result:
        """Run a statement; note what it does to the open transaction."""
        found = _TRANSACTION.match(sql)
        word = found[1].lower() if found else ""
        try:
            result = self._interruptibly(job)
        except Error as error:
            if self.transaction is not None and not isinstance(error, ParameterValueError):
                self.transaction.aborted = True
            if word in _ENDS:
                self.transaction = None
            raise error.attach_sql(sql) from None
        if word:
            self.transaction = None if word in _ENDS else RemoteTransaction()
        return result

    def execute_all(self, sql: str, sets: Sequence[Any]) -> Result | None:
        """Run an INSERT for all sets of positional parameters as one; None where their values have no common types."""
        names = [str(position) for position in range(1, len(sets[0]) + 1)]
        columns = []
        for values in zip(*sets, strict=True):
            if len({type(value) for value in values if value is not None}) > 1:
                return None  # each value is converted by its own type's rules
            try:
                columns.append(_parameter_array(list(values)))
            except (pa.ArrowException, OverflowError):
                return None
        batch = pa.RecordBatch.from_arrays(columns, names=names)

        def run() -> Result:
            with self._prepared(sql) as handle:
                command = flight_sql.pack("CommandPreparedStatementUpdate", prepared_statement_handle=handle)
                answer = flight_sql.parse("DoPutUpdateResult", self._put(command, batch))
                return Result(pa.schema([("Count", pa.int64())]), [BIGINT], int(answer.record_count))

        return self._guarded(sql, run)

    def ingest(
        self, table: str, reader: pa.RecordBatchReader, mode: str, schema: str, producer: str | None, sequence: int
    ) -> int:
        """Send rows into a table, and a marker behind the last: without it the server keeps none."""
        if self._closed:
            raise InterfaceError("the session is closed")
        options = {flight_sql.END_MARKER: "true"}
        if producer is not None:
            options |= {flight_sql.PRODUCER: producer, flight_sql.SEQUENCE: str(sequence)}
        if_missing, if_there = _INGEST[mode]
        command = flight_sql.pack(
            "CommandStatementIngest",
            table_definition_options={"if_not_exist": if_missing, "if_exists": if_there},
            table=table,
            schema=schema,
            options=[{"key": key, "value": value} for key, value in options.items()],
        )

        stop = self._stop_sending = threading.Event()

        def send() -> int:
            with as_gpudb_errors():
                descriptor = fl.FlightDescriptor.for_command(command)
                writer, answers = self._client.do_put(descriptor, reader.schema, self._options)
                rows = 0
                while True:
                    try:
                        if stop.is_set():
                            raise QueryCancelled("statement cancelled")
                        batch = next(reader, None)
                    except BaseException:  # of whoever makes the rows, too: the server keeps none, as no marker comes
                        with contextlib.suppress(pa.ArrowException, fl.FlightError):
                            writer.close()
                        raise
                    if batch is None:
                        break
                    try:
                        for start in range(0, batch.num_rows, _ROWS_OF_A_MESSAGE):
                            writer.write_batch(batch.slice(start, _ROWS_OF_A_MESSAGE))
                    except (pa.ArrowException, fl.FlightError):
                        writer.close()  # raises what the server has against them
                        raise  # or else what is wrong here: no marker was sent, so none is kept
                    rows += batch.num_rows
                with writer:  # an error of the server's is told at its end
                    with contextlib.suppress(pa.ArrowException, fl.FlightError):
                        writer.write_metadata(flight_sql.end_marker(rows))
                        writer.done_writing()
                    answer = answers.read()
                found = flight_sql.parse("DoPutUpdateResult", b"" if answer is None else answer.to_pybytes())
                return int(found.record_count)

        try:
            return self._interruptibly(send)
        except Error:
            if self.transaction is not None:
                self.transaction.aborted = True
            raise

    def _execute(self, sql: str, parameters: Any) -> Result:
        self._sql = sql
        with as_gpudb_errors():
            if not parameters:
                return self._fetched(flight_sql.pack("CommandStatementQuery", query=sql))
            with self._prepared(sql) as handle:
                named = isinstance(parameters, Mapping)
                names = [name.removeprefix("$") for name in parameters] if named else None
                values = list(parameters.values()) if named else list(parameters)
                arrays = [_parameter_array([value]) for value in values]
                batch = pa.RecordBatch.from_arrays(arrays, names or [str(n) for n in range(1, len(values) + 1)])
                batch = batch.replace_schema_metadata({flight_sql.PARAMETERS: "named" if named else "positional"})
                command = flight_sql.pack("CommandPreparedStatementQuery", prepared_statement_handle=handle)
                self._put(command, batch)
                return self._fetched(command)

    @contextlib.contextmanager
    def _prepared(self, sql: str) -> Iterator[bytes]:
        """The handle of a prepared statement, which goes at the end."""
        request = flight_sql.pack("ActionCreatePreparedStatementRequest", query=sql)
        (answer,) = self._action("CreatePreparedStatement", request)
        _, made = flight_sql.unpack(answer)
        handle = made.prepared_statement_handle
        try:
            yield handle
        finally:
            request = flight_sql.pack("ActionClosePreparedStatementRequest", prepared_statement_handle=handle)
            with contextlib.suppress(Error):  # the statement has run, or has an error of its own
                self._action("ClosePreparedStatement", request)

    def _put(self, command: bytes, batch: pa.RecordBatch) -> bytes:
        """Send rows with a command; the server's answer."""
        with as_gpudb_errors():
            descriptor = fl.FlightDescriptor.for_command(command)
            writer, reader = self._client.do_put(descriptor, batch.schema, self._options)
            with writer:
                writer.write_batch(batch)
                writer.done_writing()
                answer = reader.read()
            return b"" if answer is None else answer.to_pybytes()

    def _fetched(self, command: bytes) -> Result:
        """Plan and run a command; what changes something is over when this returns, other rows come as they are read."""
        info = self._client.get_flight_info(fl.FlightDescriptor.for_command(command), self._options)
        self._running = info
        try:
            reader = self._client.do_get(info.endpoints[0].ticket, self._options)
            schema = reader.schema
        finally:
            self._running = None
        receipt: dict[str, Any] = {}
        last: dict[str, Any] = {}
        batches = self._stream(reader, receipt, last)
        if NO_ROWS not in (schema.metadata or {}):
            schema = schema.remove_metadata()
            return Result(schema, [_type_of(one) for one in schema], -1, receipt, batches)
        kept = list(batches)
        rowcount = int(last.get("rowcount", -1))
        if rowcount < 0:
            return Result(pa.schema([]), [], -1, receipt)
        schema = schema.remove_metadata()
        return Result(schema, [_type_of(one) for one in schema], rowcount, receipt, iter(kept))

    def _stream(self, reader: Any, receipt: dict[str, Any], last: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        """The batches of a stream; the receipt behind the last one is put where it was promised."""
        ended = False
        try:
            while True:
                chunk = self._next_chunk(reader)
                if chunk is None:
                    ended = True
                    if not last:  # what the server says behind the last row
                        raise OperationalError("the rows broke off: the server did not say that these are all")
                    return
                if chunk.app_metadata is not None:
                    last.update(json.loads(chunk.app_metadata.to_pybytes()))
                    receipt.update(last.get("receipt", {}))
                if chunk.data is not None:
                    batch = chunk.data
                    yield batch.replace_schema_metadata(None) if batch.schema.metadata else batch
        finally:
            if not ended:
                reader.cancel()

    def _next_chunk(self, reader: Any) -> Any:
        def read() -> Any:
            self._reading = reader
            try:
                return reader.read_chunk()
            except StopIteration:
                return None
            except (pa.ArrowException, fl.FlightError) as error:
                raise error_of(error) from None
            finally:
                self._reading = None

        return self._interruptibly(read)

    def _interruptibly(self, job: Callable[[], Answer]) -> Answer:
        """What a job that waits for the server returns; in the main thread Ctrl-C cancels it, and is raised when it is over."""
        if threading.current_thread() is not threading.main_thread():
            return job()
        future = self._waiting.submit(job)
        try:
            return future.result()
        except KeyboardInterrupt:
            while not future.done():
                with contextlib.suppress(Error):
                    self.cancel()
                with contextlib.suppress(TimeoutError, Error):
                    future.result(0.2)
            raise

    # ------------------------------------------------------------------------------------- small services

    def cancel(self) -> None:
        """Stop the running statement at the server; it raises QueryCancelled where it runs.  Any thread may call this."""
        info, reading = self._running, self._reading
        self._stop_sending.set()
        if reading is not None:
            reading.cancel()
        if info is not None:
            request = flight_sql.encode("CancelFlightInfoRequest", info=info.serialize())
            self._action("CancelFlightInfo", request)

    def progress(self) -> float | None:
        """Share of the running statement that is done, 0 to 1, as SHOW QUERIES has it; None when nothing runs."""
        sql = self._sql
        if self._running is None or sql is None:
            return None
        with contextlib.suppress(Error), as_gpudb_errors():
            command = fl.FlightDescriptor.for_command(flight_sql.pack("CommandStatementQuery", query="SHOW QUERIES"))
            info = self._client.get_flight_info(command, self._options)
            for row in self._client.do_get(info.endpoints[0].ticket, self._options).read_all().to_pylist():
                if row["sql"] == sql and row["state"] == "running":
                    progress: float | None = row.get("progress")
                    return progress
        return None

    def close(self) -> None:
        """Statements after this raise InterfaceError; an open transaction is rolled back."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(Error):
            self._action("CloseSession", flight_sql.encode("CloseSessionRequest"))
        self._client.close()
        self._waiting.shutdown(wait=False)

    def _action(self, name: str, body: bytes) -> list[bytes]:
        with as_gpudb_errors():
            found = self._client.do_action(fl.Action(name, body), self._options)
            return [result.body.to_pybytes() for result in found]

    @staticmethod
    def split_statements(sql: str) -> list[str]:
        """The statements of a script."""
        from gpudb.planner.parse import split_statements

        return split_statements(sql)

    def register(self, name: str, data: Any) -> None:
        """Not at a server."""
        raise NotSupportedError(
            "a frame of this process cannot be registered at a server", hint="INSERT its rows into a table"
        )

    def unregister(self, name: str) -> None:
        """Nothing is registered at a server."""
        raise CatalogError(f"nothing is registered under this name: {name}")

    # ------------------------------------------------------------------------------------- the catalog, for the shell

    def _rows(self, sql: str, *parameters: Any) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.execute(sql, parameters).table().to_pylist()
        return rows

    @property
    def settings(self) -> dict[str, str]:
        """The settings of the session, as text."""
        return {row["name"]: row["value"] for row in self._rows("SELECT name, value FROM duckdb_settings()")}

    def tables(self) -> list[str]:
        """Names of the tables and views of schema main, sorted."""
        sql = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main' ORDER BY 1"
        return [row["table_name"] for row in self._rows(sql)]

    def columns(self, table: str) -> list[tuple[str, SqlType]]:
        """(name, SQL type) of the columns of a table or view of schema main."""
        quoted = table.replace('"', '""')
        result = self.execute(f'SELECT * FROM main."{quoted}" LIMIT 0')
        list(result.batches())
        return list(zip(result.schema.names, result.types, strict=True))

    def defaults(self, table: str) -> dict[str, str]:
        """The SQL of the DEFAULT of each column that has one, of a table of schema main, by lower-case name."""
        sql = """SELECT column_name, column_default FROM information_schema.columns WHERE table_schema = 'main'
            AND lower(table_name) = lower(?) AND column_default IS NOT NULL"""
        return {row["column_name"].lower(): row["column_default"] for row in self._rows(sql, table)}

    def view(self, name: str) -> View | None:
        """The view of a name in schema main, or None."""
        sql = "SELECT sql FROM duckdb_views() WHERE schema_name = 'main' AND lower(view_name) = lower(?)"
        found = self._rows(sql, name)
        if not found:
            return None
        made = _VIEW.fullmatch(found[0]["sql"])
        assert made is not None, "the server writes it so"
        columns = tuple(_NAME.findall(made["columns"] or ""))
        return View(name, tuple(column.strip('"').replace('""', '"') for column in columns), made["query"])


_NAME = re.compile(r'"(?:[^"]|"")*"|[^\s(),."]+')
_VIEW = re.compile(rf"CREATE VIEW (?:{_NAME.pattern})(?: \((?P<columns>.*?)\))? AS (?P<query>.*);", re.DOTALL)


def _type_of(column: pa.Field) -> SqlType:
    """The SQL type behind a result column; sums of integers are HUGEINT, which Arrow has no name for."""
    if column.type == HUGEINT.arrow:
        return HUGEINT
    if pa.types.is_list(column.type):
        return list_of(_type_of(column.type.value_field))
    return INTERVAL if column.type == INTERVAL.arrow else sql_type(column.type, column.name)


def _parameter_array(values: list[Any]) -> pa.Array:
    """Parameters as Arrow, such that the server sees the Python values again."""
    values = [value.item() if type(value).__module__ == "numpy" else value for value in values]
    values = [str(value) if isinstance(value, uuid.UUID) else value for value in values]
    if any(type(value) is int and not -_WIDEST_PARAMETER <= value < _WIDEST_PARAMETER for value in values):
        values = [None if value is None else Decimal(value) for value in values]
        return pa.array(values, pa.decimal128(38, 0))
    return pa.array(values)
