"""A server's errors as the errors that they were there."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.flight as fl

from gpudb import errors

# Errors that no server of ours made: the network's, another server's.
_KINDS: tuple[tuple[type[Exception], type[errors.Error]], ...] = (
    (fl.FlightCancelledError, errors.QueryCancelled),
    (fl.FlightTimedOutError, errors.QueryCancelled),
    (fl.FlightInternalError, errors.InternalError),
    (pa.ArrowCancelled, errors.QueryCancelled),
    (fl.FlightError, errors.OperationalError),
    (pa.ArrowException, errors.OperationalError),
)


def error_of(error: BaseException) -> errors.Error:
    """The gpudb error behind what pyarrow raised."""
    details = {}
    with contextlib.suppress(ValueError, AttributeError):
        details = json.loads(getattr(error, "extra_info", b"") or b"{}")
    kind = getattr(errors, str(details.get("class")), None)
    if isinstance(kind, type) and issubclass(kind, errors.Error):
        span = details.get("span")
        found = kind(str(details.get("message")), span=tuple(span) if span else None, hint=details.get("hint"))
        found.sql = details.get("sql")  # of a view's own query, the place is in there
        return found
    text = str(error).partition(". gRPC client debug context")[0].partition(". Client context")[0]
    for theirs, ours in _KINDS:
        if isinstance(error, theirs):
            if isinstance(error, fl.FlightUnavailableError):
                return ours(f"the server cannot be reached: {text}", hint="is it running at this address?")
            return ours(text)
    raise error


@contextlib.contextmanager
def as_gpudb_errors() -> Iterator[None]:
    """Around calls of pyarrow.flight."""
    try:
        yield
    except (pa.ArrowException, fl.FlightError) as error:
        raise error_of(error) from None
