"""The prompt of the extra `shell`: prompt_toolkit's editing, history and completion, Pygments' colours."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import PostgresLexer

from gpudb.errors import Error
from gpudb.shell.completion import complete
from gpudb.shell.shell import Shell
from gpudb.shell.statements import StatementReader


class CatalogCompleter(Completer):
    """Tab: what `completion.complete` offers for the text before the cursor and the catalog as it is now."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        session = self._shell.session
        try:
            columns_of = {table: [name for name, _ in session.columns(table)] for table in session.tables()}
        except Error:  # a table dropped by another connection in between
            columns_of = {}
        word, candidates = complete(document.text_before_cursor, columns_of)
        for candidate in candidates:
            yield Completion(candidate, start_position=-len(word))


class Prompt:
    """Asks for statements; Enter ends the input when they are complete and begins a new line when they are not."""

    def __init__(self, shell: Shell, history_file: Path | None) -> None:
        self._shell = shell
        history: History = InMemoryHistory() if history_file is None else FileHistory(str(history_file))
        keys = KeyBindings()

        @keys.add("enter")
        def enter(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            reader = StatementReader()
            reader.feed(buffer.text)
            if reader.pending:
                buffer.insert_text("\n")
            else:
                buffer.validate_and_handle()

        self._session: PromptSession[str] = PromptSession(
            history=history,
            lexer=None if os.environ.get("NO_COLOR") else PygmentsLexer(PostgresLexer),
            completer=CatalogCompleter(shell),
            complete_while_typing=False,
            auto_suggest=AutoSuggestFromHistory(),
            multiline=True,
            key_bindings=keys,
        )

    def ask(self) -> list[str]:
        """The statements and commands of one input; EOFError after Ctrl-D, KeyboardInterrupt after Ctrl-C."""
        further = self._shell.settings.continuation_prompt
        text = self._session.prompt(self._shell.prompt, prompt_continuation=further)
        return StatementReader().feed(text)
