"""The command `gpudb serve`: start a server, say where it is, and stop it on SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse
import dataclasses
import logging
import os
import signal
import sys
import threading
import time
import tomllib
from collections.abc import Sequence
from typing import Any

from gpudb import errors, token_file
from gpudb.server.configuration import DEFAULT_PORT, Configuration

logger = logging.getLogger("gpudb.server")
EXIT_CANNOT_START = 2
CLOSE_SECONDS = 5.0


def main(arguments: Sequence[str]) -> int:
    """Serve until a signal comes; the exit code."""
    parser = argparse.ArgumentParser(
        prog="gpudb serve",
        allow_abbrev=False,
        description="Answer Arrow Flight and Flight SQL clients.  On a loopback address they show a random token, which "
        "gpudb's own clients of this user find by themselves.",
    )
    parser.add_argument("database", nargs="?", default=":memory:", help="a database directory, made if it is not there")
    parser.add_argument("--host", help="address to listen on; default 127.0.0.1")
    parser.add_argument("--port", type=int, help=f"0 for any that is free; default {DEFAULT_PORT}")
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate chain in PEM")
    parser.add_argument("--tls-key", metavar="FILE", help="its private key in PEM")
    parser.add_argument("--insecure", action="store_true", help="no token, no TLS: every client is an administrator")
    parser.add_argument("--readonly", dest="read_only", action="store_true", help="change nothing")
    parser.add_argument("--import-root", metavar="DIR", help="let statements read files below DIR")
    parser.add_argument("--export-root", metavar="DIR", help="let statements make files below DIR")
    parser.add_argument("--config", metavar="FILE", help="more options, in TOML, by the names of Configuration")
    options = vars(parser.parse_args(arguments))
    database = options.pop("database")
    os.umask(0o077)
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s", level=logging.INFO)
    from gpudb.server.flight import Server

    stop = Stop()
    try:
        server = Server(database, configuration(options))
    except errors.Error as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return EXIT_CANNOT_START
    print(f"gpudb serves {database} at {server.uri}", flush=True)
    if server.token is not None:
        print(f"token of this start: {token_file.path(server.port)}", flush=True)
    stop.wait_for(1)
    logger.info("stopping: running statements have %g s to end", server.configuration.drain_seconds)
    draining = threading.Thread(target=server.drain, daemon=True)
    draining.start()
    while draining.is_alive() and stop.signals < 2:  # a second signal waits for nobody
        draining.join(0.1)
    closing = threading.Thread(target=server.close, daemon=True)
    closing.start()
    closing.join(CLOSE_SECONDS)
    if closing.is_alive():  # a statement that looks seldom whether it was stopped
        server.database.close()
        os._exit(0)
    return 0


class Stop:
    """Counts the signals that ask for the end."""

    def __init__(self) -> None:
        self.signals = 0
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._count)

    def wait_for(self, signals: int) -> None:
        """Wait until so many have come."""
        while self.signals < signals:
            time.sleep(0.2)  # Python handles signals between two of these

    def _count(self, *_: object) -> None:
        self.signals += 1


def configuration(options: dict[str, Any]) -> Configuration:
    """The options of the command line over those of its file; OperationalError names what is wrong there."""
    path = options.pop("config")
    given = {name: value for name, value in options.items() if value is not None and value is not False}
    if path is None:
        return Configuration(**given)
    known = {field.name: field.type for field in dataclasses.fields(Configuration)}
    try:
        with open(path, "rb") as file:
            found = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise errors.OperationalError(f"cannot read the configuration: {path}: {error}") from None
    for name, value in found.items():
        if name not in known:
            raise errors.OperationalError(f"no such option in {path}: {name}", hint=", ".join(sorted(known)))
        kinds: dict[str, Any] = {"str": str, "int": int, "float": (int, float), "bool": bool}
        wanted = str(known[name]).removesuffix(" | None")
        if not isinstance(value, kinds[wanted]) or (isinstance(value, bool) and wanted != "bool"):
            raise errors.OperationalError(f"not a value for {name} in {path}: {value!r}", hint=f"it is a {wanted}")
    return Configuration(**{**found, **given})
