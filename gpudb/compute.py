"""pyarrow.compute, loaded when the first of its functions is looked up: loading takes 60 ms, a seventh of the shell's start.

from gpudb import compute as pc
"""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    """One of pyarrow.compute's functions (PEP 562), kept here for the next time."""
    value = getattr(importlib.import_module("pyarrow.compute"), name)
    globals()[name] = value
    return value
