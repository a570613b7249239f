"""A session at a server: what `gpudb.connect("grpc://host:port")` and `gpudb grpc://host:port` speak through.

    grpc://127.0.0.1:8815                     a server of this user on this machine; its token is found
    grpc://user:password@host:8815            logs in; `token` as a keyword of connect() does without
    grpc+tls://host:8815?tls_root_certs=FILE  TLS, with certificates of one's own

`address` reads that, `session` sends statements as Arrow Flight SQL and gives their rows back as they come, `failures` makes
the server's errors the same errors again.
"""

from __future__ import annotations

from gpudb.client.address import SCHEMES, Address
from gpudb.client.session import RemoteSession

__all__ = ["SCHEMES", "Address", "RemoteSession", "is_address"]


def is_address(path: str) -> bool:
    """Whether a path names a server and no directory."""
    return "://" in path
