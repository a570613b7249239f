"""Calls: overloads of the registry, macros, functions with a form of their own, aggregates."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from gpudb.errors import BindError, NotSupportedError
from gpudb.functions import enums, lookup, names
from gpudb.functions.registry import Function, Overload
from gpudb.planner import commands, tokens
from gpudb.planner.bind import aggregates, lists, random_uuids, sequences, unnest, windows
from gpudb.planner.bind.casts import as_boolean, as_decimal, cast, common_type, implicit_cost
from gpudb.planner.bind.context import Context, join_spans, not_found, own_span
from gpudb.planner.bind.decimals import decimal_call
from gpudb.planner.bind.intervals import interval_of_unit, part_of_difference
from gpudb.planner.bind.operators import arithmetic, compare
from gpudb.planner.constants import interval_constant
from gpudb.planner.expressions import AggregateCall, Call, Case, Coalesce, Expression, IsNull, Literal, Span
from gpudb.planner.tokens import INTERVAL_UNIT, INTERVAL_UNITS, plain
from gpudb.settings import Settings
from gpudb.time_zones import zone_name
from gpudb.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTERVAL, TIME, TIMESTAMP, TIMESTAMPTZ, VARCHAR, SqlType
from gpudb.version import __version__

if TYPE_CHECKING:
    from gpudb.planner.bind.expressions import ExpressionBinder

# Functions whose first argument names a part of a date: "month" in date_trunc('month', x) becomes part of the name.
_DATE_PART_FUNCTIONS = {
    "date_part": "date_part",
    "datepart": "date_part",
    "date_trunc": "date_trunc",
    "datetrunc": "date_trunc",
    "date_diff": "date_diff",
    "datediff": "date_diff",
    "date_sub": "date_sub",
    "datesub": "date_sub",
}

DATE_PARTS = {
    name: part
    for part, spellings in {
        "millennium": "millennium millennia millenium mil mils",
        "century": "century centuries cent c",
        "decade": "decade decades dec decs",
        "year": "year years y yr yrs",
        "quarter": "quarter quarters",
        "month": "month months mon mons",
        "week": "week weeks w weekofyear",
        "day": "day days d dayofmonth",
        "hour": "hour hours h hr hrs",
        "minute": "minute minutes m min mins",
        "second": "second seconds s sec secs",
        "millisecond": "millisecond milliseconds ms msec msecs",
        "microsecond": "microsecond microseconds us usec usecs",
        "nanosecond": "nanosecond nanoseconds ns nsec nsecs",
        "epoch": "epoch",
        "dayofweek": "dow dayofweek weekday",
        "isodow": "isodow",
        "dayofyear": "doy dayofyear",
        "isoyear": "isoyear",
        "yearweek": "yearweek",
        "era": "era",
        "julian": "julian",
        "timezone": "timezone",
        "timezone_hour": "timezone_hour",
        "timezone_minute": "timezone_minute",
    }.items()
    for name in spellings.split()
}

_LATER = frozenset(
    """current_time random setseed uuidv7
    list_value struct_pack generate_series range array_length map list_transform list_filter string_split columns
    row""".split()
)


def bind_call(binder: ExpressionBinder, node: Any, condition: Any = None, within: Any = None) -> Expression:
    """`name(arguments) [WITHIN GROUP (within)] [FILTER (WHERE condition)]`."""
    written = str(node.this)
    place = own_span(node)
    if written.startswith(INTERVAL_UNIT):
        return _interval(binder, written.removeprefix(INTERVAL_UNIT), node.expressions[0])
    name = plain(written).lower()
    if aggregates.is_aggregate(name):
        return aggregates.bind_aggregate(binder, name, node, condition, within)
    if within is not None:
        raise BindError(f"WITHIN GROUP belongs to an aggregate function, this is none: {name}", span=place)
    if condition is not None:
        raise BindError(f"FILTER belongs to an aggregate function, this is none: {name}", span=place)
    if name in windows.NAMES:
        raise BindError(f"a window function wants OVER: {name}", span=place, hint=f"write {name}(...) OVER (...)")
    for argument in node.expressions:
        if argument.key in ("distinct", "order"):
            raise BindError(
                f"{argument.key.upper()} belongs to an aggregate function, this is none: {name}", span=place
            )
    if name in sequences.NAMES:
        return sequences.bind_sequence_call(binder, name, node, place)
    if name == "unnest":
        return unnest.bind_unnest(binder, node, place)
    part_function = _DATE_PART_FUNCTIONS.get(name)
    if part_function is not None and node.expressions:
        return _date_part(binder, part_function, node, place)
    arguments = [binder.bind(argument) for argument in node.expressions]
    return call(binder, name, arguments, join_spans(place, *(argument.span for argument in arguments)), place)


def call(
    binder: ExpressionBinder, name: str, arguments: list[Expression], span: Span | None, place: Span | None = None
) -> Expression:
    """A scalar function of bound arguments."""
    found = lists.list_call(binder, name, arguments, span)
    if found is not None:
        return found
    special = _SPECIAL.get(name)
    if special is not None:
        return special(binder, name, arguments, span)
    function = lookup(name) or binder.context.catalog.function(name)
    if function is None:
        if name in _LATER:
            raise NotSupportedError(f"function is not supported: {name}", span=place or span)
        known = [*names(), *_SPECIAL, *_DATE_PART_FUNCTIONS, *aggregates.NAMES, *lists.NAMES, "unnest"]
        raise not_found("function", name, known, place or span)
    return call_of(binder, function, name, arguments, span)


def call_of(
    binder: ExpressionBinder, function: Function, name: str, arguments: list[Expression], span: Span | None
) -> Expression:
    """A function of the registry, of bound arguments."""
    expansion = function.expansion(len(arguments)) if function.macro is not None else None
    if expansion is not None:
        return expand(binder, expansion, arguments, span)
    if arguments and arguments[0].type.is_unsigned:
        if name == "abs" and len(arguments) == 1:
            return arguments[0]
        if name == "xor" and len(arguments) == 2 and arguments[1].type.is_integer:
            return arithmetic(binder.context, name, *arguments)
    found = decimal_call(binder, name, arguments, span) or part_of_difference(binder, name, arguments, span)
    if found is not None:
        return found
    overload = resolve(binder.context, function, arguments)
    if overload is None:
        raise _no_overload(function, name, arguments, span)
    wanted = _wanted(overload, len(arguments))
    cast_arguments = tuple(
        _argument(binder.context, argument, kind) for argument, kind in zip(arguments, wanted, strict=True)
    )
    if overload.kind == "macro":
        return expand(binder, (overload.macro_parameters, overload.sql), list(cast_arguments), span)
    return Call(overload.result, function.name, cast_arguments, overload, span=span)


def is_taken(name: str) -> bool:
    """Is there a function of this name, of any kind, that a Python function would hide?"""
    return (
        lookup(name) is not None
        or name in _SPECIAL
        or name in _DATE_PART_FUNCTIONS
        or name in _LATER
        or name in windows.NAMES
        or aggregates.is_aggregate(name)
    )


def resolve(context: Context, function: Function, arguments: list[Expression]) -> Overload | None:
    """The overload that implicit casts reach at the least cost; None where there is none, or two do equally well."""
    best: list[Overload] = []
    least: int | None = None
    for overload in function.overloads:
        wanted = _wanted(overload, len(arguments))
        if len(wanted) != len(arguments):
            continue
        costs = [implicit_cost(context, argument, kind) for argument, kind in zip(arguments, wanted, strict=True)]
        known = [cost for cost in costs if cost is not None]
        if len(known) < len(costs):
            continue
        total = sum(known)
        if least is None or total < least:
            best, least = [overload], total
        elif total == least:
            best.append(overload)
    return best[0] if len(best) == 1 else None


def _wanted(overload: Overload, count: int) -> tuple[str, ...]:
    wanted = overload.arguments
    if overload.variadic:
        fixed, repeated = wanted[:-1], wanted[-1:]
        return fixed + repeated * max(0, count - len(fixed))
    return wanted


def _argument(context: Context, argument: Expression, kind: str) -> Expression:
    """The argument in the type that an overload wants."""
    if kind in ("ANY", "SPAN") or argument.type.kind == kind:
        return argument
    if kind == "DECIMAL":
        return cast(context, argument, as_decimal(argument.type))
    return cast(context, argument, SqlType(kind))


def _no_overload(function: Function, name: str, arguments: list[Expression], span: Span | None) -> BindError:
    given = ", ".join(str(argument.type) for argument in arguments)
    forms = []
    for overload in function.overloads[:6]:
        shown = ", ".join(overload.arguments) + ("..." if overload.variadic else "")
        forms.append(f"{name}({shown})")
    if function.macro is not None:
        forms.append(f"{name}({', '.join(function.parameters)})")
    return BindError(
        f"no form of {name} takes these arguments: ({given})", span=span, hint=f"there are: {'; '.join(forms)}"
    )


def expand(
    binder: ExpressionBinder,
    expansion: tuple[tuple[str, ...], str],
    arguments: list[Expression],
    span: Span | None,
) -> Expression:
    """A macro: its SQL with the arguments in the place of its parameters."""
    parameters, sql = expansion
    tree = _macro_tree(sql)
    substitutions = {parameter.lower(): argument for parameter, argument in zip(parameters, arguments, strict=True)}
    bound = binder.with_substitutions(substitutions).bind(tree)
    return replace(bound, span=span) if bound.span != span else bound


@lru_cache(maxsize=256)
def _macro_tree(sql: str) -> Any:
    """The sqlglot tree of a macro's expression; trees are never changed, so one does for all calls."""
    text = f"SELECT {sql}"
    rewritten, _ = tokens.rewrite(tokens.tokenize(text), text)
    return commands.statement(rewritten, text).expressions[0]


