"""TPC-H's eight tables as Parquet files, by `tpchgen-cli`, which gives the bytes of the TPC's own generator."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

TABLES = ("lineitem", "orders", "partsupp", "part", "customer", "supplier", "nation", "region")


def write(folder: Path, scale: float) -> dict[str, str]:
    """Name → Parquet file of each table at a scale factor; made unless they are there already.

    Raises FileNotFoundError where tpchgen-cli is not installed.
    """
    folder = folder / f"tpch-{scale:g}"
    if not folder.exists():
        program = shutil.which("tpchgen-cli", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        if program is None:
            raise FileNotFoundError("tpchgen-cli is not installed: pip install tpchgen-cli")
        partial = folder.with_name(f"{folder.name}.{os.getpid()}.partial")
        subprocess.run(
            [program, "parquet", "-s", f"{scale:g}", "--output-dir", str(partial)], check=True, capture_output=True
        )
        partial.rename(folder)
    return {table: str(folder / f"{table}.parquet") for table in TABLES}
