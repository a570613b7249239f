"""What each statement other than a plain query does: tables made, filled, dropped and described, settings, EXPLAIN."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from gpudb.catalog import (
    Constraints,
    Defaults,
    Definition,
    Enum,
    Schema,
    Sequence,
    definition_key,
    name_in_schema,
    schema_of,
)
from gpudb.constraints import check_added, check_all, check_replaced
from gpudb.errors import (
    AccessError,
    CatalogError,
    ConflictError,
    ConversionError,
    DeviceError,
    NotSupportedError,
    TransactionError,
)
from gpudb.merging import Merging, in_order, whole_rows
from gpudb.planner import statements
from gpudb.result import Result
from gpudb.session import Session
from gpudb.statement_catalog import StatementCatalog
from gpudb.storage.changes import with_column, with_name_of_column, with_values, without_column, without_rows
from gpudb.storage.database import Change
from gpudb.storage.table import TableBuilder, TableVersion
from gpudb.types import BIGINT, VARCHAR, SqlType

COUNT = (("Count", BIGINT),)
WRITES = (
    statements.CreateTable
    | statements.CreateTableAs
    | statements.DropTable
    | statements.CreateView
    | statements.DropView
    | statements.CreateSchema
    | statements.CreateSequence
    | statements.DropSequence
    | statements.DropSchema
    | statements.CreateType
    | statements.DropType
    | statements.Insert
    | statements.Upsert
    | statements.Merge
    | statements.Delete
    | statements.Update
    | statements.AddColumn
    | statements.SetConstraints
    | statements.SetDefault
    | statements.SetType
    | statements.DropColumn
    | statements.RenameColumn
    | statements.RenameTable
    | statements.CopyFrom
)


def run_statement(
    session: Session, statement: Any, raw: list[Any], catalog: StatementCatalog, stages: dict[str, float], lap: Any
) -> Result:
    """Run a bound statement; raises what its parts raise."""
    if session.transaction is not None and session.transaction.read_only and isinstance(statement, WRITES):
        raise TransactionError(
            "the transaction is READ ONLY, and this statement writes", hint="BEGIN without READ ONLY"
        )
    if session.read_only and isinstance(statement, WRITES | statements.CopyTo):
        raise AccessError("the user may only read, and this statement writes")
    match statement:
        case statements.Begin():
            session.begin(statement.read_only)
            return _nothing()
        case statements.Commit():
            session.commit()
            return _nothing()
        case statements.Rollback():
            session.rollback()
            return _nothing()
        case statements.Explain():
            from gpudb.explain import explain

            return explain(session, statement, raw, catalog, stages, lap)
        case statements.CreateTable():
            return _create(session, statement, catalog)
        case statements.CreateTableAs():
            return _create_as(session, statement, raw, catalog, lap)
        case statements.DropTable():
            return _drop(session, statement, catalog)
        case statements.CreateView():
            return _create_view(session, statement, catalog)
        case statements.DropView():
            return _define(session, catalog, {statement.name.casefold(): None})
        case statements.CreateSchema():
            schema = Schema(statement.name)
            if statement.name.lower() == "main" or catalog.has_schema(statement.name):
                return _nothing()
            return _define(session, catalog, {definition_key(schema): schema})
        case statements.CreateType(enum=enum):
            if catalog.enum(enum.name) is not None:
                return _nothing()
            return _define(session, catalog, {definition_key(enum): enum})
        case statements.DropType():
            return _drop_type(session, statement, catalog)
        case statements.CreateSequence(sequence=sequence):
            if catalog.sequence(sequence.name) is not None and not statement.or_replace:
                if statement.if_not_exists:
                    return _nothing()
                raise CatalogError(f"sequence already exists: {sequence.name}", hint="DROP SEQUENCE it")
            return _define(session, catalog, {definition_key(sequence): sequence})
        case statements.DropSequence():
            return _drop_sequence(session, statement, catalog)
        case statements.DropSchema():
            return _drop_schema(session, statement, catalog)
        case statements.Insert():
            return _insert(session, statement, raw, catalog, stages, lap)
        case statements.Upsert() | statements.Merge():
            merging = Merging(session, _target(session, statement.table, catalog), raw, catalog, stages, lap)
            if isinstance(statement, statements.Upsert):
                count, returned = merging.upsert(statement)
            else:
                count, returned = merging.merge(statement)
            return _counted(count) if returned is None else returned
        case statements.Nothing():
            return _nothing()
        case statements.Delete() | statements.Update():
            return _change_rows(session, statement, raw, catalog, stages, lap)
        case (
            statements.AddColumn()
            | statements.SetConstraints()
            | statements.SetDefault()
            | statements.SetType()
            | statements.DropColumn()
            | statements.RenameColumn()
            | statements.RenameTable()
        ):
            return _alter(session, statement, raw, catalog, lap)
        case statements.CopyFrom():
            return _copy_from(session, statement, catalog)
        case statements.CopyTo():
            from gpudb.storage import files

            batches = session.query_batches(statement.plan, raw, catalog, lap)
            zone = session.settings["timezone"]
            columns, options = statement.plan.columns, statement.options
            rows = files.write_file(statement.path, columns, batches, statement.format, options, session.files, zone)
            return _counted(rows)
        case statements.Describe():
            defaults = dict(statement.defaults)
            required, keys = facts_of_columns(statement.constraints)
            lines = [
                (
                    name,
                    str(kind),
                    "NO" if name.lower() in required else "YES",
                    keys.get(name.lower()),
                    defaults.get(name.lower()),
                    None,
                )
                for name, kind in statement.columns
            ]
            names = ("column_name", "column_type", "null", "key", "default", "extra")
            return _table([(n, VARCHAR) for n in names], list(zip(*lines, strict=True)) if lines else [()] * 6)
        case statements.ShowTables():
            return _table([("name", VARCHAR)], [tuple(session.tables())])
        case statements.Set():
            session.settings.set(statement.name, statement.value)
            return _nothing()
        case statements.Reset():
            session.settings.reset(statement.name)
            return _nothing()
        case statements.Show():
            name = session.settings.canonical(statement.name)
            if name == "device":
                return _device(session)
            return _table([(name, VARCHAR)], [(str(session.settings[name]),)])
    raise NotSupportedError(f"statement is not supported: {type(statement).__name__}")


def facts_of_columns(constraints: Constraints | None) -> tuple[set[str], dict[str, str]]:
    """(columns that hold no NULL, PRI or UNI of columns that are in a key), both by lower-case name."""
    if constraints is None:
        return set(), {}
    keys = {name.lower(): "UNI" for key in constraints.keys if key.kind == "UNIQUE" for name in key.columns}
    keys |= {name.lower(): "PRI" for name in constraints.primary_key}
    return {name.lower() for name in constraints.not_null}, keys


def _device(session: Session) -> Result:
    """SHOW device: the setting, where it lets statements run, and why not on a GPU."""
    wanted, devices = session.settings["device"], session.database.devices
    why = devices.why_no_gpu()
    if wanted in ("gpu", "gpu!") and why is None:
        with contextlib.suppress(DeviceError):
            devices.choose(session.settings)  # which looks for it
        why = devices.why_no_gpu()
    return _table([("device", VARCHAR), ("no_gpu", VARCHAR)], [(wanted,), (why,)])


def _nothing() -> Result:
    return Result(pa.schema([]), [])


def _table(columns: list[tuple[str, SqlType]], values: list[tuple[Any, ...]]) -> Result:
    schema = pa.schema([(name, kind.arrow) for name, kind in columns])
    arrays = [pa.array(list(v), kind.arrow) for v, (_, kind) in zip(values, columns, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    return Result(schema, [kind for _, kind in columns], -1, {}, iter([batch]))


def _counted(rows: int) -> Result:
    schema = pa.schema([(name, kind.arrow) for name, kind in COUNT])
    batch = pa.RecordBatch.from_arrays([pa.array([rows], pa.int64())], schema=schema)
    return Result(schema, [BIGINT], rows, {}, iter([batch]))


def _make_room(name: str, catalog: StatementCatalog, if_not_exists: bool, or_replace: bool) -> bool:
    """May the table be made?  False where IF NOT EXISTS says to leave it."""
    if catalog.view(name) is not None:
        if if_not_exists:
            return False
        raise CatalogError(f"a view has this name: {name}", hint="DROP VIEW it")
    if name in catalog.snapshot:
        if if_not_exists:
            return False
        if not or_replace:
            raise CatalogError(f"table already exists: {name}", hint="DROP TABLE it, or CREATE OR REPLACE TABLE")
    return True


def _create(session: Session, statement: statements.CreateTable, catalog: StatementCatalog) -> Result:
    if not _make_room(statement.name, catalog, statement.if_not_exists, statement.or_replace):
        return _nothing()
    table = TableVersion.empty(statement.name, statement.columns)
    definitions = _defaults(statement.name, dict(statement.defaults)) | _constraints(statement.constraints)
    session.write(catalog, {statement.name: table}, definitions=definitions)
    return _nothing()


def _create_as(
    session: Session, statement: statements.CreateTableAs, raw: list[Any], catalog: StatementCatalog, lap: Any
) -> Result:
    if not _make_room(statement.name, catalog, statement.if_not_exists, statement.or_replace):
        return _nothing()
    columns = tuple(statement.plan.columns)
    with session.store.staging() as staging:
        builder = TableBuilder(columns, sink=staging.sink(statement.name, columns))
        if statement.with_data:
            streamed = _file_stream(session, statement.plan, catalog)
            batches = streamed or session.query_batches(statement.plan, raw, catalog, lap)
            for batch in batches:
                session.check_cancelled()
                builder.append(batch)
        table = builder.finish(statement.name)
        definitions = _defaults(statement.name, {}) | _constraints(Constraints(statement.name, ()))
        session.write(catalog, {statement.name: table}, definitions=definitions)
    return _counted(table.num_rows)


def _file_stream(session: Session, plan: Any, catalog: StatementCatalog) -> Iterator[pa.RecordBatch] | None:
    """The rows of a file that a plan only passes on: they need not all be in memory at once."""
    from gpudb.planner.expressions import Column
    from gpudb.planner.logical import Project, Scan
    from gpudb.planner.rules import apply_rules

    plan = apply_rules(plan)
    order = None
    if isinstance(plan, Project) and all(isinstance(e, Column) for e in plan.expressions):
        order = [e.index for e in plan.expressions]  # type: ignore[attr-defined]
        plan = plan.input
    if not (isinstance(plan, Scan) and plan.predicate is None and plan.table in catalog.relations):
        return None
    ordinals = list(plan.ordinals) if order is None else [plan.ordinals[k] for k in order]
    if len(set(ordinals)) < len(ordinals) or not ordinals:
        return None
    relation = catalog.relations[plan.table]
    return relation.batches(ordinals, session.file_progress(relation))


def _drop(session: Session, statement: statements.DropTable, catalog: StatementCatalog) -> Result:
    if session.is_registered(statement.name.lower()):
        raise CatalogError(f"a registered relation cannot be dropped: {statement.name}", hint="unregister() it first")
    if statement.name not in catalog.snapshot:
        if statement.if_exists:
            return _nothing()
        raise CatalogError(f"table not found: {statement.name}")
    session.write(catalog, {statement.name: None})
    return _nothing()


def _define(session: Session, catalog: StatementCatalog, definitions: Mapping[str, Definition | None]) -> Result:
    """Commit views and schemas, if there is something to do."""
    known = catalog.snapshot.definitions
    changes = {key: one for key, one in definitions.items() if known.get(key) != one}
    if changes:
        session.write(catalog, {}, definitions=changes)
    return _nothing()


def _create_view(session: Session, statement: statements.CreateView, catalog: StatementCatalog) -> Result:
    name = statement.view.name
    if name in catalog.snapshot:
        raise CatalogError(f"a table has this name: {name}", hint="DROP TABLE it")
    if catalog.view(name) is not None and not statement.or_replace:
        if statement.if_not_exists:
            return _nothing()
        raise CatalogError(f"view already exists: {name}", hint="DROP VIEW it, or CREATE OR REPLACE VIEW")
    return _define(session, catalog, {definition_key(statement.view): statement.view})


def _drop_type(session: Session, statement: statements.DropType, catalog: StatementCatalog) -> Result:
    values = catalog.enum(statement.name)
    if values is None:
        return _nothing()
    for name in catalog.snapshot:
        if any(kind.values == values for _, kind in catalog.version(name).columns):
            raise CatalogError(
                f"type is in use by a column of a table: {statement.name}, {name}", hint="drop that first"
            )
    return _define(session, catalog, {definition_key(Enum(statement.name, ())): None})


def _drop_schema(session: Session, statement: statements.DropSchema, catalog: StatementCatalog) -> Result:
    if not catalog.has_schema(statement.name):
        return _nothing()
    inside = [name for name in catalog.names() if (schema_of(name) or "").casefold() == statement.name.casefold()]
    found = [one for one in catalog.snapshot.definitions.values() if isinstance(one, Sequence)]
    sequences = [one for one in found if (schema_of(one.name) or "").casefold() == statement.name.casefold()]
    if (inside or sequences) and not statement.cascade:
        raise CatalogError(f"schema is not empty: {statement.name}", hint="DROP SCHEMA ... CASCADE drops what is in it")
    tables = {name: None for name in inside if name in catalog.snapshot}
    views = {name.casefold(): None for name in inside if name not in catalog.snapshot}
    gone = {**views, definition_key(Schema(statement.name)): None, **{definition_key(one): None for one in sequences}}
    session.write(catalog, tables, definitions=gone)
    return _nothing()


def _drop_sequence(session: Session, statement: statements.DropSequence, catalog: StatementCatalog) -> Result:
    found = catalog.sequence(statement.name)
    if found is None:
        return _nothing()
    for name in catalog.snapshot:
        for sql in catalog.defaults(name).values():
            text = sql.lower()
            if text.startswith("nextval(") and name_in_schema(found.name).lower() in text:
                raise CatalogError(
                    f"sequence is the DEFAULT of a column: {found.name}, table {name}",
                    hint="DROP DEFAULT, or DROP TABLE it",
                )
    return _define(session, catalog, {definition_key(found): None})


def _target(session: Session, name: str, catalog: StatementCatalog) -> TableVersion:
    if session.is_registered(name.lower()):
        raise CatalogError(f"a registered relation cannot be written: {name}")
    return catalog.snapshot[name]


def append_rows(session: Session, name: str, batches: Iterator[pa.RecordBatch], catalog: StatementCatalog) -> Result:
    """Add rows to a table, all or none; statements that write at the same time take turns.

    The rows go behind those that others added since the statement was bound.  OperationalError if the table has other
    columns now, or is gone.
    """
    columns = _target(session, name, catalog).columns
    store = session.store
    with store.write_lock, store.staging() as staging:
        current = StatementCatalog(session)
        table = current.snapshot.get(name)
        if table is None or table.columns != columns:
            raise ConflictError(f"another statement changed the table in the meantime: {name}", hint="run it again")
        builder = TableBuilder(columns, previous=table, sink=staging.sink(table.name, columns))
        for batch in batches:
            session.check_cancelled()
            builder.append(batch)
        rows = builder.num_rows
        if rows:
            new = builder.finish(table.name)
            constraints = current.constraints(table.name)
            if constraints.items:
                check_added(session, constraints, table, new)
            session.write(current, {table.name: new}, Change.ROWS_ADDED)
    return _counted(rows)


def _insert(
    session: Session, statement: statements.Insert, raw: list[Any], catalog: StatementCatalog, stages: Any, lap: Any
) -> Result:
    batches = session.query_batches(statement.plan, raw, catalog, lap)
    if statement.draws:
        batches = _counted_rows(session, statement, batches)
    if statement.returning is None:
        return append_rows(session, statement.table, batches, catalog)
    kept: list[pa.RecordBatch] = []
    returned: list[Result] = []

    def noted() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            kept.append(batch)
            yield batch
        returned.append(_returned(session, statement, kept, raw, catalog, stages, lap))

    append_rows(session, statement.table, noted(), catalog)
    return returned[0]


def _counted_rows(session: Session, statement: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows that have numbers of sequences: those are given out before the rows are committed."""
    from gpudb.sequences import give_out

    count = 0
    for batch in batches:
        count += batch.num_rows
        yield batch
    give_out(session, statement.draws, count)


