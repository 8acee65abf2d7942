"""Every call is built in one module; where it cannot carry a schema, words in the question's language describe it."""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio

import auditor
import auditor.prompts
from auditor.agents.call_builders import (
    STRUCTURE_PROMPT,
    analyst_label,
    blind_trace,
    build_call,
    build_direct_call,
    build_review_call,
    describe_structure,
    direct_sampling,
    fence_line,
    model_fields,
    request_params,
    review_sampling,
)
from auditor.agents.elicitation import build_repair_call
from auditor.agents.peer_review import build_shorter_call
from auditor.config import ModelSection
from auditor.domain import (
    LANGUAGES,
    Answer,
    AnswerForm,
    AnswerKind,
    Capability,
    Cell,
    Outcome,
    Purpose,
    Task,
    TaskItem,
    Trace,
)
from auditor.models import litellm_client
from auditor.models.answer_schemas import MoralJudgement
from auditor.models.batches.provider import PreparedRequest, prepare_request
from auditor.models.capability_registry import prepare_call
from auditor.models.endpoint import Endpoint
from auditor.models.structured import list_schemas
from auditor.probes.semantic.call_builders import build_answer_call, build_choice_call, build_pair_call, build_rule_call
from auditor.prompts import load_prompt
from auditor.run.fingerprints import fingerprint
from auditor.surveys import load_survey
from tests.support.audit_configs import config
from tests.support.known import known
from tests.support.review_answers import rate_aspects

SURVEY = load_survey("wvs7-sample")
SOURCES = Path(auditor.__file__).parent
MODEL = ModelSection(name="a", model="openai/gpt-4o", api_base="https://llm.example/v1")
URL = "http://127.0.0.1:9/v1"
BEGINNING_CHARS = 40


def trace(text: str, model: str = "model-a") -> Trace:
    return Trace(model, Cell("Germany", "divorce"), 0, Outcome.OK, 0.5, text)


def test_the_label_differs_by_judge_and_by_item_and_not_by_run_or_author() -> None:
    audit = config("http://localhost")
    first, second = audit.models[1:]

    def asked(judge: object, text: str, author: str = "model-a") -> str:
        call = build_review_call(audit, SURVEY, judge, trace(text, author), text)  # type: ignore[arg-type]
        return call.messages[-1].content.splitlines()[-1]

    assert re.fullmatch(r"Score of [B-Z]{4}: \+0\.50", asked(first, "one"))
    assert asked(first, "one") == asked(first, "one", "model-b")
    assert len({asked(first, "one"), asked(second, "one"), asked(first, "two")}) == 3


def test_labels_are_spread_evenly_and_are_no_words() -> None:
    labels = [analyst_label(7, "judge", i) for i in range(4000)]
    assert len(set(labels)) > 3900
    assert not set("".join(labels)) & set("AEIOUY")


def test_no_text_holds_its_fence() -> None:
    for i in range(50):
        text = "\n".join(fence_line("", i, j) for j in range(5))
        line = fence_line(text, i, "judge")
        assert line not in text
        assert line == fence_line(text, i, "judge")
        assert line != fence_line(text, i + 1, "judge")


def test_an_id_of_two_characters_behind_a_dated_one_is_hidden_from_judges() -> None:
    audit = config("http://localhost")
    models = [audit.models[0].model_copy(update={"model": "openai/o1-2024-12-17"}), *audit.models[1:]]
    audit = audit.model_copy(update={"models": models})
    written = "I, o1, think that No people say this. O1-mini agrees, in 1990 and for 3 reasons."
    shown = blind_trace(audit, SURVEY, trace(written))
    assert shown == "I, [analyst], think that No people say this. [analyst] agrees, in 1990 and for 3 reasons."
    call = build_review_call(audit, SURVEY, audit.models[1], trace(written), shown)
    assert "o1" not in call.messages[-1].content.lower()


LONG = "a b " * 400_000


