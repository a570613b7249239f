"""A bar chart in the terminal, from Unicode blocks, and the same one as a PNG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpudb.shell.output.box import display_width

EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")


def bar_chart(labels: Sequence[str], values: Sequence[float], width: int) -> list[str]:
    """One line for each value, at most `width` columns: label, a bar in eighths of a column, the value.

    The longest bar is the greatest value; a value below zero has no bar.

    >>> bar_chart(["5", "21"], [6.0, 24.0], 16)
    [' 5 ██▎ 6.0', '21 █████████ 24.0']
    """
    label_width = max((display_width(label) for label in labels), default=0)
    numbers = [f"{value:.1f}" for value in values]
    room = max(1, width - label_width - 2 - max((len(number) for number in numbers), default=0))
    greatest = max((value for value in values if value > 0), default=1.0)
    lines = []
    for label, value, number in zip(labels, values, numbers, strict=True):
        eighths = round(8 * room * max(value, 0.0) / greatest)
        bar = "█" * (eighths // 8) + EIGHTHS[eighths % 8]
        lines.append(f"{' ' * (label_width - display_width(label))}{label} {bar} {number}")
    return lines


BAR, GAP, MARGIN, PLOT_HEIGHT = 32, 10, 40, 300  # pixels
PALETTE = (255, 255, 255, 60, 60, 60, 178, 24, 43, 214, 96, 77, 244, 165, 130)  # paper, ink, bars from long to short
PAPER, INK, LONG, MIDDLE, SHORT = range(5)


def save_bar_chart(path: Path, title: str, labels: Sequence[str], values: Sequence[float]) -> None:
    """Write the chart as an 8-bit palette PNG, bars upright.  Raises OSError when the file cannot be written.

    Needs Pillow (ImportError without it).
    """
    from PIL import Image, ImageDraw, ImageFont

    width = 2 * MARGIN + len(values) * (BAR + GAP) - GAP
    picture = Image.new("P", (max(width, 2 * MARGIN + 8 * len(title)), PLOT_HEIGHT + 3 * MARGIN), PAPER)
    picture.putpalette(PALETTE)
    draw = ImageDraw.Draw(picture)
    draw.fontmode = "1"  # no anti-aliasing: the palette has no greys
    large, small = ImageFont.load_default(16), ImageFont.load_default(11)
    draw.text((MARGIN, MARGIN // 3), title, INK, large)
    greatest = max((value for value in values if value > 0), default=1.0)
    ground = 2 * MARGIN + PLOT_HEIGHT
    for position, (label, value) in enumerate(zip(labels, values, strict=True)):
        share = max(value, 0.0) / greatest
        left = MARGIN + position * (BAR + GAP)
        top = ground - round(PLOT_HEIGHT * share)
        draw.rectangle((left, top, left + BAR, ground), LONG if share > 2 / 3 else MIDDLE if share > 1 / 3 else SHORT)
        draw.text((left + BAR // 2, top - 3), f"{value:.1f}", INK, small, anchor="mb")
        draw.text((left + BAR // 2, ground + 5), label, INK, small, anchor="mt")
    draw.line((MARGIN, ground, width - MARGIN, ground), INK)
    picture.save(path, "PNG")
