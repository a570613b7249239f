"""Settings of a session: their names, defaults, and how SET's values are read."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gpudb import time_zones
from gpudb.errors import BindError, NotSupportedError
from gpudb.record import record

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
         "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}  # fmt: skip
DEVICES = ("auto", "cpu", "gpu", "gpu!", "reference")


@record
class Setting:
    """One setting: what it means, its default, and the reader of a new value (raises ValueError with the reason)."""

    meaning: str
    default: Callable[[], Any]
    read: Callable[[Any], Any]


def read_size(value: Any) -> int:
    """'1GB', '512 MiB' or a number of bytes."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", str(value))
    if match is None or match[2].upper() not in UNITS:
        raise ValueError("expected a size such as 512MB, 1.5GiB or a number of bytes")
    size = int(float(match[1]) * UNITS[match[2].upper()])
    if size <= 0:
        raise ValueError("a size must be positive")
    return size


def _read_limit(value: Any) -> int:
    return 0 if str(value).strip() in ("0", "-1") else read_size(value)


def _read_threads(value: Any) -> int:
    threads = int(str(value))
    if not 1 <= threads <= 256:
        raise ValueError("expected 1 to 256 threads")
    return threads


def _read_boolean(value: Any) -> bool:
    text = str(value).lower()
    if text not in ("true", "false", "on", "off", "1", "0"):
        raise ValueError("expected true or false")
    return text in ("true", "on", "1")


def _read_device(value: Any) -> str:
    text = str(value).lower()
    if text not in DEVICES:
        raise ValueError(f"expected one of {', '.join(DEVICES)}")
    return text


def _read_seconds(value: Any) -> float:
    seconds = float(value)
    if not 0 <= seconds < math.inf:  # nan is past no limit
        raise ValueError("expected seconds, 0 for no limit")
    return seconds


def _read_tile_rows(value: Any) -> int:
    rows = int(str(value))
    if not (64 <= rows <= 4096 and rows & (rows - 1) == 0):
        raise ValueError("expected a power of two from 64 to 4096")
    return rows


def _read_zone(value: Any) -> str:
    try:
        return time_zones.zone_name(str(value))
    except NotSupportedError as error:
        raise ValueError(f"{error.message}; {error.hint}" if error.hint else error.message) from None


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 8 // 10


SETTINGS: dict[str, Setting] = {
    "device": Setting(
        "where programs run: auto, cpu, gpu, gpu! (never elsewhere), reference", lambda: "auto", _read_device
    ),
    "threads": Setting("threads of the device cpu", lambda: len(os.sched_getaffinity(0)), _read_threads),
    "memory_limit": Setting("bytes that a statement may hold", _memory, read_size),
    "temp_directory": Setting(
        "folder for what memory_limit leaves no room for: auto (a database directory's own, none in memory), '' for none",
        lambda: "auto",
        str,
    ),
    "max_temp_directory_size": Setting(
        "bytes that a statement may take of temp_directory, 0 for no limit", lambda: 0, _read_limit
    ),
    "statement_timeout": Setting("seconds a statement may run, 0 for no limit", lambda: 0.0, _read_seconds),
    "integer_division": Setting("/ of integers gives an integer", lambda: False, _read_boolean),
    "plan_cache": Setting("keep plans for statements of one shape", lambda: True, _read_boolean),
    "tile_rows": Setting("rows of a tile on the device cpu", lambda: 1024, _read_tile_rows),
    "timezone": Setting(
        "zone that timestamps with time zone are read and shown in", time_zones.system_zone, _read_zone
    ),
    "slow_query_seconds": Setting("statements slower than this are logged, 0 for none", lambda: 0.0, _read_seconds),
}
ALIASES = {"max_memory": "memory_limit", "worker_threads": "threads"}


class Settings(Mapping[str, Any]):
    """Current values; a mapping for readers."""

    def __init__(self) -> None:
        self._values = {name: setting.default() for name, setting in SETTINGS.items()}

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    @staticmethod
    def canonical(name: str) -> str:
        """The setting a user means; BindError when there is none."""
        found = ALIASES.get(name.lower(), name.lower())
        if found not in SETTINGS:
            raise BindError(f"no such setting: {name}", hint=f"settings are {', '.join(sorted(SETTINGS))}")
        return found

    def set(self, name: str, value: Any) -> None:
        """SET name = value."""
        key = self.canonical(name)
        try:
            self._values[key] = SETTINGS[key].read(value)
        except (ValueError, TypeError, OverflowError) as error:
            raise BindError(f"bad value for setting {key}: {value!r}", hint=str(error)) from None

    def reset(self, name: str) -> None:
        """RESET name: back to the default."""
        key = self.canonical(name)
        self._values[key] = SETTINGS[key].default()
