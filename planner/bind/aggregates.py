"""Aggregate functions: names, argument types, result types, DISTINCT and FILTER.

Past 600 lines since every form of a call is told from the others here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpudb.errors import BindError, NotSupportedError
from gpudb.planner.bind import lists
from gpudb.planner.bind.casts import as_boolean, cast, implicit_cost
from gpudb.planner.bind.context import join_spans, own_span, span_of
from gpudb.planner.bind.folding import folded
from gpudb.planner.bind.intervals import comparable
from gpudb.planner.expressions import (
    AggregateCall,
    Case,
    Expression,
    IsNull,
    Literal,
    Not,
    Outer,
    Span,
    conjunction,
    conjuncts,
)
from gpudb.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    HUGEINT,
    INTEGER,
    INTERVAL,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    SqlType,
    decimal,
)

if TYPE_CHECKING:
    from gpudb.planner.bind.expressions import ExpressionBinder

_NAMES = {
    "count": "count",
    "count_star": "count_star",
    "count_if": "count_if",
    "countif": "count_if",
    "sum": "sum",
    "avg": "avg",
    "mean": "avg",
    "min": "min",
    "max": "max",
    "stddev": "stddev_samp",
    "stddev_samp": "stddev_samp",
    "stddev_pop": "stddev_pop",
    "variance": "var_samp",
    "var_samp": "var_samp",
    "var_pop": "var_pop",
    "corr": "corr",
    "bool_and": "bool_and",
    "bool_or": "bool_or",
    "any_value": "any_value",
    "arbitrary": "first",
    "first": "first",
    "last": "last",
    "bit_and": "bit_and",
    "bit_or": "bit_or",
    "bit_xor": "bit_xor",
    "covar_pop": "covar_pop",
    "covar_samp": "covar_samp",
    "median": "quantile_cont",
    "quantile": "quantile_disc",
    "quantile_cont": "quantile_cont",
    "quantile_disc": "quantile_disc",
    "approx_quantile": "quantile_disc",  # exact: no rank is missed at all
    "percentile_cont": "quantile_cont",  # WITHIN GROUP only
    "percentile_disc": "quantile_disc",
    "mode": "mode",
    "entropy": "entropy",
    "mad": "mad",
    "string_agg": "string_agg",
    "group_concat": "string_agg",
    "listagg": "string_agg",
    "array_agg": "array_agg",
    "list": "array_agg",
    "product": "product",
    "approx_count_distinct": "count",  # exact, as COUNT(DISTINCT): no error at all is within 2 %
    "arg_min": "arg_min",
    "argmin": "arg_min",
    "min_by": "arg_min",
    "arg_max": "arg_max",
    "argmax": "arg_max",
    "max_by": "arg_max",
    "grouping": "grouping",
    "grouping_id": "grouping",
}

# Aggregates made of others, over DOUBLE.  Moments come from exact sums, so that a mean far from zero does not hide them:
# of x and x * x the covariance is m3 + 2 mean v, of x * x the variance is m4 + 4 mean m3 + 4 mean^2 v - v^2.
_V, _N = "var_pop(x)", "count(x)::DOUBLE"
_M3 = f"(covar_pop(x, x * x) - 2 * avg(x) * {_V})"
_M4 = f"(var_pop(x * x) - 4 * avg(x) * (avg(x) * {_V} + {_M3}) + {_V} * {_V})"
_SKEW = f"sqrt({_N} * ({_N} - 1)) / ({_N} - 2) * {_M3} / ({_V} * sqrt({_V}))"
_KURT = f"({_N} - 1) * (({_N} + 1) * {_M4} / ({_V} * {_V}) - 3 * ({_N} - 1)) / (({_N} - 2) * ({_N} - 3))"
_VX, _VY = "var_pop(x) FILTER (WHERE y IS NOT NULL)", "var_pop(y) FILTER (WHERE x IS NOT NULL)"
_AVG_X, _AVG_Y = "avg(x) FILTER (WHERE y IS NOT NULL)", "avg(y) FILTER (WHERE x IS NOT NULL)"
_COUNT = "count(y) FILTER (WHERE x IS NOT NULL)"
_SLOPE = f"(covar_pop(y, x) / {_VX})"
_MACROS: dict[str, tuple[tuple[str, ...], str]] = {
    "favg": (("x",), "avg(x)"),
    "fsum": (("x",), "sum(x)"),
    "kahan_sum": (("x",), "sum(x)"),
    "sumkahan": (("x",), "sum(x)"),
    "geomean": (("x",), "exp(avg(ln(x)))"),
    "geometric_mean": (("x",), "exp(avg(ln(x)))"),
    "sem": (("x",), f"sqrt({_V} / count(x))"),
    "skewness": (("x",), f"CASE WHEN {_N} > 2 AND {_V} > 0 THEN {_SKEW} END"),
    "kurtosis": (("x",), f"CASE WHEN {_N} > 3 AND {_V} > 0 THEN {_KURT} END"),
    "kurtosis_pop": (("x",), f"CASE WHEN {_N} > 1 AND {_V} > 0 THEN {_M4} / ({_V} * {_V}) - 3 END"),
    "regr_avgx": (("y", "x"), _AVG_X),
    "regr_avgy": (("y", "x"), _AVG_Y),
    "regr_count": (("y", "x"), f"CAST({_COUNT} AS UINTEGER)"),
    "regr_sxx": (("y", "x"), f"{_COUNT} * {_VX}"),
    "regr_syy": (("y", "x"), f"{_COUNT} * {_VY}"),
    "regr_sxy": (("y", "x"), f"{_COUNT} * covar_pop(y, x)"),
    "regr_slope": (("y", "x"), _SLOPE),
    "regr_intercept": (("y", "x"), f"CASE WHEN {_VX} > 0 THEN {_AVG_Y} - {_SLOPE} * {_AVG_X} END"),
    "regr_r2": (
        ("y", "x"),
        f"CASE WHEN {_VX} > 0 THEN CASE WHEN {_VY} > 0 THEN corr(y, x) * corr(y, x) ELSE 1.0::DOUBLE END END",
    ),
}
NAMES = (*_NAMES, *_MACROS)


_QUANTILES = ("quantile_cont", "quantile_disc")

# Duplicates change nothing.
_WITHOUT_DISTINCT = (
    "min",
    "max",
    "bool_and",
    "bool_or",
    "bit_and",
    "bit_or",
    "any_value",
    "first",
    "last",
    "count_star",
)

_EXTREMES = ("min", "max", "arg_min", "arg_max")
MOST_EXTREMES = 1_000_000  # of one group that min(x, n) and its kin find

_LATER = frozenset(
    """approx_top_k arg_max_null arg_min_null avg_null bitstring_agg histogram
    reservoir_quantile""".split()
)


def is_aggregate(name: str) -> bool:
    """Whether a lower-case name is an aggregate function, supported or not."""
    return name in _NAMES or name in _MACROS or name in _LATER


def _not_allowed(binder: ExpressionBinder, written: str, place: Span | None) -> BindError:
    return BindError(
        f"aggregate function is not allowed in {binder.clause}: {written}",
        span=place,
        hint="use HAVING" if binder.clause == "WHERE" else None,
    )


def bind_aggregate(
    binder: ExpressionBinder, written: str, node: Any, condition: Any, within: Any = None, *, over: bool = False
) -> Expression:
    """`name([DISTINCT] arguments [ORDER BY ...]) [WITHIN GROUP (ORDER BY within)] [FILTER (WHERE condition)]`.

    over  it has a window: it stands where any function may, and so may aggregates in its arguments, for which `binder` is
    """
    place = own_span(node)
    if written in _LATER:
        raise NotSupportedError(f"aggregate function is not supported: {written}", span=place)
    before = [len(query.arguments) for query in binder.context.outer]
    if not binder.aggregates and not before and not over:
        raise _not_allowed(binder, written, place)
    if written in _MACROS:
        return _expanded(binder, written, node, condition)
    name = _NAMES[written]
    if name == "string_agg":
        if within is not None:
            raise BindError(f"{written} takes no WITHIN GROUP", span=span_of(within))
        return _texts(binder, written, node, condition, over)
    if name in ("array_agg", "product"):
        if within is not None:
            raise BindError(f"{written} takes no WITHIN GROUP", span=span_of(within))
        return _list(binder, written, name, node, condition, over)
    if name in ("first", "last", "any_value") and len(node.expressions) == 1 and node.expressions[0].key == "order":
        return _in_order(binder, written, name, node, condition, over)
    if name in _QUANTILES and any(argument.key == "array" for argument in node.expressions):
        return _several_shares(binder, written, node, condition, within, over)
    if name in _EXTREMES and len(node.expressions) == (2 if name in ("min", "max") else 3):
        return _several(binder, written, name, node, condition, over)
    nodes, distinct = _arguments(name, node)
    nodes, descending = _share_last(written, nodes, within)
    inner = binder if over else binder.inside_aggregate(written)
    arguments = [inner.bind(argument) for argument in nodes]
    span = join_spans(place, *(argument.span for argument in arguments))
    filter_ = None
    if condition is not None:
        filter_ = as_boolean(binder.context, (binder if over else binder.inside_aggregate("FILTER")).bind(condition))
    for part in (*arguments, filter_):
        if not over and part is not None and any(isinstance(inside, AggregateCall) for inside in part.walk()):
            raise BindError(f"aggregate functions do not nest: {written}", span=part.span or span)
    if name in _QUANTILES or name in ("mode", "entropy", "mad"):
        call = _ordered(inner, written, name, arguments, descending, span)
    else:
        call = _typed(inner, written, name, arguments, span)
    if call.name in _WITHOUT_DISTINCT:
        distinct = False  # duplicates change nothing
    elif written == "approx_count_distinct":
        distinct = True
    if filter_ is not None:
        filter_ = conjunction((*conjuncts(filter_), *conjuncts(call.filter)))
    found = AggregateCall(call.type, call.name, call.arguments, distinct, filter_ or call.filter, span=span)
    if over:
        return found
    outer = binder.context.outer_aggregate(found, before) if before else None
    if outer is None and not binder.aggregates:
        raise _not_allowed(binder, written, place)
    return outer or found


def _expanded(binder: ExpressionBinder, written: str, node: Any, condition: Any) -> Expression:
    """An aggregate made of others: FILTER and DISTINCT go to each of them."""
    from gpudb.planner.bind.functions import expand

    parameters, sql = _MACROS[written]
    place = own_span(node)
    nodes, distinct = _arguments(written, node)
    if len(nodes) != len(parameters):
        raise BindError(
            f"{written} wants {'one argument' if len(parameters) == 1 else 'two arguments'}",
            span=span_of(node) or place,
        )
    if distinct and len(parameters) > 1:
        raise NotSupportedError(f"{written} with DISTINCT is not supported", span=place)
    if (distinct or condition is not None) and written in ("geomean", "geometric_mean"):
        raise BindError(f"{written} takes no DISTINCT and no FILTER", span=place)
    inner = binder.inside_aggregate(written)
    arguments = [inner.bind(argument) for argument in nodes]
    span = join_spans(place, *(argument.span for argument in arguments))
    for argument in arguments:
        if any(isinstance(inside, AggregateCall) for inside in argument.walk()):
            raise BindError(f"aggregate functions do not nest: {written}", span=argument.span or span)
        if not (_is_number(binder, argument) or argument.type.kind == "NULL"):
            raise _wrong_type(written, arguments, span)
    kept = None
    if condition is not None:
        kept = as_boolean(binder.context, binder.inside_aggregate("FILTER").bind(condition))
    doubles = [cast(binder.context, argument, DOUBLE) for argument in arguments]

    def completed(part: Expression) -> Expression:
        if not isinstance(part, AggregateCall):
            return part
        both = conjunction((*conjuncts(kept), *conjuncts(part.filter)))
        return replace(part, filter=both, distinct=distinct)

    return expand(binder, (parameters, sql), doubles, span).transform(completed)


def _is_number(binder: ExpressionBinder, argument: Expression) -> bool:
    """A number, or a string as it is written, which is read as one."""
    return argument.type.is_numeric or (argument.type.is_text and binder.context.is_literal_token(argument))


def _arguments(name: str, node: Any) -> tuple[list[Any], bool]:
    """Argument trees, and whether DISTINCT was written; ORDER BY within is dropped where it changes nothing."""
    nodes, distinct = list(node.expressions), False
    if len(nodes) == 1 and nodes[0].key == "order":
        if name in ("arg_min", "arg_max", "mode"):
            raise NotSupportedError("ORDER BY in an aggregate function is not supported", span=span_of(node))
        nodes = [nodes[0].this]
    if len(nodes) == 1 and nodes[0].key == "distinct":
        nodes, distinct = list(nodes[0].expressions), True
    if nodes and nodes[-1].key == "order":
        if name in ("arg_min", "arg_max", *_QUANTILES):
            raise NotSupportedError("ORDER BY in an aggregate function is not supported", span=span_of(node))
        nodes[-1] = nodes[-1].this
    if name == "count" and (not nodes or nodes[0].key == "star"):
        if distinct:
            raise NotSupportedError("count(DISTINCT *) is not supported", span=span_of(node))
        nodes = []
    return nodes, distinct


def _ordered_arguments(node: Any) -> tuple[list[Any], list[Any], bool]:
    """Argument trees, the terms of ORDER BY within, and whether DISTINCT was written."""
    nodes, terms, distinct = list(node.expressions), [], False
    if nodes and nodes[-1].key == "order":
        terms, nodes[-1] = list(nodes[-1].expressions), nodes[-1].this
    if len(nodes) == 1 and nodes[0].key == "distinct":
        nodes, distinct = list(nodes[0].expressions), True
    return nodes, terms, distinct


def _texts(binder: ExpressionBinder, written: str, node: Any, condition: Any, over: bool) -> AggregateCall:
    """string_agg([DISTINCT] text [, separator] [ORDER BY ...]): NULLs are left out; the separator is a constant."""
    place = own_span(node)
    if not (binder.aggregates or over):
        raise _not_allowed(binder, written, place)
    nodes, terms, distinct = _ordered_arguments(node)
    if not 1 <= len(nodes) <= 2:
        raise BindError(f"{written} wants a text and a separator", span=span_of(node) or place)
    context, inner = binder.context, binder if over else binder.inside_aggregate(written)
    value = cast(context, inner.bind(nodes[0]), VARCHAR)
    separator: Expression = Literal(VARCHAR, ",")
    if len(nodes) == 2:
        separator = cast(context, inner.bind(nodes[1]), VARCHAR)
    span = join_spans(place, value.span, separator.span)
    if not isinstance(separator, Literal):
        raise BindError(f"{written} wants a constant for its separator", span=separator.span or span)
    if separator.value is None:
        raise NotSupportedError(f"{written} with NULL between its texts is not supported", span=separator.span or span)
    keys, ways = _order(inner, terms)
    if distinct and any(cast(context, key, VARCHAR) != value for key in keys):
        raise NotSupportedError(
            f"{written} of DISTINCT texts in another order than their own is not supported", span=span
        )
    kept = _kept_by(binder, written, condition, [value, *keys], span, over)
    return AggregateCall(VARCHAR, "string_agg", (value, separator, ways, *keys), distinct, kept, span=span)


def _list(binder: ExpressionBinder, written: str, name: str, node: Any, condition: Any, over: bool) -> Expression:
    """array_agg([DISTINCT] value [ORDER BY ...]), with NULLs; product() is that of such a list."""
    place = own_span(node)
    if not (binder.aggregates or over):
        raise _not_allowed(binder, written, place)
    nodes, terms, distinct = _ordered_arguments(node)
    if len(nodes) != 1:
        raise BindError(f"{written} wants one argument", span=span_of(node) or place)
    inner = binder if over else binder.inside_aggregate(written)
    value = inner.bind(nodes[0])
    span = join_spans(place, value.span)
    if name == "product":
        if not (_is_number(binder, value) or value.type.kind == "NULL"):
            raise _wrong_type(written, [value], span)
        value = cast(binder.context, value, DOUBLE)
    keys, ways = _order(inner, terms)
    if distinct and any(key != value for key in keys):
        raise NotSupportedError(
            f"{written} of DISTINCT values in another order than their own is not supported", span=span
        )
    kept = _kept_by(binder, written, condition, [value, *keys], span, over)
    type_ = lists.type_of(value, span)
    found = AggregateCall(type_, "string_agg", (value, Literal(VARCHAR, ""), ways, *keys), distinct, kept, span=span)
    return found if name == "array_agg" else lists.product(binder, found, span)


def _several_shares(
    binder: ExpressionBinder, written: str, node: Any, condition: Any, within: Any, over: bool
) -> Expression:
    """quantile(x, [a, b]): a list of quantiles, NULL of no values."""
    place = next(number for number, argument in enumerate(node.expressions) if argument.key == "array")
    calls = []
    for share in node.expressions[place].expressions:
        one = node.copy()
        one.expressions[place].replace(share.copy())
        calls.append(bind_aggregate(binder, written, one, condition, within, over=over))
    if not calls:
        raise BindError(f"{written} wants a share at least", span=own_span(node))
    found = lists.list_value(binder, calls, calls[0].span)
    return Case(found.type, (IsNull(BOOLEAN, calls[0]),), (Literal(found.type, None),), found, span=found.span)


def _several(binder: ExpressionBinder, written: str, name: str, node: Any, condition: Any, over: bool) -> AggregateCall:
    """min(x, n), arg_min(x, y, n) and their kin: a list of the n least or greatest, of equal ones those of the first rows."""
    place = own_span(node)
    if not (binder.aggregates or over):
        raise _not_allowed(binder, written, place)
    if any(argument.key in ("distinct", "order") for argument in node.expressions):
        raise NotSupportedError(f"{written} of n values with DISTINCT or ORDER BY is not supported", span=place)
    inner = binder if over else binder.inside_aggregate(written)
    *values, most = [inner.bind(argument) for argument in node.expressions]
    span = join_spans(place, *(value.span for value in values))
    count = folded(binder.context, most)
    if count is None:
        raise NotSupportedError(f"{written} of other than a constant number of values is not supported", span=most.span)
    if implicit_cost(binder.context, count, "BIGINT") is None or count.value is None:
        raise BindError(f"{written} wants the number of values, not {most.type}", span=most.span)
    number = cast(binder.context, count, BIGINT)
    assert isinstance(number, Literal), "a constant stays one"
    binder.context.consume(number)
    if not 0 < number.value < MOST_EXTREMES:
        raise BindError(f"{written} finds 1 to {MOST_EXTREMES - 1} values, not {number.value}", span=most.span)
    kept = _kept_by(binder, written, condition, values, span, over)
    present = [Not(BOOLEAN, IsNull(BOOLEAN, value)) for value in values]
    ways = Literal(VARCHAR, "dl" if name in ("max", "arg_max") else "al")
    arguments = (values[0], Literal(VARCHAR, ""), ways, Literal(BIGINT, number.value), values[-1])
    return AggregateCall(
        lists.type_of(values[0], span),
        "list_of_first",
        arguments,
        filter=conjunction((*conjuncts(kept), *present)),
        span=span,
    )


def _in_order(
    binder: ExpressionBinder, written: str, name: str, node: Any, condition: Any, over: bool
) -> AggregateCall:
    """first(value ORDER BY ...) and its kin; DISTINCT changes nothing."""
    place, order = own_span(node), node.expressions[0]
    if not (binder.aggregates or over):
        raise _not_allowed(binder, written, place)
    inner, tree = binder if over else binder.inside_aggregate(written), order.this
    if tree.key == "distinct":
        (tree,) = tree.expressions
    value = inner.bind(tree)
    keys, ways = _order(inner, order.expressions)
    span = join_spans(place, value.span)
    kept = _kept_by(binder, written, condition, [value, *keys], span, over)
    if name == "any_value":
        kept = conjunction((*conjuncts(kept), Not(BOOLEAN, IsNull(BOOLEAN, value))))
    end = Literal(BOOLEAN, name == "last")
    return AggregateCall(value.type, "first_in_order", (value, end, ways, *keys), filter=kept, span=span)


def _order(inner: ExpressionBinder, terms: list[Any]) -> tuple[list[Expression], Literal]:
    """(expressions of ORDER BY, of each "a" or "d" for its direction and "f" or "l" for NULLs first or last)."""
    keys, ways = [], []
    for term in terms:
        key = inner.bind(term.this)
        if isinstance(key, Literal):
            if term.this.key == "literal" and not key.type.is_integer:
                raise BindError("ORDER BY a constant has no effect", span=key.span, hint="put the separator before it")
            continue
        keys.append(key)
        ways.append(("d" if term.args.get("desc") else "a") + ("f" if term.args.get("nulls_first") else "l"))
    return keys, Literal(VARCHAR, " ".join(ways))


def _kept_by(
    binder: ExpressionBinder, written: str, condition: Any, parts: list[Expression], span: Span | None, over: bool
) -> Expression | None:
    """FILTER's condition; it and the other parts hold no aggregate, but over a window, and no column of a query outside."""
    kept = None
    if condition is not None:
        inner = binder if over else binder.inside_aggregate("FILTER")
        kept = as_boolean(binder.context, inner.bind(condition))
    for part in (*parts, *([kept] if kept is not None else [])):
        if not over and any(isinstance(one, AggregateCall) for one in part.walk()):
            raise BindError(f"aggregate functions do not nest: {written}", span=part.span or span)
        if any(isinstance(one, Outer) for one in part.walk()):
            raise NotSupportedError(f"{written} of columns of a query outside is not supported", span=span)
    return kept


