"""What is wrong with validated settings, in plain words: which key, what it must be, what it is, and how to fix it.

Of pydantic's errors only the place is used, and the words of our own validators. What a value must be is said from the
key's type, so that no kind of error, old or new, can bring pydantic's words to the user.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, time
from math import isfinite
from typing import Any

import pydantic
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from auditor.config.type_descriptions import describe_type, field_types, find_field, key_type, type_at_step
from auditor.errors import did_you_mean
from auditor.text_safety import truncate_text

MAX_PROBLEMS = 10
"""Problems that a message lists; a wrong file may have one in every row."""
KNOWN_KEYS_PREFIX = "Known here: "
SECRET_KEYS = ("api_key", "api_base", "endpoint", "headers", "params", "storage")
"""Keys whose value no message shows: somebody may have written a password or a key there."""


@dataclass(frozen=True)
class _ErrorLocation:
    """Where an error is.

    Attributes:
        path: the keys and the places in lists that lead there.
        around: the type of the table or list that it is in.
        type: its own type; None where the key is not known.
        field: the field behind its key.
        is_key: whether the key is wrong, and not its value.
    """

    path: tuple[str | int, ...]
    parent_type: Any
    expected_type: Any
    field_info: FieldInfo | None = None
    is_key: bool = False


def explain_validation_error(error: pydantic.ValidationError, data: Any, root_model: type[BaseModel]) -> str:
    """Everything that is wrong, a line each.

    Args:
        error: as raised by the validation of `root`.
        data: what was validated, for the names of list items.
        root: the model of the whole.
    """
    places = [(dict(e), _locate_error(e["loc"], root_model)) for e in error.errors(include_url=False)]
    # Where a word or a list is allowed, pydantic complains about both; what is wrong inside of the list says more.
    outer = {place.path[:n] for _, place in places for n in range(len(place.path))}
    telling = [(e, place) for e, place in places if place.path not in outer]
    problems = _deduplicate_problems(_explain_problem(e, place, data) for e, place in telling)
    more = len(problems) - MAX_PROBLEMS
    return "\n  also: ".join([*problems[:MAX_PROBLEMS], *([f"{more} more problems."] if more > 0 else [])])


def _deduplicate_problems(problems: Iterable[str]) -> list[str]:
    """Different problems, each list of known keys only once: the list for a whole file is long."""
    shown: set[str] = set()
    result = []
    for problem in dict.fromkeys(problems):
        message, mark, known = problem.partition(KNOWN_KEYS_PREFIX)
        result.append(f"{message}Correct or remove it." if mark and known in shown else problem)
        shown.add(known)
    return result


def _explain_problem(problem: dict[str, Any], location: _ErrorLocation, data: Any) -> str:
    where, kind = _format_path(location.path, data), problem["type"]
    if kind == "extra_forbidden":
        known = sorted(field_types(location.parent_type))
        return f"unknown key '{where}'. How to fix: {_suggest_key(str(location.path[-1]), known)}"
    if kind == "missing" and not isinstance(location.path[-1], int):
        return f"the key '{where}' is missing. How to fix: Add it: {describe_type(location.expected_type)}."
    if "api_key" in location.path:
        advice = 'How to fix: Write it as "os.environ/OPENAI_API_KEY".'
        return f"'{where}' must name an environment variable, never be the key. {advice}"
    if kind == "value_error":
        message = str(problem["ctx"]["error"])
        message = message if "How to fix:" in message else f"{message.rstrip('.')}. How to fix: Correct that value."
        return f"'{where}': {message}" if where else message
    if kind == "missing":  # an item of a list with a given number of items
        location = _ErrorLocation(location.path[:-1], None, location.parent_type)
        where = _format_path(location.path, data)
    shown = _format_setting(problem["input"], is_secret=any(part in SECRET_KEYS for part in location.path))
    subject = f"the key '{where}'" if location.is_key else f"'{where}'" if where else "the file"
    if kind == "string_pattern_mismatch" and location.field_info:
        description = _collapse_whitespace(location.field_info.description)
        return f"{subject} cannot be {shown}. {description} How to fix: {_how_to_fix(location)}"
    expected = describe_type(location.expected_type)
    if isinstance(problem["input"], float) and not isfinite(problem["input"]):
        expected = expected.replace("a number", "a finite number", 1)
    return f"{subject} must be {expected}, not {shown}. How to fix: {_how_to_fix(location)}"


def _collapse_whitespace(text: str | None) -> str:
    return " ".join((text or "").split())


def _suggest_key(key: str, known_keys: list[str]) -> str:
    return did_you_mean(key, known_keys, f"{KNOWN_KEYS_PREFIX}{', '.join(known_keys)}.")


def _how_to_fix(location: _ErrorLocation) -> str:
    field = location.field_info
    if location.is_key:
        return "Correct that key."
    if field is None or field.is_required():
        return "Correct that value."
    default = field.default
    if isinstance(default, (bool, int, float, str)):
        return f"Correct that value, or leave the key out: its default is {_format_setting(default)}."
    return "Correct that value, or leave the key out."


def _format_setting(value: object, *, is_secret: bool = False) -> str:
    """A value as the file has it, in short; never what may be a secret."""
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return "this number" if is_secret else truncate_text(str(value))
        case str():
            return "this text" if is_secret else f'"{truncate_text(value)}"' if value else "an empty text"
        case list() | tuple():
            items = "1 item" if len(value) == 1 else f"{len(value)} items"
            return f"a list of {items}" if value else "an empty list"
        case dict():
            return "a table"
        case date() | time():
            return f"the date or time {value}"
        case None:
            return "empty"
        case _:
            return "this"


def _locate_error(loc: tuple[str | int, ...], root_model: Any) -> _ErrorLocation:
    """Follow a location of pydantic's along the types."""
    place = _ErrorLocation((), None, root_model)
    for number, part in enumerate(loc):
        if part == "[key]" and number == len(loc) - 1:
            return _ErrorLocation(place.path, place.parent_type, key_type(place.parent_type), is_key=True)
        inner_type, is_step = type_at_step(place.expected_type, part, loc[number + 1 :])
        if is_step:
            place = _ErrorLocation(
                (*place.path, part), place.expected_type, inner_type, find_field(place.expected_type, part)
            )
        else:
            place = _ErrorLocation(place.path, place.parent_type, inner_type, place.field_info)
    return place


def _format_path(path: tuple[str | int, ...], data: Any) -> str:
    """`models[1 'gpt'].timeout_s`: list items carry their name, since people do not count tables."""
    text, here = "", data
    for part in path:
        here = _get_child(here, part)
        if isinstance(part, int):
            name = here.get("name") if isinstance(here, dict) else None
            text += f"[{part + 1}{f' {truncate_text(name)!r}' if isinstance(name, str) and name else ''}]"
        else:
            text += f".{truncate_text(part)}" if text else truncate_text(part)
    return text


def _get_child(parent: Any, part: str | int) -> Any:
    """The value under a key or at a place of a list; None where there is none."""
    if isinstance(parent, dict):
        return parent.get(part)
    return parent[part] if isinstance(parent, list) and isinstance(part, int) and part < len(parent) else None
