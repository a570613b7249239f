"""Runs `.test` files: SQL statements with what they must do, compared with stored results or with DuckDB.

A file is a list of records, separated by empty lines; `#` starts a comment line.

    include NAME                    the records of tests/sql/tables/NAME.test, usually CREATE TABLE and INSERT
    foreach VARIABLE A | B | C      repeat the records up to the matching `end` with ${VARIABLE} replaced;
    end                             a | inside a value is written \\|

    statement ok                    runs on gpudb and on DuckDB
    CREATE TABLE t (a INTEGER)

    statement error ConversionError: cannot        fails on gpudb with this error class and text, and on DuckDB too
    SELECT CAST('x' AS INTEGER)

    statement refused interval      NotSupportedError with this text on gpudb, although DuckDB runs it
    SELECT ...

    query [rowsort] [parameters [1, 'x']]
    SELECT a FROM t ORDER BY a
    ---- duckdb                     names, Arrow types, values and order are those that DuckDB returns

`----` alone is followed by the rows, columns separated by tabs, NULL for NULL; `---- contains` by texts that the answer
holds.  `rowsort` compares the rows as a multiset.  `parameters` is a Python list or dict.  A statement that only gpudb
knows is `statement gpudb`.  ${FOLDER} is an empty folder of the engine's own.

Floats are equal within 1e-9 of their size; everything else exactly.
"""

from __future__ import annotations

import ast
import math
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

import gpudb

SQL_FOLDER = Path(__file__).parent
RELATIVE_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Record:
    """One statement or query and what is expected of it.

    kind      statement: ok, error, refused or gpudb; query: duckdb, stored or contains
    expected  lines of the stored result, texts it contains, or the text of an error
    """

    path: Path
    line: int
    kind: str
    sql: str
    expected: tuple[str, ...] = ()
    rowsort: bool = False
    parameters: Any = None

    @property
    def is_check(self) -> bool:
        """Whether it says something about gpudb beyond preparing data."""
        return self.kind != "ok"

    @property
    def is_statement(self) -> bool:
        """Whether later records may need what it does."""
        return self.kind not in ("duckdb", "stored", "contains")

    @property
    def shape(self) -> str:
        """The SQL without what does not change how it is planned: spaces, names of columns' aliases, literals' values."""
        text = re.sub(r"'(?:[^']|'')*'", "'?'", self.sql)
        text = re.sub(r"\b\d+\b", "0", text)
        return " ".join(text.split()).lower()


def parse(path: Path) -> list[Record]:
    """The records of a file, loops unrolled and included files in place.  Raises ValueError naming file and line."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return list(_records(path, list(enumerate(lines, 1)), {}))


def _records(path: Path, lines: Sequence[tuple[int, str]], variables: dict[str, str]) -> Iterator[Record]:
    position = 0
    while position < len(lines):
        number, line = lines[position]
        word = line.split(" ", 1)[0]
        if not line.strip() or line.startswith("#"):
            position += 1
        elif word == "include":
            yield from parse(SQL_FOLDER / "tables" / f"{line.split()[1]}.test")
            position += 1
        elif word == "foreach":
            end = _matching_end(path, lines, position)
            _, variable, values = line.split(" ", 2)
            for value in re.split(r"(?<!\\)\|", _substituted(values, variables)):
                inner = {**variables, variable: value.strip().replace("\\|", "|")}
                yield from _records(path, lines[position + 1 : end], inner)
            position = end + 1
        elif word in ("statement", "query"):
            end = position
            while end < len(lines) and lines[end][1].strip():
                end += 1
            yield _record(path, number, [_substituted(text, variables) for _, text in lines[position:end]])
            position = end
        else:
            raise ValueError(f"{path}:{number}: not a record: {line}")


def _substituted(text: str, variables: dict[str, str]) -> str:
    for name, value in variables.items():
        text = text.replace(f"${{{name}}}", value)
    return text


def _matching_end(path: Path, lines: Sequence[tuple[int, str]], start: int) -> int:
    depth = 0
    for position in range(start, len(lines)):
        word = lines[position][1].split(" ", 1)[0]
        depth += (word == "foreach") - (word == "end")
        if depth == 0:
            return position
    raise ValueError(f"{path}:{lines[start][0]}: foreach without end")


def _record(path: Path, line: int, text: list[str]) -> Record:
    head, body = text[0], text[1:]
    divider = next((i for i, one in enumerate(body) if one.startswith("----")), None)
    sql = "\n".join(body[:divider])
    match = re.fullmatch(r"(query|statement)(.*?)(?: parameters (.*))?", head)
    assert match is not None
    rest = match.group(2).split()
    parameters = ast.literal_eval(match.group(3)) if match.group(3) else None
    if match.group(1) == "statement":
        if not rest or rest[0] not in ("ok", "error", "refused", "gpudb") or divider is not None:
            raise ValueError(f"{path}:{line}: not a statement record: {head}")
        return Record(path, line, rest[0], sql, (" ".join(rest[1:]),), False, parameters)
    if divider is None or set(rest) - {"rowsort"}:
        raise ValueError(f"{path}:{line}: not a query record: {head}")
    kind = {"": "stored", "duckdb": "duckdb", "contains": "contains"}[body[divider][4:].strip()]
    return Record(path, line, kind, sql, tuple(body[divider + 1 :]), "rowsort" in rest, parameters)


@dataclass
class Outcome:
    """What one engine did with one record: a table, nothing, or an error."""

    table: pa.Table | None = None
    error: Exception | None = None


class DuckDBEngine:
    """DuckDB with a database in memory, as the oracle."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.connection = duckdb.connect(config={"threads": "1"})

    def run(self, record: Record) -> Outcome:
        sql = record.sql.replace("${FOLDER}", self.folder)
        try:
            if record.kind == "duckdb":
                return Outcome(self.connection.sql(sql, params=record.parameters).to_arrow_table())
            self.connection.execute(sql, record.parameters)
            return Outcome()
        except duckdb.Error as error:
            return Outcome(error=error)


