"""Settings of a client of the server: SET may lower what the operator allows, never raise it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpudb.errors import AccessError
from gpudb.settings import Settings

NO_LIMIT = {"statement_timeout": 0.0, "max_temp_directory_size": 0}  # settings of which this value means: none
OPERATOR_SETTINGS = ("temp_directory",)  # which no client may set


class LimitedSettings(Settings):
    """Settings with the operator's limits as defaults and as ceilings.

    limits  by setting; a value that means no limit is one that sets no ceiling
    """

    def __init__(self, limits: Mapping[str, Any]) -> None:
        super().__init__()
        self._limits = dict(limits)
        self._values.update(limits)

    def set(self, name: str, value: Any) -> None:
        before = dict(self._values)
        key = self.canonical(name)
        if key in OPERATOR_SETTINGS:
            raise AccessError(f"only the operator chooses {key}", hint="ask whoever runs the server")
        super().set(name, value)
        limit, new = self._limits.get(key), self._values[key]
        none = NO_LIMIT.get(key)
        if limit is not None and limit != none and (new == none or new > limit):
            self._values = before
            raise AccessError(f"the operator allows no more than {limit} for {key}")

    def reset(self, name: str) -> None:
        super().reset(name)
        key = self.canonical(name)
        if key in self._limits:
            self._values[key] = self._limits[key]