def _returned(
    session: Session,
    statement: Any,
    rows: list[pa.RecordBatch],
    raw: list[Any],
    catalog: StatementCatalog,
    stages: Any,
    lap: Any,
) -> Result:
    """The rows of RETURNING; computed before the change is committed, since an error in them undoes it."""
    catalog.give_changed_rows(rows)
    _, program = session.program(statement.returning, raw, catalog, lap)
    return session.run_program(program, program.types, raw, catalog, stages, lap, cached=False, whole=True)


def _change_rows(
    session: Session, statement: Any, raw: list[Any], catalog: StatementCatalog, stages: Any, lap: Any
) -> Result:
    """UPDATE and DELETE: the plan says which rows, storage makes the next version of the table.

    OperationalError if another statement has changed the table since this one was bound: its rows are numbered by now
    in another way.
    """
    table = _target(session, statement.table, catalog)
    ordinals: tuple[int, ...]
    with session.store.staging() as staging:
        if statement.plan is None:
            rows, new = table.num_rows, TableVersion.empty(table.name, table.columns)
        else:
            found = session.query_table(statement.plan, raw, catalog, lap)
            rows = found.num_rows
            found = in_order(found)
            numbers = found.column(0).to_numpy()
            if isinstance(statement, statements.Delete):
                rows, ordinals = len(numbers), ()
                new = without_rows(table, numbers, staging.sink(table.name, table.columns))
            else:
                ordinals = statement.ordinals
                new = with_values(table, numbers, ordinals, found.columns[1 : len(ordinals) + 1])
                if rows and (constraints := catalog.constraints(table.name)).items:
                    check_replaced(session, constraints, new, numbers, ordinals)
        result = _counted(rows)
        if statement.returning is not None:
            changed = whole_rows(table, ordinals, found).to_batches()
            result = _returned(session, statement, changed, raw, catalog, stages, lap)
        if rows:
            session.write(catalog, {table.name: new}, Change.ROWS_CHANGED)
    return result


