"""Arrow IPC files and streams as relations, and relations as Arrow IPC files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from gpudb.errors import BindError, InputError, NotSupportedError
from gpudb.storage.arrow_columns import ColumnMapping, convert_batch, map_columns, map_like
from gpudb.storage.file_relation import FileRelation, RejectedRows
from gpudb.types import SqlType

BATCH_ROWS = 131_072


def _open(path: str, columns: Sequence[int] | None = None) -> tuple[Any, bool]:
    """(reader, whether it is a file rather than a stream); only `columns` are decoded."""
    options = pa.ipc.IpcReadOptions(included_fields=list(columns) if columns is not None else None)
    try:
        source = pa.OSFile(path, "rb")  # not mapped: pages of a map count as this process's memory
        if source.read(6) == b"ARROW1":
            return pa.ipc.open_file(source, options=options), True
        source.seek(0)
        return pa.ipc.open_stream(source, options=options), False
    except (pa.ArrowException, OSError, ValueError):
        raise InputError(f"the file is not a complete Arrow IPC file or stream: {path}") from None


class IpcRelation(FileRelation):
    """Arrow IPC files or streams that share the columns of the first one."""

    def __init__(self, paths: Sequence[str], target: tuple[tuple[str, SqlType], ...] | None = None) -> None:
        self.rejected = RejectedRows()
        self.total_bytes = sum(os.path.getsize(path) for path in paths)
        self._mappings: list[tuple[str, list[ColumnMapping]]] = []
        for path in paths:
            mapping = map_columns(_open(path)[0].schema, path)
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
            for batch, share in self._file_batches(path, [mapping[i] for i in chosen]):
                yield from convert_batch(batch, [mapping[i] for i in chosen], schema, path, BATCH_ROWS)
                if progress is not None:
                    progress(before + int(share * os.path.getsize(path)))
            before += os.path.getsize(path)

    def _file_batches(self, path: str, chosen: Sequence[ColumnMapping]) -> Iterator[tuple[pa.RecordBatch, float]]:
        """(batch, share of the file read so far); the batch's columns are those of `chosen`, in that order."""
        positions = [mapping.position for mapping in chosen]
        for mapping in chosen:
            mapping.check_readable()
        wanted = sorted(set(positions))
        reader, is_file = _open(path, wanted)
        order = [wanted.index(position) for position in positions]
        try:
            if is_file:
                for i in range(reader.num_record_batches):
                    batch = reader.get_batch(i)
                    batch.validate()
                    yield batch.select(order), (i + 1) / reader.num_record_batches
            else:
                for batch in reader:
                    batch.validate()
                    yield batch.select(order), 0.0
        except (pa.ArrowException, OSError, ValueError):
            raise InputError(f"the Arrow IPC data are damaged or cut off: {path}") from None


class IpcWriter:
    """Writes batches as an Arrow IPC file.  Option: compression (lz4, zstd, none)."""

    def __init__(self, sink: pa.NativeFile, schema: pa.Schema, options: Mapping[str, object], path: str) -> None:
        compression = str(options.get("compression", "none")).lower()
        ipc_options = pa.ipc.IpcWriteOptions(
            compression=None if compression in ("none", "uncompressed") else compression
        )
        self._writer = pa.ipc.new_file(sink, schema, options=ipc_options)

    @staticmethod
    def check_options(options: Mapping[str, object]) -> None:
        """Raise BindError or NotSupportedError for an option that cannot be honoured."""
        for name in options:
            if name != "compression":
                raise BindError(f"unknown option for writing Arrow files: {name}", hint="known: compression")
        if str(options.get("compression", "none")).lower() not in ("none", "uncompressed", "lz4", "zstd"):
            raise NotSupportedError(f"Arrow compression is not supported: {options['compression']}")

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()
