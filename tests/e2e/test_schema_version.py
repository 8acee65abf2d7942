"""Schemas of answers and verdicts: new audits get the present ones, and audits begun before find their paid answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import Connection, select, update

from auditor.cli.run import print_dry_run
from auditor.domain.audit_records import Audit
from auditor.run import open_audit, run_audit
from auditor.storage.database import open_database
from auditor.storage.row_classes import table_of
from tests.e2e.test_run import JAPAN
from tests.support.audit_configs import config, with_schema_version
from tests.support.fake_server import FakeServer

AUDIT: dict[str, Any] = {"probes": {"direct": {"samples": 1}}, "judges": []}


def forget_version(storage: str) -> None:
    """Remove the version from the stored configuration, as earlier versions of the program stored it."""
    table = table_of(Audit)

    def job(connection: Connection) -> None:
        stored = json.loads(connection.execute(select(table.c.config)).scalar_one())
        del stored["probes"]["direct"]["schema_version"]
        connection.execute(update(table).values(config=json.dumps(stored)))

    with open_database(storage, create=False) as db:
        db.write(job)


def test_an_audit_begun_before_resumes_without_a_call_and_a_new_one_gets_the_present_schema(
    server: FakeServer, storage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A dry run knows it; and the present schema does not contradict the prompt."""
    audit = config(server.url, 1, **AUDIT)
    new_audit = audit.model_copy(update={"name": "new"})
    run_audit(with_schema_version(audit, 1), storage=storage)
    assert {request.schema for request in server.requests} == {"MoralJudgement"}
    forget_version(storage)
    print_dry_run(audit, storage)
    output = " ".join("".join(capsys.readouterr()).split())
    assert "None is left to send: all answers are recorded." in output
    assert '"schema": "MoralJudgement"' in output
    print_dry_run(new_audit, storage)
    assert '"schema": "ReasonedJudgement"' in capsys.readouterr().out
    n_requests = len(server.requests)
    run_audit(audit, storage=storage)
    assert len(server.requests) == n_requests, "recorded answers are found again"
    run_audit(new_audit, storage=storage)
    assert {request.schema for request in server.requests[n_requests:]} == {"ReasonedJudgement"}
    body = server.requests[-1].body
    properties = body["response_format"]["json_schema"]["schema"]["properties"]
    assert properties["reasoning"]["description"] == "Step-by-step reasoning."
    assert "step by step, in at most 120 words" in body["messages"][0]["content"]
    assert "one sentence" in properties["norms"]["description"]
    assert '"norms": the customs that matter, in one sentence' in body["messages"][0]["content"]


def describe_justifications(server: FakeServer) -> dict[str, tuple[str, int]]:
    """Description and maximum length of a justification, by name of the schema sent to judges."""
    schemas = [r.body["response_format"]["json_schema"] for r in server.requests if "verdict" in r.text]
    fields = {schema["name"]: schema["schema"]["properties"]["justification"] for schema in schemas}
    return {name: (field["description"], field["maxLength"]) for name, field in fields.items()}


@pytest.mark.parametrize(
    ("max_words", "expected"),
    [
        (60, {"TraceReview": ("Why, in at most 60 words.", 480)}),
        (20, {"LimitedTraceReview": ("Why, in at most 20 words.", 160)}),
    ],
)
def test_the_schema_of_verdicts_has_the_limit_of_the_prompt(
    server: FakeServer, storage: str, max_words: int, expected: dict[str, tuple[str, int]]
) -> None:
    probes = {"direct": {"samples": 1}, "review": {"max_words": max_words}}
    run_audit(config(server.url, survey=JAPAN, probes=probes), storage=storage)
    assert describe_justifications(server) == expected
    reviews = [request.text for request in server.requests if request.schema in expected]
    assert all(f"at most {max_words} words" in text for text in reviews)
    assert open_audit("scripted", storage=storage).report().panel.prevalence.n > 0
