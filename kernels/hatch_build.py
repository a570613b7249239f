"""Hatch build hook: compiles the host kernel library for every level into a wheel.

An editable install compiles at first use instead, and so does a wheel that was built without g++ or clang++: it is then
a wheel for any platform.  Runs in the build's own environment, before the package is installed.
"""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class HostLibraryHook(BuildHookInterface[Any]):
    """Adds gpudb/kernels/lib*.so to a standard wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable":
            return
        sys.path.insert(0, self.root)
        from gpudb.kernels import host_source
        from gpudb.kernels.host_build import build_levels, find_compiler

        compiler = find_compiler()
        if compiler is None or compiler.is_zig:  # zig first compiles a C++ library for each level: minutes
            self.app.display_warning(
                "no g++ or clang++: the wheel carries no cpu kernels and will compile them at first use"
            )
            return
        self.app.display_info(f"compiling the cpu kernels with {compiler}")
        for library in build_levels(host_source(), Path(self.root) / "build" / "host", compiler):
            build_data["force_include"][str(library)] = f"gpudb/kernels/{library.name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
