"""Dot commands, and psql's and heavysql's backslash commands as a table of aliases onto them.

A command is a function of the shell and its arguments; its decorator gives the name, the usage and the help.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path

from gpudb.record import record
from gpudb.shell.output import MODES
from gpudb.shell.shell import CommandError, Quit, Shell
from gpudb.version import __version__

Action = Callable[[Shell, list[str]], object]


@record
class Command:
    """A dot command.

    usage     its arguments, as .help shows them: [optional] and CAPITALS
    raw       True: the one argument is the rest of the line as it is
    action    returns False when it ran statements and one of them failed
    """

    name: str
    usage: str
    summary: str
    raw: bool
    action: Action


COMMANDS: dict[str, Command] = {}

ALIASES = {
    "\\?": ".help",
    "\\c": ".open",
    "\\copy": ".copy",
    "\\cpu": ".device cpu",
    "\\d": ".describe",
    "\\dt": ".tables",
    "\\e": ".edit",
    "\\echo": ".print",
    "\\gpu": ".device gpu",
    "\\i": ".read",
    "\\l": ".databases",
    "\\memory_summary": ".status",
    "\\o": ".output",
    "\\q": ".quit",
    "\\status": ".status",
    "\\t": ".tables",
    "\\timing": ".timer",
    "\\x": ".expanded",
    ".exit": ".quit",
    ".header": ".headers",
}


def command(name: str, usage: str = "", raw: bool = False) -> Callable[[Action], Action]:
    """Enter a function in COMMANDS; its docstring is the help."""

    def enter(action: Action) -> Action:
        COMMANDS[name] = Command(name, usage, (action.__doc__ or "").strip(), raw, action)
        return action

    return enter


def run_command(shell: Shell, line: str) -> bool:
    """Run a dot or backslash command.  False when it ran statements and one of them failed."""
    word, _, rest = line.partition(" ")
    if word in ALIASES:
        word, _, alias_arguments = ALIASES[word].partition(" ")
        rest = f"{alias_arguments} {rest}"
    rest = rest.strip().removesuffix(";").rstrip()
    found = find_command(word)
    if found.raw:
        arguments = [rest] if rest else []
    else:
        try:
            arguments = shlex.split(rest)
        except ValueError as error:
            raise CommandError(f"{line}: {error}") from None
    required = [word for word in found.usage.split() if not word.startswith("[")]
    if len(arguments) < len(required) or (not found.raw and len(arguments) > len(found.usage.split())):
        raise CommandError(f"usage: {found.name} {found.usage}".rstrip())
    return found.action(shell, arguments) is not False


def find_command(word: str) -> Command:
    """The command with this name, or the only one that begins with it."""
    if word in COMMANDS:
        return COMMANDS[word]
    if word.startswith("."):
        matches = sorted(name for name in COMMANDS if name.startswith(word))
        if len(matches) == 1 and len(word) > 1:
            return COMMANDS[matches[0]]
        if len(matches) > 1 and len(word) > 1:
            raise CommandError(f"ambiguous command: {word}\nhint: one of {' '.join(matches)}")
    import difflib

    close = difflib.get_close_matches(word, [*COMMANDS, *ALIASES], 1)
    raise CommandError(f"unknown command: {word}\nhint: " + (f"did you mean {close[0]}?" if close else "see .help"))


# --- Help and leaving -------------------------------------------------------------------------------------------------


@command(".help", "[COMMAND]")
def help_(shell: Shell, arguments: list[str]) -> None:
    """list the commands, or those that begin with COMMAND"""
    prefix = arguments[0] if arguments else "."
    if prefix.startswith("\\"):
        prefix = ALIASES.get(prefix, prefix).split(" ")[0]
    prefix = prefix if prefix.startswith(".") else f".{prefix}"
    shown = [COMMANDS[name] for name in sorted(COMMANDS) if name.startswith(prefix)]
    if not shown:
        find_command(prefix)  # raises, with a suggestion
    for entry in shown:
        names = [alias for alias, meaning in ALIASES.items() if meaning.split(" ")[0] == entry.name]
        also = f" (also {' '.join(names)})" if names else ""
        shell.print(f"{f'{entry.name} {entry.usage}':<28} {entry.summary}{also}")


@command(".quit", "[CODE]")
def quit_(shell: Shell, arguments: list[str]) -> None:
    """leave, with an exit code"""
    code = arguments[0] if arguments else "0"
    if not code.isdigit():
        raise CommandError(f"the exit code must be a number, not {code}")
    raise Quit(int(code))


# --- The database -----------------------------------------------------------------------------------------------------


@command(".open", "PATH")
def open_(shell: Shell, arguments: list[str]) -> None:
    """leave this database and open another"""
    shell.open(arguments[0])


@command(".databases")
def databases(shell: Shell, arguments: list[str]) -> None:
    """show which database is open"""
    shell.print(f"{shell.path}{' (read-only)' if shell.read_only else ''}")


@command(".tables", "[PATTERN]")
def tables(shell: Shell, arguments: list[str]) -> None:
    """list the tables, or those whose name is LIKE PATTERN"""
    for name in matching_tables(shell, arguments[0] if arguments else "%"):
        shell.print(name)


@command(".describe", "[TABLE]")
def describe(shell: Shell, arguments: list[str]) -> None:
    """show the columns of TABLE; without it, list the tables"""
    if arguments:
        shell.run_statement(f"DESCRIBE {quote_name(known_table(shell, arguments[0]))}")
    else:
        tables(shell, [])


@command(".schema", "[PATTERN]")
def schema(shell: Shell, arguments: list[str]) -> None:
    """print CREATE TABLE or CREATE VIEW for all tables, or those whose name is LIKE PATTERN"""
    for name in matching_tables(shell, arguments[0] if arguments else "%"):
        view = shell.session.view(name)
        if view is not None:
            columns = ", ".join(map(quote_name, view.columns))
            shell.print(f"CREATE VIEW {quote_name(name)}{f' ({columns})' if columns else ''} AS {view.sql};")
            continue
        defaults = shell.session.defaults(name)
        columns = ", ".join(
            f"{quote_name(column)} {kind}"
            + (f" DEFAULT {defaults[column.lower()]}" if column.lower() in defaults else "")
            for column, kind in shell.session.columns(name)
        )
        shell.print(f"CREATE TABLE {quote_name(name)} ({columns});")


@command(".import", "FILE TABLE")
def import_(shell: Shell, arguments: list[str]) -> None:
    """load a CSV, Parquet or Arrow file into TABLE, made if it is not there"""
    path, table = arguments
    if shell.is_remote:  # the server cannot read files of this machine
        shell.send_file(path, table)
        return
    source = "'{}'".format(path.replace("'", "''"))
    if any(name.lower() == table.lower() for name in shell.session.tables()):
        shell.run_statement(f"COPY {quote_name(table)} FROM {source}")
    else:
        shell.run_statement(f"CREATE TABLE {quote_name(table)} AS SELECT * FROM {source}")


@command(".copy", "ARGUMENTS", raw=True)
def copy(shell: Shell, arguments: list[str]) -> None:
    """run COPY ARGUMENTS: .copy flights FROM 'flights.csv', .copy (SELECT 1) TO 'one.parquet'"""
    shell.run_statement(f"COPY {arguments[0]}")


@command(".device", "[DEVICE]")
def device(shell: Shell, arguments: list[str]) -> None:
    """show or set where queries run: auto, cpu, gpu, gpu! (never elsewhere) or reference"""
    if arguments:
        shell.run_statement("SET device = '{}'".format(arguments[0].replace("'", "''")))
    else:
        shell.print(str(shell.session.settings["device"]))


@command(".status")
def status(shell: Shell, arguments: list[str]) -> None:
    """show the version, the database, its settings and the memory of this process"""
    shell.print(f"gpudb {__version__}")
    databases(shell, [])
    for name, value in shell.session.settings.items():
        shell.print(f"{name} = {value}")
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(("VmRSS", "VmHWM")):  # resident now, and at most so far
            shell.print(" ".join(line.split()))


@command(".receipt")
def receipt(shell: Shell, arguments: list[str]) -> None:
    """show what the last statement did: device, tiles, bytes read, time of each stage"""
    import json

    shell.print(json.dumps(shell.last_receipt, indent=2, default=str))


# --- Running ----------------------------------------------------------------------------------------------------------


@command(".read", "FILE")
def read(shell: Shell, arguments: list[str]) -> bool:
    """run the statements and commands of FILE"""
    return shell.run_file(arguments[0])


@command(".edit")
def edit(shell: Shell, arguments: list[str]) -> bool:
    """edit the last statement in $VISUAL or $EDITOR, then run it"""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="gpudb-") as folder:
        file = Path(folder) / "statement.sql"
        file.write_text(shell.last_sql, encoding="utf-8")
        try:
            subprocess.run([*shlex.split(editor), str(file)], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise CommandError(f"the editor failed: {error}") from None
        text = file.read_text(encoding="utf-8")
    return shell.run_lines([text], stop_at_error=True)


@command(".print", "[TEXT]", raw=True)
def print_(shell: Shell, arguments: list[str]) -> None:
    """print TEXT"""
    shell.print(arguments[0] if arguments else "")


# --- Output -----------------------------------------------------------------------------------------------------------


@command(".mode", "[MODE]")
def mode(shell: Shell, arguments: list[str]) -> None:
    """show or set how results are written: box, csv, json, jsonlines, markdown, line, parquet, arrow"""
    if not arguments:
        shell.print(shell.settings.mode)
    elif arguments[0] in MODES:
        shell.settings.mode = arguments[0]
    else:
        raise CommandError(f"unknown mode: {arguments[0]}\nhint: one of {' '.join(MODES)}")


@command(".expanded", "[ON|OFF]")
def expanded(shell: Shell, arguments: list[str]) -> None:
    """mode line on or off; without an argument, the other of the two"""
    on = switch(arguments, shell.settings.mode == "line")
    shell.settings.mode = "line" if on else "box"


@command(".headers", "[ON|OFF]")
def headers(shell: Shell, arguments: list[str]) -> None:
    """column names in results on or off"""
    shell.settings.headers = switch(arguments, shell.settings.headers)


@command(".nullvalue", "TEXT")
def nullvalue(shell: Shell, arguments: list[str]) -> None:
    """the text of NULL in box, csv, markdown and line"""
    shell.settings.null_value = arguments[0]


@command(".output", "[FILE]")
def output(shell: Shell, arguments: list[str]) -> None:
    """write results to FILE from now on, or to the screen again"""
    shell.direct_output(arguments[0] if arguments else None)


@command(".once", "FILE")
def once(shell: Shell, arguments: list[str]) -> None:
    """write the next result to FILE"""
    shell.direct_output(arguments[0], one_result=True)


@command(".maxrows", "[ROWS]")
def maxrows(shell: Shell, arguments: list[str]) -> None:
    """show or set the rows a box shows on a terminal; 0 for all"""
    if arguments:
        shell.settings.max_rows = whole_number(arguments[0])
    else:
        shell.print(str(shell.settings.max_rows))


@command(".maxwidth", "[CHARACTERS]")
def maxwidth(shell: Shell, arguments: list[str]) -> None:
    """show or set how wide a box may be; 0 for the terminal's width"""
    if arguments:
        shell.settings.max_width = whole_number(arguments[0])
    else:
        shell.print(str(shell.settings.max_width))


