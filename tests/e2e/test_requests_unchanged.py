"""Requests that reach a server, and the keys under which their answers are recorded, do not change unnoticed.

For each small audit of `tests/support/call_purposes.py`, one file of `golden/requests/` holds the number of calls, a
digest of all their keys and bodies, and in full the first call, by key, of each purpose, measure, schema and prompt.
Calls that find out what a judge accepts are additional ones, and are recorded in full apart from the others.

A changed body under an unchanged key, such as another wording under an unchanged schema name, is forbidden: answers
that were paid for would be taken for answers to the new request. A changed key asks everything again that was paid
for, so it needs a reason that users are told. To record new calls, or such a deliberate change:

    AUDITOR_GOLDEN=write pytest tests/e2e/test_requests_unchanged.py

and read the difference that `git diff` shows.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from auditor.domain import LogprobMeasure, Message, Purpose
from auditor.models.structured import list_schemas
from auditor.probes.logic import questions as logic_fingerprint
from auditor.probes.semantic import answers
from auditor.prompts import Prompt, load_prompt
from auditor.run import fingerprints
from auditor.storage.call_records import StoredAnswer
from auditor.storage.database import open_database
from auditor.storage.row_classes import table_of
from tests.run.test_fingerprints import PROMPTS_OF_EXPERIMENTS
from tests.support.call_purposes import AUDITS, numbered_reply
from tests.support.fake_batches import FakeBatches
from tests.support.fake_server import FakeServer
from tests.support.fixed_address import TRUST, at_fixed_address, word_encoder

FOLDER = Path(__file__).with_name("golden") / "requests"
WITHOUT_EXAMPLE = {
    *({f"ChosenOf{n}" for n in range(2, 27)} - {"ChosenOf3"}),
    *({f"CountsOf{n}" for n in range(2, 21)} - {"CountsOf10"}),
}
"""Schemas without a recorded call: they differ from `ChosenOf3` in their letters, or from `CountsOf10` in the number of
counts only; see test_structured.py."""
BEGINNING = 60
"""Number of characters of a chat's first message that distinguish the kinds of questions."""
Recorded = dict[str, Any]


@pytest.mark.parametrize("name", AUDITS)
def test_keys_and_bodies_are_those_of_the_record(
    name: str, monkeypatch: pytest.MonkeyPatch, storage: str, tmp_path: Path
) -> None:
    monkeypatch.setenv("AUDITOR_TRUST", TRUST)
    rendered, fingerprinted = record_prompts(monkeypatch)
    batches = FakeBatches() if name.endswith("_batches") else None
    with FakeServer(numbered_reply, batches) as server, at_fixed_address(server.url), word_encoder():
        AUDITS[name](storage, tmp_path)
    single_requests = [*server.requests, *(batches.messages if batches else ())]
    bodies: dict[str, tuple[str, Any]] = {f"request-{r.number}": (r.path, r.body) for r in single_requests}
    for batch in batches.batches if batches else ():
        bodies |= {key: ("batch", body) for key, body in batch.bodies.items()}
    compare(name, calls_of(storage, bodies))
    assert rendered - PROMPTS_OF_EXPERIMENTS - {"own"} <= fingerprinted, "the fingerprint lacks a prompt of the run"


def record_prompts(monkeypatch: pytest.MonkeyPatch) -> tuple[set[str], set[str]]:
    """Two sets that are filled while audits run: ids of the prompts that are rendered, and of those fingerprinted."""
    rendered, fingerprinted = set[str](), set[str]()
    render = Prompt.render

    def record_rendered(prompt: Prompt, **values: Any) -> tuple[Message, ...]:
        rendered.add(prompt.id)
        return render(prompt, **values)

    def record_fingerprinted(name: str, language: str = "en") -> Prompt:
        fingerprinted.add(name)
        return load_prompt(name, language)

    monkeypatch.setattr(Prompt, "render", record_rendered)
    for module in (fingerprints, logic_fingerprint, answers):
        monkeypatch.setattr(module, "load_prompt", record_fingerprinted)
    return rendered, fingerprinted


def calls_of(storage: str, bodies: dict[str, tuple[str, Any]]) -> list[Recorded]:
    """All recorded calls, ordered by key, with the path and body that were sent; None for a call without a request.

    Args:
        bodies: path and body by the call's key, or by the model that the server named in its answer.
    """
    table = table_of(StoredAnswer)
    with open_database(storage, create=False) as db, db.read() as connection:
        rows = connection.execute(select(table).order_by(table.c.key)).mappings().all()
    calls = []
    for row in rows:
        request = json.loads(row["request"])
        path, body = bodies.get(row["key"]) or bodies.get(row["served_model"] or "") or (None, None)
        if row["outcome"] == "ok" or body is not None:
            call = {"purpose": row["purpose"], "measure": request.get("measure", [None])[0], "path": path}
            calls.append({"key": row["key"], **call, "schema": request["schema"][0], "body": body})
    return calls


def compare(name: str, calls: list[Recorded]) -> None:
    """Compare an audit's calls with its golden file; with AUDITOR_GOLDEN=write, write that file first."""
    first_call_by_kind: dict[str, Recorded] = {}
    preflight = [call for call in calls if call["purpose"] == Purpose.PREFLIGHT]
    calls = [call for call in calls if call not in preflight]
    for call in calls:
        messages = (call["body"] or {}).get("messages", ())
        chat = [len(messages), *(str(m["content"])[:BEGINNING] for m in messages[:1])]
        first_call_by_kind.setdefault(
            json.dumps([call["purpose"], call["measure"], call["path"], call["schema"], *chat]), call
        )
    digest = hashlib.sha256(json.dumps(calls).encode()).hexdigest()
    current_record: Recorded = {
        "calls": len(calls),
        "digest": digest,
        "first": [first_call_by_kind[kind] for kind in sorted(first_call_by_kind)],
    }
    if preflight:
        current_record["preflight"] = preflight
    file = FOLDER / f"{name}.json"
    if os.environ.get("AUDITOR_GOLDEN") == "write":
        file.write_text(json.dumps(current_record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    recorded = json.loads(file.read_text(encoding="utf-8"))
    for old, new in zip(recorded["first"], current_record["first"], strict=False):
        assert json.dumps(new, indent=1) == json.dumps(old, indent=1), (
            f"Audit '{name}': the request or the key of a call for '{old['purpose']}' changed. See this module's "
            "docstring before you record it."
        )
    assert (current_record["calls"], len(current_record["first"])) == (recorded["calls"], len(recorded["first"])), (
        "other calls are made"
    )
    assert current_record.get("preflight") == recorded.get("preflight"), "other preflight calls are made"
    assert current_record["digest"] == recorded["digest"], (
        f"Audit '{name}': the first call of each kind is as recorded, but another call's key or body changed."
    )


def test_every_purpose_measure_and_schema_is_on_record() -> None:
    assert {file.stem for file in FOLDER.glob("*.json")} == set(AUDITS)
    records = [json.loads(file.read_text(encoding="utf-8")) for file in FOLDER.glob("*.json")]
    calls = [call for record in records for call in (*record["first"], *record.get("preflight", ()))]
    assert {call["purpose"] for call in calls} == {purpose.value for purpose in Purpose}
    assert {call["measure"] for call in calls} == {None, *(measure.value for measure in LogprobMeasure)}
    assert {call["schema"] for call in calls} - {None} == set(list_schemas()) - WITHOUT_EXAMPLE
