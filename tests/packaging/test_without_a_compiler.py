"""On a machine without any C++ compiler: a clear message from `cpu`, and right answers from `reference`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# Hides the package ziglang, too; then runs one statement and prints what came of it as JSON.
SCRIPT = """
import importlib.util, json, logging, sys
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "ziglang" else find_spec(name, *rest)
import gpudb
lines = []
handler = logging.Handler()
handler.emit = lambda record: lines.append(record.getMessage())
logging.getLogger("gpudb").addHandler(handler)
cursor = gpudb.connect().cursor()
try:
    cursor.execute("SET device = '" + sys.argv[1] + "'")
    for statement in sys.argv[2:]:
        cursor.execute(statement)
    rows = cursor.fetchall()
    print(json.dumps({"rows": rows, "receipt": cursor.receipt, "log": lines}))
except gpudb.Error as error:
    print(json.dumps({"error": type(error).__name__, "text": str(error)}))
"""

STATEMENTS = (
    "CREATE TABLE flights (carrier VARCHAR, delay INTEGER)",
    "INSERT INTO flights VALUES ('AA', 10), ('UA', -3), ('AA', NULL), (NULL, 5), ('UA', 4)",
    """SELECT carrier, count(*), CAST(sum(delay) AS BIGINT), max(delay) FROM flights
       WHERE delay IS NULL OR delay > -10 GROUP BY carrier ORDER BY carrier NULLS LAST""",
)
ROWS = [["AA", 2, 10, 10], ["UA", 2, 1, 4], [None, 1, 5, 5]]


def run(folder: Path, device: str) -> dict[str, Any]:
    """What STATEMENTS give on `device` in a process that finds no compiler and no library."""
    environment = {"PATH": str(folder), "GPUDB_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-c", SCRIPT, device, *STATEMENTS]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_cpu_says_what_it_looked_for_and_what_to_do(tmp_path: Path) -> None:
    answer = run(tmp_path, "cpu")
    assert answer["error"] == "DeviceError"
    for words in ("no C++ compiler", "CXX", "g++", "clang++", "pip install ziglang", "SET device = 'reference'"):
        assert words in answer["text"]


@pytest.mark.parametrize("device", ["auto", "reference"])
def test_reference_answers_rightly(device: str, tmp_path: Path) -> None:
    answer = run(tmp_path, device)
    assert answer.get("rows") == ROWS, answer
    assert answer["receipt"]["device"] == "reference"


def test_auto_says_in_receipt_and_log_why_it_left_the_cpu(tmp_path: Path) -> None:
    answer = run(tmp_path, "auto")
    assert "no C++ compiler" in answer["receipt"]["fallback"]
    assert len([line for line in answer["log"] if "no C++ compiler" in line]) == 1
