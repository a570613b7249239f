"""How lists are spelled as texts, so that all that holds for texts holds for lists: they are codes of a dictionary.

A list is its elements' spellings, end to end.  An element is "1" and its value, or "2" for NULL, which is greater than
any value.  A number's value is its order word, highest byte first, in hexadecimal digits, all of one width; a text's is
the text with an end mark (below); -0.0 is spelled as 0.0, which it equals.  So equal lists have equal spellings, and
these are in the order of the lists: an element decides before those behind it, and a list that ends is less than one
that goes on.

    [1, NULL]::TINYINT[]   "181" "200"        ['a', '']   "1a\\0" "1\\0"

The end of a text is the byte 0; a text's own bytes 0 and 1 are written as 1 2 and 1 3.  A list of lists is one of texts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from gpudb import compute as pc
from gpudb.errors import NotSupportedError
from gpudb.functions.uuid_values import print_uuids
from gpudb.types import SqlType

VALUE, NULL = ord("1"), ord("2")
LARGEST = 1 << 31  # bytes that offsets of an Arrow text reach
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
_BYTES = np.arange(256)
_HEX = np.stack([_DIGITS[_BYTES >> 4], _DIGITS[_BYTES & 15]], axis=1)  # (256, 2) of a byte
_NUMBER = np.zeros(256, np.uint8)  # of a digit
_NUMBER[_DIGITS] = np.arange(16)


def width(element: SqlType) -> int:
    """Bytes of an element's value: 0 where that varies (texts, lists).  NotSupportedError for what lists cannot hold."""
    if element.kind == "BLOB":
        raise NotSupportedError(f"a list of {element} is not supported")
    if element.is_coded:
        return 0
    kind = element.entries if element.kind == "UUID" else element.arrow
    if pa.types.is_boolean(kind):
        return 1
    if not pa.types.is_primitive(kind) and not pa.types.is_decimal(kind) or pa.types.is_interval(kind):
        raise NotSupportedError(f"a list of {element} is not supported")
    return int(kind.bit_width) // 8


def spelled(values: pa.Array, element: SqlType) -> pa.StringArray:
    """(n,) the spelling of each value as an element; a null is an element that is NULL.

    values  of `element.entries`
    """
    size = width(element)
    if size == 0:
        return _spelled_texts(values.cast(pa.string()))
    present = np.asarray(pc.is_valid(values))
    return _of_fixed(_order_bytes(values, element, size), present)


def constant(value: Any, element: SqlType) -> pa.Array:
    """A constant, as `Literal.value`, as an array of one."""
    if element.is_coded or element.is_float or element.kind == "BOOLEAN":
        return pa.array([value], element.entries)
    size = width(element)
    raw = int(value).to_bytes(size, "little", signed=not element.is_unsigned)
    return pa.Array.from_buffers(element.entries, 1, [None, pa.py_buffer(raw)])


def counts(texts: pa.StringArray, element: SqlType) -> np.ndarray:
    """(n,) int64: how many elements each list has; 0 of NULL."""
    size = width(element)
    if size == 0:
        found = pc.count_substring(texts, "\0").fill_null(0)
        return np.asarray(found).astype(np.int64)
    lengths = pc.binary_length(texts).fill_null(0)
    return np.asarray(lengths).astype(np.int64) // (1 + 2 * size)


def elements(texts: pa.StringArray, element: SqlType) -> pa.Array:
    """The elements of all lists, end to end: of `element.entries`, with a null for NULL."""
    data = _bytes(texts)
    size = width(element)
    if size == 0:
        return _texts(data)
    rows = data.reshape(-1, 1 + 2 * size)
    present = rows[:, 0] == VALUE
    digits = _NUMBER[rows[:, 1:]]
    return _of_order_bytes((digits[:, ::2] << 4) | digits[:, 1::2], element, size, present)


def lists(texts: pa.Array, sql: SqlType) -> pa.Array:
    """(n,) lists of a LIST type from their spellings; null of null."""
    child = sql.child
    assert child is not None, "a list has elements"
    offsets = np.zeros(len(texts) + 1, np.int32)
    np.cumsum(counts(texts, child), out=offsets[1:])
    inner = elements(texts, child)
    if child.kind == "LIST":
        inner = lists(inner, child)
    if child.kind == "UUID":
        inner = print_uuids(inner)
    validity = None
    if texts.null_count:
        validity = pa.py_buffer(np.packbits(np.asarray(pc.is_valid(texts)), bitorder="little"))
    buffers = [validity, pa.py_buffer(offsets)]
    return pa.Array.from_buffers(sql.arrow, len(texts), buffers, texts.null_count, children=[inner])