# --- Functions with a form of their own ------------------------------------------------------------------------------


def _coalesce(binder: ExpressionBinder, name: str, arguments: list[Expression], span: Span | None) -> Expression:
    if not arguments or (name == "ifnull" and len(arguments) != 2):
        raise BindError(f"{name} wants {'two arguments' if name == 'ifnull' else 'at least one argument'}", span=span)
    if len(arguments) == 1:
        return arguments[0]
    type_ = _common(binder, arguments, span)
    return Coalesce(type_, tuple(cast(binder.context, argument, type_) for argument in arguments), span=span)


def _nullif(binder: ExpressionBinder, name: str, arguments: list[Expression], span: Span | None) -> Expression:
    if len(arguments) != 2:
        raise BindError("nullif wants two arguments", span=span)
    value, other = arguments
    equal = compare(binder.context, "=", value, other, span)
    return Case(value.type, (equal,), (Literal(value.type, None),), value, span=span)


def _extreme(binder: ExpressionBinder, name: str, arguments: list[Expression], span: Span | None) -> Expression:
    if not arguments:
        raise BindError(f"{name} wants at least one argument", span=span)
    if len(arguments) == 1:
        return arguments[0]
    type_ = _common(binder, arguments, span)
    if type_ == INTERVAL:
        raise NotSupportedError(f"{name} of INTERVALs is not supported", span=span)
    function = lookup(name)
    overload = resolve(binder.context, function, arguments) if function is not None else None
    return Call(
        type_, name, tuple(cast(binder.context, argument, type_) for argument in arguments), overload, span=span
    )


