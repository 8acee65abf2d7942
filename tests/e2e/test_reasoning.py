"""Audits of models that think: what they are sent, and that their thinking reaches nobody."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select

from auditor.config import AuditConfig, ModelSection
from auditor.domain import Outcome
from auditor.domain.decisions import SURVEY_REVIEW
from auditor.run import run_audit
from auditor.storage.call_records import StoredAnswer
from auditor.storage.database import open_database
from auditor.storage.row_classes import table_of
from tests.e2e.test_run import CALLS, stored
from tests.support.audit_configs import config
from tests.support.fake_server import DIRECT_SCHEMAS, FakeServer, Reply, Request, answer, completion

SECRET = "the hidden draft"
DRAFTS = (
    json.dumps({"norms": SECRET, "reasoning": SECRET, "score": 1.0}) + f" {SECRET} SCORE = 1.0",
    json.dumps({"verdict": "VALID", "justification": SECRET}),
)
REASONING = {"effort": "low", "max_tokens": 2000}


def think_aloud(request: Request) -> Reply:
    """The default answer, after thinking that drafts other ones; its tags depend on the question."""
    reply = answer(request)
    text = reply.body["choices"][0]["message"]["content"]
    draft = "\n".join(DRAFTS)
    forms = (f"<think>{draft}</think>{text}", f"{draft}</think>\n{text}", f"{text}<reasoning>{draft}")
    form = forms[int(len(forms) * request.draw("form"))]
    usage = {"prompt_tokens": 100, "completion_tokens": 900, "total_tokens": 1000}
    usage |= {"completion_tokens_details": {"reasoning_tokens": 850}}  # type: ignore[dict-item]
    reply = completion(form, reasoning_content=SECRET)
    return replace(reply, body={**reply.body, "usage": usage})


def thinking_audit(url: str, **changes: Any) -> AuditConfig:
    """An audit whose models all think, and accept no schema; `changes` replace top-level keys."""
    capabilities = {"form": "json_object", "temperature": False}
    audit = config(url, **changes)
    models = [
        ModelSection.model_validate(
            model.model_dump(exclude_none=True) | {"reasoning": REASONING, "capabilities": capabilities}
        )
        for model in audit.models
    ]
    return audit.model_copy(update={"models": models})


@pytest.mark.parametrize("mode", ["structured", "text"])
def test_thinking_reaches_no_trace_and_no_judge(mode: str, server: FakeServer, storage: str) -> None:
    server.script = think_aloud
    run_audit(config(server.url, 2, probes={"direct": {"samples": 1, "mode": mode}}), storage=storage)
    saved = stored(storage)
    assert {trace.outcome for trace in saved["traces"]} == {Outcome.OK}
    assert {verdict.outcome for verdict in saved["verdicts"]} == {Outcome.OK}
    assert not [request.number for request in server.requests if SECRET in request.text]
    assert SECRET not in repr([trace.text for trace in saved["traces"]])
    assert SECRET not in repr([verdict.justification for verdict in saved["verdicts"]])
    assert any(SECRET in (text or "") for text in recorded_texts(storage)), "the raw text stays in the ledger"
    assert len({trace.score for trace in saved["traces"]}) > 10, "the score is the answer's, not the draft's"


def test_reasoning_and_declared_capabilities_are_on_the_wire_of_every_request(server: FakeServer, storage: str) -> None:
    server.script = by_words
    audit = thinking_audit(server.url, language="de")
    run_audit(audit, storage=storage)
    assert {trace.outcome for trace in stored(storage)["traces"]} == {Outcome.OK}
    assert len(server.requests) == CALLS
    limits = {audit.direct.max_tokens + 2000, audit.probes.review.max_tokens + 2000}
    for request in server.requests:
        assert request.body["reasoning_effort"] == "low"
        assert request.body["max_tokens"] in limits
        assert request.body["response_format"] == {"type": "json_object"}
        assert "temperature" not in request.body
    languages = {"diesem JSON-Schema entsprechen" in request.text for request in server.requests}
    assert languages == {True, False}, "questions are in German, reviews in English"
    run_audit(audit, storage=storage)
    assert len(server.requests) == CALLS


def by_words(request: Request) -> Reply:
    """The default answer to a request that describes its schema in words, after thinking."""
    name = next(name for name in (*DIRECT_SCHEMAS, SURVEY_REVIEW) if f'"title": "{name}"' in request.text)
    described = {"response_format": {"json_schema": {"name": name}}}
    return think_aloud(replace(request, body=request.body | described))


def recorded_texts(storage: str) -> list[str | None]:
    table = table_of(StoredAnswer)
    with open_database(storage, create=False) as db, db.read() as connection:
        return list(connection.execute(select(table.c.text)).scalars())
