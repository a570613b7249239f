"""Which files statements may read and write, where not every file of the machine is theirs."""

from __future__ import annotations

import os
import re

from gpudb.errors import AccessError, InputError
from gpudb.record import record

_WILDCARD = re.compile(r"[*?\[]")


@record
class FileAccess:
    """Files under a root only; a root that is None allows none.  Paths are relative to the root.

    import_root  for reading: COPY FROM, read_csv, FROM 'file'
    export_root  for writing: COPY TO, which replaces no file

    Links are followed first, and then what they lead to must lie under the root.  A refusal says the same whether or not there
    is such a file.  Whoever may change what lies under a root could swap a link between the check and the reading.
    """

    import_root: str | None = None
    export_root: str | None = None

    def pattern(self, path: str) -> str:
        """A path or a glob to look for; AccessError where its folder is not under the root."""
        root = self._root(self.import_root, "read")
        full = os.path.join(root, path)
        parts = full.split(os.sep)
        fixed = next((n for n, part in enumerate(parts) if _WILDCARD.search(part)), len(parts))
        if ".." in parts[fixed:] or "\0" in path:
            raise _refused(path)
        folder = os.sep.join(parts[:fixed]) if fixed < len(parts) else os.path.dirname(full)
        self._inside(root, folder, path)
        return full

    def readable(self, path: str) -> str:
        """The real path of a file to read."""
        return self._inside(self._root(self.import_root, "read"), path, path)

    def writable(self, path: str) -> str:
        """The real path of a file to make."""
        root = self._root(self.export_root, "write")
        if "\0" in path or os.path.basename(path) in ("", ".", ".."):
            raise _refused(path)
        folder = self._inside(root, os.path.dirname(os.path.join(root, path)), path)
        full = os.path.join(folder, os.path.basename(path))
        if os.path.lexists(full):
            raise InputError(f"the file exists, and is not replaced: {path}")
        return full

    @staticmethod
    def _root(root: str | None, purpose: str) -> str:
        if root is None:
            raise AccessError(f"statements may not {purpose} files here", hint="the operator may set a root for them")
        return os.path.realpath(root)

    @staticmethod
    def _inside(root: str, path: str, shown: str) -> str:
        found = os.path.realpath(path)
        if os.path.commonpath([root, found]) != root:
            raise _refused(shown)
        return found


def _refused(path: str) -> AccessError:
    return AccessError(f"the path is not under the root for files: {path!r}")
