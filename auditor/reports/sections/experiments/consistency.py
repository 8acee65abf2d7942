"""Documents of the experiments on consistency: temperature, a rule to follow, accuracy, and human judgements."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.metrics.estimate import Estimate
from auditor.reports.charts.interval_plot import SHARE_AXIS
from auditor.reports.data.semantic.experiment_schema import (
    ConsistencyAccuracyRow,
    CorrelationDifferenceRow,
    HumanCorrelationRow,
    HumanJudgementReport,
    RuleFollowingRow,
    SemanticTemperatureRow,
)
from auditor.reports.document import Block, Column, Document, Inline, Name, Paragraph, Section, Table
from auditor.reports.number_format import pluralize
from auditor.reports.sections.experiments.common import (
    build_experiment_document,
    compare_interval_with,
    count_finding,
    plot_estimates,
)
from auditor.reports.sections.phrasing import describe_estimate
from auditor.reports.sections.semantic import name_measure

NOTHING_COMPARED = "Nothing was compared."


def build_temperature_document(audit: str, rows: Sequence[SemanticTemperatureRow]) -> Document:
    """Build the document on whether paraphrasing changes answers more than sampling at a temperature does."""
    measured = [row for row in rows if row.difference.value is not None]
    changed_settings = [_name_setting(row) for row in measured if compare_interval_with(row.difference) < 0]
    property_phrase = "change answers more by paraphrasing than by sampling again"
    table = Table(
        "temperature",
        "Consistency at each temperature",
        "Consistency score at each temperature, with 95% CI; n counts questions. p: sign-flip test, not corrected for "
        "multiple tests.",
        [
            Column("Model", "name"),
            Column("Temperature", "number"),
            Column("Same wording", "estimate"),
            Column("Other wordings", "estimate"),
            Column("Other minus same", "estimate", style="signed", emphasis=True),
            Column("p", "number", style="p_value"),
        ],
        [
            [row.model, row.temperature, row.same_words, row.other_words, row.difference, row.p_value]
            for row in rows
        ],
    )  # fmt: skip
    explanation = Paragraph(
        "One wording is asked several times, and several wordings are asked once each. The audit’s consistency score "
        "says how similar the answers are. Below 0, paraphrasing changes answers more than sampling does."
    )
    figures = plot_estimates(
        "temperature-plot",
        "Consistency under paraphrase minus consistency of repeated answers",
        [(_name_setting(row), row.difference) for row in rows],
        "Difference of scores (below 0: paraphrasing changes more)",
        table_id="temperature",
    )
    finding = count_finding(changed_settings, len(measured), "setting", property_phrase)
    blocks: list[Block] = [explanation, *figures, table]
    sections = [Section("temperatures", "Results at each temperature", blocks)] if rows else []
    return build_experiment_document(
        audit, "paraphrasing compared with sampling", [finding], sections, NOTHING_COMPARED
    )


def _name_setting(row: SemanticTemperatureRow) -> str:
    """Name a model at one temperature."""
    return f"{row.model} at temperature {row.temperature:g}"


def build_rules_document(audit: str, rows: Sequence[RuleFollowingRow]) -> Document:
    """Build the document on whether a model is more consistent if it is told to follow its own rule of thumb."""
    measured = [row for row in rows if row.change.value is not None]
    findings = [
        count_finding(
            [row.model for row in measured if compare_interval_with(row.change) == direction],
            len(measured),
            "model",
            f"be {comparative} consistent with a rule",
        )
        for direction, comparative in ((1, "more"), (-1, "less"))
    ]
    table = Table(
        "rules",
        "Consistency with and without a rule",
        "Consistency score before and after a model is told to follow its own first rule of thumb, with 95% CI; n "
        "counts questions. p: sign-flip test, not corrected for multiple tests.",
        [
            Column("Model", "name"),
            Column("Without a rule", "estimate"),
            Column("With a rule", "estimate"),
            Column("Change", "estimate", style="signed", emphasis=True),
            Column("p", "number", style="p_value"),
        ],
        [[row.model, row.before, row.after, row.change, row.p_value] for row in rows],
    )
    figures = plot_estimates(
        "rules-plot",
        "Consistency with a rule minus consistency without",
        [(row.model, row.change) for row in rows],
        "Difference of scores (above 0: more consistent with a rule)",
        table_id="rules",
    )
    sections = [Section("rules-results", "Consistency with and without a rule", [*figures, table])] if rows else []
    return build_experiment_document(audit, "following a rule of thumb", findings, sections, NOTHING_COMPARED)


def build_accuracy_document(audit: str, rows: Sequence[ConsistencyAccuracyRow]) -> Document:
    """Build the document on how accuracy correlates with consistency over questions, as r per model."""
    findings = [_describe_accuracy_correlation(row) for row in rows]
    table = Table(
        "accuracy",
        "Accuracy and consistency",
        "Accuracy (share of correct answers), consistency score, and Pearson’s r of the two over questions, with 95% "
        "CI; n counts questions.",
        [
            Column("Model", "name"),
            Column("Accuracy", "estimate"),
            Column("Consistency", "estimate"),
            Column("r", "estimate", emphasis=True),
            Column("p", "number", style="p_value"),
        ],
        [[row.model, row.accuracy, row.consistency, _correlation_estimate(row.r, row), row.p_value] for row in rows],
    )
    figures = plot_estimates(
        "accuracy-plot",
        "Share of correct answers",
        [(row.model, row.accuracy) for row in rows],
        SHARE_AXIS,
        table_id="accuracy",
    )
    sections = [Section("accuracy-results", "Questions with a known answer", [*figures, table])] if rows else []
    return build_experiment_document(
        audit, "accuracy and consistency", findings, sections, "No model answered these questions."
    )


def _describe_accuracy_correlation(row: ConsistencyAccuracyRow) -> list[Inline]:
    """Sentence on one model's correlation of accuracy and consistency."""
    correlation = describe_estimate("r", _correlation_estimate(row.r, row), "question")
    return ["Accuracy and consistency of ", Name(row.model), f": {correlation}."]


