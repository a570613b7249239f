"""Where a server is, and what a client shows it."""

from __future__ import annotations

import ipaddress
from dataclasses import field
from urllib.parse import parse_qsl, unquote, urlsplit

from gpudb import errors, token_file
from gpudb.record import record

SCHEMES = ("grpc", "grpc+tcp", "grpc+tls")
DEFAULT_PORT = 8815


@record
class Address:
    """A server, and the credentials for it.

    location        for pyarrow, without credentials
    token           shown as Bearer; None where user and password, or nothing, are shown
    tls_root_certs  certificates in PEM that vouch for the server; None for those of the system
    """

    location: str
    user: str | None
    password: str | None = field(repr=False)
    token: str | None = field(repr=False)
    tls_root_certs: bytes | None

    @staticmethod
    def of(uri: str, user: str | None, password: str | None, token: str | None, tls_root_certs: str | None) -> Address:
        """Read a URI; what is given beside it counts more.  InterfaceError where it is none."""
        parts = urlsplit(uri)
        if parts.scheme not in SCHEMES:
            raise errors.InterfaceError(
                f"not the address of a server: {parts.scheme}://...", hint=f"addresses begin with {', '.join(SCHEMES)}"
            )
        try:
            port = parts.port or DEFAULT_PORT
        except ValueError:
            raise errors.InterfaceError("the port of an address is a number up to 65535") from None
        if not parts.hostname or parts.path not in ("", "/"):
            raise errors.InterfaceError("the address of a server is grpc://host:port")
        options = dict(parse_qsl(parts.query))
        tls_root_certs = tls_root_certs or options.pop("tls_root_certs", None)
        token = token or options.pop("token", None)
        if options:
            raise errors.InterfaceError(f"unknown options in an address: {', '.join(sorted(options))}")
        user = user or (unquote(parts.username) if parts.username else None)
        password = password or (unquote(parts.password) if parts.password else None)
        if token is None and user is None and _is_loopback(parts.hostname):
            token = token_file.read(port)
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        certificates = None
        if tls_root_certs is not None:
            try:
                with open(tls_root_certs, "rb") as file:
                    certificates = file.read()
            except OSError as error:
                raise errors.OperationalError(f"cannot read the certificates: {error.strerror}") from None
        return Address(f"{parts.scheme}://{host}:{port}", user, password, token, certificates)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
