"""What a server is told when it starts."""

from __future__ import annotations

from gpudb.record import record

DEFAULT_PORT = 8815


@record
class Configuration:
    """Options of `serve`.

    host, port         where it listens; port 0 takes a free one
    tls_cert, tls_key  files in PEM; both or neither
    insecure           no token, no TLS: every client is an administrator
    read_only          open the database without its lock, and refuse every change
    """

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    tls_cert: str | None = None
    tls_key: str | None = None
    insecure: bool = False
    read_only: bool = False
