"""A second pytest plugin of that run: what a fresh database of ours needs before SQLAlchemy's tests use it."""

from __future__ import annotations

import warnings

import pytest
from sqlalchemy.dialects import registry
from sqlalchemy.testing import provision
from sqlalchemy.testing import warnings as their_warnings

from tests.clients.sqlalchemy_suite.requirements import DIFFERENT

registry.register("gpudb", "gpudb.sqlalchemy", "GpudbDialect")
registry.register("gpudb.gpudb", "gpudb.sqlalchemy", "GpudbDialect")
registry.register("gpudb.flight", "gpudb.sqlalchemy", "GpudbFlightDialect")

_their_filters = their_warnings.setup_filters


def _filters() -> None:
    """Constraints that our CREATE TABLE leaves out are warnings, of which theirs makes errors."""
    _their_filters()
    warnings.filterwarnings("ignore", message="gpudb has no ")


their_warnings.setup_filters = _filters


@provision.post_configure_engine.for_db("gpudb")
def _make_the_schema_that_tests_expect(url, engine, follower_ident):
    """Theirs are called so, and are there before a test runs."""
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE SCHEMA IF NOT EXISTS test_schema")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Skip what is listed as different."""
    for item in items:
        for name, reason in DIFFERENT.items():
            if item.name.startswith(name):
                item.add_marker(pytest.mark.skip(reason=reason))
