"""The device `cpu` on memory in which anything lies: what is read before it is written is far from what was meant."""

from __future__ import annotations

from typing import Any

from gpudb.devices.cpu import CpuDevice

POISON = 0x7F  # as a row number 2**31, as a double a huge one, as a mask neither 0 nor 1


class PoisonedDevice(CpuDevice):
    """As `cpu`, but memory that it gives out has no zeros by luck."""

    name = "poisoned"

    def empty(self, size: int) -> Any:
        memory = super().empty(size)
        memory[:] = POISON
        return memory
