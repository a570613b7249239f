"""The 13 queries (`sql/`); repeat 0 has the paper's constants, later ones others that keep about as many rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.workload import Literal, Query, Workload, read_statement

WARMUP = Query("warmup", "", statement="SELECT max(d_datekey) FROM dates")

REGIONS = ("AMERICA", "ASIA", "EUROPE", "AFRICA")

LITERALS: dict[str, Mapping[str, tuple[Literal, ...]]] = {
    "1.1": {"year": (1993, 1994, 1995, 1996), "low": (1, 2, 4, 6)},
    "1.2": {"month": (199401, 199506, 199303, 199611)},
    "1.3": {"week": (6, 14, 23, 40), "year": (1994, 1995, 1993, 1996)},
    "2.1": {"category": ("MFGR#12", "MFGR#25", "MFGR#41", "MFGR#33"), "region": REGIONS},
    "2.2": {
        "category": ("MFGR#22", "MFGR#14", "MFGR#53", "MFGR#31"),
        "region": ("ASIA", "EUROPE", "AFRICA", "AMERICA"),
    },
    "2.3": {
        "brand": ("MFGR#2239", "MFGR#1424", "MFGR#5328", "MFGR#3121"),
        "region": ("EUROPE", "AFRICA", "AMERICA", "ASIA"),
    },
    "3.1": {"region": ("ASIA", "EUROPE", "AFRICA", "AMERICA")},
    "3.2": {"nation": ("UNITED STATES", "CHINA", "FRANCE", "KENYA")},
    "3.3": {"nation": ("UNITED KI", "CHINA    ", "FRANCE   ", "KENYA    "), "one": (1, 2, 0, 3), "other": (5, 7, 9, 4)},
    "3.4": {
        "nation": ("UNITED KI", "CHINA    ", "FRANCE   ", "KENYA    "),
        "one": (1, 2, 0, 3),
        "other": (5, 7, 9, 4),
        "month": ("Dec1997", "Jun1994", "Mar1996", "Oct1993"),
    },
    "4.1": {"region": REGIONS},
    "4.2": {"region": REGIONS},
    "4.3": {
        "region": REGIONS,
        "nation": ("UNITED STATES", "CHINA", "FRANCE", "KENYA"),
        "category": ("MFGR#14", "MFGR#25", "MFGR#41", "MFGR#33"),
    },
}


def make_workload(tables: Mapping[str, str], rows: int, only: Sequence[str] = ()) -> Workload:
    """The workload over the five tables.  rows: lineorder's; `only` names the queries to keep, all by default."""
    folder = Path(__file__).with_name("sql")
    kept = tuple(
        read_statement(folder / f"q{number}.sql", f"Q{number}", slots)
        for number, slots in LITERALS.items()
        if not only or f"Q{number}" in only
    )
    others = {name: path for name, path in tables.items() if name != "lineorder"}
    return Workload("ssb", __package__, "lineorder", tables["lineorder"], rows, kept, WARMUP, others=others)
