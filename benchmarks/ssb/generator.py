"""Makes the Star Schema Benchmark's five tables: seeded, vectorised, a row group at a time.

Sizes, domains and derived columns follow the paper's section 2 (lineorder 6,000,000 x SF on average, customer 30,000,
supplier 2,000, part 200,000 (1 + log2 SF), dates 1992-1998); the draws are NumPy's, so rows are not those of the C generator.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from benchmarks.tables import table_of

FORMAT = 1  # part of the folder's name: raise it when the same seed gives other rows
ORDERS = 1_500_000  # at scale 1, of one to seven lines
CHUNK_ORDERS = 1 << 18

NATIONS = {
    "AFRICA": ("ALGERIA", "ETHIOPIA", "KENYA", "MOROCCO", "MOZAMBIQUE"),
    "AMERICA": ("ARGENTINA", "BRAZIL", "CANADA", "PERU", "UNITED STATES"),
    "ASIA": ("CHINA", "INDIA", "INDONESIA", "JAPAN", "VIETNAM"),
    "EUROPE": ("FRANCE", "GERMANY", "ROMANIA", "RUSSIA", "UNITED KINGDOM"),
    "MIDDLE EAST": ("EGYPT", "IRAN", "IRAQ", "JORDAN", "SAUDI ARABIA"),
}
COLORS = """almond azure beige blue brown coral cream cyan forest gold
    green grey ivory khaki lemon lime navy olive pink plum""".split()
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECI", "5-LOW")
SHIP_MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
CONTAINERS = [
    f"{size} {kind}" for size in ("SM", "MED", "LG", "JUMBO", "WRAP") for kind in ("CASE", "BOX", "BAG", "PKG")
]
TYPES = [
    f"{size} {finish} {metal}"
    for size in ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
    for finish in ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED")
    for metal in ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER")
]
FIRST_DAY, LAST_DAY, LAST_ORDER_DAY = (np.datetime64(day) for day in ("1992-01-01", "1998-12-31", "1998-08-02"))


def write(folder: Path, scale: float, seed: int) -> dict[str, str]:
    """Name → Parquet file of each table; made unless they are there already."""
    folder = folder / f"ssb-{scale:g}-{seed}-{FORMAT}"
    names = ("lineorder", "customer", "supplier", "part", "dates")
    if not folder.exists():
        partial = folder.with_name(f"{folder.name}.{os.getpid()}.partial")
        partial.mkdir(parents=True)
        customers, suppliers, parts = (
            max(1, int(count)) for count in (30_000 * scale, 2_000 * scale, part_rows(scale))
        )
        rng = np.random.default_rng([seed, 0])
        tables = {
            "customer": people("c", "Customer", customers, rng),
            "supplier": people("s", "Supplier", suppliers, rng),
            "part": part(parts, rng),
            "dates": dates(),
        }
        for name, table in tables.items():
            parquet.write_table(table, partial / f"{name}.parquet")
        writer = None
        for batch in lineorder(max(1, int(ORDERS * scale)), customers, suppliers, parts, seed):
            writer = writer or parquet.ParquetWriter(partial / "lineorder.parquet", batch.schema)
            writer.write_table(batch)
        assert writer is not None, "there is an order at least"
        writer.close()
        partial.rename(folder)
    return {name: str(folder / f"{name}.parquet") for name in names}


def part_rows(scale: float) -> float:
    """200,000 x (1 + log2 SF); below scale 1 in proportion."""
    return 200_000 * (1 + math.log2(scale)) if scale >= 1 else 200_000 * scale


def chosen(names: list[str] | tuple[str, ...], codes: np.ndarray) -> pa.Array:
    """names[codes] as text."""
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(names)).cast(pa.string())


def people(prefix: str, title: str, rows: int, rng: np.random.Generator) -> pa.Table:
    """customer or supplier: name, address, city, nation, region, phone."""
    regions = list(NATIONS)
    nations = [nation for region in regions for nation in NATIONS[region]]
    nation = rng.integers(0, len(nations), rows)
    city = rng.integers(0, 10, rows)
    keys = np.arange(1, rows + 1, dtype=np.int32)
    numbers = rng.integers(0, 10_000_000_000, rows)
    columns: dict[str, pa.Array | np.ndarray | list[str]] = {
        "key": keys,
        "name": [f"{title}#{key:09}" for key in keys],
        "address": [f"{number:x} Street {number % 977}" for number in numbers],
        "city": chosen([f"{name[:9]:9}{digit}" for name in nations for digit in range(10)], nation * 10 + city),
        "nation": chosen(nations, nation),
        "region": chosen(regions, nation // 5),
        "phone": [
            f"{10 + n}-{x // 10_000_000}-{x // 10_000 % 1000:03}-{x % 10_000:04}"
            for n, x in zip(nation, numbers, strict=True)
        ],
    }
    if prefix == "c":
        columns["mktsegment"] = chosen(SEGMENTS, rng.integers(0, 5, rows))
    named = {
        ("custkey" if prefix == "c" else "suppkey") if name == "key" else name: values
        for name, values in columns.items()
    }
    return table_of(**{f"{prefix}_{name}": values for name, values in named.items()})


def part(rows: int, rng: np.random.Generator) -> pa.Table:
    """Five manufacturers, five categories of each, forty brands of each."""
    maker, category, brand = rng.integers(1, 6, rows), rng.integers(1, 6, rows), rng.integers(1, 41, rows)
    first, second = rng.integers(0, len(COLORS), rows), rng.integers(0, len(COLORS), rows)
    categories = [f"MFGR#{m}{c}" for m in range(1, 6) for c in range(1, 6)]
    code = (maker - 1) * 5 + category - 1
    return table_of(
        p_partkey=np.arange(1, rows + 1, dtype=np.int32),
        p_name=chosen([f"{a} {b}" for a in COLORS for b in COLORS], first * len(COLORS) + second),
        p_mfgr=chosen([f"MFGR#{m}" for m in range(1, 6)], maker - 1),
        p_category=chosen(categories, code),
        p_brand1=chosen([f"{name}{b}" for name in categories for b in range(1, 41)], code * 40 + brand - 1),
        p_color=chosen(COLORS, first),
        p_type=chosen(TYPES, rng.integers(0, len(TYPES), rows)),
        p_size=rng.integers(1, 51, rows).astype(np.int32),
        p_container=chosen(CONTAINERS, rng.integers(0, len(CONTAINERS), rows)),
    )


def day_keys(days: np.ndarray) -> np.ndarray:
    """datetime64[D] as the numbers 19920101 ..."""
    months = days.astype("datetime64[M]")
    year = months.astype("datetime64[Y]").astype(int) + 1970
    return (year * 10_000 + (months.astype(int) % 12 + 1) * 100 + (days - months).astype(int) + 1).astype(np.int32)


def dates() -> pa.Table:
    """One row a day, 1992 to 1998."""
    days = np.arange(FIRST_DAY, LAST_DAY + 1)
    keys = day_keys(days)
    year, month = keys // 10_000, keys // 100 % 100
    of_year = (days - days.astype("datetime64[Y]")).astype(int) + 1
    of_week = (days.astype(int) + 4) % 7 + 1  # Sunday is 1
    names = [day.astype(object) for day in days]
    season = np.select([month == 12, month >= 9, month >= 6, month >= 3], [0, 1, 2, 3], 4)
    return table_of(
        d_datekey=keys,
        d_date=[f"{day:%B} {day.day}, {day.year}" for day in names],
        d_dayofweek=[f"{day:%A}" for day in names],
        d_month=[f"{day:%B}" for day in names],
        d_year=year,
        d_yearmonthnum=keys // 100,
        d_yearmonth=[f"{day:%b%Y}" for day in names],
        d_daynuminweek=of_week.astype(np.int32),
        d_daynuminmonth=keys % 100,
        d_daynuminyear=of_year.astype(np.int32),
        d_monthnuminyear=month,
        d_weeknuminyear=((of_year - 1) // 7 + 1).astype(np.int32),
        d_sellingseason=chosen(("Christmas", "Fall", "Summer", "Spring", "Winter"), season),
        d_lastdayinweekfl=(of_week == 7).astype(np.int32),
        d_lastdayinmonthfl=(day_keys(days + 1) % 100 == 1).astype(np.int32),
        d_holidayfl=np.isin(keys % 10_000, (101, 704, 1225)).astype(np.int32),
        d_weekdayfl=((of_week > 1) & (of_week < 7)).astype(np.int32),
    )


def lineorder(orders: int, customers: int, suppliers: int, parts: int, seed: int) -> Iterator[pa.Table]:
    """The fact table, CHUNK_ORDERS orders at a time; prices in cents."""
    span = int((LAST_ORDER_DAY - FIRST_DAY).astype(int)) + 1
    for start in range(0, orders, CHUNK_ORDERS):
        rng = np.random.default_rng([seed, 1, start])
        count = min(CHUNK_ORDERS, orders - start)
        lines = rng.integers(1, 8, count)
        rows = int(lines.sum())
        order = np.repeat(np.arange(count), lines)
        line = np.arange(rows) - np.repeat(np.cumsum(lines) - lines, lines) + 1
        day = FIRST_DAY + rng.integers(0, span, count)[order]
        partkey, quantity = rng.integers(1, parts + 1, rows), rng.integers(1, 51, rows)
        discount, tax = rng.integers(0, 11, rows), rng.integers(0, 9, rows)
        price = 90_000 + partkey // 10 % 20_001 + 100 * (partkey % 1000)
        extended = quantity * price
        total = np.zeros(count, np.int64)
        np.add.at(total, order, extended * (100 - discount) * (100 + tax) // 10_000)
        yield table_of(
            lo_orderkey=(start + order + 1).astype(np.int64),
            lo_linenumber=line.astype(np.int32),
            lo_custkey=rng.integers(1, customers + 1, count)[order].astype(np.int32),
            lo_partkey=partkey.astype(np.int32),
            lo_suppkey=rng.integers(1, suppliers + 1, rows).astype(np.int32),
            lo_orderdate=day_keys(day),
            lo_orderpriority=chosen(PRIORITIES, rng.integers(0, 5, count)[order]),
            lo_shippriority=np.zeros(rows, np.int32),
            lo_quantity=quantity.astype(np.int32),
            lo_extendedprice=extended.astype(np.int32),
            lo_ordtotalprice=total[order].astype(np.int32),
            lo_discount=discount.astype(np.int32),
            lo_revenue=(extended * (100 - discount) // 100).astype(np.int32),
            lo_supplycost=(6 * price // 10).astype(np.int32),
            lo_tax=tax.astype(np.int32),
            lo_commitdate=day_keys(day + rng.integers(30, 91, rows)),
            lo_shipmode=chosen(SHIP_MODES, rng.integers(0, 7, rows)),
        )
