"""Paths, formats found by content, Parquet and Arrow files in, and files out."""

from __future__ import annotations

import contextlib
import datetime
import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gpudb import types
from gpudb.errors import BindError, InputError, NotSupportedError
from gpudb.storage.files import open_files, write_file

DUCKDB = duckdb.connect()
COLUMNS = (("a", types.BIGINT), ("b", types.VARCHAR))
TABLE = pa.table({"a": [1, None, 3], "b": ["x", "y", None]})


def read(path: Path | str, columns: list[int] | None = None, **more) -> pa.Table:
    relation = open_files([str(path)], **more)
    batches = list(relation.batches(columns))
    for batch in batches:
        batch.validate(full=True)
    schema = relation.schema(columns)
    tables = [pa.Table.from_batches([batch]).cast(schema) for batch in batches]  # text may come as a dictionary
    return pa.concat_tables(tables) if tables else schema.empty_table()


def write_as(kind: str, path: Path, table: pa.Table) -> Path:
    if kind == "parquet":
        pq.write_table(table, path)
    elif kind == "arrow file":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    elif kind == "arrow stream":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    else:
        raise AssertionError(kind)
    return path


BINARY_KINDS = ["parquet", "arrow file", "arrow stream"]


@pytest.mark.parametrize("kind", BINARY_KINDS)
def test_the_format_is_found_in_the_content_whatever_the_name(tmp_path: Path, kind: str) -> None:
    assert read(write_as(kind, tmp_path / "data.csv", TABLE)).equals(TABLE)


@pytest.mark.parametrize("kind", BINARY_KINDS)
def test_columns_come_in_the_order_asked_for(tmp_path: Path, kind: str) -> None:
    table = pa.table({"a": [1], "b": ["x"], "c": [2.5], "d": [[1, 2]]})
    path = write_as(kind, tmp_path / "f", table)
    assert read(path, [2, 0]).equals(table.select(["c", "a"]))
    assert read(path, [1, 1, 0]).to_pydict() == {"b": ["x"], "a": [1]} or read(path, [1]).to_pydict() == {"b": ["x"]}


@pytest.mark.parametrize("kind", BINARY_KINDS)
def test_a_column_of_an_unsupported_type_hurts_only_those_who_read_it(tmp_path: Path, kind: str) -> None:
    table = pa.table(
        {"a": [1], "nested": [{"x": 1}], "list": pa.array([[1]]), "wide": pa.array([1]).cast(pa.decimal256(50))}
    )
    path = write_as(kind, tmp_path / "f", table)
    assert read(path, [0]).to_pydict() == {"a": [1]}
    for position, name in ((1, "nested"), (2, "list"), (3, "wide")):
        with pytest.raises(NotSupportedError, match=rf"not supported: column {name}, file {path}"):
            read(path, [position])


