"""Random databases and random queries over them, of all that SQL puts together: joins, subqueries, groups, windows, sets.

Everything follows from a seed: `Generator(seed)` makes the same tables and the same queries whenever it is asked.  Expressions
are of kinds that cannot fail, so that DuckDB and we have the same errors, none: numbers that are added are doubles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

KINDS = {
    "ti": pa.int8(),
    "i": pa.int32(),
    "bi": pa.int64(),
    "h": pa.decimal128(38, 0),
    "d92": pa.decimal128(9, 2),
    "d304": pa.decimal128(30, 4),
    "r": pa.float32(),
    "f": pa.float64(),
    "x": pa.bool_(),
    "s": pa.string(),
    "d": pa.date32(),
    "ts": pa.timestamp("us"),
}
NUMBERS, INTEGERS, TIMES = ("ti", "i", "bi", "h", "d92", "d304", "r", "f"), ("ti", "i", "bi"), ("d", "ts")
TEXTS = ("", "a", "ab", "b", "xyz", "über", "it's", "%", "A")
ENDS = {"ti": 2**7, "i": 2**31, "bi": 2**63, "h": 2**63, "d92": 10**9, "d304": 2**63, "d": 20_000, "ts": 10**15}
ROWS = (0, 1, 2, 7, 33, 65, 130)
COMPARISONS = ("=", "=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")


def random_table(random: Random) -> pa.Table:
    """Two to six columns of random kinds, named by them; of few values or many, some of NULLs, some with the ends of a type."""
    rows = random.choice(ROWS)
    columns = {}
    for number in range(random.randint(2, 6)):
        kind = random.choice(list(KINDS)) if number else random.choice(INTEGERS)
        values = _values(random, kind, rows, random.choice([3, 8, 100]), random.random() < 0.2)
        share = random.choice([0, 0.1, 0.4, 1.0])
        columns[f"{kind}_{number}"] = pa.array([None if random.random() < share else v for v in values], KINDS[kind])
    return pa.table(columns)


def _values(random: Random, kind: str, rows: int, most: int, extreme: bool) -> list[Any]:
    if kind == "x":
        return [random.random() < 0.5 for _ in range(rows)]
    if kind == "s":
        return [random.choice(TEXTS) if most < 100 else f"{random.choice(TEXTS)}{n}" for n in range(rows)]
    if kind in ("r", "f"):
        ends = [float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1e30]
        return [
            random.choice(ends) if extreme and random.random() < 0.4 else random.randint(-most, most) / 4
            for _ in range(rows)
        ]
    values = [min(max(random.randint(-most // 2, most), -127), 127) for _ in range(rows)]
    if extreme:
        values = [random.choice([1 - ENDS[kind], ENDS[kind] - 1]) if random.random() < 0.2 else v for v in values]
    scale = {"d92": 2, "d304": 4}.get(kind)
    return (
        [Decimal(v).scaleb(-scale) for v in values]
        if scale
        else [Decimal(v) for v in values]
        if kind == "h"
        else values
    )


@dataclass
class Relation:
    """What stands in FROM, and its columns: how they are called there, and their kinds."""

    sql: str
    columns: list[tuple[str, str]]


@dataclass
class Generator:
    """Tables and queries of one seed."""

    seed: int
    tables: dict[str, pa.Table] = field(init=False)

    def __post_init__(self) -> None:
        random = Random(f"{self.seed} tables")
        self.tables = {name: random_table(random) for name in "abcd"[: random.randint(2, 4)]}

    def query(self, number: int) -> str:
        """The query of a number: its rows are the same in whatever order."""
        return Queries(Random(f"{self.seed} {number}"), self.tables).query()

    def filtered(self, number: int) -> tuple[Relation, str]:
        """A relation and a condition over it, that of a number."""
        queries = Queries(Random(f"{self.seed} filter {number}"), self.tables)
        relation = queries.relation(2)
        return relation, queries.condition(relation.columns, 2)


class Queries:
    """Makes one query."""

    def __init__(self, random: Random, tables: dict[str, pa.Table]) -> None:
        self.random = random
        self.tables = tables
        self.names = 0

    def name(self) -> str:
        self.names += 1
        return f"q{self.names}"

    def one_of(self, *makers: Callable[[], str]) -> str:
        return self.random.choice(makers)()

    # ------------------------------------------------------------------------------------------- expressions

    def of(self, columns: list[tuple[str, str]], kinds: tuple[str, ...]) -> str | None:
        found = [name for name, kind in columns if kind in kinds]
        return self.random.choice(found) if found else None

    def number(self, columns: list[tuple[str, str]], depth: int) -> str:
        leaf = self.of(columns, NUMBERS) or self.random.choice(["0", "1", "-3", "2.5", "1e3", "NULL::INTEGER"])
        if depth == 0 or self.random.random() < 0.5:
            return leaf

        def again() -> str:
            return self.number(columns, depth - 1)

        return self.one_of(
            lambda: f"({again()}::DOUBLE {self.random.choice('+-*')} {again()}::DOUBLE)",
            lambda: f"coalesce({again()}, {again()})",
            lambda: f"nullif({again()}, {again()})",
            lambda: f"greatest({again()}, {again()})",
            lambda: f"CASE WHEN {self.condition(columns, depth - 1)} THEN {again()} ELSE {again()} END",
            lambda: f"length({self.text(columns, depth - 1)})",
            lambda: f"month({self.time(columns)})",
        )

    def text(self, columns: list[tuple[str, str]], depth: int) -> str:
        leaf = self.of(columns, ("s",)) or self.random.choice(["'a'", "''", "'xyz'", "NULL::VARCHAR"])
        if depth == 0 or self.random.random() < 0.6:
            return leaf
        inner = self.text(columns, depth - 1)
        return self.one_of(
            lambda: f"upper({inner})",
            lambda: f"({inner} || {self.text(columns, 0)})",
            lambda: f"coalesce({inner}, 'none')",
            lambda: f"substring({inner}, 1, 2)",
        )

    def time(self, columns: list[tuple[str, str]]) -> str:
        return self.of(columns, TIMES) or self.random.choice(["DATE '1970-02-01'", "TIMESTAMP '1969-12-31 10:00:00'"])

    def condition(self, columns: list[tuple[str, str]], depth: int) -> str:
        operator = self.random.choice(COMPARISONS)
        no = self.random.choice(["", "NOT "])
        leaves: list[Callable[[], str]] = [
            lambda: f"({self.number(columns, depth)} {operator} {self.number(columns, depth)})",
            lambda: f"({self.number(columns, 0)} {operator} {self.number([], 0)})",
            lambda: f"({self.text(columns, depth)} {operator} {self.text(columns, 0)})",
            lambda: f"({self.time(columns)} {operator} {self.time(columns)})",
            lambda: self.of(columns, ("x",)) or "TRUE",
            lambda: f"({self.number(columns, 0)} IS {no}NULL)",
            lambda: f"({self.number(columns, 0)} {no}BETWEEN {self.number(columns, 0)} AND {self.number([], 0)})",
            lambda: f"({self.number(columns, 0)} {no}IN (1, 2, NULL, {self.number(columns, 0)}))",
            lambda: f"({self.text(columns, 0)} {no}LIKE '{self.random.choice(['a%', '%b%', '_', '%'])}')",
        ]
        if depth == 0:
            return self.one_of(*leaves)
        return self.one_of(
            *leaves,
            lambda: f"(NOT {self.condition(columns, depth - 1)})",
            lambda: f"({self.condition(columns, depth - 1)} AND {self.condition(columns, depth - 1)})",
            lambda: f"({self.condition(columns, depth - 1)} OR {self.condition(columns, depth - 1)})",
            lambda: f"({self.condition(columns, depth - 1)} IS {no}TRUE)",
            lambda: self.with_subquery(columns),
            lambda: self.with_subquery(columns),
        )

    def with_subquery(self, columns: list[tuple[str, str]]) -> str:
        """A condition with a subquery, which looks at the row outside more often than not."""
        inner = self.table()
        outside = columns if self.random.random() < 0.7 else []
        where = self.condition([*inner.columns, *outside], 0)
        if self.random.random() < 0.3:
            where = f"{where} AND {self.condition(inner.columns, 0)}"
        from_ = f"FROM {inner.sql} WHERE {where}"
        number, no = self.number(columns, 0), self.random.choice(["", "NOT "])
        operator = self.random.choice(["=", "<>", "<", "<=", ">", ">="])
        value = self.number(inner.columns, 0)
        return self.one_of(
            lambda: f"({no}EXISTS (SELECT 1 {from_}))",
            lambda: f"({number} {no}IN (SELECT {value} {from_}))",
            lambda: f"({number} {operator} {self.random.choice(['ANY', 'ALL'])} (SELECT {value} {from_}))",
            lambda: f"({number} {operator} (SELECT {self.random.choice(['min', 'max', 'count'])}({value}) {from_}))",
            lambda: f"({number} {operator} (SELECT count(*) FROM (SELECT DISTINCT {value} {from_}) AS {self.name()}))",
        )

    # ------------------------------------------------------------------------------------------- relations

    def table(self) -> Relation:
        name, alias = self.random.choice(list(self.tables)), self.name()
        columns = [(f"{alias}.{column}", column.rpartition("_")[0]) for column in self.tables[name].column_names]
        return Relation(f"{name} AS {alias}", columns)

    def derived(self, sql: str, kinds: list[str]) -> Relation:
        """A query as a relation, its columns renamed."""
        alias = self.name()
        names = [f"{kind}_{at}" for at, kind in enumerate(kinds)]
        return Relation(
            f"({sql}) AS {alias}({', '.join(names)})",
            [(f"{alias}.{name}", kind) for name, kind in zip(names, kinds, strict=True)],
        )

    def relation(self, depth: int) -> Relation:
        choice = self.random.random()
        if depth == 0 or choice < 0.25:
            return self.table()
        if choice < 0.65:
            return self.join(depth)
        if choice < 0.8:
            inner = self.relation(depth - 1)
            chosen = [self.random.choice(inner.columns) for _ in range(self.random.randint(1, 3))]
            items = ", ".join(name for name, _ in chosen)
            where = self.condition(inner.columns, 0)
            distinct = self.random.choice(["", "DISTINCT "])
            return self.derived(
                f"SELECT {distinct}{items} FROM {inner.sql} WHERE {where}", [kind for _, kind in chosen]
            )
        if choice < 0.9:
            inner = self.relation(depth - 1)
            key, kind = self.random.choice(inner.columns)
            value = self.number(inner.columns, 0)
            return self.derived(
                f"SELECT {key}, count(*), count({value}) FROM {inner.sql} GROUP BY {key}", [kind, "bi", "bi"]
            )
        one, other = self.table(), self.table()
        kinds = [kind for kind in KINDS if self.of(one.columns, (kind,)) and self.of(other.columns, (kind,))]
        if not kinds:
            return one
        word = self.random.choice(["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"])
        sides = [f"SELECT {', '.join(str(self.of(s.columns, (k,))) for k in kinds)} FROM {s.sql}" for s in (one, other)]
        return self.derived(f" {word} ".join(sides), kinds)

    def join(self, depth: int) -> Relation:
        left, right = self.relation(depth - 1), self.relation(depth - 1)
        if " JOIN " in right.sql.split("(", 1)[0]:
            right = Relation(f"({right.sql})", right.columns)
        both = [*left.columns, *right.columns]
        kind = self.random.choice(
            [
                "JOIN",
                "JOIN",
                "LEFT JOIN",
                "LEFT JOIN",
                "RIGHT JOIN",
                "FULL JOIN",
                "SEMI JOIN",
                "ANTI JOIN",
                "CROSS JOIN",
                "LATERAL",
                "ASOF",
            ]
        )
        if kind == "CROSS JOIN":
            return Relation(f"{left.sql} CROSS JOIN {right.sql}", both)
        if kind == "LATERAL":
            return self.lateral(left)
        pairs = [(a, b) for a, k in left.columns for b, m in right.columns if k == m or {k, m} <= {*NUMBERS}]
        equal = " = ".join(self.random.choice(pairs)) if pairs else "TRUE"
        if kind == "ASOF":
            ordered = [(a, b) for a, k in left.columns for b, m in right.columns if k == m and k in INTEGERS]
            if not ordered:
                return Relation(f"{left.sql} CROSS JOIN {right.sql}", both)
            a, b = self.random.choice(ordered)
            # Of equal ones any may be the nearest: only what is compared comes out.
            kind, operator = (
                self.random.choice(["ASOF JOIN", "ASOF LEFT JOIN"]),
                self.random.choice(["<=", "<", ">", ">="]),
            )
            return Relation(f"{left.sql} {kind} {right.sql} ON {a} {operator} {b}", [*left.columns, (b, "bi")])
        more = self.condition(both, 0)
        on = self.random.choice([equal, equal, f"{equal} AND {more}", more])
        shown = left.columns if kind in ("SEMI JOIN", "ANTI JOIN") else both
        return Relation(f"{left.sql} {kind} {right.sql} ON {on}", shown)

    def lateral(self, left: Relation) -> Relation:
        """The first rows of a table for each row on the left, by all that comes out, so that ties tell nothing."""
        inner, alias = self.table(), self.name()
        value, kind = self.random.choice(inner.columns)
        where = self.condition([*inner.columns, *left.columns], 0)
        limit = self.random.choice(["LIMIT 1", "LIMIT 2", "LIMIT 3 OFFSET 1", ""])
        rows = f"SELECT {value} AS v FROM {inner.sql} WHERE {where} ORDER BY 1 {limit}"
        join, on = self.random.choice([("CROSS JOIN", ""), ("LEFT JOIN", " ON TRUE")])
        return Relation(f"{left.sql} {join} LATERAL ({rows}) AS {alias}{on}", [*left.columns, (f"{alias}.v", kind)])

    # ------------------------------------------------------------------------------------------- queries

    def query(self) -> str:
        relation = self.relation(2)
        columns = relation.columns
        where = f" WHERE {self.condition(columns, 2)}" if self.random.random() < 0.6 else ""
        from_ = f"FROM {relation.sql}{where}"
        shape = self.random.choice(["rows", "rows", "groups", "groups", "windows", "first", "cte", "several keys"])
        if shape == "several keys":
            keys = [self.random.choice(columns)[0], self.text(columns, 1), self.number(columns, 1)]
            chosen = self.random.sample(keys, 2)
            inner = self.table()
            where = self.condition([*inner.columns, ("k0", "f" if chosen[0] == keys[2] else "s")], 0)
            rows = f"SELECT {chosen[0]} AS k0, {chosen[1]} AS k1, count(*) AS n, count({keys[2]}) AS m {from_} GROUP BY ALL"
            if chosen[0] == keys[0]:
                return rows
            return f"SELECT *, (SELECT count(*) FROM {inner.sql} WHERE {where}) AS c FROM ({rows}) AS {self.name()}"
        if shape == "cte":
            name, other = self.name(), self.name()
            items = " , ".join(f"{item} AS c{at}" for at, (item, _) in enumerate(columns[:3]))
            return (
                f"WITH {name} AS (SELECT {items} {from_}) SELECT * FROM {name} "
                f"{self.random.choice(['JOIN', 'LEFT JOIN', 'FULL JOIN', 'ANTI JOIN'])} "
                f"(SELECT c0 AS k, count(*) AS n FROM {name} GROUP BY c0) AS {other} ON {name}.c0 = {other}.k"
            )
        if shape == "groups":
            key = self.random.choice(
                [self.random.choice(columns)[0], self.number(columns, 1), self.condition(columns, 0)]
            )
            value, text = self.number(columns, 1), self.text(columns, 0)
            calls = self.random.sample(
                [
                    "count(*)",
                    f"count({value})",
                    f"min({value})",
                    f"max({text})",
                    f"count(DISTINCT {value})",
                    f"sum({self.of(columns, INTEGERS) or 1})",
                    f"bool_or({self.condition(columns, 0)})",
                    f"count(*) FILTER ({self.condition(columns, 0)})",
                ],
                3,
            )
            having = f" HAVING {self.condition([('count(*)', 'bi')], 0)}" if self.random.random() < 0.2 else ""
            return f"SELECT {key} AS k, {', '.join(calls)} {from_} GROUP BY 1{having}"
        items = [self.random.choice(columns)[0], self.number(columns, 2), self.text(columns, 1)]
        if shape == "windows":
            part, order = self.random.choice(columns)[0], self.random.choice(columns)[0]
            call = self.random.choice(["rank()", "dense_rank()", "count(*)", f"max({self.number(columns, 0)})"])
            items.append(f"{call} OVER (PARTITION BY {part} ORDER BY {order})")
        elif self.random.random() < 0.4:
            inner = self.table()
            where = self.condition([*inner.columns, *columns], 0)
            call = self.random.choice(["count(*)", f"max({self.random.choice(inner.columns)[0]})"])
            items.append(f"(SELECT {call} FROM {inner.sql} WHERE {where})")
        sql = f"SELECT {self.random.choice(['', '', 'DISTINCT '])}{', '.join(items)} {from_}"
        if shape == "first":
            return f"SELECT * FROM ({sql}) AS {self.name()} ORDER BY ALL LIMIT {self.random.randint(0, 9)}"
        return sql
