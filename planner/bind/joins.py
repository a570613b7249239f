"""Joins of FROM: JOIN in all its kinds, ON, USING, NATURAL, and commas.

A join's scope holds all columns of its left side, then all of its right.  USING and NATURAL show the columns they compare
once: the left one, for RIGHT the right one, and for FULL a column of its own behind the others, whichever is not NULL.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpudb.errors import BindError, NotSupportedError
from gpudb.planner.bind.casts import cast, common_type
from gpudb.planner.bind.context import not_found, own_span, span_of
from gpudb.planner.bind.expressions import ExpressionBinder
from gpudb.planner.bind.operators import compare
from gpudb.planner.bind.scope import Relation, Scope
from gpudb.planner.bind.subqueries import filtered, has_subquery, lateral
from gpudb.planner.bind.unnest import may_depend
from gpudb.planner.bind.unnesting import columns_of
from gpudb.planner.expressions import (
    Coalesce,
    Column,
    Comparison,
    Expression,
    Literal,
    Outer,
    Span,
    conjunction,
    conjuncts,
)
from gpudb.planner.logical import Join, Kept, Node, Numbered, OutputColumn, Project, UnionAll
from gpudb.planner.rules.rewriting import columns_read, renumber
from gpudb.planner.tokens import plain
from gpudb.record import record
from gpudb.types import BIGINT, BOOLEAN

if TYPE_CHECKING:
    from gpudb.planner.bind.relations import RelationBinder


@record(frozen=False)
class Side:
    """A relation of FROM: its plan and its scope."""

    plan: Node
    scope: Scope


def bind_joins(query: RelationBinder, first: Side, joins: list[Any]) -> Side:
    """The relation `first` joined with the others in turn; a comma binds less than JOIN does."""
    groups = [first]
    for node in _nested(joins):
        comma = _is_comma(query, node)
        if comma and may_depend(node.this):  # it may look at all that stands before it
            groups = [_all(groups)]
        plan, scope, arguments = query.dependent_relation(node.this, groups[-1].scope)
        right = Side(plan, scope)
        if arguments:
            groups[-1] = _lateral(query, groups[-1], right, arguments, node)
        elif comma:
            groups.append(right)
        else:
            groups[-1] = bind_join(query, groups[-1], right, node)
    return _all(groups)


def _nested(joins: list[Any]) -> list[Any]:
    """a JOIN b CROSS JOIN c ON ...: the condition is that of the JOIN that lacks one, whose right side is the cross join."""
    found: list[Any] = []
    for node in joins:
        has_condition = bool(node.args.get("on") or node.args.get("using"))
        if has_condition and str(node.args.get("kind") or "").upper() == "CROSS":
            open_ = [at for at, other in enumerate(found) if _wants_condition(other)]
            if open_:
                outer, inner = found[open_[-1]].copy(), [*found[open_[-1] + 1 :], node]
                inner = [other.copy() for other in inner]
                for part in ("on", "using"):
                    outer.set(part, node.args.get(part))
                    inner[-1].set(part, None)
                outer.this.set("joins", [*(outer.this.args.get("joins") or ()), *inner])
                found[open_[-1] :] = [outer]
                continue
        found.append(node)
    return found


def _wants_condition(node: Any) -> bool:
    parts = ("on", "using", "method")
    return not any(node.args.get(part) for part in parts) and str(node.args.get("kind") or "").upper() != "CROSS"


def _all(groups: list[Side]) -> Side:
    """All pairs of the groups."""
    joined = groups[0]
    for group in groups[1:]:
        joined = _joined(joined, group, "inner", None, [])
    return joined


def _lateral(query: RelationBinder, left: Side, right: Side, arguments: tuple[Expression, ...], node: Any) -> Side:
    """A subquery that looks at the relations before it, beside these."""
    span, on = span_of(node), node.args.get("on")
    kind = " ".join(str(node.args.get(part) or "").upper() for part in ("method", "side", "kind")).strip()
    if kind not in ("", "INNER", "CROSS", "LEFT", "LEFT OUTER") or node.args.get("using"):
        what = "USING" if node.args.get("using") else kind
        raise NotSupportedError(
            f"{what} JOIN of a subquery that looks at the tables before it is not supported", span=span
        )
    condition = None
    scope = _both(left.scope, right.scope, span)
    if on is not None:
        condition = ExpressionBinder(query.context, scope, clause="ON", query=query).condition(on)
    how = "left" if kind.startswith("LEFT") else "inner"
    return Side(lateral(left.plan, right.plan, arguments, how, span, condition), scope)


def _is_comma(query: RelationBinder, node: Any) -> bool:
    """FROM a, b: in sqlglot's tree a JOIN without any word; JOIN without ON or USING is an error."""
    if any(node.args.get(part) for part in ("method", "side", "kind", "on", "using")):
        return False
    place = span_of(node.this)
    before = query.context.parsed.sql[: place[0]] if place is not None else ""
    if re.search(r"\bjoin(\s+lateral)?[\s(]*$", before, re.IGNORECASE):
        raise BindError("JOIN wants ON or USING", span=place, hint="CROSS JOIN makes all pairs")
    return True


