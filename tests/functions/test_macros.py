"""Functions that are SQL in terms of others: their expansion, run in DuckDB, gives what DuckDB's own function gives.

What DuckDB does not have of the expansion is expanded further, down to our NumPy bodies, which DuckDB calls as its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

import gpudb.functions as library
from gpudb.functions.registry import FUNCTIONS, Function, Overload, parse_type
from gpudb.types import Interval, SqlType
from tests.functions import oracle
from tests.functions.oracle import among
from tests.functions.test_functions import GENERATORS, OURS, PARTS, template

KNOWN = {
    "abs", "sign", "day", "microsecond", "bit_count", "epoch_us", "epoch_ms", "last_day", "strftime", "length",
    "substring", "coalesce",
    "isinf", "floor", "add", "dayname", "monthname", "log10", "like_escape", "ilike_escape",
}  # fmt: skip
"""Functions that DuckDB runs itself in an expansion; they are compared with ours elsewhere."""


def typed_macros() -> Iterator[Overload]:
    for function in {id(f): f for f in FUNCTIONS.values()}.values():
        yield from (
            o
            for o in function.overloads
            if o.kind == "macro" and not {"TIMESTAMPTZ", "SPAN", "BLOB", "UUID"} & {*o.arguments, o.result.kind}
        )


def kind_of(node: exp.Expression, kinds: dict[str, str]) -> str:
    """SQL type of an argument in an expansion: a parameter, a cast, a literal, or a call."""
    if isinstance(node, exp.Paren):
        return kind_of(node.this, kinds)
    if isinstance(node, exp.Column):
        return kinds[node.name]
    if isinstance(node, exp.Cast):
        return node.to.sql("duckdb").replace("FLOAT", "REAL").replace("INT", "INTEGER").replace("BIGINTEGER", "BIGINT")
    if isinstance(node, exp.DPipe):
        return "VARCHAR"
    if isinstance(node, exp.Literal):
        return "VARCHAR" if node.is_string else "INTEGER"
    name = call_name(node)
    assert name, f"type of {node.sql()}"
    found = library.resolve(name, [SqlType(kind_of(argument, kinds)) for argument in arguments_of(node)])
    assert found is not None, node.sql()
    return found.result.kind


def call_name(node: exp.Expression) -> str:
    """The name of a function that the registry has, as it was written; empty for anything else."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    if isinstance(node, exp.Func) and not isinstance(node, (exp.Cast, exp.Case, exp.If, exp.Coalesce, exp.And, exp.Or)):
        return node.sql("duckdb").split("(")[0].lower()
    return ""


def arguments_of(node: exp.Expression) -> list[exp.Expression]:
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    return [a for a in node.args.values() if isinstance(a, exp.Expression)] + list(node.args.get("expressions") or [])


def expand(sql: str | exp.Expression, kinds: dict[str, str]) -> exp.Expression:
    """Replace calls that DuckDB does not have by their own expansion or by a function made of the body."""
    tree = sqlglot.parse_one(sql, read="duckdb") if isinstance(sql, str) else sql.copy()

    def replace(node: exp.Expression) -> exp.Expression:
        name = call_name(node)
        if not name or name in KNOWN or not (name.startswith((*PARTS, *OURS)) or name in FUNCTIONS):
            return node
        parts = arguments_of(node)
        found = library.resolve(name, [SqlType(kind_of(part, kinds)) for part in parts])
        if found is None:
            return node
        parts = [expand(part, kinds) for part in parts]
        if found.kind == "macro":
            inner = expand(found.sql, dict(zip(found.parameters, found.arguments, strict=True)))
            values = dict(zip(found.parameters, parts, strict=True))
            return exp.paren(
                inner.transform(
                    lambda n: values[n.name].copy() if isinstance(n, exp.Column) and n.name in values else n
                )
            )
        return exp.Anonymous(this=as_duckdb_function(found), expressions=parts)

    return tree.transform(replace)


REGISTERED: dict[str, Overload] = {}


