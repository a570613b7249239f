"""The scalar SQL functions: importing this package fills the registry.

`resolve` chooses an overload as DuckDB does: an exact match, else the one that its implicit casts reach at the least cost.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpudb.functions import bits, blob, conditional, date, intervals, math, pattern, text, time_of_day, uuids, zoned
from gpudb.functions.registry import FUNCTIONS, Function, Overload
from gpudb.types import SqlType

__all__ = [
    "Function",
    "Overload",
    "bits",
    "blob",
    "conditional",
    "date",
    "intervals",
    "lookup",
    "math",
    "names",
    "pattern",
    "resolve",
    "text",
    "time_of_day",
    "uuids",
    "zoned",
]

# Types that a type casts to by itself; what is not listed needs a CAST.
WIDER = {
    "TINYINT": ("SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "DECIMAL", "REAL", "DOUBLE"),
    "SMALLINT": ("INTEGER", "BIGINT", "HUGEINT", "DECIMAL", "REAL", "DOUBLE"),
    "INTEGER": ("BIGINT", "HUGEINT", "DECIMAL", "REAL", "DOUBLE"),
    "BIGINT": ("HUGEINT", "DECIMAL", "REAL", "DOUBLE"),
    "HUGEINT": ("REAL", "DOUBLE"),
    "DECIMAL": ("REAL", "DOUBLE"),
    "REAL": ("DOUBLE",),
    "DATE": ("TIMESTAMP", "TIMESTAMPTZ"),
    "TIMESTAMP": ("TIMESTAMPTZ",),
}
# What a cast to a type costs: DuckDB's order of preference, which takes BIGINT and DOUBLE before all others.
COST = {
    "BIGINT": 101,
    "DOUBLE": 102,
    "INTEGER": 103,
    "DECIMAL": 104,
    "HUGEINT": 120,
    "TIMESTAMP": 120,
    "TIMESTAMPTZ": 123,
    "VARCHAR": 149,
}
OTHER_COST = 110


def lookup(name: str) -> Function | None:
    """The function of a SQL name or alias, in any case; None where there is none."""
    return FUNCTIONS.get(name.lower())


def names() -> list[str]:
    """Canonical names, sorted."""
    return sorted({function.name for function in FUNCTIONS.values()})


def resolve(name: str, argument_types: Sequence[SqlType]) -> Overload | None:
    """The overload for arguments of these types; None where none takes them or two take them equally well."""
    function = lookup(name)
    if function is None:
        return None
    best: list[Overload] = []
    least = None
    for overload in function.overloads:
        cost = _cost(overload, argument_types)
        if cost is None:
            continue
        if least is None or cost < least:
            best, least = [overload], cost
        elif cost == least:
            best.append(overload)
    return best[0] if len(best) == 1 else None


def _cost(overload: Overload, argument_types: Sequence[SqlType]) -> int | None:
    """Sum of the arguments' cast costs, None where one does not cast by itself."""
    wanted = overload.arguments
    if overload.variadic:
        wanted = wanted[:-1] + wanted[-1:] * max(0, len(argument_types) - len(wanted) + 1)
    if len(wanted) != len(argument_types):
        return None
    total = 0
    for argument, target in zip(argument_types, wanted, strict=True):
        cost = cast_cost(argument.kind, target)
        if cost is None:
            return None
        total += cost
    return total


def cast_cost(source: str, target: str) -> int | None:
    """0 for the type itself, more for every wider one, None where it needs a CAST."""
    if source == target or target == "ANY":
        return 0
    if source == "NULL" or target in WIDER.get(source, ()):
        return COST.get(target, OTHER_COST)
    return None
