"""Running a job that Ctrl-C can cancel, with a progress line."""

import io
import signal
import threading
import time

import pytest

from gpudb.errors import QueryCancelled
from gpudb.shell import runner
from gpudb.shell.runner import progress_line, run_cancellable


class RunningSession:
    """A session whose statement runs until it is cancelled."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()

    def cancel(self) -> None:
        self.cancelled.set()

    def progress(self) -> float:
        return 0.25

    def statement(self, stop: threading.Event) -> str:
        if self.cancelled.wait(20):
            raise QueryCancelled("cancelled")
        return "ran to its end"


def test_the_answer_and_the_error_of_the_job_come_back():
    assert run_cancellable(RunningSession(), lambda stop: 42, None) == 42
    with pytest.raises(ZeroDivisionError):
        run_cancellable(RunningSession(), lambda stop: 1 // 0, None)


def test_ctrl_c_cancels_the_statement():
    session = RunningSession()
    threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_cancellable(session, session.statement, None)
    assert session.cancelled.is_set()
    assert time.monotonic() - started < 10


def test_ctrl_c_reaches_a_job_between_statements():
    session = RunningSession()
    threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        run_cancellable(session, lambda stop: stop.wait(20) or pytest.fail("never told to stop"), None)


def test_a_time_out_is_an_error_like_any_other():
    session = RunningSession()
    session.cancel()
    with pytest.raises(QueryCancelled):
        run_cancellable(session, session.statement, None)


def test_ctrl_c_that_comes_too_late_to_cancel_still_stops_what_would_follow():
    def job(stop: threading.Event) -> str:
        time.sleep(0.5)
        return "done"

    threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        run_cancellable(RunningSession(), job, None)


def test_a_slow_job_shows_its_progress_and_wipes_it(monkeypatch):
    monkeypatch.setattr(runner, "PROGRESS_AFTER", 0.1)
    stream = io.StringIO()
    run_cancellable(RunningSession(), lambda stop: time.sleep(0.6), stream)
    assert " 25% ███████▌" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_a_fast_job_shows_nothing():
    stream = io.StringIO()
    run_cancellable(RunningSession(), lambda stop: None, stream)
    assert stream.getvalue() == ""


def test_the_progress_line_has_one_length():
    lines = {len(progress_line(share / 100, 3.0)) for share in range(101)}
    assert len(lines) == 1
    assert progress_line(1.0, 12.34) == "100% " + "█" * 30 + " 12.3 s"
