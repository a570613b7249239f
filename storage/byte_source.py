"""The bytes of a text file, decompressed as they are read: plain, gzip, zstd, or the single member of a zip archive."""

from __future__ import annotations

import os
import zipfile
import zlib
from types import TracebackType
from typing import Any

import pyarrow as pa

from gpudb.errors import InputError

MAGIC_NUMBERS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"PK\x03\x04": "zip"}


def compression_of(head: bytes) -> str:
    """'gzip', 'zstd', 'zip' or 'none', from a file's first bytes."""
    return next((name for magic, name in MAGIC_NUMBERS.items() if head.startswith(magic)), "none")


class ByteSource:
    """Reads one file front to back; a context manager.

    consumed  bytes of the file on disk read so far
    Raises InputError where the compressed data are broken.
    """

    def __init__(self, path: str, compression: str = "auto", encoding: str = "utf-8") -> None:
        self.path = path
        self._encoding = encoding
        self._archive: zipfile.ZipFile | None = None
        self._raw: Any = None
        self._stream: Any
        try:
            with open(path, "rb") as file:
                found = compression_of(file.read(4))
            chosen = found if compression == "auto" else compression.replace("uncompressed", "none")
            if chosen == "zip":
                self._stream = self._open_member()
            else:
                self._raw = pa.OSFile(path, "rb")
                self._stream = self._raw if chosen == "none" else pa.CompressedInputStream(self._raw, chosen)
        except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
            raise _unreadable(path, error) from None

    def _open_member(self) -> Any:
        self._archive = zipfile.ZipFile(self.path)
        members = [member for member in self._archive.infolist() if not member.is_dir()]
        if len(members) != 1:
            self._archive.close()
            raise InputError(f"a zip archive must hold exactly one file to be read: {self.path}")
        self._raw = self._archive.fp
        return self._archive.open(members[0])

    @property
    def consumed(self) -> int:
        return int(self._raw.tell())

    def read(self, size: int) -> bytes:
        """Up to `size` bytes, fewer only at the end; b"" once there are no more."""
        pieces: list[bytes] = []
        missing = size
        try:
            while missing > 0:
                piece = self._stream.read(missing)
                if not piece:
                    break
                pieces.append(piece)
                missing -= len(piece)
        except (OSError, EOFError, pa.ArrowException, zipfile.BadZipFile, zlib.error) as error:
            raise _unreadable(self.path, error) from None
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return data if self._encoding == "utf-8" else data.decode(self._encoding).encode("utf-8")

    def close(self) -> None:
        self._stream.close()
        if self._archive is not None:
            self._archive.close()
        elif self._raw is not None:
            self._raw.close()

    def __enter__(self) -> ByteSource:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _unreadable(path: str, error: Exception) -> InputError:
    if isinstance(error, OSError) and error.errno is not None:
        return InputError(f"cannot read file: {os.strerror(error.errno)}: {path}")
    return InputError(f"the file's compressed data are broken: {path}")
