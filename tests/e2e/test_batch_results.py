"""Results of providers' batches: each line that answers a call is used once, others are resubmitted, and their cost."""

from __future__ import annotations

import functools
import gzip
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from auditor.cost_estimation.audit_estimate import estimate_audit
from auditor.errors import ModelSetupError
from auditor.run import load_planned_survey, open_audit, run_audit
from auditor.storage import ledger
from auditor.storage.call_records import ProviderBatch
from auditor.storage.database import open_database
from auditor.storage.records import load_records
from tests.e2e.test_run import attempts
from tests.support.audit_configs import KEY
from tests.support.batch_audits import (
    BATCH,
    BATCHED_CALLS,
    CALLS,
    DIRECT_CALLS,
    DISCOVERIES,
    BatchServer,
    assert_all_is_answered,
    assert_none_is_submitted_twice,
    batched,
    google,  # noqa: F401 - a fixture
    priced,
    run_until_submitted,
    run_with_notices,
    small,
    waiting_batches,
)
from tests.support.cli_runner import auditor
from tests.support.fake_batches import CANCELLED, COMPLETED, EXPIRED, FAILED, FakeBatch
from tests.support.fake_server import Reply, Request, Script, answer, completion, error
from tests.support.fake_vertex import FakeVertex
from tests.support.hang_limit import hang_limit
from tests.support.killed_runs import run_until
from tests.support.known import known
from tests.support.notices import NoticeRecorder
from tests.support.stored_rows import load_stored

ANSWERED_USD = DISCOVERIES * 0.003 + BATCHED_CALLS * 0.0015
"""Cost of all direct answers at `batch_audits.PRICE`."""


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with BatchServer(batches=FakeVertex()) as running:
        yield running


@pytest.mark.parametrize("provider", ["openai", "vertex_ai"])
@pytest.mark.usefixtures("google")
def test_answers_of_an_expired_batch_are_kept_and_its_other_calls_are_resubmitted(
    server: BatchServer, storage: str, provider: str
) -> None:
    server.batches.fate = lambda batch, line: [COMPLETED, EXPIRED, CANCELLED][line % 3] if batch < 2 else COMPLETED
    report, notes = run_with_notices(small(server, provider, batch=BATCH), storage)
    assert any(re.search(r"the answers to \d+ of \d+ calls were collected", note) for note in notes)
    submissions_by_key = Counter(server.batches.keys)
    assert sorted(submissions_by_key.values()) == [1] * (CALLS - DISCOVERIES - 6) + [2] * 6
    sums = report.cost.total.sums
    assert (sums.answers, sums.attempts, report.cost.lost) == (CALLS, CALLS + 6, 0)


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
    [traces] = run_audit(batched(server), storage=storage).report().coverage.total
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
    audit = batched(server)
    with pytest.raises(ModelSetupError, match="no more"):
        run_audit(audit.model_copy(update={"models": audit.models[:1]}), storage=storage)
    assert set(attempts(storage)) == {(1, 200, "ok"), (1, 200, "server_error")}


def test_a_batch_status_that_is_an_html_page_is_requested_again(server: BatchServer, storage: str) -> None:
    pages = [b"<html>maintenance</html>", b"", b"null"]

    def send_page(method: str, path: str) -> web.Response | None:
        return web.Response(body=pages.pop(), content_type="text/html") if "/batches/" in path and pages else None

    server.batches.instead = send_page
    assert run_audit(batched(server), storage=storage)
    assert pages == []
    assert waiting_batches(storage) == []


def test_a_failed_batch_with_a_file_of_answers_keeps_them(server: BatchServer, storage: str) -> None:
    server.batches.fate = lambda batch, line: FAILED if batch < 2 and line % 2 else COMPLETED
    assert_all_is_answered(run_audit(batched(server), storage=storage).report())
    assert sorted(Counter(server.batches.keys).values()) == [1] * 6 + [2] * 4


def test_result_lines_of_no_call_in_the_batch_are_ignored(server: BatchServer, storage: str) -> None:
    response = {"status_code": 200, "body": completion("1").body}
    foreign_line = {"custom_id": "f" * 64, "response": response, "error": None}
    lines = [json.dumps(line).encode() for line in (foreign_line, {"custom_id": 7, "response": "x"})]
    server.batches.extra = [*lines, b"\xff{", b"[" * 100_000]
    _, notes = run_with_notices(batched(server), storage)
    notice = "4 lines that the provider returned for the batch batch_0 answer none of its questions"
    assert any(notice in note for note in notes)
    with open_database(storage) as db:
        assert not ledger.find_answered_keys(db, ["f" * 64])
        assert len(ledger.find_answered_keys(db, server.batches.keys)) == BATCHED_CALLS


