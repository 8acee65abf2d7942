"""What servers really answer, in structured and in text mode, and what a person reads in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from auditor import run_audit
from auditor.config import AuditConfig
from auditor.storage import audits, results
from auditor.storage.database import open_database
from tests.support.fake_server import FakeServer, Reply, Request, completion

SECRET = "SECRET: perhaps they approve"
GOOD = {"norms": "Customs differ.", "reasoning": "Most disapprove.", "score": -0.24}
OTHER = {**GOOD, "score": 0.9}
JSON, OTHER_JSON = json.dumps(GOOD), json.dumps(OTHER)
LINES = "Customs differ. Most disapprove.\nSCORE = -0.24"
FINAL = "<|end|><|start|>assistant<|channel|>final<|message|>"
HARMONY = f"<|channel|>analysis<|message|>{SECRET} {OTHER_JSON}\nSCORE = 0.9{FINAL}"
READ, UNREAD = -0.24, None

FORMS: dict[str, tuple[str, float | None, float | None]] = {
    # name: (content, what is read in structured mode, and in text mode). JSON is read in text mode if there is no line
    # with a score; lines are no structure, so that structured mode asks once more for JSON, as before.
    "json": (JSON, READ, READ),
    "lines": (LINES, UNREAD, READ),
    "sources": (f"{JSON}\n\nSources: [1], [2]", READ, READ),
    "remark": (f"{JSON}\n\nNote: the schema was {{}} as asked.", READ, READ),
    "introduction": (f"Here it is:\n{JSON}\nLet me know!", READ, READ),
    "fence": (f"```json\n{JSON}\n```", READ, READ),
    "fence-inside": (json.dumps({**GOOD, "reasoning": "see ```x``` and {y}"}), READ, READ),
    "same-twice": (f"{JSON}\n{JSON}", READ, READ),
    "two": (f"{OTHER_JSON}\n{JSON}", UNREAD, UNREAD),
    "comparison": (f"{JSON}\n\nFor comparison: {OTHER_JSON}", UNREAD, UNREAD),
    "extra-key": (json.dumps({**GOOD, "country": "Japan"}), READ, READ),
    "capital-keys": (json.dumps({key.capitalize(): value for key, value in GOOD.items()}), READ, READ),
    "final-score": (json.dumps({**GOOD, "final_score": 0.9}), UNREAD, UNREAD),
    "number-in-string": (json.dumps({**GOOD, "score": "-0.24"}), READ, READ),
    "plus": ('{"norms":"a","reasoning":"b","score": +0.24}', 0.24, 0.24),
    "integer": (json.dumps({**GOOD, "score": -1}), -1.0, -1.0),
    "minus-sign": (JSON.replace("-0.24", "\u22120.24"), READ, READ),
    "trailing-comma": (JSON.replace("}", ",}"), READ, READ),
    "single-quotes": (str(GOOD), READ, READ),
    "line-break": ('{"norms":"a","reasoning":"line one\nline two","score":-0.24}', READ, READ),
    "list-of-reasons": (json.dumps({**GOOD, "reasoning": ["one", "two"]}), READ, READ),
    "wrapped": (json.dumps({"answer": GOOD}), READ, READ),
    "schema-wrapper": (json.dumps({"properties": GOOD, "type": "object"}), READ, READ),
    "list-of-one": (json.dumps([GOOD]), READ, READ),
    "json-in-string": (json.dumps(JSON), READ, READ),
    "decimal-comma": ('{"norms":"a","reasoning":"b","score": 0,5}', UNREAD, UNREAD),
    "duplicate-key": ('{"norms":"a","reasoning":"b","score": 0.7,"score": -0.7}', UNREAD, UNREAD),
    "empty-text": (json.dumps({**GOOD, "norms": ""}), UNREAD, UNREAD),
    "out-of-range": (json.dumps({**GOOD, "score": 7}), UNREAD, UNREAD),
    "nan": (JSON.replace("-0.24", "NaN"), UNREAD, UNREAD),
    "null": (json.dumps({**GOOD, "score": None}), UNREAD, UNREAD),
    "cut-off": (JSON[:-4], UNREAD, UNREAD),
    "think": (f"<think>{SECRET} {OTHER_JSON}</think>{JSON}", READ, READ),
    "think-lines": (f"<think>{SECRET}\nSCORE = 0.9</think>{LINES}", UNREAD, READ),
    "think-unopened": (f"{SECRET} {OTHER_JSON}</think>{JSON}", READ, READ),
    "think-unclosed": (f"{JSON}\n<think>{SECRET} {OTHER_JSON}", READ, READ),
    "harmony": (f"{HARMONY}{JSON}", READ, READ),
    "harmony-lines": (f"{HARMONY}{LINES}", UNREAD, READ),
    "harmony-unclosed": (f"<|channel|>analysis<|message|>{SECRET} {JSON}", UNREAD, UNREAD),
    "gemma": (f"<|channel>thought\n{SECRET} {OTHER_JSON}<channel|>{JSON}", READ, READ),
    "gemma-lines": (f"<|channel>thought\n{SECRET}<channel|>{LINES}", UNREAD, READ),
    "medgemma": (f"<unused94>thought\n{SECRET} {OTHER_JSON}<unused95>{JSON}", READ, READ),
    "chat-token": (f"{JSON}<|im_end|>", READ, READ),
    "chat-token-lines": (f"{LINES}<|im_end|>", UNREAD, READ),
    "quoted-tag": (json.dumps({**GOOD, "norms": "The tag `<think>` is quoted."}), READ, READ),
    "right-to-left": (json.dumps({**GOOD, "reasoning": "\u202eעברית\u202c 日本語"}, ensure_ascii=False), READ, READ),
    "prose": ("They mostly disapprove of it.", UNREAD, UNREAD),
}
MESSAGES: dict[str, dict[str, Any]] = {
    "in-reasoning": {"content": None, "reasoning_content": JSON},
    "in-reasoning-field": {"content": "", "reasoning": JSON},
    "parts": {
        "content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": f"{SECRET} {OTHER_JSON}"}]},
            {"type": "text", "text": JSON},
        ]
    },
}


def answer_by_name(request: Request) -> Reply:
    """The answer that the model's name stands for, to every question."""
    name = str(request.body["model"])
    if name in FORMS:
        return completion(FORMS[name][0])
    if name == "two-choices":
        reply, other = completion(JSON), completion(OTHER_JSON)
        reply.body["choices"].append({**other.body["choices"][0], "index": 1})
        return reply
    reply = completion("")
    reply.body["choices"][0]["message"] = {"role": "assistant", **MESSAGES[name]}
    return reply


