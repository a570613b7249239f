"""Record batches as CSV text, in DuckDB's spelling of values: quotes where needed, 1.0 for a whole double."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc

from gpudb.errors import BindError, NotSupportedError
from gpudb.storage.csv_dialect import option_flag

_OPTIONS = frozenset("header delim delimiter sep separator quote escape null nullstr force_quote compression".split())
_COMPRESSIONS = {"gzip": "gzip", "gz": "gzip", "zstd": "zstd", "none": None, "uncompressed": None, "auto": None}


def float_texts(values: pa.Array) -> pa.Array:
    """Floats as text: the shortest that reads back the same, `1.0`, `1e+16`, `1e-05`, `inf`, `nan`."""
    texts = pc.cast(values, pa.string())
    whole = pc.match_substring_regex(texts, r"^-?\d+$")
    texts = pc.if_else(whole, pc.binary_join_element_wise(texts, ".0", ""), texts)
    size = pc.abs(values)  # Arrow turns to exponents elsewhere than Python and DuckDB do: these few are respelled
    differs = pc.or_(
        pc.and_(pc.greater_equal(size, 1e15), pc.less(size, 1e16)),
        pc.and_(pc.less(size, 1e-4), pc.greater(size, 0.0)),
    )
    if not pc.any(differs).as_py():
        return texts
    respelled = [repr(float(text)) for text in texts.filter(pc.fill_null(differs, False)).to_pylist()]
    return pc.replace_with_mask(texts, pc.fill_null(differs, False), pa.array(respelled, pa.string()))


class CsvWriter:
    """Writes batches to an open binary file.

    Options: header, delimiter (delim, sep), quote, escape, null (nullstr), force_quote (column names or `*`), compression
    (gzip, zstd; by default as the file's name ends).
    """

    def __init__(self, file: IO[bytes], schema: pa.Schema, options: Mapping[str, object], path: str) -> None:
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
        self._sink: IO[bytes] = pa.CompressedOutputStream(file, compression) if compression else file
        self._compressed = compression is not None
        self._special = "[" + "".join(f"\\x{ord(c):02x}" for c in self._delimiter + self._quote + "\r\n") + "]"
        if option_flag("header", options.get("header", True)):
            names_column = pa.array([field.name for field in schema])
            self._sink.write((self._delimiter.join(self._quoted(names_column, False).to_pylist()) + "\n").encode())

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
        """Texts in quotes where they hold a delimiter, a quote, a line break, look like a NULL or start a comment."""
        special = pc.match_substring_regex(texts, self._special)
        any_special = bool(pc.any(special).as_py())
        special = pc.or_(special, pc.or_(pc.equal(texts, self._null), pc.starts_with(texts, "#")))
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
        if pa.types.is_floating(kind):
            texts = float_texts(column)
        elif pa.types.is_timestamp(kind):
            texts = pc.replace_substring_regex(pc.cast(column, pa.string()), r"\.?0*$", "")
            # midnight and whole seconds lose their ".000000" only: a time without a fraction has no dot to cut
            texts = pc.if_else(
                pc.match_substring_regex(pc.cast(column, pa.string()), r"\.0+$"),
                pc.replace_substring_regex(pc.cast(column, pa.string()), r"\.0+$", ""),
                texts,
            )
        elif pa.types.is_interval(kind):
            raise NotSupportedError("an INTERVAL column cannot be written to CSV: cast it to VARCHAR")
        else:
            texts = column if pa.types.is_string(kind) else pc.cast(column, pa.string())
        if pa.types.is_string(kind) or forced:
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
        """Finish the compressed stream; the file itself stays open."""
        if self._compressed:
            self._sink.flush()
            self._sink.close()