def joined(parts: list[pa.StringArray]) -> pa.StringArray:
    """(n,) one list of the elements of each row, which are spelled."""
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, "")


# --------------------------------------------------------------------------------------------------- numbers


def _order_bytes(values: pa.Array, element: SqlType, size: int) -> np.ndarray:
    """(n, size) uint8: the bytes of each value's order word, the highest first; anything under null."""
    if element.kind == "BOOLEAN":
        return np.asarray(values.fill_null(False)).astype(np.uint8).reshape(-1, 1)
    raw = np.frombuffer(values.buffers()[1] or b"", np.uint8)[
        values.offset * size : (values.offset + len(values)) * size
    ]
    if element.is_float:  # one NaN, and -0.0 as the 0.0 that it equals
        numbers = raw.view(element.register.dtype)
        raw = np.where(np.isnan(numbers), numbers.dtype.type(np.nan), numbers + numbers.dtype.type(0)).view(np.uint8)
    little = raw.reshape(-1, size)
    big = little[:, ::-1].copy()
    if element.is_float:
        negative = (big[:, 0] >> 7).astype(np.bool_)
        big[negative] = ~big[negative]
        big[~negative, 0] ^= 0x80
    elif not element.is_unsigned:
        big[:, 0] ^= 0x80
    return big


def _of_order_bytes(big: np.ndarray, element: SqlType, size: int, present: np.ndarray) -> pa.Array:
    rows = len(big)
    nulls = rows - int(np.count_nonzero(present))
    validity = pa.py_buffer(np.packbits(present, bitorder="little")) if nulls else None
    if element.kind == "BOOLEAN":
        data = np.packbits(big[:, 0].astype(np.bool_), bitorder="little")
    else:
        big = big.copy()
        if element.is_float:
            positive = (big[:, 0] >> 7).astype(np.bool_)
            big[~positive] = ~big[~positive]
            big[positive, 0] ^= 0x80
        elif not element.is_unsigned:
            big[:, 0] ^= 0x80
        big[~present] = 0
        data = np.ascontiguousarray(big[:, ::-1])
    return pa.Array.from_buffers(element.entries, rows, [validity, pa.py_buffer(data)], nulls)


def _of_fixed(big: np.ndarray, present: np.ndarray) -> pa.StringArray:
    rows, size = big.shape
    if rows * (1 + 2 * size) >= LARGEST:
        raise NotSupportedError("lists of more than 2 GiB are not supported")
    out = np.empty((rows, 1 + 2 * size), np.uint8)
    out[:, 0] = np.where(present, VALUE, NULL)
    out[:, 1:] = _HEX[big].reshape(rows, 2 * size)
    out[~present, 1:] = _DIGITS[0]
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(1 + 2 * size)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(out))


# --------------------------------------------------------------------------------------------------- texts


def _spelled_texts(values: pa.StringArray) -> pa.StringArray:
    for byte, written in (("\1", "\1\3"), ("\0", "\1\2")):
        if pc.any(pc.match_substring(values, byte)).as_py():
            values = pc.replace_substring(values, byte, written)
    found = pc.binary_join_element_wise("1", values, "\0", "")
    return found.fill_null("2\0") if found.null_count else found


def _texts(data: np.ndarray) -> pa.StringArray:
    ends = np.flatnonzero(data == 0)
    begins = np.zeros(len(ends), np.int64)
    begins[1:] = ends[:-1] + 1
    kept = np.ones(len(data), np.bool_)
    kept[begins] = kept[ends] = False
    offsets = np.zeros(len(ends) + 1, np.int32)
    np.cumsum(ends - begins - 1, out=offsets[1:])
    present = data[begins] == VALUE
    nulls = len(ends) - int(np.count_nonzero(present))
    validity = pa.py_buffer(np.packbits(present, bitorder="little")) if nulls else None
    found = pa.StringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(data[kept]), validity, nulls)
    if np.any(data == 1):
        for written, byte in (("\1\2", "\0"), ("\1\3", "\1")):
            found = pc.replace_substring(found, written, byte)
    return found


def _bytes(texts: pa.StringArray) -> np.ndarray:
    """The bytes of all texts, end to end; none of null."""
    if texts.null_count:
        texts = texts.fill_null("")
    if not len(texts) or texts.buffers()[2] is None:
        return np.zeros(0, np.uint8)
    offsets = np.frombuffer(texts.buffers()[1], np.int32, len(texts) + 1, texts.offset * 4)
    return np.frombuffer(texts.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
