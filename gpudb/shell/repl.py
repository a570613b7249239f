"""The interactive loop: prompt, run, again.  Ctrl-C clears the line or cancels the query, Ctrl-D leaves.

With the extra `shell` lines are edited by prompt_toolkit (`gpudb.shell.prompt`); without it by readline.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from gpudb.shell.shell import Shell
from gpudb.shell.statements import StatementReader
from gpudb.version import __version__


def run_repl(shell: Shell) -> None:
    """Read and run until Ctrl-D or .quit."""
    ask = _asker(shell)
    if sys.stdout.isatty():
        place = "in memory, nothing is kept" if shell.path == ":memory:" else shell.path
        print(f"gpudb {__version__}, {place}, device {shell.session.settings['device']}.  End SQL with ;  Help: .help")
    while True:
        try:
            for item in ask():
                if not shell.run_item(item):
                    break  # what was typed after it on the same line was meant to follow it
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def _asker(shell: Shell) -> Callable[[], list[str]]:
    """A function that prompts until statements are complete and returns them; EOFError at the end of the input."""
    if not sys.stdout.isatty():  # results go to a file: a prompt would be in it
        return lambda: _ask_lines(shell, lambda prompt: _read_line())
    try:
        from gpudb.shell.prompt import Prompt
    except ImportError:
        with suppress(ImportError):
            import readline  # noqa: F401 - input() edits lines and keeps a history of this run once it is loaded
        return lambda: _ask_lines(shell, input)
    return Prompt(shell, history_file()).ask


def _ask_lines(shell: Shell, read: Callable[[str], str]) -> list[str]:
    """Line by line until a statement is complete."""
    reader = StatementReader()
    items = reader.feed(read(shell.prompt))
    while reader.pending:
        items += reader.feed(read(shell.settings.continuation_prompt))
    return items


def _read_line() -> str:
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line


def history_file() -> Path | None:
    """One per user: $GPUDB_HISTORY, or gpudb/history under $XDG_STATE_HOME; None when it cannot be made."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    file = Path(os.environ.get("GPUDB_HISTORY") or state / "gpudb" / "history")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)  # statements may hold secrets
    except OSError:
        return None
    return file
