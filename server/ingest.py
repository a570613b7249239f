"""CommandStatementIngest, and DoPut to a table: what comes over the wire, and when it has all come.

pyarrow shows a client that was killed half-way as one that has come to its end, except that the call is cancelled; and one that
gives up without saying so is not told apart at all.  So our own clients end a stream with a marker that says how many rows it
had (`flight_sql.end_marker`), and ask, by the option `gpudb.end`, that nothing be kept without it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pyarrow as pa

from gpudb.catalog import qualified
from gpudb.errors import DataError, InterfaceError, NotSupportedError, OperationalError
from gpudb.flight_sql import END_MARKER, PRODUCER, SEQUENCE
from gpudb.ingest import Numbered, Target
from gpudb.server.metadata import catalog_name
from gpudb.session import Database

LARGEST_BATCH = 256 << 20  # bytes of a batch, decompressed; what is larger is refused once it is seen
GROUPED_BYTES = 16 << 20  # of a stream that is committed together with others
_IF_THERE: dict[int, Literal["fail", "append", "replace"]] = {0: "fail", 1: "fail", 2: "append", 3: "replace"}


def target_of(command: Any, database: Database) -> Target:
    """Where an ingest command wants its rows."""
    if command.temporary:
        raise NotSupportedError("temporary tables are not supported")
    if command.HasField("catalog") and command.catalog not in ("", catalog_name(database)):
        raise InterfaceError(f"there is no such catalog: {command.catalog}", hint=catalog_name(database))
    if not command.table:
        raise InterfaceError("no table was named")
    options = command.table_definition_options
    if options.if_exists not in _IF_THERE or options.if_not_exist not in (0, 1, 2):
        raise InterfaceError("the options of the table's definition are unknown")
    schema = command.schema if command.HasField("schema") and command.schema else "main"
    if_missing: Literal["create", "fail"] = "fail" if options.if_not_exist == 2 else "create"
    return Target(qualified(command.table, schema), if_missing, _IF_THERE[options.if_exists])


def numbered_of(options: dict[str, str]) -> Numbered | None:
    """The producer and sequence of a batch whose client numbers them."""
    if PRODUCER not in options:
        return None
    producer, sequence = options[PRODUCER], options.get(SEQUENCE, "")
    if not 0 < len(producer) <= 64 or not producer.isascii() or not producer.isprintable():
        raise InterfaceError(f"{PRODUCER} is 1 to 64 printable ASCII characters")
    if not sequence.isdecimal() or len(sequence) > 18:
        raise InterfaceError(f"{SEQUENCE} is a whole number")
    return Numbered(producer, int(sequence))


def arriving(
    reader: Any, context: Any, wants_marker: bool, check: Callable[[], None] = lambda: None
) -> Iterator[pa.RecordBatch]:
    """The batches of a stream; ends only where all of them have come, as far as that can be told, and raises otherwise.

    check  called behind each batch and at the end; raises where no more is to be taken
    """
    rows = 0
    marked = None
    while True:
        try:
            chunk = reader.read_chunk()
        except StopIteration:
            break
        except Exception as error:  # noqa: BLE001 - whatever Arrow finds wrong with the bytes
            raise DataError(f"the stream is not valid Arrow: {first_line(error)}") from None
        check()
        if marked is not None:
            raise InterfaceError("rows came behind the marker of the stream's end")
        if chunk.app_metadata is not None and wants_marker:
            marked = _marker(chunk.app_metadata.to_pybytes())
        if chunk.data is not None:
            if chunk.data.nbytes > LARGEST_BATCH:
                raise OperationalError(
                    f"a batch is too large: {chunk.data.nbytes:,} bytes, of {LARGEST_BATCH:,} at most"
                )
            rows += chunk.data.num_rows
            yield chunk.data
    if context.is_cancelled():
        raise OperationalError("the client went away before its rows had all come: none is kept")
    check()
    if wants_marker and marked != rows:
        raise OperationalError(f"the stream broke off: {rows:,} rows came, and no marker of its end for them")


def _marker(metadata: bytes) -> int | None:
    try:
        found = json.loads(metadata)
        return int(found[END_MARKER]) if END_MARKER in found else None
    except (ValueError, TypeError, KeyError):
        return None


def first_line(error: BaseException) -> str:
    """What Arrow says, without the details behind it."""
    return (str(error).splitlines() or [type(error).__name__])[0].partition(". Detail:")[0][:300]
