"""Judge panels against a scripted server: model families, adaptive panels, repeated requests, custom prompts."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from auditor.config import AuditConfig, load_config
from auditor.domain import Conflict, Outcome, Ruling, Verdict
from auditor.domain.decisions import SURVEY_REVIEW
from auditor.errors import ConfigError
from auditor.experiments.judges import bias
from auditor.experiments.stored_audit import ExperimentContext
from auditor.reports.data.audit_status import load_audit_status
from auditor.reports.data.verification import verify_audit
from auditor.reports.output import render_report
from auditor.run import open_audit, run_audit
from auditor.storage import audits, results
from auditor.storage.database import open_database
from tests.e2e.test_run import JAPAN
from tests.support.audit_configs import config
from tests.support.fake_server import FakeServer, Reply, Request, answer, completion, error
from tests.support.known import known


def stored(storage: str) -> tuple[list[Verdict], list[Conflict]]:
    with open_database(storage, create=False) as db:
        audit = audits.get_audit(db, "scripted")
        return results.load_verdicts(db, audit.id), results.load_conflicts(db, audit.id)


def majorities(verdicts: list[Verdict], n_assigned: int) -> dict[object, Ruling | None]:
    """The ruling of more than half of the assigned judges by trace; None without such a majority."""
    rulings_by_trace: dict[object, list[Ruling | None]] = {}
    for v in verdicts:
        rulings_by_trace.setdefault((v.model, v.cell, v.sample), []).append(v.ruling)
    return {
        trace: next((r for r in Ruling if 2 * rulings.count(r) > n_assigned), None)
        for trace, rulings in rulings_by_trace.items()
    }


def fail_sometimes(request: Request) -> Reply:
    if request.schema == SURVEY_REVIEW and request.draw("mood") < 0.1:
        return error(400, "no")
    return answer(request)


def assert_settles_alike(
    server: FakeServer, folder: Path, survey: dict[str, Any], n_assigned: int, panel: dict[str, Any]
) -> tuple[AuditConfig, str, list[Verdict], list[Verdict]]:
    """Check that an adaptive panel of six models settles what all judges do, and asks no more.

    Returns its audit and database, its verdicts, and those of all judges.
    """
    server.script = fail_sometimes
    full_storage, adaptive_storage = (f"sqlite:///{folder / name}.db" for name in ("full", "lean"))
    run_audit(config(server.url, 6, survey=survey, panel=panel), storage=full_storage)
    adaptive = config(server.url, 6, survey=survey, panel={**panel, "adaptive": True})
    run_audit(adaptive, storage=adaptive_storage)
    (all_verdicts, all_conflicts), (few_verdicts, few_conflicts) = stored(full_storage), stored(adaptive_storage)
    assert len(few_verdicts) <= len(all_verdicts)
    assert majorities(few_verdicts, n_assigned) == majorities(all_verdicts, n_assigned)
    outcome = {c.id: (c.winner, c.state, c.seats) for c in all_conflicts}
    assert {c.id: (c.winner, c.state, c.seats) for c in few_conflicts} == outcome
    return adaptive, adaptive_storage, few_verdicts, all_verdicts


@pytest.mark.parametrize(
    "panel", [{}, {"vote": "weighted", "weights": {f"model-{x}": 1 + 0.3 * i for i, x in enumerate("abcdef")}}]
)
def test_adaptive_panels_settle_alike_and_ask_less(server: FakeServer, tmp_path: Path, panel: dict[str, Any]) -> None:
    survey = {"source": "wvs7-sample", "countries": ["Germany"], "topics": ["homosexuality", "divorce"]}
    audit, storage, few_verdicts, all_verdicts = assert_settles_alike(server, tmp_path, survey, 5, panel)
    assert len(few_verdicts) < len(all_verdicts)
    verdict_by_trace = {(v.judge, v.model, v.cell, v.sample): v for v in all_verdicts}
    for v in few_verdicts:
        assert v.turn == verdict_by_trace[v.judge, v.model, v.cell, v.sample].turn
        assert v.always == (v.turn < 3)
    with open_database(storage, create=False) as db:
        status = load_audit_status(db, audits.get_audit(db, "scripted"))
        assert verify_audit(db, "scripted").is_consistent
    [reviews] = [r for r in open_audit("scripted", storage=storage).report().coverage.total if r.stage == "review"]
    assert status["verdicts_planned"] == reviews.planned == len(few_verdicts)
    requests_before = len(server.requests)
    run_audit(audit, storage=storage)
    assert len(server.requests) - requests_before <= sum(v.outcome is Outcome.CLIENT_ERROR for v in few_verdicts)


def test_adaptive_changes_no_outcome_of_incomplete_panels(server: FakeServer, tmp_path: Path) -> None:
    """Of 18 panels of three, 0 to 3 need no third judge, by the server's draws: whether fewer are asked is chance."""
    _, _, few_verdicts, _ = assert_settles_alike(server, tmp_path, JAPAN, 3, {"judges_per_trace": 3})
    assert Counter(v.always for v in few_verdicts)[True] == 3 * 6 * 2


