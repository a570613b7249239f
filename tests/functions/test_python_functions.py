"""Python functions in SQL: against DuckDB's create_function on the same data, and what they may not do."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import gpudb
from gpudb import errors
from gpudb.devices.lanes import LanesDevice
from gpudb.devices.reference import ReferenceDevice
from gpudb.functions.python import PythonFunction
from gpudb.program import FunctionSlot, Operand
from gpudb.record import replace
from tests.devices.fake_cupy import FakeGpu, fake_gpu
from tests.devices.variants import session_on, stored

numba = pytest.importorskip("numba", reason="the extra udf is not installed")

TILE = 1024
EPOCH = datetime.date(1970, 1, 1)
INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}
TYPES = ("BOOLEAN", *INTEGERS, "REAL", "DOUBLE", "DATE", "TIMESTAMP")


@cache
def compiled(
    name: str, function: Callable[..., Any], parameters: tuple[str, ...], result: str, nulls: str = "default"
) -> PythonFunction:
    """A function of these tests, compiled once."""
    with gpudb.connect() as connection:
        connection.create_function(name, function, parameters, result, nulls=nulls)  # type: ignore[arg-type]  # one of its two words
        return connection.session.functions[name]  # type: ignore[union-attr]  # a session here


def polynomial(x, y):
    return x * x + y


def reciprocal(x):
    return 1 // x


def of_all(a, b, c, d, e, f, g, h, i):
    """One number of an argument of each type; in DuckDB h is a date and i a time."""
    total = f * 2.0 - g
    if a:
        total += b + c * 2
    return total + d % 1000 + e % 100 + h % 10 + i % 7


def of_all_in_python(a, b, c, d, e, f, g, h, i):
    microseconds = (i - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
    return of_all(a, b, c, d, e, f, g, (h - EPOCH).days, microseconds)


def first_known(x, y):
    """As a function of NULLs: x, or else y, and NULL for 7."""
    if x is None:
        return y
    if x == 7:
        return None
    return x


def steps(n):
    """Of Collatz's sequence to 1; there is none from 0, which is what lies under NULL."""
    if n < 1:
        raise ValueError(n)
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


def rows_of_all(rows: int) -> pa.Table:
    """A column of each type, c0 .. c8, with NULLs and extremes."""
    random = np.random.default_rng(rows)
    columns: list[pa.Array] = []
    for kind in TYPES:
        values: np.ndarray
        if kind in INTEGERS:
            half = 1 << (INTEGERS[kind] - 1)
            values = random.integers(-half, half - 1, rows, endpoint=True).astype(f"int{INTEGERS[kind]}")
            values[: min(rows, 3)] = [-half, half - 1, 0][: min(rows, 3)]
        elif kind == "BOOLEAN":
            values = random.random(rows) < 0.5
        elif kind in ("REAL", "DOUBLE"):
            values = random.normal(0, 1e3, rows).astype(np.float32 if kind == "REAL" else np.float64)
            values[: min(rows, 2)] = [1e38, -0.0][: min(rows, 2)]
        else:
            unit, span = ("D", 80_000) if kind == "DATE" else ("us", 10**15)
            values = random.integers(-span // 4, span, rows).astype(f"datetime64[{unit}]")
        columns.append(pa.array(values, mask=random.random(rows) < 0.04))
    return pa.table(columns, [f"c{k}" for k in range(len(TYPES))])


@pytest.fixture
def con() -> Iterator[gpudb.Connection]:
    with gpudb.connect() as connection:
        yield connection


def use(connection: gpudb.Connection, *functions: PythonFunction) -> None:
    """The functions in a connection, without compiling them again."""
    connection.session.functions.update({one.name: one for one in functions})  # type: ignore[union-attr]


def assert_same_rows(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        same = [a == b or (a != a and b != b) for a, b in zip(one, other, strict=True)]
        assert all(same), f"{one} is not {other}"


@pytest.mark.parametrize("device", ["reference", "cpu"])
@pytest.mark.parametrize(
    "rows", [0, TILE, TILE + 1, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, TILE - 1, 3 * TILE + 5))]
)
def test_a_function_of_all_types_gives_what_duckdb_gives(rows: int, device: str, con: gpudb.Connection) -> None:
    table = rows_of_all(rows)
    duck = duckdb.connect()
    duck.register("t", table)
    duck.create_function("of_all", of_all_in_python, list(TYPES), "DOUBLE")
    duck.create_function("known", first_known, ["BIGINT", "BIGINT"], "BIGINT", null_handling="special")
    use(con, compiled("of_all", of_all, TYPES, "DOUBLE"))
    use(con, compiled("known", first_known, ("BIGINT", "BIGINT"), "BIGINT", "special"))
    con.execute(f"SET device = '{device}'")
    con.ingest("t", table, "create")
    call = f"of_all({', '.join(table.column_names)})"
    for sql in (
        f"SELECT {call}, c3 FROM t",
        f"SELECT c0, max({call}) FROM t WHERE c3 > 0 GROUP BY c0 ORDER BY c0",
        "SELECT known(c1 % 10, c2), known(NULL, c2), known(c2, NULL) FROM t",
        "SELECT known(c1 % 10, c2) AS k, count(*) FROM t WHERE c4 < 0 GROUP BY k ORDER BY k",
    ):
        cursor = con.execute(sql)
        assert_same_rows(cursor.fetchall(), duck.execute(sql).fetchall())
        receipt = cursor.receipt
        assert receipt["device"] == device and receipt["host_rows"] == 0
        assert set(receipt["python_functions"].values()) == {"compiled by numba, called once a tile"}


