"""What every test shares: how much hypothesis tries."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Derandomized: a red run is red again.  No deadline: the machine may be busy, and the first query builds the kernels.
settings.register_profile(
    "quick", max_examples=50, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("full", max_examples=2_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("quick")
