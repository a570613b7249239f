"""Connections that their clients leave open.

gRPC ends a server once all its calls have ended.  One that waits for its client, for the next rows of a DoPut or for room for
those of a DoGet, ends when the client likes, and pyarrow passes no deadline on; so the end of a server cuts its connection.
"""

from __future__ import annotations

import contextlib
import os
import socket


def cut_connections(port: int) -> int:
    """Shut down the connections that this process has accepted at a port; the number of them.

    Their descriptors are gRPC's, and stay open until it has seen the end.
    """
    cut = 0
    for name in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):  # no socket, one that listens, or gone by now
            descriptor = os.dup(int(name))
            try:
                found = socket.socket(fileno=descriptor)
            except OSError:
                os.close(descriptor)
                continue
            with found:
                if found.family in (socket.AF_INET, socket.AF_INET6) and found.getsockname()[1] == port:
                    found.getpeername()
                    found.shutdown(socket.SHUT_RDWR)
                    cut += 1
    return cut
