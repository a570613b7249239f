"""Text functions: case, parts, padding, searching, hashing, distances.  Positions count characters (code points) from 1.

Each runs once per distinct value: through Arrow compute where a constant argument allows it, else by Python's str, whose
code points are DuckDB's characters.  Past 600 lines: a list of short entries, one a function.
"""

from __future__ import annotations

import hashlib
import unicodedata
from functools import lru_cache
from typing import Any

import pyarrow as pa

from gpudb import compute
from gpudb.errors import ConversionError, DataError, OutOfRangeError
from gpudb.functions.graphemes import clusters
from gpudb.functions.registry import macro, text
from gpudb.functions.rows import is_constant, length, per_row, text_array
from gpudb.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, VARCHAR

# the Unicode category Zs, which is what TRIM without characters removes
SPACES = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
# SUBSTRING takes offsets and lengths in 32 bits
SUBSTRING_LIMIT = (1 << 32) - 1
# REPEAT and the padding functions refuse to build longer texts
LONGEST = 1 << 28


# --- case and normal forms ------------------------------------------------------------------------------------------


@text("VARCHAR -> VARCHAR", aliases=("ucase",))
def upper(string: pa.Array) -> pa.Array:
    """Upper case, character by character.

    >>> sql("SELECT upper('Straße é')")
    STRAẞE É
    """
    return compute.utf8_upper(string)


@text("VARCHAR -> VARCHAR", aliases=("lcase",))
def lower(string: pa.Array) -> pa.Array:
    """Lower case, character by character.

    >>> sql("SELECT lower('JFK É')")
    jfk é
    """
    return compute.utf8_lower(string)


@text("VARCHAR -> VARCHAR")
def nfc_normalize(string: pa.Array) -> pa.Array:
    """Unicode normal form C: letters and their accents composed.

    >>> sql("SELECT length(nfc_normalize('e' || chr(769)))")
    1
    """
    return compute.utf8_normalize(string, form="NFC")


@text("VARCHAR -> VARCHAR")
def strip_accents(string: pa.Array) -> pa.Array:
    """Remove accents: letters are decomposed and their marks dropped.

    >>> sql("SELECT strip_accents('Málaga')")
    Malaga
    """

    def strip(value: str) -> str:
        if value.isascii():
            return value
        kept = (c for c in unicodedata.normalize("NFD", value) if unicodedata.category(c) not in ("Mn", "Mc", "Me"))
        return unicodedata.normalize("NFC", "".join(kept))

    return per_row(strip, VARCHAR, string)


# --- lengths and codes ----------------------------------------------------------------------------------------------


@text("VARCHAR -> BIGINT", aliases=("len", "char_length", "character_length"))
def _length(string: pa.Array) -> pa.Array:
    """Number of characters (code points).

    >>> sql("SELECT length('Málaga')")
    6
    """
    return compute.utf8_length(string).cast(pa.int64())


@text("VARCHAR -> BIGINT")
def length_grapheme(string: pa.Array) -> pa.Array:
    """Number of characters as a reader counts them: a letter with its accents, or an emoji, is one.

    >>> sql("SELECT length_grapheme('e' || chr(769))")
    1
    """
    return per_row(lambda value: len(value) if value.isascii() else len(clusters(value)), BIGINT, string)


@text("VARCHAR -> BIGINT")
def strlen(string: pa.Array) -> pa.Array:
    """Number of bytes of the UTF-8 text.

    >>> sql("SELECT strlen('é')")
    2
    """
    return compute.binary_length(string).cast(pa.int64())


@text("VARCHAR -> BIGINT")
def bit_length(string: pa.Array) -> pa.Array:
    """Number of bits of the UTF-8 text.

    >>> sql("SELECT bit_length('é')")
    16
    """
    return pa.array(strlen(string).to_numpy() * 8, pa.int64())


@text("VARCHAR -> INTEGER")
def ascii(string: pa.Array) -> pa.Array:
    """Code point of the first character; 0 for the empty text.

    >>> sql("SELECT ascii('Ω')")
    937
    """
    return per_row(lambda value: ord(value[0]) if value else 0, INTEGER, string)


