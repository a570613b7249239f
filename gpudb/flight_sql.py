"""Arrow Flight SQL's messages: one table of fields, from which protobuf makes a class each; server and client share it.

    >>> command = pack("CommandStatementQuery", query="SELECT 1")
    >>> name, message = unpack(command)
    >>> name, message.query
    ('CommandStatementQuery', 'SELECT 1')

Commands, tickets and most actions travel inside an `Any`, which names their type (`pack`, `unpack`); results of DoPut, the
session actions and CancelFlightInfo are bare (`message`, `parse`).
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from google.protobuf.message import DecodeError
except ImportError as _missing:
    from gpudb.errors import NotSupportedError

    raise NotSupportedError(
        "Arrow Flight SQL needs the package protobuf", hint="pip install 'gpudb-engine[server]'"
    ) from _missing

SQL = "arrow.flight.protocol.sql."
FLIGHT = "arrow.flight.protocol."
TYPE_URL = "type.googleapis.com/"

# message: number:field:kind ...; kinds: s string, b bytes, i int32 (and enums), l int64, f fixed64, u uint32, t bool,
# d double, @Name a message; behind it ? where absent differs from empty, * for a list.  A map is a list of entries.
_FLIGHT_SQL = {
    "CommandGetSqlInfo": "1:info:u*",
    "CommandGetXdbcTypeInfo": "1:data_type:i?",
    "CommandGetCatalogs": "",
    "CommandGetDbSchemas": "1:catalog:s? 2:db_schema_filter_pattern:s?",
    "CommandGetTables": "1:catalog:s? 2:db_schema_filter_pattern:s? 3:table_name_filter_pattern:s? 4:table_types:s* "
    "5:include_schema:t",
    "CommandGetTableTypes": "",
    "CommandGetPrimaryKeys": "1:catalog:s? 2:db_schema:s? 3:table:s",
    "CommandGetImportedKeys": "1:catalog:s? 2:db_schema:s? 3:table:s",
    "CommandGetExportedKeys": "1:catalog:s? 2:db_schema:s? 3:table:s",
    "CommandGetCrossReference": "1:pk_catalog:s? 2:pk_db_schema:s? 3:pk_table:s 4:fk_catalog:s? 5:fk_db_schema:s? "
    "6:fk_table:s",
    "CommandStatementQuery": "1:query:s 2:transaction_id:b?",
    "CommandStatementUpdate": "1:query:s 2:transaction_id:b?",
    "SubstraitPlan": "1:plan:b 2:version:s",
    "CommandStatementSubstraitPlan": "1:plan:@SubstraitPlan 2:transaction_id:b?",
    "CommandPreparedStatementQuery": "1:prepared_statement_handle:b",
    "CommandPreparedStatementUpdate": "1:prepared_statement_handle:b",
    "CommandStatementIngest": "1:table_definition_options:@TableDefinitionOptions 2:table:s 3:schema:s? 4:catalog:s? "
    "5:temporary:t 6:transaction_id:b? 1000:options:@TextEntry*",
    "TableDefinitionOptions": "1:if_not_exist:i 2:if_exists:i",
    "TextEntry": "1:key:s 2:value:s",
    "TicketStatementQuery": "1:statement_handle:b",
    "DoPutUpdateResult": "1:record_count:l",
    "DoPutPreparedStatementResult": "1:prepared_statement_handle:b?",
    "ActionCreatePreparedStatementRequest": "1:query:s 2:transaction_id:b?",
    "ActionCreatePreparedStatementResult": "1:prepared_statement_handle:b 2:dataset_schema:b 3:parameter_schema:b "
    "4:is_update:t?",
    "ActionCreatePreparedSubstraitPlanRequest": "1:plan:@SubstraitPlan 2:transaction_id:b?",
    "ActionClosePreparedStatementRequest": "1:prepared_statement_handle:b",
    "ActionBeginTransactionRequest": "",
    "ActionBeginTransactionResult": "1:transaction_id:b",
    "ActionEndTransactionRequest": "1:transaction_id:b 2:action:i",
    "ActionBeginSavepointRequest": "1:transaction_id:b 2:name:s",
    "ActionEndSavepointRequest": "1:savepoint_id:b 2:action:i",
    "ActionCancelQueryRequest": "1:info:b",
    "ActionCancelQueryResult": "1:result:i",
}
_FLIGHT = {
    "SessionOptionValue": "1:string_value:s? 2:bool_value:t? 3:int64_value:f? 4:double_value:d? "
    "5:string_list_value:@StringList",
    "StringList": "1:values:s*",
    "SessionOption": "1:key:s 2:value:@SessionOptionValue",
    "SetSessionOptionsRequest": "1:session_options:@SessionOption*",
    "SetSessionOptionsResult": "1:errors:@SessionOptionError*",
    "SessionOptionError": "1:key:s 2:value:@SessionOptionErrorValue",
    "SessionOptionErrorValue": "1:value:i",
    "GetSessionOptionsRequest": "",
    "GetSessionOptionsResult": "1:session_options:@SessionOption*",
    "CloseSessionRequest": "",
    "CloseSessionResult": "1:status:i",
    "CancelFlightInfoRequest": "1:info:b",
    "CancelFlightInfoResult": "1:status:i",
}
_ANY = {"Any": "1:type_url:s 2:value:b"}

# Options of CommandStatementIngest that our own clients give, and the key of the marker that ends their streams.
PRODUCER = "gpudb.producer"  # with SEQUENCE: the same number twice adds rows once
SEQUENCE = "gpudb.sequence"
PARAMETERS = "gpudb.parameters"  # in the metadata of a set's schema: whether its columns are "named", or "positional"
END_MARKER = "gpudb.end"  # "true": keep nothing unless the marker comes


def end_marker(rows: int) -> bytes:
    """The app_metadata of a last, empty message of a stream of so many rows: it has all come."""
    return json.dumps({END_MARKER: rows}).encode()


_KINDS = {"s": 9, "b": 12, "i": 5, "l": 3, "f": 16, "u": 13, "t": 8, "d": 1, "@": 11}


class MalformedMessage(ValueError):
    """Bytes that are not the message they should be."""


def _file(name: str, package: str, messages: dict[str, str]) -> Any:
    file = descriptor_pb2.FileDescriptorProto(name=name, package=package, syntax="proto3")
    for message_name, fields in messages.items():
        found = file.message_type.add(name=message_name)
        for spec in fields.split():
            number, field_name, kind = spec.split(":")
            field = found.field.add(name=field_name, number=int(number), type=_KINDS[kind[0]])
            field.label = 3 if kind.endswith("*") else 1
            if kind[0] == "@":
                field.type_name = f".{package}.{kind[1:].rstrip('*')}"
            if kind.endswith("?"):  # protobuf's presence of a plain field is a oneof of one
                found.oneof_decl.add(name=f"_{field_name}")
                field.oneof_index = len(found.oneof_decl) - 1
                field.proto3_optional = True
    return file


@cache
def _classes() -> dict[str, Any]:
    """Classes by bare name, from a pool of our own: another package may have registered the same names."""
    pool = descriptor_pool.DescriptorPool()
    found = {}
    for file, package, messages in (
        ("gpudb_flight_sql.proto", SQL[:-1], _FLIGHT_SQL),
        ("gpudb_flight.proto", FLIGHT[:-1], _FLIGHT),
        ("gpudb_any.proto", "google.protobuf", _ANY),
    ):
        pool.Add(_file(file, package, messages))
        for name in messages:
            found[name] = message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))
    return found


def message(name: str, **values: Any) -> Any:
    """A new message; nested ones are given as messages or as dicts of their fields."""
    return _classes()[name](**values)


def encode(name: str, **values: Any) -> bytes:
    """A message's bytes."""
    encoded: bytes = message(name, **values).SerializeToString()
    return encoded


def parse(name: str, data: bytes) -> Any:
    """The message in `data`; MalformedMessage where it is none."""
    try:
        return _classes()[name].FromString(data)
    except (DecodeError, TypeError, ValueError):
        raise MalformedMessage(f"not a {name}") from None


def pack(name: str, **values: Any) -> bytes:
    """A message of Flight SQL inside an Any, as bytes."""
    return encode("Any", type_url=TYPE_URL + SQL + name, value=encode(name, **values))


def unpack(data: bytes) -> tuple[str, Any]:
    """(bare name, message) of an Any with one of Flight SQL's messages; MalformedMessage for anything else."""
    wrapped = parse("Any", data)
    package, _, name = wrapped.type_url.rpartition(".")
    if package + "." != TYPE_URL + SQL or name not in _FLIGHT_SQL:
        raise MalformedMessage("not a message of Flight SQL")
    return name, parse(name, wrapped.value)
