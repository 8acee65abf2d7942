"""Reports with other values in some places, for tests of what a report says."""

from __future__ import annotations

from dataclasses import is_dataclass, replace
from typing import Any, TypeVar

from pydantic import BaseModel

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


def construct_part(model: type[M], /, **values: Any) -> M:
    """A record that has only these values, for functions that read no others."""
    construct: Any = model.model_construct
    record: M = construct(**values)
    return record


def change(record: T, **values: Any) -> T:
    """A copy of a record with other values.

    Args:
        values: by path, whose parts are joined by two underscores: names of attributes, or `each` for all items of a
            list, or the number of one, such as `alignment__each__worst_case` and `regions__gaps__0__mae_gap`.
    """
    for path, value in values.items():
        record = _change_one(record, path.split("__"), value)
    return record


def _change_one(record: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    name, *others = path
    if isinstance(record, list):
        return [_change_one(item, others, value) if name in ("each", str(i)) else item for i, item in enumerate(record)]
    changed = _change_one(getattr(record, name), others, value)
    if isinstance(record, BaseModel):
        return record.model_copy(update={name: changed})
    assert is_dataclass(record), f"{record!r} has no field {name!r}"
    return replace(record, **{name: changed})  # type: ignore[type-var]
