"""The structs that kernels take, as kernels/*.cuh declare them, and how host values are packed into them."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from gpudb.types import RegisterType

Pointer = ctypes.c_uint64
Word = ctypes.c_int64


def _struct(name: str, pointers: str, words: str) -> type[ctypes.Structure]:
    fields: list[tuple[str, Any]] = [(p, Pointer) for p in pointers.split()] + [(w, Word) for w in words.split()]
    return type(name, (ctypes.Structure,), {"_fields_": fields})


Launch = _struct(
    "Launch",
    "instructions groups columns slots outputs tile_counts tile_starts output_rows tile_done tables source arena next_tile "
    "cancel error flags profile top",
    "num_instructions num_groups num_tiles num_columns num_slots tile_rows arena_bytes top_rows tile_step staged_bytes",
)
GroupTable = _struct(
    "GroupTable", "words keys heads used slots", "stride capacity copies key_words head_mask numbers parts part"
)
MergeLaunch = _struct("MergeLaunch", "tables kinds full", "num_tables keyed")
RehashLaunch = _struct("RehashLaunch", "tables", "num_tables")
FillLaunch = _struct("FillLaunch", "words initial", "groups stride")
PresentLaunch = _struct("PresentLaunch", "words group counts", "groups stride workers")
SortLaunch = _struct("SortLaunch", "word keys_in keys_out rows_in rows_out counts range", "rows shift minimum stride")
SmallSortLaunch = _struct("SmallSortLaunch", "words rows_in rows_out spare", "rows num_words stride")
RepeatLaunch = _struct("RepeatLaunch", "counts sums rows_out", "rows")
CompactLaunch = _struct("CompactLaunch", "source target tile_counts tile_starts tile_offsets", "num_tiles width")
OffsetsLaunch = _struct("OffsetsLaunch", "tile_counts tile_starts tile_offsets result", "num_tiles")
IndexLaunch = _struct(
    "IndexLaunch",
    "word words first slots repeated records moved starts own lanes begins counts order",
    "rows size key_words slot_mask shift parts blocks all",
)
RunsLaunch = _struct("RunsLaunch", "order word begins counts", "rows plus size")
InvertLaunch = _struct("InvertLaunch", "order places", "rows")
WindowLaunch = _struct(
    "WindowLaunch",
    "column x y keep bounds sums prefix nodes words cancel",
    "rows stride runs workers greatest kind less",
)
PairsLaunch = _struct("PairsLaunch", "counts sums offsets", "rows least workers")
BitsLaunch = _struct("BitsLaunch", "source target ones", "rows")
TextLaunch = _struct("TextLaunch", "codes validity dictionary_offsets dictionary_bytes sums offsets bytes", "rows")

ROW_GROUP = np.dtype([(name, "<i8") for name in ("rows", "first_row", "first_tile", "first_output", "line")])

WORD_KINDS = {"add": 0, "min": 1, "max": 2, "arg": 3, "rest": 4, "and": 5, "xor": 6}
MASK64 = (1 << 64) - 1


def pack_slot(value: int | float, kind: RegisterType) -> tuple[int, int]:
    """A number as the two unsigned words of a slot."""
    if kind is RegisterType.F64:
        return int(np.float64(value).view(np.uint64)), 0
    if kind is RegisterType.F32:
        return int(np.float32(value).view(np.uint32)), 0
    number = int(value)
    return number & MASK64, (number >> 64) & MASK64
