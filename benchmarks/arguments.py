"""The command line that the benchmarks share."""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from benchmarks.peers import MODULES
from benchmarks.report import SUBJECT


def make_parser(program: str, description: str) -> argparse.ArgumentParser:
    """Options that every benchmark has."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=description)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="processors for each engine")
    parser.add_argument("--repeat", type=int, default=7, help="runs after the first one")
    parser.add_argument("--device", default="auto", help="where ours runs: auto, cpu, gpu, gpu!, reference")
    parser.add_argument("--seed", type=int, default=0, help="of the generated data")
    parser.add_argument(
        "--data", type=Path, default=default_folder(), help="where generated files are kept and found again"
    )
    parser.add_argument("--json", metavar="FILE", help="append the lines to FILE instead of printing them")
    parser.add_argument("--quick", action="store_true", help="few rows, one repeat: does it work at all?")
    return parser


def add_workload_options(parser: argparse.ArgumentParser, rows: int, peers: str) -> None:
    """Options of benchmarks that compare engines over so many rows."""
    parser.add_argument("--rows", type=int, default=rows)
    _add_peers(parser, peers)


def add_scale_options(parser: argparse.ArgumentParser, peers: str) -> None:
    """Options of benchmarks that compare engines at a scale factor."""
    parser.add_argument("--scale", type=float, default=1.0, help="scale factor of the tables")
    _add_peers(parser, peers)


def _add_peers(parser: argparse.ArgumentParser, peers: str) -> None:
    parser.add_argument(
        "--peers", type=peer_names, default=peer_names(peers), help=f"comma-separated, of {', '.join(PEERS)}"
    )
    parser.add_argument("--queries", type=names, default=[], help="comma-separated; all by default")


PEERS = tuple(name for name in MODULES if name != SUBJECT)


def default_folder() -> Path:
    """In the system's folder for temporary files, so that a second run finds the data."""
    return Path(tempfile.gettempdir()) / "gpudb-benchmarks"


def names(text: str) -> list[str]:
    """A comma-separated list."""
    return [name for name in text.split(",") if name]


def peer_names(text: str) -> list[str]:
    """A comma-separated list of PEERS.  Raises ArgumentTypeError on any other name."""
    for name in names(text):
        if name not in PEERS:
            raise argparse.ArgumentTypeError(f"no such peer: {name} (there are {', '.join(PEERS)})")
    return names(text)
