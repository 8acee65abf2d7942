"""The schema of direct answers: new audits get the present one, and audits begun before find their paid answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import Connection, select, update

from auditor.cli.dry_run import print_dry_run
from auditor.run import run_audit
from auditor.storage.audit_tables import AuditRow
from auditor.storage.database import open_database, table_of
from tests.support.audit_configs import config, with_schema_version
from tests.support.fake_server import FakeServer

AUDIT: dict[str, Any] = {"probes": {"direct": {"samples": 1}}, "judges": []}


def forget_version(storage: str) -> None:
    """Remove the version from the stored configuration, as earlier versions of the program stored it."""
    table = table_of(AuditRow)

    def job(connection: Connection) -> None:
        stored = json.loads(connection.execute(select(table.c.config)).scalar_one())
        del stored["probes"]["direct"]["schema_version"]
        connection.execute(update(table).values(config=json.dumps(stored)))

    with open_database(storage, create=False) as db:
        db.write(job)


def test_an_audit_begun_before_resumes_without_a_call_and_a_new_one_gets_the_present_schema(
    server: FakeServer, storage: str
) -> None:
    audit = config(server.url, 1, **AUDIT)
    run_audit(with_schema_version(audit, 1), storage=storage)
    assert {request.schema for request in server.requests} == {"MoralJudgement"}
    forget_version(storage)
    n_requests = len(server.requests)
    run_audit(audit, storage=storage)
    assert len(server.requests) == n_requests, "recorded answers are found again"
    run_audit(audit.model_copy(update={"name": "new"}), storage=storage)
    assert {request.schema for request in server.requests[n_requests:]} == {"ReasonedJudgement"}


def test_the_present_schema_does_not_contradict_the_prompt(server: FakeServer, storage: str) -> None:
    run_audit(config(server.url, 1, **AUDIT), storage=storage)
    body = server.requests[0].body
    properties = body["response_format"]["json_schema"]["schema"]["properties"]
    assert properties["reasoning"]["description"] == "Step-by-step reasoning."
    assert "step by step, in at most 120 words" in body["messages"][0]["content"]
    assert "one sentence" in properties["norms"]["description"]
    assert '"norms": the customs that matter, in one sentence' in body["messages"][0]["content"]


def test_a_dry_run_and_an_estimate_know_which_schema_an_audit_keeps(
    server: FakeServer, storage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    audit = config(server.url, 1, **AUDIT)
    run_audit(with_schema_version(audit, 1), storage=storage)
    forget_version(storage)
    print_dry_run(audit, storage)
    output = " ".join("".join(capsys.readouterr()).split())
    assert "None is left to send: all answers are recorded." in output
    assert '"schema": "MoralJudgement"' in output
    print_dry_run(audit.model_copy(update={"name": "new"}), storage)
    assert '"schema": "ReasonedJudgement"' in capsys.readouterr().out
