"""Statements that run, wait or send rows: how many may at a time, how long each, and how one is stopped.

A statement waits for one of a few places, in the order of arrival, and gives it back when its rows are computed, or the first
of many: then it waits for its turn again before the next are.  A client who reads slowly keeps nobody waiting.  A thread looks
after what runs: it stops statements whose client has gone, whose time is over, or that were killed.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any, TypeVar

from gpudb.errors import InterfaceError, QueryCancelled, UnavailableError
from gpudb.record import record
from gpudb.server.authentication import Caller
from gpudb.session import Session

Value = TypeVar("Value")
LOOK_SECONDS = 0.05
IDLE_LOOKS = 20  # in vain, before the thread sleeps until it is woken
SENDING_AT_MOST = 1024


@record(frozen=False, eq=False)
class Statement:
    """One statement of one client, from its arrival until its last row is sent.

    state    waiting, running, sending, or receiving the rows of an ingest
    stopped  why it has to end, or None
    ticket   the handle that its rows were asked for by
    placed   it has its place; `turn` is set then, or when it has to end
    seconds  it ran
    """

    number: int
    user: str
    sql: str
    session: Session
    began: float
    context: Any = None
    state: str = "waiting"
    stopped: str | None = None
    ticket: bytes = b""
    deadline: float | None = None
    turn: threading.Event = field(default_factory=threading.Event)
    placed: bool = False
    looked: float = 0.0
    seconds: float = 0.0

    def check(self) -> None:
        """QueryCancelled where it has to end; for the thread of its call."""
        if self.stopped is not None:
            raise QueryCancelled(self.stopped)
        now = time.monotonic()
        if self.context is not None and now - self.looked > LOOK_SECONDS:  # asking takes gRPC 0.1 ms
            self.looked = now
            if self.context.is_cancelled():
                raise QueryCancelled("statement cancelled: its client has gone")


class Statements:
    """All statements of a server.

    places   that run at a time
    waiting  that may wait for a place, each for `seconds` at most
    """

    def __init__(self, places: int, waiting: int, seconds: float) -> None:
        self._free = places
        self._most_waiting = waiting
        self._seconds = seconds
        self._queue: deque[Statement] = deque()
        self._all: dict[int, Statement] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._work = threading.Event()
        self._ended = False
        self.draining = False
        self._watcher = threading.Thread(target=self._watch, name="gpudb-watch", daemon=True)
        self._watcher.start()

    # ----------------------------------------------------------------------------- one statement

    def arrive(
        self, caller: Caller, sql: str, session: Session, context: Any, ticket: bytes = b"", state: str = "waiting"
    ) -> Statement:
        """A statement that is going to run; `leave` must follow.  UnavailableError where there are too many."""
        with self._lock:
            if self.draining:
                raise UnavailableError("the server is about to stop", hint="connect again in a moment")
            if len(self._all) >= self._most_waiting + SENDING_AT_MOST:
                raise UnavailableError("too many statements are waiting or being read", hint="try again later")
            number, now = next(self._numbers), time.monotonic()
            found = Statement(number, caller.user, sql, session, now, context, state, ticket=ticket)
            found.looked = found.began
            self._all[found.number] = found
            return found

    def run(self, statement: Statement, work: Callable[[], Value]) -> Value:
        """Wait for a place, run `work` in it, and give it back; the statement goes on to send its rows."""
        self._take_place(statement, self._seconds)
        with self._running(statement):
            return work()

    @contextlib.contextmanager
    def going_on(self, statement: Statement) -> Iterator[None]:
        """As run(), for the next rows of a statement that has sent some: it waits for its turn as long as that takes."""
        self._take_place(statement, None)
        with self._running(statement):
            yield

    @contextlib.contextmanager
    def _running(self, statement: Statement) -> Iterator[None]:
        """In its place."""
        began = time.monotonic()
        try:
            timeout = statement.session.settings["statement_timeout"]
            with self._lock:
                statement.state = "running"
                statement.deadline = began + timeout - statement.seconds if timeout else None
            self._wake()
            statement.check()
            yield
        except QueryCancelled:
            if statement.stopped is not None:
                raise QueryCancelled(statement.stopped) from None
            raise
        finally:
            with self._lock:
                statement.state = "sending"
                statement.seconds += time.monotonic() - began
            self._give_place()

    def leave(self, statement: Statement) -> None:
        """It is over; leaving twice is fine."""
        with self._lock:
            statement.context = None  # its memory is the call's, which ends now
            self._all.pop(statement.number, None)

    def _take_place(self, statement: Statement, seconds: float | None) -> None:
        """Wait until it is the statement's turn; who waits does nothing until then, or there would be no time for others.

        seconds  that it waits at most, if there is room where it can wait; None: however long
        """
        with self._lock:
            statement.state, statement.placed = "waiting", False
            statement.turn.clear()
            if self._free > 0 and not self._queue:
                self._free -= 1
                statement.placed = True
                return
            if self._ended:
                raise UnavailableError("the server stops", hint="connect again in a moment")
            if seconds is not None and len(self._queue) >= self._most_waiting:
                raise UnavailableError("too many statements are waiting", hint="try again in a few seconds")
            self._queue.append(statement)
        self._wake()
        statement.turn.wait(seconds)
        with self._lock:
            if statement.placed:
                return
            self._queue.remove(statement)
        statement.check()
        if self._ended:
            raise UnavailableError("the server stops", hint="connect again in a moment")
        raise UnavailableError(
            f"the statement waited {self._seconds:g} s for its turn", hint="try again in a few seconds"
        )

    def _give_place(self) -> None:
        with self._lock:
            if self._queue:
                following = self._queue.popleft()
                following.placed = True
                following.turn.set()
            else:
                self._free += 1

    # ----------------------------------------------------------------------------- all of them

    def shown(self, caller: Caller) -> list[Statement]:
        """The statements that a caller may see: its own, or all for an administrator."""
        with self._lock:
            return [one for one in self._all.values() if caller.role == "admin" or one.user == caller.user]

    def kill(self, caller: Caller, number: int) -> None:
        """Stop a statement that the caller may see; InterfaceError where there is none of this number."""
        for one in self.shown(caller):
            if one.number == number:
                self._stop(one, "statement cancelled by KILL")
                return
        raise InterfaceError(f"there is no such statement: {number}", hint="SHOW QUERIES has their numbers")

    def cancel(self, caller: Caller, ticket: bytes) -> bool:
        """Stop what a ticket started; False where nothing of it runs."""
        found = [one for one in self.shown(caller) if one.ticket == ticket and one.user == caller.user]
        for one in found:
            self._stop(one, "statement cancelled")
        return bool(found)

    def drain(self, seconds: float) -> bool:
        """Take no new statements, and wait for those that are there; stop what is left.  Whether all ended by themselves."""
        with self._lock:
            self.draining = True
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            with self._lock:
                if not self._all:
                    return True
            time.sleep(0.02)
        with self._lock:
            left = list(self._all.values())
        for one in left:
            self._stop(one, "statement cancelled: the server stops")
        return not left

    def close(self) -> None:
        """End the thread; nobody waits for a place any more."""
        with self._lock:
            self._ended = True
            for one in self._queue:
                one.turn.set()
        self._work.set()
        self._watcher.join(5.0)

    def _stop(self, statement: Statement, reason: str) -> None:
        with self._lock:
            statement.stopped = statement.stopped or reason
        self._wake()

    def _watch(self) -> None:
        idle = 0
        while not self._ended:
            with self._lock:
                running = [one for one in self._all.values() if one.state in ("waiting", "running")]
                for one in running:
                    self._look_at(one)
                idle = 0 if running else idle + 1
                if idle > IDLE_LOOKS:
                    self._work.clear()
            if idle > IDLE_LOOKS:
                self._work.wait()
                idle = 0
            else:
                time.sleep(LOOK_SECONDS)

    def _wake(self) -> None:
        """See to it that the thread looks; while statements come it does so anyway, as waking it takes time from them."""
        if not self._work.is_set():  # as it is while the thread looks, which then sees what has come
            self._work.set()

    @staticmethod
    def _look_at(statement: Statement) -> None:
        """Under the lock: a call's context lives as long as the statement has it."""
        if statement.stopped is None:
            if statement.context is not None and statement.context.is_cancelled():
                statement.stopped = "statement cancelled: its client has gone"
            elif (
                statement.state == "running"
                and statement.deadline is not None
                and time.monotonic() > statement.deadline
            ):
                statement.stopped = "statement timed out"
        if statement.stopped is not None:
            if statement.state == "running":
                statement.session.cancel_running()
            else:
                statement.turn.set()
