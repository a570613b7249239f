"""Types of the operators: which operand types each takes, and what DuckDB makes of them."""

from __future__ import annotations

from gpudb.calendar import MICROSECONDS_A_DAY
from gpudb.errors import BindError, NotSupportedError
from gpudb.functions import lookup
from gpudb.functions.registry import Overload
from gpudb.planner.bind.casts import as_decimal, cast, common_type, comparison_type, order_type
from gpudb.planner.bind.context import Context, join_spans
from gpudb.planner.bind.intervals import (
    comparable,
    difference,
    difference_of_moments,
    negated_interval,
    scaled_interval,
    shifted,
    sum_of_intervals,
)
from gpudb.planner.bind.spelled import spelled
from gpudb.planner.expressions import Call, Comparison, Expression, Literal, Span
from gpudb.types import (
    BIGINT,
    BLOB,
    DATE,
    DOUBLE,
    HUGEINT,
    INTEGER,
    INTERVAL,
    NULL,
    REAL,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    SqlType,
    decimal,
)

SYMBOLS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "integer_divide": "//",
    "modulo": "%",
    "decimal_modulo": "%",
    "power": "^",
    "bit_and": "&",
    "bit_or": "|",
    "bit_not": "~",
    "xor": "xor",
    "shift_left": "<<",
    "shift_right": ">>",
}


BITWISE = ("bit_and", "bit_or", "xor", "shift_left", "shift_right")


def arithmetic(context: Context, name: str, left: Expression, right: Expression) -> Expression:
    """A binary operator by its registry name."""
    span = join_spans(left.span, right.span)
    if TIME in (left.type, right.type):
        return _time_arithmetic(context, name, left, right, span)
    if name in ("add", "subtract") and _is_date_arithmetic(left.type, right.type):
        return _date_arithmetic(context, name, left, right, span)
    if name == "multiply" and right.type == INTERVAL:
        left, right = right, left
    if name in ("multiply", "divide") and left.type == INTERVAL and right.type.is_numeric:
        return scaled_interval(context, name, left, right, span)
    for operand in (left, right):
        literal_text = operand.type.is_text and context.is_literal_token(operand)
        if not (operand.type.is_numeric or operand.type.kind == "NULL" or literal_text):
            raise _no_operator(name, left, right, span)
    if name == "divide" and context.settings.get("integer_division") and _integers(left, right):
        name = "integer_divide"
    if _fits_several(context, name, left, right):
        raise BindError(
            f"several operators {SYMBOLS[name]} fit {left.type} and {right.type}: text may be a number or a time",
            span=span,
            hint="cast the text to the type that is meant",
        )
    quotient = name == "integer_divide" and not _integers(left, right)  # of floats and decimals // does not cut
    if quotient or name in ("divide", "power"):
        return _call(context, name, _float_type(name, left, right), left, right, span)
    if name in ("bit_and", "bit_or", "shift_left", "shift_right") and not _integers(left, right):
        raise _no_operator(name, left, right, span)
    if left.type.is_unsigned or right.type.is_unsigned:
        found = _unsigned_arithmetic(context, name, left, right, span)
        if found is not None:
            return found
    if "DECIMAL" in (left.type.kind, right.type.kind) and not (left.type.is_float or right.type.is_float):
        return _decimal_arithmetic(context, name, left, right, span)
    if all(operand.type.kind == "NULL" or operand.type.is_text for operand in (left, right)):
        if not any(operand.type.kind == "NULL" for operand in (left, right)):
            raise _no_operator(name, left, right, span)
        return Literal(BIGINT, None, span=span)
    type_ = common_type(context, [left, right])
    if type_ is None or type_.is_text:
        raise _no_operator(name, left, right, span)
    return _call(context, name, type_, left, right, span)


_SIGNED = {
    "UTINYINT": INTEGER,
    "USMALLINT": INTEGER,
    "UINTEGER": BIGINT,
    "UBIGINT": HUGEINT,
}  # that hold the unsigned ones


def _unsigned_arithmetic(
    context: Context, name: str, left: Expression, right: Expression, span: Span | None
) -> Expression | None:
    """What differs where an operand is unsigned: what it gives beside a signed one, and bits; None where nothing does."""
    type_ = common_type(context, [left, right])
    if type_ is None or not type_.is_integer:
        return None
    if not type_.is_unsigned:  # with a signed type that does not hold it, BIGINT is as good as any
        narrow = type_ not in (left.type, right.type) and type_ != HUGEINT
        return arithmetic(context, name, cast(context, left, BIGINT), cast(context, right, BIGINT)) if narrow else None
    if name in BITWISE:
        wide = _SIGNED[type_.kind]
        if name == "shift_right" and wide == HUGEINT:
            sql = "CASE WHEN n > 63 THEN 0::UBIGINT ELSE (x::HUGEINT // (1::HUGEINT << n))::UBIGINT END"
            return spelled(context, sql, span, x=cast(context, left, type_), n=cast(context, right, INTEGER))
        left, right = (cast(context, cast(context, side, type_), wide) for side in (left, right))
        return cast(context, _call(context, name, wide, left, right, span), type_)
    return None


