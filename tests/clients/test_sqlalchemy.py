"""The SQLAlchemy dialect: DDL, types, transactions, reflection, the ORM; SQLAlchemy's own suite is run by the slow tests."""

from __future__ import annotations

import datetime
import os
import re
import subprocess
import sys
import warnings
from decimal import Decimal
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy import orm

import gpudb
import gpudb.server
from gpudb.sqlalchemy import HUGEINT, TINYINT, type_of

ROOT = Path(__file__).parents[2]
SUITE = Path(__file__).parent / "sqlalchemy_suite"
MOMENT = datetime.datetime(2020, 2, 29, 12, 30, 15, 250_000)


@pytest.fixture
def engine():
    """A database in memory of the test's own."""
    found = sa.create_engine("gpudb://")
    yield found
    found.dispose()


@pytest.fixture
def table(engine: sa.Engine) -> sa.Table:
    found = sa.Table(
        "t",
        sa.MetaData(),
        sa.Column("id", sa.Integer),
        sa.Column("name", sa.String(20), server_default="nobody"),
        sa.Column("ratio", sa.Float),
        sa.Column("price", sa.Numeric(9, 2)),
        sa.Column("at", sa.DateTime),
        sa.Column("day", sa.Date),
        sa.Column("select", sa.Boolean),
    )
    found.create(engine)
    return found


def test_values_of_every_type_come_back(engine: sa.Engine, table: sa.Table) -> None:
    row = (1, "one", 0.1, Decimal("12.50"), MOMENT, MOMENT.date(), True)
    with engine.begin() as connection:
        connection.execute(table.insert(), dict(zip(table.c.keys(), row, strict=True)))
        connection.execute(table.insert(), {"id": 2, "name": None})
        assert connection.execute(table.select().order_by(table.c.id)).all() == [row, (2, *[None] * 6)]


def test_reflection_gives_the_types_and_defaults_back(engine: sa.Engine, table: sa.Table) -> None:
    again = sa.Table("T", sa.MetaData(), autoload_with=engine)
    shown = [(column.name, str(column.type)) for column in again.columns]
    assert shown == [
        ("id", "INTEGER"),
        ("name", "VARCHAR"),
        ("ratio", "DOUBLE"),
        ("price", "DECIMAL(9, 2)"),
        ("at", "TIMESTAMP"),
        ("day", "DATE"),
        ("select", "BOOLEAN"),
    ]
    assert again.c.name.server_default.arg.text == "'nobody'"
    with pytest.raises(sa.exc.NoSuchTableError):
        sa.Table("nope", sa.MetaData(), autoload_with=engine)


@pytest.mark.parametrize(
    "kind", "BOOLEAN TINYINT SMALLINT INTEGER BIGINT HUGEINT FLOAT DOUBLE DATE TIMESTAMP VARCHAR".split()
)
def test_every_type_of_a_column_is_reflected(engine: sa.Engine, kind: str) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE TABLE one (a {kind})")
    (column,) = sa.inspect(engine).get_columns("one")
    assert isinstance(column["type"], type(type_of(kind))) and not isinstance(column["type"], sa.types.NullType)
    made = sa.Table("two", sa.MetaData(), sa.Column("a", column["type"]))
    made.create(engine)
    with engine.begin() as connection:
        names = connection.exec_driver_sql("SELECT DISTINCT data_type FROM information_schema.columns").all()
    assert names == [(kind,)]


def test_integers_of_8_and_128_bits_have_types_of_their_own(engine: sa.Engine) -> None:
    made = sa.Table("n", sa.MetaData(), sa.Column("small", TINYINT), sa.Column("huge", HUGEINT))
    made.create(engine)
    with engine.begin() as connection:
        connection.execute(made.insert(), {"small": -128, "huge": 2**60})
        assert connection.execute(made.select()).one() == (-128, 2**60)


def test_schemas_and_views_are_seen(engine: sa.Engine, table: sa.Table) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE SCHEMA s")
        connection.exec_driver_sql("CREATE TABLE s.u (x DOUBLE)")
        connection.exec_driver_sql("CREATE VIEW v AS SELECT id + 1 AS next FROM t")
    inspector = sa.inspect(engine)
    assert inspector.get_schema_names() == ["main", "s"]
    assert inspector.get_table_names() == ["t"] and inspector.get_table_names("s") == ["u"]
    assert inspector.get_view_names() == ["v"] and inspector.get_view_definition("v").startswith("CREATE VIEW v AS")
    assert inspector.has_table("u", "s") and not inspector.has_table("u")
    metadata = sa.MetaData()
    metadata.reflect(engine, schema="s")
    with engine.begin() as connection:
        connection.execute(metadata.tables["s.u"].insert(), [{"x": 1.5}, {"x": 2.5}])
        assert connection.execute(sa.select(sa.func.sum(metadata.tables["s.u"].c.x))).scalar() == 4.0


