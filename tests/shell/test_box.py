"""Mode box: widths, alignment, what is left out and what the footer says."""

import io

import pyarrow as pa
import pytest

from gpudb.shell.output import Style
from gpudb.shell.output.box import display_width, fit, one_line, pad, write_box
from gpudb.types import BIGINT, INTEGER, VARCHAR


class Rows:
    """A result in batches of `batch_rows` rows."""

    def __init__(self, columns: dict, types: list, batch_rows: int = 1000) -> None:
        self._table = pa.table(columns)
        self.schema, self.types, self._batch_rows = self._table.schema, types, batch_rows

    def batches(self):
        return iter(self._table.to_batches(self._batch_rows))


def box(rows: Rows, **style) -> list[str]:
    stream = io.StringIO()
    write_box(rows, Style(**style), stream)
    return stream.getvalue().splitlines()


def test_a_small_table_has_types_under_its_names_and_numbers_to_the_right():
    rows = Rows({"carrier": ["UA", None], "n": [5, 58665]}, [VARCHAR, BIGINT])
    assert box(rows) == [
        "┌─────────┬────────┐",
        "│ carrier │ n      │",
        "│ varchar │ bigint │",
        "├─────────┼────────┤",
        "│ UA      │      5 │",
        "│ NULL    │  58665 │",
        "└─────────┴────────┘",
    ]
    assert box(rows, headers=False, null_value="-") == [
        "┌────┬───────┐",
        "│ UA │     5 │",
        "│ -  │ 58665 │",
        "└────┴───────┘",
    ]


@pytest.mark.parametrize("batch_rows", [1, 7, 50, 1000])
def test_the_first_and_last_rows_are_shown_when_there_are_too_many(batch_rows):
    rows = Rows({"n": range(100)}, [INTEGER], batch_rows)
    lines = box(rows, max_rows=5)
    shown = [line.strip("│ ") for line in lines[4:-2]]
    assert shown == ["0", "1", "2", "·", "98", "99"]
    assert lines[-1] == "100 rows (5 shown)"


@pytest.mark.parametrize("count", [5, 6])
def test_rows_that_fit_are_all_shown(count):
    lines = box(Rows({"n": range(count)}, [INTEGER], 2), max_rows=6)
    assert [line.strip("│ ") for line in lines[4:-1]] == [str(n) for n in range(count)]


def test_no_rows_are_said_to_be_none():
    assert box(Rows({"n": pa.array([], pa.int32())}, [INTEGER]))[-1] == "0 rows"


def test_no_line_is_wider_than_the_terminal():
    rows = Rows({f"column{i}": ["x" * 30] for i in range(12)}, [VARCHAR] * 12)
    for max_width in (30, 60, 100):
        lines = box(rows, max_width=max_width)
        assert max(map(display_width, lines[:-1])) <= max_width
        assert lines[-1].startswith("1 row, 12 columns (")


def test_wide_columns_are_cut_before_columns_are_left_out():
    assert fit([10, 60], 40) == ([10, 23], [0, 1])
    assert fit([10, 60], 0) == ([10, 60], [0, 1])
    assert fit([100], 10) == ([6], [0])
    widths, kept = fit([20] * 10, 50)
    assert kept[0] == 0
    assert kept[-1] == 9
    assert sum(widths[i] + 3 for i in kept) + 1 <= 50


def test_control_characters_neither_break_a_line_nor_reach_the_terminal():
    assert one_line("a\tb\nc\x1b[31m") == "a\\tb\\nc\\x1b[31m"
    assert len(box(Rows({"t": ["two\nlines"]}, [VARCHAR]))) == 6


def test_wide_and_combining_characters_take_their_columns_of_the_terminal():
    assert display_width("東京") == 4
    assert display_width("e\u0301") == 1
    assert pad("東京都", 5, False) == "東京…"
    assert pad("東京", 5, True) == " 東京"
    widths = {display_width(line) for line in box(Rows({"t": ["東京", "e\u0301", "abc"]}, [VARCHAR]))}
    assert len(widths) == 1
