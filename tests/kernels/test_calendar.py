"""Civil dates: C++ and NumPy agree over all of int32, with Python's datetime where it reaches and DuckDB beyond."""

from __future__ import annotations

import ctypes
import datetime
import functools
import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

from gpudb import calendar

SOURCE = Path(__file__).parents[2] / "kernels" / "calendar.cuh"
FIRST, LAST = -2147483646, 2147483646

PARTS = (
    "year month day quarter day_of_year day_of_week iso_day_of_week iso_year iso_week decade century millennium".split()
)
TRUNCATIONS = ["week", "month", "quarter", "year", "decade", "century", "millennium"]
OF_DAYS = [*PARTS, "last_day", *(f"trunc_{unit}" for unit in TRUNCATIONS)]
OF_DAYS_AND_MONTHS = ["add_months", "add_months_fits"]
OF_DATES = ["days", "fits"]

TYPES = "typedef int int32; typedef long long int64; typedef unsigned uint32; typedef unsigned long long uint64;\n"
FLAGS = ["-std=c++17", "-O3", "-fPIC", "-shared", "-Wall", "-Wextra", "-Wno-unused-function"]


def host_text() -> str:
    """All functions as loops over rows, each on a line that names it."""
    loops = []
    for names, arity in [(OF_DAYS, 1), (OF_DAYS_AND_MONTHS, 2), (OF_DATES, 3)]:
        for name in names:
            parameters = ", ".join(f"const int* __restrict a{k}" for k in range(arity))
            arguments = ", ".join(f"a{k}[i]" for k in range(arity))
            loops.append(
                f'extern "C" void run_{name}({parameters}, int* __restrict out, long rows)'
                f"{{ for (long i = 0; i < rows; i++) out[i] = calendar_{name}({arguments}); }}"
            )
    return TYPES + "#define DEVICE static inline\n" + SOURCE.read_text() + "\n".join(loops)


@functools.cache
def host_library() -> ctypes.CDLL:
    with tempfile.TemporaryDirectory(prefix="calendar_") as folder:
        Path(folder, "source.cpp").write_text(host_text())
        command = ["g++", *FLAGS, "-march=x86-64-v2", "source.cpp", "-o", "library.so"]
        subprocess.run(command, cwd=folder, check=True)
        return ctypes.CDLL(str(Path(folder, "library.so")))


def run_host(name: str, *arguments: np.ndarray) -> np.ndarray:
    arrays = [np.ascontiguousarray(argument, np.int32) for argument in arguments]
    out = np.empty_like(arrays[0])
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (*arrays, out)]
    getattr(host_library(), f"run_{name}")(*pointers, ctypes.c_long(len(out)))
    return out


@functools.cache
def day_numbers() -> np.ndarray:
    """(rows,) int32: every day of 1600-2400 and of the years around 0, the ends of the range, and random days."""
    near = np.arange(-135140, 157115)
    zero = np.arange(-719528 - 150000, -719528 + 150000)
    ends = np.concatenate([np.arange(FIRST, FIRST + 2000), np.arange(LAST - 2000, LAST + 1)])
    random = np.random.default_rng(11).integers(FIRST, LAST + 1, 300_000)
    return np.concatenate([near, zero, ends, random]).astype(np.int32)


@pytest.mark.parametrize("name", OF_DAYS)
def test_cpp_and_numpy_agree_on_every_function_of_a_day(name: str) -> None:
    days = day_numbers()
    assert np.array_equal(run_host(name, days), getattr(calendar, name)(days))


@pytest.mark.parametrize("name", OF_DAYS_AND_MONTHS)
def test_cpp_and_numpy_agree_on_month_arithmetic(name: str) -> None:
    days = day_numbers()
    generator = np.random.default_rng(12)
    months = generator.integers(-100, 100, len(days))
    months[::3] = generator.integers(-(2**31), 2**31, len(months[::3]))
    assert np.array_equal(run_host(name, days, months), getattr(calendar, name)(days, months))


@pytest.mark.parametrize("name", OF_DATES)
def test_cpp_and_numpy_agree_on_dates(name: str) -> None:
    generator = np.random.default_rng(13)
    year = generator.integers(-6_000_000, 6_000_000, 500_000)
    year[::5] = generator.choice(
        [-5877642, -5877641, -5877640, 5881579, 5881580, 5881581, 0, -1, 1, 2000], len(year[::5])
    )
    month, day = generator.integers(1, 13, len(year)), generator.integers(1, 32, len(year))
    assert np.array_equal(run_host(name, year, month, day), getattr(calendar, name)(year, month, day))


def test_every_day_that_datetime_knows_has_its_parts() -> None:
    epoch = datetime.date(1970, 1, 1).toordinal()
    days = np.arange(1 - epoch, datetime.date.max.toordinal() - epoch + 1, 7, dtype=np.int32)
    dates = [datetime.date.fromordinal(int(number) + epoch) for number in days]
    iso = np.array([date.isocalendar() for date in dates])
    expected = {
        "year": [date.year for date in dates],
        "month": [date.month for date in dates],
        "day": [date.day for date in dates],
        "day_of_year": [date.timetuple().tm_yday for date in dates],
        "day_of_week": [date.isoweekday() % 7 for date in dates],
        "iso_year": iso[:, 0],
        "iso_week": iso[:, 1],
        "iso_day_of_week": iso[:, 2],
    }
    for name, values in expected.items():
        assert np.array_equal(run_host(name, days), np.array(values)), name


