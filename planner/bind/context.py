"""What binding one statement needs and notes down: the catalog, parameters, consumed literals, tables read."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING, Any

from gpudb.catalog import Catalog, qualified
from gpudb.errors import BindError, CatalogError, InterfaceError
from gpudb.planner.expressions import AggregateCall, Column, Expression, Literal, Outer, Span
from gpudb.planner.parse import Parsed, most_written
from gpudb.planner.tokens import PARAMETER, TYPE, plain
from gpudb.record import record
from gpudb.types import NULL, SqlType

if TYPE_CHECKING:
    from gpudb.planner.bind.scope import Scope


@record(frozen=False)
class Enclosing:
    """A query around the subquery that is being bound: its scope, and the values that the subquery takes of a row of it.

    aggregates  whether these values may hold aggregates of it
    aliases     select-list aliases that its clause sees, by lower-case name
    hidden      a CTE is being bound, which was written outside of this query and cannot see it
    """

    scope: Scope
    aggregates: bool = False
    aliases: Mapping[str, Expression] = field(default_factory=dict)
    arguments: list[Expression] = field(default_factory=list)
    hidden: bool = False

    def outside(self, part: Expression) -> Expression:
        """What an `Outer` of the subquery is in this query; other parts as they are."""
        return self.arguments[part.index] if isinstance(part, Outer) else part


@record(frozen=False)
class Context:
    """State of one binding.

    parameter_types   type of each parameter by name ("1", "2", ... for `?` and `$1`)
    parameter_values  their values, in the form of `Literal.value`, as far as known
    consumed          slots whose value shaped the plan
    tables            catalog keys of the tables and views read
    outer             the queries around the subquery that is being bound, the innermost last
    volatile          the plan holds the time of binding, and must not be used again
    draws             from sequences; see `Statement.draws`
    row_number        of a row whose DEFAULT is bound
    inserted          the SELECT whose rows an INSERT adds, all of them, as sqlglot tree
    star_column       the column that COLUMNS(...) stands for, while an item of a select list is bound with each in turn
    recursions        in how many recursive CTEs' steps we are
    began             when this binding began, in microseconds since 1970-01-01 UTC
    open_views        views whose queries are being bound, in lower case
    """

    parsed: Parsed
    catalog: Catalog
    parameter_types: Mapping[str, SqlType] = field(default_factory=dict)
    parameter_values: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    consumed: set[int] = field(default_factory=set)
    tables: set[str] = field(default_factory=set)
    volatile: bool = False
    draws: list[tuple[str, str]] = field(default_factory=list)
    row_number: Expression | None = None
    inserted: Any = None
    outer: list[Enclosing] = field(default_factory=list)
    open_views: tuple[str, ...] = ()
    recursions: int = 0
    star_column: Expression | None = None
    began: int = field(default_factory=lambda: time.time_ns() // 1000)

    def outer_column(self, name: str, relation: str | None, span: Span | None) -> Outer | None:
        """A column of the innermost query around that has it."""
        for level in reversed(range(len(self.outer))):
            query = self.outer[level]
            if query.hidden:
                continue
            found = query.scope.find(name, relation, span) or (None if relation else query.aliases.get(name.lower()))
            if found is not None:
                return self.handed_down(found, level, name, span)
        return None

    def outer_columns(self, relation: str) -> list[tuple[str, Outer]]:
        """(name, column) of a relation of the innermost query around that has it; [] where there is none."""
        for level in reversed(range(len(self.outer))):
            query = self.outer[level]
            if not query.hidden and query.scope.is_called(relation):
                named = [(*query.scope.columns[index], index) for index in query.scope.visible(relation)]
                return [(n, self.handed_down(Column(t, index, n), level, n, None)) for n, t, index in named]
        return []

    def handed_down(self, value: Expression, level: int, name: str, span: Span | None) -> Outer:
        """An expression over the query around at `level`, through all subqueries in between."""
        for query in self.outer[level:]:
            if value not in query.arguments:
                query.arguments.append(value)
            value = Outer(value.type, query.arguments.index(value), name, span=span)
        assert isinstance(value, Outer), "there is a query around"
        return value

    def outer_aggregate(self, call: AggregateCall, before: Sequence[int]) -> Outer | None:
        """An aggregate of nothing but outer columns belongs to the query that has these; None for another.

        before  how many arguments each query around had before the call's own
        """
        parts = list(call.walk())
        if any(isinstance(part, Column) for part in parts) or not any(isinstance(part, Outer) for part in parts):
            return None
        raised: Expression = call
        for level in reversed(range(len(self.outer))):
            query = self.outer[level]
            raised = raised.transform(query.outside)
            if any(isinstance(part, Column) for part in raised.walk()):
                break
        if not query.aggregates:
            raise BindError(f"aggregate function of outer columns is not allowed here: {call.name}", span=call.span)
        for around, count in zip(self.outer, before, strict=True):
            del around.arguments[count:]
        return self.handed_down(raised, level, call.name, call.span)

    def raw_values(self) -> list[Any]:
        """The values of all slots of this statement: its literals, then its parameters."""
        return [value for _, value in self.parsed.literals] + [
            self.parameter_values.get(name) for name in self.parsed.parameters
        ]

    @contextmanager
    def outside_of(self, depth: int) -> Iterator[None]:
        """While a query is bound that stands in just the `depth` outermost ones."""
        hidden = [query for query in self.outer[depth:] if not query.hidden]
        for query in hidden:
            query.hidden = True
        try:
            yield
        finally:
            for query in hidden:
                query.hidden = False

    def is_literal_token(self, expression: Expression) -> bool:
        """Whether a Literal still is the number or string as written (or its negative): it then adapts to other types.

        A parameter adapts where it is text.
        """
        return (
            isinstance(expression, Literal)
            and expression.slot is not None
            and (expression.slot < len(self.parsed.literals) or expression.type.is_text)
            and all(operation == "negate" for operation, _, _ in expression.steps)
        )

    def literal(self, start: int, span: Span) -> Literal | None:
        """The literal token at an offset, None where `shape` saw none there (dollar quotes, escape strings)."""
        slot = self.parsed.slots.get(start)
        if slot is None:
            return None
        type_, value = self.parsed.literals[slot]
        return Literal(type_, value, slot, span=span, bound=most_written(type_, value))

    def parameter(self, marked: str) -> Literal:
        """A parameter as a Literal, typed by what was given for it."""
        name, start, end = marked.split(PARAMETER)
        span = (int(start), int(end))
        if name not in self.parameter_types:
            raise InterfaceError(
                f"no value given for parameter: {'$' if not name.isdigit() else ''}{name}",
                span=span,
                hint="pass it to execute()",
            )
        slot = len(self.parsed.literals) + self.parsed.parameters.index(name)
        type_ = self.parameter_types[name]
        if type_ == NULL:
            self.consumed.add(slot)
        return Literal(type_, self.parameter_values.get(name), slot, span=span)

    def consume(self, expression: Expression) -> None:
        """Note that the values of all literals in here are part of the plan."""
        for part in expression.walk():
            if isinstance(part, Literal) and part.slot is not None:
                self.consumed.add(part.slot)


def parameters_by_name(given: Sequence[Any] | Mapping[str, Any] | None) -> dict[str, Any]:
    """Positional parameters are called "1", "2", ...; named ones keep their names, without a leading $."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {str(name).removeprefix("$"): value for name, value in given.items()}
    return {str(position): value for position, value in enumerate(given, 1)}


