"""Where a server on this machine leaves the token that clients of the same user show: one file a port, readable by that user.

The folder is GPUDB_RUNTIME_DIR, else XDG_RUNTIME_DIR/gpudb, else ~/.cache/gpudb/run; the file `server-PORT.token`, mode 0600,
holds the token in one line.  The server writes it when it starts and removes it when it ends.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from gpudb.errors import OperationalError


def runtime_folder() -> Path:
    """The folder of this user's token files."""
    if given := os.environ.get("GPUDB_RUNTIME_DIR"):
        return Path(given)
    if given := os.environ.get("XDG_RUNTIME_DIR"):
        return Path(given) / "gpudb"
    return Path.home() / ".cache" / "gpudb" / "run"


def path(port: int) -> Path:
    """The token file of the server at a port of this machine."""
    return runtime_folder() / f"server-{port}.token"


def write(port: int, token: str) -> Path:
    """Leave a token for this user's clients; OperationalError where others could read or replace it."""
    folder = runtime_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = folder.stat()
    except OSError as error:
        raise OperationalError(
            f"cannot make the folder of tokens: {error.strerror}: {folder}", hint="GPUDB_RUNTIME_DIR names another"
        ) from None
    if state.st_uid != os.getuid() or state.st_mode & 0o022:
        raise OperationalError(
            f"others may write the folder of tokens: {folder}", hint="chmod 700, or GPUDB_RUNTIME_DIR"
        )
    target = path(port)
    with contextlib.suppress(FileNotFoundError):
        target.unlink()  # a server that was killed left it
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(token + "\n")
    return target


def read(port: int) -> str | None:
    """The token of the server at a port of this machine; None where this user started none, or may not read it."""
    with contextlib.suppress(OSError):
        return path(port).read_text().strip() or None
    return None


def remove(port: int, token: str) -> None:
    """Remove the file if it still holds this token: another server may have taken the port over."""
    if read(port) == token:
        path(port).unlink(missing_ok=True)
