"""Who calls: checked from the headers of every call, before its body is used.

A client shows `authorization: Bearer TOKEN`, or `Basic` with a user and a password; for the latter the server hands out a
bearer token at the handshake, as Arrow Flight's clients expect.  Users are those of `users`; on loopback there is also one
called `token`, an administrator whose password is the random token that the server leaves in a file.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow.flight as fl

from gpudb.errors import AuthenticationError, UnavailableError
from gpudb.record import record
from gpudb.server import audit
from gpudb.server.failures import Failures
from gpudb.server.users import Users

COOKIE = "arrow_flight_session_id"
BEARER_SECONDS = 3600.0  # of a token handed out at a handshake, from its last use
BEARER_LONGEST_SECONDS = 24 * 3600.0
BEARERS_AT_MOST = 10_000
TOKEN_USER = "token"


@record
class Caller:
    """Who makes a call.

    role        admin, writer or reader
    session     what the client's session is known by, or None
    """

    user: str
    role: str
    session: str | None


@record(frozen=False)
class Bearer:
    """A token that was handed out for a password; only its hash is kept."""

    user: str
    made: float
    used: float


class Authenticator:
    """Knows the users, the token of this server, and the tokens it handed out.

    token     random, of a server on loopback; None where there is no such way in
    insecure  everybody is an administrator
    """

    def __init__(self, users: Users, token: str | None, insecure: bool = False) -> None:
        self._users = users
        self._token = None if token is None else digest(token)
        self._insecure = insecure
        self._bearers: OrderedDict[bytes, Bearer] = OrderedDict()
        self._lock = threading.Lock()

    def caller(self, method: Any, headers: Mapping[str, Sequence[Any]]) -> tuple[Caller, dict[str, str]]:
        """(who calls, headers of the answer); AuthenticationError where the headers do not show it."""
        answer: dict[str, str] = {}
        user, role, bearer = self._identified(_header(headers, "authorization"), method, answer)
        session = _cookie(headers) or bearer
        if session is None and method != fl.FlightMethod.HANDSHAKE:
            answer["set-cookie"] = f"{COOKIE}={secrets.token_urlsafe(18)}"
        return Caller(user, role, session), answer

    def _identified(self, header: str, method: Any, answer: dict[str, str]) -> tuple[str, str, str | None]:
        """(user, role, what a session may be known by)."""
        scheme, _, value = header.partition(" ")
        found: tuple[str, str] | None = None
        if scheme.lower() == "basic":
            found = self._password(*_user_and_password(value))
            if found is not None and method == fl.FlightMethod.HANDSHAKE:
                audit.note("login", user=found[0], role=found[1])
                answer["authorization"] = f"Bearer {self._hand_out(found[0])}"
        elif scheme.lower() == "bearer":
            known = self._bearer(value)
            role = None if known is None else self._role(known.user)
            if known is not None and role is not None:
                return known.user, role, digest(value).hex()
            if self._token is not None and hmac.compare_digest(digest(value), self._token):
                found = (TOKEN_USER, "admin")
        if found is None and self._insecure:
            found = ("anybody", "admin")
        if found is None:
            audit.note("denied", call=str(method), scheme=scheme[:16])
            raise AuthenticationError(
                "no valid credentials", hint="send the server's token as Bearer, or a user and a password as Basic"
            )
        return *found, None

    def _password(self, user: str, password: str) -> tuple[str, str] | None:
        """(user, role) of a password that is right."""
        if self._insecure:
            return "anybody", "admin"
        if self._token is not None and user == TOKEN_USER and hmac.compare_digest(digest(password), self._token):
            return TOKEN_USER, "admin"
        role = self._users.check(user, password) if user else None
        return None if role is None else (user, role)

    def _role(self, user: str) -> str | None:
        """What a user who has logged in may do now: perhaps it was removed since."""
        if self._insecure or (user == TOKEN_USER and self._token is not None):
            return "admin"
        return self._users.role(user)

    def _hand_out(self, user: str) -> str:
        token = secrets.token_urlsafe(32)
        now = time.monotonic()
        with self._lock:
            self._bearers[digest(token)] = Bearer(user, now, now)
            while len(self._bearers) > BEARERS_AT_MOST:
                self._bearers.popitem(last=False)
        return token

    def _bearer(self, token: str) -> Bearer | None:
        now = time.monotonic()
        with self._lock:
            found = self._bearers.get(digest(token))
            if found is None:
                return None
            if now - found.used > BEARER_SECONDS or now - found.made > BEARER_LONGEST_SECONDS:
                del self._bearers[digest(token)]
                return None
            found.used = now
            return found


class CallerMiddleware(fl.ServerMiddleware):
    """Carries who calls from the headers to the call, and headers back."""

    def __init__(self, caller: Caller, answer: dict[str, str], completed: Callable[[], None]) -> None:
        self.caller = caller
        self._answer = answer
        self._completed = completed

    def sending_headers(self) -> dict[str, str]:
        return self._answer

    def call_completed(self, exception: Any) -> None:
        self._completed()


class CallerMiddlewareFactory(fl.ServerMiddlewareFactory):
    """Refuses every call that does not show who makes it, and those past the most at a time: each call holds a thread.

    calls  that go on now
    """

    def __init__(self, authenticator: Authenticator, failures: Failures, most_calls: int) -> None:
        self._authenticator = authenticator
        self._failures = failures
        self._most_calls = most_calls
        self._lock = threading.Lock()
        self.calls = 0

    def start_call(self, info: Any, headers: Mapping[str, Sequence[Any]]) -> CallerMiddleware:
        with self._failures.answering():
            caller, answer = self._authenticator.caller(info.method, headers)
            with self._lock:
                if self.calls >= self._most_calls:
                    raise UnavailableError("too many calls at a time", hint="try again later")
                self.calls += 1
            return CallerMiddleware(caller, answer, self._completed)

    def _completed(self) -> None:
        with self._lock:
            self.calls -= 1


class OpenHandshake(fl.ServerAuthHandler):
    """Lets the handshake itself pass: the middleware has looked at its headers by then."""

    def authenticate(self, outgoing: Any, incoming: Any) -> None:
        """Nothing is exchanged."""

    def is_valid(self, token: bytes) -> str:
        return ""


def digest(secret: str) -> bytes:
    """What is kept of a token."""
    return hashlib.sha256(secret.encode()).digest()


def _header(headers: Mapping[str, Sequence[Any]], name: str) -> str:
    values = headers.get(name) or [""]
    value = values[0]
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _cookie(headers: Mapping[str, Sequence[Any]]) -> str | None:
    for part in _header(headers, "cookie").split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE and 0 < len(value) <= 64:
            return value
    return None


def _user_and_password(value: str) -> tuple[str, str]:
    try:
        decoded = base64.b64decode(value + "=" * (-len(value) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return "", ""
    user, _, password = decoded.partition(":")
    return user, password
