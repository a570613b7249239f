"""The output modes.  One table, `MODES`: a mode's name, and the module and function that writes a result in it.

A text mode is `write(result, style, stream) -> rows`, a binary one the same with a binary stream.  Modules load at the
first result, so that starting the shell does not load Arrow.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Any, Protocol

from gpudb.record import record

if TYPE_CHECKING:
    import pyarrow as pa

    from gpudb.types import SqlType


class Rows(Protocol):
    """The part of a session's Result that a mode reads; its batches hold at least one row and at most 65,536."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def types(self) -> list[SqlType]: ...

    def batches(self) -> Iterator[pa.RecordBatch]: ...


@record
class Style:
    """How results are written.

    headers     with column names
    null_value  the text of NULL; None: the mode's own (NULL in box, markdown and line; nothing in csv; null in JSON)
    max_rows    rows of a box; 0: all
    max_width   characters of a box's lines; 0: as wide as it needs
    """

    headers: bool = True
    null_value: str | None = None
    max_rows: int = 0
    max_width: int = 0

    def null_text(self, default: str) -> str:
        return default if self.null_value is None else self.null_value


MODES: dict[str, str] = {
    "box": "gpudb.shell.output.box:write_box",
    "csv": "gpudb.shell.output.text:write_csv",
    "json": "gpudb.shell.output.text:write_json",
    "jsonlines": "gpudb.shell.output.text:write_jsonlines",
    "markdown": "gpudb.shell.output.text:write_markdown",
    "line": "gpudb.shell.output.text:write_line",
    "parquet": "gpudb.shell.output.binary:write_parquet",
    "arrow": "gpudb.shell.output.binary:write_arrow",
}
BINARY_MODES = frozenset({"parquet", "arrow"})

Writer = Callable[[Rows, Style, IO[Any]], int]


def writer(mode: str) -> Writer:
    """The function that writes a result in `mode` to a stream and returns its number of rows."""
    module, _, function = MODES[mode].partition(":")
    found: Writer = getattr(importlib.import_module(module), function)
    return found
