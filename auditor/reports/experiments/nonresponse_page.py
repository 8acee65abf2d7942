"""The experiment on respondents without an answer as a page."""

from __future__ import annotations

from auditor.reports.experiments.page_building import build_experiment_page
from auditor.reports.measurement_schema import NonresponseReport
from auditor.reports.pages.alignment_wording import two_way_interval
from auditor.reports.pages.interval_marks import format_mark_annotation
from auditor.reports.pages.number_format import format_count, format_interval, format_number, format_signed
from auditor.reports.pages.report_page import PagePlot, PageSection, PageTable, ReportPage
from auditor.reports.pages.sentences import nonresponse_sentence as sentence
from auditor.reports.pages.svg_charts import CORRELATION_AXIS, IntervalMark, interval_plot

TREATMENTS_EXPLANATION = (
    "The audit’s own scores come first; “drop” leaves respondents without an answer out, “neutral” counts them as 0, "
    "“low” and “high” as never and as always acceptable, “impute” fills them in within their country."
)


def nonresponse_page(audit: str, part: NonresponseReport) -> ReportPage:
    """Whether the result depends on them."""
    rows = [(t.treatment, r) for t in part.treatments for r in t.alignment]
    marks = [
        IntervalMark(
            f"{r.model}, {treatment}",
            r.pearson_r,
            *two_way_interval(r),
            format_mark_annotation(r.pearson_r, *two_way_interval(r)),
        )
        for treatment, r in sorted(rows, key=lambda row: row[1].model)
    ]
    title = "Pearson r under each treatment"
    plots = (
        [
            PagePlot(
                interval_plot(marks, CORRELATION_AXIS, title, TREATMENTS_EXPLANATION), f"{title}, with 95% intervals."
            )
        ]
        if marks
        else []
    )
    agreement = PageTable(
        "Agreement with people under each treatment.",
        ["Treatment", "Model", "r", "95% interval", "rho", "MAE", "RMSE", "Bias", "Cells"],
        [
            [
                treatment, r.model, format_number(r.pearson_r), format_interval(*two_way_interval(r)),
                *map(format_number, (r.spearman_rho, r.mae, r.rmse)), format_signed(r.bias.value), format_count(r.n),
            ]
            for treatment, r in rows
        ],
    )  # fmt: skip
    bounds = PageTable(
        "How near people each model could be at best, and how far at worst, whatever those without an answer think.",
        ["Model", "MAE at best", "MAE at worst", "Cells"],
        [[b.model, format_number(b.mae_best), format_number(b.mae_worst), format_count(b.n)] for b in part.bounds],
    )
    reasons = dict.fromkeys(part.not_possible.values())
    not_there = [
        f"{', '.join(name for name, why in part.not_possible.items() if why == reason)} could not be tried: {reason}"
        for reason in reasons
    ]
    chapter = PageSection(
        "Each treatment", [TREATMENTS_EXPLANATION], not_there, plots, [agreement, *([bounds] if part.bounds else [])]
    )
    return build_experiment_page(audit, "respondents without an answer", [sentence(part)], [chapter], "")
