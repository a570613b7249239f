"""Recursion: the first rows, and a program of its own that makes new rows of them, both in one form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpudb.errors import NotSupportedError
from gpudb.planner.emit.builder import Value
from gpudb.planner.emit.streams import Left, Stream
from gpudb.planner.logical import OutputColumn, Recursive
from gpudb.program import PLAIN, GivenRows, Operand, PlainSlot, Program, Recurse, StepDictionary
from gpudb.types import RegisterType, SqlType

if TYPE_CHECKING:
    from gpudb.planner.emit.query import QueryEmitter

R = RegisterType
MOST_ROWS = 1 << 32  # that a recursion may leave: row numbers have 32 bits
MOST_TEXTS = 1 << 31


def recursion(emitter: QueryEmitter, node: Recursive) -> Left:
    """Emits a Recursive node; what it leaves."""
    from gpudb.planner.emit.query import QueryEmitter

    for name, sql in node.columns:
        if sql.kind == "INTERVAL":
            raise NotSupportedError(f"INTERVAL in a recursion is not supported: column {name}")
    first = _emit(emitter, emitter.stream(node.left), node.columns)
    body = QueryEmitter(emitter.catalog, emitter.exact, emitter.joins.repeated)
    body.joins.counted_with(emitter.joins)
    for whole in (False, True) if node.distinct else (False,):
        body.givens[node.number, whole] = left_of(body.add(GivenRows()), node.columns)
    result = _emit(body, body.stream(node.right), node.columns)
    program = Program(tuple(body.steps), (), (), tuple(sorted(body.tables)), result).verify()
    emitter.tables |= body.tables
    emitter.fixed_used |= body.fixed_used
    return left_of(emitter.add(Recurse(first, program, node.distinct)), node.columns)


def left_of(step: int, columns: tuple[OutputColumn, ...]) -> Left:
    """What a step of a recursion leaves: every value in the full width of its type, with validity."""
    plain = Operand(PLAIN, 0)
    values = []
    for k, (_, sql) in enumerate(columns):
        low, high = (0, MOST_TEXTS - 1) if sql.is_coded else sql.bounds if sql.is_exact else (None, None)
        values.append(
            Value(sql, _kind(sql), plain, plain, low, high, StepDictionary(step, k) if sql.is_coded else None)
        )
    return Left((step,), tuple(values), MOST_ROWS)


def _kind(sql: SqlType) -> R:
    return R.U32 if sql.is_coded else sql.register


def _emit(emitter: QueryEmitter, stream: Stream, columns: tuple[OutputColumn, ...]) -> int:
    """The step that emits the stream's rows in the form that `left_of` says."""
    stream.compact()
    values = []
    for k, (_, sql) in enumerate(columns):
        value = stream.values[k]
        expressions = stream.emitter()
        if sql.is_coded:
            operand = expressions.converted(value.operand, R.U32)
        elif sql.kind == "BOOLEAN":
            operand = expressions.mask(value)
        else:
            operand = expressions.in_register(value, _kind(sql))
        valid = value.valid
        if valid is None:
            valid = stream.builder.vector(stream.builder.slot(PlainSlot(R.MASK, 1)))
        values.append(Value(sql, _kind(sql), operand, valid, value.low, value.high, value.dictionary))
    step, _ = emitter.emit(stream, values)
    return step
