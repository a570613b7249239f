"""Portable math: the same bytes from C++ and NumPy, within 2 ulp of an independent oracle, and NVRTC takes the text.

The oracle is the 80-bit `long double` of the host's C library: through NumPy where NumPy has the function, through a
few lines of C++ where it has not.  Seeds are fixed.
"""

from __future__ import annotations

import ctypes
import functools
import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudb import portable

SOURCE = Path(__file__).parents[2] / "kernels" / "portable.cuh"

UNARY = (
    "exp expm1 ln log2 log10 sin cos tan cot asin acos atan sinh cosh tanh asinh acosh atanh cbrt gamma lgamma "
    "floor ceil trunc rint round sqrt"
).split()
BINARY = ["pow", "atan2"]
ROUNDINGS = ["floor", "ceil", "trunc", "rint", "round", "sqrt"]

HOST_PRELUDE = """
typedef int int32; typedef long long int64; typedef unsigned uint32; typedef unsigned long long uint64;
typedef float float32; typedef double float64;
#define DEVICE static inline
DEVICE uint64 float64_bits(float64 x) { uint64 bits; __builtin_memcpy(&bits, &x, 8); return bits; }
DEVICE float64 float64_from_bits(uint64 bits) { float64 x; __builtin_memcpy(&x, &bits, 8); return x; }
DEVICE float64 exact_floor(float64 x) { return __builtin_floor(x); }
DEVICE float64 exact_ceil(float64 x) { return __builtin_ceil(x); }
DEVICE float64 exact_trunc(float64 x) { return __builtin_trunc(x); }
DEVICE float64 exact_rint(float64 x) { return __builtin_rint(x); }
DEVICE float64 exact_sqrt(float64 x) { return __builtin_sqrt(x); }
DEVICE float64 exact_abs(float64 x) { return __builtin_fabs(x); }
"""

DEVICE_PRELUDE = """
typedef int int32; typedef long long int64; typedef unsigned uint32; typedef unsigned long long uint64;
typedef float float32; typedef double float64;
#define DEVICE static __device__ __forceinline__
DEVICE uint64 float64_bits(float64 x) { return (uint64)__double_as_longlong(x); }
DEVICE float64 float64_from_bits(uint64 bits) { return __longlong_as_double((int64)bits); }
DEVICE float64 exact_floor(float64 x) { return floor(x); }
DEVICE float64 exact_ceil(float64 x) { return ceil(x); }
DEVICE float64 exact_trunc(float64 x) { return trunc(x); }
DEVICE float64 exact_rint(float64 x) { return rint(x); }
DEVICE float64 exact_sqrt(float64 x) { return sqrt(x); }
DEVICE float64 exact_abs(float64 x) { return fabs(x); }
"""

FLAGS = [
    "-std=c++17",
    "-O3",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fPIC",
    "-shared",
    "-Wall",
    "-Wno-unused-function",
]


def build(text: str, flags: list[str]) -> ctypes.CDLL:
    """Compile C++ `text` with g++ and load it."""
    with tempfile.TemporaryDirectory(prefix="portable_math_") as folder:
        Path(folder, "source.cpp").write_text(text)
        subprocess.run(["g++", *flags, "source.cpp", "-o", "library.so"], cwd=folder, check=True)
        return ctypes.CDLL(str(Path(folder, "library.so")))


def host_text() -> str:
    """All functions as loops over rows; a comment in each loop's line names its function."""
    loops = [
        f'extern "C" void run_{name}(const double* __restrict x, double* __restrict out, long rows)'
        f"{{ for (long i = 0; i < rows; i++) out[i] = portable_{name}(x[i]); }}"
        for name in UNARY
    ] + [
        f'extern "C" void run_{name}'
        "(const double* __restrict x, const double* __restrict y, double* __restrict out, long rows)"
        f"{{ for (long i = 0; i < rows; i++) out[i] = portable_{name}(x[i], y[i]); }}"
        for name in BINARY
    ]
    return "\n".join([HOST_PRELUDE, SOURCE.read_text(), *loops])


