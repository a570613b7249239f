"""Generated CSV files are read as DuckDB reads them, whatever the block size; and memory does not grow with the file."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gpudb.errors import BindError, InputError
from gpudb.storage import csv_blocks
from gpudb.storage.files import open_files

DUCKDB = duckdb.connect()

INTEGERS = st.one_of(st.integers(-5, 5), st.integers(-(2**63), 2**63 - 1), st.integers(-(10**20), 10**20)).map(str)
DOUBLES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(-1000, 1000, places=2, allow_nan=False, allow_infinity=False).map(str),
)
BOOLEANS = st.sampled_from(["true", "false", "True", "FALSE", "t", "f"])
DATES = st.dates().map(str)
TIMESTAMPS = st.datetimes().map(lambda t: str(t)[:19])
FRACTIONS = st.datetimes().map(str)
WORDS = st.text("abcxyz", min_size=1, max_size=6)
CODES = st.sampled_from(["007", "+5", "1_000", "5%", "1e", "-", "12x", "2020-13-01"])
PHRASES = st.text(st.sampled_from(list("ab ,;|\t\"'\n\r\\éß€😀#09.-")), max_size=8)
TAME = [INTEGERS, DOUBLES, BOOLEANS, DATES, TIMESTAMPS, FRACTIONS, WORDS, CODES]


@st.composite
def tables(draw: st.DrawFn, kinds: list) -> tuple[list[str], list[list[str]]]:
    """(names, rows) of texts; an empty text is a NULL."""
    width = draw(st.integers(2, 5))
    columns = [draw(st.sampled_from(kinds)) for _ in range(width)]
    if draw(st.booleans()):
        columns = [st.one_of(column, st.just("")) for column in columns]
    names = draw(st.lists(st.text("abcdef", min_size=1, max_size=3), min_size=width, max_size=width))
    return names, draw(st.lists(st.tuples(*columns).map(list), min_size=0, max_size=12))


def as_csv(names: list[str], rows: list[list[str]], delimiter: str, newline: str) -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator=newline)
    writer.writerow(names)
    writer.writerows(rows)
    return out.getvalue()


def read(path: str, options: dict) -> tuple[list, list]:
    relation = open_files([path], options=options)
    table = pa.Table.from_batches(list(relation.batches()), relation.schema())
    rows = [[int(v) if isinstance(v, Decimal) else v for v in column.to_pylist()] for column in table.columns]
    return [(name, str(type_)) for name, type_ in relation.columns], list(zip(*rows, strict=True))


def compare(content: str, options: str, ours: dict, block: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_blocks, "BLOCK_BYTES", block)
        path = os.path.join(folder, "f.csv")
        Path(path).write_bytes(content.encode())
        try:
            result = DUCKDB.execute(f"SELECT * FROM read_csv('{path}'{options})")
            expected = [(name, str(type_)) for name, type_, *_ in result.description], result.fetchall()
        except duckdb.Error:
            assume(False)
        assert repr(read(path, ours)) == repr(expected), content


@given(tables(TAME), st.sampled_from(",;|\t"), st.sampled_from(["\n", "\r\n"]), st.sampled_from([256, 1 << 20]))
def test_names_types_and_values_are_duckdbs_when_nothing_is_said(table, delimiter, newline, block) -> None:
    names, rows = table
    assume(rows and any(any(row) for row in rows))
    compare(as_csv(names, rows, delimiter, newline), "", {}, block)


@given(tables([*TAME, PHRASES, PHRASES]), st.sampled_from(",;|\t"), st.sampled_from([64, 300, 1 << 20]))
def test_any_text_is_duckdbs_when_the_dialect_is_given(table, delimiter, block) -> None:
    names, rows = table
    content = as_csv(names, rows, delimiter, "\n")
    options = f", delim='{delimiter}', quote='\"', escape='\"', header=true, comment=''"
    ours = {"delim": delimiter, "quote": '"', "escape": '"', "header": True, "comment": ""}
    compare(content, options, ours, block)


@given(st.binary(max_size=200) | st.text(st.sampled_from(list("a1,\"'\n\r;|\\ \t\ufeff")), max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused_with_an_input_error(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_blocks, "BLOCK_BYTES", 64)
        path = os.path.join(folder, "f.csv")
        Path(path).write_bytes(content)
        for ignore_errors in (False, True):
            try:
                for batch in open_files([path], options={"ignore_errors": ignore_errors}).batches():
                    batch.validate(full=True)
            except InputError:
                pass
            except BindError as error:  # such as "PAR1", which is no CSV
                assert "files take no option" in str(error) and content[:1] in b"PA", content


MEASURE = """
import sys
from gpudb.storage.files import open_files
relation = open_files([sys.argv[1]])
print(sum(batch.num_rows for batch in relation.batches()))
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_peak_memory_does_not_grow_with_the_file(tmp_path: Path, kind: str) -> None:
    def peak(repeats: int) -> int:
        """Peak resident bytes of a process that streams `repeats` times 250,000 rows (20 MB of CSV)."""
        path = tmp_path / f"{repeats}.{kind}"
        rows = 250_000 * repeats
        query = "SELECT i, i * 7919 % 100000 AS j, i / 7 AS x, 'name number ' || (i % 1000) AS s, 'tail ' || i AS t"
        DUCKDB.execute(f"CREATE OR REPLACE VIEW v AS {query} FROM range({rows}) AS r(i)")
        if kind == "arrow":
            reader = DUCKDB.sql("SELECT * FROM v").to_arrow_reader(100_000)
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, reader.schema) as writer:
                for batch in reader:
                    writer.write_batch(batch)
        else:
            DUCKDB.execute(f"COPY v TO '{path}' (FORMAT {kind})")
        process = subprocess.run(
            [sys.executable, "-c", MEASURE, str(path)],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[2],
        )
        found, kilobytes = process.stdout.split()
        assert int(found) == rows
        return int(kilobytes) * 1024

    small, large = peak(2), peak(10)  # 30 and 150 MB of CSV
    assert large < 450e6
    assert large - small < 90e6, "five times the file"
