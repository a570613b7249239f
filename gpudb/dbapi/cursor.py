"""Cursors: run statements, read their rows as Python objects or as Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from gpudb import errors
from gpudb.dbapi.insert_all import Parameters, insert_all
from gpudb.dbapi.rows import python_rows
from gpudb.result import Result

if TYPE_CHECKING:
    import pandas
    import polars

    from gpudb.dbapi.connection import Connection

RETURNS_NOTHING = "executemany() is for statements that return nothing; use execute()"
ROWS_CONVERTED_AT_ONCE = 4096  # bounds the Python objects alive while a large batch is fetched row by row


class CollectedResult:
    """A result set read to its end while the statements after it ran; used like a Result."""

    def __init__(self, result: Result) -> None:
        self._table = result.table()
        self.schema = self._table.schema
        self.types = result.types
        self.rowcount = result.rowcount
        self.receipt = result.receipt
        self.pace = None  # all are there

    def batches(self) -> Iterator[pa.RecordBatch]:
        return iter(self._table.to_batches())

    def table(self) -> pa.Table:
        return self._table


def returns_rows(result: Result | CollectedResult) -> bool:
    """A query does; the session gives the number of changed rows as a row too, which PEP 249 puts into `rowcount`."""
    return bool(result.schema.names) and result.rowcount < 0


def has_returning(sql: str) -> bool:
    """Whether a statement changes rows and returns them."""
    if "returning" not in sql.lower():
        return False
    from gpudb.planner.parse import Command, parse

    tree = parse(sql).tree
    return not isinstance(tree, Command) and bool(tree.args.get("returning"))


class Cursor:
    """Runs statements, one at a time, and reads their rows.

    connection   the connection it came from
    description  one (name, SqlType, None, None, precision, scale, None) a column; None where nothing is returned
    rowcount     rows changed by INSERT, COPY and the like; -1 for a query, whose rows are streamed
    arraysize    rows that fetchmany() reads by default
    rownumber    rows fetched so far; None without a result
    receipt      what the run did (device, tiles, bytes, milliseconds); complete once the last row is read
    """

    lastrowid = None  # there are no row ids

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self.rowcount = -1
        self.rownumber: int | None = None
        self.description: list[tuple[Any, ...]] | None = None
        self._closed = False
        self._result: Result | CollectedResult | None = None
        self._later: list[Result | CollectedResult] = []
        # While a result is read: its batches once reading has begun, the batch being read up to _offset, and the
        # rows converted from it, which begin at its row _rows_start.
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._batch: pa.RecordBatch | None = None
        self._offset = 0
        self._rows: list[tuple[Any, ...]] = []
        self._rows_start = 0

    # Running

    def execute(self, sql: str, parameters: Parameters | None = None) -> Cursor:
        """Run one statement, or several parted by `;`, and stand on the first result set; see nextset().

        All statements have run when this returns.  An error stops at the failing one; those before it are committed,
        unless a transaction is open: the error aborts it.
        Parameters (`?` and `$1` from a sequence, `$name` from a mapping) need a single statement.
        """
        self._check_open()
        self._forget()
        if isinstance(parameters, str | bytes):
            raise errors.InterfaceError("parameters must be a list, a tuple or a mapping, not " + repr(parameters))
        session = self.connection._session
        with self.connection._lock:
            semicolon = sql.find(";")
            if semicolon < 0 or not sql[semicolon + 1 :].strip():  # the usual case pays for no second tokenizer pass
                self._stand_on(session.execute(sql, parameters))
                return self
            statements = session.split_statements(sql)
            if len(statements) == 1:
                self._stand_on(session.execute(statements[0], parameters))
                return self
            if not statements:
                raise errors.ProgrammingError("there is no statement in the text")
            if parameters:
                raise errors.InterfaceError("parameters need a single statement; given: " + str(len(statements)))
            sets: list[Result | CollectedResult] = []
            for number, statement in enumerate(statements):
                result = session.execute(statement)
                if returns_rows(result):
                    # Its rows are computed before the next statement runs, so that an error in them stops there.
                    sets.append(CollectedResult(result) if number + 1 < len(statements) else result)
            self._later = sets[1:]
            self._stand_on(sets[0] if sets else result)
        return self

    def executemany(self, sql: str, seq_of_parameters: Iterable[Parameters]) -> Cursor:
        """Run a statement that returns nothing once for each set of parameters; `rowcount` is the sum.

        `INSERT INTO t VALUES (?, ?, ...)` takes all rows in one statement: all of them are inserted, or none.
        """
        self._check_open()
        self._forget()
        sets = seq_of_parameters if isinstance(seq_of_parameters, list) else list(seq_of_parameters)
        session = self.connection._session
        if has_returning(sql):
            raise errors.InterfaceError(RETURNS_NOTHING)
        with self.connection._lock:
            result: Result | None = insert_all(session, sql, sets)
            total = result.rowcount if result is not None else 0
            for parameters in sets if result is None else []:
                result = session.execute(sql, parameters)
                if returns_rows(result):
                    raise errors.InterfaceError(RETURNS_NOTHING)
                total += max(0, result.rowcount)
        if result is not None:
            self._stand_on(result)
        self.rowcount = total
        return self

    def callproc(self, procname: str, parameters: Sequence[Any] = ()) -> Sequence[Any]:
        """SELECT procname(parameters...): a scalar function as a procedure.  Returns the parameters unchanged."""
        if not procname.isidentifier():
            raise errors.InterfaceError("not the name of a function: " + repr(procname))
        self.execute(f"SELECT {procname}({', '.join('?' * len(parameters))})", list(parameters))
        return parameters

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Does nothing: parameters carry their types."""
        self._check_open()

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing: values of any size are fetched whole."""
        self._check_open()

    # Reading rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, or None after the last."""
        rows = self._take(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """The next `size` rows (`arraysize` of them by default), fewer at the end."""
        return self._take(self.arraysize if size is None else size)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left.  MemoryLimitError where they are more than may be held together."""
        return self._take(None)

    def __iter__(self) -> Cursor:
        return self

    def __next__(self) -> tuple[Any, ...]:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    next = __next__

    def nextset(self) -> bool | None:
        """Skip to the next result set of the last execute(); None when there is none."""
        self._check_open()
        if not self._later:
            return None
        result, *later = self._later
        self._forget()
        self._later = later
        self._stand_on(result)
        return True

    # Reading Arrow

    def fetch_arrow_table(self) -> pa.Table:
        """All rows that are left; when that is all rows, the schema's metadata holds the receipt."""
        result = self._current()
        if self._batches is None:
            self._batches = iter(())
            with self.connection._lock:
                table = result.table()
            self.rownumber = table.num_rows
            return table
        return pa.Table.from_batches(self._remaining_batches(result), result.schema)

    def fetch_record_batch(self, rows_per_batch: int = 1_000_000) -> pa.RecordBatchReader:
        """A reader of the rows that are left, in batches of at most `rows_per_batch`; the query runs as it is read."""
        result = self._current()
        if rows_per_batch < 1:
            raise errors.InterfaceError("rows_per_batch must be at least 1, not " + str(rows_per_batch))

        def pieces() -> Iterator[pa.RecordBatch]:
            for batch in self._remaining_batches(result):
                for start in range(0, batch.num_rows, rows_per_batch):
                    yield batch.slice(start, rows_per_batch)
                del batch  # its memory is for the next

        return pa.RecordBatchReader.from_batches(result.schema, pieces())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows that are left, for any library that reads Arrow's C stream."""
        return self.fetch_record_batch().__arrow_c_stream__(requested_schema)

    def fetch_df(self) -> pandas.DataFrame:
        """All rows that are left as a pandas frame; HUGEINT and DECIMAL become float64, as DuckDB's do."""
        types = self._current().types
        table = self.fetch_arrow_table()
        for position, sql_type in enumerate(types):
            if sql_type.kind in ("HUGEINT", "DECIMAL"):
                column = table.column(position).cast(pa.float64())
                table = table.set_column(position, table.field(position).with_type(pa.float64()), column)
        try:
            return table.to_pandas()
        except ImportError:
            raise errors.NotSupportedError("fetch_df() needs pandas", hint="pip install pandas") from None

    def pl(self) -> polars.DataFrame:
        """All rows that are left as a Polars frame."""
        try:
            import polars
        except ImportError:
            raise errors.NotSupportedError("pl() needs Polars", hint="pip install polars") from None
        frame = polars.from_arrow(self.fetch_arrow_table())
        assert isinstance(frame, polars.DataFrame), "a table becomes a frame"
        return frame

    # The rest of PEP 249

    @property
    def receipt(self) -> dict[str, Any]:
        return self._current().receipt

    def close(self) -> None:
        """Drop the result; any further use is an InterfaceError, but `rowcount` stays what it was."""
        rowcount = self.rowcount
        self._forget()
        self.rowcount = rowcount
        self._closed = True

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # State

    def _forget(self) -> None:
        """Back to the state before the first execute()."""
        self._result = None
        self._later = []
        self._batches, self._batch = None, None
        self._offset, self._rows, self._rows_start = 0, [], 0
        self.rowcount = -1
        self.rownumber = None
        self.description = None

    def _stand_on(self, result: Result | CollectedResult) -> None:
        self._result = result
        self.rowcount = result.rowcount
        if returns_rows(result):
            self.rownumber = 0
            self.description = [
                (name, kind, None, None, kind.precision or None, kind.scale if kind.precision else None, None)
                for name, kind in zip(result.schema.names, result.types, strict=True)
            ]

    def _check_open(self) -> None:
        if self._closed:
            raise errors.InterfaceError("the cursor is closed")
        self.connection._check_open()

    def _current(self) -> Result | CollectedResult:
        """The result being read; an error when there is none."""
        self._check_open()
        if self._result is None:
            raise errors.InterfaceError("there is no result to read", hint="call execute() first")
        if self.description is None:
            raise errors.InterfaceError("the last statement returned no rows")
        return self._result

    def _next_batch(self) -> pa.RecordBatch | None:
        if self._batches is None:
            self._batches = self._current().batches()
        with self.connection._lock:
            return next(self._batches, None)

    def _remaining_batches(self, result: Result | CollectedResult) -> Iterator[pa.RecordBatch]:
        """What is left of the batch being read, then the batches after it."""
        while True:
            self._check_open()
            if self._result is not result:
                raise errors.InterfaceError("these rows cannot be read any more: another statement was run")
            if self._batch is not None and self._offset < self._batch.num_rows:
                batch = self._batch.slice(self._offset)
            else:
                batch = self._next_batch()
            self._batch, self._offset, self._rows = None, 0, []
            if batch is None:
                return
            self.rownumber = (self.rownumber or 0) + batch.num_rows
            yield batch
            del batch

    def _take(self, count: int | None) -> list[tuple[Any, ...]]:
        """Up to `count` rows as tuples, all that are left for None."""
        result = self._current()
        taken: list[tuple[Any, ...]] = []
        while count is None or len(taken) < count:
            if self._batch is None or self._offset >= self._batch.num_rows:
                self._batch = None  # its memory is for the next
                self._batch = self._next_batch()
                self._offset, self._rows, self._rows_start = 0, [], 0
                if self._batch is None:
                    break
                continue  # a batch may be empty
            if self._offset >= self._rows_start + len(self._rows):
                self._rows = python_rows(self._batch.slice(self._offset, ROWS_CONVERTED_AT_ONCE), result.types)
                self._rows_start = self._offset
            begin = self._offset - self._rows_start
            end = len(self._rows) if count is None else min(len(self._rows), begin + count - len(taken))
            taken += self._rows[begin:end]
            self._offset += end - begin
            if result.pace is not None and count is None:
                result.pace.check(len(taken))
        self.rownumber = (self.rownumber or 0) + len(taken)
        return taken
