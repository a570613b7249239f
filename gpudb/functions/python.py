"""Python functions in SQL: numba compiles one into a loop over the rows of a tile, which kernels call once a tile.

A parameter arrives as Python's own kind of number: a BOOLEAN as bool, REAL and DOUBLE as float, any integer as int, a DATE as
days and a TIMESTAMP as microseconds since 1970-01-01.  numba's int has 64 bits, and wraps.  The result becomes the SQL type as
in DuckDB: a float is rounded to an integer, half to even, and what does not fit is an error.

numba is loaded when the first function is made (0.5 s), and by nothing else in this package.
"""

from __future__ import annotations

import ctypes
import inspect
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpudb.errors import BindError, NotSupportedError
from gpudb.functions.registry import Function, Overload
from gpudb.opcodes.calls import MOST_ARGUMENTS
from gpudb.record import record
from gpudb.types import BIGINT, BOOLEAN, DOUBLE, RegisterType, SqlType

R = RegisterType
VALUE, NULL, RAISED, OUTSIDE, NONE = range(5)
"""What became of a row: NULL where a function may give it, NONE where it may not."""
ANNOTATIONS = {bool: BOOLEAN, int: BIGINT, float: DOUBLE, "bool": BOOLEAN, "int": BIGINT, "float": DOUBLE}
LOOP = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 2)


@record(eq=False)
class PythonFunction:
    """A compiled function.  It equals itself only, so that no kept plan runs the one that it replaced.

    parameters, result  SQL types
    registers     of the arguments, and of masks of those that are not NULL if it takes NULLs
    takes_null    it is called where an argument is NULL, too, which is None
    gives_null    status of rows whose value is NULL; 0 where no value is
    failures      (status, what happened) of the ways in which it can fail
    side_effects  it may give something else the next time: it is called once for every row
    table         the struct Callee of kernels/ops_call.cuh
    compiled      numba's function, which must live as long as its address
    """

    name: str
    parameters: tuple[SqlType, ...]
    result: SqlType
    registers: tuple[RegisterType, ...]
    takes_null: bool
    gives_null: int
    failures: tuple[tuple[int, str], ...]
    side_effects: bool
    table: np.ndarray
    compiled: Any

    def registered(self) -> Function:
        """The function as the binder looks it up."""
        kinds = tuple(parameter.kind for parameter in self.parameters)
        return Function(self.name, (), [Overload(self.name, "python", kinds, self.result, python=self)], "")

    def over_rows(self, arguments: Sequence[np.ndarray], alive: np.ndarray | None, rows: int) -> tuple[Any, Any]:
        """(rows,) results and statuses, as Call gives them."""
        out, status = np.zeros(rows, self.result.register.dtype), np.zeros(rows, np.uint8)
        kept = [
            np.ascontiguousarray(values, kind.dtype) for values, kind in zip(arguments, self.registers, strict=True)
        ]
        pointers = np.array([values.ctypes.data for values in kept] or [0], np.uint64)
        mask = None if alive is None else np.ascontiguousarray(alive)
        where = None if mask is None else mask.ctypes.data
        LOOP(int(self.table[0]))(
            pointers.ctypes.data, out.ctypes.data, status.ctypes.data, where, mask is None or bool(mask.all()), rows
        )
        return out, status


