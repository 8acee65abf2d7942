"""Audits that use providers' batch APIs: same results, no call paid twice, no answer lost between runs."""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from sqlalchemy import select

from auditor.agents.run_context import SilentProgress
from auditor.config import AuditConfig, BatchSection, Price
from auditor.cost_estimation.audit_estimate import estimate_audit
from auditor.errors import ModelSetupError
from auditor.reports.data.audit_status import load_audit_status
from auditor.run import load_planned_survey, open_audit, run_audit
from auditor.storage import audits, batches, ledger
from auditor.storage.call_records import ProviderBatch, StoredAnswer, StoredCapability, parse_capability
from auditor.storage.capabilities import save_capability
from auditor.storage.database import open_database
from auditor.storage.records import load_records
from auditor.storage.row_classes import table_of
from tests.e2e.test_run import attempts, config_file, exported, stored
from tests.support.audit_configs import KEY, KEY_VARIABLE, config
from tests.support.cli_runner import auditor
from tests.support.fake_batches import CANCELLED, COMPLETED, EXPIRED, FAILED, FakeBatch, FakeBatches
from tests.support.fake_server import FakeServer, Reply, Request, Script, answer, completion, error
from tests.support.fake_vertex import BUCKET, FakeVertex
from tests.support.forked_commands import RunningCommand, start
from tests.support.google_machine import expire_tokens, google_machine
from tests.support.hang_limit import hang_limit
from tests.support.killed_runs import ALL_FAULTS, run_until

BATCH = {"poll_s": 0.05, "quiet_s": 0.2, "least": 1, "bucket": f"gs://{BUCKET}/audits"}
CALLS, DIRECT_CALLS = 24, 12
DISCOVERIES = 2
"""Calls that are sent individually, one to each model: they find out what it accepts."""


class BatchServer(FakeServer):
    """A server with the batch APIs of all providers."""

    batches: FakeVertex


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with BatchServer(batches=FakeVertex()) as running:
        yield running


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("AUDITOR_TRUST", f"{KEY_VARIABLE}@127.0.0.1,GOOGLE_CREDENTIALS@127.0.0.1")
    with google_machine(monkeypatch, tmp_path, lambda: "ya29.token"):
        yield


def small(server: FakeServer, provider: str = "openai", **changes: Any) -> AuditConfig:
    """Config of 2 models, 3 cells and 2 samples, where the other model judges every trace."""
    survey = {"source": "wvs7-sample", "countries": ["Germany", "Japan", "Nigeria"], "topics": ["divorce"]}
    audit = config(server.url, 2, survey=survey, probes={"direct": {"samples": 2}}, **changes)
    api_base = server.url.removesuffix("/v1") + {"openai": "/v1", "gemini": "/v1beta"}.get(provider, "")
    # litellm sends a schema to those of Gemini's models that it knows.
    names = {"a": "gemini-2.5-flash", "b": "gemini-2.5-pro"}
    models = []
    for m in audit.models:
        is_google = provider in ("gemini", "vertex_ai")
        model = f"{provider}/{names[m.model[-1]]}" if is_google else m.model.replace("openai", provider)
        key = None if provider == "vertex_ai" else m.api_key
        models.append(m.model_copy(update={"model": model, "api_base": api_base, "api_key": key}))
    return audit.model_copy(update={"models": models})


def count_single_requests(server: BatchServer) -> int:
    """Number of calls that were sent individually, in either protocol."""
    return len(server.requests) + len(server.batches.messages)


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini", "vertex_ai"])
@pytest.mark.usefixtures("google")
def test_batches_give_the_same_results_as_single_calls(server: BatchServer, tmp_path: Path, provider: str) -> None:
    usual_storage, batch_storage = (f"sqlite:///{tmp_path / name}.db" for name in ("usual", "batched"))
    run_audit(small(server, provider), storage=usual_storage)
    server.requests.clear()
    server.batches.messages.clear()
    run_audit(small(server, provider, batch=BATCH), storage=batch_storage)
    assert stored(batch_storage) == stored(usual_storage)
    assert exported(batch_storage, tmp_path / "batched") == exported(usual_storage, tmp_path / "usual")
    assert len(stored(batch_storage)["traces"]) == DIRECT_CALLS
    assert count_single_requests(server) == DISCOVERIES
    assert len(server.batches.keys) == len(set(server.batches.keys)) == CALLS - DISCOVERIES


KILLED_AT = [("openai", "batch_sent"), ("vertex_ai", "batch_prepared"), ("vertex_ai", "after_record:7")]
"""Before a batch is submitted, after it is, and while its answers are read; `make faults` has more providers."""
if ALL_FAULTS:
    KILLED_AT += [("openai", "batch_prepared"), ("openai", "after_record:7"), ("vertex_ai", "batch_sent")]
    KILLED_AT += [("anthropic", "batch_sent"), ("gemini", "batch_sent")]


@pytest.mark.parametrize(("provider", "point"), KILLED_AT)
@pytest.mark.usefixtures("google")
def test_killed_at_any_place_nothing_is_submitted_twice(
    server: BatchServer, storage: str, provider: str, point: str
) -> None:
    audit = small(server, provider, judges=[], batch=BATCH)
    code, _ = run_until(audit, storage, point)
    assert code == -9
    assert bool(server.batches.keys) == (point != "batch_prepared")
    run_audit(audit, storage=storage)
    assert Counter(server.batches.keys) == dict.fromkeys(server.batches.keys, 1)
    assert len(server.batches.keys) == DIRECT_CALLS - DISCOVERIES
    assert count_single_requests(server) == DISCOVERIES
    report = open_audit("scripted", storage=storage).report()
    assert all(row.ok == row.planned for row in report.coverage.total)
    assert (report.cost.total.sums.calls, report.cost.total.sums.attempts, report.cost.lost) == (
        DIRECT_CALLS,
        DIRECT_CALLS,
        0,
    )
    with open_database(storage) as db:
        assert batches.load_uncollected_batches(db, audits.get_audit(db, "scripted").id) == []