def test_many_lanes_call_it_row_by_row() -> None:
    table = rows_of_all(300).append_column("n", pa.array(range(300)))
    call = f"of_all({', '.join(table.column_names[:-1])})"
    sql = f"SELECT n, {call}, known(c1 % 10, c2) FROM t WHERE c3 > 0 OR c3 IS NULL"
    answers = []
    for device in (LanesDevice(2, 64), ReferenceDevice()):
        session = session_on(device, [stored(table, 1 << 16, [300])])
        for one in (
            compiled("of_all", of_all, TYPES, "DOUBLE"),
            compiled("known", first_known, ("BIGINT", "BIGINT"), "BIGINT", "special"),
        ):
            session.functions[one.name] = one
        answers.append(session.execute(sql).table())
    assert answers[0].equals(answers[1]) and 100 < answers[0].num_rows < 300


def same(x):
    return x


def halved(x):
    return x / 2


def above_ten(x):
    return x > 10


RESULTS: list[tuple[Callable[..., Any], str, str, list[Any]]] = [
    (same, "BIGINT", "TINYINT", [-128, 127, 128, -129, None]),
    (same, "BIGINT", "SMALLINT", [-(2**15), 2**15 - 1, 2**15]),
    (same, "BIGINT", "INTEGER", [-(2**31), 2**31 - 1, 2**31]),
    (same, "BIGINT", "DOUBLE", [2**53 + 1, -5]),
    (same, "BIGINT", "BOOLEAN", [0, 2, -1]),
    (halved, "BIGINT", "BIGINT", [5, 3, -5, 2**62]),  # half to even
    (halved, "DOUBLE", "TINYINT", [1e9, 254.9, 255.0, -257.0, -257.1]),
    (halved, "DOUBLE", "BIGINT", [2.0**64, -(2.0**64), math.inf]),
    (halved, "REAL", "REAL", [0.1, 3.0e38, math.inf]),
    (same, "DOUBLE", "REAL", [0.1, 1e39, -1e39]),
    (above_ten, "DOUBLE", "BOOLEAN", [10.0, 10.5, None]),
]
QUICK = (0, 6, 9)  # each is compiled, which takes half a second


@pytest.mark.parametrize(
    ("function", "parameter", "result", "values"),
    [
        pytest.param(*case, id=f"{case[0].__name__}_{case[1]}_{case[2]}", marks=[pytest.mark.slow] * (k not in QUICK))
        for k, case in enumerate(RESULTS)
    ],
)
def test_values_become_the_declared_type_as_in_duckdb(
    function: Callable[..., Any], parameter: str, result: str, values: list[Any], con: gpudb.Connection
) -> None:
    duck = duckdb.connect()
    duck.create_function("f", function, [parameter], result)
    con.session.functions["f"] = compiled("f", function, (parameter,), result)  # type: ignore[union-attr]
    for value in values:
        sql = f"SELECT f(x) FROM (VALUES (CAST(? AS {parameter}))) AS t(x)"
        try:
            expected = duck.execute(sql, [value]).fetchall()
        except duckdb.Error:
            with pytest.raises(
                errors.DataError, match=f"does not fit into {'FLOAT' if result == 'REAL' else result}: f"
            ):
                con.execute(sql, [value])
        else:
            assert_same_rows(con.execute(sql, [value]).fetchall(), expected)


