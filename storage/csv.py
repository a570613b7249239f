"""CSV files as a stream of record batches: fast where a block is regular, exact where it is not.

A file is cut into blocks of a few megabytes that end where a record ends.  A block is *regular* when every quote opens or
closes a field; then pyarrow reads it, with the types that the sniffer found, on as many threads as there are cores.
pyarrow refuses a block as a whole and says little, so a refused block is halved until the few records at fault are alone,
and those are read by `RecordScanner` and `parse_text`, which know DuckDB's rules and say in words what is wrong.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from gpudb.errors import InputError
from gpudb.storage.byte_source import ByteSource
from gpudb.storage.csv_dialect import CsvOptions, Dialect, Record, RecordScanner, detect_dialect
from gpudb.storage.csv_sniffer import ColumnForm, CsvSchema, guess_form, sniff_columns
from gpudb.storage.file_relation import FileRelation, RejectedRow, RejectedRows, quoted_list
from gpudb.storage.text_values import FALSE_WORDS, TRUE_WORDS, convert_texts, parse_text, values_to_arrow
from gpudb.types import VARCHAR, SqlType

BLOCK_BYTES = 4 << 20
DIALECT_SAMPLE_BYTES = 256 << 10
SAMPLED_FILES = 10
LEAF_RECORDS = 16  # a refused run of records this short is read exactly instead of halved again
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def _spellings(words: Sequence[str]) -> list[str]:
    return [spelling for word in words for spelling in {word, word.upper(), word.capitalize()}]


@dataclass(frozen=True)
class Block:
    """Consecutive records of a file.

    line      1-based physical line of the first record
    regular   quotes open and close fields only, and lines end in one way
    quoted    a quote occurs
    consumed  bytes of the file on disk read up to here
    """

    data: bytes
    line: int
    regular: bool
    quoted: bool
    consumed: int


@dataclass
class BlockResult:
    """A block's rows, and those left out of it."""

    batch: pa.RecordBatch
    rejected_count: int = 0
    rejected: list[RejectedRow] = field(default_factory=list)


class _BlockCutter:
    """Finds where a buffer's last whole record ends, and whether pyarrow can be trusted with the records before."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    def cut(self, buffer: bytes, final: bool) -> tuple[int, bool, bool]:
        """(end, regular, quoted) of the records that are whole; end is 0 where there is none."""
        dialect = self.dialect
        end = len(buffer) if final else buffer.rfind(dialect.newline) + 1
        if (
            dialect.newline == b"\n"
            and b"\r" in buffer
            and buffer.count(b"\r", 0, end) != buffer.count(b"\r\n", 0, end)
        ):
            return self._irregular(buffer, final)
        if not dialect.quote or dialect.quote not in buffer:
            return end, True, False
        quotes = self.quotes(buffer)
        if quotes is None:
            return self._irregular(buffer, final)
        if final and len(quotes) % 2:
            return self._irregular(buffer, final)
        while end > 0:
            before = int(np.searchsorted(quotes, end))
            if before % 2 == 0:
                break
            end = buffer.rfind(dialect.newline, 0, int(quotes[before - 1])) + 1
        quotes = quotes[: np.searchsorted(quotes, end)]
        if not self._open_and_close(buffer, quotes, end):
            return self._irregular(buffer, final)
        return end, True, len(quotes) > 0

    def quotes(self, data: bytes) -> npt.NDArray[np.int64] | None:
        """Offsets of the quotes that are not escaped; None where only a careful look can tell."""
        dialect = self.dialect
        letters = np.frombuffer(data, np.uint8)
        quotes = np.flatnonzero(letters == dialect.quote[0])
        if dialect.escape and dialect.escape != dialect.quote and dialect.escape in data:
            if dialect.escape * 2 in data:
                return None
            quotes = quotes[(quotes == 0) | (letters[quotes - 1] != dialect.escape[0])]
        return quotes

    def _open_and_close(self, data: bytes, quotes: npt.NDArray[np.int64], end: int) -> bool:
        """Every odd quote opens a field and every even one closes it, or is doubled."""
        if len(quotes) == 0:
            return True
        dialect = self.dialect
        letters = np.frombuffer(data, np.uint8)
        allowed = np.zeros(256, bool)
        allowed[[dialect.delimiter[0], 10, 13]] = True
        if dialect.escape in (b"", dialect.quote):
            allowed[dialect.quote[0]] = True
        opening, closing = quotes[0::2], quotes[1::2]
        if not (allowed[letters[opening - 1]] | (opening == 0)).all():
            return False
        closing = closing[closing + 1 < end]
        return bool(allowed[letters[closing + 1]].all())

    def _irregular(self, buffer: bytes, final: bool) -> tuple[int, bool, bool]:
        if final:
            return len(buffer), False, True
        end = 0
        for record in RecordScanner(self.dialect).records(buffer, final=False):
            if not record.complete:
                break
            end = record.end
        return end, False, True

    def record_ends(self, data: bytes) -> npt.NDArray[np.int64]:
        """Offsets one past each record of a regular block, the last one included."""
        letters = np.frombuffer(data, np.uint8)
        ends = np.flatnonzero(letters == self.dialect.newline[0])
        quotes = self.quotes(data) if self.dialect.quote else None
        if quotes is not None and len(quotes):
            ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
        ends = ends + 1
        if len(ends) == 0 or ends[-1] != len(data):
            ends = np.append(ends, len(data))
        return ends


def file_blocks(path: str, dialect: Dialect, has_header: bool, options: CsvOptions) -> Iterator[Block]:
    """A file's records in blocks, without byte order mark, skipped lines and header."""
    cutter = _BlockCutter(dialect)
    with ByteSource(path, options.compression, options.encoding) as source:
        buffer = source.read(BLOCK_BYTES).removeprefix(BYTE_ORDER_MARK)
        start, line = _after_header(buffer, dialect, has_header, path)
        buffer = buffer[start:]
        while True:
            piece = source.read(BLOCK_BYTES)
            final = not piece
            if final and not buffer:
                return
            end, regular, quoted = cutter.cut(buffer, final) if buffer else (0, True, False)
            if end == 0 and len(buffer) > options.max_line_size:
                end, regular, quoted = _first_line_of_endless_record(buffer, dialect, path, line), False, True
            if end:
                data = buffer[:end]
                yield Block(data, line, regular, quoted, source.consumed)
                line += data.count(dialect.newline)
                buffer = buffer[end:]
            if final:
                if not buffer:
                    return
                continue
            buffer += piece


