"""Audits that use providers' batch APIs: same results, and no call submitted twice, whatever happens in between.

`test_batch_results.py` has what the lines of results say, and what they cost.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web
from sqlalchemy import select

from auditor.config import BatchSection
from auditor.errors import ModelSetupError
from auditor.run import open_audit, run_audit
from auditor.storage import audits, batches
from auditor.storage.call_records import ProviderBatch, StoredAnswer, StoredCapability, parse_capability
from auditor.storage.capabilities import save_capability
from auditor.storage.database import open_database
from auditor.storage.records import load_records
from auditor.storage.row_classes import table_of
from tests.e2e.test_run import config_file, exported, stored
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
    run_until_submitted,
    run_with_notices,
    small,
    waiting_batches,
)
from tests.support.cli_runner import succeed
from tests.support.fake_batches import FakeBatches
from tests.support.fake_server import FakeServer, answer, error
from tests.support.fake_vertex import BUCKET, FakeVertex
from tests.support.forked_commands import RunningCommand, start
from tests.support.google_machine import expire_tokens, google_machine
from tests.support.hang_limit import hang_limit
from tests.support.killed_runs import ALL_FAULTS, run_until
from tests.support.stored_rows import load_stored


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with BatchServer(batches=FakeVertex()) as running:
        yield running


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
    assert_none_is_submitted_twice(server, CALLS - DISCOVERIES)


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
    audit = batched(server, provider)
    assert run_until(audit, storage, point)[0] == -9
    assert bool(server.batches.keys) == (point != "batch_prepared")
    report = run_audit(audit, storage=storage).report()
    assert_none_is_submitted_twice(server)
    assert count_single_requests(server) == DISCOVERIES
    assert all(row.ok == row.planned for row in report.coverage.total)
    sums = report.cost.total.sums
    assert (sums.calls, sums.attempts, report.cost.lost) == (DIRECT_CALLS, DIRECT_CALLS, 0)
    assert load_stored(storage, batches.load_uncollected_batches) == []


def wait_until(condition: Callable[[], bool], running: RunningCommand) -> None:
    """Wait for a condition; fail if the running command ends before."""
    while not condition():
        assert running.poll() is None, running.communicate()
        time.sleep(0.05)


def test_a_run_that_is_interrupted_leaves_its_batches_and_the_next_one_collects_them(
    server: BatchServer, storage: str, tmp_path: Path
) -> None:
    server.batches.held = True
    config_path = config_file(tmp_path, small(server, batch=BATCH))
    running = start("run", config_path, "--storage", storage)
    wait_until(lambda: len(server.batches.keys) == BATCHED_CALLS, running)
    wait_until(lambda: "batch_1" in " ".join(path for _, path, _ in server.batches.asked), running)
    running.send_signal(signal.SIGINT)
    _, stderr = running.communicate()
    assert running.returncode == 130, stderr
    assert "10 calls wait in 2 batches at the provider" in stderr
    assert f"To resume: auditor run {config_path}" in stderr
    assert sorted((b["model"], b["calls"]) for b in waiting_batches(storage)) == [("model-a", 5), ("model-b", 5)]
    assert open_audit("scripted", storage=storage).report().cost.lost == 0
    server.batches.held = False
    succeed("run", config_path, "--storage", storage)
    assert_none_is_submitted_twice(server, CALLS - DISCOVERIES)
    assert waiting_batches(storage) == []


def no_list(kind: str) -> web.Response:
    """What a server may answer instead of the list of batches, while it is maintained."""
    if kind == "page":
        return web.Response(body=b"<html>maintenance</html>", content_type="text/html")
    return web.json_response({"error": {"message": "Not found."}}, status=404 if kind == "not found" else 200)


@pytest.mark.parametrize("kind", ["page", "not found", "error"])
def test_calls_in_batches_that_cannot_be_listed_now_are_not_sent_singly(
    server: BatchServer, storage: str, kind: str
) -> None:
    audit = batched(server)
    run_until_submitted(audit, storage)
    server.batches.instead = lambda method, path: no_list(kind) if (method, path) == ("GET", "/v1/batches") else None
    with pytest.raises(ModelSetupError, match="does not list now"):
        run_audit(audit, storage=storage)
    server.batches.instead = lambda method, path: None
    run_audit(audit, storage=storage)
    assert len(server.requests) == DISCOVERIES
    assert_none_is_submitted_twice(server)


def test_a_batch_that_is_not_found_for_a_while_is_collected(server: BatchServer, storage: str) -> None:
    n_left = 4  # two for each of both models

    def not_found(method: str, path: str) -> web.Response | None:
        nonlocal n_left
        if "/batches/" not in path or not n_left:
            return None
        n_left -= 1
        return web.json_response({"error": {"message": "No batch found."}}, status=404)

    server.batches.instead = not_found
    assert_all_is_answered(run_audit(batched(server), storage=storage).report())
    n_left = 1_000_000
    with hang_limit(), pytest.raises(ModelSetupError, match=r"No batch found\. Run the same command again later"):
        run_audit(batched(server), storage=storage.replace(".db", "-2.db"))


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
    audit = batched(server)
    with pytest.raises(ModelSetupError, match=r"it is not known whether the provider of model .* accepted a batch"):
        run_audit(audit, storage=storage)
    server.batches.instead, server.batches.has_no_id = (lambda method, path: None), False
    assert_all_is_answered(run_audit(audit, storage=storage).report())
    assert_none_is_submitted_twice(server)


def test_a_model_without_batches_is_asked_by_single_calls(server: BatchServer, storage: str, tmp_path: Path) -> None:
    with FakeServer(batches=FakeBatches(is_available=False)) as unbatched_server:
        audit = small(server, batch=BATCH)
        first, second = audit.models
        models = [first, second.model_copy(update={"api_base": unbatched_server.url})]
        audit = audit.model_copy(update={"models": models})
        _, notes = run_with_notices(audit, storage)
        chat_requests = [r for r in unbatched_server.requests if r.path == "/v1/chat/completions"]
        usual_storage = f"sqlite:///{tmp_path / 'usual.db'}"
        run_audit(audit.model_copy(update={"batch": None}), storage=usual_storage)
    assert stored(storage) == stored(usual_storage)
    assert [note for note in notes if "no batches" in note] == [
        "The provider of 'model-b' offers no batches: its calls are sent one by one, at the usual price."
    ]
    assert len(chat_requests) == CALLS / 2
    assert len(server.batches.keys) == (CALLS - DISCOVERIES) / 2


@pytest.mark.usefixtures("google")
def test_vertex_ai_without_a_bucket_is_asked_by_single_calls_unless_calls_wait_in_one(
    server: BatchServer, storage: str, tmp_path: Path
) -> None:
    audit, without_bucket = batched(server, "vertex_ai"), batched(server, "vertex_ai", bucket=None)
    _, notes = run_with_notices(without_bucket, f"sqlite:///{tmp_path}/single.db")
    [note] = [note for note in notes if "'model-b'" in note]
    assert note.startswith("The batches of 'model-b' need batch.bucket, such as \"gs://my-bucket/audits\": its calls ")
    assert note.endswith("are sent one by one, at the usual price.")
    assert count_single_requests(server) == DIRECT_CALLS
    assert run_until(audit, storage, "batch_submitted")[0] == -9
    n_before = count_single_requests(server)
    with pytest.raises(ModelSetupError, match=r"Set batch\.bucket again"):
        run_audit(without_bucket, storage=storage)
    run_audit(audit.model_copy(update={"batch": BatchSection(**BATCH | {"bucket": f"gs://{BUCKET}"})}), storage=storage)
    assert Counter(server.batches.keys) == dict.fromkeys(server.batches.keys, 1)
    assert len(server.batches.keys) + count_single_requests(server) - n_before >= BATCHED_CALLS


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
        assert_all_is_answered(run_audit(batched(server, "vertex_ai"), storage=storage).report())
    assert len(tokens) == 2
    assert_none_is_submitted_twice(server)
    assert b"ya29" not in Path(storage.removeprefix("sqlite:///")).read_bytes()


@pytest.mark.usefixtures("google")
def test_a_bucket_that_does_not_exist_is_reported(server: BatchServer, storage: str) -> None:
    with pytest.raises(ModelSetupError, match="The specified bucket does not exist"):
        run_audit(batched(server, "vertex_ai", bucket="gs://another-bucket"), storage=storage)


def test_calls_are_split_into_batches_that_are_not_too_large(server: BatchServer, storage: str) -> None:
    run_audit(batched(server, most=4), storage=storage)
    assert max(len(b.bodies) for b in server.batches.batches) == 4
    assert_none_is_submitted_twice(server)


def test_few_calls_are_sent_singly(server: BatchServer, storage: str) -> None:
    run_audit(batched(server, least=7), storage=storage)
    assert not server.batches.batches
    assert len(server.requests) == DIRECT_CALLS


@pytest.mark.parametrize("provider", ["openai", "vertex_ai"])
@pytest.mark.usefixtures("google")
def test_a_batch_that_arrived_despite_an_error_reply_is_not_sent_again(
    server: BatchServer, storage: str, provider: str
) -> None:
    server.batches.deaf = 2
    run_audit(batched(server, provider), storage=storage)
    assert_none_is_submitted_twice(server)


def test_a_batch_for_which_there_is_no_room_waits_for_the_others(server: BatchServer, storage: str) -> None:
    limit_error = {"code": "token_limit_exceeded", "message": "Enqueued token limit reached."}
    server.batches.looks = 3
    server.batches.refuse = lambda number: limit_error if number == 1 else None
    assert_all_is_answered(run_audit(batched(server, most=3), storage=storage).report())
    assert len(server.batches.keys) == BATCHED_CALLS + len(server.batches.batches[1].bodies)


def test_a_refused_batch_is_reported_and_resubmitted_by_the_next_run(server: BatchServer, storage: str) -> None:
    server.batches.refuse = lambda number: {"code": "invalid_model", "message": "There is no such model."}
    audit = batched(server)
    with pytest.raises(ModelSetupError, match="rejected a batch: There is no such model"):
        run_audit(audit, storage=storage)
    server.batches.refuse = lambda number: None
    assert_all_is_answered(run_audit(audit, storage=storage).report())


def test_redirects_of_a_batch_server_are_not_followed(server: BatchServer, storage: str) -> None:
    redirect = web.Response(status=307, headers={"Location": "http://127.0.0.1:9/v1/batches"})
    server.batches.instead = lambda method, path: redirect if (method, path) == ("GET", "/v1/batches") else None
    with pytest.raises(ModelSetupError, match="redirected the request to another address"):
        run_audit(batched(server), storage=storage)


def test_waiting_calls_are_reported_and_sent_singly_without_batch_in_the_config(
    server: BatchServer, storage: str
) -> None:
    audit = batched(server)
    run_until_submitted(audit, storage)
    _, notes = run_with_notices(audit.model_copy(update={"batch": None}), storage)
    [note] = [n for n in notes if "calls wait in" in n]
    assert note.startswith("10 calls wait in 2 batches at the provider; without [batch]")
    assert len(server.requests) == DIRECT_CALLS
    assert waiting_batches(storage) == []


def test_batch_settings_do_not_change_the_config_hash(server: BatchServer) -> None:
    assert small(server).hash == small(server, batch=BATCH).hash


def test_a_batch_is_sent_after_a_live_call_and_under_what_that_found_out(server: BatchServer, storage: str) -> None:
    run_audit(small(server, batch=BATCH), storage=storage, preflight=False)
    assert len(server.requests) == DISCOVERIES
    known_capabilities = load_stored(storage, load_records, StoredCapability)
    capabilities = {stored.key.model: stored.capability for stored in known_capabilities}
    with open_database(storage, create=False) as db, db.read() as connection:
        stored_batches = connection.execute(select(table_of(ProviderBatch))).mappings().all()
    assert stored_batches
    for row in stored_batches:
        letter = row["name"].removeprefix("model-")
        assert parse_capability(row["capability"]) == capabilities[f"openai/scripted-{letter}"]
    assert used_capabilities(storage) == {capability.id for capability in capabilities.values()}


def used_capabilities(storage: str) -> set[str | None]:
    """Ids of the capabilities under which the recorded answers were read."""
    with open_database(storage) as db, db.read() as connection:
        return set(connection.execute(select(table_of(StoredAnswer).c.capability)).scalars())


def test_an_answer_that_a_later_run_collects_is_read_under_what_it_was_submitted_under(
    server: BatchServer, storage: str
) -> None:
    audit = batched(server)
    run_until_submitted(audit, storage)
    with open_database(storage) as db:
        audit_id = audits.get_audit(db, "scripted").id
        submitted = {stored.key: stored.capability for stored in load_records(db, audit_id, StoredCapability)}
        for key, capability in submitted.items():
            changed = replace(capability, thinking_tokens=4096)
            asyncio.run(save_capability(db, audit_id, key, changed, "found out again", "1", newer_than=1))
    run_audit(audit, storage=storage)
    assert_none_is_submitted_twice(server)
    assert used_capabilities(storage) == {capability.id for capability in submitted.values()}


def test_a_model_whose_lines_all_fail_alike_is_asked_nothing_more_of_that_purpose(
    server: BatchServer, storage: str
) -> None:
    """Its repairs and later stages would only fail again; the other models' batches go on."""
    server.script = lambda r: error(400, f"bad value {r.number}") if r.body["model"].endswith("-a") else answer(r)
    report = run_audit(small(server, batch=BATCH | {"most": 3}), storage=storage).report()
    assert len(server.batches.keys) == len(set(server.batches.keys))
    [traces, *_] = report.coverage.total
    assert (traces.ok, traces.losses["client_error"]) == (6, 6)
