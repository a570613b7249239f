"""Grapheme clusters: what a reader takes for one character (Unicode Standard Annex 29, extended clusters)."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

# marks that the annex does not count as extending, and others that it does
_SPACING_LETTERS = frozenset(
    map(
        chr,
        (0x102B, 0x102C, 0x1038, *range(0x1062, 0x1065), *range(0x1067, 0x106E), 0x1083, *range(0x1087, 0x108D), 0x108F)
        + (*range(0x109A, 0x109D), 0x1A61, 0x1A63, 0x1A64, 0xAA7B, 0xAA7D, 0x11720, 0x11721),
    )
)
_EXTENDING = frozenset(
    map(chr, (0xE33, 0xEB3, 0x200C, 0x200D, 0xFF9E, 0xFF9F, *range(0x1F3FB, 0x1F400), *range(0xE0020, 0xE0080)))
)
_PREPENDED = frozenset(
    map(
        chr,
        (*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0xD4E, 0x110BD, 0x110CD, 0x111C2, 0x111C3, 0x1193F)
        + (0x11941, 0x11A3A, *range(0x11A84, 0x11A8A), 0x11D46, 0x11F02),
    )
)
_JOINER = "\u200d"


@lru_cache(maxsize=4096)
def _kind(character: str) -> str:
    """One of: control, cr, lf, extend, prepend, regional, L, V, T, LV, LVT, picture, other."""
    code = ord(character)
    if character in "\r\n":
        return "cr" if character == "\r" else "lf"
    if character in _EXTENDING:
        return "extend"
    if character in _PREPENDED:
        return "prepend"
    if 0x1F1E6 <= code <= 0x1F1FF:
        return "regional"
    if 0x1100 <= code <= 0x115F or 0xA960 <= code <= 0xA97C:
        return "L"
    if 0x1160 <= code <= 0x11A7 or 0xD7B0 <= code <= 0xD7C6:
        return "V"
    if 0x11A8 <= code <= 0x11FF or 0xD7CB <= code <= 0xD7FB:
        return "T"
    if 0xAC00 <= code <= 0xD7A3:
        return "LVT" if (code - 0xAC00) % 28 else "LV"
    category = unicodedata.category(character)
    if category in ("Mn", "Mc", "Me") and character not in _SPACING_LETTERS:
        return "extend"
    if category in ("Cc", "Cf", "Zl", "Zp"):
        return "control"
    if 0x1F000 <= code <= 0x1FAFF or 0x2190 <= code <= 0x2BFF or code in (0xA9, 0xAE, 0x203C, 0x2049, 0x2122, 0x2139):
        return "picture"
    return "other"


_HANGUL = {("L", k) for k in ("L", "V", "LV", "LVT")} | {(a, b) for a in ("LV", "V") for b in ("V", "T")}
_HANGUL |= {("LVT", "T"), ("T", "T")}


def clusters(value: str) -> list[str]:
    """A text cut into its clusters; joined together again they are the text.

    >>> clusters("ab")
    ['a', 'b']
    """
    if value.isascii() and "\r" not in value:
        return list(value)
    found: list[str] = []
    start = 0
    regionals = 0  # of the flags' letters that end here: they pair up
    picture = False  # a picture, marks, and a joiner: the next picture belongs to it
    for place in range(1, len(value) + 1):
        before = _kind(value[place - 1])
        regionals = regionals + 1 if before == "regional" else 0
        picture = before == "picture" or (picture and before == "extend")
        if place < len(value):
            after = _kind(value[place])
            joined = (
                (before == "cr" and after == "lf")
                or (before not in ("control", "cr", "lf") and after == "extend")
                or (before == "prepend" and after not in ("control", "cr", "lf"))
                or (before, after) in _HANGUL
                or (picture and value[place - 1] == _JOINER and after == "picture")
                or (before == "regional" and after == "regional" and regionals % 2 == 1)
            )
            if joined:
                continue
        found.append(value[start:place])
        start = place
    return found if value else []
