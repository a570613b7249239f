"""The prologue: fills a pipeline's parameter slots for one execution.

Pure host functions from literals, dictionaries and chunk metadata to numbers and lookup tables; nothing here is per row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpudb.calendar import MICROSECONDS_A_DAY
from gpudb.functions.interval_values import packed
from gpudb.program import (
    BaseSlot,
    CodeSlot,
    ConstantIntervalSlot,
    ConstantSlot,
    DaySlot,
    FunctionSlot,
    GroupTableSlot,
    MemberTable,
    PairSizeSlot,
    Pipeline,
    PlainSlot,
    PlainTable,
    RangeDomain,
    RangeSlot,
    RankTable,
    ScaleSlot,
    StepRowsSlot,
    TableSlot,
    TextTable,
    TranslationTable,
)
from gpudb.storage.column import Chunk, padded_copy
from gpudb.types import Interval, RegisterType
from gpudb.vm.texts import Texts

R = RegisterType
HIGHEST = {
    R.MASK: 1,
    R.U8: (1 << 8) - 1,
    R.U16: (1 << 16) - 1,
    R.U32: (1 << 32) - 1,
    R.I64: (1 << 63) - 1,
    R.I128: (1 << 127) - 1,
}
NEVER = (1, 0)


class Prologue:
    """Fills slots: `constants` once an execution, `of_chunk` those that differ from row group to row group."""

    def __init__(self, pipeline: Pipeline, constant: Callable[[Any], Any], texts: Texts) -> None:
        self._slots = pipeline.slots
        self._constant = constant
        self._texts = texts
        self._shared = [self._fill(slot) for slot in pipeline.slots]
        self._per_chunk = [k for k, value in enumerate(self._shared) if value is None]

    def slots(self, chunks: tuple[Chunk, ...] | None) -> list[Any]:
        """All slots for one row group, whose chunks are given per pipeline input column."""
        if not self._per_chunk:
            return self._shared
        assert chunks is not None, "a slot of chunk metadata in a pipeline without chunks"
        values = list(self._shared)
        for k in self._per_chunk:
            values[k] = self._of_chunk(self._slots[k], chunks)
        return values

    def _fill(self, slot: Any) -> Any:
        match slot:
            case PlainSlot(value=value):
                return value
            case ConstantSlot(expression=expression):
                value = self._constant(expression)
                if isinstance(value, Interval):
                    return packed(value)
                return 0 if value is None else value
            case ConstantIntervalSlot(expression=expression, part=part):
                return getattr(self._constant(expression), part)
            case CodeSlot(dictionary=dictionary, expression=expression, side=side):
                code = self._texts.code(dictionary, self._constant(expression))
                if code is None:
                    return NEVER[side == "high"]
                return code
            case PairSizeSlot(domain=domain):
                if isinstance(domain, RangeDomain):
                    return domain.high - domain.low + 1
                return len(self._texts.dictionary(domain))
            case TableSlot(table=table):
                return self._table(table)
            case GroupTableSlot(step=step):
                return self._texts.group_table(step)
            case StepRowsSlot(step=step):
                return self._texts.rows_of(step)
            case FunctionSlot(function=function):
                return function
        return None

    def _table(self, table: Any) -> np.ndarray | None:
        match table:
            case PlainTable(element=element, entries=entries):
                return padded_copy(np.frombuffer(entries, element.dtype), element.dtype)
            case TextTable(function=function, element=element, part=part):
                return self._texts.table(function, element, part)
            case TranslationTable(source=source, target=target):
                return self._texts.translation(source, target)
            case RankTable(dictionary=dictionary, inverse=inverse):
                return self._texts.ranks(dictionary, inverse)
            case MemberTable(dictionary=dictionary, items=items) if dictionary is not None:
                member = np.zeros(len(self._texts.dictionary(dictionary)), np.uint8)
                for item in items:
                    code = self._texts.code(dictionary, self._constant(item))
                    if code is not None:
                        member[code] = 1
                return padded_copy(member, np.uint8)
        return None

    def _of_chunk(self, slot: Any, chunks: tuple[Chunk, ...]) -> Any:
        match slot:
            case BaseSlot(column=column, type=kind, plus=plus):
                chunk = chunks[column]
                if kind.is_float:
                    return chunk.minimum if chunk.minimum is not None else 0.0
                return plus + (chunk.base if chunk.minimum is not None else 0)
            case DaySlot(column=column, part=part):
                day, rest = divmod(chunks[column].base, MICROSECONDS_A_DAY)
                return day if part == "day" else rest
            case ScaleSlot(column=column):
                return chunks[column].scale
            case RangeSlot():
                low, high = self.stored_range(slot, chunks[slot.column])
                return low if slot.side == "low" else high
            case TableSlot(table=MemberTable(column=column, items=items)):
                assert column is not None
                return self._members(chunks[column], items)
        raise AssertionError(f"unknown slot: {slot}")

    def stored_range(self, slot: RangeSlot, chunk: Chunk) -> tuple[int, int]:
        """A closed range of SQL values as a range of stored values; low > high where none can match."""
        highest = HIGHEST[slot.type]
        lowest = -highest - 1 if slot.type in (R.I64, R.I128) else 0
        low, high = lowest, highest
        scale = chunk.scale
        if slot.low is not None:
            bound = self._constant(slot.low)
            if bound is None:
                return NEVER
            bound = bound + 1 if slot.low_open else bound
            low = -((chunk.base - bound) // scale)
        if slot.high is not None:
            bound = self._constant(slot.high)
            if bound is None:
                return NEVER
            bound = bound - 1 if slot.high_open else bound
            high = (bound - chunk.base) // scale
        if low > high or low > highest or high < lowest:
            return NEVER
        return max(low, lowest), min(high, highest)

    def _members(self, chunk: Chunk, items: tuple[Any, ...]) -> np.ndarray:
        size = 256 if chunk.dtype is not None and chunk.dtype.itemsize == 1 else 65536
        member = np.zeros(size, np.uint8)
        for item in items:
            value = self._constant(item)
            stored, rest = divmod(value - chunk.base, chunk.scale)
            if rest == 0 and 0 <= stored < size:
                member[stored] = 1
        return padded_copy(member, np.uint8)

    def may_match(self, zones: tuple[tuple[int, int], ...], chunks: tuple[Chunk, ...]) -> bool:
        """Could a row of these chunks pass every zone test?  By minimum and maximum only."""
        for low_slot, _ in zones:
            slot = self._slots[low_slot]
            assert isinstance(slot, RangeSlot), "a zone test is a range test"
            chunk = chunks[slot.column]
            if chunk.minimum is None:
                return False
            low = None if slot.low is None else self._constant(slot.low)
            high = None if slot.high is None else self._constant(slot.high)
            if low is not None and (chunk.maximum < low or (slot.low_open and chunk.maximum == low)):
                return False
            if high is not None and (chunk.minimum > high or (slot.high_open and chunk.minimum == high)):
                return False
        return True
