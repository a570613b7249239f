"""The dialects by name, also where the installed package is older than these files."""

from __future__ import annotations

from sqlalchemy.dialects import registry

registry.register("gpudb", "gpudb.sqlalchemy", "GpudbDialect")
registry.register("gpudb.flight", "gpudb.sqlalchemy", "GpudbFlightDialect")