def test_a_transaction_is_kept_or_undone_as_a_whole(engine: sa.Engine, table: sa.Table) -> None:
    count = sa.select(sa.func.count()).select_from(table)
    with engine.connect() as connection:
        connection.execute(table.insert(), {"id": 1})
        assert connection.execute(count).scalar() == 1
        with engine.connect() as other:
            assert other.execute(count).scalar() == 0
        connection.rollback()
        assert connection.execute(count).scalar() == 0
    with pytest.raises(sa.exc.DataError), engine.begin() as connection:
        connection.execute(table.insert(), {"id": 1})
        connection.exec_driver_sql("SELECT CAST('x' AS INTEGER)")
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(table.insert(), {"id": 1})
        connection.rollback()
        assert connection.execute(count).scalar() == 1


def test_the_second_of_two_that_change_a_table_is_told(engine: sa.Engine, table: sa.Table) -> None:
    with engine.begin() as connection:
        connection.execute(table.insert(), {"id": 1})
    with engine.connect() as one, engine.connect() as other:
        one.execute(table.update().values(name="one"))
        other.execute(table.update().values(name="other"))
        one.commit()
        with pytest.raises(sa.exc.OperationalError, match="ConflictError"):
            other.commit()


def test_expressions_are_spelled_as_duckdb_does(engine: sa.Engine, table: sa.Table) -> None:
    names = ["alpha", "Beta", "gamma 3"]
    with engine.begin() as connection:
        connection.execute(table.insert(), [{"id": number, "name": name} for number, name in enumerate(names, 1)])

        def found(condition: sa.ColumnElement[bool]) -> list[int]:
            statement = sa.select(table.c.id).where(condition).order_by(table.c.id)
            return list(connection.execute(statement).scalars())

        assert found(table.c.name.ilike("BETA")) == [2] and found(table.c.name.not_ilike("b%")) == [1, 3]
        assert found(table.c.name.regexp_match("^[a-z]+$")) == [1] and found(~table.c.name.regexp_match("a")) == []
        assert found(table.c.name.in_([])) == [] and found(table.c.id.in_([1, 3])) == [1, 3]
        assert found(table.c.id.bitwise_xor(1) == 0) == [1]
        assert found(table.c.name.contains("m", autoescape=True)) == [3]
        assert found(table.c.price.is_distinct_from(None)) == []
        replaced = sa.select(table.c.name.regexp_replace("[0-9 ]", "")).where(table.c.id == 3)
        assert connection.execute(replaced).scalar() == "gamma"
        page = sa.select(table.c.id).order_by(table.c.id.desc()).limit(1).offset(1)
        assert connection.execute(page).scalars().all() == [2]
        other = table.alias("other")
        update = table.update().values(name=other.c.name).where(table.c.id == other.c.id - 1, other.c.id == 2)
        assert connection.execute(update).rowcount == 1
        gone = table.delete().where(table.c.name == "Beta").returning(table.c.id)
        assert sorted(connection.execute(gone).scalars()) == [1, 2]
        many = connection.execute(table.insert().returning(table.c.id), [{"id": 7}, {"id": 8}])
        assert sorted(many.scalars()) == [7, 8]


def test_the_orm_works_with_keys_that_the_program_gives(engine: sa.Engine) -> None:
    class Base(orm.DeclarativeBase):
        pass

    class Carrier(Base):
        __tablename__ = "carriers"
        code: orm.Mapped[str] = orm.mapped_column(primary_key=True)
        name: orm.Mapped[str | None]
        flights: orm.Mapped[list[Flight]] = orm.relationship(back_populates="carrier")

    class Flight(Base):
        __tablename__ = "flights"
        id: orm.Mapped[int] = orm.mapped_column(primary_key=True, autoincrement=False)
        code: orm.Mapped[str | None] = orm.mapped_column(sa.ForeignKey("carriers.code"))
        carrier: orm.Mapped[Carrier] = orm.relationship(back_populates="flights")

    globals().update(Flight=Flight)  # where the annotation above is looked up
    with pytest.warns(sa.exc.SAWarning, match="no foreign keys, they are left out of table flights"):
        Base.metadata.create_all(engine)
    with orm.Session(engine) as session:
        session.add(Carrier(code="UA", name="United", flights=[Flight(id=1), Flight(id=2)]))
        session.commit()
        session.get_one(Flight, 2).carrier = Carrier(code="AA")
        session.commit()
        united = session.scalars(sa.select(Carrier).where(Carrier.name == "United")).one()
        assert [flight.id for flight in united.flights] == [1]


def test_what_is_left_out_of_a_table_is_told(engine: sa.Engine) -> None:
    made = sa.Table("k", sa.MetaData(), sa.Column("a", sa.Integer, nullable=False, index=True))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made.create(engine)
    assert ["no indexes" in str(warning.message) for warning in caught] == [True]


