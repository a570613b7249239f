"""Every error as one that a client may see: a class of Flight errors, one clean text, never a traceback or a path of ours.

pyarrow sends the traceback of any exception that is not a Flight error, so every call goes through `answering`.  The text
begins with the class of gpudb's error, and `extra_info` has it for programs: {"class", "message", "span", "hint"}.
"""

from __future__ import annotations

import contextlib
import json
import logging
import secrets
from collections.abc import Iterator

import pyarrow.flight as fl

from gpudb import errors
from gpudb.flight_sql import MalformedMessage

logger = logging.getLogger("gpudb.server")


class NotAuthenticated(errors.OperationalError):
    """Who calls is not known."""


class NotAllowed(errors.OperationalError):
    """Who calls may not do this."""


class Unavailable(errors.OperationalError):
    """Not now: the server is full, or about to stop; the same call may succeed later."""


FLIGHT_ERRORS: tuple[tuple[type[errors.Error], type[fl.FlightError]], ...] = (
    (NotAuthenticated, fl.FlightUnauthenticatedError),
    (NotAllowed, fl.FlightUnauthorizedError),
    (Unavailable, fl.FlightUnavailableError),
    (errors.InternalError, fl.FlightInternalError),
)


def flight_error(error: BaseException) -> fl.FlightError:
    """The Flight error for what a call raised; what is not one of gpudb's errors is logged, and told by a number only."""
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
    details = {"class": type(error).__name__, "message": error.message, "span": error.span, "hint": error.hint}
    return kind(f"{type(error).__name__}: {error}", json.dumps(details).encode())


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """Around the whole of a call: what is raised inside leaves as a Flight error without the exceptions behind it."""
    try:
        yield
    except (StopIteration, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 - nothing may reach pyarrow, which would send its traceback
        raise flight_error(error) from None