def _defaults(table: str, columns: Mapping[str, str]) -> dict[str, Definition | None]:
    """The definition of what a table's columns default to; none where there is no DEFAULT."""
    found = Defaults(table, tuple(columns.items()))
    return {definition_key(found): found if columns else None}


def _constraints(constraints: Constraints) -> dict[str, Definition | None]:
    """The definition of what a table's rows must fulfil; none where nothing is said."""
    return {definition_key(constraints): constraints if constraints.items else None}


def _alter(session: Session, statement: Any, raw: list[Any], catalog: StatementCatalog, lap: Any) -> Result:
    table = _target(session, statement.table, catalog)
    changes: dict[str, TableVersion | None]
    constraints = catalog.constraints(table.name)
    defaults = {name: sql for name, _ in table.columns if (sql := catalog.defaults(table.name).get(name.lower()))}
    match statement:
        case statements.AddColumn(column=(name, kind)):
            batches = list(session.query_batches(statement.plan, raw, catalog, lap))
            value = pa.chunked_array([batch.column(0).cast(kind.arrow) for batch in batches], kind.arrow)
            new = with_column(table, name, kind, value)
            changes = {table.name: new}
            if statement.default is not None:
                defaults[name] = statement.default
            constraints = statement.constraints
            if statement.constraints.items and name.lower() in {one.lower() for one in constraints.not_null}:
                check_all(session, Constraints(table.name, constraints.items[-1:]), new)
        case statements.SetConstraints():
            constraints = statement.constraints
            check_all(session, Constraints(table.name, statement.added), table)
            changes = {table.name: table}  # so that rows that others add meanwhile are a conflict
        case statements.SetType(plan=plan):
            builder = TableBuilder(tuple(plan.columns))
            for batch in session.query_batches(plan, raw, catalog, lap):
                session.check_cancelled()
                builder.append(batch)
            changes = {table.name: builder.finish(table.name)}
        case statements.SetDefault():
            changes = {}
            defaults.pop(table.columns[statement.ordinal][0], None)
            if statement.default is not None:
                defaults[table.columns[statement.ordinal][0]] = statement.default
        case statements.DropColumn():
            changes = {table.name: without_column(table, statement.ordinal)}
            constraints = statement.constraints
            defaults.pop(table.columns[statement.ordinal][0], None)
        case statements.RenameColumn():
            changes = {table.name: with_name_of_column(table, statement.ordinal, statement.name)}
            constraints = statement.constraints
            old = table.columns[statement.ordinal][0]
            defaults = {statement.name if name == old else name: sql for name, sql in defaults.items()}
        case _:
            changes = {table.name: None, statement.name: table.renamed(statement.name)}
            if table.name.casefold() == statement.name.casefold():
                del changes[table.name]
    name = statement.name if isinstance(statement, statements.RenameTable) else table.name
    definitions = _defaults(name, defaults) | _constraints(Constraints(name, constraints.items))
    session.write(catalog, changes, definitions=definitions)
    return _nothing()