def test_every_text_that_a_model_wrote_is_shown_to_another_within_the_limit() -> None:
    probes = {"direct": {}, "review": {"max_trace_chars": 1_000}}
    audit = config("http://localhost", probes=probes)
    model = audit.models[0]
    calls = [
        build_pair_call(audit, model, Purpose.declare("consistency"), "Is it right?", LONG, LONG),
        build_pair_call(audit, model, Purpose.declare("contradiction"), "Is it right?", LONG, LONG),
        build_rule_call(audit, model, "Is it right?", LONG),
        build_choice_call(audit, model, "Is it right?", [LONG, "no"]),
        build_answer_call(audit, model, "Is it right?", rule=LONG),
        build_review_call(audit, SURVEY, model, trace(LONG), blind_trace(audit, SURVEY, trace(LONG))),
    ]
    for call in calls:
        text = "\n".join(message.content for message in call.messages)
        assert len(text) < 2 * 1_000 + 2_000
        assert "characters left out …]" in text
    less_limited = config("http://localhost", probes={"direct": {}, "review": {"max_trace_chars": 50_000}})
    asked = (model, Purpose.declare("consistency"), "Is it right?", "yes", "no")
    assert build_pair_call(audit, *asked).key == build_pair_call(less_limited, *asked).key


def test_the_answer_to_a_task_is_shown_to_judges_within_the_limit() -> None:
    item = TaskItem("1", "Which?", truth="x")
    task = Task("items.csv", AnswerKind.EXACT, "", items={"1": item})
    cell = Cell("", "1")
    survey = replace(SURVEY, task=task)
    audit = config("http://localhost", probes={"direct": {}, "review": {"max_trace_chars": 1_000}})
    long = Trace("model-a", cell, 0, Outcome.OK, None, "Because.", answer=LONG)
    call = build_review_call(audit, survey, audit.models[1], long, "Because.")
    assert len(call.messages[-1].content) < 2_000


def test_a_model_is_shown_its_own_answer_again_within_the_limit() -> None:
    audit = config("http://localhost", probes={"direct": {}, "review": {"max_trace_chars": 1_000}})
    context = SimpleNamespace(config=audit, survey=SURVEY)
    cell = Cell("Germany", "divorce")
    asked = build_direct_call(audit, SURVEY, audit.models[0], cell, 0)
    unread = Trace("model-a", cell, 0, Outcome.UNPARSED, None, LONG)
    repair_call = known(build_repair_call(context, asked, unread, LONG))  # type: ignore[arg-type]
    assert len(repair_call.messages[-2].content) <= 1_000
    assert "characters left out …]" in repair_call.messages[-2].content
    judged = build_review_call(audit, SURVEY, audit.models[1], trace("x"), "x")
    review = {**rate_aspects(), "justification": LONG, "verdict": "VALID", "confidence": 50}
    shorter = known(build_shorter_call(judged, Answer("k", Outcome.OK, text=json.dumps(review)), 60, 1_000))
    assert len(shorter.messages[-2].content) <= 1_000


def test_fields_are_those_of_the_section() -> None:
    assert model_fields(MODEL) == {
        "name": "a", "model": "openai/gpt-4o", "server": "https://llm.example/v1", "base_model": None,
        "reasoning": None, "declared": None,
    }  # fmt: skip


def test_a_call_computed_from_local_weights_has_no_server() -> None:
    assert model_fields(MODEL, on_this_machine=True)["server"] is None


def test_no_other_module_builds_a_call() -> None:
    modules = {
        path.relative_to(SOURCES).as_posix()
        for path in _modules()
        if "Call(" in (text := path.read_text(encoding="utf-8"))  # parsing all modules takes seconds
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Call"
    }
    assert modules == {"agents/call_builders.py"}


def _modules() -> list[Path]:
    """All source files of the package, those behind its links to folders included."""
    return sorted(
        Path(folder) / name
        for folder, _, names in os.walk(SOURCES, followlinks=True)
        for name in names
        if name.endswith(".py")
    )


def test_top_p_is_of_direct_answers_only_and_a_models_own_takes_precedence() -> None:
    """Without it, requests are what they were: keys of stored answers do not change."""
    audit = config("http://127.0.0.1:1", probes={"direct": {"top_p": 0.95}, "review": {}})
    plain = config("http://127.0.0.1:1")
    assert request_params(audit.models[0], **direct_sampling(audit, audit.models[0]))["top_p"] == 0.95
    assert "top_p" not in direct_sampling(plain, plain.models[0])
    assert "top_p" not in review_sampling(audit, audit.models[0])
    section = audit.models[0].model_copy(update={"params": {"top_p": 0.5}})
    call = build_call(section, Purpose.DIRECT, (), **direct_sampling(audit, section), seed=1)
    assert call.params["top_p"] == 0.5


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
