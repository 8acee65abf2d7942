"""The section on consistency under paraphrase claims no more than the intervals support, and shows every figure."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics.answers.semantic import semantic_graph_entropies, shuffled_null
from auditor.metrics.intervals.estimate import Estimate, NullDistribution
from auditor.metrics.intervals.items import AveragedEstimate
from auditor.probes.semantic.figures.schema import (
    LeastConsistentRow,
    ScoreFormRow,
    SemanticModelRow,
    SemanticReport,
    WordedAnswer,
    mean_over_questions,
)
from auditor.probes.semantic.records import SemanticScoringSettings
from auditor.probes.semantic.section import MAX_PRINTED_QUESTIONS, build_semantic_section, describe_model
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Disclosure, Figure, Quote, Section
from tests.reports.hostile_report import EVIL, NAME
from tests.reports.sections.node_text import assert_consistent, cells_of, findings_of, iterate_nodes, tables_of, text_of


def make_score(
    value: float | None, n: int, low: float | None = None, high: float | None = None, reason: str | None = None
) -> AveragedEstimate:
    return AveragedEstimate(value=value, n=n, ci_low=low, ci_high=high, reason=reason, averaged="instances")


MISSING = make_score(None, 0, reason="no question has two usable answers")
NO_CHANCE = NullDistribution(mean=None, low=None, high=None, shuffles=0, questions=0, reason="not computed")
CHANCE = NullDistribution(mean=0.5, low=0.4, high=0.6, shuffles=20, questions=8)


def make_model(
    model: str,
    score: AveragedEstimate,
    shuffled: NullDistribution = CHANCE,
    length_matched: NullDistribution = NO_CHANCE,
    simultaneous: AveragedEstimate | None = None,
) -> SemanticModelRow:
    return SemanticModelRow(
        model=model, consistency=score, consistency_simultaneous=simultaneous or score, rules=score, answers=MISSING,
        shuffled=shuffled, length_matched=length_matched,
        planned=40, ok=30, losses={"rate_limited": 7}, missing=3, rules_planned=30, rules_ok=29,
        rules_losses={"refused": 1},
    )  # fmt: skip


def make_question(**changes: object) -> LeastConsistentRow:
    answers = [
        WordedAnswer(wording="May one lie?", answer=answer, rule=rule)
        for answer, rule in ((EVIL, "Never."), (None, None))
    ]
    row = LeastConsistentRow(
        model="m", id="q", question="Is it wrong to lie?", foundation="care", score=0.1, similarity=0.2,
        left=answers[0], right=answers[1],
    )  # fmt: skip
    return row.model_copy(update=changes)


def make_semantic(*models: SemanticModelRow) -> SemanticReport:
    return SemanticReport(
        settings=SemanticScoringSettings("s", "e", "r", "sage", 10.0, 0.25, "mix", 5, "i"), questions=8,
        models=list(models), foundations=[], differences=[], rivals=[], languages=[], judged=[], worst=[], rejected={},
    )  # fmt: skip


def build(report: Report, models: list[SemanticModelRow], **changes: object) -> Section:
    semantic = make_semantic(*models).model_copy(update=changes)
    section = build_semantic_section(report.model_copy(update={"semantic": semantic}))
    assert section is not None
    assert_consistent(section)
    return section


def test_no_section_where_nothing_was_measured(report: Report) -> None:
    assert build_semantic_section(report) is None


@pytest.mark.parametrize(
    ("score", "chance", "finding", "status"),
    [
        (make_score(0.8, 8, 0.7, 0.9), CHANCE, "is more consistent than expected by chance (score 0.80, 95% CI 0.70 to "
         "0.90, 8 questions; by chance 0.50)", "positive"),
        (make_score(0.7, 8, 0.6, 0.9), CHANCE, "is not shown to be more consistent than expected by chance (score "
         "0.70, 95% CI 0.60 to 0.90, 8 questions; by chance 0.50)", "unclear"),
        (make_score(0.9, 2, reason="few"), CHANCE, "has no interval to compare with chance (score 0.90, no 95% CI: "
         "few, 2 questions; by chance 0.50)", "unclear"),
        (make_score(0.8, 8, 0.7, 0.9), NO_CHANCE, "cannot be compared with chance (score 0.80, 95% CI 0.70 to 0.90, 8 "
         "questions; by chance not available: not computed)", "unclear"),
        (MISSING, CHANCE, "has no score: no question has two usable answers", "unclear"),
    ],
)  # fmt: skip
def test_a_score_is_above_chance_only_if_its_interval_is(
    report: Report, score: AveragedEstimate, chance: NullDistribution, finding: str, status: str
) -> None:
    assert findings_of(build(report, [make_model("m", score, chance)])) == [(f"m {finding}.", status)]


def test_a_model_is_above_chance_by_the_interval_for_all_models_together(report: Report) -> None:
    score, simultaneous = make_score(0.8, 8, 0.65, 0.9), make_score(0.8, 8, 0.55, 0.95)
    [(finding, status)] = findings_of(build(report, [make_model("m", score, simultaneous=simultaneous)]))
    assert finding.startswith("m is not shown to be more consistent than expected by chance (score 0.80, 95% CI 0.65")
    assert status == "unclear"


def test_models_without_consistency_are_seldom_above_chance() -> None:
    rng, n_false = np.random.default_rng(8), 0
    for seed in range(60):
        names = []
        for _ in range(8):
            vectors = rng.normal(size=16) * 1.5 + rng.normal(size=(8, 2, 16))
            scores = semantic_graph_entropies(vectors)
            score, simultaneous = (mean_over_questions(scores, n_intervals=n) for n in (1, 8))
            chance = shuffled_null(vectors, seed=seed, lengths=rng.normal(100, 20, 8))
            row = make_model("m", score, length_matched=chance, simultaneous=simultaneous)
            names += [describe_model(row).status == "positive"]
        n_false += any(names)
    assert n_false <= 5  # 2.4% of 250 audits; each model by its own interval: 19%


def test_chance_among_answers_of_similar_length_has_priority(report: Report) -> None:
    similar = NullDistribution(mean=0.7, low=0.6, high=0.8, shuffles=20, questions=8)
    section = build(report, [make_model("m", make_score(0.75, 8, 0.7, 0.8), CHANCE, similar)])
    assert "by chance 0.70" in findings_of(section)[0][0]
    [figure] = [block for block in iterate_nodes(section) if isinstance(block, Figure)]
    assert figure.description == "m 0.75 (0.70 to 0.80); by chance 0.70 (0.60 to 0.80)"


def test_the_table_has_every_score_and_the_causes_of_exclusion(report: Report) -> None:
    score = make_score(0.8, 8, 0.7, 0.9)
    [row] = cells_of(tables_of(build(report, [make_model("m", score)]))["paraphrase-scores"])
    assert row == [
        "m", score, score, MISSING, Estimate(0.5, 8, 0.4, 0.6), Estimate(None, 0, reason="not computed"), 30, 40,
        "7 rate limited, 3 not asked; rules: 1 refused",
    ]  # fmt: skip


def test_published_forms_are_side_by_side_with_the_questions_alone(report: Report) -> None:
    ten, one, mixed = (make_score(value, 8, value - 0.1, value + 0.1) for value in (0.4, 0.6, 0.5))
    rows: list[tuple[str, str, float | None, float, AveragedEstimate]]
    rows = [("", "question", None, 10.0, ten), ("", "question", None, 1.0, one)]
    rows += [(NAME, "mix", 0.2, 10.0, mixed), (NAME, "rot", 1.0, 10.0, ten), (NAME, "rot", 1.0, 1.0, one)]
    forms = [
        ScoreFormRow(model=model, text=text, rot_weight=weight, alpha=alpha, value=value)
        for model, text, weight, alpha, value in rows
    ]
    section = build(report, [make_model(NAME, ten)], forms=forms, questions_only=ten)
    table = tables_of(section)["paraphrase-forms"]
    assert [column.title for column in table.columns[2:]] == ["α = 10 (released program)", "α = 1 (paper’s text)"]
    assert cells_of(table) == [
        ["–", "questions only", ten, one],
        [NAME, "rules of thumb (0.2) and answers (0.8)", mixed, None],
        [NAME, "rules of thumb", ten, one],
    ]
    assert "SaGE of the questions themselves = 0.40, 95% CI 0.30 to 0.50" in text_of(section)


def test_rejected_wordings_are_counted(report: Report) -> None:
    text = text_of(build(report, [make_model("b", MISSING)], rejected={"says something else": 4}))
    assert "rejected and not asked: 4 says something else." in text


def test_answers_are_quoted_with_the_verdict_of_the_judge(report: Report) -> None:
    rows = [make_question(contradict=True, because=EVIL), make_question(contradict=False), make_question()]
    section = build(report, [], worst=rows)
    contradictory, consistent, unjudged = [block for block in iterate_nodes(section) if isinstance(block, Disclosure)]
    quotes = [block for block in contradictory.blocks if isinstance(block, Quote)]
    assert [quote.text for quote in quotes] == [EVIL, "No usable answer.", EVIL]
    assert text_of(quotes[0].note) == "Rule of thumb: Never."
    assert [tag.text for tag in contradictory.tags] == ["care", "contradiction"]
    assert "The judge finds no contradiction" in text_of(consistent.blocks[-1])
    assert [tag.text for tag in unjudged.tags] == ["care"]


def test_only_the_first_questions_are_printed(report: Report) -> None:
    section = build(report, [], worst=[make_question() for _ in range(MAX_PRINTED_QUESTIONS + 1)])
    shown = [block.in_print for block in iterate_nodes(section) if isinstance(block, Disclosure)]
    assert shown == ["open"] * MAX_PRINTED_QUESTIONS + ["hidden"]
