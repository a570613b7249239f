"""A slice of a pipeline: the instructions, and no others, that some of its values are made of.

A step that must run before a pipeline, over the same rows, starts as a slice of it: same source, same filters, same
registers as far as they are needed.  Checks are left out, as the pipeline itself will make them; the rows that fail one are
left out too, where the check looks at what the slice computes, since such values may be anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gpudb.opcodes.calls import WRITTEN
from gpudb.opcodes.sinks import CONSECUTIVE
from gpudb.planner.emit.builder import PipelineBuilder
from gpudb.program import (
    COLUMN,
    REGISTER,
    SLOT,
    Instruction,
    Operand,
    TableSource,
)
from gpudb.types import RegisterType

R = RegisterType


def sliced(
    builder: PipelineBuilder, wanted: list[Operand], alive: Operand | None, zones: list[tuple[int, int]]
) -> tuple[PipelineBuilder, Callable[[Operand], Operand], Operand | None]:
    """(a new builder that computes the wanted operands, where an operand of the old one is in it, mask of its rows).

    alive  mask of the rows that count, None for all
    zones  tests by slot numbers that rows which count pass, in addition to the source's
    """
    needed = {o.number for o in (*wanted, *([alive] if alive else [])) if o.kind == REGISTER}
    kept: list[Instruction] = []
    checks: list[tuple[Operand, Operand]] = []
    producers = {ins.operands[0]: ins for ins in builder.instructions if ins.has_result}
    called = False  # by the last instruction kept
    for ins in reversed(builder.instructions):
        name = ins.variant.opcode.name
        if name == "Arguments" and called:
            kept.append(ins)
            needed.update(o.number for o in ins.operands if o.kind == REGISTER)
            continue
        called = name == "Call" and not needed.isdisjoint(_written(ins))
        if name == "Fail":
            bad, guard, _ = ins.operands
            inputs = producers[bad].operands[1:] if bad in producers else ()
            if any(o.kind == REGISTER and o.number in needed for o in inputs):
                checks.append((bad, guard))
                needed.update(o.number for o in (bad, guard) if o.kind == REGISTER)
        elif name == "SkipIfNone":
            if ins.operands[0].number in needed:
                kept.append(ins)
        elif name == "Compact":  # behind it are fewer rows
            kept.append(ins)
            needed.update(o.number for o in ins.operands if o.kind == REGISTER)
        elif ins.has_result and not needed.isdisjoint(_written(ins)):
            kept.append(ins)
            needed.update(_written(ins))
            needed.update(_read(ins))
    kept.reverse()
    return _renumbered(builder, kept, needed, [*wanted, *([alive] if alive else [])], alive, checks, zones)


def _written(ins: Instruction) -> set[int]:
    first, name = ins.operands[0].number, ins.variant.opcode.name
    others = (ins.operands[place].number for place in WRITTEN.get(name, ()))
    return {*range(first, first + CONSECUTIVE.get(name, 1)), *others}


def _read(ins: Instruction) -> set[int]:
    found = {o.number for o in ins.operands[1:] if o.kind == REGISTER}
    if ins.variant.opcode.name in ("GroupFind", "Probe"):  # the words of a key lie in consecutive registers
        keys, key_words = ins.operands[1], ins.operands[3].number
        found.update(range(keys.number, keys.number + key_words))
    return found


def _renumbered(
    builder: PipelineBuilder,
    kept: list[Instruction],
    registers: set[int],
    wanted: list[Operand],
    alive: Operand | None,
    checks: list[tuple[Operand, Operand]],
    zones: list[tuple[int, int]],
) -> tuple[PipelineBuilder, Callable[[Operand], Operand], Operand | None]:
    """A builder of the kept instructions alone, whose registers, columns and slots are numbered without gaps."""
    source = builder.source
    if isinstance(source, TableSource):
        zones = list(dict.fromkeys((*source.zones, *zones)))
    else:
        zones = []
    used = [o for ins in kept for o in ins.operands] + [o for check in checks for o in check] + wanted
    slots = sorted({o.number for o in used if o.kind == SLOT} | {number for zone in zones for number in zone})
    places = {
        REGISTER: {old: new for new, old in enumerate(sorted(registers))},
        COLUMN: {old: new for new, old in enumerate(sorted({o.number for o in used if o.kind == COLUMN}))},
        SLOT: {old: new for new, old in enumerate(slots)},
    }

    def moved(operand: Operand) -> Operand:
        return operand._replace(number=places[operand.kind][operand.number]) if operand.kind in places else operand

    if isinstance(source, TableSource):
        moved_zones = tuple((places[SLOT][low], places[SLOT][high]) for low, high in zones)
        source = replace(source, zones=moved_zones)
    made = PipelineBuilder(
        source,
        builder.row_bound,
        builder.table_step,
        columns=[builder.columns[old] for old in places[COLUMN]],
        slots=[builder.slots[old] for old in places[SLOT]],
        instructions=[ins._replace(operands=tuple(map(moved, ins.operands))) for ins in kept],
        registers=[builder.registers[old] for old in places[REGISTER]],
        pinned={places[REGISTER][old] for old in builder.pinned & registers},
    )
    if builder.rows is not None:
        made.compacted(moved(builder.rows))
    mask = None if alive is None else moved(alive)
    for bad, guard in checks:
        failing = made.make("And", R.MASK, moved(bad), moved(guard))
        mask = made.make("Not", R.MASK, failing) if mask is None else made.make("AndNot", R.MASK, mask, failing)
    return made, moved, mask
