"""Dot commands and their backslash aliases."""

import json
import os

import pyarrow.parquet
import pytest

from gpudb.shell.commands import ALIASES, COMMANDS, find_command
from gpudb.shell.shell import CommandError

TABLES = "CREATE TABLE flights (carrier VARCHAR, delay INTEGER);\nCREATE TABLE planes (tailnum VARCHAR);\n"


def run(shell, *lines: str):
    return shell(stdin="\n".join(lines) + "\n")


def test_help_lists_every_command_and_every_alias_means_one(shell):
    finished = run(shell, ".help")
    assert all(name in finished.out for name in COMMANDS)
    assert all(find_command(meaning.split(" ")[0]) for meaning in ALIASES.values())
    assert run(shell, ".help mode").out.startswith(".mode [MODE]")
    assert run(shell, "\\?").out == finished.out


@pytest.mark.parametrize("command", [".tables", "\\dt", "\\d", "\\t", ".tables %", ".tab"])
def test_tables_are_listed(shell, command):
    assert run(shell, TABLES, command).out == "flights\nplanes\n"


def test_tables_are_listed_by_pattern(shell):
    assert run(shell, TABLES, ".tables fl%").out == "flights\n"
    assert run(shell, TABLES, ".tables LANE").out == "planes\n"
    assert run(shell, TABLES, ".tables f_ights").out == "flights\n"


VIEW = "CREATE VIEW slow (who) AS SELECT carrier FROM flights;"


def test_schema_prints_statements_that_make_the_tables_again(shell):
    finished = run(
        shell, TABLES, 'CREATE TABLE "odd name" ("a b" DOUBLE, c DECIMAL(10,2) DEFAULT 1.5);', VIEW, ".schema"
    )
    assert finished.out.splitlines()[0] == "CREATE TABLE flights (carrier VARCHAR, delay INTEGER);"
    assert finished.out.splitlines()[-1] == "CREATE VIEW slow (who) AS SELECT carrier FROM flights;"
    again = run(shell, finished.out, ".schema")
    assert again.out == finished.out
    assert again.code == 0


def test_describe_shows_the_columns_of_a_table(shell):
    for command in (".describe flights", "\\d flights", "\\d FLIGHTS;"):
        finished = run(shell, TABLES, ".mode csv", command)
        assert "carrier,VARCHAR" in finished.out
        assert "delay,INTEGER" in finished.out


def test_an_unknown_command_is_an_error_with_a_suggestion(shell):
    finished = run(shell, ".tabels", "SELECT 1;")
    assert finished.code == 1
    assert "unknown command: .tabels\nhint: did you mean .tables?" in finished.err
    with pytest.raises(CommandError, match=r"ambiguous command: \.max\nhint: one of \.maxrows \.maxwidth"):
        find_command(".max")


@pytest.mark.parametrize(
    "command", [".import onlyfile", ".mode csv json", ".nullvalue", ".timer perhaps", ".maxrows x"]
)
def test_a_wrong_argument_is_an_error_that_says_what_is_right(shell, command):
    finished = run(shell, command)
    assert finished.code == 1
    assert any(word in finished.err for word in ("usage:", "say on or off", "whole number"))


def test_mode_headers_and_nullvalue_change_the_output(shell):
    finished = run(shell, ".mode csv", ".headers off", ".nullvalue -", "SELECT 1, NULL;", ".mode")
    assert finished.out == "1,-\ncsv\n"
    assert "unknown mode: xml" in run(shell, ".mode xml").err


def test_expanded_is_mode_line(shell):
    assert run(shell, "\\x", "SELECT 1 AS a;").out == "a = 1\n"
    assert run(shell, ".expanded on", ".expanded off", ".mode").out == "box\n"


def test_output_goes_to_a_file_and_back(shell, tmp_path):
    file = tmp_path / "out put.csv"
    finished = run(
        shell,
        ".mode csv",
        f".output '{file}'",
        "SELECT 1 AS a;",
        "SELECT 2 AS b;",
        ".print done",
        ".output",
        "SELECT 3 AS c;",
    )
    assert finished.out == "c\n3\n"
    assert file.read_text() == "a\n1\nb\n2\ndone\n"