TYPED = {
    "bool": (pa.array([True, None]), "BOOLEAN"),
    "i8": (pa.array([-128, None], pa.int8()), "TINYINT"),
    "i16": (pa.array([1, None], pa.int16()), "SMALLINT"),
    "i32": (pa.array([1, None], pa.int32()), "INTEGER"),
    "u8": (pa.array([255, None], pa.uint8()), "UTINYINT"),
    "u16": (pa.array([65535, None], pa.uint16()), "USMALLINT"),
    "u32": (pa.array([2**32 - 1, None], pa.uint32()), "UINTEGER"),
    "u64": (pa.array([2**64 - 1, None], pa.uint64()), "UBIGINT"),
    "f16": (pa.array([np.float16(1.5), None], pa.float16()), "FLOAT"),
    "f32": (pa.array([1.5, None], pa.float32()), "FLOAT"),
    "f64": (pa.array([1.5, None]), "DOUBLE"),
    "dec": (pa.array([Decimal("1.50"), None], pa.decimal128(5, 2)), "DECIMAL(5,2)"),
    "dec38": (pa.array([Decimal(10) ** 37, None], pa.decimal128(38, 0)), "DECIMAL(38,0)"),
    "date": (pa.array([datetime.date(2020, 1, 5), None]), "DATE"),
    "date64": (pa.array([datetime.date(2020, 1, 5), None], pa.date64()), "DATE"),
    "ts_s": (pa.array([datetime.datetime(2020, 1, 5, 1, 2, 3), None], pa.timestamp("s")), "TIMESTAMP"),
    "ts_ms": (pa.array([1500, None], pa.timestamp("ms")), "TIMESTAMP"),
    "ts_us": (pa.array([1500, None], pa.timestamp("us")), "TIMESTAMP"),
    "ts_ns": (pa.array([-1500, None], pa.timestamp("ns")), "TIMESTAMP"),
    "text": (pa.array(["x", None]), "VARCHAR"),
    "large": (pa.array(["ü", None], pa.large_string()), "VARCHAR"),
    "view": (pa.array(["a longer text than twelve", None], pa.string_view()), "VARCHAR"),
    "dict": (pa.array(["x", None]).dictionary_encode(), "VARCHAR"),
    "dict_int": (pa.array([5, None]).dictionary_encode(), "BIGINT"),
    "null": (pa.nulls(2), "INTEGER"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BINARY_KINDS)
@pytest.mark.parametrize("name", TYPED)
def test_an_arrow_type_becomes_the_sql_type_that_holds_it(tmp_path: Path, kind: str, name: str) -> None:
    array, expected = TYPED[name]
    path = write_as(kind, tmp_path / "f", pa.table({"c": array}))
    relation = open_files([str(path)])
    assert str(relation.columns[0][1]) == expected
    (value, null) = pa.Table.from_batches(list(relation.batches()))["c"].to_pylist()
    assert null is None
    if name == "ts_ns":
        assert value == datetime.datetime(1969, 12, 31, 23, 59, 59, 999998), (
            "halves go away from the epoch, as DuckDB's"
        )
    else:
        assert value == array[0].as_py()


def test_a_value_past_bigint_is_an_unsigned_one(tmp_path: Path) -> None:
    path = write_as("parquet", tmp_path / "f", pa.table({"big": pa.array([1, 2**63], pa.uint64())}))
    assert read(path)["big"].to_pylist() == [1, 2**63]


@pytest.mark.parametrize("kind", BINARY_KINDS)
@pytest.mark.parametrize("damage", ["cut", "zeros", "magic only"])
def test_a_damaged_file_is_an_input_error_that_names_it(tmp_path: Path, kind: str, damage: str) -> None:
    table = pa.table({"a": np.arange(50_000), "b": [f"text {i * 7919}" for i in range(50_000)]})
    path = write_as(kind, tmp_path / "f", table)
    content = bytearray(path.read_bytes())
    if damage == "cut":
        content = content[: len(content) * 2 // 3]
    elif damage == "zeros":
        content[len(content) // 4 : len(content) // 4 + 2000] = bytes(2000)
    else:
        content = content[:8]
    path.write_bytes(content)
    try:
        found = read(path)
    except InputError as error:
        assert str(path) in str(error) and "Arrow" not in type(error).__name__
    else:
        assert damage == "zeros" and kind != "parquet", "a hole in the values of an unchecked format changes them only"
        assert found.num_rows == table.num_rows


@pytest.mark.parametrize("kind", BINARY_KINDS)
def test_mutated_files_never_end_in_anything_but_an_input_error(tmp_path: Path, kind: str) -> None:
    table = pa.table({"a": list(range(200)), "b": [f"t{i}" for i in range(200)]})
    path = write_as(kind, tmp_path / "f", table)
    original = path.read_bytes()
    random = np.random.default_rng(7)
    for _ in range(60):
        content = bytearray(original)
        for position in random.integers(0, len(content), 3):
            content[position] = int(random.integers(0, 256))
        path.write_bytes(content)
        with contextlib.suppress(InputError, NotSupportedError):
            read(path)


def test_invalid_utf8_in_a_text_column_is_an_input_error(tmp_path: Path) -> None:
    bad = pa.StringArray.from_buffers(1, pa.py_buffer(np.array([0, 2], np.int32)), pa.py_buffer(b"\xff\xfe"))
    for kind in BINARY_KINDS:
        with pytest.raises(InputError, match="not valid UTF-8: column s"):
            read(write_as(kind, tmp_path / "f", pa.table({"s": bad})))


@pytest.mark.parametrize(
    "content, meaning",
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "a PNG picture"),
        (b"%PDF-1.7\n%\xe2\xe3", "a PDF document"),
        (b"\x7fELF" + bytes(60), "a program"),
        (b"SQLite format 3\0" + bytes(84), "a SQLite database"),
        (b"BZh91AY&SY" + bytes(50), "bzip2-compressed data"),
        (bytes(range(256)) * 20, "binary data"),
        ("a,b\n1,2\n".encode("utf-16"), "UTF-16 text"),
        (b"FEA1" + bytes(60), "Feather version 1"),
    ],
)
def test_binary_data_are_never_loaded_as_csv(tmp_path: Path, content: bytes, meaning: str) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=meaning):
        read(path)
    with pytest.raises(InputError):
        read(path, file_format="csv", options={"header": True, "delim": ",", "ignore_errors": False})


