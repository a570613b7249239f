"""The 22 queries (`sql/`); repeat 0 has the specification's validation values, later ones others of its ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.workload import Literal, Query, Workload, read_statement

WARMUP = Query("warmup", "", statement="SELECT max(r_regionkey) FROM region")

Literals = Mapping[str, tuple[Literal, ...]]


def literals(scale: float) -> dict[int, Literals]:
    """Query → slot → values.  Q11's fraction is 0.0001 over the scale factor."""
    nations = ("GERMANY", "FRANCE", "CHINA", "BRAZIL")
    years = ("1994-01-01", "1995-01-01", "1993-01-01", "1996-01-01")
    fraction = (f"{0.0001 / scale:.10f}".rstrip("0"),)
    sizes = ((49, 14, 23, 45, 19, 3, 36, 9), (7, 31, 50, 12, 22, 41, 5, 28))
    codes = (("13", "31", "23", "29", "30", "18", "17"), ("20", "11", "33", "24", "15", "27", "19"))
    return {
        1: {"days": (90, 60, 75, 120)},
        2: {
            "size": (15, 20, 35, 44),
            "metal": ("BRASS", "COPPER", "STEEL", "TIN"),
            "region": ("EUROPE", "ASIA", "AFRICA", "AMERICA"),
        },
        3: {
            "segment": ("BUILDING", "MACHINERY", "FURNITURE", "HOUSEHOLD"),
            "day": ("1995-03-15", "1995-03-07", "1995-03-22", "1995-03-30"),
        },
        4: {"day": ("1993-07-01", "1994-02-01", "1995-10-01", "1996-05-01")},
        5: {"region": ("ASIA", "AMERICA", "EUROPE", "AFRICA"), "day": years},
        6: {"day": years, "discount": ("0.06", "0.05", "0.07", "0.03"), "quantity": (24, 25)},
        7: {"one": ("FRANCE", "CHINA", "BRAZIL", "INDIA"), "other": ("GERMANY", "JAPAN", "CANADA", "KENYA")},
        8: {
            "nation": ("BRAZIL", "CHINA", "FRANCE", "CANADA"),
            "region": ("AMERICA", "ASIA", "EUROPE", "AMERICA"),
            "type": ("ECONOMY ANODIZED STEEL", "SMALL PLATED COPPER", "PROMO BRUSHED TIN", "LARGE POLISHED BRASS"),
        },
        9: {"color": ("green", "navy", "salmon", "ivory")},
        10: {"day": ("1993-10-01", "1994-03-01", "1993-06-01", "1994-11-01")},
        11: {"nation": nations, "fraction": fraction},
        12: {"one": ("MAIL", "RAIL", "TRUCK", "AIR"), "other": ("SHIP", "FOB", "MAIL", "REG AIR"), "day": years},
        13: {
            "one": ("special", "pending", "unusual", "express"),
            "other": ("requests", "packages", "deposits", "accounts"),
        },
        14: {"day": ("1995-09-01", "1994-03-01", "1996-12-01", "1993-05-01")},
        15: {"day": ("1996-01-01", "1994-07-01", "1995-04-01", "1993-10-01")},
        16: {
            "brand": ("Brand#45", "Brand#31", "Brand#12", "Brand#54"),
            "type": ("MEDIUM POLISHED", "SMALL PLATED", "ECONOMY BRUSHED", "PROMO BURNISHED"),
            **{f"s{k + 1}": tuple(choice[k] for choice in sizes) for k in range(8)},
        },
        17: {
            "brand": ("Brand#23", "Brand#34", "Brand#51", "Brand#12"),
            "container": ("MED BOX", "LG CASE", "SM PKG", "JUMBO PACK"),
        },
        18: {"quantity": (300, 312, 314, 315)},
        19: {
            "q1": (1, 4, 8, 10),
            "q2": (10, 15, 18, 20),
            "q3": (20, 24, 27, 30),
            "brand1": ("Brand#12", "Brand#21", "Brand#43", "Brand#55"),
            "brand2": ("Brand#23", "Brand#32", "Brand#14", "Brand#41"),
            "brand3": ("Brand#34", "Brand#53", "Brand#25", "Brand#11"),
        },
        20: {
            "color": ("forest", "azure", "lemon", "peach"),
            "day": years,
            "nation": ("CANADA", "PERU", "EGYPT", "RUSSIA"),
        },
        21: {"nation": ("SAUDI ARABIA", "VIETNAM", "JORDAN", "KENYA")},
        22: {f"c{k + 1}": tuple(choice[k] for choice in codes) for k in range(7)},
    }


def make_queries(scale: float) -> tuple[Query, ...]:
    """Q1-Q22."""
    folder = Path(__file__).with_name("sql")
    return tuple(
        read_statement(folder / f"q{number:02}.sql", f"Q{number}", slots) for number, slots in literals(scale).items()
    )


def make_workload(tables: Mapping[str, str], scale: float, rows: int, only: Sequence[str] = ()) -> Workload:
    """The workload over the eight tables.  rows: lineitem's; `only` names the queries to keep, all by default."""
    kept = tuple(query for query in make_queries(scale) if not only or query.name in only)
    others = {name: path for name, path in tables.items() if name != "lineitem"}
    return Workload("tpch", __package__, "lineitem", tables["lineitem"], rows, kept, WARMUP, others=others)
