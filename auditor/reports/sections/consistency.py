"""Section on how consistent each model's samples of the same cell are."""

from __future__ import annotations

from auditor.reports.charts.interval_plot import SHARE_AXIS
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, Column, Paragraph, Section
from auditor.reports.sections.caution import MAX_VARIANCE
from auditor.reports.sections.estimate_plots import build_interval_figure
from auditor.reports.sections.phrasing import SeriesLabels
from auditor.reports.sections.tables import tabulate


def build_consistency_section(report: Report) -> Section | None:
    """Build the section on self-consistency; None where no cell was sampled several times."""
    if not report.self_consistency:
        return None
    labels = SeriesLabels.of(report)
    explanation = (
        "Each question was asked several times. Self-consistency is the mean cosine similarity between the embeddings "
        "of the reasoning in the samples of a cell; 1 is perfectly consistent. "
        f"A variance of the score above {MAX_VARIANCE} is a reason for caution."
    )
    figure = build_interval_figure(
        "self-consistency",
        "Self-consistency of each model",
        [(labels.label(row), row.cosine) for row in report.self_consistency],
        SHARE_AXIS,
        table_id="sample-consistency",
        caption="Mean self-consistency over cells, with its 95% CI (higher is more consistent).",
    )
    table = tabulate(
        "sample-consistency",
        "Self-consistency",
        "Consistency of the samples of a cell, as means over cells with 95% CIs. Variance: of the scores, lower is "
        "more consistent. Same sign: share of samples whose score has the most frequent sign. Both signs: share of "
        "cells with samples on both sides of zero. n is the number of cells with at least two usable samples.",
        report.self_consistency,
        [
            Column("Model", "name"),
            Column("Self-consistency (cosine)", "estimate", "cosine"),
            Column("Variance of the score", "estimate", "variance", digits=3),
            Column("Same sign", "estimate", "sign_agreement"),
            Column("Both signs", "estimate", "straddling"),
        ],
        {"model": labels.label},
    )
    blocks: list[Block] = [Paragraph(explanation), figure, table]
    return Section("consistency", "How consistent is each model with itself?", blocks, "Consistency")
