"""CSV files read by us and by DuckDB: the same names, types and values; and clear errors where a row is at fault."""

from __future__ import annotations

import gzip
import zipfile
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from gpudb.errors import BindError, InputError, NotSupportedError
from gpudb.storage import csv_blocks
from gpudb.storage.files import open_files
from gpudb.types import BIGINT, DATE, TIMESTAMP, VARCHAR

DUCKDB = duckdb.connect()


def read(path: Path | str, options: dict | None = None, **more) -> tuple[list[tuple[str, str]], list[tuple]]:
    """([(name, type)], rows) as gpudb reads the file."""
    relation = open_files([str(path)], options=options, **more)
    table = pa.Table.from_batches(list(relation.batches()), relation.schema())
    for batch in table.to_batches():
        batch.validate(full=True)
    columns = [(name, str(sql_type)) for name, sql_type in relation.columns]
    rows = [tuple(int(v) if isinstance(v, Decimal) and t == "HUGEINT" else v for v, (_, t) in zip(row, columns, strict=True))
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]  # fmt: skip
    return columns, rows


def read_by_duckdb(path: Path | str, options: str = "") -> tuple[list[tuple[str, str]], list[tuple]]:
    result = DUCKDB.execute(f"SELECT * FROM read_csv('{path}'{options})")
    return [(name, str(type_)) for name, type_, *_ in result.description], result.fetchall()


