"""Lists spelled as texts: they come back as they were, and their spellings are in their order."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from gpudb import types
from gpudb.errors import NotSupportedError
from gpudb.functions import list_spelling
from gpudb.types import SqlType, list_of

NUMBERS = random.Random(7)
DAY, MOMENT = datetime.date(2020, 2, 29), datetime.datetime(1969, 12, 31, 23, 59)


def lists_of(values: list[Any]) -> list[Any]:
    """Some lists of these values and NULL, an empty one and NULL among them."""
    several = [[NUMBERS.choice([None, *values]) for _ in range(NUMBERS.randint(0, 3))] for _ in range(60)]
    return [*several, [], None, [None], *([value] for value in values)]


KINDS: dict[SqlType, list[Any]] = {
    **{kind: [*kind.bounds, -1, 0, 1] for kind in (types.TINYINT, types.SMALLINT, types.INTEGER, types.BIGINT)},
    types.BOOLEAN: [False, True],
    types.REAL: [-1.5, 0.0, 2.25, float("-inf")],
    types.DOUBLE: [-1e300, -1.5, 0.0, 1e-300, float("inf")],
    types.decimal(30, 2): [Decimal("-99999999999999999999.5"), Decimal("0.01"), Decimal("7")],
    types.HUGEINT: [Decimal(-(10**30)), Decimal(0), Decimal(10**30)],
    types.DATE: [datetime.date(1, 1, 1), DAY],
    types.TIMESTAMP: [MOMENT, datetime.datetime(2020, 1, 1)],
    types.VARCHAR: ["", "a", "ab", "\0", "\1", "\1\2", "\0\3", "é", "z\0"],
}


def spelling(value: Any, sql: SqlType) -> str | None:
    """One list, spelled."""
    if value is None:
        return None
    child = sql.child
    assert child is not None
    inner = [spelling(one, child) for one in value] if child.kind == "LIST" else value
    return "".join(list_spelling.spelled(pa.array(inner, child.entries), child).to_pylist())


def spelled(values: list[Any], sql: SqlType) -> pa.Array:
    return pa.array([spelling(value, sql) for value in values], pa.string())


@pytest.mark.parametrize("child", KINDS, ids=str)
def test_lists_come_back_from_their_spellings(child: SqlType) -> None:
    values, sql = lists_of(KINDS[child]), list_of(child)
    found = list_spelling.lists(spelled(values, sql), sql)
    found.validate(full=True)
    assert found.to_pylist() == values
    assert found.slice(3, 5).to_pylist() == values[3:8]


@pytest.mark.parametrize("child", [types.INTEGER, types.VARCHAR], ids=str)
def test_lists_of_lists_come_back(child: SqlType) -> None:
    inner = lists_of(KINDS[child])
    values = [inner[:3], [], None, inner[60:], [[]]]
    sql = list_of(list_of(child))
    assert list_spelling.lists(spelled(values, sql), sql).to_pylist() == values


@pytest.mark.parametrize("child", KINDS, ids=str)
def test_spellings_are_in_the_order_of_lists(child: SqlType) -> None:
    values = [value for value in lists_of(KINDS[child]) if value is not None]

    def order(value: list[Any]) -> list[Any]:  # NULL is greater than anything
        return [(one is None, 0 if one is None else one.encode() if isinstance(one, str) else one) for one in value]

    by_spelling = sorted(values, key=lambda value: (spelling(value, list_of(child)) or "").encode())
    assert list(map(order, by_spelling)) == sorted(map(order, values))


@pytest.mark.parametrize("child", KINDS, ids=str)
def test_elements_are_counted_and_laid_end_to_end(child: SqlType) -> None:
    values = lists_of(KINDS[child])
    texts = spelled(values, list_of(child))
    assert list_spelling.counts(texts, child).tolist() == [len(value or ()) for value in values]
    assert list_spelling.elements(texts, child).to_pylist() == [one for value in values for one in value or ()]


def test_what_lists_cannot_hold_is_refused() -> None:
    with pytest.raises(NotSupportedError, match="a list of INTERVAL"):
        list_spelling.width(types.INTERVAL)
