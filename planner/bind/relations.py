"""What may stand in FROM, as logical plans: tables, views, CTEs, files, functions that give rows, queries in parentheses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpudb.catalog import INFORMATION_SCHEMA
from gpudb.errors import BindError, Error, NotSupportedError
from gpudb.planner.bind.context import Context, Enclosing, catalog_name, not_found, own_span, span_of
from gpudb.planner.bind.expressions import ExpressionBinder
from gpudb.planner.bind.joins import Side, bind_joins
from gpudb.planner.bind.names import describe
from gpudb.planner.bind.pivots import pivoted
from gpudb.planner.bind.recursion import recursive_plan
from gpudb.planner.bind.samples import sampled
from gpudb.planner.bind.scope import Scope
from gpudb.planner.bind.series import SERIES_FUNCTIONS, series
from gpudb.planner.bind.summary import summary
from gpudb.planner.bind.unnest import may_depend, unnested_relation
from gpudb.planner.bind.views import view_plan
from gpudb.planner.expressions import Column, Expression, Literal, Outer, Span
from gpudb.planner.logical import (
    Node,
    OutputColumn,
    Project,
    Scan,
    SlotName,
)
from gpudb.planner.summarize_tokens import SUMMARY
from gpudb.planner.tokens import plain
from gpudb.record import record

_READERS = {
    "read_csv": "csv",
    "read_csv_auto": "csv",
    "read_parquet": "parquet",
    "parquet_scan": "parquet",
    "read_arrow": "arrow",
    "read_ipc": "arrow",
}

_LISTINGS = ("duckdb_", "pragma_", "sqlite_")  # how the names of listings of the catalog begin

# Parts of a query that are refused by name.
_UNSUPPORTED_PARTS = {
    "laterals": "LATERAL",
    "distribute": "DISTRIBUTE BY",
    "connect": "CONNECT BY",
    "match": "MATCH_RECOGNIZE",
    "prewhere": "PREWHERE",
    "into": "SELECT INTO",
    "locks": "locking clause",
    "fetch": "FETCH",
}


@record
class CommonTable:
    """A CTE: its query, bound anew wherever it is used, and the CTEs it sees.

    depth      in how many queries around it stands: it sees these alone
    recursive  the query names the CTE itself
    plan       instead of a query: the rows that a recursion made before
    """

    name: str
    query: Any
    columns: tuple[str, ...]
    visible: dict[str, CommonTable]
    depth: int = 0
    recursive: bool = False
    plan: Node | None = None


class RelationBinder:
    """Binds relations; a QueryBinder is one, since what stands in FROM may be a query, and looks at the CTEs it sees.

    tables  the CTEs that may be named
    """

    def __init__(self, context: Context, tables: dict[str, CommonTable] | None = None) -> None:
        self.context = context
        self.tables = dict(tables or {})

    def inner(self, node: Any, tables: dict[str, CommonTable] | None = None) -> Node:
        """The plan of a query within this one, which sees the same CTEs unless it is given others."""
        raise NotImplementedError

    def subquery(self, node: Any, around: Enclosing) -> tuple[Node, tuple[Expression, ...]]:
        """(the plan of a subquery of an expression, the values of the query around that it looks at)."""
        self.context.outer.append(around)
        try:
            return self.inner(node), tuple(around.arguments)
        finally:
            self.context.outer.pop()

    def dependent_relation(self, node: Any, scope: Scope) -> tuple[Node, Scope, tuple[Expression, ...]]:
        """What stands in FROM behind relations of that scope: its plan, its scope, and what it takes of a row of theirs."""
        if not may_depend(node):
            return *self.relation(node), ()
        around = Enclosing(scope)
        self.context.outer.append(around)
        try:
            plan, own = self.relation(node)
        finally:
            self.context.outer.pop()
        if all(isinstance(value, Outer) for value in around.arguments):  # it looks farther out, as if it stood alone
            return *(self.relation(node) if around.arguments else (plan, own)), ()
        return plan, own, tuple(around.arguments)

    def relation(self, node: Any) -> tuple[Node, Scope]:
        """What stands in FROM: its plan, and the scope it gives."""
        plan, scope = self.simple_relation(node)
        joins = node.args.get("joins")
        if joins:
            side = bind_joins(self, Side(plan, scope), joins)
            plan, scope = side.plan, side.scope
        return plan, scope

    def simple_relation(self, node: Any) -> tuple[Node, Scope]:
        """A relation without the joins that follow it."""
        self.refuse_parts(node)
        alias = node.args.get("alias")
        if node.key == "subquery" and node.this.key == "table":  # joins in parentheses
            plan, scope = self.relation(node.this)
            if alias is None:
                return plan, scope
            plan, name = unique_columns(self.context, only_shown(plan, scope)), None
        elif node.key == "table":
            plan, name = self.named(node)
        elif node.key == "subquery" or (node.key == "lateral" and node.this.key == "subquery"):
            plan, name = unique_columns(self.context, self.inner(node.this)), None
        elif node.key == "values":
            plan, name = self.inner(node), None
        else:
            raise NotSupportedError(f"{describe(node)} in FROM is not supported", span=span_of(node))
        columns = plan.columns
        if alias is not None:
            name = plain(alias.name) or name
            columns = self.renamed(columns, [plain(column.name) for column in alias.args.get("columns") or ()], alias)
            plan = renamed_plan(plan, columns)
        if node.args.get("sample") is not None:
            plan = sampled(self, plan, node.args["sample"])
        scope = Scope(name, columns)
        for pivot in node.args.get("pivots") or ():
            plan, scope = self.pivot(plan, scope, pivot)
        return plan, scope

    def pivot(self, plan: Node, scope: Scope, node: Any) -> tuple[Node, Scope]:
        """PIVOT or UNPIVOT of a relation, perhaps with an alias."""
        plan = unique_columns(self.context, pivoted(self, plan, scope, node))
        alias = node.args.get("alias")
        columns = plan.columns
        if alias is not None:
            columns = self.renamed(columns, [plain(column.name) for column in alias.args.get("columns") or ()], alias)
            plan = renamed_plan(plan, columns)
        return plan, Scope(plain(alias.name) if alias is not None else None, columns)

    def renamed(self, columns: tuple[OutputColumn, ...], names: list[str], node: Any) -> tuple[OutputColumn, ...]:
        if len(names) > len(columns):
            raise BindError(f"more column names than columns: {len(names)}, {len(columns)}", span=span_of(node))
        names = names + [name for name, _ in columns[len(names) :]]
        return tuple((name, type_) for name, (_, type_) in zip(names, columns, strict=True))

    def named(self, node: Any) -> tuple[Node, str]:
        """A table, a CTE, a file, or a function that reads files."""
        target = node.this
        if target.key == "anonymous":
            name = plain(str(target.this)).lower()
            if name in SERIES_FUNCTIONS:
                return self.series(name, target), name
            if name == "unnest":
                return self.unnest(target), name
            if name == SUMMARY:
                return summary(self, self.inner(target.expressions[0])), "summary"
            if name not in _READERS:
                listed = self.called_listing(name, target)
                if listed is not None:
                    return listed, name
            return self.reader(target)
        if target.key != "identifier":
            raise NotSupportedError(f"{describe(target)} in FROM is not supported", span=span_of(node))
        name = plain(target.name)
        span = span_of(target)
        if node.args.get("db") is None:
            common = self.tables.get(name.lower())
            if common is not None and common.plan is not None:
                return common.plan, common.name
            if common is not None:
                with self.context.outside_of(common.depth):
                    if common.recursive:
                        return recursive_plan(self.context, common), common.name
                    plan = self.inner(common.query, common.visible)
                plan = unique_columns(self.context, plan)
                columns = self.renamed(plan.columns, list(common.columns), node)
                return renamed_plan(plan, columns), common.name
        schema = plain(node.text("db")).lower()
        if schema == INFORMATION_SCHEMA and node.args.get("catalog") is None:
            return self.information(name, span), name
        key = catalog_name(self.context, node)
        stored = self.stored(key, span)
        if stored is not None:
            return stored, name
        layout = self.context.catalog.listing(name) if not schema else None
        if layout is not None:
            return self.scan(layout), name
        if span is not None and self.context.parsed.sql[span[0]] == "'":
            return self.scan(self.file((name,), "auto", {}, span)), _stem(name)
        candidates = [*self.context.catalog.table_names(), *(table.name for table in self.tables.values())]
        raise not_found("table", key, candidates, span)

    def stored(self, key: str, span: Span | None) -> Node | None:
        """The rows of a table or view, by the catalog's name for it."""
        layout = self.context.catalog.table(key)
        if layout is not None:
            return self.scan(layout)
        view = self.context.catalog.view(key)
        return view_plan(self.context, view, span) if view is not None else None

    def information(self, name: str, span: Span | None) -> Node:
        """A table of the standard's schema of facts about the database."""
        layout = self.context.catalog.listing(f"{INFORMATION_SCHEMA}.{name}")
        if layout is None:
            raise not_found("table", f"{INFORMATION_SCHEMA}.{name}", [], span)
        return self.scan(layout)

    def called_listing(self, name: str, node: Any) -> Node | None:
        """duckdb_tables(), pragma_table_info('t'): facts about the database; None of another name."""
        place = own_span(node)
        if any(argument.key in ("eq", "propertyeq") for argument in node.expressions):
            return None
        given = [self.constant(argument) for argument in node.expressions] if name.startswith(_LISTINGS) else []
        return self.listing(name, given, place)

    def listing(self, name: str, arguments: list[Any], span: Span | None) -> Node | None:
        """A listing that is called with the name of a table, which must be there, or with nothing."""
        try:
            layout = self.context.catalog.listing(name, arguments)
        except BindError as error:
            error.span = span
            raise
        if any(not isinstance(argument, str) for argument in arguments):
            raise BindError(f"{name} wants the name of a table as a string", span=span)
        if layout is not None and arguments and self.stored(arguments[0], span) is None:
            raise not_found("table", arguments[0], self.context.catalog.table_names(), span)
        return None if layout is None else self.scan(layout)

    def scan(self, layout: Any) -> Node:
        self.context.tables.add(layout.name)
        return Scan(layout.columns, layout.name, tuple(range(len(layout.columns))))

    def file(self, paths: tuple[str, ...], file_format: str, options: dict[str, object], span: Span | None) -> Any:
        try:
            return self.context.catalog.file(paths, file_format, options)
        except Error as error:
            error.span = error.span or span
            raise

    def series(self, name: str, node: Any) -> Node:
        """range() and generate_series(); an alias that names no columns names the one there is."""
        binder = ExpressionBinder(self.context, Scope(None, ()), clause="a table function")
        for argument in node.expressions:
            if argument.key in ("eq", "propertyeq"):
                raise BindError(f"{name} takes no named arguments", span=span_of(argument))
        plan = series(binder, name, [binder.bind(argument) for argument in node.expressions], own_span(node))
        return _called_as_its_relation(plan, node)

    def unnest(self, node: Any) -> Node:
        """UNNEST(list) in FROM, which may look at the relations before it."""
        binder = ExpressionBinder(self.context, Scope(None, ()), clause="SELECT", query=self)
        return _called_as_its_relation(unnested_relation(binder, node, own_span(node)), node)

    def reader(self, node: Any) -> tuple[Node, str]:
        """read_csv('f', option = value), read_parquet(['f', 'g']): constants, which the plan consumes."""
        name = plain(str(node.this)).lower()
        place = own_span(node)
        file_format = _READERS.get(name)
        if file_format is None:
            raise NotSupportedError(
                f"table function is not supported: {name}", span=place, hint=f"there are: {', '.join(sorted(_READERS))}"
            )
        paths: tuple[str, ...] | None = None
        options: dict[str, object] = {}
        for argument in node.expressions:
            if argument.key in ("eq", "propertyeq"):
                options[plain(argument.this.name).lower()] = self.constant(argument.expression)
            elif paths is None:
                value = self.constant(argument)
                paths = tuple(str(item) for item in value) if isinstance(value, list) else (str(value),)
            else:
                raise BindError(f"{name} wants one path or list of paths, and name = value options", span=place)
        if not paths:
            raise BindError(f"{name} wants a path", span=place)
        return self.scan(self.file(paths, file_format, options, place)), _stem(paths[0])

    def constant(self, node: Any) -> Any:
        """A literal, a list, or {'name': 'value'} among the arguments of a table function, as a Python value."""
        if node.key == "array":
            return [self.constant(item) for item in node.expressions]
        if node.key == "struct":
            return {_property_name(item): self.constant(item.expression) for item in node.expressions}
        bound = ExpressionBinder(self.context, Scope(None, ()), clause="a table function").bind(node)
        if not isinstance(bound, Literal):
            raise NotSupportedError("table functions want constants", span=span_of(node))
        self.context.consume(bound)
        if bound.type.kind == "DECIMAL":
            return bound.value / 10**bound.type.scale
        return bound.value

    def refuse_parts(self, node: Any) -> None:
        for part, name in _UNSUPPORTED_PARTS.items():
            value = node.args.get(part)
            if value:
                first = value[0] if isinstance(value, list) else value
                raise NotSupportedError(f"{name} is not supported", span=span_of(first) or span_of(node))


