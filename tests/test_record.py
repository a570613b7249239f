"""`record` is `dataclass(frozen=True)`, made faster."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import dataclass, field
from typing import Any

import pytest

from gpudb.record import record, replace


def pair(decorate: Any) -> tuple[type, type]:
    @decorate
    class Base:
        x: int
        place: int = field(default=0, compare=False, kw_only=True)
        y: tuple[int, ...] = ()

        def double(self) -> int:
            return 2 * self.x

    @decorate
    class Derived(Base):
        z: list[int] = field(default_factory=list, compare=False)
        y: tuple[int, ...] = (1,)

    return Base, Derived


@pytest.fixture
def classes() -> tuple[type, type, type, type]:
    return *pair(dataclass(frozen=True)), *pair(record)


def test_objects_are_made_compared_hashed_printed_and_replaced_as_a_dataclass_s(classes: Any) -> None:
    _, plain, _, late = classes
    for arguments, named in [((1,), {}), ((1, (2, 3)), {"z": [4], "place": 3}), ((), {"x": 5})]:
        expected, found = plain(*arguments, **named), late(*arguments, **named)
        assert dataclasses.asdict(found) == dataclasses.asdict(expected)
        assert repr(found) == repr(expected).replace(plain.__qualname__, late.__qualname__)
        assert hash(found) == hash(expected)
        assert found == late(*arguments, **named)
        assert dataclasses.asdict(dataclasses.replace(found, x=9)) == dataclasses.asdict(
            dataclasses.replace(expected, x=9)
        )
    assert late(1) != late(2)
    assert late(1, (), [1]) == late(1, (), [2]), "a field that does not count in comparisons"
    assert late(1).double() == 2
    assert late.__match_args__ == plain.__match_args__
    assert [f.name for f in dataclasses.fields(late)] == [f.name for f in dataclasses.fields(plain)]


def test_a_copy_with_other_values_is_dataclasses_replace_s(classes: Any) -> None:
    late = classes[3]
    original = late(1, (2,), [3], place=4)
    assert hash(original), "a hash is kept, and must not be copied"
    for changes in ({}, {"x": 5}, {"y": (), "place": 9}, {"z": [1]}):
        found, expected = replace(original, **changes), dataclasses.replace(original, **changes)
        assert (found, hash(found), dataclasses.asdict(found)) == (
            expected,
            hash(expected),
            dataclasses.asdict(expected),
        )
    with pytest.raises(AssertionError, match="no such field"):
        replace(original, w=1)


def test_a_derived_object_is_not_equal_to_one_of_its_base(classes: Any) -> None:
    base, derived = classes[2:]
    assert base(1, (1,)) != derived(1, (1,))


def test_wrong_arguments_are_refused(classes: Any) -> None:
    for arguments, named in [((), {}), ((1, 2, 3, 4), {}), ((1,), {"w": 2})]:
        with pytest.raises(TypeError):
            classes[3](*arguments, **named)


def test_an_object_cannot_be_changed(classes: Any) -> None:
    for cls in classes[2:]:
        made = cls(1)
        with pytest.raises(dataclasses.FrozenInstanceError):
            made.x = 2
        with pytest.raises(dataclasses.FrozenInstanceError):
            del made.x


def test_fields_without_a_default_after_one_with_a_default_are_refused() -> None:
    with pytest.raises((TypeError, SyntaxError)):

        @record
        class Wrong:
            x: int = 0
            y: int


def test_each_object_has_a_default_of_its_own(classes: Any) -> None:
    late = classes[3]
    late(1).z.append(1)
    assert late(1).z == []


def changeable(decorate: Any) -> type:
    @decorate
    class Counter:
        count: int
        seen: list[int] = field(default_factory=list, init=False)
        half: float = field(init=False)

        def __post_init__(self) -> None:
            self.half = self.count / 2

    return Counter


def test_objects_that_may_change_are_made_compared_and_changed_as_a_dataclass_s() -> None:
    plain, late = changeable(dataclass), changeable(record(frozen=False))
    expected, found = plain(5), late(5)
    assert dataclasses.asdict(found) == dataclasses.asdict(expected) == {"count": 5, "seen": [], "half": 2.5}
    assert repr(found) == repr(expected)
    assert found == late(5) != late(6)
    found.count = 7
    found.seen.append(1)
    assert (found.count, found.seen, late(5).seen) == (7, [1], [])
    with pytest.raises(TypeError, match="unhashable"):
        hash(found)


def test_without_eq_an_object_equals_itself_only() -> None:
    @record(eq=False)
    class Held:
        rows: list[int]

    one = Held([1])
    assert one == one != Held([1])
    assert hash(one) == hash(one)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.rows = []  # type: ignore[misc]  # what a frozen record refuses


@record
class Name:
    text: str


def test_a_kept_hash_does_not_leave_the_process() -> None:
    name = Name("a")
    assert hash(name) == hash(Name("a"))
    assert b"_hash" not in pickle.dumps(name)
    assert pickle.loads(pickle.dumps(name)) == name == copy.copy(name)
