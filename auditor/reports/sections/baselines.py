"""The section that compares models with simple baselines and with the survey's reliability."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.metrics.estimate import Estimate
from auditor.reports.data.measurement_schema import BaselineRow, GainRow, NonresponseReport
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, Column, List, ListItem, Paragraph, Section, Status, Table
from auditor.reports.number_format import describe_adjusted_p_value, format_count, format_number
from auditor.reports.sections.experiments.nonresponse import (
    describe_nonresponse,
    list_missing_treatments,
    tabulate_bounds,
)
from auditor.reports.sections.phrasing import (
    SeriesLabels,
    build_finding,
    compare_interval,
    describe_estimate,
    describe_interval,
)
from auditor.reports.sections.tables import tabulate, tabulate_matrix

_INTRODUCTION = (
    "A baseline predicts people’s scores without a model: by the mean of the topic over countries, of the country over "
    "topics, or of the topic over the region. Baselines use only this audit’s cells (a cell is a country and a topic). "
    "Each is compared with a model on the cells for which the model has scores. For MAE, the predicted cell is left "
    "out of the mean. For r it is included, since leaving it out biases r downwards; the r of a baseline is therefore "
    "an upper limit."
)


def build_baselines_section(report: Report) -> Section | None:
    """Build the section on the ceiling of r, baselines and nonresponse; None where no scores are measured."""
    if not report.alignment:
        return None
    labels = SeriesLabels.of(report)
    gains = [
        build_finding(labels.label(row), describe_gain(row), compare_interval(row.within_topics))
        for row in report.gain or []
    ]
    blocks: list[Block] = [
        Paragraph(summarize_guesses(report), "finding"),
        List(list_guess_findings(report), is_findings=True),
        Paragraph(_INTRODUCTION, "note"),
        *([List(gains, is_findings=True)] if gains else []),
        Paragraph(describe_ceiling(report)),
        _build_baselines_table(report, labels),
        _build_differences_table(report, labels),
    ]
    if report.nonresponse is not None:
        blocks.append(_build_nonresponse_section(report.nonresponse, labels))
    return Section("worth", "Is it better than a simple guess?", blocks, "Baselines")


def summarize_guesses(report: Report) -> str:
    """State how many series of scores are closer to people than every baseline."""
    statuses = [item.status for item in list_guess_findings(report)]
    if all(status == "neutral" for status in statuses):
        return "Whether a model is better than a simple guess cannot be tested: there is no 95% CI."
    n_better, n_all = statuses.count("positive"), len(statuses)
    claim = "closer to people than every simple guess"
    if n_all == 1:
        return f"The model is {'' if n_better else 'not shown to be '}{claim}."
    if n_better == n_all:
        return f"{'Both' if n_better == 2 else f'All {format_count(n_all)}'} models are {claim}."
    if n_better == 0:
        return f"No model is shown to be {claim}."
    subject = f"{'One' if n_better == 1 else format_count(n_better)} of the {format_count(n_all)} models"
    return f"{subject} {'is' if n_better == 1 else 'are'} shown to be {claim}."


def list_guess_findings(report: Report) -> list[ListItem]:
    """Whether each series of scores is closer to people than every baseline; those with the smallest error first."""
    labels = SeriesLabels.of(report)
    rows_by_series: dict[tuple[str, str], list[BaselineRow]] = {}
    for row in report.baselines:
        rows_by_series.setdefault((row.method, row.model), []).append(row)
    ranked = sorted(rows_by_series.values(), key=lambda rows: min(map(_get_difference, rows)))
    return [build_finding(labels.label(rows[0]), *_describe_guess(rows)) for rows in ranked]


def _get_difference(row: BaselineRow) -> float:
    """The model's MAE minus the baseline's; 2, the largest error, where it is not available."""
    return 2.0 if row.mae_difference.value is None else row.mae_difference.value


def _describe_guess(rows: Sequence[BaselineRow]) -> tuple[str, Status]:
    """Compare one series with its baselines: the predicate and its status."""
    measured = [row for row in rows if row.mae.value is not None and row.mae_difference.value is not None]
    if not measured:
        return f"cannot be compared with a simple guess: {rows[0].mae_difference.reason}", "neutral"
    best = min(measured, key=lambda row: row.mae.value or 0.0)
    difference = best.mae_difference
    figures = describe_estimate("difference in mean absolute error", difference, style="signed")
    guess = f"the best simple guess, the {best.baseline}"
    if difference.adjusted_p_value is not None:
        figures += f", {describe_adjusted_p_value(difference)}"
    if difference.adjusted_p_value is None:
        return f"may or may not be closer to people than {guess} ({figures})", "neutral"
    if all(row.mae_difference.is_significant and (row.mae_difference.value or 0.0) < 0 for row in measured):
        return f"is closer to people than every simple guess ({figures}; compared with {guess})", "positive"
    if difference.is_significant and (difference.value or 0.0) > 0:
        return f"is further from people than {guess} ({figures})", "negative"
    return f"is not shown to be closer to people than {guess} ({figures})", "unclear"


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
        f"A perfect model is expected to reach at most r = {format_number(overall.largest_r)}. The survey’s split-half "
        f"reliability is {reliabilities}."
    )


def describe_gain(row: GainRow) -> str:
    """Describe whether a model captures how countries differ within topics, as a predicate."""
    r = row.within_topics
    if r.value is None:
        return f"cannot be tested on differences between countries: {r.reason}"
    findings = {
        "positive": "captures differences between countries",
        "negative": "is negatively correlated with the differences between countries",
        "unclear": "is not shown to capture differences between countries",
        "neutral": "may or may not capture differences between countries",
    }
    return f"{findings[compare_interval(r)]} ({describe_estimate('r within topics', r, 'cell')})"


def _build_baselines_table(report: Report, labels: SeriesLabels) -> Table:
    """The table of r within topics, and of r and MAE of each baseline, for each series of scores."""
    cells: dict[str, dict[str, Estimate]] = {
        labels.label(row): {"r within topics": row.within_topics} for row in report.gain or []
    }
    for row in report.baselines:
        name = f"{row.baseline[:1].upper()}{row.baseline[1:]}"
        cells.setdefault(labels.label(row), {}).update({f"{name}: r": row.pearson_r, f"{name}: MAE": row.mae})
    titles = list(dict.fromkeys(title for by_title in cells.values() for title in by_title))
    return Table(
        "baselines",
        "Agreement of baselines with people",
        "r within topics measures how well the model captures differences between countries: each topic’s mean is "
        "subtracted from the scores of the model and of people. The other columns are r (higher is better) and mean "
        "absolute error (MAE, lower is better) of each baseline. 95% CIs are for other countries and topics like "
        "these; n counts cells.",
        [Column("Model", "name"), *(Column(title, "estimate", emphasis=i == 0) for i, title in enumerate(titles))],
        [[label, *map(by_title.get, titles)] for label, by_title in cells.items()],
    )


def _build_differences_table(report: Report, labels: SeriesLabels) -> Table:
    """The table of each model's MAE minus that of each baseline, with its adjusted p-value."""
    return tabulate(
        "baseline-differences",
        "Models minus baselines",
        "Mean absolute error of the model minus that of the baseline, on the same cells. Negative: the model is "
        "closer to people. 95% CIs are for other countries and topics like these. P-values are adjusted for all rows "
        "(Holm).",
        report.baselines,
        BaselineRow,
        {"model": labels.label},
    )


def _build_nonresponse_section(nonresponse: NonresponseReport, labels: SeriesLabels) -> Section:
    """Build the subsection on respondents without an answer: the ranking and r by treatment, and the bounds of MAE."""
    treatments_table = tabulate_matrix(
        "nonresponse-treatments",
        "Agreement with people under each treatment",
        "r with people (higher is better) under each treatment of respondents without an answer. Low and high count "
        "all of them as never and as always acceptable. These two are no bounds of r.",
        Column("Treatment"),
        {
            treatment.treatment: {labels.label(row): row.pearson_r for row in treatment.alignment}
            for treatment in nonresponse.treatments
        },
    )
    return Section(
        "nonresponse",
        "Respondents without an answer",
        [
            Paragraph(describe_nonresponse(nonresponse)),
            *([tabulate_bounds(nonresponse.bounds, labels)] if nonresponse.bounds else []),
            treatments_table,
            *([List(list_missing_treatments(nonresponse))] if nonresponse.not_possible else []),
        ],
    )