def write(folder: Path, content: bytes | str, name: str = "file.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


LIKE_DUCKDB = [
    "a,b,c\n1,2.5,x\n2,3,y\n",
    'a,b\n1,""\n2,\n3,x\n',
    'a,b\n1,""\n2,4\n3,\n',
    "a,b\r\n1,x\r\n2,y\r\n",
    "a,b\r1,x\r2,y\r",
    "\ufeffa,b\n1,x\n",
    "a,b\n1,x\n2,y",
    "a,b,c\n",
    "a,b,c",
    "1,2,3\n",
    "",
    "\n",
    "\n\n\n",
    "\n\n\n\n",
    "a\n1\n2\n\n3\n",
    "a\nx\n\ny\n",
    "1\n2\n3\n",
    "x,y\nz,w\n",
    "x,1\nz,2\n",
    "name,city\nbob,paris\nal,rome\n",
    "a,b\n1,2\n\n3,4\n",
    "a,b\n1,2\n\n\n",
    "\n\na,b\n1,2\n",
    "\n1\n2\n",
    "\nx\ny\n",
    "a;b\n1;2,5\n3;4,5\n",
    "a\tb\n1\t2\n",
    "a|b\n1|2\n",
    "a,b\n'x,1',2\n'y,2',3\n",
    'a,b\n1,"x\ny"\n2,z\n',
    'a,b\n1,"x ""q"" y"\n2,z\n',
    'a,b\n1,"x \\"q\\" y"\n2,z\n',
    "a, b ,c\n1, 2 , x \n3, 4 , y\n",
    "a,b,c,d,e\ntrue,t,1,yes,TRUE\nfalse,f,0,no,False\n",
    "a\ntrue\n\nfalse\n",
    "a,b\n007,+5\n08,-5\n",
    "a,b\n9223372036854775807,1\n9223372036854775808,2\n",
    "a\n0xFF\n0x10\n",
    "a\n1_000\n2\n",
    "a,b,c\n1e5,.5,5.\n2E-3,-.5,6.\n",
    "a;b\n1,000;2\n2,000;3\n",
    "a,b\n2020-01-05,2020/01/05\n2020-02-05,2020/01/06\n",
    "a\n01/02/2020\n03/04/2020\n",
    "a\n25/01/2020\n",
    "a\n01/25/2020\n",
    "a\n2020-1-5\n2020-1-6\n",
    "a\n1/2/20\n3/4/21\n",
    "a\n01-02-20\n",
    "a\n05/01/2020 01:02:03\n",
    "a\n01/25/2020 01:02:03 PM\n",
    "a,b,c,d\n2020-01-05 10:11:12,2020-01-05T10:11:12,2020-01-05 10:11:12.123456,2020-01-05 10:11\n",
    "a\n2020-01-05 01:02:03.123456789\n",
    "a,b\n1,NA\n2,5\n",
    "a,b\n1,NULL\n2,5\n",
    "a,a,A\n1,2,3\n",
    "a,a_1,a\n1,2,3\n",
    "a,,c\n1,2,3\n",
    "a,b\n1,2,\n3,4,\n",
    "a,b\n1,\n2,\n",
    'a,b\n1,5" pipe\n2,x\n',
    'a,b\n1,"ab"c\n2,x\n',
    'a,b\n1,"ab\n2,x\n',
    "# hello\na,b\n1,2\n",
    "a,b\n1,2\n#x\n3,4\n",
    "a,b\n#1,2\n#x,3\n",
    "some title\n\na,b,c\n1,2,3\n4,5,6\n",
    "a\n1\n2.5\n",
    "a\n2020-01-01\n2020-01-01 10:00:00\n",
    "a\n2020-01-01 10:00:00\n2020-01-01\n",
    "a\ntrue\n1\n",
    'a,b\n1, "x"\n2, "y"\n',
    "a\n-0\n-0.0\n",
    "a\n1e400\n2\n",
    "a,b\nx\x00y,1\nz,2\n",
    "a,b\n,\n1,2\n",
    ",\n1,2\n",
    "a,\nb,c\n",
    "A B,C-d,1x\n1,2,3\n",
    "a\n12345678901234567890.5\n1\n",
    "a b,b\"c,\"d\"\"e\",select\n1,2,3,4\n",
    'a,b\n"1","2"\n',
    '"a","b"\n"1","x"\n',
    '"a ""b","c\nd"\n1,2\n',
    "true,x\nfalse,y\n",
    "true,x\n1,y\n",
    "x,2020-01-01\ny,2020-01-02\n",
    "5,d\nx,2020-01-02\n",
    "a,1\n1,x\n",
    "1,a\nx,b\n",
    "a,b\n1,2,3\n4,5,6\n",
    "a;b\n1;2.5,3\n2;5.5,3\n",
    "a,b;c\n1,2;3\n2,3;4\n",
    "time,msg\n10,hello; world\n11,b; c\n",
    "a,b\n1,it's\n2,that's\n",
    'a,b\n1,"x\ry"\n2,z\n',
    'a,b\n1 ,2\n"3" ,4\n',
    "f,a,a\ntrue,,\n",
    "1,x\n3,\n4,\n",
    "1,2020-01-01\n2,\n",
    '1,""\n2,\n',
    "1,\n2,\n",
    "1,x\n2,\n3,y\n",
]  # fmt: skip


@pytest.mark.parametrize("content", LIKE_DUCKDB)
def test_a_file_is_read_as_duckdb_reads_it(tmp_path: Path, content: str) -> None:
    path = write(tmp_path, content)
    assert repr(read(path)) == repr(read_by_duckdb(path))


SAMPLES = """007|+5|-007|0|00|-0|0.5|00.5|01.5|-01.5|1e5|1E+5|1e|nan|0x1F|0b11|0X10|1.|.5|-.5|-| 5|5 | 5.5 | true|TRUE|t|T|yes|YES
y|Y|on|n|no|2020-01-05 |2020 01 05|2020.01.05|20200105|01.02.2020|2020-01-05 1:2:3|2020-01-05T01:02|2020-01-05 01
2020-01-05 01:02:03 UTC|2020/01/05 01:02:03|01-25-2020 01:02:03|9223372036854775807|-9223372036854775808|-9223372036854775809
2020-13-05|2020-02-30|0001-01-01|1e-400|0xFG|- 5|5%|$5|1 2|1.0|1d|[1]|{"a":1}|5;x|5;;x|5;5.5;x|5;007|5.5;007|true;5|f;1""".replace(
    "\n", "|"
)


@pytest.mark.parametrize("texts", [text.split(";") for text in SAMPLES.split("|")], ids=" ".join)
def test_the_type_of_a_column_is_duckdbs(tmp_path: Path, texts: list[str]) -> None:
    path = write(tmp_path, "a|z\n" + "".join(f"{text}|q\n" for text in texts))
    assert repr(read(path, {"delim": "|"})) == repr(read_by_duckdb(path, ", delim='|'"))


CASTS = {
    "BIGINT": ["007", "+5", "1.5", "2.5", "-1.5", "1e3", "1.5e1", "0x1F", "0b11", "1_000", " 5", "5 ", "", "abc", "true", "-",
               "9223372036854775808", "5.", ".5", '" 5 "', "1e-1", "9223372036854775807.4", "٣", "0xFFFFFFFFFFFFFFFF", " "],
    "TINYINT": ["127", "128", "127.4", "127.6", "0x7f", "0xff", "-128"],
    "INTEGER": ["2147483648", "1e9", "-2147483648"],
    "HUGEINT": ["5", "1.5", "170141183460469231731687303715884105728"],
    "DOUBLE": ["1", "inf", "nan", "-Infinity", "1e400", "1_0.5", "0x1F", "+1.5", " 1.5 ", "1.5.5", "1.", ".", "1e", "NaN", "1d"],
    "REAL": ["16777217", "1e39", "0.1", "8.589973e9"],
    "BOOLEAN": ["true", "T", "1", "0", "yes", "no", "y", "on", "off", "2", "TRUE", "tRue", " true", "true ", "-1", "1.0"],
    "DATE": ["2020-1-5", "2020-01-05", "2020/01/05", "01/02/2020", "20200105", "2020-01-05 10:00:00", " 2020-01-05 ",
             "2020-13-01", "2020-02-30", "epoch", "2020-01-05T00:00:00", "2020-01-05x", "2020-1", "0001-01-01", "2020.01.05"],
    "TIMESTAMP": ["2020-01-05", "2020-01-05 10:11", "2020-01-05 1:2:3", "2020-01-05T10:11:12Z", "2020-01-05 10:11:12+02",
                  "2020-01-05 10:11:12+02:30", "2020-01-05 10:11:12 UTC", "2020-01-05 10:11:12.123456789",
                  "2020-01-05 10:11:12.9999999", "2020-01-05 24:00:00", "2020-01-05 25:00:00", "2020-01-05 10:60:00",
                  "2020-01-05 10:11:12 Europe/Paris", "2020/01/05 10:11:12", " 2020-01-05  10:11:12 ",
                  "2020-01-05 10:11:12Zx", "2020-01-05 10:11:60", "300000-01-01 00:00:00", "2020-01-05t10:11:12",
                  "2020-01-05 10:11:12.", "2020-01-05 10:11:", "1577836800"],
    "DECIMAL(5,2)": ["1", "1.005", "1.015", "999.994", "999.995", "1000", "1e2", "1e-1", " 5 ", "abc", ".5", "5.", "+1", "0x10",
                     "1_0", "-0.005", "1.5e0", "nan", "1e10"],
    "VARCHAR": ["x", " x ", '" x "', '"a""b"', "NULL"],
    "DECIMAL(38,10)": ["1.23456789012", "1e5"],
}  # fmt: skip


@pytest.mark.parametrize("type_, text", [(type_, text) for type_, texts in CASTS.items() for text in texts])
def test_a_text_becomes_the_value_that_duckdb_makes_of_it(tmp_path: Path, type_: str, text: str) -> None:
    path = write(tmp_path, f"a,z\n{text},q\n")
    try:
        expected = read_by_duckdb(path, f", delim=',', header=true, columns={{'a': '{type_}', 'z': 'VARCHAR'}}")
    except duckdb.Error:
        with pytest.raises(InputError, match="line 2, column a"):
            read(path, {"delim": ",", "header": True, "columns": {"a": type_, "z": "VARCHAR"}})
    else:
        found = read(path, {"delim": ",", "header": True, "columns": {"a": type_, "z": "VARCHAR"}})
        assert repr(found) == repr(expected)


OPTIONS = [
    ("a,b\n1,x\n", "header=false"),
    ("1,2\n3,4\n", "header=true"),
    ("a,b\n1,x\n", "all_varchar=true"),
    ("a,b\n1,x\n", "skip=1"),
    ("a,b\n1,x\n2,y\n", "skip=1, header=true"),
    ("a,b\n1,x\n", "names=['p','q']"),
    ("a,b\n1,x\n", "names=['p']"),
    ("a,b\n1,x\n", "types={'a':'DOUBLE'}"),
    ("a,b\n1,x\n", "types=['DOUBLE','VARCHAR']"),
    ("a,b\n1,x\n", "columns={'p':'BIGINT','q':'VARCHAR'}"),
    ("3,z\n1,x\n", "columns={'p':'BIGINT','q':'VARCHAR'}"),
    ("a,b\n1,x\n", "columns={'a':'VARCHAR','b':'VARCHAR'}"),
    ("h,i\na,b\n1,x\n", "columns={'p':'VARCHAR','q':'VARCHAR'}"),
    ("a,b\n1,2\n3\n4,5\n", "delim=',', null_padding=true"),
    ("a,b\n1,2\n3\n4,5\n", "ignore_errors=true"),
    ("a,b\n1,2\nx,3\n4,5\n", "ignore_errors=true, columns={'a':'BIGINT','b':'BIGINT'}"),
    ("a,b\nNA,1\n2,NA\n", "nullstr='NA'"),
    ("a,b\nNA,1\n2,-\n", "nullstr=['NA','-']"),
    ("a,b\nNA,\nx,y\n", "nullstr='NA'"),
    ('a,b\n"",1\nx,2\n,3\n', "allow_quoted_nulls=false"),
    ("d\n31.12.2020\n01.02.2021\n", "dateformat='%d.%m.%Y'"),
    ("d\n2020 Jan 5\n", "dateformat='%Y %b %d'"),
    ("t\n31.12.2020 10:11\n", "timestampformat='%d.%m.%Y %H:%M'"),
    ("t\n5/1/20 1:05 PM\n", "timestampformat='%m/%d/%y %I:%M %p'"),
    ("a!b\n1!2\n", "delim='!'"),
    ("a,b\n1,x,y\n", "quote='', header=true, delim=','"),
    ("a;b\n1,5;x\n-2,25;y\n", "decimal_separator=',', delim=';'"),
    ("a,b\n~x,y~,2\n", "quote='~'"),
    ("a,b\n%skip\n1,2\n", "comment='%'"),
    ("a\n1\n2\nx\n", "sample_size=-1"),
]  # fmt: skip


@pytest.mark.parametrize("content, options", OPTIONS)
def test_an_option_means_what_it_means_in_duckdb(tmp_path: Path, content: str, options: str) -> None:
    path = write(tmp_path, content)
    ours = eval(f"dict({options})".replace("true", "True").replace("false", "False"), {}, {})
    try:
        expected = read_by_duckdb(path, ", " + options)
    except duckdb.Error:
        with pytest.raises(InputError):
            read(path, ours)
    else:
        assert repr(read(path, ours)) == repr(expected)


def test_another_escape_than_the_quote_is_taken_from_the_option(tmp_path: Path) -> None:
    path = write(tmp_path, 'a,b\n"x\\"y",2\n"p,\\\\",3\n')
    assert read(path, {"escape": "\\"}) == ([("a", "VARCHAR"), ("b", "BIGINT")], [('x"y', 2), ("p,\\", 3)])


def test_a_late_value_that_is_no_number_is_named_with_line_column_and_text(tmp_path: Path) -> None:
    path = write(tmp_path, "n,s\n" + "1,x\n" * 30_000 + "abc,y\n" + "2,z\n" * 500)
    with pytest.raises(InputError) as caught:
        read(path)
    message = str(caught.value)
    assert "not a number, wanted BIGINT: line 30002, column n, text 'abc'" in message
    assert str(path) in message and "types={'n': 'VARCHAR'}" in message


def test_the_line_is_right_far_into_a_file_of_many_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_blocks, "BLOCK_BYTES", 4096)
    path = write(tmp_path, "# note\nn,s\n" + '1,"two\nlines"\n' * 2000 + "2,x,y\n" + "3,z\n" * 2000)
    with pytest.raises(InputError, match="the row has 3 fields where 2 are expected: line 4003, text '2,x,y'"):
        read(path, {"skip": 1, "header": True, "delim": ","})