def test_no_judge_is_of_the_authors_family(server: FakeServer, storage: str) -> None:
    audit = config(server.url, models=4, survey=JAPAN, panel={"exclude_family": True})
    family_by_letter = dict(zip("abcd", ("one", "one", "two", "two"), strict=True))
    models = [{**m.model_dump(), "family": family_by_letter[m.name[-1]]} for m in audit.models]
    run_audit(AuditConfig.model_validate(audit.model_dump() | {"models": models}), storage=storage)
    verdicts, conflicts = stored(storage)
    assert verdicts
    assert all(family_by_letter[v.judge[-1]] != family_by_letter[v.model[-1]] for v in verdicts)
    assert {c.seats for c in conflicts if family_by_letter[c.left[-1]] == family_by_letter[c.right[-1]]} == {2}
    assert {c.seats for c in conflicts if family_by_letter[c.left[-1]] != family_by_letter[c.right[-1]]} == {0}


def test_a_model_without_a_judge_outside_its_family_is_an_error_before_the_first_call() -> None:
    audit = config("http://localhost", models=2, judges="peers")
    models = [{**m.model_dump(), "family": "one"} for m in audit.models]
    with pytest.raises(ValueError, match=r"model 'model-a' has no judge: .*nor one of its family \(one\)"):
        AuditConfig.model_validate(audit.model_dump() | {"models": models, "panel": {"exclude_family": True}})


def test_a_long_justification_is_asked_for_once_more(server: FakeServer, storage: str) -> None:
    long_justification = " ".join(["word"] * 80)

    def script(request: Request) -> Reply:
        if request.schema != SURVEY_REVIEW:
            return answer(request)
        review = json.loads(answer(request).body["choices"][0]["message"]["content"])
        is_second_request = len(request.body["messages"]) == 4
        stays_long = request.body["model"].endswith("-b")
        justification = "Short." if is_second_request and not stays_long else long_justification
        return completion(json.dumps({**review, "verdict": "VALID", "justification": justification}))

    server.script = script
    run_audit(config(server.url, survey=JAPAN), storage=storage)
    verdicts, _ = stored(storage)
    second_requests = [r for r in server.requests if r.schema == SURVEY_REVIEW and len(r.body["messages"]) == 4]
    assert len(second_requests) == len(verdicts)
    for v in verdicts:
        assert v.shortened == (v.judge == "model-b")
        assert len(known(v.justification).split()) <= 61
    requests_before = len(server.requests)
    run_audit(config(server.url, survey=JAPAN), storage=storage)
    assert len(server.requests) == requests_before


def test_long_traces_are_shortened_for_judges_and_counted_in_the_report(server: FakeServer, storage: str) -> None:
    def script(request: Request) -> Reply:
        answered = json.loads(answer(request).body["choices"][0]["message"]["content"])
        if request.is_direct_question and request.body["model"].endswith("-a"):
            answered["norms"] = f"BEGINNING {'Germany is far. ' * 10_000} END"
        if request.schema == SURVEY_REVIEW:
            answered["justification"] = "word " * 5_000
        if request.schema == "Restated":
            answered["text"] = "Germany again. " * 2_000
        return completion(json.dumps(answered))

    server.script = script
    review = {"max_trace_chars": 2_000, "guess": True, "rewrite": "neutral", "rewriter": "model-c"}
    survey = JAPAN | {"countries": ["Germany"]}
    run_audit(config(server.url, survey=survey, probes={"direct": {"samples": 1}, "review": review}), storage=storage)
    bias(ExperimentContext(storage), "scripted", 5)
    judge_requests = [r for r in server.requests if not r.is_direct_question]
    assert {r.schema for r in judge_requests} >= {SURVEY_REVIEW, "BlindGuess", "Restated", "SidePreference"}
    for request in judge_requests:
        assert max(len(m["content"]) for m in request.body["messages"]) < 2 * 2_000 + 2_000
        assert "Germany" not in request.body["messages"][1]["content"].split("Countries:")[0]
    reviews = [r.text for r in judge_requests if r.schema == SURVEY_REVIEW]
    assert any("BEGINNING" in text and "END" in text and "characters left out …]" in text for text in reviews)
    report = open_audit("scripted", storage=storage).report()
    assert report.coverage.shortened_traces == {"model-a": 3}
    sentence = "only the beginning and the end of 3 traces longer than `probes.review.max_trace_chars` (model-a: 3)."
    assert sentence in " ".join(render_report(report, "markdown").replace("\\", "").split())
    assert "of 3 traces longer than <code>probes.review.max_trace_chars</code>" in render_report(report, "html")