def test_constraints_are_made_broken_and_reflected(engine: sa.Engine) -> None:
    made = sa.Table(
        "pairs",
        sa.MetaData(),
        sa.Column("a", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("b", sa.String, primary_key=True),
        sa.Column("c", sa.Integer, sa.CheckConstraint("c > 0", name="positive"), unique=True),
        sa.Column("d", sa.Integer, nullable=False, server_default="7"),
        sa.UniqueConstraint("d", "c", name="both"),
    )
    made.create(engine)
    with engine.begin() as connection:
        connection.execute(made.insert(), {"a": 1, "b": "x", "c": 1})
    for row, message in (
        ({"a": 1, "b": "x", "c": 2}, "PRIMARY KEY"),
        ({"a": 2, "b": "x", "c": 1}, "UNIQUE"),
        ({"a": 2, "b": "x", "c": -1}, "CHECK constraint failed: positive"),
        ({"a": 2, "b": None, "c": 5}, "NOT NULL"),
    ):
        with pytest.raises(sa.exc.IntegrityError, match=message), engine.begin() as connection:
            connection.execute(sa.text("INSERT INTO pairs (a, b, c) VALUES (:a, :b, :c)"), row)
    found = sa.inspect(engine)
    assert found.get_pk_constraint("pairs") == {"constrained_columns": ["a", "b"], "name": "pairs_a_b_pkey"}
    assert {one["name"]: one["column_names"] for one in found.get_unique_constraints("pairs")} == {
        "pairs_c_key": ["c"],
        "both": ["d", "c"],
    }
    assert found.get_check_constraints("pairs") == [{"name": "positive", "sqltext": "c > 0"}]
    assert [column["nullable"] for column in found.get_columns("pairs")] == [False, False, True, False]
    again = sa.Table("pairs", sa.MetaData(), autoload_with=engine)
    assert [column.name for column in again.primary_key] == ["a", "b"]


def test_a_directory_is_shared_with_other_connections_of_the_process(tmp_path: Path) -> None:
    engine = sa.create_engine(f"gpudb:///{tmp_path}/shop?threads=1")
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE t AS SELECT 1 AS a")
        assert connection.exec_driver_sql("SHOW threads").scalar() == "1"
    with gpudb.connect(tmp_path / "shop") as direct:
        assert direct.execute("SELECT a FROM t").fetchone() == (1,)
    engine.dispose()
    reading = sa.create_engine(f"gpudb:///{tmp_path}/shop?read_only=true")
    with pytest.raises(sa.exc.OperationalError, match="ReadOnlyError"), reading.begin() as connection:
        connection.exec_driver_sql("DROP TABLE t")
    reading.dispose()


def test_engines_in_memory_are_apart_and_their_threads_together() -> None:
    one, other = sa.create_engine("gpudb://"), sa.create_engine("gpudb://")
    with one.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE t AS SELECT 1 AS a")
        with one.connect() as second:
            assert second.connection.dbapi_connection is not connection.connection.dbapi_connection
    assert sa.inspect(one).get_table_names() == ["t"] and sa.inspect(other).get_table_names() == []
    with pytest.raises(sa.exc.ArgumentError, match="a server is gpudb"):
        sa.create_engine("gpudb://host/shop").connect()


def suite(uri: str) -> tuple[int, str]:
    """(how many of SQLAlchemy's own tests passed, the end of the output); a failing one fails here."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", SUITE, "-q", "--tb=short", "-p", "no:xdist"]
        + ["-p", "sqlalchemy.testing.plugin.pytestplugin", "-p", "tests.clients.sqlalchemy_suite.plugin"]
        + ["-p", "no:cacheprovider", "--dburi", uri, SUITE / "suite.py"],
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.fspath(ROOT)},
        capture_output=True,
        text=True,
        timeout=900,
    )
    counted = re.search(r"(\d+) passed", done.stdout)
    assert done.returncode == 0 and counted is not None, done.stdout[-5000:] + done.stderr[-2000:]
    return int(counted[1]), done.stdout[-300:]


@pytest.mark.slow
@pytest.mark.parametrize("place", ["here", "server"])
def test_sqlalchemys_own_tests_pass(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stated = re.search(r"(\d+) of them run", (ROOT / "gpudb/docs/clients.md").read_text())
    monkeypatch.setenv("GPUDB_RUNTIME_DIR", str(tmp_path))
    if place == "here":
        passed, end = suite("gpudb:///:memory:suite")
    else:
        with gpudb.server.serve(port=0) as server:
            passed, end = suite(server.uri.replace("grpc://", "gpudb+flight://"))
    assert stated is not None and passed >= int(stated[1]), end
