"""`dataclass` for the classes that quick commands load: frozen ones are defined in a third of the time.

`dataclasses.dataclass` compiles six methods of each class, which takes a ninth of the instructions of `auditor status`.
Here only `__init__` is compiled; the others are closures. Users and type checkers see no difference.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")

_METHODS = frozenset(("__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__", "__getstate__"))
"""A class that defines one of them is left to the standard library."""


class _Factory:
    """Default of an argument whose value a factory makes."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, **options):
        """Define a class as `dataclasses.dataclass` does, with the same arguments."""

        def define(undefined_class: type[T]) -> type[T]:
            is_plain = options.keys() <= {"slots", "kw_only"} and not vars(undefined_class).keys() & _METHODS
            has_bases = any(map(dataclasses.is_dataclass, undefined_class.__mro__[1:]))
            if frozen and eq and is_plain and not has_bases:
                return _define_frozen(undefined_class, **options)
            return dataclasses.dataclass(undefined_class, frozen=frozen, eq=eq, **options)

        return define if cls is None else define(cls)


def _define_frozen(undefined_class: type[T], **options: Any) -> type[T]:
    """Define a frozen class without a dataclass among its bases."""
    defined = dataclasses.dataclass(undefined_class, init=False, repr=False, eq=False, **options)
    fields = dataclasses.fields(defined)  # type: ignore[arg-type]  # it is a dataclass by now
    methods: dict[str, Any] = {
        "__init__": _compile_init(defined, fields),
        "__repr__": _make_repr([field.name for field in fields if field.repr]),
        "__eq__": _make_eq(_make_getter([field.name for field in fields if field.compare])),
        "__hash__": _make_hash(
            _make_getter([field.name for field in fields if (field.compare if field.hash is None else field.hash)])
        ),
        "__setattr__": _refuse_assignment,
        "__delattr__": _refuse_deletion,
    }
    if options.get("slots"):
        methods |= {"__getstate__": _get_state, "__setstate__": _set_state}
    for name, method in methods.items():
        setattr(defined, name, method)
    parameters: Any = defined.__dataclass_params__  # type: ignore[attr-defined]
    for name in ("init", "repr", "eq", "frozen"):  # classes that inherit from it look here
        setattr(parameters, name, True)
    return defined


def _compile_init(defined: type, fields: tuple[dataclasses.Field[Any], ...]) -> Callable[..., None]:
    """Compile `__init__`. Raises TypeError for a field that it does not set."""
    namespace: dict[str, Any] = {"_set": object.__setattr__, "_FACTORY": _FACTORY}
    positional, keywords, lines = ["self"], list[str](), list[str]()
    for field in fields:
        if not field.init:
            raise TypeError(f"{defined.__qualname__}.{field.name}: use dataclasses.dataclass for fields without init")
        name, value, parameter = field.name, field.name, field.name
        if field.default is not MISSING:
            namespace[f"_default_{name}"] = field.default
            parameter = f"{name}=_default_{name}"
        elif field.default_factory is not MISSING:
            namespace[f"_make_{name}"] = field.default_factory
            parameter, value = f"{name}=_FACTORY", f"_make_{name}() if {name} is _FACTORY else {name}"
        (keywords if field.kw_only else positional).append(parameter)
        lines.append(f" _set(self, {name!r}, {value})")
    if hasattr(defined, "__post_init__"):
        lines.append(" self.__post_init__()")
    parameters = ", ".join([*positional, *(["*"] if keywords else []), *keywords])
    exec("\n".join((f"def __init__({parameters}):", *(lines or [" pass"]))), namespace)
    init: Callable[..., None] = namespace["__init__"]
    init.__qualname__, init.__module__ = f"{defined.__qualname__}.__init__", defined.__module__
    init.__annotations__ = {field.name: field.type for field in fields} | {"return": None}
    return init


def _make_getter(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """A function that returns these attributes of an object."""
    return attrgetter(*names) if len(names) > 1 else lambda record: tuple(getattr(record, name) for name in names)


def _make_eq(get: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, object], bool]:
    def __eq__(self: Any, other: object) -> bool:
        return get(self) == get(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _make_hash(get: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:
        return hash(get(self))

    return __hash__


def _make_repr(names: list[str]) -> Callable[[Any], str]:
    @recursive_repr()
    def __repr__(self: Any) -> str:
        values = ", ".join([f"{name}={getattr(self, name)!r}" for name in names])
        return f"{self.__class__.__qualname__}({values})"

    return __repr__


def _refuse_assignment(self: Any, name: str, value: object) -> None:
    if _is_field(self, name):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _refuse_deletion(self: Any, name: str) -> None:
    if _is_field(self, name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _is_field(record: Any, name: str) -> bool:
    """Whether a name cannot be set; other names can in a subclass that is no dataclass."""
    return "__dataclass_fields__" in vars(type(record)) or name in record.__dataclass_fields__


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
