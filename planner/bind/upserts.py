"""INSERT ... ON CONFLICT and INSERT OR REPLACE | IGNORE: which of the proposed rows are added, and what others change.

The proposed rows are a relation of the statement, with their numbers.  Of several with one key the first counts, as in DuckDB;
then those whose key the table has are left out, or change the table's row as an UPDATE ... FROM the proposed rows would.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from gpudb.catalog import Constraint, View
from gpudb.errors import BindError, NotSupportedError, ParseError
from gpudb.planner import statements
from gpudb.planner.bind import changes
from gpudb.planner.bind.context import Context, not_found, span_of
from gpudb.planner.bind.names import quoted
from gpudb.planner.bind.views import own_plan
from gpudb.planner.logical import HIDDEN, Node
from gpudb.planner.parse import parse
from gpudb.planner.tokens import plain

NUMBER = f"{HIDDEN}number"


def bind_upsert(
    context: Context, tree: Any, layout: Any, ordinals: tuple[int, ...], plan: Node, returning: Node | None
) -> statements.Upsert:
    """The statement for an INSERT with one of these clauses.

    ordinals  the columns that the statement gives
    plan      the rows that it proposes, with all columns of the table
    """
    conflict, alternative = tree.args.get("conflict"), str(tree.args.get("alternative") or "").upper()
    if conflict is not None and alternative:
        raise ParseError(f"INSERT OR {alternative} and ON CONFLICT exclude each other", span=span_of(tree.this))
    if alternative not in ("", "REPLACE", "IGNORE"):
        raise NotSupportedError(f"INSERT OR {alternative} is not supported", span=span_of(tree.this))
    action = "DO UPDATE" if alternative == "REPLACE" else "DO NOTHING"
    if conflict is not None:
        if conflict.args.get("constraint") or conflict.args.get("duplicate"):
            raise NotSupportedError("ON CONFLICT ON CONSTRAINT is not supported", span=span_of(tree.this))
        if conflict.args.get("index_predicate"):
            raise NotSupportedError("ON CONFLICT (columns) WHERE is not supported", span=span_of(tree.this))
        action = str(conflict.args["action"].name).upper()
    keys = _keys(context, conflict, layout, action, span_of(tree.this))
    proposed = context.catalog.proposed_rows(layout)
    distinct = _distinct(proposed, layout, keys)
    added = own_plan(context, View(NUMBER, (), _unmatched(layout, keys, distinct)))
    if action == "DO NOTHING":
        return statements.Upsert(layout.name, plan, added, None, returning)
    (key,) = keys
    update = _update(tree, conflict, layout, key, [layout.columns[k][0] for k in ordinals], distinct)
    changed = changes.bind_update(context, update, layout, (NUMBER,), returning is not None)
    return statements.Upsert(layout.name, plan, added, changed, returning)


def _keys(context: Context, conflict: Any, layout: Any, action: str, span: Any) -> tuple[Constraint, ...]:
    """The keys that are meant: of DO UPDATE one."""
    keys = context.catalog.constraints(layout.name).keys
    named = conflict.args.get("conflict_keys") if conflict is not None else None
    if named:
        known = {name.lower() for name, _ in layout.columns}
        wanted: set[str] = set()
        for node in named:
            column = node.this if node.key == "ordered" else node
            if column.key not in ("column", "identifier"):
                raise NotSupportedError("ON CONFLICT wants names of columns", span=span_of(node) or span)
            if plain(column.name).lower() not in known:
                raise not_found(
                    "column", plain(column.name), [name for name, _ in layout.columns], span_of(node) or span
                )
            wanted.add(plain(column.name).lower())
        keys = tuple(key for key in keys if {name.lower() for name in key.columns} == wanted)[:1]
        if not keys:
            raise BindError(
                "ON CONFLICT wants the columns of a PRIMARY KEY or UNIQUE constraint", span=span_of(named[0]) or span
            )
    if not keys:
        raise BindError(f"the table has no PRIMARY KEY and no UNIQUE constraint: {layout.name}", span=span)
    if action == "DO UPDATE" and len(keys) > 1:
        raise BindError("the table has several keys, ON CONFLICT DO UPDATE wants the columns of one", span=span)
    return keys


def _hidden(name: str) -> str:
    """A column of the proposed rows, quoted: it has a name of its own, so that plain names mean the table's columns."""
    return '"' + (HIDDEN + name).replace('"', '""') + '"'


