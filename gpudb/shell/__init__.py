"""The command `gpudb`: SQL from a prompt, from -c, from files and from pipes.

`arguments` reads the command line, `statements` cuts input into statements and dot commands, `shell` runs them one by
one, `runner` lets each be cancelled and shows its progress, `commands` holds the dot commands, `output` writes results
in every mode, `repl` is the interactive prompt (the only part that needs the extra `shell`), `demo` is `gpudb demo`.

Results go to standard output, everything else to standard error.  Exit codes: 0; 1 after an SQL error; 2 when the
database cannot be opened or the command line is wrong; 130 after Ctrl-C.
"""
