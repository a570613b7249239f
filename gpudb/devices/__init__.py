"""Devices: where programs run.  One module a device, one class each; `Devices` chooses between them.

cpu        kernels compiled by the host compiler, all cores
cuda       the same kernels compiled by NVRTC, on the first NVIDIA GPU
reference  NumPy, running the opcode table's bodies: slow, always there, the living definition
lanes      for tests: the cpu's kernels with many lanes a block, as a GPU runs them; no session can choose it
"""

from __future__ import annotations

import importlib.util
import logging
import threading
from collections.abc import Mapping
from typing import Any

from gpudb.devices.costs import Costs, Demand
from gpudb.errors import DeviceError, DeviceMemoryError

logger = logging.getLogger("gpudb")

UNDECIDED = "auto"  # the reason that choose() gives where cheapest() has to be asked


class Devices:
    """The devices of one process, made when first used."""

    def __init__(self) -> None:
        self.costs = Costs()
        self._made: dict[Any, Any] = {}
        self._missing: dict[str, DeviceError] = {}
        self._logged: set[str] = set()
        self._lock = threading.RLock()
        self._starting: threading.Thread | None = None
        self._has_cupy: bool | None = None  # not looked for yet: 0.2 ms

    def choose(self, settings: Mapping[str, Any]) -> tuple[Any, str, str | None]:
        """(device, reason, fallback or None) for SET device.  Raises DeviceError where the wanted one cannot be had."""
        wanted = settings["device"]
        if wanted == "reference":
            return self._device("reference", settings), "SET device = 'reference'", None
        reason, fallback = f"SET device = '{wanted}'", None
        if wanted in ("gpu", "gpu!"):
            try:
                return self._gpu(settings), reason, None
            except DeviceError as error:
                if wanted == "gpu!":
                    hint = error.hint or "SET device = 'gpu' runs queries elsewhere where there is none"
                    raise DeviceError(f"no GPU can be used: {error.message}", hint=hint) from None
                fallback = f"gpu: {error.message}"
            self._log_once(fallback)
        if wanted == "auto":
            why = self.why_no_gpu()
            reason = UNDECIDED if why is None else f"no GPU: {why}" if self._has_cupy else "no GPU"
        try:
            return self._device("cpu", settings), reason, fallback
        except DeviceError as error:
            if wanted == "cpu":
                raise
            missing = f"cpu: {error.message}"
            self._log_once(missing)
            return self._device("reference", settings), "no host library", missing

    def off_gpus(self, settings: Mapping[str, Any], why: str) -> tuple[Any, str, str | None]:
        """As choose(), for a statement that no GPU can run, for the reason given: a DeviceError under gpu!."""
        wanted = settings["device"]
        if wanted == "gpu!":
            hint = "SET device = 'gpu' runs such statements on the CPU"
            raise DeviceError(f"no GPU can be used: {why}", hint=hint)
        if wanted not in ("auto", "gpu"):
            return self.choose(settings)
        reason, fallback = f"{wanted}: {why}", None
        if wanted == "gpu":
            reason, fallback = "SET device = 'gpu'", f"gpu: {why}"
            self._log_once(fallback)
        try:
            return self.choose({**settings, "device": "cpu"})[0], reason, fallback
        except DeviceError as error:
            missing = f"cpu: {error.message}"
            self._log_once(missing)
            fallback = missing if fallback is None else f"{fallback}; {missing}"
            return self._device("reference", settings), reason, fallback

    def cheapest(self, cpu: Any, settings: Mapping[str, Any], demand: Demand) -> tuple[Any, str]:
        """(device, reason) for a statement under auto: the GPU where it would be done sooner, by what was measured.

        The first statement that is long enough to be worth it has a GPU started, and does not wait for that: the kernels
        may have to be compiled first.
        """
        on_cpu = self.costs.cpu_seconds(demand)
        if on_cpu < self.costs.worth_a_gpu_s:
            return cpu, f"auto: about {on_cpu * 1e3:.1f} ms on cpu, too little for a GPU"
        gpu = self._made.get("cuda")
        if gpu is None:
            self._start_gpu(settings)
            return cpu, "auto: a GPU is being started"
        on_gpu = self.costs.gpu_seconds(demand, gpu)
        figures = f"about {on_cpu * 1e3:.1f} ms on cpu, {on_gpu * 1e3:.1f} ms on {gpu.name}"
        return (gpu if on_gpu < on_cpu else cpu), f"auto: {figures}"

    def _start_gpu(self, settings: Mapping[str, Any]) -> None:
        """Make the GPU in a thread of its own, once."""

        def start() -> None:
            try:
                self._gpu(settings)
            except DeviceError as error:
                self._log_once(f"gpu: {error.message}")
                if "cuda" not in self._missing:
                    self._starting = None  # others have its memory now: the next statement tries again

        with self._lock:
            if self._starting is None:
                self._starting = threading.Thread(target=start, name="gpudb starts a GPU", daemon=True)
                self._starting.start()

    def wait_for_gpu(self) -> None:
        """Wait until a GPU that is being started is there, or is known to be missing."""
        starting = self._starting
        if starting is not None:
            starting.join()

    def after(self, device: Any, error: DeviceError, settings: Mapping[str, Any]) -> tuple[Any, str]:
        """(device, why) to run a statement on that failed on a GPU; raises the error where it may run nowhere else."""
        if device.name != "cuda" or settings["device"] == "gpu!":
            raise error
        why = f"gpu: {error.message}"
        self._log_once(why, type(error).__name__)
        device, _, missing = self.choose({**settings, "device": "auto"})
        return device, why if missing is None else f"{why}; {missing}"

    def why_no_gpu(self) -> str | None:
        """Why no GPU can be used, or None where one may be: it is looked for when it is first wanted."""
        if "cuda" in self._missing:
            return self._missing["cuda"].message
        made = self._made.get("cuda")
        if made is not None:
            return None if made.lost is None else f"device cuda: lost: {made.lost}"
        if self._has_cupy is None:
            self._has_cupy = importlib.util.find_spec("cupy") is not None
        if not self._has_cupy:
            self._missing["cuda"] = DeviceError(
                "device cuda: CuPy is not installed", hint="pip install 'gpudb-engine[gpu]'"
            )
            return self._missing["cuda"].message
        return None

    def _gpu(self, settings: Mapping[str, Any]) -> Any:
        """The GPU.  Raises DeviceError where there is none, or it is lost."""
        why = self.why_no_gpu()
        if why is not None:
            missing = self._missing.get("cuda")
            raise DeviceError(why, hint="start this process anew" if missing is None else missing.hint)
        return self._device("cuda", settings)

    def _log_once(self, text: str, kind: str | None = None) -> None:
        """Warn of a fallback, the first time or the first of its kind; receipts tell of each."""
        if (kind or text) not in self._logged:
            self._logged.add(kind or text)
            logger.warning("fallback: %s", text)

    def _device(self, name: str, settings: Mapping[str, Any]) -> Any:
        key: Any = name
        if name != "reference" and name in self._missing:
            raise self._missing[name]
        if name == "cpu":
            key = (name, settings["threads"], settings["tile_rows"])
        made = self._made.get(key)
        if made is None:
            with self._lock:
                made = self._made.get(key)
                if made is None:
                    try:
                        made = self._made[key] = self._make(name, settings)
                    except DeviceMemoryError:
                        raise  # others have the memory now, and may give it back
                    except DeviceError as error:
                        self._missing[name] = DeviceError(error.message, hint=error.hint)
                        raise
        return made

    @staticmethod
    def _make(name: str, settings: Mapping[str, Any]) -> Any:
        if name == "cpu":
            from gpudb.devices.cpu import CpuDevice

            return CpuDevice(settings["threads"], settings["tile_rows"])
        if name == "cuda":
            from gpudb.devices.cuda import CudaDevice

            return CudaDevice()
        from gpudb.devices.reference import ReferenceDevice

        return ReferenceDevice()
