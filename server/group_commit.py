"""Group commit: small ingests that wait at the same time are written and made durable together, by one commit.

A commit is several writes and syncs whatever it holds, so that 64 clients with one commit each would wait for each other.  Here
the thread that commits takes all that have arrived while it was busy.
"""

from __future__ import annotations

import threading

from gpudb.errors import ConflictError, UnavailableError
from gpudb.ingest import Arrival, ingest_together
from gpudb.session import Database, Session

GROUP_AT_MOST = 1024
TRIES = 5  # of a group that a statement outside of it was faster than


class GroupCommitter:
    """Commits what clients hand over, and wakes each of them once its rows are durable."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[tuple[Arrival, threading.Event]] = []
        self._changed = threading.Condition()
        self._ended = False
        self._thread = threading.Thread(target=self._work, name="gpudb-commit", daemon=True)
        self._thread.start()

    def commit(self, arrival: Arrival) -> int:
        """The rows of an arrival, once they are durable; raises what keeps them from it."""
        done = threading.Event()
        with self._changed:
            if self._ended:
                raise UnavailableError("the server is about to stop", hint="connect again in a moment")
            self._waiting.append((arrival, done))
            self._changed.notify()
        done.wait()
        if arrival.error is not None:
            raise arrival.error
        return arrival.rows

    def close(self) -> None:
        """Commit what waits, and end the thread."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join()

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._ended:
                    self._changed.wait()
                group, self._waiting = self._waiting[:GROUP_AT_MOST], self._waiting[GROUP_AT_MOST:]
            if not group:
                return
            try:
                self._commit([arrival for arrival, _ in group])
            finally:
                for _, done in group:
                    done.set()

    def _commit(self, arrivals: list[Arrival]) -> None:
        """One commit for all; where that fails, one for each, so that only those fail that cannot be kept."""
        try:
            self._together(arrivals)
        except BaseException as error:  # noqa: BLE001 - it is raised where the rows came from
            if len(arrivals) == 1:
                arrivals[0].error = error
                return
            for arrival in arrivals:
                self._commit([arrival])

    def _together(self, arrivals: list[Arrival]) -> None:
        for attempt in range(TRIES):
            try:
                ingest_together(Session(self._database), arrivals)
                return
            except ConflictError:
                if attempt + 1 == TRIES or any(one.numbered is not None for one in arrivals) and attempt > 1:
                    raise
