"""Makes the table `hits`, one row a page view, a row group at a time: 32 columns of the kinds that web analytics has.

The kinds and their skew follow ClickBench's table as published (github.com/ClickHouse/ClickBench): ids where a few take
most rows, texts that are mostly empty, addresses with nearly as many values as rows, flags, times in order.  All values
are ours: words and hosts are put together from short lists, so that addresses and titles compress no better than real ones.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.tables import table_of, write_chunks

FORMAT = 1  # part of the file's name: raise it when the same seed gives other rows
FIRST_SECOND = np.datetime64("2025-03-01T00:00:00")
DAYS = 31
COUNTERS, REGIONS, MODELS, BROWSERS = 6_000, 4_000, 160, 80
USER_SALT = 2
EMPTY_PHRASES, EMPTY_REFERERS, WITHOUT_ADVERTISEMENT = 0.85, 0.2, 0.97

SYLLABLES = "an bel cor dat el fen gar hil is jo kan lor mi nor os pel qui ran sel tor un vel wes xi yor zan".split()
SECTIONS = "news catalog cart search forum blog video photo weather sport games maps mail job auto realty".split()
ENDINGS = ("example", "shop.example", "news.example", "co.example", "blog.example")
SEARCHERS = ("find.example", "seek.example", "lookfor.example", "ask.example")
ADJECTIVES = "cheap best new used free sale online local fast original large small".split()
RESOLUTIONS = ((1920, 1080), (1366, 768), (1536, 864), (1280, 1024), (390, 844), (360, 800), (768, 1024), (2560, 1440))


def write(folder: Path, rows: int, seed: int) -> str:
    """The Parquet file of the table, made unless it is there."""
    return write_chunks(
        folder / f"weblog-{rows}-{seed}-{FORMAT}.parquet", rows, lambda start, count: views(start, count, rows, seed)
    )


def views(start: int, count: int, rows: int, seed: int) -> pa.Table:
    """Rows `start` and on, in order of time."""
    rng = np.random.default_rng([seed, start])
    second = (np.sort(rng.random(count)) * count + start) * (DAYS * 86_400) / rows
    times = FIRST_SECOND + second.astype("timedelta64[s]")
    visitors = skewed(rng, max(10, rows // 6), count, 1.15)
    counters, regions = skewed(rng, COUNTERS, count, 1.3), skewed(rng, REGIONS, count, 1.4)
    pages = skewed(rng, max(10, rows // 4), count, 1.05)
    mobile = rng.random(count) < 0.3
    phrase = searched(rng, max(10, rows // 8), count)
    found_by = np.where(np.asarray(pc.equal(phrase, "")), 0, 1 + rng.integers(0, len(SEARCHERS), count)).astype(
        np.int16
    )
    url = addresses(counters, pages, rng)
    size = rng.choice(len(RESOLUTIONS), count, p=[0.3, 0.2, 0.1, 0.05, 0.15, 0.1, 0.05, 0.05])
    width, height = np.array(RESOLUTIONS, dtype=np.int16)[size].T
    load = rng.lognormal(6, 1, count)
    return table_of(
        watch_id=hashed(np.arange(start, start + count), 1),
        event_time=pa.array(times.astype("datetime64[us]")),
        event_date=pa.array(times.astype("datetime64[D]")),
        counter_id=counters,
        user_id=hashed(visitors, USER_SALT),
        client_ip=hashed(visitors + (rng.random(count) < 0.1), 3).astype(np.int32),
        region_id=regions,
        os=(visitors % 23).astype(np.int16),
        browser=(hashed(visitors, 4) % BROWSERS).astype(np.int16),
        browser_version=taken([f"{number}.{number * 7 % 10}" for number in range(40)], skewed(rng, 40, count, 1.5) - 1),
        language=taken(["en", "de", "fr", "es", "tr", "ru", "zh"], visitors % 7),
        mobile_phone=np.where(mobile, visitors % 12 + 1, 0).astype(np.int16),
        mobile_model=taken(
            ["", *(word(number) for number in range(MODELS))], np.where(mobile, visitors % MODELS + 1, 0)
        ),
        resolution_width=width,
        resolution_height=height,
        window_width=(width - rng.integers(0, 200, count)).astype(np.int16),
        color_depth=rng.choice(np.array([24, 32, 16], dtype=np.int8), count, p=[0.8, 0.19, 0.01]),
        age=rng.choice(np.array([0, 18, 25, 35, 45, 55], dtype=np.int8), count),
        sex=rng.integers(0, 3, count, dtype=np.int8),
        interests=rng.integers(0, 1 << 12, count).astype(np.int16),
        traffic_source=rng.integers(-1, 10, count).astype(np.int16),
        adv_engine=np.where(rng.random(count) < WITHOUT_ADVERTISEMENT, 0, rng.integers(1, 20, count)).astype(np.int16),
        search_engine=found_by,
        search_phrase=phrase,
        url=url,
        title=titles(pages),
        referer=referers(rng, url, phrase, found_by),
        is_refresh=rng.random(count) < 0.1,
        is_link=rng.random(count) < 0.05,
        is_download=rng.random(count) < 0.01,
        load_ms=np.minimum(load, 600_000).astype(np.int32),
        sent_bytes=(load * rng.integers(50, 2_000, count)).astype(np.int64),
    )


def skewed(rng: np.random.Generator, values: int, count: int, power: float) -> np.ndarray:
    """int32 draws of 1 .. values, where value k has about k^-power of the rows."""
    steep = 1 - power
    uniform = rng.random(count)
    draws = ((values + 1.0) ** steep * uniform + (1 - uniform)) ** (1 / steep)
    return np.minimum(draws.astype(np.int32), values)


def hashed(numbers: np.ndarray, salt: int) -> np.ndarray:
    """Positive int64, spread evenly: equal numbers give equal ones (the finaliser of splitmix64, Vigna)."""
    x = numbers.astype(np.uint64) + np.uint64(salt * 0x9E3779B97F4A7C15 % 2**64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((x ^ (x >> np.uint64(31))) >> np.uint64(1)).astype(np.int64)


def users(ranks: range) -> list[int]:
    """The ids of the users who are so far down by rows, the one with the most being 1."""
    return [int(user) for user in hashed(np.array(ranks), USER_SALT)]


def taken(values: list[str], places: np.ndarray) -> pa.Array:
    """values[places] as text."""
    return pa.array(values).take(pa.array(places))


def word(number: int) -> str:
    """A word for a number: the same for the same one."""
    parts = []
    while True:
        number, place = divmod(number, len(SYLLABLES))
        parts.append(SYLLABLES[place])
        if not number:
            return "".join(parts)


@cache
def words(count: int) -> pa.Array:
    """The words of 0 .. count - 1."""
    return pa.array([word(number) for number in range(count)])


@cache
def hosts() -> pa.Array:
    """The address of each counter's site, the first for counter 1; every third is without TLS."""
    return pa.array(
        f"http{'' if number % 3 == 0 else 's'}://{'www.' if number % 2 else ''}{word(number)}.{ENDINGS[number % 5]}/"
        for number in range(COUNTERS)
    )


