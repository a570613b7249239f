"""The 13 queries (`published.sql`); later repeats move a constant by a little, so that about as many rows stay."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.workload import Literal, Query, Workload

WARMUP = Query("warmup", "max(id)")


def around(value: int) -> tuple[Literal, ...]:
    """Eight constants, the published one first."""
    return tuple(value + offset for offset in (0, 1, -1, 2, -2, 3, -3, 4))


def make_queries() -> tuple[Query, ...]:
    """Queries 1-13, in order; 1-10 are an integer query and its float twin, in turn."""
    queries = []
    for suffix, first in (("i", 1), ("f", 2)):
        uniform, five, twenty = f"uniform{suffix}", f"normal{suffix}5", f"normal{suffix}20"
        none_is_zero = f"NOT {uniform} OR NOT {five} OR NOT {twenty}"
        low: dict[str, tuple[Literal, ...]] = {"low": around(60), "high": around(0)}
        queries += [
            Query(str(first), f"id, {uniform}, {five}", f"{uniform} > {{low}} AND {five} < {{high}}", literals=low),
            Query(
                str(first + 2),
                f"id, {uniform}, {five}",
                f"{uniform} > {{low}} AND {five} < {{high}}",
                literals={"low": around(-60), "high": around(5)},
            ),
            Query(
                str(first + 4),
                f"id, {five}, {twenty}",
                f"({twenty} + {{up}}) > ({uniform} - 10)",
                literals={"up": around(40)},
            ),
            Query(
                str(first + 6),
                f"id, {five}, {twenty}",
                f"{five} * {twenty} BETWEEN {{low}} AND {{high}}",
                literals={"low": around(-5), "high": around(5)},
            ),
            Query(str(first + 8), f"id, {uniform}, {five}, {twenty}", none_is_zero),
        ]
    queries += [
        Query("11", "SUM(normalf20)"),
        Query("12", "AVG(uniformi)", "uniformi > {low}", literals={"low": around(0)}),
        Query("13", "MAX(normali5), MIN(normali5)"),
    ]
    return tuple(sorted(queries, key=lambda query: int(query.name)))


def make_workload(path: str, rows: int, variant: str, only: Sequence[str] = ()) -> Workload:
    """The workload over one variant's Parquet file; `only` names the queries to keep, all by default."""
    kept = tuple(query for query in make_queries() if not only or query.name in only)
    return Workload(f"virginia/{variant}", __package__, "test", path, rows, kept, WARMUP, primary_key="id")
