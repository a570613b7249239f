"""`import gpudb` is cheap: counted in modules, because seconds depend on the machine."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = {"cuda", "cupy", "datafusion", "duckdb", "numba", "pandas", "polars", "prompt_toolkit", "pygments", "sqlglot"}


def modules_after(statements: str) -> set[str]:
    """Names in sys.modules after `statements` in a fresh interpreter."""
    script = f"{statements}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def heavy_packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules} & HEAVY


def test_importing_gpudb_loads_no_other_engine_no_gpu_package_and_no_parser() -> None:
    assert heavy_packages(modules_after("import gpudb")) == set()


def test_importing_gpudb_loads_at_most_half_again_what_numpy_and_pyarrow_load() -> None:
    arrow, ours = modules_after("import numpy, pyarrow"), modules_after("import gpudb")
    assert len(ours) <= 1.5 * len(arrow)


def test_the_version_is_the_one_in_version_py() -> None:
    from gpudb import __version__, version

    assert __version__ == version.__version__
