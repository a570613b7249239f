"""The questions, g1-g10 over x, and j1-j5 (duckdblabs/db-benchmark, groupby-duckdb.R and join-duckdb.R)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.workload import Query, Workload

GROUPBY = (
    Query("g1", "id1, sum(v1) AS v1", rest="GROUP BY id1"),
    Query("g2", "id1, id2, sum(v1) AS v1", rest="GROUP BY id1, id2"),
    Query("g3", "id3, sum(v1) AS v1, avg(v3) AS v3", rest="GROUP BY id3"),
    Query("g4", "id4, avg(v1) AS v1, avg(v2) AS v2, avg(v3) AS v3", rest="GROUP BY id4"),
    Query("g5", "id6, sum(v1) AS v1, sum(v2) AS v2, sum(v3) AS v3", rest="GROUP BY id6"),
    Query("g6", "id4, id5, median(v3) AS median_v3, stddev(v3) AS sd_v3", rest="GROUP BY id4, id5"),
    Query("g7", "id3, max(v1) - min(v2) AS range_v1_v2", rest="GROUP BY id3"),
    Query(
        "g8",
        "",
        "order_v3 <= 2",
        statement="SELECT id6, v3 AS largest2_v3 FROM (SELECT id6, v3, row_number() OVER "
        "(PARTITION BY id6 ORDER BY v3 DESC) AS order_v3 FROM x WHERE v3 IS NOT NULL) AS ordered",
    ),
    Query("g9", "id2, id4, pow(corr(v1, v2), 2) AS r2", rest="GROUP BY id2, id4"),
    Query(
        "g10",
        "id1, id2, id3, id4, id5, id6, sum(v3) AS v3, count(*) AS count",
        rest="GROUP BY id1, id2, id3, id4, id5, id6",
        in_mean=False,  # ten million groups: one for themselves
    ),
)

JOIN = tuple(
    Query(name, "", statement=f"SELECT {columns} FROM {source}")
    for name, columns, source in (
        ("j1", "x.*, small.id4 AS small_id4, v2", "x JOIN small USING (id1)"),
        ("j2", "x.*, medium.id1 AS m1, medium.id4 AS m4, medium.id5 AS m5, v2", "x JOIN medium USING (id2)"),
        ("j3", "x.*, medium.id1 AS m1, medium.id4 AS m4, medium.id5 AS m5, v2", "x LEFT JOIN medium USING (id2)"),
        ("j4", "x.*, medium.id1 AS m1, medium.id2 AS m2, medium.id4 AS m4, v2", "x JOIN medium USING (id5)"),
        (
            "j5",
            "x.*, big.id1 AS b1, big.id2 AS b2, big.id4 AS b4, big.id5 AS b5, big.id6 AS b6, v2",
            "x JOIN big USING (id3)",
        ),
    )
)


def make_workload(
    name: str, queries: Sequence[Query], tables: Mapping[str, str], rows: int, only: Sequence[str] = ()
) -> Workload:
    """The workload `h2o/<name>`.  rows: x's; `only` names the queries to keep, all by default."""
    kept = tuple(query for query in queries if not only or query.name in only)
    others = {table: path for table, path in tables.items() if table != "x"}
    return Workload(f"h2o/{name}", __package__, "x", tables["x"], rows, kept, Query("warmup", "max(v1)"), others=others)
