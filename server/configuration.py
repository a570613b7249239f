"""What a server is told when it starts."""

from __future__ import annotations

import ipaddress
import os

from gpudb.errors import OperationalError
from gpudb.record import record

DEFAULT_PORT = 8815


@record
class Configuration:
    """Options of `serve`.

    host, port         where it listens; port 0 takes a free one
    tls_cert, tls_key  files in PEM; both or neither
    insecure           no token, no TLS: every client is an administrator
    read_only          open the database without its lock, and refuse every change
    import_root        folder below which statements may read files; None: they may read none
    export_root        folder below which statements may make files; None: they may make none
    """

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    tls_cert: str | None = None
    tls_key: str | None = None
    insecure: bool = False
    read_only: bool = False
    import_root: str | None = None
    export_root: str | None = None

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
