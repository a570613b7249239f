"""The check that decides whether two answers are equal finds every planted difference, and no other."""

from __future__ import annotations

import decimal
import math

import pyarrow as pa
import pytest

from benchmarks.equality import difference


def table(**columns: pa.Array | list) -> pa.Table:
    return pa.table(columns)


ANSWER = table(
    name=["b", "a", None, "c"],
    count=pa.array([3, 2, 1, 1], pa.int64()),
    mean=[0.1, 2.5, None, 1e300],
    total=pa.array([decimal.Decimal(7), None, decimal.Decimal(10) ** 30, decimal.Decimal(-1)], pa.decimal128(38, 0)),
)


def replaced(column: str, values: pa.Array | list) -> pa.Table:
    position = ANSWER.schema.get_field_index(column)
    return ANSWER.set_column(position, column, pa.array(values, ANSWER.schema.field(column).type))


def test_an_answer_equals_itself_in_any_row_order() -> None:
    assert difference(ANSWER, ANSWER) is None
    assert difference(ANSWER.take([3, 1, 0, 2]), ANSWER) is None


def test_floats_may_differ_by_a_billionth_and_no_more() -> None:
    assert difference(replaced("mean", [0.1 * (1 + 5e-10), 2.5, None, 1e300]), ANSWER) is None
    found = difference(replaced("mean", [0.1 * (1 + 5e-9), 2.5, None, 1e300]), ANSWER)
    assert found is not None and "mean" in found


def test_nan_and_infinities_equal_themselves_only() -> None:
    special = table(x=[math.nan, math.inf, -math.inf, 1.0])
    assert difference(special.take([2, 0, 3, 1]), special) is None
    assert difference(table(x=[math.nan, math.inf, math.inf, 1.0]), special) is not None
    assert difference(table(x=[math.nan, math.inf, -math.inf, math.nan]), special) is not None
    assert difference(table(x=[1e308, math.inf, -math.inf, 1.0]), special) is not None


@pytest.mark.parametrize(
    "column, values",
    [
        ("name", ["b", "a", "", "c"]),
        ("name", ["b", "a", None, "d"]),
        ("count", [3, 2, 1, 2]),
        ("count", [3, 2, None, 1]),
        ("mean", [0.1, 2.5, 0.0, 1e300]),
        ("mean", [0.1, 2.4, None, 1e300]),
        ("total", [decimal.Decimal(7), decimal.Decimal(0), decimal.Decimal(10) ** 30, decimal.Decimal(-1)]),
        ("total", [decimal.Decimal(7), None, decimal.Decimal(f"1{1:030}"), decimal.Decimal(-1)]),
    ],
)
def test_one_wrong_value_is_found_and_named(column: str, values: list) -> None:
    found = difference(replaced(column, values), ANSWER)
    assert found is not None and column in found


def test_values_swapped_between_rows_are_found() -> None:
    assert difference(replaced("count", [2, 3, 1, 1]), ANSWER) is not None


def test_a_row_too_many_too_few_or_twice_is_found() -> None:
    assert difference(ANSWER.slice(0, 3), ANSWER) == "rows: 3 instead of 4"
    assert difference(pa.concat_tables([ANSWER, ANSWER.slice(0, 1)]), ANSWER) == "rows: 5 instead of 4"
    assert difference(ANSWER.take([0, 0, 1, 2]), ANSWER) is not None


def test_our_names_and_types_must_agree_but_another_engines_values_only() -> None:
    renamed = ANSWER.rename_columns(["name", "n", "mean", "total"])
    assert "column names" in str(difference(renamed, ANSWER))
    assert difference(renamed, ANSWER, values_only=True) is None
    narrow = ANSWER.set_column(1, "count", ANSWER["count"].cast(pa.int32()))
    assert difference(narrow, ANSWER) == "type of count: int32 instead of int64"
    assert difference(narrow, ANSWER, values_only=True) is None
    dictionary = ANSWER.set_column(0, "name", ANSWER["name"].dictionary_encode())
    assert difference(dictionary, ANSWER) is not None
    assert difference(dictionary, ANSWER, values_only=True) is None


def test_a_value_that_does_not_fit_the_expected_type_is_a_difference() -> None:
    small = table(x=pa.array([1, 2], pa.int16()))
    assert "do not fit" in str(difference(table(x=[1, 40_000]), small, values_only=True))
    assert "do not fit" in str(difference(table(x=[1.0, 2.5]), small, values_only=True))
    assert "columns" in str(difference(table(x=[1, 2], y=[1, 2]), small, values_only=True))


def test_order_by_fixes_its_columns_and_lets_ties_stand_in_any_order() -> None:
    swapped_tie = ANSWER.take([0, 1, 3, 2])
    assert difference(swapped_tie, ANSWER, order_by=["count"]) is None
    found = difference(ANSWER.take([1, 0, 2, 3]), ANSWER, order_by=["count"])
    assert found == "order: count is 2 instead of 3 in row 0"


def test_limit_takes_any_rows_of_the_whole_answer_but_none_twice_and_no_strangers() -> None:
    assert difference(ANSWER.take([3, 0]), ANSWER, limit=2) is None
    assert difference(ANSWER.take([3, 3]), ANSWER, limit=2) is not None
    assert difference(replaced("name", ["x", "a", None, "c"]).slice(0, 2), ANSWER, limit=2) is not None
    assert difference(replaced("mean", [0.2, 2.5, None, 1e300]).slice(0, 2), ANSWER, limit=2) is not None
    assert difference(ANSWER.slice(0, 1), ANSWER, limit=2) == "rows: 1 instead of 2"
    assert difference(ANSWER, ANSWER, limit=10) is None


def test_limit_under_order_by_may_choose_among_ties_only() -> None:
    assert difference(ANSWER.take([0, 1, 3]), ANSWER, order_by=["count"], limit=3) is None
    assert difference(ANSWER.take([0, 2, 3]), ANSWER, order_by=["count"], limit=3) is not None


def test_repeated_column_names_are_compared_by_position() -> None:
    expected = pa.table([pa.array([1, 2]), pa.array([5, 6])], names=["a", "a"])
    assert difference(expected.take([1, 0]), expected) is None
    assert difference(pa.table([pa.array([1, 2]), pa.array([6, 5])], names=["a", "a"]), expected) is not None


def test_empty_answers_are_equal() -> None:
    assert difference(ANSWER.slice(0, 0), ANSWER.slice(0, 0)) is None