def as_duckdb_function(overload: Overload) -> str:
    """Our body as a function of DuckDB; a failing row is NULL, as TRY gives."""
    name = f"gpudb_{overload.name}_{'_'.join(overload.arguments)}".lower()
    if name not in REGISTERED:

        def call_all(arguments: tuple[pa.ChunkedArray, ...]) -> pa.Array:
            columns = []
            for kind, argument in zip(overload.arguments, arguments, strict=True):
                values = argument.to_pylist() if kind == "INTERVAL" else oracle.python_values(argument, kind)
                if kind == "INTERVAL":
                    first = values[0]
                    columns.append(Interval(first.months, first.days, first.nanoseconds // 1000))
                else:
                    columns.append(values)
            found = [None if v is oracle.FAILED else v for v in oracle.evaluate(overload, columns)]
            return oracle.arrow_column(overload.result.kind, found)

        calls = {
            1: lambda a: call_all((a,)),
            2: lambda a, b: call_all((a, b)),
            3: lambda a, b, c: call_all((a, b, c)),
        }
        call = calls[len(overload.arguments)]
        types = [oracle.sql_type(kind) for kind in overload.arguments]
        oracle.connection().create_function(
            name, call, types, oracle.sql_type(overload.result.kind), type="arrow", null_handling="special"
        )
        REGISTERED[name] = overload
    return name


@pytest.mark.parametrize("overload", list(typed_macros()), ids=lambda o: f"{o.name}({', '.join(o.arguments)})")
def test_typed_macro_expands_to_what_duckdb_computes(overload: Overload) -> None:
    expanded = expand(overload.sql, dict(zip(overload.parameters, overload.arguments, strict=True)))
    places = {name: f"{{{k}}}" for k, name in enumerate(overload.parameters)}
    ours = expanded.transform(
        lambda n: (
            exp.column(f"place{list(places).index(n.name)}") if isinstance(n, exp.Column) and n.name in places else n
        )
    ).sql("duckdb")
    for k in range(len(places)):
        ours = ours.replace(f"place{k}", f"{{{k}}}")
    if overload.name == "strftime":
        ours, overload_columns = ours.replace("{0}", "'%d.%m.%y %H:%M'"), {0: among("%d.%m.%y %H:%M")}
    else:
        overload_columns = GENERATORS.get(overload.name, {})
    for interval in oracle.INTERVALS[1:8] if "INTERVAL" in overload.arguments else [None]:
        columns = oracle.random_columns(overload, overload_columns, seed=3, rows=300)
        if overload.name == "strftime":
            columns[0] = "%d.%m.%y %H:%M"
        columns = [interval if kind == "INTERVAL" else c for c, kind in zip(columns, overload.arguments, strict=True)]
        result = overload.result.kind
        ours_values = oracle.duckdb_values(f"CAST({ours} AS {oracle.sql_type(result)})", overload, columns, result)
        theirs = oracle.duckdb_values(template(overload, len(columns)), overload, columns, result)
        for row, (a, b) in enumerate(zip(ours_values, theirs, strict=True)):
            shown = [c[row] if isinstance(c, list) else c for c in columns]
            assert oracle.same(a, b, relative=1e-12), f"{overload.name}{shown}: {a!r}, DuckDB {b!r}; {ours}"


MACRO_ARGUMENTS = {
    "concat": ("a, b, c", "VARCHAR INTEGER VARCHAR"),
    "concat_ws": ("',', a, b, c", "VARCHAR VARCHAR VARCHAR"),
    "if": ("a > 0, b, c", "INTEGER INTEGER INTEGER"),
    "ifnull": ("a, b", "INTEGER INTEGER"),
    "nullif": ("a, b", "BOOLEAN BOOLEAN"),
    "constant_or_null": ("5, b", "INTEGER INTEGER"),
    "fdiv": ("a, b", "INTEGER INTEGER"),
    "add": ("a, b", "DOUBLE DOUBLE"),
    "subtract": ("a, b", "DOUBLE DOUBLE"),
    "multiply": ("a, b", "DOUBLE DOUBLE"),
    "divide": ("a, b", "DOUBLE DOUBLE"),
    "mod": ("a, b", "DOUBLE DOUBLE"),
    "pi": ("", "INTEGER"),
    "nanosecond": ("a", "TIMESTAMP"),
    "epoch_ns": ("a", "TIMESTAMP"),
    "days_in_month": ("a", "DATE"),
    "date_add": ("a, INTERVAL 1 MONTH", "DATE"),
    "not_like_escape": ("a, 'a%', '$'", "VARCHAR"),
    "not_ilike_escape": ("a, 'a%', '$'", "VARCHAR"),
    "date_part_timezone": ("a", "TIMESTAMP"),
    "date_part_timezone_hour": ("a", "TIMESTAMP"),
    "date_part_timezone_minute": ("a", "TIMESTAMP"),
}
"""How each untyped macro is called in the test: arguments, and the types of the columns a, b, c."""


def untyped_macros() -> list[Function]:
    return [f for name, f in FUNCTIONS.items() if name == f.name and f.macro is not None]


@pytest.mark.parametrize("function", untyped_macros(), ids=lambda f: f.name)
def test_macro_expands_to_what_duckdb_computes(function: Function) -> None:
    call, kinds = MACRO_ARGUMENTS[function.name]
    given = [part.strip() for part in call.split(", ")] if call else []
    expansion = function.expansion(len(given))
    assert expansion is not None
    parameters, sql = expansion
    values = dict(zip(parameters, given, strict=True))
    columns = {}
    for name, kind in zip("abc", kinds.split(), strict=False):
        made = oracle.random_columns(Overload(name, "text", (kind,), parse_type(kind)), {}, seed=4)
        columns[name] = oracle.arrow_column(kind, made[0])
    tree = sqlglot.parse_one(sql, read="duckdb").transform(
        lambda n: (
            sqlglot.parse_one(values[n.name], read="duckdb") if isinstance(n, exp.Column) and n.name in values else n
        )
    )
    ours = expand(tree.sql("duckdb"), dict(zip("abc", kinds.split(), strict=False))).sql("duckdb")
    con = oracle.connection()
    con.register("arguments", pa.table(columns))
    theirs = f"{function.name}({call})".replace("date_part_timezone", "timezone")
    found = con.sql(f"SELECT TRY({ours}) AS ours, TRY({theirs}) AS theirs FROM arguments").fetchall()
    assert all(a == b or a != a for a, b in found), next((a, b) for a, b in found if a != b)


def test_the_expansion_of_a_variadic_macro_names_as_many_parameters_as_arguments() -> None:
    assert FUNCTIONS["concat"].expansion(0) is not None or FUNCTIONS["concat"].parameters == ("argument0",)
    parameters, sql = FUNCTIONS["concat_ws"].expansion(3) or ((), "")
    assert parameters == ("separator", "argument1", "argument2")
    assert all(name in sql for name in parameters)
    assert FUNCTIONS["ifnull"].expansion(3) is None
