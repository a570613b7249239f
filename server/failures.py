"""Every error as one that a client may see: a class of Flight errors, one clean text, never a traceback or a path of ours.

pyarrow sends the traceback of any exception that is not a Flight error, so every call goes through `Failures.answering`.  The
text begins with the class of gpudb's error, and `extra_info` has it for programs: {"class", "message", "span", "hint"}.
"""

from __future__ import annotations

import contextlib
import json
import logging
import secrets
from collections.abc import Iterator, Mapping

import pyarrow.flight as fl

from gpudb import errors
from gpudb.flight_sql import MalformedMessage

logger = logging.getLogger("gpudb.server")

FLIGHT_ERRORS: tuple[tuple[type[errors.Error], type[fl.FlightError]], ...] = (
    (errors.AuthenticationError, fl.FlightUnauthenticatedError),
    (errors.AccessError, fl.FlightUnauthorizedError),
    (errors.UnavailableError, fl.FlightUnavailableError),
    (errors.InternalError, fl.FlightInternalError),
)


class Failures:
    """Turns what calls raise into Flight errors.

    hidden  paths of this machine, and what stands in their place in texts that leave it
    """

    def __init__(self, hidden: Mapping[str, str]) -> None:
        self._hidden = sorted(hidden.items(), key=lambda item: -len(item[0]))

    def flight_error(self, error: BaseException) -> fl.FlightError:
        """The Flight error of an exception; one that is not gpudb's is logged, and told by a number only."""
        if isinstance(error, fl.FlightError):
            return error
        if isinstance(error, MalformedMessage):
            error = errors.InterfaceError(f"malformed request: {error}")
        if not isinstance(error, errors.Error):
            number = secrets.token_hex(4)
            logger.error("error %s", number, exc_info=error)
            error = errors.InternalError(f"internal error; the server's log has it under {number}")
        kind: type[fl.FlightError] = fl.FlightServerError
        for ours, theirs in FLIGHT_ERRORS:
            if isinstance(error, ours):
                kind = theirs
                break
        if isinstance(error, errors.QueryCancelled):
            kind = fl.FlightTimedOutError if "timed out" in error.message else fl.FlightCancelledError
        details = {
            "class": type(error).__name__,
            "message": self._clean(error.message),
            "span": error.span,
            "sql": error.sql,
            "hint": None if error.hint is None else self._clean(error.hint),
        }
        return kind(f"{type(error).__name__}: {self._clean(str(error))}", json.dumps(details).encode())

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        """Around the whole of a call: what is raised inside leaves as a Flight error without the exceptions behind it."""
        try:
            yield
        except (StopIteration, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - nothing may reach pyarrow, which would send its traceback
            raise self.flight_error(error) from None

    def _clean(self, text: str) -> str:
        for path, shown in self._hidden:
            text = text.replace(path, shown)
        return text
