"""instructor builds requests by its public interface only, sends none of its own, and adds no words of its own."""

from __future__ import annotations

import ast
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import auditor
from auditor.config.base import Structure
from auditor.models import structured
from auditor.models.answer_schemas import MoralJudgement
from auditor.models.structured import (
    build_request,
    explain_invalid,
    limited_schema,
    list_schemas,
    response_format,
    to_required_tool,
)
from auditor.models.structured_reading import parse_structured_answer

ROOT = Path(auditor.__file__).parents[1]
BLOCK_INSTRUCTOR = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "instructor":
            raise ModuleNotFoundError("No module named 'instructor'")
sys.meta_path.insert(0, Block())
"""
PARSE_INVALID = """
from auditor.models.answer_schemas import MoralJudgement
from auditor.models.structured_reading import parse_structured_answer
print(parse_structured_answer(MoralJudgement, "no JSON"))
"""
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
    assert imports == {("structured.py", module) for module in PUBLIC_MODULES}


@pytest.mark.parametrize("structure", list_schemas().values())
def test_requests_are_those_that_instructor_builds_with_our_schema(structure: type[Structure]) -> None:
    schema = limited_schema(structure, 20)
    requested_format = response_format(structure, 20)
    request = build_request(structure.__name__, schema, "JSON_SCHEMA")
    expected = {"name": structure.__name__, "schema": schema, "strict": True}
    assert json.dumps(requested_format) == json.dumps({"type": "json_schema", "json_schema": expected})
    assert {**request["response_format"]["json_schema"], "strict": True} == expected
    tool_request = build_request(structure.__name__, schema, "TOOLS")
    tool = to_required_tool(requested_format)
    assert tool_request["tools"][0]["function"]["name"] == tool["tools"][0]["function"]["name"]
    assert tool_request["tool_choice"] == tool["tool_choice"]


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

    structured._client.cache_clear()
    monkeypatch.setattr(structured, "_complete", count)
    assert "\n" not in explain_invalid(MoralJudgement, text)
    structured._client.cache_clear()
    assert requests == [[]]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"norms": "a", "reasoning": "b"}', "score: Field required"),
        ('{"norms": "a", "reasoning": "b", "score": 1.5}', "score: Input should be less than or equal to 1"),
        ('{"norms": 1, "reasoning": "hunter2", "score": "x"}', "norms: Input should be a valid string"),
        ("hunter2", "Invalid JSON: expected value at line 1 column 1"),
    ],
)
def test_the_reason_is_the_first_error_without_the_answer(text: str, reason: str) -> None:
    assert explain_invalid(MoralJudgement, text) == reason


@pytest.mark.parametrize("command", ["run", "dry-run", "text", "parse"])
def test_without_instructor_structured_answers_say_so_and_stop(command: str, tmp_path: Path) -> None:
    """Free text without judges needs no instructor; everything else stops before a question is asked."""
    (tmp_path / "sitecustomize.py").write_text(BLOCK_INSTRUCTOR, encoding="utf-8")
    mode, judges = ("text", "[]") if command == "text" else ("structured", "[]")
    (tmp_path / "a.toml").write_text(
        f'''name = "simulated-blocked"
survey = {{ source = "wvs7-sample", countries = ["Germany"], topics = ["divorce"] }}
judges = {judges}
embedding = {{ model = "none" }}
[[models]]
name = "m"
model = "simulated/inconsistent"
[probes]
direct = {{ samples = 1, mode = "{mode}" }}
''',
        encoding="utf-8",
    )
    arguments = {"parse": ["-c", PARSE_INVALID], "dry-run": ["-m", "auditor", "run", "a.toml", "--dry-run"]}.get(
        command, ["-m", "auditor", "run", "a.toml"]
    )
    result = subprocess.run(
        [sys.executable, *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if command in ("text", "dry-run"):
        assert result.returncode == 0, result.stderr
    else:
        assert result.returncode == 1, result.stdout + result.stderr
        assert "structured answers need the package instructor, which cannot be imported" in result.stderr
        assert "pip install" in result.stderr


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