def _if(binder: ExpressionBinder, name: str, arguments: list[Expression], span: Span | None) -> Expression:
    if len(arguments) != 3:
        raise BindError("if wants three arguments", span=span)
    return binder.case([as_boolean(binder.context, arguments[0])], arguments[1:])


def _date(binder: ExpressionBinder, name: str, arguments: list[Expression], span: Span | None) -> Expression:
    if len(arguments) != 1:
        raise BindError("date wants one argument", span=span)
    return cast(binder.context, arguments[0], DATE)


def _typeof(binder: ExpressionBinder, name: str, arguments: list[Expression], span: Span | None) -> Expression:
    if len(arguments) != 1:
        raise BindError("typeof wants one argument", span=span)
    name_of_type = Literal(VARCHAR, str(arguments[0].type), span=span)
    if any(isinstance(part, AggregateCall) for part in arguments[0].walk()):  # there is one row a group still
        return Case(VARCHAR, (IsNull(BOOLEAN, arguments[0]),), (name_of_type,), name_of_type, span=span)
    return name_of_type


def _common(binder: ExpressionBinder, arguments: list[Expression], span: Span | None) -> SqlType:
    type_ = common_type(binder.context, arguments)
    if type_ is None:
        shown = ", ".join(dict.fromkeys(str(argument.type) for argument in arguments))
        raise BindError(f"arguments have no common type: {shown}", span=span, hint="cast them to one type")
    return type_


