"""Examples are the largest differences from people, with the reasoning and the verdicts of unnamed judges."""

from __future__ import annotations

from auditor.domain import Outcome
from auditor.reports.data.report_schema import Report
from auditor.reports.data.traces import HIDDEN_NAME, hide_names, select_sample
from auditor.storage import evidence
from auditor.storage.audits import Audit
from auditor.storage.conflict_status import ConflictKey
from auditor.storage.database import Database
from auditor.storage.evidence import BlindedSample
from tests.reports.conftest import import_scores
from tests.support.known import known


def test_the_quoted_sample_is_nearest_to_the_score_and_has_its_own_verdicts(
    population: tuple[Database, Audit], report: Report
) -> None:
    db, audit = population
    for example in report.examples:
        key = ConflictKey(example.country, example.topic, example.model, example.model)
        samples, _ = evidence.load_sides(db, audit.id, key)
        usable = [sample for sample in samples if sample.score is not None]
        nearest = min(usable, key=lambda sample: abs((sample.score or 0.0) - example.score))
        assert (example.sample_score, example.reasoning) == (nearest.score, nearest.text)
        verdicts = evidence.load_hidden_evidence(db, audit.id, key).verdicts_left
        rulings = [v.ruling for v in verdicts if v.sample == nearest.number and v.outcome is Outcome.OK]
        assert [verdict.valid for verdict in example.verdicts] == sorted(
            (ruling == "VALID" for ruling in rulings), reverse=True
        )
    assert any(example.verdicts for example in report.examples)


def test_a_judged_sample_is_quoted_before_a_nearer_one() -> None:
    samples = [BlindedSample(number, Outcome.OK, score, "why") for number, score in ((1, 0.5), (2, 0.3), (3, 0.1))]
    for judged, number in (({2, 3}, 2), ({3}, 3), (set(), 1), ({1, 2, 3}, 1)):
        quoted = known(select_sample(samples, 0.5, judged))
        assert quoted.number == number
    assert select_sample([BlindedSample(1, Outcome.REFUSED, None, "no")], 0.5, {1}) is None


def test_judges_are_not_named(report: Report) -> None:
    names = {model.name for model in report.audit.models}
    verdicts = [verdict.model_dump_json() for example in report.examples for verdict in example.verdicts]
    assert verdicts
    assert not [text for text in verdicts for name in names if name in text]
    assert hide_names("As GPT-4o, unlike gpt-4, I disagree with oak.", ["gpt-4", "gpt-4o", "oak"]) == (
        f"As {HIDDEN_NAME}, unlike {HIDDEN_NAME}, I disagree with {HIDDEN_NAME}."
    )
    assert hide_names("gpt-4-mini is right", ["gpt-4", "gpt-4-mini"]) == f"{HIDDEN_NAME} is right"
    assert hide_names("oaken", ["oak"]) == "oaken"


def test_imported_scores_have_examples_without_reasoning(db: Database) -> None:
    report = import_scores(db, {("Egypt", "a"): 0.1}, {("m", "Egypt", "a"): 0.9})
    [example] = report.examples
    assert (example.score, example.survey, example.reasoning, example.verdicts) == (0.9, 0.1, None, [])
