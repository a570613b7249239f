"""Parquet files as relations, and relations as Parquet files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from gpudb.errors import BindError, InputError, NotSupportedError
from gpudb.storage.arrow_columns import ColumnMapping, convert_batch, map_columns, map_like
from gpudb.storage.csv_dialect import option_number
from gpudb.storage.file_relation import FileRelation, RejectedRows
from gpudb.types import SqlType

MOST_BATCH_ROWS = 1 << 19  # large batches halve the cost of taking text over into a table
MOST_BATCH_BYTES = 32 << 20
_COMPRESSIONS = ("snappy", "zstd", "gzip", "lz4", "brotli", "none", "uncompressed")


def _open(path: str, dictionaries: Sequence[str] = ()) -> pq.ParquetFile:
    try:
        # without pre-buffering a row group's chunks are read as they are decoded: memory stays bounded
        return pq.ParquetFile(
            path, read_dictionary=list(dictionaries), memory_map=False, pre_buffer=False, buffer_size=1 << 20
        )
    except (pa.ArrowException, OSError, ValueError):
        raise InputError(f"the file is not a complete Parquet file: {path}") from None


class ParquetRelation(FileRelation):
    """Parquet files that share the columns of the first one; only the columns asked for are read."""

    def __init__(self, paths: Sequence[str], target: tuple[tuple[str, SqlType], ...] | None = None) -> None:
        self.rejected = RejectedRows()
        self.total_bytes = sum(os.path.getsize(path) for path in paths)
        self._mappings: list[tuple[str, list[ColumnMapping]]] = []
        for path in paths:
            with _open(path) as file:
                try:
                    schema = file.schema_arrow
                except (pa.ArrowException, ValueError):
                    raise InputError(f"the Parquet file's schema is damaged: {path}") from None
            mapping = map_columns(schema, path)
            if self._mappings or target is not None:
                mapping = map_like(mapping, target or self.columns, path, by_name=target is None)
            self._mappings.append((path, mapping))
            self.columns = target or tuple((m.name, m.sql_type) for m in self._mappings[0][1])

    def batches(
        self, columns: Sequence[int] | None = None, progress: Callable[[int], None] | None = None
    ) -> Iterator[pa.RecordBatch]:
        chosen = list(range(len(self.columns)) if columns is None else columns)
        assert chosen, "at least one column is read"
        schema = self.schema(chosen)
        before = 0
        for path, mapping in self._mappings:
            size = os.path.getsize(path)
            wanted = [mapping[i] for i in chosen]
            for mapped in wanted:
                mapped.check_readable()
            with _open(path) as file:
                metadata = file.metadata
            with _open(path, _dictionary_columns(metadata, wanted)) as file:
                total, done = max(1, metadata.num_rows), 0
                for batch in self._file_batches(file, wanted, path):
                    done += batch.num_rows
                    yield from convert_batch(batch, wanted, schema, path, MOST_BATCH_ROWS)
                    if progress is not None:
                        progress(before + size * done // total)
            before += size

    def _file_batches(
        self, file: pq.ParquetFile, wanted: Sequence[ColumnMapping], path: str
    ) -> Iterator[pa.RecordBatch]:
        """Batches with the wanted columns in the wanted order."""
        names = [mapping.file_name for mapping in wanted]
        try:
            rows = _batch_rows(file.metadata, len(names))
            for batch in file.iter_batches(rows, columns=list(dict.fromkeys(names)), use_threads=True):
                positions = {name: i for i, name in enumerate(batch.schema.names)}
                yield batch.select([positions[name] for name in names])
        except (pa.ArrowException, OSError, ValueError):
            raise InputError(f"the Parquet data are damaged or cut off: {path}") from None


def _batch_rows(metadata: pq.FileMetaData, columns: int) -> int:
    """Rows of a batch that stays within MOST_BATCH_BYTES, judged by the file's own sizes."""
    encoded = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    row_bytes = max(8 * columns, encoded // max(1, metadata.num_rows))
    return max(1024, min(MOST_BATCH_ROWS, MOST_BATCH_BYTES // row_bytes))


def _dictionary_columns(metadata: pq.FileMetaData, wanted: Sequence[ColumnMapping]) -> list[str]:
    """Text columns whose pages hold dictionary codes: read as such, each distinct text is decoded once."""
    if metadata.num_row_groups == 0:
        return []
    row_group = metadata.row_group(0)
    coded = {
        row_group.column(i).path_in_schema
        for i in range(row_group.num_columns)
        if "RLE_DICTIONARY" in row_group.column(i).encodings or "PLAIN_DICTIONARY" in row_group.column(i).encodings
    }
    return [m.file_name for m in wanted if m.sql_type.is_text and m.file_name in coded and not m.is_dictionary]


class ParquetWriter:
    """Writes batches as a Parquet file.

    Options: compression (snappy by default, zstd, gzip, lz4, brotli, none), compression_level, row_group_size (rows,
    122,880 by default).
    """

    def __init__(self, sink: pa.NativeFile, schema: pa.Schema, options: Mapping[str, object], path: str) -> None:
        for field in schema:
            if pa.types.is_interval(field.type):
                raise NotSupportedError(f"an INTERVAL column cannot be written to Parquet: {field.name}")
        level = options.get("compression_level")
        self._rows = option_number("row_group_size", options.get("row_group_size", 122_880), 1)
        self._schema = schema
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        self._writer = pq.ParquetWriter(
            sink,
            schema,
            compression=str(options.get("compression", "snappy")).lower().replace("uncompressed", "none"),
            compression_level=None if level is None else option_number("compression_level", level, -100),
        )

    @staticmethod
    def check_options(options: Mapping[str, object]) -> None:
        """Raise BindError or NotSupportedError for an option that cannot be honoured."""
        known = ("compression", "compression_level", "row_group_size")
        for name in options:
            if name not in known:
                raise BindError(f"unknown option for writing Parquet: {name}", hint="known: " + ", ".join(known))
        if str(options.get("compression", "snappy")).lower() not in _COMPRESSIONS:
            raise NotSupportedError(f"Parquet compression is not supported: {options['compression']}")

    def write(self, batch: pa.RecordBatch) -> None:
        self._pending.append(batch)
        self._pending_rows += batch.num_rows
        if self._pending_rows >= self._rows:
            self._flush(keep=self._pending_rows % self._rows)

    def _flush(self, keep: int) -> None:
        """Write the pending rows as row groups, all but the last `keep`."""
        table = pa.Table.from_batches(self._pending, self._schema)
        ready = table.slice(0, table.num_rows - keep)
        self._pending = table.slice(table.num_rows - keep).to_batches() if keep else []
        self._pending_rows = keep
        if ready.num_rows:
            self._writer.write_table(ready, row_group_size=self._rows)

    def close(self) -> None:
        """Write the remaining rows and the footer."""
        self._flush(keep=0)
        self._writer.close()