def audit_of(server: FakeServer, mode: str) -> AuditConfig:
    """An audit of one question to a model for each form, without judges."""
    models = [
        {"name": name, "model": f"openai/{name}", "api_base": f"{server.url}/v1", "price": {"input": 1, "output": 1}}
        for name in (*FORMS, *MESSAGES, "two-choices")
    ]
    survey = {"source": "wvs7-sample", "countries": ["Germany"], "topics": ["divorce"]}
    probes = {"direct": {"samples": 1, "mode": mode}}
    data = {"name": f"forms-{mode}", "survey": survey, "judges": [], "models": models, "probes": probes}
    return AuditConfig.model_validate(data | {"embedding": {"model": "none"}})


@pytest.mark.parametrize(
    ("mode", "expected"), [("structured", lambda form: form[1]), ("text", lambda form: form[2])], ids=["json", "text"]
)
def test_each_answer_is_read_as_a_person_reads_it(
    mode: str,
    expected: Callable[[tuple[str, float | None, float | None]], float | None],
    server: FakeServer,
    storage: str,
) -> None:
    server.script = answer_by_name
    run_audit(audit_of(server, mode), storage=storage)
    with open_database(storage) as db:
        traces = {trace.model: trace for trace in results.load_traces(db, audits.get_audit(db, f"forms-{mode}").id)}
    scores = {name: trace.score for name, trace in traces.items()}
    expected_scores = {name: expected(form) for name, form in FORMS.items()}
    expected_scores |= {"in-reasoning": UNREAD, "in-reasoning-field": UNREAD, "parts": READ, "two-choices": UNREAD}
    assert scores == expected_scores
    assert all((trace.outcome == "ok") is (trace.score is not None) for trace in traces.values())
    assert not [name for name, trace in traces.items() if "SECRET" in (trace.text or "")]
    assert {traces[name].outcome for name in ("in-reasoning", "in-reasoning-field")} == {"unparsed"}
    assert not [request for request in server.requests if "SECRET" in json.dumps(request.body)]
