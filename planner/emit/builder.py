"""One pipeline under construction: columns, slots, registers, instructions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import cache
from typing import Any

from gpudb.instruction_set import instruction_set
from gpudb.opcodes import Variant
from gpudb.opcodes.calls import ARGUMENTS_AT_ONCE, WRITTEN
from gpudb.planner.emit.known_values import KnownValues
from gpudb.program import (
    AT_ROWS,
    COLUMN,
    PLAIN,
    REGISTER,
    SLOT,
    DictionaryReference,
    EmitSink,
    GroupSink,
    Instruction,
    Operand,
    Pipeline,
    PlainSlot,
    Slot,
    Source,
    SourceColumn,
    TableSlot,
)
from gpudb.record import record
from gpudb.types import RegisterType, SqlType

R = RegisterType


READS_WHOLE = (*AT_ROWS, "Compact", "ExpandValidity")
"""Instructions that read columns or registers with all rows of a tile, or columns at row numbers of their own."""
COLUMNS_AT_ROWS = {"Gather": (0,), "Nearest": (3, 4)}
"""Inputs that are columns read at row numbers of the instruction's own: they are not picked after a Compact."""
DOES_MORE = ("Compact", "GroupFind", "GroupIndex", "SplitFixed", "SplitProduct")
"""Instructions that do more than write the register named as their result."""


@record
class Stored:
    """A value that is a stored table column as it lies: base + scale * operand."""

    column: int
    encoded: bool


@record
class Value:
    """The value of an expression in a pipeline.

    operand     where it is: register, column or (for a literal) slot; of register type `type`
    valid       mask operand, or None where it is never NULL
    low, high   proven bounds: integers behind exact types, codes of text; floats or None for floats
    dictionary  what the codes of a text value mean
    stored      set while `operand` is an encoded column, not yet decoded
    is_null     the value is NULL in every row
    """

    sql: SqlType
    type: R
    operand: Operand
    valid: Operand | None = None
    low: Any = None
    high: Any = None
    dictionary: DictionaryReference | None = None
    stored: Stored | None = None
    is_null: bool = False
    distinct: int | None = None


@cache
def _form(name: str, given: str) -> str:
    """The form of an opcode for inputs that are slots (s) or have a value a row (v); the one with a table where it has one."""
    forms = instruction_set().opcodes[name].forms
    pointer_forms = [f for f in forms if "p" in f]
    if pointer_forms or given in forms:
        return pointer_forms[0] if pointer_forms else given
    usable = [f for f in forms if all(f[k] == "v" or given[k] == "s" for k in range(len(f)))]
    assert usable, f"no form of {name} takes {given}"
    return max(usable, key=lambda f: f.count("s"))


@cache
def _variant(name: str, signature: tuple[R | None, ...], form: str) -> Variant:
    """The variant of this name, signature and form: one object each, so that it is checked and hashed once."""
    opcode = instruction_set().opcodes[name]
    assert signature in opcode.signatures, f"{name} does not exist for {[t and t.suffix for t in signature]}"
    return Variant(opcode, signature, form)  # type: ignore[arg-type]