@functools.cache
def host_library(level: str) -> ctypes.CDLL:
    """The loops compiled for one x86-64 level."""
    return build(host_text(), [*FLAGS, f"-march={level}"])


def run_host(level: str, name: str, *arguments: np.ndarray) -> np.ndarray:
    """Apply one compiled function to (rows,) float64 arrays."""
    out = np.empty_like(arguments[0])
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (*arguments, out)]
    getattr(host_library(level), f"run_{name}")(*pointers, ctypes.c_long(len(out)))
    return out


def edge_values() -> np.ndarray:
    """Values at which functions change their path, with neighbours, in both signs."""
    finite = [0.0, 5e-324, 1e-310, 2.2250738585072014e-308, 2.0**-60, 2.0**-54, 2.0**-28, 1e-3, 0.03125, 0.25]
    finite += [
        0.41421356237309503,
        0.5,
        np.sqrt(0.5),
        np.log(2) / 2,
        1.0,
        np.sqrt(2.0),
        2.414213562373095,
        1.5,
        2.0,
        np.e,
        3.0,
    ]
    finite += [
        12.0,
        22.0,
        30.0,
        34.0,
        40.0,
        50.0,
        100.0,
        171.62437695630272,
        184.0,
        708.0,
        709.782712893384,
        710.4758600739439,
    ]
    finite += [
        745.1332191019412,
        750.0,
        1000.0,
        2.0**20,
        2.0**28,
        2.0**52,
        2.0**53,
        2.0**58,
        2.0**60,
        2.0**65,
        2.0**100,
    ]
    finite += [
        6381956970095103.0 * 2.0**797,
        5.319372648326541e255,
        2.0**1000,
        8.98846567431158e307,
        np.finfo(float).max,
    ]
    finite += [k * np.pi / 4 for k in range(1, 20)] + [k / 2 for k in range(1, 60)] + [10.0**k for k in range(-20, 23)]
    base = np.array(finite)
    with np.errstate(over="ignore"):
        around = np.concatenate([base, np.nextafter(base, 0), np.nextafter(base, np.inf)])
    nans = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0xFFF123456789ABCD], np.uint64)
    return np.concatenate([around, -around, [np.inf, -np.inf], nans.view(np.float64)])


def random_bits(rows: int, seed: int) -> np.ndarray:
    """Every bit pattern is equally likely: subnormals, huge values and NaNs of all kinds."""
    return np.random.default_rng(seed).integers(0, 2**64, rows, dtype=np.uint64).view(np.float64)