def _share_last(written: str, nodes: list[Any], within: Any) -> tuple[list[Any], bool]:
    """(arguments, whether from the greatest value): WITHIN GROUP names the values, and says from where they are counted."""
    descending = False
    if within is not None:
        if len(within.expressions) != 1:
            raise BindError(f"{written} wants one ORDER BY term", span=span_of(within))
        (term,) = within.expressions
        nodes, descending = [term.this, *nodes], bool(term.args.get("desc"))
        if written not in ("percentile_cont", "percentile_disc", "mode"):
            raise BindError(f"{written} takes no WITHIN GROUP", span=span_of(within))
    elif written.startswith("percentile"):
        raise BindError(f"{written} wants WITHIN GROUP (ORDER BY ...)", span=span_of(nodes[0]) if nodes else None)
    return nodes, descending


def _ordered(
    binder: ExpressionBinder, written: str, name: str, arguments: list[Expression], descending: bool, span: Span | None
) -> AggregateCall:
    """A call of an aggregate that needs all values of a group: of quantiles also which, and from which end."""
    wanted = 2 if name in _QUANTILES and written != "median" else 1
    if len(arguments) != wanted:
        raise BindError(f"{written} wants {'one argument' if wanted == 1 else 'two arguments'}", span=span)
    value = arguments[0]
    type_ = value.type
    if type_.kind == "INTERVAL":
        raise NotSupportedError(f"{written} of {type_} is not supported", span=span)
    if name == "entropy":
        return AggregateCall(DOUBLE, name, (value,), span=span)
    if name == "mode":
        return AggregateCall(type_, name, (value,), span=span)
    measurable = type_.is_numeric or type_.kind == "NULL"
    if name == "mad":
        if type_.is_temporal:
            raise NotSupportedError(f"{written} of {type_} is not supported: it is an INTERVAL", span=span)
        if not measurable:
            raise _wrong_type(written, arguments, span)
        value = cast(binder.context, value, quantile_type("quantile_cont", type_))
        return AggregateCall(value.type, name, (value,), span=span)
    if not measurable and not type_.is_temporal and type_.kind != "TIME":
        if written in ("quantile_cont", "percentile_cont", "approx_quantile"):
            raise _wrong_type(written, arguments, span)
        name = "quantile_disc"
    if name == "quantile_cont" and type_.kind == "NULL":
        value = cast(binder.context, value, DOUBLE)
    share: Expression = Literal(decimal(1, 1), 5)
    if written != "median":
        share, turned = _share(binder, written, arguments[1])
        descending = descending != turned
    if name == "quantile_cont":
        share = cast(binder.context, share, DOUBLE)
    call_type = quantile_type(name, value.type)
    call = AggregateCall(call_type, name, (value, share, Literal(BOOLEAN, descending)), span=span)
    return call


