"""Lists: literals, elements, and functions of them.

A LIST is a value of a query: made by [...], list_value() and array_agg(), taken apart by UNNEST, x[i] and functions.  No
table stores one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpudb.errors import BindError, NotSupportedError
from gpudb.functions import lists as functions
from gpudb.functions.list_spelling import width
from gpudb.functions.registry import Overload
from gpudb.planner.bind.casts import cast, common_type, implicit_cost, wider_type
from gpudb.planner.expressions import (
    Call,
    Case,
    Coalesce,
    Comparison,
    Expression,
    IsNull,
    Literal,
    Span,
)
from gpudb.types import BIGINT, BOOLEAN, INTEGER, SqlType, list_of

if TYPE_CHECKING:
    from gpudb.planner.bind.expressions import ExpressionBinder

_END = (1 << 62) - 1  # of a slice that has none
_MAKERS = frozenset(("list_value", "list_pack", "array_value"))
_LENGTHS = frozenset(("len", "length", "array_length"))
_ELEMENTS = frozenset(("list_extract", "list_element", "array_extract"))
_CONTAINS = frozenset(("list_contains", "list_has", "array_contains", "array_has", "contains"))
_POSITIONS = frozenset(("list_position", "list_indexof", "array_position", "array_indexof"))
_SLICES = frozenset(("list_slice", "array_slice"))
_CONCATENATIONS = frozenset(("list_concat", "list_cat", "array_concat", "array_cat"))
_SERIES = ("range", "generate_series")
_ONLY_LISTS = (
    _ELEMENTS | _CONTAINS - {"contains"} | _POSITIONS | _CONCATENATIONS | _SLICES | {"array_length", "list_product"}
)
NAMES = tuple(sorted(_MAKERS | _ONLY_LISTS))


def list_call(binder: ExpressionBinder, name: str, arguments: list[Expression], span: Span | None) -> Expression | None:
    """A call of a function of lists; None where it is none, or is one of texts."""
    if name in _MAKERS:
        return list_value(binder, arguments, span)
    if name in _SERIES:
        return _series(binder, name, arguments, span)
    if not any(argument.type.child is not None for argument in arguments):
        if name in _ONLY_LISTS and arguments:
            if arguments[0].type.kind == "NULL":
                return _of_no_list(name)
            raise BindError(f"{name} wants a list, not {arguments[0].type}", span=span)
        return None
    if name in _CONCATENATIONS:
        return _concatenation(binder, name, arguments, span)
    if name in _SLICES and 3 <= len(arguments) <= 4 and arguments[0].type.child is not None:
        return sliced(binder, arguments[0], [*arguments[1:]], span)
    wanted = 1 if name in (*_LENGTHS, "list_product") else 2 if name in _ELEMENTS | _CONTAINS | _POSITIONS else None
    if wanted is None:
        return None
    if len(arguments) != wanted or (arguments[0].type.child is None and arguments[0].type.kind != "NULL"):
        raise BindError(f"{name} wants a list" + (" and a value" if wanted == 2 else ""), span=span)
    if arguments[0].type.kind == "NULL":
        return _of_no_list(name)
    if name in _LENGTHS:
        return length(arguments[0], span)
    if name == "list_product":
        return product(binder, arguments[0], span)
    if name in _ELEMENTS:
        return element(binder, arguments[0], arguments[1], span)
    return _position(binder, name, arguments[0], arguments[1], span)


def _of_no_list(name: str) -> Literal:
    if name in _CONTAINS:
        return Literal(BOOLEAN, None)
    return Literal(BIGINT if name in _LENGTHS else INTEGER, None)


def child_of(expression: Expression) -> SqlType:
    """The type of a list's elements."""
    assert expression.type.child is not None, "it is a list"
    return expression.type.child


def list_value(binder: ExpressionBinder, arguments: list[Expression], span: Span | None) -> Expression:
    """[a, b, ...]: the values in their common type."""
    if not arguments:
        return Literal(list_of(INTEGER), "", span=span)
    child = common_type(binder.context, arguments)
    if child is None:
        shown = ", ".join(dict.fromkeys(str(argument.type) for argument in arguments))
        raise BindError(f"values of a list have no common type: {shown}", span=span, hint="cast them to one type")
    child = child_of(Literal(list_of(child), None))
    _check(child, span)
    known = ""
    given: list[Expression] = []
    for argument in arguments:
        value = cast(binder.context, argument, child)
        if isinstance(value, Literal):
            if value.value is None and value.slot is not None:
                binder.context.consume(value)
            known += "n" if value.value is None else "v"
            given += [value] if value.value is not None else []
            continue
        known += "m"
        given += [Coalesce(child, (value, _anything(child))), IsNull(BOOLEAN, value)]
    if not given:
        return Literal(list_of(child), functions.spelled_list(len(known), child), span=span)
    return _called(functions.list_value(child, known), given, span)


def type_of(value: Expression, span: Span | None) -> SqlType:
    """The type of lists of such values."""
    _check(child_of(Literal(list_of(value.type), None)), span)
    return list_of(value.type)


def _check(child: SqlType, span: Span | None) -> None:
    try:
        width(child)
    except NotSupportedError as error:
        error.span = error.span or span
        raise


def _anything(child: SqlType) -> Literal:
    """A value that stands where there is none."""
    if child.is_coded:
        return Literal(child, "")
    return Literal(child, False if child == BOOLEAN else 0.0 if child.is_float else 0)


def _called(overload: Overload, arguments: list[Expression], span: Span | None) -> Call:
    return Call(overload.result, overload.name, tuple(arguments), overload, span=span)


def text(value: Expression) -> Expression:
    """CAST(list AS VARCHAR)."""
    return _called(functions.text(value.type), [value], value.span)


