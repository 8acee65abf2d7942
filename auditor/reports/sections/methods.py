"""The section that compares a model's answers with its log-probabilities."""

from __future__ import annotations

from auditor.reports.charts.interval_plot import CORRELATION_DIFFERENCE_AXIS
from auditor.reports.data.agreement.method_differences import MethodDifferenceRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, Column, List, Paragraph, Section
from auditor.reports.number_format import format_number
from auditor.reports.sections.estimate_plots import build_interval_figure
from auditor.reports.sections.phrasing import build_finding, compare_interval, describe_estimate
from auditor.reports.sections.tables import tabulate

_INTRODUCTION = (
    "The log-probabilities of a model also show its preferences: by how much it expects a sentence to end well rather "
    "than badly, over pairs of opposite ends. These scores are rescaled to the full scale within each model. Their r "
    "with people can be compared with that of answers, but their distance from people cannot."
)


def build_methods_section(report: Report) -> Section | None:
    """Build the section on answers and log-probabilities; None unless a model has scores by both."""
    if not report.methods:
        return None
    findings = [build_finding(row.model, describe_method_difference(row)) for row in report.methods]
    figure = build_interval_figure(
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
    title = "Answers compared with log-probabilities"
    table = tabulate(
        "direct-and-logprob",
        title,
        "r with people (higher is better) of answers and of log-probabilities, on the cells with scores by both, and "
        "the difference of answers minus log-probabilities with its 95% CI over countries and topics; n counts cells. "
        "Measure: “echo” is log-probabilities of the prompt, “continuation” the weights on the machine of the audit, "
        "“choice” the next token of a chat.",
        report.methods,
        [
            Column("Model", "name"),
            Column("r of answers", "number", "direct_r"),
            Column("r of log-probabilities", "number", "logprob_r"),
            Column("Measure"),
            Column("Difference in r", "estimate", "difference", style="signed", emphasis=True),
        ],
        {"measure": lambda row: ", ".join(row.measures) or None},
    )
    blocks: list[Block] = [Paragraph(_INTRODUCTION), List(findings, is_findings=True), figure, table]
    return Section("methods", title, blocks, "Answers and log-probabilities")


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
    findings = {
        "positive": "agrees better with people by its answers than by its log-probabilities",
        "negative": "agrees less with people by its answers than by its log-probabilities",
        "unclear": "shows no statistically distinguishable difference between answers and log-probabilities",
        "neutral": "has a difference of unknown uncertainty",
    }
    return f"{findings[compare_interval(change)]} ({figures})"
