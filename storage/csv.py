"""CSV files as a relation: the first file's dialect and columns, blocks read on all cores, rows in file order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from gpudb.errors import InputError
from gpudb.storage.byte_source import ByteSource
from gpudb.storage.csv_blocks import (
    BYTE_ORDER_MARK,
    BlockReader,
    BlockResult,
    FileStart,
    file_blocks,
    first_record_start,
)
from gpudb.storage.csv_dialect import CsvOptions, Dialect, RecordScanner, detect_dialect
from gpudb.storage.csv_sniffer import ColumnForm, CsvSchema, guess_form, sniff_columns
from gpudb.storage.file_relation import FileRelation, RejectedRow, RejectedRows, quoted_list
from gpudb.types import VARCHAR, SqlType

DIALECT_SAMPLE_BYTES = 256 << 10
SAMPLED_FILES = 10


class CsvRelation(FileRelation):
    """CSV files that share the columns of the first one."""

    def __init__(
        self, paths: Sequence[str], options: CsvOptions, target: tuple[tuple[str, SqlType], ...] | None = None
    ) -> None:
        if target is not None:
            options = replace(options, columns=target)
        self.options = options
        self.rejected = RejectedRows()
        self.total_bytes = sum(os.path.getsize(path) for path in paths)
        self._files = _sniff_files(paths, options)
        first = self._files[0][1]
        self.columns = tuple((name, form.sql_type) for name, form in zip(first.names, first.forms, strict=True))

    def batches(
        self, columns: Sequence[int] | None = None, progress: Callable[[int], None] | None = None
    ) -> Iterator[pa.RecordBatch]:
        chosen = list(range(len(self.columns)) if columns is None else columns)
        assert chosen, "at least one column is read"
        self.rejected = RejectedRows()
        workers = max(1, min(os.cpu_count() or 1, 16))
        pending: deque[_Pending] = deque()
        pool = ThreadPoolExecutor(workers, thread_name_prefix="gpudb-csv")
        try:
            for item in self._submitted(pool, chosen):
                pending.append(item)
                if len(pending) > workers + 1:
                    yield from self._finished(pending.popleft(), progress)
            while pending:
                yield from self._finished(pending.popleft(), progress)
        finally:
            for item in pending:
                item.future.cancel()
            pool.shutdown(wait=True)

    def _submitted(self, pool: ThreadPoolExecutor, chosen: Sequence[int]) -> Iterator[_Pending]:
        before = 0
        for path, schema in self._files:
            reader = BlockReader(path, schema, self.options, chosen)
            start = FileStart()
            for block in file_blocks(path, schema.dialect, schema.has_header, self.options, start):
                yield _Pending(pool.submit(reader.read, block), before + block.consumed, start)
            before += os.path.getsize(path)

    def _finished(self, item: _Pending, progress: Callable[[int], None] | None) -> Iterator[pa.RecordBatch]:
        result = item.future.result()
        above = item.start.line - 1  # results come in file order, so the lines above this block are known now
        item.start.line += result.lines
        if result.failed is not None:
            row = replace(result.failed, line=result.failed.line + above)
            raise row.error(_hint(row))
        self.rejected.add(result.rejected_count, [replace(row, line=row.line + above) for row in result.rejected])
        if progress is not None:
            progress(item.consumed)
        if result.batch.num_rows:
            yield result.batch


@dataclass(frozen=True)
class _Pending:
    """A block that is being read.  `start.line` is the line of the next block to finish."""

    future: Future[BlockResult]
    consumed: int
    start: FileStart


def _hint(row: RejectedRow) -> str:
    if row.column is None:
        return "ignore_errors=true leaves such rows out; null_padding=true fills short ones with NULL"
    if "UTF-8" in row.reason:
        return "give the encoding (encoding='latin-1'), or leave such rows out (ignore_errors=true)"
    return (
        f"give the column another type (types={{'{row.column}': 'VARCHAR'}}), look at more rows (sample_size=-1), "
        "name the text that means NULL (nullstr), or leave such rows out (ignore_errors=true)"
    )


def _sniff_files(paths: Sequence[str], options: CsvOptions) -> list[tuple[str, CsvSchema]]:
    """(path, schema) of every file; the types are those that hold for samples of the first ten files."""
    found: list[tuple[str, CsvSchema]] = []
    for path in paths:
        known = found[0][1] if found else None
        if known is not None and os.path.getsize(path) == 0:
            continue
        schema = sniff_file(path, options, known, len(found) < SAMPLED_FILES)
        if known is not None:
            _check_same_columns(path, schema, found[0][0], known, options)
        found.append((path, schema))
    forms = [
        _common_form([schema.forms[i] for _, schema in found[:SAMPLED_FILES]]) for i in range(len(found[0][1].forms))
    ]
    names = found[0][1].names
    return [(path, replace(schema, names=names, forms=tuple(forms))) for path, schema in found]


def _check_same_columns(path: str, schema: CsvSchema, first: str, known: CsvSchema, options: CsvOptions) -> None:
    if len(schema.names) != len(known.names):
        raise InputError(
            f"CSV files have different numbers of columns: {len(known.names)} in {first}, {len(schema.names)} in {path}"
        )
    if options.columns is None and [n.lower() for n in schema.names] != [n.lower() for n in known.names]:
        raise InputError(
            f"CSV files have different columns: {quoted_list(known.names)} in {first}; {quoted_list(schema.names)} in {path}"
        )


def _common_form(forms: Sequence[ColumnForm]) -> ColumnForm:
    """One form that reads the same column of several files."""
    distinct = list(dict.fromkeys(form for form in forms if not form.is_empty))
    if len(distinct) <= 1:
        return distinct[0] if distinct else forms[0]
    kinds = {form.sql_type.kind for form in distinct}
    formats = {form.time_format for form in distinct}
    if len(kinds) == 1 and len(formats) == 1:
        return replace(distinct[0], native=all(form.native for form in distinct))
    numbers = ("BIGINT", "HUGEINT", "DOUBLE")
    if kinds <= set(numbers):
        return next(form for kind in reversed(numbers) for form in distinct if form.sql_type.kind == kind)
    return ColumnForm(VARCHAR)


def sniff_file(path: str, options: CsvOptions, known: CsvSchema | None = None, with_types: bool = True) -> CsvSchema:
    """Dialect, names and types of one file.

    known       schema of an earlier file of the same relation: its dialect is kept
    with_types  sample rows for their types; otherwise `known`'s types are taken
    """
    with ByteSource(path, options.compression, options.encoding) as source:
        head = source.read(DIALECT_SAMPLE_BYTES)
        complete = len(head) < DIALECT_SAMPLE_BYTES
    _refuse_binary(head, path)
    head = head.removeprefix(BYTE_ORDER_MARK)
    expected = len(options.columns) if options.columns is not None else None
    dialect = detect_dialect(head, options, complete, expected)
    if known is not None:
        dialect = replace(known.dialect, skip_lines=dialect.skip_lines, newline=dialect.newline, fields=dialect.fields)
    if options.columns is not None and dialect.fields != len(options.columns):
        dialect = replace(dialect, fields=len(options.columns))
    first = _first_record(head, dialect, options)
    texts = _sample_texts(path, dialect, options) if first is not None and with_types else None
    if texts is None:
        texts = [pa.nulls(0, pa.string())] * dialect.fields
    header = options.header
    if known is not None and header is None and first is not None:
        header = known.has_header
    schema = sniff_columns(first, texts, dialect, replace(options, header=header))
    return schema if with_types or known is None else replace(schema, forms=known.forms)


def _refuse_binary(head: bytes, path: str) -> None:
    """Binary data are never read as rows of text: UTF-16, and anything full of control characters."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"the file is UTF-16 text, which is not read as CSV: {path}", hint="convert it to UTF-8")
    sample = np.frombuffer(head[:65_536], np.uint8)
    control = ((sample < 32) & (sample != 9) & (sample != 10) & (sample != 13)).sum() + (sample == 127).sum()
    if control > max(8, len(sample) // 50):
        raise InputError(
            f"the file is binary data, not CSV: {path}",
            hint="Parquet, Arrow IPC and CSV files (plain, gzip, zstd, zip) can be read",
        )


def _first_record(head: bytes, dialect: Dialect, options: CsvOptions) -> list[str | None] | None:
    """Fields of the first record, made as many as the dialect says; None for a file without records."""
    start, _ = first_record_start(head, dialect, False, "")
    for record in RecordScanner(dialect).records(head, start):
        texts: list[str | None] = []
        for raw, quoted in zip(record.fields, record.quoted, strict=True):
            text = raw.decode("utf-8", "replace")
            texts.append(None if text in options.null_texts and (options.quoted_nulls or not quoted) else text)
        return (texts + [None] * dialect.fields)[: dialect.fields]
    return None


def _sample_texts(path: str, dialect: Dialect, options: CsvOptions) -> list[pa.Array]:
    """One string array a field of the sampled rows after the first record; rows at fault are left out here.

    With sample_size=-1 the whole file is looked at, and a block's distinct texts are kept only where they change a guess.
    """
    width = dialect.fields
    forms = tuple(ColumnForm(VARCHAR) for _ in range(width))
    schema = CsvSchema(dialect, tuple(str(i) for i in range(width)), forms, False)
    reader = BlockReader(path, schema, replace(options, ignore_errors=True), range(width))
    texts = [pa.array([], pa.string())] * width
    for block in file_blocks(path, dialect, True, options):
        columns = reader.read(block).batch.columns
        if options.sample_size is not None:
            texts = [pa.concat_arrays([kept, column]) for kept, column in zip(texts, columns, strict=True)]
            if width and len(texts[0]) >= options.sample_size:
                break
            continue
        for position, column in enumerate(columns):
            if guess_form(column, options) != guess_form(texts[position], options):
                texts[position] = pa.concat_arrays([texts[position], column.unique()])
    return [column.slice(0, options.sample_size) for column in texts]