def _correlation_estimate(
    value: float | None, row: ConsistencyAccuracyRow | HumanCorrelationRow | CorrelationDifferenceRow
) -> Estimate:
    """A row's correlation, or difference of correlations, as an estimate with the row's interval."""
    is_complete = None not in (value, row.ci_low, row.ci_high)
    reason = row.reason or (None if is_complete else "too few pairs of model and question")
    return Estimate(value, row.n, row.ci_low, row.ci_high, reason)


def build_judgements_document(audit: str, judgements: HumanJudgementReport) -> Document:
    """Build the document on how well measures of consistency correlate with human judgements."""
    measured = [row for row in judgements.correlations if row.r is not None]
    best = max(measured, key=lambda row: row.r or 0.0, default=None)
    finding = (
        f"Of {pluralize(len(measured), 'measure')}, {name_measure(best.metric, best.text)} correlates most with human "
        f"judgements: {describe_estimate('r', _correlation_estimate(best.r, best))}."
        if best
        else ""
    )
    basis = Paragraph(
        f"{pluralize(judgements.judgements, 'judgement')} on {pluralize(judgements.questions, 'question')}. "
        f"Agreement of the raters: {describe_estimate('Krippendorff’s alpha', judgements.alpha, 'pair')}. "
        f"Mean entropy of a question’s judgements, in bits: {describe_estimate('', judgements.entropy)}."
    )
    correlations = Table(
        "judgements",
        "Measures of consistency and human judgements",
        "Pearson’s r of each measure with the share of judgements that find two answers alike, with 95% CI, and with "
        "the entropy of the judgements (higher where people disagree). n counts pairs of model and question.",
        [
            Column("Measure", "text"),
            Column("r with people", "estimate", emphasis=True),
            Column("r with entropy", "number"),
        ],
        [
            [name_measure(row.metric, row.text), _correlation_estimate(row.r, row), row.r_entropy]
            for row in judgements.correlations
        ],
    )
    blocks: list[Block] = [basis, correlations]
    if judgements.differences:
        blocks.append(_build_difference_table(judgements.differences))
    sections = [Section("judgements-results", "Results for each measure", blocks)]
    return build_experiment_document(
        audit, "measures compared with people", [finding], sections, "No measure can be compared with these judgements."
    )


def _build_difference_table(rows: Sequence[CorrelationDifferenceRow]) -> Table:
    """Build the table of the audit's measure against each other one."""
    return Table(
        "judgements-differences",
        "The audit’s measure compared with others",
        "Pearson’s r with people of the audit’s measure minus that of another measure, with 95% CI; above 0 the "
        "audit’s measure is closer to people. p: Williams’ test.",
        [
            Column("Audit’s measure", "text"),
            Column("Other measure", "text"),
            Column("Difference in r", "estimate", style="signed", emphasis=True),
            Column("p", "number", style="p_value"),
        ],
        [
            [
                name_measure(row.than_metric, row.than_text),
                name_measure(row.metric, row.text),
                _correlation_estimate(row.difference, row),
                row.p_value,
            ]
            for row in rows
        ],
    )
