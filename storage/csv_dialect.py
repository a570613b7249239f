"""How a CSV file is written: its options, its delimiter and quote, and the exact reader of its records.

`RecordScanner` is the definition of a record: slow (about 1 us a field) and exact, it serves detection, headers and the
rows that the fast path refuses.  `detect_dialect` tries the usual delimiters and quotes on the start of a file and keeps
the one under which the rows agree on their number of fields.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gpudb.errors import BindError, NotSupportedError
from gpudb.storage.text_values import ANYWHERE, TextZone, TimeFormat
from gpudb.types import SqlType

DELIMITERS = (",", "|", ";", "\t")
QUOTES = ('"', "'")

_TYPE_NAMES = {
    "BOOL": "BOOLEAN", "LOGICAL": "BOOLEAN", "INT1": "TINYINT", "INT2": "SMALLINT", "SHORT": "SMALLINT", "INT4": "INTEGER",
    "INT": "INTEGER", "SIGNED": "INTEGER", "INT8": "BIGINT", "LONG": "BIGINT", "INT128": "HUGEINT",
    "UINT8": "UTINYINT", "UINT16": "USMALLINT", "UINT32": "UINTEGER", "UINT64": "UBIGINT", "FLOAT4": "REAL",
    "FLOAT": "REAL", "FLOAT8": "DOUBLE", "DOUBLE PRECISION": "DOUBLE", "TEXT": "VARCHAR", "STRING": "VARCHAR",
    "CHAR": "VARCHAR", "BPCHAR": "VARCHAR", "DATETIME": "TIMESTAMP", "TIMESTAMP WITH TIME ZONE": "TIMESTAMPTZ",
}  # fmt: skip
_READABLE = frozenset(
    """BOOLEAN TINYINT SMALLINT INTEGER BIGINT HUGEINT UTINYINT USMALLINT UINTEGER UBIGINT
    DECIMAL REAL DOUBLE DATE TIME TIMESTAMP TIMESTAMPTZ VARCHAR BLOB UUID
    ENUM""".split()
)


def column_type(value: object) -> SqlType:
    """A column type given in an option: a SqlType, or its SQL name."""
    if isinstance(value, SqlType):
        found = value
    else:
        name = " ".join(str(value).upper().split())
        match = re.fullmatch(r"(?:DECIMAL|NUMERIC) ?\( ?(\d+) ?(?:, ?(\d+) ?)?\)", name)
        if match:
            precision, scale = int(match.group(1)), int(match.group(2) or 0)
            if not (1 <= precision <= 38 and scale <= precision):
                raise BindError(f"DECIMAL takes a precision of 1 to 38 and a scale up to it: {value}")
            return SqlType("DECIMAL", precision, scale)
        name = re.sub(r"^(VARCHAR|CHAR|TEXT|STRING) ?\(.*\)$", "VARCHAR", name)
        name = _TYPE_NAMES.get(name, name)
        found = SqlType("DECIMAL", 18, 3) if name in ("DECIMAL", "NUMERIC") else SqlType(name)
    if found.kind not in _READABLE:
        raise NotSupportedError(f"files cannot be read into columns of type {found}")
    return found


def option_flag(name: str, value: object) -> bool:
    """A yes-or-no option: True, False, 1, 0, 'true', 'false', 'on', 'off'; None (named without a value) is yes."""
    if value is None:
        return True
    word = str(value).lower()
    if word in ("true", "1", "on", "yes", "t"):
        return True
    if word in ("false", "0", "off", "no", "f"):
        return False
    raise BindError(f"option {name} takes true or false, not: {value}")


def option_number(name: str, value: object, minimum: int) -> int:
    """A whole number of at least `minimum`."""
    try:
        number = int(str(value))
    except ValueError:
        raise BindError(f"option {name} takes a whole number, not: {value}") from None
    if number < minimum:
        raise BindError(f"option {name} must be at least {minimum}, not: {value}")
    return number


@dataclass(frozen=True)
class CsvOptions:
    """What the user said about a CSV file; None means: find out.

    types    SQL type by column name, or by position when `type_list` is set
    zone     the session's, of timestamps with time zone that do not say theirs
    columns  (name, type) of every column: nothing is detected but the dialect and the header
    """

    delimiter: str | None = None
    quote: str | None = None
    escape: str | None = None
    comment: str | None = None
    header: bool | None = None
    skip: int | None = None
    null_texts: tuple[str, ...] = ("",)
    quoted_nulls: bool = True
    columns: tuple[tuple[str, SqlType], ...] | None = None
    types: Mapping[str, SqlType] = field(default_factory=dict)
    type_list: tuple[SqlType, ...] = ()
    names: tuple[str, ...] = ()
    date_format: TimeFormat | None = None
    timestamp_format: TimeFormat | None = None
    zone: TextZone = ANYWHERE
    ignore_errors: bool = False
    null_padding: bool = False
    all_varchar: bool = False
    sample_size: int | None = 20_480
    encoding: str = "utf-8"
    compression: str = "auto"
    decimal_separator: str = "."
    max_line_size: int = 16 << 20

    @classmethod
    def parse(cls, options: Mapping[str, object]) -> CsvOptions:
        """Options as SQL gives them, under any of DuckDB's names.  Raises BindError on a name or a value that is wrong."""
        settings: dict[str, Any] = {}
        for written, value in options.items():
            name = written.lower()
            if name in _IGNORED_OPTIONS:
                continue
            if name not in _OPTIONS:
                if name in _LATER_OPTIONS:
                    if value in (False, None, "false", 0):
                        continue
                    raise NotSupportedError(f"CSV option is not supported: {written}")
                raise BindError(f"unknown CSV option: {written}", hint="known options: " + ", ".join(sorted(_OPTIONS)))
            target, convert = _OPTIONS[name]
            settings[target] = convert(name, value)
        if isinstance(settings.get("types"), tuple):
            settings["type_list"] = settings.pop("types")
        return cls(**settings)


