"""The section that compares a model's answers with its log-probabilities."""

from __future__ import annotations

from auditor.reports.charts.interval_plot import CORRELATION_DIFFERENCE_AXIS
from auditor.reports.data.agreement.method_differences import MethodDifferenceRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Column, Figure, List, ListItem, Paragraph, Section, Table
from auditor.reports.number_format import format_number
from auditor.reports.sections.estimate_plots import build_interval_figure
from auditor.reports.sections.phrasing import describe_estimate, name_finding

_INTRODUCTION = (
    "The log-probabilities of a model also show its preferences: by how much it expects a sentence to end well rather "
    "than badly, over pairs of opposite ends. These scores are rescaled to the full scale within each model. Their r "
    "with people can be compared with that of answers, but their distance from people cannot."
)


def build_methods_section(report: Report) -> Section | None:
    """Build the section on answers and log-probabilities; None unless a model has scores by both."""
    if not report.methods:
        return None
    findings = [ListItem(name_finding(row.model, describe_method_difference(row))) for row in report.methods]
    table = Table(
        id="direct-and-logprob",
        label="Answers compared with log-probabilities",
        caption=(
            "r with people (higher is better) of answers and of log-probabilities, on the cells with scores by both, "
            "and the difference of answers minus log-probabilities with its 95% CI over countries and topics; n counts "
            "cells. Measure: “echo” is log-probabilities of the prompt, “continuation” the weights on the machine of "
            "the audit, “choice” the next token of a chat."
        ),
        columns=[
            Column("Model", "name"),
            Column("r of answers", "number", "r_direct"),
            Column("r of log-probabilities", "number", "r_logprob"),
            Column("Measure"),
            Column("Difference in r", "estimate", "delta_r", style="signed", emphasis=True),
        ],
        rows=[
            [row.model, row.direct_r, row.logprob_r, ", ".join(row.measures) or None, row.difference]
            for row in report.methods
        ],
    )
    return Section(
        "methods",
        "Answers compared with log-probabilities",
        [Paragraph(_INTRODUCTION), List(findings, is_findings=True), _build_plot(report), table],
        "Answers and log-probabilities",
    )


def _build_plot(report: Report) -> Figure:
    """The plot of the difference in r of each model."""
    return build_interval_figure(
        "direct-and-logprob",
        "r of answers minus r of log-probabilities, and its 95% CI",
        [(row.model, row.difference) for row in report.methods],
        CORRELATION_DIFFERENCE_AXIS,
        table_id="direct-and-logprob",
        caption=(
            "Difference in r with its 95% CI over countries and topics. To the right of the dashed line, answers agree "
            "better with people than log-probabilities do."
        ),
    )


def describe_method_difference(row: MethodDifferenceRow) -> str:
    """Describe whether answers agree better with people than log-probabilities do, as a predicate."""
    change = row.difference
    if change.value is None:
        return f"cannot be compared: {change.reason}"
    measures = f" by {', '.join(row.measures)}" if row.measures else ""
    figures = (
        f"r = {format_number(row.direct_r)} for answers, {format_number(row.logprob_r)} for log-probabilities"
        f"{measures}; {describe_estimate('Δr', change, 'cell', style='signed')}"
    )
    if change.ci_low is None or change.ci_high is None:
        finding = "has a difference of unknown uncertainty"
    elif change.ci_low > 0:
        finding = "agrees better with people by its answers than by its log-probabilities"
    elif change.ci_high < 0:
        finding = "agrees less with people by its answers than by its log-probabilities"
    else:
        finding = "shows no statistically distinguishable difference between answers and log-probabilities"
    return f"{finding} ({figures})"
