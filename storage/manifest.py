"""Manifests: one chain of versions of all tables, views and schemas.

Each names its parent; every 64th says everything, others what changed.

A manifest is a line `gpudb-manifest FORMAT LENGTH CHECKSUM` and JSON of that length; the checksum is blake2b of the JSON, in
hexadecimal.  A file that has its final name was complete on disk before it got it, so one that does not verify has been
damaged: it is refused, and nobody steps back to an older version by himself.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gpudb.catalog import (
    Constraint,
    Constraints,
    Defaults,
    Definition,
    Enum,
    Producer,
    Schema,
    Sequence,
    View,
    definition_key,
)
from gpudb.errors import CorruptDataError, FormatError
from gpudb.record import record
from gpudb.storage.column import INT64, WIDE
from gpudb.storage.file_format import PieceEntry, RowGroupEntry
from gpudb.storage.table import Columns
from gpudb.types import UNSIGNED_BITS, RegisterType, SqlType

MAGIC = "gpudb-manifest"
# 2 knows views, schemas and defaults, 3 producers, 4 constraints and integers of 128 bits,
# 5 and 6 columns of later kinds, 5 ENUMs; written as the least it needs
MANIFEST_FORMAT = 6
LATER_KINDS = dict.fromkeys(("TIME", "TIMESTAMPTZ", "INTERVAL", "BLOB", "ENUM"), 5)
LATER_KINDS |= dict.fromkeys(("UUID", *UNSIGNED_BITS), 6)
FULL_EVERY = 64  # versions from one full manifest to the next
NAME = re.compile(r"[0-9]{20}\.json")


@record
class DictionaryEntry:
    """A dictionary: identity (a new one for a new dictionary, kept while it grows), sorted entries, and its pieces."""

    identity: str
    sorted_count: int
    pieces: tuple[PieceEntry, ...]

    @property
    def count(self) -> int:
        return sum(piece.count for piece in self.pieces)


@record
class TableEntry:
    """A table in one version: what TableVersion holds, as names of files and places in them."""

    name: str
    columns: Columns
    row_groups: tuple[RowGroupEntry, ...]
    dictionaries: tuple[DictionaryEntry | None, ...]

    def files(self) -> Iterable[tuple[str, int]]:
        """(name, bytes) of every file."""
        for group in self.row_groups:
            if group.file is not None:
                yield group.file, group.nbytes
        for dictionary in self.dictionaries:
            for piece in dictionary.pieces if dictionary is not None else ():
                yield piece.file, piece.nbytes


Tables = Mapping[str, TableEntry]  # by case-folded name
Definitions = Mapping[str, Definition]  # views, schemas and defaults by key; few, so that every manifest says them all


@record
class Manifest:
    """One version of everything, the checksum of the manifest that says so, and the version of the last full one."""

    version: int
    tables: Tables
    checksum: str
    last_full: int
    definitions: Definitions

    def files(self) -> dict[str, int]:
        """Bytes of every file that this version names."""
        return {file: nbytes for table in self.tables.values() for file, nbytes in table.files()}


def file_name(version: int) -> str:
    """The manifest's file name: 20 digits, so that names sort as versions do."""
    return f"{version:020d}.json"


def versions_in(names: Iterable[str]) -> list[int]:
    """The versions among a folder's names, ascending; other names are not ours."""
    return sorted(int(name[:20]) for name in names if NAME.fullmatch(name))


def encode(parent: Manifest | None, tables: Tables, definitions: Definitions) -> tuple[bytes, Manifest]:
    """(the file of the version behind `parent`, that version); full when there is no parent or its turn has come."""
    version = 1 if parent is None else parent.version + 1
    full = parent is None or version - parent.last_full >= FULL_EVERY
    old: Tables = {} if full or parent is None else parent.tables
    body: dict[str, Any] = {
        "version": version,
        "full": full,
        "parent": None if parent is None else parent.checksum,
        "dropped": sorted(key for key in old if key not in tables),
        "tables": {
            key: _table_to_json(table, old.get(key)) for key, table in tables.items() if table is not old.get(key)
        },
    }
    if definitions:
        body["definitions"] = [_definition_to_json(definition) for definition in definitions.values()]
    content = json.dumps(body, separators=(",", ":"), ensure_ascii=True).encode("ascii")
    checksum = _checksum(content)
    header = _header(content, checksum, _format_of(tables, definitions))
    last_full = version if full or parent is None else parent.last_full
    return header + content, Manifest(version, dict(tables), checksum, last_full, dict(definitions))


