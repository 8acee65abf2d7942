"""Documents of the experiments on consistency: temperature, a rule to follow, accuracy, and human judgements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from auditor.metrics.estimate import Estimate
from auditor.reports.charts.interval_plot import SHARE_AXIS
from auditor.reports.data.adjusted_tests import is_significant
from auditor.reports.data.semantic.experiment_rows import (
    ConsistencyAccuracyRow,
    RuleFollowingRow,
    SemanticTemperatureRow,
)
from auditor.reports.data.semantic.human_judgements import (
    CorrelationDifferenceRow,
    HumanCorrelationRow,
    HumanJudgementReport,
)
from auditor.reports.data.semantic.people_labels import LeftOutReason
from auditor.reports.document import Block, Column, Document, Inline, Name, Paragraph, Section
from auditor.reports.number_format import describe_model_correlation, format_number, pluralize
from auditor.reports.sections.consistency_measures import name_measure
from auditor.reports.sections.experiments.common import (
    P_VALUE_COLUMN,
    build_experiment_document,
    build_result_sections,
    count_finding,
    plot_estimates,
)
from auditor.reports.sections.experiments.consistency_tables import build_rule_measures, build_wording_measures
from auditor.reports.sections.model_correlations import CORRELATION_REMARK
from auditor.reports.sections.phrasing import describe_estimate, join_with_and
from auditor.reports.sections.tables import ADJUSTED_P_COLUMN, tabulate

NOTHING_COMPARED = "Nothing was compared."
LEFT_OUT_LABELS: Mapping[LeftOutReason, str] = {
    "other_model": "models that the audit does not have",
    "other_question": "questions that it did not ask",
    "other_wording": "wordings that it did not ask",
}
P_VALUE_NOTE = "p: by the method of the interval; p (adjusted): the same, adjusted for all rows (Holm)."


def build_temperature_document(audit: str, rows: Sequence[SemanticTemperatureRow]) -> Document:
    """Build the document on whether paraphrasing changes answers more than sampling at a temperature does."""
    differences = [(f"{row.model} at temperature {row.temperature:g}", row.difference) for row in rows]
    finding = count_finding(
        [
            setting
            for row, (setting, difference) in zip(rows, differences, strict=True)
            if is_significant(row) and (difference.value or 0.0) < 0
        ],
        sum(difference.value is not None for _, difference in differences),
        "setting",
        "be less consistent under paraphrase than under repeated sampling",
    )
    table = tabulate(
        "temperature",
        "Consistency at each temperature",
        f"Consistency score at each temperature, with 95% CI; n counts questions. {P_VALUE_NOTE}",
        rows,
        [
            Column("Model", "name"),
            Column("Temperature", "number"),
            Column("Same wording", "estimate", "same_words"),
            Column("Other wordings", "estimate", "other_words"),
            Column("Other minus same", "estimate", "difference", style="signed", emphasis=True),
            P_VALUE_COLUMN,
            ADJUSTED_P_COLUMN,
        ],
    )
    plot_title = "Consistency under paraphrase minus consistency of repeated answers"
    axis_title = "Difference of scores (below 0: paraphrasing changes more)"
    plots = plot_estimates("temperature-plot", plot_title, differences, axis_title, table_id=table.id)
    remark = (
        "One wording is asked several times, and several wordings once each. The consistency score measures how "
        "similar the answers are. Below 0, paraphrasing changes answers more than sampling does."
    )
    sections = build_result_sections("temperatures", "Results at each temperature", table, plots, remark)
    sections += build_wording_measures(rows)
    return build_experiment_document(
        audit, "paraphrasing compared with sampling", [finding], sections, NOTHING_COMPARED
    )


def build_rules_document(audit: str, rows: Sequence[RuleFollowingRow]) -> Document:
    """Build the document on whether a model is more consistent if it is told to follow a rule of thumb."""
    files = {row.rules_file for row in rows}
    followed = f"a rule of {', '.join(sorted(filter(None, files)))}" if any(files) else "its own first rule of thumb"
    changes = [(row.model, row.change) for row in rows]
    findings = [
        count_finding(
            [row.model for row in rows if is_significant(row) and ((row.change.value or 0.0) > 0) == is_increase],
            sum(change.value is not None for _, change in changes),
            "model",
            f"be {comparative} consistent with a rule",
        )
        for is_increase, comparative in ((True, "more"), (False, "less"))
    ]
    title = "Consistency with and without a rule"
    table = tabulate(
        "rules",
        title,
        f"Consistency score before and after a model is told to follow {followed}, with 95% CI; n counts questions. "
        f"{P_VALUE_NOTE}",
        rows,
        [
            Column("Model", "name"),
            Column("Without a rule", "estimate", "before"),
            Column("With a rule", "estimate", "after"),
            Column("Change", "estimate", style="signed", emphasis=True),
            P_VALUE_COLUMN,
            ADJUSTED_P_COLUMN,
        ],
    )
    plot_title = "Consistency with a rule minus consistency without"
    axis_title = "Difference of scores (above 0: more consistent with a rule)"
    plots = plot_estimates("rules-plot", plot_title, changes, axis_title, table_id=table.id)
    sections = [*build_result_sections("rules-results", title, table, plots), *build_rule_measures(rows)]
    return build_experiment_document(audit, "following a rule of thumb", findings, sections, NOTHING_COMPARED)


def build_accuracy_document(audit: str, rows: Sequence[ConsistencyAccuracyRow]) -> Document:
    """Build the document on how accuracy correlates with consistency over questions, as r per model."""
    findings: list[list[Inline]] = [
        [
            "Accuracy and consistency of ",
            Name(row.model),
            f": {describe_estimate('r', _estimate_correlation(row), 'question')}.",
        ]
        for row in rows
    ]
    if rows and (over_models := rows[0].over_models) is not None:
        findings.append([f"Over models: {describe_model_correlation(over_models)}."])
    table = tabulate(
        "accuracy",
        "Accuracy and consistency",
        "Accuracy (share of correct answers), consistency score, and Pearson’s r of the two over questions, with 95% "
        "CI; n counts questions.",
        rows,
        [
            Column("Model", "name"),
            Column("Accuracy", "estimate"),
            Column("Consistency", "estimate"),
            Column("r", "estimate", emphasis=True),
            P_VALUE_COLUMN,
        ],
        {"r": _estimate_correlation},
    )
    accuracies = [(row.model, row.accuracy) for row in rows]
    plots = plot_estimates("accuracy-plot", "Share of correct answers", accuracies, SHARE_AXIS, table_id=table.id)
    remark = f"Over models, mean consistency is compared with accuracy. {CORRELATION_REMARK}" if len(rows) > 1 else ""
    sections = build_result_sections("accuracy-results", "Questions with a known answer", table, plots, remark)
    return build_experiment_document(
        audit, "accuracy and consistency", findings, sections, "No model answered these questions."
    )


def _estimate_correlation(row: ConsistencyAccuracyRow | HumanCorrelationRow | CorrelationDifferenceRow) -> Estimate:
    """A row's correlation, or difference of correlations, as an estimate with the row's interval."""
    value = row.difference if isinstance(row, CorrelationDifferenceRow) else row.r
    is_complete = None not in (value, row.ci_low, row.ci_high)
    reason = row.reason or (None if is_complete else "too few pairs of model and question")
    return Estimate(value, row.n, row.ci_low, row.ci_high, reason)


def build_judgements_document(audit: str, judgements: HumanJudgementReport) -> Document:
    """Build the document on how well measures of consistency correlate with human judgements."""
    finding = _describe_correlations([row for row in judgements.correlations if row.r is not None])
    basis = Paragraph(
        f"{pluralize(judgements.judgements, 'judgement')} on {pluralize(judgements.questions, 'question')}."
        f"{describe_left_out(judgements)} "
        f"Agreement of the raters: {describe_estimate('Krippendorff’s alpha', judgements.alpha, 'pair')}. "
        f"Mean entropy of a question’s judgements, in bits: {describe_estimate('', judgements.entropy)}."
        f"{_describe_pair_entropy(judgements)}"
    )
    sections = [Section("judgements-results", "Results for each measure", [basis, *_tabulate_judgements(judgements)])]
    return build_experiment_document(
        audit, "measures compared with people", [finding], sections, "No measure can be compared with these judgements."
    )


def describe_left_out(judgements: HumanJudgementReport) -> str:
    """Describe the judgements that are not of the audit's answers; empty if there are none."""
    left_out = judgements.left_out
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
    ordered = sorted(measured, key=lambda row: row.r or 0.0)
    if len(ordered) == 1:
        estimate = describe_estimate("r", _estimate_correlation(ordered[0]))
        return f"{name_measure(ordered[0].metric, ordered[0].text)} and human judgements: {estimate}."
    ends = [f"{format_number(row.r)} ({name_measure(row.metric, row.text)})" for row in (ordered[0], ordered[-1])]
    return (
        f"The correlations of {pluralize(len(measured), 'measure')} with human judgements range from {ends[0]} to "
        f"{ends[1]}. The table of differences compares them with the audit’s measure."
    )


