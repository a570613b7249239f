"""PEP 249 over ADBC, at a server of gpudb."""

from __future__ import annotations

from typing import Any

import adbc_driver_flightsql.dbapi as _flightsql
from adbc_driver_flightsql.dbapi import *  # noqa: F403 - the names of PEP 249 are those of the driver below
from adbc_driver_gpudb import options


def connect(
    uri: str, db_kwargs: dict[str, str] | None = None, conn_kwargs: dict[str, str] | None = None, **kwargs: Any
) -> _flightsql.Connection:
    """A connection to the server of a gpudb:// URI; the rest is as in adbc_driver_flightsql.dbapi."""
    location, found = options(uri)
    return _flightsql.connect(location, {**found, **(db_kwargs or {})}, conn_kwargs, **kwargs)
