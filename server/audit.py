"""The audit log: a line of JSON for each login, denial, change of definitions and KILL, in the logger `gpudb.audit`."""

from __future__ import annotations

import json
import logging
import re

logger = logging.getLogger("gpudb.audit")
_DEFINES = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*+(CREATE|DROP|ALTER|TRUNCATE|KILL)\b", re.IGNORECASE | re.DOTALL)


def note(event: str, **details: str) -> None:
    """Write a line; what clients sent is escaped, so that it cannot look like another one."""
    logger.info("%s", json.dumps({"event": event, **details}))


def note_statement(user: str, sql: str) -> None:
    """A statement that has run, where it changes definitions; literals are left out."""
    found = _DEFINES.match(sql)
    if found is not None:
        note(found[1].lower(), user=user, sql=without_literals(sql)[:1000])


def without_literals(sql: str) -> str:
    """A statement with ? in the place of its numbers and texts."""
    from gpudb.planner.parse import shape

    key, _ = shape(sql)
    return "".join(part if place % 2 == 0 else "?" * bool(part) for place, part in enumerate(key))
