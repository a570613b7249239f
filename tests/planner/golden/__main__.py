"""Writes the golden plans anew: `python -m tests.planner.golden --write`; without it, names those that differ."""

from __future__ import annotations

import sys

from tests.planner.golden import FOLDER, STATEMENTS, connect, explained, path_of


def main(write: bool) -> int:
    """The number of files that differ from what EXPLAIN says, or differed."""
    connection, changed = connect(), 0
    for name, sql in STATEMENTS.items():
        text, path = explained(connection, sql), path_of(name)
        if path.exists() and path.read_text() == text:
            continue
        changed += 1
        print(("wrote " if write else "differs: ") + path.name)
        if write:
            path.write_text(text)
    for path in sorted(set(FOLDER.glob("*.txt")) - set(map(path_of, STATEMENTS))):
        changed += 1
        print(("removed " if write else "no statement: ") + path.name)
        if write:
            path.unlink()
    return changed


if __name__ == "__main__":
    writing = sys.argv[1:] == ["--write"]
    sys.exit(1 if main(writing) and not writing else 0)
