"""NOT NULL, CHECK, UNIQUE and PRIMARY KEY, read from CREATE TABLE and ALTER TABLE."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlglot import exp

from gpudb.catalog import Constraint, Constraints, name_in_schema
from gpudb.errors import BindError, CatalogError, NotSupportedError
from gpudb.planner.bind.casts import cast, castable
from gpudb.planner.bind.context import Context, not_found, span_of
from gpudb.planner.bind.expressions import ExpressionBinder, contains_aggregate
from gpudb.planner.bind.names import column_name, quoted
from gpudb.planner.bind.scope import Scope
from gpudb.planner.expressions import WindowCall
from gpudb.planner.parse import parse
from gpudb.planner.tokens import plain
from gpudb.types import BOOLEAN, SqlType

Columns = tuple[tuple[str, SqlType], ...]


class ConstraintReader:
    """Collects the constraints of one table, in the order in which they are written.

    name     of the table in the catalog
    columns  of the table, in order; a CHECK may name those behind it
    """

    def __init__(self, context: Context, name: str, columns: Columns) -> None:
        self.context = context
        self.name = name
        self.columns = columns
        self.items: list[Constraint] = []

    def finished(self) -> Constraints:
        """All of them; of a primary key's columns NOT NULL, too."""
        items = list(self.items)
        known = {one.columns[0].lower() for one in items if one.kind == "NOT NULL"}
        primary = next((one.columns for one in items if one.kind == "PRIMARY KEY"), ())
        items += [Constraint("NOT NULL", (name,)) for name in primary if name.lower() not in known]
        return Constraints(self.name, tuple(items))

    def of_column(self, definition: Any, name: str) -> None:
        """What stands behind a column's type; DEFAULT is read elsewhere."""
        required = False
        label = None
        for constraint in definition.args.get("constraints") or ():
            kind = constraint.args["kind"]
            given = plain(constraint.this.name) if constraint.args.get("this") is not None else None
            match kind.key:
                case "notnullcolumnconstraint":
                    if not kind.args.get("allow_null"):
                        required, label = True, given
                case "primarykeycolumnconstraint":
                    self.add_key(Constraint("PRIMARY KEY", (name,), None, given, True), span_of(definition))
                case "uniquecolumnconstraint":
                    self.add_key(Constraint("UNIQUE", (name,), None, given, True), span_of(definition))
                case "checkcolumnconstraint":
                    self.check(kind.this, given)
                case "defaultcolumnconstraint":
                    pass
                case _:
                    self.refuse(kind, definition)
        if required:
            self.items.append(Constraint("NOT NULL", (name,), None, label))

    def of_table(self, tree: Any, label: str | None = None) -> None:
        """What stands between columns: PRIMARY KEY (a, b), UNIQUE (a), CHECK (a < b), each perhaps with a name."""
        match tree.key:
            case "constraint":
                for inner in tree.expressions:
                    self.of_table(inner, plain(tree.this.name))
            case "primarykey":
                self.key("PRIMARY KEY", tree.expressions, label, span_of(tree))
            case "uniquecolumnconstraint" if tree.args.get("this") is not None:
                self.key("UNIQUE", tree.this.expressions, label, span_of(tree))
            case "checkcolumnconstraint":
                self.check(tree.this, label)
            case _:
                self.refuse(tree, tree)

    def key(self, kind: str, names: list[Any], label: str | None, span: Any) -> None:
        known = {name.lower(): name for name, _ in self.columns}
        found: list[str] = []
        for node in names:
            name = known.get(plain(node.name).lower())
            if name is None:
                raise not_found("column", plain(node.name), list(known.values()), span_of(node) or span)
            if name in found:
                raise BindError(f"column is twice in the key: {name}", span=span_of(node) or span)
            found.append(name)
        self.add_key(Constraint(kind, tuple(found), None, label), span)

    def add_key(self, key: Constraint, span: Any) -> None:
        if key.kind == "PRIMARY KEY" and any(one.kind == key.kind for one in self.items):
            raise BindError(f"table has more than one PRIMARY KEY: {self.name}", span=span)
        self.items.append(key)

    def check(self, node: Any, label: str | None) -> None:
        """CHECK (condition), kept as SQL; BindError where it is none over the table's columns."""
        span = span_of(node)
        query = node.find(exp.Query)
        if query is not None:
            raise BindError("subqueries are not allowed in CHECK", span=span_of(query) or span)
        for column in node.find_all(exp.Column):
            relation = column.args.get("table")
            if relation is not None and plain(relation.name).lower() == name_in_schema(self.name).lower():
                column.set("table", None)
        condition = ExpressionBinder(self.context, self.scope(), clause="CHECK").bind(node)
        if contains_aggregate(condition) or any(isinstance(part, WindowCall) for part in condition.walk()):
            raise BindError("aggregate and window functions are not allowed in CHECK", span=span)
        if not castable(condition.type, BOOLEAN):
            raise BindError(f"CHECK wants a condition, not {condition.type}", span=span)
        cast(self.context, condition, BOOLEAN)
        used = names_in(node)
        columns = tuple(name for name, _ in self.columns if name.lower() in used)
        sql = quoted(node.name) if node.key == "column" else str(column_name(node, self.context.parsed))
        self.items.append(Constraint("CHECK", columns, sql, label))

    def scope(self) -> Scope:
        """What a CHECK sees: the columns."""
        return Scope(name_in_schema(self.name), self.columns)

    def refuse(self, kind: Any, definition: Any) -> None:
        what = {
            "reference": "FOREIGN KEY (REFERENCES)",
            "foreignkey": "FOREIGN KEY",
            "computedcolumnconstraint": "a generated column",
            "generatedasidentitycolumnconstraint": "a generated column",
            "collatecolumnconstraint": "COLLATE",
        }.get(kind.key, kind.key)
        raise NotSupportedError(f"{what} is not supported", span=span_of(kind) or span_of(definition))


