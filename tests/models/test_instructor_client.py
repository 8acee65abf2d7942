"""instructor is used by its public interface only, makes no request of its own, and adds no words of its own."""

from __future__ import annotations

import ast
import contextlib
import copy
import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest

import auditor
from auditor.models import instructor_client
from auditor.models.answer_schemas import MoralJudgement, Structure
from auditor.models.instructor_client import read_structured_answer
from auditor.models.review_schemas import MAX_WORDS_FIELD
from auditor.models.structured import ALL_SCHEMAS, parse_structured_answer, response_format, to_required_tool

VALID = json.dumps({"norms": "a", "reasoning": "b", "score": -0.5})
PUBLIC_MODULES = {"instructor", "instructor.core"}


def test_only_public_modules_of_instructor_are_imported_and_by_one_module() -> None:
    imports = {
        (path.name, module)
        for path in _sources()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for module in _imported_modules(node)
        if module.split(".")[0] == "instructor"
    }
    assert imports == {("instructor_client.py", module) for module in PUBLIC_MODULES}


@pytest.mark.parametrize("structure", ALL_SCHEMAS)
def test_requests_have_the_schema_that_instructor_would_send(structure: type[Structure]) -> None:
    requested_format = copy.deepcopy(response_format(structure, 20))
    tool = to_required_tool(requested_format)
    schema = requested_format["json_schema"].pop("schema")
    for field in schema["properties"].values():
        field.pop("maxLength", None)
    request = _instructors_request(structure, "JSON_SCHEMA")
    instructors_schema = json.dumps(request["response_format"]["json_schema"].pop("schema"))
    assert json.loads(instructors_schema.replace(MAX_WORDS_FIELD, "20")) == schema
    assert requested_format["json_schema"].pop("strict") is True
    assert request["response_format"] == requested_format
    instructors_tool = _instructors_request(structure, "TOOLS")
    assert instructors_tool["tools"][0]["function"]["name"] == tool["tools"][0]["function"]["name"]
    assert instructors_tool["tool_choice"] == tool["tool_choice"]


def test_the_tool_has_the_schema_of_the_response_format() -> None:
    requested_format = response_format(MoralJudgement, 20)
    assert to_required_tool(requested_format) == {
        "tools": [
            {
                "type": "function",
                "function": {"name": "MoralJudgement", "parameters": requested_format["json_schema"]["schema"]},
            }
        ],
        "tool_choice": {"type": "function", "function": {"name": "MoralJudgement"}},
    }


def test_schemas_for_other_limits_share_nothing() -> None:
    short, long = response_format(MoralJudgement, 1), response_format(MoralJudgement, 2)
    lengths = [fmt["json_schema"]["schema"]["properties"]["norms"]["maxLength"] for fmt in (short, long)]
    assert lengths == [8, 16]


@pytest.mark.parametrize("text", ["no JSON", '{"norms": "a"}', VALID[:-5], "", "{}" * 100])
def test_instructor_makes_one_request_whatever_the_text(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[Any] = []

    def count(*, completion: object, **request: Any) -> object:
        requests.append([*request["messages"]])
        return completion

    instructor_client._client.cache_clear()
    monkeypatch.setattr(instructor_client, "_complete", count)
    assert read_structured_answer(MoralJudgement, text) is None
    instructor_client._client.cache_clear()
    assert requests == [[]]


@pytest.mark.parametrize("score", ["-0.5", "1", "0", "1e-3", '"0.5"', "2", "null", "true"])
@pytest.mark.parametrize("extra", ["", ', "more": 1', ', "score": 0.25'])
def test_pydantic_and_instructor_read_the_same(score: str, extra: str) -> None:
    text = f'{{"norms": "a", "reasoning": "b\\u00e9", "score": {score}{extra}}}'
    assert read_structured_answer(MoralJudgement, text) == instructor_client._read_by_instructor(MoralJudgement, text)


def test_an_answer_is_read_as_the_structure_itself() -> None:
    answer = read_structured_answer(MoralJudgement, VALID)
    assert type(answer) is MoralJudgement
    assert answer == MoralJudgement(norms="a", reasoning="b", score=-0.5)


def test_an_unreadable_answer_is_not_logged(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.ERROR):
        assert isinstance(parse_structured_answer(MoralJudgement, '{"norms": "hunter2"}'), str)
    assert "hunter2" not in caplog.text
    assert capfd.readouterr() == ("", "")


def _instructors_request(structure: type[Structure], mode: str) -> dict[str, Any]:
    """The keyword arguments that instructor would send for a structured answer."""
    import instructor

    requests: list[dict[str, Any]] = []

    def record(**request: Any) -> None:
        requests.append(request)

    with contextlib.suppress(Exception):  # instructor cannot read the missing completion
        instructor.from_litellm(record, mode=instructor.Mode[mode]).create(
            response_model=structure, messages=[], max_retries=0
        )
    (request,) = requests
    return request


def _sources() -> list[Path]:
    """All source files of the package, those behind its links to folders included."""
    folder = Path(auditor.__file__).parent
    return [
        Path(parent) / name
        for parent, _, names in os.walk(folder, followlinks=True)
        for name in names
        if name.endswith(".py")
    ]


def _imported_modules(node: ast.AST) -> list[str]:
    """Modules that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []
