"""NVRTC compiles device text here, without a GPU, and its log says what each kernel needs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpudb.errors import DeviceError
from gpudb.kernels import nvrtc
from gpudb.kernels.nvrtc import Resources, compare, compile_cubin, parse_resources

SMALL = """
__device__ __noinline__ double half(double x) { return x / 2; }
extern "C" __global__ void halve(const double* in, double* out, long long rows) {
    __shared__ double tile[128];
    tile[threadIdx.x] = in[blockIdx.x * 128 + threadIdx.x];
    __syncthreads();
    out[blockIdx.x * 128 + threadIdx.x] = half(tile[127 - threadIdx.x]);
}
extern "C" __global__ void scale(__int128* values) { values[threadIdx.x] *= 3; }
"""

LOG = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'first' for 'sm_90'
ptxas info    : Function properties for first
ptxas         .     16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Function properties for _Z4sinkv
ptxas         .     0 bytes stack frame, 4 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 1024 bytes smem, 360 bytes cmem[0]
ptxas info    : Compiling entry function 'second' for 'sm_90'
ptxas info    : Function properties for second
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 14 registers, used 0 barriers
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUDB_CACHE_DIR", str(tmp_path / "cache"))


def test_a_log_gives_registers_shared_memory_and_spills_of_each_kernel() -> None:
    assert parse_resources(LOG) == {"first": Resources(40, 1024, 24), "second": Resources(14, 0, 0)}


def test_small_text_compiles_to_a_cubin_with_its_resources() -> None:
    cubin = compile_cubin(SMALL)
    assert cubin.image.startswith(b"\x7fELF")
    assert cubin.resources.keys() == {"halve", "scale"}
    assert cubin.resources["halve"].shared_bytes == 1024
    assert all(0 < needs.registers <= 64 and needs.spill_bytes == 0 for needs in cubin.resources.values())


def test_the_second_compile_comes_from_the_cache_and_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    first = compile_cubin(SMALL)

    def never(*arguments: object) -> tuple[bytes, bytes]:
        raise AssertionError("NVRTC was called for a text that is in the cache")

    monkeypatch.setattr(nvrtc, "_compile", never)
    assert compile_cubin(SMALL) == first
    with pytest.raises(AssertionError, match="NVRTC was called"):
        compile_cubin(SMALL + "\n// changed")
    with pytest.raises(AssertionError, match="NVRTC was called"):
        compile_cubin(SMALL, "sm_80")


def test_multiply_and_add_are_not_fused() -> None:
    """A fused multiply-add rounds once where the CPU rounds twice: the answers would differ."""
    text = 'extern "C" __global__ void f(const double* x, double* y) { y[0] = x[0] * x[1] + x[2]; }'
    fused = text.replace("x[0] * x[1] + x[2]", "__fma_rn(x[0], x[1], x[2])")
    assert _double_instructions(text) == {"DADD", "DMUL"}
    assert _double_instructions(fused) == {"DFMA"}


def _double_instructions(text: str) -> set[str]:
    """Opcodes of double arithmetic in the machine code of sm_90, told by the low 12 bits of each 128-bit word."""
    names = {0x228: "DMUL", 0x229: "DADD", 0x22B: "DFMA", 0xC28: "DMUL", 0xC29: "DADD", 0xC2B: "DFMA"}
    image = compile_cubin(text).image
    found = set()
    for offset in range(0, len(image) - 15, 16):
        opcode = int.from_bytes(image[offset : offset + 2], "little") & 0xFFF
        if opcode in names:
            found.add(names[opcode])
    return found


def test_an_error_in_the_text_is_a_device_error_that_quotes_it() -> None:
    with pytest.raises(DeviceError, match=r"NVRTC could not build the kernels for sm_90:\n.*error.*nonsense"):
        compile_cubin('extern "C" __global__ void f() { nonsense(); }')


def test_an_unknown_architecture_is_a_device_error() -> None:
    with pytest.raises(DeviceError, match="NVRTC"):
        compile_cubin(SMALL, "sm_1")


def test_a_rise_in_registers_or_spills_is_reported_and_a_fall_is_not() -> None:
    recorded = {"f": Resources(32, 1024, 0)._asdict(), "gone": Resources(8, 0, 0)._asdict()}
    assert compare(recorded, {"f": Resources(30, 1024, 0), "gone": Resources(8, 0, 0)}) == []
    assert compare(recorded, {"f": Resources(33, 1024, 4), "new": Resources(8, 0, 0)}) == [
        "f: registers rose from 32 to 33",
        "f: spill_bytes rose from 0 to 4",
        "gone: recorded, but not in the source any more",
        "new: not recorded yet",
    ]


def test_the_command_records_and_then_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gpudb.kernels.device_source", lambda: SMALL, raising=False)
    file = tmp_path / "registers.json"
    assert nvrtc.main(["--check", str(file)]) == 1
    assert "halve: not recorded yet" in capsys.readouterr().err
    assert nvrtc.main(["--record", str(file)]) == 0
    assert nvrtc.main(["--check", str(file)]) == 0
    recorded = json.loads(file.read_text())
    recorded["sm_90"]["halve"]["registers"] -= 1
    file.write_text(json.dumps(recorded))
    assert nvrtc.main(["--check", str(file)]) == 1
    captured = capsys.readouterr()
    assert "halve" in captured.out and "registers rose" in captured.err
