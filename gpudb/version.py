"""The version, in one place: the package, the wheel and the shell all read it from here."""

__version__ = "0.1.0"
