"""Runs a job so that Ctrl-C can cancel it, and shows its progress on a terminal."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TextIO, TypeVar

from gpudb.errors import QueryCancelled

if TYPE_CHECKING:
    from gpudb.client import RemoteSession
    from gpudb.session import Session

Answer = TypeVar("Answer")

PROGRESS_AFTER = 2.0  # seconds
PROGRESS_EVERY = 0.1  # seconds
BAR_WIDTH = 30  # characters


def run_cancellable(
    session: Session | RemoteSession, job: Callable[[threading.Event], Answer], progress_to: TextIO | None
) -> Answer:
    """What `job` returns or raises; Ctrl-C cancels the session's running statement, then raises KeyboardInterrupt.

    The job runs in a thread of its own: Python delivers Ctrl-C to the main thread only, between two of its steps, so
    that thread must be free.  Its argument is set by Ctrl-C, for what it does when no statement runs.  After 2 seconds
    a line on `progress_to` (None: nowhere) shows how far the statement is.
    """
    worker = Worker(job)
    started, shown = time.monotonic(), False
    worker.start()
    while not worker.finished.is_set():
        try:
            worker.finished.wait(PROGRESS_EVERY)  # join() would take Ctrl-C for the thread's end
            if worker.stop.is_set():
                session.cancel()  # again: the statement may not have begun to run when Ctrl-C came
            elapsed = time.monotonic() - started
            if progress_to is not None and elapsed > PROGRESS_AFTER and not worker.finished.is_set():
                progress = session.progress()
                if progress is not None:
                    progress_to.write(f"\r{progress_line(progress, elapsed)}\x1b[K")
                elif shown:  # rows are being written now
                    progress_to.write("\r\x1b[K")
                shown = progress is not None
                progress_to.flush()
        except KeyboardInterrupt:
            worker.stop.set()
            session.cancel()
    if shown and progress_to is not None:
        progress_to.write("\r\x1b[K")
        progress_to.flush()
    if not worker.stop.is_set():
        return worker.answer()
    with suppress(QueryCancelled):
        worker.answer()
    raise KeyboardInterrupt  # even if it came too late to cancel: whoever pressed Ctrl-C wants no further statement


def progress_line(progress: float, elapsed: float) -> str:
    """' 42% ████████████▌                   3.1 s'"""
    filled = max(0.0, min(1.0, progress)) * BAR_WIDTH
    eighths = " ▏▎▍▌▋▊▉"[int(filled % 1 * 8)]
    bar = ("█" * int(filled) + eighths.strip()).ljust(BAR_WIDTH)
    return f"{progress:4.0%} {bar} {elapsed:.1f} s"


class Worker(threading.Thread, Generic[Answer]):
    """A thread that keeps what its job returned or raised.

    stop      asks the job to raise QueryCancelled soon
    finished  the job has returned or raised
    """

    def __init__(self, job: Callable[[threading.Event], Answer]) -> None:
        super().__init__(name="gpudb-statement", daemon=True)
        self.finished = threading.Event()
        self.stop = threading.Event()
        self._job = job
        self._answers: list[Answer] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._answers.append(self._job(self.stop))
        except BaseException as error:  # handed to the thread that waits
            self._error = error
        finally:
            self.finished.set()

    def answer(self) -> Answer:
        if self._error is not None:
            raise self._error
        return self._answers[0]
