"""All variants, numbered: the core opcodes, then the scalar SQL functions of the registry.

A scalar function contributes up to three elementwise opcodes: its value, its domain (where it may run without failing)
and the condition under which it is NULL.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import gpudb.functions  # noqa: F401 - fills the registry
from gpudb.functions.registry import FUNCTIONS, Overload, parse_type
from gpudb.opcodes import OPCODES, Opcode, Variant, variants
from gpudb.record import record
from gpudb.types import Interval, RegisterType


@record
class InstructionSet:
    """The numbering of one process: `variants[n]` is instruction number n, `number[(name, types, form)]` its inverse."""

    variants: tuple[Variant, ...]
    number: dict[tuple[str, tuple[RegisterType, ...], str], int]
    opcodes: dict[str, Opcode]


def function_opcode_name(overload: Overload, what: str) -> str:
    """Name of the opcode behind a scalar function; what: value, domain or null.

    Overloads share one where they compute the same on the same registers: of SMALLINT and INTEGER, or a condition that
    many functions have.
    """
    condition = overload.null_when[1].__name__ if what == "null" and overload.null_when is not None else "<lambda>"
    if condition.isidentifier() and not condition.startswith("_"):
        return f"{condition}:{'_'.join(overload.arguments)}"
    wider = tuple("INTEGER" if kind in ("TINYINT", "SMALLINT") else kind for kind in overload.arguments)
    conditions = overload.domain and overload.domain[0], overload.null_when and overload.null_when[0]
    for other in FUNCTIONS[overload.name].overloads:
        same = other.domain and other.domain[0], other.null_when and other.null_when[0]
        if other.arguments == wider and other.cpp == overload.cpp and (what == "value" or same == conditions):
            return f"{overload.name}{'' if what == 'value' else '_' + what}:{'_'.join(wider)}"
    return f"{overload.name}{'' if what == 'value' else '_' + what}:{'_'.join(overload.arguments)}"


def argument_registers(overload: Overload) -> tuple[RegisterType, ...]:
    """Register types of the parameters; an INTERVAL takes three: months, days, microseconds."""
    found: list[RegisterType] = []
    for kind in overload.arguments:
        if kind == "INTERVAL":
            found += [RegisterType.I32, RegisterType.I32, RegisterType.I64]
        else:
            found.append(parse_type(kind).register)
    return tuple(found)


def _function_opcodes() -> list[Opcode]:
    made: dict[str, Opcode] = {}
    for function in {id(f): f for f in FUNCTIONS.values()}.values():
        for overload in function.overloads:
            if overload.kind != "scalar" or overload.variadic:
                continue
            inputs = argument_registers(overload)
            forms = function_forms(overload)
            parameters = register_parameters(overload)
            names = ", ".join("{" + name + "}" for name in parameters)
            pieces = [("value", overload.result.register, overload.cpp, overload.body)]
            if overload.domain is not None:
                pieces.append(("domain", RegisterType.MASK, overload.domain[0], overload.domain[1]))
            if overload.null_when is not None:
                pieces.append(("null", RegisterType.MASK, overload.null_when[0], overload.null_when[1]))
            for what, out, cpp, body in pieces:
                name = function_opcode_name(overload, what)
                label = (
                    name.partition(":")[0]
                    if what == "null"
                    else function.name + ("" if what == "value" else f".{what}")
                )
                body = _over_registers(overload, body)
                opcode = Opcode(name, f"{{out}} = {label}({names})", ((out, *inputs),), forms, cpp, body)
                made.setdefault(name, opcode)
    return list(made.values())


def register_parameters(overload: Overload) -> tuple[str, ...]:
    """Parameter names as C++ sees them: an INTERVAL x is x_months, x_days and x_microseconds."""
    found: list[str] = []
    for name, kind in zip(overload.parameters, overload.arguments, strict=True):
        found += [f"{name}_months", f"{name}_days", f"{name}_microseconds"] if kind == "INTERVAL" else [name]
    return tuple(found)


def _over_registers(overload: Overload, body: Callable[..., Any]) -> Callable[..., Any]:
    """The body with one parameter a register: an INTERVAL is put together from its three."""
    if "INTERVAL" not in overload.arguments:
        return body

    def over_registers(*registers: Any) -> Any:
        arguments: list[Any] = []
        rest = list(registers)
        for kind in overload.arguments:
            if kind == "INTERVAL":
                months, days, microseconds = (int(np.asarray(rest.pop(0)).reshape(-1)[0]) for _ in range(3))
                arguments.append(Interval(months, days, microseconds))
            else:
                arguments.append(rest.pop(0))
        return body(*arguments)

    names = register_parameters(overload)
    over_registers.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names]
    )
    over_registers.__doc__ = inspect.getdoc(body)
    return over_registers


def function_forms(overload: Overload) -> tuple[str, ...]:
    """All vectors; the first a vector and the rest constants.  An INTERVAL is always constant."""
    vectors = "".join("sss" if kind == "INTERVAL" else "v" for kind in overload.arguments)
    constants = "v" + "s" * (len(vectors) - 1)
    return (vectors,) if len(vectors) < 2 or vectors == constants else (vectors, constants)


@cache
def instruction_set() -> InstructionSet:
    """The numbering; built once a process (the kernels are generated from it)."""
    opcodes = [*OPCODES.values(), *_function_opcodes()]
    found = tuple(variants(opcodes))
    number = {(v.opcode.name, v.signature, v.form): n for n, v in enumerate(found)}
    assert len(found) < 1 << 16, "instruction numbers are 16 bit in the error word"
    return InstructionSet(found, number, {o.name: o for o in opcodes})


INSTRUCTION = np.dtype([("opcode", "<u4"), ("p", "<u4", (7,))])
"""One instruction as the kernels read it: 32 bytes."""