@command(".timer", "[ON|OFF]")
def timer(shell: Shell, arguments: list[str]) -> None:
    """rows, milliseconds and device after each statement on or off"""
    shell.settings.timer = switch(arguments, shell.settings.timer)


@command(".echo", "[ON|OFF]")
def echo(shell: Shell, arguments: list[str]) -> None:
    """each statement before it runs on or off"""
    shell.settings.echo = switch(arguments, shell.settings.echo)


@command(".bail", "[ON|OFF]")
def bail(shell: Shell, arguments: list[str]) -> None:
    """stop at the first error of a file or a pipe on or off"""
    shell.settings.bail = switch(arguments, shell.settings.bail)


@command(".prompt", "MAIN [CONTINUATION]")
def prompt(shell: Shell, arguments: list[str]) -> None:
    """set the prompt, and that of a statement's further lines; before > comes * in a transaction, ! in an aborted one"""
    shell.settings.prompt = arguments[0]
    if len(arguments) > 1:
        shell.settings.continuation_prompt = arguments[1]


@command(".show")
def show(shell: Shell, arguments: list[str]) -> None:
    """show what the commands above have set"""
    for entry in fields(shell.settings):
        shell.print(f"{entry.name:>19}: {getattr(shell.settings, entry.name)!r}")


# --- Arguments --------------------------------------------------------------------------------------------------------