class GpudbEngine:
    """gpudb with a database in memory, on one device."""

    def __init__(self, folder: str, device: str) -> None:
        self.folder = folder
        self.connection = gpudb.connect()
        self.connection.execute(f"SET device = '{device}'")

    def run(self, record: Record) -> Outcome:
        sql = record.sql.replace("${FOLDER}", self.folder)
        try:
            cursor = self.connection.execute(sql, record.parameters)
            return Outcome(cursor.fetch_arrow_table() if cursor.description is not None else None)
        except Exception as error:  # anything but a gpudb.Error is judged by `check`
            return Outcome(error=error)


@cache
def oracle_outcomes(path: Path) -> list[Outcome]:
    """What DuckDB does with every record of a file, in order; records that are not its business give an empty outcome."""
    with tempfile.TemporaryDirectory() as folder:
        engine = DuckDBEngine(folder)
        return [engine.run(record) if record.kind in ("ok", "error", "duckdb") else Outcome() for record in parse(path)]


@cache
def gpudb_outcomes(path: Path, device: str) -> list[Outcome]:
    """What gpudb does with every record of a file, in order."""
    with tempfile.TemporaryDirectory() as folder:
        engine = GpudbEngine(folder, device)
        return [engine.run(record) for record in parse(path)]


def check_oracle(record: Record, oracle: Outcome) -> None:
    """Raise AssertionError where the record itself is wrong: DuckDB refuses what should run, or runs what should fail."""
    if record.kind in ("ok", "duckdb"):
        assert oracle.error is None, f"DuckDB refuses the record: {oracle.error}"
    if record.kind == "error":
        assert oracle.error is not None, "DuckDB runs a statement that should fail"


def check(record: Record, found: Outcome, oracle: Outcome) -> None:
    """Raise AssertionError where gpudb did not do what the record says."""
    check_oracle(record, oracle)
    if record.kind in ("error", "refused"):
        wanted = record.expected[0] if record.kind == "error" else f"NotSupportedError: {record.expected[0]}"
        _check_error(wanted, found)
        return
    if found.error is not None:
        raise AssertionError(f"{type(found.error).__name__}: {found.error}") from found.error
    if record.kind in ("ok", "gpudb"):
        return
    assert found.table is not None, "the statement returned no rows"
    if record.kind == "duckdb":
        assert oracle.table is not None
        _check_tables(found.table, oracle.table, record.rowsort)
    elif record.kind == "contains":
        text = "\n".join(str(value) for column in found.table.columns for value in column.to_pylist())
        missing = [part for part in record.expected if part not in text]
        assert not missing, f"missing {missing} in\n{text}"
    else:
        _check_stored(record, found.table)


