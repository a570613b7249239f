"""Functions of conditions, as SQL in terms of CASE and COALESCE."""

from __future__ import annotations

from gpudb.functions.registry import macro

macro(
    "if",
    "condition, yes, no",
    "CASE WHEN condition THEN yes ELSE no END",
    """One of two values by a condition.

    >>> sql("SELECT if(1 < 2, 'yes', 'no')")
    yes
    """,
)

macro(
    "ifnull",
    "x, otherwise",
    "coalesce(x, otherwise)",
    """The first of two values that is not NULL.

    >>> sql("SELECT ifnull(NULL, 3)")
    3
    """,
)

macro(
    "nullif",
    "x, unwanted",
    "CASE WHEN x = unwanted THEN NULL ELSE x END",
    """NULL where two values are equal, else the first.

    >>> sql("SELECT nullif(3, 3)")
    NULL
    """,
)

macro(
    "constant_or_null",
    "x, condition",
    "CASE WHEN condition IS NULL THEN NULL ELSE x END",
    """A value, or NULL where another is NULL.

    >>> sql("SELECT constant_or_null(1, NULL)")
    NULL
    """,
)
