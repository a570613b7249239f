"""Program.verify(): a program whose registers, columns or types disagree never reaches a kernel."""

from __future__ import annotations

from dataclasses import replace

import pytest

import gpudb
from gpudb.errors import InternalError
from gpudb.program import REGISTER, Instruction, Operand, Pipeline, Program

SQL = "SELECT a + b AS s, a * 3 AS t, c / 2.0 AS d FROM t WHERE a < b AND c > 0.5"


@pytest.fixture(scope="module")
def program() -> Program:
    """A program of elementwise instructions on integers and floats, behind a filter."""
    connection = gpudb.connect()
    connection.execute("CREATE TABLE t AS SELECT i AS a, i * 7919 % 100000 AS b, i / 7 AS c FROM range(5000) t(i)")
    programs: list[Program] = []
    verify = Program.verify
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Program, "verify", lambda self: (programs.append(self), verify(self))[1])
        connection.execute(SQL).fetchall()
    return programs[-1]


def changed(program: Program, step: int, line: int, place: int, operand: Operand) -> Program:
    pipeline = program.steps[step]
    assert isinstance(pipeline, Pipeline)
    instructions = list(pipeline.instructions)
    old = instructions[line]
    instructions[line] = Instruction(old.variant, (*old.operands[:place], operand, *old.operands[place + 1 :]))
    return replace(
        program,
        steps=(
            *program.steps[:step],
            replace(pipeline, instructions=tuple(instructions)),
            *program.steps[step + 1 :],
        ),
    )


def elementwise(program: Program) -> list[tuple[int, int, Instruction]]:
    return [
        (step, line, ins)
        for step, pipeline in enumerate(program.steps)
        if isinstance(pipeline, Pipeline)
        for line, ins in enumerate(pipeline.instructions)
        if ins.variant.opcode.role == "elementwise"
    ]


def test_a_result_register_has_the_type_that_the_instruction_writes(program: Program) -> None:
    tried = 0
    for step, line, ins in elementwise(program):
        pipeline = program.steps[step]
        assert isinstance(pipeline, Pipeline)
        for number, (kind, _) in enumerate(pipeline.registers):
            if kind is ins.variant.signature[0]:
                continue
            tried += 1
            with pytest.raises(InternalError, match="operand 0 is"):
                changed(program, step, line, 0, Operand(REGISTER, number, kind)).verify()
    assert tried > 5, "the program has registers of several types"


def test_an_operand_has_the_type_and_place_that_the_instruction_reads(program: Program) -> None:
    tried = 0
    for step, line, ins in elementwise(program):
        pipeline = program.steps[step]
        assert isinstance(pipeline, Pipeline)
        for place, operand in enumerate(ins.operands):
            if place == 0 or operand.kind != REGISTER:
                continue
            tried += 1
            with pytest.raises(InternalError, match="no such register"):
                changed(program, step, line, place, operand._replace(number=len(pipeline.registers))).verify()
            own = ins.operands[0].number
            with pytest.raises(InternalError, match=r"read before it is written|operand"):
                changed(program, step, line, place, operand._replace(number=own)).verify()
    assert tried > 2
