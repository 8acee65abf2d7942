"""Quickly defined frozen classes behave as those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, field
from functools import cached_property
from typing import Any, ClassVar

import pytest

from auditor import quick_dataclasses


def define(decorator: Any) -> tuple[type[Any], type[Any], type[Any]]:
    """The same classes by each decorator: with slots, without, and a subclass."""

    @decorator(frozen=True, slots=True)
    class Slotted:
        """With slots."""

        kind: ClassVar[str] = "slotted"
        name: str
        values: list[int] = field(default_factory=list, hash=False)
        note: str = field(default="", repr=False, compare=False)
        key: int = field(default=0, kw_only=True)

    @decorator(frozen=True)
    class Open:
        """Without slots."""

        size: int

        def __post_init__(self) -> None:
            if self.size < 0:
                raise ValueError("negative")

        @cached_property
        def double(self) -> int:
            return 2 * self.size

    @decorator(frozen=True)
    class Derived(Open):
        """With a dataclass among its bases."""

        other: str = "x"

    return Slotted, Open, Derived


QUICK, STANDARD = define(quick_dataclasses.dataclass), define(dataclasses.dataclass)
# Pickles refer to classes by their names in a module.
QuickSlotted, QuickOpen = QUICK[:2]
QuickSlotted.__qualname__, QuickOpen.__qualname__ = "QuickSlotted", "QuickOpen"


def describe(slotted: type[Any], plain: type[Any], derived: type[Any]) -> Mapping[str, object]:
    """What a user of the classes sees, without the names of the classes."""
    full, bare = slotted("a", [1], "n", key=2), slotted("a", [1])
    with pytest.raises(FrozenInstanceError) as assignment:
        full.name = "b"
    with pytest.raises(FrozenInstanceError) as deletion:
        del plain(1).size
    with pytest.raises(ValueError, match="negative"):
        plain(-1)
    return {
        "signature": str(inspect.signature(slotted)),
        "repr": repr(full).partition("(")[2],
        "equal": (bare == slotted("a", [1], "other"), full == bare, plain(1) == derived(1), bare == 1),
        "hash": (hash(bare), hash(plain(3)), hash(derived(3))),
        "fields": [(each.name, each.type) for each in dataclasses.fields(slotted)],
        "replaced": dataclasses.asdict(dataclasses.replace(full, name="c")),
        "messages": (str(assignment.value), str(deletion.value)),
        "slots": (slotted.__slots__, hasattr(bare, "__dict__"), slotted.kind),
        "cached": (plain(4).double, derived(5, "y").double),
        "match": slotted.__match_args__,
    }


def test_they_behave_as_those_of_the_standard_library() -> None:
    assert describe(*QUICK) == describe(*STANDARD)


def test_they_are_copied_and_pickled() -> None:
    for record in (QuickSlotted("a", [1], "n", key=2), QuickOpen(3)):
        assert pickle.loads(pickle.dumps(record)) == copy.copy(record) == copy.deepcopy(record) == record


def test_a_default_of_a_factory_is_new_for_each_object() -> None:
    assert QuickSlotted("a").values is not QuickSlotted("a").values


def test_a_subclass_that_is_no_dataclass_has_attributes_of_its_own() -> None:
    class Named(QuickOpen):  # type: ignore[misc, valid-type]
        """A plain subclass."""

    named = Named(1)
    named.label = "x"
    del named.label
    with pytest.raises(FrozenInstanceError, match="size"):
        named.size = 2


def test_a_field_without_init_is_refused() -> None:
    with pytest.raises(TypeError, match="without init"):

        @quick_dataclasses.dataclass(frozen=True)
        class Unset:
            """A field that no argument sets."""

            value: int = field(default=0, init=False)


def test_other_classes_are_left_to_the_standard_library() -> None:
    @quick_dataclasses.dataclass
    class Mutable:
        """Not frozen."""

        value: int

    record = Mutable(1)
    record.value = 2
    assert record == Mutable(2)
    assert Mutable.__hash__ is None