def _after_header(buffer: bytes, dialect: Dialect, has_header: bool, path: str) -> tuple[int, int]:
    """(offset, 1-based line) of the first record of data."""
    start = 0
    for _ in range(dialect.skip_lines):
        start = buffer.find(dialect.newline, start) + 1
        if start == 0:
            return len(buffer), 1
    filled = re.compile(rb"[^\r\n]").search(buffer, start)
    if filled is not None:  # empty lines above the first record
        start = max(
            start, max(buffer.rfind(b"\n", start, filled.start()), buffer.rfind(b"\r", start, filled.start())) + 1
        )
    if has_header:
        for record in RecordScanner(dialect).records(buffer, start):
            start = record.end
            break
    if start >= len(buffer) >= BLOCK_BYTES:
        raise InputError(f"the header does not end within {BLOCK_BYTES} bytes: {path}")
    return start, 1 + buffer.count(dialect.newline, 0, start)


def _first_line_of_endless_record(buffer: bytes, dialect: Dialect, path: str, line: int) -> int:
    """Where the first line of a record ends that did not end within max_line_size."""
    end = buffer.find(dialect.newline) + 1
    if end == 0:
        text = buffer[:60].decode("utf-8", "replace")
        raise RejectedRow(path, line, None, text, f"the line is longer than {len(buffer)} bytes").error(
            "raise max_line_size if the line is meant to be so long"
        )
    return end