def _today(binder: ExpressionBinder, name: str, arguments: list[Expression], span: Span | None) -> Expression:
    if arguments:
        raise BindError(f"{name} wants no argument", span=span)
    return current_date(binder)


def _fact(binder: ExpressionBinder, name: str, arguments: list[Expression], span: Span | None) -> Expression:
    """current_database() and its kin: text that is the same for all statements of a database."""
    if arguments:
        raise BindError(f"{name} wants no argument", span=span)
    if name == "version":
        return Literal(VARCHAR, f"v{__version__}")
    return Literal(VARCHAR, "main" if name == "current_schema" else binder.context.catalog.database_name())


def now(binder: ExpressionBinder) -> Expression:
    """The time at which the statement began to be bound, the same wherever it asks; the plan must not be used again."""
    context = binder.context
    context.volatile = True
    return Literal(TIMESTAMPTZ, context.began)


def current_date(binder: ExpressionBinder) -> Expression:
    """Today, where the session is."""
    return cast(binder.context, now(binder), DATE)


def _now(binder: ExpressionBinder, name: str, arguments: list[Expression], span: Span | None) -> Expression:
    if arguments:
        raise BindError(f"{name} wants no argument", span=span)
    here = {"current_localtimestamp": TIMESTAMP, "current_localtime": TIME}.get(name)
    if here is None:
        return now(binder)
    local = cast(binder.context, now(binder), TIMESTAMP)
    return cast(binder.context, local, here)


def _current_setting(binder: ExpressionBinder, name: str, arguments: list[Expression], span: Span | None) -> Expression:
    """current_setting('TimeZone'): a setting's value as text."""
    if len(arguments) != 1 or not isinstance(arguments[0], Literal) or not isinstance(arguments[0].value, str):
        raise BindError(f"{name} wants the name of a setting", span=span)
    binder.context.consume(arguments[0])
    setting = Settings.canonical(arguments[0].value)
    binder.context.volatile |= setting != "timezone"  # a plan's key holds that one
    return Literal(VARCHAR, str(binder.context.settings[setting]), span=span)


def _timezone(binder: ExpressionBinder, name: str, arguments: list[Expression], span: Span | None) -> Expression:
    """timezone(zone, x), which AT TIME ZONE is; timezone(x), the part of a time."""
    if len(arguments) == 1:
        return call(binder, "date_part_timezone", arguments, span)
    function = lookup("at_time_zone")
    assert function is not None, "the registry has timezone"
    overload = resolve(binder.context, function, arguments)
    if len(arguments) != 2 or binder.context.is_literal_token(arguments[1]) or overload is None:
        raise _no_overload(function, name, arguments, span)
    zone = cast(binder.context, arguments[0], VARCHAR)
    value = cast(binder.context, arguments[1], SqlType(overload.arguments[1]))
    if isinstance(zone, Literal):
        binder.context.consume(zone)
        if zone.value is None:
            return Literal(overload.result, None, span=span)
        try:
            zone = Literal(VARCHAR, zone_name(zone.value))
        except NotSupportedError as error:
            error.span = error.span or arguments[0].span or span
            raise
    return Call(overload.result, function.name, (zone, value), overload, span=span)


def _enum(binder: ExpressionBinder, name: str, arguments: list[Expression], span: Span | None) -> Expression:
    """enum_first(x), enum_last(x) and enum_range(x) of the type of x; enum_code(x), its place."""
    if len(arguments) != 1 or arguments[0].type.kind != "ENUM":
        given = ", ".join(str(argument.type) for argument in arguments)
        raise BindError(f"{name} wants an ENUM, not ({given})", span=span)
    value = arguments[0]
    if name == "enum_code":
        return Call(BIGINT, name, (value,), enums.code_of(value.type), span=span)
    values = value.type.values
    if name == "enum_range":
        return lists.list_value(binder, [Literal(VARCHAR, text) for text in values], span)
    return Literal(VARCHAR, values[0 if name == "enum_first" else -1], span=span)


