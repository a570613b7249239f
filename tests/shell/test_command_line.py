"""The command line: inputs and their order, flags, exit codes, what goes where."""

import signal
import subprocess
import sys

import pytest

from gpudb.errors import QueryCancelled
from gpudb.session import Session
from gpudb.version import __version__


def test_version_and_help(shell):
    assert shell("--version").out == f"gpudb {__version__}\n"
    finished = shell("--help")
    assert finished.code == 0
    assert all(word in finished.out for word in ("-c SQL", "-f FILE", "-csv", "-bail", "-readonly", "demo flights"))


def test_statements_and_files_run_in_the_order_given(shell, tmp_path):
    file = tmp_path / "script.sql"
    file.write_text("SELECT 2 AS a;")
    finished = shell("-csv", "-noheader", "-c", "SELECT 1", "-f", file, "-c", "SELECT 3; SELECT 4")
    assert (finished.code, finished.out) == (0, "1\n2\n3\n4\n")


def test_commands_work_in_every_input(shell, tmp_path):
    file = tmp_path / "script.sql"
    file.write_text(".headers off\n")
    assert shell("-c", ".mode csv", "-f", file, "-c", "SELECT 1").out == "1\n"


def test_a_pipe_is_read_to_its_end_without_prompt_or_banner(shell):
    finished = shell("-csv", stdin="SELECT 1 AS a;\n\nSELECT 2 AS b")
    assert (finished.code, finished.out, finished.err) == (0, "a\n1\nb\n2\n", "")


def test_an_error_goes_to_standard_error_with_its_place_and_exit_code_1(shell):
    finished = shell("-c", "CREATE TABLE t (delay INTEGER); SELECT dela FROM t")
    assert (finished.code, finished.out) == (1, "")
    assert finished.err.startswith("BindError: ")
    assert "\n  SELECT dela FROM t\n         ^^^^\n" in finished.err


def test_an_error_ends_the_statements_of_dash_c(shell):
    finished = shell("-c", ".print one", "-c", "SELECT nothing; .print two", "-c", ".print three")
    assert (finished.code, finished.out) == (1, "one\n")


@pytest.mark.parametrize("by", ["pipe", "file"])
def test_an_error_in_a_script_does_not_end_it_unless_bail_is_given(shell, tmp_path, by):
    script = "SELECT nothing;\n.print after\n"
    file = tmp_path / "script.sql"
    file.write_text(script)
    arguments = ["-f", str(file)] if by == "file" else []
    finished = shell(*arguments, stdin=script)
    assert (finished.code, finished.out) == (1, "after\n")
    finished = shell("-bail", *arguments, stdin=script)
    assert (finished.code, finished.out) == (1, "")


def test_a_database_that_cannot_be_opened_is_exit_code_2(shell, tmp_path):
    file = tmp_path / "a file, no database"
    file.write_text("text")
    finished = shell(file, "-c", "SELECT 1")
    assert finished.code == 2
    assert finished.out == ""
    assert "Error: " in finished.err
    assert "Traceback" not in finished.err


def test_a_wrong_flag_is_exit_code_2(shell):
    assert shell("-nosuchflag").code == 2


def test_a_database_directory_keeps_its_tables(shell, tmp_path):
    path = tmp_path / "database"
    assert shell(path, "-c", "CREATE TABLE t AS SELECT 42 AS a").code == 0
    assert shell(path, "-readonly", "-csv", "-c", "SELECT a FROM t").out == "a\n42\n"
    finished = shell(path, "-readonly", "-c", "CREATE TABLE u (a INTEGER)")
    assert finished.code == 1
    assert "ReadOnlyError" in finished.err


def test_the_device_is_set_by_a_flag(shell):
    assert shell("--cpu", "-c", ".device").out == "cpu\n"


def test_the_init_file_runs_first_unless_told_otherwise(shell, home, tmp_path):
    (home / ".gpudbrc").write_text(".mode csv\n")
    other = tmp_path / "init"
    other.write_text(".mode jsonlines\n")
    assert shell("-c", ".mode").out == "csv\n"
    assert shell("-no-init", "-c", ".mode").out == "box\n"
    assert shell("-init", other, "-c", ".mode").out == "jsonlines\n"
    assert shell("-init", tmp_path / "none", "-c", ".mode").code == 1