def written(constraint: Constraint) -> str:
    """A constraint as CREATE TABLE says it, without its name."""
    if constraint.is_key:
        return f"{constraint.kind}({', '.join(map(quoted, constraint.columns))})"
    return "NOT NULL" if constraint.kind == "NOT NULL" else f"CHECK({constraint.sql})"


def names_in(node: Any) -> set[str]:
    """Lower-case names of the columns in an expression."""
    return {plain(column.name).lower() for column in node.find_all(exp.Column)}


def without_column(constraints: Constraints, column: str, span: Any) -> Constraints:
    """What is left when a column is dropped: its NOT NULL goes, and CHECKs of it alone; CatalogError for the others."""
    kept = []
    for one in constraints.items:
        names = [name.lower() for name in one.columns]
        if column.lower() not in names:
            kept.append(one)
        elif one.is_key or len(names) > 1:
            raise CatalogError(f"column cannot be dropped, a {one.kind} constraint is about it: {column}", span=span)
    return Constraints(constraints.name, tuple(kept))


def with_name_of_column(constraints: Constraints, old: str, new: str) -> Constraints:
    """The same constraints after a column got another name."""
    items = []
    for one in constraints.items:
        columns = tuple(new if name.lower() == old.lower() else name for name in one.columns)
        sql = one.sql if one.sql is None or columns == one.columns else renamed(one.sql, old, new)
        items.append(replace(one, columns=columns, sql=sql))
    return Constraints(constraints.name, tuple(items))


def renamed(sql: str, old: str, new: str) -> str:
    """A condition's SQL with another name for a column."""
    head = "SELECT "
    places = []
    for column in parse(head + sql).tree.find_all(exp.Column):
        if plain(column.name).lower() == old.lower():
            span = span_of(column)
            assert span is not None, "names know their places"
            places.append((span[0] - len(head), span[1] - len(head)))
    for start, end in sorted(places, reverse=True):
        sql = sql[:start] + quoted(new) + sql[end:]
    return sql