def test_a_format_that_is_named_must_be_the_content(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="not a complete Parquet file"):
        read(tmp_path / "f", file_format="parquet")
    with pytest.raises(InputError, match="not a complete Arrow IPC file"):
        read(tmp_path / "f", file_format="arrow")


def test_paths_that_cannot_be_read_say_why(tmp_path: Path) -> None:
    (tmp_path / "flights.csv").write_text("a\n1\n")
    with pytest.raises(InputError, match="file not found") as caught:
        read(tmp_path / "flihgts.csv")
    assert f"did you mean {tmp_path}/flights.csv?" in str(caught.value)
    with pytest.raises(InputError, match="no files match the pattern"):
        read(tmp_path / "*.parquet")
    with pytest.raises(InputError, match="a directory cannot be read"):
        read(tmp_path)
    with pytest.raises(InputError, match="empty or holds a zero byte"):
        read("")
    with pytest.raises(NotSupportedError, match="only local files"):
        read("https://example.com/x.csv")
    with pytest.raises(InputError, match="regular files"):
        read("/dev/null")
    with pytest.raises(NotSupportedError, match="file format is not supported: json"):
        read(tmp_path / "flights.csv", file_format="json")


def test_a_file_named_with_glob_letters_is_found_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "a[1].csv").write_text("a\n1\n")
    assert read(tmp_path / "a[1].csv").to_pydict() == {"a": [1]}


def test_globs_are_sorted_and_go_into_folders(tmp_path: Path) -> None:
    for name, value in (("z/2.parquet", 3), ("a/1.parquet", 1), ("a/b/1.parquet", 2)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"a": [value]}), tmp_path / name)
    found = read(tmp_path / "**/*.parquet")["a"].to_pylist()
    assert found == [1, 2, 3]


def test_parquet_files_match_by_name_and_lacking_columns_are_named(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "b": ["x"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"b": ["y"], "A": [2]}), tmp_path / "2.parquet")
    assert read(tmp_path / "*.parquet").to_pydict() == {"a": [1, 2], "b": ["x", "y"]}
    pq.write_table(pa.table({"b": ["y"], "c": [2]}), tmp_path / "2.parquet")
    with pytest.raises(InputError, match="lacks columns that an earlier file has: a"):
        read(tmp_path / "*.parquet")


def test_files_of_two_formats_are_refused(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "1")
    (tmp_path / "2").write_text("a,b\n1,x\n")
    with pytest.raises(InputError, match="one format"):
        read(tmp_path / "*")


TARGETS = [
    (pa.array([300]), types.TINYINT, None),
    (pa.array([100]), types.TINYINT, [100]),
    (pa.array([2.5, 3.5, -2.5]), types.INTEGER, [2, 4, -2]),
    (pa.array([1e300]), types.REAL, None),
    (pa.array([1.135]), types.decimal(5, 2), [Decimal("1.14")]),
    (pa.array([Decimal("1.127")]), types.decimal(5, 2), [Decimal("1.13")]),
    (pa.array([Decimal("1234567.12")]), types.decimal(5, 2), None),
    (pa.array([Decimal("2.5")]), types.INTEGER, [3]),
    (pa.array([1000]), types.decimal(5, 2), None),
    (pa.array([5]), types.decimal(5, 2), [Decimal("5.00")]),
    (pa.array([2**53 + 1]), types.DOUBLE, [2.0**53]),
    (pa.array([True]), types.decimal(5, 2), [Decimal("1.00")]),
    (pa.array(["12", " 7 "]), types.BIGINT, [12, 7]),
    (pa.array(["x"]), types.BIGINT, None),
    (pa.array([1.0, 1e20, 1e-5, float("nan")]), types.VARCHAR, ["1.0", "1e+20", "1e-05", "nan"]),
    (pa.array([datetime.datetime(2020, 1, 5, 1)]), types.DATE, [datetime.date(2020, 1, 5)]),
    (pa.array([datetime.datetime(2020, 1, 5, 1, 2, 3, 500_100)]), types.VARCHAR, ["2020-01-05 01:02:03.5001"]),
    (pa.array([datetime.date(2020, 1, 5)]), types.TIMESTAMP, [datetime.datetime(2020, 1, 5)]),
    (pa.array([False]), types.VARCHAR, ["false"]),
    (pa.array([5]), types.HUGEINT, [Decimal(5)]),
]


