"""Every function's documented example is right: in DuckDB, and in gpudb."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from gpudb.functions.cast_text import print_values
from gpudb.functions.registry import FUNCTIONS, Function
from gpudb.types import SqlType, decimal
from tests.functions import oracle
from tests.functions.test_functions import OURS

EXAMPLE = re.compile(r'>>> sql\("(?P<sql>.*)"\)\n(?P<value>.*)')
KINDS = {
    pa.bool_(): "BOOLEAN", pa.int8(): "TINYINT", pa.int16(): "SMALLINT", pa.int32(): "INTEGER", pa.int64(): "BIGINT",
    pa.uint8(): "UTINYINT", pa.uint16(): "USMALLINT", pa.uint32(): "UINTEGER", pa.uint64(): "UBIGINT", pa.float32(): "REAL",
    pa.float64(): "DOUBLE", pa.string(): "VARCHAR", pa.date32(): "DATE", pa.timestamp("us"): "TIMESTAMP", pa.time64("us"): "TIME",
    pa.month_day_nano_interval(): "INTERVAL", pa.binary(): "BLOB",
}  # fmt: skip


def functions() -> list[Function]:
    return [f for name, f in sorted(FUNCTIONS.items()) if name == f.name]


def examples() -> list[tuple[Function, str, str]]:
    return [(f, m["sql"], m["value"].strip()) for f in functions() for m in EXAMPLE.finditer(f.doc)]


def shown(table: pa.Table) -> str:
    """One row as the examples write it: values as VARCHAR, between bars."""
    texts: list[str] = []
    for column in table.columns:
        array = column.combine_chunks()
        type_ = array.type
        if pa.types.is_null(type_):
            texts.append("NULL")
            continue
        if pa.types.is_decimal(type_):
            source = (
                SqlType("HUGEINT")
                if type_.scale == 0 and type_.precision == 38
                else decimal(type_.precision, type_.scale)
            )
        else:
            source = SqlType(KINDS[type_])
        text = print_values(array, source)[0].as_py()
        texts.append("NULL" if text is None else text)
    return " | ".join(texts)


def test_every_function_has_an_example() -> None:
    assert [f.name for f in functions() if not EXAMPLE.search(f.doc)] == []


@pytest.mark.parametrize(
    ("function", "sql", "value"), examples(), ids=lambda x: x.name if isinstance(x, Function) else ""
)
def test_example_is_what_duckdb_gives(function: Function, sql: str, value: str) -> None:
    if function.name.startswith(OURS):
        pytest.skip("a function of gpudb alone")
    assert shown(oracle.connection().sql(sql.replace("\\\\", "\\")).to_arrow_table()) == value


@pytest.fixture(scope="module")
def gpudb_connection():  # noqa: ANN201 - the session's type is not there before it is
    import gpudb

    try:
        connection = gpudb.connect()
        connection.execute("SELECT 1").fetch_arrow_table()
    except (ImportError, AttributeError) as error:
        pytest.skip(f"no session to run SQL yet: {error}")
    return connection


@pytest.mark.parametrize(
    ("function", "sql", "value"), examples(), ids=lambda x: x.name if isinstance(x, Function) else ""
)
def test_example_is_what_gpudb_gives(gpudb_connection, function: Function, sql: str, value: str) -> None:
    assert shown(gpudb_connection.execute(sql.replace("\\\\", "\\")).fetch_arrow_table()) == value