def test_a_date_and_its_day_number_are_inverse_over_the_whole_range() -> None:
    days = day_numbers()
    date = [run_host(name, days) for name in ("year", "month", "day")]
    assert np.array_equal(run_host("days", *date), days)
    assert run_host("fits", *date).all()


def test_the_range_ends_where_duckdb_ends_it() -> None:
    year = np.array([-5877641, -5877641, 5881580, 5881580])
    month, day = np.array([6, 6, 7, 7]), np.array([25, 24, 10, 11])
    assert run_host("fits", year, month, day).tolist() == [1, 0, 1, 0]
    assert run_host("days", year[::2], month[::2], day[::2]).tolist() == [FIRST, LAST]
    assert calendar.add_months_fits([LAST, LAST, FIRST], [-1, 1, 2**31 - 1]).tolist() == [True, False, False]


def test_month_arithmetic_ends_in_the_last_day_of_a_short_month() -> None:
    cases = [
        ((2024, 1, 31), 1, (2024, 2, 29)),
        ((2024, 2, 29), 12, (2025, 2, 28)),
        ((2024, 2, 29), -12, (2023, 2, 28)),
        ((2023, 12, 31), 2, (2024, 2, 29)),
        ((0, 1, 31), -11, (-1, 2, 28)),
        ((-5, 3, 31), -25, (-7, 2, 28)),
        ((2024, 5, 31), -3, (2024, 2, 29)),
        ((2024, 5, 31), 0, (2024, 5, 31)),
    ]
    for start, months, end in cases:
        assert calendar.add_months(calendar.days(*start), months) == calendar.days(*end)


def test_duckdb_gives_the_same_parts_truncations_and_sums() -> None:
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is the oracle of this test")
    generator = np.random.default_rng(14)
    reach = 105_000_000  # years -285000 .. 289000: date_trunc and date + INTERVAL give timestamps
    wide = generator.integers(-reach, reach, 40_000)
    near = generator.integers(-900_000, 200_000, 60_000)
    days = np.concatenate([wide, near]).astype(np.int32)
    months = generator.integers(-500, 500, len(days)).astype(np.int32)
    renamed = {"day_of_year": "doy", "day_of_week": "dow", "iso_day_of_week": "isodow"}
    renamed |= {"iso_year": "isoyear", "iso_week": "week"}
    columns = [f"extract({renamed.get(part, part)} from d) AS {part}" for part in PARTS]
    columns += [f"date_trunc('{unit}', d)::DATE - DATE '1970-01-01' AS trunc_{unit}" for unit in TRUNCATIONS]
    columns += ["last_day(d) - DATE '1970-01-01' AS last_day"]
    columns += ["(d + to_months(months))::DATE - DATE '1970-01-01' AS add_months"]
    connection = duckdb.connect()
    connection.register("numbers", {"days": days, "months": months})
    query = f"SELECT {', '.join(columns)} FROM (SELECT DATE '1970-01-01' + days AS d, months FROM numbers)"
    expected = connection.execute(query).fetchnumpy()
    for name in OF_DAYS:
        assert np.array_equal(run_host(name, days), expected[name]), name
    assert np.array_equal(run_host("add_months", days, months), expected["add_months"])


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_every_loop_vectorises(level: str, tmp_path: Path) -> None:
    text = host_text()
    (tmp_path / "source.cpp").write_text(text)
    command = ["g++", *FLAGS, f"-march={level}", "-fopt-info-vec-optimized", "source.cpp", "-o", "library.so"]
    report = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stderr
    lines = text.splitlines()
    vectorised = set()
    for line in re.findall(r"source\.cpp:(\d+):\d+: optimized: +loop vectorized", report):
        vectorised.update(re.findall(r"void run_(\w+)", lines[int(line) - 1]))
    assert {*OF_DAYS, *OF_DAYS_AND_MONTHS, *OF_DATES} == vectorised


def test_nvrtc_compiles_the_same_text_without_a_gpu() -> None:
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed: hosts only")
    calls = "\n".join(f"out[i] += calendar_{name}(a[i]);" for name in OF_DAYS)
    calls += "out[i] += calendar_add_months(a[i], b[i]) + calendar_add_months_fits(a[i], b[i]);"
    calls += "out[i] += calendar_days(a[i], b[i], 1) + calendar_fits(a[i], b[i], 1);"
    head = 'extern "C" __global__ void all(const int* a, const int* b, int* out)'
    kernel = f"{head} {{ int i = threadIdx.x; {calls} }}"
    text = TYPES + "#define DEVICE static __device__ __forceinline__\n" + SOURCE.read_text() + kernel
    _, program = nvrtc.nvrtcCreateProgram(text.encode(), b"calendar.cu", 0, [], [])
    options = [b"--gpu-architecture=sm_90", b"-std=c++17"]
    (outcome,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = bytearray(size)  # NVRTC writes here: `bytes` of one character are shared by the whole process
    nvrtc.nvrtcGetProgramLog(program, log)
    assert outcome == nvrtc.nvrtcResult.NVRTC_SUCCESS, log.decode()