class BlockReader:
    """Turns blocks of one file into record batches of the chosen columns; safe to use from several threads."""

    def __init__(self, path: str, schema: CsvSchema, options: CsvOptions, columns: Sequence[int]) -> None:
        self.path = path
        self.schema = schema
        self.dialect = schema.dialect
        self.options = options
        self.columns = list(columns)
        self.forms = [schema.forms[i] for i in columns]
        self.arrow_schema = pa.schema([(schema.names[i], schema.forms[i].sql_type.arrow) for i in columns])
        self._scanner = RecordScanner(self.dialect)

    def read(self, block: Block) -> BlockResult:
        """The block's rows.  Raises InputError unless `ignore_errors` is set."""
        if not block.regular:
            return self._read_exactly(block.data, block.line)
        batch = self._read_fast(block.data, block.quoted)
        return BlockResult(batch) if batch is not None else self._read_halves(block)

    def _read_fast(self, data: bytes, quoted: bool) -> pa.RecordBatch | None:
        """pyarrow's reading of a regular block, or None where it refuses any of it."""
        if self.dialect.comment and self.dialect.comment in data:
            data = re.sub(rb"(?m)^" + re.escape(self.dialect.comment) + rb"[^\n]*(?:\n|\Z)", b"", data)
        if self.dialect.fields > 1 and not data.strip(b"\r\n"):
            return _empty_batch(self.arrow_schema)
        read_as_text = self._columns_read_as_text(data)
        try:
            table = pa.csv.read_csv(
                pa.BufferReader(data),
                pa.csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=self._field_names),
                self._parse_options(quoted),
                self._convert_options(read_as_text),
            )
            arrays = [_one_array(table.column(i)) for i in range(len(self.columns))]
            for position, form in enumerate(self.forms):
                if read_as_text[position] and form.sql_type.kind != "VARCHAR":
                    values, bad = convert_texts(
                        self._with_points(arrays[position], form), form.sql_type, form.time_format
                    )
                    if bad.any():
                        return None
                    arrays[position] = values
                elif form.sql_type.kind in ("DECIMAL", "HUGEINT"):
                    arrays[position].validate(full=True)  # pyarrow lets more digits in than the precision holds
        except pa.ArrowInvalid:
            return None
        return pa.RecordBatch.from_arrays(arrays, schema=self.arrow_schema)

    def _columns_read_as_text(self, data: bytes) -> list[bool]:
        """Which columns pyarrow reads as text only: by their form, and integers where 0x occurs, which it lets wrap."""
        wraps = (b"0x" in data or b"0X" in data) and any(form.sql_type.is_integer for form in self.forms)
        return [
            not form.native or form.sql_type.kind == "VARCHAR" or (wraps and form.sql_type.is_integer)
            for form in self.forms
        ]

    def _with_points(self, texts: pa.Array, form: ColumnForm) -> pa.Array:
        """Texts of numbers with a point where the file has a decimal comma."""
        if self.options.decimal_separator == "." or not (form.sql_type.is_float or form.sql_type.kind == "DECIMAL"):
            return texts
        return pc.replace_substring(texts, ",", ".")

    @cached_property
    def _field_names(self) -> list[str]:
        return [str(i) for i in range(self.dialect.fields + self.dialect.trailing_delimiter)]

    def _parse_options(self, quoted: bool) -> pa.csv.ParseOptions:
        dialect = self.dialect
        escape = dialect.escape.decode() if dialect.escape and dialect.escape != dialect.quote else False
        return pa.csv.ParseOptions(
            delimiter=dialect.delimiter.decode(),
            quote_char=dialect.quote.decode() if quoted else False,
            double_quote=not escape,
            escape_char=escape if quoted else False,
            newlines_in_values=quoted,
            ignore_empty_lines=dialect.fields > 1,
        )

    def _convert_options(self, read_as_text: Sequence[bool]) -> pa.csv.ConvertOptions:
        names = self._field_names
        return pa.csv.ConvertOptions(
            column_types={
                names[column]: pa.string() if text else form.sql_type.arrow
                for column, form, text in zip(self.columns, self.forms, read_as_text, strict=True)
            },
            include_columns=[names[column] for column in self.columns],
            null_values=list(self.options.null_texts),
            strings_can_be_null=True,
            quoted_strings_can_be_null=self.options.quoted_nulls,
            true_values=_spellings(TRUE_WORDS),
            false_values=_spellings(FALSE_WORDS),
            timestamp_parsers=[pa.csv.ISO8601],
            decimal_point=self.options.decimal_separator,
        )

    def _read_halves(self, block: Block) -> BlockResult:
        """A refused block, halved until the refused runs are short enough to be read exactly."""
        data = block.data
        ends = _BlockCutter(self.dialect).record_ends(data)
        result = BlockResult(_empty_batch(self.arrow_schema))
        batches: list[pa.RecordBatch] = []

        def visit(first: int, last: int) -> None:
            start, end = (int(ends[first - 1]) if first else 0), int(ends[last - 1])
            if last - first <= LEAF_RECORDS:
                line = block.line + data.count(self.dialect.newline, 0, start)
                leaf = self._read_exactly(data[start:end], line)
                batches.append(leaf.batch)
                result.rejected_count += leaf.rejected_count
                result.rejected += leaf.rejected
                return
            middle = (first + last) // 2
            for low, high in ((first, middle), (middle, last)):
                low_byte, high_byte = (int(ends[low - 1]) if low else 0), int(ends[high - 1])
                batch = self._read_fast(data[low_byte:high_byte], block.quoted)
                if batch is None:
                    visit(low, high)
                else:
                    batches.append(batch)

        visit(0, len(ends))
        result.batch = _concatenated(batches, self.arrow_schema)
        return result

    def _read_exactly(self, data: bytes, line: int) -> BlockResult:
        """Records one by one, each field by `parse_text`."""
        result = BlockResult(_empty_batch(self.arrow_schema))
        columns: list[list[Any]] = [[] for _ in self.columns]
        position = 0
        for record in self._scanner.records(data):
            line += data.count(self.dialect.newline, position, record.start)
            position = record.start
            values = self._row(record, line, data)
            if isinstance(values, RejectedRow):
                if not self.options.ignore_errors:
                    raise values.error(self._hint(values))
                result.rejected_count += 1
                if len(result.rejected) < 10:
                    result.rejected.append(values)
            elif values is not None:
                for column, value in zip(columns, values, strict=True):
                    column.append(value)
        arrays = [values_to_arrow(column, form.sql_type) for column, form in zip(columns, self.forms, strict=True)]
        result.batch = pa.RecordBatch.from_arrays(arrays, schema=self.arrow_schema)
        return result

    def _row(self, record: Record, line: int, data: bytes) -> list[Any] | RejectedRow | None:
        """The chosen columns' values of one record, why there are none, or None for an empty line."""
        whole = data[record.start : record.end].rstrip(b"\r\n")
        if record.error is not None:
            return RejectedRow(self.path, line, None, whole.decode("utf-8", "replace"), record.error)
        wanted, found = self.dialect.fields, len(record.fields)
        if found != wanted:
            if not whole and wanted > 1:
                return None
            trailing = found == wanted + 1 and self.dialect.trailing_delimiter and not record.fields[-1]
            if not trailing and not (found < wanted and self.options.null_padding):
                reason = f"the row has {found} field{'s' if found != 1 else ''} where {wanted} are expected"
                return RejectedRow(self.path, line, None, whole.decode("utf-8", "replace"), reason)
        values: list[Any] = []
        for column, form in zip(self.columns, self.forms, strict=True):
            if column >= found:
                values.append(None)
                continue
            name = self.schema.names[column]
            try:
                text = record.fields[column].decode("utf-8")
            except UnicodeDecodeError:
                shown = record.fields[column].decode("utf-8", "backslashreplace")
                return RejectedRow(self.path, line, name, shown, "the text is not valid UTF-8")
            if text in self.options.null_texts and (self.options.quoted_nulls or not record.quoted[column]):
                values.append(None)
                continue
            try:
                values.append(self._value(text, form))
            except ValueError as error:
                return RejectedRow(self.path, line, name, text, f"{error}, wanted {form.sql_type}")
        return values

    def _value(self, text: str, form: ColumnForm) -> Any:
        if self.options.decimal_separator == "," and (form.sql_type.is_float or form.sql_type.kind == "DECIMAL"):
            if "." in text:
                raise ValueError("not a number with a decimal comma")
            text = text.replace(",", ".")
        return parse_text(text, form.sql_type, form.time_format)

    def _hint(self, row: RejectedRow) -> str:
        if row.column is None:
            return "ignore_errors=true leaves such rows out; null_padding=true fills short ones with NULL"
        if "UTF-8" in row.reason:
            return "give the encoding (encoding='latin-1'), or leave such rows out (ignore_errors=true)"
        return (
            f"give the column another type (types={{'{row.column}': 'VARCHAR'}}), look at more rows (sample_size=-1), "
            "name the text that means NULL (nullstr), or leave such rows out (ignore_errors=true)"
        )


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.nulls(0, column.type)])