def bind_join(query: RelationBinder, left: Side, right: Side, node: Any) -> Side:
    """One JOIN."""
    method, side, kind = (str(node.args.get(part) or "").upper() for part in ("method", "side", "kind"))
    span = span_of(node)
    if method == "ASOF":
        return _asof(query, left, right, node)
    if method == "POSITIONAL":
        return _positional(left, right, node)
    if method not in ("", "NATURAL"):
        raise NotSupportedError(f"{method} JOIN is not supported", span=span)
    if kind not in ("", "INNER", "OUTER", "CROSS", "SEMI", "ANTI"):
        raise NotSupportedError(f"{kind} JOIN is not supported", span=span)
    how = kind.lower() if kind in ("SEMI", "ANTI") else side.lower() or "inner"
    on, using = node.args.get("on"), [plain(column.name) for column in node.args.get("using") or ()]
    if method == "NATURAL":
        using = _common_names(left.scope, right.scope, span)
    elif kind == "CROSS":
        if on is not None or using:
            raise BindError("CROSS JOIN takes no condition", span=span)
    elif on is None and not using:
        raise BindError("JOIN wants ON or USING", span=span, hint="CROSS JOIN makes all pairs")
    if on is not None:
        binder = ExpressionBinder(query.context, _both(left.scope, right.scope, span), clause="ON", query=query)
        condition = binder.condition(on)
        if has_subquery(condition):
            return _joined_by_subqueries(left, right, how, condition, span)
        return _joined(left, right, how, condition, [], span)
    pairs = [_pair(left.scope, right.scope, name, node) for name in using]
    joined = _joined(left, right, how, conjunction(_compared(query, left, pairs)), pairs, span)
    return _merged(query, joined, pairs, len(left.scope.columns)) if how == "full" and pairs else joined


def _compared(query: RelationBinder, left: Side, pairs: list[tuple[Column, Column]]) -> tuple[Expression, ...]:
    """The equalities of USING's columns."""
    width = len(left.scope.columns)
    return tuple(
        compare(query.context, "=", ours, renumber(theirs, {theirs.index: width + theirs.index}))
        for ours, theirs in pairs
    )


def _positional(left: Side, right: Side, node: Any) -> Side:
    """POSITIONAL JOIN: the first row beside the first, and so on; NULLs beside what one side has more rows than the other."""
    span = span_of(node)
    if any(node.args.get(part) for part in ("side", "kind", "on", "using")):
        raise BindError("POSITIONAL JOIN takes no condition", span=span)
    scope = _both(left.scope, right.scope, span)
    ours, theirs = Numbered.of(left.plan), Numbered.of(right.plan)
    width, total = len(ours.columns), len(ours.columns) + len(theirs.columns)
    same = Comparison(BOOLEAN, "=", Column(BIGINT, width - 1, "number"), Column(BIGINT, total - 1, "number"))
    columns = (*ours.columns, *theirs.columns)
    pairs = Join(columns, ours, theirs, "left", (), same, tuple(range(total)))
    both = UnionAll(columns, (pairs, _unmatched(ours, theirs, same, columns)))
    shown = tuple(part for at, part in enumerate(columns_of(both)) if at not in (width - 1, total - 1))
    return Side(Project(scope.columns, both, shown), scope)


