"""Structured answers: their schemas and forms; the only importer of instructor."""

from __future__ import annotations

import copy
import functools
from contextlib import suppress
from types import ModuleType, SimpleNamespace
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from auditor import bootstrap
from auditor.config.base import Structure
from auditor.config.installed_probes import list_built_in_probes, load_probe
from auditor.domain import SCORE_MAX, SCORE_MIN
from auditor.errors import ModelSetupError
from auditor.models.answer_schemas import ANSWER_SCHEMAS, MAX_WORDS_FIELD, REVIEW_SCHEMAS

UNREADABLE = "the answer cannot be read"


@functools.cache
def load_instructor() -> ModuleType:
    """Import instructor, which loads openai (1 s).

    Raises:
        ModelSetupError: it cannot be imported.
    """
    try:
        import instructor
        import instructor.core
    except ImportError as error:
        raise ModelSetupError(
            f"structured answers need the package instructor, which cannot be imported: {error}.",
            "Install it (pip install --force-reinstall auditor), or ask for free text without judges: "
            'probes.direct.mode = "text" and judges = [].',
        ) from error
    bootstrap.silence_libraries()
    return instructor


def build_request(name: str, schema: dict[str, Any], mode: Literal["JSON_SCHEMA", "TOOLS"]) -> dict[str, Any]:
    """The arguments by which instructor requests an answer of a schema.

    Args:
        name: of the structure.
        schema: its JSON schema, which is sent unchanged.
        mode: instructor's name for the form.
    """

    class Requested(BaseModel):
        """A structure with the given schema."""

        @classmethod
        def model_json_schema(cls, *_: Any, **__: Any) -> dict[str, Any]:
            """The given schema, in place of one that pydantic makes."""
            return copy.deepcopy(schema)

    Requested.__name__ = name
    instructor = load_instructor()
    requests: list[dict[str, Any]] = []

    def record(**request: Any) -> None:
        """Keep a request, and answer it with nothing."""
        requests.append(request)

    with suppress(instructor.core.InstructorError):  # there is no completion to read
        instructor.from_litellm(record, mode=instructor.Mode[mode]).create(
            response_model=Requested, messages=[], max_retries=0
        )
    (request,) = requests
    return request


def _complete(*, completion: object, **_: Any) -> object:
    """Return the completion for a request of instructor's, without sending anything."""
    return completion


@functools.cache
def _client() -> Any:
    """A client of instructor's for answers that are JSON."""
    instructor = load_instructor()
    return instructor.from_litellm(_complete, mode=instructor.Mode.JSON_SCHEMA)


@functools.cache
def _with_response_schema(structure: type[BaseModel]) -> type[BaseModel]:
    """The structure as instructor would wrap it for each answer, which takes a third of its time."""
    wrapped: type[BaseModel] = load_instructor().response_schema(structure)
    return wrapped


def explain_invalid(structure: type[BaseModel], text: str) -> str:
    """Why instructor cannot read a text as a structure, in one line without the text itself.

    Raises:
        ModelSetupError: instructor cannot be imported.
    """
    instructor = load_instructor()
    message = SimpleNamespace(content=text, tool_calls=None, refusal=None)
    completion = SimpleNamespace(choices=[SimpleNamespace(message=message, finish_reason="stop")], usage=None)
    try:
        _client().create(
            response_model=_with_response_schema(structure), messages=[], max_retries=0, completion=completion
        )
    except instructor.core.InstructorError as error:
        cause = error.failed_attempts[-1].exception if error.failed_attempts else None
        if isinstance(cause, ValidationError):
            # The first of the validation errors; `loc` is the path to the field.
            problem = cause.errors(include_url=False, include_input=False)[0]
            field_path = ".".join(str(key) for key in problem["loc"])
            return f"{field_path}: {problem['msg']}" if field_path else str(problem["msg"])
    return UNREADABLE


CHARS_PER_WORD = 8
"""Upper bound for converting a limit on words to characters; no language of the prompts needs as many on average."""

