"""Arrow and SQL types, Arrow arrays and plain values, and whatever a user may register as a table.

Plain values are what the encodings take: a NumPy array of the integer behind the value (or the float, or the dictionary
code) and a mask of the present rows.  The way back, from a chunk to an Arrow array, is exact for every type.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from gpudb import compute as pc
from gpudb import types
from gpudb.errors import ConversionError, InterfaceError, NotSupportedError
from gpudb.functions import blob, enums
from gpudb.functions.interval_values import from_arrow, to_arrow, words_of
from gpudb.functions.uuid_values import print_uuids, uuids_of
from gpudb.storage.column import WIDE, Chunk, as_wide
from gpudb.storage.dictionary import Dictionary
from gpudb.storage.text_words import has_duplicates, hash_texts, text_buffers, text_order
from gpudb.types import SqlType

Plain = tuple[np.ndarray, "np.ndarray | None"]  # ((rows,) values, (rows,) bool present or None when there is no NULL)
ArrowColumn: TypeAlias = "pa.Array | pa.ChunkedArray"

ARROW_TO_SQL = {
    pa.null(): types.INTEGER,  # DuckDB makes an INTEGER of a column of nothing but NULL
    pa.bool_(): types.BOOLEAN,
    pa.int8(): types.TINYINT,
    pa.int16(): types.SMALLINT,
    pa.int32(): types.INTEGER,
    pa.int64(): types.BIGINT,
    pa.uint8(): types.UTINYINT,
    pa.uint16(): types.USMALLINT,
    pa.uint32(): types.UINTEGER,
    pa.uint64(): types.UBIGINT,
    pa.float16(): types.REAL,
    pa.float32(): types.REAL,
    pa.float64(): types.DOUBLE,
    pa.date32(): types.DATE,
    pa.date64(): types.DATE,
    pa.time32("s"): types.TIME,
    pa.time32("ms"): types.TIME,
    pa.time64("us"): types.TIME,
    pa.time64("ns"): types.TIME,
    pa.binary(): types.BLOB,
    pa.large_binary(): types.BLOB,
    pa.binary_view(): types.BLOB,
    pa.string(): types.VARCHAR,
    pa.large_string(): types.VARCHAR,
    pa.string_view(): types.VARCHAR,
}


def sql_type(arrow_type: pa.DataType, column: str = "") -> SqlType:
    """The SQL type that holds an Arrow type's values; NotSupportedError names the column and the type."""
    if isinstance(arrow_type, pa.BaseExtensionType):
        if arrow_type.extension_name == "arrow.uuid":
            return types.UUID
        return sql_type(arrow_type.storage_type, column)
    if pa.types.is_dictionary(arrow_type) or pa.types.is_run_end_encoded(arrow_type):
        return sql_type(arrow_type.value_type, column)
    if pa.types.is_decimal(arrow_type) and arrow_type.precision <= 38 and 0 <= arrow_type.scale <= arrow_type.precision:
        return types.decimal(arrow_type.precision, arrow_type.scale)
    if pa.types.is_timestamp(arrow_type):
        return types.TIMESTAMP if arrow_type.tz is None else types.TIMESTAMPTZ
    if pa.types.is_fixed_size_binary(arrow_type):
        return types.BLOB
    if pa.types.is_duration(arrow_type) or pa.types.is_interval(arrow_type):
        return types.INTERVAL
    found = ARROW_TO_SQL.get(arrow_type)
    if found is None:
        raise NotSupportedError(f"columns of this Arrow type are not supported: column {column!r} of type {arrow_type}")
    return found


def columns_of(schema: pa.Schema) -> tuple[tuple[str, SqlType], ...]:
    """(name, SQL type) of each field; a name that is there already, whatever its case, gets _1, _2 ... behind it."""
    taken: set[str] = set()
    columns = []
    for field in schema:
        name, number = field.name, 0
        while name.casefold() in taken:
            number += 1
            name = f"{field.name}_{number}"
        taken.add(name.casefold())
        columns.append((name, sql_type(field.type, field.name)))
    return tuple(columns)


def schema_of(columns: Iterable[tuple[str, SqlType]]) -> pa.Schema:
    """The Arrow schema that a table of these columns has on its way out."""
    return pa.schema([pa.field(name, kind.arrow) for name, kind in columns])