@pytest.mark.parametrize("array, target, expected", TARGETS, ids=[f"{a.type}-{t}-{e}" for a, t, e in TARGETS])
def test_a_table_that_is_copied_into_casts_the_files_columns(tmp_path: Path, array, target, expected) -> None:
    path = write_as("parquet", tmp_path / "f", pa.table({"whatever": array}))
    if expected is None:
        with pytest.raises(InputError, match=f"does not fit {target}".replace("(", r"\(").replace(")", r"\)")):
            read(path, target=(("c", target),))
    else:
        assert read(path, target=(("c", target),)).to_pydict() == {"c": expected}


def test_a_table_with_another_number_of_columns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the file has 2 columns where 1 are expected"):
        read(write_as("parquet", tmp_path / "f", TABLE), target=(("a", types.BIGINT),))


def test_parquet_is_read_in_batches_of_bounded_size(tmp_path: Path) -> None:
    table = pa.table({"a": np.arange(600_000), "b": np.arange(600_000) % 7})
    table = table.append_column("c", pa.array([f"{'long text ' * 30}{i}" for i in range(600_000)]))
    pq.write_table(table, tmp_path / "f", row_group_size=600_000, use_dictionary=False)
    progress: list[int] = []
    relation = open_files([str(tmp_path / "f")])
    batches = list(relation.batches(progress=progress.append))
    assert max(batch.nbytes for batch in batches) < 48 << 20
    assert pa.Table.from_batches(batches).equals(table)
    assert progress == sorted(progress) and progress[-1] == relation.total_bytes


def test_text_of_dictionary_pages_comes_as_a_dictionary(tmp_path: Path) -> None:
    table = pa.table({"s": ["x", None, "y", "x"] * 1000})
    pq.write_table(table, tmp_path / "f")
    batches = list(open_files([str(tmp_path / "f")]).batches())
    assert batches[0].schema.types == [pa.dictionary(pa.int32(), pa.string())]
    assert batches[0].column(0).to_pylist() == table["s"].to_pylist()


# ---- files out


def batches(table: pa.Table, rows: int = 2) -> Iterator[pa.RecordBatch]:
    return iter(table.to_batches(max_chunksize=rows))


VALUES = """
    (1, 1.0::double, 'x', true, date '2020-01-05', timestamp '2020-01-05 10:11:12', 1.50::decimal(5,2), 1.5::real),
    (NULL, 1e20, 'a,b', false, NULL, timestamp '2020-01-05 10:11:12.5', -0.05, 1e-10),
    (3, 'nan', 'q"q', NULL, NULL, NULL, NULL, 16777216), (4, 'inf', '', NULL, NULL, NULL, NULL, NULL),
    (5, 1e-5, ' lead ', NULL, NULL, timestamp '1900-01-01', NULL, 123456789),
    (6, 123456789012345678, E'nl\\nx', NULL, date '1900-01-01', NULL, NULL, 0.1),
    (7, 1e15, 'NULL', NULL, NULL, NULL, NULL, 1e15), (8, 1e16, 'it''s', NULL, NULL, NULL, NULL, 1e16),
    (9, -0.0, '#c', NULL, NULL, NULL, NULL, -0.0), (10, 1e-300, E'cr\\rx', NULL, NULL, NULL, NULL, 3.4e38),
    (11, 0.0001, 'a;b|c', NULL, NULL, timestamp '2020-01-05 00:00:00.00001', 100, -1e-5),
    (12, 9999999999999998, 'x#y', NULL, NULL, NULL, NULL, NULL), (13, -1e15, 'back\\slash', NULL, NULL, NULL, NULL, 1e-4)"""
SQL_COLUMNS = (
    ("i", types.INTEGER), ("d", types.DOUBLE), ("s", types.VARCHAR), ("b", types.BOOLEAN), ("dt", types.DATE),
    ("ts", types.TIMESTAMP), ("dec", types.decimal(5, 2)), ("r", types.REAL),
)  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"header": False},
        {"delim": "|", "nullstr": "NULL"},
        {"quote": "'", "escape": "'"},
        {"delimiter": ";", "null": "x"},
        {"escape": "\\"},
        {"force_quote": ["s", "i"]},
    ],
)
def test_csv_is_written_as_duckdb_writes_it(tmp_path: Path, options: dict) -> None:
    query = f"SELECT * REPLACE (r::REAL AS r, dec::DECIMAL(5,2) AS dec) FROM (VALUES {VALUES}) AS t(i, d, s, b, dt, ts, dec, r)"
    texts = ", ".join(
        f"{name} ({', '.join(value)})"
        if isinstance(value, list)
        else f"{name} '{str(value).replace(chr(39), chr(39) * 2)}'"
        for name, value in options.items()
    )
    DUCKDB.execute(f"COPY ({query}) TO '{tmp_path}/expected.csv' (FORMAT csv{', ' if texts else ''}{texts})")
    table = DUCKDB.sql(query).to_arrow_table().cast(pa.schema([(n, t.arrow) for n, t in SQL_COLUMNS]))
    rows = write_file(str(tmp_path / "found.csv"), SQL_COLUMNS, batches(table), "csv", options)
    assert rows == table.num_rows
    assert (tmp_path / "found.csv").read_text() == (tmp_path / "expected.csv").read_text()


