"""BLOB: bytes, which the engine holds as texts of as many characters, one from U+0000 to U+00FF a byte.

Texts compare as their code points do, and so do those bytes: dictionaries, order and grouping need nothing new.  Arrow's
binary is what comes in and goes out; SQL writes bytes that are no plain letters as \xaa.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import gpudb.functions.text  # noqa: F401 - first, as its functions get overloads here
from gpudb import compute
from gpudb.errors import ConversionError
from gpudb.functions.registry import text
from gpudb.functions.rows import per_row
from gpudb.types import VARCHAR

_PLAIN = frozenset(map(chr, range(32, 127))) - set("\\'\"")
_HEX = frozenset("0123456789abcdefABCDEF")


def spelled(values: pa.Array) -> pa.StringArray:
    """(rows,) string: the characters of an Arrow array of bytes; NULLs stay."""
    values = values.cast(pa.binary())
    offsets, data = _parts(values)
    high = data >= 0x80  # two bytes of UTF-8: 110000xx 10xxxxxx
    wide = np.repeat(data, 1 + high)
    place = np.cumsum(1 + high) - 1  # of each character's last byte
    wide[place[high]] = 0x80 | data[high] & 0x3F
    wide[place[high] - 1] = 0xC0 | data[high] >> 6
    return _array(pa.string(), values, offsets, np.concatenate([[0], np.cumsum(1 + high)]), wide)


def to_arrow(texts: pa.StringArray) -> pa.BinaryArray:
    """(rows,) binary: the inverse of `spelled`."""
    offsets, data = _parts(texts)
    leads = data >= 0xC0
    narrow = data.copy()
    narrow[:-1][leads[:-1]] = data[:-1][leads[:-1]] << 6 | data[1:][leads[:-1]] & 0x3F
    kept = (data < 0x80) | leads
    return _array(pa.binary(), texts, offsets, np.concatenate([[0], np.cumsum(kept)]), narrow[kept])


def _parts(values: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """(offsets from 0, bytes between the first and the last) of an Arrow array of texts or bytes."""
    if len(values) == 0:
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    offsets = np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, values.offset * 4).astype(np.int64)
    data = values.buffers()[2]
    found = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
    return offsets - offsets[0], found


def _array(kind: pa.DataType, like: pa.Array, offsets: np.ndarray, places: np.ndarray, data: np.ndarray) -> Any:
    """An array whose bytes are `data`, where byte k of the old ones is at places[k], NULL where `like` is."""
    valid = None
    if like.null_count:
        valid = pa.py_buffer(np.packbits(np.asarray(compute.is_valid(like)), bitorder="little"))
    buffers = [valid, pa.py_buffer(places[offsets].astype(np.int32)), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(kind, len(like), buffers, like.null_count)


def print_blob(value: str) -> str:
    r"""Bytes as SQL shows them.

    >>> print_blob("a\xaa'")
    'a\\xAA\\x27'
    """
    return "".join(c if c in _PLAIN else f"\\x{ord(c):02X}" for c in value)


def parse_blob(value: str) -> str | None:
    r"""Bytes of a text in which \xAA stands for a byte; None where another character is not ASCII, or an escape is none.

    >>> parse_blob(r"a\xAA"), parse_blob(r"a\xA"), parse_blob("ü")
    ('aª', None, None)
    """
    if not value.isascii():
        return None
    pieces = value.split("\\")
    for place, piece in enumerate(pieces[1:], 1):
        if piece[:1] != "x" or len(piece) < 3 or not set(piece[1:3]) <= _HEX:
            return None
        pieces[place] = chr(int(piece[1:3], 16)) + piece[3:]
    return "".join(pieces)


def blob_texts(values: pa.Array) -> pa.Array:
    """(rows,) string: an Arrow array of bytes as SQL shows it."""
    return pa.array([None if v is None else print_blob(v.decode("latin-1")) for v in values.to_pylist()], pa.string())


def _bytes(value: str) -> bytes:
    return value.encode("latin-1")


def _checked(parse: Callable[[str], str | None], what: str) -> Callable[[str], str]:
    def one(value: str) -> str:
        found = parse(value)
        if found is None:
            raise ConversionError(f"{what}: {value[:80]!r}")
        return found

    return one


@text("BLOB -> VARCHAR")
def blob_text(value: pa.Array) -> pa.Array:
    r"""Bytes as text, those that are no plain letters as \xAA; what a cast to VARCHAR is.

    >>> sql("SELECT blob_text('a\xAA'::BLOB)")
    a\xAA
    """
    return per_row(print_blob, VARCHAR, value)


@text("VARCHAR -> BLOB")
def blob_of(value: pa.Array) -> pa.Array:
    r"""A text as bytes; what a cast of VARCHAR is.

    >>> sql("SELECT octet_length(blob_of('a\xAA'))")
    2
    """
    return pa.array(
        [_checked(parse_blob, "text is not a value of type BLOB")(v) for v in value.to_pylist()], pa.string()
    )


@text("VARCHAR -> BLOB")
def try_blob_of(value: pa.Array) -> pa.Array:
    r"""As blob_of; NULL where the text is none.

    >>> sql("SELECT octet_length(try_blob_of('\xA'))")
    NULL
    """
    return pa.array([parse_blob(v) for v in value.to_pylist()], pa.string())


@text("BLOB -> BIGINT")
def octet_length(blob: pa.Array) -> pa.Array:
    r"""Number of bytes.

    >>> sql("SELECT octet_length('\xAA\xBB'::BLOB)")
    2
    """
    return compute.utf8_length(blob).cast(pa.int64())


@text("VARCHAR -> BLOB")
def encode(string: pa.Array) -> pa.Array:
    """The bytes of a text in UTF-8.

    >>> sql("SELECT octet_length(encode('é'))")
    2
    """
    return spelled(string.cast(pa.binary()))


@text("BLOB -> VARCHAR")
def decode(blob: pa.Array) -> pa.Array:
    r"""The text whose bytes in UTF-8 these are.  Fails where they are of none.

    >>> sql("SELECT decode('\xC3\xA9'::BLOB)")
    é
    """

    def one(value: str) -> str:
        try:
            return _bytes(value).decode()
        except UnicodeDecodeError:
            raise ConversionError(f"bytes are not valid UTF-8: {print_blob(value[:40])}") from None

    return per_row(one, VARCHAR, blob)


@text("BLOB -> VARCHAR", name="hex", more=True)
def _hex(blob: pa.Array) -> pa.Array:
    return per_row(lambda value: _bytes(value).hex().upper(), VARCHAR, blob)


def _unhexed(value: str) -> str | None:
    try:
        return binascii.unhexlify(value.zfill(len(value) + len(value) % 2)).decode("latin-1")
    except (binascii.Error, ValueError):
        return None


@text("VARCHAR -> BLOB", aliases=("from_hex",))
def unhex(string: pa.Array) -> pa.Array:
    """The bytes of hexadecimal digits.

    >>> sql("SELECT octet_length(unhex('AA62'))")
    2
    """
    return pa.array([_checked(_unhexed, "text is not hexadecimal")(v) for v in string.to_pylist()], pa.string())


@text("BLOB -> VARCHAR", name="base64", aliases=("to_base64",))
def _base64(blob: pa.Array) -> pa.Array:
    r"""Bytes in base 64.

    >>> sql("SELECT base64('\xAAb'::BLOB)")
    qmI=
    """
    return per_row(lambda value: base64.b64encode(_bytes(value)).decode(), VARCHAR, blob)


def _unbased(value: str) -> str | None:
    try:
        return base64.b64decode(value, validate=True).decode("latin-1")
    except (binascii.Error, ValueError):
        return None


@text("VARCHAR -> BLOB")
def from_base64(string: pa.Array) -> pa.Array:
    """The bytes of a text in base 64.

    >>> sql("SELECT octet_length(from_base64('qmI='))")
    2
    """
    return pa.array([_checked(_unbased, "text is not in base 64")(v) for v in string.to_pylist()], pa.string())


@text("BLOB -> VARCHAR", name="md5", more=True)
def _md5(blob: pa.Array) -> pa.Array:
    return per_row(lambda value: hashlib.md5(_bytes(value), usedforsecurity=False).hexdigest(), VARCHAR, blob)


@text("BLOB -> VARCHAR", name="sha256", more=True)
def _sha256(blob: pa.Array) -> pa.Array:
    return per_row(lambda value: hashlib.sha256(_bytes(value)).hexdigest(), VARCHAR, blob)
