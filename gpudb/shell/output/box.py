"""Mode box: a table drawn with lines, types under the names, as wide as the terminal at most.

┌─────────┬─────────┐
│ carrier │ flights │
│ varchar │ bigint  │
├─────────┼─────────┤
│ UA      │   58665 │
│ B6      │   54635 │
└─────────┴─────────┘
"""

from __future__ import annotations

import unicodedata
from collections import deque
from collections.abc import Sequence
from typing import TextIO

from gpudb.shell.output import Rows, Style
from gpudb.shell.values import cell_texts

NARROWEST_COLUMN = 8  # a column is not cut below this many characters: columns are left out before
FOOTER_FROM_ROWS = 10  # fewer rows are counted at a glance

Row = Sequence[str]
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))} | {9: "\\t", 10: "\\n", 13: "\\r"}


def write_box(result: Rows, style: Style, stream: TextIO) -> int:
    """The first and the last rows of the result, max_rows together, and a footer that says how many there are."""
    rows, head, tail = _read_ends(result, style)
    header = [[one_line(name) for name in result.schema.names], [str(kind).lower() for kind in result.types]]
    to_right = [kind.is_numeric for kind in result.types]
    body: list[Row | None] = [*head, *([None] if rows > len(head) + len(tail) else []), *tail]  # None: rows left out
    shown_rows = [row for row in (*(header if style.headers else []), *body) if row is not None]
    widths = [max((display_width(row[i]) for row in shown_rows), default=1) for i in range(len(to_right))]
    widths, kept = fit(widths, style.max_width)

    def line(left: str, cross: str, right: str) -> str:
        return left + cross.join("─" * (widths[i] + 2) for i in kept) + right + "\n"

    def cells(row: Row, align_right: Sequence[bool]) -> str:
        padded = (pad(row[i], widths[i], align_right[i]) for i in kept)
        return "│ " + " │ ".join(padded) + " │\n"

    lines = [line("┌", "┬", "┐")]
    if style.headers:
        lines += [cells(row, [False] * len(widths)) for row in header]
        lines.append(line("├", "┼", "┤"))
    dots = ["·"] * len(widths)
    lines += [cells(dots if row is None else row, to_right) for row in body]
    lines.append(line("└", "┴", "┘"))
    lines.append(_footer(rows, len(head) + len(tail), len(widths), len(kept)))
    stream.write("".join(lines))
    return rows


def _read_ends(result: Rows, style: Style) -> tuple[int, list[Row], list[Row]]:
    """(number of rows, first rows, last rows): all rows when they fit max_rows, as text on one line each."""
    null_text = style.null_text("NULL")
    head_size = -(-style.max_rows // 2)
    head: list[Row] = []
    tail: deque[Row] = deque(maxlen=style.max_rows - head_size if style.max_rows else None)
    rows = 0
    for batch in result.batches():
        seen = batch.num_rows
        if style.max_rows and seen > style.max_rows:  # the middle of a large batch is never shown
            pieces = [batch.slice(0, head_size - len(head)), batch.slice(seen - (style.max_rows - head_size))]
        else:
            pieces = [batch]
        for piece in pieces:
            columns = [cell_texts(piece.column(i), kind) for i, kind in enumerate(result.types)]
            for values in zip(*columns, strict=True):
                row = [null_text if value is None else one_line(value) for value in values]
                (head if len(head) < head_size else tail).append(row)
        rows += seen
    return rows, head, list(tail)


def _footer(rows: int, shown_rows: int, columns: int, shown_columns: int) -> str:
    if rows and rows < FOOTER_FROM_ROWS and shown_columns == columns:
        return ""
    text = f"{rows:,} row" + ("" if rows == 1 else "s")
    if shown_rows < rows:
        text += f" ({shown_rows} shown)"
    if shown_columns < columns:
        text += f", {columns} columns ({shown_columns} shown)"
    return text + "\n"


def fit(widths: list[int], max_width: int) -> tuple[list[int], list[int]]:
    """(widths, columns kept) so that the table fits: wide columns are cut first, then middle ones are left out.

    >>> fit([10, 60], 40)
    ([10, 23], [0, 1])
    """
    kept = list(range(len(widths)))
    if not max_width:
        return widths, kept
    while True:
        budget = max_width - 3 * len(kept) - 1
        cap = max(widths, default=1)
        while cap > NARROWEST_COLUMN and sum(min(widths[i], cap) for i in kept) > budget:
            cap -= 1
        if len(kept) == 1:
            cap = max(1, min(cap, budget))
        if len(kept) <= 1 or sum(min(widths[i], cap) for i in kept) <= budget:
            return [min(width, cap) for width in widths], kept
        del kept[len(kept) // 2]


def one_line(text: str) -> str:
    """Control characters as escapes, so that a value neither breaks a line nor commands the terminal."""
    return text if text.isprintable() else text.translate(_CONTROL)


def display_width(text: str) -> int:
    """Columns of a terminal that `text` takes: two for wide characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(_character_width(character) for character in text)


def _character_width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def pad(text: str, width: int, to_right: bool) -> str:
    """`text` in exactly `width` columns of the terminal, cut with … where it is longer."""
    if display_width(text) > width:
        cut, used = "", 0
        for character in text:
            used += _character_width(character)
            if used > width - 1:
                break
            cut += character
        text = cut + "…"
    space = " " * (width - display_width(text))
    return space + text if to_right else text + space