def length(value: Expression, span: Span | None = None) -> Expression:
    """How many elements a list has."""
    return _called(functions.length(child_of(value)), [value], span)


def element_at(value: Expression, number: Expression, span: Span | None = None) -> Expression:
    """The element of a list at a number from 0."""
    return _called(functions.element_at(child_of(value)), [value, number], span)


def element(binder: ExpressionBinder, value: Expression, number: Expression, span: Span | None) -> Expression:
    """x[i]: from 1, or from the end where i is below 0; NULL where there is none."""
    from gpudb.planner.bind.functions import expand

    if implicit_cost(binder.context, number, "BIGINT") is None:
        raise BindError(f"a place in a list is a number, not {number.type}", span=number.span or span)
    at = cast(binder.context, number, BIGINT)
    sql = "CASE WHEN i > 0 THEN i - 1 WHEN i < 0 THEN n + i END"
    place = expand(binder, (("i", "n"), sql), [at, length(value)], span)
    return element_at(value, place, span)


def sliced(
    binder: ExpressionBinder, value: Expression, given: list[Expression | None], span: Span | None
) -> Expression:
    """x[begin:end:step]; what is left out is the first, the last and 1."""
    places: list[Expression] = []
    for number, left_out in zip((*given, None, None, None)[:3], (1, _END, 1), strict=True):
        if number is None:
            places.append(Literal(BIGINT, left_out))
            continue
        if implicit_cost(binder.context, number, "BIGINT") is None:
            raise BindError(f"a place in a list is a number, not {number.type}", span=number.span or span)
        places.append(cast(binder.context, number, BIGINT))
    return _called(functions.slices(value.type), [value, *places], span)


def product(binder: ExpressionBinder, value: Expression, span: Span | None) -> Expression:
    """The product of a list of DOUBLE."""
    return _called(functions.product(), [value], span)


def _position(
    binder: ExpressionBinder, name: str, value: Expression, wanted: Expression, span: Span | None
) -> Expression:
    child = child_of(value)
    if wanted.type.kind == "NULL" and name in _CONTAINS:
        return Literal(BOOLEAN, None)
    if wanted.type.kind == "NULL":
        raise NotSupportedError(f"{name} of NULL is not supported", span=wanted.span or span)
    literal = binder.context.is_literal_token(wanted)
    if wanted.type != child and not literal and wider_type(wanted.type, child) != child:
        raise NotSupportedError(f"{name} of {wanted.type} in {value.type} is not supported", span=span, hint="cast it")
    if literal and wanted.type.kind in ("DECIMAL", "DOUBLE") and child.is_integer:
        raise NotSupportedError(f"{name} of {wanted.type} in {value.type} is not supported", span=span, hint="cast it")
    found = _called(functions.position(child), [value, cast(binder.context, wanted, child)], span)
    if name in _CONTAINS:
        return Comparison(BOOLEAN, ">", found, Literal(BIGINT, 0), span=span)
    missing = Comparison(BOOLEAN, "=", found, Literal(BIGINT, 0))
    return Case(INTEGER, (missing,), (Literal(INTEGER, None),), cast(binder.context, found, INTEGER), span=span)


def _concatenation(binder: ExpressionBinder, name: str, arguments: list[Expression], span: Span | None) -> Expression:
    """The elements of lists in turn; NULL is as no element."""
    kinds = {argument.type for argument in arguments if argument.type.kind != "NULL"}
    if len(kinds) > 1:
        shown = ", ".join(sorted(map(str, kinds)))
        raise NotSupportedError(f"{name} of different types is not supported: {shown}", span=span)
    (kind,) = kinds
    given = []
    for argument in arguments:
        if argument.type.kind != "NULL":
            given.append(Coalesce(kind, (argument, Literal(kind, ""))))
    return _called(functions.concatenation(kind, len(given)), list(given), span)


def concatenated(operands: list[Expression], span: Span | None) -> Expression:
    """list || list: NULL where one is NULL."""
    kinds = {operand.type for operand in operands}
    if len(kinds) > 1:
        shown = ", ".join(dict.fromkeys(str(operand.type) for operand in operands))
        raise NotSupportedError(f"|| of these types is not supported: {shown}", span=span)
    return _called(functions.concatenation(operands[0].type, len(operands)), operands, span)


def _series(binder: ExpressionBinder, name: str, arguments: list[Expression], span: Span | None) -> Expression:
    """range() and generate_series() as lists of BIGINT."""
    start, stop, step = counted_by(binder, name, arguments, span)
    return _called(functions.counting(name == "generate_series"), [start, stop, step], span)


def counted_by(
    binder: ExpressionBinder, name: str, arguments: list[Expression], span: Span | None
) -> tuple[Expression, Expression, Expression]:
    """(start, stop, step) of a series of whole numbers."""
    if not 1 <= len(arguments) <= 3:
        raise BindError(f"{name} wants 1 to 3 arguments: [start,] stop [, step]", span=span)
    if any(argument.type.is_temporal for argument in arguments):
        raise NotSupportedError(f"{name} of times is not supported here", span=span, hint=f"write FROM {name}(...)")
    numbers = []
    for argument in arguments:
        if implicit_cost(binder.context, argument, "BIGINT") is None:
            raise BindError(f"{name} takes BIGINT here, not {argument.type}", span=argument.span or span)
        numbers.append(cast(binder.context, argument, BIGINT))
    start = numbers[0] if len(numbers) > 1 else Literal(BIGINT, 0)
    step = numbers[2] if len(numbers) == 3 else Literal(BIGINT, 1)
    return start, numbers[min(1, len(numbers) - 1)], step