def batches_of(source: Any) -> pa.RecordBatchReader:
    """The rows of anything a user may register, as a stream of record batches.

    source  pyarrow Table, RecordBatch, RecordBatchReader or Dataset; a pandas DataFrame (its index is left out); a
            polars DataFrame or LazyFrame; or any object with the Arrow PyCapsule protocol.  InterfaceError for others.
    """
    if isinstance(source, pa.RecordBatchReader):
        return source
    if isinstance(source, pa.Table):
        return source.to_reader()
    if isinstance(source, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(source.schema, [source])
    package = type(source).__module__.partition(".")[0]
    if package == "pandas" and hasattr(source, "columns"):
        try:
            return pa.Table.from_pandas(source, preserve_index=False).to_reader()
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            raise ConversionError(f"a column of the DataFrame has no Arrow form: {error}") from error
    if package == "polars" and hasattr(source, "collect"):
        source = source.collect()
    if hasattr(source, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(source)
    if hasattr(source, "__arrow_c_array__"):
        batch = pa.record_batch(source)
        return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    if hasattr(source, "scanner") and hasattr(source, "schema"):  # a pyarrow Dataset
        return source.scanner().to_reader()
    raise InterfaceError(
        f"an object of this type cannot be registered: {type(source).__module__}.{type(source).__qualname__}",
        hint="give a pyarrow Table, RecordBatch or RecordBatchReader, a pandas or a polars DataFrame, "
        "or an object with __arrow_c_stream__",
    )


def plain_values(column: ArrowColumn, kind: SqlType, dictionary: Dictionary | None) -> tuple[Plain, Dictionary | None]:
    """(plain values of `column`, the dictionary with its new texts; None for other types than VARCHAR).

    Raises ConversionError where a value does not fit `kind`.
    """
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    chunks = [chunk for chunk in (_without_wrappers(chunk) for chunk in chunks) if len(chunk)]
    if kind.is_coded:
        assert dictionary is not None, "a text column comes with its dictionary"
        if kind.kind == "BLOB":
            chunks = [blob.spelled(_plain_bytes(chunk)) for chunk in chunks]
        return _text_values(chunks, dictionary)
    return concatenate([_fixed_width_values(_cast(chunk, kind), kind) for chunk in chunks], kind), None


def concatenate(pieces: list[Plain], kind: SqlType) -> Plain:
    """Plain values end to end."""
    if not pieces:
        return np.zeros(0, dtype=kind.arrow.to_pandas_dtype() if kind.is_float else np.int64), None
    if len(pieces) == 1:
        return pieces[0]
    arrays = [piece[0] for piece in pieces]
    if any(array.dtype == WIDE for array in arrays):
        arrays = [as_wide(array) for array in arrays]
    values = np.concatenate(arrays)
    if all(present is None for _, present in pieces):
        return values, None
    masks = [np.ones(len(piece), dtype=np.bool_) if present is None else present for piece, present in pieces]
    return values, np.concatenate(masks)


def arrow_array(chunk: Chunk, kind: SqlType, dictionary: Dictionary | None) -> pa.ChunkedArray:
    """The rows of a chunk in the SQL type's Arrow form; several arrays only where text exceeds 2 GiB."""
    present = chunk.present()
    validity = None if present is None else pa.py_buffer(np.packbits(present, bitorder="little"))
    values = chunk.values()
    if present is not None:
        values = np.where(present, values, np.zeros((), values.dtype))
    if kind.is_coded:
        assert dictionary is not None, "a text column comes with its dictionary"
        found = _texts(values.astype(np.int32), validity, dictionary)
        if kind.kind == "BLOB":
            return pa.chunked_array([blob.to_arrow(chunk) for chunk in found.chunks], type=kind.arrow)
        return found
    if kind.kind == "BOOLEAN":
        values = np.packbits(values.astype(np.uint8), bitorder="little")
    elif kind.kind == "UBIGINT":
        values = np.ascontiguousarray(values["low"] if values.dtype == WIDE else values.astype(np.uint64))
    elif kind.is_wide:
        values = as_wide(values)
    else:
        values = np.ascontiguousarray(values.astype(_native_dtype(kind), copy=False))
    array = pa.Array.from_buffers(kind.entries, chunk.rows, [validity, pa.py_buffer(values)], chunk.null_count)
    if kind.kind == "INTERVAL":
        array = to_arrow(array)
    if kind.kind == "UUID":
        array = print_uuids(array)
    if kind.kind == "ENUM":
        array = enums.to_arrow(array, kind)
    return pa.chunked_array([array], type=kind.arrow)


def _native_dtype(kind: SqlType) -> np.dtype:
    """NumPy's dtype of the buffer of a fixed-width Arrow array; DATE in int32 days, timestamps in int64 microseconds."""
    temporal = {"ENUM": np.int32, "DATE": np.int32, "TIME": np.int64, "TIMESTAMP": np.int64, "TIMESTAMPTZ": np.int64}
    return np.dtype(temporal.get(kind.kind) or kind.arrow.to_pandas_dtype())


def _plain_bytes(array: pa.Array) -> pa.Array:
    """An array of bytes, which a file may hold as a dictionary, as pa.binary()."""
    return (array.dictionary_decode() if pa.types.is_dictionary(array.type) else array).cast(pa.binary())


def _without_wrappers(array: pa.Array) -> pa.Array:
    """Extension types as their storage, run-end encoding decoded."""
    if isinstance(array, pa.ExtensionArray):
        return _without_wrappers(array.storage)
    if pa.types.is_run_end_encoded(array.type):
        return _without_wrappers(pc.run_end_decode(array))
    return array


def _cast(array: pa.Array, kind: SqlType) -> pa.Array:
    """`array` in the SQL type's Arrow form; an inexact cast is a ConversionError."""
    if kind.kind == "ENUM":
        return _enum_places(array, kind)
    if kind.kind == "UUID":
        return uuids_of(array.dictionary_decode() if pa.types.is_dictionary(array.type) else array)
    if array.type == kind.arrow or (kind.kind == "INTERVAL" and pa.types.is_duration(array.type)):
        return array
    if pa.types.is_dictionary(array.type):
        array = _without_wrappers(array.dictionary_decode())
    try:
        return array.cast(kind.arrow)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ConversionError(f"a value of Arrow type {array.type} does not fit {kind}: {error}") from error


def _enum_places(array: pa.Array, kind: SqlType) -> pa.Array:
    """Texts, which may be a dictionary, as the places that they have in an ENUM."""
    texts = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
    places = pc.index_in(texts.cast(pa.string()), value_set=pa.array(kind.values, pa.string()))
    if places.null_count > texts.null_count:
        wrong = texts.filter(pc.and_(places.is_null(), texts.is_valid()))[0].as_py()
        raise ConversionError(f"text is not a value of type {kind}: {str(wrong)[:80]!r}")
    return places.cast(pa.int32())


def _bits(buffer: pa.Buffer, offset: int, rows: int) -> np.ndarray:
    """(rows,) uint8 0/1 from Arrow's bits."""
    first = offset // 8
    data = np.frombuffer(buffer, dtype=np.uint8)[first:]
    shift = offset - 8 * first
    return np.unpackbits(data, count=shift + rows, bitorder="little")[shift:]


def _present(array: pa.Array) -> np.ndarray | None:
    """(rows,) bool, or None when nothing is NULL."""
    if array.null_count == 0:
        return None
    return _bits(array.buffers()[0], array.offset, len(array)).view(np.bool_)


def _fixed_width_values(array: pa.Array, kind: SqlType) -> Plain:
    present, rows = _present(array), len(array)
    buffer = array.buffers()[1]
    if kind.kind == "BOOLEAN":
        return _bits(buffer, array.offset, rows), present
    if kind.kind == "INTERVAL":
        return from_arrow(array).view(WIDE), present
    if kind.kind == "UUID":
        return words_of(array).copy().view(WIDE), present
    if kind.kind in ("HUGEINT", "DECIMAL"):
        wide = np.frombuffer(buffer, WIDE, rows, array.offset * WIDE.itemsize)
        low = wide["low"].view(np.int64)
        misfit = wide["high"] != low >> 63
        if present is not None:
            misfit &= present
        return wide if misfit.any() else np.ascontiguousarray(low), present
    dtype = np.dtype(_native_dtype(kind))  # the buffer of a foreign array may end in the middle of a value that is none
    values = np.frombuffer(buffer, dtype, rows, array.offset * dtype.itemsize)
    if kind.kind == "UBIGINT":
        return _unsigned_values(values, present), present
    return values, present


def _unsigned_values(values: np.ndarray, present: np.ndarray | None) -> np.ndarray:
    """(rows,) uint64 as int64 where all that are present fit, else WIDE."""
    if present is not None:
        values = np.where(present, values, np.uint64(0))
    signed = values.view(np.int64)
    if not len(values) or int(signed.min()) >= 0:
        return signed
    wide = np.zeros(len(values), WIDE)
    wide["low"] = values
    return wide


def _text_values(chunks: list[pa.Array], dictionary: Dictionary) -> tuple[Plain, Dictionary]:
    """Codes by Arrow's hash over the rows, then by our stored hashes over the distinct texts."""
    pieces: list[Plain] = []
    encoded: pa.ChunkedArray | None = None
    if chunks and not any(pa.types.is_dictionary(chunk.type) for chunk in chunks):
        chunks = [chunk if pa.types.is_string(chunk.type) else _string(chunk) for chunk in chunks]
        encoded = pa.chunked_array(chunks).dictionary_encode()  # one dictionary for all its chunks
        chunks = encoded.chunks
    key: object = None
    translation = np.zeros(0, dtype=np.int32)
    for chunk in chunks:
        if not pa.types.is_dictionary(chunk.type):
            chunk = _string(chunk).dictionary_encode()
        entries = chunk.dictionary
        its_key = encoded is not None or _address(entries)
        if its_key != key:  # neighbours mostly share one dictionary
            translation, dictionary = _translate(entries, dictionary, distinct=encoded is not None)
            key = its_key
        pieces.append(_codes(chunk.indices, translation))
    return concatenate(pieces, types.VARCHAR), dictionary


def _address(array: pa.Array) -> tuple[int, ...]:
    """Where an array's values lie: equal for two views of the same rows of one memory."""
    return (array.offset, len(array), *(0 if buffer is None else buffer.address for buffer in array.buffers()))


def _string(array: pa.Array) -> pa.Array:
    """Any array of texts as pa.string()."""
    if pa.types.is_string(array.type):
        return array
    try:
        return array.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ConversionError(f"a value of Arrow type {array.type} does not fit VARCHAR: {error}") from error


def _translate(texts: pa.Array, dictionary: Dictionary, distinct: bool) -> tuple[np.ndarray, Dictionary]:
    """((n,) int32 our code of each entry of a foreign dictionary, -1 for NULL; our dictionary with the new texts)."""
    texts = _string(texts)
    hashes = None if texts.null_count else hash_texts(*text_buffers(texts))
    if not distinct and (
        hashes is None or has_duplicates(hashes)
    ):  # NULLs and duplicates, as others' dictionaries may hold
        inner = texts.dictionary_encode()
        codes, dictionary = _translate(inner.dictionary, dictionary, distinct=True)
        values, present = _codes(inner.indices, codes)
        return (values if present is None else np.where(present, values, np.int32(-1))), dictionary
    if len(dictionary) == 0:  # the first texts get their codes in order, so that the codes are ranks
        order = text_order(*text_buffers(texts))
        dictionary, codes = dictionary.extend(texts.take(pa.array(order)), None if hashes is None else hashes[order])
        restored = np.empty(len(codes), dtype=np.int32)
        restored[order] = codes
        return restored, dictionary.with_sorted_count()
    try:
        dictionary, codes = dictionary.extend(texts, hashes)
    except OverflowError as error:
        raise NotSupportedError(str(error)) from error
    return codes, dictionary


def _codes(indices: pa.Array, translation: np.ndarray) -> Plain:
    """((rows,) int32 our codes, present) from a foreign dictionary's indices."""
    present, rows = _present(indices), len(indices)
    if len(translation) == 0:
        return np.zeros(rows, dtype=np.int32), np.zeros(rows, dtype=np.bool_)
    dtype = np.dtype(indices.type.to_pandas_dtype())
    values = np.frombuffer(indices.buffers()[1], dtype, rows, indices.offset * dtype.itemsize)
    if present is not None:
        values = np.where(present, values, values.dtype.type(0))  # what lies under NULL may point anywhere
    codes = translation[values]
    if len(translation) and translation.min() < 0:
        named = codes >= 0
        present = named if present is None else present & named
    return codes, present


def _texts(codes: np.ndarray, validity: pa.Buffer | None, dictionary: Dictionary) -> pa.ChunkedArray:
    """Plain strings of codes; halved where they exceed Arrow's 32-bit offsets."""
    indices = pa.Array.from_buffers(pa.int32(), len(codes), [validity, pa.py_buffer(codes)])
    if len(dictionary) == 0:
        return pa.chunked_array([pa.nulls(len(codes), pa.string())], type=pa.string())
    pieces = [indices]
    lengths = np.diff(dictionary.offsets)
    if int(lengths.max()) * len(codes) >= 1 << 31:
        pieces = []
        totals = np.cumsum(lengths[codes], dtype=np.int64)
        start = 0
        while start < len(codes):
            base = int(totals[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(totals, base + (1 << 31) - 1)))
            pieces.append(indices.slice(start, stop - start))
            start = stop
    return pa.chunked_array([dictionary.values.take(piece) for piece in pieces], type=pa.string())
