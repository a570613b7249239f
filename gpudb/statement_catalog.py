"""What one statement sees: the tables of its snapshot, registered relations, and the files it names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gpudb.catalog import Constraints, Defaults, Enum, Schema, TableLayout, View, definition_key
from gpudb.catalog import Sequence as SequenceDefinition
from gpudb.functions.registry import Function
from gpudb.storage.database import Snapshot
from gpudb.storage.table import Columns, TableBuilder, TableVersion
from gpudb.types import BIGINT

if TYPE_CHECKING:
    from gpudb.session import Session

CHANGED_ROWS = "\x08changed rows"  # a key that no name in SQL is
PROPOSED_ROWS = "\x08proposed rows"
HIDDEN = "\x08"  # begins names of columns that no statement can name, as `planner.logical` has it


class ChangedRows:
    """The rows that a statement changes, once it knows them; read as a file is."""

    total_bytes = 0

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.rows: Iterable[pa.RecordBatch] = ()  # with all columns

    def batches(self, wanted: Sequence[int], progress: Callable[[int], None]) -> Iterator[pa.RecordBatch]:
        """The rows with the columns of these ordinals."""
        for batch in self.rows:
            yield batch.select(list(wanted))


class StatementCatalog:
    """The catalog of one statement: pinned tables, registered relations, and the files it names."""

    def __init__(self, session: Session, snapshot: Snapshot | None = None) -> None:
        self.session = session
        self._snapshot = snapshot
        self.relations: dict[str, Any] = {}
        self.loaded: dict[str, TableVersion] = {}
        self.deep = False  # the statement nests further than an ordinary stack allows

    @property
    def snapshot(self) -> Snapshot:
        """All tables, pinned when one is first asked for: a statement without tables leaves a transaction's start open."""
        if self._snapshot is None:
            self._snapshot = self.session.store.snapshot()
        return self._snapshot

    def version(self, key: str) -> TableVersion:
        """The table version behind a catalog key; a registered relation hides a table of its name."""
        if key in self.loaded:
            return self.loaded[key]
        return self.session.registered(key) if self.session.is_registered(key) else self.snapshot[key]

    def table(self, name: str) -> TableLayout | None:
        """The layout of a table, a registered relation, or a file named before."""
        key = name.lower()
        if key in self.relations and key not in self.loaded:
            return self._declared(key)
        if key in self.loaded or key in self.snapshot or self.session.is_registered(key):
            return self._keyed(key, self.version(key).layout())
        return None

    @staticmethod
    def _keyed(key: str, layout: TableLayout) -> TableLayout:
        if layout.name == key:
            return layout
        return TableLayout(key, layout.columns, layout.layouts, layout.row_bound, layout.rows, layout.version)

    def _declared(self, key: str) -> TableLayout:
        """A file's names and types, before its rows are read; layouts come with the rows."""
        empty = TableVersion.empty(key, self.relations[key].columns)
        return self._keyed(key, empty.layout())

    def view(self, name: str) -> View | None:
        """The view of a name; a registered relation hides it."""
        found = self.snapshot.definitions.get(name.casefold())
        return found if isinstance(found, View) and not self.session.is_registered(name.lower()) else None

    def has_schema(self, name: str) -> bool:
        """Is there a schema of this name beside main?"""
        return definition_key(Schema(name)) in self.snapshot.definitions

    def enum(self, name: str) -> tuple[str, ...] | None:
        """The texts of the ENUM of a name."""
        found = self.snapshot.definitions.get(definition_key(Enum(name, ())))
        return found.values if isinstance(found, Enum) else None

    def defaults(self, name: str) -> dict[str, str]:
        """The SQL of the DEFAULT of each column of a table that has one, by the column's lower-case name."""
        found = self.snapshot.definitions.get(definition_key(Defaults(name, ())))
        return {column.lower(): sql for column, sql in found.columns} if isinstance(found, Defaults) else {}

    def constraints(self, name: str) -> Constraints:
        """What rows of a table must fulfil; empty where nothing is said."""
        nothing = Constraints(name, ())
        found = self.snapshot.definitions.get(definition_key(nothing))
        return found if isinstance(found, Constraints) else nothing

    def sequence(self, name: str) -> SequenceDefinition | None:
        """The sequence of a name, in any case."""
        found = self.snapshot.definitions.get(definition_key(SequenceDefinition(name, 0, 0, 0, 0, False, 0, None)))
        return found if isinstance(found, SequenceDefinition) else None

    def function(self, name: str) -> Function | None:
        """The Python function called `name` of the session, or None."""
        found = self.session.functions.get(name)
        return None if found is None else found.registered()

    def names(self) -> set[str]:
        """The catalog's names of all tables and views."""
        views = (one.name for one in self.snapshot.definitions.values() if isinstance(one, View))
        return {*self.snapshot, *views}

    def table_names(self) -> list[str]:
        """All names, sorted."""
        return sorted({*self.names(), *self.session.registered_names()})

    def state(self, key: str) -> object:
        """What a kept plan that reads a table or view relies on; None where there is neither."""
        layout = self.table(key)
        return self.view(key) if layout is None else layout.version

    def database_name(self) -> str:
        """What the database is called before a schema's name, as DuckDB has it: `memory`, or its file without ending."""
        path = self.session.database.path
        return "memory" if path == ":memory:" else PurePath(path).stem

    def listing(self, name: str, arguments: Sequence[str] | None = None) -> TableLayout | None:
        """A listing of the catalog as a relation of this statement; its rows are made when they are read."""
        from gpudb.listings import ListedRows, find_listing  # 2 ms, which few statements want

        found = find_listing(name.lower(), arguments)
        if found is None:
            return None
        key = f"listing {len(self.relations)}: {name.lower()}"
        self.relations[key] = ListedRows(found, self, arguments)
        return self._declared(key)

    def values_of(self, plan: Any, raw: list[Any]) -> list[Any]:
        """The values of a plan's only column."""
        from gpudb.session import untimed

        batches = self.session.query_batches(plan, raw, self, untimed)
        return [value for batch in batches for value in batch.column(0).to_pylist()]

    def changed_rows(self, table: TableLayout) -> TableLayout:
        """The rows that this statement adds to a table, changes in it or removes; see `give_changed_rows`."""
        self.relations[CHANGED_ROWS] = ChangedRows(table.columns)
        return self._declared(CHANGED_ROWS)

    def give_changed_rows(self, rows: Iterable[pa.RecordBatch]) -> None:
        """Say which rows they are, with all columns of the table, before a plan that reads them is run."""
        self.relations[CHANGED_ROWS].rows = rows

    def proposed_rows(self, table: TableLayout) -> TableLayout:
        """The rows that an INSERT ... ON CONFLICT proposes, and their numbers; see `give_proposed_rows`."""
        columns = tuple((HIDDEN + name, kind) for name, kind in (*table.columns, ("number", BIGINT)))
        self.relations[PROPOSED_ROWS] = ChangedRows(columns)
        return self._declared(PROPOSED_ROWS)

    def give_proposed_rows(self, rows: Iterable[pa.RecordBatch]) -> None:
        """Say which rows they are, with their numbers in the last column."""
        self.relations[PROPOSED_ROWS].rows = rows

    def file(self, paths: tuple[str, ...], file_format: str, options: dict[str, object]) -> TableLayout:
        """The rows of files as a relation of this statement."""
        from gpudb.storage import files  # the readers of CSV and Parquet take 60 ms to load

        key = f"file {len(self.relations)}: {', '.join(paths)}"
        key = key.lower()
        zone = self.session.settings["timezone"]
        self.relations[key] = files.open_files(paths, file_format, options, access=self.session.files, zone=zone)
        return self._declared(key)

    def load(self, key: str, ordinals: set[int]) -> None:
        """Read the columns of a file that the plan uses; the others stay NULL."""
        relation = self.relations[key]
        wanted = sorted(ordinals) or [0]
        builder = TableBuilder(tuple(relation.columns[k] for k in wanted))
        for batch in relation.batches(wanted, self.session.file_progress(relation)):
            self.session.check_cancelled()
            builder.append(batch)
        narrow = builder.finish(key)
        self.loaded[key] = narrow.with_columns(relation.columns, wanted)