def _one_character(name: str, value: object) -> str:
    text = {"\\t": "\t", "tab": "\t"}.get(str(value), str(value))
    if len(text) > 1 or not text.isascii() or (text in "\r\n" and text):
        raise NotSupportedError(f"option {name} takes one ASCII character, not: {value!r}")
    return text


def _delimiter(name: str, value: object) -> str:
    text = _one_character(name, value)
    if not text:
        raise BindError(f"option {name} cannot be empty")
    return text


def _texts(name: str, value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, (list, tuple)) else (str(value),)


def _column_list(name: str, value: object) -> tuple[tuple[str, SqlType], ...]:
    if not isinstance(value, Mapping) or not value:
        raise BindError(f"option {name} takes a struct of names and types, not: {value}")
    return tuple((str(column), column_type(type_)) for column, type_ in value.items())


def _column_types(name: str, value: object) -> Mapping[str, SqlType] | tuple[SqlType, ...]:
    if isinstance(value, Mapping):
        return {str(column): column_type(type_) for column, type_ in value.items()}
    if isinstance(value, (list, tuple)):
        return tuple(column_type(type_) for type_ in value)
    raise BindError(f"option {name} takes a list of types or a struct of names and types, not: {value}")


def _time_format(name: str, value: object) -> TimeFormat | None:
    if str(value).lower() in ("auto", "iso", ""):
        return None
    time_format = TimeFormat(str(value))
    _ = time_format.pattern  # raises where a specifier is unknown
    return time_format


def _encoding(name: str, value: object) -> str:
    encoding = str(value).lower().replace("_", "-")
    if encoding in ("utf-8", "utf8", "ascii"):
        return "utf-8"
    if encoding in ("latin-1", "latin1", "iso-8859-1"):
        return "latin-1"
    raise NotSupportedError(f"CSV encoding is not supported: {value}", hint="utf-8 and latin-1 are; convert the file")


def _compression(name: str, value: object) -> str:
    compression = str(value).lower()
    if compression not in ("auto", "none", "gzip", "zstd", "zip", "uncompressed"):
        raise NotSupportedError(f"CSV compression is not supported: {value}", hint="gzip, zstd and zip are")
    return compression


