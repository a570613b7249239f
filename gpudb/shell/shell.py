"""The shell itself: one session, the settings of its output, and how statements and commands are run and reported."""

from __future__ import annotations

import io
import re
import shutil
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TextIO

from gpudb import errors
from gpudb.record import record
from gpudb.shell.arguments import Options
from gpudb.shell.output import BINARY_MODES, Style, writer
from gpudb.shell.runner import run_cancellable
from gpudb.shell.statements import StatementReader

if TYPE_CHECKING:
    import pyarrow as pa

    from gpudb.client import RemoteSession
    from gpudb.result import Result
    from gpudb.session import Database, Session

ROWS_BETWEEN_STOPS = 65_536  # bounds the text held in memory as well
EXPLAIN = re.compile(r"\s*EXPLAIN\b", re.IGNORECASE)
EXIT_OK, EXIT_ERROR, EXIT_CANNOT_OPEN, EXIT_CANCELLED = 0, 1, 2, 130


class Quit(Exception):
    """Leave the shell with an exit code."""

    def __init__(self, code: int = EXIT_OK) -> None:
        super().__init__(code)
        self.code = code


class CommandError(Exception):
    """A dot command was used wrongly; the message says how."""


@record(frozen=False)
class Settings:
    """What dot commands change.

    max_rows   rows a box shows on a terminal; 0: all.  Output that goes to a file or a pipe is never cut
    max_width  characters a box may be wide; 0: the terminal's width, and no limit elsewhere
    """

    mode: str = "box"
    headers: bool = True
    null_value: str | None = None
    max_rows: int = 40
    max_width: int = 0
    timer: bool = False
    echo: bool = False
    bail: bool = False
    prompt: str = "gpudb> "
    continuation_prompt: str = "  ...> "


class StoppableRows:
    """A result whose batches stop coming once `stop` is set: Ctrl-C works while rows are written, too."""

    def __init__(self, result: Result, stop: threading.Event) -> None:
        self.schema, self.types = result.schema, result.types
        self._batches, self._stop = result.batches(), stop

    def batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            for start in range(0, batch.num_rows, ROWS_BETWEEN_STOPS):
                if self._stop.is_set():
                    raise errors.QueryCancelled("cancelled while its rows were written")
                yield batch.slice(start, ROWS_BETWEEN_STOPS)


