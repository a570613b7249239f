"""Forty questions that the reports of web analytics ask, over `hits`: the families of ClickBench, in our own words.

Literals vary from repeat to repeat where a question has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.weblog import generator
from benchmarks.workload import Literal, Query, Workload

USERS = "count(DISTINCT user_id) AS users"
HOST = r"regexp_extract(referer, '^https?://(?:www\.)?([^/]+)/', 1)"
WIDTHS = ", ".join(f"sum(resolution_width + {number}) AS s{number}" for number in range(40))
SITE: dict[str, tuple[Literal, ...]] = {"site": (1, 2, 3, 4), "day": ("05", "06", "07", "08")}
ONE_SITE = "counter_id = {site} AND event_date >= DATE '2025-03-{day}' AND event_date < DATE '2025-03-25'"
SECTION: dict[str, tuple[Literal, ...]] = {"section": ("cart", "forum", "sport", "realty")}


def top(
    name: str,
    select: str,
    where: str = "",
    group: str = "",
    by: str = "views",
    literals: Mapping[str, tuple[Literal, ...]] | None = None,
) -> Query:
    """The ten groups with the most of `by`, a column of the result."""
    rest = f"GROUP BY {group} ORDER BY {by} DESC"
    return Query(name, select, where, rest, order_by=(by,), limit=10, literals=literals or {})


def first(
    name: str, select: str, where: str, order: str, literals: Mapping[str, tuple[Literal, ...]] | None = None
) -> Query:
    """The first ten rows in the order of one column of the result."""
    return Query(name, select, where, f"ORDER BY {order}", order_by=(order,), limit=10, literals=literals or {})


QUERIES = (
    # How much, over all rows.
    Query("W1", "count(*) AS views", in_mean=False),
    Query("W2", "count(*) AS views", "adv_engine <> {engine}", literals={"engine": (0, 3, 4, 5)}),
    Query("W3", "sum(adv_engine) AS clicks, count(*) AS views, avg(resolution_width) AS width"),
    Query("W4", "avg(user_id) AS mean"),
    Query("W5", USERS),
    Query("W6", "count(DISTINCT search_phrase) AS phrases"),
    Query("W7", "min(event_date) AS first, max(event_date) AS last, min(sent_bytes) AS least, max(load_ms) AS slowest"),
    Query("W8", WIDTHS),
    Query(
        "W9",
        "count(*) AS views, avg(load_ms) AS mean, stddev(load_ms) AS deviation",
        "load_ms < {ms}",
        literals={"ms": (1_000, 900, 800, 700)},
    ),
    # Groups of numbers: 20 to millions.
    Query(
        "W10",
        "adv_engine, count(*) AS views",
        "adv_engine <> 0",
        "GROUP BY adv_engine ORDER BY views DESC",
        order_by=("views",),
    ),
    top("W11", f"region_id, {USERS}", group="region_id", by="users"),
    top(
        "W12",
        f"region_id, sum(adv_engine) AS clicks, count(*) AS views, avg(resolution_width) AS width, {USERS}",
        group="region_id",
    ),
    top("W13", "user_id, count(*) AS views", group="user_id"),
    top(
        "W14",
        "user_id, extract(minute FROM event_time) AS minute, search_phrase, count(*) AS views",
        group="user_id, minute, search_phrase",
    ),
    top(
        "W15",
        "search_engine, client_ip, count(*) AS views, sum(sent_bytes) AS sent, avg(resolution_width) AS width",
        "search_phrase <> ''",
        "search_engine, client_ip",
    ),
    top("W16", "watch_id, client_ip, count(*) AS views, avg(resolution_width) AS width", group="watch_id, client_ip"),
    top(
        "W17",
        "client_ip, client_ip - 1 AS a, client_ip - 2 AS b, client_ip - 3 AS c, count(*) AS views",
        group="client_ip, a, b, c",
    ),
    top(
        "W18",
        "resolution_width, resolution_height, window_width // 100 AS hundreds, count(*) AS views",
        group="resolution_width, resolution_height, hundreds",
    ),
    Query(
        "W19",
        "os, browser, count(*) AS views, avg(load_ms) AS mean, max(sent_bytes) AS most",
        "NOT is_download",
        "GROUP BY os, browser HAVING count(*) > {least}",
        literals={"least": (100, 110, 120, 130)},
    ),
    # Groups of texts.
    top("W20", f"mobile_model, {USERS}", "mobile_model <> ''", "mobile_model", by="users"),
    top("W21", f"mobile_phone, mobile_model, {USERS}", "mobile_model <> ''", "mobile_phone, mobile_model", by="users"),
    top("W22", "search_phrase, count(*) AS views", "search_phrase <> ''", "search_phrase"),
    top("W23", f"search_phrase, {USERS}", "search_phrase <> ''", "search_phrase", by="users"),
    top(
        "W24", "search_engine, search_phrase, count(*) AS views", "search_phrase <> ''", "search_engine, search_phrase"
    ),
    top("W25", "user_id, search_phrase, count(*) AS views", group="user_id, search_phrase"),
    top("W26", "url, count(*) AS views", group="url"),
    top("W27", "title, url, count(*) AS views", "NOT is_refresh", "title, url"),
    # Parts of texts.
    Query("W28", "count(*) AS views", "url LIKE '%/{section}/%'", literals=SECTION),
    top(
        "W29",
        "search_phrase, min(url) AS address, count(*) AS views",
        "url LIKE '%/{section}/%' AND search_phrase <> ''",
        "search_phrase",
        literals=SECTION,
    ),
    top(
        "W30",
        f"search_phrase, min(url) AS address, min(title) AS name, count(*) AS views, {USERS}",
        "title LIKE '%{section}%' AND url NOT LIKE '%.shop.%' AND search_phrase <> ''",
        "search_phrase",
        literals=SECTION,
    ),
    Query(
        "W31",
        "counter_id, avg(length(url)) AS mean, count(*) AS views",
        "url <> ''",
        "GROUP BY counter_id HAVING count(*) > {least} ORDER BY mean DESC",
        order_by=("mean",),
        limit=25,
        literals={"least": (1_000, 1_100, 1_200, 1_300)},
    ),
    Query(
        "W32",
        f"{HOST} AS host, avg(length(referer)) AS mean, count(*) AS views, min(referer) AS sample",
        "referer <> ''",
        "GROUP BY host HAVING count(*) > {least} ORDER BY mean DESC",
        order_by=("mean",),
        limit=25,
        literals={"least": (1_000, 1_100, 1_200, 1_300)},
    ),
    # A few rows of many.
    Query("W33", "user_id, event_time", "user_id = {user}", literals={"user": tuple(generator.users(range(100, 108)))}),
    first("W34", "event_time, url, title, user_id", "url LIKE '%/{section}/%'", "event_time", literals=SECTION),
    first("W35", "search_phrase", "search_phrase <> ''", "search_phrase"),
    # One site's reports.
    top("W36", "url, count(*) AS views", ONE_SITE + " AND NOT is_refresh AND url <> ''", "url", literals=SITE),
    top(
        "W37",
        "CASE WHEN search_engine = 0 AND adv_engine = 0 THEN referer ELSE '' END AS source, url, count(*) AS views",
        ONE_SITE,
        "source, url",
        literals=SITE,
    ),
    Query(
        "W38",
        "date_trunc('minute', event_time) AS minute, count(*) AS views",
        ONE_SITE + " AND NOT is_refresh",
        "GROUP BY minute ORDER BY minute",
        order_by=("minute",),
        literals=SITE,
    ),
    # Times and shares.
    Query(
        "W39",
        f"extract(isodow FROM event_time) AS weekday, extract(hour FROM event_time) AS hour, count(*) AS views, {USERS}",
        rest="GROUP BY weekday, hour ORDER BY weekday, hour",
        order_by=("weekday", "hour"),
    ),
    Query(
        "W40",
        "language, age, count(*) FILTER (WHERE adv_engine <> 0) AS clicks, count(*) FILTER (WHERE is_download) AS downloads, "
        "sum(CASE WHEN sex = 1 THEN load_ms ELSE 0 END) AS waited",
        rest="GROUP BY language, age ORDER BY language, age",
        order_by=("language", "age"),
    ),
)


def make_workload(path: str, rows: int, only: Sequence[str] = ()) -> Workload:
    """The workload over one Parquet file; `only` names the queries to keep, all by default."""
    kept = tuple(query for query in QUERIES if not only or query.name in only)
    return Workload("weblog", __package__, "hits", path, rows, kept, Query("warmup", "max(age)"))
