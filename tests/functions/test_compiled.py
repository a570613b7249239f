"""The C++ of scalar functions: compiled by the host compiler, it gives the bytes of the NumPy bodies, for any bits."""

from __future__ import annotations

import ctypes
import functools
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

from gpudb.functions.registry import FUNCTIONS, Overload, parse_type
from gpudb.types import Interval, RegisterType
from tests.functions import oracle

KERNELS = Path(__file__).parents[2] / "kernels"
FILES = ["platform.h", "scalar.cuh", "portable.cuh", "calendar.cuh", "functions.cuh"]
FLAGS = ["-std=c++17", "-O1", "-ffp-contract=off", "-fno-math-errno", "-fPIC", "-shared", "-w", "-fwrapv"]


def scalars() -> list[Overload]:
    found = {id(f): f for f in FUNCTIONS.values()}.values()
    return [o for f in found for o in f.overloads if o.kind == "scalar"]


def pieces(overload: Overload) -> list[tuple[str, RegisterType, object]]:
    """(C++ expression, register of its value, NumPy body): the value, then the conditions."""
    found = [(overload.cpp, overload.result.register, overload.body)]
    for condition in (overload.domain, overload.null_when):
        if condition is not None:
            found.append((condition[0], RegisterType.MASK, condition[1]))
    return found


def operands(overload: Overload) -> list[tuple[str, RegisterType, bool]]:
    """(name, register, whether it is constant) of what C++ sees: an INTERVAL is three constants."""
    found = []
    for name, kind in zip(overload.parameters, overload.arguments, strict=True):
        if kind == "INTERVAL":
            found += [(f"{name}_months", RegisterType.I32, True), (f"{name}_days", RegisterType.I32, True)]
            found += [(f"{name}_microseconds", RegisterType.I64, True)]
        else:
            found.append((name, parse_type(kind).register, False))
    return found


def loop(number: int, overload: Overload, cpp: str, out: RegisterType) -> str:
    """One extern "C" function over rows."""
    parameters = "".join(
        f", {r.cpp} {name}" if constant else f", const {r.cpp}* column_{name}"
        for name, r, constant in operands(overload)
    )
    loads = "".join(
        f"const {r.cpp} {name} = column_{name}[row]; " for name, r, constant in operands(overload) if not constant
    )
    return (
        f'extern "C" void run_{number}(int64 rows, {out.cpp}* out{parameters}) {{\n'
        f"    for (int64 row = 0; row < rows; ++row) {{ {loads}out[row] = {out.cpp}({cpp}); }}\n}}\n"
    )


@functools.cache
def library() -> tuple[ctypes.CDLL, dict[tuple[int, int], int]]:
    """Everything compiled once, and the number of each (overload, piece)."""
    text = [(KERNELS / name).read_text() for name in FILES if (KERNELS / name).exists()]
    text.insert(1, "template <class T> struct TypeTag {};\n")
    numbers: dict[tuple[int, int], int] = {}
    for overload in scalars():
        for piece, (cpp, out, _) in enumerate(pieces(overload)):
            numbers[id(overload), piece] = len(numbers)
            text.append(loop(len(numbers) - 1, overload, cpp, out))
    folder = Path(tempfile.mkdtemp(prefix="scalar_functions_"))
    (folder / "source.cpp").write_text("\n".join(text))
    subprocess.run(["g++", *FLAGS, "source.cpp", "-o", "library.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "library.so")), numbers


def arguments(overload: Overload, seed: int) -> list:
    """Register arrays: the usual random values, then arbitrary bits, as rows that do not count may hold."""
    generator = np.random.default_rng(seed)
    columns = oracle.random_columns(overload, {}, seed)
    found = []
    for kind, column in zip(overload.arguments, columns, strict=True):
        if isinstance(column, Interval):
            found.append(column)
            continue
        usual = oracle.register_array(kind, column)
        if usual.dtype == object:
            found.append(np.concatenate([usual, usual]))
        else:
            bits = generator.integers(0, 256, usual.nbytes, np.uint8).view(usual.dtype)
            found.append(np.concatenate([usual, bits & 1 if kind == "BOOLEAN" else bits]))
    return found


def as_pointer(array: np.ndarray) -> tuple[np.ndarray, ctypes.c_void_p]:
    """Memory that C++ reads; int128 as two words."""
    if array.dtype == object:
        words = np.array([[v & (1 << 64) - 1, (v >> 64) & (1 << 64) - 1] for v in map(int, array)], np.uint64)
        array = np.ascontiguousarray(words)
    array = np.ascontiguousarray(array)
    return array, ctypes.c_void_p(array.ctypes.data)


def run(number: int, overload: Overload, columns: list, out: RegisterType) -> np.ndarray:
    rows = next(len(c) for c in columns if not isinstance(c, Interval))
    result = np.zeros((rows, 2), np.uint64) if out is RegisterType.I128 else np.zeros(rows, out.dtype)
    keep, given = [], []
    for column in columns:
        if isinstance(column, Interval):
            given += [ctypes.c_int32(column.months), ctypes.c_int32(column.days), ctypes.c_int64(column.microseconds)]
        else:
            array, pointer = as_pointer(column)
            keep.append(array)
            given.append(pointer)
    getattr(library()[0], f"run_{number}")(ctypes.c_int64(rows), ctypes.c_void_p(result.ctypes.data), *given)
    if out is RegisterType.I128:
        values = [int(low) | int(high) << 64 for low, high in result]
        return np.array([v - (1 << 128) if v >> 127 else v for v in values], object)
    return result


def same_bytes(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Row by row; one NaN is as good as another where the registers still hold any."""
    if a.dtype.kind == "f":
        bits = f"u{a.dtype.itemsize}"
        return (np.isnan(a) & np.isnan(b)) | (np.ascontiguousarray(a).view(bits) == np.ascontiguousarray(b).view(bits))
    return a == b


@pytest.mark.parametrize("overload", scalars(), ids=lambda o: f"{o.name}({', '.join(o.arguments)})")
def test_compiled_expression_gives_the_bytes_of_its_body(overload: Overload) -> None:
    for seed in range(1 + 3 * ("INTERVAL" in overload.arguments)):
        columns = arguments(overload, seed)
        for piece, (cpp, out, body) in enumerate(pieces(overload)):
            compiled = run(library()[1][id(overload), piece], overload, columns, out)
            with np.errstate(all="ignore"):
                expected = np.broadcast_to(np.asarray(body(*columns)), compiled.shape).astype(out.dtype)
            equal = same_bytes(compiled, expected)
            row = int(np.argmin(equal))
            shown = [c if isinstance(c, Interval) else c[row] for c in columns]
            assert equal.all(), f"{cpp} of {shown}: {compiled[row]!r}, not {expected[row]!r}"
