"""Blocks of a CSV file, and the reader that turns one into a record batch: fast where it is regular, exact elsewhere.

A file is cut into blocks of a few megabytes that end where a record ends.  A block is *regular* when every quote opens or
closes a field; then pyarrow reads it, with the types that the sniffer found.  pyarrow refuses a block as a whole and says
little, so a refused block is halved until the few records at fault are alone, and those are read by `RecordScanner` and
`parse_text`, which know DuckDB's rules and say in words what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

from gpudb import compute as pc
from gpudb.errors import InputError
from gpudb.storage.byte_source import ByteSource
from gpudb.storage.csv_dialect import CsvOptions, Dialect, Record, RecordScanner
from gpudb.storage.csv_sniffer import ColumnForm, CsvSchema
from gpudb.storage.file_relation import RejectedRow
from gpudb.storage.text_values import FALSE_WORDS, TRUE_WORDS, convert_texts, parse_text, values_to_arrow

BLOCK_BYTES = 4 << 20
LEAF_RECORDS = 16  # a refused run of records this short is read exactly instead of halved again
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_FILLED = re.compile(rb"[^\r\n]")


def _spellings(words: Sequence[str]) -> list[str]:
    return [spelling for word in words for spelling in {word, word.upper(), word.capitalize()}]


@dataclass(frozen=True)
class Block:
    """Consecutive records of a file: the first `size` bytes of `buffer`, which is not cut to spare a copy.

    regular   quotes open and close fields only, and lines end in one way
    quoted    a quote occurs
    consumed  bytes of the file on disk read up to here
    """

    buffer: bytes
    size: int
    regular: bool
    quoted: bool
    consumed: int

    @cached_property
    def data(self) -> bytes:
        return self.buffer[: self.size]


@dataclass
class BlockResult:
    """A block's rows, and those left out of it; their lines count from the block's first line, which is 1.

    lines   physical lines in the block
    failed  the first row at fault, where rows are not to be left out; there is no batch then
    """

    batch: pa.RecordBatch
    rejected_count: int = 0
    rejected: list[RejectedRow] = field(default_factory=list)
    lines: int = 0
    failed: RejectedRow | None = None


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


@dataclass
class FileStart:
    """1-based physical line of a file's first record of data; known once its first block has been cut."""

    line: int = 1


def file_blocks(
    path: str, dialect: Dialect, has_header: bool, options: CsvOptions, start: FileStart | None = None
) -> Iterator[Block]:
    """A file's records in blocks, without byte order mark, skipped lines and header."""
    cutter = _BlockCutter(dialect)
    with ByteSource(path, options.compression, options.encoding) as source:
        piece = source.read(BLOCK_BYTES)
        final = len(piece) < BLOCK_BYTES
        buffer = piece.removeprefix(BYTE_ORDER_MARK)
        offset, line = first_record_start(buffer, dialect, has_header, path)
        if start is not None:
            start.line = line
        buffer = buffer[offset:]
        while True:
            end, regular, quoted = cutter.cut(buffer, final) if buffer else (0, True, False)
            if end == 0 and len(buffer) > options.max_line_size:
                end, regular, quoted = _first_line_of_endless_record(buffer, dialect, path), False, True
            if end:
                yield Block(buffer, end, regular, quoted, source.consumed)
                buffer = buffer[end:]
            if final:
                if not buffer:
                    return
                continue
            piece = source.read(BLOCK_BYTES)
            final = len(piece) < BLOCK_BYTES
            buffer = buffer + piece if buffer else piece


def first_record_start(buffer: bytes, dialect: Dialect, has_header: bool, path: str) -> tuple[int, int]:
    """(offset, 1-based line) of the first record of data."""
    start = 0
    for _ in range(dialect.skip_lines):
        start = buffer.find(dialect.newline, start) + 1
        if start == 0:
            return len(buffer), 1
    filled = _FILLED.search(buffer, start)
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


