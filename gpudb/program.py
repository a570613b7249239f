"""A program: what the virtual machine runs.

A program is a list of steps.  A `Pipeline` has one source, a straight run of instructions and one sink; the steps between
(`OrderGroups`, `SortRows`, `RepeatRows`, `LimitRows`, `InvertRows`) only rearrange what pipelines left.  A step's result
goes by its number.

An operand is a **register** (an offset into the tile's arena), a **column** of the source read in place, a **slot** or a
plain number.  Slots are parameters: the **prologue** (`gpudb/vm/prologue.py`) fills them before a run, per row group, from
literals, dictionaries and chunk metadata.  So a program is free of data and can be kept for every statement of its shape.

Past 600 lines: a list of short records, and the check that walks all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gpudb.errors import InternalError
from gpudb.instruction_set import INSTRUCTION, instruction_set
from gpudb.opcodes import Variant
from gpudb.opcodes.calls import ARGUMENTS_AT_ONCE, WRITTEN
from gpudb.opcodes.sinks import CONSECUTIVE
from gpudb.record import record
from gpudb.types import RegisterType, SqlType

KIND_SHIFT = 30
REGISTER, COLUMN, SLOT, PLAIN = 0, 1, 2, 3
KIND_NAMES = ("register", "column", "slot")
MAX_OPERANDS = INSTRUCTION["p"].shape[0]


class Operand(NamedTuple):
    """kind: REGISTER (number = register's number), COLUMN, SLOT or PLAIN (number is the value itself)."""

    kind: int
    number: int
    type: RegisterType | None = None

    def __str__(self) -> str:
        return ("r[{}]", "c[{}]", "s[{}]", "{}")[self.kind].format(self.number)


class Instruction(NamedTuple):
    """A variant and its operands: the result first (where there is one), then one per parameter of the opcode."""

    variant: Variant
    operands: tuple[Operand, ...]

    @property
    def has_result(self) -> bool:
        """True where the first operand is a register that the instruction writes."""
        return self.variant.opcode.has_result

    @property
    def makes_mask(self) -> bool:
        """True where the result is a mask."""
        return self.has_result and self.variant.signature[0] is RegisterType.MASK

    def __str__(self) -> str:
        names = dict(zip(self.variant.opcode.operands, map(str, self.operands), strict=False))
        return self.variant.opcode.synopsis.format(**names)


# --------------------------------------------------------------------------------------------------- dictionaries


@record
class ColumnDictionary:
    """The dictionary of column `ordinal` of table `table`."""

    table: str
    ordinal: int


@record
class LiteralDictionary:
    """One text constant: code 0."""

    expression: Any


@record
class MappedDictionary:
    """The distinct values of a text function over another dictionary's entries (see `TextTable`)."""

    function: TextFunction


@record
class UnionDictionary:
    """All values of several dictionaries, in their order."""

    parts: tuple[DictionaryReference, ...]


@record
class StepDictionary:
    """The dictionary of a column that a MakeValues or JoinTexts step made."""

    step: int
    column: int


DictionaryReference = ColumnDictionary | LiteralDictionary | MappedDictionary | UnionDictionary | StepDictionary


@record
class RangeDomain:
    """The integers low .. high, as an argument of a text function over a narrow number (CAST(int AS VARCHAR))."""

    type: SqlType
    low: int
    high: int


@record
class ConstantDomain:
    """One constant that is no text, as the argument of a text function that has no other: index 0."""

    type: SqlType
    expression: Any


@record
class TupleColumn:
    """One argument of a text function that runs over the distinct tuples of its arguments.

    step    the pipeline that emits each tuple once, in order of first rows; column 0 of it is the tuple's entry in the
            hash table that rows probe, and 1 + entry is the index into the function's lookup tables: 0 is no tuple
    column  which of the pipeline's output values
    """

    step: int
    column: int
    type: SqlType


MOST_PAIRS = 1 << 24  # of entries of two domains that a text function runs over


@record
class TextFunction:
    """A function of the registry over dictionary entries.

    overload   the registry's entry; None compares (operator in `name`)
    domains    what the varying arguments range over: one domain, or two (all pairs), or the columns of one step's tuples
    arguments  one an argument: the index of the domain it takes its values from, or a constant expression
    type       SQL type of the value
    try_       conversion failures give NULL
    """

    name: str
    overload: Any
    domains: tuple[DictionaryReference | RangeDomain | ConstantDomain | TupleColumn, ...]
    arguments: tuple[Any, ...]
    type: SqlType
    try_: bool = False

    @property
    def tuples(self) -> tuple[TupleColumn, ...]:
        """The domains, where it runs over tuples that an earlier step found; else none."""
        return tuple(domain for domain in self.domains if isinstance(domain, TupleColumn))


@record
class FunctionFailure:
    """A Python function failed in a row: its name, and what it did.  The error's message names the row."""

    name: str
    what: str


# --------------------------------------------------------------------------------------------------- slots


@record
class ConstantSlot:
    """The value of a constant expression; NULL gives zero bytes."""

    type: RegisterType
    sql_type: SqlType
    expression: Any


@record
class PlainSlot:
    """A value known when the program was made."""

    type: RegisterType
    value: int | float


@record
class ConstantIntervalSlot:
    """One field (months, days, microseconds) of a constant INTERVAL."""

    type: RegisterType
    expression: Any
    part: str


@record
class BaseSlot:
    """Base of a stored column's chunk, plus a number."""

    type: RegisterType
    column: int
    plus: int = 0


@record
class ScaleSlot:
    """Scale of a stored column's chunk."""

    type: RegisterType
    column: int


@record
class DaySlot:
    """Of a stored timestamp column's chunk: the day of its base, or (part rest) the microseconds of the base into it."""

    type: RegisterType
    column: int
    part: str


@record
class RangeSlot:
    """One end of a closed range test on stored values: the constants shifted and clamped into the chunk's stored range.

    low, high  constant expressions in the column's SQL units, or None for an open end; low_open / high_open exclude it
    side       which end this slot holds: low or high; low > high where no stored value can match
    """

    type: RegisterType
    column: int
    low: Any
    low_open: bool
    high: Any
    high_open: bool
    side: str


@record
class CodeSlot:
    """One end of a range test that finds one text: its code, or an empty range where the dictionary lacks it."""

    type: RegisterType
    dictionary: DictionaryReference
    expression: Any
    side: str


@record
class PairSizeSlot:
    """Number of entries of the second domain of a text function over pairs."""

    type: RegisterType
    domain: Any


@record
class TableSlot:
    """A pointer to a lookup table."""

    table: LookupTable
    type: RegisterType = RegisterType.I64


@record
class GroupTableSlot:
    """A pointer to the finished hash table that an earlier step left: of groups, or of a join's build rows."""

    step: int
    type: RegisterType = RegisterType.I64


@record
class StepRowsSlot:
    """Number of rows that an earlier step left."""

    step: int
    type: RegisterType = RegisterType.I64


@record
class FunctionSlot:
    """A pointer to what Call calls: a Python function, `gpudb.functions.python.PythonFunction`."""

    function: Any
    type: RegisterType = RegisterType.I64


@record
class TextTable:
    """code, or index of a tuple -> one part of a text function's result, in `element`.

    Parts are its value, validity, and failed (it raises).  A 128-bit value is two parts: value + high * 2**64, both signed.
    """

    function: TextFunction
    element: RegisterType
    part: str = "value"


@record
class TranslationTable:
    """code of one dictionary -> code of another that holds all its values."""

    source: DictionaryReference
    target: DictionaryReference
    element: RegisterType = RegisterType.U32


@record
class RankTable:
    """code -> rank of its text in binary order; `inverse` gives rank -> code."""

    dictionary: DictionaryReference
    inverse: bool = False
    element: RegisterType = RegisterType.U32


@record
class MemberTable:
    """code or stored value -> is it in a list of constants?"""

    dictionary: DictionaryReference | None
    column: int | None
    items: tuple[Any, ...]
    element: RegisterType = RegisterType.MASK


@record
class PlainTable:
    """Entries known when the program was made, as bytes."""

    element: RegisterType
    entries: bytes


LookupTable = PlainTable | TextTable | TranslationTable | RankTable | MemberTable
Slot = (
    ConstantSlot
    | PlainSlot
    | ConstantIntervalSlot
    | BaseSlot
    | ScaleSlot
    | DaySlot
    | RangeSlot
    | CodeSlot
    | PairSizeSlot
    | TableSlot
    | GroupTableSlot
    | StepRowsSlot
    | FunctionSlot
)


# --------------------------------------------------------------------------------------------------- sources


@record
class SourceColumn:
    """One thing a pipeline reads: the stored values of input column `index`, or their validity.

    part  stored (table: encoded values; intermediate: registers' values), validity (table: bits; intermediate: masks),
          rows (the permutation of a permuted source), or array (number `index` of those that a step leaves which makes no rows)
    step  None for the pipeline's source, else an earlier step: what lies there is read at row numbers, or, where the source
          has as many rows, row by row
    """

    index: int
    part: str
    type: RegisterType
    step: int | None = None


@record
class TableSource:
    """Rows of a table; `ordinals[i]` is the table's column behind input column i.

    zones  conjuncts (column, RangeSlot numbers low, high) that let a row group be skipped by its zone map
    """

    table: str
    ordinals: tuple[int, ...]
    zones: tuple[tuple[int, int], ...] = ()


@record
class StepSource:
    """Rows that earlier steps left (several: one after the other), in the order of `order` if it is given."""

    steps: tuple[int, ...]
    order: int | None = None


@record
class GroupSource:
    """Groups of an aggregation, in the order that an OrderGroups step left.

    rows  the step whose columns, row by row, belong to the groups in this order; None where there is none
    """

    step: int
    order: int
    rows: int | None = None


@record
class SingleRowSource:
    """One row without columns: SELECT without FROM, one row of VALUES."""


@record
class CountSource:
    """Rows without columns: as many as said, told apart by their numbers."""

    rows: int


@record
class PairSource:
    """The pairs that a CountPairs step counted, in order of (probe row, build row); they have numbers only."""

    step: int


Source = TableSource | StepSource | GroupSource | SingleRowSource | CountSource | PairSource


# --------------------------------------------------------------------------------------------------- sinks and steps


@record
class OutputColumn:
    """One emitted value: which of the sink's columns holds it, and which its validity masks (None: never NULL)."""

    column: int
    type: RegisterType
    validity: int | None
    dictionary: DictionaryReference | None = None


@record
class EmitSink:
    """Rows, in source order.  columns: what the pipeline's Emit instructions write, values and masks alike.

    values   one an output value: its column, and its validity's column number in `columns`
    """

    columns: tuple[RegisterType, ...]
    values: tuple[OutputColumn, ...]
    filtered: bool
    limit: tuple[Any, Any] | None = None  # (count, offset): constant expressions, when rows past it need not be made
    ordered: bool = False  # and those rows are the first of the order that KeepTop goes by


@record
class GroupSink:
    """A group table.

    kind      one (no keys); dense (a group's number is its keys' number among all that their ranges allow); indexed (the
              same numbers lead to entries made as they occur); hash (entries found by key words)
    capacity  key numbers of a dense or indexed table
    key_words 64-bit words of a table's key: of an indexed table 1, the number
    words     one an accumulator word: (how it combines, initial value); word 0 is the first row
              (min, max, add, arg: the first of three words, rest: the others)
    into      the step whose table this pipeline adds to, or None for a table of its own
    """

    kind: str
    capacity: int
    key_words: int
    words: tuple[tuple[str, int], ...]
    into: int | None = None


@record
class Pipeline:
    """Source, instructions, sink.  `registers` holds each register's type; `offsets` its bytes-per-row offset in the arena.

    messages     per Fail instruction (error class, text, TextFunction or FunctionFailure, span)
    row_bound    rows that the source cannot exceed while the plan is valid
    table_step   the group table that GroupWord and its kin read
    """

    source: Source
    columns: tuple[SourceColumn, ...]
    slots: tuple[Slot, ...]
    instructions: tuple[Instruction, ...]
    registers: tuple[tuple[RegisterType, int], ...]
    arena: int
    sink: EmitSink | GroupSink
    messages: tuple[tuple[str, str, Any], ...] = ()
    row_bound: int = 0
    table_step: int | None = None

    def encoded(self, tile_rows: int) -> np.ndarray:
        """The instructions as the kernels read them, for tiles of `tile_rows` rows."""
        cache: dict[int, np.ndarray] = self.__dict__.setdefault("_encoded", {})
        if tile_rows not in cache:
            number = instruction_set().number
            words: list[int] = []  # one array at the end: assigning them one by one to NumPy took a millisecond
            for ins in self.instructions:
                v = ins.variant
                words.append(number[v.opcode.name, v.signature, v.form])
                for kind, payload, _ in ins.operands:
                    if kind == REGISTER:
                        payload = self.registers[payload][1] * tile_rows
                    words.append((kind << KIND_SHIFT) | payload)
                words += [0] * (MAX_OPERANDS - len(ins.operands))
            cache[tile_rows] = np.array(words, np.uint32).view(INSTRUCTION)
        return cache[tile_rows]


@record
class OrderGroups:
    """Numbers of the groups that occur, in order of their first row."""

    step: int


@record
class SortRows:
    """A permutation of a step's rows by order-word columns, the first word most significant; ties keep row order."""

    step: int
    words: tuple[int, ...]


@record
class RepeatRows:
    """A step's row numbers in order, each as often as the step's output value `counts` (i64) says: an order."""

    step: int
    counts: int


@record
class LimitRows:
    """The rows offset .. offset + count of an order (or of a step's rows); with `percent`, count is their share."""

    step: int
    count: Any
    offset: Any
    percent: bool = False


@record
class MakeValues:
    """Rows of constants: rows x columns expressions of the given SQL types."""

    rows: tuple[tuple[Any, ...], ...]
    types: tuple[SqlType, ...]


@record
class JoinTexts:
    """Texts of rows one behind the other, a separator between them: a text for each row of a step.  One array of codes.
    Or lists: the values of rows one behind the other.

    start       output value (i64) of the step: the place, in an order, of the first row whose text is taken; they rise
    rows        the step whose rows they are, `order` the order, `column` the text's output value
    dictionary  of the texts
    separator   a constant expression
    element     of lists: the type of the values
    """

    step: int
    start: int
    rows: int
    order: int
    column: int
    dictionary: DictionaryReference | None
    separator: Any
    element: SqlType | None = None


MORE_THAN_ONE_ROW = "a subquery used as an expression returns more than one row"


@record
class IndexRows:
    """A join's build side: the rows of a step by key.

    words    output values of the step that hold the key: one number, or 64-bit words
    numbers  how many numbers there are; 0 of words
    form     any: 1 + a row by key; one: the same, but a second row of a key is reported; all: all rows of each key.
             As arrays: 1 + row by 1 + number (keys that have numbers), or, of `all`, first match and number of matches by
             1 + entry, and the rows of all matches.  Of words also the hash table that Probe reads
    join     which join of the plan reports a second row, and gets its program for `all` then
    single   place in the SQL of a subquery that may have one row at most; None for a join
    """

    step: int
    words: tuple[int, ...]
    numbers: int
    form: str
    join: int
    single: tuple[Any] | None = None


@record
class CountPairs:
    """Counts pairs: `counts` has each probe row's matches, and makes `least` pairs of fewer.  Array: each row's first pair."""

    counts: SourceColumn
    least: int

    @property
    def step(self) -> int:
        """The step whose rows are the probe rows."""
        assert self.counts.step is not None
        return self.counts.step


@record
class IndexRuns:
    """Where the rows of each row number below those of step `over` begin in a sorted column of a step, and how many they are.

    Two arrays; the step counts as having the rows of `over`.
    """

    step: int
    column: int
    over: int


@record
class InvertRows:
    """Of an order of all rows of a step: each row's place in it.  An array."""

    step: int


@record
class FrameWord:
    """What a window function sums up over each row's frame, as a word.

    kind     add, least or greatest of 64-bit words; or of doubles, exactly and rounded once: sum, variance, covariance
             or correlation, as order words; NULL if none is there, which a count beside it tells
    columns  output values of the step: the word; or x, (of pairs: y,) and the mask of those that count
    frame    which frame
    less     (co)variance: the sum of products is divided by their number less this
    """

    kind: str
    columns: tuple[int, ...]
    frame: int
    less: int = 0


@record
class FrameWords:
    """A table of groups, one for each row of a step: what frames of rows around it sum up to.

    frames  of each the runs of rows in it, at most three: output values (u32) that say where one begins and ends
    words   the words of a group
    """

    step: int
    frames: tuple[tuple[tuple[int, int], ...], ...]
    words: tuple[FrameWord, ...]


@record
class GivenRows:
    """Rows that whoever runs the program puts there: what a recursion made before."""


@record
class Recurse:
    """The rows of a step, then those that `body` makes of them, those that it makes of these, and so on.

    body  a program whose step 0 is the rows that were new in the last round, step 1 all so far where `whole` is set; its
          result has the columns of `step`
    """

    step: int
    body: Any
    whole: bool


Step = (
    GivenRows
    | Recurse
    | Pipeline
    | OrderGroups
    | SortRows
    | RepeatRows
    | LimitRows
    | MakeValues
    | JoinTexts
    | IndexRows
    | CountPairs
    | IndexRuns
    | InvertRows
    | FrameWords
)


@record
class Program:
    """Steps in order; the last pipeline's rows are the result, whose columns have these names and SQL types.

    exact  another program with the same result that sums floats on the wide path; run when a pipeline finds a value that
           three fixed-point lanes cannot hold
    before  the program whose one row's values are further literals of this one, behind those of the statement
    without_before  makes the program that computes these in every row: for when `before` fails, or has a NULL
    repeated  makes the program for a join whose build side has several rows of a key, which this one does not expect
    """

    steps: tuple[Step, ...]
    names: tuple[str, ...]
    types: tuple[SqlType, ...]
    tables: tuple[str, ...]
    result: int
    exact: Any = field(default=None, compare=False)
    repeated: Any = field(default=None, compare=False)
    before: Program | None = field(default=None, compare=False)
    without_before: Any = field(default=None, compare=False)

    @property
    def usual(self) -> Program:
        """The program that runs in this one's stead, as the data wanted it before; usually itself."""
        other = self.__dict__.get("_usual")
        return self if other is None else other.usual

    def usually(self, other: Program) -> None:
        """Note what to run from now on."""
        self.__dict__["_usual"] = other

    @cached_property
    def pipelines(self) -> tuple[tuple[int, Pipeline], ...]:
        """(step number, pipeline) in order."""
        return tuple((n, s) for n, s in enumerate(self.steps) if isinstance(s, Pipeline))

    @cached_property
    def last_used(self) -> tuple[tuple[int, ...], ...]:
        """Of each step, the steps before it (or itself) whose rows nothing reads once it is done; the result's stay."""
        last = list(range(len(self.steps)))
        for number, step in enumerate(self.steps):
            for other in steps_read(step):
                last[other] = number
        last[self.result] = len(self.steps)  # stays
        for number in reversed(
            range(len(self.steps))
        ):  # whoever reads its texts reads what their dictionaries are made of
            step = self.steps[number]
            for other in steps_read_by_outputs(step) if isinstance(step, Pipeline) else ():
                last[other] = max(last[other], last[number])
        found: list[list[int]] = [[] for _ in self.steps]
        for other, number in enumerate(last):
            if number < len(self.steps):
                found[number].append(other)
        return tuple(map(tuple, found))

    @cached_property
    def rows_as_they_come(self) -> int | None:
        """The last pipeline, where it emits the result; None where another step comes behind it."""
        last = self.steps[self.result]
        ends = self.result == len(self.steps) - 1 and isinstance(last, Pipeline) and isinstance(last.sink, EmitSink)
        return self.result if ends else None

    @cached_property
    def looked_up(self) -> frozenset[int]:
        """The steps whose groups are found by key: Probe reads them, or another pipeline adds to them."""
        found = {pipeline.sink.into for _, pipeline in self.pipelines if isinstance(pipeline.sink, GroupSink)}
        for _, pipeline in self.pipelines:
            found |= {slot.step for slot in pipeline.slots if isinstance(slot, GroupTableSlot)}
        return frozenset(step for step in found if step is not None)

    @cached_property
    def functions(self) -> tuple[Any, ...]:
        """The Python functions that it calls, each once."""
        slots = [slot for _, pipeline in self.pipelines for slot in pipeline.slots]
        found = {slot.function: None for slot in slots if isinstance(slot, FunctionSlot)}
        for step in self.steps:
            if isinstance(step, Recurse):
                found.update(dict.fromkeys(step.body.functions))
        return tuple(found)

    def verify(self) -> Program:
        """Check everything a device relies on; raises InternalError naming the instruction.  Returns the program.

        Every register is written before it is read, types agree with the variant, columns, slots and steps exist, what lies
        before a Compact is read behind it at its rows only, steps only look back, and a register's place in the arena
        overlaps another live register's only with equal width.
        """
        for number, step in enumerate(self.steps):
            if isinstance(step, Pipeline):
                _verify_pipeline(number, step, self.steps)
                continue
            if any(not 0 <= other < number for other in steps_read(step)):
                raise InternalError(f"program step looks forward: step {number}")
            if isinstance(step, IndexRows):
                _verify_index(number, step, self.steps)
            if isinstance(step, FrameWords):
                _verify_frames(number, step, self.steps)
        if not isinstance(self.steps[self.result], Pipeline):
            raise InternalError("a program's result must be a pipeline")
        return self


AT_ROWS = ("Pick", "PickValidity", "Emit", "Gather", "FirstReached", "FirstPassed", "Nearest")
"""Instructions that read columns and registers at row numbers, not row by row."""


class Place(NamedTuple):
    """Where an instruction stands; its text is made only for an error."""

    step: int
    line: int
    variant: Variant

    def __str__(self) -> str:
        return f"step {self.step}, instruction {self.line}: {self.variant}"


def steps_behind(thing: Any) -> Iterator[int]:
    """The steps whose results a slot, lookup table, dictionary or text function is made of."""
    match thing:
        case GroupTableSlot(step=step) | TupleColumn(step=step) | StepDictionary(step=step) | StepRowsSlot(step=step):
            yield step
        case TableSlot(table=inner) | TextTable(function=inner) | MappedDictionary(function=inner):
            yield from steps_behind(inner)
        case RankTable(dictionary=inner) | MemberTable(dictionary=inner) | CodeSlot(dictionary=inner):
            yield from steps_behind(inner)
        case PairSizeSlot(domain=inner):
            yield from steps_behind(inner)
        case TextFunction(domains=several) | UnionDictionary(parts=several):
            for inner in several:
                yield from steps_behind(inner)
        case TranslationTable(source=source, target=target):
            yield from steps_behind(source)
            yield from steps_behind(target)


def steps_read_by_outputs(pipeline: Pipeline) -> Iterator[int]:
    """The steps behind the dictionaries of the texts that a pipeline emits."""
    outputs = pipeline.sink.values if isinstance(pipeline.sink, EmitSink) else ()
    for output in outputs:
        yield from steps_behind(output.dictionary)


def steps_read(step: Step) -> Iterator[int]:
    """The steps that a step reads anything of."""
    match step:
        case Pipeline(source=source, sink=sink):
            others = [step.table_step, *(column.step for column in step.columns)]
            match source:
                case StepSource(steps=steps, order=order):
                    others += [*steps, order]
                case GroupSource(step=of, order=order, rows=rows):
                    others += [of, order, rows]
                case PairSource(step=of):
                    others.append(of)
            if isinstance(sink, GroupSink):
                others.append(sink.into)
            yield from (other for other in others if other is not None)
            for slot in step.slots:
                yield from steps_behind(slot)
            for _, message, _ in step.messages:
                yield from steps_behind(message)
            yield from steps_read_by_outputs(step)
        case MakeValues() | GivenRows():
            return
        case JoinTexts():
            yield from (step.step, step.rows, step.order, *steps_behind(step.dictionary))
        case IndexRuns():
            yield from (step.step, step.over)
        case _:
            yield step.step


def _verify_steps(number: int, pipeline: Pipeline) -> None:
    """Lookup tables and dictionaries are made of what earlier steps left."""
    outputs = pipeline.sink.values if isinstance(pipeline.sink, EmitSink) else ()
    for thing in (*pipeline.slots, *(output.dictionary for output in outputs)):
        if any(not 0 <= step < number for step in steps_behind(thing)):
            raise InternalError(f"a slot or dictionary looks forward: step {number}, {thing}")
    for column in pipeline.columns:
        if column.step is not None and not 0 <= column.step < number:
            raise InternalError(f"a column looks forward: step {number}, {column}")


def _verify_index(number: int, index: IndexRows, steps: tuple[Step, ...]) -> None:
    """Keys are words of a step's rows."""
    built = steps[index.step]
    values = built.sink.values if isinstance(built, Pipeline) and isinstance(built.sink, EmitSink) else ()
    if not index.words or any(
        not 0 <= word < len(values) or values[word].type is not RegisterType.I64 for word in index.words
    ):
        raise InternalError(f"no words of a key in step {index.step}: step {number}")
    if index.numbers and len(index.words) > 1:
        raise InternalError(f"a numbered key is one number: step {number}")


_FRAME_COLUMNS = {
    "add": ("i64",),
    "least": ("i64",),
    "greatest": ("i64",),
    "sum": ("f64", "mask"),
    "variance": ("f64", "mask"),
    "correlation": ("f64", "f64", "mask"),
    "covariance": ("f64", "f64", "mask"),
}


def _verify_frames(number: int, frames: FrameWords, steps: tuple[Step, ...]) -> None:
    """Frames are made of a step's u32 values, words of those that their kinds take."""
    left = steps[frames.step]
    values = left.sink.values if isinstance(left, Pipeline) and isinstance(left.sink, EmitSink) else ()

    def types(columns: tuple[int, ...]) -> tuple[str, ...]:
        return tuple(values[column].type.suffix if 0 <= column < len(values) else "" for column in columns)

    for runs in frames.frames:
        if not 1 <= len(runs) <= 3 or any(types(run) != ("u32", "u32") for run in runs):
            raise InternalError(f"a frame is no runs of rows of step {frames.step}: step {number}")
    for word in frames.words:
        if types(word.columns) != _FRAME_COLUMNS[word.kind] or not 0 <= word.frame < len(frames.frames):
            raise InternalError(f"a word of a frame has other columns than it takes: step {number}, {word}")


def _verify_key(pipeline: Pipeline, ins: Instruction, written: set[int], steps: tuple[Step, ...], where: Place) -> None:
    """The words of a key are written, and as many as the hash table's keys have."""
    keys, key_words = ins.operands[1], ins.operands[3].number
    sink: EmitSink | GroupSink | None = pipeline.sink
    if ins.variant.opcode.name == "Probe":
        table = ins.operands[4]
        slot = pipeline.slots[table.number] if table.kind == SLOT else None
        if not isinstance(slot, GroupTableSlot):
            raise InternalError(f"operand 4 must be the slot of a hash table: {where}")
        built = steps[slot.step]
        if isinstance(built, IndexRows):
            if built.numbers or len(built.words) != key_words:
                raise InternalError(f"no hash table with keys of {key_words} word(s): {where}")
            sink = None
        elif not isinstance(built, Pipeline):
            raise InternalError(f"step {slot.step} leaves no hash table: {where}")
        else:
            sink = built.sink
    if sink is not None and (not isinstance(sink, GroupSink) or sink.kind != "hash" or sink.key_words != key_words):
        raise InternalError(f"no hash table with keys of {key_words} word(s): {where}")
    if keys.kind == REGISTER and not written.issuperset(range(keys.number, keys.number + key_words)):
        raise InternalError(f"a word of the key is read before it is written: {where}")


def _verify_call(pipeline: Pipeline, line: int, where: Place) -> None:
    """A function is called, its arguments stand before, and they and its result have the types that it was compiled for."""
    out, status, alive, slot = pipeline.instructions[line].operands
    callee = pipeline.slots[slot.number] if slot.kind == SLOT else None
    if not isinstance(callee, FunctionSlot):
        raise InternalError(f"operand 3 must be the slot of a function: {where}")
    wanted = callee.function.registers
    before = -(-len(wanted) // ARGUMENTS_AT_ONCE)
    given = pipeline.instructions[max(0, line - before) : line]
    arguments = [operand for ins in given for operand in ins.operands][: len(wanted)]
    if any(ins.variant.opcode.name != "Arguments" for ins in given) or [a.type for a in arguments] != list(wanted):
        raise InternalError(f"a function's arguments are not those that it takes: {where}")
    if alive.kind != PLAIN and alive.type is not RegisterType.MASK:
        raise InternalError(f"operand 2 must be a mask: {where}")
    if out.type is not callee.function.result.register or (status.kind, status.type) != (REGISTER, RegisterType.U8):
        raise InternalError(f"a function's result has another type: {where}")


def _reads_in_range(pipeline: Pipeline, ins: Instruction, k: int) -> bool:
    """Another step's column is read at row numbers; row by row only where the source is one step's rows, of the same number."""
    column = pipeline.columns[ins.operands[k].number]
    return (
        column.step is None
        or (ins.variant.opcode.name in ("Gather", "FirstReached", "FirstPassed") and k == 1)
        or ins.variant.opcode.name in ("MatchProbe", "MatchBuild", "Nearest")
        or (isinstance(pipeline.source, StepSource) and len(pipeline.source.steps) == 1)
        or (
            isinstance(pipeline.source, GroupSource)
            and pipeline.source.rows is not None
            and column.step in (pipeline.source.rows, pipeline.source.order)
        )
    )


def _verify_pipeline(number: int, pipeline: Pipeline, steps: tuple[Step, ...]) -> None:
    _verify_steps(number, pipeline)
    counts = (len(pipeline.registers), len(pipeline.columns), len(pipeline.slots))
    written: set[int] = set()
    whole: set[int] | None = None  # registers from before a Compact
    for line, ins in enumerate(pipeline.instructions):
        variant, operands = ins
        opcode = variant.opcode
        where = Place(number, line, variant)
        if len(operands) != len(opcode.operands):
            raise InternalError(f"wrong number of operands: {where}")
        has_result = opcode.has_result
        left_out = whole if opcode.name not in AT_ROWS else None
        for k, (kind, index, _) in enumerate(operands):
            if kind != PLAIN and not 0 <= index < counts[kind]:
                raise InternalError(f"no such {KIND_NAMES[kind]} {index}: {where}")
            if kind == REGISTER and not (k == 0 and has_result) and k not in WRITTEN.get(opcode.name, ()):
                if index not in written:
                    raise InternalError(f"register {index} is read before it is written: {where}")
                if left_out is not None and index in left_out:
                    raise InternalError(f"register {index} has rows that Compact left out: {where}")
            elif kind == COLUMN:
                if not _reads_in_range(pipeline, ins, k):
                    raise InternalError(f"column {index} is another step's, read row by row: {where}")
                if left_out is not None:
                    raise InternalError(f"column {index} has rows that Compact left out: {where}")
        if opcode.role == "elementwise":
            _verify_types(pipeline, ins, where)
        elif opcode.name == "Compact":
            if whole is not None:
                raise InternalError(f"a pipeline is compacted twice: {where}")
            whole = set(written)
        elif opcode.name in ("GroupFind", "Probe"):
            _verify_key(pipeline, ins, written, steps, where)
        elif opcode.name == "Call":
            _verify_call(pipeline, line, where)
            written.add(operands[1].number)
        if has_result:
            kind, first, _ = operands[0]
            if kind != REGISTER:
                raise InternalError(f"a result must be a register: {where}")
            written.update(range(first, first + CONSECUTIVE.get(opcode.name, 1)))
    places: dict[int, int] = {}
    for register, (type_, offset) in enumerate(pipeline.registers):
        if offset + type_.width > pipeline.arena:
            raise InternalError(f"register {register} lies outside the arena: step {number}")
        if places.setdefault(offset, type_.width) != type_.width:
            raise InternalError(f"register {register} shares its place with one of another width: step {number}")


def _verify_types(pipeline: Pipeline, ins: Instruction, where: Place) -> None:
    """An elementwise instruction's operands are of its variant's types and forms."""
    form = ins.variant.form
    for k, ((kind, index, _), wanted) in enumerate(zip(ins.operands, ins.variant.signature, strict=True)):
        if k > 0 and form[k - 1] == "p":
            if kind != SLOT or not isinstance(pipeline.slots[index], TableSlot):
                raise InternalError(f"operand {k} must be a table slot: {where}")
            continue
        if kind == PLAIN:
            raise InternalError(f"operand {k} must be a value: {where}")
        if k > 0 and (form[k - 1] == "s") != (kind == SLOT):
            raise InternalError(f"operand {k} has the wrong form: {where}")
        if kind == REGISTER:
            found = pipeline.registers[index][0]
        else:
            found = (pipeline.columns if kind == COLUMN else pipeline.slots)[index].type
        if found is not wanted:
            raise InternalError(f"operand {k} is {found.suffix}, not {wanted.suffix}: {where}")
