"""What the planner may know of the data: a protocol, so that the planner touches no data, no device and no file.

Statistics are rounded outwards (ranges and row bounds to powers of two), so that ordinary appends keep cached plans.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from gpudb.types import RegisterType, SqlType


@dataclass(frozen=True)
class ColumnLayout:
    """How one column of a table version is stored, as far as `emit` relies on it; part of the plan cache's key.

    stored    register type of the stored values: U8 U16 U32 I64 (integers, codes), MASK, F32, F64; None: one constant a
              row group, nothing stored
    has_nulls whether validity bits are stored
    low, high inclusive bounds of the SQL value behind it (scaled integer), rounded outwards; for text of the code;
              for floats bounds as Python floats (None when NaN or an infinity occurs)
    encoded   True where value = base + scale * stored needs doing; False where stored is the value
    distinct  upper bound of distinct values, rounded up to a power of two (dictionary size, or range), or None
    """

    stored: RegisterType | None
    has_nulls: bool
    low: int | float | None
    high: int | float | None
    encoded: bool
    distinct: int | None = None


@dataclass(frozen=True)
class TableLayout:
    """One table version as the planner sees it.

    name        the catalog's key
    columns     (name as written, SQL type) in order
    layouts     one ColumnLayout a column
    row_bound   power of two that no later version of this layout exceeds
    version     changes whenever anything here changes
    """

    name: str
    columns: tuple[tuple[str, SqlType], ...]
    layouts: tuple[ColumnLayout, ...]
    row_bound: int
    version: int


class Catalog(Protocol):
    """Names to tables; implemented by the session over its pinned versions."""

    def table(self, name: str) -> TableLayout | None:
        """The table or registered relation called `name` (case-insensitive), or None."""

    def table_names(self) -> list[str]:
        """All names, for hints and SHOW TABLES."""

    def file(self, paths: tuple[str, ...], file_format: str, options: dict[str, object]) -> TableLayout:
        """The rows of files as a relation of this statement: `FROM 'f.parquet'`, `read_csv('*.csv', ...)`.

        file_format  auto, csv, parquet or arrow; auto looks at the content.  Raises InputError, which the binder gives
        the place in the SQL.
        """