def test_a_run_that_is_interrupted_leaves_its_batches_and_the_next_one_collects_them(
    server: BatchServer, storage: str, tmp_path: Path
) -> None:
    server.batches.held = True
    config_path = config_file(tmp_path, small(server, batch=BATCH))
    running = start("run", config_path, "--storage", storage)
    wait_until(lambda: len(server.batches.keys) == DIRECT_CALLS - DISCOVERIES, running)
    wait_until(lambda: "batch_1" in " ".join(path for _, path, _ in server.batches.asked), running)
    running.send_signal(signal.SIGINT)
    _, stderr = running.communicate()
    assert running.returncode == 130, stderr
    assert "10 calls wait in 2 batches at the provider" in stderr
    assert f"To resume: auditor run {config_path}" in stderr
    waiting_status = status(storage)
    assert sorted((b["model"], b["calls"]) for b in waiting_status["batches"]) == [(f"model-{m}", 5) for m in "ab"]
    assert open_audit("scripted", storage=storage).report().cost.lost == 0
    server.batches.held = False
    second_run = start("run", config_path, "--storage", storage)
    _, stderr = second_run.communicate()
    assert second_run.returncode == 0, stderr
    assert len(server.batches.keys) == len(set(server.batches.keys)) == CALLS - DISCOVERIES
    assert status(storage)["batches"] == []


@pytest.mark.parametrize("provider", ["openai", "vertex_ai"])
@pytest.mark.usefixtures("google")
def test_answers_of_an_expired_batch_are_kept_and_its_other_calls_are_resubmitted(
    server: BatchServer, storage: str, provider: str
) -> None:
    server.batches.fate = lambda batch, line: [COMPLETED, EXPIRED, CANCELLED][line % 3] if batch < 2 else COMPLETED
    progress = NoticeRecorder()
    run_audit(small(server, provider, batch=BATCH), storage=storage, progress=progress)
    assert any(re.search(r"the answers to \d+ of \d+ calls were collected", note) for note in progress.notes)
    submissions_by_key = Counter(server.batches.keys)
    assert len(submissions_by_key) == CALLS - DISCOVERIES
    assert sorted(submissions_by_key.values()) == [1] * (CALLS - DISCOVERIES - 6) + [2] * 6
    cost = open_audit("scripted", storage=storage).report().cost
    assert (cost.total.sums.answers, cost.total.sums.attempts, cost.lost) == (CALLS, CALLS + 6, 0)


def test_failed_lines_are_failures_and_retryable_ones_are_resubmitted(server: BatchServer, storage: str) -> None:
    rate_limited_texts: set[str] = set()

    def fail_sometimes(request: Request) -> Reply:
        if request.draw("mood") < 0.2:
            return error(400, f"this cannot be asked, {KEY}")
        if request.draw("mood") < 0.5 and request.text not in rate_limited_texts:
            rate_limited_texts.add(request.text)
            return error(429, "slow down")
        return answer(request)

    server.script = fail_sometimes
    run_audit(small(server, judges=[], batch=BATCH), storage=storage)
    report = open_audit("scripted", storage=storage).report()
    [traces] = report.coverage.total
    client_errors = traces.losses["client_error"]
    assert (traces.ok, traces.planned) == (DIRECT_CALLS - client_errors, DIRECT_CALLS)
    assert 0 < client_errors < DIRECT_CALLS
    assert len(server.batches.keys) + len(server.requests) == DIRECT_CALLS + len(rate_limited_texts) > DIRECT_CALLS
    assert server.batches.keys
    assert KEY.encode() not in Path(storage.removeprefix("sqlite:///")).read_bytes()


def test_an_unreadable_line_is_resubmitted_and_attempts_are_recorded_if_the_run_stops(
    server: BatchServer, storage: str
) -> None:
    """The provider refuses the second batch completely, which ends the run."""
    replies: Iterator[Script] = itertools.chain([answer], itertools.repeat(lambda _: Reply(body={"outputs": []})))
    server.script = lambda request: next(replies)(request)
    server.batches.refuse = lambda number: {"message": "no more", "code": "no"} if number else None
    with pytest.raises(ModelSetupError, match="no more"):
        run_audit(
            small(server, batch=BATCH, judges=[]).model_copy(update={"models": small(server).models[:1]}),
            storage=storage,
        )
    recorded = attempts(storage)
    assert recorded
    assert set(recorded) == {(1, 200, "ok"), (1, 200, "server_error")}


def test_a_batch_status_that_is_an_html_page_is_requested_again(server: BatchServer, storage: str) -> None:
    pages = [b"<html>maintenance</html>", b"", b"null"]

    def send_page(method: str, path: str) -> web.Response | None:
        return web.Response(body=pages.pop(), content_type="text/html") if "/batches/" in path and pages else None

    server.batches.instead = send_page
    assert run_audit(small(server, batch=BATCH, judges=[]), storage=storage)
    assert pages == []
    assert status(storage)["batches"] == []


