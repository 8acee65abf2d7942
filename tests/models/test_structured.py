from __future__ import annotations

import ast
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import auditor as package
from auditor.config.base import Structure
from auditor.errors import AuditorError
from auditor.models import structured
from auditor.models.answer_schemas import MoralJudgement
from auditor.models.litellm_client import drop_schema_keywords
from auditor.models.structured import (
    build_request,
    enumerate_bounded_numbers,
    explain_invalid,
    limited_schema,
    list_schemas,
    response_format,
    to_required_tool,
)
from auditor.models.structured_reading import parse_structured_answer
from tests.support.cli_runner import auditor

SENT_SCHEMAS = Path(__file__).with_name("sent_schemas.json")
"""What is sent for each schema, by the schema's name. Names of removed schemas stay, so that none is reused."""
RETIRED: set[str] = set()
"""Names of recorded schemas that were replaced on purpose."""
MAX_WORDS = 40


def test_the_format_asks_for_the_schema_and_a_strict_provider_gets_no_length() -> None:
    json_schema = response_format(MoralJudgement, 20)["json_schema"]
    assert json_schema["name"] == "MoralJudgement"
    assert json_schema["schema"]["properties"]["norms"]["maxLength"] == 160
    assert json_schema["schema"]["required"] == ["norms", "reasoning", "score"]
    assert "maxLength" not in json.dumps(drop_schema_keywords(json_schema["schema"], {"maxLength"}))


def test_bounded_numbers_become_enumerations() -> None:
    enumerated = enumerate_bounded_numbers(response_format(MoralJudgement, 20))
    score = enumerated["json_schema"]["schema"]["properties"]["score"]
    assert (score["enum"][0], score["enum"][10], score["enum"][-1], len(score["enum"])) == (-1.0, 0.0, 1.0, 21)


# --- what is sent for each schema ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sent_schemas() -> dict[str, Any]:
    """The recorded schemas; with AUDITOR_GOLDEN=write, schemas with new names are added to the file first."""
    recorded: dict[str, Any] = json.loads(SENT_SCHEMAS.read_text(encoding="utf-8")) if SENT_SCHEMAS.exists() else {}
    if os.environ.get("AUDITOR_GOLDEN") == "write":
        recorded = {name: response_format(schema, MAX_WORDS) for name, schema in list_schemas().items()} | recorded
        SENT_SCHEMAS.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return recorded


@pytest.mark.parametrize("name", list_schemas())
def test_a_schema_never_changes_under_its_name(name: str, sent_schemas: dict[str, Any]) -> None:
    """Titles, descriptions (docstrings and field descriptions), the order of fields and every keyword are compared.

    To record a new schema: `AUDITOR_GOLDEN=write pytest tests/models/test_structured.py`. This never overwrites an
    entry: to change a schema, give it a new name.
    """
    assert name in sent_schemas, (
        f"The schema {name} is not recorded. If it is new, add it: AUDITOR_GOLDEN=write pytest {__file__}. "
        "If it is an old one under a new name, restore the old name: answers paid for under it would be asked again."
    )
    assert json.dumps(response_format(list_schemas()[name], MAX_WORDS)) == json.dumps(sent_schemas[name]), (
        f"The schema {name} changed under its name. The ledger's key holds only the name, so paid answers to the old "
        "wording would be taken for answers to the new one. Give it a new name."
    )


def test_no_recorded_schema_is_lost(sent_schemas: dict[str, Any]) -> None:
    """A renamed schema class would ask all its paid answers again."""
    assert set(sent_schemas) - set(list_schemas()) == RETIRED


VALID = json.dumps({"norms": "a", "reasoning": "b", "score": -0.5})
PUBLIC_MODULES = {"instructor", "instructor.core"}


def test_only_public_modules_of_instructor_are_imported_and_by_one_module() -> None:
    imports = {
        (path.name, module)
        for path in _sources()
        if "instructor" in (text := path.read_text(encoding="utf-8"))  # parsing all modules takes seconds
        for node in ast.walk(ast.parse(text))
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
    function = {"name": "MoralJudgement", "parameters": requested_format["json_schema"]["schema"]}
    assert to_required_tool(requested_format) == {
        "tools": [{"type": "function", "function": function}],
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


BLOCKED_CONFIG = """
name = "simulated-blocked"
survey = { source = "wvs7-sample", countries = ["Germany"], topics = ["divorce"] }
judges = []
embedding = { model = "none" }
[[models]]
name = "m"
model = "simulated/inconsistent"
[probes]
direct = { samples = 1, mode = "structured" }
"""


def test_without_instructor_structured_answers_say_so_and_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Free text without judges needs no instructor; everything else stops before a question is asked."""
    for module in PUBLIC_MODULES:
        monkeypatch.setitem(sys.modules, module, None)  # its import fails
    structured.load_instructor.cache_clear()
    message = "structured answers need the package instructor, which cannot be imported"
    with pytest.raises(AuditorError, match=message):
        structured.load_instructor()
    for mode, options, code in (("structured", [], 1), ("structured", ["--dry-run"], 0), ("text", [], 0)):
        (tmp_path / "a.toml").write_text(BLOCKED_CONFIG.replace("structured", mode), encoding="utf-8")
        result = auditor("run", "a.toml", *options, cwd=tmp_path)
        assert result.returncode == code, result.stderr
        assert (message in result.stderr, "pip install" in result.stderr) == ((True, True) if code else (False, False))


def test_an_unreadable_answer_is_not_logged(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.ERROR):
        assert isinstance(parse_structured_answer(MoralJudgement, '{"norms": "hunter2"}'), str)
    assert "hunter2" not in caplog.text
    assert capfd.readouterr() == ("", "")


def _sources() -> list[Path]:
    """All source files of the package, those behind its links to folders included."""
    folder = Path(package.__file__).parent
    paths = [Path(parent) / name for parent, _, names in os.walk(folder, followlinks=True) for name in names]
    return [path for path in paths if path.suffix == ".py"]


def _imported_modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []
