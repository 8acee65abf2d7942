"""Read a model's structured answer from its text: what a person would read without doubt, and nothing else.

Every JSON value that fits the schema is considered, after hidden reasoning and chat tokens are removed. Values that
stand in the request do not count. If the others differ in a measured field, the answer is ambiguous. Every number,
boolean and label that is read stands in the text as a whole token.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from pydantic import BaseModel, ValidationError

from auditor.models.contradicted_answers import differs, has_rival, is_contradicted
from auditor.models.json_extraction import (
    JsonObject,
    JsonValue,
    NumberText,
    decode_json,
    find_json,
    to_plain,
)
from auditor.models.reasoning import strip_thinking
from auditor.models.structured import UNREADABLE, explain_invalid, find_schema
from auditor.models.structured_fields import find_fields, normalize_key, read_value
from auditor.text_safety import escape_for_storage, map_strings

S = TypeVar("S", bound=BaseModel)

MAX_CACHED_READINGS = 512
"""Answers of the batches in flight."""
MAX_FIELDS = 100
"""Members of an object that may be an answer."""
MAX_NESTING = 6
"""Wrappers around an answer, such as a list of one or `{"answer": {...}}`, that are removed."""
MAX_OBJECTS = 1000
"""Objects of one text that are compared with the schema."""
MAX_EXPLAINED_CHARS = 64 * 1024
"""Longest text without any field whose problem is described: each key that the schema lacks costs time."""
TWO_ANSWERS = "two answers"
REPEATS_REQUEST = "the answer only repeats the request"


@dataclass(frozen=True, slots=True)
class Reading(Generic[S]):
    """What was read of an answer.

    Attributes:
        answer: the validated structure; None if there is none, or more than one.
        problem: why there is none, in one line, for the model that gave the answer; None if there is one.
        ignored_keys: keys that the schema lacks.
    """

    answer: S | None
    problem: str | None = None
    ignored_keys: tuple[str, ...] = ()


class _Fit(NamedTuple):
    """A value that fits the schema: the structure, and its keys that the schema lacks."""

    answer: Any
    ignored_keys: tuple[str, ...]


class _Misfit(NamedTuple):
    """A value that does not fit: its fields as read, or why it is ambiguous."""

    fields: Mapping[str, Any]
    problem: str | None


_Unexplained: TypeAlias = tuple[str, Sequence[_Misfit]]
"""Visible text of an answer that is none, and its values that do not fit."""


def parse_structured_answer(structure: type[S], text: str, request: str = "") -> S | str:
    """Parse a structured answer; see `read_structured_answer`.

    Returns:
        The validated structure, or a one-line error message if the text has none, or more than one.
    """
    reading = read_structured_answer(structure, text, request)
    return reading.problem or UNREADABLE if reading.answer is None else reading.answer


def read_structured_answer(structure: type[S], text: str, request: str = "", *, explains: bool = True) -> Reading[S]:
    """Read the one answer that a text gives to a question.

    Args:
        structure: the pydantic model of the answer.
        text: the model's text.
        request: what the model was asked; a value that stands there word for word does not count.
        explains: whether a text without an answer gets a problem from instructor, which takes a second the first time.

    Raises:
        ModelSetupError: the answer is invalid, and the package that describes the problem cannot be imported.
    """
    reading, unexplained = _read(structure, text, request)
    return Reading(None, _explain(structure, *unexplained)) if explains and unexplained is not None else reading


def _read(structure: type[S], text: str, request: str) -> tuple[Reading[S], _Unexplained | None]:
    """Read an answer; the second value is what an explanation needs, None if the problem is said."""
    visible_text, values = _find_visible_json(text)
    is_repeated = values is not None and any(visible_text[value.start : value.end] in request for value in values)
    return _read_values(structure, text, request if is_repeated else "")


@functools.lru_cache(MAX_CACHED_READINGS)
def _read_values(structure: type[S], text: str, request: str) -> tuple[Reading[S], _Unexplained | None]:
    """Do what `_read` does; `request` is empty if no value stands there.

    Cached, since keys that are ignored, the length of a text and its content are read one after another, and judges
    often give equal answers.
    """
    visible_text, values = _find_visible_json(text)
    if values is None:
        return Reading(None, "the answer is too long or too deeply nested to be read"), None
    fits: list[_Fit] = []
    misfits: list[_Misfit] = []
    is_repetition = False
    surroundings: list[str] = []
    end = 0
    for value in values:
        results = list(_compare_with_schema(structure, value.node))
        if not results:
            continue
        is_repeated = bool(request) and visible_text[value.start : value.end] in request
        if is_repeated or any(isinstance(result, _Fit) for result in results):
            surroundings.append(visible_text[end : value.start])
            end = value.end
        if is_repeated:
            is_repetition = True
            continue
        fits += [result for result in results if isinstance(result, _Fit)]
        misfits += [result for result in results if isinstance(result, _Misfit)]
    if problem := next((misfit.problem for misfit in misfits if misfit.problem is not None), None):
        return Reading(None, problem), None
    if not fits and is_repetition:
        return Reading(None, REPEATS_REQUEST), None
    if not fits:
        return Reading(None, UNREADABLE), (visible_text, misfits)
    surroundings.append(visible_text[end:])
    fields = find_fields(structure)
    if any(differs(fields.values(), fit.answer, fits[-1].answer) for fit in fits[:-1]):
        return Reading(None, TWO_ANSWERS), None
    if is_contradicted(fields.values(), fits[-1].answer, surroundings):
        return Reading(None, TWO_ANSWERS), None
    return Reading(fits[-1].answer, ignored_keys=fits[-1].ignored_keys), None


def is_complete_structure(schema_name: str, text: str) -> bool:
    """Whether all that is visible of a text, and not only a part of it, is valid JSON for the schema of this name."""
    try:
        find_schema(schema_name).model_validate_json(strip_thinking(text))
    except ValidationError:
        return False
    return True


@functools.lru_cache(MAX_CACHED_READINGS)
def _find_visible_json(text: str) -> tuple[str, list[JsonValue] | None]:
    """The text without thinking and chat tokens, and the JSON in it; None if it takes too long to find."""
    visible_text = strip_thinking(text)
    try:
        if visible_text is not text and (tagged_json := _strip_inside(text)) is not None:
            return tagged_json
        return visible_text, find_json(visible_text)
    except ValueError:
        return visible_text, None


def _strip_inside(text: str) -> tuple[str, list[JsonValue]] | None:
    """The JSON that a text consists of, without thinking inside its texts; None if the tags are around the JSON."""
    start, end = text.find("{"), text.rfind("}") + 1
    around = f"{text[:start]}\n{text[end:]}"
    if start < 0 or strip_thinking(around) is not around:
        return None
    values = find_json(text)
    if len(values) != 1:
        return None
    return text, [values[0]._replace(node=_map_texts(values[0].node))]


def _map_texts(node: Any) -> Any:
    """Copy decoded JSON without thinking in its texts."""
    if isinstance(node, JsonObject):
        return JsonObject((name, _map_texts(value)) for name, value in node)
    return node if isinstance(node, NumberText) else map_strings(node, strip_thinking)


def _compare_with_schema(structure: type[BaseModel], node: Any) -> Iterator[_Fit | _Misfit]:
    """Yield each object in a value that fits the schema, or has some of its fields, but for those inside a fit."""
    stack: list[tuple[Any, int]] = [(node, 0)]
    n_objects = 0
    while stack and n_objects < MAX_OBJECTS:
        current, depth = stack.pop()
        if isinstance(current, str) and not isinstance(current, NumberText):
            if depth == 0 or not current.lstrip().startswith(("{", "[", '"')):
                continue
            try:
                current = decode_json(current)
            except ValueError:
                continue
        children: Sequence[Any] = ()
        if isinstance(current, JsonObject) and len(current) <= MAX_FIELDS:
            n_objects += 1
            result = _read_object(structure, current)
            if result is not None:
                yield result
            children = () if isinstance(result, _Fit) else [value for _, value in current]
        elif isinstance(current, list) and any(isinstance(value, (JsonObject, list, str)) for value in current[:1]):
            children = current
        if depth < MAX_NESTING:
            stack += [(child, depth + 1) for child in reversed(children) if isinstance(child, (JsonObject, list, str))]


def _read_object(structure: type[BaseModel], members: JsonObject) -> _Fit | _Misfit | None:
    """Compare one object with the schema; None if it has none of its fields."""
    fields = find_fields(structure)
    values: dict[str, Any] = {}
    unknown: list[tuple[str, Any]] = []
    has_conflict = False
    for key, value in members:
        field = fields.get(key) or fields.get(normalize_key(key))
        if field is None:
            unknown.append((key, value))
            continue
        read = map_strings(read_value(field, value), escape_for_storage)
        has_conflict |= field.name in values and values[field.name] != read
        values[field.name] = read
    if not values:
        return None
    try:
        answer = structure.model_validate(values)
    except ValidationError:
        return _Misfit(values, None)
    if has_conflict:
        return _Misfit(values, "a key has two different values")
    if unknown and any(has_rival(field, getattr(answer, field.name), unknown) for field in fields.values()):
        return _Misfit(values, TWO_ANSWERS)
    return _Fit(answer, tuple(key for key, _ in unknown))


def _explain(structure: type[BaseModel], text: str, misfits: Sequence[_Misfit]) -> str:
    """Why a text is no answer, in one line: of its object with the most fields, or else of the text."""
    if misfits:
        closest = max(reversed(misfits), key=lambda misfit: len(misfit.fields))
        text = json.dumps(to_plain(closest.fields), default=to_plain)
    elif len(text) > MAX_EXPLAINED_CHARS:
        return "the answer has none of the fields"
    return explain_invalid(structure, text)
