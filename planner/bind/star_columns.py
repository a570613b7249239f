"""COLUMNS(...) in a select list: an item bound once for each of several columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gpudb.errors import BindError, NotSupportedError
from gpudb.functions.pattern import glob, ilike, like, regexp_full_match, regexp_matches
from gpudb.planner.bind.context import not_found, span_of
from gpudb.planner.bind.expressions import ExpressionBinder
from gpudb.planner.bind.scope import Scope
from gpudb.planner.expressions import Column, Expression, Literal
from gpudb.planner.tokens import plain

if TYPE_CHECKING:
    from gpudb.planner.bind.query import QueryBinder

Named = tuple[str, Expression]


def columns_within(node: Any) -> list[Any]:
    """COLUMNS(...) in an expression, but not in a subquery of it."""
    if node.key == "columns":
        return [node]
    if node.key in ("select", "subquery", "union", "exists"):
        return []
    return [found for child in node.iter_expressions() for found in columns_within(child)]


def for_each_column(
    query: QueryBinder, binder: ExpressionBinder, node: Any, within: list[Any], scope: Scope, has_from: bool
) -> list[Named]:
    """(name, expression) of an item with COLUMNS(...) in it, for each of these columns: under its name or the alias."""
    first, span = within[0], span_of(within[0]) or span_of(node)
    if any(repr(other) != repr(first) for other in within[1:]):
        raise BindError("several different COLUMNS in one expression", span=span)
    if first.args.get("unpack"):
        raise NotSupportedError("*COLUMNS(...) is not supported", span=span)
    alias = plain(node.alias) if node.key == "alias" else ""
    if "\\" in alias:
        raise NotSupportedError("an alias of COLUMNS with groups of its pattern is not supported", span=span)
    if not has_from:
        raise BindError("COLUMNS wants a FROM clause", span=span)
    items, context = [], query.context
    around = context.star_column
    for name, column in _chosen(query, first.this, scope):
        context.star_column = column
        try:
            items.append((alias or name, binder.bind(node.this if alias else node)))
        finally:
            context.star_column = around
    return items


def matching_columns(query: QueryBinder, node: Any, scope: Scope, has_from: bool) -> list[Named] | None:
    """(name, column) of `* LIKE 'pattern'` and its kin; None of another item of a select list."""
    negated = False
    while node.key in ("paren", "not"):
        negated, node = negated != (node.key == "not"), node.this
    star, pattern = _star_and_pattern(node)
    if star is None:
        return None
    negated = negated != bool(node.args.get("negate"))
    literal = ExpressionBinder(query.context, Scope(None, ()), clause="SELECT").bind(pattern)
    if not isinstance(literal, Literal) or not literal.type.is_text:
        raise NotSupportedError("* LIKE wants a constant text", span=span_of(pattern))
    query.context.consume(literal)
    items = query.star(star, scope, has_from)
    matches = _PATTERNS[node.key](pa.array([item.name for item in items], pa.string()), str(literal.value)).to_pylist()
    found = [(item.name, item.expression) for item, match in zip(items, matches, strict=True) if match != negated]
    if not found:
        raise BindError(f"no column matches the pattern: {literal.value}", span=span_of(node))
    return found


_PATTERNS: dict[str, Any] = {
    "like": like,
    "ilike": ilike,
    "glob": glob,
    "similarto": regexp_full_match,
    "regexplike": regexp_matches,
    "star": ilike,  # sqlglot has the pattern of ILIKE in the star itself
    "column": ilike,
}


def _star_and_pattern(node: Any) -> tuple[Any, Any]:
    if node.key in ("star", "column"):
        star = node if node.key == "star" else node.this
        pattern = star.args.get("ilike") if star.key == "star" else None
        return (node, pattern) if pattern is not None else (None, None)
    if node.key not in _PATTERNS:
        return None, None
    inner = node.this
    is_star = inner.key == "star" or (inner.key == "column" and inner.this.key == "star")
    return (inner, node.expression) if is_star else (None, None)


def _chosen(query: QueryBinder, node: Any, scope: Scope) -> list[Named]:
    """What COLUMNS(*), COLUMNS('pattern') or COLUMNS(['name', ...]) stands for."""
    span = span_of(node)
    if node.key == "star" or (node.key == "column" and node.this.key == "star"):
        return [(item.name, item.expression) for item in query.star(node, scope, True)]
    there = [(*scope.columns[index], index) for index in scope.visible("")]
    columns: list[Named] = [(name, Column(type_, index, name, span=span)) for name, type_, index in there]
    names = [name for name, _ in columns]
    texts = []
    for part in node.expressions if node.key == "array" else [node]:
        literal = ExpressionBinder(query.context, Scope(None, ()), clause="COLUMNS").bind(part)
        if not isinstance(literal, Literal) or not literal.type.is_text:
            raise NotSupportedError(
                "COLUMNS of this is not supported", span=span, hint="write *, a pattern, or [names]"
            )
        query.context.consume(literal)
        texts.append(str(literal.value))
    if node.key != "array":
        matches = regexp_matches(pa.array(names, pa.string()), texts[0]).to_pylist()
        found = [column for column, match in zip(columns, matches, strict=True) if match]
        if not found:
            raise BindError(f"no column matches the pattern: {texts[0]}", span=span)
        return found
    wanted = {text.lower() for text in texts}
    for text in texts:
        if text.lower() not in {name.lower() for name in names}:
            raise not_found("column", text, names, span)
    return [(name, column) for name, column in columns if name.lower() in wanted]
