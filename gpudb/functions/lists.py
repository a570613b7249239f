"""Functions of lists, which run over dictionary entries as text functions do: lists come and go as they are spelled.

An overload is one for each type of the elements; the binder makes the calls (`planner.bind.lists`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa

from gpudb import compute as pc
from gpudb.errors import OutOfRangeError
from gpudb.functions import list_spelling
from gpudb.functions.cast_text import print_values
from gpudb.functions.registry import Overload
from gpudb.functions.rows import per_row
from gpudb.types import BIGINT, DOUBLE, VARCHAR, SqlType, list_of

MOST = 1 << 24  # elements of a range() that is a list
WHOLE = frozenset({"list_starts", "list_elements"})
"""Functions of a whole dictionary at once: what they give an entry depends on those before it, or is several values."""


@cache
def list_value(child: SqlType, known: str) -> Overload:
    """list_value(x, ...) of `child`.

    known  of each element v, one argument that is not NULL, or m, two: a value and whether it is NULL, or n, NULL
    """

    def body(*arguments: Any) -> pa.Array:
        given, parts = iter(arguments), []
        null = list_spelling.spelled(pa.nulls(1, child.entries), child)[0]
        for kind in known:
            part = null if kind == "n" else _spelled(next(given), child)
            if kind == "m":
                absent = next(given)
                if isinstance(absent, pa.Array):
                    part = pc.if_else(absent, null, part)
                elif absent:
                    part = null
            parts.append(part)
        return list_spelling.joined(parts)

    return Overload("list_value", "text", ("ANY",), list_of(child), body=body)


def _spelled(argument: Any, child: SqlType) -> Any:
    if isinstance(argument, pa.Array):
        return list_spelling.spelled(argument, child)
    return list_spelling.spelled(list_spelling.constant(argument, child), child)[0]


def spelled_list(count_of_nulls: int, child: SqlType) -> str:
    """The spelling of a list of so many NULLs."""
    return "".join(list_spelling.spelled(pa.nulls(count_of_nulls, child.entries), child).to_pylist())


@cache
def length(child: SqlType) -> Overload:
    """len(list)."""
    return Overload("len", "text", ("ANY",), BIGINT, body=lambda texts: pa.array(list_spelling.counts(texts, child)))


@cache
def starts(child: SqlType) -> Overload:
    """How many elements the lists before each one of a dictionary have: there its own begin in `elements`."""

    def body(texts: pa.StringArray) -> pa.Array:
        counts = list_spelling.counts(texts, child)
        return pa.array(np.cumsum(counts) - counts)

    return Overload("list_starts", "text", ("ANY",), BIGINT, body=body)


@cache
def elements(child: SqlType) -> Overload:
    """The elements of all lists of a dictionary, end to end."""
    return Overload("list_elements", "text", ("ANY",), child, body=partial(list_spelling.elements, element=child))


@cache
def element_at(child: SqlType) -> Overload:
    """list_at(list, number from 0), NULL outside; emitted as look-ups in `starts` and `elements`."""
    return Overload("list_at", "text", ("ANY", "BIGINT"), child)


@cache
def position(child: SqlType) -> Overload:
    """The place, from 1, of the first element that equals a value; 0 where none does."""

    def body(lists: Any, value: Any) -> pa.Array:
        rows = len(lists) if isinstance(lists, pa.Array) else len(value)
        if not isinstance(lists, pa.Array):
            lists = pa.array([lists] * rows, pa.string())
        counts = list_spelling.counts(lists, child)
        inner = list_spelling.elements(lists, child)
        wanted: Any = value
        if isinstance(value, pa.Array):
            wanted = value.take(pa.array(np.repeat(np.arange(rows), counts)))
        else:
            wanted = list_spelling.constant(value, child)[0]
        equal = np.asarray(pc.equal(inner, wanted.cast(inner.type)).fill_null(False))
        if child.is_float:
            equal |= np.asarray(pc.and_(pc.is_nan(inner), pc.is_nan(wanted)).fill_null(False))
        begins = np.cumsum(counts) - counts
        hits = np.flatnonzero(equal)
        row_of = np.repeat(np.arange(rows), counts)[hits]
        found = np.zeros(rows, np.int64)
        first, index = np.unique(row_of, return_index=True)
        found[first] = hits[index] - begins[first] + 1
        return pa.array(found)

    return Overload("list_position", "text", ("ANY", "ANY"), BIGINT, body=body)


@cache
def slices(sql: SqlType) -> Overload:
    """list[begin:end:step]: from 1, from the end below 0; 0 and what lies beyond the ends are those."""
    child = sql.child
    assert child is not None, "a list has elements"
    size = list_spelling.width(child)
    length = 1 + 2 * size  # characters of an element; of texts that varies, and a zero ends each

    def one(spelled: str, begin: int, end: int, step: int) -> str:
        if step <= 0:
            raise OutOfRangeError(f"the step of a slice is above 0, not {step}")
        count = len(spelled) // length if size else spelled.count("\0")
        first = max(begin + count if begin < 0 else begin - 1, 0)
        last = min(end + count + 1 if end < 0 else end, count)
        if step == 1 and size:
            return spelled[first * length : last * length] if first < last else ""
        parts = [spelled[k : k + length] for k in range(0, len(spelled), length)] if size else _texts_in(spelled)
        return "".join(parts[first:last:step]) if first < last else ""

    body = partial(_texts_of_rows, one)
    return Overload("list_slice", "text", ("ANY", "BIGINT", "BIGINT", "BIGINT"), sql, body=body)


def _texts_in(spelled: str) -> list[str]:
    return [part + "\0" for part in spelled.split("\0")[:-1]]


@cache
def concatenation(sql: SqlType, count: int) -> Overload:
    """One list of the elements of several."""
    kinds = ("ANY",) * count
    return Overload("list_concat", "text", kinds, sql, body=lambda *lists: list_spelling.joined(list(lists)))


@cache
def product() -> Overload:
    """The product of the numbers of a list of DOUBLE that are not NULL, from the first on; NULL of none."""

    def body(texts: pa.StringArray) -> pa.Array:
        found = list_spelling.lists(texts, list_of(DOUBLE)).to_pylist()
        numbers = [[one for one in each if one is not None] for each in found]
        return pa.array([math.prod(each) if each else None for each in numbers], pa.float64())

    return Overload("list_product", "text", ("ANY",), DOUBLE, body=body)


@cache
def counting(inclusive: bool) -> Overload:
    """range(start, stop, step) or generate_series as a list."""

    def numbers(start: int, stop: int, step: int) -> str:
        size = len(range(start, stop + (step > 0) - (step < 0) if inclusive else stop, step)) if step else 0
        if size > MOST:
            raise OutOfRangeError(f"range makes a list of more than {MOST} elements: {size}")
        values = start + step * np.arange(size, dtype=np.int64)
        return "".join(list_spelling.spelled(pa.array(values), BIGINT).to_pylist())

    name = "generate_series" if inclusive else "range"
    body = partial(_texts_of_rows, numbers)
    return Overload(name, "text", ("BIGINT", "BIGINT", "BIGINT"), list_of(BIGINT), body=body)


@cache
def text(sql: SqlType) -> Overload:
    """CAST(list AS VARCHAR)."""

    def body(texts: pa.StringArray) -> pa.Array:
        leaf = sql
        while leaf.child is not None:
            leaf = leaf.child
        return printed(list_spelling.lists(texts, sql), lambda values: print_values(values, leaf))

    return Overload("list_text", "text", ("ANY",), VARCHAR, body=body)


_QUOTED = r"""^$|^[ \t\n\v\f\r]|[ \t\n\v\f\r]$|[\[\]{}(),'":=\\]|^(?i:null)$"""


def printed(values: pa.ListArray, print_leaf: Callable[[pa.Array], pa.Array]) -> pa.StringArray:
    """(n,) lists as texts, `[a, 'b c ', NULL]`: elements in quotes that would not read back; null of null.

    print_leaf  elements that are no lists as texts
    """
    offsets = values.offsets
    inner = values.values
    if pa.types.is_list(inner.type):
        inner = printed(inner, print_leaf)
    else:
        inner = print_leaf(inner)
        odd = pc.fill_null(pc.match_substring_regex(inner, _QUOTED), False)
        if pc.any(odd).as_py():
            escaped = pc.replace_substring(pc.replace_substring(inner, "\\", "\\\\"), "'", "\\'")
            inner = pc.if_else(odd, pc.binary_join_element_wise("'", escaped, "'", ""), inner)
    rows = pa.ListArray.from_arrays(offsets, inner.fill_null("NULL"))
    found = pc.binary_join_element_wise("[", pc.binary_join(rows, ", "), "]", "")
    return pc.if_else(values.is_valid(), found, pa.scalar(None, pa.string()))


def _texts_of_rows(function: Any, *arguments: Any) -> pa.Array:
    return per_row(function, VARCHAR, *arguments)
