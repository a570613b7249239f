"""Record batches as CSV text, in DuckDB's spelling of values: quotes where needed, 1.0 for a whole double."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from gpudb import compute as pc
from gpudb.errors import BindError, NotSupportedError
from gpudb.functions.blob import blob_texts
from gpudb.functions.cast_text import print_values
from gpudb.functions.lists import printed
from gpudb.functions.zoned import zoned_texts
from gpudb.storage.csv_dialect import option_flag
from gpudb.types import INTERVAL, TIME

_OPTIONS = frozenset("header delim delimiter sep separator quote escape null nullstr force_quote compression".split())
_COMPRESSIONS = {"gzip": "gzip", "gz": "gzip", "zstd": "zstd", "none": None, "uncompressed": None, "auto": None}


def float_texts(values: pa.Array) -> pa.Array:
    """Floats as text: the shortest that reads back the same, `1.0`, `1e+16`, `1e-05`, `inf`, `nan`."""
    texts = pc.cast(values, pa.string())
    whole = pc.match_substring_regex(texts, r"^-?\d+$")
    texts = pc.if_else(whole, pc.binary_join_element_wise(texts, ".0", ""), texts)
    # Arrow takes to exponents elsewhere than Python and DuckDB do: such texts are respelled
    differs = pc.match_substring_regex(texts, r"e|^-?0\.0000")
    if not pc.any(differs).as_py():
        return texts
    respelled = [repr(float(text)) for text in texts.filter(pc.fill_null(differs, False)).to_pylist()]
    return pc.replace_with_mask(texts, pc.fill_null(differs, False), pa.array(respelled, pa.string()))


def value_texts(column: pa.Array) -> pa.Array:
    """A column's values as SQL shows them, `CAST(x AS VARCHAR)`; NULL stays NULL."""
    kind = column.type
    if pa.types.is_string(kind):
        return column
    if pa.types.is_floating(kind):
        return float_texts(column)
    if pa.types.is_binary(kind):
        return blob_texts(column)
    if pa.types.is_interval(kind):
        return print_values(column, INTERVAL)
    if pa.types.is_time(kind):
        return print_values(column.cast(pa.time64("us")), TIME)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return zoned_texts(column, kind.tz)
    texts = pc.cast(column, pa.string())
    if pa.types.is_timestamp(kind):  # a fraction loses its last zeros, and its point with them
        texts = pc.replace_substring_regex(texts, r"(\.\d*[1-9])0+$", r"\1")
        texts = pc.replace_substring_regex(texts, r"\.0+$", "")
    return texts


class CsvWriter:
    """Writes batches to an open sink.

    Options: header, delimiter (delim, sep), quote, escape, null (nullstr), force_quote (column names or `*`), compression
    (gzip, zstd; by default as the file's name ends).
    """

    def __init__(self, sink: pa.NativeFile, schema: pa.Schema, options: Mapping[str, object], path: str) -> None:
        self._delimiter = self._character(options, ",", "delimiter", "delim", "sep", "separator")
        self._quote = self._character(options, '"', "quote")
        self._escape = self._character(options, self._quote, "escape")
        self._null = str(options.get("null", options.get("nullstr", "")))
        forced = options.get("force_quote", ())
        names = [str(n) for n in forced] if isinstance(forced, (list, tuple)) else [str(forced)]
        self._forced = [names == ["*"] or field.name in names for field in schema]
        compression = _COMPRESSIONS[str(options.get("compression", "auto")).lower()]
        if "compression" not in options:
            compression = {".gz": "gzip", ".zst": "zstd"}.get(path[path.rfind(".") :])
        self._sink = pa.CompressedOutputStream(sink, compression) if compression else sink
        self._compressed = compression is not None
        self._special = "[" + "".join(f"\\x{ord(c):02x}" for c in self._delimiter + self._quote + "\r\n#") + "]"
        if option_flag("header", options.get("header", True)):
            names = [
                self._quoted(pa.array([field.name]), forced)[0].as_py()
                for field, forced in zip(schema, self._forced, strict=True)
            ]
            self._sink.write((self._delimiter.join(names) + "\n").encode())

    @staticmethod
    def check_options(options: Mapping[str, object]) -> None:
        """Raise BindError or NotSupportedError for an option that cannot be honoured."""
        for name in options:
            if name not in _OPTIONS:
                raise BindError(f"unknown option for writing CSV: {name}", hint="known: " + ", ".join(sorted(_OPTIONS)))
        if str(options.get("compression", "auto")).lower() not in _COMPRESSIONS:
            raise NotSupportedError(f"CSV compression is not supported: {options['compression']}")

    @staticmethod
    def _character(options: Mapping[str, object], default: str, *names: str) -> str:
        text = next((str(options[name]) for name in names if name in options), default)
        text = {"\\t": "\t", "tab": "\t"}.get(text, text)
        if len(text) != 1 or not text.isascii() or text in "\r\n":
            raise NotSupportedError(f"option {names[0]} takes one ASCII character, not: {text!r}")
        return text

    def _quoted(self, texts: pa.Array, forced: bool) -> pa.Array:
        """Texts in quotes where they hold a delimiter, a quote, a line break, a comment's sign, or look like a NULL."""
        special = pc.match_substring_regex(texts, self._special)
        any_special = bool(pc.any(special).as_py())
        special = pc.or_(special, pc.equal(texts, self._null))
        if not forced and not pc.any(special).as_py():
            return texts
        inner = texts
        if any_special:
            if self._escape != self._quote:
                inner = pc.replace_substring(inner, self._escape, self._escape * 2)
            inner = pc.replace_substring(inner, self._quote, self._escape + self._quote)
        quoted = pc.binary_join_element_wise(self._quote, inner, self._quote, "")
        return quoted if forced else pc.if_else(special, quoted, texts)

    def _texts(self, column: pa.Array, forced: bool) -> pa.Array:
        """One column as CSV fields; a NULL becomes the text that stands for it."""
        kind = column.type
        is_list = pa.types.is_list(kind)
        texts = printed(column, value_texts) if is_list else value_texts(column)
        if pa.types.is_string(kind) or pa.types.is_binary(kind) or is_list or forced:
            texts = self._quoted(texts, forced)
        return pc.fill_null(texts, self._null)

    def write(self, batch: pa.RecordBatch) -> None:
        for start in range(0, batch.num_rows, 65_536):  # bounds the text of wide rows
            piece = batch.slice(start, 65_536)
            columns = [self._texts(c, f) for c, f in zip(piece.columns, self._forced, strict=True)]
            lines = pc.binary_join_element_wise(*columns, self._delimiter) if len(columns) > 1 else columns[0]
            lines = pc.cast(lines, pa.large_string())
            lines = pc.binary_join_element_wise(
                lines, pa.scalar("\n", pa.large_string()), pa.scalar("", pa.large_string())
            )
            offsets = lines.buffers()[1]
            first, last = (
                int(x) for x in memoryview(offsets).cast("q")[lines.offset : lines.offset + len(lines) + 1 : len(lines)]
            )
            self._sink.write(lines.buffers()[2][first:last])

    def close(self) -> None:
        """Finish the compressed stream."""
        if self._compressed:
            self._sink.close()
