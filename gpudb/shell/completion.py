"""What Tab offers: keywords, tables and columns from the catalog, dot commands and their arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from gpudb.shell.commands import ALIASES, COMMANDS, quote_name
from gpudb.shell.output import MODES

KEYWORDS = (
    "ALL ANALYZE AND ANY AS ASC BETWEEN BIGINT BOOLEAN BY CASE CAST COALESCE COPY COUNT CREATE DATE DECIMAL DESC "
    "DESCRIBE DISTINCT DOUBLE DROP ELSE END EXCEPT EXISTS EXPLAIN EXTRACT FALSE FILTER FIRST FROM GREATEST GROUP "
    "HAVING IF ILIKE IN INSERT INTEGER INTERSECT INTERVAL INTO IS JOIN LAST LEAST LEFT LIKE LIMIT MEMORY NOT NULL "
    "NULLIF NULLS OFFSET ON OR ORDER READ_CSV READ_PARQUET REAL RESET SELECT SET SHOW SMALLINT TABLE TABLES THEN "
    "TIMESTAMP TINYINT TO TRUE TRY_CAST UNION USING VALUES VARCHAR WHEN WHERE WITH"
).split()
TABLE_COMES_NEXT = re.compile(r"\b(?:FROM|JOIN|INTO|TABLE|DESCRIBE|COPY)\s+$", re.IGNORECASE)
WORD = re.compile(r"[\w$]*$")
ON_OFF = ("on", "off")
COMMAND_ARGUMENTS: dict[str, Sequence[str]] = {
    ".mode": tuple(MODES),
    ".device": ("auto", "cpu", "gpu", "gpu!", "reference"),
    **dict.fromkeys((".headers", ".timer", ".echo", ".bail", ".expanded"), ON_OFF),
}
TABLE_COMMANDS = frozenset({".describe", ".schema", ".tables"})


def complete(text: str, columns_of: Mapping[str, Iterable[str]]) -> tuple[str, list[str]]:
    """(the word before the cursor, what may stand in its place), for the text before the cursor.

    columns_of  the columns of each table of the catalog
    """
    if text.startswith((".", "\\")) and "\n" not in text:
        return _complete_command(text, list(columns_of))
    match = WORD.search(text)
    word = match.group() if match else ""
    before = text[: len(text) - len(word)]
    if TABLE_COMES_NEXT.search(before):
        names = [*columns_of, *(["read_csv", "read_parquet"] if word else [])]
    elif word or before.endswith("."):
        names = _names_in_expressions(before, columns_of)
    else:
        return word, []
    fitting = {quote_name(name) for name in names if name.lower().startswith(word.lower())}
    found = sorted(fitting, key=lambda name: name.strip('"').lower())
    if word and not before.endswith(".") and not TABLE_COMES_NEXT.search(before):
        keywords = [keyword for keyword in KEYWORDS if keyword.startswith(word.upper())]
        found += keywords if word.isupper() else [keyword.lower() for keyword in keywords]
    return word, list(dict.fromkeys(found))


def _names_in_expressions(before: str, columns_of: Mapping[str, Iterable[str]]) -> list[str]:
    """Columns: of the table before a dot, else of the tables that the text names, else of all; and the tables."""
    qualifier = re.search(r"(\w+)\"?\.$", before)
    if qualifier:
        return [c for table, columns in columns_of.items() if table.lower() == qualifier[1].lower() for c in columns]
    words = {word.lower() for word in re.findall(r"\w+", before)}
    named = [table for table in columns_of if table.lower() in words] or list(columns_of)
    return [*(column for table in named for column in columns_of[table]), *columns_of]


def _complete_command(text: str, tables: list[str]) -> tuple[str, list[str]]:
    command, space, rest = text.partition(" ")
    if not space:
        return text, sorted(name for name in (*COMMANDS, *ALIASES) if name.startswith(text))
    command = ALIASES.get(command, command).split(" ")[0]
    word = rest.rpartition(" ")[2]
    names = tables if command in TABLE_COMMANDS else COMMAND_ARGUMENTS.get(command, ())
    return word, sorted(name for name in names if name.lower().startswith(word.lower()))
