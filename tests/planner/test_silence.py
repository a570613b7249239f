"""The parser underneath does not talk to the user."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gpudb
try:
    gpudb.connect().execute("CREATE SECRET s (TYPE S3)")
except gpudb.NotSupportedError as error:
    print(error.message)
"""


def test_a_statement_that_sqlglot_does_not_know_leaves_standard_error_empty() -> None:
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    assert "not supported" in found.stdout
    assert found.stderr == ""
