"""The dialects and the ADBC driver by name: an editable install has no driver, and may be older than these files."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from sqlalchemy.dialects import registry

registry.register("gpudb", "gpudb.sqlalchemy", "GpudbDialect")
registry.register("gpudb.flight", "gpudb.sqlalchemy", "GpudbFlightDialect")

_DRIVER = Path(__file__).parents[2] / "server" / "adbc_driver_gpudb" / "__init__.py"
_spec = importlib.util.spec_from_file_location(
    "adbc_driver_gpudb", _DRIVER, submodule_search_locations=[str(_DRIVER.parent)]
)
assert _spec is not None and _spec.loader is not None
sys.modules["adbc_driver_gpudb"] = _module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