def read_chain(newest: int, read: Callable[[int], bytes], base: Manifest | None, owner: object) -> Manifest:
    """The version `newest`, from its manifest and those before it back to a full one, or to `base`.

    read   returns the content of a version's file; its OSErrors are the caller's
    base   a version known already, or None
    owner  goes into the row groups' entries
    Raises CorruptDataError when a manifest does not verify, FormatError when it is of a newer format.
    """
    bodies: list[tuple[dict[str, Any], str]] = []
    version, wanted = newest, None
    while base is None or version > base.version:
        body, checksum = _decode(version, read(version))
        if wanted is not None and checksum != wanted:
            raise _damaged(version, "it is not the one that the next version was built on")
        bodies.append((body, checksum))
        wanted = body["parent"]
        if body["full"]:
            break
        version -= 1
        if version == 0:
            raise _damaged(newest, "no full manifest lies before it")
    tables: dict[str, TableEntry] = {}
    last_full = newest
    if bodies and not bodies[-1][0]["full"]:
        assert base is not None, "a chain without a full manifest ends at a version known already"
        if base.checksum != wanted:
            raise _damaged(base.version, "it is not the one that the next version was built on")
        tables, last_full = dict(base.tables), base.last_full
    for body, _ in reversed(bodies):
        if body["full"]:
            tables, last_full = {}, body["version"]
        for key in body["dropped"]:
            tables.pop(key, None)
        for key, item in body["tables"].items():
            tables[key] = _table_from_json(item, tables.get(key), owner)
    found = [_definition_from_json(item) for item in bodies[0][0].get("definitions", ())]
    definitions = {definition_key(definition): definition for definition in found}
    return Manifest(newest, tables, bodies[0][1], last_full, definitions)


def _format_of(tables: Tables, definitions: Definitions) -> int:
    later = max((LATER_KINDS.get(kind.kind, 0) for table in tables.values() for _, kind in table.columns), default=0)
    if later:
        return later
    if any(isinstance(definition, Enum) for definition in definitions.values()):
        return 5
    if any(isinstance(definition, Constraints | Sequence) for definition in definitions.values()):
        return 4
    if any(_holds_wide(table) for table in tables.values()):
        return 4
    if any(isinstance(definition, Producer) for definition in definitions.values()):
        return 3
    return 2 if definitions else 1


def _holds_wide(table: TableEntry) -> bool:
    """Whether a column stores integers of more than 64 bits."""
    wide = [k for k, (_, kind) in enumerate(table.columns) if kind.register is RegisterType.I128]
    chunks = (group.chunks[k] for group in table.row_groups for k in wide)
    return any(chunk.dtype == WIDE.str[1:] or not INT64[0] <= chunk.base <= INT64[1] for chunk in chunks)


def _definition_to_json(definition: Definition) -> dict[str, Any]:
    if isinstance(definition, Sequence):
        one = definition
        numbers = [one.start, one.increment, one.minimum, one.maximum, one.cycle, one.next, one.last]
        return {"sequence": one.name, "numbers": numbers}
    if isinstance(definition, Producer):
        at, digest = definition.at, definition.digest
        return {"producer": definition.name, "sequence": definition.sequence, "digest": digest, "at": at}
    if isinstance(definition, Schema):
        return {"schema": definition.name}
    if isinstance(definition, Enum):
        return {"enum": definition.name, "values": list(definition.values)}
    if isinstance(definition, Defaults):
        return {"defaults": definition.name, "columns": [list(column) for column in definition.columns]}
    if isinstance(definition, Constraints):
        items = [[one.kind, list(one.columns), one.sql, one.label, one.behind] for one in definition.items]
        return {"constraints": definition.name, "items": items}
    return {"view": definition.name, "columns": list(definition.columns), "sql": definition.sql}