@text("VARCHAR -> INTEGER", aliases=("ord",))
def unicode(string: pa.Array) -> pa.Array:
    """Code point of the first character; -1 for the empty text.

    >>> sql("SELECT unicode('A')")
    65
    """
    return per_row(lambda value: ord(value[0]) if value else -1, INTEGER, string)


@text("INTEGER -> VARCHAR")
def chr_(code: pa.Array) -> pa.Array:
    """The character with a code point.  Fails on a number that is none.

    >>> sql("SELECT chr(233)")
    é
    """

    def one(value: int) -> str:
        if not 0 <= value < 0x110000 or 0xD800 <= value < 0xE000:
            raise DataError(f"not a Unicode code point: {value}")
        return chr(value)

    return per_row(one, VARCHAR, code)


# --- joining --------------------------------------------------------------------------------------------------------


@text("VARCHAR, VARCHAR, VARCHAR... -> VARCHAR")
def concat_operator(*strings: Any) -> pa.Array:
    """The operator ||: texts one after the other; NULL if any is NULL.

    >>> sql("SELECT 'a' || 'b' || 'c'")
    abc
    """
    count = length(*strings)
    return compute.binary_join_element_wise(*(text_array(string, count) for string in strings), "")


macro(
    "concat",
    "argument0",
    lambda count: " || ".join(f"coalesce(CAST(argument{i} AS VARCHAR), '')" for i in range(count)) + " || ''",
    """Texts one after the other; a NULL counts as an empty text.

    >>> sql("SELECT concat('a', NULL, 'b', 1)")
    ab1
    """,
)

macro(
    "concat_ws",
    "separator, argument1",
    lambda count: (
        "without_prefix("
        + " || ".join(f"coalesce(separator || CAST(argument{i} AS VARCHAR), '')" for i in range(1, count))
        + ", separator)"
    ),
    """Texts that are not NULL, with a separator between them.

    >>> sql("SELECT concat_ws(', ', 'Paris', NULL, 'France')")
    Paris, France
    """,
)


@text("VARCHAR, VARCHAR -> VARCHAR")
def without_prefix(string: Any, prefix: Any) -> pa.Array:
    """A text without the start that it has; what concat_ws is made of.

    >>> sql("SELECT without_prefix(', a, b', ', ')")
    a, b
    """
    return per_row(lambda value, start: value.removeprefix(start), VARCHAR, string, prefix)


@text("VARCHAR, BIGINT -> VARCHAR")
def repeat(string: Any, times: Any) -> pa.Array:
    """The text `times` times over; empty where that is not positive.

    >>> sql("SELECT repeat('ab', 3)")
    ababab
    """

    def one(value: str, count: int) -> str:
        if count > 0 and len(value) * count > LONGEST:
            raise OutOfRangeError(f"text of REPEAT too long: {len(value) * count} characters")
        return value * count if value else ""

    return per_row(one, VARCHAR, string, times)


@text("VARCHAR -> VARCHAR")
def reverse(string: pa.Array) -> pa.Array:
    """Characters in reverse order; accents stay on their letters.

    >>> sql("SELECT reverse('abc')")
    cba
    """

    def one(value: str) -> str:
        return value[::-1] if value.isascii() else "".join(reversed(clusters(value)))

    return per_row(one, VARCHAR, string)


# --- parts ----------------------------------------------------------------------------------------------------------


def _bounds(size: int, offset: int, count: int | None) -> tuple[int, int]:
    """[start, end) of SUBSTRING in a sequence of `size`; a negative offset counts from the end, a negative count back."""
    if not -SUBSTRING_LIMIT <= offset <= SUBSTRING_LIMIT:
        raise OutOfRangeError(f"offset of SUBSTRING out of range: {offset}")
    if count is not None and not -SUBSTRING_LIMIT <= count <= SUBSTRING_LIMIT:
        raise OutOfRangeError(f"length of SUBSTRING out of range: {count}")
    start = offset - 1 if offset > 0 else size + offset if offset < 0 else -1
    if count is None:
        return max(start, 0), size
    low, high = (start, start + count) if count >= 0 else (start + count, start)
    return max(low, 0), max(high, 0)