class Shell:
    """Runs statements and commands, one at a time, and writes their results.

    interactive    somebody types: Ctrl-C cancels a statement, and the shell goes on
    session        the session on the database at `path`, or at the server there
    last_sql       the last statement, for .edit
    last_receipt   its receipt, for .receipt
    """

    def __init__(self, options: Options, interactive: bool = False) -> None:
        self.interactive = interactive
        self.settings = Settings(
            mode=options.mode or "box",
            headers=options.headers,
            null_value=options.null_value,
            bail=options.bail,
            echo=options.echo,
        )
        self.last_sql = ""
        self.last_receipt: dict[str, Any] = {}
        self._target: IO[bytes] | None = None  # of .output and .once; None: standard output
        self._target_is_for_one_result = False
        self._binary_results_in_target = 0
        self._device = options.device
        self._is_open = False
        self._database: Database | None = None  # of this process
        self.open(options.database, options.read_only)

    # The database

    def open(self, path: str, read_only: bool = False) -> None:
        """Leave the current database and use the one at `path`, a directory or a server."""
        session: Session | RemoteSession
        database: Database | None = None
        if "://" in path:
            from gpudb.client import RemoteSession

            if read_only:
                raise errors.InterfaceError(
                    "-readonly is not for the address of a server", hint="the server's user may have the role reader"
                )
            session = RemoteSession(path)
            path = session.location  # without the password
        else:
            from gpudb.session import Database, Session

            database = Database(path, read_only)
            session = Session(database)
        self.close()
        self._is_open, self._database, self.path, self.read_only = True, database, path, read_only
        self.session: Session | RemoteSession = session
        if self._device is not None:
            self.session.execute(f"SET device = '{self._device}'")

    def close(self) -> None:
        """Leave the database; a transaction that is still open is rolled back."""
        if self._is_open:
            if self.session.transaction is not None:
                print("the open transaction was rolled back", file=sys.stderr)
            self.session.close()
            if self._database is not None:
                self._database.close()
            self._is_open = False
        self.direct_output(None)

    @property
    def is_remote(self) -> bool:
        """Whether the database is at a server."""
        return self._database is None

    @property
    def prompt(self) -> str:
        """The prompt with a mark before its `>`: * in a transaction, ! in one that an error has aborted."""
        transaction = self.session.transaction
        before, sign, after = self.settings.prompt.rpartition(">")
        if transaction is None or not sign:
            return self.settings.prompt
        return f"{before}{'!' if transaction.aborted else '*'}{sign}{after}"

    # Running

    def run_lines(self, lines: Iterable[str], stop_at_error: bool = False) -> bool:
        """Run statements and commands as their lines come; a last statement needs no `;`.  True when none failed."""
        reader, all_right = StatementReader(), True
        for line in lines:
            for item in reader.feed(line):
                all_right &= self.run_item(item)
                if not all_right and (stop_at_error or self.settings.bail):
                    return False
        rest = reader.rest()
        if rest is not None:
            all_right &= self.run_item(rest)
        return all_right

    def run_file(self, path: str) -> bool:
        """Run a file of statements and commands."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"cannot read {path}: {reason(error)}") from None
        return self.run_lines(text.split("\n"))

    def run_item(self, item: str) -> bool:
        """Run one statement or command and report its error, if any.  True when it worked."""
        try:
            if self.settings.echo:
                print(item, file=sys.stderr)
            if item.startswith((".", "\\")):
                from gpudb.shell.commands import run_command

                return run_command(self, item)
            self.run_statement(item)
        except KeyboardInterrupt:
            if not self.interactive:
                raise Quit(EXIT_CANCELLED) from None
            print("cancelled", file=sys.stderr)
            return False
        except (errors.Error, CommandError) as error:
            self.report(error)
            return False
        except (Quit, BrokenPipeError):
            raise
        except Exception as error:
            import logging

            logging.getLogger("gpudb").exception("the shell met an error that is not gpudb's")
            self.report(errors.InternalError(f"{type(error).__name__}: {error}"))
            return False
        return True

    def run_statement(self, sql: str) -> None:
        """Run one statement and write its result to where output goes."""
        self.last_sql = sql
        started = time.perf_counter()
        rows, result = run_cancellable(
            self.session, lambda stop: self._execute_and_write(sql, stop), self._progress_stream()
        )
        self.last_receipt = result.receipt
        if self.settings.timer:
            elapsed = 1000 * (time.perf_counter() - started)
            counted = f"{rows:,} row{'' if rows == 1 else 's'}, " if rows >= 0 else ""
            device = result.receipt.get("device")
            print(f"{counted}{elapsed:.1f} ms{f' on {device}' if device else ''}", file=sys.stderr)

    def _execute_and_write(self, sql: str, stop: threading.Event) -> tuple[int, Result]:
        """(rows written or changed, -1 for neither; the result)"""
        result = self.session.execute(sql)
        if not result.schema.names or result.rowcount >= 0:  # the number of changed rows is for .timer
            return result.rowcount, result
        with self._stream() as stream:
            style = replace(self._style(), max_rows=0) if EXPLAIN.match(sql) else self._style()  # plans are read whole
            rows = writer(self.settings.mode)(StoppableRows(result, stop), style, stream)
        return rows, result

    def send_file(self, path: str, table: str) -> None:
        """Send a file of this machine to the server, into a table that is made if it is not there."""
        import pyarrow as pa

        from gpudb.session import Session
        from gpudb.storage import files
        from gpudb.storage.arrow import schema_of

        session = self.session
        assert not isinstance(session, Session), "a database in this process reads files itself"
        relation = files.open_files((path,))

        def send(stop: threading.Event) -> int:
            def batches() -> Iterator[pa.RecordBatch]:
                for batch in relation.batches(range(len(relation.columns)), lambda read: None):
                    if stop.is_set():
                        raise errors.QueryCancelled("cancelled while its rows were sent")
                    yield batch

            reader = pa.RecordBatchReader.from_batches(schema_of(relation.columns), batches())
            return session.ingest(table, reader, "create_append", "main", None, 0)

        run_cancellable(session, send, None)

    def _progress_stream(self) -> TextIO | None:
        return sys.stderr if sys.stderr.isatty() else None

    # Output

    def _style(self) -> Style:
        """How results look now: limits apply where somebody looks at a terminal."""
        on_terminal = self._target is None and sys.stdout.isatty()
        width = self.settings.max_width or (shutil.get_terminal_size().columns if on_terminal else 0)
        return Style(
            self.settings.headers, self.settings.null_value, self.settings.max_rows if on_terminal else 0, width
        )

    @contextmanager
    def _stream(self) -> Iterator[IO[Any]]:
        """Where the next result goes, as text or bytes by the mode."""
        binary = self.settings.mode in BINARY_MODES
        if binary:
            if self._target is None and sys.stdout.isatty():
                raise CommandError(f"mode {self.settings.mode} is not for a terminal: use .output FILE or a pipe first")
            if self._binary_results_in_target:
                raise CommandError(
                    f"one file holds one {self.settings.mode} result: use .output FILE before the next one"
                )
            self._binary_results_in_target += 1
        if self._target is None:
            sys.stdout.flush()
            yield sys.stdout.buffer if binary else sys.stdout
            sys.stdout.flush()
            return
        try:
            if binary:
                yield self._target
            else:
                text = io.TextIOWrapper(self._target, encoding="utf-8", newline="")
                try:
                    yield text
                finally:
                    text.detach()  # flushes, and leaves the file open for the next result
        finally:
            if self._target_is_for_one_result:
                self.direct_output(None)

    def print(self, text: str) -> None:
        """A command's answer, to where results go."""
        if self._target is None:
            print(text)
        else:
            self._target.write(f"{text}\n".encode())

    def direct_output(self, path: str | None, one_result: bool = False) -> None:
        """Send results to a file, or back to standard output for None."""
        if self._target is not None:
            self._target.close()
        self._target, self._binary_results_in_target = None, 0
        if path is not None:
            try:
                self._target = open(path, "wb")  # noqa: SIM115 - open until the next .output
            except OSError as error:
                raise CommandError(f"cannot write {path}: {reason(error)}") from None
        self._target_is_for_one_result = one_result

    def report(self, error: Exception) -> None:
        """An error on standard error, by its kind: the message, the place in the SQL, what to do next."""
        sys.stdout.flush()
        kind = "" if isinstance(error, CommandError) else f"{type(error).__name__}: "
        print(f"{kind or 'error: '}{error}", file=sys.stderr)


def reason(error: Exception) -> str:
    """Why a file could not be used, without Python's error number."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
