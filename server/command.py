"""The command `gpudb serve`: start a server, say where it is, and stop it on SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence

from gpudb import errors, token_file
from gpudb.server.configuration import DEFAULT_PORT, Configuration

EXIT_CANNOT_START = 2


def main(arguments: Sequence[str]) -> int:
    """Serve until a signal comes; the exit code."""
    parser = argparse.ArgumentParser(
        prog="gpudb serve",
        allow_abbrev=False,
        description="Answer Arrow Flight and Flight SQL clients.  On a loopback address they show a random token, which "
        "gpudb's own clients of this user find by themselves.",
    )
    parser.add_argument("database", nargs="?", default=":memory:", help="a database directory, made if it is not there")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument(
        "--port", type=int, default=DEFAULT_PORT, help=f"0 for any that is free; default {DEFAULT_PORT}"
    )
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate chain in PEM")
    parser.add_argument("--tls-key", metavar="FILE", help="its private key in PEM")
    parser.add_argument("--insecure", action="store_true", help="no token, no TLS: every client is an administrator")
    parser.add_argument("--readonly", dest="read_only", action="store_true", help="change nothing")
    parser.add_argument("--import-root", metavar="DIR", help="let statements read files below DIR")
    parser.add_argument("--export-root", metavar="DIR", help="let statements make files below DIR")
    options = vars(parser.parse_args(arguments))
    database = options.pop("database")
    os.umask(0o077)
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    from gpudb.server.flight import Server

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        server = Server(database, Configuration(**options))
    except errors.Error as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return EXIT_CANNOT_START
    with server:
        print(f"gpudb serves {database} at {server.uri}", flush=True)
        if server.token is not None:
            print(f"token of this start: {token_file.path(server.port)}", flush=True)
        while not stop.wait(1.0):  # Python handles signals between two waits
            pass
    return 0