@record(frozen=False)
class PipelineBuilder:
    """Collects a pipeline; equal slots and equal instructions are made once.

    rows  once `compact()` was called, the numbers of the rows that it went on with: what was made before is then picked at
          these rows where it is used
    distinct_tuples  adds the steps that find the distinct tuples of some values (`QueryEmitter.distinct_tuples`)
    tuples           what it gave, by the values and the mask of the rows that count
    """

    source: Source
    row_bound: int
    table_step: int | None = None
    columns: list[SourceColumn] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)
    registers: list[R] = field(default_factory=list)
    pinned: set[int] = field(default_factory=set)
    messages: list[tuple[str, str, Any]] = field(default_factory=list)
    rows: Operand | None = None
    distinct_tuples: Any = None
    tuples: dict[Any, Any] = field(default_factory=dict)
    known: KnownValues = field(init=False)
    _compacted: int = 0
    _made: dict[Any, Operand] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.known = KnownValues(self)
        self._made.update((column, Operand(COLUMN, n, column.type)) for n, column in enumerate(self.columns))

    def column(self, index: int, part: str, type_: R, step: int | None = None) -> Operand:
        """The operand of a source column's part, or of an earlier step's."""
        wanted = SourceColumn(index, part, type_, step)
        found = self._made.get(wanted)
        if found is None:
            self.columns.append(wanted)
            found = self._made[wanted] = Operand(COLUMN, len(self.columns) - 1, type_)
        return found

    def slot(self, slot: Slot) -> Operand:
        """The operand of a parameter slot; equal slots are one."""
        key = ("slot", slot)
        found = self._made.get(key)
        if found is None:
            self.slots.append(slot)
            found = self._made[key] = Operand(SLOT, len(self.slots) - 1, slot.type)
        return found

    def register(self, type_: R, count: int = 1) -> Operand:
        """A new register, or the first of `count` consecutive ones."""
        first = len(self.registers)
        self.registers += [type_] * count
        if count > 1:
            self.pinned.update(range(first, first + count))
        return Operand(REGISTER, first, type_)

    def compact(self, alive: Operand) -> None:
        """Go on with the rows alive in a mask only."""
        assert self.rows is None, "a pipeline is compacted once"
        if self.instructions and self.instructions[-1].variant.opcode.name == "SkipIfNone":
            self.instructions.pop()
        rows = self.register(R.U32)
        self.pinned.add(rows.number)  # Fail and GroupFirst number rows by it
        self.block("Compact", (R.U32,), rows, alive)
        self.compacted(rows)

    def compacted(self, rows: Operand) -> None:
        """Note that from the register `rows` on, registers hold the rows that a Compact went on with."""
        self.rows, self._compacted = rows, rows.number

    def is_whole(self, operand: Operand) -> bool:
        """True for a value that still has a tile's rows of before `compact()`."""
        if self.rows is None or operand.kind not in (COLUMN, REGISTER):
            return False
        return operand.kind == COLUMN or operand.number < self._compacted

    def picked(self, operand: Operand) -> Operand:
        """The operand at the rows that are still worked on."""
        if self.rows is None or not self.is_whole(operand):
            return operand
        assert operand.type is not None
        key = ("Pick", operand)
        if key not in self._made:
            self._made[key] = self.register(operand.type)
            kind = operand.type
            self._append("Pick", (kind, kind, R.U32), self._made[key], operand, self.rows)
        return self._made[key]

    def make(self, name: str, out: R, *inputs: Operand) -> Operand:
        """An elementwise instruction; the same one twice is made once.  Slots become scalars, or are copied if they must."""
        key = (name, out, inputs)
        result = self._made.get(key)
        if result is None:
            read = inputs if self.rows is None else tuple(self.picked(operand) for operand in inputs)
            variant, inputs = self._variant(name, out, read)
            result = self._made[key] = self.register(out)
            self.instructions.append(Instruction(variant, (result, *inputs)))
        return result

    def _variant(self, name: str, out: R, inputs: tuple[Operand, ...]) -> tuple[Variant, tuple[Operand, ...]]:
        given = "".join(["s" if operand.kind == SLOT else "v" for operand in inputs])
        form = _form(name, given)
        if form != given:
            inputs = tuple([self.vector(x) if f == "v" else x for x, f in zip(inputs, form, strict=True)])
        types = [operand.type for operand in inputs]
        if "p" in form:
            types[-1] = out
        return _variant(name, (out, *types), form), inputs

    def vector(self, operand: Operand) -> Operand:
        """The operand as one value a row: a slot is copied into a register."""
        if operand.kind != SLOT:
            return operand
        assert operand.type is not None
        return self.picked(self.make("Copy", operand.type, operand))  # the copy may be from before Compact

    def block(self, name: str, signature: tuple[R, ...], *operands: Operand | int) -> None:
        """An instruction where rows meet."""
        if self.rows is not None and name not in READS_WHOLE:
            has_result = instruction_set().opcodes[name].has_result
            operands = tuple(
                self.picked(o) if isinstance(o, Operand) and not (k == 0 and has_result) else o
                for k, o in enumerate(operands)
            )
        self._append(name, signature, *operands)

    def _append(self, name: str, signature: tuple[R, ...], *operands: Operand | int) -> None:
        wrapped = tuple(o if isinstance(o, Operand) else Operand(PLAIN, o) for o in operands)
        self.instructions.append(Instruction(_variant(name, signature, ""), wrapped))

    def block_once(self, name: str, signature: tuple[R, ...], out: R, *operands: Operand | int) -> Operand:
        """A block instruction with a result register; the same one twice is made once."""
        if name == "ExpandValidity" and self.rows is not None:
            name, signature, operands = "PickValidity", (R.MASK, R.U32), (*operands, self.rows)
        if name in COLUMNS_AT_ROWS:
            whole = COLUMNS_AT_ROWS[name]
            operands = tuple(
                self.picked(o) if isinstance(o, Operand) and k not in whole else o for k, o in enumerate(operands)
            )
        key = (name, signature, operands)
        result = self._made.get(key)
        if result is None:
            result = self._made[key] = self.register(out)
            self.block(name, signature, result, *operands)
        return result

    def call(
        self, function: Slot, out: R, alive: Operand | None, arguments: Sequence[Operand]
    ) -> tuple[Operand, Operand]:
        """A call of a function for the rows alive: registers of its result and of its status, 0 where it gave one."""
        read: list[Operand | int] = [self.picked(self.vector(argument)) for argument in arguments]
        where = 0 if alive is None else self.picked(self.vector(alive))
        result, status, slot = self.register(out), self.register(R.U8), self.slot(function)
        for first in range(0, len(read), ARGUMENTS_AT_ONCE):
            some = read[first : first + ARGUMENTS_AT_ONCE]
            self._append("Arguments", (), *some, *[0] * (ARGUMENTS_AT_ONCE - len(some)))
        self._append("Call", (), result, status, where, slot)
        return result, status

    def bounded_index(self, index: Operand, size: int) -> Operand:
        """A u32 index that is below `size` in every row.

        Where the pipeline checks values, the rows that fail, and rows that do not count, may lie outside the range that the
        check proves for the others; such an index becomes 0, so that nothing is read or written where it points.
        """
        if not self.messages or index.kind == COLUMN:
            return index
        ends = (self.slot(PlainSlot(R.U32, 0)), self.slot(PlainSlot(R.U32, size - 1)))
        index = self.vector(index)
        return self.make("Keep", R.U32, index, self.make("InRange", R.MASK, index, *ends))

    def copy_into(self, target: Operand, operand: Operand) -> None:
        """Copy a value into a given register (one of several consecutive ones)."""
        operand = self.picked(operand)
        assert operand.type is not None
        form = "s" if operand.kind == SLOT else "v"
        variant = Variant(instruction_set().opcodes["Copy"], (operand.type, operand.type), form)
        self.instructions.append(Instruction(variant, (target, operand)))

    def both(self, left: Operand | None, right: Operand | None) -> Operand | None:
        """AND of two masks, None standing for all ones."""
        if left is None or right is None or left == right:
            return right if left is None else left
        return self.make("And", R.MASK, left, right)

    def finish(self, sink: EmitSink | GroupSink, source: Source | None = None) -> Pipeline:
        """The pipeline, its registers placed: one that is dead leaves its place to the next of the same width."""
        self._drop_unread()
        places, arena = self._place_registers()
        return Pipeline(
            source=source or self.source,
            columns=tuple(self.columns),
            slots=self._slots_read(),
            instructions=tuple(self.instructions),
            registers=tuple(places),
            arena=arena,
            sink=sink,
            messages=tuple(self.messages),
            row_bound=self.row_bound,
            table_step=self.table_step,
        )

    def _drop_unread(self) -> None:
        """Leave out instructions that make what nobody reads, others having taken their place, and their registers."""
        read: set[int] = set()
        written: set[int] = set()
        kept: list[Instruction] = []
        called = False  # by the last instruction kept
        for ins in reversed(self.instructions):
            opcode, operands = ins.variant.opcode, ins.operands
            if opcode.name == "Arguments" and not called:
                continue
            if opcode.has_result:
                result = operands[0].number
                others = WRITTEN.get(opcode.name, ())
                wanted = result in read or any(operands[place].number in read for place in others)
                if not (wanted or result in self.pinned or opcode.name in DOES_MORE):
                    called = False
                    continue
                written.add(result)
                operands = operands[1:]
            called = opcode.name in ("Arguments", "Call")
            kept.append(ins)
            read.update([number for kind, number, _ in operands if kind == REGISTER])
        kept.reverse()
        used = sorted(read | written | self.pinned)
        if len(used) == len(self.registers):
            self.instructions = kept
            return
        moved = {old: Operand(REGISTER, new, self.registers[old]) for new, old in enumerate(used)}
        self.instructions = [
            Instruction(ins.variant, tuple(moved[o.number] if o.kind == REGISTER else o for o in ins.operands))
            for ins in kept
        ]
        self.registers = [self.registers[old] for old in used]
        self.pinned = {moved[old].number for old in self.pinned}

    def _slots_read(self) -> tuple[Slot, ...]:
        """The slots; no table is made that no instruction reads any more."""
        read = {number for ins in self.instructions for kind, number, _ in ins.operands if kind == SLOT}
        nothing = PlainSlot(R.U32, 0)
        return tuple(
            slot if number in read or not isinstance(slot, TableSlot) else nothing
            for number, slot in enumerate(self.slots)
        )

    def _place_registers(self) -> tuple[Sequence[tuple[R, int]], int]:
        used = [[number for kind, number, _ in ins.operands if kind == REGISTER] for ins in self.instructions]
        last_use = {number: line for line, numbers in enumerate(used) for number in numbers}
        offsets: dict[int, int] = {}
        free: dict[int, list[int]] = {}
        arena = 0
        for register in sorted(self.pinned):  # consecutive registers first: 8 bytes each, never reused
            offsets[register] = arena
            arena += self.registers[register].width
        for line, numbers in enumerate(used):
            for number in numbers:
                if number not in offsets:
                    width = self.registers[number].width
                    if free.get(width):
                        offsets[number] = free[width].pop()
                    else:
                        offsets[number] = arena
                        arena += width
            for number in set(numbers):
                if last_use[number] == line and number not in self.pinned:
                    free.setdefault(self.registers[number].width, []).append(offsets[number])
        return [(kind, offsets.get(n, 0)) for n, kind in enumerate(self.registers)], max(arena, 16)
