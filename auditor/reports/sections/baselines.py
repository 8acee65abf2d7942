"""The section that compares models with simple baselines and with the survey's reliability."""

from __future__ import annotations

from auditor.reports.data.measurement_schema import GainRow, NonresponseReport
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, Column, List, ListItem, Name, Paragraph, Section, Status, Table
from auditor.reports.number_format import format_number
from auditor.reports.sections.alignment_table import two_way_r
from auditor.reports.sections.experiments.nonresponse import (
    describe_nonresponse,
    list_missing_treatments,
    tabulate_bounds,
)
from auditor.reports.sections.phrasing import SeriesLabels, describe_estimate, describe_interval, name_finding

_INTRODUCTION = (
    "A baseline predicts people’s scores without a model: by the mean of the topic over countries, of the country over "
    "topics, or of the topic over the countries of the region. Baselines use the cells of this audit only, and are "
    "compared on the cells that the model has scores on. MAE excludes the predicted cell from the mean. r includes it, "
    "since excluding it biases r downwards; the r of a baseline is therefore an upper limit."
)


def build_baselines_section(report: Report) -> Section | None:
    """Build the section on the ceiling of r, baselines and nonresponse; None where no scores are measured."""
    if not report.alignment:
        return None
    labels = SeriesLabels.of(report)
    gains = report.gain or []
    findings = [
        ListItem(name_finding(labels.label(row.method, row.model), describe_gain(row)), _gain_status(row))
        for row in gains
    ]
    blocks: list[Block] = [
        Paragraph(describe_ceiling(report)),
        *([List(findings, is_findings=True)] if findings else []),
        Paragraph(_INTRODUCTION),
        _build_baselines_table(report, labels),
    ]
    if report.nonresponse is not None:
        blocks.append(_build_nonresponse_section(report.nonresponse, labels))
    return Section("worth", "Is it better than a simple guess?", blocks, "Baselines")


def describe_ceiling(report: Report) -> str:
    """State the largest r that can be expected against this survey, or why it is not known."""
    overall, within_topics = report.ceiling
    if overall.largest_r is None:
        reason = (overall.reliability.reason or "").rstrip(".")
        return f"The highest attainable r is not available: {reason}."
    reliabilities = " and ".join(
        f"{format_number(row.reliability.value)} {scope} ({describe_interval(row.reliability)})"
        for row, scope in ((overall, "over all cells"), (within_topics, "within topics"))
        if row.reliability.value is not None
    )
    return (
        f"Even a perfect model is expected to reach no more than r = {format_number(overall.largest_r)}. The survey’s "
        f"split-half reliability, over halves of its respondents and over all its cells, is {reliabilities}."
    )


def _gain_status(row: GainRow) -> Status:
    """Whether a model is shown to capture differences between countries."""
    low, high = row.within_topics.ci_low, row.within_topics.ci_high
    if low is None or high is None:
        return "neutral"
    return "positive" if low > 0 else "negative" if high < 0 else "unclear"


def describe_gain(row: GainRow) -> str:
    """Describe whether a model captures how countries differ within topics, as a predicate."""
    if row.within_topics.value is None:
        return f"cannot be tested on differences between countries: {row.within_topics.reason}"
    findings = {
        "positive": "captures some of the differences between countries",
        "negative": "is negatively correlated with the differences between countries",
        "unclear": "is not shown to capture differences between countries",
        "neutral": "may or may not capture differences between countries",
    }
    return f"{findings[_gain_status(row)]} ({describe_estimate('r within topics', row.within_topics, 'cell')})"


def _build_baselines_table(report: Report, labels: SeriesLabels) -> Table:
    """The table of r within topics, and of r and MAE of each baseline, for each series of scores."""
    estimates_by_series = {(row.method, row.model): [row.within_topics] for row in report.gain or []}
    for row in report.baselines:
        estimates_by_series.setdefault((row.method, row.model), []).extend([row.pearson_r, row.mae])
    baselines = list(dict.fromkeys(row.baseline for row in report.baselines))
    return Table(
        id="baselines",
        label="Agreement without any model",
        caption=(
            "r within topics is the r of the model after each topic’s mean is subtracted from both sides: how well it "
            "captures differences between countries. The other columns are r (higher is better) and mean absolute "
            "error (MAE, lower is better) of each baseline. Intervals are 95% CIs over countries and topics; n counts "
            "cells."
        ),
        columns=[
            Column("Model", "name"),
            Column("r within topics", "estimate", emphasis=True),
            *(
                Column(f"{baseline[:1].upper()}{baseline[1:]}: {measure}", "estimate", f"{baseline} {measure}")
                for baseline in baselines
                for measure in ("r", "MAE")
            ),
        ],
        rows=[[labels.label(method, model), *estimates] for (method, model), estimates in estimates_by_series.items()],
    )


def _build_nonresponse_section(nonresponse: NonresponseReport, labels: SeriesLabels) -> Section:
    """Build the subsection on respondents without an answer: the ranking and r by treatment, and the bounds of MAE."""
    series = nonresponse.treatments[0].alignment
    treatments_table = Table(
        id="nonresponse-treatments",
        label="Agreement with people under each treatment",
        caption=(
            "r with people (higher is better) under each treatment of respondents without an answer. Low and high "
            "count all of them as never and as always acceptable; r may also lie outside these two."
        ),
        columns=[
            Column("Treatment"),
            *(Column(Name(labels.label(row.method, row.model)), "estimate") for row in series),
        ],
        rows=[[treatment.treatment, *map(two_way_r, treatment.alignment)] for treatment in nonresponse.treatments],
    )
    blocks: list[Block] = [
        Paragraph(describe_nonresponse(nonresponse)),
        *([tabulate_bounds(nonresponse.bounds, labels)] if nonresponse.bounds else []),
        treatments_table,
    ]
    if nonresponse.not_possible:
        blocks.append(List(list_missing_treatments(nonresponse)))
    return Section("nonresponse", "Respondents without an answer", blocks)
