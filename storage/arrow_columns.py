"""Arrow columns of any origin as columns of SQL types: Parquet files, IPC files, and tables handed over by Python.

bool, int8 .. int64          BOOLEAN, TINYINT .. BIGINT
uint8, uint16, uint32        SMALLINT, INTEGER, BIGINT: the next larger signed type
uint64                       BIGINT; a value past 2**63 - 1 is an error
half_float, float, double    REAL, REAL, DOUBLE
decimal(p, s), 0 <= s <= p   DECIMAL(p, s) up to 38 digits
date32, date64               DATE
timestamp s, ms, us, ns      TIMESTAMP, nanoseconds rounded down to microseconds
string, large_string, string_view, and dictionaries of them    VARCHAR
dictionaries of other types  their values' type
null                         INTEGER, as DuckDB has it
anything else                refused when the column is read: time zones, times, durations, binary, nested types
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from gpudb.errors import InputError, NotSupportedError
from gpudb.storage.file_relation import quoted_list
from gpudb.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    REAL,
    SMALLINT,
    TIMESTAMP,
    TINYINT,
    VARCHAR,
    SqlType,
    decimal,
)

_SIMPLE = {
    pa.bool_(): BOOLEAN, pa.int8(): TINYINT, pa.int16(): SMALLINT, pa.int32(): INTEGER, pa.int64(): BIGINT,
    pa.uint8(): SMALLINT, pa.uint16(): INTEGER, pa.uint32(): BIGINT, pa.uint64(): BIGINT, pa.float16(): REAL,
    pa.float32(): REAL, pa.float64(): DOUBLE, pa.date32(): DATE, pa.date64(): DATE, pa.string(): VARCHAR,
    pa.large_string(): VARCHAR, pa.string_view(): VARCHAR, pa.null(): INTEGER,
}  # fmt: skip


def sql_type_of(arrow_type: pa.DataType) -> SqlType | None:
    """The SQL type that holds a column of `arrow_type`, or None where there is none."""
    if pa.types.is_dictionary(arrow_type):
        return sql_type_of(arrow_type.value_type)
    if pa.types.is_decimal(arrow_type):
        fits = 1 <= arrow_type.precision <= 38 and 0 <= arrow_type.scale <= arrow_type.precision
        return decimal(arrow_type.precision, arrow_type.scale) if fits else None
    if pa.types.is_timestamp(arrow_type):
        return TIMESTAMP if arrow_type.tz is None else None
    if isinstance(arrow_type, pa.BaseExtensionType):
        return sql_type_of(arrow_type.storage_type) if arrow_type.extension_name == "arrow.json" else None
    return _SIMPLE.get(arrow_type)


@dataclass(frozen=True)
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

    def check_readable(self) -> None:
        """Raises NotSupportedError for a column of a type that has no SQL type here."""
        if self.supported:
            return
        hint = "columns that are not named in the statement are not read"
        if pa.types.is_timestamp(self.arrow_type):
            hint = "convert it to a timestamp without time zone; " + hint
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
        sql_type = sql_type_of(field.type)
        mappings.append(
            ColumnMapping(unique, sql_type or VARCHAR, position, field.name, field.type, sql_type is not None, path)
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
        arrays = [convert_column(piece.column(i), mapping, path) for i, mapping in enumerate(mappings)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def convert_column(column: pa.Array, mapping: ColumnMapping, path: str) -> pa.Array:
    """One column as `mapping.sql_type.arrow`.  Raises InputError where a value does not fit."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        column = column.dictionary.take(column.indices)
    wanted = mapping.sql_type.arrow
    if column.type == wanted:
        if pa.types.is_string(wanted):
            _check_utf8(column, mapping, path)
        return column
    try:
        if pa.types.is_timestamp(column.type) and column.type.unit == "ns" and pa.types.is_timestamp(wanted):
            return pc.floor_temporal(column, unit="microsecond").cast(wanted)
        if pa.types.is_float16(column.type):
            column = column.cast(pa.float32())
        converted = column.cast(wanted)
        if pa.types.is_string(wanted):
            _check_utf8(converted, mapping, path)
        return converted
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        if isinstance(error, pa.ArrowNotImplementedError):
            raise NotSupportedError(
                f"columns of type {column.type} cannot become {mapping.sql_type}: column {mapping.name}, file {path}"
            ) from None
        raise InputError(
            f"a value of type {column.type} does not fit {mapping.sql_type}: column {mapping.name}, file {path}"
        ) from None


def _check_utf8(column: pa.Array, mapping: ColumnMapping, path: str) -> None:
    """Text from a file is checked once, here, so that nobody has to ask again."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        raise InputError(f"text is not valid UTF-8: column {mapping.name}, file {path}") from None