def test_one_ignored_line_is_named_in_the_singular(server: BatchServer, storage: str) -> None:
    server.batches.extra = [b"{"]
    _, notes = run_with_notices(batched(server), storage)
    notice = "1 line that the provider returned for the batch batch_0 answers none of its questions, and was ignored."
    assert any(notice in note for note in notes)


def rename_ids(content: bytes) -> Reply:
    return Reply(raw=content.replace(b'"custom_id": "', b'"custom_id": "x'))


def test_questions_whose_answers_cannot_be_matched_are_not_paid_for_a_third_time(
    server: BatchServer, storage: str
) -> None:
    server.batches.deliver = lambda _, content: rename_ids(content)
    _, notes = run_with_notices(batched(server), storage)
    assert set(Counter(server.batches.keys).values()) == {2}
    assert any("are not sent again in this run. If it happens again, remove [batch]" in note for note in notes)


@pytest.mark.parametrize("problem", ["a page in place of the results", "refused"])
def test_a_batch_that_cannot_be_collected_ends_the_run_after_the_others_are_collected(
    server: BatchServer, storage: str, problem: str
) -> None:
    """It ended the run at once: batches that take hours were never collected, and paid for in vain."""
    if problem == "refused":
        server.batches.refuse = lambda number: None if number else {"message": "no more", "code": "no"}
    else:
        server.batches.deliver = lambda batch, content: Reply(raw=content if batch.number else b"<html>")
    n_polls = Counter[str]()

    def delay_second(_: str, path: str) -> web.Response | None:
        n_polls[path] += 1
        is_early = path == "/v1/batches/batch_1" and n_polls[path] < 30
        return web.json_response({"id": "batch_1", "status": "in_progress"}) if is_early else None

    server.batches.instead = delay_second
    progress = NoticeRecorder()
    with pytest.raises(ModelSetupError, match="no more" if problem == "refused" else "do not say which questions"):
        run_audit(batched(server), storage=storage, progress=progress)
    with open_database(storage) as db:
        assert len(ledger.find_answered_keys(db, server.batches.keys)) == BATCHED_CALLS / 2
    assert any("once the other batches are collected" in note for note in progress.notes)


def test_answers_of_gemini_without_keys_are_not_given_to_other_questions(server: BatchServer, storage: str) -> None:
    server.batches.names_keys = False
    audit = batched(server, "gemini")
    with pytest.raises(ModelSetupError, match=r"do not say which questions they answer.*remove \[batch\]"):
        run_audit(audit, storage=storage)
    assert len(server.batches.keys) == BATCHED_CALLS
    server.batches.names_keys = True
    assert_all_is_answered(run_audit(audit, storage=storage).report())
    assert_none_is_submitted_twice(server)


