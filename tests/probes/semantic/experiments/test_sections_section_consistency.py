"""Documents of the consistency experiments: each finding follows from adjusted p-values or intervals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from auditor.metrics.intervals.estimate import Tested
from auditor.metrics.intervals.items import AveragedEstimate
from auditor.metrics.people.over_models import ModelCorrelation
from auditor.probes.semantic import section_measures as human_judgements
from auditor.probes.semantic.experiments import sections as consistency
from auditor.probes.semantic.figures.experiment_rows import (
    ConsistencyAccuracyRow,
    MeasureByRuleRow,
    MeasureByWordingRow,
    RuleFollowingRow,
    SemanticTemperatureRow,
)
from auditor.probes.semantic.figures.human_judgements import (
    CorrelationDifferenceRow,
    HumanCorrelationRow,
    HumanJudgementReport,
)
from auditor.reports.document import Document, Paragraph
from tests.reports.sections.node_text import assert_consistent, cells_of, tables_of, text_of

HOSTILE = "<b>judge|a</b>"


def make_estimate(value: float | None, half: float = 0.1, n: int = 40, **test: Any) -> Tested:
    if value is None:
        return Tested(value=None, n=0, reason="nothing was measured")
    return replace(Tested(value=value, n=n, ci_low=value - half, ci_high=value + half), **test)


def make_mean(value: float | None) -> AveragedEstimate:
    estimate = make_estimate(value)
    return AveragedEstimate(
        value=value, n=estimate.n, ci_low=estimate.ci_low, ci_high=estimate.ci_high, reason=estimate.reason,
        averaged="instances",
    )  # fmt: skip


def checked_finding(document: Document) -> str:
    """The finding at the top of a document whose nodes fit together."""
    assert_consistent(document)
    [lead] = document.opening
    assert isinstance(lead, Paragraph)
    return text_of(lead.content)


def test_the_temperature_document_compares_paraphrase_with_sampling_noise() -> None:
    rows = [
        SemanticTemperatureRow(
            model=m, temperature=t, same_words=make_mean(0.9), other_words=make_mean(0.7),
            difference=make_estimate(d, p_value=0.03, adjusted_p_value=p_value),
        )
        for m, t, d, p_value in (("a", 0.0, -0.2, 0.04), (HOSTILE, 1.0, -0.2, 0.06), ("c", 1.0, 0.2, 0.001))
    ]  # fmt: skip
    document = consistency.build_temperature_document("x", rows)
    assert checked_finding(document) == (
        "1 of 3 settings is shown to be less consistent under paraphrase than under repeated sampling: a at "
        "temperature 0."
    )
    [table] = tables_of(document).values()
    assert [cells[-2:] for cells in cells_of(table)] == [[0.03, 0.04], [0.03, 0.06], [0.03, 0.001]]
    assert "p (adjusted): the same, adjusted for all rows (Holm)." in text_of(table.caption)


def test_the_rules_document_counts_models_that_improve_and_that_get_worse() -> None:
    rows = [
        RuleFollowingRow(
            model=m,
            before=make_mean(0.5),
            after=make_mean(0.7),
            change=make_estimate(c, p_value=p_value, adjusted_p_value=p_value),
        )
        for m, c, p_value in (("a", 0.2, 0.01), (HOSTILE, -0.2, 0.02), ("c", 0.2, 0.06), ("d", None, None))
    ]
    assert checked_finding(consistency.build_rules_document("x", rows)) == (
        "1 of 3 models is shown to be more consistent with a rule: a. "
        f"1 of 3 models is shown to be less consistent with a rule: {HOSTILE}."
    )


def test_the_accuracy_document_gives_the_correlation_of_accuracy_and_consistency() -> None:
    rows = [
        ConsistencyAccuracyRow(
            model=m,
            accuracy=make_mean(0.6),
            consistency=make_mean(0.5),
            r=Tested(r, 30, low, high, reason, p_value=0.02),
        )
        for m, r, low, high, reason in (("a", 0.4, 0.1, 0.6, None), (HOSTILE, None, None, None, "all are right"))
    ]
    assert checked_finding(consistency.build_accuracy_document("x", rows)) == (
        "Accuracy and consistency of a: r = 0.40, 95% CI 0.10 to 0.60, 30 questions. "
        f"Accuracy and consistency of {HOSTILE}: r not available: all are right."
    )


def test_the_judgements_document_gives_the_range_of_the_correlations() -> None:
    rows = [
        HumanCorrelationRow(text="answers", metric="SaGE", r=Tested(0.5, 20, 0.1, 0.8), r_entropy=-0.3),
        HumanCorrelationRow(text="rules", metric=HOSTILE, r=Tested(None, 20, reason="flat"), r_entropy=-0.3),
        HumanCorrelationRow(text="answers", metric="bleu", r=Tested(0.2, 20, 0.1, 0.8), r_entropy=-0.3),
    ]
    judgements = HumanJudgementReport(
        questions=20, judgements=80, alpha=make_estimate(0.6), entropy=make_estimate(0.3), correlations=rows,
        differences=[],
    )  # fmt: skip
    assert checked_finding(human_judgements.build_judgements_document("x", judgements)) == (
        "The correlations of 2 measures with human judgements range from 0.20 (BLEU of answers) to 0.50 (SaGE of "
        "answers). The table of differences compares them with the audit’s measure."
    )
    only_one = judgements.model_copy(update={"correlations": rows[:2]})
    assert checked_finding(human_judgements.build_judgements_document("x", only_one)) == (
        "SaGE of answers and human judgements: r = 0.50, 95% CI 0.10 to 0.80."
    )


def test_the_judgements_document_has_both_entropies() -> None:
    r = Tested(0.5, 20, 0.1, 0.8, p_value=0.01, adjusted_p_value=0.02)
    r_pair_entropy = Tested(0.4, 20, 0.1, 0.6, None, ("question",), p_value=0.03, adjusted_p_value=0.06)
    row = HumanCorrelationRow(text="rot", metric="sage:alpha=1", r=r, r_entropy=-0.3, r_pair_entropy=r_pair_entropy)
    judgements = HumanJudgementReport(
        questions=20, judgements=80, alpha=make_estimate(0.6), entropy=make_estimate(0.3), correlations=[row],
        differences=[], pair_entropy=make_estimate(1.5),
    )  # fmt: skip
    document = human_judgements.build_judgements_document("x", judgements)
    [cells] = cells_of(tables_of(document)["judgements"])
    assert cells == ["SaGE (α = 1) of rules of thumb", r, 0.02, -0.3, r_pair_entropy, 0.06]
    assert "Mean entropy over a question’s pairs, in bits: 1.50, 95% CI 1.40 to 1.60" in text_of(document.sections)


def test_accuracy_is_compared_with_consistency_over_models() -> None:
    row = ConsistencyAccuracyRow(
        model="a", accuracy=make_mean(0.5), consistency=make_mean(0.5),
        r=Tested(0.4, 30, 0.1, 0.6, p_value=0.1),
        over_models=ModelCorrelation(0.28, 9, -0.4, 0.8, p_value=0.47, models=9, r_over_models=0.28),
    )  # fmt: skip
    finding = checked_finding(consistency.build_accuracy_document("x", [row, row]))
    assert finding.endswith("Over models: r = 0.28, 95% CI −0.40 to 0.80, p = 0.470, 9 models.")


def test_every_measure_has_a_row_in_the_documents_of_both_experiments() -> None:
    mean, change = make_mean(0.5), make_estimate(0.1)
    by_rule = RuleFollowingRow(
        model=HOSTILE, before=mean, after=mean, change=change, rules_file="rules.csv",
        measures=[MeasureByRuleRow(text="answer", metric="bleu_nltk", before=mean, after=mean, change=change)],
    )  # fmt: skip
    document = consistency.build_rules_document("x", [by_rule])
    tables = tables_of(document)
    assert cells_of(tables["rules-measures"]) == [[HOSTILE, "BLEU (nltk)", "answers", mean, mean, change]]
    assert "told to follow a rule of rules.csv" in text_of(tables["rules"].caption)
    by_wording = SemanticTemperatureRow(
        model="m", temperature=0.5, same_words=mean, other_words=mean, difference=change,
        measures=[
            MeasureByWordingRow(text="mix:0.2", metric="sage", same_words=mean, other_words=mean, difference=change)
        ],
    )  # fmt: skip
    tables = tables_of(consistency.build_temperature_document("x", [by_wording]))
    texts = "rules of thumb (0.2) and answers (0.8)"
    assert cells_of(tables["temperature-measures"]) == [["m", 0.5, "SaGE", texts, mean, mean, change]]


def test_differences_between_measures_are_a_table() -> None:
    row = CorrelationDifferenceRow(
        text="rot", metric="cosine", than_text="rot", than_metric="sage",
        difference=Tested(0.2, 20, 0.1, 0.3, p_value=0.01, adjusted_p_value=0.02),
    )  # fmt: skip
    judgements = HumanJudgementReport(
        questions=20, judgements=80, alpha=make_estimate(None), entropy=make_estimate(0.3), correlations=[],
        differences=[row],
    )  # fmt: skip
    document = human_judgements.build_judgements_document("x", judgements)
    assert checked_finding(document) == "No measure can be compared with these judgements."
    assert cells_of(tables_of(document)["judgements-differences"]) == [
        ["SaGE of rules of thumb", "cosine of rules of thumb", row.difference, 0.02]
    ]


def test_documents_without_rows_say_that_nothing_was_compared() -> None:
    documents = (consistency.build_temperature_document("x", []), consistency.build_rules_document("x", []))
    for document in documents:
        assert checked_finding(document) == "Nothing was compared."
        assert not document.sections
    assert checked_finding(consistency.build_accuracy_document("x", [])) == "No model answered these questions."


def test_settings_without_a_difference_are_counted() -> None:
    row = RuleFollowingRow(model="a", before=make_mean(0.5), after=make_mean(0.5), change=make_estimate(0.0))
    assert checked_finding(consistency.build_rules_document("x", [row])) == (
        "No model is shown to be more consistent with a rule (1 model measured). "
        "No model is shown to be less consistent with a rule (1 model measured)."
    )