@text("VARCHAR, BIGINT -> VARCHAR; VARCHAR, BIGINT, BIGINT -> VARCHAR", aliases=("substr",))
def substring(string: Any, offset: Any, count: Any = None) -> pa.Array:
    """`count` characters (or the rest) from a position; negative positions count from the end.

    >>> sql("SELECT substring('Charlottesville', 1, 9), substring('hello', -3)")
    Charlotte | llo
    """
    if isinstance(string, pa.Array) and is_constant(offset, count) and offset > 0 and (count is None or count >= 0):
        start, stop = _bounds(0, offset, count)
        return compute.utf8_slice_codeunits(string, start, None if count is None else stop)

    def one(value: str, first: int, number: int | None) -> str:
        start, stop = _bounds(len(value), first, number)
        return value[start:stop]

    return per_row(one, VARCHAR, string, offset, count)


@text("VARCHAR, BIGINT -> VARCHAR; VARCHAR, BIGINT, BIGINT -> VARCHAR")
def substring_grapheme(string: Any, offset: Any, count: Any = None) -> pa.Array:
    """As substring, in characters as a reader counts them.

    >>> sql("SELECT substring_grapheme('hello', 2, 3)")
    ell
    """

    def one(value: str, first: int, number: int | None) -> str:
        parts = clusters(value)
        start, stop = _bounds(len(parts), first, number)
        return "".join(parts[start:stop])

    return per_row(one, VARCHAR, string, offset, count)


@text("VARCHAR, BIGINT -> VARCHAR")
def left(string: Any, count: Any) -> pa.Array:
    """The first `count` characters; a negative count leaves out so many at the end.

    >>> sql("SELECT left('hello', 2), left('hello', -2)")
    he | hel
    """
    return per_row(_left, VARCHAR, string, count)


def _left(value: Any, number: int) -> Any:
    return value[:number] if number >= 0 else value[: max(0, len(value) + number)]


def _right(value: Any, number: int) -> Any:
    return value[max(0, len(value) - number) :] if number >= 0 else value[min(len(value), -number) :]


@text("VARCHAR, BIGINT -> VARCHAR")
def right(string: Any, count: Any) -> pa.Array:
    """The last `count` characters; a negative count leaves out so many at the start.

    >>> sql("SELECT right('hello', 2), right('hello', -2)")
    lo | llo
    """
    return per_row(_right, VARCHAR, string, count)


@text("VARCHAR, BIGINT -> VARCHAR")
def left_grapheme(string: Any, count: Any) -> pa.Array:
    """As left, in characters as a reader counts them.

    >>> sql("SELECT left_grapheme('hello', 2)")
    he
    """
    return per_row(lambda value, number: "".join(_left(clusters(value), number)), VARCHAR, string, count)


@text("VARCHAR, BIGINT -> VARCHAR")
def right_grapheme(string: Any, count: Any) -> pa.Array:
    """As right, in characters as a reader counts them.

    >>> sql("SELECT right_grapheme('hello', 2)")
    lo
    """
    return per_row(lambda value, number: "".join(_right(clusters(value), number)), VARCHAR, string, count)


@text("VARCHAR, VARCHAR, BIGINT -> VARCHAR")
def split_part(string: Any, separator: Any, position: Any) -> pa.Array:
    """Part number `position` of a text split at a separator; negative numbers count from the end; empty where none.

    >>> sql("SELECT split_part('2013-07-04', '-', 2)")
    07
    """

    def one(value: str, delimiter: str, index: int) -> str:
        parts = value.split(delimiter) if delimiter else list(value)
        if not value:
            parts = [] if not delimiter else [""]
        place = index - 1 if index > 0 else len(parts) + index
        return parts[place] if index and 0 <= place < len(parts) else ""

    return per_row(one, VARCHAR, string, separator, position)


# --- padding and trimming -------------------------------------------------------------------------------------------


