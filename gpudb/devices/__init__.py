"""Devices: where programs run.  One module a device, one class each; `Devices` chooses between them.

cpu        kernels compiled by the host compiler, all cores
reference  NumPy, running the opcode table's bodies: slow, always there, the living definition
lanes      for tests: the cpu's kernels with many lanes a block, as a GPU runs them; no session can choose it
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from gpudb.errors import DeviceError

logger = logging.getLogger("gpudb")


class Devices:
    """The devices of one process, made when first used."""

    def __init__(self) -> None:
        self._made: dict[Any, Any] = {}
        self._missing: dict[str, DeviceError] = {}
        self._logged: set[str] = set()

    def choose(self, settings: Mapping[str, Any]) -> tuple[Any, str, str | None]:
        """(device, reason, fallback or None) for SET device.  Raises DeviceError where the wanted one cannot be had."""
        wanted = settings["device"]
        if wanted == "reference":
            return self._device("reference", settings), "SET device = 'reference'", None
        if wanted == "gpu!":
            raise DeviceError("no GPU can be used", hint="this version runs on cpu and reference")
        fallback = "gpu: not available in this version" if wanted == "gpu" else None
        if fallback is not None:
            self._log_once(fallback)
        if wanted == "cpu":
            return self._device("cpu", settings), "SET device = 'cpu'", None
        try:
            return self._device("cpu", settings), "no GPU" if wanted == "auto" else "SET device = 'gpu'", fallback
        except DeviceError as error:
            reason = f"cpu: {error.message}"
            self._log_once(reason)
            return self._device("reference", settings), "no host library", reason

    def _log_once(self, text: str) -> None:
        if text not in self._logged:
            self._logged.add(text)
            logger.warning("fallback: %s", text)

    def _device(self, name: str, settings: Mapping[str, Any]) -> Any:
        key: Any = name
        if name == "cpu":
            if name in self._missing:
                raise self._missing[name]
            key = (name, settings["threads"], settings["tile_rows"])
        if key not in self._made:
            try:
                self._made[key] = self._make(name, settings)
            except DeviceError as error:
                self._missing[name] = error
                raise
        return self._made[key]

    @staticmethod
    def _make(name: str, settings: Mapping[str, Any]) -> Any:
        if name == "cpu":
            from gpudb.devices.cpu import CpuDevice

            return CpuDevice(settings["threads"], settings["tile_rows"])
        from gpudb.devices.reference import ReferenceDevice

        return ReferenceDevice()
