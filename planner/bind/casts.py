"""Types and casts: type names, which casts exist, which happen by themselves, and the common type of several values."""

from __future__ import annotations

from typing import Any

from gpudb.errors import BindError, DataError, NotSupportedError
from gpudb.functions import COST, OTHER_COST, enums, lookup
from gpudb.planner.bind.context import Context, not_found, own_span
from gpudb.planner.constants import can_cast_constant, cast_constant
from gpudb.planner.expressions import Call, Cast, Expression, Literal, Span
from gpudb.planner.tokens import TYPE
from gpudb.planner.type_names import KNOWN_TYPES, TYPE_NAMES
from gpudb.time_zones import UTC
from gpudb.types import (
    BLOB,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER_BITS,
    REAL,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNSIGNED_BITS,
    UUID,
    VARCHAR,
    SqlType,
    decimal,
    enum_of,
    list_of,
)

_WIDTHS = {"TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "BIGINT": 19, "HUGEINT": 38}
_WIDTHS |= {"UTINYINT": 3, "USMALLINT": 5, "UINTEGER": 10, "UBIGINT": 20}
_INTEGER_ORDER = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")


# --- Names -----------------------------------------------------------------------------------------------------------


def type_words(node: Any) -> tuple[str, list[Any], Span | None]:
    """The name of a type as written, its arguments, and its place.  `node` is a sqlglot DataType."""
    marked = str(node.args.get("kind") or "")
    if node.key != "datatype" or not marked.startswith(TYPE):
        inner = next((part for part in node.walk() if own_span(part) is not None), node)
        what = {"array": "list", "list": "list"}.get(str(node.this.value).lower(), str(node.this.value))
        raise NotSupportedError(f"type is not supported: {what}", span=own_span(inner))
    _, start, end, name = marked.split(TYPE)
    return name.replace("\xa0", " "), list(node.expressions), (int(start), int(end))


def bind_type(context: Context, node: Any) -> SqlType:
    """A type's name and arguments as a SqlType; the values of the arguments are consumed."""
    name, arguments, span = type_words(node)
    lower = " ".join(name.lower().split())
    if lower == "enum":
        return _enum(context, arguments, span)
    numbers = []
    for argument in arguments:
        literal = argument.this
        place = getattr(literal, "_meta", None) or {}
        slot = context.parsed.slots.get(place.get("start", -1))
        if literal.key != "literal" or literal.is_string or not str(literal.this).isdigit():
            raise NotSupportedError(f"type is not supported: {name}", span=span)
        if slot is not None:
            context.consumed.add(slot)
        numbers.append(int(literal.this))
    if lower in ("decimal", "numeric", "dec"):
        precision = numbers[0] if numbers else 18
        scale = numbers[1] if len(numbers) > 1 else (0 if numbers else 3)
        if not 1 <= precision <= 38 or scale > precision or len(numbers) > 2:
            raise BindError(
                f"DECIMAL wants 1 <= precision <= 38 and scale <= precision: {precision}, {scale}", span=span
            )
        return decimal(precision, scale)
    if lower in TYPE_NAMES:
        type_ = TYPE_NAMES[lower]
        if numbers and type_ in (TIMESTAMP, TIMESTAMPTZ) and numbers[0] != 6:
            raise NotSupportedError(f"{type_} with a precision other than 6 is not supported", span=span)
        if lower == "float" and numbers and numbers[0] > 24:
            return DOUBLE
        return type_
    values = context.catalog.enum(name)
    if values is not None and not numbers:
        context.volatile = True  # the name may come to mean another type
        return enum_of(values)
    if lower in KNOWN_TYPES or "time zone" in lower:  # of TIME, still
        raise NotSupportedError(f"type is not supported: {name.upper()}", span=span)
    raise not_found("type", name, list(TYPE_NAMES), span)


def _enum(context: Context, arguments: list[Any], span: Span | None) -> SqlType:
    """ENUM('a', 'b') as a type."""
    values = []
    for argument in arguments:
        literal = argument.this
        if literal.key != "literal" or not literal.is_string:
            raise NotSupportedError("ENUM of anything but texts is not supported", span=span)
        slot = context.parsed.slots.get((getattr(literal, "_meta", None) or {}).get("start", -1))
        if slot is not None:
            context.consumed.add(slot)
        values.append(str(literal.this))
    return checked_enum(values, span)


def checked_enum(values: list[str], span: Span | None) -> SqlType:
    """The ENUM of texts, which differ from each other."""
    twice = next((value for place, value in enumerate(values) if value in values[:place]), None)
    if twice is not None:
        raise BindError(f"an ENUM has a value twice: {twice}", span=span)
    return enum_of(tuple(values))


# --- Casts -----------------------------------------------------------------------------------------------------------


def castable(source: SqlType, target: SqlType) -> bool:
    """Whether CAST exists between two types."""
    if "LIST" in (source.kind, target.kind):
        return (source.kind == "LIST" and target == VARCHAR) or source == target or source.kind == "NULL"
    if source == target or "NULL" in (source.kind, target.kind) or "VARCHAR" in (source.kind, target.kind):
        return True
    if source.kind == "ENUM":
        return castable(VARCHAR, target)
    if UUID in (source, target):
        return BLOB in (source, target)
    numeric = (source.is_numeric or source == BOOLEAN) and (target.is_numeric or target == BOOLEAN)
    return numeric or (source.is_temporal and (target.is_temporal or (source, target) == (TIMESTAMP, TIME)))


def cast(context: Context, expression: Expression, target: SqlType, try_: bool = False) -> Expression:
    """CAST(expression AS target).  A literal becomes a literal of the target type, with the step noted.

    Raises BindError where no such cast exists; a literal that does not fit raises what CAST would raise.
    """
    source = expression.type
    if source == target:
        return expression
    if "LIST" in (source.kind, target.kind) and not castable(source, target):
        raise NotSupportedError(f"a cast from {source} to {target} is not supported", span=expression.span)
    if source.kind == "LIST":
        from gpudb.planner.bind.lists import text

        return text(expression)
    if not castable(source, target):
        raise BindError(f"cannot cast {source} to {target}", span=expression.span)
    if TIMESTAMPTZ in (source, target) and source.kind != "NULL":
        return zoned_cast(context, expression, target, try_)
    if "ENUM" in (source.kind, target.kind) and source.kind != "NULL" and (try_ or not isinstance(expression, Literal)):
        return _enum_cast(context, expression, target, try_)
    if UUID in (source, target) and BLOB in (source, target) and (try_ or not isinstance(expression, Literal)):
        name = "blob_of_uuid" if target == BLOB else "try_uuid_of_blob" if try_ else "uuid_of_blob"
        return _function_cast(expression, target, name)
    if BLOB in (source, target) and source.kind != "NULL" and (try_ or not isinstance(expression, Literal)):
        name = "blob_text" if source == BLOB else "try_blob_of" if try_ else "blob_of"
        return _function_cast(expression, target, name)
    if isinstance(expression, Literal) and not try_:
        if source.kind == "NULL":
            return Literal(target, None, expression.slot, expression.steps, span=expression.span)
        if can_cast_constant(source, target):
            return _cast_literal(context, expression, target)
    return Cast(target, expression, try_, span=expression.span)


def _function_cast(expression: Expression, target: SqlType, name: str) -> Expression:
    """A cast that is a function of the registry."""
    function = lookup(name)
    assert function is not None, "the registry has what casts are made of"
    return Call(target, name, (expression,), function.overloads[0], span=expression.span)


def _enum_cast(context: Context, expression: Expression, target: SqlType, try_: bool) -> Expression:
    """To and from an ENUM by way of its texts."""
    source = expression.type
    if source.kind == "ENUM":
        texts = Call(VARCHAR, "enum_text", (expression,), enums.text_of(source), span=expression.span)
        return cast(context, texts, target, try_)
    return Call(target, "enum_place", (expression,), enums.place_of(target, try_), span=expression.span)


def zoned_cast(context: Context, expression: Expression, target: SqlType, try_: bool) -> Expression:
    """A cast to or from TIMESTAMP WITH TIME ZONE, through the session's zone, which becomes part of the plan."""
    source, zone = expression.type, str(context.settings.get("timezone", UTC))
    if isinstance(expression, Literal) and not try_:
        return _cast_literal(context, expression, target, f"cast in {zone}")
    if source == DATE or target == DATE:
        return cast(context, cast(context, expression, TIMESTAMP, try_), target, try_)
    name = {"VARCHAR": "try_zoned_moment" if try_ else "zoned_moment"}.get(source.kind, "at_time_zone")
    if target == VARCHAR:
        name = "zoned_text"
    function = lookup(name)
    assert function is not None, "the registry has what casts of time zones are made of"
    overload = next(found for found in function.overloads if found.arguments[-1] == source.kind)
    return Call(target, name, (Literal(VARCHAR, zone), expression), overload, span=expression.span)


def _cast_literal(context: Context, literal: Literal, target: SqlType, operation: str = "cast") -> Literal:
    zone = operation.removeprefix("cast").removeprefix(" in ")
    try:
        value = cast_constant(literal.value, literal.type, target, zone)
    except DataError as error:
        error.span = error.span or literal.span
        raise
    steps = literal.steps + ((operation, literal.type, target),) if literal.slot is not None else ()
    return Literal(target, value, literal.slot, steps, span=literal.span, bound=literal.bound)


def as_boolean(context: Context, expression: Expression) -> Expression:
    """A condition: BOOLEAN, or a number or text cast to it."""
    type_ = expression.type
    if type_ == BOOLEAN or type_.kind == "NULL" or type_.is_numeric or type_.is_text:
        return cast(context, expression, BOOLEAN)
    raise BindError(f"condition must be BOOLEAN, it is {type_}", span=expression.span)


def implicit_cost(context: Context, expression: Expression, target: str) -> int | None:
    """What it costs to let an argument pass as a kind of type: 0 as it is, None where it needs CAST."""
    source = expression.type
    if source.kind == "INTERVAL" and target in ("INTERVAL", "SPAN"):  # a constant, or one that differs from row to row
        return int(isinstance(expression, Literal) != (target == "INTERVAL"))
    if source.kind == target or target == "ANY":
        return 0
    if source.kind == "NULL":
        return COST.get(target, OTHER_COST)
    if context.is_literal_token(expression):
        if source.is_text:
            return 1 + COST.get(target, OTHER_COST)
        if source.is_integer and isinstance(expression, Literal) and target in _INTEGER_ORDER:
            low, high = SqlType(target).bounds
            return COST.get(target, OTHER_COST) if low <= expression.value <= high else None
    wider: tuple[str, ...] = ()
    if source.is_unsigned:
        bits = UNSIGNED_BITS[source.kind]
        unsigned = (kind for kind, others in UNSIGNED_BITS.items() if others > bits)
        signed = (kind for kind, others in INTEGER_BITS.items() if others > bits)
        wider = (*unsigned, *signed, "DECIMAL", "REAL", "DOUBLE")
    elif source.is_integer:
        place = _INTEGER_ORDER.index(source.kind)
        wider = (*_INTEGER_ORDER[place + 1 :], "DECIMAL", "REAL", "DOUBLE")
    elif source.kind == "DECIMAL":
        wider = ("REAL", "DOUBLE")
    elif source == REAL:
        wider = ("DOUBLE",)
    elif source.kind == "ENUM":
        wider = ("VARCHAR",)
    elif source == DATE:
        wider = ("TIMESTAMP", "TIMESTAMPTZ")
    elif source == TIMESTAMP:
        wider = ("TIMESTAMPTZ",)
    return COST.get(target, OTHER_COST) if target in wider else None


# --- Common types ----------------------------------------------------------------------------------------------------


def common_type(context: Context, expressions: list[Expression], compared: bool = False) -> SqlType | None:
    """The type that CASE, COALESCE, IN and (`compared`) comparisons bring several values to; None where there is none.

    Literals adapt: an integer literal takes the other's integer type where it fits, a string literal any type.
    """
    result: SqlType | None = None
    for expression in expressions:
        if expression.type.kind != "NULL" and not context.is_literal_token(expression):
            result = expression.type if result is None else wider_type(result, expression.type, compared)
            if result is None:
                return None
    text = False
    for expression in expressions:
        if not context.is_literal_token(expression):
            continue
        if expression.type.is_text:
            text = True
        elif result is None:
            result = expression.type
        elif not (isinstance(expression, Literal) and expression.type.is_integer and _fits(expression.value, result)):
            result = wider_type(result, expression.type, compared)
            if result is None:
                return None
    if text and result is not None and result.kind == "ENUM":
        return VARCHAR
    return result or (VARCHAR if text else expressions[0].type)


def case_type(context: Context, results: list[Expression]) -> SqlType | None:
    """The type of a CASE whose results are these, ELSE first: DuckDB combines them two by two.

    A number that meets NULL or another number before anything else adapts to nothing any more: it has the type of its value.
    """
    literal = [e.type.kind == "NULL" or context.is_literal_token(e) for e in results]
    first = literal.index(False) if False in literal else len(results)
    type_ = common_type(context, results)
    if first < 2 or type_ is None:
        return type_
    for result in results[:first]:
        if result.type.is_numeric:
            type_ = wider_type(type_, result.type)
            if type_ is None:
                return None
    return type_


def _fits(value: int, type_: SqlType) -> bool:
    low, high = type_.bounds if type_.is_integer else (1, 0)
    return low <= value <= high


def wider_type(left: SqlType, right: SqlType, compared: bool = False) -> SqlType | None:
    """The least type that holds the values of both, as DuckDB chooses it; None where only text would.

    Where two DECIMALs want more than 38 digits together, those behind the point give way, but to compare all of them count.
    """
    if left == right:
        return left
    if "ENUM" in (left.kind, right.kind) and {left.kind, right.kind} <= {"ENUM", "VARCHAR"}:
        return VARCHAR
    if BOOLEAN in (left, right):
        other = right if left == BOOLEAN else left
        return other if other.is_integer else None
    if left.is_numeric and right.is_numeric:
        if DOUBLE in (left, right):
            return DOUBLE
        if REAL in (left, right):
            return REAL
        if left.is_integer and right.is_integer:
            return _wider_integer(left, right)
        both_decimal = left.kind == right.kind == "DECIMAL"
        left, right = as_decimal(left), as_decimal(right)
        scale = max(left.scale, right.scale)
        whole = max(left.precision - left.scale, right.precision - right.scale)
        if both_decimal and not compared:
            scale = min(scale, 38 - whole)
        return decimal(min(38, whole + scale), scale)
    if left.is_temporal and right.is_temporal:
        return TIMESTAMPTZ if TIMESTAMPTZ in (left, right) else TIMESTAMP
    if left.child is not None and right.child is not None:
        child = wider_type(left.child, right.child, compared)
        return None if child is None else list_of(child)
    return None


def _wider_integer(left: SqlType, right: SqlType) -> SqlType:
    """The least integer type that holds both; HUGEINT where there is none of 64 bits."""
    if left.is_unsigned == right.is_unsigned:
        return max(left, right, key=lambda type_: type_.bounds[1])
    if right.is_unsigned:
        left, right = right, left
    most = max(left.bounds[1], right.bounds[1])
    return SqlType(next(kind for kind in INTEGER_BITS if SqlType(kind).bounds[1] >= most))


def union_type(left: SqlType, right: SqlType) -> SqlType | None:
    """The type of a column of UNION: as `wider_type`, but numbers and booleans mix, and text takes everything."""
    found = wider_type(left, right)
    if found is not None:
        return found
    for one, other in ((left, right), (right, left)):
        if one.kind == "NULL":
            return other
        if one == BOOLEAN and other.is_numeric:
            return other
    if BLOB in (left, right) and VARCHAR in (left, right):
        return BLOB
    if UUID in (left, right) and VARCHAR in (left, right):
        return UUID
    return VARCHAR if VARCHAR in (left, right) else None


def order_type(context: Context, expressions: list[Expression]) -> SqlType | None:
    """The type in which < and its kin compare values."""
    return common_type(context, expressions, compared=True)


def comparison_type(context: Context, expressions: list[Expression], compared: bool = True) -> SqlType | None:
    """The type in which values are compared: text yields to any other type, BOOLEAN to any number."""
    found = common_type(context, expressions, compared)
    if found is not None:
        return found
    types = [e.type for e in expressions if not e.type.is_text and e.type.kind != "NULL"]
    result = types[0]
    for type_ in types[1:]:
        both = wider_type(result, type_, compared)
        if both is None and BOOLEAN in (result, type_) and result.is_numeric | type_.is_numeric:
            both = type_ if result == BOOLEAN else result
        if both is None:
            return None
        result = both
    return result


def as_decimal(type_: SqlType) -> SqlType:
    """An integer type as the DECIMAL that holds it; a DECIMAL as it is."""
    return type_ if type_.kind == "DECIMAL" else decimal(_WIDTHS[type_.kind], 0)
