"""The calls of Arrow Flight, and what Flight SQL puts into them; the work behind each is in a module of its own.

Past 600 lines: the calls and commands of one protocol, in the class that pyarrow's server wants.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

import pyarrow as pa
import pyarrow.flight as fl

from gpudb import token_file
from gpudb.catalog import qualified
from gpudb.dbapi.insert_all import insert_all
from gpudb.errors import (
    AccessError,
    ConflictError,
    DataError,
    Error,
    InterfaceError,
    NotSupportedError,
    OperationalError,
    ParameterValueError,
)
from gpudb.flight_sql import END_MARKER, TYPE_URL, MalformedMessage, encode, message, pack, parse, unpack
from gpudb.ingest import Arrival, Numbered, Target, check_transaction, ingest
from gpudb.planner import statements
from gpudb.result import Result
from gpudb.server import audit, metadata, own_statements
from gpudb.server.authentication import Authenticator, Caller, CallerMiddlewareFactory, OpenHandshake
from gpudb.server.configuration import Configuration
from gpudb.server.connections import cut_connections
from gpudb.server.failures import Failures
from gpudb.server.group_commit import GroupCommitter
from gpudb.server.ingest import GROUPED_BYTES, arriving, first_line, numbered_of, target_of
from gpudb.server.limited_settings import LimitedSettings
from gpudb.server.results import RowStream
from gpudb.server.running import Statement, Statements
from gpudb.server.session_options import session_options, set_session_options
from gpudb.server.sessions import ClientSession, Prepared, Sessions, Ticket, parameter_rows
from gpudb.server.users import Users
from gpudb.session import Database, Session
from gpudb.storage.file_access import FileAccess
from gpudb.types import BIGINT

logger = logging.getLogger("gpudb.server")
Call = TypeVar("Call", bound=Callable[..., Any])

TURN_SECONDS = 0.25  # that a plan waits for others at most
END_SECONDS = 1.0  # that calls have to end by themselves when the server closes, before their connections are cut
CUT_SECONDS = 0.2
# Of a statement without rows that is sent as a query; our own client knows it by the metadata.
COUNT_SCHEMA = pa.schema([pa.field("Count", pa.int64())], {"gpudb.no_rows": ""})
ACTIONS = {
    "CreatePreparedStatement": "Plan a statement; its handle, the schemas of its rows and of its parameters",
    "ClosePreparedStatement": "Forget a prepared statement",
    "BeginTransaction": "Open a transaction",
    "EndTransaction": "Commit or roll back a transaction",
    "SetSessionOptions": "SET, for clients that keep cookies",
    "GetSessionOptions": "The settings of the session",
    "CancelFlightInfo": "Stop what the tickets of a FlightInfo started",
    "CancelQuery": "The same, as older clients ask for it",
    "CloseSession": "Roll back, and forget the session's settings",
}


def answered(call: Call) -> Call:
    """A call of the server: what it raises leaves as a Flight error; iterators are guarded to their end."""

    @functools.wraps(call)
    def guarded(self: FlightSqlServer, context: Any, *arguments: Any) -> Any:
        with self.failures.answering():
            try:
                found = call(self, context, *arguments)
            except AccessError as error:
                audit.note("denied", user=self._caller(context).user, call=call.__name__, error=error.message)
                raise
        return (
            _guarded(self.failures, found)
            if isinstance(found, Iterator) and not isinstance(found, RowStream)
            else found
        )

    return guarded  # type: ignore[return-value]


def _guarded(failures: Failures, items: Iterator[Any]) -> Iterator[Any]:
    while True:
        with failures.answering():
            item = next(items, None)
        if item is None:
            return
        yield item


class FlightSqlServer(fl.FlightServerBase):
    """Answers calls on threads of gRPC's."""

    def __init__(
        self, database: Database, configuration: Configuration, authenticator: Authenticator, failures: Failures
    ) -> None:
        scheme = "grpc" if configuration.tls_cert is None else "grpc+tls"
        certificates = None
        if configuration.tls_cert is not None and configuration.tls_key is not None:
            with open(configuration.tls_cert, "rb") as cert, open(configuration.tls_key, "rb") as key:
                certificates = [(cert.read(), key.read())]
        self.callers = CallerMiddlewareFactory(authenticator, failures, configuration.calls)
        self.database = database
        self.failures = failures
        files = FileAccess(configuration.import_root, configuration.export_root)
        self.sessions = Sessions(database, files, functools.partial(LimitedSettings, configuration.limits))
        self.committer = GroupCommitter(database)
        places = configuration.running or len(os.sched_getaffinity(0)) + 1
        self._planning = threading.Semaphore(places)  # more at a time would only take Python's lock from each other
        self.running = Statements(places, configuration.waiting, configuration.queue_seconds)
        try:
            super().__init__(  # answers from here on
                f"{scheme}://{configuration.host}:{configuration.port}",
                auth_handler=OpenHandshake(),
                tls_certificates=certificates,
                middleware={"caller": self.callers},
            )
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """End the threads, and roll back what is open; for a server that answers no more."""
        self.committer.close()
        self.running.close()
        self.sessions.close()

    # ----------------------------------------------------------------------------- who, and in which session

    @staticmethod
    def _caller(context: Any) -> Caller:
        caller: Caller = context.get_middleware("caller").caller
        return caller

    def _client(self, caller: Caller) -> ClientSession | None:
        return self.sessions.client(caller.user, caller.session)

    @contextlib.contextmanager
    def _in_turn(self) -> Iterator[None]:
        """Plan a few statements at a time; a courtesy, so that one which waits for its session's lock holds up nobody long."""
        mine = self._planning.acquire(timeout=TURN_SECONDS)
        try:
            yield
        finally:
            if mine:
                self._planning.release()

    # ----------------------------------------------------------------------------- plans

    @answered
    def get_flight_info(self, context: Any, descriptor: fl.FlightDescriptor) -> fl.FlightInfo:
        caller = self._caller(context)
        name, command = self._command(descriptor)
        if name in metadata.SCHEMAS:
            return self._info(descriptor, metadata.schema(name, command), descriptor.command)
        with self._in_turn():
            ticket = self._ticket(caller, name, command)
        handle = self.sessions.tickets.put(caller.user, ticket)
        return self._info(descriptor, ticket.schema, pack("TicketStatementQuery", statement_handle=handle))

    @answered
    def get_schema(self, context: Any, descriptor: fl.FlightDescriptor) -> fl.SchemaResult:
        name, command = self._command(descriptor)
        if name in metadata.SCHEMAS:
            return fl.SchemaResult(metadata.schema(name, command))
        return fl.SchemaResult(self._ticket(self._caller(context), name, command).schema or pa.schema([]))

    def _command(self, descriptor: fl.FlightDescriptor) -> tuple[str, Any]:
        """(name, message) of what a descriptor asks for: a command of Flight SQL, SQL as text, or the path of a table."""
        if descriptor.descriptor_type == fl.DescriptorType.PATH:
            return sql_command("SELECT * FROM " + table_name(descriptor.path))
        command = descriptor.command or b""
        try:
            url = parse("Any", command).type_url
        except MalformedMessage:
            url = ""
        if url.startswith(TYPE_URL):
            return unpack(command)
        try:
            return sql_command(command.decode())
        except UnicodeDecodeError:
            raise MalformedMessage("neither a command of Flight SQL nor SQL in UTF-8") from None

    def _ticket(self, caller: Caller, name: str, command: Any) -> Ticket:
        """A planned statement; parameters that are still to come leave its schema open."""
        if name == "CommandStatementQuery":
            sql, transaction, prepared, parameters = command.query, command.transaction_id, None, None
        elif name == "CommandPreparedStatementQuery":
            prepared = self.sessions.prepared.get(caller.user, command.prepared_statement_handle)
            sql, transaction = prepared.sql, prepared.transaction
            if prepared.names and not prepared.rows:
                return Ticket(sql, transaction, None, prepared)
            parameters = prepared.rows[0] if prepared.rows else None
        else:
            raise NotSupportedError(f"this command is not supported: {name}")
        session = self.sessions.engine(caller, self._client(caller), transaction, prepared is not None)
        try:
            described = own_statements.described(sql) or session.describe(sql, parameters)
        except ParameterValueError:
            raise  # as where it runs: nothing is aborted
        except Error:
            if session.transaction is not None:
                session.transaction.rollback()  # an error aborts it, also one that is found before the statement runs
            raise
        once = described.statement is not statements.Query
        return Ticket(sql, transaction, described.schema or COUNT_SCHEMA, prepared, once)

    @staticmethod
    def _info(descriptor: fl.FlightDescriptor, schema: pa.Schema | None, ticket: bytes) -> fl.FlightInfo:
        return fl.FlightInfo(schema, descriptor, [fl.FlightEndpoint(ticket, [])], -1, -1)  # no location: ask here

    # ----------------------------------------------------------------------------- rows out

    @answered
    def do_get(self, context: Any, ticket: fl.Ticket) -> fl.FlightDataStream:
        caller = self._caller(context)
        name, command = unpack(ticket.ticket)
        if name in metadata.SCHEMAS:
            session = self.sessions.engine(caller, self._client(caller), b"")
            timeout = int(session.settings["statement_timeout"] * 1000)
            return fl.RecordBatchStream(metadata.table(name, command, session, timeout))
        if name != "TicketStatementQuery":
            raise NotSupportedError(f"a ticket of this kind is not supported: {name}")
        handle = command.statement_handle
        found = self.sessions.tickets.get(caller.user, handle)
        if found.once:  # it may change something: the second of two calls finds no ticket
            found = self.sessions.tickets.pop(caller.user, handle) or expired()
        sets = [None] if found.prepared is None or found.prepared.rows is None else found.prepared.rows
        if not sets:
            raise InterfaceError("the statement was given no set of parameters")
        session = self.sessions.engine(
            caller, self._client(caller), found.transaction, for_prepared=found.prepared is not None
        )
        statement = self.running.arrive(caller, found.sql, session, context, handle)
        try:
            results = (self._result(caller, statement, parameters) for parameters in sets)
            first = next(results)  # its errors are this call's; the rows come as they are read
            schema = first.schema if found.schema is None else found.schema
            if not first.schema.equals(schema):
                raise ConflictError("a table was changed between planning and running", hint="run the statement again")
            stream = RowStream(
                schema,
                itertools.chain([first], results),
                self.failures,
                statement.check,
                functools.partial(self.running.leave, statement),
            )
            return fl.GeneratorStream(schema, stream)
        except BaseException:
            self.running.leave(statement)
            raise

    # ----------------------------------------------------------------------------- running

    def _result(self, caller: Caller, statement: Statement, parameters: Any = None) -> Result:
        """Run a statement that has arrived; one without rows gives the number it changed."""
        own = own_statements.run(statement.sql, caller, self.running)
        if own is not None:
            result = own
        else:
            session = statement.session
            result = self.running.run(statement, lambda: session.execute(statement.sql, parameters))
            if result.pace is not None:
                result.pace.around = functools.partial(self.running.going_on, statement)
            self.sessions.after(self._client(caller), session)
        audit.note_statement(caller.user, statement.sql)
        return counted(result) if result.rowcount >= 0 or not result.schema.names else result

    def _changed(self, caller: Caller, context: Any, session: Session, sql: str, parameters: Any = None) -> int:
        """Run a statement for the number of rows it changes."""
        statement = self.running.arrive(caller, sql, session, context)
        try:
            return max(0, self._result(caller, statement, parameters).rowcount)
        finally:
            self.running.leave(statement)

    def _update(self, caller: Caller, context: Any, transaction: bytes, sql: str) -> int:
        """Run a script; the rows that its last statement changed."""
        count = 0
        for one in Session.split_statements(sql):
            session = self.sessions.engine(caller, self._client(caller), transaction)
            count = self._changed(caller, context, session, one)
        return count

    def _prepared_update(self, caller: Caller, context: Any, prepared: Prepared) -> int:
        """Run a prepared statement for each set of parameters: all of them, or none."""
        sets: Any = prepared.rows if prepared.names else [None]
        if not sets:
            return 0
        session = self.sessions.engine(caller, self._client(caller), prepared.transaction, for_prepared=True)
        if len(sets) == 1:
            return self._changed(caller, context, session, prepared.sql, sets[0])
        statement = self.running.arrive(caller, prepared.sql, session, context)
        try:
            return self.running.run(statement, lambda: run_all(session, prepared.sql, sets, statement.check))
        finally:
            self.running.leave(statement)

    # ----------------------------------------------------------------------------- rows in

    @answered
    def do_put(self, context: Any, descriptor: fl.FlightDescriptor, reader: Any, writer: Any) -> None:
        caller = self._caller(context)
        if descriptor.descriptor_type == fl.DescriptorType.PATH:
            target = Target(qualified(*reversed(path_parts(descriptor.path))), "create", "append")
            writer.write(encode("DoPutUpdateResult", record_count=self._ingest(context, target, reader, {}, b"")))
            return
        name, command = unpack(descriptor.command or b"")
        match name:
            case "CommandStatementIngest":
                options = {option.key: option.value for option in command.options}
                target = target_of(command, self.database)
                count = self._ingest(context, target, reader, options, command.transaction_id)
            case "CommandStatementUpdate":
                count = self._update(caller, context, command.transaction_id, command.query)
            case "CommandPreparedStatementUpdate":
                prepared = self.sessions.prepared.get(caller.user, command.prepared_statement_handle)
                if prepared.names:
                    prepared.rows = parameter_rows(prepared, arriving(reader, context, False))
                count = self._prepared_update(caller, context, prepared)
            case "CommandPreparedStatementQuery":
                handle = command.prepared_statement_handle
                prepared = self.sessions.prepared.get(caller.user, handle)
                prepared.rows = parameter_rows(prepared, arriving(reader, context, False))
                writer.write(encode("DoPutPreparedStatementResult", prepared_statement_handle=handle))
                return
            case _:
                raise NotSupportedError(f"this command is not supported: {name}")
        writer.write(encode("DoPutUpdateResult", record_count=count))

    def _ingest(self, context: Any, target: Target, reader: Any, options: dict[str, str], transaction: bytes) -> int:
        caller = self._caller(context)
        client = self._client(caller)
        if client is not None and not transaction and self.sessions.transactions.find(caller.user, client.latest):
            transaction = client.latest  # ADBC's driver does not say that an ingest belongs to its open transaction
        session = self.sessions.engine(caller, client, transaction)
        if session.read_only:
            raise AccessError("the user may only read, and this would write")
        statement = self.running.arrive(caller, f"INGEST INTO {target.name}", session, context, state="receiving")
        try:
            batches = arriving(reader, context, options.get(END_MARKER) == "true", statement.check)
            return self._taken_in(session, target, reader, batches, numbered_of(options))
        finally:
            self.running.leave(statement)

    def _taken_in(
        self,
        session: Session,
        target: Target,
        reader: Any,
        batches: Iterator[pa.RecordBatch],
        numbered: Numbered | None,
    ) -> int:
        """Put the batches that come into the table: in the open transaction, by themselves, or with those of others."""
        try:
            schema = reader.schema
        except pa.ArrowException as error:
            raise DataError(f"the stream is not valid Arrow: {first_line(error)}") from None
        transaction = session.transaction
        begun: list[pa.RecordBatch] = []
        size = 0
        try:
            for batch in batches:  # statements of the transaction wait for what is streamed into it, not for these
                begun.append(batch)
                size += batch.nbytes
                if size > GROUPED_BYTES:
                    break
            check_transaction(session, transaction)
        except BaseException:
            if transaction is not None:
                transaction.rollback()  # an error aborts it, as one of a statement does
            raise
        if transaction is not None or size > GROUPED_BYTES:  # streamed by itself, so that it is not all in memory
            return ingest(session, target, schema, itertools.chain(begun, batches), numbered)
        arrival = Arrival(target, schema, begun, numbered)
        arrival.check()
        return self.committer.commit(arrival)

    # ----------------------------------------------------------------------------- actions

    @answered
    def do_action(self, context: Any, action: fl.Action) -> list[bytes]:
        caller = self._caller(context)
        body = action.body.to_pybytes()
        if action.type not in ACTIONS:
            raise NotSupportedError(f"there is no such action: {action.type[:64]!r}", hint=", ".join(ACTIONS))
        found: list[bytes] = getattr(self, "_action_" + action.type)(caller, body)
        return found

    @answered
    def list_actions(self, context: Any) -> list[tuple[str, str]]:
        return list(ACTIONS.items())

    def _action_CreatePreparedStatement(self, caller: Caller, body: bytes) -> list[bytes]:
        request = action_body(body, "ActionCreatePreparedStatementRequest")
        prepared = Prepared(request.query, request.transaction_id, parameter_names(request.query))
        session = self.sessions.engine(caller, self._client(caller), prepared.transaction)
        schema: pa.Schema | None = None
        try:
            with self._in_turn():
                described = own_statements.described(prepared.sql) or session.describe(
                    prepared.sql, unknown(prepared.names)
                )
            schema, is_update = described.schema, described.schema is None
        except Error:
            if not prepared.names:
                raise
            # Whether it is right, and what it gives, may depend on what is bound to it.
            is_update = prepared.sql.lstrip(" \t\r\n(")[:6].upper() not in ("SELECT", "WITH", "VALUES", "FROM")
        handle = self.sessions.prepared.put(caller.user, prepared)
        parameters = pa.schema([pa.field(name, pa.null()) for name in prepared.names])
        return [
            pack(
                "ActionCreatePreparedStatementResult",
                prepared_statement_handle=handle,
                dataset_schema=b"" if schema is None else schema.serialize().to_pybytes(),
                parameter_schema=parameters.serialize().to_pybytes() if prepared.names else b"",
                is_update=is_update,
            )
        ]

    def _action_ClosePreparedStatement(self, caller: Caller, body: bytes) -> list[bytes]:
        request = action_body(body, "ActionClosePreparedStatementRequest")
        self.sessions.prepared.pop(caller.user, request.prepared_statement_handle)
        return []

    def _action_BeginTransaction(self, caller: Caller, body: bytes) -> list[bytes]:
        action_body(body, "ActionBeginTransactionRequest")
        handle = self.sessions.begin(caller, self._client(caller))
        return [pack("ActionBeginTransactionResult", transaction_id=handle)]

    def _action_EndTransaction(self, caller: Caller, body: bytes) -> list[bytes]:
        request = action_body(body, "ActionEndTransactionRequest")
        if request.action not in (1, 2):
            raise InterfaceError("EndTransaction wants action 1, commit, or 2, roll back")
        self.sessions.end(caller.user, request.transaction_id, request.action == 1)
        return []

    def _action_SetSessionOptions(self, caller: Caller, body: bytes) -> list[bytes]:
        client = self._needed_client(caller)
        return [set_session_options(client.settings, body, self._fixed_options())]

    def _action_GetSessionOptions(self, caller: Caller, body: bytes) -> list[bytes]:
        parse("GetSessionOptionsRequest", body)
        settings = self.sessions.settings_of(self._client(caller))
        return [session_options({**settings, **self._fixed_options()})]

    def _action_CloseSession(self, caller: Caller, body: bytes) -> list[bytes]:
        parse("CloseSessionRequest", body)
        self.sessions.forget(caller.user, caller.session)
        return [encode("CloseSessionResult", status=1)]

    def _action_CancelFlightInfo(self, caller: Caller, body: bytes) -> list[bytes]:
        request = parse("CancelFlightInfoRequest", body)
        return [encode("CancelFlightInfoResult", status=self._cancelled(caller, request.info))]

    def _action_CancelQuery(self, caller: Caller, body: bytes) -> list[bytes]:
        request = action_body(body, "ActionCancelQueryRequest")
        return [pack("ActionCancelQueryResult", result=self._cancelled(caller, request.info))]

    def _cancelled(self, caller: Caller, serialized: bytes) -> int:
        """Stop what a FlightInfo started: 1 where it had not begun, 2 where it will end soon, 3 where there is nothing."""
        try:
            endpoints = fl.FlightInfo.deserialize(serialized).endpoints
        except (pa.ArrowException, ValueError, OSError):
            raise MalformedMessage("not a FlightInfo") from None
        status = 3
        for endpoint in endpoints:
            name, ticket = unpack(endpoint.ticket.ticket)
            if name == "TicketStatementQuery":
                handle = ticket.statement_handle
                if self.running.cancel(caller, handle):
                    status = 2
                elif self.sessions.tickets.pop(caller.user, handle) is not None:
                    status = 1
        return status

    def _fixed_options(self) -> dict[str, str]:
        return {"catalog": metadata.catalog_name(self.database), "schema": "main"}

    def _needed_client(self, caller: Caller) -> ClientSession:
        client = self._client(caller)
        if client is None:
            raise InterfaceError(
                "session options need a session, and this client keeps no cookies",
                hint="use a client that keeps cookies, or log in with a user and a password",
            )
        return client

    # ----------------------------------------------------------------------------- the rest

    @answered
    def list_flights(self, context: Any, criteria: bytes) -> Iterator[fl.FlightInfo]:
        caller = self._caller(context)
        session = self.sessions.engine(caller, self._client(caller), b"")
        for found in metadata.relations(session):
            path = [found.name] if found.schema == "main" else [found.schema, found.name]
            schema, rows = metadata.arrow_columns(found.columns()), -1 if found.rows is None else found.rows
            yield fl.FlightInfo(schema, fl.FlightDescriptor.for_path(*path), [], rows, -1)

    @answered
    def do_exchange(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        raise NotSupportedError("the call DoExchange is not supported", hint="use DoGet and DoPut")


class Server:
    """A running server and its database; `close` stops it.  Usable in a `with`.

    uri    what clients connect to
    token  what they show, of a server on loopback; None where users log in, or nobody has to
    """

    def __init__(self, database: str, configuration: Configuration) -> None:
        users = Users.of_database(database)
        configuration.check(len(users.all()))
        if configuration.insecure:
            logger.warning("--insecure: no token, no TLS, every client is an administrator")
        self.configuration = configuration
        self.token: str | None = None
        if configuration.is_loopback and not configuration.insecure:
            self.token = secrets.token_urlsafe(32)
        hidden = {configuration.import_root: "<import root>", configuration.export_root: "<export root>"}
        paths = {os.path.realpath(path): shown for path, shown in hidden.items() if path is not None}
        if database != ":memory:":
            paths |= {os.path.realpath(database): "<database>", os.path.abspath(database): "<database>"}
        failures = Failures(paths)
        authenticator = Authenticator(users, self.token, configuration.insecure)
        self.database = Database(database, configuration.read_only)
        try:
            self._flight = FlightSqlServer(self.database, configuration, authenticator, failures)
        except (OSError, pa.ArrowException) as error:
            self.database.close()
            place = f"{configuration.host}:{configuration.port}"
            raise OperationalError(f"cannot listen at {place}: {str(error).splitlines()[0]}") from None
        self.port: int = self._flight.port
        scheme = "grpc" if configuration.tls_cert is None else "grpc+tls"
        self.uri = f"{scheme}://{configuration.host}:{self.port}"
        self._closed = False
        if self.token is not None:
            try:
                token_file.write(self.port, self.token)
            except BaseException:
                self.close()
                raise

    def drain(self) -> bool:
        """Take no new statements, and let those that run end; after `drain_seconds` they are stopped.  False then."""
        return self._flight.running.drain(self.configuration.drain_seconds)

    def close(self) -> None:
        """Stop answering, roll back what is open, and give the database back; closing twice is fine.

        Clients who keep a call open, such as a DoPut without its end, lose their connection.
        """
        if self._closed:
            return
        self._closed = True
        self._flight.running.drain(0.0)
        if self.token is not None:
            token_file.remove(self.port, self.token)
        ending = threading.Thread(target=self._flight.shutdown, name="gpudb-end", daemon=True)
        ending.start()
        ending.join(END_SECONDS)
        while ending.is_alive():
            cut_connections(self.port)
            ending.join(CUT_SECONDS)
        self._flight.release()
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def run_all(session: Session, sql: str, sets: list[Any], check: Callable[[], None]) -> int:
    """Run a statement for each set of parameters, as one transaction; the rows that were changed."""
    whole = insert_all(session, sql, sets)
    if whole is not None:
        return whole.rowcount
    alone = session.transaction is None
    if alone:
        session.begin()
    try:
        count = 0
        for one in sets:
            check()
            count += max(0, session.execute(sql, one).rowcount)
        if alone:
            session.commit()
        return count
    except BaseException:
        if not alone and session.transaction is not None:
            session.transaction.rollback()  # what ran before is not to be committed without the rest
        raise
    finally:
        if alone and session.transaction is not None:
            session.rollback()


def action_body(body: bytes, name: str) -> Any:
    """The message in the body of an action; MalformedMessage where it is another one."""
    found, request = unpack(body)
    if found != name:
        raise MalformedMessage(f"not a {name}")
    return request


def parameter_names(sql: str) -> tuple[str, ...]:
    """Names of a statement's parameters, in order of first use; `?` are "1", "2", ..."""
    if "?" not in sql and "$" not in sql:
        return ()
    from gpudb.planner.parse import parse as parse_sql

    return parse_sql(sql).parameters


def unknown(names: tuple[str, ...]) -> Any:
    """Parameters of which nothing is known: NULLs."""
    if all(name.isdigit() for name in names):
        return [None] * len(names) if names else None
    return dict.fromkeys(names)


def counted(result: Result) -> Result:
    """The number of rows a statement changed, as its one row."""
    rows = max(0, result.rowcount)
    batch = pa.RecordBatch.from_arrays([pa.array([rows], pa.int64())], schema=COUNT_SCHEMA)
    return Result(COUNT_SCHEMA, [BIGINT], result.rowcount, result.receipt, iter([batch]))


def expired() -> Ticket:
    raise InterfaceError("ticket not found", hint="its statement may change something, and so it runs once")


def path_parts(path: list[bytes]) -> list[str]:
    """[table] or [schema, table] of a descriptor."""
    if not 1 <= len(path) <= 2:
        raise InterfaceError("the path of a table is [table] or [schema, table]")
    try:
        return [part.decode() for part in path]
    except UnicodeDecodeError:
        raise MalformedMessage("the path of a table is not UTF-8") from None


def table_name(path: list[bytes]) -> str:
    """A table's name in SQL from the path of a descriptor."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in path_parts(path))


def sql_command(sql: str) -> tuple[str, Any]:
    """SQL as the command that Flight SQL has for it."""
    return "CommandStatementQuery", message("CommandStatementQuery", query=sql)
