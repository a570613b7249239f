"""What is measured: a query with its literals, and a workload of queries over one table or several."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

Literal = str | int | float


@dataclass(frozen=True)
class Query:
    """One SELECT, in DuckDB's dialect, with `{slots}` where a literal varies from repeat to repeat.

    select, where, rest  the parts of the text over one table; `rest` holds GROUP BY and ORDER BY
    statement            the whole text instead, without LIMIT, where a query has more than one table
    order_by             names of the result columns that ORDER BY fixes; empty: any order is right
    limit                rows; kept apart, so that the answer without it can be asked for
    literals             slot → its values; repeat 0 is the published one, repeat k takes value k, round and round
    in_mean              False for a query that is reported but left out of the summary's means
    """

    name: str
    select: str
    where: str = ""
    rest: str = ""
    order_by: tuple[str, ...] = ()
    limit: int | None = None
    literals: Mapping[str, tuple[Literal, ...]] = field(default_factory=dict)
    in_mean: bool = True
    statement: str = ""

    def values(self, repeat: int) -> dict[str, Literal]:
        """The literals of one repeat: the same for every engine."""
        return {slot: choices[repeat % len(choices)] for slot, choices in self.literals.items()}

    def sql(self, table: str, repeat: int = 0, *, limited: bool = True) -> str:
        """The statement of one repeat; `limited=False` leaves LIMIT out."""
        parts = [self.statement or f"SELECT {self.select} FROM {table}"]
        if self.where:
            parts.append(f"WHERE {self.where}")
        if self.rest:
            parts.append(self.rest)
        if limited and self.limit is not None:
            parts.append(f"LIMIT {self.limit}")
        return self._filled(" ".join(parts), repeat)

    def counting(self) -> Query:
        """Counts the rows that WHERE keeps: the numerator of the selectivity."""
        return Query(f"{self.name} count", "count(*)", self.where, literals=self.literals)

    def _filled(self, text: str, repeat: int) -> str:
        escaped = {slot: str(value).replace("'", "''") for slot, value in self.values(repeat).items()}
        return text.format(**escaped)


_ORDER_AND_LIMIT = re.compile(r"\nORDER BY (?P<keys>[^()]*?)(\s+LIMIT (?P<limit>\d+))?$")


def read_statement(path: Path, name: str, literals: Mapping[str, tuple[Literal, ...]]) -> Query:
    """A query from a file of one statement, whose last lines may be ORDER BY and LIMIT; ORDER BY names result columns."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("--")]
    text = "\n".join(lines).strip().removesuffix(";")
    found = _ORDER_AND_LIMIT.search(text)
    keys = tuple(key.split()[0] for key in found["keys"].split(",")) if found else ()
    limit = int(found["limit"]) if found and found["limit"] else None
    if limit is not None:
        text = text[: text.rindex("LIMIT")].rstrip()
    return Query(name, "", statement=text, order_by=keys, limit=limit, literals=literals)


@dataclass(frozen=True)
class Workload:
    """Queries over a table, which lies in one Parquet file, and perhaps others beside it.

    name        as in the lines: "flights", "virginia/paper"
    package     the folder's import name; `<package>.polars_queries.QUERIES` spells the queries for Polars
    table       the table's name in the queries; of several, the largest
    path        Parquet file
    rows        rows in it
    others      name -> Parquet file of the other tables
    queries     in the order they run
    warmup      the unrelated query that each process answers before the first cold run
    primary_key for SQLite, which stores such a column as the row id
    """

    name: str
    package: str
    table: str
    path: str
    rows: int
    queries: tuple[Query, ...]
    warmup: Query
    primary_key: str | None = None
    others: Mapping[str, str] = field(default_factory=dict)

    @property
    def tables(self) -> dict[str, str]:
        """name -> Parquet file of all tables."""
        return {self.table: self.path, **self.others}

    def query(self, name: str) -> Query:
        """The query of that name.  Raises KeyError."""
        if name == self.warmup.name:
            return self.warmup
        return {query.name: query for query in self.queries}[name]


def shifted(first: str, step: timedelta, count: int = 8) -> tuple[str, ...]:
    """`count` timestamps as text, `YYYY-MM-DD HH:MM:SS`, each `step` after the one before."""
    start = datetime.fromisoformat(first)
    return tuple(str(start + step * position) for position in range(count))
