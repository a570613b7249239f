"""The registry of scalar SQL functions: one entry a function, one place to edit.

Three kinds of entry, by how an overload is evaluated:

* `@scalar`  over numbers, dates and booleans: a C++ expression and a NumPy body, generated into an opcode like the
  operators (`gpudb/opcodes`), so that it runs once per row inside the tile.
* `@text`    over text: runs once per *distinct* value on the host (Arrow compute), and becomes a lookup table.
* `macro`    SQL in terms of other functions; the binder expands it.  `typed_macro` does so for one signature, which keeps
             the kernels small: the month of a TIMESTAMP is the month of its DATE, and needs no opcode of its own.

Signatures are written in SQL types: "DOUBLE -> DOUBLE; DATE, BIGINT -> DATE".  The last argument type may end in "..." for
any number of further arguments (none too).  Text functions may also take DECIMAL (of any precision; the body gets
decimal128) and ANY (the argument as it is, never cast).  The docstring's `>>> sql("SELECT ...")` example is run as a test.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import field
from functools import cached_property
from typing import Any

from gpudb.opcodes.table import parameter_names
from gpudb.record import record
from gpudb.types import SqlType

KINDS = frozenset(
    """BOOLEAN TINYINT SMALLINT INTEGER BIGINT HUGEINT UTINYINT USMALLINT UINTEGER UBIGINT
    REAL DOUBLE DATE TIME TIMESTAMP TIMESTAMPTZ VARCHAR BLOB INTERVAL
    UUID SPAN""".split()
)
ARGUMENT_KINDS = KINDS | {"DECIMAL", "ANY"}


@record
class Overload:
    """One signature of a function.

    arguments  SQL type kinds; variadic repeats the last one any number of times, also none
    result     SQL type of the value
    cpp        C++ expression over the parameter names (scalar)
    domain     (C++ condition, NumPy condition, message): where it is false and the row counts, the statement fails
    null_when  (C++ condition, NumPy condition): where true the value is NULL
    body       NumPy (scalar) or Arrow (text) implementation; its meaning, and the test oracle
    sql        what a macro overload stands for, over its parameters
    bounds     inclusive (low, high) that every value lies in, where narrower than the type (scalar, exact results)
    monotone   never falls while its first argument rises and the rest stay (so its range follows from the argument's)
    python     the PythonFunction behind it (kind python): `gpudb/functions/python.py`
    """

    name: str
    kind: str
    arguments: tuple[str, ...]
    result: SqlType
    variadic: bool = False
    cpp: str = ""
    body: Callable[..., Any] = field(default=lambda *_: None, compare=False)
    domain: tuple[str, Callable[..., Any], str] | None = field(default=None, compare=False)
    null_when: tuple[str, Callable[..., Any]] | None = field(default=None, compare=False)
    sql: str = ""
    macro_parameters: tuple[str, ...] = ()
    bounds: tuple[int, int] | None = None
    monotone: bool = False
    python: Any = field(default=None, compare=False)

    @property
    def side_effects(self) -> bool:
        """It may give something else the next time."""
        return self.python is not None and bool(self.python.side_effects)

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The parameter names: the macro's, or the body's, which the C++ expression uses too."""
        if self.kind == "macro":
            return self.macro_parameters
        return parameter_names(self.body)


@record(frozen=False)
class Function:
    """All overloads of one SQL name."""

    name: str
    aliases: tuple[str, ...]
    overloads: list[Overload]
    doc: str
    macro: str | Callable[[int], str] | None = None
    parameters: tuple[str, ...] = ()

    def expansion(self, count: int) -> tuple[tuple[str, ...], str] | None:
        """Parameter names and SQL of a macro called with `count` arguments; None where it does not take so many."""
        if callable(self.macro):
            if count < len(self.parameters):
                return None
            names = self.parameters + tuple(f"argument{i}" for i in range(len(self.parameters), count))
            return names, self.macro(count)
        if self.macro is None or count != len(self.parameters):
            return None
        return self.parameters, self.macro


FUNCTIONS: dict[str, Function] = {}


def _register(function: Function) -> None:
    for name in (function.name, *function.aliases):
        assert name not in FUNCTIONS, f"function defined twice: {name}"
        FUNCTIONS[name] = function


def _add(name: str, aliases: tuple[str, ...], overloads: list[Overload], doc: str, more: bool) -> None:
    """Register a new function, or (more) further overloads of one."""
    if more:
        assert name in FUNCTIONS and not aliases, f"further overloads of an unknown function: {name}"
        FUNCTIONS[name].overloads.extend(overloads)
    else:
        _register(Function(name, aliases, overloads, doc))


def parse_type(text: str) -> SqlType:
    """'DOUBLE' or 'DECIMAL(18,2)' as a SqlType."""
    match = re.fullmatch(r"DECIMAL\((\d+),\s*(\d+)\)", text)
    if match:
        return SqlType("DECIMAL", int(match[1]), int(match[2]))
    assert text in KINDS, f"unknown type in a signature: {text}"
    return SqlType("INTERVAL" if text == "SPAN" else text)


def _overloads(name: str, kind: str, signature: str, **rest: Any) -> list[Overload]:
    found = []
    for one in signature.split(";"):
        left, right = one.split("->")
        arguments = tuple(part.strip() for part in left.split(",") if part.strip())
        variadic = bool(arguments) and arguments[-1].endswith("...")
        arguments = tuple(argument.removesuffix("...") for argument in arguments)
        assert set(arguments) <= ARGUMENT_KINDS, f"unknown type in a signature: {signature}"
        found.append(Overload(name, kind, arguments, parse_type(right.strip()), variadic, **rest))
    return found


def scalar(
    signature: str,
    *,
    cpp: str,
    name: str = "",
    aliases: tuple[str, ...] = (),
    more: bool = False,
    domain: tuple[str, Callable[..., Any], str] | None = None,
    null_when: tuple[str, Callable[..., Any]] | None = None,
    bounds: tuple[int, int] | None = None,
    monotone: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function over numbers, dates and booleans; the body gets and gives NumPy arrays.

    NULL in any argument gives NULL; `domain` and `null_when` say where it fails or is NULL otherwise.  The C++ expression
    sees each argument in the register type of its SQL type (`SqlType.register`) under the body's parameter name; it must
    be harmless for any bits, as rows that do not count are computed too.  What it and the body give is converted to the
    result's register type.  A SPAN is an INTERVAL as its bits; an INTERVAL argument is a constant: the body gets a
    `gpudb.types.Interval`, and C++ sees `x_months`, `x_days` (int32) and `x_microseconds` (int64) for a parameter `x`.

    name  the SQL name, where the body's own will not do
    more  add these overloads to a function that exists
    """

    def register(body: Callable[..., Any]) -> Callable[..., Any]:
        sql_name = name or body.__name__.strip("_")
        overloads = _overloads(
            sql_name, "scalar", signature, cpp=cpp, body=body, domain=domain, null_when=null_when, bounds=bounds,
            monotone=monotone,
        )  # fmt: skip
        _add(sql_name, aliases, overloads, inspect.getdoc(body) or "", more)
        return body

    return register


def text(
    signature: str, *, name: str = "", aliases: tuple[str, ...] = (), more: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function with text among its arguments or as its value; run once per distinct value, on the host.

    The body gets, per argument, either a pa.Array without NULLs (one entry per distinct value or tuple) or, for a
    constant, a Python value (as `Literal.value`, but a DATE as days and a TIMESTAMP as microseconds); arrays are of one
    length, and at least one is an array.  It returns a pa.Array of the result's Arrow type, in which a
    null means NULL.  It raises `ConversionError` or `OutOfRangeError` naming the offending value; so a body that can fail
    is only reached with values that occur in alive rows.
    """

    def register(body: Callable[..., Any]) -> Callable[..., Any]:
        sql_name = name or body.__name__.strip("_")
        overloads = _overloads(sql_name, "text", signature, body=body)
        _add(sql_name, aliases, overloads, inspect.getdoc(body) or "", more)
        return body

    return register


def macro(name: str, parameters: str, sql: str | Callable[[int], str], doc: str, aliases: tuple[str, ...] = ()) -> None:
    """Register a function that is SQL in terms of others: macro("ifnull", "x, y", "coalesce(x, y)", "...").

    sql  text over the parameters; or, for a function of any number of arguments, from their number to the text, in which
         the arguments beyond `parameters` are argument<i>, counted from 0 over all
    """
    names = tuple(part.strip() for part in parameters.split(",") if part.strip())
    _register(Function(name, aliases, [], doc, macro=sql, parameters=names))


def typed_macro(
    name: str, signature: str, parameters: str, sql: str, doc: str = "", aliases: tuple[str, ...] = ()
) -> None:
    """Register overloads as SQL over arguments that already have the signature's types.

    doc  of a new function; without it the function exists, and gets further overloads
    """
    names = tuple(part.strip() for part in parameters.split(","))
    _add(name, aliases, _overloads(name, "macro", signature, sql=sql, macro_parameters=names), doc, more=not doc)
