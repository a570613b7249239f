"""The command `gpudb user`: who may log in to the server of a database."""

from __future__ import annotations

import argparse
import getpass
import os
import secrets
import sys
from collections.abc import Sequence

from gpudb import errors
from gpudb.server.users import ROLES, Users


def main(arguments: Sequence[str]) -> int:
    """Add, remove or list users; the exit code."""
    parser = argparse.ArgumentParser(
        prog="gpudb user", allow_abbrev=False, description="Users of the server of a database directory."
    )
    actions = parser.add_subparsers(dest="action", required=True)
    for action, text in (("add", "add a user, or give it another password"), ("remove", "remove a user"), ("list", "")):
        sub = actions.add_parser(action, help=text, allow_abbrev=False)
        sub.add_argument("database", help="a database directory")
        if action != "list":
            sub.add_argument("name")
        if action == "add":
            sub.add_argument("--role", choices=ROLES, default="reader", help="default: reader, who changes nothing")
            sub.add_argument("--generate", action="store_true", help="make a password, and show it once")
    given = parser.parse_args(arguments)
    try:
        if given.action == "add" and given.database != ":memory:":
            _make_database(given.database)
        users = Users.of_database(given.database)
        match given.action:
            case "add":
                users.add(given.name, _password(given.generate), given.role)
            case "remove":
                users.remove(given.name)
            case _:
                for user in users.all().values():
                    print(f"{user.name}\t{user.role}")
    except errors.Error as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


def _make_database(path: str) -> None:
    """A database to have users; one that is there may be open in a server, and is left alone."""
    if not os.path.exists(os.path.join(path, "FORMAT")):
        from gpudb.storage.database import Database

        Database(path).close()


def _password(generate: bool) -> str:
    """A password from the terminal or standard input; never from the command line, which others can read."""
    if generate:
        made = secrets.token_urlsafe(18)
        print(f"password, shown this once: {made}")
        return made
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    password = getpass.getpass("password: ")
    if getpass.getpass("again: ") != password:
        raise errors.InterfaceError("the two passwords differ")
    return password
