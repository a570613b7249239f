"""Moments in time zones: our tables of tz data, and SQL over them, against zoneinfo and live DuckDB."""

from __future__ import annotations

import datetime
import random
import zoneinfo
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

import gpudb
from gpudb import time_zones
from gpudb.time_zones import CYCLE, SECOND, zone

# several offsets, summer times in both halves of the world, half hours, negative summer time, offsets in seconds
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Europe/Dublin", "America/Nuuk")
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
FIRST, LAST = -3_000_000_000, 12_000_000_000  # seconds: years 1874 to 2350


def near_changes(name: str, count: int, source: random.Random) -> list[int]:
    """Microseconds of moments, most of them within two hours of a change of the zone's offset."""
    table = zone(name).table
    starts = [int.from_bytes(table[8 * k : 8 * k + 8], "little", signed=True) for k in range(2, len(table) // 16 + 1)]
    starts = [start for start in starts if FIRST * SECOND < start < LAST * SECOND] or [0]
    chosen = []
    for _ in range(count):
        place = source.choice(starts) if source.random() < 0.8 else source.randint(FIRST, LAST) * SECOND
        chosen.append(place + source.choice([0, -1, 1, source.randint(-7200 * SECOND, 7200 * SECOND)]))
    return chosen


@pytest.mark.parametrize("name", [*ZONES, "UTC", "Africa/Casablanca", "America/Argentina/San_Luis"])
def test_offsets_are_those_of_zoneinfo(name: str) -> None:
    rule = zoneinfo.ZoneInfo(name)
    for moment in near_changes(name, 300, random.Random(name)):
        offset = (EPOCH + datetime.timedelta(microseconds=moment)).astimezone(rule).utcoffset()
        assert offset is not None
        assert zone(name).offset(moment) == offset // datetime.timedelta(microseconds=1), moment


def test_rules_repeat_after_400_years() -> None:
    berlin = zone("Europe/Berlin")
    for moment in near_changes("Europe/Berlin", 100, random.Random(1)):
        later = moment + 5 * CYCLE
        if moment > 4_000_000_000 * SECOND:
            assert berlin.offset(later) == berlin.offset(moment)
            assert berlin.local_offset(later) == berlin.local_offset(moment)


@pytest.mark.parametrize(
    "name", ["Europe/Nowhere", "", "../etc/passwd", "/etc/localtime", "posix/Europe/Berlin", "UTC+15"]
)
def test_names_that_are_no_zones_are_refused(name: str) -> None:
    with pytest.raises(gpudb.NotSupportedError, match="time zone"):
        time_zones.zone_name(name)


def test_utc_needs_no_tz_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_zones, "_file", lambda name: None)
    monkeypatch.setattr(zoneinfo, "available_timezones", set)
    time_zones._names.cache_clear()
    time_zones.zone.cache_clear()
    try:
        assert time_zones.system_zone() == "UTC"
        assert zone("UTC").is_utc and zone(time_zones.zone_name("etc/utc")).is_utc
    finally:
        time_zones._names.cache_clear()
        time_zones.zone.cache_clear()


EXPRESSIONS = (
    "x::VARCHAR", "x::TIMESTAMP", "(x::TIMESTAMP)::TIMESTAMPTZ", "t::TIMESTAMPTZ", "s::TIMESTAMPTZ", "x::DATE",
    "date_trunc('hour', x)", "date_trunc('day', x)", "date_trunc('minute', x)", "hour(x)", "extract(timezone FROM x)",
    "x + INTERVAL '1 day'", "x - INTERVAL '1 month 3 days 5 hours'", "x + INTERVAL '25 hours'", "x + INTERVAL '-1 day 3 hours'",
    "date_diff('hour', x, y)", "date_diff('day', x, y)", "date_sub('hour', x, y)", "date_diff('minute', x, y)",
    "time_bucket(INTERVAL 6 HOURS, x)", "time_bucket(INTERVAL 1 DAY, x, 'America/New_York')",
    "time_bucket(INTERVAL 3 HOURS, x, 'Europe/Berlin')", "x AT TIME ZONE 'Asia/Tokyo'", "t AT TIME ZONE 'America/New_York'",
)  # fmt: skip


@pytest.fixture(scope="module")
def sessions() -> Iterator[tuple[gpudb.dbapi.Connection, duckdb.DuckDBPyConnection]]:
    with gpudb.connect() as ours, duckdb.connect() as theirs:
        yield ours, theirs


@pytest.mark.parametrize("device", ["cpu", pytest.param("reference", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [*ZONES[:3], *(pytest.param(n, marks=pytest.mark.slow) for n in ZONES[3:])])
def test_moments_near_changes_are_those_of_duckdb(
    name: str, device: str, sessions: tuple[gpudb.dbapi.Connection, duckdb.DuckDBPyConnection]
) -> None:
    ours, theirs = sessions
    source = random.Random(name)
    # whole milliseconds: DuckDB's calendar counts in these, and date_sub of later ones is one hour more in some cases
    moments, others = ([m - m % 1000 for m in near_changes(name, 400, source)] for _ in range(2))
    table = pa.table(
        {
            "x": pa.array(moments, pa.timestamp("us", "UTC")),
            "y": pa.array(others, pa.timestamp("us", "UTC")),
            "t": pa.array(others, pa.timestamp("us")),
            "s": [f"{EPOCH.replace(tzinfo=None) + datetime.timedelta(microseconds=m)}" for m in moments],
        }
    )
    query = f"SELECT {', '.join(f'({sql})::VARCHAR AS c{k}' for k, sql in enumerate(EXPRESSIONS))} FROM moments"
    found = []
    ours.register("moments", table)
    theirs.register("moments", table)
    ours.execute(f"SET device = '{device}'")
    for connection in (ours, theirs):
        connection.execute(f"SET TimeZone = '{name}'")
        found.append(connection.execute(query).fetchall())
    wrong = {
        sql: (table.slice(row, 1).to_pylist(), one, other)
        for row, (left, right) in enumerate(zip(*found, strict=True))
        for sql, one, other in zip(EXPRESSIONS, left, right, strict=True)
        if one != other
    }
    assert not wrong
