"""Queries: SELECT, VALUES, UNION and CTEs, as logical plans; what may stand in FROM is in `relations`.

One class in one file past 600 lines, since each of these holds the others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from gpudb.errors import BindError, NotSupportedError
from gpudb.planner.bind.casts import as_boolean, cast, common_type
from gpudb.planner.bind.context import Context, not_found, own_span, span_of
from gpudb.planner.bind.expressions import ExpressionBinder, contains_aggregate, position_of
from gpudb.planner.bind.folding import folded
from gpudb.planner.bind.framed_aggregates import framed
from gpudb.planner.bind.grouping import GroupBy, Groups, by_value, reads_rows
from gpudb.planner.bind.grouping_sets import aggregate_sets, grouped_by
from gpudb.planner.bind.joins import Side, bind_joins
from gpudb.planner.bind.names import column_name, describe
from gpudb.planner.bind.ordered_aggregates import aggregated
from gpudb.planner.bind.over import Over, named_windows
from gpudb.planner.bind.recursion import mentions
from gpudb.planner.bind.relations import CommonTable, RelationBinder, consume_names
from gpudb.planner.bind.samples import sampled
from gpudb.planner.bind.scope import Scope
from gpudb.planner.bind.set_operations import combined, distinct, first_of_each
from gpudb.planner.bind.star_columns import columns_within, for_each_column, matching_columns
from gpudb.planner.bind.subqueries import attached, filtered
from gpudb.planner.bind.unnest import contains_unnest, unnested
from gpudb.planner.bind.windows import contains_window, windowed
from gpudb.planner.expressions import Column, Expression, Literal, Span
from gpudb.planner.logical import (
    Limit,
    Node,
    OutputColumn,
    Project,
    Sort,
    SortKey,
    Values,
)
from gpudb.planner.tokens import POSITION, plain
from gpudb.record import record
from gpudb.types import BIGINT, DOUBLE


@record
class SelectItem:
    """One output column of SELECT before grouping: its name, whether that is an alias, and its expression."""

    name: str
    alias: bool
    expression: Expression


class QueryBinder(RelationBinder):
    """Binds one query; subqueries get a binder of their own with the CTEs visible there."""

    def __init__(self, context: Context, tables: dict[str, CommonTable] | None = None) -> None:
        super().__init__(context, tables)
        self.windows: dict[str, Over] = {}  # of the WINDOW clause of the SELECT being bound

    def bind(self, node: Any) -> Node:
        """The plan of a query."""
        key = node.key
        if key == "subquery":
            return self.bind_subquery(node)
        if key in ("select", "union", "values", "except", "intersect"):
            self.common_tables(node)
        if key == "select":
            return self.bind_select(node)
        if key in ("union", "except", "intersect"):
            return self.bind_set_operation(node)
        if key == "values":
            return self.bind_values(node)
        if key == "table":
            return self.relation(node)[0]
        if key == "pivot":
            return self.pivot(*self.relation(node.this), node)[0]
        raise NotSupportedError(f"{describe(node)} is not supported", span=span_of(node))

    def common_tables(self, node: Any) -> None:
        with_ = node.args.get("with_")
        if with_ is None:
            return
        for expression in with_.expressions:
            alias = expression.args["alias"]
            name = plain(alias.name)
            columns = tuple(plain(column.name) for column in alias.args.get("columns") or ())
            recursive = bool(with_.args.get("recursive")) and mentions(expression.this, name)
            depth = len(self.context.outer)
            self.tables[name.lower()] = CommonTable(name, expression.this, columns, dict(self.tables), depth, recursive)

    # --- Set operations ----------------------------------------------------------------------------------------------

    def bind_subquery(self, node: Any) -> Node:
        """A query in parentheses, perhaps with ORDER BY and LIMIT of its own behind them."""
        self.refuse_parts(node)
        self.common_tables(node)
        if node.args.get("sample") is not None:
            raise NotSupportedError("a sample of a query in parentheses is not supported", span=span_of(node))
        plan = self.inner(node.this)
        if node.args.get("order") is None and node.args.get("limit") is None and node.args.get("offset") is None:
            return plan
        return self.limited(node, self.sorted_by_output(node, plan))

    def bind_set_operation(self, node: Any) -> Node:
        if node.args.get("sample") is not None:
            raise NotSupportedError("a sample of a set operation is not supported", span=span_of(node))
        left, right = (self.inner(branch) for branch in (node.this, node.expression))
        if node.args.get("by_name"):
            for branch in (left, right):
                consume_names(self.context, branch)
        plan = combined(self.context, node, left, right)
        return self.limited(node, self.sorted_by_output(node, plan))

    def sorted_by_output(self, node: Any, plan: Node) -> Node:
        """ORDER BY of a set operation: over its output columns only."""
        order = node.args.get("order")
        if order is None:
            return plan
        scope = Scope(None, plan.columns)
        consume_names(self.context, plan)
        binder = ExpressionBinder(self.context, scope, clause="ORDER BY")
        keys = []
        for term in self.order_terms(order, len(plan.columns)):
            key = term.this
            if isinstance(key, int):
                expression: Expression = Column(plan.columns[key][1], key, plan.columns[key][0])
            else:
                expression = binder.bind(key)
            keys.append(SortKey(expression, term.descending, term.nulls_first))
        return Sort(plan.columns, plan, tuple(keys)) if keys else plan

    def bind_values(self, node: Any) -> Node:
        """VALUES (...), (...): columns col0, col1, ..."""
        binder = ExpressionBinder(self.context, Scope(None, ()), clause="VALUES")
        rows: list[list[Expression]] = []
        for row in node.expressions:
            rows.append([binder.bind(item) for item in (row.expressions if row.key == "tuple" else [row])])
        return self.limited(node, self.sorted_by_output(node, self.values(rows, span_of(node))))

    def values(self, rows: list[list[Expression]], span: Span | None) -> Node:
        """A Values node; every column gets one type."""
        width = len(rows[0])
        for row in rows:
            if len(row) != width:
                raise BindError(f"VALUES rows have different lengths: {width}, {len(row)}", span=span)
        columns: list[OutputColumn] = []
        for index in range(width):
            items = [row[index] for row in rows]
            type_ = items[0].type if len(items) == 1 else common_type(self.context, items)
            if type_ is None:
                shown = ", ".join(dict.fromkeys(str(item.type) for item in items))
                raise BindError(f"values of a column have no common type: {shown}", span=span)
            columns.append((f"col{index}", type_))
        cast_rows = tuple(
            tuple(cast(self.context, item, type_) for item, (_, type_) in zip(row, columns, strict=True))
            for row in rows
        )
        return Values(tuple(columns), cast_rows)

    def inner(self, node: Any, tables: dict[str, CommonTable] | None = None) -> Node:
        return QueryBinder(self.context, self.tables if tables is None else tables).bind(node)

    # --- SELECT ------------------------------------------------------------------------------------------------------

    def bind_select(self, node: Any) -> Node:
        self.refuse_parts(node)
        from_ = node.args.get("from_")
        plan, scope = self.relation(from_.this) if from_ is not None else (Values((), ((),)), Scope(None, ()))
        if node.args.get("joins"):
            side = bind_joins(self, Side(plan, scope), node.args["joins"])
            plan, scope = side.plan, side.scope
        if node.args.get("sample") is not None:
            plan = sampled(self, plan, node.args["sample"])
        self.windows = named_windows(node.args.get("windows") or ())
        items = self.select_list(node, scope, from_ is not None)
        aliases = {item.name.lower(): item.expression for item in reversed(items) if item.alias}
        where = node.args.get("where")
        if where is not None:
            binder = ExpressionBinder(self.context, scope, clause="WHERE", aliases=of_rows_alone(aliases), query=self)
            plan = filtered(plan, binder.condition(where.this))
        grouping = self.grouping(node, scope, items, aliases)
        is_grouped: Callable[[Column], bool] | None = None
        if grouping is not None or any(contains_aggregate(item.expression) for item in items):
            keys = {by_value(key) for key in grouping.keys} if grouping is not None else set()

            is_grouped = lambda column: column in keys  # noqa: E731
        having = node.args.get("having")
        having_condition = None
        if having is not None:
            binder = ExpressionBinder(
                self.context,
                scope,
                clause="HAVING",
                aggregates=True,
                aliases=aliases,
                is_grouped=is_grouped,
                query=self,
            )
            having_condition = binder.condition(having.this)
            if contains_window(having_condition):
                raise BindError("HAVING contains a window function", span=span_of(having), hint="use QUALIFY")
        orders = self.orders(node, scope, items, aliases, is_grouped)
        chosen_by = self.distinct_on(node, scope, items, aliases, is_grouped)
        qualify = node.args.get("qualify")
        qualified: list[Expression] = []
        if qualify is not None:
            condition = self.above_groups(qualify.this, "QUALIFY", scope, aliases, is_grouped)
            qualified = [as_boolean(self.context, condition)]
        bound = [item.expression for item in items]
        others = [*orders.expressions, *chosen_by, *qualified]
        if grouping is not None or having is not None or any(map(contains_aggregate, [*bound, *others])):
            groups = Groups(self.context, grouping)
            if groups.sets is not None and any(map(contains_unnest, groups.keys)):
                raise NotSupportedError("UNNEST in grouping sets is not supported", span=span_of(node.args["group"]))
            bound = [groups.rewrite(expression) for expression in bound]
            orders.expressions = [groups.rewrite(expression) for expression in orders.expressions]
            chosen_by = [groups.rewrite(expression) for expression in chosen_by]
            qualified = [groups.rewrite(expression) for expression in qualified]
            if having_condition is not None:
                having_condition = groups.rewrite(having_condition)
            plan = aggregate_sets(self.context, plan, groups) if groups.sets is not None else aggregate(plan, groups)
            if having_condition is not None:
                plan = filtered(plan, having_condition)
        if qualified and not any(map(contains_window, [*bound, *qualified])):
            raise BindError("QUALIFY wants a window function, in it or in SELECT", span=span_of(qualify))
        for over in (partial(framed, self.context), windowed):
            plan, (bound, orders.expressions, chosen_by, qualified) = over(
                plan, bound, orders.expressions, chosen_by, qualified
            )
        for condition in qualified:
            plan = filtered(plan, condition)
        return self.projected(node, plan, items, bound, orders, chosen_by)

    def select_list(self, node: Any, scope: Scope, has_from: bool) -> list[SelectItem]:
        """The output columns; an alias can be used by the items after it."""
        items: list[SelectItem] = []
        aliases: dict[str, Expression] = {}
        if not node.expressions:
            raise BindError("SELECT wants at least one expression", span=span_of(node))
        for expression in node.expressions:
            matching = matching_columns(self, expression, scope, has_from)
            if matching is not None:
                items += [SelectItem(name, False, column) for name, column in matching]
                continue
            if expression.key == "star" or (expression.key == "column" and expression.this.key == "star"):
                items += self.star(expression, scope, has_from)
                continue
            binder = ExpressionBinder(
                self.context,
                scope,
                clause="SELECT",
                aggregates=True,
                aliases=aliases,
                query=self,
                windows=self.windows,
            )
            within = columns_within(expression)
            if within:
                for name, bound in for_each_column(self, binder, expression, within, scope, has_from):
                    items.append(SelectItem(name, expression.key == "alias", bound))
                    if expression.key == "alias":
                        aliases.setdefault(name.lower(), bound)
                continue
            if expression.key == "alias":
                name = plain(expression.alias)
                bound = binder.bind(expression.this)
                items.append(SelectItem(name, True, bound))
                aliases.setdefault(name.lower(), bound)
            else:
                bound = binder.bind(expression)
                division = bool(self.context.settings.get("integer_division"))
                name = column_name(expression, self.context.parsed, division, self.windows)
                if isinstance(bound, Column) and expression.key in ("column", "paren"):
                    same = name.lower() == bound.name.lower() or name.startswith("#")
                    name = bound.name if same else name
                items.append(SelectItem(name, False, bound))
        return items

    def star(self, node: Any, scope: Scope, has_from: bool) -> list[SelectItem]:
        """*, t.*, with EXCLUDE, REPLACE and RENAME."""
        star = node if node.key == "star" else node.this
        relation = node.table if node.key == "column" else ""
        if not has_from and not relation:
            raise BindError("* wants a FROM clause", span=span_of(node))
        columns: list[tuple[str, Expression]]
        if relation and not scope.is_called(relation):
            columns = list(self.context.outer_columns(plain(relation)))
            if not columns:
                raise BindError(f"table not found in FROM: {relation}", span=span_of(node))
        else:
            named = [(*scope.columns[index], index) for index in scope.visible(relation)]
            columns = [(name, Column(type_, index, name, span=span_of(star))) for name, type_, index in named]
        excluded = {plain(part.name).lower() for part in star.args.get("except_") or ()}
        replaced = {plain(part.alias).lower(): part.this for part in star.args.get("replace") or ()}
        renamed = {plain(part.this.name).lower(): plain(part.alias) for part in star.args.get("rename") or ()}
        there = [name for name, _ in columns]
        known = {name.lower() for name in there}
        for name in known:
            if (name in excluded) + (name in replaced) + (name in renamed) > 1:
                raise BindError(f"two of EXCLUDE, REPLACE and RENAME name one column: {name}", span=span_of(node))
        for name in (*excluded, *replaced):  # a RENAME of what is not there does nothing
            if name not in known:
                raise not_found("column", name, there, span_of(node))
        binder = ExpressionBinder(
            self.context, scope, clause="SELECT", aggregates=True, query=self, windows=self.windows
        )
        items = []
        for name, column in columns:
            if name.lower() in excluded:
                continue
            replacement = replaced.get(name.lower())
            expression = binder.bind(replacement) if replacement is not None else column
            items.append(SelectItem(renamed.get(name.lower(), name), False, expression))
        if not items:
            raise BindError("SELECT list is empty after resolving *", span=span_of(node))
        return items

    def grouping(
        self, node: Any, scope: Scope, items: list[SelectItem], aliases: dict[str, Expression]
    ) -> GroupBy | None:
        """GROUP BY keys: expressions, aliases, ordinals, ALL; None without GROUP BY."""
        group = node.args.get("group")
        if group is None:
            return None
        for part in ("grouping_sets", "cube", "rollup", "totals"):  # WITH ROLLUP and its kin
            if group.args.get(part):
                raise NotSupportedError(f"GROUP BY ... WITH {part.upper()} is not supported", span=span_of(group))
        if group.args.get("all"):
            for item in items:
                if contains_unnest(item.expression) or (
                    contains_window(item.expression) and reads_rows(item.expression)
                ):
                    what = "an UNNEST" if contains_unnest(item.expression) else "a window function of columns"
                    raise BindError(f"GROUP BY ALL cannot group by {what}", span=item.expression.span)
            chosen = [
                item.expression
                for item in items
                if not contains_aggregate(item.expression) and not contains_window(item.expression)
            ]
            # Constants alone are no keys: SELECT 1, count(*) has its one row, SELECT 1 one for each of the table's.
            has_column = any(isinstance(part, Column) for key in chosen for part in key.walk())
            return GroupBy(chosen, None) if has_column else None
        binder = ExpressionBinder(self.context, scope, clause="GROUP BY", aliases=aliases, query=self)

        def key(expression: Any) -> Expression:
            ordinal = self.ordinal(expression, len(items), "GROUP BY")
            found = items[ordinal].expression if ordinal is not None else binder.bind(expression)
            if contains_aggregate(found):
                raise BindError("GROUP BY contains an aggregate function", span=span_of(expression))
            if contains_window(found):
                raise BindError("GROUP BY contains a window function", span=span_of(expression))
            return found

        return grouped_by(self.context, group.expressions, key, [item.expression for item in items])

    def ordinal(self, node: Any, count: int, clause: str) -> int | None:
        """The position (from 0) that an integer literal means, which the plan consumes; None for other expressions."""
        while node.key == "paren":
            node = node.this
        if clause == "ORDER BY" and node.key == "column" and node.name.startswith(POSITION):
            position, place = position_of(self.context, node)
        elif node.key == "literal" and not node.is_string and str(node.this).isdigit():
            place = own_span(node)
            if place is not None and place[0] in self.context.parsed.slots:
                self.context.consumed.add(self.context.parsed.slots[place[0]])
            position = int(node.this)
        else:
            return None
        if not 1 <= position <= count:
            raise BindError(f"{clause} position is not 1 to {count}: {position}", span=place)
        return position - 1

    def order_terms(self, order: Any, width: int) -> list[OrderTerm]:
        """ORDER BY, with ordinals as positions and ALL spelled out."""
        terms: list[OrderTerm] = []
        for term in order.expressions:
            if term.key != "ordered":
                raise NotSupportedError(f"ORDER BY {describe(term)} is not supported", span=span_of(term))
            if term.args.get("with_fill") is not None:
                raise NotSupportedError("ORDER BY WITH FILL is not supported", span=span_of(term))
            descending = bool(term.args.get("desc"))
            nulls_first = bool(term.args.get("nulls_first"))
            key = term.this
            is_all = (key.key == "var" and key.name.upper() == "ALL") or (
                key.key == "column" and not key.table and key.name.upper() == "ALL" and not key.this.args.get("quoted")
            )
            if is_all:
                terms += [OrderTerm(index, descending, nulls_first) for index in range(width)]
                continue
            ordinal = self.ordinal(key, width, "ORDER BY")
            terms.append(OrderTerm(key if ordinal is None else ordinal, descending, nulls_first))
        return terms

    def orders(
        self,
        node: Any,
        scope: Scope,
        items: list[SelectItem],
        aliases: dict[str, Expression],
        is_grouped: Callable[[Column], bool] | None,
    ) -> Orders:
        """ORDER BY of a SELECT, bound over its input: aliases win over columns where a term is just a name."""
        order = node.args.get("order")
        found = Orders([], [], [])
        if order is None:
            return found
        for term in self.order_terms(order, len(items)):
            if isinstance(term.this, int):
                found.add(items[term.this].expression, term, term.this)
                continue
            expression = self.above_groups(term.this, "ORDER BY", scope, aliases, is_grouped)
            if not (isinstance(expression, Literal) and term.this.key == "literal"):
                found.add(expression, term, None)  # a constant orders nothing
        return found

    def above_groups(
        self,
        node: Any,
        clause: str,
        scope: Scope,
        aliases: dict[str, Expression],
        is_grouped: Callable[[Column], bool] | None,
    ) -> Expression:
        """An expression that stands above GROUP BY, where an alias wins over a column of its name."""
        is_name = node.key == "column" and not node.table
        binder = ExpressionBinder(
            self.context,
            scope,
            clause=clause,
            aggregates=True,
            aliases=aliases,
            alias_first=is_name,
            is_grouped=is_grouped,
            query=self,
            windows=self.windows,
        )
        return binder.bind(node)

    def distinct_on(
        self,
        node: Any,
        scope: Scope,
        items: list[SelectItem],
        aliases: dict[str, Expression],
        is_grouped: Callable[[Column], bool] | None,
    ) -> list[Expression]:
        """The expressions of DISTINCT ON (...)."""
        distinct_ = node.args.get("distinct")
        on = distinct_.args.get("on") if distinct_ is not None else None
        chosen_by = []
        if on is not None and not on.expressions:
            raise BindError("DISTINCT ON wants expressions", span=span_of(node))
        for term in on.expressions if on is not None else ():
            ordinal = self.ordinal(term, len(items), "DISTINCT ON")
            chosen_by.append(
                items[ordinal].expression
                if ordinal is not None
                else self.above_groups(term, "DISTINCT ON", scope, aliases, is_grouped)
            )
        return chosen_by

    def projected(
        self,
        node: Any,
        plan: Node,
        items: list[SelectItem],
        bound: list[Expression],
        orders: Orders,
        chosen_by: list[Expression],
    ) -> Node:
        """Project, DISTINCT, ORDER BY and LIMIT; sort keys that are not selected travel as hidden columns."""
        columns = tuple((item.name, expression.type) for item, expression in zip(items, bound, strict=True))
        is_distinct = node.args.get("distinct") is not None and not chosen_by
        positions: dict[Expression, int] = {}
        for index, expression in enumerate(bound):
            positions.setdefault(by_value(expression), index)
        hidden: list[Expression] = []
        keys = []
        for expression, term, ordinal in zip(orders.expressions, orders.terms, orders.ordinals, strict=True):
            position = ordinal if ordinal is not None else positions.get(by_value(expression))
            if position is None:
                if is_distinct:
                    raise NotSupportedError(
                        "ORDER BY of SELECT DISTINCT must be in the select list",
                        span=expression.span,
                        hint="add it to the select list",
                    )
                position = len(bound) + len(hidden)
                positions[by_value(expression)] = position
                hidden.append(expression)
            elif ordinal is None and not isinstance(expression, Column):
                self.context.consume(expression)
                self.context.consume((bound + hidden)[position])
            keys.append(
                SortKey(Column(expression.type, position, _name(columns, position)), term.descending, term.nulls_first)
            )
        chosen = []
        for expression in chosen_by:
            position = positions.setdefault(by_value(expression), len(bound) + len(hidden))
            if position == len(bound) + len(hidden):
                hidden.append(expression)
            chosen.append(position)
        wide = columns + tuple((f"sort key {index}", expression.type) for index, expression in enumerate(hidden))
        plan, expressions = unnested(*attached(plan, (*bound, *hidden)))
        plan = Project(wide, plan, tuple(expressions))
        if is_distinct:
            plan = distinct(plan)
        if keys:
            plan = Sort(wide, plan, tuple(keys))
        if chosen:
            plan, hidden = first_of_each(plan, chosen, len(columns)), []
        plan = self.limited(node, plan)
        if hidden:
            visible = tuple(Column(type_, index, name) for index, (name, type_) in enumerate(columns))
            plan = Project(columns, plan, visible)
        return plan

    def limited(self, node: Any, plan: Node) -> Node:
        """LIMIT and OFFSET: constants or parameters, whose values the plan consumes."""
        limit, offset = node.args.get("limit"), node.args.get("offset")
        if limit is None and offset is None:
            return plan
        count = start = None
        percent = False
        if limit is not None:
            options = limit.args.get("limit_options")
            if limit.key == "fetch" or (options is not None and not options.args.get("percent")):
                raise NotSupportedError("LIMIT in this form is not supported", span=span_of(limit))
            percent = options is not None
            count = self.limit_percent(limit.expression) if percent else self.limit_value(limit.expression, "LIMIT")
        if offset is not None:
            start = self.limit_value(offset.expression, "OFFSET")
        if count is None and start is None:
            return plan
        return Limit(plan.columns, plan, count, start, percent and count is not None)

    def limit_percent(self, node: Any) -> Literal | None:
        """The share of LIMIT 12.5%, a DOUBLE."""
        bound = ExpressionBinder(self.context, Scope(None, ()), clause="LIMIT").bind(node)
        if not isinstance(bound, Literal) or not (bound.type.is_numeric or bound.type.kind == "NULL"):
            raise NotSupportedError("LIMIT in this form is not supported", span=span_of(node))
        self.context.consume(bound)
        share = cast(self.context, bound, DOUBLE)
        assert isinstance(share, Literal)
        if share.value is not None and not 0 <= share.value <= 100:
            raise BindError(f"LIMIT percent is not 0 to 100: {share.value:g}", span=span_of(node))
        return share if share.value is not None else None

    def limit_value(self, node: Any, clause: str) -> Literal | None:
        if node.key in ("column", "var") and node.name.upper() == "ALL":
            return None
        bound = folded(self.context, ExpressionBinder(self.context, Scope(None, ()), clause=clause).bind(node))
        if bound is None:
            raise NotSupportedError(f"{clause} wants a constant or a parameter", span=span_of(node))
        if bound.type.kind == "NULL":
            return None
        if not bound.type.is_numeric:
            raise BindError(f"{clause} wants a number, not {bound.type}", span=span_of(node))
        value = cast(self.context, bound, BIGINT)
        assert isinstance(value, Literal)
        if value.value is not None and value.value < 0:
            raise BindError(f"{clause} must not be negative: {value.value}", span=span_of(node))
        return value


@record
class OrderTerm:
    """One ORDER BY term: a position in the select list, or a sqlglot tree."""

    this: Any
    descending: bool
    nulls_first: bool


@record(frozen=False)
class Orders:
    """Bound ORDER BY terms; an ordinal where the term is a position in the select list."""

    expressions: list[Expression]
    terms: list[OrderTerm]
    ordinals: list[int | None]

    def add(self, expression: Expression, term: OrderTerm, ordinal: int | None) -> None:
        self.expressions.append(expression)
        self.terms.append(term)
        self.ordinals.append(ordinal)


def of_rows_alone(aliases: dict[str, Expression]) -> dict[str, Expression]:
    """The aliases of what a row has by itself: no aggregate, no window function."""
    return {
        name: expression
        for name, expression in aliases.items()
        if not contains_aggregate(expression) and not contains_window(expression)
    }


def aggregate(plan: Node, groups: Groups) -> Node:
    """The Aggregate node of the groups; its output is keys, then aggregates."""
    plan, inputs = unnested(*attached(plan, (*groups.keys, *groups.aggregates)))
    keys, calls = inputs[: len(groups.keys)], inputs[len(groups.keys) :]
    names = [key.name if isinstance(key, Column) else f"key {i}" for i, key in enumerate(groups.keys)]
    return aggregated(plan, keys, calls, names)  # type: ignore[arg-type]  # attached() gives calls for calls


def _name(columns: tuple[OutputColumn, ...], position: int) -> str:
    return columns[position][0] if position < len(columns) else f"sort key {position - len(columns)}"
