"""The server: Arrow Flight and Flight SQL over a database, on pyarrow.flight.

    $ gpudb serve sales.db                      # 127.0.0.1:8815, with a token that clients of this user find
    >>> import gpudb.server
    >>> server = gpudb.server.serve("sales.db", port=0)
    >>> server.uri
    'grpc://127.0.0.1:40123'

A statement is planned when a client asks what it would give (GetFlightInfo), and runs when its rows are fetched (DoGet); rows
leave as they are made ready, and what the run did, its receipt, is the last batch's app_metadata.

Modules: `flight` answers the calls, `authentication` says who calls, `sessions` keeps what outlives a call, `results` cuts rows
into messages, `ingest` takes rows in, `running` says what runs and stops it, `connections` cuts those left open at the end,
`metadata` and `sql_info` describe the database, `failures` turns every error into one that a client may see, `command` is the
command line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpudb.server.flight import Server

__all__ = ["serve"]


def serve(database: str = ":memory:", **options: Any) -> Server:
    """Start a server and return it; it answers from threads of its own until its `close()`, or until a `with` ends.

    options  of `configuration.Configuration`: host, port (0 for any), tls_cert, tls_key, insecure ...

    Raises what opening the database raises, and OperationalError where the options ask for what is not safe.
    """
    from gpudb.server.configuration import Configuration
    from gpudb.server.flight import Server

    return Server(database, Configuration(**options))