def _empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in schema], schema=schema)


def _concatenated(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    filled = [batch for batch in batches if batch.num_rows]
    if not filled:
        return _empty_batch(schema)
    return filled[0] if len(filled) == 1 else pa.concat_batches(filled)


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
        pending: deque[tuple[Future[BlockResult], int]] = deque()
        pool = ThreadPoolExecutor(workers, thread_name_prefix="gpudb-csv")
        try:
            for reader, block, consumed in self._blocks(chosen):
                pending.append((pool.submit(reader.read, block), consumed))
                if len(pending) > workers + 1:
                    yield from self._finished(pending.popleft(), progress)
            while pending:
                yield from self._finished(pending.popleft(), progress)
        finally:
            for future, _ in pending:
                future.cancel()
            pool.shutdown(wait=True)

    def _blocks(self, chosen: Sequence[int]) -> Iterator[tuple[BlockReader, Block, int]]:
        before = 0
        for path, schema in self._files:
            reader = BlockReader(path, schema, self.options, chosen)
            for block in file_blocks(path, schema.dialect, schema.has_header, self.options):
                yield reader, block, before + block.consumed
            before += os.path.getsize(path)

    def _finished(
        self, item: tuple[Future[BlockResult], int], progress: Callable[[int], None] | None
    ) -> Iterator[pa.RecordBatch]:
        future, consumed = item
        result = future.result()
        self.rejected.add(result.rejected_count, result.rejected)
        if progress is not None:
            progress(consumed)
        if result.batch.num_rows:
            yield result.batch


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
    start, _ = _after_header(head, dialect, False, "")
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
