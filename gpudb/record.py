"""Frozen dataclasses of which one function is compiled, not six.

`@dataclass(frozen=True)` takes 0.5 to 1 ms a class.  The plan's nodes, a program's parts and the statements are 79
classes: 50 ms of the shell's start, of which this leaves 10.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

Class = TypeVar("Class", bound=type)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: Class) -> Class:
    """`@dataclass(frozen=True)`, with a hash that each object keeps: emit looks every sub-expression of a tree up."""
    dataclass(init=False, repr=False, eq=False)(cls)
    members = fields(cls)
    methods: dict[str, Any] = {"__init__": _initialiser(cls, members), "__repr__": _text}
    methods |= _equality(tuple(member.name for member in members if member.compare))
    methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
    for name, method in methods.items():
        setattr(cls, name, method)
    return cls


def _initialiser(cls: type, members: tuple[Field[Any], ...]) -> Callable[..., None]:
    """__init__: the one method whose arguments differ from class to class, so that Python must be written for it."""
    given: dict[str, Any] = {"set_field": object.__setattr__}
    positional, named, lines = ["self"], ["*"], []
    for member in members:
        name, default = member.name, f"default_{member.name}"
        value = name
        if member.default is not MISSING:
            given[default] = member.default
        elif member.default_factory is not MISSING:
            given[default] = member.default_factory
            value = f"{default}() if {name} is {default} else {name}"
        (named if member.kw_only else positional).append(f"{name}={default}" if default in given else name)
        lines.append(f"  set_field(self, {name!r}, {value})")
    parameters = ", ".join(positional + (named if len(named) > 1 else []))
    exec("\n".join([f"def __init__({parameters}):", *(lines or ["  pass"])]), given)
    made: Callable[..., None] = given["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _equality(compared: tuple[str, ...]) -> dict[str, Any]:
    """__eq__ and __hash__ over these fields, and where the hash is kept."""
    values: Callable[[Any], Any] = attrgetter(*compared) if compared else lambda _: ()

    def equal(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def kept_hash(self: Any) -> int:
        known: int | None = self._hash  # None, by the class, until it is asked for
        if known is None:
            known = hash(values(self))
            object.__setattr__(self, "_hash", known)
        return known

    return {"__eq__": equal, "__hash__": kept_hash, "_hash": None}


def _text(self: Any) -> str:
    parts = (f"{member.name}={getattr(self, member.name)!r}" for member in fields(self) if member.repr)
    return f"{type(self).__qualname__}({', '.join(parts)})"


def _refuse(self: Any, name: str, *value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")