def test_a_stream_stops_at_the_first_row_at_fault_whatever_blocks_are_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_blocks, "BLOCK_BYTES", 1024)
    lines = [f"{i},x" for i in range(5000)]
    lines[700], lines[3000] = "first,x", "second,x"
    path = write(tmp_path, "n,s\n" + "\n".join(lines))
    with pytest.raises(InputError, match="line 702, column n, text 'first'"):
        read(path, {"sample_size": 100})


def test_rows_at_fault_are_left_out_counted_and_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_blocks, "BLOCK_BYTES", 2048)
    good = [f"{i},2020-01-{i % 28 + 1:02},t{i}" for i in range(3000)]
    bad = {
        100: "x,2020-01-01,t",
        1500: "5,2020-13-01,t",
        1501: "5",
        2500: '5,2020-01-01,"open',
        2900: "5,2020-01-01,\xff",
    }
    lines = [bad.get(i, line) for i, line in enumerate(good)]
    path = write(tmp_path, b"n,d,s\n" + "\n".join(lines).encode("latin-1") + b"\n")
    relation = open_files([str(path)], options={"ignore_errors": True, "delim": ",", "quote": '"', "sample_size": 50})
    rows = sum(batch.num_rows for batch in relation.batches())
    assert rows == 3000 - len(bad)
    assert relation.rejected.count == len(bad)
    assert [(row.line, row.column) for row in relation.rejected.first] == [
        (102, "n"), (1502, "d"), (1503, None), (2502, None), (2902, "s"),
    ]  # fmt: skip
    text = str(relation.rejected)
    assert "5 rows were left out" in text and "there is no month 13" in text and "not valid UTF-8" in text


