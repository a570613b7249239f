"""CommandGetSqlInfo and CommandGetXdbcTypeInfo: what the server and its dialect are, as ODBC and JDBC drivers ask for it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from gpudb.types import UNSIGNED_BITS
from gpudb.version import __version__

VALUE_TYPES: list[tuple[str, pa.DataType]] = [
    ("string_value", pa.utf8()),
    ("bool_value", pa.bool_()),
    ("bigint_value", pa.int64()),
    ("int32_bitmask", pa.int32()),
    ("string_list", pa.list_(pa.utf8())),
    ("int32_to_int32_list_map", pa.map_(pa.int32(), pa.list_(pa.int32()))),
]
STRING, BOOLEAN, BIGINT, BITMASK, STRINGS, MAP = range(len(VALUE_TYPES))
SQL_INFO_SCHEMA = pa.schema(
    [
        pa.field("info_name", pa.uint32(), False),
        pa.field("value", pa.dense_union([pa.field(name, kind) for name, kind in VALUE_TYPES]), False),
    ]
)

CASE_INSENSITIVE, UPPERCASE, LOWERCASE, CASE_SENSITIVE = 1, 2, 3, 4
NULLS_SORTED_AT_END = 3
SNAPSHOT_AS_SERIALIZABLE = 4
NO_LIMIT = 0

# SqlInfo number: (which member of the union, value)
INFO: dict[int, tuple[int, Any]] = {
    0: (STRING, "gpudb"),
    1: (STRING, __version__),
    2: (STRING, pa.__version__),
    3: (BOOLEAN, False),  # read-only
    4: (BOOLEAN, True),  # SQL
    5: (BOOLEAN, False),  # Substrait
    6: (STRING, ""),
    7: (STRING, ""),
    8: (BITMASK, 1),  # transactions, no savepoints
    9: (BOOLEAN, True),  # cancel
    10: (BOOLEAN, True),  # bulk ingestion
    11: (BOOLEAN, True),  # in transactions
    100: (BITMASK, 0),  # milliseconds a statement may run; the server's own limit stands here
    101: (BITMASK, 3_600_000),
    500: (BOOLEAN, False),  # CREATE CATALOG
    501: (BOOLEAN, True),
    502: (BOOLEAN, True),
    503: (BITMASK, CASE_INSENSITIVE),
    504: (STRING, '"'),
    505: (BITMASK, CASE_INSENSITIVE),
    506: (BOOLEAN, True),
    507: (BITMASK, NULLS_SORTED_AT_END),
    508: (STRINGS, ["ANTI", "ASOF", "EXCLUDE", "FILTER", "ILIKE", "PIVOT", "QUALIFY", "SAMPLE", "SEMI", "TRY_CAST"]),
    509: (
        STRINGS,
        ["abs", "ceil", "exp", "floor", "ln", "log", "log10", "mod", "pow", "round", "sign", "sqrt", "trunc"],
    ),
    510: (
        STRINGS,
        [
            "concat",
            "contains",
            "length",
            "lower",
            "lpad",
            "ltrim",
            "replace",
            "rpad",
            "rtrim",
            "substring",
            "trim",
            "upper",
        ],
    ),
    511: (STRINGS, ["coalesce", "ifnull", "nullif"]),
    512: (STRINGS, ["date_part", "date_trunc", "day", "epoch_ms", "extract", "hour", "make_date", "month", "year"]),
    513: (STRING, "\\"),
    514: (STRING, "$"),
    515: (BOOLEAN, True),
    516: (BOOLEAN, True),
    517: (MAP, {}),
    518: (BOOLEAN, True),
    519: (BOOLEAN, False),
    520: (BOOLEAN, True),
    521: (BOOLEAN, True),
    522: (BITMASK, 3),  # GROUP BY unrelated, and beyond the select list
    523: (BOOLEAN, True),
    524: (BOOLEAN, False),  # NOT NULL columns
    525: (BITMASK, 7),
    526: (BITMASK, 1),  # ANSI 92 entry level
    527: (BOOLEAN, False),
    528: (BITMASK, 4),  # full outer joins
    529: (STRING, "schema"),
    530: (STRING, ""),
    531: (STRING, "database"),
    532: (BOOLEAN, True),
    533: (BITMASK, 0),
    534: (BITMASK, 0),
    535: (BITMASK, 0),
    536: (BOOLEAN, False),
    537: (BOOLEAN, False),
    538: (BITMASK, 15),
    539: (BOOLEAN, True),
    540: (BITMASK, 3),
    541: (BIGINT, NO_LIMIT),
    542: (BIGINT, NO_LIMIT),
    543: (BIGINT, NO_LIMIT),
    544: (BIGINT, NO_LIMIT),
    545: (BIGINT, NO_LIMIT),
    546: (BIGINT, NO_LIMIT),
    547: (BIGINT, NO_LIMIT),
    548: (BIGINT, NO_LIMIT),
    549: (BIGINT, NO_LIMIT),
    550: (BIGINT, NO_LIMIT),
    551: (BIGINT, NO_LIMIT),
    552: (BIGINT, NO_LIMIT),
    553: (BIGINT, NO_LIMIT),
    554: (BIGINT, NO_LIMIT),
    555: (BIGINT, NO_LIMIT),
    556: (BOOLEAN, True),
    557: (BIGINT, NO_LIMIT),
    558: (BIGINT, NO_LIMIT),
    559: (BIGINT, NO_LIMIT),
    560: (BIGINT, NO_LIMIT),
    561: (BIGINT, NO_LIMIT),
    562: (BIGINT, SNAPSHOT_AS_SERIALIZABLE),
    563: (BOOLEAN, True),
    564: (BITMASK, 1 << SNAPSHOT_AS_SERIALIZABLE),
    565: (BOOLEAN, False),
    566: (BOOLEAN, False),
    567: (BITMASK, 2),  # forward only
    568: (BITMASK, 0),
    569: (BITMASK, 2),  # read only
    570: (BITMASK, 0),
    571: (BITMASK, 0),
    572: (BOOLEAN, True),
    573: (BOOLEAN, False),
    574: (BOOLEAN, True),
    575: (BOOLEAN, False),
    576: (BOOLEAN, False),
}


def sql_info(wanted: Sequence[int], read_only: bool = False, timeout_ms: int = 0) -> pa.Table:
    """One row a number that is wanted and known; all of them where none is named."""
    known = {**INFO, 3: (BOOLEAN, read_only), 100: (BITMASK, timeout_ms)}
    rows = [(number, *value) for number, value in sorted(known.items()) if not wanted or number in wanted]
    children: list[list[Any]] = [[] for _ in VALUE_TYPES]
    offsets = []
    for _, member, value in rows:
        offsets.append(len(children[member]))
        children[member].append(list(value.items()) if member == MAP else value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        union = pa.UnionArray.from_dense(
            pa.array([member for _, member, _ in rows], pa.int8()),
            pa.array(offsets, pa.int32()),
            [pa.array(child, kind) for child, (_, kind) in zip(children, VALUE_TYPES, strict=True)],
            [name for name, _ in VALUE_TYPES],
        )
    return pa.Table.from_arrays([pa.array([row[0] for row in rows], pa.uint32()), union], schema=SQL_INFO_SCHEMA)


XDBC_SCHEMA = pa.schema(
    [
        pa.field("type_name", pa.utf8(), False),
        pa.field("data_type", pa.int32(), False),
        pa.field("column_size", pa.int32()),
        pa.field("literal_prefix", pa.utf8()),
        pa.field("literal_suffix", pa.utf8()),
        pa.field("create_params", pa.list_(pa.field("item", pa.utf8(), False))),
        pa.field("nullable", pa.int32(), False),
        pa.field("case_sensitive", pa.bool_(), False),
        pa.field("searchable", pa.int32(), False),
        pa.field("unsigned_attribute", pa.bool_()),
        pa.field("fixed_prec_scale", pa.bool_(), False),
        pa.field("auto_increment", pa.bool_()),
        pa.field("local_type_name", pa.utf8()),
        pa.field("minimum_scale", pa.int32()),
        pa.field("maximum_scale", pa.int32()),
        pa.field("sql_data_type", pa.int32(), False),
        pa.field("datetime_subcode", pa.int32()),
        pa.field("num_prec_radix", pa.int32()),
        pa.field("interval_precision", pa.int32()),
    ]
)
NULLABLE, SEARCHABLE, BASIC = 1, 3, 2
# name: (ODBC's number, digits or characters, is written in quotes, radix, least and most digits behind the point)
TYPES: dict[str, tuple[int, int | None, bool, int | None, int | None, int | None]] = {
    "BOOLEAN": (-7, 1, False, None, None, None),
    "TINYINT": (-6, 3, False, 10, 0, 0),
    "BLOB": (-4, None, True, None, None, None),
    "BIGINT": (-5, 19, False, 10, 0, 0),
    "HUGEINT": (2, 38, False, 10, 0, 0),
    "DECIMAL": (3, 38, False, 10, 0, 38),
    "INTEGER": (4, 10, False, 10, 0, 0),
    "SMALLINT": (5, 5, False, 10, 0, 0),
    "REAL": (7, 24, False, 2, None, None),
    "DOUBLE": (8, 53, False, 2, None, None),
    "UTINYINT": (-6, 3, False, 10, 0, 0),
    "USMALLINT": (5, 5, False, 10, 0, 0),
    "UINTEGER": (4, 10, False, 10, 0, 0),
    "UBIGINT": (-5, 20, False, 10, 0, 0),
    "INTERVAL": (10, None, True, None, None, None),
    "UUID": (-11, 36, True, None, None, None),
    "VARCHAR": (12, None, True, None, None, None),
    "DATE": (91, 10, True, None, None, None),
    "TIME": (92, 15, True, None, 6, 6),
    "TIMESTAMP": (93, 26, True, None, 6, 6),
    "TIMESTAMP WITH TIME ZONE": (95, 32, True, None, 6, 6),
}
DATETIME = {"DATE": (9, 1), "TIME": (9, 2), "TIMESTAMP": (9, 3)}  # ODBC's general type, and the subcode


def xdbc_type_info(data_type: int | None) -> pa.Table:
    """One row a SQL type, of all or of those with an ODBC number."""
    rows = []
    for name, (number, size, quoted, radix, least, most) in sorted(TYPES.items(), key=lambda item: item[1][0]):
        if data_type is not None and number != data_type:
            continue
        general, subcode = DATETIME.get(name, (number, None))
        number_like = radix is not None
        rows.append(
            {
                "type_name": name,
                "data_type": number,
                "column_size": size,
                "literal_prefix": "'" if quoted else None,
                "literal_suffix": "'" if quoted else None,
                "create_params": ["precision", "scale"] if name == "DECIMAL" else None,
                "nullable": NULLABLE,
                "case_sensitive": name == "VARCHAR",
                "searchable": SEARCHABLE if name == "VARCHAR" else BASIC,
                "unsigned_attribute": name in UNSIGNED_BITS if number_like else None,
                "fixed_prec_scale": False,
                "auto_increment": False if number_like else None,
                "local_type_name": name,
                "minimum_scale": least,
                "maximum_scale": most,
                "sql_data_type": general,
                "datetime_subcode": subcode,
                "num_prec_radix": radix,
                "interval_precision": None,
            }
        )
    return pa.Table.from_pylist(rows, schema=XDBC_SCHEMA)
