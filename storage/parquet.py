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

BATCH_ROWS = 65_536
_COMPRESSIONS = ("snappy", "zstd", "gzip", "lz4", "brotli", "none", "uncompressed")


def _open(path: str) -> pq.ParquetFile:
    try:
        # without pre-buffering a row group's chunks are read as they are decoded: memory stays bounded
        return pq.ParquetFile(path, memory_map=False, pre_buffer=False, buffer_size=1 << 20)
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
                total, done = max(1, file.metadata.num_rows), 0
                for batch in self._file_batches(file, wanted, path):
                    done += batch.num_rows
                    yield from convert_batch(batch, wanted, schema, path, BATCH_ROWS)
                    if progress is not None:
                        progress(before + size * done // total)
            before += size

    def _file_batches(
        self, file: pq.ParquetFile, wanted: Sequence[ColumnMapping], path: str
    ) -> Iterator[pa.RecordBatch]:
        """Batches with the wanted columns in the wanted order."""
        names = [mapping.file_name for mapping in wanted]
        try:
            for batch in file.iter_batches(BATCH_ROWS, columns=list(dict.fromkeys(names)), use_threads=True):
                positions = {name: i for i, name in enumerate(batch.schema.names)}
                yield batch.select([positions[name] for name in names])
        except (pa.ArrowException, OSError, ValueError):
            raise InputError(f"the Parquet data are damaged or cut off: {path}") from None


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
