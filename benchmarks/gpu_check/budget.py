"""How long a part of the check may still take."""

from __future__ import annotations

import time


class Budget:
    """Seconds from now on; parts of it are budgets too, which end at the same moment or sooner."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._until = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds that are left, never below 0."""
        return max(0.0, self._until - time.monotonic())

    @property
    def over(self) -> bool:
        """Is nothing left?"""
        return self.left == 0.0

    def part(self, share: float) -> Budget:
        """A share of the whole, or what is left."""
        return Budget(min(self.left, share * self.seconds))
