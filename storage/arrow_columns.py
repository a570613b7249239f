"""The columns of Parquet and Arrow IPC files as columns of SQL types.

bool, int8 .. int64          BOOLEAN, TINYINT .. BIGINT
uint8 .. uint64              UTINYINT .. UBIGINT
half_float, float, double    REAL, REAL, DOUBLE
decimal(p, s), 0 <= s <= p   DECIMAL(p, s) up to 38 digits
date32, date64               DATE
time s, ms, us, ns           TIME, nanoseconds cut to microseconds
timestamp s, ms, us, ns      TIMESTAMP, nanoseconds rounded to microseconds; with a zone TIMESTAMP WITH TIME ZONE
binary, large_binary, binary_view, fixed_size_binary           BLOB
arrow.uuid                   UUID
string, large_string, string_view, and dictionaries of them    VARCHAR
dictionaries of other types  their values' type
null                         INTEGER, as DuckDB has it
anything else                refused when the column is read: durations, nested types
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from gpudb import compute as pc
from gpudb.errors import ConversionError, InputError, NotSupportedError
from gpudb.functions.uuid_values import print_uuids, uuids_of
from gpudb.record import record
from gpudb.storage.arrow import sql_type
from gpudb.storage.csv_writer import value_texts
from gpudb.storage.file_relation import quoted_list
from gpudb.storage.text_values import convert_texts
from gpudb.types import VARCHAR, SqlType


def sql_type_of(arrow_type: pa.DataType) -> SqlType | None:
    """The SQL type that holds a column of `arrow_type`, or None where there is none."""
    try:
        return sql_type(arrow_type)
    except NotSupportedError:
        return None


@record
class ColumnMapping:
    """One column of a file and the SQL column it becomes.

    position     in the file
    file_name    in the file; names there may repeat, `name` does not
    arrow_type   in the file
    supported    False: reading it is an error; `sql_type` is VARCHAR then, so that the other columns can be read
    """

    name: str
    sql_type: SqlType
    position: int
    file_name: str
    arrow_type: pa.DataType
    supported: bool
    path: str

    @property
    def is_dictionary(self) -> bool:
        return bool(pa.types.is_dictionary(self.arrow_type))

    def check_readable(self) -> None:
        """Raises NotSupportedError for a column of a type that has no SQL type here."""
        if self.supported:
            return
        hint = "columns that are not named in the statement are not read"
        raise NotSupportedError(
            f"columns of type {self.arrow_type} are not supported: column {self.name}, file {self.path}", hint=hint
        )


def map_columns(schema: pa.Schema, path: str) -> list[ColumnMapping]:
    """The columns of a file in order.  Raises InputError for a file without columns."""
    if len(schema) == 0:
        raise InputError(f"the file has no columns: {path}")
    mappings: list[ColumnMapping] = []
    taken: set[str] = set()
    for position, field in enumerate(schema):
        name = field.name or f"column{position}"
        unique, repeat = name, 0
        while unique.lower() in taken:
            repeat += 1
            unique = f"{name}_{repeat}"
        taken.add(unique.lower())
        found = sql_type_of(field.type)
        mappings.append(
            ColumnMapping(unique, found or VARCHAR, position, field.name, field.type, found is not None, path)
        )
    return mappings


def map_like(
    mappings: list[ColumnMapping], wanted: Sequence[tuple[str, SqlType]], path: str, by_name: bool
) -> list[ColumnMapping]:
    """The columns of a file as columns that are known already: of an earlier file, or of the table a COPY fills.

    by_name  match names without regard to case, else positions
    """
    if len(mappings) != len(wanted):
        raise InputError(f"the file has {len(mappings)} columns where {len(wanted)} are expected: {path}")
    if by_name:
        found = {mapping.name.lower(): mapping for mapping in mappings}
        missing = [name for name, _ in wanted if name.lower() not in found]
        if missing:
            raise InputError(f"the file lacks columns that an earlier file has: {quoted_list(missing)}, file {path}")
        mappings = [found[name.lower()] for name, _ in wanted]
    return [
        replace(mapping, name=name, sql_type=sql_type)
        for mapping, (name, sql_type) in zip(mappings, wanted, strict=True)
    ]


def convert_batch(
    batch: pa.RecordBatch, mappings: Sequence[ColumnMapping], schema: pa.Schema, path: str, most_rows: int
) -> Iterator[pa.RecordBatch]:
    """A file's batch in the SQL types' Arrow form, in pieces of at most `most_rows` rows."""
    for start in range(0, batch.num_rows, most_rows):
        piece = batch.slice(start, most_rows)
        try:
            arrays = [convert_column(piece.column(i), mapping, path) for i, mapping in enumerate(mappings)]
        except pa.ArrowException:  # say, a dictionary code past its dictionary
            raise InputError(f"the file's data are damaged: {path}") from None
        yield pa.RecordBatch.from_arrays(arrays, names=schema.names)


def convert_column(column: pa.Array, mapping: ColumnMapping, path: str) -> pa.Array:
    """One column as `mapping.sql_type.arrow`, or text as dictionary<int32, string> where the file has it so.

    Raises InputError where a value does not fit.
    """
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        if mapping.sql_type.is_text:
            entries = convert_column(column.dictionary, mapping, path)
            return pa.DictionaryArray.from_arrays(column.indices.cast(pa.int32()), entries)
        column = column.dictionary.take(column.indices)
    if pa.types.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    if mapping.sql_type.kind == "UUID":
        try:
            return print_uuids(uuids_of(column))
        except ConversionError:
            raise InputError(
                f"a value of type {column.type} does not fit UUID: column {mapping.name}, file {path}"
            ) from None
    if mapping.sql_type.kind == "BLOB" and not pa.types.is_string(column.type):
        return column.cast(pa.binary())
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    if pa.types.is_string(column.type):
        _check_utf8(column, mapping, path)
    if column.type == mapping.sql_type.arrow:
        return column
    try:
        return _converted(column, mapping.sql_type)
    except pa.ArrowNotImplementedError:
        raise NotSupportedError(
            f"columns of type {column.type} cannot become {mapping.sql_type}: column {mapping.name}, file {path}"
        ) from None
    except (pa.ArrowInvalid, ValueError):
        raise InputError(
            f"a value of type {column.type} does not fit {mapping.sql_type}: column {mapping.name}, file {path}"
        ) from None


def _converted(column: pa.Array, wanted: SqlType) -> pa.Array:
    """A column of another type, as DuckDB casts it.  Raises pa.ArrowInvalid or ValueError where a value does not fit."""
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    if pa.types.is_time(column.type) and wanted.kind == "TIME":
        return column.cast(wanted.arrow, safe=False)
    is_moment = pa.types.is_timestamp(column.type) and column.type.tz is not None
    if is_moment != (wanted.kind == "TIMESTAMPTZ"):  # that would take a zone
        raise pa.ArrowNotImplementedError("a time zone is wanted")
    if pa.types.is_timestamp(column.type):
        if column.type.unit == "ns":
            column = _whole_microseconds(column)
        if wanted.kind == "DATE":
            return pc.floor_temporal(column, unit="day").cast(pa.date32())
    if pa.types.is_floating(column.type) and wanted.is_integer:
        column = pc.round(column, round_mode="half_to_even")
        if wanted.kind == "HUGEINT":
            return _through_text(column, wanted)
        return column.cast(pa.uint64() if wanted.kind == "UBIGINT" else pa.int64()).cast(wanted.arrow)
    if wanted.kind == "DOUBLE" and pa.types.is_integer(column.type):
        return column.cast(wanted.arrow, safe=False)
    if pa.types.is_float64(column.type) and wanted.kind == "REAL":
        narrow = column.cast(wanted.arrow)
        if pc.any(pc.and_(pc.is_inf(narrow), pc.is_finite(column))).as_py():
            raise ValueError("out of range")
        return narrow
    if wanted.is_text or wanted.kind in ("DECIMAL", "HUGEINT") or pa.types.is_string(column.type):
        return _through_text(column, wanted)
    if pa.types.is_decimal(column.type) and wanted.is_integer:
        return _through_text(column, wanted)
    return column.cast(wanted.arrow)


def _whole_microseconds(column: pa.Array) -> pa.Array:
    """Nanoseconds rounded to the nearest microsecond, halves away from the epoch."""
    nanoseconds = column.cast(pa.int64())
    whole = pc.divide(nanoseconds, 1000)  # towards zero
    rest = pc.subtract(nanoseconds, pc.multiply(whole, 1000))
    away = pc.subtract(pc.greater_equal(rest, 500).cast(pa.int64()), pc.less_equal(rest, -500).cast(pa.int64()))
    return pc.add(whole, away).cast(pa.timestamp("us", column.type.tz))


def _through_text(column: pa.Array, wanted: SqlType) -> pa.Array:
    """By way of the text that SQL would show.  Raises ValueError where the text is no value of the type."""
    if pa.types.is_decimal(column.type) and wanted.kind == "DECIMAL" and wanted.scale >= column.type.scale:
        return column.cast(wanted.arrow)
    if pa.types.is_integer(column.type) and wanted.kind == "HUGEINT":
        return column.cast(wanted.arrow)
    if pa.types.is_boolean(column.type) and not wanted.is_text:
        column = column.cast(pa.int8())
    values, bad = convert_texts(value_texts(column), wanted)
    if bad.any():
        raise ValueError("not a value of the type")
    return values


def _check_utf8(column: pa.Array, mapping: ColumnMapping, path: str) -> None:
    """Text from a file is checked once, here, so that nobody has to ask again."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        raise InputError(f"text is not valid UTF-8: column {mapping.name}, file {path}") from None
