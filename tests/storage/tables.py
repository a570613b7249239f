"""Arrow tables of every type that storage holds, for the tests of this folder."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

EPOCH = datetime.datetime(1970, 1, 1)


def integers(bits: int) -> st.SearchStrategy[int]:
    """Integers of a width: extremes, neighbours of powers of two, small ones, and multiples of a step."""
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    edges = [low, low + 1, -1, 0, 1, high - 1, high]
    edges += [
        sign * ((1 << power) + delta) for power in (7, 8, 15, 16, 31, 32) for delta in (-1, 0, 1) for sign in (1, -1)
    ]
    fitting = [value for value in edges if low <= value <= high]
    return st.one_of(st.sampled_from(fitting), st.integers(low, high), st.integers(max(low, -3), min(high, 3)))


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    """Decimals, most of them with few digits, some with all."""
    most = 10**precision - 1
    limit = min(most, (1 << 63) - 1)
    edges = [limit, -limit, limit + 1, -limit - 1, most, -most, 0, 1, -1, 1 << 64, -(1 << 64)]
    fitting = [edge for edge in edges if -most <= edge <= most]
    unscaled = st.one_of(st.integers(-limit, limit), st.sampled_from(fitting), st.integers(-most, most))
    return unscaled.map(lambda value: Decimal((0 if value >= 0 else 1, tuple(map(int, str(abs(value)))), -scale)))


DOUBLES = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1.7976931348623157e308]),
)

KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "BOOLEAN": (pa.bool_(), st.booleans()),
    "TINYINT": (pa.int8(), integers(8)),
    "SMALLINT": (pa.int16(), integers(16)),
    "INTEGER": (pa.int32(), integers(32)),
    "BIGINT": (pa.int64(), integers(64)),
    "HUGEINT": (pa.decimal128(38, 0), decimals(38, 0)),
    "DECIMAL(4,1)": (pa.decimal128(4, 1), decimals(4, 1)),
    "DECIMAL(18,2)": (pa.decimal128(18, 2), decimals(18, 2)),
    "DECIMAL(38,10)": (pa.decimal128(38, 10), decimals(38, 10)),
    "REAL": (pa.float32(), st.floats(width=32)),
    "DOUBLE": (pa.float64(), DOUBLES),
    "DATE": (pa.date32(), st.dates()),
    "TIMESTAMP": (
        pa.timestamp("us"),
        st.one_of(st.datetimes(), st.integers(0, 500).map(lambda h: EPOCH + datetime.timedelta(hours=h))),
    ),
    "VARCHAR": (pa.string(), st.one_of(st.text(max_size=12), st.sampled_from(["", "a", "é", "日本", "x" * 300]))),
}


@st.composite
def arrow_tables(draw: st.DrawFn, max_rows: int = 40) -> pa.Table:
    """A table of some columns of any type: with NULLs, all NULL, constant, or empty."""
    rows = draw(st.integers(0, max_rows))
    names = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=5))
    columns = []
    for name in names:
        arrow_type, values = KINDS[name]
        form = draw(st.sampled_from(["mixed", "mixed", "no nulls", "all null", "constant"]))
        if form == "all null":
            items: list[Any] = [None] * rows
        elif form == "constant":
            items = [draw(values)] * rows
        else:
            items = draw(st.lists(values if form == "no nulls" else st.none() | values, min_size=rows, max_size=rows))
        columns.append(pa.array(items, type=arrow_type))
    fields = [pa.field(f"c{index}", column.type) for index, column in enumerate(columns)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def same(left: pa.Table, right: pa.Table) -> bool:
    """Equal schema, rows and NULLs; floats bit by bit, except that one NaN is as good as another."""
    if left.schema.names != right.schema.names or left.schema.types != right.schema.types or len(left) != len(right):
        return False
    for one, other in zip(left.columns, right.columns, strict=True):
        one, other = one.combine_chunks(), other.combine_chunks()
        if not pa.types.is_floating(one.type):
            if not one.equals(other):
                return False
            continue
        if not one.is_valid().equals(other.is_valid()):
            return False
        bits = [np.array(array.drop_null().to_numpy(zero_copy_only=False)) for array in (one, other)]
        for values in bits:
            values[np.isnan(values)] = np.nan
        if bits[0].tobytes() != bits[1].tobytes():
            return False
    return True
