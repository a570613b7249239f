"""Every error a user can see: PEP 249's tree, with a place in the SQL and a next step.

An error reads: what happened; a caret under the SQL; a hint.  Static text comes first, values last:

    BindError: column not found: l_shipdat
      SELECT l_shipdat FROM lineitem
             ^^^^^^^^^
    hint: did you mean l_shipdate?

Raise with a `span` (start, end) in characters of the statement; `attach_sql` adds the text once it is known.
"""

from __future__ import annotations


class Warning(Exception):  # noqa: A001 - the name is PEP 249's
    """Important notices, as PEP 249 names them."""


class Error(Exception):
    """Root of all gpudb errors.

    message  one sentence: what happened, values last
    span     (start, end) offsets in characters of the statement, or None
    hint     what to do next, or None
    """

    def __init__(self, message: str, *, span: tuple[int, int] | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.hint = hint
        self.sql: str | None = None

    def attach_sql(self, sql: str) -> Error:
        """Remember the statement, so that the text shows a caret; the innermost statement wins."""
        if self.sql is None:
            self.sql = sql
        return self

    def __str__(self) -> str:
        parts = [self.message]
        if self.sql is not None and self.span is not None:
            parts.append(_caret(self.sql, self.span))
        if self.hint is not None:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)


def _caret(sql: str, span: tuple[int, int]) -> str:
    """The line of `sql` that holds the span's start, with carets under the span."""
    start, end = max(0, span[0]), max(span[0] + 1, span[1])
    line_start = sql.rfind("\n", 0, start) + 1
    line_end = sql.find("\n", start)
    line_end = len(sql) if line_end < 0 else line_end
    line = sql[line_start:line_end].replace("\t", " ")
    column, width = start - line_start, min(end, line_end) - start
    window = max(0, column - 60)  # long statements: show the neighbourhood only
    shown = line[window : window + 120]
    return f"  {shown}\n  {' ' * (column - window)}{'^' * max(1, min(width, 120))}"


class InterfaceError(Error):
    """The interface was misused: a closed cursor, a fetch before execute, wrong parameters."""


class ParameterValueError(InterfaceError):
    """A value that is given as a parameter and is none of an SQL type."""


class DatabaseError(Error):
    """Root of everything the database reports."""


class DataError(DatabaseError):
    """The data do not fit: overflow, a bad cast, division by zero where it is an error."""


class OperationalError(DatabaseError):
    """The surroundings failed: memory, disk, device, time-out, cancellation."""


class IntegrityError(DatabaseError):
    """A constraint was broken."""


class InternalError(DatabaseError):
    """Our own mistake; the message names the opcode or the plan node."""


class ProgrammingError(DatabaseError):
    """The statement is wrong."""


class NotSupportedError(DatabaseError):
    """The construct is valid SQL that gpudb does not run; the message names it."""


class ParseError(ProgrammingError):
    """The text is not SQL."""


class BindError(ProgrammingError):
    """A name, a type or an argument count is wrong."""


class CatalogError(ProgrammingError):
    """A table exists already, or does not exist."""


class OutOfRangeError(DataError):
    """Integer or decimal overflow, or a cast that does not fit; names the expression."""


class ConversionError(DataError):
    """Text or a value that cannot be cast; names the value."""


class InputError(DataError):
    """A file cannot be loaded; names file, line, column, text and reason."""


class StorageError(OperationalError):
    """Reading or writing a database directory failed; names table, column and row group where known."""


class CorruptDataError(StorageError):
    """A checksum does not match: names table, column and row group.  Never wrong rows."""


class LockedError(StorageError):
    """Another process writes this database; names its process id."""


class ReadOnlyError(StorageError):
    """The database was opened, or the file system is, read-only."""


class FormatError(StorageError):
    """The database was written by a newer format; names the version."""


class TransactionError(OperationalError):
    """BEGIN, COMMIT or ROLLBACK where they have no place, or a statement in a transaction that an error has aborted."""


class ConflictError(TransactionError):
    """Another transaction or statement changed the same table and committed first; run it again."""


class MemoryLimitError(OperationalError):
    """The statement needs more than memory_limit; names the forecast and the limit in bytes."""


class QueryCancelled(OperationalError):
    """Cancelled by the user or by a time-out, at a tile border."""


class AccessError(OperationalError):
    """The session may not do this: its user's role, the operator's settings or the roots for files do not allow it."""


class AuthenticationError(OperationalError):
    """A server does not know who calls: credentials are missing, wrong or expired."""


class UnavailableError(OperationalError):
    """A server is full or about to stop; the same call may succeed later."""


class DeviceError(OperationalError):
    """A device cannot be used; names the device and why."""


class DeviceMemoryError(DeviceError):
    """A device's memory does not hold what a statement needs, caches emptied; the statement may run elsewhere."""


class DeviceLostError(DeviceError):
    """A device failed for good: nothing runs on it until this process is started anew."""
