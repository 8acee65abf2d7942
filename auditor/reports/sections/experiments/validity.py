"""Document on whether peer review follows accuracy on a task."""

from __future__ import annotations

from auditor.metrics.estimate import Estimate
from auditor.reports.charts.interval_plot import CORRELATION_AXIS
from auditor.reports.data.task.validity import ModelValidityRow, TaskValidityReport
from auditor.reports.document import Document
from auditor.reports.number_format import pluralize
from auditor.reports.sections.experiments.common import (
    build_experiment_document,
    build_result_sections,
    plot_estimates,
)
from auditor.reports.sections.phrasing import describe_estimate
from auditor.reports.sections.tables import tabulate


def build_validity_document(audit: str, report: TaskValidityReport) -> Document:
    """Build the page: the difference within models first, then each model, then the correlation over models."""
    caption = (
        "Share of VALID among the verdicts on right and on wrong answers, with 95% CI over items, and the difference "
        "(above 0: judges find right answers valid more often). n counts verdicts; for accuracy, answers."
    )
    table = tabulate("task-validity", "Verdicts and accuracy", caption, report.models, ModelValidityRow)
    plots = plot_estimates(
        "task-validity-plot",
        "VALID of right minus wrong answers",
        [(row.model, row.difference) for row in report.models],
        CORRELATION_AXIS,
        table_id=table.id,
    )
    remark = (
        f"{pluralize(report.answers, 'answer')} to {pluralize(report.items, 'item')}. Within models: shares and "
        "accuracy are compared with the model’s own means, so that a difference between models counts for nothing. "
        "Items and models are crossed: the interval is for other items and other models like these, with fewer than "
        f"five models for other items only. {_describe_over_models(report)}"
    )
    sections = build_result_sections("task-validity-results", "Right and wrong answers", table, plots, remark)
    return build_experiment_document(
        audit, "verdicts and accuracy", [_describe_within(report.within)], sections, "There are no verdicts on answers."
    )


def _describe_within(within: Estimate) -> str:
    """Say whether verdicts follow accuracy within models."""
    if within.value is None:
        return f"It is not known whether verdicts follow accuracy: {within.reason}."
    figures = describe_estimate("difference in the share of VALID", within, "answer")
    if within.ci_low is None or within.ci_high is None:
        return f"It is not known whether verdicts follow accuracy within models ({figures})."
    if within.ci_low > 0:
        return f"Within models, right answers are called VALID more often than wrong ones ({figures})."
    if within.ci_high < 0:
        return f"Within models, wrong answers are called VALID more often than right ones ({figures})."
    return f"Within models, verdicts are not shown to follow accuracy ({figures})."


def _describe_over_models(report: TaskValidityReport) -> str:
    """The correlation of models' shares of VALID with their accuracy, or why there is none."""
    over_models = report.over_models
    if over_models.value is None:
        return f"Over models, no correlation of VALID with accuracy is given: {over_models.reason}."
    figures = describe_estimate("r", over_models, "model")
    return f"Over models, the share of VALID and accuracy: {figures}."