def _distinct(proposed: Any, layout: Any, keys: tuple[Constraint, ...]) -> str:
    """The proposed rows, of several with one key the first."""
    every = ", ".join((*(_hidden(name) for name, _ in layout.columns), f'"{NUMBER}"'))
    sql = f'SELECT {every} FROM "{proposed.name}"'
    for key in keys:
        columns = [_hidden(_written(layout, name)) for name in key.columns]
        unknown = " OR ".join(f"{column} IS NULL" for column in columns)
        first = f'"{NUMBER}" = min("{NUMBER}") OVER (PARTITION BY {", ".join(columns)})'
        sql = f"SELECT {every} FROM ({sql}) QUALIFY {unknown} OR {first}"
    return sql


def _unmatched(layout: Any, keys: tuple[Constraint, ...], distinct: str) -> str:
    """The rows whose keys the table does not have, in their order: their numbers, and all columns."""
    every = ", ".join((f'"{NUMBER}"', *(_hidden(name) for name, _ in layout.columns)))
    table = changes.relation_of(layout.name)
    for key in keys:
        same = " AND ".join(f"p.{_hidden(_written(layout, name))} = t.{quoted(name)}" for name in key.columns)
        distinct = f"SELECT {every} FROM ({distinct}) AS p ANTI JOIN {table} AS t ON {same}"
    return distinct


def _written(layout: Any, name: str) -> str:
    """A column's name as the table has it."""
    return next(known for known, _ in layout.columns if known.lower() == name.lower())


def _update(tree: Any, conflict: Any, layout: Any, key: Constraint, given: list[str], distinct: str) -> Any:
    """The tree of an UPDATE of the table FROM the proposed rows that have its keys."""
    table = tree.this.this if tree.this.key == "schema" else tree.this
    excluded = exp.TableAlias(this=exp.to_identifier("excluded"))
    others = exp.Subquery(this=_placeless(distinct), alias=excluded)
    where: Any = None
    for name in key.columns:
        same = exp.EQ(this=changes.column_of(table, name), expression=_proposed(_written(layout, name)))
        where = same if where is None else exp.And(this=where, expression=same)
    if conflict is None:
        names = [name for name in given if name.lower() not in {one.lower() for one in key.columns}] or given[:1]
        sets = [
            exp.EQ(this=exp.column(exp.to_identifier(name, quoted=True)), expression=_proposed(name)) for name in names
        ]
    else:
        sets = conflict.expressions
        condition = conflict.args.get("where")
        for part in (*sets, condition) if condition is not None else sets:
            query = part.find(exp.Query)
            if query is not None:
                raise BindError("subqueries are not allowed in DO UPDATE", span=span_of(query) or span_of(part))
            _name_proposed(part, layout)
        if condition is not None:
            where = exp.And(this=where, expression=exp.Paren(this=condition.this))
    return exp.Update(this=table.copy(), expressions=sets, from_=exp.From(this=others), where=exp.Where(this=where))


def _placeless(sql: str) -> Any:
    """The tree of a query whose parts have no place in the statement's text."""
    tree = parse(sql).tree
    for part in tree.walk():
        part._meta = None
    return tree


def _proposed(name: str) -> Any:
    return exp.column(exp.to_identifier(HIDDEN + name, quoted=True), table=exp.to_identifier("excluded"))


def _name_proposed(node: Any, layout: Any) -> None:
    """Let `excluded.b` name the proposed rows' column."""
    for column in node.find_all(exp.Column):
        relation = column.args.get("table")
        if relation is None or plain(relation.name).lower() != "excluded":
            continue
        known = {name.lower(): name for name, _ in layout.columns}
        name = known.get(plain(column.name).lower())
        if name is None:
            raise not_found("column", plain(column.name), list(known.values()), span_of(column))
        column.this.set("this", HIDDEN + name)
        column.this.set("quoted", True)