def quantile_type(name: str, type_: SqlType) -> SqlType:
    """The type of an interpolated quantile of values of a type, or of the value itself."""
    if name == "quantile_disc":
        return type_
    if type_.is_temporal:
        return type_ if type_ == TIMESTAMPTZ else TIMESTAMP
    if type_.kind == "TIME":
        return type_
    return DOUBLE if type_.is_integer or type_.kind == "NULL" else type_


def _share(binder: ExpressionBinder, written: str, share: Expression) -> tuple[Literal, bool]:
    """(the share of values below a quantile, 0 to 1; whether it was written below zero, and counts from the greatest)."""
    place = share.span
    if not isinstance(share, Literal):
        raise BindError(f"{written} wants a constant for its share", span=place, hint="write a number")
    binder.context.consume(share)
    if share.type.kind == "NULL" or share.value is None:
        raise BindError(f"{written} wants a share that is not NULL", span=place)
    if not share.type.is_numeric:
        raise BindError(f"{written} wants a number for its share, not {share.type}", span=place)
    unit = 10**share.type.scale if share.type.kind == "DECIMAL" else 1
    if not -unit <= share.value <= unit:
        raise BindError(f"{written} wants a share from -1 to 1", span=place)
    value: Any = abs(share.value)
    if share.type.is_float:
        return Literal(DOUBLE, float(value)), share.value < 0
    return Literal(decimal(38, share.type.scale), value), share.value < 0


