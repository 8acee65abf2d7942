"""Page of the experiment on survey respondents without an answer."""

from __future__ import annotations

from auditor.reports.data.measurement_schema import NonresponseReport
from auditor.reports.experiments.page_building import build_experiment_page
from auditor.reports.number_format import format_count, format_interval, format_number, format_signed
from auditor.reports.pages.alignment_wording import two_way_interval
from auditor.reports.pages.interval_marks import format_mark_annotation
from auditor.reports.pages.report_page import PagePlot, PageSection, PageTable, ReportPage
from auditor.reports.pages.sentences import nonresponse_sentence
from auditor.reports.pages.svg_charts import CORRELATION_AXIS, IntervalMark, interval_plot

TREATMENTS_EXPLANATION = (
    "The audit’s own scores come first; “drop” leaves respondents without an answer out, “neutral” counts them as 0, "
    "“low” and “high” as never and as always acceptable, “impute” fills them in within their country."
)


def nonresponse_page(audit: str, nonresponse: NonresponseReport) -> ReportPage:
    """Build the page on whether the alignment depends on the treatment of respondents without an answer."""
    treatment_rows = [
        (treatment_row.treatment, row) for treatment_row in nonresponse.treatments for row in treatment_row.alignment
    ]
    marks = [
        IntervalMark(
            f"{row.model}, {treatment}",
            row.pearson_r,
            *two_way_interval(row),
            format_mark_annotation(row.pearson_r, *two_way_interval(row)),
        )
        for treatment, row in sorted(treatment_rows, key=lambda entry: entry[1].model)  # entry: treatment, row
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
    agreement_table = PageTable(
        "Agreement with people under each treatment.",
        ["Treatment", "Model", "r", "95% interval", "rho", "MAE", "RMSE", "Bias", "Cells"],
        [
            [
                treatment, row.model, format_number(row.pearson_r), format_interval(*two_way_interval(row)),
                *map(format_number, (row.spearman_rho, row.mae, row.rmse)), format_signed(row.bias.value),
                format_count(row.n),
            ]
            for treatment, row in treatment_rows
        ],
    )  # fmt: skip
    bounds_table = PageTable(
        "How near people each model could be at best, and how far at worst, whatever those without an answer think.",
        ["Model", "MAE at best", "MAE at worst", "Cells"],
        [
            [
                bounds_row.model,
                format_number(bounds_row.mae_best),
                format_number(bounds_row.mae_worst),
                format_count(bounds_row.n),
            ]
            for bounds_row in nonresponse.bounds
        ],
    )
    reasons = dict.fromkeys(nonresponse.not_possible.values())
    untried_treatments = [
        f"{', '.join(name for name, cause in nonresponse.not_possible.items() if cause == reason)} "
        f"could not be tried: {reason}"
        for reason in reasons
    ]
    section = PageSection(
        "Each treatment",
        [TREATMENTS_EXPLANATION],
        untried_treatments,
        plots,
        [agreement_table, *([bounds_table] if nonresponse.bounds else [])],
    )
    return build_experiment_page(
        audit, "respondents without an answer", [nonresponse_sentence(nonresponse)], [section], ""
    )
