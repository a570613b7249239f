"""Everything that must not change a byte of an answer: device, threads, lanes, tile, instructions, row groups, batches."""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from gpudb.devices import Devices
from gpudb.devices.cpu import CpuDevice
from gpudb.devices.lanes import LanesDevice
from gpudb.devices.reference import ReferenceDevice
from gpudb.errors import DeviceError
from gpudb.kernels import host_source
from gpudb.kernels.host_build import built_library, host_library, levels, machine_level, packaged_name
from gpudb.session import Database, Session
from gpudb.storage import arrow
from gpudb.storage.table import TableBuilder, TableVersion

BUILT = Path(__file__).parents[2] / "build" / "host"  # where .ci/run leaves the libraries of all levels
NAN = {pa.float64(): np.uint64(0x7FF8000000000000), pa.float32(): np.uint32(0x7FC00000)}


@dataclass(frozen=True)
class Variant:
    """One device, as it may be set up.

    device   reference, cpu, lanes or cuda, which is the GPU where there is one, and else played
    threads  of the cpu; blocks of a launch on lanes
    lanes    of a block, on lanes
    level    of instructions, on the cpu; None for the highest that this machine runs
    """

    device: str
    threads: int = 1
    tile_rows: int = 1024
    lanes: int = 32
    level: str | None = None

    def make(self) -> Any:
        """The device."""
        if self.device == "reference":
            return ReferenceDevice()
        if self.device == "cpu":
            return CpuDevice(self.threads, self.tile_rows, library_of(self.level))
        if self.device == "cuda":
            return cuda_device(self.tile_rows)
        return LanesDevice(self.threads, self.tile_rows, lanes=self.lanes)


class OneDevice(Devices):
    """Chooses the same device whatever the settings say; where that fails, so does the statement."""

    def __init__(self, device: Any) -> None:
        super().__init__()
        self.device = device

    def choose(self, settings: Any) -> tuple[Any, str, str | None]:
        return self.device, "a test", None

    def after(self, device: Any, error: DeviceError, settings: Any) -> tuple[Any, str]:
        raise error


@cache
def device(variant: Variant) -> Any:
    return variant.make()


def session_on(made: Any, tables: Sequence[TableVersion]) -> Session:
    """A session of its own database that holds the tables and runs on one device."""
    database = Database()
    database.storage.commit({table.name: table for table in tables}, database.storage.version)
    database.devices = OneDevice(made)
    return Session(database)


def cuda_device(tile_rows: int) -> Any:
    """The device cuda, on a fake that stays until this process ends."""
    from gpudb.devices.cuda import CudaDevice

    if importlib.util.find_spec("cupy") is not None:
        with contextlib.suppress(DeviceError):
            return CudaDevice(tile_rows)
    from tests.devices.fake_cupy import LANES, fake_gpu

    with fake_gpu() as gpu:  # other tests of this process must not find it, but the device lives on
        atexit.register(gpu.close)
        gpu.close = lambda: None  # type: ignore[method-assign]
        return CudaDevice(tile_rows, LANES)


def runnable_levels() -> tuple[str, ...]:
    """The levels that this processor runs."""
    known = levels()
    return known[: known.index(machine_level()) + 1]


def ready_levels() -> tuple[str, ...]:
    """Those whose library is there already, or is needed anyway: compiling one takes half a minute."""
    ready = {level for level in runnable_levels() if _built(level) or built_library(host_source(), level)}
    return tuple(level for level in runnable_levels() if level in ready | {machine_level()})


def library_of(level: str | None) -> Path | None:
    """The kernels for one level, compiled unless they are there; None for None."""
    return None if level is None else _built(level) or host_library(host_source(), level)


def _built(level: str) -> Path | None:
    path = BUILT / packaged_name(host_source(), level)
    return path if path.is_file() else None


def stored(table: pa.Table, row_group_rows: int, cuts: Sequence[int], name: str = "t") -> TableVersion:
    """The rows as a table version of such row groups, appended in batches that end at `cuts`."""
    version = None
    for start, stop in zip([0, *cuts], [*cuts, table.num_rows], strict=True):
        builder = TableBuilder(arrow.columns_of(table.schema), row_group_rows, previous=version)
        builder.append(table.slice(start, stop - start))
        version = builder.finish(name)
    assert version is not None
    return replace(version, name=name)


def assert_canonical(table: pa.Table) -> None:
    """Zero bits and bytes under NULL and behind the last row, one NaN, no validity where nothing is NULL."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        for chunk in column.chunks:
            assert chunk.offset == 0, name
            _assert_canonical_array(name, chunk)


def _assert_canonical_array(name: str, array: pa.Array) -> None:
    rows, kind = len(array), array.type
    validity, data = array.buffers()[:2]
    present = np.ones(rows, bool)
    assert (validity is None) == (array.null_count == 0), f"{name}: validity without NULL"
    if validity is not None:
        bits = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")
        present = bits[:rows].astype(bool)
        assert not bits[rows:].any(), f"{name}: bits behind the last row"
        assert rows - int(present.sum()) == array.null_count, f"{name}: number of NULLs"
    if pa.types.is_dictionary(kind):
        _assert_canonical_array(name, array.indices)
        _assert_canonical_array(name, array.dictionary)
    elif pa.types.is_list(kind):
        offsets = np.frombuffer(data, np.int32)
        assert len(offsets) == rows + 1 and offsets[0] == 0, f"{name}: offsets"
        assert int(offsets[-1]) == len(array.values), f"{name}: elements behind the last list"
        assert not np.diff(offsets)[~present].any(), f"{name}: elements under NULL"
        _assert_canonical_array(name, array.values)
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        offsets = np.frombuffer(data, np.int32)
        assert len(offsets) == rows + 1 and offsets[0] == 0, f"{name}: offsets"
        text = array.buffers()[2]
        assert int(offsets[-1]) == (0 if text is None else text.size), f"{name}: bytes behind the last text"
        assert not np.diff(offsets)[~present].any(), f"{name}: text under NULL"
    elif pa.types.is_boolean(kind):
        bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
        assert not bits[rows:].any() and not bits[:rows][~present].any(), f"{name}: bits under NULL or behind the end"
    else:
        width = kind.bit_width // 8
        values = np.frombuffer(data, np.uint8)
        assert len(values) == rows * width, f"{name}: bytes behind the last value"
        assert not values.reshape(rows, width)[~present].any(), f"{name}: bytes under NULL"
        if kind in NAN:
            numbers = values.view(kind.to_pandas_dtype())
            patterns = set(numbers.view(NAN[kind].dtype)[np.isnan(numbers)].tolist())
            assert patterns <= {int(NAN[kind])}, f"{name}: patterns of NaN {[hex(p) for p in patterns]}"
