"""Sentences and tables on the sensitivity to survey respondents without an answer."""

from __future__ import annotations

from auditor.reports.data.measurement_schema import NonresponseReport
from auditor.reports.document import Block, Column, List, Name, Paragraph, Reason, Section, Table
from auditor.reports.sections.agreement import two_way_r
from auditor.reports.sections.phrasing import SeriesLabels


def build_nonresponse_section(nonresponse: NonresponseReport, labels: SeriesLabels) -> Section:
    """Build the subsection on respondents without an answer: the ranking and r by treatment, and the bounds of MAE."""
    impossible = describe_impossible_treatments(nonresponse)
    blocks: list[Block] = [
        Paragraph(describe_ranking_stability(nonresponse)),
        *([build_bounds_table(nonresponse, labels)] if nonresponse.bounds else []),
        build_treatments_table(nonresponse, labels),
        *([List(impossible)] if impossible else []),
    ]
    return Section("nonresponse", "Respondents without an answer", blocks)


def describe_ranking_stability(nonresponse: NonresponseReport) -> str:
    """State whether the ranking of models depends on the treatment of respondents without an answer."""
    if nonresponse.ranking_holds is None:
        return f"Whether the ranking of models depends on the treatment is not known: {nonresponse.reason}."
    audited, *others = nonresponse.treatments
    ranking = " > ".join(audited.ranking)
    if nonresponse.ranking_holds:
        treatments = ", ".join(row.treatment for row in others)
        return f"The ranking of models by r is the same under all treatments ({treatments}): {ranking}."
    rankings = "; ".join(
        f"{' > '.join(row.ranking)} ({row.treatment})" for row in others if row.ranking != audited.ranking
    )
    return f"The ranking of models by r depends on the treatment: {ranking} as audited, but {rankings}."


def describe_impossible_treatments(nonresponse: NonresponseReport) -> list[str]:
    """State for each reason which treatments could not be computed."""
    return [
        f"Not possible: {', '.join(name for name, cause in nonresponse.not_possible.items() if cause == reason)}. "
        f"{reason}"
        for reason in dict.fromkeys(nonresponse.not_possible.values())
    ]


def build_bounds_table(nonresponse: NonresponseReport, labels: SeriesLabels) -> Table:
    """The table of the smallest and largest possible mean absolute error of each series of scores."""
    return Table(
        id="nonresponse-bounds",
        label="Best and worst case",
        caption=(
            "Best and worst case of the mean absolute error (MAE, lower is better) over all possible opinions of the "
            "respondents without an answer: in every cell, they think as suits the model best, or worst."
        ),
        columns=[
            Column("Model", "name"),
            Column("MAE, best case", "number", "mae_best"),
            Column("MAE, worst case", "number", "mae_worst"),
            Column("Cells", "number", "n"),
        ],
        rows=[
            [
                labels.label(row.method, row.model),
                *([row.mae_best, row.mae_worst] if row.mae_best is not None else [Reason(row.reason or "", 2)]),
                row.n,
            ]
            for row in nonresponse.bounds
        ],
    )


def build_treatments_table(nonresponse: NonresponseReport, labels: SeriesLabels) -> Table:
    """The table of r under each treatment, with a column for each series of scores."""
    series = nonresponse.treatments[0].alignment
    return Table(
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