SCHEMA_BY_NAME: dict[str, type[Structure]] = {s.__name__: s for s in (*ANSWER_SCHEMAS, *REVIEW_SCHEMAS)}
"""Structures of the questions that belong to no probe."""


@functools.cache
def list_schemas() -> dict[str, type[BaseModel]]:
    """List all structures of the program by name: its own, and those of built-in probes with a stage of their own."""
    of_probes = [schema for probe in list_built_in_probes() for schema in probe.list_schemas()]
    return {**SCHEMA_BY_NAME, **{schema.__name__: schema for schema in of_probes}}


def find_schema(name: str) -> type[BaseModel]:
    """The structure of a name: a built-in one, or `PROBE.CLASS` for a structure of another package's probe.

    Raises:
        KeyError: there is no such structure.
        ProbeError: the probe cannot be used.
    """
    if name in SCHEMA_BY_NAME:
        return SCHEMA_BY_NAME[name]
    probe, separator, class_name = name.partition(".")
    if not separator:
        return list_schemas()[name]
    return {schema.__name__: schema for schema in load_probe(probe).probe.schemas}[class_name]


@functools.cache
def limited_schema(structure: type[BaseModel], max_words: int) -> dict[str, Any]:
    """The JSON schema of a structure with the limit on the length of its texts, for requests and descriptions.

    The limit is only in the JSON schema, where a grammar can enforce it for small models; longer texts are still
    accepted.

    Args:
        structure: the pydantic model of the answer.
        max_words: limit on each text without an enumeration.
    """
    schema = structure.model_json_schema()
    for field in schema["properties"].values():
        if field.get("type") == "string" and "enum" not in field:
            field["maxLength"] = CHARS_PER_WORD * max_words
        if "description" in field:
            field["description"] = field["description"].replace(MAX_WORDS_FIELD, str(max_words))
    return schema


@functools.cache
def response_format(structure: type[BaseModel], max_words: int) -> dict[str, Any]:
    """Build the `response_format` that requests a structured answer; see `limited_schema`.

    Raises:
        ModelSetupError: instructor cannot be imported.
    """
    request = build_request(structure.__name__, limited_schema(structure, max_words), "JSON_SCHEMA")
    requested_format: dict[str, Any] = request["response_format"]
    return {**requested_format, "json_schema": {**requested_format["json_schema"], "strict": True}}


@functools.cache
def _tool_request(name: str) -> dict[str, Any]:
    """instructor's request for a tool of this name, which must be called, without parameters."""
    return build_request(name, {"title": name, "type": "object", "properties": {}}, "TOOLS")


def to_required_tool(requested_format: dict[str, Any]) -> dict[str, Any]:
    """Turn a response format into a tool that must be called, for providers that support only tools.

    The tool's parameters are the schema of the response format, with its descriptions, so that a model reads the same
    words in both forms.

    Raises:
        ModelSetupError: instructor cannot be imported.
    """
    request = copy.deepcopy(_tool_request(requested_format["json_schema"]["name"]))
    (tool,) = request["tools"]
    function = {"name": tool["function"]["name"], "parameters": requested_format["json_schema"]["schema"]}
    return {"tools": [{**tool, "function": function}], "tool_choice": request["tool_choice"]}


def enumerate_bounded_numbers(schema: Any) -> Any:
    """Copy a JSON schema with every number from -1 to 1, which is a score, restricted to the 21 tenths.

    For llama.cpp, whose grammar ignores the bounds of a number.
    """
    if isinstance(schema, dict):
        if schema.get("type") == "number" and (schema.get("minimum"), schema.get("maximum")) == (SCORE_MIN, SCORE_MAX):
            return {**schema, "enum": [round(i / 10, 1) for i in range(-10, 11)]}
        return {k: enumerate_bounded_numbers(v) for k, v in schema.items()}
    return [enumerate_bounded_numbers(v) for v in schema] if isinstance(schema, list) else schema
