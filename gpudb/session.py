"""A session: settings, pinned table versions, the plan cache, and the way of a statement from text to rows.

`Session.execute` is the life of a query in one place: look the statement's shape up in the plan cache; else parse, bind,
rewrite and emit; then run the program on a device and hand out Arrow record batches with a receipt.  Past 600 lines for that:
one walk, whose steps share its state.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cache, lru_cache, partial
from typing import Any

import pyarrow as pa

from gpudb import vm
from gpudb.catalog import Definition, View, name_in_schema, qualified, schema_of
from gpudb.devices import UNDECIDED, Devices
from gpudb.devices.costs import Demand
from gpudb.devices.temporary_files import TemporaryFiles
from gpudb.devices.work import Ledger, Run, StepProfile
from gpudb.errors import (
    CatalogError,
    DataError,
    DeviceError,
    DeviceMemoryError,
    Error,
    InterfaceError,
    ParameterValueError,
    TransactionError,
)
from gpudb.functions.python import PythonFunction, compile_function, declared_types
from gpudb.parameters import typed_parameters
from gpudb.program import Program, TableSource
from gpudb.record import record
from gpudb.result import Pace, Result
from gpudb.settings import Settings
from gpudb.statement_catalog import StatementCatalog
from gpudb.storage import database as storage
from gpudb.storage.database import Change
from gpudb.storage.file_access import FileAccess
from gpudb.storage.table import TableVersion, table_from_arrow
from gpudb.storage.transaction import Transaction
from gpudb.time_zones import UTC
from gpudb.types import BOOLEAN, SqlType, shown_in
from gpudb.vm.texts import TextCache

logger = logging.getLogger("gpudb")
KEPT_PLANS = 512


class Database:
    """What the sessions of one process share: tables, devices, and caches of plans and lookup tables.

    path  ":memory:" or a directory
    """

    def __init__(self, path: str = ":memory:", read_only: bool = False) -> None:
        self.storage = storage.Database(path, read_only)
        self.path = self.storage.path
        self.devices = Devices()
        self.texts = TextCache()
        self.plans: OrderedDict[Any, list[CachedPlan]] = OrderedDict()
        self.lock = threading.RLock()

    def close(self) -> None:
        """Release the directory's lock; closing twice is fine."""
        self.storage.close()


@record
class CachedPlan:
    """A program kept for a statement shape, valid while what it consumed stays the same.

    sql       the statement that it was made for: places in errors count from there
    consumed  (literal slot, value) pairs that shaped the plan
    states    (key, `StatementCatalog.state`) of the tables and views it reads
    """

    sql: str
    program: Program
    types: tuple[SqlType, ...]
    consumed: tuple[tuple[int, Any], ...]
    states: tuple[tuple[str, object], ...]


@record
class Description:
    """What a statement would give.

    statement  its class in `planner.statements`
    schema     of the rows it gives: those of a query, RETURNING, EXPLAIN, SHOW; None for other statements
    """

    statement: type[Any]
    schema: pa.Schema | None