def no_list(kind: str) -> web.Response:
    """What a server may answer instead of the list of batches, while it is maintained."""
    if kind == "page":
        return web.Response(body=b"<html>maintenance</html>", content_type="text/html")
    return web.json_response({"error": {"message": "Not found."}}, status=404 if kind == "not found" else 200)


@pytest.mark.parametrize("kind", ["page", "not found", "error"])
def test_calls_that_wait_in_batches_are_not_sent_singly_if_batches_cannot_be_listed(
    server: BatchServer, storage: str, kind: str
) -> None:
    audit = small(server, judges=[], batch=BATCH)
    assert run_until(audit, storage, "batch_submitted:2")[0] == -9
    server.batches.instead = lambda method, path: no_list(kind) if (method, path) == ("GET", "/v1/batches") else None
    with pytest.raises(ModelSetupError, match="does not list now"):
        run_audit(audit, storage=storage)
    server.batches.instead = lambda method, path: None
    run_audit(audit, storage=storage)
    assert len(server.requests) == DISCOVERIES
    assert len(server.batches.keys) == len(set(server.batches.keys)) == DIRECT_CALLS - DISCOVERIES


def test_a_batch_that_is_not_found_for_a_while_is_collected(server: BatchServer, storage: str) -> None:
    n_left = [4]  # two for each of both models

    def not_found(method: str, path: str) -> web.Response | None:
        if "/batches/" not in path or not n_left[0]:
            return None
        n_left[0] -= 1
        return web.json_response({"error": {"message": "No batch found."}}, status=404)

    server.batches.instead = not_found
    run_audit(small(server, judges=[], batch=BATCH), storage=storage)
    assert open_audit("scripted", storage=storage).report().coverage.total[0].ok == DIRECT_CALLS
    server.batches.instead = lambda method, path: (
        web.json_response({"error": {"message": "No batch found."}}, status=404) if "/batches/" in path else None
    )
    with hang_limit(), pytest.raises(ModelSetupError, match=r"No batch found\. Run the same command again later"):
        run_audit(small(server, judges=[], batch=BATCH), storage=storage.replace(".db", "-2.db"))


def test_a_failed_batch_with_a_file_of_answers_keeps_them(server: BatchServer, storage: str) -> None:
    server.batches.fate = lambda batch, line: FAILED if batch < 2 and line % 2 else COMPLETED
    run_audit(small(server, judges=[], batch=BATCH), storage=storage)
    submissions_by_key = Counter(server.batches.keys)
    assert sorted(submissions_by_key.values()) == [1] * 6 + [2] * 4
    assert open_audit("scripted", storage=storage).report().coverage.total[0].ok == DIRECT_CALLS


def test_answers_that_a_failed_batch_counts_and_does_not_return_are_charged(server: BatchServer, storage: str) -> None:
    def fail_half_way(method: str, path: str) -> web.Response | None:
        if path != "/v1/batches/batch_0":
            return None
        return web.json_response({"status": "failed", "request_counts": {"completed": 3}, "errors": None})

    server.batches.instead = fail_half_way
    run_audit(with_prices(small(server, judges=[], batch=BATCH)), storage=storage)
    report = open_audit("scripted", storage=storage).report()
    assert report.coverage.total[0].ok == DIRECT_CALLS
    assert report.cost.total.sums.estimated_attempts == 3
    assert report.cost.lost == 0


@pytest.mark.parametrize("has_no_id", [True, False])
def test_a_batch_that_may_have_arrived_is_looked_for_by_the_next_run(
    server: BatchServer, storage: str, has_no_id: bool
) -> None:
    """Its reply had no id; or it was lost, and the key may not list batches."""
    server.batches.deaf, server.batches.has_no_id = (0 if has_no_id else 2), has_no_id
    n_lists = Counter[str]()

    def forbid_search(method: str, path: str) -> web.Response | None:
        if (method, path) != ("GET", "/v1/batches") or has_no_id:
            return None
        n_lists[path] += 1
        refusal = web.json_response({"error": {"message": "You have insufficient permissions."}}, status=403)
        return refusal if n_lists[path] > DISCOVERIES else None

    server.batches.instead = forbid_search
    audit = small(server, judges=[], batch=BATCH)
    with pytest.raises(ModelSetupError, match=r"it is not known whether the provider of model .* accepted a batch"):
        run_audit(audit, storage=storage)
    server.batches.instead, server.batches.has_no_id = (lambda method, path: None), False
    run_audit(audit, storage=storage)
    assert len(server.batches.keys) == len(set(server.batches.keys)) == DIRECT_CALLS - DISCOVERIES
    assert open_audit("scripted", storage=storage).report().coverage.total[0].ok == DIRECT_CALLS


def test_a_retry_after_beyond_the_limit_stops_the_run(server: BatchServer, storage: str) -> None:
    error_body, headers = {"error": {"message": "later"}}, {"retry-after": "86400"}
    server.batches.instead = lambda method, path: (
        web.json_response(error_body, status=429, headers=headers)
        if (method, path) == ("POST", "/v1/batches")
        else None
    )
    message = r"later; the provider asks to wait 24 h, longer than limits"
    with hang_limit(), pytest.raises(ModelSetupError, match=message):
        run_audit(small(server, batch=BATCH, judges=[]), storage=storage)