def _first_line_of_endless_record(buffer: bytes, dialect: Dialect, path: str) -> int:
    """Where the first line of a record ends that did not end within max_line_size."""
    end = buffer.find(dialect.newline) + 1
    if end == 0:
        raise InputError(
            f"a line is longer than {len(buffer)} bytes: it starts with {buffer[:60].decode('utf-8', 'replace')!r}, "
            f"file {path}",
            hint="raise max_line_size if the line is meant to be so long",
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
        self._has_integers = any(form.sql_type.is_integer for form in self.forms)

    def read(self, block: Block) -> BlockResult:
        """The block's rows, or in `failed` the first one at fault."""
        try:
            if not block.regular:
                result = self._read_exactly(block.data, 1)
            else:
                batch = self._read_fast(block.buffer, block.size, block.quoted)
                result = BlockResult(batch) if batch is not None else self._read_halves(block)
        except _RowAtFault as fault:
            result = BlockResult(_empty_batch(self.arrow_schema), failed=fault.row)
        letters = np.frombuffer(block.buffer, np.uint8, block.size)
        result.lines = int(np.count_nonzero(letters == self.dialect.newline[0]))
        return result

    def _read_fast(self, buffer: bytes, size: int, quoted: bool) -> pa.RecordBatch | None:
        """pyarrow's reading of the first `size` bytes, regular ones, or None where it refuses any of them."""
        if self.dialect.comment and buffer.find(self.dialect.comment, 0, size) >= 0:
            comment = rb"(?m)^" + re.escape(self.dialect.comment) + rb"[^\n]*(?:\n|\Z)"
            buffer = re.sub(comment, b"", buffer[:size])
            size = len(buffer)
        if self.dialect.fields > 1 and not _FILLED.search(buffer, 0, size):
            return _empty_batch(self.arrow_schema)
        read_as_text = self._columns_read_as_text(buffer, size)
        try:
            table = pa.csv.read_csv(
                pa.BufferReader(memoryview(buffer)[:size]),
                pa.csv.ReadOptions(use_threads=False, block_size=size + 1, column_names=self._field_names),
                self._parse_options(quoted),
                self._convert_options(read_as_text),
            )
            arrays = [_one_array(table.column(i)) for i in range(len(self.columns))]
            for position, form in enumerate(self.forms):
                if read_as_text[position] and form.sql_type.kind != "VARCHAR":
                    texts = self._with_points(arrays[position], form)
                    values, bad = convert_texts(texts, form.sql_type, form.time_format)
                    if bad.any():
                        return None
                    arrays[position] = values
                elif form.sql_type.kind in ("DECIMAL", "HUGEINT"):
                    arrays[position].validate(full=True)  # pyarrow lets more digits in than the precision holds
        except pa.ArrowInvalid:
            return None
        return pa.RecordBatch.from_arrays(arrays, schema=self.arrow_schema)

    def _columns_read_as_text(self, buffer: bytes, size: int) -> list[bool]:
        """Which columns pyarrow reads as text only: by their form, and integers where some are written 0x, which wrap."""
        wraps = self._has_integers and _has_hexadecimal(buffer, size)
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
                line = 1 + data.count(self.dialect.newline, 0, start)
                leaf = self._read_exactly(data[start:end], line)
                batches.append(leaf.batch)
                result.rejected_count += leaf.rejected_count
                result.rejected += leaf.rejected
                return
            middle = (first + last) // 2
            for low, high in ((first, middle), (middle, last)):
                low_byte, high_byte = (int(ends[low - 1]) if low else 0), int(ends[high - 1])
                batch = self._read_fast(data[low_byte:high_byte], high_byte - low_byte, block.quoted)
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
                    raise _RowAtFault(values)
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


class _RowAtFault(Exception):
    """Carries the first row that cannot be read out of a block; never leaves this module."""

    def __init__(self, row: RejectedRow) -> None:
        super().__init__(str(row))
        self.row = row


def _has_hexadecimal(buffer: bytes, size: int) -> bool:
    """Whether a number may be written 0x...: an x after a 0 that starts a word."""
    letters = np.frombuffer(buffer, np.uint8, size)
    for x in (b"x", b"X"):
        if buffer.find(x, 0, size) < 0:
            continue
        found = np.flatnonzero(letters == x[0])
        found = found[(found > 0) & (letters[found - 1] == 48)]
        before = letters[found - 2]
        if ((found == 1) | (before < 48) | ((before > 57) & (before < 65)) | (before > 122)).any():
            return True
    return False


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.nulls(0, column.type)])


def _empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in schema], schema=schema)


def _concatenated(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    filled = [batch for batch in batches if batch.num_rows]
    if not filled:
        return _empty_batch(schema)
    return filled[0] if len(filled) == 1 else pa.concat_batches(filled)
