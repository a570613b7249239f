"""Rows of floats that are hard to add up, and the parts of queries over them.  Needs neither hypothesis nor another engine."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

FLOATS = {
    "cents": lambda r, n: r.integers(-(10**6), 10**6, n) / 100,
    "cancelling": lambda r, n: np.where(r.random(n) < 0.5, 1, -1) * r.choice([1e300, 1e16, 1.0, 1e-16, 1e-300], n),
    "huge": lambda r, n: r.choice([1.7e308, -1.7e308, 1e308, 9e307, 2.0**1023], n),
    "tiny": lambda r, n: r.integers(-5, 6, n) * r.choice([5e-324, 2.0**-1022, 1e-310, 1e-160], n),
    "zeros": lambda r, n: r.choice([0.0, -0.0], n),
    "nans": lambda r, n: np.where(r.random(n) < 0.02, r.choice(patterns_of_nan()), r.normal(size=n)),
    "infinite": lambda r, n: np.where(r.random(n) < 0.02, r.choice([np.inf, -np.inf], n), r.normal(size=n)),
    "above": lambda r, n: np.where(r.random(n) < 0.1, np.inf, r.normal(size=n) * 1e300),
    "bits": lambda r, n: r.integers(0, 1 << 64, n, np.uint64).view(np.float64),
    "near": lambda r, n: 1e8 + r.integers(0, 3, n) * 2.0**-26,
    "alike": lambda r, n: np.full(n, r.choice([0.1, 1e200, -1.7e308, 1e-200, 5e-324])),
}


def patterns_of_nan() -> np.ndarray:
    """NaN as it may come in: with either sign, quiet or signalling, with any payload."""
    return np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0xFFFFFFFFFFFFFFFF], np.uint64).view(
        np.float64
    )


@lru_cache(64)
def rows_of(rows: int, one: str, other: str, seed: int) -> pa.Table:
    """`t`: keys with few and with many values, of every kind; x and y of two kinds of floats; both with NULLs."""
    made = np.random.default_rng([rows, seed])

    def some(values: Any, type_: pa.DataType | None = None, share: float = 0.1) -> pa.Array:
        return pa.array(values, type_, mask=made.random(rows) < share)

    with np.errstate(all="ignore"):
        x, y = FLOATS[one](made, rows), FLOATS[other](made, rows)
        small = FLOATS[other](made, rows).astype(np.float32)
    keys = made.choice([0.0, -0.0, 1.5, np.inf, *patterns_of_nan()], rows)
    words = np.array(["", "a", "b", "ä", "ab", "zz"])
    return pa.table(
        {
            "id": np.arange(rows),
            "x": some(x),
            "y": some(y),
            "r": some(small),
            "few": some(made.integers(-2, 3, rows), pa.int8()),
            "many": some(made.integers(0, max(1, rows // 2), rows) * 1000003),
            "key": some(keys),
            "word": some(made.choice(words, rows).tolist(), pa.string()),
            "text": some([f"t{n}" for n in made.integers(0, rows, rows)], pa.string()),
            "whole": some(made.integers(-(1 << 63), (1 << 63) - 1, rows)),
            "price": some(made.integers(-(10**9), 10**9, rows)).cast(pa.int32()).cast(pa.decimal128(12, 0)),
            "flag": some(made.random(rows) < 0.5),
            "day": some(made.integers(0, 20000, rows).astype(np.int32), pa.date32()),
        }
    )


# Forms of aggregates: {a} is one of ARGUMENTS, {o} one of OTHERS.
SPREADS = ("stddev_samp", "stddev_pop", "var_samp", "var_pop")
FILTERS = ("", "", " FILTER (WHERE y > 0)", " FILTER (WHERE few = 1)", " FILTER (WHERE id < 0)")
AGGREGATES = (
    *(f"{name}({{a}}){condition}" for name in ("sum", "avg", *SPREADS) for condition in FILTERS),
    *(["corr({a}, {a})"] * 3),
    *(f"{name}({{{slot}}})" for name in ("min", "max", "first", "any_value") for slot in "ao"),
    *(f"{name}({{{one}}}, {{{other}}})" for name in ("arg_min", "arg_max") for one in "ao" for other in "ao"),
    *(f"{name}({column})" for name in ("sum", "avg", "var_pop") for column in ("few", "price", "many")),
    "sum(DISTINCT {a})",
    "count(DISTINCT {a})",
    "count(DISTINCT {o})",
    "sum(whole)",
    "count(*)",
)
ARGUMENTS = (
    "x", "y", "r", "x + y", "x * y", "-x", "x / y", "nullif(x, 0)", "CASE WHEN few = 1 THEN x END", "sqrt(abs(y))"
)  # fmt: skip
OTHERS = ("few", "many", "word", "text", "whole", "price", "flag", "day", "key", "id")
KEYS = ("few", "many", "key", "word", "text", "flag", "day", "x", "y + 0", "-key", "r", "few % 2", "id")
WHERE = ("", "", "", " WHERE x > 0", " WHERE few <> 1", " WHERE id % 7 = 0 OR y < 0", " WHERE x <> x")
DIRECTIONS = ("", " DESC", " NULLS FIRST", " DESC NULLS LAST")
LIMITS = ("", "", " LIMIT 7", " LIMIT 100 OFFSET 50")


def slots(form: str) -> list[str]:
    """The letters of a form's places, in order."""
    return re.findall(r"{(\w)}", form)


def filled(form: str, parts: Sequence[str]) -> str:
    """A form with its places filled, in order."""
    found = iter(parts)
    return re.sub(r"{\w}", lambda _: next(found), form)


def random_query(chosen: random.Random) -> str:
    """A query with groups or without, in an order with many ties or in none."""
    keys = chosen.sample(KEYS, chosen.randint(0, 2))
    items = list(keys)
    for form in chosen.choices(AGGREGATES, k=chosen.randint(1, 4)):
        items.append(filled(form, [chosen.choice(ARGUMENTS if slot == "a" else OTHERS) for slot in slots(form)]))
    sql = f"SELECT {', '.join(items)} FROM t{chosen.choice(WHERE)}{' GROUP BY ' + ', '.join(keys) if keys else ''}"
    if chosen.random() < 0.5:
        sql += f" ORDER BY {chosen.randint(1, len(items))}{chosen.choice(DIRECTIONS)}"
    return sql + chosen.choice(LIMITS)
