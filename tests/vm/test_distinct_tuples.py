"""Text functions over the distinct tuples of their arguments: what is evaluated, what is not, and what it may cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gpudb
from gpudb.errors import DataError, InternalError, MemoryLimitError
from gpudb.functions import lookup
from gpudb.program import SLOT, GroupTableSlot, Instruction, Operand, Pipeline, Program
from gpudb.session import Session

ROWS = 100_000


@pytest.fixture(params=["cpu", "reference"])
def connection(request: Any) -> gpudb.Connection:
    made = gpudb.connect()
    made.execute(f"SET device = '{request.param}'")
    rows = np.arange(ROWS)
    made.register("t", pa.table({"id": rows, "big": (rows % 1000) * 10**12 + 7, "g": rows % 3, "far": rows * 10**10}))
    return made


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The arguments of every to_hex() that runs."""
    function = lookup("to_hex")
    assert function is not None
    seen: list[int] = []
    for overload in function.overloads:
        body = overload.body

        def counted(x: Any, *rest: Any, body: Any = body) -> Any:
            seen.extend(x.to_pylist())
            return body(x, *rest)

        monkeypatch.setitem(overload.__dict__, "body", counted)
    return seen


def test_a_function_runs_once_a_distinct_value_and_touches_no_row(
    connection: gpudb.Connection, evaluated: list[int]
) -> None:
    cursor = connection.execute("SELECT to_hex(big) AS h, count(*) FROM t GROUP BY h")
    assert len(cursor.fetchall()) == 1000
    assert evaluated == [row * 10**12 + 7 for row in range(1000)], "in order of first rows"
    assert cursor.receipt["host_rows"] == 0


def test_a_filter_below_leaves_less_to_evaluate(connection: gpudb.Connection, evaluated: list[int]) -> None:
    connection.execute("SELECT to_hex(far) FROM t WHERE id >= 40 AND id < 50 AND g = 1").fetchall()
    assert evaluated == [row * 10**10 for row in (40, 43, 46, 49)]


def test_a_branch_evaluates_its_own_rows(connection: gpudb.Connection, evaluated: list[int]) -> None:
    sql = "SELECT sum(length(CASE WHEN id < 3 THEN to_hex(far) WHEN id > 99997 THEN to_hex(far + 1) END)) FROM t"
    connection.execute(sql).fetchall()
    assert sorted(evaluated) == [0, 10**10, 2 * 10**10, 99998 * 10**10 + 1, 99999 * 10**10 + 1]


def test_the_same_function_twice_is_evaluated_once(connection: gpudb.Connection, evaluated: list[int]) -> None:
    sql = "SELECT to_hex(big), upper(to_hex(big)), length(to_hex(big)) FROM t WHERE id < 500 ORDER BY to_hex(big)"
    connection.execute(sql).fetchall()
    assert len(evaluated) == 500


def test_the_error_is_that_of_the_first_failing_row(connection: gpudb.Connection) -> None:
    sql = "SELECT chr(CASE WHEN id % 7919 = 7918 THEN -id ELSE id END::INTEGER) FROM t WHERE id > 60000"
    with pytest.raises(DataError, match=r"not a Unicode code point: -63351\n"):
        connection.execute(sql).fetchall()


def test_a_row_that_fails_a_check_before_is_not_evaluated(connection: gpudb.Connection, evaluated: list[int]) -> None:
    with pytest.raises(gpudb.Error, match="INTEGER"):
        connection.execute("SELECT to_hex(CAST(far AS INTEGER)) FROM t WHERE id < 3").fetchall()
    assert evaluated == [0], "only the first row's value fits"


def test_the_memory_ceiling_holds(connection: gpudb.Connection) -> None:
    sql = "SELECT max(repeat(far::VARCHAR, 60)) FROM t"
    connection.execute("SET memory_limit = '1GB'")
    cursor = connection.execute(sql)
    cursor.fetchall()
    needed = cursor.receipt["peak_bytes"]
    assert needed > 100_000 * 900, "texts of 100,000 rows count"
    connection.execute(f"SET memory_limit = '{needed // 2000}KB'")
    with pytest.raises(MemoryLimitError, match="memory_limit"):
        connection.execute(sql).fetchall()


def test_what_is_made_of_rows_is_not_kept_for_later_statements() -> None:
    session = Session(gpudb.session.Database())
    session.execute("CREATE TABLE t (x BIGINT)")
    session.execute("INSERT INTO t VALUES (100000000000), (2), (3)")
    before = len(session.database.texts._kept)
    for value in range(5):
        session.execute(f"INSERT INTO t VALUES ({value}::BIGINT * 1000000000)")
        session.execute("SELECT x::VARCHAR || '!' AS t FROM t WHERE t < '9' ORDER BY 1").table()
    assert len(session.database.texts._kept) == before


def probing_program() -> tuple[Program, int, int]:
    """(a program that probes, the number of its last pipeline, the line of the probe)."""
    session = Session(gpudb.session.Database())
    session.execute("CREATE TABLE t (x BIGINT)")
    session.execute("INSERT INTO t VALUES (100000000000), (2)")
    programs: list[Program] = []
    verify = Program.verify

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Program, "verify", lambda self: (programs.append(self), verify(self))[1])
        session.execute("SELECT x::VARCHAR FROM t").table()
    program = programs[-1]
    last = program.steps[program.result]
    assert isinstance(last, Pipeline)
    line = next(k for k, ins in enumerate(last.instructions) if ins.variant.opcode.name == "Probe")
    return program, program.result, line


def with_pipeline(program: Program, number: int, pipeline: Pipeline) -> Program:
    return replace(program, steps=(*program.steps[:number], pipeline, *program.steps[number + 1 :]))


def with_probe(program: Program, number: int, line: int, place: int, operand: Operand) -> Program:
    pipeline = program.steps[number]
    assert isinstance(pipeline, Pipeline)
    old = pipeline.instructions[line]
    operands = (*old.operands[:place], operand, *old.operands[place + 1 :])
    instructions = list(pipeline.instructions)
    instructions[line] = Instruction(old.variant, operands)
    return with_pipeline(program, number, replace(pipeline, instructions=tuple(instructions)))


def test_a_probe_is_checked_before_it_runs() -> None:
    program, number, line = probing_program()
    program.verify()
    pipeline = program.steps[number]
    assert isinstance(pipeline, Pipeline)
    key_words = pipeline.instructions[line].operands[3]
    other = next(k for k, slot in enumerate(pipeline.slots) if not isinstance(slot, GroupTableSlot))
    broken = [
        (with_probe(program, number, line, 3, key_words._replace(number=2)), "no hash table with keys of 2"),
        (with_probe(program, number, line, 4, Operand(SLOT, other)), "must be the slot of a hash table"),
        (with_probe(program, number, line, 1, Operand(0, len(pipeline.registers))), "no such register"),
    ]
    table = next(k for k, slot in enumerate(pipeline.slots) if isinstance(slot, GroupTableSlot))
    for step, message in ((number, "looks forward"), (number - 1, "no hash table"), (1, "leaves no hash table")):
        slots = (*pipeline.slots[:table], GroupTableSlot(step), *pipeline.slots[table + 1 :])
        broken.append((with_pipeline(program, number, replace(pipeline, slots=slots)), message))
    for wrong, message in broken:
        with pytest.raises(InternalError, match=message):
            wrong.verify()