def catalog_name(context: Context, node: Any) -> str:
    """The catalog's name of a table that a sqlglot Table names; BindError for a schema that is not there.

    table, schema.table, database.table or database.schema.table
    """
    schema, database = node.args.get("db"), node.args.get("catalog")
    if schema is None:
        return qualified(plain(node.name))
    name = plain(schema.name)
    ours = context.catalog.database_name().lower()
    if database is not None and plain(database.name).lower() != ours:
        raise BindError(
            f"database not found: {plain(database.name)}", span=span_of(database), hint=f"this one is {ours}"
        )
    if name.lower() != "main" and not context.catalog.has_schema(name):
        if database is None and name.lower() == ours:
            return qualified(plain(node.name))
        raise BindError(f"schema not found: {name}", span=span_of(schema))
    return qualified(plain(node.name), name)


def span_of(node: Any) -> Span | None:
    """Where a sqlglot tree stands in the statement: from its first to its last leaf that knows its place."""
    start: int | None = None
    end: int | None = None
    for part in node.walk():
        place = own_span(part)
        if place is not None:
            start = place[0] if start is None else min(start, place[0])
            end = place[1] if end is None else max(end, place[1])
    return None if start is None or end is None else (start, end)


def own_span(node: Any) -> Span | None:
    """The place of one node itself."""
    meta = node._meta
    if meta and "start" in meta:
        return meta["start"], meta["end"] + 1
    if node.key == "datatype":
        marked = str(node.args.get("kind") or "")
        if marked.startswith(TYPE):
            _, start, end, _ = marked.split(TYPE)
            return int(start), int(end)
    if node.key == "placeholder":
        parts = str(node.this or "").split(PARAMETER)
        if len(parts) == 3:
            return int(parts[1]), int(parts[2])
    return None


def join_spans(*spans: Span | None) -> Span | None:
    """The smallest span around all that are known."""
    known = [span for span in spans if span is not None]
    if not known:
        return None
    return min(span[0] for span in known), max(span[1] for span in known)


def closest(name: str, candidates: Sequence[str] | set[str]) -> str | None:
    """The candidate that `name` was probably meant to be."""
    import difflib

    by_lower = {candidate.lower(): candidate for candidate in candidates}
    found = difflib.get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def not_found(
    what: str, name: str, candidates: Sequence[str] | set[str], span: Span | None
) -> BindError | CatalogError:
    """CatalogError for a table, else BindError, with a hint: the closest candidate, or all of a few."""
    best = closest(name, candidates)
    hint = f"did you mean {best}?" if best else None
    if hint is None and 0 < len(candidates) <= 12:
        hint = f"there are: {', '.join(candidates)}"
    kind = CatalogError if what == "table" else BindError
    return kind(f"{what} not found: {name}", span=span, hint=hint)
