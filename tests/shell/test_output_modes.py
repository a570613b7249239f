"""Every output mode, from the command line to the bytes."""

import csv
import io
import json

import pyarrow as pa
import pyarrow.parquet
import pytest

QUERY = """SELECT * FROM (VALUES
    (1, 'plain', 1.5::DOUBLE, true), (2, 'a "quoted", text', NULL, false), (3, E'two\\nlines', -0.25, NULL),
    (4, '', 1e20, true), (5, NULL, 0.1, true)) AS t(n, text, value, flag)"""
ROWS = [
    (1, "plain", 1.5, True),
    (2, 'a "quoted", text', None, False),
    (3, "two\nlines", -0.25, None),
    (4, "", 1e20, True),
    (5, None, 0.1, True),
]


def test_csv_is_rfc_4180_and_tells_null_from_the_empty_text(shell):
    finished = shell("-csv", "-c", QUERY)
    assert finished.code == 0
    assert finished.out == (
        "n,text,value,flag\n"
        "1,plain,1.5,true\n"
        '2,"a ""quoted"", text",,false\n'
        '3,"two\nlines",-0.25,\n'
        '4,"",1e+20,true\n'
        "5,,0.1,true\n"
    )
    fields = list(csv.reader(io.StringIO(finished.out)))
    assert [row[1] for row in fields[1:]] == [text or "" for _, text, _, _ in ROWS]


def test_csv_names_are_quoted_and_can_be_left_out(shell):
    assert shell("-csv", "-c", 'SELECT 1 AS "a,""b"').out == '"a,""b"\n1\n'
    assert shell("-csv", "-noheader", "-c", "SELECT 1 AS a, 2 AS b").out == "1,2\n"


def test_csv_quotes_a_text_that_would_read_as_null(shell):
    assert shell("-csv", "-nullvalue", "NA", "-c", "SELECT 'NA' AS a, NULL AS b").out == 'a,b\n"NA",NA\n'


def test_json_is_one_array(shell):
    assert json.loads(shell("-json", "-c", QUERY).out) == [
        dict(zip(("n", "text", "value", "flag"), row, strict=True)) for row in ROWS
    ]
    assert shell("-json", "-c", "SELECT 1 AS a WHERE false").out == "[]\n"


def test_jsonlines_has_an_object_a_line(shell):
    lines = shell("-jsonlines", "-c", QUERY).out.splitlines()
    assert [tuple(json.loads(line).values()) for line in lines] == ROWS


def test_json_keys_are_quoted(shell):
    assert shell("-jsonlines", "-c", 'SELECT 1 AS "say ""hi"""').out == '{"say \\"hi\\"":1}\n'


def test_markdown_escapes_bars_and_line_breaks(shell):
    assert shell("-markdown", "-c", "SELECT 1 AS n, E'a|b\\nc' AS t, NULL AS x").out == (
        "| n | t | x |\n|---:|---|---|\n| 1 | a\\|b\\nc | NULL |\n"
    )


def test_line_has_a_line_for_each_value(shell):
    assert shell("-line", "-c", "SELECT * FROM (VALUES (1, 'x'), (2, NULL)) AS t(n, text)").out == (
        "   n = 1\ntext = x\n\n   n = 2\ntext = NULL\n"
    )


def test_box_shows_every_row_where_nobody_looks_at_a_terminal(shell, numbers):
    finished = shell("-box", "-c", f"SELECT * FROM {numbers(100)}")
    assert "(" not in finished.out
    assert finished.out.endswith("100 rows\n")
    assert finished.out.count("│ ") == 102


@pytest.mark.parametrize("mode", ["parquet", "arrow"])
def test_binary_modes_write_one_file_to_a_pipe(process, mode):
    finished = process(f"-{mode}", "-c", QUERY)
    assert finished.returncode == 0
    assert finished.stderr == b""
    if mode == "parquet":
        table = pyarrow.parquet.read_table(io.BytesIO(finished.stdout))
    else:
        table = pa.ipc.open_stream(finished.stdout).read_all()
    assert [tuple(row.values()) for row in table.to_pylist()] == ROWS


@pytest.mark.parametrize("mode", ["parquet", "arrow"])
def test_two_binary_results_in_one_pipe_are_an_error(shell, tmp_path, mode):
    finished = shell(
        stdin=f".mode {mode}\n.output {tmp_path / 'one'}\nSELECT 1;\nSELECT 2;\n.output {tmp_path / 'two'}\nSELECT 3;"
    )
    assert finished.code == 1
    assert f"one file holds one {mode} result" in finished.err
    assert (tmp_path / "two").stat().st_size > 0


def test_a_result_of_many_batches_is_complete_in_every_text_mode(shell, numbers):
    for mode, lines in (("csv", 200_001), ("jsonlines", 200_000), ("json", 200_000), ("markdown", 200_002)):
        finished = shell(f"-{mode}", "-c", f"SELECT * FROM {numbers(200_000)}")
        assert len(finished.out.splitlines()) == lines
        assert "199999" in finished.out.splitlines()[-1]