def _asof(query: RelationBinder, left: Side, right: Side, node: Any) -> Side:
    """ASOF JOIN: each left row beside the nearest right row, by equalities and one order; USING's last column is that of >=."""
    side, kind = (str(node.args.get(part) or "").upper() for part in ("side", "kind"))
    span = span_of(node)
    if kind not in ("", "INNER", "OUTER", "SEMI", "ANTI"):
        raise NotSupportedError(f"ASOF {kind} JOIN is not supported", span=span)
    on, using = node.args.get("on"), [plain(column.name) for column in node.args.get("using") or ()]
    if on is None and not using:
        raise BindError("ASOF JOIN wants ON or USING", span=span)
    pairs = [_pair(left.scope, right.scope, name, node) for name in using]
    terms = _compared(query, left, pairs)
    if terms:
        last = terms[-1]
        assert isinstance(last, Comparison), "an equality"
        terms = (*terms[:-1], replace(last, operator=">="))
    else:
        binder = ExpressionBinder(query.context, _both(left.scope, right.scope, span), clause="ON", query=query)
        condition = binder.condition(on)
        if has_subquery(condition):
            raise NotSupportedError("a subquery in ON of ASOF JOIN is not supported", span=span)
        terms = conjuncts(condition)
    sides = [_sides(term, len(left.scope.columns)) for term in terms]
    orders = [term for term, read in zip(terms, sides, strict=True) if read == "order"]
    if len(orders) != 1:
        raise BindError(
            f"ASOF JOIN wants one inequality of its two sides, not {len(orders)}",
            span=orders[1].span if orders else span,
            hint="ON a.key = b.key AND a.time >= b.time",
        )
    if kind in ("SEMI", "ANTI"):  # whichever is nearest
        return _joined(left, right, kind.lower(), conjunction(terms), pairs, span)
    other = next((term for term, read in zip(terms, sides, strict=True) if read == "other"), None)
    if other is not None:
        raise NotSupportedError(
            "a condition of both sides besides equalities and one inequality is not supported in ASOF JOIN",
            span=other.span or span,
        )
    how, all_terms = "asof left" if side in ("LEFT", "FULL") else "asof", conjunction(terms)
    if side not in ("RIGHT", "FULL"):
        return _joined(left, right, how, all_terms, pairs, span)
    joined = _joined(left, right, side.lower(), all_terms, pairs, span)
    joined = replace(joined, plan=_with_the_rest(left.plan, right.plan, how, all_terms, joined.scope.columns))
    return _merged(query, joined, pairs, len(left.scope.columns)) if side == "FULL" and pairs else joined


def _with_the_rest(
    left: Node, right: Node, how: str, condition: Expression | None, columns: tuple[OutputColumn, ...]
) -> Node:
    """An ASOF join and, behind it, the right rows that are the nearest of no left row."""
    numbered = Numbered.of(right)
    wide, width, total = (*left.columns, *numbered.columns), len(right.columns), len(columns)
    found = Join(wide, left, numbered, how, (), condition, tuple(range(total + 1)))
    kept = Kept(wide, found)
    same = Comparison(BOOLEAN, "=", columns_of(numbered)[-1], Column(BIGINT, width + 1 + total, "number"))
    alone = Join(right.columns, numbered, kept, "anti", (), same, tuple(range(width)))
    nulls = tuple(Literal(type_, None) for _, type_ in left.columns)
    rest = Project(columns, alone, (*nulls, *columns_of(alone)))
    return UnionAll(columns, (Project(columns, kept, tuple(columns_of(kept)[:total])), rest))


def _sides(term: Expression, width: int) -> str:
    """What a term of ASOF JOIN's condition is: an equality or an order of both sides, something of one side, or other."""
    read = columns_read(term)
    if not read or max(read) < width or min(read) >= width:
        return "one"
    if not isinstance(term, Comparison) or any(isinstance(part, Outer) for part in term.walk()):
        return "other"
    for one, others in ((term.left, term.right), (term.right, term.left)):
        ours, theirs = columns_read(one), columns_read(others)
        if ours and theirs and max(ours) < width <= min(theirs):
            kinds = {"=": "equality", "is_not_distinct": "equality"} | dict.fromkeys(("<", "<=", ">", ">="), "order")
            return kinds.get(term.operator, "other")
    return "other"


def _joined_by_subqueries(left: Side, right: Side, how: str, condition: Expression, span: Span | None) -> Side:
    """A join whose condition holds subqueries: they belong to the rows of the right side that a left row has."""
    if how not in ("inner", "left", "right"):
        raise NotSupportedError(f"a subquery in ON of {how.upper()} JOIN is not supported", span=span)
    joined = _joined(left, right, "inner", None, [], span)
    width, total = len(left.plan.columns), len(joined.plan.columns)
    if how == "inner":
        # The scope does not know the columns that subqueries put behind the others.
        plan = filtered(joined.plan, condition)
        return replace(joined, plan=Project(joined.plan.columns, plan, tuple(columns_of(plan)[:total])))
    if how == "left":
        return replace(joined, plan=lateral(left.plan, right.plan, None, "left", span, condition))
    plan = lateral(right.plan, left.plan, None, "left", span, _swapped(condition, width, total))
    back = columns_of(plan)
    return replace(joined, plan=Project(joined.plan.columns, plan, (*back[total - width :], *back[: total - width])))


