"""Where the request cannot carry the schema, our own words describe it, in the language of the question."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

import auditor.prompts
from auditor.agents.call_builders import STRUCTURE_PROMPT, build_direct_call, describe_structure
from auditor.domain import LANGUAGES, AnswerForm, Capability, Cell
from auditor.models import litellm_client
from auditor.models.answer_schemas import MoralJudgement
from auditor.models.batches.provider import PreparedRequest, prepare_request
from auditor.models.capability_registry import prepare_call
from auditor.models.endpoint import Endpoint
from auditor.models.structured import list_schemas
from auditor.prompts import load_prompt
from auditor.run.fingerprints import fingerprint
from tests.agents.test_call_builders import SURVEY
from tests.support.audit_configs import config

URL = "http://127.0.0.1:9/v1"
BEGINNING_CHARS = 40


@pytest_asyncio.fixture
async def http_clients() -> AsyncIterator[None]:
    litellm_client.open_http_clients()
    yield
    await litellm_client.close_http_clients()


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_instruction_has_the_schema_and_is_in_the_language_of_the_question(language: str) -> None:
    text = describe_structure("MoralJudgement", 40, language)
    words, schema_text = text.split("\n", 1)
    schema = json.loads(schema_text)
    assert schema["required"] == ["norms", "reasoning", "score"]
    assert schema["properties"]["norms"]["maxLength"] == 320
    assert "JSON" in words, "OpenAI refuses a JSON object that no message asks for"
    assert words not in {
        describe_structure("MoralJudgement", 40, other).split("\n")[0] for other in LANGUAGES if other != language
    }


@pytest.mark.parametrize("name", list_schemas())
def test_every_schema_can_be_described(name: str) -> None:
    assert name in describe_structure(name, 40)


def test_the_prompt_has_an_id_and_a_version_and_changes_an_audit_s_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = [load_prompt(STRUCTURE_PROMPT, language) for language in LANGUAGES]
    assert {(prompt.id, prompt.version) for prompt in prompts} == {("structure", 1)}
    audit = config(URL)
    before = fingerprint(audit)
    load_prompt.cache_clear()
    prompt_file = Path(auditor.prompts.__file__).parent / "en" / f"{STRUCTURE_PROMPT}.md"
    read_text = Path.read_text

    def read_changed_text(path: Path, *args: Any, **options: Any) -> str:
        """The text of a file; that of this prompt has another wording."""
        text = read_text(path, *args, **options)
        return text.replace("Answer with", "Reply with") if path == prompt_file else text

    monkeypatch.setattr(Path, "read_text", read_changed_text)
    after = fingerprint(audit)
    load_prompt.cache_clear()
    assert after != before


def test_builders_set_the_language_that_they_ask_in() -> None:
    audit = config(URL, language="de")
    call = build_direct_call(audit, SURVEY, audit.models[0], Cell("Germany", "divorce"), 0)
    assert call.language == "de"
    instruction = prepare_call(call, Capability(AnswerForm.TEXT), describe_structure).structure_instruction
    assert instruction == describe_structure("ReasonedJudgement", audit.direct.max_words, "de")
    assert prepare_call(call, Capability(AnswerForm.JSON_SCHEMA), describe_structure) is call


@pytest.mark.parametrize("form", AnswerForm)
@pytest.mark.usefixtures("http_clients")
async def test_no_form_has_words_of_instructor_s(form: AnswerForm) -> None:
    audit = config(URL)
    call = build_direct_call(audit, SURVEY, audit.models[0], Cell("Germany", "divorce"), 0)
    prepared = await prepare_request(
        Endpoint("openai/any", URL, None), prepare_call(call, Capability(form), describe_structure), 5, Capability(form)
    )
    assert isinstance(prepared, PreparedRequest)
    body = json.loads(prepared.body)
    asked = [{"role": message.role, "content": message.content} for message in call.messages]
    if form.needs_instruction:
        asked[-1]["content"] += "\n\n" + describe_structure("ReasonedJudgement", audit.direct.max_words)
    assert body["messages"] == asked
    for words in _words_of_instructor():
        assert json.dumps(words)[1:-1] not in prepared.body.decode(), words


def _words_of_instructor() -> list[str]:
    """Lines that instructor's own JSON modes add to the messages, without those of the schema."""
    import instructor

    requests: list[dict[str, Any]] = []

    def record(**request: Any) -> None:
        """Record a request, and answer it with nothing that instructor could read."""
        requests.append(json.loads(json.dumps(request)))

    for mode in (instructor.Mode.JSON, instructor.Mode.MD_JSON):
        try:
            instructor.from_litellm(record, mode=mode).create(
                response_model=MoralJudgement, messages=[{"role": "user", "content": "?"}], max_retries=0
            )
        except Exception:  # noqa: BLE001 - it cannot read the answer
            continue
    lines = {
        line.strip()[:BEGINNING_CHARS]
        for request in requests
        for message in request["messages"]
        for line in str(message["content"]).splitlines()
        if any(char.isalpha() for char in line) and not line.lstrip().startswith(('"', "{"))
    }
    assert len(lines) >= 2, "instructor's words are no longer found"
    return sorted(lines)