@pytest.mark.parametrize("name", ["f.csv", "f.csv.gz", "f.csv.zst", "f.parquet", "f.arrow", "f.txt"])
def test_what_is_written_is_read_again(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)
    table = pa.table({"a": list(range(300)), "b": [f"t{i}" if i % 7 else None for i in range(300)]})
    assert write_file(path, COLUMNS, batches(table, 64)) == 300
    assert read(path).equals(table)
    magic = {
        "f.csv.gz": b"\x1f\x8b\x08\x00",
        "f.csv.zst": b"\x28\xb5\x2f\xfd",
        "f.parquet": b"PAR1",
        "f.arrow": b"ARRO",
    }
    assert Path(path).read_bytes()[:4] == magic.get(name, b"a,b\n")


@pytest.mark.parametrize("name", ["f.csv", "f.parquet", "f.arrow"])
def test_a_relation_without_rows_is_written_with_its_columns(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)
    assert write_file(path, COLUMNS, iter(())) == 0
    relation = open_files([path])
    assert [column for column, _ in relation.columns] == ["a", "b"] and not list(relation.batches())


@pytest.mark.parametrize("name", ["f.csv", "f.parquet", "f.arrow"])
def test_an_error_while_writing_leaves_the_old_file_and_no_partial_one(tmp_path: Path, name: str) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield from batches(TABLE)
        raise ZeroDivisionError

    path = tmp_path / name
    path.write_text("old")
    with pytest.raises(ZeroDivisionError):
        write_file(str(path), COLUMNS, failing())
    assert path.read_text() == "old" and os.listdir(tmp_path) == [name]


def test_a_written_file_has_the_rights_of_a_new_file(tmp_path: Path) -> None:
    write_file(str(tmp_path / "f.csv"), COLUMNS, batches(TABLE))
    (tmp_path / "plain").touch()
    assert (tmp_path / "f.csv").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_parquet_row_groups_have_the_size_asked_for(tmp_path: Path) -> None:
    table = pa.table({"a": list(range(1000)), "b": ["x"] * 1000})
    write_file(
        str(tmp_path / "f"), COLUMNS, batches(table, 70), "parquet", {"row_group_size": 300, "compression": "zstd"}
    )
    metadata = pq.ParquetFile(tmp_path / "f").metadata
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [300, 300, 300, 100]
    assert metadata.row_group(0).column(0).compression == "ZSTD"


@pytest.mark.parametrize(
    "file_format, options, error",
    [
        ("csv", {"heder": True}, BindError),
        ("csv", {"delim": "||"}, NotSupportedError),
        ("csv", {"compression": "lzma"}, NotSupportedError),
        ("parquet", {"header": True}, BindError),
        ("parquet", {"compression": "lzma"}, NotSupportedError),
        ("parquet", {"row_group_size": "many"}, BindError),
        ("arrow", {"compression": "gzip"}, NotSupportedError),
        ("arrow", {"header": True}, BindError),
        ("json", {}, NotSupportedError),
    ],
)
def test_wrong_options_for_writing_are_refused_and_leave_nothing(tmp_path: Path, file_format, options, error) -> None:
    with pytest.raises(error):
        write_file(str(tmp_path / "f"), COLUMNS, batches(TABLE), file_format, options)
    assert os.listdir(tmp_path) == []


def test_a_place_that_cannot_be_written_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file or directory"):
        write_file(str(tmp_path / "no" / "f.csv"), COLUMNS, batches(TABLE))
    with pytest.raises(InputError, match="a directory cannot be written"):
        write_file(str(tmp_path), COLUMNS, batches(TABLE))


def test_intervals_are_refused_by_parquet_and_kept_by_arrow(tmp_path: Path) -> None:
    columns = (("v", types.INTERVAL),)
    table = pa.table({"v": pa.array([pa.MonthDayNano([1, 2, 3000])])})
    with pytest.raises(NotSupportedError, match="INTERVAL"):
        write_file(str(tmp_path / "f"), columns, batches(table), "parquet")
    assert write_file(str(tmp_path / "f"), columns, batches(table), "arrow") == 1