def _check_error(wanted: str, found: Outcome) -> None:
    assert found.error is not None, "the statement succeeded"
    assert isinstance(found.error, gpudb.Error), f"not an error of gpudb: {found.error!r}"
    class_name, _, text = wanted.partition(":")
    classes = [cls.__name__ for cls in type(found.error).__mro__]
    assert class_name.strip() in classes, f"{class_name} expected, found {type(found.error).__name__}: {found.error}"
    assert text.strip().lower() in str(found.error).lower(), f"{text.strip()!r} is not in {str(found.error)!r}"


def _check_tables(found: pa.Table, expected: pa.Table, rowsort: bool) -> None:
    assert found.column_names == expected.column_names, f"names {found.column_names}, expected {expected.column_names}"
    types = [field.type for field in found.schema]
    both = zip(types, expected.schema, strict=True)
    wanted = [field.type if pa.types.is_dictionary(ours) else plain_type(field.type) for ours, field in both]
    assert types == wanted, f"types {[str(t) for t in types]}, expected {[str(t) for t in wanted]}"
    rows, expected_rows = _rows(found, rowsort), _rows(expected, rowsort)
    assert len(rows) == len(expected_rows), f"{len(rows)} rows, expected {len(expected_rows)}: {rows[:20]}"
    for number, (row, other) in enumerate(zip(rows, expected_rows, strict=True)):
        for name, left, right in zip(found.column_names, row, other, strict=True):
            assert same_value(left, right), f"row {number}, column {name}: {left!r}, expected {right!r}"


def plain_type(arrow_type: pa.DataType) -> pa.DataType:
    """The types that gpudb writes out in a plainer form: an enum that is made of text is text, a column of bare NULLs is INTEGER."""
    if pa.types.is_null(arrow_type):
        return pa.int32()
    return pa.string() if pa.types.is_dictionary(arrow_type) else arrow_type


def _rows(table: pa.Table, rowsort: bool) -> list[tuple[Any, ...]]:
    rows = list(zip(*(_values(column) for column in table.columns), strict=True))
    return sorted(rows, key=_sort_key) if rowsort else rows


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Python values; dates and timestamps that datetime cannot hold as the integer behind them."""
    try:
        return column.to_pylist()
    except (OverflowError, ValueError):
        return column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64()).to_pylist()


def _sort_key(row: tuple[Any, ...]) -> list[tuple[int, Any]]:
    """Orders rows of mixed values; floats by nine digits, so that equal ones sort alike."""
    key: list[tuple[int, Any]] = []
    for value in row:
        if value is None:
            key.append((0, ""))
        elif isinstance(value, float):
            key.append((1, f"{value + 0.0:.9e}"))  # -0.0 sorts as 0.0
        else:
            key.append((2, str(value)))
    return key


def same_value(left: Any, right: Any) -> bool:
    """Equality of values: floats within 1e-9 of their size, NaN equals NaN, NULL equals only NULL."""
    if isinstance(left, float) and isinstance(right, float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return left == right or math.isclose(left, right, rel_tol=RELATIVE_TOLERANCE)
    return type(left) is type(right) and left == right


def _check_stored(record: Record, table: pa.Table) -> None:
    rows = [tuple(_text(value) for value in row) for row in _rows(table, False)]
    expected = [tuple(line.split("\t")) for line in record.expected]
    if record.rowsort:
        rows, expected = sorted(rows), sorted(expected)
    assert rows == expected, f"rows {rows}, expected {expected}"


def _text(value: Any) -> str:
    """A value as stored results spell it."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value if isinstance(value, str) else repr(value) if isinstance(value, float) else str(value)


@dataclass
class Corpus:
    """All `.test` files under tests/sql, the shared tables aside."""

    folder: Path = SQL_FOLDER
    files: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.files = sorted(path for path in self.folder.rglob("*.test") if path.parent != self.folder / "tables")

    def records(self) -> Iterator[tuple[Path, int, Record]]:
        """(file, position in it, record) of every record that checks something."""
        for path in self.files:
            for position, record in enumerate(parse(path)):
                if record.is_check:
                    yield path, position, replace(record, path=path)

    def shapes(self) -> set[str]:
        """The distinct shapes of all checks."""
        return {record.shape for _, _, record in self.records()}