def _typed(
    binder: ExpressionBinder, written: str, name: str, arguments: list[Expression], span: Span | None
) -> AggregateCall:
    """The call with its arguments cast and its result typed."""
    context = binder.context
    if name == "grouping":
        return AggregateCall(BIGINT, name, tuple(arguments), span=span)
    if name in ("count", "count_star") and not arguments:
        return AggregateCall(BIGINT, "count_star", (), span=span)
    expected = 2 if name in ("corr", "covar_pop", "covar_samp", "arg_min", "arg_max") else 1
    if len(arguments) != expected:
        raise BindError(f"{written} wants {'one argument' if expected == 1 else 'two arguments'}", span=span)
    value = arguments[0]
    type_ = value.type
    if name == "count":
        return AggregateCall(BIGINT, "count", (value,), span=span)
    if name == "count_if":
        is_boolean = type_ == BOOLEAN or type_.kind == "NULL" or (type_.is_text and context.is_literal_token(value))
        if not is_boolean:
            raise _wrong_type(written, arguments, span)
        return AggregateCall(HUGEINT, "sum", (_as_integer(binder, as_boolean(context, value)),), span=span)
    if name in ("bool_and", "bool_or"):
        if type_ != BOOLEAN and type_.kind != "NULL" and not (type_.is_text and context.is_literal_token(value)):
            raise _wrong_type(written, arguments, span)
        return AggregateCall(BOOLEAN, name, (cast(context, value, BOOLEAN),), span=span)
    if name in ("bit_and", "bit_or", "bit_xor"):
        if type_.kind == "NULL":
            value = cast(context, value, BIGINT)
        elif not type_.is_integer:
            raise _wrong_type(written, arguments, span)
        return AggregateCall(value.type, name, (value,), span=span)
    if name in ("min", "max") and type_ == INTERVAL:
        return AggregateCall(type_, f"arg_{name}", (value, comparable(context, value)), span=span)
    if name in ("min", "max", "any_value", "first", "last"):
        return AggregateCall(type_, name, (value,), span=span)
    if name in ("arg_min", "arg_max"):
        key = comparable(context, arguments[1]) if arguments[1].type == INTERVAL else arguments[1]
        return AggregateCall(type_, name, (value, key), span=span)
    if name == "sum":
        return _sum(binder, written, value, span)
    for argument in arguments:
        literal_text = argument.type.is_text and context.is_literal_token(argument) and name != "avg"
        if not (argument.type.is_numeric or argument.type.kind == "NULL" or literal_text):
            if name == "avg" and argument.type.is_temporal:
                raise NotSupportedError(f"avg of {argument.type} is not supported", span=span)
            raise _wrong_type(written, arguments, span)
    if name == "avg":
        exact = type_.is_integer or type_.kind == "DECIMAL"
        return AggregateCall(DOUBLE, "avg", (value if exact else cast(context, value, DOUBLE),), span=span)
    return AggregateCall(DOUBLE, name, tuple(cast(context, argument, DOUBLE) for argument in arguments), span=span)


def _sum(binder: ExpressionBinder, written: str, value: Expression, span: Span | None) -> AggregateCall:
    """Integers to HUGEINT, DECIMAL(p,s) to DECIMAL(38,s), floats to DOUBLE, booleans count as 0 and 1."""
    type_ = value.type
    result: SqlType
    if type_ == BOOLEAN:
        value, result = _as_integer(binder, value), HUGEINT
    elif type_.is_integer or type_.kind == "NULL":
        value, result = (cast(binder.context, value, INTEGER) if type_.kind == "NULL" else value), HUGEINT
    elif type_.kind == "DECIMAL":
        result = decimal(38, type_.scale)
    elif type_.is_float:
        value, result = cast(binder.context, value, DOUBLE), DOUBLE
    else:
        raise _wrong_type(written, [value], span)
    return AggregateCall(result, "sum", (value,), span=span)


def _as_integer(binder: ExpressionBinder, value: Expression) -> Expression:
    return cast(binder.context, value, INTEGER)


def _wrong_type(written: str, arguments: list[Expression], span: Span | None) -> BindError:
    given = ", ".join(str(argument.type) for argument in arguments)
    return BindError(f"{written} does not take these types: {given}", span=span, hint="cast the argument")