def test_more_bad_rows_than_reasons_kept_are_still_counted(tmp_path: Path) -> None:
    path = write(tmp_path, "n\n" + "1\n" * 200 + "x\n" * 37)
    relation = open_files([str(path)], options={"ignore_errors": True, "sample_size": 100})
    assert sum(batch.num_rows for batch in relation.batches()) == 200
    assert relation.rejected.count == 37 and len(relation.rejected.first) == 10
    assert "and 27 more" in str(relation.rejected)
    list(relation.batches())
    assert relation.rejected.count == 37, "a second reading starts its count anew"


@pytest.mark.parametrize("block", [64, 200, 1000, 1 << 20])
def test_blocks_of_any_size_give_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    lines = []
    for i in range(400):
        text = ["plain", '"quoted, with ""marks"""', '"two\nlines"', "", '""', 'in"ner', "ünï", '"a\r\nb"'][i % 8]
        lines.append(f"{i},{text},{i / 8}")
    path = write(tmp_path, "i,t,x\n" + "\n".join(lines))
    monkeypatch.setattr(csv_blocks, "BLOCK_BYTES", block)
    options = {"delim": ",", "quote": '"', "header": True}
    assert read(path, options) == read_by_duckdb(path, ", delim=',', quote='\"', header=true")


def test_a_quote_that_never_closes_is_reported_where_it_opens(tmp_path: Path) -> None:
    path = write(tmp_path, 'a,b\n1,x\n2,"open\n' + "3,y\n" * 1000)
    with pytest.raises(InputError, match="a quoted value has no closing quote: line 3"):
        read(path, {"quote": '"', "delim": ",", "header": True})


