"""Strategies for random single-table queries over `t`, whose columns tests/planner/catalog.py and `random_tables` name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from hypothesis import strategies as st

NUMBERS = st.sampled_from("ti si i bi r f d92 d184 a b t.a 0 1 200 40000 3000000000 -5 1.5 2e3 NULL".split())
CONSTANTS = st.sampled_from("0 1 -1 7 100 40000 3000000000 -5 1.5 0.25 2e3 NULL '3'".split())
TEXTS = st.sampled_from(["s", "t.s", "'x'", "'it''s'", "''", "NULL::VARCHAR"])
# Not NULL::DATE: DuckDB gives DOUBLE for a part of a constant NULL, BIGINT for any other.
DATES = st.sampled_from(["d", "ts", "DATE '2013-01-01'", "TIMESTAMP '2013-01-01 10:00:00'", "nullif(d, d)"])
BOOLEANS = st.sampled_from(["x", "TRUE", "NULL", "(NOT x)", "FALSE"])
TYPES = st.sampled_from("TINYINT SMALLINT BIGINT int double DECIMAL(12,3) DECIMAL(18,4) real HUGEINT".split())
COMPARISONS = st.sampled_from("= <> < <= > >=".split() + ["IS DISTINCT FROM", "IS NOT DISTINCT FROM"])
PATTERNS = st.sampled_from(["a%", "_b", "%", "", "%b%", "a_c", "x", "%ü%"])
INTERVALS = st.sampled_from(["INTERVAL 1 DAY", "INTERVAL '1 month'", "INTERVAL 90 MINUTE", "INTERVAL (-3) YEAR"])


@cache  # hypothesis checks a strategy once
def numbers(depth: int) -> st.SearchStrategy[str]:
    if depth == 0:
        return NUMBERS
    inner, condition = numbers(depth - 1), booleans(depth - 1)
    part = st.sampled_from(["year", "month", "isodow", "hour", "day", "epoch", "quarter", "week", "doy"])
    return st.one_of(
        NUMBERS,
        st.builds("({} {} {})".format, inner, st.sampled_from("+ - * / // %".split()), inner),
        st.builds("({} {} {})".format, inner, st.sampled_from("+ - *".split()), CONSTANTS),
        st.builds("-({})".format, inner),
        st.builds(
            "{}({})".format, st.sampled_from(["abs", "sign", "round", "floor", "ceil", "trunc", "sqrt", "isnan"]), inner
        ),
        st.builds(
            "{}({}, {})".format, st.sampled_from(["round", "trunc"]), inner, st.sampled_from("-2 -1 0 1 2".split())
        ),
        st.builds("CASE WHEN {} THEN {} ELSE {} END".format, condition, inner, inner),
        st.builds("CASE WHEN {} THEN {} WHEN {} THEN {} END".format, condition, inner, condition, inner),
        st.builds("CASE {} WHEN {} THEN {} ELSE {} END".format, inner, CONSTANTS, inner, inner),
        st.builds("{}({}, {})".format, st.sampled_from(["coalesce", "greatest", "least", "nullif"]), inner, inner),
        st.builds("CAST({} AS {})".format, inner, TYPES),
        st.builds("TRY_CAST({} AS {})".format, inner, TYPES),
        st.builds("CAST({} AS {})".format, condition, st.sampled_from(["INTEGER", "BIGINT", "DOUBLE"])),
        st.builds("{}({})".format, st.sampled_from(["length", "strlen", "ascii"]), texts(depth - 1)),
        st.builds("extract({} FROM {})".format, part, dates(depth - 1)),
        st.builds("date_diff('{}', {}, {})".format, st.sampled_from(["day", "month"]), DATES, DATES),
        st.builds("TRY_CAST({} AS {})".format, texts(depth - 1), TYPES),
    )


@cache
def texts(depth: int) -> st.SearchStrategy[str]:
    if depth == 0:
        return TEXTS
    inner = texts(depth - 1)
    return st.one_of(
        TEXTS,
        st.builds("{}({})".format, st.sampled_from(["upper", "LOWER", "trim", "reverse"]), inner),
        st.builds("({} || {})".format, inner, inner),
        st.builds("concat({}, {})".format, inner, inner),
        st.builds("{}::varchar".format, NUMBERS),
        st.builds("CAST({} AS VARCHAR)".format, BOOLEANS),
        st.builds("CAST({} AS VARCHAR)".format, DATES),
        st.builds(
            "substring({}, {}, {})".format, inner, st.sampled_from("1 0 2 -2".split()), st.sampled_from("2 0 1".split())
        ),
        st.builds("{}({}, {})".format, st.sampled_from(["left", "right"]), inner, st.sampled_from("1 2 -1".split())),
        st.builds("replace({}, 'a', {})".format, inner, st.sampled_from(["''", "'bb'"])),
        st.builds("CASE WHEN {} THEN {} ELSE {} END".format, booleans(depth - 1), inner, inner),
        st.builds("{}({}, {})".format, st.sampled_from(["coalesce", "nullif", "greatest"]), inner, inner),
    )


@cache
def dates(depth: int) -> st.SearchStrategy[str]:
    if depth == 0:
        return DATES
    inner = dates(depth - 1)
    return st.one_of(
        DATES,
        st.builds("({} {} {})".format, inner, st.sampled_from("+-"), INTERVALS),
        st.builds("(d {} {})".format, st.sampled_from("+-"), st.sampled_from(["1", "i", "ti", "40000"])),
        st.builds("date_trunc('{}', {})".format, st.sampled_from(["year", "month", "week", "day", "hour"]), inner),
        st.builds("CAST({} AS {})".format, inner, st.sampled_from(["DATE", "TIMESTAMP"])),
        st.builds("coalesce({}, {})".format, inner, inner),
        st.builds("CASE WHEN {} THEN {} ELSE {} END".format, booleans(depth - 1), inner, inner),
    )


@cache
def booleans(depth: int) -> st.SearchStrategy[str]:
    if depth == 0:
        return BOOLEANS
    inner, number, text = booleans(depth - 1), numbers(depth - 1), texts(depth - 1)
    negation = st.sampled_from(["", "NOT "])
    return st.one_of(
        BOOLEANS,
        st.builds("({} {} {})".format, number, COMPARISONS, number),
        st.builds("({} {} {})".format, NUMBERS, COMPARISONS, CONSTANTS),
        st.builds("({} {} {})".format, text, COMPARISONS, TEXTS),
        st.builds("({} {} {})".format, dates(depth - 1), COMPARISONS, DATES),
        st.builds("({} {} {})".format, inner, COMPARISONS, inner),
        st.builds("({} {} '{}')".format, text, st.sampled_from(["LIKE", "NOT LIKE", "ILIKE"]), PATTERNS),
        st.builds("({} {}BETWEEN {} AND {})".format, number, negation, NUMBERS, NUMBERS),
        st.builds("({} {}IN ({}, {}))".format, number, negation, NUMBERS, NUMBERS),
        st.builds("({} {}IN ({}, {}, {}))".format, number, negation, CONSTANTS, CONSTANTS, CONSTANTS),
        st.builds("({} {}IN ('x', 'ab', {}))".format, text, negation, TEXTS),
        st.builds("({} {} {})".format, inner, st.sampled_from(["AND", "OR"]), inner),
        st.builds("(({}) IS {})".format, number, st.sampled_from(["NULL", "NOT NULL"])),
        st.builds("(({}) IS {})".format, inner, st.sampled_from(["TRUE", "NOT TRUE", "FALSE", "NOT FALSE", "NULL"])),
        st.builds("({} >= '2013-01-01')".format, DATES),
        st.builds("(NOT ({}))".format, inner),
        st.builds("coalesce({}, {})".format, inner, inner),
        st.builds("CASE WHEN {} THEN {} ELSE {} END".format, inner, inner, inner),
    )


@cache
def expressions(depth: int) -> st.SearchStrategy[str]:
    return st.one_of(numbers(depth), texts(depth), booleans(depth), dates(depth))


AGGREGATES = st.one_of(
    st.just("count(*)"),
    st.builds(
        "{}({})".format,
        st.sampled_from(["sum", "avg", "min", "MAX", "count", "stddev", "any_value", "first"]),
        numbers(1),
    ),
    st.builds("{}({})".format, st.sampled_from(["min", "max", "count", "any_value"]), expressions(1)),
    st.builds("{}({})".format, st.sampled_from(["bool_and", "bool_or"]), booleans(1)),
    st.builds("count(DISTINCT {})".format, expressions(1)),
    st.builds(
        "{}({})".format, st.sampled_from(["median", "bit_or", "bit_xor", "bit_and"]), st.sampled_from(["ti", "si", "i"])
    ),
    st.builds("quantile_disc({}, {})".format, numbers(1) | DATES, st.sampled_from(["0.25", "0.9", "1"])),
    st.builds(
        "string_agg({0}, '-' ORDER BY {0}, {1})".format, st.sampled_from(["s", "upper(s)", "substr(s, 1, 2)"]), DATES
    ),
    st.builds("sum(DISTINCT {})".format, NUMBERS),
    st.builds("{}({}) FILTER (WHERE {})".format, st.sampled_from(["sum", "count", "min", "avg"]), NUMBERS, booleans(1)),
    st.builds("count(*) FILTER ({})".format, booleans(1)),
    st.builds("{}({})".format, st.sampled_from(["min", "max"]), texts(0) | DATES),
    st.builds("sum({}) + count(*)".format, st.sampled_from(["ti", "si", "a", "b"])),
)

KEYS = st.one_of(st.sampled_from(["ti", "si", "i", "bi", "f", "d92", "x", "s", "d", "ts", "a", "b"]), expressions(1))
WHERE = st.one_of(st.just(""), st.builds(" WHERE {}".format, booleans(2)))
SEVERAL_KEYS = st.lists(KEYS, max_size=3)
SEVERAL_AGGREGATES = st.lists(AGGREGATES, min_size=1, max_size=3)
SEVERAL_ITEMS = st.lists(expressions(2), min_size=1, max_size=4)
DIRECTIONS = st.sampled_from(["", " DESC", " ASC NULLS FIRST", " DESC NULLS FIRST", " NULLS LAST", " DESC NULLS LAST"])


@dataclass(frozen=True)
class RandomQuery:
    """A query without its LIMIT, its LIMIT clause, and the positions of the columns that its ORDER BY names first."""

    sql: str
    limit: str = ""
    ordered: tuple[int, ...] = ()


@st.composite
def ordering(draw: st.DrawFn, columns: int) -> tuple[str, tuple[int, ...]]:
    """An ORDER BY clause over the columns of a result, and their positions."""
    chosen = draw(st.lists(st.integers(1, columns), max_size=2, unique=True))
    if not chosen:
        return draw(st.sampled_from([("", ()), (" ORDER BY ALL", tuple(range(columns)))]))
    keys = ", ".join(f"{position}{draw(DIRECTIONS)}" for position in chosen)
    return f" ORDER BY {keys}", tuple(position - 1 for position in chosen)


@st.composite
def grouped(draw: st.DrawFn) -> tuple[str, int]:
    """A query with aggregates, with its number of columns."""
    where = draw(WHERE)
    keys, aggregates = draw(SEVERAL_KEYS), draw(SEVERAL_AGGREGATES)
    names = [f"{key} AS k{index}" if draw(st.booleans()) else key for index, key in enumerate(keys)]
    numbered = ", ".join(str(i + 1) for i in range(len(keys)))
    sets = [
        f"ROLLUP ({numbered})",
        f"CUBE ({numbered})",
        f"GROUPING SETS (({numbered}), (), 1)",
        f"1, ROLLUP ({numbered})",
    ]
    group = " GROUP BY " + draw(
        st.sampled_from([numbered, numbered, "ALL", "ALL", *(sets if len(set(keys)) == len(keys) else [])])
    )
    having = draw(
        st.sampled_from(["", " HAVING count(*) > 1", " HAVING sum(i) > 5 OR max(s) = 'x'", " HAVING min(d) IS NULL"])
    )
    sql = f"SELECT {', '.join([*names, *aggregates])} FROM t{where}{group if keys else ''}{having}"
    return sql, len(keys) + len(aggregates)


@st.composite
def plain(draw: st.DrawFn) -> tuple[str, int]:
    """A query over rows, perhaps DISTINCT, with its number of columns."""
    where = draw(WHERE)
    items = draw(SEVERAL_ITEMS)
    distinct = draw(st.sampled_from(["", "", "DISTINCT "]))
    return f"SELECT {distinct}{', '.join(items)} FROM t{where}", len(items)


SET_OPERATIONS = st.sampled_from(["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"])


@st.composite
def set_operation(draw: st.DrawFn) -> tuple[str, int]:
    """Rows of `t` in two or three parts that overlap, put together, with the number of columns."""
    items = draw(st.lists(KEYS, min_size=1, max_size=3))
    if draw(st.integers(0, 4)) == 0:
        names = [f"{item} AS c{index}" for index, item in enumerate(items)]
        fewer = draw(st.permutations(names).map(lambda order: order[: max(1, len(order) - 1)]))
        word = draw(st.sampled_from(["UNION BY NAME", "UNION ALL BY NAME"]))
        sql = f"SELECT {', '.join(names)} FROM t{draw(WHERE)} {word} SELECT {', '.join(fewer)} FROM t{draw(WHERE)}"
        return sql, len(items)
    one, two, three = (f"SELECT {', '.join(items)} FROM t{draw(WHERE)}" for _ in range(3))
    word, other = draw(SET_OPERATIONS), draw(SET_OPERATIONS)
    sql = draw(
        st.sampled_from(
            [
                f"{one} {word} {two}",
                f"{one} {word} {two} {other} {three}",
                f"({one} {word} {two}) {other} {three}",
                f"{one} {word} ({two} {other} {three})",
            ]
        )
    )
    return sql, len(items)


GROUPED_OR_PLAIN = grouped() | plain()


@st.composite
def queries(draw: st.DrawFn) -> RandomQuery:
    """A query over `t`: grouped or not, perhaps over a subquery, a CTE or a UNION."""
    sql, columns = draw(GROUPED_OR_PLAIN | set_operation() if draw(st.booleans()) else GROUPED_OR_PLAIN)
    shape = draw(st.sampled_from(["plain"] * 4 + ["subquery", "union", "cte", "filtered"]))
    if shape == "subquery":
        sql = f"SELECT * FROM ({sql}) q"
    elif shape == "filtered":
        source = draw(
            st.sampled_from(["t WHERE i > 3", "t WHERE s IS NOT NULL", "t LIMIT 700", "t LIMIT 10 OFFSET 1020"])
        )
        sql = f"WITH t AS (SELECT * FROM {source}) {sql}"
    elif shape == "union":
        sql = f"({sql}) UNION ALL ({sql})"
    elif shape == "cte":
        sql, columns = f"WITH c AS ({sql}) SELECT count(*), * FROM c GROUP BY ALL", columns + 1
    order, ordered = draw(ordering(columns))
    limit = draw(
        st.sampled_from(["", "", " LIMIT 5", " LIMIT 3 OFFSET 1", " OFFSET 2", " LIMIT 0", " LIMIT 1030 OFFSET 1020"])
    )
    return RandomQuery(sql + order, limit, ordered)