def test_once_is_for_one_result(shell, tmp_path):
    file = tmp_path / "one.parquet"
    finished = run(shell, ".mode parquet", f".once {file}", "SELECT 41 + 1 AS answer;", ".mode csv", "SELECT 2 AS b;")
    assert finished.out == "b\n2\n"
    assert pyarrow.parquet.read_table(file).to_pylist() == [{"answer": 42}]


def test_a_file_that_cannot_be_written_or_read_is_an_error(shell, tmp_path):
    assert "cannot write" in run(shell, f".output {tmp_path}/none/x").err
    finished = run(shell, f".read {tmp_path}/none.sql")
    assert finished.code == 1
    assert "No such file" in finished.err


def test_read_runs_statements_and_commands_of_a_file(shell, tmp_path):
    file = tmp_path / "script.sql"
    file.write_text(".mode csv\n-- a comment\nSELECT 1 AS a;\nSELECT 2 AS b")
    for command in (f".read {file}", f"\\i {file}"):
        assert run(shell, command).out == "a\n1\nb\n2\n"


def test_import_makes_the_table_or_adds_to_it(shell, tmp_path):
    file = tmp_path / "it's.csv"
    file.write_text("a,b\n1,x\n2,y\n")
    finished = run(
        shell, f'.import "{file}" numbers', f'.import "{file}" numbers', ".mode csv", "SELECT sum(a) FROM numbers;"
    )
    assert finished.err == ""
    assert finished.out.splitlines()[1] == "6"


def test_copy_is_psqls(shell, tmp_path):
    file = tmp_path / "out.csv"
    assert run(shell, f"\\copy (SELECT 42 AS a) TO '{file}'").code == 0
    assert file.read_text().split() == ["a", "42"]


def test_timer_says_rows_time_and_device_on_standard_error(shell):
    for command in (".timer on", "\\timing"):
        finished = run(shell, command, ".mode csv", "SELECT * FROM (VALUES (0), (1), (2)) AS t(n);")
        rows, _, rest = finished.err.partition(", ")
        assert rows == "3 rows"
        assert " ms on " in rest
        assert finished.out == "n\n0\n1\n2\n"


def test_device_is_shown_and_set(shell):
    assert run(shell, ".device cpu", ".device").out == "cpu\n"
    assert run(shell, "\\cpu", ".device").out == "cpu\n"


def test_receipt_shows_what_the_last_statement_did(shell):
    receipt = json.loads(run(shell, ".output /dev/null", "SELECT 1;", ".output", ".receipt").out)
    assert "device" in receipt


def test_open_leaves_the_database(shell, tmp_path):
    finished = run(shell, TABLES, f".open {tmp_path / 'other'}", ".tables", ".databases")
    assert finished.out == f"{tmp_path / 'other'}\n"


def test_edit_runs_what_the_editor_wrote(shell, tmp_path, monkeypatch):
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/1/42/' \"$1\"\n")
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    assert run(shell, ".mode csv", "SELECT 1 AS a;", ".edit").out == "a\n1\na\n42\n"


def test_bail_and_echo(shell):
    finished = run(shell, ".bail on", ".print before", "SELECT nothing;", ".print after")
    assert (finished.code, finished.out) == (1, "before\n")
    assert "SELECT 1;" in run(shell, ".echo on", "SELECT 1;").err


def test_quit_leaves_with_its_code(shell):
    assert run(shell, ".quit 7", ".print never").code == 7
    assert run(shell, "\\q", ".print never").out == ""


def test_show_and_status_name_the_settings(shell):
    assert "continuation_prompt" in run(shell, ".show").out
    status = run(shell, ".status").out
    assert status.startswith("gpudb ")
    assert "VmRSS" in status
    assert os.linesep.join(run(shell, "\\memory_summary").out.splitlines()[:2]) in status
