"""Dataclasses of which one function is compiled, when the first object is made, not six as the class is.

`@dataclass(frozen=True)` takes 0.5 to 1 ms a class.  Plans, programs, statements and what devices and storage hold are 180
classes: 90 ms of the shell's start, of which this leaves 10.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from functools import cache
from itertools import pairwise
from operator import attrgetter
from types import CodeType, FunctionType
from typing import Any, TypeVar, dataclass_transform, overload

Class = TypeVar("Class", bound=type)
Made = TypeVar("Made")


@overload
def record(cls: Class, /) -> Class: ...


@overload
def record(*, frozen: bool = True, eq: bool = True) -> Callable[[Class], Class]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: Any = None, /, *, frozen: bool = True, eq: bool = True) -> Any:
    """`@dataclass(frozen=True)`, with a hash that each object keeps: emit looks every sub-expression of a tree up.

    frozen, eq  as of a dataclass: with frozen=False an object can be changed and has no hash, with eq=False it equals itself
    """
    if cls is None:
        return lambda decorated: _made(decorated, frozen, eq)
    return _made(cls, frozen, eq)


def replace(record: Made, /, **changes: Any) -> Made:
    """A copy of a record with other values in these fields: `dataclasses.replace`, in 1 us and not 7."""
    kind = type(record)
    known: Mapping[str, Any] = kind.__dataclass_fields__  # type: ignore[attr-defined]  # a dataclass has them
    assert changes.keys() <= known.keys(), f"no such field of {kind.__qualname__}: {changes.keys() - known.keys()}"
    assert not hasattr(kind, "__post_init__"), f"what {kind.__qualname__} makes of its fields is not made anew"
    old = record.__dict__
    copy = object.__new__(kind)
    copy.__dict__.update({name: old[name] for name in known if name in old}, **changes)
    return copy


def _made(cls: type, frozen: bool, eq: bool) -> type:
    dataclass(init=False, repr=False, eq=False)(cls)
    members = fields(cls)
    methods: dict[str, Any] = {"__init__": _initialiser(cls, members, frozen), "__repr__": _text}
    if eq:
        methods |= _equality(tuple(member.name for member in members if member.compare), frozen)
    if frozen:
        methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
    for name, method in methods.items():
        setattr(cls, name, method)
    return cls


def _initialiser(cls: Any, members: tuple[Field[Any], ...], frozen: bool) -> Callable[..., None]:
    """An __init__ that puts the real one in its place when it is first called: most classes have no object in most runs."""
    given = [member for member in members if member.init and not member.kw_only]
    if any(_has_default(one) and not _has_default(other) for one, other in pairwise(given)):
        raise TypeError(f"a field without a default follows one with a default: {cls.__qualname__}")

    def __init__(self: Any, *arguments: Any, **named: Any) -> None:
        cls.__init__ = _compiled(cls, members, frozen)
        cls.__init__(self, *arguments, **named)

    return __init__


def _has_default(member: Field[Any]) -> bool:
    return member.default is not MISSING or member.default_factory is not MISSING


def _compiled(cls: type, members: tuple[Field[Any], ...], frozen: bool) -> Callable[..., None]:
    """The one method whose arguments differ from class to class: code of the same form, with this class's names in it.

    Compiling takes 140 us, renaming 16: a new query shape's first run meets up to 20 classes for the first time.
    """
    members = tuple(
        member for member in members if member.init or _has_default(member)
    )  # __post_init__ sets the others
    names = {f"f{place}": member.name for place, member in enumerate(members)}
    given: dict[str, Any] = {"set_field": object.__setattr__}
    positional, named, lines = ["self"], ["*"], []
    for place, member in zip(names, members, strict=True):
        value = place
        if member.default_factory is not MISSING:
            given[f"make_{place}"] = member.default_factory
            value = f"make_{place}() if {place} is make_{place} else {place}" if member.init else f"make_{place}()"
        elif not member.init:
            given[f"make_{place}"] = member.default
            value = f"make_{place}"
        if member.init:
            (named if member.kw_only else positional).append(place)
        lines.append(f"  set_field(self, {place!r}, {value})" if frozen else f"  self.{place} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("  self.__post_init__()")
    parameters = ", ".join(positional + (named if len(named) > 1 else []))
    code = _code("\n".join([f"def __init__({parameters}):", *(lines or ["  pass"])]))

    def renamed(known: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(names.get(name, name) if isinstance(name, str) else name for name in known)

    code = code.replace(
        co_varnames=renamed(code.co_varnames), co_names=renamed(code.co_names), co_consts=renamed(code.co_consts)
    )
    defaults = {member.name: _default(member) for member in members if member.init and _has_default(member)}
    keywords = {member.name for member in members if member.kw_only}
    made = FunctionType(code, given, "__init__", tuple(defaults[name] for name in defaults if name not in keywords))
    made.__kwdefaults__ = {name: value for name, value in defaults.items() if name in keywords}
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _default(member: Field[Any]) -> Any:
    """What stands for a value that is not given: the value, or the factory that makes one."""
    return member.default if member.default is not MISSING else member.default_factory


@cache
def _code(source: str) -> CodeType:
    """The code of the one function in a source text."""
    given: dict[str, FunctionType] = {}
    exec(source, given)
    return given["__init__"].__code__


def _equality(compared: tuple[str, ...], frozen: bool) -> dict[str, Any]:
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

    if not frozen:
        return {"__eq__": equal, "__hash__": None}
    return {"__eq__": equal, "__hash__": kept_hash, "_hash": None, "__getstate__": _state}


def _state(self: Any) -> dict[str, Any]:
    """For pickle and copy: a hash of texts holds in one process only."""
    return {name: value for name, value in self.__dict__.items() if name != "_hash"}


def _text(self: Any) -> str:
    parts = (f"{member.name}={getattr(self, member.name)!r}" for member in fields(self) if member.repr)
    return f"{type(self).__qualname__}({', '.join(parts)})"


def _refuse(self: Any, name: str, *value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")