def _common_names(left: Scope, right: Scope, span: Span | None) -> list[str]:
    theirs = {right.columns[index][0].lower() for index in right.visible()}
    names = [left.columns[index][0] for index in left.visible()]
    common = [name for name in names if name.lower() in theirs]
    if not common:
        raise BindError("NATURAL JOIN finds no column of the same name", span=span, hint="CROSS JOIN makes all pairs")
    return common


def _pair(left: Scope, right: Scope, name: str, node: Any) -> tuple[Column, Column]:
    """The columns of a name on both sides, each numbered on its own side."""
    found = []
    for scope, which in ((left, "left"), (right, "right")):
        place = next((own_span(column) for column in node.args.get("using") or () if plain(column.name) == name), None)
        column = scope.find(name, None, place)
        if column is None:
            names = [scope.columns[index][0] for index in scope.visible()]
            raise not_found(f"column of the {which} side of the join", name, names, place or span_of(node))
        found.append(column)
    return found[0], found[1]


def _both(left: Scope, right: Scope, span: Span | None) -> Scope:
    """The scope of all columns of two sides."""
    width = len(left.columns)
    relations = [*left.named()]
    for relation in right.named():
        if left.is_called(relation.name):
            raise BindError(
                f"two tables in FROM have one name: {relation.name}", span=span, hint="give one an alias: AS name"
            )
        relations.append(Relation(relation.name, width + relation.start, width + relation.stop))
    shown = (*left.visible(), *(width + index for index in right.visible()))
    return Scope(None, left.columns + right.columns, tuple(relations), shown)


def _joined(
    left: Side,
    right: Side,
    kind: str,
    condition: Expression | None,
    pairs: list[tuple[Column, Column]],
    span: Span | None = None,
) -> Side:
    """The plan and the scope of a join; `pairs` are USING's columns."""
    scope = _both(left.scope, right.scope, span)
    width, total = len(left.plan.columns), len(scope.columns)
    if kind in ("semi", "anti"):
        plan: Node = Join(left.plan.columns, left.plan, right.plan, kind, (), condition, tuple(range(width)))
        return Side(plan, left.scope)
    ours = {mine.index: width + theirs.index for mine, theirs in pairs}
    shown = tuple(index for index in scope.visible() if index not in ours.values())
    if kind == "right":
        swapped = _swapped(condition, width, total)
        outputs = (*range(total - width, total), *range(total - width))
        plan = Join(scope.columns, right.plan, left.plan, "left", (), swapped, outputs)
        shown = tuple(ours.get(index, index) for index in shown)
    else:
        how = "left" if kind == "full" else kind
        plan = Join(scope.columns, left.plan, right.plan, how, (), condition, tuple(range(total)))
    if kind == "full":
        plan = UnionAll(scope.columns, (plan, _unmatched(left.plan, right.plan, condition, scope.columns)))
    return Side(plan, replace(scope, shown=shown))


def _swapped(condition: Expression | None, width: int, total: int) -> Expression | None:
    """A condition over left's columns and right's as one over right's and left's."""
    if condition is None:
        return None
    moves = {index: index + total - width if index < width else index - width for index in range(total)}
    return renumber(condition, moves)


def _unmatched(left: Node, right: Node, condition: Expression | None, columns: tuple[OutputColumn, ...]) -> Node:
    """The right rows of FULL without a left row, with NULLs for that."""
    width, total = len(left.columns), len(columns)
    swapped = _swapped(condition, width, total)
    alone = Join(right.columns, right, left, "anti", (), swapped, tuple(range(total - width)))
    nulls = tuple(Literal(type_, None) for _, type_ in left.columns)
    present = tuple(Column(type_, index, name) for index, (name, type_) in enumerate(right.columns))
    return Project(columns, alone, (*nulls, *present))


def _merged(query: RelationBinder, joined: Side, pairs: list[tuple[Column, Column]], width: int) -> Side:
    """FULL JOIN USING: a column of its own for each pair, shown in the place of the left one."""
    scope = joined.scope
    columns = list(scope.columns)
    expressions: list[Expression] = [Column(type_, index, name) for index, (name, type_) in enumerate(columns)]
    places: dict[int, int] = {}
    for ours, theirs in pairs:
        sides: list[Expression] = [ours, renumber(theirs, {theirs.index: width + theirs.index})]
        type_ = common_type(query.context, sides)
        assert type_ is not None, "they were compared"
        places[ours.index] = len(columns)
        columns.append((ours.name, type_))
        expressions.append(Coalesce(type_, tuple(cast(query.context, side, type_) for side in sides)))
    shown = tuple(places.get(index, index) for index in scope.visible())
    plan = Project(tuple(columns), joined.plan, tuple(expressions))
    return Side(plan, replace(scope, columns=tuple(columns), shown=shown))