def declared_types(
    name: str, function: Callable[..., Any], parameters: Sequence[SqlType] | None, result: SqlType | None
) -> tuple[tuple[SqlType, ...], SqlType]:
    """The SQL types as given, else of the annotations int, float and bool.  Raises BindError for one that is missing."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise NotSupportedError(f"not a function written in Python: {name}") from None
    written = list(signature.parameters.values())
    if any(one.kind not in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in written):
        raise NotSupportedError(f"a Python function in SQL has positional parameters only: {name}")
    found = [_of_annotation(name, one.name, one.annotation) for one in written] if parameters is None else parameters
    if len(found) != len(written):
        raise BindError(f"a Python function has another number of parameters than types are given: {name}")
    returned = _of_annotation(name, "return", signature.return_annotation) if result is None else result
    for sql in (*found, returned):
        if not _is_supported(sql):
            raise NotSupportedError(
                f"a Python function in SQL takes and gives no {sql}: {name}",
                hint="it may take and give BOOLEAN, TINYINT, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE, DATE, TIMESTAMP",
            )
    return tuple(found), returned


def _of_annotation(name: str, what: str, annotation: Any) -> SqlType:
    found = ANNOTATIONS.get(annotation) if isinstance(annotation, type | str) else None
    if found is None:
        raise BindError(
            f"no type is known of a Python function: {name}, {what}",
            hint="name the SQL types, or annotate it with int, float or bool",
        )
    return found


def _is_supported(sql: SqlType) -> bool:
    known = (sql.is_integer and not sql.is_unsigned) or sql.is_float or sql.kind in ("BOOLEAN", "DATE", "TIMESTAMP")
    return known and sql.register in (R.MASK, R.I32, R.I64, R.F32, R.F64)


def compile_function(
    name: str,
    function: Callable[..., Any],
    parameters: tuple[SqlType, ...],
    result: SqlType,
    takes_null: bool = False,
    side_effects: bool = False,
) -> PythonFunction:
    """Compile a function of these types (as of `declared_types`).

    Raises NotSupportedError where numba is not there, or cannot compile it, and BindError where its value is of another kind
    than `result`.
    """
    registers = tuple(sql.register for sql in parameters) + (R.MASK,) * (len(parameters) if takes_null else 0)
    if len(registers) > MOST_ARGUMENTS:
        most = MOST_ARGUMENTS // (2 if takes_null else 1)
        raise NotSupportedError(f"a Python function in SQL takes at most {most} arguments: {name}")
    numba = _numba()
    kinds = [_argument_type(numba, sql, takes_null) for sql in parameters]
    try:
        compiled = _njit(numba, function)
        compiled.compile(tuple(kinds))
        given = compiled.overloads[tuple(kinds)].signature.return_type
        optional = isinstance(given, numba.types.Optional) or given == numba.types.none
        conversion = _conversion(numba, name, given, result)
        raises = _may_raise(compiled.inspect_llvm(tuple(kinds)))
        loop = numba.cfunc(_loop_type(numba))(
            _loop(numba, compiled, parameters, result, takes_null, raises, optional, conversion)
        )
    except (BindError, NotSupportedError):
        raise
    except Exception as error:  # numba raises its own, and what its passes stumble over
        raise NotSupportedError(f"numba cannot compile a Python function: {name}: {_reason(error)}") from None
    failures = []
    if raises:
        failures.append((RAISED, "a Python function raised an exception"))
    if conversion.checked:
        failures.append((OUTSIDE, f"a Python function gave a value that does not fit into {result}"))
    if optional and not takes_null:
        failures.append((NONE, "a Python function gave None, which nulls='special' would allow"))
    widths = [kind.width for kind in registers] + [0] * (MOST_ARGUMENTS - len(registers))
    table = np.array([loop.address, len(registers), result.register.width, *widths], np.int64)
    null = NULL if optional and takes_null else 0
    return PythonFunction(
        name, parameters, result, registers, takes_null, null, tuple(failures), side_effects, table, loop
    )


def _numba() -> Any:
    try:
        import numba
    except ImportError:
        raise NotSupportedError(
            "Python functions in SQL want numba, which is not installed", hint="pip install 'gpudb-engine[udf]'"
        ) from None
    return numba


def _njit(numba: Any, function: Callable[..., Any]) -> Any:
    """For compiled code to call: without what Python would call it by, which takes as long to compile as itself."""
    return numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)


def _argument_type(numba: Any, sql: SqlType, takes_null: bool) -> Any:
    types = numba.types
    kind = types.boolean if sql.kind == "BOOLEAN" else types.float64 if sql.is_float else types.int64
    return types.Optional(kind) if takes_null else kind


def _loop_type(numba: Any) -> Any:
    types = numba.types
    return types.void(
        types.CPointer(types.voidptr), types.voidptr, types.voidptr, types.voidptr, types.int64, types.int64
    )


def _may_raise(llvm: str) -> bool:
    """Does a compiled function return anything but 0, "all is well"?  Told by its optimised code."""
    bodies = re.findall(r"^define [^\n]*%excinfo[^\n]*{\n.*?^}", llvm, re.M | re.S)
    returned = {status for body in bodies for status in re.findall(r"^  ret i32 (\S+)", body, re.M)}
    return returned != {"0"}


@record
class _Conversion:
    """Python expressions over `r`, what a function gave: when it fits (None: always), and what it becomes."""

    rounded: str
    fits: str | None
    value: str

    @property
    def checked(self) -> bool:
        return self.fits is not None


def _conversion(numba: Any, name: str, given: Any, result: SqlType) -> _Conversion:
    types = numba.types
    kind = given.type if isinstance(given, types.Optional) else given
    is_float, is_bool = isinstance(kind, types.Float), kind == types.boolean
    if kind == types.none:
        return _Conversion("r", None, "0")
    if not (is_float or is_bool or isinstance(kind, types.Integer)):
        raise BindError(f"a Python function gives no number, but numba's {given}: {name}")
    if result.kind == "BOOLEAN":
        return _Conversion("r", None, "r != 0")
    if result.is_float:
        return _Conversion("r", None, "r")
    if is_bool or (result.is_temporal and is_float):
        raise BindError(f"a Python function gives a {'bool' if is_bool else 'float'}, and not a {result}: {name}")
    low, high = result.bounds
    if is_float:
        # Of 64 bits the highest integer is no float: the next one is above it.
        above = float(high + 1) if result.register is R.I64 else math.nextafter(float(high), math.inf)
        return _Conversion("round_even(r)", f"{float(low)!r} <= r < {above!r}", "int(r)")
    if kind.signed and kind.bitwidth < result.bounds[1].bit_length() + 1:
        return _Conversion("r", None, "r")
    if kind.signed and low == -(1 << 63) and high == (1 << 63) - 1:
        return _Conversion("r", None, "r")
    return _Conversion("r", f"{f'{low} <= ' if kind.signed else ''}r <= {high}", "r")


def _loop(
    numba: Any,
    function: Any,
    parameters: tuple[SqlType, ...],
    result: SqlType,
    takes_null: bool,
    raises: bool,
    optional: bool,
    conversion: _Conversion,
) -> Any:
    """The loop over rows: op_Call of kernels/ops_call.cuh says what it is called with."""
    count = len(parameters)
    of_row = ", ".join([f"a{k}[i]" for k in range(count * (2 if takes_null else 1))])
    values = [
        f"x{k} != 0" if sql.kind == "BOOLEAN" else f"{'float64' if sql.is_float else 'int64'}(x{k})"
        for k, sql in enumerate(parameters)
    ]
    names = ", ".join(f"x{k}" for k in range(count * (2 if takes_null else 1)))
    lines = [f"def row({names}):"]
    for k, value in enumerate(values):
        lines += [f"    y{k} = {value} if x{count + k} else None" if takes_null else f"    y{k} = {value}"]
    call = f"r = function({', '.join(f'y{k}' for k in range(count))})"
    if raises:
        lines += ["    try:", f"        {call}", "    except Exception:", f"        return zero, {RAISED}"]
    else:
        lines += [f"    {call}"]
    lines += ["    return converted(r)"]
    lines += ["def converted(r):"]
    if optional:  # the multiplication gives numba's own type, without None
        lines += [f"    if r is None: return zero, {NULL if takes_null else NONE}", "    r = r * 1"]
    lines += [f"    r = {conversion.rounded}"]
    if conversion.fits is not None:
        lines += [f"    if not ({conversion.fits}): return zero, {OUTSIDE}"]
    lines += [f"    return kind({conversion.value}), {VALUE}"]
    lines += ["def rows(arguments, out, status, alive, every, count):"]
    lines += [f"    a{k} = carray(arguments[{k}], count, kind{k})" for k in range(count * (2 if takes_null else 1))]
    lines += ["    results = carray(out, count, kind)", "    statuses = carray(status, count, uint8)"]
    lines += ["    if every:", "        for i in range(count):"]
    lines += [f"            results[i], statuses[i] = row({of_row})"]
    lines += ["    else:", "        mask = carray(alive, count, uint8)", "        for i in range(count):"]
    lines += [f"            results[i], statuses[i] = row({of_row}) if mask[i] else (zero, {VALUE})"]
    kinds: dict[str, Any] = {f"kind{k}": sql.register.dtype.type for k, sql in enumerate(parameters)}
    if takes_null:
        kinds |= {f"kind{count + k}": np.uint8 for k in range(count)}
    kind = result.register.dtype.type
    scope: dict[str, Any] = {"function": function, "carray": numba.carray, "kind": kind, **kinds}
    scope |= {
        "uint8": np.uint8,
        "int64": np.int64,
        "float64": np.float64,
        "zero": kind(0),
        "round_even": _njit(numba, _rounded),
    }
    exec("\n".join(lines), scope)  # numba wants a function of so many parameters
    scope["converted"] = _njit(numba, scope["converted"])
    scope["row"] = _njit(numba, scope["row"])
    return scope["rows"]


def _rounded(x: float) -> float:
    """To the nearest integer, half to even."""
    return np.rint(x)


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def _reason(error: Exception) -> str:
    """What numba says in a page, in a line: what it does not take, and in which line of the function's file."""
    text = _COLOUR.sub("", str(error))
    lines = [line.strip() for line in text.splitlines()]
    said = [line for line in lines if line and not line.startswith(("Failed in ", "File ", "^", "- ", "[1]"))]
    reason = said[0].removeprefix(">>> ").rstrip(".") if said else type(error).__name__
    if reason.endswith(":") and len(said) > 1:
        reason += " " + said[1].removeprefix(">>> ")
    place = re.search(r"File \"?([^\"\n]+)\"?(?:, line | \()(\d+)", text)
    return reason if place is None else f"{reason}, in line {place[2]} of {place[1]}"