def test_a_disk_that_has_no_space_for_the_results_is_named(
    server: BatchServer, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`/dev/full` takes no data; it refuses to be cut, too."""
    with monkeypatch.context() as patched:
        patched.setattr("tempfile.TemporaryFile", functools.partial(open, "/dev/full", "w+b"))
        with pytest.raises(ModelSetupError, match=r"cannot be written into the folder .* Free space there"):
            run_audit(batched(server), storage=storage)
    run_audit(batched(server), storage=storage)
    assert_none_is_submitted_twice(server)


def put_texts_in_place(content: bytes, status_code: str | None) -> bytes:
    """The lines with a text, or nothing, in place of the number of the status, and a text in place of the body."""
    lines = [json.loads(line) for line in content.splitlines() if line]
    for line in lines:
        line["response"] = {"status_code": status_code, "body": json.dumps(line["response"]["body"])}
    return b"\n".join(json.dumps(line).encode() for line in lines)


UNSENT = {"response": None, "error": {"code": "batch_expired"}}
OVERLOADED = {"response": {"status_code": 500, "body": {"error": {"message": "overloaded"}}}, "error": None}


def list_twice(content: bytes, other: dict[str, Any], *, is_first: bool) -> bytes:
    """The lines, and for each one that has something else in place of its answer: before all of them, or after."""
    keys = [json.loads(line)["custom_id"] for line in content.splitlines() if line]
    lines = [*(json.dumps({"custom_id": key, **other}) for key in keys), *content.decode().splitlines()]
    return "\n".join(lines if is_first else lines[::-1]).encode()


ODD_FILES: dict[str, Callable[[bytes, int], bytes]] = {
    "a page at the first two readings": lambda content, n: b"<html>\nmaintenance</html>" if n < 3 else content,
    "a text in place of a number": lambda content, n: put_texts_in_place(content, "200"),
    "packed": lambda content, n: gzip.compress(content),
    "no number": lambda content, n: put_texts_in_place(content, None),
    "calls listed as not sent, then as answered": lambda content, n: list_twice(content, UNSENT, is_first=True),
    "calls listed as answered, then as not sent": lambda content, n: list_twice(content, UNSENT, is_first=False),
    "calls listed as failed, then as answered": lambda content, n: list_twice(content, OVERLOADED, is_first=True),
    "calls listed as answered, then as failed": lambda content, n: list_twice(content, OVERLOADED, is_first=False),
}
"""What is delivered of a results file, by its content and the number of the reading."""


@pytest.mark.parametrize("kind", ODD_FILES)
def test_all_answers_of_an_odd_results_file_are_read(server: BatchServer, storage: str, kind: str) -> None:
    readings = Counter[int]()

    def deliver(batch: FakeBatch, content: bytes) -> Reply:
        readings[batch.number] += 1
        return Reply(raw=ODD_FILES[kind](content, readings[batch.number]))

    server.batches.deliver = deliver
    assert_all_is_answered(run_audit(batched(server), storage=storage).report())
    assert_none_is_submitted_twice(server)


def test_a_line_that_answers_a_call_a_second_time_is_ignored_with_a_notice(server: BatchServer, storage: str) -> None:
    server.batches.deliver = lambda batch, content: Reply(raw=content + b"\n" + b"".join(content.splitlines()[:1]))
    _, notes = run_with_notices(batched(server), storage)
    assert any("of the batch batch_0, 1 line answers a question again" in note for note in notes)


# --- money ------------------------------------------------------------------------------------------------------------


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
    report, notes = run_with_notices(priced(batched(server)), storage)
    n_lost = 3 if n_missing_readings > 2 else 0
    assert len(server.batches.keys) == BATCHED_CALLS + n_lost
    assert_all_is_answered(report)
    assert report.cost.total.sums.estimated_attempts == n_lost
    assert any(f"does not return {n_lost} of them" in note for note in notes) == (n_lost > 0)


def test_answers_that_a_failed_batch_counts_and_does_not_return_are_charged(server: BatchServer, storage: str) -> None:
    failed = {"status": "failed", "request_counts": {"completed": 3}, "errors": None}
    server.batches.instead = lambda _, path: web.json_response(failed) if path == "/v1/batches/batch_0" else None
    report = run_audit(priced(batched(server)), storage=storage).report()
    assert_all_is_answered(report)
    assert (report.cost.total.sums.estimated_attempts, report.cost.lost) == (3, 0)


def test_answers_under_ids_that_no_call_has_are_charged_by_estimate(server: BatchServer, storage: str) -> None:
    server.batches.deliver = lambda batch, content: Reply(raw=content) if batch.number else rename_ids(content)
    report, notes = run_with_notices(priced(batched(server)), storage)
    n_lost = len(server.batches.batches[0].bodies)
    assert any("answer none of its questions, and were ignored. As many unanswered" in note for note in notes)
    total = report.cost.total
    assert (total.sums.answers, total.sums.attempts) == (DIRECT_CALLS, DIRECT_CALLS + n_lost)
    assert total.sums.estimated_attempts == n_lost > 0
    assert total.usd == pytest.approx(ANSWERED_USD + total.estimated_usd)
    assert total.estimated_usd > n_lost * 0.0015


def test_the_budget_holds_before_submission_and_calls_cost_the_price_of_a_batch(
    server: BatchServer, storage: str
) -> None:
    audit = priced(small(server, judges=[], batch=BATCH, limits={"budget_usd": 0.14}))
    report = run_audit(audit, storage=storage).report()
    [traces] = report.coverage.total
    assert 0 < len(server.batches.keys) == traces.ok - DISCOVERIES < BATCHED_CALLS
    assert traces.losses == {"over_budget": DIRECT_CALLS - traces.ok}
    assert report.cost.total.usd == pytest.approx(DISCOVERIES * 0.003 + len(server.batches.keys) * 0.0015)


def test_batches_whose_calls_are_sent_again_count_against_the_budget_and_as_lost(
    server: BatchServer, storage: str
) -> None:
    audit = priced(batched(server))
    run_until_submitted(audit, storage)
    reserved_usd = sum(batch.reserved_usd for batch in load_stored(storage, load_records, ProviderBatch))
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
    audit = priced(batched(server))
    run_until_submitted(audit, storage)
    assert open_audit("scripted", storage=storage).report().cost.lost == 0, "they can still be collected"
    n_submitted = len(server.batches.keys)
    monkeypatch.setattr("auditor.run.batches.manager.MIN_RETENTION_DAYS", -1)
    report = run_audit(audit, storage=storage).report()
    assert_all_is_answered(report)
    assert report.cost.lost == n_submitted > 0
    assert report.cost.lost_usd


def status_remarks(storage: str) -> str:
    """What `auditor status` says beside the figures."""
    return auditor("status", "scripted", "--storage", storage).stderr


def test_batches_of_an_earlier_configuration_count_as_lost_once_the_audit_is_finished(
    server: BatchServer, storage: str
) -> None:
    audit = priced(batched(server))
    run_until_submitted(audit, storage)
    n_submitted = len(server.batches.keys)
    assert "To collect the answers, run the audit again" in status_remarks(storage)
    cost = run_audit(audit.model_copy(update={"seed": 8}), storage=storage).report().cost
    assert cost.lost == n_submitted > 0
    assert cost.lost_usd
    assert "which the present configuration does not ask for. They may be charged." in status_remarks(storage)


def test_a_batch_that_was_perhaps_never_submitted_may_wait_at_the_provider(server: BatchServer, storage: str) -> None:
    audit = batched(server)
    assert run_until(audit, storage, "batch_prepared")[0] == -9
    may_wait = r"calls may wait in (a batch|2 batches) at the provider"
    assert re.search(may_wait, status_remarks(storage))
    run_audit(audit.model_copy(update={"seed": 8}), storage=storage)
    remarks = status_remarks(storage)
    assert re.search(f"{may_wait}, which the present configuration does not ask for", remarks)
    assert "If they were submitted, they may be charged." in remarks


def test_calls_that_a_batch_did_not_send_are_not_lost_if_the_run_is_killed_while_another_one_has_them(
    server: BatchServer, storage: str
) -> None:
    """Two batches expire, which is free, and the answers to two calls that cannot be read are charged."""
    server.batches.fate = lambda batch, line: EXPIRED if batch < 2 and line else COMPLETED
    choices, outputs = b'"choices"', b'"outputs"'
    server.batches.deliver = lambda b, content: Reply(
        raw=content.replace(choices, outputs if b.number < 2 else choices)
    )
    audit = priced(batched(server))
    assert run_until(audit, storage, "batch_submitted:4")[0] == -9
    assert len(server.batches.keys) == 2 * BATCHED_CALLS
    cost = run_audit(audit, storage=storage).report().cost
    assert len(server.batches.keys) == 2 * BATCHED_CALLS
    assert (cost.lost, cost.lost_usd) == (0, 0)
    outcomes = Counter(outcome for _, _, outcome in attempts(storage))
    assert outcomes == {"ok": DIRECT_CALLS, "timeout": 8, "server_error": 2}
    assert cost.total.usd == pytest.approx(ANSWERED_USD + 2 * 0.0015)


def test_a_batch_that_was_refused_at_its_last_attempt_is_not_lost(server: BatchServer, storage: str) -> None:
    """The provider asks to wait longer than the limits allow, which stops the run."""
    later, headers = {"error": {"message": "later"}}, {"retry-after": "86400"}
    server.batches.instead = lambda method, path: (
        web.json_response(later, status=429, headers=headers) if (method, path) == ("POST", "/v1/batches") else None
    )
    audit = priced(batched(server))
    message = r"rejected a batch.*later; the provider asks to wait 24 h, longer than limits.*Or remove \[batch\]"
    with hang_limit(), pytest.raises(ModelSetupError, match=message):
        run_audit(audit, storage=storage)
    assert waiting_batches(storage) == []
    report = run_audit(audit.model_copy(update={"batch": None}), storage=storage).report()
    assert_all_is_answered(report)
    assert report.cost.lost == 0


def test_the_estimate_shows_the_price_of_batches(server: BatchServer) -> None:
    forecasts = []
    for batch in (None, BATCH):
        audit = priced(small(server, batch=batch))
        survey = load_planned_survey(audit)
        forecasts.append(estimate_audit(audit, survey, list(survey.asked_cells)))
    usual_cost, batch_cost = (known(forecast.usd) for forecast in forecasts)
    assert (batch_cost.expected, batch_cost.high) == pytest.approx((usual_cost.expected / 2, usual_cost.high))
    assert all(("0.5 times this" in row.price_source) == (row.stage != "preflight") for row in forecasts[1].rows)
