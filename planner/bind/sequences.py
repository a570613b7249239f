"""CREATE SEQUENCE, and nextval and currval: a call is a literal whose value is drawn when the statement runs.

Over rows, nextval is there as the DEFAULT of a column that an INSERT leaves out: the rows are numbered, from the number drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from gpudb.catalog import Sequence, qualified
from gpudb.errors import BindError, CatalogError, Error, NotSupportedError
from gpudb.planner.bind.casts import cast
from gpudb.planner.bind.context import Context, span_of
from gpudb.planner.bind.operators import arithmetic
from gpudb.planner.bind.random_uuids import is_random
from gpudb.planner.expressions import Expression, Frame, Literal, Span, WindowCall
from gpudb.planner.parse import parse
from gpudb.planner.tokens import FUNCTION, plain
from gpudb.types import BIGINT, SqlType

if TYPE_CHECKING:
    from gpudb.planner.bind.expressions import ExpressionBinder

NAMES = ("nextval", "currval")
_GREATEST = (1 << 63) - 1


def bind_sequence(name: str, options: dict[str, Any], span: Span) -> Sequence:
    """The sequence of CREATE SEQUENCE's options; BindError where they do not fit together."""
    increment = options.get("increment", 1)
    if increment == 0:
        raise BindError("the increment of a sequence is not zero", span=span)
    up = increment > 0
    minimum = options.get("minvalue", 1 if up else -_GREATEST - 1)
    maximum = options.get("maxvalue", _GREATEST if up else -1)
    start = options.get("start", minimum if up else maximum)
    if minimum > maximum or not minimum <= start <= maximum:
        raise BindError(f"a sequence starts from its minimum to its maximum: {start}", span=span)
    return Sequence(name, start, increment, minimum, maximum, bool(options.get("cycle")), start, None)


def bind_sequence_call(binder: ExpressionBinder, name: str, node: Any, place: Span | None) -> Expression:
    """nextval('name') or currval('name')."""
    context, arguments = binder.context, node.expressions
    if len(arguments) != 1 or arguments[0].key != "literal" or not arguments[0].is_string:
        raise NotSupportedError(f"{name} wants the name of a sequence in single quotes", span=place)
    found = sequence_named(context, str(arguments[0].this), span_of(arguments[0]) or place)
    context.volatile = True
    if binder.clause == "DEFAULT":
        return Literal(BIGINT, found.next, span=place)
    if context.open_views:
        raise NotSupportedError(f"{name} in a view is not supported", span=place)
    literal = binder.context.literal(*_start(arguments[0]))
    if literal is not None:
        context.consume(literal)
    if name == "nextval" and (binder.scope.columns or context.outer or context.recursions):
        return _numbered_rows(binder, found, node, place)
    return drawn(context, name, found, place)


def _numbered_rows(binder: ExpressionBinder, sequence: Sequence, node: Any, place: Span | None) -> Expression:
    """nextval in the columns of the SELECT whose rows an INSERT adds: these are counted, and as many numbers given out."""
    inserted = binder.context.inserted
    places = inserted is not None and binder.windows is not None and node.find_ancestor(exp.Select) is inserted
    if not places or any(plain(str(call.this)).lower() == "unnest" for call in inserted.find_all(exp.Anonymous)):
        raise NotSupportedError(
            "nextval over rows is supported in the columns of INSERT ... SELECT without DISTINCT, GROUP BY, LIMIT and UNNEST",
            span=place,
            hint="make it the DEFAULT of a column",
        )
    row = WindowCall(BIGINT, "row_number", (), (), (), (), Frame())
    number = arithmetic(binder.context, "subtract", row, Literal(BIGINT, 1))
    return numbered_values(binder.context, sequence, number, BIGINT)


_FEWER_ROWS = ("distinct", "group", "having", "qualify", "limit", "offset", "fetch")  # than those that were numbered


def keeps_its_rows(select: Any) -> bool:
    """Whether each row that a SELECT's columns are computed of comes out."""
    return select.key == "select" and not any(select.args.get(part) for part in _FEWER_ROWS)


def _start(node: Any) -> tuple[int, Span]:
    span = span_of(node) or (-1, -1)
    return span[0], span


def drawn(context: Context, how: str, sequence: Sequence, span: Span | None) -> Literal:
    """A literal whose value is a draw of this statement; see `Statement.draws`."""
    slot = len(context.parsed.literals) + len(context.parsed.parameters) + len(context.draws)
    context.draws.append((how, sequence.name))
    return Literal(BIGINT, sequence.next, slot, span=span)


def sequence_named(context: Context, text: str, span: Span | None) -> Sequence:
    """The sequence that a text names; CatalogError where there is none."""
    parts = [part.strip('"') for part in text.split(".")]
    found = context.catalog.sequence(qualified(parts[-1], parts[-2]) if len(parts) > 1 else qualified(text.strip('"')))
    if found is None:
        raise CatalogError(f"sequence not found: {text}", span=span)
    return found


def sequence_of_default(context: Context, sql: str | None) -> Sequence | None:
    """The sequence that a DEFAULT takes its values of, None of others; NotSupportedError where it computes with them."""
    if sql is None or not any(name in sql.lower() for name in NAMES):
        return None
    tree = parse(f"SELECT {sql}").tree.expressions[0]
    calls = [one for one in tree.walk() if one.key == "anonymous" and str(one.this).lower() in _MARKED]
    if not calls:
        return None
    if len(calls) > 1 or calls[0] is not tree or str(tree.this).lower() != FUNCTION + "nextval":
        raise NotSupportedError("a DEFAULT that computes with nextval is not supported")
    return sequence_named(context, str(tree.expressions[0].this), None)


_MARKED = tuple(FUNCTION + name for name in NAMES)


def numbered_values(context: Context, sequence: Sequence, number: Expression, type_: SqlType) -> Expression:
    """What each of an INSERT's rows gets of a sequence; `number` counts the rows from 0."""
    if any(name == sequence.name for _, name in context.draws):
        raise NotSupportedError(f"a sequence that is asked for in two places is not supported: {plain(sequence.name)}")
    first = drawn(context, "rows", sequence, None)
    step = arithmetic(context, "multiply", number, Literal(BIGINT, sequence.increment))
    return cast(context, arithmetic(context, "add", first, step), type_)


def refused_default(context: Context, sql: str | None, what: str, span: Span | None) -> None:
    """NotSupportedError where a DEFAULT gives each row a value of its own and a statement has one value for several rows."""
    if is_random(context, sql):
        raise NotSupportedError(f"{what} with DEFAULT uuid() is not supported", span=span)
    try:
        found = sequence_of_default(context, sql)
    except Error as error:
        error.span = error.span or span
        raise
    if found is not None:
        raise NotSupportedError(f"{what} with DEFAULT nextval is not supported", span=span)