class Session:
    """A handle that statements go through.  Safe to share between threads; statements of one session take turns.

    read_only  statements that write are an AccessError, whatever the database allows
    files      which files statements may read and write; None: all that the process may
    watched    its owner stops what runs past statement_timeout, so that no thread is started for that
    """

    def __init__(self, database: Database, settings: Settings | None = None) -> None:
        self.database = database
        self.settings = Settings() if settings is None else settings
        self.read_only = False
        self.files: FileAccess | None = None
        self.watched = False
        self._registered: dict[str, tuple[str, Any]] = {}
        self._encoded: dict[str, TableVersion] = {}
        self.functions: dict[str, PythonFunction] = {}
        self.transaction: Transaction | None = None
        self._run: Run | None = None
        self._unread: dict[int, Run] = {}  # by their identity, of results that are computed as they are read
        self._lock = threading.RLock()
        self._closed = False

    # ------------------------------------------------------------------------------------- small services

    def close(self) -> None:
        """Statements after this raise InterfaceError; an open transaction is rolled back."""
        self._closed = True
        if self.transaction is not None:
            self.cancel()  # what it does now is undone anyway
            with self._lock:
                self._end_transaction()

    def cancel(self) -> None:
        """Stop the running statement at the next tile border; it raises QueryCancelled.  Any thread may call this.

        Results that are computed as they are read end, too: the next batch raises it.
        """
        for run in (self._run, *list(self._unread.values())):
            if run is not None:
                run.cancel[0] = 1

    def cancel_running(self) -> None:
        """Stop what runs at this moment, and no result that waits for its reader."""
        run = self._run
        if run is not None:
            run.cancel[0] = 1

    def progress(self) -> float | None:
        """Share of the running statement that is done, 0 to 1; None when nothing runs."""
        run = self._run
        return None if run is None else run.progress

    def check_cancelled(self) -> None:
        """Raise QueryCancelled if the running statement was cancelled or ran out of time."""
        if self._run is not None:
            self._run.check()

    def file_progress(self, relation: Any) -> Callable[[int], None]:
        """A callback that turns bytes read into the statement's progress."""

        def advance(read: int) -> None:
            if self._run is not None and relation.total_bytes:
                self._run.progress = min(1.0, read / relation.total_bytes)

        return advance

    def register(self, name: str, data: Any) -> None:
        """Make an Arrow table, a pandas or a polars frame readable as `name` in this session."""
        with self._lock:
            key = qualified(name).lower()
            self._registered[key] = (name, data)
            self._encoded[key] = table_from_arrow(name, data)

    def unregister(self, name: str) -> None:
        """Forget a registered relation."""
        with self._lock:
            key = qualified(name).lower()
            if self._registered.pop(key, None) is None:
                raise CatalogError(f"nothing is registered under this name: {name}")
            self._encoded.pop(key, None)

    def is_registered(self, key: str) -> bool:
        """Is there a registered relation of this (lower-case) name?"""
        return key in self._registered

    def registered(self, key: str) -> TableVersion:
        """The registered relation as a table version."""
        return self._encoded[key]

    def registered_names(self) -> list[str]:
        """Names of registered relations as they were given."""
        return [name for name, _ in self._registered.values()]

    def create_function(
        self,
        name: str,
        function: Callable[..., Any],
        parameters: Sequence[Any] | None = None,
        return_type: Any = None,
        *,
        nulls: str = "default",
        side_effects: bool = False,
        replace: bool = False,
    ) -> None:
        """Let SQL call a Python function, in this session; `Connection.create_function` says how."""
        from gpudb.planner.bind.functions import is_taken
        from gpudb.planner.type_names import named_type

        if nulls not in ("default", "special"):
            raise InterfaceError(f"nulls is 'default' or 'special': {nulls!r}")
        key = name.lower()
        if not name.isidentifier():
            raise InterfaceError(f"not the name of a function: {name!r}")
        if is_taken(key):
            raise CatalogError(f"there is a function of this name in SQL, which none can hide: {name}")
        if key in self.functions and not replace:
            raise CatalogError(
                f"there is a Python function of this name: {name}", hint="remove_function() first, or replace=True"
            )
        given = None if parameters is None else [named_type(one) for one in parameters]
        types = declared_types(name, function, given, None if return_type is None else named_type(return_type))
        made = compile_function(name, function, *types, takes_null=nulls == "special", side_effects=side_effects)
        with self._lock:
            self.functions[key] = made

    def remove_function(self, name: str) -> None:
        """Forget a Python function."""
        with self._lock:
            if self.functions.pop(name.lower(), None) is None:
                raise CatalogError(f"there is no Python function of this name: {name}")

    def tables(self) -> list[str]:
        """Names of the tables and views of schema main and of registered relations, sorted."""
        names = StatementCatalog(self).names()
        inside = {name_in_schema(name) for name in names if schema_of(name) is None}
        return sorted({*inside, *self.registered_names()})

    def defaults(self, table: str) -> dict[str, str]:
        """The SQL of the DEFAULT of each column that has one, of a table of schema main, by lower-case name."""
        return StatementCatalog(self).defaults(qualified(table))

    def view(self, name: str) -> View | None:
        """The view of a name in schema main, or None."""
        return StatementCatalog(self).view(qualified(name))

    def columns(self, table: str) -> list[tuple[str, SqlType]]:
        """(name, SQL type) of the columns of a table or view of schema main."""
        catalog = StatementCatalog(self)
        layout, view = catalog.table(qualified(table)), catalog.view(qualified(table))
        if layout is not None:
            return list(layout.columns)
        if view is None:
            raise CatalogError(f"table not found: {table}")
        from gpudb.planner.bind import view_columns

        return view_columns(view, catalog, self.settings)

    @staticmethod
    def split_statements(sql: str) -> list[str]:
        """The statements of a script."""
        from gpudb.planner.parse import split_statements

        return split_statements(sql)

    def clear_plan_cache(self) -> None:
        """Forget all kept plans, so that the next statement of every shape is planned anew."""
        with self.database.lock:
            self.database.plans.clear()

    # ------------------------------------------------------------------------------------- transactions

    @property
    def store(self) -> storage.Database | Transaction:
        """What statements read from: the open transaction, or else the database."""
        return self.transaction or self.database.storage

    def write(
        self,
        catalog: StatementCatalog,
        changes: Mapping[str, TableVersion | None],
        change: Change = Change.DEFINED,
        definitions: Mapping[str, Definition | None] | None = None,
    ) -> None:
        """What a statement did to tables and definitions: into the open transaction, or committed at once.

        Raises ConflictError if another one has committed a change of the same table since the catalog was pinned.
        """
        if self.transaction is not None:
            self.transaction.write(changes, definitions, change)
        else:
            self.database.storage.commit(changes, catalog.snapshot.version, definitions, change)

    def begin(self, read_only: bool = False) -> None:
        """Open a transaction: what statements change from here on is seen by this session only, until commit()."""
        if self.transaction is not None:
            raise TransactionError("cannot start a transaction within a transaction", hint="COMMIT or ROLLBACK first")
        self.transaction = Transaction(self.database.storage, read_only)

    def commit(self) -> None:
        """Make all changes of the open transaction durable, or none; it is over either way.

        One that an error has aborted is rolled back, as in DuckDB and PostgreSQL.  Raises ConflictError where another
        transaction was faster.
        """
        if self.transaction is None:
            raise TransactionError("cannot commit: no transaction is open", hint="BEGIN opens one")
        if self.transaction.aborted:
            logger.warning("COMMIT of an aborted transaction: it was rolled back")
        try:
            self.transaction.commit(self._check_merged)
        finally:
            self._end_transaction()

    def _check_merged(self, snapshot: storage.Snapshot, first: TableVersion, merged: TableVersion) -> None:
        """IntegrityError where rows of two transactions together break a key of their table."""
        constraints = StatementCatalog(self, snapshot).constraints(first.name)
        if constraints.keys:
            from gpudb.constraints import check_merged

            check_merged(self, constraints, first, merged)

    def rollback(self) -> None:
        """Undo all changes of the open transaction."""
        if self.transaction is None:
            raise TransactionError("cannot roll back: no transaction is open", hint="BEGIN opens one")
        self._end_transaction()

    def _end_transaction(self) -> None:
        if self.transaction is not None:
            self.transaction.rollback()
            self.transaction = None

    # ------------------------------------------------------------------------------------- statements

    def execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None) -> Result:
        """Run exactly one statement.  Errors carry the statement's text and a place in it."""
        if self._closed:
            raise InterfaceError("the session is closed")
        began = time.perf_counter()
        try:
            with self._lock:
                try:
                    result = self._execute(sql, parameters)
                    if result.pace is not None:
                        result = self._guarded(result, sql)
                except ParameterValueError:
                    raise  # nothing was begun, and nothing is aborted, as in DuckDB
                except BaseException:
                    if self.transaction is not None:
                        self.transaction.rollback()  # any error aborts it, as in DuckDB: its end is left to the user
                    raise
        except Error as error:
            raise error.attach_sql(sql) from None
        finally:
            seconds = time.perf_counter() - began
            slow = self.settings["slow_query_seconds"]
            if slow and seconds > slow:
                logger.warning("slow statement: %.3f s: %s", seconds, sql)
        return result

    def _guarded(self, result: Result, sql: str) -> Result:
        """A result whose rows are computed as they are read: their errors are the statement's, and abort its transaction."""
        transaction, batches = self.transaction, result.batches()

        def guarded() -> Iterator[pa.RecordBatch]:
            try:
                yield from batches
            except GeneratorExit:
                raise
            except BaseException as error:
                with self._lock:
                    if transaction is not None and self.transaction is transaction:
                        transaction.rollback()
                if isinstance(error, Error):
                    raise error.attach_sql(sql) from None
                raise

        return replace(result, _batches=guarded())

    def _execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] | None) -> Result:
        from gpudb.planner.parse import moved_span, shape

        stages: dict[str, float] = {}
        clock = time.perf_counter()

        def lap(stage: str) -> None:
            nonlocal clock
            now = time.perf_counter()
            stages[stage] = stages.get(stage, 0.0) + (now - clock) * 1e3
            clock = now

        if self.transaction is not None and self.transaction.aborted:
            self._end_aborted(sql)
            return Result(pa.schema([]), [])
        key, literals = shape(sql)
        types, values = typed_parameters(parameters)
        catalog = StatementCatalog(self)
        cache_key = self._cache_key(key, types)
        raw = [value for _, value in literals]
        raw += values.values() if isinstance(values, dict) else values
        lap("parse")
        cached = self._find_plan(cache_key, raw, catalog)
        if cached is not None:
            lap("plan")
            try:
                return self.run_program(
                    cached.program,
                    cached.types,
                    raw,
                    catalog,
                    stages,
                    lap,
                    cached=True,
                    moved=lambda span: moved_span(span, cached.sql, sql),
                )
            except Error as error:
                error.span = moved_span(error.span, cached.sql, sql)
                raise
        return self._plan_and_run(sql, cache_key, types, values, catalog, stages, lap)

    def _cache_key(self, shape: Any, types: Any) -> Any:
        """What a kept plan is found by: a statement's shape, the settings that plans depend on, what is this session's."""
        settings = self.settings["integer_division"], self.settings["timezone"]
        own = id(self) if self._registered else 0, tuple(self.functions.values())
        return shape, types, settings, own

    def _end_aborted(self, sql: str) -> None:
        """COMMIT or ROLLBACK of an aborted transaction; TransactionError for any other statement."""
        from gpudb.planner.parse import Command, parse

        tree = parse(sql).tree
        if not isinstance(tree, Command) or tree.name not in ("commit", "rollback"):
            raise TransactionError(
                "the current transaction is aborted, by an error in it", hint="ROLLBACK ends it; nothing of it is kept"
            )
        (self.commit if tree.name == "commit" else self.rollback)()

    def _find_plan(self, key: Any, raw: list[Any], catalog: StatementCatalog) -> CachedPlan | None:
        if not self.settings["plan_cache"]:
            return None
        for plan in self.database.plans.get(key, ()):
            if all(same_value(raw[slot], value) for slot, value in plan.consumed) and all(
                catalog.state(key) == state for key, state in plan.states
            ):
                return plan
        return None

    def _plan_and_run(
        self, sql: str, key: Any, types: Any, values: Any, catalog: StatementCatalog, stages: dict[str, float], lap: Any
    ) -> Result:
        from gpudb.planner import statements

        statement, parsed, raw = self._bind(sql, types, values, catalog, lap)
        draws = () if isinstance(statement, statements.Explain) else statement.draws
        # Others draw from its sequences when it is through, as it may take numbers for its rows.
        with self.database.storage.write_lock if draws else nullcontext():
            if draws:
                from gpudb.sequences import draw

                raw[-len(draws) :] = draw(self, draws)
            if isinstance(statement, statements.Query):
                program = self._planned(sql, key, statement, parsed, types, values, raw, catalog, lap)
                whole = bool(draws)
                return self.run_program(program, program.types, raw, catalog, stages, lap, cached=False, whole=whole)
            from gpudb.statements import run_statement

            return run_statement(self, statement, raw, catalog, stages, lap)

    def _bind(
        self, sql: str, types: Any, values: Any, catalog: StatementCatalog, lap: Any
    ) -> tuple[Any, Any, list[Any]]:
        """(bound statement, parsed text, values of its literals and parameters)."""
        from gpudb.planner.bind import bind
        from gpudb.planner.parse import parse

        parsed = parse(sql)
        catalog.deep = parsed.deep
        lap("parse")
        statement = bind(parsed, catalog, types, parameter_values=values, settings=self.settings)
        lap("bind")
        raw = [value for _, value in parsed.literals]
        if isinstance(values, dict):
            raw += [values[name] for name in parsed.parameters]
        else:
            raw += [values[int(name) - 1] for name in parsed.parameters]
        if statement.draws:
            from gpudb.sequences import peek

            raw += peek(self, statement.draws)
        return statement, parsed, raw

    def _planned(
        self,
        sql: str,
        key: Any,
        statement: Any,
        parsed: Any,
        types: Any,
        values: Any,
        raw: list[Any],
        catalog: StatementCatalog,
        lap: Any,
    ) -> Program:
        """The program of a bound query, kept for statements of its shape where that may be."""
        _, program = self.program(statement.plan, raw, catalog, lap)
        kept = not statement.volatile and not catalog.relations and not isinstance(values, dict)
        if kept and tuple(parsed.parameters) == tuple(str(n + 1) for n in range(len(values))):
            self._keep_plan(key, sql, program, statement, raw, catalog)
        return program

    def describe(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None) -> Description:
        """What a statement would give, without running it; its plan is kept, so that running it then finds one.

        Raises what planning it raises.  A query that reads files has no plan before its rows are read: it is only bound.
        """
        from gpudb.explain import explain_columns
        from gpudb.planner import statements
        from gpudb.planner.parse import shape
        from gpudb.statements import run_statement

        if self._closed:
            raise InterfaceError("the session is closed")

        try:
            with self._lock:
                key, literals = shape(sql)
                types, values = typed_parameters(parameters)
                catalog = StatementCatalog(self)
                cache_key = self._cache_key(key, types)
                raw = [value for _, value in literals]
                raw += values.values() if isinstance(values, dict) else values
                cached = self._find_plan(cache_key, raw, catalog)
                if cached is not None:
                    return Description(
                        statements.Query, result_schema(cached.program, cached.types, raw, self.settings["timezone"])
                    )
                statement, parsed, raw = self._bind(sql, types, values, catalog, untimed)
                zone = self.settings["timezone"]
                match statement:
                    case statements.Query() if not catalog.relations:
                        program = self._planned(sql, cache_key, statement, parsed, types, values, raw, catalog, untimed)
                        schema = result_schema(program, program.types, raw, zone)
                    case statements.Query(plan=plan) | statements.Insert(returning=plan) if plan is not None:
                        schema = arrow_schema(*zip(*plan.columns, strict=True), zone)
                    case (
                        statements.Delete(returning=plan)
                        | statements.Update(returning=plan)
                        | statements.Upsert(returning=plan)
                    ) if plan is not None:
                        schema = arrow_schema(*zip(*plan.columns, strict=True), zone)
                    case statements.Merge(returning=plans) if plans is not None:
                        schema = arrow_schema(*zip(*plans[0].columns, strict=True), zone)
                    case statements.Explain():
                        schema = arrow_schema(*zip(*explain_columns(statement), strict=True))
                    case (
                        statements.Describe() | statements.ShowTables() | statements.Show()
                    ):  # at once, without effects
                        schema = run_statement(self, statement, raw, catalog, {}, untimed).schema
                    case _:
                        schema = None
                return Description(type(statement), schema)
        except Error as error:
            raise error.attach_sql(sql) from None

    def program(self, plan: Any, raw: list[Any], catalog: StatementCatalog, lap: Any) -> tuple[Any, Program]:
        """Rewrite and emit a plan; files it reads are loaded in between, since layouts come from rows."""
        from gpudb.planner.constant_parts import constant_parts, one_row, with_values
        from gpudb.planner.emit import emit_program
        from gpudb.planner.logical import Scan
        from gpudb.planner.parse import on_a_big_stack
        from gpudb.planner.physical import choose
        from gpudb.planner.rules import apply_rules

        plan = on_a_big_stack(partial(apply_rules, plan)) if catalog.deep else apply_rules(plan)
        lap("plan")
        if catalog.relations:
            used: dict[str, set[int]] = {}
            stack = [plan]
            while stack:
                node = stack.pop()
                stack += node.inputs()
                if isinstance(node, Scan) and node.table in catalog.relations:
                    used.setdefault(node.table, set()).update(node.ordinals)
            for key, ordinals in used.items():
                catalog.load(key, ordinals)
            lap("load")
        plan = on_a_big_stack(partial(choose, plan, catalog)) if catalog.deep else choose(plan, catalog)
        emit = partial(emit_program, plan, catalog)
        if not catalog.deep and (parts := constant_parts(plan)):
            before = emit_program(one_row(parts), catalog)
            values = self._first_row(before, raw)
            if values is not None:
                plan = with_values(plan, parts, values, len(raw))
                program = replace(emit_program(plan, catalog), before=before, without_before=cache(emit))
                lap("emit")
                return plan, program
        program = on_a_big_stack(emit) if catalog.deep else emit()
        lap("emit")
        return plan, program

    def _first_row(self, program: Program, raw: list[Any]) -> list[Any] | None:
        """The values of a program of one row, computed where it costs least; None where it fails, or one is NULL."""
        device, _, _ = self.database.devices.choose({**self.settings, "device": "auto"})
        run = Run(Ledger(self.settings["memory_limit"]))
        try:
            values = vm.first_row(*vm.execute(program, device, {}, self.constants(raw), run, self.database.texts))
        except DataError:  # rows decide whether it is an error
            return None
        if None in values:
            return None
        return [bool(v) if sql == BOOLEAN else v for v, sql in zip(values, program.types, strict=True)]

    def _keep_plan(
        self, key: Any, sql: str, program: Program, statement: Any, raw: list[Any], catalog: StatementCatalog
    ) -> None:
        if not self.settings["plan_cache"]:
            return
        consumed = tuple((slot, raw[slot]) for slot in sorted(statement.consumed) if slot < len(raw))
        states = tuple((key, catalog.state(key)) for key in {*program.tables, *statement.tables})
        with self.database.lock:
            plans = self.database.plans
            kept = plans.setdefault(key, [])
            kept.insert(0, CachedPlan(sql, program, program.types, consumed, states))
            del kept[8:]
            plans.move_to_end(key)
            while len(plans) > KEPT_PLANS:
                plans.popitem(last=False)

    def constants(self, raw: list[Any]) -> Callable[[Any], Any]:
        """What turns a literal of the plan into its value in this execution."""
        from gpudb.planner.constants import literal_value

        known: dict[Any, Any] = {}  # a range's ends are asked for by zone tests and by every row group

        def constant(literal: Any) -> Any:
            if literal.slot is None:
                return literal.value
            if literal not in known:
                known[literal] = literal_value(literal, raw[literal.slot])
            return known[literal]

        return constant

    def start_run(self) -> Run:
        """A fresh Run under this session's limits; it becomes the one that cancel() stops."""
        run = Run(Ledger(self.settings["memory_limit"], self._temporary_files()))
        self._go_on(run)
        return run

    def _go_on(self, run: Run) -> None:
        run.began = time.perf_counter()
        timeout = self.settings["statement_timeout"]
        if timeout and not self.watched:  # the thread costs 0.1 to 2 ms
            timer = threading.Timer(max(0.0, timeout - run.seconds), run.cancel.__setitem__, (0, 2))
            timer.daemon = True
            timer.start()
            run.timer = timer
        self._run = run

    def _temporary_files(self) -> TemporaryFiles | None:
        """Where a statement's intermediate results go when memory_limit is reached."""
        folder = self.settings["temp_directory"]
        if folder == "auto":
            folder = self.database.storage.temporary_folder
        if not folder:
            return None
        limit = self.settings["max_temp_directory_size"] or None
        return TemporaryFiles(folder, limit, self.settings["memory_limit"] // 4, self.database.storage.unmap)

    def end_run(self, run: Run) -> None:
        """The run is over, or waits for who reads its rows."""
        run.seconds += time.perf_counter() - run.began
        if run.timer is not None:
            run.timer.cancel()
        if self._run is run:
            self._run = None

    @contextmanager
    def _slice_of(self, run: Run, pace: Pace) -> Iterator[None]:
        """A slice of rows runs, when it is its turn."""
        with pace.around(), self._lock:
            outer = self._run
            self._go_on(run)
            try:
                yield
            finally:
                self.end_run(run)
                self._run = outer

    def run_program(
        self,
        program: Program,
        types: tuple[SqlType, ...],
        raw: list[Any],
        catalog: StatementCatalog,
        stages: dict[str, float],
        lap: Any,
        cached: bool,
        profile: list[StepProfile] | None = None,
        whole: bool = False,
        moved: Callable[[Any], Any] | None = None,
    ) -> Result:
        """Run a program; its rows are exported as they are read, and of many that come in no order all but the first computed.

        whole  all are computed here, so that no error comes later
        moved  for places in errors that come later, of a plan that was made for another text
        """
        devices, wanted = self.database.devices, self.settings["device"]
        called = program.functions if program.before is None else (*program.before.functions, *program.functions)
        if called:
            why = f"Python functions run on the CPU: {', '.join(function.name for function in called)}"
            device, reason, fallback = devices.off_gpus(self.settings, why)
        else:
            device, reason, fallback = devices.choose(self.settings)
        if program.before is not None:
            values = self._first_row(program.before, raw)
            program, raw = (program.without_before(), raw) if values is None else (program, [*raw, *values])
        tables = {key: catalog.version(key) for key in program.tables}
        if reason is UNDECIDED:
            device, reason = devices.cheapest(device, self.settings, demand_of(program, tables))
        sliced = not whole and profile is None
        run = self.start_run()
        try:
            machine: vm.Machine | None = None
            rows: Any = None
            while machine is None:
                run.profile = profile
                began = time.perf_counter()
                try:
                    machine, rows = vm.execute(
                        program, device, tables, self.constants(raw), run, self.database.texts, sliced
                    )
                except DeviceError as error:
                    sparing = isinstance(error, DeviceMemoryError) and not run.sparing
                    if sparing:
                        reason += "; device memory was short: column by column in small batches"
                    else:
                        device, fallback = devices.after(device, error, {**self.settings, "device": wanted})
                if machine is None:  # the failed run's memory is free only now that the error is gone
                    run = self._run = run.again(sparing)
                    if profile is not None:
                        profile.clear()
        finally:
            self.end_run(run)
        lap("run")
        pace = None if rows.rest is None else Pace(rows.rest.width, run.ledger.limit)
        if device.name == "cpu" and pace is None:
            devices.costs.learn(run.bytes_read, time.perf_counter() - began)
        schema = result_schema(program, types, raw, self.settings["timezone"])
        receipt: dict[str, Any] = {
            "device": device.name,
            "reason": reason,
            "plan_cached": cached,
            "tiles_run": run.tiles_run,
            "tiles_skipped": run.tiles_skipped,
            "bytes_read": run.bytes_read,
            "host_rows": run.host_rows,
            "peak_bytes": run.ledger.peak,
            "spilled_bytes": run.ledger.spilled,
            "stages_ms": stages,
            "fallback": fallback,
        }
        if called:
            receipt["python_functions"] = {
                function.name: "compiled by numba, called once a tile" for function in called
            }

        def batches() -> Iterator[pa.RecordBatch]:
            nonlocal machine, rows
            began, ran = time.perf_counter(), run.seconds
            other, sent = None, 0
            assert machine is not None, "rows are read once"
            running = nullcontext if pace is None else partial(self._slice_of, run, pace)
            try:
                for batch in vm.export(machine, rows, schema, types, running):
                    sent += batch.num_rows
                    yield batch
                    del batch  # its memory is for the next slice
            except DeviceError as error:
                other, receipt["fallback"] = devices.after(device, error, {**self.settings, "device": wanted})
            if other is not None:  # the same rows in the same order, on every device: go on behind those that are out
                machine = rows = None
                receipt["device"] = other.name
                with running():
                    machine, rows = vm.execute(
                        program,
                        other,
                        tables,
                        self.constants(raw),
                        run.again(False),
                        self.database.texts,
                        sliced=pace is not None,
                    )
                yield from vm.export(machine, rows, schema, types, running, sent)
            stages["export"] = (time.perf_counter() - began) * 1e3
            receipt["peak_bytes"], receipt["spilled_bytes"] = run.ledger.peak, run.ledger.spilled
            if pace is not None:
                stages["run"] = stages.get("run", 0.0) + (run.seconds - ran) * 1e3
                stages["export"] -= (run.seconds - ran) * 1e3
                receipt["tiles_run"], receipt["tiles_skipped"] = run.tiles_run, run.tiles_skipped
                receipt["bytes_read"], receipt["host_rows"] = run.bytes_read, run.host_rows
                if device.name == "cpu":
                    devices.costs.learn(run.bytes_read, run.seconds)

        if pace is None:
            return Result(schema, list(types), -1, receipt, batches())
        self._unread[id(run)] = run
        reading = weakref.finalize(pace, self._unread.pop, id(run))
        reading.atexit = False

        def as_read() -> Iterator[pa.RecordBatch]:
            try:
                yield from batches()
            except Error as error:
                if moved is not None:
                    error.span = moved(error.span)
                raise
            finally:
                reading()

        return Result(schema, list(types), -1, receipt, as_read(), pace)

    def query_batches(self, plan: Any, raw: list[Any], catalog: StatementCatalog, lap: Any) -> Iterator[pa.RecordBatch]:
        """The rows of a plan, for statements that store or write them."""
        _, program = self.program(plan, raw, catalog, lap)
        stages: dict[str, float] = {}
        return self.run_program(program, program.types, raw, catalog, stages, lap, cached=False).batches()

    def query_table(self, plan: Any, raw: list[Any], catalog: StatementCatalog, lap: Any) -> pa.Table:
        """All rows of a plan, in columns c0, c1, ...: its own names need not be different."""
        _, program = self.program(plan, raw, catalog, lap)
        result = self.run_program(program, program.types, raw, catalog, {}, lap, cached=False)
        found = pa.Table.from_batches(result.batches(), result.schema)
        return found.rename_columns([f"c{k}" for k in range(found.num_columns)])


def untimed(stage: str) -> None:
    """A lap that nobody asks for."""


def result_schema(program: Program, types: tuple[SqlType, ...], raw: Sequence[Any], zone: str) -> pa.Schema:
    """The Arrow schema of a program's rows; a name that shows literals, such as (a + 5), shows those of this execution."""
    from gpudb.planner.logical import SlotName

    names = tuple(name.with_values(raw) if isinstance(name, SlotName) else name for name in program.names)
    return arrow_schema(names, types, zone)


@lru_cache(KEPT_PLANS)
def arrow_schema(names: tuple[str, ...], types: tuple[SqlType, ...], zone: str = UTC) -> pa.Schema:
    """The Arrow schema of result columns; kept, as a statement that runs again gives the same.

    zone  the session's, in which timestamps with time zone are shown
    """
    return pa.schema([pa.field(name, shown_in(sql, zone)) for name, sql in zip(names, types, strict=True)])


def demand_of(program: Program, tables: Mapping[str, TableVersion]) -> Demand:
    """What a program asks of a device: its steps, and the table columns that it reads."""
    read = []
    size = 0
    for _, pipeline in program.pipelines:
        if isinstance(pipeline.source, TableSource):
            table = tables[pipeline.source.table]
            for column in pipeline.columns:
                if column.step is None:
                    read.append((table, pipeline.source.ordinals[column.index], column.part == "validity"))
                    size += (1 if column.part == "validity" else 8 * column.type.width) * table.num_rows

    def arrays() -> Iterator[Any]:
        for table, ordinal, validity in read:
            for group in table.row_groups:
                array = group.chunks[ordinal].in_memory()[validity]
                if array is not None:
                    yield array

    return Demand(len(program.steps), size // 8, arrays)


def same_value(left: Any, right: Any) -> bool:
    """Equal, and of one type: 1 is not True, nor '1'."""
    return type(left) is type(right) and left == right