def test_nan_stays_nan_and_is_no_integer(con: gpudb.Connection) -> None:
    """In DuckDB it becomes NULL: its functions cannot give NaN."""
    use(con, replace(compiled("f", same, ("DOUBLE",), "REAL"), name="single"))
    use(con, replace(compiled("f", halved, ("DOUBLE",), "BIGINT"), name="whole"))
    assert math.isnan(con.execute("SELECT single('nan'::DOUBLE)").fetchall()[0][0])
    with pytest.raises(errors.DataError, match="does not fit into BIGINT: whole"):
        con.execute("SELECT whole('nan'::DOUBLE)")


def test_dates_and_times_are_days_and_microseconds(con: gpudb.Connection) -> None:
    con.create_function("next_day", lambda day: day + 1, ["DATE"], "DATE")
    con.create_function("noon", lambda day: day * 86_400_000_000 + 43_200_000_000, ["DATE"], "TIMESTAMP")
    found = con.execute("SELECT next_day(DATE '1999-12-31'), noon(d) FROM (VALUES (DATE '1969-12-31')) AS t(d)")
    assert found.fetchall() == [(datetime.date(2000, 1, 1), datetime.datetime(1969, 12, 31, 12))]


def test_types_come_from_annotations(con: gpudb.Connection) -> None:
    def scaled(x: int, by: float, really: bool) -> float:
        return x * by if really else float(x)

    con.create_function("scaled", scaled)
    cursor = con.execute("SELECT scaled(3, 1.5, TRUE) AS a, scaled(3::TINYINT, 1.5, 1 > 2) AS b")
    assert cursor.fetchall() == [(4.5, 3.0)]
    with pytest.raises(
        errors.BindError, match="no form of scaled takes these arguments: \\(DOUBLE, BIGINT, BOOLEAN\\)"
    ):
        con.execute("SELECT scaled(1.5::DOUBLE, 2::BIGINT, TRUE)")
    with pytest.raises(errors.BindError, match="no type is known of a Python function: bare, x"):
        con.create_function("bare", lambda x: x)


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_it_is_called_for_rows_that_count_only(device: str, con: gpudb.Connection) -> None:
    use(con, compiled("steps", steps, ("BIGINT",), "BIGINT"), compiled("reciprocal", reciprocal, ("BIGINT",), "BIGINT"))
    con.execute(f"SET device = '{device}'")
    con.execute("CREATE TABLE t AS SELECT CASE WHEN i % 3 = 0 THEN NULL ELSE i % 5 END AS n FROM range(5000) r(i)")
    expected = [(steps(n),) for n in [None if i % 3 == 0 else i % 5 for i in range(5000)] if n]
    assert con.execute("SELECT steps(n) FROM t WHERE n > 0").fetchall() == expected
    assert con.execute("SELECT max(steps(n)) FROM t WHERE n > 0").fetchall() == [max(expected)]
    chosen = "SELECT count(*) FROM t WHERE CASE WHEN n <> 0 THEN reciprocal(n) ELSE -1 END = 1 AND n <> 0 AND reciprocal(n) = 1"
    assert con.execute(chosen).fetchall() == con.execute("SELECT count(*) FROM t WHERE n = 1").fetchall()
    assert con.execute("SELECT steps(NULL)").fetchall() == [(None,)]


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_an_exception_fails_the_statement_and_names_function_and_row(device: str, con: gpudb.Connection) -> None:
    use(con, compiled("reciprocal", reciprocal, ("BIGINT",), "BIGINT"), compiled("f", same, ("BIGINT",), "TINYINT"))
    con.execute(f"SET device = '{device}'")
    con.execute("CREATE TABLE t AS SELECT i - 4000 AS x FROM range(9000) r(i)")
    with pytest.raises(errors.DataError) as failure:
        con.execute("SELECT reciprocal(x) FROM t")
    assert str(failure.value) == (
        "a Python function raised an exception: reciprocal, row 4000 of table t, counted from 0\n"
        "  SELECT reciprocal(x) FROM t\n         ^^^^^^^^^^^^"
    )
    with pytest.raises(errors.DataError, match="raised an exception: reciprocal, row 4000 of table t"):
        con.execute("SELECT count(reciprocal(x)) FROM t")
    with pytest.raises(errors.DataError, match="does not fit into TINYINT: f, row 4128 of table t"):
        con.execute("SELECT sum(f(x)) FROM t WHERE x > 0")


