"""The mechanism behind the opcode table: what an entry says, and how entries become numbered variants.

An entry is a decorated NumPy function.  The function body *is* the opcode's meaning: the device `reference` runs it and
every other device is tested against it.  From the entry come the C++ code of elementwise opcodes, the generated `switch`,
the text that EXPLAIN prints, the checks of `Program.verify()` and the list of opcodes in the documentation.

A **variant** is an opcode with its types chosen and, per input, whether it is a vector (one value a row: a register or a
column read in place) or a scalar (a parameter slot).  Instructions name variants by number; numbers are not an API.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

from gpudb.record import record
from gpudb.types import RegisterType

Signature = tuple[RegisterType, ...]
"""Types of one variant: the output first, then the inputs."""


def parameter_names(body: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a body's parameters; of a plain function without inspect.signature, which takes 40 us, 600 times."""
    code = getattr(body, "__code__", None)
    if code is None or hasattr(body, "__signature__") or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return tuple(inspect.signature(body).parameters)
    names: tuple[str, ...] = code.co_varnames
    return names[: code.co_argcount + code.co_kwonlyargcount]


R = RegisterType
INTEGERS = (R.I32, R.I64, R.I128)
FLOATS = (R.F32, R.F64)
CODES = (R.U8, R.U16, R.U32)
ORDERED = (R.U8, R.U16, R.U32, R.I32, R.I64, R.I128, R.F32, R.F64)
ALL = (R.MASK, *ORDERED)


@record
class Opcode:
    """One entry of the table.

    synopsis    what EXPLAIN prints; {name} is replaced by the operand of that parameter, {out} by the result
    signatures  the types it exists for
    forms       per variant one letter an input: v vector, s scalar slot, p slot that holds a pointer to a table
    cpp         C++ expression over the parameter names; "" for opcodes where rows meet, which have op_<name> in kernels/
    body        NumPy meaning
    role        elementwise, or block: rows of a tile meet, or state is written
    """

    name: str
    synopsis: str
    signatures: tuple[Signature, ...]
    forms: tuple[str, ...]
    cpp: str
    body: Callable[..., Any] = field(compare=False)
    role: str = "elementwise"

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Names of the inputs (elementwise) or of all operands (block)."""
        return parameter_names(self.body)

    @cached_property
    def operands(self) -> tuple[str, ...]:
        """Names of an instruction's operands in order; the register that it writes, if it does, is called out."""
        return self.parameters if self.role == "block" else ("out", *self.parameters)

    @cached_property
    def has_result(self) -> bool:
        """True where an instruction's first operand is a register that it writes."""
        return self.operands[0] == "out"

    @property
    def doc(self) -> str:
        """The entry's documentation."""
        return inspect.getdoc(self.body) or ""


@record
class Variant:
    """An opcode with types and operand forms chosen; `str()` is its name in EXPLAIN, such as Gt_i32."""

    opcode: Opcode
    signature: Signature
    form: str

    def __str__(self) -> str:
        kinds = [t.suffix for t in self.signature]
        if self.opcode.role == "block" or len(set(kinds[1:])) > 1:
            suffix = "_".join(kinds)
        elif len(kinds) > 1 and kinds[0] not in ("mask", kinds[1]):
            suffix = f"{kinds[1]}_{kinds[0]}"
        else:
            suffix = kinds[-1] if kinds else ""
        return f"{self.opcode.name}_{suffix}" if suffix else self.opcode.name


OPCODES: dict[str, Opcode] = {}


def add(opcode: Opcode) -> Opcode:
    """Put an entry into the table."""
    assert opcode.name not in OPCODES, f"opcode defined twice: {opcode.name}"
    OPCODES[opcode.name] = opcode
    return opcode


def opcode(
    synopsis: str, signatures: Iterable[Signature], *, cpp: str, forms: Sequence[str] = ()
) -> Callable[[Callable[..., Any]], Opcode]:
    """An elementwise opcode: the loops over rows are generated from `cpp`, nothing else needs an edit.

    forms  defaults to all vectors, and the last of two inputs also as a scalar
    """

    def register(body: Callable[..., Any]) -> Opcode:
        arity = len(parameter_names(body))
        chosen = tuple(forms) or {0: ("",), 1: ("v",), 2: ("vv", "vs")}.get(arity, ("v" * arity,))
        assert all(len(form) == arity for form in chosen), f"{body.__name__}: a form names every input"
        return add(Opcode(body.__name__, synopsis, tuple(signatures), chosen, cpp, body))

    return register


def block_opcode(synopsis: str, signatures: Iterable[Signature] = ((),)) -> Callable[[Callable[..., Any]], Opcode]:
    """An opcode where rows of a tile meet; kernels/ops_*.cuh holds `op_<name>`, templated over the signature."""

    def register(body: Callable[..., Any]) -> Opcode:
        return add(Opcode(body.__name__, synopsis, tuple(signatures), ("",), "", body, role="block"))

    return register


def same(types: Iterable[RegisterType], inputs: int, out: RegisterType | None = None) -> list[Signature]:
    """Signatures whose inputs share one type; the output has it too unless `out` is given."""
    return [(out or t, *([t] * inputs)) for t in types]


def variants(opcodes: Iterable[Opcode]) -> list[Variant]:
    """All variants of the opcodes, in table order: the numbering."""
    return [Variant(o, s, f) for o in opcodes for s in o.signatures for f in o.forms]
