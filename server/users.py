"""Users of a database: a file beside its tables, names with roles and scrypt hashes, never a password.

The file `users.json` (mode 0600) is read again when it has changed, so that a user who is removed, or has another role now, is
that from the next call on, whatever tokens were handed out before.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from gpudb.errors import InterfaceError, OperationalError, UnavailableError
from gpudb.record import record

ROLES = ("admin", "writer", "reader")
SCRYPT: dict[str, Any] = {"n": 1 << 15, "r": 8, "p": 1, "maxmem": 64 << 20}  # 32 MiB and 0.1 s a password
AT_ONCE = 2  # passwords that are looked at at the same time: guessing cannot take all processors
FREE_FAILURES = 5  # of one user, before waiting begins
LONGEST_WAIT = 60.0


@record
class User:
    """A user: role, salt and hash of the password."""

    name: str
    role: str
    salt: bytes
    hash: bytes


class Users:
    """The users in a file; a file that is not there has none.

    path  None: there are no users, and none can be added
    """

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self.path = None if path is None else Path(path)
        self._users: dict[str, User] = {}
        self._state: tuple[int, int, int] | None = None
        self._lock = threading.Lock()
        self._slots = threading.Semaphore(AT_ONCE)
        self._failures: dict[str, tuple[int, float]] = {}

    @classmethod
    def of_database(cls, path: str) -> Users:
        """The users of a database directory; a database in memory has none."""
        return cls(None if path == ":memory:" else Path(path) / "users.json")

    def all(self) -> dict[str, User]:
        """Users by name, as the file has them now."""
        if self.path is None:
            return {}
        try:
            state = self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except OSError as error:
            raise OperationalError(f"cannot read the file of users: {error.strerror}: {self.path}") from None
        seen = state.st_mtime_ns, state.st_size, state.st_ino
        with self._lock:
            if seen != self._state:
                self._users, self._state = self._read(), seen
            return self._users

    def role(self, name: str) -> str | None:
        """A user's role; None where there is no such user."""
        found = self.all().get(name)
        return None if found is None else found.role

    def check(self, name: str, password: str) -> str | None:
        """The role of a user whose password this is; None for a wrong one and an unknown user alike, after the same time.

        UnavailableError where the user has failed so often that it is time to wait.
        """
        with self._slots:  # before it is asked how often: many guesses may come at the same time
            with self._lock:
                failures, since = self._failures.get(name, (0, 0.0))
            wait = min(LONGEST_WAIT, 2.0 ** (failures - FREE_FAILURES)) if failures >= FREE_FAILURES else 0.0
            if time.monotonic() - since < wait:
                raise UnavailableError("too many wrong passwords", hint="wait a minute")
            found = self.all().get(name)
            computed = hashed(password, found.salt if found is not None else b"0" * 16)
            right = found is not None and hmac.compare_digest(computed, found.hash)
            with self._lock:
                if right:
                    self._failures.pop(name, None)
                else:
                    if len(self._failures) > 10_000:
                        self._failures.clear()  # names that nobody has can be made up without end
                    self._failures[name] = self._failures.get(name, (0, 0.0))[0] + 1, time.monotonic()
        return found.role if found is not None and right else None

    def add(self, name: str, password: str, role: str) -> None:
        """Add a user, or give it another password and role."""
        if not name or len(name) > 128 or ":" in name or not name.isprintable() or name == "token":
            raise InterfaceError(f"not a name for a user: {name!r}", hint="1 to 128 printable characters, no colon")
        if role not in ROLES:
            raise InterfaceError(f"there is no such role: {role}", hint=", ".join(ROLES))
        if len(password) < 8:
            raise InterfaceError("a password has at least 8 characters")
        salt = secrets.token_bytes(16)
        self._write({**self.all(), name: User(name, role, salt, hashed(password, salt))})

    def remove(self, name: str) -> None:
        """Remove a user; InterfaceError where there is none of this name."""
        users = dict(self.all())
        if users.pop(name, None) is None:
            raise InterfaceError(f"there is no such user: {name}")
        self._write(users)

    def _read(self) -> dict[str, User]:
        assert self.path is not None, "there is a file to read"
        try:
            found = json.loads(self.path.read_bytes())
            if found["format"] != 1:
                raise OperationalError(f"the file of users was written by a newer gpudb: {self.path}")
            return {
                name: User(name, one["role"], bytes.fromhex(one["salt"]), bytes.fromhex(one["scrypt"]))
                for name, one in found["users"].items()
            }
        except (ValueError, KeyError, TypeError, AttributeError):
            raise OperationalError(f"the file of users is damaged: {self.path}") from None

    def _write(self, users: dict[str, User]) -> None:
        if self.path is None:
            raise InterfaceError("a database in memory has no users", hint="name a database directory")
        entries = {u.name: {"role": u.role, "salt": u.salt.hex(), "scrypt": u.hash.hex()} for u in users.values()}
        try:
            self._replace_file(self.path, json.dumps({"format": 1, "users": entries}, indent=1))
        except OSError as error:
            raise OperationalError(f"cannot write the file of users: {error.strerror}: {self.path}") from None

    @staticmethod
    def _replace_file(path: Path, content: str) -> None:
        handle, temporary = tempfile.mkstemp(prefix=".users", dir=path.parent)  # mode 0600
        try:
            with os.fdopen(handle, "w") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


def hashed(password: str, salt: bytes) -> bytes:
    """scrypt of a password, 32 bytes."""
    return hashlib.scrypt(password.encode(), salt=salt, dklen=32, **SCRYPT)
