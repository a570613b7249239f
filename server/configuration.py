"""What a server is told when it starts."""

from __future__ import annotations

import ipaddress
import os
from typing import Any

from gpudb.errors import OperationalError
from gpudb.record import record
from gpudb.settings import SETTINGS

DEFAULT_PORT = 8815
FILES_TO_MEMORY = 4  # bytes a statement may take of temporary files for each of its memory


@record
class Configuration:
    """Options of `serve`.

    host, port         where it listens; port 0 takes a free one
    tls_cert, tls_key  files in PEM; both or neither
    insecure           no token, no TLS: every client is an administrator
    read_only          open the database without its lock, and refuse every change
    import_root        folder below which statements may read files; None: they may read none
    export_root        folder below which statements may make files; None: they may make none
    statement_timeout  seconds a statement may run; 0 for no limit
    memory_limit       bytes a statement may hold; None: a quarter of the machine's
    running            statements that run at a time; None: one more than there are processors
    waiting            statements that may wait for their turn
    queue_seconds      that each of them waits at most
    calls              that go on at a time, each in a thread; more are refused
    drain_seconds      that running statements have to end when the server is told to stop
    """

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    tls_cert: str | None = None
    tls_key: str | None = None
    insecure: bool = False
    read_only: bool = False
    import_root: str | None = None
    export_root: str | None = None
    statement_timeout: float = 60.0
    memory_limit: int | None = None
    running: int | None = None
    waiting: int = 1024
    queue_seconds: float = 30.0
    calls: int = 2048
    drain_seconds: float = 10.0

    @property
    def limits(self) -> dict[str, Any]:
        """Settings that clients start with and may only lower."""
        memory = SETTINGS["memory_limit"].default() * 10 // 8  # its default is eight tenths
        limit = memory // 4 if self.memory_limit is None else self.memory_limit
        return {
            "statement_timeout": float(self.statement_timeout),
            "memory_limit": limit,
            "max_temp_directory_size": limit * FILES_TO_MEMORY,
            "threads": SETTINGS["threads"].default(),
        }

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches the server."""
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return self.host == "localhost"

    def check(self, number_of_users: int) -> None:
        """OperationalError where a server with these options would not be safe, or could not start."""
        if (self.tls_cert is None) != (self.tls_key is None):
            raise OperationalError("TLS needs a certificate and its key", hint="give --tls-cert and --tls-key")
        for path in (self.tls_cert, self.tls_key):
            if path is not None and not os.access(path, os.R_OK):
                raise OperationalError(f"cannot read the file for TLS: {path}")
        for root in (self.import_root, self.export_root):
            if root is not None and not os.path.isdir(root):
                raise OperationalError(f"the root for files is not a folder: {root}")
        if self.insecure or self.is_loopback:
            return
        if self.tls_cert is None:
            raise OperationalError(
                f"other machines could reach {self.host}, and would send passwords in clear text",
                hint="give --tls-cert and --tls-key, or listen on 127.0.0.1",
            )
        if number_of_users == 0:
            raise OperationalError(
                f"other machines could reach {self.host}, and the database has no users",
                hint="gpudb user add DATABASE NAME",
            )
