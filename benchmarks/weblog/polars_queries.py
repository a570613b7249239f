"""W1-W40 as a Polars user writes them: name → (LazyFrame, literals) → LazyFrame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date

import polars as pl

from benchmarks.workload import Literal

Literals = Mapping[str, Literal]
Spelling = Callable[[pl.LazyFrame, Literals], pl.LazyFrame]
Condition = Callable[[Literals], pl.Expr]

VIEWS = pl.len().alias("views")
USERS = pl.col("user_id").n_unique().alias("users")
WIDTH = pl.col("resolution_width").mean().alias("width")
PHRASE, URL = pl.col("search_phrase"), pl.col("url")


def always(_: Literals) -> pl.Expr:
    return pl.lit(True)


def searched(_: Literals) -> pl.Expr:
    return PHRASE != ""


def in_section(literals: Literals) -> pl.Expr:
    return URL.str.contains(f"/{literals['section']}/", literal=True)


def at_one_site(literals: Literals) -> pl.Expr:
    day = pl.col("event_date")
    return (
        (pl.col("counter_id") == literals["site"])
        & (day >= date(2025, 3, int(literals["day"])))
        & (day < date(2025, 3, 25))
    )


def total(*values: pl.Expr, where: Condition = always) -> Spelling:
    """Aggregates of all rows that a condition keeps."""
    return lambda frame, literals: frame.filter(where(literals)).select(*values)


def grouped(keys: Sequence[str | pl.Expr], *values: pl.Expr, where: Condition = always) -> Spelling:
    """Aggregates of each group."""
    return lambda frame, literals: frame.filter(where(literals)).group_by(*keys).agg(*values)


def top(
    keys: Sequence[str | pl.Expr], *values: pl.Expr, where: Condition = always, by: str = "views", limit: int = 10
) -> Spelling:
    """The groups with the most of `by`."""
    groups = grouped(keys, *values, where=where)
    return lambda frame, literals: groups(frame, literals).sort(by, descending=True).limit(limit)


def having(spelling: Spelling, *order: str) -> Spelling:
    """Groups with more rows than the literal `least`."""

    def kept(frame: pl.LazyFrame, literals: Literals) -> pl.LazyFrame:
        groups = spelling(frame, literals).filter(pl.col("views") > literals["least"])
        return groups.sort(*order, descending=True).limit(25) if order else groups

    return kept


def ordered(spelling: Spelling, *order: str) -> Spelling:
    """Its rows in ascending order."""
    return lambda frame, literals: spelling(frame, literals).sort(*order)


QUERIES: dict[str, Spelling] = {
    "warmup": total(pl.col("age").max()),
    "W1": total(VIEWS),
    "W2": total(VIEWS, where=lambda literals: pl.col("adv_engine") != literals["engine"]),
    "W3": total(pl.col("adv_engine").sum().alias("clicks"), VIEWS, WIDTH),
    "W4": total(pl.col("user_id").mean().alias("mean")),
    "W5": total(USERS),
    "W6": total(PHRASE.n_unique().alias("phrases")),
    "W7": total(
        pl.col("event_date").min().alias("first"),
        pl.col("event_date").max().alias("last"),
        pl.col("sent_bytes").min().alias("least"),
        pl.col("load_ms").max().alias("slowest"),
    ),
    "W8": total(
        *((pl.col("resolution_width").cast(pl.Int64) + number).sum().alias(f"s{number}") for number in range(40))
    ),
    "W9": total(
        VIEWS,
        pl.col("load_ms").mean().alias("mean"),
        pl.col("load_ms").std().alias("deviation"),
        where=lambda literals: pl.col("load_ms") < literals["ms"],
    ),
    "W10": top(["adv_engine"], VIEWS, where=lambda _: pl.col("adv_engine") != 0, limit=20),
    "W11": top(["region_id"], USERS, by="users"),
    "W12": top(["region_id"], pl.col("adv_engine").sum().alias("clicks"), VIEWS, WIDTH, USERS),
    "W13": top(["user_id"], VIEWS),
    "W14": top(["user_id", pl.col("event_time").dt.minute().alias("minute"), "search_phrase"], VIEWS),
    "W15": top(["search_engine", "client_ip"], VIEWS, pl.col("sent_bytes").sum().alias("sent"), WIDTH, where=searched),
    "W16": top(["watch_id", "client_ip"], VIEWS, WIDTH),
    "W17": top(
        ["client_ip", *((pl.col("client_ip") - less).alias(name) for less, name in ((1, "a"), (2, "b"), (3, "c")))],
        VIEWS,
    ),
    "W18": top(["resolution_width", "resolution_height", (pl.col("window_width") // 100).alias("hundreds")], VIEWS),
    "W19": having(
        grouped(
            ["os", "browser"],
            VIEWS,
            pl.col("load_ms").mean().alias("mean"),
            pl.col("sent_bytes").max().alias("most"),
            where=lambda _: ~pl.col("is_download"),
        )
    ),
    "W20": top(["mobile_model"], USERS, where=lambda _: pl.col("mobile_model") != "", by="users"),
    "W21": top(["mobile_phone", "mobile_model"], USERS, where=lambda _: pl.col("mobile_model") != "", by="users"),
    "W22": top(["search_phrase"], VIEWS, where=searched),
    "W23": top(["search_phrase"], USERS, where=searched, by="users"),
    "W24": top(["search_engine", "search_phrase"], VIEWS, where=searched),
    "W25": top(["user_id", "search_phrase"], VIEWS),
    "W26": top(["url"], VIEWS),
    "W27": top(["title", "url"], VIEWS, where=lambda _: ~pl.col("is_refresh")),
    "W28": total(VIEWS, where=in_section),
    "W29": top(
        ["search_phrase"],
        URL.min().alias("address"),
        VIEWS,
        where=lambda literals: in_section(literals) & (PHRASE != ""),
    ),
    "W30": top(
        ["search_phrase"],
        URL.min().alias("address"),
        pl.col("title").min().alias("name"),
        VIEWS,
        USERS,
        where=lambda literals: (
            pl.col("title").str.contains(str(literals["section"]), literal=True)
            & ~URL.str.contains(".shop.", literal=True)
            & (PHRASE != "")
        ),
    ),
    "W31": having(
        grouped(["counter_id"], URL.str.len_chars().mean().alias("mean"), VIEWS, where=lambda _: URL != ""), "mean"
    ),
    "W32": having(
        grouped(
            [pl.col("referer").str.extract(r"^https?://(?:www\.)?([^/]+)/", 1).fill_null("").alias("host")],
            pl.col("referer").str.len_chars().mean().alias("mean"),
            VIEWS,
            pl.col("referer").min().alias("sample"),
            where=lambda _: pl.col("referer") != "",
        ),
        "mean",
    ),
    "W33": lambda frame, literals: frame.filter(pl.col("user_id") == literals["user"]).select("user_id", "event_time"),
    "W34": lambda frame, literals: (
        frame.filter(in_section(literals)).select("event_time", "url", "title", "user_id").sort("event_time").limit(10)
    ),
    "W35": lambda frame, literals: frame.filter(PHRASE != "").select("search_phrase").sort("search_phrase").limit(10),
    "W36": top(
        ["url"],
        VIEWS,
        where=lambda literals: at_one_site(literals) & ~pl.col("is_refresh") & (URL != ""),
    ),
    "W37": top(
        [
            pl.when((pl.col("search_engine") == 0) & (pl.col("adv_engine") == 0))
            .then(pl.col("referer"))
            .otherwise(pl.lit(""))
            .alias("source"),
            "url",
        ],
        VIEWS,
        where=at_one_site,
    ),
    "W38": ordered(
        grouped(
            [pl.col("event_time").dt.truncate("1m").alias("minute")],
            VIEWS,
            where=lambda literals: at_one_site(literals) & ~pl.col("is_refresh"),
        ),
        "minute",
    ),
    "W39": ordered(
        grouped(
            [pl.col("event_time").dt.weekday().alias("weekday"), pl.col("event_time").dt.hour().alias("hour")],
            VIEWS,
            USERS,
        ),
        "weekday",
        "hour",
    ),
    "W40": ordered(
        grouped(
            ["language", "age"],
            (pl.col("adv_engine") != 0).sum().alias("clicks"),
            pl.col("is_download").sum().alias("downloads"),
            pl.when(pl.col("sex") == 1).then(pl.col("load_ms")).otherwise(0).sum().alias("waited"),
        ),
        "language",
        "age",
    ),
}