def test_a_quote_that_never_closes_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_blocks, "BLOCK_BYTES", 1 << 16)
    path = write(tmp_path, 'a,b\n1,x\n2,"open\n' + "3,y\n" * 200_000)
    options = {"quote": '"', "delim": ",", "header": True, "max_line_size": 1 << 18, "ignore_errors": True}
    relation = open_files([str(path)], options=options)
    assert sum(batch.num_rows for batch in relation.batches()) == 200_001
    assert [row.line for row in relation.rejected.first] == [3]


def test_a_line_past_the_limit_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_blocks, "BLOCK_BYTES", 1 << 16)
    path = write(tmp_path, "a,b\n1,x\n2," + "y" * 1_000_000)
    with pytest.raises(InputError, match="a line is longer than"):
        read(path, {"max_line_size": 200_000, "delim": ",", "header": True})


def test_a_line_of_many_megabytes_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b\n1,x\n2," + "y" * 9_000_000 + "\n3,z\n")
    columns, rows = read(path)
    assert columns == [("a", "BIGINT"), ("b", "VARCHAR")]
    assert [(a, len(b)) for a, b in rows] == [(1, 1), (2, 9_000_000), (3, 1)]


def test_only_the_columns_asked_for_are_read_and_only_their_faults_count(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b,c\n" + "1,2,3\n" * 30_000 + "4,oops,6\n")
    relation = open_files([str(path)], options={"sample_size": 100})
    table = pa.Table.from_batches(list(relation.batches([2, 0])))
    assert table.column_names == ["c", "a"] and table.num_rows == 30_001
    with pytest.raises(InputError, match="column b"):
        list(relation.batches([1]))


@pytest.mark.parametrize("texts", ["Z", "+02", "-05:30", "+0230", "Z,", ",+02", ".5Z,", ".25+02:00:30,Z"])
def test_timestamps_with_offsets_are_moments_in_time(tmp_path: Path, texts: str) -> None:
    lines = "\n".join(f"2013-01-01T10:00:00{end}" for end in texts.split(","))
    path = write(tmp_path, f"t\n{lines}\nNA\n")
    DUCKDB.execute("SET TimeZone = 'Europe/Berlin'")
    try:
        expected = read_by_duckdb(path, ", nullstr = 'NA'")
    finally:
        DUCKDB.execute("RESET TimeZone")
    assert expected[0] == [("t", "TIMESTAMP WITH TIME ZONE")]
    assert read(path, {"nullstr": "NA"}, zone="Europe/Berlin") == expected


def test_a_zone_name_behind_a_timestamp_is_left_out(tmp_path: Path) -> None:
    path = write(tmp_path, "t\n2013-01-01T10:00:00 UTC\n")
    assert read(path) == read_by_duckdb(path)


def test_a_ragged_file_is_an_error_and_not_one_column_of_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the row has 2 fields where 3 are expected: line 3"):
        read(write(tmp_path, "a,b,c\n1,2,3\n4,5\n6,7,8\n"))
    with pytest.raises(InputError, match="the row has 3 fields where 2 are expected: line 3"):
        read(write(tmp_path, "a,b\n1,2\n4,5,6\n6,7\n"))


@pytest.mark.parametrize("suffix", ["gz", "zst", "zip", "none"])
def test_compression_is_seen_in_the_content_whatever_the_name(tmp_path: Path, suffix: str) -> None:
    content = ("a,b\n" + "".join(f"{i},text {i}\n" for i in range(100_000))).encode()
    path = tmp_path / "data.bin"
    if suffix == "gz":  # two members, as `cat a.gz b.gz` makes them
        path.write_bytes(gzip.compress(content[:1000]) + gzip.compress(content[1000:]))
    elif suffix == "zst":
        with pa.CompressedOutputStream(str(path), "zstd") as stream:
            stream.write(content)
    elif suffix == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("data.csv", content)
    else:
        path.write_bytes(content)
    progress: list[int] = []
    relation = open_files([str(path)])
    rows = sum(batch.num_rows for batch in relation.batches(progress=progress.append))
    assert rows == 100_000 and relation.total_bytes == path.stat().st_size
    assert progress == sorted(progress) and 0 < progress[-1] <= relation.total_bytes


@pytest.mark.parametrize("kind", ["gzip", "zstd", "zip"])
def test_broken_compressed_data_are_an_input_error(tmp_path: Path, kind: str) -> None:
    content = ("a,b\n" + "".join(f"{i},text {i * 7919}\n" for i in range(300_000))).encode()
    path = tmp_path / "data"
    if kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("data.csv", content)
    else:
        with pa.CompressedOutputStream(str(path), kind) as stream:
            stream.write(content)
    whole = bytearray(path.read_bytes())
    middle = len(whole) // 2
    whole[middle : middle + 64] = bytes(64)
    path.write_bytes(whole)
    with pytest.raises(InputError, match="broken"):
        sum(batch.num_rows for batch in open_files([str(path)]).batches())


def test_latin_1_is_read_when_it_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b\n1,Köln\n".encode("latin-1"))
    with pytest.raises(InputError, match="not valid UTF-8: line 2, column b"):
        read(path)
    assert read(path, {"encoding": "latin-1"})[1] == [(1, "Köln")]


def test_several_files_are_one_relation_in_order(tmp_path: Path) -> None:
    write(tmp_path, "a,b\n1,x\n", "p2.csv")
    write(tmp_path, "a,b\n2.5,y\n", "p10.csv")
    write(tmp_path, "A,B\n3,\n", "p3.csv")
    columns, rows = read(tmp_path / "p*.csv")
    assert columns == [("a", "DOUBLE"), ("b", "VARCHAR")]
    assert rows == [(2.5, "y"), (1.0, "x"), (3.0, None)], "p10 sorts before p2"


def test_files_with_other_columns_are_refused_by_name(tmp_path: Path) -> None:
    write(tmp_path, "a,b\n1,x\n", "p1.csv")
    write(tmp_path, "a,c\n1,x\n", "p2.csv")
    with pytest.raises(InputError, match=r"different columns: a, b in .*p1.csv; a, c in .*p2.csv"):
        read(tmp_path / "p*.csv")
    write(tmp_path, "a,b,c\n1,x,2\n", "p2.csv")
    with pytest.raises(InputError, match=r"different numbers of columns: 2 in .*p1.csv, 3 in .*p2.csv"):
        read(tmp_path / "p*.csv")


TARGET = (("n", BIGINT), ("d", DATE), ("t", TIMESTAMP), ("s", VARCHAR))


def test_a_table_that_is_copied_into_gives_the_types_and_the_number_of_columns(tmp_path: Path) -> None:
    path = write(tmp_path, "w,x,y,z\n1,2020-01-05,2020-01-05T01:02:03Z,007\n,,,\n")
    columns, rows = read(path, target=TARGET)
    assert columns == [("n", "BIGINT"), ("d", "DATE"), ("t", "TIMESTAMP"), ("s", "VARCHAR")]
    assert [str(v) for v in rows[0]] == ["1", "2020-01-05", "2020-01-05 01:02:03", "007"]
    assert rows[1] == (None, None, None, None)


def test_a_file_with_too_few_columns_for_the_table_is_refused_at_its_first_row(tmp_path: Path) -> None:
    path = write(tmp_path, "1,2020-01-05,2020-01-05 01:02:03\n")
    with pytest.raises(InputError, match="the row has 3 fields where 4 are expected: line 1"):
        read(path, target=TARGET)


def test_an_empty_file_fills_a_table_with_no_rows(tmp_path: Path) -> None:
    assert read(write(tmp_path, ""), target=TARGET)[1] == []


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"delimeter": ","}, BindError, "unknown CSV option: delimeter"),
        ({"delim": "||"}, NotSupportedError, "one ASCII character"),
        ({"header": "maybe"}, BindError, "takes true or false"),
        ({"skip": -1}, BindError, "at least 0"),
        ({"types": {"zz": "INT"}}, BindError, "columns that the CSV file does not have: zz"),
        ({"columns": {"a": "JSON", "b": "INT"}}, NotSupportedError, "columns of type JSON"),
        ({"encoding": "utf-16"}, NotSupportedError, "encoding"),
        ({"union_by_name": True}, NotSupportedError, "union_by_name"),
        ({"dateformat": "%Q"}, NotSupportedError, "%Q is not supported"),
        ({"compression": "lz4"}, NotSupportedError, "compression"),
    ],
)
def test_a_wrong_option_is_refused(tmp_path: Path, options: dict, error: type[Exception], message: str) -> None:
    path = write(tmp_path, "a,b\n1,x\n")
    with pytest.raises(error, match=message):
        read(path, options)


def test_a_stream_that_is_left_early_ends_its_threads(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b\n" + "1,x\n" * 3_000_000)
    stream = open_files([str(path)]).batches()
    first = next(stream)
    stream.close()
    assert first.num_rows > 0
    import threading

    assert not [thread for thread in threading.enumerate() if thread.name.startswith("gpudb-csv")]
