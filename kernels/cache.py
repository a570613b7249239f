"""Where built kernels are kept between runs: one private folder a user, which may be deleted at any time.

`GPUDB_CACHE_DIR`, else `XDG_CACHE_HOME/gpudb`, else `~/.cache/gpudb`.  A name in it is the digest of everything the
file was made from, so entries never go stale and need no clean-up to be right.
"""

from __future__ import annotations

import functools
import logging
import os
import stat
import tempfile
from pathlib import Path

logger = logging.getLogger("gpudb")


def cache_folder() -> Path:
    """The folder of built kernels, made if need be; a temporary one where the user's cannot be written or trusted."""
    chosen = os.environ.get("GPUDB_CACHE_DIR")
    base = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "gpudb"
    try:
        folder = base.expanduser().absolute() / "kernels"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            reason = "it cannot be written"
        elif not is_trusted(folder):
            reason = "other users can write it"
        else:
            return folder
    except (OSError, RuntimeError) as error:  # RuntimeError: no home folder
        reason = str(error)
    logger.info("kernel cache is not used: %s: %s", base, reason)
    return Path(_temporary_folder().name)


@functools.cache
def _temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """A private folder that lives as long as this process: its finalizer removes it at exit."""
    return tempfile.TemporaryDirectory(prefix="gpudb-kernels-")


def is_trusted(path: Path) -> bool:
    """Whether `path` exists, is ours or root's, and no one else may write it: it holds code that we will run."""
    try:
        status = path.stat()
    except OSError:
        return False
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & stat.S_IWOTH


def write_atomically(path: Path, content: bytes) -> None:
    """Write `content` beside `path` and rename it there, so that a reader sees all of it or nothing."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix="write-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