def only_shown(plan: Node, scope: Scope) -> Node:
    """The columns of a join that `*` shows, as a plan of their own."""
    if scope.shown is None or scope.shown == tuple(range(len(plan.columns))):
        return plan
    columns = tuple(scope.columns[index] for index in scope.shown)
    picked = tuple(Column(type_, index, name) for index, (name, type_) in zip(scope.shown, columns, strict=True))
    return Project(columns, plan, picked)


def renamed_plan(plan: Node, columns: tuple[OutputColumn, ...]) -> Node:
    """The plan with other names for its columns."""
    return plan if plan.columns == columns else replace(plan, columns=columns)


def unique_columns(context: Context, plan: Node) -> Node:
    """A second column of a name becomes name_1, then name_2: what a subquery or a new table shows.

    From here on names are looked up, so the literals in them are consumed.
    """
    consume_names(context, plan)
    taken: set[str] = set()
    columns = []
    for name, type_ in plan.columns:
        new, number = name, 0
        while new.lower() in taken:
            number += 1
            new = f"{name}_{number}"
        taken.add(new.lower())
        columns.append((new, type_))
    return renamed_plan(plan, tuple(columns))


def _called_as_its_relation(plan: Node, node: Any) -> Node:
    """The rows of a table function with one column: an alias that names no columns names that."""
    alias = node.parent.args.get("alias")
    if alias is None or alias.args.get("columns"):
        return plan
    return renamed_plan(plan, ((plain(alias.name), plan.columns[0][1]),))


def consume_names(context: Context, plan: Node) -> None:
    """Note that names were looked at which show literals."""
    for name, _ in plan.columns:
        if isinstance(name, SlotName):
            context.consumed |= {part[0] for part in name.parts if not isinstance(part, str)}


def _stem(path: str) -> str:
    """The name of a file as a relation: without folders and ending."""
    return path.replace("\\", "/").rsplit("/", 1)[-1].split(".", 1)[0] or path


def _property_name(item: Any) -> str:
    return str(item.this.name if hasattr(item.this, "name") else item.this)