def switch(arguments: Sequence[str], now: bool) -> bool:
    """on or off from an argument; without one, the opposite of `now`."""
    if not arguments:
        return not now
    word = arguments[0].lower()
    if word not in ("on", "off", "1", "0", "true", "false", "yes", "no"):
        raise CommandError(f"say on or off, not {arguments[0]}")
    return word in ("on", "1", "true", "yes")


def whole_number(text: str) -> int:
    if not text.isdigit():
        raise CommandError(f"must be a whole number, not {text}")
    return int(text)


def quote_name(name: str) -> str:
    """A name as SQL needs it: in double quotes where it is not a plain word."""
    return name if name.isidentifier() and name.isascii() else '"{}"'.format(name.replace('"', '""'))


def known_table(shell: Shell, name: str) -> str:
    """The table as it is spelled in the catalog, quotes and case aside; the name itself when there is none."""
    plain = name.strip('"').lower()
    return next((table for table in shell.session.tables() if table.lower() == plain), name)


def matching_tables(shell: Shell, pattern: str) -> list[str]:
    """Tables whose name is LIKE the pattern, in any case; without % and _ it must occur in the name."""
    import re

    if not set(pattern) & set("%_*?"):
        pattern = f"%{pattern}%"
    expression = "".join({"%": ".*", "*": ".*", "_": ".", "?": "."}.get(c, re.escape(c)) for c in pattern)
    return [name for name in sorted(shell.session.tables()) if re.fullmatch(expression, name, re.IGNORECASE)]
