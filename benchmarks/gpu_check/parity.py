"""A seeded sample of parity: the device against the CPU, every Arrow buffer of every answer."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from benchmarks.gpu_check import tables
from benchmarks.gpu_check.budget import Budget
from benchmarks.gpu_check.machine import Machine, open_machine
from benchmarks.gpu_check.made_tables import ON_THE_HOST, Made, make
from benchmarks.report import Line, Report
from benchmarks.virginia.queries import make_queries
from gpudb.errors import DeviceError, Error
from gpudb.session import Session
from gpudb.storage.table import TableVersion
from tests.devices import queries
from tests.devices.float_rows import FLOATS, random_query, rows_of
from tests.devices.variants import assert_canonical, stored

MADE_ROWS = 3_000_000  # of a table made on the device, where nothing stands in for it: three row groups
FLOAT_QUERIES = 40  # over each table of floats


@dataclass
class Set:
    """Queries over tables, which each side holds in its own memory."""

    name: str
    ours: Sequence[TableVersion]
    theirs: Sequence[TableVersion]
    sql: list[str]


def check(machine: Machine, budget: Budget, seed: int, report: Report) -> bool:
    """Sets of queries until the time is over, the made tables first; a line a set, and one for each that differs."""
    chosen = random.Random(seed)
    good = True
    with _other_side() as (name, other):
        for found in _sets(machine, chosen):
            if budget.over:
                break
            good &= _compare(machine, other, found, budget, report, {"seed": seed, "against": name})
    return good


def _other_side() -> Any:
    """The CPU's machine and its name; the reference's where there is no compiler."""
    import contextlib

    @contextlib.contextmanager
    def opened() -> Iterator[tuple[str, Machine]]:
        try:
            with open_machine("cpu") as machine:
                yield "cpu", machine
        except DeviceError:
            from gpudb.devices.reference import ReferenceDevice

            yield "reference", Machine("cpu", ReferenceDevice())

    return opened()


def _sets(machine: Machine, chosen: random.Random) -> Iterator[Set]:
    flights = [query.sql("flights", chosen.randrange(8)) for query in tables.flight_queries()]
    virginia = [query.sql("test", chosen.randrange(8)) for query in make_queries()]
    for made, sql in ((tables.flights(), flights), (tables.virginia(), virginia)):
        yield _made_set(machine, made, sql)
    while True:
        yield _query_set(chosen)
        yield _float_set(chosen)


def _made_set(machine: Machine, made: Made, sql: list[str]) -> Set:
    rows, group = (MADE_ROWS, 1 << 20) if machine.real else (10_000, 4096)
    ours, theirs = machine.make(made, rows, group), make(made, rows, ON_THE_HOST, group)
    return Set(f"{made.name}, made on the device", [ours], [theirs], sql)


def _query_set(chosen: random.Random) -> Set:
    """The queries of tests/devices over other rows than there, in another order and other row groups."""
    seed, group = chosen.randrange(1 << 31), chosen.choice([4096, 8192, 1 << 20])
    versions = [
        stored(queries.flights(seed=seed), group, [chosen.randrange(queries.ROWS)], "flights"),
        stored(queries.dozen(), group, [], "dozen"),
        stored(queries.flights().slice(0, 0), group, [], "empty"),
    ]
    sql = chosen.sample([*queries.QUERIES, *queries.FAILING], len(queries.QUERIES) + len(queries.FAILING))
    return Set(f"tests/devices/queries.py, rows {seed}, row groups of {group}", versions, versions, sql)


def _float_set(chosen: random.Random) -> Set:
    """Random queries over floats that are hard to add up."""
    rows, (one, other) = chosen.choice([1025, 4097, 20_000]), chosen.choices(list(FLOATS), k=2)
    version = stored(rows_of(rows, one, other, chosen.randrange(1 << 31)), 4096, [chosen.randrange(rows)])
    sql = [random_query(chosen) for _ in range(FLOAT_QUERIES)]
    return Set(f"random queries, {rows} rows of {one} and {other}", [version], [version], sql)


def _compare(machine: Machine, other: Machine, found: Set, budget: Budget, report: Report, common: Line) -> bool:
    ours, theirs = machine.session(*found.ours), other.session(*found.theirs)
    began, asked, differing = time.perf_counter(), 0, 0
    for sql in found.sql:
        if budget.over:
            break
        problem = _difference(ours, theirs, sql)
        asked += 1
        if problem is not None:
            differing += 1
            report.add({"benchmark": "gpu_check", "part": "parity", "set": found.name, "sql": sql, "problem": problem})
    seconds = round(time.perf_counter() - began, 3)
    line = {"benchmark": "gpu_check", "part": "parity", "set": found.name, "queries": asked, "of": len(found.sql)}
    report.add({**line, "differing": differing, "seconds": seconds, **common})
    report.note(f"parity: {found.name}: {asked} queries, {differing} differ, {seconds} s")
    return differing == 0


def _difference(ours: Session, theirs: Session, sql: str) -> str | None:
    """None where both give the same bytes, or the same error."""
    one, other = _answer(ours, sql), _answer(theirs, sql)
    if isinstance(one, str) or isinstance(other, str):
        shown = [answer if isinstance(answer, str) else f"{answer.num_rows} rows" for answer in (one, other)]
        return None if one == other else f"{shown[0]}, not {shown[1]}"[:500]
    try:
        assert_canonical(one)
    except AssertionError as error:
        return f"not canonical: {error}"
    if one.schema.remove_metadata() != other.schema.remove_metadata() or one.num_rows != other.num_rows:
        return f"{one.num_rows} rows of {one.schema.types}, not {other.num_rows} of {other.schema.types}"[:500]
    for place, name in enumerate(one.column_names):
        left, right = one.select([place]), other.select([place])
        if queries.content(left) != queries.content(right):
            return f"{name}: {_first_row(left, right)}"
    return None


def _answer(session: Session, sql: str) -> pa.Table | str:
    try:
        return session.execute(sql).table()
    except Error as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:  # ours to report, and to go on
        return f"a bug: {type(error).__name__}: {error}"


def _first_row(one: pa.Table, other: pa.Table) -> str:
    left, right = one.column(0).to_pylist(), other.column(0).to_pylist()
    row = next((k for k in range(len(left)) if repr(left[k]) != repr(right[k])), None)
    return "bytes that no value shows" if row is None else f"row {row} is {left[row]!r}, not {right[row]!r}"
