"""Cuts lines of input into statements and commands, without knowing SQL beyond its quotes and comments."""

from __future__ import annotations

import re

_OPENING = re.compile(r"--|/\*|(?<!\w)[eE]'|'|\"|\$(?:[A-Za-z_]\w*)?\$|;")  # date'...' is no e'...'
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_ESCAPED_TEXT_EDGE = re.compile(r"\\.|'", re.DOTALL)


class StatementReader:
    """Fed line by line; gives back each statement when its `;` has come.

    A line that begins with `.` or `\\` where no statement is open is a command, complete as it is.  Quotes ('', "", $$,
    E''), -- and nested /* */ comments may span lines.  Each line is scanned once, so long statements cost linear time.
    """

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._parts: list[str] = []
        self._inside = ""  # the token that opened what the next line begins in: "", a quote or "/*"
        self._comment_depth = 0
        self._has_content = False

    @property
    def pending(self) -> bool:
        """True while a statement, a quote or a comment is open."""
        return self._has_content or bool(self._inside)

    def feed(self, text: str) -> list[str]:
        """The commands and statements that these lines complete."""
        lines = text.removesuffix("\n").split("\n")
        return [item for line in lines for item in self._feed_line(line + "\n")]

    def _feed_line(self, line: str) -> list[str]:
        if not self.pending and line.lstrip().startswith((".", "\\")):
            self._reset()  # comments alone may stand before a command
            return [line.strip()]
        complete, start, position = [], 0, 0
        while position < len(line):
            if self._inside:
                position = self._closing_end(line, position)
                continue
            match = _OPENING.search(line, position)
            self._has_content |= bool(line[position : match.start() if match else None].strip())
            if match is None:
                break
            token, position = match.group(), match.end()
            if token == ";":
                if self._has_content:
                    complete.append(("".join(self._parts) + line[start:position]).strip())
                self._reset()
                start = position
            elif token == "--":
                position = len(line)
            else:
                self._inside = "e'" if token == "E'" else token
                self._comment_depth = 1
                self._has_content |= token != "/*"
        self._parts.append(line[start:])
        return complete

    def _closing_end(self, line: str, position: int) -> int:
        """Where what is open ends in `line`, from `position`; the line's end if it stays open."""
        if self._inside in ("/*", "e'"):
            edges = _COMMENT_EDGE if self._inside == "/*" else _ESCAPED_TEXT_EDGE
            for match in edges.finditer(line, position):
                if match.group() in ("*/", "'"):
                    self._comment_depth -= 1
                elif match.group() == "/*":
                    self._comment_depth += 1
                if self._comment_depth == 0:
                    self._inside = ""
                    return match.end()
            return len(line)
        end = line.find(self._inside, position)
        if end < 0:
            return len(line)
        end += len(self._inside)
        self._inside = ""  # a doubled quote ends here and opens again at once, which comes to the same
        return end

    def rest(self) -> str | None:
        """What is left at the end of the input, a statement without its `;`; None when nothing is."""
        text, has_content = "".join(self._parts).strip(), self.pending
        self._reset()
        return text if has_content else None
