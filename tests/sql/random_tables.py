"""The tables that random queries run over: every column type, at the edges of tiles, tame, extreme or full of NULLs."""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

ROWS = (0, 1, 1023, 1024, 1025, 4096, 5000)
STYLES = ("tame", "extreme", "sparse")
TEXTS = ("", "x", "a", "ab", "abc", "aBc", "it's", "über", "12", "-3.5", " b", "xyz" * 9, "2013-01-01", "NULL", "true")


@cache
def table(rows: int, style: str) -> pa.Table:
    """`t`.  tame: no arithmetic overflows; extreme: the ends of every type, NaN, infinities, -0.0; sparse: mostly NULL."""
    random = np.random.default_rng([rows, STYLES.index(style)])
    share = {"tame": 0.1, "extreme": 0.15, "sparse": 0.9}[style]
    extreme = style == "extreme"

    def column(values: Any, type_: pa.DataType) -> pa.Array:
        return pa.array(values, type_, mask=random.random(rows) < share)

    def integers(bits: int, small: int) -> pa.Array:
        low, high = -(1 << bits - 1), (1 << bits - 1) - 1
        values = random.integers(-small, small, rows, dtype=np.int64)
        if extreme:
            values = np.where(random.random(rows) < 0.2, random.choice(np.array([low, high, 0, -1]), rows), values)
        return column(values, {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[bits])

    def floats(type_: pa.DataType) -> pa.Array:
        values = random.integers(-(1 << 12), 1 << 12, rows) / 8.0
        if extreme:
            specials = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e30, 1e-30, 3.4e38])
            values = np.where(random.random(rows) < 0.2, random.choice(specials, rows), values)
        return column(values.astype(type_.to_pandas_dtype()), type_)

    def decimals(precision: int, scale: int) -> pa.Array:
        limit = 10**precision - 1
        values = [int(v) for v in random.integers(-20_000, 20_000, rows)]
        if extreme:
            values = [limit if v % 7 == 0 else -limit if v % 7 == 1 else v for v in values]
        return column([Decimal(v).scaleb(-scale) for v in values], pa.decimal128(precision, scale))

    days = random.integers(15_000, 16_000, rows)
    moments = random.integers(1_300_000_000, 1_400_000_000, rows) * 1_000_000 + random.integers(0, 3, rows)
    if extreme:
        days = np.where(random.random(rows) < 0.2, random.choice(np.array([-719_162, 2_932_896, -1, 0]), rows), days)
        edges = np.array([-62_135_596_800_000_000, 253_402_300_799_999_999, -1, 0])
        moments = np.where(random.random(rows) < 0.2, random.choice(edges, rows), moments)
    return pa.table(
        {
            "ti": integers(8, 5),
            "si": integers(16, 20),
            "i": integers(32, 1000),
            "bi": integers(64, 10**5),
            "r": floats(pa.float32()),
            "f": floats(pa.float64()),
            "d92": decimals(9, 2),
            "d184": decimals(18, 4),
            "x": column(random.random(rows) < 0.5, pa.bool_()),
            "s": column(random.choice(TEXTS, rows).tolist(), pa.string()),
            "d": column(days.astype(np.int32), pa.date32()),
            "ts": column(moments, pa.timestamp("us")),
            "a": pa.array(np.full(rows, 42), pa.int32()),
            "b": pa.array(random.integers(1_000_000_000, 1_000_000_200, rows), pa.int32()),
        }
    )