def test_integers_of_64_bits_wrap(con: gpudb.Connection) -> None:
    use(con, compiled("polynomial", polynomial, ("BIGINT", "BIGINT"), "BIGINT"))
    assert con.execute("SELECT polynomial(?, 5)", [2**31 + 1]).fetchall() == [((2**31 + 1) ** 2 + 5,)]
    assert con.execute("SELECT polynomial(?, 5)", [2**32 + 1]).fetchall() == [(((2**32 + 1) ** 2 + 5) % 2**64,)]


def test_none_needs_nulls_to_be_special(con: gpudb.Connection) -> None:
    def sometimes(x: int) -> int:
        return None if x == 3 else x  # type: ignore[return-value]

    con.create_function("sometimes", sometimes)
    assert con.execute("SELECT sometimes(i) FROM range(3) t(i)").fetchall() == [(0,), (1,), (2,)]
    with pytest.raises(errors.DataError, match="gave None, which nulls='special' would allow: sometimes, row 3 of"):
        con.execute("SELECT sometimes(i) FROM range(5) t(i)")


def test_a_function_serves_in_every_clause_and_statement(con: gpudb.Connection) -> None:
    con.create_function("odd", lambda x: x % 2 == 1, ["BIGINT"], "BOOLEAN")
    con.create_function("seven", lambda: 7, [], "INTEGER")
    con.create_function("twice", lambda x: 2 * x, ["BIGINT"], "BIGINT")
    con.execute("CREATE TABLE t AS SELECT i, twice(i) AS double FROM range(6) r(i) WHERE odd(i) ORDER BY -twice(i)")
    assert con.execute("SELECT * FROM t").fetchall() == [(5, 10), (3, 6), (1, 2)]
    con.execute("UPDATE t SET double = twice(double) WHERE twice(i) = 6")
    con.execute("INSERT INTO t VALUES (twice(4), seven())")
    con.execute("CREATE VIEW v AS SELECT twice(i) AS i, CAST(twice(double) AS VARCHAR) AS text FROM t")
    assert con.execute("SELECT * FROM v ORDER BY twice(i) DESC").fetchall() == [
        *((16, "14"), (10, "20"), (6, "24"), (2, "4"))
    ]
    joined = "SELECT a.i, b.i FROM t a JOIN t b ON twice(a.i) = b.double + 2 * seven() - 14 ORDER BY 1"
    assert con.execute(joined).fetchall() == [(1, 1), (5, 5)]
    grouped = (
        "SELECT odd(i), sum(twice(i)), max(sum(i)) OVER () FROM t GROUP BY odd(i) HAVING sum(twice(i)) > 0 ORDER BY 1"
    )
    assert con.execute(grouped).fetchall() == [(False, 16, 9), (True, 18, 9)]
    assert con.execute("SELECT count(twice(i)) FROM t").fetchall() == [(4,)]
    assert con.execute("SELECT count(*), seven() FROM t WHERE i < seven() GROUP BY ALL").fetchall() == [(3, 7)]


def test_a_call_of_constants_is_made_once_and_follows_the_parameters(con: gpudb.Connection) -> None:
    use(con, compiled("reciprocal", reciprocal, ("BIGINT",), "BIGINT"))
    con.execute("CREATE TABLE t AS SELECT i FROM range(3) r(i)")
    sql = "SELECT i FROM t WHERE i = reciprocal(?)"
    assert [con.execute(sql, [x]).fetchall() for x in (1, 5, 1, None)] == [[(1,)], [(0,)], [(1,)], []]
    with pytest.raises(errors.DataError, match="raised an exception: reciprocal"):
        con.execute(sql, [0])


def test_a_replaced_function_is_never_run_by_an_old_plan(con: gpudb.Connection) -> None:
    sql = "SELECT g(i) FROM range(3) t(i)"
    con.create_function("g", lambda x: x + 1, ["BIGINT"], "BIGINT")
    assert con.execute(sql).fetchall() == con.execute(sql).fetchall() == [(1,), (2,), (3,)]
    assert con.execute(sql).receipt["plan_cached"]
    with pytest.raises(errors.CatalogError, match="there is a Python function of this name: G"):
        con.create_function("G", lambda x: x, ["BIGINT"], "BIGINT")
    con.create_function("G", lambda x: x + 0.5, ["BIGINT"], "DOUBLE", replace=True)
    assert con.execute(sql).fetchall() == [(0.5,), (1.5,), (2.5,)]
    con.remove_function("g")
    with pytest.raises(errors.BindError, match="function not found: g"):
        con.execute(sql)
    with pytest.raises(errors.CatalogError, match="there is no Python function of this name: g"):
        con.remove_function("g")


