"""Names of columns: what a FROM clause offers, and how a reference finds it."""

from __future__ import annotations

from collections.abc import Sequence

from gpudb.errors import BindError
from gpudb.planner.bind.context import closest
from gpudb.planner.expressions import Column, Span
from gpudb.planner.logical import HIDDEN, OutputColumn
from gpudb.record import record


@record
class Relation:
    """A name in FROM, and which columns of the scope are its own: start .. stop."""

    name: str
    start: int
    stop: int


@record
class Scope:
    """The columns of a FROM clause: of a table, a subquery, a join of several, or nothing.

    relation   the alias, or the table's name, of the only relation; None for nothing, and for a join
    columns    (name, type) in order; a Column's index counts them
    relations  of a join: its named relations
    shown      of a join: the columns that `*` and names without a relation see, in the order of `*`
    """

    relation: str | None
    columns: tuple[OutputColumn, ...]
    relations: tuple[Relation, ...] | None = None
    shown: tuple[int, ...] | None = None

    def named(self) -> tuple[Relation, ...]:
        """The named relations."""
        if self.relations is not None:
            return self.relations
        return () if self.relation is None else (Relation(self.relation, 0, len(self.columns)),)

    def visible(self, relation: str | None = None) -> Sequence[int]:
        """The columns that `*` or `relation.*` stands for, by index."""
        if relation:
            found = self._relation(relation)
            return range(0) if found is None else range(found.start, found.stop)
        return range(len(self.columns)) if self.shown is None else self.shown

    def find(self, name: str, relation: str | None, span: Span | None) -> Column | None:
        """The column of a name (in any case), None where there is none.  Two of a name are a BindError."""
        wanted = name.lower()
        found = [index for index in self.visible(relation) if self.columns[index][0].lower() == wanted]
        if not found:
            return None
        if len(found) > 1:
            raise BindError(f"column name is ambiguous: {name}", span=span, hint=self._qualified(name, found))
        column, type_ = self.columns[found[0]]
        return Column(type_, found[0], column, span=span)

    def _qualified(self, name: str, found: list[int]) -> str | None:
        owners = [r.name for index in found for r in self.named() if r.start <= index < r.stop]
        return f"write {' or '.join(f'{owner}.{name}' for owner in owners)}" if len(set(owners)) > 1 else None

    def is_called(self, relation: str) -> bool:
        return self._relation(relation) is not None

    def _relation(self, name: str) -> Relation | None:
        return next((relation for relation in self.named() if relation.name.lower() == name.lower()), None)

    def missing(self, name: str, relation: str | None, span: Span | None, aliases: list[str]) -> BindError:
        """The error for a reference that finds nothing, with what was probably meant."""
        if relation is not None and not self.is_called(relation):
            there = [known.name for known in self.named()]
            best = there[0] if len(there) == 1 else closest(relation, there)
            hint = f"did you mean {best}.{name}?" if best is not None else None
            return BindError(f"table not found in FROM: {relation}", span=span, hint=hint)
        seen = [self.columns[index][0] for index in self.visible(relation)]
        names = [column for column in seen if not column.startswith(HIDDEN)]
        best = closest(name, [*names, *aliases])
        hint = f"did you mean {best}?" if best else None
        if hint is None and 0 < len(names) <= 12:
            hint = f"there are: {', '.join(names)}"
        return BindError(f"column not found: {name}", span=span, hint=hint)