def addresses(counters: np.ndarray, pages: np.ndarray, rng: np.random.Generator) -> pa.Array:
    """Pages of the counters' sites; one of five carries a number of its own."""
    own = rng.random(len(pages)) < 0.2
    marks = pc.if_else(
        pa.array(own),
        pc.binary_join_element_wise("?from=", pc.cast(pa.array(rng.integers(0, 1 << 30, len(pages))), pa.string()), ""),
        "",
    )
    number = pc.cast(pa.array(pages), pa.string())
    return pc.binary_join_element_wise(
        hosts().take(pa.array(counters - 1)), taken(SECTIONS, pages % len(SECTIONS)), "/", number, ".html", marks, ""
    )


def titles(pages: np.ndarray) -> pa.Array:
    """What a page says it is."""
    return pc.binary_join_element_wise(
        taken(ADJECTIVES, pages % len(ADJECTIVES)),
        words(5_000).take(pa.array(pages % 4_999)),
        taken(SECTIONS, pages % len(SECTIONS)),
        words(5_000).take(pa.array(pages % 13)),
        " ",
    )


def searched(rng: np.random.Generator, phrases: int, count: int) -> pa.Array:
    """What was searched for: mostly nothing, else one to three words."""
    number = skewed(rng, phrases, count, 1.1)
    text = pc.binary_join_element_wise(
        taken(ADJECTIVES, number % len(ADJECTIVES)),
        words(5_000).take(pa.array(number % 5_000)),
        words(5_000).take(pa.array(number // 5_000 % 5_000)),
        " ",
    )
    return pc.if_else(pa.array(rng.random(count) < EMPTY_PHRASES), "", text)


def referers(rng: np.random.Generator, url: pa.Array, phrase: pa.Array, found_by: np.ndarray) -> pa.Array:
    """Where a visitor came from: nowhere, a searcher's page with the phrase, or another page of the table."""
    asked = pc.replace_substring(phrase, " ", "+")
    searcher = pc.binary_join_element_wise("https://www.", taken(list(SEARCHERS), np.maximum(found_by - 1, 0)), "")
    search = pc.binary_join_element_wise(searcher, asked, "/results?q=")
    other = url.take(pa.array(rng.integers(0, len(url), len(url))))
    referer = pc.if_else(pa.array(found_by > 0), search, other)
    return pc.if_else(pa.array((rng.random(len(url)) < EMPTY_REFERERS) & (found_by == 0)), "", referer)