def _time_bucket(binder: ExpressionBinder, name: str, arguments: list[Expression], span: Span | None) -> Expression:
    """time_bucket(width, x, zone) counts days and months by the zone's clocks, but hours as they pass, from its midnight."""
    function = lookup(name)
    assert function is not None, "the registry has time_bucket"
    width = arguments[0] if arguments else None
    zoned = len(arguments) == 3 and arguments[1].type == TIMESTAMPTZ and arguments[2].type.is_text
    if zoned and isinstance(width, Literal) and width.type == INTERVAL and width.value is not None:
        binder.context.consume(width)
        if not (width.value.months or width.value.days):
            origin = "timezone(place, TIMESTAMP '2000-01-03 00:00:00')"
            return expand(binder, (("width", "x", "place"), f"time_bucket(width, x, {origin})"), arguments, span)
    return call_of(binder, function, name, arguments, span)


def _to_unit(binder: ExpressionBinder, name: str, arguments: list[Expression], span: Span | None) -> Expression:
    """to_days(3) is INTERVAL 3 DAYS."""
    if len(arguments) != 1:
        raise BindError(f"{name} wants one argument", span=span)
    return _interval_of(binder, name.removeprefix("to_"), arguments[0])


def _interval(binder: ExpressionBinder, unit: str, node: Any) -> Expression:
    """INTERVAL x UNIT."""
    return _interval_of(binder, unit, binder.bind(node))


def _interval_of(binder: ExpressionBinder, unit: str, operand: Expression) -> Expression:
    span = operand.span
    if isinstance(operand, Literal):
        value = interval_constant(unit, operand.value, operand.type)
        steps = (*operand.steps, (unit, operand.type, INTERVAL)) if operand.slot is not None else ()
        return Literal(INTERVAL, value, operand.slot, steps, span=span)
    return interval_of_unit(binder.context, unit, cast(binder.context, operand, DOUBLE))


def _date_part(binder: ExpressionBinder, name: str, node: Any, place: Span | None) -> Expression:
    """date_part('month', x) and kin: the part becomes part of the function's name, and its literal is consumed."""
    part = binder.bind(node.expressions[0])
    arguments = [binder.bind(argument) for argument in node.expressions[1:]]
    span = join_spans(place, *(argument.span for argument in arguments))
    if not isinstance(part, Literal) or not part.type.is_text:
        raise NotSupportedError(f"{name} wants a constant text for its part", span=part.span or place)
    binder.context.consume(part)
    spelling = str(part.value).lower()
    canonical = DATE_PARTS.get(spelling)
    if canonical is None:
        raise not_found("part of a date", str(part.value), list(dict.fromkeys(DATE_PARTS.values())), part.span or place)
    candidates = [f"{name}_{canonical}"] + ([canonical] if name == "date_part" else [])
    for candidate in candidates:
        if lookup(candidate) is not None:
            return call(binder, candidate, arguments, span, place)
    raise NotSupportedError(f"{name} with this part is not supported: {canonical}", span=part.span or place)


_SPECIAL = {
    "coalesce": _coalesce,
    "ifnull": _coalesce,
    "nullif": _nullif,
    "greatest": _extreme,
    "least": _extreme,
    "if": _if,
    "date": _date,
    "typeof": _typeof,
    "today": _today,
    "current_setting": _current_setting,
    "timezone": _timezone,
    **dict.fromkeys(
        ("now", "get_current_timestamp", "transaction_timestamp", "current_localtimestamp", "current_localtime"),
        _now,
    ),
    **dict.fromkeys(("current_database", "current_catalog", "current_schema", "version"), _fact),
    "time_bucket": _time_bucket,
    **dict.fromkeys(("enum_range", "enum_first", "enum_last", "enum_code"), _enum),
    **dict.fromkeys(random_uuids.NAMES, random_uuids.bind_uuid),
    **{f"to_{unit}": _to_unit for unit in dict.fromkeys(INTERVAL_UNITS.values())},
}
