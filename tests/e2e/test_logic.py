"""The probe `logic` against scripted judges: requests, stored comparisons, and recovery of planted fault rates."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from auditor.config import AuditConfig
from auditor.domain import ComparisonChoice, Outcome
from auditor.errors import ConfigError
from auditor.probes.logic.comparisons import Comparison, Relation
from auditor.probes.logic.figures.schema import LogicReport, LogicRow
from auditor.reports.output import render_report
from auditor.run import open_audit, run_audit
from auditor.storage.records import load_records
from tests.support.audit_configs import config
from tests.support.comparison_judge import TOPICS, read_question, scripted
from tests.support.document_figures import assert_report_shows_figures
from tests.support.fake_server import FakeServer, Reply, Request, completion, error
from tests.support.known import known
from tests.support.stored_rows import find_part, load_stored

FEW_TOPICS = TOPICS[:5]
PAIRS = len(FEW_TOPICS) * (len(FEW_TOPICS) - 1) // 2
ONE_COUNTRY = {"source": "wvs7-sample", "countries": ["Germany"], "topics": TOPICS[:5]}


def config_of_comparisons(
    url: str, models: int = 1, language: str = "en", topics: Sequence[str] = TOPICS, **probe: Any
) -> AuditConfig:
    """Config of an audit with only the probe `logic` on survey topics."""
    survey = {"source": "wvs7-sample", "countries": ["Germany", "Japan"], "topics": topics}
    return config(url, models, survey=survey, judges=[], language=language, probes={"logic": {"samples": 0} | probe})


def stored(storage: str) -> list[Comparison]:
    return load_stored(storage, load_records, Comparison)


def section(storage: str) -> LogicReport:
    return find_part(open_audit("scripted", storage=storage).report(), LogicReport)


def first_judge_row(storage: str) -> LogicRow:
    return section(storage).judges[0]


def test_every_pair_is_asked_once_in_both_orders_and_forms(server: FakeServer, storage: str) -> None:
    server.script = scripted(TOPICS.index)
    run_audit(config_of_comparisons(server.url, topics=FEW_TOPICS), storage=storage)
    comparisons_made = stored(storage)
    assert len(server.requests) == len(comparisons_made) == 4 * PAIRS
    assert len({(c.item_a, c.item_b, c.relation) for c in comparisons_made}) == 4 * PAIRS
    assert {c.context for c in comparisons_made} == {"Germany"}
    for c in comparisons_made:
        names_first = (TOPICS.index(c.item_a) > TOPICS.index(c.item_b)) == (c.relation is Relation.STANDARD)
        decision = ComparisonChoice.FIRST if names_first else ComparisonChoice.SECOND
        assert (c.outcome, c.decision) == (Outcome.OK, decision)
    row = first_judge_row(storage)
    assert {t.share.value for t in row.transitivity} == {1.0}
    assert row.commutativity.value == row.negation.value == 1.0
    assert row.first.value == 0.5
    rankings = {r.method: r for r in section(storage).rankings}
    assert all(r.all_pairs.value == pytest.approx(1.0) for name, r in rankings.items() if "%" not in name)
    assert rankings["PairS, greedy"].calls < PAIRS
    report = open_audit("scripted", storage=storage).report()
    assert report.cost.rows[0].purpose == "logic"
    for format_ in ("html", "markdown", "json"):
        assert "Germany" in render_report(report, format_)

    run_audit(config_of_comparisons(server.url, topics=FEW_TOPICS), storage=storage)
    assert len(server.requests) == 4 * PAIRS
    assert stored(storage) == comparisons_made
    assert {r.schema for r in server.requests} == {"Preference"}


def test_planted_faults_come_back_within_their_intervals(server: FakeServer, storage: str) -> None:
    noise, first, deaf = 0.1, 0.2, 0.3
    server.script = scripted(TOPICS.index, noise=noise, first=first, deaf=deaf)
    run_audit(config_of_comparisons(server.url, samples=5, sampled_pairs=10, countries="all"), storage=storage)
    row = first_judge_row(storage)
    p, q = (1 - first) * (1 - noise) + first, (1 - first) * (1 - noise)
    expected_commutativity = p * q + (1 - p) * (1 - q)
    extra_and_plain = ((first, p), (0.0, q))
    negated_rates = [(1 - deaf) * ((1 - first) * noise + extra) + deaf * plain for extra, plain in extra_and_plain]
    expected_negation = sum(a * (1 - b) + (1 - a) * b for a, b in zip((p, q), negated_rates, strict=True)) / 2
    for figure, truth in (
        (row.commutativity, expected_commutativity),
        (row.negation, expected_negation),
        (row.first, (p + 1 - q) / 4 + (negated_rates[0] + 1 - negated_rates[1]) / 4),
    ):
        # A 95% interval misses in 5% of draws; the seeds are fixed, and with these none misses.
        assert known(figure.ci_low) <= truth <= known(figure.ci_high)
    assert row.self_agreement.n == 20
    assert 0 < (row.self_agreement.value or 0) < 1


def test_failures_are_left_out_and_counted(server: FakeServer, storage: str) -> None:
    faultless_judge = scripted(TOPICS.index)

    def fail_on_first_topic(request: Request) -> Any:
        question = read_question(request)
        if question.first == TOPICS[0]:
            return error(400, f"no {question.second}")  # equal messages would stop the model
        if question.second == TOPICS[0]:
            return completion("I cannot say.")
        return faultless_judge(request)

    server.script = fail_on_first_topic
    run_audit(config_of_comparisons(server.url, topics=FEW_TOPICS), storage=storage)
    row = first_judge_row(storage)
    lost_per_outcome = 2 * (len(FEW_TOPICS) - 1)
    assert row.losses == {"unparsed": lost_per_outcome, "client_error": lost_per_outcome}
    assert (row.questions, row.ok) == (4 * PAIRS, 4 * PAIRS - 2 * lost_per_outcome)
    assert row.commutativity.lost == len(FEW_TOPICS) - 1
    assert row.commutativity.value == 1.0
    assert all(c.decision is None for c in stored(storage) if c.outcome is not Outcome.OK)


def test_ties_are_neither_agreement_nor_violation(server: FakeServer, storage: str) -> None:
    server.script = lambda request: completion(json.dumps({"answer": "tie"}))
    run_audit(config_of_comparisons(server.url, topics=FEW_TOPICS), storage=storage)
    row = first_judge_row(storage)
    assert row.ties == row.ok == 4 * PAIRS
    for share in (row.commutativity, row.negation, row.human_agreement, row.instances.negation):
        assert (share.value, share.coverage) == (None, 0.0)
        assert share.reason == "every answered case has a tie"
    assert row.transitivity[0].share.value is row.transitivity[0].partial.value is None
    assert row.transitivity[0].tied == PAIRS
    assert row.first.value is None


def test_other_languages_wordings_and_a_chain_of_thought(server: FakeServer, storage: str) -> None:
    server.script = lambda request: completion(json.dumps({"reasoning": "So.", "answer": "A"}))
    probe: dict[str, Any] = {"countries": ["Japan"], "paraphrases": 3, "cot": True, "max_pairs": 4}
    run_audit(config_of_comparisons(server.url, language="native", **probe), storage=storage)
    assert len(server.requests) == 4 * 4 * 3
    assert {r.schema for r in server.requests} == {"ReasonedPreference"}
    assert all("国：日本" in r.text for r in server.requests)
    assert len({r.text.rsplit("\n", 1)[-1] for r in server.requests}) == 3 * 2
    assert [row.wording for row in section(storage).wordings] == [0, 1, 2]


def test_traces_are_compared_blind(server: FakeServer, storage: str) -> None:
    probes = {"direct": {"samples": 2}, "logic": {"items": "traces", "samples": 0, "negated": False}}
    survey = {"source": "wvs7-sample", "countries": ["Germany"], "topics": ["divorce"]}
    server.script = scripted(len)
    run_audit(config(server.url, 2, survey=survey, judges=[], probes=probes), storage=storage)
    preference_requests = [r for r in server.requests if r.schema == "Preference"]
    assert len(preference_requests) == 2 * 2 * 6
    assert not [r for r in preference_requests if "Germany" in r.text or "divorce" in r.text or "model-" in r.text]
    assert {c.context for c in stored(storage)} == {"Germany · divorce"}


def test_items_of_a_file(server: FakeServer, storage: str, tmp_path: Path) -> None:
    file = tmp_path / "items.csv"
    file.write_text("context,item,human\nbest fruit,apple,3\nbest fruit,pear,2\nbest fruit,plum,1\n", encoding="utf-8")
    server.script = scripted(lambda item: -len(item) - (item == "plum"))
    probes = {"logic": {"items": str(file), "samples": 0, "relation": "relevance"}}
    data = config(server.url, 1, judges=[], probes=probes)
    run_audit(AuditConfig.model_validate(data.model_dump() | {"survey": None}), storage=storage)
    assert all("Query: best fruit\nA: " in r.text for r in server.requests)
    row = first_judge_row(storage)
    assert (row.human_agreement.n, row.questions) == (6, 12)
    file.write_text("context,item\nx,apple\nx,apple\n", encoding="utf-8")
    with pytest.raises(Exception, match="twice"):
        run_audit(AuditConfig.model_validate(data.model_dump() | {"survey": None}), storage=storage)


def test_comparisons_that_cannot_be_made_are_refused_before_the_first_call(server: FakeServer, storage: str) -> None:
    with pytest.raises(ConfigError, match="no country 'France'"):
        run_audit(config_of_comparisons(server.url, countries=["France"]), storage=storage)
    with pytest.raises(ValueError, match="'traces' requires the probe 'direct'"):
        config_of_comparisons(server.url, items="traces")
    with pytest.raises(ValueError, match="compared by preference"):
        config_of_comparisons(server.url, relation="causal")
    assert not server.requests


def test_judges_vote_by_their_own_consistency(server: FakeServer, storage: str) -> None:
    consistent_judge, noisy_judge = scripted(TOPICS.index), scripted(TOPICS.index, noise=0.5)
    server.script = lambda r: (consistent_judge if r.body["model"] != "scripted-d" else noisy_judge)(r)
    probes = {"direct": {"samples": 2}, "logic": {"samples": 0}}
    panel = {"vote": "weighted", "weights_from": "logic", "bench_below": 0.8}
    report = run_audit(config(server.url, 4, survey=ONE_COUNTRY, probes=probes, panel=panel), storage=storage).report()
    assert_report_shows_figures(report, "logic", "panel", "conflicts")
    logic = find_part(report, LogicReport)
    ledger = {row.judge: row for row in logic.ledger}
    assert [row.weight for row in ledger.values()] == [1.0, 1.0, 1.0, 0.0]
    assert [row.benched for row in ledger.values()] == [False, False, False, True]
    voting = known(report.conflicts.voting)
    assert voting.weights == {name: row.weight for name, row in ledger.items()}
    assert voting.by_weight != voting.by_majority
    assert "Excluded from voting: model-d (its consistency is below 0.8)." in render_report(report, "markdown")


def test_judges_that_do_not_look_at_the_items_have_no_vote(server: FakeServer, storage: str) -> None:
    consistent_judge, by_side = scripted(TOPICS.index), {"scripted-c": "tie", "scripted-d": "A"}

    def answer(request: Request) -> Reply:
        side = by_side.get(request.body["model"]) if request.schema == "Preference" else None
        return completion(json.dumps({"answer": side})) if side else consistent_judge(request)

    server.script = answer
    probes = {"direct": {"samples": 1}, "logic": {"samples": 0}}
    panel = {"vote": "weighted", "weights_from": "logic"}
    report = run_audit(config(server.url, 4, survey=ONE_COUNTRY, probes=probes, panel=panel), storage=storage).report()
    logic = find_part(report, LogicReport)
    assert [row.weight for row in logic.ledger] == [1.0, 1.0, 0.0, 0.0]
    tied, one_sided = [row.reason for row in logic.ledger[2:]]
    assert tied == "20 of its 20 answers are ties"
    assert one_sided == "it names the same side in 100% of its decisions, whatever the items"
    excluded = f"Excluded from voting: model-c ({tied}), model-d ({one_sided})."
    markdown = render_report(report, "markdown")
    assert markdown.count(excluded) == (2 if report.conflicts.total else 1)


@pytest.mark.parametrize(
    ("panel", "message"),
    [
        ({"weights_from": "logic"}, 'requires vote = "weighted"'),
        ({"weights_from": "logic", "vote": "weighted", "weights": {"model-a": 1}},
         "cannot be combined with panel.weights"),
        ({"bench_below": 0.5}, "requires weights_from"),
    ],
)  # fmt: skip
def test_consistency_weights_that_cannot_be_computed_are_refused(panel: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config("http://x", 3, panel=panel, probes={"direct": {}, "logic": {}})
    with pytest.raises(ValueError, match="requires the probe 'logic'"):
        config("http://x", 3, panel={"weights_from": "logic", "vote": "weighted"})


def test_probabilities_of_the_next_token_decide(server: FakeServer, storage: str) -> None:
    def letters(request: Request) -> Reply:
        """Prefer the first letter, more strongly if its topic ranks higher."""
        question = read_question(request)
        first_is_better = (TOPICS.index(question.first) > TOPICS.index(question.second)) != question.negated
        probability = 0.9 if first_is_better else 0.6
        top = [{"token": "A", "logprob": math.log(probability)}, {"token": " B", "logprob": math.log(1 - probability)}]
        if question.first == TOPICS[0]:
            top = top[:1]
        reply = completion("A")
        token = {"token": "A", "logprob": math.log(probability), "top_logprobs": top}
        reply.body["choices"][0]["logprobs"] = {"content": [token]}
        return reply

    server.script = letters
    run_audit(config_of_comparisons(server.url, topics=FEW_TOPICS, answer="probability", samples=10), storage=storage)
    assert len(server.requests) == 4 * PAIRS
    assert all(r.body["max_tokens"] == 1 and r.body["top_logprobs"] for r in server.requests)
    comparisons_made = stored(storage)
    assert {round(c.probability, 3) for c in comparisons_made if c.probability is not None} == {0.9, 0.6}
    unknown = [c for c in comparisons_made if c.item_a == TOPICS[0]]
    assert {c.outcome for c in unknown} == {Outcome.NOT_MEASURABLE}
    row = first_judge_row(storage)
    assert row.commutativity.value == 0.0
    # The pairs with the first topic have an answer in one order only, so they cannot be calibrated.
    assert (row.negation.value, row.negation_calibrated.value) == (0.0, 1.0)
    n_one_order = len(FEW_TOPICS) - 1
    assert (row.negation_calibrated.n, row.negation_calibrated.lost) == (PAIRS - n_one_order, n_one_order)
    with pytest.raises(ValueError, match="cannot be combined with answer = 'probability'"):
        config_of_comparisons(server.url, answer="probability", cot=True)
