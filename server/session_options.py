"""Session options of Flight: the settings of SET, and the catalog and schema that drivers like to name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpudb.errors import AccessError, Error
from gpudb.flight_sql import encode, message, parse
from gpudb.settings import SETTINGS, Settings

INVALID_NAME, INVALID_VALUE, REFUSED = 1, 2, 3


def set_session_options(settings: Settings, body: bytes, fixed: Mapping[str, str]) -> bytes:
    """Set what a request asks for; its answer says which options could not be set, and why.

    fixed  options that have one value here: naming that is fine, another one is not
    """
    failed = {}
    for option in parse("SetSessionOptionsRequest", body).session_options:
        name, value = option.key, _value(option.value)
        if name in fixed:
            if value != fixed[name]:
                failed[name] = INVALID_VALUE
        elif name.lower() not in SETTINGS:
            failed[name] = INVALID_NAME
        elif value is None:
            settings.reset(name)
        else:
            try:
                settings.set(name, value)
            except AccessError:  # past the operator's limit
                failed[name] = REFUSED
            except Error:
                failed[name] = INVALID_VALUE
    errors = [message("SessionOptionError", key=name, value={"value": code}) for name, code in failed.items()]
    return encode("SetSessionOptionsResult", errors=errors)


def session_options(options: Mapping[str, Any]) -> bytes:
    """The answer to GetSessionOptions."""
    return encode("GetSessionOptionsResult", session_options=[_option(*item) for item in options.items()])


def _option(name: str, value: Any) -> Any:
    kind = {bool: "bool_value", int: "int64_value", float: "double_value"}.get(type(value), "string_value")
    return message("SessionOption", key=name, value={kind: value})


def _value(value: Any) -> Any:
    for kind in ("string_value", "bool_value", "int64_value", "double_value"):
        if value.HasField(kind):
            return getattr(value, kind)
    return list(value.string_list_value.values) if value.HasField("string_list_value") else None
