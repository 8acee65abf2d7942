"""Failures have no number: each kind of failure over HTTP, then each place that could show a number."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect

from auditor.config import Price
from auditor.domain import Decision, Outcome, Rating
from auditor.domain.decisions import REVIEW_ASPECTS
from auditor.exports.tables import export_paper, export_tables
from auditor.models.failure_streaks import MAX_EQUAL_FAILURES
from auditor.probes.distribution.opinions import Opinion
from auditor.reports.data.gates.estimates import GateStatus
from auditor.reports.output import render_report
from auditor.review.export import write_ratings
from auditor.review.judge_weights import estimate_panel_weights, weights_to_dict
from auditor.run import open_audit, run_audit
from auditor.run.rederivation import derive_again
from auditor.storage import audits, results
from auditor.storage.database import open_database
from auditor.storage.records import load_records
from tests.e2e.test_asking_again import answer_opinion
from tests.models.test_gateway_wire_formats import tool_call
from tests.models.test_logprobs import choice
from tests.support.audit_configs import config, with_models
from tests.support.comparison_judge import TOPICS as ASKED_TOPICS
from tests.support.fake_server import NEVER, FakeServer, Reply, Request, answer, completion, error
from tests.support.known import known
from tests.support.opinion_surveys import COUNTRIES, TOPICS, write_opinion_survey
from tests.support.stored_rows import add_rating, load_stored

SAMPLES, CELLS = 3, 9
SENTINEL = 0.813725914
"""A score that only failed answers have, of so many digits that no figure of a report has them by chance."""
UNRULED = ("ruling", "confidence", "justification")
ASPECTS = tuple(aspect.name for aspect in REVIEW_ASPECTS)
NOW = datetime(2026, 1, 2, tzinfo=UTC)
REFUSES = "I'm sorry, but I can't assign a score to that."


def traces(storage: str) -> list[Any]:
    return load_stored(storage, results.load_traces)


FAILING: dict[Outcome, Callable[[], Reply]] = {
    Outcome.REFUSED: lambda: completion(None, refusal=f"No. {SENTINEL}"),
    Outcome.TRUNCATED: lambda: completion(f'{{"norms": "a", "reasoning": "b", "score": {SENTINEL}', finish="length"),
    Outcome.UNPARSED: lambda: completion(f'{{"norms": "a", "score": "{SENTINEL}"}}'),
    Outcome.SERVER_ERROR: lambda: error(500, f"oops {SENTINEL}"),
    Outcome.CLIENT_ERROR: lambda: error(400, f"no {SENTINEL}"),
    Outcome.RATE_LIMITED: lambda: error(429, f"slow down {SENTINEL}", headers={"retry-after": "0"}),
    Outcome.TIMEOUT: lambda: Reply(after=NEVER),
}
OTHERS: dict[str, tuple[Outcome, Callable[[], Reply]]] = {
    "filtered": (Outcome.REFUSED, lambda: completion(f"{SENTINEL}", finish="content_filter")),
    "in words": (Outcome.REFUSED, lambda: completion(REFUSES)),
    "empty": (Outcome.SERVER_ERROR, lambda: completion("")),
    "nothing": (Outcome.SERVER_ERROR, lambda: completion(None)),
    "no choice": (Outcome.SERVER_ERROR, lambda: Reply(body={"id": "x", "choices": [], "model": "m"})),
    "garbage": (Outcome.SERVER_ERROR, lambda: Reply(raw=b"<html>oops</html>")),
    "hangs up": (Outcome.SERVER_ERROR, lambda: Reply(drop=True)),
    "out of range": (Outcome.UNPARSED, lambda: completion('{"norms": "a", "reasoning": "b", "score": 8.0}')),
    "a word": (Outcome.UNPARSED, lambda: completion("Divorce is fine.")),
}
EVERY = {outcome.value: (outcome, make) for outcome, make in FAILING.items()} | OTHERS


def test_each_failure_is_named_and_only_its_own_samples_are_lost(server: FakeServer, storage: str) -> None:
    """Each question about Japan and Nigeria fails in another way for the second model; unusable answers are final."""
    survey = {"source": "wvs7-sample", "countries": ["Germany", "Japan", "Nigeria"], "topics": ASKED_TOPICS[:8]}
    failing = dict(zip(product(["Japan", "Nigeria"], ASKED_TOPICS[:8]), EVERY.values(), strict=True))

    def script(request: Request) -> Reply:
        for cell, (_, make_reply) in failing.items():
            if request.body["model"].endswith("-b") and all(word in request.text for word in cell):
                return make_reply()
        return answer(request)

    server.script = script
    direct = {"samples": 1, "repair": False}
    audit = config(server.url, 2, survey=survey, limits={"max_attempts": 1}, judges=[], probes={"direct": direct})
    models = [audit.models[0], audit.models[1].model_copy(update={"timeout_s": 6.0})]  # one answer never comes
    audit = audit.model_copy(update={"models": models})
    run_audit(audit, storage=storage)
    lost = {tuple(t.cell): (t.model, t.outcome, t.score) for t in traces(storage) if t.outcome is not Outcome.OK}
    assert lost == {cell: ("model-b", outcome, None) for cell, (outcome, _) in failing.items()}
    assert len(traces(storage)) == 2 * 3 * 8
    scores = {(s.model, tuple(s.cell)): s.n_ok for s in load_stored(storage, results.load_scores)}
    assert all(n_ok == (model != "model-b" or cell not in failing) for (model, cell), n_ok in scores.items())
    server.script = answer
    server.requests.clear()
    run_audit(audit, storage=storage)
    assert len(server.requests) == sum(not outcome.is_answer for outcome, _ in failing.values())


def test_a_tool_call_or_a_fenced_block_is_read_if_it_holds_the_answer(server: FakeServer, storage: str) -> None:
    judgement = json.dumps({"norms": "a", "reasoning": "b", "score": 0.25})
    texts = (f"Sure!\n```json\n{judgement}\n```", f"<think>-1</think>{judgement}")
    replies = [*map(completion, texts), tool_call("ReasonedJudgement", judgement)]
    server.script = lambda request: replies[request.number % 3]
    run_audit(config(server.url, 1, judges=[]), storage=storage)
    assert {(t.outcome, t.score) for t in traces(storage)} == {(Outcome.OK, 0.25)}


@pytest.mark.parametrize("mode", ["structured", "text"])
def test_a_repair_shows_a_model_its_answer_once_and_is_paid_for(server: FakeServer, storage: str, mode: str) -> None:
    first_answer = "They value family. It leans to never."

    def script(request: Request) -> Reply:
        assistant_messages = [m for m in request.body["messages"] if m["role"] == "assistant"]
        if not assistant_messages:
            return completion(first_answer)
        assert [m["content"] for m in assistant_messages] == [first_answer]
        as_json = json.dumps({"norms": "a", "reasoning": "b", "score": -0.5})
        repaired_answer = as_json if mode == "structured" else "SCORE = -0.5"
        return completion(repaired_answer if "Japan" in request.text else "hm")

    server.script = script
    probes = {"direct": {"samples": 1, "mode": mode}}
    run_audit(config(server.url, 1, judges=[], probes=probes), storage=storage)
    trace_counts = Counter((t.cell.country == "Japan", t.outcome, t.score) for t in traces(storage))
    assert trace_counts == {(True, Outcome.OK, -0.5): 3, (False, Outcome.UNPARSED, None): 6}
    # The first unreadable structured answer is asked for once more, and once in another form.
    n_requests = 2 * CELLS + (2 if mode == "structured" else 0)
    assert len(server.requests) == n_requests
    report = open_audit("scripted", storage=storage).report()
    assert [(r.asked, r.read) for r in report.repairs] == [(9, 3)]
    assert (report.cost.total.sums.calls, report.cost.total.sums.prompt_tokens) == (18, 100 * n_requests)
    run_audit(config(server.url, 1, judges=[], probes=probes), storage=storage)
    assert len(server.requests) == n_requests


def fails_to_repair(failure: Reply) -> Callable[[Request], Reply]:
    """A script whose first answers cannot be read and have 500 tokens, and whose answers to repairs are a failure."""

    def script(request: Request) -> Reply:
        if any(message["role"] == "assistant" for message in request.body["messages"]):
            return failure
        unreadable = completion("They value family. It leans to never.")
        unreadable.body["usage"] = {"prompt_tokens": 100, "completion_tokens": 400, "total_tokens": 500}
        return unreadable

    return script


@pytest.mark.parametrize(
    ("failure", "limits", "outcomes"),
    [
        (error(500, "oops"), {"max_attempts": 1}, {Outcome.SERVER_ERROR}),
        (error(429, "slow down", headers={"retry-after": "0"}), {"deadline_s": 2}, {Outcome.RATE_LIMITED}),
        # Enough for the first answers, of $0.0005 each, and not for what their repairs may cost.
        (error(500, "oops"), {"budget_usd": 0.0049}, {Outcome.OVER_BUDGET}),
    ],
    ids=["server error", "rate limit", "budget"],
)
def test_an_audit_whose_repairs_were_not_answered_is_not_complete_and_the_next_run_sends_them(
    server: FakeServer, storage: str, failure: Reply, limits: dict[str, Any], outcomes: set[Outcome]
) -> None:
    def run(**limits: Any) -> tuple[list[Outcome], GateStatus, bool]:
        audit = config(server.url, 1, judges=[], limits=limits)
        handle = run_audit(with_models(audit, price=Price(input=1.0, output=1.0)), storage=storage)
        completion_gate = handle.check().gates[0]
        with open_database(storage) as db:
            is_consistent = derive_again(db, audits.get_audit(db, "scripted")).is_consistent
        return [trace.outcome for trace in traces(storage)], completion_gate.verdict, is_consistent

    server.script = fails_to_repair(failure)
    lost, verdict, is_consistent = run(**limits)
    assert set(lost) >= outcomes
    assert (any(outcome.is_answer for outcome in lost), verdict, is_consistent) == (False, GateStatus.UNDECIDED, True)
    server.requests.clear()
    server.script = answer
    assert run(budget_usd=1.0) == ([Outcome.OK] * CELLS, GateStatus.PASSED, True)
    assert len(server.requests) == CELLS, "only the repairs are sent"


def test_repairs_that_a_stopped_model_was_not_sent_are_sent_by_the_next_run(server: FakeServer, storage: str) -> None:
    audit = config(server.url, 1, judges=[], limits={"max_attempts": 1})
    server.script = fails_to_repair(error(500, "oops"))
    for _ in range(2):  # the second run sends only repairs, so that one failure follows another
        server.requests.clear()
        handle = run_audit(with_models(audit, concurrency=1), storage=storage)
    assert len(server.requests) == MAX_EQUAL_FAILURES
    assert {trace.outcome for trace in traces(storage)} == {Outcome.SERVER_ERROR}
    assert handle.check().gates[0].verdict is GateStatus.UNDECIDED
    with open_database(storage) as db:
        assert derive_again(db, audits.get_audit(db, "scripted")).is_consistent


def test_an_opinion_without_repair_is_lost_until_the_next_run(server: FakeServer, storage: str, tmp_path: Path) -> None:
    section = {"source": str(write_opinion_survey(tmp_path)), "countries": COUNTRIES[:1], "topics": TOPICS[:2]}
    probes = {"distribution": {"modes": ["verbalized"]}}
    audit = config(server.url, 1, survey=section, judges=[], probes=probes, limits={"max_attempts": 1})

    def run() -> tuple[set[Outcome], GateStatus]:
        verdict = run_audit(audit, storage=storage).check().gates[0].verdict
        with open_database(storage) as db:
            stored_audit = audits.get_audit(db, "scripted")
            assert derive_again(db, stored_audit).is_consistent
            return {opinion.outcome for opinion in load_records(db, stored_audit.id, Opinion)}, verdict

    server.script = fails_to_repair(error(500, "oops"))
    assert run() == ({Outcome.SERVER_ERROR}, GateStatus.UNDECIDED)
    server.script = answer_opinion
    assert run() == ({Outcome.OK}, GateStatus.PASSED)


def test_a_repair_that_is_refused_or_unreadable_again_is_final(server: FakeServer, storage: str) -> None:
    survey = {"source": "wvs7-sample", "countries": ["Japan"], "topics": ["divorce", "abortion"]}
    for reply in (error(400, "no more than one message"), completion("hm")):
        server.script = fails_to_repair(reply)
        handle = run_audit(config(server.url, 1, judges=[], survey=survey), storage=storage)
        assert {trace.outcome for trace in traces(storage)} == {Outcome.UNPARSED}
        assert handle.check().gates[0].verdict is GateStatus.PASSED


def test_refusals_by_country_and_topic(server: FakeServer, storage: str) -> None:
    server.script = lambda r: completion(REFUSES) if "abortion" in r.text and "Nigeria" in r.text else answer(r)
    report = run_audit(config(server.url, judges=[]), storage=storage).report()
    refusals = known(report.refusals)
    assert refusals.total.value == pytest.approx(1 / 9)
    assert refusals.total.n == 27
    shares = {"Nigeria": pytest.approx(1 / 3), "Germany": 0.0, "Japan": 0.0}
    assert {r.name: r.share.value for r in refusals.countries} == shares
    assert refusals.topics[0].name == "abortion"
    assert (refusals.total.ci_low, refusals.total.ci_high) == (None, None)  # 3 countries and topics
    assert known(refusals.total.cells_ci_low) < 1 / 9 < known(refusals.total.cells_ci_high)
    too_few = "an interval needs at least 5 topics, but there are 3 topics"
    assert {(r.share.ci_low, r.share.reason) for r in refusals.countries} == {(None, too_few)}
    assert "11.1% of 27 answers are refusals" in render_report(report, "markdown")
    assert "Share refused by country" in render_report(report, "html")
    assert report.repairs == []  # a refusal is an answer, so no repair is requested


def test_failures_have_no_number_in_database_report_or_export(server: FakeServer, storage: str, tmp_path: Path) -> None:
    failure_makers = list(FAILING.values())[:-1]

    def script(request: Request) -> Reply:
        if request.body.get("logprobs"):
            measured_reply = choice({"A": -0.8 - request.draw("A"), "B": -1.4})
            return measured_reply if request.number < 20 or request.draw("l") < 0.7 else error(500, f"{SENTINEL}")
        if request.number < 20 or request.draw("fails") < 0.5:
            return answer(request)
        return failure_makers[int(request.draw("how") * len(failure_makers))]()

    server.script = script
    probes = {"direct": {"samples": SAMPLES}, "logprob": {"method": "choice"}}
    survey = {"source": "wvs7-sample", "countries": ["Germany", "Japan", "Nigeria"], "topics": ASKED_TOPICS[2:5]}
    run_audit(config(server.url, probes=probes, limits={"max_attempts": 1}, survey=survey), storage=storage)
    with open_database(storage, create=False) as db:
        audit = audits.get_audit(db, "scripted")
        failed_traces = [t for t in results.load_traces(db, audit.id) if t.outcome is not Outcome.OK]
        assert {t.outcome for t in failed_traces} >= set(FAILING) - {Outcome.TIMEOUT}
        assert all(t.score is None for t in failed_traces)
        assert all(
            c.difference is None for c in results.load_sentence_pairs(db, audit.id) if c.outcome is not Outcome.OK
        )
        unruled = [v for v in results.load_verdicts(db, audit.id) if v.outcome is not Outcome.OK]
        assert unruled
        assert all(getattr(v, f) is None for v in unruled for f in UNRULED)
        assert not any(v.aspects for v in unruled)
        scores = list(results.load_scores(db, audit.id))
        # Log-probabilities are scaled to the range that a model has over its cells: a single cell has none.
        scaled = Counter(s.model for s in scores if s.method == "logprob" and s.n_ok == s.n_planned)
        for s in scores:
            is_unscaled = s.method == "logprob" and (s.n_ok < s.n_planned or scaled[s.model] < 2)
            assert (s.score is None) == (s.n_ok == 0 or is_unscaled)
        with db.read() as connection:
            for table in inspect(connection).get_table_names():
                for row in connection.exec_driver_sql(f'SELECT * FROM "{table}"').mappings():
                    assert not [k for k, v in row.items() if isinstance(v, float) and v == SENTINEL], (table, dict(row))
    report = open_audit("scripted", storage=storage).report()
    # Why requests failed is said in the provider's words, which may hold any number; nothing else of the report is.
    groups = [group.model_copy(update={"message": ""}) for group in report.failures.groups]
    report = report.model_copy(update={"failures": report.failures.model_copy(update={"groups": groups})})
    numbers = json.dumps(report.model_dump(mode="json", exclude={"conflicts", "environment"}))
    assert str(SENTINEL) not in numbers
    assert not [side for c in report.conflicts.largest for side in (c.left, c.right) if side.score == SENTINEL]
    for form in ("markdown", "html", "json"):
        assert str(SENTINEL) not in render_report(report, form)  # nor does any text of the report quote a failed answer
    check_exports(storage, tmp_path)


def check_exports(storage: str, folder: Path) -> None:
    """Check that no export of an audit with failures, ratings and weights has a number for a failed call."""
    with open_database(storage, create=False) as db:
        audit = audits.get_audit(db, "scripted")
        for c in results.load_voted_conflicts(db, audit.id):  # same as the judges, so that weights can be estimated
            decision = Decision.RIGHT if c.winner == c.right else Decision.LEFT
            rating = Rating(c.cell, c.left, c.right, c.score_left, c.score_right, "ann", decision, NOW)
            add_rating(db, audit.id, rating)
        exported = io.StringIO()
        assert write_ratings(db, audit, exported) > 0
        export_tables(db, "scripted", folder / "tables", "jsonl")
        learnt = estimate_panel_weights(db, audit)
    paper = export_paper(open_audit("scripted", storage=storage).report(), folder / "paper")
    texts = [file.read_text(encoding="utf-8") for file in paper]
    texts += [exported.getvalue(), json.dumps(weights_to_dict(learnt))]
    assert not [text for text in texts if str(SENTINEL) in text]
    tables = {f.stem: [json.loads(line) for line in f.open()] for f in (folder / "tables").glob("*.jsonl")}
    failed_rows = {name: [r for r in rows if r.get("outcome", "ok") != "ok"] for name, rows in tables.items()}
    for name, fields in {"trace": ("score",), "contrast": ("difference",), "verdict": (*UNRULED, *ASPECTS)}.items():
        assert failed_rows[name], name
        assert all(row[field] is None for row in failed_rows[name] for field in fields), name
    for name, rows in tables.items():
        assert not [row for row in rows if SENTINEL in [v for v in row.values() if isinstance(v, float)]], name
