"""Statements that are no queries, and EXPLAIN, DESCRIBE and COPY around one.

Past 600 lines: one class that has a method for each kind of statement, and those share how names and rows are read.
"""

from __future__ import annotations

from typing import Any

from gpudb.catalog import INFORMATION_SCHEMA, Constraint, Constraints, Enum, View, qualified, schema_of
from gpudb.errors import BindError, CatalogError, NotSupportedError
from gpudb.planner import statements
from gpudb.planner.bind import changes
from gpudb.planner.bind.casts import bind_type, cast, castable, checked_enum
from gpudb.planner.bind.constraints import ConstraintReader, with_name_of_column, without_column
from gpudb.planner.bind.context import Context, catalog_name, not_found, span_of
from gpudb.planner.bind.defaults import bound_default, default_sql, default_value
from gpudb.planner.bind.expressions import ExpressionBinder
from gpudb.planner.bind.merges import MergeBinder
from gpudb.planner.bind.ordered_aggregates import spelled_out
from gpudb.planner.bind.query import QueryBinder
from gpudb.planner.bind.random_uuids import is_random
from gpudb.planner.bind.relations import unique_columns
from gpudb.planner.bind.scope import Scope
from gpudb.planner.bind.sequences import (
    bind_sequence,
    keeps_its_rows,
    numbered_values,
    refused_default,
    sequence_of_default,
)
from gpudb.planner.bind.upserts import bind_upsert
from gpudb.planner.bind.views import own_plan
from gpudb.planner.expressions import Column, Expression, Literal, Span
from gpudb.planner.logical import Node, Numbered, Project, Values
from gpudb.planner.parse import Command
from gpudb.planner.statements import Statement
from gpudb.planner.tokens import plain
from gpudb.planner.type_names import KNOWN_TYPES, TYPE_NAMES
from gpudb.types import BIGINT, INTEGER, VARCHAR, SqlType

_QUERIES = frozenset("select union values subquery table except intersect pivot".split())
_FORMATS = {"csv": "csv", "tsv": "csv", "parquet": "parquet", "arrow": "arrow", "ipc": "arrow", "feather": "arrow"}


