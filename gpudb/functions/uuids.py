"""Functions of UUIDs: random ones by row, the moment in one of version 7, and bytes (`gpudb.functions.uuid_values`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from gpudb.errors import ConversionError
from gpudb.functions.interval_values import words_of
from gpudb.functions.registry import scalar, text, typed_macro
from gpudb.functions.uuid_values import uuid_bytes, uuid_of_bytes
from gpudb.types import UUID

Array = Any
_WORD = (1 << 64) - 1
_VERSION = ~(0xF << 76) & (1 << 128) - 1
_VARIANT = ~(3 << 62) & (1 << 128) - 1


def mixed(word: int) -> int:
    """64 bits of which each depends on each of `word`: the finaliser of SplitMix64."""
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    word = (word ^ word >> 27) * 0x94D049BB133111EB & _WORD
    return word ^ word >> 31


@scalar("HUGEINT, BIGINT -> UUID", cpp="random_uuid(seed, number)")
def random_uuid(seed: Array, number: Array) -> Array:
    """The UUID of version 4 that a seed of 128 bits has for the row of a number: what uuid() gives to rows.

    >>> sql("SELECT random_uuid(1, 2)")
    648769c2-fb86-4c45-97f0-30fc3e74beda
    """
    seed, number = np.broadcast_arrays(np.asarray(seed, object), np.asarray(number, object))
    found = np.empty(seed.size, object)
    for row, (key, place) in enumerate(zip(seed.reshape(-1), number.reshape(-1), strict=True)):
        low = mixed(mixed(int(key) + int(place) & _WORD) + (int(key) >> 64) & _WORD)
        high = mixed(mixed((int(key) >> 64) + int(place) & _WORD) + low & _WORD)
        bits = (high << 64 | low) & _VERSION & _VARIANT | 4 << 76 | 2 << 62
        found[row] = bits - (1 << 127)
    return found.reshape(seed.shape)


@scalar("UUID -> UINTEGER", cpp="uuid_version(x)", bounds=(0, 15))
def uuid_extract_version(x: Array) -> Array:
    """The version of a UUID: 4 of a random one.

    >>> sql("SELECT uuid_extract_version('01956ed1-23b4-7a2b-b1b0-3a3a3a3a3a3a')")
    7
    """
    bits = np.asarray(x, object)
    return np.array([int(one) >> 76 & 0xF for one in bits.reshape(-1)], np.int64).reshape(bits.shape)


def _is_seven(x: Array) -> Array:
    return np.vectorize(lambda bits: int(bits) >> 76 & 0xF == 7, otypes=[np.bool_])(np.asarray(x, object))


@scalar(
    "UUID -> BIGINT",
    cpp="uuid_milliseconds(x)",
    domain=("uuid_version(x) == 7", _is_seven, "the UUID is not of version 7"),
    bounds=(0, (1 << 48) - 1),
)
def uuid_milliseconds(x: Array) -> Array:
    """Milliseconds since 1970-01-01 in a UUID of version 7.  Fails for others.

    >>> sql("SELECT uuid_milliseconds('01956ed1-23b4-7a2b-b1b0-3a3a3a3a3a3a')")
    1741320954804
    """
    bits = np.asarray(x, object)
    found = np.array([(int(one) + (1 << 127)) >> 80 for one in bits.reshape(-1)], np.int64)
    return found.reshape(bits.shape)


typed_macro(
    "uuid_extract_timestamp",
    "UUID -> TIMESTAMPTZ",
    "x",
    "make_timestamptz(uuid_milliseconds(x) * 1000)",
    """The moment in a UUID of version 7.  Fails for others.

    >>> sql("SELECT uuid_extract_timestamp('01956ed1-23b4-7a2b-b1b0-3a3a3a3a3a3a')::TIMESTAMP")
    2025-03-07 04:15:54.804
    """,
)


@text("UUID -> BLOB")
def blob_of_uuid(x: pa.Array) -> pa.Array:
    r"""The 16 bytes, the highest first; what a cast of UUID to BLOB is.

    >>> sql("SELECT octet_length(blob_of_uuid('80000000-0000-0000-0000-000000000007'))")
    16
    """
    words = words_of(x).reshape(-1, 2).tolist()
    return pa.array([uuid_bytes(high << 64 | low & _WORD) for low, high in words], pa.string())


def _uuids(blobs: pa.Array, try_: bool) -> pa.Array:
    found: list[int | None] = []
    for blob in blobs.to_pylist():
        try:
            found.append(uuid_of_bytes(blob))
        except ConversionError:
            if not try_:
                raise
            found.append(None)
    data = b"".join((value or 0).to_bytes(16, "little", signed=True) for value in found)
    valid = np.packbits([value is not None for value in found], bitorder="little")
    return pa.Array.from_buffers(UUID.entries, len(found), [pa.py_buffer(valid), pa.py_buffer(data)])


@text("BLOB -> UUID")
def uuid_of_blob(blob: pa.Array) -> pa.Array:
    r"""16 bytes as a UUID; what a cast of BLOB is.

    >>> sql("SELECT uuid_of_blob(blob_of_uuid('80000000-0000-0000-0000-000000000007'))")
    80000000-0000-0000-0000-000000000007
    """
    return _uuids(blob, False)


@text("BLOB -> UUID")
def try_uuid_of_blob(blob: pa.Array) -> pa.Array:
    r"""As uuid_of_blob; NULL where there are not 16 bytes.

    >>> sql("SELECT try_uuid_of_blob('abc'::BLOB)")
    NULL
    """
    return _uuids(blob, True)
