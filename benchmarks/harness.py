"""Runs a workload on several engines, in turns, and checks every answer against DuckDB's."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from benchmarks.equality import difference
from benchmarks.process import EngineProcess, Failed, Measured, Ready, Request
from benchmarks.report import SUBJECT, Line, Report, table_row
from benchmarks.workload import Query, Workload

ORACLE = "duckdb"
SLOW_S = 10.0  # a query above this is repeated SLOW_REPEATS times only
SLOW_REPEATS = 2
CHECKED_REPEATS = (0, 1)  # the published literals, and one set that a cached plan meets


@dataclass
class Runs:
    """One engine's runs of one query: seconds of the first and of the later ones, or why it failed."""

    cold_s: float | None = None
    hot_s: list[float] = field(default_factory=list)
    last: Measured | None = None
    published_rows: int | None = None
    failure: str | None = None

    @property
    def slow(self) -> bool:
        """Has any run taken longer than SLOW_S?"""
        return max([self.cold_s or 0.0, *self.hot_s]) > SLOW_S


def measure(
    workload: Workload, peer_names: Sequence[str], threads: int, repeat: int, report: Report, device: str = "auto"
) -> bool:
    """Measures every query on our engine and the peers, adds the lines to the report.

    Returns True when our engine answered everything and, where DuckDB is among the peers, equally.
    """
    engines, good = _start(workload, peer_names, threads, device, report)
    try:
        for query in workload.queries if engines else ():
            with tempfile.TemporaryDirectory(prefix="gpudb-benchmark-") as folder:
                runs = {engine.name: Runs() for engine in engines}
                for turn in range(repeat + 1):
                    for engine in engines:
                        _take_turn(engine, query, turn, runs[engine.name], Path(folder))
                verdicts = _verdicts(engines, query, runs, Path(folder))
                selectivity = _selectivity(engines, query, workload)
            lines = [
                _line(workload, query, engine, threads, runs[engine.name], verdicts, selectivity) for engine in engines
            ]
            for line in lines:
                report.add(line)
                if line["engine"] == SUBJECT and (line["median_s"] is None or line["equal"] is False):
                    good = False
                for problem in ("error", "difference"):
                    if problem in line:
                        report.note(f"     {query.name} {line['engine']}: {line[problem]}")
            report.note(table_row(lines))
    finally:
        for engine in engines:
            engine.close()
    return good


def _start(
    workload: Workload, peer_names: Sequence[str], threads: int, device: str, report: Report
) -> tuple[list[EngineProcess], bool]:
    """The engines that started, ours first, and whether ours and DuckDB, where asked for, are among them."""
    engines = []
    good = True
    for name in [SUBJECT, *(name for name in peer_names if name != SUBJECT)]:
        engine = EngineProcess(name, workload, threads, device)
        if isinstance(engine.ready, Ready):
            engines.append(engine)
            loaded = f"loaded {workload.rows:,} rows in {engine.ready.load_s:.1f} s"
            report.note(f"{workload.name}: {name} {engine.ready.version} {loaded}")
            continue
        problem = "missing" if engine.ready.missing else "error"
        report.add({"benchmark": workload.name, "engine": name, problem: engine.ready.reason})
        report.note(f"{workload.name}: {name} left out: {engine.ready.reason}")
        good = good and name not in (SUBJECT, ORACLE)
        engine.close()
    return engines, good


def _take_turn(engine: EngineProcess, query: Query, turn: int, runs: Runs, folder: Path) -> None:
    """Turn 0 is the cold run."""
    if runs.failure is not None or (turn > SLOW_REPEATS and runs.slow):
        return
    keep = str(_kept(folder, engine.name, turn)) if turn in CHECKED_REPEATS else None
    outcome = engine.run(Request(query, turn, cold=turn == 0, keep=keep))
    if isinstance(outcome, Failed):
        runs.failure = outcome.reason
    elif turn == 0:
        runs.cold_s, runs.published_rows, runs.last = outcome.seconds, outcome.rows_out, outcome
    else:
        runs.hot_s.append(outcome.seconds)
        runs.last = outcome


def _kept(folder: Path, engine: str, repeat: int) -> Path:
    return folder / f"{engine}-{repeat}.arrow"


def _read(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_stream(source).read_all()


def _verdicts(
    engines: Sequence[EngineProcess], query: Query, runs: dict[str, Runs], folder: Path
) -> dict[str, str | None]:
    """Engine → the first difference from DuckDB's answer, None when equal; those not comparable are left out."""
    oracle = next((engine for engine in engines if engine.name == ORACLE), None)
    if oracle is None or runs[ORACLE].failure is not None:
        return {}
    verdicts: dict[str, str | None] = {}
    for repeat in CHECKED_REPEATS:
        path = _kept(folder, ORACLE, repeat)
        if query.limit is not None and path.exists():
            outcome = oracle.run(Request(query, repeat, limited=False, keep=str(path)))
            if isinstance(outcome, Failed):
                continue
        if not path.exists():
            continue
        expected = _read(path)
        for engine in engines:
            if engine is oracle or runs[engine.name].failure is not None or verdicts.get(engine.name) is not None:
                continue
            verdicts[engine.name] = difference(
                _read(_kept(folder, engine.name, repeat)),
                expected,
                order_by=query.order_by,
                limit=query.limit,
                values_only=engine.name != SUBJECT,
            )
    return verdicts


def _selectivity(engines: Sequence[EngineProcess], query: Query, workload: Workload) -> float | None:
    """Share of the rows that WHERE keeps, by DuckDB; None without it, and for a query over several tables."""
    oracle = next((engine for engine in engines if engine.name == ORACLE), None)
    if oracle is None or query.statement:
        return None
    if not query.where:
        return 1.0
    with tempfile.TemporaryDirectory(prefix="gpudb-benchmark-") as folder:
        path = Path(folder) / "count.arrow"
        if isinstance(oracle.run(Request(query.counting(), 0, keep=str(path))), Failed):
            return None
        return float(_read(path).column(0)[0].as_py()) / workload.rows


def _line(
    workload: Workload,
    query: Query,
    engine: EngineProcess,
    threads: int,
    runs: Runs,
    verdicts: dict[str, str | None],
    selectivity: float | None,
) -> Line:
    """One measurement; `equal` is None where nothing was compared, and DuckDB's own line says None too."""
    assert isinstance(engine.ready, Ready), "only engines that started are measured"
    worked = runs.failure is None and runs.hot_s
    line: Line = {
        "benchmark": workload.name,
        "query": query.name,
        "engine": engine.name,
        "version": engine.ready.version,
        "device": runs.last.device if runs.last else None,
        "threads": threads,
        "rows": workload.rows,
        "rows_out": runs.published_rows,
        "selectivity": selectivity,
        "cold_s": runs.cold_s,
        "min_s": min(runs.hot_s) if worked else None,
        "median_s": statistics.median(runs.hot_s) if worked else None,
        "bytes_read": runs.last.bytes_read if runs.last else None,
        "equal": verdicts[engine.name] is None if engine.name in verdicts else None,
    }
    if runs.failure is not None:
        line["error"] = runs.failure
    if verdicts.get(engine.name) is not None:
        line["difference"] = verdicts[engine.name]
    return line