def _tabulate_judgements(judgements: HumanJudgementReport) -> list[Block]:
    """Build the tables of each measure's correlation with human judgements, and of differences between measures."""
    correlations = tabulate(
        "judgements",
        "Measures of consistency and human judgements",
        "Pearson’s r of each measure with the share of judgements that find two answers alike, with 95% CI, and with "
        "the entropy of the judgements (higher where people disagree). Entropy over pairs is worded as in the SaGE "
        "paper: the labels 1 and 0 of the pairs are divided by their sum, so that it is higher where more pairs are "
        "alike; a question without a pair alike has none, and is left out. n counts pairs of model and question.",
        judgements.correlations,
        [
            Column("Measure", "text", "metric"),
            Column("r with people", "estimate", "r", emphasis=True),
            Column("r with entropy", "number", "r_entropy"),
            Column("r with entropy over pairs", "estimate", "r_pair_entropy"),
        ],
        {"metric": lambda row: name_measure(row.metric, row.text), "r": _estimate_correlation},
    )
    differences = tabulate(
        "judgements-differences",
        "The audit’s measure compared with others",
        "Pearson’s r with people of the audit’s measure minus that of another measure, with 95% CI; above 0 the "
        "audit’s measure is closer to people. p: jackknife over questions, not corrected for multiple tests.",
        judgements.differences,
        [
            Column("Audit’s measure", "text", "than_metric"),
            Column("Other measure", "text", "metric"),
            Column("Difference in r", "estimate", "difference", style="signed", emphasis=True),
            P_VALUE_COLUMN,
        ],
        {
            "than_metric": lambda row: name_measure(row.than_metric, row.than_text),
            "metric": lambda row: name_measure(row.metric, row.text),
            "difference": _estimate_correlation,
        },
    )
    return [correlations, differences] if differences.rows else [correlations]