class StatementBinder:
    """Binds any statement."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def bind(self, tree: Any) -> Statement:
        if isinstance(tree, Command):
            method = getattr(self, "command_" + tree.name)
            return method(tree)
        if tree.key in _QUERIES:
            return statements.Query(self.query(tree))
        method = getattr(self, "bind_" + tree.key, None)
        if method is None:
            raise NotSupportedError(f"{tree.key.upper()} statements are not supported", span=span_of(tree))
        return method(tree)

    def query(self, tree: Any) -> Node:
        return QueryBinder(self.context).bind(tree)

    # --- Tables ------------------------------------------------------------------------------------------------------

    def bind_create(self, tree: Any) -> Statement:
        kind = str(tree.args.get("kind") or "").upper()
        if kind != "TABLE":
            raise NotSupportedError(f"CREATE {kind} is not supported", span=span_of(tree))
        self.refuse_properties(tree)
        target = tree.this
        table = target.this if target.key == "schema" else target
        name = self.table_name(table)
        exists, replaces = bool(tree.args.get("exists")), bool(tree.args.get("replace"))
        if exists and replaces:
            raise BindError("OR REPLACE and IF NOT EXISTS exclude each other", span=span_of(table))
        query = tree.args.get("expression")
        if query is not None:
            if target.key == "schema":
                raise NotSupportedError("CREATE TABLE with column names AS is not supported", span=span_of(target))
            plan = unique_columns(self.context, self.query(query))
            return statements.CreateTableAs(name, with_real_types(self.context, plan), exists, replaces)
        if target.key != "schema":
            raise BindError("CREATE TABLE wants columns or AS query", span=span_of(table))
        if not target.expressions:
            raise BindError(f"a table wants at least one column: {name}", span=span_of(table))
        columns: list[tuple[str, SqlType]] = []
        defaults: list[tuple[str, str]] = []
        for definition in target.expressions:
            if definition.key != "columndef":
                continue
            columns.append(self.column(definition, [column for column, _ in columns]))
            default = self.default(definition, columns[-1][1])
            if default is not None:
                defaults.append((columns[-1][0], default))
        reader = ConstraintReader(self.context, name, tuple(columns))
        for definition in target.expressions:
            if definition.key == "columndef":
                reader.of_column(definition, plain(definition.name))
            else:
                reader.of_table(definition)
        return statements.CreateTable(name, tuple(columns), reader.finished(), exists, replaces, tuple(defaults))

    def refuse_properties(self, tree: Any) -> None:
        properties = tree.args.get("properties")
        if properties is not None:
            first = properties.expressions[0]
            if first.key == "temporaryproperty":
                raise NotSupportedError("CREATE TEMPORARY TABLE is not supported", span=span_of(tree))
            raise NotSupportedError(f"CREATE TABLE with {first.key} is not supported", span=span_of(tree))

    def column(self, definition: Any, taken: list[str]) -> tuple[str, SqlType]:
        name = plain(definition.name)
        if name.lower() in {other.lower() for other in taken}:
            raise BindError(f"two columns have one name: {name}", span=span_of(definition.this))
        kind = definition.args.get("kind")
        if kind is None:
            raise BindError(f"column has no type: {name}", span=span_of(definition.this))
        type_ = bind_type(self.context, kind)
        return name, type_

    def default(self, definition: Any, type_: SqlType) -> str | None:
        """The SQL of a column's DEFAULT, where it has one."""
        for constraint in definition.args.get("constraints") or ():
            if constraint.args["kind"].key == "defaultcolumnconstraint":
                return default_sql(self.context, constraint.args["kind"].this, type_)
        return None

    def table_name(self, node: Any) -> str:
        if node.key != "table" or node.this.key != "identifier":
            raise BindError("name of a table expected", span=span_of(node))
        return catalog_name(self.context, node)

    def table(self, name: str, span: Span | None) -> Any:
        """The layout of an existing table."""
        layout = self.context.catalog.table(name)
        if layout is None and self.context.catalog.view(name) is not None:
            raise CatalogError(f"a view is no table: {name}", span=span, hint="DROP VIEW drops it")
        if layout is None:
            raise not_found("table", name, self.context.catalog.table_names(), span)
        return layout

    def bind_drop(self, tree: Any) -> Statement:
        kind = str(tree.args.get("kind") or "").upper()
        if kind != "TABLE":
            raise NotSupportedError(f"DROP {kind} is not supported", span=span_of(tree))
        tables = tree.args.get("tables") or [tree.this]
        if len(tables) != 1:
            raise NotSupportedError("DROP of several tables is not supported", span=span_of(tables[1]))
        name = self.table_name(tables[0])
        exists = bool(tree.args.get("exists"))
        if not exists:
            self.table(name, span_of(tables[0]))
        return statements.DropTable(name, exists)

    def bind_insert(self, tree: Any) -> Statement:
        if tree.args.get("overwrite"):
            raise NotSupportedError("INSERT OVERWRITE is not supported", span=span_of(tree.this))
        target = tree.this
        table = target.this if target.key == "schema" else target
        span = span_of(table)
        layout = self.table(self.table_name(table), span)
        ordinals = tuple(range(len(layout.columns)))
        if target.key == "schema":
            names = [(plain(column.name), span_of(column)) for column in target.expressions]
            ordinals = self.ordinals(layout, names)
        source = tree.args.get("expression")
        if tree.args.get("default"):
            nothing: Node = Values((), ((),))
            plan = self.whole_rows(layout, (), nothing, span)
            return self.inserted(tree, table, layout, (), plan)
        if source is None:
            raise BindError("INSERT wants VALUES or a query", span=span)
        binder = QueryBinder(self.context)
        if tree.args.get("with_") is not None:
            binder.common_tables(tree)
        if source.key == "values" and source.args.get("alias") is None:
            plan = self.insert_values(source, layout, ordinals, span)
        else:
            plain_insert = tree.args.get("conflict") is None and tree.args.get("alternative") is None
            self.context.inserted = source if plain_insert and keeps_its_rows(source) else None
            plan = binder.bind(source)
        if tree.args.get("by_name"):
            if target.key == "schema":
                raise BindError("INSERT BY NAME takes no list of columns", span=span)
            ordinals = self.ordinals(layout, [(name, span) for name, _ in plan.columns])
        if len(plan.columns) != len(ordinals):
            raise BindError(f"INSERT gives {len(plan.columns)} values for {len(ordinals)} columns", span=span)
        plan = self.whole_rows(layout, ordinals, plan, span)
        return self.inserted(tree, table, layout, ordinals, plan)

    def inserted(self, tree: Any, table: Any, layout: Any, ordinals: tuple[int, ...], plan: Node) -> Statement:
        """The statement that adds the rows of a plan, or with ON CONFLICT some of them."""
        if tree.args.get("conflict") is None and tree.args.get("alternative") is None:
            return statements.Insert(layout.name, ordinals, plan, self.returning(tree, table))
        named = changes.bind_returning(self.context, tree, table)
        return bind_upsert(self.context, tree, layout, ordinals, plan, named)

    def returning(self, tree: Any, table: Any) -> Node | None:
        """The plan of an INSERT's RETURNING, where an alias of the table counts for nothing."""
        table.set("alias", None)
        return changes.bind_returning(self.context, tree, table)

    def insert_values(self, source: Any, layout: Any, ordinals: tuple[int, ...], span: Span | None) -> Node:
        """VALUES whose items are cast to the columns one by one."""
        types = [layout.columns[ordinal][1] for ordinal in ordinals]
        binder = ExpressionBinder(self.context, Scope(None, ()), clause="VALUES")
        rows = []
        for row in source.expressions:
            items = row.expressions if row.key == "tuple" else [row]
            if len(items) != len(types):
                raise BindError(f"INSERT gives {len(items)} values for {len(types)} columns", span=span_of(row) or span)
            bound = []
            for item, type_, ordinal in zip(items, types, ordinals, strict=True):
                is_default = item.key == "var" and item.name.upper() == "DEFAULT"
                value = default_value(self.context, layout, ordinal) if is_default else binder.bind(item)
                if not castable(value.type, type_):
                    raise BindError(f"cannot cast {value.type} to {type_}", span=value.span)
                bound.append(cast(self.context, value, type_))
            rows.append(tuple(bound))
        return Values(tuple((f"col{index}", type_) for index, type_ in enumerate(types)), tuple(rows))

    def ordinals(self, layout: Any, names: list[tuple[str, Span | None]]) -> tuple[int, ...]:
        """Positions of columns by their names."""
        known = {name.lower(): index for index, (name, _) in enumerate(layout.columns)}
        found: list[int] = []
        for name, span in names:
            ordinal = known.get(name.lower())
            if ordinal is None:
                raise not_found("column", name, [column for column, _ in layout.columns], span)
            if ordinal in found:
                raise BindError(f"column is named twice: {name}", span=span)
            found.append(ordinal)
        return tuple(found)

    def whole_rows(self, layout: Any, ordinals: tuple[int, ...], plan: Node, span: Span | None) -> Node:
        """The plan with one column per column of the table, in its order and types; its DEFAULT where none is given."""
        if tuple(type_ for _, type_ in plan.columns) == tuple(
            type_ for _, type_ in layout.columns
        ) and ordinals == tuple(range(len(layout.columns))):
            return plan
        expressions: list[Expression] = []
        several = not isinstance(plan, Values) or len(plan.rows) > 1
        defaults = self.context.catalog.defaults(layout.name)
        for index, (name, type_) in enumerate(layout.columns):
            if index not in ordinals:
                default = defaults.get(name.lower()) if several else None
                sequence = sequence_of_default(self.context, default)
                number = None
                if sequence is not None or is_random(self.context, default):
                    plan = plan if isinstance(plan, Numbered) else Numbered.of(plan)
                    number = Column(BIGINT, len(plan.columns) - 1, plan.columns[-1][0])
                if sequence is None or number is None:
                    expressions.append(default_value(self.context, layout, index, number))
                    continue
                expressions.append(numbered_values(self.context, sequence, number, type_))
                continue
            position = ordinals.index(index)
            source, source_type = plan.columns[position]
            if not castable(source_type, type_):
                raise BindError(f"column {name} takes {type_}, not {source_type}", span=span)
            expressions.append(cast(self.context, Column(source_type, position, source), type_))
        return Project(layout.columns, plan, tuple(expressions))

    # --- Changes -----------------------------------------------------------------------------------------------------

    def bind_delete(self, tree: Any) -> Statement:
        return changes.bind_delete(self.context, tree, self.table(*changes.target_of(self.context, tree)))

    def bind_update(self, tree: Any) -> Statement:
        return changes.bind_update(self.context, tree, self.table(*changes.target_of(self.context, tree)))

    def command_merge(self, command: Command) -> Statement:
        target = command.parts["target"]
        if target.key != "table" or target.this.key != "identifier":
            raise BindError("name of a table expected", span=command.spans["target"])
        return MergeBinder(
            self.context, command, self.table(catalog_name(self.context, target), span_of(target))
        ).bind()

    def command_truncate(self, command: Command) -> Statement:
        return statements.Delete(self.table(command.parts["table"], command.spans["table"]).name, None)

    def altered(self, command: Command) -> Any:
        """The layout of the table that ALTER names; None where IF EXISTS says that it need not be there."""
        name = command.parts["table"]
        catalog = self.context.catalog
        if command.parts["if_exists"] and catalog.table(name) is None and catalog.view(name) is None:
            return None
        return self.table(name, command.spans["table"])

    def command_add_column(self, command: Command) -> Statement:
        layout = self.altered(command)
        if layout is None:
            return statements.Nothing()
        definition = command.parts["definition"]
        if plain(definition.name).lower() in {name.lower() for name, _ in layout.columns}:
            if command.parts["column_exists"]:
                return statements.Nothing()
            raise BindError(f"column already exists: {plain(definition.name)}", span=command.spans["column"])
        name, type_ = self.column(definition, [])
        default = self.default(definition, type_)
        reader = ConstraintReader(self.context, layout.name, (*layout.columns, (name, type_)))
        reader.of_column(definition, name)
        other = next((one for one in reader.items if one.kind != "NOT NULL"), None)
        if other is not None:
            raise NotSupportedError(f"ADD COLUMN with {other.kind} is not supported", span=command.spans["column"])
        old = self.context.catalog.constraints(layout.name)
        constraints = Constraints(layout.name, (*old.items, *reader.items))
        refused_default(self.context, default, "ADD COLUMN", command.spans["column"])
        value = Literal(type_, None) if default is None else bound_default(self.context, default, type_)
        plan = Values(((name, type_),), ((value,),))
        return statements.AddColumn(layout.name, (name, type_), plan, default, constraints)

    def command_set_not_null(self, command: Command) -> Statement:
        layout = self.altered(command)
        if layout is None:
            return statements.Nothing()
        (ordinal,) = self.ordinals(layout, [(command.parts["column"], command.spans["column"])])
        name = layout.columns[ordinal][0]
        old = self.context.catalog.constraints(layout.name)
        there = name.lower() in {column.lower() for column in old.not_null}
        if not command.parts["required"]:
            if name.lower() in {column.lower() for column in old.primary_key}:
                raise CatalogError(f"column is in the primary key: {name}", span=command.spans["column"])
            kept = (one for one in old.items if not (one.kind == "NOT NULL" and one.columns[0].lower() == name.lower()))
            return statements.SetConstraints(layout.name, Constraints(layout.name, tuple(kept)), ())
        added = () if there else (Constraint("NOT NULL", (name,)),)
        return statements.SetConstraints(layout.name, Constraints(layout.name, (*old.items, *added)), added)

    def command_add_constraint(self, command: Command) -> Statement:
        layout = self.altered(command)
        if layout is None:
            return statements.Nothing()
        span = command.spans["constraint"]
        reader = ConstraintReader(self.context, layout.name, layout.columns)
        old = self.context.catalog.constraints(layout.name)
        reader.items = list(old.items)
        reader.of_table(command.parts["constraint"])
        if any(one.kind == "CHECK" for one in reader.items[len(old.items) :]):
            raise NotSupportedError("ALTER TABLE ... ADD CHECK is not supported", span=span)
        new = reader.finished()
        return statements.SetConstraints(layout.name, new, new.items[len(old.items) :])

    def command_set_default(self, command: Command) -> Statement:
        layout = self.altered(command)
        if layout is None:
            return statements.Nothing()
        (ordinal,) = self.ordinals(layout, [(command.parts["column"], command.spans["column"])])
        definition = command.parts["definition"]
        default = None
        if definition is not None:
            default = default_sql(self.context, definition, layout.columns[ordinal][1])
        return statements.SetDefault(layout.name, ordinal, default)

    def command_set_type(self, command: Command) -> Statement:
        layout = self.altered(command)
        if layout is None:
            return statements.Nothing()
        (ordinal,) = self.ordinals(layout, [(command.parts["column"], command.spans["column"])])
        _, new = self.column(command.parts["definition"], [])
        name, old = layout.columns[ordinal]
        for one in self.context.catalog.constraints(layout.name).items:
            if one.kind != "NOT NULL" and name.lower() in {column.lower() for column in one.columns}:
                raise BindError(
                    f"column cannot change its type, a {one.kind} constraint is about it: {name}",
                    span=command.spans["column"],
                )
        if not castable(old, new):
            raise BindError(f"cannot cast {old} to {new}", span=command.spans["type"])
        columns = list(layout.columns)
        columns[ordinal] = (name, new)
        expressions: list[Expression] = [Column(type_, k, known) for k, (known, type_) in enumerate(layout.columns)]
        expressions[ordinal] = cast(self.context, expressions[ordinal], new)
        rows = QueryBinder(self.context).scan(layout)
        return statements.SetType(layout.name, Project(tuple(columns), rows, tuple(expressions)))

    def command_drop_column(self, command: Command) -> Statement:
        layout = self.altered(command)
        if layout is None:
            return statements.Nothing()
        name, span = command.parts["column"], command.spans["column"]
        if command.parts["column_exists"] and name.lower() not in {known.lower() for known, _ in layout.columns}:
            return statements.Nothing()
        (ordinal,) = self.ordinals(layout, [(name, span)])
        if len(layout.columns) == 1:
            raise CatalogError(
                f"a table wants at least one column: {layout.name}", span=span, hint="DROP TABLE drops it"
            )
        old = self.context.catalog.constraints(layout.name)
        return statements.DropColumn(layout.name, ordinal, without_column(old, layout.columns[ordinal][0], span))

    def command_rename_column(self, command: Command) -> Statement:
        layout = self.altered(command)
        if layout is None:
            return statements.Nothing()
        (ordinal,) = self.ordinals(layout, [(command.parts["column"], command.spans["column"])])
        name = command.parts["name"]
        if name.lower() in {known.lower() for k, (known, _) in enumerate(layout.columns) if k != ordinal}:
            raise BindError(f"column already exists: {name}", span=command.spans["name"])
        old = self.context.catalog.constraints(layout.name)
        constraints = with_name_of_column(old, layout.columns[ordinal][0], name)
        return statements.RenameColumn(layout.name, ordinal, name, constraints)

    def command_rename_table(self, command: Command) -> Statement:
        layout = self.altered(command)
        if layout is None:
            return statements.Nothing()
        name = qualified(command.parts["name"], schema_of(layout.name) or "main")
        if name.lower() != layout.name.lower() and (
            self.context.catalog.table(name) is not None or self.context.catalog.view(name) is not None
        ):
            raise CatalogError(f"the name is taken: {name}", span=command.spans["name"])
        return statements.RenameTable(layout.name, name)

    # --- Views and schemas -------------------------------------------------------------------------------------------

    def command_create_view(self, command: Command) -> Statement:
        parts, span = command.parts, command.spans["name"]
        if parts["exists"] and parts["replace"]:
            raise BindError("OR REPLACE and IF NOT EXISTS exclude each other", span=span)
        schema = schema_of(parts["name"])
        if schema is not None and not self.context.catalog.has_schema(schema):
            raise BindError(f"schema not found: {schema}", span=span)
        view = View(parts["name"], tuple(parts["columns"]), parts["sql"])
        own_plan(self.context, view)  # what cannot be bound is no view
        return statements.CreateView(view, parts["exists"], parts["replace"])

    def command_drop_view(self, command: Command) -> Statement:
        name, span = command.parts["name"], command.spans["name"]
        if self.context.catalog.view(name) is None:
            if self.context.catalog.table(name) is not None:
                raise CatalogError(f"a table is no view: {name}", span=span, hint="DROP TABLE drops it")
            if not command.parts["exists"]:
                raise CatalogError(f"view not found: {name}", span=span)
        return statements.DropView(name, command.parts["exists"])

    def command_create_schema(self, command: Command) -> Statement:
        name, span = command.parts["name"], command.spans["name"]
        if command.parts["replace"]:
            raise NotSupportedError("CREATE OR REPLACE SCHEMA is not supported", span=span)
        if name.lower() == INFORMATION_SCHEMA:
            raise CatalogError(f"the name belongs to the system: {name}", span=span)
        if not command.parts["exists"] and (name.lower() == "main" or self.context.catalog.has_schema(name)):
            raise CatalogError(f"schema already exists: {name}", span=span)
        return statements.CreateSchema(name, command.parts["exists"])

    def command_create_type(self, command: Command) -> Statement:
        parts, span = command.parts, command.spans["name"]
        if parts["replace"]:
            raise NotSupportedError("CREATE OR REPLACE TYPE is not supported", span=span)
        name = parts["name"]
        known = name.lower() in TYPE_NAMES or name.lower() in KNOWN_TYPES or self.context.catalog.enum(name) is not None
        if known and not parts["exists"]:
            raise CatalogError(f"type already exists: {name}", span=span)
        values = self.found_texts(name, parts["sql"], span) if "sql" in parts else parts["values"]
        values = checked_enum(values, span).values
        return statements.CreateType(Enum(name, values), parts["exists"])

    def found_texts(self, name: str, sql: str, span: Span | None) -> list[str]:
        """The values of a query's only column as texts, each once and without NULL, in order of their first rows."""
        plan = own_plan(self.context, View(name, (), sql))
        if len(plan.columns) != 1:
            raise BindError(f"an ENUM wants a query of one column, not {len(plan.columns)}", span=span)
        self.context.volatile = True
        (column, type_), rows = plan.columns[0], self.context.raw_values()
        text = cast(self.context, Column(type_, 0, column), VARCHAR)
        texts = Project(((column, VARCHAR),), plan, (text,))
        found = self.context.catalog.values_of(spelled_out(self.context, texts), rows)
        return [value for value in dict.fromkeys(found) if value is not None]

    def command_drop_type(self, command: Command) -> Statement:
        name, span = command.parts["name"], command.spans["name"]
        if command.parts["cascade"]:
            raise NotSupportedError("DROP TYPE ... CASCADE is not supported", span=span)
        if not command.parts["exists"] and self.context.catalog.enum(name) is None:
            raise CatalogError(f"type not found: {name}", span=span)
        return statements.DropType(name, command.parts["exists"])

    def command_create_sequence(self, command: Command) -> Statement:
        parts, span = command.parts, command.spans["name"]
        if parts["exists"] and parts["replace"]:
            raise BindError("OR REPLACE and IF NOT EXISTS exclude each other", span=span)
        schema = schema_of(parts["name"])
        if schema is not None and not self.context.catalog.has_schema(schema):
            raise BindError(f"schema not found: {schema}", span=span)
        return statements.CreateSequence(
            bind_sequence(parts["name"], parts["options"], span), parts["exists"], parts["replace"]
        )

    def command_drop_sequence(self, command: Command) -> Statement:
        name, span = command.parts["name"], command.spans["name"]
        if not command.parts["exists"] and self.context.catalog.sequence(name) is None:
            raise CatalogError(f"sequence not found: {name}", span=span)
        return statements.DropSequence(name, command.parts["exists"])

    def command_drop_schema(self, command: Command) -> Statement:
        name, span = command.parts["name"], command.spans["name"]
        if name.lower() == "main":
            raise CatalogError("schema main is always there", span=span)
        if not command.parts["exists"] and not self.context.catalog.has_schema(name):
            raise CatalogError(f"schema not found: {name}", span=span)
        return statements.DropSchema(name, command.parts["exists"], command.parts["cascade"])

    # --- Commands ----------------------------------------------------------------------------------------------------

    def command_explain(self, command: Command) -> Statement:
        inner = self.bind(command.parts["statement"])
        if isinstance(inner, statements.Explain):
            raise BindError("EXPLAIN of EXPLAIN")
        return statements.Explain(command.parts["mode"], inner)

    def rows_of(self, command: Command) -> Node:
        """All rows of the table, view or listing that a command names."""
        name, span = command.parts["table"], command.spans["table"]
        plan = QueryBinder(self.context).stored(name, span)
        listed = self.context.catalog.listing(name) if plan is None else None
        if listed is not None:
            return QueryBinder(self.context).scan(listed)
        return plan if plan is not None else QueryBinder(self.context).scan(self.table(name, span))

    def command_describe(self, command: Command) -> Statement:
        if "table" in command.parts:
            return self.described(self.rows_of(command), command.parts["table"])
        inner = self.bind(command.parts["statement"])
        if not isinstance(inner, statements.Query):
            raise NotSupportedError("DESCRIBE of this statement is not supported")
        return statements.Describe(inner.plan.columns)

    def command_show(self, command: Command) -> Statement:
        name = command.parts["name"]
        plan = QueryBinder(self.context).stored(name, command.spans["name"])
        if plan is None:
            return statements.Show(name.lower())
        return self.described(plan, name)

    def described(self, plan: Node, name: str) -> Statement:
        """The columns of a table or view."""
        catalog = self.context.catalog
        return statements.Describe(plan.columns, tuple(catalog.defaults(name).items()), catalog.constraints(name))

    def command_show_tables(self, command: Command) -> Statement:
        return statements.ShowTables()

    def command_listing(self, command: Command) -> Statement:
        """SHOW and PRAGMA that print a listing of the catalog."""
        name, span = command.parts["name"], command.spans.get("name")
        schema = command.parts.get("schema")
        if schema is None:
            plan = QueryBinder(self.context).listing(name, command.parts["arguments"], span)
        elif schema.lower() != "main" and not self.context.catalog.has_schema(schema):
            raise BindError(f"schema not found: {schema}", span=span)
        else:
            plan = QueryBinder(self.context).scan(self.context.catalog.listing(name, [schema]))
        assert plan is not None, "the parser knows the listings"
        return statements.Query(plan)

    def command_set(self, command: Command) -> Statement:
        return statements.Set(command.parts["name"], command.parts["value"])

    def command_reset(self, command: Command) -> Statement:
        return statements.Reset(command.parts["name"])

    def command_begin(self, command: Command) -> Statement:
        return statements.Begin(command.parts.get("read_only", False))

    def command_commit(self, command: Command) -> Statement:
        return statements.Commit()

    def command_rollback(self, command: Command) -> Statement:
        return statements.Rollback()

    def command_copy_from(self, command: Command) -> Statement:
        layout = self.table(command.parts["table"], command.spans["table"])
        ordinals = None
        if "columns" in command.parts:
            ordinals = self.ordinals(layout, command.parts["columns"])
            given = {layout.columns[ordinal][0].lower() for ordinal in ordinals}
            if set(self.context.catalog.defaults(layout.name)) - given:
                span = command.spans["table"]
                raise NotSupportedError("COPY that leaves out columns with a DEFAULT is not supported", span=span)
        options = dict(command.parts["options"])
        format_ = self.file_format(options.pop("format", "auto"), command)
        return statements.CopyFrom(layout.name, ordinals, tuple(command.parts["paths"]), format_, options)

    def command_copy_to(self, command: Command) -> Statement:
        if "table" in command.parts:
            plan = self.rows_of(command)
            if "columns" in command.parts:
                ordinals = self.ordinals(plan, command.parts["columns"])
                columns = tuple(plan.columns[ordinal] for ordinal in ordinals)
                picked = tuple(
                    Column(type_, ordinal, name) for ordinal, (name, type_) in zip(ordinals, columns, strict=True)
                )
                plan = Project(columns, plan, picked)
        else:
            inner = self.bind(command.parts["statement"])
            if not isinstance(inner, statements.Query):
                raise NotSupportedError("COPY of this statement is not supported")
            plan = inner.plan
        paths = command.parts["paths"]
        if len(paths) != 1:
            raise BindError("COPY TO wants one file", span=command.spans.get("paths"))
        options = dict(command.parts["options"])
        ending = paths[0].rsplit(".", 1)[-1].lower()
        format_ = self.file_format(options.pop("format", _FORMATS.get(ending, "csv")), command)
        return statements.CopyTo(plan, paths[0], format_, options)

    def file_format(self, name: Any, command: Command) -> str:
        found = "auto" if str(name).lower() == "auto" else _FORMATS.get(str(name).lower())
        if found is None:
            raise NotSupportedError(f"file format is not supported: {name}", hint="there are: csv, parquet, arrow")
        return found


def with_real_types(context: Context, plan: Node) -> Node:
    """A column of bare NULLs becomes INTEGER: tables have no NULL type."""
    for name, type_ in plan.columns:
        if type_.child is not None:
            raise NotSupportedError(f"columns of type {type_} are not supported: {name}", hint="UNNEST makes rows")
    if all(type_.kind != "NULL" for _, type_ in plan.columns):
        return plan
    columns = tuple((name, INTEGER if type_.kind == "NULL" else type_) for name, type_ in plan.columns)
    expressions = tuple(
        cast(context, Column(old, index, name), new)
        for index, ((name, old), (_, new)) in enumerate(zip(plan.columns, columns, strict=True))
    )
    return Project(columns, plan, expressions)