def _sample_size(name: str, value: object) -> int | None:
    number = option_number(name, value, -1)
    return None if number == -1 else max(1, number)


def _decimal_separator(name: str, value: object) -> str:
    if value not in (".", ","):
        raise BindError(f"option {name} takes '.' or ',', not: {value}")
    return str(value)


_OPTIONS: dict[str, tuple[str, Any]] = {
    **dict.fromkeys(("delim", "delimiter", "sep", "separator"), ("delimiter", _delimiter)),
    "quote": ("quote", _one_character),
    "escape": ("escape", _one_character),
    "comment": ("comment", _one_character),
    "header": ("header", option_flag),
    "skip": ("skip", lambda name, value: option_number(name, value, 0)),
    **dict.fromkeys(("null", "nullstr", "null_string"), ("null_texts", _texts)),
    "allow_quoted_nulls": ("quoted_nulls", option_flag),
    "columns": ("columns", _column_list),
    **dict.fromkeys(("types", "dtypes", "column_types"), ("types", _column_types)),
    **dict.fromkeys(("names", "column_names"), ("names", _texts)),
    **dict.fromkeys(("dateformat", "date_format"), ("date_format", _time_format)),
    **dict.fromkeys(("timestampformat", "timestamp_format"), ("timestamp_format", _time_format)),
    "ignore_errors": ("ignore_errors", option_flag),
    "null_padding": ("null_padding", option_flag),
    "all_varchar": ("all_varchar", option_flag),
    "sample_size": ("sample_size", _sample_size),
    "encoding": ("encoding", _encoding),
    "compression": ("compression", _compression),
    "decimal_separator": ("decimal_separator", _decimal_separator),
    **dict.fromkeys(("max_line_size", "maximum_line_size"), ("max_line_size", lambda n, v: option_number(n, v, 1))),
}
_IGNORED_OPTIONS = frozenset("auto_detect parallel buffer_size new_line auto_type_candidates strict_mode".split())
_LATER_OPTIONS = frozenset(
    "filename union_by_name hive_partitioning hive_types force_not_null normalize_names rejects_table rejects_scan "
    "rejects_limit store_rejects thousands files_to_sniff".split()
)


@dataclass(frozen=True)
class Dialect:
    """How records are written.

    newline     b"\\n" (a b"\\r" before it belongs to it) or b"\\r"
    skip_lines  physical lines before the first record
    fields      number of fields of a record
    trailing_delimiter  rows, but not the header, end in a delimiter that starts no field
    """

    delimiter: bytes = b","
    quote: bytes = b'"'
    escape: bytes = b'"'
    comment: bytes = b""
    newline: bytes = b"\n"
    skip_lines: int = 0
    fields: int = 1
    trailing_delimiter: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """One record: where it lies in the bytes scanned, its fields without quotes, or why it cannot be read.

    quoted    one bool a field
    complete  False where the bytes end before the record does
    """

    start: int
    end: int
    fields: list[bytes]
    quoted: list[bool]
    error: str | None = None
    complete: bool = True