def _fits_several(context: Context, name: str, left: Expression, right: Expression) -> bool:
    """Whether one operand is a text literal, and the other one also has this operator with a DATE or an INTERVAL."""

    def beside_text(text: Expression, other: Expression, *kinds: str) -> bool:
        return text.type.is_text and context.is_literal_token(text) and other.type.kind in kinds

    if name == "add":  # DATE + INTEGER
        return beside_text(left, right, "INTEGER") or beside_text(right, left, "INTEGER")
    if name == "subtract":
        return beside_text(left, right, "INTEGER")
    scales = ("BIGINT", "DECIMAL", "DOUBLE", "NULL")  # of an interval; any other multiplies its own kind only
    if name == "multiply":
        return beside_text(left, right, *scales) or beside_text(right, left, *scales)
    return name == "divide" and beside_text(left, right, *scales, "TINYINT", "SMALLINT", "INTEGER", "HUGEINT")


def _call(
    context: Context, name: str, type_: SqlType, left: Expression, right: Expression, span: Span | None
) -> Expression:
    overload = _overload(name, type_, 2, span)
    return Call(type_, name, (cast(context, left, type_), cast(context, right, type_)), overload, span=span)


def _overload(name: str, type_: SqlType, count: int, span: Span | None) -> Overload | None:
    """The registry's overload of an operator that is a function there; None for the arithmetic that is not."""
    function = lookup(name)
    if function is None or function.macro is not None:  # add(x, y) is a macro of the operator
        return None
    for overload in function.overloads:
        if overload.arguments == (type_.kind,) * count:
            return overload
    raise NotSupportedError(f"operator {SYMBOLS[name]} of {type_} is not supported", span=span)


def _no_operator(name: str, left: Expression, right: Expression, span: Span | None) -> BindError:
    return BindError(
        f"no operator {SYMBOLS[name]} for {left.type} and {right.type}",
        span=span,
        hint="cast an operand to another type",
    )


def _integers(left: Expression, right: Expression) -> bool:
    return all(e.type.is_integer or e.type.kind == "NULL" or e.type.is_text for e in (left, right))


def _float_type(name: str, left: Expression, right: Expression) -> SqlType:
    types = (left.type, right.type)
    return REAL if REAL in types and DOUBLE not in types and name != "power" else DOUBLE


def _decimal_arithmetic(
    context: Context, name: str, left: Expression, right: Expression, span: Span | None
) -> Expression:
    """DECIMAL with DECIMAL or integers: + - keep one more digit, * adds precisions and scales, % keeps the wider."""
    if "NULL" in (left.type.kind, right.type.kind):
        return Literal(NULL, None, span=span)
    if left.type.is_text or right.type.is_text:
        return _call(context, name, DOUBLE, left, right, span)
    first, second = as_decimal(left.type), as_decimal(right.type)
    if name == "multiply":
        scale = first.scale + second.scale
        if scale > 38:
            raise BindError(
                f"scale of a DECIMAL product is larger than 38: {scale}", span=span, hint="cast an operand to DOUBLE"
            )
        precision = min(38, first.precision + second.precision)
        if precision > 18 and max(first.precision, second.precision) <= 18 and scale < 18:
            precision = 18
        arguments = (cast(context, left, first), cast(context, right, second))
        return Call(decimal(precision, scale), name, arguments, span=span)
    scale = max(first.scale, second.scale)
    whole = max(first.precision - first.scale, second.precision - second.scale)
    if name == "modulo":
        if whole + scale > 38:
            return _call(context, "decimal_modulo", DOUBLE, left, right, span)
        type_ = decimal(whole + scale, scale)
    else:
        type_ = decimal(min(38, whole + scale + 1), scale)
    return _call(context, name, type_, left, right, span)


def _time_arithmetic(context: Context, name: str, left: Expression, right: Expression, span: Span | None) -> Expression:
    """DATE + TIME is a TIMESTAMP; TIME + and - INTERVAL go round the clock by its microseconds."""
    if name == "add" and left.type != TIME:
        left, right = right, left
    if name == "add" and right.type == DATE:
        sql = "CASE WHEN isinf(d) THEN d::TIMESTAMP ELSE make_timestamp(epoch_us(d) + epoch_us(t)) END"
        return spelled(context, sql, span, d=right, t=left)
    if left.type == TIME and right.type == INTERVAL and name in ("add", "subtract"):
        if not isinstance(right, Literal):
            raise NotSupportedError("an INTERVAL beside a TIME must be a constant", span=right.span or span)
        context.consume(right)
        if right.value is None:
            return Literal(TIME, None, span=span)
        moved = right.value.microseconds * (1 if name == "add" else -1) % MICROSECONDS_A_DAY
        sql = f"time_of_microseconds((epoch_us(t) + n) % {MICROSECONDS_A_DAY})"
        return spelled(context, sql, span, t=left, n=Literal(BIGINT, moved))
    raise _no_operator(name, left, right, span)


