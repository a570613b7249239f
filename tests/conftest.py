"""What every test shares: how much hypothesis tries, and the seed of samples."""

from __future__ import annotations

import os
import time

import pytest
from hypothesis import HealthCheck, settings

# Derandomized: a red run is red again.  No deadline: the machine may be busy, and the first query builds the kernels.
settings.register_profile(
    "quick", max_examples=50, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("full", max_examples=2_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("quick")


def pytest_configure() -> None:
    """Another sample in every run; the processes of one run inherit its seed."""
    os.environ.setdefault("GPUDB_TEST_SEED", str(int(time.time())))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"samples of this run: GPUDB_TEST_SEED={os.environ['GPUDB_TEST_SEED']}")


@pytest.fixture
def sample_seed() -> int:
    """The seed of tests that try a sample in the quick set, and everything in the slow one."""
    return int(os.environ["GPUDB_TEST_SEED"])
