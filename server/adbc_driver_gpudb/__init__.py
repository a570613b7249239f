"""An ADBC driver for gpudb's servers, by the name under which ADBC's users look: `adbc_driver_gpudb.dbapi.connect(uri)`.

    gpudb://127.0.0.1:8815                      a server of this user on this machine; its token is found
    gpudb://user:password@host:8815?tls=true    also token=TOKEN and tls_root_certs=FILE

It is adbc-driver-flightsql, told what a server of ours wants: credentials, and cookies, by which the server knows a session.
Polars finds it by the scheme: `polars.read_database_uri("SELECT 42", "gpudb://127.0.0.1:8815", engine="adbc")`.

The file lies in `server/` of the source tree; a wheel installs it as a package of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from gpudb.client.address import Address
from gpudb.errors import InterfaceError

if TYPE_CHECKING:
    import adbc_driver_manager

__all__ = ["connect", "options"]


def options(uri: str) -> tuple[str, dict[str, str]]:
    """(the address as adbc-driver-flightsql takes it, its options) of a gpudb:// or grpc:// URI."""
    parts = urlsplit(uri)
    given = dict(parse_qsl(parts.query))
    if parts.scheme == "gpudb":
        tls = given.pop("tls", "false").lower() in ("true", "1", "yes")
        parts = parts._replace(scheme="grpc+tls" if tls else "grpc", query=urlencode(given))
        if parts.path not in ("", "/"):
            raise InterfaceError("a directory is not for ADBC: gpudb.connect() opens it", hint="gpudb://host:port")
    address = Address.of(urlunsplit(parts), None, None, None, None)
    found = {"adbc.flight.sql.rpc.with_cookie_middleware": "true"}
    if address.token is not None:
        found["adbc.flight.sql.authorization_header"] = f"Bearer {address.token}"
    elif address.user is not None:
        found |= {"username": address.user, "password": address.password or ""}
    if address.tls_root_certs is not None:
        found["adbc.flight.sql.client_option.tls_root_certs"] = address.tls_root_certs.decode()
    return address.location, found


def connect(uri: str, db_kwargs: dict[str, str] | None = None) -> adbc_driver_manager.AdbcDatabase:
    """A low-level ADBC database of a server; db_kwargs are further options of adbc-driver-flightsql."""
    import adbc_driver_flightsql

    location, found = options(uri)
    return adbc_driver_flightsql.connect(location, db_kwargs={**found, **(db_kwargs or {})})