STERN_PROMPT = """---
id: own
version: 1
purpose: A prompt of one's own.
fields: [trace, score, fence]
---
[system]
You are a stern reviewer.
[user]
{fence}
{trace}
{fence}
{score}
"""


def write(folder: Path, url: str, prompt: str) -> Path:
    """Write a config with two judges, one of which has the prompt of its own, and return the path."""
    (folder / "stern.md").write_text(prompt, encoding="utf-8")
    audit = config(url, survey=JAPAN).model_dump(mode="json", exclude_none=True)
    judges = [
        {**audit["models"][0], "name": "stern", "model": "openai/stern", "review_prompt": "stern.md"},
        {**audit["models"][0], "name": "mild", "model": "openai/mild", "system": "Be mild."},
    ]
    path = folder / "audit.yaml"
    path.write_text(json.dumps(audit | {"judges": judges}), encoding="utf-8")
    return path


def test_each_judge_has_its_own_model_and_prompt(server: FakeServer, storage: str, tmp_path: Path) -> None:
    run_audit(write(tmp_path, server.url, STERN_PROMPT), storage=storage)
    verdicts, _ = stored(storage)
    assert {v.judge for v in verdicts} == {"stern", "mild"}
    reviews = [r for r in server.requests if r.schema == SURVEY_REVIEW]
    assert {r.body["messages"][0]["content"][:24] for r in reviews if r.body["model"] == "stern"} == {
        "You are a stern reviewer"
    }
    assert all(r.text.startswith("Be mild.") for r in reviews if r.body["model"] == "mild")
    # Answers depend on the prompt, so a changed prompt repeats the requests of that judge only.
    requests_before = len(server.requests)
    run_audit(write(tmp_path, server.url, STERN_PROMPT.replace("stern", "severe")), storage=storage)
    assert {r.body["model"] for r in server.requests[requests_before:]} == {"stern"}


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        (STERN_PROMPT.replace("{score}", "{country}").replace("score,", "country,"), "the field 'country' is unknown"),
        (STERN_PROMPT.replace("{score}", "").replace("score, ", ""), "the field 'score' is missing"),
        ("no front matter", "front matter"),
    ],
)
def test_a_prompt_that_cannot_be_used_is_an_error_before_the_first_call(
    server: FakeServer, storage: str, tmp_path: Path, prompt: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        run_audit(write(tmp_path, server.url, prompt), storage=storage)
    assert not server.requests


def test_a_prompt_path_is_relative_to_the_config(tmp_path: Path) -> None:
    judges = load_config(write(tmp_path, "http://localhost", STERN_PROMPT)).judge_models
    assert judges[0].review_prompt == str(tmp_path / "stern.md")


def test_an_incomplete_panel_has_equal_shares_and_loses_nothing(server: FakeServer, storage: str) -> None:
    audit = config(server.url, 5, panel={"judges_per_trace": 2}, probes={"direct": {"samples": 2}}, survey=JAPAN)
    report = run_audit(audit, storage=storage).report()
    verdicts, conflicts = stored(storage)
    assert set(Counter((v.judge, v.model) for v in verdicts).values()) == {3 * 2 * 2 // 4}
    assert [(r.planned, r.ok, r.missing) for r in report.coverage.judges] == [(12, 12, 0)] * 5
    [reviews] = [r for r in report.coverage.total if r.stage == "review"]
    assert (reviews.planned, reviews.ok, reviews.missing) == (60, 60, 0)
    assert any("Each trace was assigned to 2 judges" in text for text in report.panel.certificate)
    assert report.panel.seats == 60
    assert report.coverage.shortened_traces == {}
    assert not any("characters left out" in r.text for r in server.requests)
    judges_by_cell: dict[tuple[str, object], set[str]] = defaultdict(set)
    for v in verdicts:
        judges_by_cell[v.model, v.cell].add(v.judge)
    assert conflicts
    assert all(c.seats == len(judges_by_cell[c.left, c.cell] & judges_by_cell[c.right, c.cell]) for c in conflicts)
    requests_before = len(server.requests)
    run_audit(audit, storage=storage)
    assert len(server.requests) == requests_before
