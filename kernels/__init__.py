"""Kernels, written once in CUDA C++ and assembled here into one text a target.

`device_source()` is what NVRTC compiles, `host_source()` what the host compiler compiles: the same files in the same order,
plus `host.cpp` (thread pool and C interface); `lanes_source()` is for tests: the device's lanes and barriers on a CPU.
Elementwise opcodes and the interpreter's `switch` are generated from the opcode table.  Every file is inlined, so that the
text is the whole truth and its hash a sufficient cache key.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from gpudb.instruction_set import instruction_set
from gpudb.opcodes import Variant
from gpudb.types import RegisterType as R

FOLDER = Path(__file__).resolve().parent
BEFORE = ("platform.h", "tile.cuh", "scalar.cuh", "portable.cuh", "calendar.cuh", "functions.cuh")
OPERATIONS = (
    "ops_rows.cuh",
    "ops_emit.cuh",
    "ops_reduce.cuh",
    "ops_sum.cuh",
    "ops_group.cuh",
    "ops_probe.cuh",
    "ops_join.cuh",
    "ops_window.cuh",
    "ops_call.cuh",
)
AFTER = ("vm.cuh", "sort.cuh", "repeat.cuh", "join.cuh", "index.cuh", "window.cuh", "export.cuh")

WRAPPERS = {"v": "Vector", "s": "Scalar", "p": "Table"}


def _read(name: str) -> str:
    path = FOLDER / name
    return f'#line 1 "{name}"\n{path.read_text()}\n' if path.exists() else ""


def _operator_structs() -> str:
    """One struct an elementwise opcode: its C++ expression as a function template."""
    lines = ['#line 1 "generated operators"']
    for name, opcode in instruction_set().opcodes.items():
        if opcode.role != "elementwise":
            continue
        templates = "".join(f", class T{k}" for k in range(len(opcode.parameters)))
        arguments = ", ".join(f"T{k} {p}" for k, p in enumerate(opcode.parameters))
        lines.append(
            f"struct {_identifier(name)} {{ template <class Out{templates}> static DEVICE_MEMBER Out apply({arguments}) "
            f"{{ return Out({opcode.cpp}); }} }};"
        )
    return "\n".join(lines) + "\n"


def _identifier(name: str) -> str:
    return "operator_" + name.replace(":", "_")


def _case(number: int, variant: Variant) -> str:
    opcode = variant.opcode
    if opcode.role == "block":
        types = ", ".join(t.cpp for t in variant.signature)
        call = f"op_{opcode.name}<{types}>" if types else f"op_{opcode.name}"
        if opcode.name in ("SkipIfNone", "Compact"):
            return f"case {number}: return {call}(tile, ins);"
        last = ", pc" if opcode.name == "Fail" else ""
        return f"case {number}: {call}(tile, ins{last}); break;"
    out, *inputs = variant.signature
    width = "1" if _is_heavy(variant) else "PACK"
    types = ", ".join(
        [_identifier(opcode.name), out.cpp, width]
        + [f"{WRAPPERS[form]}<{t.cpp}>" for t, form in zip(inputs, variant.form, strict=True)]
    )
    loop = "lookup" if "p" in variant.form else "elementwise"
    return f"case {number}: {loop}{len(inputs)}<{types}>(tile, ins); break;"


def _is_heavy(variant: Variant) -> bool:
    """Long bodies go row by row: unrolled over a pack they took NVRTC minutes and the kernel its registers."""
    return (
        ":" in variant.opcode.name
        or R.I128 in variant.signature
        or "Divide" in variant.opcode.name
        or "Modulo" in variant.opcode.name
        or variant.opcode.name == "ZoneOffset"
    )


def _switch() -> str:
    """The interpreter's switch: executes one instruction; false ends the pipeline for this tile."""
    cases = "\n        ".join(_case(n, v) for n, v in enumerate(instruction_set().variants))
    return (
        '#line 1 "generated switch"\n'
        "NOINLINE bool execute(Tile& tile, const Instruction& ins, int64 pc) {\n"
        f"    switch (ins.opcode) {{\n        {cases}\n        default: break;\n    }}\n    return true;\n}}\n"
    )


def _elementwise_templates() -> str:
    """elementwise1 .. elementwise6: the loop over packs, one template an arity; lookup2, whose first operand is an index.

    The last pack of a tile may reach past its rows, where a register holds anything: no index may be taken from there.
    """
    pieces = ['#line 1 "generated loops"']
    for loop, arity in [*(("elementwise", arity) for arity in range(1, 7)), ("lookup", 2)]:
        names = [f"In{k}" for k in range(arity)]
        templates = ", ".join(["class Op", "class Out", "int WIDTH", *(f"class {n}" for n in names)])
        load_operands = "".join(f"    const {n} operand{k}(tile, ins.p[{k + 1}]);\n" for k, n in enumerate(names))
        fetches = "".join(f"        const auto x{k} = fetch<WIDTH>(operand{k}, i);\n" for k in range(arity))
        arguments = ", ".join(f"at(x{k}, k)" for k in range(arity))
        if loop == "lookup":
            arguments = "i + k < rows ? at(x0, k) : decltype(at(x0, k))(0), at(x1, k)"
        only = ", ".join(f"at(x{k}, 0)" for k in range(arity))
        pieces.append(
            f"template <{templates}>\n"
            f"NOINLINE void {loop}{arity}(const Tile& tile, const Instruction& ins) {{\n"
            f"{load_operands}"
            "    Out* RESTRICT out = result<Out>(tile, ins.p[0]);\n"
            "    const int rows = tile.rows;\n"
            "    EACH_PACK(i, rows, WIDTH) {\n"
            f"{fetches}"
            "        Pack<Out, WIDTH> r;\n"
            # g++ vectorises no outer loop around an inner one that branches, even where that runs once: Select, Keep, Absolute
            f"        if constexpr (WIDTH == 1) r.at[0] = Op::template apply<Out>({only});\n"
            f"        else UNROLL for (int k = 0; k < WIDTH; ++k) r.at[k] = Op::template apply<Out>({arguments});\n"
            "        *(Pack<Out, WIDTH>*)(out + i) = r;\n"
            "    }\n"
            "}\n"
        )
    return "\n".join(pieces)


@cache
def device_source() -> str:
    """The text for NVRTC."""
    parts = [_read(name) for name in BEFORE]
    parts += [_operator_structs(), _elementwise_templates()]
    parts += [_read(name) for name in OPERATIONS]
    parts += [_switch()]
    parts += [_read(name) for name in AFTER]
    return "".join(parts)


@cache
def host_source() -> str:
    """The text for the host compiler: the device text and the C interface."""
    return "#include <new>\n" + device_source() + _read("host.cpp")


@cache
def lanes_source(lanes: int) -> str:
    """The text for the host compiler with so many lanes a block, each a fiber: for tests of what lanes do to each other."""
    names = ", ".join(f'"{variant.opcode.name}"' for variant in instruction_set().variants)
    return (
        f"#define GPUDB_LANES {lanes}\n#include <new>\n{device_source()}"
        f'#line 1 "generated names"\nstatic const char* const gpudb_opcode_names[] = {{{names}}};\n{_read("lanes.cpp")}'
    )