def moderate_values(rows: int, seed: int) -> np.ndarray:
    """Magnitudes from 2^-40 to 2^12, and many near 0 to 2 where most functions do their work."""
    generator = np.random.default_rng(seed)
    wide = np.exp2(generator.uniform(-40, 12, rows // 2)) * generator.choice([-1.0, 1.0], rows // 2)
    return np.concatenate([wide, generator.uniform(-2.5, 2.5, rows - rows // 2)])


@functools.cache
def single_arguments() -> np.ndarray:
    return np.concatenate([edge_values(), random_bits(500_000, 1), moderate_values(500_000, 2)])


@functools.cache
def double_arguments() -> tuple[np.ndarray, np.ndarray]:
    """All pairs of a selection of edges, random bits, moderate pairs, and powers that stay in range."""
    edges = np.concatenate([edge_values()[::4], [0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 0.5, -0.5, np.inf, -np.inf, np.nan]])
    generator = np.random.default_rng(3)
    base = np.exp2(generator.uniform(-900, 900, 200_000))
    exponent = generator.uniform(-1100, 1100, 200_000) / np.log2(base)
    whole = generator.integers(-30, 30, 100_000).astype(float)
    left = [
        np.repeat(edges, len(edges)),
        random_bits(300_000, 4),
        moderate_values(300_000, 5),
        base,
        moderate_values(100_000, 6),
    ]
    right = [np.tile(edges, len(edges)), random_bits(300_000, 7), moderate_values(300_000, 8), exponent, whole]
    return np.concatenate(left), np.concatenate(right)


def arguments_of(name: str) -> tuple[np.ndarray, ...]:
    return double_arguments() if name in BINARY else (single_arguments(),)


def assert_same_bytes(name: str, left: np.ndarray, right: np.ndarray, arguments: tuple[np.ndarray, ...]) -> None:
    wrong = np.flatnonzero(left.view(np.uint64) != right.view(np.uint64))
    shown = [tuple(a[i].hex() for a in (*arguments, left, right)) for i in wrong[:5]]
    assert len(wrong) == 0, f"{name}: {len(wrong)} rows differ, such as {shown}"


@pytest.mark.parametrize("name", UNARY + BINARY)
def test_numpy_gives_the_bytes_of_the_compiled_function(name: str) -> None:
    arguments = arguments_of(name)
    assert_same_bytes(name, getattr(portable, name)(*arguments), run_host("x86-64-v3", name, *arguments), arguments)


@pytest.mark.parametrize("name", UNARY + BINARY)
def test_every_instruction_set_gives_the_same_bytes(name: str) -> None:
    arguments = arguments_of(name)
    assert_same_bytes(name, run_host("x86-64-v2", name, *arguments), run_host("x86-64-v3", name, *arguments), arguments)


# ---- Accuracy ----


@functools.cache
def oracle_library() -> ctypes.CDLL:
    """gamma and lgamma of long double from the C library, which NumPy lacks."""
    loops = [
        f'extern "C" void run_{name}(const long double* x, long double* out, long rows)'
        f"{{ for (long i = 0; i < rows; i++) out[i] = {call}(x[i]); }}"
        for name, call in [("gamma", "std::tgamma"), ("lgamma", "std::lgamma")]
    ]
    return build("#include <cmath>\n" + "\n".join(loops), ["-O1", "-fPIC", "-shared"])


def from_oracle_library(name: str) -> Callable[[np.ndarray], np.ndarray]:
    def oracle(x: np.ndarray) -> np.ndarray:
        out = np.empty_like(x)
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (x, out)]
        getattr(oracle_library(), f"run_{name}")(*pointers, ctypes.c_long(len(x)))
        return out

    return oracle


def oracle_of(name: str) -> Callable[..., np.ndarray]:
    """The function on np.longdouble arrays."""
    renamed = {
        "ln": np.log,
        "asin": np.arcsin,
        "acos": np.arccos,
        "atan": np.arctan,
        "atan2": np.arctan2,
        "pow": np.power,
    }
    renamed |= {"asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "cot": lambda x: 1 / np.tan(x)}
    renamed |= {"gamma": from_oracle_library("gamma"), "lgamma": from_oracle_library("lgamma")}
    return renamed.get(name) or getattr(np, name)


def errors_in_ulp(result: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """(rows,) distance in units of the last place of the exact value; 0 where both are NaN or the same infinity.

    Where the exact value is past the greatest float64, infinity and the greatest float64 are both right.
    """
    with np.errstate(all="ignore"):
        greatest = np.finfo(np.float64).max
        overflow = np.abs(exact) > greatest
        near = np.where(overflow, np.copysign(greatest, exact), exact).astype(np.float64)
        clipped = np.where(overflow & np.isinf(result) & (np.sign(result) == np.sign(exact)), near, result)
        target = np.where(overflow, near.astype(np.longdouble), exact)
        ulp = np.spacing(np.abs(near)).astype(np.longdouble)
        error = np.abs(clipped.astype(np.longdouble) - target) / ulp
    return np.where(np.isnan(result) | np.isnan(exact), np.where(np.isnan(result) & np.isnan(exact), 0, np.inf), error)


def assert_within(
    name: str, bound: float, result: np.ndarray, exact: np.ndarray, arguments: tuple[np.ndarray, ...]
) -> None:
    error = errors_in_ulp(result, exact)
    worst = int(np.argmax(error))
    inputs = [(float(a[worst]).hex(), float(a[worst])) for a in arguments]
    assert error[worst] <= bound, f"{name}{inputs}: {error[worst]} ulp, {result[worst]} for {exact[worst]}"


@pytest.mark.parametrize("name", [name for name in UNARY if name not in (*ROUNDINGS, "lgamma")] + BINARY)
def test_results_are_within_two_ulp(name: str) -> None:
    arguments = arguments_of(name)
    with np.errstate(all="ignore"):
        exact = oracle_of(name)(*(a.astype(np.longdouble) for a in arguments))
    result = run_host("x86-64-v3", name, *arguments)
    if name == "gamma":
        exact[arguments[0] == -np.inf] = np.nan
    assert_within(name, 2.0, result, exact, arguments)


def test_lgamma_is_within_two_ulp_for_positive_and_1e14_of_its_size_for_negative_arguments() -> None:
    x = single_arguments()
    with np.errstate(all="ignore"):
        exact = oracle_of("lgamma")(x.astype(np.longdouble))
    result = run_host("x86-64-v3", "lgamma", x)
    positive = x > 0
    assert_within("lgamma", 2.0, result[positive], exact[positive], (x[positive],))
    negative = (x <= 0) & np.isfinite(exact)
    error = np.abs(result[negative] - exact[negative]) / np.maximum(1, np.abs(exact[negative]))
    assert error.max() <= 1e-14
    assert np.array_equal(np.isposinf(result[x <= 0]), np.isposinf(exact[x <= 0]))


def test_rounding_functions_equal_numpy_and_round_takes_ties_away_from_zero() -> None:
    x = single_arguments()
    for name in ("floor", "ceil", "trunc", "rint", "sqrt"):
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(x)
        assert np.array_equal(run_host("x86-64-v3", name, x), expected, equal_nan=True), name
    halves = np.array([0.5, -0.5, 1.5, 2.5, -2.5, 0.49999999999999994, 2.0**52 + 1, 4503599627370495.5])
    expected = np.array([1.0, -1.0, 2.0, 3.0, -3.0, 0.0, 2.0**52 + 1, 4503599627370496.0])
    assert np.array_equal(portable.round(halves), expected)


def test_large_angles_are_reduced_by_the_whole_of_pi() -> None:
    """The float64 nearest to a multiple of pi / 2, and results known from 1,000-bit arithmetic."""
    assert portable.cos(np.array([6381956970095103.0 * 2.0**797]))[0] == pytest.approx(
        -4.687165924254624e-19, rel=4e-16
    )
    assert portable.sin(np.array([1e22]))[0] == -0.8522008497671888
    assert portable.sin(np.array([np.finfo(float).max]))[0] == 0.004961954789184062


# ---- Special values (C99 annex F) ----

INF, NAN = np.inf, np.nan
SPECIAL_SINGLE = [
    ("exp", -INF, 0.0), ("exp", INF, INF), ("exp", 0.0, 1.0), ("exp", -0.0, 1.0), ("expm1", -0.0, -0.0),
    ("expm1", -INF, -1.0), ("ln", 0.0, -INF), ("ln", -0.0, -INF), ("ln", -1.0, NAN), ("ln", INF, INF), ("ln", 1.0, 0.0),
    ("log2", 1.0, 0.0), ("log10", 1.0, 0.0), ("log2", 0.0, -INF), ("log10", -INF, NAN), ("sin", -0.0, -0.0),
    ("sin", INF, NAN), ("cos", -0.0, 1.0), ("cos", -INF, NAN), ("tan", -0.0, -0.0), ("tan", INF, NAN),
    ("cot", 0.0, INF), ("cot", -0.0, -INF), ("asin", -0.0, -0.0), ("asin", 1.0, np.pi / 2),
    ("asin", 1.0000000000000002, NAN), ("acos", 1.0, 0.0), ("acos", -1.0, np.pi), ("acos", -2.0, NAN),
    ("atan", -0.0, -0.0), ("atan", INF, np.pi / 2), ("atan", -INF, -np.pi / 2), ("sinh", -0.0, -0.0),
    ("sinh", -INF, -INF), ("cosh", -INF, INF), ("cosh", 0.0, 1.0), ("tanh", -0.0, -0.0), ("tanh", -INF, -1.0),
    ("asinh", -0.0, -0.0), ("asinh", -INF, -INF), ("acosh", 1.0, 0.0), ("acosh", 0.5, NAN), ("acosh", INF, INF),
    ("acosh", -INF, NAN), ("atanh", 1.0, INF), ("atanh", -1.0, -INF), ("atanh", -0.0, -0.0), ("atanh", 2.0, NAN),
    ("cbrt", -27.0, -3.0), ("cbrt", -0.0, -0.0), ("cbrt", -INF, -INF), ("gamma", 0.0, INF), ("gamma", -0.0, -INF),
    ("gamma", -1.0, NAN), ("gamma", INF, INF), ("gamma", -INF, NAN), ("gamma", 5.0, 24.0), ("lgamma", 1.0, 0.0),
    ("lgamma", 2.0, 0.0), ("lgamma", -3.0, INF), ("lgamma", -INF, INF), ("lgamma", 0.0, INF), ("lgamma", -0.0, INF),
]  # fmt: skip
SPECIAL_DOUBLE = [
    ("pow", NAN, 0.0, 1.0), ("pow", 1.0, NAN, 1.0), ("pow", 0.0, -3.0, INF), ("pow", -0.0, -3.0, -INF),
    ("pow", -0.0, -2.0, INF), ("pow", 0.0, -INF, INF), ("pow", -0.0, 3.0, -0.0), ("pow", -0.0, 2.0, 0.0),
    ("pow", -1.0, INF, 1.0), ("pow", -1.0, -INF, 1.0), ("pow", -8.0, 1 / 3, NAN), ("pow", -2.0, 3.0, -8.0),
    ("pow", 0.5, -INF, INF), ("pow", 0.5, INF, 0.0), ("pow", 2.0, -INF, 0.0), ("pow", -INF, -3.0, -0.0),
    ("pow", -INF, 3.0, -INF), ("pow", -INF, 0.5, INF), ("pow", INF, -1.0, 0.0), ("pow", INF, 1.0, INF),
    ("pow", NAN, 1.0, NAN), ("pow", 2.0, NAN, NAN), ("pow", 1.0, INF, 1.0), ("pow", 2.0, 1023.0, 2.0**1023),
    ("pow", 2.0, -1074.0, 5e-324), ("atan2", 0.0, -0.0, np.pi), ("atan2", -0.0, -0.0, -np.pi), ("atan2", 0.0, 0.0, 0.0),
    ("atan2", -0.0, 0.0, -0.0), ("atan2", 0.0, -1.0, np.pi), ("atan2", -1.0, 0.0, -np.pi / 2),
    ("atan2", 1.0, -0.0, np.pi / 2), ("atan2", 1.0, -INF, np.pi), ("atan2", -1.0, INF, -0.0),
    ("atan2", INF, 1.0, np.pi / 2), ("atan2", INF, INF, np.pi / 4), ("atan2", -INF, -INF, -3 * np.pi / 4),
    ("atan2", NAN, 1.0, NAN), ("atan2", 1.0, NAN, NAN),
]  # fmt: skip


@pytest.mark.parametrize(
    "case", SPECIAL_SINGLE + SPECIAL_DOUBLE, ids=lambda case: f"{case[0]}({', '.join(map(str, case[1:-1]))})"
)
def test_special_values_follow_c99_to_the_bit(case: tuple) -> None:
    name, *inputs, expected = case
    arguments = [np.array([value]) for value in inputs]
    for result in (getattr(portable, name)(*arguments), run_host("x86-64-v3", name, *arguments)):
        assert result.view(np.uint64)[0] == np.array([expected]).view(np.uint64)[0]


@pytest.mark.parametrize("name", UNARY + BINARY)
def test_every_nan_is_the_canonical_one(name: str) -> None:
    result = run_host("x86-64-v3", name, *arguments_of(name))
    patterns = set(result[np.isnan(result)].view(np.uint64).tolist())
    assert patterns == {0x7FF8000000000000}


def test_whole_results_are_exact() -> None:
    n = np.arange(1.0, 23.0)
    assert np.array_equal(portable.log10(10.0**n), n)
    assert np.array_equal(portable.log2(2.0 ** np.arange(-1074.0, 1024.0)), np.arange(-1074.0, 1024.0))
    assert np.array_equal(portable.cbrt(n**3), n)
    assert np.array_equal(portable.gamma(n[:18]), np.cumprod(np.concatenate([[1.0], n[:17]])))
    base, exponent = np.meshgrid(np.arange(-20.0, 21.0), np.arange(0.0, 12.0))
    assert np.array_equal(
        portable.pow(base, exponent), np.vectorize(lambda b, e: float(int(b) ** int(e)))(base, exponent)
    )


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_every_loop_vectorises_but_those_with_an_angle_of_any_size(level: str, tmp_path: Path) -> None:
    """sin, cos, tan and cot branch to the far reduction; all else must stay free of branches."""
    text = host_text()
    (tmp_path / "source.cpp").write_text(text)
    command = ["g++", *FLAGS, f"-march={level}", "-fopt-info-vec-optimized", "source.cpp", "-o", "library.so"]
    report = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stderr
    lines = text.splitlines()
    vectorised = set()
    for line in re.findall(r"source\.cpp:(\d+):\d+: optimized: +loop vectorized", report):
        vectorised.update(re.findall(r"void run_(\w+)", lines[int(line) - 1]))
    assert set(UNARY + BINARY) - vectorised == {"sin", "cos", "tan", "cot"}


@given(st.floats(width=64), st.floats(width=64))
def test_pairs_that_hypothesis_finds_agree(x: float, y: float) -> None:
    arguments = (np.array([x]), np.array([y]))
    for name in BINARY:
        assert_same_bytes(name, getattr(portable, name)(*arguments), run_host("x86-64-v2", name, *arguments), arguments)


def test_scalars_and_shapes_are_kept() -> None:
    assert portable.exp(0.0).shape == ()
    assert portable.pow(np.ones((2, 1)), np.ones(3)).shape == (2, 3)
    assert portable.sin(np.empty(0)).shape == (0,)


def test_nvrtc_compiles_the_same_text_without_a_gpu() -> None:
    nvrtc = pytest.importorskip(
        "cuda.bindings.nvrtc", reason="cuda-bindings is not installed: the text is checked on hosts only"
    )
    calls = "\n".join(
        [f"out[i] += portable_{name}(x[i]);" for name in UNARY]
        + [f"out[i] += portable_{name}(x[i], y[i]);" for name in BINARY]
    )
    head = 'extern "C" __global__ void all(const double* x, const double* y, double* out)'
    kernel = f"{head} {{ int i = threadIdx.x; {calls} }}"
    text = "\n".join([DEVICE_PRELUDE, SOURCE.read_text(), kernel]).encode()
    _, program = nvrtc.nvrtcCreateProgram(text, b"portable.cu", 0, [], [])
    options = [
        b"--gpu-architecture=sm_90",
        b"--fmad=false",
        b"-ftz=false",
        b"--prec-div=true",
        b"--prec-sqrt=true",
        b"-std=c++17",
    ]
    (outcome,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = bytearray(size)  # NVRTC writes here: `bytes` of one character are shared by the whole process
    nvrtc.nvrtcGetProgramLog(program, log)
    assert outcome == nvrtc.nvrtcResult.NVRTC_SUCCESS, log.decode()
    _, size = nvrtc.nvrtcGetPTXSize(program)
    ptx = bytearray(size)
    nvrtc.nvrtcGetPTX(program, ptx)
    assert b"fma.rn.f64" not in ptx
    assert b".extern" not in ptx
