"""What the columns of a CSV file are called and which types they have, found from a sample of its rows.

The rules are DuckDB's: BOOLEAN, BIGINT, HUGEINT, DOUBLE, DATE, TIME, TIMESTAMP (WITH TIME ZONE where one has `Z` or an offset),
else VARCHAR; a number with a leading zero or a plus sign is text, because it is an identifier more often than a number.
They differ in two places: `inf` is a DOUBLE, not a date; each column has a date format of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from gpudb import compute as pc
from gpudb.errors import BindError
from gpudb.storage.csv_dialect import CsvOptions, Dialect
from gpudb.storage.file_relation import quoted_list
from gpudb.storage.text_values import TextZone, TimeFormat, convert_texts, parse_text
from gpudb.types import BIGINT, BOOLEAN, DATE, DOUBLE, HUGEINT, TIME, TIMESTAMP, TIMESTAMPTZ, VARCHAR, SqlType

_BOOLEAN_WORDS = r"(?i)^(true|false|t|f|yes|no)$"
_INTEGERS = r"^\s*(-\d+|0|[1-9]\d*|-?0[xX][0-9a-fA-F]+|-?0[bB][01]+)\s*$"
_DOUBLES = r"^(-?(?i:nan|inf|infinity)|(-\d+|0|[1-9]\d*)(\.\d*)?([eE][+-]?\d+)?|-?\.\d+([eE][+-]?\d+)?)$"
_ISO_DATES = r"^\s*-?\d{4,6}([-/ .])\d{1,2}[-/ .]\d{1,2}\s*$"
_ISO_TIMESTAMPS = (
    r"^\s*-?\d{4,6}[-/ .]\d{1,2}[-/ .]\d{1,2}"
    r"([T ]\s*\d{1,2}:\d{1,2}(:\d{1,2}(\.\d*)?)?(Z| UTC|[+-]\d{2}(:?\d{2}(:\d{2})?)?)?)?\s*$"
)
_HAS_OFFSET = r":\d{1,2}(\.\d*)?(Z|[+-]\d{2}(:?\d{2}(:\d{2})?)?)\s*$"
_TIMES = r"^\s*\d{1,2}:\d{1,2}(:\d{1,2}(\.\d*)?)?\s*$"
_HAS_TIME = re.compile(r"\d[T ]\s*\d{1,2}:")
_DATE_FORMATS = ("%y-%m-%d", "%d-%m-%Y", "%d-%m-%y", "%m-%d-%Y", "%m-%d-%y")
_TIMESTAMP_FORMATS = ("%d-%m-%Y %H:%M:%S", "%d-%m-%y %H:%M:%S", "%m-%d-%Y %I:%M:%S %p", "%m-%d-%y %I:%M:%S %p")


@dataclass(frozen=True)
class ColumnForm:
    """How one column's texts become values.

    native       pyarrow's own reader gives the same values as `parse_text` wherever it accepts a text
    time_format  of a DATE or a TIMESTAMP that is not in ISO form; the session's zone of a TIMESTAMP WITH TIME ZONE
    is_empty     the sample held nothing but NULLs
    """

    sql_type: SqlType
    native: bool = True
    time_format: TimeFormat | TextZone | None = None
    is_empty: bool = False


@dataclass(frozen=True)
class CsvSchema:
    """Everything needed to read a file: its dialect, its columns, and whether its first record names them."""

    dialect: Dialect
    names: tuple[str, ...]
    forms: tuple[ColumnForm, ...]
    has_header: bool


def guess_form(texts: pa.Array, options: CsvOptions) -> ColumnForm:
    """The form of a column from a sample of its texts, NULL where the text is a NULL."""
    distinct = texts.unique().drop_null()
    if len(distinct) == 0 or options.all_varchar:
        return ColumnForm(VARCHAR, is_empty=len(distinct) == 0)
    if _all_match(distinct, _BOOLEAN_WORDS):
        return ColumnForm(BOOLEAN)
    if _all_match(distinct, _INTEGERS):
        return _integer_form(distinct)
    if options.decimal_separator == ",":
        plain = pc.replace_substring(distinct, ",", ".")
        if not pc.any(pc.match_substring(distinct, ".")).as_py() and _all_match(plain, _DOUBLES):
            return ColumnForm(DOUBLE)
    elif _all_match(distinct, _DOUBLES):
        return form_of_type(DOUBLE, distinct, options)
    return _temporal_form(distinct, options) or ColumnForm(VARCHAR)


def _all_match(texts: pa.Array, pattern: str) -> bool:
    """Every text matches; the first few are tried before the rest."""
    head = texts.slice(0, 16)
    if not pc.all(pc.match_substring_regex(head, pattern)).as_py():
        return False
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def _integer_form(distinct: pa.Array) -> ColumnForm:
    long = distinct.filter(pc.greater(pc.utf8_length(distinct), 17)).to_pylist()
    sql_type = BIGINT
    for text in long:
        try:
            parse_text(text, BIGINT)
        except ValueError:
            try:
                parse_text(text, HUGEINT)
            except ValueError:
                return ColumnForm(VARCHAR)
            sql_type = HUGEINT
    return form_of_type(sql_type, distinct, CsvOptions())


def _temporal_form(distinct: pa.Array, options: CsvOptions) -> ColumnForm | None:
    first = distinct[0].as_py().strip()
    if _all_match(distinct, _TIMES) and _parses(distinct, TIME):
        return ColumnForm(TIME, False)
    if len(first) < 6:
        return None
    candidates: list[ColumnForm] = []
    if options.date_format:
        candidates.append(ColumnForm(DATE, False, options.date_format))
    elif _all_match(distinct, _ISO_DATES):
        candidates.append(ColumnForm(DATE, False))
    if options.timestamp_format:
        candidates.append(ColumnForm(TIMESTAMP, False, options.timestamp_format))
    elif _HAS_TIME.search(first) and _all_match(distinct, _ISO_TIMESTAMPS):
        zoned = pc.any(pc.match_substring_regex(distinct, _HAS_OFFSET)).as_py()
        candidates.append(ColumnForm(TIMESTAMPTZ, False, options.zone) if zoned else ColumnForm(TIMESTAMP, False))
    separator = re.match(r"\d{1,4}([-/ .])\d{1,2}([-/ .])\d{1,4}", first)
    digits = re.match(r"\d{1,2}\D\d{1,2}\D(?:\d{2}|\d{4})(?!\d)", first)
    if separator and digits and separator.group(1) == separator.group(2):
        long_year = digits.group()[-3].isdigit()
        short_first = first[2].isdigit() or not first[:2].isdigit()  # a year of two digits comes first only as two
        formats = [
            text.replace("-", separator.group(1))
            for text in _DATE_FORMATS
            if ("%Y" in text) == long_year and not (text.startswith("%y") and short_first)
        ]
        if not options.date_format:
            candidates += [ColumnForm(DATE, False, TimeFormat(text)) for text in formats]
        formats = [text.replace("-", separator.group(1)) for text in _TIMESTAMP_FORMATS if ("%Y" in text) == long_year]
        if not options.timestamp_format:
            candidates += [ColumnForm(TIMESTAMP, False, TimeFormat(text)) for text in formats]
    for candidate in candidates:
        try:
            parse_text(first, candidate.sql_type, candidate.time_format)
        except ValueError:
            continue
        if not convert_texts(distinct, candidate.sql_type, candidate.time_format)[1].any():
            return form_of_type(candidate.sql_type, distinct, options, candidate.time_format)
    return None


def form_of_type(
    sql_type: SqlType, texts: pa.Array, options: CsvOptions, time_format: TimeFormat | TextZone | None = None
) -> ColumnForm:
    """The form of a column whose type is known: native unless the sample shows that pyarrow would refuse a text."""
    if sql_type.kind == "VARCHAR":
        return ColumnForm(VARCHAR)
    if sql_type.kind in ("BLOB", "ENUM"):
        return ColumnForm(sql_type, False)
    if time_format is None:
        formats = {"DATE": options.date_format, "TIMESTAMP": options.timestamp_format, "TIMESTAMPTZ": options.zone}
        time_format = formats.get(sql_type.kind)
    if time_format is not None:
        return ColumnForm(sql_type, False, time_format)
    if sql_type.is_temporal and not _parses(texts.drop_null().slice(0, 64), sql_type):
        guessed = _temporal_form(texts.unique().drop_null(), options)
        if guessed is not None and guessed.sql_type == sql_type:
            return guessed
    if sql_type.kind == "BOOLEAN" or (options.decimal_separator == "," and (sql_type.is_float or sql_type.scale)):
        return ColumnForm(sql_type)
    distinct = texts.unique().drop_null()
    if sql_type.is_numeric:
        distinct = pc.utf8_trim_whitespace(distinct)
    try:
        pc.cast(distinct, sql_type.arrow)
    except pa.ArrowInvalid:
        return _nearly_native(sql_type, distinct)
    return ColumnForm(sql_type)


def _parses(texts: pa.Array, sql_type: SqlType) -> bool:
    """Whether all texts are values of `sql_type` in ISO form."""
    return not convert_texts(texts, sql_type)[1].any()


def _nearly_native(sql_type: SqlType, distinct: pa.Array) -> ColumnForm:
    """Not native only where most texts would be refused: a few go through the slow way without harm to the rest."""
    head = distinct.slice(0, 64).to_pylist()
    refused = 0
    for text in head:
        try:
            pc.cast(pa.array([text]), sql_type.arrow)
        except pa.ArrowInvalid:
            try:
                parse_text(text, sql_type)
            except ValueError:
                continue  # a row in error, whichever way it is read
            refused += 1
    return ColumnForm(sql_type, native=refused == 0)


def column_names(fields: Sequence[str]) -> tuple[str, ...]:
    """Names from a header: blanks around cut, an empty one is columnN, one that came before gets _1, _2, ... ."""
    names: list[str] = []
    repeats: dict[str, int] = {}  # of every name taken
    for position, field in enumerate(fields):
        name = field.strip() or f"column{position}"
        while (key := name.lower()) in repeats:
            repeats[key] += 1
            name = f"{name}_{repeats[key]}"
        repeats[key] = 0
        names.append(name)
    return tuple(names)


def sniff_columns(
    first: Sequence[str | None] | None, rest: Sequence[pa.Array], dialect: Dialect, options: CsvOptions
) -> CsvSchema:
    """Names, types and whether there is a header, from the first record and a sample of the ones after it.

    first  fields of the first record, None for a NULL; None for an empty file
    rest   one string array a field, without the first record
    """
    width = dialect.fields
    if first is None:
        first, rest = [], [pa.nulls(0, pa.string())] * width
        return _finish(dialect, options, [f"column{i}" for i in range(width)], first, rest, False)
    has_rows = len(rest[0]) > 0
    fixed = _fixed_types(options, width)
    if options.header is not None:
        has_header = options.header
    else:
        has_header = _looks_like_header(first, rest, fixed, options, has_rows)
    if has_header:
        names = column_names([text or "" for text in first])
    else:
        names = tuple(f"column{i}" for i in range(width))
        rest = [
            pa.concat_arrays([pa.array([text], pa.string()), column]) for text, column in zip(first, rest, strict=True)
        ]
    return _finish(dialect, options, names, first, rest, has_header)


def _fixed_types(options: CsvOptions, width: int) -> list[SqlType | None]:
    """Types the user gave by position; types given by name cannot say anything before the header is known."""
    if options.columns is not None:
        return [sql_type for _, sql_type in options.columns]
    return [*options.type_list[:width], *[None] * (width - len(options.type_list))]


def _looks_like_header(
    first: Sequence[str | None],
    rest: Sequence[pa.Array],
    fixed: Sequence[SqlType | None],
    options: CsvOptions,
    has_rows: bool,
) -> bool:
    """The first record is a header when a field of it cannot be a value of its column, or when all columns are text.

    So it is when a column has nothing but NULLs below a text.
    """
    if options.columns is not None:
        given = [name.lower() for name, _ in options.columns]
        if [(text or "").strip().lower() for text in first] == given:
            return True
    if has_rows and all(text is None for text in first):
        return True
    all_text = True
    options = replace(options, all_varchar=False)  # the header is told by types that the columns will not have
    for position, text in enumerate(first):
        known = fixed[position] if position < len(fixed) else None
        if has_rows and text and rest[position].null_count == len(rest[position]):
            return True
        sample = rest[position] if has_rows else pa.array([text], pa.string())
        form = ColumnForm(known) if known is not None else guess_form(sample, options)
        if form.sql_type.kind == "VARCHAR":
            continue
        all_text = False
        if text is None:
            continue
        if known is not None:
            try:
                parse_text(text, known, form_of_type(known, sample, options).time_format)
            except ValueError:
                return True
        elif not _same_kind(text, form, options):
            return True
    return all_text


def _same_kind(text: str, form: ColumnForm, options: CsvOptions) -> bool:
    """Whether `text` could have been one of the texts that made the guess."""
    guess = guess_form(pa.array([text]), options)
    order = ("BIGINT", "HUGEINT", "DOUBLE")
    if form.sql_type.kind in order and guess.sql_type.kind in order:
        return True
    if form.time_format is not None:
        try:
            parse_text(text, form.sql_type, form.time_format)
        except ValueError:
            return False
        return True
    return guess.sql_type == form.sql_type or (guess.sql_type.kind, form.sql_type.kind) == ("DATE", "TIMESTAMP")


def _finish(
    dialect: Dialect,
    options: CsvOptions,
    names: Sequence[str],
    first: Sequence[str | None],
    rest: Sequence[pa.Array],
    has_header: bool,
) -> CsvSchema:
    if options.columns is not None:
        names = [name for name, _ in options.columns]
    else:
        names = column_names([*options.names[: len(names)], *names[len(options.names) :]])
    by_name = {name.lower(): sql_type for name, sql_type in options.types.items()}
    unknown = by_name.keys() - {name.lower() for name in names}
    if unknown:
        raise BindError(
            f"option types names columns that the CSV file does not have: {', '.join(sorted(unknown))}",
            hint="its columns are " + quoted_list(names),
        )
    fixed = _fixed_types(options, len(names))
    forms = []
    for position, (name, texts) in enumerate(zip(names, rest, strict=True)):
        known = by_name.get(name.lower(), fixed[position] if position < len(fixed) else None)
        forms.append(guess_form(texts, options) if known is None else form_of_type(known, texts, options))
    return CsvSchema(dialect, tuple(names), tuple(forms), has_header)
