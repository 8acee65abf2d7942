"""Direct scores and log-probability scores, with servers that support echo, letters only, or neither."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from auditor.domain import LogprobMeasure, Outcome
from auditor.reports.data.report_schema import Report
from auditor.reports.output import render_report
from auditor.run import open_audit, run_audit
from auditor.storage import results
from tests.models.test_logprobs import choice, echo, listed
from tests.support.audit_configs import config
from tests.support.document_figures import assert_report_shows_figures
from tests.support.fake_server import FakeServer, Reply, Request, answer, completion, error
from tests.support.known import known
from tests.support.stored_rows import load_stored

MODELS, EACH = 2, 10
COUNTRIES = ["Germany", "Japan", "Nigeria", "Brazil", "United States"]
TOPICS = ["homosexuality", "divorce", "abortion", "suicide", "euthanasia"]
BOTH: dict[str, Any] = {
    "survey": {"source": "wvs7-sample", "countries": COUNTRIES, "topics": TOPICS},
    "probes": {"direct": {"samples": 1}, "logprob": {}},
    "judges": [],
}
FEW_CELLS = {"source": "wvs7-sample", "countries": ["Germany", "Nigeria"], "topics": ["homosexuality", "divorce"]}
"""For answer letters, which take a request for each order of each pair of sentences."""


def stored_pairs(storage: str) -> list[Any]:
    """All recorded sentence pairs of the audit."""
    return load_stored(storage, results.load_sentence_pairs)


def with_echo(request: Request) -> Reply:
    """Reply as a server whose completions endpoint echoes prompt log-probabilities."""
    return echo(request) if request.path.endswith("/v1/completions") else answer(request)


def with_letters(request: Request) -> Reply:
    """Reply as a server without a completions endpoint whose chats have log-probabilities of letters."""
    if request.path.endswith("/v1/completions"):
        return error(404, "no such endpoint")
    if request.body.get("logprobs"):
        letters = {letter: -0.7 - 0.6 * request.draw(letter) for letter in "AB"}  # together more than `min_mass`
        return choice(letters)
    return answer(request)


def with_neither(request: Request) -> Reply:
    if request.path.endswith("/v1/completions") or request.body.get("logprobs"):
        return error(400, "not supported")
    return answer(request)


def run(server: FakeServer, storage: str, **changes: Any) -> Report:
    run_audit(config(server.url, MODELS, **{**BOTH, **changes}), storage=storage)
    return open_audit("scripted", storage=storage).report()


def test_direct_and_logprob_scores_are_compared_and_counted(server: FakeServer, storage: str) -> None:
    server.script = with_echo
    report = run(server, storage)
    assert_report_shows_figures(report, "answer", "worth", "methods", "where", "scatter", "regions", "places")
    assert [
        (pearson_by_method.method, pearson_by_method.model, pearson_by_method.n)
        for pearson_by_method in report.alignment
    ] == [(method, model, 25) for method in ("direct", "logprob") for model in ("model-a", "model-b")]
    r = {(a.method, a.model): a.pearson_r.value for a in report.alignment}
    for row in report.methods:
        assert row.measures == ["echo"]
        direct, logprob = r["direct", row.model], r["logprob", row.model]
        assert direct is not None
        assert logprob is not None
        low, value, high = row.difference.ci_low, row.difference.value, row.difference.ci_high
        assert value == pytest.approx(direct - logprob)
        assert known(low) < direct - logprob < known(high)
    coverage = report.coverage
    for rows, planned in ((coverage.models, 250), (coverage.countries, 100), (coverage.topics, 100)):
        logprob_rows = [row for row in rows if row.method == "logprob"]
        assert {(row.planned, row.ok, row.missing) for row in logprob_rows} == {(planned, planned, 0)}
        assert len(logprob_rows) == 500 / planned
    assert {(row.purpose, row.sums.calls) for row in report.cost.rows} == {("direct", 25), ("logprob", 50)}
    scores = [s for s in _scores(storage) if s.method == "logprob"]
    assert {s.measure for s in scores} == {LogprobMeasure.ECHO}
    for model in ("model-a", "model-b"):
        scaled = sorted((s.raw, s.score) for s in scores if s.model == model)
        assert (scaled[0][1], scaled[-1][1]) == (-1.0, 1.0)
    assert "Δr = " in render_report(report, "markdown")
    assert 'id="methods"' in render_report(report, "html")


def _scores(storage: str) -> list[Any]:
    return load_stored(storage, results.load_scores)


def test_without_echo_answer_letters_are_measured_and_named_and_not_again(server: FakeServer, storage: str) -> None:
    server.script = with_letters
    report = run(server, storage, survey=FEW_CELLS)
    assert [row.measures for row in report.methods] == [["choice"], ["choice"]]
    paths = Counter(r.path for r in server.requests)
    assert paths["/v1/completions"] == 2 * MODELS  # each model tries the endpoint once in each format
    assert paths["/v1/chat/completions"] == MODELS * 4 * (1 + 2 * EACH)
    assert run(server, storage, survey=FEW_CELLS).methods == report.methods
    assert len(server.requests) == sum(paths.values())


def test_without_echo_the_prompt_logprobs_of_vllm_are_measured_and_named(server: FakeServer, storage: str) -> None:
    server.script = lambda request: (
        error(400, "echo is not supported")
        if "echo" in request.body
        else listed(request)
        if request.path.endswith("/v1/completions")
        else answer(request)
    )
    report = run(server, storage, survey=FEW_CELLS)
    assert [row.measures for row in report.methods] == [["prompt_logprobs"], ["prompt_logprobs"]]
    assert {s.measure for s in _scores(storage) if s.method == "logprob"} == {LogprobMeasure.PROMPT}
    by_field = {(s.model, s.cell): s.raw for s in _scores(storage) if s.method == "logprob"}
    server.script = with_echo
    run(server, storage, name="echoed", survey=FEW_CELLS)
    echoed = load_stored(storage, results.load_scores, name="echoed")
    assert {(s.model, s.cell): s.raw for s in echoed if s.method == "logprob"} == pytest.approx(by_field)


def test_without_any_logprob_endpoint_there_are_no_scores(server: FakeServer, storage: str) -> None:
    server.script = with_neither
    report = run(server, storage, survey=FEW_CELLS)
    pairs = stored_pairs(storage)
    assert {(c.outcome, c.difference, c.measure) for c in pairs} == {(Outcome.NOT_MEASURABLE, None, None)}
    assert len(pairs) == MODELS * 4 * EACH
    assert {(s.score, s.raw) for s in _scores(storage) if s.method == "logprob"} == {(None, None)}
    [total] = [row for row in report.coverage.total if row.method == "logprob"]
    assert (total.ok, total.losses, total.missing) == (0, {"not_measurable": 80}, 0)
    assert all(row.difference.value is None and row.difference.reason for row in report.methods)
    assert {a.pearson_r.value for a in report.alignment if a.method == "logprob"} == {None}
    measuring_requests = [r for r in server.requests if r.path.endswith("/v1/completions") or r.body.get("logprobs")]
    assert len(measuring_requests) == 3 * MODELS
    for form in ("markdown", "html"):
        assert "cannot be compared: the model’s log-probabilities cannot be measured" in re.sub(
            "&#x27;|&#39;|'", "’", render_report(report, form)
        )


def test_a_failure_of_one_comparison_costs_its_cell_its_score_and_no_more(server: FakeServer, storage: str) -> None:
    server.script = lambda request: (
        error(500, "oops") if "Nigeria, divorce" in str(request.body.get("prompt")) else with_echo(request)
    )
    report = run(server, storage, survey=FEW_CELLS, limits={"max_attempts": 1})
    failed_pairs = [c for c in stored_pairs(storage) if c.outcome is not Outcome.OK]
    assert {(c.cell.country, c.cell.topic, c.outcome, c.difference) for c in failed_pairs} == {
        ("Nigeria", "divorce", Outcome.SERVER_ERROR, None)
    }
    assert len(failed_pairs) == MODELS * EACH / 2  # one of the two sentences of each pair fails
    unscored_cells = [s for s in _scores(storage) if s.score is None]
    assert [(s.cell.country, s.cell.topic, s.n_ok) for s in unscored_cells] == [("Nigeria", "divorce", 5)] * MODELS
    assert [a.n for a in report.alignment if a.method == "logprob"] == [3, 3]


def test_logprob_alone_needs_a_survey_and_no_judge(server: FakeServer, storage: str) -> None:
    server.script = with_echo
    report = run(server, storage, survey=FEW_CELLS, probes={"logprob": {"method": "echo"}}, judges="peers")
    assert [a.method for a in report.alignment] == ["logprob", "logprob"]
    assert report.methods == []
    assert report.conflicts.total == 0
    assert not [r for r in server.requests if r.path.endswith("/chat/completions")]


def test_a_refused_letter_is_a_refusal(server: FakeServer, storage: str) -> None:
    server.script = lambda request: (
        completion(None, finish="content_filter")
        if request.body.get("logprobs") and "Nigeria" in request.text
        else with_letters(request)
    )
    run(server, storage, survey=FEW_CELLS)
    outcomes = {(c.cell.country, c.outcome) for c in stored_pairs(storage)}
    assert {country for country, outcome in outcomes if outcome is Outcome.REFUSED} == {"Nigeria"}
    assert len(outcomes) == 2