def test_echo_prints_statements_before_they_run(shell):
    assert shell("-echo", "-csv", "-c", "SELECT 1 AS a").err == "SELECT 1 AS a\n"


def test_input_and_output_are_utf_8_whatever_the_locale(process):
    finished = process("-csv", "-noheader", stdin="SELECT 'Zürich 東京';".encode(), LC_ALL="C", PYTHONUTF8="0")
    assert finished.stdout.decode() == "Zürich 東京\n"
    finished = process(stdin=b"SELECT '\xff';")
    assert finished.returncode == 1
    assert b"not UTF-8" in finished.stderr
    assert b"Traceback" not in finished.stderr


def test_a_reader_that_goes_away_causes_no_complaint(numbers):
    shell = subprocess.Popen(
        [sys.executable, "-m", "gpudb", "-csv", "-c", f"SELECT * FROM {numbers(2_000_000)}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert shell.stdout.readline() == b"n\n"
    shell.stdout.close()
    assert shell.stderr.read() == b""
    shell.stderr.close()
    assert shell.wait(60) == 141


def test_ctrl_c_ends_a_script_with_exit_code_130(numbers):
    shell = subprocess.Popen(
        [sys.executable, "-m", "gpudb", "-csv", "-c", f"SELECT n FROM {numbers(5_000_000)}", "-c", "SELECT 'never'"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert shell.stdout.readline() == b"n\n"
    shell.send_signal(signal.SIGINT)
    out, err = shell.communicate(timeout=60)
    assert (shell.returncode, err) == (130, b"")
    assert b"never" not in out
    assert b"4999999" not in out


def test_a_time_out_is_an_error_and_the_script_goes_on(shell, monkeypatch):
    execute = Session.execute

    def execute_with_time_out(session, sql, parameters=None):
        if "slow" in sql:
            raise QueryCancelled("the statement ran out of time")
        return execute(session, sql, parameters)

    monkeypatch.setattr(Session, "execute", execute_with_time_out)
    finished = shell("-csv", stdin="SELECT 1 AS slow;\nSELECT 1 AS a;")
    assert (finished.code, finished.out) == (1, "a\n1\n")
    assert finished.err == "QueryCancelled: the statement ran out of time\n"


def test_dash_c_loads_nothing_that_only_a_prompt_needs():
    program = (
        "import sys; from gpudb.__main__ import main; sys.argv[1:] = ['-no-init', '-csv', '-c', 'SELECT 1.5']; main();"
        "print(' '.join(sorted(name.partition('.')[0] for name, module in sys.modules.items() if module)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert not loaded & {"prompt_toolkit", "pygments", "rich", "pandas", "polars", "duckdb", "cupy", "numba", "asyncio"}


def test_a_transaction_that_is_open_at_the_end_is_rolled_back_and_the_shell_says_so(shell, tmp_path):
    path = tmp_path / "database"
    assert shell(path, "-c", "CREATE TABLE t AS SELECT 42 AS a").code == 0
    finished = shell(
        path, "-csv", "-c", "BEGIN; DELETE FROM t; CREATE TABLE u (a INTEGER)", "-c", "SELECT count(*) AS n FROM t"
    )
    assert (finished.code, finished.out, finished.err) == (0, "n\n0\n", "the open transaction was rolled back\n")
    assert shell(path, "-csv", "-c", "SELECT a FROM t; SHOW TABLES").out == "a\n42\nname\nt\n"
    finished = shell(path, "-c", "BEGIN; DELETE FROM t; COMMIT")
    assert (finished.code, finished.err) == (0, "")
    assert shell(path, "-csv", "-c", "SELECT count(*) AS n FROM t").out == "n\n0\n"
    finished = shell(path, "-c", "BEGIN", "-c", ".open :memory:", "-c", "COMMIT")
    assert finished.err.startswith("the open transaction was rolled back\nTransactionError: cannot commit")
