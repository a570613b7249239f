"""EXPLAIN: the logical tree and the opcodes of a program, as a table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from gpudb.devices.work import StepProfile
from gpudb.planner import statements
from gpudb.planner.explain import logical_lines
from gpudb.program import (
    CountPairs,
    CountSource,
    EmitSink,
    FrameWords,
    GivenRows,
    GroupSource,
    IndexRows,
    IndexRuns,
    InvertRows,
    JoinTexts,
    LimitRows,
    MakeValues,
    OrderGroups,
    PairSource,
    Pipeline,
    Program,
    Recurse,
    RepeatRows,
    SingleRowSource,
    SortRows,
    StepSource,
    TableSource,
)
from gpudb.result import Result
from gpudb.session import Session
from gpudb.statement_catalog import StatementCatalog
from gpudb.types import BIGINT, DOUBLE, INTEGER, VARCHAR, SqlType

COLUMNS: list[tuple[str, SqlType]] = [
    ("step", INTEGER),
    ("line", INTEGER),
    ("operation", VARCHAR),
    ("comment", VARCHAR),
]
MORE_COLUMNS: dict[str, list[tuple[str, SqlType]]] = {
    "plain": [],
    "memory": [("bytes", BIGINT)],
    "analyze": [("rows", BIGINT), ("milliseconds", DOUBLE)],
}
Line = tuple[int | None, int | None, str, str]


def explain_columns(statement: statements.Explain) -> list[tuple[str, SqlType]]:
    """(name, type) of what `explain` gives."""
    return COLUMNS + (MORE_COLUMNS[statement.mode] if getattr(statement.statement, "plan", None) is not None else [])


def explain(
    session: Session, statement: statements.Explain, raw: list[Any], catalog: StatementCatalog, stages: Any, lap: Any
) -> Result:
    """One row a line: the logical plan first (step NULL), then each step of the program and its instructions.

    ANALYZE runs the statement and adds rows and milliseconds: of a step, the rows it left; of an instruction, the rows set in
    the mask it makes, or else those it ran over, and its share of the step's time by the device's own clock.  MEMORY adds the
    bytes each step is expected to hold.
    """
    inner = statement.statement
    plan = getattr(inner, "plan", None)
    if plan is None:
        name = type(inner).__name__
        return _result(explain_columns(statement), [(None, None, name, "")])
    plan, program = session.program(plan, raw, catalog, lap)
    lines: list[Line] = [(None, n, text, "") for n, text in enumerate(logical_lines(plan))]
    if statement.mode == "plain":
        return _result(explain_columns(statement), lines + program_lines(program))
    if statement.mode == "memory":
        from gpudb.forecast import forecast_bytes

        expected = forecast_bytes(program)
        lines += program_lines(program)
        rows = [(*line, expected.get(line[0]) if line[1] is None else None) for line in lines]
        return _result(explain_columns(statement), rows)
    profile: list[StepProfile] = []
    result = session.run_program(program, program.types, raw, catalog, stages, lap, cached=False, profile=profile)
    result.table()
    lines += program_lines(program.usual)  # what ran: a join may have met a key of several rows
    measured: dict[tuple[int | None, int | None], tuple[int | None, float]] = {}
    for step in profile:
        measured[step.step, None] = (step.rows, step.seconds * 1e3)
        for n, (seconds, seen) in enumerate(step.instructions):
            measured[step.step, n] = (seen, seconds * 1e3)
    rows = [(*line, *measured.get(line[:2], (None, None))) for line in lines]
    answer = _result(explain_columns(statement), rows)
    answer.receipt.update(result.receipt)
    return answer


def _result(columns: list[tuple[str, SqlType]], rows: list[tuple[Any, ...]]) -> Result:
    schema = pa.schema([(name, kind.arrow) for name, kind in columns])
    arrays = [pa.array([row[k] for row in rows], kind.arrow) for k, (_, kind) in enumerate(columns)]
    return Result(schema, [k for _, k in columns], -1, {}, iter([pa.RecordBatch.from_arrays(arrays, schema=schema)]))


def program_lines(program: Program) -> list[Line]:
    """(step, line, operation, comment) of every step and instruction."""
    lines: list[Line] = []
    for number, step in enumerate(program.steps):
        match step:
            case Pipeline():
                lines.append((number, None, "Pipeline", f"{_source(step)} -> {_sink(step)}"))
                for n, instruction in enumerate(step.instructions):
                    lines.append((number, n, str(instruction.variant), str(instruction)))
            case OrderGroups(step=of):
                lines.append((number, None, "OrderGroups", f"groups of step {of} by first row"))
            case SortRows(step=of, words=words):
                lines.append((number, None, "SortRows", f"rows of step {of} by {len(words)} order word(s)"))
            case RepeatRows(step=of, counts=counts):
                lines.append(
                    (number, None, "RepeatRows", f"rows of step {of}, each as often as its value {counts} says")
                )
            case GivenRows():
                lines.append((number, None, "GivenRows", "what the recursion made before"))
            case Recurse(step=of, body=body):
                lines.append((number, None, "Recurse", f"from the rows of step {of} on, until there are no new ones:"))
                lines += [
                    (number, None, f"  {inner}. {name}" if line is None else f"    {name}", comment)
                    for inner, line, name, comment in program_lines(body)
                ]
            case LimitRows(step=of):
                lines.append((number, None, "LimitRows", f"of step {of}"))
            case MakeValues(rows=rows):
                lines.append((number, None, "MakeValues", f"{len(rows)} rows"))
            case JoinTexts(step=of, rows=rows):
                lines.append((number, None, "JoinTexts", f"of rows of step {rows}, for each row of step {of}"))
            case IndexRows(step=of, words=words, numbers=numbers, form=form):
                keys = f"one of {numbers} number(s)" if numbers else f"{len(words)} word(s)"
                held = {"any": "a row", "one": "the only row", "all": "all rows"}[form]
                lines.append((number, None, "IndexRows", f"{held} of each key, {keys}, of step {of}"))
            case CountPairs(least=least):
                left = ", one at least" if least else ""
                lines.append((number, None, "CountPairs", f"of the rows of step {step.step}{left}"))
            case IndexRuns(step=of, over=over):
                lines.append((number, None, "IndexRuns", f"of step {of} by row of step {over}"))
            case InvertRows(step=of):
                lines.append((number, None, "InvertRows", f"place of each row in the order of step {of}"))
            case FrameWords(step=of, frames=frames, words=words):
                kinds = ", ".join(word.kind for word in words)
                lines.append((number, None, "FrameWords", f"{kinds} of step {of} over {len(frames)} frame(s)"))
    return lines


def _source(pipeline: Pipeline) -> str:
    match pipeline.source:
        case TableSource(table=table, zones=zones):
            return f"scan {table}" + (f", {len(zones)} zone test(s)" if zones else "")
        case StepSource(steps=steps, order=order):
            return (
                "rows of step " + ", ".join(map(str, steps)) + ("" if order is None else f" in order of step {order}")
            )
        case GroupSource(step=step, order=order):
            return f"groups of step {step} in order of step {order}"
        case SingleRowSource():
            return "one row"
        case CountSource(rows=rows):
            return f"{rows:,} rows"
        case PairSource(step=step):
            return f"pairs of step {step}"
    raise AssertionError("unknown source")


def _sink(pipeline: Pipeline) -> str:
    sink = pipeline.sink
    if isinstance(sink, EmitSink):
        return f"emit {len(sink.values)} column(s)"
    name = {
        "one": "Reduce",
        "dense": f"GroupDense of {sink.capacity}",
        "indexed": f"GroupIndexed of {sink.capacity}",
        "hash": "GroupHash",
    }[sink.kind]
    return f"{name}, {len(sink.words)} word(s) a group" + ("" if sink.into is None else f" into step {sink.into}")