def test_functions_belong_to_their_connection() -> None:
    with gpudb.connect(":memory:python functions") as one, gpudb.connect(":memory:python functions") as other:
        use(one, compiled("reciprocal", reciprocal, ("BIGINT",), "BIGINT"))
        assert one.execute("SELECT reciprocal(1)").fetchall() == [(1,)]
        with pytest.raises(errors.BindError, match="function not found: reciprocal"):
            other.execute("SELECT reciprocal(1)")
        use(other, replace(compiled("f", same, ("BIGINT",), "TINYINT"), name="reciprocal"))
        assert other.execute("SELECT reciprocal(5)").fetchall() == [(5,)]
        assert one.execute("SELECT reciprocal(5)").fetchall() == [(0,)]


def test_with_side_effects_every_call_is_made(con: gpudb.Connection) -> None:
    def drawn() -> float:
        return np.random.random()

    con.create_function("drawn", drawn, side_effects=True)
    rows = con.execute("SELECT drawn(), drawn(), drawn() + 1 FROM range(2000)").fetchall()
    assert len({value for row in rows for value in row}) == 6000
    filtered = "SELECT min(r), max(r), count(*) FROM (SELECT drawn() AS r FROM range(4000)) WHERE r < 0.5"
    low, high, count = con.execute(filtered).fetchall()[0]
    assert 0 <= low < high < 0.5 and 1500 < count < 2500
    con.create_function("once", drawn, side_effects=False)
    assert con.execute("SELECT count(*) FROM range(2000) WHERE once() <> once()").fetchall() == [(0,)]


def test_no_function_of_sql_is_hidden(con: gpudb.Connection) -> None:
    for name in ("abs", "SUM", "coalesce", "row_number", "date_part", "ifnull", "version", "random", "median"):
        with pytest.raises(errors.CatalogError, match=f"which none can hide: {name}"):
            con.create_function(name, lambda x: x, ["BIGINT"], "BIGINT")
    with pytest.raises(errors.InterfaceError, match="not the name of a function"):
        con.create_function("my f", lambda x: x, ["BIGINT"], "BIGINT")


def uses_a_name_that_is_not_there(x: int) -> int:
    return x + nobody_knows(x)  # type: ignore[name-defined]  # noqa: F821


def test_what_numba_cannot_compile_is_refused_with_its_reason(con: gpudb.Connection) -> None:
    with pytest.raises(errors.NotSupportedError) as failure:
        con.create_function("f", uses_a_name_that_is_not_there)
    text = str(failure.value)
    assert text.startswith("numba cannot compile a Python function: f: ") and "'nobody_knows'" in text
    with pytest.raises(errors.NotSupportedError, match=r"f: .*len.*, in line \d+ of \S*test_python_functions.py$"):
        con.create_function("f", lambda x: len(x), ["BIGINT"], "BIGINT")
    with pytest.raises(errors.NotSupportedError, match="not a function written in Python: f"):
        con.create_function("f", min, ["BIGINT"], "BIGINT")
    with pytest.raises(errors.BindError, match="gives no number, but numba's unicode_type: f"):
        con.create_function("f", lambda x: str(x), ["BIGINT"], "BIGINT")
    with pytest.raises(errors.BindError, match="gives a bool, and not a BIGINT: f"):
        con.create_function("f", lambda x: x > 1, ["BIGINT"], "BIGINT")
    with pytest.raises(errors.BindError, match="gives a float, and not a DATE: f"):
        con.create_function("f", lambda x: x * 0.5, ["DATE"], "DATE")
    with pytest.raises(errors.BindError, match="another number of parameters than types are given: f"):
        con.create_function("f", lambda x: x, ["BIGINT", "BIGINT"], "BIGINT")
    with pytest.raises(errors.NotSupportedError, match="takes at most 14 arguments: f"):
        con.create_function("f", eval(f"lambda {', '.join(f'x{k}' for k in range(15))}: x0"), ["BIGINT"] * 15, "BIGINT")
    assert not con.session.functions  # type: ignore[union-attr]