def _is_date_arithmetic(left: SqlType, right: SqlType) -> bool:
    return any(type_.is_temporal or type_ == INTERVAL for type_ in (left, right))


def _date_arithmetic(context: Context, name: str, left: Expression, right: Expression, span: Span | None) -> Expression:
    """DATE and TIMESTAMP with days, intervals and each other."""
    one, other = left.type, right.type
    if name == "add" and not one.is_temporal and other.is_temporal:
        return _date_arithmetic(context, name, right, left, span)
    if one.is_temporal and other == INTERVAL:
        return shifted(context, name, left, right, span)
    if one in (TIMESTAMP, TIMESTAMPTZ) and context.is_literal_token(right) and other.is_text and name == "add":
        return shifted(context, name, left, cast(context, right, INTERVAL), span)
    if one == INTERVAL and other == INTERVAL:
        return sum_of_intervals(context, name, left, right, span)
    if one == DATE and (
        other.kind == "NULL" or other.kind in ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT")
    ):
        return Call(DATE, name, (left, cast(context, right, INTEGER)), span=span)
    if one in (TIMESTAMP, TIMESTAMPTZ) and other.kind == "NULL":
        return Literal(one, None, span=span)
    if name == "subtract" and one.kind == "NULL" and other.is_temporal:
        return Literal(BIGINT if other == DATE else INTERVAL, None, span=span)
    if name == "subtract":
        left = cast(context, left, other) if one.is_text and context.is_literal_token(left) else left
        right = cast(context, right, one) if other.is_text and context.is_literal_token(right) else right
        one, other = left.type, right.type
        if one == DATE and other == DATE:
            return Call(BIGINT, name, (left, right), span=span)
        if TIMESTAMPTZ in (one, other) and one.is_temporal and other.is_temporal:
            left, right = (cast(context, side, TIMESTAMPTZ) for side in (left, right))
            return difference_of_moments(context, left, right, span)
        if one.is_temporal and other.is_temporal:
            return difference(context, cast(context, left, TIMESTAMP), cast(context, right, TIMESTAMP), span)
    raise _no_operator(name, left, right, span)


def negate(context: Context, operand: Expression, span: Span | None) -> Expression:
    """Unary minus; a number token becomes its negative."""
    type_ = operand.type
    if type_.kind == "NULL":
        return Literal(BIGINT, None, span=span)
    if not type_.is_numeric:
        if type_ == INTERVAL:
            return negated_interval(context, operand, span)
        raise BindError(f"no operator - for {type_}", span=span)
    if isinstance(operand, Literal) and context.is_literal_token(operand):
        value = -operand.value
        # 9223372036854775808 is a HUGEINT, its negative a BIGINT.
        target = BIGINT if type_.is_integer and type_.kind == "HUGEINT" and value == BIGINT.bounds[0] else type_
        return Literal(
            target, value, operand.slot, (*operand.steps, ("negate", type_, target)), span=span, bound=operand.bound
        )
    return Call(type_, "negate", (operand,), span=span)


def bit_not(context: Context, operand: Expression, span: Span | None) -> Expression:
    """~x of an integer."""
    if operand.type.kind == "NULL":
        return Literal(BIGINT, None, span=span)
    if not operand.type.is_integer:
        raise BindError(f"no operator ~ for {operand.type}", span=span)
    if operand.type.is_unsigned:
        return Call(operand.type, "subtract", (Literal(operand.type, operand.type.bounds[1]), operand), span=span)
    return Call(operand.type, "bit_not", (operand,), _overload("bit_not", operand.type, 1, span), span=span)


def concatenate(context: Context, operands: list[Expression], span: Span | None) -> Expression:
    """a || b || c: everything as text; NULL makes NULL."""
    if any(operand.type.kind == "NULL" for operand in operands):
        return Literal(NULL, None, span=span)
    function = lookup("concat_operator")
    overload = function.overloads[0] if function else None
    if all(operand.type == BLOB for operand in operands):
        return Call(BLOB, "concat_operator", tuple(operands), overload, span=span)
    texts = tuple(cast(context, operand, VARCHAR) for operand in operands)
    return Call(VARCHAR, "concat_operator", texts, overload, span=span)


def compare(
    context: Context, operator: str, left: Expression, right: Expression, span: Span | None = None
) -> Expression:
    """left operator right in their common type; for equality, text yields to other types and BOOLEAN to numbers."""
    from gpudb.types import BOOLEAN

    if INTERVAL in (left.type, right.type):
        left, right = (cast(context, side, INTERVAL) for side in (left, right))
        left, right = comparable(context, left), comparable(context, right)
    find_type = order_type if operator in ("<", "<=", ">", ">=") else comparison_type
    type_ = find_type(context, [left, right])
    if type_ is None:
        raise BindError(
            f"cannot compare {left.type} with {right.type}",
            span=span or join_spans(left.span, right.span),
            hint="cast an operand to the other's type",
        )
    left, right = cast(context, left, type_), cast(context, right, type_)
    return Comparison(BOOLEAN, operator, left, right, span=span or join_spans(left.span, right.span))
