"""ENUM: a value is its place among those of the type, from 0, which is how it compares and sorts; as text it is looked up.

The binder makes the calls: an overload is one for each type.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pyarrow as pa

from gpudb import compute
from gpudb.errors import ConversionError
from gpudb.functions.registry import Overload
from gpudb.types import BIGINT, VARCHAR, SqlType


@cache
def text_of(type_: SqlType) -> Overload:
    """CAST of an ENUM as VARCHAR."""
    values = pa.array(type_.values, pa.string())
    return Overload("enum_text", "text", ("ANY",), VARCHAR, body=lambda codes: values.take(codes))


@cache
def place_of(type_: SqlType, try_: bool) -> Overload:
    """CAST of a VARCHAR as an ENUM; fails for a text that is none of its values, or (try_) gives NULL."""
    values = pa.array(type_.values, pa.string())

    def body(texts: Any) -> pa.Array:
        places = compute.index_in(texts, value_set=values).cast(pa.int32())
        if places.null_count and not try_:
            wrong = texts.filter(places.is_null())[0].as_py()
            raise ConversionError(f"text is not a value of type {type_}: {wrong[:80]!r}")
        return places

    return Overload("enum_place", "text", ("ANY",), type_, body=body)


@cache
def code_of(type_: SqlType) -> Overload:
    """enum_code(x)."""

    def body(codes: pa.Array) -> pa.Array:
        return codes.cast(pa.int64())

    return Overload("enum_code", "text", ("ANY",), BIGINT, body=body)


def to_arrow(codes: pa.Array, type_: SqlType) -> pa.DictionaryArray:
    """(rows,) int32 places as a dictionary array of the type's texts."""
    return pa.DictionaryArray.from_arrays(codes.cast(type_.arrow.index_type), pa.array(type_.values, pa.string()))
