"""People on pairs of answers: a random sample of any audit of the probe `semantic`, three raters, and every measure."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from auditor.domain.labels import EQUIVALENCE, UNSURE, Label, LabelKind
from auditor.errors import UsageError
from auditor.experiments.stored_audit import ExperimentContext
from auditor.metrics.judges.agreement import krippendorff_alpha
from auditor.probes.semantic.answer_imports import import_answers
from auditor.probes.semantic.experiments.runs import judgements
from auditor.probes.semantic.figures.schema import SemanticReport
from auditor.probes.semantic.section import build_semantic_section
from auditor.probes.semantic.settings import SemanticProbe
from auditor.reports.data.build import build_report
from auditor.review.label_sampling import LabelItemLoader, draw_label_sample
from auditor.storage import audits
from auditor.storage.database import open_database
from auditor.storage.labels import append_labels, load_label_sample
from tests.e2e.test_semantic import write
from tests.reports.sections.node_text import text_of
from tests.support.fixed_address import word_encoder
from tests.support.known import known
from tests.support.stored_rows import find_part

RATERS = ("ann", "bob", "cem")
QUESTIONS, WORDINGS, MODELS = 12, 4, ("steady", "fickle")
N_PAIRS = len(MODELS) * QUESTIONS * WORDINGS * (WORDINGS - 1) // 2


def stand(model: str, question: int, wording: int) -> str:
    """What a model says: `steady` the same in all wordings, `fickle` so only in some questions."""
    side = 0 if model == "steady" else wording % (1 + question % 3)
    return ("keep the promise", "break the promise", "ask somebody else first")[side]


@pytest.fixture
def audit(storage: str, tmp_path: Path) -> str:
    rows: list[list[object]] = [
        [model, f"q{question}", f"wording {wording} of {question}", stand(model, question, wording)]
        for model in MODELS
        for question in range(QUESTIONS)
        for wording in range(1, WORDINGS + 1)
    ]
    file = write(tmp_path / "answers.csv", ["model", "question_id", "paraphrase", "answer"], rows)
    with word_encoder():
        import_answers(file, audit="given", probe=SemanticProbe(encoder="words"), storage=storage)
    return "given"


def label_sample(storage: str, name: str, n: int) -> dict[str, list[float]]:
    """Draw a sample, have three raters label it, and return their labels as numbers, in the order of the sample."""
    values: dict[str, list[float]] = {rater: [] for rater in RATERS}
    with open_database(storage) as db:
        audit = audits.get_audit(db, name)
        drawn = draw_label_sample(db, audit, LabelKind("answer_pair"), n)
        assert (drawn.n_sampled, drawn.n_population, drawn.stratify) == (n, N_PAIRS, ("model", "purpose"))
        for place, sampled in enumerate(load_label_sample(db, audit.id, LabelKind("answer_pair"))):
            assert sampled.inclusion == pytest.approx(n / N_PAIRS)
            purpose, model, question, left, right = sampled.unit.parts
            assert purpose == EQUIVALENCE
            is_alike = stand(model, int(question[1:]), int(left)) == stand(model, int(question[1:]), int(right))
            for number, rater in enumerate(RATERS):
                errs = (place + number) % 9 == 0
                value = UNSURE if (place, number) == (1, 2) else "yes" if is_alike != errs else "no"
                append_labels(db, audit.id, [Label(sampled.unit, rater, value, datetime.now(UTC))])
                values[rater].append({"yes": 1.0, "no": 0.0}.get(value, np.nan))
    return values


def test_labels_of_an_audit_without_a_judge_are_compared_with_every_measure(audit: str, storage: str) -> None:
    values = label_sample(storage, audit, 72)
    report = judgements(ExperimentContext(storage), audit).data
    with open_database(storage) as db:
        stored = audits.get_audit(db, audit)
        sample = load_label_sample(db, stored.id, LabelKind("answer_pair"))
        full_report = build_report(db, audit)
        item = LabelItemLoader(db, stored, "ann").load(sample[0].unit)
    expected = krippendorff_alpha(
        np.array(list(values.values())), units={"question": [sampled.unit.parts[2] for sampled in sample]}
    )
    semantic = find_part(full_report, SemanticReport)
    assert semantic.people is not None
    assert semantic.people == report
    assert semantic.people.judgements == 3 * 72
    assert semantic.people.alpha.value == pytest.approx(expected.value)
    assert None not in (semantic.people.alpha.ci_low, semantic.people.kappa and semantic.people.kappa.ci_low)
    measures = {(row.text, row.metric) for row in semantic.people.correlations}
    assert {("answer", "sage"), ("answer", "cosine")} <= measures
    assert all(row.r.value is not None and row.r.value > 0.5 for row in semantic.people.correlations)
    p_values = [(row.r.p_value or 0, row.r.adjusted_p_value or 1) for row in semantic.people.correlations]
    assert all(adjusted >= raw for raw, adjusted in p_values)  # Holm: the largest stays
    assert sum(adjusted > raw for raw, adjusted in p_values) == len(p_values) - 1
    section = known(build_semantic_section(full_report))
    text = text_of([section])
    assert "Do people find the same answers alike?" in text
    assert "0.868 of three raters (SaGE, section 5.2), and Fleiss’ kappa 0.68 (SGE)" in text
    assert not full_report.pair_labels[0].judges
    assert item.question == "Do the two answers mean the same?"
    assert not any(model in item.material for model in MODELS)
    _, model, question, left, right = sample[0].unit.parts
    for wording in (left, right):
        assert stand(model, int(question[1:]), int(wording)) in item.material


def test_labels_count_by_the_inverse_of_their_probability(audit: str, storage: str) -> None:
    """A model whose pairs are sampled in full weighs as much as it has pairs, however many labels it has."""
    from auditor.probes.semantic.figures.human_judgements import load_sampled_labels

    label_sample(storage, audit, 72)
    with open_database(storage) as db:
        labels = load_sampled_labels(db, audits.get_audit(db, audit).id)
    pairs = {label[1:5]: label.weight for label in labels}
    assert sum(pairs.values()) == pytest.approx(N_PAIRS)


def test_without_labels_the_command_says_how_to_get_some(audit: str, storage: str) -> None:
    with pytest.raises(UsageError, match=r"auditor review given --sample 200 --kind answer_pair"):
        judgements(ExperimentContext(storage), audit)
