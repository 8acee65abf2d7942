"""Document of the experiment on survey respondents without an answer."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.reports.charts.interval_plot import CORRELATION_AXIS
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.measurement_schema import NonresponseBoundsRow, NonresponseReport
from auditor.reports.document import Block, Column, Document, Figure, Paragraph, Reason, Section, Table
from auditor.reports.sections.estimate_plots import build_interval_figure
from auditor.reports.sections.experiments.common import build_experiment_document
from auditor.reports.sections.phrasing import SeriesLabels

TREATMENTS_EXPLANATION = (
    "The first treatment is the audit’s own. The treatment “drop” excludes respondents without an answer. “neutral” "
    "counts them as 0, “low” as never acceptable (−1) and “high” as always acceptable (+1). “impute” imputes their "
    "answers within their country."
)
TREATMENT_COLUMNS = (
    Column("Treatment"), Column("Model", "name"), Column("r", "estimate", show_n=False, emphasis=True),
    Column("Spearman ρ", "number"), Column("MAE", "estimate", show_n=False), Column("RMSE", "number"),
    Column("Bias", "estimate", style="signed", show_n=False), Column("Cells", "number"),
)  # fmt: skip


def build_nonresponse_document(audit: str, nonresponse: NonresponseReport) -> Document:
    """Build the document on whether the alignment depends on the treatment of respondents without an answer."""
    rows = [(treatment.treatment, row) for treatment in nonresponse.treatments for row in treatment.alignment]
    labels = SeriesLabels(len({row.method for _, row in rows}) > 1)
    blocks: list[Block] = [Paragraph(TREATMENTS_EXPLANATION)]
    blocks += [Paragraph(sentence, "note") for sentence in list_missing_treatments(nonresponse)]
    if rows:
        blocks += [_plot_treatments(rows, labels), _tabulate_treatments(rows, labels)]
    if nonresponse.bounds:
        blocks.append(tabulate_bounds(nonresponse.bounds, labels))
    section = Section("treatments", "Agreement under each treatment", blocks)
    return build_experiment_document(
        audit, "respondents without an answer", [describe_nonresponse(nonresponse)], [section], ""
    )


def describe_nonresponse(nonresponse: NonresponseReport) -> str:
    """State whether the ranking of models depends on the treatment of respondents without an answer."""
    if nonresponse.ranking_holds is None:
        return f"The ranking of models cannot be compared between treatments: {nonresponse.reason}."
    audited, *others = nonresponse.treatments
    ranking = " > ".join(audited.ranking)
    if nonresponse.ranking_holds:
        treatments = ", ".join(row.treatment for row in others)
        return f"The ranking of models by MAE is the same under all treatments ({treatments}): {ranking}."
    changes = "; ".join(
        f"{' > '.join(row.ranking)} ({row.treatment})" for row in others if row.ranking != audited.ranking
    )
    return f"The ranking of models by MAE depends on the treatment. As audited: {ranking}. Others: {changes}."


def list_missing_treatments(nonresponse: NonresponseReport) -> list[str]:
    """One sentence for each reason for which treatments are not available."""
    names_by_reason: dict[str, list[str]] = {}
    for name, reason in nonresponse.not_possible.items():
        names_by_reason.setdefault(reason, []).append(name)
    return [
        f"Not available: {', '.join(names)}. Reason: {reason.removesuffix('.')}."
        for reason, names in names_by_reason.items()
    ]


def _plot_treatments(rows: Sequence[tuple[str, AlignmentRow]], labels: SeriesLabels) -> Figure:
    """Plot r with its interval, grouped by model."""
    return build_interval_figure(
        "treatments-plot",
        "Pearson r under each treatment",
        [
            (f"{labels.label(row)}, {treatment}", row.pearson_r)
            for treatment, row in sorted(rows, key=lambda entry: entry[1].model)  # entry: treatment, row
        ],
        CORRELATION_AXIS,
        table_id="treatment-agreement",
        caption="Pearson r with its 95% CI over countries and topics.",
    )


def _tabulate_treatments(rows: Sequence[tuple[str, AlignmentRow]], labels: SeriesLabels) -> Table:
    """Tabulate the agreement with people, with one row for each treatment and model."""
    return Table(
        "treatment-agreement",
        "Agreement under each treatment",
        "Agreement with people under each treatment. r and Spearman’s ρ: from −1 to +1, higher is better. MAE and "
        "RMSE: from 0 to 2, lower is better. Bias: mean score of the model minus that of people; positive if the model "
        "is more permissive. Brackets: 95% CI over countries and topics.",
        TREATMENT_COLUMNS,
        [
            (
                treatment, labels.label(row), row.pearson_r, row.spearman_rho.value,
                row.mae, row.rmse.value, row.bias, row.n,
            )
            for treatment, row in rows
        ],
    )  # fmt: skip


def tabulate_bounds(rows: Sequence[NonresponseBoundsRow], labels: SeriesLabels) -> Table:
    """Tabulate the bounds of the MAE over all possible opinions of respondents without an answer."""
    return Table(
        "nonresponse-bounds",
        "Bounds of the MAE",
        "Lowest and highest MAE of each model, whatever the opinions of respondents without an answer. MAE: from 0 "
        "to 2, lower is better.",
        [
            Column("Model", "name"),
            *(Column(title, "number") for title in ("MAE at best", "MAE at worst", "Cells")),
        ],
        [
            (
                labels.label(row),
                *((Reason(row.reason, 2),) if row.reason else (row.mae_best, row.mae_worst)),
                row.n,
            )
            for row in rows
        ],
    )
