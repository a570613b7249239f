"""Pipelines still open, and what closed ones left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gpudb.planner.emit.builder import PipelineBuilder, Value
from gpudb.planner.emit.expressions import ExpressionEmitter
from gpudb.program import Operand
from gpudb.record import record


class LazyValues(Sequence[Value]):
    """Values of a node's columns, made when first asked for: what is not used costs nothing."""

    def __init__(self, makers: Sequence[Callable[[], Value]]) -> None:
        self._makers = makers
        self._made: dict[int, Value] = {}

    def __len__(self) -> int:
        return len(self._makers)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        found = self._made.get(index)
        if found is None:
            found = self._made[index] = self._makers[index]()
        return found


@record(frozen=False)
class Stream:
    """An open pipeline, the values of its columns, and the mask of rows still alive (None: all)."""

    builder: PipelineBuilder
    values: Sequence[Value]
    alive: Operand | None
    row_bound: int
    filtered: bool = False

    def compact(self) -> None:
        """Go on with the rows alive only: their number is what the rest costs."""
        if self.alive is not None:
            self.builder.compact(self.alive)
            self.alive = None

    def emitter(self) -> ExpressionEmitter:
        """An expression emitter over this stream's columns."""
        return ExpressionEmitter(self.builder, self.values, self.alive)


@record
class Left:
    """What a closed pipeline left: its step and what each column is."""

    steps: tuple[int, ...]
    columns: tuple[Value, ...]
    row_bound: int
    order: int | None = None
