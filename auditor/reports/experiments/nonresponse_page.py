"""The experiment on respondents without an answer as a page."""

from __future__ import annotations

from auditor.reports.experiments.page_building import page
from auditor.reports.measurement_schema import NonresponsePart
from auditor.reports.pages.alignment_wording import span
from auditor.reports.pages.interval_marks import note
from auditor.reports.pages.number_format import count, interval, number, signed
from auditor.reports.pages.report_page import Chapter, Grid, Page, Plot
from auditor.reports.pages.sentences import nonresponse as sentence
from auditor.reports.pages.svg_charts import CORRELATION, Mark, interval_plot

METHOD = (
    "The audit’s own scores come first; “drop” leaves respondents without an answer out, “neutral” counts them as 0, "
    "“low” and “high” as never and as always acceptable, “impute” fills them in within their country."
)


def nonresponse_page(audit: str, part: NonresponsePart) -> Page:
    """Whether the result depends on them."""
    rows = [(t.treatment, r) for t in part.treatments for r in t.alignment]
    marks = [
        Mark(f"{r.model}, {treatment}", r.pearson_r, *span(r), note(r.pearson_r, *span(r)))
        for treatment, r in sorted(rows, key=lambda row: row[1].model)
    ]
    title = "Pearson r under each treatment"
    plots = [Plot(interval_plot(marks, CORRELATION, title, METHOD), f"{title}, with 95% intervals.")] if marks else []
    agreement = Grid(
        "Agreement with people under each treatment.",
        ["Treatment", "Model", "r", "95% interval", "rho", "MAE", "RMSE", "Bias", "Cells"],
        [
            [
                treatment, r.model, number(r.pearson_r), interval(*span(r)),
                *map(number, (r.spearman_rho, r.mae, r.rmse)), signed(r.bias.value), count(r.n),
            ]
            for treatment, r in rows
        ],
    )  # fmt: skip
    bounds = Grid(
        "How near people each model could be at best, and how far at worst, whatever those without an answer think.",
        ["Model", "MAE at best", "MAE at worst", "Cells"],
        [[b.model, number(b.mae_best), number(b.mae_worst), count(b.n)] for b in part.bounds],
    )
    reasons = dict.fromkeys(part.not_possible.values())
    not_there = [
        f"{', '.join(name for name, why in part.not_possible.items() if why == reason)} could not be tried: {reason}"
        for reason in reasons
    ]
    chapter = Chapter("Each treatment", [METHOD], not_there, plots, [agreement, *([bounds] if part.bounds else [])])
    return page(audit, "respondents without an answer", [sentence(part)], [chapter], "")
