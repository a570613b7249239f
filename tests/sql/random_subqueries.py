"""Random queries whose subqueries look at rows outside: over the tables of `random_joins`, nested, in every clause."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.sql.random_joins import NUMBERS

INNER = "rt"  # the tables that subqueries read; the query around reads l
KEYS = ("u", "ti", "i", "s", "c", "d92", "h")
VALUES = ("u", "ti", "s", "d", "x")


@st.composite
def correlations(draw: st.DrawFn, inner: str, outer: str) -> str:
    """A condition over a row inside and one outside."""
    key, other = draw(st.sampled_from(KEYS)), draw(st.sampled_from(["u", "ti", "i"]))
    return draw(
        st.sampled_from(
            [
                f"{inner}.{key} = {outer}.{key}",
                f"{inner}.{key} = {outer}.{key}",
                f"{outer}.{key} IS NOT DISTINCT FROM {inner}.{key}",
                f"{inner}.u = {outer}.{other}",
                f"{inner}.u = {outer}.u + 1",
                f"{inner}.u + 1 = {outer}.u AND {inner}.s <> {outer}.s",
                f"{inner}.u < {outer}.u AND {inner}.ti = {outer}.ti",
                f"{inner}.u BETWEEN {outer}.u - 2 AND {outer}.u",
                f"({inner}.u = {outer}.u OR {inner}.ti = {outer}.ti)",
                f"{inner}.f = {outer}.f",
                f"{outer}.x",
            ]
        )
    )


@st.composite
def conditions(draw: st.DrawFn, inner: str, outers: tuple[str, ...], depth: int) -> str:
    terms = [draw(correlations(inner, draw(st.sampled_from(outers)))) for _ in range(draw(st.integers(1, 2)))]
    if draw(st.booleans()):
        terms.append(
            draw(st.sampled_from([f"{inner}.u > 1", f"{inner}.x", f"{inner}.s IS NOT NULL", f"{inner}.ti < 3"]))
        )
    if depth < 2 and draw(st.integers(0, 2)) == 0:
        terms.append(draw(predicates((*outers, inner), depth + 1)))
    return " AND ".join(draw(st.permutations(terms)))


@st.composite
def rows(draw: st.DrawFn, outers: tuple[str, ...], column: str, depth: int) -> str:
    """A subquery of one column."""
    table = draw(st.sampled_from(INNER))
    inner = f"{table}{depth}"
    where = draw(conditions(inner, outers, depth))
    from_ = f"{table} AS {inner}"
    if draw(st.integers(0, 4)) == 0:
        kind = draw(st.sampled_from(["JOIN", "LEFT JOIN"]))
        from_ += (
            f" {kind} t AS j{depth} ON j{depth}.u = {inner}.u AND j{depth}.ti >= {draw(st.sampled_from(outers))}.ti"
        )
    return draw(
        st.sampled_from(
            [
                f"SELECT {inner}.{column} FROM {from_} WHERE {where}",
                f"SELECT {inner}.{column} FROM {from_} WHERE {where}",
                f"SELECT DISTINCT {inner}.{column} FROM {from_} WHERE {where}",
                f"SELECT max({inner}.{column}) FROM {from_} WHERE {where} GROUP BY {inner}.c, {inner}.x",
                f"SELECT min({inner}.{column}) FROM {from_} WHERE {where}",
                f"SELECT {inner}.{column} FROM {from_} WHERE {where} UNION ALL SELECT {outers[-1]}.{column}",
                f"SELECT {column} FROM (SELECT * FROM {from_.split(' JOIN ')[0].removesuffix(' LEFT')} WHERE {where}) AS d{depth}",
                f"SELECT {inner}.{column} FROM {from_} WHERE {where} EXCEPT SELECT {column} FROM t WHERE t.u = {outers[0]}.u",
            ]
        )
    )


@st.composite
def values(draw: st.DrawFn, outers: tuple[str, ...], depth: int = 0) -> str:
    """A subquery of at most one row."""
    table = draw(st.sampled_from(INNER))
    inner, outer = f"{table}{depth}", draw(st.sampled_from(outers))
    where = draw(conditions(inner, outers, depth))
    column, number = draw(st.sampled_from(VALUES)), draw(st.sampled_from(["u", "ti"]))
    from_ = f"FROM {table} AS {inner} WHERE {where}"
    return draw(
        st.sampled_from(
            [
                f"(SELECT count(*) {from_})",
                f"(SELECT count({inner}.{column}) + {outer}.u {from_})",
                f"(SELECT max({inner}.{column}) {from_})",
                f"(SELECT coalesce(sum({inner}.{number}), -7) {from_})",
                f"(SELECT sum({inner}.{number} + {outer}.{number}) {from_})",
                f"(SELECT count(DISTINCT {inner}.{column}) {from_} HAVING count(*) > 1)",
                f"(SELECT {inner}.{column} {from_} ORDER BY {inner}.u DESC, {inner}.{column} LIMIT 1)",
                f"(SELECT {outer}.{column} {from_} LIMIT 1)",
                f"(SELECT max(n) FROM (SELECT {inner}.ti, count(*) AS n {from_} GROUP BY 1))",
            ]
        )
    )


@st.composite
def predicates(draw: st.DrawFn, outers: tuple[str, ...], depth: int = 0) -> str:
    outer, column = outers[-1], draw(st.sampled_from(VALUES))
    number = draw(st.sampled_from(["u", "ti", "i"]))
    kind = draw(st.sampled_from(["exists", "exists", "in", "in", "any", "compare", "rows"]))
    no = draw(st.sampled_from(["", "NOT "]))
    if kind == "exists":
        return f"{no}EXISTS ({draw(rows(outers, column, depth))})"
    if kind == "in":
        return f"{outer}.{column} {no}IN ({draw(rows(outers, column, depth))})"
    if kind == "any":
        operator = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
        return (
            f"{outer}.{number} {operator} {draw(st.sampled_from(['ANY', 'ALL']))} ({draw(rows(outers, number, depth))})"
        )
    if kind == "rows":
        inner = f"r{depth}"
        where = draw(conditions(inner, outers, depth))
        return f"({outer}.ti, {outer}.s) {no}IN (SELECT {inner}.ti, {inner}.s FROM r AS {inner} WHERE {where})"
    return f"{outer}.u {draw(st.sampled_from(['=', '<', '>=']))} (SELECT count(*) FROM ({draw(rows(outers, column, depth))}) AS q{depth})"


@st.composite
def queries(draw: st.DrawFn) -> str:
    """A query over l with subqueries somewhere."""
    shape = draw(st.sampled_from(["where", "where", "select", "group", "having", "lateral", "on", "case"]))
    column = draw(st.sampled_from([*VALUES, *NUMBERS]))
    one, other = draw(values(("l",))), draw(predicates(("l",)))
    if shape == "where":
        return f"SELECT l.u, l.{column} FROM l WHERE {other}"
    if shape == "select":
        return f"SELECT l.u, {one} AS a, {other} AS b FROM l"
    if shape == "group":
        return f"SELECT {other} AS k, count(*) AS n, max({one}) AS m FROM l GROUP BY 1"
    if shape == "having":
        return f"SELECT l.u, count(*) AS n FROM l GROUP BY l.u, l.ti, l.i, l.s, l.d, l.x, l.c, l.d92, l.h, l.f HAVING {other}"
    if shape == "case":
        return f"SELECT l.u, CASE WHEN {other} THEN 1 WHEN l.x THEN 2 END AS c FROM l WHERE l.u % 2 = 0 OR {other}"
    if shape == "on":
        kind = draw(st.sampled_from(["JOIN", "LEFT JOIN", "RIGHT JOIN"]))
        on = f"l.u = z.u AND {draw(predicates(('l', 'z')))}"
        behind = draw(st.sampled_from(["JOIN", "LEFT JOIN", "RIGHT JOIN"]))
        return f"SELECT l.u, z.u AS v, y.u AS w FROM l {kind} t AS z ON {on} {behind} r AS y ON y.ti = l.u"
    join = draw(st.sampled_from([",", "CROSS JOIN", "LEFT JOIN"]))
    on = " ON true" if join == "LEFT JOIN" else ""
    name = draw(st.sampled_from(VALUES))
    return f"SELECT l.u, z.* FROM l {join} LATERAL ({draw(rows(('l',), name, 0))}) AS z(q){on}"
