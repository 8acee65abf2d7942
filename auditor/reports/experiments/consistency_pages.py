"""Pages of the experiments on consistency: temperature, a rule to follow, accuracy, and human judgements."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.reports.data.semantic.experiment_schema import (
    ConsistencyAccuracyRow,
    HumanCorrelationRow,
    HumanJudgementReport,
    RuleFollowingRow,
    SemanticTemperatureRow,
)
from auditor.reports.experiments.page_building import (
    build_experiment_page,
    compare_interval_with,
    count_sentence,
    estimate_cells,
    format_estimate_or_reason,
    plot_estimates,
)
from auditor.reports.number_format import (
    format_count,
    format_interval,
    format_number,
    format_p_value,
    format_signed,
    pluralize,
)
from auditor.reports.pages.report_page import PageSection, PageTable, ReportPage
from auditor.reports.pages.svg_charts import SHARE_AXIS


def temperature_page(audit: str, rows: Sequence[SemanticTemperatureRow]) -> ReportPage:
    """Build the page on whether paraphrasing changes answers more than sampling at a temperature does."""
    measured = [row for row in rows if row.difference.value is not None]
    changed_settings = [
        f"{row.model} at {row.temperature:g}" for row in measured if compare_interval_with(row.difference) < 0
    ]
    predicate = "more with other words than with the dice"
    headline = count_sentence(
        changed_settings, len(measured), "settings", f"change {predicate}", f"none is shown to change {predicate}"
    )
    explanation = (
        "The same words asked several times, beside several wordings asked once each: how alike the answers are, "
        "by the audit's score of consistency. Below 0 other words change more than chance in the answers does. n "
        "counts questions."
    )
    table = PageTable(
        "Consistency at each temperature; p by a sign-flip test, not corrected.",
        ["Model", "Temperature", "Same words", "Other words", "Other less same", "n", "p"],
        [
            [
                row.model,
                f"{row.temperature:g}",
                *estimate_cells(row.same_words, row.other_words, row.difference),
                format_p_value(row.p_value),
            ]
            for row in rows
        ],
    )
    labelled_differences = ((f"{row.model} at {row.temperature:g}", row.difference) for row in rows)
    plots = plot_estimates(
        labelled_differences, None, "difference", "Consistency under other words less under the same"
    )
    section = PageSection("At each temperature", [explanation], plots=plots, tables=[table])
    return build_experiment_page(audit, "words against dice", [headline], [section], "There was nothing to compare.")


def rules_page(audit: str, rows: Sequence[RuleFollowingRow]) -> ReportPage:
    """Build the page on whether a model is more consistent if it is told to follow its own rule of thumb."""
    measured = [row for row in rows if row.change.value is not None]
    headlines = (
        count_sentence(
            [row.model for row in measured if compare_interval_with(row.change) > 0],
            len(measured),
            "models",
            "are more consistent with a rule",
            "none is shown to be more consistent with a rule of its own",
        ),
        count_sentence(
            [row.model for row in measured if compare_interval_with(row.change) < 0],
            len(measured),
            "models",
            "are less so",
            "none is less so",
        ),
    )
    table = PageTable(
        "Consistency before and after a model is told to follow its own first rule of thumb; p by a sign-flip test, "
        "not corrected. n counts questions.",
        ["Model", "Before", "With a rule", "Change", "n", "p"],
        [[row.model, *estimate_cells(row.before, row.after, row.change), format_p_value(row.p_value)] for row in rows],
    )
    plots = plot_estimates(
        ((row.model, row.change) for row in rows), None, "difference", "Consistency with a rule less without"
    )
    section = PageSection("With and without", plots=plots, tables=[table])
    return build_experiment_page(audit, "a rule to follow", headlines, [section], "There was nothing to compare.")


def accuracy_page(audit: str, rows: Sequence[ConsistencyAccuracyRow]) -> ReportPage:
    """Build the page on how far a model's accuracy goes with its consistency over questions, as r per model."""
    correlation_sentences = [
        f"{row.model}: r = {format_number(row.r)} ({format_interval(row.ci_low, row.ci_high)}; "
        f"{pluralize(row.n, 'question')})."
        if row.r is not None
        else f"{row.model}: cannot be told ({row.reason})."
        for row in rows
    ]
    table = PageTable(
        "Accuracy and consistency, and how far one goes with the other over questions.",
        ["Model", "Accuracy", "Consistency", "r", "95% interval", "p", "Questions"],
        [
            [
                row.model, format_estimate_or_reason(row.accuracy), format_estimate_or_reason(row.consistency),
                format_number(row.r) if row.r is not None else str(row.reason),
                format_interval(row.ci_low, row.ci_high), format_p_value(row.p_value), format_count(row.n),
            ]
            for row in rows
        ],
    )  # fmt: skip
    plots = plot_estimates(
        ((row.model, row.accuracy) for row in rows), SHARE_AXIS, "share", "Share of answers that are right"
    )
    section = PageSection("On questions with a known answer", plots=plots, tables=[table])
    return build_experiment_page(
        audit, "right where consistent?", correlation_sentences, [section], "No model has an answer to these questions."
    )


def judgements_page(audit: str, judgement_report: HumanJudgementReport) -> ReportPage:
    """Build the page on how well measures of consistency correlate with human judgements."""
    measured = [correlation for correlation in judgement_report.correlations if correlation.r is not None]
    best_measure = max(measured, key=lambda correlation: correlation.r or 0.0, default=None)
    headline = (
        f"Of {pluralize(len(measured), 'measure')}, {best_measure.metric} of {best_measure.text} "
        "goes with people's judgements most: "
        f"r = {format_number(best_measure.r)} ({format_interval(best_measure.ci_low, best_measure.ci_high)})."
        if best_measure
        else ""
    )
    basis = (
        f"{pluralize(judgement_report.judgements, 'judgement')} on "
        f"{pluralize(judgement_report.questions, 'question')}; Krippendorff’s alpha "
        f"of the raters {format_estimate_or_reason(judgement_report.alpha)}; entropy of the judgements on a question "
        f"{format_estimate_or_reason(judgement_report.entropy)} bits."
    )
    table = PageTable(
        "Each measure beside people: r with the share of judgements that find two answers alike, and with how torn "
        "people are. n counts models' questions.",
        ["Measure", "Of", "r with people", "95% interval", "r with entropy", "n"],
        [_correlation_cells(correlation) for correlation in judgement_report.correlations],
    )
    differences = [
        f"r of {difference.than_metric} of {difference.than_text} less {difference.metric} of {difference.text}: "
        + (
            difference.reason
            or f"{format_signed(difference.difference)} ({format_interval(difference.ci_low, difference.ci_high)}, "
            f"p {format_p_value(difference.p_value)})."
        )
        for difference in judgement_report.differences
    ]
    section = PageSection("Each measure", [basis], differences, tables=[table])
    empty_headline = "No measure can be held against these judgements."
    return build_experiment_page(audit, "measures beside people", [headline], [section], empty_headline)


def _correlation_cells(correlation: HumanCorrelationRow) -> list[str]:
    """Table cells of one measure: name, text, r with people or why it is missing, interval, r with entropy, n."""
    r_text = format_number(correlation.r) if correlation.r is not None else correlation.reason or format_number(None)
    return [
        correlation.metric,
        correlation.text,
        r_text,
        format_interval(correlation.ci_low, correlation.ci_high),
        format_number(correlation.r_entropy),
        format_count(correlation.n),
    ]
