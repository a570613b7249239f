"""From the command line to a running shell: what is read, in which order, and the exit code."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path

from gpudb import errors
from gpudb.shell.arguments import Options, parse_arguments
from gpudb.shell.shell import EXIT_CANNOT_OPEN, EXIT_ERROR, EXIT_OK, CommandError, Quit, Shell


def start(arguments: Sequence[str]) -> int:
    """Run the shell as the command line asks; its exit code."""
    options = parse_arguments(arguments)
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8")  # as files are, whatever the locale says
    interactive = not options.inputs and sys.stdin.isatty()
    try:
        shell = Shell(options, interactive)
    except errors.Error as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return EXIT_CANNOT_OPEN
    try:
        return EXIT_OK if _run(shell, options) else EXIT_ERROR
    except Quit as quit_:
        return quit_.code
    finally:
        shell.close()


def _run(shell: Shell, options: Options) -> bool:
    """True when no statement failed."""
    try:
        init_file = Path.home() / ".gpudbrc" if options.init_file is None else Path(options.init_file or "/dev/null")
        all_right = True
        if options.init_file or init_file.is_file():
            all_right = shell.run_file(str(init_file))
        for kind, value in options.inputs:
            if kind == "sql":
                if not shell.run_lines([value], stop_at_error=True):
                    return False
            else:
                all_right &= shell.run_file(value)
            if not all_right and shell.settings.bail:
                return False
        if options.inputs:
            return all_right
    except CommandError as error:
        shell.report(error)
        return False
    if shell.interactive:
        from gpudb.shell.repl import run_repl

        run_repl(shell)
        return True
    try:
        return shell.run_lines(sys.stdin) and all_right
    except UnicodeDecodeError as error:
        shell.report(CommandError(f"standard input is not UTF-8: {error}"))
        return False