@pytest.mark.parametrize("sql", ["VARCHAR", "HUGEINT", "DECIMAL(9,2)", "INTERVAL", "TIME", "TIMESTAMP WITH TIME ZONE"])
def test_other_types_are_refused_by_name(sql: str, con: gpudb.Connection) -> None:
    for parameters, result in (([sql], "BIGINT"), (["BIGINT"], sql)):
        with pytest.raises(errors.NotSupportedError) as failure:
            con.create_function("f", lambda x: x, parameters, result)
        assert sql in str(failure.value)


def test_without_numba_the_error_says_what_to_install(con: gpudb.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "numba", None)
    with pytest.raises(
        errors.NotSupportedError, match=r"want numba, which is not installed\nhint: pip install 'gpudb-engine\[udf\]'"
    ):
        con.create_function("f", lambda x: x, ["BIGINT"], "BIGINT")


def test_a_server_runs_no_python_function() -> None:
    from gpudb.client import RemoteSession

    with gpudb.connect() as connection:
        local = connection._session
        connection._session = RemoteSession.__new__(RemoteSession)
        try:
            with pytest.raises(errors.NotSupportedError, match="in this process only, not at a server: f"):
                connection.create_function("f", lambda x: x, ["BIGINT"], "BIGINT")
            with pytest.raises(errors.NotSupportedError, match="in this process only, not at a server: f"):
                connection.remove_function("f")
        finally:
            connection._session = local


@pytest.fixture
def gpu() -> Iterator[FakeGpu]:
    with fake_gpu() as made:
        yield made


def test_gpus_run_no_python_function_and_the_receipt_says_so(gpu: FakeGpu, con: gpudb.Connection) -> None:
    use(con, compiled("reciprocal", reciprocal, ("BIGINT",), "BIGINT"))
    con.execute("CREATE TABLE t AS SELECT i FROM range(1, 5) r(i)")
    why = "Python functions run on the CPU: reciprocal"
    for device, reason, fallback in (
        ("auto", f"auto: {why}", None),
        ("gpu", "SET device = 'gpu'", f"gpu: {why}"),
        ("cpu", "SET device = 'cpu'", None),
    ):
        con.execute(f"SET device = '{device}'")
        cursor = con.execute("SELECT sum(reciprocal(i)) FROM t")
        assert cursor.fetchall() == [(1,)]
        receipt = cursor.receipt
        assert (receipt["device"], receipt["reason"], receipt["fallback"]) == ("cpu", reason, fallback)
    con.execute("SET device = 'gpu!'")
    with pytest.raises(errors.DeviceError, match=f"no GPU can be used: {why}"):
        con.execute("SELECT sum(reciprocal(i)) FROM t")
    assert con.execute("SELECT sum(i) FROM t").receipt["device"] == "cuda"


def test_a_program_that_calls_with_other_arguments_is_refused(con: gpudb.Connection) -> None:
    use(con, compiled("reciprocal", reciprocal, ("BIGINT",), "BIGINT"))
    con.execute("CREATE TABLE t AS SELECT i FROM range(1, 5) r(i)")
    con.execute("SELECT reciprocal(i) FROM t")
    plans = [plan for kept in con.session.database.plans.values() for plan in kept]  # type: ignore[union-attr]
    program = next(plan.program for plan in plans if plan.program.functions)
    pipeline = program.steps[program.result]
    place = next(k for k, ins in enumerate(pipeline.instructions) if ins.variant.opcode.name == "Arguments")
    given = pipeline.instructions[place]
    for operands in (
        (Operand(3, 0), *given.operands[1:]),
        (Operand(0, 99, given.operands[0].type), *given.operands[1:]),
    ):
        changed = (
            *pipeline.instructions[:place],
            given._replace(operands=operands),
            *pipeline.instructions[place + 1 :],
        )
        with pytest.raises(errors.InternalError):
            replace(program, steps=(*program.steps[:-1], replace(pipeline, instructions=changed))).verify()
    other = FunctionSlot(compiled("polynomial", polynomial, ("BIGINT", "BIGINT"), "BIGINT"))
    slots = tuple(other if isinstance(slot, FunctionSlot) else slot for slot in pipeline.slots)
    with pytest.raises(errors.InternalError, match="a function's arguments are not those that it takes"):
        replace(program, steps=(*program.steps[:-1], replace(pipeline, slots=slots))).verify()