def _padding(value: str, width: int, fill: str, name: str) -> str:
    missing = width - len(value)
    if missing <= 0:
        return ""
    if not fill:
        raise DataError(f"nothing to pad with in {name}")
    if missing > LONGEST:
        raise OutOfRangeError(f"text of {name} too long: {width} characters")
    return (fill * (missing // len(fill) + 1))[:missing]


@text("VARCHAR, INTEGER, VARCHAR -> VARCHAR")
def lpad(string: Any, width: Any, fill: Any) -> pa.Array:
    """Pad on the left to `width` characters, or cut to it.

    >>> sql("SELECT lpad('7', 3, '0')")
    007
    """

    def one(value: str, number: int, filler: str) -> str:
        return _padding(value, number, filler, "LPAD") + value[: max(0, number)]

    return per_row(one, VARCHAR, string, width, fill)


@text("VARCHAR, INTEGER, VARCHAR -> VARCHAR")
def rpad(string: Any, width: Any, fill: Any) -> pa.Array:
    """Pad on the right to `width` characters, or cut to it.

    >>> sql("SELECT rpad('ab', 4, '.')")
    ab..
    """

    def one(value: str, number: int, filler: str) -> str:
        return value[: max(0, number)] + _padding(value, number, filler, "RPAD")

    return per_row(one, VARCHAR, string, width, fill)


@text("VARCHAR -> VARCHAR; VARCHAR, VARCHAR -> VARCHAR")
def trim(string: Any, characters: Any = SPACES) -> pa.Array:
    """Remove spaces, or any of some characters, at both ends.

    >>> sql("SELECT trim('  a b '), trim('xxaxyx', 'xy')")
    a b | a
    """
    return per_row(lambda value, some: value.strip(some), VARCHAR, string, characters)


@text("VARCHAR -> VARCHAR; VARCHAR, VARCHAR -> VARCHAR")
def ltrim(string: Any, characters: Any = SPACES) -> pa.Array:
    """Remove spaces, or any of some characters, at the start.

    >>> sql("SELECT ltrim('007', '0')")
    7
    """
    return per_row(lambda value, some: value.lstrip(some), VARCHAR, string, characters)


@text("VARCHAR -> VARCHAR; VARCHAR, VARCHAR -> VARCHAR")
def rtrim(string: Any, characters: Any = SPACES) -> pa.Array:
    """Remove spaces, or any of some characters, at the end.

    >>> sql("SELECT rtrim('1.500', '0')")
    1.5
    """
    return per_row(lambda value, some: value.rstrip(some), VARCHAR, string, characters)


# --- replacing ------------------------------------------------------------------------------------------------------


@text("VARCHAR, VARCHAR, VARCHAR -> VARCHAR")
def replace(string: Any, search: Any, replacement: Any) -> pa.Array:
    """Replace every occurrence of a text; an empty one occurs nowhere.

    >>> sql("SELECT replace('a-b-c', '-', '+')")
    a+b+c
    """
    if isinstance(string, pa.Array) and is_constant(search, replacement) and search:
        return compute.replace_substring(string, search, replacement)
    return per_row(
        lambda value, old, new: value.replace(old, new) if old else value, VARCHAR, string, search, replacement
    )


@text("VARCHAR, VARCHAR, VARCHAR -> VARCHAR")
def translate(string: Any, source: Any, target: Any) -> pa.Array:
    """Replace characters of `source` by those at the same place in `target`; those beyond its end are removed.

    >>> sql("SELECT translate('12,5', ',', '.')")
    12.5
    """

    def one(value: str, old: str, new: str) -> str:
        return value.translate(_translation(old, new))

    return per_row(one, VARCHAR, string, source, target)


@lru_cache(maxsize=16)
def _translation(old: str, new: str) -> dict[int, str | None]:
    table: dict[int, str | None] = {}
    for place, character in enumerate(old):
        table.setdefault(ord(character), new[place] if place < len(new) else None)
    return table


@text("VARCHAR, VARCHAR, BIGINT -> VARCHAR; VARCHAR, VARCHAR, BIGINT, BIGINT -> VARCHAR")
def overlay(string: Any, replacement: Any, offset: Any, count: Any = None) -> pa.Array:
    """Put a text in the place of `count` characters (as many as it has) from a position.

    >>> sql("SELECT overlay('Txxxxas', 'hom', 2, 4)")
    Thomas
    """

    def one(value: str, new: str, first: int, number: int | None) -> str:
        removed = len(new) if number is None or number < 0 else number
        start = first - 1
        return value[: max(0, start)] + new + value[max(0, start + removed) :]

    return per_row(one, VARCHAR, string, replacement, offset, count)


# --- searching ------------------------------------------------------------------------------------------------------


@text("VARCHAR, VARCHAR -> BIGINT", aliases=("strpos", "instr"))
def position(string: Any, search: Any) -> pa.Array:
    """Place of the first occurrence, counted from 1; 0 where there is none.

    >>> sql("SELECT position('b' IN 'abc'), strpos('abc', 'x')")
    2 | 0
    """
    return per_row(lambda value, part: value.find(part) + 1, BIGINT, string, search)


@text("VARCHAR, VARCHAR -> BOOLEAN")
def contains(string: Any, search: Any) -> pa.Array:
    """Whether a text occurs in another.

    >>> sql("SELECT contains('Washington', 'shin')")
    true
    """
    if isinstance(string, pa.Array) and is_constant(search):
        return compute.match_substring(string, search)
    return per_row(lambda value, part: part in value, BOOLEAN, string, search)


@text("VARCHAR, VARCHAR -> BOOLEAN", aliases=("prefix",))
def starts_with(string: Any, search: Any) -> pa.Array:
    """Whether a text starts with another.

    >>> sql("SELECT starts_with('Washington', 'Wash')")
    true
    """
    if isinstance(string, pa.Array) and is_constant(search):
        return compute.starts_with(string, search)
    return per_row(lambda value, part: value.startswith(part), BOOLEAN, string, search)


@text("VARCHAR, VARCHAR -> BOOLEAN", aliases=("suffix",))
def ends_with(string: Any, search: Any) -> pa.Array:
    """Whether a text ends with another.

    >>> sql("SELECT ends_with('Washington', 'ton')")
    true
    """
    if isinstance(string, pa.Array) and is_constant(search):
        return compute.ends_with(string, search)
    return per_row(lambda value, part: value.endswith(part), BOOLEAN, string, search)


# --- hashes and number bases ----------------------------------------------------------------------------------------


@text("VARCHAR -> VARCHAR")
def md5(string: pa.Array) -> pa.Array:
    """MD5 hash in hexadecimal.

    >>> sql("SELECT md5('a')")
    0cc175b9c0f1b6a831c399e269772661
    """
    return per_row(lambda value: hashlib.md5(value.encode(), usedforsecurity=False).hexdigest(), VARCHAR, string)


@text("VARCHAR -> VARCHAR")
def sha1(string: pa.Array) -> pa.Array:
    """SHA-1 hash in hexadecimal.

    >>> sql("SELECT sha1('a')")
    86f7e437faa5a7fce15d1ddcb9eaeaea377667b8
    """
    return per_row(lambda value: hashlib.sha1(value.encode(), usedforsecurity=False).hexdigest(), VARCHAR, string)


@text("VARCHAR -> VARCHAR")
def sha256(string: pa.Array) -> pa.Array:
    """SHA-256 hash in hexadecimal.

    >>> sql("SELECT left(sha256('a'), 8)")
    ca978112
    """
    return per_row(lambda value: hashlib.sha256(value.encode()).hexdigest(), VARCHAR, string)


@text("VARCHAR -> VARCHAR; BIGINT -> VARCHAR", aliases=("to_hex",))
def hex_(value: pa.Array) -> pa.Array:
    """Hexadecimal digits of a number (of its 64 bits where negative) or of a text's UTF-8 bytes.

    >>> sql("SELECT hex(255), hex('abc')")
    FF | 616263
    """

    def one(item: str | int) -> str:
        return item.encode().hex().upper() if isinstance(item, str) else f"{item & 0xFFFFFFFFFFFFFFFF:X}"

    return per_row(one, VARCHAR, value)


@text("VARCHAR -> VARCHAR; BIGINT -> VARCHAR", name="bin", aliases=("to_binary",))
def binary(value: pa.Array) -> pa.Array:
    """Binary digits of a number (of its 64 bits where negative) or of a text's UTF-8 bytes.

    >>> sql("SELECT bin(5), bin('a')")
    101 | 01100001
    """

    def one(item: str | int) -> str:
        if isinstance(item, str):
            return "".join(f"{byte:08b}" for byte in item.encode())
        return f"{item & 0xFFFFFFFFFFFFFFFF:b}"

    return per_row(one, VARCHAR, value)


DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@text("BIGINT, INTEGER -> VARCHAR; BIGINT, INTEGER, INTEGER -> VARCHAR")
def to_base(number: Any, radix: Any, least_length: Any = 0) -> pa.Array:
    """A number that is not negative in any base from 2 to 36, padded with zeros to a least length.

    >>> sql("SELECT to_base(255, 16), to_base(5, 2, 8)")
    FF | 00000101
    """

    def one(value: int, base: int, width: int) -> str:
        if value < 0:
            raise DataError(f"negative number in to_base: {value}")
        if not 2 <= base <= 36:
            raise DataError(f"radix of to_base not between 2 and 36: {base}")
        if not 0 <= width <= 64:
            raise DataError(f"length of to_base not between 0 and 64: {width}")
        digits = "" if value else "0"
        while value:
            value, digit = divmod(value, base)
            digits = DIGITS[digit] + digits
        return digits.rjust(width, "0")

    return per_row(one, VARCHAR, number, radix, least_length)


# --- likeness -------------------------------------------------------------------------------------------------------


@text("VARCHAR, VARCHAR -> BIGINT", aliases=("editdist3",))
def levenshtein(left: Any, right: Any) -> pa.Array:
    """Least number of characters inserted, removed or replaced to make one text of the other.

    >>> sql("SELECT levenshtein('duck', 'dock')")
    1
    """

    def one(first: str, second: str) -> int:
        row = list(range(len(second) + 1))
        for i, a in enumerate(first, 1):
            diagonal, row[0] = row[0], i
            for j, b in enumerate(second, 1):
                diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (a != b))
        return row[-1]

    return per_row(one, BIGINT, left, right)


@text("VARCHAR, VARCHAR -> BIGINT")
def damerau_levenshtein(left: Any, right: Any) -> pa.Array:
    """As levenshtein, where two neighbours that change places count one.

    >>> sql("SELECT damerau_levenshtein('duck', 'udck')")
    1
    """

    def one(first: str, second: str) -> int:
        far = len(first) + len(second)
        last: dict[str, int] = {}  # the row in which each character was seen last
        table = [[far] * (len(second) + 2) for _ in range(len(first) + 2)]
        for i in range(len(first) + 1):
            table[i + 1][1] = i
        for j in range(len(second) + 1):
            table[1][j + 1] = j
        for i, a in enumerate(first, 1):
            match = 0
            for j, b in enumerate(second, 1):
                row, column = last.get(b, 0), match
                if a == b:
                    match = j
                table[i + 1][j + 1] = min(
                    table[i][j] + (a != b),
                    table[i + 1][j] + 1,
                    table[i][j + 1] + 1,
                    table[row][column] + (i - row - 1) + 1 + (j - column - 1),
                )
            last[a] = i
        return table[-1][-1]

    return per_row(one, BIGINT, left, right)


@text("VARCHAR, VARCHAR -> BIGINT", aliases=("mismatches",))
def hamming(left: Any, right: Any) -> pa.Array:
    """Number of places at which two texts of one length differ.

    >>> sql("SELECT hamming('duck', 'dusk')")
    1
    """

    def one(first: str, second: str) -> int:
        if len(first) != len(second) or not first:
            raise DataError(f"hamming needs two texts of one length that are not empty: {first!r} and {second!r}")
        return sum(a != b for a, b in zip(first, second, strict=True))

    return per_row(one, BIGINT, left, right)


@text("VARCHAR, VARCHAR -> DOUBLE")
def jaccard(left: Any, right: Any) -> pa.Array:
    """Share of the characters of either text that occur in both, from 0 to 1.

    >>> sql("SELECT jaccard('duck', 'luck')")
    0.6
    """

    def one(first: str, second: str) -> float:
        if not first or not second:
            raise DataError(f"jaccard needs two texts that are not empty: {first!r} and {second!r}")
        a, b = set(first), set(second)
        return len(a & b) / len(a | b)

    return per_row(one, DOUBLE, left, right)


def _jaro(first: str, second: str) -> float:
    """Jaro's measure: matching characters within half the longer length, less half the transpositions."""
    if not first or not second:
        return 0.0
    reach = max(0, max(len(first), len(second)) // 2 - 1)
    taken = [False] * len(second)
    matched = []
    for i, character in enumerate(first):
        for j in range(max(0, i - reach), min(len(second), i + reach + 1)):
            if not taken[j] and second[j] == character:
                taken[j] = True
                matched.append(character)
                break
    if not matched:
        return 0.0
    others = [character for character, used in zip(second, taken, strict=True) if used]
    swaps = sum(a != b for a, b in zip(matched, others, strict=True)) // 2
    common = len(matched)
    return (common / len(first) + common / len(second) + (common - swaps) / common) / 3.0


@text("VARCHAR, VARCHAR -> DOUBLE; VARCHAR, VARCHAR, DOUBLE -> DOUBLE")
def jaro_similarity(left: Any, right: Any, cutoff: Any = 0.0) -> pa.Array:
    """Jaro's likeness of two texts, from 0 to 1; below the cutoff it is 0.

    >>> sql("SELECT round(jaro_similarity('martha', 'marhta'), 4)")
    0.9444
    """

    def one(first: str, second: str, least: float) -> float:
        likeness = _jaro(first, second)
        return likeness if likeness >= least else 0.0

    return per_row(one, DOUBLE, left, right, cutoff)


@text("VARCHAR, VARCHAR -> DOUBLE; VARCHAR, VARCHAR, DOUBLE -> DOUBLE")
def jaro_winkler_similarity(left: Any, right: Any, cutoff: Any = 0.0) -> pa.Array:
    """Jaro's likeness, raised for a common start of up to four characters; below the cutoff it is 0.

    >>> sql("SELECT round(jaro_winkler_similarity('martha', 'marhta'), 4)")
    0.9611
    """

    def one(first: str, second: str, least: float) -> float:
        likeness = _jaro(first, second)
        if likeness > 0.7:
            start = 0
            while start < min(4, len(first), len(second)) and first[start] == second[start]:
                start += 1
            likeness += start * 0.1 * (1.0 - likeness)
        return likeness if likeness >= least else 0.0

    return per_row(one, DOUBLE, left, right, cutoff)


# --- addresses and paths --------------------------------------------------------------------------------------------


@text("VARCHAR -> VARCHAR")
def url_encode(string: pa.Array) -> pa.Array:
    """Percent-encode every byte but letters, digits and -._~.

    >>> sql("SELECT url_encode('a b/é')")
    a%20b%2F%C3%A9
    """
    from urllib.parse import quote

    return per_row(lambda value: quote(value, safe="-._~"), VARCHAR, string)


@text("VARCHAR -> VARCHAR")
def url_decode(string: pa.Array) -> pa.Array:
    """Undo percent-encoding.  Fails where the bytes are not UTF-8.

    >>> sql("SELECT url_decode('a%20b')")
    a b
    """
    from urllib.parse import unquote

    def one(value: str) -> str:
        try:
            return unquote(value, errors="strict")
        except UnicodeDecodeError:
            raise ConversionError(f"percent-encoded text is not UTF-8: {value}") from None

    return per_row(one, VARCHAR, string)


@text("BIGINT -> VARCHAR", aliases=("formatreadablesize",))
def format_bytes(number: pa.Array) -> pa.Array:
    """A number of bytes in binary units.

    >>> sql("SELECT format_bytes(123456789)")
    117.7 MiB
    """
    return per_row(lambda value: _readable(value, 1024, ("KiB", "MiB", "GiB", "TiB", "PiB")), VARCHAR, number)


@text("BIGINT -> VARCHAR", name="formatreadabledecimalsize")
def format_decimal_bytes(number: pa.Array) -> pa.Array:
    """A number of bytes in decimal units.

    >>> sql("SELECT formatReadableDecimalSize(123456789)")
    123.4 MB
    """
    return per_row(lambda value: _readable(value, 1000, ("kB", "MB", "GB", "TB", "PB")), VARCHAR, number)


def _readable(value: int, step: int, units: tuple[str, ...]) -> str:
    size, rest, unit = abs(value), 0, ""
    for candidate in units:
        if size < step:
            break
        size, rest, unit = size // step, size % step, candidate
    sign = "-" if value < 0 else ""
    if not unit:
        return f"{sign}{size} byte" if size == 1 else f"{sign}{size} bytes"
    return f"{sign}{size}.{rest * 10 // step} {unit}"
