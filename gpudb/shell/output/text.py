"""The text modes that stream: csv, json, jsonlines, markdown and line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

import pyarrow as pa

from gpudb import compute as pc
from gpudb.shell.output import Rows, Style
from gpudb.shell.output.box import one_line
from gpudb.shell.values import json_column, text_column
from gpudb.types import SqlType


def _join(columns: list[pa.Array], separator: str) -> pa.Array:
    """(rows,) string: the texts of each row joined; no NULLs may be left."""
    return pc.binary_join_element_wise(*columns, pa.scalar(separator)) if len(columns) > 1 else columns[0]


def write_csv(result: Rows, style: Style, stream: TextIO) -> int:
    """RFC 4180: values with a comma, a quote or a line break are quoted, quotes are doubled; lines end in a line feed.

    NULL is written as nothing, the empty text as "", so that the two can be told apart.
    """
    null_text = style.null_text("")
    if style.headers:
        names = _quoted(pa.array(result.schema.names, pa.string()), null_text)
        stream.write(",".join(names.to_pylist()) + "\n")
    rows = 0
    for batch in result.batches():
        columns = []
        for position, sql_type in enumerate(result.types):
            text = text_column(batch.column(position), sql_type)
            if sql_type.is_coded:
                text = _quoted(text, null_text)
            columns.append(pc.fill_null(text, null_text))
        stream.write("\n".join(_join(columns, ",").to_pylist()) + "\n")
        rows += batch.num_rows
    return rows


def _quoted(text: pa.Array, null_text: str) -> pa.Array:
    """Text as CSV fields: quoted where it must be, or where it would read as NULL."""
    needs = pc.or_(pc.match_substring_regex(text, '[",\r\n]'), pc.equal(text, null_text))
    if not pc.any(needs).as_py():
        return text
    doubled = pc.replace_substring(text, '"', '""')
    return pc.if_else(needs, pc.binary_join_element_wise('"', doubled, '"', ""), text)


def _json_objects(result: Rows) -> Iterator[list[str]]:
    """The rows of a result as JSON objects, a list for each batch."""
    keys = json_column(pa.array(result.schema.names, pa.string()), SqlType("VARCHAR")).to_pylist()
    for batch in result.batches():
        pieces: list[object] = []
        for position, sql_type in enumerate(result.types):
            pieces += [
                "{" if position == 0 else ",",
                f"{keys[position]}:",
                json_column(batch.column(position), sql_type),
            ]
        yield pc.binary_join_element_wise(*pieces, "}", "").to_pylist()


def write_json(result: Rows, style: Style, stream: TextIO) -> int:
    """One array of objects, a line for each row."""
    rows = 0
    for objects in _json_objects(result):
        stream.write(("[" if rows == 0 else ",\n") + ",\n".join(objects))
        rows += len(objects)
    stream.write("]\n" if rows else "[]\n")
    return rows


def write_jsonlines(result: Rows, style: Style, stream: TextIO) -> int:
    """One object a line."""
    rows = 0
    for objects in _json_objects(result):
        stream.write("\n".join(objects) + "\n")
        rows += len(objects)
    return rows


def write_markdown(result: Rows, style: Style, stream: TextIO) -> int:
    """A Markdown table, numbers to the right; | is escaped, a line break becomes \\n."""
    if style.headers:
        stream.write(f"| {' | '.join(_markdown_cell(name) for name in result.schema.names)} |\n")
        stream.write(f"|{'|'.join('---:' if sql_type.is_numeric else '---' for sql_type in result.types)}|\n")
    null_text = style.null_text("NULL")
    rows = 0
    for batch in result.batches():
        columns = []
        for position, sql_type in enumerate(result.types):
            text = pc.fill_null(text_column(batch.column(position), sql_type), null_text)
            if sql_type.is_coded:
                text = pa.array([_markdown_cell(value) for value in text.to_pylist()], pa.string())
            columns.append(text)
        stream.write("".join(f"| {row} |\n" for row in _join(columns, " | ").to_pylist()))
        rows += batch.num_rows
    return rows


def _markdown_cell(text: str) -> str:
    return one_line(text).replace("|", "\\|")


def write_line(result: Rows, style: Style, stream: TextIO) -> int:
    """One `name = value` line for each column, names to the right; a blank line between rows."""
    width = max(len(name) for name in result.schema.names)
    labels = [f"{name:>{width}} = " if style.headers else "" for name in result.schema.names]
    null_text = style.null_text("NULL")
    rows = 0
    for batch in result.batches():
        columns = [
            pc.fill_null(text_column(batch.column(position), sql_type), null_text).to_pylist()
            for position, sql_type in enumerate(result.types)
        ]
        for row in zip(*columns, strict=True):
            if rows:
                stream.write("\n")
            stream.write("".join(f"{label}{value}\n" for label, value in zip(labels, row, strict=True)))
            rows += 1
    return rows
