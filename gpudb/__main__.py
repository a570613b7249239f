"""The console script `gpudb`, and `python -m gpudb`."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

# A first argument with one of these names is a sub-command; a database of that name is opened as ./demo.
SUBCOMMANDS = {"demo": "gpudb.shell.demo", "serve": "gpudb.server.command", "user": "gpudb.server.user_command"}


class WithoutPandas:
    """An import hook that hides pandas: pyarrow imports it, where installed, with its first array, which takes 0.4 s."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("the command gpudb has no use for pandas", name=name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the shell or a sub-command; the exit code.  Without arguments, those of this process, which ends after it."""
    if arguments is not None:
        return run(arguments)
    sys.meta_path.insert(0, WithoutPandas())
    gc.set_threshold(300_000)  # more objects than loading makes: none of them is garbage, and looking took 70 ms
    try:
        return run(sys.argv[1:])
    finally:
        gc.freeze()  # the interpreter would look through all modules' objects for garbage as it ends: 0.2 s


def run(arguments: Sequence[str]) -> int:
    """The shell or a sub-command; the exit code."""
    try:
        if arguments and arguments[0] in SUBCOMMANDS:
            import importlib

            code: int = importlib.import_module(SUBCOMMANDS[arguments[0]]).main(arguments[1:])
            return code
        from gpudb.shell.start import start

        return start(arguments)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone, as `head` does; Python must not complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


if __name__ == "__main__":
    sys.exit(main())
