"""Names of the measures of consistency, and their validity against human judgements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from auditor.probes.semantic.figures.human_judgements import (
    CorrelationDifferenceRow,
    HumanCorrelationRow,
    HumanJudgementReport,
    LeftOutReason,
)
from auditor.probes.semantic.records import QUESTION_TEXT, RELEASED_MIX
from auditor.reports.document import Block, Document, Paragraph, Section
from auditor.reports.number_format import format_number, pluralize
from auditor.reports.sections.experiments import (
    build_experiment_document,
)
from auditor.reports.sections.phrasing import describe_estimate, join_with_and, tabulate

SCORED_TEXT_LABELS = {
    "rot": "rules of thumb",
    "answer": "answers",
    "mix": "rules of thumb and answers",
    RELEASED_MIX: "rules of thumb (0.2) and answers (0.8)",
    QUESTION_TEXT: "questions only",
}
MEASURE_LABELS = {
    "sage": "SaGE",
    "sge": "SGE",
    "bleu": "BLEU",
    "bleu_nltk": "BLEU (nltk)",
    "rouge_l": "ROUGE-L",
    "rouge_l_stemmed": "ROUGE-L (stemmed)",
    "bertscore": "BERTScore",
    "bertscore_bert_base": "BERTScore (bert-base-uncased)",
}


def name_metric(metric: str) -> str:
    """Name a measure of similarity, such as "SaGE (α = 1)" for `sage:alpha=1`."""
    name, _, alpha = metric.partition(":alpha=")
    label = MEASURE_LABELS.get(name, name)
    return f"{label} (α = {alpha})" if alpha else label


def name_measure(metric: str, text: str) -> str:
    """Name a measure of similarity and the texts that it compares, such as "cosine of rules of thumb"."""
    return f"{name_metric(metric)} of {SCORED_TEXT_LABELS.get(text, text)}"


PUBLISHED_AGREEMENT = (
    "Published, of other answers: Krippendorff’s alpha 0.868 of three raters (SaGE, section 5.2), and Fleiss’ kappa "
    "0.68 (SGE)."
)
LEFT_OUT_LABELS: Mapping[LeftOutReason, str] = {
    "other_model": "models that the audit does not have",
    "other_question": "questions that it did not ask",
    "other_wording": "wordings that it did not ask",
}


def build_judgements_document(audit: str, judgements: HumanJudgementReport) -> Document:
    """Build the document on how well measures of consistency correlate with human judgements."""
    finding = _describe_correlations([row for row in judgements.correlations if row.r.value is not None])
    basis = Paragraph(
        f"{describe_labels(judgements)} {PUBLISHED_AGREEMENT} "
        f"Mean entropy of a question’s judgements, in bits: {describe_estimate('', judgements.entropy)}."
        f"{_describe_pair_entropy(judgements)}"
    )
    sections = [Section("judgements-results", "Results for each measure", [basis, *tabulate_judgements(judgements)])]
    return build_experiment_document(
        audit, "measures compared with people", [finding], sections, "No measure can be compared with these judgements."
    )


def describe_labels(judgements: HumanJudgementReport) -> str:
    """Describe the judgements of the audit's answers, those that are not of them, and the raters' agreement."""
    return (
        f"{pluralize(judgements.judgements, 'judgement')} on {pluralize(judgements.questions, 'question')}."
        f"{_describe_left_out(judgements.left_out)} "
        f"Agreement of the raters: {describe_estimate('Krippendorff’s alpha', judgements.alpha, 'pair')}."
        + ("" if judgements.kappa is None else f" {describe_estimate('Fleiss’ kappa', judgements.kappa, 'pair')}.")
    )


def _describe_left_out(left_out: Mapping[LeftOutReason, int]) -> str:
    """Describe the judgements that are not of the audit's answers; empty if there are none."""
    if not left_out:
        return ""
    causes = [f"{left_out[reason]} of {label}" for reason, label in LEFT_OUT_LABELS.items() if reason in left_out]
    return f" {pluralize(sum(left_out.values()), 'more judgement')} left out: {join_with_and(causes)}."


def _describe_pair_entropy(judgements: HumanJudgementReport) -> str:
    """Describe the mean entropy over pairs; empty where it was not computed."""
    if judgements.pair_entropy is None:
        return ""
    return f" Mean entropy over a question’s pairs, in bits: {describe_estimate('', judgements.pair_entropy)}."


def _describe_correlations(measured: Sequence[HumanCorrelationRow]) -> str:
    """Describe the correlations of the measures with people, without picking the largest, which is biased upwards."""
    if not measured:
        return ""
    ordered = sorted(measured, key=lambda row: row.r.value or 0.0)
    if len(ordered) == 1:
        estimate = describe_estimate("r", ordered[0].r)
        return f"{name_measure(ordered[0].metric, ordered[0].text)} and human judgements: {estimate}."
    ends = [f"{format_number(row.r.value)} ({name_measure(row.metric, row.text)})" for row in (ordered[0], ordered[-1])]
    return (
        f"The correlations of {pluralize(len(measured), 'measure')} with human judgements range from {ends[0]} to "
        f"{ends[1]}. The table of differences compares them with the audit’s measure."
    )


def tabulate_judgements(judgements: HumanJudgementReport) -> list[Block]:
    """Build the tables of each measure's correlation with human judgements, and of differences between measures."""
    correlations = tabulate(
        "judgements",
        "Measures of consistency and human judgements",
        "Pearson’s r of each measure with the share of judgements that find two answers alike, with 95% CI, and with "
        "the entropy of the judgements (higher where people disagree). Entropy over pairs is worded as in the SaGE "
        "paper: the labels 1 and 0 of the pairs are divided by their sum, so that it is higher where more pairs are "
        "alike; a question without a pair alike has none, and is left out. n counts pairs of model and question. p: "
        "jackknife over questions, adjusted for all measures (Holm).",
        judgements.correlations,
        HumanCorrelationRow,
        {"metric": lambda row: name_measure(row.metric, row.text)},
    )
    differences = tabulate(
        "judgements-differences",
        "The audit’s measure compared with others",
        "Pearson’s r with people of the audit’s measure minus that of another measure, with 95% CI; above 0 the "
        "audit’s measure is closer to people. p: jackknife over questions, adjusted for all rows (Holm).",
        judgements.differences,
        CorrelationDifferenceRow,
        {
            "than_metric": lambda row: name_measure(row.than_metric, row.than_text),
            "metric": lambda row: name_measure(row.metric, row.text),
        },
    )
    return [correlations, differences] if differences.rows else [correlations]
