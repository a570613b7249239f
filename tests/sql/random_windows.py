"""Random window functions over the table of `random_tables`, with a column `id` that tells its rows apart."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from tests.sql import random_tables

COLUMNS = ("ti", "si", "i", "bi", "r", "f", "d92", "d184", "x", "s", "d", "ts")
NUMBERS = ("ti", "si", "i", "bi", "d92", "d184")
PARTITIONS = ("", "", "ti", "x", "s", "ti, x", "s, d92 > 0", "i % 7", "f", "d")
RANGES = {  # of an order: offsets
    "ti": ("1", "2"),
    "si": ("1", "5"),
    "i": ("10", "100"),
    "d92": ("1", "0.5", "20"),
    "f": ("1", "0.25"),
    "d": ("INTERVAL 10 DAY", "INTERVAL 1 MONTH"),
    "ts": ("INTERVAL 1 DAY", "INTERVAL 200 HOUR"),
}
EXCLUDE = ("", "", "", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES")


@cache
def table(rows: int, style: str) -> pa.Table:
    """The table with row numbers in any order as `id`."""
    random = np.random.default_rng(rows)
    return random_tables.table(rows, style).append_column("id", pa.array(random.permutation(rows), pa.int64()))


@st.composite
def orders(draw: st.DrawFn, total: bool) -> str:
    """ORDER BY; `total` ends with a column that leaves no ties."""
    terms = []
    for column in draw(st.lists(st.sampled_from(COLUMNS), max_size=2, unique=True)):
        direction = draw(st.sampled_from(["", " DESC", " ASC"]))
        terms.append(column + direction + draw(st.sampled_from(["", " NULLS FIRST", " NULLS LAST"])))
    if total:
        terms.append(draw(st.sampled_from(["id", "id DESC"])))
    return f"ORDER BY {', '.join(terms)}" if terms else ""


@st.composite
def frames(draw: st.DrawFn, unit: str, offsets: tuple[str, ...]) -> str:
    """A frame that does not end before it begins."""
    ends = ["UNBOUNDED PRECEDING", "CURRENT ROW", "UNBOUNDED FOLLOWING"]
    start, end = sorted(draw(st.tuples(st.integers(0, 4), st.integers(0, 4))))
    if start == 4:
        start = 3
    if end == 0:
        end = 1

    def spelled(kind: int) -> str:
        if kind in (0, 2, 4):
            return ends[kind // 2]
        return f"{draw(st.sampled_from(offsets))} {'PRECEDING' if kind == 1 else 'FOLLOWING'}"

    exclude = draw(st.sampled_from(EXCLUDE))
    if end == 2 and draw(st.booleans()):
        return f"{unit} {spelled(start)}{exclude}"
    return f"{unit} BETWEEN {spelled(start)} AND {spelled(end)}{exclude}"


@st.composite
def windows(draw: st.DrawFn, total: bool, framed: bool = True) -> str:
    """What stands in OVER (...); `total` where ties would leave the answer open."""
    partition = draw(st.sampled_from(PARTITIONS))
    partition = f"PARTITION BY {partition}" if partition else ""
    unit = draw(st.sampled_from(["", "ROWS", "RANGE", "GROUPS"])) if framed else ""
    if unit == "RANGE" and not total and draw(st.booleans()):
        column = draw(st.sampled_from(sorted(RANGES)))
        direction = draw(st.sampled_from(["", " DESC", " NULLS FIRST"]))
        return f"{partition} ORDER BY {column}{direction} {draw(frames('RANGE', RANGES[column]))}"
    order = draw(orders(total or unit == "ROWS"))
    if not unit:
        return f"{partition} {order}"
    if unit == "RANGE":
        return f"{partition} {order} {draw(frames('RANGE', ('1',)))}".replace("1 PRECEDING", "CURRENT ROW").replace(
            "1 FOLLOWING", "CURRENT ROW"
        )
    return f"{partition} {order} {draw(frames(unit, ('0', '1', '3', '100', 'a - 40')))}"


@st.composite
def calls(draw: st.DrawFn, sums_of_floats: bool) -> str:
    """One call."""
    column, number = draw(st.sampled_from(COLUMNS)), draw(st.sampled_from(NUMBERS))
    kind = draw(st.sampled_from(["rank", "value", "neighbour", "sum", "sum", "extreme", "count", "float"]))
    nulls = draw(st.sampled_from(["", " IGNORE NULLS"]))
    if kind == "rank":
        name = draw(st.sampled_from(["rank()", "dense_rank()", "percent_rank()", "cume_dist()"]))
        return f"{name} OVER ({draw(windows(False, framed=False))})"
    if kind == "value":
        name = draw(
            st.sampled_from(
                [
                    "row_number()",
                    "ntile(3)",
                    "ntile(ti + 200)",
                    f"first_value({column}{nulls})",
                    f"last_value({column}{nulls})",
                    f"nth_value({column}, 2{nulls})",
                    f"nth_value({column}, ti{nulls})",
                    f"first_value(i + 1{nulls})",
                    f"any_value({column})",
                ]
            )
        )
        return f"{name} OVER ({draw(windows(True, framed=not name.startswith(('row', 'ntile'))))})"
    if kind == "neighbour":
        name = draw(st.sampled_from(["lag", "lead"]))
        more = draw(st.sampled_from(["", ", 1", ", 2", ", ti", ", 0", ", -1", f", 1, {column}"]))
        return f"{name}({column}{more}{nulls}) OVER ({draw(windows(True, framed=False))})"
    where = draw(st.sampled_from(["", "", " FILTER (WHERE x)", " FILTER (WHERE i > 0)"]))
    if kind == "extreme":
        name = draw(st.sampled_from([f"min({column})", f"max({column})", "bool_and(x)", "bool_or(x)"]))
    elif kind == "count":
        name = draw(st.sampled_from(["count(*)", f"count({column})"]))
    elif kind == "float" and sums_of_floats:
        name = draw(st.sampled_from(["sum(f)", "avg(f)", "sum(r)", "stddev(f)", "var_pop(i)", "corr(f, i)", "avg(si)"]))
    else:
        name = draw(st.sampled_from([f"sum({number})", f"avg({number})", "sum(CAST(i AS HUGEINT))", "sum(x)"]))
    return f"{name}{where} OVER ({draw(windows(False))})"


@st.composite
def queries(draw: st.DrawFn, sums_of_floats: bool) -> str:
    """A query over t with one to three calls."""
    found = draw(st.lists(calls(sums_of_floats), min_size=1, max_size=3))
    columns = ", ".join(f"{call} AS w{number}" for number, call in enumerate(found))
    shape = draw(st.integers(0, 7))
    where = draw(st.sampled_from(["", "", " WHERE i > 0", " WHERE s IS NOT NULL"]))
    if shape == 0:
        return f"SELECT id, {columns} FROM t{where} QUALIFY w0 IS NOT NULL"
    if shape == 1:
        return f"SELECT id, s, w0 FROM (SELECT *, {columns} FROM t{where}) WHERE id % 3 = 0"
    if shape == 2 and not any(name in found[0] for name in ("avg(", "corr(", "var_pop(", "stddev(")):
        return f"SELECT w0, count(*) AS n FROM (SELECT {columns} FROM t{where}) GROUP BY w0"
    if shape == 3:
        return f"SELECT {columns}, id FROM t{where} ORDER BY w0 DESC, id LIMIT 10"
    return f"SELECT id, {columns} FROM t{where}"
