"""Files as relations, and relations as files: which reader a path goes to is decided by what the file holds.

`open_files` finds the paths (globs sorted by name), looks at the first bytes of the first one, and returns a
`FileRelation`; `write_file` writes a stream of record batches and shows the file only once it is complete.
"""

from __future__ import annotations

import contextlib
import difflib
import glob
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from gpudb.errors import BindError, InputError, NotSupportedError
from gpudb.storage.csv import CsvRelation
from gpudb.storage.csv_dialect import CsvOptions
from gpudb.storage.csv_writer import CsvWriter
from gpudb.storage.file_access import FileAccess
from gpudb.storage.file_relation import FileRelation, RejectedRow, RejectedRows
from gpudb.storage.ipc import IpcRelation, IpcWriter
from gpudb.storage.parquet import ParquetRelation, ParquetWriter
from gpudb.storage.text_values import TextZone
from gpudb.time_zones import UTC
from gpudb.types import SqlType, shown_in

__all__ = ["FileRelation", "RejectedRow", "RejectedRows", "format_of_path", "open_files", "write_file"]

FORMATS = ("auto", "csv", "parquet", "arrow")
_FORMAT_NAMES = {"ipc": "arrow", "feather": "arrow", "arrows": "arrow", "tsv": "csv", "txt": "csv"}
_FOREIGN_MAGIC = {
    b"SQLite format 3\0": "a SQLite database",
    b"\x89PNG": "a PNG picture",
    b"%PDF": "a PDF document",
    b"\x7fELF": "a program",
    b"Obj\x01": "an Avro file",
    b"ORC": "an ORC file",
    b"\x89HDF": "an HDF5 file",
    b"BZh": "bzip2-compressed data",
    b"\xfd7zXZ": "xz-compressed data",
    b"\x04\x22\x4d\x18": "lz4-compressed data",
    b"PARE": "an encrypted Parquet file",
}


def open_files(
    paths: Sequence[str],
    file_format: str = "auto",
    options: Mapping[str, object] | None = None,
    target: tuple[tuple[str, SqlType], ...] | None = None,
    access: FileAccess | None = None,
    zone: str = UTC,
) -> FileRelation:
    """The rows of files that have the same columns.

    paths        names or globs (`*`, `?`, `[...]`, `**`); a glob's files come in the order of their names
    file_format  auto, csv, parquet or arrow; auto looks at the content, never at the name
    options      of CSV, see `CsvOptions`
    target       (name, type) of the table's columns a COPY fills: the files' columns are taken in this order
    access       which files may be read; None: all
    zone         of timestamps with time zone that do not say theirs

    Raises AccessError where that is not so, InputError where a file is missing, a glob matches nothing, or the content is not
    what it should be.
    """
    wanted = _format_name(file_format)
    found = expand_paths(paths, access)
    if wanted == "auto":
        wanted = _format_of_content(found[0])
    for path in found[1:]:
        other = _format_of_content(path) if os.path.getsize(path) else wanted
        if other != wanted:
            raise InputError(f"files of one statement must have one format: {found[0]} is {wanted}, {path} is {other}")
    if wanted == "csv":
        return CsvRelation(found, replace(CsvOptions.parse(options or {}), zone=TextZone(zone)), target)
    if options:
        raise BindError(f"{wanted} files take no option {next(iter(options))}")
    return (ParquetRelation if wanted == "parquet" else IpcRelation)(found, target)


def expand_paths(paths: Sequence[str], access: FileAccess | None = None) -> list[str]:
    """Existing regular files, in order.  Raises InputError for a missing one, an empty glob, a directory."""
    found: list[str] = []
    for path in paths:
        if not path or "\0" in path:
            raise InputError("a file name is empty or holds a zero byte")
        path = os.path.expanduser(path) if access is None else access.pattern(path)
        if any(letter in path for letter in "*?[") and not os.path.exists(path):
            matches = sorted(match for match in glob.glob(path, recursive=True) if not os.path.isdir(match))
            if not matches:
                raise InputError(f"no files match the pattern: {path}")
            found += matches
        else:
            found.append(path)
    if not found:
        raise InputError("no file was named")
    if access is not None:
        found = [access.readable(path) for path in found]
    for path in found:
        _check_readable(path)
    return found


def _check_readable(path: str) -> None:
    if "://" in path and not os.path.exists(path):
        raise NotSupportedError(f"only local files can be read, not: {path}")
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise _not_found(path, error) from None
    if stat.S_ISDIR(mode):
        raise InputError(
            f"a directory cannot be read as a file: {path}", hint=f"name its files: '{path.rstrip('/')}/*'"
        )
    if not stat.S_ISREG(mode):
        raise InputError(f"only regular files can be read, because they are read twice: {path}")
    if not os.access(path, os.R_OK):
        raise InputError(f"cannot read file: permission denied: {path}")


