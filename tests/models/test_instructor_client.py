"""instructor is used by its public interface only, makes no request of its own, and adds no words of its own."""

from __future__ import annotations

import ast
import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest

import auditor
from auditor.models import instructor_client
from auditor.models.instructor_client import build_structured_request, read_structured_answer
from auditor.models.structured import (
    ALL_SCHEMAS,
    MoralJudgement,
    Structure,
    parse_structured_answer,
    response_format,
    to_required_tool,
)

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
def test_requests_have_the_schema_and_no_words_besides_it(structure: type[Structure]) -> None:
    assert build_structured_request(structure, "JSON_SCHEMA").keys() == {"response_format"}
    assert build_structured_request(structure, "TOOLS").keys() == {"tools", "tool_choice"}
    schema = structure.model_json_schema()
    assert build_structured_request(structure, "JSON_SCHEMA")["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": structure.__name__, "schema": schema},
    }


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


def test_a_schema_is_built_once_and_its_copies_share_nothing() -> None:
    assert build_structured_request(MoralJudgement, "JSON_SCHEMA") is build_structured_request(
        MoralJudgement, "JSON_SCHEMA"
    )
    short, long = response_format(MoralJudgement, 1), response_format(MoralJudgement, 2)
    lengths = [fmt["json_schema"]["schema"]["properties"]["norms"]["maxLength"] for fmt in (short, long)]
    assert lengths == [8, 16]


@pytest.mark.parametrize("text", [VALID, "no JSON", '{"norms": "a"}', VALID[:-5], "", "{}" * 100])
def test_reading_makes_one_request_whatever_the_text(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[Any] = []
    complete = instructor_client._complete

    def count(**request: Any) -> object:
        requests.append([*request["messages"]])
        return complete(**request)

    instructor_client._client.cache_clear()
    instructor_client._read_cached.cache_clear()
    monkeypatch.setattr(instructor_client, "_complete", count)
    read_structured_answer(MoralJudgement, text)
    instructor_client._client.cache_clear()
    assert requests == [[]]


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
