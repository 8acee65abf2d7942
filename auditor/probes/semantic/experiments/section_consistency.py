"""Documents of the experiments on consistency: temperature, a rule to follow, and accuracy."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.probes.semantic.experiments.section_answer_counts import build_answer_counts
from auditor.probes.semantic.experiments.section_consistency_tables import (
    build_rule_measures,
    build_task_measures,
    build_wording_measures,
    name_scored,
)
from auditor.probes.semantic.figures.experiment_rows import (
    ConsistencyAccuracyRow,
    RuleFollowingRow,
    SemanticTemperatureRow,
)
from auditor.reports.charts.interval_plot import SHARE_AXIS
from auditor.reports.document import Document, Inline, Name
from auditor.reports.number_format import describe_model_correlation
from auditor.reports.sections.experiments.common import (
    build_experiment_document,
    build_result_sections,
    count_finding,
    plot_estimates,
)
from auditor.reports.sections.model_correlations import CORRELATION_REMARK
from auditor.reports.sections.phrasing import describe_estimate
from auditor.reports.sections.tables import tabulate

NOTHING_COMPARED = "Nothing was compared."
P_VALUE_NOTE = "p: by the method of the interval; p (adjusted): the same, adjusted for all rows (Holm)."


def build_temperature_document(audit: str, rows: Sequence[SemanticTemperatureRow]) -> Document:
    """Build the document on whether paraphrasing changes answers more than sampling at a temperature does."""
    differences = [(f"{row.model} at temperature {row.temperature:g}", row.difference) for row in rows]
    finding = count_finding(
        [
            setting
            for row, (setting, difference) in zip(rows, differences, strict=True)
            if difference.is_significant and (difference.value or 0.0) < 0
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
        SemanticTemperatureRow,
    )
    plot_title = "Consistency under paraphrase minus consistency of repeated answers"
    axis_title = "Difference of scores (below 0: paraphrasing changes more)"
    plots = plot_estimates("temperature-plot", plot_title, differences, axis_title, table_id=table.id)
    remark = (
        "One wording is asked several times, and several wordings once each. The consistency score measures how "
        "similar the answers are. Below 0, paraphrasing changes answers more than sampling does."
    )
    sections = build_result_sections("temperatures", "Results at each temperature", table, plots, remark)
    sections += [*build_answer_counts(rows), *build_wording_measures(rows)]
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
            [row.model for row in rows if row.change.is_significant and ((row.change.value or 0.0) > 0) == is_increase],
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
        RuleFollowingRow,
    )
    plot_title = "Consistency with a rule minus consistency without"
    axis_title = "Difference of scores (above 0: more consistent with a rule)"
    plots = plot_estimates("rules-plot", plot_title, changes, axis_title, table_id=table.id)
    sections = build_result_sections("rules-results", title, table, plots)
    sections += [*build_answer_counts(rows), *build_rule_measures(rows)]
    return build_experiment_document(audit, "following a rule of thumb", findings, sections, NOTHING_COMPARED)


def build_accuracy_document(audit: str, rows: Sequence[ConsistencyAccuracyRow]) -> Document:
    """Build the document on how accuracy correlates with consistency over questions, as r per model."""
    findings: list[list[Inline]] = [
        [
            "Accuracy and consistency of ",
            Name(row.model),
            f": {describe_estimate('r', row.r, 'question')}.",
        ]
        for row in rows
    ]
    if rows and (over_models := rows[0].over_models) is not None:
        findings.append([f"Over models: {describe_model_correlation(over_models)}."])
    table = tabulate(
        "accuracy",
        "Accuracy and consistency",
        f"Accuracy (share of correct answers), consistency score of {name_scored(rows)}, and Pearson’s r of the two "
        "over questions, with 95% CI; n counts questions.",
        rows,
        ConsistencyAccuracyRow,
    )
    accuracies = [(row.model, row.accuracy) for row in rows]
    plots = plot_estimates("accuracy-plot", "Share of correct answers", accuracies, SHARE_AXIS, table_id=table.id)
    remark = f"Over models, mean consistency is compared with accuracy. {CORRELATION_REMARK}" if len(rows) > 1 else ""
    sections = build_result_sections("accuracy-results", "Questions with a known answer", table, plots, remark)
    sections += [*build_answer_counts(rows), *build_task_measures(rows)]
    return build_experiment_document(
        audit, "accuracy and consistency", findings, sections, "No model answered these questions."
    )