def _copy_from(session: Session, statement: statements.CopyFrom, catalog: StatementCatalog) -> Result:
    from gpudb.storage import files

    table = _target(session, statement.table, catalog)
    ordinals = statement.ordinals or tuple(range(len(table.columns)))
    target = tuple(table.columns[k] for k in ordinals)
    zone = session.settings["timezone"]
    relation = files.open_files(statement.paths, statement.format, statement.options, target, session.files, zone)
    if len(relation.columns) != len(target):
        raise ConversionError(f"the file has {len(relation.columns)} columns, the table wants {len(target)}")
    run = session.start_run()

    def rows() -> Iterator[pa.RecordBatch]:
        for batch in relation.batches(None, session.file_progress(relation)):
            run.check()
            yield batch if statement.ordinals is None else _placed(batch, ordinals, table)

    try:
        result = append_rows(session, statement.table, rows(), catalog)
    finally:
        session.end_run(run)
    rejected = relation.rejected
    if rejected.count:
        result.receipt["rejected_rows"] = rejected.count
        result.receipt["rejected_reasons"] = [str(row) for row in rejected.first]
    return result


def _placed(batch: pa.RecordBatch, ordinals: tuple[int, ...], table: TableVersion) -> pa.RecordBatch:
    """A batch of some of a table's columns, the others NULL."""
    arrays = [pa.nulls(batch.num_rows, kind.arrow) for _, kind in table.columns]
    for place, array in zip(ordinals, batch.columns, strict=True):
        arrays[place] = array
    return pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in table.columns])