def test_the_budget_holds_before_submission_and_calls_cost_the_price_of_a_batch(
    server: BatchServer, storage: str
) -> None:
    price = {"input": 10.0, "output": 100.0}  # an answer costs $0.003 by itself
    audit = small(server, judges=[], batch=BATCH, limits={"budget_usd": 0.14})
    models = [m.model_copy(update={"price": Price.model_validate(price)}) for m in audit.models]
    audit = audit.model_copy(update={"models": models})
    run_audit(audit, storage=storage)
    report = open_audit("scripted", storage=storage).report()
    [traces] = report.coverage.total
    assert 0 < len(server.batches.keys) == traces.ok - DISCOVERIES < DIRECT_CALLS - DISCOVERIES
    assert traces.losses == {"over_budget": DIRECT_CALLS - traces.ok}
    assert report.cost.total.usd == pytest.approx(DISCOVERIES * 0.003 + len(server.batches.keys) * 0.0015)


def test_result_lines_of_no_call_in_the_batch_are_ignored(server: BatchServer, storage: str, tmp_path: Path) -> None:
    foreign_line = {
        "custom_id": "f" * 64,
        "response": {"status_code": 200, "body": completion("1").body},
        "error": None,
    }
    malformed_line = {"custom_id": 7, "response": "x"}
    server.batches.extra = [
        json.dumps(foreign_line).encode(),
        json.dumps(malformed_line).encode(),
        b"\xff{",
        b"[" * 100_000,
    ]
    progress = NoticeRecorder()
    run_audit(small(server, judges=[], batch=BATCH), storage=storage, progress=progress)
    assert any(
        "4 lines that the provider returned for the batch batch_0 answer none of its questions" in note
        for note in progress.notes
    )
    with open_database(storage) as db:
        assert not ledger.find_answered_keys(db, ["f" * 64])
        assert len(ledger.find_answered_keys(db, server.batches.keys)) == DIRECT_CALLS - DISCOVERIES


def test_answers_under_ids_that_no_call_has_are_charged_by_estimate(server: BatchServer, storage: str) -> None:
    def deliver(batch: FakeBatch, content: bytes) -> Reply:
        return Reply(raw=content.replace(b'"custom_id": "', b'"custom_id": "x') if batch.number == 0 else content)

    server.batches.deliver = deliver
    audit = with_prices(small(server, judges=[], batch=BATCH))
    progress = NoticeRecorder()
    run_audit(audit, storage=storage, progress=progress)
    n_lost = len(server.batches.batches[0].bodies)
    assert any("answer none of its questions, and were ignored. As many unanswered" in note for note in progress.notes)
    total = open_audit("scripted", storage=storage).report().cost.total
    assert (total.sums.answers, total.sums.attempts) == (DIRECT_CALLS, DIRECT_CALLS + n_lost)
    assert total.sums.estimated_attempts == n_lost > 0
    answered_usd = DISCOVERIES * 0.003 + (DIRECT_CALLS - DISCOVERIES) * 0.0015
    assert total.usd == pytest.approx(answered_usd + total.estimated_usd)
    assert total.estimated_usd > n_lost * 0.0015


def test_questions_whose_answers_cannot_be_matched_are_not_paid_for_a_third_time(
    server: BatchServer, storage: str
) -> None:
    server.batches.deliver = lambda _, content: Reply(raw=content.replace(b'"custom_id": "', b'"custom_id": "x'))
    progress = NoticeRecorder()
    run_audit(small(server, judges=[], batch=BATCH), storage=storage, progress=progress)
    assert set(Counter(server.batches.keys).values()) == {2}
    assert any("are not sent again in this run. If it happens again, remove [batch]" in note for note in progress.notes)


def test_answers_of_gemini_without_keys_are_not_given_to_other_questions(server: BatchServer, storage: str) -> None:
    server.batches.names_keys = False
    audit = small(server, "gemini", judges=[], batch=BATCH)
    with pytest.raises(ModelSetupError, match=r"do not say which questions they answer.*remove \[batch\]"):
        run_audit(audit, storage=storage)
    assert len(server.batches.keys) == DIRECT_CALLS - DISCOVERIES
    server.batches.names_keys = True
    run_audit(audit, storage=storage)
    assert len(server.batches.keys) == DIRECT_CALLS - DISCOVERIES
    assert open_audit("scripted", storage=storage).report().coverage.total[0].ok == DIRECT_CALLS


