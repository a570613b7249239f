"""UUID values: their text and bytes, and the 128 bits that registers and columns hold.

The bits are the number that the 32 hexadecimal digits write, less 2**127: so signed numbers compare as the texts do.  Arrow has
them as texts, as DuckDB gives them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpudb.errors import ConversionError
from gpudb.types import UUID

_HALF = 1 << 127
_LENGTH = 36  # characters
_DIGITS = np.array([place for place in range(_LENGTH) if place not in (8, 13, 18, 23)])
_HYPHENS = np.array([8, 13, 18, 23])
_PRINTED = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), np.uint8).reshape(256, 2)
_NO_DIGIT = 255
_VALUES = np.full(256, _NO_DIGIT, np.uint8)
_VALUES[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)
_VALUES[np.frombuffer(b"ABCDEF", np.uint8)] = np.arange(10, 16)


def parse_uuid(text: str) -> int | None:
    """The bits of 32 hexadecimal digits, hyphens anywhere among them, in braces or not; None where it is no UUID.

    >>> parse_uuid("{80000000-0000-0000-0000-000000000007}"), parse_uuid("8")
    (7, None)
    """
    if text[:1] == "{":
        if text[-1:] != "}":
            return None
        text = text[1:-1]
    digits = text.replace("-", "")
    if len(digits) != 32 or not digits.isascii() or not digits.isalnum():
        return None
    try:
        return int(digits, 16) - _HALF
    except ValueError:
        return None


def print_uuid(bits: int) -> str:
    """The usual text, in small letters.

    >>> print_uuid(7)
    '80000000-0000-0000-0000-000000000007'
    """
    text = f"{bits + _HALF:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def uuid_bytes(bits: int) -> str:
    """The 16 bytes, the highest first, as a BLOB is spelled: a character a byte."""
    return (bits + _HALF).to_bytes(16, "big").decode("latin-1")


def uuid_of_bytes(blob: str) -> int:
    """The inverse of `uuid_bytes`.  Raises ConversionError where there are not 16 bytes."""
    if len(blob) != 16:
        raise ConversionError(f"a UUID has 16 bytes, a BLOB of {len(blob)} is none")
    return int.from_bytes(blob.encode("latin-1"), "big") - _HALF


def parse_uuids(texts: pa.Array) -> pa.Array | None:
    """(rows,) bits of texts, NULL of NULL; None where one is spelled otherwise than the usual 36 characters."""
    given = texts.drop_null() if texts.null_count else texts
    count = len(given)
    if count == 0:
        return None
    offsets = np.frombuffer(given.buffers()[1], np.int32, count + 1, given.offset * 4)
    if (np.diff(offsets) != _LENGTH).any():
        return None
    characters = np.frombuffer(given.buffers()[2], np.uint8)[offsets[0] : offsets[-1]].reshape(count, _LENGTH)
    nibbles = _VALUES[characters[:, _DIGITS]]
    if (nibbles == _NO_DIGIT).any() or (characters[:, _HYPHENS] != ord("-")).any():
        return None
    found = (nibbles[:, ::2] << 4 | nibbles[:, 1::2]).astype(np.uint8, copy=False)
    if not texts.null_count:
        return _of_bytes(found, None)
    present = np.asarray(texts.is_valid())
    spread = np.zeros((len(texts), 16), np.uint8)
    spread[present] = found
    return _of_bytes(spread, present)


def print_uuids(bits: pa.Array) -> pa.StringArray:
    """(rows,) string of an Arrow array of bits; NULLs stay."""
    count = len(bits)
    assert count * _LENGTH < 1 << 31, "more texts than one array of strings can hold"
    if count == 0:
        return pa.array([], pa.string())
    words = np.frombuffer(bits.buffers()[1], np.uint8)[16 * bits.offset : 16 * (bits.offset + count)]
    digits = words.reshape(count, 16)[:, ::-1].copy()
    digits[:, 0] ^= 0x80
    characters = np.full((count, _LENGTH), ord("-"), np.uint8)
    characters[:, _DIGITS] = _PRINTED[digits].reshape(count, 32)
    lengths = np.full(count, _LENGTH, np.int64)
    valid = None
    if bits.null_count:
        present = np.asarray(bits.is_valid())
        valid = pa.py_buffer(np.packbits(present, bitorder="little"))
        characters, lengths = characters[present], np.where(present, _LENGTH, 0)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(characters))]
    return pa.Array.from_buffers(pa.string(), count, buffers, bits.null_count)


def uuids_of(array: pa.Array) -> pa.Array:
    """(rows,) bits of an Arrow array of texts, or of 16 bytes each.  Raises ConversionError where a value is no UUID."""
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), UUID.entries)
    if pa.types.is_fixed_size_binary(array.type) and array.type.byte_width == 16:
        raw = np.frombuffer(array.buffers()[1], np.uint8)[16 * array.offset : 16 * (array.offset + len(array))]
        return _of_bytes(raw.reshape(len(array), 16), np.asarray(array.is_valid()) if array.null_count else None)
    if not (
        pa.types.is_string(array.type) or pa.types.is_large_string(array.type) or pa.types.is_string_view(array.type)
    ):
        raise ConversionError(f"a value of Arrow type {array.type} does not fit {UUID}")
    texts = array.cast(pa.string())
    found = parse_uuids(texts)
    if found is not None:
        return found
    bits = [None if text is None else _checked(text) for text in texts.to_pylist()]
    data = b"".join((0 if value is None else value).to_bytes(16, "little", signed=True) for value in bits)
    valid = np.packbits([value is not None for value in bits], bitorder="little")
    return pa.Array.from_buffers(UUID.entries, len(bits), [pa.py_buffer(valid), pa.py_buffer(data)])


def _checked(text: str) -> int:
    found = parse_uuid(text)
    if found is None:
        raise ConversionError(f"text is not a value of type {UUID}: {text[:80]!r}")
    return found


def _of_bytes(raw: npt.NDArray[np.uint8], present: npt.NDArray[np.bool_] | None) -> pa.Array:
    """(rows,) bits of (rows, 16) bytes, the highest first; NULL where not present."""
    data = raw[:, ::-1].copy()
    data[:, 15] ^= 0x80
    valid = None
    if present is not None:
        data[~present] = 0
        valid = pa.py_buffer(np.packbits(present, bitorder="little"))
    return pa.Array.from_buffers(UUID.entries, len(raw), [valid, pa.py_buffer(data)])
