"""Complete audits against a scripted server: requests, stored results, and runs that are interrupted."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from auditor.config import AuditConfig
from auditor.domain import Conflict, ConflictState, Decision, Outcome, Rating
from auditor.domain.decisions import SURVEY_REVIEW
from auditor.errors import ModelSetupError
from auditor.exports.tables import export_tables
from auditor.run import open_audit, resume_after_review, run_audit
from auditor.storage import audits, results
from auditor.storage.call_records import StoredAttempt
from auditor.storage.database import open_database
from auditor.storage.row_classes import table_of
from tests.support.audit_configs import KEY_VARIABLE, THREE_SAMPLES, config, with_models
from tests.support.cli_runner import fail, succeed
from tests.support.fake_server import FakeServer, Reply, Request, Script, answer, completion, error
from tests.support.forked_commands import start
from tests.support.known import known
from tests.support.patience import PATIENCE_S
from tests.support.stored_rows import add_rating

CELLS, MODELS = 9, 3
CALLS = CELLS * MODELS * (1 + MODELS - 1)
"""Of an audit with one sample of each cell."""
JAPAN = {"source": "wvs7-sample", "countries": ["Japan"], "topics": ["homosexuality", "divorce", "abortion"]}


def stored(storage: str, name: str = "scripted") -> dict[str, Any]:
    """Stage, traces, scores, verdicts and conflicts of an audit, which have no times."""
    with open_database(storage, create=False) as db:
        audit = audits.get_audit(db, name)
        return {
            "stage": audit.stage, "traces": results.load_traces(db, audit.id),
            "scores": results.load_scores(db, audit.id), "verdicts": results.load_verdicts(db, audit.id),
            "conflicts": results.load_conflicts(db, audit.id),
        }  # fmt: skip


TIMED = {"answer", "attempt", "audit", "batch", "capability", "dispatch", "limit_change", "link"}
"""Tables of an export that depend on times or on the way calls were sent; links hash rows of the others, too."""


def exported(storage: str, folder: Path) -> dict[str, bytes]:
    """Export an audit as JSONL and return the files whose content does not depend on time, by name."""
    with open_database(storage) as db:
        export_tables(db, "scripted", folder, "jsonl")
    return {path.name: path.read_bytes() for path in folder.glob("*.jsonl") if path.stem not in TIMED}


def question(request: Request) -> str:
    """What distinguishes a request: model, messages, seed and temperature as JSON."""
    return json.dumps([request.body[k] for k in ("model", "messages", "seed", "temperature")])


def test_an_audit_runs_to_the_end_and_a_second_run_asks_nothing(server: FakeServer, storage: str) -> None:
    """Three samples of three cells."""
    run_audit(config(server.url, survey=JAPAN, probes=THREE_SAMPLES), storage=storage)
    saved = stored(storage)
    assert saved["stage"] == "person"
    assert len(server.requests) == CALLS
    assert len(saved["traces"]) == 3 * MODELS * 3
    assert {t.outcome for t in saved["traces"]} == {Outcome.OK}
    assert len(saved["verdicts"]) == 3 * MODELS * 3 * (MODELS - 1)
    assert all(v.judge != v.model for v in saved["verdicts"])
    for score in saved["scores"]:
        samples = [t.score for t in saved["traces"] if (t.model, t.cell) == (score.model, score.cell)]
        assert score.score == pytest.approx(sum(samples) / 3)
        assert (score.n_ok, score.n_planned) == (3, 3)
    assert saved["conflicts"]
    for conflict in saved["conflicts"]:
        assert abs(conflict.difference) >= 0.38
        assert (conflict.seats, conflict.state is ConflictState.OPEN) == (1, conflict.winner is None)
    assert len({question(r) for r in server.requests}) == CALLS, "samples differ"
    run_audit(config(server.url, survey=JAPAN, probes=THREE_SAMPLES), storage=storage)
    assert len(server.requests) == CALLS
    assert stored(storage) == saved


def test_a_changed_config_asks_only_what_changed_and_renamed_models_nothing(server: FakeServer, storage: str) -> None:
    run_audit(config(server.url, survey=JAPAN), storage=storage)
    run_audit(config(server.url, survey=JAPAN, probes={"direct": {"samples": 2}}), storage=storage)
    assert len(server.requests) == 2 * CALLS / 3
    requests_before = len(server.requests)
    renamed = json.loads(config(server.url, survey=JAPAN).model_dump_json())
    for model, name in zip(renamed["models"], ("x", "y", "z"), strict=True):
        model["name"] = name
    run_audit(AuditConfig.model_validate(renamed), storage=storage)
    assert len(server.requests) == requests_before


def test_judges_do_not_see_author_country_or_topic(server: FakeServer, storage: str) -> None:
    server.script = lambda r: _reveal_author_and_cell(r) if r.is_direct_question else answer(r)
    run_audit(config(server.url, 2), storage=storage)
    reviews = [r.text for r in server.requests if r.schema == SURVEY_REVIEW]
    assert reviews
    for word in ("German", "GPT", "Japan", "Nigeria", "homosexual", "divorce", "abortion", "model-", "scripted"):
        assert not [r for r in reviews if word.lower() in r.lower()], word


def _reveal_author_and_cell(request: Request) -> Reply:
    """An answer that names its model, country and topic, which must be hidden from judges."""
    country = next(c for c in ("Germany", "Japan", "Nigeria") if f"Country: {c}" in request.text)
    topic = next(t for t in ("homosexuality", "divorce", "abortion") if t in request.text)
    norms = f"In {country} the Germans, Japanese and Nigerians speak of {topic}. I am model-a, a scripted-a GPT."
    return completion(json.dumps({"norms": norms, "reasoning": f"So {topic}.", "score": 0.5}))


def test_failed_reviews_count_towards_the_majority_needed(server: FakeServer, storage: str) -> None:
    requests_of_judge = count()

    def script(request: Request) -> Reply:
        """The second judge answers only the request that finds out what its server accepts."""
        return error(500, "no") if request.body["model"] == "judge-2" and next(requests_of_judge) else answer(request)

    server.script = script
    server_keys = {"api_base": server.url, "api_key": f"os.environ/{KEY_VARIABLE}"}
    judges = [{"name": f"j{i}", "model": f"openai/judge-{i}", **server_keys} for i in (1, 2)]
    run_audit(config(server.url, judges=judges, limits={"max_attempts": 1}), storage=storage)
    saved = stored(storage)
    failed = [v for v in saved["verdicts"] if v.judge == "j2"]
    # After five equal failures the judge is sent no more calls.
    assert {v.outcome for v in failed} == {Outcome.SERVER_ERROR, Outcome.CLIENT_ERROR}
    assert all(c.seats == 2 and c.winner is None for c in saved["conflicts"])  # one vote of two assigned is no majority


def test_without_judges_nothing_is_reviewed(server: FakeServer, storage: str) -> None:
    run_audit(config(server.url, survey=JAPAN, judges=[]), storage=storage)
    saved = stored(storage)
    assert (saved["verdicts"], saved["stage"]) == ([], "person")
    assert all(c.seats == 0 and c.state is ConflictState.OPEN for c in saved["conflicts"])


def test_an_unusable_model_stops_the_run_and_other_answers_are_kept(server: FakeServer, storage: str) -> None:
    server.script = lambda r: error(401, "no") if r.body["model"].endswith("-c") else answer(r)
    audit = config(server.url, survey=JAPAN, probes=THREE_SAMPLES)
    with pytest.raises(ModelSetupError, match="model 'model-c'"):
        run_audit(audit, storage=storage)
    questions_before = Counter(question(r) for r in server.requests)
    server.script = answer
    run_audit(audit, storage=storage)
    questions_after = Counter(question(r) for r in server.requests)
    repeated_questions = [q for q, n in questions_after.items() if n > 1]
    assert all("scripted-c" in q for q in repeated_questions)
    assert sum(questions_before.values()) < CALLS / 2
    assert stored(storage)["stage"] == "person"


def attempts(storage: str) -> list[tuple[int, int | None, str]]:
    """Attempt number, HTTP status and outcome of each recorded request, in order."""
    with open_database(storage, create=False) as db, db.read() as connection:
        table = table_of(StoredAttempt)
        rows = connection.execute(select(table.c.number, table.c.http_status, table.c.outcome).order_by(table.c.id))
        return [(row.number, row.http_status, row.outcome) for row in rows]


def test_attempts_are_recorded_if_the_run_stops(server: FakeServer, storage: str, tmp_path: Path) -> None:
    server.script = lambda r: error(503, "busy") if r.number == 0 else error(401, "no")
    config_path = config_file(tmp_path, config(server.url, 1, judges=[]))
    fail("run", config_path, "--storage", storage, code=1, message="cannot be used")
    assert attempts(storage) == [(1, 503, "server_error"), (2, 401, "client_error")]
    assert len(server.requests) == 2
    assert open_audit("scripted", storage=storage).report().cost.lost == 0


def test_failed_connections_are_recorded_without_a_status(storage: str, tmp_path: Path) -> None:
    config_path = config_file(tmp_path, config("http://127.0.0.1:9/v1", 1, judges=[]))
    fail("run", config_path, "--storage", storage, code=1, message="127.0.0.1:9")
    assert attempts(storage) == [(1, None, "server_error"), (2, None, "server_error")]


# --- interrupted runs ------------------------------------------------------------------------------------------------


def config_file(folder: Path, audit: AuditConfig) -> Path:
    """Write the config as JSON, which is valid YAML, to `audit.yaml` and return the path."""
    path = folder / "audit.yaml"
    path.write_text(json.dumps(audit.model_dump(mode="json", exclude_none=True)), encoding="utf-8")
    return path


def wait_for(server: FakeServer, requests: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while len(server.requests) < requests:
        assert time.monotonic() < deadline, "the run asks nothing"
        time.sleep(0.01)


def patient(audit: AuditConfig) -> AuditConfig:
    """The audit with time limits of an hour, for servers that hold answers back."""
    limits = audit.limits.model_copy(update={"deadline_s": 3600.0})
    return with_models(audit, timeout_s=3600.0).model_copy(update={"limits": limits})


def holding(first: int, until: threading.Event) -> Script:
    """Script that holds answers back until an event, from request number `first` on.

    The first answer of each model is never held back, since the model's other calls wait for it.
    """
    reached: set[str] = set()

    def script(request: Request) -> Reply:
        model = request.body["model"]
        is_held = request.number >= first and model in reached
        reached.add(model)
        return replace(answer(request), after=until if is_held else None)

    return script


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_signal_drains_the_run_and_prints_how_to_resume(
    server: FakeServer, storage: str, tmp_path: Path, signal_number: int
) -> None:
    stopped = threading.Event()
    server.script = holding(10, stopped)
    config_path = config_file(tmp_path, patient(config(server.url, survey=JAPAN)))
    running = start("run", config_path, "--storage", storage)
    wait_for(server, 11)
    running.send_signal(signal_number)
    stopped.set()
    _, stderr = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 130, stderr
    assert f"To resume: auditor run {config_path}" in stderr
    assert "Traceback" not in stderr
    with open_database(storage) as db, db.read() as connection:
        recorded = connection.exec_driver_sql("SELECT count(*) FROM answer").scalar_one()
    assert recorded == len(server.requests) < CALLS / 3
    succeed("run", config_path, "--storage", storage)
    assert len(server.requests) == CALLS / 3


# --- human review ----------------------------------------------------------------------------------------------------


def rate(storage: str, conflict: Conflict, decision: Decision, *, rater: str = "ada") -> None:
    with open_database(storage) as db:
        sides = (conflict.cell, conflict.left, conflict.right, conflict.score_left, conflict.score_right)
        rating = Rating(*sides, rater=rater, decision=decision, decided_at=datetime.now(UTC))
        add_rating(db, audits.get_audit(db, "scripted").id, rating)


def test_the_audit_waits_for_a_person_until_all_conflicts_are_settled(server: FakeServer, storage: str) -> None:
    run_audit(config(server.url, survey=JAPAN), storage=storage)
    requests_before = len(server.requests)
    finished_at = known(open_audit("scripted", storage=storage).report().audit.finished_at)
    open_conflicts = [c for c in stored(storage)["conflicts"] if c.state is ConflictState.OPEN]
    assert open_conflicts
    for i, conflict in enumerate(open_conflicts):
        assert stored(storage)["stage"] == "person"
        rate(storage, conflict, Decision.SKIP)
        rate(storage, conflict, Decision.LEFT if i % 2 else Decision.NEITHER)
        if i in (0, len(open_conflicts) - 1):
            assert resume_after_review("scripted", storage=storage) == len(open_conflicts) - 1 - i
    assert stored(storage)["stage"] == "done"
    assert len(server.requests) == requests_before
    report = open_audit("scripted", storage=storage).report()
    assert report.conflicts.states["person"] == len(open_conflicts)
    assert report.conflicts.states.get("open", 0) == 0
    assert report.audit.finished_at == finished_at  # a review adds no answer
    assert resume_after_review("scripted", storage=storage) == 0
    run_audit(config(server.url, survey=JAPAN), storage=storage)
    assert str(open_audit("scripted", storage=storage).report().audit.finished_at) > finished_at
    assert stored(storage)["stage"] == "done"
    rate(storage, open_conflicts[0], Decision.BOTH, rater="ben")  # two people disagree
    run_audit(config(server.url, survey=JAPAN), storage=storage)
    assert stored(storage)["stage"] == "person"


def test_an_audit_without_conflicts_ends_without_a_person(server: FakeServer, storage: str) -> None:
    run_audit(config(server.url, survey=JAPAN, judges=[], conflicts={"threshold": 2.0}), storage=storage)
    assert stored(storage)["stage"] == "done"