class RecordScanner:
    """Splits bytes into records and fields, exactly: quoted newlines, doubled or escaped quotes, blanks around quotes."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        delimiter, quote, escape = (re.escape(b) for b in (dialect.delimiter, dialect.quote, dialect.escape))
        self._plain = re.compile(rb"[^" + delimiter + rb"\r\n]*")
        self._opening = re.compile(rb" *" + quote) if dialect.quote else None
        if not dialect.quote:
            self._quoted = None
        elif dialect.escape in (b"", dialect.quote):
            # possessive: without it an unclosed quote would take exponential time
            self._quoted = re.compile(rb"((?:[^" + quote + rb"]++|" + quote * 2 + rb")*+)" + quote, re.DOTALL)
        else:
            self._quoted = re.compile(rb"((?:[^" + quote + escape + rb"]++|" + escape + rb".)*+)" + quote, re.DOTALL)
        self._unescape = (
            re.compile(escape + rb"(.)", re.DOTALL) if dialect.escape and dialect.escape != dialect.quote else None
        )

    def records(self, data: bytes, start: int = 0, final: bool = True) -> Iterator[Record]:
        """All records of data[start:], empty lines as a record of one empty field; `final`: data ends the file."""
        comment = self.dialect.comment
        while start < len(data):
            if comment and data.startswith(comment, start):
                end = data.find(self.dialect.newline, start)
                start = len(data) if end < 0 else end + 1
                continue
            record = self._record(data, start, final)
            yield record
            start = record.end

    def _record(self, data: bytes, start: int, final: bool) -> Record:
        """The record that starts at `start`."""
        fields: list[bytes] = []
        quoted: list[bool] = []
        delimiter = self.dialect.delimiter
        position, size = start, len(data)
        while True:
            opening = self._opening.match(data, position) if self._opening else None
            if opening:
                closed = self._quoted.match(data, opening.end()) if self._quoted else None
                if closed is None:
                    if not final:
                        return Record(start, size, fields, quoted, complete=False)
                    return self._failed(data, start, "a quoted value has no closing quote")
                fields.append(self._plain_value(closed.group(1)))
                quoted.append(True)
                position = closed.end()
                while position < size and data[position] == 32:
                    position += 1
            else:
                plain = self._plain.match(data, position)
                assert plain is not None, "the pattern of a plain field matches the empty text"
                fields.append(plain.group())
                quoted.append(False)
                position = plain.end()
            if position >= size:
                return Record(start, size, fields, quoted, complete=final)
            letter = data[position : position + 1]
            if letter == delimiter:
                position += 1
                continue
            if letter == self.dialect.newline:
                return Record(start, position + 1, fields, quoted)
            if letter == b"\r" and self.dialect.newline == b"\n":
                if data[position + 1 : position + 2] == b"\n":
                    return Record(start, position + 2, fields, quoted)
                if position + 1 == size:
                    return Record(start, size, fields, quoted, complete=final)
            reason = (
                "text after a closing quote" if quoted[-1] else "a line break of another kind stands inside the row"
            )
            return self._failed(data, start, reason)

    def _plain_value(self, text: bytes) -> bytes:
        quote = self.dialect.quote
        if self._unescape is not None:
            return self._unescape.sub(rb"\1", text)
        return text.replace(quote + quote, quote) if quote in text else text

    def _failed(self, data: bytes, start: int, reason: str) -> Record:
        """A record that cannot be read ends where its first line does."""
        end = data.find(self.dialect.newline, start)
        return Record(start, len(data) if end < 0 else end + 1, [], [], reason)


def detect_dialect(sample: bytes, options: CsvOptions, complete: bool, expected: int | None = None) -> Dialect:
    """The dialect of a file that starts with `sample` (without a byte order mark).

    complete  the sample is the whole file
    expected  number of fields known from elsewhere
    """
    newline = b"\r" if b"\r" in sample and b"\n" not in sample else b"\n"
    if not complete:  # the last line may be cut: look at whole ones only
        sample = sample[: sample.rfind(newline) + 1] or sample
    skip = options.skip or 0
    best: tuple[tuple[float, ...], Dialect] | None = None
    quotes: tuple[str, ...] = (options.quote,) if options.quote is not None else (*QUOTES, "")
    delimiters = (options.delimiter,) if options.delimiter is not None else DELIMITERS
    comments = (options.comment,) if options.comment is not None else ("", "#")
    present = [d for d in delimiters if d.encode() in sample] or [delimiters[0]]
    for comment in comments:
        if comment and options.comment is None and not re.search(rb"(?:^|[\r\n])#", sample):
            continue
        for quote in quotes:
            if quote and options.quote is None and quote != '"' and quote.encode() not in sample:
                continue
            escapes: tuple[str, ...] = (options.escape if options.escape is not None else quote,)
            if options.escape is None and quote and b"\\" + quote.encode() in sample:
                escapes = (quote, "\\")
            for escape in escapes:
                for delimiter in present:
                    dialect = Dialect(delimiter.encode(), quote.encode(), escape.encode(), comment.encode(), newline)
                    judged = _judge(sample, dialect, skip, options, expected, complete)
                    if judged is not None and (best is None or judged[0] > best[0]):
                        best = judged
    if best is None:  # no candidate reads the sample: the first one reports what is wrong, row by row
        quote = options.quote if options.quote is not None else '"'
        escape = options.escape if options.escape is not None else quote
        first = Dialect(present[0].encode(), quote.encode(), escape.encode(), newline=newline, skip_lines=skip)
        records = RecordScanner(first).records(sample, _line_start(sample, newline, skip), final=complete)
        fields = next((len(r.fields) for r in records if r.error is None), 1)
        return replace(first, fields=expected or max(fields, 1))
    return best[1]


def _line_start(data: bytes, newline: bytes, lines: int) -> int:
    """Offset of physical line number `lines` (0 is the first); the size of the data when there are fewer."""
    start = 0
    for _ in range(lines):
        start = data.find(newline, start) + 1
        if start == 0:
            return len(data)
    return start


def _judge(
    sample: bytes, dialect: Dialect, skip: int, options: CsvOptions, expected: int | None, complete: bool
) -> tuple[tuple[float, ...], Dialect] | None:
    """(rank, completed dialect) of a candidate, or None where it cannot be meant.  A higher rank is better.

    Ranks by: all rows agree; then comment lines less; then whether quotes serve; then the number of fields.
    """
    scanner = RecordScanner(dialect)
    records: list[Record] = []
    for record in scanner.records(sample, _line_start(sample, dialect.newline, skip), final=complete):
        if len(records) == 400:
            break
        records.append(record)
    failures = sum(r.error is not None or not r.complete for r in records)
    if failures and not options.ignore_errors:
        return None
    rows = [r for r in records if r.error is None and r.complete and not _is_blank(r)]
    if not rows:
        return (1.0, 0.0, 0.0, 1.0), replace(dialect, skip_lines=skip, fields=expected or 1)
    counts = Counter(len(r.fields) for r in rows)
    common = max(counts, key=lambda n: (counts[n], n))
    fields = expected or max(common, len(rows[0].fields) if options.header or options.skip is not None else 0)
    trailing = (
        common == len(rows[0].fields) + 1 > 2 and expected in (None, common - 1) and options.skip is None
        and all(len(r.fields) == common and not r.fields[-1] for r in rows[1:])
    )  # fmt: skip
    if trailing:
        rank = (
            1.0,
            1.0,
            0.0 if dialect.comment else 1.0,
            float(any(any(r.quoted) for r in rows)),
            0.5,
            float(common - 1),
        )
        return rank, replace(dialect, skip_lines=skip, fields=common - 1, trailing_delimiter=True)
    if common > 1 and len(rows[0].fields) > common and not options.null_padding:
        fields = expected or len(rows[0].fields)  # the first row promises more than the others keep: they are at fault
    if options.null_padding:
        fields = expected or max(counts)
    agreeing = counts[fields] / len(rows)
    lead = 0
    if options.skip is None and not options.null_padding:  # a title above the table: rows of fewer fields
        while lead < len(rows) and len(rows[lead].fields) < fields:
            lead += 1
        if lead > len(rows) // 2 or lead > 20:
            lead = 0
    consistent = sum(len(r.fields) == fields for r in rows[lead:]) == len(rows) - lead
    uses_quotes = any(any(r.quoted) for r in rows)
    if fields == 1 and uses_quotes and not consistent:
        return None
    if not consistent and (fields == 1 or agreeing < 0.5) and expected is None and not options.ignore_errors:
        return None
    start_line = skip if lead == 0 else sample.count(dialect.newline, 0, rows[lead].start)
    rank = (
        float(consistent or options.null_padding),
        float(fields > 1),
        0.0 if dialect.comment else 1.0,
        float(uses_quotes),
        0.0 if lead else 1.0,
        float(fields),
    )
    return rank, replace(dialect, skip_lines=start_line, fields=fields)


def _is_blank(record: Record) -> bool:
    return record.error is None and len(record.fields) == 1 and not record.fields[0] and not record.quoted[0]
