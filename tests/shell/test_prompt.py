"""The interactive prompt, typed at through a pseudo-terminal."""

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

import pytest

pytest.importorskip("prompt_toolkit")

TIME_OUT = 60  # seconds; a busy machine is slow, a right answer comes long before
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]")
BRACKETED_PASTE_ON = "\x1b[?2004h"  # prompt_toolkit writes it when it begins to read keys
READY = "<ready>"


class Terminal:
    """A `gpudb` at a pseudo-terminal of 100 columns."""

    def __init__(self, *arguments: str) -> None:
        self.seen = ""
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        self.process, self.descriptor = pty.fork()
        if self.process == 0:
            os.environ["TERM"] = "xterm"
            os.execv(sys.executable, [sys.executable, "-m", "gpudb", *arguments])
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))

    def type(self, text: str) -> None:
        os.write(self.descriptor, text.encode())

    def wait_for(self, text: str) -> str:
        """Everything shown since the last wait, up to `text`, without escapes."""
        deadline = time.monotonic() + TIME_OUT
        while text not in self.seen:
            assert time.monotonic() < deadline, f"never shown: {text!r}; shown: {self.seen!r}"
            if not select.select([self.descriptor], [], [], 0.2)[0]:
                continue
            try:
                data = os.read(self.descriptor, 65536)
            except OSError:  # the shell has gone
                raise AssertionError(f"never shown: {text!r}; shown: {self.seen!r}") from None
            if b"\x1b[6n" in data:  # the prompt asks where the cursor is
                os.write(self.descriptor, b"\x1b[1;1R")
            self.seen += ESCAPES.sub("", self.decoder.decode(data).replace(BRACKETED_PASTE_ON, READY))
        shown, _, self.seen = self.seen.partition(text)
        return shown + text

    def leave(self) -> int:
        """Ctrl-D; the exit code."""
        self.type("\x04")
        deadline = time.monotonic() + TIME_OUT
        while time.monotonic() < deadline:
            if select.select([self.descriptor], [], [], 0.1)[0]:
                try:
                    os.read(self.descriptor, 65536)
                except OSError:
                    break
        else:
            os.kill(self.process, signal.SIGKILL)
        _, status = os.waitpid(self.process, 0)
        os.close(self.descriptor)
        return os.waitstatus_to_exitcode(status)


def test_a_session_at_the_prompt(home):
    terminal = Terminal()
    terminal.wait_for("Help: .help")
    terminal.wait_for(READY)
    terminal.type("CREATE TABLE flights AS SELECT 'UA' AS carrier,\r")
    terminal.wait_for("...>")
    terminal.type("42 AS delay;\r")
    terminal.wait_for(READY)
    terminal.type("SELECT carr\t")
    terminal.wait_for("ier")  # only what is new is drawn
    terminal.type(" FROM fli\t")
    terminal.wait_for("ghts")
    terminal.type(";\r")
    shown = terminal.wait_for("└─────────┘")
    assert "│ varchar │" in shown
    assert "│ UA      │" in shown
    terminal.wait_for(READY)
    terminal.type("SELECT dela FROM flights;\r")
    assert "^^^^" in terminal.wait_for("did you mean")
    terminal.wait_for(READY)
    terminal.type("SELECT * FROM\x03")
    terminal.wait_for(READY)
    terminal.type(".mode csv\r")
    terminal.wait_for(READY)
    terminal.type("SELECT delay + 1 AS next FROM flights;\r")
    terminal.wait_for("next\r\n43")
    terminal.wait_for(READY)
    assert terminal.leave() == 0
    history = home / ".local" / "state" / "gpudb" / "history"
    assert "+SELECT carrier FROM flights;" in history.read_text()
    assert history.stat().st_mode & 0o077 == 0


def test_ctrl_c_cancels_the_query_and_the_prompt_comes_back(numbers, tmp_path):
    file = numbers(10_000_000)
    terminal = Terminal()
    for line in (".mode csv", f".output {tmp_path / 'out'}"):
        terminal.wait_for(READY)
        terminal.type(f"{line}\r")
    terminal.wait_for(READY)
    terminal.type(f"SELECT n, n + 1, n + 2 FROM {file};\r")
    time.sleep(0.7)
    terminal.type("\x03")
    terminal.wait_for("cancelled")
    terminal.wait_for(READY)
    terminal.type(".output\r")
    terminal.wait_for(READY)
    terminal.type("SELECT 41 + 1 AS answer;\r")
    terminal.wait_for("answer\r\n42")
    terminal.wait_for(READY)
    assert terminal.leave() == 0
    assert b"9999999" not in (tmp_path / "out").read_bytes()


def test_the_prompt_shows_an_open_and_an_aborted_transaction():
    terminal = Terminal()
    terminal.wait_for(READY)
    for typed, prompt in (
        ("BEGIN;", "gpudb*>"),
        ("SELECT nothing;", "gpudb!>"),
        ("ROLLBACK;", "gpudb>"),
        (".prompt 'sql> '", "sql>"),
        ("START TRANSACTION;", "sql*>"),
        ("COMMIT;", "sql>"),
    ):
        terminal.type(f"{typed}\r")
        terminal.wait_for(READY)  # the next prompt
        terminal.wait_for(prompt)
    assert terminal.leave() == 0


def test_without_prompt_toolkit_the_prompt_still_works(home, tmp_path, monkeypatch):
    (tmp_path / "prompt_toolkit.py").write_text("raise ImportError('hidden')\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    terminal = Terminal()
    terminal.wait_for("gpudb> ")
    terminal.type("SELECT 41\r")
    terminal.wait_for("...> ")
    terminal.type("+ 1 AS answer;\r")
    assert "answer" in terminal.wait_for("│      42 │")
    terminal.wait_for("gpudb> ")
    assert terminal.leave() == 0