def _definition_from_json(item: dict[str, Any]) -> Definition:
    if "producer" in item:
        return Producer(item["producer"], item["sequence"], item["digest"], item["at"])
    if "enum" in item:
        return Enum(item["enum"], tuple(item["values"]))
    if "schema" in item:
        return Schema(item["schema"])
    if "defaults" in item:
        return Defaults(item["defaults"], tuple((name, sql) for name, sql in item["columns"]))
    if "sequence" in item:
        return Sequence(item["sequence"], *item["numbers"])
    if "constraints" in item:
        items = tuple(Constraint(kind, tuple(columns), *more) for kind, columns, *more in item["items"])
        return Constraints(item["constraints"], items)
    return View(item["view"], tuple(item["columns"]), item["sql"])


def _header(content: bytes, checksum: str, number: int) -> bytes:
    return f"{MAGIC} {number} {len(content)} {checksum}\n".encode("ascii")


def _checksum(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _decode(version: int, data: bytes) -> tuple[dict[str, Any], str]:
    """(the JSON of a manifest, its checksum)."""
    header, newline, content = data.partition(b"\n")
    words = header.split(b" ")
    number = 1
    if len(words) > 1 and words[0] == MAGIC.encode() and words[1].isdigit():
        number = int(words[1])
        if number > MANIFEST_FORMAT:
            raise FormatError(f"the database was written by a newer gpudb: manifest format {number}")
    checksum = _checksum(content)
    if header + newline != _header(content, checksum, number):
        raise _damaged(version, "its checksum does not match")
    body = json.loads(content)
    if body["version"] != version:
        raise _damaged(version, f"it is that of version {body['version']}")
    return body, checksum


def _damaged(version: int, reason: str) -> CorruptDataError:
    return CorruptDataError(
        f"the manifest of a version is damaged: version {version}: {reason}",
        hint="restore the database's folder from a copy; an older version is not opened in its place",
    )


def _table_to_json(table: TableEntry, old: TableEntry | None) -> dict[str, Any]:
    """A table's entry; what it shares with the parent's as "keep": how many of the first row groups and pieces."""
    keep = _shared(table.row_groups, () if old is None or old.columns != table.columns else old.row_groups)
    dictionaries: list[Any] = []
    for index, dictionary in enumerate(table.dictionaries):
        if dictionary is None:
            dictionaries.append(None)
            continue
        before = old.dictionaries[index] if old is not None and old.columns == table.columns else None
        pieces = _shared(dictionary.pieces, before.pieces if before is not None else ())
        dictionaries.append(
            {
                "identity": dictionary.identity,
                "sorted": dictionary.sorted_count,
                "keep": pieces,
                "pieces": [piece.to_json() for piece in dictionary.pieces[pieces:]],
            }
        )
    return {
        "name": table.name,
        "columns": [
            [name, kind.kind, kind.precision, kind.scale, *([list(kind.values)] if kind.values else [])]
            for name, kind in table.columns
        ],
        "keep": keep,
        "row_groups": [group.to_json() for group in table.row_groups[keep:]],
        "dictionaries": dictionaries,
    }


def _shared(new: tuple[Any, ...], old: tuple[Any, ...]) -> int:
    """How many first items are equal."""
    count = 0
    for left, right in zip(new, old, strict=False):
        if left is not right and left != right:
            break
        count += 1
    return count


def _table_from_json(item: dict[str, Any], old: TableEntry | None, owner: object) -> TableEntry:
    columns = tuple(
        (name, SqlType(kind, precision, scale, values=tuple(values[0]) if values else ()))
        for name, kind, precision, scale, *values in item["columns"]
    )
    kept = old.row_groups[: item["keep"]] if old is not None else ()
    groups = tuple(RowGroupEntry.from_json(group, owner) for group in item["row_groups"])
    dictionaries: list[DictionaryEntry | None] = []
    for index, entry in enumerate(item["dictionaries"]):
        if entry is None:
            dictionaries.append(None)
            continue
        before = old.dictionaries[index] if old is not None and entry["keep"] else None
        pieces = before.pieces[: entry["keep"]] if before is not None else ()
        pieces += tuple(PieceEntry.from_json(piece) for piece in entry["pieces"])
        dictionaries.append(DictionaryEntry(entry["identity"], entry["sorted"], pieces))
    return TableEntry(item["name"], columns, (*kept, *groups), tuple(dictionaries))
