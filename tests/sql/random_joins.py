"""Random joins: two and three tables whose columns meet, of every type a key can have, and queries that join them.

Keys are few values, so that rows have many matches, or nearly as many as there are rows; with NULL, NaN, -0.0 and the ends of
every type among them.  Texts of the two sides lie in dictionaries that only partly agree.
"""

from __future__ import annotations

from decimal import Decimal
from functools import cache

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

ROWS = (0, 1, 3, 40, 1023, 1024, 1025)
TEXTS = {"l": ("", "x", "a", "ab", "über", "only left", "zz"), "r": ("zz", "b", "a", "", "only right", "x", "xy")}
COLUMNS = ("ti", "i", "bi", "h", "f", "r", "d92", "d304", "x", "s", "d", "ts", "u", "c")
NUMBERS = ("ti", "i", "bi", "h", "f", "r", "d92", "d304", "u", "c")


@cache
def table(name: str, rows: int, style: str) -> pa.Table:
    """One table.  few: a dozen values a column; many: about as many as rows, and the ends of every type; sparse: mostly NULL."""
    random = np.random.default_rng([rows, ord(name), len(style)])
    share = {"few": 0.1, "many": 0.05, "sparse": 0.8}[style]
    most = 12 if style == "few" else max(2, rows)

    def column(values: object, type_: pa.DataType, share: float = share) -> pa.Array:
        return pa.array(values, type_, mask=random.random(rows) < share)

    def integers(low: int, high: int) -> list[int]:
        found = [int(v) for v in random.integers(-most // 2, most, rows)]
        if style != "few":
            found = [(low, high, 0, low + 1)[v % 4] if random.random() < 0.1 else v for v in found]
        return [max(low, min(high, v)) for v in found]

    def floats() -> np.ndarray:
        values = random.integers(-most, most, rows) / 4.0
        return np.where(random.random(rows) < 0.3, random.choice([np.nan, np.inf, -0.0, 0.0, 1e30], rows), values)

    names = TEXTS[name if name in TEXTS else "r"]
    texts = [names[v] if v < len(names) else f"{v}" for v in random.integers(0, most + len(names), rows)]
    return pa.table(
        {
            "ti": column([v % 100 for v in integers(-128, 127)], pa.int8()),
            "i": column(integers(-(2**31), 2**31 - 1), pa.int32()),
            "bi": column(integers(-(2**63), 2**63 - 1), pa.int64()),
            "h": column([Decimal(v) for v in integers(-(2**63) + 1, 2**63 - 1)], pa.decimal128(38, 0)),
            "f": column(floats(), pa.float64()),
            "r": column(floats().astype(np.float32), pa.float32()),
            "d92": column([Decimal(f"{v}E-2") for v in integers(-(10**9) + 1, 10**9 - 1)], pa.decimal128(9, 2)),
            "d304": column([Decimal(f"{v}E-4") for v in integers(-(2**63) + 1, 2**63 - 1)], pa.decimal128(30, 4)),
            "x": column(random.random(rows) < 0.5, pa.bool_()),
            "s": column(texts, pa.string()),
            "d": column(np.array(integers(-20000, 20000), np.int32), pa.date32()),
            "ts": column(np.array(integers(-(10**15), 10**15), np.int64), pa.timestamp("us")),
            "u": column(random.permutation(rows), pa.int32(), 0.0),
            "c": pa.array(np.full(rows, 7), pa.int16()),
        }
    )


KINDS = st.sampled_from(
    ["JOIN", "INNER JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT OUTER JOIN", "SEMI JOIN", "ANTI JOIN"]
)
KEYS_OF_FEW_PAIRS = ("{}.u = {}.u", "{}.bi = {}.u", "{}.ts = {}.ts", "{}.h = {}.i", "{}.u < {}.u", "{}.d304 = {}.u")


def equalities(left: str, right: str) -> st.SearchStrategy[str]:
    operator = st.sampled_from(["=", "=", "=", "IS NOT DISTINCT FROM"])
    same = st.sampled_from(COLUMNS).map(lambda name: (name, name))
    mixed = st.tuples(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS))
    others = st.sampled_from([("d", "ts"), ("i", "u"), ("u", "i"), ("ti", "u"), ("u", "bi")])
    columns = st.one_of(same, same, mixed, others)
    plain = st.builds(lambda names, how: f"{left}.{names[0]} {how} {right}.{names[1]}", columns, operator)
    computed = st.sampled_from(
        [
            f"{right}.u + 1 = {left}.u",
            f"upper({left}.s) = {right}.s",
            f"{left}.u // 3 = {right}.u // 2",
            f"{left}.s = {right}.s || ''",
            f"coalesce({left}.ti, -1) = {right}.ti",
            f"{left}.u % 5 = {right}.u % 7",
            f"{left}.bi::HUGEINT * 4 = {right}.bi::HUGEINT * 4",
            f"{left}.u::HUGEINT * 10000000000 = {right}.i::HUGEINT * 10000000000",
        ]
    )
    return st.one_of(plain, plain, plain, computed)


def others(left: str, right: str) -> st.SearchStrategy[str]:
    """Conditions that are no keys."""
    return st.sampled_from(
        [
            f"{left}.u < {right}.u",
            f"{left}.u + {right}.u > 50",
            f"{left}.s <> {right}.s",
            f"{left}.s > {right}.s",
            f"({left}.i = {right}.i OR {left}.x)",
            f"{left}.f > {right}.f",
            f"{left}.u > 3",
            f"{right}.u % 3 <> 0",
            f"{right}.s LIKE '%x%'",
            f"{left}.x",
            f"({left}.x OR {right}.x IS NULL)",
            f"{left}.u BETWEEN {right}.u - 1 AND {right}.u + 1",
            f"{left}.d IS NULL",
            "TRUE",
        ]
    )


@st.composite
def conditions(draw: st.DrawFn, left: str, right: str) -> str:
    terms = draw(st.lists(equalities(left, right), min_size=1, max_size=2))
    terms += draw(st.lists(others(left, right), max_size=2))
    if len(terms) == 1 or draw(st.booleans()):  # keep the number of pairs small
        terms.append(draw(st.sampled_from(KEYS_OF_FEW_PAIRS)).format(left, right))
    return " AND ".join(draw(st.permutations(terms)))


@st.composite
def joins(draw: st.DrawFn) -> tuple[str, list[str]]:
    """What stands in FROM, and the relations that can be named."""
    kind = draw(KINDS)
    form = draw(st.sampled_from(["on", "on", "on", "using", "comma", "no key", "self"]))
    if form == "using":
        names = draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=2, unique=True))
        sql, there = f"l {kind} r USING ({', '.join(names)})", ["l", "r"]
    elif form == "comma":
        return f"l, r WHERE {draw(conditions('l', 'r'))}", ["l", "r"]
    elif form == "no key":
        sql, there = f"l {kind} (SELECT * FROM r LIMIT 30) r ON {draw(others('l', 'r'))}", ["l", "r"]
    elif form == "self":
        sql, there = f"l {kind} l r ON {draw(conditions('l', 'r'))}", ["l", "r"]
    else:
        sql, there = f"l {kind} r ON {draw(conditions('l', 'r'))}", ["l", "r"]
    if kind in ("SEMI JOIN", "ANTI JOIN"):
        there = ["l"]
    if draw(st.integers(0, 3)) == 0:
        with_ = draw(st.sampled_from(there))
        name = draw(st.sampled_from(["u", "ti", "s"]))
        other = draw(st.sampled_from(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN"]))
        sql += f" {other} t ON {with_}.{name} = t.{name}"
        if draw(st.booleans()):
            sql += f" AND {with_}.u < t.u + 10"
        there = there if other == "SEMI JOIN" else [*there, "t"]
    return sql, there


@st.composite
def queries(draw: st.DrawFn) -> str:
    """A query over a join: its rows, or aggregates of them."""
    sql, there = draw(joins())
    column = st.builds("{}.{}".format, st.sampled_from(there), st.sampled_from(COLUMNS))
    if draw(st.integers(0, 3)) == 0:
        condition = draw(st.sampled_from(["{0}.u > 2", "{0}.s IS NULL", "{0}.x", "{0}.i < 5 OR {0}.u = 1"]))
        sql += (" AND " if " WHERE " in sql else " WHERE ") + "(" + condition.format(draw(st.sampled_from(there))) + ")"
    shape = draw(st.sampled_from(["rows", "rows", "aggregate", "grouped", "distinct"]))
    if shape == "rows":
        items = draw(st.lists(column, min_size=1, max_size=4))
        return f"SELECT {', '.join(items)} FROM {sql}"
    totals = f"count(*), count({draw(column)}), sum({there[-1]}.u), min({draw(column)}), count(DISTINCT {draw(column)})"
    if shape == "aggregate":
        return f"SELECT {totals} FROM {sql}"
    if shape == "distinct":
        return f"SELECT DISTINCT {draw(column)}, {draw(column)} FROM {sql}"
    return f"SELECT {draw(column)} AS k, {totals} FROM {sql} GROUP BY 1"
