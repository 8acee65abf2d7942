"""Structured answers: the forms in which they are requested, and parsing them from a model's text."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from auditor.models.answer_schemas import ANSWER_SCHEMAS, Structure
from auditor.models.instructor_client import read_structured_answer
from auditor.models.json_extraction import extract_last_json, has_too_many_fields
from auditor.models.review_schemas import MAX_WORDS_FIELD, REVIEW_SCHEMAS
from auditor.models.thinking import strip_thinking
from auditor.text_safety import map_strings

S = TypeVar("S", bound=BaseModel)

CHARS_PER_WORD = 8
"""Upper bound for converting a limit on words to characters; no language of the prompts needs as many on average."""

ALL_SCHEMAS: tuple[type[Structure], ...] = (*ANSWER_SCHEMAS, *REVIEW_SCHEMAS)
SCHEMA_BY_NAME: dict[str, type[Structure]] = {s.__name__: s for s in ALL_SCHEMAS}


@functools.cache
def response_format(structure: type[BaseModel], max_words: int) -> dict[str, Any]:
    """Build the `response_format` that requests a structured answer.

    The limit on the length of texts is only in the JSON schema, where a grammar can enforce it for small models; longer
    texts are still accepted.

    Args:
        structure: the pydantic model of the answer.
        max_words: limit on each text without an enumeration.
    """
    schema = structure.model_json_schema()
    for field in schema["properties"].values():
        if field["type"] == "string" and "enum" not in field:
            field["maxLength"] = CHARS_PER_WORD * max_words
        if "description" in field:
            field["description"] = field["description"].replace(MAX_WORDS_FIELD, str(max_words))
    return {"type": "json_schema", "json_schema": {"name": structure.__name__, "schema": schema, "strict": True}}


def to_required_tool(requested_format: dict[str, Any]) -> dict[str, Any]:
    """Turn a response format into a tool that must be called, for providers that support only tools.

    The tool's parameters are the schema of the response format, with its descriptions, so that a model reads the same
    words in both forms.
    """
    json_schema = requested_format["json_schema"]
    name = json_schema["name"]
    function = {"name": name, "parameters": json_schema["schema"]}
    return {
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": name}},
    }


def enumerate_bounded_numbers(schema: Any) -> Any:
    """Copy a JSON schema with every bounded number restricted to the 21 tenths from -1 to 1.

    For llama.cpp, whose grammar ignores the bounds of a number.
    """
    if isinstance(schema, dict):
        if schema.get("type") == "number" and "minimum" in schema:
            # Every bounded number of the structures is a score, which is in [-1, 1].
            return {**schema, "enum": [round(i / 10, 1) for i in range(-10, 11)]}
        return {k: enumerate_bounded_numbers(v) for k, v in schema.items()}
    return [enumerate_bounded_numbers(v) for v in schema] if isinstance(schema, list) else schema


def parse_structured_answer(structure: type[S], text: str) -> S | str:
    """Parse a structured answer without its thinking: the whole text as JSON, or the last JSON object in it.

    Returns:
        The validated structure, or a one-line error message if the text has none.
    """
    visible_text = strip_thinking(text)
    for json_text in _iter_json_texts(text, visible_text):
        if has_too_many_fields(json_text):
            return "the answer has too many fields"
        if (answer := read_structured_answer(structure, json_text)) is not None:
            return answer
    try:
        structure.model_validate_json(visible_text)
    except ValidationError as error:
        # The first of the validation errors; `loc` is the path to the field.
        problem = error.errors(include_url=False, include_input=False)[0]
        field_path = ".".join(str(key) for key in problem["loc"])
        return f"{field_path}: {problem['msg']}" if field_path else str(problem["msg"])
    return "the answer cannot be read"


def _iter_json_texts(text: str, visible_text: str) -> Iterator[str]:
    """Yield the parts of a text that may be the structure: the visible text, the last JSON in it, the JSON around tags.

    Thinking is never among them: the model may have drafted another answer in it.
    """
    if visible_text.lstrip().startswith("{"):
        yield visible_text
    if (extracted_text := extract_last_json(visible_text)) is not None and extracted_text != visible_text.strip():
        yield extracted_text
    if visible_text != text and text.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):  # not JSON
            yield json.dumps(map_strings(json.loads(text), strip_thinking))


def is_complete_structure(schema_name: str, text: str) -> bool:
    """Whether all that is visible of a text, and not only a part of it, is valid JSON for the schema of this name."""
    try:
        SCHEMA_BY_NAME[schema_name].model_validate_json(strip_thinking(text))
    except ValidationError:
        return False
    return True