def test_a_disk_that_has_no_space_for_the_results_is_named(
    server: BatchServer, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`/dev/full` takes no data; it refuses to be cut, too."""
    with monkeypatch.context() as patched:
        patched.setattr("tempfile.TemporaryFile", functools.partial(open, "/dev/full", "w+b"))
        with pytest.raises(ModelSetupError, match=r"cannot be written into the folder .* Free space there"):
            run_audit(small(server, judges=[], batch=BATCH), storage=storage)
    run_audit(small(server, judges=[], batch=BATCH), storage=storage)
    assert len(server.batches.keys) == len(set(server.batches.keys)) == DIRECT_CALLS - DISCOVERIES


def test_a_page_in_place_of_the_results_is_requested_again(server: BatchServer, storage: str) -> None:
    n_pages = Counter[int]()

    def deliver(batch: FakeBatch, content: bytes) -> Reply:
        n_pages[batch.number] += 1
        return Reply(raw=b"<html>\nmaintenance</html>" if n_pages[batch.number] < 3 else content)

    server.batches.deliver = deliver
    run_audit(small(server, judges=[], batch=BATCH), storage=storage)
    assert len(server.batches.keys) == DIRECT_CALLS - DISCOVERIES
    assert open_audit("scripted", storage=storage).report().coverage.total[0].ok == DIRECT_CALLS


@pytest.mark.parametrize("status_code", ["200", None])
def test_lines_with_texts_in_place_of_numbers_and_objects_are_read(
    server: BatchServer, storage: str, status_code: str | None
) -> None:
    def deliver(_: FakeBatch, content: bytes) -> Reply:
        lines = [json.loads(line) for line in content.splitlines() if line]
        for line in lines:
            line["response"] = {"status_code": status_code, "body": json.dumps(line["response"]["body"])}
        return Reply(raw=b"\n".join(json.dumps(line).encode() for line in lines))

    server.batches.deliver = deliver
    run_audit(small(server, judges=[], batch=BATCH), storage=storage)
    assert len(server.batches.keys) == DIRECT_CALLS - DISCOVERIES
    assert open_audit("scripted", storage=storage).report().coverage.total[0].ok == DIRECT_CALLS


@pytest.mark.parametrize("n_missing_readings", [2, 1_000])
def test_answers_that_are_counted_but_not_returned_are_read_again_and_then_charged(
    server: BatchServer, storage: str, n_missing_readings: int
) -> None:
    """As of a file that is not complete yet, or never will be."""
    readings = Counter[int]()

    def deliver(batch: FakeBatch, content: bytes) -> Reply:
        readings[batch.number] += bool(content.strip())
        is_incomplete = batch.number == 0 and readings[batch.number] <= n_missing_readings
        return Reply(raw=b"\n".join(content.splitlines()[: 2 if is_incomplete else None]))

    server.batches.deliver = deliver
    server.batches.counted = lambda number: len(server.batches.batches[number].bodies)
    audit = with_prices(small(server, judges=[], batch=BATCH))
    progress = NoticeRecorder()
    run_audit(audit, storage=storage, progress=progress)
    n_lost = 3 if n_missing_readings > 2 else 0
    assert len(server.batches.keys) == DIRECT_CALLS - DISCOVERIES + n_lost
    report = open_audit("scripted", storage=storage).report()
    assert report.coverage.total[0].ok == DIRECT_CALLS
    assert report.cost.total.sums.estimated_attempts == n_lost
    assert any(f"does not return {n_lost} of them" in note for note in progress.notes) == (n_lost > 0)


FAILED_LINES: dict[str, dict[str, Any]] = {
    "not sent": {"response": None, "error": {"code": "batch_expired"}},
    "failed": {"response": {"status_code": 500, "body": {"error": {"message": "overloaded"}}}, "error": None},
}


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("kind", FAILED_LINES)
def test_a_call_that_is_listed_as_failed_and_as_answered_is_answered(
    server: BatchServer, storage: str, kind: str, is_first: bool
) -> None:
    def deliver(batch: FakeBatch, content: bytes) -> Reply:
        keys = [json.loads(line)["custom_id"] for line in content.splitlines() if line]
        failed = [json.dumps({"custom_id": key, **FAILED_LINES[kind]}) for key in keys]
        lines = [*failed, *content.decode().splitlines()]
        return Reply(raw="\n".join(lines if is_first else lines[::-1]).encode())

    server.batches.deliver = deliver
    run_audit(small(server, judges=[], batch=BATCH), storage=storage)
    assert len(server.batches.keys) == DIRECT_CALLS - DISCOVERIES
    assert open_audit("scripted", storage=storage).report().coverage.total[0].ok == DIRECT_CALLS


def test_a_line_that_answers_a_call_a_second_time_is_ignored_with_a_notice(server: BatchServer, storage: str) -> None:
    server.batches.deliver = lambda batch, content: Reply(raw=content + b"\n" + b"".join(content.splitlines()[:1]))
    progress = NoticeRecorder()
    run_audit(small(server, judges=[], batch=BATCH), storage=storage, progress=progress)
    assert any("of the batch batch_0, 1 line answers a question again" in note for note in progress.notes)


def test_a_model_without_batches_is_asked_by_single_calls(server: BatchServer, storage: str, tmp_path: Path) -> None:
    with FakeServer(batches=FakeBatches(is_available=False)) as unbatched_server:
        audit = small(server, batch=BATCH)
        first, second = audit.models
        models = [first, second.model_copy(update={"api_base": unbatched_server.url})]
        audit = audit.model_copy(update={"models": models})
        progress, usual_storage = NoticeRecorder(), f"sqlite:///{tmp_path / 'usual.db'}"
        run_audit(audit, storage=storage, progress=progress)
        chat_requests = [r for r in unbatched_server.requests if r.path == "/v1/chat/completions"]
        run_audit(audit.model_copy(update={"batch": None}), storage=usual_storage)
    assert stored(storage) == stored(usual_storage)
    assert [note for note in progress.notes if "no batches" in note] == [
        "The provider of 'model-b' offers no batches: its calls are sent one by one, at the usual price."
    ]
    assert len(chat_requests) == CALLS / 2
    assert len(server.batches.keys) == (CALLS - DISCOVERIES) / 2


@pytest.mark.usefixtures("google")
def test_vertex_ai_without_a_bucket_is_asked_by_single_calls_unless_calls_wait_in_one(
    server: BatchServer, storage: str, tmp_path: Path
) -> None:
    audit, progress = small(server, "vertex_ai", judges=[], batch=BATCH), NoticeRecorder()
    without_bucket = small(server, "vertex_ai", judges=[], batch=BATCH | {"bucket": None})
    run_audit(without_bucket, storage=f"sqlite:///{tmp_path}/single.db", progress=progress)
    assert [note for note in progress.notes if "'model-b'" in note] == [
        "The batches of 'model-b' need batch.bucket, such as \"gs://my-bucket/audits\": its calls are sent one by one, "
        "at the usual price."
    ]
    assert count_single_requests(server) == DIRECT_CALLS
    code, _ = run_until(audit, storage, "batch_submitted")
    assert code == -9
    n_before = count_single_requests(server)
    with pytest.raises(ModelSetupError, match=r"Set batch\.bucket again"):
        run_audit(without_bucket, storage=storage)
    run_audit(audit.model_copy(update={"batch": BatchSection(**BATCH | {"bucket": f"gs://{BUCKET}"})}), storage=storage)
    assert Counter(server.batches.keys) == dict.fromkeys(server.batches.keys, 1)
    assert len(server.batches.keys) + count_single_requests(server) - n_before >= DIRECT_CALLS - DISCOVERIES


def test_an_access_token_that_expires_while_a_batch_is_processed_is_renewed(
    server: BatchServer, storage: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tokens = ["ya29.first"]

    def expire_at_first_poll(method: str, path: str) -> None:
        if method == "GET" and "/batchPredictionJobs/" in path and len(tokens) == 1:
            tokens.append("ya29.second")
            expire_tokens()

    server.batches.is_valid_token = lambda token: token == tokens[-1]
    server.batches.instead = expire_at_first_poll
    monkeypatch.setenv("AUDITOR_TRUST", "GOOGLE_CREDENTIALS@127.0.0.1")
    with google_machine(monkeypatch, tmp_path, lambda: tokens[-1]):
        run_audit(small(server, "vertex_ai", judges=[], batch=BATCH), storage=storage)
    assert len(tokens) == 2
    assert open_audit("scripted", storage=storage).report().coverage.total[0].ok == DIRECT_CALLS
    assert len(server.batches.keys) == len(set(server.batches.keys)) == DIRECT_CALLS - DISCOVERIES
    assert b"ya29" not in Path(storage.removeprefix("sqlite:///")).read_bytes()


@pytest.mark.usefixtures("google")
def test_a_bucket_that_does_not_exist_is_reported(server: BatchServer, storage: str) -> None:
    audit = small(server, "vertex_ai", judges=[], batch=BATCH | {"bucket": "gs://another-bucket"})
    with pytest.raises(ModelSetupError, match="The specified bucket does not exist"):
        run_audit(audit, storage=storage)


def test_calls_are_split_into_batches_that_are_not_too_large(server: BatchServer, storage: str) -> None:
    run_audit(small(server, judges=[], batch=BATCH | {"most": 4}), storage=storage)
    assert max(len(b.bodies) for b in server.batches.batches) == 4
    assert len(set(server.batches.keys)) == len(server.batches.keys) == DIRECT_CALLS - DISCOVERIES


def test_few_calls_are_sent_singly(server: BatchServer, storage: str) -> None:
    run_audit(small(server, judges=[], batch=BATCH | {"least": 7}), storage=storage)
    assert not server.batches.batches
    assert len(server.requests) == DIRECT_CALLS


@pytest.mark.parametrize("provider", ["openai", "vertex_ai"])
@pytest.mark.usefixtures("google")
def test_a_batch_that_arrived_despite_an_error_reply_is_not_sent_again(
    server: BatchServer, storage: str, provider: str
) -> None:
    server.batches.deaf = 2
    run_audit(small(server, provider, judges=[], batch=BATCH), storage=storage)
    assert len(set(server.batches.keys)) == len(server.batches.keys) == DIRECT_CALLS - DISCOVERIES


def test_a_batch_for_which_there_is_no_room_waits_for_the_others(server: BatchServer, storage: str) -> None:
    limit_error = {"code": "token_limit_exceeded", "message": "Enqueued token limit reached."}
    server.batches.looks = 3
    server.batches.refuse = lambda number: limit_error if number == 1 else None
    run_audit(small(server, judges=[], batch=BATCH | {"most": 3}), storage=storage)
    report = open_audit("scripted", storage=storage).report()
    assert report.coverage.total[0].ok == DIRECT_CALLS
    assert len(server.batches.keys) == 10 + len(server.batches.batches[1].bodies)


def test_a_refused_batch_is_reported_and_resubmitted_by_the_next_run(server: BatchServer, storage: str) -> None:
    server.batches.refuse = lambda number: {"code": "invalid_model", "message": "There is no such model."}
    audit = small(server, judges=[], batch=BATCH)
    with pytest.raises(ModelSetupError, match="rejected a batch: There is no such model"):
        run_audit(audit, storage=storage)
    server.batches.refuse = lambda number: None
    run_audit(audit, storage=storage)
    assert open_audit("scripted", storage=storage).report().coverage.total[0].ok == DIRECT_CALLS


def test_redirects_of_a_batch_server_are_not_followed(storage: str) -> None:
    with (
        FakeServer(batches=RedirectingBatches()) as redirecting,
        pytest.raises(ModelSetupError, match="redirected the request to another address"),
    ):
        run_audit(small(redirecting, judges=[], batch=BATCH), storage=storage)


def test_without_batch_in_the_config_waiting_calls_are_reported_and_asked_again(
    server: BatchServer, storage: str
) -> None:
    audit = small(server, judges=[], batch=BATCH)
    assert run_until(audit, storage, "batch_submitted:2")[0] == -9
    progress = NoticeRecorder()
    run_audit(audit.model_copy(update={"batch": None}), storage=storage, progress=progress)
    [note] = [n for n in progress.notes if "wait" in n]
    assert note.startswith("10 calls wait in 2 batches at the provider; without [batch]")
    assert len(server.requests) == DIRECT_CALLS
    assert status(storage)["batches"] == []


def with_prices(audit: AuditConfig) -> AuditConfig:
    """The audit with prices at which an answer costs $0.003 by itself, and half of that in a batch."""
    price = Price(input=10.0, output=100.0)
    return audit.model_copy(update={"models": [m.model_copy(update={"price": price}) for m in audit.models]})


def test_batches_whose_calls_are_sent_again_count_against_the_budget_and_as_lost(
    server: BatchServer, storage: str
) -> None:
    audit = with_prices(small(server, judges=[], batch=BATCH))
    assert run_until(audit, storage, "batch_submitted:2")[0] == -9
    with open_database(storage) as db:
        stored_batches = load_records(db, audits.get_audit(db, "scripted").id, ProviderBatch)
    reserved_usd = sum(batch.reserved_usd for batch in stored_batches)
    single = audit.model_copy(update={"batch": None})
    n_before = len(server.requests)
    for budget_usd, is_enough in ((n_before * 0.003 + reserved_usd + 0.01, False), (10.0, True)):
        limits = audit.limits.model_copy(update={"budget_usd": budget_usd})
        run_audit(single.model_copy(update={"limits": limits}), storage=storage)
        assert len(server.requests) == (DIRECT_CALLS if is_enough else n_before)
    cost = open_audit("scripted", storage=storage).report().cost
    assert cost.total.usd == pytest.approx(DIRECT_CALLS * 0.003)
    assert cost.lost == len(server.batches.keys) > 0
    assert cost.lost_usd == pytest.approx(reserved_usd)


def test_batches_that_are_not_collected_in_time_count_as_lost(
    server: BatchServer, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = with_prices(small(server, judges=[], batch=BATCH))
    assert run_until(audit, storage, "batch_submitted:2")[0] == -9
    assert open_audit("scripted", storage=storage).report().cost.lost == 0, "they can still be collected"
    n_submitted = len(server.batches.keys)
    monkeypatch.setattr("auditor.run.batches.manager.MIN_RETENTION_DAYS", -1)
    run_audit(audit, storage=storage)
    report = open_audit("scripted", storage=storage).report()
    assert report.coverage.total[0].ok == DIRECT_CALLS
    assert report.cost.lost == n_submitted > 0
    assert report.cost.lost_usd


def test_batches_of_an_earlier_configuration_count_as_lost_once_the_audit_is_finished(
    server: BatchServer, storage: str
) -> None:
    audit = with_prices(small(server, judges=[], batch=BATCH))
    assert run_until(audit, storage, "batch_submitted:2")[0] == -9
    n_submitted = len(server.batches.keys)
    waiting = auditor("status", "scripted", "--storage", storage).stderr
    assert "To collect the answers, run the audit again" in waiting
    run_audit(audit.model_copy(update={"seed": 8}), storage=storage)
    cost = open_audit("scripted", storage=storage).report().cost
    assert cost.lost == n_submitted > 0
    assert cost.lost_usd
    remarks = auditor("status", "scripted", "--storage", storage).stderr
    assert "which the present configuration does not ask for. They may be charged." in remarks


def test_calls_that_a_batch_did_not_send_are_not_lost_if_the_run_is_killed_while_another_one_has_them(
    server: BatchServer, storage: str
) -> None:
    """Two batches expire, which is free, and the answers to two calls that cannot be read are charged."""
    server.batches.fate = lambda batch, line: EXPIRED if batch < 2 and line else COMPLETED
    server.batches.deliver = lambda batch, content: Reply(
        raw=content.replace(b'"choices"', b'"outputs"') if batch.number < 2 else content
    )
    audit = with_prices(small(server, judges=[], batch=BATCH))
    assert run_until(audit, storage, "batch_submitted:4")[0] == -9
    assert len(server.batches.keys) == 2 * (DIRECT_CALLS - DISCOVERIES)
    run_audit(audit, storage=storage)
    assert len(server.batches.keys) == 2 * (DIRECT_CALLS - DISCOVERIES)
    cost = open_audit("scripted", storage=storage).report().cost
    assert (cost.lost, cost.lost_usd) == (0, 0)
    recorded = attempts(storage)
    assert Counter(outcome for _, _, outcome in recorded) == {"ok": DIRECT_CALLS, "timeout": 8, "server_error": 2}
    answered_usd = DISCOVERIES * 0.003 + (DIRECT_CALLS - DISCOVERIES) * 0.0015
    assert cost.total.usd == pytest.approx(answered_usd + 2 * 0.0015)


def test_a_batch_that_was_refused_at_its_last_attempt_is_not_lost(server: BatchServer, storage: str) -> None:
    later = {"error": {"message": "later"}}
    server.batches.instead = lambda method, path: (
        web.json_response(later, status=429, headers={"retry-after": "86400"})
        if (method, path) == ("POST", "/v1/batches")
        else None
    )
    audit = with_prices(small(server, judges=[], batch=BATCH))
    with pytest.raises(ModelSetupError, match=r"rejected a batch.*Or remove \[batch\]"):
        run_audit(audit, storage=storage)
    assert status(storage)["batches"] == []
    run_audit(audit.model_copy(update={"batch": None}), storage=storage)
    report = open_audit("scripted", storage=storage).report()
    assert report.coverage.total[0].ok == DIRECT_CALLS
    assert report.cost.lost == 0


def test_a_batch_that_was_perhaps_never_submitted_may_wait_at_the_provider(server: BatchServer, storage: str) -> None:
    audit = with_prices(small(server, judges=[], batch=BATCH))
    assert run_until(audit, storage, "batch_prepared")[0] == -9
    may_wait = r"calls may wait in (a batch|2 batches) at the provider"
    assert re.search(may_wait, auditor("status", "scripted", "--storage", storage).stderr)
    run_audit(audit.model_copy(update={"seed": 8}), storage=storage)
    remarks = auditor("status", "scripted", "--storage", storage).stderr
    assert re.search(f"{may_wait}, which the present configuration does not ask for", remarks)
    assert "If they were submitted, they may be charged." in remarks


def test_batch_settings_do_not_change_the_config_hash(server: BatchServer) -> None:
    usual_config, batch_config = small(server), small(server, batch=BATCH)
    assert usual_config.hash == batch_config.hash


def test_the_estimate_shows_the_price_of_batches(server: BatchServer) -> None:
    price = Price(input=1.0, output=2.0)
    forecasts = []
    for batch in (None, BATCH):
        audit = small(server, batch=batch)
        audit = audit.model_copy(update={"models": [m.model_copy(update={"price": price}) for m in audit.models]})
        survey = load_planned_survey(audit)
        forecasts.append(estimate_audit(audit, survey, list(survey.asked_cells)))
    usual_cost, batch_cost = (t.usd for t in forecasts)
    assert usual_cost
    assert batch_cost
    assert batch_cost.expected == pytest.approx(usual_cost.expected / 2)
    assert batch_cost.high == pytest.approx(usual_cost.high)
    assert all(("0.5 times this" in row.price_source) == (row.stage != "preflight") for row in forecasts[1].rows)


def test_a_batch_goes_out_only_after_a_live_call_and_under_what_that_found_out(
    server: BatchServer, storage: str
) -> None:
    run_audit(small(server, batch=BATCH), storage=storage, preflight=False)
    assert len(server.requests) == DISCOVERIES
    with open_database(storage, create=False) as db, db.read() as connection:
        stored_batches = connection.execute(select(table_of(ProviderBatch))).mappings().all()
        capabilities = {
            stored.key.model: stored.capability
            for stored in load_records(db, audits.get_audit(db, "scripted").id, StoredCapability)
        }
        forms = set(connection.execute(select(table_of(StoredAnswer).c.capability)).scalars())
    assert stored_batches
    for row in stored_batches:
        letter = row["name"].removeprefix("model-")
        assert parse_capability(row["capability"]) == capabilities[f"openai/scripted-{letter}"]
    assert forms == {capability.id for capability in capabilities.values()}


def test_an_answer_that_a_later_run_collects_is_read_under_what_it_was_submitted_under(
    server: BatchServer, storage: str
) -> None:
    audit = small(server, judges=[], batch=BATCH)
    assert run_until(audit, storage, "batch_submitted:2")[0] == -9
    with open_database(storage) as db:
        audit_id = audits.get_audit(db, "scripted").id
        submitted = {stored.key: stored.capability for stored in load_records(db, audit_id, StoredCapability)}
        for key, capability in submitted.items():
            changed = replace(capability, thinking_tokens=4096)
            asyncio.run(save_capability(db, audit_id, key, changed, "found out again", "1", newer_than=1))
    run_audit(audit, storage=storage)
    assert len(server.batches.keys) == len(set(server.batches.keys)) == DIRECT_CALLS - DISCOVERIES
    with open_database(storage) as db, db.read() as connection:
        used_ids = set(connection.execute(select(table_of(StoredAnswer).c.capability)).scalars())
    assert used_ids == {capability.id for capability in submitted.values()}


class NoticeRecorder(SilentProgress):
    """Progress that records all notices."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def on_notice(self, text: str) -> None:
        self.notes.append(text)


class RedirectingBatches(FakeBatches):
    """A batch API that redirects every list request to another server."""

    async def _list(self, raw: web.Request) -> web.StreamResponse:
        raise web.HTTPTemporaryRedirect("http://127.0.0.1:9/v1/batches")


def status(storage: str) -> dict[str, Any]:
    """Status of the audit as `auditor status` shows it."""
    with open_database(storage, create=False) as db:
        return load_audit_status(db, audits.get_audit(db, "scripted"))


def wait_until(condition: Callable[[], bool], running: RunningCommand) -> None:
    """Wait for a condition; fail if the running command ends before."""
    while not condition():
        assert running.poll() is None, running.communicate()
        time.sleep(0.05)


def test_a_model_whose_lines_all_fail_alike_is_asked_nothing_more_of_that_purpose(
    server: BatchServer, storage: str
) -> None:
    """Its repairs and later stages would only fail again; the other models' batches go on."""

    def script(request: Request) -> Reply:
        return error(400, f"bad value {request.number}") if request.body["model"].endswith("-a") else answer(request)

    server.script = script
    run_audit(small(server, batch=BATCH | {"most": 3}), storage=storage)
    report = open_audit("scripted", storage=storage).report()
    n_lines = Counter(key for key in server.batches.keys)
    assert max(n_lines.values()) == 1
    [traces, *_] = report.coverage.total
    assert (traces.ok, traces.losses["client_error"]) == (6, 6)
