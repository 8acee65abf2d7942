"""Experiments on consistency as pages: temperature, a rule to follow, right answers, and people's judgements."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.reports.experiments.page_building import (
    build_experiment_page,
    compare_interval_with,
    count_sentence,
    estimate_cells,
    format_estimate_or_reason,
    plot_estimates,
)
from auditor.reports.pages.number_format import (
    format_count,
    format_interval,
    format_number,
    format_p_value,
    format_signed,
    pluralize,
)
from auditor.reports.pages.report_page import PageSection, PageTable, ReportPage
from auditor.reports.pages.svg_charts import SHARE_AXIS
from auditor.reports.semantic.experiment_schema import (
    ConsistencyAccuracyRow,
    HumanCorrelationRow,
    HumanJudgementReport,
    RuleFollowingRow,
    SemanticTemperatureRow,
)


def temperature_page(audit: str, rows: Sequence[SemanticTemperatureRow]) -> ReportPage:
    """Whether other words change more than the dice do."""
    seen = [r for r in rows if r.difference.value is not None]
    moved = [f"{r.model} at {r.temperature:g}" for r in seen if compare_interval_with(r.difference) < 0]
    more = "more with other words than with the dice"
    answer = count_sentence(moved, len(seen), "settings", f"change {more}", f"none is shown to change {more}")
    method = (
        "The same words asked several times, beside several wordings asked once each: how alike the answers are, "
        "by the audit's score of consistency. Below 0 other words change more than chance in the answers does. n "
        "counts questions."
    )
    grid = PageTable(
        "Consistency at each temperature; p by a sign-flip test, not corrected.",
        ["Model", "Temperature", "Same words", "Other words", "Other less same", "n", "p"],
        [
            [
                r.model,
                f"{r.temperature:g}",
                *estimate_cells(r.same_words, r.other_words, r.difference),
                format_p_value(r.p_value),
            ]
            for r in rows
        ],
    )
    named = ((f"{r.model} at {r.temperature:g}", r.difference) for r in rows)
    plots = plot_estimates(named, None, "difference", "Consistency under other words less under the same")
    chapter = PageSection("At each temperature", [method], plots=plots, tables=[grid])
    return build_experiment_page(audit, "words against dice", [answer], [chapter], "There was nothing to compare.")


def rules_page(audit: str, rows: Sequence[RuleFollowingRow]) -> ReportPage:
    """Whether a rule of its own makes a model more consistent."""
    seen = [r for r in rows if r.change.value is not None]
    answers = (
        count_sentence([r.model for r in seen if compare_interval_with(r.change) > 0], len(seen), "models",
                       "are more consistent with a rule", "none is shown to be more consistent with a rule of its own"),
        count_sentence([r.model for r in seen if compare_interval_with(r.change) < 0], len(seen), "models",
                       "are less so", "none is less so"),
    )  # fmt: skip
    grid = PageTable(
        "Consistency before and after a model is told to follow its own first rule of thumb; p by a sign-flip test, "
        "not corrected. n counts questions.",
        ["Model", "Before", "With a rule", "Change", "n", "p"],
        [[r.model, *estimate_cells(r.before, r.after, r.change), format_p_value(r.p_value)] for r in rows],
    )
    plots = plot_estimates(
        ((r.model, r.change) for r in rows), None, "difference", "Consistency with a rule less without"
    )
    chapter = PageSection("With and without", plots=plots, tables=[grid])
    return build_experiment_page(audit, "a rule to follow", answers, [chapter], "There was nothing to compare.")


def accuracy_page(audit: str, rows: Sequence[ConsistencyAccuracyRow]) -> ReportPage:
    """Whether models are right where they are consistent."""
    told = [
        f"{r.model}: r = {format_number(r.r)} ({format_interval(r.ci_low, r.ci_high)}; {pluralize(r.n, 'question')})."
        if r.r is not None
        else f"{r.model}: cannot be told ({r.reason})."
        for r in rows
    ]
    grid = PageTable(
        "Accuracy and consistency, and how far one goes with the other over questions.",
        ["Model", "Accuracy", "Consistency", "r", "95% interval", "p", "Questions"],
        [
            [
                r.model, format_estimate_or_reason(r.accuracy), format_estimate_or_reason(r.consistency),
                format_number(r.r) if r.r is not None else str(r.reason),
                format_interval(r.ci_low, r.ci_high), format_p_value(r.p_value), format_count(r.n),
            ]
            for r in rows
        ],
    )  # fmt: skip
    plots = plot_estimates(
        ((r.model, r.accuracy) for r in rows), SHARE_AXIS, "share", "Share of answers that are right"
    )
    chapter = PageSection("On questions with a known answer", plots=plots, tables=[grid])
    return build_experiment_page(
        audit, "right where consistent?", told, [chapter], "No model has an answer to these questions."
    )


def judgements_page(audit: str, part: HumanJudgementReport) -> ReportPage:
    """Which measure of consistency goes with what people say."""
    known = [c for c in part.correlations if c.r is not None]
    best = max(known, key=lambda c: c.r or 0.0, default=None)
    answer = (
        f"Of {pluralize(len(known), 'measure')}, {best.metric} of {best.text} goes with people's judgements most: "
        f"r = {format_number(best.r)} ({format_interval(best.ci_low, best.ci_high)})."
        if best
        else ""
    )
    rests = (
        f"{pluralize(part.judgements, 'judgement')} on {pluralize(part.questions, 'question')}; Krippendorff’s alpha "
        f"of the raters {format_estimate_or_reason(part.alpha)}; entropy of the judgements on a question "
        f"{format_estimate_or_reason(part.entropy)} bits."
    )
    grid = PageTable(
        "Each measure beside people: r with the share of judgements that find two answers alike, and with how torn "
        "people are. n counts models' questions.",
        ["Measure", "Of", "r with people", "95% interval", "r with entropy", "n"],
        [_correlation_cells(c) for c in part.correlations],
    )
    differences = [
        f"r of {d.than_metric} of {d.than_text} less {d.metric} of {d.text}: "
        + (
            d.reason
            or f"{format_signed(d.difference)} ({format_interval(d.ci_low, d.ci_high)}, p {format_p_value(d.p_value)})."
        )
        for d in part.differences
    ]
    chapter = PageSection("Each measure", [rests], differences, tables=[grid])
    none = "No measure can be held against these judgements."
    return build_experiment_page(audit, "measures beside people", [answer], [chapter], none)


def _correlation_cells(correlation: HumanCorrelationRow) -> list[str]:
    r = format_number(correlation.r) if correlation.r is not None else correlation.reason or format_number(None)
    return [
        correlation.metric,
        correlation.text,
        r,
        format_interval(correlation.ci_low, correlation.ci_high),
        format_number(correlation.r_entropy),
        format_count(correlation.n),
    ]