def _not_found(path: str, error: OSError) -> InputError:
    if not isinstance(error, FileNotFoundError):
        return InputError(f"cannot read file: {os.strerror(error.errno or 0)}: {path}")
    folder, name = os.path.split(path)
    with contextlib.suppress(OSError):
        close = difflib.get_close_matches(name, os.listdir(folder or "."), 1)
        if close:
            return InputError(f"file not found: {path}", hint=f"did you mean {os.path.join(folder, close[0])}?")
    return InputError(f"file not found: {path}")


def _format_name(file_format: str) -> str:
    name = file_format.lower()
    name = _FORMAT_NAMES.get(name, name)
    if name not in FORMATS:
        raise NotSupportedError(f"file format is not supported: {file_format}", hint="csv, parquet and arrow are")
    return name


def format_of_path(path: str) -> str:
    """The format a written file should have by its name: parquet, arrow, else csv."""
    name = os.path.basename(path).lower()
    if name.endswith((".parquet", ".pq")):
        return "parquet"
    return "arrow" if name.endswith((".arrow", ".arrows", ".ipc", ".feather")) else "csv"


def _format_of_content(path: str) -> str:
    """csv, parquet or arrow, by the first bytes.  Raises InputError where they are known to be something else."""
    with open(path, "rb") as file:
        head = file.read(16)
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"ARROW1") or _is_ipc_stream(head):
        return "arrow"
    if head.startswith(b"FEA1"):
        raise InputError(f"Feather version 1 is not read, only Arrow IPC files are: {path}")
    for magic, meaning in _FOREIGN_MAGIC.items():
        if head.startswith(magic):
            raise InputError(
                f"the file is {meaning}: {path}",
                hint="Parquet, Arrow IPC and CSV files (plain, gzip, zstd, zip) can be read",
            )
    return "csv"


def _is_ipc_stream(head: bytes) -> bool:
    """A stream starts with the marker 0xFFFFFFFF and the length of its schema message."""
    return head.startswith(b"\xff\xff\xff\xff") and 0 < int.from_bytes(head[4:8], "little") < 1 << 24


def write_file(
    path: str,
    columns: Sequence[tuple[str, SqlType]],
    batches: Iterator[pa.RecordBatch],
    file_format: str = "auto",
    options: Mapping[str, object] | None = None,
    access: FileAccess | None = None,
    zone: str = UTC,
) -> int:
    """Write a stream of record batches as one file; the number of rows.

    The rows go to a temporary file beside `path`, which takes its name once it is complete and on disk: an error leaves
    neither a partial file nor a changed one.  Where `access` says which files may be written, none is replaced.  `zone`
    is that of the batches' timestamps with time zone, in which text shows them.
    """
    wanted = _format_name(file_format)
    wanted = format_of_path(path) if wanted == "auto" else wanted
    path = os.path.expanduser(path) if access is None else access.writable(path)
    if os.path.isdir(path):
        raise InputError(f"a directory cannot be written as a file: {path}")
    given = {name.lower(): value for name, value in (options or {}).items()}
    writers: dict[str, type[Writer]]
    writers = {"csv": CsvWriter, "parquet": ParquetWriter, "arrow": IpcWriter}
    writer_class = writers[wanted]
    writer_class.check_options(given)
    schema = pa.schema([(name, shown_in(sql_type, zone)) for name, sql_type in columns])
    folder = os.path.dirname(path) or "."
    try:
        handle, temporary = tempfile.mkstemp(prefix=".", suffix=".partial", dir=folder)
        os.close(handle)
    except OSError as error:
        raise InputError(f"cannot write file: {os.strerror(error.errno or 0)}: {path}") from None
    try:
        rows = _write_batches(temporary, lambda sink: writer_class(sink, schema, given, path), batches)
        os.chmod(temporary, 0o666 & ~_umask())
        if access is None:
            os.replace(temporary, path)
        else:
            os.link(temporary, path)  # fails where a file has this name by now
    except OSError as error:
        raise InputError(f"cannot write file: {os.strerror(error.errno or 0)}: {path}") from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
    return rows


Writer = CsvWriter | ParquetWriter | IpcWriter


def _write_batches(temporary: str, make: Callable[[pa.NativeFile], Writer], batches: Iterator[pa.RecordBatch]) -> int:
    """Write all batches and make sure that they are on disk; the number of rows."""
    rows = 0
    with pa.OSFile(temporary, "wb") as sink:
        writer = make(sink)
        try:
            for batch in batches:
                writer.write(batch)
                rows += batch.num_rows
        except BaseException:
            with contextlib.suppress(Exception):
                writer.close()  # while its sink is open: it would try again, and complain, when it is collected
            raise
        writer.close()
    descriptor = os.open(temporary, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return rows


def _umask() -> int:
    """The process's mask; POSIX offers no way to read it but to set it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
