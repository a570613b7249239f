"""Logical plans as indented text: stable, so that golden files can be compared."""

from __future__ import annotations

from gpudb.planner.expressions import (
    AggregateCall,
    And,
    Call,
    Case,
    Cast,
    Coalesce,
    Column,
    Comparison,
    Expression,
    InList,
    IsNull,
    Literal,
    Not,
    Or,
    WindowCall,
)
from gpudb.planner.logical import (
    HIDDEN,
    Aggregate,
    Filter,
    Given,
    Join,
    JoinedTexts,
    Kept,
    Limit,
    Node,
    Numbered,
    Picked,
    Project,
    Recursive,
    Scan,
    Series,
    SetOperation,
    Sort,
    SortKey,
    UnionAll,
    Unnested,
    Values,
    Window,
)


def logical_lines(plan: Node) -> list[str]:
    """One line a node, inputs indented below it."""
    lines: list[str] = []

    def walk(node: Node, depth: int) -> None:
        lines.append("  " * depth + _node(node))
        for below in node.inputs():
            walk(below, depth + 1)

    walk(plan, 0)
    return lines


def _node(node: Node) -> str:
    match node:
        case Scan(table=table, predicate=predicate):
            names = ", ".join(name.removeprefix(HIDDEN) for name, _ in node.columns)
            return f"Scan {table} [{names}]" + (f" where {text(predicate)}" if predicate is not None else "")
        case Values(rows=rows):
            return f"Values {len(rows)} row(s)"
        case Series(start=start, step=step, count=count):
            return f"Series of {count} from {start} by {step}"
        case Filter(predicate=predicate):
            return f"Filter {text(predicate)}"
        case Project(expressions=expressions):
            return f"Project {', '.join(map(text, expressions))}"
        case Aggregate(keys=keys, aggregates=aggregates):
            return f"Aggregate [{', '.join(map(text, keys))}] {', '.join(map(text, aggregates))}".rstrip()
        case Join(kind=kind, keys=join_keys, residual=residual):
            names = ", ".join(name.removeprefix(HIDDEN) for name, _ in node.columns)
            terms = [
                f"{text(a)} {'is_not_distinct' if null_equal else '='} {text(b)}" for a, b, null_equal in join_keys
            ]
            if residual is not None:
                terms.append(text(residual))
            return f"Join {kind} [{names}]" + (f" on {' and '.join(terms)}" if terms else "")
        case Sort(keys=keys):
            return f"Sort {', '.join(map(_order, keys))}"
        case Window(keys=keys, order=order, calls=calls):
            by = f" by {', '.join(map(text, keys))}" if keys else ""
            along = f" order {', '.join(map(_order, order))}" if order else ""
            return f"Window {', '.join(map(text, calls))}{by}{along}"
        case JoinedTexts(picked=picked, separator=separator):
            return f"JoinedTexts {node.right.columns[picked][0]} with {text(separator)}"
        case Picked(picked=picked, expressions=expressions):
            return f"Picked {node.right.columns[picked][0]} of rows {', '.join(map(text, expressions))}"
        case Limit(count=count, offset=offset, percent=percent):
            shown = (text(count) if count else "all") + (" percent" if percent else "")
            return f"Limit {shown}" + (f" offset {text(offset)}" if offset else "")
        case Kept():
            return "Kept: made once"
        case Numbered():
            return "Numbered"
        case Unnested(times=times):
            return f"Unnested: each row {text(times)} times"
        case UnionAll(branches=branches):
            return f"UnionAll of {len(branches)}"
        case Recursive(distinct=is_distinct):
            return "Recursive" + ("" if is_distinct else " all")
        case Given(whole=whole):
            return "Given: all rows so far" if whole else "Given: the new rows"
        case SetOperation(kind=kind, all=all_):
            return kind.capitalize() + (" all" if all_ else "")
    return type(node).__name__


def _order(key: SortKey) -> str:
    return text(key.expression) + (" desc" if key.descending else "") + (" nulls first" if key.nulls_first else "")


_ENDS = ("unbounded preceding", "{} preceding", "current row", "{} following", "unbounded following")


def _frame(call: WindowCall) -> str:
    frame = call.frame
    ends = [
        _ENDS[side].format("" if offset is None else text(offset))
        for side, offset in ((frame.start, call.start), (frame.end, call.end))
    ]
    return f"{frame.unit} {ends[0]} to {ends[1]}" + ("" if frame.exclude == "none" else f" without {frame.exclude}")


def text(expression: Expression) -> str:
    """An expression in SQL-like words; columns by name and number."""
    match expression:
        case Literal(value=value):
            if value is None:
                return "NULL"
            return f"'{value}'" if isinstance(value, str) else f"{value}::{expression.type}"
        case Column(index=index, name=name):
            return f"{name.removeprefix(HIDDEN)}#{index}"
        case Call(name=name, arguments=arguments):
            return f"{name}({', '.join(map(text, arguments))})"
        case Comparison(operator=operator, left=left, right=right):
            return f"{text(left)} {operator} {text(right)}"
        case And(arguments=arguments):
            return "(" + " and ".join(map(text, arguments)) + ")"
        case Or(arguments=arguments):
            return "(" + " or ".join(map(text, arguments)) + ")"
        case Not(argument=argument):
            return f"not {text(argument)}"
        case IsNull(argument=argument):
            return f"{text(argument)} is null"
        case InList(argument=argument, items=items):
            return f"{text(argument)} in ({', '.join(map(text, items))})"
        case Case(conditions=conditions, results=results, otherwise=otherwise):
            arms = " ".join(f"when {text(c)} then {text(r)}" for c, r in zip(conditions, results, strict=True))
            return f"case {arms} else {text(otherwise)} end"
        case Coalesce(arguments=arguments):
            return f"coalesce({', '.join(map(text, arguments))})"
        case Cast(argument=argument, try_=try_):
            return f"{'try_' if try_ else ''}cast({text(argument)} as {expression.type})"
        case AggregateCall(name=name, arguments=arguments, distinct=distinct, filter=condition):
            inner = ("distinct " if distinct else "") + ", ".join(map(text, arguments))
            return f"{name}({inner})" + (f" filter {text(condition)}" if condition is not None else "")
        case WindowCall(name=name, arguments=arguments, distinct=distinct, filter=condition):
            inner = ("distinct " if distinct else "") + ", ".join(map(text, arguments))
            nulls = " ignore nulls" if expression.ignore_nulls else ""
            where = f" filter {text(condition)}" if condition is not None else ""
            return f"{name}({inner}{nulls}){where} over {_frame(expression)}"
    return type(expression).__name__
