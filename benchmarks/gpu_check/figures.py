"""Figures: what queries take on the device, as ratios of its own copy bandwidth, which is measured in the same run."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from benchmarks.equality import difference
from benchmarks.gpu_check import tables
from benchmarks.gpu_check.budget import Budget
from benchmarks.gpu_check.machine import Machine, Timing
from benchmarks.gpu_check.made_tables import ON_THE_HOST, Made, make
from benchmarks.report import Line, Report
from benchmarks.virginia.queries import make_queries
from benchmarks.workload import Query
from gpudb.session import Session

DUCKDB_ROWS = 10_000_000
GROUPS = tuple(10**power for power in range(1, 8))


@dataclass(frozen=True)
class Sizes:
    """rows of each table; repeat: later runs of a query; copied: bytes of the copy that bandwidth is measured by."""

    rows: int
    repeat: int
    copied: int
    row_group_rows: int = 1 << 20

    @property
    def groups(self) -> tuple[int, ...]:
        """Numbers of groups that so many rows can have."""
        return tuple(groups for groups in GROUPS if groups <= self.rows)


@dataclass
class Figures:
    """Measures on one machine and writes a line for each figure as soon as it is there.

    bandwidth  of a copy within the device's memory, bytes read and written a second
    """

    machine: Machine
    sizes: Sizes
    budget: Budget
    report: Report
    bandwidth: float = 0.0
    failed: int = 0

    def measure(self) -> bool:
        """All figures that the time allows, in the order of what they are worth; False where one failed."""
        self._one("copy bandwidth", self._copy)
        steps: list[tuple[str, Callable[[], None]]] = [
            ("scans", self._scans),
            ("a new shape", self._new_shape),
            ("CuPy", self._cupy),
            ("flights", self._flights),
            ("group-bys", self._group_bys),
            ("virginia", self._virginia),
            ("DuckDB", self._duckdb),
        ]
        for name, step in steps:
            if self.budget.over:
                self._line(figure=name, left_out="no time left")
            else:
                self._one(name, step)
            gc.collect()
            self.machine.free()
        return not self.failed

    def _one(self, name: str, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:  # one figure must not take the others with it
            self._failure(name, error)

    def _failure(self, figure: str, error: Exception | str, **more: Any) -> None:
        self.failed += 1
        text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        self._line(figure=figure, error=" ".join(text.split())[:500], **more)

    def _line(self, **line: Any) -> None:
        self.report.add({"benchmark": "gpu_check", "part": "figures", **line})
        shown = [f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in line.items()]
        self.report.note("  ".join(shown)[:240])

    # ------------------------------------------------------------------------------------------------ the yardstick

    def _copy(self) -> None:
        self.bandwidth = self.machine.copy_bandwidth(self.sizes.copied)
        self._line(figure="copy bandwidth", gb_s=self.bandwidth / 1e9, bytes=self.sizes.copied)

    def _query(self, figure: str, session: Session, sql: Sequence[str], rows: int, **more: Any) -> Timing | None:
        """One query's line; `sql` are texts of one shape.  None where it failed."""
        try:
            timing = self.machine.timed(session, sql)
        except Exception as error:
            self._failure(figure, error, rows=rows, **more)
            return None
        rate = timing.bytes_read / timing.device_s if timing.device_s else 0.0
        self._line(
            figure=figure,
            rows=rows,
            rows_out=timing.table.num_rows,
            device_s=timing.device_s,
            wall_s=timing.wall_s,
            first_s=timing.first_s,
            launches=timing.launches,
            bytes_read=timing.bytes_read,
            gb_s=rate / 1e9,
            of_copy=rate / self.bandwidth if self.bandwidth else None,
            rows_s=rows / timing.device_s if timing.device_s else None,
            **more,
        )
        return timing

    def _made(self, made: Made) -> Session:
        began = time.perf_counter()
        version = self.machine.make(made, self.sizes.rows, self.sizes.row_group_rows)
        self._line(
            figure=f"table {made.name}", rows=self.sizes.rows, bytes=version.nbytes, made_s=time.perf_counter() - began
        )
        return self.machine.session(version)

    def _each(self, queries: Sequence[Query], table: str, prefix: str, session: Session) -> Iterator[Timing | None]:
        for query in queries:
            if self.budget.over:
                self._line(figure=f"{prefix} {query.name}", left_out="no time left")
                continue
            sql = [query.sql(table, repeat) for repeat in range(self.sizes.repeat + 1)]
            yield self._query(f"{prefix} {query.name}", session, sql, self.sizes.rows)

    # ------------------------------------------------------------------------------------------------ steps

    def _scans(self) -> None:
        """Scans and filters over columns of 1 to 8 bytes."""
        session = self._made(tables.narrow())
        scans = {
            "count where 1 B": "SELECT count(*) FROM narrow WHERE tiny < {k}",
            "count where 2 B": "SELECT count(*) FROM narrow WHERE key < {k}00",
            "sum of 1 B": "SELECT sum(tiny), {k} FROM narrow",
            "sum of 2 B where 2 B": "SELECT sum(amount) FROM narrow WHERE key < {k}00",
            "sum of 4 B where 2 B": "SELECT sum(large) FROM narrow WHERE key < {k}00",
            "sum, min, max of an expression": "SELECT sum(amount * 2 + key), min(amount - key), max(large + {k}) FROM narrow",
            "exact sum of DOUBLE": "SELECT sum(price) FROM narrow WHERE tiny < {k}",
            "rows, 1 in 100": "SELECT key, amount FROM narrow WHERE key BETWEEN {k} AND {k} + 300",
            "first 100 by 4 B": "SELECT large, key FROM narrow WHERE tiny < {k} ORDER BY large LIMIT 100",
        }
        for name, text in scans.items():
            sql = [text.replace("{k}", str(100 + repeat)) for repeat in range(self.sizes.repeat + 1)]
            self._query(f"scan: {name}", session, sql, self.sizes.rows)

    def _flights(self) -> None:
        session = self._made(tables.flights())
        for _ in self._each(tables.flight_queries(), "flights", "flights", session):
            pass

    def _virginia(self) -> None:
        session = self._made(tables.virginia())
        for _ in self._each(make_queries(), "test", "virginia", session):
            pass

    def _group_bys(self) -> None:
        """Dense and scattered keys; the groups are aggregated again, so that few rows leave the device."""
        text = "SELECT count(*), sum(n), max(a + {k}) FROM (SELECT k, count(*) AS n, avg(v) AS a FROM keys GROUP BY k)"
        sql = [text.replace("{k}", str(repeat)) for repeat in range(self.sizes.repeat + 1)]
        for groups in self.sizes.groups:
            for dense in (True, False):
                name = f"group by {'dense' if dense else 'scattered'} key of {groups:,}"
                if self.budget.over:
                    self._line(figure=name, left_out="no time left")
                    continue
                version = self.machine.make(tables.keys(groups, dense), self.sizes.rows, self.sizes.row_group_rows)
                timing = self._query(name, self.machine.session(version), sql, self.sizes.rows, groups=groups)
                held = self.sizes.rows if timing is None else int(timing.table.column(1)[0].as_py())
                if held != self.sizes.rows:
                    self._failure(name, f"the groups hold {held} rows, not {self.sizes.rows}")
                del version

    def _new_shape(self) -> None:
        """Shapes that nobody has seen against the same ones again: wall seconds and the device's own, small and large."""
        version = self.machine.make(tables.narrow(), min(self.sizes.rows, 1 << 20), self.sizes.row_group_rows)
        session = self.machine.session(version)
        firsts, laters, first_device, later_device = [], [], [], []
        for number in range(12):
            items = ", ".join(f"sum(key * {k} + amount)" for k in range(2, 3 + number))
            sql = f"SELECT {items} FROM narrow WHERE tiny < 200 AND large > {number}"
            for walls, devices in ((firsts, first_device), (laters, later_device)):
                began = time.perf_counter()
                with self.machine.watched() as launched:
                    result = session.execute(sql)
                    result.table()
                walls.append(time.perf_counter() - began)
                devices.append(sum(seconds for _, seconds in launched))
                assert result.receipt["plan_cached"] == (walls is laters), "a shape that was seen, or was not"
        middle = statistics.median
        self._line(
            figure="a new shape",
            rows=version.num_rows,
            first_s=middle(firsts),
            later_s=middle(laters),
            more_s=middle(one - other for one, other in zip(firsts, laters, strict=True)),
            first_device_s=middle(first_device),
            later_device_s=middle(later_device),
        )

    def _cupy(self) -> None:
        """The same filter and sums written as CuPy expressions over arrays that lie on the device."""
        if self.machine.no_cupy is not None:
            self._line(figure="CuPy", left_out=self.machine.no_cupy)
            return
        import cupy

        rows = self.sizes.rows
        version = self.machine.make(tables.narrow(), rows, rows)  # one row group: CuPy gets whole columns
        chunks = dict(zip((name for name, _ in version.columns), version.row_groups[0].chunks, strict=True))
        arrays = {name: cupy.ndarray((rows,), chunk.dtype, chunk.stored) for name, chunk in chunks.items()}
        session = self.machine.session(version)
        pipelines: dict[str, tuple[str, Callable[[], Any]]] = {
            "sum of 2 B where 2 B": (
                "SELECT sum(amount) FROM narrow WHERE key < 15000",
                lambda: cupy.where(arrays["key"] < 15000, arrays["amount"], 0).sum(dtype=cupy.int64),
            ),
            "expression": (
                "SELECT sum(amount * 2 + key) FROM narrow WHERE tiny < 100 AND large > 1000000",
                lambda: cupy.where(
                    (arrays["tiny"] < 100) & (arrays["large"] > 1000000),
                    arrays["amount"].astype(cupy.int32) * 2 + arrays["key"],
                    0,
                ).sum(dtype=cupy.int64),
            ),
        }
        for name, (sql, expression) in pipelines.items():
            ours = self.machine.timed(session, [sql] * (self.sizes.repeat + 1))
            theirs = expression()
            stream = cupy.cuda.get_current_stream()
            times = []
            for _ in range(self.sizes.repeat):
                start, stop = cupy.cuda.Event(), cupy.cuda.Event()
                start.record(stream)
                expression()
                stop.record(stream)
                stop.synchronize()
                times.append(cupy.cuda.get_elapsed_time(start, stop) / 1e3)
            equal = int(ours.table.column(0)[0].as_py()) == int(theirs)
            self.failed += not equal
            middle = statistics.median(times)
            self._line(
                figure=f"CuPy: {name}",
                rows=rows,
                device_s=ours.device_s,
                wall_s=ours.wall_s,
                cupy_s=middle,
                cupy_over_ours=middle / ours.device_s,
                equal=equal,
            )

    def _duckdb(self) -> None:
        """Q1-Q17 over the first rows, on this machine's processors, with both answers compared."""
        try:
            import duckdb
        except ImportError:
            self._line(figure="DuckDB", left_out="DuckDB is not installed")
            return
        rows = min(self.sizes.rows, DUCKDB_ROWS)
        made = tables.flights()
        host = make(made, rows, ON_THE_HOST, self.sizes.row_group_rows).to_arrow()
        session = self.machine.session(self.machine.make(made, rows, self.sizes.row_group_rows))
        connection = duckdb.connect()
        connection.register("source", host)
        connection.execute("CREATE TABLE flights AS SELECT * FROM source")
        for query in tables.flight_queries():
            if self.budget.over:
                self._line(figure=f"DuckDB {query.name}", left_out="no time left")
                continue
            sql = [query.sql("flights", repeat) for repeat in range(min(self.sizes.repeat, 3) + 1)]
            ours = self.machine.timed(session, sql)
            theirs = []
            for text in sql:
                began = time.perf_counter()
                connection.sql(text).to_arrow_table()
                theirs.append(time.perf_counter() - began)
            expected: pa.Table = connection.sql(query.sql("flights", len(sql) - 1, limited=False)).to_arrow_table()
            problem = difference(ours.table, expected, order_by=query.order_by, limit=query.limit)
            self.failed += problem is not None
            middle = statistics.median(theirs[1:])
            line: Line = {"figure": f"DuckDB {query.name}", "rows": rows, "wall_s": ours.wall_s, "duckdb_s": middle}
            self._line(**line, duckdb_over_ours=middle / ours.wall_s, equal=problem is None, problem=problem)
