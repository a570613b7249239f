"""Names of columns: what a FROM clause offers, and how a reference finds it."""

from __future__ import annotations

from dataclasses import dataclass

from gpudb.errors import BindError
from gpudb.planner.bind.context import closest
from gpudb.planner.expressions import Column, Span
from gpudb.planner.logical import OutputColumn


@dataclass(frozen=True)
class Scope:
    """The columns of one relation: a table, a subquery, or nothing.

    relation  its alias, or the table's name; None for nothing
    columns   (name, type) in order; a Column's index counts them
    """

    relation: str | None
    columns: tuple[OutputColumn, ...]

    def find(self, name: str, relation: str | None, span: Span | None) -> Column | None:
        """The column of a name (in any case), None where there is none.  Two of a name are a BindError."""
        if relation is not None and not self.is_called(relation):
            return None
        wanted = name.lower()
        found = [index for index, (column, _) in enumerate(self.columns) if column.lower() == wanted]
        if not found:
            return None
        if len(found) > 1:
            raise BindError(f"column name is ambiguous: {name}", span=span)
        column, type_ = self.columns[found[0]]
        return Column(type_, found[0], column, span=span)

    def is_called(self, relation: str) -> bool:
        return self.relation is not None and self.relation.lower() == relation.lower()

    def missing(self, name: str, relation: str | None, span: Span | None, aliases: list[str]) -> BindError:
        """The error for a reference that finds nothing, with what was probably meant."""
        if relation is not None and not self.is_called(relation):
            hint = f"did you mean {self.relation}.{name}?" if self.relation is not None else None
            return BindError(f"table not found in FROM: {relation}", span=span, hint=hint)
        names = [column for column, _ in self.columns]
        best = closest(name, [*names, *aliases])
        hint = f"did you mean {best}?" if best else None
        if hint is None and 0 < len(names) <= 12:
            hint = f"there are: {', '.join(names)}"
        return BindError(f"column not found: {name}", span=span, hint=hint)
