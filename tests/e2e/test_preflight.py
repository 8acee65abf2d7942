"""What models accept is found out by the first calls, once for an audit, and before anything depends on it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from auditor.config import AuditConfig
from auditor.console.output import print_error
from auditor.domain import Purpose
from auditor.errors import ModelSetupError, UnusableModelsError
from auditor.reports.data.audit_status import load_audit_status
from auditor.run import open_audit, run_audit
from auditor.storage import audits
from auditor.storage.call_records import StoredAnswer, StoredAttempt, StoredCapability
from auditor.storage.database import open_database
from auditor.storage.records import load_records
from auditor.storage.row_classes import table_of
from tests.e2e.test_replay import config_with_replay, write_log
from tests.e2e.test_run import question
from tests.support.audit_configs import KEY_VARIABLE, config
from tests.support.cli_runner import auditor, succeed
from tests.support.fake_server import FakeServer, answer, completion, error
from tests.support.killed_runs import run_until
from tests.support.notices import NoticeRecorder

CELLS = {"source": "wvs7-sample", "countries": ["Germany"], "topics": ["divorce", "abortion"]}
DIRECT_CALLS, REVIEWS = 2, 2
"""Calls of each model without peers, and of each judge that reviews one model."""
STAND_IN = "People of [country] disagree"


def small(server: FakeServer, models: int = 1, **changes: Any) -> AuditConfig:
    return config(server.url, models, **{"survey": CELLS, "probes": {"direct": {"samples": 1}}, **changes})


def judges(server: FakeServer, *names: str) -> list[dict[str, Any]]:
    keys = {"api_base": server.url, "api_key": f"os.environ/{KEY_VARIABLE}"}
    return [{"name": name, "model": f"openai/{name}", **keys} for name in names]


def history(storage: str) -> list[StoredCapability]:
    with open_database(storage) as db:
        return load_records(db, audits.get_audit(db, "scripted").id, StoredCapability)


def purposes(storage: str) -> Counter[str]:
    with open_database(storage) as db, db.read() as connection:
        return Counter(connection.execute(select(table_of(StoredAttempt).c.purpose)).scalars())


def test_peers_need_no_additional_request(server: FakeServer, storage: str) -> None:
    run_audit(small(server, 3), storage=storage)
    assert purposes(storage) == {"direct": 3 * DIRECT_CALLS, "review": 3 * 2 * REVIEWS}
    assert {stored.key.model: stored.number for stored in history(storage)} == {
        f"openai/scripted-{letter}": 1 for letter in "abc"
    }


def test_keys_that_were_not_asked_for_are_counted_in_the_first_answers_too(server: FakeServer, storage: str) -> None:
    progress = NoticeRecorder()
    server.script = lambda _: completion('{"norms":"a","reasoning":"b","score":0.5,"country":"x"}')
    run_audit(small(server, judges=[]), storage=storage, progress=progress)
    assert [notice for notice in progress.notes if "'country'" in notice] == [
        f"{DIRECT_CALLS} answers of 'model-a' have keys that were not asked for, which are ignored: "
        f"'country' ({DIRECT_CALLS})."
    ]


def test_a_judge_listed_apart_reviews_a_stand_in_trace_once_and_first(server: FakeServer, storage: str) -> None:
    """A second run finds out nothing again, unless it is told to: then it writes a new number and keeps the old."""
    audit = small(server, judges=judges(server, "judge"))
    run_audit(audit, storage=storage)
    first_history = history(storage)
    assert purposes(storage) == {"direct": DIRECT_CALLS, "review": REVIEWS, "preflight": 1}
    assert {request.body["model"] for request in server.requests[:2]} == {"scripted-a", "judge"}
    assert [STAND_IN in request.text for request in server.requests].count(True) == 1
    assert len(set(map(question, server.requests))) == len(server.requests)
    server.requests.clear()
    run_audit(audit, storage=storage)
    assert server.requests == []
    for samples, preflight_calls in ((2, 1), (3, 2)):  # the stand-in trace is shown again, as its answer shows nothing
        more = small(server, judges=judges(server, "judge"), probes={"direct": {"samples": samples}})
        run_audit(more, storage=storage, rediscover=preflight_calls == 2)
        assert purposes(storage)["preflight"] == preflight_calls
        if preflight_calls == 1:
            assert len(server.requests) == DIRECT_CALLS + REVIEWS
            assert history(storage) == first_history
    by_model = {(stored.key.model, stored.number): stored for stored in history(storage)}
    assert set(by_model) == {(model, number) for model in ("openai/scripted-a", "openai/judge") for number in (1, 2)}
    assert [by_model[stored.key.model, 1] for stored in first_history] == first_history
    server.requests.clear()
    run_audit(more, storage=storage)
    assert server.requests == []


def test_models_that_answer_in_text_review_a_stand_in_trace(server: FakeServer, storage: str) -> None:
    probes = {"direct": {"samples": 1, "mode": "text"}}
    run_audit(small(server, 2, probes=probes), storage=storage)
    assert purposes(storage)["preflight"] == 2
    assert all(stored.capability.form is not None for stored in history(storage) if stored.number == 2)


def test_what_preflight_cost_is_in_the_report_and_the_status(server: FakeServer, storage: str) -> None:
    [judge] = judges(server, "judge")
    run_audit(small(server, judges=[judge | {"price": {"input": 1.0, "output": 2.0}}]), storage=storage)
    handle = open_audit("scripted", storage=storage)
    [row] = [row for row in handle.report().cost.rows if row.purpose == Purpose.PREFLIGHT]
    assert (row.name, row.sums.calls, row.sums.attempts) == ("judge", 1, 1)
    cost_usd = 100e-6 + 20 * 2e-6
    assert row.usd == pytest.approx(cost_usd)
    with open_database(storage) as db:
        status = load_audit_status(db, audits.get_audit(db, "scripted"))
    assert status["preflight"] == {"requests": 1, "cost_usd": pytest.approx(cost_usd), "unpriced": 0}
    shown = auditor("status", "scripted", "--storage", storage).stderr
    assert "1 request tested which parameters models and judges accept" in shown


def test_recorded_answers_need_no_preflight_but_a_judge_does(server: FakeServer, storage: str, tmp_path: Path) -> None:
    audit = config_with_replay(server, write_log(tmp_path), judges=judges(server, "judge"))
    run_audit(audit, storage=storage)
    assert purposes(storage)["preflight"] == 1
    assert {stored.key.model for stored in history(storage)} == {"openai/judge"}
    n_requests = len(server.requests)
    run_audit(audit, storage=storage)
    assert len(server.requests) == n_requests


def test_without_preflight_the_planned_calls_find_out_what_models_accept(server: FakeServer, storage: str) -> None:
    run_audit(small(server, judges=judges(server, "judge")), storage=storage, preflight=False)
    assert purposes(storage) == {"direct": DIRECT_CALLS, "review": REVIEWS}
    assert {stored.key.model for stored in history(storage)} == {"openai/scripted-a", "openai/judge"}


def test_all_unusable_models_and_judges_are_named_before_anything_else_is_sent(
    server: FakeServer, storage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server.script = lambda request: (
        answer(request) if request.body["model"] == "scripted-a" else error(401, "Invalid API key")
    )
    with pytest.raises(ModelSetupError) as caught:
        run_audit(small(server, 3, judges=judges(server, "judge")), storage=storage)
    for name in ("model-b", "model-c", "judge"):
        assert f"model '{name}'" in str(caught.value)
    assert "model-a" not in str(caught.value)
    assert isinstance(caught.value, UnusableModelsError)
    assert all("key" in error.how_to_fix for error in caught.value.errors)
    print_error(caught.value)
    first_line, *lines = capsys.readouterr().err.splitlines()
    assert first_line == "auditor: 3 models cannot be used. Recorded answers are kept."
    assert sorted(line.split("'")[1] for line in lines) == ["judge", "model-b", "model-c"]
    assert caught.value.exit_code == 1
    assert len(server.requests) == 4
    server.requests.clear()
    server.script = answer
    run_audit(small(server, 3, judges=judges(server, "judge")), storage=storage)
    assert len(server.requests) == 3 * DIRECT_CALLS - 1 + 3 * REVIEWS + 1  # the answer of model-a is recorded


def test_answers_name_the_capability_that_they_were_requested_under(server: FakeServer, storage: str) -> None:
    run_audit(small(server, 2), storage=storage)
    stored_ids = {stored.capability.id for stored in history(storage)}
    with open_database(storage) as db, db.read() as connection:
        used_ids = set(connection.execute(select(table_of(StoredAnswer).c.capability)).scalars())
    assert used_ids == stored_ids
    assert None not in used_ids


@pytest.mark.parametrize("point", ["after_response:1", "after_response:2", "before_dispatch:2", "after_record:1"])
def test_a_run_killed_during_preflight_repeats_and_loses_nothing(server: FakeServer, storage: str, point: str) -> None:
    audit = small(server, judges=judges(server, "judge"))
    assert run_until(audit, storage, point)[0] == -9
    known = {stored.key.model for stored in history(storage)}
    n_before = len(server.requests)
    run_audit(audit, storage=storage)
    rediscovered = Counter(request.body["model"] for request in server.requests[n_before:] if STAND_IN in request.text)
    assert rediscovered["judge"] == ("openai/judge" not in known)
    assert {stored.number for stored in history(storage)} == {1}
    repeated = len(server.requests) - len(set(map(question, server.requests)))
    assert repeated <= open_audit("scripted", storage=storage).report().cost.lost


def test_run_has_options_for_preflight_and_rediscovery(server: FakeServer, storage: str, tmp_path: Path) -> None:
    file = tmp_path / "audit.json"
    data = small(server, judges=judges(server, "judge")).model_dump(mode="json", exclude_none=True)
    file.with_suffix(".yaml").write_text(json.dumps(data), encoding="utf-8")
    succeed("run", file.with_suffix(".yaml"), "--storage", storage, "--no-preflight")
    assert purposes(storage)["preflight"] == 0
    second_run = succeed("run", file.with_suffix(".yaml"), "--storage", storage, "--rediscover")
    assert {stored.number for stored in history(storage)} == {1}  # nothing was left to ask
    assert "No request was sent, so --rediscover had no effect" in second_run.stderr


def test_a_first_question_that_fails_is_not_asked_again_in_the_same_run(server: FakeServer, storage: str) -> None:
    server.script = lambda request: (
        error(400, "This question is not allowed.") if "divorce" in request.text else answer(request)
    )
    run_audit(small(server, judges=[]), storage=storage)
    assert len(server.requests) == DIRECT_CALLS
    [traces] = open_audit("scripted", storage=storage).report().coverage.total
    assert (traces.ok, traces.losses) == (1, {"client_error": 1})
